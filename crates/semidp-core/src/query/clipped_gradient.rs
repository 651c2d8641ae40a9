//! The sum of clipped gradients of a loss of linear scores.
//!
//! The gradient of such a loss is the residual times the row, so no gradient of a row is ever stored, and
//! its norm is a product of two. (Any other gradient has a door of its own, [`super::ClippedRowGradient`].) The
//! kernel clips, and checks that product in integers before it adds anything ([`super::outer`]): a loss may be wrong in
//! any way, and the bound on contributions still holds.

use super::clip::{Accumulator, SHY};
use super::clipped_sum::fits;
use super::outer::{Ahead, Length, Loops, Scale, Stage, Vectors};
use super::sealed::{Question, Work};
use super::{Grid, L2};
use crate::data::{Block, BlockSource, CsrBlock, Number, Public, Selection};
use crate::{Error, Result};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A loss of linear scores and a label.
///
/// It must be a function of its arguments alone. A residual that is not finite or not written, or a panic, makes the
/// row contribute nothing.
pub trait ScoreLoss: Sync {
    /// Scores of a row: 1, or the number of classes.
    fn outputs(&self) -> usize;

    /// The derivative of the loss in each score.
    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]);
}

/// Σ clip(∇ℓ(w; x_i, y_i)) over the units of a step, for a loss of linear scores.
///
/// *Definition*: the last column of a row is its label y, the others are its features x. Output c has the
/// weights w_c, one a feature and then one for the intercept if there is one; all outputs follow each
/// other. A unit's gradient is residual_c·(x, 1), shrunk to norm C over all outputs if it is longer, and
/// truncated towards zero on the grid.
///
/// *Guarantee*: as for [`super::ClippedSum`], contributions have norm at most C exactly.
///
/// *Cost*: a row is read once from memory, and then from the cache: once for its length, and once for its scores and its
/// sums for each two outputs.
pub struct ClippedGradient<'l> {
    loss: &'l dyn ScoreLoss,
    weights: Public<Vec<f64>>,
    pub(super) features: usize,
    pub(super) outputs: usize,
    pub(super) has_intercept: bool,
    clip_norm: f64,
    grid: Grid,
}

impl<'l> ClippedGradient<'l> {
    /// The gradient at these weights, which come from public data and earlier releases.
    pub fn new(
        loss: &'l dyn ScoreLoss,
        weights: Public<Vec<f64>>,
        features: usize,
        has_intercept: bool,
        clip_norm: f64,
    ) -> Result<Self> {
        let outputs = loss.outputs();
        if features == 0 || outputs == 0 {
            return Err(Error::invalid("features", features, "at least one feature and one output"));
        }
        let expected = outputs * (features + usize::from(has_intercept));
        if weights.len() != expected {
            let found = weights.len();
            return Err(Error::Shape { what: "the model", of: "weights", found, expected });
        }
        let grid = Grid::new(clip_norm, weights.len())?;
        Ok(Self { loss, weights, features, outputs, has_intercept, clip_norm, grid })
    }

    /// The grid of the contributions.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The same sum over some public rows, by number: clipped and truncated as private ones are, so that both
    /// estimate the same thing. No noise, because nothing is protected.
    pub fn sum_public<S: BlockSource>(&self, rows: &Public<S>, chosen: &[usize]) -> Result<Vec<f64>> {
        if rows.width() != self.width() {
            let (found, expected) = (rows.width(), self.width());
            return Err(Error::Shape { what: "the public table", of: "columns", found, expected });
        }
        let selection = Selection::of(chosen, rows.units());
        let mut worker = self.worker();
        for block in 0..rows.blocks() {
            let mut left = rows.units_of(block);
            rows.visit(block, &mut |piece| {
                let units = left.start..(left.start + piece.units()).min(left.end);
                left.start = units.end;
                worker.add(piece, &selection, units);
            })?;
        }
        Ok(worker.into_sums().into_iter().map(|k| k as f64 * self.grid.step()).collect())
    }

