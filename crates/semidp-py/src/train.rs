//! Training, with a callback after each step.

use crate::ask::{Parts, attach, parts};
use crate::error::{raise, raise_from, raise_panic};
use crate::table::Table;
use pyo3::prelude::*;
use semidp::train::Progress;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// How long Ctrl-C may go unnoticed while steps go on.
const PATIENCE: Duration = Duration::from_millis(50);

/// Unwinds a run that Python does not want to go on with. What was spent stays spent; nothing else is left behind.
struct Stop(PyErr);

/// Trains by the words of `train`. `on_step`, if given, is called with the number of steps done and of all steps; `not_covered`
/// goes to the certificate. Returns the text of the model file, the object that `--json` would print, warnings, and the run.
#[pyfunction]
#[pyo3(signature = (words, tables, on_step = None, not_covered = Vec::new()))]
pub fn train<'py>(
    py: Python<'py>,
    words: Vec<String>,
    tables: BTreeMap<String, PyRefMut<'py, Table>>,
    on_step: Option<Py<PyAny>>,
    not_covered: Vec<String>,
) -> PyResult<(String, Parts<'py>)> {
    let (words, attached) = attach(words, tables)?;
    let mut heard = Instant::now();
    let mut see = |progress: Progress<'_>| {
        if on_step.is_none() && heard.elapsed() < PATIENCE {
            return;
        }
        heard = Instant::now();
        let wanted = Python::attach(|py| {
            py.check_signals()?;
            match &on_step {
                Some(on_step) => on_step.call1(py, (progress.step, progress.steps)).map(|_| ()),
                None => Ok(()),
            }
        });
        if let Err(error) = wanted {
            resume_unwind(Box::new(Stop(error)));
        }
    };
    let outcome =
        py.detach(|| catch_unwind(AssertUnwindSafe(|| semidp_cli::train(&words, &not_covered, &mut see))));
    drop(attached);
    let (saved, answer) = match outcome {
        Ok(outcome) => outcome.map_err(|failure| raise(py, &failure))?,
        Err(payload) => {
            return Err(match payload.downcast::<Stop>() {
                Ok(stop) => stop.0,
                Err(payload) => raise_panic(py, &*payload),
            });
        }
    };
    let text = saved.to_json().map_err(|error| raise_from(py, error))?;
    Ok((text, parts(py, answer)?))
}
