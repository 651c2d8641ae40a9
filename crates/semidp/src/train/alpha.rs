//! The weight α of the private gradient in Algorithm 1.

use crate::{Error, Result};

/// How α is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alpha {
    /// By the user.
    Given(f64),
    /// The best weight for the gradient of each step, as if all its rows were fresh (the paper's Proposition 1):
    /// right for one pass.
    PerStep,
    /// The best weight for the gradient averaged over the run: a fixed public set has an error that does not
    /// average out. Right for many epochs.
    Horizon,
    /// The same for each direction of public gradients by itself: where they hardly vary, noise counts for more. For
    /// scores of a few hundred columns; beyond that, it is the horizon formula.
    ByDirection,
    /// cos(πt/(2K')) at step t = 0, 1, ..., and 0 from step K' on; K' is the number of steps unless it is given. The
    /// private gradient begins with all the weight and ends with none (Amid et al. 2022).
    Cosine {
        /// K'.
        horizon: Option<u64>,
    },
}

/// What α depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variances {
    /// V²: the total variance of one row's (clipped) gradient.
    pub row: f64,
    /// K: private rows in a batch.
    pub batch: f64,
    /// K_pub: public rows in a batch.
    pub public_batch: f64,
    /// n_priv, or a public guess of it where it is secret.
    pub private_rows: f64,
    /// n_pub.
    pub public_rows: f64,
    /// dσ_v²: the total variance of the noise on a step's mean private gradient.
    pub noise: f64,
    /// T_e: steps that average out.
    pub averaged_steps: f64,
}

impl Alpha {
    /// The name of the rule on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::PerStep => "per-step",
            Self::Horizon => "horizon",
            Self::ByDirection => "by-direction",
            Self::Cosine { .. } => "cosine",
        }
    }

    /// α at step `step` (from 1) of so many, for a rule that follows the clock alone.
    pub(super) fn scheduled(self, step: u64, steps: u64) -> Option<f64> {
        let Self::Cosine { horizon } = self else { return None };
        let share = (step - 1) as f64 / horizon.unwrap_or(steps) as f64;
        Some(if share < 1.0 { (std::f64::consts::FRAC_PI_2 * share).cos() } else { 0.0 })
    }

    /// The mean of that over a run.
    pub(super) fn mean_scheduled(self, steps: u64) -> Option<f64> {
        let all: Option<Vec<f64>> = (1..=steps).map(|step| self.scheduled(step, steps)).collect();
        all.map(|all| all.iter().sum::<f64>() / steps as f64)
    }

    /// α itself; at the first step for a rule that follows the clock.
    pub fn weight(self, variances: &Variances) -> Result<f64> {
        let v = variances;
        let (public, private) = match self {
            Self::Given(alpha) if (0.0..=1.0).contains(&alpha) => return Ok(alpha),
            Self::Given(alpha) => return Err(Error::invalid("alpha", alpha, "a number from 0 to 1")),
            Self::Cosine { .. } => return Ok(1.0),
            Self::PerStep => (v.row / v.public_batch, v.row / v.batch + v.noise),
            Self::Horizon | Self::ByDirection => (
                v.row / v.public_rows + v.row / (v.public_batch * v.averaged_steps),
                v.row / v.private_rows + (v.row / v.batch + v.noise) / v.averaged_steps,
            ),
        };
        Ok(public / (public + private))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From all to nothing, the middle at 45 degrees, and never below nothing; its mean is 2/π of the part before K'.
    #[test]
    fn cosines_fall_from_one_to_nought() {
        let rule = Alpha::Cosine { horizon: None };
        assert_eq!(rule.scheduled(1, 100), Some(1.0));
        assert!((rule.scheduled(51, 100).unwrap() - 0.5f64.sqrt()).abs() < 1e-15);
        assert!((1..100).all(|step| rule.scheduled(step, 100) > rule.scheduled(step + 1, 100)));
        assert!((rule.mean_scheduled(10_000).unwrap() - 2.0 / std::f64::consts::PI).abs() < 1e-4);
        let short = Alpha::Cosine { horizon: Some(10) };
        assert!(short.scheduled(10, 100).unwrap() > 0.0);
        assert!((11..=100).all(|step| short.scheduled(step, 100) == Some(0.0)));
        assert_eq!(Alpha::Horizon.scheduled(1, 100), None);
    }

    #[test]
    fn reference_entries() {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../../../../testdata/reference.json")).unwrap();
        let entries =
            all["entries"].as_array().unwrap().iter().filter(|entry| entry["function"] == "alpha_star");
        let mut count = 0;
        for entry in entries {
            let at = |key: &str| entry["inputs"][key].as_f64().unwrap();
            let variances = Variances {
                row: at("V2"),
                batch: at("kpriv"),
                public_batch: at("kpub"),
                private_rows: at("npriv"),
                public_rows: at("npub"),
                noise: at("d") * at("sigma_v").powi(2),
                averaged_steps: at("t_eff"),
            };
            for (rule, key) in [(Alpha::PerStep, "per_step"), (Alpha::Horizon, "horizon")] {
                let (found, expected) =
                    (rule.weight(&variances).unwrap(), entry["output"][key].as_f64().unwrap());
                assert!((found / expected - 1.0).abs() < 1e-12, "{key}: {found} {expected}");
            }
            count += 1;
        }
        assert!(count > 0);
    }
}
