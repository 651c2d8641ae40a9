//! The command line of semidp: differential privacy where public data helps for free, and the
//! guarantee covers the private rows only. One file a command, under `command`.
//!
//! The binary is [`main`]; other programs, such as the Python package, [`ask`] the same commands and so get the same answers.

mod command;
mod delivery;
mod failure;
mod meaning;
mod memory;
mod metrics;
mod number;
mod options;
mod output;
mod printable;
mod progress;
mod report;
mod signing;
mod table;

use clap::Parser;
use command::Command;
pub use delivery::Pending;
pub use failure::Failure;
use output::Output;
use semidp::files;
use semidp::files::kind::{Kind, refuse_other};
use semidp::model::SavedModel;
use semidp::train::Progress;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

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

/// The command line from its first word, the program's name, to its exit code.
pub fn main(words: Vec<OsString>) -> ExitCode {
    // Rows, keys and noise pass through this process from here on, and leave traces in its memory until it ends.
    semidp_core::forbid_core_dumps();
    // A write beyond RLIMIT_FSIZE then fails, and is reported as other failures are; unheard, the signal ends the process.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::signal::SIGXFSZ, Arc::<AtomicBool>::default());
    // A panic that reaches this function is a bug in semidp; even then the user gets one line and a
    // documented exit code. Others are caught on the way, such as those of a reader of damaged files, and
    // are nobody's business: so the hook only takes down what happened.
    std::panic::set_hook(Box::new(|panic| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = panic.to_string();
        }
    }));
    match std::panic::catch_unwind(|| run(words)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            let what = LAST_PANIC.lock().map_or_else(|_| String::new(), |last| last.clone());
            Failure::other(format!("internal error, please report this: {what}")).report()
        }
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn run(words: Vec<OsString>) -> Result<(), Failure> {
    let line = match CommandLine::try_parse_from(words) {
        Ok(line) => line,
        Err(error) if error.use_stderr() => return Err(Failure::from_usage(&error)),
        Err(help) => {
            // Help and version. A reader that went away (`semidp --help | head`) is no error.
            let _ = help.print();
            return Ok(());
        }
    };
    line.command.run(&Output::new(line.json, line.quiet))
}

/// What a command answers to a program, in place of printing it.
#[derive(Debug, Default)]
pub struct Answer {
    /// The object that `--json` prints.
    pub json: Value,
    /// What anybody should know.
    pub warnings: Vec<String>,
    /// The run, if a ledger paid for it. The caller ends it once the answer cannot be lost any more.
    pub pending: Option<Pending>,
}

/// Asks a command (its words without the program's name) from another program: nothing is printed, and no bar is drawn.
pub fn ask(words: &[String]) -> Result<Answer, Failure> {
    let (command, output) = heard(words)?;
    let outcome = command.run(&output);
    let answer = output.into_answer();
    match outcome {
        // A certificate that does not hold, or a promise that an audit broke: the answer says so, and a shell hears a failure.
        Err(_) if !answer.json.is_null() => Ok(answer),
        outcome => outcome.map(|()| answer),
    }
}

/// Trains as the command `train` does, but on behalf of another program: no model is written, signals are left alone, and
/// every step is told. What the program did to private rows besides, such as checks that may fail, is `not_covered` by any guarantee, and
/// the certificate says so.
pub fn train(
    words: &[String],
    not_covered: &[String],
    on_step: &mut dyn FnMut(Progress<'_>),
) -> Result<(SavedModel, Answer), Failure> {
    let (command, output) = heard(words)?;
    let Command::Train(train) = command else {
        return Err(Failure::other("internal error: another command than train"));
    };
    let (saved, json) = train.for_program(&output, not_covered, on_step)?;
    Ok((saved, Answer { json, ..output.into_answer() }))
}

/// Writes what a program was answered, whole or not at all. An existing file is replaced if it is of the same kind: an `answer` of
/// `mean`, a `certificate` or a `model`. For every other kind the caller has to check what it replaces.
pub fn save(path: &Path, kind: &str, text: &str) -> Result<(), Failure> {
    let kind = match kind {
        "answer" => Some(Kind::Answer),
        "certificate" => Some(Kind::Certificate),
        "model" => Some(Kind::Model),
        _ => None,
    };
    kind.map_or(Ok(()), |kind| refuse_other("path", path, kind))?;
    Ok(files::write("path", path, text)?)
}

fn heard(words: &[String]) -> Result<(Command, Output), Failure> {
    let words = std::iter::once("semidp").chain(words.iter().map(String::as_str));
    let line = CommandLine::try_parse_from(words).map_err(|error| Failure::from_usage(&error))?;
    Ok((line.command, Output::captured()))
}
