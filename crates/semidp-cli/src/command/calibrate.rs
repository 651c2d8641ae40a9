//! `semidp calibrate`: the least noise, or the most steps, that a budget allows.

use crate::answer::{Answered, Question};
use crate::failure::Failure;
use crate::number;
use crate::options::{BudgetOptions, Mechanism, MechanismOptions, PromiseOptions, Sampling};
use crate::output::Output;
use crate::program::{Program, Setting};
use crate::{report, table};
use clap::Args;
use semidp_accounting::accountant::{Accountant, ZcdpAccountant};
use semidp_accounting::{
    CountedEvent, Error, NoiseMultiplier, PrivacyBudget, Steps, calibrate_noise, calibrate_steps,
    closed_form_noise,
};
use serde_json::json;
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

/// What is searched for, given the other.
#[derive(Clone, Copy)]
enum Unknown {
    Noise(Steps),
    Steps(NoiseMultiplier),
}

impl Calibrate {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let setting = Setting::check(&self.mechanism, self.promise)?;
        let budget = self.budget(&setting)?;
        let unknown = self.unknown(&setting)?;
        let program = match unknown {
            Unknown::Noise(steps) => {
                setting.program(least_noise(&setting, budget, steps)?, steps, ("calibration", "user"))
            }
            Unknown::Steps(noise) => {
                setting.program(noise, most_steps(&setting, budget, noise)?, ("user", "calibration"))
            }
        };
        let question = match (budget, self.budget.delta) {
            (PrivacyBudget::Zcdp { .. }, None) => Question::Rho,
            _ => Question::EpsilonAt(budget.delta()),
        };
        let answered = Answered::ask(&program, question)?;
        let mut json = answered.json(&program)?;
        match budget {
            PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => {
                json.insert("target_epsilon".into(), json!(epsilon.get()))
            }
            PrivacyBudget::Zcdp { rho, .. } => json.insert("target_rho".into(), json!(rho.get())),
        };
        if let Some(path) = &self.certificate {
            answered.write_certificate(path)?;
        }
        output.answer(&json.into(), || answer_table(&setting, unknown, &program, &answered))?;
        report::notes(&program, &answered, output);
        Ok(())
    }

    fn budget(&self, setting: &Setting) -> Result<PrivacyBudget, Failure> {
        let budget = self.budget.budget()?;
        let gaussian = setting.mechanism == Mechanism::Gaussian;
        match budget {
            PrivacyBudget::Pure { .. } if gaussian => Err(Failure::input(
                "--delta must be given and > 0 with --mechanism gaussian",
                "Gaussian noise needs --delta, as in --delta 1e-5; \
                 pure epsilon needs --mechanism laplace or k-norm",
            )),
            PrivacyBudget::Zcdp { .. } if !gaussian => Err(Failure::input(
                "--rho must be used with --mechanism gaussian",
                "laplace and k-norm noise give pure epsilon: use --epsilon",
            )),
            PrivacyBudget::Zcdp { .. }
                if !matches!(setting.sampling(), Sampling::None | Sampling::OnePass) =>
            {
                Err(Failure::input(
                    format!(
                        "--rho must be used without sampling, got --sampling {}",
                        setting.sampling().name()
                    ),
                    "zCDP has no useful amplification by sampling: use --epsilon and --delta",
                ))
            }
            _ => Ok(budget),
        }
    }

    fn unknown(&self, setting: &Setting) -> Result<Unknown, Failure> {
        match (self.steps, self.noise_multiplier) {
            (Some(steps), None) => Ok(Unknown::Noise(steps)),
            (None, Some(_)) if setting.sampling() == Sampling::OnePass => Err(Failure::input(
                "--steps must be given with --sampling one-pass",
                "the number of blocks does not enter the cost of one pass: any number is allowed",
            )),
            (None, Some(noise)) => Ok(Unknown::Steps(noise)),
            (Some(_), Some(_)) => Err(Failure::input(
                "--steps and --noise-multiplier must not both be given",
                "give one to learn the other; `semidp account` says what both together cost",
            )),
            (None, None) => Err(Failure::input(
                "--steps must be given, or --noise-multiplier",
                "give --steps to learn the noise, or --noise-multiplier to learn the largest number of steps",
            )),
        }
    }
}

fn least_noise(setting: &Setting, budget: PrivacyBudget, steps: Steps) -> Result<NoiseMultiplier, Failure> {
    let events = |noise| setting.events(noise, steps);
    let gaussian = setting.mechanism == Mechanism::Gaussian;
    match (budget, setting.sampling()) {
        // Laplace and K-norm noise may beat their pure guarantee at a positive delta.
        (PrivacyBudget::Approximate { epsilon, delta }, sampling)
            if !gaussian || !matches!(sampling, Sampling::None | Sampling::OnePass) =>
        {
            Ok(calibrate_noise(epsilon, delta, setting.adjacency, events)?.value)
        }
        (_, sampling) => {
            let composed = if sampling == Sampling::OnePass { Steps::ONE } else { steps };
            Ok(closed_form_noise(budget, setting.adjacency, composed, events)?)
        }
    }
}

fn most_steps(setting: &Setting, budget: PrivacyBudget, noise: NoiseMultiplier) -> Result<Steps, Failure> {
    match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => {
            let events = |steps| setting.events(noise, steps);
            Ok(calibrate_steps(epsilon, budget.delta(), setting.adjacency, events)?.value)
        }
        PrivacyBudget::Zcdp { rho, .. } => {
            let fits = |steps: u64| -> Result<bool, Error> {
                Ok(total_rho(setting, &setting.events(noise, Steps::new(steps)?))? <= rho.get())
            };
            let one = total_rho(setting, &setting.events(noise, Steps::ONE))?;
            let most = ((rho.get() / one) as u64).min(Steps::MAX);
            // The quotient may be off by one in its last place, either way.
            for steps in [most + 1, most, most.saturating_sub(1)] {
                if (1..=Steps::MAX).contains(&steps) && fits(steps)? {
                    return Ok(Steps::new(steps)?);
                }
            }
            Err(Failure::input(
                format!(
                    "--rho must be at least {} for a single step at this noise, got {rho}",
                    report::bound(one)
                ),
                "raise --rho or --noise-multiplier",
            ))
        }
    }
}

fn total_rho(setting: &Setting, events: &[CountedEvent]) -> Result<f64, Error> {
    let mut accountant = ZcdpAccountant::new(setting.adjacency);
    accountant.compose_all(events)?;
    Ok(accountant.rho()?.get())
}

fn answer_table(setting: &Setting, unknown: Unknown, program: &Program, answered: &Answered) -> String {
    let mut rows = report::rows(program, answered);
    let steps = ("steps".to_string(), number::count(program.steps));
    let noise = |text: String| report::noise_row(text, setting.mechanism);
    match unknown {
        Unknown::Noise(_) => {
            let found = program.noise_multiplier.unwrap_or(f64::NAN);
            rows.insert(0, noise(report::bound(found)));
            rows.push(steps);
        }
        Unknown::Steps(given) => {
            rows.insert(0, ("largest number of steps".into(), steps.1));
            rows.push(noise(number::exact(given.get())));
        }
    }
    format!("{}\n{}", table::facts(rows), table::wrap(&report::in_words(program, answered), ""))
}
