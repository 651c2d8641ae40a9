//! Dominating pairs (P, Q): the one-dimensional experiments whose privacy loss bounds that of an
//! event in any dimension. Noise is scaled to std 1, so a shift is μ = sensitivity/σ.

use crate::convert::{gaussian_delta_value, gaussian_excess, mills_drop};
use crate::math::{divide_up, log_mix_exp, normal};
use crate::{Adjacency, Error, Event, Result};

/// The loss is L = ln(P/Q) under P; it is non-decreasing in the observation y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pair {
    /// P = N(μ), Q = N(0). Symmetric.
    Gaussian { mu: f64 },
    /// P = (1−q)N(0)+qN(μ), Q = N(0): Poisson sampling, one unit removed. The addition of a unit
    /// is the same pair read backwards.
    Removal { q: f64, mu: f64 },
    /// P = (1−q)N(0)+qN(μ), Q = (1−q)N(0)+qN(−μ): Poisson sampling, one unit replaced. It
    /// dominates every replacement in any dimension (docs/replace-one.md). Symmetric.
    Replacement { q: f64, mu: f64 },
    /// Fixed-size sampling, one unit replaced: the removal curve with μ = 2C/σ for ε ≥ 0 and its
    /// symmetric extension for ε < 0; a certified upper curve under composition. Symmetric.
    FixedSize { q: f64, mu: f64 },
    /// Laplace noise on one coordinate, ε = sensitivity/scale. Symmetric.
    Laplace { epsilon: f64 },
    /// Any ε-DP mechanism: randomised response dominates it. Symmetric.
    Pure { epsilon: f64 },
}

impl Pair {
    /// The pair of one occurrence of an event.
    pub(crate) fn of(event: &Event, adjacency: Adjacency) -> Result<Self> {
        event.check(adjacency)?;
        if let Some(mu) = event.gaussian_mu(adjacency) {
            return Ok(Self::Gaussian { mu: mu.min(LARGEST_MU) });
        }
        Ok(match event {
            Event::PoissonGaussian { noise_multiplier, sample_rate }
            | Event::FixedSizeGaussian { noise_multiplier, sample_rate } => {
                // A larger sampling rate only costs more, and no sampling most of all: far outside
                // the supported range these bounds keep the arithmetic sound.
                let q = sample_rate.get().max(SMALLEST_RATE);
                let mu = divide_up(1.0, noise_multiplier.get()).min(LARGEST_MU);
                let sensitivity = adjacency.sensitivity_factor();
                match (event, adjacency) {
                    _ if mu < SMALLEST_MU => Self::Gaussian { mu: sensitivity * mu },
                    (Event::FixedSizeGaussian { .. }, _) => Self::FixedSize { q, mu: sensitivity * mu },
                    (_, Adjacency::AddRemove) => Self::Removal { q, mu },
                    (_, Adjacency::ReplaceOne) => Self::Replacement { q, mu },
                }
            }
            Event::Laplace { dimension: 1, .. } => {
                Self::Laplace { epsilon: event.pure_epsilon(adjacency).expect("Laplace is pure") }
            }
            // Several coordinates share the ℓ1 sensitivity in a way that one Laplace coordinate
            // is not known to dominate; randomised response dominates any pure mechanism.
            Event::Laplace { .. } | Event::KNorm { .. } | Event::Pure { .. } => {
                Self::Pure { epsilon: event.pure_epsilon(adjacency).expect("pure event") }
            }
            _ => return Err(Error::unknown("pld", event)),
        })
    }

    /// Whether (P, Q) and (Q, P) have the same loss distribution.
    pub(crate) fn is_symmetric(self) -> bool {
        !matches!(self, Self::Removal { .. })
    }

    /// Whether a unit may be left out of the step.
    pub(crate) fn is_sampled(self) -> bool {
        matches!(self, Self::Removal { .. } | Self::Replacement { .. } | Self::FixedSize { .. })
    }

    /// (P(L > ε), Q(L > ε)) for ε ≥ 0.
    pub(crate) fn survival(self, epsilon: f64) -> (f64, f64) {
        match self {
            Self::Gaussian { mu } => {
                let y = epsilon / mu + 0.5 * mu;
                (normal::sf(y - mu), normal::sf(y))
            }
            Self::Removal { q, mu } | Self::FixedSize { q, mu } => {
                let y = removal_point(q, mu, epsilon).y;
                let (near, far) = (normal::sf(y), normal::sf(y - mu));
                ((1.0 - q) * near + q * far, near)
            }
            Self::Replacement { q, mu } => {
                let y = replacement_point(q, mu, epsilon).y;
                let none = (1.0 - q) * normal::sf(y);
                (none + q * normal::sf(y - mu), none + q * normal::sf(y + mu))
            }
            Self::Laplace { epsilon: all } if epsilon < all => {
                (1.0 - 0.5 * (-0.5 * (all - epsilon)).exp(), 0.5 * (-0.5 * (all + epsilon)).exp())
            }
            Self::Pure { epsilon: all } if epsilon < all => {
                (1.0 / (1.0 + (-all).exp()), 1.0 / (1.0 + all.exp()))
            }
            Self::Laplace { .. } | Self::Pure { .. } => (0.0, 0.0),
        }
    }

