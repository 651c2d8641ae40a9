//! Algorithm 1 with acceleration: the mixed gradient of a step in AC-SA of Ghadimi and Lan (2012).
//!
//! With α_t = 2/(t + 1) and γ_t = 4γ/(t(t + 1)) at step t = 1, 2, ..., and G the gradient at the point md:
//!
//! $$ \text{md} = \frac{(1-\alpha_t)(\mu+\gamma_t)\,\text{ag} + \alpha_t((1-\alpha_t)\mu+\gamma_t)\,x}
//!    {\gamma_t+(1-\alpha_t^2)\mu}, \qquad
//!    x \leftarrow \Pi\,\frac{\alpha_t\mu\,\text{md} + ((1-\alpha_t)\mu+\gamma_t)\,x - \alpha_t G}{\mu+\gamma_t}, $$
//! $$ \text{ag} \leftarrow \alpha_t x + (1-\alpha_t)\,\text{ag}. $$
//!
//! The model is ag. What the schedule needs is learned from public rows at no cost:
//!
//! | what | from |
//! |---|---|
//! | β, smoothness | the largest public curvature at the start and at the public minimiser, a quarter more because power iteration comes from below, plus the ridges |
//! | σ², variance of a step's gradient | α²·(V²/K + dσ_v²) + (1 − α)²·V²/K_pub for the α that is used and the variance V² of public gradients at the start; at the best α for a step it is v_pub·v_priv/(v_pub + v_priv) |
//! | V₀ ≥ ½‖w₀ − w*‖² | e² from a warm start and ½‖w_pub‖² + e² from zero, with e² = ¼‖w_a − w_b‖² |
//! | μ, strong convexity | λ where it is given, else 0 |
//!
//! e² estimates how far the public minimiser is from the truth: w_a and w_b minimise the loss on the two halves of the
//! public rows, each has twice the variance of the minimiser on all of them, and their difference four times. It enters
//! twice as large as theory asks, because one split tells a length within such a factor, and what the ridge hides is not
//! in it.

use super::algorithm::smooth_only;
use super::gradient::Gradient;
use super::minimise::minimise_to;
use super::semi_dp_sgd::Mixed;
use super::{
    Algorithm, Average, Conduct, Model, Planned, Progress, PublicRows, PublicUse, Recipe, ThrowAway, Trained,
    TrainingData, Update, UpdateRule, WarmStart, curvature,
};
use crate::domain::Domain;
use crate::{Error, Result};
use serde_json::json;

/// Power iteration comes from below.
const ALLOWANCE: f64 = 1.25;
/// Rows that the variance of public gradients is taken over.
const MOST_ROWS: usize = 2000;
/// Models of half the public rows are compared, not kept.
const ACCURACY: f64 = 1e-4;

/// The schedule of AC-SA.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Acceleration {
    /// μ; 0 for losses that are only convex.
    pub strong_convexity: f64,
    /// γ.
    pub gamma: f64,
}

impl Acceleration {
    /// For a β-smooth convex loss, gradients of variance σ² and a start with ½‖w₀ − w*‖² ≤ V₀:
    /// γ = max{2β, √(σ²T(T+1)(T+2)/(3V₀))}.
    pub fn convex(smoothness: f64, variance: f64, distance: f64, steps: u64) -> Self {
        let t = steps as f64;
        let noisy = (variance * t * (t + 1.0) * (t + 2.0) / (3.0 * distance)).sqrt();
        Self { strong_convexity: 0.0, gamma: noisy.max(2.0 * smoothness) }
    }

    /// For a β-smooth loss of strong convexity μ, in one stage: γ = β.
    pub fn strongly_convex(smoothness: f64, strong_convexity: f64) -> Self {
        Self { strong_convexity, gamma: smoothness }
    }

    /// α_t and γ_t.
    fn weights(&self, step: u64) -> (f64, f64) {
        let t = step as f64;
        (2.0 / (t + 1.0), 4.0 * self.gamma / (t * (t + 1.0)))
    }

    /// The weights of ag and x in md.
    fn middle(&self, step: u64) -> (f64, f64) {
        let (mu, (alpha, gamma)) = (self.strong_convexity, self.weights(step));
        let whole = gamma + (1.0 - alpha * alpha) * mu;
        ((1.0 - alpha) * (mu + gamma) / whole, alpha * ((1.0 - alpha) * mu + gamma) / whole)
    }
}

impl UpdateRule for Acceleration {
    fn check(&self) -> Result<()> {
        if !(self.gamma > 0.0 && self.gamma.is_finite()) {
            return Err(Error::invalid("gamma", self.gamma, "a finite number > 0"));
        }
        if !(self.strong_convexity >= 0.0 && self.strong_convexity.is_finite()) {
            return Err(Error::invalid("strong-convexity", self.strong_convexity, "a finite number >= 0"));
        }
        Ok(())
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    /// A flat loss keeps the noise of step t with a weight of about t(1 − t²/T²), which is as good as a mean of 0.82·T.
    fn averaged_steps(&self, steps: f64) -> Option<f64> {
        Some((0.82 * steps).max(1.0))
    }

    fn rehearsed_steps(&self, steps: u64, grows: bool) -> u64 {
        if grows { steps } else { steps.min(1) }
    }

    fn begin(&self, start: &[f64]) -> Box<dyn Update + '_> {
        Box::new(Accelerating { rule: *self, x: start.to_vec(), ag: start.to_vec() })
    }
}

