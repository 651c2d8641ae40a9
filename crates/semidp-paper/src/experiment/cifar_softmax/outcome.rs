//! Tables, charts and words of the experiment.

use super::*;
use crate::Table;
use crate::regression::mean_and_error;
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::{Value, json};

/// A difference with its standard error over draws.
type Measured = (f64, f64);

const OURS: &str = "algorithm 1";
const BASELINES: [&str; 2] = ["dp-sgd", "throw-away"];

/// The mean test error in per cent.
fn error(errors: &[f64]) -> f64 {
    100.0 * errors.iter().sum::<f64>() / errors.len() as f64
}

/// The test error of the first minus that of the second in points, draw by draw as far as both have them.
fn gap(first: &[f64], second: &[f64]) -> Measured {
    let gaps: Vec<f64> = first.iter().zip(second).map(|(first, second)| 100.0 * (first - second)).collect();
    mean_and_error(&gaps)
}

impl Cell {
    /// The baseline with the smaller test error.
    fn better(&self) -> (&'static str, &[f64]) {
        let (dp_sgd, throw_away) = (&self.dp_sgd.errors, &self.throw_away.errors);
        match error(dp_sgd) < error(throw_away) {
            true => (BASELINES[0], dp_sgd),
            false => (BASELINES[1], throw_away),
        }
    }

    fn to_better(&self) -> Measured {
        gap(&self.algorithm_1.errors, self.better().1)
    }

    fn untuned(&self) -> Vec<f64> {
        self.autopilot.iter().map(|run| run.error).collect()
    }

    /// Of the autopilot to the tuned Algorithm 1.
    fn to_tuned(&self) -> Measured {
        gap(&self.untuned(), &self.algorithm_1.errors)
    }

    fn row(&self) -> Vec<crate::Cell> {
        let (better, to_better) = (self.better().0, self.to_better());
        let to_dp_sgd = gap(&self.algorithm_1.errors, &self.dp_sgd.errors);
        let to_throw_away = gap(&self.algorithm_1.errors, &self.throw_away.errors);
        let numbers = [
            self.epsilon,
            self.share,
            error(&self.algorithm_1.errors),
            error(&self.dp_sgd.errors),
            error(&self.throw_away.errors),
            to_dp_sgd.0,
            to_dp_sgd.1,
            to_throw_away.0,
            to_throw_away.1,
        ];
        let mut cells: Vec<crate::Cell> = numbers.map(crate::Cell::Number).to_vec();
        cells.push(better.into());
        let certified = self.autopilot.iter().map(|run| run.certified).fold(0.0, f64::max);
        let (untuned, to_tuned) = (error(&self.untuned()), self.to_tuned());
        let more = [to_better.0, to_better.1, untuned, to_tuned.0, to_tuned.1, certified];
        cells.extend(more.map(crate::Cell::Number));
        cells
    }

