//! The options of `semidp train`.

use super::keep::KeepOptions;
use crate::command::local::refuse_idealised;
use crate::failure::Failure;
use crate::number;
use crate::options::{BudgetOptions, LedgerOptions, NoiseOptions, PromiseOptions, ReadingOptions};
use crate::signing::SignOptions;
use crate::table;
use clap::{Args, ValueEnum};
use semidp::Sampling;
use semidp::model::Task;
use semidp::train::{ALGORITHMS, Alpha, Average, Batches, Given, PublicGradient, Schedule, WarmStart};
use semidp_accounting::local::{LocalMechanism, randomizer_named};
use semidp_accounting::{Error, SampleRate, Steps};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp train --private p.csv --public q.csv --target income --task classification \\
    --epsilon 1 --delta 1e-5 --out model.json";

/// Every algorithm with what it is, and the example.
fn after_help() -> String {
    let lines = ALGORITHMS.iter().map(|algorithm| {
        let line = format!("{}: {}", algorithm.name(), algorithm.about());
        format!("  {}", table::wrap(&line, "      "))
    });
    format!("ALGORITHMS\n{}\n\n{EXAMPLE}", lines.collect::<Vec<_>>().join("\n"))
}

/// Train a linear model on private and public rows.
#[derive(Args)]
#[command(after_help = after_help())]
pub struct Train {
    /// The private rows: a CSV, Parquet, NPY, NPZ or UCI .data file; without it the public rows answer alone
    #[arg(long, value_name = "FILE")]
    pub private: Option<PathBuf>,

    /// The public rows; without them it is plain differential privacy, and --schema, --clip-norm and
    /// --learning-rate must be given
    #[arg(long, value_name = "FILE")]
    pub public: Option<PathBuf>,

    /// The column to predict
    #[arg(long, value_name = "COLUMN")]
    pub target: String,

    /// What the target is [default: classification if it holds text, regression if it holds numbers]
    #[arg(long, value_enum)]
    pub task: Option<TaskName>,

    /// The classes of the target [default: those of the schema, or those that occur in the public rows]
    #[arg(long, value_name = "A,B", value_delimiter = ',', allow_hyphen_values = true)]
    pub classes: Option<Vec<String>>,

    /// Where to write the model
    #[arg(long, value_name = "MODEL")]
    pub out: PathBuf,

    /// How to train; `auto` is the first of the list at the end
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    pub algorithm: String,

    /// The columns to learn from [default: all but the target]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,

    /// What columns mean [default: learned from the public rows]; `semidp schema` writes one
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,

    /// Public rows that are not trained on, to watch the loss and report metrics on [default: the public rows]
    #[arg(long, value_name = "FILE")]
    pub validation: Option<PathBuf>,

    /// Stop if a cell is missing, unreadable, out of range or unseen; this check is covered by no guarantee
    #[arg(long)]
    pub strict: bool,

    #[command(flatten)]
    pub reading: ReadingOptions,

    #[command(flatten)]
    pub hyper: HyperOptions,

    /// Allow --randomizer privunit and privunitg, whose epsilon holds in real arithmetic only: their low-order bits can tell more
    #[arg(long)]
    pub idealised: bool,

    #[command(flatten)]
    pub budget: BudgetOptions,

    #[command(flatten)]
    pub noise: NoiseOptions,

    #[command(flatten)]
    pub promise: PromiseOptions,

    #[command(flatten)]
    pub ledger: LedgerOptions,

    /// NOT private: draw noise and batches from this number, for tests
    #[arg(long, value_name = "N", value_parser = number::whole("seed", 0), allow_hyphen_values = true)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub keep: KeepOptions,

    /// Threads [default: one a core]; makes no difference to the result
    #[arg(long, value_name = "N", value_parser = number::whole("threads", 1), allow_hyphen_values = true)]
    pub threads: Option<u64>,

    /// Private rows are read into this much memory if they fit, and streamed otherwise: bytes, or as in 500MB or 4GB; 0
    /// always streams [default: half of what the machine has]
    #[arg(long, value_name = "SIZE", value_parser = number::parse_memory, allow_hyphen_values = true)]
    pub memory: Option<u64>,

    /// Write the certificate to this file; the model holds it too
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    #[command(flatten)]
    pub sign: SignOptions,
}

