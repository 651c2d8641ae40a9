//! Estimates and intervals for a private mean beside a public mean that may be shifted.
//!
//! Y ~ N(θ, v_priv) is the private estimate, X ~ N(θ + Δ, v_pub) the public mean, with Δ unknown. w = v_priv/(v_priv + v_pub) is the
//! weight of X in the pooled estimate P = Y + w(X − Y), s² = v_priv + v_pub the variance of X − Y, β = v_priv/v_pub. P and X − Y are
//! independent, so an estimate P − w·D̂ has the variance of P plus w² times the error of D̂ as an estimate of Δ. Everything here is
//! a function of released values.

use super::interval::{half_width, normal_quantile};
use super::law::Law;

/// The relative excess of the squared error at zero shift over the pooled estimate's: 10 % in root mean squared error.
const EXCESS: f64 = 0.21;
/// The excess where [`EXCESS`] would need a threshold beyond [`LARGEST_THRESHOLD`]: 15 % in root mean squared error.
const LARGEST_EXCESS: f64 = 0.3225;
/// Up to this threshold the estimate lies within the 95 % interval of the private rows alone.
const LARGEST_THRESHOLD: f64 = 1.96;

/// E(|Z| − κ)₊² for a standard normal Z.
fn excess_beyond(threshold: f64) -> f64 {
    let density = (-0.5 * threshold * threshold).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let tail = 0.5 * libm::erfc(threshold / std::f64::consts::SQRT_2);
    (2.0 * ((1.0 + threshold * threshold) * tail - threshold * density)).max(0.0)
}

/// The threshold κ of the limited estimate Y + w·clip(X − Y, ±κs).
///
/// κ ≤ 1.96 solves β·E(|Z| − κ)₊² = 0.21, so that the root mean squared error at zero shift is at most 1.10 times the pooled one's; from
/// β ≈ 16 on it is 1.96 and the factor grows to 1.15 at β ≈ 25; beyond, κ > 1.96 keeps 1.15. For every shift the error is at most
/// √(1 + κ²w) times that of Y. At β ≤ 0.21 the threshold is 0: the public mean has nothing to add.
pub fn shift_threshold(variance_ratio: f64) -> f64 {
    let solve = |excess: f64| {
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if variance_ratio * excess_beyond(middle) > excess {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    };
    if variance_ratio <= EXCESS {
        return 0.0;
    }
    match solve(EXCESS) {
        threshold if threshold <= LARGEST_THRESHOLD => threshold,
        _ => solve(LARGEST_EXCESS).max(LARGEST_THRESHOLD),
    }
}

/// One column of [`combine`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The private estimate Y.
    pub private: f64,
    /// Its variance, more than 0.
    pub private_variance: f64,
    /// The public mean X.
    pub public: f64,
    /// Its variance, more than 0; infinite where it is not known.
    pub public_variance: f64,
}

impl Pair {
    /// The weight of the public mean in the pooled estimate, w.
    pub fn public_weight(&self) -> f64 {
        self.private_variance / (self.private_variance + self.public_variance)
    }

    /// The pooled estimate P, right at zero shift.
    pub fn pooled(&self) -> f64 {
        match self.public_variance.is_finite() {
            true => self.private + self.public_weight() * (self.public - self.private),
            false => self.private,
        }
    }

    /// The variance of the pooled estimate.
    pub fn pooled_variance(&self) -> f64 {
        1.0 / (1.0 / self.private_variance + 1.0 / self.public_variance)
    }

    fn ratio(&self) -> f64 {
        self.private_variance / self.public_variance
    }

    /// The standard deviation of X − Y.
    fn spread(&self) -> f64 {
        (self.private_variance + self.public_variance).sqrt()
    }

    fn limited(&self) -> f64 {
        if !self.public_variance.is_finite() {
            return self.private;
        }
        let most = shift_threshold(self.ratio()) * self.spread();
        self.private + self.public_weight() * (self.public - self.private).clamp(-most, most)
    }
}

