//! The client's answer: what was reported, and what these people have spent by now.

use super::memory::{Entry, Memory};
use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use semidp::local::Header;
use semidp_accounting::{
    Adjacency, Arithmetic, Certificate, CountedEvent, Delta, Event, Provenance, RandomSource, Steps, Trust,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Reports that were released, and everything known about them.
pub struct Answer<'a> {
    pub memory: &'a Memory,
    /// The reports.
    pub entry: &'a Entry,
    /// Of all that these people ever reported.
    pub certificate: &'a Certificate,
    /// Whether they were released before.
    pub is_remembered: bool,
    /// Where they went.
    pub out: &'a Path,
    /// Where they are remembered.
    pub path: &'a Path,
}

impl Answer<'_> {
    pub fn json(&self) -> Result<Value, Failure> {
        let Self { memory, entry, certificate, is_remembered, .. } = *self;
        let guarantee = &certificate.guarantee;
        let rounds = rounds(memory);
        let rounds: Vec<Value> = rounds
            .iter()
            .map(|(round, (asked, epsilon))| json!({ "round": round, "asked": asked, "epsilon": epsilon }))
            .collect();
        Ok(json!({
            "rows": entry.reports,
            "reports": entry.reports,
            "out": self.out.to_string_lossy(),
            "round": entry.header.round,
            "mechanism": entry.header.mechanism,
            "dimension": entry.header.dimension,
            "radius": entry.header.radius,
            "centre": entry.header.centre,
            "report_epsilon": entry.header.epsilon.get(),
            "charged_epsilon": if is_remembered { 0.0 } else { entry.header.epsilon.get() },
            "total_epsilon": guarantee.epsilon.get(),
            "remembered": is_remembered,
            "memory": { "file": self.path.to_string_lossy(), "asked": memory.entries().len(), "rounds": rounds },
            "epsilon": guarantee.epsilon.get(),
            "delta": guarantee.delta.get(),
            "trust": guarantee.trust,
            "adjacency": guarantee.adjacency.name(),
            "protects": "private rows only",
            "arithmetic": certificate.arithmetic,
            "certificate": serde_json::to_value(certificate)
                .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?,
        }))
    }

    pub fn text(&self) -> String {
        let Self { memory, entry, certificate, is_remembered, .. } = *self;
        let reports = match is_remembered {
            true => format!("{}, the same as before, at no cost", count(entry.reports)),
            false => format!("{}, one for each row", count(entry.reports)),
        };
        let arithmetic = match entry.arithmetic {
            Arithmetic::Exact => "exact",
            Arithmetic::Idealised => "idealised",
        };
        let mechanism = format!(
            "{}, {} numbers, radius {}, {arithmetic} arithmetic",
            entry.header.mechanism,
            count(entry.header.dimension as u64),
            nearest(entry.header.radius, 6)
        );
        let total = match memory.entries().len() {
            1 => format!("{} (pure), for everybody", bound(certificate.guarantee.epsilon.get())),
            many => {
                format!(
                    "{} (pure), for everybody: asked {many} times",
                    bound(certificate.guarantee.epsilon.get())
                )
            }
        };
        table::facts(vec![
            ("reports".into(), reports),
            ("round".into(), entry.header.round.clone()),
            ("mechanism".into(), mechanism),
            ("epsilon of a report".into(), exact(entry.header.epsilon.get())),
            ("epsilon of all reports so far".into(), total),
            ("written to".into(), self.out.to_string_lossy().into_owned()),
            ("remembered in".into(), self.path.to_string_lossy().into_owned()),
        ])
    }
}

/// How often people were asked in each round, and at what price.
fn rounds(memory: &Memory) -> BTreeMap<&str, (u64, f64)> {
    let mut rounds = BTreeMap::new();
    for entry in memory.entries() {
        let round: &mut (u64, f64) = rounds.entry(entry.header.round.as_str()).or_default();
        *round = (round.0 + 1, round.1 + entry.header.epsilon.get());
    }
    rounds
}

/// Of all that these people ever reported, as far as the memory knows.
pub fn certificate(
    memory: &Memory,
    header: &Header,
    is_automatic: bool,
    radius_source: &str,
) -> Result<Certificate, Failure> {
    let mut events: Vec<CountedEvent> = Vec::new();
    for entry in memory.entries() {
        let event = Event::Pure { epsilon: entry.header.epsilon };
        let place = events.iter().position(|known| known.event == event);
        let times = place.map_or(0, |place| events.remove(place).count.get());
        events.push(CountedEvent::new(event, Steps::new(times + 1)?));
    }
    let times = memory.entries().len();
    let mut mechanism = format!("local: {} of a vector of {} numbers", header.mechanism, header.dimension);
    if times > 1 {
        mechanism = format!("{mechanism}, the last of {times} reports of each person");
    }
    let mut certificate =
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Local, Delta::new(0.0)?, mechanism)?;
    let is_exact = memory.entries().iter().all(|entry| entry.arithmetic == Arithmetic::Exact);
    certificate.arithmetic = if is_exact { Arithmetic::Exact } else { Arithmetic::Idealised };
    let is_seeded = memory.entries().iter().any(|entry| entry.random_source == RandomSource::Seeded);
    certificate.random_source = if is_seeded { RandomSource::Seeded } else { RandomSource::OperatingSystem };
    let stated = |name: &str, value: Value, source: &str| Provenance {
        name: name.into(),
        value,
        source: source.into(),
    };
    let chosen = if is_automatic { "theory" } else { "user" };
    certificate.hyperparameters = vec![
        stated("round", json!(header.round), "user"),
        stated("mechanism", json!(header.mechanism), chosen),
        stated("radius", json!(header.radius), radius_source),
    ];
    Ok(certificate)
}
