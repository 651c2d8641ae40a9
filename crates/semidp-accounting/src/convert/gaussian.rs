//! The Gaussian mechanism, exactly: Gaussian DP ↔ (ε, δ) (Balle and Wang 2018).

use crate::math::{normal, search};
use crate::{Delta, Epsilon, Error, Mu, Result, Sensitivity};

/// δ(ε) of a Gaussian mechanism with μ = sensitivity / std:
/// $\delta(\varepsilon)=\Phi(\mu/2-\varepsilon/\mu)-e^{\varepsilon}\Phi(-\mu/2-\varepsilon/\mu)$.
///
/// ```
/// use semidp_accounting::{Epsilon, Mu, convert::gaussian_delta};
/// let delta = gaussian_delta(Mu::new(1.0)?, Epsilon::new(1.0)?);
/// assert!((delta.get() - 0.126936737506644).abs() < 1e-14);
/// # Ok::<(), semidp_accounting::Error>(())
/// ```
pub fn gaussian_delta(mu: Mu, epsilon: Epsilon) -> Delta {
    Delta::saturating(delta(mu.get(), epsilon.get()))
}

/// δ(ε), rounded up; 0 where it is below the range of floating-point numbers.
pub(crate) fn delta(mu: f64, epsilon: f64) -> f64 {
    let (value, error) = evaluate(mu, epsilon);
    value * (1.0 + error)
}

/// δ(ε), rounded down, also below the normal range.
pub(crate) fn delta_below(mu: f64, epsilon: f64) -> f64 {
    let (value, error) = evaluate(mu, epsilon);
    (value * (1.0 - error) - f64::MIN_POSITIVE).max(0.0)
}

/// δ(ε) and a bound on its relative rounding error.
///
/// With a = ε/μ − μ/2 and t = a + μ the formula is φ(a)·(m(a) − m(t)), m the Mills ratio, because
/// e^ε φ(t) = φ(a). It keeps its relative accuracy where both normal tails underflow. Its rounding errors, in
/// units u = 2⁻⁵³: the logarithm of the product changes by at most m(t)/(1 − t·m(t)) ≤ |t| + 1.3 times the error
/// (ε/μ + |a|)u of a; the exponential has a relative error of (a² + 4)u; each Mills ratio one of at most 32u, which
/// the difference magnifies.
fn evaluate(mu: f64, epsilon: f64) -> (f64, f64) {
    if mu == 0.0 {
        return (0.0, 0.0);
    }
    let quotient = epsilon / mu;
    let a = quotient - 0.5 * mu;
    let t = a + mu;
    let unit = 0.5 * f64::EPSILON;
    if a < -3.0 {
        // δ is above 0.99: no cancellation, and the Mills ratio would overflow. The tail's derivative in a is at most
        // φ(3) < 0.005, and the second term is at most φ(3)·m(3) < 0.002 with the relative error of its exponent.
        let tail = (epsilon + normal::log_sf(t)).exp();
        let error = 8.0 + 0.005 * (quotient + a.abs()) + tail * (16.0 + 4.0 * epsilon + t * t);
        return (normal::sf(a) - tail, 2.0 * unit * error);
    }
    let (difference, magnified) = mills_difference(a, mu);
    let value = (normal::density(a) * difference).max(0.0);
    let error = 8.0 + a * a + (t.abs() + 1.3) * (quotient + a.abs()) + magnified;
    (value, if value > 0.0 { unit * error } else { 0.0 })
}

/// m(a) − m(a + μ) for a ≥ −3, and a bound on its relative error in units of 2⁻⁵³.
fn mills_difference(a: f64, mu: f64) -> (f64, f64) {
    let t = a + mu;
    if mu < 1e-2 {
        // −m'(t) = 1 − t·m(t) ≥ 1/(t² + 3): integrate it over [a, t] instead of subtracting neighbours.
        let (half, centre) = (0.5 * mu, a + 0.5 * mu);
        let mean = GAUSS_LEGENDRE_5.iter().map(|&(x, w)| w * mills_slope(centre + half * x)).sum::<f64>();
        (half * mean, 40.0 * (t * t + 3.0))
    } else {
        let (near, far) = (normal::mills(a), normal::mills(t));
        let difference = near - far;
        (difference, 32.0 * (near + far) / difference + t.abs() / mu)
    }
}

