//! The two atoms that connecting the dots puts on the ends of a bucket, each rounded up.
//!
//! For a bucket of losses [ε, ε + h] with masses of densities P and Q the atoms are
//! $$\frac1{1-e^{-h}}\int(P-e^{\varepsilon}Q)\ \text{on its upper end,}\qquad
//!   \frac1{e^{h}-1}\int(e^{\varepsilon+h}Q-P)\ \text{on its lower end.}$$
//! A difference of masses, themselves differences of tails, would cancel: for a sampling rate q and noise z
//! both are of the order q/z smaller than the tails. But with y₀ and y₁ the observations of losses ε and ε + h,
//! $$P-e^{\varepsilon}Q=q\,\varphi(y-\mu)\,(1-e^{-\mu(y-y_0)})+q\,e^{\varepsilon}\varphi(y+\mu)\,(e^{\mu(y-y_0)}-1)$$
//! for the replacement pair, and the first term alone for the removal pair; the lower end has the same with
//! y₁ − y. All terms are positive, entire functions of y, and Gauss's rule integrates them to a relative error
//! of about 1e-15: with n nodes on a panel of width w it is at most (n!)⁴/((2n+1)(2n)!³)·(κw)²ⁿ(1 + 2n/κw), where
//! κ = |y| + μ + √(2n) bounds the derivatives of φ(y ± μ), m-th over the function, to the power 1/m.
//!
//! Every atom is multiplied by a bound on its relative error: of the densities, of the rule, and of the ends of
//! the bucket. Hence the law has at least the exact law's mass on every loss, and δ of any composition is at least
//! as large.

use super::pair::{Pair, Point, removal_point, replacement_point};
use crate::math::{normal, quadrature};

