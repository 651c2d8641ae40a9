//! Which numbers a row becomes, on either side.

use super::centre::Centre;
use crate::failure::Failure;
use crate::meaning::Meaning;
use semidp_table::{Column, Encoding, Feature, Kind, LoadOptions, Schema};
use std::path::Path;

/// Where the meaning of columns may come from.
pub struct Wishes<'a> {
    pub schema: Option<&'a Path>,
    pub public: Option<&'a Path>,
    pub columns: Option<&'a [String]>,
    pub centre: Option<&'a Centre>,
    /// How files are read.
    pub loading: LoadOptions,
}

/// What rows mean, and the vectors that they become.
pub struct Columns {
    pub schema: Schema,
    pub encoding: Encoding,
    /// What the user should know, once there is an answer.
    pub notes: Vec<String>,
}

impl Wishes<'_> {
    /// As a schema or public rows say; or else columns of a person's own file are numbers as they are.
    pub fn columns_of(&self, own: Option<&Path>) -> Result<Columns, Failure> {
        let names = self.names();
        let names = names.as_deref();
        let mut notes = Vec::new();
        let schema = match own.filter(|_| self.schema.is_none() && self.public.is_none()) {
            Some(path) => plain(Schema::of_numbers_with(path, names, &self.loading)?, self.centre)?,
            None => {
                let without_public = "or give --public";
                let meaning = Meaning {
                    schema: self.schema,
                    public: self.public,
                    columns: names,
                    loading: self.loading.clone(),
                    without_public,
                };
                meaning.find(|schema, notes| chosen(schema, names, notes), &mut notes)?.0
            }
        };
        let encoding = Encoding::identity(&schema)?;
        let Some(centre) = self.centre else { return Ok(Columns { schema, encoding, notes }) };
        centre.check(encoding.names())?;
        let features = encoding.features().iter().zip(&centre.numbers);
        let moved: Option<Vec<Feature>> = features
            .map(|(feature, shift)| match *feature {
                Feature::Number { column, scale, .. } => {
                    Some(Feature::Number { column, shift: *shift, scale })
                }
                Feature::Indicator { .. } | Feature::Code { .. } => None,
            })
            .collect();
        let moved = moved.ok_or_else(|| {
            Failure::input(
                "--centre must not be given with columns of text",
                "take columns of numbers with --columns, or leave --centre out",
            )
        })?;
        Ok(Columns { encoding: Encoding::new(&schema, moved)?, schema, notes })
    }

    /// The columns that were asked for.
    fn names(&self) -> Option<Vec<&str>> {
        let names = self.columns?.iter().map(|name| name.trim());
        Some(names.filter(|name| !name.is_empty()).collect())
    }
}

/// A missing cell of a person's own file counts as the centre, so that it says nothing.
fn plain(schema: Schema, centre: Option<&Centre>) -> Result<Schema, Failure> {
    let Some(centre) = centre.filter(|centre| centre.numbers.len() == schema.columns().len()) else {
        return Ok(schema);
    };
    let columns = schema.columns().iter().zip(&centre.numbers).map(|(column, impute)| Column {
        name: column.name.clone(),
        kind: Kind::Number { impute: *impute, range: None },
    });
    Ok(Schema::new(columns.collect())?)
}

/// The columns that were asked for, or all that hold numbers.
fn chosen(schema: Schema, names: Option<&[&str]>, notes: &mut Vec<String>) -> Result<Schema, Failure> {
    if let Some(names) = names {
        return Ok(schema.select(names)?);
    }
    let numbers = schema.numbers();
    if numbers.is_empty() {
        return Err(Failure::input(
            "--columns must be given: no column holds numbers",
            "a column of text that is named in --columns becomes one number for each of its values",
        ));
    }
    if numbers.len() < schema.columns().len() {
        notes.push("columns of text are left out: name them in --columns".into());
    }
    Ok(schema.select(&numbers)?)
}
