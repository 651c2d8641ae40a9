//! Rows that wait until there are enough of them to work on together.

use super::super::clip::{Accumulator, LANES};
use super::super::clipped_gradient::ClippedGradient;
use super::{Ahead, Length, Loops, ROWS, SCORE_LANES, Vectors};
use crate::data::DenseBlock;
use std::ops::Range;

/// Features from which on a length is worth the eight bytes that it takes to remember.
const LONG_ROW: usize = 48;

/// Columns that meet all outputs before the next ones do.
const PART: usize = 1024;

/// Copies of rows in whole lanes, whatever block they came from, and a query's weights in their precision.
///
/// A sparse sample has few rows of a block. Copied, they share the loads of weights and sums with rows of other blocks;
/// and a copy costs little, because a row must be read from far away in any case.
pub(in crate::query) struct Stage<T> {
    /// Features and zeros, in whole lanes.
    padded: usize,
    /// Of each output, padded.
    weights: Vec<T>,
    /// Room for a few rows; zeros where there is none.
    rows: Vec<T>,
    /// Of the rows at hand: label and length.
    known: Vec<(f64, Length)>,
    /// Of the scores: two outputs, all rows, then the next two outputs.
    lanes: Vec<[T; SCORE_LANES]>,
    scores: Vec<f64>,
    residuals: Vec<f64>,
    coefficients: Vec<T>,
}

impl<T: Loops> Stage<T> {
    /// Without rows.
    pub(in crate::query) fn new(query: &ClippedGradient<'_>) -> Self {
        let padded = query.features.next_multiple_of(LANES);
        let mut weights = vec![T::default(); query.outputs * padded];
        for (to, w) in weights.chunks_exact_mut(padded).zip(query.weights()) {
            to.iter_mut().zip(w).for_each(|(to, w)| *to = T::of(*w));
        }
        Self {
            padded,
            weights,
            rows: vec![T::default(); ROWS * padded],
            known: Vec::with_capacity(ROWS),
            lanes: vec![[T::default(); SCORE_LANES]; ROWS * query.outputs],
            scores: vec![0.0; ROWS * query.outputs],
            residuals: vec![0.0; query.outputs],
            coefficients: vec![T::default(); ROWS * query.outputs],
        }
    }

    /// Takes the chosen rows of a block in, and adds them whenever there are enough.
    pub(in crate::query) fn add_dense(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        block: &DenseBlock<'_, T>,
        chosen: &[usize],
        sums: &mut [Accumulator],
    ) {
        if chosen.is_empty() {
            return;
        }
        let is_long = query.features >= LONG_ROW;
        let remembered = block.lengths.filter(|_| is_long).map(|lengths| {
            lengths.get(query.has_intercept, || {
                let rows = block.values.chunks_exact(block.width);
                rows.map(|row| self.take_in(query, vectors, &row[..query.features], &[])).collect()
            })
        });
        // About as many as there are loops for each row: one for its length unless that is known, and for each part of
        // its columns and two outputs half a one, because scores and sums are of a few rows.
        let parts = self.padded.div_ceil(PART);
        let of_length = usize::from(remembered.is_none());
        let shares = of_length + (query.outputs.div_ceil(2) * parts * 2).div_ceil(ROWS);
        let mut ahead = Ahead::new(block.values, block.width, chosen, shares);
        for (place, &unit) in chosen.iter().enumerate() {
            ahead.reach(place);
            let row = &block.values[unit * block.width..(unit + 1) * block.width];
            let (features, label) = row.split_at(query.features);
            let length = match remembered.map(|lengths| lengths[unit]) {
                Some(Some(length)) => {
                    let (numbers, padding) = self.room().split_at_mut(features.len());
                    numbers.copy_from_slice(features);
                    padding.fill(T::default());
                    Some(length)
                }
                Some(None) => None,
                None => self.take_in(query, vectors, features, ahead.share()),
            };
            // A row without a length is overwritten by the next one.
            if let Some(length) = length {
                self.known.push((label[0].to_f64(), length));
            }
            if self.known.len() == ROWS {
                self.settle(query, vectors, sums, &mut ahead);
            }
        }
    }

    /// Where the next row goes.
    fn room(&mut self) -> &mut [T] {
        let at = self.known.len() * self.padded;
        &mut self.rows[at..at + self.padded]
    }

    /// Copies a row to where the next one goes, and finds its length.
    fn take_in(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        features: &[T],
        ahead: &[T],
    ) -> Option<Length> {
        let copy = self.room();
        let square = T::copy(vectors, features, copy).to_f64();
        query.length(vectors, copy, square, ahead)
    }

