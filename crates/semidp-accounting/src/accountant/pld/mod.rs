//! The privacy-loss-distribution accountant: numerically exact composition, rounded to the safe
//! side.
//!
//! Each event is replaced by its dominating pair ([`pair`]), discretised pessimistically
//! ([`grid`]) on a grid that follows the problem ([`scout`]), and composed by a tilted Fourier
//! transform with every error bounded and added ([`compose`], [`law`]); rare large losses that would stretch
//! the grid are composed apart ([`sparse`]). Compositions that have a closed form (Gaussian noise
//! without sampling, a single step) use it.

mod bucket;
mod compose;
mod grid;
mod law;
mod pair;
mod scout;
mod sparse;

use super::{Accountant, LARGEST_EPSILON, epsilon_in_range};
use crate::math::search;
use crate::{Adjacency, Delta, Epsilon, Error, Event, Mu, Result, Steps, convert};
use grid::Direction;
use pair::{LARGEST_MU, MOST_RESPONSES, Pair};
use scout::{Piece, Problem};

/// Below this δ the accountant only promises an upper bound, not a tight one.
pub(crate) const SMALLEST_DELTA: f64 = 1e-20;

/// δ is answered up to this ε.
const LARGEST_QUESTION: f64 = 1e4;

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

    /// Whether a rough answer will do, and long work is not worth its time.
    fn is_coarse(&self) -> bool {
        self.tolerance >= 1e-2
    }
}

/// Composes dominating pairs.
#[derive(Debug, Clone)]
pub struct PldAccountant {
    adjacency: Adjacency,
    options: PldOptions,
    parts: Vec<(Pair, u64)>,
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
        Ok(Delta::saturating(self.problem(direction).delta(epsilon.get())))
    }

    /// A certified upper bound on the whole curve δ(ε), ε ≥ 0, tight for δ from about the given one up.
    pub(crate) fn curve(&self, delta: f64) -> Curve<'_> {
        let directions = match self.closed() {
            Some(_) => Vec::new(),
            None if self.parts.is_empty() => Vec::new(),
            None => self.directions().iter().map(|&way| self.problem(way).pieces(delta)).collect(),
        };
        Curve { closed: self.closed(), directions }
    }

    /// ε(δ), also somewhat above the largest ε that is ever printed: a search interpolates across it.
    pub(crate) fn epsilon_beyond_range(&self, delta: Delta) -> Result<f64> {
        let target = delta.positive()?.get();
        if self.parts.is_empty() {
            return Ok(0.0);
        }
        if let Some((Pair::Gaussian { mu }, _)) = self.closed() {
            return Ok(convert::gaussian_epsilon(Mu::new(mu)?, delta)?.get());
        }
        if let Some((pair, count)) = self.closed() {
            let holds = |epsilon: f64| pair.repeated_delta(count, epsilon) <= target;
            return Ok(match () {
                () if holds(0.0) => 0.0,
                () if !holds(LARGEST_EPSILON) => f64::INFINITY,
                () => search::bisect(0.0, LARGEST_EPSILON, holds).1,
            });
        }
        let mut worst = 0.0f64;
        for &direction in self.directions() {
            let problem = self.problem(direction);
            if worst == 0.0 || !problem.is_certainly_below(worst, target) {
                worst = worst.max(problem.epsilon(target)?);
            }
        }
        Ok(worst)
    }

    /// Whether answers near δ are tight. Compositions of events of very different size may ask for a
    /// finer grid than is affordable; then an answer is an upper bound like any other, but not a tight
    /// one, and may lie above another accountant's.
    pub(crate) fn is_tight(&self, delta: f64) -> bool {
        self.parts.len() < 2 || self.directions().iter().all(|&way| self.problem(way).is_tight(delta))
    }

    /// The same for answers at ε.
    pub(crate) fn is_tight_at(&self, epsilon: Epsilon) -> bool {
        self.parts.len() < 2
            || self.directions().iter().all(|&way| self.problem(way).is_tight_at(epsilon.get()))
    }

    /// Whether ε(δ) is at most `epsilon` for certain, seen without a fine grid.
    pub(crate) fn is_certainly_below(&self, epsilon: Epsilon, delta: Delta) -> bool {
        let obvious = |&direction: &Direction| {
            self.problem(direction).obvious_bound(epsilon.get(), delta.get()).is_some()
        };
        delta.get() > 0.0 && !self.parts.is_empty() && self.directions().iter().all(obvious)
    }

    fn directions(&self) -> &'static [Direction] {
        // A rough answer, for a search, looks at removal alone: it costs more wherever we looked.
        if self.options.is_coarse() || self.parts.iter().all(|(pair, _)| pair.is_symmetric()) {
            &[Direction::Forward]
        } else {
            &[Direction::Forward, Direction::Backward]
        }
    }

    fn problem(&self, direction: Direction) -> Problem<'_> {
        Problem { parts: &self.parts, direction, options: self.options }
    }

    /// A single step, any number of Gaussian ones, and repeated pure ones have a closed form.
    fn closed(&self) -> Option<(Pair, u64)> {
        match self.parts[..] {
            [(pair, 1)] => Some((pair, 1)),
            [(pair @ Pair::Pure { .. }, count)] if count <= MOST_RESPONSES => Some((pair, count)),
            _ => None,
        }
    }
}

/// A whole curve δ(ε): see [`PldAccountant::curve`].
pub(crate) struct Curve<'a> {
    closed: Option<(Pair, u64)>,
    directions: Vec<Vec<Piece<'a>>>,
}

impl Curve<'_> {
    /// An upper bound on δ(ε) in both directions.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        if let Some((pair, count)) = self.closed {
            return pair.repeated_delta(count, epsilon);
        }
        let least =
            |pieces: &Vec<Piece<'_>>| pieces.iter().map(|piece| piece.delta(epsilon)).fold(1.0, f64::min);
        self.directions.iter().map(least).fold(0.0, f64::max)
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
            let mu = if count == 1 { mu } else { (mu * (count as f64).sqrt().next_up()).next_up() };
            let mu = mu.min(LARGEST_MU);
            let known = self.parts.iter_mut().find(|(known, _)| matches!(known, Pair::Gaussian { .. }));
            match known {
                Some((Pair::Gaussian { mu: total }, _)) => *total = total.hypot(mu).next_up().min(LARGEST_MU),
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
        epsilon_in_range(self.epsilon_beyond_range(delta)?)
    }

    fn delta(&self, epsilon: Epsilon) -> Result<Delta> {
        let epsilon = epsilon.get();
        // The clamp on the shift μ is harmless only far below its mean loss μ²/2 = 5·10⁵.
        if epsilon > LARGEST_QUESTION {
            return Err(Error::OutOfRange {
                quantity: "epsilon",
                relation: "above",
                limit: LARGEST_QUESTION,
            });
        }
        if self.parts.is_empty() {
            return Delta::new(0.0);
        }
        let finish = |delta: f64| {
            // Beyond its largest loss a pure mechanism has δ = 0; others never do.
            let pure = |(pair, _): &(Pair, u64)| matches!(pair, Pair::Laplace { .. } | Pair::Pure { .. });
            let all_pure = self.parts.iter().all(pure);
            Ok(if all_pure { Delta::saturating(delta) } else { Delta::not_pure(delta) })
        };
        if let Some((pair, count)) = self.closed() {
            return finish(pair.repeated_delta(count, epsilon));
        }
        let worst = self
            .directions()
            .iter()
            .map(|&direction| self.problem(direction).delta(epsilon))
            .fold(0.0, f64::max);
        finish(worst)
    }
}
