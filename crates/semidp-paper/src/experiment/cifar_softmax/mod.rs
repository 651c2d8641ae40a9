//! The paper's logistic regression on CIFAR-10 (`app:cifar10-setup`): softmax regression on flattened images, Algorithm 1
//! against DP-SGD and throw-away, from zero, in batches of 256.
//!
//! As in the paper, steps, step size and weight are chosen on validation images, of which no budget knows: these columns leak,
//! and their noise is emulated (see [`engine`]). They are tuned on some draws of public images, batches and noise, and measured on
//! others: the whole grid on one draw, then its best few settings on two more, because between neighbours in a grid one draw decides by
//! chance. Algorithm 1 takes as many steps as were best for DP-SGD. The autopilot stands beside them; it chooses nothing on private
//! or validation images, goes through the kernel, and has a certificate.

mod engine;
mod images;
mod outcome;

use super::Experiment;
use crate::autopilot::{self, trained};
use crate::coins::Coins;
use crate::files::Folder;
use crate::parallel::{in_order, split};
use crate::{Error, Outcome, Result, Settings};
use engine::{Choice, Grid, OUTPUTS, right};
use images::{CLASSES, Images};
use semidp::domain::Everywhere;
use semidp::loss::Softmax;
use semidp::train::{Given, PublicRows, Recipe, noise_for};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, Delta, DenseTable, Epsilon, Public, SampleRate, Sampling, Steps};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const DELTA: f64 = 1e-6;
const ADJACENCY: Adjacency = Adjacency::AddRemove;
const BATCH: usize = 256;
const CLIP_NORM: f64 = 1.0;
/// A part of the paper's grid, for Algorithm 1 and DP-SGD,
const RATES: [f64; 9] = [0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75, 1.0];
/// with weights close to one for the smallest shares,
const ALPHAS: [f64; 9] = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 1.0];
/// and for throw-away, whose gradients are not clipped and so longer.
const THROW_AWAY_RATES: [f64; 6] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3];
const RIDGES: [f64; 4] = [0.0, 1e-3, 1e-2, 1e-1];

/// Settings of a grid that are looked at again, on these draws; none of them is measured on.
const SHORT_LIST: usize = 8;
const MORE_DRAWS: [u64; 2] = [1001, 1002];

/// How much is done.
struct Sizes {
    /// The first images are trained on.
    training: usize,
    /// Those of the last published file.
    validation: Range<usize>,
    test: usize,
    /// Numbers of steps that are tried.
    steps: &'static [u64],
    /// Draws that are measured on, beside those that are tuned on.
    draws: u64,
    epsilons: &'static [f64],
    shares: &'static [f64],
}

impl Sizes {
    fn of(settings: &Settings) -> Self {
        match settings.quick {
            true => Self {
                training: 8000,
                validation: 40_000..42_000,
                test: 2000,
                steps: &[250],
                draws: 2,
                epsilons: &[2.0],
                shares: &[0.04, 0.3],
            },
            false => Self {
                training: 40_000,
                validation: 40_000..50_000,
                test: 10_000,
                steps: &[2000, 4000],
                draws: 5,
                epsilons: &[0.5, 2.0, 8.0],
                shares: &[0.01, 0.04, 0.1, 0.3],
            },
        }
    }

    fn public(&self, share: f64) -> usize {
        (share * self.training as f64).round() as usize
    }
}

/// The experiment.
pub struct CifarSoftmax;

impl Experiment for CifarSoftmax {
    fn name(&self) -> &'static str {
        "cifar-softmax"
    }

    fn title(&self) -> &'static str {
        "Softmax regression on CIFAR-10: Algorithm 1, DP-SGD and throw-away"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let (training, test) = Images::load(&Folder::of(settings))?;
        let sizes = Sizes::of(settings);
        if training.len() < sizes.validation.end || test.len() < sizes.test {
            return Err(Error::Data("the files of CIFAR-10 have fewer images than they should".into()));
        }
        let job = Job { settings, sizes, training, test };
        let cells = job.run(progress)?;
        Ok(outcome::outcome(self, settings, &job.sizes, &cells))
    }
}

