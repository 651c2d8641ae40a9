//! Many runs of one draw at once: the paper's grid search, which trains the same rows with the same noise under some two
//! hundred learning rates and weights.
//!
//! This is an emulation on synthetic rows, for figures. Its noise is floating and its random source small; it never
//! touches the kernel, debits nothing and certifies nothing. What anybody should run on private rows is in
//! `semidp::train`; a grid of runs there would cost as many programs as it has entries.
//!
//! Runs are kept as differences V from their common start, a column each. A step gathers the rows of its batches and its
//! noise into one block, so that two products are all of it: scores = block·V, and V ← V − blockᵀ·F, where F has the
//! clipped residuals times step size and weight. A run by mirror descent has its gradients multiplied by a matrix P: with
//! w = start + P·V the update of V stays as it is, and scores are those of rows that were multiplied by P beforehand.

use crate::coins::Coins;
use crate::product::{Matrix, Real};
use semidp::wide;
use std::ops::Range;

/// Up to so many runs are done row by row, without products: the block is then read from memory once, not gathered,
/// packed and read twice.
const FEW: usize = 3;
/// The paper's clip norm.
pub const CLIP_NORM: f32 = 1.0;

/// Rows of normal features in one block.
pub struct Rows {
    pub dimension: usize,
    /// `dimension` numbers a row.
    pub features: Vec<f32>,
    pub labels: Vec<f32>,
    /// ‖x‖, a row an entry.
    pub lengths: Vec<f32>,
}

impl Rows {
    /// Of rows that have their label after their features.
    pub fn new(dimension: usize, labelled: impl Iterator<Item = f32>) -> Self {
        let mut rows = Self { dimension, features: Vec::new(), labels: Vec::new(), lengths: Vec::new() };
        let mut column = 0;
        for value in labelled {
            if column < dimension {
                rows.features.push(value);
                column += 1;
            } else {
                rows.labels.push(value);
                column = 0;
            }
        }
        let length = |x: &[f32]| x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32;
        rows.lengths = rows.features.chunks_exact(dimension).map(length).collect();
        rows
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.features[row * self.dimension..][..self.dimension]
    }

    /// ⟨w, x⟩ − y, a row an entry.
    pub fn residuals(&self, w: &[f64]) -> Vec<f32> {
        let residual = |row: usize| {
            let score: f64 = self.row(row).iter().zip(w).map(|(x, w)| f64::from(*x) * w).sum();
            (score - f64::from(self.labels[row])) as f32
        };
        (0..self.len()).map(residual).collect()
    }
}

/// What is tuned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Configuration {
    /// η.
    pub rate: f64,
    /// α: the weight of the private gradient, 1 without public ones.
    pub alpha: f64,
}

/// What runs have in common.
#[derive(Clone)]
pub struct Shared<'a> {
    pub rows: &'a Rows,
    /// Of the start, a row an entry.
    pub residuals: &'a [f32],
    /// Rows that are clipped and noised.
    pub private: Range<usize>,
    /// Rows whose gradients are mixed in.
    pub public: Range<usize>,
    /// Private rows times P, for mirror descent.
    pub mirrored: Option<&'a [f32]>,
    /// K: sums of private gradients are divided by it, and a private row is drawn with probability K/n_priv.
    pub batch: usize,
    /// Drawn with replacement.
    pub public_batch: usize,
    /// T.
    pub steps: u64,
    /// Iterates of earlier steps are in no mean.
    pub averaged_after: u64,
    /// Of the noise on the sum, over the clip norm.
    pub noise: f64,
    /// Batches and noise depend on nothing else, so that runs with the same seed share them.
    pub seed: u64,
}

/// Where runs ended, as differences from the start (in the coordinates of V), a run a vector.
pub struct Ends {
    /// The last iterates.
    pub last: Vec<Vec<f32>>,
    /// The means of late ones.
    pub averaged: Vec<Vec<f32>>,
}

