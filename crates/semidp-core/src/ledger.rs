//! Ledgers: what may be spent, and what was. A session debits one before the first step of a
//! program, never after.

use crate::{Error, Result};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, epsilon};

/// What a program is about to spend.
#[derive(Debug, Clone)]
pub struct Charge<'a> {
    /// Its events.
    pub events: &'a [CountedEvent],
    /// Under this adjacency.
    pub adjacency: Adjacency,
    /// The ε it will claim,
    pub epsilon: Epsilon,
    /// at this δ.
    pub delta: Delta,
}

/// Grants or refuses charges. A granted charge is spent, whatever happens next.
pub trait Ledger: Send {
    /// Records the charge durably, or refuses it with [`Error::BudgetRefused`] and records nothing.
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()>;
}

/// Grants everything and remembers nothing: each program stands alone on its certificate.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLimit;

impl Ledger for NoLimit {
    fn debit(&mut self, _: &Charge<'_>) -> Result<()> {
        Ok(())
    }
}

/// A budget (ε, δ) for everything a session does, composed by the accountants; kept in memory.
#[derive(Debug, Clone)]
pub struct Budget {
    epsilon: Epsilon,
    delta: Delta,
    spent: Vec<CountedEvent>,
}

impl Budget {
    /// Nothing spent yet.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Self {
        Self { epsilon, delta, spent: Vec::new() }
    }
}

impl Ledger for Budget {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        let mut events = self.spent.clone();
        events.extend_from_slice(charge.events);
        let refused = |reason: String| Err(Error::BudgetRefused { reason });
        match epsilon(&events, charge.adjacency, self.delta) {
            Ok(total) if total.value <= self.epsilon => {
                self.spent = events;
                Ok(())
            }
            Ok(total) => refused(format!(
                "everything together would cost epsilon {} of {} at delta {}",
                total.value, self.epsilon, self.delta
            )),
            Err(error) => refused(error.to_string()),
        }
    }
}
