//! zCDP ↔ (ε, δ).

use super::{gaussian_epsilon, gaussian_mu};
use crate::math::search;
use crate::{Delta, Epsilon, Mu, Result, Rho};

/// Which theorem turns ρ into ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZcdpConversion {
    /// Bun and Steinke 2016: simple, loose, what the paper uses.
    BunSteinke,
    /// Canonne, Kamath and Steinke 2020: the best bound known for an arbitrary ρ-zCDP mechanism.
    Optimal,
    /// Exact, but only if the mechanism IS Gaussian.
    Gaussian,
}

/// ε = ρ + 2√(ρ ln(1/δ)) (Bun and Steinke 2016).
pub fn zcdp_to_epsilon_bun_steinke(rho: Rho, delta: Delta) -> Result<Epsilon> {
    let log = -delta.positive()?.get().ln();
    Epsilon::new(rho.get() + 2.0 * (rho.get() * log).sqrt())
}

/// The inverse of [`zcdp_to_epsilon_bun_steinke`]: ρ = (√(L+ε) − √L)², L = ln(1/δ).
pub fn epsilon_to_zcdp_bun_steinke(epsilon: Epsilon, delta: Delta) -> Result<Rho> {
    let log = -delta.positive()?.get().ln();
    // (√(L+ε) − √L) = ε / (√(L+ε) + √L), without cancellation.
    Rho::new((epsilon.get() / ((log + epsilon.get()).sqrt() + log.sqrt())).powi(2))
}

/// The best generic conversion (Canonne, Kamath, Steinke 2020):
/// $\varepsilon=\inf_{\alpha>1}\rho\alpha+\frac{\ln(1/\delta)+(\alpha-1)\ln(1-1/\alpha)-\ln\alpha}{\alpha-1}$.
pub fn zcdp_to_epsilon(rho: Rho, delta: Delta) -> Result<Epsilon> {
    let log_delta = delta.positive()?.get().ln();
    let rho = rho.get();
    if rho == 0.0 {
        return Epsilon::new(0.0);
    }
    let at = |log_excess: f64| {
        let excess = log_excess.exp();
        let alpha = 1.0 + excess;
        let terms = [rho * alpha, (excess / alpha).ln(), -(log_delta + alpha.ln()) / excess];
        // Each term is good to a few units in its last place.
        terms.iter().map(|term| term + 4.0 * f64::EPSILON * term.abs()).sum::<f64>()
    };
    // The optimum of ρα + ln(1/δ)/(α−1) is at √(ln(1/δ)/ρ); the logarithmic terms move it little.
    let centre = 0.5 * (-log_delta / rho).ln();
    let (_, epsilon) = search::minimise(centre - 12.0, centre + 4.0, 1e-9, at);
    Epsilon::new(epsilon.max(0.0))
}

/// The largest ρ for which every ρ-zCDP mechanism is (ε, δ)-DP by [`zcdp_to_epsilon`].
pub fn epsilon_to_zcdp(epsilon: Epsilon, delta: Delta) -> Result<Rho> {
    let target = epsilon.get();
    // The loose conversion bounds ρ from below, the exact Gaussian one from above.
    let lo = epsilon_to_zcdp_bun_steinke(epsilon, delta)?.get();
    let hi = epsilon_to_zcdp_gaussian(epsilon, delta)?.get() * 1.001 + 1e-300;
    let (safe, _) = search::bisect(lo, hi, |rho| {
        Rho::new(rho).and_then(|rho| zcdp_to_epsilon(rho, delta)).is_ok_and(|e| e.get() > target)
    });
    Rho::new(safe)
}

/// ε of a Gaussian mechanism that is ρ-zCDP; wrong for any other mechanism.
pub fn zcdp_to_epsilon_gaussian(rho: Rho, delta: Delta) -> Result<Epsilon> {
    gaussian_epsilon(gaussian_mu_of(rho)?, delta)
}

/// ρ = μ²/2 of the least noisy Gaussian mechanism that is (ε, δ)-DP; wrong for any other.
pub fn epsilon_to_zcdp_gaussian(epsilon: Epsilon, delta: Delta) -> Result<Rho> {
    Rho::new((0.5 * gaussian_mu(epsilon, delta)?.get().powi(2)).next_down().max(0.0))
}

/// μ = √(2ρ), rounded up.
pub(crate) fn gaussian_mu_of(rho: Rho) -> Result<Mu> {
    let mu = (2.0 * rho.get()).sqrt();
    Mu::new(if mu.mul_add(mu, -2.0 * rho.get()) < 0.0 { mu.next_up() } else { mu })
}

/// δ(ε) of an arbitrary ρ-zCDP mechanism: the minimum over orders of the Rényi conversion.
pub fn zcdp_to_delta(rho: Rho, epsilon: Epsilon) -> Delta {
    let (rho, epsilon) = (rho.get(), epsilon.get());
    if rho == 0.0 {
        return Delta::saturating(0.0);
    }
    let at = |log_excess: f64| {
        let excess = log_excess.exp();
        super::renyi::log_delta_above(1.0 + excess, (rho * (1.0 + excess)).next_up(), epsilon)
    };
    let centre = ((epsilon / rho - 1.0).max(1e-3) * 0.5).ln();
    let (_, log_delta) = search::minimise(centre - 12.0, centre + 12.0, 1e-9, at);
    Delta::saturating(log_delta.exp() * (1.0 + 4.0 * f64::EPSILON))
}

impl ZcdpConversion {
    /// ε of a ρ-zCDP mechanism by this theorem.
    pub fn epsilon(self, rho: Rho, delta: Delta) -> Result<Epsilon> {
        match self {
            Self::BunSteinke => zcdp_to_epsilon_bun_steinke(rho, delta),
            Self::Optimal => zcdp_to_epsilon(rho, delta),
            Self::Gaussian => zcdp_to_epsilon_gaussian(rho, delta),
        }
    }

    /// ρ that buys (ε, δ) by this theorem.
    pub fn rho(self, epsilon: Epsilon, delta: Delta) -> Result<Rho> {
        match self {
            Self::BunSteinke => epsilon_to_zcdp_bun_steinke(epsilon, delta),
            Self::Optimal => epsilon_to_zcdp(epsilon, delta),
            Self::Gaussian => epsilon_to_zcdp_gaussian(epsilon, delta),
        }
    }
}
