//! Files: read whole or from stdin; written whole or not at all.

pub mod kind;

use crate::{Error, Result, sentence};
use semidp_core::files::{self, Draft};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The largest text of a parameter, in MiB; keeps a wrong path from filling memory. JSON is limited by its number of values besides.
fn max_mebibytes(parameter: &str) -> u64 {
    match parameter {
        // 200,000 events.
        "events" => 16,
        "signer" => 1,
        // A model or an answer with a certificate, a schema of 100,000 columns, a mean of as many.
        _ => 64,
    }
}

/// The text of a file, or of stdin for `-`. `parameter` names it in errors.
pub fn read(parameter: &'static str, path: &Path) -> Result<String> {
    let failed = |error: io::Error| {
        Error::usage(
            parameter,
            sentence!("{@0}: cannot read {1}: {2}", parameter, path.display(), error),
            "give the path of a readable text file, or - for standard input",
        )
    };
    let mut text = String::new();
    let mebibytes = max_mebibytes(parameter);
    let largest = mebibytes << 20;
    let length = if path == Path::new("-") {
        io::stdin().lock().take(largest + 1).read_to_string(&mut text)
    } else {
        open(parameter, path).and_then(|file| file.take(largest + 1).read_to_string(&mut text))
    };
    if length.map_err(failed)? as u64 > largest {
        return Err(failed(io::Error::other(format!("it is larger than {mebibytes} MiB"))));
    }
    Ok(text)
}

/// A model is a regular file; what is read for a moment may also come out of a pipe, as in `semidp verify <(...)`.
fn open(parameter: &str, path: &Path) -> io::Result<File> {
    match parameter {
        "model" => files::open_regular(path, OpenOptions::new().read(true)),
        _ => File::open(path),
    }
}

/// Writes a file so that at every moment the path holds the old text, or the new, or nothing.
pub fn write(parameter: &'static str, path: &Path, text: &str) -> Result<()> {
    Reserved::new(parameter, path)?.fill(text)
}

/// A place for a file, before there is anything to write: what cannot be written should be known before
/// private rows are read.
pub struct Reserved {
    parameter: &'static str,
    /// As it was given.
    path: PathBuf,
    draft: BufWriter<Draft>,
    /// What was there when the place was taken.
    before: Stamp,
}

/// Device, inode, length and time of change of a file; none if there is no file.
type Stamp = Option<[i128; 4]>;

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let time = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Some([found.dev().into(), found.ino().into(), found.len().into(), time])
    }
    #[cfg(not(unix))]
    {
        let time = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some([0, 0, found.len().into(), time.as_nanos() as i128])
    }
}

/// Files of results are for everybody to read, and for their owner alone to write, less what the umask forbids.
const MODE: u32 = 0o644;

impl Reserved {
    /// Takes a place beside the path; the path itself is not touched.
    pub fn new(parameter: &'static str, path: &Path) -> Result<Self> {
        let failed = |error| cannot_write(parameter, path, error);
        let target = destination(path).map_err(failed)?;
        let draft = Draft::beside(&target, mode_of(&target)).map_err(failed)?;
        let before = stamp(path);
        Ok(Self { parameter, path: path.into(), draft: BufWriter::new(draft), before })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file at the path is another one, or has changed, since the place was taken.
    pub fn is_changed(&self) -> bool {
        stamp(&self.path) != self.before
    }

    /// Puts the text where the path says, at once.
    pub fn fill(mut self, text: &str) -> Result<()> {
        self.line(text)?;
        self.keep()
    }

    /// Writes a line; nothing is where the path says yet.
    pub fn line(&mut self, text: &str) -> Result<()> {
        let written = self.draft.write_all(text.as_bytes()).and_then(|()| self.draft.write_all(b"\n"));
        written.map_err(|error| cannot_write(self.parameter, &self.path, error))
    }

    /// For more than lines of text; nothing is where the path says yet.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.draft
    }

    /// Puts what was written where the path says, at once.
    pub fn keep(self) -> Result<()> {
        let Self { parameter, path, draft, .. } = self;
        let written = draft.into_inner().map_err(io::IntoInnerError::into_error);
        written.and_then(Draft::publish).map_err(|error| cannot_write(parameter, &path, error))
    }
}

/// A file that is replaced stays as closed as it was.
fn mode_of(target: &Path) -> u32 {
    #[cfg(unix)]
    if let Ok(found) = fs::metadata(target) {
        return std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & MODE;
    }
    let _ = target;
    MODE
}

/// The error of a file that cannot be written.
pub fn cannot_write(parameter: &'static str, path: &Path, error: io::Error) -> Error {
    Error::usage(
        parameter,
        sentence!("{@0}: cannot write {1}: {2}", parameter, path.display(), error),
        "give the path of a file in an existing folder that you may write to",
    )
}

