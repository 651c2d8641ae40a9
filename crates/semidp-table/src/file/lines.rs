//! Lines of a text file, one after the other, in bounded memory.
//!
//! In a private file a line is a unit, so what ends a line must not depend on the text of another line. Two rules of CSV
//! readers break that: a quoted field that spans lines lets one line swallow those after it, and where `\r` ends a line too, a line that
//! begins with `\n` turns the `\r` before it into `\r\n`. Private files are read by neither, unless the caller vouches for the quotes.

use memchr::{memchr, memchr2};
use std::io::{self, BufRead, Cursor, ErrorKind, Read};

/// Longest line that is read, in bytes without its break: 64 MiB. The rest of a longer one is skipped in bounded memory. Chosen,
/// not measured: far above the lines of any table, far below the memory of a machine.
pub(super) const MAX_LINE_BYTES: usize = 64 << 20;

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineBreak {
    /// `\n`, `\r` or `\r\n`, also mixed: the rule of public files.
    Any,
    /// `\n`; one `\r` before it belongs to the break.
    Feed,
}

/// What a quote does to line breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// Nothing: a line ends at its break.
    WithinLine,
    /// A break between quotes is text. A quote opens at the start of a cell only, and cells end at this byte.
    AcrossLines { delimiter: u8 },
}

/// A line, or a record of several lines where quotes may span them.
pub(super) struct Line<'a> {
    /// The byte at which it starts.
    pub(super) start: u64,
    /// Its text without the break; none if it is longer than [`MAX_LINE_BYTES`].
    pub(super) text: Option<&'a [u8]>,
}

/// Splits a text into lines. A break at the end of the text ends the last line and begins no other.
pub(super) struct Lines<R> {
    reader: R,
    line_break: LineBreak,
    quotes: Quotes,
    max_bytes: usize,
    /// The place of the next byte.
    position: u64,
    line: Vec<u8>,
    /// Whether the last break was a `\r` under [`LineBreak::Any`]: a `\n` that follows belongs to it.
    is_after_return: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of a reader that stands at the byte `position`.
    pub(super) fn new(reader: R, position: u64, line_break: LineBreak, quotes: Quotes) -> Self {
        let (max_bytes, line) = (MAX_LINE_BYTES, Vec::new());
        Self { reader, line_break, quotes, max_bytes, position, line, is_after_return: false }
    }

    /// Reads the lines after the last one, which was read under [`LineBreak::Any`], by [`LineBreak::Feed`]. Returns whether the last one
    /// ended as that rule has it: not with a `\r` alone.
    pub(super) fn end_at_feeds(&mut self) -> io::Result<bool> {
        self.line_break = LineBreak::Feed;
        Ok(!self.is_after_return || self.skip_feed()?)
    }

    /// Skips the `\n` of a `\r\n`, if it is there.
    fn skip_feed(&mut self) -> io::Result<bool> {
        self.is_after_return = false;
        let is_feed = buffer(&mut self.reader)?.first() == Some(&b'\n');
        if is_feed {
            self.reader.consume(1);
            self.position += 1;
        }
        Ok(is_feed)
    }

    /// The next line; none at the end of the text.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.is_after_return {
            self.skip_feed()?;
        }
        self.line.clear();
        let start = self.position;
        let (mut state, mut is_too_long) = (State::CellStart, false);
        loop {
            let bytes = buffer(&mut self.reader)?;
            if bytes.is_empty() {
                if self.position == start {
                    return Ok(None);
                }
                break;
            }
            let found = match (self.quotes, self.line_break) {
                (Quotes::WithinLine, LineBreak::Any) => memchr2(b'\n', b'\r', bytes),
                (Quotes::WithinLine, LineBreak::Feed) => memchr(b'\n', bytes),
                (Quotes::AcrossLines { delimiter }, line_break) => {
                    state.end_of_record(bytes, delimiter, line_break)
                }
            };
            let text = &bytes[..found.unwrap_or(bytes.len())];
            is_too_long |= self.line.len() + text.len() > self.max_bytes;
            if is_too_long {
                // Its memory is given back at once.
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(text);
            }
            let taken = text.len() + usize::from(found.is_some());
            self.is_after_return = self.line_break == LineBreak::Any && bytes.get(text.len()) == Some(&b'\r');
            self.reader.consume(taken);
            self.position += taken as u64;
            if found.is_some() {
                break;
            }
        }
        if self.line_break == LineBreak::Feed && self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(Line { start, text: (!is_too_long).then_some(&self.line) }))
    }
}

/// Where the scan of a record is.
#[derive(Clone, Copy)]
enum State {
    CellStart,
    Plain,
    Quoted,
    /// After a quote within quotes: it closes them, or another one follows and the two stand for one.
    QuoteInQuoted,
}

impl State {
    /// The place of the break that ends the record, if it is among the bytes.
    fn end_of_record(&mut self, bytes: &[u8], delimiter: u8, line_break: LineBreak) -> Option<usize> {
        for (place, &byte) in bytes.iter().enumerate() {
            let is_break = match line_break {
                LineBreak::Any => matches!(byte, b'\n' | b'\r'),
                LineBreak::Feed => byte == b'\n',
            };
            *self = match (*self, byte) {
                (Self::Quoted, b'"') => Self::QuoteInQuoted,
                (Self::Quoted, _) | (Self::QuoteInQuoted | Self::CellStart, b'"') => Self::Quoted,
                _ if is_break => return Some(place),
                (_, byte) if byte == delimiter => Self::CellStart,
                _ => Self::Plain,
            };
        }
        None
    }
}

