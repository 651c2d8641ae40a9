//! `semidp plan`: predicted errors, rates, charts, and what is refused.

mod common;

use common::{folder, json, number, refused, run};

const PAPER: &str = "plan mean --n-private 9920 --n-public 80 --dim 100 --radius 25 --std 1 --rho 0.1";

#[test]
fn the_example_of_the_paper() {
    let answer = json(PAPER);
    let estimators = answer["estimators"].as_array().unwrap();
    let weighted = estimators.iter().find(|one| one["name"] == "weighted-gaussian").unwrap();
    assert!((number(weighted, "/mse") - 0.006_324_9).abs() < 5e-8);
    assert_eq!(answer["best"], "weighted-gaussian");
    assert_eq!(answer["auto"], "weighted-gaussian");
    assert!((number(&answer, "/gain/throw-away") - 1.976).abs() < 5e-4);
    assert!((number(&answer, "/gain/gaussian") - 1.992).abs() < 5e-4);
    for estimator in estimators {
        for field in ["/mse", "/noise_std", "/private_weight"] {
            number(estimator, field);
        }
    }
    assert_eq!(answer["adjacency"], "replace-one");
    // 5% better than throw-away: 20·V²/v_priv rows.
    let private_error = 1.0 / 9920.0 + 2.0 * 100.0 * 625.0 / 0.1 / 9920f64.powi(2);
    let expected = (20.0 / private_error).ceil();
    assert_eq!(number(&answer, "/private_rows_hardly_help_beyond"), expected);
}

#[test]
fn budgets_of_every_kind() {
    let base = "plan mean --n-private 9000 --n-public 1000 --dim 100 --radius 1";
    let names = |arguments: &str| -> Vec<String> {
        let answer = json(&format!("{base} {arguments}"));
        let names = answer["estimators"].as_array().unwrap().iter();
        names.map(|one| one["name"].as_str().unwrap().to_string()).collect()
    };
    let gaussian = ["throw-away", "gaussian", "weighted-gaussian"];
    let pure = ["laplace", "weighted-laplace", "k-norm", "weighted-k-norm"];
    assert_eq!(names("--rho 0.5"), gaussian);
    assert_eq!(names("--epsilon 1"), [&gaussian[..1], &pure[..]].concat());
    assert_eq!(names("--epsilon 1 --delta 1e-6"), [&gaussian[..], &pure[..]].concat());
    assert_eq!(names("--epsilon 1 --exact"), [&gaussian[..1], &pure[..2]].concat());
    // reference.json, minimax_rates_upper.
    let answer = json(&format!("{base} --epsilon 1 --delta 1e-6"));
    let rates = answer["rates"].as_array().unwrap();
    for (name, upper) in [
        ("pop_mean_approx", 0.000_113_815_510_557_964_28),
        ("pop_mean_pure", 0.0002),
        ("emp_mean_pure", 0.0001),
        ("ldp_mean", 0.001),
    ] {
        let rate = rates.iter().find(|rate| rate["name"] == name).unwrap();
        assert!((number(rate, "/upper") / upper - 1.0).abs() < 1e-12, "{name}");
        assert_eq!(rate["lower_bound_valid"].as_bool().unwrap(), rate["lower"].is_number(), "{name}");
    }
    // epsilon is far above 1/ln(nd).
    assert_eq!(rates[0]["lower_bound_valid"], false);
}

#[test]
fn few_rows_of_one_kind() {
    let alone = json("plan mean --n-private 100 --n-public 0 --dim 2 --radius 1 --epsilon 1");
    assert_eq!((alone["best"].as_str(), alone["auto"].as_str()), (Some("k-norm"), Some("laplace")));
    let public = json("plan mean --n-private 0 --n-public 10 --dim 2 --radius 1 --epsilon 1");
    assert_eq!(public["best"], "throw-away");
    assert!((number(&public, "/estimators/0/mse") - 0.1).abs() < 1e-12);
    refused("plan mean --n-private 0 --n-public 0 --dim 2 --radius 1 --epsilon 1", &["n-private"]);
}

