//! What the smaller variance of Algorithm 1 is for: on a smooth convex and on a strongly convex problem one pass of it
//! has less excess risk than throw-away and than one-pass DP-SGD, each with the step size its own variance asks for.
//!
//! Nothing is tuned. Counts are fixed beforehand, and the budget is the one at which the private rows are worth as much
//! as the public ones, v_priv = v_pub: there Algorithm 1 has half the variance of either source alone. Twenty seeds,
//! paired: all algorithms see the same rows.

use semidp::domain::{Ball, Domain};
use semidp::loss::*;
use semidp::train::*;
use semidp_accounting::{PrivacyBudget, Rho, gaussian_noise};
use semidp_core::*;

const SEEDS: u64 = 20;

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

/// A small generator, enough for data.
struct Numbers(u64);

impl Numbers {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Rows on either side of the wall, and what every algorithm is told beforehand.
struct Problem<'a> {
    loss: &'a dyn Objective,
    dimension: usize,
    private: usize,
    public: usize,
    steps: u64,
    /// Of one row's gradient, in total.
    variance: f64,
    clip_norm: f64,
    domain: &'a Ball,
    average: Average,
}

/// One pass of SGD, by what its gradients are made of.
#[derive(Clone, Copy)]
enum Algorithm {
    /// Algorithm 1.
    Mixed,
    /// Throw-away.
    PublicOnly,
    /// DP-SGD on all rows.
    AllPrivate,
}

impl Problem<'_> {
    /// Of so many rows, those of a step.
    fn batch(&self, rows: usize) -> f64 {
        rows as f64 / self.steps as f64
    }

    /// The budget at which v_priv = v_pub in a step: 2dC²/(ρK²) = V²(1/K_pub − 1/K).
    fn rho(&self) -> f64 {
        let (private, public) = (self.batch(self.private), self.batch(self.public));
        let gap = self.variance * (1.0 / public - 1.0 / private);
        2.0 * self.dimension as f64 * (self.clip_norm / private).powi(2) / gap
    }

    /// The variance of a step's gradient estimate.
    fn step_variance(&self, algorithm: Algorithm) -> f64 {
        let noised = |batch: f64| {
            self.variance / batch
                + 2.0 * self.dimension as f64 * (self.clip_norm / batch).powi(2) / self.rho()
        };
        match algorithm {
            Algorithm::Mixed => {
                1.0 / (self.batch(self.public) / self.variance + 1.0 / noised(self.batch(self.private)))
            }
            Algorithm::PublicOnly => self.variance / self.batch(self.public),
            Algorithm::AllPrivate => noised(self.batch(self.private + self.public)),
        }
    }

    fn train(&self, algorithm: Algorithm, rows: &Rows, step_size: StepSize, seed: u64) -> Vec<f64> {
        let budget = PrivacyBudget::Zcdp { rho: Rho::new(self.rho()).unwrap(), stated_at: delta() };
        let noise_multiplier = gaussian_noise(budget, Adjacency::ReplaceOne).unwrap();
        let table = |values: &[f32]| DenseTable::new(values.to_vec(), rows.width).unwrap();
        let (units, public, alpha) = match algorithm {
            Algorithm::Mixed => (self.private, Some(&rows.open), Alpha::PerStep),
            Algorithm::PublicOnly => (self.private, Some(&rows.open), Alpha::Given(0.0)),
            Algorithm::AllPrivate => (self.private + self.public, None, Alpha::Given(1.0)),
        };
        let sgd = Sgd {
            loss: self.loss,
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
            update: Box::new(step_size),
            average: self.average,
            domain: self.domain,
            l2: 0.0,
            public_l2: 0.0,
            public_seed: seed,
        };
        let private = Private::new(table(&rows.private));
        let private = match algorithm {
            Algorithm::AllPrivate => private.joined(table(&rows.public)).unwrap().boxed(),
            _ => private.boxed(),
        };
        let session = Session::new(private, Adjacency::ReplaceOne).unwrap();
        let session = session.with_randomness(Randomness::Seed(seed)).with_threads(1);
        let trained = sgd.train(&session, public, delta(), &mut |_, _| ()).unwrap();
        // One pass costs what one step costs.
        let spent = trained.certificate.guarantee.rho.unwrap().get();
        assert!(spent <= self.rho() && spent > 0.999 * self.rho(), "{spent}");
        trained.model.weights
    }
}

