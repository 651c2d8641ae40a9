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
use crate::math::search;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::cell::RefCell;
use std::sync::Arc;

/// The longest transform: 2^23 real numbers are 64 MiB and a third of a second.
pub(crate) const LARGEST_TRANSFORM: usize = 1 << 23;

/// Chernoff budgets, relative to δ: what leaves the window above (added to δ), and what may wrap
/// around at either end and be counted where it does not belong.
const UPPER_LOSS: f64 = 1e-6;
const WRAP: f64 = 1e-6;
/// The constant c·u of the transform's error bound: Higham's theorem 24.2 has c = 6.7 for u = 2⁻⁵³.
const ROUNDING: f64 = 4.0 * f64::EPSILON;
/// What counts as negligible next to δ when a tilt is chosen.
const NEGLIGIBLE: f64 = 1e-5;

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
    theta: f64,
    /// The loss at which weights are 1.
    reference: f64,
    lo: f64,
    hi: f64,
    /// ln of a bound on P(S ≥ hi).
    log_escape: f64,
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

/// The composed, tilted law p̃ on a window of the grid, summed from above: for
/// ℓ_{i−1} ≤ ε ≤ ℓ_i, with weights 1 at the reference loss r,
/// δ(ε) ≤ extra + scale·(A_i − e^{ε−r}B_i + allowance).
pub(crate) struct Composed {
    theta: f64,
    step: f64,
    /// The loss ℓ_0.
    lowest: f64,
    reference: f64,
    /// (A_i, B_i) = (Σ p̃_j e^{−θ(ℓ_j−r)}, Σ p̃_j e^{−(1+θ)(ℓ_j−r)}) over j ≥ i.
    sums: Vec<(f64, f64)>,
    scale: f64,
    /// Infinite loss and the bound on what left the window.
    extra: f64,
    /// ℓ2 rounding error of p̃, times the ℓ2 norm of the weights at the reference.
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
        let hi = escape.max(best_on_ladder(4.0 / spread, &wrap));
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
                let hi = escape.max(best_on_ladder(4.0 / spread, &wrap));
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
    steps: u64,
    pub(crate) times: u64,
    lo: f64,
    hi: f64,
    /// ln of a bound on the probability that a block exceeds `hi`.
    log_escape: f64,
}

impl Stage {
    pub(crate) fn width(&self) -> f64 {
        self.hi - self.lo
    }
}

/// A tilted, normalised law on the losses offset + (first + i)·step.
struct Law {
    offset: f64,
    step: f64,
    first: i64,
    probability: Vec<f64>,
    /// ln of the normaliser: E[e^{θL}] of the untilted finite part.
    log_mgf: f64,
    infinite: f64,
    /// ℓ2 error of `probability`.
    error: f64,
}

impl Law {
    fn of(grid: &LossMass, theta: f64) -> Self {
        let log_mgf = grid.log_mgf(theta);
        Self {
            offset: grid.offset,
            step: grid.step,
            first: grid.first,
            probability: grid.tilted(theta, log_mgf),
            log_mgf,
            infinite: grid.infinite,
            error: 0.0,
        }
    }

    /// The law of the sum of a stage's steps, moved to a grid `ratio` times coarser by connecting
    /// the dots once more: each atom goes to its two neighbours so that its mass and its mass
    /// under Q are kept.
    fn block(&self, stage: &Stage, theta: f64, ratio: u64) -> Self {
        let count = stage.steps as f64;
        let offset = count * self.offset;
        let size = transform_size((stage.hi - stage.lo) / self.step + 2.0);
        let (values, rounding) = convolve(&[(self, stage.steps)], size);
        let first = ((stage.lo - offset) / self.step).floor() as i64;
        let escaped = if offset + (first + size as i64) as f64 * self.step >= stage.hi {
            stage.log_escape.exp()
        } else {
            1.0
        };

        let coarse = self.step * ratio as f64;
        let coarse_first = first.div_euclid(ratio as i64);
        let mut probability = vec![0.0; size / ratio as usize + 3];
        let split: Vec<(f64, f64)> = (0..ratio)
            .map(|k| {
                let up = k as f64 * self.step;
                let share = (-up).exp_m1() / (-coarse).exp_m1();
                ((1.0 - share) * (-theta * up).exp(), share * (theta * (coarse - up)).exp())
            })
            .collect();
        for i in 0..size {
            let place = first + i as i64;
            let p = values[place.rem_euclid(size as i64) as usize].max(0.0);
            let (cell, (down, up)) =
                ((place.div_euclid(ratio as i64) - coarse_first) as usize, split[place.rem_euclid(ratio as i64) as usize]);
            probability[cell] += p * down;
            probability[cell + 1] += p * up;
        }
        let total: f64 = probability.iter().sum();
        probability.iter_mut().for_each(|p| *p /= total);
        Self {
            offset,
            step: coarse,
            first: coarse_first,
            probability,
            log_mgf: count * self.log_mgf + total.ln(),
            infinite: -(count * (-self.infinite).ln_1p()).exp_m1() + escaped,
            // At most 2·ratio atoms meet in one: Cauchy–Schwarz.
            error: rounding * (2.0 * ratio as f64).sqrt() * (theta * coarse).exp() / total,
        }
    }
}

