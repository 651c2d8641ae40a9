//! Pure ε-DP: what it implies in other currencies, and the law of the K-norm mechanism.

use crate::math::LogSum;
use crate::{Epsilon, Order, Result, Rho, Sensitivity};

/// ε-DP implies ρ-zCDP with ρ = ε·tanh(ε/2), rounded up, attained by randomised response.
pub fn pure_to_zcdp(epsilon: Epsilon) -> Result<Rho> {
    // The product of two roundings and of tanh's.
    Rho::new(epsilon.get() * (0.5 * epsilon.get()).tanh() * (1.0 + 4.0 * f64::EPSILON))
}

/// The classical, looser ρ = ε²/2 (Bun and Steinke 2016).
pub fn pure_to_zcdp_bun_steinke(epsilon: Epsilon) -> Result<Rho> {
    Rho::new(0.5 * epsilon.get().powi(2))
}

/// ε-DP implies Rényi DP of order α with the divergence of randomised response, which is tight.
pub fn pure_to_renyi(epsilon: Epsilon, order: Order) -> f64 {
    randomized_response_divergence(epsilon.get(), order.get())
}

pub(crate) fn randomized_response_divergence(epsilon: f64, order: f64) -> f64 {
    if epsilon == 0.0 {
        return 0.0;
    }
    // E_Q[(P/Q)^α] − 1 = e^{(1−α)ε}(e^{αε}−1)(e^{(α−1)ε}−1)/(1+e^ε), a product of positive terms.
    let excess = order - 1.0;
    let mut sum = LogSum::new();
    sum.add(
        -excess * epsilon
            + crate::math::log_exp_m1(order * epsilon)
            + crate::math::log_exp_m1(excess * epsilon)
            - crate::math::log_mix_exp(0.5, epsilon)
            - std::f64::consts::LN_2,
    );
    (sum.ln_1p() / excess).min(epsilon)
}

/// The law of the ℓ2 K-norm mechanism, density ∝ exp(−ε‖z‖/Δ): the norm is Gamma distributed,
/// the direction uniform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KNormLaw {
    /// Shape of the Gamma law of ‖z‖: the dimension.
    pub shape: u64,
    /// Its scale Δ/ε.
    pub scale: f64,
}

impl KNormLaw {
    /// The noise that makes a query of this ℓ2 sensitivity ε-DP.
    pub fn new(dimension: u64, l2_sensitivity: Sensitivity, epsilon: Epsilon) -> Result<Self> {
        if dimension == 0 {
            return Err(crate::Error::InvalidParameter {
                name: "dimension",
                value: "0".into(),
                requirement: "a whole number >= 1",
            });
        }
        Ok(Self { shape: dimension, scale: l2_sensitivity.get() / epsilon.positive()?.get() })
    }

    /// E‖z‖ = d·Δ/ε.
    pub fn mean_norm(&self) -> f64 {
        self.shape as f64 * self.scale
    }

    /// E‖z‖² = d(d+1)(Δ/ε)².
    pub fn mean_squared_norm(&self) -> f64 {
        self.shape as f64 * (self.shape as f64 + 1.0) * self.scale * self.scale
    }
}
