//! Options that several commands share.

use crate::failure::Failure;
use crate::number;
use crate::output::Output;
use clap::{Args, ValueEnum};
use semidp::mean::Target;
use semidp::{Law, Mechanism, Sampling};
use semidp_accounting::{Adjacency, Delta, Epsilon, PrivacyBudget, Rho, SampleRate, Trust};
use semidp_ledger::{DatasetLedger, LedgerFile};
use semidp_table::LoadOptions;
use std::path::PathBuf;

/// Which promise is meant.
#[derive(Args, Clone, Copy)]
pub struct PromiseOptions {
    /// Which data sets must look alike: one private row exchanged, or one added or removed
    #[arg(long, value_enum, default_value_t = AdjacencyName::ReplaceOne)]
    adjacency: AdjacencyName,

    /// Who sees the private rows: a curator (central), or nobody but their owner (local) [default: central]
    #[arg(long, value_enum)]
    trust: Option<TrustName>,
}

impl PromiseOptions {
    /// The neighbouring relation.
    pub fn adjacency(self) -> Adjacency {
        self.adjacency.adjacency()
    }

    /// Who is trusted, if it was said.
    pub fn given_trust(self) -> Option<Trust> {
        self.trust.map(|trust| match trust {
            TrustName::Central => Trust::Central,
            TrustName::Local => Trust::Local,
        })
    }

    /// Who is trusted.
    pub fn trust(self) -> Trust {
        self.given_trust().unwrap_or(Trust::Central)
    }
}

/// How files of rows are read.
#[derive(Args, Debug, Clone, Copy)]
pub struct ReadingOptions {
    /// Let a quoted field of CSV span lines. One broken quote can then hide the lines after it: the certificate names this
    /// as an assumption on the private file [default: a field ends with its line]
    #[arg(long)]
    pub multiline: bool,
}

impl ReadingOptions {
    /// As the library has it.
    pub fn loading(self) -> LoadOptions {
        LoadOptions::default().multiline(self.multiline)
    }

    /// What a certificate of private rows must take for granted.
    pub fn assumption(self) -> Option<String> {
        self.multiline.then(|| LoadOptions::MULTILINE_ASSUMPTION.into())
    }
}

/// The neighbouring relations, as they are called.
#[derive(Clone, Copy, ValueEnum)]
pub enum AdjacencyName {
    ReplaceOne,
    AddRemove,
}

