//! Files: read whole or from stdin; written whole or not at all.

use crate::failure::Failure;
use semidp_core::files::{self, Draft};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Far more than any list of events or certificate needs; keeps a wrong path from filling memory.
const LARGEST: u64 = 64 << 20;

/// The text of a file, or of stdin for `-`. `option` names it in errors.
pub fn read(option: &str, path: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| {
        Failure::input(
            format!("{option}: cannot read {}: {error}", path.display()),
            "give the path of a readable text file, or - for standard input",
        )
    };
    let mut text = String::new();
    let length = if path == Path::new("-") {
        io::stdin().lock().take(LARGEST + 1).read_to_string(&mut text)
    } else {
        open(option, path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
    };
    if length.map_err(failed)? as u64 > LARGEST {
        return Err(failed(io::Error::other("it is larger than 64 MiB")));
    }
    Ok(text)
}

/// A model is a regular file; what is read for a moment may also come out of a pipe, as in `semidp verify <(...)`.
fn open(option: &str, path: &Path) -> io::Result<File> {
    match option {
        "--model" => files::open_regular(path, OpenOptions::new().read(true)),
        _ => File::open(path),
    }
}

/// Writes a file so that at every moment the path holds the old text, or the new, or nothing.
pub fn write(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    Reserved::new(option, path)?.fill(text)
}

/// A place for a file, before there is anything to write: what cannot be written should be known before
/// private rows are read.
pub struct Reserved {
    option: String,
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
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let failed = |error| cannot_write(option, path, error);
        let target = destination(path).map_err(failed)?;
        let draft = Draft::beside(&target, mode_of(&target)).map_err(failed)?;
        let before = stamp(path);
        Ok(Self { option: option.into(), path: path.into(), draft: BufWriter::new(draft), before })
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
    pub fn fill(mut self, text: &str) -> Result<(), Failure> {
        self.line(text)?;
        self.keep()
    }

    /// Writes a line; nothing is where the path says yet.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.draft.write_all(text.as_bytes()).and_then(|()| self.draft.write_all(b"\n"));
        written.map_err(|error| cannot_write(&self.option, &self.path, error))
    }

    /// For more than lines of text; nothing is where the path says yet.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.draft
    }

    /// Puts what was written where the path says, at once.
    pub fn keep(self) -> Result<(), Failure> {
        let Self { option, path, draft, .. } = self;
        let written = draft.into_inner().map_err(io::IntoInnerError::into_error);
        written.and_then(Draft::publish).map_err(|error| cannot_write(&option, &path, error))
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

pub fn cannot_write(option: &str, path: &Path, error: io::Error) -> Failure {
    Failure::input(
        format!("{option}: cannot write {}: {error}", path.display()),
        "give the path of a file in an existing folder that you may write to",
    )
}

/// Refuses files that must differ and do not, whatever they are called, and tables in memory that share numbers. Each comes with its
/// option.
///
/// Paths, inodes and addresses are compared, never contents, not even where a copy of the private rows would be found out: the
/// guarantee holds for every content of the public rows, so an answer that depends on whether they equal the private rows would itself
/// tell neighbouring private data apart.
pub fn refuse_same(files: &[(&str, Option<&PathBuf>)]) -> Result<(), Failure> {
    let mut known: Vec<(&str, &Path, PathBuf)> = Vec::new();
    for (option, path) in files {
        let Some(path) = path else { continue };
        // What does not exist yet is known by its folder.
        let real = fs::canonicalize(path).or_else(|_| {
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
            fs::canonicalize(folder).map(|folder| folder.join(name))
        });
        // A table in memory is no file; the path is its own.
        let real = real.unwrap_or_else(|_| path.to_path_buf());
        for (other, its_path, its_real) in &known {
            if semidp_table::shares_memory(path, its_path) {
                return Err(Failure::input(
                    format!("{other} and {option} must not be the same rows: they share memory"),
                    "give each its own rows: split the array into two that do not overlap",
                ));
            }
            if *its_real == real || is_linked(path, its_path) {
                return Err(Failure::input(
                    format!("{other} and {option} must be different files"),
                    "each file has one part to play: private rows, public rows, schema, answer, certificate",
                ));
            }
        }
        known.push((option, path, real));
    }
    Ok(())
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

/// The same as [`refuse_same`], where files of the run or of SQLite lie beside some of the files: these must differ from all others.
/// They come with what they belong to.
pub fn refuse_same_or_beside(
    files: &[(&str, Option<&PathBuf>)],
    sides: &[(&str, Vec<PathBuf>)],
) -> Result<(), Failure> {
    refuse_same(files)?;
    for (option, paths) in sides {
        for path in paths {
            let others = files.iter().copied();
            refuse_same(&others.chain([(*option, Some(path))]).collect::<Vec<_>>())?;
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
pub fn make_folder(option: &str, path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| {
        Failure::input(
            format!("{option}: cannot make the folder {}: {error}", path.display()),
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
