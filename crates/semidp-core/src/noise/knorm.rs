//! The K-norm law for the Euclidean ball: density ∝ e^{−‖x‖₂/b}. A uniform direction times a
//! Gamma(d) radius (Hardt and Talwar 2010).
//!
//! **Idealised arithmetic.** The direction and the radius come from the exact Gaussian sampler, but
//! their product is a rounded floating-point number: unlike the other laws here, the guarantee is
//! that of real-valued noise, and certificates say so.

use super::gaussian;
use super::rng::Stream;

/// Adds the rounded noise to the vector, for b = `scale` grid steps.
pub(crate) fn add_rounded_k_norm(values: &mut [i64], scale: u64, stream: &mut Stream) {
    let dimension = values.len();
    // Fine Gaussian numbers: the first d are the direction. Half the sum of the squares of 2d more is
    // Gamma(d) distributed.
    const STD: u64 = 1 << 40;
    let mut normal = vec![0i64; 3 * dimension];
    gaussian::add_rounded_gaussian(&mut normal, STD, stream);
    let unit = 1.0 / STD as f64;
    let square = |numbers: &[i64]| numbers.iter().map(|&k| (k as f64 * unit).powi(2)).sum::<f64>();
    let (direction, others) = normal.split_at(dimension);
    let length = square(direction).sqrt();
    if length == 0.0 {
        return add_rounded_k_norm(values, scale, stream);
    }
    let factor = scale as f64 * 0.5 * square(others) / length * unit;
    for (value, &k) in values.iter_mut().zip(direction) {
        *value = value.wrapping_add((k as f64 * factor).round() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Purpose, Randomness};
    use super::*;

    /// Mean squared norm d(d+1)b², and every coordinate its d-th part.
    #[test]
    fn second_moments() {
        let (d, b, rounds) = (20usize, (1u64 << 20) as f64, 20_000);
        let mut stream = Randomness::Seed(2).key(0).unwrap().stream(Purpose::Noise, 0, 0);
        let (mut total, mut first, mut mean) = (0.0, 0.0, 0.0);
        for _ in 0..rounds {
            let mut values = vec![0; d];
            add_rounded_k_norm(&mut values, 1 << 20, &mut stream);
            total += values.iter().map(|&v| (v as f64 / b).powi(2)).sum::<f64>();
            first += (values[0] as f64 / b).powi(2);
            mean += values[0] as f64 / b;
        }
        let (n, dim) = (f64::from(rounds), d as f64);
        let expected = dim * (dim + 1.0);
        // R² has variance d(d+1)(d+2)(d+3) − (d(d+1))²; a coordinate's square has second moment
        // 3 E R⁴/(d(d+2)).
        let fourth = dim * (dim + 1.0) * (dim + 2.0) * (dim + 3.0);
        let sd = (fourth - expected * expected).sqrt();
        assert!((total / n - expected).abs() < 6.5 * sd / n.sqrt(), "{} {expected}", total / n);
        let each = expected / dim;
        let sd = (3.0 * fourth / (dim * (dim + 2.0)) - each * each).sqrt();
        assert!((first / n - each).abs() < 6.5 * sd / n.sqrt(), "{} {each}", first / n);
        assert!((mean / n).abs() < 6.5 * each.sqrt() / n.sqrt());
    }
}
