//! Tables, charts and words of the experiment.

use super::*;
use crate::Table;
use crate::regression::mean_and_error;
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::{Value, json};

/// A difference with its standard error over test images.
type Measured = (f64, f64);

const OURS: &str = "algorithm 1";
const BASELINES: [&str; 2] = ["dp-sgd", "throw-away"];

/// Test error in per cent.
fn error(right: &str) -> f64 {
    100.0 * (1.0 - right.matches('1').count() as f64 / right.len() as f64)
}

/// The test error of the first minus that of the second in points, image by image.
fn gap(first: &str, second: &str) -> Measured {
    let gaps: Vec<f64> = first
        .bytes()
        .zip(second.bytes())
        .map(|(first, second)| 100.0 * (f64::from(second) - f64::from(first)))
        .collect();
    mean_and_error(&gaps)
}

impl Cell {
    /// The baseline with the smaller test error.
    fn better(&self) -> (&'static str, &str) {
        let (dp_sgd, throw_away) = (&self.dp_sgd.right, &self.throw_away.right);
        match error(dp_sgd) < error(throw_away) {
            true => (BASELINES[0], dp_sgd),
            false => (BASELINES[1], throw_away),
        }
    }

    fn to_better(&self) -> Measured {
        gap(&self.algorithm_1.right, self.better().1)
    }

    fn row(&self) -> Vec<crate::Cell> {
        let (better, to_better) = (self.better().0, self.to_better());
        let to_dp_sgd = gap(&self.algorithm_1.right, &self.dp_sgd.right);
        let to_throw_away = gap(&self.algorithm_1.right, &self.throw_away.right);
        let numbers = [
            self.epsilon,
            self.share,
            error(&self.algorithm_1.right),
            error(&self.dp_sgd.right),
            error(&self.throw_away.right),
            to_dp_sgd.0,
            to_dp_sgd.1,
            to_throw_away.0,
            to_throw_away.1,
        ];
        let mut cells: Vec<crate::Cell> = numbers.map(crate::Cell::Number).to_vec();
        cells.push(better.into());
        cells.extend([to_better.0, to_better.1].map(crate::Cell::Number));
        let untuned = self.autopilot.as_ref();
        cells.push(untuned.map(|untuned| error(&untuned.right)).into());
        let to_tuned = untuned.map(|untuned| gap(&untuned.right, &self.algorithm_1.right));
        cells.push(to_tuned.map(|gap| gap.0).into());
        cells.push(to_tuned.map(|gap| gap.1).into());
        cells.push(untuned.map(|untuned| untuned.certified).into());
        cells
    }

    fn choice_rows(&self) -> Vec<Vec<crate::Cell>> {
        let rows = [
            (OURS, &self.algorithm_1, Some(self.noise)),
            (BASELINES[0], &self.dp_sgd, Some(self.dp_sgd_noise)),
            (BASELINES[1], &self.throw_away, None),
        ];
        let row = |(name, chosen, noise): (&str, &Chosen, Option<f64>)| {
            let Choice { rate, alpha, l2 } = chosen.choice;
            vec![
                self.epsilon.into(),
                self.share.into(),
                name.into(),
                rate.into(),
                alpha.into(),
                l2.into(),
                chosen.output.as_str().into(),
                noise.into(),
                (100.0 * chosen.validation_error).into(),
                error(&chosen.right).into(),
            ]
        };
        rows.map(row).to_vec()
    }
}

const HEADINGS: [&str; 16] = [
    "epsilon",
    "public_share",
    "algorithm_1",
    "dp_sgd",
    "throw_away",
    "algorithm_1_minus_dp_sgd",
    "standard_error_dp_sgd",
    "algorithm_1_minus_throw_away",
    "standard_error_throw_away",
    "better_baseline",
    "algorithm_1_minus_better",
    "standard_error_better",
    "autopilot_untuned",
    "autopilot_minus_algorithm_1",
    "standard_error_autopilot",
    "autopilot_certified_epsilon",
];

const CHOICE_HEADINGS: [&str; 10] = [
    "epsilon",
    "public_share",
    "algorithm",
    "learning_rate",
    "alpha",
    "ridge",
    "output",
    "noise_multiplier",
    "validation_error_per_cent",
    "test_error_per_cent",
];

