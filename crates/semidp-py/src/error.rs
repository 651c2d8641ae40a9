//! Failures as exceptions: one class a variant, in `semidp.errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use semidp_cli::Failure;
use std::any::Any;

/// The exception for a failure of the library.
pub fn raise(py: Python<'_>, failure: &Failure) -> PyErr {
    exception(py, failure.variant(), failure.message(), failure.hint())
}

/// The exception for any error of the tables below the commands.
pub fn raise_from(py: Python<'_>, error: impl Into<Failure>) -> PyErr {
    raise(py, &error.into())
}

/// The exception for a panic, which is a bug of ours.
pub fn raise_panic(py: Python<'_>, payload: &(dyn Any + Send)) -> PyErr {
    let what = payload.downcast_ref::<&str>().map(|text| text.to_string());
    let what = what.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    exception(py, "Internal", &format!("internal error, please report this: {what}"), None)
}

fn exception(py: Python<'_>, variant: &str, message: &str, hint: Option<&str>) -> PyErr {
    let made = py
        .import("semidp.errors")
        .and_then(|errors| errors.call_method1("_exception", (variant, message, hint)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        // The package is being torn down; the message must not be lost.
        Err(_) => PyRuntimeError::new_err(message.to_string()),
    }
}
