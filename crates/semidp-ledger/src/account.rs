//! What a ledger tells about a data set.

use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, PrivacyBudget, Rho};
use semidp_core::RunId;

/// A data set: what it may spend, and what it has spent.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Its name.
    pub dataset: String,
    /// The neighbouring relation of its budget.
    pub adjacency: Adjacency,
    /// What may be spent.
    pub budget: PrivacyBudget,
    /// When the budget was set (UTC).
    pub time: String,
    /// What all debits cost together, in the currency of the budget.
    pub spent: PrivacyBudget,
    /// What one more release may cost by itself, in the same currency: the rest of ρ or of pure ε; for (ε, δ)
    /// the ε, at the δ of the budget, of the largest single Gaussian release that still fits. Composition is
    /// not addition, so that is more than the difference.
    pub remaining: PrivacyBudget,
    /// Every run, in order.
    pub debits: Vec<Debit>,
}

/// A run that was granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Debit {
    /// The run.
    pub run: RunId,
    /// Its place in the ledger, in which budgets and debits are counted together.
    pub sequence: u64,
    /// The data set that paid.
    pub dataset: String,
    /// The neighbouring relation.
    pub adjacency: Adjacency,
    /// What was done, as its certificate says.
    pub events: Vec<CountedEvent>,
    /// The ε that the run claims for itself,
    pub epsilon: Epsilon,
    /// at this δ.
    pub delta: Delta,
    /// Its ρ, if every event has a zCDP guarantee.
    pub rho: Option<Rho>,
    /// In a few words.
    pub description: String,
    /// When it was granted (UTC).
    pub time: String,
}
