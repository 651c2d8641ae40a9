//! What is done to the private rows: from options or a file of events to privacy events, with
//! every combination refused that has no guarantee.

use crate::failure::Failure;
use crate::number;
use crate::options::{Mechanism, MechanismOptions, PromiseOptions, Sampling};
use semidp_accounting::{
    Adjacency, CountedEvent, Event, NoiseMultiplier, Provenance, SampleRate, Steps, Trust,
};
use serde_json::json;

/// A way to pick rows, with what it needs.
#[derive(Clone, Copy)]
enum Scheme {
    Everything,
    Poisson(SampleRate),
    FixedSize(SampleRate),
    OnePass,
}

/// Checked options of a mechanism; the noise and the number of steps are still open.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The law of the noise.
    pub mechanism: Mechanism,
    /// The neighbouring relation.
    pub adjacency: Adjacency,
    /// Who is trusted.
    pub trust: Trust,
    scheme: Scheme,
    dimension: u64,
}

impl Setting {
    /// Refuses combinations that mean nothing or have no guarantee.
    pub fn check(options: &MechanismOptions, promise: PromiseOptions) -> Result<Self, Failure> {
        let mechanism = options.mechanism.unwrap_or(Mechanism::Gaussian);
        let (adjacency, trust) = (promise.adjacency(), promise.trust());
        let rate = options.sample_rate;
        let sampling = options.sampling.unwrap_or(match rate {
            Some(rate) if rate.get() < 1.0 => Sampling::Poisson,
            _ => Sampling::None,
        });
        if mechanism != Mechanism::Gaussian && sampling != Sampling::None {
            return Err(Failure::input(
                format!("--mechanism {} must be used with --sampling none", mechanism.name()),
                "only Gaussian noise is accounted with sampling: leave out --sample-rate and --sampling",
            ));
        }
        if mechanism == Mechanism::Gaussian && options.dimension.is_some() {
            return Err(Failure::input(
                "--dimension must be used with --mechanism laplace or k-norm",
                "Gaussian noise costs the same in every dimension: leave it out",
            ));
        }
        if sampling != Sampling::None && trust == Trust::Local {
            return Err(Failure::input(
                format!("--trust local must be used with --sampling none, got {}", sampling.name()),
                "under local trust each person sends their own report: nobody samples rows in secret",
            ));
        }
        let scheme = match (sampling, rate) {
            (Sampling::InOrder, _) => {
                return Err(Failure::input(
                    "--sampling in-order must be used with `semidp train`",
                    "it costs what --sampling one-pass costs: ask for that",
                ));
            }
            (Sampling::Poisson, Some(rate)) => Scheme::Poisson(rate),
            (Sampling::FixedSize, Some(_)) if adjacency == Adjacency::AddRemove => {
                return Err(Failure::input(
                    "--sampling fixed-size must be used with --adjacency replace-one",
                    "under add-remove the number of private rows is secret: use --sampling poisson",
                ));
            }
            (Sampling::FixedSize, Some(rate)) => Scheme::FixedSize(rate),
            (Sampling::Poisson | Sampling::FixedSize, None) => {
                return Err(Failure::input(
                    format!("--sample-rate must be given with --sampling {}", sampling.name()),
                    "it is the expected batch over the number of private rows, as in --sample-rate 0.01",
                ));
            }
            (Sampling::OnePass | Sampling::None, Some(rate)) if rate.get() != 1.0 => {
                return Err(Failure::input(
                    format!(
                        "--sample-rate must be 1 or left out with --sampling {}, got {rate}",
                        sampling.name()
                    ),
                    "a rate below 1 goes with --sampling poisson or fixed-size",
                ));
            }
            (Sampling::OnePass, _) => Scheme::OnePass,
            (Sampling::None, _) => Scheme::Everything,
        };
        Ok(Self { mechanism, adjacency, trust, scheme, dimension: options.dimension.unwrap_or(1) })
    }

    /// How rows are picked.
    pub fn sampling(&self) -> Sampling {
        match self.scheme {
            Scheme::Everything => Sampling::None,
            Scheme::Poisson(_) => Sampling::Poisson,
            Scheme::FixedSize(_) => Sampling::FixedSize,
            Scheme::OnePass => Sampling::OnePass,
        }
    }

    /// The events of a run.
    pub fn events(&self, noise_multiplier: NoiseMultiplier, steps: Steps) -> Vec<CountedEvent> {
        let dimension = self.dimension;
        let event = match (self.scheme, self.mechanism) {
            (Scheme::Poisson(sample_rate), _) => Event::PoissonGaussian { noise_multiplier, sample_rate },
            (Scheme::FixedSize(sample_rate), _) => Event::FixedSizeGaussian { noise_multiplier, sample_rate },
            (Scheme::OnePass, _) => {
                // All blocks together are one event: no row is in two of them.
                let event = Event::OnePassGaussian { noise_multiplier, blocks: steps.get() };
                return vec![CountedEvent::new(event, Steps::ONE)];
            }
            (Scheme::Everything, Mechanism::Gaussian) => Event::Gaussian { noise_multiplier },
            (Scheme::Everything, Mechanism::Laplace) => Event::Laplace { noise_multiplier, dimension },
            (Scheme::Everything, Mechanism::KNorm) => Event::KNorm { noise_multiplier, dimension },
        };
        vec![CountedEvent::new(event, steps)]
    }

