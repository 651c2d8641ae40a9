//! Calibration: the least noise, or the most steps, that a budget allows.
//!
//! The search is coarse first and fine last; what it returns was verified at full accuracy by the
//! accountant that certificates use, so the ε reported back never exceeds the target.

use crate::accountant::{
    Accountant, LARGEST_EPSILON, PldAccountant, PldOptions, PureAccountant, RdpAccountant, check_against_rdp,
};
use crate::{Adjacency, Answer, CountedEvent, Delta, Epsilon, Error, NoiseMultiplier, Result, Steps};
use std::cell::RefCell;
use std::collections::HashMap;

/// A calibrated parameter and the guarantee it was verified to give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated<T> {
    /// The parameter.
    pub value: T,
    /// Both accountants' ε at that parameter; `epsilon.value` is at most the target.
    pub epsilon: Answer<Epsilon>,
}

/// The search is over once ε is within this of the target, relatively, from below.
const CLOSE: f64 = 2e-5;
/// Noise multipliers between these are tried.
const NOISE_RANGE: (f64, f64) = (0.05, 1e9);

/// The smallest noise multiplier at which `events(noise)` is (ε, δ)-DP, rounded up; with δ = 0 by
/// the pure accountant.
///
/// ```
/// use semidp_accounting::*;
/// let found = calibrate_noise(
///     Epsilon::new(2.0)?, Delta::new(1e-5)?, Adjacency::AddRemove,
///     |noise_multiplier| vec![CountedEvent::new(
///         Event::PoissonGaussian { noise_multiplier, sample_rate: SampleRate::new(0.01).unwrap() },
///         Steps::new(1000).unwrap(),
///     )],
/// )?;
/// assert!((found.value.get() - 1.0).abs() < 0.2 && found.epsilon.value.get() <= 2.0);
/// # Ok::<(), semidp_accounting::Error>(())
/// ```
pub fn calibrate_noise(
    epsilon: Epsilon,
    delta: Delta,
    adjacency: Adjacency,
    events: impl Fn(NoiseMultiplier) -> Vec<CountedEvent>,
) -> Result<Calibrated<NoiseMultiplier>> {
    // An ε that the accountants refuse to print is no target: the largest they do print is aimed at.
    let target = epsilon.positive()?.get().min(LARGEST_EPSILON);
    let at = |log_noise: f64| NoiseMultiplier::new(log_noise.exp());
    let search = Search {
        target,
        range: (NOISE_RANGE.0.ln(), NOISE_RANGE.1.ln()),
        coarse: |x: f64| probe(&events(at(x)?), adjacency, delta, PldOptions::coarse()),
        fine: |x: f64| probe(&events(at(x)?), adjacency, delta, PldOptions::default()),
    };
    let unreachable = || Error::Unreachable {
        quantity: "noise multiplier",
        epsilon: target,
        delta: delta.get(),
        reason: "even the largest noise tried, 1e9, gives a larger epsilon",
    };
    // Events that the noise does not touch may cost too much by themselves: then say so at once.
    let (least, most) = (events(at(search.range.0)?), events(at(search.range.1)?));
    if least.iter().any(|one| most.contains(one)) && (search.coarse)(search.range.1)? > target {
        return Err(unreachable());
    }
    let (log_noise, known) = search.run()?.ok_or_else(unreachable)?;
    let value = at(log_noise)?;
    let found = Calibrated { value, epsilon: confirm(&events(value), adjacency, delta, known)? };
    if !found.epsilon.is_loose() {
        return Ok(found);
    }
    let by_rdp = |x: f64| probe_rdp(&events(at(x)?), adjacency, delta);
    let search = Search { target, range: search.range, coarse: by_rdp, fine: by_rdp };
    let Some((log_noise, _)) = search.run()? else { return Ok(found) };
    let value = at(log_noise)?;
    Ok(Calibrated { value, epsilon: crate::epsilon(&events(value), adjacency, delta)? })
}

