//! What every algorithm of the registry must do, whichever it is.

use semidp::domain::{Ball, Everywhere};
use semidp::loss::*;
use semidp::train::*;
use semidp_accounting::{Arithmetic, PrivacyBudget, Rho, Trust};
use semidp_core::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FEATURES: usize = 4;
const TRUTH: [f64; FEATURES] = [1.0, -2.0, 0.5, 1.5];

/// Numbers from −1 to 1 that look random.
struct Numbers(u64);

impl Numbers {
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Rows of four features, labels of about ⟨w*, x⟩ + 0.7 or whether that is positive.
fn table(count: usize, is_class: bool, seed: u64) -> DenseTable<f32> {
    let mut numbers = Numbers(seed);
    let mut values = Vec::new();
    for _ in 0..count {
        let x: Vec<f64> = (0..FEATURES).map(|_| numbers.draw()).collect();
        let score = 0.7 + x.iter().zip(TRUTH).map(|(x, w)| x * w).sum::<f64>() + 0.3 * numbers.draw();
        values.extend(x.iter().map(|x| *x as f32));
        values.push(if is_class { f32::from(u8::from(score > 0.0)) } else { score as f32 });
    }
    DenseTable::new(values, FEATURES + 1).unwrap()
}

fn public(count: usize, is_class: bool) -> PublicRows {
    PublicRows::load(&Public(table(count, is_class, 3))).unwrap()
}

fn approximate() -> PrivacyBudget {
    PrivacyBudget::Approximate { epsilon: Epsilon::new(2.0).unwrap(), delta: Delta::new(1e-5).unwrap() }
}

fn pure() -> PrivacyBudget {
    PrivacyBudget::Pure { epsilon: Epsilon::new(8.0).unwrap() }
}

fn is_local(algorithm: &dyn Algorithm) -> bool {
    algorithm.trust() == Trust::Local
}

/// Adjacencies and budgets that an algorithm can do with.
fn promises(algorithm: &dyn Algorithm) -> Vec<(Adjacency, PrivacyBudget)> {
    let zcdp = PrivacyBudget::Zcdp { rho: Rho::new(0.4).unwrap(), stated_at: Delta::new(1e-6).unwrap() };
    if is_local(algorithm) {
        return vec![(Adjacency::ReplaceOne, pure())];
    }
    let both = [Adjacency::ReplaceOne, Adjacency::AddRemove];
    both.into_iter().flat_map(|adjacency| [approximate(), zcdp].map(|budget| (adjacency, budget))).collect()
}

/// A recipe that an algorithm can do with.
fn suited<'a>(algorithm: &dyn Algorithm, loss: &'a dyn Loss) -> Recipe<'a> {
    let (adjacency, budget) = promises(algorithm)[0];
    recipe(loss, budget, adjacency)
}

fn recipe<'a>(loss: &'a dyn Loss, budget: PrivacyBudget, adjacency: Adjacency) -> Recipe<'a> {
    let mut given = Given { steps: Some(Steps::new(40).unwrap()), ..Given::default() };
    if adjacency == Adjacency::AddRemove {
        given.sample_rate = Some(SampleRate::new(0.025).unwrap());
        given.expected_batch = Some(50.0);
    }
    Recipe { loss, domain: &Everywhere, has_intercept: true, budget, adjacency, given }
}

fn train(
    algorithm: &dyn Algorithm,
    recipe: &Recipe<'_>,
    rows: usize,
    public: Option<PublicRows>,
    threads: usize,
) -> semidp::Result<Trained> {
    let is_class = recipe.loss.labels() == Labels::Classes;
    let data = TrainingData { private: Private::new(table(rows, is_class, 7)).boxed(), public };
    let conduct = Conduct { threads: Some(threads), ..Conduct::new(Randomness::Seed(1)) };
    algorithm.train(recipe, data, conduct, &mut |_| ())
}

/// Those that spend a budget.
fn spending() -> impl Iterator<Item = &'static dyn Algorithm> {
    ALGORITHMS.into_iter().filter(|algorithm| algorithm.private_use() == PrivateUse::Budgeted)
}

#[test]
fn names_are_found_and_listed() {
    for algorithm in ALGORITHMS {
        assert_eq!(algorithm_named(algorithm.name()).unwrap().name(), algorithm.name());
        assert!(algorithm_names().contains(algorithm.name()) && !algorithm.about().is_empty());
    }
    let Err(error) = algorithm_named("magic") else { panic!("magic was found") };
    assert_eq!(error.to_string(), format!("algorithm must be {}, got `magic`", algorithm_names()));
    assert!(spending().count() >= 5);
}

