//! Composition of discretised loss distributions by the fast Fourier transform, tilted.
//!
//! Let S be the total loss, K(θ) = ln E[e^{θS}] its cumulant generating function (finite part).
//! With θ at the saddle point for the ε of interest, the tilted law p̃ ∝ p e^{θℓ} has its bulk at
//! ε, so the transform resolves δ to relative accuracy however small it is.
//!
//! Four errors are possible, and each is bounded and added to δ, never subtracted:
//! 1. *Wrap-around from above.* Total losses beyond the window's upper end would re-enter at its
//!    lower end and be lost: Chernoff's bound on their probability is added to δ.
//! 2. *Mass that wraps around* and lands above ε is counted where it does not belong. That only
//!    adds to δ; Chernoff bounds under the tilted law at both ends keep it negligible.
//! 3. *Rounding of the transforms.* A transform of length N has a relative ℓ2 error of at most
//!    c·u·log₂N (Higham 2002, section 24.1); the T-th power multiplies it by T because |φ̂| ≤ 1.
//!    Cauchy–Schwarz against the weights e^{−θ(ℓ−ε)} turns it into an allowance on δ.
//! 4. *Rounding of the masses* themselves, relative 1e-14 per step at most, is covered by a factor.

use super::grid::{LossMass, Moments};
use crate::math::search;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::cell::RefCell;
use std::sync::Arc;

/// The longest transform: 2^22 real numbers are 32 MiB and a tenth of a second.
pub(crate) const LARGEST_TRANSFORM: usize = 1 << 22;

/// Chernoff budgets: what leaves the window above, relative to δ (added to δ), and the tilted mass
/// that may wrap around at either end and be counted twice.
const UPPER_LOSS: f64 = 1e-6;
const WRAP: f64 = 1e-7;
/// The constant of the transform's error bound, in units of log₂N.
const ROUNDING: f64 = 8.0 * f64::EPSILON;
/// What counts as negligible next to δ when a tilt is chosen.
const NEGLIGIBLE: f64 = 1e-5;

/// Independent compositions of discretised losses on one grid.
pub(crate) struct Composition {
    pub(crate) parts: Vec<(LossMass, u64)>,
    pub(crate) step: f64,
}

/// Where to look: the tilt and the loss it centres on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saddle {
    pub(crate) theta: f64,
    pub(crate) epsilon: f64,
    /// Saddle-point estimate of ln δ(epsilon).
    pub(crate) log_delta: f64,
}

/// Cumulants of the total loss at a tilt, and what doubling the step would do.
#[derive(Debug, Clone, Copy)]
struct Cumulants {
    value: f64,
    mean: f64,
    variance: f64,
}

/// The composed, tilted law on a window of the grid.
pub(crate) struct Composed {
    theta: f64,
    step: f64,
    /// Loss of `probability[0]`.
    lowest: f64,
    probability: Vec<f64>,
    /// The loss at which weights are 1: δ = exp(log_scale)·Σ p̃ e^{−θ(ℓ−reference)}(...).
    reference: f64,
    scale: f64,
    /// Infinite loss and the bound on what left the window.
    extra: f64,
    /// ℓ2 rounding error of `probability`, times the ℓ2 norm of the weights.
    allowance: f64,
}

impl Composition {
    fn steps(&self) -> f64 {
        self.parts.iter().map(|(_, count)| *count as f64).sum()
    }

    fn cumulants(&self, theta: f64) -> Cumulants {
        let mut total = Cumulants { value: 0.0, mean: 0.0, variance: 0.0 };
        for (grid, count) in &self.parts {
            let Moments { log_mgf, mean, variance, .. } = grid.moments(theta);
            let count = *count as f64;
            total.value += count * log_mgf;
            total.mean += count * mean;
            total.variance += count * variance;
        }
        total
    }

    /// Root mean square of the one-step standard deviation under the tilt.
    pub(crate) fn step_deviation(&self, theta: f64) -> f64 {
        (self.cumulants(theta).variance / self.steps()).sqrt()
    }

