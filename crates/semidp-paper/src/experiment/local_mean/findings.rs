//! What was found, in words.

use super::outcome::erratum_points;
use super::summary::{Check, Figure, Point, check};
use super::*;

pub(super) fn findings(points: &[Point]) -> Vec<String> {
    let mut all = vec![agreement(points), differences(points)];
    all.extend(erratum_points(points).filter(|point| point.case.mechanism.name != "privunitg").map(erratum));
    all.extend([lemma(points), rows_at_hand(points), in_ball(points), mechanisms(points)]);
    all
}

fn agreement(points: &[Point]) -> String {
    let mut furthest: f64 = 0.0;
    let mut percent: f64 = 0.0;
    for point in points {
        for goal in Goal::ALL {
            for estimator in 0..ESTIMATORS.len() {
                let Figure { mean, error } = point.error(goal, estimator);
                let Some(expected) = point.expected.at(goal, estimator) else { continue };
                furthest = furthest.max(((mean - expected) / error).abs());
                percent = percent.max(100.0 * (mean / expected - 1.0).abs());
            }
        }
    }
    format!(
        "Measured errors, to the mean of the population and to the mean of the rows at hand, are within {furthest:.1} standard errors and \
         {percent:.1}% of their exact expectations everywhere."
    )
}

/// What the checks of some pairs say together.
fn together(points: &[Point], goal: Goal, ours: usize, baselines: &[usize]) -> Check {
    let is_chosen = |pair: &usize| {
        let (its_goal, one, baseline) = PAIRS[*pair];
        its_goal == goal && one == ours && baselines.contains(&baseline)
    };
    let chosen = (0..PAIRS.len()).filter(is_chosen).map(|pair| check(points, pair));
    let none = Check { points: 0, furthest: None, clear: 0, below: 0, above: 0 };
    chosen.fold(none, |a, b| Check {
        points: a.points + b.points,
        furthest: a.furthest.into_iter().chain(b.furthest).reduce(f64::max),
        clear: a.clear + b.clear,
        below: a.below + b.below,
        above: a.above + b.above,
    })
}

fn differences(points: &[Point]) -> String {
    let check = together(points, Goal::Population, WEIGHTED, &[THROW_AWAY, UNIFORM]);
    format!(
        "Mean of the population: the {} paired differences of semi-ldp-weighted to throw-away and to the weights 1/n are within {:.1} \
         standard errors of their expectations; of the {} whose expected gap exceeds {CLEAR} standard errors, {} are below zero.",
        check.points,
        check.furthest.unwrap_or(0.0),
        check.clear,
        check.below
    )
}

fn erratum(point: &Point) -> String {
    let both = |estimator: usize| {
        let Figure { mean, error } = point.error(Goal::Population, estimator);
        format!("{mean:.5} ± {error:.5} (expected {:.5})", point.expected.combinations[estimator].mse)
    };
    format!(
        "With {} of {} rows public, d = {DIMENSION} and epsilon {}, the weights 1/n of {} have error {}, public rows alone {}, the best \
         weights {}.",
        point.measured.public,
        ROWS,
        point.case.epsilon,
        point.case.mechanism.name,
        both(UNIFORM),
        both(THROW_AWAY),
        both(WEIGHTED)
    )
}

/// The least and the largest.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)))
}

fn lemma(points: &[Point]) -> String {
    let check = together(points, Goal::Population, UNIFORM, &[EVERYONE]);
    let mse = |point: &Point, estimator: usize| point.expected.combinations[estimator].mse;
    let beyond = points.iter().map(|point| {
        let private = (ROWS - point.measured.public) as f64 / ROWS as f64;
        mse(point, UNIFORM) / mse(point, EVERYONE) / private
    });
    let (least, most) = range(beyond);
    format!(
        "The paper's lemma: raw public rows with weights 1/n beat a report of everybody. {} of {} expected differences exceed {CLEAR} \
         standard errors, and {} of those are below zero. The error falls to n_priv/n of what it was, times {least:.2} to {most:.2} for how \
         public rows vary themselves.",
        check.clear, check.points, check.below
    )
}

fn rows_at_hand(points: &[Point]) -> String {
    let is_best = |point: &&Point, goal: Goal| {
        let error = |estimator: usize| point.error(goal, estimator).mean;
        (0..ESTIMATORS.len()).all(|other| error(UNIFORM) <= error(other))
    };
    let alike = points.iter().filter(|point| is_best(point, Goal::Rows)).count();
    let near = || points.iter().filter(|point| point.case.population.length > 0.0);
    let opposed = near().filter(|point| is_best(point, Goal::Opposed)).count();
    let worst = near().map(|point| point.error(Goal::Opposed, WEIGHTED).mean).fold(0.0, f64::max);
    format!(
        "Mean of the rows at hand: with weights 1/n public rows have no error, whatever they are, and the estimate is unbiased for any rows, \
         which is what the paper's optimality is about. Where private and public rows are alike, those weights are best of the five in \
         {alike} of {} points: public rows tell of private ones. Where public rows have the opposite mean, they are best in {opposed} of \
         {} points (elsewhere noise outweighs the bias of others), and the weights for the population are off by up to {worst:.2}.",
        points.len(),
        near().count()
    )
}

fn in_ball(points: &[Point]) -> String {
    let check = together(points, Goal::InBall, WEIGHTED, &[THROW_AWAY, UNIFORM]);
    let gain =
        |point: &Point| point.error(Goal::Population, UNIFORM).mean / point.error(Goal::InBall, UNIFORM).mean;
    let (_, most) = range(points.iter().map(gain));
    format!(
        "Moving an estimate into the ball cuts the error of the weights 1/n by up to {most:.1} times. After it semi-ldp-weighted is clearly \
         better than throw-away or 1/n in {} of {} differences, and clearly worse in {}.",
        check.clear, check.points, check.above
    )
}

fn mechanisms(points: &[Point]) -> String {
    let error = |name: &str, epsilon: f64| {
        let is_it = |point: &&Point| point.case.mechanism.name == name && point.case.epsilon == epsilon;
        points.iter().find(is_it).map_or(f64::NAN, |point| point.expected.combinations[EVERYONE].mse)
    };
    let ratios = |name: &str| {
        EPSILONS.map(|epsilon| format!("{:.3}", error(name, epsilon) / error("privunit", epsilon)))
    };
    format!(
        "At epsilon {}, reports by Duchi's mechanism have {} times the expected squared error of PrivUnit's, reports by PrivUnitG {}.",
        EPSILONS.map(|epsilon| epsilon.to_string()).join(", "),
        ratios("duchi").join(", "),
        ratios("privunitg").join(", ")
    )
}
