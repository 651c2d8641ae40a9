//! Runs that outlive their process.
//!
//! A run draws everything from its key at an address, so whoever has the key, the same rows and the same iterate takes
//! the same step again: a run that is continued releases nothing that it would not have released anyway. That is true
//! only if nothing else changed. Noise that was added to one sum and is added to another cancels in their difference,
//! and the difference is private. So the kernel continues a run only if
//!
//! * the key comes from the [`KeyFile`] that the run began with, which nobody else may read;
//! * events, steps, adjacency, δ, dimension and this crate's version are those of the beginning, and the rows have the
//!   same fingerprint under the key ([`Identity`]);
//! * what the caller kept carries the seal that this run put on it: an HMAC under a key of its own over the identity,
//!   the number of steps done, and the text.
//!
//! None of that can see whether a caller asks the same question again. So the noise of such a run is bound to the sum it
//! is added to: its key is an HMAC of step, grid and sum under the run's ([`noise_key`]). The same sum gets the same
//! noise; whatever differs, down to the last bit, gets noise of its own, and a mistake of the caller costs one more
//! release instead of all protection. To whoever does not know the key, noise of this kind has the law of any other.
//!
//! What is kept are released iterates. The fingerprint is keyed: without the key it tells nothing about the rows, and
//! the key is gone when the run ends.

mod fingerprint;
mod key_file;
mod record;

pub(crate) use fingerprint::fingerprint;
pub use key_file::KeyFile;
pub use record::Record;

use crate::noise::rng::{Purpose, RunKey, wipe_stack};
use crate::{Error, Result, RunId, hex};
use hmac::digest::FixedOutput;
use hmac::{Hmac, KeyInit, Mac};
use semidp_accounting::{Adjacency, CountedEvent, Delta, RandomSource};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Raise it when the draws of a step or the contribution of a row change: old runs must not be continued then.
const DRAWS: &str = concat!(env!("CARGO_PKG_VERSION"), " draws/1");

/// What may not change while a run is interrupted. It may be shown to anybody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The run, by name.
    pub run: String,
    /// The code that draws.
    pub code: String,
    /// What it costs.
    pub events: Vec<CountedEvent>,
    /// Under this adjacency,
    pub adjacency: Adjacency,
    /// at this δ.
    pub delta: Delta,
    /// Where its randomness came from.
    pub random_source: RandomSource,
    /// Steps.
    pub steps: u64,
    /// Coordinates of a release.
    pub dimension: usize,
    /// Columns.
    pub width: usize,
    /// Private units, where their number is public.
    pub units: Option<usize>,
    /// The fingerprint of the rows under the run's key.
    pub rows: String,
}

/// The key of the noise of one sum.
pub(crate) fn noise_key(key: &RunKey, step: u64, grid_step: f64, sum: &[i64]) -> RunKey {
    let made = RunKey::made(|bytes| {
        write_noise_key(key, step, grid_step, sum, bytes);
        Ok(())
    });
    wipe_stack();
    made.expect("it cannot fail")
}

/// What this leaves on the stack is below its caller's frame.
#[inline(never)]
fn write_noise_key(key: &RunKey, step: u64, grid_step: f64, sum: &[i64], bound: &mut [u8; 32]) {
    let mut mac = keyed(&key.derived(Purpose::Bound));
    mac.update(&step.to_le_bytes());
    mac.update(&grid_step.to_le_bytes());
    let mut bytes = [0; 1 << 12];
    for part in sum.chunks(bytes.len() / 8) {
        let used = &mut bytes[..8 * part.len()];
        used.chunks_exact_mut(8)
            .zip(part)
            .for_each(|(bytes, value)| bytes.copy_from_slice(&value.to_le_bytes()));
        mac.update(used);
    }
    FixedOutput::finalize_into(mac, bound.into());
}

/// The parts of an identity that the kernel does not have to compute.
pub(crate) struct Facts<'a> {
    pub(crate) events: &'a [CountedEvent],
    pub(crate) adjacency: Adjacency,
    pub(crate) delta: Delta,
    pub(crate) random_source: RandomSource,
    pub(crate) steps: u64,
    pub(crate) dimension: usize,
    pub(crate) width: usize,
    pub(crate) units: Option<usize>,
}

