//! NPY arrays of one or two dimensions: columns `x0`, `x1`, ..., all numbers.
//!
//! A plain file is read a piece at a time in either order. A stream cannot go back, so that of a
//! compressed array by columns (Fortran order) the whole is in memory while it is read.

use super::npy_header::{Element, Header};
use super::{
    CHANGED, FAILED, FileColumn, FileKind, Opened, Outcome, Show, TableFile, even_bounds, one_block,
};
use crate::Result;
use crate::cell::Cells;
use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

pub(super) struct NpyFile {
    file: Opened,
    gzip: bool,
    header: Header,
    columns: Vec<FileColumn>,
    bounds: Vec<usize>,
}

impl NpyFile {
    pub(super) fn open(file: Opened, gzip: bool, rows_per_block: usize) -> Result<Self> {
        let broken = |reason: &str| file.unreadable(reason);
        let mut bytes = BufReader::new(file.again().map_err(broken)?);
        let (header, body) = if gzip {
            let mut bytes = MultiGzDecoder::new(bytes);
            let header = Header::read(&mut bytes).map_err(|reason| broken(&reason))?;
            header.check_stream().map_err(|reason| broken(&reason))?;
            let body = std::io::copy(&mut bytes, &mut std::io::sink());
            (header, body.map_err(|error| file.unreadable(error))?)
        } else {
            let header = Header::read(&mut bytes).map_err(|reason| broken(&reason))?;
            let body = file.length.saturating_sub(header.length);
            (header, body)
        };
        if body < header.body() {
            return Err(broken("it is shorter than its header says"));
        }
        let columns = (0..header.columns).map(|column| number_column(format!("x{column}"))).collect();
        let bounds = if gzip { one_block(header.rows) } else { even_bounds(header.rows, rows_per_block) };
        Ok(Self { file, gzip, header, columns, bounds })
    }
}

pub(super) fn number_column(name: String) -> FileColumn {
    FileColumn { name, kind: FileKind::Number }
}

impl TableFile for NpyFile {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        let (start, end) = (self.bounds[block], self.bounds[block + 1]);
        let file = BufReader::new(self.file.again()?);
        let mut array = if self.gzip {
            let mut bytes = MultiGzDecoder::new(file);
            Header::read(&mut bytes).map_err(|_| CHANGED)?;
            Array::stream(&self.header, bytes)?
        } else {
            Array::seek(&self.header, file, start)?
        };
        let wanted: Vec<(usize, usize)> = wanted.iter().copied().zip(0..).collect();
        show.all(end - start, cells, |cells, rows| array.fill(rows, &wanted, cells))
    }
}

/// Bytes that are read at a time, but for a row that is longer.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows of an array, a piece at a time.
pub(super) struct Array<'a> {
    header: &'a Header,
    body: Body<'a>,
    next_row: usize,
    buffer: Vec<u8>,
}

enum Body<'a> {
    /// Rows one after the other: never back.
    Rows(Box<dyn Read + 'a>),
    /// Columns one after the other from some byte on.
    Columns(Box<dyn ReadSeek + 'a>, u64),
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

impl<'a> Array<'a> {
    /// All rows of what comes after the header.
    pub(super) fn stream(
        header: &'a Header,
        bytes: impl Read + 'a,
    ) -> std::result::Result<Self, &'static str> {
        let body = if header.by_columns && !header.flat {
            let mut whole = Vec::new();
            bytes.take(header.body()).read_to_end(&mut whole).map_err(|_| FAILED)?;
            Body::Columns(Box::new(Cursor::new(whole)), 0)
        } else {
            Body::Rows(Box::new(bytes))
        };
        Ok(Self { header, body, next_row: 0, buffer: Vec::new() })
    }

    /// The rows of a file from `row` on.
    fn seek(
        header: &'a Header,
        mut bytes: impl Read + Seek + 'a,
        row: usize,
    ) -> std::result::Result<Self, &'static str> {
        let body = if header.by_columns && !header.flat {
            Body::Columns(Box::new(bytes), header.length)
        } else {
            let before = (row * header.columns * header.kind.bytes()) as u64;
            bytes.seek(SeekFrom::Start(header.length + before)).map_err(|_| FAILED)?;
            Body::Rows(Box::new(bytes))
        };
        Ok(Self { header, body, next_row: row, buffer: Vec::new() })
    }

    /// Reads the next rows. Each wanted column comes with its place among the cells.
    pub(super) fn fill(&mut self, rows: usize, wanted: &[(usize, usize)], cells: &mut [Cells]) -> Outcome {
        let Self { header, body, next_row, buffer } = self;
        let size = header.kind.bytes();
        match body {
            Body::Rows(bytes) => {
                // A piece is small by the columns that are wanted; the array may have many more.
                let row_bytes = header.columns * size;
                let mut left = rows;
                while left > 0 {
                    let rows = left.min((CHUNK_BYTES / row_bytes).max(1));
                    buffer.resize(rows * row_bytes, 0);
                    bytes.read_exact(buffer).map_err(|_| CHANGED)?;
                    for &(column, place) in wanted {
                        if let Some(numbers) = cells[place].numbers() {
                            decode(header, &buffer[column * size..], header.columns, rows, numbers);
                        }
                    }
                    left -= rows;
                }
            }
            Body::Columns(bytes, base) => {
                buffer.resize(rows * size, 0);
                for &(column, place) in wanted {
                    let before = ((column * header.rows + *next_row) * size) as u64;
                    bytes.seek(SeekFrom::Start(*base + before)).map_err(|_| FAILED)?;
                    bytes.read_exact(buffer).map_err(|_| CHANGED)?;
                    if let Some(numbers) = cells[place].numbers() {
                        decode(header, buffer, 1, rows, numbers);
                    }
                }
            }
        }
        *next_row += rows;
        Ok(())
    }
}

/// The first of every `stride` numbers, `rows` times.
fn decode(header: &Header, bytes: &[u8], stride: usize, rows: usize, numbers: &mut Vec<f64>) {
    macro_rules! as_numbers {
        ($type:ty) => {{
            const SIZE: usize = size_of::<$type>();
            let one = |at: &[u8]| {
                let mut number = [0u8; SIZE];
                number.copy_from_slice(&at[..SIZE]);
                if header.big_endian {
                    <$type>::from_be_bytes(number)
                } else {
                    <$type>::from_le_bytes(number)
                }
            };
            numbers.extend(bytes.chunks(stride * SIZE).take(rows).map(|at| one(at) as f64));
        }};
    }
    match header.kind {
        Element::F32 => as_numbers!(f32),
        Element::F64 => as_numbers!(f64),
        Element::I8 => as_numbers!(i8),
        Element::I16 => as_numbers!(i16),
        Element::I32 => as_numbers!(i32),
        Element::I64 => as_numbers!(i64),
        Element::U8 => as_numbers!(u8),
        Element::U16 => as_numbers!(u16),
        Element::U32 => as_numbers!(u32),
        Element::U64 => as_numbers!(u64),
        Element::Bool => {
            numbers.extend(bytes.chunks(stride).take(rows).map(|at| f64::from(u8::from(at[0] != 0))));
        }
    }
}
