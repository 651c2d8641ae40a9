//! Which release answers: the joint one that survives a shift, or an estimator of the paper.

use super::Mean;
use super::data::Data;
use super::result::Outcome;
use crate::failure::Failure;
use semidp::mean::{Assumption, Errors, JointPlan, Law, Plan, Problem, Request, Target, errors};
use semidp::strength::refuse_weak_noise;
use semidp_accounting::PrivacyBudget;
use semidp_core::{BlockSource, Public, Release, Session};

/// A planned release.
#[derive(Debug)]
pub enum Method {
    /// An estimator of the paper, or the public rows alone.
    Named { plan: Plan, errors: Result<Errors, &'static str> },
    /// Sums, squares and counts together.
    Joint(JointPlan),
}

/// Why the mean of the public rows has no interval when it stands in for the private rows.
const NOTHING_READ: &str = "the budget is too small to read the private rows: the mean is that of the public rows, and says nothing \
                            about the private ones unless --assume same-population holds";

impl Method {
    /// Whether the joint release is wanted: for the population mean with public rows, unless an estimator of the paper is named.
    pub fn is_joint(options: &Mean, has_public: bool) -> bool {
        let is_named = options.estimator != "auto" && !JointPlan::is_name(&options.estimator);
        has_public
            && options.private.is_some()
            && options.target.target() == Target::Population
            && !is_named
            && options.private_weight.is_none()
    }

    /// The plan. It sees public rows, and of the private rows their number.
    pub fn choose(options: &Mean, mut request: Request, data: &Data, rows: u64) -> Result<Self, Failure> {
        let assumes = options.assumption() == Assumption::SamePopulation;
        if options.private_weight.is_some()
            && options.estimator == "auto"
            && !assumes
            && data.evidence.is_some()
            && rows > 0
        {
            return Err(Failure::input(
                "--private-weight must come with an estimator that weights private rows, or with --assume same-population",
                "add --estimator weighted-gaussian",
            ));
        }
        if JointPlan::is_name(&options.estimator) && (assumes || !data.is_joint) {
            return Err(Failure::input(
                format!(
                    "--estimator {} must have public rows, --target population and no --assume or --private-weight",
                    options.estimator
                ),
                "leave out --estimator to get the best estimator for what is given",
            ));
        }
        let width = data.encoding.width();
        if let (true, Some(evidence)) = (data.is_joint && rows > 0, &data.evidence) {
            if let Some(plan) = JointPlan::best(&request, options.assumption(), evidence, rows)? {
                let known = data.provenance(options, Some(plan.radius()), plan.problem().std());
                return Ok(Self::Joint(plan.with_provenance(known)));
            }
            request.estimator = Some("throw-away".into());
        } else if data.is_joint {
            request.estimator = None;
        }
        let plan = request.plan(data.evidence.as_ref(), width, rows)?;
        let known = data.provenance(options, plan.clip_norm(), plan.problem().std());
        let plan = plan.with_provenance(known);
        let errors = match data.is_joint && rows > 0 && !assumes {
            true => Err(NOTHING_READ),
            false => errors(&plan, data.evidence.as_ref(), options.confidence),
        };
        Ok(Self::Named { plan, errors })
    }

    /// The estimator.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Named { plan, .. } => plan.name(),
            Self::Joint(plan) => plan.name(),
        }
    }

    /// What it may spend.
    pub fn budget(&self) -> PrivacyBudget {
        match self {
            Self::Named { plan, .. } => plan.budget(),
            Self::Joint(plan) => plan.budget(),
        }
    }

    /// What it was made for.
    pub fn problem(&self) -> &Problem {
        match self {
            Self::Named { plan, .. } => plan.problem(),
            Self::Joint(plan) => plan.problem(),
        }
    }

    /// Rows further than this from the centre are clipped.
    pub fn clip_norm(&self) -> Option<f64> {
        match self {
            Self::Named { plan, .. } => plan.clip_norm(),
            Self::Joint(plan) => Some(plan.radius()),
        }
    }

    /// Whether private rows are read at a price.
    pub fn spends(&self) -> bool {
        match self {
            Self::Named { plan, .. } => plan.law().is_some(),
            Self::Joint(_) => true,
        }
    }

    /// Refuses Gaussian noise that hides no row, unless it is allowed.
    pub fn refuse_weak_noise(&self, is_allowed: bool) -> Result<(), Failure> {
        let noise_multiplier = match self {
            Self::Named { plan, .. } if plan.law() == Some(Law::Gaussian) => plan.noise_multiplier(),
            Self::Joint(plan) if plan.law() == Law::Gaussian => Some(plan.noise_multiplier()),
            _ => None,
        };
        Ok(noise_multiplier.map_or(Ok(()), |found| refuse_weak_noise(found, is_allowed))?)
    }

    /// Reads the private rows, once.
    pub fn release<S: BlockSource>(
        self,
        session: &Session<S>,
        data: &Data,
        confidence: f64,
    ) -> semidp::Result<Release<Outcome>> {
        let (mean, centre) = (Public(data.public_mean.clone()), Public(data.centre.clone()));
        match self {
            Self::Named { plan, errors } => {
                let Release { value, mut certificate } = plan.release(session, &mean, &centre)?;
                if plan.law().is_some() {
                    certificate.assumptions.push(READABLE.into());
                }
                Ok(Release { value: Outcome::Named { plan, errors, value }, certificate })
            }
            Self::Joint(plan) => {
                let Release { value, certificate } = plan.release(session, &mean, &centre, confidence)?;
                Ok(Release { value: Outcome::Joint { plan, estimate: value }, certificate })
            }
        }
    }
}

/// Estimators of the paper do not count unreadable cells.
const READABLE: &str =
    "private cells are readable: a missing or unreadable number counts as what the schema imputes";
