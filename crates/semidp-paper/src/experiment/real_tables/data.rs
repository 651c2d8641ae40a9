//! Three published tables, and how their rows are split.

use crate::coins::Coins;
use crate::files::{Folder, Scratch};
use crate::{Error, Result};
use csv::{ReaderBuilder, Trim, WriterBuilder};
use semidp::loss::Loss;
use semidp::model::{Columns, Task};
use semidp::train::PublicRows;
use semidp_table::Schema;
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
                return Err(Error::Data(format!(
                    "a row of adult has {} cells, not {}",
                    row.len(),
                    ADULT.len()
                )));
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
        let order = coins.shuffled(self.private.len());
        let (test, training) = order.split_at((TEST_SHARE * order.len() as f64).round() as usize);
        if self.pool.len() < public_rows || test.is_empty() || training.is_empty() {
            return Err(Error::Data(format!("{} has too few rows to split", self.set.name())));
        }
        // A table of one class teaches nobody; in such a case other rows are drawn.
        for _ in 0..100 {
            let drawn = coins.shuffled(self.pool.len());
            match self.encoded(&drawn[..public_rows], training, test) {
                Err(Error::Algorithm(semidp::Error::Target { .. })) => continue,
                found => return found,
            }
        }
        Err(Error::Data(format!(
            "no draw of {public_rows} public rows of {} has two classes",
            self.set.name()
        )))
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
        let schema = Schema::infer(&known, None).map_err(semidp::Error::from)?.schema;
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
pub mod tests {
    use super::*;

    #[test]
    fn adult_has_two_files_and_no_header() {
        let mut source = Source::new(DataSet::Adult);
        source
            .add_adult(
                b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, \
                  United-States, <=50K\n50, ?, 83311, HS-grad, 9, Divorced, Sales, Husband, White, Male, 0, 0, 13, Cuba, \
                  >50K\n\n",
            )
            .unwrap();
        source
            .add_adult(
                b"|1x3 Cross validator\n25, Private, 226802, 11th, 7, Never-married, Sales, Own-child, Black, Male, 0, 0, \
                  40, United-States, <=50K.\n",
            )
            .unwrap();
        assert!(source.header.starts_with("age,workclass,") && source.header.ends_with(",class"));
        assert_eq!((source.pool.len(), source.private.len()), (1, 2));
        assert!(source.pool[0].starts_with("39,State-gov,77516,"));
        assert!(source.private[0].ends_with(",Cuba,>50K") && source.private[1].ends_with(",<=50K"));
        assert!(source.add_adult(b"1, 2, 3\n").is_err());
    }

    #[test]
    fn the_banks_calls_are_in_order_and_lose_their_duration() {
        let mut text = String::from("\"age\";\"job\";\"duration\";\"y\"\n");
        (0..11).for_each(|i| text += &format!("{i};\"a, b\";77;\"no\"\n"));
        let source = Source::bank(text.as_bytes()).unwrap();
        assert_eq!(source.header, "age,job,y");
        assert_eq!((source.pool.len(), source.private.len()), (2, 9));
        assert_eq!(source.private[0], "2,\"a, b\",no");
    }

    /// So many block groups, a third of them inland; the value follows the income.
    pub fn houses(count: usize) -> Source {
        let mut coins = Coins::new(8, 0);
        let mut text = String::from("rooms,median_income,median_house_value,ocean_proximity\n");
        for i in 0..count {
            let draws = coins.normals(3);
            let (place, shift) = [("INLAND", 0.0), ("ISLAND", 1.0), ("NEAR BAY", 1.0)][i % 3];
            let income = 4.0 + draws[0] + shift;
            let value = 1e5 + 3e4 * income + 5e4 * shift + 1e4 * draws[1];
            let rooms = if i % 50 == 7 { String::new() } else { (5.0 + draws[2]).to_string() };
            text += &format!("{rooms},{income},{value},{place}\n");
        }
        Source::housing(text.as_bytes()).unwrap()
    }

    /// The encoding is that of public rows: mean 0 and deviation 1 there, and a place that they do not know is `other`.
    #[test]
    fn splits_are_encoded_by_their_public_rows() {
        let source = houses(600);
        assert_eq!((source.pool.len(), source.private.len()), (200, 400));
        let split = source.split(100, 1, 0).unwrap();
        assert_eq!((split.public.len(), split.private.len(), split.test.len()), (100, 320, 80));
        assert_eq!((split.public.features(), split.everything.len()), (4, 420));
        let of = |rows: &PublicRows, column: usize| -> Vec<f64> {
            let unit: Vec<f64> = (0..4).map(|j| f64::from(u8::from(j == column))).collect();
            (0..rows.len()).map(|row| rows.dot(row, &unit)).collect()
        };
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let income = of(&split.public, 1);
        assert!(mean(income.clone()).abs() < 1e-6);
        assert!((income.iter().map(|x| x * x).sum::<f64>() / 99.0 - 1.0).abs() < 0.02);
        assert!(mean(of(&split.test, 1)) > 0.5, "incomes by the sea are higher");
        assert_eq!((mean(of(&split.public, 2)), mean(of(&split.public, 3))), (1.0, 0.0));
        assert_eq!((mean(of(&split.private, 2)), mean(of(&split.private, 3))), (0.0, 1.0));
        // Other seeds split otherwise, and other numbers of public rows do not.
        assert!(source.split(100, 1, 1).unwrap().test != split.test);
        let fewer = source.split(50, 1, 0).unwrap();
        let labels = |split: &Split| -> Vec<u64> {
            // By their ranks: the scales differ.
            let rows = &split.test;
            let order =
                |row: usize| (0..rows.len()).filter(|other| rows.label(*other) < rows.label(row)).count();
            (0..rows.len()).map(|row| order(row) as u64).collect()
        };
        assert_eq!(labels(&fewer), labels(&split));
        assert!(source.split(201, 1, 0).is_err());
    }
}
