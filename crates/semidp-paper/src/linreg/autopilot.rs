//! The library left to itself: one call with a budget and nothing tuned, which sees no validation row.

use super::DELTA;
use crate::Result;
use crate::autopilot::{NAME, trained};
use crate::regression::Draw;
use semidp::domain::Everywhere;
use semidp::loss::Squared;
use semidp::train::{Given, Recipe};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, BlockSource, Delta, Epsilon, SampleRate};
use serde::{Deserialize, Serialize};

/// What a certificate calls the test loss that was predicted before any private row was read.
const PREDICTED: &str = "predicted-squared-error";

/// What it gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Autopiloted {
    /// The exact test loss.
    pub loss: f64,
    /// What it expected itself, if it said so.
    pub predicted: Option<f64>,
    /// What it ran.
    pub algorithm: String,
    /// What its certificate says.
    pub epsilon: f64,
}

/// Trains on a draw. Under add/remove the number of private rows is secret, so that the batch K and its share are given;
/// under replace-one nothing is.
pub fn autopilot(
    draw: &Draw,
    test_loss: impl Fn(&[f64]) -> f64,
    epsilon: f64,
    adjacency: Adjacency,
    batch: usize,
    seed: u64,
    threads: usize,
) -> Result<Autopiloted> {
    let mut given = Given::default();
    if adjacency == Adjacency::AddRemove {
        given.sample_rate = Some(SampleRate::new((batch as f64 / draw.private.units() as f64).min(1.0))?);
        given.expected_batch = Some(batch as f64);
    }
    let recipe = Recipe {
        loss: &Squared,
        domain: &Everywhere,
        has_intercept: false,
        budget: PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(DELTA)? },
        adjacency,
        given,
    };
    let (private, public) = (Box::new(draw.private.clone()), Some(draw.public.clone()));
    let trained = trained(NAME, &recipe, private, public, seed, threads)?;
    let certificate = &trained.certificate;
    let said = certificate.hyperparameters.iter().find(|known| known.name == PREDICTED);
    Ok(Autopiloted {
        loss: test_loss(&trained.model.weights),
        predicted: said.and_then(|known| known.value.as_f64()),
        algorithm: certificate.mechanism.clone(),
        epsilon: certificate.guarantee.epsilon.get(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coins::Coins;
    use crate::regression::{Features, Law};

    /// Within its budget, and no worse than nothing, under either adjacency.
    #[test]
    fn it_stays_within_its_budget() {
        let law = Law { features: Features::Normal, dimension: 10, label_std: 1.0 };
        let draw = law.draw(60, 600, &mut Coins::new(4, 0)).unwrap();
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let loss = |w: &[f64]| law.test_loss(&draw.truth, w);
            let found = autopilot(&draw, loss, 2.0, adjacency, 30, 1, 1).unwrap();
            assert!(found.epsilon <= 2.0 && found.epsilon > 1.0, "{found:?}");
            assert!(found.loss > 1.0 && found.loss < loss(&[0.0; 10]), "{found:?}");
            assert!(found.algorithm.contains(NAME), "{found:?}");
        }
    }
}
