//! What the accountants say of a program: under both adjacencies, by both accountants, with a certificate.

use super::mechanism::{Law, Sampling, stated};
use crate::number::count;
use crate::{Error as LibraryError, Result as LibraryResult, sentence};
use semidp_accounting::accountant::{Accountant, PldAccountant, PldOptions, ZcdpAccountant};
use semidp_accounting::{
    Adjacency, Certificate, CountedEvent, Delta, Epsilon, Error, Event, Provenance, Rho, Steps, Trust, delta,
    epsilon,
};
use serde::Serialize;
use serde_json::json;

/// Everything that is done to the private rows.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) events: Vec<CountedEvent>,
    pub(super) adjacency: Adjacency,
    pub(super) trust: Trust,
    /// The law of the noise, or `events` for a list of them.
    pub(super) mechanism: &'static str,
    /// How rows are picked; `mixed` if the events differ in that.
    pub(super) sampling: &'static str,
    /// `None` if the events differ in it.
    pub(super) noise_multiplier: Option<f64>,
    /// `None` if the events differ in it.
    pub(super) sample_rate: Option<f64>,
    /// Number of noisy releases.
    pub(super) steps: u64,
    /// The mechanism in words, as the certificate states it.
    pub(super) description: String,
    pub(super) provenance: Vec<Provenance>,
}

impl Program {
    /// The program of a list of events.
    pub(super) fn from_events(
        events: Vec<CountedEvent>,
        adjacency: Adjacency,
        trust: Trust,
    ) -> LibraryResult<Self> {
        for one in &events {
            one.event.check(adjacency)?;
        }
        let sampled = events.iter().find(|one| sampling_of(&one.event) != Sampling::None.name());
        if let (Trust::Local, Some(sampled)) = (trust, sampled) {
            return Err(LibraryError::usage(
                "trust",
                sentence!(
                    "{trust=local} must be used with unsampled events, got `{0}`",
                    sampled.event.name()
                ),
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
            description: format!(
                "{} releases by {} kinds of event, as given by the user",
                count(steps),
                events.len()
            ),
            provenance: vec![stated("events", json!(events.len()), "user")],
            events,
        })
    }

    /// Whether every event is pure, so that delta can be 0.
    pub(super) fn is_pure(&self) -> bool {
        let pure =
            |event: &Event| matches!(event, Event::Laplace { .. } | Event::KNorm { .. } | Event::Pure { .. });
        self.events.iter().all(|one| pure(&one.event))
    }
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
        // An event this version does not know counts as a sampled one: the careful answer.
        _ => "unknown",
    }
}

fn releases_of(event: &Event, count: Steps) -> u64 {
    match event {
        Event::OnePassGaussian { blocks, .. } => blocks.saturating_mul(count.get()),
        _ => count.get(),
    }
}

/// What was asked of the accountants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Question {
    /// Which epsilon holds at this delta; at delta 0 the pure one.
    EpsilonAt(Delta),
    /// Which delta holds at this epsilon.
    DeltaAt(Epsilon),
    /// Which rho of zCDP holds.
    Rho,
}

impl Question {
    /// The name of the quantity that is answered.
    pub fn quantity(self) -> &'static str {
        match self {
            Self::EpsilonAt(_) => "epsilon",
            Self::DeltaAt(_) => "delta",
            Self::Rho => "rho",
        }
    }
}

/// The answered quantity by each accountant; `None` where one does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ByAccountant {
    /// By privacy loss distributions.
    pub pld: Option<f64>,
    /// By Rényi divergences.
    pub rdp: Option<f64>,
    /// The pure epsilon, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pure: Option<f64>,
}

/// The answered quantity for the same noise under the other adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OtherAdjacency {
    /// That adjacency.
    pub adjacency: Adjacency,
    /// Its epsilon, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Its delta, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Its rho, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rho: Option<f64>,
}

