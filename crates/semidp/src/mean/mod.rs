//! Means of private and public rows.
//!
//! `problem → plan → release`: a [`Problem`] holds what is known beforehand, a [`Plan`] is an estimator with
//! its weight, its noise and its predicted error, and [`Plan::release`] carries it out on private rows. To add
//! an estimator: a file here that implements [`Estimator`], and a line in [`ESTIMATORS`].
//!
//! ```
//! use semidp::mean::*;
//! use semidp_accounting::{Delta, PrivacyBudget, Rho};
//! use semidp_core::{Adjacency, DenseTable, Private, Public, Session};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let budget = PrivacyBudget::Zcdp { rho: Rho::new(0.1)?, stated_at: Delta::new(1e-6)? };
//! // Before any private row is read: which estimator, and how good will it be?
//! let problem = Problem::new(9920, 80, 100, 25.0)?.with_std(1.0)?;
//! let plans = plan_all(&problem, budget)?;
//! let best = cheapest(&plans, false).unwrap();
//! assert_eq!(best.name(), "weighted-gaussian");
//! assert!((best.predicted_mse() - 0.0063249).abs() < 1e-7);
//! // Then on the private rows.
//! let rows = Private::new(DenseTable::new(vec![0.1f32; 9920 * 100], 100)?);
//! let session = Session::new(rows, Adjacency::ReplaceOne)?;
//! let public_mean = Public(vec![0.1; 100]);
//! let release = best.release(&session, &public_mean, &public_mean)?;
//! assert!(release.certificate.guarantee.rho.unwrap().get() <= 0.1);
//! # Ok(())
//! # }
//! ```
//!
//! A plan cannot look at private rows:
//! ```compile_fail,E0308
//! use semidp::mean::*;
//! # fn try_it(rows: semidp_core::Private<semidp_core::DenseTable<f32>>) {
//! let evidence = Evidence::of(&rows);
//! # }
//! ```
//! ```compile_fail,E0308
//! use semidp::mean::*;
//! # fn try_it(session: semidp_core::Session<semidp_core::DenseTable<f32>>) {
//! let evidence = Evidence::of(&session);
//! # }
//! ```

mod clipping;
mod estimate;
mod evidence;
mod interval;
mod joint;
mod law;
mod plan;
mod problem;
mod release;
mod shift;
mod tail;
mod throw_away;
mod uniform;
mod weighted;

pub use estimate::{Errors, Request, errors};
pub use evidence::Evidence;
pub(crate) use evidence::for_each_row;
pub use interval::{half_width, normal_quantile, student_quantile};
pub use joint::{
    Assumption, ColumnEstimate, Estimated, JointEstimate, JointPlan, NONE_BEYOND_RADIUS, SAME_POPULATION,
    Shift, TAIL_OF_PUBLIC_ROWS,
};
pub use law::Law;
pub use plan::{Plan, cheapest, plan_all, plan_named, plan_weighted};
pub use problem::{Clip, Problem, Target};
pub use shift::{ErrorLaw, Intervals, Pair, combine, predicted_errors, shift_threshold};
pub use tail::Moment;
pub use throw_away::ThrowAway;
pub use uniform::Uniform;
pub use weighted::Weighted;

/// A way to weight private rows. Everything else is shared: clipping, noise, error, release.
pub trait Estimator: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// In a few words.
    fn about(&self) -> &'static str;

    /// The noise it adds; `None` if it reads no private row.
    fn law(&self) -> Option<Law>;

    /// The weight r of each private row, given the total variance of the noise on the sum.
    fn private_weight(&self, problem: &Problem, noise: f64, clip: Clip) -> f64;
}

/// Every estimator.
pub static ESTIMATORS: &[&dyn Estimator] = &[
    &ThrowAway,
    &Uniform(Law::Gaussian),
    &Weighted(Law::Gaussian),
    &Uniform(Law::Laplace),
    &Weighted(Law::Laplace),
    &Uniform(Law::KNorm),
    &Weighted(Law::KNorm),
];
