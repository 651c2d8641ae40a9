//! What is known of a mean before any private row is read, and the exact error of every estimator of
//! the family on it.
//!
//! All estimators here have one form. With a public centre c and a weight r for each private row,
//!
//! $$ \hat\theta = p\,\bar x_\text{pub} + (1-p)\,c + r\Big(\sum_\text{priv}\mathrm{clip}_B(x_i-c) + Z\Big), $$
//!
//! where Z is the noise, of total variance N, on the sum. For the mean of the *population* the weights sum
//! to one, p = 1 − r·n_priv; for the *empirical* mean of the given rows every public row has weight 1/n,
//! p = n_pub/n. If c is the public mean, p does not matter.

use crate::{Error, Result};

/// The mean of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Of the law that public and private rows are drawn from, independently.
    Population,
    /// Of the given rows, public and private together, whatever they are.
    Empirical,
}

impl Target {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Population => "population",
            Self::Empirical => "empirical",
        }
    }
}

/// How far from the centre rows may be, in some norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    /// Rows further away are clipped to this distance (B).
    pub radius: f64,
    /// By how much clipping moves the mean: the mean excess of the distance over the radius, or a bound on it.
    /// Zero if no row is further away. As good as whatever it was learned from.
    pub bias: f64,
}

/// Counts, dimension, radius and standard deviation: everything an error depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    private_rows: u64,
    public_rows: u64,
    dimension: usize,
    l2: Clip,
    l1: Clip,
    std: f64,
    target: Target,
}

/// Counts beyond this are not exact as floating-point numbers.
const MOST_ROWS: u64 = 1 << 53;

impl Problem {
    /// Rows within `radius` of a public centre, in Euclidean norm. The standard deviation is then at most
    /// the radius, and taken to be that until it is given.
    pub fn new(private_rows: u64, public_rows: u64, dimension: usize, radius: f64) -> Result<Self> {
        for (name, rows) in [("n-private", private_rows), ("n-public", public_rows)] {
            if rows > MOST_ROWS {
                return Err(Error::invalid(name, rows, "a whole number up to 2^53"));
            }
        }
        if private_rows + public_rows == 0 {
            return Err(Error::invalid("n-private", 0, "at least 1 if there are no public rows"));
        }
        if dimension == 0 {
            return Err(Error::invalid("dim", dimension, "a whole number >= 1"));
        }
        // The kernel's range for clip norms, with room for the factor √d of ℓ1.
        if !(1e-12..=1e12).contains(&radius) {
            return Err(Error::invalid("radius", radius, "a number from 1e-12 to 1e12"));
        }
        let l2 = Clip { radius, bias: 0.0 };
        // The smallest ℓ1 ball that holds the ℓ2 ball.
        let l1 = Clip { radius: radius * (dimension as f64).sqrt(), bias: 0.0 };
        Ok(Self { private_rows, public_rows, dimension, l2, l1, std: radius, target: Target::Population })
    }

    /// The root of the total variance E‖x − Ex‖² (V); never more than the radius, unless rows are clipped.
    pub fn with_std(self, std: f64) -> Result<Self> {
        if !(std > 0.0 && std.is_finite()) {
            return Err(Error::invalid("std", std, "a number > 0"));
        }
        if std > self.l2.radius && self.l2.bias == 0.0 {
            return Err(Error::invalid("std", std, "at most the radius, which holds every row"));
        }
        Ok(Self { std, ..self })
    }

    /// Rows may lie outside the ball: `bias` bounds the mean of what clipping takes off.
    pub fn with_clip_bias(self, bias: f64) -> Result<Self> {
        if !(bias >= 0.0 && bias.is_finite()) {
            return Err(Error::invalid("clip-bias", bias, "a number >= 0"));
        }
        // Clipping v to ℓ1 norm √d·B moves it by ‖v‖₂(1 − √d·B/‖v‖₁) in ℓ2, and ‖v‖₁ ≤ √d·‖v‖₂: by at most
        // ‖v‖₂ − B, as clipping to ℓ2 norm B does.
        Ok(Self { l2: Clip { bias, ..self.l2 }, l1: Clip { bias, ..self.l1 }, ..self })
    }

    /// What is known about ℓ1 distances, if it is more than the ℓ2 radius implies.
    pub fn with_l1(self, l1: Clip) -> Result<Self> {
        if !(1e-12..=1e15).contains(&l1.radius) {
            return Err(Error::invalid("radius", l1.radius, "a number from 1e-12 to 1e15"));
        }
        Ok(Self { l1, ..self })
    }

