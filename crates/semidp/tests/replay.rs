//! Replay audits of the registries: no algorithm, estimator, loss, sampling or source shows which private unit it had, but by
//! sums within their declared sensitivity. `SEMIDP_SWEEP=1 cargo test --release -p semidp --test replay` tries every combination
//! with every odd row.

use semidp::audit::Shape;
use semidp::audit::replay::{self, Observed, Options, Report, Source, Worlds, odd_rows};
use semidp::domain::{Ball, Everywhere};
use semidp::loss::{Linear, Loss, Objective, loss_named};
use semidp::mean::{self, ESTIMATORS, Problem};
use semidp::train::*;
use semidp_accounting::local::RANDOMIZERS;
use semidp_accounting::{PrivacyBudget, Rho, Trust};
use semidp_core::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
        assert!(LOSSES.iter().any(is_covered), "{name} of `{known}`");
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
                    let refused =
                        replay::training(algorithm, &recipe, shape, &Options::default()).unwrap_err();
                    assert!(refused.to_string().starts_with("n-public must be 0"), "{refused}");
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
                        ..Options::default()
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
                    let options = Options {
                        seed: number,
                        source,
                        threads: 1 + number as usize % 2,
                        ..Options::default()
                    };
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
                let options =
                    Options { seed: i as u64, source, max_odd_rows: max_odd_rows(), ..Options::default() };
                let Ok(report) = replay::training(algorithm, &recipe, SHAPE, &options) else { continue };
                assert_clean(&report, &format!("{} with {what}, {promise:?}", algorithm.name()));
            }
        }
    }
}

/// Gradients of whole rows: the losses that have no scores.
#[test]
fn no_loss_of_rows_shows_a_private_row() {
    let rows: Vec<Vec<f64>> =
        (0..30).map(|i| (0..3).map(|j| 0.1 * f64::from((i * (j + 2)) % 7)).collect()).collect();
    let quadratic = semidp::loss::Quadratic::new(0.3).unwrap();
    for (loss, name) in [(&quadratic as &dyn Objective, "quadratic"), (&Linear, "linear")] {
        for source in Source::ALL {
            let worlds = Worlds::new(&rows, &odd_rows(3, None), 3, source, Adjacency::ReplaceOne);
            let report = replay::replay(worlds.count(), |world, recorder| {
                let sgd = Sgd {
                    loss,
                    start: Model::zero(3, 1, false),
                    steps: Steps::new(4).unwrap(),
                    sampling: Sampling::OnePass { blocks: 2 },
                    batch: 15.0,
                    private_rows: 30.0,
                    clip_norm: 0.5,
                    noise_multiplier: NoiseMultiplier::new(1.5).unwrap(),
                    public_batch: 1,
                    public_gradient: PublicGradient::Clip,
                    alpha: Alpha::Given(1.0),
                    update: Box::new(StepSize::Constant(0.1)),
                    average: Average::Mean,
                    domain: &Everywhere,
                    l2: 0.0,
                    public_l2: 0.0,
                    public_seed: 1,
                };
                let mut observed = Observed::new();
                let session = Session::new(worlds.table(world).unwrap(), Adjacency::ReplaceOne).unwrap();
                let session = session.with_randomness(Randomness::Seed(2)).with_recorder(recorder.clone());
                observed.trained(&sgd.train(&session, None, Delta::new(1e-6).unwrap(), &mut |_, _| ()));
                observed
            });
            assert_clean(&report, &format!("{name} from {source:?}"));
            assert!(report.largest_share > 0.999 && report.comparisons > 1000, "{name}: {report:?}");
        }
    }
}

