//! Acceleration: AC-SA with the mixed gradient of Algorithm 1 has less excess risk than with public or with private
//! gradients alone, and on an ill-conditioned problem it is where plain Algorithm 1 ends after a fraction of the steps.
//!
//! Nothing is tuned. Smoothness, variances and distances are those of the problems, written out; counts and budget are
//! chosen as in `excess_risk.rs`, v_priv = v_pub. Twenty seeds, paired.

mod support;

use semidp::domain::Ball;
use semidp::loss::Squared;
use semidp::train::*;
use support::*;

/// From zero, ½‖w*‖² is at most ½R².
#[test]
fn smooth_convex() {
    let sphere = Sphere::new(Average::Last);
    let schedule = |gradients| -> Box<dyn UpdateRule> {
        let variance = sphere.problem.step_variance(gradients);
        let distance = 0.5 * sphere.radius.powi(2);
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

/// Least squares whose rows have variances that fall from 1 to 1/1000 from one coordinate to the next, the truth as far
/// away along each. The excess risk of w is ½Σh_j(w_j − w*_j)².
struct Ellipsoid {
    problem: Problem,
    spread: Vec<f64>,
}

const DIMENSION: usize = 20;
/// Of labels about their scores.
const NOISE: f64 = 0.05;

impl Ellipsoid {
    fn new() -> Self {
        let spread: Vec<f64> =
            (0..DIMENSION).map(|j| 1000f64.powf(-(j as f64) / (DIMENSION - 1) as f64)).collect();
        // V² at the truth: NOISE² times the mean squared length of a row.
        let variance = NOISE * NOISE * spread.iter().sum::<f64>();
        let problem = Problem {
            loss: Box::new(Squared),
            dimension: DIMENSION,
            private: 40_000,
            public: 8_000,
            steps: 400,
            variance,
            clip_norm: 4.0 * variance.sqrt(),
            domain: Box::new(Ball::new(2.0).unwrap()),
            average: Average::Last,
        };
        Self { problem, spread }
    }

    fn coordinate(&self) -> f64 {
        1.0 / (DIMENSION as f64).sqrt()
    }

    fn draw(&self, seed: u64) -> Rows {
        let mut numbers = Numbers(3000 + seed);
        Rows::draw(&self.problem, DIMENSION + 1, move |values| {
            let mut score = NOISE * numbers.normal();
            for h in &self.spread {
                let x = h.sqrt() * numbers.normal();
                score += self.coordinate() * x;
                values.push(x as f32);
            }
            values.push(score as f32);
        })
    }

    fn excess(&self, w: &[f64]) -> f64 {
        let gaps = w.iter().zip(&self.spread).map(|(w, h)| h * (w - self.coordinate()).powi(2));
        0.5 * gaps.sum::<f64>()
    }
}

/// Plain Algorithm 1 takes the longest step that a convex loss allows, η = 1/β, and its last iterate: what it has left to
/// go lies along directions of little curvature. AC-SA gets there in fewer steps, and so with fewer rows.
#[test]
fn fewer_steps_where_conditions_are_ill() {
    let ellipsoid = Ellipsoid::new();
    let problem = &ellipsoid.problem;
    let mut needed = Vec::new();
    let (mut plain_risks, mut ours) = (Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let rows = ellipsoid.draw(seed);
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