/// The cyclic convolution of the laws' powers, indexed by place modulo `size`, and a bound on its
/// ℓ2 error.
fn convolve(laws: &[(&Law, u64)], size: usize) -> (Vec<f64>, f64) {
    let mut spectrum: Vec<Complex<f64>> = Vec::new();
    let mut values = vec![0.0; size];
    let forward = plan_forward(size);
    let mut transformed = forward.make_output_vec();
    let unit = ROUNDING * (size as f64).log2();
    let mut error = unit;
    for (law, count) in laws {
        values.fill(0.0);
        let mut squares = 0.0;
        for (i, &p) in law.probability.iter().enumerate() {
            values[(law.first + i as i64).rem_euclid(size as i64) as usize] += p;
            squares += p * p;
        }
        forward.process(&mut values, &mut transformed).expect("lengths agree");
        power_into(&mut spectrum, &transformed, *count);
        error += *count as f64 * (unit * squares.sqrt() + law.error);
    }
    // Rounding leaves a residue in the imaginary parts that a real signal does not have.
    spectrum[0].im = 0.0;
    if size % 2 == 0 {
        spectrum[size / 2].im = 0.0;
    }
    plan_inverse(size).process(&mut spectrum, &mut values).expect("lengths agree");
    let normalise = 1.0 / size as f64;
    values.iter_mut().for_each(|value| *value *= normalise);
    (values, error)
}

/// Convolves the laws in the window and sums from above; `steps` is the number of original steps.
fn compose_laws(laws: &[(Law, u64)], window: &Window, steps: f64) -> Composed {
    let Window { theta, reference, lo, hi, log_escape, .. } = *window;
    let step = laws[0].0.step;
    let size = transform_size((hi - lo) / step + 2.0);
    let borrowed: Vec<(&Law, u64)> = laws.iter().map(|(law, count)| (law, *count)).collect();
    let (values, rounding) = convolve(&borrowed, size);
    let sum = |f: &dyn Fn(&Law) -> f64| laws.iter().map(|(law, count)| *count as f64 * f(law)).sum::<f64>();
    let offset = sum(&|law| law.offset);
    let log_scale = sum(&|law| law.log_mgf) - theta * reference;
    let infinite = -sum(&|law| (-law.infinite).ln_1p()).exp_m1();

    // From the top down, compensated; negative rounding noise counts as 0.
    let first = ((lo - offset) / step).floor() as i64;
    let lowest = offset + first as f64 * step;
    let rotation = first.rem_euclid(size as i64) as usize;
    let (mut a, mut b) = (Neumaier::default(), Neumaier::default());
    let mut sums = vec![(0.0, 0.0); size];
    for i in (0..size).rev() {
        let p = values[(i + rotation) % size];
        if p > 0.0 {
            let above = lowest - reference + i as f64 * step;
            let weighted = p * (-theta * above).exp();
            a.add(weighted);
            b.add(weighted * (-above).exp());
        }
        sums[i] = (a.total(), b.total());
    }
    // A window too long for a transform would lose mass: then nothing is promised.
    let fits = offset + (first + size as i64) as f64 * step >= hi;
    Composed {
        theta,
        step,
        lowest,
        reference,
        sums,
        scale: log_scale.exp() * (1.0 + 2e-14 * (steps + log_scale.abs() + 10.0)),
        extra: infinite + if fits { log_escape.exp() } else { 1.0 },
        allowance: rounding * weight_norm(theta, step),
    }
}

