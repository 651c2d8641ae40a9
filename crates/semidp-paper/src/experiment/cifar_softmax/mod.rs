//! The paper's logistic regression on CIFAR-10 (`app:cifar10-setup`): softmax regression on flattened images, Algorithm 1
//! against DP-SGD and throw-away, from zero, in batches of 256.
//!
//! As in the paper, step size and weight are chosen on validation images, of which no budget knows: these columns leak,
//! and their noise is emulated (see [`engine`]). The autopilot stands beside them; it chooses nothing on private or
//! validation images, goes through the kernel, and has a certificate.

mod engine;
mod images;
mod outcome;

use super::Experiment;
use crate::autopilot::{self, trained};
use crate::coins::Coins;
use crate::files::Folder;
use crate::{Error, Outcome, Result, Settings};
use engine::{Choice, Grid, OUTPUTS, right};
use images::{CLASSES, Images};
use semidp::domain::Everywhere;
use semidp::loss::Softmax;
use semidp::train::{Given, PublicRows, Recipe, noise_for};
use semidp_accounting::PrivacyBudget;
use semidp_core::{
    Adjacency, Delta, DenseTable, Epsilon, NoiseMultiplier, Public, SampleRate, Sampling, Steps,
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

const DELTA: f64 = 1e-6;
const ADJACENCY: Adjacency = Adjacency::AddRemove;
const BATCH: usize = 256;
const CLIP_NORM: f64 = 1.0;
/// A part of the paper's grid, for Algorithm 1,
const RATES: [f64; 5] = [0.05, 0.1, 0.25, 0.5, 1.0];
const ALPHAS: [f64; 7] = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0];
const ALGORITHM_1_RIDGES: [f64; 2] = [0.0, 1e-2];
/// for DP-SGD, whose noise is all of its step,
const DP_SGD_RATES: [f64; 8] = [0.01, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0];
/// and for throw-away, whose gradients are not clipped and so longer.
const THROW_AWAY_RATES: [f64; 4] = [0.003, 0.01, 0.03, 0.1];
const RIDGES: [f64; 4] = [0.0, 1e-3, 1e-2, 1e-1];

/// How much is done.
struct Sizes {
    /// The first images are trained on.
    training: usize,
    /// Those of the last published file.
    validation: Range<usize>,
    test: usize,
    steps: u64,
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
                steps: 250,
                epsilons: &[2.0],
                shares: &[0.04, 0.3],
            },
            false => Self {
                training: 40_000,
                validation: 40_000..50_000,
                test: 10_000,
                steps: 2000,
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

/// The best of a grid for the validation images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Chosen {
    choice: Choice,
    output: String,
    validation_error: f64,
    /// `1` for each test image that it gets right, `0` for the others.
    right: String,
}

/// An untuned run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Untuned {
    right: String,
    certified: f64,
}

