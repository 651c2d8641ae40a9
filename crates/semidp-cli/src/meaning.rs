//! What the columns of files mean: as the user says, or as the public rows teach. Private rows are never asked.

use crate::failure::Failure;
use crate::number::count;
use semidp::files;
use semidp_accounting::json;
use semidp_table::{Encoding, LoadOptions, Schema, open_public};
use std::path::Path;

/// Where the meaning of columns comes from.
pub struct Meaning<'a> {
    /// A schema in a file.
    pub schema: Option<&'a Path>,
    /// The public rows.
    pub public: Option<&'a Path>,
    /// Some of the columns.
    pub columns: Option<&'a [&'a str]>,
    /// How the public file is read.
    pub loading: LoadOptions,
    /// What else must be given without public rows.
    pub without_public: &'a str,
}

impl Meaning<'_> {
    /// The schema, after `choose` had its say, and whether there are public rows.
    pub fn find(
        &self,
        choose: impl FnOnce(Schema, &mut Vec<String>) -> Result<Schema, Failure>,
        notes: &mut Vec<String>,
    ) -> Result<(Schema, bool), Failure> {
        let Some(path) = self.schema else {
            let Some(public) = self.public else {
                return Err(Failure::input(
                    "--schema must be given without --public: what columns mean is never learned from private rows",
                    format!(
                        "`semidp schema --public FILE` writes one to start from; {}",
                        self.without_public
                    ),
                ));
            };
            let inferred = Schema::infer_with(public, self.columns, &self.loading)?;
            notes.extend(unclosed_note(inferred.unclosed));
            let skipped = inferred.skipped.iter();
            notes.extend(
                skipped.map(|skipped| format!("column {} is left out: it {}", skipped.name, skipped.reason)),
            );
            return Ok((choose(inferred.schema, notes)?, true));
        };
        let failed =
            |error: semidp_table::Error| Failure::from(error).about(&format!("--schema {}", path.display()));
        let text = files::read("schema", path)?;
        json::check_size(&text)
            .map_err(|error| failed(semidp_table::Error::MalformedSchema { reason: error.to_string() }))?;
        let schema = Schema::from_json(&text).map_err(failed)?;
        let schema = choose(schema, notes)?;
        let Some(public) = self.public else { return Ok((schema, false)) };
        match open_public(public, &schema, &Encoding::identity(&schema)?, self.loading.clone()) {
            Ok(_) => Ok((schema, true)),
            Err(semidp_table::Error::NoRows { .. }) => {
                notes.push("the public file has no rows: this is plain differential privacy".into());
                Ok((schema, false))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What a user should know of public rows with unclosed quotes. Nothing of the kind is said of private rows.
pub fn unclosed_note(rows: usize) -> Option<String> {
    (rows > 0).then(|| {
        format!(
            "{} rows of the public file open a quote and do not close it in their line: cells from there on are missing; \
             --multiline lets fields span lines",
            count(rows as u64)
        )
    })
}
