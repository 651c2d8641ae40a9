//! Privacy events: what was (or will be) done to the private units, in a form whose meaning
//! never changes. Accountants read events; mechanisms own them; certificates store them.
//!
//! **Frozen.** The serialised form below is part of every certificate. A variant may be added; no
//! variant, field or meaning may change. `tests/frozen_events.rs` holds the golden text.

use crate::math::{decimal::Decimal, divide_up};
use crate::{Adjacency, Epsilon, Error, NoiseMultiplier, Result, Rho, SampleRate, Steps};
use serde::{Deserialize, Serialize};

/// One access to the private units.
///
/// `noise_multiplier` always means the noise scale on the SUM of clipped contributions divided
/// by the clip norm C, under either adjacency; [`Adjacency::sensitivity_factor`] turns C into the
/// sensitivity (C or 2C).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Event {
    /// The sum over all units, each contribution at most C in ℓ2 norm, plus Gaussian noise of std
    /// `noise_multiplier`·C in each coordinate.
    Gaussian {
        /// σ/C.
        noise_multiplier: NoiseMultiplier,
    },
    /// The sum over all units, each contribution at most C in ℓ1 norm, plus Laplace noise of
    /// scale `noise_multiplier`·C in each of `dimension` coordinates.
    Laplace {
        /// Scale/C.
        noise_multiplier: NoiseMultiplier,
        /// Number of coordinates.
        #[serde(default = "one")]
        dimension: u64,
    },
    /// The sum over all units, each contribution at most C in ℓ2 norm, plus noise of density
    /// ∝ exp(−‖z‖₂/(`noise_multiplier`·C)) in `dimension` coordinates.
    KNorm {
        /// Scale/C.
        noise_multiplier: NoiseMultiplier,
        /// Number of coordinates.
        dimension: u64,
    },
    /// [`Event::Gaussian`] on a sample that each unit joins independently with probability
    /// `sample_rate`; the noise and every divisor are constants, and an empty sample is noised too.
    PoissonGaussian {
        /// σ/C.
        noise_multiplier: NoiseMultiplier,
        /// q.
        sample_rate: SampleRate,
    },
    /// [`Event::Gaussian`] on a uniformly random subset of fixed size, drawn without replacement;
    /// `sample_rate` is that size over the public number of units. Replace-one only.
    FixedSizeGaussian {
        /// σ/C.
        noise_multiplier: NoiseMultiplier,
        /// Subset size over number of units.
        sample_rate: SampleRate,
    },
    /// One [`Event::Gaussian`] on each of `blocks` disjoint blocks, each unit in exactly one.
    /// Under replace-one the blocks are fixed by index; under add/remove each unit draws its block
    /// independently, and the number of blocks is public.
    OnePassGaussian {
        /// σ/C.
        noise_multiplier: NoiseMultiplier,
        /// Number of disjoint blocks; it does not enter the cost.
        blocks: u64,
    },
    /// Any mechanism that is ε-DP under the adjacency of the account.
    Pure {
        /// ε.
        epsilon: Epsilon,
    },
    /// Any mechanism that is ρ-zCDP under the adjacency of the account.
    Zcdp {
        /// ρ.
        rho: Rho,
    },
}

fn one() -> u64 {
    1
}

