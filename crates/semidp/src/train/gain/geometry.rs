//! Directions in which public rows tell curvature apart.
//!
//! The Hessian of a mean loss over k scores is taken as B ⊗ S: S is the second moment of rows (x, 1), weighted by the
//! curvature of each, and B the mean curvature in the scores, which is 1 for one score. Its eigenvectors are those of B
//! and S. Rows fewer than columns span few directions; all others share one curvature, so that nothing larger than the
//! rows themselves is stored.

use crate::loss::Loss;
use crate::train::eigen::{Eigen, dot, eigen};
use crate::train::hessian::curvature_factor;
use crate::train::tile::add_square;
use crate::train::wide::wide;
use crate::train::{Model, PublicRows};

/// Columns up to which all second moments are written out.
const MOST_COLUMNS: usize = 4096;
/// Rows that directions are taken from where columns are more.
const MOST_ROWS: usize = 2048;
/// Rows or columns that are added to a matrix together.
const DEPTH: usize = 64;
/// Shares of the largest eigenvalue below which there is nothing but rounding.
const NOUGHT: f64 = 1e-10;
/// The least curvature, as a share of the mean one.
const LEAST: f64 = 1e-6;

/// Eigenvectors of the public Hessian, and its eigenvalues.
pub(super) struct Geometry {
    outputs: usize,
    /// Columns of a row, with that of the intercept.
    width: usize,
    has_intercept: bool,
    /// Eigenvectors of B, a row each.
    score_vectors: Vec<f64>,
    score_values: Vec<f64>,
    /// Eigenvectors of S that are told apart, a row each.
    vectors: Vec<f64>,
    values: Vec<f64>,
    /// The second moment in every other direction.
    other: f64,
    /// The weight of the identity in a well-conditioned estimate of S.
    shrinkage: f64,
    mean: f64,
}

/// A vector of weights in the directions of a [`Geometry`].
#[derive(Clone)]
pub(super) struct Turned {
    /// Score direction by score direction, along each direction that is told apart.
    pub(super) along: Vec<f64>,
    /// What lies in the others, in columns; empty if there are none.
    pub(super) rest: Vec<f64>,
}

