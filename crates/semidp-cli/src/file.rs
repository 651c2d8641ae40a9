//! Files: read whole or from stdin; written whole or not at all.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
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
    let failed = |error: io::Error| {
        Failure::input(
            format!("{option}: cannot write {}: {error}", path.display()),
            "give the path of a file in an existing folder that you may write to",
        )
    };
    let path = destination(path).map_err(failed)?;
    let temporary = temporary_beside(&path).map_err(failed)?;
    let written = write_new(&temporary, text).and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // The failure to write is what the user must hear of, not a failure to tidy up after it.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed)
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

/// A name in the same folder, so that the rename cannot cross file systems.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(temporary))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}
