//! Which units take part in a step. A sampling and its privacy event are one object: whoever draws
//! by it is accounted by it.

use super::Selection;
use super::selection::{GROUP, Mask, Poisson};
use crate::noise::rng::{Purpose, RunKey};
use crate::{Error, Result};
use semidp_accounting::{Adjacency, CountedEvent, Event, NoiseMultiplier, SampleRate, Steps};
use std::sync::Mutex;

/// How each step of a program chooses its units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sampling {
    /// All of them, every time.
    Everyone,
    /// Each unit joins each step independently with probability `rate`. Batches vary in size, which
    /// is never revealed; divide by `rate` times a public number of units.
    Poisson {
        /// q.
        rate: SampleRate,
    },
    /// A uniformly random subset of this size, afresh each step. Replace-one only.
    FixedSize {
        /// Units in a step.
        size: u64,
    },
    /// Each unit takes part in exactly one of `blocks` steps. Under replace-one the blocks are equal
    /// parts of a random order; under add/remove each unit draws its block on its own.
    OnePass {
        /// Steps in a pass.
        blocks: u64,
    },
    /// Step b of a pass takes the b-th of `blocks` equal parts of the rows, in the order of their source:
    /// for rows that are read once and do not fit into memory. Replace-one only.
    ///
    /// Its event is that of [`Sampling::OnePass`], whose cost counts on no random order: a unit that is
    /// exchanged stays in its block, and each unit is in exactly one. What suffers from an order that means
    /// something is the model, not the promise.
    InOrder {
        /// Steps in a pass.
        blocks: u64,
    },
}

impl Sampling {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Everyone => "none",
            Self::Poisson { .. } => "poisson",
            Self::FixedSize { .. } => "fixed-size",
            Self::OnePass { .. } => "one-pass",
            Self::InOrder { .. } => "in-order",
        }
    }

    /// What so many steps with this Gaussian noise are to an accountant, of so many units. The number of units
    /// matters for [`Sampling::FixedSize`] alone.
    pub fn gaussian_events(
        &self,
        noise_multiplier: NoiseMultiplier,
        steps: Steps,
        units: u64,
    ) -> Result<Vec<CountedEvent>> {
        let count = Steps::new(self.events(steps.get()))?;
        Ok(vec![CountedEvent::new(self.gaussian_event(noise_multiplier, units)?, count)])
    }

    /// The event of one step with Gaussian noise; of a whole pass for [`Sampling::OnePass`]
    /// and [`Sampling::InOrder`].
    pub(crate) fn gaussian_event(&self, noise_multiplier: NoiseMultiplier, units: u64) -> Result<Event> {
        Ok(match *self {
            Self::Everyone => Event::Gaussian { noise_multiplier },
            Self::Poisson { rate: sample_rate } => Event::PoissonGaussian { noise_multiplier, sample_rate },
            Self::FixedSize { size } => {
                // Rounded up, so that the accounted rate is never below the true one.
                let rate = (size as f64 / units as f64).next_up().min(1.0);
                Event::FixedSizeGaussian { noise_multiplier, sample_rate: SampleRate::new(rate)? }
            }
            Self::OnePass { blocks } | Self::InOrder { blocks } => {
                Event::OnePassGaussian { noise_multiplier, blocks }
            }
        })
    }

    /// How many events a program of `steps` steps consists of: every step, or every pass begun.
    pub(crate) fn events(&self, steps: u64) -> u64 {
        match *self {
            Self::OnePass { blocks } | Self::InOrder { blocks } => steps.div_ceil(blocks),
            _ => steps,
        }
    }

    /// Refuses what cannot be drawn, or not under this adjacency.
    pub(crate) fn check(&self, adjacency: Adjacency, units: u64) -> Result<()> {
        match *self {
            Self::FixedSize { .. } | Self::InOrder { .. } if adjacency == Adjacency::AddRemove => {
                Err(Error::SecretCount { sampling: self.name(), adjacency })
            }
            Self::FixedSize { size } if size == 0 || size > units => {
                Err(Error::invalid("batch-size", size, "from 1 to the number of private rows"))
            }
            Self::OnePass { blocks } | Self::InOrder { blocks } if !(1..1 << 32).contains(&blocks) => {
                Err(Error::invalid("blocks", blocks, "a whole number from 1 to 2^32 - 1"))
            }
            _ => Ok(()),
        }
    }
}

