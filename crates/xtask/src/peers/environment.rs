//! A Python environment of the peers' own: they are never among the project's dependencies.

use crate::process::{self, Failure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names another folder for the environment.
const FOLDER_VARIABLE: &str = "SEMIDP_PEERS_VENV";

/// A virtual environment that holds the peers.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment if it is missing, and installs what it lacks of each list. A peer that
    /// cannot be installed is no failure: its rows will say so.
    pub fn prepare(packages: &[&[&str]]) -> Result<Self, Failure> {
        let folder = std::env::var_os(FOLDER_VARIABLE)
            .map_or_else(|| process::target_folder().join("peers-venv"), PathBuf::from);
        let environment = Self { folder: std::path::absolute(&folder).unwrap_or(folder) };
        if !environment.python().exists() {
            eprintln!("making a Python environment in {}", environment.folder.display());
            process::run(Command::new("python3").args(["-m", "venv"]).arg(&environment.folder))
                .map_err(|failure| failure.hint("Python 3 with its venv module is needed"))?;
        }
        packages.iter().for_each(|some| environment.install(some));
        Ok(environment)
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

    fn install(&self, packages: &[&str]) {
        eprintln!("installing {} unless present (this may take minutes)", packages.join(", "));
        let mut command = Command::new(self.python());
        // Our stdout is for the table.
        command.args(["-m", "pip", "install", "--quiet"]).args(packages).stdout(Stdio::null());
        if let Err(failure) = process::run(&mut command) {
            eprintln!("warning: {}", failure.message);
        }
    }

    fn python(&self) -> PathBuf {
        self.folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }
}
