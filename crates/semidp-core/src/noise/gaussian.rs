//! The rounded Gaussian: round(σZ) with Z a true standard normal variable, from integers alone.
//!
//! # Why the release is exact
//!
//! The sum s of contributions is an integer vector. If Z is Gaussian with standard deviation σ (an
//! integer number of grid steps), then s + round(Z) = round(s + Z), so the release is a function of
//! the output of the continuous Gaussian mechanism: its accounting holds word for word, under any
//! sampling, adjacency and dimension. Nothing is approximated as long as round(Z) has exactly its
//! law. This sampler's law differs from it by at most [`TOTAL_VARIATION`] a coordinate.
//!
//! # How it is drawn
//!
//! |Z| is drawn by rejection under a staircase. Cut [0, 16) into 512 cells of width 1/32; over cell
//! c put a column whose height M_c is an integer *at least* s·e^{−z²/2} on the cell, with s a
//! fixed integer. A point uniform under the columns is accepted if it lies under s·e^{−z²/2}; its
//! abscissa z = (c + v)/32 then has exactly the density of |Z| on [0, 16).
//!
//! * *The column* is chosen by Walker's alias method in integers: ΣM_c = 2^64 exactly (whatever is
//!   missing is added to the first column), so a 64-bit word picks the column and the point's
//!   height Y with no error at all. How large the M_c are matters for speed only.
//! * *Acceptance* compares the height with s·e^{−z²/2}. Most points lie under the column's lower
//!   right corner (97.5%): accepted at once. The others are compared with a 64-bit bound from both
//!   sides; once in about 10^10 draws that does not decide, and both numbers are extended to some 220
//!   bits ([`super::fixed`]).
//! * *Rounding*: σz = σ(c + v)/32 is computed exactly from 31 bits of v; if the bits of v not drawn
//!   yet could carry it over the next half-integer, they are drawn until it is decided.
//!
//! So bits are drawn lazily, and each test either is certain or asks for more. Two things are left
//! to chance: |Z| ≥ 16 never happens, which has probability 2Φ(−16) < 2^{−188.9}; and heights that
//! still tie after 192 fractional bits are rejected: with margins of 2^31·2^{−192} about each of 512
//! columns, and ΣM = 2^64, that has probability below 2^{−215}. Together less than 2^{−188}.
//!
//! The running time depends on the random words alone, never on data.

use super::fixed::{self, Fixed};
use super::rng::Stream;
use std::sync::LazyLock;

/// The total-variation distance between one coordinate's law and round(σZ) is below 2 to this.
pub(crate) const LOG_TOTAL_VARIATION: i32 = -188;

/// The largest standard deviation, in grid steps.
pub(crate) const LARGEST_STD: u64 = 1 << 44;

const CELLS: usize = 512;
const CELLS_PER_UNIT_BITS: u32 = 5;
/// Bits of v in the first word.
const PLACE_BITS: u32 = 31;
/// Each alias bucket holds this much height: 512·2^55 = 2^64.
const CAPACITY_BITS: u32 = 55;
/// Bits of the height in the first word, and those left for the second.
const HEIGHT_BITS: u32 = 23;
const HEIGHT_REST: u32 = CAPACITY_BITS - HEIGHT_BITS;

/// s: the columns' areas e^{−(c/32)²/2} sum to 32√(π/2) + 1/2 = 40.6061..., so that Σ M_c is a
/// little below 2^64.
const SCALE: u64 = ((1u128 << 64) * 10_000 / 406_070) as u64;

/// One bucket of the alias table: heights below `threshold` belong to the column of the same
/// number, the others to column `alias`, where they start at `threshold + shift`.
#[derive(Clone, Copy)]
struct Bucket {
    threshold: u64,
    shift: u64,
    alias: u16,
}

struct Tables {
    buckets: [Bucket; CELLS],
    /// Points below this height are under the curve on the whole cell.
    safe: [u64; CELLS],
    /// e^{−(c/32)²/2} in units of 2^{−63}, rounded down.
    edge: [u64; CELLS],
}

static TABLES: LazyLock<Box<Tables>> = LazyLock::new(|| Box::new(Tables::new()));

