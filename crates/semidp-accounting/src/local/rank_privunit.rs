//! Rank PrivUnit: k public candidates in opposite pairs, one of which is reported by the rank of its inner product with the vector.
//!
//! Up to [`FREE_DIMENSIONS`] dimensions the candidates are ± independent uniform directions. The inner products are independent, so
//! the mean of the r largest of them is an integral in one variable, and a report has length 1/m exactly: MSE = 1/m² − 1.
//!
//! In more dimensions that would take too many random numbers. There four vectors of independent normal coordinates give 64 scores
//! s ~ N(0, I) (16 anticommuting signed permutations of the vector each), and candidate j is the combination of 64 normal vectors whose
//! inner product with the vector is ⟨a_j, s⟩, where ±a_j, j = 1..512, are eight mutually unbiased bases of ℝ⁶⁴. The law of the ordered |⟨a_j, s⟩|
//! has no formula: its moments are a table, from a simulation. With V the mean square of the chosen ⟨a_j, s⟩ a report has mean square at most
//! (d − 1 + V)/m², with equality for vectors that padding separates from their images; in multiples of 128 dimensions it is less by the
//! share 0.26(V − 1)/(d − 1 + V).

use super::sphere::{cap_of_angle, density_constant};
use super::{Cap, Directions, LocalMechanism, Ranks, duchi};
use crate::Epsilon;
use crate::math::quadrature::gauss_legendre;
use std::f64::consts::FRAC_PI_2;

/// Ranks of public candidates.
pub(super) static RANK_PRIVUNIT: LocalMechanism = LocalMechanism {
    name: "rank-privunit",
    about: "one of k public candidates, by the rank of its inner product with the vector",
    is_exact: true,
    best,
};

/// The largest dimension in which candidates are independent directions.
pub const FREE_DIMENSIONS: usize = 32;
/// Pairs of independent directions: as many as 4096 normal numbers give, and at most 512.
const FREE_NUMBERS: usize = 4096;
const MOST_FREE_PAIRS: usize = 512;
/// Pairs of combinations of 64 normal vectors.
const CODED_PAIRS: u32 = 512;

/// r, and for N(0, I) scores of the eight bases: the mean sum of the r largest |⟨a_j, s⟩|, and that of their squares.
///
/// From 4.5·10⁶ draws of s/‖s‖ (the length integrated out), 2.45·10⁷ for twenty of the rows. Standard errors of the sums are at most 3·10⁻⁵
/// of them (of r = 5 and 7; 2·10⁻⁵ of the others), so a mean of reports is off by less than 10⁻⁴ of the vector. `cargo test -p semidp-core
/// --release --lib constants_of_the_code -- --ignored --nocapture` repeats the computation with the kernel's random numbers.
const CODED: [(u32, f64, f64); 50] = [
    (1, 3.1564099, 10.128900),
    (2, 6.0488577, 18.599920),
    (3, 8.7980015, 26.242313),
    (4, 11.4468755, 33.332680),
    (5, 14.0176764, 40.008609),
    (6, 16.5244476, 46.354200),
    (7, 18.9761140, 52.422772),
    (8, 21.3801324, 58.256713),
    (10, 26.0633544, 69.325613),
    (12, 30.6050660, 79.733652),
    (14, 35.0249329, 89.589369),
    (16, 39.3386086, 98.976237),
    (20, 47.6888243, 116.562954),
    (24, 55.7219857, 132.837369),
    (28, 63.4825151, 148.024290),
    (32, 71.0028328, 162.284694),
    (40, 85.4175281, 188.483771),
    (48, 99.1092102, 212.118069),
    (56, 112.1767179, 233.645287),
    (64, 124.6899056, 253.383845),
    (72, 136.7044385, 271.580358),
    (80, 148.2617735, 288.417919),
    (88, 159.3970555, 304.048084),
    (96, 170.1381693, 318.590923),
    (112, 190.5356298, 344.822486),
    (128, 209.6058224, 367.750605),
    (144, 227.4703150, 387.873332),
    (160, 244.2190152, 405.561278),
    (176, 259.9274614, 421.121567),
    (192, 274.6566822, 434.802705),
    (208, 288.4586275, 446.818965),
    (224, 301.3758905, 457.344764),
    (240, 313.4455916, 466.536180),
    (256, 324.6999549, 474.528279),
    (272, 335.1654037, 481.442807),
    (288, 344.8670378, 487.385642),
    (304, 353.8254200, 492.454475),
    (320, 362.0596916, 496.737801),
    (336, 369.5837001, 500.317388),
    (352, 376.4136800, 503.268108),
    (368, 382.5612279, 505.660403),
    (384, 388.0378776, 507.560171),
    (400, 392.8504422, 509.030062),
    (416, 397.0093424, 510.129197),
    (432, 400.5203936, 510.914469),
    (448, 403.3902294, 511.440688),
    (464, 405.6202593, 511.760962),
    (480, 407.2170069, 511.927138),
    (496, 408.1819181, 511.990074),
    (512, 408.5175470, 512.000000),
];

fn best(dimension: usize, epsilon: Epsilon) -> Cap {
    match dimension {
        // Two points: halves are all there is.
        1 => Cap { mechanism: RANK_PRIVUNIT.name, ..(duchi::DUCHI.best)(1, epsilon) },
        2..=FREE_DIMENSIONS => free(dimension, epsilon),
        _ => coded(dimension, epsilon),
    }
}

/// The constants for r of k: m = S_r·(p/r − (1−p)/(k−r)), where S_r is the mean sum of the r largest inner products of unit vectors.
struct Choice {
    top: u32,
    m: f64,
    mse: f64,
}

