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
//! | weight α | the horizon formula, direction by direction |
//! | output | the mean of the last half of the iterates, in which noise averages out |

use super::{
    Alpha, Average, Model, PublicGradient, PublicRows, Sgd, StepSize, best_ridge, curvature, minimise,
    noise_for,
};
use crate::domain::Domain;
use crate::loss::{Labels, Loss};
use crate::{Error, Result};
use semidp_accounting::{PrivacyBudget, Provenance};
use semidp_core::{Adjacency, SampleRate, Sampling, Steps};
use serde_json::{Value, json};

/// The share of private rows in a batch.
const RATE: f64 = 0.02;
/// Batches are not smaller than this on average if the rows suffice.
const LEAST_BATCH: f64 = 64.0;
const STEPS: u64 = 1000;
/// Steps in which every row takes part are dear, and fewer of them do.
const FULL_STEPS: u64 = 200;
/// The run is this many times as long as an iterate remembers.
const MEMORIES: f64 = 10.0;
const PUBLIC_BATCH: usize = 200;

/// How batches are drawn, before their size is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batches {
    /// Each row independently with a fixed chance.
    Poisson,
    /// A random subset of fixed size.
    FixedSize,
    /// Disjoint batches, one pass.
    OnePass,
    /// All rows, every time.
    Everyone,
}

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
}

/// A run with all its hyper-parameters, and where they came from.
pub struct Planned<'a> {
    /// The run.
    pub sgd: Sgd<'a>,
    /// Where each came from.
    pub provenance: Vec<Provenance>,
}

/// A hyper-parameter and where it came from.
pub(super) fn entry(name: &str, value: Value, source: &str) -> Provenance {
    Provenance { name: name.into(), value, source: source.into() }
}

