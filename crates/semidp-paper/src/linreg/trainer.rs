//! The three algorithms of the paper's comparison on one draw: tuned over a grid, or measured with what was chosen.

use super::grid::{Configuration, Shared};
use super::prepared::Prepared;
use super::{LAW_NAME, Sizes};
use crate::Result;
use crate::coins::Coins;
use crate::parallel::in_order;
use crate::product::{Matrix, Real};
use crate::published::Start;
use serde::{Deserialize, Serialize};

/// Runs that are trained together: all weights for eight of the paper's learning rates. It is a constant, so that the
/// number of threads makes no difference to any result.
const TOGETHER: usize = 88;
/// Keeps batches and noise of runs apart from rows.
const RUNS: u64 = 0x7275_6e73;

/// What is tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    One,
    PdaMd,
    DpSgd,
}

pub const ALGORITHMS: [Algorithm; 3] = [Algorithm::One, Algorithm::PdaMd, Algorithm::DpSgd];

impl Algorithm {
    /// In a heading.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "algorithm_1",
            Self::PdaMd => "pda_md",
            Self::DpSgd => "dp_sgd",
        }
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Self::One => "Algorithm 1",
            Self::PdaMd => "PDA-MD",
            Self::DpSgd => "DP-SGD",
        }
    }

    /// Where its results stand.
    pub fn place(self) -> usize {
        self as usize
    }

    /// What is tried, besides staying where one starts.
    pub fn grid(self, sizes: &Sizes) -> Vec<Configuration> {
        let alphas = if self == Self::One { sizes.alphas } else { &[1.0] };
        let all = sizes.rates.iter().flat_map(|rate| alphas.iter().map(move |alpha| (*rate, *alpha)));
        all.map(|(rate, alpha)| Configuration { rate, alpha }).collect()
    }
}

/// What becomes the model.
pub const OUTPUTS: [&str; 2] = ["last", "averaged"];

/// Noise multipliers of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noises {
    /// For private rows alone.
    pub private: f64,
    /// For all rows, as DP-SGD has it.
    pub all: f64,
    /// For all private rows at once, in a single step of the same budget.
    pub at_once: f64,
}

/// What tuning chose. A rate of 0 stays at the start, and is throw-away for Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub rate: f64,
    pub alpha: f64,
    /// The mean squared residual of validation rows.
    pub validation: f64,
}

/// By algorithm, then by output.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    pub choices: [[Choice; 2]; 3],
}

/// Test losses on one draw.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OnDraw {
    pub throw_away: f64,
    /// By algorithm, then by output, each with what was chosen for it.
    pub losses: [[f64; 2]; 3],
}

/// Models of one run: the last iterate and the mean of late ones, as differences from the start.
pub type Pair = [Vec<f32>; 2];

/// A draw with a start and noise, ready to train on.
pub struct Trainer<'a> {
    sizes: &'a Sizes,
    prepared: &'a Prepared,
    noises: Noises,
    start: Vec<f64>,
    averaged_after: u64,
    residuals: Vec<f32>,
    seed: u64,
    threads: usize,
}

impl<'a> Trainer<'a> {
    pub fn new(
        seed: u64,
        threads: usize,
        sizes: &'a Sizes,
        prepared: &'a Prepared,
        start: Start,
        noises: Noises,
        number: u64,
    ) -> Self {
        // From a cold start most iterates are still on the way.
        let (start, averaged_after) = match start {
            Start::Warm => (prepared.minimiser.clone(), sizes.steps / 5),
            Start::Cold => (vec![0.0; prepared.rows.dimension], sizes.steps - sizes.steps / 5),
        };
        let residuals = prepared.rows.residuals(&start);
        let seed = Coins::new(seed ^ LAW_NAME ^ RUNS, number).word();
        Self { sizes, prepared, noises, start, averaged_after, residuals, seed, threads }
    }

    pub fn train(&self, algorithm: Algorithm, configurations: &[Configuration]) -> Result<Vec<Pair>> {
        let (public, all) = (self.prepared.public, self.prepared.rows.len());
        let mirror = match algorithm {
            Algorithm::PdaMd => Some(self.prepared.mirror(self.threads)?),
            _ => None,
        };
        let shared = Shared {
            rows: &self.prepared.rows,
            residuals: &self.residuals,
            private: if algorithm == Algorithm::DpSgd { 0..all } else { public..all },
            public: if algorithm == Algorithm::One { 0..public } else { 0..0 },
            mirrored: mirror.map(|mirror| &mirror.rows[..]),
            batch: self.sizes.batch,
            public_batch: self.sizes.public_batch,
            steps: self.sizes.steps,
            averaged_after: self.averaged_after,
            noise: if algorithm == Algorithm::DpSgd { self.noises.all } else { self.noises.private },
            seed: self.seed,
        };
        let ends = shared.run(configurations);
        let in_weights = |ends: Vec<f32>| match mirror {
            Some(mirror) => mirror.preconditioner.rows(&ends, 1),
            None => ends,
        };
        let pairs = ends.last.into_iter().zip(ends.averaged);
        Ok(pairs.map(|(last, averaged)| [in_weights(last), in_weights(averaged)]).collect())
    }

