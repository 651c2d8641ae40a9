//! Discretisation of one privacy loss distribution: connect the dots (Doroshenko, Ghazi, Kamath,
//! Kumar and Manurangsi 2022).
//!
//! Each bucket between neighbouring grid losses, of mass a under P and b under Q, is replaced by
//! two atoms at its ends that keep both masses. The hockey-stick curve of the result interpolates
//! the true one and lies on or above it, so the discretised pair dominates the true pair, and
//! goes on doing so under composition. Mass above the grid becomes infinite loss, mass below it
//! moves up to the lowest grid point: both only pessimistic.

use super::bucket::Buckets;
use super::pair::{Pair, removal_point};
use crate::math::normal;

/// Which way a pair is read: removal of a unit, or its addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// Masses on the losses `offset + (first + i)·step`, and on infinite loss.
#[derive(Debug, Clone)]
pub(crate) struct LossMass {
    pub(crate) offset: f64,
    pub(crate) step: f64,
    pub(crate) first: i64,
    pub(crate) mass: Vec<f64>,
    pub(crate) infinite: f64,
}

/// The logarithm of the moment generating function of the finite part, and the mean and variance
/// of the tilted law p_i e^{θℓ_i}, with its mass on odd grid points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    pub(crate) log_mgf: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    pub(crate) odd: f64,
}

/// Which losses get grid points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    /// Losses that P exceeds with at most this probability (its logarithm) count as infinite.
    pub(crate) log_tail: f64,
    /// Losses below minus this are moved up to it.
    pub(crate) deepest: f64,
    /// Losses more than this above the grid's offset are left out: neither finite nor infinite.
    pub(crate) cap: f64,
}

/// How wide a range of losses the grid of a pair spans.
pub(crate) fn span(pair: Pair, direction: Direction, range: &Range) -> f64 {
    let up = pair.largest_loss(range.log_tail);
    match (pair, direction) {
        (Pair::Removal { .. }, Direction::Forward) => up.min(range.cap) - pair.smallest_loss(range.log_tail),
        (Pair::Removal { .. }, Direction::Backward) => {
            up.min(range.deepest) - pair.smallest_loss(range.log_tail)
        }
        _ => up.min(range.cap) + up.min(range.deepest),
    }
}

/// Connect-the-dots discretisation. A finite cap must be a multiple of the step.
pub(crate) fn discretise(pair: Pair, direction: Direction, step: f64, range: &Range) -> LossMass {
    let mut result = match pair {
        Pair::Removal { q, mu } => removal(q, mu, direction, step, range),
        _ => symmetric(pair, step, range),
    };
    let zeros = result.mass.iter().take_while(|&&m| m == 0.0).count();
    result.mass.drain(..zeros.min(result.mass.len() - 1));
    result.first += zeros as i64;
    while result.mass.len() > 1 && result.mass.last() == Some(&0.0) {
        result.mass.pop();
    }
    result
}

/// Covers the rounding of a tail that counts as infinite loss or below the grid.
const TAIL_ROUNDING: f64 = 1.0 + 1e-11;

/// Atoms at grid losses.
pub(crate) struct Atoms {
    pub(crate) mass: Vec<f64>,
    /// P's mass above the last grid loss.
    pub(crate) above: f64,
    /// A bound on the mass that rounding moved up by one step.
    moved: f64,
}

/// Puts each bucket's mass on its two ends, at the grid losses `loss(k)`, k = 0 ..= buckets, of which the
/// first is at least 0 unless the pair is [`Pair::Removal`]; rounded to the safe side ([`super::bucket`]).
pub(crate) fn connect(
    pair: Pair,
    direction: Direction,
    buckets: usize,
    step: f64,
    loss: impl Fn(usize) -> f64,
) -> Atoms {
    let within = Buckets::new(pair, step);
    let mut mass = vec![0.0; buckets + 1];
    let mut moved = 0.0;
    let mut edge = within.edge(loss(0));
    for k in 0..buckets {
        let next = within.edge(loss(k + 1));
        let split = within.split(edge, next, direction);
        mass[k] += split.mass - split.up;
        mass[k + 1] += split.up;
        moved += split.moved;
        edge = next;
    }
    let (largest, atom) = match pair {
        Pair::Laplace { epsilon } => (epsilon, 0.5),
        Pair::Pure { epsilon } => (epsilon, 1.0 / (1.0 + (-epsilon).exp()) * (1.0 + 4.0 * f64::EPSILON)),
        _ => return Atoms { mass, above: pair.survival(loss(buckets)).0 * TAIL_ROUNDING, moved },
    };
    // A pure mechanism's atom at its largest loss, whose place is good to a unit in the last place.
    let first = loss(0);
    if largest > first * (1.0 + 1e-12) {
        let k = (((largest - first) / step).floor() as usize).min(buckets - 1);
        let doubt = 4.0 * f64::EPSILON * largest;
        let up = atom * (-(largest - loss(k) + doubt).max(0.0)).exp_m1() / (-step).exp_m1();
        mass[k + 1] += up;
        mass[k] += (atom - up).max(0.0);
        moved += atom * doubt / step;
    }
    Atoms { mass, above: 0.0, moved }
}