    fn choice_rows(&self) -> Vec<Vec<crate::Cell>> {
        let rows = [
            (OURS, &self.algorithm_1, Some(self.algorithm_1.noise)),
            (BASELINES[0], &self.dp_sgd, Some(self.dp_sgd.noise)),
            (BASELINES[1], &self.throw_away, None),
        ];
        let row = |(name, tuned, noise): (&str, &Tuned, Option<f64>)| {
            let Choice { rate, alpha, l2 } = tuned.chosen.choice;
            vec![
                self.epsilon.into(),
                self.share.into(),
                name.into(),
                (tuned.chosen.steps as f64).into(),
                rate.into(),
                alpha.into(),
                l2.into(),
                tuned.chosen.output.as_str().into(),
                noise.into(),
                (100.0 * tuned.chosen.validation_error).into(),
                error(&tuned.errors).into(),
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

const CHOICE_HEADINGS: [&str; 11] = [
    "epsilon",
    "public_share",
    "algorithm",
    "steps",
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
                "Mean test error in per cent over draws, and differences in points with standard errors, draw by draw",
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
        "start": "zero",
        "clip_norm": CLIP_NORM,
        "public_gradients": "clipped like private ones",
        "noise": "emulated in floating point with the calibrated multiplier; no certificate. All settings of a cell share \
                  batches and noise; so do DP-SGD and Algorithm 1 of one epsilon and draw, but for images that are public",
        "tuned_on_validation_images": {
            "leaks": "as in the paper: no budget covers the choice",
            "algorithm_1": { "learning_rate": RATES, "alpha": ALPHAS, "steps": "as many as were best for DP-SGD" },
            "dp_sgd": { "learning_rate": RATES, "private": "all training images" },
            "throw_away": { "learning_rate": THROW_AWAY_RATES, "ridge": RIDGES, "gradients": "not clipped" },
            "steps": sizes.steps,
            "output": "the last iterate, or the mean of those after the first fifth",
            "paper_grid": "steps 2000 to 20000, learning rate 0.005 to 5 in 15 values, alpha 0 to 1 in 11",
        },
        "autopilot": autopilot::NAME,
        "autopilot_given": "sample rate and expected batch, which add-remove asks for; the rest from public images and theory",
        "draws": sizes.draws,
        "draw": "a random choice of public images, batches and noise; tuned on three others: the grid on one, its best few on all three",
        "seed": settings.seed,
    })
}

fn chart(cells: &[Cell]) -> (String, Chart) {
    let line = |of: &dyn Fn(&Cell) -> f64| -> Vec<(f64, f64)> {
        cells.iter().map(|cell| (cell.share, of(cell))).collect()
    };
    let all = [
        ("Algorithm 1, tuned", line(&|cell| error(&cell.algorithm_1.errors)), 0),
        ("DP-SGD, tuned", line(&|cell| error(&cell.dp_sgd.errors)), 1),
        ("throw-away, tuned", line(&|cell| error(&cell.throw_away.errors)), 2),
        ("autopilot, untuned", line(&|cell| error(&cell.untuned())), 3),
    ];
    let series = all.into_iter().flat_map(|(name, points, colour)| {
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
            RATES.len() * ALPHAS.len(),
            sizes.steps.len() * RATES.len(),
            sizes.steps.len() * THROW_AWAY_RATES.len() * RIDGES.len(),
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
                format!(
                    "share {}: {:.2} / {:.2} / {:.2} / {:.2}",
                    cell.share,
                    error(&cell.algorithm_1.errors),
                    error(&cell.dp_sgd.errors),
                    error(&cell.throw_away.errors),
                    error(&cell.untuned()),
                )
            })
            .collect();
        findings.push(format!(
            "Test error in per cent at epsilon = {}, Algorithm 1 / DP-SGD / throw-away / untuned autopilot: {}.",
            group[0].epsilon,
            shares.join("; "),
        ));
    }
    let untuned: Vec<Measured> = cells.iter().map(Cell::to_tuned).collect();
    let farthest = untuned.iter().map(|gap| gap.0).fold(f64::NEG_INFINITY, f64::max);
    findings.push(format!(
        "The autopilot ({}), which is tuned on nothing and has a certificate, is below the tuned Algorithm 1 by more than two \
         standard errors in {} of {} cells, above it by as much in {}, and nowhere further above than {farthest:+.2} points.",
        autopilot::NAME,
        untuned.iter().filter(|gap| gap.0 < -2.0 * gap.1).count(),
        untuned.len(),
        untuned.iter().filter(|gap| gap.0 > 2.0 * gap.1).count(),
    ));
    let at_an_end = |of: &dyn Fn(&Cell) -> f64, rates: &[f64]| {
        let is_end = |rate: f64| rates.first() == Some(&rate) || rates.last() == Some(&rate);
        cells.iter().filter(|cell| is_end(of(cell))).count()
    };
    let tried: Vec<String> = sizes.steps.iter().map(u64::to_string).collect();
    findings.push(format!(
        "{} draws of public images, batches and noise beside the three that are tuned on; {} steps, where the paper tries 2000 to \
         20000; the test images are the same in all of them. A step size at an end of its grid was chosen by Algorithm 1 in {} of {} cells, by DP-SGD in \
         {}, by throw-away in {}.",
        sizes.draws,
        tried.join(" or "),
        at_an_end(&|cell| cell.algorithm_1.chosen.choice.rate, &RATES),
        cells.len(),
        at_an_end(&|cell| cell.dp_sgd.chosen.choice.rate, &RATES),
        at_an_end(&|cell| cell.throw_away.chosen.choice.rate, &THROW_AWAY_RATES),
    ));
    findings
}
