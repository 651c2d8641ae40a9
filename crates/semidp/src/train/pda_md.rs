//! PDA-MD (Amid et al. 2022): private gradients alone, followed in the geometry of the public loss.

use super::algorithm::{MIXING, smooth_only};
use super::learned::{self, Geometry, Stepping};
use super::{
    Algorithm, Conduct, MirrorMap, Progress, PublicUse, Recipe, ThrowAway, Trained, TrainingData, WarmStart,
};
use crate::{Error, Result};
use serde_json::json;

/// The regularisation of the paper's experiments.
const REGULARISATION: f64 = 0.01;

/// Mirror descent with the public loss as mirror map. Public gradients are not used.
pub struct PdaMd;

impl Algorithm for PdaMd {
    fn name(&self) -> &'static str {
        "pda-md"
    }

    fn about(&self) -> &'static str {
        "mirror descent along private gradients, with the public loss as mirror map (Amid et al. 2022)"
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Mirror
    }

    fn ignores(&self) -> Vec<&'static str> {
        MIXING.to_vec()
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        mut conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        smooth_only(self.name(), recipe.loss)?;
        let public = data.public.filter(|rows| !rows.is_empty()).ok_or_else(|| {
            Error::invalid("public", "no rows", "given for pda-md, whose mirror map is the public loss")
        })?;
        let session = conduct.session(recipe, data.private)?;
        if session.units() == Some(0) {
            return ThrowAway::fit(recipe, Some(&public));
        }
        let mut planned = recipe.plan(Some(&public), &session, self.public_use())?;
        let given = &recipe.given;
        let regularisation = given.hessian_regularisation.unwrap_or(REGULARISATION);
        let map = MirrorMap::new(recipe.loss, &public, &planned.sgd.start, regularisation)?;
        let model = planned.fit.as_ref().map_or(&planned.sgd.start, |fit| &fit.model);
        let learning_rate = given.learning_rate.unwrap_or_else(|| {
            let precondition = |gradient: &mut [f64]| map.precondition(gradient);
            let trace = map.least_eigenvalue() * model.weights.len() as f64;
            let stepping = Stepping {
                clip_norm: planned.sgd.clip_norm,
                steps: planned.sgd.steps.get() as f64,
                l2: planned.sgd.l2,
                ridge: 0.0,
                is_cold: planned.warm_start == WarmStart::Cold,
                geometry: Some(Geometry { precondition: &precondition, trace }),
            };
            learned::step_size(recipe.loss, &public, model, &stepping)
        });
        let source = |is_given: bool, otherwise| if is_given { "user" } else { otherwise };
        planned.say(
            "learning-rate",
            json!(learning_rate),
            source(given.learning_rate.is_some(), "public data"),
        );
        planned.say(
            "hessian-regularisation",
            json!(regularisation),
            source(given.hessian_regularisation.is_some(), "default"),
        );
        planned.say("least-eigenvalue", json!(map.least_eigenvalue()), "public data");
        planned.sgd.update = Box::new(map.descent(learning_rate));
        planned.run(self.name(), &session, Some(&public), recipe, &conduct, on_step)
    }
}
