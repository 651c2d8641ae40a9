//! Audits of everything in the registries, the tracing attack, and the exact statistics under both.
//!
//! Seeds are fixed, and bounds that must stay below a claim hold with confidence 1 − 1e-9, so that no other seed would fail either.

use semidp::audit::tracing::{Attack, Knowledge, Mechanism, Threshold};
use semidp::audit::{
    Audit, Counts, Guesses, Options, Shape, clopper_pearson, incomplete_beta, one_run_epsilon,
    one_run_p_value,
};
use semidp::domain::Everywhere;
use semidp::loss::{Logistic, Loss, Squared, loss_named};
use semidp::mean::{ESTIMATORS, Plan, Problem, plan_named};
use semidp::train::{ALGORITHMS, Algorithm, Given, PrivateUse, Recipe, algorithm_named};
use semidp::{Result, audit};
use semidp_accounting::local::RANDOMIZERS;
use semidp_accounting::{PrivacyBudget, Trust};
use semidp_core::{Adjacency, Delta, Epsilon, Randomizer, SampleRate, Steps};
use serde_json::Value;

const SURE: f64 = 1.0 - 1e-9;

fn approximate(epsilon: f64, delta: f64) -> PrivacyBudget {
    PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon).unwrap(), delta: Delta::new(delta).unwrap() }
}

fn pure(epsilon: f64) -> PrivacyBudget {
    PrivacyBudget::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{found} instead of {expected}");
}

/// Values by mpmath 1.3 with 40 digits: betainc, or sums of binomial probabilities where arguments are large.
#[test]
fn incomplete_beta_is_that_of_mpmath() {
    for (a, b, x, expected) in [
        (0.5, 0.5, 0.3, 0.369_010_119_565_545),
        (2.0, 3.0, 0.4, 0.5248),
        (10.0, 1.0, 0.7, 0.028_247_524_9),
        (1.0, 10.0, 0.05, 0.401_263_060_761_621),
        (100.0, 200.0, 0.3, 0.108_843_065_644_91),
        (5000.0, 5001.0, 0.49, 0.023_281_712_519_269_4),
        (30.0, 100_000.0, 0.0002, 0.021_879_615_596_887_3),
        (20_000.0, 300.0, 0.983, 0.005_822_541_797_529_28),
    ] {
        assert_near(incomplete_beta(a, b, x), expected, 1e-10);
        assert_near(incomplete_beta(b, a, 1.0 - x), 1.0 - expected, 1e-10);
    }
    assert_eq!((incomplete_beta(2.0, 2.0, 0.0), incomplete_beta(2.0, 2.0, 1.0)), (0.0, 1.0));
}

/// Values by mpmath 1.3 with 40 digits: bisection of the binomial tail.
#[test]
fn intervals_are_those_of_clopper_and_pearson() {
    for (hits, count, miss, lower, upper) in [
        (0, 10, 0.025, 0.0, 0.308_497_107_818_761),
        (3, 10, 0.025, 0.066_739_511_177_734_5, 0.652_452_850_059_997),
        (10, 10, 0.025, 0.691_502_892_181_239, 1.0),
        (1, 1000, 1e-9, 1.000_000_000_499_5e-12, 0.023_667_164_408_359_9),
        (517, 1000, 1e-9, 0.422_190_058_846_797, 0.610_986_172_079_669),
        (9990, 10_000, 2.5e-10, 0.995_467_821_199_403, 0.999_947_945_762_477),
        (4321, 50_000, 0.005, 0.083_212_726_715_727_4, 0.089_706_296_636_577_1),
    ] {
        let found = clopper_pearson(hits, count, miss);
        assert_near(found.0, lower, 1e-10);
        assert_near(found.1, upper, 1e-10);
    }
    assert_eq!(clopper_pearson(0, 0, 0.1), (0.0, 1.0));
}

