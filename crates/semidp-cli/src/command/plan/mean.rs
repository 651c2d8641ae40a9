//! `semidp plan mean`: every estimator's exact error beforehand, and where they change places.

use super::{budget_json, budget_words, rates_json, write_charts};
use crate::failure::Failure;
use crate::number::{self, count, nearest};
use crate::options::{BudgetOptions, PromiseOptions, TargetName};
use crate::output::Output;
use crate::table;
use clap::Args;
use semidp::mean::{ESTIMATORS, Law, Moment, Plan, Problem, Target, cheapest, plan_all};
use semidp::theory::{RateSetting, Sweep, Task, hardly_help_beyond, rates, sweep_epsilon, sweep_share};
use semidp_accounting::{Adjacency, Arithmetic, PrivacyBudget, Trust};
use semidp_plot::{Axis, Chart, Mark, Series, Style};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp plan mean --n-private 9000 --n-public 1000 --dim 20 --radius 5 --epsilon 1 --delta 1e-6";

/// Predict the error of every mean estimator.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct PlanMean {
    /// Number of private rows
    #[arg(long, value_name = "N", value_parser = number::whole("n-private", 0), allow_hyphen_values = true)]
    n_private: u64,

    /// Number of public rows
    #[arg(long, value_name = "M", value_parser = number::whole("n-public", 0), allow_hyphen_values = true)]
    n_public: u64,

    /// Number of columns
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    dim: u64,

    /// Every row lies within this distance of a public centre
    #[arg(long, value_name = "B", value_parser = number::positive("radius"), allow_hyphen_values = true)]
    radius: Option<f64>,

    /// Root of a row's total variance [default: the radius, the largest it can be]
    #[arg(long, value_name = "V", value_parser = number::positive("std"), allow_hyphen_values = true)]
    std: Option<f64>,

    /// For heavy tails, instead of --radius: the order k of a bounded moment of the distance
    #[arg(long, value_name = "K", value_parser = number::positive("moment"), allow_hyphen_values = true, requires = "moment_bound")]
    moment: Option<f64>,

    /// The k-th root of that moment is at most this
    #[arg(long, value_name = "M", value_parser = number::positive("moment-bound"), allow_hyphen_values = true, requires = "moment")]
    moment_bound: Option<f64>,

    /// The mean of what
    #[arg(long, value_enum, default_value_t = TargetName::Population)]
    target: TargetName,

    /// Only estimators whose guarantee holds for the released bits (not k-norm noise)
    #[arg(long)]
    exact: bool,

    /// Draw the predicted errors against public share and budget into this folder (SVG)
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    budget: BudgetOptions,

    #[command(flatten)]
    promise: PromiseOptions,
}

/// Everything that is answered.
struct Answer {
    problem: Problem,
    budget: PrivacyBudget,
    plans: Vec<Plan>,
    best: Plan,
    /// The best error if there were no public rows.
    without_public: Option<f64>,
    hardly_help: Option<u64>,
    by_share: Option<Sweep>,
    by_budget: Sweep,
}

