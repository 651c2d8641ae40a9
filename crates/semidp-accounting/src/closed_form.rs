//! The least noise for releases without sampling, from closed forms: what one-shot estimators need, to
//! the last digit.

use crate::accountant::{Accountant, PureAccountant, ZcdpAccountant};
use crate::convert::gaussian_mu;
use crate::{Adjacency, CountedEvent, Delta, Epsilon, Error, Event, NoiseMultiplier, Result, Rho, Steps};

/// What may be spent, in one of the three currencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrivacyBudget {
    /// (ε, δ).
    Approximate {
        /// ε.
        epsilon: Epsilon,
        /// δ > 0.
        delta: Delta,
    },
    /// Pure ε.
    Pure {
        /// ε.
        epsilon: Epsilon,
    },
    /// ρ of zero-concentrated differential privacy.
    Zcdp {
        /// ρ.
        rho: Rho,
        /// Where a certificate states the ε that follows from it; not part of the budget.
        stated_at: Delta,
    },
}

impl PrivacyBudget {
    /// Where a certificate of a zCDP budget states its ε unless the caller says otherwise.
    pub const STATED_AT: f64 = 1e-6;

    /// (ε, δ), both above 0.
    pub fn approximate(epsilon: f64, delta: f64) -> Result<Self> {
        Ok(Self::Approximate {
            epsilon: Epsilon::new(epsilon)?.positive()?,
            delta: Delta::new(delta)?.positive()?,
        })
    }

    /// Pure ε, above 0.
    pub fn pure(epsilon: f64) -> Result<Self> {
        Ok(Self::Pure { epsilon: Epsilon::new(epsilon)?.positive()? })
    }

    /// ρ of zCDP, above 0; a certificate states its ε at δ = [`Self::STATED_AT`].
    pub fn zcdp(rho: f64) -> Result<Self> {
        Ok(Self::Zcdp { rho: Rho::new(rho)?.positive()?, stated_at: Delta::new(Self::STATED_AT)? })
    }

    /// The δ at which a certificate for this budget states its ε; 0 if it is pure.
    pub fn delta(&self) -> Delta {
        match *self {
            Self::Approximate { delta, .. } | Self::Zcdp { stated_at: delta, .. } => delta,
            Self::Pure { .. } => Delta::saturating(0.0),
        }
    }

    /// Whether these events stay within it.
    fn covers(&self, events: &[CountedEvent], adjacency: Adjacency) -> Result<bool> {
        match *self {
            Self::Approximate { epsilon, delta } => {
                Ok(crate::epsilon(events, adjacency, delta)?.value <= epsilon)
            }
            Self::Pure { epsilon } => {
                let mut accountant = PureAccountant::new(adjacency);
                accountant.compose_all(events)?;
                Ok(accountant.epsilon(Delta::saturating(0.0))? <= epsilon)
            }
            Self::Zcdp { rho, .. } => {
                let mut accountant = ZcdpAccountant::new(adjacency);
                accountant.compose_all(events)?;
                Ok(accountant.rho()? <= rho)
            }
        }
    }
}

/// The least noise multiplier for `composed` releases without sampling (one for disjoint blocks), where
/// `events` says what they are to an accountant. Gaussian noise for (ε, δ) and ρ, Laplace or K-norm
/// noise for pure ε; another pair is refused by the accountant.
///
/// The closed form comes first; then the next numbers up, until the accountant that certifies agrees
/// that rounding no longer stands in the way.
pub fn closed_form_noise(
    budget: PrivacyBudget,
    adjacency: Adjacency,
    composed: Steps,
    events: impl Fn(NoiseMultiplier) -> Vec<CountedEvent>,
) -> Result<NoiseMultiplier> {
    let (factor, composed) = (adjacency.sensitivity_factor(), composed.get() as f64);
    let closed = match budget {
        PrivacyBudget::Approximate { epsilon, delta } => {
            factor * composed.sqrt() / gaussian_mu(epsilon.positive()?, delta)?.get()
        }
        PrivacyBudget::Pure { epsilon } => factor * composed / epsilon.positive()?.get(),
        PrivacyBudget::Zcdp { rho, .. } => factor * (composed / (2.0 * rho.positive()?.get())).sqrt(),
    };
    let mut noise = NoiseMultiplier::new(closed)?;
    let mut more = f64::EPSILON / 2.0;
    // The last attempt is 1e-9 above the closed form: far more than its rounding.
    for _ in 0..24 {
        if budget.covers(&events(noise), adjacency)? {
            return Ok(noise);
        }
        noise = NoiseMultiplier::new((closed * (1.0 + more)).next_up())?;
        more *= 2.0;
    }
    Err(Error::Unreachable {
        quantity: "noise multiplier",
        epsilon: 0.0,
        delta: budget.delta().get(),
        reason: "its closed form does not meet the budget",
    })
}

/// The least noise of one Gaussian release.
pub fn gaussian_noise(budget: PrivacyBudget, adjacency: Adjacency) -> Result<NoiseMultiplier> {
    closed_form_noise(budget, adjacency, Steps::ONE, |noise_multiplier| {
        vec![CountedEvent::new(Event::Gaussian { noise_multiplier }, Steps::ONE)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sensitivity, convert::gaussian_sigma};

    #[test]
    fn one_release_costs_what_the_closed_form_says_and_never_more() {
        let delta = Delta::new(1e-6).unwrap();
        for value in [1e-3, 0.1, 0.5, 1.0, 3.0, 20.0] {
            let epsilon = Epsilon::new(value).unwrap();
            let budget = PrivacyBudget::Approximate { epsilon, delta };
            let noise = gaussian_noise(budget, Adjacency::ReplaceOne).unwrap();
            let sigma = gaussian_sigma(Sensitivity::new(2.0).unwrap(), epsilon, delta).unwrap();
            assert!((noise.get() / sigma - 1.0).abs() < 1e-9, "{value}");
            let events = [CountedEvent::new(Event::Gaussian { noise_multiplier: noise }, Steps::ONE)];
            assert!(crate::epsilon(&events, Adjacency::ReplaceOne, delta).unwrap().value <= epsilon);

            let budget = PrivacyBudget::Zcdp { rho: Rho::new(value).unwrap(), stated_at: delta };
            let noise = gaussian_noise(budget, Adjacency::ReplaceOne).unwrap().get();
            assert!((noise / (2.0 / value).sqrt() - 1.0).abs() < 1e-14 && 2.0 / noise.powi(2) <= value);
            let half = gaussian_noise(budget, Adjacency::AddRemove).unwrap().get();
            assert!((2.0 * half / noise - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn the_wrong_noise_for_a_budget_is_refused() {
        let pure = PrivacyBudget::Pure { epsilon: Epsilon::new(1.0).unwrap() };
        assert!(gaussian_noise(pure, Adjacency::ReplaceOne).is_err());
        let nothing =
            PrivacyBudget::Zcdp { rho: Rho::new(0.0).unwrap(), stated_at: Delta::new(0.1).unwrap() };
        let refused = gaussian_noise(nothing, Adjacency::ReplaceOne).unwrap_err().to_string();
        assert!(refused.starts_with("rho must be a finite number > 0"), "{refused}");
    }
}