/// A folder that no other test and no other run has.
fn fresh(name: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = path.join(format!("replay-{name}-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Ordinary rows of three features and a label, and odd ones.
fn labelled(adjacency: Adjacency, source: Source) -> Worlds {
    let row = |i: i32| {
        let x: Vec<f64> = (0..3).map(|j| 0.1 * f64::from((i * (2 * j + 3)) % 11) - 0.5).collect();
        let label = f64::from(u8::from(x[0] > x[1]));
        [x, vec![label]].concat()
    };
    let rows: Vec<Vec<f64>> = (0..40).map(row).collect();
    Worlds::new(&rows, &odd_rows(4, Some(2)), 4, source, adjacency)
}

/// A run that is interrupted after any step and resumed: two programs for the recorder, one release for the world. Files that are
/// left on the way have the same names; a checkpoint holds a fingerprint of the rows under the run's key, and is not compared.
#[test]
fn no_interrupted_run_shows_a_private_row() {
    let logistic = loss_named("logistic", 2).unwrap();
    let algorithm = algorithm_named("semi-dp-sgd").unwrap();
    let folder = fresh("interrupted");
    let rows: Vec<f64> = (0..24i32)
        .flat_map(|i| [0.1 * f64::from(i % 7), 0.2, -0.1 * f64::from(i % 5), f64::from(i % 2)])
        .collect();
    let public = PublicRows::load(&Public(DenseTable::new(rows, 4).unwrap())).unwrap();
    for (stop_at, adjacency) in [(1, Adjacency::ReplaceOne), (3, Adjacency::AddRemove)] {
        let recipe = recipe(&*logistic, (adjacency, Batches::Poisson));
        let worlds = labelled(adjacency, Source::DenseDouble);
        let report = replay::replay(worlds.count(), |world, recorder| {
            let mut observed = Observed::new();
            let path = folder.join(format!("run-{stop_at}"));
            let stop = Arc::new(AtomicBool::new(false));
            let go = |keeping: &Keeping, observed: &mut Observed| {
                let data =
                    TrainingData { private: worlds.table(world).unwrap(), public: Some(public.clone()) };
                let conduct = Conduct {
                    keeping: Some(keeping),
                    recorder: Some(recorder.clone()),
                    threads: Some(1),
                    ..Conduct::new(Randomness::Seed(1))
                };
                let trained = algorithm.train(&recipe, data, conduct, &mut |shown| {
                    stop.store(shown.step == stop_at, Ordering::Relaxed);
                    observed.note("progress", format!("{} of {}", shown.step, shown.steps));
                });
                observed.trained(&trained);
                observed.note("files", format!("{:?}", names(&folder)));
            };
            let keeping = Keeping::begin(&path, Randomness::Seed(1)).unwrap().until(stop.clone());
            go(&keeping, &mut observed);
            drop(keeping);
            let keeping = Keeping::resume(&path).unwrap();
            go(&keeping, &mut observed);
            keeping.end().unwrap();
            observed
        });
        assert_clean(&report, &format!("interrupted after {stop_at}, {adjacency}"));
        assert!(report.largest_share > 0.9 && report.comparisons > 100, "{report:?}");
    }
    assert!(names(&folder).is_empty());
    std::fs::remove_dir(&folder).unwrap();
}

fn names(folder: &PathBuf) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Memory that holds the rows of one world, and not those of another: nothing tells which.
#[test]
fn whether_rows_fit_into_memory_does_not_show() {
    let logistic = loss_named("logistic", 2).unwrap();
    for algorithm in ["semi-dp-sgd", "optimal-gain"].map(|name| algorithm_named(name).unwrap()) {
        for promise in [PROMISES[0], PROMISES[5], PROMISES[7]] {
            // 40 rows of four numbers of eight bytes; one more does not fit, and one byte less holds none of the worlds.
            for memory in [0, 1279, 1280, 1312] {
                let options = Options {
                    source: Source::StreamedDense,
                    memory: Some(memory),
                    max_odd_rows: max_odd_rows(),
                    ..Options::default()
                };
                let recipe = recipe(&*logistic, promise);
                let report = replay::training(algorithm, &recipe, SHAPE, &options).unwrap();
                assert_clean(&report, &format!("{} in {memory} bytes, {promise:?}", algorithm.name()));
                assert!(report.comparisons > 0);
            }
        }
    }
}

/// Algorithms of the local model have no sums. With the same coins, iterates differ once the person has reported; all but released
/// values may not.
#[test]
fn local_training_shows_nothing_but_reports() {
    let logistic = loss_named("logistic", 2).unwrap();
    let rows: Vec<f64> = (0..24i32)
        .flat_map(|i| [0.1 * f64::from(i % 7), 0.2, -0.1 * f64::from(i % 5), f64::from(i % 2)])
        .collect();
    let public = PublicRows::load(&Public(DenseTable::new(rows, 4).unwrap())).unwrap();
    let mut audited = 0;
    for algorithm in ALGORITHMS {
        if algorithm.private_use() != PrivateUse::Budgeted || algorithm.trust() != Trust::Local {
            continue;
        }
        audited += 1;
        for source in [Source::DenseDouble, Source::SparseSingle, Source::StreamedDense] {
            let mut recipe = recipe(&*logistic, (Adjacency::ReplaceOne, Batches::Everyone));
            (recipe.budget, recipe.given) = (pure(), Given::default());
            let worlds = labelled(Adjacency::ReplaceOne, source);
            let report = replay::replay(worlds.count(), |world, recorder| {
                let mut observed = Observed::new();
                let data =
                    TrainingData { private: worlds.table(world).unwrap(), public: Some(public.clone()) };
                let conduct =
                    Conduct { recorder: Some(recorder.clone()), ..Conduct::new(Randomness::Seed(1)) };
                let trained = algorithm.train(&recipe, data, conduct, &mut |shown| {
                    observed.note("progress", format!("{} of {}", shown.step, shown.steps));
                });
                let Trained { model, mut certificate, alpha } = trained.unwrap();
                certificate.hyperparameters.retain(|one| one.source != "released gradients");
                observed.certificate(&certificate);
                observed.note(
                    "shape",
                    format!("{:?} {alpha}", (model.features, model.outputs, model.weights.len())),
                );
                observed.note("finite", model.weights.iter().all(|w| w.is_finite()).to_string());
                observed
            });
            assert_clean(&report, &format!("{} from {source:?}", algorithm.name()));
        }
    }
    assert!(audited >= 3);
}

/// With the same coins, one person's row changes that person's report alone, and nothing else about the reports. A report of Duchi's
/// mechanism is one of two opposite vectors that do not depend on the row.
#[test]
fn a_row_changes_its_own_report_alone() {
    const WIDTH: usize = 4;
    const PEOPLE: usize = 9;
    let rows: Vec<Vec<f64>> =
        (0..PEOPLE).map(|i| (0..WIDTH).map(|j| 0.2 * (i + j) as f64 - 1.0).collect()).collect();
    for mechanism in RANDOMIZERS {
        for source in Source::ALL {
            let worlds = Worlds::new(&rows, &odd_rows(WIDTH, None), WIDTH, source, Adjacency::ReplaceOne);
            let reports = |world: usize| {
                let randomizer = Randomizer::new(mechanism, WIDTH, Epsilon::new(1.0).unwrap(), 2.0).unwrap();
                let mut all: Vec<Vec<f64>> = Vec::new();
                let certificate = randomizer
                    .reports(worlds.table(world).unwrap(), Randomness::Seed(3), 2, &mut |one| {
                        all.push(one.to_vec())
                    })
                    .map_err(|error| error.to_string());
                (all, certificate)
            };
            let (first, certificate) = reports(0);
            for world in 1..worlds.count() {
                let (mut other, found) = reports(world);
                let what = format!("{} of a row of {}, {source:?}", mechanism.name, worlds.name(world));
                assert_eq!(found, certificate, "{what}");
                assert_eq!(other.len(), PEOPLE, "{what}");
                let own = other[PEOPLE / 2].clone();
                assert!(own.len() == WIDTH && own.iter().all(|x| x.is_finite()), "{what}: {own:?}");
                if mechanism.name == "duchi" {
                    let opposite: Vec<f64> = own.iter().map(|x| -x).collect();
                    assert!([own, opposite].contains(&first[PEOPLE / 2]), "{what}");
                }
                other[PEOPLE / 2].clone_from(&first[PEOPLE / 2]);
                assert_eq!(other, first, "{what}");
            }
        }
    }
}
