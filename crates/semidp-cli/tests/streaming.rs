//! `semidp train` on rows that do not fit into memory: the same models, and nothing about how many rows there are.

mod common;
mod rows;

use common::{json, refused, run};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rows::{Files, Numbers, Target, hyper};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A Parquet file of the columns a, b and y, in row groups of so many rows.
fn parquet(path: &Path, rows: usize, group: usize, seed: u64) {
    let message = "message rows { required double a; required double b; required double y; }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    let mut numbers = Numbers(seed);
    let all: Vec<[f64; 3]> = (0..rows)
        .map(|_| {
            let (a, b) = (numbers.draw(), numbers.draw());
            [a, b, a - 2.0 * b + 0.3 * numbers.draw()]
        })
        .collect();
    for rows in all.chunks(group) {
        let mut group = writer.next_row_group().unwrap();
        for column in 0..3 {
            let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
            let mut writer = group.next_column().unwrap().unwrap();
            writer.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
            writer.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// The weights of `model.json`, and the answer.
fn trained(files: &Files, arguments: &str) -> (Value, Value) {
    let answer = json(arguments);
    (files.json("model.json")["weights"].clone(), answer)
}

#[test]
fn streamed_models_are_those_of_memory() {
    let files = Files::new("streaming_same", Target::TwoWords);
    parquet(&files.folder.join("public.parquet"), 80, 80, 1);
    parquet(&files.folder.join("groups.parquet"), 3000, 700, 2);
    parquet(&files.folder.join("one.parquet"), 3000, 3000, 2);
    let on = |private: &str| {
        let public = if private.ends_with("csv") { "public.csv" } else { "public.parquet" };
        let (private, public, out) = (files.path(private), files.path(public), files.path("model.json"));
        format!(
            "train --private {private} --public {public} --target y --out {out} --steps 20 --epsilon 4 --delta 1e-5 --seed 1"
        )
    };
    for private in ["private.csv", "groups.parquet", "one.parquet"] {
        for sampling in ["in-order", "poisson", "one-pass", "fixed-size", "none"] {
            let base = format!("{} --sampling {sampling}", on(private));
            let (expected, kept) = trained(&files, &base);
            assert!(!expected.is_null());
            let (found, streamed) = trained(&files, &format!("{base} --memory 0 --threads 2"));
            assert_eq!(found, expected, "{private} {sampling}");
            assert_eq!(kept["certificate"], streamed["certificate"]);
            let notes = |answer: &Value| answer["notes"].to_string().contains("--memory");
            assert!(notes(&streamed) && !notes(&kept), "{private} {sampling}");
        }
        let (found, _) = trained(&files, &format!("{} --algorithm dp-sgd --memory 0", on(private)));
        let in_order = format!("{} --algorithm dp-sgd --sampling in-order", on(private));
        assert_eq!(found, trained(&files, &in_order).0, "{private}");
    }
    // How rows lie in a file makes no difference.
    let streamed = |private| trained(&files, &format!("{} --memory 0", on(private))).0;
    assert_eq!(streamed("groups.parquet"), streamed("one.parquet"));
}

/// In order by default, unless what is given needs rows twice; and said so.
#[test]
fn rows_that_do_not_fit_are_read_once() {
    let files = Files::new("streaming_default", Target::Number);
    let unpaid = files.unpaid();
    let base = format!("{} --algorithm semi-dp-sgd", files.paid());
    let by_default = json(&format!("{} --memory 1kB", files.paid()));
    assert_eq!(hyper(&by_default, "sampling").0, json!("in-order"));
    let answer = json(&format!("{base} --memory 1kB"));
    assert_eq!(hyper(&answer, "sampling"), (json!("in-order"), "default".into()));
    assert_eq!(hyper(&answer, "blocks"), (json!(20), "user".into()));
    assert_eq!(answer["certificate"]["events"][0]["event"], "one-pass-gaussian");
    let with_rho = json(&format!("{unpaid} --rho 0.5 --memory 0"));
    assert_eq!(hyper(&with_rho, "sampling").0, json!("in-order"));
    let in_memory = json(&format!("{base} --memory 1GB"));
    assert_eq!(hyper(&in_memory, "sampling").0, json!("poisson"));
    let again = json(&format!("{base} --memory 0 --sample-rate 0.1"));
    assert_eq!(hyper(&again, "sampling").0, json!("poisson"));
    let ran = run(&format!("{base} --memory 0"));
    assert!(ran.stderr.contains("order of the file") && ran.stderr.contains("sorted"), "{}", ran.stderr);
    let ran = run(&format!("{base} --memory 0 --sampling poisson"));
    assert!(ran.stderr.contains("every step reads the file"), "{}", ran.stderr);
    assert_eq!(run(&format!("{base} --memory 0 --quiet")).stderr, "");
    let ran = run(&format!("{} --algorithm throw-away --memory 0", files.paid()));
    assert!(
        ran.stderr.contains("no effect on throw-away") && ran.stderr.contains("--memory"),
        "{}",
        ran.stderr
    );
}

/// Under add/remove nothing tells whether the rows fitted.
#[test]
fn whether_secret_rows_fit_is_not_told() {
    let files = Files::new("streaming_secret", Target::Number);
    let paid = format!("{} --adjacency add-remove --sample-rate 0.05 --expected-batch 45", files.paid());
    let base = format!("{paid} --seed 3");
    for sampling in ["poisson", "one-pass"] {
        let base = format!("{base} --sampling {sampling}");
        let (streamed, kept) = (run(&format!("{base} --memory 0")), run(&format!("{base} --memory 1GB")));
        assert_eq!(streamed.code, 0, "{}", streamed.stderr);
        assert_eq!((&streamed.stdout, &streamed.stderr), (&kept.stdout, &kept.stderr));
    }
    assert_eq!(
        trained(&files, &format!("{base} --memory 0")).0,
        trained(&files, &format!("{base} --memory 1GB")).0
    );
    refused(&format!("{paid} --sampling in-order"), &["sampling", "in-order", "add-remove"]);
    refused(&format!("{paid} --sampling in-order --memory 0"), &["sampling", "in-order", "add-remove"]);
}

#[test]
fn bad_sizes_are_refused() {
    let files = Files::new("streaming_bad", Target::Number);
    for size in ["much", "-1", "4GBs", "nan", "1e30", "GB"] {
        refused(&format!("{} --memory {size}", files.paid()), &["memory", size]);
    }
    refused("account --noise-multiplier 1 --sampling in-order --delta 1e-5", &["--sampling in-order"]);
    refused("calibrate --epsilon 1 --delta 1e-5 --sampling in-order", &["--sampling in-order"]);
}
