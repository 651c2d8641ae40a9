//! Gradients of an objective at a model: private rows through the kernel, public rows in the open.

use super::{Model, PublicRows};
use crate::loss::{AtModel, Door, Loss, RowLoss};
use crate::{Error, Result};
use semidp_core::{
    BlockSource, CLIP_NORMS, ClippedGradient, ClippedRowGradient, Gaussian, Noised, Public, RowView, Run,
    Ticket,
};

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

impl PublicGradient {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Clip => "clip",
            Self::Rescale => "rescale",
        }
    }
}

/// The clip norm of a step, of which an update rule may wish another than the first: in the kernel's range, as a step that was paid for
/// must not fail.
pub(super) fn clip_norm_of_step(wished: Option<f64>, first: f64) -> f64 {
    let wished = wished.filter(|norm| !norm.is_nan()).unwrap_or(first);
    wished.clamp(*CLIP_NORMS.start(), *CLIP_NORMS.end())
}

/// The clipped gradient at a model.
pub(super) struct Gradient<'a> {
    pub(super) door: Door<'a>,
    pub(super) model: &'a Model,
    pub(super) clip_norm: f64,
}

/// What a public batch says.
pub(super) struct BatchGradient {
    /// The mean gradient.
    pub(super) mean: Vec<f64>,
    /// The total variance of one row's.
    pub(super) variance: f64,
}

impl Gradient<'_> {
    /// Refuses a model or a clip norm that the kernel would refuse, before anything is spent.
    pub(super) fn check(&self, width: usize) -> Result<()> {
        if self.model.weights.iter().any(|weight| !weight.is_finite()) {
            let requirement =
                "finite: give the numbers of the public rows in larger units, so that they are smaller";
            return Err(Error::invalid("start", "a weight that is not finite", requirement));
        }
        match self.door {
            Door::Scores(loss) => self.of_scores(loss).map(drop),
            Door::Rows(loss) => {
                let at = AtModel { loss, weights: &self.model.weights };
                Ok(ClippedRowGradient::new(&at, width, self.clip_norm).map(drop)?)
            }
        }
    }

    /// The noised sum over the private rows of a step.
    pub(super) fn private_sum<S: BlockSource>(
        &self,
        run: &Run<'_, S, Gaussian>,
        width: usize,
        ticket: Ticket,
    ) -> Result<Noised<Vec<f64>>> {
        let partial = match self.door {
            Door::Scores(loss) => run.sum(&self.of_scores(loss)?, ticket)?,
            Door::Rows(loss) => {
                let at = AtModel { loss, weights: &self.model.weights };
                run.sum(&ClippedRowGradient::new(&at, width, self.clip_norm)?, ticket)?
            }
        };
        Ok(run.noise(partial)?)
    }

    /// The question to private rows.
    pub(super) fn of_scores<'l>(&self, loss: &'l dyn Loss) -> Result<ClippedGradient<'l>> {
        let (weights, model) = (Public(self.model.weights.clone()), self.model);
        Ok(ClippedGradient::new(loss, weights, model.features, model.has_intercept, self.clip_norm)?)
    }

    /// The mean over a public batch.
    pub(super) fn public_mean(
        &self,
        rows: &PublicRows,
        batch: &[usize],
        treatment: PublicGradient,
    ) -> Result<Vec<f64>> {
        if let (Door::Scores(loss), PublicGradient::Clip) = (self.door, treatment) {
            // The kernel's own loops, which also clip and truncate alike.
            let mut sum = self.of_scores(loss)?.sum_public(&Public(rows), batch)?;
            sum.iter_mut().for_each(|x| *x /= batch.len() as f64);
            return Ok(sum);
        }
        Ok(self.public_batch(rows, batch, treatment).mean)
    }

    /// The mean over a public batch, and the variance of its rows.
    pub(super) fn public_batch(
        &self,
        rows: &PublicRows,
        batch: &[usize],
        treatment: PublicGradient,
    ) -> BatchGradient {
        let mut of_row = OfRow::new(self.door, self.model, rows);
        let mut mean = vec![0.0; self.model.weights.len()];
        let mut squares = 0.0;
        let size = batch.len() as f64;
        for &row in batch {
            let norm = of_row.norm(row);
            let factor = match treatment {
                PublicGradient::Raw => 1.0,
                PublicGradient::Clip if norm <= self.clip_norm => 1.0,
                PublicGradient::Rescale if norm == 0.0 => 0.0,
                PublicGradient::Clip | PublicGradient::Rescale => self.clip_norm / norm,
            };
            squares += (factor * norm).powi(2);
            of_row.add(row, factor / size, &mut mean);
        }
        let square: f64 = mean.iter().map(|x| x * x).sum();
        // Unbiased, and not zero: the private rows would have no weight. One row does not vary, which says nothing; its
        // square is a guess.
        let variance = match batch.len() {
            1 => squares,
            _ => ((squares / size - square) * size / (size - 1.0)).max(1e-12 * squares / size),
        };
        BatchGradient { mean, variance: variance.max(f64::MIN_POSITIVE) }
    }
}

/// The gradient of one public row after the other.
enum OfRow<'a> {
    /// As residuals, which are short.
    Scores {
        loss: &'a dyn Loss,
        model: &'a Model,
        rows: &'a PublicRows,
        scores: Vec<f64>,
        residuals: Vec<f64>,
    },
    /// In full.
    Rows {
        loss: &'a dyn RowLoss,
        model: &'a Model,
        rows: &'a PublicRows,
        values: Vec<f64>,
        gradient: Vec<f64>,
    },
}

impl<'a> OfRow<'a> {
    fn new(door: Door<'a>, model: &'a Model, rows: &'a PublicRows) -> Self {
        match door {
            Door::Scores(loss) => {
                let (scores, residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
                Self::Scores { loss, model, rows, scores, residuals }
            }
            Door::Rows(loss) => {
                let (values, gradient) = (vec![0.0; rows.width()], vec![0.0; model.weights.len()]);
                Self::Rows { loss, model, rows, values, gradient }
            }
        }
    }

    /// Finds the gradient at a row, and its length.
    fn norm(&mut self, row: usize) -> f64 {
        match self {
            Self::Scores { loss, model, rows, scores, residuals } => {
                model.scores_into(rows, row, scores);
                loss.residuals(scores, rows.label(row), residuals);
                model.gradient_norm(rows, row, residuals)
            }
            Self::Rows { loss, model, rows, values, gradient } => {
                values.fill(0.0);
                gradient.fill(0.0);
                // The last column is kept as a label, whatever it means.
                let features = rows.features();
                rows.add_scaled(row, 1.0, &mut values[..features]);
                values[features] = rows.label(row);
                loss.gradient_into(&model.weights, RowView { values }, gradient);
                gradient.iter().map(|g| g * g).sum::<f64>().sqrt()
            }
        }
    }

    /// Adds the gradient that was found last, times a factor.
    fn add(&self, row: usize, factor: f64, sum: &mut [f64]) {
        match self {
            Self::Scores { model, rows, residuals, .. } => {
                model.add_gradient(rows, row, residuals, factor, sum)
            }
            Self::Rows { gradient, .. } => sum.iter_mut().zip(gradient).for_each(|(s, g)| *s += factor * g),
        }
    }
}
