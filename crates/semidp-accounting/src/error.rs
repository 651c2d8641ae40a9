//! The errors of this crate: fields, not prose, so that a program can act on them.

use crate::{Adjacency, Event};

/// Everything that can go wrong when a privacy question is asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside the set on which it means anything.
    #[error("{name} must be {requirement}, got {value}")]
    InvalidParameter {
        /// The parameter, as it is called on the command line.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        requirement: &'static str,
    },

    /// An accountant was asked to compose an event for which it has no theorem.
    #[error("the {accountant} accountant does not know the event `{event}`")]
    UnknownEvent {
        /// The accountant that refuses.
        accountant: &'static str,
        /// The event's serialised name.
        event: &'static str,
    },

    /// The event has no guarantee under this adjacency.
    #[error("`{event}` has no guarantee under {adjacency} adjacency: {reason}")]
    NoGuarantee {
        /// The event's serialised name.
        event: &'static str,
        /// The adjacency that was asked for.
        adjacency: Adjacency,
        /// Why there is none.
        reason: &'static str,
    },

    /// The answer itself lies outside the range in which it would mean anything.
    #[error("the answer for {quantity} leaves the supported range: it is {relation} {limit}")]
    OutOfRange {
        /// The quantity asked for.
        quantity: &'static str,
        /// `above` or `below`.
        relation: &'static str,
        /// The limit that it crosses.
        limit: f64,
    },

    /// No noise, or no number of steps, meets the target.
    #[error("no {quantity} meets epsilon {epsilon} at delta {delta}: {reason}")]
    Unreachable {
        /// What was searched for.
        quantity: &'static str,
        /// The target.
        epsilon: f64,
        /// The target.
        delta: f64,
        /// What stands in the way.
        reason: &'static str,
    },

    /// More events of different kinds than can be composed in reasonable time.
    #[error("{count} different sampled or pure events cannot be composed, at most {most} can")]
    TooManyEvents {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },

    /// Two accountants contradict each other: a bug in this crate. No answer is given.
    #[error(
        "internal error: the accountants disagree ({quantity}: PLD {pld}, RDP {rdp}); please report this"
    )]
    Disagreement {
        /// `epsilon` or `delta`.
        quantity: &'static str,
        /// The PLD accountant's value.
        pld: f64,
        /// The RDP accountant's value, which a correct pair of accountants never lets fall below.
        rdp: f64,
    },

    /// A file of events could not be understood.
    #[error("event {index}: {reason}")]
    MalformedEvent {
        /// Position in the list, from 0.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },

    /// A certificate could not be understood.
    #[error("not a certificate this version understands: {reason}")]
    MalformedCertificate {
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    pub(crate) fn unknown(accountant: &'static str, event: &Event) -> Self {
        Self::UnknownEvent { accountant, event: event.name() }
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