impl PlanMean {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        refuse_other_promises(self.promise)?;
        let budget = self.budget.budget()?;
        let problem = self.problem(budget)?.with_target(self.target.target());
        let plans: Vec<Plan> = plan_all(&problem, budget)?
            .into_iter()
            .filter(|plan| !self.exact || plan.arithmetic() == Arithmetic::Exact)
            .collect();
        let best = cheapest(&plans, self.exact).cloned().ok_or_else(|| {
            Failure::other("internal error: no estimator fits counts and budget; please report this")
        })?;
        let without_public = match (self.n_private, self.n_public) {
            (0, _) | (_, 0) => None,
            (private, _) => {
                let plans = plan_all(&problem.with_rows(private, 0), budget)?;
                cheapest(&plans, self.exact).map(Plan::predicted_mse)
            }
        };
        let by_share = match self.n_private + self.n_public {
            0 | 1 => None,
            _ => Some(sweep_share(&problem, budget)?),
        };
        let answer = Answer {
            hardly_help: hardly_help_beyond(&best),
            by_budget: sweep_epsilon(&problem, budget)?,
            problem,
            budget,
            plans,
            best,
            without_public,
            by_share,
        };
        let mut json = answer.json();
        if let Some(folder) = &self.plot {
            let written = write_charts(folder, &answer.charts())?;
            json.insert("plots".into(), json!(written));
            written.iter().for_each(|path| output.note(&format!("wrote {path}")));
        }
        output.answer(&json.into(), || answer.text())?;
        output.note(match (self.moment, self.target) {
            (Some(_), _) => {
                "errors are bounds for independent rows with such a moment; no private row was read"
            }
            (None, TargetName::Population) => {
                "errors are exact for independent rows within the radius; no private row was read"
            }
            (None, TargetName::Empirical) => {
                "errors are those of the worst rows within the radius; no private row was read"
            }
        });
        Ok(())
    }

    fn problem(&self, budget: PrivacyBudget) -> Result<Problem, Failure> {
        let dimension = self.dim as usize;
        let problem = match (self.radius, self.moment.zip(self.moment_bound)) {
            (Some(_), Some(_)) => {
                return Err(Failure::input(
                    "--radius and --moment must not both be given",
                    "with a bounded moment the best radius is found",
                ));
            }
            (None, None) => {
                return Err(Failure::input(
                    "--radius must be given, or --moment with --moment-bound",
                    "no row may lie further than the radius from a public centre, as in --radius 10",
                ));
            }
            (Some(radius), None) => Problem::new(self.n_private, self.n_public, dimension, radius)?,
            (None, Some((order, bound))) => {
                // The radius for the law that this budget is for.
                let law = match budget {
                    PrivacyBudget::Pure { .. } => Law::KNorm,
                    _ => Law::Gaussian,
                };
                let unit = semidp::mean::Clip { radius: 1.0, bias: 0.0 };
                let multiplier = law.noise_multiplier(budget, dimension)?;
                let noise = multiplier.map_or(0.0, |multiplier| law.variance(multiplier, unit, dimension));
                Moment::new(order, bound)?.problem((self.n_private, self.n_public), dimension, noise)?
            }
        };
        match self.std {
            Some(std) => Ok(problem.with_std(std)?),
            None => Ok(problem),
        }
    }
}

/// A mean needs the number of private rows, and a curator.
pub fn refuse_other_promises(promise: PromiseOptions) -> Result<(), Failure> {
    if promise.adjacency() == Adjacency::AddRemove {
        return Err(Failure::input(
            "--adjacency must be replace-one for a mean, got add-remove",
            "under add-remove the number of private rows is secret, and the weights of a mean need it",
        ));
    }
    if promise.trust() == Trust::Local {
        return Err(Failure::input(
            "--trust must be central for this command, got local",
            "under local trust each person randomises their own row, which is another estimator",
        ));
    }
    Ok(())
}

