//! The autopilot: chooses the algorithm, and all it needs, from public rows, counts and budget.
//!
//! | situation | choice |
//! |---|---|
//! | no public rows | semi-dp-sgd, which is DP-SGD then; clip norm and learning rate must be given |
//! | fewer than ten public rows | semi-dp-sgd |
//! | a loss with kinks, or options that belong to semi-dp-sgd | semi-dp-sgd |
//! | private rows would close less than a hundredth of what is open at this budget | throw-away, at no cost |
//! | the loss is curved, and they would close less than a twentieth of what public rows leave and alone leave twice as much | throw-away, at no cost |
//! | otherwise | optimal-gain, which notices by itself when public rows mislead, and is then gradient descent |
//!
//! It sees private rows through the same session as every algorithm; there is no way to hand it validation rows.

use super::gain::Hopeless;
use super::recipe::entry;
use super::{
    Algorithm, Conduct, OptimalGain, Progress, PublicRows, PublicUse, Recipe, SemiDpSgd, Trained,
    TrainingData, WarmStart,
};
use crate::Result;
use semidp_core::Certificate;
use serde_json::json;

/// Below this share of what is open, private rows are left alone.
pub(super) const LEAST_SHARE: f64 = 0.01;

/// Fewer public rows than these say next to nothing of how uncertain they are.
pub(super) const FEWEST_ROWS: usize = 10;

/// Whatever is best, as far as can be known without private rows.
pub struct Auto;

impl Algorithm for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn about(&self) -> &'static str {
        "the autopilot: chooses one of the others and all it needs, from public rows, counts and budget"
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Prior
    }

    fn ignores(&self) -> Vec<&'static str> {
        vec!["hessian-regularisation"]
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let (mut trained, name, reason) = match plain_reason(recipe, data.public.as_ref()) {
            Some(reason) => {
                (SemiDpSgd.train(recipe, data, conduct, on_step)?, SemiDpSgd.name(), reason.to_string())
            }
            None => {
                came_to(OptimalGain.attempt(recipe, data, conduct, on_step, LEAST_SHARE)?, OptimalGain.name())
            }
        };
        tell(&mut trained.certificate, name, &reason);
        Ok(trained)
    }
}

/// What an attempt of an algorithm came to: its name and the reason.
pub(super) fn came_to(
    attempt: (Trained, Option<Hopeless>),
    name: &'static str,
) -> (Trained, &'static str, String) {
    match attempt {
        (trained, Some(hopeless)) => (trained, "throw-away", hopeless.reason()),
        (trained, None) if trained.certificate.events.is_empty() => {
            (trained, "throw-away", "there are no private rows".into())
        }
        (trained, None) => (trained, name, "public rows are there, and the loss is smooth".into()),
    }
}

/// Writes into a certificate what was chosen, and why.
pub(super) fn tell(certificate: &mut Certificate, name: &str, reason: &str) {
    if let Some(rest) = certificate.mechanism.strip_prefix("train: ") {
        certificate.mechanism = format!("train: auto, {rest}");
    }
    certificate.hyperparameters.insert(0, entry("algorithm", json!(name), "theory"));
    certificate.hyperparameters.insert(1, entry("algorithm-because", json!(reason), "theory"));
}

/// Why semi-dp-sgd has to do it, if it has to.
fn plain_reason(recipe: &Recipe<'_>, public: Option<&PublicRows>) -> Option<&'static str> {
    let given = &recipe.given;
    let has_own_options = given.learning_rate.is_some()
        || given.alpha.is_some()
        || given.public_batch.is_some()
        || given.public_gradient.is_some()
        || given.average.is_some()
        || given.l2.is_some()
        || given.warm_start == Some(WarmStart::Cold);
    if public.is_none_or(PublicRows::is_empty) {
        Some("there are no public rows")
    } else if public.is_some_and(|rows| rows.len() < FEWEST_ROWS) {
        Some("public rows are too few to be a prior")
    } else if recipe.loss.smoothness().is_none() {
        Some("the loss has kinks")
    } else if has_own_options {
        Some("options of semi-dp-sgd are given")
    } else {
        None
    }
}
