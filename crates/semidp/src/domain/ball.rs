//! Euclidean balls.

use super::Domain;
use crate::{Error, Result};

/// All points within a radius of a centre.
#[derive(Debug, Clone)]
pub struct Ball {
    centre: Option<Vec<f64>>,
    radius: f64,
}

impl Ball {
    /// About the origin.
    pub fn new(radius: f64) -> Result<Self> {
        if !(radius > 0.0 && radius.is_finite()) {
            return Err(Error::invalid("domain", radius, "a ball of radius > 0"));
        }
        Ok(Self { centre: None, radius })
    }

    /// About another point, which is public.
    pub fn about(centre: Vec<f64>, radius: f64) -> Result<Self> {
        Ok(Self { centre: Some(centre), ..Self::new(radius)? })
    }

    fn centre(&self, j: usize) -> f64 {
        self.centre.as_ref().map_or(0.0, |centre| centre[j])
    }
}

impl Domain for Ball {
    fn name(&self) -> &'static str {
        "ball"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn project(&self, point: &mut [f64]) {
        let square: f64 = point.iter().enumerate().map(|(j, x)| (x - self.centre(j)).powi(2)).sum();
        let length = square.sqrt();
        if length > self.radius {
            for (j, x) in point.iter_mut().enumerate() {
                let centre = self.centre(j);
                *x = centre + (*x - centre) * self.radius / length;
            }
        }
    }

    fn reach(&self, from: &[f64]) -> f64 {
        let square: f64 = from.iter().enumerate().map(|(j, x)| (x - self.centre(j)).powi(2)).sum();
        self.radius + square.sqrt()
    }

    fn diameter(&self, _: usize) -> f64 {
        2.0 * self.radius
    }
}
