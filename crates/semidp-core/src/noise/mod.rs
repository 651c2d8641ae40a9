//! Noise laws: one file a law. Each adds integer noise to an integer sum and knows the event that
//! this is to an accountant.

mod fixed;
mod gaussian;
mod knorm;
mod laplace;
pub(crate) mod rng;

use crate::data::Sampling;
use crate::query::{L1, L2, Norm};
use crate::{Error, Result};
use rng::{Purpose, RunKey};
use semidp_accounting::{Arithmetic, Event, NoiseMultiplier};

pub(crate) use gaussian::LOG_TOTAL_VARIATION;
#[cfg(test)]
pub(crate) use gaussian::add_rounded_gaussian;

/// Noise that makes a sum of contributions differentially private.
///
/// Only this crate has laws: a random source of one's own, or none, cannot stand in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a noise law of the kernel",
    note = "the laws are `Gaussian`, `Laplace` and `KNorm`; others cannot be added from outside"
)]
pub trait Mechanism: sealed::Law {
    /// The norm in which it needs contributions to be bounded.
    type Norm: Norm;
}

pub(crate) mod sealed {
    use super::*;

    /// The part of a law that only the kernel calls.
    pub trait Law: Clone + Sync + std::fmt::Debug {
        /// In words.
        fn name(&self) -> &'static str;
        /// Noise scale over clip norm.
        fn noise_multiplier(&self) -> NoiseMultiplier;
        /// Whether the released integers have exactly the law that is accounted.
        fn arithmetic(&self) -> Arithmetic;
        /// log₂ of the distance in total variation from that law, a coordinate; `None` if it is zero
        /// or not known.
        fn log_total_variation(&self) -> Option<i32>;
        /// What one step is to an accountant.
        fn event(&self, sampling: &Sampling, units: u64, dimension: u64) -> Result<Event>;
        /// Adds the noise of one block of coordinates, at a scale in grid steps.
        fn add(&self, values: &mut [i64], scale: u64, stream: &mut super::rng::Stream);
        /// The coordinates of a block: blocks are independent, unless the law is joint.
        fn block(&self, dimension: usize) -> usize;
    }
}

/// Rounded Gaussian noise for contributions bounded in ℓ2 norm. Exact.
///
/// *Guarantee*: that of the continuous Gaussian mechanism (any adjacency, any sampling that has an
/// event). *Cost*: about 10 ns a coordinate. *Argument and sampler*: the docs of this file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    noise_multiplier: NoiseMultiplier,
}

/// Rounded Laplace noise for contributions bounded in ℓ1 norm. Exact; pure differential privacy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laplace {
    noise_multiplier: NoiseMultiplier,
}

/// K-norm noise for contributions bounded in ℓ2 norm; pure differential privacy. Idealised
/// arithmetic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KNorm {
    noise_multiplier: NoiseMultiplier,
}

impl Gaussian {
    /// Standard deviation `noise_multiplier` times the clip norm, on the sum.
    pub fn new(noise_multiplier: NoiseMultiplier) -> Self {
        Self { noise_multiplier }
    }
}

impl Laplace {
    /// Scale `noise_multiplier` times the clip norm, on the sum.
    pub fn new(noise_multiplier: NoiseMultiplier) -> Self {
        Self { noise_multiplier }
    }
}

impl KNorm {
    /// Scale `noise_multiplier` times the clip norm, on the sum.
    pub fn new(noise_multiplier: NoiseMultiplier) -> Self {
        Self { noise_multiplier }
    }
}

impl Mechanism for Gaussian {
    type Norm = L2;
}

impl Mechanism for Laplace {
    type Norm = L1;
}

impl Mechanism for KNorm {
    type Norm = L2;
}

/// Coordinates that share a stream.
const BLOCK: usize = 1 << 13;

impl sealed::Law for Gaussian {
    fn name(&self) -> &'static str {
        "rounded Gaussian noise"
    }

    fn noise_multiplier(&self) -> NoiseMultiplier {
        self.noise_multiplier
    }

    fn arithmetic(&self) -> Arithmetic {
        Arithmetic::Exact
    }

    fn log_total_variation(&self) -> Option<i32> {
        Some(LOG_TOTAL_VARIATION)
    }

    fn event(&self, sampling: &Sampling, units: u64, _: u64) -> Result<Event> {
        sampling.gaussian_event(self.noise_multiplier, units)
    }

    fn add(&self, values: &mut [i64], scale: u64, stream: &mut rng::Stream) {
        gaussian::add_rounded_gaussian(values, scale, stream);
    }

    fn block(&self, _: usize) -> usize {
        BLOCK
    }
}