/// x and ag on their way.
struct Accelerating {
    rule: Acceleration,
    x: Vec<f64>,
    ag: Vec<f64>,
}

impl Update for Accelerating {
    fn query_into(&self, step: u64, point: &mut [f64]) {
        let (of_ag, of_x) = self.rule.middle(step);
        for ((point, ag), x) in point.iter_mut().zip(&self.ag).zip(&self.x) {
            *point = of_ag * ag + of_x * x;
        }
    }

    fn advance(&mut self, step: u64, gradient: &[f64], domain: &dyn Domain) {
        let (of_ag, of_x) = self.rule.middle(step);
        let (mu, (alpha, gamma)) = (self.rule.strong_convexity, self.rule.weights(step));
        for ((x, ag), g) in self.x.iter_mut().zip(&self.ag).zip(gradient) {
            let middle = of_ag * ag + of_x * *x;
            *x = (alpha * mu * middle + ((1.0 - alpha) * mu + gamma) * *x - alpha * g) / (mu + gamma);
        }
        domain.project(&mut self.x);
        self.ag.iter_mut().zip(&self.x).for_each(|(ag, x)| *ag = alpha * x + (1.0 - alpha) * *ag);
    }

    fn iterate(&self) -> &[f64] {
        &self.ag
    }

    fn state(&self) -> Vec<&[f64]> {
        vec![&self.x, &self.ag]
    }

    fn restore(&mut self, state: &[Vec<f64>]) {
        self.x.copy_from_slice(&state[0]);
        self.ag.copy_from_slice(&state[1]);
    }
}

/// What public rows say about the schedule.
struct Learned {
    /// β.
    smoothness: f64,
    /// σ².
    variance: f64,
    /// V₀.
    distance: f64,
}

impl Learned {
    fn of(recipe: &Recipe<'_>, planned: &Planned<'_>, public: &PublicRows) -> Result<Self> {
        let (sgd, loss) = (&planned.sgd, recipe.loss);
        let fit = planned.fit.as_ref();
        let minimiser = fit.map_or(&sgd.start, |fit| &fit.model);
        let steepest = |model: &Model| curvature(loss, model, public, sgd.clip_norm).largest;
        let curved = steepest(&sgd.start).max(steepest(minimiser));
        let step = public.len().div_ceil(MOST_ROWS).max(1);
        let some: Vec<usize> = (0..public.len()).step_by(step).collect();
        let at = Gradient { door: loss.door(), model: &sgd.start, clip_norm: sgd.clip_norm };
        let row = at.public_batch(public, &some, sgd.public_gradient).variance;
        let known = sgd.variances_with(sgd.public_batch, public.len(), row);
        let alpha = sgd.alpha.weight(&known)?;
        let (v_private, v_public) = (row / known.batch + known.noise, row / known.public_batch);
        let apart = public_error(recipe, minimiser, fit.map_or(0.0, |fit| fit.ridge), public);
        let length: f64 = minimiser.weights.iter().map(|w| w * w).sum();
        let from_zero = if planned.warm_start == WarmStart::Cold { 0.5 * length } else { 0.0 };
        Ok(Self {
            smoothness: ALLOWANCE * curved + sgd.l2 + sgd.public_l2,
            variance: alpha * alpha * v_private + (1.0 - alpha).powi(2) * v_public,
            // Halves that agree to the last digits have been fitted exactly, which says little.
            distance: (from_zero + apart).max(1e-6 * length).max(1e-12),
        })
    }

    /// The schedule whose bound on the excess risk is smaller: a tiny μ is worse than none.
    fn schedule(&self, strong_convexity: f64, steps: u64) -> Acceleration {
        let &Self { smoothness, variance, distance } = self;
        let convex = Acceleration::convex(smoothness, variance, distance, steps);
        if strong_convexity == 0.0 {
            return convex;
        }
        let t = steps as f64;
        let without = 4.0 * convex.gamma * distance / (t * (t + 1.0))
            + 4.0 * variance * (t + 2.0) / (3.0 * convex.gamma);
        let with =
            4.0 * smoothness * distance / (t * (t + 1.0)) + 8.0 * variance / (strong_convexity * (t + 1.0));
        if with <= without { Acceleration::strongly_convex(smoothness, strong_convexity) } else { convex }
    }
}

