//! The errors of the kernel. None carries a value of the private data.

use semidp_accounting::Adjacency;

/// Everything the kernel refuses.
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

    /// Two things that must fit together do not.
    #[error("{what} has {found} {of}, expected {expected}")]
    Shape {
        /// What was given.
        what: &'static str,
        /// What was counted: columns, values, offsets.
        of: &'static str,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },

    /// No event describes this noise under this sampling, so it has no certificate.
    #[error("{noise} with {sampling} sampling has no privacy event")]
    NoEvent {
        /// The noise.
        noise: &'static str,
        /// The sampling.
        sampling: &'static str,
    },

    /// A sampling that needs the number of private units, where that number is secret.
    #[error("{sampling} sampling needs the number of private rows, which is secret under {adjacency}")]
    SecretCount {
        /// The sampling.
        sampling: &'static str,
        /// The adjacency.
        adjacency: Adjacency,
    },

    /// A ticket, partial sum or value of one run was used in another.
    #[error("this {thing} belongs to another run")]
    Foreign {
        /// The ticket, partial sum or value.
        thing: &'static str,
    },

    /// A run that a fork copied: two processes would draw the same noise.
    #[error("this run was begun by another process: a forked process must begin its own")]
    Forked,

    /// Partial sums that are not of one and the same query and step, or overlap.
    #[error("these partial sums do not belong together: {reason}")]
    Unmergeable {
        /// What differs.
        reason: &'static str,
    },

    /// A partial sum over a part of the units only.
    #[error("this partial sum covers {found} of {expected} shards; merge the others first")]
    Incomplete {
        /// Shards it covers.
        found: u32,
        /// Shards there are.
        expected: u32,
    },

    /// A ledger refused the debit. Nothing was released.
    #[error("the privacy budget does not cover this: {reason}")]
    BudgetRefused {
        /// What would go over.
        reason: String,
    },

    /// A ledger could not be asked. Nothing was released.
    #[error("the charge could not be recorded: {reason}")]
    Ledger {
        /// What happened.
        reason: String,
    },

    /// A data source failed. Its text names block and column only.
    #[error("block {block} of the data cannot be read: {reason}")]
    Source {
        /// The block.
        block: usize,
        /// What happened; never a value.
        reason: &'static str,
    },

    /// The key of a run cannot be written, read or trusted.
    #[error("the key file {path} {reason}")]
    KeyFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// Another process is at the run of this key.
    #[error("the key file {path} is in use: another process is at this run")]
    KeyInUse {
        /// The file.
        path: String,
    },

    /// Another process was at the same run, and ended it while this one waited.
    #[error("another process was at the run of {path}, and has ended it meanwhile")]
    EndedElsewhere {
        /// The record of the run.
        path: String,
    },

    /// The key of a run whose result was written before.
    #[error("the run of the key file {path} has ended: its result was written before")]
    RunEnded {
        /// The file.
        path: String,
    },

    /// The record of a run cannot be written, or its run cannot be continued.
    #[error("the record of the run, {path}, {reason}")]
    Record {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// What a run would go on with is not what it began with: going on would use its noise a second time, on
    /// something else.
    #[error("this is not the run that the checkpoint is of: {difference}")]
    AnotherRun {
        /// What differs.
        difference: String,
    },

    /// A checkpoint that its run did not write.
    #[error("the checkpoint was changed after it was written, or its key file belongs to another run")]
    Tampered,

    /// The operating system gave no randomness.
    #[error("the operating system's random generator failed")]
    NoRandomness,

    /// A privacy question without an answer.
    #[error(transparent)]
    Accounting(#[from] semidp_accounting::Error),
}

impl Error {
    pub(crate) fn invalid(name: &'static str, value: impl ToString, requirement: &'static str) -> Self {
        Self::InvalidParameter { name, value: value.to_string(), requirement }
    }
}

/// The kernel's result.
pub type Result<T> = std::result::Result<T, Error>;
