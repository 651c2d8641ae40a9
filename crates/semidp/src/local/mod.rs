//! Means in the local model: every private person sends one randomised report, public people send themselves.
//!
//! A report of x has mean x and mean squared error R²/m² − ‖x‖² ([`semidp_accounting::local`]). Over people whose vectors have mean θ
//! and total variance V² a report is off θ by s² = R²/m² − ‖θ‖² on average, which includes V². So with n_priv reports and n_pub
//! public rows,
//!
//! | estimator | weight of a report | mean squared error to θ |
//! |---|---|---|
//! | throw-away | 0 | V²/n_pub |
//! | ldp | 1/n_priv | s²/n_priv |
//! | semi-ldp-uniform | 1/n | (n_priv s² + n_pub V²)/n² |
//! | semi-ldp-weighted | w/n_priv, w = (n_priv/s²)/(n_priv/s² + n_pub/V²) | 1/(n_priv/s² + n_pub/V²) |
//!
//! The weighted one is never worse than any other (Cauchy and Schwarz), by far better where s is far from V. For the mean of the very rows
//! at hand, all n of them, the uniform one is the paper's, with n_priv(R²/m² − mean‖x‖²)/n²: what is public has no error there.

mod aggregate;
mod public;
mod wire;

pub use aggregate::{Aggregate, Content, Header, REPORT_FORMAT, Refusal, Report, ReportId};
pub use public::PublicRows;
pub use wire::{Body, LongestLine, ReportLine, fingerprint, seeded_id};

use crate::{Error, Result};
use semidp_accounting::local::Cap;

/// What is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    private: u64,
    public: u64,
    radius: f64,
    length: f64,
    std: f64,
}

impl Setting {
    /// Counts, and the radius of the ball that holds every vector. Unless more is known, the mean is zero and V the radius: the
    /// largest errors there are.
    pub fn new(private: u64, public: u64, radius: f64) -> Result<Self> {
        positive("radius", radius)?;
        if private + public == 0 {
            return Err(Error::invalid("n-private", private, "at least 1 if there are no public rows"));
        }
        Ok(Self { private, public, radius, length: 0.0, std: radius })
    }

    /// The length of the mean vector and the root of the total variance. Both come from public rows or from the user.
    pub fn with_moments(self, length: f64, std: f64) -> Result<Self> {
        if !(0.0..self.radius).contains(&length) {
            return Err(Error::invalid("mean-norm", length, "at least 0 and below the radius"));
        }
        positive("std", std)?;
        let most = (self.radius * self.radius - length * length).sqrt();
        if std > most * (1.0 + 1e-12) {
            let requirement = "at most sqrt(radius^2 - mean-norm^2): vectors of the ball do not vary more";
            return Err(Error::invalid("std", std, requirement));
        }
        Ok(Self { length, std: std.min(most), ..self })
    }

    /// V.
    pub fn std(&self) -> f64 {
        self.std
    }

    /// s²: of one report to the mean.
    fn report_error(&self, cap: &Cap) -> f64 {
        self.radius * self.radius * cap.mean_square() - self.length * self.length
    }
}

fn positive(name: &'static str, value: f64) -> Result<()> {
    match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(Error::invalid(name, value, "a finite number > 0")),
    }
}

/// A way to combine reports and public rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Combination {
    /// As on the command line.
    pub name: &'static str,
    /// The share of the mean of reports in the estimate; the mean of public rows has the rest.
    pub private_weight: f64,
    /// To the mean of the population.
    pub mse: f64,
    /// To the mean of the rows at hand, public and private, where it is known.
    pub empirical_mse: Option<f64>,
}

