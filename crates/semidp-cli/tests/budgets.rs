//! Budgets that promise little are named before they are spent, and noise that hides nobody is refused.

mod common;
mod rows;

use common::{check_refusal, json, run};
use rows::{Files, Target};
use serde_json::Value;

fn notes(answer: &Value) -> String {
    answer["certificate"]["notes"].to_string()
}

#[test]
fn dangerous_budgets_warn_and_stand_on_the_certificate() {
    let files = Files::new("budgets-warned", Target::Number);
    let both = format!("--private {} --public {}", files.path("private.csv"), files.path("public.csv"));
    let mean = format!("mean {both} --columns a,b --allow-weak-noise");
    let train = format!(
        "train {both} --target y --steps 10 --algorithm semi-dp-sgd --checkpoint none --allow-weak-noise --out {}",
        files.path("model.json")
    );
    // The file has 900 private rows.
    for command in [&mean, &train] {
        for (budget, words) in [
            ("--epsilon 1 --delta 0.5", &["delta 0.5"][..]),
            ("--epsilon 1 --delta 2e-4", &["delta 0.0002"]),
            ("--epsilon 50 --delta 1e-6", &["epsilon 50"]),
            ("--epsilon 20 --delta 0.01", &["delta 0.01", "epsilon 20"]),
            ("--epsilon 1 --delta 1e-5", &[]),
        ] {
            let ran = run(&format!("{command} {budget} --json"));
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(
                ran.stderr.matches("warning: ").count(),
                words.len(),
                "{command} {budget}: {}",
                ran.stderr
            );
            for word in words {
                assert!(ran.stderr.contains(word) && notes(&answer).contains(word), "{word}: {}", ran.stderr);
            }
            assert_eq!(answer["certificate"].get("notes").is_some(), !words.is_empty());
        }
    }
    let pure = run(&format!("{mean} --epsilon 50"));
    assert!(pure.code == 0 && pure.stderr.contains("warning: epsilon 50"), "{}", pure.stderr);
}

/// Under add-remove the warning follows the given batch and rate alone, so that it cannot tell how many rows there are.
#[test]
fn under_add_remove_the_files_count_does_not_matter() {
    let files = Files::new("budgets-secret", Target::Number);
    let few = files.write("few.csv", &rows::rows(40, Target::Number, 9));
    let warned = |private: &str, batch: f64| {
        let ran = run(&format!(
            "train --private {private} --public {} --target y --steps 10 --algorithm semi-dp-sgd --checkpoint none --out {} \
             --adjacency add-remove --sample-rate 0.1 --expected-batch {batch} --epsilon 4 --delta 2e-4 --json",
            files.path("public.csv"),
            files.path("model.json")
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr
    };
    for batch in [40.0, 60.0] {
        let all = warned(&files.path("private.csv"), batch);
        assert_eq!(all, warned(&few, batch));
        assert_eq!(all.contains("delta"), batch == 60.0, "{all}");
    }
}

#[test]
fn weak_noise_is_refused_before_anything_is_spent() {
    let files = Files::new("budgets-weak", Target::Number);
    let ledger = files.path("budget.ledger");
    json(&format!("ledger init --ledger {ledger} --dataset d --epsilon 20 --delta 0.999"));
    let both = format!(
        "--private {} --public {} --ledger {ledger} --dataset d",
        files.path("private.csv"),
        files.path("public.csv")
    );
    let train = format!(
        "train {both} --target y --checkpoint none --out {} --steps 10 --sample-rate 0.01",
        files.path("model.json")
    );
    let before = json(&format!("ledger show --ledger {ledger}"));
    for command in [
        format!("mean {both} --columns a,b --estimator gaussian --epsilon 10 --delta 0.98"),
        format!("{train} --algorithm semi-dp-sgd --epsilon 1 --delta 0.2"),
        format!("{train} --algorithm dp-sgd --epsilon 1 --delta 0.08"),
    ] {
        let ran = run(&command);
        check_refusal(&command, &ran, &["noise-multiplier", "0.3"]);
        assert!(ran.stderr.contains("--allow-weak-noise"), "{}", ran.stderr);
    }
    assert_eq!(json(&format!("ledger show --ledger {ledger}")), before);
    assert!(!files.folder.join("model.json").exists());
}

#[test]
fn large_epsilons_of_reports_warn_too() {
    let files = Files::new("budgets-local", Target::Number);
    let people = files.write("people.csv", &common::people::people(30));
    let others = files.write("others.csv", &common::people::people(30));
    let (private, public) = (files.path("private.csv"), files.path("public.csv"));
    let reports = files.path("reports.jsonl");
    let randomize = format!("local randomize --data {people} --radius 2 --out {reports}");
    let train = format!(
        "train --trust local --private {private} --public {public} --target y --out {}",
        files.path("model.json")
    );
    for (command, epsilon, is_dangerous) in [
        (randomize.clone(), 12, true),
        (randomize.replace(&people, &others), 2, false),
        (train.clone(), 12, true),
        (train, 4, false),
    ] {
        let ran = run(&format!("{command} --epsilon {epsilon} --json"));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(ran.stderr.contains("warning: epsilon 12"), is_dangerous, "{command}: {}", ran.stderr);
        assert_eq!(answer["certificate"].get("notes").is_some(), is_dangerous);
    }
}
