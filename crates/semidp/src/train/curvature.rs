//! Curvature of the field that training follows, from public rows.

use super::{Model, PublicRows};
use crate::loss::Loss;

/// Directions that are tried.
const DIRECTIONS: u64 = 8;
/// Rows that are looked at.
const MOST_ROWS: usize = 2000;

/// The average curvature (trace over dimension) of the clipped public gradient at a model: how fast the mean of
/// clip_C(∇ℓ) changes along a random direction. Where clipping binds it is much smaller than that of the loss.
///
/// By central differences along random signs, moving scores by about a tenth of a typical residual.
pub fn curvature(loss: &dyn Loss, model: &Model, rows: &PublicRows, clip_norm: f64) -> f64 {
    let count = rows.len().min(MOST_ROWS);
    if count == 0 {
        return 0.0;
    }
    let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
    let (mut residual_size, mut row_size) = (0.0, 0.0);
    for row in 0..count {
        model.scores_into(rows, row, &mut scores);
        loss.residuals(&scores, rows.label(row), &mut residuals);
        residual_size += residuals.iter().map(|r| r * r).sum::<f64>() / count as f64;
        row_size += (rows.squared_norm(row) + 1.0) / count as f64;
    }
    let shift = 0.1 * (residual_size.max(1e-12) / row_size).sqrt();
    let mut field = |weights: Vec<f64>| {
        let model = model.with_weights(weights);
        let mut mean = vec![0.0; model.weights.len()];
        for row in 0..count {
            model.scores_into(rows, row, &mut scores);
            loss.residuals(&scores, rows.label(row), &mut residuals);
            let norm = model.gradient_norm(rows, row, &residuals);
            let factor = if norm <= clip_norm { 1.0 } else { clip_norm / norm };
            model.add_gradient(rows, row, &residuals, factor / count as f64, &mut mean);
        }
        mean
    };
    let mut state = 1u64;
    let mut total = 0.0;
    for _ in 0..DIRECTIONS {
        let signs: Vec<f64> = (0..model.weights.len())
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if state >> 63 == 0 { 1.0 } else { -1.0 }
            })
            .collect();
        let at = |sign: f64| model.weights.iter().zip(&signs).map(|(w, s)| w + sign * shift * s).collect();
        let (above, below) = (field(at(1.0)), field(at(-1.0)));
        let change: f64 = above.iter().zip(&below).zip(&signs).map(|((a, b), s)| (a - b) * s).sum();
        total += change / (2.0 * shift * signs.len() as f64);
    }
    total / DIRECTIONS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Squared;
    use semidp_core::{DenseTable, Public};

    /// Rows along the axes: the Hessian of squared loss is diagonal, so every direction of signs sees exactly its
    /// trace. Clipping lowers the curvature.
    #[test]
    fn squared_loss_has_the_curvature_of_its_rows() {
        let (width, count) = (6, 60);
        let mut values = vec![0.0; count * (width + 1)];
        for row in 0..count {
            values[row * (width + 1) + row % width] = 1.0 + row as f64 / 10.0;
            values[row * (width + 1) + width] = if row % 4 < 2 { 3.0 } else { -3.0 };
        }
        let rows = PublicRows::load(&Public(DenseTable::new(values, width + 1).unwrap())).unwrap();
        let model = Model::zero(width, 1, false);
        let exact = (0..count).map(|row| rows.squared_norm(row)).sum::<f64>() / (count * width) as f64;
        let found = curvature(&Squared, &model, &rows, 1e9);
        assert!((found / exact - 1.0).abs() < 1e-9, "{found} {exact}");
        assert!(curvature(&Squared, &model, &rows, 0.5) < 0.1 * found);
    }
}
