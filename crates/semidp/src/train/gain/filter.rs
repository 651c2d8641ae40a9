//! The iterate of optimal-gain training: at every step the best estimate given public rows and all gradients so far.
//!
//! A clipped private gradient at w, over the share of curvature that clipping leaves, is H(w − w*) plus noise, so
//! c = Hw − g measures Hw*. All measurements have one error in common, that of the private rows being a sample, and one
//! each, that of the noise. Their mean c̄, weighted by the noise in them, has in a direction of curvature h the variance
//!
//! $$ v = \frac{1}{\sum_s 1/f_s} + \frac{S s^2 h}{n}\Big(1 + \frac{1-q}{q t}\Big), $$
//!
//! and against a public posterior of variance p around w₀ the best estimate is w₀ + ph/(ph² + v)·(c̄ − hw₀). There is no
//! step size, no weight and no average to choose.
//!
//! That holds if public rows come from the same law as private ones. The first steps stay at w₀, so that their mean says
//! whether w* is as near as public rows claim. If not, w₀ gives way to half of it, or to zero, where that is likelier, and the
//! rest of the run is a Kalman filter with a wider prior, whose gain 1/(h + μh_max + R/(Ph)) allows for curvatures being wrong
//! as well: with much noise or a wide prior that is gradient descent from w₀ with a step that decays by itself. Decay by public
//! curvatures would be too slow where private rows are more curved, as along a category that no public row has, and too fast
//! where they are less; so P falls by a part only of what a step would teach, and the model is the mean of the iterates, late
//! ones weighing most (Shamir and Zhang 2013), whose noise is averaged whatever the curvatures are. Such iterates wander:
//! gradient descent with gain g keeps a variance of gf/(2h) in every direction, which is a loss of dgf/4 in all. Where the loss
//! is no parabola the mean of wandering iterates is not where the mean gradient vanishes, so that μ is as large as it takes to
//! keep that below a bound. That leaves nothing for a falling P to prevent, so there it stays.

use super::geometry::Turned;
use super::knowledge::{Knowledge, Scale};
use super::lengths::Clip;
use crate::Result;
use crate::domain::Domain;
use crate::train::{Model, Update, UpdateRule};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The share of steps that stay at the start.
const HELD_SHARE: f64 = 0.1;
/// Twice the logarithm of how much likelier a wider prior must be,
const DOUBT: f64 = 4.0;
/// and another centre of it if every row is asked once only: what a wrong one loses is not made good then.
const DEEP_DOUBT: f64 = 10.0;
/// μ: how far curvatures may be off, as a share of the largest, once public rows are doubted.
const MISTRUST: f64 = 1.0;
/// The part of what a step would teach that is believed then, if the loss is a parabola.
const BELIEVED: f64 = 0.5;
/// By how much losses that are no parabolas may rise while iterates wander, in units of twice the loss.
const MOST_WANDERING: f64 = 0.01;
/// Once public rows are doubted, iterate t after that weighs about t to this power in the model.
const LATENESS: f64 = 3.0;
/// Degrees of freedom of the law by which discrepancies are judged: heavy tails, so that few do not speak for all.
const TAILS: f64 = 3.0;
/// A discrepancy so many standard deviations long is taken for what it is.
const OUTLIER: f64 = 2.0;

/// Where a wider prior may be centred, as shares of the public model: public rows that mislead say less than none.
const CENTRES: [f64; 3] = [1.0, 0.5, 0.0];

/// What measurements weigh in their mean.
#[derive(Clone, Copy, Default)]
struct Weights {
    /// Steps.
    done: f64,
    /// Σ ω.
    sum: f64,
    /// Σ ω²·scale².
    noise: f64,
    /// Σ ω·scale².
    scale: f64,
}

impl Weights {
    /// Takes in a measurement at a squared scale, and returns its share of the mean.
    fn add(&mut self, square: f64, recency: f64) -> f64 {
        self.done += 1.0;
        let weight = self.done.powf(recency) / square;
        self.sum += weight;
        self.noise += weight * weight * square;
        self.scale += weight * square;
        weight / self.sum
    }
}

