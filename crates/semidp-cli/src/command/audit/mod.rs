//! `semidp audit`: attacks on a promise, on rows that are made up for it.

mod mean;
mod options;
mod randomizer;
mod replay;
mod report;
mod tracing;
mod train;

use crate::failure::Failure;
use crate::output::Output;
use clap::Subcommand;

const EXAMPLE: &str = "\
An audit attacks a mechanism many times, or many rows at once, and concludes from how often it
succeeds what epsilon is at least. It can show that a promise is broken (exit code 1); it cannot
show that it is kept. All rows are made up: no private row is read.

EXAMPLE
  semidp audit randomizer --mechanism rank-privunit --dim 100 --epsilon 2";

/// Attack a promise on made-up rows, and see what epsilon is at least.
#[derive(Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum Audit {
    Mean(mean::AuditMean),
    Train(Box<train::AuditTrain>),
    Randomizer(randomizer::AuditRandomizer),
}

impl Audit {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Mean(command) => command.run(output),
            Self::Train(command) => command.run(output),
            Self::Randomizer(command) => command.run(output),
        }
    }
}
