//! `semidp mean`: the mean of the columns of two files, with a certificate.

mod data;
mod method;
mod record;
mod result;

use crate::command::plan::refuse_other_promises;
use crate::delivery::{Answer, Places};
use crate::failure::Failure;
use crate::number;
use crate::options::{
    BudgetOptions, LedgerOptions, NoiseOptions, PromiseOptions, ReadingOptions, TargetName,
};
use crate::output::Output;
use crate::signing::SignOptions;
use clap::{Args, ValueEnum};
use data::Data;
use method::Method;
use result::Estimate;
pub use result::shift_json;
use semidp::files::kind::{self, Kind};
use semidp::files::{self, Reserved};
use semidp::mean::{Assumption, Request};
use semidp::strength::budget_notes;
use semidp_accounting::Adjacency;
use semidp_core::{Randomness, Session};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp mean --private p.csv --public q.csv --columns age,hours --epsilon 1 --delta 1e-6
  semidp mean --private p.csv --public q.csv --epsilon 1 --delta 1e-6 --ledger budget.ledger --dataset p-2024";

/// Estimate the mean of private and public rows.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Mean {
    /// The private rows: a CSV, Parquet, NPY or NPZ file; without it the public rows answer alone
    #[arg(long, value_name = "FILE")]
    private: Option<PathBuf>,

    /// The public rows; without them it is plain differential privacy, and --schema and --radius must be given
    #[arg(long, value_name = "FILE")]
    public: Option<PathBuf>,

    /// The columns [default: all that hold numbers]; a column of text becomes the share of each value
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    /// What columns mean [default: learned from the public rows]; `semidp schema` writes one
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Rows further than this from the centre are clipped, in the units of --scale; `auto` learns it from the public rows
    #[arg(long, value_name = "B|auto", value_parser = parse_radius, allow_hyphen_values = true, default_value = "auto")]
    radius: Radius,

    /// Root of a row's total variance, in the units of --scale [default: learned from the public rows]
    #[arg(long, value_name = "V", value_parser = number::positive("std"), allow_hyphen_values = true)]
    std: Option<f64>,

    /// What rows are clipped about [default: public, or origin without public rows]
    #[arg(long, value_enum)]
    centre: Option<Centre>,

    /// The units of radius and clipping: of the columns, or their standard deviation in the public rows
    /// [default: public with --radius auto, otherwise none]
    #[arg(long, value_enum)]
    scale: Option<Scale>,

    /// Take this for granted; `same-population`: public rows are drawn like private ones, so that both are pooled
    #[arg(long, value_enum)]
    assume: Option<Assume>,

    /// Which estimator; `auto` assumes nothing about a shift between public and private rows, unless --assume is given
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    estimator: String,

    /// The weight of each private row [default: the best one]
    #[arg(long, value_name = "R", value_parser = number::parse_weight, allow_hyphen_values = true)]
    private_weight: Option<f64>,

    /// The mean of what
    #[arg(long, value_enum, default_value_t = TargetName::Population)]
    target: TargetName,

    /// Let `auto` also take k-norm noise, whose guarantee holds for real-valued noise (idealised arithmetic)
    #[arg(long)]
    idealised: bool,

    /// Confidence of the intervals
    #[arg(long, value_name = "P", value_parser = number::parse_confidence, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,

    /// Stop if a cell is missing, unreadable, out of range or unseen; this check is covered by no guarantee
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    reading: ReadingOptions,

    #[command(flatten)]
    budget: BudgetOptions,

    #[command(flatten)]
    noise: NoiseOptions,

    #[command(flatten)]
    promise: PromiseOptions,

    #[command(flatten)]
    ledger: LedgerOptions,

    /// NOT private: draw the noise from this number, for tests
    #[arg(long, value_name = "N", value_parser = number::whole("seed", 0), allow_hyphen_values = true)]
    seed: Option<u64>,

    /// Threads [default: one a core]; makes no difference to the result
    #[arg(long, value_name = "N", value_parser = number::whole("threads", 1), allow_hyphen_values = true)]
    threads: Option<u64>,

    /// Write the answer (JSON) to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Write the certificate to this file
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,

    #[command(flatten)]
    sign: SignOptions,
}

/// A radius, or the wish to learn it.
#[derive(Clone, Copy)]
enum Radius {
    Auto,
    Given(f64),
}

