//! `semidp mean`: the mean of the columns of two files, with a certificate.

mod data;
mod record;
mod result;

use crate::command::plan::refuse_other_promises;
use crate::delivery::{Answer, Places};
use crate::failure::Failure;
use crate::file::{self, Reserved};
use crate::number;
use crate::options::{BudgetOptions, LedgerOptions, PromiseOptions, TargetName};
use crate::output::Output;
use clap::{Args, ValueEnum};
use data::Data;
use record::Planned;
use result::Estimate;
use semidp::mean::{Request, errors};
use semidp_accounting::Adjacency;
use semidp_core::{Public, Randomness, Session};
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

    /// Which estimator; `auto` takes the one with the least predicted error whose arithmetic is exact
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
    budget: BudgetOptions,

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
        file::refuse_same(&[
            ("--private", self.private.as_ref()),
            ("--public", self.public.as_ref()),
            ("--schema", self.schema.as_ref()),
            ("--ledger", self.ledger.path()),
            ("--out", self.out.as_ref()),
            ("--certificate", self.certificate.as_ref()),
        ])?;
        let ledger = self.ledger.open()?;
        // What cannot be written should be known before anything is spent.
        let reserve = |option: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| Reserved::new(option, path)).transpose()
        };
        let places = Places {
            out: reserve("--out", &self.out)?,
            certificate: reserve("--certificate", &self.certificate)?,
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
        let plan = request.plan(data.evidence.as_ref(), data.encoding.width(), rows)?;
        let known = data.provenance(&self, &plan);
        let plan = plan.with_provenance(known);
        let errors = errors(&plan, data.evidence.as_ref(), self.confidence);
        if self.seed.is_some() {
            output.warn("--seed makes the noise reproducible: the result is NOT private");
        }
        let planned = Planned {
            estimator: plan.name(),
            is_noisy: plan.law().is_some(),
            budget,
            rows,
            text: format!("{plan:?}"),
        };
        let delivery = self.delivery(&data, &planned, randomness)?;
        if let Some(answer) = delivery.found() {
            output.note("this is the answer of a run that was interrupted: nothing is spent now");
            return delivery.deliver(&answer, places, output);
        }
        if let Some(record) = delivery.record() {
            session = session.with_record(record);
        }
        if let Some(ledger) = ledger {
            let seeded = if self.seed.is_some() { ", NOT private: seeded" } else { "" };
            session = session.with_ledger(ledger.describe(&format!("mean: {}{seeded}", plan.name())));
        }
        // A recorded run reads the rows once before, for their fingerprint.
        data.bar.set_length(rows * (1 + u64::from(delivery.record().is_some())));
        let release = plan.release(&session, &Public(data.public_mean.clone()), &Public(data.centre.clone()));
        data.bar.finish_and_clear();
        let mut release = release.map_err(|error| delivery.failed(error.into()))?;
        if self.strict {
            let check = "a strict check of the rows came first: that it passed, or which column failed it, is \
                         covered by no guarantee";
            release.certificate.not_covered.push(check.into());
        }
        let estimate = Estimate {
            columns: data.encoding.names().to_vec(),
            decoder: data.decoder,
            is_scaled: data.is_scaled,
            plan,
            errors,
            confidence: self.confidence,
            evidence: data.evidence,
            release,
        };
        let answer = Answer { json: estimate.json()?, text: estimate.text(), notes: data.notes };
        delivery.deliver(&answer, places, output)?;
        estimate.notes(output);
        Ok(())
    }
}
