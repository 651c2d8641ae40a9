//! Public rows in memory, with their labels.

use super::checkpoint::digest;
use super::dense::{self, DenseRows};
use crate::Result;
use semidp_core::{Block, BlockSource, CsrBlock, DenseBlock, Public};
use std::ops::Range;

/// Rows of features and a label, dense or sparse as their source showed them.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicRows {
    features: usize,
    storage: Storage,
    labels: Vec<f64>,
    squared_norms: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Storage {
    /// `features` numbers a row, and the label.
    Dense(Vec<f32>),
    /// Row i has the entries `offsets[i] .. offsets[i + 1]`, the label among them.
    Sparse { offsets: Vec<usize>, columns: Vec<u32>, values: Vec<f32> },
}

impl PublicRows {
    /// Reads a source whose last column is the label.
    pub fn load<S: BlockSource>(source: &Public<S>) -> Result<Self> {
        Self::load_blocks(source, 0..source.blocks())
    }

    /// Reads some of its blocks, for work that goes through a large file piece by piece.
    pub fn load_blocks<S: BlockSource>(source: &Public<S>, blocks: Range<usize>) -> Result<Self> {
        let features = source.width() - 1;
        let mut labels = Vec::new();
        let mut dense: Vec<f32> = Vec::new();
        let (mut offsets, mut columns, mut values) = (vec![0usize], Vec::new(), Vec::new());
        let mut is_sparse = false;
        for block in blocks {
            source.visit(block, &mut |piece| {
                let mut sparse = |starts: &[usize], entry: &dyn Fn(usize) -> (u32, f32)| {
                    is_sparse = true;
                    for pair in starts.windows(2) {
                        let mut label = 0.0;
                        for at in pair[0]..pair[1] {
                            let (column, value) = entry(at);
                            if column as usize == features {
                                label = f64::from(value);
                            }
                            columns.push(column);
                            values.push(value);
                        }
                        offsets.push(columns.len());
                        labels.push(label);
                    }
                };
                match piece {
                    Block::DenseF32(b) => {
                        for row in b.values().chunks_exact(features + 1) {
                            dense.extend_from_slice(row);
                            labels.push(f64::from(row[features]));
                        }
                    }
                    Block::DenseF64(b) => {
                        for row in b.values().chunks_exact(features + 1) {
                            dense.extend(row.iter().map(|x| *x as f32));
                            labels.push(row[features]);
                        }
                    }
                    Block::CsrF32(b) => sparse(b.offsets, &|at| (b.columns[at], b.values[at])),
                    Block::CsrF64(b) => sparse(b.offsets, &|at| (b.columns[at], b.values[at] as f32)),
                }
            })?;
        }
        let storage =
            if is_sparse { Storage::Sparse { offsets, columns, values } } else { Storage::Dense(dense) };
        let mut rows = Self { features, storage, labels, squared_norms: Vec::new() };
        rows.squared_norms = (0..rows.len()).map(|row| rows.entries(row).map(|(_, x)| x * x).sum()).collect();
        Ok(rows)
    }

    /// Some of the rows, in the order given.
    pub fn some(&self, rows: &[usize]) -> Self {
        let storage = match &self.storage {
            Storage::Dense(values) => {
                let width = self.features + 1;
                Storage::Dense(rows.iter().flat_map(|row| values[row * width..][..width].to_vec()).collect())
            }
            Storage::Sparse { offsets, columns, values } => {
                let entries = || rows.iter().flat_map(|row| offsets[*row]..offsets[row + 1]);
                let mut starts = vec![0];
                for row in rows {
                    starts.push(starts[starts.len() - 1] + offsets[row + 1] - offsets[*row]);
                }
                Storage::Sparse {
                    offsets: starts,
                    columns: entries().map(|at| columns[at]).collect(),
                    values: entries().map(|at| values[at]).collect(),
                }
            }
        };
        Self {
            features: self.features,
            storage,
            labels: rows.iter().map(|row| self.labels[*row]).collect(),
            squared_norms: rows.iter().map(|row| self.squared_norms[*row]).collect(),
        }
    }

