//! A durable privacy budget: what a data set may spend, and what every run has spent, in one file.
//!
//! # Definition
//! A ledger gives each data set, known by a name that its owner chooses, an adjacency and a budget: (ε, δ),
//! pure ε, or ρ of zCDP. Each run on the data set is a debit: its events, exactly as its certificate holds
//! them. A run is granted if everything recorded for the data set *and* the run, composed by the accountants
//! of `semidp-accounting`, stays within the budget. It is recorded, and on the disk, before its first step.
//!
//! # Guarantee
//! Everything that granted runs release about a data set is together within its budget, under its adjacency,
//! however many processes share the file: reading, composing and recording are one transaction that one
//! process at a time can hold. With ρ, pure ε, or Gaussian events alone this holds even if the noise of a run
//! is chosen after looking at what earlier runs released. With sampled events or several kinds of them under
//! (ε, δ) it is proved for parameters that do not depend on earlier releases.
//!
//! * (ε, δ) is compared at [`calibration_delta`](semidp_core::calibration_delta), as certificates are: a run
//!   that is calibrated to all that is left passes. What is set aside covers samplers of 2⁵⁰ coordinates.
//! * ρ and pure ε add, rounded up; an event without such a cost is refused.
//! * Budgets are decimal numbers and sums are not, so a total may exceed its budget by one part in 10¹², as when
//!   0.1 + 0.1 + 0.1 meets 0.3.
//! * A run that is recorded already is the same run going on, and costs nothing more; with other events,
//!   data set or adjacency it is refused.
//!
//! # What it does not protect against
//! * Runs whose noise came from a seed, as tests have it: they are recorded like others, and promise nothing. The
//!   command line says so in their descriptions.
//! * Runs that do not use it, and one set of rows under two names: the name is the owner's word.
//! * Whoever can write the file. Every entry carries a SHA-256 digest of itself and all entries before it,
//!   and every use checks all of them: an edited, deleted, moved or truncated entry is found. Someone who
//!   computes the digests anew is not found, nor is an older copy of the file put back in its place. Keep
//!   it where only those may write who may open the private rows.
//! * Loss. The ledger is the file and, while it is in use, the file of the same name with `-wal` at its end.
//!   It needs a local disk: file locks of network file systems are not to be relied on.
//!
//! It holds names, descriptions, events and times; never anything computed from private rows.
//!
//! # Cost
//! A debit reads the whole ledger and composes the events of its data set: milliseconds for Gaussian events,
//! up to about a second for several sampled ones.
//!
//! # Example
//! ```
//! use semidp_accounting::{Delta, Epsilon, PrivacyBudget};
//! use semidp_core::*;
//! use semidp_ledger::LedgerFile;
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("semidp-ledger-{}", RunId::random()?));
//! # std::fs::create_dir(&folder)?;
//! # let path = folder.join("budget.ledger");
//! let budget = PrivacyBudget::Approximate { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-6)? };
//! LedgerFile::init(&path, "patients-2024", budget, Adjacency::ReplaceOne)?;
//!
//! let ledger = LedgerFile::open(&path)?.for_dataset("patients-2024")?.describe("a first look");
//! let rows = Private::new(DenseTable::new(vec![0.2f32, 0.9, 0.4, 0.7], 2)?);
//! let session = Session::new(rows, Adjacency::ReplaceOne)?.with_ledger(ledger);
//! let noise = Gaussian::new(NoiseMultiplier::new(15.0)?);
//! let program = || Program::new(noise, Sampling::Everyone, Steps::ONE);
//! let granted = session.authorise(program(), Delta::new(1e-6)?)?;
//! # drop(granted);
//! let account = &LedgerFile::open(&path)?.datasets()?[0];
//! assert_eq!(account.debits[0].description, "a first look");
//! while session.authorise(program(), Delta::new(1e-6)?).is_ok() {}
//! assert_eq!(LedgerFile::open(&path)?.datasets()?[0].debits.len(), 3);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # References
//! Budgets under parameters chosen along the way: Rogers, Roth, Ullman, Vadhan, "Privacy Odometers and Filters"
//! (2016), for pure ε; Feldman, Zrnic, "Individual Privacy Accounting via a Rényi Filter" (2021), for zCDP;
//! Smith, Thakurta, "Fully Adaptive Composition for Gaussian Differential Privacy" (2022).

mod account;
mod book;
mod chain;
mod cost;
mod dataset;
mod error;
mod file;

pub use account::{Account, Debit, FilterState, Plan};
pub use cost::{Cost, Rule};
pub use dataset::{DatasetLedger, MOST_EVENTS};
pub use error::{Error, Result};
pub use file::LedgerFile;