/// The estimates of all columns, without an assumption on the shift, and the name of the rule.
///
/// *Three or more columns*: Y + w·min(1, c/T)·(X − Y) with T = Σ (X − Y)²/s², the positive-part James–Stein estimate towards the pooled
/// one. Its error, in units of each column's v_priv, is below that of Y for every shift if 0 < c ≤ 2(Σq/max q − 2) with q_j = w_j (the
/// condition for unequal variances); c is between half of that bound and the bound, the least value at which the root mean squared error
/// at zero shift is at most 1.10 times the pooled one's in every column. *Fewer columns*, or where no such c keeps to 1.15: each column by
/// its own threshold ([`shift_threshold`]). The proof of dominance is for normal errors with known variances; for Laplace and K-norm noise
/// it is an approximation, on which no interval rests.
pub fn combine(pairs: &[Pair]) -> (Vec<f64>, &'static str) {
    let known: Vec<&Pair> = pairs.iter().filter(|pair| pair.public_variance.is_finite()).collect();
    let Some(constant) = james_stein_constant(&known) else {
        return (pairs.iter().map(Pair::limited).collect(), "limited translation");
    };
    let distance: f64 = known.iter().map(|pair| ((pair.public - pair.private) / pair.spread()).powi(2)).sum();
    let pull = if distance > constant { constant / distance } else { 1.0 };
    let estimate = |pair: &Pair| match pair.public_variance.is_finite() {
        true => pair.private + pull * pair.public_weight() * (pair.public - pair.private),
        false => pair.private,
    };
    (pairs.iter().map(estimate).collect(), "positive-part James-Stein")
}

/// The squared error of each column by [`combine`] at zero shift, for normal errors.
pub fn predicted_errors(pairs: &[Pair]) -> Vec<f64> {
    let known: Vec<&Pair> = pairs.iter().filter(|pair| pair.public_variance.is_finite()).collect();
    let shrinkage = james_stein_constant(&known).map(|constant| excess_of_shrinkage(constant, known.len()));
    let error = |pair: &Pair| match pair.public_variance.is_finite() {
        true => {
            let excess = shrinkage.unwrap_or_else(|| excess_beyond(shift_threshold(pair.ratio())));
            pair.pooled_variance() * (1.0 + pair.ratio() * excess)
        }
        false => pair.private_variance,
    };
    pairs.iter().map(error).collect()
}

