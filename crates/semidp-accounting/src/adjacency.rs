//! Which two data sets must look alike.

use serde::{Deserialize, Serialize};

/// The neighbouring relation of a guarantee. An epsilon means nothing without it, so it is
/// always explicit and printed with every epsilon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One private unit is exchanged for another; the number of private units is public.
    /// The paper's definition, and our default.
    ReplaceOne,
    /// One private unit is added or removed; the number of private units is secret.
    AddRemove,
}

impl Adjacency {
    /// How far one unit can move a sum of contributions of norm at most 1: 2 under replace-one
    /// (one contribution leaves, another comes), 1 under add/remove. This is the one place where
    /// a clip norm turns into a sensitivity.
    pub fn sensitivity_factor(self) -> f64 {
        match self {
            Self::ReplaceOne => 2.0,
            Self::AddRemove => 1.0,
        }
    }

    /// The other relation.
    pub fn other(self) -> Self {
        match self {
            Self::ReplaceOne => Self::AddRemove,
            Self::AddRemove => Self::ReplaceOne,
        }
    }

    /// The name used on the command line and in certificates.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReplaceOne => "replace-one",
            Self::AddRemove => "add-remove",
        }
    }
}

impl std::fmt::Display for Adjacency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
