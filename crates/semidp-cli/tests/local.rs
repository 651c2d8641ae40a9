//! `semidp local`: people randomise, the server adds up. What comes out is right; what is no report is refused.

mod common;

use common::people::{aggregate, read, verified, with_people, write};
use common::{folder, json, number, refused, run};
use serde_json::{Value, json};
use std::path::Path;

/// A file of reports with one line changed: what the server says to that.
fn refused_reports(folder: &Path, text: impl AsRef<[u8]>, words: &[&str]) {
    let file = write(folder, "bad.jsonl", text);
    let out = folder.join("mean.json");
    let arguments = format!("local aggregate --reports {file} --out {}", out.display());
    let mut all = vec!["bad.jsonl"];
    all.extend(words);
    refused(&arguments, &all);
    assert!(!out.exists(), "nothing is written");
}

#[test]
fn reports_of_every_mechanism_give_the_mean_with_a_certificate() {
    for (mechanism, arithmetic) in [
        ("duchi", "exact"),
        ("rank-privunit", "exact"),
        ("privunit --idealised", "idealised"),
        ("privunitg --idealised", "idealised"),
        ("auto", "exact"),
    ] {
        let (folder, base) = with_people(&format!("local_{}", mechanism.replace(' ', "_")), 2020);
        let made = json(&format!("{base} --epsilon 3 --radius 1.2 --mechanism {mechanism}"));
        assert_eq!((made["rows"].as_u64(), made["reports"].as_u64()), (Some(2020), Some(2020)));
        assert_eq!((&made["remembered"], &made["arithmetic"]), (&json!(false), &json!(arithmetic)));
        assert_eq!(number(&made, "/certificate/guarantee/epsilon"), 3.0);
        assert_eq!(made["certificate"]["guarantee"]["trust"], "local");
        assert_eq!(made["certificate"]["random_source"], "operating-system");
        verified(&folder, &made);
        let lines = read(&folder, "reports.jsonl");
        assert_eq!(lines.lines().count(), 2020);

        let answer = json(&aggregate(&folder));
        assert_eq!((&answer["estimator"], &answer["reports"]), (&json!("ldp"), &json!(2020)));
        // No coordinate varies more than the whole mean; 6.5 standard errors are exceeded once in 10^10.
        let most = 6.5 * number(&answer, "/predicted_mse").sqrt();
        for (j, truth) in [0.3, -0.2, 0.0].into_iter().enumerate() {
            let gap = number(&answer, &format!("/mean/{j}")) - truth;
            assert!(gap.abs() < most, "{mechanism} {j}: {gap} {most}");
        }
        assert!(number(&answer, "/influence") > 2.0 * 1.2 / 2020.0);
        let certificate = &answer["certificate"];
        assert_eq!(certificate["guarantee"]["epsilon"], 3.0);
        assert_eq!(
            (&certificate["arithmetic"], &certificate["random_source"]),
            (&json!(arithmetic), &json!("none"))
        );
        assert!(certificate["not_covered"][0].as_str().unwrap().contains("devices that sent them"));
        verified(&folder, &answer);
        let text = run(&aggregate(&folder)).stdout;
        assert!(text.contains("pure epsilon 3") && text.contains("One person who lies"), "{text}");
    }
}

