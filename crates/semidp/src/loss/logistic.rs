//! Logistic loss, for two classes.

use super::{Labels, Loss, is_unknown};
use semidp_core::ScoreLoss;

/// ln(1 + e^s) − y·s, for classes y of 0 and 1.
#[derive(Debug, Clone, Copy)]
pub struct Logistic;

/// 1/(1 + e^{−s}), without overflow.
fn sigmoid(score: f64) -> f64 {
    let small = (-score.abs()).exp();
    if score >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

impl ScoreLoss for Logistic {
    fn outputs(&self) -> usize {
        1
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        residuals[0] = if is_unknown(label) { 0.0 } else { sigmoid(scores[0]) - label.clamp(0.0, 1.0) };
    }
}

impl Loss for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn labels(&self) -> Labels {
        Labels::Classes
    }

    fn value(&self, scores: &[f64], label: f64) -> f64 {
        let score = scores[0];
        // ln(1 + e^s) = max(s, 0) + ln(1 + e^{−|s|}), and max(s, 0) − y·s is never negative.
        let label = label.clamp(0.0, 1.0);
        let linear = if score >= 0.0 { (1.0 - label) * score } else { -label * score };
        linear + (-score.abs()).exp().ln_1p()
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(1.0)
    }

    fn lipschitz_within(&self, score: f64, _: f64) -> f64 {
        // The other class, at the surest score.
        sigmoid(score)
    }

    fn smoothness(&self) -> Option<f64> {
        Some(0.25)
    }
}
