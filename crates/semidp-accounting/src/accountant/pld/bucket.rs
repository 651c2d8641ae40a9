//! How connecting the dots splits the mass of a bucket of losses between its ends, without cancellation.
//!
//! A bucket [ε, ε + h] of mass a = ∫P has the share ∫(P − e^ε Q)/(1 − e^{−h}) of it on its upper end. As a
//! difference of masses, themselves differences of tails, that would cancel: for a sampling rate q and noise z it is of the
//! order q/z smaller than the tails. But with y₀ the observation of loss ε,
//! $$P-e^{\varepsilon}Q=q\,\varphi(y-\mu)\,(1-e^{-\mu(y-y_0)})+q\,e^{\varepsilon}\varphi(y+\mu)\,(e^{\mu(y-y_0)}-1)$$
//! for the replacement pair, and the first term alone for the removal pair. All terms are positive, entire
//! functions of y, and Gauss's rule integrates them to a relative error of about 1e-15: with n nodes on a panel of width
//! w it is at most (n!)⁴/((2n+1)(2n)!³)·(κw)²ⁿ(1 + 2n/κw), where κ = |y| + μ + √(2n) bounds the m-th derivative of
//! φ(y ± μ) over the function, to the power 1/m.
//!
//! Three errors are left, and each is put on the safe side:
//! 1. *Densities* have a relative error of (48 + 3(|y| + μ)²)·2⁻⁵²: masses are multiplied by one plus that.
//! 2. *The observations* y₀ of grid losses are rounded. The upper end's share is multiplied by a bound on what a shift of
//!    y₀ does to it. That moves mass upwards by less than the rounding of ε itself.
//! 3. *Slivers* of mass between an exact and a rounded y₀ are counted in the neighbouring bucket, where the split, linear in
//!    e^{−L}, extends beyond the bucket's end: an error of the square of the sliver's width over the bucket's.

use super::grid::Direction;
use super::pair::{Pair, Point, removal_point, replacement_point};
use crate::math::{normal, quadrature};

/// Panels no wider than this over κ take [`NARROW`] nodes: relative error 3e-16.
const NARROW_PANEL: f64 = 0.35;
const NARROW: usize = 5;
/// Wider ones take [`WIDE`] nodes: relative error below 1e-20.
const WIDE_PANEL: f64 = 8.0;
const WIDE: usize = 16;
/// Below this observation Q has 6e-39 of its mass; it is counted on the worse end of its bucket.
const LOWEST: f64 = -13.0;
/// So far above μ a normal law has less mass than the smallest number.
const HIGHEST: f64 = 39.0;
/// With a larger shift, wide buckets are differences of tails: φ(y) and φ(y−μ) hardly overlap.
const LARGE_SHIFT: f64 = 50.0;

/// Below this |y| + μ the densities at y, y − μ and y + μ follow from one another.
const NEAR_ZERO: f64 = 25.0;

/// The mass of a bucket, and its share on the upper end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Split {
    pub(super) mass: f64,
    pub(super) up: f64,
    /// By how much `up` may have been raised.
    pub(super) moved: f64,
}

/// An end of a bucket: a grid loss and the observation of that loss.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    loss: f64,
    point: Point,
}

/// The loss densities of a pair, by bucket.
pub(super) struct Buckets {
    pair: Pair,
    q: f64,
    mu: f64,
    /// Whether Q is sampled as well, so that the second term above counts.
    both: bool,
    step: f64,
    /// 1/(1 − e^{−h}).
    scale: f64,
    narrow: [(f64, f64); NARROW],
    wide: [(f64, f64); WIDE],
}

impl Buckets {
    pub(super) fn new(pair: Pair, step: f64) -> Self {
        let (q, mu, both) = match pair {
            Pair::Removal { q, mu } | Pair::FixedSize { q, mu } => (q, mu, false),
            Pair::Replacement { q, mu } => (q, mu, true),
            // N(μ) against N(0) is N(μ/2) against N(−μ/2).
            Pair::Gaussian { mu } => (1.0, 0.5 * mu, true),
            Pair::Laplace { .. } | Pair::Pure { .. } => (1.0, 0.0, false),
        };
        let unit_interval = |(x, weight): (f64, f64)| (0.5 * (1.0 + x), 0.5 * weight);
        Self {
            pair,
            q,
            mu,
            both,
            step,
            scale: -1.0 / (-step).exp_m1(),
            narrow: quadrature::gauss_legendre().map(unit_interval),
            wide: quadrature::gauss_legendre().map(unit_interval),
        }
    }

