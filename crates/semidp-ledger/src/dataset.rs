//! The ledger of one data set, as a session uses it.

use crate::book::{self, Book, NewDebit, NewPlan};
use crate::cost::{self, Cost, Refusal, Rule, State, is_within, words, words_of};
use crate::{Error, LedgerFile, Plan, Result};
use rusqlite::TransactionBehavior;
use semidp_accounting::CountedEvent;
use semidp_core::{Charge, Ledger};
use std::path::Path;

/// The largest number of events in one run or plan.
pub const MOST_EVENTS: usize = 10_000;

/// Where a plan stands in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    /// Its place among the entries.
    pub sequence: u64,
    /// Whether it was recorded and paid for now.
    pub is_new: bool,
}

/// Grants what the budget of one data set covers, and records it.
#[derive(Debug)]
pub struct DatasetLedger {
    file: LedgerFile,
    dataset: String,
    description: String,
    path: Option<String>,
}

impl DatasetLedger {
    pub(crate) fn new(file: LedgerFile, dataset: &str) -> Self {
        Self { file, dataset: dataset.into(), description: String::new(), path: None }
    }

    /// Says in a few words what its runs are, such as `mean: weighted-gaussian`. It is kept with them, so it
    /// must not hold anything computed from private rows.
    pub fn describe(mut self, description: &str) -> Self {
        self.description = book::one_line(description);
        self
    }

    /// Names the file of the private rows. Debits record its canonical path; nothing in it is read. Rows in memory have no path: what
    /// names no file is not recorded.
    pub fn reads(mut self, private: &Path) -> Self {
        let path = std::fs::canonicalize(private).ok();
        self.path = path.map(|path| path.to_string_lossy().into_owned());
        self
    }

    /// What is odd about the file that [`DatasetLedger::reads`] named: earlier runs of this data set read another one, or
    /// runs of another data set read this one. It follows from names alone.
    pub fn warnings(&self) -> Result<Vec<String>> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        let book = self.file.read()?;
        let mut warnings = Vec::new();
        // An absolute path begins with no such word: earlier versions recorded the names of rows in memory, which are no paths.
        let is_file = |path: &String| !path.starts_with("memory:");
        let known = |debit: &&book::Recorded| debit.path.as_ref().is_some_and(is_file);
        let of_this = |debit: &&book::Recorded| debit.dataset == self.dataset;
        let is_known = book.debits.iter().filter(of_this).any(|debit| debit.path.as_ref() == Some(path));
        let another =
            book.debits.iter().filter(of_this).filter(known).map(|debit| debit.path.as_ref()).next_back();
        if let (false, Some(Some(another))) = (is_known, another) {
            warnings.push(format!(
                "earlier runs of data set `{}` read {}, this one reads {}: a budget covers one set of private rows",
                self.dataset,
                shown(another),
                shown(path)
            ));
        }
        let mut others: Vec<&str> = Vec::new();
        for debit in book.debits.iter().filter(|debit| debit.dataset != self.dataset) {
            if debit.path.as_ref() == Some(path) && !others.contains(&&*debit.dataset) {
                others.push(&debit.dataset);
            }
        }
        if !others.is_empty() {
            warnings.push(format!(
                "{} was also read as data set `{}`: what the same rows spend under two names adds up, and neither budget says so",
                shown(path),
                others.join("`, `")
            ));
        }
        Ok(warnings)
    }

    /// Declares runs in advance and pays for all of them now, composed tightly with each other. Later runs that match an
    /// entry draw on it at no further cost: the same events in the same order, each with at least as much noise and at
    /// most the rate and the count that were declared. Each entry is drawn on once; what is never run stays paid.
    ///
    /// Nothing is asserted that the ledger does not see: the entries are recorded before the runs that draw on them, so
    /// their parameters cannot depend on what those release. They may depend on the results of runs before the plan.
    pub fn plan(&mut self, runs: &[Vec<CountedEvent>]) -> Result<()> {
        self.plan_again(runs).map(|_| ())
    }

    /// The same, and where the plan stands in the ledger.
    pub fn plan_again(&mut self, runs: &[Vec<CountedEvent>]) -> Result<Declared> {
        self.declare(runs, false)
    }

    /// The same, unless a plan of the same runs and description is paid for and no run has drawn on it yet: then nothing is recorded.
    /// So a command whose outcome got lost can be given again.
    pub fn plan_once(&mut self, runs: &[Vec<CountedEvent>]) -> Result<Declared> {
        self.declare(runs, true)
    }

    fn declare(&mut self, runs: &[Vec<CountedEvent>], is_once: bool) -> Result<Declared> {
        let events = runs.concat();
        if runs.iter().any(|run| run.is_empty()) || events.is_empty() {
            return Err(Error::InvalidParameter {
                name: "events",
                value: "no event".into(),
                requirement: "a list of runs of at least one event each",
            });
        }
        let (path, dataset) = (&self.file.path, &self.dataset);
        let failed = |error: rusqlite::Error| Error::unusable(path, error);
        let transaction =
            self.file.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let book = Book::read(&transaction, path)?;
        let adjacency = book.budget(dataset, path)?.adjacency;
        let description = &self.description;
        let is_same = |plan: &&Plan| {
            plan.dataset == *dataset
                && plan.runs == runs
                && plan.description == *description
                && plan.drawn.iter().all(Option::is_none)
        };
        if let Some(known) = book.plans.iter().filter(|_| is_once).find(is_same) {
            return Ok(Declared { sequence: known.sequence, is_new: false });
        }
        let (rule, cost) = price(&book, dataset, path, &events, "this plan")?;
        book.add_plan(&transaction, path, &NewPlan { dataset, adjacency, description, runs, rule, cost })?;
        let written = Book::read(&transaction, path)?;
        let Some(last) = written.plans.last().filter(|last| last.runs == runs) else {
            return Err(Error::changed(path, "a new entry does not read back"));
        };
        transaction
            .commit()
            .map_err(|error| Error::Uncertain { path: path.clone(), reason: error.to_string() })?;
        Ok(Declared { sequence: last.sequence, is_new: true })
    }

    /// Nothing is granted unless what this returns was on the disk first.
    fn record(&mut self, charge: &Charge<'_>) -> Result<()> {
        let (path, dataset) = (&self.file.path, &self.dataset);
        let failed = |error: rusqlite::Error| Error::unusable(path, error);
        // From here to the end no other process can write: others wait.
        let transaction =
            self.file.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let book = Book::read(&transaction, path)?;
        let budget = book.budget(dataset, path)?;
        let refused = |reason: String| Err(Error::Refused { reason });
        if let Some(known) = book.debits.iter().find(|debit| debit.run == charge.run) {
            let same = known.dataset == *dataset
                && known.adjacency == charge.adjacency
                && known.events(path)? == charge.events;
            return match same {
                true => Ok(()),
                false => refused(format!("run {} is recorded with another program", charge.run)),
            };
        }
        if charge.adjacency != budget.adjacency {
            return refused(format!(
                "the budget of data set `{dataset}` is for {} adjacency, this run is for {}",
                budget.adjacency, charge.adjacency
            ));
        }
        let planned = book.plans.iter().filter(|plan| plan.dataset == *dataset).find_map(|plan| {
            let free =
                |entry: &usize| plan.drawn[*entry].is_none() && is_within(charge.events, &plan.runs[*entry]);
            (0..plan.runs.len()).find(free).map(|entry| (plan.sequence, entry))
        });
        let (rule, cost) = match planned {
            Some(_) => (Rule::Plan, Cost::Nothing),
            None => price(&book, dataset, path, charge.events, "this run")?,
        };
        let (description, read) = (&self.description, self.path.as_deref());
        book.add_debit(
            &transaction,
            path,
            &NewDebit { dataset, description, path: read, charge, rule, cost, planned },
        )?;
        // What was written must read back as it was meant, before it counts.
        let written = Book::read(&transaction, path)?;
        let last = written.debits.last();
        if last.is_none_or(|last| last.run != charge.run)
            || last.map(|last| last.events(path)).transpose()?.as_deref() != Some(charge.events)
        {
            return Err(Error::changed(path, "a new entry does not read back"));
        }
        transaction.commit().map_err(failed)
    }
}