/// c, if three or more columns allow one.
fn james_stein_constant(pairs: &[&Pair]) -> Option<f64> {
    if pairs.len() < 3 {
        return None;
    }
    let weights = pairs.iter().map(|pair| pair.public_weight());
    let largest = weights.clone().fold(0.0, f64::max);
    let most = 2.0 * (weights.sum::<f64>() / largest - 2.0);
    let ratio = pairs.iter().map(|pair| pair.ratio()).fold(0.0, f64::max);
    if most.is_nan() || most <= 0.0 {
        return None;
    }
    let excess = |constant: f64| ratio * excess_of_shrinkage(constant, pairs.len());
    if excess(most) > LARGEST_EXCESS {
        return None;
    }
    let (mut low, mut high) = (0.5 * most, most);
    if excess(low) <= EXCESS {
        return Some(low);
    }
    for _ in 0..20 {
        let middle = 0.5 * (low + high);
        if excess(middle) > EXCESS {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high)
}

/// E[(1 − c/T)₊² T]/d for T ~ χ²_d: what shrinking leaves of a coordinate's variance at zero shift.
fn excess_of_shrinkage(constant: f64, dimension: usize) -> f64 {
    let d = dimension as f64;
    let log_constant = -0.5 * d * std::f64::consts::LN_2 - libm::lgamma(0.5 * d);
    let density = |t: f64| ((0.5 * d - 1.0) * t.ln() - 0.5 * t + log_constant).exp();
    // 400 steps of Simpson's rule up to where the density is below e^-40 of its peak.
    let (low, high) = (constant, constant.max(d) + 12.0 * (2.0 * d).sqrt() + 80.0);
    let (steps, step) = (400, (high - low) / 400.0);
    let sum: f64 = (0..=steps)
        .map(|i| {
            let t = low + f64::from(i) * step;
            let weight = if i == 0 || i == steps { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
            weight * (t - constant).powi(2) / t * density(t)
        })
        .sum();
    sum * step / 3.0 / d
}

/// The law of Y − θ: normal sampling error plus noise of a known law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorLaw {
    /// Variance of what is normal.
    pub sampling: f64,
    /// Law, scale and joint dimension of the noise.
    pub noise: Option<(Law, f64, usize)>,
}

/// Points of a table of quantiles.
const KNOTS: usize = 17;
/// The share of the error probability that one side has is at least this.
const LEAST_SHARE: f64 = 0.1;

/// Upper quantiles of an error law in units of its standard deviation, between 0.1 and 0.9 of an error probability.
struct Quantiles {
    miss: f64,
    values: [f64; KNOTS],
}

impl Quantiles {
    fn new(law: &ErrorLaw, miss: f64) -> Self {
        let values = std::array::from_fn(|i| {
            half_width(1.0 - 2.0 * (miss * Self::share(i)).min(0.5), law.sampling, law.noise)
        });
        Self { miss, values }
    }

    /// Evenly spaced logarithms.
    fn share(knot: usize) -> f64 {
        let at = knot as f64 / (KNOTS - 1) as f64;
        (LEAST_SHARE.ln() * (1.0 - at) + (1.0 - LEAST_SHARE).ln() * at).exp()
    }

    /// x with P(error > x) = miss·share.
    fn upper(&self, share: f64) -> f64 {
        let (first, last) = (LEAST_SHARE.ln(), (1.0 - LEAST_SHARE).ln());
        let at = (share.ln() - first) / (last - first) * (KNOTS - 1) as f64;
        let knot = (at.max(0.0) as usize).min(KNOTS - 2);
        let part = (at - knot as f64).clamp(0.0, 1.0);
        self.values[knot] * (1.0 - part) + self.values[knot + 1] * part
    }
}

/// Intervals for θ that hold it with a confidence given X, whatever the shift; for errors with one law of noise.
///
/// {θ : θ − q(α(1 − ω(θ))) … ≤ Y ≤ θ + q(αω(θ))} with the upper quantiles q of the error law: for every θ the probability that Y
/// is in range is 1 − α, because the weight ω(θ) depends on θ and X alone. ω leans towards X: ω(θ) = g⁻¹(−2σ(θ − X)/τ²) in [0.1, 0.9],
/// g(ω) = Φ⁻¹(αω) − Φ⁻¹(α(1 − ω)), τ² = v_pub + σ²/4.
pub struct Intervals {
    confidence: f64,
    /// Of laws that were asked for, by the quantised share of noise in the variance; index 0 is normal.
    tables: Vec<(u32, Quantiles)>,
    /// (g, ω) from small to large.
    leaning: Vec<(f64, f64)>,
}

/// Shares of noise are rounded to both neighbours on a grid of this many steps, and the wider quantile counts.
const SHARES: f64 = 32.0;

impl Intervals {
    /// For a confidence between 0 and 1.
    pub fn new(confidence: f64) -> Self {
        let miss = 1.0 - confidence;
        let lower = |p: f64| -normal_quantile(1.0 - p);
        let leaning = (0..=160).map(|i| {
            let share = LEAST_SHARE + (1.0 - 2.0 * LEAST_SHARE) * f64::from(i) / 160.0;
            (lower((miss * share).min(0.5)) - lower((miss * (1.0 - share)).min(0.5)), share)
        });
        Self { confidence, tables: Vec::new(), leaning: leaning.collect() }
    }

    /// The interval, given Y, the law of its error, X and the variance of X (infinite: not known).
    pub fn interval(&mut self, private: f64, law: ErrorLaw, public: f64, public_variance: f64) -> [f64; 2] {
        let variance = law.variance();
        let std = variance.sqrt();
        if std == 0.0 {
            return [private, private];
        }
        let (miss, at) = (1.0 - self.confidence, self.table(law));
        let (below, above) = (&self.tables[at.0].1, &self.tables[at.1].1);
        let upper = |share: f64| std * below.upper(share).max(above.upper(share));
        debug_assert!(below.miss == miss);
        let tau = public_variance + 0.25 * variance;
        let share = |theta: f64| match tau.is_finite() {
            true => self.lean(-2.0 * std * (theta - public) / tau),
            false => 0.5,
        };
        // Both ends of the range of Y grow with θ, so that the set is an interval.
        let widest = upper(LEAST_SHARE);
        let solve = |is_beyond: &dyn Fn(f64) -> bool| {
            let (mut low, mut high) = (private - widest, private + widest);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if is_beyond(middle) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            0.5 * (low + high)
        };
        let high = solve(&|theta| theta - upper(1.0 - share(theta)) > private);
        let low = solve(&|theta| theta + upper(share(theta)) >= private);
        [low, high]
    }

    /// g⁻¹, clamped to [0.1, 0.9].
    fn lean(&self, g: f64) -> f64 {
        let place = self.leaning.partition_point(|(at, _)| *at < g);
        match place {
            0 => LEAST_SHARE,
            place if place == self.leaning.len() => 1.0 - LEAST_SHARE,
            place => {
                let ((g0, w0), (g1, w1)) = (self.leaning[place - 1], self.leaning[place]);
                w0 + (w1 - w0) * (g - g0) / (g1 - g0)
            }
        }
    }

    /// The tables of quantiles on both sides of a law's share of noise.
    fn table(&mut self, law: ErrorLaw) -> (usize, usize) {
        let noise = match law.noise {
            None | Some((Law::Gaussian, ..)) => return (self.at(0, None), self.at(0, None)),
            Some((law, _, dimension)) => (law, dimension),
        };
        let share = SHARES * (1.0 - law.sampling / law.variance());
        (self.at(share.floor() as u32, Some(noise)), self.at(share.ceil() as u32, Some(noise)))
    }

    fn at(&mut self, share: u32, noise: Option<(Law, usize)>) -> usize {
        if let Some(place) = self.tables.iter().position(|(known, _)| *known == share) {
            return place;
        }
        let noise_variance = f64::from(share) / SHARES;
        let noise = noise.filter(|_| share > 0).map(|(law, dimension)| {
            (law, (noise_variance / unit_variance(law, dimension)).sqrt(), dimension)
        });
        let unit = ErrorLaw { sampling: 1.0 - noise_variance, noise };
        self.tables.push((share, Quantiles::new(&unit, 1.0 - self.confidence)));
        self.tables.len() - 1
    }
}

/// The variance of a coordinate of noise of scale one.
pub(super) fn unit_variance(law: Law, dimension: usize) -> f64 {
    match law {
        Law::Gaussian => 1.0,
        Law::Laplace => 2.0,
        Law::KNorm => dimension as f64 + 1.0,
    }
}

impl ErrorLaw {
    /// The variance of Y − θ.
    pub fn variance(&self) -> f64 {
        let noise =
            self.noise.map_or(0.0, |(law, scale, dimension)| unit_variance(law, dimension) * scale * scale);
        self.sampling + noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phi(x: f64) -> f64 {
        (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
    }

    /// Φ.
    fn below(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    /// E f(Z) for a standard normal Z, by the trapezoidal rule from −9 to 9: exact to 1e-12 for smooth functions, to the square
    /// of the step, 0.0003, for functions with kinks.
    fn expectation(f: impl FnMut(f64) -> f64) -> f64 {
        let step = 18.0 / 1000.0;
        (0..=1000)
            .map(|i| -9.0 + f64::from(i) * step)
            .map({
                let mut f = f;
                move |z| step * phi(z) * f(z)
            })
            .sum()
    }

    /// Squared error of the limited estimate for one column.
    fn limited_error(private: f64, public: f64, shift: f64) -> f64 {
        let spread = (private + public).sqrt();
        let most = shift_threshold(private / public) * spread;
        let weight = private / (private + public);
        let left = |difference: f64| difference - difference.clamp(-most, most);
        let pooled = 1.0 / (1.0 / private + 1.0 / public);
        pooled + weight * weight * expectation(|z| (shift - left(shift + spread * z)).powi(2))
    }

    /// The figures of the design at v_priv/v_pub = 4, for shifts of 0, 2, 5 and 10 standard errors of the public mean: root mean squared
    /// error over that of the private rows alone. The design's figures were simulated and rounded (exactly, the second one is 0.8587):
    /// 2e-3 for rounding and simulation, half a digit for those with two.
    #[test]
    fn errors_of_the_estimate_are_those_of_the_design() {
        for (shift, robust, pooled, tolerance) in [
            (0.0, 0.492, 0.448, 2e-3),
            (2.0, 0.860, 0.917, 2e-3),
            (5.0, 1.46, 2.05, 7e-3),
            (10.0, 1.64, 4.02, 7e-3),
        ] {
            let found = (limited_error(4.0, 1.0, shift) / 4.0).sqrt();
            assert!((found - robust).abs() < tolerance, "{shift}: {found}, expected {robust}");
            // The pooled estimate: variance 0.8, bias 0.8 of the shift.
            let found = ((0.8 + 0.64 * shift * shift) / 4.0).sqrt();
            assert!((found - pooled).abs() < tolerance, "{shift}: {found}, expected {pooled}");
        }
    }

    /// At zero shift at most 10 % above the pooled estimate's error, at most 15 % whatever the ratio of variances; and for every shift at
    /// most √(1 + κ²w) times that of the private rows alone.
    #[test]
    fn errors_are_bounded_for_every_ratio_and_shift() {
        for ratio in [0.05, 0.3, 1.0, 4.0, 15.0, 25.0, 100.0, 1e4] {
            let pooled: f64 = 1.0 / (1.0 + 1.0 / ratio);
            let most: f64 = if ratio <= 15.0 { 1.1001 } else { 1.1501 };
            let at_zero = (limited_error(ratio, 1.0, 0.0) / pooled).sqrt();
            assert!(at_zero <= most, "{ratio}: {at_zero}");
            let predicted = predicted_errors(&[Pair {
                private: 0.0,
                private_variance: ratio,
                public: 0.0,
                public_variance: 1.0,
            }])[0];
            assert!((predicted / (at_zero * at_zero * pooled) - 1.0).abs() < 1e-3, "{ratio}");
            let bound = 1.0 + shift_threshold(ratio).powi(2) * ratio / (1.0 + ratio);
            for shift in [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 1000.0] {
                let error = limited_error(ratio, 1.0, shift * (1.0 + ratio).sqrt()) / ratio;
                assert!(error <= bound * 1.001, "{ratio} {shift}: {error} {bound}");
            }
        }
    }

    /// Coverage 0.95 for every shift and 0.879, 0.900, 1.000 and 1.088 of the private interval's width, by quadrature over X and Y. The
    /// tables of quantiles and leanings are piecewise linear: 1e-3 of a standard deviation at most.
    #[test]
    fn intervals_are_those_of_the_design() {
        let mut intervals = Intervals::new(0.95);
        let law = ErrorLaw { sampling: 4.0, noise: None };
        for (shift, width) in [(0.0, 0.879), (2.0, 0.900), (5.0, 1.000), (10.0, 1.088)] {
            let (mut covered, mut wide, mut total) = (0.0, 0.0, 0.0);
            for i in 0..=40 {
                let x = -5.0 + 0.25 * f64::from(i);
                let (mut low_end, mut high_end) = (-12.0, 12.0);
                // Given X the set of Y whose interval holds 0 is an interval: its ends by bisection.
                for (end, is_low) in [(&mut low_end, true), (&mut high_end, false)] {
                    let (mut inside, mut outside) = (0.0, *end);
                    for _ in 0..30 {
                        let y = 0.5 * (inside + outside);
                        let [low, high] = intervals.interval(y, law, shift + x, 1.0);
                        if low <= 0.0 && 0.0 <= high { inside = y } else { outside = y }
                    }
                    let _ = is_low;
                    *end = inside;
                }
                covered += phi(x) * (below(high_end / 2.0) - below(low_end / 2.0));
                total += phi(x);
                for j in 0..=40 {
                    let y = -5.0 + 0.25 * f64::from(j);
                    let [low, high] = intervals.interval(2.0 * y, law, shift + x, 1.0);
                    wide += phi(x) * phi(y) * 0.25 * 0.25 * (high - low);
                }
            }
            assert!((covered / total - 0.95).abs() < 1e-3, "{shift}: {}", covered / total);
            let relative = wide / (2.0 * 1.959_964 * 2.0);
            assert!((relative - width).abs() < 2e-3, "{shift}: {relative}, expected {width}");
        }
    }

    /// The chance that the interval holds θ = 0 is 1 − α for every law of noise and every X: given X, by the law's own tail.
    #[test]
    fn coverage_is_exact_for_every_law_and_public_mean() {
        for noise in
            [None, Some((Law::Gaussian, 0.7, 1)), Some((Law::Laplace, 0.9, 1)), Some((Law::KNorm, 0.4, 8))]
        {
            for sampling in [0.05, 1.0] {
                let law = ErrorLaw { sampling, noise };
                let std = law.variance().sqrt();
                let mut intervals = Intervals::new(0.95);
                for public in [-20.0, -2.0, -0.4, 0.0, 0.9, 5.0, 1e6] {
                    let mut beyond = [0.0; 2];
                    for (side, chance) in beyond.iter_mut().enumerate() {
                        let sign = if side == 0 { 1.0 } else { -1.0 };
                        let (mut inside, mut outside) = (0.0, 12.0 * std);
                        for _ in 0..40 {
                            let y = 0.5 * (inside + outside);
                            let [low, high] = intervals.interval(sign * y, law, public * std, 0.3 * std);
                            if low <= 0.0 && 0.0 <= high { inside = y } else { outside = y }
                        }
                        // P(error > inside): the confidence whose half width it is.
                        let (mut low, mut high) = (0.0, 1.0);
                        for _ in 0..30 {
                            let middle = 0.5 * (low + high);
                            if half_width(middle, law.sampling, law.noise) > inside {
                                high = middle
                            } else {
                                low = middle
                            }
                        }
                        *chance = 0.5 * (1.0 - low);
                    }
                    // Mixed laws take the wider of two neighbouring tables.
                    let missed = beyond[0] + beyond[1];
                    assert!(missed < 0.0503 && missed > 0.044, "{noise:?} {sampling} {public}: {missed}");
                }
            }
        }
    }

    /// James and Stein's estimate is no worse than the private one for every shift (simulated, 3 to 12 columns of unequal variances),
    /// and keeps to 15 % over the pooled one at none; where it cannot, each column goes by itself.
    #[test]
    fn many_columns_are_shrunk_together() {
        let mut state = 7u64;
        let mut normal = || {
            let mut uniform = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
            };
            (-2.0 * uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
        };
        for (variances, rule) in [
            (vec![(1.0, 1.0); 12], "positive-part James-Stein"),
            (vec![(1.0, 3.0), (2.0, 3.0), (1.5, 4.0), (3.0, 9.0), (1.0, 2.0)], "positive-part James-Stein"),
            (vec![(9.0, 1.0); 3], "limited translation"),
            (vec![(1.0, 1.0), (1.0, 1.0)], "limited translation"),
            (vec![(1.0, 1.0), (1.0, 1e6), (1.0, 1e6), (1.0, 1e6)], "limited translation"),
        ] {
            let d = variances.len() as f64;
            for shift in [0.0, 0.5, 1.0, 2.0, 4.0, 8.0] {
                let trials = 500;
                let (mut error, mut pooled, mut square) = (0.0, 0.0, 0.0);
                for _ in 0..trials {
                    let pairs: Vec<Pair> = variances
                        .iter()
                        .map(|&(private_variance, public_variance): &(f64, f64)| Pair {
                            private: private_variance.sqrt() * normal(),
                            private_variance,
                            public: (private_variance + public_variance).sqrt() * shift
                                + public_variance.sqrt() * normal(),
                            public_variance,
                        })
                        .collect();
                    let (found, name) = combine(&pairs);
                    assert_eq!(name, rule);
                    let loss: f64 =
                        found.iter().zip(&pairs).map(|(x, pair)| x * x / pair.private_variance).sum::<f64>()
                            / d;
                    error += loss;
                    square += loss * loss;
                    pooled +=
                        pairs.iter().map(|pair| pair.pooled().powi(2) / pair.private_variance).sum::<f64>()
                            / d;
                }
                let count = f64::from(trials);
                let deviation = ((square / count - (error / count).powi(2)) / count).sqrt();
                // Six and a half standard errors: below 1e-10 each.
                if rule.contains("James") {
                    assert!(
                        error / count < 1.0 + 6.5 * deviation,
                        "{variances:?} {shift}: {}",
                        error / count
                    );
                }
                if shift == 0.0 {
                    let bound = pooled / count * 1.3226 + 6.5 * deviation;
                    assert!(error / count < bound, "{variances:?}: {} {bound}", error / count);
                }
            }
        }
    }

    /// A public mean without a known variance has no say.
    #[test]
    fn an_unknown_public_variance_leaves_the_private_estimate() {
        let pair = Pair { private: 2.0, private_variance: 1.0, public: 9.0, public_variance: f64::INFINITY };
        assert_eq!(combine(&[pair; 4]).0, [2.0; 4]);
        let law = ErrorLaw { sampling: 1.0, noise: None };
        let [low, high] = Intervals::new(0.95).interval(2.0, law, 9.0, f64::INFINITY);
        assert!(
            (low - 2.0 + 1.959_964).abs() < 1e-3 && (high - 2.0 - 1.959_964).abs() < 1e-3,
            "{low} {high}"
        );
    }
}
