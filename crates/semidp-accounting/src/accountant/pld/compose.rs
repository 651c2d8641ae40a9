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
//!    Cauchy–Schwarz against the weights e^{−θ(ℓ−ε)}(1−e^{−(ℓ−ε)}) turns it into an allowance on δ.
//! 4. *Rounding of the masses* themselves, relative 1e-14 per step at most, is covered by a factor.

use super::grid::{LossMass, Moments};
use super::law::{Composed, Law, ROUNDING, compose_laws, weight_norm};
use crate::math::search;

/// The longest transform: 2^22 real numbers are 32 MiB and a sixth of a second.
pub(crate) const LARGEST_TRANSFORM: usize = 1 << 22;

/// Chernoff budgets, relative to δ: what leaves the window above (added to δ), and what may wrap
/// around at either end and be counted where it does not belong.
const UPPER_LOSS: f64 = 1e-6;
const WRAP: f64 = 1e-6;
/// What counts as negligible next to δ when a tilt is chosen.
const NEGLIGIBLE: f64 = 1e-5;

/// The largest tilt, times the step.
const STEEPEST: f64 = 40.0;

/// Independent compositions of discretised losses on one grid.
pub(crate) struct Composition {
    pub(crate) parts: Vec<(LossMass, u64)>,
    pub(crate) step: f64,
}

/// Where to look: the tilt and the loss it centres on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Saddle {
    pub(crate) theta: f64,
    pub(crate) epsilon: f64,
    /// Saddle-point estimate of ln δ(epsilon).
    pub(crate) log_delta: f64,
}

/// The part of the grid to transform, and the tilt to do it at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(super) theta: f64,
    /// The loss at which weights are 1.
    pub(super) reference: f64,
    pub(super) lo: f64,
    pub(super) hi: f64,
    /// ln of a bound on P(S ≥ hi).
    pub(super) log_escape: f64,
}

impl Window {
    pub(crate) fn width(&self) -> f64 {
        self.hi - self.lo
    }
}

/// Cumulants of the total loss at a tilt.
#[derive(Debug, Clone, Copy)]
struct Cumulants {
    value: f64,
    mean: f64,
    variance: f64,
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

    /// K(t) = ln E[e^{tS}] of the finite part.
    pub(crate) fn cumulant(&self, t: f64) -> f64 {
        self.parts.iter().map(|(grid, count)| *count as f64 * grid.log_mgf(t)).sum()
    }

    /// The largest finite total loss.
    pub(crate) fn largest_loss(&self) -> f64 {
        self.parts.iter().map(|(grid, count)| *count as f64 * grid.largest_loss()).sum()
    }

    /// Chernoff's bound δ(ε) ≤ P(S > ε) ≤ e^{K(t)−tε} at the best t found, and infinite loss.
    pub(crate) fn chernoff(&self, epsilon: f64) -> f64 {
        let start = 1.0 / self.cumulants(0.0).variance.sqrt().max(self.step);
        let log_bound = best_on_ladder(start, |t| self.cumulant(t) - t * epsilon);
        self.infinite() + log_bound.exp() * (1.0 + 1e-13 * (1.0 + self.steps()))
    }

    /// The probability of finite loss; below 1 also where a cap left losses out.
    pub(crate) fn mass(&self) -> f64 {
        self.cumulant(0.0).exp()
    }

    /// The probability of infinite loss.
    pub(crate) fn infinite(&self) -> f64 {
        -self.parts.iter().map(|(grid, count)| *count as f64 * (-grid.infinite).ln_1p()).sum::<f64>().exp_m1()
    }

    /// Root mean square of the one-step standard deviation, tilted or not, whichever is larger.
    pub(crate) fn step_deviation(&self, theta: f64) -> f64 {
        let variance = self.cumulants(theta).variance.max(self.cumulants(0.0).variance);
        (variance / self.steps()).sqrt()
    }

