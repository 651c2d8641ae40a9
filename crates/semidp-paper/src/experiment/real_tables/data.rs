//! Three published tables, and how their rows are split.

use crate::coins::Coins;
use crate::published::{Folder, Scratch};
use crate::{Error, Result};
use csv::{ReaderBuilder, Trim, WriterBuilder};
use semidp::loss::Loss;
use semidp::train::PublicRows;
use semidp_table::Schema;
use semidp_tabular::{Columns, Task};
use std::io::{Cursor, Read};

/// The share of private rows that nobody trains on.
const TEST_SHARE: f64 = 0.2;

/// A published table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSet {
    Adult,
    Bank,
    Housing,
}

/// All of them.
pub const DATA_SETS: [DataSet; 3] = [DataSet::Adult, DataSet::Bank, DataSet::Housing];

/// The columns of Adult, whose files do not name them.
const ADULT: [&str; 15] = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "class",
];
const GOVERNMENT: [&str; 3] = ["Federal-gov", "Local-gov", "State-gov"];
/// The share of the bank's rows, which are in the order of time, that are public.
const EARLY: f64 = 0.2;
/// Known after the call only, when the answer is known too.
const DURATION: &str = "duration";

impl DataSet {
    pub fn name(self) -> &'static str {
        match self {
            Self::Adult => "adult",
            Self::Bank => "bank",
            Self::Housing => "housing",
        }
    }

    /// What it is and which rows are public.
    pub fn about(self) -> &'static str {
        match self {
            Self::Adult => {
                "UCI Adult, both files: income above 50K; public pool: government workers (Federal-gov, Local-gov, State-gov)"
            }
            Self::Bank => {
                "UCI Bank Marketing (bank-additional-full, without duration): whether a client subscribes; public pool: \
                 the first 20% of rows, which are in the order of time"
            }
            Self::Housing => {
                "California housing 1990: median house value of a block group; public pool: INLAND, so that private rows \
                 have ocean_proximity `other`"
            }
        }
    }

    fn target(self) -> (&'static str, Task) {
        match self {
            Self::Adult => ("class", Task::Classification),
            Self::Bank => ("y", Task::Classification),
            Self::Housing => ("median_house_value", Task::Regression),
        }
    }

    /// How good a model is: the area under the curve for classes, R² for numbers.
    pub fn metric(self) -> &'static str {
        match self.target().1 {
            Task::Classification => "AUC",
            Task::Regression => "R2",
        }
    }

    /// Reads it.
    pub fn load(self, folder: &Folder) -> Result<Source> {
        match self {
            Self::Adult => {
                let origin =
                    "UCI Adult, https://archive.ics.uci.edu/dataset/2/adult has adult.data and adult.test";
                let mut source = Source::new(self);
                for name in ["adult.data", "adult.test"] {
                    let (packed, plain) = (format!("adult/{name}.gz"), format!("adult/{name}"));
                    source.add_adult(&folder.read(&[&packed, &plain], origin)?)?;
                }
                Ok(source)
            }
            Self::Bank => {
                let origin = "UCI Bank Marketing, https://archive.ics.uci.edu/dataset/222/bank+marketing has bank-additional.zip";
                let packed = folder.read(&["bank_marketing/bank-additional.zip"], origin)?;
                Source::bank(&unzipped(packed, "bank-additional-full.csv")?)
            }
            Self::Housing => {
                let origin = "housing.csv of https://github.com/ageron/handson-ml, folder datasets/housing";
                let names = ["california_housing/housing.csv.gz", "california_housing/housing.csv"];
                Source::housing(&folder.read(&names, origin)?)
            }
        }
    }
}

/// The file of this name in an archive, in whichever folder of it.
fn unzipped(packed: Vec<u8>, name: &str) -> Result<Vec<u8>> {
    let failed = |reason: String| Error::Data(format!("{name} cannot be read from its zip file: {reason}"));
    let mut archive = zip::ZipArchive::new(Cursor::new(packed)).map_err(|error| failed(error.to_string()))?;
    let found = archive
        .file_names()
        .filter_map(|path| path.ok())
        .find(|path| path.rsplit('/').next() == Some(name))
        .map(String::from)
        .ok_or_else(|| failed("it is not there".into()))?;
    let mut file = archive.by_name(&found).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    Ok(bytes)
}

