//! A durable privacy budget: what a data set may spend, and what every run has spent, in one file.
//!
//! # Definition
//! A ledger gives each data set, known by a name that its owner chooses, an adjacency and a budget: (ε, δ),
//! pure ε, or ρ of zCDP. Each run on the data set is a debit: its events, exactly as its certificate holds
//! them, and what it was charged. It is recorded, and on the disk, before its first step.
//!
//! * ρ and pure ε add. They are decimal numbers of thirty places, added exactly; a quotient that does not end is rounded up.
//!   An event without such a cost is refused. Ten runs of 0.1 fill a budget of 1 and claim 1.
//! * Under (ε, δ) every run is charged by the [`GaussianFilter`](semidp_accounting::GaussianFilter): a pair (v, d) whose
//!   curve dominates the run's privacy loss. Charges add, and a run is granted while their sums stay within those of
//!   the budget. The filter is that of [`calibration_delta`](semidp_core::calibration_delta), as for certificates; what is
//!   set aside covers samplers of 2⁵⁰ coordinates.
//! * Before the first run that is not pure, pure ε adds under (ε, δ), too: E in all. The first other run fixes E, and the
//!   filter is then that of (ε − E, δ).
//! * The first run, or the first plan, may instead take the whole budget by tight composition of its own events.
//!   Nothing else is granted afterwards.
//! * A plan ([`DatasetLedger::plan`]) is charged like one run that has the events of all its entries, composed tightly with each other,
//!   when it is declared. A later run that matches an entry is paid for.
//! * A run that is recorded already is the same run going on, and costs nothing more; with other events,
//!   data set or adjacency it is refused.
//!
//! # Guarantee
//! Everything that granted runs release about a data set is together within its budget, under its adjacency, even if each
//! run, its noise, sampling and number of steps included, was chosen from what earlier runs released, and however
//! many processes share the file: reading, charging and recording are one transaction that one process at a time can hold.
//! The proof is in the documentation of the filter; for sums it is that of Rogers et al. and of Feldman and Zrnic. The
//! first charge depends on no release, so taking the whole budget by tight composition needs no filter.
//!
//! # What it does not protect against
//! * Runs whose noise came from a seed, as tests have it: they are recorded like others, and promise nothing. The
//!   command line says so in their descriptions.
//! * Runs that do not use it, and one set of rows under two names: the name is the owner's word. The ledger remembers
//!   the path of the file that each run read, if it is told, and warns if names and paths do not go together. Contents are never
//!   compared: an answer that depended on them would itself tell neighbouring data sets apart.
//! * Any process that can write the file. Every entry carries a SHA-256 digest of itself and all entries before it,
//!   and every use checks all of them: an edited, deleted, moved or truncated entry is found. Someone who
//!   computes the digests anew is not found, nor is an older copy of the file put back in its place. Keep
//!   it where only those may write who may open the private rows.
//! * Loss. Between uses the ledger is one file, which holds every debit that was granted: a copy of it is a copy of the ledger. (While a
//!   process writes, a journal of the same name with `-journal` at its end undoes what was not committed.) It
//!   needs a local disk: file locks of network file systems are not to be relied on.
//!
//! It holds names, descriptions, paths, events and times; never anything computed from private rows.
//!
//! # Older files
//! A ledger of the first format is brought up to date when it is opened. Its runs were granted by tight composition with the
//! runs before, which is not valid for runs chosen from earlier results, so they are charged anew, in their order, by
//! today's rules ([`Rule::Migrated`]). If that is more than the budget, or no charge within it dominates a run, nothing is left.
//!
//! # Cost
//! A debit reads the whole ledger and adds: it composes the events of the new run alone. A charge takes microseconds for
//! Gaussian events, some tens of milliseconds for most sampled runs and up to a few seconds for runs with rare large losses.
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
//! Smith, Thakurta, "Fully Adaptive Composition for Gaussian Differential Privacy" (2022); Koskela, Tobaben, Honkela, "Individual
//! Privacy Accounting with Gaussian Differential Privacy" (2023); Whitehouse, Ramdas, Rogers, Wu, "Fully Adaptive Composition in
//! Differential Privacy" (2023).

mod account;
mod book;
mod chain;
mod cost;
mod dataset;
mod error;
mod file;

pub use account::{Account, Debit, FilterState, Plan};
pub use cost::{Cost, Rule};
pub use dataset::{DatasetLedger, Declared, MOST_EVENTS};
pub use error::{Error, Result};
pub use file::LedgerFile;