impl Answer {
    /// What `semidp mean` takes by itself: the best whose guarantee holds for the released bits.
    fn auto(&self) -> Option<&'static str> {
        cheapest(&self.plans, true).map(Plan::name)
    }

    fn error_of(&self, name: &str) -> Option<f64> {
        self.plans.iter().find(|plan| plan.name() == name).map(Plan::predicted_mse)
    }

    /// How many times the best error each baseline has.
    fn gains(&self) -> Vec<(&'static str, f64)> {
        let baselines = ESTIMATORS.iter().map(|estimator| estimator.name());
        let baselines = baselines.filter(|name| !name.starts_with("weighted"));
        let best = self.best.predicted_mse();
        baselines.filter_map(|name| Some((name, self.error_of(name)? / best))).collect()
    }

    fn json(&self) -> Map<String, Value> {
        let estimators: Vec<Value> = self.plans.iter().map(plan_json).collect();
        let gain: Map<String, Value> =
            self.gains().into_iter().map(|(name, gain)| (name.into(), json!(gain))).collect();
        let problem = &self.problem;
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("n_private", json!(problem.private_rows()));
        put("n_public", json!(problem.public_rows()));
        put("dimension", json!(problem.dimension()));
        put("radius", json!(problem.l2().radius));
        put("clip_bias", json!(problem.l2().bias));
        put("std", json!(problem.std()));
        put("target", json!(problem.target().name()));
        put("budget", budget_json(self.budget));
        put("adjacency", json!("replace-one"));
        put("protects", json!("private rows only"));
        put("estimators", json!(estimators));
        put("best", json!(self.best.name()));
        put("auto", json!(self.auto()));
        put("gain", gain.into());
        put("mse_without_public_rows", json!(self.without_public));
        put("private_rows_hardly_help_beyond", json!(self.hardly_help));
        put(
            "crossing",
            json!({
                "public_share": self.by_share.as_ref().and_then(|sweep| sweep.crossing),
                self.budget_axis(): self.by_budget.crossing,
            }),
        );
        put("rates", json!(rates_json(&rates(&self.rate_setting(), Task::Mean))));
        put("rates_unit", json!("squared radius; constants left out"));
        put("reading", json!(self.reading()));
        fields
    }

    fn budget_axis(&self) -> &'static str {
        match self.budget {
            PrivacyBudget::Zcdp { .. } => "rho",
            _ => "epsilon",
        }
    }

    fn rate_setting(&self) -> RateSetting {
        let (problem, dimension) = (&self.problem, self.problem.dimension() as u64);
        RateSetting::new(problem.private_rows(), problem.public_rows(), dimension, self.budget)
    }

    fn text(&self) -> String {
        let headings = [
            "estimator",
            "mean squared\nerror",
            "root of it",
            "times\nthe best",
            "noise std\n(a column)",
            "weight of a\nprivate row",
            "arithmetic",
        ];
        let best = self.best.predicted_mse();
        let cells = self.plans.iter().map(|plan| {
            let star = if plan.name() == self.best.name() { " (best)" } else { "" };
            vec![
                format!("{}{star}", plan.name()),
                nearest(plan.predicted_mse(), 5),
                nearest(plan.predicted_mse().sqrt(), 4),
                nearest(plan.predicted_mse() / best, 4),
                nearest(plan.noise_std(), 4),
                nearest(plan.private_weight(), 4),
                match plan.arithmetic() {
                    Arithmetic::Exact => "exact".into(),
                    Arithmetic::Idealised => "idealised".into(),
                },
            ]
        });
        let points: Vec<String> =
            self.reading().iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        format!("{}\n\n{}", table::columns(&headings, cells.collect()), points.join("\n"))
    }

    /// What the table says to somebody who does not want to read it.
    fn reading(&self) -> Vec<String> {
        let (private, public) = (self.problem.private_rows(), self.problem.public_rows());
        let best = self.best.predicted_mse();
        let times = |ratio: f64| format!("{}x", nearest(ratio, 3));
        let mut points = Vec::new();
        let rows = format!(
            "With {} public and {} private rows at {}",
            count(public),
            count(private),
            budget_words(self.budget)
        );
        match self.without_public {
            Some(without) => points.push(format!(
                "{rows} the public rows cut the error {} compared with the private rows alone, and {} is best.",
                times(without / best),
                self.best.name()
            )),
            None => points.push(format!("{rows} {} is best.", self.best.name())),
        }
        let gains = self.gains();
        let named = |name: &str| gains.iter().find(|(baseline, _)| *baseline == name).map(|(_, gain)| *gain);
        let all_private = gains.iter().filter(|(name, _)| *name != "throw-away");
        let all_private = all_private.min_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some(thrown), Some((name, treated))) = (named("throw-away"), all_private) {
            points.push(format!(
                "Throwing the private rows away has {} its error; treating all rows as private ({name}) {}.",
                times(thrown),
                times(*treated)
            ));
        }
        if let Some(auto) = self.auto().filter(|auto| *auto != self.best.name()) {
            points.push(format!(
                "`semidp mean` takes {auto} by itself, whose guarantee holds for the released bits; --idealised \
                 allows {}.",
                self.best.name()
            ));
        }
        if let Some(rows) = self.hardly_help.filter(|_| private > 0) {
            points.push(format!(
                "Beyond {} public rows these private rows hardly help: they then improve on the public rows \
                 alone by less than 5%.",
                count(rows)
            ));
        }
        if let Some(share) = self.by_share.as_ref().and_then(|sweep| sweep.crossing) {
            points.push(format!(
                "The two naive ways change places at a public share of {}: throwing away is better above it.",
                nearest(share, 2)
            ));
        }
        if self.problem.l2().bias > 0.0 {
            points.push(format!(
                "Rows are clipped to radius {}, which moves the mean by at most {}; the errors include it.",
                nearest(self.problem.l2().radius, 4),
                nearest(self.problem.l2().bias, 2)
            ));
        }
        if let (Target::Empirical, Some(expected)) = (self.problem.target(), self.best.expected_mse()) {
            points.push(format!(
                "These are errors on the worst possible rows; on independent rows about the public mean expect {}.",
                nearest(expected, 4)
            ));
        }
        points
    }

    fn charts(&self) -> Vec<(&'static str, Chart)> {
        let title = |what: &str| {
            format!(
                "predicted error by {what} (d = {}, {})",
                self.problem.dimension(),
                budget_words(self.budget)
            )
        };
        let mut charts = Vec::new();
        if let Some(sweep) = &self.by_share {
            let rows = self.problem.private_rows() + self.problem.public_rows();
            let here = self.problem.public_rows() as f64 / rows as f64;
            let axis = Axis::linear(format!("public share of {} rows", count(rows)));
            charts.push(("error-by-public-share.svg", chart(sweep, title("public share"), axis, here)));
        }
        let (name, here) = match self.budget {
            PrivacyBudget::Zcdp { rho, .. } => ("rho", rho.get()),
            PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => {
                ("epsilon", epsilon.get())
            }
        };
        let axis = Axis::logarithmic(name);
        charts.push(("error-by-budget.svg", chart(&self.by_budget, title(name), axis, here)));
        charts
    }
}

