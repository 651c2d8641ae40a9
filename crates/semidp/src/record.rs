//! A run of one release that survives its process: its record and its key, in two files.
//!
//! The order of writes leaves no moment at which a kill costs a second debit or loses an answer that was paid for:
//!
//! 1. The key, then the record with what the run is, sealed. Nothing was spent until here; a key without a record is removed.
//! 2. The debit, under the run's name, which stands in the key file. From here on the same run draws the same noise on the same rows,
//!    and the ledger knows its name.
//! 3. The answer, into the record; then wherever the caller delivers it.
//! 4. The key is overwritten by a mark that the run has ended, the record removed, and then the key. Until the record is gone
//!    the same command delivers the same answer again.
//!
//! A record holds options, digests of public values, the kernel's [`Identity`] with its keyed fingerprint of the rows, and a released
//! answer: nothing private. The key is in a file of mode 0600, locked by the process that is at the run.

use crate::train::{Fact, difference};
use semidp_core::{Error, Identity, Kept, KeyFile, Randomness, Record, Result, files};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const FORMAT: &str = "semidp-run-record/1";
/// More than any answer of one release: a million columns take less.
const MAX_BYTES: u64 = 1 << 28;
/// How long a process waits for another one that is at the same run.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    identity: Identity,
    seal: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    facts: Vec<Fact>,
}

/// A record as it was read.
struct Saved {
    header: Header,
    text: String,
    answer: Option<String>,
}

/// A run of one release, recorded on disk from before its debit until its answer is delivered.
pub struct RunRecord {
    path: PathBuf,
    /// `None` if the answer is there and the key is gone.
    key: Option<Arc<KeyFile>>,
    text: String,
    saved: Option<Saved>,
    /// What was written now.
    written: Mutex<Option<Header>>,
    is_begun: AtomicBool,
    is_refused: AtomicBool,
}

impl RunRecord {
    /// The run of this command: a new one, or the one that was interrupted here, if the facts are the same. Waits for a process that
    /// is at it. If that process ended the run, none is begun: its answer is delivered, and another one would be paid for again.
    pub fn open(path: impl Into<PathBuf>, randomness: Randomness, facts: &[Fact]) -> Result<Self> {
        let path = path.into();
        let begun = Instant::now();
        let mut has_waited = false;
        loop {
            match Self::attempt(&path, randomness, facts) {
                Err(Error::KeyInUse { .. }) if begun.elapsed() < PATIENCE => {
                    has_waited = true;
                    std::thread::sleep(PAUSE);
                }
                // The files changed between two looks: another process is at the run.
                Ok(None) => has_waited = true,
                Ok(Some(record)) if has_waited && record.saved.is_none() => {
                    return Err(Error::EndedElsewhere { path: path.display().to_string() });
                }
                Ok(Some(record)) => return Ok(record),
                Err(error) => return Err(error),
            }
        }
    }

    /// One look; `None` if the files changed meanwhile.
    fn attempt(path: &Path, randomness: Randomness, facts: &[Fact]) -> Result<Option<Self>> {
        let key_path = key_path(path);
        if !exists(path)? {
            KeyFile::remove_orphan(&key_path)?;
            return match KeyFile::create(&key_path, randomness) {
                Ok(key) if exists(path)? => key.remove().map(|()| None),
                Ok(key) => Ok(Some(Self::new(path, Some(key), facts, None))),
                Err(_) if exists(&key_path)? => Ok(None),
                Err(error) => Err(error),
            };
        }
        // The key is locked before the record is read: nobody else changes it then.
        let mut ended = None;
        let key = match KeyFile::open(&key_path) {
            Ok(key) => Some(key),
            Err(error @ Error::RunEnded { .. }) => {
                ended = Some(error);
                None
            }
            Err(_) if !exists(&key_path)? => None,
            Err(error) => return Err(error),
        };
        if !exists(path)? {
            return Ok(None);
        }
        let text =
            files::read_own(path, MAX_BYTES).map_err(|error| failed(path, "cannot be read", &error))?;
        let saved = Saved::decode(&text).ok_or_else(|| refused(path, "is none, or damaged"))?;
        let begun: Text = serde_json::from_str(&saved.text).map_err(|_| refused(path, "is damaged"))?;
        if let Some(difference) = difference(&begun.facts, facts) {
            return Err(refused(path, &format!("is of another run, which has not ended: {difference}")));
        }
        if let (Some(ended), None) = (ended, &saved.answer) {
            // Its answer is where it was to go. This is what a kill left of its last moments.
            files::remove(path).map_err(|error| failed(path, "cannot be removed", &error))?;
            KeyFile::remove_orphan(&key_path)?;
            return Err(ended);
        }
        if key.is_none() && saved.answer.is_none() {
            return Err(refused(path, "has no key file beside it: its run can no longer be continued"));
        }
        Ok(Some(Self::new(path, key, facts, Some(saved))))
    }

