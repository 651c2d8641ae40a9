//! Ledgers: what may be spent, and what was. A session debits one before the first step of a
//! program, never after.

use crate::{Error, Result};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, FilterCharge, GaussianFilter, epsilon};
use std::fmt;
use std::str::FromStr;

/// Names one run, so that a ledger can tell a run that goes on from a new one. Written as 32
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RunId([u8; 16]);

impl RunId {
    /// One that no other run has, from the operating system.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| Error::NoRandomness)?;
        Ok(Self(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RunId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || Error::invalid("run", text, "32 hexadecimal digits");
        // Signs pass as parts of numbers, but are no digits.
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(refused());
        }
        u128::from_str_radix(text, 16).map(|number| Self(number.to_be_bytes())).map_err(|_| refused())
    }
}

/// What a program is about to spend.
#[derive(Debug, Clone)]
pub struct Charge<'a> {
    /// The run that spends it.
    pub run: RunId,
    /// Its events.
    pub events: &'a [CountedEvent],
    /// Under this adjacency.
    pub adjacency: Adjacency,
    /// The ε it will claim,
    pub epsilon: Epsilon,
    /// at this δ.
    pub delta: Delta,
}

/// Grants or refuses charges. A granted charge is spent, whatever happens next.
pub trait Ledger: Send {
    /// Records the charge durably, or refuses it with [`Error::BudgetRefused`] and records nothing.
    ///
    /// A charge whose run is recorded already *with the same data set, adjacency and events* is that run
    /// going on: it draws what it drew before, and costs nothing more. With anything different it is refused.
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()>;
}

/// Grants everything and remembers nothing: each program stands alone on its certificate.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLimit;

impl Ledger for NoLimit {
    fn debit(&mut self, _: &Charge<'_>) -> Result<()> {
        Ok(())
    }
}

impl<L: Ledger + ?Sized> Ledger for Box<L> {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        (**self).debit(charge)
    }
}

/// Both must grant: the first is asked first. What it granted stays spent if the second refuses, so the
/// one that outlives the session comes second.
impl<A: Ledger, B: Ledger> Ledger for (A, B) {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        self.0.debit(charge)?;
        self.1.debit(charge)
    }
}

/// A budget (ε, δ) for everything a session does, kept in memory.
///
/// Programs may be chosen after the results of earlier ones. The first is granted if its own tight composition is within the budget.
/// From the second on the charges of all of them must be within a filter that holds for such choices: [`GaussianFilter`], or the sum
/// of their ε if δ = 0. The two rules do not add up to more than either: a first program that the filter could not have granted
/// leaves nothing for a second.
#[derive(Debug, Clone)]
pub struct Budget {
    epsilon: Epsilon,
    delta: Delta,
    runs: Vec<(RunId, Adjacency, Vec<CountedEvent>)>,
}

impl Budget {
    /// Nothing spent yet.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Self {
        Self { epsilon, delta, runs: Vec::new() }
    }

    /// Whether all programs together are within the budget, or why they are not.
    fn covers(
        &self,
        adjacency: Adjacency,
        events: &[CountedEvent],
    ) -> semidp_accounting::Result<Option<String>> {
        let earlier = self.runs.iter().map(|(_, adjacency, events)| (*adjacency, events.as_slice()));
        if self.runs.is_empty() || self.delta.get() == 0.0 {
            let all: Vec<CountedEvent> =
                earlier.flat_map(|(_, events)| events).chain(events).cloned().collect();
            let total = epsilon(&all, adjacency, self.delta)?.value;
            let words = || {
                format!(
                    "everything together would cost epsilon {total} of {} at delta {}",
                    self.epsilon, self.delta
                )
            };
            return Ok((total > self.epsilon).then(words));
        }
        let filter = GaussianFilter::new(self.epsilon, self.delta)?;
        let mut total = FilterCharge::ZERO;
        for (adjacency, events) in earlier.chain([(adjacency, events)]) {
            match filter.charge(events, adjacency)? {
                Some(charge) => total = total.plus(charge),
                None => {
                    return Ok(Some(
                        "one of the programs takes all that a second one could be paid from".into(),
                    ));
                }
            }
        }
        let share = total.variance / filter.budget().variance;
        let words =
            || format!("everything together would cost {share:.6} times the budget, however it was chosen");
        Ok((!filter.covers(total)).then(words))
    }
}

