//! `semidp ledger`: what a data set may spend, and what was spent, across runs.

use crate::command::plan::{budget_json, budget_words};
use crate::failure::Failure;
use crate::number::{count, exact, lower_bound};
use crate::options::{AdjacencyName, BudgetOptions};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use clap::{Args, Subcommand};
use semidp_accounting::PrivacyBudget;
use semidp_ledger::{Account, Debit, LedgerFile};
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

const SHOW_EXAMPLE: &str = "\
EXAMPLE
  semidp ledger show --ledger budget.ledger --dataset patients-2024";

/// Keep a budget across runs: what a data set may spend, and what was spent.
#[derive(Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum Ledger {
    Init(Init),
    Show(Show),
}

impl Ledger {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Init(command) => command.run(output),
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

/// Show what was spent, and what is left.
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
        "debits": account.debits.iter().map(debit_json).collect::<Vec<_>>(),
    })
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
        "events": debit.events,
    })
}

fn account_text(account: &Account) -> String {
    let runs = match account.debits.len() {
        0 => "nothing yet".into(),
        1 => format!("{}, by one run", spent_words(account.spent)),
        many => format!("{}, by {} runs together", spent_words(account.spent), count(many as u64)),
    };
    let mut text = table::facts(vec![
        ("data set".into(), format!("{} ({} adjacency)", account.dataset, account.adjacency)),
        ("budget".into(), format!("{}, set {}", budget_words(account.budget), account.time)),
        ("spent".into(), runs),
        ("left for one more release".into(), remaining_words(account.remaining)),
    ]);
    if !account.debits.is_empty() {
        let rows = account.debits.iter().map(|debit| {
            vec![
                debit.sequence.to_string(),
                debit.time.clone(),
                debit.description.clone(),
                bound(debit.epsilon.get()),
                exact(debit.delta.get()),
                debit.rho.map_or_else(|| "-".into(), |rho| bound(rho.get())),
                debit.run.to_string(),
            ]
        });
        let headings = ["entry", "time (UTC)", "what", "epsilon\nalone", "delta", "rho", "run"];
        text = format!("{text}\n{}", table::columns(&headings, rows.collect()));
    }
    text
}

/// Rounded up; the rounding of a sum does not show.
fn spent_words(spent: PrivacyBudget) -> String {
    let figure = |value: f64| bound(value * (1.0 - 1e-12));
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
