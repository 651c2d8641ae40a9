//! The algorithms: one file each, and one line in [`ALGORITHMS`].

use super::{DpSgd, Model, PublicRows, Recipe, SemiDpSgd, ThrowAway, Trained};
use crate::{Error, Result};
use semidp_accounting::PrivacyBudget;
use semidp_core::{BlockSource, Budget, Private, Randomness, Sampling, Session};

/// Rows, still on their sides of the wall.
pub struct TrainingData {
    /// The private ones, the label in the last column; there may be none.
    pub private: Private<Box<dyn BlockSource>>,
    /// The public ones; there may be none.
    pub public: Option<PublicRows>,
}

/// How a run is carried out. None of it makes a difference to what is promised, but for a seed.
#[derive(Debug, Clone, Copy)]
pub struct Conduct {
    /// Where noise comes from.
    pub randomness: Randomness,
    /// At most so many threads; all there are by default.
    pub threads: Option<usize>,
    /// Private rows that fit into so many bytes are read into memory, others are streamed; without a number they stay
    /// as they are.
    pub memory: Option<u64>,
}

impl Conduct {
    /// A session that grants no more than the budget, however the noise was calibrated.
    pub(super) fn session(
        &self,
        recipe: &Recipe<'_>,
        rows: Private<Box<dyn BlockSource>>,
    ) -> Result<Session<Box<dyn BlockSource>>> {
        let mut session = Session::new(rows, recipe.adjacency)?.with_randomness(self.randomness);
        if let PrivacyBudget::Approximate { epsilon, delta } = recipe.budget {
            session = session.with_ledger(Budget::new(epsilon, delta));
        }
        if let Some(threads) = self.threads {
            session = session.with_threads(threads);
        }
        Ok(match self.memory {
            Some(memory) => session.arranged(memory)?,
            None => session,
        })
    }
}

/// Where a run stands. The model is released: it may be shown.
pub struct Progress<'a> {
    /// Steps done, 0 before the first,
    pub step: u64,
    /// of so many.
    pub steps: u64,
    /// How private batches are drawn.
    pub sampling: Sampling,
    /// Whether private rows did not fit into memory, where their number is public.
    pub is_streamed: bool,
    /// The iterate after them.
    pub model: &'a Model,
}

/// A way to train.
pub trait Algorithm: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// In a few words.
    fn about(&self) -> &'static str;

    /// Trains. The certificate says where each hyper-parameter came from.
    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained>;
}

/// All of them.
pub static ALGORITHMS: [&dyn Algorithm; 3] = [&SemiDpSgd, &DpSgd, &ThrowAway];

/// An algorithm by name.
pub fn algorithm_named(name: &str) -> Result<&'static dyn Algorithm> {
    ALGORITHMS.into_iter().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
        Error::invalid("algorithm", format!("`{name}`"), "auto, semi-dp-sgd, dp-sgd or throw-away")
    })
}
