//! The two inner loops of clipping for single-precision rows and the Euclidean norm, in AVX2
//! instructions. [`super::clip`] has the same loops in plain Rust; they give the same bits, which a
//! test compares. A row's last numbers are loaded under a mask: everything the loops read or write is
//! inside the slices they are given.

use super::clip::LANES;
use std::arch::x86_64::*;

pub(super) const HALF: usize = LANES / 2;

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(numbers: &[f32; HALF]) -> __m256 {
    // SAFETY: the reference is to eight numbers, and the load needs no alignment.
    #[expect(unsafe_code, reason = "a vector load takes a pointer")]
    unsafe {
        _mm256_loadu_ps(numbers.as_ptr())
    }
}

/// Up to eight numbers, and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn load_some(numbers: &[f32]) -> __m256 {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(numbers.len() as i32), places);
    // SAFETY: the mask lets the load touch the slice's numbers only; more than eight are left out.
    #[expect(unsafe_code, reason = "a vector load takes a pointer")]
    unsafe {
        _mm256_maskload_ps(numbers.as_ptr(), mask)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_integers(numbers: &[i32; HALF]) -> __m256i {
    // SAFETY: the reference is to eight numbers, and the load needs no alignment.
    #[expect(unsafe_code, reason = "a vector load takes a pointer")]
    unsafe {
        _mm256_loadu_si256(numbers.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_integers(numbers: &mut [i32; HALF], values: __m256i) {
    // SAFETY: the reference is to eight numbers, and the store needs no alignment.
    #[expect(unsafe_code, reason = "a vector store takes a pointer")]
    unsafe {
        _mm256_storeu_si256(numbers.as_mut_ptr().cast(), values);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(numbers: &mut [f32; HALF], values: __m256) {
    // SAFETY: the reference is to eight numbers, and the store needs no alignment.
    #[expect(unsafe_code, reason = "a vector store takes a pointer")]
    unsafe {
        _mm256_storeu_ps(numbers.as_mut_ptr(), values);
    }
}

/// Σ (x_j − c_j)² in the lanes and the order of the plain code.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sum_of_squares(row: &[f32], centre: &[f32]) -> f32 {
    let (rows, rest) = row.as_chunks::<LANES>();
    let (centres, _) = centre.as_chunks::<LANES>();
    let mut low = _mm256_setzero_ps();
    let mut high = _mm256_setzero_ps();
    let square = |x: __m256, c: __m256| {
        let difference = _mm256_sub_ps(x, c);
        _mm256_mul_ps(difference, difference)
    };
    for (x, c) in rows.iter().zip(centres) {
        let ([x0, x1], [c0, c1]) = (halves(x), halves(c));
        low = _mm256_add_ps(low, square(load(x0), load(c0)));
        high = _mm256_add_ps(high, square(load(x1), load(c1)));
    }
    if !rest.is_empty() {
        let [c0, c1] = halves(&centres[rows.len()]);
        let (first, second) = rest.split_at(rest.len().min(HALF));
        low = _mm256_add_ps(low, square(load_some(first), load(c0)));
        high = _mm256_add_ps(high, square(load_some(second), load(c1)));
    }
    across(low, high)
}

/// The sum of sixteen lanes, halving their number each time.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn across(low: __m256, high: __m256) -> f32 {
    let eight = _mm256_add_ps(low, high);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

#[inline]
pub(super) fn halves<T>(lanes: &[T; LANES]) -> [&[T; HALF]; 2] {
    let (halves, _) = lanes.as_chunks();
    [&halves[0], &halves[1]]
}

/// Adds trunc((x − c)·factor), at most `most` in absolute value, of two rows to the sums and returns the
/// sums of their squares; `segment` groups of lanes and one more sum to less than 2^63.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add_pair(
    rows: [&[f32]; 2],
    centre: &[f32],
    sums: &mut [i32],
    factors: [f32; 2],
    most: f32,
    segment: usize,
) -> [u64; 2] {
    let most = _mm256_set1_ps(most);
    let least = _mm256_sub_ps(_mm256_setzero_ps(), most);
    let [factor_a, factor_b] = factors.map(|factor| _mm256_set1_ps(factor));
    // The second operand is the answer where the first is not a number.
    let steps = |x: __m256, c: __m256, factor: __m256| {
        let scaled = _mm256_mul_ps(_mm256_sub_ps(x, c), factor);
        _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(scaled, least), most))
    };
    // Squares of the even and the odd integers, as 64-bit numbers.
    let squares = |k: __m256i| {
        let odd = _mm256_srli_epi64::<32>(k);
        _mm256_add_epi64(_mm256_mul_epi32(k, k), _mm256_mul_epi32(odd, odd))
    };
    let add = |s: &mut [i32; HALF], a: __m256i, b: __m256i| {
        store_integers(s, _mm256_add_epi32(load_integers(s), _mm256_add_epi32(a, b)));
    };
    let [(rows_a, rest_a), (rows_b, rest_b)] = rows.map(|row| row.as_chunks::<HALF>());
    let (centres, _) = centre.as_chunks::<HALF>();
    let (sums, _) = sums.as_chunks_mut::<HALF>();
    let mut totals = [0u64; 2];
    // Two names instead of an array, which would not stay in registers.
    let (mut terms_a, mut terms_b) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    if !rest_a.is_empty() {
        let c = load(&centres[rows_a.len()]);
        let (a, b) = (steps(load_some(rest_a), c, factor_a), steps(load_some(rest_b), c, factor_b));
        add(&mut sums[rows_a.len()], a, b);
        (terms_a, terms_b) = (squares(a), squares(b));
    }
    let mut start = 0;
    loop {
        let part = start..(start + 2 * segment).min(rows_a.len());
        start = part.end;
        let rows = rows_a[part.clone()].iter().zip(&rows_b[part.clone()]);
        for (((x, y), c), s) in rows.zip(&centres[part.clone()]).zip(&mut sums[part]) {
            let c = load(c);
            let (a, b) = (steps(load(x), c, factor_a), steps(load(y), c, factor_b));
            add(s, a, b);
            terms_a = _mm256_add_epi64(terms_a, squares(a));
            terms_b = _mm256_add_epi64(terms_b, squares(b));
        }
        totals[0] = totals[0].saturating_add(sum_of_lanes(terms_a));
        totals[1] = totals[1].saturating_add(sum_of_lanes(terms_b));
        if start == rows_a.len() {
            break;
        }
        (terms_a, terms_b) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    }
    totals
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sum_of_lanes(terms: __m256i) -> u64 {
    let two = _mm_add_epi64(_mm256_castsi256_si128(terms), _mm256_extracti128_si256::<1>(terms));
    (_mm_cvtsi128_si64(two) as u64).wrapping_add(_mm_extract_epi64::<1>(two) as u64)
}
