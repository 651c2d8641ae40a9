//! What the columns of a table mean. Learned from public rows or written by hand, never from private
//! rows.

use crate::cell;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// The name that unseen and missing values of a category go by.
pub const OTHER: &str = "other";

const FORMAT: &str = "semidp-schema/1";

/// The columns of a table.
///
/// As JSON it reads
/// ```
/// # let json = r#"
/// {"format": "semidp-schema/1", "columns": [
///   {"kind": "number", "name": "age", "impute": 38.6, "range": [17, 90]},
///   {"kind": "category", "name": "sex", "values": ["Female", "Male"]}
/// ]}
/// # "#;
/// # assert_eq!(semidp_table::Schema::from_json(json).unwrap().columns().len(), 2);
/// ```
/// where `range` may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Schema {
    columns: Vec<Column>,
}

/// A column by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name in every file.
    pub name: String,
    /// What its cells are.
    pub kind: Kind,
}

/// What the cells of a column are.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Numbers.
    Number {
        /// What stands in for a cell that is missing or not a finite number.
        impute: f64,
        /// The least and the greatest; numbers beyond are moved to the nearer of the two. Infinities
        /// count as missing where there is no range.
        range: Option<(f64, f64)>,
    },
    /// One of a list of values; every other value, and a missing one, is [`OTHER`].
    Category {
        /// The values.
        values: Vec<String>,
    },
}

impl Kind {
    /// In words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Number { .. } => "number",
            Self::Category { .. } => "category",
        }
    }
}

impl Schema {
    /// Checks that names are distinct, numbers finite and in order, values distinct and such as a cell
    /// can have.
    pub fn new(columns: Vec<Column>) -> Result<Self> {
        let mut names = HashSet::new();
        for column in &columns {
            let must = |requirement| {
                let column = column.name.clone();
                Err(Error::InvalidColumn { column, requirement })
            };
            if !names.insert(column.name.as_str()) {
                return must("a name of its own");
            }
            match &column.kind {
                Kind::Number { impute, .. } if !impute.is_finite() => {
                    return must("a finite number to impute");
                }
                Kind::Number { range: Some((least, greatest)), .. }
                    if !(least.is_finite() && greatest.is_finite() && least <= greatest) =>
                {
                    return must("a range of two finite numbers in order");
                }
                Kind::Number { impute, range: Some((least, greatest)) }
                    if impute < least || impute > greatest =>
                {
                    return must("a number to impute that lies in its range");
                }
                Kind::Number { .. } => {}
                Kind::Category { values } => {
                    let mut seen = HashSet::new();
                    if values.iter().any(|value| !seen.insert(value.as_str())) {
                        return must("values that differ from one another");
                    }
                    if values.iter().any(|value| value.len() > cell::MAX_CELL_BYTES) {
                        return must("values of at most 2048 bytes");
                    }
                    if values.iter().any(|value| value == OTHER) {
                        return must("values besides `other`, which stands for all that are not listed");
                    }
                    if values.iter().any(|value| cell::present(value.as_bytes()).as_deref() != Some(value)) {
                        return must("values without spaces around them that do not stand for missing cells");
                    }
                }
            }
        }
        Ok(Self { columns })
    }

    /// The columns in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The place of a column.
    pub fn position(&self, name: &str) -> Result<usize> {
        self.columns.iter().position(|column| column.name == name).ok_or_else(|| Error::UnknownColumn {
            column: name.to_string(),
            known: self.columns.iter().map(|column| column.name.clone()).collect(),
        })
    }

    /// Some of the columns, in the order given.
    pub fn select(&self, names: &[impl AsRef<str>]) -> Result<Self> {
        let places: HashMap<&str, &Column> =
            self.columns.iter().map(|column| (column.name.as_str(), column)).collect();
        let columns = names.iter().map(|name| match places.get(name.as_ref()) {
            Some(column) => Ok((*column).clone()),
            // Says what there is.
            None => self.position(name.as_ref()).map(|place| self.columns[place].clone()),
        });
        Self::new(columns.collect::<Result<_>>()?)
    }

    /// The names of the columns that are numbers.
    pub fn numbers(&self) -> Vec<&str> {
        let numbers = self.columns.iter().filter(|column| matches!(column.kind, Kind::Number { .. }));
        numbers.map(|column| column.name.as_str()).collect()
    }

    /// Gives a column of numbers a range, into which the number to impute moves too.
    pub fn with_range(mut self, name: &str, least: f64, greatest: f64) -> Result<Self> {
        let column = self.position(name)?;
        match &mut self.columns[column].kind {
            Kind::Number { impute, range } => {
                // Not `clamp`, which panics on ends that `new` is about to refuse.
                *impute = impute.max(least).min(greatest);
                *range = Some((least, greatest));
            }
            Kind::Category { .. } => {
                return Err(Error::InvalidColumn {
                    column: name.to_string(),
                    requirement: "numbers to have a range",
                });
            }
        }
        Self::new(self.columns)
    }

    /// Reads a schema back.
    pub fn from_json(json: &str) -> Result<Self> {
        // Where and what kind, but not the text: somebody may give the wrong file.
        let malformed = |error: serde_json::Error| {
            let kind = match error.classify() {
                serde_json::error::Category::Data => "not the fields of a schema",
                _ => "not JSON",
            };
            let reason = format!("{kind}, line {} column {}", error.line(), error.column());
            Error::MalformedSchema { reason }
        };
        // The format first: a newer one may well have fields that this version cannot name.
        if let Ok(Format { format }) = serde_json::from_str(json) {
            check_format(&format)?;
        }
        // From the text again, so that the error says where.
        let document: Document = serde_json::from_str(json).map_err(malformed)?;
        Self::try_from(document)
    }

    /// Writes the schema down.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("texts and finite numbers have a JSON form")
    }
}

fn check_format(found: &str) -> Result<()> {
    if found == FORMAT {
        return Ok(());
    }
    Err(Error::UnknownSchemaFormat { found: found.to_string(), known: FORMAT })
}

/// The format of a document whose other fields are not built.
#[derive(Deserialize)]
struct Format {
    format: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    columns: Vec<ColumnDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum ColumnDocument {
    Number {
        name: String,
        impute: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<(f64, f64)>,
    },
    Category {
        name: String,
        values: Vec<String>,
    },
}

impl TryFrom<Document> for Schema {
    type Error = Error;

    fn try_from(document: Document) -> Result<Self> {
        check_format(&document.format)?;
        let column = |column| match column {
            ColumnDocument::Number { name, impute, range } => {
                Column { name, kind: Kind::Number { impute, range } }
            }
            ColumnDocument::Category { name, values } => Column { name, kind: Kind::Category { values } },
        };
        Self::new(document.columns.into_iter().map(column).collect())
    }
}

impl From<Schema> for Document {
    fn from(schema: Schema) -> Self {
        let column = |Column { name, kind }| match kind {
            Kind::Number { impute, range } => ColumnDocument::Number { name, impute, range },
            Kind::Category { values } => ColumnDocument::Category { name, values },
        };
        Self { format: FORMAT.to_string(), columns: schema.columns.into_iter().map(column).collect() }
    }
}