/// Everything that is fixed before the first step.
pub(super) struct Filter {
    pub(super) knowledge: Knowledge,
    pub(super) clip: Clip,
    /// Whether the clip norm follows the scale of residuals.
    pub(super) follows: bool,
    /// z/K.
    pub(super) relative_noise: f64,
    /// Private rows.
    pub(super) rows: f64,
    /// q.
    pub(super) rate: f64,
    /// Measurement t weighs t to this power: later ones are nearer to where curvatures matter, earlier ones as good where
    /// they are the same everywhere.
    pub(super) recency: f64,
    /// Whether every row is in one batch only.
    pub(super) one_pass: bool,
    /// T.
    pub(super) steps: u64,
    /// Whether the run came to doubt public rows.
    pub(super) doubted: Arc<AtomicBool>,
}

impl Filter {
    /// f: the variance of the noise in one measurement, at scale 1.
    fn noise(&self) -> f64 {
        (self.relative_noise * self.clip.length / self.clip.slope).powi(2)
    }

    /// v in a direction of this curvature.
    fn variance(&self, curvature: f64, so_far: Weights) -> f64 {
        let Weights { done, sum, noise, scale } = so_far;
        let resampling = match self.one_pass {
            true => 1.0 / (self.rate * done),
            false => 1.0 + (1.0 - self.rate) / (self.rate * done),
        };
        let sampling = self.clip.inflation * self.knowledge.dispersion * curvature / self.rows;
        self.noise() * noise / (sum * sum) + sampling * scale / sum * resampling
    }

    /// The same at the end, at the scale that is left then, with rows more by a factor of 1/`fewer`.
    pub(super) fn last_variance(&self, curvature: f64, fewer: f64) -> f64 {
        let square = match self.knowledge.scale {
            Scale::Fixed => 1.0,
            Scale::Predicted { noise } => noise,
            Scale::Held(_) => self.knowledge.first_scale.powi(2),
        };
        let steps = self.steps as f64;
        let even = Weights { done: steps, sum: steps, noise: steps * square, scale: steps * square };
        let sampling = self.variance(curvature, even) - square * self.noise() / steps;
        sampling * fewer + square * self.noise() / steps * fewer * fewer
    }

    /// μ, once public rows are doubted.
    fn mistrust(&self, largest: f64) -> f64 {
        if !matches!(self.knowledge.scale, Scale::Fixed) {
            return MISTRUST;
        }
        // With gains of 1/h_max.
        let wandering = self.knowledge.model.weights.len() as f64 * self.noise() / (2.0 * largest);
        MISTRUST * (wandering / MOST_WANDERING).max(1.0)
    }

    /// The part of what a step would teach that is believed, once public rows are doubted.
    fn believed(&self) -> f64 {
        match self.knowledge.scale {
            // μ keeps iterates from wandering.
            Scale::Fixed => 0.0,
            _ => BELIEVED,
        }
    }

    /// Steps that stay at the start: none where public rows are too few to claim anything.
    fn held_steps(&self) -> u64 {
        match self.knowledge.scale {
            Scale::Held(_) => 0,
            _ if self.steps < 10 => 0,
            _ => ((HELD_SHARE * self.steps as f64) as u64).max(1),
        }
    }

    /// Whether public rows are looked at after this step: when the first steps are done, and whenever as many have been taken
    /// again, since noise hides at first what more of them show.
    fn is_looked_at(&self, step: u64) -> bool {
        let held = self.held_steps();
        held > 0 && step.is_multiple_of(held) && (step / held).is_power_of_two() && step < self.steps
    }

    /// Posterior variances in all directions.
    fn posterior(&self, so_far: Weights) -> Vec<f64> {
        let parts = self.knowledge.curvatures.iter().zip(&self.knowledge.variances);
        parts
            .map(|(h, p)| {
                let v = self.variance(*h, so_far);
                p * v / (p * h * h + v)
            })
            .collect()
    }

