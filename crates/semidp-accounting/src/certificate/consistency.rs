//! Whether the parts of a certificate agree with each other: the events with mechanism, trust, random source and
//! hyper-parameters.
//!
//! A certificate that was altered with care can agree with itself; only a signature excludes that. A part that this version
//! does not know, such as the mechanism of another library, is left alone.

use super::{Arithmetic, Certificate, Provenance, RandomSource, releases};
use crate::{Adjacency, Event, Trust};

/// Hyper-parameters that only a noisy release has.
const OF_RELEASES: [&str; 8] = [
    "noise-multiplier",
    "steps",
    "releases",
    "sample-rate",
    "expected-batch",
    "batch",
    "blocks",
    "randomizer",
];

/// Each disagreement.
pub(super) fn objections(certificate: &Certificate) -> Vec<String> {
    let mut found = Vec::new();
    trust(certificate, &mut found);
    adjacency(certificate, &mut found);
    mechanism(certificate, &mut found);
    random_source(certificate, &mut found);
    if certificate.releases != releases(&certificate.events) {
        found.push(format!(
            "releases: claims {}, the events make {}",
            certificate.releases,
            releases(&certificate.events)
        ));
    }
    let stated = &certificate.hyperparameters;
    found.extend(stated.iter().filter_map(|stated| hyperparameter(certificate, stated)));
    found.extend(batch(stated));
    found
}

/// The trust that the words of the mechanism imply, if they are words of this project.
fn trust_in_words(mechanism: &str) -> Option<Trust> {
    let is_training = mechanism.starts_with("train:");
    if mechanism.starts_with("local:")
        || (is_training && mechanism.contains(", local: "))
        || mechanism.contains("each person's own clipped contribution")
    {
        Some(Trust::Local)
    } else if is_training
        || mechanism.starts_with("mean:")
        || mechanism.contains("the sum of clipped contributions")
    {
        Some(Trust::Central)
    } else {
        None
    }
}

fn trust(certificate: &Certificate, found: &mut Vec<String>) {
    let claimed = certificate.guarantee.trust;
    if let Some(implied) = trust_in_words(&certificate.mechanism)
        && implied != claimed
    {
        let word = |trust| match trust {
            Trust::Central => "central",
            Trust::Local => "local",
        };
        found.push(format!("trust: claims {}, its mechanism is {}", word(claimed), word(implied)));
    }
    let sampled = certificate.events.iter().map(|one| &one.event).find(|event| sampling(event) != "none");
    if let (Trust::Local, Some(event)) = (claimed, sampled) {
        found.push(format!("trust: claims local, but `{}` needs a curator", event.name()));
    }
}

/// Means and samples of a fixed number of rows use the number of private rows, which add-remove keeps secret.
fn adjacency(certificate: &Certificate, found: &mut Vec<String>) {
    if certificate.guarantee.adjacency != Adjacency::AddRemove {
        return;
    }
    if certificate.mechanism.trim_start().starts_with("mean:") {
        found.push("adjacency: claims add-remove, but a mean is released under replace-one only".into());
    }
    let needs_count = |stated: &&Provenance| {
        stated.name == "sampling" && matches!(stated.value.as_str(), Some("in-order" | "fixed-size"))
    };
    if let Some(stated) = certificate.hyperparameters.iter().find(needs_count) {
        found.push(format!(
            "adjacency: claims add-remove, but sampling {} is defined under replace-one only",
            stated.value
        ));
    }
}

fn mechanism(certificate: &Certificate, found: &mut Vec<String>) {
    let words = certificate.mechanism.as_str();
    let has = |is: fn(&Event) -> bool| certificate.events.iter().any(|one| is(&one.event));
    let named = [
        ("Gaussian noise", has(is_gaussian)),
        ("Laplace noise", has(|event| matches!(event, Event::Laplace { .. }))),
        ("K-norm noise", has(|event| matches!(event, Event::KNorm { .. }))),
        ("local: ", has(|event| matches!(event, Event::Pure { .. }))),
    ];
    for (law, _) in named.iter().filter(|(law, is_there)| words.contains(law) && !is_there) {
        found.push(format!("mechanism: names `{}`, which no event is", law.trim_end_matches([':', ' '])));
    }
    if words.contains("no private row was") && !certificate.events.is_empty() {
        found.push("mechanism: says that no private row was used, but there are events".into());
    }
    if words.contains("K-norm noise") && certificate.arithmetic == Arithmetic::Exact {
        found.push("arithmetic: claims exact, but K-norm noise is drawn in idealised arithmetic".into());
    }
}

fn random_source(certificate: &Certificate, found: &mut Vec<String>) {
    let words = certificate.mechanism.as_str();
    let was_released = words.starts_with("mean:") || words.starts_with("train:");
    match (certificate.events.is_empty(), certificate.random_source) {
        (false, RandomSource::None) if was_released => {
            found.push("random_source: claims none, but the events added noise".into());
        }
        (true, RandomSource::OperatingSystem | RandomSource::Seeded) => {
            found.push("random_source: claims that noise was drawn, but there are no events".into());
        }
        _ => {}
    }
}

/// What one hyper-parameter says that the events do not.
fn hyperparameter(certificate: &Certificate, stated: &Provenance) -> Option<String> {
    let events = &certificate.events;
    let name = stated.name.replace('_', "-");
    if OF_RELEASES.contains(&name.as_str()) && events.is_empty() {
        return Some(format!("{}: stated, but there are no events", stated.name));
    }
    let value = &stated.value;
    let any = |field: fn(&Event) -> Option<f64>| {
        let value = value.as_f64();
        events.iter().any(|one| field(&one.event).is_some_and(|actual| value == Some(actual)))
    };
    let agrees = match name.as_str() {
        "noise-multiplier" => any(noise_multiplier),
        "sample-rate" => any(sample_rate),
        "blocks" => any(blocks),
        "dimension" => any(dimension),
        "releases" => value.as_u64() == Some(certificate.releases),
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
            events.is_empty() || events.iter().any(|one| Some(sampling(&one.event)) == wanted)
        }
        _ => true,
    };
    (!agrees).then(|| format!("{}: states {value}, which no event has", stated.name))
}

/// A batch of more rows than there can be: it is the sample rate times their number, which is at least 1.
fn batch(stated: &[Provenance]) -> Option<String> {
    let number = |name: &str| {
        let entry = stated.iter().find(|entry| entry.name.replace('_', "-") == name)?;
        Some(entry.value.as_f64().unwrap_or(f64::NAN))
    };
    let (batch, rate) = (number("expected-batch")?, number("sample-rate").unwrap_or(1.0));
    let is_possible = batch > 0.0 && batch.is_finite() && batch >= rate;
    (!is_possible).then(|| "expected-batch: at this sample rate there would be less than one row".into())
}

fn is_gaussian(event: &Event) -> bool {
    matches!(
        event,
        Event::Gaussian { .. }
            | Event::PoissonGaussian { .. }
            | Event::FixedSizeGaussian { .. }
            | Event::OnePassGaussian { .. }
    )
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