    /// Weights of one output.
    fn stride(&self) -> usize {
        self.features + usize::from(self.has_intercept)
    }
}

impl Question for ClippedGradient<'_> {
    type Norm = L2;
    type Worker<'q>
        = Gradients<'q>
    where
        Self: 'q;

    fn width(&self) -> usize {
        self.features + 1
    }

    fn dimension(&self) -> usize {
        self.weights.len()
    }

    fn grid(&self) -> Grid {
        self.grid
    }

    fn worker(&self) -> Gradients<'_> {
        Gradients {
            query: self,
            vectors: Vectors::detect(),
            single: None,
            double: None,
            sums: (0..self.outputs).map(|_| Accumulator::new::<L2>(self.stride(), self.grid)).collect(),
            scores: vec![0.0; self.outputs],
            residuals: vec![0.0; self.outputs],
            coefficients: vec![0.0; self.outputs],
        }
    }
}

impl ClippedGradient<'_> {
    /// The weights of each output's features.
    pub(super) fn weights(&self) -> impl Iterator<Item = &[f64]> {
        self.weights.chunks_exact(self.stride()).map(|weights| &weights[..self.features])
    }

    pub(super) fn intercept(&self, output: usize) -> f64 {
        if self.has_intercept { self.weights[(output + 1) * self.stride() - 1] } else { 0.0 }
    }

    /// How long a row is whose squares sum to about `square`; `None` if it contributes nothing.
    pub(super) fn length<T: Loops>(
        &self,
        vectors: Vectors,
        row: &[T],
        square: f64,
        ahead: &[T],
    ) -> Option<Length> {
        let scale = Scale::of(square, self.has_intercept)?;
        let square = T::square_of_steps(vectors, row, scale.factor(), ahead);
        Length::new(scale, square, row.len(), self.has_intercept)
    }

    /// Turns a row's scores into the coefficients that make grid steps of its features, and says whether the row
    /// contributes: not if its loss panics or anything is not finite, and never more than the clip norm.
    pub(super) fn coefficients<T: Number>(
        &self,
        scores: &[f64],
        label: f64,
        length: Length,
        residuals: &mut [f64],
        coefficients: &mut [T],
    ) -> bool {
        // What a loss does not write must not be what it wrote for another row.
        residuals.fill(f64::NAN);
        // A loss that panics must not tell so: nor must the row.
        let told = catch_unwind(AssertUnwindSafe(|| self.loss.residuals(scores, label, &mut *residuals)));
        let norm = residuals.iter().map(|r| r * r).sum::<f64>().sqrt() * length.norm();
        if let Err(payload) = told {
            // It may panic again when it is dropped.
            std::mem::forget(payload);
            return false;
        }
        if !norm.is_finite() {
            return false;
        }
        // So much less that what was rounded up in integers, a part in 2^30 a coefficient, still fits.
        let most = self.clip_norm * (SHY - (self.outputs as f64).sqrt() / (1 << 29) as f64);
        let shrink = if norm <= most { 1.0 } else { most / norm };
        let factor = shrink / self.grid.step();
        coefficients.iter_mut().zip(residuals).for_each(|(a, r)| *a = T::of(*r * factor));
        length.admits(coefficients, self.grid.clip_steps())
    }
}

/// Sums the gradients of one thread.
pub struct Gradients<'q> {
    query: &'q ClippedGradient<'q>,
    vectors: Vectors,
    /// Rows not yet added, in either precision; made when the first one comes.
    single: Option<Stage<f32>>,
    double: Option<Stage<f64>>,
    /// One for each output.
    sums: Vec<Accumulator>,
    /// Of the sparse row at hand; every one overwrites them.
    scores: Vec<f64>,
    residuals: Vec<f64>,
    coefficients: Vec<f64>,
}

