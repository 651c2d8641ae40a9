//! What to expect of a training run: the noise each algorithm must add, and what is left of it after
//! averaging over the run.

use crate::{Error, Result};
use semidp_accounting::{
    Adjacency, CountedEvent, Event, NoiseMultiplier, PrivacyBudget, SampleRate, Steps, calibrate_noise,
    closed_form_noise,
};

/// A training run before it is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingProblem {
    /// n_priv.
    pub private_rows: u64,
    /// n_pub.
    pub public_rows: u64,
    /// d: coordinates of the model.
    pub dimension: u64,
    /// T.
    pub steps: Steps,
    /// K: private rows in a batch, on average.
    pub batch: u64,
    /// K_pub: public rows in a batch.
    pub public_batch: u64,
    /// The clip norm C of gradients; by Lipschitzness L where it is known.
    pub clip_norm: f64,
    /// The standard deviation V of one row's gradient, total over coordinates; at most C.
    pub gradient_std: f64,
    /// Which promise is meant.
    pub adjacency: Adjacency,
}

/// One algorithm's noise.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingPlan {
    /// The algorithm.
    pub name: &'static str,
    /// In a few words.
    pub about: &'static str,
    /// How its batches must be drawn for this noise to do: `poisson`, or `one-pass` over disjoint batches.
    pub sampling: Option<&'static str>,
    /// The chance of a row to take part in a step.
    pub sample_rate: Option<f64>,
    /// Noise on the sum of clipped gradients over the clip norm.
    pub noise_multiplier: Option<f64>,
    /// The standard deviation of the noise in each coordinate of a step's private gradient.
    pub step_noise_std: f64,
    /// The root of its total variance after averaging over the whole run.
    pub averaged_noise: f64,
    /// The weight α of the private gradient.
    pub private_weight: f64,
    /// The variance of the run's gradient estimate: sampling of the data, batches and noise. What
    /// algorithms are compared by.
    pub gradient_variance: f64,
}

impl TrainingProblem {
    fn check(&self) -> Result<()> {
        if self.private_rows + self.public_rows == 0 {
            return Err(Error::invalid("n-private", 0, "at least 1 if there are no public rows"));
        }
        if self.dimension == 0 {
            return Err(Error::invalid("dim", 0, "a whole number >= 1"));
        }
        if self.private_rows > 0 && !(1..=self.private_rows).contains(&self.batch) {
            return Err(Error::invalid("expected-batch", self.batch, "from 1 to the number of private rows"));
        }
        if self.public_rows > 0 && !(1..=self.public_rows).contains(&self.public_batch) {
            return Err(Error::invalid(
                "public-batch",
                self.public_batch,
                "from 1 to the number of public rows",
            ));
        }
        for (name, value) in [("clip-norm", self.clip_norm), ("gradient-std", self.gradient_std)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(name, value, "a number > 0"));
            }
        }
        Ok(())
    }
}

