//! What can go wrong between a table and a model.

use std::path::PathBuf;

/// Everything refused here. None of it tells a cell of a private file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The target is not what the task needs.
    #[error("the target {column} must {requirement}")]
    Target {
        /// The column.
        column: String,
        /// What it must be like.
        requirement: String,
    },

    /// Nothing to learn from.
    #[error("there must be at least one feature besides the target {column}")]
    NoFeatures {
        /// The target.
        column: String,
    },

    /// No public row has a label.
    #[error("no row of {path} has a known {column}")]
    NoLabels {
        /// The file.
        path: PathBuf,
        /// The target.
        column: String,
    },

    /// Not a model file, or one that was changed.
    #[error("not a model file of semidp: {reason}")]
    Malformed {
        /// What is the matter.
        reason: String,
    },

    /// A model file of another version.
    #[error("the model file has format {found}, this version reads {known}")]
    UnknownFormat {
        /// Its format.
        found: String,
        /// What is known.
        known: &'static str,
    },

    /// The table refused.
    #[error(transparent)]
    Table(#[from] semidp_table::Error),

    /// An algorithm refused.
    #[error(transparent)]
    Algorithm(#[from] semidp::Error),
}

/// The result of work on tables and models.
pub type Result<T> = std::result::Result<T, Error>;
