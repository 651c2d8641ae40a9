//! `semidp ledger`: what a data set may spend, and what was spent, across runs.

use crate::command::plan::{budget_json, budget_words};
use crate::failure::Failure;
use crate::number::{count, exact, lower_bound};
use crate::options::{AdjacencyName, BudgetOptions};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use clap::{Args, Subcommand};
use semidp::files;
use semidp_accounting::{CountedEvent, Error, FilterCharge, PrivacyBudget, json};
use semidp_ledger::{Account, Cost, Debit, Declared, LedgerFile, Plan, Rule};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const EXAMPLE: &str = "\
EXAMPLE
  semidp ledger init --ledger budget.ledger --dataset patients-2024 --epsilon 2 --delta 1e-6
  semidp mean --private p.csv --public q.csv --epsilon 0.5 --delta 1e-6 \\
    --ledger budget.ledger --dataset patients-2024
  semidp ledger show --ledger budget.ledger";

const INIT_EXAMPLE: &str = "\
EXAMPLE
  semidp ledger init --ledger budget.ledger --dataset patients-2024 --epsilon 2 --delta 1e-6";

const PLAN_EXAMPLE: &str = "\
EXAMPLE
  semidp ledger plan --ledger budget.ledger --dataset patients-2024 --events runs.json

  with a run of 500 sampled steps and a single release in runs.json:
  [{\"event\": \"poisson-gaussian\", \"noise_multiplier\": 2.7, \"sample_rate\": 0.02, \"count\": 500},
   {\"event\": \"gaussian\", \"noise_multiplier\": 30}]";

const SHOW_EXAMPLE: &str = "\
EXAMPLE
  semidp ledger show --ledger budget.ledger --dataset patients-2024";

/// Keep a budget across runs: what a data set may spend, and what was spent.
#[derive(Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum Ledger {
    Init(Init),
    Plan(Declare),
    Show(Show),
}

impl Ledger {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Init(command) => command.run(output),
            Self::Plan(command) => command.run(output),
            Self::Show(command) => command.run(output),
        }
    }
}

/// Set the budget of a data set, in a new ledger or an old one; it cannot be changed later.
#[derive(Args)]
#[command(after_help = INIT_EXAMPLE)]
pub struct Init {
    /// The ledger; made if it does not exist
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,

    /// A name for the private rows; every run on them must use it
    #[arg(long, value_name = "ID")]
    dataset: String,

    #[command(flatten)]
    budget: BudgetOptions,

    /// Which data sets must look alike: one private row exchanged, or one added or removed
    #[arg(long, value_enum, default_value_t = AdjacencyName::ReplaceOne)]
    adjacency: AdjacencyName,
}

impl Init {
    fn run(self, output: &Output) -> Result<(), Failure> {
        let (budget, adjacency) = (self.budget.budget()?, self.adjacency.adjacency());
        LedgerFile::init(&self.ledger, &self.dataset, budget, adjacency)?;
        let json = json!({
            "ledger": name_of(&self.ledger),
            "dataset": self.dataset,
            "adjacency": adjacency.name(),
            "budget": budget_json(budget),
        });
        output.answer(&json, || {
            format!("Data set {} may spend {} ({adjacency} adjacency).", self.dataset, budget_words(budget))
        })?;
        output.note(&format!(
            "runs count only if they are told: --ledger {} --dataset {}",
            self.ledger.display(),
            self.dataset
        ));
        Ok(())
    }
}

/// Declare runs in advance and pay for all of them now, composed tightly with each other.
///
/// Each entry of the list is one run: an event, or a list of the events of one run. A later run whose events are those of an
/// entry, with at least the noise and at most the sample rate and the count declared, draws on it at no further cost.
/// Each entry is drawn on once; what is never run stays paid.
#[derive(Args)]
#[command(after_help = PLAN_EXAMPLE)]
pub struct Declare {
    /// The ledger
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,

