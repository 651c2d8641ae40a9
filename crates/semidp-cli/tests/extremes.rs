//! Extreme public settings of `semidp train`: what public facts alone decide to fail is refused before the ledger is debited.

mod common;
mod rows;

use common::{folder, json, run};
use rows::Numbers;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A table of two features and a target in units of `unit`.
fn table(count: usize, seed: u64, unit: f64) -> String {
    let mut numbers = Numbers(seed);
    let mut text = "a,b,y,label\n".to_string();
    for _ in 0..count {
        let (a, b) = (numbers.draw(), numbers.draw());
        let y = 2.0 * a - b + 0.3 * numbers.draw();
        let label = if y > 0.0 { "yes" } else { "no" };
        let _ = writeln!(text, "{a},{b},{:e},{label}", y * unit);
    }
    text
}

fn files(name: &str, unit: f64) -> PathBuf {
    let folder = folder(name);
    std::fs::write(folder.join("public.csv"), table(60, 1, unit)).unwrap();
    std::fs::write(folder.join("private.csv"), table(300, 2, unit)).unwrap();
    folder
}

/// Runs a command against a new ledger, and checks that a failure spent nothing.
fn check(folder: &Path, options: &str) -> (i32, String) {
    let at = |name: &str| folder.join(name).display().to_string();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let ledger = format!("--ledger {} --dataset rows", at("budget.ledger"));
    json(&format!("ledger init {ledger} --epsilon 10 --delta 1e-5"));
    let given = |name: &str| options.contains(name);
    let budget = if given("--trust local") { "--epsilon 1" } else { "--epsilon 1 --delta 1e-6" };
    let columns = if given("--target label") { "--columns a,b" } else { "--columns a,b --target y" };
    let ran = run(&format!(
        "train --private {} --public {} {columns} {budget} {ledger} --out {} --seed 1 --quiet {options}",
        at("private.csv"),
        at("public.csv"),
        at("model.json"),
    ));
    if ran.code != 0 {
        let shown = json(&format!("ledger show --ledger {}", at("budget.ledger")));
        let debits = shown["datasets"][0]["debits"].as_array().unwrap().len();
        // A checkpoint is no excuse: what public facts decide to fail fails again when it goes on.
        assert_eq!(debits, 0, "{options}: paid for {}", ran.stderr);
    }
    (ran.code, ran.stderr)
}

/// Settings that only the kernel refused, after the debit.
#[test]
fn what_the_kernel_refuses_is_refused_before_the_debit() {
    for unit in [1e100, 1e-300] {
        let folder = files(&format!("extremes-unit-{unit:e}"), unit);
        for algorithm in ["auto", "optimal-gain", "semi-dp-sgd", "dp-sgd", "pda-md"] {
            let (code, words) = check(&folder, &format!("--algorithm {algorithm}"));
            // Targets of linear models are brought to a scale of their own, as far as that is possible.
            assert!(code == 2 || code == 0, "{unit:e} {algorithm}: {words}");
        }
        for algorithm in ["auto", "semi-ldp-sgd", "ldp-sgd", "semi-ldp-gain"] {
            check(&folder, &format!("--trust local --algorithm {algorithm}"));
        }
    }
    let folder = files("extremes-options", 1.0);
    for options in [
        "--algorithm optimal-gain --loss huber:1e-300",
        "--algorithm semi-dp-sgd --clip-norm 1e20",
        "--algorithm semi-dp-sgd --clip-norm 1e-20",
        "--trust local --algorithm semi-ldp-sgd --l2 1e100 --domain box:-1:1",
        "--trust local --algorithm semi-ldp-sgd --learning-rate 1e200",
        "--algorithm semi-dp-sgd --learning-rate 1e300 --l2 1e100 --steps 20",
        "--algorithm semi-dp-sgd --l2 1e6 --steps 100 --learning-rate 10",
    ] {
        let (code, words) = check(&folder, options);
        assert_eq!(code, 2, "{options}: {words}");
        assert!(words.contains("hint: "), "{options}: {words}");
    }
}

/// Each option at its extremes, one at a time and in pairs with the algorithms that heed it.
#[test]
fn a_failed_run_spends_nothing() {
    let folder = files("extremes-loop", 1.0);
    let options = [
        "--clip-norm 1e-15",
        "--clip-norm 1e15",
        "--learning-rate 1e-300",
        "--learning-rate 1e300",
        "--l2 1e-300",
        "--l2 1e300",
        "--expected-batch 1e-300",
        "--expected-batch 1e300",
        "--sample-rate 1e-300",
        "--sample-rate 1",
        "--alpha 0",
        "--alpha 1",
        "--alpha per-step --clip-norm 1e15",
        "--alpha cosine:1",
        "--public-gradient raw --learning-rate 1e6",
        "--public-gradient rescale --clip-norm 1e15",
        "--public-batch 1",
        "--average weighted",
        "--domain ball:1e-300",
        "--domain ball:1e300",
        "--domain box:-1e300:1e300",
        "--domain box:-1e-300:1e-300",
        "--domain simplex:1e300",
        "--hessian-regularisation 1e300",
        "--hessian-regularisation 1e-300",
        "--warm-start none",
        "--warm-start minimum",
        "--no-intercept",
        "--loss huber:1e-300",
        "--loss huber:1e300",
        "--loss quantile:0.5",
        "--target label --loss hinge",
        "--target label --l2 1e300",
        "--sampling one-pass",
        "--sampling in-order --expected-batch 1",
        "--adjacency add-remove --sample-rate 0.1 --expected-batch 1e-300",
        "--adjacency add-remove --sample-rate 1e-9 --expected-batch 30",
    ];
    let central =
        ["optimal-gain", "semi-dp-sgd", "semi-dp-sgd-accelerated", "dp-sgd", "pda-md", "pda-first-order"];
    let local = ["semi-ldp-sgd", "ldp-sgd", "semi-ldp-gain"];
    let schedules = ["", "--schedule constant"];
    let is_sweep = std::env::var_os("SEMIDP_SWEEP").is_some();
    for (place, option) in options.into_iter().enumerate() {
        // Each option with two algorithms of either kind; all of them in a sweep.
        let is_chosen = |at: usize, of: usize| is_sweep || (at + place) % of < 2;
        for (at, algorithm) in central.iter().enumerate() {
            if is_chosen(at, central.len()) {
                check(&folder, &format!("{option} --algorithm {algorithm} --steps 12"));
            }
        }
        for (at, algorithm) in local.iter().enumerate() {
            if is_chosen(at, local.len()) {
                let schedule = schedules[(at + place) % 2];
                check(&folder, &format!("{option} --trust local --algorithm {algorithm} {schedule}"));
            }
        }
    }
}
