//! Reports against their law: means, sides, T, and what must not depend on the vector.

use super::*;
use crate::data::{CsrTable, DenseTable};
use semidp_accounting::local::{RANDOMIZERS, randomizer_named};

fn randomizer(name: &str, dimension: usize, epsilon: f64, radius: f64) -> Randomizer {
    Randomizer::new(randomizer_named(name).unwrap(), dimension, Epsilon::new(epsilon).unwrap(), radius)
        .unwrap()
}

/// So many reports of one vector.
fn reports(randomizer: &Randomizer, vector: &[f64], count: usize, seed: u64) -> Vec<Vec<f64>> {
    let table = DenseTable::new(vector.repeat(count), vector.len()).unwrap();
    let mut found = Vec::new();
    randomizer
        .reports(Private::new(table), Randomness::Seed(seed), 2, &mut |report| found.push(report.to_vec()))
        .unwrap();
    assert_eq!(found.len(), count);
    found
}

/// A vector of this length in no special direction.
fn vector(dimension: usize, length: f64) -> Vec<f64> {
    let raw: Vec<f64> = (0..dimension).map(|i| ((i * 7 + 3) % 11) as f64 - 4.5).collect();
    let norm = dot(&raw, &raw).sqrt();
    raw.iter().map(|x| x * length / norm).collect()
}

fn counts(mechanism: &str, dimension: usize) -> usize {
    match (mechanism, dimension) {
        // Its candidates take their time; `rank/tests.rs` looks closer.
        ("rank-privunit", 10_000) => 200,
        ("rank-privunit", 2..) => 3000,
        (_, 10_000) => 2000,
        _ => 100_000,
    }
}

const DIMENSIONS: [usize; 5] = [1, 2, 3, 10, 10_000];

/// The mean of reports is the vector, inside the ball and on its rim, and their mean squared error is what constants say.
#[test]
fn reports_are_unbiased_and_as_far_off_as_predicted() {
    for mechanism in RANDOMIZERS {
        for dimension in DIMENSIONS {
            for (epsilon, length) in [(1.0, 3.0), (4.0, 1.2)] {
                let (radius, count) = (3.0, counts(mechanism.name, dimension));
                let randomizer = randomizer(mechanism.name, dimension, epsilon, radius);
                let x = vector(dimension, length);
                let all = reports(&randomizer, &x, count, 5);
                let trace = radius * radius * randomizer.cap().mse_at(length / radius);
                let mut mean = vec![0.0; dimension];
                all.iter()
                    .for_each(|report| mean.iter_mut().zip(report).for_each(|(m, r)| *m += r / count as f64));
                let off: f64 = mean.iter().zip(&x).map(|(m, x)| (m - x).powi(2)).sum();
                // The variance along the vector, and in each direction across it. A quadratic form of normal numbers exceeds the
                // bound below once in 10⁹ times (Laurent and Massart 2000).
                let along = all.iter().map(|report| (dot(report, &x) / length - length).powi(2)).sum::<f64>();
                let (along, others) = (along / count as f64, (dimension - 1) as f64);
                let across = if dimension > 1 { (trace - along).max(0.0) / others } else { 0.0 };
                let spread = (21.0 * (along * along + others * across * across)).sqrt();
                let bound = (trace + 2.0 * spread + 42.0 * along.max(across)) / count as f64;
                assert!(off < bound, "{} {dimension} {epsilon}: {off} {bound}", mechanism.name);
                let squares: Vec<f64> = all
                    .iter()
                    .map(|report| report.iter().zip(&x).map(|(r, x)| (r - x).powi(2)).sum())
                    .collect();
                let measured = squares.iter().sum::<f64>() / count as f64;
                let variance =
                    squares.iter().map(|square| (square - measured).powi(2)).sum::<f64>() / count as f64;
                let error = 6.5 * (variance / count as f64).sqrt() + 1e-9 * trace;
                assert!(
                    (measured - trace).abs() < error,
                    "{} {dimension}: {measured} {trace}",
                    mechanism.name
                );
            }
        }
    }
}

/// Within the cap with chance p, and T on either side by its law, as far as chance allows once in 10⁹ times.
#[test]
fn sides_and_places_have_their_law() {
    // Ranks have no rim.
    for mechanism in RANDOMIZERS.into_iter().filter(|mechanism| mechanism.name != "rank-privunit") {
        for dimension in [2, 3, 10, 10_000] {
            let (epsilon, count) = (2.0, counts(mechanism.name, dimension));
            let randomizer = randomizer(mechanism.name, dimension, epsilon, 1.0);
            let cap = *randomizer.cap();
            let x = vector(dimension, 1.0);
            let places: Vec<f64> =
                reports(&randomizer, &x, count, 8).iter().map(|report| dot(report, &x) * cap.m).collect();
            let (mut within, mut beyond): (Vec<f64>, Vec<f64>) =
                places.iter().partition(|t| **t >= cap.gamma);
            let share = within.len() as f64 / count as f64;
            let bound = 6.5 * (cap.p * cap.beyond / count as f64).sqrt();
            assert!((share - cap.p).abs() < bound, "{} {dimension}: {share} {}", mechanism.name, cap.p);
            let law = cap.law().unwrap();
            for (is_within, side) in [(true, &mut within), (false, &mut beyond)] {
                side.sort_by(f64::total_cmp);
                let number = side.len() as f64;
                let bound = ((2e9f64).ln() / (2.0 * number)).sqrt();
                // Quantiles run from the far end of a side to its rim.
                let from_below = |u: f64| law.at(is_within, if is_within { 1.0 - u } else { u }).0;
                for i in 1..50 {
                    let u = f64::from(i) / 50.0;
                    let below = side.partition_point(|t| *t < from_below(u)) as f64 / number;
                    assert!(
                        (below - u).abs() < bound,
                        "{} {dimension} {is_within} {u}: {below}",
                        mechanism.name
                    );
                }
            }
        }
    }
}

