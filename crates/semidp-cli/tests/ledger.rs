//! `semidp ledger`, and runs that debit one: in one process after another, and in many at once.

mod common;

use common::{Ran, SEMIDP, check_refusal, entries, folder, json, number, refused, run};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const BUDGET: &str = "--epsilon 1 --delta 1e-6";

/// A folder with a public and a private file, and the start of a command line that asks for their mean.
fn files(name: &str) -> (PathBuf, String) {
    let folder = folder(name);
    let rows = |count: usize| {
        let rows = (0..count).map(|i| format!("{},{}\n", (i * 37) % 101, (i * 53) % 101));
        format!("x,y\n{}", rows.collect::<String>())
    };
    std::fs::write(folder.join("public.csv"), rows(202)).unwrap();
    std::fs::write(folder.join("private.csv"), rows(2020)).unwrap();
    let mean = format!("mean --private {0}/private.csv --public {0}/public.csv", folder.display());
    (folder, mean)
}

/// The options that name the ledger in this folder and its data set.
fn options(folder: &Path) -> String {
    format!("--ledger {}/budget.ledger --dataset rows", folder.display())
}

fn show(folder: &Path) -> serde_json::Value {
    json(&format!("ledger show --ledger {}/budget.ledger", folder.display()))
}

fn debits(folder: &Path) -> usize {
    show(folder)["datasets"][0]["debits"].as_array().unwrap().len()
}

fn check_budget_refusal(ran: &Ran, words: &[&str]) {
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{}", ran.stderr);
    for word in words {
        assert!(lines[0].starts_with("error: ") && lines[0].contains(word), "{word}: {}", lines[0]);
    }
}

#[test]
fn runs_spend_until_the_budget_refuses() {
    let (folder, mean) = files("ledger_spend");
    let ledger = options(&folder);
    let set = json(&format!("ledger init {ledger} {BUDGET}"));
    assert_eq!(set["budget"], serde_json::json!({ "epsilon": 1.0, "delta": 1e-6 }));
    assert_eq!((set["dataset"].as_str(), set["adjacency"].as_str()), (Some("rows"), Some("replace-one")));

    // Gaussian noise, of which it is known what is left.
    let mean = format!("{mean} --estimator weighted-gaussian");
    let first = json(&format!("{mean} {ledger} --epsilon 0.5 --delta 1e-6"));
    let shown = show(&folder);
    let account = &shown["datasets"][0];
    assert_eq!(account["debits"].as_array().unwrap().len(), 1);
    let debit = &account["debits"][0];
    assert_eq!(debit["events"], first["certificate"]["events"]);
    assert_eq!(debit["epsilon"], first["epsilon"]);
    assert_eq!(debit["description"], format!("mean: {}", first["estimator"].as_str().unwrap()));
    assert_eq!(number(debit, "/sequence"), 2.0);
    assert_eq!(debit["run"].as_str().unwrap().len(), 32);
    assert!((number(account, "/spent/epsilon") - 0.5).abs() < 1e-6);

    // What is stated as left is granted, to the last digit; nothing more is, and that leaves no file behind.
    let left = number(account, "/remaining/epsilon");
    assert!(left > 0.5 && left < 1.0, "{left}");
    let out = format!("--out {0}/out.json --certificate {0}/certificate.json", folder.display());
    let before = entries(&folder);
    let ran = run(&format!("{mean} {ledger} {out} --epsilon {} --delta 1e-6", left * 1.01));
    check_budget_refusal(&ran, &["`rows`", "a budget of epsilon 1 at delta", "recorded before"]);
    assert_eq!(entries(&folder), before);
    assert_eq!(debits(&folder), 1);
    json(&format!("{mean} {ledger} {out} --epsilon {left} --delta 1e-6"));
    assert_eq!(debits(&folder), 2);
    assert!(entries(&folder).contains(&"out.json".to_string()));
    let ran = run(&format!("{mean} {ledger} --epsilon 0.1 --delta 1e-6"));
    check_budget_refusal(&ran, &["this run and the 2 recorded before"]);

    let human = run(&format!("ledger show {ledger}"));
    assert_eq!((human.code, human.stderr.as_str()), (0, ""));
    for word in ["rows (replace-one adjacency)", "epsilon 1 at delta 1e-6", "by 2 runs together", "mean: "] {
        assert!(human.stdout.contains(word), "{word}: {}", human.stdout);
    }
}

