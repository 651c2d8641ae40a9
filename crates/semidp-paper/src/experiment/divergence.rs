//! The paper's small problem on which DP-SGD diverges and Algorithm 1 does not (`fig:special_case`): d = 50, 900 private
//! and 100 public rows, ε = 0.01, δ = 1e-5.
//!
//! The paper does not say how many steps, how long, how batches are drawn or where gradients are clipped. Here both
//! algorithms take the same steps from zero on all rows at once, with the noise that their budget asks for. Every length
//! of step is tried on both, so that none was chosen to make either look bad.

mod outcome;

use super::Experiment;
use crate::coins::Coins;
use crate::parallel::in_order;
use crate::regression::{Draw, Features, Law};
use crate::{Outcome, Result, Settings};
use semidp::domain::Everywhere;
use semidp::loss::Squared;
use semidp::train::{Alpha, Average, Model, PublicGradient, PublicRows, Sgd, StepSize, Trained, noise_for};
use semidp_accounting::PrivacyBudget;
use semidp_core::{
    Adjacency, BlockSource, Budget, Delta, Epsilon, NoiseMultiplier, Private, Randomness, Sampling, Session,
    Steps,
};

const LAW: Law = Law { features: Features::Normal, dimension: 50, label_std: 1.0 };
const PRIVATE: usize = 900;
const PUBLIC: usize = 100;
const EPSILON: f64 = 0.01;
const DELTA: f64 = 1e-5;
const ADJACENCY: Adjacency = Adjacency::ReplaceOne;
const STEPS: u64 = 500;
/// The paper clips at 1 in all its experiments.
const CLIP_NORM: f64 = 1.0;
/// Lengths of steps that are tried; the curves are those of one of them.
const STEP_SIZES: [f64; 11] = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.5, 1.0];
const SHOWN: usize = 9;
/// Steps from one point of a curve to the next.
const STRIDE: u64 = 10;
const SEEDS: u64 = 20;
const QUICK_SEEDS: u64 = 4;

/// The experiment.
pub struct Divergence;

impl Experiment for Divergence {
    fn name(&self) -> &'static str {
        "divergence"
    }

    fn title(&self) -> &'static str {
        "A budget at which DP-SGD diverges and Algorithm 1 converges"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let seeds = if settings.quick { QUICK_SEEDS } else { SEEDS };
        let noise = noise()?;
        let done = |finished: u64| progress(finished, seeds);
        let trials = in_order(seeds, settings.threads, &done, |seed| Trial::run(settings.seed, seed, noise))?;
        Ok(outcome::outcome(self, settings, noise, &trials))
    }
}

/// The least multiplier for the budget: all rows take part in every step, which has a closed form. It does not depend on
/// their number.
fn noise() -> Result<NoiseMultiplier> {
    let budget = PrivacyBudget::Approximate { epsilon: Epsilon::new(EPSILON)?, delta: Delta::new(DELTA)? };
    let rows = (PRIVATE + PUBLIC) as u64;
    Ok(noise_for(budget, ADJACENCY, Sampling::Everyone, Steps::new(STEPS)?, rows)?)
}

/// What noise of this multiplier adds to each coordinate of the mean gradient of so many rows.
fn noise_std(noise: NoiseMultiplier, rows: usize) -> f64 {
    noise.get() * CLIP_NORM / rows as f64
}

/// Test losses along a run, at its start and after every [`STRIDE`] steps.
type Curve = Vec<f64>;

/// What one seed gives.
struct Trial {
    throw_away: f64,
    /// A run for every length of step.
    dp_sgd: Vec<Curve>,
    algorithm_1: Vec<Curve>,
    /// Algorithm 1 with the shown step size and no weight for private gradients.
    public_only: Curve,
    /// The weight that the formula gave private gradients.
    alpha: f64,
    /// What the certificates say: the larger of both algorithms.
    certified: f64,
}

impl Trial {
    fn run(seed: u64, number: u64, noise: NoiseMultiplier) -> Result<Self> {
        let draw = LAW.draw(PUBLIC, PRIVATE, &mut Coins::new(seed, number))?;
        let mut noise_seeds = Coins::new(seed ^ 0x6e_6f69_7365, number);
        let throw_away = LAW.test_loss(&draw.truth, &draw.public_minimiser().weights);
        let (mut dp_sgd, mut algorithm_1) = (Vec::new(), Vec::new());
        let (mut alpha, mut certified) = (0.0, 0.0f64);
        for step_size in STEP_SIZES {
            let seed = noise_seeds.word();
            let all = Private::new(draw.private.clone()).joined(draw.public.clone())?;
            let (curve, trained) = trained(&draw, all, None, step_size, Alpha::Given(1.0), noise, seed)?;
            certified = certified.max(trained.certificate.guarantee.epsilon.get());
            dp_sgd.push(curve);
            let (curve, trained) = mixed(&draw, step_size, Alpha::Horizon, noise, seed)?;
            certified = certified.max(trained.certificate.guarantee.epsilon.get());
            alpha = trained.alpha;
            algorithm_1.push(curve);
        }
        let (public_only, _) = mixed(&draw, STEP_SIZES[SHOWN], Alpha::Given(0.0), noise, noise_seeds.word())?;
        Ok(Self { throw_away, dp_sgd, algorithm_1, public_only, alpha, certified })
    }
}

/// Algorithm 1.
fn mixed(
    draw: &Draw,
    step_size: f64,
    alpha: Alpha,
    noise: NoiseMultiplier,
    seed: u64,
) -> Result<(Curve, Trained)> {
    let private = Private::new(draw.private.clone());
    trained(draw, private, Some(&draw.public), step_size, alpha, noise, seed)
}

