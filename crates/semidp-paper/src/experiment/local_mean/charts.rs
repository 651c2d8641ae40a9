//! Charts: lines are expected, dots measured.

use super::summary::Point;
use super::*;
use semidp_accounting::local::randomizer_named;
use semidp_plot::{Axis, Chart, Series, Style};

/// The mechanism of charts with several estimators.
const SHOWN_MECHANISM: &str = "privunit";
/// Public rows in the charts over ε.
const SHOWN: usize = 100;
/// Public rows from one place of a line to the next.
const STEP: usize = 10;
/// Places of a line over ε.
const PLACES: i32 = 24;

pub(super) fn charts(points: &[Point]) -> Result<Vec<(String, Chart)>> {
    let mut charts = Vec::new();
    for population in POPULATIONS {
        for epsilon in [1.0, 8.0] {
            charts.push(over_shares(points, population, Goal::Population, epsilon)?);
        }
        charts.push(over_epsilon(points, population)?);
        charts.push(mechanisms(points, population)?);
    }
    charts.push(over_shares(points, POPULATIONS[1], Goal::Rows, 8.0)?);
    charts.push(over_shares(points, POPULATIONS[1], Goal::Opposed, 8.0)?);
    Ok(charts)
}

/// A line of expectations and the dots on it.
fn pair(name: &str, colour: usize, line: Vec<(f64, f64)>, dots: Vec<(f64, f64)>) -> [Series; 2] {
    let series = |name: &str, points, style| Series { name: name.into(), points, style, colour };
    [series(name, line, Style::Line), series("", dots, Style::Points)]
}

/// PrivUnit, and all estimators.
fn over_shares(
    points: &[Point],
    population: Population,
    goal: Goal,
    epsilon: f64,
) -> Result<(String, Chart)> {
    let case = Case { population, mechanism: randomizer_named(SHOWN_MECHANISM)?, epsilon };
    let expected = (STEP..ROWS).step_by(STEP).map(|public| Ok((public, Expected::new(&case, public)?)));
    let expected = expected.collect::<Result<Vec<_>>>()?;
    let mut series = Vec::new();
    for (estimator, name) in ESTIMATORS.into_iter().enumerate() {
        let line = expected.iter().filter_map(|(public, expected)| {
            Some((*public as f64 / ROWS as f64, expected.at(goal, estimator)?))
        });
        let dots = points.iter().filter(|point| point.case.label() == case.label());
        let dots = dots.map(|point| (point.share(), point.error(goal, estimator).mean));
        series.extend(pair(name, estimator, line.collect(), dots.collect()));
    }
    let place = match goal {
        Goal::Population | Goal::InBall => "",
        Goal::Rows => "-rows",
        Goal::Opposed => "-opposed",
    };
    let chart = Chart {
        title: format!(
            "{}, {}: PrivUnit, d = {DIMENSION}, epsilon {epsilon}; lines expected, dots measured",
            population.name,
            goal.name()
        ),
        x: Axis::linear("public share"),
        y: Axis::logarithmic("mean squared error"),
        series,
        marks: Vec::new(),
    };
    Ok((format!("local-mean{place}-{}-epsilon-{epsilon}", population.name), chart))
}

/// ε from the least to the largest.
fn places() -> impl Iterator<Item = f64> {
    let (least, largest) = (EPSILONS[0], EPSILONS[EPSILONS.len() - 1]);
    (0..=PLACES).map(move |i| least * (largest / least).powf(f64::from(i) / f64::from(PLACES)))
}

/// The expected error to the mean of the population along ε, at the shown share.
fn line(
    population: Population,
    mechanism: &'static LocalMechanism,
    estimator: usize,
) -> Result<Vec<(f64, f64)>> {
    let at = |epsilon: f64| -> Result<(f64, f64)> {
        let expected = Expected::new(&Case { population, mechanism, epsilon }, SHOWN)?;
        Ok((epsilon, expected.combinations[estimator].mse))
    };
    places().map(at).collect()
}

/// What was measured there.
fn dots(points: &[Point], population: Population, mechanism: &str, estimator: usize) -> Vec<(f64, f64)> {
    let here = points.iter().filter(|point| {
        let is_case = point.case.population == population && point.case.mechanism.name == mechanism;
        is_case && point.measured.public == SHOWN
    });
    here.map(|point| (point.case.epsilon, point.error(Goal::Population, estimator).mean)).collect()
}

/// PrivUnit, and all estimators.
fn over_epsilon(points: &[Point], population: Population) -> Result<(String, Chart)> {
    let mut series = Vec::new();
    for (estimator, name) in ESTIMATORS.into_iter().enumerate() {
        let line = line(population, randomizer_named(SHOWN_MECHANISM)?, estimator)?;
        series.extend(pair(name, estimator, line, dots(points, population, SHOWN_MECHANISM, estimator)));
    }
    Ok(chart_over_epsilon("estimators", "PrivUnit", population, series))
}

/// The best estimator, and all mechanisms.
fn mechanisms(points: &[Point], population: Population) -> Result<(String, Chart)> {
    let mut series = Vec::new();
    for (colour, mechanism) in super::mechanisms().enumerate() {
        let line = line(population, mechanism, WEIGHTED)?;
        let dots = dots(points, population, mechanism.name, WEIGHTED);
        series.extend(pair(mechanism.name, colour, line, dots));
    }
    let thrown = population.std.powi(2) / SHOWN as f64;
    let points = vec![(EPSILONS[0], thrown), (EPSILONS[EPSILONS.len() - 1], thrown)];
    series.push(Series {
        name: ESTIMATORS[THROW_AWAY].into(),
        points,
        style: Style::Dashes,
        colour: super::MECHANISMS.len(),
    });
    Ok(chart_over_epsilon("mechanisms", ESTIMATORS[WEIGHTED], population, series))
}

fn chart_over_epsilon(
    what: &str,
    fixed: &str,
    population: Population,
    series: Vec<Series>,
) -> (String, Chart) {
    let chart = Chart {
        title: format!(
            "{}: {fixed}, d = {DIMENSION}, {} + {SHOWN} rows; lines expected, dots measured",
            population.name,
            ROWS - SHOWN
        ),
        x: Axis::logarithmic("epsilon"),
        y: Axis::logarithmic("mean squared error"),
        series,
        marks: Vec::new(),
    };
    (format!("local-mean-{what}-{}", population.name), chart)
}
