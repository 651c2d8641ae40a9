//! Tables of text, a row a line: CSV with a header line, and the files of C4.5 (see `c45`). One pass when
//! the file is opened counts the rows and notes where each block starts, so that blocks can be read in any
//! order; a compressed file is one block.
//!
//! Ragged rows are no error: cells too few are missing, cells too many are not looked at. A blank line
//! is no row, unless the file is CSV with one column: there it is a row whose cell is missing.

use super::blank_lines::BlankLines;
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
    style: Style,
    columns: Columns,
    bounds: Vec<usize>,
    /// The byte at which each block starts.
    starts: Vec<u64>,
}

/// How the text is written.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) delimiter: u8,
    pub(super) gzip: bool,
    /// Without header line and quotes, with comments, and perhaps a full stop at the end of a row.
    pub(super) is_c45: bool,
    /// Of CSV. Then the file is read as a whole, with its blank lines.
    pub(super) has_one_column: bool,
}

impl Style {
    fn is_whole(self) -> bool {
        self.gzip || self.has_one_column
    }
}

/// The columns of a file.
pub(super) struct Columns {
    pub(super) listed: Vec<FileColumn>,
    /// Which cell of a row belongs to each.
    pub(super) cells: Vec<usize>,
    /// Where their names are from.
    pub(super) naming: &'static str,
}

impl Columns {
    /// One for each cell.
    pub(super) fn in_order(names: impl Iterator<Item = String>, naming: &'static str) -> Self {
        let listed: Vec<FileColumn> = names.map(column).collect();
        Self { cells: (0..listed.len()).collect(), listed, naming }
    }
}

/// Of anything: only public rows tell what it is.
pub(super) fn column(name: String) -> FileColumn {
    FileColumn { name, kind: FileKind::Untyped }
}

impl CsvFile {
    /// A file with a header line.
    pub(super) fn open(file: Opened, delimiter: u8, gzip: bool, rows_per_block: usize) -> Result<Self> {
        let mut style = Style { delimiter, gzip, is_c45: false, has_one_column: false };
        let name = |cell: &[u8]| String::from_utf8_lossy(cell.trim_ascii()).into_owned();
        let naming = "; its columns are those that its first line names";
        let columns = match Rows::all(&file, style)?.next().map_err(|error| failure(&file, error))? {
            Some(header) => Columns::in_order(header.iter().map(name), naming),
            None => return Err(file.unreadable("it has no header line")),
        };
        style.has_one_column = columns.listed.len() == 1;
        Self::index(file, style, rows_per_block, |_| Ok(columns))
    }

    /// Counts the rows. The columns may depend on the number of cells in the first.
    pub(super) fn index(
        file: Opened,
        style: Style,
        rows_per_block: usize,
        columns: impl FnOnce(usize) -> Result<Columns>,
    ) -> Result<Self> {
        let mut rows = Rows::all(&file, style)?;
        if !style.is_c45 {
            rows.next().map_err(|error| failure(&file, error))?;
        }
        let (mut count, mut starts, mut width) = (0usize, Vec::new(), 0);
        while let Some(row) = rows.next().map_err(|error| failure(&file, error))? {
            if count == 0 {
                width = row.len();
            }
            if count.is_multiple_of(rows_per_block) {
                starts.push(row.position().map_or(0, |position| position.byte()));
            }
            count += 1;
        }
        let bounds = if style.is_whole() { one_block(count) } else { even_bounds(count, rows_per_block) };
        Ok(Self { columns: columns(width)?, file, style, bounds, starts })
    }

    /// A reader of which the next row is the first of a block.
    fn at(&self, block: usize) -> std::result::Result<Rows, &'static str> {
        let mut file = self.file.again()?;
        let start = if self.style.is_whole() { 0 } else { self.starts[block] };
        if start == 0 {
            let mut rows = Rows::new(file, self.style);
            // Rows of CSV never start where the file does.
            if !self.style.is_c45 && rows.next().map_err(|_| FAILED)?.is_none() {
                return Err(CHANGED);
            }
            return Ok(rows);
        }
        file.seek(SeekFrom::Start(start)).map_err(|_| FAILED)?;
        // After a line end a byte order mark is text. Without one the reader would drop it, and
        // perhaps a row with it.
        Ok(Rows::of(Box::new(b"\n".chain(file)), self.style))
    }
}

impl TableFile for CsvFile {
    fn columns(&self) -> &[FileColumn] {
        &self.columns.listed
    }

    fn naming(&self) -> &'static str {
        self.columns.naming
    }

    fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        let mut reader = self.at(block)?;
        let wanted: Vec<usize> = wanted.iter().map(|&column| self.columns.cells[column]).collect();
        show.all(self.bounds[block + 1] - self.bounds[block], cells, |cells, rows| {
            for _ in 0..rows {
                let row = reader.next().map_err(|_| FAILED)?.ok_or(CHANGED)?;
                // The cell from which a full stop is taken.
                let last = if self.style.is_c45 { row.len().checked_sub(1) } else { None };
                for (cells, &place) in cells.iter_mut().zip(&wanted) {
                    let cell = row.get(place);
                    cells.push_text(if Some(place) == last { cell.map(without_stop) } else { cell });
                }
            }
            Ok(())
        })
    }
}

fn without_stop(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    cell.strip_suffix(b".").unwrap_or(cell)
}

/// The rows of a file one after the other, its header line among them.
struct Rows {
    reader: Reader<Box<dyn Read>>,
    record: ByteRecord,
    is_c45: bool,
}

impl Rows {
    fn all(file: &Opened, style: Style) -> Result<Self> {
        Ok(Self::new(file.again().map_err(|why| file.unreadable(why))?, style))
    }

    fn new(file: File, style: Style) -> Self {
        let bytes = bytes(file, style.gzip);
        Self::of(if style.has_one_column { Box::new(BlankLines::new(bytes)) } else { bytes }, style)
    }

    fn of(bytes: Box<dyn Read>, style: Style) -> Self {
        // The header is a record like any other here: the `csv` crate treats it so when it counts bytes.
        let reader = ReaderBuilder::new()
            .delimiter(style.delimiter)
            .quoting(!style.is_c45)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(bytes);
        Self { reader, record: ByteRecord::new(), is_c45: style.is_c45 }
    }

    fn next(&mut self) -> std::result::Result<Option<&ByteRecord>, csv::Error> {
        // Not the reader's own comments: they would go on after a carriage return.
        while self.reader.read_byte_record(&mut self.record)? {
            if !(self.is_c45 && is_no_row(&self.record)) {
                return Ok(Some(&self.record));
            }
        }
        Ok(None)
    }
}

/// Whether a line of C4.5 is blank or a comment. Without quotes a record is a line.
fn is_no_row(record: &ByteRecord) -> bool {
    match record.get(0).map(<[u8]>::trim_ascii) {
        Some([]) => record.len() == 1,
        Some([first, ..]) => *first == b'|',
        None => true,
    }
}

pub(super) fn bytes(file: File, gzip: bool) -> Box<dyn Read> {
    if gzip {
        Box::new(MultiGzDecoder::new(std::io::BufReader::with_capacity(1 << 16, file)))
    } else {
        Box::new(file)
    }
}

/// With bytes and ragged rows allowed, only the file itself can fail.
fn failure(file: &Opened, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => file.unreadable(error),
        _ => file.unreadable("it is not CSV"),
    }
}
