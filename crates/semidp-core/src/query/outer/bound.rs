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
use std::num::NonZeroU32;
use std::sync::OnceLock;

/// Scaled rows have a norm from here to twice this, as far as floating-point numbers can tell.
const ROW_BITS: i32 = 25;
/// Integers of a scaled row are at most this: a row that reaches it is set aside.
pub(in crate::query) const MOST_STEPS: f64 = (1u64 << MOST_BITS) as f64;
const MOST_BITS: u32 = 27;
/// The sum of squares at which a row is set aside.
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
        T::of(power_of_two(self.exponent))
    }
}

/// A bound on a row's norm, with the 1 of the intercept: `steps`·2^{−s}, and the rounding of products is counted in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::query) struct Length {
    /// In four bytes: lengths of many rows are remembered.
    steps: NonZeroU32,
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
        // One integer that was cut off is enough to reach it.
        if square >= MOST_SQUARE {
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
        Some(Self { steps: NonZeroU32::new(u32::try_from(steps).ok()?)?, scale })
    }

    /// As a floating-point number, for choosing coefficients.
    pub(in crate::query) fn norm(self) -> f64 {
        f64::from(self.steps.get()) / power_of_two(self.scale.exponent)
    }

    /// Whether the integers trunc(a_c·x_j) have norm at most `clip_steps`, for any row of this length.
    pub(in crate::query) fn admits<T: Number>(self, coefficients: &[T], clip_steps: u64) -> bool {
        let size = coefficients.iter().map(|a| a.to_f64() * a.to_f64()).sum::<f64>().sqrt();
        if !size.is_finite() {
            return false;
        }
        let exponent = (COEFFICIENT_BITS - exponent(size)).clamp(-600, 600);
        let scale = power_of_two(exponent);
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
        let product = u128::from(above_root(square)) * u128::from(self.steps.get());
        // Less room than there is, where there is more than enough.
        let shift = (exponent + self.scale.exponent).min(90);
        shift >= 0 && product <= u128::from(clip_steps) << shift
    }
}

/// The lengths of the rows of a block, which are the same in every step: found once, for either kind of model.
#[derive(Default)]
pub(crate) struct RowLengths {
    plain: OnceLock<Vec<Option<Length>>>,
    with_intercept: OnceLock<Vec<Option<Length>>>,
}

impl RowLengths {
    /// The lengths, found by `find` the first time.
    pub(in crate::query) fn get(
        &self,
        has_intercept: bool,
        find: impl FnOnce() -> Vec<Option<Length>>,
    ) -> &[Option<Length>] {
        let known = if has_intercept { &self.with_intercept } else { &self.plain };
        known.get_or_init(find)
    }
}

/// A whole number not below √n.
fn above_root(n: u64) -> u64 {
    // Right for every n that occurs, and checked, because the library's root of integers takes much longer. So do conversions of
    // numbers without a sign.
    let root = (n as i64 as f64).sqrt() as i64 as u64 + 1;
    if root.checked_mul(root).is_some_and(|square| square >= n) { root } else { n.isqrt() + 1 }
}

/// 2^e for an exponent from −1022 to 1023, exactly; the nearest of those for others.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// ⌊log₂ x⌋ of a normal number; of a smaller one, less than any.
fn exponent(x: f64) -> i32 {
    ((x.to_bits() >> 52 & 0x7ff) as i32) - 1023
}

#[cfg(test)]
mod tests {
    use super::super::{Loops, Vectors};
    use super::*;
    use crate::noise::rng::{Purpose, Randomness, Stream};
    use crate::query::clip::LANES;

    #[test]
    fn powers_and_roots() {
        for exponent in -1022..=1023 {
            assert_eq!(power_of_two(exponent), 2f64.powi(exponent), "{exponent}");
        }
        let mut stream = Randomness::Seed(12).key(0).unwrap().stream(Purpose::Noise, 0, 0);
        let some = (0..20_000).map(|round| stream.word() >> (round % 64));
        let ends = [0, 1, 2, 3, 4, (1 << 62) - 1, 1 << 62, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX];
        for n in some.chain(ends) {
            let root = u128::from(above_root(n));
            assert!(root * root >= u128::from(n), "{n}");
            // A root that was rounded up to the next whole number is one too many.
            assert!(root <= u128::from(n.isqrt()) + 2, "{n}");
        }
    }

    fn numbers(stream: &mut Stream) -> impl FnMut() -> f64 {
        // Any magnitude from 2^-30 to 2^30.
        move || {
            let size = 2f64.powi((stream.word() % 61) as i32 - 30);
            size * (2.0 * (stream.word() as f64 / 2f64.powi(64)) - 1.0)
        }
    }

