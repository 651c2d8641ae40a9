//! `semidp local`: people randomise their own rows, a server adds up what they send.

mod aggregate;
mod answer;
mod centre;
mod columns;
mod estimate;
mod memory;
mod randomize;
mod reports;
mod seal;

use crate::failure::Failure;
use crate::output::Output;
use clap::Subcommand;

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