/// What is chosen from public rows, counts and theory unless it is given.
#[derive(Args)]
#[command(next_help_heading = "Hyper-parameters, chosen without private rows unless given")]
pub struct HyperOptions {
    /// squared, logistic, softmax, hinge, huber, huber:DELTA, quantile or quantile:LEVEL [default: squared, logistic, or softmax
    /// for more than two classes]
    #[arg(long, value_name = "NAME")]
    pub loss: Option<String>,

    /// Gradients of rows are clipped to this length
    #[arg(long, value_name = "C", value_parser = number::positive("clip-norm"), allow_hyphen_values = true)]
    pub clip_norm: Option<f64>,

    /// How each step picks its private rows [default: poisson; one-pass with --rho; in-order
    /// for rows that do not fit into --memory]
    #[arg(long, value_enum)]
    pub sampling: Option<Sampling>,

    /// Chance that a private row takes part in a step
    #[arg(long, value_name = "Q", value_parser = number::parse::<SampleRate>, allow_hyphen_values = true)]
    pub sample_rate: Option<SampleRate>,

    /// Private rows in a batch on average; sums are divided by it
    #[arg(long, value_name = "K", value_parser = number::positive("expected-batch"), allow_hyphen_values = true)]
    pub expected_batch: Option<f64>,

    /// Noisy steps
    #[arg(long, value_name = "T", value_parser = number::parse_steps, allow_hyphen_values = true)]
    pub steps: Option<Steps>,

    /// Public rows in a batch
    #[arg(long, value_name = "K", value_parser = number::whole("public-batch", 1), allow_hyphen_values = true)]
    pub public_batch: Option<u64>,

    /// The length of a step; with dp-sgd, of gradients over the clip norm
    #[arg(long, value_name = "ETA", value_parser = number::positive("learning-rate"), allow_hyphen_values = true)]
    pub learning_rate: Option<f64>,

    /// The weight of the private gradient: a number from 0 to 1, per-step, horizon, by-direction, cosine or cosine:K,
    /// which falls from 1 to 0 in K steps [default: by-direction, or horizon if public rows are few; per-step with
    /// --sampling one-pass or in-order; cosine with pda-first-order]
    #[arg(long, value_name = "A|RULE", value_parser = parse_alpha, allow_hyphen_values = true)]
    pub alpha: Option<Alpha>,

    /// What is done to public gradients [default: clip]
    #[arg(long, value_enum)]
    pub public_gradient: Option<PublicGradientName>,

    /// Which iterates become the model [default: tail, the last half; last with one step]
    #[arg(long, value_enum)]
    pub average: Option<AverageName>,

    /// Where models live: everywhere, ball:RADIUS, box:LOW:HIGH or simplex:SUM
    #[arg(long, value_name = "SET", default_value = "everywhere", allow_hyphen_values = true)]
    pub domain: String,

    /// Adds half of this times the squared length of the weights to the loss
    #[arg(long, value_name = "LAMBDA", value_parser = parse_l2, allow_hyphen_values = true)]
    pub l2: Option<f64>,

    /// Start at the best model for the public rows: with a ridge chosen by cross-validation, exactly, or not at all
    /// [default: ridge; none with dp-sgd]
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "ridge")]
    pub warm_start: Option<WarmStartName>,

    /// What pda-md adds to the public Hessian, times the number of weights [default: 0.01]
    #[arg(long, value_name = "REG", value_parser = parse_regularisation, allow_hyphen_values = true)]
    pub hessian_regularisation: Option<f64>,

    /// What private people report with, with --trust local; privunit and privunitg need --idealised [default: rank-privunit]
    #[arg(long, value_name = "rank-privunit|duchi|privunit|privunitg", value_parser = parse_randomizer)]
    pub randomizer: Option<&'static LocalMechanism>,

    /// How long the steps of semi-ldp-sgd and ldp-sgd are: constant, weighted by what a gradient tells, or strongly-convex, which
    /// needs --l2 [default: weighted, or strongly-convex with --l2]
    #[arg(long, value_name = "NAME", value_parser = Schedule::named)]
    pub schedule: Option<Schedule>,

    /// Scores without a constant term
    #[arg(long)]
    pub no_intercept: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum TaskName {
    /// A number
    Regression,
    /// One of some classes
    Classification,
}

