//! Runs the binary the way a user would.

// Each test crate uses its own part of this module.
#![allow(dead_code)]

pub mod people;

use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The binary under test.
pub const SEMIDP: &str = env!("CARGO_BIN_EXE_semidp");

/// What a run left behind.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// Runs with arguments separated by spaces.
pub fn run(arguments: &str) -> Ran {
    Command::new(SEMIDP).args(arguments.split_whitespace()).stdin(Stdio::null()).output().unwrap().into()
}

/// The same, with text on stdin.
pub fn run_with_input(arguments: &str, input: &str) -> Ran {
    let mut child = Command::new(SEMIDP)
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// The JSON answer of a run that must succeed. Everything on stdout must be that one object.
pub fn json(arguments: &str) -> Value {
    let ran = run(&format!("{arguments} --json"));
    assert_eq!(ran.code, 0, "{arguments}: {}", ran.stderr);
    let value: Value = serde_json::from_str(&ran.stdout).expect("one JSON object");
    assert!(value.is_object());
    value
}

/// A number of a JSON answer.
pub fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer} in {value}"))
}

/// Asserts that a run refuses bad input as every command must: exit code 2, nothing on stdout,
/// one `error:` line with these words, one `hint:` line.
pub fn refused(arguments: &str, words: &[&str]) {
    check_refusal(arguments, &run(arguments), words);
}

/// The same for a run that already happened.
pub fn check_refusal(arguments: &str, ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, 2, "{arguments}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "{arguments}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{arguments}: {}", ran.stderr);
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{}", ran.stderr);
    for word in words {
        assert!(lines[0].contains(word), "{arguments}: `{word}` is not in: {}", lines[0]);
    }
}

/// An empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The names in a folder.
pub fn entries(folder: &PathBuf) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
