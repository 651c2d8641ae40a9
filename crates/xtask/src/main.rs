//! Chores of the repository, run as `cargo xtask <command>`: one file a command.

mod bench;
mod documents;
mod environment;
mod faults;
mod fuzz;
mod peers;
mod process;
mod python;
mod table;
mod test;

use process::Failure;
use std::process::ExitCode;

const USAGE: &str = "\
Chores of the repository.

usage: cargo xtask <command>

  test [--quick | --full]   format, lints, tests, documentation, links, the Python package; --quick
                            leaves out the lints and the building of the documentation; --full adds
                            the long forms (sweeps, faults, noise against OpenDP), for hours
  test python               the Python package alone: a wheel in a virtual environment in
                            target/python-venv (or $SEMIDP_PYTHON_VENV), pytest, mypy
  test documents            paths and links in the documents alone
  bench                     every criterion bench
  bench peers [accounting|training|local] [--no-opacus]
                            noise calibration, training steps and local reports against
                            dp_accounting, Opacus, PyTorch and NumPy, which are installed into
                            target/peers-venv (or $SEMIDP_PEERS_VENV) if need be
  bench python              a fit of a million rows in Python against the same in Rust: time and memory
  faults [--quick] [--kills N]
                            kills and full disks at every call that changes a file, and N random kills
                            (default 300), in mean, train, local randomize and ledger: double debits,
                            lost answers, wrong messages; --quick tries some
  fuzz [--minutes N] [--target NAME]
                            each fuzz target for N minutes (default 1); needs nightly and
                            cargo-fuzz
  help                      this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            if let Some(hint) = failure.hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(arguments: &[&str]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| ["--help", "-h"].contains(argument)) {
        print!("{USAGE}");
        return Ok(());
    }
    match arguments {
        [] | ["help"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["test", options @ ..] => test::run(options),
        ["bench", options @ ..] => bench::run(options),
        ["faults", options @ ..] => faults::run(options),
        ["fuzz", options @ ..] => fuzz::run(options),
        [other, ..] => Err(Failure::usage(format!("there is no command `{other}`"))),
    }
}