impl Tables {
    fn new() -> Self {
        // Rounded down to 2^{−63}; the error of the exponential is far below one more unit.
        let edge_at = |c: usize| -> u64 {
            let exact = fixed::exp_of_half_square(Fixed::from_bits((c as u128) << 118, 0));
            (exact.high() >> 64) as u64
        };
        let edge: [u64; CELLS] = std::array::from_fn(edge_at);
        let safe = std::array::from_fn(|c| {
            let right = edge.get(c + 1).map_or(0, |&e| e.saturating_sub(1));
            ((u128::from(SCALE) * u128::from(right)) >> 63) as u64
        });
        let mut weights: [u64; CELLS] =
            std::array::from_fn(|c| ((u128::from(SCALE) * (u128::from(edge[c]) + 2)) >> 63) as u64 + 1);
        let sum: u128 = weights.iter().map(|&w| u128::from(w)).sum();
        let missing = (1u128 << 64).checked_sub(sum).expect("the columns fit under 2^64");
        weights[0] += u64::try_from(missing).expect("less than 2^64 is missing");
        Self { buckets: alias_table(weights), safe, edge }
    }
}

/// Walker's method in integers: columns shorter than a bucket are filled up from the top of taller
/// ones.
fn alias_table(mut rest: [u64; CELLS]) -> [Bucket; CELLS] {
    const CAPACITY: u64 = 1 << CAPACITY_BITS;
    let mut buckets = [Bucket { threshold: CAPACITY, shift: 0, alias: 0 }; CELLS];
    let (mut short, mut tall): (Vec<usize>, Vec<usize>) = (0..CELLS).partition(|&c| rest[c] < CAPACITY);
    while let Some(c) = short.pop() {
        let donor = *tall.last().expect("the columns sum to the buckets' capacity");
        rest[donor] -= CAPACITY - rest[c];
        buckets[c] =
            Bucket { threshold: rest[c], shift: rest[donor].wrapping_sub(rest[c]), alias: donor as u16 };
        if rest[donor] < CAPACITY {
            tall.pop();
            short.push(donor);
        }
    }
    buckets
}

/// Further bits of v, drawn by the last test of acceptance, that rounding must use first.
type Drawn = [u64; 3];

/// A point under the staircase, known to 64 bits.
struct Point {
    bucket: usize,
    height: u64,
    place: u64,
}

impl Point {
    fn of(word: u64) -> Self {
        Self {
            bucket: (word >> CAPACITY_BITS) as usize,
            height: word >> 32 & ((1 << HEIGHT_BITS) - 1),
            place: word & ((1 << PLACE_BITS) - 1),
        }
    }
}

/// Adds round(σZ) to every number, independently, for σ = `std` grid steps.
pub(crate) fn add_rounded_gaussian(values: &mut [i64], std: u64, stream: &mut Stream) {
    assert!((1..=LARGEST_STD).contains(&std), "the standard deviation is a number of grid steps");
    let tables: &Tables = &TABLES;
    for value in values {
        *value = value.wrapping_add(draw(tables, std, stream));
    }
}

#[inline(always)]
fn draw(tables: &Tables, std: u64, stream: &mut Stream) -> i64 {
    loop {
        let word = stream.word();
        let point = Point::of(word);
        let bucket = &tables.buckets[point.bucket];
        let split = bucket.threshold >> HEIGHT_REST;
        let from_alias = point.height > split;
        let (cell, shift) =
            if from_alias { (usize::from(bucket.alias), bucket.shift) } else { (point.bucket, 0) };
        let height = (point.height << HEIGHT_REST).wrapping_add(shift);
        let certain = point.height != split;
        let magnitude = if certain && height.wrapping_add(1 << HEIGHT_REST) <= tables.safe[cell & (CELLS - 1)]
        {
            round(cell as u64, point.place, std, None, stream)
        } else {
            match decide(tables, &point, stream) {
                Some((cell, drawn)) => round(cell as u64, point.place, std, drawn, stream),
                None => continue,
            }
        };
        return if word >> PLACE_BITS & 1 == 1 { -magnitude } else { magnitude };
    }
}

