//! A privacy filter: an (ε, δ) budget for runs whose parameters may depend on what earlier runs released.
//!
//! # Definition
//! For a budget (ε, δ) let D = δ/10 and let V = μ² be the largest number with D + (1−D)·δ_G(ε; μ) ≤ δ, where δ_G(·; μ)
//! is the hockey-stick curve of N(μ, 1) against N(0, 1). Each run is charged a pair (v, d) that *dominates* it: for
//! every t ≥ 0 and each neighbouring pair of data sets, in both directions,
//! $$\delta_{\rm run}(t)\le d+(1-d)\,\delta_G(t;\sqrt v).\tag{1}$$
//! A run is granted if Σv ≤ V and Σd ≤ D with it; otherwise it must not run.
//!
//! # Theorem
//! Everything that granted runs release together is (ε, δ)-DP, however each run, its charge included, was chosen from
//! the results of the runs before it.
//!
//! *Proof.* Fix neighbouring data sets x, x'. (1) for t ≥ 0 in both directions is (1) for all real t, because
//! δ_{P,Q}(−t) = 1 − e^{−t} + e^{−t} δ_{Q,P}(t). Its right-hand side is the curve of the pair
//! E(d) ⊗-mixed with (N(√v, 1), N(0, 1)): with probability d, the same under both hypotheses, the hypothesis is revealed;
//! otherwise a normal variable is observed. By Blackwell's theorem (Dong, Roth and Su 2022, theorem 2.10) a run that
//! this pair dominates is a randomised function of one draw from it. Now let B be a Brownian motion on [0, V], with drift 1
//! if the data are x and 0 if they are x', and T an independent exponential variable. A run that is charged (v, d)
//! when Σv = s and Σ−ln(1−d) = h so far reads B(s+v) − B(s), which is √v·N(√v, 1) or √v·N(0, 1) and independent of the past
//! given the hypothesis, and whether T < h − ln(1−d) given T ≥ h, which has probability d; in that event everything is
//! revealed for good. So the whole interaction, adaptive as it is, is a randomised function of B on [0, V] and of the event
//! T < H with H = −ln(1−D), because Σd ≤ D implies Π(1−d) ≥ 1−D. B on [0, V] is equivalent to its end, N(√V, 1) against
//! N(0, 1); P(T < H) = D. The curve of that pair at ε is D + (1−D)·δ_G(ε; √V) ≤ δ. ∎
//!
//! This is the argument of Smith and Thakurta (2022) for Gaussian mechanisms and of Koskela, Tobaben and Honkela
//! (2023) for mechanisms that are dominated by Gaussian ones; Whitehouse, Ramdas, Rogers and Wu (2023) give filters for other
//! currencies. A filter that grants a run whenever any Rényi order, or the tight composition of what was run so far, stays
//! within the budget is *not* valid for adaptively chosen runs: `tests/filter.rs` breaks it. Runs that overlap in time
//! are covered as well (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang 2023).
//!
//! # How (1) is certified for every t
//! δ_run comes from the PLD accountant, whose curve is an upper bound at every t. Put x = e^t. Every hockey-stick curve is
//! convex and decreasing in x, so between two knots δ_run lies below the chord of its upper bounds there, for each pair of
//! data sets and each direction; and δ_G lies above each of its tangents, whose slope in x is −P(N(0,1) > t/μ + μ/2).
//! Both bounds are linear in x, so on a segment (1) follows from the comparison at its two ends with the tangent at its
//! middle. Beyond the last knot δ_run has fallen to d or less, which covers infinite losses, and stays there.
//!
//! # Pure runs
//! [`GaussianFilter`] takes pure events too, by their loss distribution or, if that is cheaper, by randomised response of their
//! total ε. A caller that keeps pure runs apart may instead add their ε up: for runs with Σε ≤ E, interleaved in any order
//! with runs that a filter for (ε − E, δ) granted, the whole is (ε, δ)-DP, because the loss of the pure runs is at
//! most E on every transcript and, with their outcomes drawn as under x, they tell the filter's adversary nothing. E must be
//! fixed before the filter's first grant.

use crate::accountant::{Accountant, PldAccountant, PureAccountant, RdpAccountant, check_size};
use crate::convert::{LARGEST_TARGET, gaussian_delta_below, gaussian_epsilon, gaussian_mu};
use crate::math::{add_up, normal, search};
use crate::{Adjacency, CountedEvent, Delta, Epsilon, Error, Mu, Result};