fn cap(dimension: usize, epsilon: Epsilon, directions: Directions, pairs: u32, choice: &Choice) -> Cap {
    let ranks = Ranks { candidates: 2 * pairs, top: choice.top };
    let cap_probability = f64::from(ranks.top) / f64::from(ranks.candidates);
    let (p, beyond) = Cap::spending(epsilon, cap_probability);
    Cap {
        mechanism: RANK_PRIVUNIT.name,
        directions,
        dimension,
        epsilon,
        gamma: 0.0,
        p,
        beyond,
        cap_probability,
        m: choice.m,
        mse: choice.mse,
        ranks: Some(ranks),
    }
}

fn free(dimension: usize, epsilon: Epsilon) -> Cap {
    let pairs = (FREE_NUMBERS / dimension).min(MOST_FREE_PAIRS);
    let growth = epsilon.get().exp_m1();
    let mut most = Choice { top: 1, m: 0.0, mse: f64::INFINITY };
    for (top, sum) in (1u32..).zip(largest_inner_products(dimension, pairs)) {
        // With p bound to r by ε, p/r − (1−p)/(k−r) = (e^ε − 1)/(k + r(e^ε − 1)).
        let m = sum * growth / (2.0 * pairs as f64 + f64::from(top) * growth);
        if m > most.m {
            most = Choice { top, m, mse: (1.0 - m) * (1.0 + m) / (m * m) };
        }
    }
    cap(dimension, epsilon, Directions::Sphere, pairs as u32, &most)
}

/// The mean sums of the 1, 2, ... largest |⟨U, v⟩| of so many independent uniform directions U.
///
/// That of the r largest is n∫ t·P(Bin(n−1, G(t)) < r)·f(t) dt, for f the density of |⟨U, v⟩| and G(t) = P(|⟨U, v⟩| > t).
fn largest_inner_products(dimension: usize, count: usize) -> Vec<f64> {
    const PANELS: usize = 32;
    let rule = gauss_legendre::<16>();
    let others = count - 1;
    let logarithms: Vec<f64> = (0..=count).map(|i| (i.max(1) as f64).ln()).collect();
    let half = 0.5 * FRAC_PI_2 / PANELS as f64;
    let mut sums = vec![0.0; count];
    for panel in 0..PANELS {
        for (x, weight) in rule {
            let angle = (2.0 * panel as f64 + 1.0 + x) * half;
            let density = 2.0 * density_constant(dimension) * angle.sin().powi(dimension as i32 - 2);
            let above = (2.0 * cap_of_angle(dimension, angle)).clamp(f64::MIN_POSITIVE, 1.0 - 1e-16);
            let (log_above, log_below) = (above.ln(), (-above).ln_1p());
            let share = weight * half * density * angle.cos() * count as f64;
            let (mut log_binomial, mut fewer) = (0.0, 0.0);
            for (i, sum) in sums.iter_mut().enumerate() {
                fewer += (log_binomial + i as f64 * log_above + (others - i) as f64 * log_below).exp();
                *sum += share * fewer;
                log_binomial += logarithms[others - i] - logarithms[i + 1];
            }
        }
    }
    sums
}

fn coded(dimension: usize, epsilon: Epsilon) -> Cap {
    let (growth, candidates) = (epsilon.get().exp_m1(), 2.0 * f64::from(CODED_PAIRS));
    let mut least = Choice { top: 1, m: 0.0, mse: f64::INFINITY };
    for (top, sum, squares) in CODED {
        let share = candidates + f64::from(top) * growth;
        // Squares of all k sum up to k on average.
        let (m, along) = (sum * growth / share, (candidates + squares * growth) / share);
        let mse = (dimension as f64 - 1.0 + along) / (m * m) - 1.0;
        if mse < least.mse {
            least = Choice { top, m, mse };
        }
    }
    cap(dimension, epsilon, Directions::Normal, CODED_PAIRS, &least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of them: n·E|⟨U, v⟩|. One of one, the same. On the circle the largest of n angles to the nearest axis has a known law.
    #[test]
    fn sums_of_order_statistics_are_known_where_there_is_a_formula() {
        for dimension in [2, 3, 10, 32] {
            let mean = 2.0 * density_constant(dimension) / (dimension - 1) as f64;
            for count in [1, 7, 128] {
                let sums = largest_inner_products(dimension, count);
                let all = sums[count - 1] / count as f64;
                assert!((all / mean - 1.0).abs() < 1e-12, "{dimension} {count}: {all} {mean}");
                assert!(sums.is_sorted() && sums[0] < 1.0);
            }
        }
        // |⟨U, v⟩| is uniform in three dimensions: the i-th largest of n has mean 1 − i/(n + 1).
        let sums = largest_inner_products(3, 200);
        let mut exact = 0.0;
        for (i, sum) in (1..).zip(&sums) {
            exact += 1.0 - f64::from(i) / 201.0;
            assert!((sum / exact - 1.0).abs() < 1e-10, "{i}: {sum} {exact}");
        }
    }

    /// What the table must satisfy: all 512 |N(0, 1)| have mean √(2/π), and all squares 1; means of the r largest fall with r.
    #[test]
    fn the_table_is_consistent() {
        let (top, sum, squares) = CODED[CODED.len() - 1];
        assert_eq!(top, CODED_PAIRS);
        assert!((sum / (512.0 * (2.0 / std::f64::consts::PI).sqrt()) - 1.0).abs() < 2e-5, "{sum}");
        assert!((squares / 512.0 - 1.0).abs() < 1e-9, "{squares}");
        for pair in CODED.windows(2) {
            let mean = |(top, sum, _): (u32, f64, f64)| sum / f64::from(top);
            assert!(pair[0].0 < pair[1].0 && mean(pair[0]) > mean(pair[1]));
        }
    }
}
