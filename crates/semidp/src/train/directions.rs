//! The weight α of the private gradient, direction by direction.
//!
//! Noise is as strong in every direction, but public gradients are not as uncertain: along the indicator of a rare
//! category they hardly vary. Proposition 1 of the paper weighs by total variances. The same argument holds for the
//! component along each eigenvector u_j of the covariance of public gradients, whose eigenvalue v_j is the variance
//! there, and the best combination then has a weight α_j of its own:
//!
//! $$ g = g_\text{pub} + A\,(g_\text{priv} - g_\text{pub}), \qquad A = \sum_j \alpha_j u_j u_j^\top. $$
//!
//! Where public gradients do not vary at all, α_j = 0: nothing is left to learn there that noise would not spoil.

use super::{Alpha, Model, PublicRows, Variances};
use crate::Result;
use crate::loss::Loss;

/// Coordinates of one output up to which directions are told apart; beyond, their number squared costs too much.
pub const MOST_COORDINATES: usize = 400;
/// Rows that are looked at.
const MOST_ROWS: usize = 20_000;
/// Sweeps of the eigenvalue iteration; a handful is enough.
const MOST_SWEEPS: usize = 40;

/// Whether so many public rows can tell directions apart. Few rows do not vary in most directions, which says nothing
/// about the directions: total variances are the better guide then.
pub(super) fn can_tell_directions(rows: usize, coordinates: usize) -> bool {
    coordinates <= MOST_COORDINATES && rows > 2 * coordinates
}

/// A, for the coordinates of one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Directions {
    size: usize,
    matrix: Vec<f64>,
    mean: f64,
}

impl Directions {
    /// Learns covariance and weights from public rows at a model. `variances` holds the counts, and the variance of
    /// the noise in ONE coordinate; its `row` is not looked at.
    pub fn learn(
        loss: &dyn Loss,
        model: &Model,
        rows: &PublicRows,
        clip_norm: f64,
        variances: &Variances,
    ) -> Result<Self> {
        let size = model.stride();
        let covariance = covariance(loss, model, rows, clip_norm);
        let mut matrix = vec![0.0; size * size];
        let (mut weighted, mut total) = (0.0, 0.0);
        for (variance, direction) in eigenvectors(covariance, size) {
            let alpha = Alpha::Horizon.weight(&Variances { row: variance, ..*variances })?;
            weighted += alpha * variance;
            total += variance;
            for (row, u) in matrix.chunks_exact_mut(size).zip(&direction) {
                row.iter_mut().zip(&direction).for_each(|(a, v)| *a += alpha * u * v);
            }
        }
        Ok(Self { size, matrix, mean: if total > 0.0 { weighted / total } else { 0.0 } })
    }

    /// The weights' mean, by variance.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// private ← public + A(private − public), output by output.
    pub fn mix(&self, private: &mut [f64], public: &[f64]) {
        let outputs = private.chunks_exact_mut(self.size).zip(public.chunks_exact(self.size));
        for (private, public) in outputs {
            let gap: Vec<f64> = private.iter().zip(public).map(|(x, y)| x - y).collect();
            for ((out, y), row) in private.iter_mut().zip(public).zip(self.matrix.chunks_exact(self.size)) {
                *out = y + row.iter().zip(&gap).map(|(a, x)| a * x).sum::<f64>();
            }
        }
    }
}

