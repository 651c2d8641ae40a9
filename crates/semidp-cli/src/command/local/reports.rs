//! Files of reports, line by line: whoever wrote them, no line takes more memory than a report.

use super::randomize::is_gzip;
use crate::failure::Failure;
use flate2::bufread::MultiGzDecoder;
use semidp::local::{Aggregate, Header, LongestLine, Refusal, ReportLine};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 18;

/// Adds up the reports of a file, on top of those of others. The first report of all says what a report of this round is.
pub fn add_file(all: &mut Option<Aggregate>, path: &Path, added: &dyn Fn()) -> Result<(), Failure> {
    let mut lines = Lines::open(path).map_err(|error| {
        Failure::input(
            format!("--reports: cannot read {}: {error}", path.display()),
            "give files that `semidp local randomize` wrote, with commas between them",
        )
    })?;
    lines.longest = all.as_ref().map(|all| LongestLine::of(all.header().dimension));
    let mut number = 0u64;
    loop {
        number += 1;
        let refused = |reason: &str| refused(path, number, reason);
        let Some(line) = lines.next().map_err(|reason| refused(&reason))? else { return Ok(()) };
        let report = ReportLine::read(line).map_err(|reason| refused(&reason))?;
        let aggregate = match all {
            Some(aggregate) => aggregate,
            None => {
                let new =
                    Aggregate::new(report.header.clone()).map_err(|error| refused(&error.to_string()))?;
                lines.longest = Some(LongestLine::of(report.header.dimension));
                all.insert(new)
            }
        };
        if let Err(refusal) = aggregate.add(&report.report()) {
            return Err(refused(&in_words(refusal, &report.header, aggregate.header())));
        }
        added();
    }
}

fn refused(path: &Path, line: u64, reason: &str) -> Failure {
    Failure::input(
        format!("--reports: {}, line {line}: {reason}", path.display()),
        "nothing was added up: take the line out if you know why it is there, or ask for the file again",
    )
}

fn in_words(refusal: Refusal, found: &Header, first: &Header) -> String {
    match (refusal, found.difference(first)) {
        (Refusal::Mixture, Some(field)) => format!("its {field} is not that of the first report"),
        _ => refusal.reason().into(),
    }
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
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        let mut most = self.longest.map_or(LongestLine::HEADER, |longest| longest.0);
        let mut is_guess = self.longest.is_none();
        loop {
            let room = (most + 2 - self.line.len()) as u64;
            let read = self.reader.by_ref().take(room).read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| format!("it cannot be read: {error}"))?;
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
            most = said.ok_or("it is longer than any report of its dimension")?.0;
            is_guess = false;
        }
    }
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
        assert!(known.next().unwrap_err().contains("longer"));
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
}
