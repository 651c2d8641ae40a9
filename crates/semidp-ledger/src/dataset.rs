//! The ledger of one data set, as a session uses it.

use crate::book::{self, Book, NewDebit};
use crate::cost::{covers, spent, words};
use crate::{Error, LedgerFile, Result};
use rusqlite::TransactionBehavior;
use semidp_accounting::CountedEvent;
use semidp_core::{Charge, Ledger};

/// Grants what the budget of one data set covers, and records it.
#[derive(Debug)]
pub struct DatasetLedger {
    file: LedgerFile,
    dataset: String,
    description: String,
}

impl DatasetLedger {
    pub(crate) fn new(file: LedgerFile, dataset: &str) -> Self {
        Self { file, dataset: dataset.into(), description: String::new() }
    }

    /// Says in a few words what its runs are, such as `mean: weighted-gaussian`. It is kept with them, so it
    /// must not hold anything computed from private rows.
    pub fn describe(mut self, description: &str) -> Self {
        self.description = book::one_line(description);
        self
    }

    /// Nothing is granted unless what this returns was on the disk first.
    fn record(&mut self, charge: &Charge<'_>) -> Result<()> {
        let (path, dataset) = (&self.file.path, &self.dataset);
        let failed = |error: rusqlite::Error| Error::unusable(path, error);
        // From here to the end nobody else can write: whoever comes meanwhile waits.
        let transaction =
            self.file.database.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let book = Book::read(&transaction, path)?;
        let budget = book.budget(dataset, path)?;
        let refused = |reason: String| Err(Error::Refused { reason });
        if let Some(known) = book.debits.iter().find(|debit| debit.run == charge.run) {
            let same = known.dataset == *dataset
                && known.adjacency == charge.adjacency
                && known.events == charge.events;
            return match same {
                true => Ok(()),
                false => refused(format!("run {} is recorded with another program", charge.run)),
            };
        }
        let (adjacency, budget) = (budget.adjacency, budget.budget);
        if charge.adjacency != adjacency {
            return refused(format!(
                "the budget of data set `{dataset}` is for {adjacency} adjacency, this run is for {}",
                charge.adjacency
            ));
        }
        let mut runs: Vec<&[CountedEvent]> = book.runs_of(dataset);
        runs.push(charge.events);
        let reason = match spent(budget, adjacency, &runs) {
            Ok(cost) if covers(budget, cost, runs.len()) => None,
            Ok(cost) => Some(match runs.len() - 1 {
                0 => format!("this run would cost {}", words(cost)),
                1 => format!("this run and the one recorded before would cost {} together", words(cost)),
                many => {
                    format!("this run and the {many} recorded before would cost {} together", words(cost))
                }
            }),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = reason {
            let budget = words(budget);
            return refused(format!("data set `{dataset}` has a budget of {budget} ({adjacency}); {reason}"));
        }
        let debit = NewDebit { dataset, description: &self.description, charge };
        book.add_debit(&transaction, path, &debit)?;
        // What was written must read back as it was meant, before it counts.
        let written = Book::read(&transaction, path)?;
        if written.debits.last().is_none_or(|last| last.run != charge.run || last.events != charge.events) {
            return Err(Error::changed(path, "a new entry does not read back"));
        }
        transaction.commit().map_err(failed)
    }
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
