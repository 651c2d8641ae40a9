//! Files as people find them: broken lines, one file in two parts, outputs over other files, reports that are none.

mod common;

use common::people::{aggregate, read, with_people, write};
use common::{folder, json, number, refused, run};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

fn rows(from: usize, count: usize) -> String {
    let mut text = "age,hours,note\n".to_string();
    for i in from..from + count {
        let _ = writeln!(text, "{},{},n", 20 + i % 50, 30 + i % 20);
    }
    text
}

#[test]
fn a_stray_quote_erases_no_private_row() {
    let folder = folder("readers_stray");
    let public = write(&folder, "public.csv", rows(7, 200));
    let stray = rows(0, 3000).lines().enumerate().fold(String::new(), |mut text, (i, line)| {
        let _ = writeln!(text, "{}{line}", if i == 1501 { "\"" } else { "" });
        text
    });
    let private = write(&folder, "private.csv", stray);
    let base =
        format!("mean --private {private} --public {public} --columns age,hours --epsilon 1 --delta 1e-6");
    let answer = json(&base);
    assert_eq!(answer["n_private"], 3000);
    let about_quotes = |answer: &serde_json::Value| {
        let all = answer["certificate"]["assumptions"].as_array().unwrap().clone();
        all.into_iter().find(|one| one.as_str().unwrap().starts_with("a quoted field may span lines"))
    };
    assert_eq!(about_quotes(&answer), None);
    // Whoever vouches for the quotes gets what they say, and the certificate says so.
    let vouched = json(&format!("{base} --multiline"));
    assert_eq!(vouched["n_private"], 1501);
    assert!(about_quotes(&vouched).is_some(), "{vouched}");
    let certificate = write(&folder, "certificate.json", vouched["certificate"].to_string());
    assert_eq!(json(&format!("verify {certificate}"))["valid"], true);
}

#[test]
fn public_rows_with_open_quotes_are_noted_and_private_ones_are_not() {
    let folder = folder("readers_noted");
    let broken = |text: &str| text.replacen("\n27,", "\n\"27,", 1);
    let base = |public: &str, private: &str| {
        format!(
            "mean --private {private} --public {public} --columns age,hours --epsilon 1 --delta 1e-6 --seed 1"
        )
    };
    let (good, bad) = (rows(0, 300), broken(&rows(0, 300)));
    assert_ne!(good, bad);
    let (good, bad) = (write(&folder, "good.csv", good), write(&folder, "bad.csv", bad));
    let ran = run(&base(&bad, &good));
    assert!(ran.stderr.contains("1 rows of the public file open a quote"), "{}", ran.stderr);
    let (one, other) =
        (run(&base(&good, &bad)), run(&base(&good, &write(&folder, "copy.csv", rows(0, 300)))));
    assert_eq!((one.code, &one.stderr), (0, &other.stderr));
}

#[test]
fn multiline_training_says_so_on_its_certificate() {
    let folder = folder("readers_train");
    let rows = |count: usize| {
        (0..count).fold("x,y\n".to_string(), |mut text, i| {
            let _ = writeln!(text, "{},{}", i % 11, i % 7);
            text
        })
    };
    let (public, private) = (write(&folder, "q.csv", rows(60)), write(&folder, "p.csv", rows(200)));
    let base = format!(
        "train --private {private} --public {public} --target y --epsilon 1 --delta 1e-6 --steps 2 --seed 1 --out {}/m.json",
        folder.display()
    );
    assert!(
        json(&base)["certificate"].get("assumptions").is_none_or(|all| all.as_array().unwrap().is_empty())
    );
    let answer = json(&format!("{base} --multiline"));
    assert!(answer["certificate"]["assumptions"][0].as_str().unwrap().starts_with("a quoted field may span"));
    let data = write(&folder, "d.csv", "x,y\n1,\"2\"\n");
    for more in ["", " --multiline"] {
        assert_eq!(
            json(&format!("evaluate --model {}/m.json --data {data}{more}", folder.display()))["rows"],
            1
        );
    }
}

