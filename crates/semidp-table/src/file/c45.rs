//! The convention of the UCI archive, which is that of the C4.5 programs: rows in `NAME.data` and `NAME.test`
//! without a header line, columns in `NAME.names` beside them.
//!
//! Of the names file the names are taken and nothing else: it lists the classes first, and then an entry
//! `name: values.` for each column but the last, which is called `class`. It describes the data and is
//! taken to be public, private rows or not. Without it columns are called `x0`, `x1`, ... .
//!
//! Rows never decide what a column is called, and those of a file that is read by a schema not even how
//! many there are: a column `x7` of which no row has a cell is one of missing cells. Where a schema is
//! learned, which only public rows are for, the first row says how many there are.

use super::csv::{Columns, CsvFile, Style, bytes, column};
use super::{MAX_COLUMNS, Opened, Reading};
use crate::{Error, Result};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What the last column is called.
const CLASS: &str = "class";

/// Longest names file, in bytes without compression. Chosen, not measured: sixteen bytes for each of [`MAX_COLUMNS`] names.
const MAX_NAMES_BYTES: u64 = 16 << 20;

/// Opens a file of which `needed` columns are to be read, or of which all are to be learned.
pub(super) fn open(file: Opened, gzip: bool, reading: Reading, needed: Option<&[&str]>) -> Result<CsvFile> {
    let stem = if gzip { file.path.with_extension("") } else { file.path.clone() };
    let names = names_file(&stem)?;
    let path = file.path.clone();
    let style = Style::c45(gzip, reading.role);
    CsvFile::open_c45(file, style, reading.rows_per_block, |width| match (names, needed) {
        (None, None) if width > MAX_COLUMNS => {
            Err(Error::unreadable(&path, format!("it has more than {MAX_COLUMNS} columns")))
        }
        (Some((path, names)), None) if width != names.len() && width > 0 => {
            let reason = format!("it lists {} columns, but the first row has {width} cells", names.len());
            Err(Error::MalformedNames { path, reason })
        }
        (Some((_, names)), _) => {
            Ok(Columns::in_order(names.into_iter(), "; its columns are those that its .names file lists"))
        }
        (None, needed) => Ok(numbered(width, needed)),
    })
}

/// The columns of a file of which nobody says what they are called.
fn numbered(width: usize, needed: Option<&[&str]>) -> Columns {
    let naming = "; without a .names file beside it its columns are x0, x1, ...";
    let Some(needed) = needed else {
        return Columns::in_order((0..width).map(|cell| format!("x{cell}")), naming);
    };
    let cell = |name: &str| {
        let cell: usize = name.strip_prefix('x')?.parse().ok()?;
        // Not `x07`.
        (format!("x{cell}") == name).then_some(cell)
    };
    let found = needed.iter().filter_map(|&name| Some((cell(name)?, column(name.to_string()))));
    let (cells, listed) = found.unzip();
    Columns { listed, cells, naming }
}

/// What the names file says, if there is one: the plain one of two.
fn names_file(stem: &Path) -> Result<Option<(PathBuf, Vec<String>)>> {
    for (ending, gzip) in [("names", false), ("names.gz", true)] {
        let path = stem.with_extension(ending);
        if !path.try_exists().map_err(|error| Error::unreadable(&path, error))? {
            continue;
        }
        let file = Opened::new(&path)?;
        let mut text = Vec::new();
        let mut bytes = bytes(file.again().map_err(|why| file.unreadable(why))?, gzip);
        let most = MAX_NAMES_BYTES;
        bytes.by_ref().take(most + 1).read_to_end(&mut text).map_err(|error| file.unreadable(error))?;
        if text.len() as u64 > most {
            return Err(file.unreadable("it is longer than 16 MiB"));
        }
        return match names(&String::from_utf8_lossy(&text)) {
            Ok(names) => Ok(Some((path, names))),
            Err(reason) => Err(Error::MalformedNames { path, reason }),
        };
    }
    Ok(None)
}

/// The names of the columns, the class last. What is wrong is said without the text: it may be anything.
fn names(text: &str) -> std::result::Result<Vec<String>, String> {
    let mut entries = entries(text).into_iter();
    match entries.next() {
        None => return Err("it is empty".into()),
        Some((line, classes)) if classes.contains(':') => {
            return Err(format!("line {line} must list the classes, as in `yes, no.`"));
        }
        Some(_) => {}
    }
    let name = |(line, entry): (usize, String)| match entry.split_once(':') {
        Some((name, values)) if !name.trim().is_empty() && !values.trim().is_empty() => {
            Ok(name.trim().to_string())
        }
        _ => Err(format!("line {line} must describe a column, as in `age: continuous.`")),
    };
    let mut names: Vec<String> = entries.map(name).collect::<std::result::Result<_, _>>()?;
    if names.is_empty() {
        return Err("it lists no columns".into());
    }
    names.push(CLASS.into());
    Ok(names)
}

/// Lines without comments, each with its number. A line that ends in a comma goes on in the next.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let lines = text.trim_start_matches('\u{feff}').lines();
    for (line, number) in lines.zip(1..) {
        let line = line.split('|').next().unwrap_or_default().trim();
        match entries.last_mut() {
            _ if line.is_empty() => {}
            Some((_, entry)) if entry.ends_with(',') => entry.push_str(line),
            _ => entries.push((number, line.to_string())),
        }
    }
    entries
}
