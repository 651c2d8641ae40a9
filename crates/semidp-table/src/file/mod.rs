//! Files of each format as columns of cells in blocks of rows.

mod c45;
mod csv;
mod fields;
mod lines;
pub(crate) mod memory;
mod npy;
mod npy_header;
mod npz;
mod parquet;
mod parquet_pages;

use crate::cell::Cells;
use crate::{Error, Result};
use memory::MemoryTable;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A table in a file.
pub(crate) trait TableFile: Send + Sync {
    /// The columns in the file's order.
    fn columns(&self) -> &[FileColumn];

    /// Where their names are from, as the end of a sentence about a column that is not among them.
    fn naming(&self) -> &'static str {
        ""
    }

    /// Where blocks start, and last where they end: one number more than there are blocks.
    fn bounds(&self) -> &[usize];

    /// Rows of a public file of text that open a quote and do not close it. Zero for a private file: it is not counted there.
    fn unclosed(&self) -> usize {
        0
    }

    /// Reads the `wanted` columns of a block into `cells` and shows them, a piece of `rows_per_piece` rows
    /// or less at a time. `cells` are in the order of `wanted`.
    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome;

    /// The table itself, if it is no file at all but lies in memory.
    fn in_memory(&self) -> Option<&MemoryTable> {
        None
    }
}

/// Whether a block could be read; if not, why, in words that no cell can change.
pub(crate) type Outcome = std::result::Result<(), &'static str>;

/// Takes pieces of a block.
pub(crate) struct Show<'a> {
    pub(crate) rows_per_piece: usize,
    /// Gets the cells of so many rows.
    pub(crate) piece: &'a mut dyn FnMut(&[Cells], usize) -> Outcome,
}

impl Show<'_> {
    /// Fills and shows one piece after the other until all rows are through.
    pub(crate) fn all(
        &mut self,
        rows: usize,
        cells: &mut [Cells],
        mut fill: impl FnMut(&mut [Cells], usize) -> Outcome,
    ) -> Outcome {
        let mut left = rows;
        while left > 0 {
            let rows = left.min(self.rows_per_piece);
            cells.iter_mut().for_each(Cells::clear);
            fill(cells, rows)?;
            (self.piece)(cells, rows)?;
            left -= rows;
        }
        Ok(())
    }
}

/// A column as a file describes it.
pub(crate) struct FileColumn {
    pub(crate) name: String,
    pub(crate) kind: FileKind,
}

/// What a file says about the cells of a column.
pub(crate) enum FileKind {
    /// Nothing: they are text that may be anything.
    Untyped,
    Number,
    Category,
    /// Something that is neither, in the words of the format.
    Unsupported(String),
}

/// More columns than these are a broken header rather than a table, and would fill the memory with names.
pub(crate) const MAX_COLUMNS: usize = 1 << 20;

/// Whose rows a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Rows that may be looked at: some lines of text may be no rows, and a file may be refused for what a row says.
    Public,
    /// Rows to protect: each line is one unit, whatever it says.
    Private,
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) role: Role,
    /// Rows in a block of a file without compression and without blocks of its own.
    pub(crate) rows_per_block: usize,
    /// Whether a quoted field of CSV may span lines.
    pub(crate) multiline: bool,
}

const ENDINGS: &str = ".csv, .tsv, .data, .test, .npy, any of these with .gz, .parquet or .npz";

/// Opens a file of the format that its name says. A file that does not name its columns has those that are
/// `needed`; if all are, it must be public.
pub(crate) fn open(path: &Path, reading: Reading, needed: Option<&[&str]>) -> Result<Box<dyn TableFile>> {
    let rows_per_block = reading.rows_per_block;
    if let Some(table) = memory::attached(path)? {
        return Ok(Box::new(memory::MemoryFile::new(table, rows_per_block)));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let (name, gzip) = match name.strip_suffix(".gz") {
        Some(name) => (name, true),
        None => (name.as_str(), false),
    };
    let opened = Opened::new(path);
    Ok(match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv") => Box::new(csv::CsvFile::open(opened?, b',', gzip, reading)?),
        Some("tsv") => Box::new(csv::CsvFile::open(opened?, b'\t', gzip, reading)?),
        Some("data" | "test") => Box::new(c45::open(opened?, gzip, reading, needed)?),
        Some("npy") => Box::new(npy::NpyFile::open(opened?, gzip, rows_per_block)?),
        Some("npz") if !gzip => Box::new(npz::NpzFile::open(opened?)?),
        Some("parquet") if !gzip => Box::new(parquet::ParquetFile::open(opened?)?),
        _ => return Err(Error::UnknownFormat { path: path.to_path_buf(), known: ENDINGS }),
    })
}

/// A file that was opened once, and is opened again for each block.
pub(crate) struct Opened {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

pub(crate) const CHANGED: &str = "the file changed after it was opened";
pub(crate) const FAILED: &str = "the file cannot be read";

impl Opened {
    fn new(path: &Path) -> Result<Self> {
        let unreadable = |error| Error::unreadable(path, error);
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        // Before it is opened: a pipe waits for whoever writes to it.
        if !metadata.is_file() {
            let what = if metadata.is_dir() { "it is a directory" } else { "it is not a regular file" };
            return Err(Error::unreadable(path, what));
        }
        File::open(path).map_err(unreadable)?;
        Ok(Self { path: path.to_path_buf(), length: metadata.len(), modified: metadata.modified().ok() })
    }

    fn unreadable(&self, reason: impl ToString) -> Error {
        Error::unreadable(&self.path, reason)
    }

    /// Opens it again, if it still is the file that it was.
    fn again(&self) -> std::result::Result<File, &'static str> {
        let file = File::open(&self.path).map_err(|_| FAILED)?;
        let metadata = file.metadata().map_err(|_| FAILED)?;
        if metadata.len() != self.length || metadata.modified().ok() != self.modified {
            return Err(CHANGED);
        }
        Ok(file)
    }
}

/// Blocks of as many rows each; the last may have fewer.
fn even_bounds(rows: usize, rows_per_block: usize) -> Vec<usize> {
    let mut bounds: Vec<usize> = (0..rows).step_by(rows_per_block.max(1)).collect();
    bounds.push(rows);
    bounds
}

/// One block of all rows, or none.
fn one_block(rows: usize) -> Vec<usize> {
    even_bounds(rows, rows)
}
