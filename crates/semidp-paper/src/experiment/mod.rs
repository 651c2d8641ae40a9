//! The experiments.

mod cifar_softmax;
mod divergence;
mod hessian_regularisation;
mod linreg_cold;
mod linreg_epsilon;
mod linreg_share;
mod local_mean;
mod local_sgd;
mod mean_estimation;
mod noise_tables;
mod rates;
mod real_tables;

use crate::{Outcome, Result, Settings};

/// One experiment of the paper.
pub trait Experiment: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it shows.
    fn title(&self) -> &'static str;

    /// Runs it, telling `progress` how many steps of how many are done.
    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome>;
}

/// Every experiment.
pub static EXPERIMENTS: &[&dyn Experiment] = &[
    &rates::Rates,
    &mean_estimation::MeanEstimation,
    &local_mean::LocalMean,
    &local_sgd::LocalSgdExperiment,
    &divergence::Divergence,
    &hessian_regularisation::HessianRegularisation,
    &noise_tables::NoiseTables,
    &linreg_share::LinregShare,
    &linreg_epsilon::LinregEpsilon,
    &linreg_cold::LinregCold,
    &real_tables::RealTables,
    &cifar_softmax::CifarSoftmax,
];