#[test]
fn the_whole_budget_fits_in_every_currency() {
    for (name, budget) in [("both", BUDGET), ("rho", "--rho 0.1"), ("pure", "--epsilon 1")] {
        let (folder, mean) = files(&format!("ledger_whole_{name}"));
        let ledger = options(&folder);
        json(&format!("ledger init {ledger} {budget}"));
        let estimator = if name == "pure" { "weighted-laplace" } else { "weighted-gaussian" };
        let mean = format!("{mean} --estimator {estimator}");
        let answer = json(&format!("{mean} {ledger} {budget}"));
        let shown = show(&folder);
        let account = &shown["datasets"][0];
        assert_eq!(account["budget"], answer["budget"]);
        let currency = if name == "rho" { "rho" } else { "epsilon" };
        let spent = number(account, &format!("/spent/{currency}"));
        assert!((spent / number(&answer, &format!("/{currency}")) - 1.0).abs() < 1e-12, "{spent}");
        assert!(number(account, &format!("/remaining/{currency}")) < 0.02);
        check_budget_refusal(&run(&format!("{mean} {ledger} {budget}")), &["`rows`"]);
    }
}

#[test]
fn two_pure_halves_fill_a_budget_at_delta() {
    let (folder, mean) = files("ledger_halves");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} {BUDGET}"));
    let half = format!("{mean} {ledger} --estimator weighted-laplace --epsilon 0.5 --delta 1e-6");
    json(&half);
    json(&half);
    check_budget_refusal(&run(&half), &["this run and the 2 recorded before"]);
}

#[test]
fn budgets_in_one_currency_refuse_what_has_no_price_in_it() {
    let (folder, mean) = files("ledger_currencies");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} --epsilon 5"));
    let ran = run(&format!("{mean} {ledger} --rho 0.001"));
    check_budget_refusal(&ran, &["a budget of pure epsilon 5", "gaussian"]);
    assert_eq!(debits(&folder), 0);
}

#[test]
fn what_reads_no_private_row_is_free() {
    let (folder, mean) = files("ledger_free");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} {BUDGET}"));
    json(&format!("{mean} {ledger} {BUDGET} --estimator throw-away"));
    json(&format!("mean --public {}/public.csv {ledger} {BUDGET}", folder.display()));
    assert_eq!(debits(&folder), 0);
}

#[test]
fn another_adjacency_is_refused() {
    let (folder, mean) = files("ledger_adjacency");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} {BUDGET} --adjacency add-remove"));
    let ran = run(&format!("{mean} {ledger} --epsilon 0.1 --delta 1e-6"));
    check_budget_refusal(&ran, &["is for add-remove adjacency, this run is for replace-one"]);
}

#[test]
fn bad_usage_is_explained() {
    let (folder, mean) = files("ledger_usage");
    let ledger = options(&folder);
    let at = folder.display();
    refused(&format!("{mean} {ledger} {BUDGET}"), &["cannot use the ledger", "budget.ledger"]);
    refused(&format!("ledger show --ledger {at}/budget.ledger"), &["cannot use the ledger"]);
    refused(&format!("ledger init {ledger}"), &["--epsilon must be given"]);
    refused(&format!("ledger init --ledger {at}/budget.ledger {BUDGET}"), &["--dataset"]);
    refused(&format!("ledger init {ledger} --epsilon 0 --delta 1e-6"), &["epsilon must be"]);
    refused(
        &format!("ledger init --ledger {at}/no/folder --dataset rows {BUDGET}"),
        &["cannot use the ledger"],
    );
    refused("ledger", &[]);
    assert_eq!(entries(&folder), ["private.csv", "public.csv"]);

    json(&format!("ledger init {ledger} {BUDGET}"));
    refused(
        &format!("ledger init {ledger} --epsilon 9 --delta 1e-6"),
        &["a budget for the data set `rows` already"],
    );
    let unknown = format!("{mean} --ledger {at}/budget.ledger --dataset row {BUDGET}");
    refused(&unknown, &["has no data set `row`"]);
    assert!(run(&unknown).stderr.contains("semidp ledger init"));
    refused(&format!("ledger show --ledger {at}/budget.ledger --dataset row"), &["`row`"]);
    refused(
        &format!("{mean} --ledger {at}/budget.ledger {BUDGET}"),
        &["--dataset must be given with --ledger"],
    );
    refused(&format!("{mean} --dataset rows {BUDGET}"), &["--ledger must be given with --dataset"]);
    refused(
        &format!("{mean} {BUDGET} --ledger {at}/public.csv --dataset rows"),
        &["--public and --ledger must be different files"],
    );
    std::fs::copy(folder.join("public.csv"), folder.join("copy.csv")).unwrap();
    refused(&format!("{mean} {BUDGET} --ledger {at}/copy.csv --dataset rows"), &["is not a ledger"]);
    refused(&format!("ledger init --ledger {at}/copy.csv --dataset rows {BUDGET}"), &["is not a ledger"]);
    let same =
        std::fs::read(folder.join("copy.csv")).unwrap() == std::fs::read(folder.join("public.csv")).unwrap();
    assert!(same);
    // A run that writes over the ledger would erase what was spent.
    refused(&format!("{mean} {ledger} {BUDGET} --out {at}/budget.ledger"), &["must be different files"]);
    assert_eq!(debits(&folder), 0);
}

