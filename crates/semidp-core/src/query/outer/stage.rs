//! Rows that wait until there are enough of them to work on together.

use super::super::clip::{Accumulator, LANES};
use super::super::clipped_gradient::ClippedGradient;
use super::{Ahead, Length, Loops, ROWS, Vectors};
use crate::data::DenseBlock;

/// Copies of rows in whole lanes, whatever block they came from, and a query's weights in their precision.
///
/// A sparse sample has few rows of a block. Copied, they share the loads of weights and sums with rows of other blocks;
/// and a copy costs little, because a row must be read from far away in any case.
pub(in crate::query) struct Stage<T> {
    /// Features and zeros, in whole lanes.
    padded: usize,
    /// Of each output, padded.
    weights: Vec<T>,
    /// Room for a few rows, and one row of zeros.
    rows: Vec<T>,
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
        let mut weights = vec![T::default(); query.outputs * padded];
        for (to, w) in weights.chunks_exact_mut(padded).zip(query.weights()) {
            to.iter_mut().zip(w).for_each(|(to, w)| *to = T::of(*w));
        }
        Self {
            padded,
            weights,
            rows: vec![T::default(); (ROWS + 1) * padded],
            known: Vec::with_capacity(ROWS),
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
        // As many as there are loops over a few rows: one of the steps of each row, one of scores for each two rows and two
        // outputs, and two of sums for each two outputs.
        let shares = 1 + query.outputs.div_ceil(2);
        let mut ahead = Ahead::new(block.values, block.width, chosen, shares);
        for (place, &unit) in chosen.iter().enumerate() {
            ahead.reach(place);
            let row = &block.values[unit * block.width..(unit + 1) * block.width];
            let (features, label) = row.split_at(query.features);
            let at = self.known.len() * self.padded;
            let copy = &mut self.rows[at..at + self.padded];
            let square = T::copy(vectors, features, copy).to_f64();
            // A row without a length is overwritten by the next one.
            if let Some(length) = query.length(vectors, copy, square, ahead.share()) {
                self.known.push((label[0].to_f64(), length));
            }
            if self.known.len() == ROWS {
                self.settle(query, vectors, sums, &mut ahead);
            }
        }
    }

    /// Adds the rows at hand.
    pub(in crate::query) fn settle(
        &mut self,
        query: &ClippedGradient<'_>,
        vectors: Vectors,
        sums: &mut [Accumulator],
        ahead: &mut Ahead<'_, T>,
    ) {
        let outputs = query.outputs;
        self.find_scores(query, vectors, ahead);
        // Those that contribute.
        let mut kept = [0; ROWS];
        let mut count = 0;
        for (place, (label, length)) in self.known.drain(..).enumerate() {
            let of_row = place * outputs..(place + 1) * outputs;
            let (scores, coefficients) = (&self.scores[of_row.clone()], &mut self.coefficients[of_row]);
            if query.coefficients(scores, label, length, &mut self.residuals, coefficients) {
                kept[count] = place;
                count += 1;
            }
        }
        if count > 0 {
            self.add_rows(query, vectors, &kept[..count], sums, ahead);
        }
    }

    fn find_scores(&mut self, query: &ClippedGradient<'_>, vectors: Vectors, ahead: &mut Ahead<'_, T>) {
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
                let [a, b] =
                    T::scores(vectors, rows, [of_output(output - 1), of_output(output)], ahead.share());
                keep(output - 1, [a[0], b[0]]);
                keep(output, [a[1], b[1]]);
            }
            if outputs % 2 == 1 {
                let [[a], [b]] = T::scores(vectors, rows, [of_output(outputs - 1)], ahead.share());
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
        ahead: &mut Ahead<'_, T>,
    ) {
        let (outputs, padded) = (query.outputs, self.padded);
        // Missing rows are zeros.
        let place = |i: usize| places.get(i).copied().unwrap_or(ROWS);
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
                    T::add_rows(vectors, rows, std::array::from_fn(of_row), sums, most, ahead.share());
                }
                [a] => {
                    let of_row = |i| [coefficient(i, first)];
                    T::add_rows(
                        vectors,
                        rows,
                        std::array::from_fn(of_row),
                        [&mut a.narrow],
                        most,
                        ahead.share(),
                    );
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