    /// Estimates ln(δ_h/δ), the pessimism of this grid at the tilt. Doubling the step would move
    /// the odd grid points' mass to their neighbours and multiply each step's tilted weight there
    /// by 1+κ: Σ T κ·odd is the exact first-order cost of the doubling, which is three times the
    /// cost of the present step where the loss is smooth on the scale of the grid (error ∝ h²).
    pub(crate) fn pessimism(&self, theta: f64) -> f64 {
        let h = self.step;
        let kappa = ((theta * h).exp_m1() + (-(1.0 + theta) * h).exp_m1() - (-h).exp_m1())
            / (1.0 + (-h).exp());
        self.parts
            .iter()
            .map(|(grid, count)| {
                let odd = grid.moments(theta).odd;
                *count as f64 * kappa * odd * if odd > 0.4 { 1.0 / 3.0 } else { 1.0 }
            })
            .sum()
    }

    /// ln of e^{K−θε}/(θ(1+θ)) with its Gaussian correction: Laplace's method for the inversion
    /// integral δ(ε) = (1/2πi)∫ e^{K(λ)−λε}/(λ(1+λ)) dλ.
    pub(crate) fn saddle_at(&self, theta: f64) -> Saddle {
        let k = self.cumulants(theta);
        let (inverse, shifted) = (1.0 / theta, 1.0 / (1.0 + theta));
        let epsilon = k.mean - inverse - shifted;
        let curvature = k.variance + inverse * inverse + shifted * shifted;
        let log_delta = k.value - theta * epsilon - (theta * (1.0 + theta)).ln()
            - 0.5 * (std::f64::consts::TAU * curvature).ln();
        Saddle { theta, epsilon, log_delta }
    }

    /// The saddle point whose estimated δ is the given one; `start` is a first guess of θ.
    pub(crate) fn saddle_for_delta(&self, log_delta: f64, start: f64) -> Saddle {
        let log_theta = search::increasing_root(start.ln(), 0.7, 2e-3, |log_theta| {
            log_delta - self.saddle_at(log_theta.clamp(-40.0, 40.0).exp()).log_delta
        });
        self.saddle_at(log_theta.clamp(-40.0, 40.0).exp())
    }

    /// The saddle point for a given ε.
    pub(crate) fn saddle_for_epsilon(&self, epsilon: f64, start: f64) -> Saddle {
        let scale = self.cumulants(0.0).variance.sqrt().max(self.step);
        let log_theta = search::increasing_root(start.ln(), 0.7, 2e-3, |log_theta| {
            (self.saddle_at(log_theta.clamp(-40.0, 40.0).exp()).epsilon - epsilon) / scale
        });
        Saddle { epsilon, ..self.saddle_at(log_theta.clamp(-40.0, 40.0).exp()) }
    }

    /// The tilt to transform at: a part of the saddle point's, as long as rounding stays
    /// negligible. At the full tilt a rare large loss, irrelevant for δ, can carry much of the
    /// tilted mass and stretch the window.
    fn transform_tilt(&self, saddle: Saddle, log_delta: f64) -> f64 {
        let unit = (ROUNDING * 22.0 * (self.steps() + 1.0)).ln();
        for part in [0.4, 0.6, 0.8] {
            let theta = part * saddle.theta;
            let log_scale = self.cumulants(theta).value - theta * saddle.epsilon;
            let log_weights = -0.5 * (-(-2.0 * theta * self.step).exp_m1()).ln();
            if log_scale + unit + log_weights < log_delta + NEGLIGIBLE.ln() {
                return theta;
            }
        }
        saddle.theta
    }

    /// The window of losses to transform around a saddle point, for answers near exp(log_delta).
    fn window(&self, saddle: Saddle, theta: f64, log_delta: f64) -> (f64, f64) {
        let at = self.cumulants(theta);
        let spread = at.variance.sqrt().max(self.step);
        // P(S ≥ hi) ≤ e^{K(t)−t·hi} and, under the tilted law, P̃(S ≥ hi) ≤ e^{K(t)−K(θ)−(t−θ)·hi}
        // for any t > θ: solve each for hi, and take the best t on a coarse ladder.
        let budget = -(log_delta + UPPER_LOSS.ln());
        let escape = best_on_ladder(theta, |t| (self.cumulants(t).value + budget) / t);
        let wrap = best_on_ladder(0.5 / spread, |t| {
            (self.cumulants(theta + t).value - at.value - WRAP.ln()) / t
        });
        // Likewise P̃(S ≤ lo) ≤ e^{K(θ−t)−K(θ)+t·lo}.
        let low = -best_on_ladder(0.5 / spread, |t| {
            (self.cumulants(theta - t).value - at.value - WRAP.ln()) / t
        });
        let (lo, hi) = (low, escape.max(wrap));
        (lo.min(saddle.epsilon - 4.0 * self.step), hi.max(saddle.epsilon + 4.0 * self.step))
    }

