//! The command line of semidp: differential privacy where public data helps for free, and the
//! guarantee covers the private rows only. One file a command, under `command`.

mod answer;
mod command;
mod failure;
mod file;
mod meaning;
mod memory;
mod metrics;
mod number;
mod options;
mod output;
mod program;
mod progress;
mod report;
mod table;

use clap::Parser;
use command::Command;
use failure::Failure;
use output::Output;
use std::process::ExitCode;
use std::sync::Mutex;

/// Differential privacy where public data helps for free; the guarantee covers the private rows
/// only.
#[derive(Parser)]
#[command(name = "semidp", version, after_help = EXAMPLE)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,

    /// Print exactly one JSON object on stdout instead of tables
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    /// Print no notes and no warnings on stderr
    #[arg(long, global = true, display_order = 901)]
    quiet: bool,
}

const EXAMPLE: &str = "\
Exit codes: 0 done; 2 bad usage or bad input; 3 privacy budget refused; 1 anything else.

EXAMPLE
  semidp calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.01 --steps 1000";

fn main() -> ExitCode {
    // A panic that reaches this function is a bug in semidp; even then the user gets one line and a
    // documented exit code. Others are caught on the way, such as those of a reader of damaged files, and
    // are nobody's business: so the hook only takes down what happened.
    std::panic::set_hook(Box::new(|panic| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = panic.to_string();
        }
    }));
    match std::panic::catch_unwind(run) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            let what = LAST_PANIC.lock().map_or_else(|_| String::new(), |last| last.clone());
            Failure::other(format!("internal error, please report this: {what}")).report()
        }
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn run() -> Result<(), Failure> {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) if error.use_stderr() => return Err(Failure::from_usage(&error)),
        Err(help) => {
            // Help and version. A reader that went away (`semidp --help | head`) is no error.
            let _ = help.print();
            return Ok(());
        }
    };
    line.command.run(&Output { json: line.json, quiet: line.quiet })
}
