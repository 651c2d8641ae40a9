//! Finding the grid that a question needs: coarse first, to learn where the composed loss has its
//! relevant mass, then fine enough that its pessimism is below the tolerance.

use super::compose::{Composition, LARGEST_TRANSFORM, Saddle};
use super::grid::{self, Direction, Range};
use super::law::Composed;
use super::pair::Pair;
use super::sparse::Sparse;
use super::{PldOptions, SMALLEST_DELTA};
use crate::accountant::LARGEST_EPSILON;
use crate::{Error, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// The share of δ that may be cut off as infinite loss in all steps together.
const TAIL_SHARE: f64 = 1e-6;

/// The probability that some step falls below the lowest grid point, and so is moved up to it;
/// this raises δ by at most the same share, because each such path is worth at most δ.
const LIFTED_SHARE: f64 = 1e-6;

/// Targets below this (about 1e-100) are treated as this.
const LOWEST_LOG_DELTA: f64 = -230.0;

/// The pessimism up to which the scouting grid is refined.
const SCOUT_TOLERANCE: f64 = 0.02;

/// The scouting grid has about this many points at most.
const MOST_SCOUTED: f64 = (1 << 18) as f64;

/// A transform longer than this is worth its time only for a pessimism above the patient one.
const LONG_TRANSFORM: f64 = (1 << 20) as f64;
const PATIENT_TOLERANCE: f64 = 4e-3;

/// With fewer steps than this, rare losses are composed both ways and the smaller bound counts.
const MANY_STEPS: f64 = 100.0;

/// A transform longer than this is done in two stages.
const STAGED_TRANSFORM: f64 = (1 << 15) as f64;

/// One direction of a composition, and how finely to look at it.
#[derive(Clone, Copy)]
pub(super) struct Problem<'a> {
    pub(super) parts: &'a [(Pair, u64)],
    pub(super) direction: Direction,
    pub(super) options: PldOptions,
}

/// The question a grid is built for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    LogDelta(f64),
    Epsilon(f64),
}

impl<'a> Problem<'a> {
    pub(super) fn steps(&self) -> f64 {
        self.parts.iter().map(|(_, count)| *count as f64).sum()
    }

    /// The loss of the first part that is a pure mechanism.
    fn atom(&self) -> Option<f64> {
        self.parts.iter().find_map(|(pair, _)| match pair {
            Pair::Laplace { epsilon } | Pair::Pure { epsilon } => Some(*epsilon),
            _ => None,
        })
    }

    /// The losses that matter for δ near exp(log_delta).
    pub(super) fn range(&self, log_delta: f64, cap: f64) -> Range {
        // `max` also turns an estimate that is not a number into the most careful one.
        let log_tail = log_delta.max(LOWEST_LOG_DELTA) + (TAIL_SHARE / self.steps()).ln();
        let lifted = (LIFTED_SHARE / self.steps()).ln();
        let deepest = |&(pair, _): &(Pair, u64)| pair.deepest_loss(lifted);
        Range { log_tail, deepest: self.parts.iter().map(deepest).fold(1e-300, f64::max), cap }
    }

    fn build(&self, step: f64, range: &Range) -> Composition {
        let parts = self
            .parts
            .iter()
            .map(|&(pair, count)| (grid::discretise(pair, self.direction, step, range), count))
            .collect();
        Composition { parts, step }
    }

    /// How wide a range of losses the grids of all parts span together.
    fn span(&self, range: &Range) -> f64 {
        self.parts.iter().map(|&(pair, _)| grid::span(pair, self.direction, range)).sum()
    }