/// The answer of [`Account`](crate::Account) and [`Calibrate`](crate::Calibrate).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccountOutcome {
    /// Answered or given; `None` if only rho was asked.
    pub epsilon: Option<f64>,
    /// Answered or given; `None` if only rho was asked.
    pub delta: Option<f64>,
    /// The neighbouring relation of the answer.
    pub adjacency: Adjacency,
    /// Who sees the private rows.
    pub trust: Trust,
    /// What the guarantee covers.
    pub protects: &'static str,
    /// The law of the noise, or `events` for a list of events.
    pub mechanism: &'static str,
    /// How rows are picked; `mixed` if the events differ in that.
    pub sampling: &'static str,
    /// Noise std (Laplace, K-norm: scale) on the sum of clipped contributions over the clip norm, if all events share one.
    pub noise_multiplier: Option<f64>,
    /// Probability that a private row takes part in a step, if all events share one.
    pub sample_rate: Option<f64>,
    /// Number of noisy releases.
    pub steps: u64,
    /// Rho of zCDP, where every event has one.
    pub rho: Option<f64>,
    /// The answer by each accountant.
    pub accountants: ByAccountant,
    /// The same noise under the other adjacency, where it means something.
    pub other_adjacency: Option<OtherAdjacency>,
    /// Why there is no answer under the other adjacency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_adjacency_note: Option<String>,
    /// The accountants speak of real-valued noise.
    pub arithmetic: &'static str,
    /// The evidence.
    pub certificate: Option<Certificate>,
    /// Why there is no certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_note: Option<String>,
    /// The epsilon that was calibrated for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_epsilon: Option<f64>,
    /// The rho that was calibrated for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_rho: Option<f64>,
    /// The factor on the step of the PLD accountant's grid, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid_scale: Option<f64>,
    /// What was asked.
    #[serde(skip)]
    pub question: Question,
    /// The law of the noise, if there is one for all events.
    #[serde(skip)]
    pub law: Option<Law>,
    /// The mechanism in words.
    #[serde(skip)]
    pub description: String,
}

impl AccountOutcome {
    /// Asks the accountants.
    pub(super) fn of(program: &Program, law: Option<Law>, question: Question) -> LibraryResult<Self> {
        let adjacency = program.adjacency;
        let other = other_adjacency(program, question)?;
        let mut accountants = ByAccountant { pld: None, rdp: None, pure: None };
        let (epsilon, delta, certificate) = match question {
            Question::EpsilonAt(delta) => {
                let certificate = issue(program, delta)?;
                let epsilon = certificate.guarantee.epsilon;
                if delta.get() == 0.0 {
                    accountants.pure = Some(epsilon.get());
                } else {
                    accountants.pld = certificate.accountants.pld.map(Epsilon::get);
                    accountants.rdp = certificate.accountants.rdp.map(Epsilon::get);
                }
                (Some(epsilon), Some(delta), Ok(certificate))
            }
            Question::DeltaAt(epsilon) => {
                let answer = delta(&program.events, adjacency, epsilon)?;
                let value = representable(program, answer.value);
                let certificate = certify_delta(program, epsilon, value)?;
                let certified = certificate.as_ref().map(|certificate| certificate.guarantee.delta);
                accountants.pld = answer.pld.map(|delta| representable(program, delta).get());
                accountants.rdp = answer.rdp.map(|delta| representable(program, delta).get());
                (Some(epsilon), Some(certified.unwrap_or(value)), certificate)
            }
            Question::Rho => (
                None,
                None,
                Err("a certificate states an epsilon at a delta, and no delta was given".to_string()),
            ),
        };
        let rho = match question {
            Question::Rho => Some(self::rho(program, adjacency)?),
            _ => self::rho(program, adjacency).ok(),
        };
        let (other_adjacency, other_adjacency_note) = match other {
            Ok(value) => {
                let mut other =
                    OtherAdjacency { adjacency: adjacency.other(), epsilon: None, delta: None, rho: None };
                match question {
                    Question::EpsilonAt(_) => other.epsilon = Some(value),
                    Question::DeltaAt(_) => other.delta = Some(value),
                    Question::Rho => other.rho = Some(value),
                }
                (Some(other), None)
            }
            Err(reason) => (None, Some(reason)),
        };
        let (certificate, certificate_note) = match certificate {
            Ok(certificate) => (Some(certificate), None),
            Err(reason) => (None, Some(reason)),
        };
        Ok(Self {
            epsilon: epsilon.map(Epsilon::get),
            delta: delta.map(Delta::get),
            adjacency,
            trust: program.trust,
            protects: "private rows only",
            mechanism: program.mechanism,
            sampling: program.sampling,
            noise_multiplier: program.noise_multiplier,
            sample_rate: program.sample_rate,
            steps: program.steps,
            rho: rho.map(Rho::get),
            accountants,
            other_adjacency,
            other_adjacency_note,
            arithmetic: "idealised",
            certificate,
            certificate_note,
            target_epsilon: None,
            target_rho: None,
            grid_scale: None,
            question,
            law,
            description: program.description.clone(),
        })
    }

    /// Puts the PLD accountant's figure on another grid in place of its own; nothing else changes.
    pub(super) fn rescale_grid(&mut self, program: &Program, scale: f64) -> LibraryResult<()> {
        self.grid_scale = Some(scale);
        let options = PldOptions { step_scale: scale, ..PldOptions::default() };
        let mut accountant = PldAccountant::with_options(program.adjacency, options);
        if self.accountants.pld.is_none() || accountant.compose_all(&program.events).is_err() {
            return Ok(());
        }
        self.accountants.pld = Some(match self.question {
            Question::EpsilonAt(delta) => accountant.epsilon(delta)?.get(),
            Question::DeltaAt(epsilon) => representable(program, accountant.delta(epsilon)?).get(),
            Question::Rho => return Ok(()),
        });
        Ok(())
    }
}

