//! Running other programs, and how a chore fails.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Why a chore ended early.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit code of this program.
    pub code: u8,
}

impl Failure {
    /// Something went wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: 1 }
    }

    /// The command line was not understood.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }.hint("`cargo xtask help` lists the commands")
    }

    /// The same with advice.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("this package lies two folders below the root").to_path_buf()
}

/// The folder that cargo builds into, and where we may leave things, too.
pub fn target_folder() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    std::path::absolute(&folder).unwrap_or(folder)
}

/// The cargo that runs us, to be run at the root.
pub fn cargo<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(arguments: I) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Prints a heading, so that a long log says where it is.
pub fn heading(text: &str) {
    eprintln!("\n=== {text}");
}

/// Runs a command to its end; a failure carries the command's exit code.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let status = status(command)?;
    if status.success() {
        return Ok(());
    }
    // A process ended by a signal has no code of its own.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failure { code, ..Failure::new(format!("`{}` failed: {status}", line(command))) })
}

/// Runs a command to its end.
pub fn status(command: &mut Command) -> Result<ExitStatus, Failure> {
    command.status().map_err(|error| Failure::new(format!("cannot run `{}`: {error}", line(command))))
}

/// A command as one would type it.
pub fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_as_typed() {
        assert_eq!(line(Command::new("/some/where/cargo").args(["fmt", "--all"])), "cargo fmt --all");
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.toml").is_file() && root().join("crates/xtask").is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn a_failure_keeps_the_exit_code() {
        let failure = run(Command::new("sh").args(["-c", "exit 7"])).unwrap_err();
        assert_eq!(failure.code, 7);
        assert!(run(&mut Command::new("there-is-no-such-program")).is_err());
    }
}