    /// The name of the private rows in the ledger
    #[arg(long, value_name = "ID")]
    dataset: String,

    /// A JSON list of events, as `semidp account --events` takes it; - for stdin
    #[arg(long, value_name = "FILE")]
    events: PathBuf,

    /// What the runs are, in a few words; kept in the ledger
    #[arg(long, value_name = "TEXT", default_value = "plan")]
    description: String,

    /// Pay once more for a plan that is in the ledger already, and that no run has drawn on
    #[arg(long)]
    again: bool,
}

impl Declare {
    fn run(self, output: &Output) -> Result<(), Failure> {
        let text = files::read("events", &self.events)?;
        let runs = parse_runs(&text)?;
        let mut ledger =
            LedgerFile::open(&self.ledger)?.for_dataset(&self.dataset)?.describe(&self.description);
        let declared = match self.again {
            true => ledger.plan_again(&runs),
            false => ledger.plan_once(&runs),
        };
        let declared = declared.map_err(|error| match error {
            semidp_ledger::Error::Uncertain { .. } => {
                Failure::from(error).after("`semidp ledger show` tells whether the plan is recorded", AGAIN)
            }
            other => other.into(),
        })?;
        self.show(declared, output).map_err(|failure| failure.after("the plan is recorded and paid", AGAIN))
    }

    /// Prints a plan that is in the ledger.
    fn show(&self, declared: Declared, output: &Output) -> Result<(), Failure> {
        let account = LedgerFile::open(&self.ledger)?.dataset(&self.dataset)?;
        let plan = account.plans.iter().find(|plan| plan.sequence == declared.sequence);
        let plan = plan.ok_or_else(|| Failure::other("the plan is not in the ledger any more"))?;
        let mut json = json!({
            "ledger": name_of(&self.ledger),
            "dataset": self.dataset,
            "plan": plan_json(plan),
            "spent": budget_json(account.spent),
            "remaining": budget_json(account.remaining),
        });
        let charged = match declared.is_new {
            true => rule_words(plan.rule).to_string(),
            false => format!("nothing: it was paid before ({}); --again pays for another one", plan.time),
        };
        if !declared.is_new {
            json["repeated"] = true.into();
            output.warn("this plan was recorded before, and no run has drawn on it: nothing is paid now");
        }
        output.answer(&json, || {
            table::facts(vec![
                (
                    "declared".into(),
                    format!("{} runs, entry {}", count(plan.runs.len() as u64), plan.sequence),
                ),
                ("charged".into(), charged),
                ("spent now".into(), spent_words(account.spent)),
                ("left for one more release".into(), remaining_words(account.remaining)),
            ])
        })
    }
}

/// After a plan was paid for.
const AGAIN: &str = "give the same command again: it finds the plan, and pays nothing more";

/// A JSON list whose elements are events or lists of events.
fn parse_runs(text: &str) -> Result<Vec<Vec<CountedEvent>>, Failure> {
    let malformed = |index: usize, reason: String| {
        Failure::from(Error::MalformedEvent { index, reason }).about("--events")
    };
    let values = match json::parse(text) {
        Ok(Value::Array(values)) => values,
        Ok(_) => return Err(malformed(0, "not a JSON list".into())),
        Err(error @ json::Error::NotJson(_)) => {
            return Err(malformed(0, format!("not a JSON list: {error}")));
        }
        Err(error) => return Err(malformed(0, error.to_string())),
    };
    if values.is_empty() {
        return Err(malformed(0, "the list is empty".into()));
    }
    let runs = values.into_iter().enumerate().map(|(index, value)| {
        let run = if value.is_array() { value } else { json!([value]) };
        match serde_json::from_value::<Vec<CountedEvent>>(run) {
            Ok(run) if run.is_empty() => Err(malformed(index, "a run without events".into())),
            Ok(run) => Ok(run),
            Err(error) => Err(malformed(index, error.to_string())),
        }
    });
    runs.collect()
}