#[test]
fn bad_plans_are_refused() {
    let base = "plan mean --n-private 9000 --n-public 1000 --dim 20";
    refused(&format!("{base} --radius 0 --epsilon 1"), &["radius", "> 0"]);
    refused(&format!("{base} --radius nan --epsilon 1"), &["radius"]);
    refused(&format!("{base} --radius 1 --epsilon -1"), &["epsilon"]);
    refused(&format!("{base} --radius 1 --epsilon 1 --delta 1"), &["delta"]);
    refused(&format!("{base} --radius 1 --epsilon 1 --rho 1"), &["--rho"]);
    refused(&format!("{base} --radius 1"), &["--epsilon"]);
    refused(&format!("{base} --epsilon 1"), &["--radius"]);
    refused(&format!("{base} --radius 1 --std 2 --epsilon 1"), &["std", "radius"]);
    refused(&format!("{base} --radius 1 --epsilon 1 --adjacency add-remove"), &["adjacency", "add-remove"]);
    refused(&format!("{base} --radius 1 --epsilon 1 --trust local"), &["trust"]);
    refused(&format!("{base} --radius 1 --epsilon 1 --moment 4 --moment-bound 1"), &["--moment"]);
    refused("plan mean --n-private x --n-public 1 --dim 1 --radius 1 --epsilon 1", &["n-private", "`x`"]);
    refused("plan mean --n-private 1 --n-public 1 --dim 0 --radius 1 --epsilon 1", &["dim"]);
    refused(&format!("{base} --radius 1 --epsilon 1 --plot /dev/null/x"), &["--plot"]);
}

#[test]
fn heavy_tails_get_the_best_radius() {
    let at =
        |extra: &str| json(&format!("plan mean --n-private 9000 --n-public 1000 --dim 20 --rho 0.1 {extra}"));
    let answer = at("--moment 4 --moment-bound 3");
    let (radius, bias) = (number(&answer, "/radius"), number(&answer, "/clip_bias"));
    // κ = 27/256 for k = 4.
    assert!((bias / (27.0 / 256.0 * 81.0 / radius.powi(3)) - 1.0).abs() < 1e-9);
    // The balance: 2·noise = 2(k − 1)·bias², per squared radius.
    let noise = 2.0 * 20.0 * radius * radius / 0.1 / 9000f64.powi(2);
    assert!((noise / (3.0 * bias * bias) - 1.0).abs() < 1e-9);
}

#[test]
fn charts_are_drawn() {
    let folder = folder("plan_charts");
    let answer = json(&format!("{PAPER} --plot {}", folder.join("a/b").display()));
    let files: Vec<&str> =
        answer["plots"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert_eq!(files.len(), 2);
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("your plan") && text.contains("weighted-gaussian"));
    }
    // At rho 0.1 the naive ways are about equal: they change places close by.
    assert!((number(&answer, "/crossing/rho") - 0.1).abs() < 0.01);
    let train = format!(
        "plan train --n-private 900 --n-public 100 --dim 5 --rho 0.5 --steps 10 --plot {}",
        folder.display()
    );
    assert_eq!(json(&train)["plots"].as_array().unwrap().len(), 1);
}

#[test]
fn the_tables_say_it_in_words() {
    let ran = run(PAPER);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("Beyond 1,563 public rows these private rows hardly help"), "{}", ran.stdout);
    assert!(ran.stdout.contains("cut the error 2.02x"), "{}", ran.stdout);
    let empirical = run(&format!("{PAPER} --target empirical"));
    assert!(empirical.stdout.contains("worst possible rows"), "{}", empirical.stdout);
}