/// The largest number of steps at which `events(steps)` is (ε, δ)-DP.
pub fn calibrate_steps(
    epsilon: Epsilon,
    delta: Delta,
    adjacency: Adjacency,
    events: impl Fn(Steps) -> Vec<CountedEvent>,
) -> Result<Calibrated<Steps>> {
    let epsilon = Epsilon::new(epsilon.positive()?.get().min(LARGEST_EPSILON))?;
    let target = epsilon.get();
    let ask = |steps: u64, options| probe(&events(Steps::new(steps)?), adjacency, delta, options);
    let fine = remembering(|steps| ask(steps, PldOptions::default()));
    if fine(1)? > target {
        return Err(Error::Unreachable {
            quantity: "number of steps",
            epsilon: target,
            delta: delta.get(),
            reason: "a single step at this noise already costs more",
        });
    }
    // Coarse first: grow while the target allows it, then a bracket of a few per cent.
    let coarse = remembering(|steps| ask(steps, PldOptions::coarse()));
    let (mut low, mut high) = (1, 16);
    let obvious = |steps: u64| certainly_below(&events(Steps::new(steps)?), adjacency, epsilon, delta);
    while high < Steps::MAX && (obvious(high)? || coarse(high)? <= target) {
        (low, high) = (high, (16 * high).min(Steps::MAX));
    }
    let guess = bracket_steps(low, high, target, 0.03, &coarse)?.0;
    // Fine: widen the bracket until its lower end is safe and its upper end is not.
    let mut safe = guess;
    let mut stride = (safe / 16).max(1);
    while safe > 1 && fine(safe)? > target {
        safe = safe.saturating_sub(stride).max(1);
        stride *= 2;
    }
    let mut stride = (safe / 16).max(1);
    let mut reach = (safe + stride).min(Steps::MAX);
    while reach < Steps::MAX && fine(reach)? <= target {
        stride *= 2;
        (safe, reach) = (reach, (reach + stride).min(Steps::MAX));
    }
    let steps = bracket_steps(safe, reach, target, 0.0, &fine)?.0;
    let value = Steps::new(steps)?;
    let found = Calibrated { value, epsilon: confirm(&events(value), adjacency, delta, fine(steps)?)? };
    if !found.epsilon.is_loose() {
        return Ok(found);
    }
    let by_rdp = remembering(|steps| probe_rdp(&events(Steps::new(steps)?), adjacency, delta));
    let value = Steps::new(bracket_steps(1, Steps::MAX, target, 0.0, &by_rdp)?.0)?;
    Ok(Calibrated { value, epsilon: crate::epsilon(&events(value), adjacency, delta)? })
}

/// Shrinks [safe, beyond], where ε(safe) ≤ target, to neighbours, or to a relative width or a value
/// about that near the target: by interpolation of ε² in the number of steps, or by bisection of its
/// logarithm.
fn bracket_steps(
    mut safe: u64,
    mut beyond: u64,
    target: f64,
    width: f64,
    epsilon: impl Fn(u64) -> Result<f64>,
) -> Result<(u64, u64)> {
    if epsilon(beyond)? <= target {
        return Ok((beyond, beyond));
    }
    let (mut at_safe, mut at_beyond) = (epsilon(safe)?, f64::INFINITY);
    for round in 0.. {
        if beyond - safe <= 1 || (beyond - safe) as f64 <= width * safe as f64 {
            break;
        }
        let middle = ((safe as f64) * (beyond as f64)).sqrt();
        let slope = (at_beyond * at_beyond - at_safe * at_safe) / (beyond - safe) as f64;
        let inner = safe as f64 + (target * target - at_safe * at_safe) / slope;
        let tried = if round % 3 == 2 || !slope.is_finite() || slope <= 0.0 { middle } else { inner };
        let tried = (tried as u64).clamp(safe + 1, beyond - 1);
        let value = epsilon(tried)?;
        if (value / target - 1.0).abs() < 0.2 * width {
            return Ok((tried, beyond));
        }
        if value <= target {
            (safe, at_safe) = (tried, value);
        } else {
            (beyond, at_beyond) = (tried, value);
        }
    }
    Ok((safe, beyond))
}

/// The same function, computed once for each number of steps: the searches overlap at their ends.
fn remembering(ask: impl Fn(u64) -> Result<f64>) -> impl Fn(u64) -> Result<f64> {
    let known = RefCell::new(HashMap::new());
    move |steps| {
        if let Some(&value) = known.borrow().get(&steps) {
            return Ok(value);
        }
        let value = ask(steps)?;
        known.borrow_mut().insert(steps, value);
        Ok(value)
    }
}

impl Answer<Epsilon> {
    /// Whether the Rényi accountant's bound is the smaller one, because PLD's is not tight here: then
    /// a search by PLD alone went too far.
    fn is_loose(&self) -> bool {
        self.pld.is_some_and(|pld| self.value < pld)
    }
}

fn ask(mut accountant: impl Accountant, events: &[CountedEvent], delta: Delta) -> Result<Epsilon> {
    accountant.compose_all(events)?;
    accountant.epsilon(delta)
}

/// ε by the Rényi accountant alone; infinite where it leaves the range.
fn probe_rdp(events: &[CountedEvent], adjacency: Adjacency, delta: Delta) -> Result<f64> {
    finite_or_infinite(ask(RdpAccountant::new(adjacency), events, delta).map(Epsilon::get))
}

fn finite_or_infinite(answer: Result<f64>) -> Result<f64> {
    match answer {
        Err(Error::OutOfRange { .. }) => Ok(f64::INFINITY),
        other => other,
    }
}

/// ε of the accountant that [`crate::epsilon`] reports; infinite where it leaves the range by far.
fn probe(events: &[CountedEvent], adjacency: Adjacency, delta: Delta, options: PldOptions) -> Result<f64> {
    if delta.get() == 0.0 {
        return finite_or_infinite(ask(PureAccountant::new(adjacency), events, delta).map(Epsilon::get));
    }
    let mut accountant = PldAccountant::with_options(adjacency, options);
    match accountant.compose_all(events) {
        Err(Error::UnknownEvent { .. }) => probe_rdp(events, adjacency, delta),
        Err(error) => Err(error),
        Ok(()) => finite_or_infinite(accountant.epsilon_beyond_range(delta)),
    }
}

