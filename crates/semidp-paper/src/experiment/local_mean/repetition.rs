//! One repetition: rows, a report of each, and the errors of all estimators at all public shares.

use super::expected::Expected;
use super::{Case, DIMENSION, ESTIMATORS, EVERYONE, Goal, PUBLIC, ROWS};
use crate::Result;
use crate::coins::Coins;
use semidp_core::{DenseTable, Private, Randomizer, Randomness};

/// Squared errors, by goal and estimator.
pub(super) type Errors = [[f64; ESTIMATORS.len()]; Goal::ALL.len()];

/// Sums of the rows before each of the public counts, and of all.
struct Sums {
    before: Vec<Vec<f64>>,
    all: Vec<f64>,
}

impl Sums {
    fn new() -> Self {
        Self { before: Vec::new(), all: vec![0.0; DIMENSION] }
    }

    /// Adds the row of this number; rows come in order.
    fn add(&mut self, number: usize, row: &[f64]) {
        if PUBLIC.contains(&number) {
            self.before.push(self.all.clone());
        }
        self.all.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }

    /// Of the rows before the count of this place, and of those after.
    fn split(&self, place: usize) -> (Vec<f64>, Vec<f64>) {
        let before = self.before[place].clone();
        let after = self.all.iter().zip(&before).map(|(all, before)| all - before).collect();
        (before, after)
    }
}

/// The errors at every public count. Rows depend on population, seed and number alone.
pub(super) fn run(case: &Case, expected: &[Expected], seed: u64, number: u64) -> Result<Vec<Errors>> {
    let signs = Coins::new(seed_of(seed, case.population.name), number).toss(ROWS * DIMENSION);
    let root = (DIMENSION as f64).sqrt();
    let (length, std) = (case.population.length / root, case.population.std / root);
    let values: Vec<f64> = signs.iter().map(|sign| length + std * (2.0 * f64::from(*sign) - 1.0)).collect();
    let mut rows = Sums::new();
    values.chunks_exact(DIMENSION).enumerate().for_each(|(number, row)| rows.add(number, row));

    let randomizer = Randomizer::new(case.mechanism, DIMENSION, case.epsilon()?, 1.0)?;
    let randomness = Randomness::Seed(Coins::new(seed_of(seed, &case.label()), number).word());
    let private = Private::new(DenseTable::new(values, DIMENSION)?);
    let (mut reports, mut reported) = (Sums::new(), 0);
    randomizer.reports(private, randomness, 1, &mut |report| {
        reports.add(reported, report);
        reported += 1;
    })?;
    (0..PUBLIC.len()).map(|place| errors(&expected[place], &rows, &reports, place, length)).collect()
}

/// A seed for what has this name.
fn seed_of(seed: u64, name: &str) -> u64 {
    name.bytes().fold(seed, |seed, byte| Coins::new(seed, u64::from(byte)).word())
}

fn errors(expected: &Expected, rows: &Sums, reports: &Sums, place: usize, mean: f64) -> Result<Errors> {
    let (public, private) = rows.split(place);
    let (of_public, of_private) = reports.split(place);
    let (nu, n) = (PUBLIC[place] as f64, ROWS as f64);
    let over = |sum: &[f64], count: f64| -> Vec<f64> { sum.iter().map(|x| x / count).collect() };
    // A report of a vector that is turned round has the law of a report that is turned round.
    let together = |a: &[f64], sign: f64, b: &[f64]| -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + sign * b).collect()
    };
    let private_reports = over(&of_private, n - nu);
    let mut all = Errors::default();
    for (goal, errors) in Goal::ALL.into_iter().zip(&mut all) {
        let sign = if goal == Goal::Opposed { -1.0 } else { 1.0 };
        let truth = match goal {
            Goal::Population | Goal::InBall => vec![mean; DIMENSION],
            Goal::Rows | Goal::Opposed => over(&together(&private, sign, &public), n),
        };
        let public_rows = over(&public, sign * nu);
        let everyone = over(&together(&of_private, sign, &of_public), n);
        let radius = if goal == Goal::InBall { 1.0 } else { f64::INFINITY };
        for (estimator, error) in errors.iter_mut().enumerate() {
            let reports = if estimator == EVERYONE { &everyone } else { &private_reports };
            let combination = &expected.combinations[estimator];
            let estimate = combination.estimate(Some(reports), Some(&public_rows), radius)?;
            *error = estimate.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum();
        }
    }
    Ok(all)
}