/// Show what was spent, by which rule, and what is left.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLE)]
pub struct Show {
    /// The ledger
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,

    /// One data set [default: all]
    #[arg(long, value_name = "ID")]
    dataset: Option<String>,
}

impl Show {
    fn run(self, output: &Output) -> Result<(), Failure> {
        let file = LedgerFile::open(&self.ledger)?;
        let accounts = match &self.dataset {
            Some(dataset) => vec![file.dataset(dataset)?],
            None => file.datasets()?,
        };
        let datasets: Vec<Value> = accounts.iter().map(account_json).collect();
        let json = json!({ "ledger": name_of(&self.ledger), "datasets": datasets });
        output.answer(&json, || accounts.iter().map(account_text).collect::<Vec<_>>().join("\n\n"))
    }
}

fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn account_json(account: &Account) -> Value {
    json!({
        "dataset": account.dataset,
        "adjacency": account.adjacency.name(),
        "time": account.time,
        "budget": budget_json(account.budget),
        "spent": budget_json(account.spent),
        "remaining": budget_json(account.remaining),
        "rule": currency_words(account),
        "filter": account.filter.map(|filter| json!({
            "pure_epsilon": filter.pure_epsilon,
            "budget": charge_json(filter.budget),
            "spent": charge_json(filter.spent),
        })),
        "closed": account.is_closed,
        "plans": account.plans.iter().map(plan_json).collect::<Vec<_>>(),
        "debits": account.debits.iter().map(debit_json).collect::<Vec<_>>(),
    })
}

/// A charge in the filter's currency: mu squared of a Gaussian, and the share of delta.
fn charge_json(charge: FilterCharge) -> Value {
    json!({ "mu_squared": charge.variance, "delta": charge.slack })
}

fn cost_json(cost: Cost) -> Value {
    match cost {
        Cost::Sum(amount) => json!(amount.round_up()),
        Cost::Filter(charge) => charge_json(charge),
        Cost::Whole => json!("everything"),
        Cost::Nothing => json!(0.0),
    }
}

fn plan_json(plan: &Plan) -> Value {
    let runs = plan.runs.iter().zip(&plan.drawn);
    let runs =
        runs.map(|(events, drawn)| json!({ "events": events, "run": drawn.map(|run| run.to_string()) }));
    json!({
        "sequence": plan.sequence,
        "time": plan.time,
        "description": plan.description,
        "adjacency": plan.adjacency.name(),
        "rule": plan.rule.name(),
        "charge": cost_json(plan.cost),
        "runs": runs.collect::<Vec<_>>(),
    })
}

/// The rule that decides about the next run.
fn currency_words(account: &Account) -> &'static str {
    match account.budget {
        PrivacyBudget::Pure { .. } => "epsilon adds",
        PrivacyBudget::Zcdp { .. } => "rho adds",
        PrivacyBudget::Approximate { .. } if account.is_closed => "one charge took the whole budget",
        PrivacyBudget::Approximate { .. } => {
            "a Gaussian privacy filter, valid for runs chosen from earlier results"
        }
    }
}

fn rule_words(rule: Rule) -> &'static str {
    match rule {
        Rule::Sum => "by its sum with the others",
        Rule::Filter => "by the Gaussian privacy filter, as one run",
        Rule::Whole => "the whole budget, by tight composition",
        Rule::Plan => "nothing: a plan paid",
        Rule::Migrated => "when the ledger was brought up to date",
    }
}

fn debit_json(debit: &Debit) -> Value {
    json!({
        "run": debit.run.to_string(),
        "sequence": debit.sequence,
        "time": debit.time,
        "description": debit.description,
        "adjacency": debit.adjacency.name(),
        "epsilon": debit.epsilon.get(),
        "delta": debit.delta.get(),
        "rho": debit.rho.map(|rho| rho.get()),
        "rule": debit.rule.name(),
        "charge": cost_json(debit.cost),
        "plan": debit.plan,
        "path": debit.path,
        "events": debit.events,
    })
}

