//! The estimators with the optimal weight: "even more optimal" (paper, `prop: even more optimal ME`).

use super::problem::Clip;
use super::{Estimator, Law, Problem};

/// Public rows as they are, private rows clipped, noised and weighted by how much they still tell.
///
/// *Definition*: weight r* of [`Problem::best_weight`]: the two means combined by their inverse
/// variances. *Guarantee*: the budget, under replace-one; the weight is public, and multiplying a noised
/// sum is post-processing. *Utility*: 1/(1/v_pub + 1/v_priv), strictly below both baselines with the same
/// noise law; misweighting by w − w* costs exactly (v_pub + v_priv)(w − w*)².
pub struct Weighted(pub Law);

impl Estimator for Weighted {
    fn name(&self) -> &'static str {
        match self.0 {
            Law::Gaussian => "weighted-gaussian",
            Law::Laplace => "weighted-laplace",
            Law::KNorm => "weighted-k-norm",
        }
    }

    fn about(&self) -> &'static str {
        "public and private rows, each weighted by what it tells"
    }

    fn law(&self) -> Option<Law> {
        Some(self.0)
    }

    fn private_weight(&self, problem: &Problem, noise: f64, clip: Clip) -> f64 {
        problem.best_weight(noise, clip)
    }
}