    /// The variances expected at the end, if public rows are what they claim to be.
    pub(super) fn forecast(&self) -> Vec<f64> {
        let noise = match self.knowledge.scale {
            Scale::Fixed => None,
            Scale::Predicted { noise } => Some(noise),
            // What is left of the residuals at the start beyond what the model is off.
            Scale::Held(_) => Some(
                (self.knowledge.first_scale.powi(2) - self.knowledge.excess(&self.knowledge.variances))
                    .max(0.0),
            ),
        };
        let (mut so_far, mut square) = (Weights::default(), self.knowledge.first_scale.powi(2));
        let mut variances = self.knowledge.variances.clone();
        for step in 1..=self.steps {
            so_far.add(square, self.recency);
            if step < self.held_steps() {
                continue;
            }
            variances = self.posterior(so_far);
            if let Some(noise) = noise {
                square = (noise + self.knowledge.excess(&variances)).max(f64::MIN_POSITIVE);
            }
        }
        variances
    }
}

impl UpdateRule for Filter {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Public rows and start are facts of every run, and all else follows from them.
    fn describe(&self) -> String {
        let Self { clip, follows, relative_noise, rows, rate, steps, one_pass, recency, .. } = self;
        format!(
            "Filter {{ {clip:?}, {follows:?}, {relative_noise:?}, {rows:?}, {rate:?}, {one_pass:?}, {recency:?}, {steps:?} }}"
        )
    }

    fn averaged_steps(&self, steps: f64) -> Option<f64> {
        Some(steps)
    }

    fn rehearsed_steps(&self, steps: u64, _: bool) -> u64 {
        // The first estimate comes after the steps that stay at the start.
        steps.min(self.held_steps() + 1)
    }

    fn begin(&self, start: &[f64]) -> Box<dyn Update + '_> {
        self.doubted.store(false, Ordering::Relaxed);
        let knowledge = &self.knowledge;
        let start_turned = knowledge.geometry.turn(start);
        let mut estimate = Estimate {
            filter: self,
            at: start_turned.clone(),
            measured: Turned {
                along: vec![0.0; start_turned.along.len()],
                rest: vec![0.0; start_turned.rest.len()],
            },
            start: start_turned,
            model: knowledge.model.with_weights(start.to_vec()),
            so_far: Weights::default(),
            square: knowledge.first_scale.powi(2),
            wider: None,
            mean: start.to_vec(),
            averaged: 0.0,
            told: Vec::new(),
        };
        estimate.remember();
        Box::new(estimate)
    }
}

/// Where it stands.
struct Estimate<'a> {
    filter: &'a Filter,
    start: Turned,
    at: Turned,
    /// c̄.
    measured: Turned,
    model: Model,
    so_far: Weights,
    /// The squared scale of residuals.
    square: f64,
    /// Variances of a filter that doubts public rows.
    wider: Option<Vec<f64>>,
    /// What the model would be if this were the last step: the iterate, or a mean of so many of them once public rows are doubted.
    mean: Vec<f64>,
    averaged: f64,
    /// All of this in vectors as long as the model, for whoever keeps it.
    told: Vec<Vec<f64>>,
}

