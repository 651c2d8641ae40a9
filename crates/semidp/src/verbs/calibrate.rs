//! The least noise, or the most steps, that a budget allows.

use super::mechanism::{CheckedMechanism, Law, Mechanism, Sampling};
use super::outcome::{AccountOutcome, Question};
use crate::number::upper_bound;
use crate::{Error, Result, sentence};
use semidp_accounting::accountant::{Accountant, ZcdpAccountant};
use semidp_accounting::{
    Adjacency, CountedEvent, NoiseMultiplier, PrivacyBudget, Steps, Trust, calibrate_noise, calibrate_steps,
    closed_form_noise,
};

/// Finds the least noise that a budget needs; with the noise given, the most steps that it allows.
///
/// ```
/// use semidp::{Budget, Calibrate};
///
/// let found = Calibrate::new(Budget::approximate(2.0, 1e-5)?).steps(5000).sample_rate(500.0 / 27_000.0).run()?;
/// assert!((found.noise_multiplier.unwrap() - 5.2205).abs() < 1e-3);
/// assert!(found.epsilon.unwrap() <= 2.0);
/// # Ok::<(), semidp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrate {
    /// The budget.
    pub budget: PrivacyBudget,
    /// For a budget in rho: whether the epsilon at its delta is asked for, rather than rho alone.
    pub states_epsilon: bool,
    /// Number of noisy releases; with one-pass sampling, the number of blocks.
    pub steps: Option<u64>,
    /// Fixes the noise, and asks for the largest number of steps.
    pub noise_multiplier: Option<f64>,
    /// How rows are sampled and noised, and which guarantee is meant.
    pub mechanism: Mechanism,
}

/// What is searched for, given the other.
#[derive(Clone, Copy)]
enum Unknown {
    Noise(Steps),
    Steps(NoiseMultiplier),
}

impl Calibrate {
    /// Gaussian noise within this budget, in steps in which every row takes part.
    pub fn new(budget: PrivacyBudget) -> Self {
        let mechanism = Mechanism::default();
        Self { budget, states_epsilon: false, steps: None, noise_multiplier: None, mechanism }
    }

    /// Asks for the least noise of this many steps.
    pub fn steps(self, steps: u64) -> Self {
        Self { steps: Some(steps), ..self }
    }

    /// Asks for the largest number of steps with this noise.
    pub fn noise_multiplier(self, noise_multiplier: f64) -> Self {
        Self { noise_multiplier: Some(noise_multiplier), ..self }
    }

    /// Noise of another law.
    pub fn law(mut self, law: Law) -> Self {
        self.mechanism.law = law;
        self
    }

    /// Probability that a private row takes part in a step.
    pub fn sample_rate(mut self, sample_rate: f64) -> Self {
        self.mechanism.sample_rate = Some(sample_rate);
        self
    }