fn plan_json(plan: &Plan) -> Value {
    json!({
        "name": plan.name(),
        "about": plan.about(),
        "mse": plan.predicted_mse(),
        "expected_mse": plan.expected_mse(),
        "noise_std": plan.noise_std(),
        "private_weight": plan.private_weight(),
        "public_share": plan.public_share(),
        "noise_multiplier": plan.noise_multiplier().map(|multiplier| multiplier.get()),
        "clip_norm": plan.clip_norm(),
        "arithmetic": plan.arithmetic(),
    })
}

fn chart(sweep: &Sweep, title: String, x: Axis, here: f64) -> Chart {
    let series = sweep.errors.iter().enumerate().map(|(colour, (name, errors))| Series {
        name: (*name).into(),
        points: sweep.at.iter().copied().zip(errors.iter().copied()).collect(),
        style: if name.starts_with("weighted") { Style::Line } else { Style::Dashes },
        colour,
    });
    let mut marks = vec![Mark { at: here, label: format!("your plan: {}", nearest(here, 3)) }];
    let places = |at: f64| format!("the naive ways change places: {}", nearest(at, 2));
    marks.extend(sweep.crossing.map(|at| Mark { at, label: places(at) }));
    Chart { title, x, y: Axis::logarithmic("mean squared error"), series: series.collect(), marks }
}