/// Refuses files that must differ and do not, whatever they are called, and tables in memory that share numbers. Each comes with its
/// option.
///
/// Paths, inodes and addresses are compared, never contents, not even where a copy of the private rows would be found out: the
/// guarantee holds for every content of the public rows, so an answer that depends on whether they equal the private rows would itself
/// tell neighbouring private data apart.
pub fn refuse_same(files: &[(&'static str, Option<&PathBuf>)]) -> Result<()> {
    let mut known: Vec<(&'static str, &Path, PathBuf)> = Vec::new();
    for &(parameter, path) in files {
        let Some(path) = path else { continue };
        let real = real_path(path);
        for &(other, its_path, ref its_real) in &known {
            if semidp_table::shares_memory(path, its_path) {
                return Err(Error::usage(
                    parameter,
                    sentence!("{@0} and {@1} must not be the same rows: they share memory", other, parameter),
                    "give each its own rows: split the array into two that do not overlap",
                ));
            }
            if *its_real == real || is_linked(path, its_path) {
                return Err(Error::usage(
                    parameter,
                    sentence!("{@0} and {@1} must be different files", other, parameter),
                    "each file has one part to play: private rows, public rows, schema, answer, certificate",
                ));
            }
        }
        known.push((parameter, path, real));
    }
    Ok(())
}

/// Whether two paths lead to one file, which need not exist.
pub fn is_same(one: &Path, other: &Path) -> bool {
    real_path(one) == real_path(other) || is_linked(one, other)
}

/// The path without links. What does not exist yet is known by its folder; a table in memory is no file, and the path is its own.
fn real_path(path: &Path) -> PathBuf {
    let real = fs::canonicalize(path).or_else(|_| {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        fs::canonicalize(folder).map(|folder| folder.join(name))
    });
    real.unwrap_or_else(|_| path.to_path_buf())
}

/// How many names a file has in its file system, as far as that is known.
#[cfg(unix)]
pub fn hard_links(path: &Path) -> u64 {
    fs::metadata(path).map_or(1, |found| std::os::unix::fs::MetadataExt::nlink(&found))
}

/// The same where the system does not say.
#[cfg(not(unix))]
pub fn hard_links(_: &Path) -> u64 {
    1
}

/// What semidp keeps beside a file while a run lasts: `.checkpoint` and its key.
pub const OF_RUN: [&str; 2] = [".checkpoint", ".checkpoint.key"];
/// The key beside a checkpoint.
pub const OF_CHECKPOINT: [&str; 1] = [".key"];
/// What SQLite keeps beside a ledger.
pub const OF_LEDGER: [&str; 3] = ["-journal", "-wal", "-shm"];

/// The paths with these endings beside a file, and beside the file that a link leads to.
pub fn beside(path: Option<&PathBuf>, endings: &[&str]) -> Vec<PathBuf> {
    let Some(path) = path else { return Vec::new() };
    let real = fs::canonicalize(path).ok().filter(|real| real != path);
    let mut found = Vec::new();
    for place in [Some(path), real.as_ref()].into_iter().flatten() {
        found.extend(endings.iter().map(|ending| {
            let mut name = place.as_os_str().to_os_string();
            name.push(ending);
            PathBuf::from(name)
        }));
    }
    found
}

/// The same as [`refuse_same`], where a run or SQLite keeps files beside some of the files: these must differ from all others. They
/// come with the parameter that they belong to.
pub fn refuse_same_or_beside(
    files: &[(&'static str, Option<&PathBuf>)],
    sides: &[(&'static str, Vec<PathBuf>)],
) -> Result<()> {
    refuse_same(files)?;
    for (owner, paths) in sides {
        for &(parameter, path) in files {
            if path.is_some_and(|path| paths.iter().any(|side| is_same(path, side))) {
                return Err(Error::usage(
                    parameter,
                    sentence!(
                        "{@0} and a file that semidp keeps beside {@1} must be different files",
                        parameter,
                        owner
                    ),
                    sentence!("give {@0} another path", parameter),
                ));
            }
        }
    }
    Ok(())
}

/// Whether two names lead to one file: by hard links, which paths do not show.
#[cfg(unix)]
fn is_linked(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((of(one), of(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(not(unix))]
fn is_linked(_: &Path, _: &Path) -> bool {
    false
}

/// Makes a folder, and those above it, unless it is there.
pub fn make_folder(parameter: &'static str, path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| {
        Error::usage(
            parameter,
            sentence!("{@0}: cannot make the folder {1}: {2}", parameter, path.display(), error),
            "give the path of a folder that you may write to",
        )
    })
}

/// Where the file really goes: what a symbolic link leads to is replaced, not the link. Never a device or a folder, and nothing
/// through a link that leads nowhere: who can make links could choose where results are written.
fn destination(path: &Path) -> io::Result<PathBuf> {
    if path == Path::new("-") {
        return Err(io::Error::other("standard output is taken by the answer"));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path),
        Ok(_) => Err(io::Error::other("it is not a regular file")),
        Err(_) if fs::symlink_metadata(path).is_ok() => {
            Err(io::Error::other("it is a symbolic link that leads to no file"))
        }
        Err(_) => Ok(path.to_path_buf()),
    }
}