    /// How each step picks its rows.
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.mechanism.sampling = Some(sampling);
        self
    }

    /// Number of coordinates that get Laplace or K-norm noise.
    pub fn dimension(mut self, dimension: u64) -> Self {
        self.mechanism.dimension = Some(dimension);
        self
    }

    /// The neighbouring relation.
    pub fn adjacency(mut self, adjacency: Adjacency) -> Self {
        self.mechanism.adjacency = adjacency;
        self
    }

    /// Who sees the private rows.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.mechanism.trust = trust;
        self
    }

    /// Searches.
    pub fn run(&self) -> Result<AccountOutcome> {
        let mechanism = self.mechanism.check()?;
        self.check_budget(&mechanism)?;
        let program = match self.unknown(&mechanism)? {
            Unknown::Noise(steps) => mechanism.program(
                least_noise(&mechanism, self.budget, steps)?,
                steps,
                ("calibration", "user"),
            ),
            Unknown::Steps(noise) => {
                mechanism.program(noise, most_steps(&mechanism, self.budget, noise)?, ("user", "calibration"))
            }
        };
        let question = match self.budget {
            PrivacyBudget::Zcdp { .. } if !self.states_epsilon => Question::Rho,
            _ => Question::EpsilonAt(self.budget.delta()),
        };
        let mut outcome = AccountOutcome::of(&program, Some(mechanism.law), question)?;
        match self.budget {
            PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => {
                outcome.target_epsilon = Some(epsilon.get());
            }
            PrivacyBudget::Zcdp { rho, .. } => outcome.target_rho = Some(rho.get()),
        }
        Ok(outcome)
    }

    /// Refuses budgets in a currency that the noise cannot pay in.
    fn check_budget(&self, mechanism: &CheckedMechanism) -> Result<()> {
        let is_gaussian = mechanism.law == Law::Gaussian;
        let sampling = mechanism.sampling();
        match self.budget {
            PrivacyBudget::Pure { .. } if is_gaussian => Err(Error::usage(
                "delta",
                "{delta} must be given and > 0 with {mechanism=gaussian}",
                "Gaussian noise needs {delta}, as in {delta=1e-5}; pure epsilon needs {mechanism=laplace} or k-norm",
            )),
            PrivacyBudget::Zcdp { .. } if !is_gaussian => Err(Error::usage(
                "rho",
                "{rho} must be used with {mechanism=gaussian}",
                "laplace and k-norm noise give pure epsilon: use {epsilon}",
            )),
            PrivacyBudget::Zcdp { .. } if !matches!(sampling, Sampling::None | Sampling::OnePass) => {
                Err(Error::usage(
                    "rho",
                    sentence!("{rho} must be used without sampling, got {sampling=0}", sampling.name()),
                    "zCDP has no useful amplification by sampling: use {epsilon} and {delta}",
                ))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self, mechanism: &CheckedMechanism) -> Result<Unknown> {
        match (self.steps, self.noise_multiplier) {
            (Some(steps), None) => Ok(Unknown::Noise(Steps::new(steps)?)),
            (None, Some(_)) if mechanism.sampling() == Sampling::OnePass => Err(Error::usage(
                "steps",
                "{steps} must be given with {sampling=one-pass}",
                "the number of blocks does not enter the cost of one pass: any number is allowed",
            )),
            (None, Some(noise)) => Ok(Unknown::Steps(NoiseMultiplier::new(noise)?)),
            (Some(_), Some(_)) => Err(Error::usage(
                "steps",
                "{steps} and {noise-multiplier} must not both be given",
                "give one to learn the other; {!account} says what both together cost",
            )),
            (None, None) => Err(Error::usage(
                "steps",
                "{steps} must be given, or {noise-multiplier}",
                "give {steps} to learn the noise, or {noise-multiplier} to learn the largest number of steps",
            )),
        }
    }
}

fn least_noise(mechanism: &CheckedMechanism, budget: PrivacyBudget, steps: Steps) -> Result<NoiseMultiplier> {
    let events = |noise| mechanism.events(noise, steps);
    let is_gaussian = mechanism.law == Law::Gaussian;
    match (budget, mechanism.sampling()) {
        // Laplace and K-norm noise may beat their pure guarantee at a positive delta.
        (PrivacyBudget::Approximate { epsilon, delta }, sampling)
            if !is_gaussian || !matches!(sampling, Sampling::None | Sampling::OnePass) =>
        {
            Ok(calibrate_noise(epsilon, delta, mechanism.adjacency, events)?.value)
        }
        (_, sampling) => {
            let composed = if sampling == Sampling::OnePass { Steps::ONE } else { steps };
            Ok(closed_form_noise(budget, mechanism.adjacency, composed, events)?)
        }
    }
}

fn most_steps(mechanism: &CheckedMechanism, budget: PrivacyBudget, noise: NoiseMultiplier) -> Result<Steps> {
    match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => {
            let events = |steps| mechanism.events(noise, steps);
            Ok(calibrate_steps(epsilon, budget.delta(), mechanism.adjacency, events)?.value)
        }
        PrivacyBudget::Zcdp { rho, .. } => {
            let fits = |steps: u64| -> Result<bool> {
                Ok(total_rho(mechanism, &mechanism.events(noise, Steps::new(steps)?))? <= rho.get())
            };
            let one = total_rho(mechanism, &mechanism.events(noise, Steps::ONE))?;
            let most = ((rho.get() / one) as u64).min(Steps::MAX);
            // The quotient may be off by one in its last place, either way.
            for steps in [most + 1, most, most.saturating_sub(1)] {
                if (1..=Steps::MAX).contains(&steps) && fits(steps)? {
                    return Ok(Steps::new(steps)?);
                }
            }
            Err(Error::usage(
                "rho",
                sentence!(
                    "{rho} must be at least {0} for a single step at this noise, got {1}",
                    upper_bound(one, 5),
                    rho
                ),
                "raise {rho} or {noise-multiplier}",
            ))
        }
    }
}

fn total_rho(mechanism: &CheckedMechanism, events: &[CountedEvent]) -> Result<f64> {
    let mut accountant = ZcdpAccountant::new(mechanism.adjacency);
    accountant.compose_all(events)?;
    Ok(accountant.rho()?.get())
}