/// What the reader has buffered; empty at the end.
fn buffer<R: BufRead>(reader: &mut R) -> io::Result<&[u8]> {
    loop {
        match reader.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            // Asked again, as the compiler does not see that the borrow of a loop has ended; it reads nothing.
            Ok(_) => return reader.fill_buf(),
        }
    }
}

/// The text after a byte order mark, and the bytes of the mark: it is one at the start of a file only.
pub(super) fn skip_mark(mut reader: impl Read) -> io::Result<(impl Read, u64)> {
    const MARK: &[u8] = &[0xef, 0xbb, 0xbf];
    let mut start = Vec::new();
    reader.by_ref().take(MARK.len() as u64).read_to_end(&mut start)?;
    let length = if start == MARK { start.len() } else { 0 };
    start.drain(..length);
    Ok((Cursor::new(start).chain(reader), length as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    /// Lines with where they start, read through a buffer of this many bytes.
    fn all(text: &[u8], line_break: LineBreak, quotes: Quotes, buffered: usize) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Lines::new(BufReader::with_capacity(buffered, text), 0, line_break, quotes);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.start, line.text.unwrap().to_vec()));
        }
        found
    }

    #[test]
    fn lines_end_at_their_breaks() {
        let across = Quotes::AcrossLines { delimiter: b',' };
        for buffered in [1, 2, 3, 100] {
            for (text, line_break, quotes, expected) in [
                ("a\nb\n", LineBreak::Any, Quotes::WithinLine, &[(0, "a"), (2, "b")][..]),
                ("a\r\n\r\n\nb", LineBreak::Any, Quotes::WithinLine, &[(0, "a"), (3, ""), (5, ""), (6, "b")]),
                ("a\r\rb\r", LineBreak::Any, Quotes::WithinLine, &[(0, "a"), (2, ""), (3, "b")]),
                (
                    "a\r\r\nb\rc\n\r\n",
                    LineBreak::Feed,
                    Quotes::WithinLine,
                    &[(0, "a\r"), (4, "b\rc"), (8, "")],
                ),
                ("\"a\nb\",c\nd\"\ne\n", LineBreak::Any, across, &[(0, "\"a\nb\",c"), (8, "d\""), (11, "e")]),
                ("\"a\"\"\n\"\"\nb", LineBreak::Any, across, &[(0, "\"a\"\"\n\"\"\nb")]),
                ("\"a\"x\nb", LineBreak::Feed, across, &[(0, "\"a\"x"), (5, "b")]),
                ("", LineBreak::Any, Quotes::WithinLine, &[]),
                ("\n", LineBreak::Feed, Quotes::WithinLine, &[(0, "")]),
            ] {
                let found = all(text.as_bytes(), line_break, quotes, buffered);
                let expected: Vec<(u64, Vec<u8>)> =
                    expected.iter().map(|(start, line)| (*start, line.as_bytes().to_vec())).collect();
                assert_eq!(found, expected, "{text:?} {line_break:?} {quotes:?} {buffered}");
            }
        }
    }

    #[test]
    fn after_a_header_that_ends_with_a_line_feed_lines_do() {
        for (text, expected, second) in [
            ("h\r\na\rb\n", true, Some("a\rb")),
            ("h\na\rb\n", true, Some("a\rb")),
            ("h", true, None),
            ("h\ra\nb\r", false, Some("a")),
            ("h\r", false, None),
        ] {
            let mut lines = Lines::new(text.as_bytes(), 0, LineBreak::Any, Quotes::WithinLine);
            assert_eq!(lines.next().unwrap().unwrap().text, Some(&b"h"[..]));
            assert_eq!(lines.end_at_feeds().unwrap(), expected, "{text:?}");
            let found = lines.next().unwrap().map(|line| line.text.unwrap().to_vec());
            assert_eq!(found.as_deref(), second.map(str::as_bytes), "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_skipped_without_being_kept() {
        let text = [&b"a\n"[..], &[b'x'; 5000], b"\nb\n", &[b'y'; 100]].concat();
        let mut lines =
            Lines::new(BufReader::with_capacity(64, &text[..]), 0, LineBreak::Feed, Quotes::WithinLine);
        lines.max_bytes = 100;
        assert_eq!(lines.next().unwrap().unwrap().text, Some(&b"a"[..]));
        let long = lines.next().unwrap().unwrap();
        assert_eq!((long.start, long.text), (2, None));
        assert!(lines.line.capacity() < 300);
        assert_eq!(lines.next().unwrap().unwrap().text, Some(&b"b"[..]));
        assert_eq!(lines.next().unwrap().unwrap().text, Some(&[b'y'; 100][..]));
        assert!(lines.next().unwrap().is_none());
    }

    #[test]
    fn a_byte_order_mark_is_one_at_the_start_only() {
        for (text, length, rest) in [
            (&b"\xef\xbb\xbfa"[..], 3, &b"a"[..]),
            (b"\xef\xbb", 0, b"\xef\xbb"),
            (b"", 0, b""),
            (b"\xef\xbb\xbf\xef\xbb\xbf", 3, b"\xef\xbb\xbf"),
        ] {
            let (mut reader, found) = skip_mark(text).unwrap();
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            assert_eq!((found, &bytes[..]), (length, rest));
        }
    }
}
