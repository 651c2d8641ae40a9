//! The simplex.

use super::Domain;
use crate::{Error, Result};

/// All points with coordinates of at least zero and a given sum.
#[derive(Debug, Clone, Copy)]
pub struct Simplex {
    sum: f64,
}

impl Simplex {
    /// The sum of the coordinates; 1 for probabilities.
    pub fn new(sum: f64) -> Result<Self> {
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(Error::invalid("domain", sum, "a simplex with a sum > 0"));
        }
        Ok(Self { sum })
    }
}

impl Domain for Simplex {
    fn name(&self) -> &'static str {
        "simplex"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    /// max(x − θ, 0) with the θ that gives the sum, found by sorting (Held, Wolfe and Crowder 1974).
    fn project(&self, point: &mut [f64]) {
        let mut sorted = point.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let (mut total, mut shift) = (0.0, 0.0);
        for (i, x) in sorted.iter().enumerate() {
            total += x;
            let candidate = (total - self.sum) / (i + 1) as f64;
            if *x > candidate {
                shift = candidate;
            }
        }
        point.iter_mut().for_each(|x| *x = (*x - shift).max(0.0));
    }

    fn diameter(&self, dimension: usize) -> f64 {
        if dimension < 2 { 0.0 } else { self.sum * std::f64::consts::SQRT_2 }
    }
}
