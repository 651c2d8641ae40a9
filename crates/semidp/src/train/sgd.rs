//! Algorithm 1 of the paper, Semi-DP-SGD: noisy SGD whose step mixes a private and a public gradient.
//!
//! $$ w \leftarrow \Pi\Big(w - \eta\Big[\alpha\,\frac{\sum_\text{batch}\mathrm{clip}_C(\nabla f) + Z}{K}
//!    + (1-\alpha)\,\frac{1}{K_\text{pub}}\sum_\text{public batch}\nabla f + \lambda w\Big]\Big) $$
//!
//! K is a constant, never the size of a sample. With α = 1 this is DP-SGD. Only the clipped and noised sum touches
//! private rows; everything else is post-processing and public data.

use super::{Alpha, Model, PublicRows, Variances};
use crate::domain::Domain;
use crate::loss::Loss;
use crate::{Error, Result};
use semidp_core::{
    BlockSource, Certificate, ClippedGradient, Delta, Gaussian, NoiseMultiplier, Program, Public, Sampling,
    Session, Steps,
};

/// How long a step is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepSize {
    /// Always the same.
    Constant(f64),
    /// 2/(μ(t + 1)) at step t = 1, 2, ..., for losses of strong convexity μ.
    StronglyConvex(f64),
}

/// What becomes the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Average {
    /// The last iterate.
    Last,
    /// The mean of all iterates that a gradient was taken at.
    Mean,
    /// The mean of the last part of the iterates, such as a half.
    Tail(f64),
    /// Iterate t with weight t: the one for [`StepSize::StronglyConvex`].
    Weighted,
}

/// What is done to the gradient of a public row. The guarantee is the same for all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicGradient {
    /// Nothing.
    Raw,
    /// Clipped like private ones, so that both estimate the same field.
    Clip,
    /// Brought to the length of the clip norm.
    Rescale,
}

/// A training run before it is run.
pub struct Sgd<'a> {
    /// What is minimised.
    pub loss: &'a dyn Loss,
    /// Where it starts; from public data, or zero.
    pub start: Model,
    /// T.
    pub steps: Steps,
    /// How private batches are drawn.
    pub sampling: Sampling,
    /// K: private rows in a batch on average, a public constant that sums are divided by.
    pub batch: f64,
    /// n_priv, or a public guess of it where it is secret.
    pub private_rows: f64,
    /// C.
    pub clip_norm: f64,
    /// Noise on the sum over C.
    pub noise_multiplier: NoiseMultiplier,
    /// K_pub.
    pub public_batch: usize,
    /// What is done to public gradients.
    pub public_gradient: PublicGradient,
    /// The weight of the private gradient.
    pub alpha: Alpha,
    /// η.
    pub step_size: StepSize,
    /// What becomes the model.
    pub average: Average,
    /// Where models live.
    pub domain: &'a dyn Domain,
    /// λ: adds (λ/2)‖w‖² to the loss.
    pub l2: f64,
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
    /// The weight of the private gradient in the last step.
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
        let public = public.filter(|rows| !rows.is_empty());
        self.check(public)?;
        let mut w = self.start.weights.clone();
        let mut draw = public.map(|rows| PublicBatches::new(rows, self.public_batch, self.public_seed));
        let mut averaged = Averaged::new(self.average, self.steps.get(), &w);
        let mut alpha = self.first_alpha(&mut draw)?;
        let program = Program::new(Gaussian::new(self.noise_multiplier), self.sampling, self.steps);
        let program = program.with_dimension(w.len());
        let (run, mut tickets) = session.authorise(program, delta)?;
        let mut last = None;
        for ticket in tickets.by_ref() {
            let step = ticket.step() + 1;
            averaged.add(step, &w);
            let loss = self.loss;
            let query = ClippedGradient::new(
                loss,
                Public(w.clone()),
                self.start.features,
                self.start.has_intercept,
                self.clip_norm,
            )?;
            let noised = run.noise(run.sum(&query, ticket)?)?;
            let mut gradient: Vec<f64> = noised.iter().map(|sum| sum / self.batch).collect();
            if let Some(draw) = &mut draw {
                let batch = draw.next_batch();
                let mean = if self.public_gradient == PublicGradient::Clip && self.alpha != Alpha::PerStep {
                    // The kernel's own loops, which also clip and truncate alike.
                    let mut sum = query.sum_public(&Public(draw.rows), &batch)?;
                    sum.iter_mut().for_each(|x| *x /= batch.len() as f64);
                    sum
                } else {
                    let found = self.public_gradient(&self.start.with_weights(w.clone()), draw.rows, &batch);
                    if self.alpha == Alpha::PerStep {
                        alpha = self.alpha_at(draw, found.variance)?;
                    }
                    found.mean
                };
                let parts = gradient.iter_mut().zip(mean);
                parts.for_each(|(private, public)| *private = alpha * *private + (1.0 - alpha) * public);
            }
            let size = match self.step_size {
                StepSize::Constant(size) => size,
                StepSize::StronglyConvex(mu) => 2.0 / (mu * (step as f64 + 1.0)),
            };
            w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= size * (g + self.l2 * *w));
            self.domain.project(&mut w);
            on_step(step, &w);
            last = Some(noised);
        }
        let last = last.ok_or_else(|| Error::invalid("steps", 0, "a whole number >= 1"))?;
        let release = run.finish(tickets, last.map(|_| averaged.model(w)))?;
        Ok(Trained { model: self.start.with_weights(release.value), certificate: release.certificate, alpha })
    }

    fn check(&self, public: Option<&PublicRows>) -> Result<()> {
        if !(self.batch > 0.0 && self.batch.is_finite()) {
            return Err(Error::invalid("expected-batch", self.batch, "a number > 0"));
        }
        let size = match self.step_size {
            StepSize::Constant(size) => size,
            StepSize::StronglyConvex(mu) => mu,
        };
        if !(size > 0.0 && size.is_finite()) {
            return Err(Error::invalid("learning-rate", size, "a finite number > 0"));
        }
        if !(self.l2 >= 0.0 && self.l2.is_finite()) {
            return Err(Error::invalid("l2", self.l2, "a finite number >= 0"));
        }
        if let Average::Tail(share) = self.average
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(Error::invalid("average", share, "a tail of more than 0 and at most 1"));
        }
        if let Some(rows) = public
            && (self.public_batch == 0 || rows.features() != self.start.features)
        {
            return Err(Error::invalid(
                "public-batch",
                self.public_batch,
                "at least 1, of rows with the model's columns",
            ));
        }
        Ok(())
    }

    /// Steps whose gradient noise averages out in the result.
    fn averaged_steps(&self) -> f64 {
        let steps = self.steps.get() as f64;
        match self.average {
            Average::Mean => steps,
            Average::Tail(share) => share * steps,
            Average::Weighted => 0.75 * steps,
            // An iterate forgets in a fraction of the run, or it would not have converged.
            Average::Last => 0.1 * steps,
        }
    }

    fn alpha_at(&self, draw: &PublicBatches<'_>, row_variance: f64) -> Result<f64> {
        let noise_std = self.noise_multiplier.get() * self.clip_norm / self.batch;
        self.alpha.weight(&Variances {
            row: row_variance,
            batch: self.batch,
            public_batch: draw.size() as f64,
            private_rows: self.private_rows,
            public_rows: draw.rows.len() as f64,
            noise: self.start.weights.len() as f64 * noise_std * noise_std,
            averaged_steps: self.averaged_steps(),
        })
    }

    /// α at the start: 1 without public rows.
    fn first_alpha(&self, draw: &mut Option<PublicBatches<'_>>) -> Result<f64> {
        match draw {
            None => Ok(1.0),
            Some(draw) => {
                let batch = draw.next_batch();
                let found = self.public_gradient(&self.start, draw.rows, &batch);
                self.alpha_at(draw, found.variance)
            }
        }
    }

    /// The mean gradient of a public batch, and the total variance of one row's.
    fn public_gradient(&self, model: &Model, rows: &PublicRows, batch: &[usize]) -> BatchGradient {
        let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
        let mut mean = vec![0.0; model.weights.len()];
        let mut squares = 0.0;
        let size = batch.len() as f64;
        for &row in batch {
            model.scores_into(rows, row, &mut scores);
            self.loss.residuals(&scores, rows.label(row), &mut residuals);
            let norm = model.gradient_norm(rows, row, &residuals);
            let factor = match self.public_gradient {
                PublicGradient::Raw => 1.0,
                PublicGradient::Clip if norm <= self.clip_norm => 1.0,
                PublicGradient::Rescale if norm == 0.0 => 0.0,
                PublicGradient::Clip | PublicGradient::Rescale => self.clip_norm / norm,
            };
            squares += (factor * norm).powi(2);
            model.add_gradient(rows, row, &residuals, factor / size, &mut mean);
        }
        let square: f64 = mean.iter().map(|x| x * x).sum();
        // Unbiased, and not zero: a weight of exactly one would forget the public rows.
        let variance = ((squares / size - square) * size / (size - 1.0).max(1.0)).max(1e-12 * squares / size);
        BatchGradient { mean, variance: variance.max(f64::MIN_POSITIVE) }
    }
}

