//! `semidp local randomize`: the client's side. Rows of people go in, a randomised report of each comes out.

use super::answer::{Answer, certificate};
use super::centre::Centre;
use super::columns::{Columns, Wishes};
use super::memory::{Entry, Memory, Question};
use super::refuse_idealised;
use super::seal::Key;
use crate::failure::Failure;
use crate::number;
use crate::options::ReadingOptions;
use crate::output::Output;
use crate::progress;
use clap::Args;
use flate2::{Compression, write::GzEncoder};
use semidp::files::kind::{self, Kind};
use semidp::files::{self, Reserved};
use semidp::local::{Content, Header, PublicRows, REPORT_FORMAT, Report, ReportId, ReportLine, seeded_id};
use semidp::strength::epsilon_note;
use semidp_accounting::local::{LocalMechanism, default_randomizer, randomizer_named};
use semidp_accounting::{Adjacency, Arithmetic, Epsilon, RandomSource};
use semidp_core::{Private, Randomizer, Randomness, RunId, Session};
use semidp_table::{LoadOptions, Table, open_private, open_public};
use std::path::{Path, PathBuf};

const EXAMPLE: &str = "\
EXAMPLE
  semidp local randomize --data mine.csv --columns x,y --radius 50 --epsilon 2 --round spring --out reports.jsonl";

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

    /// rank-privunit, duchi, or with --idealised privunit or privunitg; `auto` is rank-privunit (duchi for a single number)
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    mechanism: String,

    /// Allow privunit and privunitg, whose epsilon holds in real arithmetic only: their low-order bits can tell more
    #[arg(long)]
    idealised: bool,

    /// Rows further than this from the centre are clipped; the same for everybody
    /// [default: `radius` of the --centre file, or the norm of the longest row of --public]
    #[arg(long, value_name = "R", value_parser = number::positive("radius"), allow_hyphen_values = true)]
    radius: Option<f64>,

    /// What is subtracted from every row first: a public list of numbers (JSON), or an answer with a `mean` [default: zero]
    #[arg(long, visible_alias = "center", value_name = "FILE")]
    centre: Option<PathBuf>,

    #[command(flatten)]
    reading: ReadingOptions,

    /// The name of the round: people report once in each
    #[arg(long, value_name = "NAME", value_parser = parse_round, default_value = "1")]
    round: String,

    /// What these people reported before [default: the name of the data with .memory behind it]
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,

    /// Seal a memory that an older version wrote, as it is
    #[arg(long)]
    adopt_memory: bool,

    /// Report once more in a round that these people have reported in; the epsilons add up. Undelivered reports come first, at no cost
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
        files::refuse_same(&[
            ("data", Some(&self.data)),
            ("public", self.public.as_ref()),
            ("schema", self.schema.as_ref()),
            ("centre", self.centre.as_ref()),
            ("out", Some(&self.out)),
            ("memory", Some(&path)),
            ("memory", Some(&key_path)),
        ])?;
        Memory::refuse_second(&self.data, self.memory.as_deref(), &path)?;
        // What cannot be read or written should be known before anything is drawn or remembered.
        let centre = self.centre.as_deref().map(Centre::read).transpose()?;
        let wishes = Wishes {
            schema: self.schema.as_deref(),
            public: self.public.as_deref(),
            columns: self.columns.as_deref(),
            centre: centre.as_ref(),
            loading: self.reading.loading(),
        };
        let columns = wishes.columns_of(Some(&self.data))?;
        let dimension = columns.encoding.width();
        let mechanism = self.mechanism(dimension)?;
        let (radius, source) = self.radius(centre.as_ref(), &columns)?;
        check_range(radius, self.epsilon)?;
        let randomizer = Randomizer::new(mechanism, dimension, self.epsilon, radius)?;
        check_lengths(&randomizer)?;
        let header = Header {
            format: REPORT_FORMAT.into(),
            round: self.round.clone(),
            mechanism: randomizer.cap().mechanism.into(),
            dimension,
            epsilon: self.epsilon,
            radius,
            centre: centre.as_ref().map(Centre::fingerprint),
        };
        let bar = progress::counter(output, "people reported");
        let ticking = bar.clone();
        let loading = self.reading.loading().on_rows(move |rows| ticking.inc(rows));
        let rows = open_private(&self.data, &columns.schema, &columns.encoding, loading)?;
        kind::refuse_other("out", &self.out, Kind::Reports)?;
        let mut out = Reserved::new("out", &self.out)?;
        let mut memory = Memory::open(&path, self.adopt_memory, output)?;
        let is_cut = memory.is_cut;

        let known = memory.last_of(&self.round).is_some();
        // Reports that were drawn and not delivered are paid for: they come before any others.
        let is_waiting = memory.is_waiting(&self.round);
        let is_remembered = known && (!self.again || is_waiting);
        let spent = format!("these people have reported, and their reports are in {}", path.display());
        let kept = |failure: Failure| {
            failure.after(
                &spent,
                "give the same command again: it writes the same reports, and spends nothing more",
            )
        };
        if is_remembered {
            self.refuse_other(&memory, &header, columns.encoding.names(), rows)?;
        } else {
            if self.seed.is_some() {
                output.warn("--seed makes the reports reproducible: they are NOT private");
            }
            let reported = self.report(&mut memory, &header, columns.encoding.names(), &randomizer, rows);
            bar.finish_and_clear();
            reported.map_err(|failure| if memory.is_noted() { kept(failure) } else { failure })?;
        }
        let entry = self.remembered(&memory)?;
        let mut certificate =
            certificate(&memory, &header, self.mechanism == "auto", source).map_err(&kept)?;
        certificate.assumptions.extend(self.reading.assumption());
        if let Some(note) = epsilon_note(certificate.guarantee.epsilon) {
            output.warn(&note);
            certificate.notes.push(note);
        }
        let certificate = &certificate;
        self.release(&memory, entry, &mut out).and_then(|()| Ok(out.keep()?)).map_err(&kept)?;
        if let Err(failure) = memory.delivered(&self.round) {
            output.warn(&format!(
                "the reports are in the file of --out, but this could not be noted, and --again will deliver the same ones: {}",
                failure.message()
            ));
        }
        let entry = self.remembered(&memory)?;

        let answer =
            Answer { memory: &memory, entry, certificate, is_remembered, out: &self.out, path: &path };
        output.answer(&answer.json()?, || answer.text()).map_err(|failure| {
            failure.after("the reports are in the file of --out", "read the file that --out names")
        })?;
        if self.again && is_waiting {
            output.note(
                "these reports were drawn before and not delivered: nothing was drawn now, and --again asks once more from now on",
            );
        }
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
                "idealised arithmetic: the guarantee holds for real numbers, and low-order bits can tell more; that of \
                 rank-privunit and duchi holds for the very bits that are sent",
            );
        }
        Ok(())
    }

    /// The reports of the round.
    fn remembered<'m>(&self, memory: &'m Memory) -> Result<&'m Entry, Failure> {
        memory
            .last_of(&self.round)
            .ok_or_else(|| Failure::other("internal error: the round is not remembered; please report this"))
    }

    /// The one that was asked for, or the default, which is exact.
    fn mechanism(&self, dimension: usize) -> Result<&'static LocalMechanism, Failure> {
        if self.mechanism == "auto" {
            return Ok(default_randomizer(dimension));
        }
        let mechanism = randomizer_named(&self.mechanism).map_err(|_| {
            Failure::input(
                format!(
                    "--mechanism must be auto, rank-privunit, duchi, privunit or privunitg, got `{}`",
                    self.mechanism
                ),
                "leave it out to use the default; `semidp plan local` compares them",
            )
        })?;
        refuse_idealised("--mechanism", mechanism, self.idealised)?;
        Ok(mechanism)
    }

    /// R, and where it came from: never from the rows that report.
    fn radius(&self, centre: Option<&Centre>, columns: &Columns) -> Result<(f64, &'static str), Failure> {
        if let Some(radius) = self.radius {
            return Ok((radius, "user"));
        }
        if let Some(radius) = centre.and_then(|centre| centre.radius) {
            return Ok((radius, "centre file"));
        }
        if let Some(path) = &self.public {
            let rows = open_public(path, &columns.schema, &columns.encoding, LoadOptions::default())?;
            let radius = PublicRows::of(&rows, None)?.largest_norm();
            if radius > 0.0 && radius.is_finite() {
                return Ok((radius, "public data"));
            }
        }
        Err(Failure::input(
            "--radius must be given: rows are clipped to it, and nothing public here says how far they reach",
            "--radius 50, in the units of the columns; or --public FILE, whose longest row gives it",
        ))
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
        let hint = match memory.is_waiting(&self.round) {
            true => {
                "those reports were not delivered: give the same options to get them at no cost, after which --again asks once more; \
                 or another --round"
            }
            false => {
                "give the same options to get the same reports again at no cost, or another --round; --again asks them \
                 once more, and the epsilons add up"
            }
        };
        Err(Failure::budget(
            format!("these people have reported in round `{}` before, {difference}", self.round),
            hint,
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
            let mut write = |id: Result<ReportId, Failure>, content: Content<'_>| {
                if failure.is_none() {
                    line.clear();
                    let written = id.and_then(|id| {
                        let report = Report { header, id, content };
                        let written = ReportLine::write(&report, &mut line).map_err(std::io::Error::other);
                        let written = written.and_then(|()| to.write_all(&line));
                        written.map_err(|error| Failure::other(format!("--memory: cannot write: {error}")))
                    });
                    failure = written.err();
                    people += 1;
                }
            };
            if randomizer.cap().ranks.is_some() {
                // The public seed tells reports apart: it is the id.
                randomizer.rank_reports(rows, randomness, threads, &mut |report| {
                    write(Ok(report.seed), Content::Rank(report.index));
                })?;
            } else {
                let mut number = 0;
                randomizer.reports(rows, randomness, threads, &mut |vector| {
                    write(self.id(number), Content::Vector(vector));
                    number += 1;
                })?;
            }
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
        let failed = |error| Failure::from(files::cannot_write("out", &self.out, error));
        if !is_gzip(&self.out) {
            return memory.copy(entry, out.writer()).map_err(failed);
        }
        let mut packed = GzEncoder::new(out.writer(), Compression::fast());
        memory.copy(entry, &mut packed).and_then(|()| packed.finish().map(|_| ())).map_err(failed)
    }
}

