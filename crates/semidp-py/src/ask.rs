//! Any command, asked from Python.

use crate::error::{raise, raise_panic};
use crate::table::Table;
use crate::value::to_python;
use pyo3::prelude::*;
use semidp_cli::{Answer, Failure};
use semidp_table::Attached;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

/// How long Ctrl-C may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Tables under names, and the words of a command with an option for each.
pub fn attach(
    mut words: Vec<String>,
    tables: BTreeMap<String, PyRefMut<'_, Table>>,
) -> PyResult<(Vec<String>, Vec<Attached>)> {
    let mut attached = Vec::new();
    for (option, mut table) in tables {
        let place = table.attach(&option)?;
        words.extend([format!("--{option}"), place.path().display().to_string()]);
        attached.push(place);
    }
    Ok((words, attached))
}

/// An answer, its warnings, and its run if a ledger paid for it.
pub type Parts<'py> = (Bound<'py, PyAny>, Vec<String>, Option<Pending>);

/// A run that was paid for and whose answer may still be lost: until it is ended, the same call gives the same answer and spends
/// nothing more.
#[pyclass(module = "semidp._native", frozen)]
pub struct Pending {
    run: Mutex<Option<semidp_cli::Pending>>,
}

#[pymethods]
impl Pending {
    /// Ends the run. Returns what should be known of files that could not be removed.
    fn end(&self, py: Python<'_>) -> Option<String> {
        let run = self.taken();
        py.detach(|| run.and_then(|run| run.end().err()))
    }

    /// Lets go of a run that has not ended, for the next call.
    fn release(&self) {
        drop(self.taken());
    }
}

impl Pending {
    fn taken(&self) -> Option<semidp_cli::Pending> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The parts of an answer as Python has them.
pub fn parts(py: Python<'_>, Answer { json, warnings, pending }: Answer) -> PyResult<Parts<'_>> {
    let pending = pending.map(|run| Pending { run: Mutex::new(Some(run)) });
    Ok((to_python(py, &json)?, warnings, pending))
}

/// Asks a command, given by its words without the program's name; `tables` go to the options of these names. Returns the
/// object that `--json` would print, warnings, and the run.
#[pyfunction]
#[pyo3(signature = (words, tables = BTreeMap::new()))]
pub fn ask<'py>(
    py: Python<'py>,
    words: Vec<String>,
    tables: BTreeMap<String, PyRefMut<'py, Table>>,
) -> PyResult<Parts<'py>> {
    let has_tables = !tables.is_empty();
    let (words, attached) = attach(words, tables)?;
    let work = move || catch_unwind(AssertUnwindSafe(|| semidp_cli::ask(&words)));
    let outcome = if has_tables {
        // What spends a budget is not left half-way: Ctrl-C is heard when it is done.
        py.detach(work)
    } else {
        let (sender, receiver) = mpsc::channel();
        let receiver = Mutex::new(receiver);
        let wait = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE);
        // Whoever was interrupted does not wait for the answer; it is computed and dropped.
        std::thread::spawn(move || sender.send(work()));
        loop {
            match py.detach(wait) {
                Ok(outcome) => break outcome,
                Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(Err(Failure::other("no answer"))),
            }
        }
    };
    drop(attached);
    py.check_signals()?;
    parts(py, outcome.map_err(|panic| raise_panic(py, &*panic))?.map_err(|failure| raise(py, &failure))?)
}

/// Writes an answer, a certificate or a model to a file, whole or not at all, and not over a file of another kind.
#[pyfunction]
pub fn save(py: Python<'_>, path: PathBuf, kind: &str, text: &str) -> PyResult<()> {
    py.detach(|| semidp_cli::save(&path, kind, text)).map_err(|failure| raise(py, &failure))
}

/// The command line itself: prints, and returns the exit code.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<String>) -> u8 {
    let code = py.detach(|| semidp_cli::main(words.into_iter().map(Into::into).collect()));
    // An exit code does not tell its number.
    if code == ExitCode::SUCCESS {
        0
    } else {
        (1..=u8::MAX).find(|n| code == ExitCode::from(*n)).unwrap_or(1)
    }
}
