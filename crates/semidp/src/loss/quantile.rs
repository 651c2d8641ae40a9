//! Quantile loss, for a conditional quantile.

use super::{Labels, Loss};
use crate::{Error, Result};
use semidp_core::ScoreLoss;

/// level·(y − s) where the score is too small, (1 − level)·(s − y) where it is too large.
#[derive(Debug, Clone, Copy)]
pub struct Quantile {
    level: f64,
}

impl Quantile {
    /// The quantile between 0 and 1; 0.5 is the median.
    pub fn new(level: f64) -> Result<Self> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::invalid("quantile", level, "a number > 0 and < 1"));
        }
        Ok(Self { level })
    }
}

impl ScoreLoss for Quantile {
    fn outputs(&self) -> usize {
        1
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        residuals[0] = if scores[0] > label {
            1.0 - self.level
        } else if scores[0] < label {
            -self.level
        } else {
            0.0
        };
    }
}

impl Loss for Quantile {
    fn name(&self) -> &'static str {
        "quantile"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn labels(&self) -> Labels {
        Labels::Numbers
    }

    fn value(&self, scores: &[f64], label: f64) -> f64 {
        let gap = label - scores[0];
        if gap > 0.0 { self.level * gap } else { (self.level - 1.0) * gap }
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(self.level.max(1.0 - self.level))
    }

    fn smoothness(&self) -> Option<f64> {
        None
    }
}
