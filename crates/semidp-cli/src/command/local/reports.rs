//! Files of reports, line by line: whoever wrote them, no line takes more memory than a report.

use super::randomize::is_gzip;
use crate::failure::Failure;
use flate2::bufread::MultiGzDecoder;
use semidp::local::{Aggregate, Body, Header, LongestLine, Refusal, ReportLine};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 18;

/// Numbers of a report by rank that the first report may claim, unless columns, public rows or the options of reports say how many there
/// are: such a report has about 200 bytes whatever its dimension, and the aggregate 150 bytes for each number. Chosen, not measured.
const MOST_CLAIMED: usize = 100_000;

/// Numbers of a report, as something else than reports says.
#[derive(Debug, Clone, Copy)]
pub struct KnownDimension {
    /// The option that says it.
    pub option: &'static str,
    pub numbers: usize,
}

/// Lines that were left out, by reason.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Skipped {
    pub count: u64,
    pub reasons: BTreeMap<&'static str, u64>,
}

impl Skipped {
    fn add(&mut self, reason: &'static str) {
        self.count += 1;
        *self.reasons.entry(reason).or_default() += 1;
    }
}

/// Adds up the reports of a file, on top of those of others. Without a header that was expected the first report of all says what
/// a report of this round is.
///
/// An invalid line refuses the whole file, unless `skipped` counts it. What a line says then affects no other line, but for the id
/// of a report: of several with one id the first counts.
///
/// `known` is how many numbers columns, public rows or a centre have: nothing is allocated for a report that claims another.
pub fn add_file(
    all: &mut Option<Aggregate>,
    path: &Path,
    known: Option<KnownDimension>,
    skipped: Option<&mut Skipped>,
    added: &dyn Fn(),
) -> Result<(), Failure> {
    let lines = Lines::open(path).map_err(|error| {
        Failure::input(
            format!("--reports: cannot read {}: {error}", path.display()),
            "give files that `semidp local randomize` wrote, with commas between them",
        )
    })?;
    add_lines(all, lines, known, skipped, added).map_err(|(line, reason)| refused(path, line, &reason))
}

/// The same for lines; an error has the number of its line.
fn add_lines(
    all: &mut Option<Aggregate>,
    mut lines: Lines,
    known: Option<KnownDimension>,
    mut skipped: Option<&mut Skipped>,
    added: &dyn Fn(),
) -> Result<(), (u64, String)> {
    lines.longest = all.as_ref().map(|all| LongestLine::of(all.header().dimension));
    let mut number = 0u64;
    loop {
        number += 1;
        let (reason, text) = match lines.next() {
            Ok(None) => return Ok(()),
            Ok(Some(line)) => match ReportLine::read(line) {
                Err(reason) => ("no report", reason),
                Ok(report) => {
                    let aggregate = match all {
                        Some(aggregate) => aggregate,
                        None => {
                            check_claim(&report, known).map_err(|reason| (number, reason))?;
                            let new = Aggregate::new(report.header.clone());
                            let new = new.map_err(|error| (number, error.to_string()))?;
                            lines.longest = Some(LongestLine::of(report.header.dimension));
                            all.insert(new)
                        }
                    };
                    match aggregate.add(&report.report()) {
                        Ok(()) => {
                            added();
                            continue;
                        }
                        Err(refusal) => {
                            (refusal.name(), in_words(refusal, &report.header, aggregate.header()))
                        }
                    }
                }
            },
            Err(Trouble::Unreadable(reason)) => return Err((number, reason)),
            Err(Trouble::TooLong) => {
                let reason = "it is longer than any report of its dimension";
                if skipped.is_some() {
                    lines.skip_rest().map_err(|reason| (number, reason))?;
                }
                ("too long", reason.into())
            }
        };
        match &mut skipped {
            Some(skipped) => skipped.add(reason),
            None => return Err((number, text)),
        }
    }
}

/// Refuses a first report whose dimension nothing supports, before memory is taken for it.
fn check_claim(report: &ReportLine, known: Option<KnownDimension>) -> Result<(), String> {
    let claimed = report.header.dimension;
    if let Some(KnownDimension { option, numbers }) = known.filter(|known| known.numbers != claimed) {
        return Err(format!("it is of {claimed} numbers, but {option} has {numbers} columns"));
    }
    match &report.body {
        Body::Vector(vector) if vector.len() != claimed => Err(Refusal::Width.reason().into()),
        Body::Rank(_) if known.is_none() && claimed > MOST_CLAIMED => Err(format!(
            "it is of {claimed} numbers: more than {MOST_CLAIMED} are expected only where --public, --columns or --dimension says so"
        )),
        _ => Ok(()),
    }
}

fn refused(path: &Path, line: u64, reason: &str) -> Failure {
    Failure::input(
        format!("--reports: {}, line {line}: {reason}", path.display()),
        "nothing was added up: ask for the file again, or leave invalid lines out with --skip-invalid, which counts them",
    )
}

fn in_words(refusal: Refusal, found: &Header, first: &Header) -> String {
    match (refusal, found.difference(first)) {
        (Refusal::Mixture, Some(field)) => format!("its {field} is not that of the first report"),
        _ => refusal.reason().into(),
    }
}

/// Why there is no line.
#[derive(Debug)]
enum Trouble {
    /// The file cannot be read further.
    Unreadable(String),
    /// It is longer than a report; its rest is not read.
    TooLong,
}

/// Lines that may not be too long.
struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Not known before the first report.
    longest: Option<LongestLine>,
}

