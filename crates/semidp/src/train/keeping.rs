//! Keeping a run: its checkpoint and key on disk, written so that it can be killed at any moment.
//!
//! 1. The key is written, then a checkpoint before the first step. Whoever is killed until here has paid nothing.
//! 2. The ledger is debited, under the name that stands in the key file. Whoever is killed from here on goes on from
//!    the checkpoint, and the ledger knows the name.
//! 3. Checkpoints follow, each in place of the last at once.
//! 4. When the result is safe, the key is overwritten by a mark that the run has ended, the checkpoint removed, and then the key.

use super::checkpoint::{self, Checkpoint, Fact, State};
use crate::record::key_path;
use crate::{Error, Result};
use semidp_core::{BlockSource, Identity, KeyFile, Mechanism, Prepared, Randomness, Run, Tickets, files};
use std::cell::{Cell, RefCell};
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
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

impl Keeping {
    /// For a run that begins: there must be no checkpoint yet.
    pub fn begin(path: impl Into<PathBuf>, randomness: Randomness) -> Result<Self> {
        let path = path.into();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, "cannot be looked for", &error)),
            Ok(_) if has_ended(&path) => {
                files::remove(&path).map_err(|error| failed(&path, "cannot be removed", &error))?;
            }
            Ok(_) => return Err(refused(&path, "is there already, of a run that has not ended")),
        }
        KeyFile::remove_orphan(&key_path(&path))?;
        let key = KeyFile::create(key_path(&path), randomness)?;
        Ok(Self::new(path, key, None))
    }

    /// For a run that goes on.
    pub fn resume(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        if has_ended(&path) {
            // What a kill left of its last moments.
            files::remove(&path).map_err(|error| failed(&path, "cannot be removed", &error))?;
            KeyFile::remove_orphan(&key_path(&path))?;
            return Err(Error::Ended { path: path.display().to_string() });
        }
        let text = read(&path).map_err(|error| failed(&path, "cannot be read", &error))?;
        let Some(text) = text else { return Err(refused(&path, "is no checkpoint, or damaged")) };
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
        // A mark that cannot be written is no reason to keep the key.
        let _ = self.key.end();
        files::remove(&self.path).map_err(|error| failed(&self.path, "cannot be removed", &error))?;
        Ok(self.key.remove()?)
    }

    /// Whether a step may have been paid for.
    pub fn is_begun(&self) -> bool {
        self.is_begun.get() || self.saved.is_some()
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

    /// Whether the checkpoint is where a run can go on from it.
    pub fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok()
    }

    /// Refuses to go on from a checkpoint if the run was asked to stop: what was not paid for yet is not paid for now.
    pub(super) fn check_stop(&self, saved: &Checkpoint, steps: u64) -> Result<()> {
        if !self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let checkpoint = self.path.display().to_string();
        Err(Error::Interrupted { step: saved.done(), steps, checkpoint })
    }

    /// Debits the ledger, if the run was not asked to stop before. Unless that is refused, it may have been done, even if the answer
    /// got lost.
    pub(super) fn begin_run<'s, S: BlockSource, M: Mechanism>(
        &self,
        prepared: Prepared<'s, S, M>,
    ) -> Result<(Run<'s, S, M>, Tickets)> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
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

    /// Writes a checkpoint if it is time, and stops if it is asked to. If it cannot be written, and the one before is gone too, the run
    /// goes on to its end: the model in memory is all that is left of what was paid for.
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
        let written = self.write(run.identity(), done, &content, run.seal(done, &content)?);
        self.last.set(Some(Instant::now()));
        if written.is_err() && !self.is_there() {
            return Ok(());
        }
        written?;
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
        files::replace(&self.path, 0o600, &text)
            .map_err(|error| failed(&self.path, "cannot be written", &error))
    }
}

/// A run that never began leaves nothing behind.
impl Drop for Keeping {
    fn drop(&mut self) {
        if self.saved.is_none() && !self.is_begun.get() {
            // Nothing was paid: without its checkpoint the key is removed by whoever comes next.
            let _ = files::remove(&self.path);
            let _ = self.key.remove();
        }
    }
}

/// Whether the run of a checkpoint ended, and was killed while it tidied up.
fn has_ended(path: &Path) -> bool {
    matches!(KeyFile::open(key_path(path)), Err(semidp_core::Error::RunEnded { .. }))
}

/// The text of a checkpoint; `None` if its first bytes are those of something else, whatever its length.
fn read(path: &Path) -> io::Result<Option<String>> {
    let mut file = files::open_own(path, OpenOptions::new().read(true))?;
    let mut first = Vec::new();
    Read::by_ref(&mut file).take(64).read_to_end(&mut first)?;
    let first = first.as_slice();
    if first.len() < 64 || !checkpoint::may_begin(first) {
        return Ok(None);
    }
    files::read_text(first.chain(file), LARGEST).map(Some)
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::Checkpoint { path: path.display().to_string(), reason: reason.into() }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    refused(path, &format!("{what}: {error}"))
}
