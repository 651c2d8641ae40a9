//! The file: made whole or not at all, opened only if it is a ledger.

use crate::book::{Book, FORMAT, FORMAT_1, one_line};
use crate::{Account, DatasetLedger, Error, FilterState, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use semidp_accounting::{Adjacency, PrivacyBudget};
use semidp_core::files::{self, Draft};
use semidp_core::{RunId, smallest_delta};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a process waits for others that record a run.
const PATIENCE: Duration = Duration::from_secs(60);
/// What every SQLite file begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Marks a SQLite file as a ledger: "smdp".
const APPLICATION: u32 = 0x736d_6470;
/// The version of the tables, and the one that is brought up to date when it is opened.
const VERSION: u32 = FORMAT.version;
const FIRST_VERSION: u32 = FORMAT_1.version;
/// Where SQLite keeps these two, big-endian.
const APPLICATION_AT: usize = 68;
const VERSION_AT: usize = 60;
/// Where SQLite keeps the version that a writer must understand: 1 for a rollback journal, 2 for a log beside the file.
const WRITE_VERSION_AT: usize = 18;
const ROLLBACK: u8 = 1;
const HEADER: usize = 100;
/// Far more coordinates of noise than all runs on a data set will ever draw: a thousand million million.
const MOST_DRAWS: f64 = (1u64 << 50) as f64;

/// A ledger in a file, open.
#[derive(Debug)]
pub struct LedgerFile {
    pub(crate) path: PathBuf,
    pub(crate) database: Connection,
}

impl LedgerFile {
    /// Sets the budget of a data set, in a new ledger if the file does not exist. A budget that is set stays:
    /// for a data set that has one this is [`Error::AlreadySet`].
    pub fn init(
        path: impl AsRef<Path>,
        dataset: &str,
        budget: PrivacyBudget,
        adjacency: Adjacency,
    ) -> Result<Self> {
        let path = path.as_ref();
        check(dataset, budget)?;
        files::remove_abandoned(path);
        // Also a link that leads nowhere is something that is there.
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
            && create(path, dataset, budget, adjacency)?
        {
            return Self::open(path);
        }
        let mut file = Self::open(path)?;
        file.add_budget(dataset, budget, adjacency)?;
        Ok(file)
    }

    /// Opens a ledger, and verifies it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // Before the database engine sees the file: it might tidy up in what is none of ours.
        let mut header = recognise(path)?;
        let real = fs::canonicalize(path).map_err(|error| Error::unusable(path, error))?;
        // One process at a time brings a file up to date: the database engine does not wait while another one leaves the old mode, it
        // fails.
        let mut _lock = None;
        if header.is_old() {
            _lock = real.parent().map(lock).transpose().map_err(|error| Error::unusable(path, error))?;
            header = recognise(path)?;
        }
        if header.write_version == ROLLBACK {
            // This file has no such log. The one that lies there is what another ledger of this name left behind, and the
            // database engine would take its content for newer.
            set_aside(&real, &["-wal", "-shm"]).map_err(|error| Error::unusable(path, error))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(real, flags)
            .and_then(set_up)
            .map_err(|error| Error::reading(path, error))?;
        let mut file = Self { path: path.into(), database };
        if header.is_old() {
            file.bring_up_to_date()?;
        }
        file.read()?;
        Ok(file)
    }

    /// Every data set, in the order in which their budgets were set.
    pub fn datasets(&self) -> Result<Vec<Account>> {
        let book = self.read()?;
        let names: Vec<&str> = book.budgets.iter().map(|budget| &*budget.dataset).collect();
        names.into_iter().map(|dataset| self.account(&book, dataset)).collect()
    }

    /// One data set.
    pub fn dataset(&self, dataset: &str) -> Result<Account> {
        self.account(&self.read()?, dataset)
    }

    /// The ledger of one data set, for a session.
    pub fn for_dataset(self, dataset: &str) -> Result<DatasetLedger> {
        self.read()?.budget(dataset, &self.path)?;
        Ok(DatasetLedger::new(self, dataset))
    }

    /// Keeps everything in one file from now on, and the tables in their present form.
    fn bring_up_to_date(&mut self) -> Result<()> {
        let path = &self.path;
        // A table that the engine cannot understand any more is a change, not a failure of the disk.
        let failed = |error| Error::reading(path, error);
        let mode: String =
            self.database.query_row("PRAGMA journal_mode = DELETE", (), |row| row.get(0)).map_err(failed)?;
        if mode != "delete" {
            return Err(Error::unusable(path, "another process uses it in an older form"));
        }
        let transaction =
            self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        // Another process may have been faster.
        let version: u32 =
            transaction.query_row("PRAGMA user_version", (), |row| row.get(0)).map_err(failed)?;
        if version == FIRST_VERSION {
            Book::migrate(&transaction, path)?;
        }
        transaction.commit().map_err(failed)
    }

    pub(crate) fn read(&self) -> Result<Book> {
        // All tables as of one moment.
        let transaction =
            self.database.unchecked_transaction().map_err(|error| Error::reading(&self.path, error))?;
        Book::read(&transaction, &self.path)
    }

    fn account(&self, book: &Book, dataset: &str) -> Result<Account> {
        let (found, state) = (book.budget(dataset, &self.path)?, book.state(dataset, &self.path)?);
        let filter = state.filter()?.map(|filter| FilterState {
            pure_epsilon: state.sum.round_up(),
            budget: filter.budget(),
            spent: state.filtered.unwrap_or_default(),
        });
        let debits = book.debits.iter().filter(|debit| debit.dataset == dataset);
        Ok(Account {
            dataset: dataset.into(),
            adjacency: found.adjacency,
            budget: found.budget,
            time: found.time.clone(),
            spent: state.spent()?,
            remaining: state.remaining()?,
            filter,
            is_closed: state.is_closed,
            plans: book.plans.iter().filter(|plan| plan.dataset == dataset).cloned().collect(),
            debits: debits.map(|debit| debit.debit(&self.path)).collect::<Result<_>>()?,
        })
    }

    fn add_budget(&mut self, dataset: &str, budget: PrivacyBudget, adjacency: Adjacency) -> Result<()> {
        let path = &self.path;
        let failed = |error| Error::unusable(path, error);
        let transaction =
            self.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let book = Book::read(&transaction, path)?;
        if book.budget(dataset, path).is_ok() {
            return Err(Error::AlreadySet { path: path.clone(), dataset: dataset.into() });
        }
        book.add_budget(&transaction, path, (dataset, budget, adjacency))?;
        Book::read(&transaction, path)?;
        transaction.commit().map_err(failed)
    }
}

/// Refuses what no ledger should hold.
fn check(dataset: &str, budget: PrivacyBudget) -> Result<()> {
    if dataset.trim().is_empty() || dataset != one_line(dataset) {
        return Err(Error::InvalidParameter {
            name: "dataset",
            value: format!("`{}`", one_line(dataset)),
            requirement: "a name of 1 to 200 characters on one line",
        });
    }
    match budget {
        PrivacyBudget::Approximate { epsilon, delta } => {
            epsilon.positive()?;
            if delta.get() < smallest_delta(epsilon, MOST_DRAWS) {
                return Err(Error::InvalidParameter {
                    name: "delta",
                    value: delta.to_string(),
                    requirement: "larger: at this epsilon the error of the samplers is not negligible next to it",
                });
            }
        }
        PrivacyBudget::Pure { epsilon } => {
            epsilon.positive()?;
        }
        PrivacyBudget::Zcdp { rho, stated_at } => {
            rho.positive()?;
            stated_at.positive()?;
        }
    }
    Ok(())
}

/// What the first bytes of a ledger say.
struct Header {
    version: u32,
    write_version: u8,
}

impl Header {
    /// Whether the tables, or the way in which changes are written, are those of an earlier version.
    fn is_old(&self) -> bool {
        self.version == FIRST_VERSION || self.write_version != ROLLBACK
    }
}

/// Whether this is a ledger of a known version, by its first bytes. Nothing is written.
fn recognise(path: &Path) -> Result<Header> {
    let failed = |error: io::Error| Error::unusable(path, error);
    let not_a_ledger = || Error::NotALedger { path: path.into() };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(not_a_ledger());
    }
    let mut header = Vec::with_capacity(HEADER);
    File::open(path).and_then(|file| file.take(HEADER as u64).read_to_end(&mut header)).map_err(failed)?;
    let number = |at: usize| {
        let bytes = header.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    if !header.starts_with(MAGIC) || number(APPLICATION_AT) != Some(APPLICATION) {
        return Err(not_a_ledger());
    }
    match number(VERSION_AT) {
        Some(version @ (VERSION | FIRST_VERSION)) => {
            Ok(Header { version, write_version: header[WRITE_VERSION_AT] })
        }
        Some(found) => Err(Error::UnknownFormat { path: path.into(), found, known: VERSION }),
        None => Err(not_a_ledger()),
    }
}

/// What holds for a connection, not for the file: every commit is on the disk, and the journal that would undo it is gone
/// from its folder, before it is reported; and nothing in the file can run code: no trigger, no view, no function in a table. With a rollback journal, the mode of
/// every file that is made or opened here, what was committed is in the file itself.
fn set_up(database: Connection) -> rusqlite::Result<Connection> {
    database.busy_timeout(PATIENCE)?;
    database.pragma_update(None, "synchronous", "EXTRA")?;
    database.pragma_update(None, "trusted_schema", false)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    Ok(database)
}

/// Makes a ledger beside the path, then gives it the name if nobody else did so first: at no moment does the
/// path hold half a ledger. Whether it did.
fn create(path: &Path, dataset: &str, budget: PrivacyBudget, adjacency: Adjacency) -> Result<bool> {
    let failed = |error: io::Error| Error::unusable(path, error);
    let database_failed = |error: rusqlite::Error| Error::unusable(path, error);
    let name = path.file_name().ok_or_else(|| failed(io::Error::other("it names no file")))?;
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    // Locked while this process lives, unlike what an earlier one left that was killed.
    let draft =
        Draft::beside(&fs::canonicalize(folder).map_err(failed)?.join(name), 0o600).map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut database =
        Connection::open_with_flags(draft.path(), flags).and_then(set_up).map_err(database_failed)?;
    let transaction = database.transaction().map_err(database_failed)?;
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(database_failed)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(database_failed)?;
    let book = Book::create(&transaction).map_err(database_failed)?;
    book.add_budget(&transaction, path, (dataset, budget, adjacency))?;
    transaction.commit().map_err(database_failed)?;
    database.close().map_err(|(_, error)| database_failed(error))?;

    // What a ledger of this name left behind, one that was removed, belongs to no ledger: the database engine would take it
    // for a part of the new one. Only those who make a ledger may tidy up, one at a time, while there is none.
    let _lock = lock(folder).map_err(failed)?;
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let real = fs::canonicalize(folder).map_err(failed)?.join(name);
        set_aside(&real, &["-journal", "-wal", "-shm"]).map_err(failed)?;
    }
    match fs::hard_link(draft.path(), path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    drop(draft);
    // The name must be on the disk too.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(true)
}

/// Renames files that belong to no ledger: to `NAME-wal.0123….old` and so on. Nothing is lost.
fn set_aside(ledger: &Path, endings: &[&str]) -> io::Result<()> {
    for ending in endings {
        let mut name = ledger.as_os_str().to_owned();
        name.push(ending);
        if fs::symlink_metadata(&name).is_ok() {
            let unique = RunId::random().map_err(io::Error::other)?;
            let mut aside = name.clone();
            aside.push(format!(".{unique}.old"));
            match fs::rename(&name, aside) {
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}

/// Held by one process at a time, until it is dropped.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    if cfg!(unix) {
        let folder = File::open(folder)?;
        folder.lock()?;
        return Ok(Some(folder));
    }
    Ok(None)
}
