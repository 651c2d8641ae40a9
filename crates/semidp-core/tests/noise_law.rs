//! The noise that is released has the law that is accounted for: tested from outside, on tables
//! without rows, where a release is noise and nothing else.
//!
//! Every bound fails with probability below 1e-9, whatever the seed. Deviations of 6.5 standard errors
//! have probability 8e-11 for a normal variable; the means here are of so many draws that their
//! skewness at most triples that.

#[path = "noise_law/draws.rs"]
mod draws;

use draws::*;

const WIDTH: usize = 1000;
const STEPS: u64 = 220;
/// DKW: the empirical distribution function of N draws is further than ε from the true one, anywhere,
/// with probability at most 2·exp(−2Nε²): for 220,000 draws and this ε, 1.2e-10.
const DKW: f64 = 0.007_32;

/// sup |F_N(k) − F(k)| over all whole k, for P(noise ≤ k) = F((k + 1/2)/scale).
fn distance(draws: &Draws, law: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = draws.noise.clone();
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let at = |k: i64| law((k as f64 + 0.5) / draws.scale);
    let mut largest = 0.0f64;
    for (i, &k) in sorted.iter().enumerate() {
        // Between draws F_N is flat and F rises: only at a draw and just before it can they be furthest.
        if i + 1 == sorted.len() || sorted[i + 1] > k {
            largest = largest.max(((i + 1) as f64 / n - at(k)).abs());
        }
        if i == 0 || sorted[i - 1] < k {
            largest = largest.max((i as f64 / n - at(k - 1)).abs());
        }
    }
    largest
}

#[test]
fn rounded_gaussian_noise_is_normal() {
    for (multiplier, clip_norm, seed) in [(2.0, 1.0, 1), (3.7, 0.3, 2), (1e4, 1.999, 3)] {
        let draws = gaussian(multiplier, clip_norm, (WIDTH, STEPS), seed);
        let found = distance(&draws, normal);
        assert!(found <= DKW, "{multiplier} {clip_norm}: {found}");
    }
}

#[test]
fn rounded_laplace_noise_is_laplace() {
    let law = |x: f64| if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() };
    for (multiplier, clip_norm, seed) in [(2.0, 1.0, 4), (1.31, 0.7, 5)] {
        let draws = laplace(multiplier, clip_norm, (WIDTH, STEPS), seed);
        let found = distance(&draws, law);
        assert!(found <= DKW, "{multiplier} {clip_norm}: {found}");
        // Not just any law of about this shape: the normal law of the same variance is 0.04 away.
        assert!(distance(&draws, |x| normal(x / 2f64.sqrt())) > 2.0 * DKW);
    }
}

#[test]
fn moments_and_correlations_of_gaussian_noise() {
    for (multiplier, clip_norm, (width, steps), seed) in
        [(2.0, 1.0, (WIDTH, STEPS), 6), (5.3, 77.7, (1 << 20, 2), 7)]
    {
        let Draws { noise, scale } = gaussian(multiplier, clip_norm, (width, steps), seed);
        let unit: Vec<f64> = noise.iter().map(|&k| k as f64 / scale).collect();
        let n = unit.len() as f64;
        let moment = |power: i32| unit.iter().map(|z| z.powi(power)).sum::<f64>() / n;
        // z^p has variance 1, 2 and 96. Rounding adds 1/12 to the variance in grid steps, and 1/2 to the
        // fourth moment in units of scale².
        let rounding = 1.0 / (12.0 * scale * scale);
        assert!(moment(1).abs() <= 6.5 / n.sqrt(), "{}", moment(1));
        assert!((moment(2) - 1.0 - rounding).abs() <= 6.5 * (2.0 / n).sqrt(), "{}", moment(2));
        assert!((moment(4) - 3.0 - 6.0 * rounding).abs() <= 6.5 * (96.0 / n).sqrt(), "{}", moment(4));
        // Neighbours, coordinates of other blocks, and the same coordinate of the next step. There are 30
        // lags in all, so 7 standard errors.
        let powers = (0..usize::BITS).map(|bit| 1usize << bit).take_while(|&lag| lag < width);
        for lag in powers.chain([width]) {
            let products = unit.iter().zip(&unit[lag..]).map(|(a, b)| a * b);
            let pairs = n - lag as f64;
            let correlation = products.sum::<f64>() / pairs;
            assert!(correlation.abs() <= 7.0 / pairs.sqrt(), "lag {lag}: {correlation}");
        }
    }
}

/// Against the continued fraction of the incomplete gamma function Γ(63/2, x/2), which shares nothing
/// with the sum above. The last is the quantile of 1e-9.
#[test]
fn the_tail_of_chi_square_is_right() {
    for (x, tail) in [(62.335, 0.499_985_769), (100.0, 2.077_236_553e-3), (155.074_257, 1e-9)] {
        let found = chi_square_tail(x);
        assert!((found / tail - 1.0).abs() < 1e-7, "{x}: {found}");
    }
}

#[test]
fn every_part_of_the_normal_law_has_its_share() {
    let Draws { noise, scale } = gaussian(2.0, 1.5, (1 << 20, 2), 9);
    let expected = noise.len() as f64 / BINS as f64;
    let counts = counts(noise.iter().copied(), scale);
    let statistic: f64 = counts.iter().map(|a| (a - expected).powi(2) / expected).sum();
    assert!(chi_square_tail(statistic) >= LEAST_TAIL, "{statistic}");
}