#[test]
fn public_rows_are_clipped_and_combined() {
    let (folder, base) = with_people("local_semi", 1010);
    json(&format!("{base} --radius 1 --epsilon 2 --mechanism duchi"));
    // The last one is far out: on the way it becomes (0, 1, 0).
    let public =
        write(&folder, "public.csv", "z,y,x,name\n0,-0.2,0.2,a\n0,-0.4,0.4,b\n0.1,0,0,c\n0,700,0,d\n");
    let base = format!("{} --public {public} --columns x,y,z", aggregate(&folder));
    let answer = json(&base);
    assert_eq!((&answer["estimator"], &answer["n_public"]), (&json!("semi-ldp-weighted"), &json!(4)));
    assert_eq!(answer["columns"], json!(["x", "y", "z"]));
    assert_eq!(answer["std"]["source"], "public data");
    let vectors: Vec<Value> =
        read(&folder, "reports.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (j, public) in [0.15, 0.1, 0.025].into_iter().enumerate() {
        let reports =
            vectors.iter().map(|report| number(report, &format!("/vector/{j}"))).sum::<f64>() / 1010.0;
        for (name, weight) in [("throw-away", 0.0), ("ldp", 1.0), ("semi-ldp-uniform", 1010.0 / 1014.0)] {
            let one = json(&format!("{base} --estimator {name}"));
            assert_eq!(number(&one, "/private_weight"), weight);
            let expected = weight * reports + (1.0 - weight) * public;
            assert!((number(&one, &format!("/mean/{j}")) - expected).abs() < 1e-7, "{name} {j}");
            assert!(number(&one, "/predicted_mse") > number(&answer, "/predicted_mse"));
            assert_eq!(number(&one, "/influence") == 0.0, weight == 0.0);
        }
    }
    let given = json(&format!("{base} --std 0.01"));
    assert_eq!(given["std"], json!({ "value": 0.01, "source": "user" }));
    refused(&format!("{base} --std 2"), &["std", "at most the radius"]);
    refused(&format!("{base} --std -1"), &["std"]);
    refused(&format!("{base} --estimator best"), &["--estimator", "best"]);
    refused(&format!("{} --estimator throw-away", aggregate(&folder)), &["--estimator throw-away"]);
    refused(&format!("{base},more"), &["public.csv", "more"]);
    let short = format!("{} --public {public} --columns x,y", aggregate(&folder));
    refused(&short, &["--public", "2 columns", "3 numbers"]);
    refused(&format!("{} --columns x,y", aggregate(&folder)), &["--columns", "3 numbers"]);
    refused(&format!("{} --public {public}.none", aggregate(&folder)), &["public.csv.none"]);
}

#[test]
fn a_centre_must_be_the_same_on_both_sides() {
    let folder = folder("local_centre");
    let rows: String = (0..200).map(|i| format!("{},{}\n", 1000.0 + f64::from(i % 3), -7)).collect();
    let data = write(&folder, "people.csv", format!("age,hours\n{rows},\n"));
    let centre = write(&folder, "centre.json", "{\"mean\": [1000, -7], \"columns\": [\"age\", \"hours\"]}");
    let base = format!(
        "local randomize --data {data} --out {}/reports.jsonl --epsilon 8 --radius 3",
        folder.display()
    );
    let made = json(&format!("{base} --centre {centre}"));
    assert_eq!(made["centre"].as_str().unwrap().len(), 32);
    let answer = json(&format!("{} --center {centre}", aggregate(&folder)));
    let most = 6.5 * number(&answer, "/predicted_mse").sqrt();
    assert!(
        (number(&answer, "/mean/0") - 1001.0).abs() < most && (number(&answer, "/mean/1") + 7.0).abs() < most
    );
    refused(&aggregate(&folder), &["--centre", "must be given"]);
    let other = write(&folder, "other.json", "[1000, -8]");
    refused(&format!("{} --centre {other}", aggregate(&folder)), &["--centre", "is not what"]);
    for (text, word) in [("[1]", "2, not 1"), ("[1, null]", "finite"), ("7", "list"), ("x", "JSON")] {
        let bad = write(&folder, "bad.json", text);
        refused(&format!("{base} --round b --centre {bad}"), &["--centre", word]);
    }
    let names = write(&folder, "bad.json", "{\"mean\": [1000, -7], \"columns\": [\"hours\", \"age\"]}");
    refused(&format!("{base} --round b --centre {names}"), &["--centre", "same order"]);
    json(&format!("{base} --round b"));
    refused(&format!("{} --centre {centre}", aggregate(&folder)), &["must not be given"]);
}

