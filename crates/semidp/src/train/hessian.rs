//! The Hessian of the mean public loss, as a dense matrix.

use super::tile::add_square;
use super::{Model, PublicRows};
use crate::loss::Loss;

/// Columns of the factor that are added together.
const DEPTH: usize = 64;
/// Scores move this far for the curvature of a loss.
const SHIFT: f64 = 1e-4;

/// The lower triangle of (1/n)Σ_i ℓ''_i ⊗ (x_i, 1)(x_i, 1)ᵀ + ridge·I at a model, over all weights.
///
/// ℓ''_i is the curvature in the scores of row i: exactly 1 for squared loss, by central differences for others. It is
/// U·Uᵀ for as many columns as there are scores, so that the Hessian is a square of what is collected here.
pub(super) fn hessian(loss: &dyn Loss, model: &Model, rows: &PublicRows, ridge: f64) -> Vec<f64> {
    let size = model.weights.len();
    let (outputs, stride) = (model.outputs, model.stride());
    let mut matrix = vec![0.0; size * size];
    let mut panel = vec![0.0; size * DEPTH];
    let mut used = 0;
    let mut flush = |panel: &mut Vec<f64>| {
        add_square(&mut matrix, size, 0, panel, DEPTH, 1.0);
        panel.fill(0.0);
    };
    let scale = 1.0 / (rows.len().max(1) as f64).sqrt();
    let mut scores = vec![0.0; outputs];
    for row in 0..rows.len() {
        model.scores_into(rows, row, &mut scores);
        let factor = curvature_factor(loss, &scores, rows.label(row));
        for column in 0..outputs {
            if used == DEPTH {
                flush(&mut panel);
                used = 0;
            }
            for output in column..outputs {
                let weight = scale * factor[output * outputs + column];
                if weight == 0.0 {
                    continue;
                }
                let base = output * stride;
                for (j, x) in rows.entries(row) {
                    panel[(base + j) * DEPTH + used] = weight * x;
                }
                if model.has_intercept {
                    panel[(base + model.features) * DEPTH + used] = weight;
                }
            }
            used += 1;
        }
    }
    flush(&mut panel);
    (0..size).for_each(|i| matrix[i * size + i] += ridge);
    matrix
}

/// The lower triangular U with U·Uᵀ = ℓ''; directions without curvature have columns of noughts.
pub(super) fn curvature_factor(loss: &dyn Loss, scores: &[f64], label: f64) -> Vec<f64> {
    let count = scores.len();
    let mut factor = vec![0.0; count * count];
    if loss.name() == "squared" {
        return vec![1.0];
    }
    let (mut above, mut below) = (vec![0.0; count], vec![0.0; count]);
    let mut moved = scores.to_vec();
    for column in 0..count {
        moved[column] = scores[column] + SHIFT;
        loss.residuals(&moved, label, &mut above);
        moved[column] = scores[column] - SHIFT;
        loss.residuals(&moved, label, &mut below);
        moved[column] = scores[column];
        for output in 0..count {
            factor[output * count + column] = (above[output] - below[output]) / (2.0 * SHIFT);
        }
    }
    // What is left on the diagonal after differences is known to about this much.
    let nought = 1e-9 * loss.smoothness().unwrap_or(1.0);
    for column in 0..count {
        let pivot = factor[column * count + column];
        let root = if pivot > nought { pivot.sqrt() } else { 0.0 };
        for output in column..count {
            let entry = &mut factor[output * count + column];
            *entry = if root > 0.0 { *entry / root } else { 0.0 };
        }
        for output in column + 1..count {
            for other in column + 1..=output {
                factor[output * count + other] -=
                    factor[output * count + column] * factor[other * count + column];
            }
        }
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::loss_named;
    use semidp_core::{DenseTable, Public};

    /// Every column of the Hessian is the derivative of the mean gradient.
    #[test]
    fn hessians_are_derivatives_of_gradients() {
        let (features, count) = (3, 90);
        let mut state = 3u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut values = Vec::new();
        for row in 0..count {
            values.extend((0..features).map(|_| number()));
            values.push((row % 3) as f64);
        }
        let rows = PublicRows::load(&Public(DenseTable::new(values, features + 1).unwrap())).unwrap();
        for name in ["squared", "logistic", "softmax", "huber:9"] {
            let loss = loss_named(name, 3).unwrap();
            let shape = Model::zero(features, loss.outputs(), true);
            let weights: Vec<f64> = shape.weights.iter().map(|_| number()).collect();
            let size = weights.len();
            let found = hessian(&*loss, &shape.with_weights(weights.clone()), &rows, 0.25);
            for j in 0..size {
                let at = |shift: f64| {
                    let mut moved = weights.clone();
                    moved[j] += shift;
                    shape.with_weights(moved).mean_gradient(&*loss, &rows)
                };
                let (above, below) = (at(1e-4), at(-1e-4));
                for i in j..size {
                    let expected = (above[i] - below[i]) / 2e-4 + 0.25 * f64::from(u8::from(i == j));
                    assert!((found[i * size + j] - expected).abs() < 1e-6, "{name}: {i} {j}");
                }
            }
        }
    }
}