    /// The mean of what.
    pub fn with_target(self, target: Target) -> Self {
        Self { target, ..self }
    }

    /// The same with other counts.
    pub fn with_rows(self, private_rows: u64, public_rows: u64) -> Self {
        Self { private_rows, public_rows, ..self }
    }

    /// n_priv.
    pub fn private_rows(&self) -> u64 {
        self.private_rows
    }

    /// n_pub.
    pub fn public_rows(&self) -> u64 {
        self.public_rows
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The ball in Euclidean norm.
    pub fn l2(&self) -> Clip {
        self.l2
    }

    /// The ball in ℓ1 norm.
    pub fn l1(&self) -> Clip {
        self.l1
    }

    /// V.
    pub fn std(&self) -> f64 {
        self.std
    }

    /// The mean of what.
    pub fn target(&self) -> Target {
        self.target
    }

    fn rows(&self) -> f64 {
        (self.private_rows + self.public_rows) as f64
    }

    /// The share of the public mean in the estimate, p.
    pub fn public_share(&self, weight: f64) -> f64 {
        match self.target {
            Target::Population => 1.0 - weight * self.private_rows as f64,
            Target::Empirical => self.public_rows as f64 / self.rows(),
        }
    }

    /// The weight that treats all rows alike, 1/n.
    pub fn uniform_weight(&self) -> f64 {
        if self.private_rows == 0 { 0.0 } else { 1.0 / self.rows() }
    }

    /// The weight with the least error, for noise of total variance `noise` on the sum.
    ///
    /// Population: with v_pub = V²/n_pub and v_priv = V²/n_priv + N/n_priv² + bias², it is
    /// r* = v_pub/(v_pub + v_priv)/n_priv. Empirical: (1/n)·n_priv²/(n_priv² + N/B²).
    pub fn best_weight(&self, noise: f64, clip: Clip) -> f64 {
        if self.private_rows == 0 {
            return 0.0;
        }
        let private = self.private_rows as f64;
        match self.target {
            Target::Population => {
                let variance = self.std * self.std;
                let private_error = variance / private + noise / (private * private) + clip.bias.powi(2);
                // As inverse variances, so that no public rows are no special case.
                let (a, b) = (1.0 / private_error, self.public_rows as f64 / variance);
                a / (a + b) / private
            }
            Target::Empirical => {
                let (reach, lost) = self.empirical_bias(clip);
                let best = (reach * reach / self.rows() + reach * lost) / (noise + reach * reach);
                best.min(self.uniform_weight())
            }
        }
    }

    /// The mean squared error at a weight. Population: exact for independent rows of variance V² if nothing
    /// is clipped, an upper bound if the bias is one. Empirical: of the worst data set in the ball.
    pub fn error(&self, weight: f64, noise: f64, clip: Clip) -> f64 {
        let (private, public) = (self.private_rows as f64, self.public_rows as f64);
        match self.target {
            Target::Population => {
                let variance = self.std * self.std;
                let rest = 1.0 - weight * private;
                let from_public = match self.public_rows {
                    0 if rest.abs() < 1e-12 => 0.0,
                    0 => return f64::INFINITY,
                    _ => rest * rest * variance / public,
                };
                let from_private = noise + private * variance + (private * clip.bias).powi(2);
                weight * weight * from_private + from_public
            }
            Target::Empirical => {
                let (reach, lost) = self.empirical_bias(clip);
                let missing = (self.uniform_weight() - weight).abs() * reach;
                weight * weight * noise + (missing + lost).powi(2)
            }
        }
    }

    /// How long the sum of all private rows about the centre can be in ℓ2, whatever norm is clipped; and what
    /// clipping can take off their mean.
    fn empirical_bias(&self, clip: Clip) -> (f64, f64) {
        let private = self.private_rows as f64;
        (private * self.l2.radius, private * clip.bias.max(self.l2.bias) / self.rows())
    }

    /// The error for the empirical mean when rows are independent draws about the public mean as centre:
    /// what to expect of friendly data, next to the worst case.
    pub fn expected_empirical_error(&self, weight: f64, noise: f64) -> Option<f64> {
        if self.public_rows == 0 {
            return None;
        }
        let (private, public) = (self.private_rows as f64, self.public_rows as f64);
        let spread = private * self.std.powi(2) * (1.0 + private / public);
        Some(weight * weight * noise + (self.uniform_weight() - weight).powi(2) * spread)
    }
}
