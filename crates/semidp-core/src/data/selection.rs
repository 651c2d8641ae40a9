//! The units of one step: what a sampling drew, and which of it lies in a range.

use crate::noise::rng::{Purpose, RunKey};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The units of one step. Public in name only: nobody outside can make one.
pub enum Selection {
    /// All units.
    Everyone,
    /// Those of a range.
    InOrder(Range<usize>),
    /// A bit for every unit.
    Some(Vec<u64>),
    /// Each on its own, drawn when they are asked for.
    Poisson(Poisson),
}

/// Units that share a stream.
pub(super) const GROUP: usize = 1 << 12;

/// Words of a group's mask.
const WORDS: usize = GROUP / 64;

/// A bit for every unit of a group.
type GroupMask = [u64; WORDS];

/// Of more units than this, only the groups that were asked for last are kept: the memory of a step is the same
/// however many units there are.
const MOST_KEPT: usize = 1 << 25;

/// Groups kept of a sample that is too large to be kept. Threads are in neighbouring blocks.
const FEW: usize = 256;

/// A Poisson sample, drawn group by group by whoever needs a group first: so threads share that work, too.
pub struct Poisson {
    key: RunKey,
    step: u64,
    limit: u64,
    groups: Groups,
}

/// What was drawn. A group that is drawn again is the same: it depends on its address alone.
enum Groups {
    All(Vec<OnceLock<GroupMask>>),
    Few(Vec<Mutex<Option<(usize, GroupMask)>>>),
}

impl Poisson {
    /// A unit joins if its fraction is below `limit`·2^{−64}.
    pub(super) fn new(key: RunKey, step: u64, limit: u64, units: usize) -> Self {
        Self::keeping(key, step, limit, units, MOST_KEPT)
    }

    fn keeping(key: RunKey, step: u64, limit: u64, units: usize, most: usize) -> Self {
        let groups = match units <= most {
            true => Groups::All((0..units.div_ceil(GROUP)).map(|_| OnceLock::new()).collect()),
            false => Groups::Few((0..FEW).map(|_| Mutex::new(None)).collect()),
        };
        Self { key, step, limit, groups }
    }

    /// 64 units. Of the last group, more units are drawn than there may be.
    fn word(&self, number: usize) -> u64 {
        let (group, place) = (number / WORDS, number % WORDS);
        match &self.groups {
            Groups::All(groups) => {
                groups.get(group).map_or(0, |mask| mask.get_or_init(|| self.draw(group))[place])
            }
            Groups::Few(slots) => {
                let mut slot = slots[group % FEW].lock().unwrap_or_else(PoisonError::into_inner);
                match &*slot {
                    Some((kept, mask)) if *kept == group => mask[place],
                    _ => slot.insert((group, self.draw(group))).1[place],
                }
            }
        }
    }