    /// δ(ε), ε ≥ 0, of a single occurrence in closed form, rounded up; the larger of the two directions.
    /// Sums and products of positive terms only: no difference cancels, however small δ is beside 1.
    pub(crate) fn delta(self, epsilon: f64) -> f64 {
        let unit = f64::EPSILON;
        let delta = match self {
            Self::Gaussian { mu } => gaussian_delta_value(mu, epsilon),
            Self::Removal { q, mu } => removal_delta(q, mu, epsilon).max(addition_delta(q, mu, epsilon)),
            Self::FixedSize { q, mu } => removal_delta(q, mu, epsilon),
            Self::Replacement { q, mu } => replacement_delta(q, mu, epsilon),
            // 1 − e^{(ε−ε₀)/2} and (e^{ε₀} − e^ε)/(1 + e^{ε₀}).
            Self::Laplace { epsilon: all } => -(0.5 * (epsilon - all).min(0.0)).exp_m1() * (1.0 + 4.0 * unit),
            Self::Pure { epsilon: all } => {
                -(epsilon - all).min(0.0).exp_m1() / (1.0 + (-all).exp()) * (1.0 + 8.0 * unit)
            }
        };
        delta.min(1.0)
    }

    /// δ(ε), ε ≥ 0, of `count` occurrences in closed form, rounded up: of one, or of at most [`MOST_RESPONSES`] randomised
    /// responses, whose losses (2k − n)ε₀ are binomial. From the largest loss down, as probabilities follow from
    /// their ratios; those below 2^-1022 are rounded up to it.
    pub(crate) fn repeated_delta(self, count: u64, epsilon: f64) -> f64 {
        let Self::Pure { epsilon: one } = self else { return self.delta(epsilon) };
        if count == 1 {
            return self.delta(epsilon);
        }
        let (n, odds) = (count as f64, (-one).exp());
        let mut probability = (-n * odds.ln_1p()).exp().max(f64::MIN_POSITIVE);
        let mut total = 0.0;
        for k in (0..=count).rev() {
            // Rounded once: the gap may be a small part of either.
            let gap = (2.0 * k as f64 - n).mul_add(one, -epsilon);
            if gap <= 0.0 {
                break;
            }
            total -= probability * (-gap).exp_m1();
            probability = (probability * (odds * k as f64 / (n - k as f64 + 1.0))).max(f64::MIN_POSITIVE);
        }
        // Each step of the recursion and the power of n have a relative error of a few units.
        (total * (1.0 + 16.0 * f64::EPSILON * (n + 1.0))).min(1.0)
    }

    /// The probability of loss 0, which the symmetric extension of fixed-size sampling has: the curve at 0 leaves
    /// (1−q)(1 − 2P(N > μ/2)).
    pub(crate) fn mass_at_zero(self) -> f64 {
        match self {
            Self::FixedSize { q, mu } => (1.0 - q) * libm::erf(mu / 8f64.sqrt()) * (1.0 + 8.0 * f64::EPSILON),
            _ => 0.0,
        }
    }

    /// The largest loss worth a grid point: beyond it P has at most `exp(log_tail)` mass. At most
    /// [`LARGEST_LOSS`], where e^L is still a number.
    pub(crate) fn largest_loss(self, log_tail: f64) -> f64 {
        let reach = normal::upper_quantile(log_tail);
        let loss = match self {
            Self::Gaussian { mu } => mu * (reach + 0.5 * mu),
            Self::Removal { q, mu } | Self::FixedSize { q, mu } => log_mix_exp(q, mu * (reach + 0.5 * mu)),
            Self::Replacement { q, mu } => {
                log_mix_exp(q, mu * (reach + 0.5 * mu)) - log_mix_exp(q, -mu * (reach + 1.5 * mu))
            }
            Self::Laplace { epsilon } | Self::Pure { epsilon } => epsilon,
        };
        loss.min(LARGEST_LOSS)
    }

    /// The smallest loss worth a grid point: below it Q has at most `exp(log_tail)` mass.
    pub(crate) fn smallest_loss(self, log_tail: f64) -> f64 {
        match self {
            Self::Removal { q, mu } => log_mix_exp(q, -mu * (normal::upper_quantile(log_tail) + 0.5 * mu)),
            _ => -self.largest_loss(log_tail),
        }
    }

