//! The Python package: built as a wheel, installed, tested, and its types checked.

use crate::environment::Environment;
use crate::process::{self, Failure};
use std::path::PathBuf;
use std::process::Command;

/// Builds, installs and tests the package.
pub fn test() -> Result<(), Failure> {
    let environment = Environment::prepare("python-venv", "SEMIDP_PYTHON_VENV")?;
    process::heading("the wheel of the Python package");
    environment.install(&["maturin>=1.9.4,<2"])?;
    let wheels = process::target_folder().join("python-wheels");
    // Old wheels would be installed in place of the new one.
    let _ = std::fs::remove_dir_all(&wheels);
    // The build of the tests, of which most is there already; `pip install .` makes an optimised one.
    let mut build = environment.module("maturin");
    build.args(["build", "--quiet", "--profile", "dev", "--out"]).arg(&wheels);
    process::run(build.arg("--interpreter").arg(environment.python()))?;
    let wheel = only_wheel(&wheels)?;
    environment.install(&[format!("{}[test]", wheel.display())])?;
    environment.install(&["--force-reinstall", "--no-deps", &wheel.display().to_string()])?;
    process::heading("pytest");
    process::run(environment.module("pytest").args(["-q", "-n", "2", "python/tests"]))?;
    process::heading("mypy --strict");
    process::run(&mut environment.module("mypy"))
}

/// Measures a fit in Python against the same in Rust, both optimised.
pub fn bench() -> Result<(), Failure> {
    let environment = Environment::prepare("python-bench-venv", "SEMIDP_PYTHON_BENCH_VENV")?;
    process::heading("optimised builds of both sides");
    environment.install(&["."])?;
    let example = "train_in_memory";
    process::run(&mut process::cargo(["build", "--release", "-p", "semidp-cli", "--example", example]))?;
    let rust = process::target_folder().join("release").join("examples").join(example);
    let mut race = Command::new(environment.python());
    process::run(race.arg("python/bench/fit_against_rust.py").arg(rust).current_dir(process::root()))
}

fn only_wheel(folder: &std::path::Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Failure::new(format!("cannot list {}: {error}", folder.display())))?;
    let mut wheels = entries.flatten().map(|entry| entry.path());
    let wheel = wheels.find(|path| path.extension().is_some_and(|ending| ending == "whl"));
    wheel.ok_or_else(|| Failure::new(format!("no wheel was built in {}", folder.display())))
}