fn source_of<T>(given: Option<T>, otherwise: &'static str) -> &'static str {
    if given.is_some() { "user" } else { otherwise }
}

/// The sizes of a run.
struct Shape {
    sampling: Sampling,
    batch: f64,
    steps: Steps,
    rows: f64,
}

impl<'a> Recipe<'a> {
    /// The best model for public rows alone, as far as they can tell. A given λ is the ridge.
    pub fn public_fit(&self, public: &PublicRows) -> PublicFit {
        let shape = Model::zero(public.features(), self.loss.outputs(), self.has_intercept);
        let ridge = match (self.given.l2, self.given.warm_start) {
            (Some(l2), _) => l2,
            (None, Some(WarmStart::Minimum)) => 0.0,
            (None, _) => best_ridge(self.loss, public, &shape).unwrap_or(1.0),
        };
        let mut weights = minimise(self.loss, public, &shape, ridge);
        self.domain.project(&mut weights);
        PublicFit { model: shape.with_weights(weights), ridge }
    }

    /// Plans a run on `rows` private rows, of `features` columns; `None` where their number is secret. What public
    /// rows there are teach clip norm and step size; if the run is not `semi`, that is all they do.
    pub fn plan(
        &self,
        public: Option<&PublicRows>,
        features: usize,
        rows: Option<u64>,
        semi: bool,
    ) -> Result<Planned<'a>> {
        let given = &self.given;
        let public = public.filter(|rows| !rows.is_empty());
        let fit = public.map(|rows| self.public_fit(rows));
        let shape = self.shape(rows)?;
        let noise_multiplier = noise_for(
            self.budget,
            self.adjacency,
            shape.sampling,
            shape.steps,
            rows.unwrap_or(shape.rows.ceil() as u64),
        )?;
        let needs = |name, value: Option<f64>| {
            value.ok_or_else(|| {
                Error::invalid(name, "nothing", "given without public rows, which it would be learned from")
            })
        };
        let teachers = public.zip(fit.as_ref());
        let clip_norm =
            needs("clip-norm", given.clip_norm.or(teachers.map(|(rows, fit)| self.clip_norm(rows, fit))))?;
        let semi_public = public.filter(|_| semi);
        let warm_start = match semi_public {
            Some(_) => given.warm_start.unwrap_or(WarmStart::Ridge),
            None => WarmStart::Cold,
        };
        let learned = teachers.map(|(rows, fit)| {
            self.step_size(rows, fit, clip_norm, shape.steps, warm_start == WarmStart::Cold)
        });
        let learning_rate = needs("learning-rate", given.learning_rate.or(learned))?;
        let cold = Model::zero(features, self.loss.outputs(), self.has_intercept);
        let (start, ridge) = match fit {
            Some(fit) if warm_start != WarmStart::Cold => (fit.model, fit.ridge),
            _ => (cold, 0.0),
        };
        let l2 = given.l2.unwrap_or(0.0);
        let alpha = given.alpha.unwrap_or(match given.batches {
            // Fresh rows in every step.
            Some(Batches::OnePass) => Alpha::PerStep,
            _ => Alpha::ByDirection,
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
            step_size: StepSize::Constant(learning_rate),
            average: given.average.unwrap_or(Average::Tail(0.5)),
            domain: self.domain,
            l2,
            // A given λ already holds back both parts.
            public_l2: if given.l2.is_some() { 0.0 } else { ridge },
            public_seed: 1,
        };
        let provenance = self.provenance(&sgd, semi_public.is_some(), warm_start, ridge);
        Ok(Planned { sgd, provenance })
    }

    /// Batches and steps. Under add/remove they must be given, because the number of rows is secret.
    fn shape(&self, rows: Option<u64>) -> Result<Shape> {
        let given = &self.given;
        let batches = given.batches.unwrap_or(match self.budget {
            PrivacyBudget::Zcdp { .. } => Batches::OnePass,
            _ => Batches::Poisson,
        });
        let Some(rows) = rows else { return self.secret_shape(batches) };
        let count = rows as f64;
        let rate = given.sample_rate.map(SampleRate::get).or(given.expected_batch.map(|batch| batch / count));
        let rate = rate.unwrap_or((LEAST_BATCH / count).clamp(RATE, 1.0));
        let too_large = |value| Error::invalid("expected-batch", value, "at most the number of private rows");
        if rate > 1.0 {
            return Err(too_large(given.expected_batch.unwrap_or(rate * count)));
        }
        let batch = given.expected_batch.unwrap_or(rate * count);
        let otherwise = |default: u64| given.steps.map_or_else(|| Steps::new(default), Ok);
        Ok(match batches {
            Batches::Poisson => {
                let sampling = Sampling::Poisson { rate: SampleRate::new(rate)? };
                Shape { sampling, batch, steps: otherwise(STEPS)?, rows: count }
            }
            Batches::FixedSize => {
                let size = (rate * count).round().clamp(1.0, count);
                let sampling = Sampling::FixedSize { size: size as u64 };
                Shape { sampling, batch: size, steps: otherwise(STEPS)?, rows: count }
            }
            Batches::OnePass => {
                let chosen = given.sample_rate.is_some() || given.expected_batch.is_some();
                let most = (count / if chosen { batch } else { LEAST_BATCH / 2.0 }).floor().max(1.0) as u64;
                let steps = otherwise(if chosen { most } else { most.min(STEPS) })?;
                let blocks = if chosen { most } else { steps.get() };
                if steps.get() > blocks.min(rows.max(1)) {
                    return Err(Error::invalid("steps", steps, "at most the number of batches in one pass"));
                }
                let sampling = Sampling::OnePass { blocks };
                Shape { sampling, batch: count / blocks as f64, steps, rows: count }
            }
            Batches::Everyone => {
                let sampling = Sampling::Everyone;
                Shape { sampling, batch: count, steps: otherwise(FULL_STEPS)?, rows: count }
            }
        })
    }

    /// Nothing here may follow the number of rows: two constants of the user stand in for it.
    fn secret_shape(&self, batches: Batches) -> Result<Shape> {
        let given = &self.given;
        let missing = |name| {
            Error::invalid(
                name,
                "nothing",
                "given under add-remove, where the number of private rows is secret",
            )
        };
        let rate = given.sample_rate.ok_or_else(|| missing("sample-rate"))?;
        let batch = given.expected_batch.ok_or_else(|| missing("expected-batch"))?;
        let rows = batch / rate.get();
        let sampling = match batches {
            Batches::Poisson => Sampling::Poisson { rate },
            Batches::FixedSize => {
                return Err(Error::invalid(
                    "sampling",
                    "fixed-size",
                    "poisson, one-pass or none under add-remove, where the number of private rows is secret",
                ));
            }
            Batches::OnePass => Sampling::OnePass { blocks: (1.0 / rate.get()).round() as u64 },
            Batches::Everyone => Sampling::Everyone,
        };
        let steps = match (given.steps, sampling) {
            (Some(steps), _) => steps,
            (None, Sampling::OnePass { blocks }) => Steps::new(blocks)?,
            (None, Sampling::Everyone) => Steps::new(FULL_STEPS)?,
            (None, _) => Steps::new(STEPS)?,
        };
        Ok(Shape { sampling, batch, steps, rows })
    }

    /// One gradient in ten is clipped in classification, where they have a bound of their own; half of them in
    /// regression, where they have none.
    fn clip_norm(&self, public: &PublicRows, fit: &PublicFit) -> f64 {
        let quantile = match self.loss.labels() {
            Labels::Numbers => 0.5,
            Labels::Classes => 0.9,
        };
        let model = &fit.model;
        let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
        let mut norms: Vec<f64> = (0..public.len())
            .map(|row| {
                model.scores_into(public, row, &mut scores);
                self.loss.residuals(&scores, public.label(row), &mut residuals);
                model.gradient_norm(public, row, &residuals)
            })
            .collect();
        norms.sort_by(f64::total_cmp);
        norms[((norms.len() - 1) as f64 * quantile).round() as usize].clamp(1e-9, 1e9)
    }

    /// An iterate forgets within a tenth of the run; from a cold start it also arrives within a third of it; and no
    /// step overshoots.
    fn step_size(
        &self,
        public: &PublicRows,
        fit: &PublicFit,
        clip_norm: f64,
        steps: Steps,
        is_cold: bool,
    ) -> f64 {
        let found = curvature(self.loss, &fit.model, public, clip_norm);
        let steps = steps.get() as f64;
        let least = 1e-3 * mean_square(public);
        let by_memory = 2.0 * MEMORIES / (found.mean.max(1e-9 * least) * steps);
        let by_distance = match is_cold {
            true => {
                let speed = mean_clipped_gradient(self.loss, &fit.model, public, clip_norm);
                3.0 * norm(&fit.model.weights) / (steps * speed.max(1e-12))
            }
            false => 0.0,
        };
        by_memory.max(by_distance).min(1.0 / found.largest.max(least))
    }

    fn provenance(&self, sgd: &Sgd<'_>, semi: bool, warm_start: WarmStart, ridge: f64) -> Vec<Provenance> {
        let given = &self.given;
        let learned = "public data";
        let (rate, blocks) = match sgd.sampling {
            Sampling::Poisson { rate } => (Some(rate.get()), None),
            Sampling::OnePass { blocks } => (None, Some(blocks)),
            _ => (None, None),
        };
        let (StepSize::Constant(size) | StepSize::StronglyConvex(size)) = sgd.step_size;
        let by_count =
            if given.sample_rate.is_some() || given.expected_batch.is_some() { "user" } else { "theory" };
        let mut entries = vec![
            entry("clip-norm", json!(sgd.clip_norm), source_of(given.clip_norm, learned)),
            entry("sampling", json!(sgd.sampling.name()), source_of(given.batches, "default")),
            entry("expected-batch", json!(sgd.batch), by_count),
            entry("steps", json!(sgd.steps.get()), source_of(given.steps, "theory")),
            entry("noise-multiplier", json!(sgd.noise_multiplier.get()), "calibration"),
            entry("learning-rate", json!(size), source_of(given.learning_rate, learned)),
            entry("average", json!(sgd.average.name()), source_of(given.average, "theory")),
            entry("l2", json!(sgd.l2), source_of(given.l2, "default")),
            entry("warm-start", json!(warm_start.name()), source_of(given.warm_start, "default")),
        ];
        entries.extend(rate.map(|rate| entry("sample-rate", json!(rate), by_count)));
        entries.extend(blocks.map(|blocks| entry("blocks", json!(blocks), source_of(given.steps, "theory"))));
        if semi {
            entries.push(entry(
                "public-batch",
                json!(sgd.public_batch),
                source_of(given.public_batch, "default"),
            ));
            let treatment = sgd.public_gradient.name();
            entries.push(entry(
                "public-gradient",
                json!(treatment),
                source_of(given.public_gradient, "theory"),
            ));
        }
        if warm_start == WarmStart::Ridge && given.l2.is_none() {
            entries.push(entry("ridge", json!(ridge), learned));
        }
        entries
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The length of the mean clipped public gradient at zero, where a cold start begins.
fn mean_clipped_gradient(loss: &dyn Loss, shape: &Model, rows: &PublicRows, clip_norm: f64) -> f64 {
    let zero = Model::zero(shape.features, shape.outputs, shape.has_intercept);
    let (mut scores, mut residuals) = (vec![0.0; zero.outputs], vec![0.0; zero.outputs]);
    let mut mean = vec![0.0; zero.weights.len()];
    for row in 0..rows.len() {
        zero.scores_into(rows, row, &mut scores);
        loss.residuals(&scores, rows.label(row), &mut residuals);
        let length = zero.gradient_norm(rows, row, &residuals);
        let factor = if length <= clip_norm { 1.0 } else { clip_norm / length };
        zero.add_gradient(rows, row, &residuals, factor / rows.len() as f64, &mut mean);
    }
    norm(&mean)
}

/// The mean squared length of (x, 1).
fn mean_square(rows: &PublicRows) -> f64 {
    (0..rows.len()).map(|row| rows.squared_norm(row) + 1.0).sum::<f64>() / rows.len().max(1) as f64
}
