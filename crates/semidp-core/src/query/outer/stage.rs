//! Rows that wait until there are enough of them to work on together.

use super::super::clip::{Accumulator, LANES};
use super::super::clipped_gradient::ClippedGradient;
use super::{Length, Loops, ROWS, Vectors};
use crate::data::DenseBlock;

/// At most so many rows, of at most so many numbers in all (but enough to add together): they should stay in the cache.
const MOST_ROWS: usize = 16;
const MOST_NUMBERS: usize = 1 << 16;

/// Copies of rows in whole lanes, whatever block they came from, and a query's weights in their precision.
///
/// A sparse sample has few rows of a block. Copied, they share the loads of weights and sums with rows of other blocks;
/// and a copy costs little, because a row must be read from far away in any case.
pub(in crate::query) struct Stage<T> {
    /// Features and zeros, in whole lanes.
    padded: usize,
    /// Of each output, padded.
    weights: Vec<T>,
    /// Room for some rows, and one row of zeros.
    rows: Vec<T>,
    capacity: usize,
    /// Of the rows at hand: label and length.
    known: Vec<(f64, Length)>,
    scores: Vec<f64>,
    residuals: Vec<f64>,
    coefficients: Vec<T>,
}

impl<T: Loops> Stage<T> {
    /// Without rows.
    pub(in crate::query) fn new(query: &ClippedGradient<'_>) -> Self {
        let padded = query.features.next_multiple_of(LANES);
        let capacity = (MOST_NUMBERS / padded).clamp(ROWS, MOST_ROWS);
        let mut weights = vec![T::default(); query.outputs * padded];
        for (to, w) in weights.chunks_exact_mut(padded).zip(query.weights()) {
            to.iter_mut().zip(w).for_each(|(to, w)| *to = T::of(*w));
        }
        Self {
            padded,
            weights,
            rows: vec![T::default(); (capacity + 1) * padded],
            capacity,
            known: Vec::with_capacity(capacity),
            scores: vec![0.0; capacity * query.outputs],
            residuals: vec![0.0; query.outputs],
            coefficients: vec![T::default(); capacity * query.outputs],
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
        let row = |unit: usize| &block.values[unit * block.width..(unit + 1) * block.width];
        for (place, &unit) in chosen.iter().enumerate() {
            let next = chosen.get(place + 1).map_or(&[][..], |&unit| row(unit));
            let (features, label) = row(unit).split_at(query.features);
            let at = self.known.len() * self.padded;
            let copy = &mut self.rows[at..at + self.padded];
            let square = T::copy(vectors, features, copy, next).to_f64();
            // A row without a length is overwritten by the next one.
            if let Some(length) = query.length(vectors, copy, square) {
                self.known.push((label[0].to_f64(), length));
            }
            if self.known.len() == self.capacity {
                self.settle(query, vectors, sums);
            }
        }
    }

    /// Adds the rows at hand.
    pub(in crate::query) fn settle(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        sums: &mut [Accumulator],
    ) {
        let outputs = query.outputs;
        self.find_scores(query, vectors);
        // Those that contribute.
        let mut kept = [0; MOST_ROWS];
        let mut count = 0;
        for (place, (label, length)) in self.known.drain(..).enumerate() {
            let of_row = place * outputs..(place + 1) * outputs;
            let (scores, coefficients) = (&self.scores[of_row.clone()], &mut self.coefficients[of_row]);
            if query.coefficients(scores, label, length, &mut self.residuals, coefficients) {
                kept[count] = place;
                count += 1;
            }
        }
        for places in kept[..count].chunks(ROWS) {
            self.add_rows(query, vectors, places, sums);
        }
    }

    fn find_scores(&mut self, query: &ClippedGradient<'_>, vectors: Vectors) {
        let (outputs, padded) = (query.outputs, self.padded);
        let row = |place: usize| &self.rows[place * padded..(place + 1) * padded];
        let of_output = |output: usize| &self.weights[output * padded..(output + 1) * padded];
        for first in (0..self.known.len()).step_by(2) {
            // An odd last row is its own partner.
            let places = [first, (first + 1).min(self.known.len() - 1)];
            let rows = places.map(row);
            let mut keep = |output: usize, scores: [T; 2]| {
                for (place, score) in places.iter().zip(scores) {
                    self.scores[place * outputs + output] = score.to_f64() + query.intercept(output);
                }
            };
            for output in (1..outputs).step_by(2) {
                let [a, b] = T::scores(vectors, rows, [of_output(output - 1), of_output(output)]);
                keep(output - 1, [a[0], b[0]]);
                keep(output, [a[1], b[1]]);
            }
            if outputs % 2 == 1 {
                let [[a], [b]] = T::scores(vectors, rows, [of_output(outputs - 1)]);
                keep(outputs - 1, [a, b]);
            }
        }
    }

    /// Adds a few rows, of which the integers are known to be short enough.
    fn add_rows(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        places: &[usize],
        sums: &mut [Accumulator],
    ) {
        let (outputs, padded) = (query.outputs, self.padded);
        // Missing rows are zeros.
        let place = |i: usize| places.get(i).copied().unwrap_or(self.capacity);
        let rows: [&[T]; ROWS] = std::array::from_fn(|i| &self.rows[place(i) * padded..][..padded]);
        let coefficient = |i: usize, output: usize| match places.get(i) {
            Some(place) => self.coefficients[place * outputs + output],
            None => T::default(),
        };
        for (number, sums) in sums.chunks_mut(2).enumerate() {
            let first = 2 * number;
            sums.iter_mut().for_each(|sums| sums.make_room(places.len() as u32));
            let most = sums[0].most;
            match sums {
                [a, b] => {
                    let of_row = |i| [coefficient(i, first), coefficient(i, first + 1)];
                    let sums = [&mut a.narrow[..], &mut b.narrow];
                    T::add_rows(vectors, rows, std::array::from_fn(of_row), sums, most);
                }
                [a] => {
                    let of_row = |i| [coefficient(i, first)];
                    T::add_rows(vectors, rows, std::array::from_fn(of_row), [&mut a.narrow], most);
                }
                _ => {}
            }
            if query.has_intercept {
                for (i, sums) in sums.iter_mut().enumerate() {
                    for place in places {
                        let a = self.coefficients[place * outputs + first + i];
                        sums.add_constant(query.features, a.to_f64());
                    }
                }
            }
        }
    }
}
