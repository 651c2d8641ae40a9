//! Algorithm 1 of the paper, Semi-DP-SGD: noisy SGD whose step mixes a private and a public gradient.
//!
//! $$ w \leftarrow \Pi\Big(w - \eta\Big[\alpha\,\frac{\sum_\text{batch}\mathrm{clip}_C(\nabla f) + Z}{K}
//!    + (1-\alpha)\,\frac{1}{K_\text{pub}}\sum_\text{public batch}\nabla f + \lambda w\Big]\Big) $$
//!
//! K is a constant, never the size of a sample. With α = 1 this is DP-SGD. Only the clipped and noised sum touches
//! private rows; everything else is post-processing and public data.

use super::average::Averaged;
use super::batches::PublicBatches;
use super::checkpoint::State;
use super::directions::{Directions, MOST_COORDINATES};
use super::gradient::{Gradient, clip_norm_of_step};
use super::{Alpha, Average, Keeping, Model, PublicGradient, PublicRows, Update, UpdateRule, Variances};
use crate::domain::Domain;
use crate::loss::{Door, Objective};
use crate::{Error, Result};
use semidp_core::{
    BlockSource, Certificate, Delta, Gaussian, NoiseMultiplier, Program, Sampling, Session, Steps,
};

/// A weight whose square is far inside the range of a double.
pub(super) const LARGEST_WEIGHT: f64 = 1e150;

/// A training run before it is run.
pub struct Sgd<'a> {
    /// What is minimised: a loss of scores or of rows.
    pub loss: &'a dyn Objective,
    /// Where it starts; from public data, or zero. For a loss of rows only the number of weights matters.
    pub start: Model,
    /// T.
    pub steps: Steps,
    /// How private batches are drawn.
    pub sampling: Sampling,
    /// K: private rows in a batch on average, a public constant that sums are divided by.
    pub batch: f64,
    /// n_priv, or a public guess of it where it is secret.
    pub private_rows: f64,
    /// C, unless [`Update::clip_norm`] says another.
    pub clip_norm: f64,
    /// Noise on the sum over C.
    pub noise_multiplier: NoiseMultiplier,
    /// K_pub.
    pub public_batch: usize,
    /// What is done to public gradients.
    pub public_gradient: PublicGradient,
    /// The weight of the private gradient.
    pub alpha: Alpha,
    /// How a gradient moves the iterate, such as by a [`super::StepSize`].
    pub update: Box<dyn UpdateRule + 'a>,
    /// What becomes the model.
    pub average: Average,
    /// Where models live.
    pub domain: &'a dyn Domain,
    /// λ: adds (λ/2)‖w‖² to the loss.
    pub l2: f64,
    /// The same for the public gradient alone: the ridge of a warm start, so that its public gradient vanishes there.
    pub public_l2: f64,
    /// Which public rows are drawn when; nothing private depends on it.
    pub public_seed: u64,
}

/// A trained model with its certificate.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The model.
    pub model: Model,
    /// What is promised about it.
    pub certificate: Certificate,
    /// The weight of the private gradient in the last step; its mean where directions differ or a schedule lowers it.
    pub alpha: f64,
}

