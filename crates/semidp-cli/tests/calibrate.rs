//! `semidp calibrate`.

mod common;

use common::{entries, folder, json, number, refused, run};
use serde_json::Value;

const PAPER: &str = "calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.018518518518518517 --steps 5000";

#[test]
fn the_noise_of_the_paper_s_setting_is_tight_and_never_too_small() {
    for (adjacency, least, most) in [("add-remove", 2.7253, 2.7270), ("replace-one", 5.2204, 5.2240)] {
        let found = json(&format!("{PAPER} --adjacency {adjacency}"));
        let noise = number(&found, "/noise_multiplier");
        assert!((least..=most).contains(&noise), "{adjacency}: {noise}");
        let account = json(&format!(
            "account --noise-multiplier {noise} --sample-rate 0.018518518518518517 --steps 5000 \
             --delta 1e-5 --adjacency {adjacency}"
        ));
        assert_eq!(account["epsilon"], found["epsilon"]);
        assert_eq!(account["other_adjacency"], found["other_adjacency"]);
        let epsilon = number(&account, "/epsilon");
        assert!(epsilon <= 2.0 && epsilon > 1.998, "{adjacency}: {epsilon}");
        assert_eq!((number(&found, "/target_epsilon"), number(&found, "/delta")), (2.0, 1e-5));
        assert_eq!((&found["adjacency"], &found["sampling"]), (&adjacency.into(), &"poisson".into()));
        assert_eq!(
            (number(&found, "/steps"), number(&found, "/sample_rate")),
            (5000.0, 0.018518518518518517)
        );
        assert!(number(&found, "/accountants/rdp") > epsilon);
        let sources = found["certificate"]["hyperparameters"].as_array().unwrap();
        assert_eq!(
            (&sources[0]["name"], &sources[0]["source"]),
            (&"noise_multiplier".into(), &"calibration".into())
        );
    }
}

#[test]
fn the_printed_noise_is_rounded_up_and_explained() {
    let exact = number(&json(&format!("{PAPER} --adjacency add-remove")), "/noise_multiplier");
    let ran = run(&format!("{PAPER} --adjacency add-remove"));
    assert!(ran.stdout.contains("noise std on the SUM of clipped contributions"), "{}", ran.stdout);
    let row = ran.stdout.lines().find(|line| line.contains("noise multiplier")).unwrap();
    let printed: f64 = row.split('┆').nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!(printed >= exact && printed < exact + 1e-4, "{printed} {exact}");
}

#[test]
fn with_the_noise_fixed_it_finds_the_most_steps() {
    for options in ["--sample-rate 0.05 --noise-multiplier 3", "--noise-multiplier 50"] {
        let found = json(&format!("calibrate --epsilon 2 --delta 1e-5 {options}"));
        let steps = found["steps"].as_u64().unwrap();
        assert!(number(&found, "/epsilon") <= 2.0);
        let more = json(&format!("account --delta 1e-5 {options} --steps {}", steps + 1));
        assert!(number(&more, "/epsilon") > 2.0, "{options}: {steps}");
    }
    let pure = json("calibrate --epsilon 1 --mechanism laplace --noise-multiplier 20");
    assert_eq!((number(&pure, "/steps"), number(&pure, "/delta")), (10.0, 0.0));
    let rho = json("calibrate --rho 0.5 --noise-multiplier 16");
    assert_eq!((number(&rho, "/steps"), number(&rho, "/rho")), (64.0, 0.5));
    refused("calibrate --rho 0.001 --noise-multiplier 2", &["--rho must be at least 0.5"]);
    refused("calibrate --epsilon 0.1 --delta 1e-9 --noise-multiplier 1", &["steps", "single step"]);
}

#[test]
fn a_budget_of_rho_has_a_closed_form() {
    for (options, expected) in [
        ("--steps 1", 2.0),
        ("--steps 100", 20.0),
        ("--steps 1 --adjacency add-remove", 1.0),
        ("--steps 100 --sampling one-pass", 2.0),
    ] {
        let found = json(&format!("calibrate --rho 0.5 {options}"));
        assert!((number(&found, "/noise_multiplier") / expected - 1.0).abs() < 1e-12, "{options}: {found}");
        assert!(number(&found, "/rho") <= 0.5);
        assert_eq!((number(&found, "/target_rho"), &found["epsilon"]), (0.5, &Value::Null));
    }
    let one = json("calibrate --rho 0.5 --steps 7");
    assert!(number(&one, "/other_adjacency/rho") < 0.5 && one["certificate"].is_null());
    let with_delta = json("calibrate --rho 0.5 --steps 7 --delta 1e-5");
    assert!((number(&with_delta, "/epsilon") - 4.3772).abs() < 1e-4);
    assert!(number(&with_delta, "/certificate/guarantee/rho") <= 0.5);
    // Whatever the rounding of the closed form, the budget is kept.
    for steps in [3, 11, 1013, 999_983] {
        let found = json(&format!("calibrate --rho 0.1 --steps {steps} --delta 1e-7"));
        assert!(number(&found, "/rho") <= 0.1, "{steps}");
    }
}

