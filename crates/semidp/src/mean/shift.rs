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
    let distance: f64 =
        known.iter().map(|pair| ((pair.public - pair.private) / pair.spread()).powi(2)).sum();
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
    let shrinkage =
        james_stein_constant(&known).map(|constant| excess_of_shrinkage(constant, known.len()));
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
        let values =
            std::array::from_fn(|i| half_width(1.0 - 2.0 * (miss * Self::share(i)).min(0.5), law.sampling, law.noise));
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
