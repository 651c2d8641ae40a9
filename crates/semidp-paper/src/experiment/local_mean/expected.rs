//! Exact expectations of squared errors.

use super::{Case, DIMENSION, ESTIMATORS, EVERYONE, Goal, ROWS};
use crate::Result;
use semidp::local::{Combination, Setting, combinations};

/// Of all estimators, at one public share.
pub(super) struct Expected {
    /// In the order of [`ESTIMATORS`].
    pub combinations: Vec<Combination>,
    /// The mean squared error of a report to the vector itself, on average over the population.
    noise: f64,
    private: f64,
    public: f64,
    variance: f64,
    /// The squared length of the mean.
    square: f64,
}

impl Expected {
    pub fn new(case: &Case, public: usize) -> Result<Self> {
        let cap = case.mechanism.at(DIMENSION, case.epsilon()?)?;
        let (length, std) = (case.population.length, case.population.std);
        let with = |private: usize, public: usize| -> Result<Vec<Combination>> {
            let setting = Setting::new(private as u64, public as u64, 1.0)?.with_moments(length, std)?;
            Ok(combinations(&setting, &cap))
        };
        let mut combinations = with(ROWS - public, public)?;
        let everyone = Combination { name: ESTIMATORS[EVERYONE], ..with(ROWS, 0)?[0] };
        combinations.insert(EVERYONE, everyone);
        let (square, variance) = (length * length, std * std);
        Ok(Self {
            combinations,
            noise: cap.mse_at((square + variance).sqrt()),
            private: (ROWS - public) as f64,
            public: public as f64,
            variance,
            square,
        })
    }

    /// The mean squared error, where there is a formula for it.
    pub fn at(&self, goal: Goal, estimator: usize) -> Option<f64> {
        match goal {
            Goal::Population => Some(self.combinations[estimator].mse),
            Goal::InBall => None,
            Goal::Rows => Some(self.to_rows(estimator, 0.0)),
            // Private rows have mean θ, public ones −θ.
            Goal::Opposed => Some(self.to_rows(estimator, 4.0 * self.square)),
        }
    }

    /// To the mean of the rows at hand, if the means of the laws of private and public rows have this squared distance. With weight w
    /// and w₀ = n_priv/n the error is w(mean report − mean private row) + (w − w₀)(mean private row − mean public row).
    fn to_rows(&self, estimator: usize, distance: f64) -> f64 {
        let n = self.private + self.public;
        if estimator == EVERYONE {
            return self.noise / n;
        }
        let weight = self.combinations[estimator].private_weight;
        let apart = self.variance * (1.0 / self.private + 1.0 / self.public) + distance;
        weight.powi(2) * self.noise / self.private + (weight - self.private / n).powi(2) * apart
    }
}
