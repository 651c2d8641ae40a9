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
        }
    }

    /// α itself.
    pub fn weight(self, variances: &Variances) -> Result<f64> {
        let v = variances;
        let (public, private) = match self {
            Self::Given(alpha) if (0.0..=1.0).contains(&alpha) => return Ok(alpha),
            Self::Given(alpha) => return Err(Error::invalid("alpha", alpha, "a number from 0 to 1")),
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