/// The covariance of the clipped gradients of public rows in the coordinates of one output, averaged over outputs.
fn covariance(loss: &dyn Loss, model: &Model, rows: &PublicRows, clip_norm: f64) -> Vec<f64> {
    let size = model.stride();
    let step = rows.len().div_ceil(MOST_ROWS).max(1);
    let count = rows.len().div_ceil(step) as f64;
    let outputs = model.outputs as f64;
    let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
    let mut sum = vec![0.0; size * size];
    let mut mean = vec![0.0; model.weights.len()];
    for row in (0..rows.len()).step_by(step) {
        model.scores_into(rows, row, &mut scores);
        loss.residuals(&scores, rows.label(row), &mut residuals);
        let norm = model.gradient_norm(rows, row, &residuals);
        let factor = if norm <= clip_norm { 1.0 } else { clip_norm / norm };
        model.add_gradient(rows, row, &residuals, factor / count, &mut mean);
        let square: f64 = residuals.iter().map(|r| (factor * r).powi(2)).sum();
        // Of (x, 1)(x, 1)ᵀ, one row of the matrix for each entry of x.
        let scale = square / (count * outputs);
        for (j, x) in rows.entries(row) {
            let line = &mut sum[j * size..][..size];
            rows.add_scaled(row, scale * x, &mut line[..model.features]);
            if model.has_intercept {
                line[model.features] += scale * x;
            }
        }
        if model.has_intercept {
            let line = &mut sum[model.features * size..][..size];
            rows.add_scaled(row, scale, &mut line[..model.features]);
            line[model.features] += scale;
        }
    }
    for mean in mean.chunks_exact(size) {
        for (line, x) in sum.chunks_exact_mut(size).zip(mean) {
            line.iter_mut().zip(mean).for_each(|(s, y)| *s -= x * y / outputs);
        }
    }
    sum
}