/// A symmetric pair needs its non-negative losses only: p_{−k} = e^{−kh} p_k.
fn symmetric(pair: Pair, step: f64, range: &Range) -> LossMass {
    let unit = f64::EPSILON;
    let reach = pair.largest_loss(range.log_tail);
    let capped = range.cap < reach;
    // One more than fits: an atom at the largest loss must lie below the last grid point, however
    // its quotient by the step was rounded, or it would count as infinite.
    let top =
        if capped { (range.cap / step).round() } else { (reach / step).floor() + 1.0 }.max(1.0) as usize;
    let bottom = top.min((range.deepest / step).ceil().max(1.0) as usize);
    let loss = |k: usize| k as f64 * step;
    let Atoms { mass: upper, above, moved } = connect(pair, Direction::Forward, top, step, loss);
    let mut mass = vec![0.0; bottom + top + 1];
    for k in (1..=top).rev() {
        mass[bottom + k] = upper[k];
        mass[bottom - k.min(bottom)] += upper[k] * (-loss(k)).exp() * (1.0 + unit * (4.0 + loss(k)));
    }
    // Below the grid: what was added up, and the mirror image of what lies above it.
    mass[0] = mass[0] * (1.0 + unit * top as f64) + pair.survival(loss(top)).1 * TAIL_ROUNDING;
    // The buckets on either side of 0 put the same on it. What rounding moved up lost P some of its mirror image.
    mass[bottom] = 2.0 * upper[0] + pair.mass_at_zero() + moved * step.min(1.0);
    LossMass { offset: 0.0, step, first: -(bottom as i64), mass, infinite: if capped { 0.0 } else { above } }
}

fn removal(q: f64, mu: f64, direction: Direction, step: f64, range: &Range) -> LossMass {
    let pair = Pair::Removal { q, mu };
    let offset = pair.offset();
    let bottom_loss = pair.smallest_loss(range.log_tail);
    let forward = direction == Direction::Forward;
    let top_loss = pair.largest_loss(range.log_tail).min(if forward { f64::INFINITY } else { range.deepest });
    let capped = forward && range.cap < top_loss - offset;
    let first = ((bottom_loss - offset) / step).floor();
    let last = if capped { (range.cap / step).round() } else { ((top_loss - offset) / step).ceil() };
    let (first, buckets) = (first as i64, (last - first).max(1.0) as usize);

    // Rounded once: the offset cancels where losses are around 0.
    let loss = |k: usize| ((first + k as i64) as f64).mul_add(step, offset);
    let Atoms { mass: mut atoms, above, .. } = connect(pair, direction, buckets, step, loss);
    let bottom = removal_point(q, mu, loss(0)).y;
    match direction {
        Direction::Forward => {
            let below = (1.0 - q) * normal::cdf(bottom) + q * normal::cdf(bottom - mu);
            atoms[0] += below * TAIL_ROUNDING;
            LossMass { offset, step, first, mass: atoms, infinite: if capped { 0.0 } else { above } }
        }
        Direction::Backward => {
            // The same atoms seen from Q: q_i = p_i e^{−ε_i} at loss −ε_i.
            for (k, atom) in atoms.iter_mut().enumerate() {
                *atom *= (-loss(k)).exp() * (1.0 + f64::EPSILON * (4.0 + loss(k).abs()));
            }
            atoms[buckets] += pair.survival(loss(buckets)).1 * TAIL_ROUNDING;
            atoms.reverse();
            LossMass {
                offset: -offset,
                step,
                first: -(first + buckets as i64),
                mass: atoms,
                infinite: normal::cdf(bottom) * TAIL_ROUNDING,
            }
        }
    }
}

