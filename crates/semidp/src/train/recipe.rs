//! Hyper-parameters without tuning: each from the user, from public rows, from counts, or from theory. None from
//! private rows.
//!
//! | what | where from, unless it is given |
//! |---|---|
//! | ridge of the warm start | cross-validation on public rows |
//! | start | the minimiser of the public loss with that ridge |
//! | clip norm C | a quantile of the lengths of public gradients at the start |
//! | batch K, steps T | the number of private rows: one in fifty, a thousand times. The noise averaged over a run hardly depends on either |
//! | noise | calibration for the budget |
//! | step size η | public curvature: an iterate forgets within a tenth of the run, and no step overshoots |
//! | weight α | the horizon formula, direction by direction if there are rows enough to tell directions apart |
//! | output | the mean of the last half of the iterates, in which noise averages out |

use super::directions::can_tell_directions;
use super::learned::{self, Stepping};
use super::{
    Alpha, Average, Batches, Conduct, Fact, Model, Progress, PublicGradient, PublicRows, PublicUse, Schedule,
    Sgd, StepSize, Trained, best_ridge, minimise, noise_for,
};
use crate::domain::Domain;
use crate::loss::Loss;
use crate::strength::{budget_notes, refuse_weak_noise};
use crate::{Error, Result};
use semidp_accounting::local::LocalMechanism;
use semidp_accounting::{PrivacyBudget, Provenance};
use semidp_core::{Adjacency, BlockSource, SampleRate, Sampling, Session, Steps};
use serde_json::{Value, json};

const PUBLIC_BATCH: usize = 200;
/// The ridge where public rows are too few to choose one.
const FEW_ROWS_RIDGE: f64 = 1.0;

/// Where training starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmStart {
    /// At zero.
    Cold,
    /// At the minimiser of the public loss; the one of least norm if there are several.
    Minimum,
    /// At the minimiser with the ridge that cross-validation on public rows chooses.
    Ridge,
}

impl WarmStart {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "none",
            Self::Minimum => "minimum",
            Self::Ridge => "ridge",
        }
    }
}

/// What the user fixed.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// C.
    pub clip_norm: Option<f64>,
    /// How batches are drawn.
    pub batches: Option<Batches>,
    /// q.
    pub sample_rate: Option<SampleRate>,
    /// K.
    pub expected_batch: Option<f64>,
    /// T.
    pub steps: Option<Steps>,
    /// K_pub.
    pub public_batch: Option<usize>,
    /// η.
    pub learning_rate: Option<f64>,
    /// α.
    pub alpha: Option<Alpha>,
    /// What is done to public gradients.
    pub public_gradient: Option<PublicGradient>,
    /// What becomes the model.
    pub average: Option<Average>,
    /// Where training starts.
    pub warm_start: Option<WarmStart>,
    /// λ.
    pub l2: Option<f64>,
    /// What is added to the public Hessian of `pda-md`, times the dimension.
    pub hessian_regularisation: Option<f64>,
    /// What private people report with, in the local model.
    pub randomizer: Option<&'static LocalMechanism>,
    /// How long their steps are.
    pub schedule: Option<Schedule>,
    /// Whether noise below [`crate::strength::WEAKEST_NOISE`] is drawn if the budget leads to it.
    pub allow_weak_noise: bool,
}

/// What training is for, and what is fixed about it.
pub struct Recipe<'a> {
    /// What is minimised.
    pub loss: &'a dyn Loss,
    /// Where models live.
    pub domain: &'a dyn Domain,
    /// Whether each score has an intercept.
    pub has_intercept: bool,
    /// What may be spent.
    pub budget: PrivacyBudget,
    /// Which promise is meant.
    pub adjacency: Adjacency,
    /// Everything that is not to be chosen.
    pub given: Given,
}

/// A model of public rows alone.
pub struct PublicFit {
    /// The model.
    pub model: Model,
    /// The ridge it was found with.
    pub ridge: f64,
    /// Where that came from.
    pub ridge_source: &'static str,
}

/// A run with all its hyper-parameters, and where they came from.
pub struct Planned<'a> {
    /// The run.
    pub sgd: Sgd<'a>,
    /// Where each came from.
    pub provenance: Vec<Provenance>,
    /// What public rows say alone, if there are any.
    pub fit: Option<PublicFit>,
    /// Where the run starts.
    pub warm_start: WarmStart,
    /// What public rows are used for.
    pub public_use: PublicUse,
}

