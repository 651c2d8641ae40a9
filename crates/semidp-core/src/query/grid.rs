//! The grid that contributions lie on: multiples of a power of two, fine next to the clip norm.

use crate::{Error, Result};
use std::ops::RangeInclusive;

/// A grid step g = 2^e and the largest contribution in steps, ⌊C/g⌋.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    step: f64,
    clip_steps: u64,
}

/// Clip norms that a query accepts. The square of each, and its quotient by the grid step, are far inside the range of either
/// precision.
pub const CLIP_NORMS: RangeInclusive<f64> = 1e-15..=1e15;

/// The clip norm has 16 more bits of grid steps than √d has, and between these.
const LEAST_BITS: i32 = 22;
const MOST_BITS: i32 = 27;
/// The largest number of coordinates.
const MOST_COORDINATES: usize = 1 << 26;

impl Grid {
    /// The grid for contributions of norm at most `clip_norm` in `dimension` coordinates: the step is
    /// at most 2^{−16}·C/√d up to a million coordinates and 2^{−27}·C beyond, so that truncation moves a
    /// contribution by less than 2^{−16}·C, or 2^{−14}·C.
    pub fn new(clip_norm: f64, dimension: usize) -> Result<Self> {
        if !CLIP_NORMS.contains(&clip_norm) {
            return Err(Error::invalid("clip-norm", clip_norm, "a number from 1e-15 to 1e15"));
        }
        let half_log = (usize::BITS - dimension.leading_zeros()).div_ceil(2) as i32;
        let bits = (16 + half_log).clamp(LEAST_BITS, MOST_BITS);
        if !(1..=MOST_COORDINATES).contains(&dimension) {
            return Err(Error::invalid("dimension", dimension, "a whole number from 1 to 2^26"));
        }
        let exponent = exponent(clip_norm) - bits;
        let step = 2f64.powi(exponent);
        // Dividing by a power of two is exact; the floor is below 2^28.
        Ok(Self { step, clip_steps: (clip_norm / step) as u64 })
    }

    /// The grid step g.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// The largest norm of a contribution, in steps: the clip norm rounded down.
    pub fn clip_steps(&self) -> u64 {
        self.clip_steps
    }
}

/// ⌊log₂ x⌋ of a normal number.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52 & 0x7ff) as i32) - 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_fine_and_never_above_the_clip_norm() {
        for clip in [1e-15, 0.1, 0.999_999, 1.0, 1.5, 3e7, 1e15] {
            for d in [1usize, 2, 100, 2000, 1 << 20, 1 << 25] {
                let grid = Grid::new(clip, d).unwrap();
                let whole = grid.step() * grid.clip_steps() as f64;
                assert!(whole <= clip && whole > clip - grid.step());
                let finest = if d <= 1 << 20 { -16 } else { -14 };
                assert!(grid.step() <= clip * 2f64.powi(finest) / (d as f64).sqrt(), "{clip} {d}");
                assert!(grid.clip_steps() >= 1 << 22 && grid.clip_steps() < 1 << 28);
                assert_eq!(grid.step().to_bits() << 12, 0, "a power of two");
            }
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-30] {
            assert!(Grid::new(bad, 3).is_err());
        }
        assert!(Grid::new(1.0, 0).is_err());
    }
}
