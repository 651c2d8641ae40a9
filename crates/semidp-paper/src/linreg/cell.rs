//! One setting: tuned on draw 0, measured on the others. Every piece of it can be kept.

use super::autopilot::{Autopiloted, autopilot};
use super::grid::{Configuration, Shared};
use super::prepared::{Lazy, Prepared};
use super::product::{Matrix, Real};
use super::{DELTA, LAW_NAME, Sizes};
use crate::coins::Coins;
use crate::noise::Run;
use crate::parallel::in_order;
use crate::published::{self, Start};
use crate::{Result, Settings};
use semidp_core::Adjacency;
use serde::{Deserialize, Serialize};

/// Runs that are trained together: all weights for eight of the paper's learning rates. It is a constant, so that the
/// number of threads makes no difference to any result.
const TOGETHER: usize = 88;
/// Keeps batches and noise of runs apart from rows.
const RUNS: u64 = 0x7275_6e73;

/// A cell of the paper's tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// The part of all rows that is public.
    pub share: f64,
    pub epsilon: f64,
    pub start: Start,
}

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
    fn grid(self, sizes: &Sizes) -> Vec<Configuration> {
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
}

/// What tuning chose. A rate of 0 stays at the start.
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

/// Everything about one setting.
pub struct Cell {
    pub setting: Setting,
    pub noises: Noises,
    pub tuned: Tuned,
    pub draws: Vec<OnDraw>,
    /// On the same draws.
    pub autopilot: Vec<Autopiloted>,
}

/// Models of one run: the last iterate and the mean of late ones, as differences from the start.
type Pair = [Vec<f32>; 2];

/// A draw with a start and noise, ready to train on.
struct Trainer<'a> {
    sizes: &'a Sizes,
    prepared: &'a Prepared,
    noises: Noises,
    start: Vec<f64>,
    residuals: Vec<f32>,
    seed: u64,
    threads: usize,
}

impl<'a> Trainer<'a> {
    fn new(
        settings: &Settings,
        sizes: &'a Sizes,
        prepared: &'a Prepared,
        setting: Setting,
        noises: Noises,
        number: u64,
    ) -> Self {
        let start = match setting.start {
            Start::Warm => prepared.minimiser.clone(),
            Start::Cold => vec![0.0; prepared.rows.dimension],
        };
        let residuals = prepared.rows.residuals(&start);
        let seed = Coins::new(settings.seed ^ LAW_NAME ^ RUNS, number).word();
        Self { sizes, prepared, noises, start, residuals, seed, threads: settings.threads }
    }

