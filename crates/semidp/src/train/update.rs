//! How a gradient moves an iterate. Everything here is post-processing: it sees released gradients and public data.

use crate::domain::Domain;
use crate::{Error, Result};

/// A way to move, before the run begins.
pub trait UpdateRule {
    /// Refuses nonsense before anything is spent.
    fn check(&self) -> Result<()>;

    /// Its name and every parameter, so that a run is not continued with others.
    fn describe(&self) -> String;

    /// Steps of so many whose gradient noise averages out in the model, if the rule averages by itself.
    fn averaged_steps(&self, _steps: f64) -> Option<f64> {
        None
    }

    /// How many of these steps a run rehearses without private rows before anything is spent; a few are enough where iterates do not grow
    /// from step to step (`grows`), and where steps are expensive.
    fn rehearsed_steps(&self, steps: u64, _grows: bool) -> u64 {
        steps.min(1)
    }

    /// Stands at the start of a run.
    fn begin(&self, start: &[f64]) -> Box<dyn Update + '_>;
}

/// An iterate on its way.
pub trait Update {
    /// Where step `step` (from 1) takes its gradient.
    fn query_into(&self, step: u64, point: &mut [f64]);

    /// The clip norm for that gradient, if it is not the same in every step. It may depend on released gradients.
    fn clip_norm(&self) -> Option<f64> {
        None
    }

    /// Moves by the gradient that was found there.
    fn advance(&mut self, step: u64, gradient: &[f64], domain: &dyn Domain);

    /// The model so far.
    fn iterate(&self) -> &[f64];

    /// All it remembers, to go on from later: vectors of the length of the model.
    fn state(&self) -> Vec<&[f64]>;

    /// Goes on from what [`Update::state`] told, as many vectors of that length.
    fn restore(&mut self, state: &[Vec<f64>]);
}

/// How long a step of plain gradient descent is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepSize {
    /// Always the same.
    Constant(f64),
    /// 2/(μ(t + 1)) at step t = 1, 2, ..., for losses of strong convexity μ.
    StronglyConvex(f64),
}

impl UpdateRule for StepSize {
    fn check(&self) -> Result<()> {
        let (Self::Constant(size) | Self::StronglyConvex(size)) = *self;
        if size > 0.0 && size.is_finite() {
            return Ok(());
        }
        Err(Error::invalid("learning-rate", size, "a finite number > 0"))
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn rehearsed_steps(&self, steps: u64, grows: bool) -> u64 {
        if grows { steps } else { steps.min(1) }
    }

    fn begin(&self, start: &[f64]) -> Box<dyn Update + '_> {
        Box::new(Descent { size: *self, w: start.to_vec() })
    }
}

/// w ← Π(w − η_t g).
struct Descent {
    size: StepSize,
    w: Vec<f64>,
}

impl Update for Descent {
    fn query_into(&self, _: u64, point: &mut [f64]) {
        point.copy_from_slice(&self.w);
    }

    fn advance(&mut self, step: u64, gradient: &[f64], domain: &dyn Domain) {
        let size = match self.size {
            StepSize::Constant(size) => size,
            StepSize::StronglyConvex(mu) => 2.0 / (mu * (step as f64 + 1.0)),
        };
        self.w.iter_mut().zip(gradient).for_each(|(w, g)| *w -= size * g);
        domain.project(&mut self.w);
    }

    fn iterate(&self) -> &[f64] {
        &self.w
    }

    fn state(&self) -> Vec<&[f64]> {
        vec![&self.w]
    }

    fn restore(&mut self, state: &[Vec<f64>]) {
        self.w.copy_from_slice(&state[0]);
    }
}