impl Estimate<'_> {
    fn remember(&mut self) {
        let size = self.model.weights.len();
        let padded = |values: &[f64]| {
            let mut vector = values.to_vec();
            vector.resize(size, 0.0);
            vector
        };
        // Directions that do not exist have no variance to keep.
        let counts = self.filter.knowledge.geometry.multiplicities();
        let wider = self.wider.iter().flatten().zip(counts).filter(|(_, count)| *count > 0.0);
        let wider: Vec<f64> = wider.map(|(variance, _)| *variance).collect();
        self.told = vec![
            self.model.weights.clone(),
            padded(&self.at.along),
            padded(&self.at.rest),
            padded(&self.measured.along),
            padded(&self.measured.rest),
            padded(&wider),
            padded(&[self.so_far.done]),
            padded(&[self.so_far.sum]),
            padded(&[self.so_far.noise]),
            padded(&[self.so_far.scale]),
            padded(&[self.square]),
            padded(&[f64::from(u8::from(self.wider.is_some()))]),
            self.mean.clone(),
            padded(&[self.averaged]),
        ];
    }

    /// Takes the iterate into the mean.
    fn average(&mut self) {
        if self.wider.is_none() {
            return self.mean.copy_from_slice(&self.model.weights);
        }
        self.averaged += 1.0;
        let share = (LATENESS + 1.0) / (LATENESS + self.averaged);
        self.mean.iter_mut().zip(&self.model.weights).for_each(|(mean, w)| *mean += share * (w - *mean));
    }

    /// Takes a measurement into c̄.
    fn measure(&mut self, gradient: &Turned) {
        let geometry = &self.filter.knowledge.geometry;
        let (curvatures, slope) = (&self.filter.knowledge.curvatures, self.filter.clip.slope);
        let share = self.so_far.add(self.square, self.filter.recency);
        self.measured.each_with([&self.at, gradient], geometry, |i, mean, [w, g]| {
            *mean += share * (curvatures[i] * w - g / slope - *mean);
        });
    }

    /// The best estimate if public rows are trusted; returns its variances.
    fn combine(&mut self) -> Vec<f64> {
        let (filter, so_far) = (self.filter, self.so_far);
        let (curvatures, variances) = (&filter.knowledge.curvatures, &filter.knowledge.variances);
        let gains: Vec<f64> = curvatures
            .iter()
            .zip(variances)
            .map(|(h, p)| p * h / (p * h * h + filter.variance(*h, so_far)))
            .collect();
        self.at.each_with([&self.start, &self.measured], &filter.knowledge.geometry, |i, w, [start, c]| {
            *w = start + gains[i] * (c - curvatures[i] * start);
        });
        filter.posterior(so_far)
    }

    /// A wider prior, if what was measured at the start speaks for one, and its centre as a share of the public model.
    fn doubt(&self) -> Option<(Vec<f64>, f64)> {
        let knowledge = &self.filter.knowledge;
        let counts = knowledge.geometry.multiplicities();
        let errors: Vec<f64> =
            knowledge.curvatures.iter().map(|h| self.filter.variance(*h, self.so_far) / (h * h)).collect();
        // How far w* seems to be from a share of the public model, squared.
        let squares_from = |centre: f64| {
            let mut gap = self.measured.clone();
            gap.each_with([&self.start, &self.start], &knowledge.geometry, |i, c, [start, _]| {
                *c = (*c - knowledge.curvatures[i] * centre * start) / knowledge.curvatures[i];
            });
            gap.squares(&knowledge.geometry)
        };
        let likelihood = |squares: &[f64], extra: f64| -> f64 {
            let parts = squares.iter().zip(&counts).zip(&errors).zip(&knowledge.variances);
            parts
                .filter(|(((_, count), _), _)| **count > 0.0)
                .map(|(((square, count), error), p)| {
                    let variance = p + extra + error;
                    -count
                        * (0.5 * variance.ln() + (TAILS + 1.0) / 2.0 * (square / (variance * TAILS)).ln_1p())
                })
                .sum()
        };
        let candidates = CENTRES.map(|centre| {
            let squares = squares_from(centre);
            let scale = squares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let widths = (0..40).map(|i| scale * 10f64.powf(-0.25 * f64::from(i)));
            let likely = widths.map(|extra| (likelihood(&squares, extra), extra));
            let (found, extra) =
                likely.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NEG_INFINITY, 0.0));
            (found, extra, centre, squares)
        });
        // The first of equals.
        let least = if self.filter.one_pass { DEEP_DOUBT } else { 0.0 };
        let better = |a: &(f64, _, _, _), b: &(f64, _, _, _)| 2.0 * (b.0 - a.0) > least;
        let (found, extra, centre, squares) =
            candidates.into_iter().reduce(|a, b| if better(&a, &b) { b } else { a })?;
        if 2.0 * (found - likelihood(&squares_from(1.0), 0.0)) < DOUBT {
            return None;
        }
        let wider = knowledge.variances.iter().zip(&squares).zip(&errors).map(|((p, square), error)| {
            let variance = p + extra;
            let is_outlier = *square > OUTLIER * OUTLIER * (variance + error);
            if is_outlier { variance.max(square - error) } else { variance }
        });
        Some((wider.collect(), centre))
    }

    /// A step of a filter that doubts, by a gradient whose noise has these variances.
    fn correct(&mut self, gradient: &Turned, slope: f64, noise: impl Fn(f64) -> f64) {
        let knowledge = &self.filter.knowledge;
        let Some(variances) = &mut self.wider else { return };
        let largest = knowledge.curvatures.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let (mistrust, believed) = (self.filter.mistrust(largest), self.filter.believed());
        let gains: Vec<f64> = knowledge
            .curvatures
            .iter()
            .zip(variances.iter_mut())
            .map(|(h, variance)| {
                let gain = 1.0 / (h + mistrust * largest + noise(*h) / (*variance * h));
                *variance *= 1.0 - believed * gain * h;
                gain
            })
            .collect();
        self.at
            .each_with([gradient, gradient], &knowledge.geometry, |i, w, [g, _]| *w -= gains[i] * g / slope);
    }
}