/// What is tuned, and with what.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    /// Public and private images.
    One { epsilon: f64, share: f64 },
    /// All images are private.
    DpSgd { epsilon: f64 },
    /// Public images alone, as the paper's SGD without clipping.
    ThrowAway { share: f64 },
}

impl Method {
    /// The name of its pieces.
    fn name(self) -> String {
        match self {
            Self::One { epsilon, share } => format!("cifar-softmax-algorithm-1-{epsilon}-{share}"),
            Self::DpSgd { epsilon } => format!("cifar-softmax-dp-sgd-{epsilon}"),
            Self::ThrowAway { share } => format!("cifar-softmax-throw-away-{share}"),
        }
    }

    /// Everything that is tried with each number of steps.
    fn choices(self) -> Vec<Choice> {
        match self {
            Self::One { .. } => {
                let weighted = |rate: f64| ALPHAS.map(|alpha| Choice { rate, alpha, l2: 0.0 });
                RATES.into_iter().flat_map(weighted).collect()
            }
            Self::DpSgd { .. } => RATES.map(|rate| Choice { rate, alpha: 1.0, l2: 0.0 }).to_vec(),
            Self::ThrowAway { .. } => {
                let held = |rate: f64| RIDGES.map(|l2| Choice { rate, alpha: 0.0, l2 });
                THROW_AWAY_RATES.into_iter().flat_map(held).collect()
            }
        }
    }
}

/// The best of a grid for the validation images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Chosen {
    steps: u64,
    choice: Choice,
    output: String,
    validation_error: f64,
}

/// A method as it was tuned, and its test errors on other draws.
#[derive(Debug, Clone, PartialEq)]
struct Tuned {
    /// The noise multiplier, if there is noise.
    noise: f64,
    chosen: Chosen,
    errors: Vec<f64>,
}

/// An untuned run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Untuned {
    error: f64,
    certified: f64,
}

/// One ε and one share of public images.
struct Cell {
    epsilon: f64,
    share: f64,
    algorithm_1: Tuned,
    dp_sgd: Tuned,
    throw_away: Tuned,
    /// On the same draws.
    autopilot: Vec<Untuned>,
}

/// The training images in a random order. Public ones are the first, those of a small share among those of a large.
struct Draw {
    number: u64,
    order: Vec<usize>,
}

struct Job<'j> {
    settings: &'j Settings,
    sizes: Sizes,
    /// With the validation images.
    training: Images,
    test: Images,
}

