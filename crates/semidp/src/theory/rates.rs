//! The paper's minimax rates: how the best possible error scales, with constants left out.
//!
//! Upper bounds are attained by the better of two naive algorithms; the estimators of [`crate::mean`] improve
//! their constants, not the rates. A lower bound is only ever given inside the conditions under which it is
//! proved; where a condition reads "much smaller", a factor 100 is asked for, and "of constant order" is read
//! as 1. Rates are for rows in the unit ball; multiply by the squared radius for means.

use semidp_accounting::{Delta, Epsilon, PrivacyBudget, Rho};

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Squared error of a mean.
    Mean,
    /// Excess training loss.
    EmpiricalRisk,
    /// Excess test loss.
    PopulationRisk,
}

/// Everything a rate depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSetting {
    /// n_priv.
    pub private_rows: u64,
    /// n_pub.
    pub public_rows: u64,
    /// d.
    pub dimension: u64,
    /// ε, if the budget is one in ε.
    pub epsilon: Option<Epsilon>,
    /// δ, if it is approximate.
    pub delta: Option<Delta>,
    /// ρ, if the budget is one in zCDP.
    pub rho: Option<Rho>,
    /// L.
    pub lipschitz: f64,
    /// D.
    pub diameter: f64,
    /// μ, for strongly convex losses.
    pub strong_convexity: f64,
}

impl RateSetting {
    /// Counts and a budget, with L = D = μ = 1.
    pub fn new(private_rows: u64, public_rows: u64, dimension: u64, budget: PrivacyBudget) -> Self {
        let (epsilon, delta, rho) = match budget {
            PrivacyBudget::Approximate { epsilon, delta } => (Some(epsilon), Some(delta), None),
            PrivacyBudget::Pure { epsilon } => (Some(epsilon), None, None),
            PrivacyBudget::Zcdp { rho, .. } => (None, None, Some(rho)),
        };
        let (lipschitz, diameter, strong_convexity) = (1.0, 1.0, 1.0);
        Self {
            private_rows,
            public_rows,
            dimension,
            epsilon,
            delta,
            rho,
            lipschitz,
            diameter,
            strong_convexity,
        }
    }
}

/// One rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    /// A short name.
    pub name: &'static str,
    /// What it says, in words.
    pub title: &'static str,
    /// What is minimised.
    pub task: Task,
    /// The label of the theorem in the paper.
    pub theorem: &'static str,
    /// Attained, up to constants; `None` outside the conditions of the upper bound.
    pub upper: Option<f64>,
    /// Nobody does better, up to constants (and logarithms where the conditions say so); `None` outside
    /// the conditions.
    pub lower: Option<f64>,
    /// The conditions, in words.
    pub conditions: &'static str,
}

impl Rate {
    /// Whether the lower bound is proved here.
    pub fn lower_bound_valid(&self) -> bool {
        self.lower.is_some()
    }
}

/// How much smaller "much smaller" is.
const MUCH: f64 = 100.0;

/// The conditions of the (ε, δ) lower bounds, but for what δ is compared with.
const APPROXIMATE: &str = "lower bound up to a power of log(nd), for algorithms that treat all coordinates \
                           alike: epsilon <= 1/ln(nd), delta <= 1/(100 n-private) for a mean, 1/(100 n) for a loss";
const PURE_POPULATION: &str = "lower bound: epsilon <= d/8, and n-public <= n epsilon/d or d = 1";
const LOCAL: &str = "both bounds: epsilon <= 1";

/// All rates that this budget has, of one task.
pub fn rates(setting: &RateSetting, task: Task) -> Vec<Rate> {
    let s = Scales::new(setting);
    let mut all = Vec::new();
    if let Some(rho) = setting.rho.map(Rho::get) {
        zcdp(&s, rho, &mut all);
    }
    if let Some(epsilon) = setting.epsilon.map(Epsilon::get).filter(|e| *e > 0.0) {
        if let Some(delta) = setting.delta.map(Delta::get).filter(|d| *d > 0.0) {
            approximate(&s, epsilon, delta, &mut all);
        }
        pure(&s, epsilon, &mut all);
        local(&s, epsilon, &mut all);
    }
    all.retain(|rate| rate.task == task);
    all
}

