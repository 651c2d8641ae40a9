//! Rényi DP: the divergence of each order adds; the best order converts to (ε, δ).
//!
//! Poisson sampling, add/remove: integer orders by the binomial sum of Mironov, Talwar and Zhang
//! (2019), who also show that the removal direction dominates; other orders, and replace-one, by
//! quadrature of
//! $$E_Q[(P/Q)^\alpha]-1=E_Q[(1+v)^\alpha-1-\alpha v],\qquad v=P/Q-1,\ E_Q[v]=0,$$
//! whose integrand is non-negative: no cancellation however small q or 1/σ are. The trapezoidal
//! rule converges exponentially here, because the integrand is analytic in a strip of half-width
//! π/μ and decays like a Gaussian.
//!
//! Fixed-size sampling: Theorem 9 of Wang, Balle and Kasiviswanathan (2019) at integer orders,
//! interpolated by the convexity of (α−1)τ between them.

use super::{Accountant, epsilon_in_range};
use crate::convert::{self, renyi};
use crate::math::{LogSum, add_up, log_mix_exp};
use crate::{Adjacency, CountedEvent, Delta, Epsilon, Error, Event, Order, Result, Steps};
use std::collections::HashMap;

/// The orders that the accountant keeps: 1.1 to 10.9 in tenths, 11 to 63, 128, 256, 512, 1024.
pub fn default_orders() -> Vec<Order> {
    (11..110)
        .map(|tenths| f64::from(tenths) / 10.0)
        .chain((11..64).map(f64::from))
        .chain([128.0, 256.0, 512.0, 1024.0])
        .map(|order| Order::new(order).expect("above 1"))
        .collect()
}

/// Adds Rényi divergences at a fixed set of orders.
#[derive(Debug, Clone)]
pub struct RdpAccountant {
    adjacency: Adjacency,
    orders: Vec<Order>,
    divergences: Vec<f64>,
}

impl RdpAccountant {
    /// Nothing composed yet, at [`default_orders`].
    pub fn new(adjacency: Adjacency) -> Self {
        Self::with_orders(adjacency, default_orders())
    }

    /// Nothing composed yet, at the given orders.
    pub fn with_orders(adjacency: Adjacency, orders: Vec<Order>) -> Self {
        let divergences = vec![0.0; orders.len()];
        Self { adjacency, orders, divergences }
    }

    /// The order that gives [`Accountant::epsilon`] at δ.
    pub fn best_order(&self, delta: Delta) -> Result<Order> {
        Ok(self.best(delta)?.1)
    }

    fn best(&self, delta: Delta) -> Result<(f64, Order)> {
        let log_delta = delta.positive()?.get().ln();
        self.orders
            .iter()
            .zip(&self.divergences)
            .map(|(&order, &tau)| {
                (if tau == 0.0 { 0.0 } else { convert_epsilon(order.get(), tau, log_delta) }, order)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .ok_or(Error::InvalidParameter {
                name: "orders",
                value: "none".into(),
                requirement: "at least one order",
            })
    }
}

/// Rounded up: each term is good to a few units in its last place.
fn convert_epsilon(order: f64, tau: f64, log_delta: f64) -> f64 {
    let terms = tau + (1.0 - 1.0 / order).ln().abs() + (log_delta.abs() + order.ln()) / (order - 1.0);
    (renyi::epsilon(order, tau, log_delta) + 4.0 * f64::EPSILON * terms).max(0.0)
}

/// The divergence of one occurrence, rounded up. Sums and integrals have logarithms of up to 3e4 (k·ln q with k = 1024)
/// as terms, each good to its last place. A divergence below the range of numbers is not none.
fn divergence_above(event: &Event, adjacency: Adjacency, order: Order) -> Result<f64> {
    let tau = renyi_divergence(event, adjacency, order)?;
    let error = match event {
        _ if event.gaussian_mu(adjacency).is_some() => 8.0 * f64::EPSILON,
        Event::Zcdp { rho } if rho.get() == 0.0 => return Ok(0.0),
        Event::Pure { epsilon } if epsilon.get() == 0.0 => return Ok(0.0),
        Event::Zcdp { .. } => 4.0 * f64::EPSILON,
        Event::PoissonGaussian { .. } | Event::FixedSizeGaussian { .. } => 1e-10,
        _ => 1e-12,
    };
    Ok((tau * (1.0 + error)).max(f64::MIN_POSITIVE))
}

impl Accountant for RdpAccountant {
    fn name(&self) -> &'static str {
        "rdp"
    }

    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    fn compose(&mut self, event: &Event, count: Steps) -> Result<()> {
        let added: Vec<f64> = self
            .orders
            .iter()
            .map(|&order| divergence_above(event, self.adjacency, order))
            .collect::<Result<_>>()?;
        for (total, tau) in self.divergences.iter_mut().zip(added) {
            *total = add_up(*total, (tau * count.get() as f64).next_up());
        }
        Ok(())
    }

    /// Composes a list; the divergences of equal events are computed once.
    fn compose_all(&mut self, events: &[CountedEvent]) -> Result<()> {
        let mut places = HashMap::new();
        let mut merged: Vec<CountedEvent> = Vec::new();
        for one in events {
            let place = *places.entry(one.event.key()).or_insert(merged.len());
            match merged.get_mut(place).map(|known| (known.count.get() + one.count.get(), known)) {
                // A total that is no count is composed in parts.
                Some((total, known)) => match Steps::new(total) {
                    Ok(total) => known.count = total,
                    Err(_) => self.compose(&one.event, one.count)?,
                },
                None => merged.push(one.clone()),
            }
        }
        merged.iter().try_for_each(|one| self.compose(&one.event, one.count))
    }

    fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        epsilon_in_range(self.best(delta)?.0)
    }

