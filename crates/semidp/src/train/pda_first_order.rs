//! The first-order form of PDA-MD (Amid et al. 2022): Algorithm 1 whose weight follows the clock instead of variances.
//!
//! The weight of the private gradient is α_t = cos(πt/(2K')) at step t = 0, 1, ...: it falls from 1 to 0, which it
//! reaches at step K', the number of steps unless it is given. So private gradients lead first and public ones polish.

use super::semi_dp_sgd::Mixed;
use super::{Algorithm, Alpha, Conduct, Progress, PublicUse, Recipe, ThrowAway, Trained, TrainingData};
use crate::{Error, Result};

/// Public and private gradients, the private ones with a weight that falls from 1 to 0.
pub struct PdaFirstOrder;

impl Algorithm for PdaFirstOrder {
    fn name(&self) -> &'static str {
        "pda-first-order"
    }

    fn about(&self) -> &'static str {
        "Algorithm 1 with a weight of private gradients that falls from 1 to 0 like a cosine (Amid et al. 2022)"
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
        let alpha = match recipe.given.alpha {
            None => Alpha::Cosine { horizon: None },
            Some(alpha @ Alpha::Cosine { .. }) => alpha,
            Some(other) => {
                let requirement = "cosine or cosine:K for pda-first-order; semi-dp-sgd takes any other";
                return Err(Error::invalid("alpha", other.name(), requirement));
            }
        };
        let public = data.public.filter(|rows| !rows.is_empty()).ok_or_else(|| {
            Error::invalid("public", "no rows", "given for pda-first-order, which ends on public gradients")
        })?;
        let session = conduct.session(recipe, data.private)?;
        if session.units() == Some(0) {
            return ThrowAway::fit(recipe, Some(&public));
        }
        let mut planned = recipe.plan(Some(&public), &session, self.public_use())?;
        planned.sgd.alpha = alpha;
        let mixed = Mixed::of(recipe, &planned);
        let trained = planned.run(self.name(), &session, Some(&public), recipe, &conduct, on_step)?;
        Ok(mixed.told(trained))
    }
}
