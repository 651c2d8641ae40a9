//! Answers that were paid for: delivered once the debit is made, whatever happens in between.
//!
//! A command that debits a ledger, or writes an answer to `--out`, records its run (`semidp::record`). The same command given again
//! after a kill, a full disk or a closed pipe goes on with that run: the same noise, no second debit. "The same command" is known by
//! the record beside `--out`; without `--out` by the one beside the ledger that is named by a digest of the public facts of the run.
//! Facts are options and digests of public values, so that neither name nor content tells anything about private rows.

use crate::failure::Failure;
use crate::output::Output;
use semidp::files::Reserved;
use semidp::record::{RunRecord, name_of};
use semidp::train::Fact;
use semidp_core::{Randomness, Record};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is delivered.
pub struct Answer {
    /// What `--json` prints, and `--out` gets.
    pub json: Value,
    /// What is printed otherwise.
    pub text: String,
    /// What the user should know besides.
    pub notes: Vec<String>,
}

/// Where the answer goes in files.
pub struct Places {
    /// `--certificate`.
    pub certificate: Option<Reserved>,
    /// `--out`.
    pub out: Option<Reserved>,
}

/// A run that is recorded, if there is a reason to.
pub struct Delivery {
    record: Option<Arc<RunRecord>>,
    /// In words, with "was spent" or what else happened.
    spent: String,
    has_out: bool,
}

/// Where the record of a run lies: beside the answer, or beside the ledger. Without either there is nothing that a second run could
/// be confused with.
pub fn record_path(
    command: &str,
    out: Option<&Path>,
    ledger: Option<&Path>,
    facts: &[Fact],
) -> Option<PathBuf> {
    let beside = |path: &Path, ending: &str| {
        let mut name = OsString::from(path);
        name.push(ending);
        PathBuf::from(name)
    };
    match (out, ledger) {
        (Some(out), _) => Some(beside(out, ".checkpoint")),
        (None, Some(ledger)) => {
            let ledger = std::fs::canonicalize(ledger).unwrap_or_else(|_| ledger.into());
            Some(beside(&ledger, &format!(".{command}-{}.run", name_of(facts))))
        }
        (None, None) => None,
    }
}

impl Delivery {
    /// Begins a run at this path, or finds the one that was interrupted there. Refuses to begin one if another process wrote the file of
    /// `--out` since it was reserved: that was the same command, given twice at once.
    pub fn open(
        path: Option<PathBuf>,
        randomness: Randomness,
        facts: &[Fact],
        spent: String,
        has_out: bool,
        out: Option<&Reserved>,
    ) -> Result<Self, Failure> {
        let begin = |path: PathBuf| {
            loop {
                match RunRecord::open(&path, randomness, facts) {
                    // Each process prints an answer of its own: none is replaced by another.
                    Err(semidp_core::Error::EndedElsewhere { .. }) if !has_out => {}
                    opened => return opened,
                }
            }
        };
        let record = path.map(begin).transpose()?;
        let is_new = record.as_ref().is_some_and(|record| !record.is_begun());
        if let Some(out) = out.filter(|out| is_new && out.is_changed()) {
            return Err(Failure::input(
                format!("--out: another process wrote {} meanwhile", out.path().display()),
                "nothing was spent: if that was the same command, its answer is there; given again, it begins another run",
            ));
        }
        Ok(Self { record: record.map(Arc::new), spent, has_out })
    }

    /// For the session.
    pub fn record(&self) -> Option<Arc<dyn Record>> {
        self.record.clone().map(|record| record as Arc<dyn Record>)
    }

    /// The answer of the interrupted run, if it came so far. Its JSON says so: `"repeated": true`.
    pub fn found(&self) -> Option<Answer> {
        let mut value: Value = serde_json::from_str(self.record.as_ref()?.answer()?).ok()?;
        value["json"].as_object_mut()?.insert("repeated".into(), true.into());
        let notes = value["notes"].as_array()?.iter().filter_map(|note| note.as_str().map(String::from));
        Some(Answer {
            notes: notes.collect(),
            text: value["text"].as_str()?.into(),
            json: value["json"].take(),
        })
    }

