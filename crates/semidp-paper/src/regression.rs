//! Linear regression on synthetic rows: y = ⟨x, w*⟩ + normal noise, w* standard normal. The test loss is exact.

use crate::Result;
use crate::coins::Coins;
use semidp::loss::Squared;
use semidp::train::{Model, PublicRows, minimise};
use semidp_core::{DenseTable, Public};
use std::sync::Arc;

/// The law of x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Features {
    /// Independent standard normal numbers, as in the paper.
    Normal,
    /// 40 of the first fifth of the columns and 80 of the others are 0.05, the rest 0. So `data/linear_reg_dataset.py` of
    /// the paper's released code has it, which we take for the data set of Amid et al. (2022). The two counts are fixed,
    /// so that one direction has no second moment at all.
    FixedCounts,
}

/// Of the fixed counts: among the first columns, among the others, and the number there.
const COUNTS: [usize; 2] = [40, 80];
const LEVEL: f64 = 0.05;

/// The law of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    pub features: Features,
    /// d.
    pub dimension: usize,
    /// Of the noise on labels.
    pub label_std: f64,
}

/// Rows of one w*.
pub struct Draw {
    pub truth: Vec<f64>,
    pub public: PublicRows,
    pub private: Arc<DenseTable<f32>>,
}

impl Law {
    /// Draws w*, and rows of it.
    pub fn draw(&self, public: usize, private: usize, coins: &mut Coins) -> Result<Draw> {
        let truth = coins.normals(self.dimension);
        let public = PublicRows::load(&Public(self.rows(public, &truth, coins)?))?;
        let private = Arc::new(self.rows(private, &truth, coins)?);
        Ok(Draw { truth, public, private })
    }

    fn rows(&self, count: usize, truth: &[f64], coins: &mut Coins) -> Result<DenseTable<f32>> {
        let width = self.dimension + 1;
        let mut values = Vec::with_capacity(count * width);
        for _ in 0..count {
            let x = self.features(coins);
            let score: f64 = x.iter().zip(truth).map(|(x, w)| x * w).sum();
            values.extend(x.iter().map(|x| *x as f32));
            values.push((score + self.label_std * coins.normals(1)[0]) as f32);
        }
        Ok(DenseTable::new(values, width)?)
    }

    fn features(&self, coins: &mut Coins) -> Vec<f64> {
        match self.features {
            Features::Normal => coins.normals(self.dimension),
            Features::FixedCounts => {
                let mut x = vec![0.0; self.dimension];
                for (columns, count) in self.parts().into_iter().zip(COUNTS) {
                    // The first numbers of a random order.
                    let mut order: Vec<usize> = columns.collect();
                    for i in 0..count {
                        let left = (order.len() - i) as f64;
                        order.swap(i, i + (coins.uniform() * left) as usize);
                        x[order[i]] = LEVEL;
                    }
                }
                x
            }
        }
    }

    /// Columns of either count.
    fn parts(&self) -> [std::ops::Range<usize>; 2] {
        let first = self.dimension / 5;
        [0..first, first..self.dimension]
    }

    /// E(⟨w, x⟩ − y)² over a fresh row.
    pub fn test_loss(&self, truth: &[f64], w: &[f64]) -> f64 {
        let gaps: Vec<f64> = w.iter().zip(truth).map(|(w, t)| w - t).collect();
        let excess = match self.features {
            Features::Normal => gaps.iter().map(|gap| gap * gap).sum::<f64>(),
            Features::FixedCounts => {
                // A sum over k of N columns without replacement has mean k·ḡ and variance k·S²(1 − k/N).
                let (mut mean, mut variance) = (0.0, 0.0);
                for (columns, count) in self.parts().into_iter().zip(COUNTS) {
                    let (part, k) = (&gaps[columns], count as f64);
                    let size = part.len() as f64;
                    let centre = part.iter().sum::<f64>() / size;
                    let squares: f64 = part.iter().map(|gap| (gap - centre).powi(2)).sum();
                    mean += k * centre;
                    variance += k * squares / (size - 1.0) * (1.0 - k / size);
                }
                LEVEL * LEVEL * (mean * mean + variance)
            }
        };
        self.label_std.powi(2) + excess
    }
}

