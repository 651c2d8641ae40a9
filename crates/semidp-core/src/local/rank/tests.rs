//! What the guarantee and the mean of rank PrivUnit rest on: in integers where it is exact, by simulation where it is not.

use super::*;
use crate::local::{Randomizer, at_most, dot};
use crate::noise::add_rounded_gaussian;
use semidp_accounting::Epsilon;
use semidp_accounting::local::randomizer_named;

fn cap(dimension: usize, epsilon: f64) -> Cap {
    randomizer_named("rank-privunit").unwrap().at(dimension, Epsilon::new(epsilon).unwrap()).unwrap()
}

/// A unit vector in no special direction.
fn slanted(dimension: usize) -> Vec<f64> {
    let raw: Vec<f64> = (0..dimension).map(|i| ((i * 7 + 3) % 11) as f64 - 4.5).collect();
    let length = dot(&raw, &raw).sqrt();
    raw.iter().map(|x| x / length).collect()
}

/// Row and sign of each column's entry of P_i.
fn column(i: usize, column: usize) -> (usize, i32) {
    let (x, z) = PERMUTATIONS[i];
    let row = column ^ x;
    (row, if (row & z).count_ones() % 2 == 1 { -1 } else { 1 })
}

#[test]
fn permutations_anticommute() {
    for i in 0..FAMILY {
        for j in 0..FAMILY {
            // (P_iᵀP_j)[a][b] is the product of the entries of columns a and b in their common row, if there is one.
            let mut sum = vec![0; BLOCK * BLOCK];
            for (first, second) in [(i, j), (j, i)] {
                for b in 0..BLOCK {
                    let (row, sign) = column(second, b);
                    let a = (0..BLOCK).find(|a| column(first, *a).0 == row).unwrap();
                    sum[a * BLOCK + b] += sign * column(first, a).1;
                }
            }
            for (at, entry) in sum.iter().enumerate() {
                let expected = if i == j && at / BLOCK == at % BLOCK { 2 } else { 0 };
                assert_eq!(*entry, expected, "{i} {j} {at}");
            }
        }
    }
}

#[test]
fn bases_are_mutually_unbiased() {
    let all: Vec<[f32; SCORES]> = (0..PAIRS).map(|pair| signs_of(pair, 0)).collect();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            let product: i32 = a.iter().zip(b).map(|(a, b)| (a * b) as i32).sum();
            match (i == j, i / SCORES == j / SCORES) {
                (true, _) => assert_eq!(product, 64),
                (false, true) => assert_eq!(product, 0),
                (false, false) => assert_eq!(product.abs(), 8),
            }
        }
    }
}

/// The fast forms are what the documentation says, and an inner product of candidate and vector is its score.
#[test]
fn candidates_are_combinations_of_turned_normal_vectors() {
    let (dimension, seed) = (200, 77);
    let x = slanted(dimension);
    let mut stream = public_stream(seed);
    let flips = stream.word();
    let mut normals = vec![[0f64; 2 * BLOCK]; VECTORS];
    for block in 0..2 {
        for (normal, drawn) in normals.iter_mut().zip(draw_blocks(&mut stream)) {
            (0..BLOCK).for_each(|j| normal[block * BLOCK + j] = f64::from(drawn[j / LANES][j % LANES]));
        }
    }
    let scores = coordinates(&x, &mut public_stream(seed));
    let mut products = [0.0; PAIRS];
    inner_products(&scores, &mut products);
    let cap = cap(dimension, 2.0);
    for pair in [0, 1, 63, 64, 200, 511] {
        let weights = signs_of(pair, flips);
        let mut slow = vec![0.0; 2 * BLOCK];
        for (b, weight) in weights.iter().enumerate() {
            for j in 0..2 * BLOCK {
                let (row, sign) = column(b % FAMILY, j % BLOCK);
                slow[j] +=
                    f64::from(*weight) * f64::from(sign) * normals[b / FAMILY][j / BLOCK * BLOCK + row];
            }
        }
        for (index, sign) in [(2 * pair, 1.0), (2 * pair + 1, -1.0)] {
            let mut fast = vec![0.0; dimension];
            let scale = 8.0 * STD as f64;
            decode(&cap, RankReport { seed, index: index as u16 }, scale, &mut fast);
            assert!(fast.iter().zip(&slow).all(|(fast, slow)| *fast == sign * slow), "{pair}");
            let product = dot(&fast, &x);
            assert!((product - sign * f64::from(products[pair])).abs() < 1e-5 * scale, "{pair}");
        }
    }
}