#[test]
fn pure_epsilon_needs_noise_that_gives_it() {
    for (mechanism, steps) in [("laplace", 1), ("k-norm", 3), ("laplace", 7)] {
        let found = json(&format!("calibrate --epsilon 0.3 --mechanism {mechanism} --steps {steps}"));
        let expected = 2.0 * f64::from(steps) / 0.3;
        assert!((number(&found, "/noise_multiplier") / expected - 1.0).abs() < 1e-12);
        assert!(number(&found, "/epsilon") <= 0.3 && number(&found, "/delta") == 0.0);
    }
    let approximate = json("calibrate --epsilon 0.3 --delta 1e-3 --mechanism laplace --steps 7");
    assert!(number(&approximate, "/noise_multiplier") < 14.0 / 0.3);
    let refusal = run("calibrate --epsilon 1 --steps 1");
    assert!(refusal.stderr.contains("hint: Gaussian noise needs --delta"), "{}", refusal.stderr);
}

#[test]
fn every_sampling_is_calibrated() {
    for options in [
        "--sampling fixed-size --sample-rate 0.1",
        "--sampling one-pass",
        "--sampling none",
        "--sampling none --trust local",
        "--sampling one-pass --adjacency add-remove",
    ] {
        let found = json(&format!("calibrate --epsilon 1 --delta 1e-6 --steps 20 {options}"));
        let epsilon = number(&found, "/epsilon");
        assert!(epsilon <= 1.0 && epsilon > 0.999, "{options}: {epsilon}");
    }
}

#[test]
fn budgets_that_mean_nothing_are_refused() {
    for (arguments, words) in [
        ("calibrate --epsilon 1 --steps 1", ["--delta", "gaussian"]),
        ("calibrate --epsilon 1 --delta 0 --steps 1", ["--delta", "gaussian"]),
        ("calibrate --delta 1e-5 --steps 1", ["--epsilon", "must be given"]),
        ("calibrate --epsilon 1 --rho 1 --steps 1", ["--epsilon", "--rho"]),
        ("calibrate --epsilon 0 --delta 1e-5 --steps 1", ["epsilon must be", "> 0"]),
        ("calibrate --epsilon -1 --delta 1e-5 --steps 1", ["epsilon must be", "got -1"]),
        ("calibrate --epsilon nan --delta 1e-5 --steps 1", ["epsilon must be", "NaN"]),
        ("calibrate --epsilon 1 --delta 1 --steps 1", ["delta must be", "got 1"]),
        ("calibrate --rho 0 --steps 1", ["rho must be", "> 0"]),
        ("calibrate --rho 1 --steps 1 --delta 0", ["delta must be", "> 0"]),
        ("calibrate --rho 1 --steps 1 --sample-rate 0.1", ["--rho", "poisson"]),
        ("calibrate --rho 1 --steps 1 --mechanism laplace", ["--rho", "gaussian"]),
        ("calibrate --epsilon 1 --delta 1e-5", ["--steps", "--noise-multiplier"]),
        (
            "calibrate --epsilon 1 --delta 1e-5 --steps 1 --noise-multiplier 1",
            ["--steps", "--noise-multiplier"],
        ),
        (
            "calibrate --epsilon 1 --delta 1e-5 --noise-multiplier 9 --sampling one-pass",
            ["--steps", "one-pass"],
        ),
        ("calibrate --epsilon 1 --delta 1e-5 --steps 0", ["steps must be", "got 0"]),
    ] {
        refused(arguments, &words);
    }
}

#[test]
fn the_certificate_goes_to_a_file() {
    let folder = folder("calibrate-certificate");
    let path = folder.join("certificate.json");
    let answer =
        json(&format!("calibrate --epsilon 1 --delta 1e-5 --steps 2 --certificate {}", path.display()));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(written, answer["certificate"]);
    let fresh = folder.join("fresh.json");
    refused(
        &format!("calibrate --rho 1 --steps 2 --certificate {}", fresh.display()),
        &["--certificate", "no delta"],
    );
    assert_eq!(entries(&folder), ["certificate.json"]);
}
