//! Least squares by conjugate gradients.
//!
//! From zero, conjugate gradients on the normal equations stay in the span of the rows: with more rows than
//! columns they end at the least-squares solution, with fewer at the one of minimum norm, with a ridge at the
//! ridge solution. No matrix is formed, and sparse rows stay sparse.

use super::{Model, PublicRows};

/// Steps before rounding makes more of them useless.
const MOST_STEPS: usize = 2000;
/// The gradient is this much smaller than at the start.
const ACCURACY: f64 = 1e-12;

/// argmin (1/n)Σ ½(⟨w, x⟩ − y)² + (ridge/2)‖w‖². The intercept, if there is one, is penalised like the rest.
pub fn least_squares(rows: &PublicRows, shape: &Model, ridge: f64) -> Vec<f64> {
    let n = rows.len() as f64;
    let times = |w: &[f64]| -> Vec<f64> {
        let intercept = if shape.has_intercept { w[shape.features] } else { 0.0 };
        let mut scores = rows.all_dots(0..rows.len(), w, shape.stride(), 1);
        scores.iter_mut().for_each(|score| *score += intercept);
        scores
    };
    let transposed = |r: &[f64]| -> Vec<f64> {
        let mut sum = vec![0.0; shape.stride()];
        rows.add_all_scaled(0..rows.len(), r, 1, shape.stride(), &mut sum);
        if shape.has_intercept {
            r.iter().for_each(|factor| sum[shape.features] += factor);
        }
        sum
    };
    let square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    let mut w = vec![0.0; shape.stride()];
    let mut residual: Vec<f64> = (0..rows.len()).map(|row| rows.label(row)).collect();
    let mut gradient = transposed(&residual);
    let mut direction = gradient.clone();
    let mut size = square(&gradient);
    let goal = size * ACCURACY * ACCURACY;
    for _ in 0..MOST_STEPS {
        if size <= goal {
            break;
        }
        let image = times(&direction);
        let step = size / (square(&image) + n * ridge * square(&direction));
        w.iter_mut().zip(&direction).for_each(|(w, p)| *w += step * p);
        residual.iter_mut().zip(&image).for_each(|(r, q)| *r -= step * q);
        gradient = transposed(&residual);
        gradient.iter_mut().zip(&w).for_each(|(g, w)| *g -= n * ridge * w);
        let next = square(&gradient);
        direction.iter_mut().zip(&gradient).for_each(|(p, g)| *p = g + next / size * *p);
        size = next;
    }
    w
}