impl Identity {
    pub(crate) fn new(run: RunId, facts: &Facts<'_>, rows: String) -> Self {
        Self {
            run: run.to_string(),
            code: DRAWS.into(),
            events: facts.events.to_vec(),
            adjacency: facts.adjacency,
            delta: facts.delta,
            random_source: facts.random_source,
            steps: facts.steps,
            dimension: facts.dimension,
            width: facts.width,
            units: facts.units,
            rows,
        }
    }

    /// Refuses a run that began as something else, and says as what.
    fn check(&self, begun: &Self) -> Result<()> {
        let differs = |what: &str, begun: String, now: String| {
            Err(Error::AnotherRun { difference: format!("{what} was {begun} and is {now}") })
        };
        let Self { run, code, events, adjacency, delta, random_source, steps, dimension, width, units, rows } =
            begun;
        if *code != self.code {
            return differs("the version of the code", code.clone(), self.code.clone());
        }
        if *run != self.run {
            return differs("the run of the key file", run.clone(), self.run.clone());
        }
        if *adjacency != self.adjacency {
            return differs("adjacency", adjacency.to_string(), self.adjacency.to_string());
        }
        if *delta != self.delta {
            return differs("delta", delta.to_string(), self.delta.to_string());
        }
        if *random_source != self.random_source {
            return differs(
                "the random source",
                format!("{random_source:?}"),
                format!("{:?}", self.random_source),
            );
        }
        if *steps != self.steps {
            return differs("steps", steps.to_string(), self.steps.to_string());
        }
        if *dimension != self.dimension {
            return differs("the number of weights", dimension.to_string(), self.dimension.to_string());
        }
        if *width != self.width {
            return differs("the number of columns", width.to_string(), self.width.to_string());
        }
        if *units != self.units {
            let text = |units: Option<usize>| units.map_or("secret".into(), |units| units.to_string());
            return differs("the number of private rows", text(*units), text(self.units));
        }
        if *events != self.events {
            let text = |events: &[CountedEvent]| serde_json::to_string(events).unwrap_or_default();
            return differs("the privacy event", text(events), text(&self.events));
        }
        if *rows != self.rows {
            let difference = "the private rows are not those that it began with".into();
            return Err(Error::AnotherRun { difference });
        }
        Ok(())
    }
}

/// What a caller kept of a run, to go on from.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// What the run was when it was kept.
    pub identity: &'a Identity,
    /// Steps that were done.
    pub done: u64,
    /// Whatever the caller needs to go on: released iterates.
    pub text: &'a str,
    /// What [`crate::Run::seal`] said to that.
    pub seal: &'a str,
}

impl Kept<'_> {
    /// Refuses what this run, as it is now, did not seal.
    pub(crate) fn check(&self, now: &Identity, key: &RunKey) -> Result<()> {
        now.check(self.identity)?;
        if self.done > now.steps {
            return Err(Error::Tampered);
        }
        let seal: [u8; 32] = hex::decode(self.seal).ok_or(Error::Tampered)?;
        mac(now, key, self.done, self.text)?.verify(&seal.into()).map_err(|_| Error::Tampered)
    }
}

/// The seal on a text after so many steps.
pub(crate) fn seal(identity: &Identity, key: &RunKey, done: u64, text: &str) -> Result<String> {
    let seal = sealed(identity, key, done, text);
    wipe_stack();
    seal
}

/// What this leaves on the stack is below its caller's frame.
#[inline(never)]
fn sealed(identity: &Identity, key: &RunKey, done: u64, text: &str) -> Result<String> {
    Ok(hex::encode(&mac(identity, key, done, text)?.finalize().into_bytes()))
}

/// Every part comes with its length, so that nothing can move from one to the next.
fn mac(identity: &Identity, key: &RunKey, done: u64, text: &str) -> Result<Hmac<Sha256>> {
    let identity = serde_json::to_string(identity).map_err(|_| Error::Tampered)?;
    let mut mac = keyed(&key.derived(Purpose::Seal));
    for part in [identity.as_bytes(), &done.to_le_bytes(), text.as_bytes()] {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    Ok(mac)
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}