#[test]
fn reports_that_are_none_are_refused_by_file_line_and_reason() {
    let (folder, base) = with_people("local_refusals", 4);
    json(&format!("{base} --radius 1 --epsilon 2 --round a --mechanism privunit --idealised"));
    let good = read(&folder, "reports.jsonl");
    let lines: Vec<&str> = good.lines().collect();
    let with = |line: String| format!("{}\n{}\n{line}\n{}\n", lines[0], lines[1], lines[3]);
    let third: Value = serde_json::from_str(lines[2]).unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut report = third.clone();
        *report.pointer_mut(pointer).unwrap() = value;
        with(report.to_string())
    };
    let first = number(&third, "/vector/0");
    refused_reports(&folder, changed("/vector/0", json!(first + 0.01)), &["line 3", "length"]);
    refused_reports(&folder, changed("/vector/0", json!(1e300)), &["line 3", "length"]);
    refused_reports(&folder, changed("/vector/0", json!(null)), &["line 3", "null"]);
    refused_reports(&folder, changed("/vector/0", json!("NaN")), &["line 3", "NaN"]);
    let raw = |number: &str| with(lines[2].replacen(&first.to_string(), number, 1));
    assert_ne!(raw("NaN"), good);
    refused_reports(&folder, raw("NaN"), &["line 3", "not a report"]);
    refused_reports(&folder, raw("Infinity"), &["line 3", "not a report"]);
    refused_reports(&folder, raw("1e999"), &["line 3", "out of range"]);
    refused_reports(&folder, changed("/vector", json!([first])), &["line 3", "as many numbers"]);
    refused_reports(&folder, changed("/vector", json!([])), &["line 3", "as many numbers"]);
    refused_reports(&folder, changed("/format", json!("semidp-report/2")), &["line 3", "semidp-report/2"]);
    refused_reports(&folder, changed("/id", json!("7")), &["line 3", "32 hexadecimal digits"]);
    for (field, value) in [
        ("round", json!("b")),
        ("mechanism", json!("duchi")),
        ("dimension", json!(2)),
        ("epsilon", json!(2.5)),
        ("radius", json!(2)),
    ] {
        let words = format!("its {field} is not that of the first report");
        refused_reports(&folder, changed(&format!("/{field}"), value), &["line 3", &words]);
    }
    let extra = |field: &str, value: Value| {
        let mut report = third.clone();
        report[field] = value;
        with(report.to_string())
    };
    refused_reports(&folder, extra("age", json!(7)), &["line 3", "unknown field `age`"]);
    refused_reports(&folder, extra("centre", json!("0")), &["line 3", "its centre"]);
    refused_reports(&folder, with(lines[0].into()), &["line 3", "id was there before"]);
    refused_reports(&folder, with(String::new()), &["line 3", "empty"]);
    refused_reports(&folder, &good.as_bytes()[..good.len() - 20], &["line 4", "cut off"]);
    let mut bytes = good.clone().into_bytes();
    let place = good.find("privunit").unwrap();
    bytes[place] = 0xff;
    refused_reports(&folder, &bytes, &["line 1", "not UTF-8"]);
    refused_reports(&folder, with("x".repeat(3_000_000)), &["line 3", "longer than any report"]);
    refused_reports(&folder, "x".repeat(3_000_000), &["line 1", "longer than any report"]);
    let padded = lines[2].replacen('{', &format!("{{{}", " ".repeat(3_000_000)), 1);
    refused_reports(&folder, with(padded), &["line 3", "longer than any report"]);
    // The first report must make sense by itself.
    let alone = |pointer: &str, value: Value| {
        let mut report = third.clone();
        *report.pointer_mut(pointer).unwrap() = value;
        report.to_string()
    };
    refused_reports(&folder, alone("/mechanism", json!("magic")), &["line 1", "duchi"]);
    refused_reports(&folder, alone("/epsilon", json!(0)), &["line 1", "epsilon"]);
    refused_reports(&folder, alone("/dimension", json!(0)), &["line 1", "dim"]);
    refused_reports(&folder, alone("/radius", json!(-1)), &["line 1", "radius"]);
    // Across files, too.
    let (one, two) = (write(&folder, "one.jsonl", &good), write(&folder, "two.jsonl", lines[3]));
    refused(
        &format!("local aggregate --reports {one},{two}"),
        &["two.jsonl", "line 1", "id was there before"],
    );
    json(&format!("{base} --radius 1 --epsilon 2 --round b"));
    refused(
        &format!("local aggregate --reports {one},{}/reports.jsonl", folder.display()),
        &["reports.jsonl", "line 1", "its round"],
    );
    let half = write(&folder, "half.jsonl", format!("{}\n{}\n", lines[0], lines[1]));
    refused(
        &format!("local aggregate --reports {half} --expect-reports 4"),
        &["--expect-reports", "2 reports"],
    );
    assert_eq!(json(&format!("local aggregate --reports {one} --expect-reports 4"))["reports"], 4);
    // A last line that lacks nothing but its end is whole.
    let whole = write(&folder, "whole.jsonl", good.trim_end());
    assert_eq!(json(&format!("local aggregate --reports {whole}"))["reports"], 4);
    refused(
        &format!("local aggregate --reports {}/none.jsonl", folder.display()),
        &["--reports", "none.jsonl"],
    );
    refused(&format!("local aggregate --reports {}", folder.display()), &["--reports", "regular file"]);
}

