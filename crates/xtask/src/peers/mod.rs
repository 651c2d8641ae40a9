//! `cargo xtask bench peers`: noise calibration, training steps and local reports against those of others.
//!
//! Both sides are measured in one run, in turns, so that whatever else the machine does hits
//! both; only the ratios mean anything.

mod accounting;
mod local;
mod peer;
mod training;

use crate::environment::Environment;
use crate::process::{self, Failure};

/// What can be compared, in order.
const PARTS: [&str; 3] = ["accounting", "training", "local"];

/// Runs the command.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    let (mut opacus, mut in_release, mut parts) = (true, false, Vec::new());
    for &option in options {
        match option {
            "--no-opacus" => opacus = false,
            "--in-release" => in_release = true,
            part if PARTS.contains(&part) => parts.push(part),
            _ => return Err(Failure::usage(format!("`bench peers` does not understand `{option}`"))),
        }
    }
    if !in_release {
        // `cargo xtask` is a dev build, and a race must be run by an optimised one.
        let again =
            ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "peers", "--in-release"];
        return process::run(process::cargo(again).args(options));
    }
    let chosen = |part: &str| parts.is_empty() || parts.contains(&part);
    let mut packages: Vec<&[&str]> = Vec::new();
    if chosen("accounting") {
        packages.push(&["dp-accounting==0.6.0"]);
    }
    if opacus && (chosen("accounting") || chosen("training")) {
        packages.push(&["torch", "opacus"]);
    }
    if chosen("local") {
        packages.push(&["numpy", "scipy"]);
    }
    let environment = Environment::prepare("peers-venv", "SEMIDP_PEERS_VENV")?;
    packages.iter().for_each(|some| environment.install_if_possible(some));
    if chosen("accounting") {
        print!("{}", accounting::run(&environment, opacus)?);
    }
    if chosen("training") {
        print!("{}", training::run(&environment, opacus)?);
    }
    if chosen("local") {
        print!("{}", local::run(&environment)?);
    }
    Ok(())
}

/// The middle of the sorted numbers; of an even count, the mean of the two in the middle.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().saturating_sub(1) / 2, numbers.len() / 2);
    if numbers.is_empty() { f64::NAN } else { 0.5 * (numbers[low] + numbers[high]) }
}

/// Seconds, readably.
fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.2} ms", 1e3 * seconds) } else { format!("{seconds:.2} s") }
}

/// A longer error is cut: a row only has to say that the peer failed, and roughly why.
fn shorten(error: &str) -> String {
    const LONGEST: usize = 60;
    format!("{error:.LONGEST$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn unknown_options_are_refused() {
        assert_eq!(run(&["--fast"]).unwrap_err().code, 2);
    }

    #[test]
    fn times_have_units() {
        assert_eq!((time(0.0123), time(2.5)), ("12.30 ms".into(), "2.50 s".into()));
    }
}