pub(super) fn outcome(
    experiment: &CifarSoftmax,
    settings: &Settings,
    sizes: &Sizes,
    cells: &[Cell],
) -> Outcome {
    let table = |name: &str, title: &str, headings: &[&str], rows| Table {
        name: name.into(),
        title: title.into(),
        headings: headings.iter().map(|heading| String::from(*heading)).collect(),
        rows,
    };
    Outcome {
        name: experiment.name(),
        title: experiment.title(),
        setting: setting(settings, sizes),
        findings: findings(sizes, cells),
        tables: vec![
            table(
                "cifar-softmax",
                "Test error in per cent, and differences in points with standard errors over test images",
                &HEADINGS,
                cells.iter().map(Cell::row).collect(),
            ),
            table(
                "cifar-softmax-choices",
                "What was chosen on the validation images, which leaks",
                &CHOICE_HEADINGS,
                cells.iter().flat_map(Cell::choice_rows).collect(),
            ),
        ],
        charts: cells.chunk_by(|a, b| a.epsilon == b.epsilon).map(chart).collect(),
    }
}

fn setting(settings: &Settings, sizes: &Sizes) -> Value {
    json!({
        "paper": "app:cifar10-setup",
        "data": "CIFAR-10, flattened: bytes over 255 minus one half, and an intercept; softmax cross-entropy",
        "weights": 30_730,
        "training_images": sizes.training,
        "validation_images": sizes.validation.len(),
        "test_images": sizes.test,
        "public_images": "a random share of the training images, those of a small share among those of a large",
        "epsilon": sizes.epsilons,
        "public_share": sizes.shares,
        "delta": DELTA,
        "adjacency": "add-remove, as the paper's accountant",
        "batch": BATCH,
        "public_batch": BATCH,
        "sampling": "Poisson, rate 256 over the private images; public batches with replacement",
        "steps": sizes.steps,
        "start": "zero",
        "clip_norm": CLIP_NORM,
        "public_gradients": "clipped like private ones",
        "noise": "emulated in floating point with the calibrated multiplier; no certificate. All settings of a cell share \
                  batches and noise",
        "tuned_on_validation_images": {
            "leaks": "as in the paper: no budget covers the choice",
            "algorithm_1": { "learning_rate": RATES, "alpha": ALPHAS, "ridge": ALGORITHM_1_RIDGES },
            "dp_sgd": { "learning_rate": DP_SGD_RATES, "private": "all training images" },
            "throw_away": { "learning_rate": THROW_AWAY_RATES, "ridge": RIDGES, "gradients": "not clipped" },
            "output": "the last iterate, or the mean of those after the first fifth",
            "paper_grid": "steps 2000 to 20000, learning rate 0.005 to 5 in 15 values, alpha 0 to 1 in 11",
        },
        "autopilot": autopilot::NAME,
        "autopilot_given": "sample rate and expected batch, which add-remove asks for; the rest from public images and theory",
        "seeds": 1,
        "seed": settings.seed,
    })
}

fn chart(cells: &[Cell]) -> (String, Chart) {
    let line = |of: &dyn Fn(&Cell) -> Option<f64>| -> Vec<(f64, f64)> {
        cells.iter().filter_map(|cell| Some((cell.share, of(cell)?))).collect()
    };
    let all = [
        ("Algorithm 1, tuned", line(&|cell| Some(error(&cell.algorithm_1.right))), 0),
        ("DP-SGD, tuned", line(&|cell| Some(error(&cell.dp_sgd.right))), 1),
        ("throw-away, tuned", line(&|cell| Some(error(&cell.throw_away.right))), 2),
        ("autopilot, untuned", line(&|cell| cell.autopilot.as_ref().map(|run| error(&run.right))), 3),
    ];
    let series =
        all.into_iter().filter(|(_, points, _)| !points.is_empty()).flat_map(|(name, points, colour)| {
            let line = Series { name: name.into(), points: points.clone(), style: Style::Line, colour };
            [line, Series { name: String::new(), points, style: Style::Points, colour }]
        });
    let epsilon = cells[0].epsilon;
    let chart = Chart {
        title: format!("softmax regression on CIFAR-10: epsilon = {epsilon}"),
        x: Axis::logarithmic("public share"),
        y: Axis::linear("test error in per cent"),
        series: series.collect(),
        marks: Vec::new(),
    };
    (format!("cifar-softmax-{epsilon}"), chart)
}