#[test]
fn an_edited_ledger_grants_nothing() {
    let (folder, mean) = files("ledger_edited");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} {BUDGET}"));
    json(&format!("{mean} {ledger} --epsilon 0.5 --delta 1e-6"));
    let database = rusqlite::Connection::open(folder.join("budget.ledger")).unwrap();
    database.execute("DELETE FROM debits", ()).unwrap();
    drop(database);
    for arguments in [
        format!("{mean} {ledger} --epsilon 0.1 --delta 1e-6"),
        format!("ledger show {ledger}"),
        format!("ledger init --ledger {}/budget.ledger --dataset more {BUDGET}", folder.display()),
    ] {
        check_refusal(&arguments, &run(&arguments), &["was changed by something other than semidp"]);
    }
}

fn start(arguments: &str) -> Child {
    Command::new(SEMIDP)
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

#[test]
fn processes_that_run_at_once_never_overspend() {
    // Three runs of rho 0.1 fit into 0.3; three of epsilon 0.5 compose to 0.90 at delta 1e-6, four to 1.05.
    let cases = [
        ("rho", "--rho 0.3", "--rho 0.1"),
        ("both", BUDGET, "--epsilon 0.5 --delta 1e-6 --estimator weighted-gaussian"),
    ];
    for (name, budget, each) in cases {
        let (folder, mean) = files(&format!("ledger_at_once_{name}"));
        let ledger = options(&folder);
        json(&format!("ledger init {ledger} {budget}"));
        let children: Vec<Child> = (0..8).map(|_| start(&format!("{mean} {ledger} {each}"))).collect();
        let ran: Vec<Ran> = children.into_iter().map(finish).collect();
        let granted = ran.iter().filter(|ran| ran.code == 0).count();
        assert_eq!(granted, 3, "{:?}", ran.iter().map(|ran| &*ran.stderr).collect::<Vec<_>>());
        ran.iter()
            .filter(|ran| ran.code != 0)
            .for_each(|ran| check_budget_refusal(ran, &["3 recorded before"]));
        assert_eq!(debits(&folder), 3);
        let shown = show(&folder);
        let account = &shown["datasets"][0];
        let currency = if name == "rho" { "rho" } else { "epsilon" };
        let (spent, budget) = (format!("/spent/{currency}"), format!("/budget/{currency}"));
        assert!(number(account, &spent) <= number(account, &budget) * (1.0 + 1e-12));
    }
}

#[test]
fn processes_that_make_one_ledger_at_once_all_find_their_budget() {
    let (folder, _) = files("ledger_made_at_once");
    let init = |dataset: usize| {
        start(&format!(
            "ledger init --ledger {}/budget.ledger --dataset rows-{dataset} {BUDGET}",
            folder.display()
        ))
    };
    // Four data sets, each by two processes: one sets the budget, the other hears that it is set.
    let children: Vec<Child> = (0..8).map(|i| init(i / 2)).collect();
    let codes: Vec<i32> = children.into_iter().map(|child| finish(child).code).collect();
    for pair in codes.chunks(2) {
        assert_eq!((pair.iter().min(), pair.iter().max()), (Some(&0), Some(&2)), "{codes:?}");
    }
    assert_eq!(show(&folder)["datasets"].as_array().unwrap().len(), 4);
    assert_eq!(entries(&folder), ["budget.ledger", "private.csv", "public.csv"]);
}

#[test]
fn declared_runs_draw_on_their_plan() {
    let (folder, mean) = files("ledger_plan");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} {BUDGET}"));
    // The noise that a release will have, from its calibration.
    let calibrated = json("calibrate --epsilon 0.3 --delta 0.999e-6 --steps 1");
    let noise = number(&calibrated, "/noise_multiplier");
    let event = format!(r#"{{"event": "gaussian", "noise_multiplier": {noise}}}"#);
    let events = folder.join("runs.json");
    std::fs::write(&events, format!("[{event}, [{event}], {event}]")).unwrap();
    let plan = format!("ledger plan {ledger} --events {}", events.display());
    let declared = json(&plan);
    assert_eq!(declared["plan"]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(declared["plan"]["rule"], "filter");
    let spent = number(&declared, "/spent/epsilon");
    // Composed, not added.
    assert!(spent > 0.3 && spent < 0.6, "{spent}");
    let mean = format!("{mean} --estimator weighted-gaussian");
    for _ in 0..3 {
        json(&format!("{mean} {ledger} --epsilon 0.29 --delta 1e-6"));
    }
    let shown = show(&folder);
    let account = &shown["datasets"][0];
    assert_eq!(number(account, "/spent/epsilon"), spent);
    let debits = account["debits"].as_array().unwrap();
    assert!(debits.iter().all(|debit| debit["rule"] == "plan" && debit["plan"] == 2));
    assert!(account["plans"][0]["runs"].as_array().unwrap().iter().all(|run| run["run"].is_string()));
    json(&format!("{mean} {ledger} --epsilon 0.29 --delta 1e-6"));
    let shown = show(&folder);
    assert_eq!(shown["datasets"][0]["debits"][3]["rule"], "filter");
    let human = run(&format!("ledger show {ledger}"));
    for word in ["plan 2", "0 of 3 runs", "a Gaussian privacy filter", "of mu squared"] {
        assert!(human.stdout.contains(word), "{word}: {}", human.stdout);
    }
    // Bad lists, and more than there is.
    for (text, words) in [
        ("{}", "not a JSON list"),
        ("[]", "the list is empty"),
        ("[[]]", "without events"),
        ("[7]", "event 0"),
    ] {
        std::fs::write(&events, text).unwrap();
        refused(&plan, &["--events", words]);
    }
    std::fs::write(&events, r#"[{"event": "gaussian", "noise_multiplier": 5}]"#).unwrap();
    check_budget_refusal(&run(&plan), &["this plan and the 2 recorded before", "left for one more release"]);
}

#[test]
fn one_file_under_two_names_is_warned_of() {
    let (folder, mean) = files("ledger_paths");
    let ledger = options(&folder);
    json(&format!("ledger init {ledger} {BUDGET}"));
    let other = ledger.replace("--dataset rows", "--dataset others");
    json(&format!("ledger init {other} {BUDGET}"));
    let spend = "--epsilon 0.1 --delta 1e-6 --estimator weighted-gaussian";
    assert!(!run(&format!("{mean} {ledger} {spend}")).stderr.contains("data set"));
    let ran = run(&format!("{mean} {other} {spend}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("was also read as data set `rows`"));
    std::fs::copy(folder.join("private.csv"), folder.join("second.csv")).unwrap();
    let ran = run(&format!("{} {ledger} {spend}", mean.replace("private.csv", "second.csv")));
    assert!(ran.stderr.contains("earlier runs of data set `rows` read "), "{}", ran.stderr);
    assert_eq!(debits(&folder), 2);
}

/// A plan that was paid for and not printed: the message says so, and the same command finds it at no cost.
#[cfg(unix)]
#[test]
fn a_plan_is_paid_for_once() {
    let (folder, _) = files("ledger_plan_once");
    let ledger = options(&folder);
    assert_eq!(run(&format!("ledger init {ledger} --rho 1 --delta 1e-6")).code, 0);
    let events = folder.join("runs.json");
    std::fs::write(&events, r#"[{"event": "gaussian", "noise_multiplier": 30}]"#).unwrap();
    let plan = format!("ledger plan {ledger} --events {}", events.display());
    let plans = || show(&folder)["datasets"][0]["plans"].as_array().unwrap().len();
    for to in ["/dev/full", "/dev/full"] {
        let out = std::fs::OpenOptions::new().write(true).open(to).unwrap();
        let ran: Ran =
            Command::new(SEMIDP).args(plan.split_whitespace()).stdout(out).output().unwrap().into();
        assert_eq!((ran.code, plans()), (1, 1), "{}", ran.stderr);
        assert!(ran.stderr.contains("the plan is recorded and paid"), "{}", ran.stderr);
        assert!(ran.stderr.contains("pays nothing more"), "{}", ran.stderr);
    }
    let found = json(&plan);
    assert_eq!((&found["repeated"], plans()), (&serde_json::json!(true), 1));
    assert!(run(&plan).stdout.contains("paid before"));
    // Another description is another plan, and so is one that is asked for once more.
    assert_eq!(json(&format!("{plan} --description other")).get("repeated"), None);
    assert_eq!(plans(), 2);
    assert_eq!(json(&format!("{plan} --again")).get("repeated"), None);
    assert_eq!(plans(), 3);
}

#[test]
fn every_form_of_help_has_an_example() {
    for command in ["ledger", "ledger init", "ledger plan", "ledger show", "mean"] {
        let help = run(&format!("{command} --help")).stdout;
        assert!(help.contains("EXAMPLE\n  semidp ") && help.contains("--ledger"), "{command}: {help}");
    }
}
