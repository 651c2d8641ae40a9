//! Batches and steps of a run, from what is given and the number of private rows.

use super::Recipe;
use crate::{Error, Result};
use semidp_accounting::PrivacyBudget;
use semidp_core::{SampleRate, Sampling, Steps};

/// The share of private rows in a batch.
const RATE: f64 = 0.02;
/// Batches are not smaller than this on average if the rows suffice.
const LEAST_BATCH: f64 = 64.0;
const STEPS: u64 = 1000;
/// Steps in which every row takes part are dear, and fewer of them do.
const FULL_STEPS: u64 = 200;

/// How batches are drawn, before their size is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batches {
    /// Each row independently with a fixed chance.
    Poisson,
    /// A random subset of fixed size.
    FixedSize,
    /// Disjoint batches, one pass.
    OnePass,
    /// The same in the order of the rows, which needs no memory for them.
    InOrder,
    /// All rows, every time.
    Everyone,
}

impl Batches {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::FixedSize => "fixed-size",
            Self::OnePass => "one-pass",
            Self::InOrder => "in-order",
            Self::Everyone => "none",
        }
    }
}

/// The sizes of a run.
pub(super) struct Shape {
    pub(super) sampling: Sampling,
    /// K.
    pub(super) batch: f64,
    pub(super) steps: Steps,
    /// Private rows, or what stands in for their number.
    pub(super) rows: f64,
}

impl Recipe<'_> {
    /// Batches and steps. Under add/remove they must be given, because the number of rows is secret.
    /// Rows that are streamed are read once, unless what is given needs more.
    pub(super) fn shape(&self, rows: Option<u64>, is_streamed: bool) -> Result<Shape> {
        let given = &self.given;
        let batches = given.batches.unwrap_or(match self.budget {
            _ if is_streamed && rows.is_some_and(|rows| self.fits_one_pass(rows)) => Batches::InOrder,
            PrivacyBudget::Zcdp { .. } => Batches::OnePass,
            _ => Batches::Poisson,
        });
        let Some(rows) = rows else { return self.secret_shape(batches) };
        let count = rows as f64;
        let rate = given.sample_rate.map(SampleRate::get).or(given.expected_batch.map(|batch| batch / count));
        let rate = rate.unwrap_or((LEAST_BATCH / count).clamp(RATE, 1.0));
        let batch = given.expected_batch.unwrap_or(rate * count);
        if rate > 1.0 {
            return Err(Error::invalid("expected-batch", batch, "at most the number of private rows"));
        }
        // Poisson samples may be divided by any number; others are of one size.
        if batches != Batches::Poisson && (batch - rate * count).abs() > 0.5 {
            return Err(Error::invalid("expected-batch", batch, "the sample rate times the private rows"));
        }
        let otherwise = |default: u64| given.steps.map_or_else(|| Steps::new(default), Ok);
        Ok(match batches {
            Batches::Poisson => {
                let sampling = Sampling::Poisson { rate: SampleRate::new(rate)? };
                Shape { sampling, batch, steps: otherwise(STEPS)?, rows: count }
            }
            Batches::FixedSize => {
                let size = (rate * count).round().clamp(1.0, count);
                let sampling = Sampling::FixedSize { size: size as u64 };
                Shape { sampling, batch: size, steps: otherwise(STEPS)?, rows: count }
            }
            Batches::OnePass | Batches::InOrder => {
                let chosen = given.sample_rate.is_some() || given.expected_batch.is_some();
                let most = (count / if chosen { batch } else { LEAST_BATCH / 2.0 }).floor().max(1.0) as u64;
                let most = most.min(rows);
                let steps = otherwise(if chosen { most } else { most.min(STEPS) })?;
                let blocks = if chosen { most } else { steps.get() };
                if steps.get() > blocks.min(rows) {
                    return Err(Error::invalid("steps", steps, "at most the number of batches in one pass"));
                }
                let sampling = match batches {
                    Batches::InOrder => Sampling::InOrder { blocks },
                    _ => Sampling::OnePass { blocks },
                };
                Shape { sampling, batch: count / blocks as f64, steps, rows: count }
            }
            Batches::Everyone => {
                if given.sample_rate.is_some() || given.expected_batch.is_some() {
                    every_row(rate)?;
                }
                let sampling = Sampling::Everyone;
                Shape { sampling, batch: count, steps: otherwise(FULL_STEPS)?, rows: count }
            }
        })
    }

    /// Whether no row is needed twice for the steps and batches that are given, if any.
    fn fits_one_pass(&self, rows: u64) -> bool {
        let given = &self.given;
        let count = rows as f64;
        let by_rate = given.sample_rate.map(|rate| rate.get() * count);
        let batch = given.expected_batch.or(by_rate).unwrap_or(1.0);
        // A divisor of its own is for Poisson samples.
        by_rate.is_none_or(|rows| (rows - batch).abs() <= 0.5)
            && given.steps.is_none_or(|steps| steps.get() as f64 <= (count / batch).floor())
    }

    /// Nothing here may follow the number of rows: two constants of the user stand in for it.
    fn secret_shape(&self, batches: Batches) -> Result<Shape> {
        let given = &self.given;
        if matches!(batches, Batches::FixedSize | Batches::InOrder) {
            return Err(Error::invalid(
                "sampling",
                batches.name(),
                "poisson, one-pass or none under add-remove, where the number of private rows is secret",
            ));
        }
        let missing = |name| {
            let both = "given under add-remove, where the number of private rows is secret and sample-rate and \
                        expected-batch must not follow it";
            Error::invalid(name, "nothing", both)
        };
        let rate = given.sample_rate.ok_or_else(|| missing("sample-rate"))?;
        let batch = given.expected_batch.ok_or_else(|| missing("expected-batch"))?;
        let rows = batch / rate.get();
        let sampling = match batches {
            Batches::OnePass => {
                let blocks = (1.0 / rate.get()).round();
                if blocks >= 4_294_967_296.0 {
                    return Err(Error::invalid("sample-rate", rate, "at least 2^-32 for one-pass sampling"));
                }
                Sampling::OnePass { blocks: blocks as u64 }
            }
            Batches::Everyone => {
                every_row(rate.get())?;
                Sampling::Everyone
            }
            Batches::Poisson | Batches::FixedSize | Batches::InOrder => Sampling::Poisson { rate },
        };
        let steps = match (given.steps, sampling) {
            (Some(steps), _) => steps,
            (None, Sampling::OnePass { blocks }) => Steps::new(blocks)?,
            (None, Sampling::Everyone) => Steps::new(FULL_STEPS)?,
            (None, _) => Steps::new(STEPS)?,
        };
        Ok(Shape { sampling, batch, steps, rows })
    }
}

/// Refuses a rate that would have no effect.
fn every_row(rate: f64) -> Result<()> {
    if rate == 1.0 {
        return Ok(());
    }
    Err(Error::invalid("sample-rate", rate, "1 without sampling, where every private row is in every batch"))
}
