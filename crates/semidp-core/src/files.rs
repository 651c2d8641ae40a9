//! Files of keys, records and results: opened only where they are regular, read within a limit, written whole or not at all.

use crate::ledger::RunId;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Opens a regular file. A FIFO does not block; it is refused, as devices and folders are.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, OFlags::NONBLOCK.bits() as i32);
    }
    regular(options.open(path)?)
}

/// The same for a file that this program alone makes: also a symbolic link is refused.
pub fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits() as i32);
    }
    let opened = options.open(path);
    if opened.is_err() && fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(io::Error::other("it is a symbolic link"));
    }
    regular(opened?)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// The text of a file of [`open_own`] with at most `limit` bytes.
pub fn read_own(path: &Path, limit: u64) -> io::Result<String> {
    read_text(open_own(path, OpenOptions::new().read(true))?, limit)
}

/// A text of at most `limit` bytes. It ends with an error at the first byte 0: a sparse file of gigabytes is zeros, and takes no memory.
pub fn read_text(reader: impl Read, limit: u64) -> io::Result<String> {
    const STEP: u64 = 1 << 16;
    let (mut reader, mut text) = (reader.take(limit.saturating_add(1)), Vec::new());
    loop {
        let before = text.len();
        if reader.by_ref().take(STEP).read_to_end(&mut text)? == 0 {
            break;
        }
        if text[before..].contains(&0) {
            return Err(io::Error::other("it is not a text"));
        }
        if text.len() as u64 > limit {
            return Err(io::Error::other(format!("it is larger than {limit} bytes")));
        }
    }
    String::from_utf8(text).map_err(|_| io::Error::other("it is not a text"))
}

/// A file that is being written beside its target, and replaces it in one step.
///
/// Its name is random, and it is made with `O_EXCL`, so that no link or file waits at that name. It is locked as long as its process
/// lives: what has such a name and no lock was abandoned, and is removed by the next draft for the same target.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    temporary: PathBuf,
    file: File,
    is_published: bool,
}

impl Draft {
    /// Makes one, with these permissions less those of the umask. The target is not touched.
    pub fn beside(target: &Path, mode: u32) -> io::Result<Self> {
        remove_abandoned(target);
        #[cfg(not(unix))]
        let _ = mode;
        // A clean-up may take a new file for an abandoned one before it is locked.
        for _ in 0..16 {
            let temporary = target.with_file_name(draft_name(target)?);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
            let file = options.open(&temporary)?;
            match file.try_lock() {
                Ok(()) if !is_at(&file, &temporary) => continue,
                Err(TryLockError::WouldBlock) => continue,
                // A file system without locks: nothing is cleaned up there.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            return Ok(Self { target: target.into(), temporary, file, is_published: false });
        }
        Err(io::Error::other("another process removes every file beside it"))
    }

    /// Where it is while it is being written.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Puts it in the target's place, durably.
    pub fn publish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.target)?;
        self.is_published = true;
        sync_folder(&self.target)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = fs::remove_file(journal_of(&self.temporary));
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Replaces a file by this text in one step, durably.
pub fn replace(target: &Path, mode: u32, text: &str) -> io::Result<()> {
    let mut draft = Draft::beside(target, mode)?;
    draft.write_all(text.as_bytes())?;
    draft.publish()
}

/// Removes a file, durably; it may be gone already.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_folder(path)),
    }
}

/// Makes what the folder of a path lists durable.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder_of(path))?.sync_all() } else { Ok(()) }
}

/// Whether a stream is open for writing. The standard library takes what is written to another one, and drops it.
#[cfg(unix)]
pub fn is_writable(stream: impl std::os::fd::AsFd) -> bool {
    use rustix::fs::OFlags;
    rustix::fs::fcntl_getfl(stream).is_ok_and(|flags| flags & OFlags::RWMODE != OFlags::RDONLY)
}

/// Whether a stream is the null device, open for reading and writing. The standard library opens it so in place of a stream that was
/// closed when the process began, before `main` can see that; a shell's `>/dev/null` is open for writing alone. Programs that open it
/// like this on purpose cannot be told apart.
#[cfg(unix)]
pub fn is_replaced(stream: impl std::os::fd::AsFd) -> bool {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let is_both = rustix::fs::fcntl_getfl(&stream).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    let device = |file: fs::Metadata| file.file_type().is_char_device().then(|| file.rdev());
    let found = stream.as_fd().try_clone_to_owned().and_then(|copy| File::from(copy).metadata());
    let null = fs::metadata("/dev/null").ok().and_then(device);
    is_both && null.is_some() && found.ok().and_then(device) == null
}

