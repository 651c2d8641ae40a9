//! Throw-away: public rows alone, at no cost.

use super::algorithm::{MIXING, NOISY};
use super::recipe::entry;
use super::{Algorithm, Conduct, PrivateUse, Progress, PublicRows, PublicUse, Recipe, Trained, TrainingData};
use crate::{Error, Result};
use semidp_accounting::{Arithmetic, RandomSource, Trust};
use semidp_core::{Certificate, Delta};
use serde_json::json;

/// No private row is looked at.
pub struct ThrowAway;

impl ThrowAway {
    /// The best model for public rows, with a certificate of ε = 0.
    pub(super) fn fit(recipe: &Recipe<'_>, public: Option<&PublicRows>) -> Result<Trained> {
        let public = public
            .filter(|rows| !rows.is_empty())
            .ok_or_else(|| Error::invalid("public", "no rows", "given, or there must be private rows"))?;
        let fit = recipe.public_fit(public);
        let mechanism = "train: throw-away, no private row was used";
        let (events, delta) = (Vec::new(), Delta::new(0.0)?);
        let mut certificate = Certificate::issue(events, recipe.adjacency, Trust::Central, delta, mechanism)?;
        certificate.arithmetic = Arithmetic::Exact;
        certificate.random_source = RandomSource::None;
        certificate.hyperparameters.push(entry("ridge", json!(fit.ridge), fit.ridge_source));
        Ok(Trained { model: fit.model, certificate, alpha: 0.0 })
    }
}

impl Algorithm for ThrowAway {
    fn name(&self) -> &'static str {
        "throw-away"
    }

    fn about(&self) -> &'static str {
        "public rows only, at no cost"
    }

    fn private_use(&self) -> PrivateUse {
        PrivateUse::Nothing
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Alone
    }

    fn ignores(&self) -> Vec<&'static str> {
        let noisy = NOISY.into_iter().chain(MIXING);
        noisy.chain(["hessian-regularisation", "warm-start none"]).collect()
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        _: Conduct<'_>,
        _: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        Self::fit(recipe, data.public.as_ref())
    }
}
