//! The sum of clipped gradients of a loss of linear scores.
//!
//! The gradient of such a loss is the residual times the row, so no gradient of a row is ever stored, and
//! its norm is a product of two. (Any other gradient has a door of its own, [`super::ClippedRowGradient`].) The
//! kernel clips, truncates and checks in integers: a loss may be wrong in any way, and the bound on
//! contributions still holds.

use super::clip::{AT_ONCE, Accumulator, LANES, SHIER, SHY, dot};
use super::clipped_sum::fits;
use super::sealed::{Question, Work};
use super::{Grid, L2};
use crate::data::{Block, BlockSource, CsrBlock, Number, Public, Selection};
use crate::{Error, Result};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A loss of linear scores and a label.
///
/// It must be a function of its arguments alone. A residual that is not finite, or a panic, makes the
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
/// *Cost*: a row is read once from memory, and three times from the cache.
pub struct ClippedGradient<'l> {
    loss: &'l dyn ScoreLoss,
    weights: Public<Vec<f64>>,
    features: usize,
    outputs: usize,
    has_intercept: bool,
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
        let padded = self.features.next_multiple_of(LANES);
        let mut single = vec![0.0; self.outputs * padded];
        for (to, w) in
            single.chunks_exact_mut(padded.max(1)).zip(self.weights.chunks_exact(self.stride().max(1)))
        {
            to.iter_mut().zip(&w[..self.features]).for_each(|(to, w)| *to = *w as f32);
        }
        Gradients {
            query: self,
            padded,
            single,
            double: Vec::new(),
            sums: (0..self.outputs).map(|_| Accumulator::new::<L2>(self.stride(), self.grid)).collect(),
            zeros: (vec![0.0; padded], Vec::new()),
            scores: vec![0.0; self.outputs],
            residuals: vec![0.0; AT_ONCE * self.outputs],
        }
    }
}

/// Sums the gradients of one thread.
pub struct Gradients<'q> {
    query: &'q ClippedGradient<'q>,
    /// Features and zeros, in whole lanes.
    padded: usize,
    single: Vec<f32>,
    /// Empty until a block in double precision comes.
    double: Vec<f64>,
    /// One for each output.
    sums: Vec<Accumulator>,
    /// A centre at the origin, in either precision.
    zeros: (Vec<f32>, Vec<f64>),
    scores: Vec<f64>,
    /// Of a few rows; then the factors that turn features into grid steps.
    residuals: Vec<f64>,
}

