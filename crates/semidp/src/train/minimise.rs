//! Throw-away: the best model for public rows alone.

use super::conjugate::least_squares;
use super::{Model, PublicRows, lbfgs};
use crate::loss::Loss;

/// Steps of the averaged subgradient method, for losses with kinks.
const SUBGRADIENT_STEPS: usize = 2000;

/// The minimiser of the mean public loss plus (ridge/2)‖w‖²: exactly for squared loss (of minimum norm if there are
/// fewer rows than columns), by L-BFGS for smooth losses, by averaged subgradients for others. It reads no private
/// row.
pub fn minimise(loss: &dyn Loss, rows: &PublicRows, shape: &Model, ridge: f64) -> Vec<f64> {
    minimise_to(loss, rows, shape, ridge, 1e-8)
}

/// The same, to a gradient so much shorter than at the start, which is the given model.
pub(super) fn minimise_to(
    loss: &dyn Loss,
    rows: &PublicRows,
    shape: &Model,
    ridge: f64,
    accuracy: f64,
) -> Vec<f64> {
    if loss.name() == "squared" {
        return least_squares(rows, shape, ridge);
    }
    let with_ridge = |w: &[f64]| {
        let model = shape.with_weights(w.to_vec());
        let square: f64 = w.iter().map(|x| x * x).sum();
        let (value, mut gradient) = model.mean_loss_and_gradient(loss, rows);
        gradient.iter_mut().zip(w).for_each(|(g, w)| *g += ridge * w);
        (value + 0.5 * ridge * square, gradient)
    };
    if loss.smoothness().is_some() {
        return lbfgs::minimise(shape.weights.clone(), accuracy, with_ridge);
    }
    let typical =
        (0..rows.len()).map(|row| rows.squared_norm(row) + 1.0).sum::<f64>() / rows.len().max(1) as f64;
    let (mut w, mut average) = (shape.weights.clone(), vec![0.0; shape.weights.len()]);
    for step in 0..SUBGRADIENT_STEPS {
        let (_, gradient) = with_ridge(&w);
        let size = 1.0 / (typical * (1.0 + step as f64)).sqrt();
        w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= size * g);
        if step >= SUBGRADIENT_STEPS / 2 {
            let share = 2.0 / SUBGRADIENT_STEPS as f64;
            average.iter_mut().zip(&w).for_each(|(a, w)| *a += share * w);
        }
    }
    average
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::loss_named;
    use semidp_core::{DenseTable, Public};

    /// Rows with labels from a known model, and a little more.
    fn rows(count: usize, features: usize, label: impl Fn(f64) -> f64) -> PublicRows {
        let mut state = 5u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut values = Vec::new();
        for _ in 0..count {
            let x: Vec<f64> = (0..features).map(|_| number()).collect();
            let score: f64 = x.iter().enumerate().map(|(j, x)| (j as f64 - 1.0) * x).sum();
            values.extend_from_slice(&x);
            values.push(label(score + 0.1 * number()));
        }
        PublicRows::load(&Public(DenseTable::new(values, features + 1).unwrap())).unwrap()
    }

    /// At the minimum the gradient vanishes; with a kink nearby it is at least no longer than the best slope.
    #[test]
    fn gradients_vanish_at_the_minimum() {
        for name in ["squared", "logistic", "softmax", "huber"] {
            let loss = loss_named(name, 2).unwrap();
            let rows = rows(300, 5, |score| match name {
                "squared" | "huber" => score,
                _ => f64::from(u8::from(score > 0.0)),
            });
            let shape = Model::zero(5, loss.outputs(), true);
            let w = minimise(&*loss, &rows, &shape, 0.01);
            let mut gradient = shape.with_weights(w.clone()).mean_gradient(&*loss, &rows);
            gradient.iter_mut().zip(&w).for_each(|(g, w)| *g += 0.01 * w);
            let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            assert!(length < 1e-7, "{name}: {length}");
        }
    }

    #[test]
    fn kinks_are_approached() {
        for (name, level) in [("quantile", 0.5), ("hinge", 0.5)] {
            let loss = loss_named(name, 2).unwrap();
            let rows =
                rows(400, 4, |score| if name == "hinge" { f64::from(u8::from(score > 0.0)) } else { score });
            let shape = Model::zero(4, 1, true);
            let w = minimise(&*loss, &rows, &shape, 0.0);
            let found = shape.with_weights(w.clone()).mean_loss(&*loss, &rows);
            let zero = shape.mean_loss(&*loss, &rows);
            assert!(found < level * zero, "{name}: {found} {zero}");
            // No nearby model is better by more than the method's accuracy.
            for j in 0..w.len() {
                for shift in [-0.05, 0.05] {
                    let mut moved = w.clone();
                    moved[j] += shift;
                    assert!(shape.with_weights(moved).mean_loss(&*loss, &rows) > found - 2e-3, "{name} {j}");
                }
            }
        }
    }

    /// Fewer rows than columns: the solution that fits exactly and is shortest lies in the span of the rows.
    #[test]
    fn few_rows_give_the_minimum_norm() {
        let rows = rows(3, 8, |score| score);
        let shape = Model::zero(8, 1, false);
        let w = least_squares(&rows, &shape, 0.0);
        for row in 0..3 {
            assert!((rows.dot(row, &w) - rows.label(row)).abs() < 1e-6);
        }
        // Orthogonal to whatever is orthogonal to all rows: project w onto the rows and nothing is lost.
        let span = PublicRows::load(&Public(
            DenseTable::new(
                (0..8)
                    .flat_map(|j| {
                        let mut unit = vec![0.0; 8];
                        unit[j] = 1.0;
                        let mut line: Vec<f64> = (0..3).map(|row| rows.dot(row, &unit)).collect();
                        line.push(w[j]);
                        line
                    })
                    .collect(),
                4,
            )
            .unwrap(),
        ))
        .unwrap();
        let coefficients = least_squares(&span, &Model::zero(3, 1, false), 0.0);
        for (j, w) in w.iter().enumerate() {
            assert!((span.dot(j, &coefficients) - w).abs() < 1e-6);
        }
    }
}
