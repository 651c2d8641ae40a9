//! Lower bounds from the scores of many releases in two neighbouring worlds.
//!
//! A threshold is chosen on the first half of the scores and counted on the second, so that it cannot follow chance. With
//! TPR ≥ t and FPR ≤ f, both by Clopper and Pearson,
//!
//! * every (ε, δ)-DP mechanism has ε ≥ ln((t − δ)/f), and the same with the worlds exchanged;
//! * every μ-GDP mechanism has μ ≥ Φ⁻¹(t) − Φ⁻¹(f). If the noise is Gaussian, so that its privacy *is* that of some μ (Dong, Roth
//!   and Su 2022), the exact Gaussian curve turns μ into ε at δ. That is far sharper: the tail of the noise need not be seen.

use super::exact::clopper_pearson;
use super::{Audit, Counts, LowerBound, check_confidence};
use crate::mean::normal_quantile;
use crate::{Error, Result};
use semidp_accounting::convert::gaussian_epsilon;
use semidp_accounting::{Delta, Mu};
use semidp_core::Adjacency;

/// What is said of a mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The mechanism.
    pub what: String,
    /// ε,
    pub epsilon: f64,
    /// δ,
    pub delta: f64,
    /// and whose neighbours they are about.
    pub adjacency: Adjacency,
    /// Whether its privacy is that of one Gaussian release.
    pub is_gaussian: bool,
}

/// Fewer scores than these in a world say nothing.
const FEWEST_SCORES: usize = 20;
/// Points of a curve.
const CURVE_POINTS: usize = 400;

/// An audit of scores: larger where the world is likelier to be IN. They must be independent of each other, and their order must
/// not depend on their values.
pub fn from_scores(claim: Claim, ins: &[f64], outs: &[f64], confidence: f64, seed: u64) -> Result<Audit> {
    check_confidence(confidence)?;
    Delta::new(claim.delta)?;
    if claim.epsilon.is_nan() || claim.epsilon < 0.0 {
        return Err(Error::invalid("epsilon", claim.epsilon, "a number >= 0"));
    }
    for (name, scores) in [("in scores", ins), ("out scores", outs)] {
        if scores.len() < FEWEST_SCORES || scores.iter().any(|score| score.is_nan()) {
            return Err(Error::invalid(name, scores.len(), "20 numbers at least, none of them NaN"));
        }
    }
    let methods: &[Method] =
        if claim.is_gaussian { &[Method::Pure, Method::Gaussian] } else { &[Method::Pure] };
    let miss = (1.0 - confidence) / methods.len() as f64;
    let (choosing, counted) =
        ([&ins[..ins.len() / 2], &outs[..outs.len() / 2]], [&ins[ins.len() / 2..], &outs[outs.len() / 2..]]);
    let mut found = Vec::new();
    for method in methods {
        let rule = choose(*method, choosing, claim.delta, miss);
        let counts = rule.count(counted[0], counted[1]);
        let epsilon = method.epsilon(&counts, rule.is_mirrored, claim.delta, miss);
        let assumes = (*method == Method::Gaussian).then_some("Gaussian noise");
        found.push((LowerBound { method: method.name(), epsilon, confidence, assumes }, counts));
    }
    let best = (1..found.len()).fold(0, |best, i| match found[i].0.epsilon > found[best].0.epsilon {
        true => i,
        false => best,
    });
    let counts = found[best].1;
    Ok(Audit {
        what: claim.what,
        claimed_epsilon: claim.epsilon,
        delta: claim.delta,
        adjacency: claim.adjacency,
        bounds: found.into_iter().map(|(bound, _)| bound).collect(),
        true_positive_rate: counts.true_positive_rate(confidence),
        false_positive_rate: counts.false_positive_rate(confidence),
        roc: curve(counted[0], counted[1]),
        trials: ins.len().min(outs.len()) as u64,
        seed,
    })
}

