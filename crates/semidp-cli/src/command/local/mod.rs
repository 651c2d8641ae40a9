//! `semidp local`: people randomise their own rows, a server adds up what they send.

mod aggregate;
mod answer;
mod centre;
mod columns;
mod estimate;
mod expected;
mod memory;
mod randomize;
mod reports;
mod seal;

use crate::failure::Failure;
use crate::output::Output;
use clap::Subcommand;
use semidp_accounting::local::LocalMechanism;

const EXAMPLE: &str = "\
EXAMPLE
  semidp local randomize --data mine.csv --columns age,hours --centre centre.json --radius 50 --epsilon 2 \\
    --round spring --out reports.jsonl
  semidp local aggregate --reports reports.jsonl --public volunteers.csv --columns age,hours --centre centre.json";

/// Estimate means without a trusted server: people randomise, the server adds up.
#[derive(Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum Local {
    Randomize(randomize::Randomize),
    Aggregate(aggregate::Aggregation),
}

impl Local {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Randomize(command) => command.run(output),
            Self::Aggregate(command) => command.run(output),
        }
    }
}

/// Refuses a mechanism whose guarantee holds in real arithmetic only, unless the user asked for that.
pub fn refuse_idealised(option: &str, mechanism: &LocalMechanism, is_allowed: bool) -> Result<(), Failure> {
    if mechanism.is_exact || is_allowed {
        return Ok(());
    }
    Err(Failure::input(
        format!(
            "{option} {} is idealised: its epsilon holds in real arithmetic, and the low-order bits of its reports can tell more",
            mechanism.name
        ),
        "leave it out to use rank-privunit, which is exact, or add --idealised",
    ))
}
