//! Candidates of rank PrivUnit: from a public seed, the same bits on every machine; and the choice of one by rank.
//!
//! U consists of whole numbers ([`super::slices`]) over ChaCha20. What is made of U to be *sent* uses integers (in floats that hold them
//! exactly) or single roundings of IEEE arithmetic, so client and server agree to the bit. What is made of U to be *compared* may be
//! rounded in any way: the chances are a permutation of fixed weights for every order.
//!
//! Up to 32 dimensions the candidates are ± independent directions. Otherwise, with x a unit vector padded with zeros to blocks of 128,
//! P_0 = I and (P_i x)[j] = (−1)^{|j & z_i|}·x[j ⊕ x_i] within each block, P_iᵀP_j + P_jᵀP_i = 0 for i ≠ j. So the P_i x are orthonormal, and
//! the 16 scores ⟨U, P_i x⟩ of a normal vector U are independent N(0, 1). Four such vectors give 64 scores s. Candidate j, a_j one of ± the rows of
//! eight mutually unbiased bases of ℝ⁶⁴ (Hadamard's matrix times the signs (−1)^{tr(c·u·v)}, u, v, c ∈ GF(8)), is Σ_b a_{j,b}·P_bᵀU_b: its
//! inner product with x is ⟨a_j, s⟩. The mean ā(s) of a report's a_j is the gradient of a convex function of s (the largest sum over
//! permutations of the weights), so E[ā sᵀ] is symmetric, and Σ_{b,c} E[ā_b s_c]·P_bᵀP_c x = E⟨ā, s⟩·x: unbiased. Random public signs of
//! the 64 coordinates make the mean squared error the same for all x, up to what padding does.

use super::slices::{self, STD};
use crate::noise::rng::{Purpose, Stream};
use semidp_accounting::local::{Cap, FREE_DIMENSIONS, Ranks};

/// A report of `rank-privunit`: which of the public candidates of its seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankReport {
    /// Random bits that no vector has a part in.
    pub seed: u128,
    /// 2i for direction i, 2i + 1 for its opposite.
    pub index: u16,
}

/// What the secret coins say: the group, and the place in it.
pub(super) struct Choice {
    pub(super) is_top: bool,
    pub(super) place: u64,
}

const LANES: usize = 8;
const BLOCK: usize = 128;
/// Normal vectors, and scores that each gives.
const VECTORS: usize = 4;
const FAMILY: usize = 16;
const SCORES: usize = VECTORS * FAMILY;
const BASES: usize = 8;
const PAIRS: usize = BASES * SCORES;

/// (x_i, z_i).
const PERMUTATIONS: [(usize, usize); FAMILY] = [
    (0, 0),
    (35, 17),
    (55, 40),
    (28, 8),
    (101, 72),
    (60, 46),
    (19, 63),
    (118, 106),
    (36, 69),
    (48, 42),
    (15, 23),
    (119, 103),
    (53, 6),
    (100, 5),
    (38, 39),
    (47, 57),
];

type Packed = [[f32; LANES]; BLOCK / LANES];

/// (−1)^{|j & z_i|}.
static SIGNS: [Packed; FAMILY] = signs();

const fn signs() -> [Packed; FAMILY] {
    let mut all = [[[1.0; LANES]; BLOCK / LANES]; FAMILY];
    let mut at = 0;
    while at < FAMILY * BLOCK {
        let (i, j) = (at / BLOCK, at % BLOCK);
        if (j & PERMUTATIONS[i].1).count_ones() % 2 == 1 {
            all[i][j / LANES][j % LANES] = -1.0;
        }
        at += 1;
    }
    all
}

/// Bit b of word c: tr(c·u·v) for b = u + 8v.
static DIAGONALS: [u64; BASES] = diagonals();

