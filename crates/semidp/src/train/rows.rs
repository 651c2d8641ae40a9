//! Public rows in memory, with their labels.

use crate::Result;
use semidp_core::{Block, BlockSource, Public};

/// Rows of features and a label, dense or sparse as their source showed them.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicRows {
    features: usize,
    storage: Storage,
    labels: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Storage {
    /// `features` numbers a row.
    Dense(Vec<f32>),
    /// Row i has the entries `offsets[i] .. offsets[i + 1]`.
    Sparse { offsets: Vec<usize>, columns: Vec<u32>, values: Vec<f32> },
}

impl PublicRows {
    /// Reads a source whose last column is the label.
    pub fn load<S: BlockSource>(source: &Public<S>) -> Result<Self> {
        let features = source.width() - 1;
        let mut labels = Vec::with_capacity(source.units());
        let mut dense: Vec<f32> = Vec::new();
        let (mut offsets, mut columns, mut values) = (vec![0usize], Vec::new(), Vec::new());
        let mut is_sparse = false;
        for block in 0..source.blocks() {
            source.visit(block, &mut |piece| {
                let mut sparse = |starts: &[usize], entry: &dyn Fn(usize) -> (u32, f32)| {
                    is_sparse = true;
                    for pair in starts.windows(2) {
                        let mut label = 0.0;
                        for at in pair[0]..pair[1] {
                            let (column, value) = entry(at);
                            if column as usize == features {
                                label = f64::from(value);
                            } else {
                                columns.push(column);
                                values.push(value);
                            }
                        }
                        offsets.push(columns.len());
                        labels.push(label);
                    }
                };
                match piece {
                    Block::DenseF32(b) => {
                        for row in b.values.chunks_exact(features + 1) {
                            dense.extend_from_slice(&row[..features]);
                            labels.push(f64::from(row[features]));
                        }
                    }
                    Block::DenseF64(b) => {
                        for row in b.values.chunks_exact(features + 1) {
                            dense.extend(row[..features].iter().map(|x| *x as f32));
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
        Ok(Self { features, storage, labels })
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
        match &self.storage {
            Storage::Dense(values) => {
                let x = &values[row * self.features..(row + 1) * self.features];
                // Four sums, so that additions need not wait for each other.
                let mut sums = [0.0; 4];
                let (xs, rest) = x.as_chunks::<4>();
                let (ws, others) = weights[..self.features].as_chunks::<4>();
                for (x, w) in xs.iter().zip(ws) {
                    (0..4).for_each(|i| sums[i] += f64::from(x[i]) * w[i]);
                }
                sums.iter().sum::<f64>()
                    + rest.iter().zip(others).map(|(x, w)| f64::from(*x) * w).sum::<f64>()
            }
            Storage::Sparse { offsets, columns, values } => {
                let entries = offsets[row]..offsets[row + 1];
                let columns = columns[entries.clone()].iter();
                columns.zip(&values[entries]).map(|(&j, x)| weights[j as usize] * f64::from(*x)).sum()
            }
        }
    }

    /// out += factor·x.
    pub fn add_scaled(&self, row: usize, factor: f64, out: &mut [f64]) {
        match &self.storage {
            Storage::Dense(values) => {
                let x = &values[row * self.features..(row + 1) * self.features];
                out.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * f64::from(*x));
            }
            Storage::Sparse { offsets, columns, values } => {
                let entries = offsets[row]..offsets[row + 1];
                let columns = columns[entries.clone()].iter();
                columns.zip(&values[entries]).for_each(|(&j, x)| out[j as usize] += factor * f64::from(*x));
            }
        }
    }

    /// ‖x‖².
    pub fn squared_norm(&self, row: usize) -> f64 {
        let square = |values: &[f32]| values.iter().map(|x| f64::from(*x).powi(2)).sum();
        match &self.storage {
            Storage::Dense(values) => square(&values[row * self.features..(row + 1) * self.features]),
            Storage::Sparse { offsets, values, .. } => square(&values[offsets[row]..offsets[row + 1]]),
        }
    }
}
