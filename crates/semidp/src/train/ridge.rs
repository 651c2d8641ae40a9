//! How strongly a model of public rows alone is held back, from the public rows themselves.

use super::{Model, PublicRows, minimise};
use crate::loss::Loss;

/// Ridges that are tried.
const RIDGES: [f64; 8] = [1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0];
const FOLDS: usize = 5;
/// Numbers in the rows up to which every fold is left out once; beyond, only one.
const FEW_NUMBERS: usize = 1 << 20;

/// The ridge whose model has the least loss on public rows that it was not fitted to. None if there are too few rows.
pub fn best_ridge(loss: &dyn Loss, public: &PublicRows, shape: &Model) -> Option<f64> {
    if public.len() < 2 * FOLDS {
        return None;
    }
    let is_small = public.len().saturating_mul(public.features()) <= FEW_NUMBERS;
    let folds: Vec<(PublicRows, PublicRows)> = (0..if is_small { FOLDS } else { 1 })
        .map(|fold| {
            let (kept, left): (Vec<usize>, Vec<usize>) =
                (0..public.len()).partition(|row| row % FOLDS != fold);
            (public.some(&kept), public.some(&left))
        })
        .collect();
    let error = |ridge: f64| -> f64 {
        let losses = folds
            .iter()
            .map(|(kept, left)| shape.with_weights(minimise(loss, kept, shape, ridge)).mean_loss(loss, left));
        losses.sum()
    };
    let errors = RIDGES.map(error);
    let best = (0..RIDGES.len()).min_by(|a, b| errors[*a].total_cmp(&errors[*b]));
    best.map(|best| RIDGES[best])
}