    /// The number of grid points that [`Composition::compose`] would transform.
    pub(crate) fn window_size(&self, saddle: Saddle, log_delta: f64) -> f64 {
        let (lo, hi) = self.window(saddle, self.transform_tilt(saddle, log_delta), log_delta);
        (hi - lo) / self.step + 2.0
    }

    /// Transforms, multiplies and transforms back, for answers near `exp(log_delta)`.
    pub(crate) fn compose(&self, saddle: Saddle, log_delta: f64) -> Composed {
        let theta = self.transform_tilt(saddle, log_delta);
        let (lo, hi) = self.window(saddle, theta, log_delta);
        let size = transform_size((hi - lo) / self.step + 2.0);
        if std::env::var("DBG").is_ok() { eprintln!("{saddle:?} ld {log_delta} lo {lo} hi {hi} size {size} step {} pess {} sd {}", self.step, self.pessimism(theta), self.cumulants(theta).variance.sqrt()); }
        let mut log_scale = -theta * saddle.epsilon;
        let mut log_finite = 0.0;
        let mut offset = 0.0;
        let mut error = 0.0;
        let mut spectrum: Vec<Complex<f64>> = Vec::new();
        let mut window = vec![0.0; size];
        let forward = plan_forward(size);
        let mut transformed = forward.make_output_vec();
        for (grid, count) in &self.parts {
            let log_mgf = grid.moments(theta).log_mgf;
            window.fill(0.0);
            let squares = grid.fold_tilted(theta, log_mgf, &mut window);
            forward.process(&mut window, &mut transformed).expect("lengths agree");
            power_into(&mut spectrum, &transformed, *count);
            let count = *count as f64;
            log_scale += count * log_mgf;
            log_finite += count * (-grid.infinite).ln_1p();
            offset += count * grid.offset;
            error += count * squares.sqrt();
        }
        // Rounding leaves a residue in the imaginary parts that a real signal does not have.
        spectrum[0].im = 0.0;
        if size % 2 == 0 {
            spectrum[size / 2].im = 0.0;
        }
        plan_inverse(size).process(&mut spectrum, &mut window).expect("lengths agree");

        // Rotate so that index 0 is the lowest loss of the window; clear negative rounding noise.
        let first = ((lo - offset) / self.step).floor() as i64;
        window.rotate_left(first.rem_euclid(size as i64) as usize);
        let normalise = 1.0 / size as f64;
        for value in &mut window {
            *value = (*value * normalise).max(0.0);
        }
        let steps = self.steps();
        let top = offset + (first + size as i64) as f64 * self.step;
        // A window too long for a transform would lose mass: then nothing is promised.
        let escaped = if top >= hi { (log_delta + UPPER_LOSS.ln()).exp() } else { 1.0 };
        let rounding = ROUNDING * (size as f64).log2() * (error + 1.0);
        Composed {
            theta,
            step: self.step,
            lowest: offset + first as f64 * self.step,
            probability: window,
            reference: saddle.epsilon,
            scale: log_scale.exp() * (1.0 + 2e-14 * (steps + log_scale.abs() + 10.0)),
            extra: -log_finite.exp_m1() + escaped,
            allowance: rounding / (-(-2.0 * theta * self.step).exp_m1()).sqrt(),
        }
    }
}

impl Composed {
    /// Visits the cells of the grid from the top down until `visit` returns false. Inside a cell
    /// δ(ε) ≤ extra + scale·(A − e^{ε−reference}·B + allowance), (A, B) = `sums`.
    fn scan(&self, mut visit: impl FnMut(Cell) -> bool) {
        let mut sums = (0.0, 0.0);
        for (i, &p) in self.probability.iter().enumerate().rev() {
            let above = self.lowest - self.reference + i as f64 * self.step;
            let weight = (-self.theta * above).exp();
            if p > 0.0 {
                sums.0 += p * weight;
                sums.1 += p * weight * (-above).exp();
            }
            // The cell below grid point i.
            let lower = above - self.step;
            let allowance = self.allowance * (-self.theta * lower).exp();
            let cell = Cell { upper: above, lower, sums, allowance };
            if !visit(cell) {
                return;
            }
        }
    }

