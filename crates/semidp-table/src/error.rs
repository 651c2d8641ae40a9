//! The errors of this crate. None carries a cell of a table: they name files, columns and types only.

use std::path::{Path, PathBuf};

/// Everything that can be wrong with a file, a schema or an encoding.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file name that says nothing known about the format.
    #[error("{} is of no known format: its name must end in {known}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The endings there are.
        known: &'static str,
    },

    /// A file that the operating system does not let us read, or that is broken.
    #[error("{} cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system or the format says; never a cell.
        reason: String,
    },

    /// A public file with a header but nothing else.
    #[error("{} has no rows", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },

    /// Columns that the encoding needs and the file does not have.
    #[error("{} lacks the columns {}{naming}", path.display(), listed(columns))]
    MissingColumns {
        /// The file.
        path: PathBuf,
        /// All that are missing.
        columns: Vec<String>,
        /// Where the names of a file of text are from, in words that its text cannot change.
        naming: &'static str,
    },

    /// A file beside a `.data` or `.test` file that does not name the columns of a table.
    #[error(
        "{} does not list columns as C4.5 does: {reason}; without this file the columns are x0, x1, ...",
        path.display()
    )]
    MalformedNames {
        /// The `.names` file.
        path: PathBuf,
        /// What is wrong, and in which line; never the text.
        reason: String,
    },

    /// Two columns of one name.
    #[error("{} has more than one column {column}", path.display())]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
    },

    /// A column of a type that has no meaning here, such as a date.
    #[error("column {column} of {} is of type {found}, which is read neither as a number nor as text", path.display())]
    UnsupportedType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type in the file.
        found: String,
    },

    /// A column of another kind than the schema says.
    #[error("column {column} of {} is a {found}, but the schema says a {expected}", path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What the schema says.
        expected: &'static str,
        /// What the file says.
        found: &'static str,
    },

    /// A column of a public file with numbers in some cells and other text in others.
    #[error("column {column} of {} holds both numbers and text", path.display())]
    MixedColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },

    /// A column of a public file without one cell to learn from.
    #[error("column {column} of {} has missing cells only", path.display())]
    EmptyColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },

    /// A column of text that is no category.
    #[error("column {column} of {} has more than {limit} different values", path.display())]
    TooManyValues {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// How many a category may have.
        limit: usize,
    },

    /// A column of a public file with a cell that is too long for a category.
    #[error("column {column} of {} has a cell of more than {limit} bytes", path.display())]
    ValueTooLong {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The longest cell of text.
        limit: usize,
    },

    /// The arrays of an NPZ file are no table.
    #[error("the arrays {} of {} differ in length", listed(arrays), path.display())]
    DifferentLengths {
        /// The file.
        path: PathBuf,
        /// The arrays.
        arrays: Vec<String>,
    },

    /// Arrays in memory that are not of the promised shape.
    #[error("an array has {rows} rows and {columns} columns, expected {expected_rows} and {expected}")]
    Ragged {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// The rows of the table.
        expected_rows: usize,
        /// The number of names.
        expected: usize,
    },

    /// A strict load met a cell that it would otherwise have replaced.
    #[error("column {column} of {} {problem}", path.display())]
    Strict {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What kind of cell; never which.
        problem: Problem,
    },

    /// A column that the schema does not know.
    #[error("there is no column {column}; the columns are {}", listed(known))]
    UnknownColumn {
        /// What was asked for.
        column: String,
        /// What there is.
        known: Vec<String>,
    },

    /// A column of a schema that means nothing.
    #[error("column {column} of the schema must have {requirement}")]
    InvalidColumn {
        /// The column.
        column: String,
        /// What it must have.
        requirement: &'static str,
    },

    /// A feature that does not fit the schema.
    #[error("feature {feature} must be {requirement}")]
    InvalidFeature {
        /// Its place in the encoding, from 0.
        feature: usize,
        /// What it must be.
        requirement: &'static str,
    },

    /// A schema written by another version.
    #[error("the schema is in format {found}; this version reads {known}")]
    UnknownSchemaFormat {
        /// What it says.
        found: String,
        /// What is read here.
        known: &'static str,
    },

    /// A schema that is not the JSON it should be.
    #[error("the schema cannot be read: {reason}")]
    MalformedSchema {
        /// Where and why.
        reason: String,
    },
}

/// What a strict load objects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A cell that is missing, or not a finite number where one is expected.
    Missing,
    /// A number outside the range of its column.
    OutOfRange,
    /// A value that the schema does not list.
    Unseen,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Missing => "has missing or unreadable cells",
            Self::OutOfRange => "has values out of range",
            Self::Unseen => "has unseen categories",
        })
    }
}

impl Error {
    pub(crate) fn unreadable(path: &Path, reason: impl ToString) -> Self {
        Self::Unreadable { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

fn listed(names: &[String]) -> String {
    names.join(", ")
}

/// This crate's result.
pub type Result<T> = std::result::Result<T, Error>;