impl Draw {
    /// The minimiser of the public loss; the one of least norm if there are several.
    pub fn public_minimiser(&self) -> Model {
        let shape = Model::zero(self.truth.len(), 1, false);
        shape.with_weights(minimise(&Squared, &self.public, &shape, 0.0))
    }

    /// The median length of public gradients at a model.
    pub fn median_gradient(&self, model: &Model) -> f64 {
        let length = |row: usize| {
            let residual = self.public.dot(row, &model.weights) - self.public.label(row);
            residual.abs() * self.public.squared_norm(row).sqrt()
        };
        let mut lengths: Vec<f64> = (0..self.public.len()).map(length).collect();
        lengths.sort_by(f64::total_cmp);
        lengths[lengths.len() / 2]
    }
}

/// The mean and its standard error, of at least two numbers.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: Law = Law { features: Features::Normal, dimension: 20, label_std: 1.0 };
    const COUNTED: Law = Law { features: Features::FixedCounts, dimension: 500, label_std: 0.1 };

    /// The mean of squared residuals over many rows is the exact test loss, within 6.5 standard errors.
    #[test]
    fn test_losses_are_exact() {
        let count = 20_000;
        for law in [NORMAL, COUNTED] {
            let draw = law.draw(count, 1, &mut Coins::new(3, 0)).unwrap();
            let w = Coins::new(4, 0).normals(law.dimension);
            let residual = |row: usize| draw.public.dot(row, &w) - draw.public.label(row);
            let squares: Vec<f64> = (0..count).map(|row| residual(row).powi(2)).collect();
            let ((found, error), expected) = (mean_and_error(&squares), law.test_loss(&draw.truth, &w));
            assert!((found - expected).abs() < 6.5 * error, "{law:?}: {found} {expected} {error}");
            assert_eq!(law.test_loss(&draw.truth, &draw.truth), law.label_std.powi(2));
        }
    }

    /// Every row has its two counts, every column its mean, and the direction that the counts fix has no moment.
    #[test]
    fn counts_are_fixed() {
        let count = 10_000;
        let rows = COUNTED.draw(count, 1, &mut Coins::new(5, 0)).unwrap().public;
        let mut sums = vec![0.0; 500];
        // Orthogonal to the mean row: 40 of 100 columns and 80 of 400.
        let blind: Vec<f64> = (0..500).map(|j| if j < 100 { 80.0 } else { -40.0 }).collect();
        for row in 0..count {
            assert!((rows.squared_norm(row) - 120.0 * LEVEL * LEVEL).abs() < 1e-6);
            assert!(rows.dot(row, &blind).abs() < 1e-3, "{}", rows.dot(row, &blind));
            rows.add_scaled(row, 1.0 / (LEVEL * count as f64), &mut sums);
        }
        for (j, share) in sums.iter().enumerate() {
            let expected: f64 = if j < 100 { 0.4 } else { 0.2 };
            let bound = 6.5 * (expected * (1.0 - expected) / count as f64).sqrt();
            assert!((share - expected).abs() < bound + 1e-6, "{j}: {share}");
        }
    }

    #[test]
    fn public_minimisers_have_the_loss_of_least_squares() {
        // E excess = d/(n − d − 1) = 20/79, over 200 draws; its law is nearly that of a normal number.
        let losses: Vec<f64> = (0..200)
            .map(|stream| {
                let draw = NORMAL.draw(100, 1, &mut Coins::new(6, stream)).unwrap();
                NORMAL.test_loss(&draw.truth, &draw.public_minimiser().weights)
            })
            .collect();
        let (found, error) = mean_and_error(&losses);
        assert!((found - 1.0 - 20.0 / 79.0).abs() < 6.5 * error, "{found} {error}");
    }
}