impl Geometry {
    /// Of the loss at a model, from some of the rows.
    pub(super) fn new(loss: &dyn Loss, model: &Model, rows: &PublicRows) -> Self {
        let (outputs, width, count) = (model.outputs, model.stride(), rows.len());
        let mut scores = vec![0.0; outputs];
        let mut weights = vec![0.0; count];
        let mut score_matrix = vec![0.0; outputs * outputs];
        for (row, weight) in weights.iter_mut().enumerate() {
            model.scores_into(rows, row, &mut scores);
            let factor = curvature_factor(loss, &scores, rows.label(row));
            for i in 0..outputs {
                for j in 0..outputs {
                    let entry = dot(&factor[i * outputs..][..outputs], &factor[j * outputs..][..outputs]);
                    score_matrix[i * outputs + j] += entry / count as f64;
                    *weight += if i == j { entry } else { 0.0 };
                }
            }
        }
        // B has the size of the curvature, S its shape.
        let trace: f64 = weights.iter().sum::<f64>() / count as f64;
        if outputs > 1 && trace > 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= trace);
        } else {
            score_matrix[0] = 1.0;
        }
        let of_scores = eigen(score_matrix, outputs);
        let lengths: Vec<f64> = (0..count)
            .map(|row| weights[row] * (rows.squared_norm(row) + f64::from(u8::from(model.has_intercept))))
            .collect();
        let all = lengths.iter().sum::<f64>() / count as f64;
        let mut found = Self {
            outputs,
            width,
            has_intercept: model.has_intercept,
            score_vectors: of_scores.vectors,
            score_values: of_scores.values,
            vectors: Vec::new(),
            values: Vec::new(),
            other: 0.0,
            shrinkage: 0.0,
            mean: all / width as f64,
        };
        let (values, vectors) = if count < width || width > MOST_COLUMNS {
            found.by_rows(rows, &weights)
        } else {
            found.by_columns(rows, &weights)
        };
        let beyond = width - values.len();
        if beyond > 0 {
            found.other = ((all - values.iter().sum::<f64>()) / beyond as f64).max(0.0);
        }
        (found.values, found.vectors) = (values, vectors);
        found.shrinkage = found.ledoit_wolf(&lengths);
        found
    }

    /// Every column of a row.
    fn fill(&self, rows: &PublicRows, row: usize, scale: f64, mut put: impl FnMut(usize, f64)) {
        rows.entries(row).for_each(|(j, x)| put(j, scale * x));
        if self.has_intercept {
            put(self.width - 1, scale);
        }
    }

    /// Eigenvectors of S itself.
    fn by_columns(&self, rows: &PublicRows, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let size = self.width;
        let mut matrix = vec![0.0; size * size];
        let mut panel = vec![0.0; size * DEPTH];
        for start in (0..rows.len()).step_by(DEPTH) {
            panel.fill(0.0);
            for row in start..rows.len().min(start + DEPTH) {
                let scale = (weights[row] / rows.len() as f64).sqrt();
                self.fill(rows, row, scale, |j, x| panel[j * DEPTH + row - start] = x);
            }
            add_square(&mut matrix, size, 0, &panel, DEPTH, 1.0);
        }
        mirror(&mut matrix, size);
        let Eigen { mut values, vectors } = eigen(matrix, size);
        values.iter_mut().for_each(|value| *value = value.max(0.0));
        (values, vectors)
    }

    /// The same from products of rows, where they are fewer; all of them, or an even choice of those that count.
    fn by_rows(&self, rows: &PublicRows, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let counting: Vec<usize> = (0..rows.len()).filter(|row| weights[*row] > 0.0).collect();
        let step = counting.len().div_ceil(MOST_ROWS).max(1);
        let chosen: Vec<usize> = counting.into_iter().step_by(step).collect();
        let size = chosen.len();
        let share = step as f64 / rows.len() as f64;
        let mut table = vec![0.0; size * self.width];
        for (row, line) in chosen.iter().zip(table.chunks_exact_mut(self.width)) {
            self.fill(rows, *row, (weights[*row] * share).sqrt(), |j, x| line[j] = x);
        }
        let mut matrix = vec![0.0; size * size];
        let mut panel = vec![0.0; size * DEPTH];
        for start in (0..self.width).step_by(DEPTH) {
            let depth = DEPTH.min(self.width - start);
            panel.fill(0.0);
            for (line, part) in table.chunks_exact(self.width).zip(panel.chunks_exact_mut(DEPTH)) {
                part[..depth].copy_from_slice(&line[start..start + depth]);
            }
            add_square(&mut matrix, size, 0, &panel, DEPTH, 1.0);
        }
        mirror(&mut matrix, size);
        let found = eigen(matrix, size);
        let least = NOUGHT * found.values.last().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let (mut values, mut vectors) = (Vec::new(), Vec::new());
        for (value, mix) in found.values.iter().zip(found.vectors.chunks_exact(size.max(1))) {
            if *value <= least || values.len() == self.width {
                continue;
            }
            let mut vector = vec![0.0; self.width];
            for (share, line) in mix.iter().zip(table.chunks_exact(self.width)) {
                vector.iter_mut().zip(line).for_each(|(v, x)| *v += share * x);
            }
            vector.iter_mut().for_each(|v| *v /= value.sqrt());
            values.push(*value);
            vectors.extend(vector);
        }
        (values, vectors)
    }

    /// How far sampling blurs S, as a share of how far S is from a multiple of the identity (Ledoit and Wolf 2004).
    fn ledoit_wolf(&self, lengths: &[f64]) -> f64 {
        let count = lengths.len() as f64;
        let beyond = (self.width - self.values.len()) as f64;
        let squares = self.values.iter().map(|x| x * x).sum::<f64>() + beyond * self.other * self.other;
        let apart = squares - self.width as f64 * self.mean * self.mean;
        let blur = lengths.iter().map(|x| x * x).sum::<f64>() / (count * count) - squares / count;
        if apart > 0.0 { (blur / apart).clamp(0.0, 1.0) } else { 1.0 }
    }

    /// Directions of S that are told apart.
    pub(super) fn rank(&self) -> usize {
        self.values.len()
    }

    /// Numbers that [`Geometry::curvatures`] gives: along each direction told apart, then one for all others, for each
    /// direction of the scores.
    pub(super) fn directions(&self) -> usize {
        self.outputs * (self.rank() + 1)
    }

    /// How many directions each of those numbers stands for.
    pub(super) fn multiplicities(&self) -> Vec<f64> {
        let mut each = vec![1.0; self.rank()];
        each.push((self.width - self.rank()) as f64);
        each.repeat(self.outputs)
    }

    /// B ⊗ S as rows have it.
    pub(super) fn sampled(&self) -> Vec<f64> {
        self.products(&|value| value)
    }

    /// A well-conditioned estimate of the same for rows that were not seen.
    pub(super) fn curvatures(&self) -> Vec<f64> {
        let least = LEAST * self.mean * self.score_values.iter().sum::<f64>() / self.outputs as f64;
        let shrunk = |value: f64| (1.0 - self.shrinkage) * value + self.shrinkage * self.mean;
        self.products(&shrunk).into_iter().map(|value| value.max(least)).collect()
    }

    fn products(&self, of: &dyn Fn(f64) -> f64) -> Vec<f64> {
        let moments: Vec<f64> = self.values.iter().chain([&self.other]).map(|value| of(*value)).collect();
        let scores = self.score_values.iter().map(|value| value.max(0.0));
        scores
            .flat_map(|score| moments.iter().map(move |moment| score * moment).collect::<Vec<_>>())
            .collect()
    }

    /// Weights of all outputs, in these directions.
    pub(super) fn turn(&self, weights: &[f64]) -> Turned {
        let mixed = self.mix_scores(weights, |a, c| self.score_vectors[a * self.outputs + c]);
        let mut along = vec![0.0; self.outputs * self.rank()];
        wide::dots(&self.vectors, &mixed, self.width, &mut along);
        let mut rest = if self.rank() < self.width { mixed } else { Vec::new() };
        wide::add_along(&self.vectors, &along, -1.0, self.width, &mut rest);
        Turned { along, rest }
    }

    /// Back again.
    pub(super) fn turn_back(&self, turned: &Turned) -> Vec<f64> {
        let mut mixed =
            if turned.rest.is_empty() { vec![0.0; self.outputs * self.width] } else { turned.rest.clone() };
        wide::add_along(&self.vectors, &turned.along, 1.0, self.width, &mut mixed);
        self.mix_scores(&mixed, |c, a| self.score_vectors[a * self.outputs + c])
    }

    /// Σ_j coefficient(i, j)·part_j for every output i.
    fn mix_scores(&self, weights: &[f64], coefficient: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        if self.outputs == 1 {
            return weights.to_vec();
        }
        let mut mixed = vec![0.0; weights.len()];
        for (i, part) in mixed.chunks_exact_mut(self.width).enumerate() {
            for (j, other) in weights.chunks_exact(self.width).enumerate() {
                let c = coefficient(i, j);
                part.iter_mut().zip(other).for_each(|(sum, x)| *sum += c * x);
            }
        }
        mixed
    }

    /// Σ over directions of squared components times a number a direction.
    pub(super) fn weighted_square(&self, turned: &Turned, numbers: &[f64]) -> f64 {
        let stride = self.rank() + 1;
        (0..self.outputs)
            .map(|a| {
                let along = &turned.along[a * self.rank()..][..self.rank()];
                let known: f64 =
                    along.iter().zip(&numbers[a * stride..]).map(|(c, number)| number * c * c).sum();
                let rest =
                    turned.rest.get(a * self.width..(a + 1) * self.width).map_or(0.0, |rest| dot(rest, rest));
                known + numbers[a * stride + self.rank()] * rest
            })
            .sum()
    }
}

