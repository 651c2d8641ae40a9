//! `semidp local randomize`: the client's side. Rows of people go in, a randomised report of each comes out.

use super::answer::{Answer, certificate};
use super::centre::Centre;
use super::columns::Wishes;
use super::memory::{Entry, Memory, Question};
use super::seal::Key;
use crate::failure::Failure;
use crate::file::{self, Reserved};
use crate::number;
use crate::output::Output;
use crate::progress;
use clap::Args;
use flate2::{Compression, write::GzEncoder};
use semidp::local::{Header, REPORT_FORMAT, Report, ReportId, ReportLine, seeded_id};
use semidp_accounting::local::{LocalMechanism, RANDOMIZERS, randomizer_named};
use semidp_accounting::{Adjacency, Arithmetic, Epsilon, RandomSource};
use semidp_core::{Private, Randomizer, Randomness, RunId, Session};
use semidp_table::{LoadOptions, Table, open_private};
use std::path::{Path, PathBuf};

const EXAMPLE: &str = "\
EXAMPLE
  semidp local randomize --data mine.csv --columns x,y --epsilon 2 --round spring --out reports.jsonl";

/// Randomise the rows of people before anybody else sees them: one report a row.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Randomize {
    /// The rows, one person each: a CSV, Parquet, NPY or NPZ file
    #[arg(long, value_name = "FILE")]
    data: PathBuf,

    /// Epsilon of one report: pure, and against everybody, the server included
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    epsilon: Epsilon,

    /// Where the reports go, a line of JSON each; a name that ends in .gz compresses them
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// The columns [default: all that hold numbers]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    /// What columns mean [default: numbers as they are, a cell that is none counts as the centre]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Public rows that teach what columns mean, in place of --schema
    #[arg(long, value_name = "FILE")]
    public: Option<PathBuf>,

    /// duchi (exact arithmetic), privunit or privunitg; `auto` takes the one of the least error
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    mechanism: String,

    /// Rows further than this from the centre are clipped
    #[arg(long, value_name = "R", value_parser = number::positive("radius"), allow_hyphen_values = true, default_value = "1")]
    radius: f64,

    /// What is subtracted from every row first: a public list of numbers (JSON), or an answer with a `mean` [default: zero]
    #[arg(long, visible_alias = "center", value_name = "FILE")]
    centre: Option<PathBuf>,

    /// The name of the round: people report once in each
    #[arg(long, value_name = "NAME", value_parser = parse_round, default_value = "1")]
    round: String,

    /// What these people reported before [default: the name of the data with .memory behind it]
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,

    /// Seal a memory that an older version wrote, as it is
    #[arg(long)]
    adopt_memory: bool,

    /// Report once more in a round that these people have reported in; the epsilons add up
    #[arg(long)]
    again: bool,

    /// NOT private: draw the randomness from this number, for tests
    #[arg(long, value_name = "N", value_parser = number::whole("seed", 0), allow_hyphen_values = true)]
    seed: Option<u64>,

    /// Threads [default: one a core]; makes no difference to the result
    #[arg(long, value_name = "N", value_parser = number::whole("threads", 1), allow_hyphen_values = true)]
    threads: Option<u64>,
}

fn parse_round(text: &str) -> Result<String, semidp_accounting::Error> {
    if (1..=200).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(text.into());
    }
    Err(semidp_accounting::Error::InvalidParameter {
        name: "round",
        value: format!("a name of {} bytes", text.len()),
        requirement: "a name of 1 to 200 bytes without control characters",
    })
}

impl Randomize {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let path = self.memory.clone().unwrap_or_else(|| Memory::default_path(&self.data));
        let key_path = Key::path(&path);
        file::refuse_same(&[
            ("--data", Some(&self.data)),
            ("--public", self.public.as_ref()),
            ("--schema", self.schema.as_ref()),
            ("--centre", self.centre.as_ref()),
            ("--out", Some(&self.out)),
            ("--memory", Some(&path)),
            ("--memory", Some(&key_path)),
        ])?;
        // What cannot be read or written should be known before anything is drawn or remembered.
        let centre = self.centre.as_deref().map(Centre::read).transpose()?;
        let wishes = Wishes {
            schema: self.schema.as_deref(),
            public: self.public.as_deref(),
            columns: self.columns.as_deref(),
            centre: centre.as_ref(),
        };
        let columns = wishes.columns_of(Some(&self.data))?;
        let dimension = columns.encoding.width();
        let randomizer = Randomizer::new(self.mechanism(dimension)?, dimension, self.epsilon, self.radius)?;
        let header = Header {
            format: REPORT_FORMAT.into(),
            round: self.round.clone(),
            mechanism: randomizer.cap().mechanism.into(),
            dimension,
            epsilon: self.epsilon,
            radius: self.radius,
            centre: centre.as_ref().map(Centre::fingerprint),
        };
        let bar = progress::counter(output, "people reported");
        let ticking = bar.clone();
        let loading = LoadOptions::default().on_rows(move |rows| ticking.inc(rows));
        let rows = open_private(&self.data, &columns.schema, &columns.encoding, loading)?;
        let mut out = Reserved::new("--out", &self.out)?;
        let mut memory = Memory::open(&path, self.adopt_memory, output)?;
        let is_cut = memory.is_cut;