/// The quantities the formulas share.
struct Scales {
    private: f64,
    public: f64,
    n: f64,
    d: f64,
    /// L·D: the scale of losses.
    loss: f64,
    /// L²/μ: the scale of strongly convex upper bounds.
    curved: f64,
    /// μ ≤ L/D, where the strongly convex lower bounds do not exceed the upper ones.
    is_curved_comparable: bool,
}

impl Scales {
    fn new(setting: &RateSetting) -> Self {
        let (private, public) = (setting.private_rows as f64, setting.public_rows as f64);
        let (l, diameter, mu) = (setting.lipschitz, setting.diameter, setting.strong_convexity);
        Self {
            private,
            public,
            n: private + public,
            d: setting.dimension as f64,
            loss: l * diameter,
            curved: l * l / mu,
            is_curved_comparable: mu * diameter <= l * (1.0 + 1e-12),
        }
    }

    /// 1/n_pub, what public rows alone give; without public rows there is no such term.
    fn public_alone(&self) -> f64 {
        1.0 / self.public
    }
}

fn zcdp(s: &Scales, rho: f64, all: &mut Vec<Rate>) {
    all.push(Rate {
        name: "pop_mean_zcdp",
        title: "population mean, rho-zCDP",
        task: Task::Mean,
        theorem: "lem: zcdp naive",
        upper: Some(s.public_alone().min(s.d / (rho * s.n * s.n) + 1.0 / s.n)),
        lower: None,
        conditions: "upper bound only; constants left out",
    });
    let bracket = (s.d / rho).sqrt() / s.n + 1.0 / s.n.sqrt();
    all.push(Rate {
        name: "sco_zcdp_convex",
        title: "convex test loss, rho-zCDP",
        task: Task::PopulationRisk,
        theorem: "thm: approx DP SCO",
        upper: Some(s.loss * s.public_alone().sqrt().min(bracket)),
        lower: None,
        conditions: "upper bound only; constants left out",
    });
}

fn approximate(s: &Scales, epsilon: f64, delta: f64, all: &mut Vec<Rate>) {
    let ne = s.n * epsilon;
    let log = (1.0 / delta).ln();
    // The classical Gaussian noise, on which these rates rest, is too small beyond (erratum 17).
    let upper = |value: f64| (epsilon <= log).then_some(value);
    let is_small = epsilon * (s.n * s.d).ln() <= 1.0;
    let lower = |value: f64, rows: f64| (is_small && delta * rows * MUCH <= 1.0).then_some(value);
    all.push(Rate {
        name: "pop_mean_approx",
        title: "population mean, (epsilon, delta)",
        task: Task::Mean,
        theorem: "thm: CDP mean estimation",
        upper: upper(s.public_alone().min(s.d * log / (ne * ne) + 1.0 / s.n)),
        lower: lower(s.public_alone().min(s.d / (ne * ne) + 1.0 / s.n), s.private),
        conditions: APPROXIMATE,
    });
    let bracket = |log: f64| s.public_alone().sqrt().min((s.d * log).sqrt() / ne + 1.0 / s.n.sqrt());
    all.push(Rate {
        name: "sco_approx_convex",
        title: "convex test loss, (epsilon, delta)",
        task: Task::PopulationRisk,
        theorem: "thm: approx DP SCO",
        upper: upper(s.loss * bracket(log)),
        lower: lower(s.loss * bracket(1.0), s.n),
        conditions: APPROXIMATE,
    });
    all.push(Rate {
        name: "sco_approx_sc",
        title: "strongly convex test loss, (epsilon, delta)",
        task: Task::PopulationRisk,
        theorem: "thm: approx DP SCO app",
        upper: upper(s.curved * bracket(log).powi(2)),
        lower: lower(s.loss * bracket(1.0).powi(2), s.n).filter(|_| s.is_curved_comparable),
        conditions: APPROXIMATE,
    });
}

