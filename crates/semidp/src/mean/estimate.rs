//! From a user's wishes to a plan, and from a plan to the errors of each column.

use super::interval::{half_width, normal_quantile, student_quantile};
use super::plan::{Plan, cheapest, find, plan_named, plan_weighted};
use super::problem::{Problem, Target};
use super::{ESTIMATORS, Estimator, Evidence, Law};
use crate::{Error, Result};
use semidp_accounting::PrivacyBudget;
use semidp_core::Grid;

/// What a user wants of a mean; what is left out is learned from public rows or taken from theory.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What may be spent.
    pub budget: PrivacyBudget,
    /// The mean of what.
    pub target: Target,
    /// The estimator by name; the best one if left out.
    pub estimator: Option<String>,
    /// Only estimators whose guarantee holds bit for bit.
    pub exact: bool,
    /// The radius about the centre; learned if left out.
    pub radius: Option<f64>,
    /// The root of a row's total variance; learned if left out.
    pub std: Option<f64>,
    /// The weight of a private row; the best one if left out.
    pub private_weight: Option<f64>,
    /// Whether the centre is the public mean, as it should be where there is one.
    pub is_centred: bool,
}

impl Request {
    /// The plan. It sees public rows through `evidence`, and of the private rows their number.
    pub fn plan(&self, evidence: Option<&Evidence>, dimension: usize, private_rows: u64) -> Result<Plan> {
        if let Some(name) = &self.estimator {
            return self.plan_one(find(name)?, evidence, dimension, private_rows);
        }
        let mut plans = Vec::new();
        for estimator in ESTIMATORS {
            match self.plan_one(*estimator, evidence, dimension, private_rows) {
                Ok(plan) => plans.push(plan),
                Err(Error::Unsuitable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        cheapest(&plans, self.exact).cloned().ok_or_else(|| Error::Unsuitable {
            name: "auto".into(),
            reason: "finds nothing that fits counts and budget".into(),
        })
    }

    fn plan_one(
        &self,
        estimator: &dyn Estimator,
        evidence: Option<&Evidence>,
        dimension: usize,
        private_rows: u64,
    ) -> Result<Plan> {
        // Said first, because without private rows or with another budget no radius is needed either.
        let unit = Problem::new(private_rows, evidence.map_or(0, Evidence::rows), dimension, 1.0)?;
        plan_named(estimator.name(), &unit, self.budget)?;
        let problem = self.problem(estimator.law(), evidence, dimension, private_rows)?;
        let problem = match self.std {
            Some(std) => problem.with_std(std)?,
            None => problem,
        };
        match self.private_weight.filter(|_| estimator.law().is_some()) {
            Some(weight) => plan_weighted(estimator.name(), &problem, self.budget, weight),
            None => plan_named(estimator.name(), &problem, self.budget),
        }
    }

    pub(super) fn problem(
        &self,
        law: Option<Law>,
        evidence: Option<&Evidence>,
        dimension: usize,
        private_rows: u64,
    ) -> Result<Problem> {
        match (evidence, self.radius, law) {
            (Some(evidence), Some(radius), _) if self.is_centred => {
                evidence.problem_within(private_rows, radius, self.target)
            }
            (Some(evidence), Some(radius), _) => {
                evidence.problem_elsewhere(private_rows, radius, self.target)
            }
            (Some(evidence), None, None) => evidence.problem_of_public_rows(private_rows, self.target),
            (Some(evidence), None, Some(law)) if self.is_centred => {
                evidence.problem(private_rows, law, self.budget, self.target)
            }
            (None, Some(radius), _) => {
                Ok(Problem::new(private_rows, 0, dimension, radius)?.with_target(self.target))
            }
            (_, None, _) => Err(Error::invalid(
                "radius",
                "auto",
                "given, unless there are public rows whose mean is the centre",
            )),
        }
    }
}

/// The errors of each column, in the coordinates of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Errors {
    /// The root of the expected squared error, without the bias of clipping.
    pub standard_errors: Vec<f64>,
    /// Half the width of a confidence interval: sampling error, noise, truncation to the grid, and the bias of
    /// clipping as far as it is known. `None` for a column that does not vary in the public rows.
    pub half_widths: Vec<Option<f64>>,
}

/// The errors of each column at a confidence, or why their law is not known.
///
/// Sampling errors are taken to be normal, with the variances of the public rows (and Student's quantile for
/// not knowing them exactly); noise has its exact law.
pub fn errors(
    plan: &Plan,
    evidence: Option<&Evidence>,
    confidence: f64,
) -> std::result::Result<Errors, &'static str> {
    let problem = plan.problem();
    let (private, public) = (problem.private_rows() as f64, problem.public_rows() as f64);
    let (weight, dimension) = (plan.private_weight(), problem.dimension());
    let clip = plan.law().map(|law| law.clip(problem));
    let noise = plan
        .law()
        .zip(plan.noise_multiplier())
        .zip(clip)
        .map(|((law, multiplier), clip)| (law, weight * multiplier.get() * clip.radius, dimension));
    let bias = private * weight * clip.map_or(0.0, |clip| clip.bias);
    // Contributions are truncated towards the centre, by less than a step of the grid.
    let step = clip.and_then(|clip| Grid::new(clip.radius, dimension).ok()).map_or(0.0, |grid| grid.step());
    let fixed = bias + private * weight * step;
    if problem.target() == Target::Empirical {
        // Rows at full weight: the noise is the only error.
        if (weight / problem.uniform_weight() - 1.0).abs() > 1e-9 && private > 0.0 {
            return Err("the error depends on the rows themselves, whose law is not assumed");
        }
        let width = half_width(confidence, 0.0, noise) + fixed;
        let standard_errors = vec![plan.noise_std(); dimension];
        return Ok(Errors { standard_errors, half_widths: vec![Some(width); dimension] });
    }
    let evidence = evidence.ok_or("without public rows the variance of each column is not known")?;
    if evidence.rows() < 2 {
        return Err("one public row does not show the variance of each column");
    }
    let rest = 1.0 - weight * private;
    let share = weight * weight * private + if rest == 0.0 { 0.0 } else { rest * rest / public };
    let inflation = {
        let p = 0.5 + confidence / 2.0;
        (student_quantile(p, evidence.rows() - 1) / normal_quantile(p)).powi(2)
    };
    let noise_variance = plan.noise_std().powi(2);
    // Columns of the same variance have the same width: an integral each would be wasted on them.
    let mut known: Vec<(f64, f64)> = Vec::new();
    let mut width_of = |sampling: f64| match known.iter().find(|(variance, _)| *variance == sampling) {
        Some((_, width)) => *width,
        None => {
            let width = half_width(confidence, sampling * inflation, noise) + fixed;
            if known.len() < 64 {
                known.push((sampling, width));
            }
            width
        }
    };
    let variances = evidence.variance().iter().map(|variance| variance * share);
    let half_widths = variances.clone().map(|v| (v > 0.0).then(|| width_of(v))).collect();
    Ok(Errors { standard_errors: variances.map(|v| (v + noise_variance).sqrt()).collect(), half_widths })
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::{Delta, Epsilon};
    use semidp_core::{Adjacency, DenseTable, Private, Public, Randomness, Session};

    /// A law of numbers with mean 1, as a function of uniform ones.
    type DataLaw = fn(&mut dyn FnMut() -> f64) -> f64;
    /// Sums of twelve uniform numbers: nearly normal.
    const NORMAL: DataLaw = |uniform| (0..12).map(|_| uniform()).sum::<f64>() - 5.0;
    const EXPONENTIAL: DataLaw = |uniform| -(1.0 - uniform()).ln();

    fn rows(law: DataLaw, count: usize, width: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..count * width).map(|_| law(&mut uniform)).collect()
    }

