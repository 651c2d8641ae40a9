//! CSV with a header line. One pass when the file is opened counts the rows and notes where each block
//! starts, so that blocks can be read in any order; a compressed file is one block.
//!
//! Ragged rows are no error: cells too few are missing, cells too many are not looked at. A blank line
//! is no row, unless the file has one column: there it is a row whose cell is missing.

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
    /// Then the file is read as a whole, with its blank lines.
    has_one_column: bool,
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
        let has_one_column = columns.len() == 1;
        if has_one_column {
            let again = bytes(file.again().map_err(|why| file.unreadable(why))?, gzip);
            reader = table(delimiter, Box::new(BlankLines::new(again)));
            reader.read_byte_record(&mut record).map_err(unreadable)?;
        }
        let (mut rows, mut starts) = (0usize, Vec::new());
        while reader.read_byte_record(&mut record).map_err(unreadable)? {
            if rows.is_multiple_of(rows_per_block) {
                starts.push(record.position().map_or(0, |position| position.byte()));
            }
            rows += 1;
        }
        let is_whole = gzip || has_one_column;
        let bounds = if is_whole { one_block(rows) } else { even_bounds(rows, rows_per_block) };
        Ok(Self { file, delimiter, gzip, has_one_column, columns, bounds, starts })
    }

    /// A reader of which the next record is the first of a block.
    fn at(&self, block: usize) -> std::result::Result<Reader<Box<dyn Read>>, &'static str> {
        let mut file = self.file.again()?;
        if self.gzip || self.has_one_column {
            let bytes = bytes(file, self.gzip);
            let bytes = if self.has_one_column { Box::new(BlankLines::new(bytes)) } else { bytes };
            let mut reader = table(self.delimiter, bytes);
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

/// Writes `""` on the blank lines after the header, where a reader of CSV would see no row.
struct BlankLines<R> {
    bytes: R,
    /// What is still to be handed out.
    ready: Vec<u8>,
    handed: usize,
    is_quoted: bool,
    is_line_start: bool,
    /// Whether the last byte was a carriage return: a line feed after it ends the same line.
    is_after_return: bool,
    is_past_header: bool,
}

impl<R: Read> BlankLines<R> {
    fn new(bytes: R) -> Self {
        Self {
            bytes,
            ready: Vec::new(),
            handed: 0,
            is_quoted: false,
            is_line_start: true,
            is_after_return: false,
            is_past_header: false,
        }
    }

    fn take_in(&mut self, byte: u8) {
        let ends_line = !self.is_quoted && (byte == b'\n' || byte == b'\r');
        let is_second_half = byte == b'\n' && self.is_after_return;
        if ends_line && self.is_line_start && self.is_past_header && !is_second_half {
            self.ready.extend_from_slice(b"\"\"");
        }
        self.ready.push(byte);
        self.is_after_return = ends_line && byte == b'\r';
        match byte {
            _ if ends_line => {
                self.is_past_header |= !self.is_line_start;
                self.is_line_start = true;
            }
            b'"' => {
                self.is_quoted = !self.is_quoted;
                self.is_line_start = false;
            }
            _ => self.is_line_start = false,
        }
    }
}

impl<R: Read> Read for BlankLines<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.handed == self.ready.len() {
            self.ready.clear();
            self.handed = 0;
            let mut chunk = [0u8; 1 << 13];
            let count = self.bytes.read(&mut chunk)?;
            chunk[..count].iter().for_each(|&byte| self.take_in(byte));
        }
        let count = out.len().min(self.ready.len() - self.handed);
        out[..count].copy_from_slice(&self.ready[self.handed..self.handed + count]);
        self.handed += count;
        Ok(count)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_become_rows() {
        for (text, expected) in [
            ("x\n1\n\n2\n", "x\n1\n\"\"\n2\n"),
            ("x\r\n1\r\n\r\n2", "x\r\n1\r\n\"\"\r\n2"),
            ("x\r1\r\r2\r", "x\r1\r\"\"\r2\r"),
            // Before the header, and within quotes, they are what they were.
            ("\n\nx\n\n", "\n\nx\n\"\"\n"),
            ("x\n\"a\n\nb\"\n", "x\n\"a\n\nb\"\n"),
            ("x\n", "x\n"),
            ("", ""),
        ] {
            let mut found = String::new();
            BlankLines::new(text.as_bytes()).read_to_string(&mut found).unwrap();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
