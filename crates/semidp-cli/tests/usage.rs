//! What every command shares: help, quiet, usage errors, closed pipes; and the human tables.

mod common;
mod rows;

use common::{SEMIDP, json, number, refused, run};
use rows::{Files, Target};
use std::process::{Command, Stdio};

const COMMANDS: [&str; 10] = [
    "account",
    "calibrate",
    "verify",
    "demo",
    "plan mean",
    "plan train",
    "audit",
    "audit mean",
    "audit train",
    "audit randomizer",
];

#[test]
fn every_help_ends_with_an_example_that_works() {
    let folder = std::path::Path::new(SEMIDP).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    for command in COMMANDS.iter().chain(&[""]) {
        for flag in ["--help", "-h"] {
            let ran = run(&format!("{command} {flag}"));
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
            let (_, example) = ran.stdout.split_once("EXAMPLE\n").expect("an example");
            assert!(example.starts_with("  semidp ") && example.lines().count() == 1, "{example}");
            assert!(ran.stdout.contains("--json") && ran.stdout.contains("--quiet"));
            if flag == "--help" {
                let mut shell = Command::new("sh");
                // Some write files.
                shell.args(["-c", example]).env("PATH", &path).current_dir(common::folder("usage-examples"));
                let example = shell.output().unwrap();
                let printed = String::from_utf8_lossy(&example.stdout);
                assert!(example.status.success() && printed.contains("epsilon"), "{command}: {printed}");
            }
        }
    }
    let long = run("account --help").stdout;
    assert!(long.contains("--grid-scale") && long.contains("For checking the accountant"));
    assert!(!run("account -h").stdout.contains("--grid-scale"));
}

#[test]
fn usage_errors_look_like_every_other_error() {
    refused("", &["command"]);
    refused("acount", &["acount"]);
    refused("account --noise 1", &["--noise"]);
    refused("account --steps", &["--steps"]);
    refused("account --steps 1 --steps 2", &["--steps"]);
    refused("demo extra", &["extra"]);
    refused("verify a b", &["'b'"]);
    assert!(run("--version").stdout.starts_with("semidp "));
    assert!(run("help account").stdout.contains("EXAMPLE"));
}

