//! People who report, for the tests of `semidp local`.

use super::{folder, json};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// People in the ball of radius 1, whose mean is (0.3, -0.2, 0).
pub fn people(count: usize) -> String {
    let mut text = "x,y,z\n".to_string();
    for i in 0..count {
        let at = |multiplier: usize| (((i * multiplier) % 101) as f64 / 50.0 - 1.0) * 0.4;
        let _ = writeln!(text, "{},{},{}", 0.3 + at(37), -0.2 + at(53), at(71));
    }
    text
}

pub fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A folder with people, and the command that randomises them.
pub fn with_people(name: &str, count: usize) -> (PathBuf, String) {
    let folder = folder(name);
    write(&folder, "people.csv", people(count));
    let base = format!("local randomize --data {0}/people.csv --out {0}/reports.jsonl", folder.display());
    (folder, base)
}

pub fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

pub fn aggregate(folder: &Path) -> String {
    format!("local aggregate --reports {}/reports.jsonl", folder.display())
}

pub fn verified(folder: &Path, answer: &Value) {
    let file = write(folder, "answer.json", answer.to_string());
    assert_eq!(json(&format!("verify {file}"))["valid"], true);
}
