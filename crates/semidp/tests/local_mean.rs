//! Means of randomised reports against their predicted errors, through the kernel.
//!
//! In each repetition all estimators see the same public rows and the same reports. A check allows 6.5 standard errors of the paired
//! samples; the mean of so many repetitions goes beyond that less than once in 10⁹ times.

use semidp::local::{Combination, Setting, combinations};
use semidp_accounting::local::{LocalMechanism, RANDOMIZERS};
use semidp_core::{DenseTable, Epsilon, Private, Randomizer, Randomness};
use std::sync::LazyLock;

const REPETITIONS: u64 = 1000;
const ALLOWED: f64 = 6.5;

/// People whose rows are (length ± std)/√d in every coordinate, each sign a fair coin: the mean has this length, the total variance is
/// std², and all rows are in the unit ball.
#[derive(Debug, Clone, Copy)]
struct People {
    dimension: usize,
    epsilon: f64,
    private: usize,
    public: usize,
    length: f64,
    std: f64,
}

const fn people(
    (dimension, epsilon): (usize, f64),
    (private, public): (usize, usize),
    (length, std): (f64, f64),
) -> People {
    People { dimension, epsilon, private, public, length, std }
}

const SETTINGS: [People; 8] = [
    people((1, 1.0), (40, 10), (0.3, 0.6)),
    people((2, 0.5), (60, 6), (0.0, 1.0)),
    people((3, 12.0), (20, 20), (0.5, 0.5)),
    people((5, 4.0), (20, 40), (0.6, 0.3)),
    people((20, 2.0), (60, 4), (0.1, 0.9)),
    people((50, 8.0), (40, 3), (0.2, 0.7)),
    people((30, 0.1), (30, 30), (0.0, 1.0)),
    people((60, 1.0), (45, 5), (0.0, 1.0)),
];

/// Fair coins; a small generator is enough for data.
struct Coins(u64);

impl Coins {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// What a repetition gives.
struct Means {
    private: Vec<f64>,
    reports: Vec<f64>,
    public: Vec<f64>,
}

fn add(sum: &mut [f64], row: &[f64], count: usize) {
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / count as f64);
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

impl People {
    fn truth(&self) -> Vec<f64> {
        vec![self.length / (self.dimension as f64).sqrt(); self.dimension]
    }

    fn rows(&self, count: usize, coins: &mut Coins) -> Vec<f64> {
        let root = (self.dimension as f64).sqrt();
        let mut sign = || if coins.word() >> 63 == 0 { 1.0 } else { -1.0 };
        (0..count * self.dimension).map(|_| (self.length + self.std * sign()) / root).collect()
    }

    fn mean(&self, rows: &[f64]) -> Vec<f64> {
        let mut mean = vec![0.0; self.dimension];
        let count = rows.len() / self.dimension;
        rows.chunks_exact(self.dimension).for_each(|row| add(&mut mean, row, count));
        mean
    }

    fn repetition(&self, randomizer: &Randomizer, seed: u64) -> Means {
        let mut coins = Coins(seed);
        let (private, public) = (self.rows(self.private, &mut coins), self.rows(self.public, &mut coins));
        let (of_private, mut reports) = (self.mean(&private), vec![0.0; self.dimension]);
        let table = Private::new(DenseTable::new(private, self.dimension).unwrap());
        let randomness = Randomness::Seed(coins.word());
        randomizer
            .reports(table, randomness, 1, &mut |report| add(&mut reports, report, self.private))
            .unwrap();
        Means { private: of_private, reports, public: self.mean(&public) }
    }

    /// Estimators by their order in the library: throw-away, ldp, semi-ldp-uniform, semi-ldp-weighted.
    fn estimators(&self, randomizer: &Randomizer) -> [Combination; 4] {
        let setting = Setting::new(self.private as u64, self.public as u64, 1.0).unwrap();
        let setting = setting.with_moments(self.length, self.std).unwrap();
        let all: [Combination; 4] = combinations(&setting, randomizer.cap()).try_into().unwrap();
        let names = all.map(|one| one.name);
        assert_eq!(names, ["throw-away", "ldp", "semi-ldp-uniform", "semi-ldp-weighted"]);
        all
    }

