//! What can be expected before anything is run: minimax rates with their conditions, crossing points of
//! estimators, and plans for training.

mod crossing;
mod rates;
mod training;

pub use crossing::{Sweep, hardly_help_beyond, sweep_epsilon, sweep_share};
pub use rates::{Rate, RateSetting, Task, rates};
pub use training::{TrainingPlan, TrainingProblem, plan_training};
