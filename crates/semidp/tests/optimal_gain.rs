//! Optimal-gain training and the autopilot, against what they promise.

use semidp::domain::Everywhere;
use semidp::loss::{Logistic, Loss, Squared};
use semidp::train::{
    Conduct, Given, Keeping, Progress, PublicRows, Recipe, Trained, TrainingData, algorithm_named,
};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, Delta, DenseTable, Epsilon, Private, Public, Randomness};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::Numbers;

mod support;

const FEATURES: usize = 30;

/// Rows of a weight vector: y = ⟨x, w⟩ + N(0, 1), or 1 with the chance that a logistic model has.
fn rows(count: usize, w: &[f64], is_class: bool, numbers: &mut Numbers) -> DenseTable<f64> {
    rows_of_size(1.0, count, w, is_class, numbers)
}

/// The same with features of such a standard deviation.
fn rows_of_size(
    size: f64,
    count: usize,
    w: &[f64],
    is_class: bool,
    numbers: &mut Numbers,
) -> DenseTable<f64> {
    let mut values = Vec::new();
    for _ in 0..count {
        let x: Vec<f64> = w.iter().map(|_| size * numbers.normal()).collect();
        let score: f64 = x.iter().zip(w).map(|(x, w)| x * w).sum();
        let label = match is_class {
            true => f64::from(u8::from(numbers.uniform() < 1.0 / (1.0 + (-score).exp()))),
            false => score + numbers.normal(),
        };
        values.extend(x.into_iter().chain([label]));
    }
    DenseTable::new(values, w.len() + 1).unwrap()
}

struct Problem {
    truth: Vec<f64>,
    public: PublicRows,
    private: Arc<DenseTable<f64>>,
}

/// Public rows follow the same weights as private ones, or `apart` from them.
fn problem(seed: u64, counts: (usize, usize), apart: f64, is_class: bool) -> Problem {
    let mut numbers = Numbers(seed);
    let truth: Vec<f64> = (0..FEATURES).map(|_| 0.3 * numbers.normal()).collect();
    let other: Vec<f64> = truth.iter().map(|w| w + apart * numbers.normal()).collect();
    let public = PublicRows::load(&Public(rows(counts.0, &other, is_class, &mut numbers))).unwrap();
    let private = Arc::new(rows(counts.1, &truth, is_class, &mut numbers));
    Problem { truth, public, private }
}

fn train(name: &str, problem: &Problem, loss: &dyn Loss, epsilon: f64, seed: u64) -> Trained {
    let conduct = Conduct::new(Randomness::Seed(seed));
    try_to_train(Given::default(), name, problem, loss, epsilon, conduct, &mut |_| ()).unwrap()
}