const fn diagonals() -> [u64; BASES] {
    let mut all = [0; BASES];
    let mut at = 0;
    while at < BASES * SCORES {
        let (c, b) = (at / SCORES, at % SCORES);
        all[c] |= trace(times(c, times(b % 8, b / 8))) << b;
        at += 1;
    }
    all
}

/// The product in GF(8) = GF(2)[t]/(t³ + t + 1).
const fn times(a: usize, b: usize) -> usize {
    let mut product = 0;
    let mut i = 0;
    while i < 3 {
        if b >> i & 1 == 1 {
            product ^= a << i;
        }
        i += 1;
    }
    if product >> 4 & 1 == 1 {
        product ^= 0b10110;
    }
    if product >> 3 & 1 == 1 {
        product ^= 0b1011;
    }
    product
}

const fn trace(a: usize) -> u64 {
    let square = times(a, a);
    (a ^ square ^ times(square, square)) as u64
}

/// The public stream of a seed.
fn public_stream(seed: u128) -> Stream {
    let mut key = [0; 32];
    key[..16].copy_from_slice(&seed.to_le_bytes());
    key[16..].copy_from_slice(b"semidp ranks (1)");
    Stream::public(&key, Purpose::Candidates)
}

/// The candidate of a unit vector that the coins choose.
pub(super) fn encode(cap: &Cap, ranks: Ranks, unit: &[f64], seed: u128, choice: &Choice) -> RankReport {
    let mut stream = public_stream(seed);
    let mut all = [0.0; PAIRS];
    let scores = &mut all[..(ranks.candidates / 2) as usize];
    if cap.dimension <= FREE_DIMENSIONS {
        let mut direction = [0.0; FREE_DIMENSIONS];
        let direction = &mut direction[..cap.dimension];
        for score in scores.iter_mut() {
            draw_direction(&mut stream, direction);
            *score = direction.iter().zip(unit).map(|(u, x)| u * x).sum::<f64>() as f32;
        }
    } else {
        wide::inner_products(&coordinates(unit, &mut stream), scores);
    }
    RankReport { seed, index: wide::pick(scores, ranks.top, choice) }
}

/// A candidate, of mean length `scale` per unit of ⟨a, s⟩.
pub(super) fn decode(cap: &Cap, report: RankReport, scale: f64, vector: &mut [f64]) {
    let mut stream = public_stream(report.seed);
    let (pair, sign) =
        (usize::from(report.index / 2), if report.index.is_multiple_of(2) { 1.0 } else { -1.0 });
    if cap.dimension <= FREE_DIMENSIONS {
        (0..=pair).for_each(|_| draw_direction(&mut stream, vector));
        vector.iter_mut().for_each(|x| *x *= sign * scale);
    } else {
        // |a_b| = 1/√64, and U is in grid steps.
        let unit = sign * scale / ((SCORES as f64).sqrt() * STD as f64);
        let flips = stream.word();
        wide::combine(&signs_of(pair, flips), unit, &mut stream, vector);
    }
}

/// A uniform direction, up to a grid.
fn draw_direction(stream: &mut Stream, direction: &mut [f64]) {
    let mut steps = [0; FREE_DIMENSIONS];
    let steps = &mut steps[..direction.len()];
    slices::fill(stream, steps);
    // Sums of 32 squares below 2³⁰ are exact, and root and quotient are rounded as IEEE says: the same bits everywhere.
    let square: i64 = steps.iter().map(|k| i64::from(*k).pow(2)).sum();
    let length = (square as f64).sqrt();
    for (i, (x, k)) in direction.iter_mut().zip(steps).enumerate() {
        let axis = if i == 0 { 1.0 } else { 0.0 };
        *x = if square > 0 { f64::from(*k) / length } else { axis };
    }
}

/// One block of each normal vector.
#[inline(always)]
fn draw_blocks(stream: &mut Stream) -> [Packed; VECTORS] {
    let mut steps = [0; VECTORS * BLOCK];
    slices::fill(stream, &mut steps);
    let mut vectors = [[[0.0; LANES]; BLOCK / LANES]; VECTORS];
    vectors.as_flattened_mut().as_flattened_mut().iter_mut().zip(steps).for_each(|(x, k)| *x = f32::from(k));
    vectors
}

