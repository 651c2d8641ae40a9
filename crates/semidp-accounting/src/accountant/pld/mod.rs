//! The privacy-loss-distribution accountant: numerically exact composition, rounded to the safe
//! side.
//!
//! Each event is replaced by its dominating pair ([`pair`]), discretised pessimistically
//! ([`grid`]) on a grid that follows the problem, and composed by a tilted Fourier transform with
//! every error bounded and added ([`compose`]). Compositions that have a closed form (Gaussian
//! noise without sampling, a single step) use it.

mod compose;
mod grid;
mod pair;

use super::{Accountant, LARGEST_EPSILON, epsilon_in_range};
use crate::math::search;
use crate::{Adjacency, Delta, Epsilon, Error, Event, Mu, Result, Steps, convert};
use compose::{Composition, LARGEST_TRANSFORM, Saddle};
use grid::Direction;
use pair::Pair;

/// Below this δ the accountant only promises an upper bound, not a tight one.
pub(crate) const SMALLEST_DELTA: f64 = 1e-20;

/// The share of δ that may be cut off as infinite loss in all steps together.
const TAIL_SHARE: f64 = 1e-6;

/// How fine the grid is. The default suits certificates; coarser settings suit a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PldOptions {
    /// The grid is refined until its estimated pessimism, relative in δ, is at most this.
    pub tolerance: f64,
    /// Multiplies the step that the tolerance asks for: 0.5 halves the grid, to see what it does.
    pub step_scale: f64,
    /// Uses exactly this step instead.
    pub fixed_step: Option<f64>,
}

impl Default for PldOptions {
    fn default() -> Self {
        Self { tolerance: 3e-4, step_scale: 1.0, fixed_step: None }
    }
}

impl PldOptions {
    pub(crate) fn coarse() -> Self {
        Self { tolerance: 1e-2, ..Self::default() }
    }
}

/// Composes dominating pairs.
#[derive(Debug, Clone)]
pub struct PldAccountant {
    adjacency: Adjacency,
    options: PldOptions,
    parts: Vec<(Pair, u64)>,
}

/// The question a grid is built for.
#[derive(Debug, Clone, Copy)]
enum Target {
    LogDelta(f64),
    Epsilon(f64),
}

impl PldAccountant {
    /// Nothing composed yet.
    pub fn new(adjacency: Adjacency) -> Self {
        Self::with_options(adjacency, PldOptions::default())
    }

    /// Nothing composed yet, with a grid of one's own.
    pub fn with_options(adjacency: Adjacency, options: PldOptions) -> Self {
        Self { adjacency, options, parts: Vec::new() }
    }

    /// δ(ε) of one direction alone: of adding a unit (`true`) or of removing one (`false`).
    /// A guarantee needs the larger of the two; symmetric events have one value for both.
    pub fn directional_delta(&self, epsilon: Epsilon, adding: bool) -> Result<Delta> {
        let direction = if adding { Direction::Backward } else { Direction::Forward };
        Ok(Delta::saturating(self.grid_delta(epsilon.get(), direction)))
    }