    /// A loss that Q exceeds, and that the pair read backwards therefore falls below the negative
    /// of, with at most `exp(log_tail)` probability.
    pub(crate) fn deepest_loss(self, log_tail: f64) -> f64 {
        let reach = normal::upper_quantile(log_tail).max(0.0);
        let loss = match self {
            Self::Gaussian { mu } => mu * (reach - 0.5 * mu),
            Self::Removal { q, mu } | Self::FixedSize { q, mu } => log_mix_exp(q, mu * (reach - 0.5 * mu)),
            Self::Replacement { q, mu } => {
                log_mix_exp(q, mu * (reach - 0.5 * mu)) - log_mix_exp(q, -mu * (reach + 0.5 * mu))
            }
            Self::Laplace { epsilon } | Self::Pure { epsilon } => epsilon,
        };
        loss.max(0.0)
    }

    /// Where the grid starts counting. For small q almost all mass of the removal pair sits just
    /// above its lowest loss ln(1−q): a grid through that point represents it without smearing.
    /// For large q the offset of all steps together would only cost digits.
    pub(crate) fn offset(self) -> f64 {
        match self {
            Self::Removal { q, .. } if q < 0.1 => (-q).ln_1p(),
            _ => 0.0,
        }
    }

    /// E_P[L²; L ≤ offset + cap] of a sampled pair, by the trapezoidal rule, and about E_P[L²] of the
    /// others; for choosing, not for bounding.
    pub(crate) fn capped_square(self, cap: f64) -> f64 {
        let (q, mu, replaced) = match self {
            Self::Removal { q, mu } | Self::FixedSize { q, mu } => (q, mu, false),
            Self::Replacement { q, mu } => (q, mu, true),
            Self::Gaussian { mu } => return mu * mu * (1.0 + 0.25 * mu * mu),
            Self::Laplace { epsilon } | Self::Pure { epsilon } => return epsilon * epsilon,
        };
        let step = 0.02;
        let mut sum = 0.0;
        for i in 0..=(1200.0 + mu / step) as i32 {
            let y = -12.0 + f64::from(i) * step;
            let up = log_mix_exp(q, mu * (y - 0.5 * mu));
            let loss = if replaced { up - log_mix_exp(q, -mu * (y + 0.5 * mu)) } else { up };
            if loss.abs() <= cap {
                sum += normal::density(y) * up.exp() * loss * loss * step;
            }
        }
        sum
    }
}

/// So many randomised responses are added up one by one: 2^-1000 is a number.
pub(crate) const MOST_RESPONSES: u64 = 1000;

/// Sampled noise is accounted with at least this rate, and unsampled below this shift.
const SMALLEST_RATE: f64 = 1e-12;
const SMALLEST_MU: f64 = 1e-7;

/// A larger shift is the same thing: whoever takes part is seen, up to e^{−10⁵}.
pub(crate) const LARGEST_MU: f64 = 1e3;

/// Losses above this are counted as infinite.
pub(crate) const LARGEST_LOSS: f64 = 600.0;

/// The observation at which the loss has a given value, and a bound on its rounding error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) y: f64,
    pub(crate) error: f64,
}

/// The observation at which the removal pair's loss is ε: y = μ/2 + ln((e^ε − 1 + q)/q)/μ, and −∞ for
/// ε ≤ ln(1−q).
///
/// For ε around 0 the quotient is 1 + (e^ε − 1)/q, whose logarithm has a small relative error; next to the
/// lowest loss it is (1−q)(e^{ε−ln(1−q)} − 1)/q.
pub(crate) fn removal_point(q: f64, mu: f64, epsilon: f64) -> Point {
    let unit = f64::EPSILON;
    let ratio = epsilon.exp_m1() / q;
    let (log, error) = if epsilon > 30.0 {
        let log = epsilon - q.ln() + (-(1.0 - q) * (-epsilon).exp()).ln_1p();
        (log, 4.0 * unit * log)
    } else if ratio > -0.5 {
        let log = ratio.ln_1p();
        (log, 8.0 * unit * log.abs())
    } else {
        let lowest = (-q).ln_1p();
        let above = epsilon - lowest;
        if above <= 0.0 {
            return Point { y: f64::NEG_INFINITY, error: 0.0 };
        }
        let log = ((1.0 - q) * above.exp_m1() / q).ln();
        (log, unit * (8.0 + 2.0 * (epsilon.abs() + lowest.abs()) / above + log.abs()))
    };
    let y = 0.5 * mu + log / mu;
    Point { y, error: error / mu + 2.0 * unit * (y.abs() + mu) }
}