impl sealed::Law for Laplace {
    fn name(&self) -> &'static str {
        "rounded Laplace noise"
    }

    fn noise_multiplier(&self) -> NoiseMultiplier {
        self.noise_multiplier
    }

    fn arithmetic(&self) -> Arithmetic {
        Arithmetic::Exact
    }

    fn log_total_variation(&self) -> Option<i32> {
        None
    }

    fn event(&self, sampling: &Sampling, _: u64, dimension: u64) -> Result<Event> {
        let noise_multiplier = self.noise_multiplier;
        unsampled(sampling, "Laplace noise", Event::Laplace { noise_multiplier, dimension })
    }

    fn add(&self, values: &mut [i64], scale: u64, stream: &mut rng::Stream) {
        laplace::add_rounded_laplace(values, scale, stream);
    }

    fn block(&self, _: usize) -> usize {
        BLOCK
    }
}

impl sealed::Law for KNorm {
    fn name(&self) -> &'static str {
        "K-norm noise"
    }

    fn noise_multiplier(&self) -> NoiseMultiplier {
        self.noise_multiplier
    }

    fn arithmetic(&self) -> Arithmetic {
        Arithmetic::Idealised
    }

    fn log_total_variation(&self) -> Option<i32> {
        None
    }

    fn event(&self, sampling: &Sampling, _: u64, dimension: u64) -> Result<Event> {
        let noise_multiplier = self.noise_multiplier;
        unsampled(sampling, "K-norm noise", Event::KNorm { noise_multiplier, dimension })
    }

    fn add(&self, values: &mut [i64], scale: u64, stream: &mut rng::Stream) {
        knorm::add_rounded_k_norm(values, scale, stream);
    }

    fn block(&self, dimension: usize) -> usize {
        dimension.max(1)
    }
}

/// Pure mechanisms are accounted without sampling only.
fn unsampled(sampling: &Sampling, noise: &'static str, event: Event) -> Result<Event> {
    match sampling {
        Sampling::Everyone => Ok(event),
        _ => Err(Error::NoEvent { noise, sampling: sampling.name() }),
    }
}

/// Adds a law's noise to a sum, in addressed blocks: the result does not depend on `threads`.
pub(crate) fn add_noise(
    law: &impl Mechanism,
    sum: &mut [i64],
    clip_steps: u64,
    (key, step): (&RunKey, u64),
    threads: usize,
) {
    let scale = scale_in_steps(law.noise_multiplier(), clip_steps);
    let block = law.block(sum.len());
    let mut blocks: Vec<(u64, &mut [i64])> =
        sum.chunks_mut(block).enumerate().map(|(i, values)| (i as u64, values)).collect();
    crate::parallel::for_each(&mut blocks, threads, |(index, values)| {
        law.add(values, scale, &mut key.stream(Purpose::Noise, step, *index));
    });
}

/// The largest noise multiplier: on the finest grid, of fewer than 2^28 steps to the clip norm, the
/// samplers still have room for its scale.
pub const LARGEST_MULTIPLIER: f64 = (gaussian::LARGEST_STD >> 28) as f64;

/// Refuses a law whose noise cannot be drawn.
pub(crate) fn check(law: &impl Mechanism) -> Result<()> {
    let multiplier = law.noise_multiplier();
    if multiplier.get() > LARGEST_MULTIPLIER {
        return Err(Error::invalid("noise-multiplier", multiplier, "at most 65536"));
    }
    Ok(())
}

/// The noise scale in grid steps, rounded up: scale/clip_steps is at least the noise multiplier.
pub(crate) fn scale_in_steps(noise_multiplier: NoiseMultiplier, clip_steps: u64) -> u64 {
    // One unit up covers the rounding of the product.
    (noise_multiplier.get() * clip_steps as f64).next_up().ceil().max(1.0) as u64
}
