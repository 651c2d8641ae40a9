//! Whether the parts of a certificate agree with each other: the events with mechanism, trust, arithmetic, random source and
//! hyper-parameters.
//!
//! A certificate that was altered with care can agree with itself; only a signature excludes that. Hyper-parameters of other names than
//! those below are not compared with anything.

use super::mechanism::{self, Mechanism};
use super::{Arithmetic, Certificate, Provenance, RandomSource, releases};
use crate::{Adjacency, Event, Trust};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Hyper-parameters that only a noisy release has, without the hyphens in their names.
const OF_RELEASES: [&str; 16] = [
    "noisemultiplier",
    "steps",
    "releases",
    "samplerate",
    "expectedbatch",
    "batch",
    "blocks",
    "randomizer",
    "sampling",
    "groups",
    "jointclipnorm",
    "squarescale",
    "unreadablescale",
    "clippedscale",
    "noiseprice",
    "accuracyprice",
];
/// Largest relative amount by which a rho may exceed a stated one: two orders of summation differ in the last digits.
const RHO_TOLERANCE: f64 = 1e-12;

/// Each disagreement.
pub(super) fn objections(certificate: &Certificate) -> Vec<String> {
    let mut found = Vec::new();
    if !mechanism::is_plain(&certificate.version) {
        found.push("version: it must be plain text".into());
    }
    match Mechanism::parse(&certificate.mechanism) {
        Some(mechanism) => mechanism_agrees(certificate, &mechanism, &mut found),
        None => found.push(format!(
            "mechanism: {:?} is none that semidp issues; one of another program begins with `custom: `",
            certificate.mechanism
        )),
    }
    trust(certificate, &mut found);
    adjacency(certificate, &mut found);
    noise(certificate, &mut found);
    if certificate.releases != releases(&certificate.events) {
        found.push(format!(
            "releases: claims {}, the events make {}",
            certificate.releases,
            releases(&certificate.events)
        ));
    }
    let stated = &certificate.hyperparameters;
    names(stated, &mut found);
    found.extend(stated.iter().filter_map(|stated| hyperparameter(certificate, stated)));
    found.extend(batch(stated));
    found
}

/// What the mechanism says, beside the other parts.
fn mechanism_agrees(certificate: &Certificate, mechanism: &Mechanism<'_>, found: &mut Vec<String>) {
    let events = &certificate.events;
    if let Some(reason) = mechanism.contradiction(events, releases(events)) {
        found.push(format!("mechanism: {reason}"));
    }
    let claimed = certificate.guarantee.trust;
    if let Some(implied) = mechanism.trust().filter(|implied| *implied != claimed) {
        found.push(format!("trust: claims {}, its mechanism is {}", word(claimed), word(implied)));
    }
    if let (Adjacency::AddRemove, Mechanism::Release { is_mean: true, .. }) =
        (certificate.guarantee.adjacency, mechanism)
    {
        found.push("adjacency: claims add-remove, but a mean is released under replace-one only".into());
    }
    let is_drawn = certificate.random_source != RandomSource::None;
    let is_wrong = match mechanism {
        Mechanism::Release { .. } => !is_drawn,
        Mechanism::Local { reports, .. } => is_drawn == reports.is_elsewhere,
        Mechanism::Computed(_) => is_drawn,
        // A list of events may sum up runs whose noise came from a seed, and must not claim that it is private for that.
        Mechanism::Listed { .. } => certificate.random_source == RandomSource::OperatingSystem,
        Mechanism::PublicOnly { .. } | Mechanism::NonPrivate | Mechanism::Custom => false,
    };
    if is_wrong && !events.is_empty() {
        found.push(match is_drawn {
            true => "random_source: claims that noise was drawn, but its mechanism draws none".into(),
            false => "random_source: claims none, but the events added noise".into(),
        });
    }
    let inexact = match mechanism {
        Mechanism::Local { reports, .. } if !reports.is_exact() => "its randomiser computes",
        Mechanism::Computed(_) | Mechanism::Listed { .. } => "nothing was drawn, and it was computed",
        Mechanism::Custom if !events.is_empty() => "semidp does not know the mechanism, which may compute",
        _ => return,
    };
    if certificate.arithmetic == Arithmetic::Exact {
        found.push(format!("arithmetic: claims exact, but {inexact} in idealised arithmetic"));
    }
}

fn word(trust: Trust) -> &'static str {
    match trust {
        Trust::Central => "central",
        Trust::Local => "local",
    }
}

fn trust(certificate: &Certificate, found: &mut Vec<String>) {
    let sampled = certificate.events.iter().map(|one| &one.event).find(|event| sampling(event) != "none");
    if let (Trust::Local, Some(event)) = (certificate.guarantee.trust, sampled) {
        found.push(format!("trust: claims local, but `{}` needs a curator", event.name()));
    }
}

