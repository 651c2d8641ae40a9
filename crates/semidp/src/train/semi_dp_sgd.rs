//! Algorithm 1 of the paper with every hyper-parameter chosen.

use super::recipe::entry;
use super::{Algorithm, Alpha, Conduct, Progress, Recipe, ThrowAway, Trained, TrainingData};
use crate::Result;
use serde_json::json;

/// Public and private gradients, each weighted by what it tells.
pub struct SemiDpSgd;

impl Algorithm for SemiDpSgd {
    fn name(&self) -> &'static str {
        "semi-dp-sgd"
    }

    fn about(&self) -> &'static str {
        "public and private gradients, each weighted by what it tells (Algorithm 1)"
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let public = data.public.filter(|rows| !rows.is_empty());
        let session = conduct.session(recipe, data.private)?;
        let rows = session.units().map(|rows| rows as u64);
        if rows == Some(0) {
            // Known to be none: nothing to add, and nothing to pay.
            return ThrowAway::fit(recipe, public.as_ref());
        }
        let is_streamed = session.is_streamed() == Some(true);
        let planned = recipe.plan(public.as_ref(), session.width() - 1, (rows, is_streamed), true)?;
        let rule_name = planned.sgd.alpha.name();
        let mut trained =
            planned.run(self.name(), &session, public.as_ref(), recipe.budget.delta(), on_step)?;
        if public.is_some() {
            let (source, rule) = match recipe.given.alpha {
                Some(Alpha::Given(_)) => ("user", "user"),
                Some(_) => ("public data", "user"),
                None => ("public data", "theory"),
            };
            let entries = &mut trained.certificate.hyperparameters;
            entries.push(entry("alpha", json!(trained.alpha), source));
            entries.push(entry("alpha-rule", json!(rule_name), rule));
        }
        Ok(trained)
    }
}