/// Pinned: another version, or another machine, that decodes these otherwise cannot read reports.
#[test]
fn decoded_reports_are_the_same_bits_everywhere() {
    let whole = |dimension: usize, seed: u128, index: u16| {
        let mut vector = vec![0.0; dimension];
        decode(&cap(dimension, 2.0), RankReport { seed, index }, 8.0 * STD as f64, &mut vector);
        vector
    };
    let vector = whole(1000, 1 << 100 | 5, 333);
    let square: f64 = vector.iter().map(|x| x * x).sum();
    let coded = ([vector[0], vector[1], vector[998], vector[999]], square);
    let mut free = [0.0; 3];
    decode(&cap(3, 2.0), RankReport { seed: 9, index: 801 }, 1.0, &mut free);
    const FREE: [u64; 3] = [4602427854925314665, 4600881900638802899, 13828544733696894952];
    assert_eq!(
        (coded, free.map(f64::to_bits)),
        (([-54009.0, 6595.0, -2068.0, 34052.0], 1_064_862_982_894.0), FREE)
    );
}

/// On a processor without AVX2 both sides of each comparison are the same code.
#[test]
fn wider_loops_give_the_same_bits() {
    let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for dimension in [33, 128, 1000] {
        let x = slanted(dimension);
        let mut sums = [[[[0f32; LANES]; VECTORS]; FAMILY]; 2];
        add_products(&x, &mut public_stream(5), &mut sums[0]);
        wide::add_products(&x, &mut public_stream(5), &mut sums[1]);
        assert_eq!(sums[0], sums[1]);
        let scores = coordinates(&x, &mut public_stream(6));
        let mut products = [[0.0; PAIRS]; 2];
        inner_products(&scores, &mut products[0]);
        wide::inner_products(&scores, &mut products[1]);
        assert_eq!(products[0], products[1]);
        for place in 0..40 {
            let choice = Choice { is_top: place % 2 == 0, place };
            assert_eq!(pick(&products[0], 40, &choice), wide::pick(&products[0], 40, &choice));
        }
        let mut vectors = [vec![0.0; dimension], vec![0.0; dimension]];
        combine(&signs_of(300, 9), 0.1, &mut public_stream(7), &mut vectors[0]);
        wide::combine(&signs_of(300, 9), 0.1, &mut public_stream(7), &mut vectors[1]);
        assert_eq!(bits(&vectors[0]), bits(&vectors[1]));
    }
}

/// Whatever the scores, the coins reach every candidate once, and each group has its size.
#[test]
fn the_law_of_a_report_is_a_permutation_of_fixed_weights() {
    let mut stream = public_stream(3);
    let random: Vec<f32> = (0..PAIRS).map(|_| stream.word() as f32 - 9e18).collect();
    let mut odd = random.clone();
    odd[..40].fill(f32::NAN);
    odd[40..50].fill(-f32::NAN);
    odd[50..100].fill(f32::INFINITY);
    odd[100..200].fill(-0.0);
    odd[200..300].fill(0.0);
    odd[300..400].fill(1.0);
    let all = [random, odd, vec![0.0; PAIRS], vec![f32::NAN; PAIRS], vec![-1.0; PAIRS]];
    for (scores, pairs) in all.iter().flat_map(|scores| [(scores, PAIRS), (scores, 409)]) {
        for top in [1, 2, 64, pairs as u32] {
            let mut reached = vec![0; 2 * pairs];
            for (is_top, size) in [(true, top), (false, 2 * pairs as u32 - top)] {
                for place in 0..u64::from(size) {
                    reached[usize::from(pick(&scores[..pairs], top, &Choice { is_top, place }))] += 1;
                }
            }
            assert!(reached.iter().all(|times| *times == 1), "{pairs} {top}");
        }
    }
}

