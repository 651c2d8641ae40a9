//! `semidp audit randomizer`: whether a person's randomised report tells more than it may.

use super::options::AuditOptions;
use super::report::Report;
use crate::failure::Failure;
use crate::output::Output;
use crate::{number, progress};
use clap::Args;
use semidp::audit;
use semidp_accounting::Epsilon;
use semidp_accounting::local::randomizer_named;
use semidp_core::Randomizer;
use serde_json::{Map, json};

const EXAMPLE: &str = "\
EXAMPLE
  semidp audit randomizer --mechanism privunit --dim 100 --epsilon 2 --plot randomizer.svg";

/// Attack the reports of a randomiser: which of two opposite vectors does a person hold?
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct AuditRandomizer {
    /// The randomiser: duchi, privunit or privunitg
    #[arg(long, value_name = "NAME")]
    mechanism: String,

    /// Numbers of a vector
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    dim: u64,

    /// Epsilon of one report: pure, and against everybody, the server included
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    epsilon: Epsilon,

    /// Reports of each of the two vectors; more of them make the bound tighter
    #[arg(long, value_name = "T", value_parser = number::whole("trials", 1), allow_hyphen_values = true, default_value = "20000")]
    trials: u64,

    #[command(flatten)]
    audit: AuditOptions,
}

impl AuditRandomizer {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let mechanism = randomizer_named(&self.mechanism).map_err(|_| {
            Failure::input(
                format!("--mechanism must be duchi, privunit or privunitg, got `{}`", self.mechanism),
                "`semidp plan local` compares them",
            )
        })?;
        let dimension = usize::try_from(self.dim).unwrap_or(usize::MAX);
        // Reports of longer vectors are the same but for their unit.
        let randomizer = Randomizer::new(mechanism, dimension, self.epsilon.positive()?, 1.0)?;
        let plot = self.audit.plot()?;
        let spinner = progress::spinner(output, "attacking reports");
        let audit = audit::randomizer(&randomizer, &self.audit.options(self.trials));
        spinner.finish_and_clear();
        let mut fields = Map::new();
        fields.insert("mechanism".into(), json!(mechanism.name));
        fields.insert("dimension".into(), json!(self.dim));
        fields.insert("trust".into(), json!("local"));
        Report::new(audit?, "reports of each vector", fields).finish(plot, output)
    }
}
