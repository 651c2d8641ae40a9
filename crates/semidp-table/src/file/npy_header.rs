//! The header of an NPY array: `\x93NUMPY`, a version, a length, and a Python dictionary such as
//! `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }`.

use super::MAX_COLUMNS;
use std::io::Read;

/// What an array is like.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) kind: Element,
    pub(super) big_endian: bool,
    /// Columns one after the other, rather than rows.
    pub(super) by_columns: bool,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// An array of one dimension is one column.
    pub(super) flat: bool,
    /// The bytes before the first number.
    pub(super) length: u64,
}

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Element {
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
}

impl Element {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }
}

/// Longer headers are of arrays with thousands of named fields, which are no tables here.
const LONGEST: usize = 1 << 16;

/// Most bytes that an array by columns may have where it is read from a stream, which keeps it in memory: 512 MiB. Chosen, not
/// measured: half of the memory that a reader may take.
const MAX_STREAMED_BYTES: u64 = 512 << 20;

impl Header {
    /// Reads a header and leaves the reader at the first number. The reason of a failure depends on the
    /// header alone.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let fail = |error: std::io::Error| error.to_string();
        let mut start = [0u8; 8];
        reader.read_exact(&mut start).map_err(fail)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("it is not an NPY array".into());
        }
        let (size, before) = match start[6] {
            1 => {
                let mut size = [0u8; 2];
                reader.read_exact(&mut size).map_err(fail)?;
                (usize::from(u16::from_le_bytes(size)), 10)
            }
            2 | 3 => {
                let mut size = [0u8; 4];
                reader.read_exact(&mut size).map_err(fail)?;
                (u32::from_le_bytes(size) as usize, 12)
            }
            version => return Err(format!("it is an NPY array of version {version}; known are 1 to 3")),
        };
        if size > LONGEST {
            return Err("its header is too long".into());
        }
        let mut text = vec![0u8; size];
        reader.read_exact(&mut text).map_err(fail)?;
        let text = std::str::from_utf8(&text).map_err(|_| "its header is not text")?;
        Self::parse(text, (before + size) as u64)
    }

    fn parse(text: &str, length: u64) -> Result<Self, String> {
        let broken = || "its header is broken".to_string();
        let value = |key: &str| {
            let after = text.split_once(&format!("'{key}'")).ok_or_else(broken)?.1;
            after.trim_start().strip_prefix(':').map(str::trim_start).ok_or_else(broken)
        };
        let (big_endian, kind) = element(value("descr")?)?;
        let by_columns = match value("fortran_order")? {
            order if order.starts_with("True") => true,
            order if order.starts_with("False") => false,
            _ => return Err(broken()),
        };
        let shape = value("shape")?.strip_prefix('(').and_then(|shape| shape.split_once(')'));
        let shape: Vec<usize> = shape
            .ok_or_else(broken)?
            .0
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| size.trim_end_matches('L').parse().map_err(|_| broken()))
            .collect::<Result<_, _>>()?;
        let (rows, columns) = match shape[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => return Err(format!("it has {} dimensions; a table has one or two", shape.len())),
        };
        if columns == 0 || columns > MAX_COLUMNS {
            return Err(format!("it has {columns} columns; a table has from 1 to {MAX_COLUMNS}"));
        }
        // Offsets into the array are computed without further checks.
        let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(kind.bytes()));
        if bytes.and_then(|bytes| i64::try_from(bytes).ok()?.checked_add_unsigned(length)).is_none() {
            return Err("its header says a size that no file has".into());
        }
        Ok(Self { kind, big_endian, by_columns, rows, columns, flat: shape.len() == 1, length })
    }

    /// Refuses an array that would fill the memory if it were read from a stream.
    pub(super) fn check_stream(&self) -> Result<(), String> {
        if self.by_columns && !self.flat && self.body() > MAX_STREAMED_BYTES {
            return Err(
                "it is by columns (Fortran order) and larger than 512 MiB: store it by rows (C order)".into(),
            );
        }
        Ok(())
    }

    /// The bytes of all numbers.
    pub(super) fn body(&self) -> u64 {
        (self.rows * self.columns * self.kind.bytes()) as u64
    }
}

/// Refuses arrays that are read side by side from streams and would fill the memory together.
pub(super) fn check_streams<'a>(headers: impl Iterator<Item = &'a Header>) -> Result<(), &'static str> {
    let by_columns = headers.filter(|header| header.by_columns && !header.flat);
    match by_columns.fold(0, |sum: u64, header| sum.saturating_add(header.body())) > MAX_STREAMED_BYTES {
        true => {
            Err("its arrays by columns (Fortran order) are larger than 512 MiB: store them by rows (C order)")
        }
        false => Ok(()),
    }
}

/// A type such as `'<f8'`.
fn element(text: &str) -> Result<(bool, Element), String> {
    let Some(text) = text.strip_prefix('\'').and_then(|text| text.split_once('\'')) else {
        return Err("its numbers have several fields; a table has one a column".into());
    };
    let text = text.0;
    let (order, kind) = match text.as_bytes().first() {
        Some(b'<' | b'>' | b'|' | b'=') => text.split_at(1),
        _ => ("=", text),
    };
    let big_endian = match order {
        ">" => true,
        "=" => cfg!(target_endian = "big"),
        _ => false,
    };
    let kind = match kind {
        "f4" => Element::F32,
        "f8" => Element::F64,
        "i1" => Element::I8,
        "i2" => Element::I16,
        "i4" => Element::I32,
        "i8" => Element::I64,
        "u1" => Element::U8,
        "u2" => Element::U16,
        "u4" => Element::U32,
        "u8" => Element::U64,
        "b1" => Element::Bool,
        _ => return Err(format!("its type is {text}; known are f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1")),
    };
    Ok((big_endian, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_shapes() {
        let header = |text| Header::parse(text, 128);
        let table = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }  \n").unwrap();
        let expected = Header {
            kind: Element::F64,
            big_endian: false,
            by_columns: false,
            rows: 3,
            columns: 2,
            flat: false,
            length: 128,
        };
        assert_eq!(table, expected);
        let column = header("{'shape':(5,),'fortran_order':True,'descr':'>i2'}").unwrap();
        assert_eq!((column.rows, column.columns, column.flat, column.big_endian), (5, 1, true, true));
        assert_eq!(column.body(), 10);
        for bad in [
            "",
            "{'descr': '<f8'}",
            "{'descr': '<f2', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<U5', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': 1, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1099511627776)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 0)}",
        ] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }
}