    fn randomizer(&self, mechanism: &LocalMechanism) -> Randomizer {
        Randomizer::new(mechanism, self.dimension, Epsilon::new(self.epsilon).unwrap(), 1.0).unwrap()
    }
}

/// Not moved into the ball: that only helps, and by how much has no formula.
fn estimate(one: &Combination, means: &Means) -> Vec<f64> {
    one.estimate(Some(&means.reports), Some(&means.public), f64::INFINITY).unwrap()
}

/// The mean of samples and its standard error.
fn mean_and_error(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// A setting, a mechanism, and what all repetitions gave.
struct Runs {
    label: String,
    people: People,
    randomizer: Randomizer,
    all: Vec<Means>,
}

/// Every setting with every mechanism: one for all tests, which look at different sides of it.
static EVERYWHERE: LazyLock<Vec<Runs>> = LazyLock::new(|| {
    let mut runs = Vec::new();
    for (place, people) in SETTINGS.into_iter().enumerate() {
        for mechanism in RANDOMIZERS {
            let randomizer = people.randomizer(mechanism);
            let seed = |number: u64| (place as u64) << 32 | number;
            let all = (0..REPETITIONS).map(|number| people.repetition(&randomizer, seed(number))).collect();
            runs.push(Runs { label: format!("{} {people:?}", mechanism.name), people, randomizer, all });
        }
    }
    runs
});

/// Squared errors to the mean of the population, of the first minus the second.
fn gaps(people: &People, all: &[Means], ours: &Combination, baseline: &Combination) -> Vec<f64> {
    let truth = people.truth();
    let error = |one: &Combination, means: &Means| distance(&estimate(one, means), &truth);
    all.iter().map(|means| error(ours, means) - error(baseline, means)).collect()
}

/// To throw-away, to the weights 1/n and to reports alone the weighted estimator has the predicted difference, and is better wherever
/// that can be seen.
#[test]
fn the_weighted_estimator_gains_what_is_predicted() {
    let (mut clear, mut seen) = (0, 0);
    for Runs { label, people, randomizer, all } in EVERYWHERE.iter() {
        let [throw_away, ldp, uniform, weighted] = people.estimators(randomizer);
        for baseline in [throw_away, uniform, ldp] {
            let (found, error) = mean_and_error(&gaps(people, all, &weighted, &baseline));
            let expected = weighted.mse - baseline.mse;
            assert!(
                (found - expected).abs() < ALLOWED * error,
                "{label} {}: {found} {expected} {error}",
                baseline.name
            );
            if expected < -ALLOWED * error {
                assert!(found < 0.0, "{label} {}: {found}", baseline.name);
                clear += 1;
            }
            seen += 1;
        }
    }
    assert!(clear > seen / 2, "{clear} of {seen}");
}

/// The check above refuses a weight halfway to that of throw-away or to 1/n, for which it is not the prediction; the error of such a
/// weight is a quarter of the way to the other's.
#[test]
fn another_weight_does_not_gain_as_much() {
    let mut refused = 0;
    for Runs { label, people, randomizer, all } in EVERYWHERE.iter() {
        let [throw_away, _, uniform, weighted] = people.estimators(randomizer);
        for other in [throw_away, uniform] {
            let private_weight = 0.5 * (weighted.private_weight + other.private_weight);
            let wrong = Combination { private_weight, ..weighted };
            let (found, error) = mean_and_error(&gaps(people, all, &wrong, &other));
            let expected = 0.75 * (weighted.mse - other.mse);
            assert!((found - expected).abs() < ALLOWED * error, "{label}: {found} {expected} {error}");
            refused += usize::from((found - (weighted.mse - other.mse)).abs() > ALLOWED * error);
        }
    }
    assert!(refused > SETTINGS.len(), "{refused}");
}

/// The weights 1/n for the mean of the very rows at hand: what is public has no error there.
#[test]
fn weights_of_one_nth_have_their_error_to_the_rows_at_hand() {
    for Runs { label, people, randomizer, all } in EVERYWHERE.iter() {
        let [_, _, uniform, _] = people.estimators(randomizer);
        let errors: Vec<f64> = all
            .iter()
            .map(|means| {
                let share = uniform.private_weight;
                let both = means.private.iter().zip(&means.public);
                let rows: Vec<f64> = both.map(|(a, b)| share * a + (1.0 - share) * b).collect();
                distance(&estimate(&uniform, means), &rows)
            })
            .collect();
        let (found, error) = mean_and_error(&errors);
        let expected = uniform.empirical_mse.unwrap();
        assert!((found - expected).abs() < ALLOWED * error, "{label}: {found} {expected} {error}");
        // The error to the mean of the population counts how public rows vary, too.
        assert!(uniform.mse > expected, "{label}");
    }
}
