//! An audit of training: canaries in a few runs, on synthetic rows.
//!
//! Guesses are made white-box, from the iterates that a run releases, and black-box, from the losses of its model. Half of the runs
//! choose what to look at and how many guesses to make, the other half is counted.

use super::canaries::Canaries;
use super::coins::Coins;
use super::one_run::{Guesses, largest_refuted};
use super::parallel::in_parallel;
use super::scores::{Method, choose, curve};
use super::{Audit, LowerBound, Options};
use crate::train::{Algorithm, Conduct, Recipe, TrainingData};
use crate::{Error, Result};
use semidp_accounting::Event;
use semidp_core::{Certificate, Private, Randomness};

/// How large the synthetic problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Private rows, canaries among them.
    pub private_rows: usize,
    /// Public rows; those of an algorithm that learns from them must be some.
    pub public_rows: usize,
    /// Columns without the label; every canary needs two.
    pub features: usize,
}

impl Shape {
    fn check(&self) -> Result<()> {
        if !(4..=1 << 24).contains(&self.features) {
            return Err(Error::invalid("dim", self.features, "from 4, for two canaries, to 2^24"));
        }
        if self.private_rows < 2 {
            return Err(Error::invalid("n-private", self.private_rows, "at least 2, for two canaries"));
        }
        if (1..4).contains(&self.public_rows) {
            let requirement = "0, or at least 4: one for each feature of two canaries";
            return Err(Error::invalid("n-public", self.public_rows, requirement));
        }
        Ok(())
    }
}

/// Shares of canaries that may be guessed.
const SHARES: [f64; 9] = [0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0];

/// Audits a training algorithm with a recipe of the user's, on rows of this shape. `progress` is told runs done, and of how many.
pub fn training(
    algorithm: &dyn Algorithm,
    recipe: &Recipe<'_>,
    shape: Shape,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Audit> {
    options.check(2)?;
    shape.check()?;
    let Shape { private_rows, public_rows, features } = shape;
    let canaries = Canaries::new(recipe, private_rows, public_rows, features);
    let public = canaries.public()?;
    let go = |run: u64| -> Result<(Run, Certificate)> {
        let coins = canaries.toss(options.seed, run);
        let data =
            TrainingData { private: Private::new(canaries.private(&coins)?).boxed(), public: public.clone() };
        let noise = Randomness::Seed(Coins::new(options.seed, 3, run).word());
        let conduct = Conduct { threads: Some(1), ..Conduct::new(noise) };
        let (mut last, mut sum) = (Vec::new(), Vec::new());
        let trained = algorithm.train(recipe, data, conduct, &mut |shown| {
            last.clone_from(&shown.model.weights);
            sum.resize(last.len(), 0.0);
            sum.iter_mut().zip(&last).for_each(|(sum, w)| *sum += w);
        })?;
        // An algorithm that shows no iterates is looked at by its model alone.
        let of_iterates = |weights: &[f64]| (!weights.is_empty()).then(|| canaries.pulls(weights));
        let looks = [of_iterates(&last), of_iterates(&sum), Some(canaries.losses(&trained.model))];
        Ok((Run { coins, looks }, trained.certificate))
    };
    let together = options.threads.max(1);
    let mut done = Vec::new();
    while (done.len() as u64) < options.trials {
        progress(done.len() as u64, options.trials);
        let first = done.len() as u64;
        let count = together.min((options.trials - first) as usize);
        done.extend(in_parallel(count, together, |i| go(first + i as u64))?);
    }
    progress(options.trials, options.trials);
    let certificate = done[0].1.clone();
    let runs: Vec<Run> = done.into_iter().map(|(run, _)| run).collect();
    Ok(judge(algorithm.name(), &runs, &certificate, recipe, options))
}

/// What an auditor sees of one run.
struct Run {
    coins: Vec<bool>,
    /// Scores of all canaries from each place that shows any.
    looks: [Option<Vec<f64>>; 3],
}

impl Run {
    /// Scores and coins.
    fn canaries(&self, look: usize) -> impl Iterator<Item = (f64, bool)> + '_ {
        let scores = self.looks[look].iter().flatten();
        scores.copied().zip(self.coins.iter().copied())
    }
}

/// Where scores come from.
const LOOKS: [&str; 3] = ["white-box, last iterate", "white-box, mean of iterates", "black-box"];
const BLACK_BOX: usize = 2;

/// A place to look at, and the share of canaries to guess.
struct Plan {
    look: usize,
    share: f64,
    /// The bound on the runs that chose,
    epsilon: f64,
    /// and by how many standard deviations guesses were better than coins.
    lead: f64,
}