impl Update for Estimate<'_> {
    fn query_into(&self, _: u64, point: &mut [f64]) {
        point.copy_from_slice(&self.model.weights);
    }

    fn clip_norm(&self) -> Option<f64> {
        let scale = if self.filter.follows { self.square.sqrt() } else { self.filter.knowledge.first_scale };
        Some(self.filter.clip.length * scale)
    }

    fn advance(&mut self, step: u64, gradient: &[f64], domain: &dyn Domain) {
        let filter = self.filter;
        let gradient = filter.knowledge.geometry.turn(gradient);
        let held = filter.held_steps();
        // What the new estimate is expected to be off.
        let mut open = None;
        if self.wider.is_some() {
            let repeats = (filter.steps as f64).max(1.0 / filter.rate);
            let sampling = filter.clip.inflation * filter.knowledge.dispersion / filter.rows * repeats;
            let square = self.square;
            self.correct(&gradient, filter.clip.slope, |h| square * (filter.noise() + sampling * h));
        } else {
            self.measure(&gradient);
            if step < held {
                self.remember();
                return;
            }
            if filter.is_looked_at(step) {
                if let Some((wider, centre)) = self.doubt() {
                    self.wider = Some(wider);
                    self.start.scale(centre);
                }
                filter.doubted.store(self.wider.is_some(), Ordering::Relaxed);
            }
            if self.wider.is_some() {
                // All steps so far as one: what their mean gradient at the start would have been.
                let mut mean = self.measured.clone();
                let curvatures = &filter.knowledge.curvatures;
                mean.each_with([&self.start, &self.start], &filter.knowledge.geometry, |i, c, [start, _]| {
                    *c = curvatures[i] * start - *c;
                });
                let so_far = self.so_far;
                self.at = self.start.clone();
                self.correct(&mean, 1.0, |h| filter.variance(h, so_far));
            } else {
                open = Some(filter.knowledge.excess(&self.combine()));
            }
        }
        self.model.weights = filter.knowledge.geometry.turn_back(&self.at);
        let unprojected = self.model.weights.clone();
        domain.project(&mut self.model.weights);
        if self.model.weights != unprojected {
            self.at = filter.knowledge.geometry.turn(&self.model.weights);
        }
        if let Some(open) = open {
            self.square = filter.knowledge.scale.square(&self.model, open);
        }
        self.average();
        self.remember();
    }

    fn iterate(&self) -> &[f64] {
        &self.mean
    }

    fn state(&self) -> Vec<&[f64]> {
        self.told.iter().map(Vec::as_slice).collect()
    }

    fn restore(&mut self, state: &[Vec<f64>]) {
        let part = |values: &mut Vec<f64>, from: &[f64]| {
            let length = values.len();
            values.copy_from_slice(&from[..length]);
        };
        self.model.weights.copy_from_slice(&state[0]);
        part(&mut self.at.along, &state[1]);
        part(&mut self.at.rest, &state[2]);
        part(&mut self.measured.along, &state[3]);
        part(&mut self.measured.rest, &state[4]);
        let number = |i: usize| state[i][0];
        self.so_far = Weights { done: number(6), sum: number(7), noise: number(8), scale: number(9) };
        self.square = number(10);
        self.wider = (number(11) != 0.0).then(|| {
            let mut kept = state[5].iter();
            let counts = self.filter.knowledge.geometry.multiplicities();
            let variance = |count: f64| if count > 0.0 { kept.next().copied() } else { None };
            counts.into_iter().map(variance).map(|variance| variance.unwrap_or(0.0)).collect()
        });
        self.mean.copy_from_slice(&state[12]);
        self.averaged = number(13);
        self.filter.doubted.store(self.wider.is_some(), Ordering::Relaxed);
        self.remember();
    }
}