impl Turned {
    /// Times a number.
    pub(super) fn scale(&mut self, by: f64) {
        self.along.iter_mut().chain(&mut self.rest).for_each(|w| *w *= by);
    }

    /// Walks over components with the index of the direction that each belongs to.
    pub(super) fn each_with(
        &mut self,
        others: [&Turned; 2],
        geometry: &Geometry,
        mut step: impl FnMut(usize, &mut f64, [f64; 2]),
    ) {
        let (rank, stride) = (geometry.rank(), geometry.rank() + 1);
        for (i, c) in self.along.iter_mut().enumerate() {
            step(i / rank.max(1) * stride + i % rank.max(1), c, [others[0].along[i], others[1].along[i]]);
        }
        for (i, c) in self.rest.iter_mut().enumerate() {
            step(i / geometry.width * stride + rank, c, [others[0].rest[i], others[1].rest[i]]);
        }
    }

    /// Mean squares, direction by direction.
    pub(super) fn squares(&self, geometry: &Geometry) -> Vec<f64> {
        let stride = geometry.rank() + 1;
        let mut squares = vec![0.0; geometry.directions()];
        for (i, c) in self.along.iter().enumerate() {
            squares[i / geometry.rank() * stride + i % geometry.rank()] = c * c;
        }
        let beyond = (geometry.width - geometry.rank()).max(1) as f64;
        for (i, c) in self.rest.iter().enumerate() {
            squares[i / geometry.width * stride + geometry.rank()] += c * c / beyond;
        }
        squares
    }
}

