//! How private rows are sampled and noised, as options, and the privacy events that follow. Combinations without a guarantee are refused.

use super::outcome::Program;
use crate::{Error, Result, sentence};
use semidp_accounting::{
    Adjacency, CountedEvent, Event, NoiseMultiplier, Provenance, SampleRate, Steps, Trust,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The law of the noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Normal noise on contributions clipped in l2 norm; (epsilon, delta)
    #[default]
    Gaussian,
    /// Laplace noise on contributions clipped in l1 norm; pure epsilon
    Laplace,
    /// Noise of density exp(-norm/scale) on contributions clipped in l2 norm; pure epsilon
    KNorm,
}

impl Law {
    /// The name in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Laplace => "laplace",
            Self::KNorm => "k-norm",
        }
    }
}

/// How a step picks its private rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Each row joins independently with probability --sample-rate
    Poisson,
    /// A random subset of fixed size; replace-one only
    FixedSize,
    /// Disjoint blocks, one for each step: no row is used twice
    OnePass,
    /// The same in the order of the file, for `train` on files that do not fit into memory; replace-one only
    InOrder,
    /// Every row takes part in every step
    None,
}

impl Sampling {
    /// The name in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::FixedSize => "fixed-size",
            Self::OnePass => "one-pass",
            Self::InOrder => "in-order",
            Self::None => "none",
        }
    }
}

/// How private rows are sampled and noised, and which guarantee is meant; the noise and the number of steps are not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Mechanism {
    /// The law of the noise.
    pub law: Law,
    /// How a step picks its rows; by default Poisson with a sample rate below 1, otherwise all rows.
    pub sampling: Option<Sampling>,
    /// Probability that a private row takes part in a step.
    pub sample_rate: Option<f64>,
    /// Number of coordinates that get Laplace or K-norm noise.
    pub dimension: Option<u64>,
    /// The neighbouring relation.
    pub adjacency: Adjacency,
    /// Who sees the private rows.
    pub trust: Trust,
}

impl Default for Mechanism {
    fn default() -> Self {
        Self {
            law: Law::default(),
            sampling: None,
            sample_rate: None,
            dimension: None,
            adjacency: Adjacency::ReplaceOne,
            trust: Trust::Central,
        }
    }
}

/// A sampling with what it needs.
#[derive(Debug, Clone, Copy)]
enum Scheme {
    Everything,
    Poisson(SampleRate),
    FixedSize(SampleRate),
    OnePass,
}

/// A mechanism whose combination of options has a guarantee.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedMechanism {
    pub(super) law: Law,
    pub(super) adjacency: Adjacency,
    pub(super) trust: Trust,
    scheme: Scheme,
    dimension: u64,
}

impl Mechanism {
    /// Refuses combinations that mean nothing or have no guarantee.
    pub(super) fn check(&self) -> Result<CheckedMechanism> {
        let Self { law, adjacency, trust, .. } = *self;
        let rate = self.sample_rate.map(SampleRate::new).transpose()?;
        let sampling = self.sampling.unwrap_or(match rate {
            Some(rate) if rate.get() < 1.0 => Sampling::Poisson,
            _ => Sampling::None,
        });
        if law != Law::Gaussian && sampling != Sampling::None {
            return Err(Error::usage(
                "mechanism",
                sentence!("{mechanism=0} must be used with {sampling=none}", law.name()),
                "only Gaussian noise is accounted with sampling: leave out {sample-rate} and {sampling}",
            ));
        }
        if law == Law::Gaussian && self.dimension.is_some() {
            return Err(Error::usage(
                "dimension",
                "{dimension} must be used with {mechanism=laplace} or k-norm",
                "Gaussian noise costs the same in every dimension: leave it out",
            ));
        }
        if self.dimension == Some(0) {
            return Err(Error::invalid("dimension", 0, "a whole number >= 1"));
        }
        if sampling != Sampling::None && trust == Trust::Local {
            return Err(Error::usage(
                "trust",
                sentence!("{trust=local} must be used with {sampling=none}, got {0}", sampling.name()),
                "under local trust each person sends their own report: nobody samples rows in secret",
            ));
        }
        let scheme = match (sampling, rate) {
            (Sampling::InOrder, _) => {
                return Err(Error::usage(
                    "sampling",
                    "{sampling=in-order} must be used with {!train}",
                    "it costs what {sampling=one-pass} costs: ask for that",
                ));
            }
            (Sampling::Poisson, Some(rate)) => Scheme::Poisson(rate),
            (Sampling::FixedSize, Some(_)) if adjacency == Adjacency::AddRemove => {
                return Err(Error::usage(
                    "sampling",
                    "{sampling=fixed-size} must be used with {adjacency=replace-one}",
                    "under add-remove the number of private rows is secret: use {sampling=poisson}",
                ));
            }
            (Sampling::FixedSize, Some(rate)) => Scheme::FixedSize(rate),
            (Sampling::Poisson | Sampling::FixedSize, None) => {
                return Err(Error::usage(
                    "sample-rate",
                    sentence!("{sample-rate} must be given with {sampling=0}", sampling.name()),
                    "it is the expected batch over the number of private rows, as in {sample-rate=0.01}",
                ));
            }
            (Sampling::OnePass | Sampling::None, Some(rate)) if rate.get() != 1.0 => {
                return Err(Error::usage(
                    "sample-rate",
                    sentence!(
                        "{sample-rate} must be 1 or left out with {sampling=0}, got {1}",
                        sampling.name(),
                        rate
                    ),
                    "a rate below 1 goes with {sampling=poisson} or fixed-size",
                ));
            }
            (Sampling::OnePass, _) => Scheme::OnePass,
            (Sampling::None, _) => Scheme::Everything,
        };
        Ok(CheckedMechanism { law, adjacency, trust, scheme, dimension: self.dimension.unwrap_or(1) })
    }
}

