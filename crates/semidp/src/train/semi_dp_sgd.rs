//! Algorithm 1 of the paper with every hyper-parameter chosen.

use super::recipe::entry;
use super::{
    Algorithm, Alpha, Conduct, Planned, Progress, PublicUse, Recipe, ThrowAway, Trained, TrainingData,
};
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

    fn public_use(&self) -> PublicUse {
        PublicUse::Mixed
    }

    fn ignores(&self) -> Vec<&'static str> {
        vec!["hessian-regularisation"]
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        mut conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let public = data.public.filter(|rows| !rows.is_empty());
        let session = conduct.session(recipe, data.private)?;
        if session.units() == Some(0) {
            // Known to be none: nothing to add, and nothing to pay.
            return ThrowAway::fit(recipe, public.as_ref());
        }
        let planned = recipe.plan(public.as_ref(), &session, self.public_use())?;
        let mixed = Mixed::of(recipe, &planned);
        let trained = planned.run(self.name(), &session, public.as_ref(), recipe, &conduct, on_step)?;
        Ok(if public.is_some() { mixed.told(trained) } else { trained })
    }
}

/// Where the weight of private gradients came from.
pub(super) struct Mixed {
    rule: &'static str,
    rule_source: &'static str,
    source: &'static str,
}

impl Mixed {
    pub(super) fn of(recipe: &Recipe<'_>, planned: &Planned<'_>) -> Self {
        let (source, rule_source) = match (recipe.given.alpha, planned.sgd.alpha) {
            (Some(Alpha::Given(_) | Alpha::Cosine { .. }), _) => ("user", "user"),
            (Some(_), _) => ("public data", "user"),
            (None, Alpha::Cosine { .. }) => ("theory", "theory"),
            (None, _) => ("public data", "theory"),
        };
        Self { rule: planned.sgd.alpha.name(), rule_source, source }
    }

    /// Adds what became of it to the certificate.
    pub(super) fn told(self, mut trained: Trained) -> Trained {
        let entries = &mut trained.certificate.hyperparameters;
        entries.push(entry("alpha", json!(trained.alpha), self.source));
        entries.push(entry("alpha-rule", json!(self.rule), self.rule_source));
        trained
    }
}
