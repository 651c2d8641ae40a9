//! `cargo xtask faults`: kills and full disks at every call that changes a file, in the commands that spend a budget.

use crate::process::{self, Failure};

/// Random kills, if the command line says nothing else.
const KILLS: u32 = 300;

#[derive(Debug, PartialEq)]
struct Options {
    is_quick: bool,
    kills: u32,
}

/// Runs the command. The cases and the table are those of `crates/semidp-cli/tests/faults.rs`.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    let options = parse(options)?;
    let mut arguments = vec!["test", "--package", "semidp-cli", "--test", "faults", "--", "--nocapture"];
    if !options.is_quick {
        arguments.push("--ignored");
    }
    process::run(process::cargo(arguments).env("SEMIDP_KILLS", options.kills.to_string()))
}

fn parse(options: &[&str]) -> Result<Options, Failure> {
    let mut parsed = Options { is_quick: false, kills: KILLS };
    let mut words = options.iter();
    while let Some(&word) = words.next() {
        match word {
            "--quick" => parsed.is_quick = true,
            "--kills" => {
                let text = words.next().copied().unwrap_or_default();
                parsed.kills = text
                    .parse()
                    .map_err(|_| Failure::usage(format!("--kills must be a whole number, got `{text}`")))?;
            }
            _ => return Err(Failure::usage(format!("`faults` does not understand `{word}`"))),
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        assert_eq!(parse(&[]).unwrap(), Options { is_quick: false, kills: KILLS });
        assert_eq!(parse(&["--quick", "--kills", "5"]).unwrap(), Options { is_quick: true, kills: 5 });
        for bad in [&["--kills"][..], &["--kills", "-1"], &["--slow"]] {
            assert_eq!(parse(bad).unwrap_err().code, 2);
        }
    }
}