fn issue(program: &Program, delta: Delta) -> Result<Certificate, Error> {
    let mut certificate = Certificate::issue(
        program.events.clone(),
        program.adjacency,
        program.trust,
        delta,
        program.description.clone(),
    )?;
    certificate.hyperparameters = program.provenance.clone();
    Ok(certificate)
}

/// Below this the accountants promise an upper bound, not a tight one.
const SMALLEST_DELTA: f64 = 1e-20;
/// Above this nothing is promised that deserves a certificate.
const USELESS_DELTA: f64 = 0.999;

/// A δ too small for a floating-point number arrives as 0, which would promise pure DP: where no event can give that, the smallest
/// positive number stands for it.
fn representable(program: &Program, delta: Delta) -> Delta {
    match Delta::new(f64::MIN_POSITIVE) {
        Ok(smallest) if delta < smallest && !program.is_pure() => smallest,
        _ => delta,
    }
}

/// A certificate for an answered delta. Both δ(ε) and ε(δ) are upper bounds, each rounded to the safe side on a grid of its own, so the
/// way back may end a hair above the ε that was asked about: then the smallest of some slightly larger deltas that leads back to it is
/// the answer.
fn certify_delta(program: &Program, epsilon: Epsilon, answered: Delta) -> Result<Certified, Error> {
    // A δ of 0 is pure, and certain; any other that is too small to be tight is raised.
    let start = if answered.get() == 0.0 { 0.0 } else { answered.get().max(SMALLEST_DELTA) };
    let mut reason = "at that delta the accountants only certify a larger epsilon".to_string();
    for slack in [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1] {
        let delta = start * (1.0 + slack);
        if delta > USELESS_DELTA {
            break;
        }
        match unless_a_bug(Delta::new(delta).and_then(|delta| issue(program, delta)))? {
            Ok(certificate) if certificate.guarantee.epsilon <= epsilon => return Ok(Ok(certificate)),
            Ok(_) => {}
            Err(error) => reason = error,
        }
    }
    if answered.get() > USELESS_DELTA {
        reason = "a delta this close to 1 promises nothing".into();
    }
    Ok(Err(format!("no certificate: {reason}")))
}

/// A certificate, or why there is none.
type Certified = Result<Certificate, String>;

/// What has no answer is left out, with the reason; accountants that contradict each other are a bug and must not pass for that.
fn unless_a_bug<T>(answer: Result<T, Error>) -> Result<Result<T, String>, Error> {
    match answer {
        Err(error @ Error::Disagreement { .. }) => Err(error),
        other => Ok(other.map_err(|error| error.to_string())),
    }
}

fn rho(program: &Program, adjacency: Adjacency) -> Result<Rho, Error> {
    let mut accountant = ZcdpAccountant::new(adjacency);
    accountant.compose_all(&program.events)?;
    accountant.rho()
}

/// The same events under the other neighbouring relation, or why they have no meaning there.
fn other_adjacency(program: &Program, question: Question) -> Result<Result<f64, String>, Error> {
    let other = program.adjacency.other();
    if let Some(reason) = program.events.iter().find_map(|one| obstacle(&one.event, program.adjacency)) {
        return Ok(Err(reason));
    }
    unless_a_bug(match question {
        Question::EpsilonAt(delta) => epsilon(&program.events, other, delta).map(|answer| answer.value.get()),
        Question::DeltaAt(epsilon) => {
            delta(&program.events, other, epsilon).map(|answer| representable(program, answer.value).get())
        }
        Question::Rho => rho(program, other).map(Rho::get),
    })
}

/// Why an event that means something under one relation means nothing under the other.
fn obstacle(event: &Event, adjacency: Adjacency) -> Option<String> {
    let reason = match (event, adjacency) {
        (Event::FixedSizeGaussian { .. }, Adjacency::ReplaceOne) => {
            "under add-remove the number of private rows is secret, and a sample of fixed size needs it"
        }
        (Event::OnePassGaussian { .. }, Adjacency::ReplaceOne) => {
            "the blocks are fixed by index, and under add-remove one row more or less would shift them"
        }
        (Event::Pure { .. } | Event::Zcdp { .. }, _) => {
            return Some(format!("a `{}` event states its cost under {adjacency} only", event.name()));
        }
        _ => return None,
    };
    Some(reason.into())
}
