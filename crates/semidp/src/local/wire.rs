//! A report as a line of JSON: the header, an id of 32 hexadecimal digits, and the vector or the index of a candidate.

use super::{Content, Header, REPORT_FORMAT, Report, ReportId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A report that stands for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportLine {
    /// What it has in common with others of its round.
    pub header: Header,
    /// Its number.
    pub id: ReportId,
    /// What was randomised.
    pub body: Body,
}

/// What a line holds besides header and id.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The randomised vector.
    Vector(Vec<f64>),
    /// The index of one of the public candidates that the id is the seed of.
    Rank(u16),
}

impl ReportLine {
    /// As the aggregate takes it.
    pub fn report(&self) -> Report<'_> {
        let content = match &self.body {
            Body::Vector(vector) => Content::Vector(vector),
            Body::Rank(index) => Content::Rank(*index),
        };
        Report { header: &self.header, id: self.id, content }
    }

    /// Reads a line, or says in a few words why it is none.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_string())?;
        if text.trim().is_empty() {
            return Err("it is empty".into());
        }
        match serde_json::from_str::<Wire>(text) {
            Ok(wire) if wire.format == REPORT_FORMAT => wire.line(),
            Ok(wire) => Err(unknown(&wire.format)),
            Err(error) if error.is_eof() => Err("it ends too early: the file is cut off".into()),
            // Another version may have other fields.
            Err(error) => Err(match serde_json::from_str::<Version>(text) {
                Ok(other) if other.format != REPORT_FORMAT => unknown(&other.format),
                _ => short(&format!("it is not a report: {error}")),
            }),
        }
    }

    /// Appends the line, with its end.
    pub fn write(report: &Report<'_>, line: &mut Vec<u8>) -> serde_json::Result<()> {
        let header = report.header;
        let (vector, index) = match report.content {
            Content::Vector(vector) => (Some(vector), None),
            Content::Rank(index) => (None, Some(index)),
        };
        serde_json::to_writer(
            &mut *line,
            &Borrowed {
                format: &header.format,
                round: &header.round,
                mechanism: &header.mechanism,
                dimension: header.dimension,
                epsilon: header.epsilon,
                radius: header.radius,
                centre: header.centre.as_deref(),
                id: Hex(report.id),
                vector,
                index,
            },
        )?;
        line.push(b'\n');
        Ok(())
    }
}

/// How many bytes a line may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestLine(pub usize);

impl LongestLine {
    /// Every header fits into so many.
    pub const HEADER: usize = 8192;
    /// Every number too; the longest has 24 digits and signs.
    const NUMBER: usize = 32;

    /// Of reports of vectors of so many numbers.
    pub fn of(dimension: usize) -> Self {
        Self(Self::HEADER.saturating_add(dimension.saturating_mul(Self::NUMBER)))
    }

    /// By what the beginning of a line says of its dimension, if it does.
    pub fn by_beginning(beginning: &[u8]) -> Option<Self> {
        let name = b"\"dimension\":";
        let start = beginning.windows(name.len()).position(|bytes| bytes == name)? + name.len();
        let digits = beginning[start..].iter().skip_while(|byte| byte.is_ascii_whitespace());
        let digits: Vec<u8> = digits.take_while(|byte| byte.is_ascii_digit()).copied().collect();
        let dimension: usize = std::str::from_utf8(&digits).ok()?.parse().ok()?;
        (dimension <= semidp_accounting::local::LARGEST_LOCAL_DIMENSION).then(|| Self::of(dimension))
    }
}

/// Tells centres apart: the first half of the SHA-256 of their numbers.
pub fn fingerprint(centre: &[f64]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"semidp centre");
    centre.iter().for_each(|x| hash.update((x + 0.0).to_le_bytes()));
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// NOT random: the id of the report of this number, for tests that must come out the same again.
pub fn seeded_id(seed: u64, number: u64) -> ReportId {
    let mut hash = Sha256::new();
    hash.update(b"semidp report id");
    hash.update(seed.to_le_bytes());
    hash.update(number.to_le_bytes());
    let digest = hash.finalize();
    digest[..16].iter().fold(0, |id, byte| id << 8 | ReportId::from(*byte))
}

/// The fields, flat: a header within would be read through a copy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    format: String,
    round: String,
    mechanism: String,
    dimension: usize,
    epsilon: semidp_accounting::Epsilon,
    radius: f64,
    #[serde(default)]
    centre: Option<String>,
    id: Hex,
    #[serde(default)]
    vector: Option<Vec<f64>>,
    #[serde(default)]
    index: Option<u16>,
}

#[derive(Serialize)]
struct Borrowed<'a> {
    format: &'a str,
    round: &'a str,
    mechanism: &'a str,
    dimension: usize,
    epsilon: semidp_accounting::Epsilon,
    radius: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    centre: Option<&'a str>,
    id: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    vector: Option<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u16>,
}

#[derive(Deserialize)]
struct Version {
    format: String,
}

impl Wire {
    fn line(self) -> Result<ReportLine, String> {
        let Self { format, round, mechanism, dimension, epsilon, radius, centre, id, vector, index } = self;
        let body = match (vector, index) {
            (Some(vector), None) => Body::Vector(vector),
            (None, Some(index)) => Body::Rank(index),
            _ => return Err("it is not a report: it must have a vector or an index".into()),
        };
        let header = Header { format, round, mechanism, dimension, epsilon, radius, centre };
        Ok(ReportLine { header, id: id.0, body })
    }
}