impl Lines {
    fn open(path: &Path) -> io::Result<Self> {
        // Before it is opened: a pipe waits for whoever writes to it.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let file = BufReader::with_capacity(BUFFER, File::open(path)?);
        let reader: Box<dyn BufRead> = match is_gzip(path) {
            true => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))),
            false => Box::new(file),
        };
        Ok(Self { reader, line: Vec::new(), longest: None })
    }

    /// The next line without its end; none at the end of the file.
    fn next(&mut self) -> Result<Option<&[u8]>, Trouble> {
        self.line.clear();
        let mut most = self.longest.map_or(LongestLine::HEADER, |longest| longest.0);
        let mut is_guess = self.longest.is_none();
        loop {
            let room = (most + 2 - self.line.len()) as u64;
            let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.line);
            let read = read.map_err(unreadable)?;
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                return Ok(Some(&self.line));
            }
            if read < room as usize {
                // The end of the file. A line that was cut off is no report; one that lacks its end alone is.
                return Ok((!self.line.is_empty()).then_some(&self.line));
            }
            // Longer than all but the first line of large reports, which says how long it may be.
            let said = LongestLine::by_beginning(&self.line).filter(|said| is_guess && said.0 > most);
            most = said.ok_or(Trouble::TooLong)?.0;
            is_guess = false;
        }
    }

    /// Skips what is left of a line that is too long.
    fn skip_rest(&mut self) -> Result<(), String> {
        self.reader.skip_until(b'\n').map(|_| ()).map_err(|error| format!("it cannot be read: {error}"))
    }
}

fn unreadable(error: io::Error) -> Trouble {
    Trouble::Unreadable(format!("it cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, longest: Option<usize>) -> Lines {
        let reader = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
        Lines { reader, line: Vec::new(), longest: longest.map(LongestLine) }
    }

    #[test]
    fn lines_end_where_they_should() {
        let mut all = lines("ab\n\nabc", Some(3));
        assert_eq!(all.next().unwrap(), Some(&b"ab"[..]));
        assert_eq!(all.next().unwrap(), Some(&b""[..]));
        assert_eq!(all.next().unwrap(), Some(&b"abc"[..]));
        assert_eq!(all.next().unwrap(), None);
    }

    #[test]
    fn long_lines_are_not_read_to_their_end() {
        let long = "x".repeat(1_000_000);
        let mut known = lines(&long, Some(100));
        assert!(matches!(known.next(), Err(Trouble::TooLong)));
        assert!(known.line.capacity() < 1000);
        let mut unknown = lines(&long, None);
        assert!(unknown.next().is_err());
        assert!(unknown.line.capacity() < 100_000);
        // The first line says how long it may be, and is held to it.
        let mut first = lines(&format!("{{\"dimension\":1000,{long}"), None);
        assert!(first.next().is_err());
        assert!(first.line.capacity() < 100_000);
        let fits = format!("{{\"dimension\":1000,{}", &long[..30_000]);
        assert_eq!(lines(&fits, None).next().unwrap().map(<[u8]>::len), Some(fits.len()));
    }

    mod properties {
        use super::*;
        use proptest::prelude::*;
        use semidp::local::{Content, REPORT_FORMAT, Report, seeded_id};
        use semidp_accounting::Epsilon;

        fn header() -> Header {
            Header {
                format: REPORT_FORMAT.into(),
                round: "1".into(),
                mechanism: "duchi".into(),
                dimension: 1,
                epsilon: Epsilon::new(1.0).unwrap(),
                radius: 1.0,
                centre: None,
            }
        }

        /// Reports of one number: all have the same length.
        fn line(number: u64, is_positive: bool) -> Vec<u8> {
            let header = header();
            let longest = header.longest(&header.cap().unwrap());
            let vector = [if is_positive { longest } else { -longest }];
            let mut line = Vec::new();
            ReportLine::write(
                &Report { header: &header, id: seeded_id(1, number), content: Content::Vector(&vector) },
                &mut line,
            )
            .unwrap();
            line.pop();
            line
        }

        /// How many lines were added and left out, and the mean of the former.
        fn add(lines: &[Vec<u8>]) -> (u64, u64, Option<Vec<f64>>) {
            let text = lines.join(&b'\n');
            let mut all = Some(Aggregate::new(header()).unwrap());
            let mut skipped = Skipped::default();
            let lines = Lines { reader: Box::new(io::Cursor::new(text)), line: Vec::new(), longest: None };
            add_lines(&mut all, lines, None, Some(&mut skipped), &|| ()).unwrap();
            let all = all.unwrap();
            (all.len(), skipped.count, all.mean())
        }

        proptest! {
            /// An invalid line removes itself and nothing else, wherever it stands.
            #[test]
            fn a_line_without_a_report_removes_itself(
                signs in proptest::collection::vec(any::<bool>(), 2..9),
                bytes in prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..60),
                    proptest::collection::vec(any::<u8>(), 0..3).prop_map(|more| [line(3, true), more].concat()),
                    Just(vec![b'x'; 20_000]),
                ],
                at in any::<proptest::sample::Index>(),
            ) {
                let mut lines: Vec<_> = (0..).zip(&signs).map(|(number, &sign)| line(100 + number, sign)).collect();
                let at = at.index(lines.len());
                // The last line, if empty, is none.
                let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
                prop_assume!(ReportLine::read(&bytes).is_err() && !(bytes.is_empty() && at + 1 == lines.len()));
                lines[at] = bytes;
                let (added, left_out, mean) = add(&lines);
                lines.remove(at);
                prop_assert_eq!((added, left_out), (signs.len() as u64 - 1, 1));
                prop_assert_eq!((added, 0, mean), add(&lines));
            }
        }

        #[test]
        fn of_two_reports_with_one_id_the_first_counts() {
            let (_, skipped, mean) = add(&[line(1, true), line(1, false), line(1, true)]);
            assert_eq!(skipped, 2);
            assert!(mean.unwrap()[0] > 0.0);
        }
    }
}
