//! Optimal-gain training: public rows enter once, as a prior; private gradients are noisy measurements; every step takes the
//! gain that is best for what is known by then.
//!
//! * `geometry`: directions in which public rows tell curvature apart.
//! * `knowledge`: the public posterior.
//! * `lengths`: how long gradients are, and what clipping does to them.
//! * `filter`: the iterate.
//!
//! Only the clipped and noised sums touch private rows, as in every algorithm; clip norms follow public rows and released
//! gradients. Every row takes part in every step unless batches are asked for: for one budget the noise averaged over a run is
//! least without sampling.

mod filter;
mod geometry;
mod knowledge;
mod lengths;

use super::algorithm::{MIXING, smooth_only};
use super::recipe::entry;
use super::{
    Algorithm, Average, Batches, Conduct, Given, Model, Progress, PublicRows, PublicUse, Recipe, ThrowAway,
    Trained, TrainingData, UpdateRule, WarmStart,
};
use crate::mean::SAME_POPULATION;
use crate::{Error, Result};
use filter::Filter;
use knowledge::{Knowledge, Scale};
use lengths::Clip;
use semidp_accounting::Provenance;
use semidp_core::{Adjacency, SampleRate, Sampling, Steps};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps in which every row takes part.
const FULL_STEPS: u64 = 100;

/// By how much so many steps can lessen what is open, whatever the curvatures,
const TOLD_BY_FULL_STEPS: f64 = 20.0;
/// and where these change on the way.
const TOLD_BY_CURVED_STEPS: f64 = 10.0;
/// At most, over [`FULL_STEPS`].
const MOST_STEPS: f64 = 8.0;
/// Numbers of private rows that a run looks at, if it takes more than the least number of steps.
const MOST_NUMBERS: f64 = 2e10;

/// A forecast holds near the public model if the loss is no parabola: private rows that would close a smaller share than this of
/// what public rows leave open are as likely to cost as to gain, in the order of rows above all,
const LEAST_CURVED_SHARE: f64 = 0.05;
/// unless they alone would leave no more than so many times as much. Then they have a say if public rows mislead.
const COMPARABLE: f64 = 2.0;

/// Public rows as a prior, private gradients as measurements.
pub struct OptimalGain;

impl Algorithm for OptimalGain {
    fn name(&self) -> &'static str {
        "optimal-gain"
    }

    fn about(&self) -> &'static str {
        "public rows as a prior and private gradients as measurements of what they leave open, at the best gain"
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Prior
    }

    fn ignores(&self) -> Vec<&'static str> {
        let more = ["learning-rate", "average", "l2", "hessian-regularisation", "warm-start none"];
        MIXING.into_iter().chain(more).collect()
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

/// Why private rows were left alone.
pub(super) struct Hopeless {
    /// The share of what is open that they would close at best.
    pub(super) share: f64,
}

impl Hopeless {
    /// In words.
    pub(super) fn reason(&self) -> String {
        format!(
            "at this budget private rows would close {:.1}% of what is open, so none was used",
            100.0 * self.share.max(0.0)
        )
    }
}

