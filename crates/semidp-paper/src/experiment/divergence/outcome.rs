//! Tables, charts and words of the experiment.

use super::*;
use crate::regression::mean_and_error;
use crate::{Cell, Table};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::json;

/// E‖w_T − w_0‖² of steps that are noise alone: Tη²dσ_v².
pub(super) fn noise_alone(steps: u64, step_size: f64, noise_std: f64) -> f64 {
    steps as f64 * step_size.powi(2) * LAW.dimension as f64 * noise_std.powi(2)
}

/// All trials together.
struct Summary<'a> {
    trials: &'a [Trial],
    noise: NoiseMultiplier,
}

pub(super) fn outcome(
    experiment: &Divergence,
    settings: &Settings,
    noise: NoiseMultiplier,
    trials: &[Trial],
) -> Outcome {
    let summary = Summary { trials, noise };
    Outcome {
        name: experiment.name(),
        title: experiment.title(),
        setting: json!({
            "paper": "fig:special_case",
            "data": "x ~ N(0, I), y = <x, w*> + N(0, 1), w* ~ N(0, I); the test loss is exactly 1 + |w - w*|^2",
            "d": LAW.dimension,
            "n_private": PRIVATE,
            "n_public": PUBLIC,
            "epsilon": EPSILON,
            "delta": DELTA,
            "adjacency": "replace-one",
            "certified_epsilon": summary.certified(),
            "not_said_in_the_paper": {
                "start": "zero",
                "sampling": "none: all rows in every step (K = 1000 for DP-SGD, 900 private and 100 public for Algorithm 1)",
                "steps": STEPS,
                "clip_norm": CLIP_NORM,
                "step_size": STEP_SIZES[SHOWN],
                "step_sizes_tried": STEP_SIZES,
                "public_gradients": "clipped like private ones",
                "alpha": "horizon formula, from public rows and the noise",
                "model": "last iterate",
            },
            "noise_multiplier": noise.get(),
            "noise_std_dp_sgd": noise_std(noise, PRIVATE + PUBLIC),
            "noise_std_algorithm_1": noise_std(noise, PRIVATE),
            "seeds": trials.len(),
            "seed": settings.seed,
        }),
        findings: summary.findings(),
        tables: vec![summary.curve_table(), summary.step_size_table(), summary.seed_table()],
        charts: vec![
            ("divergence".into(), summary.curve_chart()),
            ("divergence-step-sizes".into(), summary.step_size_chart()),
        ],
    }
}

/// The last of a run.
fn end(curve: &Curve) -> f64 {
    curve[curve.len() - 1]
}