impl Event {
    /// The serialised name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian { .. } => "gaussian",
            Self::Laplace { .. } => "laplace",
            Self::KNorm { .. } => "k-norm",
            Self::PoissonGaussian { .. } => "poisson-gaussian",
            Self::FixedSizeGaussian { .. } => "fixed-size-gaussian",
            Self::OnePassGaussian { .. } => "one-pass-gaussian",
            Self::Pure { .. } => "pure",
            Self::Zcdp { .. } => "zcdp",
        }
    }

    /// The same for equal events and no others.
    pub(crate) fn key(&self) -> (&'static str, u64, u64) {
        let (first, second) = match self {
            Self::Gaussian { noise_multiplier } => (noise_multiplier.get(), 0),
            Self::Laplace { noise_multiplier, dimension } | Self::KNorm { noise_multiplier, dimension } => {
                (noise_multiplier.get(), *dimension)
            }
            Self::PoissonGaussian { noise_multiplier, sample_rate }
            | Self::FixedSizeGaussian { noise_multiplier, sample_rate } => {
                (noise_multiplier.get(), sample_rate.get().to_bits())
            }
            Self::OnePassGaussian { noise_multiplier, blocks } => (noise_multiplier.get(), *blocks),
            Self::Pure { epsilon } => (epsilon.get(), 0),
            Self::Zcdp { rho } => (rho.get(), 0),
        };
        (self.name(), first.to_bits(), second)
    }

    /// Refuses an event that has no meaning, or no guarantee under this adjacency at all.
    pub fn check(&self, adjacency: Adjacency) -> Result<()> {
        let (name, size) = match self {
            Self::Laplace { dimension, .. } | Self::KNorm { dimension, .. } => ("dimension", *dimension),
            Self::OnePassGaussian { blocks, .. } => ("blocks", *blocks),
            Self::FixedSizeGaussian { .. } if adjacency == Adjacency::AddRemove => {
                return Err(Error::NoGuarantee {
                    event: self.name(),
                    adjacency,
                    reason: "a sample of fixed size needs the number of private rows, which is secret there",
                });
            }
            _ => return Ok(()),
        };
        if size == 0 {
            return Err(Error::InvalidParameter {
                name,
                value: size.to_string(),
                requirement: "a whole number >= 1",
            });
        }
        Ok(())
    }

    /// The pure ε of this event, if it has one, rounded up.
    pub(crate) fn pure_epsilon(&self, adjacency: Adjacency) -> Option<f64> {
        match self {
            Self::Laplace { noise_multiplier, .. } | Self::KNorm { noise_multiplier, .. } => {
                Some(divide_up(adjacency.sensitivity_factor(), noise_multiplier.get()))
            }
            Self::Pure { epsilon } => Some(epsilon.get()),
            _ => None,
        }
    }

    /// The pure ε of this event, if it has one, as a decimal number.
    pub(crate) fn pure_cost(&self, adjacency: Adjacency, count: Steps) -> Option<Decimal> {
        match self {
            Self::Laplace { noise_multiplier, .. } | Self::KNorm { noise_multiplier, .. } => {
                let sensitivity = adjacency.sensitivity_factor() as u64;
                Some(Decimal::quotient(sensitivity, noise_multiplier.get(), count.get()))
            }
            Self::Pure { epsilon } => Some(Decimal::of(epsilon.get()).times(count.get())),
            _ => None,
        }
    }

    /// ρ = μ²/2, if this event is an unsampled Gaussian mechanism for each unit.
    pub(crate) fn gaussian_rho(&self, adjacency: Adjacency) -> Option<Decimal> {
        let noise = match self {
            Self::Gaussian { noise_multiplier } | Self::OnePassGaussian { noise_multiplier, .. } => {
                noise_multiplier
            }
            Self::PoissonGaussian { noise_multiplier, sample_rate }
            | Self::FixedSizeGaussian { noise_multiplier, sample_rate }
                if sample_rate.get() == 1.0 =>
            {
                noise_multiplier
            }
            _ => return None,
        };
        // Half a square: twice of a quarter, under add/remove, as the numerator must be a whole number.
        Some(match adjacency {
            Adjacency::ReplaceOne => Decimal::quotient_by_square(2, noise.get()),
            Adjacency::AddRemove => Decimal::quotient_by_square(2, 2.0 * noise.get()),
        })
    }

    /// μ = sensitivity/σ, rounded up, if this event is an unsampled Gaussian mechanism for each unit.
    pub(crate) fn gaussian_mu(&self, adjacency: Adjacency) -> Option<f64> {
        match self {
            Self::Gaussian { noise_multiplier } | Self::OnePassGaussian { noise_multiplier, .. } => {
                Some(divide_up(adjacency.sensitivity_factor(), noise_multiplier.get()))
            }
            Self::PoissonGaussian { noise_multiplier, sample_rate }
            | Self::FixedSizeGaussian { noise_multiplier, sample_rate }
                if sample_rate.get() == 1.0 =>
            {
                Some(divide_up(adjacency.sensitivity_factor(), noise_multiplier.get()))
            }
            _ => None,
        }
    }
}

/// An event and how often it happens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// How often.
    pub count: Steps,
}

impl CountedEvent {
    /// `event`, `count` times.
    pub fn new(event: Event, count: Steps) -> Self {
        Self { event, count }
    }
}

impl<'de> Deserialize<'de> for CountedEvent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        // Split `count` off by hand: serde's `flatten` would accept unknown fields, and a
        // misspelt field of a privacy event must never be ignored.
        let mut map = serde_json::Map::deserialize(deserializer)?;
        let count = match map.remove("count") {
            Some(value) => serde_json::from_value(value).map_err(D::Error::custom)?,
            None => Steps::ONE,
        };
        let event = serde_json::from_value(map.into()).map_err(D::Error::custom)?;
        Ok(Self { event, count })
    }
}

/// Reads a JSON list of events, each with an optional `count`.
///
/// ```
/// let events = semidp_accounting::parse_events(
///     r#"[{"event":"poisson-gaussian","noise_multiplier":1,"sample_rate":0.01,"count":100}]"#,
/// )?;
/// assert_eq!(events[0].count.get(), 100);
/// # Ok::<(), semidp_accounting::Error>(())
/// ```
pub fn parse_events(text: &str) -> Result<Vec<CountedEvent>> {
    let malformed = |index, reason: String| Error::MalformedEvent { index, reason };
    let list = match crate::json::parse(text) {
        Ok(serde_json::Value::Array(values)) => Ok(values),
        Ok(_) => Err("not a JSON list".into()),
        Err(error @ crate::json::Error::NotJson(_)) => Err(format!("not a JSON list: {error}")),
        Err(error) => Err(error.to_string()),
    };
    let values = list.map_err(|reason| malformed(0, reason))?;
    if values.is_empty() {
        return Err(malformed(0, "the list is empty".into()));
    }
    values
        .into_iter()
        .enumerate()
        .map(|(index, value)| serde_json::from_value(value).map_err(|e| malformed(index, e.to_string())))
        .collect()
}
