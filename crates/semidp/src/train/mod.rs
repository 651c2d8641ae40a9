//! Training linear models on private and public rows.
//!
//! * [`PublicRows`]: public rows in memory, with their labels; [`Model`]: weights, and what they mean.
//! * [`ALGORITHMS`]: Algorithm 1 of the paper, its relatives and what it is compared with, each with one way in.
//! * [`Recipe`]: every hyper-parameter that the user does not fix, from public rows, counts and theory.
//! * [`Sgd`]: the loop of Algorithm 1, of which DP-SGD is the case without public gradients, for either kind of loss.
//! * [`local`]: the same where nobody is trusted with rows: each private person reports once.
//! * [`metrics`]: how good a model is on rows that may be looked at.
//!
//! Everything but the sums of private gradients happens outside the kernel, on public rows and released iterates.

mod accelerated;
mod algorithm;
mod alpha;
mod auto;
mod average;
mod batches;
mod checkpoint;
mod cholesky;
mod conjugate;
mod curvature;
mod dense;
mod directions;
mod dp_sgd;
mod eigen;
mod gain;
mod gradient;
mod hessian;
mod keeping;
mod lbfgs;
mod learned;
pub mod local;
pub mod metrics;
mod minimise;
mod mirror;
mod model;
mod noise;
mod non_private;
mod pda_first_order;
mod pda_md;
mod recipe;
mod ridge;
mod rows;
mod semi_dp_sgd;
mod sgd;
mod shape;
#[cfg(test)]
mod testing;
mod throw_away;
mod tile;
mod update;
mod wide;

pub use accelerated::{Accelerated, Acceleration};
pub use algorithm::{
    ALGORITHMS, Algorithm, Conduct, PrivateUse, Progress, PublicUse, TrainingData, algorithm_for,
    algorithm_named, algorithm_names,
};
pub use alpha::{Alpha, Variances};
pub use auto::Auto;
pub use average::Average;
pub use checkpoint::{Fact, difference};
pub use curvature::{Curvature, curvature};
pub use directions::Directions;
pub use dp_sgd::DpSgd;
pub use gain::{DOUBTED, OptimalGain, PUBLIC_DATA};
pub use gradient::PublicGradient;
pub use keeping::Keeping;
pub use local::{LdpSgd, LocalAuto, Schedule, SemiLdpGain, SemiLdpSgd};
pub use minimise::minimise;
pub use mirror::MirrorMap;
pub use model::Model;
pub use noise::noise_for;
pub use non_private::NonPrivate;
pub use pda_first_order::PdaFirstOrder;
pub use pda_md::PdaMd;
pub use recipe::{Given, Planned, PublicFit, Recipe, WarmStart};
pub use ridge::best_ridge;
pub use rows::PublicRows;
pub use semi_dp_sgd::SemiDpSgd;
pub use sgd::{Sgd, Trained};
pub use shape::Batches;
pub use throw_away::ThrowAway;
pub use update::{StepSize, Update, UpdateRule};