/// Samples of a fixed number of rows use the number of private rows, which add-remove keeps secret.
fn adjacency(certificate: &Certificate, found: &mut Vec<String>) {
    if certificate.guarantee.adjacency != Adjacency::AddRemove {
        return;
    }
    let needs_count = |stated: &&Provenance| {
        key(&stated.name) == "sampling" && matches!(stated.value.as_str(), Some("in-order" | "fixed-size"))
    };
    if let Some(stated) = certificate.hyperparameters.iter().find(needs_count) {
        found.push(format!(
            "adjacency: claims add-remove, but sampling {} is defined under replace-one only",
            stated.value
        ));
    }
}

/// Where noise came from and how it was computed, as far as the events say.
fn noise(certificate: &Certificate, found: &mut Vec<String>) {
    let events = &certificate.events;
    if events.is_empty() && certificate.random_source != RandomSource::None {
        found.push("random_source: claims that noise was drawn, but there are no events".into());
    }
    let has_k_norm = events.iter().any(|one| matches!(one.event, Event::KNorm { .. }));
    if has_k_norm && certificate.arithmetic == Arithmetic::Exact {
        found.push("arithmetic: claims exact, but K-norm noise is drawn in idealised arithmetic".into());
    }
}

/// Names that a reader takes for others: two of one parameter, or one with capitals, hidden characters or letters of another alphabet.
fn names(stated: &[Provenance], found: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    for Provenance { name, .. } in stated {
        let is_plain = name.split(['-', '_']).all(|part| {
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            !part.is_empty() && part.bytes().all(is_plain)
        });
        if !is_plain {
            found.push(format!(
                "hyperparameters: {name:?} must have lower-case letters and digits, with single hyphens between them"
            ));
        }
        if !known.insert(key(name)) {
            found.push(format!("hyperparameters: {name:?} is stated twice"));
        }
    }
}

/// A name by its letters and digits: `noise-multiplier`, `noise_multiplier` and `noisemultiplier` are one parameter.
fn key(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect()
}

/// What one hyper-parameter says that the events, the mechanism or the guarantee do not.
fn hyperparameter(certificate: &Certificate, stated: &Provenance) -> Option<String> {
    let events = &certificate.events;
    let key = key(&stated.name);
    if OF_RELEASES.contains(&key.as_str()) && events.is_empty() {
        return Some(format!("{}: stated, but there are no events", stated.name));
    }
    let value = &stated.value;
    let any = |field: fn(&Event) -> Option<f64>| {
        let value = value.as_f64();
        events.iter().any(|one| field(&one.event).is_some_and(|actual| value == Some(actual)))
    };
    let agrees = match key.as_str() {
        "noisemultiplier" => any(noise_multiplier),
        "samplerate" => any(sample_rate),
        "blocks" => any(blocks),
        "dimension" => match Mechanism::parse(&certificate.mechanism) {
            Some(Mechanism::Local { reports, .. }) => value.as_u64() == Some(reports.dimension),
            _ => any(dimension),
        },
        "releases" => value.as_u64() == Some(certificate.releases),
        "events" => value.as_u64() == Some(events.len() as u64),
        "steps" => {
            // The last pass over disjoint blocks may end early.
            let longest = events.iter().filter_map(|one| blocks(&one.event)).fold(1.0, f64::max);
            let rest = value.as_u64().and_then(|steps| certificate.releases.checked_sub(steps));
            rest.is_some_and(|rest| (rest as f64) < longest)
        }
        "sampling" => {
            let wanted = match value.as_str() {
                Some("in-order") => Some("one-pass"),
                other => other,
            };
            events.iter().any(|one| Some(sampling(&one.event)) == wanted)
        }
        _ => return guaranteed(certificate, &key, stated).or_else(|| named(certificate, &key, stated)),
    };
    (!agrees).then(|| format!("{}: states {value}, which no event has", stated.name))
}

/// A hyper-parameter that states a part of the guarantee, where the guarantee is weaker or another.
fn guaranteed(certificate: &Certificate, key: &str, stated: &Provenance) -> Option<String> {
    let guarantee = &certificate.guarantee;
    let Provenance { name, value, .. } = stated;
    let certified = match key {
        "epsilon" => json!(guarantee.epsilon),
        "delta" => json!(guarantee.delta),
        "rho" => json!(guarantee.rho),
        "trust" => json!(guarantee.trust),
        "adjacency" => json!(guarantee.adjacency),
        "protects" => json!(guarantee.protects),
        "arithmetic" => json!(certificate.arithmetic),
        "randomsource" | "seed" => json!(certificate.random_source),
        "budget" => return budget(certificate, stated),
        _ => return None,
    };
    let agrees = match key {
        "epsilon" | "delta" => !is_below(value, &certified, 0.0),
        "rho" => !is_below(value, &certified, RHO_TOLERANCE),
        "seed" => certificate.random_source == RandomSource::Seeded,
        _ => *value == certified,
    };
    (!agrees).then(|| format!("{name}: states {value}, the certificate {certified}"))
}

