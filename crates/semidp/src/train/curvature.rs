//! Curvature of the field that training follows, from public rows.

use super::{Model, PublicRows};
use crate::loss::Loss;

/// Random directions that the mean is taken over.
const DIRECTIONS: u64 = 8;
/// Steps of the power iteration.
const POWERS: usize = 12;
/// Rows that are looked at.
const MOST_ROWS: usize = 2000;

/// How fast the mean of clip_C(∇ℓ) over public rows changes with the model. Where clipping binds it is much slower
/// than the gradient of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curvature {
    /// Along a random direction: trace over dimension.
    pub mean: f64,
    /// Along the direction in which it is fastest, about.
    pub largest: f64,
}

/// The curvature at a model, by central differences that move scores by about a tenth of a typical residual.
pub fn curvature(loss: &dyn Loss, model: &Model, rows: &PublicRows, clip_norm: f64) -> Curvature {
    curvature_along(loss, model, rows, clip_norm, &|_| ())
}

/// The same of the field after `precondition`, which turns a gradient into P times it for a positive definite P.
pub(super) fn curvature_along(
    loss: &dyn Loss,
    model: &Model,
    rows: &PublicRows,
    clip_norm: f64,
    precondition: &dyn Fn(&mut [f64]),
) -> Curvature {
    if rows.is_empty() {
        return Curvature { mean: 0.0, largest: 0.0 };
    }
    let field = Field { loss, model, rows, clip_norm, step: rows.len().div_ceil(MOST_ROWS) };
    let size = model.weights.len();
    let mut state = 1u64;
    let mut signs = || -> Vec<f64> {
        let mut sign = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if state >> 63 == 0 { 1.0 } else { -1.0 }
        };
        (0..size).map(|_| sign()).collect()
    };
    let shift = field.shift();
    let change_along = |direction: &[f64]| {
        let mut change = field.change(direction, shift);
        precondition(&mut change);
        change
    };
    let mut total = 0.0;
    let mut direction = vec![0.0; size];
    for _ in 0..DIRECTIONS {
        let along = signs();
        let change = change_along(&along);
        total += dot(&change, &along) / size as f64;
        direction = change;
    }
    let mut largest = 0.0;
    for _ in 0..POWERS {
        let length = dot(&direction, &direction).sqrt();
        if length <= 0.0 || !length.is_finite() {
            break;
        }
        // As long as a vector of signs, so that the same shift suits it.
        direction.iter_mut().for_each(|x| *x *= (size as f64).sqrt() / length);
        let change = change_along(&direction);
        largest = dot(&change, &direction) / size as f64;
        direction = change;
    }
    let mean = total / DIRECTIONS as f64;
    Curvature { mean, largest: f64::max(largest, mean) }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The mean clipped gradient as a function of the model.
struct Field<'a> {
    loss: &'a dyn Loss,
    model: &'a Model,
    rows: &'a PublicRows,
    clip_norm: f64,
    /// Every so many rows one is looked at.
    step: usize,
}

impl Field<'_> {
    fn chosen(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).step_by(self.step)
    }

    /// How far weights move.
    fn shift(&self) -> f64 {
        let (mut scores, mut residuals) = (vec![0.0; self.model.outputs], vec![0.0; self.model.outputs]);
        let (mut residual_size, mut row_size) = (0.0, 0.0);
        for row in self.chosen() {
            self.model.scores_into(self.rows, row, &mut scores);
            self.loss.residuals(&scores, self.rows.label(row), &mut residuals);
            residual_size += dot(&residuals, &residuals);
            row_size += self.rows.squared_norm(row) + 1.0;
        }
        0.1 * (residual_size.max(1e-12) / row_size).sqrt()
    }

    /// The derivative along a direction.
    fn change(&self, direction: &[f64], shift: f64) -> Vec<f64> {
        let at = |sign: f64| {
            let weights = self.model.weights.iter().zip(direction).map(|(w, x)| w + sign * shift * x);
            self.value(&self.model.with_weights(weights.collect()))
        };
        let (above, below) = (at(1.0), at(-1.0));
        above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * shift)).collect()
    }

    fn value(&self, model: &Model) -> Vec<f64> {
        let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
        let mut mean = vec![0.0; model.weights.len()];
        let count = self.chosen().count() as f64;
        for row in self.chosen() {
            model.scores_into(self.rows, row, &mut scores);
            self.loss.residuals(&scores, self.rows.label(row), &mut residuals);
            let norm = model.gradient_norm(self.rows, row, &residuals);
            let factor = if norm <= self.clip_norm { 1.0 } else { self.clip_norm / norm };
            model.add_gradient(self.rows, row, &residuals, factor / count, &mut mean);
        }
        mean
    }
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
        let along = |axis: usize| (axis..count).step_by(width).map(|row| rows.squared_norm(row)).sum::<f64>();
        let steepest = (0..width).map(along).fold(0.0, f64::max) / count as f64;
        let found = curvature(&Squared, &model, &rows, 1e9);
        assert!((found.mean / exact - 1.0).abs() < 1e-9, "{found:?} {exact}");
        // A power iteration comes from below; eigenvalues here are within a fifth of each other.
        assert!(found.largest <= steepest * (1.0 + 1e-9) && found.largest > found.mean * 1.02, "{found:?}");
        assert!(curvature(&Squared, &model, &rows, 0.5).mean < 0.1 * found.mean);
    }
}