impl OptimalGain {
    /// Trains, or returns the public model at no cost if private rows would close less than such a share of what is open, or, of a
    /// curved loss, too little of what public rows leave open. With a share of nought it always trains.
    pub(super) fn attempt(
        &self,
        recipe: &Recipe<'_>,
        data: TrainingData,
        mut conduct: Conduct<'_>,
        on_step: &mut dyn FnMut(Progress<'_>),
        least_share: f64,
    ) -> Result<(Trained, Option<Hopeless>)> {
        smooth_only(self.name(), recipe.loss)?;
        let public = data.public.filter(|rows| !rows.is_empty()).ok_or_else(|| {
            Error::invalid("public", "no rows", "given for optimal-gain, which begins with what they say")
        })?;
        let session = conduct.session(recipe, data.private)?;
        if session.units() == Some(0) {
            return Ok((ThrowAway::fit(recipe, Some(&public))?, None));
        }
        let is_streamed = session.is_streamed() == Some(true);
        // Nothing is held back here but by what public rows say.
        let recipe = &Recipe { given: Given { l2: None, ..recipe.given.clone() }, ..*recipe };
        let inner = Recipe { given: given(recipe, is_streamed)?, ..*recipe };
        // Refused before anything is learned, if it must be.
        let mut planned = inner.plan(None, &session, self.public_use())?;
        let mut gain = Gain::learn(recipe, &public, Measurements::of(&planned.sgd));
        if recipe.given.steps.is_none() && planned.sgd.sampling == Sampling::Everyone {
            // The noise of the whole run is the same for any number of steps.
            let more = Given { steps: Some(Steps::new(gain.full_steps())?), ..inner.given.clone() };
            planned = Recipe { given: more, ..inner }.plan(None, &session, self.public_use())?;
            gain = Gain::new(recipe, gain.filter.knowledge, Measurements::of(&planned.sgd));
        }
        if let Some(hopeless) = gain.hopeless(least_share) {
            return Ok((ThrowAway::fit(recipe, Some(&public))?, Some(hopeless)));
        }
        planned.sgd.clip_norm = gain.first_clip_norm();
        planned.sgd.start = gain.start(recipe);
        planned.warm_start = WarmStart::Ridge;
        ["learning-rate", "average", "l2"].iter().for_each(|name| planned.unsay(name));
        planned.say("warm-start", json!(WarmStart::Ridge.name()), "theory");
        planned.unsay("clip-norm");
        if recipe.given.batches.is_none() {
            planned.say("sampling", json!(planned.sgd.sampling.name()), "theory");
        }
        if recipe.given.steps.is_none() {
            planned.say("steps", json!(planned.sgd.steps.get()), "theory");
        }
        let sized = recipe.given.expected_batch.filter(|batch| *batch == planned.sgd.batch);
        let source = if sized.is_some() { "user" } else { "theory" };
        planned.say("expected-batch", json!(planned.sgd.batch), source);
        planned.provenance.extend(gain.told(recipe, &public));
        let (update, verdict) = gain.into_update();
        planned.sgd.update = update;
        let mut trained = planned.run(self.name(), &session, Some(&public), recipe, &conduct, on_step)?;
        trained.certificate.hyperparameters.push(verdict.told());
        Ok((trained, None))
    }
}

/// What is given, and what is always so here. Full batches unless others are asked for: under add-remove, where a sample rate
/// must be given, it only says how many rows to reckon with.
fn given(recipe: &Recipe<'_>, is_streamed: bool) -> Result<Given> {
    let mut given = Given {
        clip_norm: Some(1.0),
        learning_rate: Some(1.0),
        average: Some(Average::Last),
        l2: None,
        ..recipe.given.clone()
    };
    let is_secret = recipe.adjacency == Adjacency::AddRemove;
    let is_sized = !is_secret && (given.sample_rate.is_some() || given.expected_batch.is_some());
    if given.batches.is_some() || is_sized || is_streamed {
        return Ok(given);
    }
    if let (true, Some(rate), Some(batch)) = (is_secret, given.sample_rate, given.expected_batch) {
        given.sample_rate = Some(SampleRate::new(1.0)?);
        given.expected_batch = Some(batch / rate.get());
    }
    given.batches = Some(Batches::Everyone);
    given.steps = Some(given.steps.map_or_else(|| Steps::new(FULL_STEPS), Ok)?);
    Ok(given)
}

/// What private gradients will be like.
#[derive(Clone, Copy)]
pub(super) struct Measurements {
    /// How many.
    pub(super) steps: u64,
    /// The standard deviation of the noise in each coordinate of one, over the clip norm.
    pub(super) relative_noise: f64,
    /// Private rows, as far as is known,
    pub(super) rows: f64,
    /// the share of them in one measurement,
    pub(super) rate: f64,
    /// and whether every row is in one only.
    pub(super) one_pass: bool,
}

impl Measurements {
    fn of(sgd: &super::Sgd<'_>) -> Self {
        let (rate, one_pass) = match sgd.sampling {
            Sampling::OnePass { blocks } | Sampling::InOrder { blocks } => (1.0 / blocks as f64, true),
            _ => ((sgd.batch / sgd.private_rows).min(1.0), false),
        };
        Self {
            steps: sgd.steps.get(),
            relative_noise: sgd.noise_multiplier.get() / sgd.batch,
            rows: sgd.private_rows,
            rate,
            one_pass,
        }
    }
}

/// The hyper-parameter that says whether private gradients contradicted public rows.
pub const PUBLIC_DATA: &str = "public-data";
/// Its value begins with this if they did.
pub const DOUBTED: &str = "doubted";

/// Whether private gradients contradicted public rows.
pub(super) struct Verdict(Arc<AtomicBool>);

impl Verdict {
    pub(super) fn told(&self) -> Provenance {
        let verdict = match self.0.load(Ordering::Relaxed) {
            true => "doubted: private gradients contradict it beyond chance",
            false => "trusted",
        };
        entry(PUBLIC_DATA, json!(verdict), "released gradients")
    }
}

/// A filter for a run, and what it promises.
pub(super) struct Gain {
    filter: Filter,
}

impl Gain {
    /// With what public rows teach.
    pub(super) fn learn(recipe: &Recipe<'_>, public: &PublicRows, measurements: Measurements) -> Self {
        Self::new(recipe, Knowledge::learn(recipe, public), measurements)
    }

