//! Our side of the race.

use super::{DELTA, EPSILON, STEPS, Setting};
use crate::process::Failure;
use semidp_accounting::{CountedEvent, Delta, Epsilon, Error, Event, SampleRate, Steps, calibrate_noise};
use std::time::Instant;

/// The noise multiplier we find, and the seconds it takes.
pub fn calibrate(setting: Setting) -> Result<(f64, f64), Failure> {
    let start = Instant::now();
    let answer =
        ask(setting).map_err(|error| Failure::new(format!("our own calibration failed: {error}")))?;
    Ok((answer, start.elapsed().as_secs_f64()))
}

fn ask(setting: Setting) -> Result<f64, Error> {
    let (sample_rate, steps) = (SampleRate::new(setting.sample_rate())?, Steps::new(STEPS)?);
    let found =
        calibrate_noise(Epsilon::new(EPSILON)?, Delta::new(DELTA)?, setting.adjacency, |noise_multiplier| {
            vec![CountedEvent::new(Event::PoissonGaussian { noise_multiplier, sample_rate }, steps)]
        })?;
    Ok(found.value.get())
}
