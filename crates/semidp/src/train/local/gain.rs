//! Beyond the paper: the optimal gain where nobody is trusted. Public rows are a prior; the mean of many reports of clipped
//! gradients is a measurement of what they leave open, with noise of the same variance in every direction, just as a noisy sum is
//! in the central model. So the same filter takes it ([`crate::train::OptimalGain`]). People are asked in a few groups, each at the
//! model that the groups before led to.

use super::{FOREIGN, SemiLdpSgd, epsilon_of, ledger_of, randomizer_of};
use crate::loss::Door;
use crate::train::algorithm::{MIXING, smooth_only};
use crate::train::auto::{FEWEST_ROWS, LEAST_SHARE, came_to, tell};
use crate::train::batches::shuffle;
use crate::train::gain::{Gain, Hopeless, Measurements};
use crate::train::gradient::{Gradient, clip_norm_of_step};
use crate::train::recipe::{entry, source_of};
use crate::train::sgd::{LARGEST_WEIGHT, overflow_of_first_steps};
use crate::train::{
    Algorithm, Conduct, Progress, PublicRows, PublicUse, Recipe, ThrowAway, Trained, TrainingData,
};
use crate::{Error, Result};
use semidp_accounting::Trust;
use semidp_core::{InMemory, People, Sampling};
use serde_json::json;

/// Groups of people: enough to follow curvature that changes on the way.
const GROUPS: usize = 20;

/// Public rows as a prior, randomised gradients as measurements.
pub struct SemiLdpGain;

impl Algorithm for SemiLdpGain {
    fn name(&self) -> &'static str {
        "semi-ldp-gain"
    }

    fn about(&self) -> &'static str {
        "local: public rows as a prior and randomised gradients as measurements, at the best gain"
    }

    fn trust(&self) -> Trust {
        Trust::Local
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Prior
    }

    fn ignores(&self) -> Vec<&'static str> {
        let more = ["learning-rate", "l2", "schedule", "warm-start none"];
        FOREIGN.into_iter().chain(MIXING).chain(more).collect()
    }

    fn train(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        Ok(self.attempt(recipe, data, conduct, on_step, 0.0)?.0)
    }
}

impl SemiLdpGain {
    /// Trains, or returns the public model at no cost if reports would close less than such a share of what is open.
    fn attempt(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        mut conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
        least_share: f64,
    ) -> Result<(Trained, Option<Hopeless>)> {
        epsilon_of(recipe)?;
        smooth_only(self.name(), recipe.loss)?;
        let public = data.public.filter(|rows| !rows.is_empty()).ok_or_else(|| {
            Error::invalid("public", "no rows", "given for semi-ldp-gain, which begins with what they say")
        })?;
        let people = People::new(data.private.in_memory()?);
        let dimension = recipe.zero(people.width() - 1).weights.len();
        let randomizer = randomizer_of(recipe, dimension)?;
        if people.is_empty() {
            return Ok((ThrowAway::fit(recipe, Some(&public))?, None));
        }
        let groups = GROUPS.min(people.len());
        // A report's error has E‖·‖² = C²·square, evenly in all directions but the gradient's own, where it is less.
        let each = (randomizer.cap().mean_square() / dimension as f64).sqrt();
        let group = people.len() as f64 / groups as f64;
        let gain = Gain::learn(
            recipe,
            &public,
            Measurements {
                steps: groups as u64,
                relative_noise: each / group.sqrt(),
                rows: people.len() as f64,
                rate: 1.0 / groups as f64,
                one_pass: true,
            },
        );
        let share = gain.closed_share();
        if share < least_share {
            return Ok((ThrowAway::fit(recipe, Some(&public))?, Some(Hopeless { share })));
        }
        let mechanism = randomizer.cap().mechanism;
        let mut told = vec![
            entry("randomizer", json!(mechanism), source_of(recipe.given.randomizer, "theory")),
            entry("groups", json!(groups), "theory"),
        ];
        told.extend(gain.told(recipe, &public).into_iter().filter(|entry| {
            // Reckoned for one sum of everybody's, which nobody sees here.
            entry.name != "predicted-excess-dp-sgd"
        }));
        let run = Run { recipe, groups, name: self.name() };
        let mut trained = run.ask(gain, people, randomizer, &mut conduct, on_step)?;
        trained.certificate.hyperparameters.splice(0..0, told);
        Ok((trained, None))
    }
}