/// Panels no wider than this over κ take [`NARROW`] nodes: relative error 3e-16.
const NARROW_PANEL: f64 = 0.35;
const NARROW: usize = 5;
/// Wider ones take [`WIDE`] nodes: relative error below 1e-20.
const WIDE_PANEL: f64 = 8.0;
const WIDE: usize = 16;
/// Below this observation Q has 6e-39 of its mass; it is counted on both ends of its bucket.
const LOWEST: f64 = -13.0;
/// So far above μ a normal law has less mass than the smallest number.
const HIGHEST: f64 = 39.0;
/// With a larger shift, wide buckets are differences of tails: φ(y) and φ(y−μ) hardly overlap.
const LARGE_SHIFT: f64 = 50.0;

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
    /// q/(1 − e^{−h}) and q/(e^h − 1).
    scale: (f64, f64),
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
            scale: (q / -(-step).exp_m1(), q / step.exp_m1()),
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

    /// The atoms (lower, upper) of the bucket between two neighbouring grid losses; without the atom of a pure
    /// mechanism at its largest loss.
    pub(super) fn atoms(&self, low: Edge, high: Edge) -> (f64, f64) {
        match self.pair {
            Pair::Pure { .. } => return (0.0, 0.0),
            Pair::Laplace { epsilon } => return self.laplace(epsilon, low.loss),
            _ => {}
        }
        let unit = f64::EPSILON;
        if high.point.y == f64::NEG_INFINITY {
            return (0.0, 0.0);
        }
        let doubt = low.point.error + high.point.error;
        let from = low.point.y.max(LOWEST.min(high.point.y));
        let to = high.point.y.min(self.mu + HIGHEST);
        if from > to {
            return (0.0, 0.0);
        }
        let width = (to - from).max(doubt);
        let largest = from.abs().max(to.abs());
        let reach = largest + self.mu;
        let panel = |nodes: usize| reach + (2.0 * nodes as f64).sqrt();
        let (down, up) = if low.point.y == from && high.point.y == to && width * panel(NARROW) <= NARROW_PANEL
        {
            self.narrow(low, high, width)
        } else if self.mu > LARGE_SHIFT && width > 1.0 {
            self.tails(low, high)
        } else {
            let panels = (width * panel(WIDE) / WIDE_PANEL).ceil().max(1.0);
            self.wide(low, high, from, width / panels, panels as usize)
        };
        // By how much a shift of either end changes the integrals. A lower end far below the mass changes them little.
        let steepest = 1.0 / width + panel(NARROW);
        let at_low = if low.point.y < from { steepest.min(1.0 / (from - low.point.y)) } else { steepest };
        let at_high = if high.point.y > to { steepest.min(1.0 / (high.point.y - to)) } else { steepest };
        let ends = 4.0 * (low.point.error * at_low + high.point.error * at_high);
        let error = unit * (64.0 + 3.0 * reach * reach + 4.0 * high.loss.abs()) + ends;
        let (mut down, mut up) = (down * (1.0 + error), up * (1.0 + error));
        if from > low.point.y {
            // What lies below the integral counts on both ends; and the lower end may lie below the lowest loss ln(1−q),
            // where P − e^ε Q has (1 − q − e^ε)φ(y) as well.
            let below = (1.0 - self.q) * normal::cdf(from) + self.q * normal::cdf(from - self.mu);
            (down, up) = (down + below, up + below);
        }
        if low.point.y == f64::NEG_INFINITY {
            let lowest = (-self.q).ln_1p();
            let gap = low.loss - lowest - 4.0 * unit * (low.loss.abs() + lowest.abs());
            up += (1.0 - self.q) * gap.exp_m1() / (-self.step).exp_m1()
                * normal::cdf(high.point.y)
                * (1.0 + 1e-13);
        }
        (down, up)
    }

    /// One panel over which no exponential varies much.
    fn narrow(&self, low: Edge, high: Edge, width: f64) -> (f64, f64) {
        let v = self.mu * width;
        let rises: [f64; NARROW] = std::array::from_fn(|i| rise(v * self.narrow[i].0));
        let (mut down, mut up) = (0.0, 0.0);
        let losses = if self.both { (low.loss.exp(), high.loss.exp()) } else { (0.0, 0.0) };
        for (i, &(x, weight)) in self.narrow.iter().enumerate() {
            let y = low.point.y + width * x;
            // e^{μ(y−y₀)} − 1 and e^{μ(y₁−y)} − 1.
            let (left, right) = (rises[i], rises[NARROW - 1 - i]);
            let near = weight * bell(y - self.mu);
            up += near * left / (1.0 + left);
            down += near * right;
            if self.both {
                let far = weight * bell(y + self.mu);
                up += far * losses.0 * left;
                down += far * losses.1 * right / (1.0 + right);
            }
        }
        (self.scale.1 * width * down, self.scale.0 * width * up)
    }

    /// Panels of equal width, upwards from `from`.
    fn wide(&self, low: Edge, high: Edge, from: f64, width: f64, panels: usize) -> (f64, f64) {
        let mu = self.mu;
        let (mut down, mut up) = (0.0, 0.0);
        for panel in 0..panels {
            let start = from + panel as f64 * width;
            for &(x, weight) in &self.wide {
                let y = start + width * x;
                let (left, right) = (mu * (y - low.point.y).max(0.0), mu * (high.point.y - y).max(0.0));
                let (near, far) = (-0.5 * (y - mu).powi(2), -0.5 * (y + mu).powi(2));
                up -= weight * near.exp() * (-left).exp_m1();
                down += weight * grown(near, right);
                if self.both {
                    up += weight * grown(far + low.loss, left);
                    down -= weight * (far + high.loss).exp() * (-right).exp_m1();
                }
            }
        }
        let norm = width / std::f64::consts::TAU.sqrt();
        (self.scale.1 * norm * down, self.scale.0 * norm * up)
    }

    /// By tails, where e^{μ(y₁−y₀)} is so large that differences do not cancel.
    fn tails(&self, low: Edge, high: Edge) -> (f64, f64) {
        let (from, to, mu) = (low.point.y, high.point.y, self.mu);
        let none = mass(from, to);
        let (near, far) = (mass(from - mu, to - mu), mass(from + mu, to + mu));
        // φ(y) = φ(y−μ)e^{−μ(y−μ/2)}: multiples of φ(y) that equal the near and the far term at an end.
        let near_at = |y: f64| (mu * (y - 0.5 * mu)).exp();
        let far_at = |edge: Edge| (edge.loss - mu * (edge.point.y + 0.5 * mu)).exp();
        let times = |factor: f64, mass: f64| if mass == 0.0 { 0.0 } else { factor * mass };
        let mut up = (near - times(near_at(from), none)).max(0.0);
        let mut down = (times(near_at(to), none) - near).max(0.0);
        if self.both {
            up += (times(far_at(low), none) - low.loss.exp() * far).max(0.0);
            down += (high.loss.exp() * far - times(far_at(high), none)).max(0.0);
        }
        // Exponents of this size have an error of 1e-16 times μ².
        let error = 1.0 + 1e-11 + 8.0 * f64::EPSILON * (mu * mu + from.abs().min(to.abs()) * mu);
        (self.scale.1 * down * error, self.scale.0 * up * error)
    }

    /// The loss density e^{−(ε₀−ℓ)/2}/4 below the largest loss ε₀, in closed form. Both atoms increase with the
    /// part of the bucket that lies below ε₀, which is rounded up.
    fn laplace(&self, largest: f64, low: f64) -> (f64, f64) {
        let unit = f64::EPSILON;
        let gap = largest - low;
        if gap <= 0.0 {
            return (0.0, 0.0);
        }
        let h = self.step;
        let width = (gap + 2.0 * unit * largest).min(h);
        let density = (-0.5 * gap).exp() * (1.0 + unit * (32.0 + 2.0 * largest));
        let up = 2.0 * (0.25 * width).sinh().powi(2) / -(-h).exp_m1();
        let down =
            -0.5 * (-0.5 * width).exp_m1() * (0.5 * width).exp() * (h - 0.5 * width).exp_m1() / h.exp_m1();
        (density * down, density * up)
    }
}

/// φ(w).
fn bell(w: f64) -> f64 {
    const NORM: f64 = 0.398_942_280_401_432_7;
    NORM * (-0.5 * w * w).exp()
}

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