/// What one step drew.
#[derive(Default)]
struct Batch {
    private: Vec<usize>,
    public: Vec<usize>,
    noise: Vec<f32>,
}

/// What the residual of a private row, or of a public one, is multiplied into a step with.
struct Weights {
    private: f32,
    public: f32,
    noise: f32,
}

impl Shared<'_> {
    /// Trains. Results do not depend on which runs are done together, beyond rounding.
    pub fn run(&self, configurations: &[Configuration]) -> Ends {
        let weights: Vec<Weights> = configurations
            .iter()
            .map(|Configuration { rate, alpha }| Weights {
                private: (rate * alpha / self.batch as f64) as f32,
                public: (rate * (1.0 - alpha) / self.public_batch.max(1) as f64) as f32,
                noise: (rate * alpha / self.batch as f64 * self.noise * f64::from(CLIP_NORM)) as f32,
            })
            .collect();
        if configurations.len() <= FEW { self.few(&weights) } else { self.many(&weights) }
    }

    fn draw(&self, coins: &mut Coins, batch: &mut Batch) {
        let chance = self.batch as f64 / self.private.len() as f64;
        batch.private.clear();
        batch.private.extend(self.private.clone().filter(|_| coins.uniform() < chance));
        batch.public.clear();
        let (first, count) = (self.public.start, self.public.len());
        let wanted = if count == 0 { 0 } else { self.public_batch };
        batch.public.extend((0..wanted).map(|_| first + (coins.uniform() * count as f64) as usize));
        batch.noise.clear();
        batch.noise.extend(coins.normals(self.rows.dimension).iter().map(|x| *x as f32));
    }

    /// The row that a private row's score is computed with.
    fn scored(&self, row: usize) -> &[f32] {
        match self.mirrored {
            None => self.rows.row(row),
            Some(mirrored) => {
                &mirrored[(row - self.private.start) * self.rows.dimension..][..self.rows.dimension]
            }
        }
    }

    /// What a private row is added with: its gradient 2r·x, no longer than the clip norm.
    fn clipped(&self, row: usize, residual: f32) -> f32 {
        let slope = 2.0 * residual;
        let length = self.rows.lengths[row];
        if slope.abs() * length > CLIP_NORM { CLIP_NORM / length * slope.signum() } else { slope }
    }

    /// What a public row is added with: its gradient made as long as the clip norm, whatever it was.
    fn rescaled(&self, row: usize, residual: f32) -> f32 {
        if residual == 0.0 { 0.0 } else { CLIP_NORM / self.rows.lengths[row] * residual.signum() }
    }

    fn is_averaged(&self, step: u64) -> bool {
        step > self.averaged_after
    }

    /// How many iterates a mean has.
    fn averaged(&self) -> f32 {
        (self.steps - self.averaged_after) as f32
    }

    fn many(&self, weights: &[Weights]) -> Ends {
        let (d, runs) = (self.rows.dimension, weights.len());
        let (mut v, mut sum) = (vec![0.0f32; d * runs], vec![0.0f32; d * runs]);
        let (mut block, mut mirrored, mut scores) = (Vec::new(), Vec::new(), Vec::new());
        let (mut coins, mut batch) = (Coins::new(self.seed, 0), Batch::default());
        for step in 1..=self.steps {
            self.draw(&mut coins, &mut batch);
            block.clear();
            batch
                .private
                .iter()
                .chain(&batch.public)
                .for_each(|row| block.extend_from_slice(self.rows.row(*row)));
            let count = batch.private.len() + batch.public.len();
            scores.clear();
            scores.resize(count * runs, 0.0f32);
            let v_matrix = Matrix::new(&v, runs);
            if self.mirrored.is_some() {
                mirrored.clear();
                batch.private.iter().for_each(|row| mirrored.extend_from_slice(self.scored(*row)));
                f32::add_product(1.0, Matrix::new(&mirrored, d), v_matrix, &mut scores);
            } else {
                f32::add_product(1.0, Matrix::new(&block, d), v_matrix, &mut scores);
            }
            let (private, public) = scores.split_at_mut(batch.private.len() * runs);
            for (row, scores) in batch.private.iter().zip(private.chunks_exact_mut(runs)) {
                for (score, weight) in scores.iter_mut().zip(weights) {
                    *score = weight.private * self.clipped(*row, self.residuals[*row] + *score);
                }
            }
            for (row, scores) in batch.public.iter().zip(public.chunks_exact_mut(runs)) {
                for (score, weight) in scores.iter_mut().zip(weights) {
                    *score = weight.public * self.rescaled(*row, self.residuals[*row] + *score);
                }
            }
            // The noise is one more row.
            block.extend_from_slice(&batch.noise);
            scores.extend(weights.iter().map(|weight| weight.noise));
            let factors = Matrix::new(&scores, runs);
            f32::add_product(-1.0, Matrix::new(&block, d).transposed(), factors, &mut v);
            if self.is_averaged(step) {
                sum.iter_mut().zip(&v).for_each(|(sum, v)| *sum += v);
            }
        }
        let columns = |matrix: &[f32], divisor: f32| -> Vec<Vec<f32>> {
            (0..runs)
                .map(|run| matrix.iter().skip(run).step_by(runs).map(|x| x / divisor).collect())
                .collect()
        };
        Ends { last: columns(&v, 1.0), averaged: columns(&sum, self.averaged()) }
    }

    fn few(&self, weights: &[Weights]) -> Ends {
        let nothing = || vec![vec![0.0f32; self.rows.dimension]; weights.len()];
        let (mut v, mut sum, mut moves) = (nothing(), nothing(), nothing());
        let (mut coins, mut batch) = (Coins::new(self.seed, 0), Batch::default());
        for step in 1..=self.steps {
            self.draw(&mut coins, &mut batch);
            for (moves, weight) in moves.iter_mut().zip(weights) {
                moves.iter_mut().zip(&batch.noise).for_each(|(to, noise)| *to = weight.noise * noise);
            }
            // A row is fetched once, for all runs.
            for &row in &batch.private {
                let (x, scored) = (self.rows.row(row), self.scored(row));
                for ((moves, v), weight) in moves.iter_mut().zip(&v).zip(weights) {
                    let mut residual = self.residuals[row];
                    wide::add_dot(&mut residual, scored, v);
                    wide::add(moves, weight.private * self.clipped(row, residual), x);
                }
            }
            for &row in &batch.public {
                let x = self.rows.row(row);
                for ((moves, v), weight) in moves.iter_mut().zip(&v).zip(weights) {
                    let mut residual = self.residuals[row];
                    wide::add_dot(&mut residual, x, v);
                    wide::add(moves, weight.public * self.rescaled(row, residual), x);
                }
            }
            for ((v, moves), sum) in v.iter_mut().zip(&moves).zip(&mut sum) {
                v.iter_mut().zip(moves).for_each(|(v, step)| *v -= step);
                if self.is_averaged(step) {
                    sum.iter_mut().zip(&*v).for_each(|(sum, v)| *sum += v);
                }
            }
        }
        sum.iter_mut().flatten().for_each(|sum| *sum /= self.averaged());
        Ends { last: v, averaged: sum }
    }
}

wide! {
    fn add_dot(to: &mut f32, a: &[f32], b: &[f32]);
    fn add(to: &mut [f32], factor: f32, x: &[f32]);
}

/// In sixteen lanes, which a compiler turns into vectors.
#[inline(always)]
fn add_dot(to: &mut f32, a: &[f32], b: &[f32]) {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    let mut lanes = [0.0f32; 16];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    *to += lanes.iter().sum::<f32>() + rest;
}

#[inline(always)]
fn add(to: &mut [f32], factor: f32, x: &[f32]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += factor * x);
}

#[cfg(test)]
mod tests;