/// By whatever name a file is given twice. Copies are not looked for: that would compare contents.
#[cfg(unix)]
#[test]
fn one_file_is_not_public_and_private() {
    let folder = folder("readers_same");
    let at = |name: &str| folder.join(name).display().to_string();
    let data = write(&folder, "data.csv", rows(0, 100));
    std::fs::hard_link(&data, at("hard.csv")).unwrap();
    std::os::unix::fs::symlink(&data, at("soft.csv")).unwrap();
    std::os::unix::fs::symlink(at("soft.csv"), at("softer.csv")).unwrap();
    std::fs::create_dir(at("sub")).unwrap();
    let others = [data.clone(), at("hard.csv"), at("soft.csv"), at("softer.csv"), at("sub/../data.csv")];
    for other in &others {
        let words = ["--private", "--public", "different files"];
        refused(&format!("mean --private {data} --public {other} --epsilon 1 --delta 1e-6"), &words);
        let train = format!("train --target age --epsilon 1 --delta 1e-6 --out {}", at("m.json"));
        refused(&format!("{train} --private {other} --public {data}"), &words);
        let words = ["--private", "--validation", "different files"];
        refused(&format!("{train} --private {data} --validation {other}"), &words);
        let local = format!("local randomize --epsilon 1 --out {}", at("r.jsonl"));
        refused(
            &format!("{local} --data {data} --public {other}"),
            &["--data", "--public", "different files"],
        );
    }
    // An output would destroy its input, whatever it is called.
    refused(
        &format!("mean --private {data} --schema s --epsilon 1 --delta 1e-6 --out {}", at("hard.csv")),
        &["--private", "--out", "different files"],
    );
}

#[test]
fn outputs_replace_nothing_but_their_kind() {
    let folder = folder("readers_outputs");
    let at = |name: &str| folder.join(name).display().to_string();
    let (public, private) = (write(&folder, "q.csv", rows(0, 60)), write(&folder, "p.csv", rows(3, 200)));
    let data = write(&folder, "data.csv", "precious\n1\n");
    let train = format!(
        "train --private {private} --public {public} --target age --epsilon 1 --delta 1e-6 --steps 2 --seed 1"
    );
    let mean =
        format!("mean --private {private} --public {public} --columns age --epsilon 1 --delta 1e-6 --seed 1");
    let all = [
        (train.clone(), "m.json"),
        (mean.clone(), "a.json"),
        (format!("schema --public {public}"), "s.json"),
        (format!("predict --model {} --data {public}", at("m.json")), "predictions.csv"),
        (format!("local randomize --data {private} --columns age --radius 90 --epsilon 1"), "r.jsonl.gz"),
    ];
    for (command, name) in &all {
        // Twice: their own kind is replaced.
        for _ in 0..2 {
            json(&format!("{command} --out {}", at(name)));
        }
        for (_, other) in all.iter().filter(|(_, other)| other != name) {
            let is_input = command.contains(&at(other));
            if Path::new(&at(other)).exists() && !is_input {
                refused(&format!("{command} --out {}", at(other)), &["--out", other, "not overwritten"]);
            }
        }
        refused(&format!("{command} --out {data}"), &["--out", "data.csv", "not overwritten"]);
    }
    for command in [format!("{train} --out {}", at("m.json")), mean] {
        refused(
            &format!("{command} --certificate {data}"),
            &["--certificate", "data.csv", "not overwritten"],
        );
        json(&format!("{command} --certificate {}", at("c.json")));
        json(&format!("{command} --certificate {}", at("c.json")));
        refused(&format!("{command} --certificate {}", at("m.json")), &["--certificate"]);
    }
    refused(
        &format!("account --noise-multiplier 1 --steps 1 --delta 1e-6 --certificate {data}"),
        &["--certificate", "not overwritten"],
    );
    assert_eq!(read(&folder, "data.csv"), "precious\n1\n");
}

/// The parameters of the reports that `with_people` makes.
const EXPECTED: &str = "--round 1 --mechanism duchi --dimension 3 --epsilon 3 --radius 1.2";