struct Rows {
    width: usize,
    private: Vec<f32>,
    public: Vec<f32>,
    open: PublicRows,
}

impl Rows {
    fn draw(problem: &Problem<'_>, width: usize, mut row: impl FnMut(&mut Vec<f32>)) -> Self {
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

fn length(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of paired differences is negative, by three standard errors at least.
fn assert_below(ours: &[f64], theirs: &[f64], whose: &str) {
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

/// Excess risks of Algorithm 1, throw-away and DP-SGD. Throw-away is whatever does better on the seed, one pass of SGD or
/// the exact minimiser: a choice that nobody could make without knowing the answer.
fn risks(
    problem: &Problem<'_>,
    draw: impl Fn(u64) -> Rows,
    step_size: impl Fn(Algorithm) -> StepSize,
    minimiser: impl Fn(&PublicRows) -> Vec<f64>,
    excess: impl Fn(&[f64]) -> f64,
) -> [Vec<f64>; 3] {
    let mut all = [const { Vec::new() }; 3];
    for seed in 0..SEEDS {
        let rows = draw(seed);
        let risk = |algorithm| excess(&problem.train(algorithm, &rows, step_size(algorithm), seed));
        all[0].push(risk(Algorithm::Mixed));
        all[1].push(risk(Algorithm::PublicOnly).min(excess(&minimiser(&rows.open))));
        all[2].push(risk(Algorithm::AllPrivate));
    }
    all
}

/// Logistic regression, rows uniform on the sphere, labels from a logistic model w* within the ball of radius R.
///
/// The excess risk of w is E[φ(s) − φ(s*) − σ(s*)(s − s*)] with scores s = ⟨w, x⟩ and φ the primitive of σ: two
/// coordinates of x decide it, in the plane of w and w*. There the direction is uniform, and the squared radius has the
/// distribution function 1 − (1 − t)^{(d−2)/2}: a sum over a grid of both.
///
/// η = D/√(ΣG_t²), with G_t² = ‖∇F‖² + the variance of a step's estimate; E xxᵀ = I/d, so ∇F is at most D/(4d) long.
#[test]
fn smooth_convex() {
    let (dimension, radius, truth) = (25, 3.0, 2.0);
    let domain = Ball::new(radius).unwrap();
    let bounds = Bounds { row: 1.0, label: 1.0, model: radius };
    let problem = Problem {
        loss: &Logistic,
        dimension,
        private: 40_000,
        public: 4_000,
        steps: 400,
        // A label's variance is at most a quarter.
        variance: 0.25,
        clip_norm: constants(&Logistic, &bounds, 0.0).lipschitz,
        domain: &domain,
        average: Average::Mean,
    };
    let coordinate = truth / (dimension as f64).sqrt();
    let draw = |seed: u64| {
        let mut numbers = Numbers(1000 + seed);
        let mut x = vec![0.0; dimension];
        Rows::draw(&problem, dimension + 1, move |values| {
            x.iter_mut().for_each(|x| *x = numbers.normal());
            let norm = length(&x);
            let score = coordinate * x.iter().sum::<f64>() / norm;
            values.extend(x.iter().map(|x| (x / norm) as f32));
            values.push(if numbers.uniform() < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { 0.0 });
        })
    };
    let (radii, angles) = (200, 32);
    let excess = |w: &[f64]| {
        let along = w.iter().sum::<f64>() / (dimension as f64).sqrt();
        let across = (length(w).powi(2) - along * along).max(0.0).sqrt();
        let mut total = 0.0;
        for i in 0..radii {
            let left = 1.0 - (f64::from(i) + 0.5) / f64::from(radii);
            let r = (1.0 - left.powf(2.0 / (dimension as f64 - 2.0))).sqrt();
            for j in 0..angles {
                let angle = std::f64::consts::TAU * f64::from(j) / f64::from(angles);
                let (best, score) =
                    (truth * r * angle.cos(), r * (along * angle.cos() + across * angle.sin()));
                let label = 1.0 / (1.0 + (-best).exp());
                total += Logistic.value(&[score], label) - Logistic.value(&[best], label);
            }
        }
        total / f64::from(radii * angles)
    };
    let drift = 2.0 * radius / (4.0 * dimension as f64);
    let step_size = |algorithm| {
        let second_moment = drift * drift + problem.step_variance(algorithm);
        StepSize::Constant(2.0 * radius / (problem.steps as f64 * second_moment).sqrt())
    };
    // Projected gradient descent. So many rows have less than twice the curvature of their law, or it would not end in
    // a point that a step does not move.
    let minimiser = |rows: &PublicRows| {
        let mut model = Model::zero(dimension, 1, false);
        for _ in 0..200 {
            let before = model.weights.clone();
            let gradient = model.mean_gradient(&Logistic, rows);
            model.weights.iter_mut().zip(gradient).for_each(|(w, g)| *w -= 2.0 * dimension as f64 * g);
            domain.project(&mut model.weights);
            let moved: Vec<f64> = model.weights.iter().zip(&before).map(|(a, b)| a - b).collect();
            if length(&moved) < 1e-9 {
                return model.weights;
            }
        }
        panic!("the public minimiser was not found");
    };
    let [ours, throw_away, dp_sgd] = risks(&problem, draw, step_size, minimiser, excess);
    assert_below(&ours, &throw_away, "throw-away");
    assert_below(&ours, &dp_sgd, "DP-SGD");
}

/// The paper's hard problem for strong convexity: ½‖w − x‖² for rows in {±1/√d}^d whose mean is as long as the error of
/// the public mean.
///
/// With η_t = 2/(t + 1) the iterates are w_{t+1} = 2/(t(t+1))·Σ_{s≤t} s·x̂_s for the step's estimates x̂_s of the mean, so
/// that the output gives x̂_s the weight Σ_{t>s} 2t/(T(T+1))·2s/((t−1)t): excess risks are known beforehand, exactly but
/// for the estimate of V² in α.
#[test]
fn strongly_convex() {
    let (dimension, mu, radius) = (50, 1.0, 1.0);
    let domain = Ball::new(radius).unwrap();
    let bounds = Bounds { row: 1.0, label: 0.0, model: radius };
    let loss = Quadratic::new(mu).unwrap();
    let (private, public) = (4_000, 400);
    let theta = 1.0 / f64::from(public).sqrt();
    let problem = Problem {
        loss: &loss,
        dimension,
        private: private as usize,
        public: public as usize,
        steps: 40,
        variance: 1.0 - theta * theta,
        clip_norm: constants(&loss, &bounds, 0.0).lipschitz,
        domain: &domain,
        average: Average::Weighted,
    };
    let size = 1.0 / (dimension as f64).sqrt();
    let draw = |seed: u64| {
        let mut numbers = Numbers(2000 + seed);
        Rows::draw(&problem, dimension, move |values| {
            for _ in 0..dimension {
                let is_positive = numbers.uniform() < 0.5 * (1.0 + theta);
                values.push(if is_positive { size as f32 } else { -size as f32 });
            }
        })
    };
    let excess = |w: &[f64]| 0.5 * mu * w.iter().map(|w| (w - theta * size).powi(2)).sum::<f64>();
    let minimiser = |rows: &PublicRows| {
        let mut w = vec![0.0; dimension];
        for row in 0..rows.len() {
            rows.add_scaled(row, 1.0 / rows.len() as f64, &mut w[..dimension - 1]);
            w[dimension - 1] += rows.label(row) / rows.len() as f64;
        }
        w
    };
    let [ours, throw_away, dp_sgd] =
        risks(&problem, draw, |_| StepSize::StronglyConvex(mu), minimiser, excess);
    let last = problem.steps as f64;
    let weight = |s: u64| -> f64 {
        (s + 1..=problem.steps).map(|t| 4.0 * s as f64 / (last * (last + 1.0) * (t - 1) as f64)).sum()
    };
    let squares: f64 = (1..problem.steps).map(|s| weight(s).powi(2)).sum();
    for (found, algorithm) in [(&ours, Algorithm::Mixed), (&dp_sgd, Algorithm::AllPrivate)] {
        let expected = 0.5 * mu * squares * problem.step_variance(algorithm);
        // Relative variance of a squared length of d nearly normal coordinates is 2/d; twenty of them.
        let bound = 6.5 * (2.0 / (dimension as f64 * SEEDS as f64)).sqrt();
        assert!((mean(found) / expected - 1.0).abs() < bound, "{} {expected}", mean(found));
    }
    assert_below(&ours, &throw_away, "throw-away");
    assert_below(&ours, &dp_sgd, "DP-SGD");
}