impl Composed {
    /// ℓ_i relative to the reference.
    fn above(&self, i: usize) -> f64 {
        self.lowest - self.reference + i as f64 * self.step
    }

    /// The bound on δ at `above` the reference, in the cell below grid point i.
    fn bound(&self, i: usize, above: f64) -> f64 {
        let (a, b) = self.sums[i];
        // The rounding allowance where it is largest in the cell; the last term covers the rounding
        // of the weights and sums, which nearly cancel when θ is large.
        let lower = self.above(i) - self.step;
        let allowance = self.allowance * (-self.theta * lower).exp() + 8.0 * f64::EPSILON * a;
        let inside = (a - above.exp() * b).max(0.0);
        self.extra + self.scale * (inside + allowance)
    }

    /// The lowest loss of the window.
    pub(crate) fn lowest(&self) -> f64 {
        self.lowest
    }

    /// An upper bound on δ(ε); 1 below the window.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        let cell = ((epsilon - self.lowest) / self.step).ceil().max(0.0);
        if epsilon < self.lowest || cell.is_nan() {
            return 1.0;
        }
        let i = (cell as usize).min(self.sums.len() - 1);
        let above = (epsilon - self.reference).min(self.above(i));
        self.bound(i, above).min(1.0)
    }

    /// The smallest ε ≥ 0 at which the bound on δ is at most `delta`; `None` if there is none in
    /// the window.
    pub(crate) fn epsilon(&self, delta: f64) -> Option<f64> {
        // Cells from the one that holds ε = 0 upwards. The bound at a cell's lower end (or at 0) falls
        // as cells rise: find the first cell where it is below the target.
        let floor = |i: usize| (self.above(i) - self.step).max(-self.reference);
        let zero = (-self.lowest / self.step).ceil().max(0.0) as usize;
        let (mut low, mut high) = (zero.min(self.sums.len()), self.sums.len());
        while low < high {
            let mid = (low + high) / 2;
            if self.bound(mid, floor(mid)) < delta { high = mid } else { low = mid + 1 }
        }
        if high == self.sums.len() {
            return None;
        }
        let mut root = floor(high);
        if high > zero {
            // The target is crossed inside the cell below.
            let (i, (a, b)) = (high - 1, self.sums[high - 1]);
            let spent = self.bound(i, self.above(i)) - self.scale * (a - self.above(i).exp() * b).max(0.0);
            let inside = ((a - (delta - spent) / self.scale) / b).ln();
            // The arithmetic of the root is good to a few units in the last place of e^ε.
            root = if inside.is_nan() { self.above(i) } else { inside.clamp(floor(i), self.above(i)) } + 1e-14;
        }
        Some((root + self.reference).max(0.0))
    }
}

/// The ℓ2 norm of the weights e^{−θx}(1 − e^{−x}) at x = h, 2h, ..., bounded through
/// 1 − e^{−x} ≤ min(1, x): Σrʲ and Σ(jh)²rʲ with r = e^{−2θh} have closed forms.
fn weight_norm(theta: f64, step: f64) -> f64 {
    let gap = -(-2.0 * theta * step).exp_m1();
    let r = 1.0 - gap;
    (1.0 / gap).min(step * step * r * (1.0 + r) / gap.powi(3)).sqrt()
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
            if !(next < best) {
                break;
            }
            best = next;
        }
    }
    best
}

/// Neumaier's compensated sum.
#[derive(Default)]
struct Neumaier {
    sum: f64,
    lost: f64,
}

impl Neumaier {
    fn add(&mut self, term: f64) {
        let total = self.sum + term;
        self.lost += if self.sum >= term { (self.sum - total) + term } else { (term - total) + self.sum };
        self.sum = total;
    }

    fn total(&self) -> f64 {
        self.sum + self.lost
    }
}

/// The next size at or above `points` of the form 2^k or 3·2^k, which transform fast.
fn transform_size(points: f64) -> usize {
    let points = points.clamp(16.0, 2.0 * LARGEST_TRANSFORM as f64) as usize;
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
