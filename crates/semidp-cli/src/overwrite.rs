//! Output files never replace what semidp did not write: `train --out data.csv` must not destroy a data file.

use crate::failure::Failure;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The answer of `mean` or `local aggregate`: an object with a mean and a certificate.
    Answer,
    Certificate,
    Model,
    Predictions,
    Reports,
    Schema,
}

/// The start of a file that says what it is.
const START_BYTES: u64 = 4096;
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
            Self::Predictions => start
                .strip_prefix(b"prediction")
                .is_some_and(|rest| matches!(rest.first(), Some(b',' | b'\n'))),
            Self::Answer => {
                let mut bytes = Vec::new();
                File::open(path)?.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes)?;
                let found: Option<Value> = serde_json::from_slice(&bytes).ok();
                found
                    .is_some_and(|answer| answer.get("mean").is_some() && answer.get("certificate").is_some())
            }
        })
    }
}

/// Refuses to write where a file is that is neither empty nor of the same kind. What cannot be read is refused too; what is no
/// regular file is for the writer to refuse.
pub fn refuse_other(option: &str, path: &Path, kind: Kind) -> Result<(), Failure> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    if !is_file || kind.is_that_of(path).unwrap_or(false) {
        return Ok(());
    }
    Err(Failure::input(
        format!("{option}: {} exists and is not {}: it is not overwritten", path.display(), kind.name()),
        format!("give {option} another path, or move the file away first"),
    ))
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
            (b"prediction,probability of x\n", Some(Kind::Predictions)),
            (b"prediction\n1\n", Some(Kind::Predictions)),
            (&packed, Some(Kind::Reports)),
            (b"{\"format\": \"semidp-schema/1\"}", Some(Kind::Schema)),
        ] {
            std::fs::write(&path, content).unwrap();
            for wanted in kinds {
                let refused = refuse_other("--out", &path, wanted);
                assert_eq!(refused.is_ok(), kind == Some(wanted), "{wanted:?} {kind:?}");
                if let Err(failure) = refused {
                    assert_eq!(failure.code(), 2);
                    assert!(failure.message().contains("exists and is not"), "{}", failure.message());
                }
            }
        }
        std::fs::write(&path, "").unwrap();
        assert!(kinds.iter().all(|kind| refuse_other("--out", &path, *kind).is_ok()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