/// One ε and one share of public images.
struct Cell {
    epsilon: f64,
    share: f64,
    /// Of private images for Algorithm 1, and of all images for DP-SGD.
    noise: f64,
    dp_sgd_noise: f64,
    algorithm_1: Chosen,
    dp_sgd: Chosen,
    throw_away: Chosen,
    autopilot: Option<Untuned>,
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
        let sizes = &self.sizes;
        let (epsilons, shares) = (sizes.epsilons.len() as u64, sizes.shares.len() as u64);
        let total = epsilons + shares + 2 * epsilons * shares;
        let mut finished = 0;
        let mut step = || {
            finished += 1;
            progress(finished, total);
        };
        // The images in a random order; public ones are the first, those of a small share among those of a large.
        let order = Coins::new(self.settings.seed, 0).shuffled(sizes.training);
        let throw_away: Vec<Chosen> = sizes
            .shares
            .iter()
            .map(|share| {
                let chosen = self.throw_away(*share, &order[..sizes.public(*share)]);
                step();
                chosen
            })
            .collect::<Result<_>>()?;
        let mut cells = Vec::new();
        for epsilon in sizes.epsilons {
            let (dp_sgd_noise, dp_sgd) = self.tuned(*epsilon, None, &order)?;
            step();
            for (share, throw_away) in sizes.shares.iter().zip(&throw_away) {
                let (noise, algorithm_1) = self.tuned(*epsilon, Some(*share), &order)?;
                step();
                let autopilot = self.autopilot(*epsilon, *share, &order)?;
                step();
                cells.push(Cell {
                    epsilon: *epsilon,
                    share: *share,
                    noise,
                    dp_sgd_noise,
                    algorithm_1,
                    dp_sgd: dp_sgd.clone(),
                    throw_away: throw_away.clone(),
                    autopilot,
                });
            }
        }
        Ok(cells)
    }

    fn budget(epsilon: f64) -> Result<PrivacyBudget> {
        Ok(PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(DELTA)? })
    }

    /// The multiplier that the kernel would have for so many private images.
    fn noise(&self, epsilon: f64, private: usize) -> Result<NoiseMultiplier> {
        let sampling = Sampling::Poisson { rate: SampleRate::new(BATCH as f64 / private as f64)? };
        let steps = Steps::new(self.sizes.steps)?;
        Ok(noise_for(Self::budget(epsilon)?, ADJACENCY, sampling, steps, private as u64)?)
    }

    /// Algorithm 1 with a share of public images, or DP-SGD, to which all are private; and its noise multiplier.
    fn tuned(&self, epsilon: f64, share: Option<f64>, order: &[usize]) -> Result<(f64, Chosen)> {
        let (public, private) = order.split_at(share.map_or(0, |share| self.sizes.public(share)));
        let noise = self.noise(epsilon, private.len())?.get();
        let plain = |rate: f64| Choice { rate, alpha: 1.0, l2: 0.0 };
        let choices: Vec<Choice> = match share {
            Some(_) => {
                let weighted = RATES.into_iter().flat_map(|rate| ALPHAS.map(|alpha| (rate, alpha)));
                let held = |(rate, alpha)| ALGORITHM_1_RIDGES.map(|l2| Choice { rate, alpha, l2 });
                weighted.flat_map(held).collect()
            }
            None => DP_SGD_RATES.map(plain).to_vec(),
        };
        let name = match share {
            Some(share) => format!("cifar-softmax-algorithm-1-{epsilon}-{share}"),
            None => format!("cifar-softmax-dp-sgd-{epsilon}"),
        };
        let grid = Grid {
            images: &self.training,
            private,
            public,
            sample_rate: BATCH as f64 / private.len() as f64,
            batch: BATCH as f64,
            public_batch: BATCH,
            clip_norm: Some(CLIP_NORM),
            noise_std: noise * CLIP_NORM,
            steps: self.sizes.steps,
            // The same noise for every share and for DP-SGD: what differs is what they make of it.
            seed: self.settings.seed ^ epsilon.to_bits(),
        };
        Ok((noise, self.settings.piece(&name, || self.best(&grid, &choices))?))
    }

    /// SGD on public images alone, as the paper's, without clipping.
    fn throw_away(&self, share: f64, public: &[usize]) -> Result<Chosen> {
        let grid = Grid {
            images: &self.training,
            private: &[],
            public,
            sample_rate: 0.0,
            batch: BATCH as f64,
            public_batch: BATCH,
            clip_norm: None,
            noise_std: 0.0,
            steps: self.sizes.steps,
            seed: self.settings.seed ^ share.to_bits(),
        };
        let choice = |rate: f64, l2: f64| Choice { rate, alpha: 0.0, l2 };
        let choices: Vec<Choice> =
            THROW_AWAY_RATES.into_iter().flat_map(|rate| RIDGES.map(|l2| choice(rate, l2))).collect();
        self.settings.piece(&format!("cifar-softmax-throw-away-{share}"), || self.best(&grid, &choices))
    }

    /// Trains a grid and keeps what is best on the validation images.
    fn best(&self, grid: &Grid<'_>, choices: &[Choice]) -> Result<Chosen> {
        let threads = self.settings.threads;
        let finished = grid.train(choices, threads)?;
        let validation: Vec<usize> = self.sizes.validation.clone().collect();
        let found = right(&self.training, &validation, &finished, threads)?;
        let each = found.iter().enumerate().flat_map(|(choice, outputs)| {
            outputs.iter().enumerate().map(move |(output, right)| (choice, output, error_of(right)))
        });
        let (choice, output, validation_error) =
            each.min_by(|a, b| a.2.total_cmp(&b.2)).unwrap_or((0, 0, 1.0));
        let test: Vec<usize> = (0..self.sizes.test).collect();
        let right = right(&self.test, &test, &finished, threads)?;
        Ok(Chosen {
            choice: choices[choice],
            output: OUTPUTS[output].into(),
            validation_error,
            right: text(&right[choice][output]),
        })
    }

    /// The library without tuning, through the kernel. None where it cannot yet train so many weights.
    fn autopilot(&self, epsilon: f64, share: f64, order: &[usize]) -> Result<Option<Untuned>> {
        let (public, private) = order.split_at(self.sizes.public(share));
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
        let name = format!("cifar-softmax-{}-{epsilon}-{share}", autopilot::NAME);
        let untuned = self.settings.piece(&name, || {
            let width = self.training.width();
            let table = |images: &[usize]| DenseTable::new(self.training.labelled(images), width);
            let known = PublicRows::load(&Public(table(public)?))?;
            let seed = self.settings.seed ^ epsilon.to_bits();
            let private = Box::new(table(private)?);
            let trained =
                trained(autopilot::NAME, &recipe, private, Some(known), seed, self.settings.threads)?;
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
            Ok(Untuned { right: text(&right), certified })
        })?;
        Ok(Some(untuned))
    }
}

/// The share of images that are not right.
fn error_of(right: &[bool]) -> f64 {
    1.0 - right.iter().filter(|is_right| **is_right).count() as f64 / right.len() as f64
}

/// One letter an image.
fn text(right: &[bool]) -> String {
    right.iter().map(|is_right| if *is_right { '1' } else { '0' }).collect()
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
            steps: 20,
            epsilons: &[8.0],
            shares: &[0.1, 0.3],
        };
        let job = Job {
            settings: &settings,
            sizes,
            training: Images::synthetic(20, 1200, 1),
            test: Images::synthetic(20, 200, 2),
        };
        let cells = job.run(&|_, _| ()).unwrap();
        assert_eq!(cells.len(), 2);
        for cell in &cells {
            assert!(cell.noise > cell.dp_sgd_noise, "fewer private images, each more often in a batch");
            let untuned = cell.autopilot.as_ref().unwrap();
            assert!(untuned.certified <= 8.0 && untuned.certified > 7.9, "{}", untuned.certified);
            // Of ten classes: far better than a guess.
            for right in [&cell.algorithm_1.right, &cell.throw_away.right, &untuned.right] {
                assert_eq!(right.len(), 200);
                assert!(right.matches('1').count() > 100, "{right}");
            }
        }
        assert_eq!(cells[0].dp_sgd, cells[1].dp_sgd);
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
