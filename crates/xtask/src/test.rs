//! `cargo xtask test`: everything a change must pass, in the order that fails fastest.

use crate::documents;
use crate::process::{self, Failure};
use crate::python;

/// One thing to pass: the arguments of cargo, and whether `--quick` leaves it out.
struct Step {
    arguments: &'static [&'static str],
    slow: bool,
}

const STEPS: &[Step] = &[
    Step { arguments: &["fmt", "--all", "--check"], slow: false },
    Step { arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], slow: true },
    // Not `--all-targets`: that would run every bench once.
    Step { arguments: &["test", "--workspace", "--lib", "--bins", "--tests", "--examples"], slow: false },
    Step { arguments: &["test", "--workspace", "--doc"], slow: false },
    Step { arguments: &["doc", "--workspace", "--no-deps"], slow: true },
];

/// Runs the command.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    let quick = match options {
        [] => false,
        ["--quick"] => true,
        ["python"] => return python::test(),
        ["documents"] => return documents::check(&process::root()),
        _ => return Err(Failure::usage(format!("`test` does not understand `{}`", options.join(" ")))),
    };
    for step in STEPS.iter().filter(|step| !(quick && step.slow)) {
        process::heading(&format!("cargo {}", step.arguments.join(" ")));
        process::run(process::cargo(step.arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    process::heading("paths and links in the documents");
    documents::check(&process::root())?;
    python::test()?;
    eprintln!("\nall passed");
    Ok(())
}