/// Every estimator that the counts allow, in the order of the table above.
pub fn combinations(setting: &Setting, cap: &Cap) -> Vec<Combination> {
    let (np, nu) = (setting.private as f64, setting.public as f64);
    let (n, s2, v2) = (np + nu, setting.report_error(cap), setting.std * setting.std);
    let (by_reports, by_public) = (np / s2, nu / v2);
    let square = setting.length * setting.length + v2;
    let noise = setting.radius * setting.radius * cap.mean_square() - square;
    let mut all = Vec::new();
    if setting.public > 0 {
        all.push(Combination {
            name: "throw-away",
            private_weight: 0.0,
            mse: v2 / nu,
            empirical_mse: (setting.private == 0).then_some(0.0),
        });
    }
    if setting.private > 0 {
        all.push(Combination {
            name: "ldp",
            private_weight: 1.0,
            mse: s2 / np,
            empirical_mse: (setting.public == 0).then_some(noise / np),
        });
    }
    if setting.private > 0 && setting.public > 0 {
        all.push(Combination {
            name: "semi-ldp-uniform",
            private_weight: np / n,
            mse: (np * s2 + nu * v2) / (n * n),
            empirical_mse: Some(np * noise / (n * n)),
        });
        all.push(Combination {
            name: "semi-ldp-weighted",
            private_weight: by_reports / (by_reports + by_public),
            mse: 1.0 / (by_reports + by_public),
            empirical_mse: None,
        });
    }
    all
}

/// The one with the least error to the mean of the population.
pub fn best(combinations: &[Combination]) -> Option<&Combination> {
    combinations.iter().min_by(|a, b| a.mse.total_cmp(&b.mse))
}