/// Among plain scores the group holds the largest magnitudes with their signs.
#[test]
fn the_top_group_has_the_largest_scores() {
    let scores = [0.5f32, -3.0, 2.0, -1.0];
    let group = |top| -> Vec<u16> {
        (0..u64::from(top)).map(|place| pick(&scores, top, &Choice { is_top: true, place })).collect()
    };
    assert_eq!(group(1), [3]);
    assert_eq!(group(2), [3, 4]);
    assert_eq!(group(4), [0, 3, 4, 7]);
}

/// A number m·2^e, rounded down, with 2¹²⁷ ≤ m < 2¹²⁸.
#[derive(Clone, Copy)]
struct Down(u128, i32);

impl Down {
    fn new(m: u128, e: i32) -> Self {
        let shift = m.leading_zeros();
        Self(m << shift, e - shift as i32)
    }

    fn times(self, other: Self) -> Self {
        let low = |x: u128| x & u128::from(u64::MAX);
        let (a, b, c, d) = (self.0 >> 64, low(self.0), other.0 >> 64, low(other.0));
        let middle = ((b * d) >> 64) + low(a * d) + low(b * c);
        let high = a * c + ((a * d) >> 64) + ((b * c) >> 64) + (middle >> 64);
        Self::new(high, self.1 + other.1 + 128)
    }

    /// e^x from below for 0 < x ≤ 50: (Σ y^n/n!)^{2^20}, y = x/2^20, in steps of 2^-120 that are all rounded down.
    fn exp(x: f64) -> Self {
        let bits = x.to_bits();
        let exponent = (bits >> 52) as i32 - 1023 - 52;
        let mantissa = u128::from((bits & ((1 << 52) - 1)) | 1 << 52);
        let shift = 120 + exponent - 20;
        let y = if shift >= 0 { mantissa << shift } else { mantissa >> shift.unsigned_abs().min(127) };
        let unit = 1u128 << 120;
        // y < 2^106, so y·term < 2^106·2^106 needs the product by halves.
        let mut sum = unit;
        let mut term = Self::new(unit, -120);
        for n in 1..12u128 {
            if y == 0 {
                break;
            }
            term = term.times(Self::new(y, -120));
            let fixed = if term.1 <= -248 { 0 } else { term.0 >> (-120 - term.1).clamp(0, 127) as u32 };
            let fixed = fixed / n;
            sum += fixed;
            if fixed == 0 {
                break;
            }
            term = Self::new(fixed, -120);
        }
        (0..20).fold(Self::new(sum, -120), |power, _| power.times(power))
    }

    fn is_at_most(self, other: Self) -> bool {
        (self.1, self.0) <= (other.1, other.0)
    }
}

#[test]
fn bounds_of_the_exponential_are_close_from_below() {
    for x in [1e-3, 0.1, 1.0, 7.3, 50.0] {
        let Down(m, e) = Down::exp(x);
        let found = m as f64 * 2f64.powi(e);
        assert!((found / x.exp() - 1.0).abs() < 4e-15 * (1.0 + x), "{x}: {found}");
    }
}

/// The odds of a candidate of the first group against one of the other are t(k − r) : (2⁶⁴ − t)r for the t = p̂·2⁶⁴ that random words are
/// compared with. Both ratios are at most e^ε, in integers. The chances of ± for vectors inside the ball only mix such laws.
#[test]
fn the_ratio_of_two_chances_is_at_most_the_exponential_of_epsilon() {
    for dimension in [2, 3, 5, 10, 32, 33, 100, 1000, 1_000_000] {
        for epsilon in [1e-3, 0.05, 0.1, 0.5, 1.0, 2.0, 3.3, 4.0, 8.0, 12.0, 30.0, 50.0] {
            let cap = cap(dimension, epsilon);
            let ranks = cap.ranks.unwrap();
            assert!(ranks.top >= 1 && ranks.top <= ranks.candidates / 2 && ranks.candidates <= 1024);
            let threshold = u128::from(at_most(&cap));
            let (top, others) = (u128::from(ranks.top), u128::from(ranks.candidates - ranks.top));
            let (first, second) = (threshold * others, ((1 << 64) - threshold) * top);
            let grown = Down::exp(epsilon).times(Down::new(second, 0));
            assert!(Down::new(first, 0).is_at_most(grown), "{dimension} {epsilon}");
            // The other way round no factor is needed.
            assert!(second <= first, "{dimension} {epsilon}");
            // And hardly anything is given away.
            let spent = (first as f64 / second as f64).ln();
            assert!(spent > epsilon - 1e-12 || epsilon > 12.0, "{dimension} {epsilon}: {spent}");
        }
    }
}