impl Job<'_> {
    fn run(&self, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Vec<Cell>> {
        let Sizes { epsilons, shares, draws, .. } = &self.sizes;
        let (budgets, settings) = (epsilons.len() as u64, (epsilons.len() * shares.len()) as u64);
        let total = (1 + draws) * (shares.len() as u64 + budgets + settings) + draws * settings;
        let finished = AtomicU64::new(0);
        let tick = || progress(finished.fetch_add(1, Ordering::Relaxed) + 1, total);
        let tuned_on: Vec<Draw> =
            std::iter::once(0).chain(MORE_DRAWS).map(|number| self.draw(number)).collect();
        let draws: Vec<Draw> = (1..=*draws).map(|number| self.draw(number)).collect();
        let of_shares: Vec<Tuned> = shares
            .iter()
            .map(|share| {
                self.tuned(Method::ThrowAway { share: *share }, self.sizes.steps, &tuned_on, &draws, &tick)
            })
            .collect::<Result<_>>()?;
        let mut left_alone = self.autopilots(&draws, &tick)?.into_iter();
        let mut cells = Vec::new();
        for &epsilon in *epsilons {
            let dp_sgd = self.tuned(Method::DpSgd { epsilon }, self.sizes.steps, &tuned_on, &draws, &tick)?;
            let steps = [dp_sgd.chosen.steps];
            for (&share, throw_away) in shares.iter().zip(&of_shares) {
                let method = Method::One { epsilon, share };
                cells.push(Cell {
                    epsilon,
                    share,
                    algorithm_1: self.tuned(method, &steps, &tuned_on, &draws, &tick)?,
                    dp_sgd: dp_sgd.clone(),
                    throw_away: throw_away.clone(),
                    autopilot: left_alone.by_ref().take(draws.len()).collect(),
                });
            }
        }
        Ok(cells)
    }

    fn draw(&self, number: u64) -> Draw {
        Draw { number, order: Coins::new(self.settings.seed, number).shuffled(self.sizes.training) }
    }

    /// Draws differ in their noise, too; methods and shares of one ε do not: what differs is what they make of it.
    fn seed(&self, of: f64, draw: &Draw) -> u64 {
        self.settings.seed ^ of.to_bits() ^ draw.number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn budget(epsilon: f64) -> Result<PrivacyBudget> {
        Ok(PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(DELTA)? })
    }

    /// The multiplier that the kernel would have for a method's private images; nought if it has none.
    fn noise(&self, method: Method, steps: u64) -> Result<f64> {
        let (epsilon, private) = match method {
            Method::One { epsilon, share } => (epsilon, self.sizes.training - self.sizes.public(share)),
            Method::DpSgd { epsilon } => (epsilon, self.sizes.training),
            Method::ThrowAway { .. } => return Ok(0.0),
        };
        let sampling = Sampling::Poisson { rate: SampleRate::new(BATCH as f64 / private as f64)? };
        let steps = Steps::new(steps)?;
        Ok(noise_for(Self::budget(epsilon)?, ADJACENCY, sampling, steps, private as u64)?.get())
    }

    /// The grid of a method on a draw, with so many steps and this noise multiplier.
    fn grid<'g>(&'g self, method: Method, draw: &'g Draw, steps: u64, noise: f64) -> Grid<'g> {
        let (public, seed) = match method {
            Method::One { epsilon, share } => (self.sizes.public(share), self.seed(epsilon, draw)),
            Method::DpSgd { epsilon } => (0, self.seed(epsilon, draw)),
            Method::ThrowAway { share } => (self.sizes.public(share), self.seed(share, draw)),
        };
        let order = match method {
            Method::ThrowAway { .. } => &draw.order[..public],
            _ => &draw.order,
        };
        let private = order.len() - public;
        Grid {
            images: &self.training,
            order,
            public,
            sample_rate: if private == 0 { 0.0 } else { BATCH as f64 / private as f64 },
            batch: BATCH as f64,
            public_batch: BATCH,
            clip_norm: (private > 0).then_some(CLIP_NORM),
            noise_std: noise * CLIP_NORM,
            steps,
            seed,
        }
    }

    /// A method tuned on some draws and measured on others.
    fn tuned(
        &self,
        method: Method,
        steps: &[u64],
        tuned_on: &[Draw],
        draws: &[Draw],
        tick: &(dyn Fn() + Sync),
    ) -> Result<Tuned> {
        let chosen: Chosen = self.settings.piece(&method.name(), || self.best(method, steps, tuned_on))?;
        tick();
        let noise = self.noise(method, chosen.steps)?;
        let output = OUTPUTS.iter().position(|name| *name == chosen.output).unwrap_or(0);
        let errors = in_order(draws.len() as u64, self.settings.threads, &|_| tick(), |place| {
            let draw = &draws[place as usize];
            let name = format!("{}-draw{}", method.name(), draw.number);
            self.settings.piece(&name, || {
                let finished = self.grid(method, draw, chosen.steps, noise).train(&[chosen.choice], 1)?;
                let test: Vec<usize> = (0..self.sizes.test).collect();
                Ok(error_of(&right(&self.test, &test, &finished, 1)?[0][output]))
            })
        })?;
        Ok(Tuned { noise, chosen, errors })
    }

    /// What is best on the validation images: of all that is tried on the first draw the best few, and of those the best over all
    /// draws.
    fn best(&self, method: Method, steps: &[u64], tuned_on: &[Draw]) -> Result<Chosen> {
        let (first, more) = tuned_on.split_at(1);
        let mut all = Vec::new();
        for &steps in steps {
            let noise = self.noise(method, steps)?;
            let choices = method.choices();
            let grid = self.grid(method, &first[0], steps, noise);
            let found = self.validation_errors(&grid, &choices, self.settings.threads)?;
            for (choice, errors) in choices.iter().zip(found) {
                all.extend([0, 1].map(|output| (steps, *choice, output, errors[output])));
            }
        }
        all.sort_by(|a, b| a.3.total_cmp(&b.3));
        all.truncate(SHORT_LIST);
        for &steps in steps {
            let noise = self.noise(method, steps)?;
            let mut listed: Vec<_> = all.iter_mut().filter(|entry| entry.0 == steps).collect();
            let choices: Vec<Choice> = listed.iter().map(|entry| entry.1).collect();
            // They fill one product a draw, so that draws have a thread each.
            let found = in_order(more.len() as u64, self.settings.threads, &|_| (), |place| {
                let grid = self.grid(method, &more[place as usize], steps, noise);
                self.validation_errors(&grid, &choices, 1)
            })?;
            for of_draw in found {
                for (entry, errors) in listed.iter_mut().zip(of_draw) {
                    entry.3 += errors[entry.2];
                }
            }
        }
        let best = all.into_iter().min_by(|a, b| a.3.total_cmp(&b.3));
        let (steps, choice, output, sum) =
            best.ok_or_else(|| Error::Data("internal error: a grid without settings".into()))?;
        let validation_error = sum / tuned_on.len() as f64;
        Ok(Chosen { steps, choice, output: OUTPUTS[output].into(), validation_error })
    }

    /// The error of each choice and output.
    fn validation_errors(
        &self,
        grid: &Grid<'_>,
        choices: &[Choice],
        threads: usize,
    ) -> Result<Vec<[f64; 2]>> {
        let finished = grid.train(choices, threads)?;
        let validation: Vec<usize> = self.sizes.validation.clone().collect();
        let found = right(&self.training, &validation, &finished, threads)?;
        Ok(found.iter().map(|outputs| [0, 1].map(|output| error_of(&outputs[output]))).collect())
    }

    /// The library without tuning on every draw, cell by cell.
    fn autopilots(&self, draws: &[Draw], tick: &(dyn Fn() + Sync)) -> Result<Vec<Untuned>> {
        let Sizes { epsilons, shares, .. } = &self.sizes;
        let cells = epsilons.iter().flat_map(|epsilon| shares.iter().map(move |share| (*epsilon, *share)));
        let runs: Vec<_> = cells.flat_map(|cell| draws.iter().map(move |draw| (cell, draw))).collect();
        let (at_once, threads) = split(self.settings.threads);
        in_order(runs.len() as u64, at_once, &|_| tick(), |place| {
            let ((epsilon, share), draw) = runs[place as usize];
            self.autopilot(epsilon, share, draw, threads)
        })
    }

    /// The library without tuning, through the kernel.
    fn autopilot(&self, epsilon: f64, share: f64, draw: &Draw, threads: usize) -> Result<Untuned> {
        let (public, private) = draw.order.split_at(self.sizes.public(share));
        let loss = Softmax::new(CLASSES)?;
        let recipe = Recipe {
            loss: &loss,
            domain: &Everywhere,
            has_intercept: true,
            budget: Self::budget(epsilon)?,
            adjacency: ADJACENCY,
            given: Given {
                sample_rate: Some(SampleRate::new(BATCH as f64 / private.len() as f64)?),
                expected_batch: Some(BATCH as f64),
                ..Given::default()
            },
        };
        let name = format!("cifar-softmax-{}-{epsilon}-{share}-draw{}", autopilot::NAME, draw.number);
        self.settings.piece(&name, || {
            let width = self.training.width();
            let table = |images: &[usize]| DenseTable::new(self.training.labelled(images), width);
            let known = PublicRows::load(&Public(table(public)?))?;
            let (private, seed) = (Box::new(table(private)?), self.seed(epsilon, draw));
            let trained = trained(autopilot::NAME, &recipe, private, Some(known), seed, threads)?;
            let test: Vec<usize> = (0..self.sizes.test).collect();
            let rows = PublicRows::load(&Public(DenseTable::new(self.test.labelled(&test), width)?))?;
            let mut scores = [0.0; CLASSES];
            let right: Vec<bool> = test
                .iter()
                .map(|image| {
                    trained.model.scores_into(&rows, *image, &mut scores);
                    semidp::train::metrics::predicted_class(&scores) == self.test.label(*image)
                })
                .collect();
            let certified = trained.certificate.guarantee.epsilon.get();
            Ok(Untuned { error: error_of(&right), certified })
        })
    }
}

