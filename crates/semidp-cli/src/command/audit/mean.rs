//! `semidp audit mean`: attacks on a mean of private and public rows.

use super::options::AuditOptions;
use super::replay;
use super::report::Report;
use super::tracing::{self, TracingOptions};
use crate::command::plan::{budget_json, refuse_other_promises};
use crate::failure::Failure;
use crate::number;
use crate::options::{BudgetOptions, PromiseOptions};
use crate::output::Output;
use crate::progress;
use clap::{Args, ValueEnum};
use semidp::audit;
use semidp::mean::{Plan, Problem, cheapest, plan_all, plan_named};
use semidp_accounting::{Adjacency, PrivacyBudget};
use serde_json::{Map, Value, json};

const EXAMPLE: &str = "\
EXAMPLE
  semidp audit mean --n-private 90 --n-public 10 --dim 20 --epsilon 1 --delta 1e-5 --plot mean.svg";

/// So many releases of each data set unless it is said: a matter of seconds.
const TRIALS: u64 = 20_000;
/// More columns than this are not released so many times.
const MOST_COLUMNS: u64 = 1 << 24;
/// The radius only sets the unit.
const RADIUS: f64 = 1.0;

/// Attack a private mean: do two neighbouring data sets look as alike as was promised?
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct AuditMean {
    /// Number of private rows
    #[arg(long, value_name = "N", value_parser = number::whole("n-private", 1), allow_hyphen_values = true)]
    pub n_private: u64,

    /// Number of public rows
    #[arg(long, value_name = "M", value_parser = number::whole("n-public", 0), allow_hyphen_values = true)]
    pub n_public: u64,

    /// Number of columns
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    pub dim: u64,

    /// Every row lies within this distance of a public centre [default: 1]
    #[arg(long, value_name = "B", value_parser = number::positive("radius"), allow_hyphen_values = true)]
    pub radius: Option<f64>,

    /// Which estimator; `auto` takes the one with the least predicted error whose arithmetic is exact
    #[arg(long, value_name = "auto|NAME", default_value = "auto")]
    pub estimator: String,

    /// Which attack
    #[arg(long, value_enum, default_value_t = Attack::Pair)]
    attack: Attack,

    /// Releases from each of the two data sets [default: 20000]; data sets that rows are traced in [default: 10]
    #[arg(long, value_name = "T", value_parser = number::whole("trials", 1), allow_hyphen_values = true)]
    pub trials: Option<u64>,

    #[command(flatten)]
    audit: AuditOptions,

    #[command(flatten)]
    budget: BudgetOptions,

    #[command(flatten)]
    promise: PromiseOptions,

    // Last, because its heading is that of all that follows.
    #[command(flatten)]
    pub tracing: TracingOptions,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Attack {
    /// Which of two data sets was it, that differ in one private row as much as they can?
    Pair,
    /// The paper's tracing attack: was this row, private or public, among those that were averaged?
    Tracing,
    /// Neighbouring rows with the same random numbers: do sums change by more than the declared sensitivity, or anything else at all?
    Replay,
}

impl AuditMean {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        refuse_other_promises(self.promise)?;
        let budget = self.budget.budget()?;
        if self.dim > MOST_COLUMNS {
            return Err(Failure::input(
                format!("dim must be at most 2^24 for an audit, got {}", self.dim),
                "fewer columns show the same: an attack looks at one direction",
            ));
        }
        match self.attack {
            Attack::Tracing => tracing::run(&self, budget, &self.audit, output),
            Attack::Pair => self.pair(budget, output),
            Attack::Replay => self.replay(budget, output),
        }
    }

    fn replay(&self, budget: PrivacyBudget, output: &Output) -> Result<(), Failure> {
        let (radius, plan) = self.planned(budget)?;
        let options = replay::options(&self.audit, self.trials)?;
        let spinner = progress::spinner(output, "replaying means");
        let report = audit::replay::mean(&plan, &options);
        spinner.finish_and_clear();
        let mut fields = self.fields(plan.name(), budget);
        fields.insert("radius".into(), json!(radius));
        let what = format!("mean: {}", plan.name());
        replay::finish(&what, Adjacency::ReplaceOne, &options, &report?, fields, output)
    }

    /// The radius, and what `semidp mean` would do.
    fn planned(&self, budget: PrivacyBudget) -> Result<(f64, Plan), Failure> {
        let TracingOptions { threshold, reference_rows } = &self.tracing;
        for (option, is_given) in
            [("--threshold", threshold.is_some()), ("--reference-rows", reference_rows.is_some())]
        {
            if is_given {
                return Err(Failure::input(
                    format!("{option} must be left out, or --attack tracing given"),
                    "it is an option of the tracing attack",
                ));
            }
        }
        let radius = self.radius.unwrap_or(RADIUS);
        let problem = Problem::new(self.n_private, self.n_public, self.dim as usize, radius)?;
        Ok((radius, self.plan(&problem, budget)?))
    }

    fn pair(&self, budget: PrivacyBudget, output: &Output) -> Result<(), Failure> {
        let (radius, plan) = self.planned(budget)?;
        let plot = self.audit.plot()?;
        let spinner = progress::spinner(output, "attacking means");
        let audit = audit::mean(&plan, &self.audit.options(self.trials.unwrap_or(TRIALS)));
        spinner.finish_and_clear();
        let mut fields = self.fields(plan.name(), budget);
        fields.insert("attack".into(), json!("pair"));
        fields.insert("radius".into(), json!(radius));
        let mut report = Report::new(audit?, "releases of each data set", fields);
        if plan.private_weight() == 0.0 {
            report.notes.push("this estimator gives private rows no weight: nothing can leak".into());
        }
        report.finish(plot, output)
    }

    /// What `semidp mean` would do.
    fn plan(&self, problem: &Problem, budget: PrivacyBudget) -> Result<Plan, Failure> {
        if self.estimator != "auto" {
            return Ok(plan_named(&self.estimator, problem, budget)?);
        }
        let plans = plan_all(problem, budget)?;
        cheapest(&plans, true).cloned().ok_or_else(|| {
            Failure::input(
                "estimator must be given: none fits counts and budget by itself",
                "`semidp plan mean` compares all of them",
            )
        })
    }

    /// What was audited, as programs read it.
    pub fn fields(&self, estimator: &str, budget: PrivacyBudget) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("n_private", json!(self.n_private));
        put("n_public", json!(self.n_public));
        put("dimension", json!(self.dim));
        put("estimator", json!(estimator));
        put("budget", budget_json(budget));
        fields
    }
}