/// E[report | seed]/R for a unit vector: all that the coins do is averaged exactly.
fn mean_given_seed(cap: &Cap, unit: &[f64], seed: u128) -> Vec<f64> {
    let ranks = cap.ranks.unwrap();
    let (top, pairs) = (ranks.top as usize, ranks.candidates as usize / 2);
    // Opposite candidates cancel, so what is left of the second group is minus the first.
    let weight = cap.p / top as f64 - cap.beyond / (2 * pairs - top) as f64;
    let mut mean = vec![0.0; unit.len()];
    let largest = |scores: &[f32]| {
        let mut order: Vec<usize> = (0..pairs).collect();
        order.sort_by(|a, b| scores[*b].abs().total_cmp(&scores[*a].abs()));
        order.truncate(top);
        order
    };
    let mut stream = public_stream(seed);
    if unit.len() <= FREE_DIMENSIONS {
        let mut all = vec![0.0; pairs * unit.len()];
        all.chunks_exact_mut(unit.len()).for_each(|direction| draw_direction(&mut stream, direction));
        let of = |pair: usize| &all[pair * unit.len()..][..unit.len()];
        let scores: Vec<f32> = (0..pairs).map(|pair| dot(of(pair), unit) as f32).collect();
        for pair in largest(&scores) {
            let sign = f64::from(scores[pair].signum());
            mean.iter_mut().zip(of(pair)).for_each(|(mean, u)| *mean += sign * weight / cap.m * u);
        }
        return mean;
    }
    let mut scores = [0.0; PAIRS];
    inner_products(&coordinates(unit, &mut stream), &mut scores);
    let mut stream = public_stream(seed);
    let flips = stream.word();
    let mut weights = [0.0; SCORES];
    for pair in largest(&scores) {
        let sign = scores[pair].signum();
        weights.iter_mut().zip(signs_of(pair, flips)).for_each(|(weight, a)| *weight += sign * a);
    }
    let unit = weight / cap.m / ((SCORES as f64).sqrt() * STD as f64);
    combine(&weights, unit, &mut stream, &mut mean);
    mean
}

/// The mean of `count` conditional means is the vector, along it and in every other direction, up to what chance allows once in 10⁹ times,
/// and up to `bias` along it. Returns the bound on the error along the vector.
fn assert_unbiased(dimension: usize, epsilon: f64, x: &[f64], count: u64, bias: f64) -> f64 {
    let cap = cap(dimension, epsilon);
    let (mut sum, mut squares) = (vec![0.0; dimension], vec![0.0; dimension]);
    let (mut along, mut along_square) = (0.0, 0.0);
    for seed in 0..count {
        let mean = mean_given_seed(&cap, x, u128::from(seed) << 64 | 0x5eed);
        let product = dot(&mean, x);
        along += product;
        along_square += product * product;
        for ((sum, square), x) in sum.iter_mut().zip(&mut squares).zip(&mean) {
            *sum += x;
            *square += x * x;
        }
    }
    let n = count as f64;
    let error = |sum: f64, square: f64| ((square / n - (sum / n).powi(2)) / n).sqrt();
    let bound = 6.5 * error(along, along_square) + bias;
    assert!((along / n - 1.0).abs() < bound, "{dimension} {epsilon}: {} {bound}", along / n);
    for ((sum, square), x) in sum.iter().zip(&squares).zip(x) {
        // 7.5 standard errors: a thousand coordinates, once in 10⁹ times together.
        let bound = 7.5 * error(*sum, *square) + bias * x.abs();
        assert!((sum / n - x).abs() < bound, "{dimension} {epsilon}: {} {x} {bound}", sum / n);
    }
    bound
}

