//! Tables of text, a row a line: CSV with a header line, and the files of C4.5 (see `c45`). One pass when
//! the file is opened counts the rows and notes where each block starts, so that blocks can be read in any
//! order; a compressed file is one block.
//!
//! The header line names the columns. It is no unit, and the header of a private file is taken to be public. Blank lines before it
//! are skipped.
//!
//! In a private file **every line after the header is one unit**, whatever its bytes are: replacing it by other bytes without `\n`
//! changes the cells of this unit and nothing else, with one exception. If the last line lacks its final `\n` and becomes empty, it is no
//! line any more: the bytes are then those of a file with one line less. So a blank line is a unit, a comment of C4.5 is one, and a quoted
//! field ends with its line at the latest. `\n` ends a line, with or without a `\r` before it. A file whose header line ends with a `\r`
//! alone is refused: were such files read, a first line that begins with `\n` would decide what ends all lines. A line that is ragged,
//! broken or longer than [`MAX_LINE_BYTES`] is a unit with missing cells.
//!
//! In a public file blank lines are no rows (but in CSV of one column, where they are rows with a missing cell), nor are comments
//! of C4.5, and a line that is too long is an error.

use super::fields::Fields;
use super::lines::{LineBreak, Lines, MAX_LINE_BYTES, Quotes, skip_mark};
use super::{CHANGED, FAILED};
use super::{
    FileColumn, FileKind, MAX_COLUMNS, Opened, Outcome, Reading, Role, Show, TableFile, even_bounds,
    one_block,
};
use crate::Result;
use crate::cell::Cells;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

/// Longest header line, in bytes. Chosen, not measured: sixteen bytes for each of [`MAX_COLUMNS`] names.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Why a private file is refused for its header line.
const RETURN_ALONE: &str =
    "its header line ends with a carriage return alone, and lines of a private file end with a line feed";

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 16;

pub(super) struct CsvFile {
    file: Opened,
    style: Style,
    columns: Columns,
    bounds: Vec<usize>,
    /// The byte at which each block starts, in the text without compression.
    starts: Vec<u64>,
    /// Rows that open a quote and do not close it.
    unclosed: usize,
}

/// How the text is written, and who its rows belong to.
#[derive(Clone, Copy)]
pub(super) struct Style {
    delimiter: u8,
    gzip: bool,
    /// Without header line and quotes, with comments, and perhaps a full stop at the end of a row.
    is_c45: bool,
    role: Role,
    line_break: LineBreak,
    quotes: Quotes,
    /// Of CSV: a blank line is a row.
    has_one_column: bool,
}

impl Style {
    /// CSV with a header line, which ends at any line break.
    fn csv(delimiter: u8, gzip: bool, reading: Reading) -> Self {
        let quotes = if reading.multiline { Quotes::AcrossLines { delimiter } } else { Quotes::WithinLine };
        let (line_break, role) = (LineBreak::Any, reading.role);
        Self { delimiter, gzip, is_c45: false, role, line_break, quotes, has_one_column: false }
    }

    /// The convention of C4.5.
    pub(super) fn c45(gzip: bool, role: Role) -> Self {
        let line_break = match role {
            Role::Public => LineBreak::Any,
            Role::Private => LineBreak::Feed,
        };
        let (delimiter, quotes) = (b',', Quotes::WithinLine);
        Self { delimiter, gzip, is_c45: true, role, line_break, quotes, has_one_column: false }
    }

