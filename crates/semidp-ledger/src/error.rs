//! What a ledger refuses, and what can go wrong with its file.

use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Everything that can go wrong with a ledger.
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

    /// The file cannot be read or written.
    #[error("cannot use the ledger {}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the operating system or the database says.
        reason: String,
    },

    /// The database failed while an entry was being committed: the disk may hold it.
    #[error("cannot use the ledger {}: {reason}", path.display())]
    Uncertain {
        /// The file.
        path: PathBuf,
        /// What the operating system or the database says.
        reason: String,
    },

    /// The file is something else. It was not touched.
    #[error("{} is not a ledger of semidp", path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
    },

    /// The ledger has a form that this version does not know. It was not touched.
    #[error("the ledger {} has format {found}, this version of semidp knows {known}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },

    /// An entry is as semidp wrote it, but says something that this version does not know.
    #[error("entry {entry} of the ledger {} is not understood: {reason}", path.display())]
    UnknownEntry {
        /// The file.
        path: PathBuf,
        /// The sequence number of the entry.
        entry: u64,
        /// What is not understood.
        reason: String,
    },

    /// The entries and their digests do not belong together. Nothing was granted.
    #[error("the ledger {} was changed by something other than semidp: {what}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Where it shows.
        what: String,
    },

    /// No budget was set for this data set.
    #[error("the ledger {} has no data set `{dataset}`", path.display())]
    UnknownDataset {
        /// The file.
        path: PathBuf,
        /// The name that was asked for.
        dataset: String,
    },

    /// The data set has a budget already, and budgets do not change.
    #[error("the ledger {} has a budget for the data set `{dataset}` already", path.display())]
    AlreadySet {
        /// The file.
        path: PathBuf,
        /// The data set.
        dataset: String,
    },

    /// The budget does not cover the charge. Nothing was recorded.
    #[error("{reason}")]
    Refused {
        /// What would go over.
        reason: String,
    },

    /// What was recorded could not be composed.
    #[error(transparent)]
    Accounting(#[from] semidp_accounting::Error),
}

impl Error {
    pub(crate) fn unusable(path: &Path, reason: impl ToString) -> Self {
        Self::Unusable { path: path.into(), reason: reason.to_string() }
    }

    pub(crate) fn changed(path: &Path, what: impl Into<String>) -> Self {
        Self::Changed { path: path.into(), what: what.into() }
    }

    /// What the database says while a ledger is read: a table or a value that is not as it was made is a change.
    ///
    /// The database engine says "malformed" where the operating system says EIO. So before anybody is suspected, the file is looked
    /// at once more: bytes that cannot be read were not changed, nor were those of a database that is whole after all.
    pub(crate) fn reading(path: &Path, error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) {
            if let Err(failed) = read_through(path) {
                return Self::unusable(path, failed);
            }
            if is_whole(path) {
                return Self::unusable(path, "the disk failed for a moment; try again");
            }
        }
        match error.sqlite_error_code() {
            None | Some(ErrorCode::Unknown | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::changed(path, error.to_string())
            }
            Some(_) => Self::unusable(path, error),
        }
    }
}

/// Reads a file from its beginning to its end.
fn read_through(path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink()).map(drop)
}

/// Whether the database engine finds nothing wrong with the file.
fn is_whole(path: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let check = |database: Connection| {
        database.query_row("PRAGMA integrity_check(1)", (), |row| row.get::<_, String>(0))
    };
    Connection::open_with_flags(path, flags).and_then(check).is_ok_and(|found| found == "ok")
}

impl From<Error> for semidp_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { reason } => Self::BudgetRefused { reason },
            other => Self::Ledger { reason: other.to_string() },
        }
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