/// Halves of the sphere: for the same draws every vector has the same report but for its sign, which is exactly what the
/// promise for floats needs; and a coin decides where the inner product is none.
#[test]
fn exact_reports_depend_on_vectors_by_their_sign_alone() {
    let cases = [("duchi", 6), ("duchi", 1), ("privunit", 1)];
    for (name, dimension) in cases {
        let randomizer = randomizer(name, dimension, 1.0, 2.0);
        assert_eq!(randomizer.arithmetic(), Arithmetic::Exact);
        let mut extremes = vec![0.0; dimension];
        extremes[0] = f64::INFINITY;
        let vectors = [vector(dimension, 2.0), vector(dimension, 1e-300), extremes, vec![0.0; dimension]];
        let all = vectors.map(|x| reports(&randomizer, &x, 300, 11));
        let (mut same, mut opposite) = (0, 0);
        for others in &all[1..] {
            for (first, other) in all[0].iter().zip(others) {
                let negated: Vec<f64> = first.iter().map(|x| -x).collect();
                assert!(other == first || other == &negated, "{first:?} {other:?}");
                same += i32::from(other == first);
                opposite += i32::from(other == &negated);
            }
        }
        assert!(same > 0 && opposite > 0);
        let length = randomizer.report_length().unwrap();
        for report in all.iter().flatten() {
            assert!((dot(report, report).sqrt() / length - 1.0).abs() < 1e-14);
        }
    }
    assert_eq!(randomizer("rank-privunit", 1, 1.0, 1.0).arithmetic(), Arithmetic::Exact);
    assert_eq!(randomizer("rank-privunit", 2, 1.0, 1.0).arithmetic(), Arithmetic::Exact);
    assert_eq!(randomizer("rank-privunit", 40, 1.0, 1.0).arithmetic(), Arithmetic::Exact);
    assert_eq!(randomizer("privunit", 2, 1.0, 1.0).arithmetic(), Arithmetic::Idealised);
    assert_eq!(randomizer("privunitg", 1, 1.0, 1.0).arithmetic(), Arithmetic::Idealised);
}

/// The chance that the code compares with is never above p.
#[test]
fn chances_are_rounded_down() {
    for epsilon in [0.01, 0.5, 1.0, 8.0, 40.0, 50.0] {
        let randomizer = randomizer("duchi", 4, epsilon, 1.0);
        // Odds p̂/(1 − p̂) from whole numbers, against e^ε; for large ε one word in 2⁶⁴ is all there is.
        let odds = randomizer.threshold as f64 / ((1u128 << 64) - u128::from(randomizer.threshold)) as f64;
        assert!(odds <= epsilon.exp(), "{epsilon}: {odds}");
        let coarse = 2.0 * epsilon.exp() / 2f64.powi(64);
        assert!(
            odds >= epsilon.exp().min(2f64.powi(63)) * (1.0 - 1e-13 - coarse.min(0.9)),
            "{epsilon}: {odds}"
        );
    }
}

/// Long vectors are clipped, whatever holds no number counts as zero, sparse rows are rows, and threads make no difference.
#[test]
fn rows_are_taken_as_they_should() {
    let randomizer = randomizer("privunit", 3, 2.0, 1.0);
    let of = |table: DenseTable<f64>, threads: usize| {
        let mut found = Vec::new();
        randomizer
            .reports(Private::new(table), Randomness::Seed(4), threads, &mut |r| found.push(r.to_vec()))
            .unwrap();
        found
    };
    let rows = |x: [f64; 3]| DenseTable::with_blocks(x.repeat(700), 3, 100).unwrap();
    // A power of two changes no digit.
    assert!(of(rows([0.6, 0.0, 0.8]), 1) == of(rows([0.6 * 1024.0, 0.0, 0.8 * 1024.0]), 3));
    assert!(of(rows([f64::NAN, 1.0, 2.0]), 1) == of(rows([0.0; 3]), 2));
    let offsets = (0..=700).collect();
    let sparse = CsrTable::new(offsets, vec![1; 700], vec![0.5; 700], 3).unwrap();
    let mut found = Vec::new();
    let certificate = randomizer
        .reports(Private::new(sparse), Randomness::Seed(4), 1, &mut |r| found.push(r.to_vec()))
        .unwrap();
    assert!(found == of(rows([0.0, 0.5, 0.0]), 1));
    assert_eq!((certificate.guarantee.epsilon.get(), certificate.guarantee.delta.get()), (2.0, 0.0));
    assert_eq!(certificate.guarantee.trust, Trust::Local);
    assert!(certificate.verify_allowing_seeded().unwrap().valid);
    let narrow = Private::new(DenseTable::new(vec![1.0f32, 2.0], 2).unwrap());
    assert!(randomizer.reports(narrow, Randomness::Seed(1), 1, &mut |_| ()).is_err());
    let mechanism = randomizer_named("duchi").unwrap();
    for (dimension, epsilon, radius) in [(0, 1.0, 1.0), (3, 0.0, 1.0), (3, 51.0, 1.0), (3, 1.0, f64::NAN)] {
        assert!(Randomizer::new(mechanism, dimension, Epsilon::new(epsilon).unwrap(), radius).is_err());
    }
}
