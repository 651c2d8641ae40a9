//! What a ledger records about a data set.

use crate::cost::{Cost, Rule};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, FilterCharge, PrivacyBudget, Rho};
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
    /// What all debits and plans cost together, in the currency of the budget.
    pub spent: PrivacyBudget,
    /// What one more release may cost by itself, in the same currency: the rest of ρ or of pure ε; for (ε, δ)
    /// the ε, at the δ of the budget, of the largest single Gaussian release that still fits. Composition is
    /// not addition, so that is more than the difference.
    pub remaining: PrivacyBudget,
    /// For (ε, δ): the budget of the privacy filter and what it granted so far.
    pub filter: Option<FilterState>,
    /// One run or plan took the whole budget.
    pub is_closed: bool,
    /// Runs that were declared in advance.
    pub plans: Vec<Plan>,
    /// Every run, in order.
    pub debits: Vec<Debit>,
}

/// Where a privacy filter stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterState {
    /// What pure runs spent before the filter's first grant.
    pub pure_epsilon: f64,
    /// V and D, for what pure runs left of ε.
    pub budget: FilterCharge,
    /// What was granted.
    pub spent: FilterCharge,
}

/// Runs that were declared in advance, and paid for together.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its place in the ledger.
    pub sequence: u64,
    /// The data set that paid.
    pub dataset: String,
    /// The neighbouring relation.
    pub adjacency: Adjacency,
    /// The events of each run.
    pub runs: Vec<Vec<CountedEvent>>,
    /// The run that drew on each of them.
    pub drawn: Vec<Option<RunId>>,
    /// How it was charged.
    pub rule: Rule,
    /// What it was charged.
    pub cost: Cost,
    /// In a few words.
    pub description: String,
    /// When it was declared (UTC).
    pub time: String,
}

/// A run that was granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Debit {
    /// The run.
    pub run: RunId,
    /// Its place in the ledger, in which budgets, plans and debits are counted together.
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
    /// How it was charged.
    pub rule: Rule,
    /// What it was charged.
    pub cost: Cost,
    /// The plan that paid for it.
    pub plan: Option<u64>,
    /// The file of the private rows, if the caller named it.
    pub path: Option<String>,
    /// In a few words.
    pub description: String,
    /// When it was granted (UTC).
    pub time: String,
}