impl Work for Gradients<'_> {
    fn add(&mut self, block: Block<'_>, selection: &Selection, units: Range<usize>) {
        let (width, rows) = (self.query.width(), units.len());
        let chosen = selection.within(units);
        match block {
            Block::DenseF32(block) if fits(&block, rows, width) => {
                let stage = self.single.get_or_insert_with(|| Stage::new(self.query));
                stage.add_dense(self.query, self.vectors, &block, &chosen, &mut self.sums);
            }
            Block::DenseF64(block) if fits(&block, rows, width) => {
                let stage = self.double.get_or_insert_with(|| Stage::new(self.query));
                stage.add_dense(self.query, self.vectors, &block, &chosen, &mut self.sums);
            }
            Block::CsrF32(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            Block::CsrF64(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            _ => {}
        }
    }

    fn into_sums(mut self) -> Vec<i64> {
        if let Some(stage) = &mut self.single {
            stage.settle(self.query, self.vectors, &mut self.sums, &mut Ahead::nothing());
        }
        if let Some(stage) = &mut self.double {
            stage.settle(self.query, self.vectors, &mut self.sums, &mut Ahead::nothing());
        }
        let mut all = Vec::with_capacity(self.query.weights.len());
        self.sums.into_iter().for_each(|sums| all.append(&mut sums.into_sums()));
        all
    }
}

impl Gradients<'_> {
    fn add_sparse<T: Loops>(&mut self, block: &CsrBlock<'_, T>, chosen: &[usize]) {
        let features = self.query.features;
        for &unit in chosen {
            let entries = block.offsets[unit]..block.offsets[unit + 1];
            let (Some(columns), Some(values)) =
                (block.columns.get(entries.clone()), block.values.get(entries))
            else {
                continue;
            };
            // The label is the last entry, if it is not zero.
            let (columns, values, label) = match columns.split_last() {
                Some((&last, columns)) if last as usize == features => {
                    (columns, &values[..columns.len()], values[columns.len()].to_f64())
                }
                _ => (columns, values, 0.0),
            };
            self.add_sparse_row(columns, values, label);
        }
    }

    fn add_sparse_row<T: Loops>(&mut self, columns: &[u32], values: &[T], label: f64) {
        let query = self.query;
        // Twice the same column would count its square wrongly.
        let is_row = columns.len() == values.len()
            && columns.windows(2).all(|pair| pair[0] < pair[1])
            && columns.last().is_none_or(|&last| (last as usize) < query.features);
        if !is_row {
            return;
        }
        let square = values.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>();
        // Entries are not in whole lanes.
        let Some(length) = query.length(Vectors::NONE, values, square, &[]) else { return };
        for (output, (score, weights)) in self.scores.iter_mut().zip(query.weights()).enumerate() {
            let products = columns.iter().zip(values).map(|(&j, x)| weights[j as usize] * x.to_f64());
            *score = products.sum::<f64>() + query.intercept(output);
        }
        if query.coefficients(&self.scores, label, length, &mut self.residuals, &mut self.coefficients) {
            for (sums, &a) in self.sums.iter_mut().zip(&self.coefficients) {
                sums.make_room(1);
                sums.add_scaled_sparse::<T, L2>(columns, values, a);
                if query.has_intercept {
                    sums.add_constant(query.features, a);
                }
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
pub(super) mod tests_only {
    use super::*;
    use crate::data::DenseBlock;

    /// The sums by vector instructions and by plain code.
    pub fn both_ways(query: &ClippedGradient<'_>, values: &[f32], rows: usize) -> (Vec<i64>, Vec<i64>) {
        let run = |vectors: Vectors| {
            let mut worker = Gradients { vectors, ..query.worker() };
            let block = DenseBlock::new(values, query.width());
            worker.add(Block::DenseF32(block), &Selection::Everyone, 0..rows);
            worker.into_sums()
        };
        (run(Vectors::detect()), run(Vectors::NONE))
    }
}
