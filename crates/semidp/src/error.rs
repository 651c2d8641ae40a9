//! The errors of the library.

use crate::wording::Sentence;
use std::path::PathBuf;

/// Everything that the library refuses.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside the set on which it means anything.
    #[error("{name} must be {requirement}, got {value}")]
    InvalidParameter {
        /// The parameter, as it is called on the command line.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        requirement: &'static str,
    },

    /// Options that do not go together, or one that is missing.
    #[error("{problem}")]
    Usage {
        /// The parameter to change.
        parameter: &'static str,
        /// What is wrong.
        problem: Sentence,
        /// How to put it right.
        hint: Sentence,
    },

    /// No estimator of that name, or none that fits.
    #[error("the estimator `{name}` {reason}")]
    Unsuitable {
        /// The estimator.
        name: String,
        /// Why it cannot be used here.
        reason: String,
    },

    /// Gaussian noise that leaves a row recognisable in a single step.
    #[error(
        "noise-multiplier must be at least {least}, got {noise_multiplier:.3} for this budget: a single step would show \
         whether a row took part in it"
    )]
    WeakNoise {
        /// The noise multiplier that the budget leads to.
        noise_multiplier: f64,
        /// The smallest one that needs no consent.
        least: f64,
    },

    /// A quantity that was to be learned from public rows needs more of them.
    #[error("{quantity} cannot be learned from {rows} public rows; at least {needed} are needed")]
    TooFewPublicRows {
        /// What was to be learned.
        quantity: &'static str,
        /// How many there are.
        rows: u64,
        /// How many there must be.
        needed: u64,
    },

    /// A checkpoint that is not there, not one, or there when it should not be.
    #[error("the checkpoint {path} {reason}")]
    Checkpoint {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },

    /// The run of a checkpoint has ended.
    #[error("the run of the checkpoint {path} has ended: its result was written before")]
    Ended {
        /// The file.
        path: String,
    },

    /// The run was asked to stop before it began.
    #[error("interrupted before the first step: nothing was spent")]
    Stopped,

    /// The run was asked to stop, and did so after a step.
    #[error("interrupted after step {step} of {steps}; {checkpoint} holds what is done")]
    Interrupted {
        /// Steps done,
        step: u64,
        /// of so many.
        steps: u64,
        /// Where to go on from.
        checkpoint: String,
    },

    /// The target of a model is not what its task needs.
    #[error("the target {column} must {requirement}")]
    Target {
        /// The column.
        column: String,
        /// What it must be like.
        requirement: String,
    },

    /// A model needs at least one feature.
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
    MalformedModel {
        /// What is wrong with it.
        reason: String,
    },

    /// A model file of another version.
    #[error("the model file has format {found}, this version reads {known}")]
    UnknownModelFormat {
        /// Its format.
        found: String,
        /// The format that this version reads.
        known: &'static str,
    },

    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] semidp_table::Error),

    /// The ledger refused or cannot be used.
    #[error(transparent)]
    Ledger(#[from] semidp_ledger::Error),

    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] semidp_core::Error),

    /// A privacy question without an answer.
    #[error(transparent)]
    Accounting(#[from] semidp_accounting::Error),
}

impl Error {
    pub(crate) fn invalid(name: &'static str, value: impl ToString, requirement: &'static str) -> Self {
        Self::InvalidParameter { name, value: value.to_string(), requirement }
    }

    /// Options that do not go together, or one that is missing.
    pub fn usage(parameter: &'static str, problem: impl Into<Sentence>, hint: impl Into<Sentence>) -> Self {
        Self::Usage { parameter, problem: problem.into(), hint: hint.into() }
    }
}

/// The result of a call of the library.
pub type Result<T> = std::result::Result<T, Error>;