/// The share of δ that pays for what no Gaussian curve covers: D/δ. It leaves 98.99 % of V at (1, 1e-6).
const SLACK_SHARE: f64 = 0.1;
/// Points at which curves are compared, denser towards zero. 640 keep the tangents' error in δ below 0.2 %.
const KNOTS: usize = 640;
/// No loss that is looked at is larger.
const LARGEST_LOSS: f64 = 600.0;
/// The smallest share of the budget that a run with a numerical curve is charged.
const SMALLEST_SHARE: f64 = 1e-9;

/// What a run costs, or several runs together, in the currency of a [`GaussianFilter`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FilterCharge {
    /// v = μ² of the Gaussian curve.
    pub variance: f64,
    /// d, the probability of the event on which nothing is promised.
    pub slack: f64,
}

impl FilterCharge {
    /// Nothing.
    pub const ZERO: Self = Self { variance: 0.0, slack: 0.0 };

    /// The charge of both, rounded up.
    pub fn plus(self, other: Self) -> Self {
        Self { variance: add_up(self.variance, other.variance), slack: add_up(self.slack, other.slack) }
    }

    /// The ε at δ that the charge implies: the least with d + (1−d)·δ_G(ε; √v) ≤ δ.
    pub fn epsilon(self, delta: Delta) -> Result<Epsilon> {
        if self.variance == 0.0 && self.slack <= delta.get() {
            return Epsilon::new(0.0);
        }
        gaussian_epsilon(Mu::new(self.variance.sqrt().next_up())?, without(self.slack, delta)?)
    }
}

/// (δ − d)/(1 − d), rounded down.
fn without(slack: f64, delta: Delta) -> Result<Delta> {
    let left = (delta.get() - slack).next_down() / (1.0 - slack);
    let left = if slack == 0.0 { delta.get() } else { left.next_down() };
    if left > 0.0 {
        Delta::new(left)
    } else {
        Err(Error::OutOfRange { quantity: "delta", relation: "below", limit: slack })
    }
}

/// Grants runs within (ε, δ), however they are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianFilter {
    budget: FilterCharge,
}

impl GaussianFilter {
    /// The filter of a budget; of an ε above 10,000, that of 10,000.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        let epsilon = Epsilon::new(epsilon.get().min(LARGEST_TARGET))?;
        let slack = SLACK_SHARE * delta.positive()?.get();
        let mu = gaussian_mu(epsilon, without(slack, delta)?)?.get();
        Ok(Self { budget: FilterCharge { variance: (mu * mu).next_down(), slack } })
    }

    /// V and D.
    pub fn budget(&self) -> FilterCharge {
        self.budget
    }

    /// Whether runs of this total charge are within the budget.
    pub fn covers(&self, total: FilterCharge) -> bool {
        total.variance <= self.budget.variance && total.slack <= self.budget.slack
    }

    /// A charge that dominates the events together, as one run whose parameters are fixed when it starts; `None` if no
    /// charge within the whole budget does.
    ///
    /// Gaussian events cost v = Σμ² and nothing else. Of other runs v is the least for which the pair (v, D·v/V)
    /// dominates, as far as the accountants can certify.
    pub fn charge(&self, events: &[CountedEvent], adjacency: Adjacency) -> Result<Option<FilterCharge>> {
        let mut gaussian = Some(0.0f64);
        for one in events {
            one.event.check(adjacency)?;
            let mu = one.event.gaussian_mu(adjacency);
            gaussian = gaussian.zip(mu).map(|(sum, mu)| {
                // Each product is rounded up: the next number is at least the exact one.
                add_up(sum, ((mu * mu).next_up() * one.count.get() as f64).next_up())
            });
        }
        if let Some(variance) = gaussian {
            return Ok((variance <= self.budget.variance).then_some(FilterCharge { variance, slack: 0.0 }));
        }
        let delta = Delta::new(0.0)?;
        let mut pure = PureAccountant::new(adjacency);
        let by_response = match pure.compose_all(events).and_then(|()| pure.epsilon(delta)) {
            Ok(epsilon) => self.dominating(&|t| randomised_response(epsilon.get(), t)),
            Err(_) => None,
        };
        check_size(events, adjacency)?;
        let mut pld = PldAccountant::new(adjacency);
        let by_curve = match pld.compose_all(events) {
            Ok(()) => {
                let curve = pld.curve(self.budget.slack);
                let mut found = self.dominating(&|t| curve.delta(t));
                // Again with the curve tight where the charge says that it matters, while that helps.
                for _ in 0..4 {
                    let Some(before) = found else { break };
                    let finer = pld.curve((0.25 * before.slack).max(f64::MIN_POSITIVE));
                    let Some(after) = self.dominating(&|t| finer.delta(t)) else { break };
                    if after.variance < before.variance {
                        found = Some(after);
                    }
                    if after.variance > 0.1 * before.variance {
                        break;
                    }
                }
                found
            }
            Err(Error::UnknownEvent { .. }) => {
                let mut rdp = RdpAccountant::new(adjacency);
                rdp.compose_all(events)?;
                let delta = |t| Epsilon::new(t).and_then(|t| rdp.delta(t)).map_or(1.0, Delta::get);
                self.dominating(&delta)
            }
            Err(error) => return Err(error),
        };
        Ok(match (by_response, by_curve) {
            (Some(a), Some(b)) => Some(if a.variance < b.variance { a } else { b }),
            (one, other) => one.or(other),
        })
    }

    /// The least pair (v, D·v/V) found that dominates the curve, which must be an upper bound at each t ≥ 0.
    fn dominating(&self, curve: &dyn Fn(f64) -> f64) -> Option<FilterCharge> {
        let FilterCharge { variance, slack } = self.budget;
        let at = |share: f64| FilterCharge {
            variance: (share * variance).next_up().min(variance),
            slack: (share * slack).next_up().min(slack),
        };
        let mut floor = 1e-4;
        let mut known = knots(curve, floor * slack)?;
        if !dominates(&known, at(1.0)) {
            return None;
        }
        while floor > SMALLEST_SHARE && dominates(&known, at(floor)) {
            let lower = (1e-2 * floor).max(SMALLEST_SHARE);
            // The curve may be too coarse to say more.
            let Some(more) = knots(curve, lower * slack) else { break };
            (floor, known) = (lower, more);
        }
        if dominates(&known, at(floor)) {
            return Some(at(floor));
        }
        let holds = |log_share: f64| dominates(&known, at(log_share.exp().min(1.0)));
        let charge = at(search::bisect(floor.ln(), 0.0, holds).1.exp().min(1.0));
        dominates(&known, charge).then_some(charge)
    }
}