    /// Adds the rows at hand.
    pub(in crate::query) fn settle(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        sums: &mut [Accumulator],
        ahead: &mut Ahead<'_, T>,
    ) {
        if self.known.is_empty() {
            return;
        }
        let outputs = query.outputs;
        self.find_scores(query, vectors, ahead);
        // A row that contributes nothing becomes zeros, as those are that are missing.
        self.coefficients.fill(T::default());
        for place in 0..ROWS {
            let of_row = place * outputs..(place + 1) * outputs;
            let (scores, coefficients) = (&self.scores[of_row.clone()], &mut self.coefficients[of_row]);
            let contributes = self.known.get(place).is_some_and(|&(label, length)| {
                query.coefficients(scores, label, length, &mut self.residuals, coefficients)
            });
            if !contributes {
                coefficients.fill(T::default());
                self.rows[place * self.padded..(place + 1) * self.padded].fill(T::default());
            }
        }
        self.known.clear();
        self.add_rows(query, vectors, sums, ahead);
    }

    /// Columns in parts whose numbers stay in the nearest cache while they meet all outputs.
    fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let padded = self.padded;
        (0..padded).step_by(PART).map(move |start| start..(start + PART).min(padded))
    }

    fn find_scores(&mut self, query: &ClippedGradient<'_>, vectors: Vectors, ahead: &mut Ahead<'_, T>) {
        let (outputs, padded) = (query.outputs, self.padded);
        self.lanes.fill([T::default(); SCORE_LANES]);
        for part in self.parts() {
            let rows: [&[T]; ROWS] = std::array::from_fn(|i| &self.rows[i * padded..][part.clone()]);
            let of_output = |output: usize| &self.weights[output * padded..][part.clone()];
            for (number, lanes) in self.lanes.chunks_mut(2 * ROWS).enumerate() {
                let (first, ahead) = (2 * number, ahead.share());
                if let Some(lanes) = lanes.as_chunks_mut::<2>().0.as_chunks_mut::<ROWS>().0.first_mut() {
                    let weights = [of_output(first), of_output(first + 1)];
                    T::add_scores(vectors, rows, weights, lanes, ahead);
                } else if let Some(lanes) = lanes.as_chunks_mut::<1>().0.as_chunks_mut::<ROWS>().0.first_mut()
                {
                    T::add_scores(vectors, rows, [of_output(first)], lanes, ahead);
                }
            }
        }
        for place in 0..self.known.len() {
            for output in 0..outputs {
                // Two outputs have their rows' lanes together, and the last one of an odd number its own.
                let (pair, width) = (output / 2 * 2, 2.min(outputs - output / 2 * 2));
                let lanes = self.lanes[pair * ROWS + place * width + output - pair];
                self.scores[place * outputs + output] = sum(lanes).to_f64() + query.intercept(output);
            }
        }
    }

    /// Adds the rows, of which the integers are known to be short enough.
    fn add_rows(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        sums: &mut [Accumulator],
        ahead: &mut Ahead<'_, T>,
    ) {
        let (outputs, padded) = (query.outputs, self.padded);
        let coefficient = |i: usize, output: usize| self.coefficients[i * outputs + output];
        sums.iter_mut().for_each(|sums| sums.make_room(ROWS as u32));
        for part in self.parts() {
            let rows: [&[T]; ROWS] = std::array::from_fn(|i| &self.rows[i * padded..][part.clone()]);
            for (number, sums) in sums.chunks_mut(2).enumerate() {
                let (first, ahead, most) = (2 * number, ahead.share(), sums[0].most);
                match sums {
                    [a, b] => {
                        let of_row = |i| [coefficient(i, first), coefficient(i, first + 1)];
                        let sums = [&mut a.narrow[part.clone()], &mut b.narrow[part.clone()]];
                        T::add_rows(vectors, rows, std::array::from_fn(of_row), sums, most, ahead);
                    }
                    [a] => {
                        let of_row = |i| [coefficient(i, first)];
                        let sums = [&mut a.narrow[part.clone()]];
                        T::add_rows(vectors, rows, std::array::from_fn(of_row), sums, most, ahead);
                    }
                    _ => {}
                }
            }
        }
        if query.has_intercept {
            for (output, sums) in sums.iter_mut().enumerate() {
                (0..ROWS).for_each(|i| sums.add_constant(query.features, coefficient(i, output).to_f64()));
            }
        }
    }
}

/// The sum of lanes, halving their number each time.
fn sum<T: Loops>(lanes: [T; SCORE_LANES]) -> T {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}
