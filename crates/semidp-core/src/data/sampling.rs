//! Which units take part in a step. A sampling and its privacy event are one object: whoever draws
//! by it is accounted by it.

use crate::noise::rng::{Purpose, RunKey};
use crate::{Error, Result};
use semidp_accounting::{Adjacency, CountedEvent, Event, NoiseMultiplier, SampleRate, Steps};
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

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
}

impl Sampling {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Everyone => "none",
            Self::Poisson { .. } => "poisson",
            Self::FixedSize { .. } => "fixed-size",
            Self::OnePass { .. } => "one-pass",
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

    /// The event of one step with Gaussian noise; of a whole pass for [`Sampling::OnePass`].
    pub(crate) fn gaussian_event(&self, noise_multiplier: NoiseMultiplier, units: u64) -> Result<Event> {
        Ok(match *self {
            Self::Everyone => Event::Gaussian { noise_multiplier },
            Self::Poisson { rate: sample_rate } => Event::PoissonGaussian { noise_multiplier, sample_rate },
            Self::FixedSize { size } => {
                // Rounded up, so that the accounted rate is never below the true one.
                let rate = (size as f64 / units as f64).next_up().min(1.0);
                Event::FixedSizeGaussian { noise_multiplier, sample_rate: SampleRate::new(rate)? }
            }
            Self::OnePass { blocks } => Event::OnePassGaussian { noise_multiplier, blocks },
        })
    }

    /// How many events a program of `steps` steps consists of: every step, or every pass begun.
    pub(crate) fn events(&self, steps: u64) -> u64 {
        match *self {
            Self::OnePass { blocks } => steps.div_ceil(blocks),
            _ => steps,
        }
    }

