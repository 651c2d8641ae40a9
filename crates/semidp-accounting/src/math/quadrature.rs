//! Gauss–Legendre quadrature.

use std::f64::consts::PI;

/// Nodes in (−1, 1) and their weights, for polynomials up to degree 2`N` − 1.
pub(crate) fn gauss_legendre<const N: usize>() -> [(f64, f64); N] {
    std::array::from_fn(|i| {
        // Newton's method on the Legendre polynomial, from Tricomi's guess of its i-th root.
        let n = N as f64;
        let mut x = (PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 0.0;
        for _ in 0..8 {
            let (mut before, mut value) = (1.0, x);
            for k in 1..N {
                let k = k as f64;
                (before, value) = (value, ((2.0 * k + 1.0) * x * value - k * before) / (k + 1.0));
            }
            slope = n * (x * value - before) / (x * x - 1.0);
            x -= value / slope;
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    })
}

/// ∫ f from `lo` to `hi`, cut into equal panels.
pub(crate) fn integral<const N: usize>(
    rule: &[(f64, f64); N],
    (lo, hi): (f64, f64),
    panels: usize,
    mut f: impl FnMut(f64) -> f64,
) -> f64 {
    let half = 0.5 * (hi - lo) / panels as f64;
    (0..panels)
        .map(|panel| {
            let middle = lo + (2.0 * panel as f64 + 1.0) * half;
            half * rule.iter().map(|(x, weight)| weight * f(middle + half * x)).sum::<f64>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule of N nodes is exact for degree 2N − 1; rounding is a few units of N additions.
    #[test]
    fn polynomials_are_exact() {
        let rule = gauss_legendre::<16>();
        for degree in 0..32 {
            let found = integral(&rule, (0.0, 2.0), 1, |x| x.powi(degree));
            let exact = 2f64.powi(degree + 1) / f64::from(degree + 1);
            assert!((found / exact - 1.0).abs() < 64.0 * f64::EPSILON, "{degree}: {found} {exact}");
        }
        // One degree more is not.
        let found = integral(&rule, (-1.0, 1.0), 1, |x| x.powi(32));
        assert!((found * 33.0 / 2.0 - 1.0).abs() > 1e-12);
    }
}
