//! One pass over private and public rows, and two problems whose excess risk is known exactly.

// Each test crate uses its own part of this module.
#![allow(dead_code)]

use semidp::domain::{Ball, Domain};
use semidp::loss::*;
use semidp::train::*;
use semidp_accounting::{PrivacyBudget, Rho, gaussian_noise};
use semidp_core::*;

pub const SEEDS: u64 = 20;

pub fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

/// A small generator, enough for data.
pub struct Numbers(pub u64);

impl Numbers {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn uniform(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Rows on either side of the wall, and what every algorithm is told beforehand.
pub struct Problem {
    pub loss: Box<dyn Objective>,
    pub dimension: usize,
    pub private: usize,
    pub public: usize,
    pub steps: u64,
    /// Of one row's gradient, in total.
    pub variance: f64,
    pub clip_norm: f64,
    pub domain: Box<dyn Domain>,
    pub average: Average,
}

/// What the gradients of one pass are made of.
#[derive(Clone, Copy)]
pub enum Gradients {
    /// Of both kinds of rows, as in Algorithm 1.
    Mixed,
    /// Of public rows: throw-away.
    PublicOnly,
    /// Of all rows, treated as private: DP-SGD.
    AllPrivate,
}

impl Problem {
    /// Of so many rows, those of a step.
    fn batch(&self, rows: usize) -> f64 {
        rows as f64 / self.steps as f64
    }

    /// The budget at which v_priv = v_pub in a step: 2dC²/(ρK²) = V²(1/K_pub − 1/K).
    pub fn rho(&self) -> f64 {
        let (private, public) = (self.batch(self.private), self.batch(self.public));
        let gap = self.variance * (1.0 / public - 1.0 / private);
        2.0 * self.dimension as f64 * (self.clip_norm / private).powi(2) / gap
    }

    /// The variance of a step's gradient estimate.
    pub fn step_variance(&self, gradients: Gradients) -> f64 {
        let noised = |batch: f64| {
            self.variance / batch
                + 2.0 * self.dimension as f64 * (self.clip_norm / batch).powi(2) / self.rho()
        };
        match gradients {
            Gradients::Mixed => {
                1.0 / (self.batch(self.public) / self.variance + 1.0 / noised(self.batch(self.private)))
            }
            Gradients::PublicOnly => self.variance / self.batch(self.public),
            Gradients::AllPrivate => noised(self.batch(self.private + self.public)),
        }
    }

    /// The model of one pass from zero; `on_step` sees what it would be after each step.
    pub fn train(
        &self,
        gradients: Gradients,
        rows: &Rows,
        update: Box<dyn UpdateRule>,
        seed: u64,
        on_step: &mut dyn FnMut(u64, &[f64]),
    ) -> Vec<f64> {
        let budget = PrivacyBudget::Zcdp { rho: Rho::new(self.rho()).unwrap(), stated_at: delta() };
        let noise_multiplier = gaussian_noise(budget, Adjacency::ReplaceOne).unwrap();
        let table = |values: &[f32]| DenseTable::new(values.to_vec(), rows.width).unwrap();
        let (units, public, alpha) = match gradients {
            Gradients::Mixed => (self.private, Some(&rows.open), Alpha::PerStep),
            Gradients::PublicOnly => (self.private, Some(&rows.open), Alpha::Given(0.0)),
            Gradients::AllPrivate => (self.private + self.public, None, Alpha::Given(1.0)),
        };
        let sgd = Sgd {
            loss: &*self.loss,
            start: Model::zero(self.dimension, 1, false),
            steps: Steps::new(self.steps).unwrap(),
            sampling: Sampling::OnePass { blocks: self.steps },
            batch: self.batch(units),
            private_rows: units as f64,
            clip_norm: self.clip_norm,
            noise_multiplier,
            public_batch: self.batch(self.public) as usize,
            public_gradient: PublicGradient::Clip,
            alpha,
            update,
            average: self.average,
            domain: &*self.domain,
            l2: 0.0,
            public_l2: 0.0,
            public_seed: seed,
        };
        let private = Private::new(table(&rows.private));
        let private = match gradients {
            Gradients::AllPrivate => private.joined(table(&rows.public)).unwrap().boxed(),
            _ => private.boxed(),
        };
        let session = Session::new(private, Adjacency::ReplaceOne).unwrap();
        let session = session.with_randomness(Randomness::Seed(seed)).with_threads(1);
        let trained = sgd.train(&session, public, delta(), on_step).unwrap();
        // One pass costs what one step costs.
        let spent = trained.certificate.guarantee.rho.unwrap().get();
        assert!(spent <= self.rho() && spent > 0.999 * self.rho(), "{spent}");
        trained.model.weights
    }
}

pub struct Rows {
    width: usize,
    private: Vec<f32>,
    public: Vec<f32>,
    pub open: PublicRows,
}

impl Rows {
    pub fn draw(problem: &Problem, width: usize, mut row: impl FnMut(&mut Vec<f32>)) -> Self {
        let mut draw = |count: usize| {
            let mut values = Vec::with_capacity(count * width);
            (0..count).for_each(|_| row(&mut values));
            values
        };
        let (private, public) = (draw(problem.private), draw(problem.public));
        let open = PublicRows::load(&Public(DenseTable::new(public.clone(), width).unwrap())).unwrap();
        Self { width, private, public, open }
    }
}

pub fn length(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of paired differences is negative, by three standard errors at least.
pub fn assert_below(ours: &[f64], theirs: &[f64], whose: &str) {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    let (middle, count) = (mean(&differences), differences.len() as f64);
    let spread = differences.iter().map(|d| (d - middle).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (spread / count).sqrt();
    println!(
        "{whose}: {:.3e} against {:.3e}, difference {middle:.3e} ± {error:.1e}",
        mean(ours),
        mean(theirs)
    );
    assert!(middle < -3.0 * error, "{whose}: {middle} ± {error}");
}

/// A problem with a law of rows and a known truth.
pub trait Known {
    fn problem(&self) -> &Problem;

    fn draw(&self, seed: u64) -> Rows;

    /// The exact minimiser for public rows.
    fn minimiser(&self, rows: &PublicRows) -> Vec<f64>;

    fn excess(&self, w: &[f64]) -> f64;

    /// Excess risks of one pass of mixed, public and private gradients. Throw-away is whatever does better on the seed,
    /// one pass or the exact minimiser: a choice that nobody could make without knowing the answer.
    fn risks(&self, update: &dyn Fn(Gradients) -> Box<dyn UpdateRule>) -> [Vec<f64>; 3] {
        let mut all = [const { Vec::new() }; 3];
        for seed in 0..SEEDS {
            let rows = self.draw(seed);
            let risk = |gradients| {
                let problem = self.problem();
                self.excess(&problem.train(gradients, &rows, update(gradients), seed, &mut |_, _| ()))
            };
            all[0].push(risk(Gradients::Mixed));
            all[1].push(risk(Gradients::PublicOnly).min(self.excess(&self.minimiser(&rows.open))));
            all[2].push(risk(Gradients::AllPrivate));
        }
        all
    }
}

/// Logistic regression, rows uniform on the sphere, labels from a logistic model w* within the ball of radius R.
///
/// The excess risk of w is E[φ(s) − φ(s*) − σ(s*)(s − s*)] with scores s = ⟨w, x⟩ and φ the primitive of σ: two
/// coordinates of x decide it, in the plane of w and w*. There the direction is uniform, and the squared radius has the
/// distribution function 1 − (1 − t)^{(d−2)/2}: a sum over a grid of both.
pub struct Sphere {
    pub problem: Problem,
    pub radius: f64,
    truth: f64,
}

impl Sphere {
    pub fn new(average: Average) -> Self {
        let (dimension, radius, truth) = (25, 3.0, 2.0);
        let bounds = Bounds { row: 1.0, label: 1.0, model: radius };
        let problem = Problem {
            loss: Box::new(Logistic),
            dimension,
            private: 40_000,
            public: 4_000,
            steps: 400,
            // A label's variance is at most a quarter.
            variance: 0.25,
            clip_norm: constants(&Logistic, &bounds, 0.0).lipschitz,
            domain: Box::new(Ball::new(radius).unwrap()),
            average,
        };
        Self { problem, radius, truth }
    }

    /// β: E xxᵀ = I/d, and the curvature of the loss is at most a quarter.
    pub fn smoothness(&self) -> f64 {
        0.25 / self.problem.dimension as f64
    }
}

impl Known for Sphere {
    fn problem(&self) -> &Problem {
        &self.problem
    }

    fn draw(&self, seed: u64) -> Rows {
        let dimension = self.problem.dimension;
        let coordinate = self.truth / (dimension as f64).sqrt();
        let mut numbers = Numbers(1000 + seed);
        let mut x = vec![0.0; dimension];
        Rows::draw(&self.problem, dimension + 1, move |values| {
            x.iter_mut().for_each(|x| *x = numbers.normal());
            let norm = length(&x);
            let score = coordinate * x.iter().sum::<f64>() / norm;
            values.extend(x.iter().map(|x| (x / norm) as f32));
            values.push(if numbers.uniform() < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { 0.0 });
        })
    }

    /// Projected gradient descent. So many rows have less than twice the curvature of their law, or it would not end in
    /// a point that a step does not move.
    fn minimiser(&self, rows: &PublicRows) -> Vec<f64> {
        let mut model = Model::zero(self.problem.dimension, 1, false);
        let size = 0.5 / self.smoothness();
        for _ in 0..200 {
            let before = model.weights.clone();
            let gradient = model.mean_gradient(&Logistic, rows);
            model.weights.iter_mut().zip(gradient).for_each(|(w, g)| *w -= size * g);
            self.problem.domain.project(&mut model.weights);
            let moved: Vec<f64> = model.weights.iter().zip(&before).map(|(a, b)| a - b).collect();
            if length(&moved) < 1e-9 {
                return model.weights;
            }
        }
        panic!("the public minimiser was not found");
    }

    fn excess(&self, w: &[f64]) -> f64 {
        let (radii, angles) = (200, 32);
        let dimension = self.problem.dimension as f64;
        let along = w.iter().sum::<f64>() / dimension.sqrt();
        let across = (length(w).powi(2) - along * along).max(0.0).sqrt();
        let mut total = 0.0;
        for i in 0..radii {
            let left = 1.0 - (f64::from(i) + 0.5) / f64::from(radii);
            let r = (1.0 - left.powf(2.0 / (dimension - 2.0))).sqrt();
            for j in 0..angles {
                let angle = std::f64::consts::TAU * f64::from(j) / f64::from(angles);
                let (best, score) =
                    (self.truth * r * angle.cos(), r * (along * angle.cos() + across * angle.sin()));
                let label = 1.0 / (1.0 + (-best).exp());
                total += Logistic.value(&[score], label) - Logistic.value(&[best], label);
            }
        }
        total / f64::from(radii * angles)
    }
}

/// The paper's hard problem for strong convexity: ½‖w − x‖² for rows in {±1/√d}^d whose mean is as long as the error of
/// the public mean.
pub struct Corners {
    pub problem: Problem,
    /// μ, and β.
    pub mu: f64,
    theta: f64,
}

impl Corners {
    pub fn new(average: Average) -> Self {
        let (dimension, mu, radius) = (50, 1.0, 1.0);
        let bounds = Bounds { row: 1.0, label: 0.0, model: radius };
        let loss = Quadratic::new(mu).unwrap();
        let (private, public) = (4_000, 400);
        let theta = 1.0 / f64::from(public).sqrt();
        let problem = Problem {
            clip_norm: constants(&loss, &bounds, 0.0).lipschitz,
            loss: Box::new(loss),
            dimension,
            private: private as usize,
            public: public as usize,
            steps: 40,
            variance: 1.0 - theta * theta,
            domain: Box::new(Ball::new(radius).unwrap()),
            average,
        };
        Self { problem, mu, theta }
    }

    fn size(&self) -> f64 {
        1.0 / (self.problem.dimension as f64).sqrt()
    }
}

impl Known for Corners {
    fn problem(&self) -> &Problem {
        &self.problem
    }

    fn draw(&self, seed: u64) -> Rows {
        let mut numbers = Numbers(2000 + seed);
        Rows::draw(&self.problem, self.problem.dimension, move |values| {
            for _ in 0..self.problem.dimension {
                let is_positive = numbers.uniform() < 0.5 * (1.0 + self.theta);
                values.push(if is_positive { self.size() as f32 } else { -self.size() as f32 });
            }
        })
    }

    fn minimiser(&self, rows: &PublicRows) -> Vec<f64> {
        let last = self.problem.dimension - 1;
        let mut w = vec![0.0; last + 1];
        for row in 0..rows.len() {
            rows.add_scaled(row, 1.0 / rows.len() as f64, &mut w[..last]);
            w[last] += rows.label(row) / rows.len() as f64;
        }
        w
    }

    fn excess(&self, w: &[f64]) -> f64 {
        0.5 * self.mu * w.iter().map(|w| (w - self.theta * self.size()).powi(2)).sum::<f64>()
    }
}