    /// An upper bound on δ(ε).
    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        if let Some(bound) = self.obvious_bound(epsilon, 0.1 * SMALLEST_DELTA) {
            return bound;
        }
        let mut scout = Scout::new(*self, Target::Epsilon(epsilon), f64::INFINITY);
        if scout.grid.infinite() > 0.5 {
            return 1.0;
        }
        let floor = SMALLEST_DELTA.ln();
        let mut log_delta = scout.saddle.log_delta.clamp(floor, 0.0);
        // With rare large losses δ is at least what one of them alone contributes.
        let sparse = || {
            let single: f64 =
                self.parts.iter().map(|(pair, count)| *count as f64 * pair.delta(epsilon)).sum();
            let sparse = Sparse::new(*self, single.ln().clamp(floor, 0.0))?;
            Some(sparse.delta(epsilon).min(1.0))
        };
        if scout.is_long(log_delta)
            && let Some(delta) = sparse()
        {
            return delta;
        }
        let mut refine = 1.0;
        let (mut last, mut apart) = (f64::INFINITY, f64::INFINITY);
        loop {
            let delta = scout.compose(scout.saddle, log_delta, refine).delta(epsilon);
            let found = delta.ln().max(floor);
            let surprise = found - scout.saddle.log_delta.max(floor);
            if surprise.abs() < 0.3 || refine < 1e-9 || delta >= last * (1.0 - self.options.tolerance) {
                return delta.min(last).min(apart);
            }
            // Rare large losses make the saddle-point estimate of δ too large, and with it the shares
            // of δ that were given away, and its tilt unfit to judge the grid: then compose them
            // apart and, if there are too many or the steps too few for that to be tight, repeat for
            // the δ that was found on finer grids.
            if last.is_infinite() {
                apart = sparse().unwrap_or(f64::INFINITY);
                if apart.is_finite() && self.steps() >= MANY_STEPS {
                    return apart.min(delta);
                }
                scout.cut_for(found);
            }
            (last, log_delta, refine) = (delta, found, 0.25 * refine);
        }
    }

    /// A bound on δ(ε) that needs no fine grid, if it is at most `enough`.
    pub(super) fn obvious_bound(&self, epsilon: f64, enough: f64) -> Option<f64> {
        let range = self.range(enough.ln().max(SMALLEST_DELTA.ln()), f64::INFINITY);
        let grid = self.build(self.span(&range) / 800.0, &range);
        let bound = if grid.largest_loss() <= epsilon { grid.infinite() } else { grid.chernoff(epsilon) };
        (bound <= enough).then_some(bound)
    }

    /// Whether δ(ε) ≤ `delta` can be seen without a fine grid; the other direction of reading
    /// usually decides.
    pub(super) fn is_certainly_below(&self, epsilon: f64, delta: f64) -> bool {
        if self.obvious_bound(epsilon, delta).is_some() {
            return true;
        }
        let coarse = Self { options: PldOptions { tolerance: SCOUT_TOLERANCE, ..self.options }, ..*self };
        let scout = Scout::new(coarse, Target::Epsilon(epsilon), f64::INFINITY);
        scout.compose(scout.saddle, delta.ln(), 1.0).delta(epsilon) <= delta
    }

    /// Whether the grid that the answer for δ is computed on is as fine as the tolerance asks, so that
    /// the answer is tight and not only an upper bound. Rare losses that are composed apart count as
    /// tight where they are.
    pub(super) fn is_tight(&self, delta: f64) -> bool {
        let log_delta = delta.ln().max(SMALLEST_DELTA.ln());
        let scout = Scout::new(*self, Target::LogDelta(log_delta), f64::INFINITY);
        scout.compose_judged(scout.saddle, log_delta, 1.0).1 <= SCOUT_TOLERANCE
    }

    /// The same for the answer at ε.
    pub(super) fn is_tight_at(&self, epsilon: f64) -> bool {
        let scout = Scout::new(*self, Target::Epsilon(epsilon), f64::INFINITY);
        let log_delta = scout.saddle.log_delta.clamp(SMALLEST_DELTA.ln(), 0.0);
        scout.compose_judged(scout.saddle, log_delta, 1.0).1 <= SCOUT_TOLERANCE
    }

    /// An upper bound on ε(δ).
    pub(super) fn epsilon(&self, delta: f64) -> Result<f64> {
        let too_large = Error::OutOfRange { quantity: "epsilon", relation: "above", limit: LARGEST_EPSILON };
        let log_delta = delta.ln();
        let scout = Scout::new(*self, Target::LogDelta(log_delta), f64::INFINITY);
        let mut saddle = scout.saddle;
        if saddle.epsilon > 2.0 * LARGEST_EPSILON || scout.grid.infinite() >= delta {
            return Err(too_large);
        }
        if scout.is_long(log_delta)
            && let Some(sparse) = Sparse::new(*self, log_delta)
        {
            return sparse.epsilon(delta).ok_or(too_large);
        }
        if saddle.epsilon < 0.0 {
            saddle = scout.grid.saddle_for_epsilon(0.0, saddle.theta);
        }
        let (mut best, mut apart) = (f64::INFINITY, f64::INFINITY);
        let mut refine = 1.0;
        for _ in 0..16 {
            let (composed, pessimism) = scout.compose_judged(saddle, log_delta, refine);
            let Some(epsilon) = composed.epsilon(delta) else {
                if !composed.is_whole() {
                    break;
                }
                // The target lies above the window: look further up.
                saddle = scout.grid.saddle_for_epsilon(2.0 * saddle.epsilon + scout.grid.step, saddle.theta);
                continue;
            };
            // A tilt that hit its mark judged the grid well; otherwise compose rare large losses
            // apart, or aim again on finer grids until that makes no difference.
            if (saddle.theta * (epsilon - saddle.epsilon)).abs() < 0.5 {
                best = best.min(epsilon);
                break;
            }
            if best.is_infinite() {
                let split = Sparse::new(*self, log_delta).and_then(|s| s.epsilon(delta));
                apart = split.unwrap_or(f64::INFINITY);
                if apart.is_finite() && self.steps() >= MANY_STEPS {
                    return Ok(apart.min(epsilon));
                }
            }
            let settled = best.is_finite() && composed.delta(best) >= delta * (1.0 - self.options.tolerance);
            // A grid that was as fine as is affordable, and not fine enough, cannot be refined.
            if settled || pessimism > 10.0 * self.options.tolerance {
                best = best.min(epsilon);
                break;
            }
            (best, refine) = (best.min(epsilon), 0.25 * refine);
            saddle = scout.grid.saddle_for_epsilon(best, saddle.theta);
        }
        let best = best.min(apart);
        if best.is_finite() { Ok(best) } else { Err(too_large) }
    }
}

