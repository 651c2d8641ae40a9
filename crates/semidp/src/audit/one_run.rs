//! Lower bounds from guesses about many canaries in one run (Steinke, Nasr and Jagielski 2023).
//!
//! Every canary was put on one of two sides by a fair coin, and the mechanism is (ε, δ)-DP in each of them. An auditor who sees the
//! output guesses the sides of r of m canaries. The chance of v right guesses or more is at most
//!
//! $$ P[W \ge v] + 2 m \delta \max_{1\le i\le m} \frac{P[v > W \ge v - i]}{i}, \qquad W \sim \mathrm{Bin}\Big(r, \frac{e^ε}{1+e^ε}\Big). $$
//!
//! Runs on canaries of their own are one run on all of them: each canary has a part in one only. r must not follow the coins that
//! are counted.

use crate::{Error, Result};

/// How guesses came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    /// m.
    pub canaries: u64,
    /// r, of which
    pub made: u64,
    /// v were right.
    pub right: u64,
}

impl Guesses {
    fn check(&self) -> Result<()> {
        if self.right > self.made || self.made > self.canaries {
            let value = format!("{} of {} of {}", self.right, self.made, self.canaries);
            return Err(Error::invalid("guesses", value, "right <= made <= canaries"));
        }
        Ok(())
    }
}

/// The chance of so many right guesses at most, for any (ε, δ)-DP mechanism and any auditor.
pub fn one_run_p_value(guesses: &Guesses, epsilon: f64, delta: f64) -> Result<f64> {
    guesses.check()?;
    Ok(p_value(guesses, epsilon, delta))
}

/// The largest ε that these guesses refute with this confidence; 0 if they refute none.
pub fn one_run_epsilon(guesses: &Guesses, delta: f64, confidence: f64) -> Result<f64> {
    guesses.check()?;
    super::check_confidence(confidence)?;
    Ok(largest_refuted(guesses, delta, 1.0 - confidence))
}

pub(super) fn largest_refuted(guesses: &Guesses, delta: f64, miss: f64) -> f64 {
    let is_refuted = |epsilon: f64| p_value(guesses, epsilon, delta) <= miss;
    if !is_refuted(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while is_refuted(high) && high < 100.0 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if is_refuted(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn p_value(guesses: &Guesses, epsilon: f64, delta: f64) -> f64 {
    let Guesses { canaries, made, right } = *guesses;
    // P[W ≥ v] is the chance that Beta(v, r − v + 1) is at most p.
    let p = 1.0 / (1.0 + (-epsilon).exp());
    let (r, v) = (made as f64, right as f64);
    let tail = if right == 0 { 1.0 } else { super::incomplete_beta(v, r - v + 1.0, p) };
    if delta == 0.0 || right == 0 {
        return tail.min(1.0);
    }
    // P[W = v − 1] and downwards. 1 − p has its own formula: p may be too near to 1 to tell.
    let (odds, beyond) = ((-epsilon).exp(), (-epsilon).exp() / (1.0 + (-epsilon).exp()));
    let first = right - 1;
    let log_choose = libm::lgamma(r + 1.0) - libm::lgamma(v) - libm::lgamma(r - v + 2.0);
    let mut chance = (log_choose + first as f64 * p.ln() + (r - v + 1.0) * beyond.ln()).exp();
    let (mut sum, mut most) = (0.0, 0.0f64);
    for i in 1..=canaries.min(right) {
        let k = (right - i) as f64;
        sum += chance;
        let mean = sum / i as f64;
        most = most.max(mean);
        // From k to k − 1. Terms rise up to the mode and fall beyond it: once one is below the mean, all are.
        chance *= k / (r - k + 1.0) * odds;
        if chance < mean {
            break;
        }
    }
    (tail + 2.0 * canaries as f64 * delta * most).min(1.0)
}