    /// Estimates ln(δ_h/δ), the pessimism of this grid at the tilt. Doubling the step would move
    /// the odd grid points' mass to their neighbours and multiply each step's tilted weight there
    /// by 1+κ: Σ T κ·odd is the exact first-order cost of the doubling, which is three times the
    /// cost of the present step where the loss is smooth on the scale of the grid (error ∝ h²).
    pub(crate) fn pessimism(&self, theta: f64) -> f64 {
        let h = self.step;
        let kappa =
            ((theta * h).exp_m1() + (-(1.0 + theta) * h).exp_m1() - (-h).exp_m1()) / (1.0 + (-h).exp());
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
        let log_delta = k.value
            - theta * epsilon
            - (theta * (1.0 + theta)).ln()
            - 0.5 * (std::f64::consts::TAU * curvature).ln();
        Saddle { theta, epsilon, log_delta }
    }

    /// ln of the largest tilt of use. An ε next to the largest loss of all asks for ever larger ones, but a tilt of
    /// [`STEEPEST`] per step has the whole mass on the last grid point already, and weights must not overflow.
    fn largest_log_tilt(&self) -> f64 {
        (STEEPEST / self.step).ln()
    }

    /// The saddle point whose estimated δ is the given one; `start` is a first guess of θ.
    pub(crate) fn saddle_for_delta(&self, log_delta: f64, start: f64) -> Saddle {
        let most = self.largest_log_tilt();
        let log_theta = search::increasing_root(start.ln().min(most), 0.7, 2e-3, |log_theta| {
            log_delta - self.saddle_at(log_theta.clamp(-40.0, most).exp()).log_delta
        });
        self.saddle_at(log_theta.clamp(-40.0, most).exp())
    }

    /// The saddle point for a given ε.
    pub(crate) fn saddle_for_epsilon(&self, epsilon: f64, start: f64) -> Saddle {
        let scale = self.cumulants(0.0).variance.sqrt().max(self.step);
        let most = self.largest_log_tilt();
        let log_theta = search::increasing_root(start.ln().min(most), 0.7, 2e-3, |log_theta| {
            (self.saddle_at(log_theta.clamp(-40.0, most).exp()).epsilon - epsilon) / scale
        });
        Saddle { epsilon, ..self.saddle_at(log_theta.clamp(-40.0, most).exp()) }
    }

    /// The tilt to transform at: a part of the saddle point's, as long as rounding stays
    /// negligible. At the full tilt a rare large loss, irrelevant for δ, can carry much of the
    /// tilted mass and stretch the window.
    fn transform_tilt(&self, saddle: Saddle, log_delta: f64, step: f64) -> f64 {
        let unit = (ROUNDING * 22.0 * (self.steps() + 1.0)).ln();
        for part in [0.4, 0.6, 0.8] {
            let theta = part * saddle.theta;
            let log_scale = self.cumulant(theta) - theta * saddle.epsilon;
            if log_scale + unit + weight_norm(theta, step).ln() < log_delta + NEGLIGIBLE.ln() {
                return theta;
            }
        }
        saddle.theta
    }

    /// Where to transform for answers near exp(log_delta), on this grid or on one of about
    /// `step` nested in it. Nesting makes the bounds carry over: the coarser grid's law is the finer
    /// one's with mass spread to the ends of its buckets, so K(t) is larger on it for t > 0.
    pub(crate) fn window(&self, saddle: Saddle, log_delta: f64, step: f64) -> Window {
        let theta = self.transform_tilt(saddle, log_delta, step);
        let at = self.cumulants(theta);
        let spread = at.variance.sqrt().max(self.step);
        // P(S ≥ hi) ≤ e^{K(t)−t·hi} and, under the tilted law, P̃(S ≥ hi) ≤ e^{K(t)−K(θ)−(t−θ)·hi}
        // for any t > θ: solve each for hi, and take the best t on a ladder.
        let budget = -(log_delta + UPPER_LOSS.ln());
        let escape = best_on_ladder(theta, |t| (self.cumulant(t) + budget) / t);
        // Wrapped mass counts for at most e^{K(θ)−θε} each: its share of δ is to be negligible.
        let budget = (at.value - theta * saddle.epsilon - log_delta).max(0.0) - WRAP.ln();
        let wrap = |t: f64| (self.cumulant(theta + t) - at.value + budget) / t.abs();
        let hi = escape.max(best_on_ladder(4.0 / spread, wrap));
        let lo = -best_on_ladder(4.0 / spread, |t| wrap(-t));
        Window {
            theta,
            reference: saddle.epsilon,
            lo: lo.min(saddle.epsilon - 4.0 * self.step),
            hi: hi.max(saddle.epsilon + 4.0 * self.step),
            log_escape: log_delta + UPPER_LOSS.ln(),
        }
    }