/// What events would cost a data set, or the refusal in words.
fn price(
    book: &Book,
    dataset: &str,
    path: &Path,
    events: &[CountedEvent],
    what: &str,
) -> Result<(Rule, Cost)> {
    let (budget, state) = (book.budget(dataset, path)?, book.state(dataset, path)?);
    let refusal = if events.len() > MOST_EVENTS {
        format!("{what} has {} events, at most {MOST_EVENTS} are composed", events.len())
    } else {
        match state.price(events) {
            Ok(priced) => return Ok(priced),
            Err(Refusal::Unknown(error)) => error.to_string(),
            Err(Refusal::Closed) => format!("{} took all of it; {what} would cost more", before(&state)),
            Err(Refusal::TooMuch(total)) => {
                let total = match total {
                    Some(total) => words_of(budget.budget, total),
                    None => "more than that".into(),
                };
                match state.charges {
                    0 => format!("{what} would cost {total}"),
                    _ => format!("{what} and {} would cost {total} together", before(&state)),
                }
            }
        }
    };
    let left = match state.remaining()? {
        left if cost::amount(left) == 0.0 => "nothing is left".into(),
        left => format!("left for one more release is {}", words(left)),
    };
    Err(Error::Refused {
        reason: format!(
            "data set `{dataset}` has a budget of {} ({}); {refusal}; {left}",
            words(budget.budget),
            budget.adjacency
        ),
    })
}

/// The earlier charges in words.
fn before(state: &State) -> String {
    match state.charges {
        1 => "the one recorded before".into(),
        many => format!("the {many} recorded before"),
    }
}

/// A path without control characters.
fn shown(path: &str) -> String {
    path.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

impl Ledger for DatasetLedger {
    fn debit(&mut self, charge: &Charge<'_>) -> semidp_core::Result<()> {
        // No event, nothing spent.
        if charge.events.is_empty() {
            return Ok(());
        }
        Ok(self.record(charge)?)
    }
}