    /// How often intervals at 90% miss the truth, and the measured over the predicted squared error.
    fn missed(
        law: DataLaw,
        (public, private): (usize, usize),
        budget: PrivacyBudget,
        name: &str,
    ) -> (f64, f64) {
        let width = 3;
        let request = Request {
            budget,
            target: Target::Population,
            estimator: Some(name.into()),
            exact: false,
            radius: None,
            std: None,
            private_weight: None,
            is_centred: true,
        };
        let trials = 300u64;
        let (mut missed, mut measured, mut predicted) = (0.0, 0.0, 0.0);
        for trial in 0..trials {
            let all = rows(law, private + public, width, 1 + trial * 7919);
            let (open, closed) = all.split_at(public * width);
            let evidence = Evidence::of(&Public(DenseTable::new(open.to_vec(), width).unwrap())).unwrap();
            let plan = request.plan(Some(&evidence), width, private as u64).unwrap();
            let errors = errors(&plan, Some(&evidence), 0.9).unwrap();
            let table = DenseTable::new(closed.to_vec(), width).unwrap();
            let session = Session::new(Private::new(table), Adjacency::ReplaceOne).unwrap();
            let session = session.with_randomness(Randomness::Seed(trial)).with_threads(1);
            let centre = Public(evidence.mean().to_vec());
            let value = plan.release(&session, &centre, &centre).unwrap().value;
            for (x, half) in value.iter().zip(&errors.half_widths) {
                missed += f64::from(u8::from((x - 1.0).abs() > half.unwrap()));
                measured += (x - 1.0).powi(2);
            }
            predicted += plan.predicted_mse();
        }
        (missed / (trials as f64 * width as f64), measured / predicted)
    }