    fn directions(&self) -> &'static [Direction] {
        if self.parts.iter().all(|(pair, _)| pair.is_symmetric()) {
            &[Direction::Forward]
        } else {
            &[Direction::Forward, Direction::Backward]
        }
    }

    fn steps(&self) -> f64 {
        self.parts.iter().map(|(_, count)| *count as f64).sum()
    }

    /// A single step, and any number of Gaussian ones, have a closed form.
    fn single(&self) -> Option<Pair> {
        match self.parts[..] {
            [(pair, 1)] => Some(pair),
            _ => None,
        }
    }

    fn build(&self, direction: Direction, step: f64, log_tail: f64) -> Composition {
        let parts = self
            .parts
            .iter()
            .map(|&(pair, count)| (grid::discretise(pair, direction, step, log_tail), count))
            .collect();
        Composition { parts, step }
    }

    /// Finds the coarsest grid that meets the tolerance at the target, from coarse to fine.
    fn prepare(&self, direction: Direction, target: Target) -> (Composition, Saddle) {
        let floor = SMALLEST_DELTA.ln();
        let mut log_delta = match target {
            Target::LogDelta(log_delta) => log_delta.max(floor),
            Target::Epsilon(_) => floor,
        };
        let tail = |log_delta: f64| log_delta + (TAIL_SHARE / self.steps()).ln();
        let find = |composition: &Composition, start: f64| match target {
            Target::LogDelta(log_delta) => composition.saddle_for_delta(log_delta, start),
            Target::Epsilon(epsilon) => composition.saddle_for_epsilon(epsilon, start),
        };
        let points = |step: f64, log_delta: f64| -> f64 {
            self.parts.iter().map(|&(pair, _)| grid::size(pair, step, tail(log_delta))).sum()
        };
        let limit = LARGEST_TRANSFORM as f64;
        let mut step = self.options.fixed_step.unwrap_or(points(1.0, log_delta) / 4000.0);
        let mut composition = self.build(direction, step, tail(log_delta));
        let mut saddle = find(&composition, 1.0);
        if self.options.fixed_step.is_some() {
            return (composition, saddle);
        }
        for _ in 0..24 {
            let pessimism = composition.pessimism(saddle.theta);
            let window = composition.window_size(saddle, saddle.log_delta.clamp(floor, 0.0));
            let finest = step * (points(step, log_delta).max(window) / limit);
            let wanted = (step * (0.9 * self.options.tolerance / pessimism).sqrt())
                .min(composition.step_deviation(saddle.theta) / 16.0)
                .max(finest);
            if !(wanted < step * 0.999) {
                break;
            }
            step = wanted.max(step / 32.0);
            if let Target::Epsilon(_) = target {
                // A first estimate of δ, e³ lower to be safe, tells where tails may be cut.
                log_delta = (saddle.log_delta - 3.0).clamp(floor, 0.0);
            }
            composition = self.build(direction, step, tail(log_delta));
            saddle = find(&composition, saddle.theta);
        }
        if self.options.step_scale != 1.0 {
            composition = self.build(direction, step * self.options.step_scale, tail(log_delta));
            saddle = find(&composition, saddle.theta);
        }
        (composition, saddle)
    }

    fn grid_delta(&self, epsilon: f64, direction: Direction) -> f64 {
        let (composition, saddle) = self.prepare(direction, Target::Epsilon(epsilon));
        let log_delta = saddle.log_delta.clamp(SMALLEST_DELTA.ln(), 0.0);
        composition.compose(saddle, log_delta).delta(epsilon)
    }

    fn grid_epsilon(&self, delta: f64, direction: Direction) -> Result<f64> {
        let too_large =
            Error::OutOfRange { quantity: "epsilon", relation: "above", limit: LARGEST_EPSILON };
        let (composition, mut saddle) = self.prepare(direction, Target::LogDelta(delta.ln()));
        if saddle.epsilon > 2.0 * LARGEST_EPSILON {
            return Err(too_large);
        }
        if saddle.epsilon < 0.0 {
            saddle = composition.saddle_for_epsilon(0.0, saddle.theta);
        }
        let mut best: Option<f64> = None;
        for _ in 0..6 {
            let found = composition.compose(saddle, delta.ln()).epsilon(delta);
            let Some(epsilon) = found else {
                // The target lies above the window: look further up.
                saddle = composition.saddle_at(saddle.theta * 1.5);
                continue;
            };
            best = Some(best.map_or(epsilon, |b: f64| b.min(epsilon)));
            // A tilt that missed its mark answers correctly but not tightly: aim again.
            if (saddle.theta * (epsilon - saddle.epsilon)).abs() < 3.0 {
                break;
            }
            saddle = composition.saddle_for_epsilon(epsilon, saddle.theta);
        }
        best.ok_or(too_large)
    }
}

impl Accountant for PldAccountant {
    fn name(&self) -> &'static str {
        "pld"
    }

    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    fn compose(&mut self, event: &Event, count: Steps) -> Result<()> {
        let pair = Pair::of(event, self.adjacency)?;
        let count = count.get();
        if let Pair::Gaussian { mu } = pair {
            // Gaussian losses compose exactly: one pair of length √Σμ² stands for all of them.
            let mu = mu * (count as f64).sqrt();
            let known = self.parts.iter_mut().find(|(known, _)| matches!(known, Pair::Gaussian { .. }));
            match known {
                Some((Pair::Gaussian { mu: total }, _)) => *total = total.hypot(mu),
                _ => self.parts.push((Pair::Gaussian { mu }, 1)),
            }
            return Ok(());
        }
        if matches!(pair, Pair::Laplace { epsilon } | Pair::Pure { epsilon } if epsilon == 0.0) {
            return Ok(());
        }
        match self.parts.iter_mut().find(|(known, _)| *known == pair) {
            Some((_, total)) => *total += count,
            None => self.parts.push((pair, count)),
        }
        Ok(())
    }

    fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        let target = delta.positive()?.get();
        if self.parts.is_empty() {
            return Epsilon::new(0.0);
        }
        match self.single() {
            Some(Pair::Gaussian { mu }) => {
                return epsilon_in_range(convert::gaussian_epsilon(Mu::new(mu)?, delta)?.get());
            }
            Some(pair) if pair.delta(0.0) <= target => return Epsilon::new(0.0),
            Some(pair) if pair.delta(LARGEST_EPSILON) > target => return epsilon_in_range(f64::INFINITY),
            Some(pair) => {
                let (_, safe) = search::bisect(0.0, LARGEST_EPSILON, |e| pair.delta(e) <= target);
                return Epsilon::new(safe);
            }
            None => {}
        }
        let mut worst = 0.0f64;
        for &direction in self.directions() {
            worst = worst.max(self.grid_epsilon(target, direction)?);
        }
        epsilon_in_range(worst)
    }

    fn delta(&self, epsilon: Epsilon) -> Result<Delta> {
        let epsilon = epsilon.get();
        if self.parts.is_empty() {
            return Delta::new(0.0);
        }
        if let Some(pair) = self.single() {
            return Ok(Delta::saturating(pair.delta(epsilon)));
        }
        let worst =
            self.directions().iter().map(|&direction| self.grid_delta(epsilon, direction)).fold(0.0, f64::max);
        Ok(Delta::saturating(worst))
    }
}