    /// The features of a row that are stored, by column.
    pub(super) fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let dense = self.dense(row).iter().enumerate().map(|(j, x)| (j, f64::from(*x)));
        let (columns, values) = self.sparse(row);
        dense.chain(columns.iter().zip(values).map(|(j, x)| (*j as usize, f64::from(*x))))
    }

    /// Columns and values of the features of a sparse row.
    fn sparse(&self, row: usize) -> (&[u32], &[f32]) {
        match &self.storage {
            Storage::Dense(_) => (&[], &[]),
            Storage::Sparse { offsets, columns, values } => {
                // The label is in the last column, and so at the end.
                let (start, mut end) = (offsets[row], offsets[row + 1]);
                while end > start && columns[end - 1] as usize >= self.features {
                    end -= 1;
                }
                (&columns[start..end], &values[start..end])
            }
        }
    }

    /// The features of a dense row.
    fn dense(&self, row: usize) -> &[f32] {
        match &self.storage {
            Storage::Dense(values) => &values[row * (self.features + 1)..][..self.features],
            Storage::Sparse { .. } => &[],
        }
    }

    fn is_dense(&self) -> bool {
        matches!(self.storage, Storage::Dense(_))
    }

    fn dense_rows(&self, rows: &Range<usize>) -> Option<DenseRows<'_>> {
        let Storage::Dense(values) = &self.storage else { return None };
        let width = self.features + 1;
        Some(DenseRows { values: &values[rows.start * width..rows.end * width], features: self.features })
    }

    /// SHA-256 of everything in it: these rows are public.
    pub fn digest(&self) -> String {
        let labels = self.labels.iter().flat_map(|label| label.to_le_bytes());
        let shape = [self.features as u64, self.labels.len() as u64].into_iter().flat_map(u64::to_le_bytes);
        match &self.storage {
            Storage::Dense(values) => {
                digest(shape.chain(labels).chain(values.iter().flat_map(|value| value.to_le_bytes())))
            }
            Storage::Sparse { offsets, columns, values } => {
                let places = offsets.iter().flat_map(|offset| (*offset as u64).to_le_bytes());
                let columns = columns.iter().flat_map(|column| column.to_le_bytes());
                let values = values.iter().flat_map(|value| value.to_le_bytes());
                digest(shape.chain(labels).chain(places).chain(columns).chain(values))
            }
        }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Columns without the label.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The label of a row.
    pub fn label(&self, row: usize) -> f64 {
        self.labels[row]
    }

    /// Σ_j weights_j·x_j.
    pub fn dot(&self, row: usize, weights: &[f64]) -> f64 {
        let mut product = [0.0];
        self.dots_into(row, weights, 0, &mut product);
        product[0]
    }

    /// The same for several outputs, whose weights lie `stride` apart.
    pub(super) fn dots_into(&self, row: usize, weights: &[f64], stride: usize, products: &mut [f64]) {
        if self.is_dense() {
            return dense::multiply_row(self.dense(row), weights, stride, products);
        }
        let (columns, values) = self.sparse(row);
        for (output, product) in products.iter_mut().enumerate() {
            let weights = &weights[output * stride..];
            *product = columns.iter().zip(values).map(|(j, x)| weights[*j as usize] * f64::from(*x)).sum();
        }
    }

    /// The same for some rows, row by row.
    pub(super) fn all_dots(
        &self,
        rows: Range<usize>,
        weights: &[f64],
        stride: usize,
        outputs: usize,
    ) -> Vec<f64> {
        if let Some(rows) = self.dense_rows(&rows) {
            return rows.products(weights, stride, outputs);
        }
        let mut products = vec![0.0; rows.len() * outputs];
        for (row, products) in rows.zip(products.chunks_exact_mut(outputs.max(1))) {
            self.dots_into(row, weights, stride, products);
        }
        products
    }

    /// out += factor·x.
    pub fn add_scaled(&self, row: usize, factor: f64, out: &mut [f64]) {
        if self.is_dense() {
            return dense::add_row(self.dense(row), factor, out);
        }
        let (columns, values) = self.sparse(row);
        columns.iter().zip(values).for_each(|(j, x)| out[*j as usize] += factor * f64::from(*x));
    }

    /// The same for some rows and several outputs, whose sums lie `stride` apart, with a factor an output and row.
    pub(super) fn add_all_scaled(
        &self,
        rows: Range<usize>,
        factors: &[f64],
        outputs: usize,
        stride: usize,
        out: &mut [f64],
    ) {
        if let Some(rows) = self.dense_rows(&rows) {
            return rows.add_all(factors, outputs, stride, out);
        }
        for (row, factors) in rows.zip(factors.chunks_exact(outputs.max(1))) {
            for (factor, out) in factors.iter().zip(out.chunks_exact_mut(stride.max(1))) {
                self.add_scaled(row, *factor, out);
            }
        }
    }

    /// ‖x‖².
    pub fn squared_norm(&self, row: usize) -> f64 {
        self.squared_norms[row]
    }
}

/// One block of all rows, the label in the last column: as a source for the kernel's loops.
impl BlockSource for PublicRows {
    fn width(&self) -> usize {
        self.features + 1
    }

    fn units(&self) -> usize {
        self.len()
    }

    fn blocks(&self) -> usize {
        1
    }

    fn units_of(&self, _: usize) -> Range<usize> {
        0..self.len()
    }

    fn visit(&self, _: usize, visit: &mut dyn FnMut(Block<'_>)) -> semidp_core::Result<()> {
        match &self.storage {
            Storage::Dense(values) => {
                visit(Block::DenseF32(DenseBlock::new(values, self.features + 1)));
            }
            Storage::Sparse { offsets, columns, values } => {
                visit(Block::CsrF32(CsrBlock { offsets, columns, values }));
            }
        }
        Ok(())
    }
}