fn account_text(account: &Account) -> String {
    let runs = match account.debits.len() {
        0 => "nothing yet".into(),
        1 => format!("{}, by one run", spent_words(account.spent)),
        many => format!("{}, by {} runs together", spent_words(account.spent), count(many as u64)),
    };
    let mut facts = vec![
        ("data set".into(), format!("{} ({} adjacency)", account.dataset, account.adjacency)),
        ("budget".into(), format!("{}, set {}", budget_words(account.budget), account.time)),
        ("spent".into(), runs),
        ("rule".into(), currency_words(account).into()),
        ("left for one more release".into(), remaining_words(account.remaining)),
    ];
    if let Some(filter) = account.filter.filter(|_| !account.is_closed) {
        let left = (filter.budget.variance - filter.spent.variance).max(0.0);
        facts.push((
            "filter".into(),
            format!(
                "{} of mu squared {} left, {} of delta {} set aside used",
                lower_bound(left, 5),
                lower_bound(filter.budget.variance, 5),
                bound(filter.spent.slack),
                exact(filter.budget.slack)
            ),
        ));
    }
    for plan in &account.plans {
        let open = plan.drawn.iter().filter(|run| run.is_none()).count();
        facts.push((
            format!("plan {}", plan.sequence),
            format!(
                "{}: {} of {} runs not drawn on yet, paid {}",
                plan.description,
                count(open as u64),
                count(plan.runs.len() as u64),
                plan.time
            ),
        ));
    }
    if account.debits.iter().any(|debit| debit.rule == Rule::Migrated) {
        let note = "runs with rule `migrated` were granted by an older version, whose rule was not valid for runs chosen \
                    from earlier results; today's charges stand here";
        facts.push(("note".into(), note.into()));
    }
    let mut text = table::facts(facts);
    if !account.debits.is_empty() {
        let rows = account.debits.iter().map(|debit| {
            vec![
                debit.sequence.to_string(),
                debit.time.clone(),
                debit.description.clone(),
                bound(debit.epsilon.get()),
                exact(debit.delta.get()),
                debit.rho.map_or_else(|| "-".into(), |rho| bound(rho.get())),
                debit.rule.name().into(),
                debit.run.to_string(),
            ]
        });
        let headings = ["entry", "time (UTC)", "what", "epsilon\nalone", "delta", "rho", "rule", "run"];
        text = format!("{text}\n{}", table::columns(&headings, rows.collect()));
    }
    text
}

/// Rounded up.
fn spent_words(spent: PrivacyBudget) -> String {
    let figure = bound;
    match spent {
        PrivacyBudget::Approximate { epsilon, delta } => {
            format!("epsilon {} at delta {}", figure(epsilon.get()), exact(delta.get()))
        }
        PrivacyBudget::Pure { epsilon } => format!("pure epsilon {}", figure(epsilon.get())),
        PrivacyBudget::Zcdp { rho, .. } => format!("rho {}", figure(rho.get())),
    }
}

/// Rounded down, so that what is printed can be spent.
fn remaining_words(remaining: PrivacyBudget) -> String {
    let figure = |value: f64| lower_bound(value, 5);
    match remaining {
        PrivacyBudget::Approximate { epsilon, .. } if epsilon.get() == 0.0 => "nothing".into(),
        PrivacyBudget::Approximate { epsilon, delta } => {
            format!("epsilon {} at delta {}, with Gaussian noise", figure(epsilon.get()), exact(delta.get()))
        }
        PrivacyBudget::Pure { epsilon } => format!("pure epsilon {}", figure(epsilon.get())),
        PrivacyBudget::Zcdp { rho, .. } => format!("rho {}", figure(rho.get())),
    }
}
