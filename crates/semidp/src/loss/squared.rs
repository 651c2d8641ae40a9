//! Squared loss, for regression.

use super::{Labels, Loss};
use semidp_core::ScoreLoss;

/// ½(s − y)².
#[derive(Debug, Clone, Copy)]
pub struct Squared;

impl ScoreLoss for Squared {
    fn outputs(&self) -> usize {
        1
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        residuals[0] = scores[0] - label;
    }
}

impl Loss for Squared {
    fn name(&self) -> &'static str {
        "squared"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn labels(&self) -> Labels {
        Labels::Numbers
    }

    fn value(&self, scores: &[f64], label: f64) -> f64 {
        0.5 * (scores[0] - label).powi(2)
    }

    fn lipschitz(&self) -> Option<f64> {
        None
    }

    fn lipschitz_within(&self, score: f64, label: f64) -> f64 {
        score + label
    }

    fn smoothness(&self) -> Option<f64> {
        Some(1.0)
    }
}
