//! The cells of a line: text between delimiters, in quotes or without.

use memchr::{memchr, memchr_iter};
use std::ops::Range;

const QUOTE: u8 = b'"';

/// Splits lines into cells. Whatever the line, it is one row: cells that it lacks are missing, and so is one whose quotes are
/// not closed.
pub(super) struct Fields {
    delimiter: u8,
    has_quotes: bool,
    /// Cells that are kept of a line.
    max_cells: usize,
    cells: Vec<Place>,
    /// Cells with quotes inside, without them.
    unquoted: Vec<u8>,
    count: usize,
    is_unclosed: bool,
}

#[derive(Clone)]
enum Place {
    Line(Range<usize>),
    Unquoted(Range<usize>),
    Missing,
}

impl Fields {
    /// Keeps the first `max_cells` of each line.
    pub(super) fn new(delimiter: u8, has_quotes: bool, max_cells: usize) -> Self {
        let (cells, unquoted) = (Vec::new(), Vec::new());
        Self { delimiter, has_quotes, max_cells, cells, unquoted, count: 0, is_unclosed: false }
    }

    /// Splits a line, or none, which has no cells.
    pub(super) fn split(&mut self, line: Option<&[u8]>) {
        self.cells.clear();
        self.unquoted.clear();
        (self.count, self.is_unclosed) = (0, false);
        let Some(line) = line else { return };
        let mut start = 0;
        loop {
            if self.cells.len() == self.max_cells {
                // Quotes do not matter any more: only files without them ask for the number of cells.
                self.count += memchr_iter(self.delimiter, &line[start..]).count() + 1;
                return;
            }
            let (place, end) = match line.get(start) {
                Some(&QUOTE) if self.has_quotes => self.quoted(line, start),
                _ => {
                    let end = self.end(line, start);
                    (Place::Line(start..end), end)
                }
            };
            self.cells.push(place);
            self.count += 1;
            if end == line.len() {
                return;
            }
            start = end + 1;
        }
    }

    /// Where the next delimiter is, or the line ends.
    fn end(&self, line: &[u8], start: usize) -> usize {
        memchr(self.delimiter, &line[start..]).map_or(line.len(), |place| start + place)
    }

    /// A cell that starts with a quote, and where it ends.
    fn quoted(&mut self, line: &[u8], start: usize) -> (Place, usize) {
        let (first, mut from) = (self.unquoted.len(), start + 1);
        loop {
            let Some(quote) = memchr(QUOTE, &line[from..]).map(|place| from + place) else {
                self.is_unclosed = true;
                return (Place::Missing, line.len());
            };
            if line.get(quote + 1) == Some(&QUOTE) {
                // Two stand for one.
                self.unquoted.extend_from_slice(&line[from..=quote]);
                from = quote + 2;
                continue;
            }
            let end = self.end(line, quote + 1);
            if from == start + 1 && end == quote + 1 {
                return (Place::Line(from..quote), end);
            }
            self.unquoted.extend_from_slice(&line[from..quote]);
            // What follows the closing quote is text, quotes included.
            self.unquoted.extend_from_slice(&line[quote + 1..end]);
            return (Place::Unquoted(first..self.unquoted.len()), end);
        }
    }

    /// A cell of the line that was split last; none if it is missing.
    pub(super) fn get<'a>(&'a self, line: Option<&'a [u8]>, cell: usize) -> Option<&'a [u8]> {
        match self.cells.get(cell)? {
            Place::Line(range) => line?.get(range.clone()),
            Place::Unquoted(range) => self.unquoted.get(range.clone()),
            Place::Missing => None,
        }
    }

    /// How many cells that line has. With quotes, those after the kept ones are not counted exactly.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether that line opens a quote and does not close it, as far as cells were kept.
    pub(super) fn is_unclosed(&self) -> bool {
        self.is_unclosed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(line: &str) -> Vec<Option<String>> {
        let mut split = Fields::new(b',', true, usize::MAX);
        let line = Some(line.as_bytes());
        split.split(line);
        (0..split.count())
            .map(|cell| split.get(line, cell).map(|text| String::from_utf8(text.to_vec()).unwrap()))
            .collect()
    }

    #[test]
    fn quotes_and_delimiters() {
        for (line, expected) in [
            ("", &[Some("")][..]),
            (",", &[Some(""), Some("")]),
            ("a, b,\"c,d\"", &[Some("a"), Some(" b"), Some("c,d")]),
            ("\"\",\"a\"\"b\"\"\",c", &[Some(""), Some("a\"b\""), Some("c")]),
            ("\"a\"b\"c,d", &[Some("ab\"c"), Some("d")]),
            ("a\"b,\"c", &[Some("a\"b"), None]),
            ("1,\"2,3,4", &[Some("1"), None]),
        ] {
            let expected: Vec<_> = expected.iter().map(|cell| cell.map(String::from)).collect();
            assert_eq!(cells(line), expected, "{line}");
        }
        let mut few = Fields::new(b',', false, 1);
        let line = Some(&b"\"a,b\",c"[..]);
        few.split(line);
        assert_eq!((few.count(), few.get(line, 0), few.get(line, 1)), (3, Some(&b"\"a"[..]), None));
        few.split(None);
        assert_eq!((few.count(), few.get(None, 0)), (0, None));
    }

    proptest! {
        /// Lines with all their quotes closed are what the `csv` crate makes of them.
        #[test]
        fn cells_are_those_of_the_csv_crate(line in "[a\", ]{1,12}") {
            let mut split = Fields::new(b',', true, usize::MAX);
            split.split(Some(line.as_bytes()));
            prop_assume!(!split.is_unclosed());
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            let record = reader.records().next().unwrap().unwrap();
            let expected: Vec<_> = record.iter().map(|cell| Some(cell.to_string())).collect();
            prop_assert_eq!(cells(&line), expected);
        }
    }
}