impl LossMass {
    pub(crate) fn largest_loss(&self) -> f64 {
        self.loss(self.mass.len() - 1)
    }

    fn loss(&self, i: usize) -> f64 {
        self.offset + (self.first + i as i64) as f64 * self.step
    }

    /// A bound on the relative error of one tilted probability: of the exponents θ(ℓ_i − r) and θr.
    pub(crate) fn tilt_rounding(&self, theta: f64) -> f64 {
        let span = (self.mass.len() - 1) as f64 * self.step;
        let ends = self.loss(0).abs().max(self.loss(self.mass.len() - 1).abs()) + self.offset.abs();
        f64::EPSILON * (16.0 + 4.0 * theta.abs() * (span + ends))
    }

    /// Calls `visit(i, e^{θ(ℓ_i − reference)})` with the end of the grid that keeps the weight
    /// at most 1 as reference, which it returns. Mass at that end is never 0, so that the largest
    /// tilted mass is representable.
    fn for_each_weight(&self, theta: f64, mut visit: impl FnMut(usize, f64)) -> f64 {
        const BLOCK: usize = 32;
        let n = self.mass.len();
        let exponent = -theta.abs() * self.step;
        let powers: [f64; BLOCK] = std::array::from_fn(|k| (exponent * k as f64).exp());
        for start in (0..n).step_by(BLOCK) {
            let base = (exponent * start as f64).exp();
            if base == 0.0 {
                break;
            }
            for (k, power) in powers.iter().enumerate().take(BLOCK.min(n - start)) {
                let i = if theta >= 0.0 { n - 1 - start - k } else { start + k };
                visit(i, base * power);
            }
        }
        if theta >= 0.0 { self.loss(n - 1) } else { self.loss(0) }
    }

    /// [`Moments::log_mgf`] alone, faster.
    pub(crate) fn log_mgf(&self, theta: f64) -> f64 {
        const BLOCK: usize = 32;
        let exponent = -theta.abs() * self.step;
        let powers: [f64; BLOCK] = std::array::from_fn(|k| (exponent * k as f64).exp());
        let base = |block: usize| (exponent * (block * BLOCK) as f64).exp();
        let (sum, reference) = if theta >= 0.0 {
            let blocks = self.mass.rchunks(BLOCK).enumerate();
            let dot =
                |masses: &[f64]| powers.iter().zip(masses.iter().rev()).map(|(p, m)| p * m).sum::<f64>();
            (blocks.map(|(b, masses)| base(b) * dot(masses)).sum::<f64>(), self.mass.len() - 1)
        } else {
            let blocks = self.mass.chunks(BLOCK).enumerate();
            let dot = |masses: &[f64]| powers.iter().zip(masses).map(|(p, m)| p * m).sum::<f64>();
            (blocks.map(|(b, masses)| base(b) * dot(masses)).sum::<f64>(), 0)
        };
        sum.ln() + theta * self.loss(reference)
    }

    pub(crate) fn moments(&self, theta: f64) -> Moments {
        // Positions are counted from the reference end, in steps; sums by parity.
        let n = self.mass.len();
        let mut sums = [[0.0f64; 3]; 2];
        let reference = self.for_each_weight(theta, |i, weight| {
            let tilted = self.mass[i] * weight;
            let position = if theta >= 0.0 { i as f64 - (n - 1) as f64 } else { i as f64 };
            let sum = &mut sums[((self.first + i as i64) & 1) as usize];
            sum[0] += tilted;
            sum[1] += tilted * position;
            sum[2] += tilted * position * position;
        });
        let [zeroth, first, second] = std::array::from_fn(|m| sums[0][m] + sums[1][m]);
        let mean = first / zeroth;
        Moments {
            log_mgf: zeroth.ln() + theta * reference,
            mean: reference + self.step * mean,
            variance: (self.step * self.step * (second / zeroth - mean * mean)).max(0.0),
            odd: sums[1][0] / zeroth,
        }
    }

