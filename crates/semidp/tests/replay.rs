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

/// One of each kind. The test below checks that none is missing. Each smooth one is followed, four places on, by one with kinks
/// or another parameter, so that each promise meets both in the short walk.
const LOSSES: [&str; 8] =
    ["squared", "logistic", "softmax", "huber", "hinge", "quantile", "quantile:0.9", "huber:0.2"];

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
                if loss.smoothness().is_none() && !is_sweep() {
                    // Too few to choose a ridge by, which takes seconds for a loss with kinks.
                    shape.public_rows = 9;
                }
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
                    // A refusal that is the same in all worlds, such as of a loss with kinks.
                    let Ok(report) = replay::training(algorithm, &recipe, shape, &options) else { continue };
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

/// What estimators are planned for: with and without public rows, one column and several, rows that lie beyond the radius.
fn problems() -> Vec<Problem> {
    let problem =
        |private, public, dimension, radius| Problem::new(private, public, dimension, radius).unwrap();
    let with_l1 = |problem: Problem| problem.with_l1(mean::Clip { radius: 0.7, bias: 0.1 }).unwrap();
    vec![
        problem(30, 10, 3, 1.0).with_std(0.5).unwrap(),
        problem(30, 0, 3, 1.0),
        problem(7, 10, 1, 1e-12),
        problem(12, 10, 5, 1e12).with_target(mean::Target::Empirical),
        with_l1(problem(30, 10, 4, 0.5)).with_clip_bias(0.01).unwrap(),
        problem(1, 5, 2, 2.0),
        problem(40, 10, 70, 3.0),
    ]
}

#[test]
fn no_mean_shows_a_private_row() {
    let mut number = 0;
    for estimator in ESTIMATORS {
        let mut total = Report::default();
        for problem in problems() {
            for budget in [approximate(), zcdp(), pure()] {
                let Ok(plan) = mean::plan_named(estimator.name(), &problem, budget) else { continue };
                for source in Source::ALL {
                    number += 1;
                    let options =
                        Options { seed: number, source, max_odd_rows: 0, threads: 1 + number as usize % 2 };
                    let report = replay::mean(&plan, &options).unwrap();
                    assert_clean(&report, &format!("{} of {problem:?} from {source:?}", estimator.name()));
                    total.absorb(report);
                }
            }
        }
        match estimator.law() {
            Some(_) => {
                assert!(total.largest_share > 0.999 && total.comparisons > 1000, "{}", estimator.name())
            }
            None => assert_eq!(total.comparisons, 0, "{}", estimator.name()),
        }
        println!("{}: {} comparisons, up to {}", estimator.name(), total.comparisons, total.largest_share);
    }
}

/// Hyper-parameters and surroundings that the walk above leaves at their defaults.
#[test]
fn no_option_of_training_shows_a_private_row() {
    let softmax = loss_named("softmax", 3).unwrap();
    let squared = loss_named("squared", 2).unwrap();
    let ball = Ball::new(0.5).unwrap();
    type Change = fn(&mut Recipe<'_>);
    let changes: [(&str, Change); 12] = [
        ("clip-norm 1e-9", |recipe| recipe.given.clip_norm = Some(1e-9)),
        ("clip-norm 1e9", |recipe| recipe.given.clip_norm = Some(1e9)),
        ("alpha per-step", |recipe| recipe.given.alpha = Some(Alpha::PerStep)),
        ("alpha horizon", |recipe| recipe.given.alpha = Some(Alpha::Horizon)),
        ("public gradients as they are", |recipe| recipe.given.public_gradient = Some(PublicGradient::Raw)),
        ("rescaled public gradients", |recipe| recipe.given.public_gradient = Some(PublicGradient::Rescale)),
        ("a cold start", |recipe| recipe.given.warm_start = Some(WarmStart::Cold)),
        ("a ridge", |recipe| recipe.given.l2 = Some(0.1)),
        ("the mean of all iterates", |recipe| recipe.given.average = Some(Average::Mean)),
        ("the last iterate", |recipe| recipe.given.average = Some(Average::Last)),
        ("no intercept", |recipe| recipe.has_intercept = false),
        // More than there are: an error, and the same one.
        ("a batch that is too large", |recipe| {
            recipe.given.sample_rate = None;
            recipe.given.expected_batch = Some(1e9);
        }),
    ];
    for (i, (what, change)) in changes.into_iter().enumerate() {
        for (j, algorithm) in ALGORITHMS.into_iter().enumerate() {
            if algorithm.private_use() != PrivateUse::Budgeted
                || algorithm.trust() == Trust::Local
                || !is_sweep() && (i + j) % 2 != 0
            {
                continue;
            }
            let loss = if i % 2 == 0 { &*softmax } else { &*squared };
            // Under add/remove and without a sample for rows to shift in.
            for promise in
                [(Adjacency::ReplaceOne, Batches::OnePass), (Adjacency::AddRemove, Batches::Everyone)]
            {
                let mut recipe = recipe(loss, promise);
                recipe.domain = &ball;
                change(&mut recipe);
                let source = Source::ALL[(i + j) % Source::ALL.len()];
                let options = Options { seed: i as u64, source, max_odd_rows: max_odd_rows(), threads: 1 };
                let Ok(report) = replay::training(algorithm, &recipe, SHAPE, &options) else { continue };
                assert_clean(&report, &format!("{} with {what}, {promise:?}", algorithm.name()));
            }
        }
    }
}
