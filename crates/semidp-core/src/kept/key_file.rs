//! The key of a run on disk: readable by its owner alone, held by one process at a time, gone when the run ends.

use crate::files::{self, is_at, sync_folder};
use crate::noise::rng::{Randomness, RunKey};
use crate::{Error, Result, RunId, hex};
use semidp_accounting::RandomSource;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use zeroize::Zeroizing;

const FORMAT: &str = "semidp-run-key/1";
const SEEDED: &str = "seeded";
const PRIVATE: &str = "operating-system";
/// In place of the source and the key, when the result is safe.
const ENDED: &str = "ended";
/// More than any key file has.
const MAX_BYTES: usize = 1024;

/// The secret of one run, in a file of mode 0600.
///
/// Whoever reads it can take the noise off what the run released. Its bytes never leave this crate but for the file.
pub struct KeyFile {
    path: PathBuf,
    /// Locked as long as this lives.
    file: File,
    key: RunKey,
    run: RunId,
    source: RandomSource,
    is_new: bool,
    is_taken: AtomicBool,
}

impl KeyFile {
    /// A new key, for a run that begins. There must be no file yet.
    pub fn create(path: impl Into<PathBuf>, randomness: Randomness) -> Result<Self> {
        let path = path.into();
        let (key, run) = (randomness.key(0)?, RunId::random()?);
        let source = randomness.source();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(|error| failed(&path, "cannot be created", &error))?;
        if let Err(error) = hold(&file, &path) {
            // Where files cannot be locked, nobody could remove the empty file later. Whoever holds it removes it.
            if !matches!(error, Error::KeyInUse { .. }) && is_at(&file, &path) {
                let _ = fs::remove_file(&path);
            }
            return Err(error);
        }
        let whence = if source == RandomSource::Seeded { SEEDED } else { PRIVATE };
        // With room for all of it: a text that grows leaves its beginning where it was.
        let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES));
        text.push_str(&format!("{FORMAT}\n{run}\n{whence}\n"));
        hex::encode_onto(key.bytes(), &mut text);
        text.push('\n');
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| sync_folder(&path)).map_err(|error| {
            let _ = fs::remove_file(&path);
            failed(&path, "cannot be written", &error)
        })?;
        Ok(Self { path, file, key, run, source, is_new: true, is_taken: AtomicBool::new(false) })
    }

    /// The key of a run that goes on.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let opened = files::open_own(&path, OpenOptions::new().read(true).write(true));
        let mut file = opened.map_err(|error| failed(&path, "cannot be opened", &error))?;
        hold(&file, &path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let found = file.metadata().map_err(|error| failed(&path, "cannot be opened", &error))?;
            if found.permissions().mode() & 0o077 != 0 {
                return Err(refused(&path, "must be readable by its owner alone (mode 0600)"));
            }
        }
        let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES));
        let read = (&mut file).take(MAX_BYTES as u64).read_to_string(&mut text);
        read.map_err(|error| failed(&path, "cannot be read", &error))?;
        let damaged = || refused(&path, "is not the key of a run, or damaged");
        let lines: Vec<&str> = text.lines().collect();
        let (run, whence, key) = match lines[..] {
            [FORMAT, run, whence, key] => (run, whence, key),
            [FORMAT, _, ENDED, ..] => return Err(Error::RunEnded { path: path.display().to_string() }),
            _ => return Err(damaged()),
        };
        let source = match whence {
            SEEDED => RandomSource::Seeded,
            PRIVATE => RandomSource::OperatingSystem,
            _ => return Err(damaged()),
        };
        let run = run.parse().map_err(|_| damaged())?;
        let key = RunKey::made(|bytes| match hex::decode_into(key, bytes) {
            true => Ok(()),
            false => Err(damaged()),
        })?;
        Ok(Self { path, file, key, run, source, is_new: false, is_taken: AtomicBool::new(false) })
    }

    /// Ends the run, once its result is safe: the key is overwritten by a mark that says so, as far as the file system lets
    /// anybody. Whoever is killed before [`KeyFile::remove`] finds the mark.
    pub fn end(&self) -> Result<()> {
        self.check_place()?;
        let mut file = &self.file;
        let length = file.metadata().map_or(0, |found| found.len().min(MAX_BYTES as u64)) as usize;
        let mut text = format!("{FORMAT}\n{}\n{ENDED}\n", self.run);
        text.extend(std::iter::repeat_n('\n', length.saturating_sub(text.len())));
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all())
            .map_err(|error| failed(&self.path, "cannot be overwritten", &error))
    }

    /// Overwrites it as [`KeyFile::end`] does, and removes it.
    pub fn remove(&self) -> Result<()> {
        self.check_place()?;
        // A file system that keeps old blocks would keep them anyway: the removal is what counts.
        let _ = self.end();
        fs::remove_file(&self.path).map_err(|error| failed(&self.path, "cannot be removed", &error))?;
        sync_folder(&self.path).map_err(|error| failed(&self.path, "cannot be removed", &error))
    }

    fn check_place(&self) -> Result<()> {
        match is_at(&self.file, &self.path) {
            true => Ok(()),
            false => Err(refused(&self.path, "is not the one of this run any more")),
        }
    }

    /// Removes a key that no checkpoint belongs to: its run ended before its first step, or after its result was safe. A key
    /// that a process holds stays, and so does what is no key.
    pub fn remove_orphan(path: &Path) -> Result<()> {
        let mut file = match files::open_own(path, OpenOptions::new().read(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(path, "cannot be opened", &error)),
        };
        let length = file.metadata().map_or(u64::MAX, |found| found.len());
        match hold(&file, path) {
            // Where files cannot be locked no run begins, and what an older version left there holds no key.
            Err(Error::KeyFile { .. }) if length == 0 => {}
            held => held?,
        }
        let mut start = Vec::new();
        let read = (&mut file).take(FORMAT.len() as u64).read_to_end(&mut start);
        read.map_err(|error| failed(path, "cannot be read", &error))?;
        // A crash may have left a part of a key, or zeros. Anything else is somebody's file.
        if !FORMAT.as_bytes().starts_with(&start) && start.iter().any(|byte| *byte != 0) {
            return Err(refused(path, "is in the way: it is not the key of a run, and is not removed"));
        }
        fs::remove_file(path).map_err(|error| failed(path, "cannot be removed", &error))
    }

    /// The name of its run.
    pub fn run(&self) -> RunId {
        self.run
    }

    pub(crate) fn source(&self) -> RandomSource {
        self.source
    }

    /// Takes the key for a run: once, whichever session asks. A second run would draw the noise of the first.
    pub(crate) fn take(&self) -> Result<&RunKey> {
        match self.is_taken.swap(true, Ordering::Relaxed) {
            true => Err(Error::Foreign { thing: "key file" }),
            false => Ok(&self.key),
        }
    }

    /// Whether its run begins with it.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFile {{ path: {:?}, key: <run key> }}", self.path)
    }
}