impl Plan {
    fn is_better_than(&self, other: &Self) -> bool {
        (self.epsilon, self.lead) > (other.epsilon, other.lead)
    }
}

fn judge(
    name: &str,
    runs: &[Run],
    certificate: &Certificate,
    recipe: &Recipe<'_>,
    options: &Options,
) -> Audit {
    let guarantee = &certificate.guarantee;
    let delta = guarantee.delta.get();
    let (choosing, counted) = runs.split_at(runs.len() / 2);
    // Without sampling a whole run is one Gaussian release, as far as privacy goes.
    let is_gaussian = !certificate.events.is_empty()
        && certificate
            .events
            .iter()
            .all(|counted| matches!(counted.event, Event::Gaussian { .. } | Event::OnePassGaussian { .. }));
    // Two guessers, and one more theory.
    let miss = (1.0 - options.confidence) / if is_gaussian { 3.0 } else { 2.0 };
    let plan = |looks: &[usize]| {
        let shown = looks.iter().filter(|look| runs[0].looks[**look].is_some());
        let plans = shown.flat_map(|look| SHARES.map(|share| planned(choosing, *look, share, delta, miss)));
        plans.reduce(|best, one| if one.is_better_than(&best) { one } else { best })
    };
    let mut bounds = Vec::new();
    let mut best: Option<(f64, usize)> = None;
    for (method, plan) in [("one-run", plan(&[0, 1])), ("one-run-black-box", plan(&[BLACK_BOX]))] {
        let Some(plan) = plan else { continue };
        let epsilon = largest_refuted(&guess(counted, plan.look, plan.share), delta, miss);
        bounds.push(LowerBound { method, epsilon, confidence: options.confidence, assumes: None });
        if best.is_none_or(|(most, _)| epsilon > most) {
            best = Some((epsilon, plan.look));
        }
    }
    let look = best.map_or(BLACK_BOX, |(_, look)| look);
    let (chosen_ins, chosen_outs) = worlds(choosing, look);
    let (ins, outs) = worlds(counted, look);
    let rule = choose(Method::Gaussian, [&chosen_ins, &chosen_outs], delta, miss);
    let counts = rule.count(&ins, &outs);
    if is_gaussian {
        bounds.push(LowerBound {
            method: "gaussian-dp",
            epsilon: Method::Gaussian.epsilon(&counts, rule.is_mirrored, delta, miss),
            confidence: options.confidence,
            assumes: Some("Gaussian noise, and canaries that do not disturb each other"),
        });
    }
    Audit {
        what: format!("train: {name}, {}", LOOKS[look]),
        claimed_epsilon: guarantee.epsilon.get(),
        delta,
        adjacency: recipe.adjacency,
        bounds,
        true_positive_rate: counts.true_positive_rate(options.confidence),
        false_positive_rate: counts.false_positive_rate(options.confidence),
        roc: curve(&ins, &outs),
        trials: runs.len() as u64,
        seed: options.seed,
    }
}

/// What comes of this share of guesses on runs that are not counted.
fn planned(runs: &[Run], look: usize, share: f64, delta: f64, miss: f64) -> Plan {
    let guesses = guess(runs, look, share);
    let surplus = 2.0 * guesses.right as f64 - guesses.made as f64;
    let lead = surplus / (guesses.made as f64).sqrt();
    Plan { look, share, epsilon: largest_refuted(&guesses, delta, miss), lead }
}

/// Guesses about this share of all canaries: IN for the highest scores, OUT for the lowest.
fn guess(runs: &[Run], look: usize, share: f64) -> Guesses {
    let mut canaries: Vec<(f64, bool)> = runs.iter().flat_map(|run| run.canaries(look)).collect();
    // Those that tie stay in order, which tells nothing of their coins.
    canaries.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ((0.5 * share * canaries.len() as f64).round() as usize).clamp(1, canaries.len() / 2);
    let right_low = canaries.iter().take(half).filter(|(_, is_in)| !is_in).count();
    let right_high = canaries.iter().rev().take(half).filter(|(_, is_in)| *is_in).count();
    Guesses { canaries: canaries.len() as u64, made: 2 * half as u64, right: (right_low + right_high) as u64 }
}

/// All scores of canaries that were in, and of those that were out.
fn worlds(runs: &[Run], look: usize) -> (Vec<f64>, Vec<f64>) {
    let (ins, outs): (Vec<_>, Vec<_>) =
        runs.iter().flat_map(|run| run.canaries(look)).partition(|(_, is_in)| *is_in);
    let scores = |world: Vec<(f64, bool)>| world.into_iter().map(|(score, _)| score).collect();
    (scores(ins), scores(outs))
}
