//! Means in the local model: the lemma on Semi-Duchi (`lem: privunit error`) and the proposition on semi-PrivUnit, measured.
//!
//! In every repetition all estimators see the same public rows and the same reports, which the kernel makes. Everybody reports; at a
//! public share the reports of those who are public there count for nobody but the baseline in which nobody is public.
//!
//! There are two goals. For the mean of the population errors are exactly those of `semidp::local`. For the mean of the very rows at hand
//! the weights 1/n are the paper's: their error is the same whatever the rows are. So that error is measured twice, once with public rows
//! that are like the private ones, and once with public rows from the other side of the ball.

mod charts;
mod expected;
mod findings;
mod outcome;
mod repetition;
mod summary;

use super::Experiment;
use crate::{Outcome, Result, Settings};
use expected::Expected;
use semidp_accounting::Epsilon;
use semidp_accounting::local::{LocalMechanism, randomizer_named};
use summary::{Measured, Point};

const DIMENSION: usize = 100;
const ROWS: usize = 1000;
/// Public rows of those.
const PUBLIC: [usize; 6] = [10, 50, 100, 300, 500, 900];
/// The paper's, and PrivUnitG.
const MECHANISMS: [&str; 3] = ["duchi", "privunit", "privunitg"];
const EPSILONS: [f64; 5] = [0.5, 1.0, 2.0, 4.0, 8.0];
const REPETITIONS: u64 = 1000;
const QUICK_REPETITIONS: u64 = 100;
/// A difference is clear beyond this many standard errors.
const CLEAR: f64 = 6.5;

/// Rows are (length ± std)/√d in every coordinate, each sign a fair coin: their mean has this length, their total variance is std²,
/// and none leaves the unit ball if both together are at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Population {
    name: &'static str,
    length: f64,
    std: f64,
}

/// The first is as spread as the ball allows, and on the sphere: the hardest, and the one of erratum 16. Of the second, a few public
/// rows tell much.
const POPULATIONS: [Population; 2] = [
    Population { name: "sphere", length: 0.0, std: 1.0 },
    Population { name: "near", length: 0.6, std: 0.3 },
];

fn mechanisms() -> impl Iterator<Item = &'static LocalMechanism> {
    MECHANISMS.into_iter().filter_map(|name| randomizer_named(name).ok())
}

/// A population and how its people report.
#[derive(Clone, Copy)]
struct Case {
    population: Population,
    mechanism: &'static LocalMechanism,
    epsilon: f64,
}

impl Case {
    fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for population in POPULATIONS {
            for mechanism in mechanisms() {
                cases.extend(EPSILONS.map(|epsilon| Self { population, mechanism, epsilon }));
            }
        }
        cases
    }

    fn epsilon(&self) -> Result<Epsilon> {
        Ok(Epsilon::new(self.epsilon)?)
    }

    /// Of the piece that is kept of it.
    fn label(&self) -> String {
        format!("local-mean-{}-{}-epsilon{}", self.population.name, self.mechanism.name, self.epsilon)
    }
}

/// What an error is an error of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    /// The mean of the population.
    Population,
    /// The same, by the estimate that is moved into the ball, as users get it. Its error is at most the one before.
    InBall,
    /// The mean of the rows at hand, all from the population.
    Rows,
    /// The mean of the rows at hand, of which the public ones are turned round.
    Opposed,
}

impl Goal {
    const ALL: [Self; 4] = [Self::Population, Self::InBall, Self::Rows, Self::Opposed];

    fn name(self) -> &'static str {
        match self {
            Self::Population => "population",
            Self::InBall => "population, in the ball",
            Self::Rows => "rows at hand",
            Self::Opposed => "rows at hand, public ones opposed",
        }
    }
}

const THROW_AWAY: usize = 0;
const LDP: usize = 1;
const EVERYONE: usize = 2;
const UNIFORM: usize = 3;
const WEIGHTED: usize = 4;
/// Names of the library, but for the third, which is its `ldp` if nobody is public.
const ESTIMATORS: [&str; 5] = ["throw-away", "ldp", "ldp-everyone", "semi-ldp-uniform", "semi-ldp-weighted"];

/// Differences that are looked at: the goal, ours, a baseline.
const PAIRS: [(Goal, usize, usize); 11] = [
    (Goal::Population, WEIGHTED, THROW_AWAY),
    (Goal::Population, WEIGHTED, UNIFORM),
    (Goal::Population, WEIGHTED, LDP),
    (Goal::Population, WEIGHTED, EVERYONE),
    (Goal::Population, UNIFORM, EVERYONE),
    (Goal::InBall, WEIGHTED, THROW_AWAY),
    (Goal::InBall, WEIGHTED, UNIFORM),
    (Goal::Rows, UNIFORM, EVERYONE),
    (Goal::Opposed, UNIFORM, THROW_AWAY),
    (Goal::Opposed, UNIFORM, WEIGHTED),
    (Goal::Opposed, UNIFORM, EVERYONE),
];

/// The experiment.
pub struct LocalMean;

impl Experiment for LocalMean {
    fn name(&self) -> &'static str {
        "local-mean"
    }

    fn title(&self) -> &'static str {
        "Means in the local model: measured error beside its exact expectation"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let repetitions = if settings.quick { QUICK_REPETITIONS } else { REPETITIONS };
        let cases = Case::all();
        let total = repetitions * cases.len() as u64;
        let mut points = Vec::new();
        for (i, case) in cases.into_iter().enumerate() {
            let done = |finished: u64| progress(i as u64 * repetitions + finished, total);
            let kept: Vec<Measured> =
                settings.piece(&case.label(), || summary::measure(&case, repetitions, settings, &done))?;
            for measured in kept {
                points.push(Point { expected: Expected::new(&case, measured.public)?, case, measured });
            }
            done(repetitions);
        }
        outcome::outcome(self, settings, repetitions, &points)
    }
}

#[cfg(test)]
mod tests;