fn findings(sizes: &Sizes, cells: &[Cell]) -> Vec<String> {
    let gaps: Vec<Measured> = cells.iter().map(Cell::to_better).collect();
    let ahead = gaps.iter().filter(|gap| gap.0 < -2.0 * gap.1).count();
    let behind = gaps.iter().filter(|gap| gap.0 > 2.0 * gap.1).count();
    let least = gaps.iter().map(|gap| -gap.0).fold(f64::INFINITY, f64::min);
    let most = gaps.iter().map(|gap| -gap.0).fold(f64::NEG_INFINITY, f64::max);
    let relative = cells.iter().zip(&gaps).map(|(cell, gap)| -100.0 * gap.0 / error(cell.better().1));
    let relative_most = relative.fold(f64::NEG_INFINITY, f64::max);
    let mut findings = vec![
        format!(
            "Against the better of DP-SGD and throw-away, Algorithm 1 changes the test error by {:+.2} to {:+.2} points: below \
             it by more than two standard errors in {ahead} of {} cells, above it by as much in {behind}. Each was tuned on \
             validation images, with two outputs of {} settings for Algorithm 1, {} for DP-SGD and {} for throw-away.",
            -most,
            -least,
            cells.len(),
            RATES.len() * ALPHAS.len() * ALGORITHM_1_RIDGES.len(),
            DP_SGD_RATES.len(),
            THROW_AWAY_RATES.len() * RIDGES.len(),
        ),
        format!(
            "The paper says of CIFAR-10: \"reducing test error by 8-9% for logistic regression\", compared with the naive \
             approaches, without numbers in a table. Here the largest gain is {most:.2} points, or {relative_most:.1}% of the \
             baseline's error."
        ),
    ];
    for group in cells.chunk_by(|a, b| a.epsilon == b.epsilon) {
        let shares: Vec<String> = group
            .iter()
            .map(|cell| {
                let untuned = cell.autopilot.as_ref();
                format!(
                    "share {}: {:.2} / {:.2} / {:.2} / {}",
                    cell.share,
                    error(&cell.algorithm_1.right),
                    error(&cell.dp_sgd.right),
                    error(&cell.throw_away.right),
                    untuned.map_or("none".into(), |untuned| format!("{:.2}", error(&untuned.right))),
                )
            })
            .collect();
        findings.push(format!(
            "Test error in per cent at epsilon = {}, Algorithm 1 / DP-SGD / throw-away / untuned autopilot: {}.",
            group[0].epsilon,
            shares.join("; "),
        ));
    }
    let untuned: Vec<Measured> = cells
        .iter()
        .filter_map(|cell| Some(gap(&cell.autopilot.as_ref()?.right, &cell.algorithm_1.right)))
        .collect();
    findings.push(match untuned.is_empty() {
        true => "The autopilot cannot train so many weights yet.".into(),
        false => format!(
            "The autopilot ({}), which is tuned on nothing and has a certificate, is below the tuned Algorithm 1 by more than \
             two standard errors in {} of {} cells, and above it by as much in {}.",
            autopilot::NAME,
            untuned.iter().filter(|gap| gap.0 < -2.0 * gap.1).count(),
            untuned.len(),
            untuned.iter().filter(|gap| gap.0 > 2.0 * gap.1).count(),
        ),
    });
    let at_an_end = |of: &dyn Fn(&Cell) -> f64, rates: &[f64]| {
        let is_end = |rate: f64| rates.first() == Some(&rate) || rates.last() == Some(&rate);
        cells.iter().filter(|cell| is_end(of(cell))).count()
    };
    findings.push(format!(
        "One seed and {} steps, the least of the paper's grid being 2000; standard errors are those over test images and know \
         nothing of other draws. A step size at an end of its grid was chosen by Algorithm 1 in {} of {} cells, by DP-SGD in \
         {}, by throw-away in {}.",
        sizes.steps,
        at_an_end(&|cell| cell.algorithm_1.choice.rate, &RATES),
        cells.len(),
        at_an_end(&|cell| cell.dp_sgd.choice.rate, &DP_SGD_RATES),
        at_an_end(&|cell| cell.throw_away.choice.rate, &THROW_AWAY_RATES),
    ));
    findings
}
