//! Semi-LDP-SGD: one step a person, in a random order. Private people report a randomised gradient, public ones their own.

use super::Schedule;
use super::schedule::{Crowd, Pace, Step};
use crate::domain::Domain;
use crate::loss::{Door, Loss};
use crate::train::batches::shuffle;
use crate::train::gradient::Gradient;
use crate::train::{Model, PublicGradient, PublicRows, Trained};
use crate::{Error, Result};
use semidp_core::{BlockSource, InMemory, Interview, Ledger, People, Randomizer, Randomness};

/// Iterates are shown about so many times.
const LOOKS: usize = 200;
/// Weights whose squares are far inside the range of a double.
const LARGEST_LENGTH: f64 = 1e150;

/// How far the best model can be from the start, and how fast steps go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// D, with this schedule.
    Reach(f64, Schedule),
    /// Always this step.
    Given(f64),
}

/// A run before it is run.
pub struct LocalSgd<'a> {
    /// What is minimised.
    pub loss: &'a dyn Loss,
    /// Where it starts, which public rows of this run must not have chosen.
    pub start: Model,
    /// What private people report with.
    pub randomizer: Randomizer,
    /// C, of everybody's gradients.
    pub clip_norm: f64,
    /// How fast.
    pub speed: Speed,
    /// Where models live.
    pub domain: Box<dyn Domain + 'a>,
    /// λ: adds (λ/2)‖w‖² to the loss.
    pub l2: f64,
    /// The order of people; nothing private depends on it.
    pub order_seed: u64,
}

impl LocalSgd<'_> {
    /// The steps for so many people.
    ///
    /// With a ridge λ a step goes along g + λw, whose mean square is at most G² + 2CλR + λ²R² for models within R of zero: a
    /// report's error is independent of λw.
    pub fn pace(&self, private: u64, public: u64) -> Result<Pace> {
        let clip = self.clip_norm;
        let held = match self.speed {
            Speed::Reach(reach, _) if self.l2 > 0.0 => {
                let start = self.start.weights.iter().map(|w| w * w).sum::<f64>().sqrt();
                self.l2 * (start + reach)
            }
            _ => 0.0,
        };
        let square = |times: f64| clip * clip * times + 2.0 * clip * held + held * held;
        let crowd = Crowd {
            private,
            private_square: square(self.randomizer.cap().mean_square()),
            public,
            public_square: square(1.0),
        };
        match self.speed {
            Speed::Reach(reach, schedule) => Pace::new(schedule, crowd, reach, self.l2),
            Speed::Given(step) => Ok(Pace::given(crowd, step)),
        }
    }

    /// Asks everybody once.
    pub fn train(
        &self,
        people: People<InMemory>,
        public: Option<&PublicRows>,
        randomness: Randomness,
        ledger: &mut dyn Ledger,
        on_step: &mut dyn FnMut(u64, &[f64]),
    ) -> Result<Trained> {
        let (asked, volunteers) = (people.len(), public.map_or(0, PublicRows::len));
        let pace = self.pace(asked as u64, volunteers as u64)?;
        let mut order: Vec<usize> = (0..asked + volunteers).collect();
        shuffle(&mut order, &mut self.order_seed.clone());
        self.rehearse(&pace, order.iter().map(|person| *person < asked))?;
        let mut interview = people.interview(self.randomizer.clone(), randomness, ledger)?;
        let people = interview.people();
        let mut walk = pace.begin();
        let mut model = self.start.clone();
        let (mut sum, mut weights) = (vec![0.0; model.weights.len()], 0.0);
        for (done, &person) in order.iter().enumerate() {
            let is_private = person < people;
            let Step { size, weight } = walk.next(is_private);
            weights += weight;
            sum.iter_mut().zip(&model.weights).for_each(|(sum, w)| *sum += weight * w);
            let gradient = match public {
                Some(rows) if !is_private => self.of_public(&model, rows, person - people),
                _ => self.of_private(&model, &mut interview, person)?,
            };
            model.weights.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= size * (g + self.l2 * *w));
            self.domain.project(&mut model.weights);
            let done = done + 1;
            if done % order.len().div_ceil(LOOKS) == 0 || done == order.len() {
                on_step(done as u64, &model.weights);
            }
        }
        let mean = sum.into_iter().map(|sum| sum / weights).collect();
        Ok(Trained {
            model: self.start.with_weights(mean),
            certificate: interview.finish(),
            alpha: pace.crowd().private_share(),
        })
    }

    /// Refuses a run that public facts alone decide to fail, before anybody is asked: one whose first question the kernel refuses, whose
    /// steps are no numbers or zero, or whose iterates overflow with gradients as long as their root mean square.
    fn rehearse(&self, pace: &Pace, order: impl Iterator<Item = bool>) -> Result<()> {
        let at = Gradient { door: Door::Scores(self.loss), model: &self.start, clip_norm: self.clip_norm };
        at.check(self.start.features + 1)?;
        let length = |weights: &[f64]| weights.iter().map(|w| w * w).sum::<f64>().sqrt();
        let start = length(&self.start.weights);
        let farthest = start + self.domain.reach(&self.start.weights);
        let crowd = pace.crowd();
        let mut walk = pace.begin();
        let (mut longest, mut weights) = (start, 0.0);
        let mut is_empty = true;
        for is_private in order {
            is_empty = false;
            let Step { size, weight } = walk.next(is_private);
            let gradient = if is_private { crowd.private_square } else { crowd.public_square }.sqrt();
            longest = (1.0 - size * self.l2).abs() * longest + size * gradient;
            weights += weight;
            let is_possible = size > 0.0 && size.is_finite() && weight > 0.0 && longest < LARGEST_LENGTH;
            if !(is_possible && weights.is_finite()) {
                return Err(self.impossible(size));
            }
            longest = longest.min(farthest);
        }
        if is_empty {
            return Err(Error::invalid("private", "no rows", "given, or there must be public rows"));
        }
        Ok(())
    }

    /// Which option to change if steps are zero, or iterates overflow.
    fn impossible(&self, size: f64) -> Error {
        let requirement = "such that steps are larger than zero and iterates do not overflow";
        match self.speed {
            Speed::Given(step) if self.l2 == 0.0 => Error::invalid("learning-rate", step, requirement),
            _ if self.l2 > 0.0 => Error::invalid("l2", self.l2, requirement),
            _ => Error::invalid("domain", format!("one that leads to a step of {size}"), requirement),
        }
    }

    fn of_private(
        &self,
        model: &Model,
        interview: &mut Interview<impl BlockSource>,
        person: usize,
    ) -> Result<Vec<f64>> {
        let at = Gradient { door: Door::Scores(self.loss), model, clip_norm: self.clip_norm };
        Ok(interview.ask(person, &at.of_scores(self.loss)?)?)
    }

    fn of_public(&self, model: &Model, rows: &PublicRows, row: usize) -> Vec<f64> {
        let at = Gradient { door: Door::Scores(self.loss), model, clip_norm: self.clip_norm };
        at.public_batch(rows, &[row], PublicGradient::Clip).mean
    }
}
