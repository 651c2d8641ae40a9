//! Accountants: each turns a composition of events into ε for δ, or δ for ε, by its own theorem,
//! and refuses an event for which it has none.

mod pld;
mod pure;
mod rdp;
mod zcdp;

pub use pld::{PldAccountant, PldOptions};
pub use pure::PureAccountant;
pub use rdp::{RdpAccountant, default_orders, renyi_divergence};
pub use zcdp::ZcdpAccountant;

use crate::{Adjacency, CountedEvent, Delta, Epsilon, Error, Event, Result, Steps};
use std::collections::HashSet;

/// Composes events and answers privacy questions about the whole.
pub trait Accountant {
    /// Its name in reports and errors.
    fn name(&self) -> &'static str;

    /// The adjacency it answers for.
    fn adjacency(&self) -> Adjacency;

    /// Adds `count` occurrences of `event`, or refuses it and stays as it was.
    fn compose(&mut self, event: &Event, count: Steps) -> Result<()>;

    /// The smallest ε this accountant can certify at δ. Never below the truth.
    fn epsilon(&self, delta: Delta) -> Result<Epsilon>;

    /// The smallest δ this accountant can certify at ε. Never below the truth.
    fn delta(&self, epsilon: Epsilon) -> Result<Delta>;

    /// Composes a list.
    fn compose_all(&mut self, events: &[CountedEvent]) -> Result<()> {
        events.iter().try_for_each(|one| self.compose(&one.event, one.count))
    }
}

/// Beyond this ε a guarantee is no guarantee, and the accountants refuse to print one.
pub const LARGEST_EPSILON: f64 = 200.0;

pub(crate) fn epsilon_in_range(epsilon: f64) -> Result<Epsilon> {
    if epsilon <= LARGEST_EPSILON {
        Epsilon::new(epsilon)
    } else {
        Err(Error::OutOfRange { quantity: "epsilon", relation: "above", limit: LARGEST_EPSILON })
    }
}

/// The largest number of different events without a closed form that are composed. Each asks for a grid of its own: 256 take
/// up to a quarter of a minute. Gaussian events without sampling are not counted, nor is how often an event occurs.
pub const MOST_DISTINCT_EVENTS: usize = 256;

/// Refuses lists that would take too long.
pub(crate) fn check_size(events: &[CountedEvent], adjacency: Adjacency) -> Result<()> {
    let mut distinct = HashSet::new();
    for CountedEvent { event, .. } in events {
        let is_closed =
            matches!(event, Event::Gaussian { .. } | Event::OnePassGaussian { .. } | Event::Zcdp { .. });
        if !is_closed && event.gaussian_mu(adjacency).is_none() {
            distinct.insert(event.key());
        }
    }
    match distinct.len() {
        count if count > MOST_DISTINCT_EVENTS => {
            Err(Error::TooManyEvents { count, most: MOST_DISTINCT_EVENTS })
        }
        _ => Ok(()),
    }
}

/// Both accountants' answers to one question about a composition with Gaussian noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<T> {
    /// The tight answer; the one to report. Equals the RDP answer where the PLD accountant does
    /// not know an event, or says itself that its bound is not tight and the other is smaller.
    pub value: T,
    /// The privacy-loss-distribution accountant, if it knows every event.
    pub pld: Option<T>,
    /// The Rényi accountant, if it knows every event; as a rule somewhat looser.
    pub rdp: Option<T>,
}

/// ε of the events at δ by both accountants, cross-checked: both are upper bounds and PLD is
/// tight, so an RDP answer below PLD's is a bug, and no answer is given. (Where events of very different
/// size lie side by side PLD knows that it is not tight; then the smaller bound is the answer.)
///
/// With δ = 0 the pure accountant answers, alone.
///
/// ```
/// use semidp_accounting::*;
/// let event = Event::PoissonGaussian {
///     noise_multiplier: NoiseMultiplier::new(1.0)?,
///     sample_rate: SampleRate::new(0.01)?,
/// };
/// let events = [CountedEvent::new(event, Steps::new(1000)?)];
/// let answer = epsilon(&events, Adjacency::AddRemove, Delta::new(1e-5)?)?;
/// assert!(answer.value.get() < 2.1 && answer.rdp.unwrap().get() < 2.6);
/// # Ok::<(), semidp_accounting::Error>(())
/// ```
pub fn epsilon(events: &[CountedEvent], adjacency: Adjacency, delta: Delta) -> Result<Answer<Epsilon>> {
    if delta.get() == 0.0 {
        let value = answer(PureAccountant::new(adjacency), events, |a| a.epsilon(delta))?;
        return Ok(Answer { value, pld: None, rdp: None });
    }
    check_size(events, adjacency)?;
    let pld = answer(PldAccountant::new(adjacency), events, |a| a.epsilon(delta));
    check_against_rdp(pld, events, adjacency, delta)
}