/// e²: how far the public minimiser is from the truth, squared.
fn public_error(recipe: &Recipe<'_>, minimiser: &Model, ridge: f64, public: &PublicRows) -> f64 {
    let (even, odd): (Vec<usize>, Vec<usize>) = (0..public.len()).partition(|row| row % 2 == 0);
    if odd.is_empty() {
        return minimiser.weights.iter().map(|w| w * w).sum();
    }
    let fit = |rows: &[usize]| {
        let mut weights = minimise_to(recipe.loss, &public.some(rows), minimiser, ridge, ACCURACY);
        recipe.domain.project(&mut weights);
        weights
    };
    let (a, b) = (fit(&even), fit(&odd));
    0.25 * a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
}

/// Algorithm 1 with acceleration.
pub struct Accelerated;

impl Algorithm for Accelerated {
    fn name(&self) -> &'static str {
        "semi-dp-sgd-accelerated"
    }

    fn about(&self) -> &'static str {
        "Algorithm 1 with acceleration, for smooth losses (AC-SA)"
    }

    fn public_use(&self) -> PublicUse {
        PublicUse::Mixed
    }

    fn ignores(&self) -> Vec<&'static str> {
        vec!["learning-rate", "average", "hessian-regularisation"]
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
            let requirement = "given for semi-dp-sgd-accelerated, whose schedule is learned from public rows";
            Error::invalid("public", "no rows", requirement)
        })?;
        let session = conduct.session(recipe, data.private)?;
        if session.units() == Some(0) {
            return ThrowAway::fit(recipe, Some(&public));
        }
        let mut planned = recipe.plan(Some(&public), &session, self.public_use())?;
        planned.sgd.average = Average::Last;
        let learned = Learned::of(recipe, &planned, &public)?;
        let schedule = learned.schedule(planned.sgd.l2, planned.sgd.steps.get());
        planned.unsay("learning-rate");
        planned.say("average", json!(Average::Last.name()), "theory");
        planned.say("smoothness", json!(learned.smoothness), "public data");
        planned.say("gradient-variance", json!(learned.variance), "public data");
        planned.say("distance", json!(learned.distance), "public data");
        let source = if schedule.strong_convexity > 0.0 { "user" } else { "theory" };
        planned.say("strong-convexity", json!(schedule.strong_convexity), source);
        planned.say("gamma", json!(schedule.gamma), "theory");
        planned.sgd.update = Box::new(schedule);
        let mixed = Mixed::of(recipe, &planned);
        let trained = planned.run(self.name(), &session, Some(&public), recipe, &conduct, on_step)?;
        Ok(mixed.told(trained))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Everywhere;

    /// Exact gradients of ½Σh_j(w_j − 1)²: the gap stays below the bound 4γV₀/(T(T+1)), for either schedule.
    #[test]
    fn exact_gradients_keep_the_bound() {
        let curvatures = [1.0, 0.1, 0.01, 0.001];
        for (mu, gamma) in [(0.0, 2.0), (0.001, 1.0)] {
            let rule = Acceleration { strong_convexity: mu, gamma };
            let mut update = rule.begin(&[0.0; 4]);
            let mut point = [0.0; 4];
            for step in 1..=300u64 {
                update.query_into(step, &mut point);
                let gradient: Vec<f64> = point.iter().zip(curvatures).map(|(w, h)| h * (w - 1.0)).collect();
                update.advance(step, &gradient, &Everywhere);
                let gap: f64 =
                    update.iterate().iter().zip(curvatures).map(|(w, h)| 0.5 * h * (w - 1.0).powi(2)).sum();
                let bound = 4.0 * gamma * 0.5 * 4.0 / (step as f64 * (step as f64 + 1.0));
                assert!(gap <= bound, "{mu} {step}: {gap} {bound}");
            }
        }
    }

    #[test]
    fn schedules_are_those_of_the_paper() {
        let rule = Acceleration::convex(0.5, 4.0, 2.0, 10);
        assert!((rule.gamma - (4.0f64 * 10.0 * 11.0 * 12.0 / 6.0).sqrt()).abs() < 1e-12);
        assert_eq!(Acceleration::convex(0.5, 0.0, 2.0, 10).gamma, 1.0);
        let rule = Acceleration::strongly_convex(3.0, 0.25);
        assert_eq!((rule.gamma, rule.strong_convexity), (3.0, 0.25));
        assert_eq!(rule.middle(1), (0.0, 1.0));
        for step in [1, 2, 7, 100] {
            let (of_ag, of_x) = rule.middle(step);
            assert!((of_ag + of_x - 1.0).abs() < 1e-12 && of_ag >= 0.0 && of_x > 0.0);
        }
        assert!(Acceleration { gamma: f64::NAN, strong_convexity: 0.0 }.check().is_err());
        assert!(Acceleration { gamma: 1.0, strong_convexity: -1.0 }.check().is_err());
        // A tiny μ would ask for long steps that noise spoils.
        let learned = Learned { smoothness: 1.0, variance: 1.0, distance: 1.0 };
        assert_eq!(learned.schedule(1e-9, 100).strong_convexity, 0.0);
        assert_eq!(learned.schedule(0.5, 100).strong_convexity, 0.5);
    }
}