struct Run<'a> {
    recipe: &'a Recipe<'a>,
    groups: usize,
    name: &'static str,
}

impl Run<'_> {
    fn ask(
        &self,
        gain: Gain,
        people: People<InMemory>,
        randomizer: semidp_core::Randomizer,
        conduct: &mut Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Trained> {
        let (recipe, steps) = (self.recipe, self.groups as u64);
        let (mut model, first_clip_norm) = (gain.start(recipe), gain.first_clip_norm());
        let (rule, verdict) = gain.into_update();
        let sampling = Sampling::OnePass { blocks: steps };
        on_step(Progress { step: 0, steps, sampling, is_streamed: false, model: &model });
        // Before anybody is asked.
        let door = Door::Scores(recipe.loss);
        let first = rule.begin(&model.weights).clip_norm().unwrap_or(first_clip_norm);
        Gradient { door, model: &model, clip_norm: first }.check(people.width())?;
        let mut rehearsal = rule.begin(&model.weights);
        let typical = (randomizer.cap().mean_square() / model.weights.len() as f64).sqrt() * first;
        for step in 1..=rule.rehearsed_steps(steps, false) {
            rehearsal.advance(step, &vec![typical; model.weights.len()], recipe.domain);
            if !rehearsal.iterate().iter().all(|w| w.abs() < LARGEST_WEIGHT) {
                return Err(overflow_of_first_steps());
            }
        }
        let mut update = rule.begin(&model.weights);
        let people = people.recorded(conduct.record.take());
        let mut interview = people.interview(randomizer, conduct.randomness, &mut *ledger_of(conduct))?;
        let mut order: Vec<usize> = (0..interview.people()).collect();
        shuffle(&mut order, &mut 1);
        for (step, group) in (1..).zip(groups(&order, self.groups)) {
            update.query_into(step, &mut model.weights);
            let clip_norm = clip_norm_of_step(update.clip_norm(), first_clip_norm);
            let at = Gradient { door, model: &model, clip_norm };
            let question = at.of_scores(recipe.loss)?;
            let mut mean = vec![0.0; model.weights.len()];
            for &person in group {
                let report = interview.ask(person, &question)?;
                mean.iter_mut().zip(report).for_each(|(mean, x)| *mean += x / group.len() as f64);
            }
            update.advance(step, &mean, recipe.domain);
            model.weights.copy_from_slice(update.iterate());
            on_step(Progress { step, steps, sampling, is_streamed: false, model: &model });
        }
        let mut certificate = interview.finish();
        certificate.mechanism = format!("train: {}, {}", self.name, certificate.mechanism);
        certificate.hyperparameters.push(verdict.told());
        Ok(Trained { model, certificate, alpha: 1.0 })
    }
}

/// An order in so many parts, as equal as can be.
fn groups(order: &[usize], count: usize) -> impl Iterator<Item = &[usize]> {
    (0..count).map(move |i| &order[i * order.len() / count..(i + 1) * order.len() / count])
}

/// The autopilot where nobody is trusted: semi-ldp-gain if public rows are a prior and the loss is smooth, throw-away if reports would
/// tell too little, and semi-ldp-sgd otherwise.
pub struct LocalAuto;

impl Algorithm for LocalAuto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn about(&self) -> &'static str {
        "the autopilot of the local model"
    }

    fn trust(&self) -> Trust {
        Trust::Local
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Prior
    }

    fn ignores(&self) -> Vec<&'static str> {
        FOREIGN.into_iter().chain(MIXING).collect()
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
                (SemiLdpSgd.train(recipe, data, conduct, on_step)?, SemiLdpSgd.name(), reason.to_string())
            }
            None => {
                came_to(SemiLdpGain.attempt(recipe, data, conduct, on_step, LEAST_SHARE)?, SemiLdpGain.name())
            }
        };
        tell(&mut trained.certificate, name, &reason);
        Ok(trained)
    }
}

/// Why semi-ldp-sgd has to do it, if it has to.
fn plain_reason(recipe: &Recipe<'_>, public: Option<&PublicRows>) -> Option<&'static str> {
    let given = &recipe.given;
    if public.is_none_or(|rows| rows.len() < FEWEST_ROWS) {
        Some("public rows are too few to be a prior")
    } else if recipe.loss.smoothness().is_none() {
        Some("the loss has kinks")
    } else if given.learning_rate.is_some() || given.l2.is_some() || given.schedule.is_some() {
        Some("options of semi-ldp-sgd are given")
    } else {
        None
    }
}
