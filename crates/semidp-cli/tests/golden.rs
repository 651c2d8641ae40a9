//! What every command answers and writes under a fixed seed, against files in `golden/`.
//!
//! `SEMIDP_GOLDEN=write cargo test -p semidp-cli --test golden` writes them anew; read the difference before it is committed. Words must
//! be equal, numbers to a relative 1e-9: the C library's logarithms may differ in their last bits between machines.

mod common;

use common::*;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Where the expected answers are.
fn expected_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Rows of three numbers, a word and a label, from a linear congruence.
fn table(rows: usize, mut state: u64, shift: f64) -> String {
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut text = "age,hours,score,town,label,pay\n".to_string();
    for _ in 0..rows {
        let age = (18.0 + 60.0 * uniform() + shift).round();
        let hours = (60.0 * (uniform() + uniform()) / 2.0).round();
        let score = ((uniform() + uniform() + uniform() - 1.5) * 1000.0).round() / 1000.0;
        let town = ["north", "south", "east"][(3.0 * uniform()) as usize];
        let is_yes = age / 60.0 + hours / 60.0 + score + 0.3 * uniform() > 1.4;
        let pay = ((10.0 + 0.2 * age + 0.5 * hours + 4.0 * score + uniform()) * 100.0).round() / 100.0;
        let _ = writeln!(text, "{age},{hours},{score},{town},{},{pay}", if is_yes { "yes" } else { "no" });
    }
    text
}

