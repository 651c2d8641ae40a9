//! A peer: a Python process that answers one question at a time.

use crate::environment::Environment;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};

/// Each peer has its own process, so that one cannot spoil another.
pub struct Peer {
    name: &'static str,
    process: Result<Running, String>,
}

struct Running {
    child: Child,
    /// `None` once it is closed, which tells the process to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the peer; if it cannot start, every question to it is answered by that error.
    pub fn start(environment: &Environment, script: &Path, name: &'static str) -> Self {
        let process =
            environment.peer(script, name).spawn().map_err(|error| format!("cannot start: {error}"));
        let process = process.map(|mut child| Running {
            requests: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().expect("stdout is piped")),
            child,
        });
        Self { name, process }
    }

    /// Its name, as in the tables.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its answer and the seconds it takes, or its error.
    pub fn ask(&mut self, request: &Value) -> Result<(f64, f64), String> {
        self.process.as_mut().map_err(|error| error.clone())?.exchange(request)
    }
}

impl Running {
    fn exchange(&mut self, request: &Value) -> Result<(f64, f64), String> {
        let gone = || "its process has ended".to_string();
        let requests = self.requests.as_mut().ok_or_else(gone)?;
        writeln!(requests, "{request}").and_then(|()| requests.flush()).map_err(|_| gone())?;
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) | Err(_) => Err(gone()),
            Ok(_) => parse(&line),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests = None;
        // Nothing can be done about a process that does not end well after its last answer.
        let _ = self.child.wait();
    }
}

/// Reads `{"answer": a, "seconds": s}` or `{"error": text}`.
fn parse(line: &str) -> Result<(f64, f64), String> {
    let reply: Value =
        serde_json::from_str(line).map_err(|_| format!("unreadable answer: {}", line.trim()))?;
    match (reply["answer"].as_f64(), reply["seconds"].as_f64(), reply["error"].as_str()) {
        (Some(answer), Some(seconds), None) => Ok((answer, seconds)),
        (_, _, Some(error)) => Err(error.to_string()),
        _ => Err(format!("unreadable answer: {}", line.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn answers_and_errors_are_told_apart() {
        assert_eq!(parse(r#"{"answer": 2.5, "seconds": 0.1}"#), Ok((2.5, 0.1)));
        assert_eq!(parse(r#"{"error": "ValueError: no"}"#), Err("ValueError: no".into()));
        // Python writes NaN, which is not JSON: no number to compare with.
        assert!(parse(r#"{"answer": NaN, "seconds": 0.1}"#).is_err());
        assert!(parse("{}").is_err());
    }
}
