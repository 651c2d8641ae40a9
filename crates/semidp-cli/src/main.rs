//! The binary `semidp`; all of it is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    semidp_cli::main(std::env::args_os().collect())
}