struct Hex(ReportId);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Small letters only: another spelling of an id would pass for another id.
        let is_hex = text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let number = ReportId::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        number.map(Self).ok_or_else(|| serde::de::Error::custom("id must be 32 hexadecimal digits"))
    }
}

fn unknown(format: &str) -> String {
    short(&format!("its format is `{format}`, expected `{REPORT_FORMAT}`"))
}

/// What others wrote may be of any length.
fn short(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut all: String = clean.clone().take(200).collect();
    if clean.count() > 200 {
        all.push_str("...");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::Epsilon;

    fn header() -> Header {
        Header {
            format: REPORT_FORMAT.into(),
            round: "spring".into(),
            mechanism: "duchi".into(),
            dimension: 3,
            epsilon: Epsilon::new(0.1).unwrap(),
            radius: 2.0,
            centre: None,
        }
    }

    fn line(header: &Header, id: ReportId, vector: &[f64]) -> String {
        let mut bytes = Vec::new();
        let content = Content::Vector(vector);
        ReportLine::write(&Report { header, id, content }, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_are_read_back_to_the_bit() {
        let numbers = [0.1 + 0.2, -f64::MIN_POSITIVE, 1e300];
        for header in [header(), Header { centre: Some(fingerprint(&[1.0, 2.0])), ..header() }] {
            let text = line(&header, 7, &numbers);
            assert!(text.ends_with("}\n") && text.contains("\"id\":\"00000000000000000000000000000007\""));
            let read = ReportLine::read(text.as_bytes()).unwrap();
            let content = Content::Vector(&numbers);
            assert_eq!(read.report(), Report { header: &header, id: 7, content });
            assert!(text.len() <= LongestLine::of(3).0);
            assert_eq!(LongestLine::by_beginning(text.as_bytes()), Some(LongestLine::of(3)));
        }
        assert_eq!(LongestLine::by_beginning(b"{\"dimension\": 99999999999}"), None);
        assert_eq!(LongestLine::by_beginning(b"{\"dimension\":x}"), None);
    }

    /// The whole form, pinned: servers of this version read it.
    #[test]
    fn a_report_by_rank_is_an_id_and_an_index() {
        let header = Header { mechanism: "rank-privunit".into(), dimension: 1000, ..header() };
        let report = Report { header: &header, id: 255, content: Content::Rank(517) };
        let mut bytes = Vec::new();
        ReportLine::write(&report, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(
            text,
            "{\"format\":\"semidp-report/1\",\"round\":\"spring\",\"mechanism\":\"rank-privunit\",\"dimension\":1000,\
             \"epsilon\":0.1,\"radius\":2.0,\"id\":\"000000000000000000000000000000ff\",\"index\":517}\n"
        );
        assert_eq!(ReportLine::read(text.as_bytes()).unwrap().report(), report);
        for (from, to, reason) in [
            ("\"index\":517", "\"vector\":[1.0],\"index\":517", "a vector or an index"),
            (",\"index\":517", "", "a vector or an index"),
            (":517", ":-1", "invalid value"),
            (":517", ":70000", "invalid value"),
            (":517", ":5.5", "invalid type"),
        ] {
            let found = ReportLine::read(text.replace(from, to).as_bytes()).unwrap_err();
            assert!(found.contains(reason), "{to}: {found}");
        }
    }

    #[test]
    fn what_is_no_line_says_why() {
        let good = line(&header(), 7, &[1.0, 2.0, 3.0]);
        for (from, to, reason) in [
            ("1.0,", "null,", "invalid type: null"),
            ("1.0,", "\"NaN\",", "invalid type: string"),
            ("1.0,", "1e999,", "out of range"),
            ("1.0,", "NaN,", "expected value"),
            ("report/1", "report/2", "its format is `semidp-report/2`"),
            ("\"id\"", "\"more\":1,\"id\"", "unknown field `more`"),
            ("\"id\"", "\"round\":\"x\",\"id\"", "duplicate field `round`"),
            ("0007\"", "000A\"", "32 hexadecimal digits"),
            ("0007\"", "+007\"", "32 hexadecimal digits"),
            (",3.0]}", ",3", "cut off"),
            ("\"dimension\":3", "\"dimension\":-3", "invalid value"),
            ("\"epsilon\":0.1", "\"epsilon\":-1", "epsilon"),
        ] {
            let bad = good.trim_end().replace(from, to);
            assert_ne!(bad, good.trim_end(), "{from}");
            let found = ReportLine::read(bad.as_bytes()).unwrap_err();
            assert!(found.contains(reason), "{bad}: {found}");
        }
        assert_eq!(ReportLine::read(b" \r").unwrap_err(), "it is empty");
        assert_eq!(ReportLine::read(b"{\"format\":\"\xff\"}").unwrap_err(), "it is not UTF-8");
        let newer = "{\"format\":\"semidp-report/9\",\"anything\":[]}";
        assert!(ReportLine::read(newer.as_bytes()).unwrap_err().contains("semidp-report/9"));
        assert!(ReportLine::read("y".repeat(999).as_bytes()).unwrap_err().len() < 300);
    }

    #[test]
    fn ids_and_fingerprints_differ() {
        assert_ne!(seeded_id(1, 2), seeded_id(2, 1));
        assert_eq!(seeded_id(1, 2), seeded_id(1, 2));
        assert_eq!(fingerprint(&[0.0]), fingerprint(&[-0.0]));
        assert_ne!(fingerprint(&[1.0, 2.0]), fingerprint(&[2.0, 1.0]));
        assert_eq!(fingerprint(&[]).len(), 32);
    }
}
