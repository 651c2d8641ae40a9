//! The paper's experiment on mean estimation (`fig:mean-est-d-1000-n-500-appendix` and the two after it):
//! Bernoulli rows, d = 1000, n in {500, 1000, 2000}, ρ = 0.5, public share 0.05 to 0.95.
//!
//! Beside each measured error stands its exact expectation. The paper's form is uncentred: rows of {0, 1}^d
//! have norm up to √d. The centred form clips about ½, where every row has norm √d/2, and needs half the
//! noise for the same guarantee.

use super::Experiment;
use crate::coins::Coins;
use crate::parallel::in_order;
use crate::{Cell, Outcome, Result, Settings, Table};
use semidp::mean::{Plan, Problem, plan_named};
use semidp_accounting::{Adjacency, Delta, PrivacyBudget, Rho};
use semidp_core::{Block, BlockSource, DenseBlock, Private, Public, Randomness, Session};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;

const DIMENSION: usize = 1000;
const SIZES: [usize; 3] = [500, 1000, 2000];
const RHO: f64 = 0.5;
/// Public shares, in percent.
const SHARES: Range<usize> = 1..20;
const PERCENT_A_SHARE: usize = 5;
const TRIALS: u64 = 200;
const QUICK_TRIALS: u64 = 20;
/// A difference is called an improvement beyond this many standard errors.
const CLEAR: f64 = 6.5;

/// What is measured at one size and share.
const ESTIMATORS: [(&str, Form); 5] = [
    ("weighted-gaussian", Form::Uncentred),
    ("gaussian", Form::Uncentred),
    ("throw-away", Form::Uncentred),
    ("weighted-gaussian", Form::Centred),
    ("gaussian", Form::Centred),
];
/// Pairs of the list above whose difference is tested: ours, and a baseline.
const PAIRS: [(usize, usize); 4] = [(0, 1), (0, 2), (3, 4), (3, 2)];

/// What rows are clipped about.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Zero, as in the paper.
    Uncentred,
    /// One half.
    Centred,
}

impl Form {
    fn centre(self) -> f64 {
        match self {
            Self::Uncentred => 0.0,
            Self::Centred => 0.5,
        }
    }

    fn radius(self) -> f64 {
        match self {
            Self::Uncentred => (DIMENSION as f64).sqrt(),
            Self::Centred => (DIMENSION as f64 / 4.0).sqrt(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Uncentred => "uncentred",
            Self::Centred => "centred",
        }
    }
}

/// The experiment.
pub struct MeanEstimation;

impl Experiment for MeanEstimation {
    fn name(&self) -> &'static str {
        "mean-estimation"
    }

    fn title(&self) -> &'static str {
        "Mean estimation on Bernoulli data: measured error beside its exact expectation"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let trials = if settings.quick { QUICK_TRIALS } else { TRIALS };
        let total = trials * SIZES.len() as u64;
        let mut cells = Vec::new();
        for (i, rows) in SIZES.into_iter().enumerate() {
            let done = |trial: u64| progress(i as u64 * trials + trial, total);
            cells.extend(measure(rows, trials, settings, &done)?);
        }
        Ok(Outcome {
            name: self.name(),
            title: self.title(),
            setting: json!({
                "data": "independent Bernoulli(1/2) coordinates in {0, 1}^d",
                "d": DIMENSION,
                "n": SIZES,
                "rho": RHO,
                "adjacency": "replace-one",
                "trials": trials,
                "seed": settings.seed,
                "shared": "all estimators of a trial see the same rows and the same noise",
            }),
            findings: findings(&cells),
            tables: vec![error_table(&cells), difference_table(&cells)],
            charts: SIZES.into_iter().map(|rows| chart(rows, &cells)).collect(),
        })
    }
}

/// Everything about one size and share.
struct Measured {
    rows: usize,
    public: usize,
    plans: Vec<Plan>,
    /// Squared errors, an estimator a list, a trial an entry.
    squared: Vec<Vec<f64>>,
}

impl Measured {
    fn share(&self) -> f64 {
        self.public as f64 / self.rows as f64
    }

    fn measured(&self, estimator: usize) -> f64 {
        mean(self.squared[estimator].iter().copied())
    }

    fn expected(&self, estimator: usize) -> f64 {
        self.plans[estimator].predicted_mse()
    }

    fn measured_distance(&self, estimator: usize) -> f64 {
        mean(self.squared[estimator].iter().map(|error| error.sqrt()))
    }