/// The plans of throw-away, DP-SGD on all rows, and Algorithm 1, in that order. Batches are Poisson samples;
/// with a budget in ρ, which sampling does not amplify, they are disjoint if the rows suffice for one pass.
///
/// The variances are those of the horizon formula: over T steps a fixed data set's sampling error stays,
/// V²/n, and what is drawn afresh in each step averages out, (V²/K + dσ²)/T. Algorithm 1 combines the
/// public and the private gradient by their inverse variances.
pub fn plan_training(problem: &TrainingProblem, budget: PrivacyBudget) -> Result<Vec<TrainingPlan>> {
    problem.check()?;
    let steps = problem.steps.get() as f64;
    let variance = problem.gradient_std.powi(2);
    let mut plans = Vec::new();
    let public_variance =
        variance / problem.public_rows as f64 + variance / (problem.public_batch as f64 * steps);
    if problem.public_rows > 0 {
        plans.push(TrainingPlan {
            name: "throw-away",
            about: "public rows only",
            sampling: None,
            sample_rate: None,
            noise_multiplier: None,
            step_noise_std: 0.0,
            averaged_noise: 0.0,
            private_weight: 0.0,
            // Nothing forbids full batches.
            gradient_variance: variance / problem.public_rows as f64,
        });
    }
    if problem.private_rows == 0 {
        return Ok(plans);
    }
    // Noise on the batch mean, for batches from this many rows.
    let noised = |rows: u64| -> Result<(&'static str, Option<f64>, f64, f64)> {
        let rate = problem.batch as f64 / rows as f64;
        let is_one_pass = matches!(budget, PrivacyBudget::Zcdp { .. }) && rate * steps <= 1.0;
        let multiplier = noise_for(problem, budget, rate, is_one_pass)?.get();
        let std = multiplier * problem.clip_norm / problem.batch as f64;
        Ok(if is_one_pass {
            ("one-pass", None, multiplier, std)
        } else {
            ("poisson", Some(rate), multiplier, std)
        })
    };
    let total = |std: f64| problem.dimension as f64 * std * std;
    let private_variance =
        |rows: u64, std: f64| variance / rows as f64 + (variance / problem.batch as f64 + total(std)) / steps;
    let all = problem.private_rows + problem.public_rows;
    let (sampling, sample_rate, multiplier, std) = noised(all)?;
    plans.push(TrainingPlan {
        name: "dp-sgd",
        about: "all rows treated as private",
        sampling: Some(sampling),
        sample_rate,
        noise_multiplier: Some(multiplier),
        step_noise_std: std,
        averaged_noise: (total(std) / steps).sqrt(),
        private_weight: 1.0,
        gradient_variance: private_variance(all, std),
    });
    let (sampling, sample_rate, multiplier, std) = noised(problem.private_rows)?;
    let private = private_variance(problem.private_rows, std);
    let weight = match problem.public_rows {
        0 => 1.0,
        _ => public_variance / (public_variance + private),
    };
    plans.push(TrainingPlan {
        name: "semi-dp-sgd",
        about: "public and private gradients, each weighted by what it tells (Algorithm 1)",
        sampling: Some(sampling),
        sample_rate,
        noise_multiplier: Some(multiplier),
        step_noise_std: std,
        averaged_noise: weight * (total(std) / steps).sqrt(),
        private_weight: weight,
        gradient_variance: match problem.public_rows {
            0 => private,
            _ => weight * private,
        },
    });
    Ok(plans)
}

fn noise_for(
    problem: &TrainingProblem,
    budget: PrivacyBudget,
    rate: f64,
    is_one_pass: bool,
) -> Result<NoiseMultiplier> {
    let sample_rate = SampleRate::new(rate)?;
    match budget {
        PrivacyBudget::Approximate { epsilon, delta } => {
            let found = calibrate_noise(epsilon, delta, problem.adjacency, |noise_multiplier| {
                vec![CountedEvent::new(
                    Event::PoissonGaussian { noise_multiplier, sample_rate },
                    problem.steps,
                )]
            })?;
            Ok(found.value)
        }
        // One pass over disjoint batches costs what one step costs.
        PrivacyBudget::Zcdp { .. } if is_one_pass => {
            let blocks = problem.steps.get();
            Ok(closed_form_noise(budget, problem.adjacency, Steps::ONE, |noise_multiplier| {
                vec![CountedEvent::new(Event::OnePassGaussian { noise_multiplier, blocks }, Steps::ONE)]
            })?)
        }
        // zCDP has no amplification by sampling: every step is charged as if all rows took part.
        PrivacyBudget::Zcdp { .. } => {
            Ok(closed_form_noise(budget, problem.adjacency, problem.steps, |noise_multiplier| {
                vec![CountedEvent::new(Event::Gaussian { noise_multiplier }, problem.steps)]
            })?)
        }
        PrivacyBudget::Pure { .. } => {
            Err(Error::invalid("delta", "none", "given for training: its Gaussian noise is not pure"))
        }
    }
}
