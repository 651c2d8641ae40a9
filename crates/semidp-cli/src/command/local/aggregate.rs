//! `semidp local aggregate`: the server's side. Reports and public rows go in, a mean comes out.

use super::centre::Centre;
use super::columns::{Columns, Wishes};
use super::estimate::{Estimate, Known, SkippedReports};
use super::expected::Expected;
use super::reports::{self, KnownDimension, Skipped};
use crate::failure::Failure;
use crate::number;
use crate::options::ReadingOptions;
use crate::output::Output;
use crate::progress;
use clap::Args;
use semidp::files::kind;
use semidp::files::{self, Reserved};
use semidp::local::{Aggregate, Combination, PublicRows, Setting, best, combinations};
use semidp_table::open_public;
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp local aggregate --reports a.jsonl,b.jsonl.gz --public volunteers.csv --columns x,y";

/// Add up randomised reports, with public rows or without.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Aggregation {
    /// Files of reports, as `semidp local randomize` writes them; .gz is read as it is
    #[arg(long, value_name = "F,F2", value_delimiter = ',', required = true)]
    reports: Vec<PathBuf>,

    /// The public rows: a CSV, Parquet, NPY or NPZ file, with the columns that people reported, in their order
    #[arg(long, value_name = "FILE")]
    public: Option<PathBuf>,

    /// The columns [default: all of the public file that hold numbers]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    /// What columns mean [default: learned from the public rows]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// What people subtracted from their rows, if they did
    #[arg(long, visible_alias = "center", value_name = "FILE")]
    centre: Option<PathBuf>,

    /// throw-away, ldp, semi-ldp-uniform or semi-ldp-weighted; `auto` takes the one of the least predicted error
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    estimator: String,

    /// Leave out lines that are no reports of this round, and count them; what reports must say of themselves must be given then
    #[arg(long)]
    skip_invalid: bool,

    #[command(flatten)]
    expected: Expected,

    /// Refuse another number of reports than this; lines that are left out count
    #[arg(long, value_name = "N", value_parser = number::whole("expect-reports", 0), allow_hyphen_values = true)]
    expect_reports: Option<u64>,

    /// Root of a row's total variance [default: learned from the public rows, or the largest it can be]
    #[arg(long, value_name = "V", value_parser = number::positive("std"), allow_hyphen_values = true)]
    std: Option<f64>,

    #[command(flatten)]
    reading: ReadingOptions,

    /// Write the answer (JSON) to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Aggregation {
    /// Answers.
    pub fn run(mut self, output: &Output) -> Result<(), Failure> {
        let known = ["auto", "throw-away", "ldp", "semi-ldp-uniform", "semi-ldp-weighted"];
        if !known.contains(&self.estimator.as_str()) {
            let (found, names) = (&self.estimator, known.join(", "));
            return Err(Failure::input(
                format!("--estimator must be one of {names}, got `{found}`"),
                "leave it out to use the best one",
            ));
        }
        let mut files = vec![
            ("public", self.public.as_ref()),
            ("schema", self.schema.as_ref()),
            ("centre", self.centre.as_ref()),
            ("out", self.out.as_ref()),
        ];
        for reports in &self.reports {
            files.push(("reports", Some(reports)));
            files::refuse_same(&files)?;
            files.pop();
        }
        if let Some(path) = &self.out {
            kind::refuse_other("out", path, kind::Kind::Answer)?;
        }
        let out = self.out.as_ref().map(|path| Reserved::new("out", path)).transpose()?;
        // The small files first: whatever is wrong with them should be known before a long file is read.
        let centre = self.centre.as_deref().map(Centre::read).transpose()?;
        let columns = self.public_columns(centre.as_ref())?;

        let bar = progress::counter(output, "reports");
        let must = self.skip_invalid.then_some("--skip-invalid");
        let expected = std::mem::take(&mut self.expected).header(
            must,
            self.names(columns.as_ref()).map(|names| names.len()),
            centre.as_ref().map(Centre::fingerprint),
        )?;
        let mut all = expected.map(Aggregate::new).transpose()?;
        let mut skipped = self.skip_invalid.then(Skipped::default);
        let known = self.known_dimension(columns.as_ref(), centre.as_ref());
        let read = self
            .reports
            .iter()
            .try_for_each(|path| reports::add_file(&mut all, path, known, skipped.as_mut(), &|| bar.inc(1)));
        bar.finish_and_clear();
        read?;
        // Without a report the public rows answer alone, whatever reports should have been.
        let all = all.filter(|all| !all.is_empty());
        let count =
            all.as_ref().map_or(0, Aggregate::len) + skipped.as_ref().map_or(0, |skipped| skipped.count);
        if let Some(expected) = self.expect_reports.filter(|expected| *expected != count) {
            return Err(Failure::input(
                format!("--expect-reports is {expected}, but there are {count} reports"),
                "nothing was added up: a file may be cut off at the end of a line, or missing",
            ));
        }
        let estimate = match &all {
            Some(all) => {
                self.refuse_other_vectors(all, columns.as_ref(), centre.as_ref())?;
                self.combine(all, columns.as_ref(), skipped)?
            }
            None => self.public_alone(columns.as_ref())?.skipping(skipped),
        };
        let estimate = estimate.about(centre.as_ref()).named(self.names(columns.as_ref()));

        let json = estimate.json()?;
        if let Some(place) = out {
            let text = serde_json::to_string_pretty(&json)
                .map_err(|error| Failure::other(format!("cannot write the answer as JSON: {error}")))?;
            place.fill(&text)?;
        }
        output.answer(&json, || estimate.text())?;
        columns.iter().flat_map(|columns| &columns.notes).for_each(|note| output.note(note));
        estimate.notes(output);
        Ok(())
    }

    /// What the public rows become, if there are any.
    fn public_columns(&self, centre: Option<&Centre>) -> Result<Option<Columns>, Failure> {
        if self.public.is_none() {
            return match self.schema {
                Some(_) => Err(Failure::input(
                    "--public must be given with --schema",
                    "a schema says what public rows mean; reports are numbers already",
                )),
                None => Ok(None),
            };
        }
        let wishes = Wishes {
            schema: self.schema.as_deref(),
            public: self.public.as_deref(),
            columns: self.columns.as_deref(),
            centre,
            loading: self.reading.loading(),
        };
        wishes.columns_of(None).map(Some)
    }

    /// The names of the numbers of the mean, if anybody says them.
    fn names(&self, columns: Option<&Columns>) -> Option<Vec<String>> {
        let given =
            || self.columns.as_ref().map(|names| names.iter().map(|name| name.trim().into()).collect());
        columns.map(|columns| columns.encoding.names().to_vec()).or_else(given)
    }

    /// How many numbers a report has by what is known before one is read.
    fn known_dimension(&self, columns: Option<&Columns>, centre: Option<&Centre>) -> Option<KnownDimension> {
        let option = if self.public.is_some() { "--public" } else { "--columns" };
        let named = self.names(columns).map(|names| KnownDimension { option, numbers: names.len() });
        let of_centre =
            || centre.map(|centre| KnownDimension { option: "--centre", numbers: centre.numbers.len() });
        named.or_else(of_centre)
    }

    /// Reports, public rows, centre and names must speak of the same vectors.
    fn refuse_other_vectors(
        &self,
        all: &Aggregate,
        columns: Option<&Columns>,
        centre: Option<&Centre>,
    ) -> Result<(), Failure> {
        let dimension = all.header().dimension;
        let option = if self.public.is_some() { "--public" } else { "--columns" };
        if let Some(names) = self.names(columns).filter(|names| names.len() != dimension) {
            return Err(Failure::input(
                format!("{option}: there are {} columns, but reports have {dimension} numbers", names.len()),
                "--columns names those that people reported, in their order",
            ));
        }
        let fingerprint = centre.map(Centre::fingerprint);
        let problem = match (&all.header().centre, &fingerprint) {
            (reported, given) if reported == given => None,
            (Some(_), None) => Some("must be given: people subtracted one from their rows"),
            (None, _) => Some("must not be given: people subtracted nothing from their rows"),
            (Some(_), Some(_)) => Some("is not what people subtracted from their rows"),
        };
        let problem = problem.or_else(|| {
            let is_other = centre.is_some_and(|centre| centre.numbers.len() != dimension);
            is_other.then_some("has not as many numbers as reports have")
        });
        problem.map_or(Ok(()), |problem| {
            Err(Failure::input(
                format!("--centre {problem}"),
                "give the file that `semidp local randomize` was given; reports carry its fingerprint",
            ))
        })
    }

    fn public_rows(
        &self,
        columns: Option<&Columns>,
        radius: Option<f64>,
    ) -> Result<Option<PublicRows>, Failure> {
        let (Some(path), Some(columns)) = (&self.public, columns) else { return Ok(None) };
        let opened = open_public(path, &columns.schema, &columns.encoding, self.reading.loading());
        match opened {
            Ok(rows) => Ok(Some(PublicRows::of(&rows, radius)?)),
            // A schema was given, and there is nobody.
            Err(semidp_table::Error::NoRows { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn combine(
        &self,
        all: &Aggregate,
        columns: Option<&Columns>,
        skipped: Option<Skipped>,
    ) -> Result<Estimate, Failure> {
        let radius = all.header().radius;
        let public = self.public_rows(columns, Some(radius))?;
        let setting = |reports: u64| match &public {
            Some(public) => public.setting(reports, radius, self.std),
            None => {
                let setting = Setting::new(reports, 0, radius)?;
                self.std.map_or(Ok(setting), |std| setting.with_moments(0.0, std))
            }
        };
        // How much reports weigh if so many are accepted: the choice of the estimator depends on their number too.
        let weight = |reports: u64| -> Result<f64, Failure> {
            if reports == 0 {
                return Ok(0.0);
            }
            Ok(self.chosen(&combinations(&setting(reports)?, all.cap()))?.private_weight)
        };
        let setting = setting(all.len())?;
        let offers = combinations(&setting, all.cap());
        let chosen = self.chosen(&offers)?;
        let mean = all.mean();
        let public_mean = public.as_ref().map(PublicRows::mean);
        let estimate = chosen.estimate(mean.as_deref(), public_mean, radius)?;
        let learned = public.as_ref().and_then(PublicRows::std);
        let known = match (self.std, learned) {
            (Some(_), _) => Known::User,
            (None, Some(_)) => Known::Public,
            (None, None) => Known::Worst,
        };
        let count = public.as_ref().map_or(0, PublicRows::count);
        let skipped = match skipped {
            None => None,
            Some(skipped) => Some(SkippedReports::of(skipped, all, mean.as_deref(), public_mean, &weight)?),
        };
        let clipped = public.as_ref().map_or(0, PublicRows::clipped);
        let shifts = public.as_ref().zip(mean.as_deref());
        let shifts = shifts.and_then(|(public, mean)| public.shifts(mean, all.len(), radius, all.cap()));
        // The expected square of the noise and of sampling is not length.
        let square = mean.iter().flatten().map(|x| x * x).sum::<f64>();
        let noise = radius * radius * all.cap().mean_square() / all.len() as f64;
        let length = (square - noise).max(0.0).sqrt() / radius;
        let estimate =
            Estimate::of_reports(estimate, chosen, offers, all, count, (setting.std(), known), skipped)?;
        Ok(estimate.with_clipped(clipped).with_findings(shifts, length))
    }

    fn chosen(&self, offers: &[Combination]) -> Result<Combination, Failure> {
        let found = match self.estimator.as_str() {
            "auto" => best(offers),
            name => offers.iter().find(|offer| offer.name == name),
        };
        found.copied().ok_or_else(|| {
            Failure::input(
                format!("--estimator {} needs rows that are not there", self.estimator),
                "throw-away needs public rows (--public), ldp reports, the others both",
            )
        })
    }

    /// Nobody reported: nothing is clipped, as nobody said to what.
    fn public_alone(&self, columns: Option<&Columns>) -> Result<Estimate, Failure> {
        let Some(public) = self.public_rows(columns, None)? else {
            return Err(Failure::input(
                "--reports must hold at least one report if there are no public rows",
                "the files are empty: check the paths, or give --public",
            ));
        };
        if !["auto", "throw-away"].contains(&self.estimator.as_str()) {
            return Err(Failure::input(
                format!("--estimator {} needs reports, and there are none", self.estimator),
                "leave it out, and the public rows answer alone",
            ));
        }
        Estimate::of_public(&public, self.std)
    }
}