#[test]
fn notes_go_to_stderr_and_quiet_silences_them() {
    let base = "account --noise-multiplier 4 --sample-rate 0.5 --steps 1 --delta 1e-5 --adjacency add-remove";
    let loud = run(base);
    assert!(loud.stderr.contains("note: idealised arithmetic: the guarantee holds for real-valued noise"));
    assert!(loud.stderr.contains("secret"));
    let quiet = run(&format!("{base} --quiet"));
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), (loud.stdout.as_str(), ""));
    // A program reads the same from the JSON.
    assert_eq!(run(&format!("{base} --json")).stderr, "");
    assert_eq!(run(&format!("--json {base}")).stdout, run(&format!("{base} --json")).stdout);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    for arguments in ["account --noise-multiplier 4 --steps 1 --delta 1e-5", "--help"] {
        let mut child = Command::new(SEMIDP)
            .args(arguments.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_but_no_panic() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(SEMIDP)
        .args("account --noise-multiplier 4 --steps 1 --delta 1e-5".split(' '))
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: cannot write to standard output"));
}

#[test]
fn the_table_of_an_account() {
    let ran = run("account --noise-multiplier 4 --steps 3 --delta 1e-5");
    assert_eq!(ran.stdout, include_str!("account.txt"));
}

#[test]
fn the_demo_releases_a_mean_and_answers_the_question_of_the_paper() {
    let answer = json("demo");
    let mean = &answer["mean"];
    let estimators = mean["estimators"].as_array().unwrap();
    let best = &estimators[2];
    assert_eq!(best["name"], "weighted-gaussian");
    assert_eq!(best["certificate"]["arithmetic"], "exact");
    assert_eq!(best["certificate"]["random_source"], "operating-system");
    assert!(number(best, "/certificate/guarantee/epsilon") <= 0.05);
    assert_eq!(number(&estimators[0], "/certificate/guarantee/epsilon"), 0.0);
    for (i, worse) in [2.0, 1.3].into_iter().enumerate() {
        assert!(number(&estimators[i], "/predicted_mse") > worse * number(best, "/predicted_mse"), "{i}");
    }
    // A column's error has a variance of at most the total predicted error, in units of its standard
    // deviation: 6.5 of them are exceeded with probability below 1e-9.
    for estimator in estimators {
        let most = 6.5 * number(estimator, "/predicted_mse").sqrt();
        for j in 0..3 {
            let gap = number(estimator, &format!("/mean/{j}"))
                - number(mean, &format!("/exact_mean_for_comparison/{j}"));
            assert!(gap.abs() < most * number(mean, &format!("/unit_of_errors/{j}")), "{j}: {gap}");
        }
    }
    // Four algorithms at three budgets, each within its own; only throw-away costs nothing.
    let models = answer["training"]["models"].as_array().unwrap();
    assert_eq!(models.len(), 12);
    for model in models {
        let spent = number(model, "/certificate/guarantee/epsilon");
        assert!(spent <= number(model, "/budget/epsilon"));
        assert_eq!(spent == 0.0, model["algorithm"] == "throw-away", "{}", model["algorithm"]);
    }
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 9);
    // spec C, table at epsilon 2: tight noise under add/remove and replace-one, q = 500/rows.
    let tight = [
        (2.49646, 4.74599),
        (2.54352, 4.84382),
        (2.56782, 4.89427),
        (2.72531, 5.22050),
        (3.23290, 6.26459),
        (4.77401, 9.39734),
        (9.44664, 18.79622),
        (23.52669, 46.99314),
        (47.01458, 93.98804),
    ];
    for (row, (add_remove, replace_one)) in rows.iter().zip(tight) {
        for (adjacency, expected) in [("add-remove", add_remove), ("replace-one", replace_one)] {
            let found = number(row, &format!("/noise_multiplier/{adjacency}"));
            assert!((0.99999..1.0002).contains(&(found / expected)), "{found} {expected}");
        }
        assert!((1.97..2.02).contains(&number(row, "/paper_epsilon/add-remove")));
        assert!((4.11..4.37).contains(&number(row, "/paper_epsilon/replace-one")));
    }
    assert_eq!(rows[3]["private_rows"], 27_000);
    assert_eq!(rows[3]["paper_noise_multiplier"], 2.744);
}

/// A hint names options of the command that failed only.
#[test]
fn hints_do_not_name_options_of_other_commands() {
    let files = Files::new("usage-hints", Target::TwoWords);
    let (private, public) = (files.path("private.csv"), files.path("public.csv"));
    json(&format!(
        "train --algorithm throw-away --public {public} --target y --out {}",
        files.path("model.json")
    ));
    let narrow = files.write("narrow.csv", "a\n1\n2\n");
    for command in [
        format!("mean --private {private} --public {public} --columns a,b --epsilon 300"),
        format!("mean --private {private} --public {public} --columns a,b --epsilon 300 --delta 1e-6"),
        format!(
            "predict --model {} --data {narrow} --out {}",
            files.path("model.json"),
            files.path("out.csv")
        ),
        format!("evaluate --model {} --data {narrow}", files.path("model.json")),
    ] {
        let ran = run(&command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.stderr);
        let (_, hint) = ran.stderr.split_once("hint: ").expect("a hint");
        let verb = command.split(' ').next().unwrap();
        let help = run(&format!("{verb} --help")).stdout;
        for word in hint.split_whitespace().filter(|word| word.starts_with("--")) {
            let option = word.trim_end_matches([',', ':', ';', '.', '`']);
            assert!(help.contains(option), "{command}: {option} in: {hint}");
        }
    }
}