/// The answer to give where the PLD accountant's ε is known.
pub(crate) fn check_against_rdp(
    pld: Result<Epsilon>,
    events: &[CountedEvent],
    adjacency: Adjacency,
    delta: Delta,
) -> Result<Answer<Epsilon>> {
    let rdp = answer(RdpAccountant::new(adjacency), events, |a| a.epsilon(delta));
    cross_check("epsilon", pld, rdp, Epsilon::get, || is_tight(events, adjacency, delta.get()))
}

/// δ of the events at ε by both accountants, cross-checked as in [`epsilon`].
pub fn delta(events: &[CountedEvent], adjacency: Adjacency, epsilon: Epsilon) -> Result<Answer<Delta>> {
    check_size(events, adjacency)?;
    let pld = answer(PldAccountant::new(adjacency), events, |a| a.delta(epsilon));
    let rdp = answer(RdpAccountant::new(adjacency), events, |a| a.delta(epsilon));
    // What pure events guarantee together needs no δ; an upper bound by other means may be a rounding error above 0.
    let pure = answer(PureAccountant::new(adjacency), events, |a| a.epsilon(Delta::saturating(0.0)));
    if pure.is_ok_and(|pure| pure <= epsilon) {
        return Ok(Answer { value: Delta::saturating(0.0), pld: pld.ok(), rdp: rdp.ok() });
    }
    // A bound that says nothing contradicts nothing.
    if let (Ok(pld), Ok(rdp)) = (&pld, &rdp)
        && pld.get() >= NO_BOUND
    {
        return Ok(Answer { value: if rdp < pld { *rdp } else { *pld }, pld: Some(*pld), rdp: Some(*rdp) });
    }
    let is_tight =
        || answer(PldAccountant::new(adjacency), events, |a| Ok(a.is_tight_at(epsilon))).unwrap_or(true);
    cross_check("delta", pld, rdp, Delta::get, is_tight)
}

/// A δ from here up guarantees nothing.
const NO_BOUND: f64 = 1.0 - 1e-9;

fn is_tight(events: &[CountedEvent], adjacency: Adjacency, delta: f64) -> bool {
    answer(PldAccountant::new(adjacency), events, |a| Ok(a.is_tight(delta))).unwrap_or(true)
}

fn answer<A: Accountant, T>(
    mut accountant: A,
    events: &[CountedEvent],
    ask: impl FnOnce(&A) -> Result<T>,
) -> Result<T> {
    accountant.compose_all(events)?;
    ask(&accountant)
}

/// PLD's pessimism is below 1e-3 relative in δ and 1e-4 in ε where it is tight; RDP below PLD by
/// more than that is a contradiction there. The absolute term covers δ at the floor of the grid.
fn cross_check<T: Copy>(
    quantity: &'static str,
    pld: Result<T>,
    rdp: Result<T>,
    get: impl Fn(T) -> f64,
    is_tight: impl FnOnce() -> bool,
) -> Result<Answer<T>> {
    match (pld, rdp) {
        (Ok(pld), Ok(rdp)) => {
            let (tight, loose) = (get(pld), get(rdp));
            if loose < tight * (1.0 - 1e-2) - pld::SMALLEST_DELTA {
                if is_tight() {
                    return Err(Error::Disagreement { quantity, pld: tight, rdp: loose });
                }
                return Ok(Answer { value: rdp, pld: Some(pld), rdp: Some(rdp) });
            }
            Ok(Answer { value: pld, pld: Some(pld), rdp: Some(rdp) })
        }
        (Ok(pld), Err(_)) => Ok(Answer { value: pld, pld: Some(pld), rdp: None }),
        (Err(Error::UnknownEvent { .. }), Ok(rdp)) => Ok(Answer { value: rdp, pld: None, rdp: Some(rdp) }),
        (Err(error), _) => Err(error),
    }
}
