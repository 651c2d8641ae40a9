//! `semidp account`: what a given noise costs.

use crate::failure::Failure;
use crate::number;
use crate::options::{MechanismOptions, PromiseOptions};
use crate::output::Output;
use crate::{report, table};
use clap::Args;
use semidp::AccountOutcome;
use semidp::files;
use semidp_accounting::{Delta, Epsilon, NoiseMultiplier, Steps, parse_events};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp account --noise-multiplier 2.744 --sample-rate 0.0185 --steps 5000 --delta 1e-5";

/// Say what a given noise costs: epsilon at a delta, or delta at an epsilon.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Account {
    /// Noise std (laplace, k-norm: scale) on the SUM of clipped contributions over the clip norm
    #[arg(long, value_name = "Z", value_parser = number::parse::<NoiseMultiplier>, allow_hyphen_values = true)]
    noise_multiplier: Option<NoiseMultiplier>,

    /// Number of noisy releases; with --sampling one-pass, the number of blocks
    #[arg(long, value_name = "T", value_parser = number::parse_steps, allow_hyphen_values = true)]
    steps: Option<Steps>,

    /// Answer epsilon at this delta
    #[arg(long, value_name = "D", value_parser = number::parse::<Delta>, allow_hyphen_values = true)]
    delta: Option<Delta>,

    /// Answer delta at this epsilon
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    epsilon: Option<Epsilon>,

    #[command(flatten)]
    mechanism: MechanismOptions,

    #[command(flatten)]
    promise: PromiseOptions,

    /// Account for a JSON list of events in this file (- for stdin) instead
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["noise_multiplier", "steps", "sample_rate", "sampling", "mechanism", "dimension"])]
    events: Option<PathBuf>,

    /// Write the certificate to this file
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,

    /// For checking the accountant: recompute accountants.pld, and nothing else, on a grid whose
    /// step is multiplied by this
    #[arg(long, value_name = "S", value_parser = number::parse_grid_scale, allow_hyphen_values = true,
        hide_short_help = true)]
    grid_scale: Option<f64>,
}

impl Account {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let outcome = self.options()?.run()?;
        if let Some(path) = &self.certificate {
            report::write_certificate(&outcome, path)?;
        }
        output.answer(&report::json(&outcome)?, || table_of(&outcome))?;
        report::notes(&outcome, output);
        Ok(())
    }

    fn options(&self) -> Result<semidp::Account, Failure> {
        let events = match &self.events {
            Some(path) => {
                let text = files::read("events", path)?;
                let named = |error| Failure::from(error).about("--events");
                let events = parse_events(&text).map_err(named)?;
                let adjacency = self.promise.adjacency();
                events.iter().try_for_each(|one| one.event.check(adjacency)).map_err(named)?;
                Some(events)
            }
            None => None,
        };
        Ok(semidp::Account {
            noise_multiplier: self.noise_multiplier.map(NoiseMultiplier::get),
            steps: self.steps.map(Steps::get),
            mechanism: self.mechanism.mechanism(self.promise),
            events,
            delta: self.delta.map(Delta::get),
            epsilon: self.epsilon.map(Epsilon::get),
            grid_scale: self.grid_scale,
        })
    }
}

fn table_of(outcome: &AccountOutcome) -> String {
    let mut rows = report::rows(outcome);
    if let (Some(noise), Some(law)) = (outcome.noise_multiplier, outcome.law) {
        rows.push(report::noise_row(number::exact(noise), law));
    }
    format!("{}\n{}", table::facts(rows), table::wrap(&report::in_words(outcome), ""))
}
