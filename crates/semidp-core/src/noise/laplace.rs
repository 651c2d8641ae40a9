//! The rounded Laplace law: round(X) with X of density e^{−|x|/b}/2b, exactly, from integers alone.
//!
//! Like the rounded Gaussian it is a function of the continuous mechanism's output, so that both the
//! pure ε and the (ε, δ) curve of the continuous mechanism hold word for word. (The *discrete*
//! Laplace law ∝ e^{−|k|/b} has the same ε but a slightly worse curve: its total variation at
//! sensitivity 1 is tanh(1/2b), above 1 − e^{−1/2b}.)
//!
//! P(|round(X)| ≥ k) = e^{−(2k−1)/2b}, so |round(X)| = ⌊(G + 1)/2⌋ for a geometric G with
//! P(G ≥ m) = e^{−m/2b}. G is drawn as in Canonne, Kamath and Steinke (2020): G = U + 2b·V with V
//! geometric of ratio 1/e and U uniform below 2b, kept with probability e^{−U/2b}; and an event of
//! probability e^{−γ}, γ ≤ 1, by von Neumann's alternating series of events of probability γ/k. Every
//! coin is a uniform integer below a bound: there is no approximation.

use super::rng::Stream;

/// Adds round(X) to every number, independently, for b = `scale` grid steps.
pub(crate) fn add_rounded_laplace(values: &mut [i64], scale: u64, stream: &mut Stream) {
    for value in values {
        let magnitude = geometric(2 * scale, stream).div_ceil(2) as i64;
        let negative = stream.word() & 1 == 1;
        *value = value.wrapping_add(if negative { -magnitude } else { magnitude });
    }
}

/// G with P(G ≥ m) = e^{−m/length}.
fn geometric(length: u64, stream: &mut Stream) -> u64 {
    let rest = loop {
        let rest = stream.below(length);
        if happens_exp_minus(rest, length, stream) {
            break rest;
        }
    };
    let mut whole = 0;
    while happens_exp_minus(1, 1, stream) {
        whole += 1;
    }
    rest + length * whole
}

/// An event of probability e^{−a/b}, for a ≤ b.
fn happens_exp_minus(a: u64, b: u64, stream: &mut Stream) -> bool {
    let mut k = 1;
    while stream.below(b * k) < a {
        k += 1;
    }
    k % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Purpose, Randomness};
    use super::*;

    fn draws(scale: u64, count: usize) -> Vec<i64> {
        let mut stream = Randomness::Seed(11).key(0).unwrap().stream(Purpose::Noise, 0, 0);
        let mut values = vec![0; count];
        add_rounded_laplace(&mut values, scale, &mut stream);
        values
    }

    /// DKW: with N = 200,000 draws the empirical distribution function is within 0.00732 of the true
    /// one except with probability 1e-9.
    #[test]
    fn follows_the_rounded_law() {
        for scale in [1u64, 5, 1000, 1 << 22] {
            let values = draws(scale, 200_000);
            let b = scale as f64;
            for i in -40..=40 {
                let k = (0.1 * f64::from(i) * b).round();
                // P(round(X) ≤ k) = F(k + 1/2).
                let x = k + 0.5;
                let exact = if x < 0.0 { 0.5 * (x / b).exp() } else { 1.0 - 0.5 * (-x / b).exp() };
                let found = values.iter().filter(|&&v| v as f64 <= k).count() as f64 / 200_000.0;
                assert!((found - exact).abs() < 0.007_32, "{scale} {k}: {found} {exact}");
            }
        }
    }

    #[test]
    fn mean_and_variance() {
        let values = draws(1 << 20, 200_000);
        let b = (1u64 << 20) as f64;
        let mean = values.iter().map(|&v| v as f64).sum::<f64>() / 2e5;
        let square = values.iter().map(|&v| (v as f64).powi(2)).sum::<f64>() / 2e5;
        // sd of X is √2 b, of X² it is √20 b²; 6.5 standard errors.
        assert!(mean.abs() < 6.5 * 2f64.sqrt() * b / 2e5f64.sqrt());
        assert!((square / (2.0 * b * b) - 1.0).abs() < 6.5 * 20f64.sqrt() / 2.0 / 2e5f64.sqrt());
    }
}