/// What one step draws from: everything that determines its units.
pub(crate) struct Draw<'a> {
    pub(crate) sampling: Sampling,
    pub(crate) adjacency: Adjacency,
    pub(crate) units: usize,
    pub(crate) key: &'a RunKey,
    pub(crate) assignment: &'a Assignment,
}

impl Draw<'_> {
    /// The units of a step. It depends on nothing but the run's key, the step and the number of units.
    pub(crate) fn select(&self, step: u64) -> Selection {
        match self.sampling {
            Sampling::Everyone => Selection::Everyone,
            Sampling::Poisson { rate } if rate.get() == 1.0 => Selection::Everyone,
            Sampling::Poisson { rate } => {
                // q < 1 has at most 53 significant bits: q·2^64 is exact, and below 2^64.
                let limit = (rate.get() * 2f64.powi(64)) as u64;
                Selection::Poisson(Poisson::new(self.key.clone(), step, limit, self.units))
            }
            Sampling::FixedSize { size } => self.fixed_size(size as usize, step),
            Sampling::OnePass { blocks } => self.one_pass(blocks, step),
            Sampling::InOrder { blocks } => {
                let bound =
                    |block: u64| (u128::from(block) * self.units as u128 / u128::from(blocks)) as usize;
                let block = step % blocks;
                Selection::InOrder(bound(block)..bound(block + 1))
            }
        }
    }

    /// Floyd's algorithm: for j from n−k on, add a uniform unit up to j, or j itself if that is taken.
    fn fixed_size(&self, size: usize, step: u64) -> Selection {
        let mut mask = Mask::new(self.units);
        let mut stream = self.key.stream(Purpose::Sampling, step, 0);
        for last in self.units - size..self.units {
            let unit = stream.below(last as u64 + 1) as usize;
            mask.set(if mask.get(unit) { last } else { unit });
        }
        mask.into_selection()
    }

    fn one_pass(&self, blocks: u64, step: u64) -> Selection {
        let (pass, block) = (step / blocks, (step % blocks) as u32);
        let mut kept = self.assignment.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.as_ref().is_none_or(|(known, _)| *known != pass) {
            *kept = Some((pass, self.assign(blocks as u32, pass)));
        }
        let (_, assigned) = kept.as_ref().expect("it was just made");
        let mut mask = Mask::new(self.units);
        for (unit, _) in assigned.iter().enumerate().filter(|&(_, &of)| of == block) {
            mask.set(unit);
        }
        mask.into_selection()
    }

    /// The block of every unit in a pass.
    fn assign(&self, blocks: u32, pass: u64) -> Vec<u32> {
        match self.adjacency {
            Adjacency::AddRemove => {
                let mut assigned = Vec::with_capacity(self.units);
                for (group, start) in (0..self.units).step_by(GROUP).enumerate() {
                    let mut stream = self.key.stream(Purpose::Sampling, pass, group as u64);
                    let units = start..(start + GROUP).min(self.units);
                    assigned.extend(units.map(|_| stream.below(u64::from(blocks)) as u32));
                }
                assigned
            }
            Adjacency::ReplaceOne => {
                // Equal parts of a random order (Fisher and Yates).
                let part = |i: usize| (i as u128 * u128::from(blocks) / self.units as u128) as u32;
                let mut assigned: Vec<u32> = (0..self.units).map(part).collect();
                let mut stream = self.key.stream(Purpose::Sampling, pass, 0);
                for i in (1..assigned.len()).rev() {
                    assigned.swap(i, stream.below(i as u64 + 1) as usize);
                }
                assigned
            }
        }
    }
}