    fn new(recipe: &Recipe<'_>, knowledge: Knowledge, measurements: Measurements) -> Self {
        let Measurements { steps, relative_noise, rows, rate, one_pass } = measurements;
        let (follows, clip) = match recipe.given.clip_norm {
            Some(norm) => (false, knowledge.lengths.clip(norm / knowledge.first_scale)),
            None => {
                // What is left open at the end, when residuals are not much more than noise.
                let square = match knowledge.scale {
                    Scale::Fixed => 1.0,
                    Scale::Predicted { noise } => noise,
                    Scale::Held(_) => 1e-3 * knowledge.first_scale.powi(2),
                };
                // Summed over directions, for variances before the run.
                let open = |clip: Clip, variances: &[f64], bias: &[f64]| {
                    let noise = (relative_noise * clip.length / clip.slope).powi(2) / steps as f64;
                    let sampling = clip.inflation * knowledge.dispersion / rows;
                    let bias = bias.iter().copied().chain(std::iter::repeat(0.0));
                    let parts = knowledge.curvatures.iter().zip(variances).zip(bias).map(|((h, p), bias)| {
                        let v = square * (noise + sampling * h);
                        let followed = p * h * h / (p * h * h + v);
                        // The estimate goes that share of the way to where clipped gradients vanish.
                        let moved = square * bias * (followed / (h * clip.slope)).powi(2);
                        p * v / (p * h * h + v) + moved
                    });
                    knowledge.excess(&parts.collect::<Vec<_>>())
                };
                let anew = vec![knowledge.size(); knowledge.curvatures.len()];
                let cheap = |clip: Clip| open(clip, &knowledge.variances, &[]);
                // Whether public rows can be believed is not known yet.
                let kind = |clip: Clip, bias: &[f64]| {
                    open(clip, &knowledge.variances, bias) + open(clip, &anew, bias)
                };
                (!matches!(knowledge.scale, Scale::Fixed), knowledge.lengths.best(cheap, kind))
            }
        };
        let mut filter = Filter {
            knowledge,
            clip,
            follows,
            relative_noise,
            rows,
            rate,
            one_pass,
            steps,
            recency: 0.0,
            doubted: Arc::new(AtomicBool::new(false)),
        };
        if matches!(filter.knowledge.scale, Scale::Fixed) {
            // Curvature changes on the way, and matters more the more of the way is to be found.
            let before = filter.knowledge.excess(&filter.knowledge.variances);
            let left = filter.knowledge.excess(&filter.forecast());
            filter.recency = (before / left.max(f64::MIN_POSITIVE)).log10().clamp(0.0, 2.0);
        }
        Self { filter }
    }

    /// Steps in which every row takes part: the more the budget can tell, the more it takes to get there if curvatures are
    /// not as public rows have them; as far as that is affordable.
    fn full_steps(&self) -> u64 {
        let (before, left) = self.starting_anew(0.0);
        let told = before / left.max(f64::MIN_POSITIVE);
        let by_full_steps = match self.filter.knowledge.scale {
            Scale::Fixed => TOLD_BY_CURVED_STEPS,
            _ => TOLD_BY_FULL_STEPS,
        };
        let numbers = self.filter.rows * self.filter.knowledge.model.weights.len() as f64;
        let affordable = (MOST_NUMBERS / numbers / FULL_STEPS as f64).max(1.0);
        (FULL_STEPS as f64 * (told / by_full_steps).min(affordable).clamp(1.0, MOST_STEPS)) as u64
    }

