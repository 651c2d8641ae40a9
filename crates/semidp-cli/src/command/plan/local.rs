//! `semidp plan local`: what a randomised report is worth, and what public rows add to many of them.

use super::rates_json;
use crate::failure::Failure;
use crate::number::{self, count, exact, nearest};
use crate::output::Output;
use crate::table;
use clap::Args;
use semidp::local::{Combination, Setting, best, combinations};
use semidp::theory::{Rate, RateSetting, Task, rates};
use semidp_accounting::local::{Cap, RANDOMIZERS, default_randomizer};
use semidp_accounting::{Arithmetic, Epsilon, PrivacyBudget};
use semidp_core::Randomizer;
use serde_json::{Value, json};

const EXAMPLE: &str = "\
EXAMPLE
  semidp plan local --dim 100 --epsilon 1 --n-private 9000 --n-public 100";

/// Predict the error of randomised reports, and of means of them with public rows.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct PlanLocal {
    /// Numbers of a vector
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    dim: u64,

    /// Epsilon of one report: pure, and against everybody, the server included
    #[arg(long, value_name = "E", value_parser = number::positive("epsilon"), allow_hyphen_values = true)]
    epsilon: f64,

    /// Number of people who report
    #[arg(long, value_name = "N", value_parser = number::whole("n-private", 0), allow_hyphen_values = true)]
    n_private: Option<u64>,

    /// Number of public rows
    #[arg(long, value_name = "M", value_parser = number::whole("n-public", 0), allow_hyphen_values = true)]
    n_public: Option<u64>,

    /// Every vector lies within this distance of zero
    #[arg(long, value_name = "R", value_parser = number::positive("radius"), allow_hyphen_values = true, default_value = "1")]
    radius: f64,

    /// Root of a vector's total variance [default: the largest it can be]
    #[arg(long, value_name = "V", value_parser = number::positive("std"), allow_hyphen_values = true)]
    std: Option<f64>,

    /// The length of the mean vector [default: 0, where reports are furthest off]
    #[arg(long, value_name = "L", value_parser = number::positive("mean-norm"), allow_hyphen_values = true)]
    mean_norm: Option<f64>,
}

/// A randomiser with what it gives.
struct Offer {
    cap: Cap,
    arithmetic: Arithmetic,
    means: Vec<Combination>,
}