    fn delta(&self, epsilon: Epsilon) -> Result<Delta> {
        let log_delta = self
            .orders
            .iter()
            .zip(&self.divergences)
            .map(|(order, &tau)| {
                if tau == 0.0 {
                    f64::NEG_INFINITY
                } else {
                    renyi::log_delta_above(order.get(), tau, epsilon.get())
                }
            })
            .fold(0.0, f64::min);
        Ok(if log_delta == f64::NEG_INFINITY {
            Delta::saturating(0.0)
        } else {
            Delta::not_pure(log_delta.exp() * (1.0 + 4.0 * f64::EPSILON))
        })
    }
}

/// The Rényi divergence of one occurrence of `event` at one order.
pub fn renyi_divergence(event: &Event, adjacency: Adjacency, order: Order) -> Result<f64> {
    event.check(adjacency)?;
    let alpha = order.get();
    if let Some(mu) = event.gaussian_mu(adjacency) {
        return Ok(0.5 * alpha * mu * mu);
    }
    Ok(match event {
        Event::Laplace { dimension: 1, .. } => {
            laplace(event.pure_epsilon(adjacency).expect("Laplace is pure"), alpha)
        }
        Event::Laplace { .. } | Event::KNorm { .. } | Event::Pure { .. } => {
            convert::pure_to_renyi(Epsilon::new(event.pure_epsilon(adjacency).expect("pure event"))?, order)
        }
        Event::PoissonGaussian { noise_multiplier, sample_rate } => {
            let (q, mu) = (sample_rate.get().max(SMALLEST_RATE), 1.0 / noise_multiplier.get());
            match adjacency {
                Adjacency::AddRemove if alpha.fract() == 0.0 => poisson_integer(q, mu, alpha),
                Adjacency::AddRemove => poisson_quadrature(q, mu, alpha),
                Adjacency::ReplaceOne => poisson_replace(q, mu, alpha),
            }
        }
        Event::FixedSizeGaussian { noise_multiplier, sample_rate } => {
            fixed_size(sample_rate.get().max(SMALLEST_RATE), 2.0 / noise_multiplier.get(), alpha)
        }
        Event::Zcdp { rho } => rho.get() * alpha,
        Event::Gaussian { .. } | Event::OnePassGaussian { .. } => unreachable!("handled by gaussian_mu"),
    })
}