    /// The public model.
    pub(super) fn start(&self, recipe: &Recipe<'_>) -> Model {
        let mut start = self.filter.knowledge.model.clone();
        recipe.domain.project(&mut start.weights);
        start
    }

    /// What moves iterates, and what will be known of public rows at the end.
    pub(super) fn into_update(self) -> (Box<dyn UpdateRule>, Verdict) {
        let verdict = Verdict(self.filter.doubted.clone());
        (Box::new(self.filter), verdict)
    }

    pub(super) fn first_clip_norm(&self) -> f64 {
        self.filter.clip.length * self.filter.knowledge.first_scale
    }

    /// The share of what is open that private rows are expected to close: of what public rows leave open if they are what
    /// they claim to be, or of everything if they are not.
    pub(super) fn closed_share(&self) -> f64 {
        let knowledge = &self.filter.knowledge;
        if matches!(knowledge.scale, Scale::Held(_)) {
            // Too few public rows to tell what is open.
            return 1.0;
        }
        let (before, left) = self.starting_anew(0.0);
        self.trusting_share().max(1.0 - left / before.max(f64::MIN_POSITIVE))
    }

    /// Of what public rows leave open, if they are what they claim to be.
    fn trusting_share(&self) -> f64 {
        let knowledge = &self.filter.knowledge;
        let before = knowledge.excess(&knowledge.variances);
        1.0 - knowledge.excess(&self.filter.forecast()) / before.max(f64::MIN_POSITIVE)
    }

    /// Why private rows are to be left alone, if they are.
    fn hopeless(&self, least_share: f64) -> Option<Hopeless> {
        if least_share == 0.0 {
            return None;
        }
        let closed = self.closed_share();
        if closed < least_share {
            return Some(Hopeless { share: closed });
        }
        let knowledge = &self.filter.knowledge;
        let alone = self.starting_anew(0.0).1;
        let is_curved = matches!(knowledge.scale, Scale::Fixed);
        if !is_curved || alone <= COMPARABLE * knowledge.excess(&knowledge.variances) {
            return None;
        }
        Some(Hopeless { share: self.trusting_share() }).filter(|found| found.share < LEAST_CURVED_SHARE)
    }

    /// What is open before and after the run if so many public rows join the private ones and nothing else is known of the
    /// model than its size.
    fn starting_anew(&self, joined: f64) -> (f64, f64) {
        let (filter, knowledge) = (&self.filter, &self.filter.knowledge);
        let size = knowledge.size();
        let fewer = filter.rows / (filter.rows + joined);
        let left = knowledge.curvatures.iter().map(|h| {
            let v = filter.last_variance(*h, fewer);
            size * v / (size * h * h + v)
        });
        let before = vec![size; knowledge.curvatures.len()];
        (knowledge.excess(&before), knowledge.excess(&left.collect::<Vec<_>>()))
    }

    /// Choices and forecasts for the certificate.
    pub(super) fn told(&self, recipe: &Recipe<'_>, public: &PublicRows) -> Vec<Provenance> {
        let knowledge = &self.filter.knowledge;
        let source = if recipe.given.clip_norm.is_some() { "user" } else { "public data" };
        let left = knowledge.excess(&self.filter.forecast());
        let before = knowledge.excess(&knowledge.variances);
        let mut told = vec![
            entry("clip-norm", json!(self.first_clip_norm()), source),
            entry("ridge", json!(knowledge.ridge), knowledge.ridge_source),
            entry("public-rows", json!(public.len()), "public data"),
            entry("predicted-excess", json!(left), "public data"),
            entry("predicted-excess-assumes", json!(SAME_POPULATION), "theory"),
            entry("predicted-excess-throw-away", json!(before), "public data"),
            entry("predicted-excess-dp-sgd", json!(self.starting_anew(public.len() as f64).1), "public data"),
        ];
        if self.filter.follows {
            told.push(entry("clip-norm-follows", json!("the scale of residuals"), "theory"));
        }
        if let Scale::Predicted { noise } = knowledge.scale {
            told.push(entry("predicted-squared-error", json!(noise + left), "public data"));
        }
        told
    }
}
