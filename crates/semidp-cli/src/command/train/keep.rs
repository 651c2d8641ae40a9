//! Runs that survive: options for checkpoints, and what a signal does.

use crate::failure::Failure;
use crate::number;
use clap::Args;
use semidp::train::{Fact, Keeping};
use semidp_core::Randomness;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How a run is kept.
#[derive(Args)]
#[command(next_help_heading = "Interrupted runs")]
pub struct KeepOptions {
    /// Where to keep the run while it lasts, with its key in FILE.key; both are removed at the end
    /// [default: the model's path with .checkpoint]
    #[arg(long, value_name = "FILE|none", conflicts_with = "resume")]
    pub checkpoint: Option<PathBuf>,

    /// Go on from this checkpoint, with all other options as they were: the budget is spent once
    #[arg(long, value_name = "CHECKPOINT")]
    pub resume: Option<PathBuf>,

    /// At most about so long from one checkpoint to the next; 0 keeps every step
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = number::whole("checkpoint-every", 0),
          allow_hyphen_values = true)]
    pub checkpoint_every: u64,
}

impl KeepOptions {
    /// Where the checkpoint is, if there is to be one.
    pub fn place(&self, out: &Path) -> Option<PathBuf> {
        match (&self.resume, &self.checkpoint) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(path)) if path == Path::new("none") => None,
            (None, Some(path)) => Some(path.clone()),
            (None, None) => {
                let mut path = out.as_os_str().to_os_string();
                path.push(".checkpoint");
                Some(path.into())
            }
        }
    }

    /// Whether anything is to be kept.
    pub fn is_kept(&self) -> bool {
        self.checkpoint.as_deref() != Some(Path::new("none"))
    }

    /// Takes the place, or finds the run that was interrupted.
    pub fn keeping(
        &self,
        out: &Path,
        randomness: Randomness,
        facts: Vec<Fact>,
    ) -> Result<Option<Keeping>, Failure> {
        let Some(path) = self.place(out) else { return Ok(None) };
        let keeping = match self.resume {
            Some(_) => Keeping::resume(path)?,
            None => Keeping::begin(path, randomness)?,
        };
        let keeping = keeping.every(Duration::from_secs(self.checkpoint_every));
        Ok(Some(facts.into_iter().fold(keeping, Keeping::with_fact)))
    }
}

/// From now on the first Ctrl-C or SIGTERM lets the step that is under way end; the second ends the process at once.
pub fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 1, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| Failure::other(format!("cannot listen to signals: {error}")))?;
    }
    Ok(stop)
}
