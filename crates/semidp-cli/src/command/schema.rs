//! `semidp schema`: what the columns of a public file mean, to be checked and edited.

use crate::failure::Failure;
use crate::meaning::unclosed_note;
use crate::number::nearest;
use crate::options::ReadingOptions;
use crate::output::Output;
use crate::table;
use clap::Args;
use semidp::files::{self, kind};
use semidp_table::{Kind, Schema};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp schema --public q.csv --out schema.json";

/// Learn what columns mean from public rows.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct SchemaCommand {
    /// The public rows
    #[arg(long, value_name = "FILE")]
    public: PathBuf,

    /// Some of the columns [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    #[command(flatten)]
    reading: ReadingOptions,

    /// Write the schema (JSON) to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl SchemaCommand {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        files::refuse_same(&[("public", Some(&self.public)), ("out", self.out.as_ref())])?;
        if let Some(out) = &self.out {
            kind::refuse_other("out", out, kind::Kind::Schema)?;
        }
        let names: Option<Vec<&str>> =
            self.columns.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let inferred = Schema::infer_with(&self.public, names.as_deref(), &self.reading.loading())?;
        let text = inferred.schema.to_json();
        if let Some(path) = &self.out {
            files::write("out", path, &text)?;
        }
        let json: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::other(format!("cannot write the schema as JSON: {error}")))?;
        let skipped: Vec<Value> = inferred
            .skipped
            .iter()
            .map(|skipped| json!({ "name": skipped.name, "reason": skipped.reason }))
            .collect();
        output.answer(&json!({ "schema": json, "skipped": skipped }), || {
            let learned = inferred.schema.columns().iter().map(|column| {
                let meaning = match &column.kind {
                    Kind::Number { impute, .. } => {
                        format!("number; missing cells become {}", nearest(*impute, 5))
                    }
                    Kind::Category { values } => format!("category of {} values, and other", values.len()),
                };
                (column.name.clone(), meaning)
            });
            let skipped = inferred.skipped.iter();
            let skipped =
                skipped.map(|skipped| (skipped.name.clone(), format!("left out: it {}", skipped.reason)));
            table::facts(learned.chain(skipped).collect())
        })?;
        unclosed_note(inferred.unclosed).iter().for_each(|note| output.note(note));
        Ok(())
    }
}
