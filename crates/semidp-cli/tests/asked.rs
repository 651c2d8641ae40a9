//! The commands as a library: other programs get the very answers that `--json` prints, and failures by kind.

mod common;
mod rows;

use common::{json, run};
use rows::{Files, Target};
use semidp_cli::{ask, train};
use serde_json::json;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

#[test]
fn answers_are_those_of_the_binary() {
    for line in [
        "calibrate --epsilon 2 --delta 1e-5 --steps 10",
        "account --noise-multiplier 2 --steps 3 --delta 1e-6",
        "plan mean --n-private 900 --n-public 100 --dim 5 --radius 3 --rho 0.1",
    ] {
        let answer = ask(&words(line)).unwrap();
        assert_eq!(answer.json, json(line), "{line}");
        assert_eq!(answer.warnings, Vec::<String>::new());
    }
}

#[test]
fn failures_tell_their_kind() {
    let variant = |line: &str| {
        let failure = ask(&words(line)).unwrap_err();
        assert_eq!(i32::from(failure.code()), run(line).code, "{line}");
        assert!(run(line).stderr.contains(failure.message()), "{line}");
        (failure.variant().to_string(), failure.hint().is_some())
    };
    assert_eq!(variant("calibrate --epsilon -1 --delta 1e-5 --steps 10"), ("InvalidParameter".into(), true));
    assert_eq!(variant("calibrate --delta 1e-5 --steps 10"), ("Input".into(), true));
    assert_eq!(variant("mean --public nowhere.csv --epsilon 1"), ("Unreadable".into(), true));
    assert_eq!(variant("calibrate --frobnicate"), ("Input".into(), true));
}

/// A certificate that does not hold is an answer to a program, and a failure to a shell.
#[test]
fn verdicts_are_answers() {
    let files = Files::new("asked_verdicts", Target::Number);
    let mut certificate =
        ask(&words("calibrate --epsilon 1 --delta 1e-5 --steps 2")).unwrap().json["certificate"].clone();
    certificate["guarantee"]["epsilon"] = json!(0.5);
    files.write("c.json", &certificate.to_string());
    let line = format!("verify {}", files.path("c.json"));
    assert_eq!(run(&line).code, 1);
    assert_eq!(ask(&words(&line)).unwrap().json["valid"], false);
}

/// A program that was interrupted before it held the answer asks again.
#[test]
fn a_paid_answer_is_the_same_until_the_program_ends_its_run() {
    let files = Files::new("asked_pending", Target::Number);
    let ledger = files.path("ledger.db");
    ask(&words(&format!("ledger init --ledger {ledger} --dataset people --epsilon 5 --delta 1e-3"))).unwrap();
    let spent = || {
        let shown = ask(&words(&format!("ledger show --ledger {ledger}"))).unwrap().json;
        shown["datasets"][0]["debits"].as_array().unwrap().len()
    };
    let (private, public) = (files.path("private.csv"), files.path("public.csv"));
    let line = format!(
        "mean --private {private} --public {public} --columns a --epsilon 1 --delta 1e-6 --ledger {ledger} --dataset people"
    );
    let first = ask(&words(&line)).unwrap();
    assert!(first.pending.is_some());
    drop(first.pending);
    let second = ask(&words(&line)).unwrap();
    assert_eq!((&second.json, spent()), (&first.json, 1));
    second.pending.unwrap().end().unwrap();
    let third = ask(&words(&line)).unwrap();
    assert_eq!(spent(), 2);
    assert_ne!(third.json["mean"], first.json["mean"]);
    // Nothing is held where nothing was paid.
    let free = ask(&words(&format!(
        "mean --private {private} --public {public} --columns a --epsilon 1 --delta 1e-6"
    )));
    assert!(free.unwrap().pending.is_none());
}

#[test]
fn programs_train_without_files() {
    let files = Files::new("asked_train", Target::Number);
    let line = format!("{} --task regression --seed 3 --checkpoint none", files.paid());
    let expected = json(&line);
    let model = files.json("model.json");
    std::fs::remove_file(files.path("model.json")).unwrap();
    let mut steps = Vec::new();
    let (saved, answer) = train(&words(&line), &[], &mut |progress| steps.push(progress.step)).unwrap();
    assert_eq!(answer.json, expected);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&saved.to_json().unwrap()).unwrap(), model);
    assert!(!std::path::Path::new(&files.path("model.json")).exists(), "nothing is written");
    assert_eq!(steps, (0..=20).collect::<Vec<u64>>());
    assert!(answer.warnings[0].contains("NOT private"));
    // What the program says it did stands on the certificate, whether or not there was noise.
    let peeked = ["a look at the rows".to_string()];
    for algorithm in ["auto", "throw-away"] {
        let line = format!("{line} --algorithm {algorithm}");
        let (saved, answer) = train(&words(&line), &peeked, &mut |_| ()).unwrap();
        assert_eq!(saved.certificate.not_covered, peeked);
        assert_eq!(answer.json["certificate"]["not_covered"], json!(peeked));
    }
}

/// Classes that the public rows do not have, for targets of text and of numbers.
#[test]
fn classes_may_be_given() {
    for (target, classes, names) in [
        (Target::TwoWords, "yes,maybe,no", json!(["yes", "maybe", "no"])),
        (Target::Bit, "0,1,2", json!(["0", "1", "2"])),
    ] {
        let files = Files::new("asked_classes", target);
        let line = format!("{} --task classification", files.train());
        assert_eq!(json(&line)["loss"], "logistic");
        let answer = json(&format!("{line} --classes {classes}"));
        assert_eq!((&answer["classes"], &answer["loss"]), (&names, &json!("softmax")));
        assert!(files.evaluate()["metrics"]["accuracy"].as_f64().unwrap() > 0.8);
        let refused = run(&format!("{line} --classes {}", classes.split(',').next().unwrap()));
        assert!(refused.code == 2 && refused.stderr.contains("two classes"), "{}", refused.stderr);
    }
    let files = Files::new("asked_no_classes", Target::Bit);
    let refused = run(&format!("{} --task classification --classes a,b", files.paid()));
    assert!(refused.code == 2 && refused.stderr.contains("not numbers"), "{}", refused.stderr);
}