fn pure(s: &Scales, epsilon: f64, all: &mut Vec<Rate>) {
    let ne = s.n * epsilon;
    // A logarithm that stands for "at least a constant".
    let log = s.n.ln().max(1.0);
    let few_public = s.public <= ne / s.d || s.d == 1.0;
    let population = |value: f64| (epsilon <= s.d / 8.0 && few_public).then_some(value);
    all.push(Rate {
        name: "pop_mean_pure",
        title: "population mean, pure epsilon",
        task: Task::Mean,
        theorem: "thm: pure semi-DP mean estimation",
        upper: Some(s.public_alone().min((s.d / ne).powi(2) + 1.0 / s.n)),
        lower: population(s.public_alone().min((s.d / ne).powi(2) + 1.0 / s.n)),
        conditions: PURE_POPULATION,
    });
    let empirical = (s.private / s.n).min(s.d / ne);
    let always = "lower bound: any epsilon > 0";
    all.push(Rate {
        name: "emp_mean_pure",
        title: "empirical mean, pure epsilon",
        task: Task::Mean,
        theorem: "thm: pure DP empirical mean estimation",
        upper: Some(empirical.powi(2)),
        lower: Some(empirical.powi(2)),
        conditions: always,
    });
    all.push(Rate {
        name: "erm_pure_convex",
        title: "convex training loss, pure epsilon",
        task: Task::EmpiricalRisk,
        theorem: "thm: DP convex ERM",
        upper: Some(s.loss * empirical),
        lower: Some(s.loss * empirical),
        conditions: "lower bound: any epsilon > 0; non-convex losses cost a factor ln n",
    });
    let curved = (s.private / s.n).min(s.d * log.sqrt() / ne);
    all.push(Rate {
        name: "erm_pure_sc",
        title: "strongly convex training loss, pure epsilon",
        task: Task::EmpiricalRisk,
        theorem: "thm: DP convex ERM",
        upper: Some(s.curved * curved.powi(2)),
        lower: Some(s.loss * empirical.powi(2)).filter(|_| s.is_curved_comparable),
        conditions: "lower bound: any epsilon > 0, strong convexity at most L/D",
    });
    let bracket = s.public_alone().sqrt().min(s.d / ne + 1.0 / s.n.sqrt());
    all.push(Rate {
        name: "sco_pure_convex",
        title: "convex test loss, pure epsilon",
        task: Task::PopulationRisk,
        theorem: "thm: pure sdp sco",
        upper: Some(s.loss * bracket),
        lower: population(s.loss * bracket),
        conditions: PURE_POPULATION,
    });
    let squares = |log: f64| s.public_alone().min((s.d / ne).powi(2) * log + 1.0 / s.n);
    all.push(Rate {
        name: "sco_pure_sc",
        title: "strongly convex test loss, pure epsilon",
        task: Task::PopulationRisk,
        theorem: "thm: pure sdp sco",
        upper: Some(s.curved * squares(log)),
        lower: population(s.loss * squares(1.0)).filter(|_| s.is_curved_comparable),
        conditions: PURE_POPULATION,
    });
}

fn local(s: &Scales, epsilon: f64, all: &mut Vec<Rate>) {
    let within = |value: f64| (epsilon <= 1.0).then_some(value);
    let mean = s.public_alone().min(s.d / (s.n * epsilon * epsilon));
    all.push(Rate {
        name: "ldp_mean",
        title: "population mean, local epsilon",
        task: Task::Mean,
        theorem: "thm: LDP mean estimation",
        upper: within(mean),
        lower: within(mean),
        conditions: LOCAL,
    });
    all.push(Rate {
        name: "ldp_sco_convex",
        title: "convex test loss, local epsilon",
        task: Task::PopulationRisk,
        theorem: "thm: LDP SCO convex",
        upper: within(s.loss * mean.sqrt()),
        lower: within(s.loss * mean.sqrt()),
        conditions: LOCAL,
    });
    all.push(Rate {
        name: "ldp_sco_sc",
        title: "strongly convex test loss, local epsilon",
        task: Task::PopulationRisk,
        theorem: "thm: LDP SCO convex",
        upper: within(s.curved * mean),
        lower: within(s.loss * mean).filter(|_| s.is_curved_comparable),
        conditions: LOCAL,
    });
}