/// The blocks of the last pass drawn, with its number: every step of a pass needs them. Four bytes a unit, so that
/// [`Sampling::InOrder`] is the one for rows that do not fit into memory.
pub(crate) type Assignment = Mutex<Option<(u64, Vec<u32>)>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::rng::Randomness;

    fn chosen(sampling: Sampling, adjacency: Adjacency, units: usize, step: u64) -> Vec<usize> {
        let key = Randomness::Seed(5).key(0).unwrap();
        let assignment = Assignment::default();
        let draw = Draw { sampling, adjacency, units, key: &key, assignment: &assignment };
        draw.select(step).within(0..units)
    }

    #[test]
    fn poisson_includes_each_unit_at_its_rate() {
        for rate in [1e-3, 0.018_518_518, 0.5, 0.75] {
            let sampling = Sampling::Poisson { rate: SampleRate::new(rate).unwrap() };
            let (mut total, mut first) = (0, 0);
            for step in 0..200 {
                let units = chosen(sampling, Adjacency::AddRemove, 10_000, step);
                total += units.len();
                first += usize::from(units.first() == Some(&0));
                assert!(units.windows(2).all(|pair| pair[0] < pair[1]));
            }
            let near = |found: usize, trials: f64| {
                (found as f64 - rate * trials).abs() <= 6.5 * (trials * rate * (1.0 - rate)).sqrt() + 1.0
            };
            assert!(near(total, 2e6), "{rate}: {total}");
            assert!(near(first, 200.0), "{rate}: {first}");
        }
    }

    /// The draws of a unit do not depend on how many follow it.
    #[test]
    fn poisson_draws_are_addressed_by_unit() {
        let sampling = Sampling::Poisson { rate: SampleRate::new(0.3).unwrap() };
        let long = chosen(sampling, Adjacency::AddRemove, 20_000, 4);
        let short = chosen(sampling, Adjacency::AddRemove, 8192, 4);
        assert!(long.starts_with(&short[..short.len() - 1]));
    }

    #[test]
    fn fixed_size_subsets_are_uniform() {
        let mut counts = [0u32; 20];
        let mut pair = 0;
        for step in 0..20_000 {
            let units = chosen(Sampling::FixedSize { size: 5 }, Adjacency::ReplaceOne, 20, step);
            assert_eq!(units.len(), 5);
            units.iter().for_each(|&unit| counts[unit] += 1);
            pair += u32::from(units.contains(&3) && units.contains(&17));
        }
        let near =
            |count: u32, p: f64| (f64::from(count) - 2e4 * p).abs() < 6.5 * (2e4 * p * (1.0 - p)).sqrt();
        assert!(counts.iter().all(|&c| near(c, 0.25)), "{counts:?}");
        assert!(near(pair, 5.0 * 4.0 / (20.0 * 19.0)), "{pair}");
    }

    #[test]
    fn a_pass_visits_every_unit_once() {
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            for (units, blocks) in [(10_000, 7), (5, 9), (64, 1)] {
                let sampling = Sampling::OnePass { blocks };
                let mut all: Vec<usize> =
                    (0..blocks).flat_map(|step| chosen(sampling, adjacency, units, step)).collect();
                all.sort_unstable();
                assert_eq!(all, (0..units).collect::<Vec<_>>());
                // The next pass is another.
                if units > 100 && blocks > 1 {
                    assert_ne!(
                        chosen(sampling, adjacency, units, 0),
                        chosen(sampling, adjacency, units, blocks)
                    );
                }
            }
        }
    }

    /// Parts of the order of the source, every pass alike.
    #[test]
    fn a_pass_in_order_is_cut_evenly() {
        for (units, blocks) in [(10_000, 7), (5, 9), (64, 1), (0, 3), (1 << 20, 1000)] {
            let sampling = Sampling::InOrder { blocks };
            let part = |step| chosen(sampling, Adjacency::ReplaceOne, units, step);
            let parts: Vec<Vec<usize>> = (0..blocks).map(part).collect();
            assert_eq!(parts.concat(), (0..units).collect::<Vec<_>>());
            let even = units / blocks as usize;
            assert!(parts.iter().all(|part| (even..=even + 1).contains(&part.len())));
            assert_eq!(part(blocks), parts[0]);
        }
    }

    /// In order costs what one pass costs.
    #[test]
    fn passes_have_one_event() {
        let noise = NoiseMultiplier::new(2.0).unwrap();
        for steps in [1, 7, 8, 20] {
            let events = |sampling: Sampling| {
                sampling.gaussian_events(noise, Steps::new(steps).unwrap(), 1000).unwrap()
            };
            assert_eq!(events(Sampling::InOrder { blocks: 7 }), events(Sampling::OnePass { blocks: 7 }));
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let fixed = Sampling::FixedSize { size: 5 };
        assert!(matches!(fixed.check(Adjacency::AddRemove, 10), Err(Error::SecretCount { .. })));
        assert!(matches!(fixed.check(Adjacency::ReplaceOne, 4), Err(Error::InvalidParameter { .. })));
        assert!(Sampling::OnePass { blocks: 0 }.check(Adjacency::ReplaceOne, 4).is_err());
        let in_order = |blocks| Sampling::InOrder { blocks };
        assert!(matches!(in_order(2).check(Adjacency::AddRemove, 10), Err(Error::SecretCount { .. })));
        assert!(in_order(0).check(Adjacency::ReplaceOne, 4).is_err());
        assert!(in_order(2).check(Adjacency::ReplaceOne, 4).is_ok());
    }
}