/// Values by mpmath 1.3 with 40 digits: the formula of the theorem, summed as it stands.
#[test]
fn p_values_are_those_of_the_theorem() {
    for (canaries, made, right, epsilon, delta, expected) in [
        (100, 100, 75, 0.5, 1e-5, 0.004_902_564_167_098_83),
        (1000, 200, 180, 1.0, 1e-5, 0.000_436_224_538_579_16),
        (50, 10, 10, 2.0, 1e-3, 0.319_067_659_676_833),
        (300, 300, 150, 1.0, 1e-4, 1.0),
        (400, 400, 390, 3.0, 0.0, 0.016_598_580_976_878_3),
    ] {
        let guesses = Guesses { canaries, made, right };
        assert_near(one_run_p_value(&guesses, epsilon, delta).unwrap(), expected, 1e-10);
        // The bound is where the p-value is what confidence leaves.
        if expected < 0.5 {
            assert_near(one_run_epsilon(&guesses, delta, 1.0 - expected).unwrap(), epsilon, 1e-9);
        }
    }
    assert!(one_run_p_value(&Guesses { canaries: 1, made: 2, right: 0 }, 1.0, 0.0).is_err());
    // As many right as wrong refute nothing.
    let even = Guesses { canaries: 1000, made: 1000, right: 500 };
    assert_eq!(one_run_epsilon(&even, 1e-5, 0.5).unwrap(), 0.0);
}

fn assert_kept(found: &Audit) {
    let (best, claimed) = (found.best().epsilon, found.claimed_epsilon);
    println!("{}: {best:.3} of {claimed:.3} by {}", found.what, found.best().method);
    assert!(!found.is_violation(), "{}: {best} of {claimed}", found.what);
    // What is measured lies on a curve, below what is allowed.
    assert!(found.roc.is_sorted() && found.roc.iter().is_sorted_by_key(|point| point.1), "{:?}", found.roc);
    assert!(found.trade_off().iter().all(|(x, y)| (0.0..=1.0).contains(y) && *y > x - 1e-12));
}

fn plan(name: &str, epsilon: f64, dimension: usize) -> Plan {
    let problem = Problem::new(20, 5, dimension, 3.0).unwrap();
    plan_named(name, &problem, approximate(epsilon, 1e-5)).unwrap()
}

fn options(trials: u64, confidence: f64) -> Options {
    Options { trials, confidence, seed: 7, threads: 2 }
}

#[test]
fn every_mean_keeps_its_promise() {
    for estimator in ESTIMATORS {
        for (epsilon, dimension) in [(3.0, 1), (6.0, 4)] {
            let found =
                audit::mean(&plan(estimator.name(), epsilon, dimension), &options(3000, SURE)).unwrap();
            assert_kept(&found);
            match estimator.law() {
                None => assert_eq!((found.claimed_epsilon, found.best().epsilon), (0.0, 0.0)),
                Some(_) => assert!(found.best().epsilon > 0.2 * found.claimed_epsilon, "{}", found.what),
            }
        }
    }
}

/// The audit has power: at the worst pair it finds most of what is spent. And the kernel has no less noise than it claims: with 0.8 times
/// its noise the bound is 8.99 of 8.
#[test]
fn the_gaussian_mechanism_spends_what_it_says() {
    let found = audit::mean(&plan("weighted-gaussian", 8.0, 1), &options(16_000, SURE)).unwrap();
    assert_kept(&found);
    assert_eq!(found.best().method, "gaussian-dp");
    assert!(found.best().epsilon >= 0.7 * found.claimed_epsilon, "{}", found.best().epsilon);
}

/// The same for pure laws: with 0.8 times their noise these bounds are above 2, too.
#[test]
fn pure_mechanisms_spend_what_they_say() {
    for name in ["weighted-laplace", "weighted-k-norm"] {
        let found = audit::mean(&plan(name, 2.0, 1), &options(30_000, SURE)).unwrap();
        assert_kept(&found);
        assert!(found.best().epsilon >= 0.8 * found.claimed_epsilon, "{}", found.best().epsilon);
    }
}

