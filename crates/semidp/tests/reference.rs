//! Closed forms against testdata/reference.json, and against themselves.

use proptest::prelude::*;
use semidp::mean::{Problem, Target, plan_all, plan_named, plan_weighted};
use semidp::theory::{RateSetting, Task, rates};
use semidp_accounting::{Delta, Epsilon, PrivacyBudget, Rho};
use serde_json::Value;

fn entries(function: &str) -> Vec<(Value, Value)> {
    let text = include_str!("../../../testdata/reference.json");
    let all: Value = serde_json::from_str(text).unwrap();
    let of_function = |entry: &&Value| entry["function"] == function;
    let found: Vec<(Value, Value)> = all["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_function)
        .map(|entry| (entry["inputs"].clone(), entry["output"].clone()))
        .collect();
    assert!(!found.is_empty(), "{function}");
    found
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 1e-12, "{what}: {found} {expected}");
}

fn problem(inputs: &Value) -> Problem {
    let count = |key| number(inputs, key) as u64;
    let (radius, std) = (number(inputs, "B"), number(inputs, "V"));
    let dimension = number(inputs, "d") as usize;
    Problem::new(count("npriv"), count("npub"), dimension, radius).unwrap().with_std(std).unwrap()
}

fn rho(value: f64) -> PrivacyBudget {
    PrivacyBudget::Zcdp { rho: Rho::new(value).unwrap(), stated_at: Delta::new(1e-6).unwrap() }
}

fn pure(value: f64) -> PrivacyBudget {
    PrivacyBudget::Pure { epsilon: Epsilon::new(value).unwrap() }
}

#[test]
fn weighted_entries() {
    for name in ["weighted_gaussian", "weighted_laplace", "weighted_knorm"] {
        for (inputs, output) in entries(name) {
            let budget = if name == "weighted_gaussian" {
                rho(number(&inputs, "rho"))
            } else {
                pure(number(&inputs, "eps"))
            };
            let ours = name.replace('_', "-").replace("knorm", "k-norm");
            let plan = plan_named(&ours, &problem(&inputs), budget).unwrap();
            close(plan.private_weight(), number(&output, "r"), name);
            close(plan.predicted_mse(), number(&output, "mse"), name);
        }
    }
}

#[test]
fn bernoulli_experiment_entries() {
    for (inputs, output) in entries("bernoulli_experiment") {
        let d = number(&inputs, "d");
        for (form, radius) in [("uncentred_B2=d", d.sqrt()), ("centred_B2=d/4", (d / 4.0).sqrt())] {
            let problem = Problem::new(
                number(&inputs, "npriv") as u64,
                number(&inputs, "npub") as u64,
                d as usize,
                radius,
            );
            let problem = problem.unwrap().with_std((d / 4.0).sqrt()).unwrap();
            let budget = rho(number(&inputs, "rho"));
            let expected = &output[form];
            let error = |name| plan_named(name, &problem, budget).unwrap().predicted_mse();
            close(error("weighted-gaussian"), number(expected, "mse_weighted"), form);
            close(error("gaussian"), number(expected, "mse_gaussian"), form);
            close(error("throw-away"), number(expected, "mse_throwaway"), form);
            let weight = plan_named("weighted-gaussian", &problem, budget).unwrap().private_weight();
            close(weight, number(expected, "r"), form);
        }
    }
}

#[test]
fn minimax_rates_upper_entries() {
    for (inputs, output) in entries("minimax_rates_upper") {
        let setting = RateSetting {
            private_rows: number(&inputs, "npriv") as u64,
            public_rows: number(&inputs, "npub") as u64,
            dimension: number(&inputs, "d") as u64,
            epsilon: Some(Epsilon::new(number(&inputs, "eps")).unwrap()),
            delta: Some(Delta::new(number(&inputs, "delta")).unwrap()),
            rho: None,
            lipschitz: number(&inputs, "L"),
            diameter: number(&inputs, "D"),
            strong_convexity: number(&inputs, "mu"),
        };
        let tasks = [Task::Mean, Task::EmpiricalRisk, Task::PopulationRisk];
        let all: Vec<_> = tasks.iter().flat_map(|task| rates(&setting, *task)).collect();
        let expected = output.as_object().unwrap();
        assert_eq!(all.len(), expected.len());
        for (name, value) in expected {
            let name = name.trim_end_matches("_upper");
            let rate = all.iter().find(|rate| rate.name == name).unwrap_or_else(|| panic!("{name}"));
            close(rate.upper.unwrap(), value.as_f64().unwrap(), name);
        }
    }
}

