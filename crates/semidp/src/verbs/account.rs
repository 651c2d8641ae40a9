//! What given noise costs.

use super::mechanism::{Law, Mechanism, Sampling};
use super::outcome::{AccountOutcome, Program, Question};
use crate::{Error, Result};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, NoiseMultiplier, Steps, Trust};
use serde::{Deserialize, Serialize};

/// Asks what given noise costs: epsilon at a delta, or delta at an epsilon.
///
/// ```
/// use semidp::Account;
///
/// let run = Account::new(2.744, 5000).sample_rate(500.0 / 27_000.0).epsilon_at(1e-5).run()?;
/// assert!((run.epsilon.unwrap() - 4.148).abs() < 1e-3);
/// assert!((run.other_adjacency.unwrap().epsilon.unwrap() - 1.984).abs() < 1e-3);
/// # Ok::<(), semidp::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Account {
    /// Noise std (Laplace, K-norm: scale) on the sum of clipped contributions over the clip norm.
    pub noise_multiplier: Option<f64>,
    /// Number of noisy releases; with one-pass sampling, the number of blocks.
    pub steps: Option<u64>,
    /// How rows are sampled and noised, and which guarantee is meant.
    pub mechanism: Mechanism,
    /// A list of events in place of noise, steps and mechanism.
    pub events: Option<Vec<CountedEvent>>,
    /// Asks for epsilon at this delta.
    pub delta: Option<f64>,
    /// Asks for delta at this epsilon.
    pub epsilon: Option<f64>,
    /// Recomputes the PLD accountant's figure on a grid whose step is multiplied by this, to check the accountant.
    pub grid_scale: Option<f64>,
}

impl Account {
    /// Gaussian noise with this multiplier, in this many steps in which every row takes part.
    pub fn new(noise_multiplier: f64, steps: u64) -> Self {
        Self { noise_multiplier: Some(noise_multiplier), steps: Some(steps), ..Self::default() }
    }

    /// A list of events.
    pub fn events(events: Vec<CountedEvent>) -> Self {
        Self { events: Some(events), ..Self::default() }
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

    /// Asks for epsilon at this delta.
    pub fn epsilon_at(self, delta: f64) -> Self {
        Self { delta: Some(delta), epsilon: None, ..self }
    }

    /// Asks for delta at this epsilon.
    pub fn delta_at(self, epsilon: f64) -> Self {
        Self { epsilon: Some(epsilon), delta: None, ..self }
    }

    /// Answers.
    pub fn run(&self) -> Result<AccountOutcome> {
        let (program, law) = self.program()?;
        let mut outcome = AccountOutcome::of(&program, law, self.question(&program)?)?;
        if let Some(scale) = self.grid_scale {
            outcome.rescale_grid(&program, scale)?;
        }
        Ok(outcome)
    }

    fn program(&self) -> Result<(Program, Option<Law>)> {
        let Mechanism { adjacency, trust, .. } = self.mechanism;
        if let Some(events) = &self.events {
            return Ok((Program::from_events(events.clone(), adjacency, trust)?, None));
        }
        let mechanism = self.mechanism.check()?;
        let noise = self.noise_multiplier.ok_or_else(|| {
            Error::usage(
                "noise-multiplier",
                "{noise-multiplier} must be given, or {events}",
                "{!calibrate} finds the noise for a target epsilon",
            )
        })?;
        let steps = self.steps.ok_or_else(|| {
            Error::usage(
                "steps",
                "{steps} must be given",
                "it counts the noisy releases: {steps=1} for a single one",
            )
        })?;
        let (noise, steps) = (NoiseMultiplier::new(noise)?, Steps::new(steps)?);
        Ok((mechanism.program(noise, steps, ("user", "user")), Some(mechanism.law)))
    }

    fn question(&self, program: &Program) -> Result<Question> {
        match (self.epsilon, self.delta) {
            (None, Some(delta)) => Ok(Question::EpsilonAt(Delta::new(delta)?)),
            (Some(epsilon), None) => Ok(Question::DeltaAt(Epsilon::new(epsilon)?)),
            (Some(_), Some(_)) => Err(Error::usage(
                "epsilon",
                "{epsilon} and {delta} must not both be given",
                "give {delta} to learn epsilon, or {epsilon} to learn delta; \
                 {!calibrate} takes both and finds the noise",
            )),
            (None, None) if program.is_pure() => Ok(Question::EpsilonAt(Delta::new(0.0)?)),
            (None, None) => Err(Error::usage(
                "delta",
                "one of {delta} and {epsilon} must be given",
                "give {delta=1e-5} to learn epsilon, or {epsilon=1} to learn delta",
            )),
        }
    }
}
