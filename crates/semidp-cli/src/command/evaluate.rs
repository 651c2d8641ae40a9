//! `semidp evaluate`: how good a model is on the rows of a file.

use crate::command::train::{NOT_PRIVATE, read_model};
use crate::failure::Failure;
use crate::metrics;
use crate::number::count;
use crate::options::ReadingOptions;
use crate::output::Output;
use crate::table;
use clap::Args;
use semidp::model::Predictor;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp evaluate --model model.json --data test.csv";

const NOT_COVERED: &str =
    "these metrics are exact: if the rows are private, they are a release that NO epsilon covers";

/// Measure a model on rows that may be looked at.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Evaluate {
    /// The model that `semidp train` wrote
    #[arg(long, value_name = "MODEL")]
    model: PathBuf,

    /// Rows with the target
    #[arg(long, value_name = "FILE")]
    data: PathBuf,

    #[command(flatten)]
    reading: ReadingOptions,
}

impl Evaluate {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let predictor = Predictor::new(read_model(&self.model)?)?.with_loading(self.reading.loading());
        let (found, unknown) = predictor.evaluate(&self.data)?;
        let target = &predictor.saved().target;
        let Some(found) = found else {
            return Err(Failure::input(
                format!("no row of {} has a known {}", self.data.display(), target.column()),
                "the target must be among the columns, with values that the model knows",
            ));
        };
        let certificate = &predictor.saved().certificate;
        let is_private = certificate.declassified.is_empty();
        let mut measured = metrics::json(&found, target);
        if let Some(fields) = measured.as_object_mut() {
            fields.shift_remove("rows");
        }
        let answer = json!({
            "rows": found.rows,
            "rows_without_target": unknown,
            "task": target.task().name(),
            "target": target.column(),
            "algorithm": predictor.saved().algorithm,
            "metrics": measured,
            "model_private": is_private,
            // Infinity is null in JSON.
            "model_epsilon": certificate.guarantee.epsilon.get(),
            "model_delta": is_private.then(|| certificate.guarantee.delta.get()),
            "not_covered": NOT_COVERED,
        });
        output.answer(&answer, || {
            let measured = metrics::words(&found, target);
            let rows = count(found.rows as u64);
            table::wrap(&format!("{rows} rows, predicting {}: {measured}.", target.column()), "")
        })?;
        if unknown > 0 {
            output.note(&format!("{unknown} rows without a known {} are left out", target.column()));
        }
        if !is_private {
            output.warn(NOT_PRIVATE);
        }
        output.warn(NOT_COVERED);
        Ok(())
    }
}
