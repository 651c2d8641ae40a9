//! Cells of text: which are missing, which are numbers, which value of a category they are.

use crate::schema::OTHER;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What stands for a missing cell, besides nothing at all.
///
/// A category that is no value of its column, but would be one without a full stop at its end, is that
/// value: `<=50K.` is `<=50K` where the schema lists that and not the other. The cell and the schema tell,
/// and no other row does.
pub const MISSING: [&str; 10] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "-"];

/// The longest cell of text, in bytes, with the spaces around it. A longer one is missing, and a value of a schema must be shorter:
/// a file of some kilobytes may hold a cell of megabytes in millions of rows. All digits of any double take 1,080 bytes.
pub const MAX_CELL_BYTES: usize = 2048;

/// The text of a cell that is not missing, without the spaces around it.
pub(crate) fn present(cell: &[u8]) -> Option<Cow<'_, str>> {
    if cell.len() > MAX_CELL_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(cell.trim_ascii());
    (!MISSING.contains(&text.as_ref())).then_some(text)
}

/// The number in a cell; NaN where there is none.
pub(crate) fn number(cell: &[u8]) -> f64 {
    if cell.len() > MAX_CELL_BYTES {
        return f64::NAN;
    }
    let cell = cell.trim_ascii();
    let any = || std::str::from_utf8(cell).ok()?.parse().ok();
    short_decimal(cell).or_else(any).unwrap_or(f64::NAN)
}

/// The powers of ten up to the most digits of a short decimal: whole numbers that a double holds exactly.
const TENS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number of at most 15 digits without an exponent, as most in tables are. The digits and the power
/// of ten are exact, so that the one rounding is that of the quotient: the number is the one that the
/// standard library would give, sooner.
fn short_decimal(cell: &[u8]) -> Option<f64> {
    let (negative, digits) = match cell {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > TENS.len() {
        return None;
    }
    let (mut whole, mut count, mut point) = (0u64, 0, None);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                whole = whole * 10 + u64::from(byte - b'0');
                count += 1;
            }
            b'.' if point.is_none() => point = Some(count),
            _ => return None,
        }
    }
    if count == 0 || count == TENS.len() {
        return None;
    }
    let number = whole as f64 / TENS[point.map_or(0, |point| count - point)];
    Some(if negative { -number } else { number })
}

/// The cells of one column of a piece of a table, in the form in which they are wanted.
pub(crate) enum Cells {
    /// Numbers, NaN where there is none.
    Numbers(Vec<f64>),
    /// Values of a category by number.
    Codes { lookup: Arc<Lookup>, codes: Vec<u32> },
    /// Not kept: a schema is learned from them.
    Guess(Guess),
}

impl Cells {
    /// Forgets the last piece.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Numbers(numbers) => numbers.clear(),
            Self::Codes { codes, .. } => codes.clear(),
            Self::Guess(_) => {}
        }
    }

    /// A cell of text, or none.
    pub(crate) fn push_text(&mut self, cell: Option<&[u8]>) {
        match self {
            Self::Numbers(numbers) => numbers.push(cell.map_or(f64::NAN, number)),
            Self::Codes { lookup, codes } => codes.push(lookup.code(cell)),
            Self::Guess(guess) => guess.push(cell),
        }
    }

    /// Where numbers go, if they do. A file's own type was compared with the schema's before.
    pub(crate) fn numbers(&mut self) -> Option<&mut Vec<f64>> {
        match self {
            Self::Numbers(numbers) => Some(numbers),
            _ => None,
        }
    }
}

/// The values of a category by text. Codes from the number of values on all mean [`OTHER`].
pub(crate) struct Lookup {
    codes: HashMap<Box<str>, u32>,
    listed: u32,
}

impl Lookup {
    pub(crate) fn new(values: &[String]) -> Self {
        let listed = values.len() as u32;
        let mut codes: HashMap<Box<str>, u32> =
            values.iter().zip(0..).map(|(value, code)| (value.as_str().into(), code)).collect();
        // Whoever writes `other` into a file means it.
        codes.insert(OTHER.into(), listed);
        Self { codes, listed }
    }

