//! `semidp predict`: a model's predictions for the rows of a file.

use crate::command::train::{NOT_PRIVATE, read_model};
use crate::failure::Failure;
use crate::number::count;
use crate::options::ReadingOptions;
use crate::output::Output;
use clap::Args;
use semidp::files::kind::{self, Kind};
use semidp::files::{self, Reserved};
use semidp::model::Predictor;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp predict --model model.json --data rows.csv --out predictions.csv";

/// Predict for the rows of a file.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Predict {
    /// The model that `semidp train` wrote
    #[arg(long, value_name = "MODEL")]
    model: PathBuf,

    /// The rows; the target need not be among their columns
    #[arg(long, value_name = "FILE")]
    data: PathBuf,

    #[command(flatten)]
    reading: ReadingOptions,

    /// Where to write the predictions, as CSV in the order of the rows
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Predict {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        files::refuse_same(&[
            ("model", Some(&self.model)),
            ("data", Some(&self.data)),
            ("out", Some(&self.out)),
        ])?;
        kind::refuse_other("out", &self.out, Kind::Predictions)?;
        let mut out = Reserved::new("out", &self.out)?;
        let predictor = Predictor::new(read_model(&self.model)?)?.with_loading(self.reading.loading());
        out.line(&csv_line(&predictor.headings()))?;
        let mut trouble = None;
        let rows = predictor.predict(&self.data, &mut |cells| {
            if trouble.is_none() {
                trouble = out.line(&csv_line(cells)).err();
            }
        })?;
        if let Some(failure) = trouble {
            return Err(failure.into());
        }
        out.keep()?;
        let saved = predictor.saved();
        let is_private = saved.certificate.declassified.is_empty();
        let answer = json!({
            "rows": rows,
            "columns": predictor.headings(),
            "task": saved.target.task().name(),
            "target": saved.target.column(),
            "model_private": is_private,
            "out": self.out.display().to_string(),
        });
        output.answer(&answer, || {
            format!("{} predictions of {} are in {}.", count(rows), saved.target.column(), self.out.display())
        })?;
        if !is_private {
            output.warn(NOT_PRIVATE);
        }
        output.note(
            "predictions tell about the rows that they are for: the model's certificate does not cover these",
        );
        Ok(())
    }
}

/// Cells with quotes where they are needed.
fn csv_line(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(",")
}