    /// The tilted probabilities p_i e^{θℓ_i}/M(θ).
    pub(crate) fn tilted(&self, theta: f64, log_mgf: f64) -> Vec<f64> {
        let reference = if theta >= 0.0 { self.loss(self.mass.len() - 1) } else { self.loss(0) };
        let scale = (theta * reference - log_mgf).exp();
        // The scale may leave the floating-point range where its product with the weight does not.
        let direct = scale.is_finite() && scale > 0.0;
        let mut tilted = vec![0.0; self.mass.len()];
        self.for_each_weight(theta, |i, weight| {
            let factor = if direct { weight * scale } else { (theta * self.loss(i) - log_mgf).exp() };
            tilted[i] = self.mass[i] * factor;
        });
        tilted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Range = Range { log_tail: -58.0, deepest: f64::INFINITY, cap: f64::INFINITY };

    fn check(pair: Pair, direction: Direction, step: f64) {
        let grid = discretise(pair, direction, step, &WHOLE);
        // From the smallest up: millions of them are below the last place of the largest.
        let sum = |mut masses: Vec<f64>| {
            masses.sort_by(f64::total_cmp);
            masses.iter().sum::<f64>()
        };
        let total = sum(grid.mass.clone()) + grid.infinite;
        let reverse = sum(grid.mass.iter().enumerate().map(|(i, m)| m * (-grid.loss(i)).exp()).collect());
        // Masses are rounded up, and upwards; an atom at the end of its bucket most. The sums are good to 1e-14.
        assert!((-1e-14..1e-11).contains(&(total - 1.0)), "{pair:?} {direction:?} {step}: total {total}");
        // Mass moved up from below the grid, and mass sent to infinity, are below 1e-20.
        assert!((reverse - 1.0).abs() < 1e-11, "{pair:?} {direction:?} {step}: reverse {reverse}");
        let moments = grid.moments(0.0);
        assert!(moments.log_mgf.abs() < 1e-11);
        let minus = grid.moments(-1.0);
        assert!(minus.log_mgf.abs() < 1e-11);
        for theta in [-3.0, -0.5, 0.0, 0.7, 5.0] {
            let (fast, whole) = (grid.log_mgf(theta), grid.moments(theta).log_mgf);
            assert!((fast - whole).abs() <= 1e-12 * (1.0 + whole.abs()), "{pair:?} {theta}: {fast} {whole}");
        }
    }

    #[test]
    fn both_probabilities_are_kept() {
        for step in [0.3, 1e-2, 1e-4] {
            for (q, mu) in [(0.01, 1.0), (0.3, 0.04), (1e-6, 4.0), (0.95, 1.5), (0.018, 0.37)] {
                check(Pair::Removal { q, mu }, Direction::Forward, step);
                check(Pair::Removal { q, mu }, Direction::Backward, step);
                check(Pair::Replacement { q, mu }, Direction::Forward, step);
                check(Pair::FixedSize { q, mu }, Direction::Forward, step);
            }
            check(Pair::Gaussian { mu: 0.7 }, Direction::Forward, step);
            check(Pair::Laplace { epsilon: 0.73 }, Direction::Forward, step);
            check(Pair::Pure { epsilon: 1.01 }, Direction::Forward, step);
        }
    }

    /// The discretised curve touches the true one at grid points and lies above it elsewhere.
    #[test]
    fn the_curve_interpolates_from_above() {
        let step = 0.05;
        for pair in [
            Pair::Removal { q: 0.02, mu: 1.0 },
            Pair::Replacement { q: 0.02, mu: 1.0 },
            Pair::FixedSize { q: 0.02, mu: 1.0 },
            Pair::Gaussian { mu: 0.5 },
            Pair::Laplace { epsilon: 0.4 },
        ] {
            let grid = discretise(pair, Direction::Forward, step, &WHOLE);
            let curve = |epsilon: f64| {
                grid.infinite
                    + grid
                        .mass
                        .iter()
                        .enumerate()
                        .map(|(i, m)| m * (-(epsilon - grid.loss(i)).exp_m1()).max(0.0))
                        .sum::<f64>()
            };
            for k in 1..8 {
                let on_grid = grid.offset + f64::from(k) * step;
                if on_grid < 0.0 {
                    continue;
                }
                let (got, want) = (curve(on_grid), pair.delta(on_grid));
                assert!((got - want).abs() < 1e-13, "{pair:?} {on_grid}: {got} {want}");
                let between = on_grid + 0.37 * step;
                assert!(curve(between) >= pair.delta(between) * (1.0 - 1e-9));
            }
        }
    }
}
