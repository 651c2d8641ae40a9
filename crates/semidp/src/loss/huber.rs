//! Huber loss, for regression with outliers.

use super::{Labels, Loss};
use crate::{Error, Result};
use semidp_core::ScoreLoss;

/// ½r² up to |r| = threshold, and linear beyond; r = s − y.
#[derive(Debug, Clone, Copy)]
pub struct Huber {
    threshold: f64,
}

impl Huber {
    /// Where it becomes linear, in units of the label.
    pub fn new(threshold: f64) -> Result<Self> {
        if !(threshold > 0.0 && threshold.is_finite()) {
            return Err(Error::invalid("huber-threshold", threshold, "a number > 0"));
        }
        Ok(Self { threshold })
    }
}

impl ScoreLoss for Huber {
    fn outputs(&self) -> usize {
        1
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        residuals[0] = (scores[0] - label).clamp(-self.threshold, self.threshold);
    }
}

impl Loss for Huber {
    fn name(&self) -> &'static str {
        "huber"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn labels(&self) -> Labels {
        Labels::Numbers
    }

    fn value(&self, scores: &[f64], label: f64) -> f64 {
        let size = (scores[0] - label).abs();
        if size <= self.threshold {
            0.5 * size * size
        } else {
            self.threshold * (size - 0.5 * self.threshold)
        }
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(self.threshold)
    }

    fn lipschitz_within(&self, score: f64, label: f64) -> f64 {
        self.threshold.min(score + label)
    }

    fn smoothness(&self) -> Option<f64> {
        Some(1.0)
    }
}
