//! The algorithms: one file each, and one line in [`ALGORITHMS`].

use super::{DpSgd, Keeping, Model, PublicRows, Recipe, SemiDpSgd, ThrowAway, Trained};
use crate::{Error, Result};
use semidp_accounting::PrivacyBudget;
use semidp_core::{BlockSource, Budget, Ledger, NoLimit, Private, Randomness, Session};

/// Rows, still on their sides of the wall.
pub struct TrainingData {
    /// The private ones, the label in the last column; there may be none.
    pub private: Private<Box<dyn BlockSource>>,
    /// The public ones; there may be none.
    pub public: Option<PublicRows>,
}

/// How a run is carried out. None of it makes a difference to what is promised, but for a seed.
pub struct Conduct<'c> {
    /// Where noise comes from.
    pub randomness: Randomness,
    /// At most so many threads; all there are by default.
    pub threads: Option<usize>,
    /// What else must grant the cost, besides the budget of the run itself.
    pub ledger: Option<Box<dyn Ledger>>,
    /// Keeps the run as it goes. Its key replaces `randomness`.
    pub keeping: Option<&'c Keeping>,
}

impl Conduct<'_> {
    /// With noise from here, and nothing else out of the ordinary.
    pub fn new(randomness: Randomness) -> Self {
        Self { randomness, threads: None, ledger: None, keeping: None }
    }

    /// A session that grants no more than the budget, however the noise was calibrated.
    pub(super) fn session<S: BlockSource>(
        &mut self,
        recipe: &Recipe<'_>,
        rows: Private<S>,
    ) -> Result<Session<S>> {
        let mut session = Session::new(rows, recipe.adjacency)?.with_randomness(self.randomness);
        let ledger = self.ledger.take().unwrap_or_else(|| Box::new(NoLimit));
        session = match recipe.budget {
            // The durable one comes last: what it grants is spent.
            PrivacyBudget::Approximate { epsilon, delta } => {
                session.with_ledger((Budget::new(epsilon, delta), ledger))
            }
            _ => session.with_ledger(ledger),
        };
        if let Some(keeping) = self.keeping {
            session = session.with_key_file(keeping.key());
        }
        Ok(match self.threads {
            Some(threads) => session.with_threads(threads),
            None => session,
        })
    }
}

/// Where a run stands. The model is released: it may be shown.
pub struct Progress<'a> {
    /// Steps done,
    pub step: u64,
    /// of so many.
    pub steps: u64,
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
        conduct: Conduct<'_>,
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
