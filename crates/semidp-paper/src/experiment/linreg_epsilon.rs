//! Test loss against ε with a tenth and a quarter of the rows public, warm start (`fig:acc_vs_eps_ratio_0_1` and `_0_25`).

use super::Experiment;
use crate::linreg::reproduce;
use crate::published::LOSSES;
use crate::{Outcome, Result, Settings};

/// The experiment.
pub struct LinregEpsilon;

impl Experiment for LinregEpsilon {
    fn name(&self) -> &'static str {
        "linreg-epsilon"
    }

    fn title(&self) -> &'static str {
        "Linear regression: test loss against epsilon"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        reproduce(self, settings, &LOSSES[2..4], None, progress)
    }
}
