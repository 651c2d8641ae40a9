//! The shape of every file that semidp writes and reads again, against `formats/`: a shape that changes must come with a new version.
//!
//! A shape lists each field with the types of its values, or for a ledger its tables. When this test fails, raise the version in the file's
//! `format`, keep the reader of the old one, and write shape and samples with `SEMIDP_FORMATS=write cargo test -p semidp-cli --test
//! formats`. Samples of earlier versions stay in `formats/samples`, and must be readable for ever.
#![cfg(unix)]

mod common;
mod rows;

use common::*;
use rows::{Files, Target};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Shape = BTreeMap<String, BTreeSet<String>>;

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats")
}

fn is_writing() -> bool {
    std::env::var("SEMIDP_FORMATS").is_ok_and(|value| value == "write")
}

/// Adds the fields of a value below a place.
fn add(place: &str, value: &Value, shape: &mut Shape) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            items.iter().for_each(|item| add(&format!("{place}[]"), item, shape));
            "array"
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| add(&format!("{place}.{name}"), field, shape));
            "object"
        }
    };
    shape.entry(place.into()).or_default().insert(kind.into());
}

/// The format that a file names, and the shape of its lines of JSON, which may differ from line to line.
fn shape_of_json(text: &str) -> (String, Shape) {
    let one: Option<Value> = serde_json::from_str(text).ok();
    let values = match one {
        Some(value) => vec![value],
        None => text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect(),
    };
    let format = values[0]["format"].as_str().expect("a format").to_string();
    let mut shape = Shape::new();
    values.iter().for_each(|value| add("", value, &mut shape));
    (format, shape)
}

/// The format of a ledger and its tables, which SQLite stores as text.
fn shape_of_ledger(bytes: &[u8]) -> (String, Shape) {
    let text = String::from_utf8_lossy(bytes);
    let after = |start: usize, end: &str| &text[start..start + text[start..].find(end).expect("an end")];
    let places = text.match_indices("CREATE TABLE").map(|(place, _)| place);
    let tables = places.map(|place| {
        let words: Vec<&str> = after(place, "STRICT").split_whitespace().collect();
        (words[2].to_string(), BTreeSet::from([words.join(" ")]))
    });
    let format = text.find("semidp-ledger/").expect("the format");
    (text[format..format + "semidp-ledger/2".len()].into(), tables.collect())
}

/// Compares a shape with the one that its version was given.
fn check((format, shape): (String, Shape)) {
    let path = formats().join(format!("{}.txt", format.replace('/', "-")));
    let lines = shape.iter().map(|(place, kinds)| {
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        format!("{}: {}\n", if place.is_empty() { "." } else { place }, kinds.join(" or "))
    });
    let found: String = lines.collect();
    if is_writing() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{format} has another shape than {}:\n{found}", path.display());
}

/// A file that stays readable: compared or written as the sample of its version.
fn sample(name: &str, from: &Path) -> String {
    let path = formats().join("samples").join(name);
    if is_writing() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(from, &path).unwrap();
    }
    path.display().to_string()
}

#[test]
fn shapes_change_with_their_version_only_and_samples_stay_readable() {
    let files = Files::new("formats", Target::TwoWords);
    let path = |name: &str| files.path(name);
    let (private, public) = (path("private.csv"), path("public.csv"));

    json(&format!("schema --public {public} --out {}", path("schema.json")));
    check(shape_of_json(&files.text("schema.json")));

    json(&format!("{} --seed 1 --certificate {}", files.paid(), path("certificate.json")));
    check(shape_of_json(&files.text("model.json")));
    check(shape_of_json(&files.text("certificate.json")));

    let columns = "a,b";
    let radius = "--radius 10 --epsilon 2";
    json(&format!(
        "local randomize --data {private} --columns {columns} {radius} --seed 1 --out {}",
        path("reports.jsonl")
    ));
    check(shape_of_json(&files.text("reports.jsonl")));

    let ledger = path("budget.ledger");
    json(&format!("ledger init --ledger {ledger} --dataset d --epsilon 3 --delta 1e-5"));
    let mean = format!(
        "mean --private {private} --public {public} --columns {columns} --epsilon 0.5 --delta 1e-6 --ledger {ledger} --dataset d"
    );
    json(&format!("{mean} --seed 1"));
    check(shape_of_ledger(&std::fs::read(&ledger).unwrap()));

    // A reader of the answer that went away leaves the record of the run.
    let mut child = Command::new(SEMIDP)
        .args(format!("{mean} --seed 2 --json").split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    let record = entries(&files.folder).into_iter().find(|name| name.ends_with(".run"));
    let record = files.text(&record.expect("a record of the run"));
    // The header; the record's second line is the answer.
    check(shape_of_json(record.lines().next().unwrap()));

    for (command, from) in [
        ("verify @ --allow-seeded", "certificate.json"),
        (&*format!("evaluate --model @ --data {private}"), "model.json"),
        (
            &*format!("mean --private {private} --public {public} --schema @ --epsilon 1 --seed 1"),
            "schema.json",
        ),
        (&*format!("local aggregate --reports @ --columns {columns} --std 1"), "reports.jsonl"),
        ("ledger show --ledger @", "budget.ledger"),
    ] {
        let sample = sample(from, &files.folder.join(from));
        // A ledger may be brought up to date when it is opened.
        let copy = files.folder.join(format!("sample-{from}"));
        std::fs::copy(&sample, &copy).unwrap();
        json(&command.replace('@', &copy.display().to_string()));
    }

    check(shape_of_json(&checkpoint(&files)));
}

/// The checkpoint of a run that was killed.
fn checkpoint(files: &Files) -> String {
    let _ = std::fs::remove_file(files.folder.join("model.json"));
    let command = files.paid().replace("--steps 20", "--steps 900");
    let mut child = Command::new(SEMIDP)
        .args(format!("{command} --seed 5 --checkpoint-every 0").split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let text = loop {
        assert!(Instant::now() < deadline, "no checkpoint of a third step");
        let text = std::fs::read_to_string(files.folder.join("model.json.checkpoint")).unwrap_or_default();
        let header: Option<Value> = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
        let is_under_way = header.is_some_and(|header| header["done"].as_u64().is_some_and(|done| done >= 3));
        if is_under_way && text.lines().count() == 2 && text.ends_with('\n') {
            break text;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    text
}
