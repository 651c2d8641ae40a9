//! Plans: an estimator, its weight and its noise, with the error it will have.

use super::problem::{Clip, Problem, Target};
use super::{ESTIMATORS, Estimator, Law};
use crate::{Error, Result};
use semidp_accounting::{Arithmetic, NoiseMultiplier, PrivacyBudget, Provenance};

/// An estimator that is ready to run. Made from counts, public knowledge and a budget alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    name: &'static str,
    about: &'static str,
    problem: Problem,
    budget: PrivacyBudget,
    noise: Option<PlannedNoise>,
    weight: f64,
    weight_source: &'static str,
    known: Vec<Provenance>,
}

/// The noise of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlannedNoise {
    pub law: Law,
    pub multiplier: NoiseMultiplier,
    pub clip: Clip,
    /// Total variance on the sum, N.
    pub variance: f64,
}

impl Plan {
    /// The estimator.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// In a few words.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// What it was made for.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What it may spend.
    pub fn budget(&self) -> PrivacyBudget {
        self.budget
    }

    /// The law of its noise, if it reads private rows.
    pub fn law(&self) -> Option<Law> {
        self.noise.map(|noise| noise.law)
    }

    /// Noise scale over clip norm, on the sum.
    pub fn noise_multiplier(&self) -> Option<NoiseMultiplier> {
        self.noise.map(|noise| noise.multiplier)
    }

    /// The norm that private rows are clipped to, in the norm of the law.
    pub fn clip_norm(&self) -> Option<f64> {
        self.noise.map(|noise| noise.clip.radius)
    }

    /// Whether the guarantee holds for the released bits.
    pub fn arithmetic(&self) -> Arithmetic {
        self.law().map_or(Arithmetic::Exact, Law::arithmetic)
    }

    /// The weight r of each private row.
    pub fn private_weight(&self) -> f64 {
        self.weight
    }

    /// The share of the public mean.
    pub fn public_share(&self) -> f64 {
        self.problem.public_share(self.weight)
    }

    /// The mean squared error, summed over coordinates; see [`Problem::error`].
    pub fn predicted_mse(&self) -> f64 {
        let (variance, clip) = self.noise_on_sum();
        self.problem.error(self.weight, variance, clip)
    }

    /// For the empirical mean: the error if rows are independent draws, and the centre is the public mean.
    pub fn expected_mse(&self) -> Option<f64> {
        match self.problem.target() {
            Target::Population => None,
            Target::Empirical => self.problem.expected_empirical_error(self.weight, self.noise_on_sum().0),
        }
    }

    /// The standard deviation of the noise in each coordinate of the estimate.
    pub fn noise_std(&self) -> f64 {
        self.weight * (self.noise_on_sum().0 / self.problem.dimension() as f64).sqrt()
    }

    fn noise_on_sum(&self) -> (f64, Clip) {
        match self.noise {
            Some(noise) => (noise.variance, noise.clip),
            None => (0.0, self.problem.l2()),
        }
    }

    /// Where radius, standard deviation and centre came from, for the certificate.
    pub fn with_provenance(self, known: Vec<Provenance>) -> Self {
        Self { known, ..self }
    }

    pub(super) fn known(&self) -> &[Provenance] {
        &self.known
    }

    pub(super) fn weight_source(&self) -> &'static str {
        self.weight_source
    }

    pub(super) fn noise(&self) -> Option<PlannedNoise> {
        self.noise
    }
}

/// The plans of all estimators that this budget and these counts admit.
pub fn plan_all(problem: &Problem, budget: PrivacyBudget) -> Result<Vec<Plan>> {
    let mut plans = Vec::new();
    for estimator in ESTIMATORS {
        if let Ok(plan) = plan_estimator(*estimator, problem, budget)? {
            plans.push(plan);
        }
    }
    Ok(plans)
}

/// The plan of one estimator, by name.
pub fn plan_named(name: &str, problem: &Problem, budget: PrivacyBudget) -> Result<Plan> {
    let estimator = find(name)?;
    plan_estimator(estimator, problem, budget)?
        .map_err(|reason| Error::Unsuitable { name: name.into(), reason: reason.into() })
}

/// The plan of one estimator with a weight of the user's own.
pub fn plan_weighted(name: &str, problem: &Problem, budget: PrivacyBudget, weight: f64) -> Result<Plan> {
    let plan = plan_named(name, problem, budget)?;
    let most = if problem.private_rows() == 0 { 0.0 } else { 1.0 / problem.private_rows() as f64 };
    if !(0.0..=most * (1.0 + 1e-12)).contains(&weight) {
        return Err(Error::invalid(
            "private-weight",
            weight,
            "from 0 to one over the number of private rows",
        ));
    }
    if plan.noise.is_none() && weight > 0.0 {
        return Err(Error::Unsuitable { name: name.into(), reason: "gives private rows no weight".into() });
    }
    let plan = Plan { weight, weight_source: "user", ..plan };
    if plan.predicted_mse().is_infinite() {
        return Err(Error::invalid(
            "private-weight",
            weight,
            "one over the number of private rows if there are no public rows",
        ));
    }
    Ok(plan)
}

/// The plan with the least predicted error; the first of equals, so that fewer accesses win. With
/// `exact`, only among those whose guarantee holds bit for bit.
pub fn cheapest(plans: &[Plan], exact: bool) -> Option<&Plan> {
    let allowed = plans.iter().filter(|plan| !exact || plan.arithmetic() == Arithmetic::Exact);
    allowed.min_by(|a, b| a.predicted_mse().total_cmp(&b.predicted_mse()))
}

/// An estimator by name.
pub(super) fn find(name: &str) -> Result<&'static dyn Estimator> {
    ESTIMATORS.iter().copied().find(|estimator| estimator.name() == name).ok_or_else(|| {
        let names: Vec<&str> = ESTIMATORS.iter().map(|estimator| estimator.name()).collect();
        Error::Unsuitable {
            name: name.into(),
            reason: format!("does not exist; there are {}", names.join(", ")),
        }
    })
}

/// The plan, or why there is none.
fn plan_estimator(
    estimator: &dyn Estimator,
    problem: &Problem,
    budget: PrivacyBudget,
) -> Result<std::result::Result<Plan, &'static str>> {
    let noise = match estimator.law() {
        None if problem.public_rows() == 0 => return Ok(Err("needs public rows")),
        None => None,
        Some(_) if problem.private_rows() == 0 => return Ok(Err("needs private rows")),
        Some(law) => {
            let Some(multiplier) = law.noise_multiplier(budget, problem.dimension())? else {
                return Ok(Err(match law {
                    Law::Gaussian => {
                        "needs a delta that is not too small, or a budget in rho: its noise is not pure"
                    }
                    _ => "needs a budget in epsilon that is not too small: it is pure",
                }));
            };
            let clip = law.clip(problem);
            let variance = law.variance(multiplier, clip, problem.dimension());
            Some(PlannedNoise { law, multiplier, clip, variance })
        }
    };
    let weight = noise.map_or(0.0, |noise| estimator.private_weight(problem, noise.variance, noise.clip));
    Ok(Ok(Plan {
        name: estimator.name(),
        about: estimator.about(),
        problem: *problem,
        budget,
        noise,
        weight,
        weight_source: "theory",
        known: Vec::new(),
    }))
}
