//! The loops of [`super`] with AVX2 instructions: the same bits as the plain ones. All rows, weights and sums are in whole
//! groups of lanes.
//!
//! Loops instead of `map`: a closure is not compiled for the same processor as the library function that calls it, and
//! would be called for every number.

use super::super::avx2::{HALF, across, halves, load, load_integers, store_integers, sum_of_lanes};
use super::super::clip::LANES;
use super::ROWS;
use super::bound::{MOST_STEPS, SQUARES_AT_ONCE};
use std::arch::x86_64::*;
use std::slice::Chunks;

/// Fetches the next line of numbers that will be needed.
#[inline]
#[target_feature(enable = "avx2")]
fn fetch(lines: &mut Chunks<'_, f32>) {
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
    let mut lines = ahead.chunks(LANES);
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

/// Σ x_j·w_j of two rows with the weights of some outputs, which loads each number for several products.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn scores<const OUTPUTS: usize>(
    rows: [&[f32]; 2],
    weights: [&[f32]; OUTPUTS],
    ahead: &[f32],
) -> [[f32; OUTPUTS]; 2] {
    let mut lines = ahead.chunks(LANES);
    let rows = rows.map(|row| row.as_chunks::<LANES>().0);
    let count = rows[0].len();
    let rows = rows.map(|row| &row[..count]);
    let weights = weights.map(|weights| &weights.as_chunks::<LANES>().0[..count]);
    let mut sums = [[[_mm256_setzero_ps(); 2]; OUTPUTS]; 2];
    for i in 0..count {
        fetch(&mut lines);
        let ([a0, a1], [b0, b1]) = (halves(&rows[0][i]), halves(&rows[1][i]));
        let x = [[load(a0), load(a1)], [load(b0), load(b1)]];
        for output in 0..OUTPUTS {
            let [w0, w1] = halves(&weights[output][i]);
            let w = [load(w0), load(w1)];
            for row in 0..2 {
                for half in 0..2 {
                    let product = _mm256_mul_ps(x[row][half], w[half]);
                    sums[row][output][half] = _mm256_add_ps(sums[row][output][half], product);
                }
            }
        }
    }
    let mut scores = [[0.0; OUTPUTS]; 2];
    for row in 0..2 {
        for output in 0..OUTPUTS {
            let [low, high] = sums[row][output];
            scores[row][output] = across(low, high);
        }
    }
    scores
}

/// Adds trunc(a·x_j) of four rows to the sums of some outputs, which loads and stores each sum once for all rows.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_rows<const OUTPUTS: usize>(
    rows: [&[f32]; ROWS],
    coefficients: [[f32; OUTPUTS]; ROWS],
    sums: [&mut [i32]; OUTPUTS],
    ahead: &[f32],
) {
    let mut lines = ahead.chunks(LANES);
    let mut factors = [[_mm256_setzero_ps(); OUTPUTS]; ROWS];
    for (to, from) in factors.as_flattened_mut().iter_mut().zip(coefficients.as_flattened()) {
        *to = _mm256_set1_ps(*from);
    }
    let rows = rows.map(|row| row.as_chunks::<HALF>().0);
    let count = rows[0].len();
    let rows = rows.map(|row| &row[..count]);
    let sums = sums.map(|sums| &mut sums.as_chunks_mut::<HALF>().0[..count]);
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
