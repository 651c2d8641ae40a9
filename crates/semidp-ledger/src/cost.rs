//! What runs cost together, in the currency of a budget.

use semidp_accounting::accountant::{Accountant, PureAccountant, ZcdpAccountant};
use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Epsilon, Error, Event, PrivacyBudget, Result, Rho, Steps,
    calibrate_noise, epsilon, gaussian_noise,
};
use semidp_core::calibration_delta;

/// The cost of all runs, each given by its events.
pub fn spent(budget: PrivacyBudget, adjacency: Adjacency, runs: &[&[CountedEvent]]) -> Result<PrivacyBudget> {
    let cost = match budget {
        PrivacyBudget::Approximate { delta, .. } => {
            PrivacyBudget::Approximate { epsilon: at(calibration_delta(delta), adjacency, runs)?, delta }
        }
        PrivacyBudget::Pure { .. } => PrivacyBudget::Pure { epsilon: pure(adjacency, runs)? },
        PrivacyBudget::Zcdp { stated_at, .. } => {
            PrivacyBudget::Zcdp { rho: Rho::new(sum(runs, |events| rho(events, adjacency))?)?, stated_at }
        }
    };
    Ok(cost)
}

/// ε at δ, by the accountants of certificates. Pure events also simply add, which may be less by a rounding
/// error: two runs of pure ε 0.5 must fit into 1.
fn at(delta: Delta, adjacency: Adjacency, runs: &[&[CountedEvent]]) -> Result<Epsilon> {
    let pure = pure(adjacency, runs);
    if runs.is_empty() {
        return pure;
    }
    match (epsilon(&runs.concat(), adjacency, delta), pure) {
        (Ok(answer), Ok(pure)) if pure < answer.value => Ok(pure),
        (Ok(answer), _) => Ok(answer.value),
        (Err(error), _) => Err(error),
    }
}

fn pure(adjacency: Adjacency, runs: &[&[CountedEvent]]) -> Result<Epsilon> {
    let total = sum(runs, |events| {
        let mut accountant = PureAccountant::new(adjacency);
        accountant.compose_all(events)?;
        Ok(accountant.epsilon(Delta::new(0.0)?)?.get())
    })?;
    Epsilon::new(total)
}

/// The ρ of one run.
pub fn rho(events: &[CountedEvent], adjacency: Adjacency) -> Result<f64> {
    let mut accountant = ZcdpAccountant::new(adjacency);
    accountant.compose_all(events)?;
    Ok(accountant.rho()?.get())
}

/// Whether the cost of so many runs, in the currency of the budget, stays within it.
///
/// Costs that add are decimal numbers to whoever set them, and 0.1 + 0.1 + 0.1 must fit into 0.3: their binary
/// neighbours and the sums of them, rounded up, are each off by at most one unit in the last place, and so is the
/// budget. Nothing is forgiven beyond that, and nothing where costs do not simply add.
pub fn covers(budget: PrivacyBudget, cost: PrivacyBudget, runs: usize) -> bool {
    let forgiven = match budget {
        PrivacyBudget::Approximate { .. } => 0.0,
        PrivacyBudget::Pure { .. } | PrivacyBudget::Zcdp { .. } => (2 * runs + 1) as f64 * f64::EPSILON,
    };
    amount(cost) <= amount(budget) * (1.0 + forgiven)
}

/// The number that is spent: ε or ρ.
pub fn amount(budget: PrivacyBudget) -> f64 {
    match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => epsilon.get(),
        PrivacyBudget::Zcdp { rho, .. } => rho.get(),
    }
}

/// In words.
pub fn words(cost: PrivacyBudget) -> String {
    match cost {
        PrivacyBudget::Approximate { epsilon, delta } => format!("epsilon {epsilon} at delta {delta}"),
        PrivacyBudget::Pure { epsilon } => format!("pure epsilon {epsilon}"),
        PrivacyBudget::Zcdp { rho, .. } => format!("rho {rho}"),
    }
}