/// A block at j ⊕ low for all three low bits; the others choose whole chunks.
#[inline(always)]
fn turned(block: &[f64]) -> [Packed; LANES] {
    let mut all = [[[0.0; LANES]; BLOCK / LANES]; LANES];
    all[0].as_flattened_mut().iter_mut().zip(block).for_each(|(to, x)| *to = *x as f32);
    for bit in [1, 2, 4] {
        let (done, open) = all.split_at_mut(bit);
        for (from, to) in done.iter().zip(open) {
            for (from, to) in from.iter().zip(to) {
                *to = std::array::from_fn(|lane| from[lane ^ bit]);
            }
        }
    }
    all
}

type Sums = [[[f32; LANES]; VECTORS]; FAMILY];

/// The 64 scores, with the public signs.
fn coordinates(unit: &[f64], stream: &mut Stream) -> [f32; SCORES] {
    let flips = stream.word();
    let mut sums = [[[0f32; LANES]; VECTORS]; FAMILY];
    wide::add_products(unit, stream, &mut sums);
    std::array::from_fn(|b| {
        let score = sums[b % FAMILY][b / FAMILY].iter().sum::<f32>();
        if flips >> b & 1 == 0 { score } else { -score }
    })
}

#[inline(always)]
fn add_products(unit: &[f64], stream: &mut Stream, sums: &mut Sums) {
    for block in unit.chunks(BLOCK) {
        let turned = turned(block);
        let vectors = draw_blocks(stream);
        for (i, sums) in sums.iter_mut().enumerate() {
            let (high, low) = (PERMUTATIONS[i].0 / LANES, PERMUTATIONS[i].0 % LANES);
            let mut local = *sums;
            for chunk in 0..BLOCK / LANES {
                let (sign, x) = (&SIGNS[i][chunk], &turned[low][chunk ^ high]);
                let signed: [f32; LANES] = std::array::from_fn(|lane| sign[lane] * x[lane]);
                for (sum, vector) in local.iter_mut().zip(&vectors) {
                    for lane in 0..LANES {
                        sum[lane] += vector[chunk][lane] * signed[lane];
                    }
                }
            }
            *sums = local;
        }
    }
}