    fn delta_in(&self, cell: &Cell, above: f64) -> f64 {
        let inside = (cell.sums.0 - above.exp() * cell.sums.1).max(0.0);
        self.extra + self.scale * (inside + cell.allowance)
    }

    /// An upper bound on δ(ε).
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        let above = epsilon - self.reference;
        let mut result = 1.0f64;
        self.scan(|cell| {
            if above >= cell.lower || above >= cell.upper {
                result = self.delta_in(&cell, above);
                return false;
            }
            true
        });
        result.min(1.0)
    }

    /// The smallest ε ≥ 0 at which the bound on δ is at most `delta`; `None` if there is none in
    /// the window.
    pub(crate) fn epsilon(&self, delta: f64) -> Option<f64> {
        if self.extra + self.scale * self.allowance >= delta {
            return None;
        }
        let mut result = None;
        self.scan(|cell| {
            let floor = cell.lower.max(-self.reference);
            if self.delta_in(&cell, floor) < delta {
                // Below the target down to this cell's lower end: go on, unless ε reached 0.
                result = Some(floor + self.reference);
                return floor == cell.lower;
            }
            if result.is_some() {
                let budget = (delta - self.extra) / self.scale - cell.allowance;
                let root = ((cell.sums.0 - budget) / cell.sums.1).ln();
                let root = if root.is_nan() { cell.upper } else { root.clamp(floor, cell.upper) };
                // The arithmetic of the root is good to a few units in the last place of e^ε.
                result = Some(root + self.reference + 1e-14);
            }
            false
        });
        result.map(|epsilon| epsilon.max(0.0))
    }
}

/// The least value of a bound that is unimodal in its free parameter, on the ladder
/// start·1.3^k; every rung is a valid bound.
fn best_on_ladder(start: f64, bound: impl Fn(f64) -> f64) -> f64 {
    let mut best = bound(start);
    let mut t = start;
    for _ in 0..60 {
        t *= 1.3;
        let next = bound(t);
        if !(next < best) {
            break;
        }
        best = next;
    }
    best
}

/// One cell of the grid, relative to the reference loss.
struct Cell {
    upper: f64,
    lower: f64,
    sums: (f64, f64),
    allowance: f64,
}

/// The next size at or above `points` of the form 2^k or 3·2^k, which transform fast.
fn transform_size(points: f64) -> usize {
    let points = points.clamp(16.0, 4.0 * LARGEST_TRANSFORM as f64) as usize;
    let power = points.next_power_of_two();
    if power / 4 * 3 >= points { power / 4 * 3 } else { power }
}

/// `accumulated *= values^count`, where an empty accumulator stands for ones.
fn power_into(accumulated: &mut Vec<Complex<f64>>, values: &[Complex<f64>], count: u64) {
    // |φ|^T below e^{−60} is nothing next to the rounding allowance of a sum of N terms.
    let negligible = (-120.0 / count as f64).exp();
    let fresh = accumulated.is_empty();
    if fresh {
        accumulated.resize(values.len(), Complex::new(1.0, 0.0));
    }
    for (product, &value) in accumulated.iter_mut().zip(values) {
        if value.norm_sqr() < negligible {
            *product = Complex::new(0.0, 0.0);
            continue;
        }
        let mut base = value;
        let mut left = count;
        while left > 0 {
            if left & 1 == 1 {
                *product *= base;
            }
            base *= base;
            left >>= 1;
        }
    }
}

thread_local! {
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

fn plan_forward(size: usize) -> Arc<dyn RealToComplex<f64>> {
    PLANNER.with_borrow_mut(|planner| planner.plan_fft_forward(size))
}

fn plan_inverse(size: usize) -> Arc<dyn realfft::ComplexToReal<f64>> {
    PLANNER.with_borrow_mut(|planner| planner.plan_fft_inverse(size))
}