/// m(a) − m(a + μ) for a ≥ −3, m the Mills ratio, rounded up.
pub(crate) fn mills_drop(a: f64, mu: f64) -> f64 {
    let (difference, error) = mills_difference(a, mu);
    difference.max(0.0) * (1.0 + 0.5 * f64::EPSILON * (4.0 + error))
}

/// P(N > a) − e^{μ(a+μ/2)}·P(N > a+μ) = φ(a)·(m(a) − m(a+μ)), rounded up; a ≥ −μ. It decreases in a.
pub(crate) fn excess(a: f64, mu: f64) -> f64 {
    let unit = f64::EPSILON;
    if a >= -3.0 {
        return normal::density(a) * mills_drop(a, mu) * (1.0 + unit * (8.0 + a * a));
    }
    // As in `evaluate`: the second term is small, with the relative error of its exponent.
    let t = a + mu;
    let exponent = mu * (a + 0.5 * mu);
    let tail = (exponent + normal::log_sf(t)).exp();
    normal::sf(a) - tail + unit * (8.0 + tail * (16.0 + 4.0 * (exponent.abs() + mu * a.abs()) + t * t))
}

/// 1 − t·m(t); for large t by the asymptotic series, as the difference cancels.
fn mills_slope(t: f64) -> f64 {
    if t < 50.0 {
        return 1.0 - t * normal::mills(t);
    }
    let s = 1.0 / (t * t);
    s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s)))
}

const GAUSS_LEGENDRE_5: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.906_179_845_938_664, 0.236_926_885_056_189_1),
];

/// The smallest ε for which a Gaussian mechanism with this μ is (ε, δ)-DP.
pub fn gaussian_epsilon(mu: Mu, delta: Delta) -> Result<Epsilon> {
    let target = delta.positive()?.get();
    let mu = mu.get();
    if self::delta(mu, 0.0) <= target {
        return Epsilon::new(0.0);
    }
    // δ(ε) ≤ P(N > a) gives an upper end.
    let hi = mu * (normal::upper_quantile(target.ln()) + 0.5 * mu) + 1e-300;
    let (_, safe) = search::bisect(0.0, hi, |epsilon| self::delta(mu, epsilon) <= target);
    Epsilon::new(safe)
}

/// Above this ε no μ is looked for: e^ε and μ²/2 leave the range in which δ is known to some digits.
pub(crate) const LARGEST_TARGET: f64 = 1e4;

/// The largest μ whose Gaussian mechanism is (ε, δ)-DP, for ε up to 10,000.
pub fn gaussian_mu(epsilon: Epsilon, delta: Delta) -> Result<Mu> {
    let (epsilon, target) = (epsilon.get(), delta.positive()?.get());
    if epsilon > LARGEST_TARGET {
        return Err(Error::OutOfRange { quantity: "epsilon", relation: "above", limit: LARGEST_TARGET });
    }
    // What is not a number is no guarantee.
    let is_safe = |log_mu: f64| self::delta(log_mu.exp(), epsilon) <= target;
    let too_large = |log_mu: f64| !is_safe(log_mu);
    // All positive numbers lie between e^−746 and e^710.
    let mut hi = 0.0;
    while !too_large(hi) && hi < 710.0 {
        hi += 2.0;
    }
    let mut lo = hi - 2.0;
    while too_large(lo) && lo > -746.0 {
        lo -= 2.0;
    }
    let (safe, _) = search::bisect(lo, hi, too_large);
    Mu::new(safe.exp())
}

/// The smallest noise std at which a Gaussian mechanism of this sensitivity is (ε, δ)-DP
/// (the "analytic Gaussian" calibration), rounded up.
pub fn gaussian_sigma(sensitivity: Sensitivity, epsilon: Epsilon, delta: Delta) -> Result<f64> {
    // A few units in the last place for exp, the division and δ's own rounding.
    Ok(sensitivity.get() / gaussian_mu(epsilon, delta)?.get() * (1.0 + 1e-15))
}