#[test]
fn invalid_reports_remove_themselves_and_are_counted() {
    let (folder, base) = with_people("readers_skip", 400);
    json(&format!("{base} --epsilon 3 --radius 1.2 --mechanism duchi"));
    let good = read(&folder, "reports.jsonl");
    let whole = json(&aggregate(&folder));
    assert_eq!((&whole["skipped_reports"], &whole["skipped_reasons"]), (&json!(0), &Value::Null));
    let lines: Vec<&str> = good.lines().collect();
    let bad = [
        "{\"round\":\"other\"}".to_string(),
        lines[5].replace("\"epsilon\":3.0", "\"epsilon\":2.0"),
        lines[6].into(),
        "x".repeat(100_000),
        String::new(),
    ];
    // The first line of all is invalid: it decides nothing.
    let mut all = vec!["\"garbage\"".to_string()];
    all.extend(lines.iter().map(|line| line.to_string()));
    for (place, line) in bad.iter().enumerate() {
        all.insert(50 * (place + 1), line.clone());
    }
    write(&folder, "reports.jsonl", format!("{}\n", all.join("\n")));
    refused(&aggregate(&folder), &["reports.jsonl, line 1"]);
    refused(
        &format!("{} --skip-invalid", aggregate(&folder)),
        &["--round, --mechanism", "--radius", "--skip-invalid"],
    );
    refused(&format!("{} --round 1", aggregate(&folder)), &["--mechanism", "together"]);
    let base = format!("{} --skip-invalid {EXPECTED}", aggregate(&folder));
    let answer = json(&base);
    assert_eq!((&answer["reports"], &answer["skipped_reports"]), (&json!(400), &json!(6)));
    assert_eq!(answer["mean"], whole["mean"]);
    assert_eq!(
        answer["skipped_reasons"],
        json!({ "known id": 1, "no report": 3, "other parameters": 1, "too long": 1 })
    );
    // Without public rows only reports have weight: 2B/n for one line, 2Bs/(n+s) for all that were left out.
    let one = number(&whole, "/influence");
    assert!((number(&answer, "/influence") - one).abs() < 1e-12 * one);
    let all = one * 400.0 * 6.0 / 406.0;
    assert!((number(&answer, "/skipped_influence") - all).abs() < 1e-12 * all);
    let text = run(&base).stdout;
    assert!(text.contains("6 invalid lines were left out (known id: 1,"), "{text}");
    json(&format!("{base} --expect-reports 406"));
    refused(&format!("{base} --expect-reports 400"), &["--expect-reports is 400, but there are 406"]);
    // Parameters that no report has leave nothing.
    let none = format!("{} --skip-invalid {}", aggregate(&folder), EXPECTED.replace("1.2", "1.3"));
    refused(&none, &["at least one report"]);
    let public = write(&folder, "public.csv", "x,y,z\n0.1,0.2,0.3\n0.3,0.1,0\n");
    let alone = json(&format!("{none} --public {public}"));
    assert_eq!((&alone["reports"], &alone["skipped_reports"]), (&json!(0), &json!(406)));
}

/// With public rows the weight of reports depends on their number, which a liar can change by one.
#[test]
fn the_influence_of_a_line_covers_leaving_and_joining() {
    let (folder, base) = with_people("readers_influence", 30);
    json(&format!("{base} --epsilon 3 --radius 1.2 --mechanism duchi"));
    let public = write(&folder, "public.csv", "x,y,z\n0.1,0.2,0.3\n0.3,0.1,0\n-0.1,0.4,0.2\n");
    let reports = read(&folder, "reports.jsonl");
    let lines: Vec<&str> = reports.lines().collect();
    let mean = |lines: &[&str]| {
        write(&folder, "reports.jsonl", lines.join("\n"));
        let answer = json(&format!("{} --skip-invalid {EXPECTED} --public {public}", aggregate(&folder)));
        let mean: Vec<f64> = (0..3).map(|j| number(&answer, &format!("/mean/{j}"))).collect();
        (mean, number(&answer, "/influence"))
    };
    let (whole, influence) = mean(&lines);
    for spoilt in 0..4 {
        let mut other = lines.clone();
        other[7 * spoilt] = "spoilt";
        let (without, other_influence) = mean(&other);
        let moved = whole.iter().zip(&without).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        assert!(
            moved > 0.0 && moved <= influence.min(other_influence),
            "{moved} {influence} {other_influence}"
        );
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_no_data() {
    let folder = folder("readers_special");
    let public = write(&folder, "public.csv", rows(0, 50));
    for (path, words) in
        [("/dev/zero", "format"), (folder.to_str().unwrap(), "format"), ("/dev/null", "format")]
    {
        refused(&format!("mean --private {path} --public {public} --epsilon 1 --delta 1e-6"), &[path, words]);
    }
    std::fs::create_dir(folder.join("folder.csv")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join("zero.csv")).unwrap();
    for name in ["folder.csv", "zero.csv"] {
        let path = folder.join(name).display().to_string();
        refused(
            &format!("mean --private {path} --public {public} --epsilon 1 --delta 1e-6"),
            &[name, "cannot be read", if name == "zero.csv" { "not a regular file" } else { "directory" }],
        );
    }
}