    fn new(path: &Path, key: Option<KeyFile>, facts: &[Fact], saved: Option<Saved>) -> Self {
        let text = Text { facts: facts.to_vec() };
        Self {
            path: path.into(),
            key: key.map(Arc::new),
            text: serde_json::to_string(&text).expect("facts can be written"),
            saved,
            written: Mutex::default(),
            is_begun: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The answer of a run that was interrupted after its key was gone. As long as the key is there the run goes on, which checks that
    /// the rows are those that it began with, and comes to the same answer.
    pub fn answer(&self) -> Option<&str> {
        let saved = self.saved.as_ref().filter(|_| self.key.is_none())?;
        saved.answer.as_deref()
    }

    /// Whether the run may have been paid for.
    pub fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed) || self.saved.is_some()
    }

    /// Keeps the answer, one line of text, until it is delivered.
    pub fn store(&self, answer: &str) -> Result<()> {
        let written = self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let saved = self.saved.as_ref().map(|saved| (&saved.header, saved.text.as_str()));
        match written.as_ref().map(|header| (header, self.text.as_str())).or(saved) {
            Some((header, text)) => self.replace(&encode(header, text, Some(answer))),
            // Nothing private was asked: the run never began.
            None => Ok(()),
        }
    }

    /// Ends the run, once its answer is delivered.
    pub fn end(&self) -> Result<()> {
        if let Some(key) = &self.key {
            // A mark that cannot be written is no reason to keep the key.
            let _ = key.end();
        }
        files::remove(&self.path).map_err(|error| failed(&self.path, "cannot be removed", &error))?;
        match &self.key {
            Some(key) => key.remove(),
            None => KeyFile::remove_orphan(&key_path(&self.path)),
        }
    }

    fn replace(&self, text: &str) -> Result<()> {
        files::replace(&self.path, 0o600, text)
            .map_err(|error| failed(&self.path, "cannot be written", &error))
    }
}

impl Record for RunRecord {
    fn key_file(&self) -> Arc<KeyFile> {
        self.key.clone().expect("a run without an answer has its key")
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn kept(&self) -> Option<Kept<'_>> {
        let Saved { header, text, .. } = self.saved.as_ref()?;
        Some(Kept { identity: &header.identity, done: 0, text, seal: &header.seal })
    }

    fn write(&self, identity: &Identity, seal: &str) -> Result<()> {
        let header = Header { format: FORMAT.into(), identity: identity.clone(), seal: seal.into() };
        self.replace(&encode(&header, &self.text, None))?;
        *self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(header);
        Ok(())
    }

    fn begun(&self) {
        self.is_begun.store(true, Ordering::Relaxed);
    }

    fn refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }
}

/// A run that spent nothing leaves nothing.
impl Drop for RunRecord {
    fn drop(&mut self) {
        let is_new = self.saved.is_none() && !self.is_begun.load(Ordering::Relaxed);
        if (is_new || self.is_refused.load(Ordering::Relaxed))
            && let Some(key) = &self.key
        {
            let _ = files::remove(&self.path);
            let _ = key.remove();
        }
    }
}

impl Saved {
    fn decode(text: &str) -> Option<Self> {
        let (content, digest) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        if digest_of(content) != digest {
            return None;
        }
        let mut lines = content.lines();
        let header: Header = serde_json::from_str(lines.next()?).ok()?;
        let (text, answer) = (lines.next()?.to_string(), lines.next().map(String::from));
        (header.format == FORMAT && lines.next().is_none()).then_some(Self { header, text, answer })
    }
}

fn encode(header: &Header, text: &str, answer: Option<&str>) -> String {
    let mut content = format!("{}\n{text}", serde_json::to_string(header).expect("a header can be written"));
    if let Some(answer) = answer {
        content.push('\n');
        content.push_str(answer);
    }
    let digest = digest_of(&content);
    format!("{content}\n{digest}\n")
}

/// Against damage, not against forgery: the kernel's seal does that.
fn digest_of(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 64 bits that name these facts, as hexadecimal digits. They are public.
pub fn name_of(facts: &[Fact]) -> String {
    let text = serde_json::to_string(facts).expect("facts can be written");
    digest_of(&text)[..16].into()
}

/// The key of the run lies beside its record.
pub fn key_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".key");
    name.into()
}

fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(path, "cannot be looked for", &error)),
    }
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::Record { path: path.display().to_string(), reason: reason.into() }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    refused(path, &format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that waited for another one's run does not pay for one of its own, and leaves nothing; the next one begins anew.
    #[test]
    fn who_waited_for_a_run_that_ended_begins_none() {
        let path = std::env::temp_dir().join(format!("semidp-waiting-{}", std::process::id()));
        let open = || RunRecord::open(&path, Randomness::OperatingSystem, &[Fact::new("a", 1)]);
        let first = open().unwrap();
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            std::thread::sleep(10 * PAUSE);
            assert!(waiting.iter().all(|thread| !thread.is_finished()));
            drop(first);
            for thread in waiting {
                let error = thread.join().unwrap().err().unwrap();
                assert!(matches!(error, Error::EndedElsewhere { .. }), "{error}");
            }
        });
        assert!(!path.exists() && !key_path(&path).exists());
        assert!(!open().unwrap().is_begun());
        assert!(!key_path(&path).exists());
    }
}
