//! Replay audits: a mechanism runs on neighbouring rows with the same random numbers, and must not show which rows it had.
//!
//! *Method* (after "Privacy in Theory, Bugs in Practice", 2026). The first world is recorded: every sum before noise, and what was
//! released of it. Every other world differs by one private unit; its steps release what the first one's released
//! ([`semidp_core::Recorder`]), so both worlds ask the same queries at the same iterates. Then
//!
//! * each step's sums may differ by the declared sensitivity at most: C under add/remove and 2C under replace-one, in the norm
//!   of the noise, compared in integers without slack;
//! * what is declared of a step (norm, grid, clip norm, noise scale) and of a program (events, steps, dimension) must be equal, and
//!   the noise must have the scale that its event accounts for;
//! * a unit may take part as often as its sampling says: once a pass, or about as often as its rate;
//! * everything else that leaves the library must be equal, bit for bit: given the same releases, a model, a certificate, an
//!   error or the number of steps has no other way to depend on the private unit.
//!
//! *What it proves.* A violation is a bug, with two data sets that show it: nothing is left to chance, but for the frequency of
//! samples, which is believed to be wrong below a probability of 1e-12. No violation proves nothing beyond the rows that were tried.
//! Noise itself is not tested; the other audits of this module do that.
//!
//! ```
//! use semidp::audit::replay::{self, Options};
//! use semidp::mean;
//! use semidp_accounting::{Delta, Epsilon, PrivacyBudget};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let budget = PrivacyBudget::Approximate { epsilon: Epsilon::new(4.0)?, delta: Delta::new(1e-5)? };
//! let plan = mean::plan_named("weighted-gaussian", &mean::Problem::new(100, 10, 3, 1.0)?, budget)?;
//! let report = replay::mean(&plan, &Options::default())?;
//! assert!(report.violations.is_empty());
//! // Clipped rows on opposite sides: the bound is attained, so the audit would notice a smaller one.
//! assert!(report.largest_share > 0.99);
//! # Ok(())
//! # }
//! ```

mod compare;
mod observed;
mod registry;
mod worlds;

pub use observed::Observed;
pub use registry::{Options, mean, training};
pub use worlds::{OddRow, Source, Worlds, odd_rows};

use compare::{World, compare};
use semidp_core::{Adjacency, Recorder};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Of more numbers than this in all worlds, only two worlds are kept: half a gigabyte.
const MOST_NUMBERS: usize = 1 << 26;

/// Something that two worlds may not differ in.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// The first world did not repeat itself: its seed is not fixed, or it remembers earlier runs.
    NotRepeatable {
        /// What differs.
        what: String,
    },
    /// A step's sums differ by more than the declared sensitivity.
    Sensitivity {
        /// The step.
        step: u64,
        /// The norm of the difference over the sensitivity; infinite if a sum overflowed.
        share: f64,
    },
    /// Programs or steps differ in number, or in what is declared of them.
    Declaration {
        /// What differs.
        what: String,
    },
    /// What is declared of a step does not agree with the events of its program.
    Accounting {
        /// What does not agree.
        what: String,
    },
    /// The unit takes part in more steps than its sampling allows.
    Participation {
        /// Steps that it takes part in,
        steps: u64,
        /// of so many,
        of: u64,
        /// by this sampling.
        sampling: &'static str,
    },
    /// Something that leaves the library differs though all releases are the same.
    Output {
        /// Its name.
        name: String,
        /// In the one world,
        first: String,
        /// and in the other.
        second: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRepeatable { what } => write!(f, "the same rows and seed give another run: {what}"),
            Self::Sensitivity { step, share } => {
                write!(f, "step {step}: one unit moves the sum before noise by {share:.6} of the sensitivity")
            }
            Self::Declaration { what } => write!(f, "the private unit decides {what}"),
            Self::Accounting { what } => write!(f, "the accounting is of something else: {what}"),
            Self::Participation { steps, of, sampling } => {
                write!(f, "the unit takes part in {steps} of {of} steps of {sampling} sampling")
            }
            Self::Output { name, first, second } => {
                write!(f, "{name} depends on the private unit: {first} or {second}")
            }
        }
    }
}

/// A violation and the two worlds that show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The numbers of the worlds.
    pub worlds: (usize, usize),
    /// What differs.
    pub violation: Violation,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worlds {} and {}: {}", self.worlds.0, self.worlds.1, self.violation)
    }
}

/// The outcome of a replay audit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Pairs of sums that were compared.
    pub comparisons: u64,
    /// The largest change of a sum over its declared sensitivity. Near 1, the rows tried are the worst ones; 0 means that no
    /// unit was ever sampled, or that no private row is read.
    pub largest_share: f64,
    /// Empty unless there is a bug.
    pub violations: Vec<Found>,
}

impl Report {
    /// Adds the outcome of another audit.
    pub fn absorb(&mut self, other: Self) {
        self.comparisons += other.comparisons;
        self.largest_share = self.largest_share.max(other.largest_share);
        self.violations.extend(other.violations);
    }
}

/// Replays a mechanism in `worlds` worlds. `run` must carry it out on the rows of the world with this number, with the same
/// seed in every world, hand the recorder to its session, and return everything that leaves the library.
///
/// Every world must be a neighbour of world 0. Under replace-one all must be neighbours of each other, and all pairs are compared
/// (in a run of very many numbers, each world with the first and the last one only); under add/remove world 0 lacks the unit that the others have, and is compared with each of them.
pub fn replay(worlds: usize, mut run: impl FnMut(usize, &Arc<Recorder>) -> Observed) -> Report {
    let mut carry_out = |world: usize, recorder: Recorder| -> World {
        let recorder = Arc::new(recorder);
        let observed =
            catch_unwind(AssertUnwindSafe(|| run(world, &recorder))).unwrap_or_else(Observed::of_panic);
        (recorder.transcript(), observed)
    };
    let mut report = Report::default();
    let first = carry_out(0, Recorder::new());
    let numbers: usize = first.0.steps.iter().map(|step| step.sum.len() + step.released.len()).sum();
    let are_few = numbers.saturating_mul(worlds) <= MOST_NUMBERS;
    let adds = first.0.programs.iter().any(|program| program.adjacency == Adjacency::AddRemove);
    // What the worlds that follow are compared with, besides the first one.
    let mut earlier: VecDeque<(usize, World)> = VecDeque::new();
    for number in 1..worlds {
        let world = carry_out(number, Recorder::forcing(first.0.clone()));
        compare((0, number), &first, &world, &mut report);
        if !adds {
            earlier.iter().for_each(|(other, seen)| compare((*other, number), seen, &world, &mut report));
            earlier.push_back((number, world));
            if !are_few && earlier.len() > 1 {
                earlier.pop_front();
            }
        }
    }
    // Last, so that whatever remembers earlier runs had some to remember.
    let again = carry_out(0, Recorder::forcing(first.0.clone()));
    if let Some(what) = difference(&first, &again) {
        let violation = Violation::NotRepeatable { what };
        report.violations.push(Found { worlds: (0, 0), violation });
    }
    report
}

/// How two runs on the same rows differ.
fn difference(a: &World, b: &World) -> Option<String> {
    if a.0.programs != b.0.programs || a.0.steps.len() != b.0.steps.len() {
        return Some("its programs".into());
    }
    if let Some((one, _)) = a.0.steps.iter().zip(&b.0.steps).find(|(one, other)| one.sum != other.sum) {
        return Some(format!("the sum before noise of step {}", one.step));
    }
    a.1.differences(&b.1)
        .into_iter()
        .next()
        .map(|(name, first, second)| format!("{name}: {first} or {second}"))
}