    pub(super) fn edge(&self, loss: f64) -> Edge {
        let point = match self.pair {
            Pair::Removal { .. } | Pair::FixedSize { .. } => removal_point(self.q, self.mu, loss),
            Pair::Replacement { .. } | Pair::Gaussian { .. } => replacement_point(self.q, self.mu, loss),
            Pair::Laplace { .. } | Pair::Pure { .. } => Point { y: loss, error: 0.0 },
        };
        Edge { loss, point }
    }

    /// Splits the bucket between two neighbouring grid losses, without the atom of a pure mechanism at its largest loss;
    /// rounded to the safe side of the pair read in this direction.
    pub(super) fn split(&self, low: Edge, high: Edge, direction: Direction) -> Split {
        let unit = f64::EPSILON;
        match self.pair {
            Pair::Pure { .. } => return Split::default(),
            Pair::Laplace { epsilon } => return self.laplace(epsilon, low.loss),
            _ => {}
        }
        let from = low.point.y.max(LOWEST.min(high.point.y));
        let to = high.point.y.min(self.mu + HIGHEST);
        if from > to || to == f64::NEG_INFINITY {
            return Split::default();
        }
        let doubt = low.point.error + high.point.error;
        let width = (to - from).max(doubt);
        let reach = from.abs().max(to.abs()) + self.mu;
        let panel = |nodes: usize| reach + (2.0 * nodes as f64).sqrt();
        let is_whole = low.point.y == from && high.point.y == to;
        let (mass, up) = if is_whole && width * panel(NARROW) <= NARROW_PANEL {
            self.narrow(low, width, reach)
        } else if self.mu > LARGE_SHIFT && width > 1.0 {
            self.tails(low, from, to)
        } else {
            let panels = (width * panel(WIDE) / WIDE_PANEL).ceil().max(1.0);
            self.wide(low, from, width / panels, panels as usize)
        };
        // By how much a shift of y₀ changes the share. From far below the mass it changes little.
        let steepest = 1.0 / width + panel(NARROW);
        let at_low = if low.point.y < from { steepest.min(1.0 / (from - low.point.y)) } else { steepest };
        let shift = 4.0 * (low.point.error * at_low + high.point.error * steepest);
        let error = 1.0 + unit * (48.0 + 3.0 * reach * reach);
        let (mut mass, mut up) = (mass * error, (up * error).min(mass * error));
        let rest = if from > low.point.y {
            (1.0 - self.q) * normal::cdf(from) + self.q * normal::cdf(from - self.mu)
        } else {
            0.0
        };
        let gap = if low.point.y == f64::NEG_INFINITY {
            // The lower end may lie below the lowest loss ln(1−q), where P − e^ε Q has (1 − q − e^ε)φ(y) as well.
            let lowest = (-self.q).ln_1p();
            let doubt = 4.0 * unit * (low.loss.abs() + lowest.abs());
            let gap = low.loss - lowest + if direction == Direction::Forward { -doubt } else { doubt };
            -(1.0 - self.q) * gap.min(0.0).exp_m1() * normal::cdf(to) * self.scale
        } else {
            0.0
        };
        mass += rest;
        let moved = match direction {
            // More than a thousandth of the bucket is in doubt: losses are finer than numbers.
            _ if 1e3 * doubt > width => {
                up = if direction == Direction::Forward { mass } else { 0.0 };
                mass
            }
            Direction::Forward => {
                let moved = up * shift;
                up = (up + moved + gap * error + rest).min(mass);
                moved
            }
            Direction::Backward => {
                up = (up * (1.0 - shift) + gap) * (2.0 - error);
                up = (up * (2.0 - error)).max(0.0);
                0.0
            }
        };
        Split { mass, up, moved }
    }

    /// One panel over which no exponential varies much.
    fn narrow(&self, low: Edge, width: f64, reach: f64) -> (f64, f64) {
        let (q, mu, start) = (self.q, self.mu, low.point.y);
        let (mut none, mut sampled, mut up, mut other) = (0.0, 0.0, 0.0, 0.0);
        if reach < NEAR_ZERO {
            // φ(y) = φ(y−μ)·e^{−μ(y−μ/2)}, φ(y+μ) = φ(y)·e^{−μ(y+μ/2)}, and e^{μ(y−y₀)} is at hand.
            for &(x, weight) in &self.narrow {
                let offset = width * x;
                let rise = rise(mu * offset);
                let fall = 1.0 / (1.0 + rise);
                let near = weight * bell(start - mu + offset);
                sampled += near;
                none += near * fall;
                up += near * rise * fall;
                other += near * rise * fall * fall;
            }
            none *= (-mu * (start - 0.5 * mu)).exp();
            if self.both {
                other *= (low.loss - 2.0 * mu * start).exp();
            }
        } else {
            let factor = if self.both { low.loss.exp() } else { 0.0 };
            for &(x, weight) in &self.narrow {
                let offset = width * x;
                let rise = rise(mu * offset);
                let near = weight * bell(start - mu + offset);
                sampled += near;
                none += weight * bell(start + offset);
                up += near * rise / (1.0 + rise);
                other += weight * bell(start + mu + offset) * rise * factor;
            }
        }
        if self.both {
            up += other;
        }
        (width * ((1.0 - q) * none + q * sampled), width * q * up * self.scale)
    }