/// One certified upper bound on a whole curve δ(ε).
pub(super) enum Piece<'a> {
    /// All steps on one grid.
    Plain(Composed),
    /// Rare large losses apart, with the body tilted towards the δ it was built for.
    Apart(Box<Sparse<'a>>, Composed),
}

impl Piece<'_> {
    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        match self {
            Self::Plain(composed) => composed.delta(epsilon),
            Self::Apart(sparse, tilted) => sparse.delta_with(tilted, epsilon),
        }
    }
}

impl<'a> Problem<'a> {
    /// Upper bounds on the curve δ(ε), ε ≥ 0, the smallest of which is tight for δ from about `delta` up.
    pub(super) fn pieces(&self, delta: f64) -> Vec<Piece<'a>> {
        let log_delta = delta.ln().max(SMALLEST_DELTA.ln());
        let apart = || {
            let sparse = Sparse::new(*self, log_delta)?;
            let tilted = sparse.tilted();
            Some(Piece::Apart(Box::new(sparse), tilted))
        };
        let scout = Scout::new(*self, Target::LogDelta(log_delta), f64::INFINITY);
        if scout.is_long(log_delta)
            && let Some(piece) = apart()
        {
            return vec![piece];
        }
        let mut saddle = scout.saddle;
        if saddle.epsilon.is_nan() || saddle.epsilon < 0.0 {
            saddle = scout.grid.saddle_for_epsilon(0.0, saddle.theta);
        }
        let mut pieces = Vec::new();
        let mut refine = 1.0;
        // As in `epsilon`: a tilt that missed its mark is aimed again on a finer grid, and rare losses are taken apart.
        for round in 0..3 {
            let composed = scout.compose(saddle, log_delta, refine);
            let found = composed.epsilon(delta);
            pieces.push(Piece::Plain(composed));
            let Some(found) = found else { break };
            if (saddle.theta * (found - saddle.epsilon)).abs() < 0.5 {
                break;
            }
            if round == 0 {
                pieces.extend(apart());
            }
            refine *= 0.25;
            saddle = scout.grid.saddle_for_epsilon(found, saddle.theta);
        }
        // A window far above zero says nothing of small ε.
        if pieces.iter().all(|piece| piece.delta(0.0) >= 1.0) {
            pieces.push(Piece::Plain(scout.compose(
                scout.grid.saddle_for_epsilon(0.0, 1.0),
                0.1f64.ln(),
                1.0,
            )));
        }
        pieces
    }
}

