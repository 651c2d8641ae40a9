//! The human form of an answer: a short table and one sentence in words. Every printed figure is
//! rounded to the side that promises less.

use crate::failure::Failure;
use crate::number::{exact, upper_bound};
use crate::output::Output;
use semidp::files::{self, kind};
use semidp::{AccountOutcome, Error, Law, Question};
use semidp_accounting::{Adjacency, Trust};
use serde_json::Value;
use std::path::Path;

/// Significant digits of printed figures.
const DIGITS: usize = 5;

/// The rows that `account` and `calibrate` share.
pub fn rows(outcome: &AccountOutcome) -> Vec<(String, String)> {
    let adjacency = outcome.adjacency;
    let mut rows = Vec::new();
    let mut row = |name: String, value: String| rows.push((name, value));
    match (outcome.question, outcome.epsilon, outcome.delta) {
        (Question::EpsilonAt(_), Some(epsilon), Some(0.0)) => {
            row(format!("epsilon ({adjacency})"), format!("{}, pure (delta 0)", bound(epsilon)));
        }
        (Question::EpsilonAt(_), Some(epsilon), Some(delta)) => {
            row(format!("epsilon ({adjacency})"), format!("{} at delta {}", bound(epsilon), exact(delta)))
        }
        (Question::DeltaAt(_), Some(epsilon), Some(delta)) => {
            row(format!("delta ({adjacency})"), format!("{} at epsilon {}", bound(delta), exact(epsilon)))
        }
        _ => {}
    }
    if let Some(rho) = outcome.rho {
        row(format!("rho of zCDP ({adjacency})"), bound(rho));
    }
    row("protects".into(), "the private rows only, whatever the public rows are".into());
    row("mechanism".into(), outcome.description.clone());
    let by_accountant = [("PLD", outcome.accountants.pld), ("RDP", outcome.accountants.rdp)]
        .iter()
        .filter_map(|(name, figure)| figure.map(|figure| format!("{name} {}", bound(figure))))
        .collect::<Vec<_>>();
    let quantity = outcome.question.quantity();
    if !by_accountant.is_empty() {
        row(format!("{quantity} ({adjacency}) by accountant"), by_accountant.join(", "));
    }
    let figure = outcome.other_adjacency.and_then(|other| other.epsilon.or(other.delta).or(other.rho));
    let name = format!("{quantity} ({})", adjacency.other());
    match (figure, &outcome.other_adjacency_note) {
        (Some(value), _) => row(name, format!("{} for the same noise", bound(value))),
        (None, reason) => row(name, format!("none: {}", reason.as_deref().unwrap_or_default())),
    }
    rows
}

/// The answer as `--json` prints it.
pub fn json(outcome: &AccountOutcome) -> Result<Value, Failure> {
    serde_json::to_value(outcome)
        .map_err(|error| Failure::other(format!("cannot write the answer as JSON: {error}")))
}

/// Writes the certificate to a file, or says why there is none.
pub fn write_certificate(outcome: &AccountOutcome, path: &Path) -> Result<(), Failure> {
    let Some(certificate) = &outcome.certificate else {
        let reason = outcome.certificate_note.as_deref().unwrap_or_default();
        return Err(Error::usage(
            "certificate",
            semidp::sentence!("{certificate}: {0}", reason),
            "leave out {certificate}, or give a {delta} at which there is one",
        )
        .into());
    };
    kind::refuse_other("certificate", path, kind::Kind::Certificate)?;
    let text = serde_json::to_string_pretty(certificate)
        .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?;
    Ok(files::write("certificate", path, &text)?)
}

/// The noise multiplier and what it means, for a table.
pub fn noise_row(value: String, law: Law) -> (String, String) {
    let word = if law == Law::Gaussian { "noise std" } else { "noise scale" };
    ("noise multiplier".into(), format!("{value} ({word} on the SUM of clipped contributions / clip norm)"))
}

/// The promise in one sentence.
pub fn in_words(outcome: &AccountOutcome) -> String {
    let change = match (outcome.trust, outcome.adjacency) {
        (Trust::Central, Adjacency::ReplaceOne) => "replacing any one private row by another",
        (Trust::Central, Adjacency::AddRemove) => "adding or removing any one private row",
        (Trust::Local, Adjacency::ReplaceOne) => "exchanging one person's own row for any other",
        (Trust::Local, Adjacency::AddRemove) => "taking part, or sending a report of pure noise instead,",
    };
    let result = match outcome.trust {
        Trust::Central => "any result",
        Trust::Local => "any report that this person sends",
    };
    let Some((epsilon, delta)) = outcome.epsilon.zip(outcome.delta) else {
        return format!(
            "In words: {change} changes the distribution of {result} by at most rho times alpha in \
             Rényi divergence of every order alpha; give --delta to see it as an epsilon."
        );
    };
    let factor = match outcome.question {
        Question::DeltaAt(_) => format!("e^{}", exact(epsilon)),
        _ => format!("e^{}", bound(epsilon)),
    };
    let size = upper_bound(epsilon.exp(), 3);
    let exception = match delta {
        0.0 => String::new(),
        _ if matches!(outcome.question, Question::DeltaAt(_)) => {
            format!(", except with probability {}", bound(delta))
        }
        delta => format!(", except with probability {}", exact(delta)),
    };
    format!(
        "In words: {change} changes the probability of {result} by at most a factor {factor} \
         (about {size}){exception} ({} adjacency).",
        outcome.adjacency
    )
}

/// What a reader of the table should know, on stderr.
pub fn notes(outcome: &AccountOutcome, output: &Output) {
    output.note("idealised arithmetic: the guarantee holds for real-valued noise");
    if outcome.adjacency == Adjacency::AddRemove && outcome.sample_rate.is_some_and(|rate| rate < 1.0) {
        output.note(
            "under add-remove the number of private rows is secret: sample rate and divisor must be \
             constants that do not come from it",
        );
    }
    if outcome.adjacency == Adjacency::AddRemove && outcome.trust == Trust::Local {
        output.note("under local add-remove whoever takes no part must still send a report of pure noise");
    }
    if let Some(reason) = &outcome.certificate_note {
        output.note(reason);
    }
}

/// A figure that promises something, as printed.
pub fn bound(value: f64) -> String {
    upper_bound(value, DIGITS)
}
