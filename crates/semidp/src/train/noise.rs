//! The least noise that a budget allows a training run.

use crate::{Error, Result};
use semidp_accounting::{PrivacyBudget, calibrate_noise, closed_form_noise};
use semidp_core::{Adjacency, NoiseMultiplier, Sampling, Steps, calibration_delta};

/// Of Gaussian noise on the sum over the clip norm, for so many steps on such samples of so many rows.
///
/// Samples that overlap are calibrated numerically; steps without sampling, and disjoint batches, have closed forms.
pub fn noise_for(
    budget: PrivacyBudget,
    adjacency: Adjacency,
    sampling: Sampling,
    steps: Steps,
    rows: u64,
) -> Result<NoiseMultiplier> {
    let is_amplified = matches!(sampling, Sampling::Poisson { .. } | Sampling::FixedSize { .. });
    let events = |noise| sampling.gaussian_events(noise, steps, rows);
    // Refused here rather than within the search: whether there are events does not depend on the noise.
    events(NoiseMultiplier::new(1.0)?)?;
    let known = |noise| events(noise).expect("there were events for another noise");
    match budget {
        PrivacyBudget::Pure { .. } => {
            Err(Error::invalid("delta", "nothing", "given for training: its Gaussian noise is not pure"))
        }
        PrivacyBudget::Zcdp { .. } if is_amplified => Err(Error::invalid(
            "sampling",
            sampling.name(),
            "one-pass or none with a budget in rho, which sampling does not amplify",
        )),
        PrivacyBudget::Approximate { epsilon, delta } if is_amplified => {
            Ok(calibrate_noise(epsilon, calibration_delta(delta), adjacency, known)?.value)
        }
        PrivacyBudget::Approximate { epsilon, delta } => {
            let budget = PrivacyBudget::Approximate { epsilon, delta: calibration_delta(delta) };
            Ok(closed_form_noise(budget, adjacency, composed(sampling, steps)?, known)?)
        }
        PrivacyBudget::Zcdp { .. } => {
            Ok(closed_form_noise(budget, adjacency, composed(sampling, steps)?, known)?)
        }
    }
}

/// Releases that a single row takes part in.
fn composed(sampling: Sampling, steps: Steps) -> Result<Steps> {
    Ok(match sampling {
        Sampling::OnePass { blocks } | Sampling::InOrder { blocks } => {
            Steps::new(steps.get().div_ceil(blocks.max(1)))?
        }
        _ => steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_core::{Delta, Epsilon, SampleRate};

    /// The noise meets the budget, and a thousandth less does not.
    #[test]
    fn noise_is_enough_and_not_more() {
        let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap());
        let budget = PrivacyBudget::Approximate { epsilon, delta };
        let steps = Steps::new(40).unwrap();
        for sampling in [
            Sampling::Poisson { rate: SampleRate::new(0.05).unwrap() },
            Sampling::FixedSize { size: 50 },
            Sampling::Everyone,
            Sampling::OnePass { blocks: 40 },
            Sampling::OnePass { blocks: 20 },
            Sampling::InOrder { blocks: 40 },
            Sampling::InOrder { blocks: 20 },
        ] {
            let found = noise_for(budget, Adjacency::ReplaceOne, sampling, steps, 1000).unwrap();
            let cost = |factor: f64| {
                let noise = NoiseMultiplier::new(found.get() * factor).unwrap();
                let events = sampling.gaussian_events(noise, steps, 1000).unwrap();
                semidp_accounting::epsilon(&events, Adjacency::ReplaceOne, delta).unwrap().value.get()
            };
            assert!(cost(1.0) <= 1.0 && cost(0.999) > 1.0, "{sampling:?} {}", cost(0.999));
        }
    }

    #[test]
    fn budgets_that_training_cannot_keep_are_refused() {
        let pure = PrivacyBudget::Pure { epsilon: Epsilon::new(1.0).unwrap() };
        let rate = Sampling::Poisson { rate: SampleRate::new(0.1).unwrap() };
        let find = |budget, sampling| {
            noise_for(budget, Adjacency::ReplaceOne, sampling, Steps::ONE, 100).map_err(|e| e.to_string())
        };
        assert!(find(pure, rate).unwrap_err().starts_with("delta must be given"));
        let rho = semidp_accounting::Rho::new(0.5).unwrap();
        let zcdp = PrivacyBudget::Zcdp { rho, stated_at: Delta::new(1e-6).unwrap() };
        assert!(find(zcdp, rate).unwrap_err().starts_with("sampling must be one-pass or none"));
        assert!((find(zcdp, Sampling::Everyone).unwrap().get() - 2.0).abs() < 1e-12);
    }
}
