//! DP-SGD: what one does without the paper.

use super::{Algorithm, Conduct, Progress, Recipe, ThrowAway, Trained, TrainingData};
use crate::Result;

/// All rows treated as private, from a cold start. Public rows still teach clip norm and step size, which costs
/// nothing and is more than DP-SGD usually gets.
pub struct DpSgd;

impl Algorithm for DpSgd {
    fn name(&self) -> &'static str {
        "dp-sgd"
    }

    fn about(&self) -> &'static str {
        "all rows treated as private"
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let public = data.public.filter(|rows| !rows.is_empty());
        let rows = match &public {
            Some(public) => data.private.joined(public.clone())?.boxed(),
            None => data.private,
        };
        let session = conduct.session(recipe, rows)?;
        let rows = session.units().map(|rows| rows as u64);
        if rows == Some(0) {
            return ThrowAway::fit(recipe, None);
        }
        let is_streamed = session.is_streamed() == Some(true);
        let planned = recipe.plan(public.as_ref(), session.width() - 1, (rows, is_streamed), false)?;
        planned.run(self.name(), &session, None, recipe.budget.delta(), on_step)
    }
}
