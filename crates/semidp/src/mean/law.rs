//! The noise laws a mean can be released with: what each costs, and what it adds.

use super::problem::{Clip, Problem};
use crate::Result;
use semidp_accounting::convert::zcdp_to_epsilon_gaussian;
use semidp_accounting::{
    Adjacency, Arithmetic, CountedEvent, Delta, Event, NoiseMultiplier, PrivacyBudget, Steps,
    closed_form_noise,
};
use semidp_core::{LARGEST_MULTIPLIER, calibration_delta, smallest_delta};

/// A noise law of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// Normal noise on sums clipped in ℓ2; for (ε, δ) and zCDP.
    Gaussian,
    /// Laplace noise on sums clipped in ℓ1; pure.
    Laplace,
    /// Density ∝ exp(−‖z‖₂/scale) on sums clipped in ℓ2; pure. Idealised arithmetic.
    KNorm,
}

/// Mean estimators need the number of private rows, which is public under this adjacency only.
pub(super) const ADJACENCY: Adjacency = Adjacency::ReplaceOne;

/// Where the certificate of a release with this law states its ε: a pure law needs no δ.
pub(super) fn stated_at(law: Law, budget: PrivacyBudget) -> Result<Delta> {
    match law {
        Law::Gaussian => Ok(budget.delta()),
        Law::Laplace | Law::KNorm => Ok(Delta::new(0.0)?),
    }
}

impl Law {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "Gaussian",
            Self::Laplace => "Laplace",
            Self::KNorm => "K-norm",
        }
    }

    /// Whether its guarantee holds for the released bits.
    pub fn arithmetic(self) -> Arithmetic {
        match self {
            Self::Gaussian | Self::Laplace => Arithmetic::Exact,
            Self::KNorm => Arithmetic::Idealised,
        }
    }

    /// The ball its contributions are clipped to.
    pub fn clip(self, problem: &Problem) -> Clip {
        match self {
            Self::Gaussian | Self::KNorm => problem.l2(),
            Self::Laplace => problem.l1(),
        }
    }

    /// The least noise over clip norm that a budget allows for one release; `None` if this law does not
    /// meet a budget of that kind, or one so small. A pure law also meets (ε, δ), at its ε.
    pub fn noise_multiplier(
        self,
        budget: PrivacyBudget,
        dimension: usize,
    ) -> Result<Option<NoiseMultiplier>> {
        let dimension = dimension as u64;
        let (budget, event): (_, fn(NoiseMultiplier, u64) -> Event) = match (self, budget) {
            (Self::Gaussian, PrivacyBudget::Pure { .. }) => return Ok(None),
            (Self::Gaussian, PrivacyBudget::Approximate { epsilon, delta }) => (
                PrivacyBudget::Approximate { epsilon, delta: calibration_delta(delta) },
                |noise_multiplier, _| Event::Gaussian { noise_multiplier },
            ),
            (Self::Gaussian, PrivacyBudget::Zcdp { .. }) => {
                (budget, |noise_multiplier, _| Event::Gaussian { noise_multiplier })
            }
            (_, PrivacyBudget::Zcdp { .. }) => return Ok(None),
            (_, PrivacyBudget::Pure { epsilon } | PrivacyBudget::Approximate { epsilon, .. }) => {
                let event: fn(NoiseMultiplier, u64) -> Event = match self {
                    Self::Laplace => {
                        |noise_multiplier, dimension| Event::Laplace { noise_multiplier, dimension }
                    }
                    _ => |noise_multiplier, dimension| Event::KNorm { noise_multiplier, dimension },
                };
                (PrivacyBudget::Pure { epsilon }, event)
            }
        };
        let events = |noise| vec![CountedEvent::new(event(noise, dimension), Steps::ONE)];
        let noise = closed_form_noise(budget, ADJACENCY, Steps::ONE, events)?;
        // What the kernel would refuse.
        let is_certified = match (self, budget) {
            (Self::Gaussian, PrivacyBudget::Approximate { epsilon, delta }) => {
                delta.get() >= smallest_delta(epsilon, dimension as f64)
            }
            (Self::Gaussian, PrivacyBudget::Zcdp { rho, stated_at }) => {
                let stated = zcdp_to_epsilon_gaussian(rho, stated_at)?;
                stated_at.get() >= smallest_delta(stated, dimension as f64)
            }
            _ => true,
        };
        Ok(Some(noise).filter(|noise| is_certified && noise.get() <= LARGEST_MULTIPLIER))
    }

    /// The total variance E‖Z‖² of the noise on the sum, N.
    ///
    /// With scale s = multiplier · clip norm: d·s² for normal noise, 2d·s² for Laplace, d(d+1)·s² for
    /// K-norm noise, whose length is Gamma(d, s).
    pub fn variance(self, multiplier: NoiseMultiplier, clip: Clip, dimension: usize) -> f64 {
        let (scale, d) = (multiplier.get() * clip.radius, dimension as f64);
        let factor = match self {
            Self::Gaussian => d,
            Self::Laplace => 2.0 * d,
            Self::KNorm => d * (d + 1.0),
        };
        factor * scale * scale
    }
}
