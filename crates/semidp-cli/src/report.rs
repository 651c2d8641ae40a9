//! The human form of an answer: a short table and one sentence in words. Every printed figure is
//! rounded to the side that promises less.

use crate::answer::{Answered, Question};
use crate::number::{exact, upper_bound};
use crate::options::Mechanism;
use crate::output::Output;
use crate::program::Program;
use semidp_accounting::{Adjacency, Trust};

/// Significant digits of printed figures.
const DIGITS: usize = 5;

/// The rows that every command shares.
pub fn rows(program: &Program, answered: &Answered) -> Vec<(String, String)> {
    let adjacency = program.adjacency;
    let mut rows = Vec::new();
    let mut row = |name: String, value: String| rows.push((name, value));
    match (answered.question, answered.epsilon, answered.delta) {
        (Question::EpsilonAt(_), Some(epsilon), Some(delta)) if delta.get() == 0.0 => {
            row(format!("epsilon ({adjacency})"), format!("{}, pure (delta 0)", bound(epsilon.get())));
        }
        (Question::EpsilonAt(_), Some(epsilon), Some(delta)) => row(
            format!("epsilon ({adjacency})"),
            format!("{} at delta {}", bound(epsilon.get()), exact(delta.get())),
        ),
        (Question::DeltaAt(_), Some(epsilon), Some(delta)) => row(
            format!("delta ({adjacency})"),
            format!("{} at epsilon {}", bound(delta.get()), exact(epsilon.get())),
        ),
        _ => {}
    }
    if let Some(rho) = answered.rho {
        row(format!("rho of zCDP ({adjacency})"), bound(rho.get()));
    }
    row("protects".into(), "the private rows only, whatever the public rows are".into());
    row("mechanism".into(), program.in_words.clone());
    let by_accountant = [("PLD", answered.pld), ("RDP", answered.rdp)]
        .iter()
        .filter_map(|(name, figure)| figure.map(|figure| format!("{name} {}", bound(figure))))
        .collect::<Vec<_>>();
    if !by_accountant.is_empty() {
        let quantity = answered.question.quantity();
        row(format!("{quantity} ({adjacency}) by accountant"), by_accountant.join(", "));
    }
    let other = adjacency.other();
    let quantity = answered.question.quantity();
    match &answered.other {
        Ok(value) => row(format!("{quantity} ({other})"), format!("{} for the same noise", bound(*value))),
        Err(reason) => row(format!("{quantity} ({other})"), format!("none: {reason}")),
    }
    rows
}

/// The noise multiplier and what it means, for a table.
pub fn noise_row(value: String, mechanism: Mechanism) -> (String, String) {
    let word = mechanism.noise_word();
    ("noise multiplier".into(), format!("{value} ({word} on the SUM of clipped contributions / clip norm)"))
}

/// The promise in one sentence.
pub fn in_words(program: &Program, answered: &Answered) -> String {
    let change = match (program.trust, program.adjacency) {
        (Trust::Central, Adjacency::ReplaceOne) => "replacing any one private row by another",
        (Trust::Central, Adjacency::AddRemove) => "adding or removing any one private row",
        (Trust::Local, Adjacency::ReplaceOne) => "exchanging one person's own row for any other",
        (Trust::Local, Adjacency::AddRemove) => "taking part, or sending a report of pure noise instead,",
    };
    let result = match program.trust {
        Trust::Central => "any result",
        Trust::Local => "any report that this person sends",
    };
    let Some((epsilon, delta)) = answered.epsilon.zip(answered.delta) else {
        return format!(
            "In words: {change} changes the distribution of {result} by at most rho times alpha in \
             Rényi divergence of every order alpha; give --delta to see it as an epsilon."
        );
    };
    let factor = match answered.question {
        Question::DeltaAt(_) => format!("e^{}", exact(epsilon.get())),
        _ => format!("e^{}", bound(epsilon.get())),
    };
    let size = upper_bound(epsilon.get().exp(), 3);
    let exception = match delta.get() {
        0.0 => String::new(),
        _ if matches!(answered.question, Question::DeltaAt(_)) => {
            format!(", except with probability {}", bound(delta.get()))
        }
        delta => format!(", except with probability {}", exact(delta)),
    };
    format!(
        "In words: {change} changes the probability of {result} by at most a factor {factor} \
         (about {size}){exception} ({} adjacency).",
        program.adjacency
    )
}

/// What a reader of the table should know, on stderr.
pub fn notes(program: &Program, answered: &Answered, output: &Output) {
    output.note("idealised arithmetic: the guarantee holds for real-valued noise");
    if program.adjacency == Adjacency::AddRemove && program.sample_rate.is_some_and(|rate| rate < 1.0) {
        output.note(
            "under add-remove the number of private rows is secret: sample rate and divisor must be \
             constants that do not come from it",
        );
    }
    if program.adjacency == Adjacency::AddRemove && program.trust == Trust::Local {
        output.note("under local add-remove whoever takes no part must still send a report of pure noise");
    }
    if let Err(reason) = &answered.certificate {
        output.note(reason);
    }
}

/// A figure that promises something, as printed.
pub fn bound(value: f64) -> String {
    upper_bound(value, DIGITS)
}
