//! Numbers for the tests of this module.

use super::PublicRows;
use semidp_core::{DenseTable, Public};

/// From −½ to ½.
pub fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    (0..count).map(|_| next()).collect()
}

/// Normal ones, by Box and Muller.
pub fn normals(count: usize, seed: u64) -> Vec<f64> {
    let uniform = numbers(2 * count, seed);
    let normal =
        |pair: &[f64]| (-2.0 * (0.5 - pair[0]).ln()).sqrt() * (std::f64::consts::TAU * pair[1]).cos();
    uniform.chunks_exact(2).map(normal).collect()
}

/// Rows of such numbers, each with a label after it.
pub fn public_rows(values: Vec<f64>, features: usize) -> PublicRows {
    PublicRows::load(&Public(DenseTable::new(values, features + 1).unwrap())).unwrap()
}

/// Rows whose labels are classes, one after the other.
pub fn classes(count: usize, features: usize, classes: usize) -> PublicRows {
    let mut values = numbers(count * (features + 1), 8);
    let rows = values.chunks_exact_mut(features + 1).enumerate();
    rows.for_each(|(i, row)| row[features] = (i % classes) as f64);
    public_rows(values, features)
}