impl Work for Gradients<'_> {
    fn add(&mut self, block: Block<'_>, selection: &Selection, units: Range<usize>) {
        let (width, rows) = (self.query.width(), units.len());
        let chosen = selection.within(units);
        match block {
            Block::DenseF32(block) if fits(&block, rows, width) => self.add_single(block.values, &chosen),
            Block::DenseF64(block) if fits(&block, rows, width) => {
                self.fill_double();
                let (weights, zeros) = (std::mem::take(&mut self.double), std::mem::take(&mut self.zeros.1));
                let add_pair =
                    |sums: &mut Accumulator, rows: [&[f64]; 2], zeros: &[f64], factors: [f64; 2]| {
                        [0, 1].map(|i| sums.add_scaled::<f64, L2>(rows[i], zeros, factors[i]))
                    };
                self.add_dense::<f64>(block.values, &chosen, (&weights, &zeros), dot, both, add_pair);
                (self.double, self.zeros.1) = (weights, zeros);
            }
            Block::CsrF32(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            Block::CsrF64(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            _ => {}
        }
    }

    fn into_sums(self) -> Vec<i64> {
        self.sums.into_iter().flat_map(Accumulator::into_sums).collect()
    }
}

impl Gradients<'_> {
    /// Single precision, with vector instructions where the processor has them.
    fn add_single(&mut self, values: &[f32], chosen: &[usize]) {
        let (weights, zeros) = (std::mem::take(&mut self.single), std::mem::take(&mut self.zeros.0));
        #[cfg(target_arch = "x86_64")]
        let has_vectors = std::arch::is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let has_vectors = false;
        if has_vectors {
            // SAFETY: the function needs AVX2, which this processor has; it has no other precondition.
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calling code compiled for a processor feature")]
            unsafe {
                self.add_dense_avx2(values, chosen, (&weights, &zeros));
            }
        } else {
            self.add_dense_plainly(values, chosen, (&weights, &zeros));
        }
        (self.single, self.zeros.0) = (weights, zeros);
    }

    fn add_dense_plainly(&mut self, values: &[f32], chosen: &[usize], weights: (&[f32], &[f32])) {
        self.add_dense::<f32>(values, chosen, weights, dot, both, |sums, rows, zeros, factors| {
            [0, 1].map(|i| sums.add_scaled::<f32, L2>(rows[i], zeros, factors[i]))
        });
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn add_dense_avx2(&mut self, values: &[f32], chosen: &[usize], weights: (&[f32], &[f32])) {
        use super::avx2;
        self.add_dense::<f32>(
            values,
            chosen,
            weights,
            |row, weights| avx2::dot(row, weights),
            |row, weights, next| avx2::dot_and_square(row, weights, next),
            |sums, rows, zeros, factors| {
                let (most, segment) = (sums.most as f32, sums.segment);
                avx2::add_pair(rows, zeros, &mut sums.narrow, factors, most, segment)
            },
        );
    }

    /// Adds the gradients of the chosen rows. Scores and factors of a few rows come first; then rows are added
    /// in pairs, output by output.
    #[inline(always)]
    fn add_dense<T: Number>(
        &mut self,
        values: &[T],
        chosen: &[usize],
        (weights, zeros): (&[T], &[T]),
        dot: impl Fn(&[T], &[T]) -> T,
        dot_and_square: impl Fn(&[T], &[T], &[T]) -> [T; 2],
        add_pair: impl Fn(&mut Accumulator, [&[T]; 2], &[T], [T; 2]) -> [u64; 2],
    ) {
        let (features, outputs) = (self.query.features, self.query.outputs);
        let row = |unit: usize| &values[unit * (features + 1)..unit * (features + 1) + features];
        let whole = features / LANES * LANES;
        for (number, batch) in chosen.chunks(AT_ONCE).enumerate() {
            for (place, &unit) in batch.iter().enumerate() {
                let (x, label) = (row(unit), values[unit * (features + 1) + features].to_f64());
                let next = chosen.get(number * AT_ONCE + place + 1).map_or(&[][..], |&unit| row(unit));
                let of_output = |output: usize| &weights[output * self.padded..(output + 1) * self.padded];
                // The first score and the squared norm in one go, because a row is slow to arrive.
                let [score, lanes] = dot_and_square(x, of_output(0), next);
                let rest = x[whole..].iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>();
                let square = lanes.to_f64() + rest;
                self.scores[0] = score.to_f64() + self.intercept(0);
                for output in 1..outputs {
                    self.scores[output] = dot(x, of_output(output)).to_f64() + self.intercept(output);
                }
                self.find_factors(place, label, square);
            }
            for (pair, units) in batch.chunks(2).enumerate() {
                // An odd last row is paired with zeros.
                let partner = units.get(1).map_or(&zeros[..features], |&unit| row(unit));
                let rows = [row(units[0]), partner];
                let at = |i: usize, output: usize| match i < units.len() {
                    true => self.residuals[(2 * pair + i) * outputs + output],
                    false => 0.0,
                };
                let factors: Vec<[f64; 2]> = (0..outputs).map(|c| [at(0, c), at(1, c)]).collect();
                let mut found = [0u64; 2];
                for (sums, factors) in self.sums.iter_mut().zip(&factors) {
                    sums.make_room(2);
                    let terms = add_pair(sums, rows, zeros, factors.map(T::of));
                    for i in 0..2 {
                        found[i] = found[i].saturating_add(terms[i]);
                        if self.query.has_intercept {
                            found[i] =
                                found[i].saturating_add(sums.add_constant(features, factors[i], false));
                        }
                    }
                }
                for i in 0..units.len() {
                    if found[i] > self.sums[0].limit {
                        let factors: Vec<f64> = factors.iter().map(|pair| pair[i]).collect();
                        self.add_again(rows[i], zeros, &factors, found[i]);
                    }
                }
            }
        }
    }

    fn fill_double(&mut self) {
        if self.double.is_empty() {
            let features = self.query.features;
            self.double = vec![0.0; self.query.outputs * self.padded];
            self.zeros.1 = vec![0.0; self.padded];
            let outputs = self.query.weights.chunks_exact(self.query.stride());
            for (to, w) in self.double.chunks_exact_mut(self.padded).zip(outputs) {
                to[..features].copy_from_slice(&w[..features]);
            }
        }
    }

    fn intercept(&self, output: usize) -> f64 {
        let stride = self.query.stride();
        if self.query.has_intercept { self.query.weights[(output + 1) * stride - 1] } else { 0.0 }
    }

    /// Turns the scores of the row at `place` into the factors that make grid steps of its features; zeros if
    /// anything is not finite.
    #[inline(always)]
    fn find_factors(&mut self, place: usize, label: f64, square: f64) {
        let outputs = self.query.outputs;
        let residuals = &mut self.residuals[place * outputs..(place + 1) * outputs];
        let loss = self.query.loss;
        let scores = &self.scores;
        // A loss that panics must not tell so: nor must the row.
        let told = catch_unwind(AssertUnwindSafe(|| loss.residuals(scores, label, &mut *residuals)));
        let own = if self.query.has_intercept { 1.0 } else { 0.0 };
        let norm = (residuals.iter().map(|r| r * r).sum::<f64>() * (square + own)).sqrt();
        if told.is_err() || !norm.is_finite() {
            residuals.fill(0.0);
            return;
        }
        let shrink = if norm <= self.query.clip_norm { 1.0 } else { self.query.clip_norm / norm * SHY };
        let factor = shrink / self.query.grid.step();
        residuals.iter_mut().for_each(|r| *r *= factor);
    }

    /// Takes back a row's integers that were too long, which is exact, and tries once more.
    #[cold]
    #[inline(never)]
    fn add_again<T: Number>(&mut self, row: &[T], zeros: &[T], factors: &[f64], found: u64) {
        let features = self.query.features;
        let has_intercept = self.query.has_intercept;
        let retract = |sums: &mut [Accumulator], factors: &[f64]| {
            for (sums, &factor) in sums.iter_mut().zip(factors) {
                sums.retract(row, zeros, T::of(factor));
                if has_intercept {
                    sums.add_constant(features, factor, true);
                }
            }
        };
        retract(&mut self.sums, factors);
        let smaller = self.query.grid.clip_steps() as f64 / (found as f64).sqrt() * SHIER;
        let factors: Vec<f64> = factors.iter().map(|factor| factor * smaller).collect();
        let mut total = 0u64;
        for (sums, &factor) in self.sums.iter_mut().zip(&factors) {
            total = total.saturating_add(sums.add_scaled::<T, L2>(row, zeros, T::of(factor)));
            if has_intercept {
                total = total.saturating_add(sums.add_constant(features, factor, false));
            }
        }
        if total > self.sums[0].limit {
            retract(&mut self.sums, &factors);
        }
    }

    fn add_sparse<T: Number>(&mut self, block: &CsrBlock<'_, T>, chosen: &[usize]) {
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

    fn add_sparse_row<T: Number>(&mut self, columns: &[u32], values: &[T], label: f64) {
        let features = self.query.features;
        let is_row = columns.len() == values.len()
            && columns.windows(2).all(|pair| pair[0] < pair[1])
            && columns.last().is_none_or(|&last| (last as usize) < features);
        if !is_row {
            return;
        }
        let stride = self.query.stride();
        for output in 0..self.query.outputs {
            let weights = &self.query.weights[output * stride..];
            let score =
                columns.iter().zip(values).map(|(&j, x)| weights[j as usize] * x.to_f64()).sum::<f64>();
            self.scores[output] = score + self.intercept(output);
        }
        let square = values.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>();
        self.find_factors(0, label, square);
        let mut factors: Vec<f64> = self.residuals[..self.query.outputs].to_vec();
        self.sums.iter_mut().for_each(|sums| sums.make_room(1));
        // A first attempt and, if its integers are too long, a second one.
        for attempt in 0..2 {
            let mut total = 0u64;
            for (sums, &factor) in self.sums.iter_mut().zip(&factors) {
                total = total.saturating_add(sums.add_scaled_sparse::<T, L2>(columns, values, factor));
                if self.query.has_intercept {
                    total = total.saturating_add(sums.add_constant(features, factor, false));
                }
            }
            if total <= self.sums[0].limit {
                return;
            }
            for (sums, &factor) in self.sums.iter_mut().zip(&factors) {
                sums.retract_sparse(columns, values, factor);
                if self.query.has_intercept {
                    sums.add_constant(features, factor, true);
                }
            }
            if attempt == 0 {
                let smaller = self.query.grid.clip_steps() as f64 / (total as f64).sqrt() * SHIER;
                factors.iter_mut().for_each(|factor| *factor *= smaller);
            }
        }
    }
}

/// A row times weights, and its whole lanes times themselves.
#[inline(always)]
fn both<T: Number>(row: &[T], weights: &[T], _next: &[T]) -> [T; 2] {
    let lanes = &row[..row.len() / LANES * LANES];
    [dot(row, weights), dot(lanes, lanes)]
}

#[cfg(all(test, target_arch = "x86_64"))]
pub(super) mod tests_only {
    use super::*;

    /// The sums by vector instructions and by plain code.
    pub fn both_ways(query: &ClippedGradient<'_>, values: &[f32], rows: usize) -> (Vec<i64>, Vec<i64>) {
        let all: Vec<usize> = (0..rows).collect();
        let run = |vector: bool| {
            let mut worker = query.worker();
            let (weights, zeros) = (std::mem::take(&mut worker.single), std::mem::take(&mut worker.zeros.0));
            if vector {
                // SAFETY: the caller checks the processor.
                #[expect(unsafe_code, reason = "calling code compiled for a processor feature")]
                unsafe {
                    worker.add_dense_avx2(values, &all, (&weights, &zeros));
                }
            } else {
                worker.add_dense_plainly(values, &all, (&weights, &zeros));
            }
            worker.into_sums()
        };
        (run(true), run(false))
    }
}