/// One process at a time, and at the file that is there: another may have removed it before it was locked.
fn hold(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) if is_at(file, path) => Ok(()),
        // Its process ended between two looks: whoever looks again finds none, or another.
        Ok(()) | Err(TryLockError::WouldBlock) => Err(Error::KeyInUse { path: path.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(failed(path, "cannot be locked", &error)),
    }
}

fn refused(path: &Path, reason: impl Into<String>) -> Error {
    Error::KeyFile { path: path.display().to_string(), reason: reason.into() }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    refused(path, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("semidp-key-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn a_key_is_written_once_read_back_and_removed() {
        let path = place("once");
        let created = KeyFile::create(&path, Randomness::OperatingSystem).unwrap();
        assert!(KeyFile::create(&path, Randomness::OperatingSystem).is_err());
        let in_use = KeyFile::open(&path).unwrap_err().to_string();
        assert!(in_use.contains("in use"), "{in_use}");
        assert!(KeyFile::remove_orphan(&path).is_err());
        let (key, run) = (*created.key.bytes(), created.run());
        drop(created);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let open = KeyFile::open(&path).unwrap_err().to_string();
            assert!(open.contains("0600"), "{open}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let opened = KeyFile::open(&path).unwrap();
        assert_eq!((*opened.key.bytes(), opened.run()), (key, run));
        assert!(!opened.is_new() && !format!("{opened:?}").contains(&hex::encode(&key)));
        opened.remove().unwrap();
        assert!(!path.exists());
        KeyFile::remove_orphan(&path).unwrap();
    }

    /// A file that only has the name of a key is not removed; what a crash leaves of a key is.
    #[test]
    fn only_keys_are_removed_as_orphans() {
        let path = place("foreign");
        for (content, is_ours) in [
            (&b""[..], true),
            (b"semidp-run", true),
            (&[0; 90][..], true),
            (b"precious\n", false),
            (b"semidp-model/1", false),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(KeyFile::remove_orphan(&path).is_ok(), is_ours, "{content:?}");
            assert_eq!(path.exists(), !is_ours);
        }
        fs::remove_file(&path).unwrap();
    }

    /// Killed while it tidies up: the key is gone, and that the run has ended is known.
    #[test]
    fn an_ended_run_is_known_as_such() {
        let path = place("ended");
        let created = KeyFile::create(&path, Randomness::OperatingSystem).unwrap();
        let key = hex::encode(created.key.bytes());
        created.end().unwrap();
        drop(created);
        assert!(!fs::read_to_string(&path).unwrap().contains(&key[..8]));
        assert!(matches!(KeyFile::open(&path), Err(Error::RunEnded { .. })));
        KeyFile::remove_orphan(&path).unwrap();
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_key_is_a_regular_file_and_no_link() {
        let (path, other) = (place("link"), place("link-target"));
        drop(KeyFile::create(&other, Randomness::OperatingSystem).unwrap());
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let error = KeyFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert!(
            KeyFile::remove_orphan(&path).is_err() && KeyFile::create(&path, Randomness::Seed(1)).is_err()
        );
        assert!(other.exists());
        for file in [path, other] {
            fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn damaged_keys_are_refused_and_do_not_print() {
        let path = place("damaged");
        drop(KeyFile::create(&path, Randomness::Seed(4)).unwrap());
        let text = fs::read_to_string(&path).unwrap();
        for damaged in [&text[..text.len() - 3], "", "semidp-run-key/2\na\nb\nc\n", &text.to_uppercase()] {
            fs::write(&path, damaged).unwrap();
            let error = KeyFile::open(&path).unwrap_err().to_string();
            assert!(error.contains("damaged") && !error.contains(text.lines().last().unwrap()), "{error}");
        }
        fs::remove_file(&path).unwrap();
    }
}
