//! How long an outer product is, in integers.
//!
//! A gradient is a coefficient a_c of each output times a row x, so that its integers are
//! k_cj = trunc(a_c·x_j), and Σ k² need not be summed over all of them: it is at most ‖a‖²·‖x‖², up to the
//! rounding of one multiplication. What privacy rests on is that this is known in integers *before* anything is added:
//!
//! * The row: t_j = trunc(2^s·x_j) for a power of two that [`Scale`] chooses. Then |2^s·x_j − t_j| < 1, so that
//!   2^s·‖x‖ ≤ ‖t‖ + √n by the triangle inequality, and Σ t_j² is summed exactly. A t_j that was cut off at
//!   [`MOST_STEPS`], or was no number, makes that sum so large that the row is set aside.
//! * The coefficients: 2^u·|a_c| < A_c = ⌊2^u·|a_c|⌋ + 1.
//! * A product is rounded by a factor of at most 1 + 2^{−24}, or underflows to less than 1; truncation only
//!   shortens. The intercept's x is 1.
//!
//! So Σ k² ≤ C² follows from ‖A‖·(‖t‖ + √n)·(1 + 2^{−24}) ≤ C·2^{s+u}, which is compared in whole numbers, each
//! rounded to the safe side. Which s and u, and how the coefficients came about, makes no difference to that.

use crate::data::Number;

/// Scaled rows have a norm from here to twice this, as far as floating-point numbers can tell.
const ROW_BITS: i32 = 25;
/// Integers of a scaled row are at most this: a row that reaches it is set aside.
pub(in crate::query) const MOST_STEPS: f64 = (1u64 << MOST_BITS) as f64;
const MOST_BITS: u32 = 27;
/// The sum of squares beyond which a row is set aside.
const MOST_SQUARE: u64 = 1 << (2 * MOST_BITS);
/// So many squares of such integers sum to 2^63.
pub(in crate::query) const SQUARES_AT_ONCE: usize = 1 << (63 - 2 * MOST_BITS);

/// Scaled coefficients have a norm from here to twice this.
const COEFFICIENT_BITS: i32 = 30;

/// The power of two that makes integers of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::query) struct Scale {
    exponent: i32,
}

impl Scale {
    /// For a row of about this squared norm, `None` if that is no finite number.
    pub(in crate::query) fn of(square: f64, has_intercept: bool) -> Option<Self> {
        let norm = (square + f64::from(u8::from(has_intercept))).sqrt();
        // Squares of the smallest numbers vanish: more than 2^80 would tear such rows apart.
        norm.is_finite().then(|| Self { exponent: (ROW_BITS - exponent(norm)).clamp(-600, 80) })
    }

    /// 2^s.
    pub(in crate::query) fn factor<T: Number>(self) -> T {
        T::of(2f64.powi(self.exponent))
    }
}

/// A bound on a row's norm, with the 1 of the intercept: `steps`·2^{−s}, and the rounding of products is counted in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::query) struct Length {
    steps: u64,
    scale: Scale,
}

impl Length {
    /// From Σ t_j² over so many columns; `None` if it is too large to be right.
    pub(in crate::query) fn new(
        scale: Scale,
        square: u64,
        columns: usize,
        has_intercept: bool,
    ) -> Option<Self> {
        if square > MOST_SQUARE {
            return None;
        }
        let row = above_root(square) + above_root(columns as u64);
        let row = row + (row >> 22) + 1;
        let one = match has_intercept {
            // Rounded up to 1 if the scale is less; more than 2^26 cannot be, but is refused.
            true => 1u64.checked_shl(scale.exponent.max(0) as u32).filter(|&one| one <= MOST_SQUARE >> 27)?,
            false => 0,
        };
        let steps = above_root(row.checked_mul(row)?.checked_add(one.checked_mul(one)?)?);
        Some(Self { steps, scale })
    }

    /// As a floating-point number, for choosing coefficients.
    pub(in crate::query) fn norm(self) -> f64 {
        self.steps as f64 / 2f64.powi(self.scale.exponent)
    }

    /// Whether the integers trunc(a_c·x_j) have norm at most `clip_steps`, for any row of this length.
    pub(in crate::query) fn admits<T: Number>(self, coefficients: &[T], clip_steps: u64) -> bool {
        let size = coefficients.iter().map(|a| a.to_f64() * a.to_f64()).sum::<f64>().sqrt();
        if !size.is_finite() {
            return false;
        }
        let exponent = (COEFFICIENT_BITS - exponent(size)).clamp(-600, 600);
        let scale = 2f64.powi(exponent);
        let mut square = 0u64;
        for a in coefficients {
            // Single precision times a power of two is exact in double precision; a coefficient in double precision
            // may only underflow, to less than 1. The conversion rounds down.
            let upper = (a.to_f64().abs() * scale) as u64;
            let Some(term) = upper.checked_add(1).and_then(|upper| upper.checked_mul(upper)) else {
                return false;
            };
            square = square.saturating_add(term);
        }
        if square == u64::MAX {
            return false;
        }
        let product = u128::from(above_root(square)) * u128::from(self.steps);
        // Less room than there is, where there is more than enough.
        let shift = (exponent + self.scale.exponent).min(90);
        shift >= 0 && product <= u128::from(clip_steps) << shift
    }
}

/// A whole number not below √n.
fn above_root(n: u64) -> u64 {
    // Right for every n that occurs, and checked, because the library's root of integers takes much longer.
    let root = (n as f64).sqrt() as u64 + 1;
    if root.checked_mul(root).is_some_and(|square| square >= n) { root } else { n.isqrt() + 1 }
}

/// ⌊log₂ x⌋ of a normal number; of a smaller one, less than any.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52 & 0x7ff) as i32) - 1023
}