fn parse_radius(text: &str) -> Result<Radius, semidp_accounting::Error> {
    match text.trim() {
        "auto" => Ok(Radius::Auto),
        other => number::positive("radius")(other).map(Radius::Given),
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Assume {
    /// Public and private rows come from the same population
    SamePopulation,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Centre {
    /// The mean of the public rows
    Public,
    /// Zero
    Origin,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Scale {
    /// The columns as they are
    None,
    /// Every column of numbers divided by its standard deviation in the public rows
    Public,
}

impl Mean {
    /// The columns that were asked for.
    fn columns(&self) -> Option<Vec<&str>> {
        let names = self.columns.as_ref()?.iter().map(|name| name.trim());
        Some(names.filter(|name| !name.is_empty()).collect())
    }

    /// What is taken for granted about the public rows.
    fn assumption(&self) -> Assumption {
        match self.assume {
            Some(Assume::SamePopulation) => Assumption::SamePopulation,
            None => Assumption::Nothing,
        }
    }

    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        refuse_other_promises(self.promise)?;
        let budget = self.budget.budget()?;
        if self.private.is_none() && self.public.is_none() {
            return Err(Failure::input(
                "--private or --public must be given",
                "give the private rows with --private, the public rows with --public",
            ));
        }
        files::refuse_same_or_beside(
            &[
                ("private", self.private.as_ref()),
                ("public", self.public.as_ref()),
                ("schema", self.schema.as_ref()),
                ("ledger", self.ledger.path()),
                ("out", self.out.as_ref()),
                ("certificate", self.certificate.as_ref()),
                ("sign", self.sign.path()),
            ],
            &[
                ("out", files::beside(self.out.as_ref(), &files::OF_RUN)),
                ("ledger", files::beside(self.ledger.path(), &files::OF_LEDGER)),
            ],
        )?;
        for (option, path, kind) in
            [("out", &self.out, Kind::Answer), ("certificate", &self.certificate, Kind::Certificate)]
        {
            path.iter().try_for_each(|path| kind::refuse_other(option, path, kind))?;
        }
        let ledger = self.ledger.open_for(self.private.as_ref(), output)?;
        let signing_key = self.sign.open()?;
        // What cannot be written should be known before anything is spent.
        let reserve = |option: &'static str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| Reserved::new(option, path)).transpose()
        };
        let places = Places {
            out: reserve("out", &self.out)?,
            certificate: reserve("certificate", &self.certificate)?,
        };

        let (data, private) = Data::open(&self, output)?;
        let request = Request {
            budget,
            target: self.target.target(),
            estimator: (self.estimator != "auto").then(|| self.estimator.clone()),
            exact: !self.idealised,
            radius: match self.radius {
                Radius::Auto => None,
                Radius::Given(radius) => Some(radius),
            },
            std: self.std,
            private_weight: self.private_weight,
            is_centred: data.is_centred,
        };
        let randomness = self.seed.map_or(Randomness::OperatingSystem, Randomness::Seed);
        let mut session = Session::new(private, Adjacency::ReplaceOne)?.with_randomness(randomness);
        if let Some(threads) = self.threads {
            session = session.with_threads(threads as usize);
        }
        let rows = session.units().unwrap_or(0) as u64;
        if rows == 0 && data.evidence.is_none() {
            return Err(Failure::input(
                "there must be at least one row, private or public",
                "both files are empty: check the paths",
            ));
        }
        let method = Method::choose(&self, request, &data, rows)?;
        method.refuse_weak_noise(self.noise.allow_weak_noise)?;
        if method.spends() && ledger.is_some() && self.out.is_none() {
            output.refuse_nowhere()?;
        }
        let budget_notes = if method.spends() { budget_notes(budget, Some(rows as f64)) } else { Vec::new() };
        budget_notes.iter().for_each(|note| output.warn(note));
        if self.seed.is_some() {
            output.warn("--seed makes the noise reproducible: the result is NOT private");
        }
        let delivery = self.delivery(&data, &method, randomness, places.out.as_ref())?;
        if let Some(answer) = delivery.found() {
            output.warn("this is the answer of a run that was interrupted at its very end: nothing is spent now, and the private rows were not \
                 read again");
            return delivery.deliver(&answer, places, output);
        }
        if let Some(record) = delivery.record() {
            session = session.with_record(record);
        }
        if let Some(ledger) = ledger {
            let seeded = if self.seed.is_some() { ", NOT private: seeded" } else { "" };
            session = session.with_ledger(ledger.describe(&format!("mean: {}{seeded}", method.name())));
        }
        // A recorded run reads the rows once before, for their fingerprint.
        data.bar.set_length(rows * (1 + u64::from(delivery.record().is_some())));
        let release = method.release(&session, &data, self.confidence);
        data.bar.finish_and_clear();
        let mut release = release.map_err(|error| delivery.failed(error.into()))?;
        if self.strict {
            let check = "a strict check of the rows came first: that it passed, or which column failed it, is \
                         covered by no guarantee";
            release.certificate.not_covered.push(check.into());
        }
        if self.private.is_some() {
            release.certificate.assumptions.extend(self.reading.assumption());
        }
        release.certificate.notes.extend(budget_notes);
        if let Some(key) = signing_key {
            key.sign(&mut release.certificate)?;
        }
        let estimate = Estimate::new(data, release, self.confidence);
        let answer = Answer { json: estimate.json()?, text: estimate.text(), notes: estimate.warnings() };
        delivery.deliver(&answer, places, output)?;
        estimate.notes(output);
        Ok(())
    }
}
