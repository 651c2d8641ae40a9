//! Rényi DP at one order → (ε, δ).

use crate::{Delta, Epsilon, Order, Result};

/// The best known conversion (Balle et al. 2020; Canonne, Kamath, Steinke 2020):
/// ε = τ + ln((α−1)/α) − (ln δ + ln α)/(α−1), never below 0.
pub fn renyi_to_epsilon(order: Order, divergence: f64, delta: Delta) -> Result<Epsilon> {
    let log_delta = delta.positive()?.get().ln();
    Epsilon::new(epsilon(order.get(), divergence, log_delta).max(0.0))
}

pub(crate) fn epsilon(order: f64, divergence: f64, log_delta: f64) -> f64 {
    let excess = order - 1.0;
    divergence + (excess / order).ln() - (log_delta + order.ln()) / excess
}

/// Mironov's original ε = τ + ln(1/δ)/(α−1); looser, kept to compare with other libraries.
pub fn renyi_to_epsilon_mironov(order: Order, divergence: f64, delta: Delta) -> Result<Epsilon> {
    let log_delta = delta.positive()?.get().ln();
    Epsilon::new(divergence - log_delta / (order.get() - 1.0))
}

/// δ = e^{(α−1)(τ−ε)} (1−1/α)^{α−1} / α, the same theorem solved for δ.
pub fn renyi_to_delta(order: Order, divergence: f64, epsilon: Epsilon) -> Delta {
    Delta::saturating(log_delta(order.get(), divergence, epsilon.get()).exp())
}

pub(crate) fn log_delta(order: f64, divergence: f64, epsilon: f64) -> f64 {
    let excess = order - 1.0;
    excess * (divergence - epsilon + (excess / order).ln()) - order.ln()
}

/// The same, rounded up: each term is good to a few units in its last place.
pub(crate) fn log_delta_above(order: f64, divergence: f64, epsilon: f64) -> f64 {
    let excess = order - 1.0;
    let terms = excess * (divergence + epsilon + (excess / order).ln().abs()) + order.ln();
    log_delta(order, divergence, epsilon) + 4.0 * f64::EPSILON * terms
}
