//! The algorithms: one file each, and one line in [`ALGORITHMS`].

use super::{
    Accelerated, Auto, DpSgd, Keeping, LdpSgd, LocalAuto, Model, NonPrivate, OptimalGain, PdaFirstOrder,
    PdaMd, PublicRows, Recipe, SemiDpSgd, SemiLdpGain, SemiLdpSgd, ThrowAway, Trained,
};
use crate::loss::Loss;
use crate::{Error, Result};
use semidp_accounting::{PrivacyBudget, Trust};
use semidp_core::{
    BlockSource, Budget, Ledger, NoLimit, Private, Randomness, Record, Recorder, Sampling, Session,
};
use std::sync::{Arc, LazyLock};

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
    /// Records a run of randomised reports, which is held again from its beginning. Its key replaces `randomness`.
    pub record: Option<Arc<dyn Record>>,
    /// Private rows that fit into so many bytes are read into memory, others are streamed; without a number they stay
    /// as they are.
    pub memory: Option<u64>,
    /// Hands every sum before noise to a replay audit: the certificate then promises nothing
    /// ([`Session::with_recorder`]).
    pub recorder: Option<Arc<Recorder>>,
    /// Hears of a dangerous budget before it is debited.
    pub warn: Option<&'c dyn Fn(&str)>,
}

impl Conduct<'_> {
    /// With noise from here, and nothing else out of the ordinary.
    pub fn new(randomness: Randomness) -> Self {
        Self {
            randomness,
            threads: None,
            memory: None,
            ledger: None,
            keeping: None,
            record: None,
            recorder: None,
            warn: None,
        }
    }

    /// A session that grants no more than the budget, however the noise was calibrated.
    pub(super) fn session(
        &mut self,
        recipe: &Recipe<'_>,
        rows: Private<Box<dyn BlockSource>>,
    ) -> Result<Session<Box<dyn BlockSource>>> {
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
        if let Some(threads) = self.threads {
            session = session.with_threads(threads);
        }
        if let Some(recorder) = &self.recorder {
            session = session.with_recorder(recorder.clone());
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

/// What an algorithm does with private rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivateUse {
    /// It reads none, and costs nothing.
    Nothing,
    /// It reads them through the kernel, and spends the budget.
    Budgeted,
    /// It opens them, and promises nothing.
    Opened,
}

/// What an algorithm does with public rows. Where it spends a budget, they also teach clip norm and step size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicUse {
    /// Their gradients are mixed with private ones.
    Mixed,
    /// They are a prior that private gradients correct.
    Prior,
    /// They say in which geometry private gradients are followed.
    Mirror,
    /// They are treated like private rows.
    Joined,
    /// They are all there is.
    Alone,
}

/// Hyper-parameters that weigh public gradients against private ones, by their names on the command line.
pub(super) const MIXING: [&str; 3] = ["public-batch", "alpha", "public-gradient"];

/// Those of a run with noise.
pub(super) const NOISY: [&str; 7] =
    ["clip-norm", "sampling", "sample-rate", "expected-batch", "steps", "learning-rate", "average"];

/// A way to train.
pub trait Algorithm: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// In a few words.
    fn about(&self) -> &'static str;

    /// What it does with private rows.
    fn private_use(&self) -> PrivateUse {
        PrivateUse::Budgeted
    }

    /// Who sees private rows where it spends a budget: a curator, or nobody but their owners.
    fn trust(&self) -> Trust {
        Trust::Central
    }

    /// What it does with public rows.
    fn public_use(&self) -> PublicUse;

    /// Hyper-parameters that it has no use for, by their names on the command line.
    fn ignores(&self) -> Vec<&'static str>;

    /// Trains. The certificate says where each hyper-parameter came from.
    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained>;
}

/// All of them; the first is the one to take.
pub static ALGORITHMS: [&dyn Algorithm; 12] = [
    &Auto,
    &OptimalGain,
    &SemiDpSgd,
    &Accelerated,
    &PdaFirstOrder,
    &PdaMd,
    &DpSgd,
    &SemiLdpGain,
    &SemiLdpSgd,
    &LdpSgd,
    &ThrowAway,
    &NonPrivate,
];

/// Their names, in words.
pub fn algorithm_names() -> &'static str {
    static NAMES: LazyLock<String> = LazyLock::new(|| {
        let names: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect();
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("{} or {last}", others.join(", "))
    });
    &NAMES
}

/// An algorithm by name.
pub fn algorithm_named(name: &str) -> Result<&'static dyn Algorithm> {
    let found = ALGORITHMS.into_iter().find(|algorithm| algorithm.name() == name);
    found.ok_or_else(|| Error::invalid("algorithm", format!("`{name}`"), algorithm_names()))
}

/// An algorithm by name for whom is trusted; `auto` is another one where nobody is.
pub fn algorithm_for(name: &str, trust: Trust) -> Result<&'static dyn Algorithm> {
    let algorithm = algorithm_named(name)?;
    if algorithm.private_use() != PrivateUse::Budgeted || algorithm.trust() == trust {
        return Ok(algorithm);
    }
    match (name, trust) {
        ("auto", Trust::Local) => Ok(&LocalAuto),
        (_, Trust::Local) => {
            let known =
                "auto, semi-ldp-gain, semi-ldp-sgd, ldp-sgd, throw-away or non-private with --trust local";
            Err(Error::invalid("algorithm", format!("`{name}`"), known))
        }
        (_, Trust::Central) => {
            let requirement = "local for an algorithm of randomised reports, or another algorithm chosen";
            Err(Error::invalid("trust", format!("central with {name}"), requirement))
        }
    }
}

/// Refuses losses with kinks where an algorithm needs curvature.
pub(super) fn smooth_only(algorithm: &'static str, loss: &dyn Loss) -> Result<()> {
    if loss.smoothness().is_some() {
        return Ok(());
    }
    let requirement = "semi-dp-sgd, pda-first-order or dp-sgd for a loss with kinks, which has no curvature";
    Err(Error::invalid("algorithm", format!("{algorithm} with {} loss", loss.name()), requirement))
}
