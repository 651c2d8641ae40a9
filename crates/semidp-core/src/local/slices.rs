//! Normal numbers for public candidates, of 16 random bits each: the means of 2¹⁶ equally likely slices of the normal law, rounded to
//! multiples of 2⁻¹² standard deviations.
//!
//! The promise of ε does not rest on their law, as no vector has a part in them. What reports are on average does, by less than one part in
//! 10⁴ (`slices_leave_reports_unbiased`, a test, compares these numbers with normal ones in the same slices). They are the same on
//! every machine: a slice's mean is computed to 10⁻⁷ of a step, and none is within 10⁻⁶ of where rounding goes the other way.

use crate::noise::rng::Stream;
use std::sync::LazyLock;

/// One standard deviation.
pub(super) const STD: u64 = 1 << 12;

/// Slices of the positive half.
const SLICES: usize = 1 << 15;
const PER_WORD: usize = 4;

static MEANS: LazyLock<Box<[i16; SLICES]>> = LazyLock::new(|| {
    let mut means = Box::new([0; SLICES]);
    means.iter_mut().zip(exact_means()).for_each(|(to, mean)| *to = mean.round() as i16);
    means
});

/// E[|Z| : |Z| in slice k], in steps.
fn exact_means() -> impl Iterator<Item = f64> {
    let density = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * libm::exp(-0.5 * x * x);
    let mut left = 0.0;
    (1..=SLICES).map(move |k| {
        let beyond = (SLICES - k) as f64 / SLICES as f64;
        // Newton's method from the left of a convex function.
        let mut right: f64 = if k == SLICES { f64::INFINITY } else { left };
        while right.is_finite() {
            let step = (libm::erfc(right / std::f64::consts::SQRT_2) - beyond) / density(right);
            right += step;
            if step.abs() < 1e-13 {
                break;
            }
        }
        let mean = SLICES as f64 * (density(left) - density(right));
        left = right;
        mean * STD as f64
    })
}

/// Fills a list with whole numbers. What is left of its last word is not used.
#[inline(always)]
pub(super) fn fill(stream: &mut Stream, numbers: &mut [i16]) {
    let means = &**MEANS;
    for four in numbers.chunks_mut(PER_WORD) {
        let word = stream.word();
        for (i, number) in four.iter_mut().enumerate() {
            let bits = (word >> (16 * i)) as u16;
            let sign = bits as i16 >> 15;
            *number = (means[usize::from(bits) % SLICES] ^ sign) - sign;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The mean of the slice that a number is in, in standard deviations.
    pub(in super::super) fn mean_of_slice(x: f64) -> f64 {
        let slice = SLICES as f64 * (1.0 - libm::erfc(x.abs() / std::f64::consts::SQRT_2));
        f64::from(MEANS[(slice as usize).min(SLICES - 1)]).copysign(x) / STD as f64
    }

    #[test]
    fn means_of_slices_are_the_same_everywhere() {
        let mut square = 0.0;
        for (found, exact) in MEANS.iter().zip(exact_means()) {
            let from_tie = (exact - exact.floor() - 0.5).abs();
            assert!(from_tie > 1e-6, "{exact}");
            square += (f64::from(*found) / STD as f64).powi(2) / SLICES as f64;
        }
        assert!(MEANS.is_sorted());
        // What the slices' own widths take from the variance.
        assert!(square < 1.0 && square > 1.0 - 3e-6, "{square}");
    }

    /// To E|Z|.
    #[test]
    fn means_of_slices_add_up() {
        let sum: f64 = exact_means().sum();
        let expected = (2.0 / std::f64::consts::PI).sqrt() * (SLICES as u64 * STD) as f64;
        assert!((sum / expected - 1.0).abs() < 1e-12);
    }
}
