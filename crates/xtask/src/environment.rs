//! Virtual environments of Python below the build folder: one for our own package, one for the peers, which are never among
//! the project's dependencies.

use crate::process::{self, Failure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A virtual environment.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment if it is missing, in the build folder or where a variable says.
    pub fn prepare(name: &str, variable: &str) -> Result<Self, Failure> {
        let folder =
            std::env::var_os(variable).map_or_else(|| process::target_folder().join(name), PathBuf::from);
        let environment = Self { folder: std::path::absolute(&folder).unwrap_or(folder) };
        if !environment.python().exists() {
            eprintln!("making a Python environment in {}", environment.folder.display());
            process::run(Command::new("python3").args(["-m", "venv"]).arg(&environment.folder))
                .map_err(|failure| failure.hint("Python 3.11 or newer with its venv module is needed"))?;
        }
        Ok(environment)
    }

    /// A module of Python, to be run at the root of the repository.
    pub fn module(&self, name: &str) -> Command {
        let mut command = Command::new(self.python());
        command.args(["-m", name]).current_dir(process::root());
        command
    }

    /// Installs packages, or whatever else the words ask of pip.
    pub fn install<S: AsRef<std::ffi::OsStr>>(&self, words: &[S]) -> Result<(), Failure> {
        // Our stdout is for answers.
        let mut command = self.module("pip");
        command.args(["install", "--quiet", "--disable-pip-version-check"]).args(words).stdout(Stdio::null());
        process::run(&mut command)
    }

    /// Installs what is lacking. A peer that cannot be installed is no failure: its rows will say so.
    pub fn install_if_possible(&self, packages: &[&str]) {
        eprintln!("installing {} unless present (this may take minutes)", packages.join(", "));
        if let Err(failure) = self.install(packages) {
            eprintln!("warning: {}", failure.message);
        }
    }

    /// Puts a script beside the peers, and says where.
    pub fn script(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join(format!("semidp-peers-{name}.py"));
        std::fs::write(&path, text)
            .map_err(|error| Failure::new(format!("cannot write the peers' script: {error}")))?;
        Ok(path)
    }

    /// One peer's process, not yet started: requests to stdin, answers from stdout.
    pub fn peer(&self, script: &Path, name: &str) -> Command {
        let mut command = Command::new(self.python());
        command.arg(script).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// The interpreter.
    pub fn python(&self) -> PathBuf {
        self.folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }
}
