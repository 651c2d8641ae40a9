//! One-dimensional root and minimum search.

/// Bisects a predicate that is false at `lo` and true at `hi` until the bracket cannot shrink,
/// and returns its two ends `(last false, first true)`.
pub(crate) fn bisect(mut lo: f64, mut hi: f64, mut holds: impl FnMut(f64) -> bool) -> (f64, f64) {
    for _ in 0..200 {
        let mid = 0.5 * (lo + hi);
        if mid <= lo.min(hi) || mid >= lo.max(hi) {
            break;
        }
        if holds(mid) { hi = mid } else { lo = mid }
    }
    (lo, hi)
}

/// A root of an increasing function to within `tolerance` in x, by the Illinois variant of
/// regula falsi; the bracket grows from `start` in steps that double.
pub(crate) fn increasing_root(
    start: f64,
    mut width: f64,
    tolerance: f64,
    mut f: impl FnMut(f64) -> f64,
) -> f64 {
    let (mut lo, mut f_lo) = (start, f(start));
    let (mut hi, mut f_hi) = (lo, f_lo);
    for _ in 0..60 {
        if f_lo <= 0.0 && f_hi >= 0.0 {
            break;
        }
        if f_hi < 0.0 {
            (lo, f_lo) = (hi, f_hi);
            hi += width;
            f_hi = f(hi);
        } else {
            (hi, f_hi) = (lo, f_lo);
            lo -= width;
            f_lo = f(lo);
        }
        width *= 2.0;
    }
    for _ in 0..80 {
        if hi - lo <= tolerance {
            break;
        }
        let secant = (lo * f_hi - hi * f_lo) / (f_hi - f_lo);
        let x = if secant > lo && secant < hi { secant } else { 0.5 * (lo + hi) };
        let f_x = f(x);
        if f_x.abs() < tolerance * 1e-3 {
            return x;
        }
        if f_x > 0.0 {
            (hi, f_hi) = (x, f_x);
            f_lo *= 0.5;
        } else {
            (lo, f_lo) = (x, f_x);
            f_hi *= 0.5;
        }
    }
    0.5 * (lo + hi)
}

/// The position and value of the minimum of a unimodal function on `[lo, hi]` by golden section.
pub(crate) fn minimise(
    mut lo: f64,
    mut hi: f64,
    tolerance: f64,
    mut f: impl FnMut(f64) -> f64,
) -> (f64, f64) {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (hi - golden * (hi - lo), lo + golden * (hi - lo));
    let (mut f_a, mut f_b) = (f(a), f(b));
    while hi - lo > tolerance {
        if f_a <= f_b {
            (hi, b, f_b) = (b, a, f_a);
            a = hi - golden * (hi - lo);
            f_a = f(a);
        } else {
            (lo, a, f_a) = (a, b, f_b);
            b = lo + golden * (hi - lo);
            f_b = f(b);
        }
    }
    if f_a <= f_b { (a, f_a) } else { (b, f_b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_roots_and_minima() {
        let (lo, hi) = bisect(0.0, 2.0, |x| x * x >= 2.0);
        assert!(lo * lo < 2.0 && hi * hi >= 2.0 && hi - lo < 1e-15);
        let root = increasing_root(-30.0, 1.0, 1e-9, |x| x.exp() - 5.0);
        assert!((root - 5f64.ln()).abs() < 1e-9);
        let (at, value) = minimise(-3.0, 5.0, 1e-8, |x| (x - 1.5).powi(2) + 2.0);
        assert!((at - 1.5).abs() < 1e-7 && (value - 2.0).abs() < 1e-12);
    }
}
