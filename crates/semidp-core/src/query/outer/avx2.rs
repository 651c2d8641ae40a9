//! The loops of [`super`] with AVX2 instructions: the same bits as the plain ones. All rows, weights and sums are in whole
//! groups of lanes.
//!
//! No closure is handed to `map` where vectors are at work: it would not be compiled for the same processor as the library
//! function that calls it, hence not become part of the loop.

use super::super::avx2::{HALF, across, halves, load, load_integers, store, store_integers, sum_of_lanes};
use super::super::clip::LANES;
use super::ROWS;
use super::bound::{MOST_STEPS, SQUARES_AT_ONCE};
use std::arch::x86_64::*;
use std::slice::Iter;

/// Slices as vectors, of which there are equally many, so that the loops need not check it.
#[inline(always)]
fn vectors<const N: usize>(slices: [&[f32]; N], count: usize) -> [&[[f32; HALF]]; N] {
    slices.map(|slice| &slice.as_chunks().0[..count])
}

/// The same of sums.
#[inline(always)]
fn integers<const N: usize>(slices: [&mut [i32]; N], count: usize) -> [&mut [[i32; HALF]]; N] {
    slices.map(|slice| &mut slice.as_chunks_mut().0[..count])
}

/// The numbers to fetch, by cache lines.
#[inline(always)]
fn lines(ahead: &[f32]) -> Iter<'_, [f32; LANES]> {
    ahead.as_chunks().0.iter()
}

/// Fetches the next line of numbers that will be needed.
#[inline]
#[target_feature(enable = "avx2")]
fn fetch(lines: &mut Iter<'_, [f32; LANES]>) {
    if let Some(line) = lines.next() {
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
    }
}

/// Copies a row and returns its sum of squares.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn copy(row: &[f32], to: &mut [f32]) -> f32 {
    let whole = row.len() / LANES * LANES;
    let (mut low, mut high) = (_mm256_setzero_ps(), _mm256_setzero_ps());
    let (lanes, last) = to.split_at_mut(whole);
    let mut add = |to: &[f32; LANES]| {
        let [x0, x1] = halves(to);
        let (x0, x1) = (load(x0), load(x1));
        low = _mm256_add_ps(low, _mm256_mul_ps(x0, x0));
        high = _mm256_add_ps(high, _mm256_mul_ps(x1, x1));
    };
    for (x, to) in row.as_chunks::<LANES>().0.iter().zip(lanes.as_chunks_mut::<LANES>().0) {
        *to = *x;
        add(x);
    }
    if let Some(last) = last.first_chunk_mut::<LANES>() {
        *last = [0.0; LANES];
        last[..row.len() - whole].copy_from_slice(&row[whole..]);
        add(last);
    }
    across(low, high)
}

/// Σ trunc(x_j·scale)², each at most `MOST_STEPS` in absolute value; saturates.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn square_of_steps(row: &[f32], scale: f32, ahead: &[f32]) -> u64 {
    let mut lines = lines(ahead);
    let most = _mm256_set1_ps(MOST_STEPS as f32);
    let least = _mm256_sub_ps(_mm256_setzero_ps(), most);
    let scale = _mm256_set1_ps(scale);
    let mut total = 0u64;
    for part in row.as_chunks::<HALF>().0.chunks(SQUARES_AT_ONCE / HALF - 1) {
        let (mut even, mut odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for x in part {
            fetch(&mut lines);
            // The second operand is the answer where the first is not a number.
            let scaled = _mm256_mul_ps(load(x), scale);
            let steps = _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(scaled, least), most));
            let others = _mm256_srli_epi64::<32>(steps);
            even = _mm256_add_epi64(even, _mm256_mul_epi32(steps, steps));
            odd = _mm256_add_epi64(odd, _mm256_mul_epi32(others, others));
        }
        total = total.saturating_add(sum_of_lanes(_mm256_add_epi64(even, odd)));
    }
    total
}

/// Adds x_j·w_j of a few rows and the weights of some outputs to their lanes, which loads each number for several
/// products.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_scores<const OUTPUTS: usize>(
    rows: [&[f32]; ROWS],
    weights: [&[f32]; OUTPUTS],
    lanes: &mut [[[f32; HALF]; OUTPUTS]; ROWS],
    ahead: &[f32],
) {
    let mut lines = lines(ahead);
    let count = rows[0].len() / HALF;
    let (rows, weights) = (vectors(rows, count), vectors(weights, count));
    let mut sums = [[_mm256_setzero_ps(); OUTPUTS]; ROWS];
    for (sum, lanes) in sums.as_flattened_mut().iter_mut().zip(lanes.as_flattened()) {
        *sum = load(lanes);
    }
    for i in 0..count {
        fetch(&mut lines);
        let mut w = [_mm256_setzero_ps(); OUTPUTS];
        for output in 0..OUTPUTS {
            w[output] = load(&weights[output][i]);
        }
        for row in 0..ROWS {
            let x = load(&rows[row][i]);
            for output in 0..OUTPUTS {
                sums[row][output] = _mm256_add_ps(sums[row][output], _mm256_mul_ps(x, w[output]));
            }
        }
    }
    for (sum, lanes) in sums.as_flattened().iter().zip(lanes.as_flattened_mut()) {
        store(lanes, *sum);
    }
}

/// Adds trunc(a·x_j) of a few rows to the sums of some outputs, which loads and stores each sum once for all rows.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_rows<const OUTPUTS: usize>(
    rows: [&[f32]; ROWS],
    coefficients: [[f32; OUTPUTS]; ROWS],
    sums: [&mut [i32]; OUTPUTS],
    ahead: &[f32],
) {
    let mut lines = lines(ahead);
    let mut factors = [[_mm256_setzero_ps(); OUTPUTS]; ROWS];
    for (to, from) in factors.as_flattened_mut().iter_mut().zip(coefficients.as_flattened()) {
        *to = _mm256_set1_ps(*from);
    }
    let count = rows[0].len() / HALF;
    let (rows, sums) = (vectors(rows, count), integers(sums, count));
    for i in 0..count {
        fetch(&mut lines);
        let mut sum = [_mm256_setzero_si256(); OUTPUTS];
        for output in 0..OUTPUTS {
            sum[output] = load_integers(&sums[output][i]);
        }
        for row in 0..ROWS {
            let x = load(&rows[row][i]);
            for output in 0..OUTPUTS {
                let steps = _mm256_cvttps_epi32(_mm256_mul_ps(x, factors[row][output]));
                sum[output] = _mm256_add_epi32(sum[output], steps);
            }
        }
        for output in 0..OUTPUTS {
            store_integers(&mut sums[output][i], sum[output]);
        }
    }
}
