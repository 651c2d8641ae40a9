//! Rows made up for an audit of training: canaries in directions of their own, and a world around them in which nothing else moves
//! along these directions.
//!
//! * Canary j lies along e_{2j} − e_{2j+1}, so that no two canaries have a direction in common. Its two sides are opposite rows with one
//!   label; their gradients are opposite, and longer than the clip norm: the worst exchange of one row that there is.
//! * Public rows have one feature each and know the same of all of them: the model that they teach is the same along e_{2j} and
//!   e_{2j+1}. So a canary's score is zero there, where no loss is flat, and whatever is learned from them moves no canary's score.
//! * All other private rows are zero.

use super::coins::Coins;
use crate::Result;
use crate::loss::{Labels, Loss};
use crate::train::{Model, PublicRows, Recipe};
use semidp_core::{Adjacency, CsrTable, Public};

/// A canary's row over the clip norm and over its intercept, for classes: long enough that gradients are clipped unless the model is sure of
/// the class, and short enough that noise does not make it sure.
const CLASS_LENGTH: f64 = 8.0;
/// For numbers no gradient vanishes, and only the intercept matters.
const NUMBER_LENGTH: f64 = 1000.0;
/// A label over length and clip norm: so large that no model explains it.
const NUMBER_LABEL: f64 = 1e4;

/// Where canaries sit, and what rows look like.
pub(super) struct Canaries<'a> {
    pub(super) loss: &'a dyn Loss,
    pub(super) adjacency: Adjacency,
    pub(super) has_intercept: bool,
    pub(super) features: usize,
    pub(super) private_rows: usize,
    pub(super) public_rows: usize,
    /// m.
    pub(super) count: usize,
    /// The length of a public row,
    public_length: f64,
    /// of a canary's,
    length: f64,
    /// and the size of its label, where labels are numbers.
    number: f64,
}

impl<'a> Canaries<'a> {
    pub(super) fn new(recipe: &Recipe<'a>, private_rows: usize, public_rows: usize, features: usize) -> Self {
        // Public rows must know all of the features that canaries use, or none.
        let known = if public_rows == 0 { features } else { features.min(public_rows) };
        let clip_norm = recipe.given.clip_norm.unwrap_or(1.0).max(1.0);
        // Gradients of classes are as long as their rows at most; a larger clip norm is one for longer rows.
        let (times, public_length) = match recipe.loss.labels() {
            Labels::Classes => (CLASS_LENGTH, clip_norm),
            Labels::Numbers => (NUMBER_LENGTH, 1.0),
        };
        let length = times * clip_norm;
        Self {
            loss: recipe.loss,
            adjacency: recipe.adjacency,
            has_intercept: recipe.has_intercept,
            features,
            private_rows,
            public_rows,
            count: (known / 2).min(private_rows),
            public_length,
            length,
            number: NUMBER_LABEL * length * clip_norm,
        }
    }

    /// The label of canary j: both kinds in turn, so that intercepts stay where they are.
    fn label(&self, canary: usize) -> f64 {
        match (self.loss.labels(), canary % 2) {
            (Labels::Classes, side) => side as f64,
            (Labels::Numbers, 0) => self.number,
            (Labels::Numbers, _) => -self.number,
        }
    }

    /// Private rows: a canary for each coin on its side, or none for tails under add/remove; then zeros.
    pub(super) fn private(&self, coins: &[bool]) -> Result<CsrTable<f32>> {
        let mut rows = Rows::default();
        let entry = (self.length / 2f64.sqrt()) as f32;
        for (canary, is_in) in coins.iter().enumerate() {
            let side = match (is_in, self.adjacency) {
                (true, _) => entry,
                (false, Adjacency::ReplaceOne) => -entry,
                (false, Adjacency::AddRemove) => continue,
            };
            let at = 2 * canary as u32;
            rows.add(&[(at, side), (at + 1, -side), (self.features as u32, self.label(canary) as f32)]);
        }
        for row in self.count..self.private_rows {
            let label = match self.loss.labels() {
                Labels::Classes => (row % 2) as f32,
                Labels::Numbers => 0.0,
            };
            rows.add(&[(self.features as u32, label)]);
        }
        rows.into_table(self.features + 1)
    }

