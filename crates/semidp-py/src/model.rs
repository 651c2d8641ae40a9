//! A trained model at work on arrays.

use crate::error::raise_from;
use crate::table::Table;
use numpy::PyArray2;
use numpy::ndarray::Array2;
use pyo3::prelude::*;
use semidp::model::{Predictor, SavedModel};

/// A model file, ready to score rows.
#[pyclass(module = "semidp._native", frozen)]
pub struct Model {
    predictor: Predictor,
}

#[pymethods]
impl Model {
    /// Of the text of a model file.
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Self> {
        let saved = SavedModel::from_json(text).map_err(|error| raise_from(py, error))?;
        Ok(Self { predictor: Predictor::new(saved).map_err(|error| raise_from(py, error))? })
    }

    /// A row of scores for each row of a table: numbers in the target's own unit, or one score for two classes, or a score a
    /// class. Cells are completed and moved into their ranges as in training.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        mut table: PyRefMut<'py, Table>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let attached = table.attach("X")?;
        let (scores, outputs) =
            py.detach(|| self.predictor.scores(attached.path())).map_err(|error| raise_from(py, error))?;
        let rows = scores.len() / outputs;
        let scores = Array2::from_shape_vec((rows, outputs), scores);
        let scores = scores.map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))?;
        Ok(PyArray2::from_owned_array(py, scores))
    }
}