#[test]
fn reports_are_unbiased() {
    for (dimension, epsilon, count) in [(3, 4.0, 4000), (100, 1.0, 6000), (100, 8.0, 6000), (1000, 4.0, 2000)]
    {
        let mut axis = vec![0.0; dimension];
        axis[dimension - 1] = 1.0;
        for x in [slanted(dimension), axis] {
            let bound = assert_unbiased(dimension, epsilon, &x, count, 1e-4);
            assert!(bound < 0.03, "{dimension} {epsilon}: {bound}");
        }
    }
}

/// The scores of an axis are 64 numbers of U: the law of U itself, not of sums. Drawn together with normal numbers in the same slices, they
/// give candidates whose mean length is the stored one, to 10⁻⁴ with all that chance allows once in 10⁹ times. (Its direction is right
/// whatever the law: signs of a row of Hadamard's matrix only permute the candidates, so E[ā_b s_c] = 0 for b ≠ c, and shifts of b do too.)
#[test]
fn slices_leave_reports_unbiased() {
    let mut stream = public_stream(2);
    for top in [1, 16, 128, 512] {
        let (draws, mut normal, mut sum, mut squares) = (10_000, 0.0, 0.0, 0.0);
        for _ in 0..draws {
            let mut steps = [0i64; SCORES];
            add_rounded_gaussian(&mut steps, 1 << 40, &mut stream);
            let exact = steps.map(|k| k as f64 / 2f64.powi(40));
            let largest = |scores: [f64; SCORES]| {
                let mut products = [0.0; PAIRS];
                inner_products(&scores.map(|s| s as f32), &mut products);
                products.iter_mut().for_each(|p| *p = p.abs());
                products.sort_unstable_by(|a, b| b.total_cmp(a));
                products[..top].iter().map(|p| f64::from(*p)).sum::<f64>()
            };
            let found = largest(exact);
            let off = largest(exact.map(slices::tests::mean_of_slice)) - found;
            normal += found;
            sum += off;
            squares += off * off;
        }
        let n = f64::from(draws);
        let error = 6.5 * ((squares / n - (sum / n).powi(2)) / n).sqrt();
        let bias = ((sum / n).abs() + error) / (normal / n);
        assert!(bias < 1e-4, "{top}: {bias}");
    }
}

/// To 10⁻³, for `cargo test -p semidp-core --release --lib reports_are_unbiased_to_a_thousandth -- --ignored`: minutes.
#[test]
#[ignore = "minutes"]
fn reports_are_unbiased_to_a_thousandth() {
    for (dimension, count) in [(3, 300_000), (100, 600_000), (1000, 600_000)] {
        for epsilon in [1.0, 4.0, 8.0] {
            let bound = assert_unbiased(dimension, epsilon, &slanted(dimension), count, 1e-4);
            println!("d = {dimension}, epsilon = {epsilon}: unbiased within {bound:.1e}");
            assert!(bound < 1.3e-3);
        }
    }
}

/// The mean squared error is the promised one in 16 · 128 dimensions and for a vector that padding cuts off, and never above it.
#[test]
fn errors_are_at_most_what_is_promised() {
    let measured = |dimension: usize, epsilon: f64, x: &[f64], count: u64| {
        let mechanism = randomizer_named("rank-privunit").unwrap();
        let randomizer = Randomizer::new(mechanism, dimension, Epsilon::new(epsilon).unwrap(), 1.0).unwrap();
        let rows = crate::DenseTable::new(x.repeat(count as usize), dimension).unwrap();
        let (mut sum, mut squares) = (0.0, 0.0);
        randomizer
            .reports(crate::Private::new(rows), crate::Randomness::Seed(4), 2, &mut |report| {
                let off: f64 = report.iter().zip(x).map(|(r, x)| (r - x).powi(2)).sum();
                sum += off;
                squares += off * off;
            })
            .unwrap();
        let n = count as f64;
        let mean = sum / n;
        (mean, 6.5 * ((squares / n - mean * mean) / n).sqrt(), randomizer.cap().mse)
    };
    for (dimension, epsilon) in [(2, 2.0), (10, 8.0)] {
        let (found, error, promised) = measured(dimension, epsilon, &slanted(dimension), 4000);
        assert!((found - promised).abs() < error + 1e-9, "{dimension}: {found} {promised} {error}");
    }
    for (dimension, epsilon) in [(40, 8.0), (256, 8.0)] {
        let (found, error, promised) = measured(dimension, epsilon, &slanted(dimension), 4000);
        assert!(found < promised + error, "{dimension}: {found} {promised} {error}");
        // 15/63 of (V − 1)/(d − 1 + V) less at most, V below 13.
        let least = promised * (1.0 - 0.3 * 12.0 / (dimension as f64 + 11.0));
        assert!(found > least - error, "{dimension}: {found} {least} {error}");
    }
}