impl Combination {
    /// The estimate from the mean of reports and the mean of public rows, moved into the ball, which only brings it nearer. A mean that
    /// has no weight may be missing.
    pub fn estimate(
        &self,
        of_reports: Option<&[f64]>,
        of_public: Option<&[f64]>,
        radius: f64,
    ) -> Result<Vec<f64>> {
        let needs = |mean: Option<&[f64]>, weight: f64, name: &'static str| match (mean, weight != 0.0) {
            (None, true) => {
                Err(Error::invalid(name, "nothing", "given: this estimator gives its rows some weight"))
            }
            (mean, _) => Ok(mean.filter(|_| weight != 0.0).map(<[f64]>::to_vec)),
        };
        let weight = self.private_weight;
        let (reports, public) =
            (needs(of_reports, weight, "reports")?, needs(of_public, 1.0 - weight, "public")?);
        let mut estimate = match (reports, public) {
            (Some(reports), Some(public)) if reports.len() == public.len() => {
                reports.iter().zip(&public).map(|(r, p)| weight * r + (1.0 - weight) * p).collect()
            }
            (Some(_), Some(_)) => {
                return Err(Error::invalid(
                    "public",
                    "other columns",
                    "rows of as many numbers as reports have",
                ));
            }
            (Some(mean), None) | (None, Some(mean)) => mean,
            (None, None) => Vec::new(),
        };
        let length = estimate.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > radius {
            estimate.iter_mut().for_each(|x: &mut f64| *x *= radius / length);
        }
        Ok(estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::Epsilon;
    use semidp_accounting::local::randomizer_named;
    use serde_json::Value;

    fn cap(name: &str, dimension: usize, epsilon: f64) -> Cap {
        randomizer_named(name).unwrap().at(dimension, Epsilon::new(epsilon).unwrap()).unwrap()
    }

    #[test]
    fn errors_are_those_of_the_reference() {
        let all: Value = serde_json::from_str(include_str!("../../../../testdata/reference.json")).unwrap();
        let entries = all["entries"].as_array().unwrap().iter();
        let mut seen = 0;
        for entry in entries.filter(|entry| entry["function"] == "semi_local_mean") {
            let (i, o) = (&entry["inputs"], &entry["output"]);
            let cap = cap(
                i["mechanism"].as_str().unwrap(),
                i["d"].as_u64().unwrap() as usize,
                i["eps"].as_f64().unwrap(),
            );
            let length = i["mean_norm"].as_f64().unwrap();
            let setting = Setting::new(i["npriv"].as_u64().unwrap(), i["npub"].as_u64().unwrap(), 1.0)
                .unwrap()
                .with_moments(length, (1.0 - length * length).sqrt())
                .unwrap();
            let found = combinations(&setting, &cap);
            let named = |name: &str| *found.iter().find(|one| one.name == name).unwrap();
            let (uniform, weighted) = (named("semi-ldp-uniform"), named("semi-ldp-weighted"));
            for (got, want) in [
                (named("throw-away").mse, "mse_throwaway"),
                (uniform.mse, "mse_population_1overn"),
                (uniform.empirical_mse.unwrap(), "mse_empirical_1overn"),
                (weighted.mse, "mse_population_optimal"),
                (weighted.private_weight, "w_priv_opt"),
            ] {
                let want = o[want].as_f64().unwrap();
                assert!((got / want - 1.0).abs() < 1e-9, "{i}: {got} {want}");
            }
            assert_eq!(best(&found).unwrap().name, "semi-ldp-weighted");
            seen += 1;
        }
        assert_eq!(seen, 3);
    }

    /// No weight of the reports is better than the best one, and errors of others are what the general formula says.
    #[test]
    fn the_weighted_estimator_is_the_best_weight() {
        for (private, public, epsilon, std) in
            [(1000, 10, 8.0, 0.3), (10, 1000, 0.5, 0.9), (500, 500, 2.0, 1e-3)]
        {
            let cap = cap("privunitg", 20, epsilon);
            let setting = Setting::new(private, public, 2.0).unwrap().with_moments(0.5, std).unwrap();
            let (s2, v2) = (setting.report_error(&cap), std * std);
            let at = |w: f64| w * w * s2 / private as f64 + (1.0 - w) * (1.0 - w) * v2 / public as f64;
            let all = combinations(&setting, &cap);
            let least = best(&all).unwrap();
            for one in &all {
                assert!((at(one.private_weight) / one.mse - 1.0).abs() < 1e-12, "{one:?}");
            }
            (0..=100).for_each(|i| assert!(at(f64::from(i) / 100.0) >= least.mse * (1.0 - 1e-12)));
        }
    }

    #[test]
    fn what_is_not_there_has_no_estimator() {
        let cap = cap("duchi", 3, 1.0);
        let names = |private, public| -> Vec<&str> {
            combinations(&Setting::new(private, public, 1.0).unwrap(), &cap)
                .iter()
                .map(|one| one.name)
                .collect()
        };
        assert_eq!(names(0, 5), ["throw-away"]);
        assert_eq!(names(5, 0), ["ldp"]);
        assert!(Setting::new(0, 0, 1.0).is_err() && Setting::new(1, 0, f64::NAN).is_err());
        let setting = Setting::new(5, 5, 1.0).unwrap();
        assert!(setting.with_moments(1.1, 0.1).is_err() && setting.with_moments(0.9, 0.9).is_err());
    }

    #[test]
    fn estimates_are_combined_and_stay_in_the_ball() {
        let one = Combination { name: "x", private_weight: 0.25, mse: 1.0, empirical_mse: None };
        let (reports, public) = ([4.0, 0.0], [0.0, 0.4]);
        let inside = one.estimate(Some(&reports), Some(&public), 10.0).unwrap();
        assert!((inside[0] - 1.0).abs() < 1e-15 && (inside[1] - 0.3).abs() < 1e-15);
        let moved = one.estimate(Some(&reports), Some(&public), 0.5).unwrap();
        assert!((moved.iter().map(|x| x * x).sum::<f64>() - 0.25).abs() < 1e-15);
        assert!((moved[1] / moved[0] - 0.3).abs() < 1e-15);
        assert!(one.estimate(None, Some(&public), 1.0).is_err());
        assert!(one.estimate(Some(&reports[..1]), Some(&public), 1.0).is_err());
        let alone = Combination { private_weight: 0.0, ..one };
        assert_eq!(alone.estimate(None, Some(&public), 1.0).unwrap(), public);
    }
}
