//! Output files never replace what semidp did not write: `train --out data.csv` must not destroy a data file.

use crate::{Error, Result, sentence};
use flate2::read::MultiGzDecoder;
use semidp_accounting::json;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The answer of `mean` or `local aggregate`: an object with a mean and a certificate.
    Answer,
    /// A certificate by itself.
    Certificate,
    /// A model file.
    Model,
    /// What `predict` writes.
    Predictions,
    /// Reports of the local model.
    Reports,
    /// A schema.
    Schema,
}

/// The start of a file that says what it is; the header of predictions names every class.
const START_BYTES: u64 = 1 << 16;
/// An answer is read as a whole. A longer file is not recognised, which refuses it.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Answer => "an answer of this command",
            Self::Certificate => "a certificate",
            Self::Model => "a model",
            Self::Predictions => "a file of predictions",
            Self::Reports => "a file of reports",
            Self::Schema => "a schema",
        }
    }

    /// Whether the file is of this kind. It may be compressed.
    fn is_that_of(self, path: &Path) -> std::io::Result<bool> {
        let start = start(path)?;
        let format = |name: &str| first_format(&start).is_some_and(|found| found.starts_with(name));
        Ok(match self {
            Self::Certificate => format("semidp-certificate/"),
            Self::Model => format("semidp-model/"),
            Self::Reports => format("semidp-report/"),
            Self::Schema => format("semidp-schema/"),
            Self::Predictions => are_predictions(&start),
            Self::Answer => {
                let mut bytes = Vec::new();
                File::open(path)?.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes)?;
                let text = std::str::from_utf8(&bytes).ok();
                let found: Option<Value> = text.and_then(|text| json::parse(text).ok());
                found
                    .is_some_and(|answer| answer.get("mean").is_some() && answer.get("certificate").is_some())
            }
        })
    }
}

/// Refuses to write where a file is that is neither empty nor of the same kind. What cannot be read is refused too; what is no
/// regular file is for the writer to refuse.
pub fn refuse_other(parameter: &'static str, path: &Path, kind: Kind) -> Result<()> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    if !is_file || kind.is_that_of(path).unwrap_or(false) {
        return Ok(());
    }
    Err(Error::usage(
        parameter,
        sentence!(
            "{@0}: {1} exists and is not {2}: it is not overwritten",
            parameter,
            path.display(),
            kind.name()
        ),
        sentence!("give {@0} another path, or move the file away first", parameter),
    ))
}

/// Whether a table begins as `semidp predict` writes one: its exact columns, and numbers in all but the column of classes. Rows
/// of another table with a column `prediction` have another header or other cells.
fn are_predictions(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let mut records = records(&text).into_iter();
    let Some(header) = records.next() else { return false };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let is_number = |cell: &String| cell.parse::<f64>().is_ok();
    let first_number = match header[..] {
        ["prediction"] => 0,
        ["prediction", "score"] => 1,
        ["prediction", ref rest @ ..]
            if rest.len() > 1 && rest.iter().all(|name| name.starts_with("probability of ")) =>
        {
            1
        }
        _ => return false,
    };
    records.all(|cells| cells.len() == header.len() && cells[first_number..].iter().all(is_number))
}

/// The cells of the lines of a CSV text that are complete; a quoted cell may hold commas and line breaks.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut letters) = (false, text.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                cells.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut cells));
            }
            other => cell.push(other),
        }
    }
    records
}

/// The first bytes of a file without compression.
fn start(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(START_BYTES).read_to_end(&mut start)?;
    if start.starts_with(&[0x1f, 0x8b]) {
        start.clear();
        MultiGzDecoder::new(File::open(path)?).take(START_BYTES).read_to_end(&mut start)?;
    }
    Ok(start)
}

/// The value of the field `format` of an object, if no object comes before it.
fn first_format(start: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(start);
    let object = text.trim_start().strip_prefix('{')?;
    let (before, after) = object.split_once("\"format\"")?;
    // One of an object inside says nothing of the file.
    let value = after.trim_start().strip_prefix(':').filter(|_| !before.contains('{'))?.trim_start();
    Some(value.strip_prefix('"')?.split_once('"')?.0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_files_of_the_same_kind_are_replaced() {
        let folder = std::env::temp_dir().join(format!("semidp-overwrite-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"{\"format\":\"semidp-report/1\",\"round\":\"1\"}\n").unwrap();
        let packed = packed.finish().unwrap();
        let kinds =
            [Kind::Answer, Kind::Certificate, Kind::Model, Kind::Predictions, Kind::Reports, Kind::Schema];
        for (content, kind) in [
            (&b"age,income\n1,2\n"[..], None),
            (b"{\"a\": 1}", None),
            (b"[\"format\", \"semidp-model/1\"]", None),
            (b"predictions,1\n", None),
            (
                b"{\"columns\": [], \"mean\": [1], \"certificate\": {\"format\": \"semidp-certificate/1\"}}",
                Some(Kind::Answer),
            ),
            (b"{\n  \"format\": \"semidp-certificate/1\"}", Some(Kind::Certificate)),
            (b"{\"format\":\"semidp-model/1\"", Some(Kind::Model)),
            (b"prediction,probability of no,probability of yes\nyes,0.25,0.75\n", Some(Kind::Predictions)),
            (
                b"prediction,\"probability of a,\"\"b\nc\",probability of d\n\"a,\"\"b\nc\",1,0\nd,0.1,0.9\nd,0",
                Some(Kind::Predictions),
            ),
            (b"prediction,score\nyes,-1.5\n", Some(Kind::Predictions)),
            (b"prediction\n1\n-2e-3\nNaN\n", Some(Kind::Predictions)),
            (b"prediction\n", Some(Kind::Predictions)),
            // Tables of others.
            (b"prediction,probability of x\n", None),
            (b"prediction,age,income\n1,2,3\n", None),
            (b"prediction,score,age\n1,2,3\n", None),
            (b"prediction,probability of no,age\nyes,0.25,50\n", None),
            (b"prediction\nrain\n", None),
            (b"prediction,score\nyes,high\n", None),
            (b"prediction,score\nyes,1,2\n", None),
            (b"prediction", None),
            (&packed, Some(Kind::Reports)),
            (b"{\"format\": \"semidp-schema/1\"}", Some(Kind::Schema)),
        ] {
            std::fs::write(&path, content).unwrap();
            for wanted in kinds {
                let refused = refuse_other("out", &path, wanted);
                assert_eq!(refused.is_ok(), kind == Some(wanted), "{wanted:?} {kind:?}");
                if let Err(error) = refused {
                    assert!(error.to_string().contains("exists and is not"), "{error}");
                }
            }
        }
        std::fs::write(&path, "").unwrap();
        assert!(kinds.iter().all(|kind| refuse_other("out", &path, *kind).is_ok()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