/// Mironov 2017, Table II, without the terms of first order, which cancel.
fn laplace(epsilon: f64, alpha: f64) -> f64 {
    let (up, down) = (alpha / (2.0 * alpha - 1.0), (alpha - 1.0) / (2.0 * alpha - 1.0));
    let rise = (alpha - 1.0) * epsilon;
    if rise > 30.0 {
        let mut sum = LogSum::new();
        sum.add(up.ln() + rise);
        sum.add(down.ln() - alpha * epsilon);
        return (sum.ln() / (alpha - 1.0)).min(epsilon);
    }
    // up·(e^a − 1) + down·(e^{−b} − 1), of which up·a − down·b = 0 is taken away term by term.
    let excess = up * beyond_linear(rise) + down * beyond_linear(-alpha * epsilon);
    (excess.ln_1p() / (alpha - 1.0)).min(epsilon)
}

/// e^x − 1 − x.
fn beyond_linear(x: f64) -> f64 {
    if x.abs() > 0.5 {
        return x.exp_m1() - x;
    }
    let mut sum = 1.0;
    for n in (3..=16).rev() {
        sum = 1.0 + sum * x / f64::from(n);
    }
    0.5 * x * x * sum
}

/// τ = ln(1 + Σ_{k≥2} C(α,k)(1−q)^{α−k} q^k (e^{(k²−k)μ²/2} − 1)) / (α−1): the binomial sum with
/// Σ_k C(α,k)(1−q)^{α−k}q^k = 1 taken out, so that all terms are positive.
fn poisson_integer(q: f64, mu: f64, alpha: f64) -> f64 {
    let mut log_binomial = alpha.ln();
    let mut sum = LogSum::new();
    for k in 2..=alpha as u32 {
        let k = f64::from(k);
        log_binomial += ((alpha - k + 1.0) / k).ln();
        let exponent = 0.5 * k * (k - 1.0) * mu * mu;
        sum.add(log_binomial + (alpha - k) * (-q).ln_1p() + k * q.ln() + crate::math::log_exp_m1(exponent));
    }
    sum.ln_1p() / (alpha - 1.0)
}

/// Removal pair P = (1−q)N(0)+qN(μ), Q = N(0): v = q(e^{μy−μ²/2} − 1).
fn poisson_quadrature(q: f64, mu: f64, alpha: f64) -> f64 {
    quadrature(alpha, (-12.0, alpha * mu + 12.0), mu, 0.5 * alpha * mu * mu, |y| {
        let shift = mu * (y - 0.5 * mu);
        Node { log_q: log_density(y), log_ratio: log_mix_exp(q, shift) }
    })
}

/// Replacement pair P = (1−q)N(0)+qN(μ), Q = (1−q)N(0)+qN(−μ).
fn poisson_replace(q: f64, mu: f64, alpha: f64) -> f64 {
    let range = (-mu - 12.0, (2.0 * alpha - 1.0) * mu + 12.0);
    quadrature(alpha, range, mu, 2.0 * alpha * mu * mu, |y| {
        let (up, down) = (mu * (y - 0.5 * mu), -mu * (y + 0.5 * mu));
        let log_below = log_mix_exp(q, down);
        Node { log_q: log_density(y) + log_below, log_ratio: log_mix_exp(q, up) - log_below }
    })
}

fn log_density(y: f64) -> f64 {
    -0.5 * y * y - 0.918_938_533_204_672_7
}

/// Smaller rates are accounted as this one, which costs more.
const SMALLEST_RATE: f64 = 1e-12;

/// A quadrature longer than this is not worth its time.
const MOST_NODES: f64 = 400_000.0;

/// One node of the quadrature: ln Q and ln(P/Q) at a point.
struct Node {
    log_q: f64,
    log_ratio: f64,
}

fn quadrature(
    alpha: f64,
    (from, to): (f64, f64),
    mu: f64,
    unsampled: f64,
    node: impl Fn(f64) -> Node,
) -> f64 {
    // Strip half-width π/μ: an error of e^{−2π·π/(μh)} ≤ e^{−39} at h = 0.5/μ; the Gaussian
    // factor alone would give e^{−2π²/h²} ≤ e^{−120} at h = 0.4.
    let step = (0.5 / mu).min(0.4);
    let count = ((to - from) / step).ceil();
    if count >= MOST_NODES || count.is_nan() {
        // Hardly any noise: sampling cannot help much, and never hurts.
        return unsampled;
    }
    let count = count as u64;
    let mut sum = LogSum::new();
    for i in 0..=count {
        let Node { log_q, log_ratio } = node(from + i as f64 * step);
        sum.add(log_q + log_excess_power(alpha, log_ratio));
    }
    let mut total = LogSum::new();
    total.add(sum.ln() + step.ln());
    (total.ln_1p() / (alpha - 1.0)).min(unsampled)
}