        let known = memory.last_of(&self.round).is_some();
        let is_remembered = known && !self.again;
        if is_remembered {
            self.refuse_other(&memory, &header, columns.encoding.names(), rows)?;
        } else {
            if self.seed.is_some() {
                output.warn("--seed makes the reports reproducible: they are NOT private");
            }
            let reported = self.report(&mut memory, &header, columns.encoding.names(), &randomizer, rows);
            bar.finish_and_clear();
            reported?;
        }
        let entry = memory.last_of(&self.round).ok_or_else(|| {
            Failure::other("internal error: the round is not remembered; please report this")
        })?;
        let certificate = &certificate(&memory, &header, self.mechanism == "auto")?;
        let released = self.release(&memory, entry, &mut out).and_then(|()| out.keep());
        released.map_err(|failure| {
            let spent = format!("these people have reported, and their reports are in {}", path.display());
            failure.after(
                &spent,
                "give the same command again: it writes the same reports, and spends nothing more",
            )
        })?;

        let answer =
            Answer { memory: &memory, entry, certificate, is_remembered, out: &self.out, path: &path };
        output.answer(&answer.json()?, || answer.text())?;
        if is_remembered && entry.random_source == RandomSource::Seeded {
            output.warn("the remembered reports were drawn from a --seed: they are NOT private");
        } else if is_remembered && self.seed.is_some() {
            output.note("--seed was not used: nothing was drawn");
        }
        if is_cut {
            output.note(
                "an earlier run ended before it released the reports that it was noting; they were dropped",
            );
        }
        columns.notes.iter().for_each(|note| output.note(note));
        if entry.arithmetic == Arithmetic::Idealised {
            output.note(
                "idealised arithmetic: the guarantee holds for real numbers; the reports of --mechanism duchi hold for \
                 the very bits that are sent",
            );
        }
        Ok(())
    }

    /// The one that was asked for, or that of the least error; ties go to the exact one, which comes first.
    fn mechanism(&self, dimension: usize) -> Result<&'static LocalMechanism, Failure> {
        if self.mechanism != "auto" {
            return randomizer_named(&self.mechanism).map_err(|_| {
                Failure::input(
                    format!(
                        "--mechanism must be auto, duchi, privunit or privunitg, got `{}`",
                        self.mechanism
                    ),
                    "leave it out to use the best one; `semidp plan local` compares them",
                )
            });
        }
        let mut least: Option<(f64, &LocalMechanism)> = None;
        for mechanism in RANDOMIZERS {
            let mse = mechanism.at(dimension, self.epsilon)?.mse;
            if least.is_none_or(|(other, _)| mse < other) {
                least = Some((mse, mechanism));
            }
        }
        least
            .map(|(_, mechanism)| mechanism)
            .ok_or_else(|| Failure::other("internal error: there is no randomiser; please report this"))
    }

    /// The reports of a round are handed out again if they are what is asked for; anything else would be a second question.
    fn refuse_other(
        &self,
        memory: &Memory,
        header: &Header,
        columns: &[String],
        rows: Private<Table>,
    ) -> Result<(), Failure> {
        let Some(entry) = memory.last_of(&self.round) else { return Ok(()) };
        // How many people there are is no secret: everybody sees the reports.
        let people = Session::new(rows, Adjacency::ReplaceOne)?.units().unwrap_or(0) as u64;
        let difference = match entry.header.difference(header) {
            Some(name) => format!("with another {name}"),
            None if columns != entry.columns => "with other columns".into(),
            None if people != entry.reports => "with another number of rows".into(),
            None => return Ok(()),
        };
        Err(Failure::budget(
            format!("these people have reported in round `{}` before, {difference}", self.round),
            "give the same options to get the same reports again at no cost, or another --round; --again asks them \
             once more, and the epsilons add up",
        ))
    }

    /// Draws reports, into the memory.
    fn report(
        &self,
        memory: &mut Memory,
        header: &Header,
        columns: &[String],
        randomizer: &Randomizer,
        rows: Private<Table>,
    ) -> Result<(), Failure> {
        let randomness = self.seed.map_or(Randomness::OperatingSystem, Randomness::Seed);
        let random_source = randomizer.certificate(randomness)?.random_source;
        let question = Question { header, columns, arithmetic: randomizer.arithmetic(), random_source };
        let threads = self.threads.map(|threads| threads as usize);
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let made = memory.record(question, |to| {
            let mut line = Vec::new();
            let (mut people, mut failure) = (0u64, None);
            randomizer.reports(rows, randomness, threads, &mut |vector| {
                if failure.is_none() {
                    line.clear();
                    let written = self.id(people).and_then(|id| {
                        let report = Report { header, id, vector };
                        let written = ReportLine::write(&report, &mut line).map_err(std::io::Error::other);
                        let written = written.and_then(|()| to.write_all(&line));
                        written.map_err(|error| Failure::other(format!("--memory: cannot write: {error}")))
                    });
                    failure = written.err();
                    people += 1;
                }
            })?;
            match (failure, people) {
                (Some(failure), _) => Err(failure),
                (None, 0) => Err(Failure::input(
                    "--data must have at least one row",
                    "every row is one person's; check the path",
                )),
                (None, people) => Ok(people),
            }
        });
        made.map(|_| ())
    }

    fn id(&self, number: u64) -> Result<ReportId, Failure> {
        match self.seed {
            Some(seed) => Ok(seeded_id(seed, number)),
            None => Ok(ReportId::from_be_bytes(*RunId::random()?.as_bytes())),
        }
    }

    /// Copies what is remembered. By now it is on the disk.
    fn release(&self, memory: &Memory, entry: &Entry, out: &mut Reserved) -> Result<(), Failure> {
        let failed = |error| file::cannot_write("--out", &self.out, error);
        if !is_gzip(&self.out) {
            return memory.copy(entry, out.writer()).map_err(failed);
        }
        let mut packed = GzEncoder::new(out.writer(), Compression::fast());
        memory.copy(entry, &mut packed).and_then(|()| packed.finish().map(|_| ())).map_err(failed)
    }
}

pub fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}
