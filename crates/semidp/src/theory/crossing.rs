//! Where one estimator overtakes another, and how errors move with the public share and the budget.

use crate::Result;
use crate::mean::{Plan, Problem, Target, cheapest, plan_all};
use semidp_accounting::{Epsilon, PrivacyBudget, Rho};

/// Predicted errors of all estimators along one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Where on the axis.
    pub at: Vec<f64>,
    /// Each estimator with its errors; the same length as `at`.
    pub errors: Vec<(&'static str, Vec<f64>)>,
    /// Where throw-away and the best of the estimators that treat all rows as private change places.
    pub crossing: Option<f64>,
}

/// Private rows hardly help once they improve on public rows alone by less than this factor.
pub const HARDLY: f64 = 1.05;

/// The number of public rows beyond which these private rows improve on throw-away by less than 5%; `None`
/// for the empirical mean, where private rows are never dispensable.
///
/// The weighted estimator is better by the factor 1 + v_pub/v_priv, and v_pub = V²/n_pub.
pub fn hardly_help_beyond(best: &Plan) -> Option<u64> {
    let problem = best.problem();
    if problem.target() == Target::Empirical || best.law().is_none() {
        return None;
    }
    // The error of the private rows alone, at full weight.
    let alone = problem.with_rows(problem.private_rows(), 0);
    let (weight, private) = (best.private_weight(), problem.private_rows() as f64);
    let noise = (best.noise_std() / weight).powi(2) * problem.dimension() as f64;
    let private_error = alone.error(1.0 / private, noise, best.law()?.clip(&alone));
    let rows = problem.std().powi(2) / ((HARDLY - 1.0) * private_error);
    (rows.is_finite() && rows < 1e15).then_some(rows.ceil() as u64)
}

/// Errors against the public share of n rows, from 1% to 99%.
pub fn sweep_share(problem: &Problem, budget: PrivacyBudget) -> Result<Sweep> {
    let rows = problem.private_rows() + problem.public_rows();
    let shares: Vec<f64> = (1..=99).map(|percent| f64::from(percent) / 100.0).collect();
    sweep(shares, |share| {
        let public = ((share * rows as f64).round() as u64).clamp(1, rows.saturating_sub(1).max(1));
        plan_all(&problem.with_rows(rows.saturating_sub(public).max(1), public), budget)
    })
}

/// Errors against the budget, from a hundredth of it to a hundredfold: ε, or ρ for a budget in ρ.
pub fn sweep_epsilon(problem: &Problem, budget: PrivacyBudget) -> Result<Sweep> {
    let middle = match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => epsilon.get(),
        PrivacyBudget::Zcdp { rho, .. } => rho.get(),
    };
    let steps = (-40..=40).map(|i| middle * 10f64.powf(f64::from(i) / 20.0));
    sweep(steps.filter(|at| (1e-6..=100.0).contains(at)).collect(), |at| {
        let budget = match budget {
            PrivacyBudget::Approximate { delta, .. } => {
                PrivacyBudget::Approximate { epsilon: Epsilon::new(at)?, delta }
            }
            PrivacyBudget::Pure { .. } => PrivacyBudget::Pure { epsilon: Epsilon::new(at)? },
            PrivacyBudget::Zcdp { stated_at, .. } => PrivacyBudget::Zcdp { rho: Rho::new(at)?, stated_at },
        };
        plan_all(problem, budget)
    })
}

fn sweep(at: Vec<f64>, plans_at: impl Fn(f64) -> Result<Vec<Plan>>) -> Result<Sweep> {
    let mut errors: Vec<(&'static str, Vec<f64>)> = Vec::new();
    for &x in &at {
        for plan in plans_at(x)? {
            match errors.iter_mut().find(|(name, _)| *name == plan.name()) {
                Some((_, values)) => values.push(plan.predicted_mse()),
                None => errors.push((plan.name(), vec![plan.predicted_mse()])),
            }
        }
    }
    errors.retain(|(_, values)| values.len() == at.len());
    // Positive where throw-away is worse than the best estimator that treats all rows as private.
    let gap = |x: f64| -> Result<Option<f64>> {
        let plans = plans_at(x)?;
        let baselines: Vec<Plan> = plans
            .iter()
            .filter(|plan| !plan.name().starts_with("weighted") && plan.law().is_some())
            .cloned()
            .collect();
        let public = plans.iter().find(|plan| plan.law().is_none());
        Ok(public.zip(cheapest(&baselines, false)).map(|(a, b)| (a.predicted_mse() / b.predicted_mse()).ln()))
    };
    let mut crossing = None;
    for pair in at.windows(2) {
        let (Some(a), Some(b)) = (gap(pair[0])?, gap(pair[1])?) else { continue };
        if (a > 0.0) != (b > 0.0) {
            // The logarithm of a ratio is nearly straight within a step of the axis.
            crossing = Some(pair[0] + (pair[1] - pair[0]) * a / (a - b));
            break;
        }
    }
    Ok(Sweep { at, errors, crossing })
}