/// Decides about a point that the first word left open: its cell if it is accepted.
#[cold]
#[inline(never)]
fn decide(tables: &Tables, point: &Point, stream: &mut Stream) -> Option<(usize, Option<Drawn>)> {
    let bucket = &tables.buckets[point.bucket];
    let whole = point.height << HEIGHT_REST | stream.word() >> (64 - HEIGHT_REST);
    let (cell, height) = if whole < bucket.threshold {
        (point.bucket, whole)
    } else {
        (usize::from(bucket.alias), whole.wrapping_add(bucket.shift))
    };
    let (low, high) = curve_bounds(tables.edge[cell], cell as u64, point.place);
    // The point's true height lies in [height, height + 1).
    if height < low {
        return Some((cell, None));
    }
    if height >= high {
        return None;
    }
    let drawn: Drawn = std::array::from_fn(|_| stream.word());
    let fraction: [u64; 3] = std::array::from_fn(|_| stream.word());
    is_below_curve(cell as u64, point.place, &drawn, height, &fraction).then_some((cell, Some(drawn)))
}

/// Bounds low ≤ s·e^{−z²/2} ≤ high for every z = (cell + v)/32 with v in [place, place + 1)·2^{−31}.
///
/// With x = (2cv + v²)/2048 < 1/2 it is s·e^{−(c/32)²/2}·e^{−x}. At v = place·2^{−31}: x is rounded
/// down by 2^{−64} at most; fourteen terms of Horner's scheme leave out (1/2)^15/15! < 2^{−54} and round
/// by less than 2^{−61}; `edge` is 2^{−62} too small at most. So the product is right to within 2^{−53}
/// of s, absolutely, which is at most 2^6, and the two final roundings add 2. Over the cell of v it
/// falls by a factor of at least e^{−2^{−31}}.
fn curve_bounds(edge: u64, cell: u64, place: u64) -> (u64, u64) {
    let twice = u128::from((2 * cell) << PLACE_BITS | place);
    let x = ((twice * u128::from(place)) >> 9) as u64;
    const ONE: u64 = 1 << 63;
    let mut power = ONE;
    for n in (1..=14).rev() {
        power = ONE - high_half(x, power) / n;
    }
    let top = high_half(SCALE, edge) << 1;
    let value = high_half(top, power) << 1;
    // The doublings after halving round by two more units each.
    const SLACK: u64 = 128;
    let low = value.saturating_sub((value >> 30) + SLACK);
    (low, value + SLACK)
}

fn high_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Whether height + 0.fraction < s·e^{−z²/2} for z = (cell + 0.place drawn)/32, with ties within the
/// error of the evaluation counted as no.
fn is_below_curve(cell: u64, place: u64, drawn: &Drawn, height: u64, fraction: &[u64; 3]) -> bool {
    // a = z/16 = (cell + v)/512: 9 bits of cell below the unit bit, then 31 of place, then 192 more
    // and 23 zeros.
    let [first, second, third] = drawn.map(u128::from);
    let high = u128::from(cell) << 118 | u128::from(place) << 87 | first << 23 | second >> 41;
    let low = second << 87 | third << 23;
    let curve = fixed::exp_of_half_square(Fixed::from_bits(high, low));
    let (whole, rest) = curve.scaled_by(SCALE);
    // z is too small by 2^{−227} at most and e^{−z²/2} falls no faster than 1, the exponential is right
    // to 2^{−236}: s < 2^59 times that is below 2^{−167}, 2^25 units of the last place here.
    const MARGIN: u64 = 1 << 30;
    let (lowest, under) = rest[0].overflowing_sub(MARGIN);
    let (middle, under) = rest[1].overflowing_sub(u64::from(under));
    let (upper, under) = rest[2].overflowing_sub(u64::from(under));
    let Some(whole) = whole.checked_sub(u64::from(under)) else { return false };
    (height, fraction[0], fraction[1], fraction[2]) < (whole, upper, middle, lowest)
}

/// ⌊σz + 1/2⌋ for z = (cell + v)/32, v in [place, place + 1)·2^{−31}.
#[inline(always)]
fn round(cell: u64, place: u64, std: u64, drawn: Option<Drawn>, stream: &mut Stream) -> i64 {
    const SHIFT: u32 = PLACE_BITS + CELLS_PER_UNIT_BITS;
    let exact = u128::from(std) * u128::from(cell << PLACE_BITS | place) + (1 << (SHIFT - 1));
    let whole = (exact >> SHIFT) as i64;
    // The bits of v not yet used add less than `std`, of which this much completes the next integer.
    let gap = (1u128 << SHIFT) - (exact & ((1 << SHIFT) - 1));
    if gap >= u128::from(std) { whole } else { whole + carried(gap, std, drawn, stream) }
}