/// What a server does with reports by rank that no honest device sends.
#[test]
fn reports_by_rank_that_are_none_are_refused() {
    let (folder, base) = with_people("local_rank_refusals", 4);
    let made = json(&format!("{base} --radius 1 --epsilon 2"));
    assert_eq!((&made["mechanism"], &made["arithmetic"]), (&json!("rank-privunit"), &json!("exact")));
    let good = read(&folder, "reports.jsonl");
    let lines: Vec<&str> = good.lines().collect();
    let third: Value = serde_json::from_str(lines[2]).unwrap();
    assert!(third["index"].is_u64() && third.get("vector").is_none() && lines[2].len() < 200, "{third}");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut report = third.clone();
        change(&mut report);
        format!("{}\n{}\n{report}\n{}\n", lines[0], lines[1], lines[3])
    };
    for (change, word) in [
        (
            &(|report: &mut Value| report["index"] = json!(1024)) as &dyn Fn(&mut Value),
            "number of candidates",
        ),
        (&|report: &mut Value| report["index"] = json!(-1), "invalid value"),
        (&|report: &mut Value| report["index"] = json!(null), "a vector or an index"),
        (&|report: &mut Value| report["vector"] = json!([1, 2, 3]), "a vector or an index"),
        (
            &|report: &mut Value| {
                report.as_object_mut().unwrap().remove("index");
                report["vector"] = json!([1, 2, 3]);
            },
            "where its mechanism sends an index",
        ),
    ] {
        refused_reports(&folder, with(change), &["line 3", word]);
    }
    // The id is the seed: the same one again is a replay, with whatever index.
    let replayed =
        with(&|report| report["id"] = serde_json::from_str::<Value>(lines[0]).unwrap()["id"].clone());
    refused_reports(&folder, replayed, &["line 3", "id was there before"]);
    assert_eq!(json(&aggregate(&folder))["reports"], 4);
}

/// Memory is taken for what columns or options say, not for what a line of 200 bytes claims.
#[test]
fn a_first_report_cannot_claim_any_dimension() {
    let folder = folder("local_dimension");
    let reports = folder.join("reports.jsonl");
    let line = |mechanism: &str, dimension: usize, body: &str| {
        format!(
            "{{\"format\":\"semidp-report/1\",\"round\":\"1\",\"mechanism\":\"{mechanism}\",\"dimension\":{dimension},\"epsilon\":2.0,\
             \"radius\":1.0,\"id\":\"000000000000000000000000000000ff\",{body}}}\n"
        )
    };
    let aggregate = format!("local aggregate --reports {}", reports.display());
    for (text, more, words) in [
        (line("rank-privunit", 10_000_000, "\"index\":7"), "", &["line 1", "10000000", "--dimension"][..]),
        (
            line("rank-privunit", 10_000_000, "\"index\":7"),
            "--columns a,b",
            &["line 1", "10000000", "--columns has 2 columns"],
        ),
        (line("duchi", 10_000_000, "\"vector\":[1.0,2.0]"), "", &["line 1", "not as many numbers"]),
    ] {
        std::fs::write(&reports, text).unwrap();
        refused(&format!("{aggregate} {more}"), words);
    }
    // What is said beforehand is believed.
    std::fs::write(&reports, line("rank-privunit", 200_000, "\"index\":7")).unwrap();
    let said = "--round 1 --mechanism rank-privunit --dimension 200000 --epsilon 2 --radius 1";
    assert_eq!(json(&format!("{aggregate} {said}"))["reports"], 1);
}

