//! What is promised, to whom.

use crate::{Adjacency, Delta, Epsilon, Rho};
use serde::{Deserialize, Serialize};

/// Who is trusted with the raw rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// A curator holds the private rows.
    Central,
    /// Each person randomises before anything leaves their device.
    Local,
}

/// What the guarantee covers. There is one answer: public rows are never protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Protects {
    /// For every fixed public data set, the output is differentially private in the private rows.
    #[default]
    #[serde(rename = "private rows only")]
    PrivateRowsOnly,
}

/// A semi-DP guarantee: differentially private in the private units, for every fixed public data set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// ε; unbounded, and null as JSON, where nothing is promised.
    #[serde(with = "bounded_or_null")]
    pub epsilon: Epsilon,
    /// δ; 0 for pure ε-DP.
    pub delta: Delta,
    /// ρ, where every event has a zCDP guarantee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rho: Option<Rho>,
    /// The neighbouring relation, without which ε means nothing.
    pub adjacency: Adjacency,
    /// Who is trusted.
    pub trust: Trust,
    /// Always the private rows only.
    pub protects: Protects,
}

/// JSON has no infinity: an unbounded ε is null.
mod bounded_or_null {
    use crate::Epsilon;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(epsilon: &Epsilon, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*epsilon).filter(|epsilon| *epsilon != Epsilon::UNBOUNDED).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Epsilon, D::Error> {
        Ok(Option::<Epsilon>::deserialize(deserializer)?.unwrap_or(Epsilon::UNBOUNDED))
    }
}
