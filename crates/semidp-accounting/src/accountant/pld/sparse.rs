//! Composition of many steps whose losses are tiny except for rare large ones.
//!
//! With a small sampling rate and little noise, one step in a million may lose more than all the
//! others together. One grid cannot serve both scales. So each step's law is split at a cap b into
//! a body and jumps, p = p_b + p_j, and with T steps
//! $$p^{*T}=\sum_k\binom Tk\,p_b^{*(T-k)}*p_j^{*k}.$$
//! Two bounds, both upper, turn this into a product of separate compositions:
//! * Let m and m' be the masses of P and Q in the body. Composing one more body step can only help
//!   to tell P from Q: by Jensen δ_{T−1}(ε + ln(m'/m)) ≤ δ_T(ε)/m. So the body of T−k steps is bounded
//!   by that of T steps at an ε lower by k·ln(m'/m), which is at most the probability of a jump.
//! * The jumps' weights are then the coefficients of g = (1 + p_j/m)^T, which Panjer's recursion
//!   sums; for steps of several kinds C(T,k) ≤ T^k/k! bounds them by those of exp(ΣT·p_j/m).
//!
//! Hence δ(ε) ≤ Σ_i g_i δ_body(ε − ℓ_i − k·shift), a sum of positive terms, on a grid for the jumps
//! that may be coarse: its pessimism counts once a jump, not once a step.

use super::compose::Composition;
use super::grid::{self, Direction};
use super::law::Composed;
use super::scout::{Problem, Scout, Target};
use crate::accountant::LARGEST_EPSILON;
use crate::math::search;

/// The cap in standard deviations of the composed body.
const CAP_DEVIATIONS: f64 = 8.0;
/// Jump grid points per cap, at most and at least, and in all.
const POINTS_PER_CAP: (f64, f64) = (128.0, 24.0);
const MOST_POINTS: f64 = 8_000.0;
/// With fewer steps than this a plain grid is short, and two jumps are not rarer than one step.
const FEWEST_STEPS: f64 = 8.0;
/// δ_body above about 1e-6 of this is accurate in the bulk's composition.
const BULK_DELTA: f64 = 1e-4;
/// Jumps more frequent than this are no exception.
const MOST_JUMPS: f64 = 0.5;

/// The body alone may matter less than this, relative to δ, to be bounded coarsely.
const NEGLIGIBLE: f64 = 1e-5;

/// A composition split into body and jumps.
pub(super) struct Sparse<'a> {
    scout: Scout<'a>,
    log_delta: f64,
    /// The body, nearly untilted, for its bulk.
    bulk: Composed,
    /// (t, K(t)) of the body: δ_body(ε) ≤ e^{K(t)−tε} for each.
    chernoff: Vec<(f64, f64)>,
    /// The body's total mass.
    mass: f64,
    /// g_i at losses i·step, counted from the offsets of the steps that jump.
    jumps: Vec<f64>,
    step: f64,
    cap: f64,
    /// What one jump adds to the loss beside its place on the grid.
    shift: f64,
    /// Infinite loss, of jumps or of events that the cap does not reach, and jumps beyond the grid.
    extra: f64,
}

impl<'a> Sparse<'a> {
    /// Splits the composition for answers near exp(log_delta), if it is of the sparse kind.
    pub(super) fn new(problem: Problem<'a>, log_delta: f64) -> Option<Self> {
        let few = problem.steps() < FEWEST_STEPS;
        if few || problem.direction == Direction::Backward || problem.options.fixed_step.is_some() {
            return None;
        }
        let whole = problem.range(log_delta, f64::INFINITY);
        let top = problem.parts.iter().map(|(p, _)| p.largest_loss(whole.log_tail)).fold(0.0, f64::max);
        let cap = find_cap(problem, top, whole.log_tail)?;
        let per_cap = POINTS_PER_CAP.0.min((MOST_POINTS * cap / (1.5 * top)).ceil());
        // Halving the body's grid halves the jumps' as well.
        let step = cap / (per_cap / problem.options.step_scale).round();
        let scout = Scout::new(problem, Target::LogDelta(log_delta), cap);
        let bulk = scout.compose(scout.grid.saddle_at(CAP_DEVIATIONS / cap), BULK_DELTA.ln(), 1.0);
        let points = (1.5 * top / step).ceil() as usize;
        let rates = jump_rates(problem, &scout.grid, whole.log_tail, cap, step, points);
        let shift = scout
            .grid
            .parts
            .iter()
            .map(|(grid, _)| grid.offset + grid.moments(-1.0).log_mgf - grid.moments(0.0).log_mgf)
            .fold(f64::NEG_INFINITY, f64::max);
        let chernoff = (0..24)
            .map(|k| CAP_DEVIATIONS / cap * 1.25f64.powi(k - 4))
            .map(|t| (t, scout.grid.cumulant(t)))
            .collect();
        Some(Self {
            bulk,
            chernoff,
            mass: scout.grid.mass().min(1.0),
            extra: rates.infinite + scout.grid.infinite() + beyond(&rates.jumps, step),
            jumps: power_series(
                &rates.jumps,
                if problem.parts.len() == 1 { problem.steps() } else { f64::INFINITY },
            ),
            step,
            cap,
            shift,
            log_delta,
            scout,
        })
    }

