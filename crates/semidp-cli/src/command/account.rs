//! `semidp account`: what a given noise costs.

use crate::answer::{Answered, Question};
use crate::failure::Failure;
use crate::number;
use crate::options::{Mechanism, MechanismOptions, PromiseOptions};
use crate::output::Output;
use crate::program::{Program, Setting};
use crate::{report, table};
use semidp::files;
use clap::Args;
use semidp_accounting::{Delta, Epsilon, NoiseMultiplier, Steps, parse_events};
use serde_json::json;
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
        let program = self.program()?;
        let question = self.question(&program)?;
        let mut answered = Answered::ask(&program, question)?;
        if let Some(scale) = self.grid_scale {
            answered.rescale_grid(&program, scale)?;
        }
        let mut json = answered.json(&program)?;
        if let Some(scale) = self.grid_scale {
            json.insert("grid_scale".into(), json!(scale));
        }
        if let Some(path) = &self.certificate {
            answered.write_certificate(path)?;
        }
        output.answer(&json.into(), || self.table(&program, &answered))?;
        report::notes(&program, &answered, output);
        Ok(())
    }

    fn program(&self) -> Result<Program, Failure> {
        if let Some(path) = &self.events {
            let text = files::read("events", path)?;
            let events = parse_events(&text).map_err(|error| Failure::from(error).about("--events"))?;
            return Program::from_events(events, self.promise);
        }
        let setting = Setting::check(&self.mechanism, self.promise)?;
        let noise = self.noise_multiplier.ok_or_else(|| {
            Failure::input(
                "--noise-multiplier must be given, or --events",
                "`semidp calibrate` finds the noise for a target epsilon",
            )
        })?;
        let steps = self.steps.ok_or_else(|| {
            Failure::input(
                "--steps must be given",
                "it counts the noisy releases: --steps 1 for a single one",
            )
        })?;
        Ok(setting.program(noise, steps, ("user", "user")))
    }

    fn question(&self, program: &Program) -> Result<Question, Failure> {
        match (self.epsilon, self.delta) {
            (None, Some(delta)) => Ok(Question::EpsilonAt(delta)),
            (Some(epsilon), None) => Ok(Question::DeltaAt(epsilon)),
            (Some(_), Some(_)) => Err(Failure::input(
                "--epsilon and --delta must not both be given",
                "give --delta to learn epsilon, or --epsilon to learn delta; \
                 `semidp calibrate` takes both and finds the noise",
            )),
            (None, None) if program.is_pure() => Ok(Question::EpsilonAt(Delta::new(0.0)?)),
            (None, None) => Err(Failure::input(
                "one of --delta and --epsilon must be given",
                "give --delta 1e-5 to learn epsilon, or --epsilon 1 to learn delta",
            )),
        }
    }

    fn table(&self, program: &Program, answered: &Answered) -> String {
        let mut rows = report::rows(program, answered);
        if let Some(noise) = program.noise_multiplier {
            let mechanism = self.mechanism.mechanism.unwrap_or(Mechanism::Gaussian);
            rows.push(report::noise_row(number::exact(noise), mechanism));
        }
        format!("{}\n{}", table::facts(rows), table::wrap(&report::in_words(program, answered), ""))
    }
}
