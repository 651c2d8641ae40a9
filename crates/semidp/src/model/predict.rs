//! A saved model at work.

use super::{SavedModel, Target};
use crate::Result;
use crate::loss::Loss;
use crate::train::metrics::{Metrics, predicted_class};
use crate::train::{Model, PublicRows};
use semidp_core::{BlockSource, Public};
use semidp_table::{Column, Encoding, LoadOptions, Schema, Table, open_public};
use std::path::Path;

/// A model ready for tables.
pub struct Predictor {
    saved: SavedModel,
    loss: Box<dyn Loss>,
    model: Model,
    loading: LoadOptions,
}

impl Predictor {
    /// Takes a model up.
    pub fn new(saved: SavedModel) -> Result<Self> {
        let (loss, model) = (saved.loss()?, saved.model());
        Ok(Self { saved, loss, model, loading: LoadOptions::default() })
    }

    /// Reads files by these options.
    pub fn with_loading(self, loading: LoadOptions) -> Self {
        Self { loading, ..self }
    }

    /// What it was made of.
    pub fn saved(&self) -> &SavedModel {
        &self.saved
    }

    /// Metrics on the rows of a file whose target is known, and how many have none. They are exact: whose rows they
    /// are is for the caller to say.
    pub fn evaluate(&self, path: &Path) -> Result<(Option<Metrics>, usize)> {
        let columns = self.saved.columns()?.with_loading(self.loading.clone());
        let (rows, unknown) = columns.public_rows(path)?;
        Ok((Metrics::of(&*self.loss, &self.model, &rows), unknown))
    }

    /// The headings of what [`Predictor::predict`] tells of a row.
    pub fn headings(&self) -> Vec<String> {
        let mut headings = vec!["prediction".to_string()];
        if self.has_probabilities() {
            headings
                .extend(self.saved.target.classes().iter().map(|class| format!("probability of {class}")));
        } else if matches!(self.saved.target, Target::Classes { .. } | Target::NumberedClasses { .. }) {
            headings.push("score".into());
        }
        headings
    }

    fn has_probabilities(&self) -> bool {
        matches!(self.loss.name(), "logistic" | "softmax")
    }

    /// Predicts for each row of a file in order, piece by piece. The target need not be among its columns.
    pub fn predict(&self, path: &Path, on_row: &mut dyn FnMut(&[String])) -> Result<u64> {
        let classes = self.saved.target.classes();
        let mut count = 0;
        self.each_row(path, &mut |scores| {
            on_row(&self.cells(scores, &classes));
            count += 1;
        })?;
        Ok(count)
    }

    /// The scores of each row, one after the other, and how many a row has: numbers in the target's own unit, one score for two
    /// classes by a loss of one output, or a score a class.
    pub fn scores(&self, path: &Path) -> Result<(Vec<f64>, usize)> {
        let is_number = matches!(self.saved.target, Target::Number { .. });
        let mut all = Vec::new();
        self.each_row(path, &mut |scores| match is_number {
            true => all.push(self.saved.target.decode(scores[0])),
            false => all.extend_from_slice(scores),
        })?;
        Ok((all, self.model.outputs))
    }

    fn each_row(&self, path: &Path, on_row: &mut dyn FnMut(&[f64])) -> Result<()> {
        let (schema, encoding) = self.without_target()?;
        let table: Public<Table> = open_public(path, &schema, &encoding, self.loading.clone())?;
        let mut scores = vec![0.0; self.model.outputs];
        for block in 0..table.blocks() {
            let rows = PublicRows::load_blocks(&table, block..block + 1)?;
            for row in 0..rows.len() {
                self.model.scores_into(&rows, row, &mut scores);
                on_row(&scores);
            }
        }
        Ok(())
    }

    fn cells(&self, scores: &[f64], classes: &[String]) -> Vec<String> {
        if classes.is_empty() {
            return vec![self.saved.target.decode(scores[0]).to_string()];
        }
        let mut cells = vec![classes[predicted_class(scores).min(classes.len() - 1)].clone()];
        if self.has_probabilities() {
            cells.extend(probabilities(scores).iter().map(f64::to_string));
        } else {
            cells.push(scores[0].to_string());
        }
        cells
    }

    /// Schema and encoding of the features alone. Rows have a last column for a label; a copy of the first feature
    /// stands there.
    fn without_target(&self) -> Result<(Schema, Encoding)> {
        let saved = &self.saved;
        let target = saved.schema.position(saved.target.column())?;
        let kept: Vec<Column> =
            saved.schema.columns().iter().filter(|c| c.name != saved.target.column()).cloned().collect();
        let schema = Schema::new(kept)?;
        let mut features = saved.features.clone();
        features.push(features[0]);
        use semidp_table::Feature::{Code, Indicator, Number};
        for feature in &mut features {
            match feature {
                Number { column, .. } | Indicator { column, .. } | Code { column } if *column > target => {
                    *column -= 1;
                }
                _ => {}
            }
        }
        let encoding = Encoding::new(&schema, features)?;
        Ok((schema, encoding))
    }
}

/// Of each class.
fn probabilities(scores: &[f64]) -> Vec<f64> {
    let scores = match scores {
        [score] => vec![0.0, *score],
        _ => scores.to_vec(),
    };
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let parts: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
    let total: f64 = parts.iter().sum();
    parts.iter().map(|part| part / total).collect()
}

#[cfg(test)]
mod tests {
    use super::probabilities;

    #[test]
    fn probabilities_sum_to_one() {
        let two = probabilities(&[2.0]);
        assert!(
            (two[1] - 1.0 / (1.0 + (-2.0f64).exp())).abs() < 1e-15 && (two[0] + two[1] - 1.0).abs() < 1e-15
        );
        let three = probabilities(&[1e300, 0.0, -1e300]);
        assert_eq!(three, [1.0, 0.0, 0.0]);
    }
}