/// Whether a stated bound is no number, or below a certified one or where there is none.
fn is_below(stated: &Value, certified: &Value, tolerance: f64) -> bool {
    match (stated.as_f64(), certified.as_f64()) {
        (Some(stated), Some(certified)) => stated * (1.0 + tolerance) < certified,
        _ => true,
    }
}

/// A budget is that of the run: the guarantee is within it.
fn budget(certificate: &Certificate, stated: &Provenance) -> Option<String> {
    let guarantee = &certificate.guarantee;
    let Provenance { name, value, .. } = stated;
    let malformed = || Some(format!("{name}: states {value}, not an epsilon (and a delta) or a rho"));
    let Value::Object(parts) = value else { return malformed() };
    if parts.get("epsilon").is_none() && parts.get("rho").is_none() {
        return malformed();
    }
    for (part, limit) in parts {
        let certified = match part.as_str() {
            "epsilon" => json!(guarantee.epsilon),
            "delta" => json!(guarantee.delta),
            "rho" => json!(guarantee.rho),
            _ => return malformed(),
        };
        if is_below(limit, &certified, if part == "rho" { RHO_TOLERANCE } else { 0.0 }) {
            return Some(format!("{name}: {part} {limit} is below the guarantee's {certified}"));
        }
    }
    None
}

/// A hyper-parameter that names the algorithm or the randomiser, where the mechanism names another.
fn named(certificate: &Certificate, key: &str, stated: &Provenance) -> Option<String> {
    let mechanism = Mechanism::parse(&certificate.mechanism)?;
    let actual = match (key, mechanism) {
        (_, Mechanism::Custom) => return None,
        ("algorithm", Mechanism::Release { name, .. }) => name,
        ("algorithm", Mechanism::Local { algorithm, .. }) => algorithm,
        ("algorithm", Mechanism::PublicOnly { name, .. }) => Some(name),
        ("algorithm", Mechanism::NonPrivate) => Some("non-private"),
        ("randomizer" | "mechanism", Mechanism::Local { reports, .. }) => Some(reports.randomizer.name),
        ("algorithm" | "randomizer" | "mechanism", _) => None,
        _ => return None,
    };
    let agrees = actual.is_some_and(|actual| stated.value == actual);
    (!agrees).then(|| format!("{}: states {}, its mechanism another", stated.name, stated.value))
}

/// A batch of more rows than there can be: it is the sample rate times their number, which is at least 1.
fn batch(stated: &[Provenance]) -> Option<String> {
    let number = |wanted: &str| {
        let entry = stated.iter().find(|entry| key(&entry.name) == wanted)?;
        Some(entry.value.as_f64().unwrap_or(f64::NAN))
    };
    let (batch, rate) = (number("expectedbatch")?, number("samplerate").unwrap_or(1.0));
    let is_possible = batch > 0.0 && batch.is_finite() && batch >= rate;
    (!is_possible).then(|| "expected-batch: at this sample rate there would be less than one row".into())
}

fn noise_multiplier(event: &Event) -> Option<f64> {
    match event {
        Event::Gaussian { noise_multiplier }
        | Event::Laplace { noise_multiplier, .. }
        | Event::KNorm { noise_multiplier, .. }
        | Event::PoissonGaussian { noise_multiplier, .. }
        | Event::FixedSizeGaussian { noise_multiplier, .. }
        | Event::OnePassGaussian { noise_multiplier, .. } => Some(noise_multiplier.get()),
        _ => None,
    }
}

/// The chance that a row takes part; 1 where every row does.
fn sample_rate(event: &Event) -> Option<f64> {
    match event {
        Event::PoissonGaussian { sample_rate, .. } | Event::FixedSizeGaussian { sample_rate, .. } => {
            Some(sample_rate.get())
        }
        Event::Gaussian { .. } => Some(1.0),
        _ => None,
    }
}

fn blocks(event: &Event) -> Option<f64> {
    match event {
        Event::OnePassGaussian { blocks, .. } => Some(*blocks as f64),
        _ => None,
    }
}

fn dimension(event: &Event) -> Option<f64> {
    match event {
        Event::Laplace { dimension, .. } | Event::KNorm { dimension, .. } => Some(*dimension as f64),
        _ => None,
    }
}

/// How an event picks its rows, by the name that the command line has for it.
fn sampling(event: &Event) -> &'static str {
    match event {
        Event::PoissonGaussian { .. } => "poisson",
        Event::FixedSizeGaussian { .. } => "fixed-size",
        Event::OnePassGaussian { .. } => "one-pass",
        Event::Gaussian { .. }
        | Event::Laplace { .. }
        | Event::KNorm { .. }
        | Event::Pure { .. }
        | Event::Zcdp { .. } => "none",
    }
}
