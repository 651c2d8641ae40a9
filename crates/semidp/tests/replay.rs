//! Replay audits of the registries: no algorithm, estimator, loss, sampling or source shows which private unit it had, but by
//! sums within their declared sensitivity. `SEMIDP_SWEEP=1 cargo test --release -p semidp --test replay` tries every combination
//! with every odd row.

use semidp::audit::Shape;
use semidp::audit::replay::{self, Observed, Options, Report, Source, Worlds, odd_rows};
use semidp::domain::{Ball, Everywhere};
use semidp::loss::{Loss, loss_named};
use semidp::mean::{self, ESTIMATORS, Problem};
use semidp::train::*;
use semidp_accounting::{PrivacyBudget, Rho, Trust};
use semidp_core::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether every combination is tried.
fn is_sweep() -> bool {
    std::env::var("SEMIDP_SWEEP").is_ok()
}

/// Odd rows in each audit: all of them in a sweep.
fn max_odd_rows() -> usize {
    if is_sweep() { 0 } else { 8 }
}

/// One of each kind. The test below checks that none is missing.
const LOSSES: [&str; 8] =
    ["squared", "logistic", "softmax", "hinge", "huber", "huber:0.2", "quantile", "quantile:0.9"];

#[test]
fn no_loss_is_left_out() {
    let error = loss_named("?", 2).err().expect("no loss has this name").to_string();
    let known = error.split("must be ").nth(1).unwrap().split(", got").next().unwrap();
    for name in known.split(", ").flat_map(|part| part.split(" or ")) {
        let kind = name.split(':').next().unwrap();
        let is_covered =
            |loss: &&str| loss.split(':').next() == Some(kind) && loss.contains(':') == name.contains(':');
        assert!(LOSSES.iter().any(|loss| is_covered(&loss)), "{name} of `{known}`");
    }
}

fn approximate() -> PrivacyBudget {
    PrivacyBudget::Approximate { epsilon: Epsilon::new(8.0).unwrap(), delta: Delta::new(1e-5).unwrap() }
}

fn zcdp() -> PrivacyBudget {
    PrivacyBudget::Zcdp { rho: Rho::new(0.4).unwrap(), stated_at: Delta::new(1e-6).unwrap() }
}

fn pure() -> PrivacyBudget {
    PrivacyBudget::Pure { epsilon: Epsilon::new(2.0).unwrap() }
}

/// Every adjacency with every sampling that it admits.
const PROMISES: [(Adjacency, Batches); 8] = [
    (Adjacency::ReplaceOne, Batches::Poisson),
    (Adjacency::ReplaceOne, Batches::FixedSize),
    (Adjacency::ReplaceOne, Batches::OnePass),
    (Adjacency::ReplaceOne, Batches::InOrder),
    (Adjacency::ReplaceOne, Batches::Everyone),
    (Adjacency::AddRemove, Batches::Poisson),
    (Adjacency::AddRemove, Batches::OnePass),
    (Adjacency::AddRemove, Batches::Everyone),
];

const SHAPE: Shape = Shape { private_rows: 40, public_rows: 24, features: 3 };

fn recipe<'a>(loss: &'a dyn Loss, (adjacency, batches): (Adjacency, Batches)) -> Recipe<'a> {
    let mut given = Given { batches: Some(batches), steps: Some(Steps::new(5).unwrap()), ..Given::default() };
    if adjacency == Adjacency::AddRemove {
        given.expected_batch = Some(8.0);
        given.sample_rate =
            Some(SampleRate::new(if batches == Batches::Everyone { 1.0 } else { 0.2 }).unwrap());
    }
    // Pure and concentrated budgets hold without sampling.
    let budget = if batches == Batches::Everyone { zcdp() } else { approximate() };
    Recipe { loss, domain: &Everywhere, has_intercept: true, budget, adjacency, given }
}

fn assert_clean(report: &Report, what: &str) {
    let found: Vec<String> = report.violations.iter().take(5).map(ToString::to_string).collect();
    assert!(
        found.is_empty(),
        "{what}: {} violations, such as\n{}",
        report.violations.len(),
        found.join("\n")
    );
}

/// Central algorithms with every loss and sampling.
#[test]
fn no_training_algorithm_shows_a_private_row() {
    let mut number = 0;
    for algorithm in ALGORITHMS {
        if algorithm.private_use() == PrivateUse::Opened {
            assert_eq!(
                algorithm.name(),
                "non-private",
                "whoever opens the rows is replayed here or named here"
            );
            continue;
        }
        if algorithm.private_use() == PrivateUse::Budgeted && algorithm.trust() == Trust::Local {
            continue;
        }
        let mut total = Report::default();
        for (i, name) in LOSSES.iter().enumerate() {
            let loss = loss_named(name, 3).unwrap();
            for (j, promise) in PROMISES.into_iter().enumerate() {
                number += 1;
                if !is_sweep() && (i + j) % 4 != 0 {
                    continue;
                }
                let mut recipe = recipe(&*loss, promise);
                let mut shape = SHAPE;
                let is_shifted = promise.0 == Adjacency::AddRemove && promise.1 != Batches::Everyone;
                if algorithm.public_use() == PublicUse::Joined && is_shifted {
                    // Joined public rows follow the private ones: one more would move their samples.
                    shape.public_rows = 0;
                    recipe.given.clip_norm = Some(1.0);
                    recipe.given.learning_rate = Some(0.1);
                }
                let sources = if is_sweep() { &Source::ALL[..] } else { &Source::ALL[number % 7..][..1] };
                for &source in sources {
                    let options = Options {
                        seed: number as u64,
                        source,
                        max_odd_rows: max_odd_rows(),
                        threads: 1 + number % 2,
                    };
                    let what = format!("{} with {name}, {promise:?}, {source:?}", algorithm.name());
                    let report = replay::training(algorithm, &recipe, shape, &options).unwrap();
                    assert_clean(&report, &what);
                    total.absorb(report);
                }
            }
        }
        match algorithm.private_use() {
            PrivateUse::Budgeted => {
                // The bound is attained: a smaller declared sensitivity would have been refuted.
                assert!(total.largest_share > 0.999, "{}: {}", algorithm.name(), total.largest_share);
                assert!(total.comparisons > 1000, "{}: {}", algorithm.name(), total.comparisons);
            }
            _ => assert_eq!((total.comparisons, total.largest_share), (0, 0.0), "{}", algorithm.name()),
        }
        println!("{}: {} comparisons, up to {}", algorithm.name(), total.comparisons, total.largest_share);
    }
}