    fn train(&self, algorithm: Algorithm, configurations: &[Configuration]) -> Result<Vec<Pair>> {
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

    fn test_loss(&self, moved: &[f32]) -> f64 {
        let w: Vec<f64> = self.start.iter().zip(moved).map(|(w, v)| w + f64::from(*v)).collect();
        self.prepared.test_loss(&w)
    }

    /// Mean squared residuals of validation rows, a model an entry.
    fn validate(&self, models: &[&[f32]]) -> Vec<f64> {
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
    fn tune(&self) -> Result<Tuned> {
        let mut jobs = Vec::new();
        for algorithm in ALGORITHMS {
            let grid = algorithm.grid(self.sizes);
            jobs.extend(grid.chunks(TOGETHER).map(|some| (algorithm, some.to_vec())));
        }
        let trained = self.train_all(&jobs)?;
        let nothing = vec![0.0; self.start.len()];
        let stay = Choice { rate: 0.0, alpha: 1.0, validation: self.validate(&[&nothing])[0] };
        let mut choices = [[stay; 2]; 3];
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
    fn measure(&self, tuned: &Tuned) -> Result<OnDraw> {
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
        let mut losses = [[self.prepared.test_loss(&self.start); 2]; 3];
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

/// The noise of a setting: what the paper printed where it did, what its tools would have given elsewhere.
pub fn noises(settings: &Settings, sizes: &Sizes, share: f64, epsilon: f64) -> Result<Noises> {
    let emulated = |rows: usize| {
        let name = format!("linreg-noise-rows{rows}-epsilon{epsilon}");
        let run = Run { rows, batch: sizes.batch, steps: sizes.steps };
        settings.piece(&name, || run.as_opacus(epsilon, DELTA))
    };
    let printed = published::noise(share, epsilon).filter(|_| sizes.is_of_paper);
    let private = match printed {
        Some(printed) => printed,
        None => emulated(sizes.rows - sizes.public(share))?,
    };
    Ok(Noises { private, all: emulated(sizes.rows)? })
}

/// How often [`measure`] ticks in a setting: once it is tuned, and twice a draw.
pub fn pieces(sizes: &Sizes) -> u64 {
    1 + 2 * sizes.draws
}

/// Tunes and measures settings; those of one share use the same draws.
pub fn measure(
    settings: &Settings,
    sizes: &Sizes,
    list: &[Setting],
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<Cell>> {
    let mut shares: Vec<f64> = list.iter().map(|setting| setting.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut cells = Vec::new();
    for share in shares {
        let mut own = Vec::new();
        let draw = Lazy::new(sizes, share, settings.seed, 0);
        for setting in list.iter().filter(|setting| setting.share == share) {
            let noises = noises(settings, sizes, share, setting.epsilon)?;
            let tuned = settings.piece(&name(*setting, "tuned"), || {
                Trainer::new(settings, sizes, draw.get()?, *setting, noises, 0).tune()
            })?;
            tick();
            own.push(Cell { setting: *setting, noises, tuned, draws: Vec::new(), autopilot: Vec::new() });
        }
        drop(draw);
        for number in 1..=sizes.draws {
            let draw = Lazy::new(sizes, share, settings.seed, number);
            for cell in &mut own {
                let (setting, noises) = (cell.setting, cell.noises);
                cell.draws.push(settings.piece(&name(setting, &format!("draw{number}")), || {
                    Trainer::new(settings, sizes, draw.get()?, setting, noises, number).measure(&cell.tuned)
                })?);
                tick();
                let adjacency = Adjacency::AddRemove;
                cell.autopilot.push(left_to_itself(
                    settings,
                    sizes,
                    &draw,
                    setting.epsilon,
                    adjacency,
                    number,
                )?);
                tick();
            }
        }
        cells.extend(own);
    }
    // In the order of the list.
    cells.sort_by_key(|cell| list.iter().position(|setting| *setting == cell.setting));
    Ok(cells)
}

/// The autopilot alone, on every draw that is measured.
pub fn on_every_draw(
    settings: &Settings,
    sizes: &Sizes,
    (share, epsilon): (f64, f64),
    adjacency: Adjacency,
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<Autopiloted>> {
    let one = |number: u64| {
        let draw = Lazy::new(sizes, share, settings.seed, number);
        left_to_itself(settings, sizes, &draw, epsilon, adjacency, number).inspect(|_| tick())
    };
    (1..=sizes.draws).map(one).collect()
}

fn left_to_itself(
    settings: &Settings,
    sizes: &Sizes,
    draw: &Lazy<'_>,
    epsilon: f64,
    adjacency: Adjacency,
    number: u64,
) -> Result<Autopiloted> {
    let (algorithm, share) = (super::autopilot::NAME, draw.share());
    let name = format!("linreg-{algorithm}-{}-share{share}-epsilon{epsilon}-draw{number}", adjacency.name());
    settings.piece(&name, || {
        let prepared = draw.get()?;
        let loss = |w: &[f64]| prepared.test_loss(w);
        let seed = Coins::new(settings.seed ^ LAW_NAME, number).word();
        autopilot(&prepared.draw, loss, epsilon, adjacency, sizes.batch, seed, settings.threads)
    })
}

/// The name of a piece.
fn name(setting: Setting, piece: &str) -> String {
    let start = match setting.start {
        Start::Warm => "warm",
        Start::Cold => "cold",
    };
    format!("linreg-{start}-share{}-epsilon{}-{piece}", setting.share, setting.epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linreg::QUICK;
    use std::sync::atomic::{AtomicU64, Ordering};

    const TINY: Sizes = Sizes {
        dimension: 20,
        rows: 300,
        batch: 30,
        public_batch: 8,
        steps: 60,
        validation: 80,
        draws: 2,
        rates: &[0.1, 0.5],
        alphas: &[0.0, 0.5, 1.0],
        ..QUICK
    };

    /// Every algorithm gets the least validation loss of its grid, which is never above that of staying.
    #[test]
    fn choices_are_the_best_of_the_grid_and_threads_make_no_difference() {
        let setting = Setting { share: 0.2, epsilon: 4.0, start: Start::Warm };
        let cold = Setting { start: Start::Cold, ..setting };
        let measured = |threads| {
            let settings = Settings::new(true, 7, threads);
            let ticks = AtomicU64::new(0);
            let tick = || {
                ticks.fetch_add(1, Ordering::Relaxed);
            };
            let cells = measure(&settings, &TINY, &[cold, setting], &tick).unwrap();
            assert_eq!(ticks.into_inner(), 2 * pieces(&TINY));
            cells
        };
        let cells = measured(1);
        assert_eq!((cells[0].setting, cells[1].setting), (cold, setting));
        for (cell, again) in cells.iter().zip(measured(3)) {
            assert_eq!((&cell.tuned, &cell.draws), (&again.tuned, &again.draws));
            assert_eq!(cell.autopilot, again.autopilot);
            assert_eq!((cell.draws.len(), cell.autopilot.len()), (2, 2));
        }
        // Draws are the same for both starts.
        assert_eq!(cells[0].draws[0].throw_away, cells[1].draws[0].throw_away);
        let prepared = Prepared::new(&TINY, 0.2, 7, 0).unwrap();
        let settings = Settings::new(true, 7, 1);
        let trainer = Trainer::new(&settings, &TINY, &prepared, setting, cells[1].noises, 0);
        for (place, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let grid = algorithm.grid(&TINY);
            assert_eq!(grid.len(), if algorithm == Algorithm::One { 6 } else { 2 });
            for (output, choice) in cells[1].tuned.choices[place].iter().enumerate() {
                let stay = trainer.validate(&[&[0.0; 20]])[0];
                let mut least = stay;
                for run in &grid {
                    let pair = &trainer.train(algorithm, std::slice::from_ref(run)).unwrap()[0];
                    least = least.min(trainer.validate(&[&pair[output]])[0]);
                }
                // One by one and together differ by rounding.
                assert!((choice.validation / least - 1.0).abs() < 1e-3, "{algorithm:?} {choice:?} {least}");
            }
        }
    }

    /// One cell of the paper at full size; some minutes, so only on demand, with its times printed.
    #[test]
    #[ignore = "minutes"]
    fn one_full_cell() {
        let sizes = crate::linreg::FULL;
        let settings = Settings::new(false, 0, 2);
        let setting = Setting { share: 0.25, epsilon: 2.0, start: Start::Warm };
        let clock = std::time::Instant::now();
        let tick = || println!("a piece after {:.1} s", clock.elapsed().as_secs_f64());
        let cell = measure(&settings, &sizes, &[setting], &tick).unwrap().remove(0);
        println!("{:?}\n{:?}\n{:?}\n{:?}", cell.noises, cell.tuned, cell.draws, cell.autopilot);
    }
}
