//! Randomisers of one person's vector in the unit ball: what they promise, and how far a report is off.
//!
//! All are one idea. U has a law that does not prefer any direction. With chance p a report is a U of the cap ⟨U, v⟩ ≥ γ, where v
//! is the person's unit vector, otherwise one from beyond it, over m in either case, so that its mean is v. Let Q = P(⟨U, v⟩ ≥ γ).
//! Whatever v is, the density of a report is that of U times p/Q or (1−p)/(1−Q), so that the report is ε-DP for
//!
//! $$ e^ε = \frac{p(1-Q)}{(1-p)Q}. $$
//!
//! A vector x inside the ball becomes x/‖x‖ or −x/‖x‖ first, with chances whose mean is x. Mixtures of ε-DP laws are ε-DP.
//!
//! Rank PrivUnit replaces the cap by ranks: see [`Ranks`]. It is the default, because its guarantee holds for the bits that are sent.
//!
//! One file a mechanism, and a line in [`RANDOMIZERS`].

mod duchi;
mod law;
mod privunit;
mod privunit_g;
mod rank_privunit;
mod sphere;

use crate::{Epsilon, Error, Result};
pub use law::CapLaw;
pub use rank_privunit::FREE_DIMENSIONS;
use serde::Serialize;
pub use sphere::cap_probability;

/// The largest ε of a randomiser: a report beyond it is the vector itself for most purposes.
pub const LARGEST_LOCAL_EPSILON: f64 = 50.0;
/// The largest dimension for which constants are tested.
pub const LARGEST_LOCAL_DIMENSION: usize = 10_000_000;

/// The law of U.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Uniform on the unit sphere.
    Sphere,
    /// Independent normal coordinates of variance 1/d.
    Normal,
}

/// How `rank-privunit` picks one of its public candidates.
///
/// The candidates are ordered by their inner product with the vector. The report is one of the `top` first with chance p, uniformly, and one
/// of the others uniformly otherwise. Any order whatever gives a permutation of the same weights p/r and (1−p)/(k−r), so the ratio of
/// two chances is at most e^ε however the inner products were rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ranks {
    /// k, an even number: candidates come in opposite pairs.
    pub candidates: u32,
    /// r, at most k/2.
    pub top: u32,
}

/// A randomiser with its constants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cap {
    /// As on the command line.
    #[serde(rename = "name")]
    pub mechanism: &'static str,
    /// The law of U.
    pub directions: Directions,
    /// d.
    pub dimension: usize,
    /// ε.
    pub epsilon: Epsilon,
    /// γ.
    pub gamma: f64,
    /// p.
    pub p: f64,
    /// 1 − p, which p may be too near to 1 to tell.
    pub beyond: f64,
    /// Q.
    pub cap_probability: f64,
    /// m.
    pub m: f64,
    /// The mean squared error of a report of a unit vector; of `rank-privunit` in more than 32 dimensions the largest of all unit vectors.
    pub mse: f64,
    /// Set for `rank-privunit`, whose candidates have the law of U; Q is then r/k and γ zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
}

impl Cap {
    /// The mean squared length of a report of any vector in the unit ball.
    pub fn mean_square(&self) -> f64 {
        self.mse + 1.0
    }

    /// The mean squared error of a report of a vector of this length, at most 1.
    pub fn mse_at(&self, length: f64) -> f64 {
        self.mse + (1.0 - length) * (1.0 + length)
    }

    /// The angle between the rim and the middle of the cap.
    fn angle(&self) -> f64 {
        // For small angles the cosine has lost what the error, tan², still has.
        if self.gamma < 0.7 { self.gamma.acos() } else { self.mse.sqrt().atan() }
    }

    /// ln(p(1−Q)/((1−p)Q)), which is ε up to rounding.
    pub fn privacy(&self) -> f64 {
        (self.p / self.beyond).ln() + ((1.0 - self.cap_probability) / self.cap_probability).ln()
    }

    /// The cap γ of probability Q, with the p that spends exactly ε.
    fn spending(epsilon: Epsilon, cap_probability: f64) -> (f64, f64) {
        let inside = epsilon.get().exp() * cap_probability;
        let outside = 1.0 - cap_probability;
        (inside / (inside + outside), outside / (inside + outside))
    }
}

/// A mechanism by name.
#[derive(Debug)]
pub struct LocalMechanism {
    /// As on the command line.
    pub name: &'static str,
    /// A line for people.
    pub about: &'static str,
    /// Whether the guarantee holds for the bits that are reported, not only in real arithmetic.
    pub is_exact: bool,
    best: fn(usize, Epsilon) -> Cap,
}

impl LocalMechanism {
    /// The mechanism with its best constants.
    pub fn at(&self, dimension: usize, epsilon: Epsilon) -> Result<Cap> {
        if !(1..=LARGEST_LOCAL_DIMENSION).contains(&dimension) {
            return Err(Error::InvalidParameter {
                name: "dim",
                value: dimension.to_string(),
                requirement: "at least 1 and at most 10,000,000",
            });
        }
        if epsilon.get() == 0.0 || epsilon.get() > LARGEST_LOCAL_EPSILON {
            return Err(Error::InvalidParameter {
                name: "epsilon",
                value: epsilon.get().to_string(),
                requirement: "above 0 and at most 50 for a randomiser",
            });
        }
        Ok((self.best)(dimension, epsilon))
    }
}

/// All of them.
pub static RANDOMIZERS: [&LocalMechanism; 4] =
    [&duchi::DUCHI, &rank_privunit::RANK_PRIVUNIT, &privunit::PRIVUNIT, &privunit_g::PRIVUNIT_G];

/// The default mechanism: `rank-privunit`; on the line `duchi`, which is the same there.
///
/// Both are exact. Where ε is below 0.2 and d above 32, `duchi` has up to 1.5 % less error and reports of d numbers.
pub fn default_randomizer(dimension: usize) -> &'static LocalMechanism {
    if dimension == 1 { &duchi::DUCHI } else { &rank_privunit::RANK_PRIVUNIT }
}

/// A mechanism by its name.
pub fn randomizer_named(name: &str) -> Result<&'static LocalMechanism> {
    RANDOMIZERS.into_iter().find(|mechanism| mechanism.name == name).ok_or_else(|| Error::InvalidParameter {
        name: "randomizer",
        value: format!("`{name}`"),
        requirement: "rank-privunit, duchi, privunit or privunitg",
    })
}