/// A grid fine enough to find saddle points and windows on; the transform uses a finer one.
pub(super) struct Scout<'a> {
    problem: Problem<'a>,
    range: Range,
    pub(super) grid: Composition,
    pub(super) saddle: Saddle,
    pessimism: f64,
    finer: RefCell<Option<(f64, Rc<Composition>)>>,
}

impl<'a> Scout<'a> {
    /// Refines a grid until the tilted law on it resembles the true one.
    pub(super) fn new(problem: Problem<'a>, target: Target, cap: f64) -> Self {
        let floor = SMALLEST_DELTA.ln();
        let mut range = match target {
            Target::LogDelta(log_delta) => problem.range(log_delta.max(LOWEST_LOG_DELTA), cap),
            Target::Epsilon(_) => problem.range(floor, cap),
        };
        // A finite cap must be a multiple of every step. The loss of a pure mechanism should be: then
        // its atoms lie on the grid, and on its even points, and cost no pessimism.
        let fit = |step: f64| match problem.atom() {
            _ if cap.is_finite() => cap / (cap / step).ceil(),
            Some(atom) if atom > step => atom / (2.0 * (0.5 * atom / step).ceil()),
            _ => step,
        };
        // Randomised response alone needs no finer grid than its atoms.
        let given = problem.options.fixed_step.or(match problem.parts {
            [(Pair::Pure { epsilon }, _)] => Some(0.5 * epsilon),
            _ => None,
        });
        let mut step = given.unwrap_or_else(|| fit(problem.span(&range) / 1500.0));
        let grid = problem.build(step, &range);
        let mut scout = Self {
            problem,
            range,
            grid,
            saddle: Saddle::default(),
            pessimism: 0.0,
            finer: RefCell::default(),
        };
        scout.aim(target, 1.0);
        if given.is_some() {
            return scout;
        }
        for _ in 0..24 {
            let width =
                scout.grid.window(scout.saddle, scout.saddle.log_delta.clamp(floor, 0.0), step).width();
            let finest = width.max(problem.span(&range)) / MOST_SCOUTED;
            let wanted = (step * (SCOUT_TOLERANCE / scout.pessimism).sqrt())
                .min(scout.grid.step_deviation(scout.saddle.theta) / 16.0)
                .max(finest);
            if wanted >= step * 0.999 || wanted.is_nan() {
                break;
            }
            step = fit((0.9 * wanted).max(step / 32.0));
            if let Target::Epsilon(_) = target {
                // A first estimate of δ, e³ lower to be safe, tells where tails may be cut.
                range = problem.range((scout.saddle.log_delta - 3.0).clamp(floor, 0.0), cap);
            }
            scout.range = range;
            scout.grid = problem.build(step, &range);
            scout.aim(target, scout.saddle.theta);
        }
        scout
    }

    /// Cuts the tails for δ near exp(log_delta) instead, on the same grid.
    fn cut_for(&mut self, log_delta: f64) {
        self.range = self.problem.range(log_delta, self.range.cap);
        self.grid = self.problem.build(self.grid.step, &self.range);
        self.finer.take();
    }

    fn aim(&mut self, target: Target, start: f64) {
        self.saddle = match target {
            Target::LogDelta(log_delta) => self.grid.saddle_for_delta(log_delta, start),
            Target::Epsilon(epsilon) => self.grid.saddle_for_epsilon(epsilon, start),
        };
        self.pessimism = self.grid.pessimism(self.saddle.theta);
    }

    /// The step at which pessimism would be at `tolerance`, as it falls with the step's square.
    fn step_for(&self, tolerance: f64) -> f64 {
        self.grid.step * (0.9 * tolerance / self.pessimism).sqrt().min(1.0)
    }

