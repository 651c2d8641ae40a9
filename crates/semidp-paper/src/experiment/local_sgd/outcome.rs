//! Tables, charts and words of the experiment.

use super::*;
use crate::regression::mean_and_error;
use crate::{Cell, Table};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::json;

pub(super) fn outcome(
    experiment: &LocalSgdExperiment,
    settings: &Settings,
    sizes: &Sizes,
    cells: &[Measured],
) -> Outcome {
    Outcome {
        name: experiment.name(),
        title: experiment.title(),
        setting: json!({
            "rows": "uniform on the unit sphere",
            "linear": "labels ⟨w*, x⟩ ± 2, each sign a fair coin, ‖w*‖ = 1, squared loss, models within 1.2 of zero, clip norm 4.2",
            "logistic": "labels by 1/(1 + exp(−⟨w*, x⟩)), ‖w*‖ = 5, logistic loss, models within 6 of zero, clip norm 1",
            "d": DIMENSION,
            "people": sizes.people,
            "randomizer": MECHANISM,
            "promise": "pure epsilon to every private person, who reports once; replace-one",
            "start": "zero",
            "repetitions": sizes.repetitions,
            "seed": settings.seed,
            "shared": "all methods of a repetition see the same rows",
        }),
        findings: findings(cells),
        tables: vec![excess_table(cells), difference_table(cells)],
        charts: KINDS
            .into_iter()
            .flat_map(|kind| {
                [chart(kind, cells, sizes, Over::Shares), chart(kind, cells, sizes, Over::Epsilons)]
            })
            .collect(),
    }
}

fn first_columns(cell: &Measured) -> Vec<Cell> {
    vec![cell.setup.kind.name().into(), cell.setup.epsilon.into(), cell.setup.share().into()]
}

fn headings(own: impl IntoIterator<Item = String>) -> Vec<String> {
    ["problem", "epsilon", "public_share"].map(String::from).into_iter().chain(own).collect()
}

fn column(name: &str, what: &str) -> String {
    format!("{}_{what}", name.replace('-', "_"))
}

fn excess_table(cells: &[Measured]) -> Table {
    let own = METHODS
        .into_iter()
        .flat_map(|method| ["excess", "standard_error", "bound"].map(|what| column(method.name(), what)));
    let rows = cells.iter().map(|cell| {
        let mut row = first_columns(cell);
        for method in METHODS {
            let (mean, error) = mean_and_error(&cell.of(method));
            row.extend([mean.into(), error.into(), cell.bound(method).into()]);
        }
        row
    });
    Table {
        name: "local-sgd".into(),
        title: "Mean excess risk, its standard error, and the bound where there is one".into(),
        headings: headings(own),
        rows: rows.collect(),
    }
}

fn difference_table(cells: &[Measured]) -> Table {
    let own = BASELINES.into_iter().flat_map(|other| {
        ["difference", "standard_error", "bound_ratio"].map(|what| column(other.name(), what))
    });
    let rows = cells.iter().map(|cell| {
        let mut row = first_columns(cell);
        for other in BASELINES {
            let (gap, error) = mean_and_error(&cell.gaps(other));
            row.extend([gap.into(), error.into(), bound_ratio(cell, other).into()]);
        }
        row
    });
    Table {
        name: "local-sgd-differences".into(),
        title: "Excess risk of semi-ldp-sgd minus that of others, paired, and the ratio of their bounds"
            .into(),
        headings: headings(own),
        rows: rows.collect(),
    }
}

/// The bound of Semi-LDP-SGD over another's.
fn bound_ratio(cell: &Measured, other: Method) -> Option<f64> {
    Some(cell.bound(Method::Weighted)? / cell.bound(other)?)
}

