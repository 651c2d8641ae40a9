//! How much memory the pages of a column chunk take once they are unpacked, from their headers alone: a page of 20 bytes may
//! unpack to 2 GB, and the library makes room for what a header says before it unpacks.
//!
//! A page is a header in the compact protocol of Thrift, then as many bytes as the header says.

use std::io::{self, BufRead, ErrorKind, Read, Seek};

/// Memory of one value of a decoded dictionary: a `ByteArray`, the largest type there is.
const VALUE_BYTES: u64 = 48;
/// Deeper structures are in no page header.
const MAX_DEPTH: u32 = 16;

/// Fields of a page header: `PageHeader.type`, `.uncompressed_page_size`, `.compressed_page_size` and
/// `.dictionary_page_header.num_values`, by the field that encloses it and its own number.
const TYPE: (i64, i64) = (0, 1);
const UNPACKED: (i64, i64) = (0, 2);
const PACKED: (i64, i64) = (0, 3);
const DICTIONARY_VALUES: (i64, i64) = (7, 1);
const DICTIONARY_PAGE: i64 = 2;

/// The bytes of the largest page of values and of the largest dictionary of a column chunk, together: it has one of each in memory
/// at a time. `reader` stands at its first byte.
pub(super) fn unpacked_bytes(mut reader: impl BufRead + Seek, chunk: u64) -> io::Result<u64> {
    let (mut left, mut values, mut dictionary) = (chunk, 0, 0);
    while left > 0 {
        let mut header = Header { reader: &mut reader, left, numbers: Vec::new() };
        header.fields(0, 0)?;
        left = header.left;
        let number =
            |field| header.numbers.iter().find(|(found, _)| *found == field).map(|(_, value)| *value);
        let size = |field| number(field).and_then(|value| u64::try_from(value).ok()).ok_or_else(broken);
        let (unpacked, packed) = (size(UNPACKED)?, size(PACKED)?);
        left = left.checked_sub(packed).ok_or_else(broken)?;
        reader.seek_relative(i64::try_from(packed).map_err(|_| broken())?)?;
        if number(TYPE) == Some(DICTIONARY_PAGE) {
            let count = size(DICTIONARY_VALUES)?;
            dictionary = dictionary.max(unpacked.saturating_add(count.saturating_mul(VALUE_BYTES)));
        } else {
            values = values.max(unpacked);
        }
    }
    Ok(dictionary.saturating_add(values))
}

fn broken() -> io::Error {
    ErrorKind::InvalidData.into()
}

/// A structure of Thrift as it is read; of its numbers those at its root and one level below are kept.
struct Header<'a, R> {
    reader: &'a mut R,
    left: u64,
    numbers: Vec<((i64, i64), i64)>,
}

impl<R: Read> Header<'_, R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.left = self.left.checked_sub(1).ok_or_else(broken)?;
        self.reader.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(broken)?;
        let skipped = io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink())?;
        if skipped == bytes { Ok(()) } else { Err(broken()) }
    }

    fn unsigned(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(broken())
    }

    fn signed(&mut self) -> io::Result<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The fields of a structure, which itself is the field `parent` of another one; 0 at the root.
    fn fields(&mut self, parent: i64, depth: u32) -> io::Result<()> {
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => self.signed()?,
                step => field.wrapping_add(i64::from(step)),
            };
            match head & 15 {
                // Their value is in the type.
                1 | 2 => {}
                4..=6 => {
                    let value = self.signed()?;
                    if depth <= 1 && self.numbers.len() < 64 {
                        self.numbers.push(((parent, field), value));
                    }
                }
                kind => self.value(kind, field, depth)?,
            }
        }
    }

    fn value(&mut self, kind: u8, field: i64, depth: u32) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(broken());
        }
        match kind {
            // Booleans of a list have a byte each.
            1..=3 => self.skip(1),
            4..=6 => self.signed().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.unsigned()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.value(head & 15, -1, depth + 1))
            }
            11 => {
                let count = self.unsigned()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.value(kinds >> 4, -1, depth + 1)?;
                    self.value(kinds & 15, -1, depth + 1)
                })
            }
            // A structure within a structure of the root is none of interest.
            12 => self.fields(if depth == 0 { field } else { -1 }, depth + 1),
            13 => self.skip(16),
            _ => Err(broken()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn unpacked(bytes: &[u8]) -> Option<u64> {
        unpacked_bytes(Cursor::new(bytes), bytes.len() as u64).ok()
    }

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A page of 3 bytes: its type, what it says that it unpacks to, and how many values it says that its dictionary has.
    fn page(kind: u64, size: u64, values: u64) -> Vec<u8> {
        let parts: [&[u8]; 9] = [
            &[0x15],
            &varint(2 * kind),
            &[0x15],
            &varint(2 * size),
            &[0x15, 6],
            // Field 7, of the dictionary: the number of values and an encoding; or field 5, with statistics.
            if kind == 2 { &[0x4c, 0x15] } else { &[0x2c, 0x15] },
            &varint(2 * values),
            if kind == 2 {
                &[0x15, 0, 0, 0]
            } else {
                &[0x4c, 0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x11, 0, 0, 0]
            },
            b"abc",
        ];
        parts.concat()
    }

    #[test]
    fn the_largest_pages_count() {
        let pages = [page(2, 1000, 10), page(0, 50, 7), page(0, 1 << 30, 7), page(0, 9, 7)].concat();
        assert_eq!(unpacked(&pages), Some(1000 + 10 * VALUE_BYTES + (1 << 30)));
        assert_eq!(unpacked(&page(2, 4, i32::MAX as u64)), Some(4 + i32::MAX as u64 * VALUE_BYTES));
        assert_eq!(unpacked(b""), Some(0));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let good = page(2, 1000, 10);
        for end in 1..good.len() {
            assert_eq!(unpacked(&good[..end]), None, "{end}");
        }
        // Lists of lists, a length beyond the chunk, and a size below zero.
        assert_eq!(unpacked(&[0x19; 4000]), None);
        assert_eq!(unpacked(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x7f]), None);
        assert_eq!(unpacked(&[0x15, 0, 0x15, 1, 0x15, 2, 0, 0]), None);
    }
}
