//! Tilted laws on a grid: their convolution by the fast Fourier transform, and δ read off it.

use super::compose::{LARGEST_TRANSFORM, Stage, Window};
use super::grid::LossMass;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::cell::RefCell;
use std::sync::Arc;

/// The constant c·u of the transform's error bound: Higham's theorem 24.2 has c = 6.7 for u = 2⁻⁵³.
pub(super) const ROUNDING: f64 = 4.0 * f64::EPSILON;

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

/// A tilted, normalised law on the losses offset + (first + i)·step.
pub(super) struct Law {
    offset: f64,
    step: f64,
    first: i64,
    probability: Vec<f64>,
    /// ln of the normaliser: E[e^{θL}] of the untilted finite part.
    log_mgf: f64,
    infinite: f64,
    /// ℓ2 error of `probability`.
    error: f64,
    /// Relative error of each probability and of the normaliser together.
    rounding: f64,
}

impl Law {
    pub(super) fn of(grid: &LossMass, theta: f64) -> Self {
        let log_mgf = grid.log_mgf(theta);
        Self {
            offset: grid.offset,
            step: grid.step,
            first: grid.first,
            probability: grid.tilted(theta, log_mgf),
            log_mgf,
            infinite: grid.infinite,
            error: 0.0,
            rounding: grid.tilt_rounding(theta) + 4.0 * f64::EPSILON * log_mgf.abs(),
        }
    }

    /// The law of the sum of a stage's steps, moved to a grid `ratio` times coarser by connecting
    /// the dots once more: each atom goes to its two neighbours so that its mass and its mass
    /// under Q are kept.
    pub(super) fn block(&self, stage: &Stage, theta: f64, ratio: u64) -> Self {
        let count = stage.steps as f64;
        // Rounded up: a larger loss is the safe side.
        let offset = (count * self.offset).next_up();
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
            let (cell, (down, up)) = (
                (place.div_euclid(ratio as i64) - coarse_first) as usize,
                split[place.rem_euclid(ratio as i64) as usize],
            );
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
            rounding: count * self.rounding + 4.0 * f64::EPSILON * (16.0 + theta * (coarse + offset.abs())),
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
    if size.is_multiple_of(2) {
        spectrum[size / 2].im = 0.0;
    }
    plan_inverse(size).process(&mut spectrum, &mut values).expect("lengths agree");
    let normalise = 1.0 / size as f64;
    values.iter_mut().for_each(|value| *value *= normalise);
    (values, error)
}

/// Convolves the laws in the window and sums from above; `steps` is the number of original steps.
pub(super) fn compose_laws(laws: &[(Law, u64)], window: &Window, steps: f64) -> Composed {
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
    // The offsets of many steps nearly cancel against the grid's; what rounding lost there raises all losses.
    let lost = 2.0 * f64::EPSILON * sum(&|law| law.offset.abs());
    let lowest = ((first as f64).mul_add(step, offset) + lost).next_up();
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
    let parts = sum(&|law| law.log_mgf.abs()) + (theta * reference).abs();
    let relative = sum(&|law| law.rounding) + 2e-14 * (steps + log_scale.abs() + 10.0) + f64::EPSILON * parts;
    // A window too long for a transform would lose mass: then nothing is promised.
    let fits = offset + (first + size as i64) as f64 * step >= hi;
    Composed {
        theta,
        step,
        lowest,
        reference,
        sums,
        scale: log_scale.exp() * relative.exp(),
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
        self.extra + self.scale * (inside(a, above, b) + allowance)
    }

    /// Whether the window fitted into a transform; otherwise nothing is promised.
    pub(crate) fn is_whole(&self) -> bool {
        self.extra < 1.0
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
            let spent = self.bound(i, self.above(i)) - self.scale * inside(a, self.above(i), b);
            let inside = ((a - (delta - spent) / self.scale) / b).ln();
            // The arithmetic of the root is good to a few units in the last place of e^ε.
            root =
                if inside.is_nan() { self.above(i) } else { inside.clamp(floor(i), self.above(i)) } + 1e-14;
        }
        Some((root + self.reference).max(0.0))
    }
}

/// A − e^x·B, at least 0. Some 700 below the reference B overflows, to infinity or to what is no number, of which `max` would make 0, and
/// e^x loses its digits: A alone is above the difference.
fn inside(a: f64, above: f64, b: f64) -> f64 {
    if b.is_finite() && above > -700.0 { (a - above.exp() * b).max(0.0) } else { a }
}

/// The ℓ2 norm of the weights e^{−θx}(1 − e^{−x}) at x = h, 2h, ..., bounded through
/// 1 − e^{−x} ≤ min(1, x): Σrʲ and Σ(jh)²rʲ with r = e^{−2θh} have closed forms.
pub(super) fn weight_norm(theta: f64, step: f64) -> f64 {
    let gap = -(-2.0 * theta * step).exp_m1();
    let r = 1.0 - gap;
    (1.0 / gap).min(step * step * r * (1.0 + r) / gap.powi(3)).sqrt()
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
    // `max` first: it turns NaN into a number, and a window without ends then promises nothing.
    let points = points.max(16.0).min(2.0 * LARGEST_TRANSFORM as f64) as usize;
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

fn plan_inverse(size: usize) -> Arc<dyn ComplexToReal<f64>> {
    PLANNER.with_borrow_mut(|planner| planner.plan_fft_inverse(size))
}