/// What one more release may cost by itself, in the currency of the budget.
pub fn remaining(
    budget: PrivacyBudget,
    adjacency: Adjacency,
    runs: &[&[CountedEvent]],
) -> Result<PrivacyBudget> {
    let left = (amount(budget) - amount(spent(budget, adjacency, runs)?)).max(0.0);
    Ok(match budget {
        PrivacyBudget::Pure { .. } => PrivacyBudget::Pure { epsilon: Epsilon::new(left)? },
        PrivacyBudget::Zcdp { stated_at, .. } => PrivacyBudget::Zcdp { rho: Rho::new(left)?, stated_at },
        PrivacyBudget::Approximate { delta, .. } => {
            let epsilon = match (runs.is_empty(), left > 0.0) {
                (true, _) => left,
                (_, false) => 0.0,
                _ => one_gaussian(budget, adjacency, &runs.concat())?,
            };
            PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta }
        }
    })
}

/// The ε of the largest single Gaussian release that still fits, as calibration for that ε would make it.
fn one_gaussian(budget: PrivacyBudget, adjacency: Adjacency, recorded: &[CountedEvent]) -> Result<f64> {
    let delta = calibration_delta(budget.delta());
    let with_one = |noise_multiplier| {
        let one = CountedEvent::new(Event::Gaussian { noise_multiplier }, Steps::ONE);
        [recorded, &[one]].concat()
    };
    let noise = match calibrate_noise(Epsilon::new(amount(budget))?, delta, adjacency, with_one) {
        Ok(found) => found.value,
        Err(Error::Unreachable { .. }) => return Ok(0.0),
        Err(error) => return Err(error),
    };
    let one = CountedEvent::new(Event::Gaussian { noise_multiplier: noise }, Steps::ONE);
    let alone = epsilon(&[one], adjacency, delta)?.value.get();
    // That ε is an upper bound, so calibrating for it may give a little less noise: what is stated was tried.
    for margin in [0.0, 1e-9, 1e-7, 1e-5, 1e-3] {
        let epsilon = Epsilon::new(alone * (1.0 - margin))?;
        let Ok(noise) = gaussian_noise(PrivacyBudget::Approximate { epsilon, delta }, adjacency) else {
            return Ok(0.0);
        };
        if covers(budget, spent(budget, adjacency, &[&with_one(noise)])?, 1) {
            return Ok(epsilon.get());
        }
    }
    Ok(0.0)
}

fn sum(runs: &[&[CountedEvent]], cost: impl Fn(&[CountedEvent]) -> Result<f64>) -> Result<f64> {
    runs.iter().try_fold(0.0, |total, events| Ok(add_up(total, cost(events)?)))
}

/// a + b, rounded up: what rounding lost is known exactly (Knuth).
fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let rounded = sum - a;
    let lost = (a - (sum - rounded)) + (b - rounded);
    if lost > 0.0 { sum.next_up() } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_never_below_the_truth() {
        assert_eq!(add_up(0.0, 0.1), 0.1);
        assert_eq!(add_up(0.1, 0.1), 0.2);
        assert_eq!(add_up(1.0, f64::MIN_POSITIVE), 1.0f64.next_up());
        // To the nearest it would be 0.7999999999999999.
        assert_eq!(add_up(0.1, 0.7), 0.8);
        let mut total = 0.0;
        for _ in 0..1000 {
            total = add_up(total, 0.001);
        }
        // A thousand times the number nearest to 0.001 is a little more than 1.
        let rho = |amount: f64| PrivacyBudget::Zcdp {
            rho: Rho::new(amount).unwrap(),
            stated_at: Delta::new(1e-6).unwrap(),
        };
        assert!(total > 1.0 && covers(rho(1.0), rho(total), 1000), "{total}");
        assert!(covers(rho(0.3), rho(add_up(0.2, 0.1)), 3));
        assert!(!covers(rho(1.0), rho(1.0 + 1e-12), 1000) && !covers(rho(1.0), rho(1.0 + 2e-15), 3));
        let approximate = |epsilon: f64| PrivacyBudget::Approximate {
            epsilon: Epsilon::new(epsilon).unwrap(),
            delta: Delta::new(1e-6).unwrap(),
        };
        assert!(!covers(approximate(1.0), approximate(1.0f64.next_up()), 1000));
    }
}
