//! Softmax cross-entropy, for several classes.

use super::{Labels, Loss, is_unknown};
use crate::{Error, Result};
use semidp_core::ScoreLoss;

/// ln Σ e^{s_c} − s_y, with one score a class.
#[derive(Debug, Clone, Copy)]
pub struct Softmax {
    classes: usize,
}

impl Softmax {
    /// For this many classes, two or more.
    pub fn new(classes: usize) -> Result<Self> {
        if classes < 2 {
            return Err(Error::invalid("classes", classes, "a whole number >= 2"));
        }
        Ok(Self { classes })
    }

    /// The class of a label; a label that is none counts as the nearest.
    fn class(&self, label: f64) -> usize {
        (label.round().max(0.0) as usize).min(self.classes - 1)
    }
}

fn largest(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

impl ScoreLoss for Softmax {
    fn outputs(&self) -> usize {
        self.classes
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        if is_unknown(label) {
            return residuals.fill(0.0);
        }
        let most = largest(scores);
        residuals.iter_mut().zip(scores).for_each(|(r, s)| *r = (s - most).exp());
        let total: f64 = residuals.iter().sum();
        residuals.iter_mut().for_each(|r| *r /= total);
        residuals[self.class(label)] -= 1.0;
    }
}

impl Loss for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn labels(&self) -> Labels {
        Labels::Classes
    }

    fn value(&self, scores: &[f64], label: f64) -> f64 {
        let most = largest(scores);
        let total: f64 = scores.iter().map(|s| (s - most).exp()).sum();
        ((most - scores[self.class(label)]) + total.ln()).max(0.0)
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(std::f64::consts::SQRT_2)
    }

    fn smoothness(&self) -> Option<f64> {
        Some(0.5)
    }
}
