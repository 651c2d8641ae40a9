//! `semidp audit train`: attacks on a training algorithm with all its settings.

use super::options::AuditOptions;
use super::replay;
use super::report::Report;
use crate::command::plan::budget_json;
use crate::command::train::HyperOptions;
use crate::failure::Failure;
use crate::options::{BudgetOptions, PromiseOptions};
use crate::output::Output;
use crate::{number, progress};
use clap::{Args, ValueEnum};
use semidp::audit::{self, Shape};
use semidp::domain::domain_named;
use semidp::loss::loss_named;
use semidp::train::{Algorithm, PrivateUse, Recipe, algorithm_for, algorithm_named};
use semidp_accounting::Trust;
use serde_json::{Map, Value, json};

/// More rows take memory and tell nothing.
const MOST_ROWS: u64 = 10_000_000;
/// What a model learns unless it is said.
const LOSS: &str = "logistic";
/// Of a loss with a score a class.
const CLASSES: usize = 3;
/// Runs of an attack by canaries unless it is said.
const TRIALS: u64 = 50;
/// Odd rows of a replay audit: a run for each, and they differ in how, not in how much, they try.
const ODD_ROWS: usize = 16;

const EXAMPLE: &str = "\
No private row is read: all rows are made up, and some of them, the canaries, are made to be
found. Give the options of your run, and as many rows as it has; the loss is logistic unless --loss
says otherwise. A canary takes two features, and public rows that know them.

EXAMPLE
  semidp audit train --n-private 1000 --n-public 200 --dim 100 --epsilon 2 --delta 1e-5";

/// Attack a training algorithm on made-up rows: can it be told which of them it learned from?
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct AuditTrain {
    /// How to train; `semidp train --help` lists the algorithms
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    algorithm: String,

    /// Number of private rows
    #[arg(long, value_name = "N", value_parser = number::whole("n-private", 1), allow_hyphen_values = true)]
    n_private: u64,

    /// Number of public rows
    #[arg(long, value_name = "M", value_parser = number::whole("n-public", 0), allow_hyphen_values = true)]
    n_public: u64,

    /// Number of features of a row; two of them make a canary, so that more make the bound tighter
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    dim: u64,

    /// Which attack
    #[arg(long, value_enum, default_value_t = Attack::Canaries)]
    attack: Attack,

    /// Runs, each with canaries of its own; more of them make the bound tighter [default: 50]
    #[arg(long, value_name = "T", value_parser = number::whole("trials", 1), allow_hyphen_values = true)]
    trials: Option<u64>,

    #[command(flatten)]
    audit: AuditOptions,

    #[command(flatten)]
    budget: BudgetOptions,

    #[command(flatten)]
    promise: PromiseOptions,

    // Last, because its heading is that of all that follows.
    #[command(flatten)]
    hyper: HyperOptions,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Attack {
    /// Which of many rows that are made to be found were learned from?
    Canaries,
    /// Neighbouring rows with the same random numbers: do sums change by more than the declared sensitivity, or anything else at all?
    Replay,
}

impl AuditTrain {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let algorithm = self.algorithm()?;
        let budget = self.budget.budget()?;
        let shape = self.shape()?;
        let loss = loss_named(self.hyper.loss.as_deref().unwrap_or(LOSS), CLASSES)?;
        let domain = domain_named(&self.hyper.domain)?;
        let recipe = Recipe {
            loss: &*loss,
            domain: &*domain,
            has_intercept: !self.hyper.no_intercept,
            budget,
            adjacency: self.promise.adjacency(),
            given: self.hyper.given(),
        };
        if self.attack == Attack::Replay {
            return self.replay(algorithm, &recipe, shape, output);
        }
        let plot = self.audit.plot()?;
        let trials = self.trials.unwrap_or(TRIALS);
        let bar = progress::bar(output, "runs", trials);
        let options = self.audit.options(trials);
        let audit =
            audit::training(algorithm, &recipe, shape, &options, &mut |done, _| bar.set_position(done));
        bar.finish_and_clear();
        let fields = self.fields(algorithm, &recipe);
        let mut report = Report::new(audit?, "runs", fields);
        let useless = self.hyper.without_effect(algorithm, self.n_public > 0);
        if !useless.is_empty() {
            report.notes.push(format!("no effect on {}: {}", algorithm.name(), useless.join(", ")));
        }
        if report.audit.claimed_epsilon == 0.0 {
            report
                .notes
                .push("the public rows answered alone: no row was private, and nothing can leak".into());
        }
        report.finish(plot, output)
    }

    fn replay(
        &self,
        algorithm: &dyn Algorithm,
        recipe: &Recipe<'_>,
        shape: Shape,
        output: &Output,
    ) -> Result<(), Failure> {
        if algorithm.trust() == Trust::Local {
            return Err(Failure::input(
                "trust must be central for --attack replay, got local",
                "reports are no sums: --attack canaries audits them",
            ));
        }
        let options = replay::options(&self.audit, self.trials)?;
        let options = audit::replay::Options { max_odd_rows: ODD_ROWS, ..options };
        let spinner = progress::spinner(output, "replaying runs");
        let report = audit::replay::training(algorithm, recipe, shape, &options);
        spinner.finish_and_clear();
        let what = format!("train: {}", algorithm.name());
        let fields = self.fields(algorithm, recipe);
        replay::finish(&what, recipe.adjacency, &options, &report?, fields, output)
    }

    /// What was audited, as programs read it.
    fn fields(&self, algorithm: &dyn Algorithm, recipe: &Recipe<'_>) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("algorithm", json!(algorithm.name()));
        put("loss", json!(recipe.loss.name()));
        put("n_private", json!(self.n_private));
        put("n_public", json!(self.n_public));
        put("dimension", json!(self.dim));
        put("budget", budget_json(recipe.budget));
        put("trust", json!(algorithm.trust()));
        fields
    }

    /// How many rows of how many features are made up.
    fn shape(&self) -> Result<Shape, Failure> {
        for (name, rows) in [("n-private", self.n_private), ("n-public", self.n_public)] {
            if rows > MOST_ROWS {
                return Err(Failure::input(
                    format!("{name} must be at most 10,000,000 for an audit, got {rows}"),
                    "give fewer rows and the --sample-rate, --expected-batch and --steps of the real run",
                ));
            }
        }
        if !(4..=1 << 24).contains(&self.dim) {
            return Err(Failure::input(
                format!("dim must be from 4 to 2^24 for an audit of training, got {}", self.dim),
                "a canary takes two features, as in --dim 100: more features are more canaries",
            ));
        }
        Ok(Shape {
            private_rows: self.n_private as usize,
            public_rows: self.n_public as usize,
            features: self.dim as usize,
        })
    }

    /// The algorithm. One of randomised reports says by itself that nobody is trusted; one without a budget has no promise.
    fn algorithm(&self) -> Result<&'static dyn Algorithm, Failure> {
        let named = algorithm_named(&self.algorithm)?;
        if named.private_use() != PrivateUse::Budgeted {
            return Err(Failure::input(
                format!("algorithm must be one that spends a budget, got `{}`", self.algorithm),
                "whoever reads no private row has nothing to leak, and whoever opens them promises nothing",
            ));
        }
        let trust = self.promise.given_trust().unwrap_or_else(|| named.trust());
        Ok(algorithm_for(&self.algorithm, trust)?)
    }
}
