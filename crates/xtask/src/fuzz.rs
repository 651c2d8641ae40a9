//! `cargo xtask fuzz`: every target of `fuzz/`, each for a while.

use crate::process::{self, Failure};
use std::process::{Command, Stdio};

/// An input that takes longer than this many seconds is a finding.
const TIMEOUT_SECONDS: u32 = 10;

/// More memory than this, in MiB, is a finding.
const MEMORY_MIB: u32 = 1024;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
struct Options {
    minutes: f64,
    target: Option<String>,
}

/// Runs the command.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    let options = parse(options)?;
    let targets = choose(targets()?, options.target.as_deref())?;
    let toolchain = toolchain()?;
    let mut found = Vec::new();
    for target in targets {
        process::heading(&format!("fuzz {target} for {} min", options.minutes));
        let corpus = process::root().join(corpus(&target));
        std::fs::create_dir_all(&corpus)
            .map_err(|error| Failure::new(format!("cannot make {}: {error}", corpus.display())))?;
        // The other targets deserve their turn even if this one has a finding.
        if !process::status(&mut fuzz(toolchain, &target, options.minutes))?.success() {
            found.push(target);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("fuzzing found something in, or could not run: {}", found.join(", ")))
        .hint("the inputs are under fuzz/artifacts; `cargo fuzz fmt TARGET FILE` prints one"))
}

fn parse(options: &[&str]) -> Result<Options, Failure> {
    let mut parsed = Options { minutes: 1.0, target: None };
    let mut words = options.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().ok_or_else(|| Failure::usage(format!("`{word}` needs a value")));
        match word {
            "--minutes" => {
                let text = value()?;
                parsed.minutes = text
                    .parse()
                    .ok()
                    .filter(|&minutes: &f64| minutes > 0.0 && minutes.is_finite())
                    .ok_or_else(|| Failure::usage(format!("--minutes must be a number > 0, got `{text}`")))?;
            }
            "--target" => parsed.target = Some(value()?.to_string()),
            _ => return Err(Failure::usage(format!("`fuzz` does not understand `{word}`"))),
        }
    }
    Ok(parsed)
}

/// The names of the files in `fuzz/fuzz_targets`: a new file there is a new target here.
fn targets() -> Result<Vec<String>, Failure> {
    let folder = process::root().join("fuzz/fuzz_targets");
    let unreadable = |error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn choose(targets: Vec<String>, wanted: Option<&str>) -> Result<Vec<String>, Failure> {
    let Some(wanted) = wanted else { return Ok(targets) };
    if targets.iter().any(|target| target == wanted) {
        return Ok(vec![wanted.to_string()]);
    }
    Err(Failure::usage(format!("there is no fuzz target `{wanted}`; there are: {}", targets.join(", "))))
}

/// Which compiler instruments the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Toolchain {
    Nightly,
    /// The stable one, told to take unstable options: the instrumentation is LLVM's and the same.
    Stable,
}

impl Toolchain {
    /// Not the cargo that runs us: `+nightly` is understood by rustup's front only.
    fn cargo_fuzz(self) -> Command {
        let mut command = Command::new("cargo");
        match self {
            Self::Nightly => command.args(["+nightly", "fuzz"]),
            Self::Stable => command.arg("fuzz").env("RUSTC_BOOTSTRAP", "1"),
        };
        command.current_dir(process::root());
        command
    }

    /// Whether there is such a compiler, and `cargo fuzz`.
    fn works(self) -> bool {
        let mut command = self.cargo_fuzz();
        let found = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    }
}

fn toolchain() -> Result<Toolchain, Failure> {
    let mut known = [Toolchain::Nightly, Toolchain::Stable].into_iter();
    known
        .find(|toolchain| toolchain.works())
        .ok_or_else(|| Failure::new("`cargo fuzz` does not run").hint("cargo install cargo-fuzz"))
}

/// Where the fuzzer keeps the inputs that it found interesting.
fn corpus(target: &str) -> String {
    format!("fuzz/corpus/{target}")
}

fn fuzz(toolchain: Toolchain, target: &str, minutes: f64) -> Command {
    let mut command = toolchain.cargo_fuzz();
    // No sanitizer: there is no unsafe code to catch, and the numerics would crawl. The default
    // profile of cargo-fuzz is optimised and keeps debug assertions and overflow checks. Comparisons
    // are not traced: there are millions of them in an inner loop, and none guards a magic value.
    command.args(["run", "--sanitizer", "none", "--no-trace-compares", target]);
    // The first folder is the fuzzer's own; it only reads the second.
    command.arg(corpus(target));
    let seeds = format!("fuzz/seeds/{target}");
    let dictionary = format!("fuzz/seeds/{target}.dict");
    if process::root().join(&seeds).is_dir() {
        command.arg(seeds);
    }
    command.arg("--");
    if process::root().join(&dictionary).is_file() {
        command.arg(format!("-dict={dictionary}"));
    }
    // Long inputs at once: the default starts with single bytes, and a slow target never gets on.
    command.arg("-len_control=0");
    command.arg(format!("-max_total_time={}", (60.0 * minutes).ceil()));
    command.arg(format!("-timeout={TIMEOUT_SECONDS}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        assert_eq!(parse(&[]).unwrap(), Options { minutes: 1.0, target: None });
        let both = parse(&["--target", "accounting", "--minutes", "0.5"]).unwrap();
        assert_eq!(both, Options { minutes: 0.5, target: Some("accounting".into()) });
        for bad in [&["--minutes"][..], &["--minutes", "-1"], &["--minutes", "NaN"], &["--speed"]] {
            assert_eq!(parse(bad).unwrap_err().code, 2);
        }
    }

    #[test]
    fn an_unknown_target_is_refused() {
        let known = targets().unwrap();
        assert!(known.contains(&"accounting".to_string()));
        assert_eq!(choose(known.clone(), None).unwrap(), known);
        assert!(choose(known, Some("nothing")).unwrap_err().message.contains("accounting"));
    }
}