impl Summary<'_> {
    /// Mean and standard error over seeds.
    fn over_seeds(&self, of: impl Fn(&Trial) -> f64) -> (f64, f64) {
        mean_and_error(&self.trials.iter().map(of).collect::<Vec<_>>())
    }

    fn count(&self, of: impl Fn(&Trial) -> bool) -> usize {
        self.trials.iter().filter(|trial| of(trial)).count()
    }

    fn certified(&self) -> f64 {
        self.trials.iter().map(|trial| trial.certified).fold(0.0, f64::max)
    }

    fn points(&self) -> usize {
        self.trials[0].public_only.len()
    }

    /// DP-SGD's mean loss at a point of its curve, if its steps were noise alone.
    fn predicted(&self, point: usize, step_size: f64) -> f64 {
        let (start, _) = self.over_seeds(|trial| trial.dp_sgd[0][0]);
        start + noise_alone(point as u64 * STRIDE, step_size, noise_std(self.noise, PRIVATE + PUBLIC))
    }

    fn curve_table(&self) -> Table {
        let headings = [
            "step",
            "dp_sgd",
            "dp_sgd_standard_error",
            "dp_sgd_predicted_from_noise_alone",
            "algorithm_1",
            "algorithm_1_standard_error",
            "public_gradients_alone",
            "public_gradients_alone_standard_error",
            "throw_away",
            "throw_away_standard_error",
        ];
        let rows = (0..self.points()).map(|point| {
            let dp_sgd = self.over_seeds(|trial| trial.dp_sgd[SHOWN][point]);
            let ours = self.over_seeds(|trial| trial.algorithm_1[SHOWN][point]);
            let public = self.over_seeds(|trial| trial.public_only[point]);
            let thrown = self.over_seeds(|trial| trial.throw_away);
            let predicted = self.predicted(point, STEP_SIZES[SHOWN]);
            let step = (point as u64 * STRIDE) as f64;
            let numbers =
                [step, dp_sgd.0, dp_sgd.1, predicted, ours.0, ours.1, public.0, public.1, thrown.0, thrown.1];
            numbers.map(Cell::Number).to_vec()
        });
        Table {
            name: "divergence".into(),
            title: "Mean test loss along the steps".into(),
            headings: headings.map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    fn step_size_table(&self) -> Table {
        let headings = [
            "step_size",
            "dp_sgd_end",
            "dp_sgd_end_standard_error",
            "dp_sgd_predicted_from_noise_alone",
            "seeds_where_dp_sgd_ends_above_its_start",
            "algorithm_1_end",
            "algorithm_1_end_standard_error",
            "seeds_where_algorithm_1_ends_above_its_start",
        ];
        let rows = STEP_SIZES.iter().enumerate().map(|(i, step_size)| {
            let dp_sgd = self.over_seeds(|trial| end(&trial.dp_sgd[i]));
            let ours = self.over_seeds(|trial| end(&trial.algorithm_1[i]));
            let above = |curve: &Curve| end(curve) > curve[0];
            let numbers = [
                *step_size,
                dp_sgd.0,
                dp_sgd.1,
                self.predicted(self.points() - 1, *step_size),
                self.count(|trial| above(&trial.dp_sgd[i])) as f64,
                ours.0,
                ours.1,
                self.count(|trial| above(&trial.algorithm_1[i])) as f64,
            ];
            numbers.map(Cell::Number).to_vec()
        });
        Table {
            name: "divergence-step-sizes".into(),
            title: "Mean test loss after the last step, for every length of step".into(),
            headings: headings.map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    fn seed_table(&self) -> Table {
        let headings = ["seed", "start", "dp_sgd_end", "algorithm_1_end", "throw_away", "alpha"];
        let rows = self.trials.iter().enumerate().map(|(seed, trial)| {
            let numbers = [
                seed as f64,
                trial.dp_sgd[SHOWN][0],
                end(&trial.dp_sgd[SHOWN]),
                end(&trial.algorithm_1[SHOWN]),
                trial.throw_away,
                trial.alpha,
            ];
            numbers.map(Cell::Number).to_vec()
        });
        Table {
            name: "divergence-seeds".into(),
            title: "Test loss seed by seed".into(),
            headings: headings.map(String::from).to_vec(),
            rows: rows.collect(),
        }
    }

    fn curve_chart(&self) -> Chart {
        let line = |of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
            (0..self.points()).map(|point| ((point as u64 * STRIDE) as f64, of(point))).collect()
        };
        let thrown = self.over_seeds(|trial| trial.throw_away).0;
        let dp_sgd = |point: usize| self.over_seeds(|trial| trial.dp_sgd[SHOWN][point]).0;
        let ours = |point: usize| self.over_seeds(|trial| trial.algorithm_1[SHOWN][point]).0;
        let series = |name: &str, points, style, colour| Series { name: name.into(), points, style, colour };
        Chart {
            title: format!("test loss along the steps: epsilon = {EPSILON}, step size {}", STEP_SIZES[SHOWN]),
            x: Axis::linear("step"),
            y: Axis::logarithmic("mean test loss"),
            series: vec![
                series("DP-SGD", line(&dp_sgd), Style::Line, 1),
                series(
                    "DP-SGD if steps were noise alone",
                    line(&|point| self.predicted(point, STEP_SIZES[SHOWN])),
                    Style::Dashes,
                    6,
                ),
                series("Algorithm 1", line(&ours), Style::Line, 0),
                series("throw-away (least squares on public rows)", line(&|_| thrown), Style::Dashes, 2),
            ],
            marks: Vec::new(),
        }
    }

    fn step_size_chart(&self) -> Chart {
        let line = |of: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
            STEP_SIZES.iter().enumerate().map(|(i, step_size)| (*step_size, of(i))).collect()
        };
        let (start, _) = self.over_seeds(|trial| trial.dp_sgd[0][0]);
        let thrown = self.over_seeds(|trial| trial.throw_away).0;
        let dp_sgd = line(&|i| self.over_seeds(|trial| end(&trial.dp_sgd[i])).0);
        let ours = line(&|i| self.over_seeds(|trial| end(&trial.algorithm_1[i])).0);
        let series = |name: &str, points, style, colour| Series { name: name.into(), points, style, colour };
        Chart {
            title: format!("test loss after {STEPS} steps, by length of step: epsilon = {EPSILON}"),
            x: Axis::logarithmic("step size"),
            y: Axis::logarithmic("mean test loss"),
            series: vec![
                series("DP-SGD", dp_sgd.clone(), Style::Line, 1),
                series("", dp_sgd, Style::Points, 1),
                series("Algorithm 1", ours.clone(), Style::Line, 0),
                series("", ours, Style::Points, 0),
                series("where both start", line(&|_| start), Style::Dashes, 6),
                series("throw-away", line(&|_| thrown), Style::Dashes, 2),
            ],
            marks: Vec::new(),
        }
    }

    fn findings(&self) -> Vec<String> {
        let count = self.trials.len();
        let (start, start_error) = self.over_seeds(|trial| trial.dp_sgd[SHOWN][0]);
        let (theirs, theirs_error) = self.over_seeds(|trial| end(&trial.dp_sgd[SHOWN]));
        let (ours, ours_error) = self.over_seeds(|trial| end(&trial.algorithm_1[SHOWN]));
        let (thrown, thrown_error) = self.over_seeds(|trial| trial.throw_away);
        let (alpha, _) = self.over_seeds(|trial| trial.alpha);
        let apart =
            self.trials.iter().map(|trial| (end(&trial.algorithm_1[SHOWN]) - end(&trial.public_only)).abs());
        let (gap, gap_error) = self.over_seeds(|trial| end(&trial.algorithm_1[SHOWN]) - trial.throw_away);
        let noise = noise_std(self.noise, PRIVATE + PUBLIC);
        let (best, (least, least_error)) = (0..STEP_SIZES.len())
            .map(|i| (i, self.over_seeds(|trial| end(&trial.dp_sgd[i]))))
            .min_by(|a, b| a.1.0.total_cmp(&b.1.0))
            .unwrap_or((SHOWN, (theirs, theirs_error)));
        let (gain, gain_error) = self.over_seeds(|trial| trial.dp_sgd[best][0] - end(&trial.dp_sgd[best]));
        vec![
            format!(
                "DP-SGD diverges: its mean test loss goes from {start:.2} ± {start_error:.2} to {theirs:.3e} ± \
                 {theirs_error:.1e} in {STEPS} steps, and is above its start in {} of {count} seeds. Noise alone would \
                 give {:.3e}.",
                self.count(|trial| end(&trial.dp_sgd[SHOWN]) > trial.dp_sgd[SHOWN][0]),
                self.predicted(self.points() - 1, STEP_SIZES[SHOWN]),
            ),
            format!(
                "Algorithm 1 converges with the same steps and the same budget: from {start:.2} to {ours:.3} ± \
                 {ours_error:.3}, below its start in {} of {count} seeds.",
                self.count(|trial| end(&trial.algorithm_1[SHOWN]) < trial.algorithm_1[SHOWN][0]),
            ),
            format!(
                "Why: at this budget the noise on a mean gradient is {:.0} long, and the gradient at most {CLIP_NORM}. The \
                 formula gives private gradients a weight of {alpha:.1e}, so Algorithm 1 is very nearly gradient descent \
                 on public rows: with a weight of 0 no seed ends more than {:.1e} away.",
                noise * (LAW.dimension as f64).sqrt(),
                apart.fold(0.0, f64::max),
            ),
            format!(
                "Throw-away, least squares on public rows alone, has {thrown:.3} ± {thrown_error:.3} at no cost in \
                 privacy. Algorithm 1 minus throw-away is {gap:.3} ± {gap_error:.3}, below zero in {} of {count} seeds: \
                 public gradients clipped at {CLIP_NORM} do not lead to least squares. At this budget private rows help \
                 nobody; what Algorithm 1 has over DP-SGD is that it does no harm with them.",
                self.count(|trial| end(&trial.algorithm_1[SHOWN]) < trial.throw_away),
            ),
            format!(
                "The step was not chosen against DP-SGD: of {} lengths from {} to {} its best is {}, with a loss of \
                 {least:.3} ± {least_error:.3} after {STEPS} steps, {gain:.4} ± {gain_error:.4} below where it began. \
                 Short steps keep it from diverging, and at its start.",
                STEP_SIZES.len(),
                STEP_SIZES[0],
                STEP_SIZES[STEP_SIZES.len() - 1],
                STEP_SIZES[best],
            ),
            format!(
                "The certificates say epsilon = {:.6} at delta = {DELTA}, replace-one. The paper gives d, n, epsilon and \
                 the public share of its figure; steps, step size, batches and clip norm here are ours.",
                self.certified(),
            ),
        ]
    }
}