impl Sgd<'_> {
    /// Runs the program: debits its whole cost, then takes the steps. `on_step` sees released iterates.
    pub fn train<S: BlockSource>(
        &self,
        session: &Session<S>,
        public: Option<&PublicRows>,
        delta: Delta,
        on_step: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<Trained> {
        self.train_kept(session, public, delta, None, on_step)
    }

    /// The same, kept as it goes, or going on from what was kept.
    pub fn train_kept<S: BlockSource>(
        &self,
        session: &Session<S>,
        public: Option<&PublicRows>,
        delta: Delta,
        keeping: Option<&Keeping>,
        on_step: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<Trained> {
        let public = public.filter(|rows| !rows.is_empty());
        self.check(session.width(), public)?;
        let door = self.loss.door();
        let mut draw = public.map(|rows| PublicBatches::new(rows, self.public_batch, self.public_seed));
        let mut averaged = Averaged::new(self.average, self.steps.get(), self.start.weights.len());
        let mut weight = self.first_weight(&mut draw)?;
        self.rehearse(session.width(), public, &weight)?;
        let mut update = self.update.begin(&self.start.weights);
        let program = Program::new(Gaussian::new(self.noise_multiplier), self.sampling, self.steps);
        let program = program.with_dimension(self.start.weights.len());
        let prepared = session.prepare(program, delta)?;
        let facts = keeping.map_or_else(Vec::new, |keeping| keeping.facts(self.facts(public)));
        let state = |update: &dyn Update, averaged: &Averaged, weight: &Weight| State {
            update: update.state().into_iter().map(<[f64]>::to_vec).collect(),
            average: averaged.state(),
            alpha: State::single(weight.mean()),
        };
        let (run, mut tickets, mut last) = match keeping.map(|keeping| (keeping, keeping.saved())) {
            None => {
                let (run, tickets) = prepared.begin()?;
                (run, tickets, None)
            }
            Some((keeping, None)) => {
                keeping.first(&prepared, &facts, state(&*update, &averaged, &weight))?;
                let (run, tickets) = keeping.begin_run(prepared)?;
                (run, tickets, None)
            }
            Some((keeping, Some(saved))) => {
                saved.check(&facts)?;
                keeping.check_stop(saved, self.steps.get())?;
                let (run, tickets, released) = prepared.resume(&saved.kept())?;
                keeping.begun();
                let kept = saved.state(&state(&*update, &averaged, &weight))?;
                update.restore(&kept.update);
                averaged.restore(&kept.average);
                if self.alpha == Alpha::PerStep {
                    weight = Weight::Same(kept.alpha[0][0]);
                }
                if let Some(draw) = &mut draw {
                    (0..saved.done()).for_each(|_| drop(draw.next_batch()));
                }
                (run, tickets, Some(released))
            }
        };
        let mut model = self.start.clone();
        for ticket in tickets.by_ref() {
            let step = ticket.step() + 1;
            averaged.add(step, update.iterate());
            update.query_into(step, &mut model.weights);
            let clip_norm = clip_norm_of_step(update.clip_norm(), self.clip_norm);
            let at = Gradient { door, model: &model, clip_norm };
            if let Some(alpha) = self.alpha.scheduled(step, self.steps.get()) {
                weight = Weight::Same(alpha);
            }
            let noised = at.private_sum(&run, session.width(), ticket)?;
            let mut gradient: Vec<f64> = noised.iter().map(|sum| sum / self.batch).collect();
            if let Some(draw) = &mut draw {
                let batch = draw.next_batch();
                let mut public = if self.alpha == Alpha::PerStep {
                    let found = at.public_batch(draw.rows, &batch, self.public_gradient);
                    weight = Weight::Same(self.alpha.weight(&self.variances(draw, found.variance))?);
                    found.mean
                } else {
                    at.public_mean(draw.rows, &batch, self.public_gradient)?
                };
                public.iter_mut().zip(&model.weights).for_each(|(g, w)| *g += self.public_l2 * w);
                weight.mix(&mut gradient, &public);
            }
            gradient.iter_mut().zip(&model.weights).for_each(|(g, w)| *g += self.l2 * w);
            update.advance(step, &gradient, self.domain);
            on_step(step, update.iterate());
            last = Some(noised.map(drop));
            if let Some(keeping) = keeping {
                let state = || state(&*update, &averaged, &weight);
                keeping.after(&run, step, self.steps.get(), &facts, state)?;
            }
        }
        let last = last.ok_or_else(|| Error::invalid("steps", 0, "a whole number >= 1"))?;
        let release = run.finish(tickets, last.map(|()| averaged.weights(update.iterate().to_vec())))?;
        Ok(Trained {
            model: self.start.with_weights(release.value),
            certificate: release.certificate,
            alpha: match public {
                Some(_) => self.alpha.mean_scheduled(self.steps.get()).unwrap_or(weight.mean()),
                None => 1.0,
            },
        })
    }

    /// Refuses nonsense before anything is spent.
    fn check(&self, width: usize, public: Option<&PublicRows>) -> Result<()> {
        if !(self.batch > 0.0 && self.batch.is_finite()) {
            return Err(Error::invalid("expected-batch", self.batch, "a number > 0"));
        }
        self.update.check()?;
        for l2 in [self.l2, self.public_l2] {
            if !(l2 >= 0.0 && l2.is_finite()) {
                return Err(Error::invalid("l2", l2, "a finite number >= 0"));
            }
        }
        if let Alpha::Cosine { horizon: Some(0) } = self.alpha {
            return Err(Error::invalid("alpha", "cosine:0", "cosine:K with a whole number K >= 1"));
        }
        if let Average::Tail(share) = self.average
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(Error::invalid("average", share, "a tail of more than 0 and at most 1"));
        }
        let fits = |width: usize| match self.loss.door() {
            Door::Scores(_) => width == self.start.features + 1,
            Door::Rows(loss) => loss.dimension(width) == self.start.weights.len(),
        };
        if !fits(width) {
            return Err(Error::invalid(
                "start",
                format!("one for other rows than of {width} columns"),
                "a model of the rows",
            ));
        }
        if let Some(rows) = public
            && (self.public_batch == 0 || rows.width() != width)
        {
            return Err(Error::invalid(
                "public-batch",
                self.public_batch,
                "at least 1, of rows with the model's columns",
            ));
        }
        Ok(())
    }

    /// Refuses a run that public facts alone decide to fail, before anything is spent: one whose first question the kernel refuses, or
    /// whose iterates overflow although every private gradient is zero and the noise as large as its standard deviation.
    fn rehearse(&self, width: usize, public: Option<&PublicRows>, weight: &Weight) -> Result<()> {
        let mut update = self.update.begin(&self.start.weights);
        let mut model = self.start.clone();
        update.query_into(1, &mut model.weights);
        let door = self.loss.door();
        let first = update.clip_norm().unwrap_or(self.clip_norm);
        Gradient { door, model: &model, clip_norm: first }.check(width)?;
        let noise_std = self.noise_std();
        if !(noise_std > 0.0 && noise_std.is_finite()) {
            return Err(Error::invalid(
                "expected-batch",
                self.batch,
                "such that noise over it is a finite number > 0",
            ));
        }
        if !weight.mean().is_finite() {
            return Err(Error::invalid(
                "alpha",
                weight.mean(),
                "a number from 0 to 1: public gradients are too large",
            ));
        }
        // Only raw gradients and ridges grow from step to step: all other gradients are bounded.
        let raw = public.filter(|_| self.public_gradient == PublicGradient::Raw);
        let ridge = public.map_or(0.0, |_| self.public_l2);
        let grows = raw.is_some() || self.l2 > 0.0 || ridge > 0.0;
        let mut draw = raw.map(|rows| PublicBatches::new(rows, self.public_batch, self.public_seed));
        for step in 1..=self.update.rehearsed_steps(self.steps.get(), grows) {
            update.query_into(step, &mut model.weights);
            let mut gradient = vec![noise_std; model.weights.len()];
            if public.is_some() {
                let mut public: Vec<f64> = model.weights.iter().map(|w| ridge * w).collect();
                if let Some(draw) = &mut draw {
                    let at = Gradient { door, model: &model, clip_norm: self.clip_norm };
                    let batch = draw.next_batch();
                    let raw = at.public_mean(draw.rows, &batch, self.public_gradient)?;
                    public.iter_mut().zip(raw).for_each(|(public, raw)| *public += raw);
                }
                match self.alpha.scheduled(step, self.steps.get()) {
                    Some(alpha) => Weight::Same(alpha).mix(&mut gradient, &public),
                    None => weight.mix(&mut gradient, &public),
                }
            }
            gradient.iter_mut().zip(&model.weights).for_each(|(g, w)| *g += self.l2 * w);
            update.advance(step, &gradient, self.domain);
            if !update.iterate().iter().all(|w| w.abs() < LARGEST_WEIGHT) {
                return Err(self.overflow(raw.is_some()));
            }
        }
        Ok(())
    }

    /// Which option to change if iterates overflow.
    fn overflow(&self, is_raw: bool) -> Error {
        if self.l2 > 0.0 {
            let requirement =
                "smaller, or learning-rate smaller: iterates overflow whatever the private rows are";
            return Error::invalid("l2", format!("{:?}", self.l2), requirement);
        }
        if is_raw {
            let requirement =
                "clip or rescale, or learning-rate smaller: iterates overflow whatever the private rows are";
            return Error::invalid("public-gradient", self.public_gradient.name(), requirement);
        }
        overflow_of_first_steps()
    }

    /// What α depends on, for gradients of this variance.
    fn variances(&self, draw: &PublicBatches<'_>, row: f64) -> Variances {
        self.variances_with(draw.size(), draw.rows.len(), row)
    }

    /// The same for public batches and rows of these sizes.
    pub(super) fn variances_with(&self, public_batch: usize, public_rows: usize, row: f64) -> Variances {
        Variances {
            row,
            batch: self.batch,
            public_batch: public_batch as f64,
            private_rows: self.private_rows,
            public_rows: public_rows as f64,
            noise: self.start.weights.len() as f64 * self.noise_std().powi(2),
            averaged_steps: match self.update.averaged_steps(self.steps.get() as f64) {
                Some(steps) => steps,
                None => self.average.averaged_steps(self.steps.get() as f64),
            },
        }
    }

    /// σ_v: of the noise in each coordinate of a step's mean private gradient.
    fn noise_std(&self) -> f64 {
        self.noise_multiplier.get() * self.clip_norm / self.batch
    }

    /// The weight at the start: 1 without public rows, else by all rows or by the first batch, which the first step
    /// then uses.
    fn first_weight(&self, draw: &mut Option<PublicBatches<'_>>) -> Result<Weight> {
        let Some(draw) = draw else { return Ok(Weight::Same(1.0)) };
        if let (Alpha::ByDirection, Door::Scores(loss)) = (self.alpha, self.loss.door())
            && self.start.stride() <= MOST_COORDINATES
        {
            // Along one direction there is one coordinate of noise.
            let variances = Variances { noise: self.noise_std().powi(2), ..self.variances(draw, f64::NAN) };
            let found = Directions::learn(loss, &self.start, draw.rows, self.clip_norm, &variances)?;
            return Ok(Weight::ByDirection(found));
        }
        let batch = draw.upcoming().to_vec();
        let at = Gradient { door: self.loss.door(), model: &self.start, clip_norm: self.clip_norm };
        let variance = at.public_batch(draw.rows, &batch, self.public_gradient).variance;
        Ok(Weight::Same(self.alpha.weight(&self.variances(draw, variance))?))
    }
}

/// The refusal of a run whose first steps overflow.
pub(super) fn overflow_of_first_steps() -> Error {
    let requirement =
        "smaller, or loss and clip-norm of usual size: iterates overflow whatever the private rows are";
    Error::invalid("learning-rate", "one that overflows", requirement)
}

/// The weight of the private gradient.
enum Weight {
    Same(f64),
    ByDirection(Directions),
}

impl Weight {
    /// Turns the private gradient into the mixture of both.
    fn mix(&self, private: &mut [f64], public: &[f64]) {
        match self {
            Self::Same(alpha) => {
                let parts = private.iter_mut().zip(public);
                parts.for_each(|(private, public)| *private = alpha * *private + (1.0 - alpha) * public);
            }
            Self::ByDirection(directions) => directions.mix(private, public),
        }
    }

    fn mean(&self) -> f64 {
        match self {
            Self::Same(alpha) => *alpha,
            Self::ByDirection(directions) => directions.mean(),
        }
    }
}
