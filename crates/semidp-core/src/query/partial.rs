//! Partial sums: clipped, exact, mergeable, and still private.

use super::{Grid, Norm};
use crate::{Error, Result};
use std::fmt;
use std::marker::PhantomData;

/// Which run, step and query a partial sum belongs to, and which shards it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lineage {
    pub(crate) run: u64,
    pub(crate) step: u64,
    /// Numbers the queries of a run, so that two of one step are told apart.
    pub(crate) query: u64,
    pub(crate) shards: u32,
    /// A bit for each shard.
    pub(crate) covered: u64,
}

impl Lineage {
    pub(crate) fn is_complete(&self) -> bool {
        self.covered.count_ones() == self.shards
    }
}

/// A sum of bounded contributions: exact integers, not yet noised, hence private.
///
/// It can be merged with the other shards of its step and then noised, once:
/// both take it by value. It cannot be read, copied or printed.
/// ```compile_fail,E0616
/// fn peek(partial: semidp_core::Partial<semidp_core::L2>) -> Vec<i64> {
///     partial.sum
/// }
/// ```
/// ```compile_fail,E0308
/// fn copy(partial: &semidp_core::Partial<semidp_core::L2>) -> semidp_core::Partial<semidp_core::L2> {
///     partial.clone()
/// }
/// ```
pub struct Partial<N> {
    sum: Vec<i64>,
    grid: Grid,
    lineage: Lineage,
    norm: PhantomData<N>,
}

impl<N: Norm> Partial<N> {
    pub(crate) fn new(sum: Vec<i64>, grid: Grid, lineage: Lineage) -> Self {
        Self { sum, grid, lineage, norm: PhantomData }
    }

    /// The sum over both sets of shards. Exact, so the order of merging makes no difference.
    pub fn merge(mut self, other: Self) -> Result<Self> {
        let refuse = |reason| Err(Error::Unmergeable { reason });
        let (mine, others) = (self.lineage, other.lineage);
        if (mine.run, mine.step, mine.query, mine.shards)
            != (others.run, others.step, others.query, others.shards)
        {
            return refuse("they are of different queries, steps or runs");
        }
        if mine.covered & others.covered != 0 {
            return refuse("they share a shard");
        }
        // Wrapping is a function of the sums: harmless, and out of reach of real data.
        for (sum, more) in self.sum.iter_mut().zip(other.sum) {
            *sum = sum.wrapping_add(more);
        }
        self.lineage.covered |= others.covered;
        Ok(self)
    }

    /// Opens a complete sum, for noise.
    pub(crate) fn into_parts(self) -> Result<(Vec<i64>, Grid, Lineage)> {
        if !self.lineage.is_complete() {
            return Err(Error::Incomplete {
                found: self.lineage.covered.count_ones(),
                expected: self.lineage.shards,
            });
        }
        Ok((self.sum, self.grid, self.lineage))
    }

    /// The exact integers, for tests of the kernel itself.
    #[cfg(test)]
    pub(crate) fn sum(&self) -> &[i64] {
        &self.sum
    }
}

impl<N> fmt::Debug for Partial<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<private partial sum>")
    }
}