#[test]
fn training_is_planned_too() {
    let base = "plan train --n-private 27000 --n-public 3000 --dim 2000 --epsilon 2 --delta 1e-5 --steps 5000 \
                --expected-batch 500 --public-batch 200";
    let answer = json(&format!("{base} --adjacency add-remove"));
    let algorithm = |name: &str| {
        let all = answer["algorithms"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap().clone()
    };
    // spec C: tight add/remove noise at public share 0.1.
    let noise = number(&algorithm("semi-dp-sgd"), "/noise_multiplier");
    assert!((0.99999..1.0002).contains(&(noise / 2.72531)), "{noise}");
    assert_eq!(answer["best"], "semi-dp-sgd");
    // v_pub = V²/n_pub + V²/(K_pub·T), v_priv = V²/n_priv + (V²/K + dσ²)/T, σ = z/K.
    let (v_pub, t) = (1.0 / 3000.0 + 1.0 / (200.0 * 5000.0), 5000.0);
    let v_priv = 1.0 / 27_000.0 + (1.0 / 500.0 + 2000.0 * (noise / 500.0).powi(2)) / t;
    let expected = 1.0 / (1.0 / v_pub + 1.0 / v_priv);
    assert!((number(&algorithm("semi-dp-sgd"), "/gradient_variance") / expected - 1.0).abs() < 1e-9);
    assert!((number(&algorithm("throw-away"), "/gradient_variance") * 3000.0 - 1.0).abs() < 1e-12);
    let names: Vec<&str> =
        answer["rates"].as_array().unwrap().iter().map(|rate| rate["name"].as_str().unwrap()).collect();
    for name in ["erm_pure_convex", "erm_pure_sc", "sco_approx_convex", "sco_approx_sc", "ldp_sco_sc"] {
        assert!(names.contains(&name), "{name}");
    }
    // Pure budgets have rates but no Gaussian noise.
    let pure = json("plan train --n-private 900 --n-public 100 --dim 5 --epsilon 1");
    assert!(pure["best"].is_null() && !pure["rates"].as_array().unwrap().is_empty());
    refused(
        "plan train --n-private 9 --n-public 1 --dim 5 --epsilon 1 --delta 1e-5 --expected-batch 10",
        &["expected-batch"],
    );
    refused(
        "plan train --n-private 9 --n-public 1 --dim 5 --epsilon 1 --delta 1e-5 --trust local",
        &["trust"],
    );
    // One pass over disjoint batches is charged once: z = √(2/ρ).
    let one_pass =
        json("plan train --n-private 1000 --n-public 100 --dim 5 --rho 0.5 --steps 100 --expected-batch 10");
    assert!((number(&one_pass, "/algorithms/2/noise_multiplier") - 2.0).abs() < 1e-12);
    assert_eq!(one_pass["algorithms"][2]["sampling"], "one-pass");
    assert!(one_pass["algorithms"][2]["sample_rate"].is_null());
    assert_eq!(answer["algorithms"][2]["sampling"], "poisson");
    refused(
        "plan train --n-private 18446744073709551615 --n-public 1 --dim 5 --rho 1",
        &["n-private", "2^53"],
    );
}

/// The reference values of the local model: one report, and what 100 public rows do to 900 of them.
#[test]
fn local_plans_are_those_of_the_reference() {
    let answer = json("plan local --dim 100 --epsilon 1 --n-private 900 --n-public 100");
    let names: Vec<&str> =
        answer["randomizers"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["duchi", "rank-privunit", "privunit", "privunitg"]);
    let arithmetic = |i: usize| &answer["randomizers"][i]["arithmetic"];
    assert_eq!([0, 1, 2, 3].map(arithmetic), ["exact", "exact", "idealised", "idealised"]);
    // Within 1 % of the optimum, privunit.
    let mse = |i: usize| number(&answer, &format!("/randomizers/{i}/mse"));
    assert!(mse(1) > mse(2) && mse(1) < 1.015 * mse(2), "{}", mse(1));
    assert_eq!(answer["best_randomizer"], "rank-privunit");
    assert_eq!(answer["best"], "semi-ldp-weighted");
    let of = |name: &str| {
        // The reference values are privunit's.
        let all = answer["randomizers"][2]["estimators"].as_array().unwrap();
        number(all.iter().find(|one| one["name"] == name).unwrap(), "/mse")
    };
    assert!((of("throw-away") - 0.01).abs() < 1e-12);
    assert!((of("semi-ldp-uniform") - 0.567_413_632_342_308).abs() < 1e-9);
    assert!((of("semi-ldp-weighted") - 0.009_859_231_697_952).abs() < 1e-11);
    // Privacy: p(1-Q)/((1-p)Q) = e^epsilon.
    for one in answer["randomizers"].as_array().unwrap() {
        let [p, beyond, q] = ["/p", "/beyond", "/cap_probability"].map(|field| number(one, field));
        assert!(((p / beyond * (1.0 - q) / q).ln() - 1.0).abs() < 1e-10, "{one}");
    }
    assert_eq!(answer["rates"].as_array().unwrap().len(), 3);
    // On the line everything is randomised response, and exact.
    let line = json("plan local --dim 1 --epsilon 2");
    let mse = 1.0 / 1f64.sinh().powi(2);
    assert!((number(&line, "/randomizers/0/mse") / mse - 1.0).abs() < 1e-12);
    assert_eq!(line["best_randomizer"], "duchi");
    assert_eq!(line["randomizers"][1]["arithmetic"], "exact");
    assert!(line["estimators"].as_array().unwrap().is_empty());
}

#[test]
fn local_plans_refuse_by_name() {
    for (arguments, named) in [
        ("--dim 0 --epsilon 1", "dim"),
        ("--dim 3 --epsilon 0", "epsilon"),
        ("--dim 3 --epsilon 51", "epsilon"),
        ("--dim 3 --epsilon 1 --n-private 0 --n-public 0", "n-private"),
        ("--dim 3 --epsilon 1 --n-private 9 --mean-norm 2", "mean-norm"),
        ("--dim 3 --epsilon 1 --n-private 9 --std 2", "std"),
    ] {
        refused(&format!("plan local {arguments}"), &[named]);
    }
}