/// Rows far beyond the radius gave a mean near the centre with a tiny predicted error, and no word.
#[test]
fn a_radius_is_asked_for_and_clipped_public_rows_are_noticed() {
    let folder = folder("local_radius");
    let rows: String = (0..100).map(|i| format!("{}\n", 20 + i % 40)).collect();
    let data = write(&folder, "people.csv", format!("age\n{rows}"));
    let public = write(&folder, "public.csv", "age\n30\n50\n41\n");
    let base = format!("local randomize --data {data} --out {}/reports.jsonl --epsilon 4", folder.display());
    refused(&base, &["--radius must be given", "nothing public"]);
    let made = json(&format!("{base} --public {public}"));
    assert_eq!(number(&made, "/radius"), 50.0);
    let hyper = made["certificate"]["hyperparameters"].as_array().unwrap();
    let radius = hyper.iter().find(|entry| entry["name"] == "radius").unwrap();
    assert_eq!(radius["source"], "public data");
    let aggregate = format!("{} --public {public}", aggregate(&folder));
    let ran = run(&aggregate);
    assert!(ran.code == 0 && !ran.stderr.contains("were clipped"), "{}", ran.stderr);
    let centre = write(&folder, "centre.json", "{\"mean\": [40], \"radius\": 25}");
    assert_eq!(number(&json(&format!("{base} --round c --centre {centre}")), "/radius"), 25.0);
    json(&format!("{base} --round b --radius 1"));
    let ran = run(&aggregate);
    assert!(
        ran.code == 0 && ran.stderr.contains("3 of 3 public rows are beyond the radius"),
        "{}",
        ran.stderr
    );
    assert_eq!(json(&aggregate)["n_public_clipped"], 3);
}

#[test]
fn idealised_mechanisms_are_asked_for_by_name() {
    let (folder, base) = with_people("local_idealised", 3);
    for name in ["privunit", "privunitg"] {
        let command = format!("{base} --radius 1 --epsilon 1 --mechanism {name}");
        refused(&command, &["--mechanism", name, "idealised"]);
        assert!(run(&command).stderr.contains("or add --idealised"));
    }
    assert!(!folder.join("people.csv.memory").exists());
    json(&format!("{base} --radius 1 --epsilon 1 --mechanism privunit --idealised"));
}

#[test]
fn without_reports_the_public_rows_answer_or_nobody() {
    let folder = folder("local_empty");
    let empty = write(&folder, "reports.jsonl", "");
    let public = write(&folder, "public.csv", "x,y\n1,2\n3,6\n");
    refused(&format!("local aggregate --reports {empty}"), &["--reports", "at least one report"]);
    let answer = json(&format!("local aggregate --reports {empty} --public {public}"));
    assert_eq!((&answer["mean"], &answer["estimator"]), (&json!([2.0, 4.0]), &json!("throw-away")));
    assert_eq!(number(&answer, "/epsilon"), 0.0);
    assert!((number(&answer, "/predicted_mse") - 5.0).abs() < 1e-12);
    verified(&folder, &answer);
    refused(&format!("local aggregate --reports {empty} --public {public} --estimator ldp"), &["ldp"]);
    refused(
        &format!("local aggregate --reports {empty} --public {public} --expect-reports 1"),
        &["0 reports"],
    );
    refused("local aggregate --public x.csv", &["--reports"]);
}

#[test]
fn files_may_be_packed_and_of_any_table() {
    let (folder, _) = with_people("local_packed", 30);
    let at = folder.display();
    let base = format!("local randomize --data {at}/people.csv --radius 1 --epsilon 2");
    json(&format!("{base} --out {at}/a.jsonl.gz"));
    json(&format!("{base} --out {at}/reports.jsonl"));
    let packed = std::fs::read(folder.join("a.jsonl.gz")).unwrap();
    assert!(packed.starts_with(&[0x1f, 0x8b]));
    let answers =
        ["a.jsonl.gz", "reports.jsonl"].map(|name| json(&format!("local aggregate --reports {at}/{name}")));
    assert_eq!(answers[0], answers[1]);
    let cut = write(&folder, "cut.jsonl.gz", &packed[..packed.len() - 30]);
    refused(&format!("local aggregate --reports {cut}"), &["cut.jsonl.gz", "line"]);
    // Rows by what public rows mean: a column of text has a number for each value.
    let mixed = write(&folder, "mixed.csv", "x,colour\n0.1,red\n0.2,green\n0.3,red\n");
    let public = write(&folder, "public.csv", "colour,x\nred,0.4\nblue,0.1\n");
    let columns = format!("--public {public} --columns x,colour");
    let made = json(&format!(
        "local randomize --data {mixed} --radius 2 --epsilon 2 {columns} --out {at}/mixed.jsonl"
    ));
    assert_eq!(made["dimension"], 4);
    let answer = json(&format!("local aggregate --reports {at}/mixed.jsonl {columns}"));
    assert_eq!(answer["columns"], json!(["x", "colour=blue", "colour=red", "colour=other"]));
}

