//! What is kept of all repetitions: means, standard errors, and those of paired differences.

use super::expected::Expected;
use super::{CLEAR, Case, ESTIMATORS, Goal, PAIRS, PUBLIC, ROWS, repetition};
use crate::parallel::in_order;
use crate::regression::mean_and_error;
use crate::{Result, Settings};
use serde::{Deserialize, Serialize};

/// A mean and its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub mean: f64,
    pub error: f64,
}

impl Figure {
    fn of(values: &[f64]) -> Self {
        let (mean, error) = mean_and_error(values);
        Self { mean, error }
    }
}

/// At one public count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub public: usize,
    /// By goal and estimator.
    errors: Vec<Vec<Figure>>,
    /// In the order of [`PAIRS`].
    differences: Vec<Figure>,
}

pub(super) fn measure(
    case: &Case,
    repetitions: u64,
    settings: &Settings,
    done: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Measured>> {
    let expected = PUBLIC.map(|public| Expected::new(case, public));
    let expected = expected.into_iter().collect::<Result<Vec<_>>>()?;
    let all = in_order(repetitions, settings.threads, done, |number| {
        repetition::run(case, &expected, settings.seed, number)
    })?;
    let at = |place: usize, of: &dyn Fn(&repetition::Errors) -> f64| -> Figure {
        Figure::of(&all.iter().map(|errors| of(&errors[place])).collect::<Vec<_>>())
    };
    let measured = PUBLIC.into_iter().enumerate().map(|(place, public)| {
        let of_goal = |goal: Goal| {
            (0..ESTIMATORS.len()).map(|one| at(place, &|errors| errors[goal as usize][one])).collect()
        };
        let of_pair = |(goal, ours, baseline): (Goal, usize, usize)| {
            at(place, &|errors| errors[goal as usize][ours] - errors[goal as usize][baseline])
        };
        Measured { public, errors: Goal::ALL.map(of_goal).to_vec(), differences: PAIRS.map(of_pair).to_vec() }
    });
    Ok(measured.collect())
}

/// One population, mechanism, ε and public share: what was measured, and what was to be expected.
pub(super) struct Point {
    pub case: Case,
    pub expected: Expected,
    pub measured: Measured,
}

impl Point {
    pub fn share(&self) -> f64 {
        self.measured.public as f64 / ROWS as f64
    }

    pub fn error(&self, goal: Goal, estimator: usize) -> Figure {
        self.measured.errors[goal as usize][estimator]
    }

    /// The difference of a pair of [`PAIRS`], and what was to be expected of it.
    pub fn difference(&self, pair: usize) -> (Figure, Option<f64>) {
        let (goal, ours, baseline) = PAIRS[pair];
        let at = |estimator| self.expected.at(goal, estimator);
        (self.measured.differences[pair], at(ours).zip(at(baseline)).map(|(a, b)| a - b))
    }
}

/// A pair of [`PAIRS`] at all points.
#[derive(Debug, PartialEq)]
pub(super) struct Check {
    pub points: usize,
    /// Of a difference from its expectation, in standard errors, if there is an expectation.
    pub furthest: Option<f64>,
    /// Differences that are expected to be clearly below zero, or found to be where nothing is expected.
    pub clear: usize,
    /// Those of them that are below zero.
    pub below: usize,
    /// Differences that are clearly above zero.
    pub above: usize,
}

pub(super) fn check(points: &[Point], pair: usize) -> Check {
    let mut check = Check { points: points.len(), furthest: None, clear: 0, below: 0, above: 0 };
    for (found, expected) in points.iter().map(|point| point.difference(pair)) {
        if let Some(expected) = expected {
            let off = ((found.mean - expected) / found.error).abs();
            check.furthest = Some(check.furthest.unwrap_or(0.0).max(off));
        }
        if expected.unwrap_or(found.mean) < -CLEAR * found.error {
            check.clear += 1;
            check.below += usize::from(found.mean < 0.0);
        }
        check.above += usize::from(found.mean > CLEAR * found.error);
    }
    check
}