/// As many numbers as a model may have: the length of a report is where it should be, 6.5 standard deviations of χ² are 1 %.
#[test]
fn a_million_numbers_are_reported() {
    let dimension = 1_000_000;
    let mechanism = randomizer_named("rank-privunit").unwrap();
    let randomizer = Randomizer::new(mechanism, dimension, Epsilon::new(1.0).unwrap(), 2.0).unwrap();
    let rows = crate::DenseTable::new(slanted(dimension).repeat(2), dimension).unwrap();
    let mut lengths = Vec::new();
    randomizer
        .reports(crate::Private::new(rows), crate::Randomness::Seed(4), 2, &mut |report| {
            lengths.push(dot(report, report) * (randomizer.cap().m / 2.0).powi(2) / dimension as f64);
        })
        .unwrap();
    assert!(lengths.len() == 2 && lengths.iter().all(|square| (square - 1.0).abs() < 0.01), "{lengths:?}");
}

/// Prints the table of `semidp-accounting/src/local/rank_privunit.rs`.
#[test]
#[ignore = "makes constants, for minutes"]
fn constants_of_the_code() {
    // Finely enough that no ε wants one between two of them by more than 0.1 % of the error.
    const TOPS: [usize; 50] = [
        1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 88, 96, 112, 128,
        144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448,
        464, 480, 496, 512,
    ];
    const STD: u64 = 1 << 20;
    let draws = 20_000_000;
    let mut stream = public_stream(1);
    let (mut sums, mut deviations, mut squares) = ([0.0; 50], [0.0; 50], [0.0; 50]);
    let (mut steps, mut scores, mut keys) = ([0i64; SCORES], [0f32; PAIRS], [0u32; PAIRS]);
    for _ in 0..draws {
        steps.fill(0);
        add_rounded_gaussian(&mut steps, STD, &mut stream);
        let length = steps.iter().map(|k| (*k as f64).powi(2)).sum::<f64>().sqrt();
        inner_products(&steps.map(|k| (k as f64 / length) as f32), &mut scores);
        keys.iter_mut().zip(&scores).for_each(|(key, score)| *key = score.abs().to_bits());
        keys.sort_unstable_by(|a, b| b.cmp(a));
        let (mut sum, mut square, mut next) = (0.0, 0.0, 0);
        for (i, key) in keys.iter().enumerate() {
            // Scores lack the factor 1/8 of a unit vector.
            let value = f64::from(f32::from_bits(*key)) / 8.0;
            sum += value;
            square += value * value;
            if i + 1 == TOPS[next.min(49)] {
                sums[next] += sum;
                deviations[next] += sum * sum;
                squares[next] += square;
                next += 1;
            }
        }
    }
    // E‖s‖ = √2·Γ(32½)/Γ(32), E‖s‖² = 64.
    let length = 2f64.sqrt() * (libm::lgamma(32.5) - libm::lgamma(32.0)).exp();
    let n = f64::from(draws);
    for (i, top) in TOPS.iter().enumerate() {
        let mean = sums[i] / n;
        let error = ((deviations[i] / n - mean * mean).max(0.0) / n).sqrt() / mean;
        println!("({top}, {:.7}, {:.6}), // {error:.0e}", mean * length, squares[i] / n * 64.0);
    }
}
