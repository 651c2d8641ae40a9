//! `semidp calibrate`: the least noise, or the most steps, that a budget allows.

use crate::answer::{Answered, Question};
use crate::failure::Failure;
use crate::number;
use crate::options::{Mechanism, MechanismOptions, PromiseOptions, Sampling};
use crate::output::Output;
use crate::program::{Program, Setting};
use crate::{report, table};
use clap::Args;
use semidp_accounting::accountant::{Accountant, PureAccountant, ZcdpAccountant};
use semidp_accounting::{
    CountedEvent, Delta, Epsilon, Error, NoiseMultiplier, Rho, Steps, calibrate_noise, calibrate_steps,
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
    /// The budget: this epsilon, at --delta; without --delta pure, with laplace or k-norm noise
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    epsilon: Option<Epsilon>,

    /// The delta of the budget
    #[arg(long, value_name = "D", value_parser = number::parse::<Delta>, allow_hyphen_values = true)]
    delta: Option<Delta>,

    /// The budget as rho of zCDP instead (gaussian, not sampled); --delta then adds its epsilon
    #[arg(long, value_name = "R", value_parser = number::parse::<Rho>, allow_hyphen_values = true)]
    rho: Option<Rho>,

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

/// What must not be exceeded.
#[derive(Clone, Copy)]
enum Budget {
    /// (ε, δ); pure if δ is 0.
    Approximate(Epsilon, Delta),
    Zcdp(Rho),
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
        let question = match (budget, self.delta) {
            (Budget::Approximate(_, delta), _) | (Budget::Zcdp(_), Some(delta)) => Question::EpsilonAt(delta),
            (Budget::Zcdp(_), None) => Question::Rho,
        };
        let answered = Answered::ask(&program, question)?;
        let mut json = answered.json(&program)?;
        match budget {
            Budget::Approximate(epsilon, _) => json.insert("target_epsilon".into(), json!(epsilon.get())),
            Budget::Zcdp(rho) => json.insert("target_rho".into(), json!(rho.get())),
        };
        if let Some(path) = &self.certificate {
            answered.write_certificate(path)?;
        }
        output.answer(&json.into(), || answer_table(&setting, unknown, &program, &answered))?;
        report::notes(&program, &answered, output);
        Ok(())
    }

    fn budget(&self, setting: &Setting) -> Result<Budget, Failure> {
        let gaussian = setting.mechanism == Mechanism::Gaussian;
        match (self.epsilon, self.rho) {
            (Some(_), Some(_)) => Err(Failure::input(
                "--epsilon and --rho must not both be given",
                "a budget is --epsilon with --delta, pure --epsilon, or --rho",
            )),
            (None, None) => Err(Failure::input(
                "--epsilon must be given, or --rho",
                "a budget is --epsilon with --delta, pure --epsilon, or --rho",
            )),
            (Some(epsilon), None) => match self.delta {
                Some(delta) if delta.get() > 0.0 => Ok(Budget::Approximate(epsilon.positive()?, delta)),
                _ if gaussian => Err(Failure::input(
                    "--delta must be given and > 0 with --mechanism gaussian",
                    "Gaussian noise needs --delta, as in --delta 1e-5; \
                     pure epsilon needs --mechanism laplace or k-norm",
                )),
                _ => Ok(Budget::Approximate(epsilon.positive()?, Delta::new(0.0)?)),
            },
            (None, Some(_)) if !gaussian => Err(Failure::input(
                "--rho must be used with --mechanism gaussian",
                "laplace and k-norm noise give pure epsilon: use --epsilon",
            )),
            (None, Some(_)) if !matches!(setting.sampling(), Sampling::None | Sampling::OnePass) => {
                Err(Failure::input(
                    format!(
                        "--rho must be used without sampling, got --sampling {}",
                        setting.sampling().name()
                    ),
                    "zCDP has no useful amplification by sampling: use --epsilon and --delta",
                ))
            }
            (None, Some(rho)) if rho.get() == 0.0 => Err(Failure::from(Error::InvalidParameter {
                name: "rho",
                value: rho.to_string(),
                requirement: "a finite number > 0",
            })),
            (None, Some(rho)) => {
                if let Some(delta) = self.delta {
                    delta.positive()?;
                }
                Ok(Budget::Zcdp(rho))
            }
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

fn least_noise(setting: &Setting, budget: Budget, steps: Steps) -> Result<NoiseMultiplier, Failure> {
    let events = |noise| setting.events(noise, steps);
    let factor = setting.adjacency.sensitivity_factor();
    let composed = match setting.sampling() {
        Sampling::OnePass => 1.0,
        _ => steps.get() as f64,
    };
    match budget {
        Budget::Zcdp(rho) => round_up(factor * (composed / (2.0 * rho.get())).sqrt(), |noise| {
            Ok(total_rho(setting, &events(noise))? <= rho.get())
        }),
        Budget::Approximate(epsilon, delta) if delta.get() == 0.0 => {
            round_up(factor * composed / epsilon.get(), |noise| {
                let mut accountant = PureAccountant::new(setting.adjacency);
                accountant.compose_all(&events(noise))?;
                Ok(accountant.epsilon(delta)? <= epsilon)
            })
        }
        Budget::Approximate(epsilon, delta) => {
            Ok(calibrate_noise(epsilon, delta, setting.adjacency, events)?.value)
        }
    }
}

/// The closed form, and then the next numbers up until rounding no longer stands in the way.
fn round_up(
    closed_form: f64,
    safe: impl Fn(NoiseMultiplier) -> Result<bool, Error>,
) -> Result<NoiseMultiplier, Failure> {
    let mut noise = NoiseMultiplier::new(closed_form)?;
    for _ in 0..64 {
        if safe(noise)? {
            return Ok(noise);
        }
        noise = NoiseMultiplier::new(noise.get().next_up())?;
    }
    Err(Failure::other("internal error: rounding the noise up did not meet the budget; please report this"))
}

fn most_steps(setting: &Setting, budget: Budget, noise: NoiseMultiplier) -> Result<Steps, Failure> {
    match budget {
        Budget::Approximate(epsilon, delta) => {
            let events = |steps| setting.events(noise, steps);
            Ok(calibrate_steps(epsilon, delta, setting.adjacency, events)?.value)
        }
        Budget::Zcdp(rho) => {
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
