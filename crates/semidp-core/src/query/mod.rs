//! Questions to private data: each turns units into an integer [`Partial`] sum of bounded
//! contributions, which only noise can release.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod clip;
mod clipped_gradient;
mod clipped_moments;
mod clipped_row_gradient;
mod clipped_sum;
mod grid;
mod outer;
mod partial;

pub use clipped_gradient::{ClippedGradient, ScoreLoss};
pub use clipped_moments::ClippedMoments;
pub use clipped_row_gradient::{ClippedRowGradient, RowGradient, RowView};
pub use clipped_sum::ClippedSum;
pub use grid::{CLIP_NORMS, Grid};
pub(crate) use outer::RowLengths;
pub(crate) use partial::Lineage;
pub use partial::Partial;

/// A question: a sum of bounded contributions, one a unit.
///
/// Only this crate has questions: each answers for the bound on its contributions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a question of the kernel",
    note = "the questions are `ClippedSum`, `ClippedMoments`, `ClippedGradient` and `ClippedRowGradient`"
)]
pub trait Query: sealed::Question {}

impl<Q: sealed::Question> Query for Q {}

/// The norm in which contributions are bounded.
pub trait Norm: sealed::NormLaw {}

/// The sum of absolute values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct L1;

/// The Euclidean norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct L2;

impl Norm for L1 {}
impl Norm for L2 {}

pub(crate) mod sealed {
    use super::{Grid, L1, L2, Norm};
    use crate::data::{Block, Number, Selection};
    use crate::replay::SumNorm;
    use std::ops::Range;

    /// The part of a question that only the kernel calls.
    pub trait Question: Sync {
        /// The norm of its contributions.
        type Norm: Norm;
        /// Sums the contributions of one thread.
        type Worker<'q>: Work
        where
            Self: 'q;
        /// Columns of the rows it reads.
        fn width(&self) -> usize;
        /// Coordinates of a contribution.
        fn dimension(&self) -> usize;
        /// Where contributions lie.
        fn grid(&self) -> Grid;
        /// A worker with nothing summed yet.
        fn worker(&self) -> Self::Worker<'_>;
    }

    /// A thread's sums.
    pub trait Work {
        /// Adds the chosen units of a block, which are `units` of the whole. A block of another shape than
        /// its source promised contributes nothing.
        fn add(&mut self, block: Block<'_>, selection: &Selection, units: Range<usize>);
        /// The exact sums.
        fn into_sums(self) -> Vec<i64>;
    }

    /// A norm as the kernel computes it: Σ term(x_j), to be compared with term(bound).
    pub trait NormLaw: Copy + Send + Sync + std::fmt::Debug + 'static {
        /// Its name for a replay audit.
        const NORM: SumNorm;
        /// What a float contributes.
        fn term<T: Number>(x: T) -> T;
        /// The norm that a sum of terms stands for.
        fn norm(terms: f64) -> f64;
        /// What an integer contributes; the sums of terms of at most 2^31 coordinates fit.
        fn integer_term(k: i32) -> u64;
        /// The bound for the sum of integer terms.
        fn limit(clip_steps: u64) -> u64;
    }

    impl NormLaw for L1 {
        const NORM: SumNorm = SumNorm::L1;
        #[inline(always)]
        fn term<T: Number>(x: T) -> T {
            x.absolute()
        }
        fn norm(terms: f64) -> f64 {
            terms
        }
        #[inline(always)]
        fn integer_term(k: i32) -> u64 {
            u64::from(k.unsigned_abs())
        }
        fn limit(clip_steps: u64) -> u64 {
            clip_steps
        }
    }

    impl NormLaw for L2 {
        const NORM: SumNorm = SumNorm::L2;
        #[inline(always)]
        fn term<T: Number>(x: T) -> T {
            x * x
        }
        fn norm(terms: f64) -> f64 {
            terms.sqrt()
        }
        #[inline(always)]
        fn integer_term(k: i32) -> u64 {
            (i64::from(k) * i64::from(k)) as u64
        }
        fn limit(clip_steps: u64) -> u64 {
            clip_steps * clip_steps
        }
    }
}

#[cfg(test)]
mod tests;
