//! `cargo xtask test`: everything a change must pass, in the order that fails fastest.

use crate::documents;
use crate::process::{self, Failure};
use crate::python;
use std::time::Instant;

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

/// A long form that only `--full` runs.
struct LongStep {
    what: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const LONG_STEPS: &[LongStep] = &[
    LongStep {
        what: "lints of the benches",
        arguments: &[
            "clippy",
            "--manifest-path",
            "bench/Cargo.toml",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
    },
    LongStep {
        what: "the kernel's noise against OpenDP's exact sampler",
        arguments: &["test", "--manifest-path", "bench/Cargo.toml", "--tests"],
        environment: &[],
    },
    LongStep {
        what: "500 accounting settings on halved grids",
        arguments: &["test", "--release", "-p", "semidp-accounting", "--test", "sweep"],
        environment: &[("SEMIDP_SWEEP", "500")],
    },
    LongStep {
        what: "replay audits of every combination, and extreme settings of train",
        arguments: &["test", "-p", "semidp", "-p", "semidp-cli", "--test", "replay", "--test", "extremes"],
        environment: &[("SEMIDP_SWEEP", "1")],
    },
    LongStep {
        what: "unbiased reports to a thousandth",
        arguments: &["test", "--release", "-p", "semidp-core", "--lib", "unbiased", "--", "--ignored"],
        environment: &[],
    },
    LongStep {
        what: "low-bits attacks of 50,000 reports (SEMIDP_AUDIT_TRIALS)",
        arguments: &["test", "--release", "-p", "semidp", "--lib", "at_length", "--", "--ignored"],
        environment: &[("SEMIDP_AUDIT_TRIALS", "50000")],
    },
    LongStep {
        what: "300 kills, and a fault at every call that changes a file (cargo xtask faults)",
        arguments: &["test", "-p", "semidp-cli", "--test", "faults", "--", "--ignored"],
        environment: &[("SEMIDP_KILLS", "300")],
    },
];

/// Runs the command.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    let (quick, full) = match options {
        [] => (false, false),
        ["--quick"] => (true, false),
        ["--full"] => (false, true),
        ["python"] => return python::test(),
        ["documents"] => return documents::check(&process::root()),
        _ => return Err(Failure::usage(format!("`test` does not understand `{}`", options.join(" ")))),
    };
    for step in STEPS.iter().filter(|step| !(quick && step.slow)) {
        step_of(step.arguments, &[])?;
    }
    process::heading("paths and links in the documents");
    documents::check(&process::root())?;
    python::test()?;
    for step in LONG_STEPS.iter().filter(|_| full) {
        step_of(step.arguments, step.environment)?;
    }
    eprintln!("\nall passed");
    if !full {
        eprintln!("left out; `cargo xtask test --full` runs them:");
        LONG_STEPS.iter().for_each(|step| eprintln!("  {}", step.what));
    }
    Ok(())
}

/// Runs cargo, and prints how long it took.
fn step_of(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), Failure> {
    process::heading(&format!("cargo {}", arguments.join(" ")));
    let began = Instant::now();
    let mut command = process::cargo(arguments);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings").envs(environment.iter().copied()))?;
    eprintln!("({} s)", began.elapsed().as_secs());
    Ok(())
}
