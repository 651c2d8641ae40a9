//! Boxes.

use super::Domain;
use crate::{Error, Result};

/// All points whose coordinates lie between two numbers.
#[derive(Debug, Clone, Copy)]
pub struct Box {
    least: f64,
    greatest: f64,
}

impl Box {
    /// The same two numbers for every coordinate.
    pub fn new(least: f64, greatest: f64) -> Result<Self> {
        if !(least.is_finite() && greatest.is_finite() && least < greatest) {
            return Err(Error::invalid(
                "domain",
                format!("{least} to {greatest}"),
                "a box of two numbers in order",
            ));
        }
        Ok(Self { least, greatest })
    }
}

impl Domain for Box {
    fn name(&self) -> &'static str {
        "box"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn project(&self, point: &mut [f64]) {
        point.iter_mut().for_each(|x| *x = x.clamp(self.least, self.greatest));
    }

    fn reach(&self, from: &[f64]) -> f64 {
        from.iter().map(|x| (x - self.least).abs().max((x - self.greatest).abs()).powi(2)).sum::<f64>().sqrt()
    }

    fn diameter(&self, dimension: usize) -> f64 {
        (self.greatest - self.least) * (dimension as f64).sqrt()
    }
}
