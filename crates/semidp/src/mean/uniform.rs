//! The baselines that treat all rows as private: every row has weight 1/n.

use super::problem::Clip;
use super::{Estimator, Law, Problem};

/// The mean of all rows with noise for all of them.
///
/// *Guarantee*: the budget, under replace-one. *Utility*: error N/n² + V²/n (paper, lemma
/// `lem: zcdp naive` for Gaussian noise; for Laplace noise the paper states 16d²/(nε)² + 2/n where
/// 8d²B²/(nε)² + V²/n is exact). The weight ignores how noisy private rows are.
pub struct Uniform(pub Law);

impl Estimator for Uniform {
    fn name(&self) -> &'static str {
        match self.0 {
            Law::Gaussian => "gaussian",
            Law::Laplace => "laplace",
            Law::KNorm => "k-norm",
        }
    }

    fn about(&self) -> &'static str {
        "all rows treated as private"
    }

    fn law(&self) -> Option<Law> {
        Some(self.0)
    }

    fn private_weight(&self, problem: &Problem, _: f64, _: Clip) -> f64 {
        problem.uniform_weight()
    }
}