    /// Several jobs on several threads; an entry a run, in order.
    fn train_all(&self, jobs: &[(Algorithm, Vec<Configuration>)]) -> Result<Vec<Vec<Pair>>> {
        if jobs.iter().any(|job| job.0 == Algorithm::PdaMd) {
            // Once, and on all threads.
            self.prepared.mirror(self.threads)?;
        }
        in_order(jobs.len() as u64, self.threads, &|_| (), |number| {
            let (algorithm, configurations) = &jobs[number as usize];
            self.train(*algorithm, configurations)
        })
    }

    /// What an algorithm gives with a learning rate of 0: its start. Algorithm 1 gives public rows all the weight instead,
    /// which is throw-away: from a cold start the paper prints the figures of throw-away for it where nothing was better.
    fn still(&self, algorithm: Algorithm) -> &[f64] {
        if algorithm == Algorithm::One { &self.prepared.minimiser } else { &self.start }
    }

    fn test_loss(&self, moved: &[f32]) -> f64 {
        let w: Vec<f64> = self.start.iter().zip(moved).map(|(w, v)| w + f64::from(*v)).collect();
        self.prepared.test_loss(&w)
    }

    /// Mean squared residuals of validation rows, a model an entry.
    pub fn validate(&self, models: &[&[f32]]) -> Vec<f64> {
        let rows = &self.prepared.validation;
        let residuals = rows.residuals(&self.start);
        let together: Vec<f32> = models.concat();
        let mut scores = vec![0.0f32; rows.len() * models.len()];
        let columns = Matrix::new(&together, rows.dimension).transposed();
        f32::add_product(1.0, Matrix::new(&rows.features, rows.dimension), columns, &mut scores);
        let loss = |model: usize| {
            let of_model = scores.iter().skip(model).step_by(models.len());
            let squares = residuals.iter().zip(of_model).map(|(r, score)| f64::from(r + score).powi(2));
            let mean = squares.sum::<f64>() / rows.len().max(1) as f64;
            if mean.is_finite() { mean } else { f64::INFINITY }
        };
        (0..models.len()).map(loss).collect()
    }

    /// The grid search, on validation rows: what it chooses is no longer private.
    pub fn tune(&self) -> Result<Tuned> {
        let mut jobs = Vec::new();
        for algorithm in ALGORITHMS {
            let grid = algorithm.grid(self.sizes);
            jobs.extend(grid.chunks(TOGETHER).map(|some| (algorithm, some.to_vec())));
        }
        let trained = self.train_all(&jobs)?;
        let mut choices = ALGORITHMS.map(|algorithm| {
            let still = self.still(algorithm);
            let moved: Vec<f32> =
                still.iter().zip(&self.start).map(|(w, start)| (w - start) as f32).collect();
            [Choice { rate: 0.0, alpha: 1.0, validation: self.validate(&[&moved])[0] }; 2]
        });
        for ((algorithm, configurations), pairs) in jobs.iter().zip(&trained) {
            let place = algorithm.place();
            for (output, best) in choices[place].iter_mut().enumerate() {
                let models: Vec<&[f32]> = pairs.iter().map(|pair| &pair[output][..]).collect();
                for (Configuration { rate, alpha }, validation) in
                    configurations.iter().zip(self.validate(&models))
                {
                    if validation < best.validation {
                        *best = Choice { rate: *rate, alpha: *alpha, validation };
                    }
                }
            }
        }
        Ok(Tuned { choices })
    }

    /// What was chosen elsewhere, on this draw.
    pub fn measure(&self, tuned: &Tuned) -> Result<OnDraw> {
        let chosen = |place: usize| {
            tuned.choices[place].map(|Choice { rate, alpha, .. }| Configuration { rate, alpha })
        };
        let mut jobs = Vec::new();
        for algorithm in ALGORITHMS {
            let [last, averaged] = chosen(algorithm.place());
            let mut runs = vec![last];
            runs.extend(Some(averaged).filter(|run| *run != last));
            // Who stays at the start need not run.
            runs.retain(|run| run.rate > 0.0);
            jobs.push((algorithm, runs));
        }
        jobs.retain(|(_, runs)| !runs.is_empty());
        let trained = self.train_all(&jobs)?;
        let mut losses = ALGORITHMS.map(|algorithm| [self.prepared.test_loss(self.still(algorithm)); 2]);
        for ((algorithm, runs), pairs) in jobs.iter().zip(&trained) {
            let place = algorithm.place();
            for (output, loss) in losses[place].iter_mut().enumerate() {
                let found = runs.iter().position(|run| *run == chosen(place)[output]);
                if let Some(number) = found {
                    *loss = self.test_loss(&pairs[number][output]);
                }
            }
        }
        Ok(OnDraw { throw_away: self.prepared.test_loss(&self.prepared.minimiser), losses })
    }
}