    /// Intervals hold the truth as often as they say, for every law, with radii learned from few rows and
    /// data whose tail is exponential; and squared errors are not above what was predicted.
    #[test]
    fn intervals_cover() {
        let delta = Delta::new(1e-5).unwrap();
        let approximate = PrivacyBudget::Approximate { epsilon: Epsilon::new(1.0).unwrap(), delta };
        let pure = PrivacyBudget::Pure { epsilon: Epsilon::new(1.0).unwrap() };
        for (law, rows, budget, name) in [
            (NORMAL, (60, 400), approximate, "weighted-gaussian"),
            (NORMAL, (60, 400), pure, "weighted-laplace"),
            (NORMAL, (60, 400), pure, "weighted-k-norm"),
            (NORMAL, (60, 400), pure, "throw-away"),
            (NORMAL, (10, 1000), approximate, "weighted-gaussian"),
            (NORMAL, (30, 3000), approximate, "weighted-gaussian"),
            (EXPONENTIAL, (10, 1000), approximate, "weighted-gaussian"),
            (EXPONENTIAL, (30, 3000), approximate, "weighted-gaussian"),
            (EXPONENTIAL, (30, 3000), pure, "weighted-laplace"),
            (EXPONENTIAL, (100, 5000), approximate, "weighted-gaussian"),
        ] {
            let (missed, ratio) = missed(law, rows, budget, name);
            // 6.5 standard deviations of a binomial share of 900, tripled in variance: the columns of a trial
            // may miss together.
            let bound = 6.5 * (3.0 * 0.1 * 0.9 / 900.0f64).sqrt();
            assert!(missed < 0.1 + bound, "{name} {rows:?}: {missed}");
            // 900 squared errors have a mean of relative variance 2/900, if errors are normal.
            assert!(ratio < 1.0 + 6.5 * (2.0 / 900.0f64).sqrt(), "{name} {rows:?}: {ratio}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        let budget = PrivacyBudget::Pure { epsilon: Epsilon::new(1.0).unwrap() };
        let request = Request {
            budget,
            target: Target::Population,
            estimator: None,
            exact: true,
            radius: Some(3.0),
            std: None,
            private_weight: None,
            is_centred: true,
        };
        let plan = request.plan(None, 2, 100).unwrap();
        assert_eq!(plan.name(), "laplace");
        assert!(errors(&plan, None, 0.95).is_err());
        // The empirical mean of all rows at full weight has noise for its only error.
        let empirical =
            Request { target: Target::Empirical, estimator: Some("laplace".into()), ..request.clone() };
        let plan = empirical.plan(None, 2, 100).unwrap();
        let found = errors(&plan, None, 0.95).unwrap().half_widths[0].unwrap();
        // Scale 2·√2·3/ε/n in each coordinate, and P(|Z| > x) = e^{−x/s}.
        let expected = 2.0 * 2f64.sqrt() * 3.0 / 100.0 * 20f64.ln();
        // And truncation to a grid of at most 2^-22 of the clip norm.
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
        let weighted = Request { estimator: Some("weighted-laplace".into()), ..empirical };
        assert!(errors(&weighted.plan(None, 2, 100).unwrap(), None, 0.95).is_err());
        assert!(matches!(
            Request { radius: None, ..request }.plan(None, 2, 100),
            Err(Error::InvalidParameter { name: "radius", .. })
        ));
    }
}
