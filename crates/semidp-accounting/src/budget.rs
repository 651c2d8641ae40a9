//! Validated privacy parameters. No function of this crate takes a bare `f64` where a
//! privacy parameter is meant, so a delta cannot stand in for an epsilon and a NaN cannot enter.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

macro_rules! parameter {
    ($(#[$doc:meta])* $name:ident, $label:literal, $requirement:literal, |$value:ident| $valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            #[doc = concat!("Accepts ", $requirement, ".")]
            pub fn new($value: f64) -> Result<Self> {
                if $valid {
                    Ok(Self($value))
                } else {
                    Err(Error::InvalidParameter {
                        name: $label,
                        value: $value.to_string(),
                        requirement: $requirement,
                    })
                }
            }

            /// The number itself.
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = Error;
            fn try_from(value: f64) -> Result<Self> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

parameter!(
    /// The privacy loss bound ε. Zero means that the private rows are not used at all.
    Epsilon, "epsilon", "a finite number >= 0", |v| v >= 0.0 && v.is_finite()
);
parameter!(
    /// The failure probability δ of an (ε, δ) guarantee.
    Delta, "delta", "a number >= 0 and < 1", |v| (0.0..1.0).contains(&v)
);
parameter!(
    /// The parameter ρ of zero-concentrated differential privacy.
    Rho, "rho", "a finite number >= 0", |v| v >= 0.0 && v.is_finite()
);
parameter!(
    /// The parameter μ of Gaussian differential privacy: sensitivity over noise std.
    Mu, "mu", "a finite number >= 0", |v| v >= 0.0 && v.is_finite()
);
parameter!(
    /// A Rényi order α.
    Order, "order", "a finite number > 1", |v| v > 1.0 && v.is_finite()
);
parameter!(
    /// The probability q with which a unit takes part in a step.
    SampleRate, "sample-rate", "a number > 0 and <= 1", |v| v > 0.0 && v <= 1.0
);
parameter!(
    /// Noise scale on the SUM of clipped contributions divided by the clip norm, whatever the
    /// adjacency: sigma / C for Gaussian noise.
    NoiseMultiplier, "noise-multiplier", "a finite number > 0", |v| v > 0.0 && v.is_finite()
);
parameter!(
    /// A bound on how far one unit can move a query.
    Sensitivity, "sensitivity", "a finite number > 0", |v| v > 0.0 && v.is_finite()
);

impl Delta {
    /// For answers: a bound computed as 1 or more says nothing; the largest valid δ says the same.
    pub(crate) fn saturating(value: f64) -> Self {
        Self(value.clamp(0.0, 1.0 - f64::EPSILON / 2.0))
    }

    /// For a mechanism that is not pure: a δ too small for a number must not read as none.
    pub(crate) fn not_pure(value: f64) -> Self {
        Self::saturating(value.max(f64::MIN_POSITIVE))
    }

    /// Accepts only 0 < δ < 1, which (ε, δ) conversions need.
    pub fn positive(self) -> Result<Self> {
        if self.0 > 0.0 {
            Ok(self)
        } else {
            Err(Error::InvalidParameter {
                name: "delta",
                value: self.0.to_string(),
                requirement: "a number > 0 and < 1 (pure epsilon needs Laplace or K-norm noise)",
            })
        }
    }
}

impl Epsilon {
    /// No promise at all, for certificates of data that was declassified. No budget and no answer of an accountant.
    pub const UNBOUNDED: Self = Self(f64::INFINITY);

    /// Accepts only ε > 0, which a target of calibration needs.
    pub fn positive(self) -> Result<Self> {
        if self.0 > 0.0 {
            Ok(self)
        } else {
            Err(Error::InvalidParameter {
                name: "epsilon",
                value: self.0.to_string(),
                requirement: "a finite number > 0",
            })
        }
    }
}

impl Rho {
    /// Accepts only ρ > 0, which a target of calibration needs.
    pub fn positive(self) -> Result<Self> {
        if self.0 > 0.0 {
            Ok(self)
        } else {
            Err(Error::InvalidParameter {
                name: "rho",
                value: self.0.to_string(),
                requirement: "a finite number > 0",
            })
        }
    }
}

/// How often an event happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Steps(u64);

impl Steps {
    /// The largest count, ten times the range in which answers are promised to be tight.
    pub const MAX: u64 = 100_000_000;
    /// Once.
    pub const ONE: Self = Self(1);

    /// Accepts 1 to [`Steps::MAX`].
    pub fn new(value: u64) -> Result<Self> {
        if (1..=Self::MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Error::InvalidParameter {
                name: "steps",
                value: value.to_string(),
                requirement: "a whole number from 1 to 100000000",
            })
        }
    }

    /// The number itself.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for Steps {
    type Error = Error;
    fn try_from(value: u64) -> Result<Self> {
        Self::new(value)
    }
}

impl From<Steps> for u64 {
    fn from(value: Steps) -> u64 {
        value.0
    }
}

impl std::fmt::Display for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_what_has_no_meaning_and_names_the_parameter() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let message = Epsilon::new(bad).unwrap_err().to_string();
            assert!(message.starts_with("epsilon must be a finite number >= 0"), "{message}");
        }
        for bad in [-1e-9, 1.0, f64::NAN] {
            assert!(Delta::new(bad).is_err());
        }
        for bad in [0.0, 1.0 + 1e-12, -0.1, f64::NAN] {
            assert!(SampleRate::new(bad).is_err());
        }
        for bad in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(NoiseMultiplier::new(bad).is_err());
        }
        assert!(Order::new(1.0).is_err());
        assert!(Steps::new(0).is_err());
        assert!(Steps::new(Steps::MAX + 1).is_err());
        assert!(Delta::new(0.0).unwrap().positive().is_err());
        assert!(Epsilon::new(0.0).unwrap().positive().is_err());
    }

    #[test]
    fn deserialising_validates() {
        assert!(serde_json::from_str::<Delta>("1.5").is_err());
        assert_eq!(serde_json::from_str::<Delta>("1e-5").unwrap().get(), 1e-5);
        assert!(serde_json::from_str::<Steps>("0").is_err());
    }
}