/// A theory that turns rates into ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Pure,
    Gaussian,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Pure => "differential-privacy",
            Self::Gaussian => "gaussian-dp",
        }
    }

    /// The bound on ε that fails with a chance of at most `miss`.
    pub(super) fn epsilon(self, counts: &Counts, is_mirrored: bool, delta: f64, miss: f64) -> f64 {
        let strength = self.strength(counts, is_mirrored, delta, miss);
        if strength.is_nan() || strength <= 0.0 {
            return 0.0;
        }
        match self {
            Self::Pure => strength,
            // Out of range means that nothing is known.
            Self::Gaussian => Mu::new(strength)
                .and_then(|mu| gaussian_epsilon(mu, Delta::new(delta)?))
                .map_or(0.0, |epsilon| epsilon.get()),
        }
    }

    /// A lower bound on ε or μ; half of `miss` is for each rate.
    fn strength(self, counts: &Counts, is_mirrored: bool, delta: f64, miss: f64) -> f64 {
        let Counts { ins, true_positives, outs, false_positives } = *counts;
        let (hit, false_hit) = match is_mirrored {
            false => ((true_positives, ins), (false_positives, outs)),
            // OUT is the guess that counts, and the worlds change places.
            true => ((outs - false_positives, outs), (ins - true_positives, ins)),
        };
        let (least, _) = clopper_pearson(hit.0, hit.1, 0.5 * miss);
        let (_, most) = clopper_pearson(false_hit.0, false_hit.1, 0.5 * miss);
        match self {
            Self::Pure => ((least - delta).max(0.0) / most).ln(),
            Self::Gaussian => quantile(least) - quantile(most),
        }
    }
}

/// Φ⁻¹, at the ends as far out as a test can see.
fn quantile(p: f64) -> f64 {
    if p >= 0.5 { normal_quantile(p) } else { -normal_quantile(1.0 - p) }
}

/// Guess IN above a threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) threshold: f64,
    /// Whether the guess OUT is the one that counts.
    pub(super) is_mirrored: bool,
}

impl Rule {
    pub(super) fn count(&self, ins: &[f64], outs: &[f64]) -> Counts {
        let above = |scores: &[f64]| scores.iter().filter(|score| **score > self.threshold).count() as u64;
        Counts {
            ins: ins.len() as u64,
            true_positives: above(ins),
            outs: outs.len() as u64,
            false_positives: above(outs),
        }
    }
}

/// The threshold with the largest bound on these scores of IN and OUT.
pub(super) fn choose(method: Method, scores: [&[f64]; 2], delta: f64, miss: f64) -> Rule {
    let sorted = scores.map(sorted);
    let above =
        |world: &[f64], threshold: f64| (world.len() - world.partition_point(|s| *s <= threshold)) as u64;
    let mut best = (f64::NEG_INFINITY, Rule { threshold: 0.0, is_mirrored: false });
    for threshold in thresholds(&sorted) {
        let counts = Counts {
            ins: sorted[0].len() as u64,
            true_positives: above(&sorted[0], threshold),
            outs: sorted[1].len() as u64,
            false_positives: above(&sorted[1], threshold),
        };
        for is_mirrored in [false, true] {
            let strength = method.strength(&counts, is_mirrored, delta, miss);
            if strength > best.0 {
                best = (strength, Rule { threshold, is_mirrored });
            }
        }
    }
    best.1
}

fn sorted(scores: &[f64]) -> Vec<f64> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Candidates: quantiles of both worlds, closer to each other in the tails, where pure mechanisms show themselves. Between two
/// values that differ, so that values which occur often are on one side.
fn thresholds(sorted: &[Vec<f64>; 2]) -> Vec<f64> {
    let mut found = Vec::new();
    for world in sorted.iter().filter(|world| !world.is_empty()) {
        let last = world.len() - 1;
        for step in -40..=40 {
            let share = 1.0 / (1.0 + (-0.2 * f64::from(step)).exp());
            let at = ((last as f64 * share).round() as usize).min(last.saturating_sub(1));
            let next = world[at..].iter().copied().find(|value| *value > world[at]).unwrap_or(world[at]);
            found.push(world[at] + 0.5 * (next - world[at]));
        }
    }
    found.sort_by(f64::total_cmp);
    found.dedup();
    found
}

/// False and true positive rates of all thresholds, a few hundred of them.
pub(super) fn curve(ins: &[f64], outs: &[f64]) -> Vec<(f64, f64)> {
    let (ins, outs) = (sorted(ins), sorted(outs));
    let mut thresholds: Vec<f64> = Vec::new();
    for world in [&ins, &outs] {
        let step = world.len().div_ceil(CURVE_POINTS / 2).max(1);
        thresholds.extend(world.iter().step_by(step));
    }
    thresholds.sort_by(|a, b| b.total_cmp(a));
    thresholds.dedup();
    let share = |world: &[f64], threshold: f64| {
        (world.len() - world.partition_point(|s| *s <= threshold)) as f64 / world.len().max(1) as f64
    };
    let mut points = vec![(0.0, 0.0)];
    points.extend(thresholds.into_iter().map(|t| (share(&outs, t), share(&ins, t))));
    points.push((1.0, 1.0));
    points.dedup();
    points
}