/// A table as it was published, its rows as lines of CSV.
pub struct Source {
    pub set: DataSet,
    header: String,
    /// Rows that are or could be public,
    pub pool: Vec<String>,
    /// and all others.
    pub private: Vec<String>,
}

impl Source {
    fn new(set: DataSet) -> Self {
        Self { set, header: String::new(), pool: Vec::new(), private: Vec::new() }
    }

    fn push(&mut self, is_public: bool, line: String) {
        if is_public { self.pool.push(line) } else { self.private.push(line) }
    }

    /// One of the two files: no header, a comment at the top of the second, whose labels end in a full stop.
    fn add_adult(&mut self, bytes: &[u8]) -> Result<()> {
        self.header = line(ADULT)?;
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .comment(Some(b'|'))
            .trim(Trim::All)
            .quoting(false)
            .from_reader(bytes);
        for row in reader.records() {
            let row = row.map_err(unreadable)?;
            if row.len() != ADULT.len() {
                return Err(Error::Data(format!("a row of adult has {} cells, not {}", row.len(), ADULT.len())));
            }
            let is_public = GOVERNMENT.contains(&&row[1]);
            self.push(is_public, line(row.iter().map(|cell| cell.trim_end_matches('.')))?);
        }
        Ok(())
    }

    fn bank(bytes: &[u8]) -> Result<Self> {
        let mut reader = ReaderBuilder::new().delimiter(b';').trim(Trim::All).from_reader(bytes);
        let mut source = Self::new(DataSet::Bank);
        let names = reader.headers().map_err(unreadable)?.clone();
        let kept: Vec<usize> = (0..names.len()).filter(|place| &names[*place] != DURATION).collect();
        source.header = line(kept.iter().map(|place| &names[*place]))?;
        let rows: Vec<csv::StringRecord> =
            reader.records().collect::<std::result::Result<_, _>>().map_err(unreadable)?;
        let early = (EARLY * rows.len() as f64).floor() as usize;
        for (number, row) in rows.iter().enumerate() {
            source.push(number < early, line(kept.iter().map(|place| &row[*place]))?);
        }
        Ok(source)
    }

    fn housing(bytes: &[u8]) -> Result<Self> {
        let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(bytes);
        let mut source = Self::new(DataSet::Housing);
        let names = reader.headers().map_err(unreadable)?.clone();
        source.header = line(&names)?;
        let place = names
            .iter()
            .position(|name| name == "ocean_proximity")
            .ok_or_else(|| Error::Data("housing.csv has no column ocean_proximity".into()))?;
        for row in reader.records() {
            let row = row.map_err(unreadable)?;
            source.push(&row[place] == "INLAND", line(&row)?);
        }
        Ok(source)
    }

    /// The split of a seed. So many public rows come from the pool, those of a smaller number among those of a larger; a
    /// fifth of the private rows is for tests, the same fifth whatever the public rows are. Rows of the pool that were not
    /// drawn are not used.
    pub fn split(&self, public_rows: usize, seed: u64, number: u64) -> Result<Split> {
        let mut coins = Coins::new(seed, number);
        let order = shuffled(self.private.len(), &mut coins);
        let (test, training) = order.split_at((TEST_SHARE * order.len() as f64).round() as usize);
        if self.pool.len() < public_rows || test.is_empty() || training.is_empty() {
            return Err(Error::Data(format!("{} has too few rows to split", self.set.name())));
        }
        // A table of one class teaches nobody; in such a case other rows are drawn.
        for _ in 0..100 {
            let drawn = shuffled(self.pool.len(), &mut coins);
            match self.encoded(&drawn[..public_rows], training, test) {
                Err(Error::Table(semidp_tabular::Error::Target { .. })) => continue,
                found => return found,
            }
        }
        Err(Error::Data(format!("no draw of {public_rows} public rows of {} has two classes", self.set.name())))
    }

