//! The sum of rows clipped to a ball about a public centre.

use super::clip::{Accumulator, Ball};
use super::sealed::{Question, Work};
use super::{Grid, L1, L2, Norm};
use crate::data::{Block, CsrBlock, DenseBlock, Number, Public, Selection};
use crate::{Error, Result};
use std::any::TypeId;
use std::marker::PhantomData;
use std::ops::Range;

/// Σ clip(x_i − centre) over the units of a step, each clipped to norm `clip_norm`.
///
/// *Definition*: a unit's contribution is its row minus the centre, shrunk to norm C if it is longer,
/// truncated towards zero on a grid of step g ≤ 2^{−16}·C/√d. A row with an entry that is not a finite
/// number contributes nothing.
///
/// *Guarantee*: contributions have norm at most g·⌊C/g⌋ ≤ C exactly, so one unit changes the sum by at
/// most that under add/remove and by twice that under replace-one.
///
/// *Utility*: the centre is subtracted for free, because it is public: the better it is, the smaller a
/// clip norm does. Add `n·centre` back to estimate the sum of rows.
#[derive(Debug, Clone)]
pub struct ClippedSum<N> {
    centre: Public<Vec<f64>>,
    clip_norm: f64,
    grid: Grid,
    norm: PhantomData<N>,
}

impl ClippedSum<L2> {
    /// Clipped in Euclidean norm, for Gaussian or K-norm noise.
    pub fn l2(centre: Public<Vec<f64>>, clip_norm: f64) -> Result<Self> {
        Self::new(centre, clip_norm)
    }
}

impl ClippedSum<L1> {
    /// Clipped in ℓ1 norm, for Laplace noise.
    pub fn l1(centre: Public<Vec<f64>>, clip_norm: f64) -> Result<Self> {
        Self::new(centre, clip_norm)
    }
}

impl<N: Norm> ClippedSum<N> {
    fn new(centre: Public<Vec<f64>>, clip_norm: f64) -> Result<Self> {
        // Representable in single precision too.
        if centre.iter().any(|c| c.is_nan() || c.abs() > 1e30) {
            return Err(Error::invalid("centre", "another", "numbers of at most 1e30 in absolute value"));
        }
        let grid = Grid::new(clip_norm, centre.len())?;
        Ok(Self { centre, clip_norm, grid, norm: PhantomData })
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.centre.len()
    }

    /// The grid of the contributions.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The clip norm C.
    pub fn clip_norm(&self) -> f64 {
        self.clip_norm
    }
}

impl<N: Norm> Question for ClippedSum<N> {
    type Norm = N;
    type Worker<'q> = Worker<N>;

    fn width(&self) -> usize {
        self.centre.len()
    }

    fn dimension(&self) -> usize {
        self.centre.len()
    }

    fn grid(&self) -> Grid {
        self.grid
    }

    fn worker(&self) -> Worker<N> {
        Worker {
            single: Ball::new(&self.centre, self.clip_norm, self.grid),
            double: Ball::new(&self.centre, self.clip_norm, self.grid),
            sums: Accumulator::new::<N>(self.centre.len(), self.grid),
            norm: PhantomData,
        }
    }
}

/// Sums the contributions of one thread.
pub struct Worker<N> {
    single: Ball<f32>,
    double: Ball<f64>,
    sums: Accumulator,
    norm: PhantomData<N>,
}

impl<N: Norm> Work for Worker<N> {
    fn add(&mut self, block: Block<'_>, selection: &Selection, units: Range<usize>) {
        let (width, rows) = (self.single.width(), units.len());
        let chosen = selection.within(units);
        match block {
            Block::DenseF32(block) if fits(&block, rows, width) => {
                add_single::<N>(&mut self.sums, block.values, &chosen, &self.single);
            }
            Block::DenseF64(block) if fits(&block, rows, width) => {
                self.sums.add_dense_plainly::<f64, N>(block.values, &chosen, &self.double);
            }
            Block::CsrF32(block) if block.offsets.len() == rows + 1 => {
                add_sparse::<f32, N>(&mut self.sums, &block, &chosen, &self.single);
            }
            Block::CsrF64(block) if block.offsets.len() == rows + 1 => {
                add_sparse::<f64, N>(&mut self.sums, &block, &chosen, &self.double);
            }
            _ => {}
        }
    }

    fn into_sums(self) -> Vec<i64> {
        self.sums.into_sums()
    }
}

pub(super) fn fits<T>(block: &DenseBlock<'_, T>, rows: usize, width: usize) -> bool {
    block.width == width && block.values.len() == rows * width
}

/// Dense rows in single precision, with vector instructions where the processor has them.
fn add_single<N: Norm>(sums: &mut Accumulator, values: &[f32], chosen: &[usize], ball: &Ball<f32>) {
    #[cfg(target_arch = "x86_64")]
    if TypeId::of::<N>() == TypeId::of::<L2>() && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the function needs AVX2, which this processor has; it has no other precondition.
        #[expect(unsafe_code, reason = "calling code compiled for a processor feature")]
        unsafe {
            return sums.add_dense_avx2(values, chosen, ball);
        }
    }
    sums.add_dense_plainly::<f32, N>(values, chosen, ball);
}

fn add_sparse<T: Number, N: Norm>(
    sums: &mut Accumulator,
    block: &CsrBlock<'_, T>,
    chosen: &[usize],
    ball: &Ball<T>,
) {
    for &unit in chosen {
        let entries = block.offsets[unit]..block.offsets[unit + 1];
        let (Some(columns), Some(row)) = (block.columns.get(entries.clone()), block.values.get(entries))
        else {
            continue;
        };
        if ball.at_origin {
            sums.add_sparse::<T, N>(columns, row, ball);
        } else {
            sums.add_sparse_about_centre::<T, N>(columns, row, ball);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::rng::{Purpose, Randomness};

    /// The code compiled for vector instructions and the plain code give the same bits.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn vector_code_has_a_scalar_twin() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let mut stream = Randomness::Seed(9).key(0).unwrap().stream(Purpose::Noise, 0, 0);
        for width in [1usize, 5, 16, 33, 100, 2000] {
            let rows = 50;
            // Any bit pattern is a number for this purpose.
            let values: Vec<f32> = (0..rows * width)
                .map(|i| match i % 3 {
                    0 => f32::from_bits(stream.word() as u32),
                    _ => stream.word() as f32 / u64::MAX as f32 - 0.3,
                })
                .collect();
            let query = ClippedSum::l2(Public(vec![0.1; width]), 1.0).unwrap();
            let all: Vec<usize> = (0..rows).collect();
            let run = |vector: bool| {
                let mut worker = query.worker();
                let (sums, ball) = (&mut worker.sums, &worker.single);
                if vector {
                    // SAFETY: checked above.
                    #[expect(unsafe_code, reason = "calling code compiled for a processor feature")]
                    unsafe {
                        sums.add_dense_avx2(&values, &all, ball);
                    }
                } else {
                    sums.add_dense_plainly::<f32, L2>(&values, &all, ball);
                }
                worker.into_sums()
            };
            assert_eq!(run(true), run(false), "{width}");
        }
    }
}