impl CheckedMechanism {
    /// How rows are picked.
    pub(super) fn sampling(&self) -> Sampling {
        match self.scheme {
            Scheme::Everything => Sampling::None,
            Scheme::Poisson(_) => Sampling::Poisson,
            Scheme::FixedSize(_) => Sampling::FixedSize,
            Scheme::OnePass => Sampling::OnePass,
        }
    }

    /// The events of a run.
    pub(super) fn events(&self, noise_multiplier: NoiseMultiplier, steps: Steps) -> Vec<CountedEvent> {
        let dimension = self.dimension;
        let event = match (self.scheme, self.law) {
            (Scheme::Poisson(sample_rate), _) => Event::PoissonGaussian { noise_multiplier, sample_rate },
            (Scheme::FixedSize(sample_rate), _) => Event::FixedSizeGaussian { noise_multiplier, sample_rate },
            (Scheme::OnePass, _) => {
                // All blocks together are one event: no row is in two of them.
                let event = Event::OnePassGaussian { noise_multiplier, blocks: steps.get() };
                return vec![CountedEvent::new(event, Steps::ONE)];
            }
            (Scheme::Everything, Law::Gaussian) => Event::Gaussian { noise_multiplier },
            (Scheme::Everything, Law::Laplace) => Event::Laplace { noise_multiplier, dimension },
            (Scheme::Everything, Law::KNorm) => Event::KNorm { noise_multiplier, dimension },
        };
        vec![CountedEvent::new(event, steps)]
    }

    /// The complete program. The sources say where the noise and the steps came from.
    pub(super) fn program(
        &self,
        noise_multiplier: NoiseMultiplier,
        steps: Steps,
        sources: (&str, &str),
    ) -> Program {
        let sample_rate = match self.scheme {
            Scheme::Everything => Some(1.0),
            Scheme::Poisson(rate) | Scheme::FixedSize(rate) => Some(rate.get()),
            Scheme::OnePass => None,
        };
        let mut provenance = vec![
            stated("noise_multiplier", json!(noise_multiplier.get()), sources.0),
            stated("steps", json!(steps.get()), sources.1),
            stated("sampling", json!(self.sampling().name()), "user"),
        ];
        if let Scheme::Poisson(rate) | Scheme::FixedSize(rate) = self.scheme {
            provenance.push(stated("sample_rate", json!(rate.get()), "user"));
        }
        if self.law != Law::Gaussian {
            provenance.push(stated("dimension", json!(self.dimension), "user"));
        }
        Program {
            events: self.events(noise_multiplier, steps),
            adjacency: self.adjacency,
            trust: self.trust,
            mechanism: self.law.name(),
            sampling: self.sampling().name(),
            noise_multiplier: Some(noise_multiplier.get()),
            sample_rate,
            steps: steps.get(),
            description: self.description(steps),
            provenance,
        }
    }

    fn description(&self, steps: Steps) -> String {
        let law = match self.law {
            Law::Gaussian => "Gaussian noise",
            Law::Laplace => "Laplace noise",
            Law::KNorm => "K-norm noise",
        };
        let subject = match self.trust {
            Trust::Central => "the sum of clipped contributions",
            Trust::Local => "each person's own clipped contribution",
        };
        let releases = match steps.get() {
            1 => "1 release".into(),
            more => format!("{} releases", crate::number::count(more)),
        };
        let picking = match self.scheme {
            Scheme::Everything => String::new(),
            Scheme::Poisson(rate) => {
                format!(", Poisson sampling at rate {}", crate::number::nearest(rate.get(), 6))
            }
            Scheme::FixedSize(rate) => {
                format!(", samples of fixed size at rate {}", crate::number::nearest(rate.get(), 6))
            }
            Scheme::OnePass => ", one for each of as many disjoint blocks".into(),
        };
        format!("{law} on {subject}, {releases}{picking}")
    }
}

pub(super) fn stated(name: &str, value: serde_json::Value, source: &str) -> Provenance {
    Provenance { name: name.into(), value, source: source.into() }
}