/// Each command once or more; `@` is the folder. Later ones read what earlier ones wrote.
const COMMANDS: &[(&str, &str)] = &[
    ("account-poisson", "account --noise-multiplier 1.1 --sample-rate 0.01 --steps 1000 --delta 1e-5"),
    ("account-laplace", "account --mechanism laplace --noise-multiplier 2 --dimension 3 --steps 1 --delta 0"),
    (
        "account-fixed-size",
        "account --noise-multiplier 1 --sampling fixed-size --sample-rate 0.05 --steps 10 --delta 1e-6",
    ),
    ("account-add-remove", "account --noise-multiplier 3 --steps 4 --delta 1e-5 --adjacency add-remove"),
    ("account-events", "account --events @/events.json --delta 1e-5"),
    ("calibrate-noise", "calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.01 --steps 500"),
    ("calibrate-steps", "calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.01 --noise-multiplier 1.2"),
    ("calibrate-rho", "calibrate --rho 0.5 --steps 3"),
    ("plan-mean", "plan mean --n-private 900 --n-public 100 --dim 5 --radius 3 --epsilon 1 --delta 1e-6"),
    ("plan-local", "plan local --n-private 900 --n-public 100 --dim 5 --epsilon 1"),
    ("plan-train", "plan train --n-private 2000 --n-public 200 --dim 5 --epsilon 1 --delta 1e-6"),
    ("schema", "schema --public @/public.csv --out @/schema.json"),
    (
        "mean",
        "mean --private @/private.csv --public @/public.csv --columns age,hours,town --epsilon 1 --delta 1e-6 --seed 1 --out @/mean.json --certificate @/mean.certificate.json",
    ),
    (
        "mean-pure",
        "mean --private @/private.csv --public @/public.csv --columns age --epsilon 1 --seed 2 --radius 40 --scale none",
    ),
    (
        "mean-k-norm",
        "mean --private @/private.csv --public @/public.csv --columns age,hours,score --epsilon 1 --seed 3 --idealised --estimator shift-robust-k-norm",
    ),
    (
        "mean-pooled",
        "mean --private @/private.csv --public @/public.csv --columns age,hours --rho 0.1 --seed 4 --assume same-population",
    ),
    (
        "mean-named",
        "mean --private @/private.csv --public @/public.csv --columns age,hours --rho 0.1 --seed 5 --estimator weighted-gaussian",
    ),
    (
        "mean-empirical",
        "mean --private @/private.csv --public @/public.csv --columns age --epsilon 2 --delta 1e-6 --seed 6 --target empirical",
    ),
    ("mean-public-only", "mean --public @/public.csv --columns age,hours --epsilon 1"),
    (
        "mean-private-only",
        "mean --private @/private.csv --schema @/schema.json --columns age --centre origin --scale none --radius 100 --epsilon 1 --seed 7",
    ),
    (
        "train-classifier",
        "train --private @/private.csv --public @/public.csv --target label --columns age,hours,score,town --epsilon 1 --delta 1e-6 --seed 1 --threads 1 --out @/model.json --certificate @/model.certificate.json",
    ),
    (
        "train-regression",
        "train --private @/private.csv --public @/public.csv --target pay --columns age,hours --epsilon 2 --delta 1e-6 --steps 30 --seed 2 --out @/pay.json",
    ),
    (
        "train-huber",
        "train --private @/private.csv --public @/public.csv --target pay --columns age,hours --loss huber --algorithm dp-sgd --steps 20 --epsilon 2 --delta 1e-6 --seed 3 --out @/huber.json",
    ),
    (
        "train-semi-dp-sgd",
        "train --private @/private.csv --public @/public.csv --target label --columns age,hours --algorithm semi-dp-sgd --steps 20 --sample-rate 0.1 --epsilon 2 --delta 1e-6 --seed 4 --out @/semi.json",
    ),
    (
        "train-accelerated",
        "train --private @/private.csv --public @/public.csv --target label --columns age,hours --algorithm semi-dp-sgd-accelerated --steps 10 --rho 0.2 --seed 5 --out @/accelerated.json",
    ),
    (
        "train-towns",
        "train --private @/private.csv --public @/public.csv --target town --columns age,hours --epsilon 1 --delta 1e-6 --steps 20 --seed 6 --out @/towns.json",
    ),
    (
        "train-local",
        "train --private @/private.csv --public @/public.csv --target label --columns age,hours --trust local --epsilon 4 --seed 7 --out @/local.json",
    ),
    (
        "train-add-remove",
        "train --private @/private.csv --public @/public.csv --target label --columns age,hours --adjacency add-remove --sample-rate 0.05 --expected-batch 40 --steps 20 --epsilon 2 --delta 1e-6 --seed 8 --out @/secret.json",
    ),
    ("predict", "predict --model @/model.json --data @/test.csv --out @/predictions.csv"),
    ("evaluate", "evaluate --model @/model.json --data @/test.csv"),
    ("evaluate-regression", "evaluate --model @/pay.json --data @/test.csv"),
    (
        "local-randomize",
        "local randomize --data @/private.csv --columns age,hours --radius 100 --epsilon 2 --seed 1 --out @/reports.jsonl",
    ),
    (
        "local-aggregate",
        "local aggregate --reports @/reports.jsonl --public @/public.csv --columns age,hours",
    ),
    ("local-aggregate-alone", "local aggregate --reports @/reports.jsonl --columns age,hours --std 30"),
    ("ledger-init", "ledger init --ledger @/budget.ledger --dataset patients --epsilon 3 --delta 1e-5"),
    (
        "ledger-plan",
        "ledger plan --ledger @/budget.ledger --dataset patients --events @/events.json --description two-runs",
    ),
    (
        "mean-debited",
        "mean --private @/private.csv --public @/public.csv --columns age --epsilon 0.5 --delta 1e-6 --seed 8 --ledger @/budget.ledger --dataset patients",
    ),
    ("ledger-show", "ledger show --ledger @/budget.ledger"),
    ("verify-seeded", "verify @/mean.certificate.json --allow-seeded"),
    (
        "audit-mean",
        "audit mean --n-private 50 --n-public 10 --dim 2 --radius 1 --epsilon 1 --delta 1e-5 --trials 1000 --seed 1",
    ),
    (
        "audit-train",
        "audit train --algorithm dp-sgd --n-private 60 --n-public 10 --dim 8 --steps 5 --epsilon 2 --delta 1e-5 --trials 100 --seed 1",
    ),
    (
        "audit-randomizer",
        "audit randomizer --mechanism rank-privunit --dim 3 --epsilon 1 --trials 2000 --seed 1",
    ),
    (
        "audit-low-bits",
        "audit randomizer --mechanism duchi --attack low-bits --dim 3 --epsilon 1 --trials 2000 --seed 1",
    ),
];