/// Lower bounds appear inside their conditions and nowhere else, and never exceed the upper ones.
#[test]
fn lower_bounds_keep_to_their_conditions() {
    let base = RateSetting {
        private_rows: 100_000,
        public_rows: 10,
        dimension: 1000,
        epsilon: Some(Epsilon::new(0.05).unwrap()),
        delta: Some(Delta::new(1e-8).unwrap()),
        rho: None,
        lipschitz: 1.0,
        diameter: 1.0,
        strong_convexity: 1.0,
    };
    let tasks = [Task::Mean, Task::EmpiricalRisk, Task::PopulationRisk];
    let valid = |setting: RateSetting, name: &str| {
        let all: Vec<_> = tasks.iter().flat_map(|task| rates(&setting, *task)).collect();
        for rate in &all {
            if let (Some(lower), Some(upper)) = (rate.lower, rate.upper) {
                assert!(lower <= upper * (1.0 + 1e-12), "{}", rate.name);
            }
        }
        all.iter().find(|rate| rate.name == name).is_some_and(|rate| rate.lower_bound_valid())
    };
    let epsilon = |value| Some(Epsilon::new(value).unwrap());
    assert!(valid(base, "pop_mean_approx") && valid(base, "sco_approx_convex"));
    // 1/ln(1e8) is 0.0543.
    assert!(!valid(RateSetting { epsilon: epsilon(0.06), ..base }, "pop_mean_approx"));
    assert!(!valid(RateSetting { delta: Some(Delta::new(1e-5).unwrap()), ..base }, "pop_mean_approx"));
    // Few public rows: n ε/d = 5 < 10.
    assert!(!valid(base, "pop_mean_pure"));
    assert!(valid(RateSetting { public_rows: 5, ..base }, "pop_mean_pure"));
    assert!(!valid(RateSetting { public_rows: 5, epsilon: epsilon(126.0), ..base }, "pop_mean_pure"));
    assert!(valid(base, "emp_mean_pure") && valid(base, "erm_pure_convex") && valid(base, "ldp_mean"));
    assert!(!valid(RateSetting { epsilon: epsilon(1.5), ..base }, "ldp_mean"));
    assert!(!valid(RateSetting { strong_convexity: 1.5, ..base }, "erm_pure_sc"));
    // The same without public rows: the first term is dropped.
    let none = RateSetting { public_rows: 0, ..base };
    assert!(rates(&none, Task::Mean).iter().all(|rate| rate.upper.is_none_or(|upper| upper.is_finite())));
}

/// The paper's example: 1.98 (exactly 1.9763 against throw-away and 1.9921 against Gaussian).
#[test]
fn the_example_of_the_paper() {
    let problem = Problem::new(9920, 80, 100, 25.0).unwrap().with_std(1.0).unwrap();
    let error = |name| plan_named(name, &problem, rho(0.1)).unwrap().predicted_mse();
    let best = error("weighted-gaussian");
    assert!((best - 0.006_324_9).abs() < 5e-8, "{best}");
    assert!((error("throw-away") / best - 1.9763).abs() < 5e-5);
    assert!((error("gaussian") / best - 1.9921).abs() < 5e-5);
}

fn golden_section(cost: impl Fn(f64) -> f64, mut high: f64) -> f64 {
    let (ratio, mut low) = ((5f64.sqrt() - 1.0) / 2.0, 0.0);
    for _ in 0..200 {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if cost(a) < cost(b) { high = b } else { low = a }
    }
    0.5 * (low + high)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The weight is the best of all weights, for both targets and every law; misweighting costs
    /// exactly what the formula says; and the weighted estimators beat their baselines.
    #[test]
    fn weights_are_optimal(
        private in 1u64..1_000_000,
        public in 1u64..100_000,
        dimension in 1usize..2000,
        radius in 0.01f64..100.0,
        relative_std in 0.01f64..1.0,
        size in 0.01f64..10.0,
        bias in prop_oneof![Just(0.0), 0.0f64..0.1],
        empirical: bool,
    ) {
        let target = if empirical { Target::Empirical } else { Target::Population };
        let problem = Problem::new(private, public, dimension, radius).unwrap()
            .with_std(relative_std * radius).unwrap()
            .with_clip_bias(bias * radius).unwrap()
            .with_target(target);
        for budget in [rho(size), pure(size)] {
            let plans = plan_all(&problem, budget).unwrap();
            let throw_away = plans.iter().find(|plan| plan.name() == "throw-away").unwrap();
            for plan in plans.iter().filter(|plan| plan.name().starts_with("weighted")) {
                let best = plan.predicted_mse();
                let at = |weight| {
                    plan_weighted(plan.name(), &problem, budget, weight).unwrap().predicted_mse()
                };
                // Where the least error is tiny beside the others, rounding decides.
                let slack = 1e-10 * at(0.0);
                let found = golden_section(at, 1.0 / private as f64);
                prop_assert!(best <= at(found) * (1.0 + 1e-10) + slack, "{best} {}", at(found));
                let baseline = &plan.name()["weighted-".len()..];
                let uniform = plan_named(baseline, &problem, budget).unwrap().predicted_mse();
                prop_assert!(best <= uniform * (1.0 + 1e-12) + slack);
                prop_assert!(best <= throw_away.predicted_mse() * (1.0 + 1e-12));
                if target == Target::Population {
                    // J(w) = J* + (v_priv + v_pub)(w − w*)², and v_pub = (v_priv + v_pub)·w*.
                    let (w, v_pub) = (plan.private_weight() * private as f64, problem.std().powi(2) / public as f64);
                    let half = at(0.5 * plan.private_weight());
                    let cost = v_pub / w * (0.5 * w).powi(2);
                    prop_assert!((half - best - cost).abs() <= 1e-9 * half, "{half} {best} {cost}");
                }
            }
        }
    }
}
