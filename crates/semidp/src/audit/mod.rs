//! Audits: attacks that measure how much a mechanism tells, next to what it promises.
//!
//! * [`mean()`] and [`randomizer()`]: many releases from two neighbouring data sets that are as far apart as can be.
//! * [`low_bits()`]: the same for the low-order bits of reports of a randomiser.
//! * [`training()`]: many canaries in a few runs of a training algorithm.
//! * [`tracing`]: the paper's attack on means in high dimension.
//! * [`replay`]: a mechanism on neighbouring rows with the same random numbers, compared bit by bit.
//! * [`from_scores()`]: the same statistics for scores of anybody's attack.
//!
//! An audit proves a *lower* bound on epsilon, with a confidence. A bound above the claim is a bug; one below it proves
//! nothing. All rows are made up here: no row of a user is ever looked at. `docs/audit.md` says how to read the result.
//!
//! ```
//! use semidp::{audit, mean};
//! use semidp_accounting::{Delta, Epsilon, PrivacyBudget};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let budget = PrivacyBudget::Approximate { epsilon: Epsilon::new(4.0)?, delta: Delta::new(1e-5)? };
//! let plan = mean::plan_named("weighted-gaussian", &mean::Problem::new(100, 10, 3, 1.0)?, budget)?;
//! let audit = audit::mean(&plan, &audit::Options { trials: 2000, ..audit::Options::default() })?;
//! assert!(!audit.is_violation());
//! assert!(audit.best().epsilon > 0.5 * audit.claimed_epsilon);
//! # Ok(())
//! # }
//! ```

mod canaries;
mod coins;
mod exact;
mod low_bits;
mod mean;
mod one_run;
mod parallel;
mod randomizer;
pub mod replay;
mod scores;
pub mod tracing;
mod training;

pub use exact::{clopper_pearson, incomplete_beta};
pub use low_bits::{Inputs, low_bits};
pub use mean::mean;
pub use one_run::{Guesses, one_run_epsilon, one_run_p_value};
pub use randomizer::randomizer;
pub use scores::{Claim, from_scores};
pub use training::{Shape, training};

use crate::{Error, Result};
use semidp_core::Adjacency;

/// Guesses IN of a membership test, among trials that were in and among trials that were out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Trials that were in,
    pub ins: u64,
    /// and how many of them were guessed so.
    pub true_positives: u64,
    /// Trials that were out,
    pub outs: u64,
    /// and how many of them were guessed to be in.
    pub false_positives: u64,
}

impl Counts {
    /// The share of IN among those that were in.
    pub fn true_positive_rate(&self, confidence: f64) -> Rate {
        Rate::of(self.true_positives, self.ins, confidence)
    }

    /// The share of IN among those that were out.
    pub fn false_positive_rate(&self, confidence: f64) -> Rate {
        Rate::of(self.false_positives, self.outs, confidence)
    }
}

/// A rate with its Clopper-Pearson interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// As measured.
    pub value: f64,
    /// The true rate is below this with a chance of at most half of what confidence leaves,
    pub lower: f64,
    /// and above this with the same chance.
    pub upper: f64,
}

impl Rate {
    /// So many out of so many.
    pub fn of(hits: u64, count: u64, confidence: f64) -> Self {
        let (lower, upper) = clopper_pearson(hits, count, 0.5 * (1.0 - confidence));
        Self { value: if count == 0 { 0.0 } else { hits as f64 / count as f64 }, lower, upper }
    }
}

/// An epsilon that the mechanism does not stay below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// `differential-privacy`, `gaussian-dp`, `one-run` or `one-run-black-box`.
    pub method: &'static str,
    /// The bound, at the delta of the claim.
    pub epsilon: f64,
    /// All bounds of an audit hold together with this confidence.
    pub confidence: f64,
    /// What the bound rests on besides chance.
    pub assumes: Option<&'static str>,
}