    /// Refuses what cannot be drawn, or not under this adjacency.
    pub(crate) fn check(&self, adjacency: Adjacency, units: u64) -> Result<()> {
        match *self {
            Self::FixedSize { .. } if adjacency == Adjacency::AddRemove => {
                Err(Error::SecretCount { sampling: self.name(), adjacency })
            }
            Self::FixedSize { size } if size == 0 || size > units => {
                Err(Error::invalid("batch-size", size, "from 1 to the number of private rows"))
            }
            Self::OnePass { blocks } if !(1..1 << 32).contains(&blocks) => {
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

/// The units of one step. Public in name only: nobody outside can make one.
pub enum Selection {
    /// All units.
    Everyone,
    /// A bit for every unit.
    Some(Vec<u64>),
    /// Each on its own, drawn when they are asked for.
    Poisson(Poisson),
}

/// Units that share a stream.
const GROUP: usize = 1 << 12;

/// A bit for every unit of a group.
type GroupMask = [u64; GROUP / 64];

/// A Poisson sample, drawn group by group by whoever needs a group first: so threads share that work, too.
pub struct Poisson {
    key: RunKey,
    step: u64,
    limit: u64,
    groups: Vec<OnceLock<GroupMask>>,
}

impl Poisson {
    /// 64 units, or zeros beyond the last group. Of the last group, more units are drawn than there may be.
    fn word(&self, number: usize) -> u64 {
        let group = number / (GROUP / 64);
        let Some(mask) = self.groups.get(group) else { return 0 };
        mask.get_or_init(|| self.draw(group))[number % (GROUP / 64)]
    }

    /// Exact Bernoulli inclusion: a unit joins iff a uniform 64-bit fraction is below ⌊q·2^64⌋, so with
    /// probability at most q, and less than 2^{−64} below it. The fraction is compared from the top, 16
    /// bits first; the rest is drawn only on a tie.
    fn draw(&self, group: usize) -> GroupMask {
        let top = self.limit >> 48;
        let mut mask = [0; GROUP / 64];
        let mut stream = self.key.stream(Purpose::Sampling, self.step, group as u64);
        for quad in (0..GROUP).step_by(4) {
            let word = stream.word();
            if !any_lane_below(word, top + 1) {
                continue;
            }
            for unit in quad..quad + 4 {
                let bits = word >> (16 * (unit - quad)) & 0xffff;
                let fraction = if bits == top { bits << 48 | stream.word() >> 16 } else { bits << 48 };
                if fraction < self.limit {
                    mask[unit / 64] |= 1 << (unit % 64);
                }
            }
        }
        mask
    }
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
                let groups = (0..self.units.div_ceil(GROUP)).map(|_| OnceLock::new()).collect();
                Selection::Poisson(Poisson { key: self.key.clone(), step, limit, groups })
            }
            Sampling::FixedSize { size } => self.fixed_size(size as usize, step),
            Sampling::OnePass { blocks } => self.one_pass(blocks, step),
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
        Selection::Some(mask.bits)
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
        Selection::Some(mask.bits)
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

/// The blocks of the last pass drawn, with its number: every step of a pass needs them.
pub(crate) type Assignment = Mutex<Option<(u64, Vec<u32>)>>;

/// Whether any of the four 16-bit lanes of a word is below `bound`; may also say yes otherwise, if the bound is
/// large. For bounds up to 2^15 it is exact: a lane below the bound borrows into its top bit when the bound is
/// subtracted, and no lane at or above it does (a borrow from the lane to its right changes neither).
fn any_lane_below(word: u64, bound: u64) -> bool {
    const ONES: u64 = 0x0001_0001_0001_0001;
    bound > 1 << 15 || word.wrapping_sub(ONES * bound) & !word & (ONES << 15) != 0
}

struct Mask {
    bits: Vec<u64>,
}

impl Mask {
    fn new(units: usize) -> Self {
        Self { bits: vec![0; units.div_ceil(64)] }
    }

    fn set(&mut self, unit: usize) {
        self.bits[unit / 64] |= 1 << (unit % 64);
    }

    fn get(&self, unit: usize) -> bool {
        self.bits[unit / 64] >> (unit % 64) & 1 == 1
    }
}

impl Selection {
    /// These units of so many; numbers beyond are left out.
    pub(crate) fn of(chosen: &[usize], units: usize) -> Self {
        let mut mask = Mask::new(units);
        chosen.iter().filter(|unit| **unit < units).for_each(|unit| mask.set(*unit));
        Self::Some(mask.bits)
    }

    /// The chosen units of a range, counted from the range's start, in order.
    pub(crate) fn within(&self, range: Range<usize>) -> Vec<usize> {
        let bits = |number: usize| match self {
            Self::Everyone => u64::MAX,
            Self::Some(bits) => bits[number],
            Self::Poisson(sample) => sample.word(number),
        };
        if let Self::Everyone = self {
            return (0..range.len()).collect();
        }
        let mut chosen = Vec::new();
        let mut unit = range.start;
        while unit < range.end {
            // The chosen units of this word, from `unit` on.
            let mut word = bits(unit / 64) >> (unit % 64) << (unit % 64);
            let base = unit / 64 * 64;
            while word != 0 {
                chosen.push(base + word.trailing_zeros() as usize);
                word &= word - 1;
            }
            unit = base + 64;
        }
        // The last word may reach beyond the range.
        while chosen.pop_if(|last| *last >= range.end).is_some() {}
        chosen.iter_mut().for_each(|unit| *unit -= range.start);
        chosen
    }
}

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

    /// No lane below a bound is ever overlooked: that would be a unit left out.
    #[test]
    fn lanes_below_a_bound_are_seen() {
        let mut stream = Randomness::Seed(3).key(0).unwrap().stream(Purpose::Sampling, 0, 0);
        for bound in [1u64, 2, 3, 66, 1214, 0x7fff, 0x8000, 0x8001, 0xffff, 0x10000] {
            let mut overlooked = 0;
            for i in 0..20_000u64 {
                let mut word = stream.word();
                if i % 3 == 0 {
                    // Lanes at and around the bound.
                    word = (0..4).fold(0, |all, lane| {
                        all << 16 | (bound + (word >> (16 * lane)) % 5).wrapping_sub(2) & 0xffff
                    });
                }
                let is_below = (0..4).any(|lane| word >> (16 * lane) & 0xffff < bound);
                assert!(any_lane_below(word, bound) || !is_below, "{word:x} {bound}");
                overlooked += u32::from(any_lane_below(word, bound) && !is_below);
            }
            // Borrows from a lane to its left can only happen where the answer is yes already.
            assert!(bound > 1 << 15 || overlooked == 0, "{bound}: {overlooked}");
        }
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

    #[test]
    fn selections_are_cut_to_ranges() {
        let selection = Selection::Some(vec![1 | 1 << 5 | 1 << 63, 1 << 2]);
        let within = |range| selection.within(range);
        assert_eq!(within(0..128), [0, 5, 63, 66]);
        assert_eq!(within(5..64), [0, 58]);
        assert_eq!(within(6..63), [0usize; 0]);
        assert_eq!(within(64..67), [2]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let fixed = Sampling::FixedSize { size: 5 };
        assert!(matches!(fixed.check(Adjacency::AddRemove, 10), Err(Error::SecretCount { .. })));
        assert!(matches!(fixed.check(Adjacency::ReplaceOne, 4), Err(Error::InvalidParameter { .. })));
        assert!(Sampling::OnePass { blocks: 0 }.check(Adjacency::ReplaceOne, 4).is_err());
    }
}