    /// An upper bound on δ(ε).
    pub(super) fn delta(&self, epsilon: f64) -> f64 {
        let jumped = self.jumped(epsilon);
        let coarse = self.body_tail(epsilon);
        if coarse <= NEGLIGIBLE * jumped { jumped + coarse } else { jumped + self.tilted().delta(epsilon) }
    }

    /// An upper bound on δ(ε), given [`Sparse::tilted`].
    pub(super) fn delta_with(&self, tilted: &Composed, epsilon: f64) -> f64 {
        self.jumped(epsilon)
            + self.body_tail(epsilon).min(tilted.delta(epsilon)).min(self.bulk.delta(epsilon))
    }

    /// Chernoff's bound on the body's δ(ε).
    fn body_tail(&self, epsilon: f64) -> f64 {
        let exponent = self.chernoff.iter().map(|(t, k)| k - t * epsilon).fold(0.0, f64::min);
        exponent.exp() * (1.0 + 1e-9)
    }

    /// The body, tilted towards the answer.
    pub(super) fn tilted(&self) -> Composed {
        self.scout.compose(self.scout.saddle, self.log_delta, 1.0)
    }

    /// The contribution of at least one jump, and of infinite loss.
    fn jumped(&self, epsilon: f64) -> f64 {
        // Below the body's bulk δ is convex in e^ε: under the chord from 0, where it is the mass.
        let anchor = self.bulk.lowest();
        let at_anchor = self.bulk.delta(anchor).min(self.mass);
        let mut total = self.extra;
        for (i, &weight) in self.jumps.iter().enumerate().skip(1).filter(|(_, w)| **w > 0.0) {
            let loss = i as f64 * self.step;
            // Each jump is at least `cap`, so there are at most loss/cap of them, and at least one.
            let shift = if self.shift > 0.0 { self.shift * loss / self.cap } else { self.shift };
            let place = epsilon - loss - shift;
            let body = if place < anchor {
                self.mass - (self.mass - at_anchor) * (place - anchor).exp()
            } else {
                self.bulk.delta(place).min(self.body_tail(place))
            };
            total += weight * body;
        }
        total * (1.0 + 1e-12)
    }

    /// The smallest ε ≥ 0 found with δ(ε) ≤ `delta`.
    pub(super) fn epsilon(&self, delta: f64) -> Option<f64> {
        let coarse = self.solve(delta, |epsilon| self.jumped(epsilon) + self.body_tail(epsilon))?;
        if self.body_tail(coarse) <= NEGLIGIBLE * delta {
            return Some(coarse);
        }
        let tilted = self.tilted();
        self.solve(delta, |epsilon| self.jumped(epsilon) + tilted.delta(epsilon))
    }

    fn solve(&self, delta: f64, bound: impl Fn(f64) -> f64) -> Option<f64> {
        if bound(0.0) <= delta {
            return Some(0.0);
        }
        let mut high = self.cap;
        while bound(high) > delta {
            high *= 2.0;
            if high > 2.0 * LARGEST_EPSILON {
                return None;
            }
        }
        let (mut low, mut f_low) = (0.0, (bound(0.0) / delta).ln());
        let mut f_high = (bound(high) / delta).ln();
        for _ in 0..60 {
            if high - low < 1e-8 * high || f_high > -1e-7 {
                break;
            }
            let secant = (low * f_high - high * f_low) / (f_high - f_low);
            let mid = if secant > low && secant < high { secant } else { 0.5 * (low + high) };
            // A little above, so that the safe end moves as well.
            let mid = (mid + 1e-9 * high).min(0.5 * (mid + high));
            let f_mid = (bound(mid) / delta).ln();
            if f_mid <= 0.0 {
                (high, f_high) = (mid, f_mid);
                f_low *= 0.5;
            } else {
                (low, f_low) = (mid, f_mid);
                f_high *= 0.5;
            }
        }
        Some(high)
    }
}