/// The observation at which the replacement pair's loss is ε ≥ 0:
/// y = [ε/2 + asinh((1−q)/q·e^{μ²/2}·sinh(ε/2))]/μ.
pub(crate) fn replacement_point(q: f64, mu: f64, epsilon: f64) -> Point {
    let unit = f64::EPSILON;
    let (half, square, odds) = (0.5 * epsilon, 0.5 * mu * mu, (1.0 - q) / q);
    let direct = odds * square.exp() * half.sinh();
    let (asinh, error) = if odds == 0.0 {
        (0.0, 0.0)
    } else if direct < 1e300 {
        let asinh = direct.asinh();
        (asinh, asinh * unit * (8.0 + 2.0 * square) + f64::MIN_POSITIVE)
    } else {
        // sinh(ε/2) = e^{ε/2}(1 − e^{−ε})/2, and asinh(x) is ln(2x) for such x.
        let log = odds.ln() + square + half + (-(-epsilon).exp_m1()).ln();
        (log, 4.0 * unit * (odds.ln().abs() + square + half + epsilon.ln().abs()))
    };
    let y = (half + asinh) / mu;
    Point { y, error: error / mu + 2.0 * unit * y }
}

/// δ(ε) of the removal pair, ε ≥ 0: q·δ_G(ε'; μ) with e^{ε'} = 1 + (e^ε − 1)/q.
fn removal_delta(q: f64, mu: f64, epsilon: f64) -> f64 {
    let unit = f64::EPSILON;
    let amplified = if epsilon > 30.0 {
        epsilon - q.ln() + (-(1.0 - q) * (-epsilon).exp()).ln_1p()
    } else {
        (epsilon.exp_m1() / q).ln_1p()
    };
    q * gaussian_delta_value(mu, amplified * (1.0 - 8.0 * unit)) * (1.0 + 4.0 * unit)
}

/// δ(ε) of the addition pair P = N(0), Q = (1−q)N(0)+qN(−μ), whose losses end at −ln(1−q):
/// P − e^ε Q = e^ε q (c·N(0) − N(−μ)) with c = 1 − (1 − e^{−ε})/q, so that δ = e^ε·q·c·δ_G(−ln c; μ), which
/// increases in c.
fn addition_delta(q: f64, mu: f64, epsilon: f64) -> f64 {
    let unit = f64::EPSILON;
    let left_out = -(-epsilon).exp_m1() / q * (1.0 - 4.0 * unit);
    if left_out >= 1.0 {
        return 0.0;
    }
    let amplified = -(-left_out).ln_1p() * (1.0 - 4.0 * unit);
    let factor = q * epsilon.exp() * (1.0 - left_out);
    factor * gaussian_delta_value(mu, amplified) * (1.0 + unit * (16.0 + 2.0 * epsilon))
}

/// δ(ε) of the replacement pair, ε ≥ 0. With y₀ the observation of loss ε,
/// P − e^ε Q = q·φ(y−μ)·(1 − e^{−μ(y−y₀)}) + q·e^ε·φ(y+μ)·(e^{μ(y−y₀)} − 1), which is integrated over y > y₀ in
/// closed form. It decreases in y₀, which is rounded down.
fn replacement_delta(q: f64, mu: f64, epsilon: f64) -> f64 {
    let unit = f64::EPSILON;
    let point = replacement_point(q, mu, epsilon);
    let y = (point.y - point.error).max(0.0).next_down().max(0.0);
    let near = gaussian_excess((y - mu).next_down().max(-mu), mu);
    let far = y + mu;
    let exponent = epsilon - 0.5 * far * far;
    let error = unit * (12.0 + 2.0 * (epsilon + far * far));
    let other = exponent.exp() / std::f64::consts::TAU.sqrt() * mills_drop(y, mu) * (1.0 + error);
    q * (near + other) * (1.0 + 8.0 * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_invert_losses() {
        for (q, mu) in [(0.01, 1.0), (0.3, 0.04), (1e-6, 5.0), (0.9, 2.0)] {
            for epsilon in [1e-9, 1e-3, 0.2, 3.0, 40.0] {
                let y = removal_point(q, mu, epsilon).y;
                let loss = log_mix_exp(q, mu * (y - 0.5 * mu));
                assert!((loss / epsilon - 1.0).abs() < 1e-6, "{q} {mu} {epsilon} {loss}");
                let y = replacement_point(q, mu, epsilon).y;
                let loss = log_mix_exp(q, mu * (y - 0.5 * mu)) - log_mix_exp(q, -mu * (y + 0.5 * mu));
                assert!((loss / epsilon - 1.0).abs() < 1e-6, "{q} {mu} {epsilon} {loss}");
            }
        }
    }
}
