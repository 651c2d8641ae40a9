//! Discretisation of one privacy loss distribution: connect the dots (Doroshenko, Ghazi, Kamath,
//! Kumar and Manurangsi 2022).
//!
//! Each bucket between neighbouring grid losses, of mass a under P and b under Q, is replaced by
//! two atoms at its ends that keep both masses. The hockey-stick curve of the result interpolates
//! the true one and lies on or above it, so the discretised pair dominates the true pair, and
//! goes on doing so under composition. Mass above the grid becomes infinite loss, mass below it
//! moves up to the lowest grid point: both only pessimistic.

use super::pair::{Pair, removal_point_above};
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

/// The atom that a bucket [ε_i, ε_i + step] with P-mass `a` and `excess` = a − e^{ε_i} b puts on
/// its upper end. Rounding can only move it within [0, a].
fn upper_atom(a: f64, excess: f64, step: f64) -> f64 {
    (excess / -(-step).exp_m1()).clamp(0.0, a)
}

/// Puts each bucket's mass on its two ends: `survival(k)` is (P, Q) of losses above the k-th grid
/// loss `loss(k)`, k = 0 ..= buckets. Returns the atoms and P's mass above the last.
pub(crate) fn connect(
    buckets: usize,
    step: f64,
    survival: impl Fn(usize) -> (f64, f64),
    loss: impl Fn(usize) -> f64,
) -> (Vec<f64>, f64) {
    let mut atoms = vec![0.0; buckets + 1];
    let mut edge = survival(0);
    for k in 0..buckets {
        let next = survival(k + 1);
        let (a, b) = ((edge.0 - next.0).max(0.0), (edge.1 - next.1).max(0.0));
        let up = upper_atom(a, a - loss(k).exp() * b, step);
        atoms[k] += a - up;
        atoms[k + 1] += up;
        edge = next;
    }
    (atoms, edge.0)
}

/// A symmetric pair needs its non-negative losses only: p_{−k} = e^{−kh} p_k.
fn symmetric(pair: Pair, step: f64, range: &Range) -> LossMass {
    let reach = pair.largest_loss(range.log_tail);
    let capped = range.cap < reach;
    // One more than fits: an atom at the largest loss must lie below the last grid point, however
    // its quotient by the step was rounded, or it would count as infinite.
    let top =
        if capped { (range.cap / step).round() } else { (reach / step).floor() + 1.0 }.max(1.0) as usize;
    let bottom = top.min((range.deepest / step).ceil().max(1.0) as usize);
    let loss = |k: usize| k as f64 * step;
    let (upper, above) = connect(top, step, |k| pair.survival(loss(k)), loss);
    let mut mass = vec![0.0; bottom + top + 1];
    let mut rest = above;
    if capped {
        // The mirror image of what the cap leaves out.
        mass[0] = pair.survival(loss(top)).1;
        rest += mass[0];
    }
    for k in (1..=top).rev() {
        let mirrored = upper[k] * (-loss(k)).exp();
        mass[bottom + k] = upper[k];
        mass[bottom - k.min(bottom)] += mirrored;
        rest += upper[k] + mirrored;
    }
    mass[bottom] = (1.0 - rest).max(0.0);
    LossMass { offset: 0.0, step, first: -(bottom as i64), mass, infinite: if capped { 0.0 } else { above } }
}

/// A normal tail, stored on the side where it is small.
#[derive(Clone, Copy)]
struct Edge {
    tail: f64,
    upper: bool,
}

impl Edge {
    fn new(y: f64) -> Self {
        let upper = y >= 0.0;
        Self { tail: if upper { normal::sf(y) } else { normal::cdf(y) }, upper }
    }

    fn mass_to(self, next: Self) -> f64 {
        let mass = match (self.upper, next.upper) {
            (true, _) => self.tail - next.tail,
            (false, false) => next.tail - self.tail,
            (false, true) => 1.0 - self.tail - next.tail,
        };
        mass.max(0.0)
    }

