//! The loops without vector instructions.

use super::super::clip::{dot, steps};
use super::{MOST_STEPS, ROWS, SCORE_LANES};
use crate::data::Number;

pub(super) fn copy<T: Number>(row: &[T], to: &mut [T]) -> T {
    let (numbers, padding) = to.split_at_mut(row.len());
    numbers.copy_from_slice(row);
    padding.fill(T::default());
    dot(to, to)
}

pub(super) fn square_of_steps<T: Number>(row: &[T], scale: T) -> u64 {
    let most = T::of(MOST_STEPS);
    row.iter().fold(0u64, |sum, &x| {
        let k = i64::from(steps(x, T::default(), scale, most));
        sum.saturating_add((k * k) as u64)
    })
}

pub(super) fn add_scores<T: Number, const OUTPUTS: usize>(
    rows: [&[T]; ROWS],
    weights: [&[T]; OUTPUTS],
    lanes: &mut [[[T; SCORE_LANES]; OUTPUTS]; ROWS],
) {
    for (row, lanes) in rows.iter().zip(lanes) {
        for (weights, lanes) in weights.iter().zip(lanes) {
            let (rows, _) = row.as_chunks::<SCORE_LANES>();
            let (weights, _) = weights.as_chunks::<SCORE_LANES>();
            for (x, w) in rows.iter().zip(weights) {
                for i in 0..SCORE_LANES {
                    lanes[i] = lanes[i] + x[i] * w[i];
                }
            }
        }
    }
}

pub(super) fn add_rows<T: Number, const OUTPUTS: usize>(
    rows: [&[T]; ROWS],
    coefficients: [[T; OUTPUTS]; ROWS],
    sums: [&mut [i32]; OUTPUTS],
    most: T,
) {
    for (output, sums) in sums.into_iter().enumerate() {
        for (row, coefficients) in rows.iter().zip(&coefficients) {
            for (sum, &x) in sums.iter_mut().zip(*row) {
                *sum = sum.wrapping_add(steps(x, T::default(), coefficients[output], most));
            }
        }
    }
}
