//! Budgets that promise little, and noise that hides nobody: what to say of them before they are spent.

use crate::{Error, Result};
use semidp_accounting::convert::zcdp_to_epsilon;
use semidp_accounting::{Epsilon, NoiseMultiplier, PrivacyBudget};

/// Smallest multiplier z of Gaussian noise (std over clip norm, on the sum) that is drawn without the caller's consent.
///
/// A row that takes part in one step is told from its absence by that step alone with an error of Φ(−1/(2z)) on either side
/// (add-remove; two rows as far apart as clipping allows: Φ(−1/z)). At z = 0.3 that is 4.8 %: below, an adversary recognises
/// the row with more than 95 % probability, and what the budget calls δ is the chance that this happens. Laplace and K-norm
/// noise have no δ in which such a failure could hide, and no such limit.
pub const WEAKEST_NOISE: f64 = 0.3;

/// Expected number of rows that a mechanism of this δ may publish whole, from which a caller is warned.
pub const DANGEROUS_EXPOSURE: f64 = 0.1;

/// ε from which a caller is warned: e^10 is a factor of 22,000 between the probabilities of an outcome.
pub const DANGEROUS_EPSILON: f64 = 10.0;

/// Refuses Gaussian noise below [`WEAKEST_NOISE`], unless it is allowed.
pub fn refuse_weak_noise(noise_multiplier: NoiseMultiplier, is_allowed: bool) -> Result<()> {
    if is_allowed || noise_multiplier.get() >= WEAKEST_NOISE {
        return Ok(());
    }
    Err(Error::WeakNoise { noise_multiplier: noise_multiplier.get(), least: WEAKEST_NOISE })
}

/// What a caller should know of a budget for so many private rows. Under add-remove that is the number that batch and sample
/// rate imply, never the one of the file; `None` where each person has a report of their own, or nothing is known.
pub fn budget_notes(budget: PrivacyBudget, rows: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    let delta = budget.delta().get();
    let epsilon = match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => Some(epsilon),
        PrivacyBudget::Zcdp { rho, stated_at } => zcdp_to_epsilon(rho, stated_at).ok(),
    };
    if let (PrivacyBudget::Approximate { .. }, Some(rows)) = (budget, rows)
        && delta * rows >= DANGEROUS_EXPOSURE
    {
        notes.push(format!(
            "delta {delta} is too large for about {rows:.0} private rows: publishing each of them whole with that probability \
             would meet the budget; take a delta far below {:.0e}",
            1.0 / rows
        ));
    }
    notes.extend(epsilon.and_then(epsilon_note));
    notes
}

/// What a caller should know of an epsilon.
pub fn epsilon_note(epsilon: Epsilon) -> Option<String> {
    let epsilon = epsilon.get();
    (epsilon >= DANGEROUS_EPSILON && epsilon.is_finite()).then(|| {
        format!(
            "epsilon {epsilon:.4} promises next to nothing: one row may change the probability of an outcome by a factor of \
             {:.1e}; usual budgets are below {DANGEROUS_EPSILON}",
            epsilon.exp()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::{Delta, Rho};

    #[test]
    fn dangerous_budgets_are_named_and_others_are_not() {
        let approximate = |epsilon: f64, delta: f64| PrivacyBudget::Approximate {
            epsilon: Epsilon::new(epsilon).unwrap(),
            delta: Delta::new(delta).unwrap(),
        };
        let zcdp = |rho: f64| PrivacyBudget::Zcdp {
            rho: Rho::new(rho).unwrap(),
            stated_at: Delta::new(1e-6).unwrap(),
        };
        let pure = |epsilon: f64| PrivacyBudget::Pure { epsilon: Epsilon::new(epsilon).unwrap() };
        for (budget, rows, expected) in [
            (approximate(1.0, 0.5), Some(100.0), 1),
            (approximate(1.0, 0.01), Some(3000.0), 1),
            (approximate(1.0, 1e-4), Some(1000.0), 1),
            (approximate(1.0, 0.99e-4), Some(1000.0), 0),
            (approximate(1.0, 0.5), None, 0),
            (approximate(50.0, 0.5), Some(100.0), 2),
            (approximate(10.0, 1e-6), Some(100.0), 1),
            (approximate(9.99, 1e-6), Some(100.0), 0),
            (pure(50.0), Some(100.0), 1),
            (pure(1.0), Some(1e9), 0),
            (zcdp(0.5), Some(1e9), 0),
            (zcdp(5.0), Some(100.0), 1),
        ] {
            assert_eq!(budget_notes(budget, rows).len(), expected, "{budget:?} {rows:?}");
        }
    }

    #[test]
    fn weak_noise_needs_consent() {
        let noise = |z: f64| NoiseMultiplier::new(z).unwrap();
        assert!(refuse_weak_noise(noise(0.3), false).is_ok());
        assert!(refuse_weak_noise(noise(0.29), false).is_err());
        assert!(refuse_weak_noise(noise(0.05), true).is_ok());
    }
}
