//! How much PDA-MD depends on the regularisation of its public Hessian (`fig:hessian_reg`): on the data law of Amid et al.
//! (2022), whose second moments are singular, and on the paper's own, whose are the identity.
//!
//! PDA-MD moves by η(H/λ_min(H))⁻¹g with H = XᵀX/n_pub + (reg/d)I, g a noised private gradient. Its learning rate is either
//! tuned anew for every regularisation, or kept as tuned for the paper's 0.01. Algorithm 1 has no Hessian: a level line,
//! once with the weight of the formula and once with the best of some, which the paper tunes as well.

mod outcome;

use super::Experiment;
use crate::coins::Coins;
use crate::parallel::in_order;
use crate::regression::{Draw, Features, Law};
use crate::{Outcome, Result, Settings};
use semidp::domain::Everywhere;
use semidp::loss::Squared;
use semidp::train::{Alpha, Average, MirrorMap, Model, PublicGradient, Sgd, StepSize, UpdateRule, noise_for};
use semidp_accounting::PrivacyBudget;
use semidp_core::{
    Adjacency, Delta, Epsilon, NoiseMultiplier, Private, Randomness, SampleRate, Sampling, Session, Steps,
};
use std::sync::atomic::{AtomicU64, Ordering};

const EPSILON: f64 = 2.0;
const DELTA: f64 = 1e-5;
const ADJACENCY: Adjacency = Adjacency::ReplaceOne;
/// The paper's, and its original authors'.
const USUAL: f64 = 0.01;
const PUBLIC_BATCH: usize = 200;
/// Weights of private gradients that Algorithm 1 is tuned over, beside that of the formula.
const WEIGHTS: [f64; 4] = [0.3, 0.6, 0.9, 1.0];

/// A data law, and how it is trained on.
struct Panel {
    file: &'static str,
    title: &'static str,
    law: Law,
    private: usize,
    public: usize,
    /// K.
    batch: f64,
    /// T.
    steps: u64,
    regularisations: &'static [f64],
    /// Of PDA-MD.
    learning_rates: &'static [f64],
    /// Of Algorithm 1.
    plain_learning_rates: &'static [f64],
    /// Beside the one that learning rates are tuned on.
    draws: u64,
}

const COUNTED: Panel = Panel {
    file: "hessian-regularisation-fixed-counts",
    title: "features of Amid et al.",
    law: Law { features: Features::FixedCounts, dimension: 500, label_std: 0.1 },
    private: 10_000,
    public: 750,
    batch: 500.0,
    steps: 500,
    regularisations: &[1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0],
    learning_rates: &[10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7],
    plain_learning_rates: &[1.0, 3.0, 10.0, 30.0, 100.0],
    draws: 5,
};

const NORMAL: Panel = Panel {
    file: "hessian-regularisation-normal",
    title: "the paper's normal features",
    law: Law { features: Features::Normal, dimension: 2000, label_std: 1.0 },
    private: 27_000,
    public: 3_000,
    batch: 500.0,
    steps: 300,
    regularisations: &[1e-2, 1.0, 10.0, 100.0, 1e3, 1e4],
    learning_rates: &[0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
    plain_learning_rates: &[0.01, 0.03, 0.1, 0.3],
    draws: 3,
};

/// The same at sizes for a minute: rows to columns as before.
const PANELS: [Panel; 2] = [COUNTED, NORMAL];
const QUICK_PANELS: [Panel; 2] = [
    Panel { steps: 200, learning_rates: &[10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7], draws: 2, ..COUNTED },
    Panel {
        law: Law { dimension: 200, ..NORMAL.law },
        private: 2_700,
        public: 300,
        batch: 50.0,
        draws: 2,
        ..NORMAL
    },
];

/// The experiment.
pub struct HessianRegularisation;

impl Experiment for HessianRegularisation {
    fn name(&self) -> &'static str {
        "hessian-regularisation"
    }

    fn title(&self) -> &'static str {
        "How much PDA-MD depends on the regularisation of its Hessian"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let panels = if settings.quick { &QUICK_PANELS } else { &PANELS };
        let total = panels.iter().map(Panel::runs).sum();
        let finished = AtomicU64::new(0);
        let tick = || progress(finished.fetch_add(1, Ordering::Relaxed) + 1, total);
        let measured = panels.iter().map(|panel| panel.measure(settings, &tick));
        Ok(outcome::outcome(self, settings, &measured.collect::<Result<Vec<_>>>()?))
    }
}