/// The largest cap that is [`CAP_DEVIATIONS`] of the body that it leaves, well below the largest
/// loss, rarely exceeded, and by sampled events only: the others' large losses are no exception.
fn find_cap(problem: Problem<'_>, top: f64, log_tail: f64) -> Option<f64> {
    let mut cap = top;
    for _ in 0..60 {
        let mut variance = 0.0;
        for &(pair, count) in problem.parts {
            variance += count as f64 * pair.capped_square(cap);
        }
        let next = CAP_DEVIATIONS * variance.sqrt();
        if next > 0.9 * cap {
            break;
        }
        cap = next;
    }
    let unsampled = problem.parts.iter().filter(|(pair, _)| !pair.is_sampled());
    cap = unsampled.map(|(pair, _)| pair.largest_loss(log_tail)).fold(cap, f64::max);
    // The jumps' grid must reach from a fraction of the cap to the largest loss.
    cap = cap.max(1.5 * top * POINTS_PER_CAP.1 / MOST_POINTS);
    let exceeded: f64 = problem
        .parts
        .iter()
        .map(|(pair, count)| *count as f64 * pair.survival((pair.offset() + cap).max(0.0)).0)
        .sum();
    let above_zero = problem.parts.iter().all(|(pair, _)| pair.offset() + cap > 0.0);
    (cap < 0.7 * top && cap > 0.0 && exceeded <= MOST_JUMPS && above_zero).then_some(cap)
}

struct Rates {
    /// T·p_j/m at losses i·step above the offset, all parts together.
    jumps: Vec<f64>,
    infinite: f64,
}

fn jump_rates(
    problem: Problem<'_>,
    body: &Composition,
    log_tail: f64,
    cap: f64,
    step: f64,
    points: usize,
) -> Rates {
    let mut jumps = vec![0.0; points + 1];
    let mut log_finite = 0.0;
    let first = (cap / step).round() as usize;
    for (&(pair, count), (grid, _)) in problem.parts.iter().zip(&body.parts) {
        let count = count as f64;
        let loss = |k: usize| ((first + k) as f64).mul_add(step, grid.offset);
        let reach = (pair.largest_loss(log_tail) - grid.offset) / step;
        let buckets = (reach.ceil() as usize).clamp(first + 1, points) - first;
        let grid::Atoms { mass: atoms, above, .. } =
            grid::connect(pair, problem.direction, buckets, step, loss);
        let scale = count / grid.moments(0.0).log_mgf.exp();
        for (k, atom) in atoms.iter().enumerate() {
            jumps[first + k] += atom * scale;
        }
        log_finite += count * (-above).ln_1p();
    }
    Rates { jumps, infinite: -log_finite.exp_m1() }
}

/// The coefficients g_i of (1 + λ/T)^T for T equal steps, λ = Σλ_j x^j; of exp(λ), which bounds it,
/// for steps of several kinds (T = ∞). With g' (1 + λ/T) = λ' g they obey
/// i·g_i = Σ_j (j − (i−j)/T)·λ_j·g_{i−j}.
fn power_series(rates: &[f64], steps: f64) -> Vec<f64> {
    let first = rates.iter().position(|&r| r > 0.0).unwrap_or(rates.len());
    let last = rates.iter().rposition(|&r| r > 0.0).unwrap_or(0);
    let mut series = vec![0.0; rates.len()];
    series[0] = 1.0;
    for i in first..rates.len() {
        let term = |j: usize| (j as f64 - (i - j) as f64 / steps) * rates[j] * series[i - j];
        let sum: f64 = (first..=last.min(i)).map(term).sum();
        // More jumps than steps have no weight; rounding may leave a trace.
        series[i] = (sum / i as f64).max(0.0);
    }
    series
}

/// A Chernoff bound on what the series has beyond its last computed term.
fn beyond(rates: &[f64], step: f64) -> f64 {
    let length = rates.len() as f64 * step;
    let bound = |theta: f64| {
        let sum: f64 = rates.iter().enumerate().map(|(j, r)| r * (theta * j as f64 * step).exp()).sum();
        sum - theta * length
    };
    let (_, log_bound) = search::minimise(0.0, 600.0 / length, 1e-2 / length, bound);
    log_bound.exp()
}
