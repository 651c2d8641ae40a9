//! What the smaller variance of Algorithm 1 is for: on a smooth convex and on a strongly convex problem one pass of it
//! has less excess risk than throw-away and than one-pass DP-SGD, each with the step size its own variance asks for.
//!
//! Nothing is tuned. Counts are fixed beforehand, and the budget is the one at which the private rows are worth as much
//! as the public ones, v_priv = v_pub: there Algorithm 1 has half the variance of either source alone. Twenty seeds,
//! paired: all algorithms see the same rows.

mod support;

use semidp::train::*;
use support::*;

/// η = D/√(ΣG_t²), with G_t² = ‖∇F‖² + the variance of a step's estimate; E xxᵀ = I/d, so ∇F is at most D/(4d) long.
#[test]
fn smooth_convex() {
    let sphere = Sphere::new(Average::Mean);
    let drift = 2.0 * sphere.radius * sphere.smoothness();
    let step_size = |gradients| -> Box<dyn UpdateRule> {
        let second_moment = drift * drift + sphere.problem.step_variance(gradients);
        let size = 2.0 * sphere.radius / (sphere.problem.steps as f64 * second_moment).sqrt();
        Box::new(StepSize::Constant(size))
    };
    let [ours, throw_away, dp_sgd] = sphere.risks(&step_size);
    assert_below(&ours, &throw_away, "throw-away");
    assert_below(&ours, &dp_sgd, "DP-SGD");
}

/// With η_t = 2/(t + 1) the iterates are w_{t+1} = 2/(t(t+1))·Σ_{s≤t} s·x̂_s for the step's estimates x̂_s of the mean, so
/// that the output gives x̂_s the weight Σ_{t>s} 2t/(T(T+1))·2s/((t−1)t): excess risks are known beforehand, exactly but
/// for the estimate of V² in α.
#[test]
fn strongly_convex() {
    let corners = Corners::new(Average::Weighted);
    let (problem, mu) = (&corners.problem, corners.mu);
    let [ours, throw_away, dp_sgd] = corners.risks(&|_| Box::new(StepSize::StronglyConvex(mu)));
    let last = problem.steps as f64;
    let weight = |s: u64| -> f64 {
        (s + 1..=problem.steps).map(|t| 4.0 * s as f64 / (last * (last + 1.0) * (t - 1) as f64)).sum()
    };
    let squares: f64 = (1..problem.steps).map(|s| weight(s).powi(2)).sum();
    for (found, gradients) in [(&ours, Gradients::Mixed), (&dp_sgd, Gradients::AllPrivate)] {
        let expected = 0.5 * mu * squares * problem.step_variance(gradients);
        // Relative variance of a squared length of d nearly normal coordinates is 2/d; twenty of them.
        let bound = 6.5 * (2.0 / (problem.dimension as f64 * SEEDS as f64)).sqrt();
        assert!((mean(found) / expected - 1.0).abs() < bound, "{} {expected}", mean(found));
    }
    assert_below(&ours, &throw_away, "throw-away");
    assert_below(&ours, &dp_sgd, "DP-SGD");
}