impl Planned<'_> {
    /// Says of a hyper-parameter what it is and where it came from, whatever was said of it before.
    pub(super) fn say(&mut self, name: &str, value: Value, source: &str) {
        self.provenance.retain(|known| known.name != name);
        self.provenance.push(entry(name, value, source));
    }

    /// Takes back what was said.
    pub(super) fn unsay(&mut self, name: &str) {
        self.provenance.retain(|known| known.name != name);
    }

    /// Runs it, and writes into the certificate what it was.
    pub(super) fn run<S: BlockSource>(
        self,
        algorithm: &str,
        session: &Session<S>,
        public: Option<&PublicRows>,
        recipe: &Recipe<'_>,
        conduct: &Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        // Before anything is debited.
        refuse_weak_noise(self.sgd.noise_multiplier, recipe.given.allow_weak_noise)?;
        let notes = budget_notes(recipe.budget, Some(self.sgd.private_rows));
        if let Some(warn) = conduct.warn {
            notes.iter().for_each(|note| warn(note));
        }
        let (steps, sampling) = (self.sgd.steps.get(), self.sgd.sampling);
        let is_streamed = session.is_streamed() == Some(true);
        let mut model = self.sgd.start.clone();
        let (delta, keeping) = (recipe.budget.delta(), conduct.keeping);
        if let (Some(keeping), Some(rows)) = (keeping, public) {
            // Whatever they were used for, iterates depend on them.
            keeping.also(Fact::new("content of all public rows", rows.digest()));
        }
        let public = public.filter(|_| self.public_use == PublicUse::Mixed);
        on_step(Progress { step: 0, steps, sampling, is_streamed, model: &model });
        let mut trained = self.sgd.train_kept(session, public, delta, keeping, &mut |step, w| {
            model.weights.copy_from_slice(w);
            on_step(Progress { step, steps, sampling, is_streamed, model: &model });
        })?;
        let certificate = &mut trained.certificate;
        certificate.mechanism = format!("train: {algorithm}, {}", certificate.mechanism);
        certificate.hyperparameters = self.provenance;
        certificate.notes.extend(notes);
        Ok(trained)
    }
}

/// A hyper-parameter and where it came from.
pub(super) fn entry(name: &str, value: Value, source: &str) -> Provenance {
    Provenance { name: name.into(), value, source: source.into() }
}