/// How many further integers the bits of v not yet used complete: with w uniform in [0, 1),
/// the number of k ≥ 0 with std·w ≥ gap + k·2^36. Each word leaves a smaller remainder to decide.
#[cold]
#[inline(never)]
fn carried(gap: u128, std: u64, drawn: Option<Drawn>, stream: &mut Stream) -> i64 {
    let mut known = drawn.into_iter().flatten();
    let mut next = || known.next().unwrap_or_else(|| stream.word());
    const UNIT: u128 = 1 << (PLACE_BITS + CELLS_PER_UNIT_BITS);
    // std·w = (std·word + std·w')/2^64 with w' the bits after this word.
    let mut have = u128::from(std) * u128::from(next());
    let mut need = gap << 64;
    let mut completed = 0;
    while have >= need {
        completed += 1;
        need += UNIT << 64;
    }
    loop {
        let short = need - have;
        if short >= u128::from(std) {
            return completed;
        }
        need = short << 64;
        have = u128::from(std) * u128::from(next());
        if have >= need {
            return completed + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Purpose, Randomness};
    use super::*;

    fn stream(seed: u64) -> Stream {
        Randomness::Seed(seed).key(0).unwrap().stream(Purpose::Noise, 0, 0)
    }

    fn heights(tables: &Tables) -> [u128; CELLS] {
        let mut heights = [0u128; CELLS];
        for (c, bucket) in tables.buckets.iter().enumerate() {
            heights[c] += u128::from(bucket.threshold);
            heights[usize::from(bucket.alias)] += (1u128 << CAPACITY_BITS) - u128::from(bucket.threshold);
        }
        heights
    }

    /// The pieces of every column tile it exactly: no height is missing or counted twice.
    #[test]
    fn the_alias_table_is_exact() {
        let mut pieces: Vec<Vec<(u64, u64)>> = vec![Vec::new(); CELLS];
        for (c, bucket) in TABLES.buckets.iter().enumerate() {
            pieces[c].push((0, bucket.threshold));
            let size = (1 << CAPACITY_BITS) - bucket.threshold;
            if size > 0 {
                let start = bucket.threshold.wrapping_add(bucket.shift);
                pieces[usize::from(bucket.alias)].push((start, start + size));
            }
        }
        let heights = heights(&TABLES);
        for (c, pieces) in pieces.iter_mut().enumerate() {
            pieces.sort_unstable();
            let mut end = 0;
            for &(start, stop) in pieces.iter().filter(|(a, b)| b > a) {
                assert_eq!(start, end, "column {c}");
                end = stop;
            }
            assert_eq!(u128::from(end), heights[c]);
            // The column covers the curve at its left end, and the safe part lies under its right end.
            let left = SCALE as f64 * (-0.5 * (c as f64 / 32.0).powi(2)).exp();
            let right = SCALE as f64 * (-0.5 * ((c + 1) as f64 / 32.0).powi(2)).exp();
            assert!(heights[c] as f64 >= left * (1.0 - 1e-15), "column {c}");
            assert!(TABLES.safe[c] as f64 <= right * (1.0 + 1e-15), "column {c}");
            assert!(TABLES.safe[c] as f64 >= right * (1.0 - 1e-15) - 3.0, "column {c}");
        }
        assert_eq!(heights.iter().sum::<u128>(), 1 << 64);
    }

    /// The 64-bit bounds enclose the 256-bit value, and narrowly.
    #[test]
    fn curve_bounds_enclose_the_curve() {
        let mut stream = stream(3);
        for _ in 0..20_000 {
            let (cell, place) = (stream.below(CELLS as u64), stream.below(1 << PLACE_BITS));
            let (low, high) = curve_bounds(TABLES.edge[cell as usize], cell, place);
            assert!(high - low <= (high >> 29) + 300, "{cell} {place}");
            for drawn in [[0; 3], [u64::MAX; 3]] {
                assert!(low == 0 || is_below_curve(cell, place, &drawn, low - 1, &[u64::MAX; 3]));
                assert!(!is_below_curve(cell, place, &drawn, high, &[0; 3]));
            }
        }
    }

    /// The last test agrees with floating point wherever that can tell.
    #[test]
    fn the_exact_comparison_follows_the_curve() {
        let mut stream = stream(4);
        for _ in 0..5_000 {
            let (cell, place) = (stream.below(200), stream.below(1 << PLACE_BITS));
            let z = (cell as f64 + place as f64 / 2f64.powi(31)) / 32.0;
            let curve = SCALE as f64 * (-0.5 * z * z).exp();
            for factor in [0.5, 1.0 - 1e-9, 1.0 + 1e-9, 1.5] {
                let height = (curve * factor) as u64;
                let below = is_below_curve(cell, place, &[0; 3], height, &[0; 3]);
                assert_eq!(below, factor < 1.0, "{cell} {place} {factor}");
            }
        }
    }

    /// Rounding with lazily drawn bits equals rounding with all of them.
    #[test]
    fn lazy_rounding_is_exact() {
        let mut stream = stream(5);
        for std in [1, 2, 3, 1000, (1 << 20) + 7, (1 << 36) + 1, LARGEST_STD] {
            for _ in 0..20_000 {
                let (cell, place) = (stream.below(CELLS as u64), stream.below(1 << PLACE_BITS));
                let drawn: Drawn = std::array::from_fn(|_| stream.word());
                let lazy = round(cell, place, std, Some(drawn), &mut stream);
                // σ(c + v)/32 + 1/2 with 31 + 32 bits of v: exact unless the rest could carry.
                let fine = u128::from(cell << PLACE_BITS | place) << 32 | u128::from(drawn[0] >> 32);
                let (low, high) = (u128::from(std) * fine, u128::from(std) * (fine + 1));
                let half = 1u128 << 67;
                let (low, high) = ((low + half) >> 68, (high - 1 + half) >> 68);
                assert!((low..=high).contains(&(lazy as u128)), "{std} {cell} {place}");
            }
        }
    }

    /// A constructed near-tie: the second word decides, then the third.
    #[test]
    fn near_ties_are_decided_by_further_words() {
        let mut stream = stream(6);
        // σ = 3: gap of 1 in units of 2^-36: w ≥ 1/3 carries.
        let third = u64::MAX / 3;
        assert_eq!(carried(1, 3, Some([third + 1, 0, 0]), &mut stream), 1);
        assert_eq!(carried(1, 3, Some([third - 1, 0, 0]), &mut stream), 0);
        // 1/3 = 0.(5555...)₁₆: the first word ties, the second decides.
        assert_eq!(carried(1, 3, Some([third, third - 1, 0]), &mut stream), 0);
        assert_eq!(carried(1, 3, Some([third, third + 1, 0]), &mut stream), 1);
        assert_eq!(carried(1, 3, Some([third, third, third + 1]), &mut stream), 1);
    }

    /// Φ(x) by the series of its integral for small x and a continued fraction for the tail, to 1e-12:
    /// independent of everything above.
    fn normal_cdf(x: f64) -> f64 {
        let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        if x.abs() < 4.0 {
            let (mut term, mut sum) = (x, x);
            for k in 1..200 {
                term *= x * x / f64::from(2 * k + 1);
                sum += term;
            }
            0.5 + density * sum
        } else {
            let tail = (1..200).rev().fold(x.abs(), |below, k| x.abs() + f64::from(k) / below);
            if x > 0.0 { 1.0 - density / tail } else { density / tail }
        }
    }

    /// DKW: with N = 200,000 draws the empirical distribution function is within 0.00732 of the true
    /// one except with probability 1e-9.
    #[test]
    fn follows_the_rounded_law() {
        assert!((normal_cdf(1.96) - 0.975_002_104_851_78).abs() < 1e-12);
        assert!((normal_cdf(-5.0) / 2.866_515_718_791_946e-7 - 1.0).abs() < 1e-9);
        for std in [1u64, 2, 5, 1000, (1 << 24) + 3, LARGEST_STD] {
            let mut values = vec![0i64; 200_000];
            add_rounded_gaussian(&mut values, std, &mut stream(20 + std));
            values.sort_unstable();
            let sigma = std as f64;
            let distance = (-50..=50)
                .map(|i| {
                    let k = (0.1 * f64::from(i) * sigma).round();
                    let found = values.partition_point(|&v| v as f64 <= k) as f64 / 200_000.0;
                    (found - normal_cdf((k + 0.5) / sigma)).abs()
                })
                .fold(0.0, f64::max);
            assert!(distance < 0.007_32, "{std}: {distance}");
        }
    }
}