    /// E‖error‖ = √MSE·(1 − (2 + κ)/(8d)), with κ the excess kurtosis of a coordinate of the error: a fair
    /// coin has fourth cumulant −1/8, and normal noise none.
    fn expected_distance(&self, estimator: usize) -> f64 {
        let plan = &self.plans[estimator];
        let private = (self.rows - self.public) as f64;
        let (r, s) = (plan.private_weight(), plan.public_share() / self.public as f64);
        let cumulant = -(private * r.powi(4) + self.public as f64 * s.powi(4)) / 8.0;
        let d = DIMENSION as f64;
        let kurtosis = cumulant / (plan.predicted_mse() / d).powi(2);
        plan.predicted_mse().sqrt() * (1.0 - (2.0 + kurtosis) / (8.0 * d))
    }

    /// The paired difference of two estimators: measured, its standard error, expected.
    fn difference(&self, (ours, baseline): (usize, usize)) -> (f64, f64, f64) {
        let pairs = self.squared[ours].iter().zip(&self.squared[baseline]);
        let gaps: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
        let centre = mean(gaps.iter().copied());
        let count = gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - centre).powi(2)).sum::<f64>() / (count - 1.0);
        (centre, (variance / count).sqrt(), self.expected(ours) - self.expected(baseline))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    sum / count
}