    /// Composes in the window.
    pub(crate) fn compose(&self, window: &Window) -> Composed {
        let laws: Vec<(Law, u64)> =
            self.parts.iter().map(|(grid, count)| (Law::of(grid, window.theta), *count)).collect();
        compose_laws(&laws, window, self.steps())
    }

    /// Composes in the window in two stages: blocks of steps first, then the blocks on a grid `ratio`
    /// times coarser, whose pessimism counts once a block.
    pub(crate) fn compose_staged(&self, window: &Window, stages: &[Stage], ratio: u64) -> Composed {
        let laws: Vec<(Law, u64)> = stages
            .iter()
            .map(|stage| {
                let law = Law::of(&self.parts[stage.part].0, window.theta);
                (law.block(stage, window.theta, ratio), stage.times)
            })
            .collect();
        compose_laws(&laws, window, self.steps())
    }

    /// A plan for two stages: every part's steps in blocks of about the square root of their
    /// number, and the window that each block needs. Valid on grids nested in this one.
    pub(crate) fn stages(&self, window: &Window) -> Vec<Stage> {
        let theta = window.theta;
        let log_scale = self.cumulant(theta) - theta * window.reference;
        let mut stages = Vec::new();
        for (part, (grid, count)) in self.parts.iter().enumerate() {
            let times = ((*count as f64).sqrt().round() as u64).max(1);
            let each = count / times;
            // count = each·(times − 1) + last.
            for (steps, times) in [(each, times - 1), (count - each * (times - 1), 1)] {
                if times == 0 {
                    continue;
                }
                let cumulant = |t: f64| steps as f64 * grid.log_mgf(t);
                let at = grid.moments(theta);
                let spread = (steps as f64 * at.variance).sqrt().max(self.step);
                let share = (self.steps() / steps as f64).ln();
                let log_escape = window.log_escape - share;
                let escape = best_on_ladder(theta, |t| (cumulant(t) - log_escape) / t);
                let budget = (log_scale - window.log_escape).max(0.0) + share;
                let wrap = |t: f64| (cumulant(theta + t) - cumulant(theta) + budget) / t.abs();
                let hi = escape.max(best_on_ladder(4.0 / spread, wrap));
                let lo = -best_on_ladder(4.0 / spread, |t| wrap(-t));
                stages.push(Stage { part, steps, times, lo, hi, log_escape });
            }
        }
        stages
    }
}

/// One kind of block: `times` blocks of `steps` steps of a part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    part: usize,
    pub(super) steps: u64,
    pub(super) times: u64,
    pub(super) lo: f64,
    pub(super) hi: f64,
    /// ln of a bound on the probability that a block exceeds `hi`.
    pub(super) log_escape: f64,
}

impl Stage {
    pub(crate) fn width(&self) -> f64 {
        self.hi - self.lo
    }
}

/// The least value of a bound that is unimodal in its free parameter t > 0, on the ladder
/// start·1.3^k climbed both ways; every rung is a valid bound.
fn best_on_ladder(start: f64, bound: impl Fn(f64) -> f64) -> f64 {
    let mut best = bound(start);
    for factor in [1.3, 1.0 / 1.3] {
        let mut t = start;
        for _ in 0..60 {
            t *= factor;
            let next = bound(t);
            if next >= best || next.is_nan() {
                break;
            }
            best = next;
        }
    }
    best
}