/// (t, an upper bound on δ_run(t)), from t = 0 to where it is at most `floor`; `None` if it never is.
fn knots(curve: &dyn Fn(f64) -> f64, floor: f64) -> Option<Vec<(f64, f64)>> {
    let mut end = 1e-9;
    while curve(end) > floor {
        end *= 2.0;
        if end > LARGEST_LOSS {
            return None;
        }
    }
    let (_, end) = search::bisect(0.0, end, |t| curve(t) <= floor);
    let mut least = 1.0f64;
    let knots = (0..=KNOTS).map(|k| {
        let part = k as f64 / KNOTS as f64;
        let t = if k == KNOTS { end } else { end * part * part };
        // A hockey-stick curve never rises.
        least = least.min(curve(t));
        (t, least)
    });
    Some(knots.collect())
}

/// Whether a charge dominates a curve known at knots: see the module's documentation.
fn dominates(knots: &[(f64, f64)], charge: FilterCharge) -> bool {
    let FilterCharge { variance, slack } = charge;
    let mu = variance.sqrt().next_down();
    // What the curve may have at each end of a segment, beside d, relative to 1 − d; a little less is allowed than computed.
    let allowed = |gaussian: f64| slack + (1.0 - slack) * gaussian * (1.0 - 4.0 * f64::EPSILON);
    for pair in knots.windows(2) {
        let [(t0, r0), (t1, r1)] = [pair[0], pair[1]];
        if r0 <= slack {
            return true;
        }
        if t0 == t1 {
            continue;
        }
        let middle = 0.5 * (t0 + t1);
        let touch = gaussian_delta_below(mu, middle);
        // e^t·P(N > t/μ + μ/2): the slope in x = e^t times the middle's x.
        let slope = (middle + normal::log_sf(middle / mu + 0.5 * mu)).exp();
        let (rise, fall) = (-(t0 - middle).exp_m1(), (t1 - middle).exp_m1());
        // The exponent is good to a few units in the last place of its largest term, as in the Gaussian curve itself.
        let error = 8.0 * f64::EPSILON * (4.0 + middle + (middle / mu + mu).powi(2));
        let (left, right) = (touch + rise * slope * (1.0 - error), touch - fall * slope * (1.0 + error));
        if r0 > allowed(left) || r1 > allowed(right) {
            return false;
        }
    }
    knots.last().is_some_and(|&(_, last)| last <= slack)
}

/// δ(t) of randomised response of ε, rounded up: (e^ε − e^t)/(1 + e^ε).
fn randomised_response(epsilon: f64, t: f64) -> f64 {
    let gap = t - epsilon;
    if gap >= 0.0 { 0.0 } else { -gap.exp_m1() / (1.0 + (-epsilon).exp()) * (1.0 + 8.0 * f64::EPSILON) }
}