    /// Panels of equal width, upwards from `from`.
    fn wide(&self, low: Edge, from: f64, width: f64, panels: usize) -> (f64, f64) {
        let (q, mu) = (self.q, self.mu);
        let (mut mass, mut up) = (0.0, 0.0);
        for panel in 0..panels {
            let start = from + panel as f64 * width;
            for &(x, weight) in &self.wide {
                let y = start + width * x;
                let left = mu * (y - low.point.y).max(0.0);
                let near = bell(y - mu);
                mass += weight * ((1.0 - q) * bell(y) + q * near);
                up -= weight * near * (-left).exp_m1();
                if self.both {
                    up += weight * grown(low.loss - 0.5 * (y + mu).powi(2), left) * NORM;
                }
            }
        }
        (width * mass, width * q * up * self.scale)
    }

    /// By tails, where e^{μ(y−y₀)} is so large for most y that differences do not cancel.
    fn tails(&self, low: Edge, from: f64, to: f64) -> (f64, f64) {
        let (q, mu, y) = (self.q, self.mu, low.point.y);
        let none = mass(from, to);
        let (near, far) = (mass(from - mu, to - mu), mass(from + mu, to + mu));
        let times = |log: f64, mass: f64| if mass == 0.0 { 0.0 } else { log.exp() * mass };
        // Multiples of φ(y) that equal the near and the far term at y₀.
        let mut up = (near - times(mu * (y - 0.5 * mu), none)).max(0.0);
        if self.both {
            up += (times(low.loss - mu * (y + 0.5 * mu), none) - times(low.loss, far)).max(0.0);
        }
        (((1.0 - q) * none + q * near) * (1.0 + 1e-11), q * up * self.scale * (1.0 + 1e-11))
    }

    /// The loss density e^{−(ε₀−ℓ)/2}/4 below the largest loss ε₀, in closed form. Both ends' masses increase with the
    /// part of the bucket that lies below ε₀, which is rounded up.
    fn laplace(&self, largest: f64, low: f64) -> Split {
        let unit = f64::EPSILON;
        let gap = largest - low;
        if gap <= 0.0 {
            return Split::default();
        }
        let width = (gap + 2.0 * unit * largest).min(self.step);
        let density = (-0.5 * gap).exp() * (1.0 + unit * (32.0 + 2.0 * largest));
        let mass = 0.5 * density * (0.5 * width).exp_m1();
        let up = 2.0 * density * (0.25 * width).sinh().powi(2) * self.scale;
        let moved = 4.0 * unit * largest / self.step * up;
        Split { mass, up: (up + moved).min(mass), moved }
    }
}

/// φ(w).
fn bell(w: f64) -> f64 {
    NORM * (-0.5 * w * w).exp()
}

/// 1/√(2π).
const NORM: f64 = 0.398_942_280_401_432_7;

/// e^v − 1 for 0 ≤ v ≤ [`NARROW_PANEL`], by its series.
fn rise(v: f64) -> f64 {
    let mut sum = 1.0;
    for n in (2..=12).rev() {
        sum = 1.0 + sum * v * INVERSES[n];
    }
    v * sum
}

const INVERSES: [f64; 13] = {
    let mut inverses = [0.0; 13];
    let mut n = 1;
    while n < 13 {
        inverses[n] = 1.0 / n as f64;
        n += 1;
    }
    inverses
};

/// e^x(e^v − 1), also where the second factor overflows.
fn grown(x: f64, v: f64) -> f64 {
    if v > 1.0 { (x + v).exp() * -(-v).exp_m1() } else { x.exp() * v.exp_m1() }
}

/// P(from < N ≤ to), from the side where the tails are small.
fn mass(from: f64, to: f64) -> f64 {
    let mass = if from >= 0.0 {
        normal::sf(from) - normal::sf(to)
    } else if to <= 0.0 {
        normal::cdf(to) - normal::cdf(from)
    } else {
        1.0 - normal::cdf(from) - normal::sf(to)
    };
    mass.max(0.0)
}
