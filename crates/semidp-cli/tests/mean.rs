//! `semidp mean`: two files in, a mean with its certificate out; and every kind of bad input.

mod common;

use common::{Ran, check_refusal, entries, folder, json, number, refused, run};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Rows that are easy to check: x has mean 10 and std 2, y mean −5 and std 20, both spread evenly.
fn rows(count: usize) -> String {
    let mut text = "x,y,colour\n".to_string();
    for i in 0..count {
        // Every residue comes up equally often, in another order for each column.
        let at = |multiplier: usize| ((i * multiplier) % 101) as f64 / 50.0 - 1.0;
        let colour = if i % 4 == 0 { "red" } else { "blue" };
        let _ = writeln!(text, "{},{},{colour}", 10.0 + 3.43 * at(37), -5.0 + 34.3 * at(53));
    }
    text
}

/// A folder with a public and a private file.
fn files(name: &str) -> (PathBuf, String) {
    let folder = folder(name);
    std::fs::write(folder.join("public.csv"), rows(202)).unwrap();
    std::fs::write(folder.join("private.csv"), rows(20_200)).unwrap();
    let arguments = format!("mean --private {0}/private.csv --public {0}/public.csv", folder.display());
    (folder, arguments)
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs again where chance finds more clipped rows than expected, and there is no interval: in at most one of 70 releases.
fn run_given(arguments: &str) -> Ran {
    let mut ran = run(arguments);
    for _ in 0..5 {
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        if !answer["confidence_interval"][0].is_null() {
            break;
        }
        ran = run(arguments);
    }
    ran
}

fn given(arguments: &str) -> serde_json::Value {
    serde_json::from_str(&run_given(&format!("{arguments} --json")).stdout).unwrap()
}

fn within(value: &serde_json::Value, column: usize, truth: f64) {
    let interval = |end: usize| number(value, &format!("/confidence_interval/{column}/{end}"));
    // Twice the width on either side: a miss has probability below 1e-13.
    let (low, high) = (interval(0), interval(1));
    let middle = 0.5 * (low + high);
    assert!((middle - truth).abs() < 2.0 * (high - low), "{column}: {low} to {high}, truth {truth}");
    let mean = number(value, &format!("/mean/{column}"));
    assert!(low <= mean && mean <= high, "{column}: {low} to {high}, mean {mean}");
}

const TAIL: &str = "private rows beyond the radius are no more and no further out than the tail of the public rows lets expect";
const NONE_BEYOND: &str = "no private row lies further from the centre than the radius";

#[test]
fn two_files_give_a_mean_with_a_certificate() {
    let (folder, base) = files("mean_two_files");
    for budget in ["--epsilon 1 --delta 1e-6", "--rho 0.1", "--epsilon 1", "--epsilon 1 --idealised"] {
        let answer = given(&format!("{base} {budget}"));
        assert_eq!(answer["columns"], serde_json::json!(["x", "y"]));
        within(&answer, 0, 10.0);
        within(&answer, 1, -5.0);
        assert!(number(&answer, "/predicted_mse") < 1.0);
        assert_eq!((answer["n_private"].as_u64(), answer["n_public"].as_u64()), (Some(20_200), Some(202)));
        let certificate = &answer["certificate"];
        assert_eq!(certificate["random_source"], "operating-system");
        assert_eq!(certificate["guarantee"]["protects"], "private rows only");
        if budget.contains("epsilon") {
            assert!(number(&answer, "/certificate/guarantee/epsilon") <= 1.0);
        } else {
            assert!(number(&answer, "/certificate/guarantee/rho") <= 0.1);
        }
        // K-norm noise grows with the coordinates of the joint release, so that it is never the best one.
        assert_eq!(certificate["arithmetic"], "exact");
        assert!(answer["estimator"].as_str().unwrap().starts_with("shift-robust-"));
        assert!(number(&answer, "/accuracy_price") < 1.02 && number(&answer, "/noise_price") < 1.15 + 1e-9);
        assert_eq!(answer["predicted_mse_assumes"], "public and private rows come from the same population");
        assert_eq!(certificate["assumptions"], serde_json::json!([TAIL]));
        let file = write(&folder, "answer.json", &answer.to_string());
        assert_eq!(json(&format!("verify {file}"))["valid"], true);
    }
}

#[test]
fn every_estimator_by_name() {
    let (_, base) = files("mean_by_name");
    for (name, budget) in [
        ("throw-away", "--rho 0.1"),
        ("gaussian", "--rho 0.1"),
        ("weighted-gaussian", "--epsilon 1 --delta 1e-6"),
        ("laplace", "--epsilon 1"),
        ("weighted-laplace", "--epsilon 1"),
        ("k-norm", "--epsilon 1"),
        ("weighted-k-norm", "--epsilon 1"),
    ] {
        let answer = given(&format!("{base} --estimator {name} {budget}"));
        assert_eq!(answer["estimator"], name);
        within(&answer, 0, 10.0);
        within(&answer, 1, -5.0);
    }
    let thrown = json(&format!("{base} --estimator throw-away --rho 0.1"));
    assert_eq!(number(&thrown, "/certificate/guarantee/epsilon"), 0.0);
    refused(&format!("{base} --estimator median --rho 0.1"), &["median", "weighted-gaussian"]);
    refused(&format!("{base} --estimator gaussian --epsilon 1"), &["gaussian", "delta"]);
}

/// A plan with the same numbers predicts the same error, without any file.
#[test]
fn the_plan_and_the_release_agree() {
    let (_, base) = files("mean_agrees");
    let answer = json(&format!("{base} --radius 60 --std 20 --rho 0.1 --estimator weighted-gaussian"));
    let plan = json("plan mean --n-private 20200 --n-public 202 --dim 2 --radius 60 --std 20 --rho 0.1");
    let weighted =
        plan["estimators"].as_array().unwrap().iter().find(|one| one["name"] == "weighted-gaussian");
    let expected = number(weighted.unwrap(), "/mse");
    assert!((number(&answer, "/predicted_mse") / expected - 1.0).abs() < 1e-12);
}

#[test]
fn columns_of_text_become_shares() {
    let (_, base) = files("mean_shares");
    let answer = given(&format!("{base} --columns colour,x --epsilon 1 --delta 1e-6"));
    assert_eq!(answer["columns"], serde_json::json!(["colour=blue", "colour=red", "colour=other", "x"]));
    within(&answer, 0, 0.75);
    within(&answer, 1, 0.25);
    within(&answer, 3, 10.0);
}

#[test]
fn a_seed_is_reproducible_and_loud() {
    let (_, base) = files("mean_seed");
    let first = run(&format!("{base} --rho 0.1 --seed 7 --json"));
    assert!(first.stderr.contains("NOT private"), "{}", first.stderr);
    let again = run(&format!("{base} --rho 0.1 --seed 7 --json --threads 1"));
    assert_eq!(first.stdout, again.stdout);
    assert!(first.stdout.contains("\"seeded\""));
    assert_ne!(first.stdout, run(&format!("{base} --rho 0.1 --seed 8 --json")).stdout);
}

#[test]
fn outputs_are_whole_or_not_there() {
    let (folder, base) = files("mean_outputs");
    let before = entries(&folder);
    let answer = json(&format!(
        "{base} --rho 0.1 --out {0}/answer.json --certificate {0}/certificate.json",
        folder.display()
    ));
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    assert_eq!(read("answer.json"), answer);
    assert_eq!(read("certificate.json"), answer["certificate"]);
    assert_eq!(entries(&folder).len(), before.len() + 2);
    // What cannot be written is known before anything is read, and leaves nothing behind.
    refused(&format!("{base} --rho 0.1 --out {}/no/answer.json", folder.display()), &["--out"]);
    refused(&format!("{base} --rho 0.1 --certificate {}", folder.display()), &["--certificate"]);
    refused(
        &format!("{base} --epsilon 1 --estimator gaussian --out {}/x.json", folder.display()),
        &["gaussian"],
    );
    assert_eq!(entries(&folder).len(), before.len() + 2);
}

#[test]
fn bad_numbers_are_refused() {
    let (_, base) = files("mean_bad_numbers");
    for (options, words) in [
        ("--epsilon -1", &["epsilon"][..]),
        ("--epsilon 0", &["epsilon"]),
        ("--epsilon 1 --delta 1", &["delta"]),
        ("--epsilon 1 --delta -0.1", &["delta"]),
        ("--rho 0", &["rho"]),
        ("--rho 0.1 --epsilon 1", &["--rho"]),
        ("", &["--epsilon"]),
        ("--rho 0.1 --radius 0", &["radius"]),
        ("--rho 0.1 --radius -3", &["radius"]),
        ("--rho 0.1 --radius x", &["radius"]),
        ("--rho 0.1 --std 0", &["std"]),
        ("--rho 0.1 --radius 5 --std 6 --scale public", &["std"]),
        ("--rho 0.1 --confidence 1", &["confidence"]),
        ("--rho 0.1 --private-weight 0.5", &["private-weight"]),
        ("--rho 0.1 --adjacency add-remove", &["adjacency", "add-remove"]),
        ("--rho 0.1 --trust local", &["trust"]),
        ("--rho 0.1 --centre origin", &["radius"]),
        ("--rho 0.1 --threads 0", &["threads"]),
    ] {
        refused(&format!("{base} {options}"), words);
    }
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let (folder, base) = files("mean_bad_files");
    let (private, public) = (folder.join("private.csv"), folder.join("public.csv"));
    let (private, public) = (private.display(), public.display());
    refused("mean --rho 0.1", &["--private"]);
    refused(&format!("mean --private {private}.no --public {public} --rho 0.1"), &["private.csv.no"]);
    refused(&format!("mean --private {private} --public {public}.no --rho 0.1"), &["public.csv.no"]);
    let missing = folder.join("missing.csv");
    refused(&format!("mean --private {} --public {public} --rho 0.1", missing.display()), &["missing.csv"]);
    refused(&format!("mean --private {private} --public {} --rho 0.1", missing.display()), &["missing.csv"]);
    refused(&format!("{base} --rho 0.1 --columns x,z"), &["z"]);
    // Other columns: the error names those that are not there.
    let other = write(&folder, "other.csv", "x,w\n1,2\n");
    refused(&format!("mean --private {other} --public {public} --rho 0.1"), &["other.csv", "y"]);
    // Numbers and text in one public column.
    let mixed = write(&folder, "mixed.csv", "x,y\n1,2\nsecret,3\n");
    let ran = run(&format!("mean --private {private} --public {mixed} --rho 0.1"));
    check_refusal("mixed", &ran, &["column x", "numbers and text"]);
    assert!(!ran.stderr.contains("secret"));
    // Without public rows: schema and radius must be given.
    let header = write(&folder, "header.csv", "x,y\n");
    refused(&format!("mean --private {private} --public {header} --rho 0.1"), &["header.csv", "no rows"]);
    refused(&format!("mean --private {private} --rho 0.1"), &["--schema"]);
    // One public row: its mean is a centre, but a radius cannot be learned.
    let one = write(&folder, "one.csv", "x,y\n10,-5\n");
    refused(&format!("mean --private {private} --public {one} --rho 0.1"), &["radius", "1 public rows"]);
    let answer = given(&format!("mean --private {private} --public {one} --rho 0.1 --radius 60"));
    assert_eq!(number(&answer, "/std"), 60.0);
    // Its variance is not known, so that the private rows answer alone.
    assert!(answer["shift"][0].is_null());
    within(&answer, 0, 10.0);
    // Neither rows nor rows.
    let schema = write(&folder, "schema.json", "");
    let made = json(&format!("schema --public {public} --out {schema}"));
    assert_eq!(made["schema"]["columns"].as_array().unwrap().len(), 3);
    let other = write(&folder, "other_header.csv", "x,y\n");
    refused(
        &format!("mean --private {header} --public {other} --schema {schema} --radius 9 --rho 0.1"),
        &["row"],
    );
}

#[test]
fn rows_of_one_kind_only() {
    let (folder, base) = files("mean_one_kind");
    let schema = folder.join("schema.json");
    let made = run(&format!("schema --public {}/public.csv --out {}", folder.display(), schema.display()));
    assert_eq!(made.code, 0, "{}", made.stderr);
    // No public rows: plain differential privacy about the origin.
    let header = write(&folder, "header.csv", "x,y\n");
    for public in [String::new(), format!("--public {header}")] {
        let plain = json(&format!(
            "mean --private {}/private.csv {public} --schema {} --radius 60 --epsilon 1 --delta 1e-6",
            folder.display(),
            schema.display()
        ));
        assert_eq!(plain["n_public"], 0);
        assert!(
            (number(&plain, "/mean/0") - 10.0).abs() < 1.0 && (number(&plain, "/mean/1") + 5.0).abs() < 1.0
        );
        assert!(number(&plain, "/certificate/guarantee/epsilon") <= 1.0);
    }
    // No private rows: the public mean, at epsilon 0.
    let empty = write(&folder, "empty.csv", "x,y,colour\n");
    for private in [String::new(), format!("--private {empty}")] {
        let thrown = json(&format!(
            "mean {private} --public {}/public.csv --epsilon 1 --delta 1e-6",
            folder.display()
        ));
        assert_eq!(
            (thrown["estimator"].as_str(), thrown["n_private"].as_u64()),
            (Some("throw-away"), Some(0))
        );
        assert_eq!(number(&thrown, "/certificate/guarantee/epsilon"), 0.0);
        assert!((number(&thrown, "/mean/0") - 10.0).abs() < 1e-9);
        let file = write(&folder, "thrown.json", &thrown.to_string());
        assert_eq!(json(&format!("verify {file}"))["valid"], true);
    }
    assert!(json(&format!("{base} --rho 1"))["n_private"].as_u64() == Some(20_200));
}

/// Private cells that are no numbers are replaced without a word; a strict load stops, and says only which
/// column.
#[test]
fn loading_is_total_unless_strict() {
    let (folder, _) = files("mean_total");
    let mut text = rows(20_200);
    text.push_str("TOPSECRET,1e999,red\n,,\nnan,inf,green\n\"odd\n");
    let private = write(&folder, "odd.csv", &text);
    let base = format!("mean --private {private} --public {}/public.csv", folder.display());
    let ran = run(&format!("{base} --epsilon 1 --delta 1e-6"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("TOPSECRET") && !ran.stdout.contains("TOPSECRET"));
    let answer = given(&format!("{base} --epsilon 1 --delta 1e-6"));
    within(&answer, 0, 10.0);
    within(&answer, 1, -5.0);
    let strict = run(&format!("{base} --epsilon 1 --delta 1e-6 --strict"));
    check_refusal("strict", &strict, &["column x"]);
    assert!(!strict.stderr.contains("TOPSECRET") && !strict.stderr.contains("20201"));
    // A strict load that passes says on the certificate that it was not covered.
    let clean = format!("mean --private {0}/private.csv --public {0}/public.csv", folder.display());
    let answer = json(&format!("{clean} --rho 0.1 --strict"));
    assert!(answer["certificate"]["not_covered"][0].as_str().unwrap().contains("strict"));
    assert!(json(&format!("{clean} --rho 0.1"))["certificate"].get("not_covered").is_none());
}

/// Public cells that are missing are imputed by the column's mean; NaN cells are missing.
#[test]
fn missing_public_cells_are_imputed() {
    let (folder, _) = files("mean_missing");
    let mut public = rows(202);
    public.push_str("NaN,-5,red\n10,,blue\n");
    let public = write(&folder, "gaps.csv", &public);
    let answer =
        given(&format!("mean --private {}/private.csv --public {public} --rho 0.1", folder.display()));
    within(&answer, 0, 10.0);
    within(&answer, 1, -5.0);
}

#[test]
fn uncentred_is_the_form_of_the_paper() {
    let (_, base) = files("mean_uncentred");
    let answer = given(&format!("{base} --radius 60 --centre origin --rho 0.5"));
    within(&answer, 0, 10.0);
    within(&answer, 1, -5.0);
    let centre = |answer: &serde_json::Value| {
        let known = answer["certificate"]["hyperparameters"].as_array().unwrap().clone();
        known.into_iter().find(|one| one["name"] == "centre").unwrap()["value"].clone()
    };
    assert_eq!(centre(&answer), "origin");
    assert_eq!(centre(&json(&format!("{base} --rho 0.5"))), "public mean");
}

/// Every file has one part to play: an answer never overwrites rows, and rows are not both public and private.
#[test]
fn files_are_not_confused() {
    let (folder, base) = files("mean_confused");
    let private = folder.join("private.csv");
    let before = std::fs::read(&private).unwrap();
    for (options, words) in [
        (format!("--out {}", private.display()), &["--private", "--out"][..]),
        (format!("--certificate {}/./public.csv", folder.display()), &["--public", "--certificate"]),
        (format!("--out {0}/x.json --certificate {0}/x.json", folder.display()), &["--out", "--certificate"]),
    ] {
        refused(&format!("{base} --rho 0.1 {options}"), words);
    }
    let twice = format!("mean --private {0} --public {0} --rho 0.1", private.display());
    refused(&twice, &["--private", "--public"]);
    refused(&format!("schema --public {0} --out {0}", private.display()), &["--public", "--out"]);
    assert_eq!(std::fs::read(&private).unwrap(), before);
}

/// A column that does not vary in the public rows teaches no radius; given one, it has a mean but no interval.
#[test]
fn columns_that_do_not_vary() {
    let folder = folder("mean_constant");
    let public = write(&folder, "public.csv", &format!("x\n{}", "5\n".repeat(20)));
    let private = write(&folder, "private.csv", &format!("x\n{}", "7\n".repeat(5000)));
    let base = format!("mean --private {private} --public {public} --epsilon 1 --delta 1e-6");
    refused(&base, &["column x", "vary"]);
    let answer = given(&format!("{base} --radius 10"));
    assert!((number(&answer, "/mean/0") - 7.0).abs() < 0.5);
    // The private rows have an interval all the same, to which the public mean adds nothing.
    within(&answer, 0, 7.0);
}

/// In a file of one column a blank line is a missing cell, so that the number of rows does not depend on what
/// is missing.
#[test]
fn blank_lines_of_one_column_are_rows() {
    let folder = folder("mean_blank");
    let numbers: String = (0..40).map(|i| format!("{}\n", i % 7)).collect();
    let public = write(&folder, "public.csv", &format!("x\n{numbers}"));
    let private = write(&folder, "private.csv", "x\n1\n\n2\n\n3\n");
    let answer = json(&format!("mean --private {private} --public {public} --epsilon 1 --delta 1e-6"));
    assert_eq!(answer["n_private"], 5);
}

/// Negative numbers are printed as they are, in units that are named.
#[test]
fn the_table_shows_signs_and_units() {
    let (_, base) = files("mean_signs");
    let ran = run(&format!("{base} --epsilon 1 --delta 1e-6 --seed 3"));
    let row = ran.stdout.lines().find(|line| line.contains(" y ")).unwrap();
    let cell = row.split('\u{2506}').nth(1).unwrap().trim();
    assert!((cell.parse::<f64>().unwrap() + 5.0).abs() < 2.0, "{row}");
    assert!(row.matches('-').count() >= 3, "{row}");
    assert!(
        ran.stdout.contains("NOT private") && ran.stdout.contains("public standard deviations"),
        "{}",
        ran.stdout
    );
}

/// What the kernel would refuse is not planned: public rows answer alone.
#[test]
fn budgets_too_small_for_noise() {
    let (_, base) = files("mean_tiny");
    let answer = json(&format!("{base} --epsilon 1e-6"));
    assert_eq!(answer["estimator"], "throw-away");
    let plan = json("plan mean --n-private 5000 --n-public 200 --dim 2 --radius 3 --epsilon 1e-20");
    assert_eq!((plan["best"].as_str(), plan["auto"].as_str()), (Some("throw-away"), Some("throw-away")));
    let plan =
        json("plan mean --n-private 5000 --n-public 200 --dim 100000 --radius 3 --epsilon 1 --delta 1e-60");
    assert_eq!(plan["auto"], "weighted-laplace");
}

#[test]
fn the_table_for_people() {
    let (_, base) = files("mean_table");
    let ran = run(&format!("{base} --epsilon 1 --delta 1e-6"));
    assert!(
        ran.stdout.contains("95% interval") && ran.stdout.contains("Certificate: epsilon"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("columns of text are left out: colour"), "{}", ran.stderr);
    assert_eq!(run(&format!("{base} --epsilon 1 --delta 1e-6 --quiet")).stderr, "");
}

/// One column: 3,000 numbers with mean 10 and standard deviation 2, written by `cell`, and 200 public ones that are shifted.
fn shifted(name: &str, shift: f64, cell: impl Fn(usize, f64) -> String) -> (PathBuf, String) {
    let folder = folder(name);
    let number = |i: usize| 10.0 + 3.43 * (((i * 37) % 101) as f64 / 50.0 - 1.0);
    let column = |count: usize, cell: &dyn Fn(usize) -> String| {
        (0..count).map(cell).fold("x,code\n".to_string(), |text, cell| text + &cell + ",a\n")
    };
    std::fs::write(folder.join("public.csv"), column(202, &|i| format!("{}", number(i) + shift))).unwrap();
    std::fs::write(folder.join("private.csv"), column(3030, &|i| cell(i, number(i)))).unwrap();
    let arguments =
        format!("mean --private {0}/private.csv --public {0}/public.csv --columns x", folder.display());
    (folder, arguments)
}

fn holds(answer: &serde_json::Value, truth: f64) -> bool {
    let interval = |end: usize| number(answer, &format!("/confidence_interval/0/{end}"));
    interval(0) <= truth && truth <= interval(1)
}

/// What intervals take for granted about clipping stands in the answer, not on a terminal alone.
#[test]
fn intervals_say_what_they_take_for_granted() {
    let (folder, arguments) = files("mean-granted");
    for (named, same) in [
        ("", false),
        ("--target empirical", false),
        ("--assume same-population", true),
        ("--estimator weighted-laplace", true),
        ("--estimator laplace", true),
    ] {
        for (radius, assumed, word) in
            [("", TAIL, "heavier"), ("--radius 10", NONE_BEYOND, "no private row lies further")]
        {
            let answer = json(&format!("{arguments} --columns x --epsilon 1 {radius} {named} --quiet"));
            let note = answer["confidence_interval_note"].as_str().unwrap();
            assert!(
                note.contains(word) || note.contains("whose law is not assumed"),
                "{named} {radius}: {note}"
            );
            let assumptions = answer["assumptions"].as_array().unwrap();
            assert!(assumptions.contains(&assumed.into()), "{named} {radius}: {assumptions:?}");
            assert_eq!(
                assumptions.contains(&"public and private rows come from the same population".into()),
                same
            );
            assert_eq!(answer["assumptions"], answer["certificate"]["assumptions"]);
            let file = write(&folder, "granted.json", &answer.to_string());
            assert_eq!(json(&format!("verify {file}"))["valid"], true);
        }
    }
    let thrown = json(&format!("{arguments} --columns x --epsilon 1 --estimator throw-away --quiet"));
    assert!(thrown["confidence_interval_note"].as_str().unwrap().contains("rare values"), "{thrown}");
}

/// Twenty public rows of integer codes cannot show a code of one row in a hundred: the answer says so, whichever estimator gives it.
#[test]
fn few_public_rows_say_what_they_cannot_show() {
    let folder = folder("mean_few_public");
    let column = |count: usize, rare: usize| {
        (0..count).fold("x\n".to_string(), |text, i| {
            text + if i % 100 == rare { "99" } else { ["1", "2", "3", "4", "9"][i % 5] } + "\n"
        })
    };
    let public = write(&folder, "public.csv", &column(20, 77));
    let private = write(&folder, "private.csv", &column(2000, 77));
    for named in ["", "--target empirical", "--estimator weighted-gaussian"] {
        let ran = run(&format!(
            "mean --private {private} --public {public} --epsilon 1 --delta 1e-6 --json {named}"
        ));
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let notes = answer["notes"].to_string();
        assert!(
            answer["confidence_interval"][0].is_null() || notes.contains("learned from 20 public rows"),
            "{named}: {notes}"
        );
        assert!(
            answer["confidence_interval"][0].is_null() || ran.stderr.contains("at any distance"),
            "{}",
            ran.stderr
        );
        assert!(
            answer["confidence_interval_note"].as_str().unwrap().contains("20 public rows cannot exclude")
        );
    }
}

/// Public rows ten standard errors off: the default answer stays with the private rows and says so. Pooled, and two standard deviations off, the
/// mean is pulled towards the public one; its assumption stands in the answer and on the certificate, and the shift is reported there too.
#[test]
fn shifted_public_rows_do_not_mislead() {
    let (_, less) = shifted("mean_shifted_less", 1.4, |_, x| x.to_string());
    let (folder, base) = shifted("mean_shifted", 4.0, |_, x| x.to_string());
    for budget in ["--epsilon 1 --delta 1e-6", "--epsilon 1", "--rho 0.1"] {
        let ran = run_given(&format!("{less} {budget} --json"));
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        within(&answer, 0, 10.0);
        assert_eq!(answer["shift"][0]["significant"], true);
        let error = number(&answer, "/shift/0/standard_error");
        assert!((number(&answer, "/shift/0/estimate") - 1.4).abs() < 8.0 * error && error < 0.4);
        assert!(ran.stderr.contains("differ by more than chance in x"), "{}", ran.stderr);
        assert!(answer["estimand"].as_str().unwrap().contains("population of the private rows"));
        let pooled = format!("{base} {budget} --assume same-population");
        let answer = json(&pooled);
        let certificate = &answer["certificate"];
        assert_eq!(certificate["assumptions"][0], "public and private rows come from the same population");
        assert_eq!(certificate["assumptions"], answer["assumptions"]);
        assert!(answer["estimator"].as_str().unwrap().starts_with("pooled-"));
        assert_eq!(answer["shift"][0]["significant"], true);
        let pull = number(&answer, "/mean/0") - number(&answer, "/private_mean/0");
        assert!(pull > 0.05, "{answer}");
        assert!(run(&pooled).stderr.contains("means and intervals are wrong there"));
        let file = write(&folder, "pooled.json", &answer.to_string());
        assert_eq!(json(&format!("verify {file}"))["valid"], true);
    }
    // An estimator of the paper by name: its algebra, its assumption, and the same report of the shift.
    let answer = json(&format!("{base} --rho 0.1 --estimator weighted-gaussian"));
    assert_eq!(
        answer["certificate"]["assumptions"][0],
        "public and private rows come from the same population"
    );
    assert_eq!((&answer["shift"][0]["significant"], holds(&answer, 10.0)), (&true.into(), false));
    assert!(number(&answer, "/private_weight") > 0.0);
    // Rows that are not shifted raise no alarm but by chance; at a tiny significance never here.
    let (_, base) = shifted("mean_not_shifted", 0.0, |_, x| x.to_string());
    let answer = json(&format!("{base} --rho 0.1"));
    let [estimate, error] =
        ["estimate", "standard_error"].map(|name| number(&answer, &format!("/shift/0/{name}")));
    assert!(estimate.abs() < 8.0 * error);
}

/// Numbers written with a unit are unreadable: they are counted, and the mean is that of the others; where all of them are, there is no
/// interval, and a sentence says so.
#[test]
fn unreadable_private_cells_are_counted() {
    // Every other number above 10 has a unit: readable ones have a mean below 10.
    let is_read = |i: usize, x: f64| x < 10.0 || i.is_multiple_of(2);
    let write_cell = |i: usize, x: f64| if is_read(i, x) { x.to_string() } else { format!("{x} years") };
    let numbers = |i: usize| 10.0 + 3.43 * (((i * 37) % 101) as f64 / 50.0 - 1.0);
    let read: Vec<f64> = (0..3030).filter(|i| is_read(*i, numbers(*i))).map(numbers).collect();
    let truth = read.iter().sum::<f64>() / read.len() as f64;
    assert!(truth < 9.5);
    let (_, base) = shifted("mean_unreadable", 0.0, write_cell);
    for budget in ["--epsilon 1 --delta 1e-6", "--epsilon 1", "--rho 0.1"] {
        let ran = run_given(&format!("{base} {budget} --json"));
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        within(&answer, 0, truth);
        let cells = |name: &str| number(&answer, &format!("/unreadable_cells/0/{name}"));
        let missing = (3030 - read.len()) as f64;
        assert!((cells("estimate") - missing).abs() < 30.0 * cells("standard_error"));
        assert!(cells("standard_error") < 20.0);
        assert_eq!(answer["unreadable_cells"][0]["significant"], true);
        assert!(ran.stderr.contains("private cells of column x are missing or no numbers"), "{}", ran.stderr);
    }
    let (_, base) = shifted("mean_all_unreadable", 0.0, |_, x| format!("{x} years"));
    let ran = run(&format!("{base} --epsilon 1 --delta 1e-6 --json"));
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(answer["confidence_interval"][0].is_null() && answer["private_mean"][0].is_null());
    assert!(answer["status"][0].as_str().unwrap().starts_with("unreadable"), "{answer}");
    assert!(ran.stderr.contains("column x: no interval"), "{}", ran.stderr);
}

/// Private rows beyond the radius are counted, and said to be more than the public rows let expect.
#[test]
fn clipped_private_rows_are_counted() {
    let (_, base) =
        shifted("mean_clipped", 0.0, |i, x| if i % 4 == 0 { "1000".into() } else { x.to_string() });
    let ran = run(&format!("{base} --epsilon 1 --delta 1e-6 --json"));
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let clipped = |name: &str| number(&answer, &format!("/clipped_rows/{name}"));
    assert!(
        (clipped("estimate") - 758.0).abs() < 8.0 * clipped("standard_error"),
        "{}",
        answer["clipped_rows"]
    );
    assert_eq!(answer["clipped_rows"]["significant"], true);
    assert!(ran.stderr.contains("lie further from the centre than the radius"), "{}", ran.stderr);
    assert!(answer["confidence_interval"][0].is_null());
    assert!(answer["status"][0].as_str().unwrap().contains("--radius"), "{}", answer["status"]);
    // The note and `significant` are one test, and an estimate is no more rows than there are.
    for (epsilon, seed) in (0..12).map(|i| (["0.02", "0.2", "1"][i % 3], i)) {
        let answer = json(&format!("{base} --epsilon {epsilon} --delta 1e-6 --seed {seed}"));
        let notes = answer["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str());
        let about: Vec<&str> = notes.filter(|note| note.contains("lie further from the centre")).collect();
        assert_eq!(answer["clipped_rows"]["significant"].as_bool(), Some(about.len() == 1), "{answer}");
        for note in about {
            let rows: f64 = note.split(' ').nth(1).unwrap().parse().unwrap();
            assert!((0.0..=3030.0).contains(&rows), "{note}");
        }
    }
}

/// Where most private rows are clipped nothing is known of what was cut off, and no interval pretends to.
#[test]
fn rows_that_are_mostly_clipped_have_no_interval() {
    let (_, base) = shifted("mean_mostly_clipped", 40.0, |_, x| x.to_string());
    let ran = run(&format!("{base} --epsilon 1 --delta 1e-6 --json"));
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        answer["confidence_interval"].is_null() || answer["confidence_interval"][0].is_null(),
        "{}",
        ran.stdout
    );
    assert!(answer["status"][0].as_str().unwrap().contains("beyond the radius"), "{}", answer["status"]);
    assert!(ran.stderr.contains("no interval"), "{}", ran.stderr);
}

/// Columns that are left out are named in the answer, and in a warning.
#[test]
fn dropped_columns_are_named() {
    let (_, base) = files("mean_dropped");
    let ran = run(&format!("{base} --rho 0.1 --json"));
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let note = answer["notes"][0].as_str().unwrap();
    assert!(note.contains("left out: colour"), "{note}");
    assert!(ran.stderr.contains("warning: columns of text are left out: colour"), "{}", ran.stderr);
}