impl TaskName {
    pub fn task(self) -> Task {
        match self {
            Self::Regression => Task::Regression,
            Self::Classification => Task::Classification,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum PublicGradientName {
    /// As they are
    Raw,
    /// Clipped like private ones
    Clip,
    /// Brought to the length of the clip norm
    Rescale,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum AverageName {
    /// The last one
    Last,
    /// The mean of all
    Mean,
    /// The mean of the last half
    Tail,
    /// The mean with weights that grow with the step
    Weighted,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum WarmStartName {
    /// Start at zero
    None,
    /// The exact minimum for the public rows, of least norm if there are several
    Minimum,
    /// The minimum with a ridge that cross-validation on public rows chooses
    Ridge,
}

fn parse_alpha(text: &str) -> Result<Alpha, Error> {
    match text.trim() {
        "per-step" => Ok(Alpha::PerStep),
        "horizon" => Ok(Alpha::Horizon),
        "by-direction" => Ok(Alpha::ByDirection),
        "cosine" => Ok(Alpha::Cosine { horizon: None }),
        other => {
            let horizon = other.strip_prefix("cosine:").and_then(|steps| steps.parse::<u64>().ok());
            match (horizon, other.parse::<f64>()) {
                (Some(steps), _) if steps > 0 => Ok(Alpha::Cosine { horizon: Some(steps) }),
                (_, Ok(alpha)) if (0.0..=1.0).contains(&alpha) => Ok(Alpha::Given(alpha)),
                _ => Err(Error::InvalidParameter {
                    name: "alpha",
                    value: format!("`{text}`"),
                    requirement: "a number from 0 to 1, per-step, horizon, by-direction, cosine or cosine:K",
                }),
            }
        }
    }
}

fn parse_randomizer(text: &str) -> Result<&'static LocalMechanism, Error> {
    randomizer_named(text.trim())
}

fn parse_l2(text: &str) -> Result<f64, Error> {
    not_negative("l2", text)
}

fn parse_regularisation(text: &str) -> Result<f64, Error> {
    not_negative("hessian-regularisation", text)
}

fn not_negative(name: &'static str, text: &str) -> Result<f64, Error> {
    match text.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err(Error::InvalidParameter {
            name,
            value: format!("`{text}`"),
            requirement: "a finite number >= 0",
        }),
    }
}

impl HyperOptions {
    /// What is fixed, as the library has it.
    pub fn given(&self) -> Given {
        Given {
            clip_norm: self.clip_norm,
            batches: self.sampling.map(|sampling| match sampling {
                Sampling::Poisson => Batches::Poisson,
                Sampling::FixedSize => Batches::FixedSize,
                Sampling::OnePass => Batches::OnePass,
                Sampling::InOrder => Batches::InOrder,
                Sampling::None => Batches::Everyone,
            }),
            sample_rate: self.sample_rate,
            expected_batch: self.expected_batch,
            steps: self.steps,
            public_batch: self.public_batch.map(|rows| rows as usize),
            learning_rate: self.learning_rate,
            alpha: self.alpha,
            public_gradient: self.public_gradient.map(|name| match name {
                PublicGradientName::Raw => PublicGradient::Raw,
                PublicGradientName::Clip => PublicGradient::Clip,
                PublicGradientName::Rescale => PublicGradient::Rescale,
            }),
            average: self.average.map(|name| match name {
                AverageName::Last => Average::Last,
                AverageName::Mean => Average::Mean,
                AverageName::Tail => Average::Tail(0.5),
                AverageName::Weighted => Average::Weighted,
            }),
            warm_start: self.warm_start.map(|name| match name {
                WarmStartName::None => WarmStart::Cold,
                WarmStartName::Minimum => WarmStart::Minimum,
                WarmStartName::Ridge => WarmStart::Ridge,
            }),
            l2: self.l2,
            hessian_regularisation: self.hessian_regularisation,
            randomizer: self.randomizer,
            schedule: self.schedule,
            allow_weak_noise: false,
        }
    }
}

impl Train {
    /// The columns to learn from and the target, if some were chosen.
    pub fn wanted(&self) -> Option<Vec<&str>> {
        let names = self.columns.as_ref()?.iter().map(|name| name.trim());
        let mut wanted: Vec<&str> = Vec::new();
        for name in names.filter(|name| !name.is_empty() && *name != self.target) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        wanted.push(&self.target);
        Some(wanted)
    }

    /// Refuses what this command does not do.
    pub fn check(&self) -> Result<(), Failure> {
        if self.private.is_none() && self.public.is_none() {
            return Err(Failure::input(
                "--private or --public must be given",
                "give the private rows with --private, the public rows with --public",
            ));
        }
        if let Some(mechanism) = self.hyper.randomizer {
            refuse_idealised("--randomizer", mechanism, self.idealised)?;
        }
        Ok(())
    }
}
