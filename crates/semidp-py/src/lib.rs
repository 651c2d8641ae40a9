//! The native half of the Python package `semidp`.
//!
//! It is thin on purpose: Python asks the very commands that the command line has ([`semidp_cli::ask`], [`semidp_cli::train`]), with
//! arrays in place of files, and so gets the same checks, the same numbers and the same certificates. Arguments and answers
//! are plain; the Python half gives them their manners. No function here opens private rows: they go to the kernel where they
//! lie. The interpreter's lock is released while the library works.

mod ask;
mod error;
mod model;
mod table;
mod train;
mod value;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<ask::Pending>()?;
    module.add_function(wrap_pyfunction!(ask::ask, module)?)?;
    module.add_function(wrap_pyfunction!(ask::save, module)?)?;
    module.add_function(wrap_pyfunction!(ask::main, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)
}