impl Ledger for Budget {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        let refused = |reason: String| Err(Error::BudgetRefused { reason });
        if let Some((_, adjacency, events)) = self.runs.iter().find(|(run, ..)| *run == charge.run) {
            return match *adjacency == charge.adjacency && events == charge.events {
                true => Ok(()),
                false => refused(format!("run {} was granted something else", charge.run)),
            };
        }
        match self.covers(charge.adjacency, charge.events) {
            Ok(None) => {
                self.runs.push((charge.run, charge.adjacency, charge.events.to_vec()));
                Ok(())
            }
            Ok(Some(reason)) => refused(reason),
            Err(error) => refused(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::{Event, NoiseMultiplier, SampleRate, Steps};

    fn events(noise_multiplier: f64) -> Vec<CountedEvent> {
        let noise_multiplier = NoiseMultiplier::new(noise_multiplier).unwrap();
        vec![CountedEvent::new(Event::Gaussian { noise_multiplier }, Steps::ONE)]
    }

    fn charge(run: RunId, events: &[CountedEvent]) -> Charge<'_> {
        let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap());
        Charge { run, events, adjacency: Adjacency::ReplaceOne, epsilon, delta }
    }

    fn budget(epsilon: f64) -> Budget {
        Budget::new(Epsilon::new(epsilon).unwrap(), Delta::new(1e-6).unwrap())
    }

    #[test]
    fn run_ids_are_unlike_and_read_back() {
        let (one, other) = (RunId::random().unwrap(), RunId::random().unwrap());
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!(text.len(), 32);
        assert_eq!(text.parse::<RunId>().unwrap(), one);
        assert_eq!(format!("{one:?}"), text);
        let signed = format!("+{}", &text[1..]);
        for bad in ["", "ab", &text[1..], &format!("{text}0"), signed.as_str(), "zz".repeat(16).as_str()] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_that_goes_on_costs_nothing_more_and_cannot_change() {
        let (run, events_of_run, other) = (RunId::random().unwrap(), events(12.0), events(13.0));
        // One such run costs 0.686, two cost 0.995.
        let mut budget = budget(0.8);
        budget.debit(&charge(run, &events_of_run)).unwrap();
        budget.debit(&charge(run, &events_of_run)).unwrap();
        assert!(matches!(budget.debit(&charge(run, &other)), Err(Error::BudgetRefused { .. })));
        let next = RunId::random().unwrap();
        assert!(matches!(budget.debit(&charge(next, &events_of_run)), Err(Error::BudgetRefused { .. })));
    }

    /// A program that is chosen after a result of the one before it: with tight composition both choices are granted, and together
    /// they spend 1.78e-6 of δ.
    #[test]
    fn a_program_chosen_by_an_earlier_outcome_cannot_overspend() {
        let sampled = vec![CountedEvent::new(
            Event::PoissonGaussian {
                noise_multiplier: NoiseMultiplier::new(0.05).unwrap(),
                sample_rate: SampleRate::new(9e-7).unwrap(),
            },
            Steps::ONE,
        )];
        let run = || RunId::random().unwrap();
        let mut budget = budget(1.0);
        budget.debit(&charge(run(), &events(14.0))).unwrap();
        assert!(matches!(budget.clone().debit(&charge(run(), &sampled)), Err(Error::BudgetRefused { .. })));
        budget.debit(&charge(run(), &events(14.0))).unwrap();
        // Each of them alone is within it.
        super::tests::budget(1.0).debit(&charge(run(), &sampled)).unwrap();
    }

    #[test]
    fn a_first_program_may_take_the_whole_budget_and_leaves_nothing() {
        let (events, one) = (events(12.0), Delta::new(1e-6).unwrap());
        let cost = epsilon(&events, Adjacency::ReplaceOne, one).unwrap().value;
        let mut budget = budget(cost.get());
        budget.debit(&charge(RunId::random().unwrap(), &events)).unwrap();
        let next = super::tests::events(1e6);
        assert!(budget.debit(&charge(RunId::random().unwrap(), &next)).is_err());
    }

    #[test]
    fn of_two_ledgers_both_must_grant() {
        let events = events(12.0);
        let run = || RunId::random().unwrap();
        let mut pair: (Budget, Box<dyn Ledger>) = (budget(1.0), Box::new(budget(0.1)));
        assert!(pair.debit(&charge(run(), &events)).is_err());
        let mut pair = (budget(0.1), budget(1.0));
        assert!(pair.debit(&charge(run(), &events)).is_err());
        // The first refused, so the second was never asked.
        assert!(pair.1.debit(&charge(run(), &events)).is_ok());
        let mut pair = (budget(1.0), budget(1.0));
        assert!(pair.debit(&charge(run(), &events)).is_ok());
    }
}
