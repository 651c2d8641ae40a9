//! Asking both accountants, under both adjacencies, and certifying what they say.

use crate::failure::Failure;
use semidp::files;
use semidp::files::kind;
use crate::program::Program;
use semidp_accounting::accountant::{Accountant, PldAccountant, PldOptions, ZcdpAccountant};
use semidp_accounting::{Adjacency, Certificate, Delta, Epsilon, Error, Event, Rho, delta, epsilon};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What is asked of a program.
#[derive(Clone, Copy)]
pub enum Question {
    /// Which epsilon, at this delta? At delta 0: which pure epsilon?
    EpsilonAt(Delta),
    /// Which delta, at this epsilon?
    DeltaAt(Epsilon),
    /// Which rho of zero-concentrated differential privacy?
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

/// What the accountants say.
pub struct Answered {
    /// The question.
    pub question: Question,
    /// Answered or given; none if only rho was asked.
    pub epsilon: Option<Epsilon>,
    /// Answered or given; none if only rho was asked.
    pub delta: Option<Delta>,
    /// Where every event has a zCDP guarantee.
    pub rho: Option<Rho>,
    /// The answered quantity by privacy loss distributions.
    pub pld: Option<f64>,
    /// The answered quantity by Rényi divergences.
    pub rdp: Option<f64>,
    /// The answered quantity under the other adjacency, or why there is none.
    pub other: Result<f64, String>,
    /// The evidence, or why there is none.
    pub certificate: Result<Certificate, String>,
}

impl Answered {
    /// Asks.
    pub fn ask(program: &Program, question: Question) -> Result<Self, Failure> {
        let adjacency = program.adjacency;
        let rho = rho(program, adjacency).ok();
        let other = other_adjacency(program, question)?;
        match question {
            Question::EpsilonAt(delta) => {
                let certificate = issue(program, delta)?;
                Ok(Self {
                    question,
                    epsilon: Some(certificate.guarantee.epsilon),
                    delta: Some(delta),
                    rho,
                    pld: certificate.accountants.pld.map(Epsilon::get),
                    rdp: certificate.accountants.rdp.map(Epsilon::get),
                    other,
                    certificate: Ok(certificate),
                })
            }
            Question::DeltaAt(epsilon) => {
                let answer = delta(&program.events, adjacency, epsilon)?;
                let value = printable(program, answer.value);
                let certificate = certify_delta(program, epsilon, value)?;
                let certified = certificate.as_ref().map(|certificate| certificate.guarantee.delta);
                Ok(Self {
                    question,
                    epsilon: Some(epsilon),
                    delta: Some(certified.unwrap_or(value)),
                    rho,
                    pld: answer.pld.map(|delta| printable(program, delta).get()),
                    rdp: answer.rdp.map(|delta| printable(program, delta).get()),
                    other,
                    certificate,
                })
            }
            Question::Rho => Ok(Self {
                question,
                epsilon: None,
                delta: None,
                rho: Some(self::rho(program, adjacency)?),
                pld: None,
                rdp: None,
                other,
                certificate: Err("a certificate states an epsilon: give --delta as well".into()),
            }),
        }
    }

    /// Puts another grid's figure in place of the PLD accountant's; nothing else changes.
    pub fn rescale_grid(&mut self, program: &Program, scale: f64) -> Result<(), Failure> {
        let options = PldOptions { step_scale: scale, ..PldOptions::default() };
        let mut accountant = PldAccountant::with_options(program.adjacency, options);
        if self.pld.is_none() || accountant.compose_all(&program.events).is_err() {
            return Ok(());
        }
        self.pld = Some(match self.question {
            Question::EpsilonAt(delta) => accountant.epsilon(delta)?.get(),
            Question::DeltaAt(epsilon) => printable(program, accountant.delta(epsilon)?).get(),
            Question::Rho => return Ok(()),
        });
        Ok(())
    }

