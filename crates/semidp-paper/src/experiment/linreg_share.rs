//! Test loss against the public share at ε = 2 and ε = 4, warm start (`fig:acc_vs_ratio_eps_2` and `_4`).

use super::Experiment;
use crate::linreg::{ReplaceOne, reproduce};
use crate::published::LOSSES;
use crate::{Outcome, Result, Settings};

/// Where the autopilot is asked for the paper's own definition of neighbours as well.
const REPLACE_ONE: ReplaceOne = ReplaceOne { epsilon: 2.0, shares: &[0.1, 0.25, 0.5] };

/// The experiment.
pub struct LinregShare;

impl Experiment for LinregShare {
    fn name(&self) -> &'static str {
        "linreg-share"
    }

    fn title(&self) -> &'static str {
        "Linear regression: test loss against the public share"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        reproduce(self, settings, &LOSSES[..2], Some(REPLACE_ONE), progress)
    }
}
