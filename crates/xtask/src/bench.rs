//! `cargo xtask bench`: our own benches, or a race against the peers.

use crate::peers;
use crate::process::{self, Failure};
use crate::python;

/// Runs the command.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    match options {
        [] => process::run(&mut process::cargo(["bench", "--manifest-path", "bench/Cargo.toml"])),
        ["peers", options @ ..] => peers::run(options),
        ["python"] => python::bench(),
        _ => Err(Failure::usage(format!("`bench` does not understand `{}`", options.join(" ")))),
    }
}
