//! PrivUnit (Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018) with the best cap for its ε: the optimal randomiser of unit
//! vectors (Asi, Feldman and Talwar 2022).
//!
//! With p bound to Q by ε, m as a function of γ has m' = m(d−1)(m−γ)/(1−γ²): it grows as long as it is above γ, and is
//! largest where m(γ) = γ.

use super::sphere::{cap_of_angle, half_width_constant};
use super::{Cap, Directions, LocalMechanism, duchi};
use crate::Epsilon;
use crate::math::search::bisect;
use std::f64::consts::FRAC_PI_2;

/// Caps of the sphere.
pub(super) static PRIVUNIT: LocalMechanism = LocalMechanism {
    name: "privunit",
    about: "a point of the best cap of the sphere around the vector, or from beyond it",
    is_exact: false,
    best,
};

fn best(dimension: usize, epsilon: Epsilon) -> Cap {
    if dimension == 1 {
        // Two points: both halves are all there is.
        return Cap { mechanism: PRIVUNIT.name, ..(duchi::DUCHI.best)(1, epsilon) };
    }
    let growth = epsilon.get().exp_m1();
    let m_of = |angle: f64| {
        let cap = cap_of_angle(dimension, angle);
        // c_d (1−γ²)^{(d−1)/2} / (d−1): the mean of ⟨U, v⟩ over the cap, times Q.
        let above = half_width_constant(dimension) * ((dimension - 1) as f64 * log_sine(angle)).exp();
        above * growth / (1.0 + growth * cap)
    };
    // γ = cos(angle), from the half sphere to a point.
    let (angle, _) = bisect(0.0, FRAC_PI_2, |angle| m_of(angle) > angle.cos());
    let angle = angle.max(f64::MIN_POSITIVE);
    let cap_probability = cap_of_angle(dimension, angle);
    let (p, beyond) = Cap::spending(epsilon, cap_probability);
    Cap {
        mechanism: PRIVUNIT.name,
        directions: Directions::Sphere,
        dimension,
        epsilon,
        gamma: angle.cos(),
        p,
        beyond,
        cap_probability,
        m: m_of(angle),
        mse: angle.tan().powi(2),
        ranks: None,
    }
}

/// ln sin, accurate where the sine is near 1.
fn log_sine(angle: f64) -> f64 {
    if angle < 0.8 { angle.sin().ln() } else { 0.5 * (-angle.cos().powi(2)).ln_1p() }
}