/// A plan for a million rows is audited on a few that have their weight.
#[test]
fn many_rows_are_no_obstacle() {
    let problem = Problem::new(1_000_000, 10, 2, 1.0).unwrap();
    let many = plan_named("weighted-gaussian", &problem, approximate(4.0, 1e-5)).unwrap();
    let found = audit::mean(&many, &options(2000, 0.99)).unwrap();
    assert_kept(&found);
    assert!(found.best().epsilon > 0.5 * found.claimed_epsilon);
}

#[test]
fn every_randomizer_keeps_its_promise() {
    for mechanism in RANDOMIZERS {
        for (dimension, epsilon) in [(1, 1.0), (8, 3.0)] {
            let randomizer =
                Randomizer::new(mechanism, dimension, Epsilon::new(epsilon).unwrap(), 2.0).unwrap();
            let found = audit::randomizer(&randomizer, &options(40_000, SURE)).unwrap();
            assert_kept(&found);
            // Pure mechanisms of two levels show their epsilon at the rim.
            assert!(found.best().epsilon > 0.7 * epsilon, "{}", found.best().epsilon);
        }
    }
}

/// Recipes that an algorithm can do with.
fn recipes<'a>(algorithm: &dyn Algorithm, loss: &'a dyn Loss) -> Vec<Recipe<'a>> {
    let is_local = algorithm.trust() == Trust::Local;
    let (budget, adjacencies): (_, &[Adjacency]) = match is_local {
        true => (pure(CLAIM), &[Adjacency::ReplaceOne]),
        false => (approximate(CLAIM, 1e-11), &[Adjacency::ReplaceOne, Adjacency::AddRemove]),
    };
    let recipe = |adjacency: &Adjacency| {
        let mut given = Given { steps: Some(Steps::new(20).unwrap()), ..Given::default() };
        if *adjacency == Adjacency::AddRemove {
            given.sample_rate = Some(SampleRate::new(0.2).unwrap());
            given.expected_batch = Some(50.0);
        }
        Recipe { loss, domain: &Everywhere, has_intercept: true, budget, adjacency: *adjacency, given }
    };
    adjacencies.iter().map(recipe).collect()
}

/// The epsilon of small audits of training.
const CLAIM: f64 = 0.5;

const SHAPE: Shape = Shape { private_rows: 250, public_rows: 80, features: 40 };

fn train(algorithm: &dyn Algorithm, recipe: &Recipe<'_>, runs: u64, confidence: f64) -> Result<Audit> {
    audit::training(algorithm, recipe, SHAPE, &options(runs, confidence), &mut |_, _| ())
}

/// The same audit of the same rows refutes every epsilon of this test where rows are opened: it can tell.
#[test]
fn every_algorithm_keeps_its_promise() {
    for algorithm in ALGORITHMS {
        for loss in [&Squared as &dyn Loss, &Logistic] {
            for recipe in recipes(algorithm, loss) {
                let found = train(algorithm, &recipe, 6, SURE).unwrap();
                assert_kept(&found);
                assert_eq!(found.adjacency, recipe.adjacency);
                match algorithm.private_use() {
                    PrivateUse::Nothing => assert_eq!(found.claimed_epsilon, 0.0),
                    PrivateUse::Opened => assert!(found.best().epsilon > CLAIM, "{}", found.best().epsilon),
                    // The autopilot may leave private rows alone.
                    PrivateUse::Budgeted => assert!(found.claimed_epsilon <= CLAIM),
                }
            }
        }
    }
}

/// Canaries see a good part of what a run spends: full batches, where a whole run is one Gaussian release, and samples.
#[test]
fn canaries_see_what_training_spends() {
    for (name, method, share) in [("optimal-gain", "gaussian-dp", 0.4), ("semi-dp-sgd", "one-run", 0.2)] {
        let algorithm = algorithm_named(name).unwrap();
        let given = Given { steps: Some(Steps::new(40).unwrap()), ..Given::default() };
        let recipe = Recipe {
            loss: &Squared,
            domain: &Everywhere,
            has_intercept: false,
            budget: approximate(4.0, 1e-6),
            adjacency: Adjacency::ReplaceOne,
            given,
        };
        let found = train(algorithm, &recipe, 60, 0.99).unwrap();
        assert_kept(&found);
        let bound = found.bounds.iter().find(|bound| bound.method == method).unwrap();
        println!("{name} {method}: {}", bound.epsilon);
        assert!(bound.epsilon > share * found.claimed_epsilon, "{name}: {}", bound.epsilon);
    }
}