    /// Whether a line is a row. In a private file each is; in a public one the text of a line may say that it is none.
    fn is_row(self, line: Option<&[u8]>) -> bool {
        match (self.role, line) {
            (Role::Private, _) | (Role::Public, None) => true,
            (Role::Public, Some(line)) if self.is_c45 => {
                !matches!(line.trim_ascii_start().first(), None | Some(b'|'))
            }
            (Role::Public, Some(line)) => self.has_one_column || !line.is_empty(),
        }
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
    pub(super) fn open(file: Opened, delimiter: u8, gzip: bool, reading: Reading) -> Result<Self> {
        let mut style = Style::csv(delimiter, gzip, reading);
        let mut lines = style.first_line(&file)?;
        let failed = |error: io::Error| file.unreadable(error);
        let header = loop {
            match lines.next().map_err(failed)? {
                None => return Err(file.unreadable("it has no header line")),
                Some(line) => match line.text {
                    Some([]) => {}
                    Some(text) if text.len() <= MAX_HEADER_BYTES => break text.to_vec(),
                    _ => return Err(file.unreadable("its header line is longer than 16 MiB")),
                },
            }
        };
        let mut names = Fields::new(delimiter, true, MAX_COLUMNS + 1);
        names.split(Some(&header));
        if names.count() > MAX_COLUMNS {
            return Err(file.unreadable(format!("it has more than {MAX_COLUMNS} columns")));
        }
        let name = |cell| {
            let cell = names.get(Some(&header), cell).unwrap_or_default();
            String::from_utf8_lossy(cell.trim_ascii()).into_owned()
        };
        let naming = "; its columns are those that its first line names";
        let columns = Columns::in_order((0..names.count()).map(name), naming);
        if style.role == Role::Private {
            style.line_break = LineBreak::Feed;
            if !lines.end_at_feeds().map_err(failed)? {
                return Err(file.unreadable(RETURN_ALONE));
            }
        }
        style.has_one_column = columns.listed.len() == 1;
        Self::index(file, style, lines, reading.rows_per_block, |_| Ok(columns))
    }

    /// A file without one.
    pub(super) fn open_c45(
        file: Opened,
        style: Style,
        rows_per_block: usize,
        columns: impl FnOnce(usize) -> Result<Columns>,
    ) -> Result<Self> {
        let lines = style.first_line(&file)?;
        Self::index(file, style, lines, rows_per_block, columns)
    }

    /// Counts the rows. The columns may depend on the number of cells in the first.
    fn index(
        file: Opened,
        style: Style,
        mut lines: Lines<Box<dyn BufRead>>,
        rows_per_block: usize,
        columns: impl FnOnce(usize) -> Result<Columns>,
    ) -> Result<Self> {
        let mut fields =
            Fields::new(style.delimiter, !style.is_c45, if style.is_c45 { 0 } else { MAX_COLUMNS });
        let (mut count, mut starts, mut width, mut unclosed) = (0usize, Vec::new(), 0, 0);
        while let Some(line) = lines.next().map_err(|error| file.unreadable(error))? {
            if line.text.is_none() && style.role == Role::Public {
                let place = format!(
                    "the line that starts at byte {} is longer than {MAX_LINE_BYTES} bytes",
                    line.start
                );
                return Err(file.unreadable(place));
            }
            if !style.is_row(line.text) {
                continue;
            }
            if style.role == Role::Public && (count == 0 || !style.is_c45 && line.text.is_some_and(has_quote))
            {
                fields.split(line.text);
                unclosed += usize::from(fields.is_unclosed());
            }
            if count == 0 {
                width = fields.count();
            }
            if count.is_multiple_of(rows_per_block) {
                starts.push(line.start);
            }
            count += 1;
        }
        let bounds = if style.gzip { one_block(count) } else { even_bounds(count, rows_per_block) };
        Ok(Self { columns: columns(width)?, file, style, bounds, starts, unclosed })
    }

    /// The lines of a block.
    fn at(&self, block: usize) -> std::result::Result<Lines<Box<dyn BufRead>>, &'static str> {
        let (mut file, start) = (self.file.again()?, self.starts[block]);
        if self.style.gzip {
            let mut text = self.style.buffered(file);
            io::copy(&mut text.by_ref().take(start), &mut io::sink()).map_err(|_| FAILED)?;
            return Ok(self.style.lines(text, start));
        }
        file.seek(SeekFrom::Start(start)).map_err(|_| FAILED)?;
        Ok(self.style.lines(self.style.buffered(file), start))
    }
}

impl Style {
    /// The lines of a file from its start, which a byte order mark may precede.
    fn first_line(self, file: &Opened) -> Result<Lines<Box<dyn BufRead>>> {
        let bytes = bytes(file.again().map_err(|why| file.unreadable(why))?, self.gzip);
        let (text, mark) = skip_mark(bytes).map_err(|error| file.unreadable(error))?;
        Ok(self.lines(Box::new(BufReader::with_capacity(BUFFER_BYTES, text)), mark))
    }

    fn buffered(self, file: File) -> Box<dyn BufRead> {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, bytes(file, self.gzip)))
    }

    fn lines(self, text: Box<dyn BufRead>, start: u64) -> Lines<Box<dyn BufRead>> {
        Lines::new(text, start, self.line_break, self.quotes)
    }
}

fn has_quote(line: &[u8]) -> bool {
    memchr::memchr(b'"', line).is_some()
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

    fn unclosed(&self) -> usize {
        self.unclosed
    }

    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        let (style, mut lines) = (self.style, self.at(block)?);
        let wanted: Vec<usize> = wanted.iter().map(|&column| self.columns.cells[column]).collect();
        let max_cells = wanted.iter().max().map_or(0, |&most| most.saturating_add(1));
        let mut fields = Fields::new(style.delimiter, !style.is_c45, max_cells);
        show.all(self.bounds[block + 1] - self.bounds[block], cells, |cells, rows| {
            for _ in 0..rows {
                let line = loop {
                    let line = lines.next().map_err(|_| FAILED)?.ok_or(CHANGED)?.text;
                    if style.is_row(line) {
                        break line;
                    }
                };
                fields.split(line);
                // The cell from which a full stop is taken.
                let last = if style.is_c45 { fields.count().checked_sub(1) } else { None };
                for (cells, &place) in cells.iter_mut().zip(&wanted) {
                    let cell = fields.get(line, place);
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

pub(super) fn bytes(file: File, gzip: bool) -> Box<dyn Read> {
    if gzip {
        Box::new(MultiGzDecoder::new(std::io::BufReader::with_capacity(1 << 16, file)))
    } else {
        Box::new(file)
    }
}