/// The bound that needs no attack.
static NOTHING_KNOWN: LowerBound =
    LowerBound { method: "differential-privacy", epsilon: 0.0, confidence: 1.0, assumes: None };

/// What an attack found, next to what is claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// The mechanism or algorithm, and where the attack looked.
    pub what: String,
    /// What the certificate says,
    pub claimed_epsilon: f64,
    /// at this delta,
    pub delta: f64,
    /// for these neighbours.
    pub adjacency: Adjacency,
    /// By every method that applies; never empty.
    pub bounds: Vec<LowerBound>,
    /// At a threshold that was chosen on other trials than those counted.
    pub true_positive_rate: Rate,
    /// At the same threshold.
    pub false_positive_rate: Rate,
    /// False and true positive rates of all thresholds, increasing, of the trials that were counted.
    pub roc: Vec<(f64, f64)>,
    /// Releases in each of both worlds; runs, for an audit of training.
    pub trials: u64,
    /// What all coins and all noise came from.
    pub seed: u64,
}

impl Audit {
    /// The largest bound; the first of equals.
    pub fn best(&self) -> &LowerBound {
        let mut best = self.bounds.first().unwrap_or(&NOTHING_KNOWN);
        for bound in &self.bounds {
            if bound.epsilon > best.epsilon {
                best = bound;
            }
        }
        best
    }

    /// Whether the claim is refuted.
    pub fn is_violation(&self) -> bool {
        self.best().epsilon > self.claimed_epsilon
    }

    /// The largest true positive rate that the claim allows, at false positive rates from 0 to 1.
    ///
    /// Every test of an (ε, δ)-DP mechanism has TPR ≤ e^ε·FPR + δ and 1 − FPR ≤ e^ε·(1 − TPR) + δ.
    pub fn trade_off(&self) -> Vec<(f64, f64)> {
        let (epsilon, delta) = (self.claimed_epsilon, self.delta);
        let most = |false_positive: f64| {
            let (growth, decay) = (epsilon.exp(), (-epsilon).exp());
            // Nothing times an unbounded factor is nothing known.
            let first = if growth.is_infinite() { 1.0 } else { growth * false_positive + delta };
            let second = 1.0 - decay * (1.0 - delta - false_positive);
            first.min(second).clamp(0.0, 1.0)
        };
        // The bend is at 1/(1 + e^ε), near zero: points close to it, too.
        let bend = (1.0 - delta) / (1.0 + epsilon.exp());
        let mut points: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
        points.extend((0..=40).map(|i| 10f64.powf(-0.1 * f64::from(i))));
        points.push(bend);
        points.sort_by(f64::total_cmp);
        points.dedup();
        points.into_iter().map(|rate| (rate, most(rate))).collect()
    }
}

/// How an audit is carried out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Releases in each of both worlds, half of them to choose a threshold and half to count; runs, for an audit of training.
    pub trials: u64,
    /// All bounds hold together with this chance at least.
    pub confidence: f64,
    /// What all coins and all noise come from.
    pub seed: u64,
    /// At most so many threads. It makes no difference to the result.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { trials: 10_000, confidence: 0.99, seed: 1, threads: 1 }
    }
}

/// More trials than this would take days.
const MOST_TRIALS: u64 = 1_000_000_000;

impl Options {
    fn check(&self, least_trials: u64) -> Result<()> {
        if !(least_trials..=MOST_TRIALS).contains(&self.trials) {
            let requirement = match least_trials {
                2 => "a whole number from 2 to 1,000,000,000: one run to choose on, one to count",
                _ => "a whole number from 20 to 1,000,000,000",
            };
            return Err(Error::invalid("trials", self.trials, requirement));
        }
        check_confidence(self.confidence)
    }
}

fn check_confidence(confidence: f64) -> Result<()> {
    if confidence > 0.0 && confidence <= 1.0 - 1e-12 {
        return Ok(());
    }
    Err(Error::invalid("confidence", confidence, "above 0 and at most 1 - 1e-12"))
}