/// What a panel gives.
struct Measured<'a> {
    panel: &'a Panel,
    noise: NoiseMultiplier,
    /// Of the Hessian of the draw that is tuned on, a regularisation an entry.
    least_eigenvalues: Vec<f64>,
    /// The test loss on that draw, by regularisation and learning rate.
    grid: Vec<Vec<f64>>,
    /// Learning rates that are best there.
    best: Vec<f64>,
    /// The one for the usual regularisation.
    fixed: f64,
    /// Of Algorithm 1, with the weight of the formula.
    plain: f64,
    /// The best weight of Algorithm 1, and the learning rate with it.
    weighted: (Alpha, f64),
    draws: Vec<OnDraw>,
    /// The largest that a certificate said.
    certified: f64,
}

/// Test losses on one draw.
struct OnDraw {
    /// By regularisation, with learning rates tuned for each.
    tuned: Vec<f64>,
    /// With the fixed learning rate.
    fixed: Vec<f64>,
    algorithm_1: f64,
    /// With the weight that was tuned.
    algorithm_1_tuned: f64,
    throw_away: f64,
}

/// A draw with everything that its runs share.
struct Shared<'a> {
    panel: &'a Panel,
    noise: NoiseMultiplier,
    draw: Draw,
    start: Model,
    clip_norm: f64,
    seed: u64,
}

/// The test loss of a run, and the ε of its certificate.
type Run = (f64, f64);

impl Panel {
    /// Trainings in all, for the progress.
    fn runs(&self) -> u64 {
        let tuning = self.regularisations.len() * self.learning_rates.len()
            + (1 + WEIGHTS.len()) * self.plain_learning_rates.len();
        tuning as u64 + self.draws * (2 * self.regularisations.len() as u64 + 2)
    }

    fn rate(&self) -> Result<SampleRate> {
        Ok(SampleRate::new(self.batch / self.private as f64)?)
    }

    fn noise(&self) -> Result<NoiseMultiplier> {
        let budget =
            PrivacyBudget::Approximate { epsilon: Epsilon::new(EPSILON)?, delta: Delta::new(DELTA)? };
        let sampling = Sampling::Poisson { rate: self.rate()? };
        Ok(noise_for(budget, ADJACENCY, sampling, Steps::new(self.steps)?, self.private as u64)?)
    }

    fn share(&self, noise: NoiseMultiplier, seed: u64, number: u64) -> Result<Shared<'_>> {
        let mut coins = Coins::new(seed ^ self.law.dimension as u64, number);
        let draw = self.law.draw(self.public, self.private, &mut coins)?;
        let start = draw.public_minimiser();
        let clip_norm = draw.median_gradient(&start);
        Ok(Shared { panel: self, noise, draw, start, clip_norm, seed: coins.word() })
    }

    fn measure(&self, settings: &Settings, tick: &(dyn Fn() + Sync)) -> Result<Measured<'_>> {
        let noise = self.noise()?;
        let count = self.regularisations.len() as u64;
        let shared = self.share(noise, settings.seed, 0)?;
        let tuned = in_order(count, settings.threads, &|_| (), |i| {
            let map = shared.map(self.regularisations[i as usize])?;
            let runs = shared.all(self.learning_rates, |rate| shared.pda_md(&map, rate), tick)?;
            Ok((map.least_eigenvalue(), runs))
        })?;
        let weights: Vec<Alpha> = std::iter::once(Alpha::Horizon).chain(WEIGHTS.map(Alpha::Given)).collect();
        let mixed = in_order(weights.len() as u64, settings.threads, &|_| (), |i| {
            let run = |rate| shared.algorithm_1(weights[i as usize], rate);
            shared.all(self.plain_learning_rates, run, tick)
        })?;
        let plain = best(self.plain_learning_rates, &mixed[0]);
        let weighted = weights.iter().zip(&mixed).min_by(|a, b| least(a.1).total_cmp(&least(b.1)));
        let weighted = weighted.map_or((Alpha::Horizon, plain), |(weight, runs)| {
            (*weight, best(self.plain_learning_rates, runs))
        });
        let rates: Vec<f64> = tuned.iter().map(|(_, runs)| best(self.learning_rates, runs)).collect();
        let usual = self.regularisations.iter().position(|regularisation| *regularisation == USUAL);
        let fixed = rates[usual.unwrap_or(0)];
        let mut certified = tuned.iter().flat_map(|(_, runs)| runs).map(|run| run.1).fold(0.0, f64::max);
        let mut draws = Vec::new();
        for number in 1..=self.draws {
            let shared = self.share(noise, settings.seed, number)?;
            let runs = in_order(count + 1, settings.threads, &|_| (), |i| {
                let Some(regularisation) = self.regularisations.get(i as usize) else {
                    let first =
                        shared.all(&[plain], |rate| shared.algorithm_1(Alpha::Horizon, rate), tick)?;
                    let run = |rate| shared.algorithm_1(weighted.0, rate);
                    return Ok([first, shared.all(&[weighted.1], run, tick)?].concat());
                };
                let map = shared.map(*regularisation)?;
                shared.all(&[rates[i as usize], fixed], |rate| shared.pda_md(&map, rate), tick)
            })?;
            certified = runs.iter().flatten().map(|run| run.1).fold(certified, f64::max);
            let (theirs, ours) = runs.split_at(count as usize);
            draws.push(OnDraw {
                tuned: theirs.iter().map(|runs| runs[0].0).collect(),
                fixed: theirs.iter().map(|runs| runs[1].0).collect(),
                algorithm_1: ours[0][0].0,
                algorithm_1_tuned: ours[0][1].0,
                throw_away: self.law.test_loss(&shared.draw.truth, &shared.start.weights),
            });
        }
        Ok(Measured {
            panel: self,
            noise,
            least_eigenvalues: tuned.iter().map(|(least, _)| *least).collect(),
            grid: tuned.into_iter().map(|(_, runs)| runs.into_iter().map(|run| run.0).collect()).collect(),
            best: rates,
            fixed,
            plain,
            weighted,
            draws,
            certified,
        })
    }
}