/// Whether ε is at most the target for certain, seen without composing on a fine grid.
fn certainly_below(
    events: &[CountedEvent],
    adjacency: Adjacency,
    epsilon: Epsilon,
    delta: Delta,
) -> Result<bool> {
    let mut accountant = PldAccountant::new(adjacency);
    match accountant.compose_all(events) {
        Err(Error::UnknownEvent { .. }) => Ok(false),
        other => other.map(|()| accountant.is_certainly_below(epsilon, delta)),
    }
}

/// The answer of [`crate::epsilon`], given what [`probe`] found on the fine grid.
fn confirm(
    events: &[CountedEvent],
    adjacency: Adjacency,
    delta: Delta,
    known: f64,
) -> Result<Answer<Epsilon>> {
    let mut pld = PldAccountant::new(adjacency);
    if delta.get() == 0.0 || pld.compose_all(events).is_err() {
        return crate::epsilon(events, adjacency, delta);
    }
    check_against_rdp(Epsilon::new(known), events, adjacency, delta)
}

/// Finds the smallest x with fine(x) ≤ target, for functions that decrease in x.
struct Search<C, F> {
    target: f64,
    range: (f64, f64),
    coarse: C,
    fine: F,
}

impl<C: Fn(f64) -> Result<f64>, F: Fn(f64) -> Result<f64>> Search<C, F> {
    /// The safe end of the last bracket and ε there; `None` if even the upper end of the range is
    /// not safe.
    fn run(&self) -> Result<Option<(f64, f64)>> {
        let start = 0f64.clamp(self.range.0, self.range.1);
        let Some((guess, slope)) = self.approach(start)? else { return Ok(None) };
        self.refine(guess, slope)
    }

    /// A coarse root and the local slope d ln ε / dx.
    fn approach(&self, start: f64) -> Result<Option<(f64, f64)>> {
        let (low, high) = self.range;
        let mut bracket = Bracket::new(-1.0);
        let mut x = start;
        for round in 0..60 {
            let value = ((self.coarse)(x)? / self.target).ln();
            bracket.insert(x, value);
            if value.abs() < 3e-3 || (x == low && value <= 0.0) || bracket.is_tight() {
                break;
            }
            if x == high && value > 0.0 {
                return Ok(None);
            }
            x = bracket.propose(round > 30).clamp(low, high);
        }
        Ok(Some((x, bracket.slope)))
    }

    /// The same with the fine function, ending on the safe side.
    fn refine(&self, guess: f64, slope: f64) -> Result<Option<(f64, f64)>> {
        let (low, high) = self.range;
        let mut bracket = Bracket::new(slope);
        let mut x = guess;
        for round in 0..80 {
            // Aim between the target and CLOSE below it.
            let epsilon = (self.fine)(x)?;
            let value = (epsilon / (self.target * (1.0 - 0.4 * CLOSE))).ln();
            let safe = value <= 0.4 * CLOSE * (1.0 - 1e-6);
            bracket.insert(x, value);
            if safe && (value > -0.6 * CLOSE || x == low || bracket.is_tight()) {
                return Ok(Some((x, epsilon)));
            }
            if x == high && !safe {
                return Ok(None);
            }
            x = bracket.propose(round > 8).clamp(low, high);
        }
        let Some(x) = bracket.safe else { return Ok(None) };
        let epsilon = (self.fine)(x)?;
        Ok((epsilon <= self.target).then_some((x, epsilon)))
    }
}

/// The last point, the slope there, and the best points known on either side of the root; values
/// are ln(ε/target).
struct Bracket {
    last: (f64, f64),
    slope: f64,
    unsafe_: Option<f64>,
    safe: Option<f64>,
}

impl Bracket {
    fn new(slope: f64) -> Self {
        Self { last: (f64::NAN, f64::NAN), slope, unsafe_: None, safe: None }
    }

    fn insert(&mut self, x: f64, value: f64) {
        let secant = (value - self.last.1) / (x - self.last.0);
        if secant.is_finite() && secant < -0.05 {
            self.slope = secant;
        }
        self.last = (x, value);
        if value > 0.0 {
            self.unsafe_ = Some(self.unsafe_.map_or(x, |known| known.max(x)));
        } else {
            self.safe = Some(self.safe.map_or(x, |known| known.min(x)));
        }
    }

    fn is_tight(&self) -> bool {
        matches!((self.unsafe_, self.safe), (Some(a), Some(b)) if b - a < 1e-9)
    }

    /// The next point: a secant step kept inside the bracket, or its middle.
    fn propose(&self, bisect: bool) -> f64 {
        let (x, value) = self.last;
        // ε = 0 (less noise would do) and ε out of range (more is needed) have no finite logarithm.
        let step =
            if value.is_finite() { (-value / self.slope).clamp(-3.0, 3.0) } else { 1.5 * value.signum() };
        match (self.unsafe_, self.safe) {
            (Some(a), Some(b)) if bisect || !(x + step > a && x + step < b) => 0.5 * (a + b),
            _ => x + step,
        }
    }
}