/// The share of images that are not right.
fn error_of(right: &[bool]) -> f64 {
    1.0 - right.iter().filter(|is_right| **is_right).count() as f64 / right.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole experiment on a few small images: every cell is there, the budget is kept, and the figures hang together.
    #[test]
    fn small_images_go_all_the_way() {
        let settings = Settings::new(true, 3, 2);
        let sizes = Sizes {
            training: 1000,
            validation: 1000..1200,
            test: 200,
            steps: &[10, 20],
            draws: 2,
            epsilons: &[8.0],
            shares: &[0.1, 0.3],
        };
        let job = Job {
            settings: &settings,
            sizes,
            training: Images::synthetic(20, 1200, 1),
            test: Images::synthetic(20, 200, 2),
        };
        let ticks = AtomicU64::new(0);
        let cells = job
            .run(&|finished, total| {
                assert!(finished <= total);
                ticks.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        // Five things are tuned and measured on two draws; two settings have an autopilot.
        assert_eq!(ticks.into_inner(), 5 * 3 + 2 * 2);
        assert_eq!(cells.len(), 2);
        for cell in &cells {
            let noises = (cell.algorithm_1.noise, cell.dp_sgd.noise);
            assert!(noises.0 > noises.1, "fewer private images, each more often in a batch");
            assert!(cell.autopilot.iter().all(|run| run.certified <= 8.0 && run.certified > 7.9));
            let untuned: Vec<f64> = cell.autopilot.iter().map(|run| run.error).collect();
            // A guess is wrong in 0.9 of 200 images, give or take 0.02.
            for errors in [&cell.algorithm_1.errors, &cell.throw_away.errors, &untuned] {
                assert_eq!(errors.len(), 2);
                assert!(errors.iter().all(|error| *error < 0.75), "{errors:?}");
            }
        }
        assert_eq!(cells[0].dp_sgd, cells[1].dp_sgd);
        // What is measured on has other public images and other noise than what was tuned on.
        let [tuned_on, measured_on] = [0, 1].map(|number| job.draw(number));
        assert_ne!(tuned_on.order, measured_on.order);
        assert_ne!(job.seed(8.0, &tuned_on), job.seed(8.0, &measured_on));
        let outcome = outcome::outcome(&CifarSoftmax, &settings, &job.sizes, &cells);
        assert_eq!(outcome.tables[0].rows.len(), 2);
        for table in &outcome.tables {
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.name);
        }
        for (name, chart) in &outcome.charts {
            assert!(chart.svg().unwrap().contains("</svg>"), "{name}");
        }
        assert!(outcome.findings.iter().any(|finding| finding.contains("8-9%")));
    }

    #[test]
    fn missing_images_are_missed_by_name() {
        let settings = Settings { data: Some("/nowhere".into()), ..Settings::new(true, 0, 1) };
        let refused = CifarSoftmax.run(&settings, &|_, _| ()).unwrap_err();
        assert!(
            matches!(&refused, Error::Data(message) if message.contains("data_batch_1.bin")),
            "{refused}"
        );
    }
}
