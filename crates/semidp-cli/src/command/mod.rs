//! The commands, one file each. A new command is a new file and two lines here.

mod account;
mod audit;
mod calibrate;
#[cfg(feature = "experiments")]
mod demo;
mod evaluate;
mod keygen;
mod ledger;
mod local;
mod mean;
mod plan;
mod predict;
#[cfg(feature = "experiments")]
mod reproduce;
mod schema;
mod train;
mod verify;

use crate::failure::Failure;
use crate::output::Output;
use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    #[command(subcommand)]
    Plan(plan::Plan),
    Mean(mean::Mean),
    Train(Box<train::Train>),
    #[command(subcommand)]
    Local(local::Local),
    Evaluate(evaluate::Evaluate),
    Predict(predict::Predict),
    Schema(schema::SchemaCommand),
    #[command(subcommand)]
    Ledger(ledger::Ledger),
    Account(account::Account),
    Calibrate(calibrate::Calibrate),
    Verify(verify::Verify),
    Keygen(keygen::Keygen),
    #[command(subcommand)]
    Audit(audit::Audit),
    #[cfg(feature = "experiments")]
    Reproduce(reproduce::Reproduce),
    #[cfg(feature = "experiments")]
    Demo(demo::Demo),
}

impl Command {
    /// Does it.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Plan(command) => command.run(output),
            Self::Mean(command) => command.run(output),
            Self::Train(command) => command.run(output),
            Self::Local(command) => command.run(output),
            Self::Evaluate(command) => command.run(output),
            Self::Predict(command) => command.run(output),
            Self::Schema(command) => command.run(output),
            Self::Ledger(command) => command.run(output),
            Self::Account(command) => command.run(output),
            Self::Calibrate(command) => command.run(output),
            Self::Verify(command) => command.run(output),
            Self::Keygen(command) => command.run(output),
            Self::Audit(command) => command.run(output),
            #[cfg(feature = "experiments")]
            Self::Reproduce(command) => command.run(output),
            #[cfg(feature = "experiments")]
            Self::Demo(command) => command.run(output),
        }
    }
}