/// The eigenvalues of a positive semi-definite matrix that are not nought, with their eigenvectors.
///
/// Pairs of rows are rotated until all are orthogonal. Rotations from the left keep MᵀM = M², so that in the end
/// row j is λ_j u_j.
fn eigenvectors(matrix: Vec<f64>, size: usize) -> Vec<(f64, Vec<f64>)> {
    let mut rows: Vec<Vec<f64>> = matrix.chunks_exact(size).map(<[f64]>::to_vec).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let largest = rows.iter().map(|row| dot(row, row)).fold(0.0, f64::max);
    // Squared lengths below this are rounding.
    let nought = largest * 1e-26;
    for _ in 0..MOST_SWEEPS {
        let mut turned = false;
        for i in 0..size {
            for j in i + 1..size {
                let (left, right) = rows.split_at_mut(j);
                let (a, b) = (&mut left[i], &mut right[0]);
                let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
                if ab.abs() <= 1e-12 * (aa * bb).sqrt() || aa.max(bb) <= nought || aa.min(bb) == 0.0 {
                    continue;
                }
                turned = true;
                // The smaller of the two angles at which the rows become orthogonal.
                let cotangent = (bb - aa) / (2.0 * ab);
                let tangent = cotangent.signum() / (cotangent.abs() + (1.0 + cotangent * cotangent).sqrt());
                let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
                let sine = cosine * tangent;
                for (x, y) in a.iter_mut().zip(b.iter_mut()) {
                    (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
                }
            }
        }
        if !turned {
            break;
        }
    }
    let found = rows.into_iter().map(|mut row| {
        let value = dot(&row, &row).sqrt();
        row.iter_mut().for_each(|x| *x /= value);
        (value, row)
    });
    found.filter(|(value, _)| value * value > nought).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Logistic, Squared};
    use crate::train::testing::{numbers, public_rows};

    /// Σ λ_j u_j u_jᵀ is the matrix again, and the vectors are orthonormal; also if the matrix is singular.
    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        for (size, rank) in [(1, 1), (7, 7), (30, 30), (30, 12)] {
            let factors = numbers(size * rank, 3);
            let mut matrix = vec![0.0; size * size];
            for (place, entry) in matrix.iter_mut().enumerate() {
                let (i, j) = (place / size, place % size);
                *entry = (0..rank).map(|k| factors[i * rank + k] * factors[j * rank + k]).sum();
            }
            let found = eigenvectors(matrix.clone(), size);
            assert_eq!(found.len(), rank);
            for (place, entry) in matrix.iter().enumerate() {
                let (i, j) = (place / size, place % size);
                let rebuilt: f64 = found.iter().map(|(value, u)| value * u[i] * u[j]).sum();
                assert!((rebuilt - entry).abs() < 1e-10, "{size} {rank}: {rebuilt} {entry}");
            }
            for (a, (_, u)) in found.iter().enumerate() {
                for (b, (_, v)) in found.iter().enumerate() {
                    let inner: f64 = u.iter().zip(v).map(|(x, y)| x * y).sum();
                    assert!((inner - f64::from(u8::from(a == b))).abs() < 1e-9, "{size} {rank}: {inner}");
                }
            }
        }
        assert!(eigenvectors(vec![0.0; 9], 3).is_empty());
    }

    /// Against the covariance of gradients written out row by row, with clipping and an intercept.
    #[test]
    fn covariances_are_those_of_the_gradients() {
        let (features, count) = (4, 50);
        let mut values = numbers(count * (features + 1), 9);
        values
            .chunks_exact_mut(features + 1)
            .for_each(|row| row[features] = f64::from(u8::from(row[0] > 0.1)));
        let rows = public_rows(values, features);
        let model = Model::zero(features, 1, true).with_weights(numbers(features + 1, 4));
        let found = covariance(&Logistic, &model, &rows, 0.6);
        let gradients: Vec<Vec<f64>> = (0..count)
            .map(|row| {
                let one = rows.some(&[row]);
                let gradient = model.mean_gradient(&Logistic, &one);
                let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
                gradient.iter().map(|g| g * (0.6 / norm).min(1.0)).collect()
            })
            .collect();
        let mean = |of: &dyn Fn(&[f64]) -> f64| gradients.iter().map(|g| of(g)).sum::<f64>() / count as f64;
        for i in 0..=features {
            for j in 0..=features {
                let expected = mean(&|g| g[i] * g[j]) - mean(&|g| g[i]) * mean(&|g| g[j]);
                assert!((found[i * (features + 1) + j] - expected).abs() < 1e-12);
            }
        }
    }

    /// Columns along the axes with very different spreads: each coordinate has the weight of its own variance.
    #[test]
    fn each_direction_has_its_own_weight() {
        let mut values = Vec::new();
        for row in 0..40 {
            let sign = if row % 2 == 0 { 1.0 } else { -1.0 };
            let x = [2.0, 0.25, 0.0];
            // One column at a time, so that gradients along different axes do not correlate.
            let at = row / 2 % 3;
            values.extend((0..3).map(|j| if j == at { x[j] } else { 0.0 }));
            values.push(sign);
        }
        let rows = public_rows(values, 3);
        let model = Model::zero(3, 1, false);
        let variances = Variances {
            row: f64::NAN,
            batch: 50.0,
            public_batch: 40.0,
            private_rows: 1000.0,
            public_rows: 40.0,
            noise: 0.01,
            averaged_steps: 100.0,
        };
        let found = Directions::learn(&Squared, &model, &rows, 1e9, &variances).unwrap();
        let mut mixed = vec![1.0, 1.0, 1.0];
        found.mix(&mut mixed, &[0.0, 0.0, 0.0]);
        for (j, x) in [2.0f64, 0.25].into_iter().enumerate() {
            let share = (0..40).filter(|row| row / 2 % 3 == j).count() as f64 / 40.0;
            let row = share * x * x;
            let expected = Alpha::Horizon.weight(&Variances { row, ..variances }).unwrap();
            assert!((mixed[j] - expected).abs() < 1e-9, "{j}: {} {expected}", mixed[j]);
        }
        assert!(mixed[2] == 0.0 && mixed[0] > mixed[1] && found.mean() > mixed[1]);
        // Equal gradients stay as they are.
        let mut same = vec![0.5, -1.0, 2.0];
        found.mix(&mut same, &[0.5, -1.0, 2.0]);
        assert_eq!(same, [0.5, -1.0, 2.0]);
    }
}
