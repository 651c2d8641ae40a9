//! The angle θ between a uniform point of the sphere and a fixed one has density c_d sin^{d−2} θ.

use crate::math::quadrature::{gauss_legendre, integral};
use std::f64::consts::{FRAC_PI_2, PI};

/// How many standard deviations of ⟨U, v⟩ beyond the rim of a cap count: what lies further is a share below e^{−40} of it, less than the
/// rounding of the result. (What is drawn has no such limit.)
const WIDTH: f64 = 9.0;
const PANELS: usize = 32;

/// Γ(x + ½)/Γ(x).
///
/// The asymptotic series in 1/x at x ≥ 40, where its first term left out is below 10⁻¹⁶, shifted there by
/// f(x) = f(x+1)·x/(x+½).
pub(super) fn root_gamma_ratio(x: f64) -> f64 {
    let (mut x, mut factor) = (x, 1.0);
    while x < 40.0 {
        factor *= x / (x + 0.5);
        x += 1.0;
    }
    let y = 1.0 / x;
    let terms = [
        1.0,
        -1.0 / 8.0,
        1.0 / 128.0,
        5.0 / 1024.0,
        -21.0 / 32768.0,
        -399.0 / 262144.0,
        869.0 / 4194304.0,
        39325.0 / 33554432.0,
    ];
    factor * x.sqrt() * terms.iter().rev().fold(0.0, |sum, term| sum * y + term)
}

/// c_d/(d−1) for d ≥ 2, where c_d = Γ(d/2)/(√π Γ((d−1)/2)).
pub(super) fn half_width_constant(dimension: usize) -> f64 {
    density_constant(dimension) / (dimension - 1) as f64
}

/// c_d.
pub(super) fn density_constant(dimension: usize) -> f64 {
    root_gamma_ratio(0.5 * (dimension - 1) as f64) / PI.sqrt()
}

/// P(θ ≤ angle) for d ≥ 2 and an angle up to π/2, with small relative error however small.
pub(super) fn cap_of_angle(dimension: usize, angle: f64) -> f64 {
    let power = (dimension - 2) as f64;
    let top = angle.cos() + WIDTH / (dimension as f64).sqrt();
    let from = if top < 1.0 { top.acos() } else { 0.0 };
    let density = |theta: f64| match theta < 0.8 {
        true => theta.sin().powf(power),
        false => (0.5 * power * (-theta.cos().powi(2)).ln_1p()).exp(),
    };
    let rule = gauss_legendre::<16>();
    density_constant(dimension) * integral(&rule, (from, angle), PANELS, density)
}

/// P(⟨U, v⟩ ≥ γ) for U uniform on the sphere.
pub fn cap_probability(dimension: usize, gamma: f64) -> f64 {
    match (dimension, gamma) {
        (_, g) if g <= -1.0 => 1.0,
        (_, g) if g > 1.0 => 0.0,
        (1, _) => 0.5,
        (_, g) if g < 0.0 => 1.0 - cap_of_angle(dimension, FRAC_PI_2 - (-g).asin()),
        (_, g) => cap_of_angle(dimension, g.acos()),
    }
}
