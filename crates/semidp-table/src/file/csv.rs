//! CSV with a header line. One pass when the file is opened counts the rows and notes where each block
//! starts, so that blocks can be read in any order; a compressed file is one block.
//!
//! Ragged rows are no error: cells too few are missing, cells too many are not looked at. A blank line
//! is no row.

use super::{CHANGED, FAILED};
use super::{FileColumn, FileKind, Opened, Outcome, Show, TableFile, even_bounds, one_block};
use crate::cell::Cells;
use crate::{Error, Result};
use csv::{ByteRecord, Reader, ReaderBuilder};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

pub(super) struct CsvFile {
    file: Opened,
    delimiter: u8,
    gzip: bool,
    columns: Vec<FileColumn>,
    bounds: Vec<usize>,
    /// The byte at which each block starts.
    starts: Vec<u64>,
}

impl CsvFile {
    pub(super) fn open(file: Opened, delimiter: u8, gzip: bool, rows_per_block: usize) -> Result<Self> {
        let mut reader = table(delimiter, bytes(file.again().map_err(|why| file.unreadable(why))?, gzip));
        let unreadable = |error| failure(&file, error);
        let mut record = ByteRecord::new();
        let columns: Vec<FileColumn> = match reader.read_byte_record(&mut record).map_err(unreadable)? {
            true => record.iter().map(column).collect(),
            false => return Err(file.unreadable("it has no header line")),
        };
        let (mut rows, mut starts) = (0usize, Vec::new());
        while reader.read_byte_record(&mut record).map_err(unreadable)? {
            if rows.is_multiple_of(rows_per_block) {
                starts.push(record.position().map_or(0, |position| position.byte()));
            }
            rows += 1;
        }
        let bounds = if gzip { one_block(rows) } else { even_bounds(rows, rows_per_block) };
        Ok(Self { file, delimiter, gzip, columns, bounds, starts })
    }

    /// A reader of which the next record is the first of a block.
    fn at(&self, block: usize) -> std::result::Result<Reader<Box<dyn Read>>, &'static str> {
        let mut file = self.file.again()?;
        if self.gzip {
            let mut reader = table(self.delimiter, bytes(file, true));
            return match reader.read_byte_record(&mut ByteRecord::new()) {
                Ok(true) => Ok(reader),
                Ok(false) => Err(CHANGED),
                Err(_) => Err(FAILED),
            };
        }
        file.seek(SeekFrom::Start(self.starts[block])).map_err(|_| FAILED)?;
        // After a line end a byte order mark is text. Without one the reader would drop it, and
        // perhaps a row with it.
        Ok(table(self.delimiter, Box::new(b"\n".chain(file))))
    }
}

impl TableFile for CsvFile {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        let mut reader = self.at(block)?;
        let mut record = ByteRecord::new();
        show.all(self.bounds[block + 1] - self.bounds[block], cells, |cells, rows| {
            for _ in 0..rows {
                match reader.read_byte_record(&mut record) {
                    Ok(true) => {}
                    Ok(false) => return Err(CHANGED),
                    Err(_) => return Err(FAILED),
                }
                for (cells, &column) in cells.iter_mut().zip(wanted) {
                    cells.push_text(record.get(column));
                }
            }
            Ok(())
        })
    }
}

fn bytes(file: File, gzip: bool) -> Box<dyn Read> {
    if gzip {
        Box::new(MultiGzDecoder::new(std::io::BufReader::with_capacity(1 << 16, file)))
    } else {
        Box::new(file)
    }
}

/// The header is a record like any other here: the `csv` crate treats it so when it counts bytes.
fn table(delimiter: u8, bytes: Box<dyn Read>) -> Reader<Box<dyn Read>> {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(1 << 16)
        .from_reader(bytes)
}

fn column(name: &[u8]) -> FileColumn {
    let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
    FileColumn { name, kind: FileKind::Untyped }
}

/// With bytes and ragged rows allowed, only the file itself can fail.
fn failure(file: &Opened, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => file.unreadable(error),
        _ => file.unreadable("it is not CSV"),
    }
}
