//! Questions to private data: each turns units into an integer [`Partial`] sum of bounded
//! contributions, which only noise can release.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod clip;
mod clipped_sum;
mod grid;
mod partial;

pub use clipped_sum::ClippedSum;
pub use grid::Grid;
pub(crate) use partial::Lineage;
pub use partial::Partial;

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
    use super::{L1, L2};
    use crate::data::Number;

    /// A norm as the kernel computes it: Σ term(x_j), to be compared with term(bound).
    pub trait NormLaw: Copy + Send + Sync + std::fmt::Debug + 'static {
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
