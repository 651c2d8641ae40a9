//! Duchi, Jordan and Wainwright (2018): the half of the sphere that x points to, or the other one.

use super::sphere::root_gamma_ratio;
use super::{Cap, Directions, LocalMechanism};
use crate::Epsilon;
use std::f64::consts::PI;

/// Halves of the sphere.
pub(super) static DUCHI: LocalMechanism = LocalMechanism {
    name: "duchi",
    about: "a point of the half of the sphere around the vector, or of the other half",
    is_exact: true,
    best,
};

fn best(dimension: usize, epsilon: Epsilon) -> Cap {
    let e = epsilon.get();
    let (p, beyond) = Cap::spending(epsilon, 0.5);
    // B = coth(ε/2)·√π·Γ((d+1)/2)/Γ(d/2) = 1/m.
    let stretch = PI.sqrt() * root_gamma_ratio(0.5 * dimension as f64);
    let m = (0.5 * e).tanh() / stretch;
    let mse = match dimension {
        1 => 1.0 / (0.5 * e).sinh().powi(2),
        _ => (1.0 - m) * (1.0 + m) / (m * m),
    };
    Cap {
        mechanism: DUCHI.name,
        directions: Directions::Sphere,
        dimension,
        epsilon,
        gamma: 0.0,
        p,
        beyond,
        cap_probability: 0.5,
        m,
        mse,
        ranks: None,
    }
}