/// Several outputs, no public rows, fewer public rows than features, more features than private rows.
#[test]
fn shapes_of_all_kinds_are_audited() {
    let algorithm = algorithm_named("semi-dp-sgd").unwrap();
    for (loss, public_rows) in
        [("softmax", 30), ("hinge", 30), ("huber", 0), ("quantile", 4), ("logistic", 0)]
    {
        let loss = loss_named(loss, 3).unwrap();
        let mut recipe = recipes(algorithm, &*loss).remove(0);
        recipe.given.clip_norm = Some(2.0);
        recipe.given.learning_rate = Some(0.5);
        let shape = Shape { private_rows: 12, public_rows, features: 40 };
        let found = audit::training(algorithm, &recipe, shape, &options(4, SURE), &mut |_, _| ()).unwrap();
        assert_kept(&found);
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let algorithm = algorithm_named("dp-sgd").unwrap();
    let recipe = &recipes(algorithm, &Squared)[0];
    let error = |options: Options, shape: Shape| {
        audit::training(algorithm, recipe, shape, &options, &mut |_, _| ()).unwrap_err().to_string()
    };
    assert!(error(options(1, 0.9), SHAPE).starts_with("trials must be"));
    assert!(error(options(4, 1.0), SHAPE).starts_with("confidence must be"));
    assert!(error(options(4, 0.9), Shape { features: 3, ..SHAPE }).starts_with("dim must be"));
    assert!(error(options(4, 0.9), Shape { private_rows: 1, ..SHAPE }).starts_with("n-private must be"));
    assert!(error(options(4, 0.9), Shape { public_rows: 1, ..SHAPE }).starts_with("n-public must be"));
    let too_few = audit::mean(&plan("gaussian", 1.0, 1), &options(19, 0.9)).unwrap_err().to_string();
    assert!(too_few.starts_with("trials must be"), "{too_few}");
    assert!(base().run(Mechanism::Weighted).is_ok());
    let refused = |attack: Attack| attack.run(Mechanism::Weighted).unwrap_err().to_string();
    assert!(refused(Attack { spread: 1.0, ..base() }).starts_with("spread must be"));
    assert!(refused(Attack { delta: 0.0, ..base() }).starts_with("delta must be"));
    assert!(
        refused(Attack { knowledge: Knowledge::Estimated(1), ..base() })
            .starts_with("reference-rows must be")
    );
}

/// A small world for the attack.
fn base() -> Attack {
    Attack {
        dimension: 100,
        private_rows: 4,
        public_rows: 2,
        spread: 0.5,
        rho: 0.5,
        delta: 0.01,
        threshold: Threshold::Paper,
        knowledge: Knowledge::Known,
        trials: 2,
        confidence: 0.95,
        seed: 3,
    }
}

/// The setting of section G of the specification.
fn specified() -> Attack {
    Attack { dimension: 10_000, private_rows: 40, public_rows: 10, trials: 10, ..base() }
}

/// Private rows of a semi-DP mean are not traced, public rows and those of a plain mean are, nobody else is.
#[test]
fn tracing_finds_whom_the_paper_says() {
    for threshold in [Threshold::Paper, Threshold::Sharper] {
        let attack = Attack { threshold, ..specified() };
        let plain = attack.run(Mechanism::NonPrivate).unwrap();
        assert!(plain.private.value >= 0.99 && plain.public.value >= 0.99 && plain.outsiders.value <= 0.01);
        let weighted = attack.run(Mechanism::Weighted).unwrap();
        assert!(weighted.private.value <= 0.01, "{weighted:?}");
        assert!(weighted.public.value >= 0.99 && weighted.outsiders.value <= 0.01, "{weighted:?}");
        let gaussian = attack.run(Mechanism::Gaussian).unwrap();
        assert!(gaussian.private.value <= 0.01 && gaussian.outsiders.value <= 0.01, "{gaussian:?}");
        // Without noise to speak of the attack succeeds again.
        let control = Attack { rho: 1e5, ..attack }.run(Mechanism::Weighted).unwrap();
        assert!(control.private.value >= 0.99 && control.outsiders.value <= 0.01, "{control:?}");
        // Nobody does better than the guarantee: TPR ≤ Φ(Φ⁻¹(FPR) + √(2ρ)), which is Φ(1 − 2.33) = 0.09 at an FPR of 0.01.
        assert!(weighted.private.lower < 0.092 && gaussian.private.lower < 0.092);
    }
}

/// Weights, errors and mean scores are those of reference.json, from NumPy. A mean score of N rows in 10 worlds has a standard deviation of
/// about 1/√(10 N), and worlds of the reference are others, too.
#[test]
fn tracing_reference_entries() {
    let text = include_str!("../../../testdata/reference.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let entries = reference["entries"].as_array().unwrap();
    let mut seen = 0;
    for entry in entries.iter().filter(|entry| entry["function"] == "tracing_attack") {
        let input = |name: &str| entry["inputs"][name].as_f64().unwrap();
        let output = |name: &str| entry["output"][name].as_f64().unwrap();
        let attack = Attack {
            dimension: input("d") as usize,
            private_rows: input("npriv") as usize,
            public_rows: input("npub") as usize,
            spread: input("a"),
            rho: input("rho"),
            delta: input("delta"),
            ..specified()
        };
        for (mechanism, name) in [(Mechanism::NonPrivate, "nonpriv"), (Mechanism::Weighted, "weighted")] {
            let found = attack.run(mechanism).unwrap();
            if mechanism == Mechanism::Weighted {
                assert_near(found.private_weight, output("r"), 1e-9);
                assert_near(found.mean_squared_error, output("J"), 1e-9);
            }
            let rates = [found.private, found.public, found.outsiders];
            for ((who, rate), score) in ["priv", "pub", "out"].iter().zip(rates).zip(found.mean_scores) {
                let expected = output(&format!("{name}|{who}|paper"));
                assert!((rate.value - expected).abs() < 0.02, "{name} {who}: {rate:?} {expected}");
                let expected = output(&format!("{name}|{who}|z"));
                assert!((score - expected).abs() < 1.0, "{name} {who}: {score} {expected}");
            }
        }
        seen += 1;
    }
    assert!(seen >= 3);
}

/// Who has to estimate the mean from as many rows as there are members still traces them.
#[test]
fn tracing_works_with_an_estimated_mean() {
    let attack = Attack {
        threshold: Threshold::Sharper,
        knowledge: Knowledge::Estimated(100),
        trials: 4,
        ..specified()
    };
    let plain = attack.run(Mechanism::NonPrivate).unwrap();
    assert!(plain.private.value >= 0.99 && plain.outsiders.value <= 0.02, "{plain:?}");
    let weighted = attack.run(Mechanism::Weighted).unwrap();
    assert!(weighted.private.value <= 0.02 && weighted.public.value >= 0.99, "{weighted:?}");
}

#[test]
fn rates_and_trade_offs_are_what_they_say() {
    let counts = Counts { ins: 1000, true_positives: 517, outs: 10, false_positives: 3 };
    assert_eq!(counts.true_positive_rate(0.95).value, 0.517);
    assert_near(counts.false_positive_rate(0.95).lower, 0.066_739_511_177_734_5, 1e-10);
    let found = audit::mean(&plan("gaussian", 1.0, 1), &options(100, 0.9)).unwrap();
    let allowed = found.trade_off();
    assert_eq!(allowed[0], (0.0, found.delta));
    assert_eq!(allowed[allowed.len() - 1], (1.0, 1.0));
    // Straight lines of slopes e and 1/e that meet where TPR is 1 − FPR.
    let bend = allowed.iter().find(|(x, _)| (x - (1.0 - 1e-5) / (1.0 + 1f64.exp())).abs() < 1e-12).unwrap();
    assert_near(bend.1, 1.0 - bend.0, 1e-12);
}