    /// Σ trunc(a_c·x_j)² in 128 bits, with the 1 of the intercept.
    fn square<T: Number>(coefficients: &[T], row: &[T], has_intercept: bool) -> i128 {
        let one = has_intercept.then_some(T::of(1.0));
        let products = coefficients.iter().flat_map(|&a| row.iter().copied().chain(one).map(move |x| a * x));
        products.map(|k| (k.to_f64().trunc() as i128).pow(2)).sum()
    }

    /// Whatever scale and coefficients floating-point code comes up with: what is admitted is short enough.
    fn nothing_too_long_is_admitted<T: Loops>(vectors: Vectors) {
        let mut stream = Randomness::Seed(11).key(0).unwrap().stream(Purpose::Noise, 0, 0);
        let mut admitted = 0;
        for round in 0..3000usize {
            let (columns, outputs) = ([16, 48, 400][round % 3], [1, 2, 7][round / 3 % 3]);
            let (has_intercept, clip_steps) = (round % 2 == 0, (1u64 << 22) + (round as u64 * 7919));
            let mut number = numbers(&mut stream);
            let mut row: Vec<T> = (0..columns).map(|_| T::of(number())).collect();
            if round % 5 == 0 {
                row[round % columns] = T::of([f64::NAN, f64::INFINITY, 1e30, 1e-42][round / 5 % 4]);
            }
            // Right, or wrong by any factor.
            let honest: f64 = row.iter().map(|x| x.to_f64() * x.to_f64()).sum();
            let told = if round % 3 == 0 { honest } else { number().abs() * honest };
            let Some(scale) = Scale::of(told, has_intercept) else { continue };
            let steps = T::square_of_steps(vectors, &row, scale.factor(), &[]);
            let Some(length) = Length::new(scale, steps, columns, has_intercept) else { continue };
            let norm = (honest + f64::from(u8::from(has_intercept))).sqrt();
            assert!(length.norm() >= norm * (1.0 - 1e-12), "{round}");
            // Shrunk to about the bound, from both sides.
            let raw: Vec<f64> = (0..outputs).map(|_| number()).collect();
            let size = raw.iter().map(|a| a * a).sum::<f64>().sqrt();
            for share in [0.5, 1.0 - 1e-5, 1.0, 1.0 + 1e-7, 2.0] {
                let factor = share * clip_steps as f64 / (size * norm);
                let coefficients: Vec<T> = raw.iter().map(|a| T::of(a * factor)).collect();
                if length.admits(&coefficients, clip_steps) {
                    let found = square(&coefficients, &row, has_intercept);
                    assert!(found <= i128::from(clip_steps).pow(2), "{round} {share}");
                    admitted += 1;
                }
            }
        }
        assert!(admitted > 500, "{admitted}");
    }

    #[test]
    fn what_is_admitted_is_short_enough() {
        nothing_too_long_is_admitted::<f32>(Vectors::detect());
        nothing_too_long_is_admitted::<f32>(Vectors::NONE);
        nothing_too_long_is_admitted::<f64>(Vectors::NONE);
    }

    /// Squares that sum to more than 64 bits hold are too many, however many there are.
    #[test]
    fn squares_do_not_wrap() {
        for columns in [LANES, 16 << 10, 1 << 20] {
            for entry in [1.0f32, -1.0, f32::NAN, f32::INFINITY] {
                let row = vec![entry; columns];
                for vectors in [Vectors::detect(), Vectors::NONE] {
                    let square = f32::square_of_steps(vectors, &row, 1e30, &[]);
                    assert!(Length::new(Scale { exponent: 0 }, square, columns, false).is_none());
                }
            }
        }
    }

    #[test]
    fn coefficients_that_are_no_numbers_are_refused() {
        let length = Length::new(Scale { exponent: 0 }, 100, 4, true).unwrap();
        assert!(length.admits(&[0.0f32, 1.0], 1 << 22));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            assert!(!length.admits(&[1.0, bad], 1 << 22));
        }
        assert!(!length.admits(&[1e200f64], 1 << 22) && !length.admits(&[f64::MAX], 1 << 22));
    }

    #[test]
    fn roots_are_rounded_up() {
        for n in (0..2000).chain([u64::MAX, u64::MAX - 1, 1 << 63, (1 << 62) - 1, (1 << 60) + 1]) {
            let root = above_root(n);
            assert!(u128::from(root).pow(2) >= u128::from(n) && root <= n.isqrt() + 2);
        }
    }
}
