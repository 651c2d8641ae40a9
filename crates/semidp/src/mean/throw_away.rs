//! Throw-away: the public mean, and nothing else.

use super::problem::Clip;
use super::{Estimator, Law, Problem};

/// The mean of the public rows.
///
/// *Guarantee*: ε = 0; no private row is read. *Utility*: error V²/n_pub, which is the best rate once
/// public rows are many (paper, lemma `lem: zcdp naive`).
pub struct ThrowAway;

impl Estimator for ThrowAway {
    fn name(&self) -> &'static str {
        "throw-away"
    }

    fn about(&self) -> &'static str {
        "public rows only"
    }

    fn law(&self) -> Option<Law> {
        None
    }

    fn private_weight(&self, _: &Problem, _: f64, _: Clip) -> f64 {
        0.0
    }
}
