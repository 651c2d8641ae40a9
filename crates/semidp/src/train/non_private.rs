//! The best model for all rows, in the open: what a private one is compared with. Nothing is promised.

use super::algorithm::{MIXING, NOISY};
use super::recipe::entry;
use super::{
    Algorithm, Conduct, PrivateUse, Progress, PublicRows, PublicUse, Recipe, Trained, TrainingData, minimise,
};
use crate::{Error, Result};
use semidp_accounting::Trust;
use semidp_core::{Certificate, Delta, Public, Session};
use serde_json::json;

const REASON: &str = "a non-private reference model was trained on the rows as they are";

/// No noise, no clipping, no guarantee.
pub struct NonPrivate;

impl Algorithm for NonPrivate {
    fn name(&self) -> &'static str {
        "non-private"
    }

    fn about(&self) -> &'static str {
        "NOT private: the best model for all rows, for comparisons only"
    }

    fn private_use(&self) -> PrivateUse {
        PrivateUse::Opened
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Joined
    }

    fn ignores(&self) -> Vec<&'static str> {
        let noisy = NOISY.into_iter().chain(MIXING);
        noisy.chain(["hessian-regularisation", "warm-start", "seed", "threads"]).collect()
    }

    /// The kernel warns on standard error that the rows were opened; the budget of the recipe is not looked at.
    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        _: Conduct<'_>,
        _: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let rows = match data.public.filter(|rows| !rows.is_empty()) {
            Some(public) => data.private.joined(public)?.boxed(),
            None => data.private,
        };
        let opened = Session::new(rows, recipe.adjacency)?.into_declassified(REASON);
        let rows = PublicRows::load(&Public(opened))?;
        if rows.is_empty() {
            return Err(Error::invalid("private", "no rows", "given, or there must be public rows"));
        }
        let ridge = recipe.given.l2.unwrap_or(0.0);
        let shape = recipe.zero(rows.features());
        let mut weights = minimise(recipe.loss, &rows, &shape, ridge);
        recipe.domain.project(&mut weights);
        let mechanism = "train: non-private, the rows were used as they are and nothing is promised";
        let (events, delta) = (Vec::new(), Delta::new(0.0)?);
        let mut certificate = Certificate::issue(events, recipe.adjacency, Trust::Central, delta, mechanism)?;
        certificate.declassify(REASON);
        let source = if recipe.given.l2.is_some() { "user" } else { "default" };
        certificate.hyperparameters.push(entry("l2", json!(ridge), source));
        Ok(Trained { model: shape.with_weights(weights), certificate, alpha: 1.0 })
    }
}
