//! Where things are printed: the answer on stdout, everything else on stderr.

use crate::Answer;
use crate::delivery::Pending;
use crate::failure::Failure;
use crate::printable;
#[cfg(unix)]
use semidp_core::files;
use serde_json::Value;
use std::cell::RefCell;
use std::io::{ErrorKind, Write};

/// How to print.
pub struct Output {
    /// One JSON object in place of tables.
    json: bool,
    /// Nothing on stderr but errors.
    pub quiet: bool,
    /// Takes the answer in place of the streams.
    captured: Option<RefCell<Answer>>,
}

impl Output {
    /// On the streams of the process.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet, captured: None }
    }

    /// For a program: nothing is printed.
    pub fn captured() -> Self {
        Self { json: true, quiet: true, captured: Some(RefCell::default()) }
    }

    /// Whether a program takes the answer.
    pub fn is_captured(&self) -> bool {
        self.captured.is_some()
    }

    /// Hands a run over to the program that takes the answer.
    pub fn hold(&self, pending: Pending) {
        if let Some(captured) = &self.captured {
            captured.borrow_mut().pending = Some(pending);
        }
    }

    /// What was captured.
    pub fn into_answer(self) -> Answer {
        self.captured.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Refuses a run whose answer goes to standard output alone, if nothing that is printed arrives there: before it is paid for.
    pub fn refuse_nowhere(&self) -> Result<(), Failure> {
        match self.nowhere() {
            Some(reason) => Err(Failure::input(
                format!("standard output takes no answer: {reason}"),
                "give --out FILE, or open standard output for writing; nothing was spent",
            )),
            None => Ok(()),
        }
    }

    /// Why nothing that is printed arrives anywhere, if that is so.
    fn nowhere(&self) -> Option<&'static str> {
        #[cfg(unix)]
        if self.captured.is_none() {
            let stdout = std::io::stdout();
            if !files::is_writable(&stdout) {
                return Some("it is not open for writing");
            }
            if files::is_replaced(&stdout) {
                return Some("it is closed, or /dev/null that was opened for reading and writing");
            }
        }
        None
    }

    /// Prints text that exists nowhere else; whether it arrived.
    pub fn rescue(&self, text: &str) -> bool {
        let mut stdout = std::io::stdout().lock();
        self.nowhere().is_none() && writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_ok()
    }

    /// Prints the answer in the form that was asked for.
    pub fn answer(&self, json: &Value, human: impl FnOnce() -> String) -> Result<(), Failure> {
        self.deliver(json, human).map(|_| ())
    }

    /// The same; whether all of it was taken.
    pub fn deliver(&self, json: &Value, human: impl FnOnce() -> String) -> Result<bool, Failure> {
        if let Some(captured) = &self.captured {
            captured.borrow_mut().json = json.clone();
            return Ok(true);
        }
        let text = if self.json {
            let text = serde_json::to_string_pretty(json)
                .map_err(|error| Failure::other(format!("cannot write the answer as JSON: {error}")))?;
            printable::json(&text).into_owned()
        } else {
            printable::page(&human()).into_owned()
        };
        #[cfg(unix)]
        if !files::is_writable(std::io::stdout()) {
            return Err(Failure::other("cannot write to standard output: it is not open for writing"));
        }
        let mut stdout = std::io::stdout().lock();
        match writeln!(stdout, "{}", text.trim_end()).and_then(|()| stdout.flush()) {
            // The reader has seen enough (`semidp ... | head`).
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::other(format!("cannot write to standard output: {error}"))),
            Ok(()) => Ok(true),
        }
    }

    /// Something a reader of the table should know; a program finds it in the JSON.
    pub fn note(&self, text: &str) {
        if !self.json {
            self.whisper("note", text);
        }
    }

    /// Something that anyone should know.
    pub fn warn(&self, text: &str) {
        if let Some(captured) = &self.captured {
            captured.borrow_mut().warnings.push(printable::line(text).into_owned());
        }
        self.whisper("warning", text);
    }

    fn whisper(&self, kind: &str, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{kind}: {}", printable::line(text));
        }
    }
}
