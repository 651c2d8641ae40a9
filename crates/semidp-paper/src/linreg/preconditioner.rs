//! What PDA-MD multiplies gradients by: (H/λ_min(H))⁻¹ with H = XᵀX/n_pub + (reg/d)I of public rows, written out.
//!
//! `semidp::train::MirrorMap` has the same matrix as a factor, which is right for one run. Here every private row is
//! multiplied by it beforehand, and whole matrices go through products.

use super::grid::Rows;
use crate::product::{Matrix, add_product_with};
use crate::{Error, Result};
use std::ops::Range;

/// Rows that are turned into double precision together.
const DEPTH: usize = 1024;
/// Steps of the power method, at most.
const MOST_STEPS: usize = 1000;
/// A change by less is none. What is sought scales learning rates, of which a grid has a few.
const ACCURACY: f64 = 1e-5;

/// (H/λ_min)⁻¹.
pub struct Preconditioner {
    /// Row by row.
    matrix: Vec<f32>,
    dimension: usize,
}

impl Preconditioner {
    /// Of some rows. `regularisation` is reg.
    pub fn new(rows: &Rows, public: Range<usize>, regularisation: f64, threads: usize) -> Result<Self> {
        let d = rows.dimension;
        let mut hessian = vec![0.0f64; d * d];
        let count = public.len().max(1) as f64;
        for first in public.clone().step_by(DEPTH) {
            let some = first * d..(first + DEPTH).min(public.end) * d;
            let block: Vec<f64> = rows.features[some].iter().map(|x| f64::from(*x)).collect();
            let block = Matrix::new(&block, d);
            add_product_with(threads, 1.0 / count, block.transposed(), block, &mut hessian);
        }
        (0..d).for_each(|i| hessian[i * d + i] += regularisation / d as f64);
        let mut inverse = inverse(hessian, d, threads)
            .ok_or_else(|| Error::Data("the Hessian of public rows is singular: regularise it".into()))?;
        let largest = largest_eigenvalue(&inverse, d);
        inverse.iter_mut().for_each(|entry| *entry /= largest);
        let matrix = inverse.iter().map(|x| *x as f32).collect();
        Ok(Self { matrix, dimension: d })
    }

    /// Every row times the matrix.
    pub fn rows(&self, features: &[f32], threads: usize) -> Vec<f32> {
        let mut product = vec![0.0; features.len()];
        let (rows, own) = (Matrix::new(features, self.dimension), Matrix::new(&self.matrix, self.dimension));
        add_product_with(threads, 1.0, rows, own, &mut product);
        product
    }
}

/// The inverse of a symmetric matrix with positive eigenvalues, by its Cholesky factor L: L⁻ᵀL⁻¹.
fn inverse(mut matrix: Vec<f64>, size: usize, threads: usize) -> Option<Vec<f64>> {
    for i in 0..size {
        let (above, own) = matrix.split_at_mut(i * size);
        for j in 0..i {
            let other = &above[j * size..][..=j];
            own[j] = (own[j] - dot(&own[..j], &other[..j])) / other[j];
        }
        let pivot = own[i] - dot(&own[..i], &own[..i]);
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        own[i] = pivot.sqrt();
    }
    // Row i of L⁻¹ follows from the rows above it.
    let mut lower = vec![0.0; size * size];
    for i in 0..size {
        let (above, own) = lower.split_at_mut(i * size);
        let factor = &matrix[i * size..][..=i];
        for (j, factor) in factor[..i].iter().enumerate() {
            own.iter_mut().zip(&above[j * size..][..=j]).for_each(|(to, x)| *to -= factor * x);
        }
        own[i] = 1.0;
        own[..=i].iter_mut().for_each(|x| *x /= factor[i]);
    }
    matrix.fill(0.0);
    let lower = Matrix::new(&lower, size);
    add_product_with(threads, 1.0, lower.transposed(), lower, &mut matrix);
    Some(matrix)
}

/// Of a symmetric matrix with positive eigenvalues, by the power method.
fn largest_eigenvalue(matrix: &[f64], size: usize) -> f64 {
    // Any vector will do that is not orthogonal to the one that is sought.
    let mut vector: Vec<f64> = crate::coins::Coins::new(1, 0).normals(size);
    let mut found = 0.0;
    for _ in 0..MOST_STEPS {
        let length = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|x| *x /= length);
        let next: Vec<f64> = matrix.chunks_exact(size).map(|line| dot(line, &vector)).collect();
        let value = dot(&vector, &next);
        let is_done = (value - found).abs() <= ACCURACY * value;
        (vector, found) = (next, value);
        if is_done {
            break;
        }
    }
    found
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut lanes = [0.0f64; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coins::Coins;
    use crate::regression::{Features, Law};
    use semidp::loss::Squared;
    use semidp::train::{MirrorMap, Model};

    /// With more rows than columns and with fewer, where the regularisation is the least eigenvalue.
    #[test]
    fn it_is_the_matrix_of_the_mirror_map() {
        let law = Law { features: Features::Normal, dimension: 30, label_std: 1.0 };
        for count in [90, 20] {
            let draw = law.draw(count, 1, &mut Coins::new(2, 0)).unwrap();
            let rows = super::super::prepared::rows_of(&draw).unwrap();
            let own = Preconditioner::new(&rows, 0..count, 0.01, 2).unwrap();
            let zero = Model::zero(30, 1, false);
            let theirs = MirrorMap::new(&Squared, &draw.public, &zero, 0.01).unwrap();
            let vector: Vec<f64> = Coins::new(3, 0).normals(30);
            let mut expected = vector.clone();
            theirs.precondition(&mut expected);
            let single: Vec<f32> = vector.iter().map(|x| *x as f32).collect();
            for (found, expected) in own.rows(&single, 1).iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 1e-3, "{count}: {found} {expected}");
            }
        }
    }
}
