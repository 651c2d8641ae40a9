//! The sum of clipped gradients of anything: whatever is no function of linear scores.

use super::clip::{Accumulator, Ball};
use super::clipped_sum::fits;
use super::sealed::{Question, Work};
use super::{Grid, L2};
use crate::Result;
use crate::data::{Block, CsrBlock, Number, Selection};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A row as a [`RowGradient`] sees it.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    /// All columns, the label last if there is one.
    pub values: &'a [f64],
}

/// A gradient of anything else: a function of the row alone, and of what the implementor holds, which must be
/// public or released. One that is not finite, or a panic, makes the row contribute nothing.
pub trait RowGradient: Sync {
    /// Coordinates of a gradient.
    fn dimension(&self) -> usize;

    /// Writes the gradient at a row; `gradient` holds zeros.
    fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]);
}

/// Σ clip(gradient(x_i)) over the units of a step, for any gradient of a row.
pub struct ClippedRowGradient<'l> {
    gradient: &'l dyn RowGradient,
    width: usize,
    clip_norm: f64,
    grid: Grid,
}

impl<'l> ClippedRowGradient<'l> {
    /// For rows of `width` columns.
    pub fn new(gradient: &'l dyn RowGradient, width: usize, clip_norm: f64) -> Result<Self> {
        let grid = Grid::new(clip_norm, gradient.dimension())?;
        Ok(Self { gradient, width, clip_norm, grid })
    }
}

impl Question for ClippedRowGradient<'_> {
    type Norm = L2;
    type Worker<'q>
        = RowGradients<'q>
    where
        Self: 'q;

    fn width(&self) -> usize {
        self.width
    }

    fn dimension(&self) -> usize {
        self.gradient.dimension()
    }

    fn grid(&self) -> Grid {
        self.grid
    }

    fn worker(&self) -> RowGradients<'_> {
        let dimension = self.gradient.dimension();
        RowGradients {
            query: self,
            ball: Ball::new(&vec![0.0; dimension], self.clip_norm, self.grid),
            sums: Accumulator::new::<L2>(dimension, self.grid),
            row: vec![0.0; self.width],
            gradient: vec![0.0; dimension],
        }
    }
}

/// Sums the gradients of one thread.
pub struct RowGradients<'q> {
    query: &'q ClippedRowGradient<'q>,
    ball: Ball<f64>,
    sums: Accumulator,
    row: Vec<f64>,
    gradient: Vec<f64>,
}

impl RowGradients<'_> {
    fn add_row(&mut self) {
        self.gradient.fill(0.0);
        let (view, query) = (RowView { values: &self.row }, self.query);
        let gradient = &mut self.gradient;
        if catch_unwind(AssertUnwindSafe(|| query.gradient.gradient_into(view, gradient))).is_ok() {
            self.sums.add_dense_plainly::<f64, L2>(&self.gradient, &[0], &self.ball);
        }
    }

    fn add_sparse<T: Number>(&mut self, block: &CsrBlock<'_, T>, chosen: &[usize]) {
        for &unit in chosen {
            let entries = block.offsets[unit]..block.offsets[unit + 1];
            let (Some(columns), Some(values)) =
                (block.columns.get(entries.clone()), block.values.get(entries))
            else {
                continue;
            };
            let is_row = columns.windows(2).all(|pair| pair[0] < pair[1])
                && columns.last().is_none_or(|&last| (last as usize) < self.query.width);
            if is_row {
                self.row.fill(0.0);
                columns.iter().zip(values).for_each(|(&j, x)| self.row[j as usize] = x.to_f64());
                self.add_row();
            }
        }
    }

    fn add_dense<T: Number>(&mut self, values: &[T], chosen: &[usize]) {
        let width = self.query.width;
        for &unit in chosen {
            let row = &values[unit * width..(unit + 1) * width];
            self.row.iter_mut().zip(row).for_each(|(to, x)| *to = x.to_f64());
            self.add_row();
        }
    }
}

impl Work for RowGradients<'_> {
    fn add(&mut self, block: Block<'_>, selection: &Selection, units: Range<usize>) {
        let (width, rows) = (self.query.width, units.len());
        let chosen = selection.within(units);
        match block {
            Block::DenseF32(block) if fits(&block, rows, width) => self.add_dense(block.values, &chosen),
            Block::DenseF64(block) if fits(&block, rows, width) => self.add_dense(block.values, &chosen),
            Block::CsrF32(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            Block::CsrF64(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            _ => {}
        }
    }

    fn into_sums(self) -> Vec<i64> {
        self.sums.into_sums()
    }
}