    fn below(self) -> f64 {
        if self.upper { 1.0 - self.tail } else { self.tail }
    }

    fn above(self) -> f64 {
        if self.upper { self.tail } else { 1.0 - self.tail }
    }
}

fn removal(q: f64, mu: f64, direction: Direction, step: f64, range: &Range) -> LossMass {
    let pair = Pair::Removal { q, mu };
    let lowest_loss = (-q).ln_1p();
    let offset = pair.offset();
    let bottom_loss = pair.smallest_loss(range.log_tail);
    let forward = direction == Direction::Forward;
    let top_loss = pair.largest_loss(range.log_tail).min(if forward { f64::INFINITY } else { range.deepest });
    let capped = forward && range.cap < top_loss - offset;
    let first = ((bottom_loss - offset) / step).floor();
    let last = if capped { (range.cap / step).round() } else { ((top_loss - offset) / step).ceil() };
    let (first, buckets) = (first as i64, (last - first).max(1.0) as usize);

    let above = |k: usize| (first + k as i64) as f64 * step + (offset - lowest_loss);
    let edges = |k: usize| {
        let y = if above(k) > 0.0 { removal_point_above(q, mu, above(k)) } else { f64::NEG_INFINITY };
        (Edge::new(y), Edge::new(y - mu))
    };
    let mut atoms = vec![0.0; buckets + 1];
    let bottom = edges(0);
    let mut edge = bottom;
    for k in 0..buckets {
        let next = edges(k + 1);
        let (none, sampled) = (edge.0.mass_to(next.0), edge.1.mass_to(next.1));
        let a = (1.0 - q) * none + q * sampled;
        // a − e^ε b with b = `none` and e^ε = (1−q) + (1−q)(e^{above} − 1).
        let excess = q * sampled - (1.0 - q) * above(k).exp_m1() * none;
        let up = upper_atom(a, excess, step);
        atoms[k] += a - up;
        atoms[k + 1] += up;
        edge = next;
    }
    let top = edge;
    match direction {
        Direction::Forward => {
            atoms[0] += (1.0 - q) * bottom.0.below() + q * bottom.1.below();
            let infinite = if capped { 0.0 } else { (1.0 - q) * top.0.above() + q * top.1.above() };
            LossMass { offset, step, first, mass: atoms, infinite }
        }
        Direction::Backward => {
            // The same atoms seen from Q: q_i = p_i e^{−ε_i} at loss −ε_i.
            for (k, atom) in atoms.iter_mut().enumerate() {
                *atom *= (-((first + k as i64) as f64 * step + offset)).exp();
            }
            atoms[buckets] += top.0.above();
            atoms.reverse();
            LossMass {
                offset: -offset,
                step,
                first: -(first + buckets as i64),
                mass: atoms,
                infinite: bottom.0.below(),
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
        let total: f64 = grid.mass.iter().sum::<f64>() + grid.infinite;
        let reverse: f64 = grid.mass.iter().enumerate().map(|(i, m)| m * (-grid.loss(i)).exp()).sum();
        assert!((total - 1.0).abs() < 1e-12, "{pair:?} {direction:?} {step}: total {total}");
        // Mass moved up from below the grid, and mass sent to infinity, are below 1e-20.
        assert!((reverse - 1.0).abs() < 1e-12, "{pair:?} {direction:?} {step}: reverse {reverse}");
        let moments = grid.moments(0.0);
        assert!(moments.log_mgf.abs() < 1e-12);
        let minus = grid.moments(-1.0);
        assert!(minus.log_mgf.abs() < 1e-12);
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
                let (got, want) = (curve(on_grid), pair.curve(on_grid));
                assert!((got - want).abs() < 1e-13, "{pair:?} {on_grid}: {got} {want}");
                let between = on_grid + 0.37 * step;
                assert!(curve(between) >= pair.curve(between) * (1.0 - 1e-9));
            }
        }
    }
}
