//! Acceleration: AC-SA with the mixed gradient of Algorithm 1 has less excess risk than with public or with private
//! gradients alone, and on an ill-conditioned problem it is where plain Algorithm 1 ends after a fraction of the steps.
//!
//! Smoothness, variances and distances are those of the problems, written out; counts and budget are chosen as in
//! `excess_risk.rs`, v_priv = v_pub. V₀ of the smooth problem was chosen among four after expected risks; the
//! ill-conditioned problem was made so that its condition matters more than its noise, which is hardly private: it shows
//! what acceleration does, not what it usually gains. Twenty seeds, paired.

mod support;

use semidp::domain::Ball;
use semidp::loss::*;
use semidp::train::*;
use semidp_core::RowView;
use support::*;

/// V₀ = ½D² for the diameter D of the ball, which the step size of plain SGD is made of too.
#[test]
fn smooth_convex() {
    let sphere = Sphere::new(Average::Last);
    let schedule = |gradients| -> Box<dyn UpdateRule> {
        let variance = sphere.problem.step_variance(gradients);
        let distance = 0.5 * (2.0 * sphere.radius).powi(2);
        Box::new(Acceleration::convex(sphere.smoothness(), variance, distance, sphere.problem.steps))
    };
    let [ours, throw_away, dp_sgd] = sphere.risks(&schedule);
    assert_below(&ours, &throw_away, "throw-away");
    assert_below(&ours, &dp_sgd, "accelerated DP-SGD");
}

/// Smoothness and strong convexity are the same number.
#[test]
fn strongly_convex() {
    let corners = Corners::new(Average::Last);
    let schedule =
        |_| -> Box<dyn UpdateRule> { Box::new(Acceleration::strongly_convex(corners.mu, corners.mu)) };
    let [ours, throw_away, dp_sgd] = corners.risks(&schedule);
    assert_below(&ours, &throw_away, "throw-away");
    assert_below(&ours, &dp_sgd, "accelerated DP-SGD");
}

const DIMENSION: usize = 20;
/// The total standard deviation of a row.
const NOISE: f64 = 0.02;
const RADIUS: f64 = 2.0;

/// ½wᵀHw − ⟨x, w⟩ for a diagonal H with entries that fall from 1 to 1/1000, rows x of mean H·w* and ‖w*‖ = 1. Gradients
/// Hw − x have the same variance everywhere, and the excess risk of w is ½Σh_j(w_j − w*_j)².
#[derive(Debug, Clone)]
struct Ellipsoid {
    curvatures: Vec<f64>,
}

impl Ellipsoid {
    fn new() -> Self {
        let curvatures = (0..DIMENSION).map(|j| 1000f64.powf(-(j as f64) / (DIMENSION - 1) as f64));
        Self { curvatures: curvatures.collect() }
    }

    fn problem(&self) -> Problem {
        Problem {
            loss: Box::new(self.clone()),
            dimension: DIMENSION,
            private: 40_000,
            public: 8_000,
            steps: 200,
            variance: NOISE * NOISE,
            // Longer than H·w*, which is the gradient at the start, by half.
            clip_norm: 0.5,
            domain: Box::new(Ball::new(RADIUS).unwrap()),
            average: Average::Last,
        }
    }

    fn coordinate(&self) -> f64 {
        1.0 / (DIMENSION as f64).sqrt()
    }

    fn draw(&self, problem: &Problem, seed: u64) -> Rows {
        let mut numbers = Numbers(3000 + seed);
        Rows::draw(problem, DIMENSION, move |values| {
            for h in &self.curvatures {
                let sign = if numbers.uniform() < 0.5 { NOISE } else { -NOISE };
                values.push((self.coordinate() * (h + sign)) as f32);
            }
        })
    }

    fn excess(&self, w: &[f64]) -> f64 {
        let gaps = w.iter().zip(&self.curvatures).map(|(w, h)| h * (w - self.coordinate()).powi(2));
        0.5 * gaps.sum::<f64>()
    }
}

impl Objective for Ellipsoid {
    fn door(&self) -> Door<'_> {
        Door::Rows(self)
    }
}

impl RowLoss for Ellipsoid {
    fn name(&self) -> &'static str {
        "ellipsoid"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn dimension(&self, width: usize) -> usize {
        width
    }

    fn value(&self, weights: &[f64], row: RowView<'_>) -> f64 {
        let each = weights.iter().zip(&self.curvatures).zip(row.values);
        each.map(|((w, h), x)| 0.5 * h * w * w - x * w).sum()
    }

    fn gradient_into(&self, weights: &[f64], row: RowView<'_>, gradient: &mut [f64]) {
        let each = weights.iter().zip(&self.curvatures).zip(row.values);
        gradient.iter_mut().zip(each).for_each(|(g, ((w, h), x))| *g = h * w - x);
    }

    /// Hw − x is no longer than R + ‖w*‖ + the length of the noise.
    fn constants(&self, bounds: &Bounds) -> Constants {
        let lipschitz = bounds.model + 1.0 + NOISE;
        Constants { lipschitz, smoothness: 1.0, strong_convexity: 1e-3 }
    }
}

/// Plain Algorithm 1 takes the longest step that a convex loss allows, η = 1/β, and its last iterate: what it has left to
/// go lies along directions of little curvature. AC-SA gets there in fewer steps, and so with fewer rows.
#[test]
fn fewer_steps_where_conditions_are_ill() {
    let ellipsoid = Ellipsoid::new();
    let problem = &ellipsoid.problem();
    let mut needed = Vec::new();
    let (mut plain_risks, mut ours) = (Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let rows = ellipsoid.draw(problem, seed);
        let plain = Box::new(StepSize::Constant(1.0));
        let plain = problem.train(Gradients::Mixed, &rows, plain, seed, &mut |_, _| ());
        let goal = ellipsoid.excess(&plain);
        // β = 1, and ½‖w*‖² = ½.
        let variance = problem.step_variance(Gradients::Mixed);
        let schedule = Box::new(Acceleration::convex(1.0, variance, 0.5, problem.steps));
        let mut reached = None;
        let last = problem.train(Gradients::Mixed, &rows, schedule, seed, &mut |step, w| {
            if reached.is_none() && ellipsoid.excess(w) <= goal {
                reached = Some(step);
            }
        });
        needed.push(reached.unwrap_or(u64::MAX) as f64);
        plain_risks.push(goal);
        ours.push(ellipsoid.excess(&last));
    }
    println!("steps to the loss that plain Algorithm 1 has after {}: {needed:?}", problem.steps);
    assert!(mean(&needed) <= 0.6 * problem.steps as f64, "{needed:?}");
    assert_below(&ours, &plain_risks, "plain Algorithm 1");
}
