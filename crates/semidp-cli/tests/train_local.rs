//! `semidp train --trust local`: nobody is trusted, everybody reports once.

mod common;
mod rows;

use common::{json, number, refused, run};
use rows::{Files, Target, hyper};
use serde_json::json;

/// Without the options of other ways to train, which have no effect here.
fn local(files: &Files, options: &str) -> String {
    format!("{} --trust local --epsilon 8 {options}", files.unpaid().replace(" --steps 20", ""))
}

/// The same from a seed: how good a model is must not depend on the day.
fn seeded(files: &Files, options: &str) -> String {
    local(files, &format!("--seed 1 {options}"))
}

#[test]
fn everybody_is_promised_pure_epsilon() {
    for (name, target, metric, least) in [
        ("train_local_number", Target::Number, "/metrics/r2", 0.75),
        ("train_local_class", Target::TwoWords, "/metrics/accuracy", 0.8),
    ] {
        let files = Files::new(name, target);
        for (algorithm, chosen) in [
            ("", "semi-ldp-gain"),
            ("--algorithm semi-ldp-gain", "semi-ldp-gain"),
            ("--algorithm semi-ldp-sgd", "semi-ldp-sgd"),
            ("--algorithm ldp-sgd", "ldp-sgd"),
        ] {
            let answer = json(&seeded(&files, algorithm));
            assert_eq!(answer["algorithm"], chosen);
            let certificate = &answer["certificate"];
            assert_eq!(
                (number(certificate, "/guarantee/epsilon"), number(certificate, "/guarantee/delta")),
                (8.0, 0.0)
            );
            assert_eq!(certificate["guarantee"]["trust"], "local");
            assert_eq!((&certificate["arithmetic"], &certificate["releases"]), (&json!("exact"), &json!(1)));
            assert_eq!(hyper(&answer, "randomizer"), (json!("rank-privunit"), "theory".into()));
            assert_eq!(json(&format!("verify --allow-seeded {}", files.path("model.json")))["valid"], true);
            if chosen != "ldp-sgd" {
                assert!(number(&files.evaluate(), metric) > least, "{name} {algorithm}");
            }
        }
        // Float PrivUnit is not, and must be asked for.
        let float = "--algorithm semi-ldp-sgd --randomizer privunit";
        refused(&seeded(&files, float), &["--randomizer privunit", "idealised"]);
        let answer = json(&seeded(&files, &format!("{float} --idealised")));
        assert_eq!(answer["certificate"]["arithmetic"], "idealised");
        // Duchi's reports are exact for the floats that are sent.
        let answer = json(&seeded(&files, "--algorithm semi-ldp-sgd --randomizer duchi"));
        assert_eq!(answer["certificate"]["arithmetic"], "exact");
        assert_eq!(hyper(&answer, "randomizer"), (json!("duchi"), "user".into()));
    }
}

#[test]
fn schedules_and_their_bounds() {
    let files = Files::new("train_local_schedules", Target::TwoWords);
    let of =
        |options: &str| json(&seeded(&files, &format!("--algorithm semi-ldp-sgd --domain ball:3 {options}")));
    let weighted = of("");
    assert_eq!(hyper(&weighted, "schedule"), (json!("weighted"), "theory".into()));
    assert_eq!(hyper(&weighted, "reach"), (json!(3.0), "user".into()));
    let bound = |answer: &serde_json::Value| hyper(answer, "excess_risk_bound").0.as_f64().unwrap();
    assert!(bound(&weighted) <= bound(&of("--schedule constant")));
    let ridge = of("--l2 0.1");
    assert_eq!(hyper(&ridge, "schedule"), (json!("strongly-convex"), "theory".into()));
    assert!(bound(&ridge) > 0.0);
    let given = of("--learning-rate 0.01");
    assert_eq!(hyper(&given, "learning_rate"), (json!(0.01), "user".into()));
    assert!(given["hyperparameters"].get("excess_risk_bound").is_none());
    refused(&local(&files, "--algorithm semi-ldp-sgd --schedule strongly-convex"), &["schedule", "--l2"]);
    refused(&local(&files, "--schedule fast"), &["schedule", "weighted"]);
    refused(&local(&files, "--randomizer laplace"), &["randomizer", "privunit"]);
}

#[test]
fn what_the_local_model_does_not_do_is_refused() {
    let files = Files::new("train_local_refused", Target::Number);
    refused(&local(&files, "--delta 1e-5"), &["delta", "pure epsilon"]);
    refused(&local(&files, "--algorithm dp-sgd"), &["algorithm", "semi-ldp-sgd", "--trust local"]);
    refused(&local(&files, "--resume nothing.checkpoint"), &["--resume", "not kept"]);
    refused(&format!("{} --trust central --algorithm ldp-sgd", files.paid()), &["trust", "local"]);
    refused(&local(&files, "--epsilon 60").replace("--epsilon 8 ", ""), &["epsilon", "50"]);
    let private =
        local(&files, "--clip-norm 1").replace(&format!("--public {}", files.path("public.csv")), "");
    let with_schema = format!("{private} --schema {}", rows::schema(&files.folder));
    refused(&with_schema, &["domain", "ball:RADIUS"]);
    assert_eq!(json(&format!("{with_schema} --domain ball:20"))["algorithm"], "semi-ldp-sgd");
    // An algorithm of reports says by itself that nobody is trusted.
    let said = run(&local(&files, "--algorithm semi-ldp-sgd --steps 5").replace("--trust local ", ""));
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("no effect on semi-ldp-sgd: --steps"), "{}", said.stderr);
}

/// A ledger is charged like for any other run, and refuses a second one that does not fit.
#[test]
fn reports_are_charged() {
    let files = Files::new("train_local_ledger", Target::Number);
    let ledger = format!("--ledger {} --dataset rows", files.path("budget.ledger"));
    json(&format!("ledger init {ledger} --epsilon 10 --delta 1e-6"));
    json(&seeded(&files, &ledger));
    let second = run(&local(&files, &ledger));
    assert_eq!(second.code, 3, "{}", second.stderr);
}
