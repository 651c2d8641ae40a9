//! The experiments of the paper, reproduced: one file each under `experiment`, and a line in [`EXPERIMENTS`].
//!
//! An experiment takes [`Settings`] and gives an [`Outcome`]: findings in words, tables, charts, and everything as
//! JSON; [`report`] turns outcomes into one HTML page. It writes nothing but for a moment; files of published data are
//! read where an experiment needs some. All else is synthetic and seeded, so every figure can be produced again. The noise
//! goes through the kernel, as it does for anybody else, where an experiment does not say that it is emulated.

mod autopilot;
mod coins;
mod experiment;
mod files;
mod linreg;
mod noise;
mod parallel;
mod pieces;
mod product;
mod published;
mod regression;
mod report;

pub use experiment::{EXPERIMENTS, Experiment};
pub use noise::{NoiseCost, noise_costs};
pub use pieces::{NoPieces, Pieces, Settings};
pub use report::report;

use semidp_plot::Chart;
use serde_json::{Value, json};

/// A table of results.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The name of its file, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// One a column.
    pub headings: Vec<String>,
    /// As many cells as headings.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
    /// Nothing.
    Empty,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Number)
    }
}

impl Table {
    /// As comma-separated values, with all digits.
    pub fn csv(&self) -> String {
        let quoted = |text: &str| {
            if text.contains([',', '"', '\n']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.into()
            }
        };
        let cell = |cell: &Cell| match cell {
            Cell::Number(value) => format!("{value}"),
            Cell::Text(text) => quoted(text),
            Cell::Empty => String::new(),
        };
        let headings = self.headings.iter().map(|heading| quoted(heading)).collect::<Vec<_>>().join(",");
        let rows = self.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(","));
        std::iter::once(headings).chain(rows).collect::<Vec<_>>().join("\n")
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let cells = self.headings.iter().zip(row).map(|(heading, cell)| {
                    let value = match cell {
                        Cell::Number(value) => json!(value),
                        Cell::Text(text) => json!(text),
                        Cell::Empty => Value::Null,
                    };
                    (heading.clone(), value)
                });
                Value::Object(cells.collect())
            })
            .collect();
        json!({ "name": self.name, "title": self.title, "rows": rows })
    }
}

/// What an experiment found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The experiment.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Everything that was fixed: data law, sizes, budget, adjacency, seeds, trials.
    pub setting: Value,
    /// What was found, in words; every figure comes from the tables.
    pub findings: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// Charts with the names of their files, without endings.
    pub charts: Vec<(String, Chart)>,
}

impl Outcome {
    /// Everything but the charts.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "setting": self.setting,
            "findings": self.findings,
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
        })
    }
}

/// Why an experiment ended without an outcome.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An algorithm refused.
    #[error(transparent)]
    Algorithm(#[from] semidp::Error),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] semidp_core::Error),
    /// A privacy question without an answer.
    #[error(transparent)]
    Accounting(#[from] semidp_accounting::Error),
    /// A chart could not be drawn.
    #[error(transparent)]
    Chart(#[from] semidp_plot::Error),
    /// Files that an experiment needs are not there, or not what they should be.
    #[error("{0}")]
    Data(String),
    /// A finished piece could not be kept, or what was kept is not one.
    #[error("{0}")]
    Piece(String),
}

/// The result of an experiment.
pub type Result<T> = std::result::Result<T, Error>;
