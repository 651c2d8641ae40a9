//! Ledgers: what may be spent, and what was. A session debits one before the first step of a
//! program, never after.

use crate::{Error, Result, hex};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, epsilon};
use std::fmt;

/// Names a run. Random, so that no two runs share one; it says nothing about data or noise.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunId([u8; 16]);

impl RunId {
    /// A new one.
    pub fn random() -> Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| Error::NoRandomness)?;
        Ok(Self(id))
    }

    /// As it is written: 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

/// What a program is about to spend.
#[derive(Debug, Clone)]
pub struct Charge<'a> {
    /// The run it is for. A run that is continued has the one it began with.
    pub run: RunId,
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
    ///
    /// A charge for a run that is recorded already, with the same events under the same adjacency, is that run going
    /// on, and costs nothing more; with others it is refused.
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
    runs: Vec<RunId>,
}

impl Budget {
    /// Nothing spent yet.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Self {
        Self { epsilon, delta, spent: Vec::new(), runs: Vec::new() }
    }
}

impl Ledger for Budget {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        let mut events = self.spent.clone();
        events.extend_from_slice(charge.events);
        let refused = |reason: String| Err(Error::BudgetRefused { reason });
        if self.runs.contains(&charge.run) {
            // A process sees a run begin once: to be continued, it would have to be another process.
            return refused(format!("the run {} was debited before", charge.run));
        }
        match epsilon(&events, charge.adjacency, self.delta) {
            Ok(total) if total.value <= self.epsilon => {
                self.spent = events;
                self.runs.push(charge.run);
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

impl Ledger for Box<dyn Ledger> {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        (**self).debit(charge)
    }
}

/// Both must grant a charge. The first may grant what the second then refuses: let the durable one be the second.
impl<A: Ledger, B: Ledger> Ledger for (A, B) {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        self.0.debit(charge)?;
        self.1.debit(charge)
    }
}
