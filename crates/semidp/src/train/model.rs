//! Linear models.

use super::PublicRows;
use crate::loss::Loss;

/// Scores that are kept in memory at a time.
const MOST_SCORES: usize = 1 << 20;

/// One score an output: ⟨w_c, x⟩, plus an intercept if there is one. Weights of an output follow each other, its
/// intercept last.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Columns.
    pub features: usize,
    /// Scores of a row.
    pub outputs: usize,
    /// Whether each output has an intercept.
    pub has_intercept: bool,
    /// All weights.
    pub weights: Vec<f64>,
}

impl Model {
    /// All weights zero.
    pub fn zero(features: usize, outputs: usize, has_intercept: bool) -> Self {
        let weights = vec![0.0; outputs * (features + usize::from(has_intercept))];
        Self { features, outputs, has_intercept, weights }
    }

    /// The same with other weights.
    pub fn with_weights(&self, weights: Vec<f64>) -> Self {
        Self { weights, ..self.clone() }
    }

    /// Weights of one output.
    pub fn stride(&self) -> usize {
        self.features + usize::from(self.has_intercept)
    }

    /// The scores of a public row, as many as there are outputs and places for them.
    pub fn scores_into(&self, rows: &PublicRows, row: usize, scores: &mut [f64]) {
        let outputs = scores.len().min(self.weights.len() / self.stride().max(1));
        rows.dots_into(row, &self.weights, self.stride(), &mut scores[..outputs]);
        self.add_intercepts(scores);
    }

    fn add_intercepts(&self, scores: &mut [f64]) {
        for (score, weights) in scores.iter_mut().zip(self.weights.chunks_exact(self.stride().max(1))) {
            *score += if self.has_intercept { weights[self.features] } else { 0.0 };
        }
    }

    /// Adds residual_c·(x, 1)·factor to the gradient of each output.
    pub(super) fn add_gradient(
        &self,
        rows: &PublicRows,
        row: usize,
        residuals: &[f64],
        factor: f64,
        gradient: &mut [f64],
    ) {
        for (residual, part) in residuals.iter().zip(gradient.chunks_exact_mut(self.stride())) {
            rows.add_scaled(row, residual * factor, &mut part[..self.features]);
            if self.has_intercept {
                part[self.features] += residual * factor;
            }
        }
    }

    /// The length of a row's gradient, given its residuals.
    pub(super) fn gradient_norm(&self, rows: &PublicRows, row: usize, residuals: &[f64]) -> f64 {
        let own = if self.has_intercept { 1.0 } else { 0.0 };
        (residuals.iter().map(|r| r * r).sum::<f64>() * (rows.squared_norm(row) + own)).sqrt()
    }

    /// The mean loss on public rows.
    pub fn mean_loss(&self, loss: &dyn Loss, rows: &PublicRows) -> f64 {
        let mut scores = vec![0.0; self.outputs];
        let total: f64 = (0..rows.len())
            .map(|row| {
                self.scores_into(rows, row, &mut scores);
                loss.value(&scores, rows.label(row))
            })
            .sum();
        total / rows.len().max(1) as f64
    }

    /// The gradient of the mean loss on public rows.
    pub fn mean_gradient(&self, loss: &dyn Loss, rows: &PublicRows) -> Vec<f64> {
        self.mean_loss_and_gradient(loss, rows).1
    }

    /// Both in one go.
    pub fn mean_loss_and_gradient(&self, loss: &dyn Loss, rows: &PublicRows) -> (f64, Vec<f64>) {
        let (outputs, stride, count) = (self.outputs, self.stride(), rows.len().max(1) as f64);
        let mut gradient = vec![0.0; self.weights.len()];
        let mut residuals = vec![0.0; outputs];
        let mut total = 0.0;
        let block = (MOST_SCORES / outputs.max(1)).max(1);
        for first in (0..rows.len()).step_by(block) {
            let some = first..rows.len().min(first + block);
            // First scores, then what each row is added with, in the same place.
            let mut all = rows.all_dots(some.clone(), &self.weights, stride, outputs);
            for (row, scores) in some.clone().zip(all.chunks_exact_mut(outputs.max(1))) {
                self.add_intercepts(scores);
                total += loss.value(scores, rows.label(row));
                loss.residuals(scores, rows.label(row), &mut residuals);
                for (factor, residual) in scores.iter_mut().zip(&residuals) {
                    *factor = residual * (1.0 / count);
                }
                if self.has_intercept {
                    let intercepts = gradient.iter_mut().skip(self.features).step_by(stride);
                    intercepts.zip(&*scores).for_each(|(sum, factor)| *sum += factor);
                }
            }
            rows.add_all_scaled(some, &all, outputs, stride, &mut gradient);
        }
        (total / count, gradient)
    }
}
