//! Fixed-point numbers of 256 bits in [0, 2): just enough to bound e^{−x} from both sides, far
//! beyond what a sampler ever asks for. No floating point, no approximation without its error.

/// A number a·2^{−255}, limbs from the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed([u64; 4]);

impl PartialOrd for Fixed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl Fixed {
    pub(super) const ONE: Self = Self([0, 0, 0, 1 << 63]);

    /// The number whose 256 bits these are, highest first: bit 255 is worth 1.
    pub(super) fn from_bits(high: u128, low: u128) -> Self {
        Self([low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64])
    }

    /// The highest 128 bits: the number rounded down to a multiple of 2^{−127}.
    pub(super) fn high(self) -> u128 {
        u128::from(self.0[3]) << 64 | u128::from(self.0[2])
    }

    /// a·n for n < 2^63: the whole part, and 192 bits of the fraction (rounded down), lowest limb first.
    pub(super) fn scaled_by(self, n: u64) -> (u64, [u64; 3]) {
        let mut wide = [0u64; 5];
        let mut carry = 0u128;
        for (out, &limb) in wide.iter_mut().zip(&self.0) {
            carry += u128::from(limb) * u128::from(n);
            *out = carry as u64;
            carry >>= 64;
        }
        wide[4] = carry as u64;
        // One place up: the unit is bit 255.
        let limb = |i: usize| wide[i] << 1 | wide[i - 1] >> 63;
        (limb(4), [limb(1), limb(2), limb(3)])
    }

    /// a − b, for a ≥ b.
    fn minus(self, other: Self) -> Self {
        let mut out = [0; 4];
        let mut borrow = false;
        for (i, limb) in out.iter_mut().enumerate() {
            let (first, under) = self.0[i].overflowing_sub(other.0[i]);
            let (second, again) = first.overflowing_sub(u64::from(borrow));
            *limb = second;
            borrow = under || again;
        }
        debug_assert!(!borrow);
        Self(out)
    }

    /// a·b rounded down, less than 2^{−255} below; the product must be below 2.
    fn times(self, other: Self) -> Self {
        let mut wide = [0u64; 8];
        for i in 0..4 {
            let mut carry = 0u128;
            for j in 0..4 {
                carry += u128::from(self.0[i]) * u128::from(other.0[j]) + u128::from(wide[i + j]);
                wide[i + j] = carry as u64;
                carry >>= 64;
            }
            wide[i + 4] = carry as u64;
        }
        debug_assert!(wide[7] >> 63 == 0);
        Self(std::array::from_fn(|i| wide[i + 4] << 1 | wide[i + 3] >> 63))
    }

    /// a/n rounded down.
    fn divided_by(self, n: u64) -> Self {
        let mut out = [0; 4];
        let mut rest = 0u128;
        for i in (0..4).rev() {
            let value = rest << 64 | u128::from(self.0[i]);
            out[i] = (value / u128::from(n)) as u64;
            rest = value % u128::from(n);
        }
        Self(out)
    }

    /// a/2^n rounded down, 0 < n < 64.
    fn shifted_down(self, n: u32) -> Self {
        Self(std::array::from_fn(|i| self.0[i] >> n | self.0.get(i + 1).map_or(0, |up| up << (64 - n))))
    }
}

/// e^{−z²/2} for z = 16·a, a < 1, to within 2^{−236}.
///
/// With t = z²/2/2^10 = a²/8 ≤ 1/8 it is (e^{−t})^{1024}. Let u = 2^{−255}.
/// * t: the square is rounded once and shifted once, an error below 2u, which changes e^{−z²/2} by at
///   most 2^10·2u.
/// * Horner's scheme 1 − t(1 − t/2(1 − ...)) of 40 terms: each step rounds twice, and what was wrong
///   before is multiplied by t/n ≤ 1/8, so the errors sum to less than 2u·8/7 < 3u; the first term
///   left out is below (1/8)^{41}/41! < 2^{−280}.
/// * Ten squarings: each at most doubles the error (values are at most 1) and rounds once, so the
///   error stays below 2^10·(3u + u) = 2^12 u.
///
/// In all below 2^11 u + 2^12 u < 2^13 u = 2^{−242}; users of this rely on 2^{−236} only.
pub(super) fn exp_of_half_square(a: Fixed) -> Fixed {
    let t = a.times(a).shifted_down(3);
    let mut sum = Fixed::ONE;
    for n in (1..=40).rev() {
        sum = Fixed::ONE.minus(t.times(sum).divided_by(n));
    }
    for _ in 0..10 {
        sum = sum.times(sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(a: Fixed) -> f64 {
        a.high() as f64 * 2f64.powi(-127)
    }

    #[test]
    fn exponentials_agree_with_the_library_and_with_each_other() {
        for k in 0..1000u128 {
            let a = Fixed::from_bits((k << 127) / 1000, 0x1234_5678_9abc_def0 << 32);
            let z = 16.0 * value(a);
            let expected = (-0.5 * z * z).exp();
            let found = value(exp_of_half_square(a));
            // The library is good to 1e-15 relatively, ours to 2^-127 absolutely after rounding.
            assert!((found - expected).abs() <= 4e-15 * expected * (1.0 + z * z) + 1e-38, "{z}");
        }
    }

    #[test]
    fn digits_beyond_double_precision() {
        // z = 1: e^{−1/2} = 0.606530659712633423603799534991180453441918... to 127 bits.
        let found = exp_of_half_square(Fixed::from_bits(1 << 123, 0)).high();
        assert_eq!(found, 0x4da2cbf1be5827f9eb3ad1aa9866ebb3);
        // e^{−z²/2} for z and 2z are linked by a fourth power, which must hold to all 256 bits.
        for k in 1..100u128 {
            let once = exp_of_half_square(Fixed::from_bits(k << 118, 0));
            let twice = exp_of_half_square(Fixed::from_bits(k << 119, 0));
            let fourth = once.times(once).times(once.times(once));
            let (a, b) = if fourth > twice { (fourth, twice) } else { (twice, fourth) };
            let gap = a.minus(b);
            assert!(gap < Fixed([1 << 22, 0, 0, 0]), "{k}: {gap:?}");
        }
    }
}
