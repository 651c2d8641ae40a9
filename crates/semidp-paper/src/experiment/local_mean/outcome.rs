//! Tables and words of the experiment.

use super::summary::{Point, check};
use super::*;
use crate::{Cell, Table};
use serde_json::json;

/// The setting of erratum 16.
const ERRATUM: (&str, f64, usize) = ("sphere", 1.0, 100);

pub(super) fn outcome(
    experiment: &LocalMean,
    settings: &Settings,
    repetitions: u64,
    points: &[Point],
) -> Result<Outcome> {
    let populations = POPULATIONS.map(|population| {
        json!({
            "name": population.name,
            "length_of_the_mean": population.length,
            "total_variance": population.std.powi(2),
        })
    });
    Ok(Outcome {
        name: experiment.name(),
        title: experiment.title(),
        setting: json!({
            "paper": "lem: privunit error, and the proposition on semi-PrivUnit",
            "data": "every coordinate is (length of the mean ± std)/√d, each sign a fair coin; all rows are in the unit ball",
            "populations": populations,
            "d": DIMENSION,
            "n": ROWS,
            "n_public": PUBLIC,
            "epsilon": EPSILONS,
            "trust": "local, one report a person",
            "randomizers": MECHANISMS,
            "moments": "known: length of the mean and variance are those of the population",
            "repetitions": repetitions,
            "seed": settings.seed,
            "shared": "all estimators of a repetition see the same public rows and the same reports",
            "opposed": "the public rows are turned round, so that they have the opposite mean",
        }),
        findings: findings::findings(points),
        tables: vec![
            erratum_table(points),
            check_table(points),
            error_table(
                "local-mean",
                "Squared error to the mean of the population",
                Goal::Population,
                points,
            ),
            error_table(
                "local-mean-in-ball",
                "The same after the estimate was moved into the ball",
                Goal::InBall,
                points,
            ),
            error_table(
                "local-mean-rows",
                "Squared error to the mean of the rows at hand",
                Goal::Rows,
                points,
            ),
            error_table(
                "local-mean-opposed",
                "The same where public rows have the opposite mean",
                Goal::Opposed,
                points,
            ),
            difference_table(points),
        ],
        charts: charts::charts(points)?,
    })
}

fn text(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

fn optional(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, Cell::Number)
}

/// Where a point is.
const WHERE: [&str; 4] = ["population", "randomizer", "epsilon", "public_share"];

fn place(point: &Point) -> Vec<Cell> {
    vec![
        point.case.population.name.into(),
        point.case.mechanism.name.into(),
        point.case.epsilon.into(),
        point.share().into(),
    ]
}

fn error_table(name: &str, title: &str, goal: Goal, points: &[Point]) -> Table {
    let mut headings = text(&WHERE);
    for estimator in ESTIMATORS {
        let column = estimator.replace('-', "_");
        let whats = ["measured", "standard_error", "expected"];
        headings.extend(whats.map(|what| format!("{what}_{column}")));
    }
    let rows = points.iter().map(|point| {
        let mut row = place(point);
        for estimator in 0..ESTIMATORS.len() {
            let found = point.error(goal, estimator);
            row.extend([found.mean.into(), found.error.into(), optional(point.expected.at(goal, estimator))]);
        }
        row
    });
    Table { name: name.into(), title: title.into(), headings, rows: rows.collect() }
}

fn difference_table(points: &[Point]) -> Table {
    let mut headings = text(&WHERE);
    for (goal, ours, baseline) in PAIRS {
        let pair = format!("{}_minus_{}_{}", ESTIMATORS[ours], ESTIMATORS[baseline], goal.name());
        let pair = pair.replace(", ", "_").replace(['-', ' '], "_");
        headings.extend(["measured", "standard_error", "expected"].map(|what| format!("{what}_{pair}")));
    }
    let rows = points.iter().map(|point| {
        let mut row = place(point);
        for pair in 0..PAIRS.len() {
            let (found, expected) = point.difference(pair);
            row.extend([found.mean.into(), found.error.into(), optional(expected)]);
        }
        row
    });
    Table {
        name: "local-mean-differences".into(),
        title: "Differences of squared errors, paired".into(),
        headings,
        rows: rows.collect(),
    }
}

fn check_table(points: &[Point]) -> Table {
    let headings = [
        "goal",
        "ours",
        "baseline",
        "points",
        "furthest_from_expected_in_standard_errors",
        "clear_differences",
        "of_those_below_zero",
        "clearly_above_zero",
    ];
    let rows = (0..PAIRS.len()).map(|pair| {
        let (goal, ours, baseline) = PAIRS[pair];
        let check = check(points, pair);
        let mut row: Vec<Cell> =
            vec![goal.name().into(), ESTIMATORS[ours].into(), ESTIMATORS[baseline].into()];
        row.extend([(check.points as f64).into(), optional(check.furthest)]);
        row.extend([check.clear, check.below, check.above].map(|count| Cell::Number(count as f64)));
        row
    });
    Table {
        name: "local-mean-checks".into(),
        title: format!(
            "Ours minus a baseline over all populations, randomisers, epsilons and shares; clear is beyond {CLEAR} standard errors"
        ),
        headings: text(&headings),
        rows: rows.collect(),
    }
}

/// Of the setting of erratum 16.
pub(super) fn erratum_points(points: &[Point]) -> impl Iterator<Item = &Point> {
    let (population, epsilon, public) = ERRATUM;
    points.iter().filter(move |point| {
        let case = &point.case;
        case.population.name == population && case.epsilon == epsilon && point.measured.public == public
    })
}

fn erratum_table(points: &[Point]) -> Table {
    let headings = [
        "randomizer",
        "estimator",
        "private_weight",
        "measured",
        "standard_error",
        "expected",
        "measured_in_ball",
        "standard_error_in_ball",
    ];
    let rows = erratum_points(points).flat_map(|point| {
        ESTIMATORS.into_iter().enumerate().map(|(estimator, name)| {
            let combination = &point.expected.combinations[estimator];
            let (found, inside) =
                (point.error(Goal::Population, estimator), point.error(Goal::InBall, estimator));
            vec![
                point.case.mechanism.name.into(),
                name.into(),
                combination.private_weight.into(),
                found.mean.into(),
                found.error.into(),
                combination.mse.into(),
                inside.mean.into(),
                inside.error.into(),
            ]
        })
    });
    let (population, epsilon, public) = ERRATUM;
    Table {
        name: "local-mean-erratum".into(),
        title: format!(
            "Where weights 1/n lose to public rows alone: `{population}`, d = {DIMENSION}, epsilon {epsilon}, {} + {public} rows",
            ROWS - public
        ),
        headings: text(&headings),
        rows: rows.collect(),
    }
}
