//! Training where nobody is trusted with rows: each private person reports one randomised gradient, once, to whoever asks.
//!
//! *Adjacency*: replace-one, a person's row by any other. *Event*: one report, pure ε ([`semidp_accounting::local`]); everybody
//! makes one, so ε is what the whole run costs each of them, whoever listens. Models are made of reports and public rows.
//!
//! * [`SemiLdpSgd`]: the paper's Semi-LDP-SGD, with its constant step or better ones ([`schedule`]).
//! * [`LdpSgd`]: the same with public people treated as private: what one does without the paper.
//! * [`SemiLdpGain`]: public rows as a prior and reports as measurements of what they leave open.

mod gain;
pub mod schedule;
mod sgd;

pub use gain::{LocalAuto, SemiLdpGain};
pub use schedule::{Crowd, Pace, Schedule};
pub use sgd::{LocalSgd, Speed};

use super::algorithm::MIXING;
use super::recipe::{entry, source_of};
use super::{
    Algorithm, Conduct, Model, Progress, PublicRows, PublicUse, Recipe, ThrowAway, Trained, TrainingData,
    learned,
};
use crate::domain::{Ball, Domain};
use crate::{Error, Result};
use semidp_accounting::local::{LocalMechanism, default_randomizer};
use semidp_accounting::{Adjacency, Epsilon, PrivacyBudget, Provenance, Trust};
use semidp_core::{InMemory, Ledger, NoLimit, People, Randomizer, Sampling};
use serde_json::json;

/// The best model may be so many times as far from zero as the public one.
const FARTHER: f64 = 2.0;
/// Options of other ways to train.
const FOREIGN: [&str; 6] =
    ["sampling", "sample-rate", "expected-batch", "steps", "average", "hessian-regularisation"];

/// Public and private people in one random order, a step each.
pub struct SemiLdpSgd;

/// All people treated as private. Public rows still teach clip norm and reach.
pub struct LdpSgd;

impl Algorithm for SemiLdpSgd {
    fn name(&self) -> &'static str {
        "semi-ldp-sgd"
    }

    fn about(&self) -> &'static str {
        "local: a step along each person's gradient, randomised if private, by what it tells (Semi-LDP-SGD)"
    }

    fn trust(&self) -> Trust {
        Trust::Local
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Mixed
    }

    fn ignores(&self) -> Vec<&'static str> {
        FOREIGN.into_iter().chain(MIXING).chain(["warm-start"]).collect()
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let public = data.public.filter(|rows| !rows.is_empty());
        epsilon_of(recipe)?;
        let people = People::new(data.private.in_memory()?);
        let plan = Plan::new(recipe, people.width() - 1, public.as_ref())?;
        if people.is_empty() {
            return ThrowAway::fit(recipe, public.as_ref());
        }
        plan.run(self.name(), people, public.as_ref(), conduct, on_step)
    }
}

impl Algorithm for LdpSgd {
    fn name(&self) -> &'static str {
        "ldp-sgd"
    }

    fn about(&self) -> &'static str {
        "local: a step along each person's randomised gradient, with public people treated as private"
    }

    fn trust(&self) -> Trust {
        Trust::Local
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Joined
    }

    fn ignores(&self) -> Vec<&'static str> {
        SemiLdpSgd.ignores()
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let public = data.public.filter(|rows| !rows.is_empty());
        epsilon_of(recipe)?;
        let everyone = match &public {
            Some(public) => data.private.joined(public.clone())?.boxed(),
            None => data.private,
        };
        let people = People::new(everyone.in_memory()?);
        let plan = Plan::new(recipe, people.width() - 1, public.as_ref())?;
        if people.is_empty() {
            return ThrowAway::fit(recipe, None);
        }
        plan.run(self.name(), people, None, conduct, on_step)
    }
}

/// ε of a report, where the recipe allows reports. To be called before rows are counted: under add-remove a refusal that depends on
/// their number would reveal it.
fn epsilon_of(recipe: &Recipe<'_>) -> Result<Epsilon> {
    if recipe.adjacency != Adjacency::ReplaceOne {
        let requirement = "replace-one in the local model: everybody knows who reports";
        return Err(Error::invalid("adjacency", recipe.adjacency, requirement));
    }
    match recipe.budget {
        PrivacyBudget::Pure { epsilon } => Ok(epsilon),
        PrivacyBudget::Approximate { .. } => Err(Error::invalid(
            "delta",
            "a number",
            "left out in the local model: reports promise pure epsilon",
        )),
        _ => Err(Error::invalid("rho", "a number", "left out in the local model: give pure epsilon")),
    }
}

/// What to report with: what is given, or else the default randomiser, which is exact.
fn randomizer_of(recipe: &Recipe<'_>, dimension: usize) -> Result<Randomizer> {
    Ok(Randomizer::new(mechanism_of(recipe, dimension), dimension, epsilon_of(recipe)?, 1.0)?)
}