/// ln((1+v)^α − 1 − αv) for α > 1, given ln(1+v).
fn log_excess_power(alpha: f64, log_ratio: f64) -> f64 {
    let power = alpha * log_ratio;
    if power > 36.0 {
        let rest = (alpha - 1.0) * (-power).exp() - alpha * (log_ratio - power).exp();
        return power + rest.ln_1p();
    }
    let v = log_ratio.exp_m1();
    if v.abs() * alpha.max(2.0) < 0.3 {
        // Binomial series Σ_{n≥2} C(α,n) vⁿ; the direct form would cancel.
        let mut term = 0.5 * alpha * (alpha - 1.0) * v * v;
        let mut total = term;
        let mut n = 2.0;
        while term.abs() > 1e-17 * total.abs() && n < 60.0 {
            term *= (alpha - n) / (n + 1.0) * v;
            total += term;
            n += 1.0;
        }
        return total.ln();
    }
    (power.exp_m1() - alpha * v).ln()
}

/// Wang, Balle and Kasiviswanathan 2019, Theorem 9, with μ = 2C/σ; between integer orders (α−1)τ
/// is interpolated linearly, which convexity makes an upper bound (it is 0 at α = 1).
fn fixed_size(q: f64, mu: f64, alpha: f64) -> f64 {
    let below = alpha.floor();
    if below == alpha {
        return fixed_size_integer(q, mu, alpha);
    }
    let weight = alpha - below;
    let low = if below == 1.0 { 0.0 } else { (below - 1.0) * fixed_size_integer(q, mu, below) };
    let high = below * fixed_size_integer(q, mu, below + 1.0);
    ((1.0 - weight) * low + weight * high) / (alpha - 1.0)
}

fn fixed_size_integer(q: f64, mu: f64, alpha: f64) -> f64 {
    let mut log_binomial = (0.5 * alpha * (alpha - 1.0)).ln();
    let mut sum = LogSum::new();
    // q²C(α,2)·min{4(e^{μ²}−1), 2e^{μ²}}
    let squared = mu * mu;
    let second = (4f64.ln() + crate::math::log_exp_m1(squared)).min(2f64.ln() + squared);
    sum.add(2.0 * q.ln() + log_binomial + second);
    for j in 3..=alpha as u32 {
        let j = f64::from(j);
        log_binomial += ((alpha - j + 1.0) / j).ln();
        sum.add(2f64.ln() + j * q.ln() + log_binomial + 0.5 * j * (j - 1.0) * squared);
    }
    // Sampling never hurts: the unsampled divergence bounds it as well.
    (sum.ln_1p() / (alpha - 1.0)).min(0.5 * alpha * squared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::normal;

    /// Two independent routes to the same divergence.
    #[test]
    fn binomial_sum_equals_quadrature() {
        for (q, mu) in [(0.01, 1.0), (0.1, 0.25), (0.5, 3.0), (1e-6, 5.0), (1e-5, 1e-3), (0.9, 0.7)] {
            for alpha in [2.0, 3.0, 8.0, 17.0, 63.0] {
                let (sum, integral) = (poisson_integer(q, mu, alpha), poisson_quadrature(q, mu, alpha));
                assert!((sum / integral - 1.0).abs() < 1e-11, "{q} {mu} {alpha}: {sum} {integral}");
            }
        }
    }

    #[test]
    fn replacement_reaches_the_unsampled_limit() {
        for alpha in [1.3, 2.0, 9.0] {
            let (mu, q) = (0.4, 1.0 - 1e-12);
            let want = 2.0 * alpha * mu * mu;
            assert!((poisson_replace(q, mu, alpha) / want - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_normal_density_is_normalised() {
        assert!((log_density(0.7).exp() - normal::density(0.7)).abs() < 1e-16);
    }
}
