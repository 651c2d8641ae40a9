//! DP-SGD: what one does without the paper.
//!
//! In the form of De et al. (2022), whose learning rate does not depend on the clip norm:
//!
//! $$ w \leftarrow \Pi\Big(w - \frac{\text{lr}}{K}\Big[\sum_\text{batch}\frac{\mathrm{clip}_C(\nabla f)}{C} + z\xi\Big]\Big). $$
//!
//! That is a step of lr/C along the mean clipped gradient. A ridge λ keeps its meaning as a part of the loss: λw is
//! divided by C like every gradient.

use super::algorithm::MIXING;
use super::recipe::entry;
use super::{Algorithm, Conduct, Progress, PublicUse, Recipe, ThrowAway, Trained, TrainingData};
use crate::Result;
use serde_json::json;

/// All rows treated as private, from a cold start unless a warm one is asked for. Public rows still teach clip norm and
/// step size, which costs nothing and is more than DP-SGD usually gets.
pub struct DpSgd;

impl Algorithm for DpSgd {
    fn name(&self) -> &'static str {
        "dp-sgd"
    }

    fn about(&self) -> &'static str {
        "all rows treated as private; its learning rate is that of gradients over the clip norm (De et al. 2022)"
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Joined
    }

    fn ignores(&self) -> Vec<&'static str> {
        MIXING.into_iter().chain(["hessian-regularisation"]).collect()
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        mut conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let public = data.public.filter(|rows| !rows.is_empty());
        let rows = match &public {
            Some(public) => data.private.joined(public.clone())?.boxed(),
            None => data.private,
        };
        let session = conduct.session(recipe, rows)?;
        if session.units() == Some(0) {
            return ThrowAway::fit(recipe, None);
        }
        let mut planned = recipe.plan(public.as_ref(), &session, self.public_use())?;
        planned.provenance.push(entry(
            "learning-rate-unit",
            json!("of gradients over the clip norm, as in De et al. (2022)"),
            "theory",
        ));
        planned.run(self.name(), &session, public.as_ref(), recipe, &conduct, on_step)
    }
}