    /// Whether the grid that the tolerance asks for is too long for comfort.
    fn is_long(&self, log_delta: f64) -> bool {
        let step = self.step_for(self.problem.options.tolerance);
        let width = self.grid.window(self.saddle, log_delta, step).width();
        self.problem.options.fixed_step.is_none()
            && width.max(self.problem.span(&self.range)) > step * LONG_TRANSFORM
    }

    /// The grid in `pieces` times smaller steps; the last one asked for is kept.
    fn refined(&self, pieces: f64) -> Rc<Composition> {
        let mut kept = self.finer.borrow_mut();
        match &*kept {
            Some((known, grid)) if *known == pieces => Rc::clone(grid),
            _ => {
                let grid = Rc::new(self.problem.build(self.grid.step / pieces, &self.range));
                *kept = Some((pieces, Rc::clone(&grid)));
                grid
            }
        }
    }

    /// Composes around a saddle point, for answers near exp(log_delta), on a grid nested in the
    /// scout's that meets the tolerance if the largest transform allows it; `refine` < 1 asks for a
    /// finer one.
    pub(super) fn compose(&self, saddle: Saddle, log_delta: f64, refine: f64) -> Composed {
        self.compose_judged(saddle, log_delta, refine).0
    }

    /// The same with the estimated pessimism of the grid.
    fn compose_judged(&self, saddle: Saddle, log_delta: f64, refine: f64) -> (Composed, f64) {
        let options = self.problem.options;
        let scale = options.step_scale;
        if options.fixed_step.is_some() {
            let window = self.grid.window(saddle, log_delta, self.grid.step);
            return (self.grid.compose(&window), self.grid.pessimism(saddle.theta));
        }
        let mut wanted = self.step_for(options.tolerance) * refine;
        let patient = self.step_for(options.tolerance.max(PATIENT_TOLERANCE)) * refine;
        loop {
            let window = self.grid.window(saddle, log_delta, wanted * scale);
            // Losses that lie on the grid, as those of pure mechanisms do, must stay on it.
            let on_grid = self.pessimism < 1e-3 * options.tolerance;
            let short = if on_grid { LONG_TRANSFORM } else { STAGED_TRANSFORM };
            let long = window.width() > wanted * scale * short;
            let stages = if long { self.grid.stages(&window) } else { Vec::new() };
            let width = match stages.iter().map(|stage| stage.width()).reduce(f64::max) {
                Some(width) => width,
                None => window.width(),
            };
            let span = width.max(self.problem.span(&self.range));
            let longest = if options.is_coarse() { LONG_TRANSFORM } else { LARGEST_TRANSFORM as f64 };
            let affordable = patient.min(span / LONG_TRANSFORM).max(span / longest);
            let step = wanted.max(affordable) * scale;
            let pieces = (self.grid.step / step).ceil().max(1.0);
            let refined = (pieces > 1.0).then(|| self.refined(pieces));
            let fine = refined.as_deref().unwrap_or(&self.grid);
            let pessimism = fine.pessimism(saddle.theta) / (scale * scale);
            if pessimism <= options.tolerance || affordable >= wanted || pieces == 1.0 {
                // The coarser grid of the blocks may add a quarter of the tolerance.
                let blocks: f64 = stages.iter().map(|stage| stage.times as f64).sum();
                let unit = saddle.theta * (1.0 + saddle.theta) * blocks / 12.0;
                let coarse = (0.25 * options.tolerance / unit).sqrt() * scale;
                let ratio = (coarse / fine.step).min(1e6) as u64;
                let long = window.width() > fine.step * LARGEST_TRANSFORM as f64;
                let composed = if !stages.is_empty() && (ratio >= 4 || long) {
                    fine.compose_staged(&window, &stages, ratio.max(2))
                } else {
                    fine.compose(&window)
                };
                return (composed, pessimism);
            }
            // Where mass is concentrated, pessimism falls more slowly than with the square.
            wanted = (fine.step / scale * (0.8 * options.tolerance / pessimism).sqrt()).min(0.9 * wanted);
        }
    }
}