/// Certificates hold, and stay within the budget; those of algorithms that spend nothing are of ε = 0, and of those that
/// open the rows promise nothing.
#[test]
fn budgets_are_kept() {
    for algorithm in ALGORITHMS {
        for (adjacency, budget) in promises(algorithm) {
            let recipe = recipe(&Squared, budget, adjacency);
            let trained = train(algorithm, &recipe, 2000, Some(public(80, false)), 1).unwrap();
            let certificate = trained.certificate;
            let guarantee = certificate.guarantee;
            let verdict = certificate.verify_allowing_seeded().unwrap();
            let name = algorithm.name();
            match algorithm.private_use() {
                PrivateUse::Budgeted => {
                    assert!(verdict.valid, "{name}: {:?}", verdict.objections);
                    assert_eq!(guarantee.adjacency, adjacency);
                    let is_exact = certificate.arithmetic == Arithmetic::Exact;
                    assert_eq!((guarantee.trust, is_exact), (algorithm.trust(), true));
                    assert!(certificate.mechanism.starts_with(&format!("train: {name}, ")));
                    match budget {
                        PrivacyBudget::Approximate { epsilon, delta } => {
                            assert!(guarantee.epsilon <= epsilon && guarantee.delta == delta, "{name}");
                            assert!(guarantee.epsilon.get() > 0.98 * epsilon.get(), "{name}");
                        }
                        PrivacyBudget::Zcdp { rho, .. } => {
                            let spent = guarantee.rho.unwrap().get();
                            assert!(spent <= rho.get() && spent > 0.98 * rho.get(), "{name}: {spent}");
                        }
                        PrivacyBudget::Pure { epsilon } => {
                            assert_eq!((guarantee.epsilon, guarantee.delta.get()), (epsilon, 0.0));
                        }
                    }
                }
                PrivateUse::Nothing => {
                    assert!(verdict.valid && guarantee.epsilon.get() == 0.0 && certificate.events.is_empty());
                }
                PrivateUse::Opened => {
                    assert!(!verdict.valid && verdict.epsilon == Epsilon::UNBOUNDED);
                    assert!(verdict.objections[0].contains("declassified"));
                    let json = serde_json::to_value(&certificate).unwrap();
                    assert!(json["guarantee"]["epsilon"].is_null(), "{json}");
                    let read = Certificate::from_value(json.clone()).unwrap();
                    assert_eq!(read, certificate);
                    // Without the reason, no epsilon is no certificate.
                    let mut silent = json;
                    silent.as_object_mut().unwrap().remove("declassified");
                    assert!(Certificate::from_value(silent).is_err());
                }
            }
            // Every hyper-parameter has one value and a known source.
            let entries = &certificate.hyperparameters;
            for one in entries {
                let sources =
                    ["user", "public data", "theory", "calibration", "default", "released gradients"];
                assert!(sources.contains(&one.source.as_str()), "{name}: {one:?}");
                assert_eq!(entries.iter().filter(|other| other.name == one.name).count(), 1, "{one:?}");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_whatever_the_threads() {
    for algorithm in ALGORITHMS {
        for (loss, is_class) in [(&Squared as &dyn Loss, false), (&Logistic, true)] {
            let recipe = suited(algorithm, loss);
            let bits = |threads: usize| -> Vec<u64> {
                let trained = train(algorithm, &recipe, 3000, Some(public(80, is_class)), threads).unwrap();
                trained.model.weights.iter().map(|w| w.to_bits()).collect()
            };
            let once = bits(1);
            assert_eq!(once, bits(1), "{}", algorithm.name());
            assert_eq!(once, bits(3), "{}", algorithm.name());
        }
    }
}

/// Whoever asks people for reports promises pure ε, to people whose number is known, and takes nothing else.
#[test]
fn reports_promise_pure_epsilon() {
    for algorithm in spending().filter(|algorithm| is_local(*algorithm)) {
        for (budget, adjacency, name) in [
            (approximate(), Adjacency::ReplaceOne, "delta"),
            (promises(&SemiDpSgd)[1].1, Adjacency::ReplaceOne, "rho"),
            (pure(), Adjacency::AddRemove, "adjacency"),
        ] {
            let recipe = recipe(&Squared, budget, adjacency);
            let error = train(algorithm, &recipe, 100, Some(public(80, false)), 1).unwrap_err().to_string();
            assert!(error.starts_with(name), "{}: {error}", algorithm.name());
        }
        // Each by its name where nobody is trusted, and by no other way.
        assert_eq!(algorithm_for(algorithm.name(), Trust::Local).unwrap().name(), algorithm.name());
        assert!(algorithm_for(algorithm.name(), Trust::Central).is_err());
    }
    assert!(is_local(algorithm_for("auto", Trust::Local).unwrap()));
    assert!(!is_local(algorithm_for("auto", Trust::Central).unwrap()));
    assert!(algorithm_for("semi-dp-sgd", Trust::Local).is_err());
    assert_eq!(algorithm_for("throw-away", Trust::Local).unwrap().name(), "throw-away");
}

/// Without public rows an algorithm works with what it is given, or says that it needs them.
#[test]
fn without_public_rows() {
    for algorithm in ALGORITHMS {
        for (adjacency, budget) in promises(algorithm) {
            let mut recipe = recipe(&Squared, budget, adjacency);
            recipe.given.clip_norm = Some(1.0);
            recipe.given.learning_rate = Some(0.2);
            match train(algorithm, &recipe, 2000, None, 1) {
                Ok(trained) => {
                    assert!(trained.model.weights.iter().all(|w| w.is_finite()));
                    assert_ne!(algorithm.public_use(), PublicUse::Alone);
                    assert_eq!(trained.alpha, 1.0, "{}", algorithm.name());
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.starts_with("public must be given"), "{}: {text}", algorithm.name());
                    assert_ne!(algorithm.public_use(), PublicUse::Joined);
                }
            }
            recipe.given.clip_norm = None;
            if algorithm.private_use() == PrivateUse::Budgeted {
                let error = train(algorithm, &recipe, 2000, None, 1).unwrap_err().to_string();
                let asks =
                    error.starts_with("clip-norm must be given") || error.starts_with("public must be");
                assert!(asks, "{}: {error}", algorithm.name());
            }
        }
    }
}

/// Where it is known that there are no private rows, public rows answer alone and nothing is paid.
#[test]
fn without_private_rows() {
    for algorithm in spending().filter(|algorithm| algorithm.public_use() != PublicUse::Joined) {
        let recipe = suited(algorithm, &Squared);
        let trained = train(algorithm, &recipe, 0, Some(public(80, false)), 1).unwrap();
        assert_eq!(trained.certificate.guarantee.epsilon.get(), 0.0, "{}", algorithm.name());
        assert!(
            trained.certificate.events.is_empty()
                && trained.certificate.verify_allowing_seeded().unwrap().valid
        );
        assert!(train(algorithm, &recipe, 0, None, 1).is_err());
    }
}

/// Better than any constant, by far, whether the target is a number or a class.
#[test]
fn models_are_sane() {
    let (test_numbers, test_classes) = (table(500, false, 11), table(500, true, 11));
    let (test_numbers, test_classes) =
        (PublicRows::load(&Public(test_numbers)).unwrap(), PublicRows::load(&Public(test_classes)).unwrap());
    let mut losses: Vec<(Box<dyn Loss>, &PublicRows)> = Vec::new();
    for name in ["squared", "huber", "quantile"] {
        losses.push((loss_named(name, 2).unwrap(), &test_numbers));
    }
    for name in ["logistic", "softmax", "hinge"] {
        losses.push((loss_named(name, 2).unwrap(), &test_classes));
    }
    for algorithm in ALGORITHMS {
        let mut worked = 0;
        for (loss, test) in &losses {
            let is_class = loss.labels() == Labels::Classes;
            let recipe = suited(algorithm, &**loss);
            let trained = match train(algorithm, &recipe, 4000, Some(public(100, is_class)), 1) {
                Ok(trained) => trained,
                Err(error) => {
                    // Losses with kinks are not for all of them.
                    let text = error.to_string();
                    assert!(loss.smoothness().is_none() && text.starts_with("algorithm must be"), "{text}");
                    continue;
                }
            };
            worked += 1;
            let shape = Model::zero(0, loss.outputs(), true);
            // The best constant: a model without features.
            let alone: Vec<f64> = (0..test.len()).map(|row| test.label(row)).collect();
            let alone = PublicRows::load(&Public(DenseTable::new(alone, 1).unwrap())).unwrap();
            let constant = shape.with_weights(minimise(&**loss, &alone, &shape, 0.0));
            let (found, worst) =
                (trained.model.mean_loss(&**loss, test), constant.mean_loss(&**loss, &alone));
            assert!(found < 0.7 * worst, "{} {}: {found} {worst}", algorithm.name(), loss.name());
        }
        assert!(worked >= 4, "{}", algorithm.name());
    }
}

/// Models stay in their domain.
#[test]
fn domains_are_kept() {
    let ball = Ball::new(0.5).unwrap();
    for algorithm in ALGORITHMS {
        let recipe = Recipe { domain: &ball, ..suited(algorithm, &Squared) };
        let trained = train(algorithm, &recipe, 2000, Some(public(80, false)), 1).unwrap();
        let length = trained.model.weights.iter().map(|w| w * w).sum::<f64>().sqrt();
        assert!(length <= 0.5 + 1e-12, "{}: {length}", algorithm.name());
    }
}

/// What an update remembers is all that matters: taken up in the middle by another one, a run ends in the same bits.
#[test]
fn updates_can_be_taken_up() {
    let rows = public(60, true);
    let shape = Model::zero(FEATURES, 1, true);
    let (squared, logistic): (Box<dyn Loss>, Box<dyn Loss>) = (Box::new(Squared), Box::new(Logistic));
    let map = |loss| MirrorMap::new(loss, &rows, &shape, 0.01).unwrap().descent(0.3);
    let rules: [Box<dyn UpdateRule>; 6] = [
        Box::new(StepSize::Constant(0.3)),
        Box::new(StepSize::StronglyConvex(0.5)),
        Box::new(Acceleration::convex(1.0, 0.1, 0.7, 20)),
        Box::new(Acceleration::strongly_convex(1.0, 0.2)),
        Box::new(map(&*squared)),
        Box::new(map(&*logistic)),
    ];
    let ball = Ball::new(0.8).unwrap();
    let walk = |update: &mut dyn Update, steps: std::ops::RangeInclusive<u64>| {
        let mut point = vec![0.0; FEATURES + 1];
        for step in steps {
            update.query_into(step, &mut point);
            let gradient: Vec<f64> =
                point.iter().enumerate().map(|(j, w)| w - 0.2 * j as f64 + 0.01 * step as f64).collect();
            update.advance(step, &gradient, &ball);
        }
    };
    for rule in &rules {
        rule.check().unwrap();
        let start = vec![0.1; FEATURES + 1];
        let mut whole = rule.begin(&start);
        walk(&mut *whole, 1..=20);
        let mut first = rule.begin(&start);
        walk(&mut *first, 1..=9);
        let state: Vec<Vec<f64>> = first.state().iter().map(|part| part.to_vec()).collect();
        let mut second = rule.begin(&[0.0; FEATURES + 1]);
        second.restore(&state);
        walk(&mut *second, 10..=20);
        assert_eq!(whole.state(), second.state());
        assert_eq!(whole.iterate(), second.iterate());
        assert_ne!(whole.iterate(), first.iterate());
    }
}

/// The learning rate of DP-SGD is that of gradients over the clip norm: as long as all gradients are clipped, twice the
/// clip norm at the same rate is the same step.
#[test]
fn the_rate_of_dp_sgd_does_not_depend_on_the_clip_norm() {
    let weights = |clip_norm: f64| {
        let mut recipe = recipe(&Logistic, approximate(), Adjacency::ReplaceOne);
        recipe.given.clip_norm = Some(clip_norm);
        recipe.given.learning_rate = Some(0.5);
        train(algorithm_named("dp-sgd").unwrap(), &recipe, 2000, None, 1).unwrap().model.weights
    };
    let (once, twice) = (weights(1e-4), weights(2e-4));
    let apart: f64 = once.iter().zip(&twice).map(|(a, b)| (a - b).abs()).sum();
    let size: f64 = once.iter().map(|w| w.abs()).sum();
    assert!(apart < 0.02 * size && size > 0.5, "{once:?} {twice:?}");
}

/// A warm start is honoured by every algorithm that spends; DP-SGD is cold unless one is asked for.
#[test]
fn starts_are_as_asked_for() {
    // Where public rows are a prior, the start is what they say, whatever is asked for.
    for algorithm in spending().filter(|one| one.public_use() != PublicUse::Prior && !is_local(*one)) {
        for (given, expected) in [
            (None, if algorithm.public_use() == PublicUse::Joined { "none" } else { "ridge" }),
            (Some(WarmStart::Minimum), "minimum"),
            (Some(WarmStart::Ridge), "ridge"),
            (Some(WarmStart::Cold), "none"),
        ] {
            let mut recipe = recipe(&Squared, approximate(), Adjacency::ReplaceOne);
            recipe.given.warm_start = given;
            let mut first = None;
            let data = TrainingData {
                private: Private::new(table(2000, false, 7)).boxed(),
                public: Some(public(80, false)),
            };
            let conduct = Conduct { threads: Some(1), ..Conduct::new(Randomness::Seed(1)) };
            let trained = algorithm.train(&recipe, data, conduct, &mut |progress| {
                first.get_or_insert_with(|| progress.model.weights.clone());
            });
            let entries = trained.unwrap().certificate.hyperparameters;
            let told = entries.iter().find(|one| one.name == "warm-start").unwrap();
            assert_eq!(told.value, expected, "{}", algorithm.name());
            // The first step does not leave the neighbourhood of the truth, whose length is above 2.
            let gap = first.unwrap().iter().zip(TRUTH).map(|(w, t)| (w - t).powi(2)).sum::<f64>().sqrt();
            assert_eq!(gap < 1.0, expected != "none", "{} {expected}: {gap}", algorithm.name());
        }
    }
}

/// The weights of the first-order variant follow a clock, and any other rule is refused.
#[test]
fn the_cosine_has_its_horizon() {
    let algorithm = algorithm_named("pda-first-order").unwrap();
    let alpha = |given: Option<Alpha>| {
        let mut recipe = recipe(&Squared, approximate(), Adjacency::ReplaceOne);
        recipe.given.alpha = given;
        train(algorithm, &recipe, 2000, Some(public(80, false)), 1).map(|trained| trained.alpha)
    };
    let sum = |horizon: u64| {
        let steps = (0..horizon).map(|t| (std::f64::consts::FRAC_PI_2 * t as f64 / horizon as f64).cos());
        steps.sum::<f64>() / 40.0
    };
    assert!((alpha(None).unwrap() - sum(40)).abs() < 1e-12);
    assert!((alpha(Some(Alpha::Cosine { horizon: Some(10) })).unwrap() - sum(10)).abs() < 1e-12);
    let error = alpha(Some(Alpha::Horizon)).unwrap_err().to_string();
    assert!(error.starts_with("alpha must be cosine"), "{error}");
    let error = alpha(Some(Alpha::Cosine { horizon: Some(0) })).unwrap_err().to_string();
    assert!(error.starts_with("alpha must be cosine:K"), "{error}");
}

/// Interrupted after any step and continued, a run ends where it would have ended: the same bits, the same certificate,
/// and no key or checkpoint left.
#[test]
fn interrupted_runs_go_on() {
    let squared = recipe(&Squared, approximate(), Adjacency::ReplaceOne);
    let mut once = recipe(&Logistic, approximate(), Adjacency::ReplaceOne);
    once.given.batches = Some(Batches::OnePass);
    let folder = std::env::temp_dir().join(format!("semidp-conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Runs of reports are over in moments, and not kept.
    for algorithm in spending().filter(|algorithm| !is_local(*algorithm)) {
        for recipe in [&squared, &once] {
            let is_class = recipe.loss.labels() == Labels::Classes;
            let stop = Arc::new(AtomicBool::new(false));
            let go = |keeping: &Keeping, stop_at: u64| {
                let private = Private::new(table(2000, is_class, 7)).boxed();
                let data = TrainingData { private, public: Some(public(80, is_class)) };
                let conduct = Conduct { keeping: Some(keeping), ..Conduct::new(Randomness::OperatingSystem) };
                algorithm.train(recipe, data, conduct, &mut |progress| {
                    stop.store(progress.step >= stop_at, Ordering::Relaxed);
                })
            };
            let begin = |path: &Path| Keeping::begin(path, Randomness::Seed(1)).unwrap().until(stop.clone());
            let kept = begin(&folder.join("whole"));
            let whole = go(&kept, u64::MAX).unwrap();
            kept.end().unwrap();
            for stop_at in [1, 17, 39] {
                let path = folder.join(format!("{}-{stop_at}", algorithm.name()));
                let kept = begin(&path);
                match go(&kept, stop_at) {
                    Err(semidp::Error::Interrupted { step, steps: 40, .. }) => assert_eq!(step, stop_at),
                    other => panic!("{}: {:?}", algorithm.name(), other.map(|trained| trained.alpha)),
                }
                drop(kept);
                let kept = Keeping::resume(&path).unwrap();
                let trained = go(&kept, u64::MAX).unwrap();
                kept.end().unwrap();
                assert_eq!(trained.model, whole.model, "{} {stop_at}", algorithm.name());
                assert_eq!(trained.certificate, whole.certificate);
                assert_eq!(trained.alpha, whole.alpha);
            }
        }
    }
    // Nothing is left.
    std::fs::remove_dir(&folder).unwrap();
}
