//! How far anybody could get: the Bayes risk of public rows and averaged private gradients together, and how much of the
//! luck of a draw of public rows is left in it.
//!
//! T noised gradients with residuals clipped at k standard deviations say about w* as much as
//!
//! $$ \frac1{n_\text{eff}} = \min_k \frac{S(k)}{n_\text{priv}} + \Big(\frac{zk}{K P(k)}\Big)^2\frac dT $$
//!
//! rows would, in every direction. One step of all rows, K = n_priv and T = 1, is such a run too, and often the better
//! one. With public rows, of which λ_j are the eigenvalues of XᵀX, and with w* ~ N(0, I), which
//! is the law of the data, the excess loss is then at least Σ_j 1/(λ_j + n_eff + 1). Its expectation over normal rows
//! comes from the law of Marchenko and Pastur, without a spectrum.

use libm::{erf, exp, sqrt};
use std::f64::consts::{PI, SQRT_2};

/// P(|r| < k) for a standard normal residual.
fn inside(k: f64) -> f64 {
    erf(k / SQRT_2)
}

/// The sampling variance of a mean of clipped residuals over that of least squares.
fn inflation(k: f64) -> f64 {
    let (p, density) = (inside(k), exp(-0.5 * k * k) / sqrt(2.0 * PI));
    (p - 2.0 * k * density + k * k * (1.0 - p)) / (p * p)
}

/// A private run, as far as its information goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrivateRun {
    /// d.
    pub dimension: usize,
    /// n_priv.
    pub rows: usize,
    /// K.
    pub batch: usize,
    /// T.
    pub steps: u64,
    /// z.
    pub noise: f64,
}

impl PrivateRun {
    /// n_eff: rows without noise that would say as much.
    pub fn worth(&self) -> f64 {
        let inverse = |k: f64| {
            let noise = self.noise * k / (self.batch as f64 * inside(k));
            inflation(k) / self.rows as f64 + noise * noise * self.dimension as f64 / self.steps as f64
        };
        // Both terms are smooth and one falls where the other grows; a grid of one part in fifty misses nothing.
        let tried = (0..=350).map(|i| 0.01 * 1.02f64.powi(i));
        1.0 / tried.map(inverse).fold(f64::INFINITY, f64::min)
    }
}

/// E Σ_j 1/(λ_j + t) over n rows of d normal features, in the limit of Marchenko and Pastur; t > 0.
fn resolvent(dimension: usize, rows: usize, t: f64) -> f64 {
    let (d, n) = (dimension as f64, rows as f64);
    if rows == 0 {
        return d / t;
    }
    // The transform m of the spectrum of XᵀX/n at −x solves cx·m² + (1 − c + x)m − 1 = 0.
    let (c, x) = (d / n, t / n);
    let b = 1.0 - c + x;
    let root = sqrt(b * b + 4.0 * c * x);
    // The form without cancellation on either side of n = d.
    let m = if b > 0.0 { 2.0 / (b + root) } else { (root - b) / (2.0 * c * x) };
    d / n * m
}

/// The least expected test loss, label noise included.
pub fn limit(dimension: usize, public: usize, worth: f64) -> f64 {
    1.0 + resolvent(dimension, public, worth + 1.0)
}

/// How much of the excess loss of public rows alone, beyond its expectation, is left when they are weighted against
/// private rows worth n_eff: Σ λ/(λ + n_eff)² over Σ 1/λ. For at least as many public rows as columns.
pub fn luck_left(dimension: usize, public: usize, worth: f64) -> f64 {
    let step = 1e-4 * worth;
    let of = |t: f64| resolvent(dimension, public, t);
    // Σ λ/(λ + t)² = d/dt of t·Σ 1/(λ + t).
    let left = ((worth + step) * of(worth + step) - (worth - step) * of(worth - step)) / (2.0 * step);
    left / of(1e-9 * public as f64)
}