fn mechanism_of(recipe: &Recipe<'_>, dimension: usize) -> &'static LocalMechanism {
    recipe.given.randomizer.unwrap_or_else(|| default_randomizer(dimension))
}

/// The ledger of a run, which is asked once.
fn ledger_of(conduct: &mut Conduct<'_>) -> Box<dyn Ledger> {
    conduct.ledger.take().unwrap_or_else(|| Box::new(NoLimit))
}

/// A run with its hyper-parameters, and where they came from.
struct Plan<'a> {
    sgd: LocalSgd<'a>,
    provenance: Vec<Provenance>,
}

impl<'a> Plan<'a> {
    fn new(recipe: &Recipe<'a>, features: usize, public: Option<&PublicRows>) -> Result<Plan<'a>> {
        let given = &recipe.given;
        let mut start = recipe.zero(features);
        recipe.domain.project(&mut start.weights);
        let randomizer = randomizer_of(recipe, start.weights.len())?;
        let fit = public.map(|rows| (rows, recipe.public_fit(rows)));
        let clip_norm = match (given.clip_norm, &fit) {
            (Some(clip_norm), _) => clip_norm,
            (None, Some((rows, fit))) => learned::clip_norm(recipe.loss, rows, &fit.model)?,
            (None, None) => {
                let requirement = "given without public rows, which it would be learned from";
                return Err(Error::invalid("clip-norm", "nothing", requirement));
            }
        };
        let l2 = given.l2.unwrap_or(0.0);
        let schedule = given.schedule.unwrap_or(match l2 > 0.0 {
            true => Schedule::StronglyConvex,
            false => Schedule::Weighted,
        });
        let known = recipe.domain.reach(&start.weights);
        let (reach, reach_source) = if known.is_finite() {
            (Some(known), "user")
        } else if l2 > 0.0 {
            // Where λw balances gradients of length C at most.
            (Some(clip_norm / l2), "theory")
        } else if let Some((_, fit)) = &fit {
            (Some(FARTHER * distance(&fit.model, &start)), "public data")
        } else {
            (None, "nothing")
        };
        let speed = match (given.learning_rate, reach) {
            (Some(step), _) => Speed::Given(step),
            (None, Some(reach)) => Speed::Reach(reach, schedule),
            (None, None) => {
                let requirement =
                    "bounded, such as ball:RADIUS, unless public rows or --learning-rate are given";
                return Err(Error::invalid("domain", recipe.domain.name(), requirement));
            }
        };
        let domain: Box<dyn Domain + 'a> = match known.is_finite() || l2 == 0.0 {
            true => Box::new(recipe.domain),
            false => Box::new(Ball::new(clip_norm / l2)?),
        };
        let mechanism = randomizer.cap().mechanism;
        let mut provenance = vec![
            entry("randomizer", json!(mechanism), source_of(given.randomizer, "theory")),
            entry("clip-norm", json!(clip_norm), source_of(given.clip_norm, "public data")),
            entry("l2", json!(l2), source_of(given.l2, "default")),
        ];
        match speed {
            Speed::Given(step) => provenance.push(entry("learning-rate", json!(step), "user")),
            Speed::Reach(reach, schedule) => {
                provenance.push(entry(
                    "schedule",
                    json!(schedule.name()),
                    source_of(given.schedule, "theory"),
                ));
                provenance.push(entry("reach", json!(reach), reach_source));
            }
        }
        let sgd =
            LocalSgd { loss: recipe.loss, start, randomizer, clip_norm, speed, domain, l2, order_seed: 1 };
        Ok(Plan { sgd, provenance })
    }

    fn run(
        mut self,
        algorithm: &str,
        people: People<InMemory>,
        public: Option<&PublicRows>,
        mut conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let (private, volunteers) = (people.len() as u64, public.map_or(0, PublicRows::len) as u64);
        let steps = private + volunteers;
        let sampling = Sampling::OnePass { blocks: steps };
        let pace = self.sgd.pace(private, volunteers)?;
        if let Some(step) = pace.public_step().filter(|_| volunteers > 0) {
            self.provenance.push(entry("public-step", json!(step), "theory"));
        }
        if let Some(bound) = pace.bound() {
            let condition = "no gradient is longer than the clip norm, the best model is within reach, and all people come from \
                             one population";
            self.provenance.push(entry("excess-risk-bound", json!(bound), "theory"));
            self.provenance.push(entry("excess-risk-bound-if", json!(condition), "theory"));
        }
        let mut model = self.sgd.start.clone();
        on_step(Progress { step: 0, steps, sampling, is_streamed: false, model: &model });
        let people = people.recorded(conduct.record.take());
        let mut ledger = ledger_of(&mut conduct);
        let mut trained =
            self.sgd.train(people, public, conduct.randomness, &mut *ledger, &mut |step, w| {
                model.weights.copy_from_slice(w);
                on_step(Progress { step, steps, sampling, is_streamed: false, model: &model });
            })?;
        let certificate = &mut trained.certificate;
        certificate.mechanism = format!("train: {algorithm}, {}", certificate.mechanism);
        certificate.hyperparameters = self.provenance;
        Ok(trained)
    }
}

fn distance(a: &Model, b: &Model) -> f64 {
    a.weights.iter().zip(&b.weights).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
}