/// The learning rate of the least loss.
fn best(learning_rates: &[f64], runs: &[Run]) -> f64 {
    let pairs = learning_rates.iter().zip(runs);
    pairs.min_by(|a, b| a.1.0.total_cmp(&b.1.0)).map_or(f64::NAN, |(rate, _)| *rate)
}

/// The least loss.
fn least(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.0).fold(f64::INFINITY, f64::min)
}

impl Shared<'_> {
    fn map(&self, regularisation: f64) -> Result<MirrorMap<'_>> {
        Ok(MirrorMap::new(&Squared, &self.draw.public, &self.start, regularisation)?)
    }

    fn all(
        &self,
        learning_rates: &[f64],
        run: impl Fn(f64) -> Result<Run>,
        tick: &(dyn Fn() + Sync),
    ) -> Result<Vec<Run>> {
        learning_rates.iter().map(|rate| run(*rate).inspect(|_| tick())).collect()
    }

    fn pda_md(&self, map: &MirrorMap<'_>, learning_rate: f64) -> Result<Run> {
        self.run(Box::new(map.clone().descent(learning_rate)), None)
    }

    fn algorithm_1(&self, alpha: Alpha, learning_rate: f64) -> Result<Run> {
        self.run(Box::new(StepSize::Constant(learning_rate)), Some(alpha))
    }

    /// With a weight, public gradients are mixed in.
    fn run(&self, update: Box<dyn UpdateRule + '_>, alpha: Option<Alpha>) -> Result<Run> {
        let panel = self.panel;
        let session = Session::new(Private::new(self.draw.private.clone()), ADJACENCY)?
            .with_randomness(Randomness::Seed(self.seed))
            .with_threads(1);
        let sgd = Sgd {
            loss: &Squared,
            start: self.start.clone(),
            steps: Steps::new(panel.steps)?,
            sampling: Sampling::Poisson { rate: panel.rate()? },
            batch: panel.batch,
            private_rows: panel.private as f64,
            clip_norm: self.clip_norm,
            noise_multiplier: self.noise,
            public_batch: PUBLIC_BATCH.min(panel.public),
            public_gradient: PublicGradient::Clip,
            alpha: alpha.unwrap_or(Alpha::Given(1.0)),
            update,
            average: Average::Last,
            domain: &Everywhere,
            l2: 0.0,
            public_l2: 0.0,
            public_seed: 1,
        };
        let public = Some(&self.draw.public).filter(|_| alpha.is_some());
        let trained = sgd.train(&session, public, Delta::new(DELTA)?, &mut |_, _| ())?;
        let loss = panel.law.test_loss(&self.draw.truth, &trained.model.weights);
        // A run that left the numbers has lost.
        let loss = if loss.is_nan() { f64::INFINITY } else { loss };
        Ok((loss, trained.certificate.guarantee.epsilon.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Panel = Panel {
        law: Law { dimension: 20, ..NORMAL.law },
        private: 300,
        public: 40,
        batch: 30.0,
        steps: 12,
        regularisations: &[USUAL, 10.0],
        learning_rates: &[0.1, 1.0, 10.0],
        plain_learning_rates: &[0.1, 1.0],
        draws: 2,
        ..NORMAL
    };

    fn measured(threads: usize) -> (Measured<'static>, u64) {
        let ticks = AtomicU64::new(0);
        let tick = || {
            ticks.fetch_add(1, Ordering::Relaxed);
        };
        let found = TINY.measure(&Settings::new(true, 2, threads), &tick).unwrap();
        (found, ticks.into_inner())
    }

    /// Within the budget, every learning rate the best of its row, tables with the promised columns, all progress told.
    #[test]
    fn a_tiny_panel_is_complete() {
        let (found, ticks) = measured(2);
        assert_eq!(ticks, TINY.runs());
        assert!(found.certified <= EPSILON && found.certified > 0.99 * EPSILON, "{}", found.certified);
        for (row, best) in found.grid.iter().zip(&found.best) {
            let at = TINY.learning_rates.iter().position(|rate| rate == best).unwrap();
            assert!(row.iter().all(|loss| row[at] <= *loss));
        }
        assert_eq!((found.fixed, found.draws.len()), (found.best[0], 2));
        // At the usual regularisation both learning rates are one, and so are the runs.
        assert!(found.draws.iter().all(|draw| draw.tuned[0] == draw.fixed[0]));
        let settings = Settings::new(true, 2, 1);
        let outcome = outcome::outcome(&HessianRegularisation, &settings, &[found]);
        let headings: Vec<&str> = outcome.tables[0].headings.iter().map(String::as_str).collect();
        assert_eq!(
            headings[..4],
            ["regularisation", "least_eigenvalue", "tuned_learning_rate", "pda_md_tuned"]
        );
        assert_eq!(outcome.tables[1].headings.len(), 1 + TINY.learning_rates.len());
        for table in &outcome.tables {
            assert_eq!(table.rows.len(), 2);
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.name);
        }
        assert!(outcome.charts[0].1.svg().unwrap().contains("</svg>"));
    }

    #[test]
    fn results_do_not_depend_on_threads() {
        let losses = |threads| {
            let (found, _) = measured(threads);
            let draws = found
                .draws
                .into_iter()
                .map(|draw| (draw.tuned, draw.fixed, [draw.algorithm_1, draw.algorithm_1_tuned]));
            (found.grid, draws.collect::<Vec<_>>())
        };
        assert_eq!(losses(1), losses(3));
    }

    /// Rows with fixed counts leave one direction without second moment, so that the least eigenvalue of the Hessian is
    /// what regularisation puts there; with normal features it is not.
    #[test]
    fn regularisation_is_the_least_eigenvalue_where_counts_are_fixed() {
        for regularisation in [1e-4, 1e-3] {
            let counted =
                Panel { law: Law { dimension: 250, ..COUNTED.law }, public: 400, private: 1, ..COUNTED };
            let least = |panel: &Panel| {
                let shared = panel.share(NoiseMultiplier::new(1.0).unwrap(), 1, 0).unwrap();
                shared.map(regularisation).unwrap().least_eigenvalue()
            };
            let added = regularisation / 250.0;
            assert!((least(&counted) / added - 1.0).abs() < 1e-3, "{}", least(&counted));
            assert!(least(&TINY) > 2.0 * regularisation / 20.0, "{}", least(&TINY));
        }
    }

    /// Both sizes of both panels have the usual regularisation, and a quick one is no longer than a full one.
    #[test]
    fn panels_are_as_described() {
        for (full, quick) in PANELS.iter().zip(&QUICK_PANELS) {
            assert!(full.regularisations.contains(&USUAL) && quick.regularisations.contains(&USUAL));
            assert_eq!(full.private * quick.law.dimension, quick.private * full.law.dimension);
            assert_eq!(full.public * quick.law.dimension, quick.public * full.law.dimension);
            assert!(quick.runs() <= full.runs() && quick.draws >= 2);
        }
    }
}