/// A table of two columns, evenly spread from `middle` minus one to `middle` plus one.
fn table(count: usize, middle: f64) -> String {
    let even = |i: usize, by: usize| ((i * by) % 101) as f64 / 50.0 - 1.0;
    (0..count).fold("a,b\n".to_string(), |text, i| {
        text + &format!("{},{}\n", middle + even(i, 37), middle + even(i, 11))
    })
}

/// Pooled with reports, public rows that are shifted move the mean: the answer names the assumption, measures the shift and warns; without
/// public rows, or with reports alone, it assumes nothing of the kind.
#[test]
fn shifted_public_rows_are_named_measured_and_warned_of() {
    let folder = folder("local_shifted");
    let data = write(&folder, "people.csv", table(4040, 0.0));
    let reports = folder.join("reports.jsonl").display().to_string();
    json(&format!(
        "local randomize --data {data} --radius 4 --epsilon 4 --out {reports} --memory {}",
        folder.join("memory").display()
    ));
    let same = "public and private rows come from the same population";
    for (middle, is_shifted) in [(0.0, false), (1.0, true)] {
        let public = write(&folder, "public.csv", table(101, middle));
        let ran = run(&format!("local aggregate --reports {reports} --public {public} --json"));
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer["assumptions"], json!([same]));
        assert_eq!(answer["certificate"]["assumptions"], json!([same]));
        assert_eq!(answer["predicted_mse_assumes"], same);
        assert!(answer["estimand"].as_str().unwrap().contains("clipped to the radius"));
        for j in 0..2 {
            let error = number(&answer, &format!("/shift/{j}/standard_error"));
            assert!(
                (number(&answer, &format!("/shift/{j}/estimate")) - middle).abs() < 6.5 * error
                    && error < 0.2
            );
            if is_shifted {
                assert_eq!(answer["shift"][j]["significant"], true);
            }
        }
        if is_shifted {
            assert!(ran.stderr.contains("differ by more than chance in a, b"), "{}", ran.stderr);
            assert!(answer["notes"][0].as_str().unwrap().contains("--estimator ldp"), "{}", answer["notes"]);
        }
        verified(&folder, &answer);
    }
    let public = folder.join("public.csv").display().to_string();
    for arguments in [format!("--public {public} --estimator ldp"), String::new()] {
        let answer = json(&format!("local aggregate --reports {reports} {arguments}"));
        assert_eq!(answer["assumptions"], json!([]), "{arguments}");
    }
}

/// Every row lies beyond the radius: what is released is the mean of clipped rows, and the answer says so without public rows too.
#[test]
fn a_mean_near_the_radius_is_noticed() {
    let folder = folder("local_near_radius");
    let data = write(&folder, "people.csv", table(4040, 3.0));
    for (radius, is_near) in [("0.5", true), ("8", false)] {
        let reports = folder.join(format!("reports-{radius}.jsonl")).display().to_string();
        json(&format!(
            "local randomize --data {data} --radius {radius} --epsilon 4 --out {reports} --memory {}",
            folder.join(format!("memory-{radius}")).display()
        ));
        let ran = run(&format!("local aggregate --reports {reports} --json"));
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer["notes"].to_string().contains("were clipped"), is_near, "{}", answer["notes"]);
        assert_eq!(ran.stderr.contains("of the radius"), is_near, "{}", ran.stderr);
        assert!(answer["estimand"].as_str().unwrap().ends_with("of rows clipped to the radius"));
    }
}
