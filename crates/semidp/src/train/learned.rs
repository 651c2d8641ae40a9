//! What public rows teach about a run: clip norm and step size.

use super::curvature::curvature_along;
use super::{Model, PublicRows};
use crate::loss::{Labels, Loss};
use crate::{Error, Result};

/// The run is this many times as long as an iterate remembers.
const MEMORIES: f64 = 10.0;

/// One gradient in ten is clipped in classification, where they have a bound of their own; half of them in
/// regression, where they have none.
pub(super) fn clip_norm(loss: &dyn Loss, public: &PublicRows, model: &Model) -> Result<f64> {
    let quantile = match loss.labels() {
        Labels::Numbers => 0.5,
        Labels::Classes => 0.9,
    };
    let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
    let mut norms: Vec<f64> = (0..public.len())
        .map(|row| {
            model.scores_into(public, row, &mut scores);
            loss.residuals(&scores, public.label(row), &mut residuals);
            model.gradient_norm(public, row, &residuals)
        })
        .collect();
    norms.sort_by(f64::total_cmp);
    let norm = norms[((norms.len() - 1) as f64 * quantile).round() as usize];
    // With labels of size 1 a gradient is about as long as its row.
    if norm <= 1e-7 * mean_square(public).sqrt() {
        let requirement = "given where the public rows are fitted exactly: their gradients vanish";
        return Err(Error::invalid("clip-norm", "nothing", requirement));
    }
    Ok(norm.min(1e9))
}

/// What a step size depends on besides the rows.
pub(super) struct Stepping<'a> {
    pub(super) clip_norm: f64,
    /// T.
    pub(super) steps: f64,
    /// λ, of the loss and of its public part.
    pub(super) l2: f64,
    pub(super) ridge: f64,
    /// Whether the run starts at zero.
    pub(super) is_cold: bool,
    /// What steps go along, if not the gradient itself.
    pub(super) geometry: Option<Geometry<'a>>,
}

/// Steps along P times the gradient, for a positive definite P of eigenvalues up to 1.
#[derive(Clone, Copy)]
pub(super) struct Geometry<'a> {
    /// Turns a gradient into P times it.
    pub(super) precondition: &'a dyn Fn(&mut [f64]),
    /// The trace of P times the Hessian.
    pub(super) trace: f64,
}

/// An iterate forgets within a tenth of the run; from a cold start it also arrives within a third of it; and no step
/// overshoots.
pub(super) fn step_size(loss: &dyn Loss, public: &PublicRows, model: &Model, stepping: &Stepping<'_>) -> f64 {
    let &Stepping { clip_norm, steps, l2, ridge, is_cold, geometry } = stepping;
    let as_it_is = |_: &mut [f64]| ();
    let precondition = geometry.map_or(&as_it_is as &dyn Fn(&mut [f64]), |geometry| geometry.precondition);
    let found = curvature_along(loss, model, public, clip_norm, precondition);
    let least = 1e-3 * geometry.map_or_else(|| mean_square(public), |geometry| geometry.trace);
    let by_memory = 2.0 * MEMORIES / ((found.mean.max(1e-9 * least) + l2) * steps);
    let by_distance = if is_cold {
        let mut speed = mean_clipped_gradient(loss, model, public, clip_norm);
        precondition(&mut speed);
        3.0 * norm(&model.weights) / (steps * norm(&speed).max(1e-12))
    } else {
        0.0
    };
    by_memory.max(by_distance).min(1.0 / (found.largest.max(least) + l2.max(ridge)))
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The mean clipped public gradient at zero, where a cold start begins.
fn mean_clipped_gradient(loss: &dyn Loss, shape: &Model, rows: &PublicRows, clip_norm: f64) -> Vec<f64> {
    let zero = Model::zero(shape.features, shape.outputs, shape.has_intercept);
    let (mut scores, mut residuals) = (vec![0.0; zero.outputs], vec![0.0; zero.outputs]);
    let mut mean = vec![0.0; zero.weights.len()];
    for row in 0..rows.len() {
        zero.scores_into(rows, row, &mut scores);
        loss.residuals(&scores, rows.label(row), &mut residuals);
        let length = zero.gradient_norm(rows, row, &residuals);
        let factor = if length <= clip_norm { 1.0 } else { clip_norm / length };
        zero.add_gradient(rows, row, &residuals, factor / rows.len() as f64, &mut mean);
    }
    mean
}

/// The mean squared length of (x, 1).
fn mean_square(rows: &PublicRows) -> f64 {
    (0..rows.len()).map(|row| rows.squared_norm(row) + 1.0).sum::<f64>() / rows.len().max(1) as f64
}
