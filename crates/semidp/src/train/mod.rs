//! Training linear models on private and public rows.
//!
//! * [`rows`](PublicRows): public rows in memory, with their labels.
//! * [`Model`]: weights, and what they mean.
//! * [`minimise`]: throw-away, the best model for public rows alone.
//! * [`Sgd`]: Algorithm 1 (Semi-DP-SGD), and DP-SGD as its special case without public gradients, for either kind of loss.
//!
//! Everything but the sums of private gradients happens outside the kernel, on public rows and released iterates.

mod alpha;
mod average;
mod batches;
mod conjugate;
mod curvature;
mod directions;
mod gradient;
mod lbfgs;
mod minimise;
mod model;
mod rows;
mod sgd;

pub use alpha::{Alpha, Variances};
pub use average::Average;
pub use curvature::curvature;
pub use directions::Directions;
pub use gradient::PublicGradient;
pub use minimise::minimise;
pub use model::Model;
pub use rows::PublicRows;
pub use sgd::{Sgd, StepSize, Trained};