impl AdjacencyName {
    /// As the library has it.
    pub fn adjacency(self) -> Adjacency {
        match self {
            Self::ReplaceOne => Adjacency::ReplaceOne,
            Self::AddRemove => Adjacency::AddRemove,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum TrustName {
    Central,
    Local,
}

/// The mean of what.
#[derive(Clone, Copy, ValueEnum)]
pub enum TargetName {
    /// Of the law that all rows are drawn from
    Population,
    /// Of the given rows, whatever they are
    Empirical,
}

impl TargetName {
    /// As the library has it.
    pub fn target(self) -> Target {
        match self {
            Self::Population => Target::Population,
            Self::Empirical => Target::Empirical,
        }
    }
}

/// What may be spent.
#[derive(Args, Clone, Copy)]
pub struct BudgetOptions {
    /// The budget: this epsilon, at --delta; without --delta it is pure
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    pub epsilon: Option<Epsilon>,

    /// The delta of the budget
    #[arg(long, value_name = "D", value_parser = number::parse::<Delta>, allow_hyphen_values = true)]
    pub delta: Option<Delta>,

    /// The budget as rho of zCDP instead; --delta then says where to state the epsilon it gives
    #[arg(long, value_name = "R", value_parser = number::parse::<Rho>, allow_hyphen_values = true)]
    pub rho: Option<Rho>,
}

/// Where the epsilon of a budget in rho is stated if no --delta says otherwise.
pub const STATED_AT: f64 = 1e-6;

const BUDGETS: &str = "a budget is --epsilon with --delta, pure --epsilon, or --rho";

impl BudgetOptions {
    /// The budget, in exactly one currency.
    pub fn budget(self) -> Result<PrivacyBudget, Failure> {
        match (self.epsilon, self.rho) {
            (Some(_), Some(_)) => Err(Failure::input("--epsilon and --rho must not both be given", BUDGETS)),
            (None, None) => Err(Failure::input("--epsilon must be given, or --rho", BUDGETS)),
            (Some(epsilon), None) => match self.delta {
                Some(delta) if delta.get() > 0.0 => {
                    Ok(PrivacyBudget::Approximate { epsilon: epsilon.positive()?, delta })
                }
                _ => Ok(PrivacyBudget::Pure { epsilon: epsilon.positive()? }),
            },
            (None, Some(rho)) => {
                let stated_at = self.delta.map_or_else(|| Delta::new(STATED_AT), Delta::positive)?;
                Ok(PrivacyBudget::Zcdp { rho: rho.positive()?, stated_at })
            }
        }
    }
}

/// How little noise is accepted.
#[derive(Args, Clone, Copy)]
pub struct NoiseOptions {
    /// Accept Gaussian noise below 0.3 times the clip norm, in which a single step shows whether a row took part in it
    #[arg(long)]
    pub allow_weak_noise: bool,
}

/// Which ledger pays.
#[derive(Args, Clone)]
pub struct LedgerOptions {
    /// Debit this ledger before the first noisy step; what its budget does not cover is refused (exit code 3)
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,

    /// The name of the private rows in the ledger, as `semidp ledger init` set it
    #[arg(long, value_name = "ID")]
    dataset: Option<String>,
}

impl LedgerOptions {
    /// The file, if one was given.
    pub fn path(&self) -> Option<&PathBuf> {
        self.ledger.as_ref()
    }

    /// The file and the data set, by which a ledger is known again: other files and names give another text, also where they are no text.
    pub fn place(&self) -> Option<String> {
        let path = self.ledger.as_ref()?;
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        Some(format!("{:?} of {path:?}", self.dataset.as_deref().unwrap_or_default()))
    }

    /// Opens and verifies the ledger, if one was given, for a run that reads this file of private rows. Warns if earlier
    /// runs paid for that file, or for that data set, under another name.
    pub fn open_for(
        &self,
        private: Option<&PathBuf>,
        output: &Output,
    ) -> Result<Option<DatasetLedger>, Failure> {
        let Some(mut ledger) = self.open()? else { return Ok(None) };
        // Tables in memory are called differently in every run.
        let is_named = |path: &&PathBuf| path.as_os_str() != "-" && !semidp_table::is_attached(path);
        if let Some(private) = private.filter(is_named) {
            ledger = ledger.reads(private);
            ledger.warnings()?.iter().for_each(|warning| output.warn(warning));
        }
        Ok(Some(ledger))
    }

    /// Opens and verifies the ledger, if one was given.
    pub fn open(&self) -> Result<Option<DatasetLedger>, Failure> {
        let both = "runs are recorded with --ledger FILE and --dataset ID together; `semidp ledger init` sets a budget";
        match (&self.ledger, &self.dataset) {
            (Some(path), Some(dataset)) => Ok(Some(LedgerFile::open(path)?.for_dataset(dataset)?)),
            (Some(_), None) => Err(Failure::input("--dataset must be given with --ledger", both)),
            (None, Some(_)) => Err(Failure::input("--ledger must be given with --dataset", both)),
            (None, None) => Ok(None),
        }
    }
}

/// How the noise is added, and to whom.
#[derive(Args, Clone, Copy)]
pub struct MechanismOptions {
    /// Chance that a private row takes part in a step; expected batch over number of private rows
    #[arg(long, value_name = "Q", value_parser = number::parse::<SampleRate>, allow_hyphen_values = true)]
    pub sample_rate: Option<SampleRate>,

    /// How each step picks its rows [default: poisson with a --sample-rate below 1, otherwise none]
    #[arg(long, value_enum)]
    pub sampling: Option<Sampling>,

    /// The law of the noise [default: gaussian]; laplace and k-norm give pure epsilon
    #[arg(long, value_enum)]
    pub mechanism: Option<Law>,

    /// Number of coordinates that get laplace or k-norm noise [default: 1]
    #[arg(long, value_name = "D", value_parser = number::parse_dimension, allow_hyphen_values = true)]
    pub dimension: Option<u64>,
}

impl MechanismOptions {
    /// As the library has it.
    pub fn mechanism(&self, promise: PromiseOptions) -> Mechanism {
        Mechanism {
            law: self.mechanism.unwrap_or_default(),
            sampling: self.sampling,
            sample_rate: self.sample_rate.map(SampleRate::get),
            dimension: self.dimension,
            adjacency: promise.adjacency(),
            trust: promise.trust(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn ledgers_that_differ_in_one_byte_have_different_places() {
        let place = |dataset: &str, path: &[u8]| {
            let ledger = Some(PathBuf::from(OsStr::from_bytes(path)));
            LedgerOptions { ledger, dataset: Some(dataset.into()) }.place()
        };
        let places = [
            ("d", &b"/no/l\xfe"[..]),
            ("d", b"/no/l\xff"),
            ("d", "/no/l\u{fffd}".as_bytes()),
            ("d", b"/no/l\\xFF"),
            ("d of /no/l", b"/x"),
            ("d", b"/no/l of /x"),
            ("d\" of \"/no", b"/x"),
        ];
        let all: std::collections::HashSet<_> =
            places.iter().map(|(dataset, path)| place(dataset, path)).collect();
        assert_eq!(all.len(), places.len(), "{all:?}");
    }
}
