//! Keeping a run: its checkpoint and key on disk, written so that it can be killed at any moment.
//!
//! 1. The key is written, then a checkpoint before the first step. Whoever is killed until here has paid nothing.
//! 2. The ledger is debited, under the name that stands in the key file. Whoever is killed from here on goes on from
//!    the checkpoint, and the ledger knows the name.
//! 3. Checkpoints follow, each in place of the last at once.
//! 4. When the result is safe, the key is removed, then the checkpoint.

use super::checkpoint::{self, Checkpoint, Fact, State};
use crate::{Error, Result};
use semidp_core::{BlockSource, Identity, KeyFile, Mechanism, Prepared, Randomness, Run, Tickets};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Far more than a checkpoint of any model that fits in memory twice.
const LARGEST: u64 = 4 << 30;

/// Where and how often a run is kept.
pub struct Keeping {
    path: PathBuf,
    every: Duration,
    stop: Arc<AtomicBool>,
    facts: RefCell<Vec<Fact>>,
    key: Arc<KeyFile>,
    /// What it goes on from.
    saved: Option<Checkpoint>,
    /// Whether a step may have been paid for: then nothing is removed until the result is safe.
    is_begun: Cell<bool>,
    last: Cell<Option<Instant>>,
}

/// The key of the run that a checkpoint is of lies beside it.
fn key_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".key");
    name.into()
}

impl Keeping {
    /// For a run that begins: there must be no checkpoint yet.
    pub fn begin(path: impl Into<PathBuf>, randomness: Randomness) -> Result<Self> {
        let path = path.into();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, "cannot be looked for", &error)),
            Ok(_) => return Err(refused(&path, "is there already, of a run that has not ended")),
        }
        KeyFile::remove_orphan(&key_path(&path))?;
        let key = KeyFile::create(key_path(&path), randomness)?;
        Ok(Self::new(path, key, None))
    }

    /// For a run that goes on.
    pub fn resume(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let length = fs::metadata(&path).map_err(|error| failed(&path, "cannot be read", &error))?.len();
        if length > LARGEST {
            return Err(refused(&path, "is no checkpoint: it is too large"));
        }
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, "cannot be read", &error))?;
        let saved = Checkpoint::decode(&text)
            .map_err(|reason| Error::Checkpoint { path: path.display().to_string(), reason })?;
        if !key_path(&path).exists() {
            return Err(refused(
                &path,
                "has no key file beside it: its run has ended, or can no longer be continued",
            ));
        }
        let key = KeyFile::open(key_path(&path))?;
        Ok(Self::new(path, key, Some(saved)))
    }

    fn new(path: PathBuf, key: KeyFile, saved: Option<Checkpoint>) -> Self {
        Self {
            path,
            every: Duration::from_secs(5),
            stop: Arc::default(),
            facts: RefCell::default(),
            key: Arc::new(key),
            saved,
            is_begun: Cell::new(false),
            last: Cell::new(None),
        }
    }

    /// At most about so long from one checkpoint to the next; after every step if it is zero.
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Stops after the step that is under way, with a checkpoint, when this is raised.
    pub fn until(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Something else that must not change, which the algorithm does not know.
    pub fn with_fact(self, fact: Fact) -> Self {
        self.also(fact);
        self
    }

    pub(super) fn also(&self, fact: Fact) {
        self.facts.borrow_mut().push(fact);
    }

    /// Where the checkpoint is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends it, once the result is safe or the run has failed for good.
    pub fn end(self) -> Result<()> {
        // Nothing is left for whoever drops it.
        self.is_begun.set(true);
        self.key.remove()?;
        match fs::remove_file(&self.path) {
            // No run began: there was nothing private to learn from.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| failed(&self.path, "cannot be removed", &error)),
        }
    }

    pub(super) fn key(&self) -> Arc<KeyFile> {
        self.key.clone()
    }

    /// The caller's facts and the algorithm's.
    pub(super) fn facts(&self, of_run: Vec<Fact>) -> Vec<Fact> {
        self.facts.borrow().iter().cloned().chain(of_run).collect()
    }

    /// What it goes on from, if it does.
    pub(super) fn saved(&self) -> Option<&Checkpoint> {
        self.saved.as_ref()
    }

    /// Debits the ledger. Unless that is refused, it may have been done, even if the answer got lost.
    pub(super) fn begin_run<'s, S: BlockSource, M: Mechanism>(
        &self,
        prepared: Prepared<'s, S, M>,
    ) -> Result<(Run<'s, S, M>, Tickets)> {
        self.begun();
        let begun = prepared.begin();
        if let Err(semidp_core::Error::BudgetRefused { .. }) = begun {
            self.is_begun.set(false);
        }
        Ok(begun?)
    }

    /// From now on steps may have been paid for.
    pub(super) fn begun(&self) {
        self.is_begun.set(true);
        self.last.set(Some(Instant::now()));
    }

    /// Writes the checkpoint before the first step.
    pub(super) fn first<S: BlockSource, M: Mechanism>(
        &self,
        prepared: &Prepared<'_, S, M>,
        facts: &[Fact],
        state: State,
    ) -> Result<()> {
        let content = checkpoint::content(facts, state);
        self.write(prepared.identity(), 0, &content, prepared.seal(&content)?)
    }

    /// Writes a checkpoint if it is time, and stops if it is asked to.
    pub(super) fn after<S: BlockSource, M: Mechanism>(
        &self,
        run: &Run<'_, S, M>,
        done: u64,
        steps: u64,
        facts: &[Fact],
        state: impl FnOnce() -> State,
    ) -> Result<()> {
        let stop = self.stop.load(Ordering::Relaxed) && done < steps;
        let is_time = self.last.get().is_none_or(|last| last.elapsed() >= self.every);
        if !stop && !is_time {
            return Ok(());
        }
        let content = checkpoint::content(facts, state());
        self.write(run.identity(), done, &content, run.seal(done, &content)?)?;
        self.last.set(Some(Instant::now()));
        if stop {
            let checkpoint = self.path.display().to_string();
            return Err(Error::Interrupted { step: done, steps, checkpoint });
        }
        Ok(())
    }

    /// In place of the last one at once, and durably.
    fn write(&self, identity: Option<&Identity>, done: u64, content: &str, seal: String) -> Result<()> {
        let identity = identity.ok_or(semidp_core::Error::Foreign { thing: "checkpoint" })?;
        let text = checkpoint::encode(identity, done, content, seal);
        let replace = || -> io::Result<()> {
            let temporary = beside(&self.path)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)?;
            sync_folder(&self.path)
        };
        replace().map_err(|error| failed(&self.path, "cannot be written", &error))
    }
}

/// A run that never began leaves nothing behind.
impl Drop for Keeping {
    fn drop(&mut self) {
        if self.saved.is_none() && !self.is_begun.get() {
            let _ = self.key.remove();
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The name of a checkpoint that is being written. One is enough: the key file is held by one process.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name().ok_or_else(|| io::Error::other("it names no file"))?);
    name.push(".new");
    Ok(path.with_file_name(name))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::Checkpoint { path: path.display().to_string(), reason: reason.into() }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    refused(path, &format!("{what}: {error}"))
}
