//! `semidp train` with the algorithms beyond Algorithm 1: their options, and the reference that is not private.

mod common;
mod rows;

use common::{json, number, refused, run};
use rows::{Files, Target, hyper};
use serde_json::{Value, json};

/// Algorithms beyond Algorithm 1 and their options.
#[test]
fn options_of_some_algorithms() {
    let files = Files::new("train_family", Target::Number);
    let train = |options: &str| json(&format!("{} {options}", files.train()));
    let answer = train("--algorithm semi-dp-sgd-accelerated --learning-rate 3 --average mean");
    assert!(
        answer["notes"]
            .to_string()
            .contains("no effect on semi-dp-sgd-accelerated: --learning-rate, --average")
    );
    for name in ["smoothness", "gradient_variance", "distance"] {
        let (value, source) = hyper(&answer, name);
        assert!(value.as_f64().unwrap() > 0.0 && source == "public data", "{name}");
    }
    assert_eq!(hyper(&answer, "strong_convexity"), (json!(0.0), "theory".into()));
    assert!(answer["hyperparameters"].get("learning_rate").is_none());
    let answer = train("--algorithm semi-dp-sgd-accelerated --l2 0.5");
    assert_eq!(hyper(&answer, "strong_convexity"), (json!(0.5), "user".into()));
    let answer = train("--algorithm pda-md --alpha 0.5");
    assert_eq!(hyper(&answer, "hessian_regularisation"), (json!(0.01), "default".into()));
    assert!(answer["notes"].to_string().contains("no effect on pda-md: --alpha"));
    let answer = train("--algorithm pda-md --hessian-regularisation 0.5 --learning-rate 0.7");
    assert_eq!(hyper(&answer, "hessian_regularisation"), (json!(0.5), "user".into()));
    assert_eq!(hyper(&answer, "learning_rate"), (json!(0.7), "user".into()));
    for (options, rule_source) in [("", "theory"), ("--alpha cosine", "user"), ("--alpha cosine:5", "user")] {
        let answer = train(&format!("--algorithm pda-first-order {options}"));
        assert_eq!(hyper(&answer, "alpha_rule"), (json!("cosine"), rule_source.into()));
    }
    assert_eq!(hyper(&train("--alpha cosine"), "alpha_rule").0, "cosine");
    for (options, words) in [
        ("--algorithm pda-first-order --alpha horizon", &["alpha", "cosine"][..]),
        ("--alpha cosine:0", &["alpha", "cosine:K"]),
        ("--alpha cosine:x", &["alpha", "cosine:K"]),
        ("--algorithm pda-md --hessian-regularisation -1", &["hessian-regularisation"]),
        ("--algorithm pda-md --loss quantile", &["algorithm", "kinks"]),
        ("--algorithm semi-dp-sgd-accelerated --loss quantile", &["algorithm", "kinks"]),
    ] {
        refused(&format!("{} {options}", files.paid()), words);
    }
}

/// A reference that is not private says so everywhere, and nothing in it reads like an epsilon.
#[test]
fn the_non_private_reference_is_loud() {
    let files = Files::new("train_open", Target::Number);
    let open = format!("{} --algorithm non-private --task regression", files.unpaid());
    for option in ["--epsilon 1", "--delta 1e-5", "--rho 0.1"] {
        refused(&format!("{open} {option}"), &["must not be given", "non-private"]);
    }
    let ran = run(&format!("{open} --quiet"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("no longer protected"), "{}", ran.stderr);
    let ran = run(&open);
    assert!(ran.stderr.contains("NOT private") && ran.stdout.contains("NOT private"), "{}", ran.stdout);
    // Lines are broken anywhere.
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("nothing is promised") && !text.contains("epsilon 0"), "{text}");
    let answer = json(&open);
    for name in ["epsilon", "delta", "rho", "budget", "other_adjacency"] {
        assert_eq!(answer[name], Value::Null, "{name}");
    }
    assert_eq!((&answer["private"], &answer["algorithm"]), (&json!(false), &json!("non-private")));
    assert!(answer["protects"].as_str().unwrap().contains("nothing"));
    let saved = files.json("model.json");
    assert_eq!(saved["certificate"]["guarantee"]["epsilon"], Value::Null);
    assert!(saved["certificate"]["declassified"][0].as_str().unwrap().contains("non-private"));
    let ran = run(&format!("verify {}", files.path("model.json")));
    assert!(ran.code == 1 && ran.stdout.contains("nothing is promised"), "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("declassified"), "{}", ran.stderr);
    let ran = run(&format!("verify {} --json", files.path("model.json")));
    let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
    for name in ["epsilon", "claimed_epsilon", "delta"] {
        assert_eq!(verdict[name], Value::Null, "{name}");
    }
    assert_eq!((&verdict["valid"], &verdict["protects"]), (&json!(false), &json!("nothing")));
    let found = files.evaluate();
    assert_eq!((&found["model_epsilon"], &found["model_private"]), (&Value::Null, &json!(false)));
    assert!(number(&found, "/metrics/r2") > 0.9);
    let (model, test) = (files.path("model.json"), files.path("test.csv"));
    assert!(run(&format!("evaluate --model {model} --data {test}")).stderr.contains("NOT private"));
    let out = files.path("predictions.csv");
    let ran = run(&format!("predict --model {model} --data {test} --out {out}"));
    assert!(ran.code == 0 && ran.stderr.contains("NOT private"), "{}", ran.stderr);
}
