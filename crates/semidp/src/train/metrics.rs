//! How good a model is on rows that may be looked at.
//!
//! Metrics are exact. On private rows they would be releases that no budget covers.

use super::{Model, PublicRows};
use crate::loss::{Labels, Loss};

/// Of a model on some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    /// Rows whose label is known; the others are left out.
    pub rows: usize,
    /// The mean loss.
    pub loss: f64,
    /// What is measured besides.
    pub kind: Quality,
}

/// What depends on the kind of label.
#[derive(Debug, Clone, PartialEq)]
pub enum Quality {
    /// Of classes.
    Classification {
        /// The share of rows that get their class.
        accuracy: f64,
        /// The chance that a row of a class scores higher for it than a row of another does; ties count half. For
        /// more than two classes the mean over classes that occur and are not alone. `None` if there is none.
        auc: Option<f64>,
    },
    /// Of numbers.
    Regression {
        /// The mean squared error, in units of the labels as trained on.
        mean_squared_error: f64,
        /// The mean absolute error, likewise.
        mean_absolute_error: f64,
        /// 1 − squared error / squared deviation from the mean label. `None` if labels do not vary.
        r2: Option<f64>,
    },
}

/// The class that scores give; of two classes with one score, the second if it is positive.
pub fn predicted_class(scores: &[f64]) -> usize {
    match scores {
        [score] => usize::from(*score > 0.0),
        _ => {
            let better = |best: usize, next: usize| if scores[next] > scores[best] { next } else { best };
            (0..scores.len()).fold(0, better)
        }
    }
}

impl Metrics {
    /// Measures. Class labels below 0 are unknown. `None` if no label is known.
    pub fn of(loss: &dyn Loss, model: &Model, rows: &PublicRows) -> Option<Self> {
        let is_class = loss.labels() == Labels::Classes;
        let known: Vec<usize> = (0..rows.len()).filter(|row| !is_class || rows.label(*row) > -0.5).collect();
        if known.is_empty() {
            return None;
        }
        let count = known.len() as f64;
        let mut scores = vec![0.0; known.len() * model.outputs];
        for (row, scores) in known.iter().zip(scores.chunks_exact_mut(model.outputs)) {
            model.scores_into(rows, *row, scores);
        }
        // Classes that are numbers come out of a division.
        let label = |row: &usize| if is_class { rows.label(*row).round() } else { rows.label(*row) };
        let labels: Vec<f64> = known.iter().map(label).collect();
        let each = || scores.chunks_exact(model.outputs).zip(&labels);
        let kind = if is_class {
            let right = each().filter(|(scores, label)| predicted_class(scores) as f64 == **label).count();
            Quality::Classification {
                accuracy: right as f64 / count,
                auc: mean_auc(&scores, &labels, model.outputs),
            }
        } else {
            let errors = || each().map(|(scores, label)| scores[0] - label);
            let mean = labels.iter().sum::<f64>() / count;
            let squares: f64 = errors().map(|error| error * error).sum();
            let spread: f64 = labels.iter().map(|label| (label - mean).powi(2)).sum();
            Quality::Regression {
                mean_squared_error: squares / count,
                mean_absolute_error: errors().map(f64::abs).sum::<f64>() / count,
                r2: (spread > 0.0).then(|| 1.0 - squares / spread),
            }
        };
        let loss = each().map(|(scores, label)| loss.value(scores, *label)).sum::<f64>() / count;
        Some(Self { rows: known.len(), loss, kind })
    }
}

/// Each class against the rest.
fn mean_auc(scores: &[f64], labels: &[f64], outputs: usize) -> Option<f64> {
    let of_class = |class: usize, column: usize| {
        let mut pairs: Vec<(f64, bool)> = scores
            .chunks_exact(outputs)
            .zip(labels)
            .map(|(scores, label)| (scores[column], *label == class as f64))
            .collect();
        auc(&mut pairs)
    };
    if outputs == 1 {
        return of_class(1, 0);
    }
    let found: Vec<f64> = (0..outputs).filter_map(|class| of_class(class, class)).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

/// The area under the curve, from ranks.
fn auc(pairs: &mut [(f64, bool)]) -> Option<f64> {
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positive = pairs.iter().filter(|(_, is_positive)| *is_positive).count() as f64;
    let negative = pairs.len() as f64 - positive;
    if positive == 0.0 || negative == 0.0 {
        return None;
    }
    let (mut below, mut wins) = (0.0, 0.0);
    for tied in pairs.chunk_by(|a, b| a.0 == b.0) {
        let positives = tied.iter().filter(|(_, is_positive)| *is_positive).count() as f64;
        let negatives = tied.len() as f64 - positives;
        wins += positives * (below + 0.5 * negatives);
        below += negatives;
    }
    Some(wins / (positive * negative))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Logistic, Softmax, Squared};
    use semidp_core::{DenseTable, Public};

    fn rows(pairs: &[(f64, f64)]) -> PublicRows {
        let values = pairs.iter().flat_map(|(x, y)| [*x, *y]).collect();
        PublicRows::load(&Public(DenseTable::<f64>::new(values, 2).unwrap())).unwrap()
    }

    #[test]
    fn two_classes() {
        let model = Model::zero(1, 1, false).with_weights(vec![1.0]);
        let rows = rows(&[(2.0, 1.0), (1.0, 0.0), (1.0, 1.0), (-1.0, 0.0), (-3.0, 0.999_999_9), (9.0, -1.0)]);
        let found = Metrics::of(&Logistic, &model, &rows).unwrap();
        assert_eq!(found.rows, 5);
        // Pairs of a second and a first class: 2>1, 2>-1, 1=1, 1>-1, -3<1, -3<-1.
        assert_eq!(found.kind, Quality::Classification { accuracy: 0.6, auc: Some(3.5 / 6.0) });
        let alone = Metrics::of(&Logistic, &model, &rows.some(&[0])).unwrap();
        assert_eq!(alone.kind, Quality::Classification { accuracy: 1.0, auc: None });
        assert!(Metrics::of(&Logistic, &model, &rows.some(&[5])).is_none());
    }

    #[test]
    fn several_classes() {
        let loss = Softmax::new(3).unwrap();
        let model = Model::zero(1, 3, true).with_weights(vec![-1.0, 0.0, 0.0, 0.5, 1.0, 0.0]);
        let rows = rows(&[(-2.0, 0.0), (0.1, 1.0), (2.0, 2.0), (3.0, 0.0)]);
        let Quality::Classification { accuracy, auc } = Metrics::of(&loss, &model, &rows).unwrap().kind
        else {
            panic!("classes are classes");
        };
        assert_eq!(accuracy, 0.75);
        // Class 0: scores 2, -0.1, -2, -3 of which the first and the last are its own; 1: all tied; 2: in order 2/3.
        let expected = (0.5 + 0.5 + 2.0 / 3.0) / 3.0;
        assert!((auc.unwrap() - expected).abs() < 1e-15);
    }

    #[test]
    fn numbers() {
        let model = Model::zero(1, 1, true).with_weights(vec![2.0, 1.0]);
        let rows = rows(&[(0.0, 1.0), (1.0, 4.0), (2.0, 4.0)]);
        let found = Metrics::of(&Squared, &model, &rows).unwrap();
        assert_eq!(found.loss, 1.0 / 3.0);
        let kind = Quality::Regression {
            mean_squared_error: 2.0 / 3.0,
            mean_absolute_error: 2.0 / 3.0,
            r2: Some(1.0 - 2.0 / 6.0),
        };
        assert_eq!(found.kind, kind);
    }
}