wide! {
    fn dots(vectors: &[f64], parts: &[f64], width: usize, products: &mut [f64]);
    fn add_along(vectors: &[f64], along: &[f64], factor: f64, width: usize, sums: &mut [f64]);
}

/// The inner product of every part with every vector, part by part. Vectors are many: each is read once for all parts.
#[inline(always)]
fn dots(vectors: &[f64], parts: &[f64], width: usize, products: &mut [f64]) {
    let rank = vectors.len() / width;
    for (i, vector) in vectors.chunks_exact(width).enumerate() {
        for (a, part) in parts.chunks_exact(width).enumerate() {
            products[a * rank + i] = dot(vector, part);
        }
    }
}

/// Adds to every sum its multiples of all vectors, of which each is read once.
#[inline(always)]
fn add_along(vectors: &[f64], along: &[f64], factor: f64, width: usize, sums: &mut [f64]) {
    let rank = vectors.len() / width;
    for (i, vector) in vectors.chunks_exact(width).enumerate() {
        for (a, sums) in sums.chunks_exact_mut(width).enumerate() {
            let c = factor * along[a * rank + i];
            sums.iter_mut().zip(vector).for_each(|(sum, v)| *sum += c * v);
        }
    }
}

/// Copies what lies below the diagonal to above.
fn mirror(matrix: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..i {
            matrix[j * size + i] = matrix[i * size + j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::loss_named;
    use crate::train::testing::{classes, numbers};

    /// Turning keeps lengths and can be undone, with rows more and fewer than columns, and with several scores.
    #[test]
    fn turns_are_orthogonal() {
        for (name, outputs) in [("squared", 1), ("softmax", 3)] {
            for (count, features) in [(60, 7), (5, 9)] {
                let loss = loss_named(name, outputs).unwrap();
                let model = Model::zero(features, outputs, true);
                let geometry = Geometry::new(&*loss, &model, &classes(count, features, 3));
                let w = numbers(model.weights.len(), 4);
                let turned = geometry.turn(&w);
                let ones = vec![1.0; geometry.directions()];
                assert!((geometry.weighted_square(&turned, &ones) - dot(&w, &w)).abs() < 1e-9);
                for (a, b) in geometry.turn_back(&turned).iter().zip(&w) {
                    assert!((a - b).abs() < 1e-9, "{name} {count}");
                }
                let squares = turned.squares(&geometry);
                let total: f64 = squares.iter().zip(geometry.multiplicities()).map(|(s, m)| s * m).sum();
                assert!((total - dot(&w, &w)).abs() < 1e-9);
            }
        }
    }

    /// wᵀHw by directions is the mean square of scores, whichever way the directions were found.
    #[test]
    fn curvatures_are_those_of_rows() {
        let loss = loss_named("squared", 2).unwrap();
        for (count, features) in [(60, 7), (5, 9)] {
            let rows = classes(count, features, 3);
            let model = Model::zero(features, 1, true);
            let geometry = Geometry::new(&*loss, &model, &rows);
            let w = numbers(model.weights.len(), 4);
            let score = |row: usize| rows.dot(row, &w) + w[features];
            let expected = (0..count).map(|row| score(row).powi(2)).sum::<f64>() / count as f64;
            let found = geometry.weighted_square(&geometry.turn(&w), &geometry.sampled());
            assert!((found - expected).abs() < 1e-9 * expected, "{count}: {found} {expected}");
            assert!((0.0..=1.0).contains(&geometry.shrinkage));
            assert!(geometry.curvatures().iter().all(|h| *h > 0.0));
        }
    }
}