    /// Encodes as `semidp train` does: through files, with everything that columns mean learned from public rows.
    fn encoded(&self, public: &[usize], training: &[usize], test: &[usize]) -> Result<Split> {
        let of = |lines: &[String], rows: &[usize]| -> String {
            rows.iter().flat_map(|row| [lines[*row].as_str(), "\n"]).collect()
        };
        let known = format!("{}\n{}", self.header, of(&self.pool, public));
        let everything = format!("{known}{}", of(&self.private, training));
        let test = format!("{}\n{}", self.header, of(&self.private, test));
        let scratch = Scratch::new()?;
        let known = scratch.write("public.csv", &known)?;
        let schema = Schema::infer(&known, None).map_err(semidp_tabular::Error::from)?.schema;
        let (target, task) = self.set.target();
        let columns = Columns::learn(schema, target, task, Some(&known))?;
        let (loss, _) = columns.target().loss(None)?;
        // These are published rows: what is called private here may be opened.
        let (everything, unknown) = columns.public_rows(&scratch.write("everything.csv", &everything)?)?;
        let (test, _) = columns.public_rows(&scratch.write("test.csv", &test)?)?;
        if unknown > 0 {
            return Err(Error::Data(format!("{} has rows without a label", self.set.name())));
        }
        let places: Vec<usize> = (0..everything.len()).collect();
        let (public, private) = places.split_at(public.len());
        let (public, private) = (everything.some(public), everything.some(private));
        Ok(Split { loss, public, private, everything, test })
    }
}

/// Encoded rows.
pub struct Split {
    pub loss: Box<dyn Loss>,
    pub public: PublicRows,
    pub private: PublicRows,
    /// Public and private rows.
    pub everything: PublicRows,
    pub test: PublicRows,
}

/// The numbers below `count` in a random order.
fn shuffled(count: usize, coins: &mut Coins) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        order.swap(i, (coins.uniform() * (i + 1) as f64) as usize);
    }
    order
}

fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> Result<String> {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(cells).map_err(unreadable)?;
    let bytes = writer.into_inner().map_err(|error| Error::Data(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().into())
}

fn unreadable(error: csv::Error) -> Error {
    Error::Data(format!("a table cannot be read: {error}"))
}

#[cfg(test)]
mod proto {
    use super::*;
    #[test]
    #[ignore]
    fn write_proto() {
        let mut settings = crate::Settings::new(true, 0, 1);
        settings.data = Some("/work/shared/data".into());
        for set in DATA_SETS {
            let source = set.load(&Folder::of(&settings)).unwrap();
            eprintln!("{} pool {} private {}", set.name(), source.pool.len(), source.private.len());
            let split = source.split(2000, 0, 0).unwrap();
            for (name, rows) in [("public", &split.public), ("private", &split.private), ("test", &split.test)] {
                let d = rows.features();
                let mut out: Vec<f32> = Vec::new();
                for r in 0..rows.len() {
                    let mut x = vec![0.0; d];
                    rows.add_scaled(r, 1.0, &mut x);
                    out.extend(x.iter().map(|v| *v as f32));
                    out.push(rows.label(r) as f32);
                }
                let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows.len(), d + 1);
                while (10 + header.len() + 1) % 64 != 0 { header.push(' '); }
                header.push('\n');
                let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
                bytes.extend((header.len() as u16).to_le_bytes());
                bytes.extend(header.as_bytes());
                bytes.extend(out.iter().flat_map(|v| v.to_le_bytes()));
                std::fs::write(format!("/tmp/h2-proto/{}_{name}.npy", set.name()), bytes).unwrap();
                let mean = (0..rows.len()).map(|r| rows.label(r)).sum::<f64>() / rows.len() as f64;
                eprintln!("  {name} {} x {d}, mean label {mean}", rows.len());
            }
        }
    }
}
