//! `semidp calibrate`: the least noise, or the most steps, that a budget allows.

use crate::failure::Failure;
use crate::number;
use crate::options::{BudgetOptions, MechanismOptions, PromiseOptions};
use crate::output::Output;
use crate::{report, table};
use clap::Args;
use semidp::AccountOutcome;
use semidp_accounting::{NoiseMultiplier, Steps};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.0185 --steps 5000";

/// Find the least noise that a budget needs; with --noise-multiplier, the most steps it allows.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Calibrate {
    #[command(flatten)]
    budget: BudgetOptions,

    /// Number of noisy releases; with --sampling one-pass, the number of blocks
    #[arg(long, value_name = "T", value_parser = number::parse_steps, allow_hyphen_values = true)]
    steps: Option<Steps>,

    /// Fix the noise and find the largest number of steps instead
    #[arg(long, value_name = "Z", value_parser = number::parse::<NoiseMultiplier>, allow_hyphen_values = true)]
    noise_multiplier: Option<NoiseMultiplier>,

    #[command(flatten)]
    mechanism: MechanismOptions,

    #[command(flatten)]
    promise: PromiseOptions,

    /// Write the certificate to this file
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
}

impl Calibrate {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let outcome = semidp::Calibrate {
            budget: self.budget.budget()?,
            states_epsilon: self.budget.delta.is_some(),
            steps: self.steps.map(Steps::get),
            noise_multiplier: self.noise_multiplier.map(NoiseMultiplier::get),
            mechanism: self.mechanism.mechanism(self.promise),
        }
        .run()?;
        if let Some(path) = &self.certificate {
            report::write_certificate(&outcome, path)?;
        }
        output.answer(&report::json(&outcome)?, || self.table_of(&outcome))?;
        report::notes(&outcome, output);
        Ok(())
    }

    fn table_of(&self, outcome: &AccountOutcome) -> String {
        let mut rows = report::rows(outcome);
        let steps = ("steps".to_string(), number::count(outcome.steps));
        let noise = outcome.noise_multiplier.unwrap_or(f64::NAN);
        let law = outcome.law.unwrap_or_default();
        if self.noise_multiplier.is_none() {
            rows.insert(0, report::noise_row(report::bound(noise), law));
            rows.push(steps);
        } else {
            rows.insert(0, ("largest number of steps".into(), steps.1));
            rows.push(report::noise_row(number::exact(noise), law));
        }
        format!("{}\n{}", table::facts(rows), table::wrap(&report::in_words(outcome), ""))
    }
}