    /// The complete program. The sources say where the noise and the steps came from.
    pub fn program(&self, noise_multiplier: NoiseMultiplier, steps: Steps, sources: (&str, &str)) -> Program {
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
        if self.mechanism != Mechanism::Gaussian {
            provenance.push(stated("dimension", json!(self.dimension), "user"));
        }
        Program {
            events: self.events(noise_multiplier, steps),
            adjacency: self.adjacency,
            trust: self.trust,
            mechanism: self.mechanism.name(),
            sampling: self.sampling().name(),
            noise_multiplier: Some(noise_multiplier.get()),
            sample_rate,
            steps: steps.get(),
            in_words: self.in_words(steps),
            provenance,
        }
    }

    fn in_words(&self, steps: Steps) -> String {
        let law = match self.mechanism {
            Mechanism::Gaussian => "Gaussian noise",
            Mechanism::Laplace => "Laplace noise",
            Mechanism::KNorm => "K-norm noise",
        };
        let subject = match self.trust {
            Trust::Central => "the sum of clipped contributions",
            Trust::Local => "each person's own clipped contribution",
        };
        let releases = match steps.get() {
            1 => "1 release".into(),
            more => format!("{} releases", number::count(more)),
        };
        let picking = match self.scheme {
            Scheme::Everything => String::new(),
            Scheme::Poisson(rate) => {
                format!(", Poisson sampling at rate {}", number::nearest(rate.get(), 6))
            }
            Scheme::FixedSize(rate) => {
                format!(", samples of fixed size at rate {}", number::nearest(rate.get(), 6))
            }
            Scheme::OnePass => ", one for each of as many disjoint blocks".into(),
        };
        format!("{law} on {subject}, {releases}{picking}")
    }
}

/// Everything that is done to the private rows, and how to speak of it.
pub struct Program {
    /// Every access to the private rows.
    pub events: Vec<CountedEvent>,
    /// The neighbouring relation.
    pub adjacency: Adjacency,
    /// Who is trusted.
    pub trust: Trust,
    /// The law of the noise, or `events` for a list of them.
    pub mechanism: &'static str,
    /// How rows are picked; `mixed` if the events differ in that.
    pub sampling: &'static str,
    /// If there is one for all events.
    pub noise_multiplier: Option<f64>,
    /// If there is one for all events.
    pub sample_rate: Option<f64>,
    /// Number of noisy releases.
    pub steps: u64,
    /// The mechanism in words.
    pub in_words: String,
    /// Where each parameter came from.
    pub provenance: Vec<Provenance>,
}

impl Program {
    /// The program of a file of events.
    pub fn from_events(events: Vec<CountedEvent>, promise: PromiseOptions) -> Result<Self, Failure> {
        let (adjacency, trust) = (promise.adjacency(), promise.trust());
        for one in &events {
            one.event.check(adjacency).map_err(|error| Failure::from(error).about("--events"))?;
        }
        if let (Trust::Local, Some(event)) = (trust, sampled(&events)) {
            return Err(Failure::input(
                format!("--trust local must be used with unsampled events, got `{}`", event.name()),
                "under local trust each person sends their own report: nobody samples rows in secret",
            ));
        }
        let mut kinds: Vec<&str> = events.iter().map(|one| sampling_of(&one.event)).collect();
        kinds.dedup();
        let steps = events.iter().map(|one| releases_of(&one.event, one.count)).fold(0, u64::saturating_add);
        Ok(Self {
            adjacency,
            trust,
            mechanism: "events",
            sampling: if let [kind] = kinds[..] { kind } else { "mixed" },
            noise_multiplier: None,
            sample_rate: None,
            steps,
            in_words: format!(
                "{} releases by {} kinds of event, as given by the user",
                number::count(steps),
                events.len()
            ),
            provenance: vec![stated("events", json!(events.len()), "user")],
            events,
        })
    }

    /// Whether every event is pure, so that delta can be 0.
    pub fn is_pure(&self) -> bool {
        let pure =
            |event: &Event| matches!(event, Event::Laplace { .. } | Event::KNorm { .. } | Event::Pure { .. });
        self.events.iter().all(|one| pure(&one.event))
    }
}

/// The first event that needs a curator, because it picks rows in secret.
pub fn sampled(events: &[CountedEvent]) -> Option<&Event> {
    events.iter().map(|one| &one.event).find(|event| sampling_of(event) != Sampling::None.name())
}

fn sampling_of(event: &Event) -> &'static str {
    match event {
        Event::Gaussian { .. }
        | Event::Laplace { .. }
        | Event::KNorm { .. }
        | Event::Pure { .. }
        | Event::Zcdp { .. } => Sampling::None.name(),
        Event::PoissonGaussian { .. } => Sampling::Poisson.name(),
        Event::FixedSizeGaussian { .. } => Sampling::FixedSize.name(),
        Event::OnePassGaussian { .. } => Sampling::OnePass.name(),
        // An event this program does not know yet is taken for a sampled one: the careful answer.
        _ => "unknown",
    }
}

fn releases_of(event: &Event, count: Steps) -> u64 {
    match event {
        Event::OnePassGaussian { blocks, .. } => blocks.saturating_mul(count.get()),
        _ => count.get(),
    }
}

fn stated(name: &str, value: serde_json::Value, source: &str) -> Provenance {
    Provenance { name: name.into(), value, source: source.into() }
}
