//! Test loss from a cold start: against the public share at ε = 4, and against ε with a tenth of the rows public
//! (`fig:acc_vs_ratio_eps_4_non_warm` and `fig:acc_vs_eps_ratio_0_1_non_warm`). The autopilot is that of the other tables.

use super::Experiment;
use crate::linreg::reproduce;
use crate::published::LOSSES;
use crate::{Outcome, Result, Settings};

/// The experiment.
pub struct LinregCold;

impl Experiment for LinregCold {
    fn name(&self) -> &'static str {
        "linreg-cold"
    }

    fn title(&self) -> &'static str {
        "Linear regression: test loss without a warm start"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        reproduce(self, settings, &LOSSES[4..], None, progress)
    }
}
