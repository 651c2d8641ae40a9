//! What is subtracted from every vector before it is clipped: public, and the same for everybody.

use crate::failure::Failure;
use semidp::files;
use semidp::local::fingerprint;
use semidp_accounting::json;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Numbers, one a column.
pub struct Centre {
    path: PathBuf,
    pub numbers: Vec<f64>,
    columns: Option<Vec<String>>,
    /// `radius` of an answer of semidp: the ball about its own centre, which a next round may take over.
    pub radius: Option<f64>,
}

impl Centre {
    /// Reads a list of numbers, or the `mean` of an answer of semidp.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = files::read("centre", path)?;
        let value = json::parse(&text).map_err(|error| match error {
            json::Error::TooManyValues { most } => {
                refused(path, &format!("have at most {most} JSON values and keys"))
            }
            json::Error::RepeatedKey(_) => refused(path, "have each key once in each object"),
            json::Error::NotJson(_) => refused(path, "be JSON"),
        })?;
        let list = value.get("mean").unwrap_or(&value).as_array();
        let list = list.ok_or_else(|| refused(path, "be a list of numbers, or hold one as `mean`"))?;
        let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
        let numbers = numbers.filter(|numbers| numbers.iter().all(|x| x.is_finite()));
        let numbers = numbers.ok_or_else(|| refused(path, "hold finite numbers only"))?;
        let names = value.get("columns").and_then(Value::as_array);
        let columns =
            names.map(|names| names.iter().map(|name| name.as_str().unwrap_or("").into()).collect());
        let radius = value.get("radius").and_then(Value::as_f64);
        let radius = radius.filter(|radius| *radius > 0.0 && radius.is_finite());
        Ok(Self { path: path.into(), numbers, columns, radius })
    }

    /// What reports say of it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.numbers)
    }

    /// Whether it belongs to vectors of these columns.
    pub fn check(&self, names: &[String]) -> Result<(), Failure> {
        if self.numbers.len() != names.len() {
            let (found, wanted) = (self.numbers.len(), names.len());
            return Err(refused(&self.path, &format!("have a number a column, {wanted}, not {found}")));
        }
        match &self.columns {
            Some(columns) if columns != names => {
                Err(refused(&self.path, "be of the same columns in the same order"))
            }
            _ => Ok(()),
        }
    }
}

fn refused(path: &Path, must: &str) -> Failure {
    Failure::input(
        format!("--centre: {} must {must}", path.display()),
        "a file such as [38.5, 40.2], one number a column, or a JSON answer of semidp with a `mean`",
    )
}