    /// Writes the certificate to a file, or says why there is none.
    pub fn write_certificate(&self, path: &Path) -> Result<(), Failure> {
        let certificate = self.certificate.as_ref().map_err(|reason| {
            Failure::input(
                format!("--certificate: {reason}"),
                "leave out --certificate, or give a --delta at which there is one",
            )
        })?;
        kind::refuse_other("certificate", path, kind::Kind::Certificate)?;
        let text = serde_json::to_string_pretty(&certificate_json(certificate)?)
            .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?;
        Ok(files::write("certificate", path, &text)?)
    }

    fn accountants(&self) -> Value {
        match (self.question, self.epsilon) {
            (Question::EpsilonAt(delta), Some(epsilon)) if delta.get() == 0.0 => {
                json!({ "pld": null, "rdp": null, "pure": epsilon.get() })
            }
            _ => json!({ "pld": self.pld, "rdp": self.rdp }),
        }
    }

    /// The fields of the JSON answer that every command shares.
    pub fn json(&self, program: &Program) -> Result<Map<String, Value>, Failure> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("epsilon", json!(self.epsilon.map(Epsilon::get)));
        put("delta", json!(self.delta.map(Delta::get)));
        put("adjacency", json!(program.adjacency.name()));
        put("trust", json!(program.trust));
        put("protects", json!("private rows only"));
        put("mechanism", json!(program.mechanism));
        put("sampling", json!(program.sampling));
        put("noise_multiplier", json!(program.noise_multiplier));
        put("sample_rate", json!(program.sample_rate));
        put("steps", json!(program.steps));
        put("rho", json!(self.rho.map(Rho::get)));
        put("accountants", self.accountants());
        match &self.other {
            Ok(value) => {
                let mut other = Map::new();
                other.insert("adjacency".into(), json!(program.adjacency.other().name()));
                other.insert(self.question.quantity().into(), json!(value));
                put("other_adjacency", other.into());
            }
            Err(reason) => {
                put("other_adjacency", Value::Null);
                put("other_adjacency_note", json!(reason));
            }
        }
        put("arithmetic", json!("idealised"));
        match &self.certificate {
            Ok(certificate) => {
                put("certificate", certificate_json(certificate)?);
            }
            Err(reason) => {
                put("certificate", Value::Null);
                put("certificate_note", json!(reason));
            }
        }
        Ok(fields)
    }
}

fn certificate_json(certificate: &Certificate) -> Result<Value, Failure> {
    serde_json::to_value(certificate)
        .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))
}

fn issue(program: &Program, delta: Delta) -> Result<Certificate, Error> {
    let mut certificate = Certificate::issue(
        program.events.clone(),
        program.adjacency,
        program.trust,
        delta,
        program.in_words.clone(),
    )?;
    certificate.hyperparameters = program.provenance.clone();
    Ok(certificate)
}

/// Below this the accountants promise an upper bound, not a tight one.
const SMALLEST_DELTA: f64 = 1e-20;
/// Above this nothing is promised that deserves a certificate.
const USELESS_DELTA: f64 = 0.999;

/// A δ too small for a floating-point number arrives as 0, which would promise pure DP: where no
/// event can give that, the smallest positive number stands for it.
fn printable(program: &Program, delta: Delta) -> Delta {
    match Delta::new(f64::MIN_POSITIVE) {
        Ok(smallest) if delta < smallest && !program.is_pure() => smallest,
        _ => delta,
    }
}

/// A certificate for an answered delta. Both δ(ε) and ε(δ) are upper bounds, each rounded to the
/// safe side on a grid of its own, so the way back may end a hair above the ε that was asked
/// about: then the smallest of some slightly larger deltas that leads back to it is the answer.
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

/// What has no answer is left out, with the reason; accountants that contradict each other are a
/// bug and must not pass for that.
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
            delta(&program.events, other, epsilon).map(|answer| printable(program, answer.value).get())
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