/// ⟨a_j, s⟩ for one of each opposite pair, up to a factor: Hadamard's matrix after the signs of each basis.
#[inline(always)]
fn inner_products(coordinates: &[f32; SCORES], scores: &mut [f32]) {
    for (diagonal, scores) in DIAGONALS.iter().zip(scores.chunks_exact_mut(SCORES)) {
        for (b, score) in scores.iter_mut().enumerate() {
            *score = if diagonal >> b & 1 == 0 { coordinates[b] } else { -coordinates[b] };
        }
        let mut half = 1;
        while half < SCORES {
            for both in scores.chunks_exact_mut(2 * half) {
                let (left, right) = both.split_at_mut(half);
                for (a, b) in left.iter_mut().zip(right) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
    }
}

/// 8·a_j, with the public signs.
fn signs_of(pair: usize, flips: u64) -> [f32; SCORES] {
    let (row, diagonal) = (pair % SCORES, DIAGONALS[pair / SCORES]);
    std::array::from_fn(|b| {
        let turns = u64::from((row & b).count_ones()) + (diagonal >> b & 1) + (flips >> b & 1);
        if turns.is_multiple_of(2) { 1.0 } else { -1.0 }
    })
}

/// unit·Σ_b w_b P_bᵀU_b. With signs for weights everything but the last product is a whole number, below 64·2¹⁵: single precision holds it.
#[inline(always)]
fn combine(weights: &[f32; SCORES], unit: f64, stream: &mut Stream, vector: &mut [f64]) {
    for block in vector.chunks_mut(BLOCK) {
        let vectors = draw_blocks(stream);
        let mut sums = [[[0f32; LANES]; BLOCK / LANES]; LANES];
        for (b, weight) in weights.iter().enumerate() {
            let (normal, i) = (&vectors[b / FAMILY], b % FAMILY);
            let (high, low) = (PERMUTATIONS[i].0 / LANES, PERMUTATIONS[i].0 % LANES);
            for chunk in 0..BLOCK / LANES {
                // (PᵀU)[j] = (−1)^{|q & z|}·U[q] at q = j ⊕ x.
                let (from, signs) = (&normal[chunk ^ high], &SIGNS[i][chunk ^ high]);
                let sum = &mut sums[low][chunk];
                for lane in 0..LANES {
                    sum[lane] += weight * signs[lane] * from[lane];
                }
            }
        }
        for (j, x) in block.iter_mut().enumerate() {
            let whole: f32 = (0..LANES).map(|low| sums[low][j / LANES][(j % LANES) ^ low]).sum();
            *x = unit * f64::from(whole);
        }
    }
}

/// The candidate at a place of its group. Each pair has one candidate with a score that is not negative; the `top` largest of these (by their
/// bits, not-a-numbers included; ties by number) are one group, all other candidates the other.
#[inline(always)]
fn pick(scores: &[f32], top: u32, choice: &Choice) -> u16 {
    let mut keys = [0i32; PAIRS];
    let keys = &mut keys[..scores.len()];
    for (key, score) in keys.iter_mut().zip(scores) {
        *key = (score.to_bits() & i32::MAX as u32) as i32;
    }
    let at_least = |floor: i32| keys.iter().map(|key| u32::from(*key >= floor)).sum::<u32>();
    // The `top`-th largest key, bit by bit: the same steps for all scores.
    let floor = (0..31).rev().fold(0, |floor, bit| {
        let trial = floor | 1 << bit;
        if at_least(trial) >= top { trial } else { floor }
    });
    let above = keys.iter().map(|key| u32::from(*key > floor)).sum::<u32>();
    let (mut ties, mut seen, mut found) = (top - above, 0, 0);
    for (pair, (key, score)) in keys.iter().zip(scores).enumerate() {
        let is_tie = *key == floor && ties > 0;
        ties -= u32::from(is_tie);
        let is_among = *key > floor || is_tie;
        for side in 0..2 {
            let is_top = is_among && score.to_bits() >> 31 == side;
            let is_here = is_top == choice.is_top;
            found = if is_here && seen == choice.place { 2 * pair as u32 + side } else { found };
            seen += u64::from(is_here);
        }
    }
    found as u16
}

/// The inner loops, for processors with registers of eight floats (AVX2) and for all others: the same operations in the same order, none of
/// them fused, so the same bits.
mod wide {
    use super::*;

    macro_rules! wide {
        ($(fn $name:ident($($argument:ident: $type:ty),+) $(-> $result:ty)?;)+) => {$(
            pub(super) fn $name($($argument: $type),+) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    #[target_feature(enable = "avx2")]
                    fn wider($($argument: $type),+) $(-> $result)? {
                        super::$name($($argument),+)
                    }
                    // SAFETY: the processor was just asked.
                    #[expect(unsafe_code, reason = "there is no other way to call code for some processors only")]
                    return unsafe { wider($($argument),+) };
                }
                super::$name($($argument),+)
            }
        )+};
    }

    wide! {
        fn add_products(unit: &[f64], stream: &mut Stream, sums: &mut Sums);
        fn inner_products(coordinates: &[f32; SCORES], scores: &mut [f32]);
        fn combine(weights: &[f32; SCORES], unit: f64, stream: &mut Stream, vector: &mut [f64]);
        fn pick(scores: &[f32], top: u32, choice: &Choice) -> u16;
    }
}

#[cfg(test)]
mod tests;