    /// A failure of the run itself: says so if something was spent.
    pub fn failed(&self, failure: Failure) -> Failure {
        let Some(record) = self.record.as_ref().filter(|record| record.is_begun()) else { return failure };
        match failure.variant() {
            "BudgetRefused" => failure,
            "AnotherRun" | "Tampered" => {
                let path = record.path().display();
                failure.hinted(format!(
                    "give every option and file as they were when the run began; removing {path} and {path}.key gives it up, and \
                     what it spent with it"
                ))
            }
            "Ledger" => failure.after(UNKNOWN, AGAIN),
            _ => failure.after(&self.spent, AGAIN),
        }
    }

    /// Writes the files, prints the answer, and ends the run when both are done.
    pub fn deliver(self, answer: &Answer, places: Places, output: &Output) -> Result<(), Failure> {
        if let Some(record) = self.record.as_ref().filter(|record| record.answer().is_none()) {
            let Answer { json, text, notes } = answer;
            // Without it the same command draws the same noise once more.
            let _ = record.store(&json!({ "json": json, "text": text, "notes": notes }).to_string());
        }
        let is_paid = self.is_begun();
        if let Err(failure) = write(answer, places) {
            let printed = output.refuse_nowhere().is_ok()
                && output.deliver(&answer.json, || answer.text.clone()).is_ok_and(|taken| taken);
            let printed_too = format!("{}, and the answer is on standard output", self.spent);
            return Err(match (is_paid, printed, self.is_there()) {
                (true, true, true) => failure.after(&printed_too, AGAIN),
                (true, true, false) => failure.after(&printed_too, SAVE),
                (true, false, true) => failure.after(&self.spent, AGAIN),
                (true, false, false) => failure.after(
                    &self.spent,
                    "the answer is lost, as its record is gone too: the same command begins another run",
                ),
                (false, ..) => failure,
            });
        }
        let taken = match output.deliver(&answer.json, || answer.text.clone()) {
            Ok(taken) => taken,
            Err(failure) if self.has_out => {
                self.end(output);
                return Err(
                    failure.after("the answer is in the file of --out", "read the file that --out names")
                );
            }
            Err(failure) if is_paid => return Err(failure.after(&self.spent, AGAIN)),
            Err(failure) => return Err(failure),
        };
        if is_paid && !taken && !self.has_out {
            let closed = Failure::other("standard output was closed before it had taken the answer");
            return Err(closed.after(&self.spent, AGAIN));
        }
        self.hand_over(output);
        answer.notes.iter().for_each(|note| output.warn(note));
        Ok(())
    }

    /// Whether the run may have been paid for.
    pub fn is_begun(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.is_begun())
    }

    /// Whether the record is where the same command finds it.
    pub fn is_there(&self) -> bool {
        self.record.as_ref().is_some_and(|record| std::fs::symlink_metadata(record.path()).is_ok())
    }

    /// Ends the run, once its answer is delivered. If a program asked and a ledger paid, the program ends it.
    pub fn hand_over(self, output: &Output) {
        match &self.record {
            Some(record) if record.is_begun() && output.is_captured() => {
                output.hold(Pending { record: record.clone() });
            }
            _ => self.end(output),
        }
    }

    /// Ends the run.
    pub fn end(self, output: &Output) {
        if let Some(Err(error)) = self.record.as_ref().map(|record| record.end()) {
            output.warn(&not_removed(error));
        }
    }
}

/// A run that was paid for, and whose answer a program has not taken yet. Until it is ended, the same command gives the same answer
/// and spends nothing more, also if it is dropped.
pub struct Pending {
    record: Arc<RunRecord>,
}

impl Pending {
    /// Ends the run, once the program holds its answer. The error says what could not be removed.
    pub fn end(self) -> Result<(), String> {
        self.record.end().map_err(not_removed)
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("path", &self.record.path()).finish()
    }
}

fn not_removed(error: semidp_core::Error) -> String {
    format!("the answer is complete, but what the run kept beside it could not be removed: {error}")
}

/// A ledger that failed may have recorded the debit or not.
pub const UNKNOWN: &str = "nothing was released, and `semidp ledger show` tells whether the run is recorded";
/// What to do with an answer that is in no file.
pub const SAVE: &str = "save what was printed";
const AGAIN: &str = "give the same command again: it gives the same answer, and spends nothing more";

fn write(answer: &Answer, places: Places) -> Result<(), Failure> {
    if let Some(place) = places.certificate {
        place.fill(&pretty(&answer.json["certificate"])?)?;
    }
    if let Some(place) = places.out {
        place.fill(&pretty(&answer.json)?)?;
    }
    Ok(())
}

fn pretty(json: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(json)
        .map_err(|error| Failure::other(format!("cannot write the answer as JSON: {error}")))
}
