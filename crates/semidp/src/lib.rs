//! The algorithms of semidp: compositions of kernel calls and post-processing.
//!
//! * [`audit`]: attacks that measure how much a release tells, next to what it promises.
//! * [`mean`]: estimators of a mean from private and public rows, each with its exact error beforehand.
//! * [`files`]: files of results, written whole or not at all, and never over files of another kind.
//! * [`loss`] and [`domain`]: what is minimised in training, and over which models.
//! * [`train`]: linear models on private and public rows.
//! * [`model`]: models of tables, their files, predictions and metrics.
//! * [`number`]: numbers as text.
//! * [`record`]: a run of one release that survives its process.
//! * [`strength`]: budgets that promise little, and noise that hides nobody.
//! * [`theory`]: minimax rates with their conditions, and plans for training.
//!
//! Everything here is outside the trusted kernel: it sees public rows, counts, budgets and noised
//! sums, never a private row.

pub mod audit;
pub mod domain;
mod error;
pub mod files;
pub mod local;
pub mod loss;
pub mod mean;
pub mod model;
pub mod number;
pub mod record;
pub mod strength;
pub mod theory;
pub mod train;
mod verbs;
pub mod wording;

pub use error::{Error, Result};
pub use semidp_accounting::PrivacyBudget as Budget;
pub use verbs::*;