/// The expected test loss of least squares on so many public rows, with more rows than columns.
pub fn least_squares(dimension: usize, public: usize) -> Option<f64> {
    let left = public as f64 - dimension as f64 - 1.0;
    (left > 0.0).then(|| 1.0 + dimension as f64 / left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coins::Coins;

    /// The eigenvalues of XᵀX by Jacobi's rotations.
    fn spectrum(dimension: usize, rows: usize, stream: u64) -> Vec<f64> {
        let mut coins = Coins::new(8, stream);
        let x: Vec<Vec<f64>> = (0..rows).map(|_| coins.normals(dimension)).collect();
        let mut a: Vec<Vec<f64>> = (0..dimension)
            .map(|i| (0..dimension).map(|j| x.iter().map(|row| row[i] * row[j]).sum()).collect())
            .collect();
        for _ in 0..12 {
            for p in 0..dimension {
                for q in p + 1..dimension {
                    let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                    let (s, c) = angle.sin_cos();
                    for line in a.iter_mut() {
                        (line[p], line[q]) = (c * line[p] - s * line[q], s * line[p] + c * line[q]);
                    }
                    let (up, low) = (a[p].clone(), a[q].clone());
                    a[p] = up.iter().zip(&low).map(|(up, low)| c * up - s * low).collect();
                    a[q] = up.iter().zip(&low).map(|(up, low)| s * up + c * low).collect();
                }
            }
        }
        (0..dimension).map(|i| a[i][i]).collect()
    }

    /// With more rows than columns and with fewer. Linear statistics of such spectra fluctuate by about one part in d.
    #[test]
    fn sums_over_spectra_are_those_of_real_rows() {
        for (dimension, rows, t) in [(60, 180, 40.0), (60, 30, 25.0), (50, 400, 3.0), (40, 60, 200.0)] {
            let (mut found, mut left) = (0.0, 0.0);
            for stream in 0..4 {
                let spectrum = spectrum(dimension, rows, stream);
                found += spectrum.iter().map(|l| 1.0 / (l + t)).sum::<f64>() / 4.0;
                let weighted: f64 = spectrum.iter().map(|l| l / (l + t).powi(2)).sum();
                left += weighted / spectrum.iter().map(|l| 1.0 / l).sum::<f64>() / 4.0;
            }
            let ratio = resolvent(dimension, rows, t) / found;
            assert!((ratio - 1.0).abs() < 0.03, "{dimension} {rows}: {ratio}");
            if rows > 2 * dimension {
                let ratio = luck_left(dimension, rows, t) / left;
                assert!((ratio - 1.0).abs() < 0.06, "{dimension} {rows}: luck {ratio}");
            }
        }
    }

    /// Without noise or clipping private rows are worth their number; the specification's limits follow.
    #[test]
    fn limits_are_those_of_the_specification() {
        let run = PrivateRun { dimension: 2000, rows: 27_000, batch: 500, steps: 5000, noise: 1e-9 };
        assert!((run.worth() / 27_000.0 - 1.0).abs() < 1e-6);
        for (public, noise, expected) in [
            (300, 2.490, 1.115),
            (1200, 2.568, 1.114),
            (3000, 2.744, 1.112),
            (7500, 3.252, 1.107),
            (15_000, 4.805, 1.098),
            (22_500, 9.531, 1.086),
        ] {
            let run = PrivateRun { rows: 30_000 - public, noise, ..run };
            let found = limit(2000, public, run.worth());
            assert!((found - expected).abs() < 1.5e-3, "{public}: {found} {expected}");
        }
        assert_eq!(least_squares(2000, 1200), None);
        assert!((least_squares(2000, 7500).unwrap() - 1.363702491362066).abs() < 1e-12);
    }

    /// All of it without private rows, nothing of it with infinitely many.
    #[test]
    fn luck_passes_on_by_weight() {
        assert!((luck_left(2000, 28_500, 1e-3) - 1.0).abs() < 1e-4);
        assert!(luck_left(2000, 3000, 1e9) < 1e-6);
        let (half, most) = (luck_left(2000, 15_000, 8000.0), luck_left(2000, 28_500, 500.0));
        assert!(half < most && most < 1.0, "{half} {most}");
    }
}