    pub(crate) fn code(&self, cell: Option<&[u8]>) -> u32 {
        let Some(text) = cell.and_then(present) else {
            return self.missing();
        };
        // Those who give a C4.5 file a header line may have left the full stops at the ends of its rows.
        let without_stop = || self.codes.get(text.strip_suffix('.')?);
        self.codes.get(text.as_ref()).or_else(without_stop).copied().unwrap_or(self.unseen())
    }

    /// The number of values; their codes are those below it.
    pub(crate) fn listed(&self) -> u32 {
        self.listed
    }

    /// The number of codes there are.
    pub(crate) fn codes(&self) -> usize {
        self.listed as usize + 3
    }

    pub(crate) fn unseen(&self) -> u32 {
        self.listed + 1
    }

    pub(crate) fn missing(&self) -> u32 {
        self.listed + 2
    }
}

/// The most values that a category learned from a file may have.
pub(crate) const MOST_VALUES: usize = 1000;

/// What a column of text has held so far.
#[derive(Default)]
pub(crate) struct Guess {
    /// Whether a text that reads as a number is one.
    pub(crate) untyped: bool,
    pub(crate) mean: Mean,
    pub(crate) numbers: bool,
    pub(crate) text: bool,
    /// Whether a cell was longer than [`MAX_CELL_BYTES`].
    pub(crate) is_too_long: bool,
    /// At most one more than allowed.
    pub(crate) values: BTreeSet<String>,
}

impl Guess {
    fn push(&mut self, cell: Option<&[u8]>) {
        self.is_too_long |= cell.is_some_and(|cell| cell.len() > MAX_CELL_BYTES);
        let Some(text) = cell.and_then(present) else {
            return;
        };
        if self.untyped
            && let Ok(number) = text.parse()
        {
            self.numbers = true;
            return self.mean.add(number);
        }
        self.text = true;
        if text != OTHER && self.values.len() <= MOST_VALUES && !self.values.contains(text.as_ref()) {
            self.values.insert(text.into_owned());
        }
    }
}

/// The mean of the finite ones among numbers.
#[derive(Default)]
pub(crate) struct Mean {
    sum: f64,
    count: u64,
}

/// Numbers are summed times this, so that no sum of finite ones overflows.
const SMALLER: f64 = 1.0 / 18_446_744_073_709_551_616.0;

impl Mean {
    pub(crate) fn add(&mut self, number: f64) {
        if number.is_finite() {
            self.sum += number * SMALLER;
            self.count += 1;
        }
    }

    pub(crate) fn get(&self) -> Option<f64> {
        // Rounding may lift the mean of the greatest numbers above them.
        let mean = || (self.sum / self.count as f64 / SMALLER).clamp(f64::MIN, f64::MAX);
        (self.count > 0).then(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The short way is the long way.
        #[test]
        fn numbers_are_those_of_the_standard_library(text in "-?[0-9]{0,17}\\.?[0-9]{0,17}(e[0-9])?|[-+.0-9]{0,5}") {
            let expected = text.parse::<f64>().unwrap_or(f64::NAN);
            prop_assert_eq!(number(text.as_bytes()).to_bits(), expected.to_bits(), "{}", text);
        }
    }

    #[test]
    fn cells_that_are_no_numbers() {
        for cell in
            ["", " ", "-", ".", "-.", "1 2", "1,5", "0x10", "one", "NA", "?", "--1", "1.2.3", "\u{661}"]
        {
            assert!(number(cell.as_bytes()).is_nan(), "{cell}");
        }
        assert!(number(b"\xff1").is_nan());
        assert_eq!(number(b" 1.5\t"), 1.5);
        assert_eq!(number(b"-0").to_bits(), (-0.0f64).to_bits());
        assert_eq!(number(b"-Infinity"), f64::NEG_INFINITY);
    }
}
