//! Options that all audits share.

use crate::failure::Failure;
use crate::number;
use clap::Args;
use semidp::audit::Options;
use semidp::files::Reserved;
use semidp_accounting::Error;
use std::path::PathBuf;

/// How an audit is carried out.
#[derive(Args)]
pub struct AuditOptions {
    /// How sure the bounds and intervals are: a kept promise is called broken with at most one minus this chance
    #[arg(long, value_name = "P", value_parser = parse_confidence, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,

    /// Makes the audit reproducible; its rows are made up, so that no privacy is lost
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Threads [default: one a core]; makes no difference to the result
    #[arg(long, value_name = "N", value_parser = number::whole("threads", 1), allow_hyphen_values = true)]
    threads: Option<u64>,

    /// Draw how well the attack does beside the best that the promise allows, into this file (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl AuditOptions {
    /// As the library has them.
    pub fn options(&self, trials: u64) -> Options {
        let threads = self.threads.map(|threads| threads as usize);
        Options {
            trials,
            confidence: self.confidence,
            seed: self.seed,
            threads: threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }

    /// Whether a plot was asked for.
    pub fn has_plot(&self) -> bool {
        self.plot.is_some()
    }

    /// A place for the plot: what cannot be written should be known before the trials.
    pub fn plot(&self) -> Result<Option<Plot>, Failure> {
        let Some(path) = &self.plot else { return Ok(None) };
        let place = Reserved::new("plot", path)?;
        Ok(Some(Plot { path: path.to_string_lossy().into_owned(), place }))
    }
}

/// Where a plot goes.
pub struct Plot {
    /// As it was given.
    pub path: String,
    /// The place.
    pub place: Reserved,
}

fn parse_confidence(text: &str) -> Result<f64, Error> {
    match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err(Error::InvalidParameter {
            name: "confidence",
            value: format!("`{text}`"),
            requirement: "a number between 0 and 1",
        }),
    }
}