fn try_to_train(
    given: Given,
    name: &str,
    problem: &Problem,
    loss: &dyn Loss,
    epsilon: f64,
    conduct: Conduct<'_>,
    on_step: &mut dyn FnMut(Progress<'_>),
) -> semidp::Result<Trained> {
    let budget = PrivacyBudget::Approximate {
        epsilon: Epsilon::new(epsilon).unwrap(),
        delta: Delta::new(1e-6).unwrap(),
    };
    let recipe = Recipe {
        loss,
        domain: &Everywhere,
        has_intercept: false,
        budget,
        adjacency: Adjacency::ReplaceOne,
        given,
    };
    let data = TrainingData {
        private: Private::new(problem.private.clone()).boxed(),
        public: Some(problem.public.clone()),
    };
    algorithm_named(name).unwrap().train(&recipe, data, conduct, on_step)
}

/// ‖w − w*‖², which is the excess of squared loss.
fn excess(trained: &Trained, problem: &Problem) -> f64 {
    trained.model.weights.iter().zip(&problem.truth).map(|(w, t)| (w - t).powi(2)).sum()
}

fn told(trained: &Trained, name: &str) -> serde_json::Value {
    let entry = trained.certificate.hyperparameters.iter().find(|entry| entry.name == name);
    entry.unwrap_or_else(|| panic!("no {name}")).value.clone()
}

/// Mean and standard error.
fn summary(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Twelve paired draws in which public and private rows agree: below throw-away and DP-SGD by more than three paired
/// standard errors, and about as good as it said before it read a private row.
#[test]
fn better_than_either_part() {
    let (mut to_public, mut to_plain, mut measured, mut predicted) = (vec![], vec![], vec![], vec![]);
    for seed in 0..12 {
        let problem = problem(seed, (200, 6000), 0.0, false);
        let ours = train("auto", &problem, &Squared, 0.5, seed);
        assert_eq!(told(&ours, "algorithm"), "optimal-gain");
        let found = excess(&ours, &problem);
        to_public.push(found - excess(&train("throw-away", &problem, &Squared, 0.5, seed), &problem));
        to_plain.push(found - excess(&train("dp-sgd", &problem, &Squared, 0.5, seed), &problem));
        measured.push(found);
        predicted.push(told(&ours, "predicted-excess").as_f64().unwrap());
    }
    for (name, differences) in [("throw-away", to_public), ("dp-sgd", to_plain)] {
        let (mean, error) = summary(&differences);
        assert!(mean < -3.0 * error, "{name}: {mean} ± {error}");
    }
    let differences: Vec<f64> = measured.iter().zip(&predicted).map(|(found, said)| found - said).collect();
    let (off, error) = summary(&differences);
    assert!(off.abs() < 6.5 * error, "{measured:?}, predicted {predicted:?}");
}

/// So few public rows that their labels may as well be noise: private rows are believed all the same, and close most of what
/// is open.
#[test]
fn few_rows_do_not_silence_private_ones() {
    for (seed, count) in (0..12).flat_map(|seed| [(seed, 10), (seed, 20)]) {
        let problem = problem(seed, (count, 6000), 0.0, false);
        let ours = train("auto", &problem, &Squared, 2.0, seed);
        assert_eq!(told(&ours, "algorithm"), "optimal-gain");
        let open: f64 = problem.truth.iter().map(|w| w * w).sum();
        // The Gaussian noise of the budget, at clip norms of a few row lengths, is off by a hundredth of it.
        assert!(
            excess(&ours, &problem) < 0.1 * open,
            "{seed} {count}: {} of {open}",
            excess(&ours, &problem)
        );
    }
}

/// Public rows whose weights are as far from those of private rows as those are from zero are noticed, and do no harm beside
/// DP-SGD; public rows of the same weights are believed.
#[test]
fn misleading_rows_are_noticed() {
    for (loss, is_class) in [(&Squared as &dyn Loss, false), (&Logistic, true)] {
        let (mut differences, mut believed) = (Vec::new(), 0);
        for seed in 0..8 {
            let misleading = problem(seed, (400, 6000), 0.3, is_class);
            let ours = train("auto", &misleading, loss, 2.0, seed);
            let is_doubted = told(&ours, "public-data").as_str().unwrap().starts_with("doubted");
            // Classes say less of their weights than numbers do.
            assert!(is_doubted || is_class, "{seed}");
            let plain = train("dp-sgd", &misleading, loss, 2.0, seed);
            differences.push(excess(&ours, &misleading) - excess(&plain, &misleading));
            let honest = problem(seed, (400, 6000), 0.0, is_class);
            let ours = train("auto", &honest, loss, 2.0, seed);
            believed += usize::from(told(&ours, "public-data") == "trusted");
        }
        // Evidence as strong as is asked for comes by chance now and then.
        assert!(believed >= 6, "{}: {believed}", loss.name());
        let (mean, error) = summary(&differences);
        assert!(mean < error, "{}: {mean} ± {error}", loss.name());
    }
}

/// Private rows of other weights than public ones, and twice as long, so that the loss is four times as curved as public rows have it: below
/// DP-SGD by more than two paired standard errors.
#[test]
fn longer_private_rows_do_no_harm() {
    let differences = (0..12).map(|seed| {
        let mut numbers = Numbers(seed);
        let truth: Vec<f64> = (0..FEATURES).map(|_| 0.3 * numbers.normal()).collect();
        let other: Vec<f64> = truth.iter().map(|w| w + 0.3 * numbers.normal()).collect();
        let public = PublicRows::load(&Public(rows(1000, &other, false, &mut numbers))).unwrap();
        let private = Arc::new(rows_of_size(2.0, 20_000, &truth, false, &mut numbers));
        let problem = Problem { truth, public, private };
        let ours = train("auto", &problem, &Squared, 0.1, seed);
        assert!(told(&ours, "public-data").as_str().unwrap().starts_with("doubted"), "{seed}");
        excess(&ours, &problem) - excess(&train("dp-sgd", &problem, &Squared, 0.1, seed), &problem)
    });
    let (mean, error) = summary(&differences.collect::<Vec<_>>());
    assert!(mean < -2.0 * error, "{mean} ± {error}");
}

/// Classes of public rows that are short, and far off: gains that such curvatures allow make iterates wander, and gains that are too
/// small for that never get away. Below DP-SGD by more than three paired standard errors, and well below what is open at the start.
#[test]
fn doubting_runs_neither_wander_nor_stay() {
    let differences = (0..8).map(|seed| {
        let mut numbers = Numbers(seed);
        let truth: Vec<f64> = (0..FEATURES).map(|_| 0.3 * numbers.normal()).collect();
        let other: Vec<f64> = truth.iter().map(|w| w + numbers.normal()).collect();
        let public = PublicRows::load(&Public(rows_of_size(0.5, 1000, &other, true, &mut numbers))).unwrap();
        let private = Arc::new(rows(12_000, &truth, true, &mut numbers));
        let problem = Problem { truth, public, private };
        let ours = train("auto", &problem, &Logistic, 0.2, seed);
        assert!(told(&ours, "public-data").as_str().unwrap().starts_with("doubted"), "{seed}");
        let open: f64 = other.iter().zip(&problem.truth).map(|(a, b)| (a - b).powi(2)).sum();
        assert!(excess(&ours, &problem) < 0.5 * open, "{seed}: {} of {open}", excess(&ours, &problem));
        excess(&ours, &problem) - excess(&train("dp-sgd", &problem, &Logistic, 0.2, seed), &problem)
    });
    let (mean, error) = summary(&differences.collect::<Vec<_>>());
    assert!(mean < -3.0 * error, "{mean} ± {error}");
}

/// Classes of private rows of other weights than public ones, and a third as long, so that the loss is a ninth as curved as public
/// rows have it. Gains that fell by what such curvatures say is known would fall too soon: less than half of what DP-SGD leaves
/// open, by more than two paired standard errors.
#[test]
fn shorter_private_rows_are_followed() {
    let differences = (0..8).map(|seed| {
        let mut numbers = Numbers(seed);
        let truth: Vec<f64> = (0..FEATURES).map(|_| 0.3 * numbers.normal()).collect();
        let other: Vec<f64> = truth.iter().map(|w| w + numbers.normal()).collect();
        let public = PublicRows::load(&Public(rows(1000, &other, true, &mut numbers))).unwrap();
        let private = Arc::new(rows_of_size(1.0 / 3.0, 20_000, &truth, true, &mut numbers));
        let problem = Problem { truth, public, private };
        let ours = train("auto", &problem, &Logistic, 4.0, seed);
        assert!(told(&ours, "public-data").as_str().unwrap().starts_with("doubted"), "{seed}");
        excess(&ours, &problem) - 0.5 * excess(&train("dp-sgd", &problem, &Logistic, 4.0, seed), &problem)
    });
    let (mean, error) = summary(&differences.collect::<Vec<_>>());
    assert!(mean < -2.0 * error, "{mean} ± {error}");
}

/// One row in twenty is of a class, and its gradients are most of the longest: a clip norm that spares nine rows in ten would all
/// but do away with it. The expected loss is below that of public rows alone, and of a quarter of the norm that is chosen, by more
/// than three paired standard errors.
#[test]
fn rare_classes_are_not_clipped_away() {
    let rare = |count: usize, truth: &[f64], numbers: &mut Numbers| {
        let mut values = Vec::new();
        for _ in 0..count {
            let mut x: Vec<f64> = truth.iter().map(|_| numbers.normal()).collect();
            x[0] = 1.0;
            values.extend(x.iter().chain([&f64::from(u8::from(numbers.uniform() < chance(truth, &x)))]));
        }
        DenseTable::new(values, truth.len() + 1).unwrap()
    };
    let (mut to_public, mut to_shorter) = (Vec::new(), Vec::new());
    for seed in 0..8 {
        let mut numbers = Numbers(seed);
        let mut truth: Vec<f64> = (0..15).map(|_| 0.3 * numbers.normal()).collect();
        truth[0] = -3.5;
        let public = PublicRows::load(&Public(rare(600, &truth, &mut numbers))).unwrap();
        let private = Arc::new(rare(8000, &truth, &mut numbers));
        let fresh: Vec<Vec<f64>> = (0..2000)
            .map(|_| (0..truth.len()).map(|j| if j == 0 { 1.0 } else { numbers.normal() }).collect())
            .collect();
        let problem = Problem { truth, public, private };
        let loss = |trained: &Trained| {
            let of = |x: &Vec<f64>| {
                let (p, q) = (chance(&problem.truth, x), chance(&trained.model.weights, x));
                -p * q.ln() - (1.0 - p) * (1.0 - q).ln()
            };
            fresh.iter().map(of).sum::<f64>() / fresh.len() as f64
        };
        let go = |name: &str, clip_norm: Option<f64>| {
            let given = Given { clip_norm, ..Given::default() };
            let conduct = Conduct::new(Randomness::Seed(seed));
            try_to_train(given, name, &problem, &Logistic, 4.0, conduct, &mut |_| ()).unwrap()
        };
        let ours = go("auto", None);
        let norm = told(&ours, "clip-norm").as_f64().unwrap();
        to_public.push(loss(&ours) - loss(&go("throw-away", None)));
        to_shorter.push(loss(&ours) - loss(&go("auto", Some(0.25 * norm))));
    }
    for differences in [to_public, to_shorter] {
        let (mean, error) = summary(&differences);
        assert!(mean < -3.0 * error, "{mean} ± {error}: {differences:?}");
    }
}

/// That a logistic model has.
fn chance(w: &[f64], x: &[f64]) -> f64 {
    1.0 / (1.0 + (-w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).exp())
}

/// A run that has come to doubt public rows ends in the same bits if it is interrupted, before or after it did.
#[test]
fn doubting_runs_go_on() {
    let misleading = problem(3, (400, 6000), 0.3, false);
    let path = std::env::temp_dir().join(format!("semidp-doubting-{}", std::process::id()));
    let stop = Arc::new(AtomicBool::new(false));
    let go = |keeping: &Keeping, stop_at: u64| {
        let conduct = Conduct { keeping: Some(keeping), ..Conduct::new(Randomness::OperatingSystem) };
        try_to_train(Given::default(), "optimal-gain", &misleading, &Squared, 2.0, conduct, &mut |progress| {
            stop.store(progress.step >= stop_at, Ordering::Relaxed);
        })
    };
    let begin = || Keeping::begin(&path, Randomness::Seed(3)).unwrap().until(stop.clone());
    let kept = begin();
    let whole = go(&kept, u64::MAX).unwrap();
    kept.end().unwrap();
    assert!(told(&whole, "public-data").as_str().unwrap().starts_with("doubted"));
    for stop_at in [3, 60, 99] {
        let kept = begin();
        let interrupted = go(&kept, stop_at);
        assert!(matches!(interrupted, Err(semidp::Error::Interrupted { step, .. }) if step == stop_at));
        drop(kept);
        let kept = Keeping::resume(&path).unwrap();
        let trained = go(&kept, u64::MAX).unwrap();
        kept.end().unwrap();
        assert_eq!(trained.model, whole.model, "{stop_at}");
        assert_eq!(trained.certificate, whole.certificate);
    }
}

/// A budget that can tell nothing, or too little for a loss that is no parabola, is not spent, and the certificate says why.
#[test]
fn hopeless_budgets_are_not_spent() {
    let losses: [(&dyn Loss, f64); 2] = [(&Squared, 0.001), (&Logistic, 0.05)];
    for (loss, epsilon) in losses {
        let problem = problem(1, (2000, 300), 0.0, loss.name() != "squared");
        let ours = train("auto", &problem, loss, epsilon, 1);
        assert_eq!(told(&ours, "algorithm"), "throw-away");
        assert!(told(&ours, "algorithm-because").as_str().unwrap().contains("none was used"));
        assert_eq!(ours.certificate.guarantee.epsilon.get(), 0.0);
        assert!(
            ours.certificate.events.is_empty() && ours.certificate.verify_allowing_seeded().unwrap().valid
        );
        assert_eq!(ours.model.weights, train("throw-away", &problem, loss, epsilon, 1).model.weights);
        // Asked for by name, it does what it is told.
        let asked = train("optimal-gain", &problem, loss, epsilon, 1);
        assert!(asked.certificate.guarantee.epsilon.get() > 0.0);
        assert_eq!(told(&train("auto", &problem, loss, 20.0, 1), "algorithm"), "optimal-gain");
    }
}