impl PlanLocal {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let epsilon = Epsilon::new(self.epsilon)?;
        let dimension = usize::try_from(self.dim).unwrap_or(usize::MAX);
        let setting = self.setting()?;
        let mut options = Vec::new();
        for mechanism in RANDOMIZERS {
            let randomizer = Randomizer::new(mechanism, dimension, epsilon, self.radius)?;
            let cap = *randomizer.cap();
            let means = setting.map_or_else(Vec::new, |setting| combinations(&setting, &cap));
            options.push(Offer { cap, arithmetic: randomizer.arithmetic(), means });
        }
        // What `local randomize` takes, and idealised ones are not: their epsilon holds in real arithmetic only.
        let default = default_randomizer(dimension).name;
        let chosen = options
            .iter()
            .find(|option| option.cap.mechanism == default)
            .ok_or_else(|| Failure::other("internal error: there is no randomiser; please report this"))?;
        let rates = self.rates(epsilon);
        let best_mean = best(&chosen.means);
        let answer = json!({
            "dimension": self.dim,
            "epsilon": self.epsilon,
            "radius": self.radius,
            "trust": "local",
            "adjacency": "replace-one",
            "protects": "private rows only",
            "n_private": self.n_private,
            "n_public": self.n_public,
            "randomizers": options.iter().map(|option| self.randomizer_json(option)).collect::<Vec<Value>>(),
            "best_randomizer": chosen.cap.mechanism,
            "estimators": chosen.means.iter().map(mean_json).collect::<Vec<Value>>(),
            "best": best_mean.map(|mean| mean.name),
            "rates": rates_json(&rates),
        });
        output.answer(&answer, || self.text(&options, chosen, best_mean))?;
        output.note(
            "mse of a randomiser is that of one report of a unit vector (the largest, for rank-privunit above 32 numbers); no \
             private row was read; idealised reports are private in real arithmetic only, and need --idealised",
        );
        Ok(())
    }

    fn setting(&self) -> Result<Option<Setting>, Failure> {
        if self.n_private.is_none() && self.n_public.is_none() {
            return Ok(None);
        }
        let (private, public) = (self.n_private.unwrap_or(0), self.n_public.unwrap_or(0));
        let setting = Setting::new(private, public, self.radius)?;
        let length = self.mean_norm.unwrap_or(0.0);
        let most = (self.radius * self.radius - length * length).max(0.0).sqrt();
        Ok(Some(setting.with_moments(length, self.std.unwrap_or(most))?))
    }

    /// Of the mean and of training, where counts are known.
    fn rates(&self, epsilon: Epsilon) -> Vec<Rate> {
        let (Some(private), Some(public)) = (self.n_private, self.n_public) else { return Vec::new() };
        let setting = RateSetting::new(private, public, self.dim, PrivacyBudget::Pure { epsilon });
        let all = [Task::Mean, Task::PopulationRisk].into_iter().flat_map(|task| rates(&setting, task));
        all.filter(|rate| rate.name.starts_with("ldp")).collect()
    }

    fn randomizer_json(&self, option: &Offer) -> Value {
        let mut value = json!(option.cap);
        value["report_length"] = json!(self.radius / option.cap.m);
        value["arithmetic"] = json!(option.arithmetic);
        if !option.means.is_empty() {
            value["estimators"] = option.means.iter().map(mean_json).collect();
        }
        value
    }

    fn text(&self, options: &[Offer], chosen: &Offer, best_mean: Option<&Combination>) -> String {
        let headings =
            ["randomiser", "mse of\none report", "length of\na report", "gamma", "p", "arithmetic"];
        let rows = options.iter().map(|option| {
            let cap = &option.cap;
            let star = if cap.mechanism == chosen.cap.mechanism { " (default)" } else { "" };
            vec![
                format!("{}{star}", cap.mechanism),
                nearest(cap.mse, 6),
                nearest(self.radius / cap.m, 6),
                nearest(cap.gamma, 4),
                nearest(cap.p, 4),
                match option.arithmetic {
                    Arithmetic::Exact => "exact".into(),
                    Arithmetic::Idealised => "idealised".into(),
                },
            ]
        });
        let mut parts = vec![table::columns(&headings, rows.collect())];
        if let Some(best_mean) = best_mean {
            let rows = chosen.means.iter().map(|mean| {
                let star = if mean.name == best_mean.name { " (best)" } else { "" };
                vec![
                    format!("{}{star}", mean.name),
                    nearest(mean.mse, 6),
                    nearest(mean.private_weight, 4),
                    mean.empirical_mse.map_or("-".into(), |mse| nearest(mse, 6)),
                ]
            });
            let headings = [
                "estimator",
                "mse to the mean\nof the population",
                "weight of\nreports",
                "mse to the mean\nof these rows",
            ];
            parts.push(table::columns(&headings, rows.collect()));
            let others: Vec<String> = chosen
                .means
                .iter()
                .filter(|mean| mean.name != best_mean.name)
                .map(|mean| format!("{} {}x", mean.name, nearest(mean.mse / best_mean.mse, 3)))
                .collect();
            let against = match others.is_empty() {
                true => String::new(),
                false => format!(" The others have more error: {}.", others.join(", ")),
            };
            parts.push(table::wrap(
                &format!(
                    "- {} reports by {} at epsilon {} and {} public rows: {} is best.{against}",
                    count(self.n_private.unwrap_or(0)),
                    chosen.cap.mechanism,
                    exact(self.epsilon),
                    count(self.n_public.unwrap_or(0)),
                    best_mean.name,
                ),
                "  ",
            ));
        }
        parts.join("\n")
    }
}

fn mean_json(mean: &Combination) -> Value {
    json!({
        "name": mean.name,
        "mse": mean.mse,
        "private_weight": mean.private_weight,
        "empirical_mse": mean.empirical_mse,
    })
}