fn measure(
    rows: usize,
    trials: u64,
    settings: &Settings,
    done: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Measured>> {
    let budget = PrivacyBudget::Zcdp { rho: Rho::new(RHO)?, stated_at: Delta::new(1e-6)? };
    let mut cells = Vec::new();
    for share in SHARES {
        let public = rows * share * PERCENT_A_SHARE / 100;
        let plan = |&(name, form): &(&str, Form)| -> Result<Plan> {
            let problem = Problem::new((rows - public) as u64, public as u64, DIMENSION, form.radius())?;
            Ok(plan_named(name, &problem.with_std((DIMENSION as f64 / 4.0).sqrt())?, budget)?)
        };
        let plans = ESTIMATORS.iter().map(plan).collect::<Result<Vec<_>>>()?;
        cells.push(Measured { rows, public, plans, squared: vec![Vec::new(); ESTIMATORS.len()] });
    }
    let results =
        in_order(trials, settings.threads, done, |trial| one_trial(rows, &cells, settings.seed, trial))?;
    for errors in results {
        for (cell, errors) in cells.iter_mut().zip(errors) {
            cell.squared.iter_mut().zip(errors).for_each(|(all, error)| all.push(error));
        }
    }
    Ok(cells)
}

/// The squared errors of all estimators at all shares, on one draw of rows.
fn one_trial(rows: usize, cells: &[Measured], seed: u64, trial: u64) -> Result<Vec<Vec<f64>>> {
    let stream = (rows as u64) << 32 | trial;
    let table = Arc::new(Coins::new(seed, stream).toss(rows * DIMENSION));
    // Sums of the public rows, carried on from share to share.
    let (mut sums, mut summed) = (vec![0.0; DIMENSION], 0);
    let mut all = Vec::new();
    for (share, cell) in cells.iter().enumerate() {
        for row in table[summed * DIMENSION..cell.public * DIMENSION].chunks_exact(DIMENSION) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        summed = cell.public;
        let public_mean = Public(sums.iter().map(|sum| sum / cell.public as f64).collect::<Vec<f64>>());
        let noise_seed = Coins::new(seed ^ stream, share as u64).word();
        let errors = cell.plans.iter().zip(ESTIMATORS).map(|(plan, (_, form))| -> Result<f64> {
            let private = Private::new(RowsFrom { table: Arc::clone(&table), first: cell.public });
            let session = Session::new(private, Adjacency::ReplaceOne)?
                .with_randomness(Randomness::Seed(noise_seed))
                .with_threads(1);
            let centre = Public(vec![form.centre(); DIMENSION]);
            let release = plan.release(&session, &public_mean, &centre)?;
            Ok(release.value.iter().map(|x| (x - 0.5).powi(2)).sum())
        });
        all.push(errors.collect::<Result<Vec<f64>>>()?);
    }
    Ok(all)
}

/// The rows of a table from one on, without a copy.
struct RowsFrom {
    table: Arc<Vec<f32>>,
    first: usize,
}

impl BlockSource for RowsFrom {
    fn width(&self) -> usize {
        DIMENSION
    }

    fn units(&self) -> usize {
        self.table.len() / DIMENSION - self.first
    }

    fn blocks(&self) -> usize {
        1
    }

    fn units_of(&self, _: usize) -> Range<usize> {
        0..self.units()
    }

    fn visit(&self, _: usize, visit: &mut dyn FnMut(Block<'_>)) -> semidp_core::Result<()> {
        let values = &self.table[self.first * DIMENSION..];
        visit(Block::DenseF32(DenseBlock::new(values, DIMENSION)));
        Ok(())
    }
}

fn error_table(cells: &[Measured]) -> Table {
    let mut headings: Vec<String> = ["n", "public_share", "n_public"].map(String::from).to_vec();
    for (name, form) in ESTIMATORS {
        let column = format!("{}_{name}", form.name()).replace('-', "_");
        headings.extend(
            ["measured_mse", "expected_mse", "measured_l2", "expected_l2"]
                .map(|what| format!("{what}_{column}")),
        );
    }
    let rows = cells.iter().map(|cell| {
        let mut row: Vec<Cell> =
            vec![(cell.rows as f64).into(), cell.share().into(), (cell.public as f64).into()];
        for estimator in 0..ESTIMATORS.len() {
            row.extend([
                cell.measured(estimator).into(),
                cell.expected(estimator).into(),
                cell.measured_distance(estimator).into(),
                cell.expected_distance(estimator).into(),
            ]);
        }
        row
    });
    Table {
        name: "mean-estimation".into(),
        title: "Squared and plain l2 error, measured and expected".into(),
        headings,
        rows: rows.collect(),
    }
}

fn difference_table(cells: &[Measured]) -> Table {
    let headings = [
        "n",
        "public_share",
        "form",
        "baseline",
        "measured_difference",
        "standard_error",
        "expected_difference",
        "standard_errors_from_expected",
        "clearly_below_zero",
    ];
    let rows = cells.iter().flat_map(|cell| {
        PAIRS.into_iter().map(move |pair| {
            let (found, error, expected) = cell.difference(pair);
            vec![
                (cell.rows as f64).into(),
                cell.share().into(),
                ESTIMATORS[pair.0].1.name().into(),
                ESTIMATORS[pair.1].0.into(),
                found.into(),
                error.into(),
                expected.into(),
                ((found - expected) / error).into(),
                if found < -CLEAR * error { "yes" } else { "no" }.into(),
            ]
        })
    });
    Table {
        name: "mean-estimation-differences".into(),
        title: "Weighted-Gaussian minus each baseline, paired".into(),
        headings: headings.map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

fn findings(cells: &[Measured]) -> Vec<String> {
    let differences: Vec<(f64, f64, f64)> =
        cells.iter().flat_map(|cell| PAIRS.map(|pair| cell.difference(pair))).collect();
    let furthest = differences.iter().map(|(found, error, expected)| ((found - expected) / error).abs());
    let furthest = furthest.fold(0.0, f64::max);
    let predicted_clear = differences.iter().filter(|(_, error, expected)| *expected < -CLEAR * error);
    let (clear, below) =
        predicted_clear.fold((0, 0), |(n, below), (found, ..)| (n + 1, below + usize::from(*found < 0.0)));
    let gaps = cells
        .iter()
        .flat_map(|cell| (0..ESTIMATORS.len()).map(|i| (cell.measured(i) / cell.expected(i) - 1.0).abs()));
    let mut points = vec![
        format!(
            "Measured errors are within {:.1}% of their exact expectations everywhere.",
            100.0 * gaps.fold(0.0, f64::max)
        ),
        format!(
            "All {} paired differences between Weighted-Gaussian and a baseline are within {furthest:.1} standard \
             errors of their expectations; of the {clear} whose expected gap exceeds {CLEAR} standard errors, {below} \
             are below zero.",
            differences.len()
        ),
    ];
    let thrown_is_worse = |cell: &&Measured| cell.expected(2) > cell.expected(1);
    let exceptions: Vec<String> = cells
        .iter()
        .filter(thrown_is_worse)
        .map(|cell| {
            format!(
                "n = {}, share {}: {:.4} > {:.4}",
                cell.rows,
                cell.share(),
                cell.expected(2),
                cell.expected(1)
            )
        })
        .collect();
    points.push(format!(
        "The paper says that throw-away beats the Gaussian mechanism for all shares at n = 500 and except at share 0.05 \
         at n = 1000 and 2000. In expectation the exceptions are: {}.",
        exceptions.join("; ")
    ));
    let best = cells.iter().map(|cell| cell.expected(0) / cell.expected(3)).fold(0.0, f64::max);
    points.push(format!(
        "Clipping about 1/2 instead of 0 cuts the error of Weighted-Gaussian up to {best:.2} times further."
    ));
    points
}

/// In the paper's form: mean l2 error against the public share.
fn chart(rows: usize, cells: &[Measured]) -> (String, Chart) {
    let here = || cells.iter().filter(|cell| cell.rows == rows);
    let mut series = Vec::new();
    for (i, (name, form)) in ESTIMATORS.into_iter().enumerate() {
        let name = match form {
            Form::Uncentred => name.to_string(),
            Form::Centred => format!("{name}, centred"),
        };
        let style = if form == Form::Centred { Style::Dashes } else { Style::Line };
        let points = here().map(|cell| (cell.share(), cell.expected_distance(i))).collect();
        series.push(Series { name, points, style, colour: i });
        let points = here().map(|cell| (cell.share(), cell.measured_distance(i))).collect();
        series.push(Series { name: String::new(), points, style: Style::Points, colour: i });
    }
    let chart = Chart {
        title: format!(
            "mean estimation: d = {DIMENSION}, n = {rows}, rho = {RHO}; lines expected, dots measured"
        ),
        x: Axis::linear("public share"),
        y: Axis::logarithmic("mean l2 error"),
        series,
        marks: Vec::new(),
    };
    (format!("mean-estimation-n-{rows}"), chart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference() -> Vec<(serde_json::Value, serde_json::Value)> {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../../../../testdata/reference.json")).unwrap();
        let entries = all["entries"].as_array().unwrap().iter();
        let entries = entries.filter(|entry| entry["function"] == "bernoulli_experiment");
        entries.map(|entry| (entry["inputs"].clone(), entry["output"].clone())).collect()
    }

    /// Expected l2 errors against reference.json.
    #[test]
    fn expected_distances_are_the_reference_ones() {
        let settings = Settings::new(true, 0, 1);
        let cells: Vec<Measured> =
            SIZES.into_iter().flat_map(|rows| measure(rows, 0, &settings, &|_| ()).unwrap()).collect();
        let entries = reference();
        assert!(!entries.is_empty());
        for (inputs, output) in entries {
            let at = |key: &str| inputs[key].as_u64().unwrap() as usize;
            let cell = cells.iter().find(|cell| cell.rows == at("n") && cell.public == at("npub")).unwrap();
            for (estimator, form, key) in [
                (0, "uncentred_B2=d", "l2_weighted"),
                (1, "uncentred_B2=d", "l2_gaussian"),
                (2, "uncentred_B2=d", "l2_throwaway"),
                (3, "centred_B2=d/4", "l2_weighted"),
                (4, "centred_B2=d/4", "l2_gaussian"),
            ] {
                let (found, expected) =
                    (cell.expected_distance(estimator), output[form][key].as_f64().unwrap());
                assert!((found / expected - 1.0).abs() < 1e-6, "{inputs} {form} {key}: {found} {expected}");
            }
        }
    }

    /// The whole experiment at small size: every measured error and every paired difference within its bound.
    #[test]
    fn measured_errors_and_differences_are_the_expected_ones() {
        let trials = 40;
        let settings = Settings::new(true, 7, 2);
        let mut clear = 0;
        for cell in measure(500, trials, &settings, &|_| ()).unwrap() {
            for estimator in 0..ESTIMATORS.len() {
                let gap = (cell.measured(estimator) / cell.expected(estimator) - 1.0).abs();
                // Relative variance of a squared error of d normal coordinates is 2/d.
                let bound = CLEAR * (2.0 / (DIMENSION as f64 * trials as f64)).sqrt();
                assert!(gap < bound, "{} {estimator}: {gap}", cell.share());
            }
            for pair in PAIRS {
                let (found, error, expected) = cell.difference(pair);
                // 40 trials estimate the standard error itself with some error: Student's law with 39
                // degrees of freedom exceeds 8 with probability 1e-9.
                assert!(
                    (found - expected).abs() < 8.0 * error,
                    "{}: {found} {expected} {error}",
                    cell.share()
                );
                if expected < -8.0 * error {
                    assert!(found < 0.0);
                    clear += 1;
                }
            }
        }
        assert!(clear > 30, "{clear}");
    }

    /// Threads and their order make no difference.
    #[test]
    fn results_do_not_depend_on_threads() {
        let run = |threads| {
            let cells = measure(500, 3, &Settings::new(true, 3, threads), &|_| ()).unwrap();
            cells.into_iter().map(|cell| cell.squared).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(3));
    }
}
