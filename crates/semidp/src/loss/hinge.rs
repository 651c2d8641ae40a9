//! Hinge loss, for two classes.

use super::{Labels, Loss, is_unknown};
use semidp_core::ScoreLoss;

/// max(0, 1 − ±s), for classes 0 (−) and 1 (+).
#[derive(Debug, Clone, Copy)]
pub struct Hinge;

fn sign(label: f64) -> f64 {
    if label > 0.5 { 1.0 } else { -1.0 }
}

impl ScoreLoss for Hinge {
    fn outputs(&self) -> usize {
        1
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        let sign = sign(label);
        residuals[0] = if sign * scores[0] < 1.0 && !is_unknown(label) { -sign } else { 0.0 };
    }
}

impl Loss for Hinge {
    fn name(&self) -> &'static str {
        "hinge"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn labels(&self) -> Labels {
        Labels::Classes
    }

    fn value(&self, scores: &[f64], label: f64) -> f64 {
        (1.0 - sign(label) * scores[0]).max(0.0)
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn smoothness(&self) -> Option<f64> {
        None
    }
}
