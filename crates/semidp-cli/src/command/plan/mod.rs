//! `semidp plan`: how good a result will be, before any private row is read.

mod local;
mod mean;
mod train;

pub use mean::refuse_other_promises;

use crate::failure::Failure;
use crate::number::exact;
use crate::output::Output;
use clap::Subcommand;
use semidp::files;
use semidp::theory::Rate;
use semidp_accounting::PrivacyBudget;
use semidp_plot::Chart;
use serde_json::{Value, json};
use std::path::Path;

/// See how good a result will be, from counts and a budget alone.
#[derive(Subcommand)]
pub enum Plan {
    Mean(mean::PlanMean),
    Local(local::PlanLocal),
    Train(train::PlanTrain),
}

impl Plan {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Mean(command) => command.run(output),
            Self::Local(command) => command.run(output),
            Self::Train(command) => command.run(output),
        }
    }
}

/// Rates as programs read them; bounds outside their conditions are null.
fn rates_json(rates: &[Rate]) -> Vec<Value> {
    rates
        .iter()
        .map(|rate| {
            json!({
                "name": rate.name,
                "title": rate.title,
                "upper": rate.upper,
                "lower": rate.lower,
                "lower_bound_valid": rate.lower_bound_valid(),
                "conditions": rate.conditions,
                "theorem": rate.theorem,
            })
        })
        .collect()
}

/// A budget as programs read it.
pub fn budget_json(budget: PrivacyBudget) -> Value {
    match budget {
        PrivacyBudget::Approximate { epsilon, delta } => {
            json!({ "epsilon": epsilon.get(), "delta": delta.get() })
        }
        PrivacyBudget::Pure { epsilon } => json!({ "epsilon": epsilon.get() }),
        PrivacyBudget::Zcdp { rho, .. } => json!({ "rho": rho.get() }),
    }
}

/// A budget in words.
pub fn budget_words(budget: PrivacyBudget) -> String {
    match budget {
        PrivacyBudget::Approximate { epsilon, delta } => {
            format!("epsilon {} at delta {}", exact(epsilon.get()), exact(delta.get()))
        }
        PrivacyBudget::Pure { epsilon } => format!("pure epsilon {}", exact(epsilon.get())),
        PrivacyBudget::Zcdp { rho, .. } => format!("rho {}", exact(rho.get())),
    }
}

/// Writes charts into a folder, which is made if need be; the names of the files.
fn write_charts(folder: &Path, charts: &[(&str, Chart)]) -> Result<Vec<String>, Failure> {
    files::make_folder("plot", folder)?;
    let mut written = Vec::new();
    for (name, chart) in charts {
        let path = folder.join(name);
        files::write("plot", &path, chart.svg()?.trim_end())?;
        written.push(path.to_string_lossy().into_owned());
    }
    Ok(written)
}
