//! The standard normal law: tails, their logarithms, and the Mills ratio.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// P(X ≤ x).
pub(crate) fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// P(X > x), accurate in the upper tail.
pub(crate) fn sf(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// ln P(X > x), to the ends of the floating-point range.
pub(crate) fn log_sf(x: f64) -> f64 {
    if x < -1.0 {
        (-cdf(x)).ln_1p()
    } else if x < 20.0 {
        sf(x).ln()
    } else {
        -0.5 * x * x - 0.5 * (2.0 * PI).ln() + mills(x).ln()
    }
}

/// The density.
pub(crate) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// The Mills ratio P(X > x) / density(x).
pub(crate) fn mills(x: f64) -> f64 {
    if x < 3.0 {
        return sf(x) / density(x);
    }
    // Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))), evaluated backwards.
    // At x = 3 sixty levels leave an error below 1e-16; fewer are needed further out.
    let mut tail = x;
    for level in (1..=if x < 8.0 { 90 } else { 40 }).rev() {
        tail = x + f64::from(level) / tail;
    }
    1.0 / tail
}

/// The smallest x (up to rounding, erring upwards) with P(X > x) ≤ exp(log_tail).
pub(crate) fn upper_quantile(log_tail: f64) -> f64 {
    let (mut lo, mut hi) = (-40.0, (-2.0 * log_tail).max(0.0).sqrt() + 1.0);
    while hi - lo > 1e-9 {
        let mid = 0.5 * (lo + hi);
        if log_sf(mid) > log_tail { lo = mid } else { hi = mid }
    }
    hi
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from mpmath at 40 digits.
    #[test]
    fn known_values() {
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 2e-15, "{got} {want}");
        close(sf(1.0), 0.158_655_253_931_457_05);
        // Rounding x/√2 alone moves the tail by x²·2⁻⁵³.
        assert!((sf(8.0) / 6.220_960_574_271_784e-16 - 1.0).abs() < 1e-14);
        close(mills(0.0), 1.253_314_137_315_500_3);
        close(mills(3.0), 0.304_590_298_710_103_3);
        close(mills(10.0), 0.099_028_596_471_731_92);
        close(log_sf(30.0), -454.321_243_956_343_2);
        assert!((log_sf(-9.0) / -1.128_588_405_953_840_6e-19 - 1.0).abs() < 2e-14);
    }

    #[test]
    fn quantile_inverts_tail() {
        for tail in [0.3f64, 1e-3, 1e-15, 1e-40, 1e-200] {
            let x = upper_quantile(tail.ln());
            assert!(log_sf(x) <= tail.ln() && log_sf(x - 1e-7) > tail.ln());
        }
    }
}