pub(super) fn source_of<T>(given: Option<T>, otherwise: &'static str) -> &'static str {
    if given.is_some() { "user" } else { otherwise }
}

impl<'a> Recipe<'a> {
    /// The best model for public rows alone, as far as they can tell. A given λ is the ridge.
    pub fn public_fit(&self, public: &PublicRows) -> PublicFit {
        let shape = self.zero(public.features());
        let (ridge, ridge_source) = match (self.given.l2, self.given.warm_start) {
            (Some(l2), _) => (l2, "user"),
            (None, Some(WarmStart::Minimum)) => (0.0, "user"),
            (None, _) => match best_ridge(self.loss, public, &shape) {
                Some(ridge) => (ridge, "public data"),
                None => (FEW_ROWS_RIDGE, "default"),
            },
        };
        let mut weights = minimise(self.loss, public, &shape, ridge);
        self.domain.project(&mut weights);
        PublicFit { model: shape.with_weights(weights), ridge, ridge_source }
    }

    /// The model of so many columns whose weights are all zero.
    pub(super) fn zero(&self, features: usize) -> Model {
        Model::zero(features, self.loss.outputs(), self.has_intercept)
    }

    /// Plans a run on the rows of a session, of which it knows the columns, their number where that is public, and
    /// whether they are streamed. What public rows there are teach clip norm and step size, whatever else they are used for.
    pub fn plan<S: BlockSource>(
        &self,
        public: Option<&PublicRows>,
        session: &Session<S>,
        public_use: PublicUse,
    ) -> Result<Planned<'a>> {
        let given = &self.given;
        let public = public.filter(|rows| !rows.is_empty());
        let (features, rows) = (session.width() - 1, session.units().map(|rows| rows as u64));
        let shape = self.shape(rows, session.is_streamed() == Some(true))?;
        let noise_multiplier = noise_for(
            self.budget,
            self.adjacency,
            shape.sampling,
            shape.steps,
            rows.unwrap_or(shape.rows.ceil() as u64),
        )?;
        let fit = public.map(|rows| self.public_fit(rows));
        let needs = |name, value: Option<f64>| {
            value.ok_or_else(|| {
                let both =
                    "given without public rows, which clip-norm and learning-rate would be learned from";
                Error::invalid(name, "nothing", both)
            })
        };
        let semi_public = public.filter(|_| public_use == PublicUse::Mixed);
        let warm_start = match (public, public_use) {
            (None, _) => WarmStart::Cold,
            // Only if it is asked for: DP-SGD knows nothing of public rows.
            (_, PublicUse::Joined) => given.warm_start.unwrap_or(WarmStart::Cold),
            _ => given.warm_start.unwrap_or(WarmStart::Ridge),
        };
        let l2 = given.l2.unwrap_or(0.0);
        let (start, ridge) = match &fit {
            Some(fit) if warm_start != WarmStart::Cold => (fit.model.clone(), fit.ridge),
            _ => {
                let mut cold = self.zero(features);
                self.domain.project(&mut cold.weights);
                (cold, 0.0)
            }
        };
        let teachers = public.zip(fit.as_ref());
        let clip_norm = match (given.clip_norm, teachers) {
            (None, Some((rows, fit))) => learned::clip_norm(self.loss, rows, &fit.model)?,
            (given, _) => needs("clip-norm", given)?,
        };
        let learned = teachers.filter(|_| given.learning_rate.is_none()).map(|(rows, fit)| {
            let steps = shape.steps.get() as f64;
            let is_cold = warm_start == WarmStart::Cold;
            learned::step_size(
                self.loss,
                rows,
                &fit.model,
                &Stepping { clip_norm, steps, l2, ridge, is_cold, geometry: None },
            )
        });
        // A learning rate of gradients over the clip norm is C times one of gradients.
        let unit = if public_use == PublicUse::Joined { clip_norm } else { 1.0 };
        let learning_rate = needs("learning-rate", given.learning_rate.or(learned.map(|rate| rate * unit)))?;
        let alpha = given.alpha.unwrap_or(match (shape.sampling, semi_public) {
            // Fresh rows in every step.
            (Sampling::OnePass { .. } | Sampling::InOrder { .. }, _) => Alpha::PerStep,
            (_, Some(rows)) if !can_tell_directions(rows.len(), start.stride()) => Alpha::Horizon,
            _ => Alpha::ByDirection,
        });
        let average = given.average.unwrap_or(match shape.steps {
            // The tail of one step is its start, which has seen no private row.
            Steps::ONE => Average::Last,
            _ => Average::Tail(0.5),
        });
        let sgd = Sgd {
            loss: self.loss,
            start,
            steps: shape.steps,
            sampling: shape.sampling,
            batch: shape.batch,
            private_rows: shape.rows,
            clip_norm,
            noise_multiplier,
            public_batch: semi_public
                .map_or(1, |rows| given.public_batch.unwrap_or(PUBLIC_BATCH).min(rows.len())),
            public_gradient: given.public_gradient.unwrap_or(PublicGradient::Clip),
            alpha,
            update: Box::new(StepSize::Constant(learning_rate / unit)),
            average,
            domain: self.domain,
            l2,
            // A given λ already holds back both parts.
            public_l2: if given.l2.is_some() { 0.0 } else { ridge },
            public_seed: 1,
        };
        let mut provenance = self.provenance(&sgd, learning_rate, semi_public.is_some(), warm_start);
        if let (WarmStart::Ridge, None, Some(fit)) = (warm_start, given.l2, &fit) {
            provenance.push(entry("ridge", json!(fit.ridge), fit.ridge_source));
        }
        Ok(Planned { sgd, provenance, fit, warm_start, public_use })
    }

    /// What was given is the user's only where it is what is used.
    fn provenance(
        &self,
        sgd: &Sgd<'_>,
        learning_rate: f64,
        semi: bool,
        warm_start: WarmStart,
    ) -> Vec<Provenance> {
        let given = &self.given;
        let learned = "public data";
        let (rate, blocks) = match sgd.sampling {
            Sampling::Poisson { rate } => (Some(rate.get()), None),
            Sampling::OnePass { blocks } | Sampling::InOrder { blocks } => (None, Some(blocks)),
            _ => (None, None),
        };
        let is_sized = given.sample_rate.is_some() || given.expected_batch.is_some();
        let is_kept = given.expected_batch.is_none_or(|batch| batch == sgd.batch);
        let by_count = if is_sized { "user" } else { "theory" };
        let batch_source = if is_sized && is_kept { "user" } else { "theory" };
        let warm_start_given = given.warm_start.filter(|given| *given == warm_start);
        let public_batch_given = given.public_batch.filter(|given| *given == sgd.public_batch);
        let mut entries = vec![
            entry("clip-norm", json!(sgd.clip_norm), source_of(given.clip_norm, learned)),
            entry("sampling", json!(sgd.sampling.name()), source_of(given.batches, "default")),
            entry("expected-batch", json!(sgd.batch), batch_source),
            entry("steps", json!(sgd.steps.get()), source_of(given.steps, "theory")),
            entry("noise-multiplier", json!(sgd.noise_multiplier.get()), "calibration"),
            entry("learning-rate", json!(learning_rate), source_of(given.learning_rate, learned)),
            entry("average", json!(sgd.average.name()), source_of(given.average, "theory")),
            entry("l2", json!(sgd.l2), source_of(given.l2, "default")),
            entry("warm-start", json!(warm_start.name()), source_of(warm_start_given, "default")),
        ];
        entries.extend(rate.map(|rate| entry("sample-rate", json!(rate), by_count)));
        let blocks_source = if is_sized { "user" } else { source_of(given.steps, "theory") };
        entries.extend(blocks.map(|blocks| entry("blocks", json!(blocks), blocks_source)));
        if semi {
            entries.push(entry(
                "public-batch",
                json!(sgd.public_batch),
                source_of(public_batch_given, "default"),
            ));
            let treatment = sgd.public_gradient.name();
            entries.push(entry(
                "public-gradient",
                json!(treatment),
                source_of(given.public_gradient, "theory"),
            ));
        }
        entries
    }
}