/// A run from zero, and its curve.
fn trained<S: BlockSource + 'static>(
    draw: &Draw,
    private: Private<S>,
    public: Option<&PublicRows>,
    step_size: f64,
    alpha: Alpha,
    noise: NoiseMultiplier,
    seed: u64,
) -> Result<(Curve, Trained)> {
    let delta = Delta::new(DELTA)?;
    let session = Session::new(private, ADJACENCY)?
        .with_randomness(Randomness::Seed(seed))
        .with_threads(1)
        .with_ledger(Budget::new(Epsilon::new(EPSILON)?, delta));
    let rows = session.units().unwrap_or(PRIVATE) as f64;
    let start = Model::zero(LAW.dimension, 1, false);
    let mut curve = vec![LAW.test_loss(&draw.truth, &start.weights)];
    let sgd = Sgd {
        loss: &Squared,
        start,
        steps: Steps::new(STEPS)?,
        sampling: Sampling::Everyone,
        batch: rows,
        private_rows: rows,
        clip_norm: CLIP_NORM,
        noise_multiplier: noise,
        public_batch: PUBLIC,
        public_gradient: PublicGradient::Clip,
        alpha,
        update: Box::new(StepSize::Constant(step_size)),
        average: Average::Last,
        domain: &Everywhere,
        l2: 0.0,
        public_l2: 0.0,
        public_seed: 1,
    };
    let trained = sgd.train(&session, public, delta, &mut |step, w| {
        if step % STRIDE == 0 {
            curve.push(LAW.test_loss(&draw.truth, w));
        }
    })?;
    Ok((curve, trained))
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_core::DenseTable;
    use std::sync::Arc;

    /// Rows of noughts have no gradient, so that a run is noise alone: ‖w_T − w_0‖² is Tη²σ_v² times a chi-squared number
    /// of d degrees of freedom, on average over runs within the bound of Laurent and Massart at 1e-9.
    #[test]
    fn noise_alone_moves_as_predicted() {
        let width = LAW.dimension + 1;
        let public = DenseTable::new(vec![0.0f32; width], width).unwrap();
        let draw = Draw {
            truth: vec![0.0; LAW.dimension],
            public: PublicRows::load(&semidp_core::Public(public)).unwrap(),
            private: Arc::new(DenseTable::new(vec![0.0f32; 30 * width], width).unwrap()),
        };
        let (noise, step_size, runs) = (noise().unwrap(), 0.25, 40);
        let mut total = 0.0;
        for seed in 0..runs {
            let private = Private::new(draw.private.clone());
            let (curve, _) =
                trained(&draw, private, None, step_size, Alpha::Given(1.0), noise, seed).unwrap();
            // With w* = 0 the loss is 1 + ‖w‖².
            assert_eq!(curve[0], 1.0);
            total += curve[curve.len() - 1] - 1.0;
        }
        let expected = outcome::noise_alone(STEPS, step_size, noise_std(noise, 30));
        let degrees = (LAW.dimension as u64 * runs) as f64;
        let x = 2e9f64.ln();
        let bound = 2.0 * (x / degrees).sqrt() + 2.0 * x / degrees;
        let found = total / runs as f64 / expected;
        assert!((found - 1.0).abs() < bound, "{found}, bound {bound}");
    }

    /// The whole experiment on two seeds: within the budget, with the promised columns, and with the paper's finding.
    #[test]
    fn dp_sgd_diverges_and_algorithm_1_does_not() {
        let noise = noise().unwrap();
        let trials: Vec<Trial> = (0..2).map(|number| Trial::run(5, number, noise).unwrap()).collect();
        for trial in &trials {
            assert!(trial.certified <= EPSILON && trial.certified > 0.99 * EPSILON, "{}", trial.certified);
            assert!(trial.alpha > 0.0 && trial.alpha < 1e-3, "{}", trial.alpha);
            let (ours, theirs) = (&trial.algorithm_1[SHOWN], &trial.dp_sgd[SHOWN]);
            let end = ours.len() - 1;
            assert_eq!((end as u64, theirs.len()), (STEPS / STRIDE, ours.len()));
            assert!(theirs[end] > 100.0 * theirs[0] && ours[end] < 0.2 * ours[0]);
            // The noise is some 77 times as long as any gradient, so that the growth is that of noise alone. A chi-squared
            // number of 50 degrees of freedom is between 0.1 and 3 times its mean but for 1e-9.
            let predicted =
                outcome::noise_alone(STEPS, STEP_SIZES[SHOWN], noise_std(noise, PRIVATE + PUBLIC));
            let growth = (theirs[end] - theirs[0]) / predicted;
            assert!(growth > 0.1 && growth < 3.0, "{growth}");
            // The shortest steps hardly move.
            assert!((trial.dp_sgd[0][end] / trial.dp_sgd[0][0] - 1.0).abs() < 0.01);
        }
        let settings = Settings::new(true, 5, 1);
        let outcome = outcome::outcome(&Divergence, &settings, noise, &trials);
        let headings: Vec<&str> = outcome.tables[0].headings.iter().map(String::as_str).collect();
        assert_eq!(headings[..3], ["step", "dp_sgd", "dp_sgd_standard_error"]);
        assert_eq!(outcome.tables[0].rows.len() as u64, STEPS / STRIDE + 1);
        assert_eq!(outcome.tables[1].rows.len(), STEP_SIZES.len());
        assert_eq!(outcome.tables[2].rows.len(), 2);
        for table in &outcome.tables {
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.name);
        }
        for (name, chart) in outcome.charts {
            assert!(chart.svg().unwrap().contains("</svg>"), "{name}");
        }
    }
}