/// Whether a path names this open file.
pub fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let place = |found: fs::Metadata| (found.dev(), found.ino());
        file.metadata().ok().map(place) == fs::symlink_metadata(path).ok().map(place)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// The beginning of the names of all drafts for a target. A name of a file has at most 255 bytes.
fn prefix(target: &Path) -> io::Result<OsString> {
    let name = target.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let mut prefix = OsString::from(".");
    match name.len() <= 200 {
        true => prefix.push(name),
        false => prefix.push(name.to_string_lossy().chars().take(50).collect::<String>()),
    }
    prefix.push(".");
    Ok(prefix)
}

fn draft_name(target: &Path) -> io::Result<OsString> {
    let mut name = prefix(target)?;
    name.push(format!("{}.tmp", RunId::random().map_err(io::Error::other)?));
    Ok(name)
}

/// What SQLite keeps beside a draft that is a database.
fn journal_of(draft: &Path) -> PathBuf {
    let mut name = draft.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// Removes the drafts for a target of processes that were killed before they could publish.
pub fn remove_abandoned(target: &Path) {
    let (Ok(prefix), Ok(entries)) = (prefix(target), fs::read_dir(folder_of(target))) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let middle = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        let middle = middle.and_then(|rest| rest.strip_suffix(b".tmp"));
        let is_draft =
            middle.is_some_and(|id| std::str::from_utf8(id).is_ok_and(|id| id.parse::<RunId>().is_ok()));
        if !is_draft {
            continue;
        }
        let path = entry.path();
        let Ok(file) = open_own(&path, OpenOptions::new().read(true)) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &path) {
            // The journal first: without its draft nobody would look for it.
            let _ = fs::remove_file(journal_of(&path));
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("semidp-files-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_draft_of_a_live_process_stays_and_an_abandoned_one_goes() {
        let folder = folder("drafts");
        let target = folder.join("model.json");
        let mut live = Draft::beside(&target, 0o644).unwrap();
        let abandoned = folder.join(draft_name(&target).unwrap());
        // No process of this number is alive in any namespace, and nobody holds its lock.
        fs::write(&abandoned, "half").unwrap();
        fs::write(journal_of(&abandoned), "of SQLite").unwrap();
        let other = folder.join(".model.json.notes.tmp");
        fs::write(&other, "not ours").unwrap();
        replace(&target, 0o644, "new").unwrap();
        assert!(
            !journal_of(&abandoned).exists()
                && !abandoned.exists()
                && other.exists()
                && live.temporary.exists()
        );
        live.write_all(b"newer").unwrap();
        live.publish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "newer");
        assert_eq!(names(&folder), [".model.json.notes.tmp", "model.json"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_and_long_names_are_cleaned_up_too() {
        use std::os::unix::ffi::OsStrExt;
        let folder = folder("names");
        for name in [std::ffi::OsStr::from_bytes(b"m\xff.json"), std::ffi::OsStr::from_bytes(&[b'n'; 250])] {
            let target = folder.join(name);
            fs::write(folder.join(draft_name(&target).unwrap()), "half").unwrap();
            replace(&target, 0o644, "whole").unwrap();
            assert_eq!(names(&folder), [name]);
            fs::remove_file(target).unwrap();
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_links_are_refused_and_files_are_read_within_a_limit() {
        let folder = folder("kinds");
        let error = |path: &Path| read_own(path, 10).unwrap_err().to_string();
        assert_eq!(error(Path::new("/dev/zero")), "it is not a regular file");
        assert_eq!(error(&folder), "it is not a regular file");
        let (file, link) = (folder.join("file"), folder.join("link"));
        fs::write(&file, "0123456789").unwrap();
        assert_eq!(read_own(&file, 10).unwrap(), "0123456789");
        assert_eq!(read_own(&file, 9).unwrap_err().to_string(), "it is larger than 9 bytes");
        // Of a sparse file of a tebibyte, only the beginning is read.
        let sparse = folder.join("sparse");
        fs::write(&sparse, "{}\n").unwrap();
        OpenOptions::new().write(true).open(&sparse).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_own(&sparse, u64::MAX).unwrap_err().to_string(), "it is not a text");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(error(&link), "it is a symbolic link");
        assert!(open_regular(&link, OpenOptions::new().read(true)).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