/// The smallest epsilon of a report. Below it a report is longer than a million radii. Chosen, not measured.
const SMALLEST_EPSILON: f64 = 1e-6;

/// Refuses a radius out of the range that `semidp mean` takes, and an epsilon at which reports are noise alone: their sums leave the
/// range of floats, and the aggregate would refuse what was paid for.
fn check_range(radius: f64, epsilon: Epsilon) -> Result<(), Failure> {
    let invalid = |name, value: String, requirement| {
        Failure::from(semidp_accounting::Error::InvalidParameter { name, value, requirement })
    };
    if !(1e-12..=1e12).contains(&radius) {
        return Err(invalid("radius", radius.to_string(), "a number from 1e-12 to 1e12"));
    }
    if epsilon.get() < SMALLEST_EPSILON {
        return Err(invalid("epsilon", epsilon.to_string(), "a number from 1e-6 to 50 for a local report"));
    }
    Ok(())
}

/// Refuses reports whose length R/m, or its square, is no normal float: numbers of theirs would be lost on the way to the mean.
fn check_lengths(randomizer: &Randomizer) -> Result<(), Failure> {
    let length = randomizer.radius() / randomizer.cap().m;
    match length.is_normal() && (length * length).is_normal() {
        true => Ok(()),
        false => Err(Failure::input(
            format!("radius and epsilon must give reports of a length that can be squared, got {length:e}"),
            "take a radius near the units of the columns, and a larger --epsilon",
        )),
    }
}

pub fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}