    /// Exact Bernoulli inclusion: a unit joins iff a uniform 64-bit fraction is below ⌊q·2^64⌋, so with
    /// probability at most q, and less than 2^{−64} below it. The fraction is compared from the top, 16
    /// bits first; the rest is drawn only on a tie.
    fn draw(&self, group: usize) -> GroupMask {
        let top = self.limit >> 48;
        let mut mask = [0; WORDS];
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

/// Whether any of the four 16-bit lanes of a word is below `bound`; may also say yes otherwise, if the bound is
/// large. For bounds up to 2^15 it is exact: a lane below the bound borrows into its top bit when the bound is
/// subtracted, and no lane at or above it does (a borrow from the lane to its right changes neither).
fn any_lane_below(word: u64, bound: u64) -> bool {
    const ONES: u64 = 0x0001_0001_0001_0001;
    bound > 1 << 15 || word.wrapping_sub(ONES * bound) & !word & (ONES << 15) != 0
}

/// A bit for every unit, while units are chosen.
pub(super) struct Mask {
    bits: Vec<u64>,
}

impl Mask {
    pub(super) fn new(units: usize) -> Self {
        Self { bits: vec![0; units.div_ceil(64)] }
    }

    pub(super) fn set(&mut self, unit: usize) {
        self.bits[unit / 64] |= 1 << (unit % 64);
    }

    pub(super) fn get(&self, unit: usize) -> bool {
        self.bits[unit / 64] >> (unit % 64) & 1 == 1
    }

    pub(super) fn into_selection(self) -> Selection {
        Selection::Some(self.bits)
    }
}

impl Selection {
    /// These units of so many; numbers beyond are left out.
    pub(crate) fn of(chosen: &[usize], units: usize) -> Self {
        let mut mask = Mask::new(units);
        chosen.iter().filter(|unit| **unit < units).for_each(|unit| mask.set(*unit));
        mask.into_selection()
    }

    /// 64 units of a selection that is no range.
    fn word(&self, number: usize) -> u64 {
        match self {
            Self::Everyone | Self::InOrder(_) => u64::MAX,
            Self::Some(bits) => bits[number],
            Self::Poisson(sample) => sample.word(number),
        }
    }

    /// The chosen part of a range, if the selection is a range itself.
    fn overlap(&self, range: &Range<usize>) -> Option<Range<usize>> {
        match self {
            Self::Everyone => Some(range.clone()),
            Self::InOrder(units) => {
                let start = units.start.clamp(range.start, range.end);
                Some(start..units.end.clamp(start, range.end))
            }
            _ => None,
        }
    }

    /// Whether any unit of a range is chosen. A sample is drawn no further than to the first of them.
    pub(crate) fn has_any(&self, range: &Range<usize>) -> bool {
        if let Some(overlap) = self.overlap(range) {
            return !overlap.is_empty();
        }
        let (first, end) = (range.start / 64, range.end.div_ceil(64));
        !range.is_empty()
            && (first..end).any(|number| {
                let after_start = u64::MAX << (range.start.max(64 * number) - 64 * number);
                let before_end = u64::MAX >> (64 * (number + 1)).saturating_sub(range.end);
                self.word(number) & after_start & before_end != 0
            })
    }

    /// The chosen units of a range, counted from the range's start, in order.
    pub(crate) fn within(&self, range: Range<usize>) -> Vec<usize> {
        if let Some(overlap) = self.overlap(&range) {
            return (overlap.start - range.start..overlap.end - range.start).collect();
        }
        let mut chosen = Vec::new();
        let mut unit = range.start;
        while unit < range.end {
            // The chosen units of this word, from `unit` on.
            let mut word = self.word(unit / 64) >> (unit % 64) << (unit % 64);
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
    fn selections_are_cut_to_ranges() {
        let selection = Selection::Some(vec![1 | 1 << 5 | 1 << 63, 1 << 2]);
        let within = |range| selection.within(range);
        assert_eq!(within(0..128), [0, 5, 63, 66]);
        assert_eq!(within(5..64), [0, 58]);
        assert_eq!(within(6..63), [0usize; 0]);
        assert_eq!(within(64..67), [2]);
        let in_order = Selection::InOrder(5..8);
        assert_eq!(in_order.within(0..100), [5, 6, 7]);
        assert_eq!(in_order.within(6..7), [0]);
        assert_eq!(in_order.within(7..9), [0]);
        assert_eq!((in_order.within(0..5), in_order.within(8..9)), (vec![], vec![]));
        assert_eq!(Selection::InOrder(5..5).within(0..9), [0usize; 0]);
    }

    fn sample(rate: f64, units: usize, most: usize) -> Selection {
        let key = Randomness::Seed(8).key(0).unwrap();
        let limit = (rate * 2f64.powi(64)) as u64;
        Selection::Poisson(Poisson::keeping(key, 3, limit, units, most))
    }

    /// A range is skipped if and only if nobody in it is chosen.
    #[test]
    fn ranges_without_units_are_known() {
        let units = 20_000;
        let selections = [
            Selection::Everyone,
            Selection::InOrder(130..4200),
            Selection::InOrder(7..7),
            Selection::of(&[0, 63, 64, 5000, 19_999], units),
            sample(0.01, units, units),
            sample(0.01, units, 0),
        ];
        let mut starts = Randomness::Seed(2).key(0).unwrap().stream(Purpose::Sampling, 0, 0);
        for selection in &selections {
            for round in 0..3000 {
                let start = starts.below(units as u64) as usize;
                let length = starts.below(if round % 2 == 0 { 5 } else { 300 }) as usize;
                let range = start..(start + length).min(units);
                assert_eq!(
                    selection.has_any(&range),
                    !selection.within(range.clone()).is_empty(),
                    "{range:?}"
                );
            }
            assert!(!selection.has_any(&(5..5)));
        }
    }

    /// What is kept of a sample makes no difference to it.
    #[test]
    fn large_samples_are_drawn_again() {
        let units = 3 * FEW * GROUP;
        let (kept, drawn) = (sample(0.001, units, units), sample(0.001, units, units - 1));
        assert_eq!(kept.within(0..units), drawn.within(0..units));
        for range in [5 * GROUP..6 * GROUP + 9, 0..70, units - 5000..units] {
            assert_eq!(kept.within(range.clone()), drawn.within(range));
        }
    }
}