/// Files whose content is compared besides the answers.
const FILES: &[&str] =
    &["schema.json", "model.json", "pay.json", "towns.json", "model.certificate.json", "predictions.csv"];

const EVENTS: &str = r#"[{"event":"gaussian","noise_multiplier":20,"count":2},
{"event":"poisson-gaussian","noise_multiplier":2,"sample_rate":0.01,"count":50}]"#;

#[test]
fn answers_and_files_are_as_recorded() {
    let folder = folder("golden");
    for (name, rows, seed, shift) in [("private", 800, 1, 0.0), ("public", 150, 2, 1.0), ("test", 60, 3, 0.0)]
    {
        std::fs::write(folder.join(format!("{name}.csv")), table(rows, seed, shift)).unwrap();
    }
    std::fs::write(folder.join("events.json"), EVENTS).unwrap();
    let place = folder.display().to_string();
    let clean = |text: &str| text.replace(&place, "FOLDER");
    let mut found = Vec::new();
    for (name, command) in COMMANDS {
        let ran = run(&format!("{} --json", command.replace('@', &place)));
        let answer: Value = serde_json::from_str(&clean(&ran.stdout)).unwrap_or(Value::Null);
        let messages: Vec<String> = clean(&ran.stderr).lines().map(String::from).collect();
        found.push((
            format!("{name}.json"),
            json!({ "command": command, "code": ran.code, "messages": messages, "answer": without_times(answer) }),
        ));
    }
    for file in FILES {
        let text =
            std::fs::read_to_string(folder.join(file)).unwrap_or_else(|_| panic!("{file} was not written"));
        let content = serde_json::from_str(&text).unwrap_or_else(|_| text.lines().map(Value::from).collect());
        found.push((format!("file-{}.json", file.replace('.', "-")), without_times(content)));
    }
    let is_writing = std::env::var("SEMIDP_GOLDEN").is_ok_and(|value| value == "write");
    let mut differences = String::new();
    for (name, value) in &found {
        let path = expected_folder().join(name);
        if is_writing {
            std::fs::create_dir_all(expected_folder()).unwrap();
            std::fs::write(&path, format!("{value:#}\n")).unwrap();
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let expected = serde_json::from_str(&text).unwrap_or(Value::Null);
        compare(name, &expected, value, &mut differences);
    }
    let mut names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(entries(&expected_folder()), names, "files that no command belongs to");
    assert!(differences.is_empty(), "expected, found:\n{differences}");
}

/// Times and random names, which no seed fixes, as the word for what they are.
fn without_times(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entries = entries.into_iter().map(|(name, value)| match name.as_str() {
                "time" | "at" | "run" | "seconds" | "created" if !value.is_object() => {
                    (name, Value::from("VARIES"))
                }
                _ => (name, without_times(value)),
            });
            Value::Object(entries.collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.into_iter().map(without_times).collect(),
        other => other,
    }
}

fn compare(place: &str, expected: &Value, found: &Value, differences: &mut String) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, value) in a {
                compare(&format!("{place}/{key}"), value, &b[key], differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{place}/{at}"), a, b, differences);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (x, y) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            let is_near = (x - y).abs() <= 1e-9 * x.abs().max(y.abs());
            if a != b && !is_near {
                let _ = writeln!(differences, "{place}: {a}, {b}");
            }
        }
        (a, b) if a == b => {}
        (a, b) => {
            let _ = writeln!(differences, "{place}: {a}, {b}");
        }
    }
}
