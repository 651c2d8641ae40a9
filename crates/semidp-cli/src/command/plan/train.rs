//! `semidp plan train`: the rates of training, and the noise each algorithm must add.

use super::{budget_json, budget_words, rates_json, write_charts};
use crate::failure::Failure;
use crate::number::{self, count, nearest};
use crate::options::{BudgetOptions, PromiseOptions};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use clap::Args;
use semidp::theory::{Rate, RateSetting, Task, TrainingPlan, TrainingProblem, plan_training, rates};
use semidp_accounting::{Adjacency, PrivacyBudget, Steps, Trust};
use semidp_plot::{Axis, Chart, Mark, Series, Style};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp plan train --n-private 27000 --n-public 3000 --dim 2000 --epsilon 2 --delta 1e-5";

/// Predict the noise of every training algorithm, and the best rates there are.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct PlanTrain {
    /// Number of private rows
    #[arg(long, value_name = "N", value_parser = number::whole("n-private", 0), allow_hyphen_values = true)]
    n_private: u64,

    /// Number of public rows
    #[arg(long, value_name = "M", value_parser = number::whole("n-public", 0), allow_hyphen_values = true)]
    n_public: u64,

    /// Number of coordinates of the model
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    dim: u64,

    /// Number of steps
    #[arg(long, value_name = "T", value_parser = number::parse_steps, allow_hyphen_values = true, default_value = "1000")]
    steps: Steps,

    /// Private rows in a batch, on average [default: a fiftieth of them, at most 500]
    #[arg(long, value_name = "K", value_parser = number::whole("expected-batch", 1), allow_hyphen_values = true)]
    expected_batch: Option<u64>,

    /// Public rows in a batch [default: all, at most 200]
    #[arg(long, value_name = "K", value_parser = number::whole("public-batch", 1), allow_hyphen_values = true)]
    public_batch: Option<u64>,

    /// Clip norm of gradients
    #[arg(long, value_name = "C", value_parser = number::positive("clip-norm"), allow_hyphen_values = true, default_value = "1")]
    clip_norm: f64,

    /// Root of a row's total gradient variance [default: the clip norm, the largest it can be]
    #[arg(long, value_name = "V", value_parser = number::positive("gradient-std"), allow_hyphen_values = true)]
    gradient_std: Option<f64>,

    /// Lipschitz constant L of the loss, for the rates
    #[arg(long, value_name = "L", value_parser = number::positive("lipschitz"), allow_hyphen_values = true, default_value = "1")]
    lipschitz: f64,

    /// Diameter D of the set of models, for the rates
    #[arg(long, value_name = "D", value_parser = number::positive("diameter"), allow_hyphen_values = true, default_value = "1")]
    diameter: f64,

    /// Strong convexity of the loss, for the rates
    #[arg(long, value_name = "MU", value_parser = number::positive("strong-convexity"), allow_hyphen_values = true, default_value = "1")]
    strong_convexity: f64,

    /// Draw the averaged gradient variance against the public share into this folder (SVG)
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    budget: BudgetOptions,

    #[command(flatten)]
    promise: PromiseOptions,
}