fn findings(cells: &[Measured]) -> Vec<String> {
    let with_bound = METHODS.iter().filter(|method| cells.iter().all(|cell| cell.bound(**method).is_some()));
    let above: usize = with_bound
        .map(|method| {
            cells
                .iter()
                .filter(|cell| Some(mean_and_error(&cell.of(*method)).0) > cell.bound(*method))
                .count()
        })
        .sum();
    let mut findings = vec![format!(
        "The mean excess risk is above its bound in {above} of all cells and methods that have a bound."
    )];
    for other in BASELINES {
        let (mut better, mut worse) = (0, 0);
        for cell in cells {
            let (gap, error) = mean_and_error(&cell.gaps(other));
            better += usize::from(gap < -CLEAR * error);
            worse += usize::from(gap > CLEAR * error);
        }
        findings.push(format!(
            "Semi-LDP-SGD with weighted steps against {}: better by more than {CLEAR} standard errors in {better} of {} cells, \
             worse in {worse}. Its bound is below the other's in all of them.",
            other.name(),
            cells.len(),
        ));
    }
    for other in [Method::PublicFit, Method::Weighted] {
        let clear = |sign: f64| {
            let is_clear = |cell: &&Measured| {
                let gaps: Vec<f64> =
                    cell.of(Method::Gain).iter().zip(cell.of(other)).map(|(a, b)| a - b).collect();
                let (gap, error) = mean_and_error(&gaps);
                sign * gap > CLEAR * error
            };
            cells.iter().filter(is_clear).count()
        };
        findings.push(format!(
            "Beyond the paper: semi-ldp-gain, which takes the public fit as a prior, is clearly better than {} in {} of {} cells and \
             clearly worse in {}.",
            other.name(),
            clear(-1.0),
            cells.len(),
            clear(1.0),
        ));
    }
    findings.push(
        "Bounds compare one pass of gradient descent with another. The best model for the public rows (throw-away-fit) is no such pass, \
         and no bound here says that Semi-LDP-SGD beats it."
            .into(),
    );
    findings
}

/// What varies along a chart.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    Shares,
    Epsilons,
}

fn chart(kind: Kind, cells: &[Measured], sizes: &Sizes, over: Over) -> (String, Chart) {
    let is_shown = |cell: &&Measured| {
        let is_at_share = (cell.setup.share() - sizes.share).abs() < 1e-9;
        cell.setup.kind == kind
            && match over {
                Over::Shares => cell.setup.epsilon == sizes.epsilon,
                Over::Epsilons => is_at_share,
            }
    };
    let place = |cell: &Measured| match over {
        Over::Shares => cell.setup.share(),
        Over::Epsilons => cell.setup.epsilon,
    };
    let mut shown: Vec<&Measured> = cells.iter().filter(is_shown).collect();
    shown.sort_by(|a, b| place(a).total_cmp(&place(b)));
    let mut series = Vec::new();
    for (colour, method) in METHODS.into_iter().enumerate() {
        let points = shown.iter().map(|cell| (place(cell), mean_and_error(&cell.of(method)).0));
        let points: Vec<(f64, f64)> = points.filter(|(_, excess)| *excess > 0.0).collect();
        series.push(Series {
            name: method.name().into(),
            points: points.clone(),
            style: Style::Line,
            colour,
        });
        series.push(Series { name: String::new(), points, style: Style::Points, colour });
        if method == Method::Weighted {
            let bounds = shown.iter().filter_map(|cell| Some((place(cell), cell.bound(method)?)));
            series.push(Series {
                name: "bound of semi-ldp-sgd".into(),
                points: bounds.collect(),
                style: Style::Dashes,
                colour,
            });
        }
    }
    let (label, title, name) = match over {
        Over::Shares => {
            ("public share", format!("{} problem, epsilon {}", kind.name(), sizes.epsilon), "share")
        }
        Over::Epsilons => {
            ("epsilon", format!("{} problem, public share {}", kind.name(), sizes.share), "epsilon")
        }
    };
    let chart = Chart {
        title,
        x: Axis::logarithmic(label),
        y: Axis::logarithmic("excess risk"),
        series,
        marks: Vec::new(),
    };
    (format!("local-sgd-{}-{name}", kind.name()), chart)
}
