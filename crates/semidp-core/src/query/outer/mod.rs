//! Loops over rows for contributions that are outer products of coefficients and a row.
//!
//! They see rows that were copied into whole groups of lanes, a few at a time: whatever is loaded serves several
//! rows or outputs. A score is a function of its row and its weights, and a row's integers are a function of the
//! row and its coefficients: which rows are at hand together makes no difference to the bits.

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod bound;
mod plain;
mod stage;

use crate::data::Number;
pub(super) use ahead::Ahead;
use bound::MOST_STEPS;
pub(crate) use bound::RowLengths;
pub(super) use bound::{Length, Scale};
pub(super) use stage::Stage;

/// Rows that are worked on together.
pub(super) const ROWS: usize = 4;

/// A score is summed in so many lanes: of a few rows and two outputs they fill half of the vector registers.
const SCORE_LANES: usize = 8;

/// Whether this processor has the vector instructions of the loops here: only a look at it can say so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vectors(bool);

impl Vectors {
    /// Looks at the processor.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        let found = std::arch::is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let found = false;
        Self(found)
    }

    /// Plain loops.
    pub(super) const NONE: Self = Self(false);
}

/// The loops, in either precision. `ahead` are numbers of rows that will come next: a sample's rows lie apart in memory,
/// and nothing else would fetch them in time.
pub(super) trait Loops: Number {
    /// Copies a row into whole lanes, with zeros behind it, and returns about its sum of squares.
    fn copy(_: Vectors, row: &[Self], to: &mut [Self]) -> Self {
        plain::copy(row, to)
    }

    /// Σ trunc(x_j·scale)², each integer at most [`MOST_STEPS`] in absolute value; saturates.
    fn square_of_steps(_: Vectors, row: &[Self], scale: Self, _ahead: &[Self]) -> u64 {
        plain::square_of_steps(row, scale)
    }

    /// Adds x_j·w_j of a few rows and the weights of some outputs to the lanes of their scores.
    fn add_scores<const OUTPUTS: usize>(
        _: Vectors,
        rows: [&[Self]; ROWS],
        weights: [&[Self]; OUTPUTS],
        lanes: &mut [[[Self; SCORE_LANES]; OUTPUTS]; ROWS],
        _ahead: &[Self],
    ) {
        plain::add_scores(rows, weights, lanes);
    }

    /// Adds trunc(a·x_j) of a few rows to the sums of some outputs. The caller knows that no integer is larger than
    /// `most`, and that no sum overflows.
    fn add_rows<const OUTPUTS: usize>(
        _: Vectors,
        rows: [&[Self]; ROWS],
        coefficients: [[Self; OUTPUTS]; ROWS],
        sums: [&mut [i32]; OUTPUTS],
        most: f64,
        _ahead: &[Self],
    ) {
        plain::add_rows(rows, coefficients, sums, Self::of(most));
    }
}

impl Loops for f64 {}

#[cfg(not(target_arch = "x86_64"))]
impl Loops for f32 {}

// SAFETY, of every call below: it needs AVX2, which the processor was looked at for, and nothing else.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "calling code compiled for a processor feature")]
impl Loops for f32 {
    fn copy(vectors: Vectors, row: &[f32], to: &mut [f32]) -> f32 {
        if vectors.0 { unsafe { avx2::copy(row, to) } } else { plain::copy(row, to) }
    }

    fn square_of_steps(vectors: Vectors, row: &[f32], scale: f32, ahead: &[f32]) -> u64 {
        if vectors.0 {
            unsafe { avx2::square_of_steps(row, scale, ahead) }
        } else {
            plain::square_of_steps(row, scale)
        }
    }

    fn add_scores<const OUTPUTS: usize>(
        vectors: Vectors,
        rows: [&[f32]; ROWS],
        weights: [&[f32]; OUTPUTS],
        lanes: &mut [[[f32; SCORE_LANES]; OUTPUTS]; ROWS],
        ahead: &[f32],
    ) {
        if vectors.0 {
            unsafe { avx2::add_scores(rows, weights, lanes, ahead) }
        } else {
            plain::add_scores(rows, weights, lanes);
        }
    }

    fn add_rows<const OUTPUTS: usize>(
        vectors: Vectors,
        rows: [&[f32]; ROWS],
        coefficients: [[f32; OUTPUTS]; ROWS],
        sums: [&mut [i32]; OUTPUTS],
        most: f64,
        ahead: &[f32],
    ) {
        if vectors.0 {
            unsafe { avx2::add_rows(rows, coefficients, sums, ahead) }
        } else {
            plain::add_rows(rows, coefficients, sums, most as f32);
        }
    }
}