impl PlanTrain {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        if self.promise.trust() == Trust::Local {
            return Err(Failure::input(
                "--trust must be central for this command, got local",
                "under local trust each person randomises their own gradient, which is another algorithm",
            ));
        }
        let budget = self.budget.budget()?;
        let adjacency = self.promise.adjacency();
        let problem = self.problem(self.n_private, self.n_public);
        let (plans, note) = match budget {
            PrivacyBudget::Pure { .. } => {
                (Vec::new(), Some("the algorithms add Gaussian noise, which needs --delta: rates only"))
            }
            _ => (plan_training(&problem, budget)?, None),
        };
        let rates = self.rates(budget);
        let best = cheapest(&plans);
        let mut json = json!({
            "n_private": self.n_private,
            "n_public": self.n_public,
            "dimension": self.dim,
            "steps": self.steps.get(),
            "expected_batch": problem.batch,
            "public_batch": problem.public_batch,
            "clip_norm": self.clip_norm,
            "gradient_std": problem.gradient_std,
            "budget": budget_json(budget),
            "adjacency": adjacency.name(),
            "protects": "private rows only",
            "algorithms": plans.iter().map(plan_json).collect::<Vec<Value>>(),
            "best": best.map(|plan| plan.name),
            "rates": rates_json(&rates),
            "note": note,
        });
        if let Some(folder) = &self.plot {
            if plans.is_empty() {
                return Err(Failure::input(
                    "--plot must be used with a budget that has a --delta, or with --rho",
                    "pure budgets have rates only",
                ));
            }
            let written = write_charts(folder, &[("variance-by-public-share.svg", self.chart(budget)?)])?;
            json["plots"] = json!(written);
            written.iter().for_each(|path| output.note(&format!("wrote {path}")));
        }
        output.answer(&json, || self.text(&plans, best, &rates, budget))?;
        if let Some(note) = note {
            output.note(note);
        }
        if adjacency == Adjacency::AddRemove {
            output.note(
                "under add-remove the number of private rows is secret: plan with a public guess of it",
            );
        }
        Ok(())
    }

    fn problem(&self, private_rows: u64, public_rows: u64) -> TrainingProblem {
        TrainingProblem {
            private_rows,
            public_rows,
            dimension: self.dim,
            steps: self.steps,
            batch: self.expected_batch.unwrap_or((private_rows / 50).clamp(1, 500)),
            public_batch: self.public_batch.unwrap_or(public_rows.min(200)),
            clip_norm: self.clip_norm,
            gradient_std: self.gradient_std.unwrap_or(self.clip_norm),
            adjacency: self.promise.adjacency(),
        }
    }

    fn rates(&self, budget: PrivacyBudget) -> Vec<Rate> {
        let setting = RateSetting {
            lipschitz: self.lipschitz,
            diameter: self.diameter,
            strong_convexity: self.strong_convexity,
            ..RateSetting::new(self.n_private, self.n_public, self.dim, budget)
        };
        [Task::EmpiricalRisk, Task::PopulationRisk].iter().flat_map(|task| rates(&setting, *task)).collect()
    }

    fn text(
        &self,
        plans: &[TrainingPlan],
        best: Option<&TrainingPlan>,
        rates: &[Rate],
        budget: PrivacyBudget,
    ) -> String {
        let mut parts = Vec::new();
        if let Some(best) = best {
            let headings = [
                "algorithm",
                "sampling",
                "noise\nmultiplier",
                "noise std\n(a step)",
                "noise after\naveraging",
                "weight of\nprivate",
                "gradient\nvariance",
            ];
            let cells = plans.iter().map(|plan| {
                let star = if plan.name == best.name { " (best)" } else { "" };
                let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
                vec![
                    format!("{}{star}", plan.name),
                    or_dash(plan.sampling.map(|sampling| match plan.sample_rate {
                        Some(rate) => format!("{sampling} {}", nearest(rate, 4)),
                        None => sampling.to_string(),
                    })),
                    or_dash(plan.noise_multiplier.map(bound)),
                    nearest(plan.step_noise_std, 4),
                    nearest(plan.averaged_noise, 4),
                    nearest(plan.private_weight, 4),
                    nearest(plan.gradient_variance, 4),
                ]
            });
            parts.push(table::columns(&headings, cells.collect()));
            let others: Vec<String> = plans
                .iter()
                .filter(|plan| plan.name != best.name)
                .map(|plan| {
                    format!("{} {}x", plan.name, nearest(plan.gradient_variance / best.gradient_variance, 3))
                })
                .collect();
            let mut sentence = format!(
                "With {} public and {} private rows at {}, {} has the least variance of the averaged gradient",
                count(self.n_public),
                count(self.n_private),
                budget_words(budget),
                best.name
            );
            if !others.is_empty() {
                sentence += &format!("; {}", others.join(", "));
            }
            parts.push(table::wrap(&format!("{sentence}."), ""));
        }
        let bounds = rates.iter().map(|rate| {
            let shown = |bound: Option<f64>| bound.map_or_else(|| "-".into(), |bound| nearest(bound, 3));
            vec![rate.title.into(), shown(rate.upper), shown(rate.lower)]
        });
        parts.push(table::columns(
            &["best possible excess loss (constants left out)", "attained", "lower bound"],
            bounds.collect(),
        ));
        parts.push("A dash: not proved under these numbers. Lower bounds for (epsilon, delta) also leave out powers of \
             logarithms, and hold for algorithms that treat all coordinates alike; --json has all conditions.".into());
        parts.join("\n\n")
    }

    fn chart(&self, budget: PrivacyBudget) -> Result<Chart, Failure> {
        let rows = self.n_private + self.n_public;
        let mut lines: Vec<(&'static str, Vec<(f64, f64)>)> = Vec::new();
        for percent in [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99u64] {
            let public = (rows * percent / 100).clamp(1, rows.saturating_sub(1).max(1));
            for plan in plan_training(&self.problem(rows.saturating_sub(public).max(1), public), budget)? {
                let point = (percent as f64 / 100.0, plan.gradient_variance);
                match lines.iter_mut().find(|(name, _)| *name == plan.name) {
                    Some((_, points)) => points.push(point),
                    None => lines.push((plan.name, vec![point])),
                }
            }
        }
        let series = lines.into_iter().enumerate().map(|(colour, (name, points))| Series {
            name: name.into(),
            points,
            style: if name == "semi-dp-sgd" { Style::Line } else { Style::Dashes },
            colour,
        });
        Ok(Chart {
            title: format!("averaged gradient variance (d = {}, {})", self.dim, budget_words(budget)),
            x: Axis::linear(format!("public share of {} rows", count(rows))),
            y: Axis::logarithmic("variance"),
            series: series.collect(),
            marks: vec![Mark { at: self.n_public as f64 / rows as f64, label: "your plan".into() }],
        })
    }
}

fn cheapest(plans: &[TrainingPlan]) -> Option<&TrainingPlan> {
    plans.iter().min_by(|a, b| a.gradient_variance.total_cmp(&b.gradient_variance))
}

fn plan_json(plan: &TrainingPlan) -> Value {
    json!({
        "name": plan.name,
        "about": plan.about,
        "sampling": plan.sampling,
        "sample_rate": plan.sample_rate,
        "noise_multiplier": plan.noise_multiplier,
        "step_noise_std": plan.step_noise_std,
        "averaged_noise": plan.averaged_noise,
        "private_weight": plan.private_weight,
        "gradient_variance": plan.gradient_variance,
    })
}