struct BatchGradient {
    mean: Vec<f64>,
    variance: f64,
}

/// Public rows in random order, epoch by epoch.
struct PublicBatches<'a> {
    rows: &'a PublicRows,
    order: Vec<usize>,
    next: usize,
    size: usize,
    state: u64,
}

impl<'a> PublicBatches<'a> {
    fn new(rows: &'a PublicRows, size: usize, seed: u64) -> Self {
        let size = size.min(rows.len());
        Self { rows, order: (0..rows.len()).collect(), next: rows.len(), size, state: seed }
    }

    fn size(&self) -> usize {
        self.size
    }

    fn next_batch(&mut self) -> Vec<usize> {
        if self.next + self.size > self.order.len() {
            // Fisher and Yates, by a small generator: which public row comes when is no secret.
            for i in (1..self.order.len()).rev() {
                self.state = self
                    .state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                self.order.swap(i, ((self.state >> 33) as usize) % (i + 1));
            }
            self.next = 0;
        }
        let batch = self.order[self.next..self.next + self.size].to_vec();
        self.next += self.size;
        batch
    }
}

/// Iterates as they are averaged.
struct Averaged {
    rule: Average,
    steps: u64,
    sum: Vec<f64>,
    weight: f64,
}

impl Averaged {
    fn new(rule: Average, steps: u64, w: &[f64]) -> Self {
        Self { rule, steps, sum: vec![0.0; w.len()], weight: 0.0 }
    }

    /// Takes the iterate that step `step` (from 1) starts at.
    fn add(&mut self, step: u64, w: &[f64]) {
        let weight = match self.rule {
            Average::Last => return,
            Average::Mean => 1.0,
            Average::Weighted => step as f64,
            Average::Tail(share) if step as f64 > (1.0 - share) * self.steps as f64 => 1.0,
            Average::Tail(_) => return,
        };
        self.weight += weight;
        self.sum.iter_mut().zip(w).for_each(|(sum, w)| *sum += weight * w);
    }

    fn model(self, last: Vec<f64>) -> Vec<f64> {
        if self.weight == 0.0 { last } else { self.sum.into_iter().map(|sum| sum / self.weight).collect() }
    }
}
