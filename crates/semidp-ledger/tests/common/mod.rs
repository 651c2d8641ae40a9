//! Ledgers to try things on.

// Each test crate uses its own part of this module.
#![allow(dead_code)]

use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Epsilon, Event, NoiseMultiplier, PrivacyBudget, Rho, SampleRate, Steps,
};
use semidp_core::{Charge, Ledger, RunId, calibration_delta};
use semidp_ledger::{DatasetLedger, LedgerFile};
use std::path::{Path, PathBuf};

pub const ADJACENCY: Adjacency = Adjacency::ReplaceOne;

/// The path of a ledger that does not exist yet, in a folder of its own.
pub fn place(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder.join("budget.ledger")
}

pub fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

pub fn approximate(epsilon: f64) -> PrivacyBudget {
    PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon).unwrap(), delta: delta() }
}

pub fn pure(epsilon: f64) -> PrivacyBudget {
    PrivacyBudget::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

pub fn zcdp(rho: f64) -> PrivacyBudget {
    PrivacyBudget::Zcdp { rho: Rho::new(rho).unwrap(), stated_at: delta() }
}

pub fn noise(multiplier: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(multiplier).unwrap()
}

pub fn gaussian(multiplier: f64) -> Vec<CountedEvent> {
    vec![CountedEvent::new(Event::Gaussian { noise_multiplier: noise(multiplier) }, Steps::ONE)]
}

pub fn poisson(multiplier: f64, rate: f64, steps: u64) -> Vec<CountedEvent> {
    let sample_rate = SampleRate::new(rate).unwrap();
    let event = Event::PoissonGaussian { noise_multiplier: noise(multiplier), sample_rate };
    vec![CountedEvent::new(event, Steps::new(steps).unwrap())]
}

pub fn laplace(multiplier: f64) -> Vec<CountedEvent> {
    let event = Event::Laplace { noise_multiplier: noise(multiplier), dimension: 2 };
    vec![CountedEvent::new(event, Steps::ONE)]
}

/// A ledger with one data set, `rows`.
pub fn ledger(path: &Path, budget: PrivacyBudget) -> DatasetLedger {
    LedgerFile::init(path, "rows", budget, ADJACENCY).unwrap().for_dataset("rows").unwrap()
}

/// A run that claims what its events give alone at δ = 1e-6.
pub fn debit_as(
    ledger: &mut DatasetLedger,
    run: RunId,
    events: &[CountedEvent],
    adjacency: Adjacency,
) -> semidp_core::Result<()> {
    let epsilon = semidp_accounting::epsilon(events, adjacency, calibration_delta(delta())).unwrap().value;
    ledger.debit(&Charge { run, events, adjacency, epsilon, delta: delta() })
}

/// A new run.
pub fn debit(ledger: &mut DatasetLedger, events: &[CountedEvent]) -> semidp_core::Result<()> {
    debit_as(ledger, RunId::random().unwrap(), events, ADJACENCY)
}

/// The reason of a refusal.
pub fn reason(result: semidp_core::Result<()>) -> String {
    match result {
        Err(semidp_core::Error::BudgetRefused { reason }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}
