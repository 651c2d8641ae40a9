//! Files: read whole or from stdin; written whole or not at all.

use crate::failure::Failure;
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
        File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
    };
    if length.map_err(failed)? as u64 > LARGEST {
        return Err(failed(io::Error::other("it is larger than 64 MiB")));
    }
    Ok(text)
}

/// Writes a file so that at every moment the path holds the old text, or the new, or nothing.
pub fn write(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    Reserved::new(option, path)?.fill(text)
}

/// A place for a file, before there is anything to write: what cannot be written should be known before
/// private rows are read.
pub struct Reserved {
    option: String,
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
}

impl Reserved {
    /// Takes a place beside the path; the path itself is not touched.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let failed = |error| cannot_write(option, path, error);
        let path = destination(path).map_err(failed)?;
        let temporary = temporary_beside(&path).map_err(failed)?;
        remove_abandoned(&path);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
        Ok(Self { option: option.into(), path, temporary, file: BufWriter::new(file) })
    }

    /// Puts the text where the path says, at once.
    pub fn fill(mut self, text: &str) -> Result<(), Failure> {
        self.line(text)?;
        self.keep()
    }

    /// Writes a line; nothing is where the path says yet.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| cannot_write(&self.option, &self.path, error))
    }

    /// For more than lines of text; nothing is where the path says yet.
    pub fn writer(&mut self) -> &mut impl Write {
        &mut self.file
    }

    /// Puts what was written where the path says, at once.
    pub fn keep(mut self) -> Result<(), Failure> {
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        let moved = written.and_then(|()| fs::rename(&self.temporary, &self.path));
        let moved = moved.and_then(|()| sync_folder(&self.path));
        moved.map_err(|error| cannot_write(&self.option, &self.path, error))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // Gone already if it was moved; the failure to write is what the user must hear of, not a failure
        // to tidy up after it.
        let _ = fs::remove_file(&self.temporary);
    }
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

/// Where the file really goes: through links, but never over a device or a folder.
fn destination(path: &Path) -> io::Result<PathBuf> {
    if path == Path::new("-") {
        return Err(io::Error::other("standard output is taken by the answer"));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => fs::canonicalize(path),
        Ok(_) => Err(io::Error::other("it is not a regular file")),
        Err(_) => Ok(path.to_path_buf()),
    }
}

/// A file is durable only once the folder that lists it is.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// A name in the same folder, so that the rename cannot cross file systems.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(temporary))
}

/// Removes what processes left that were killed before they could write this file. Where nobody can tell whether a
/// process is alive, it stays.
fn remove_abandoned(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let processes = Path::new("/proc");
    let (true, Ok(entries)) = (processes.join("self").exists(), fs::read_dir(folder)) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let process = found
            .to_str()
            .and_then(|found| found.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(".tmp")?.parse::<u32>().ok());
        if process.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