    /// Public rows, if there are any. They depend on nothing but their number.
    pub(super) fn public(&self) -> Result<Option<PublicRows>> {
        if self.public_rows == 0 {
            return Ok(None);
        }
        let used = 2 * self.count;
        let mut rows = Rows::default();
        for row in 0..self.public_rows {
            let (round, feature) = (row / used, (row % used) as u32);
            let sign = if round % 2 == 0 { 1.0 } else { -1.0 };
            let surprise = round / 2;
            let label = match self.loss.labels() {
                // Five in eight have the class that the sign of the row says.
                Labels::Classes => {
                    let is_usual = surprise % 8 % 2 == 0 || surprise % 8 == 7;
                    if is_usual == (sign > 0.0) { 1.0 } else { 0.0 }
                }
                Labels::Numbers => 0.5 * sign + if surprise % 2 == 0 { 1.0 } else { -1.0 },
            };
            let label = (self.features as u32, label);
            // A round that is not finished would know some features better than others.
            match round < self.public_rows / used {
                true => rows.add(&[(feature, sign * self.public_length as f32), label]),
                false => rows.add(&[label]),
            }
        }
        PublicRows::load(&Public(rows.into_table(self.features + 1)?)).map(Some)
    }

    /// Fair coins of one run.
    pub(super) fn toss(&self, seed: u64, run: u64) -> Vec<bool> {
        let mut coins = Coins::new(seed, 2, run);
        (0..self.count).map(|_| coins.is_head()).collect()
    }

    /// White-box: how far a model lies on the side that the first row of each canary pulls it to.
    pub(super) fn pulls(&self, weights: &[f64]) -> Vec<f64> {
        let outputs = self.loss.outputs();
        let stride = weights.len() / outputs;
        let mut residuals = vec![0.0; outputs];
        let pull = |canary: usize| {
            self.loss.residuals(&vec![0.0; outputs], self.label(canary), &mut residuals);
            let length = residuals.iter().map(|r| r * r).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            let along = |c: usize| weights[c * stride + 2 * canary] - weights[c * stride + 2 * canary + 1];
            -residuals.iter().enumerate().map(|(c, r)| r / length * along(c)).sum::<f64>()
        };
        (0..self.count).map(pull).collect()
    }

    /// Black-box: how much better the model does on the first row than on the other; or just how well, if there is no other.
    pub(super) fn losses(&self, model: &Model) -> Vec<f64> {
        let entry = self.length / 2f64.sqrt();
        let stride = model.stride();
        let value = |canary: usize, side: f64| {
            let scores: Vec<f64> = model
                .weights
                .chunks_exact(stride)
                .map(|w| {
                    let intercept = if self.has_intercept { w[self.features] } else { 0.0 };
                    side * (w[2 * canary] - w[2 * canary + 1]) + intercept
                })
                .collect();
            self.loss.value(&scores, self.label(canary))
        };
        let better = |canary| match self.adjacency {
            Adjacency::ReplaceOne => value(canary, -entry) - value(canary, entry),
            Adjacency::AddRemove => -value(canary, entry),
        };
        (0..self.count).map(better).collect()
    }
}

/// Sparse rows as they come.
struct Rows {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

impl Default for Rows {
    fn default() -> Self {
        Self { offsets: vec![0], columns: Vec::new(), values: Vec::new() }
    }
}

impl Rows {
    fn add(&mut self, entries: &[(u32, f32)]) {
        self.columns.extend(entries.iter().map(|(column, _)| *column));
        self.values.extend(entries.iter().map(|(_, value)| *value));
        self.offsets.push(self.columns.len());
    }

    fn into_table(self, width: usize) -> Result<CsrTable<f32>> {
        Ok(CsrTable::new(self.offsets, self.columns, self.values, width)?)
    }
}
