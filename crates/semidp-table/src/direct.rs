//! From numbers in memory to encoded rows, without cells between them: what training on an array does in every step.
//!
//! The rows are those that the encoder makes of cells, bit for bit.

use crate::encoder::{Buffers, Encoder, Scaling};
use crate::file::memory::{MemoryTable, Numbers, View};
use semidp_core::{Block, CsrBlock, DenseBlock};

/// An encoding of numbers alone, over a table in memory.
pub(crate) struct Direct {
    /// Features next to each other whose columns are, too.
    runs: Vec<Run>,
    width: usize,
    sparse: Option<Sparse>,
}

struct Run {
    grid: usize,
    column: usize,
    first_feature: usize,
    scalings: Vec<Scaling>,
}

/// One grid without its zeros, which all encode to zero, and a label.
struct Sparse {
    grid: usize,
    /// The feature that each column becomes, and how.
    features: Vec<Option<(u32, Scaling)>>,
}

impl Direct {
    /// None where the long way is needed. `wanted` has the column of the table for each column that the encoder needs.
    pub(crate) fn new(table: &MemoryTable, wanted: &[usize], encoder: &Encoder) -> Option<Self> {
        let width = encoder.width();
        let mut runs: Vec<Run> = Vec::new();
        for (feature, (place, scaling)) in encoder.scalings()?.into_iter().enumerate() {
            let (grid, column) = table.number(wanted[place])?;
            match runs.last_mut() {
                Some(run) if run.grid == grid && run.column + run.scalings.len() == column => {
                    run.scalings.push(scaling);
                }
                _ => runs.push(Run { grid, column, first_feature: feature, scalings: vec![scaling] }),
            }
        }
        let views = table.views();
        let is_sparse = |run: &Run| matches!(views[run.grid], View::Sparse { .. });
        let sparse = match runs.iter().find(|run| is_sparse(run)) {
            None => None,
            Some(first) => Some(Sparse::new(first.grid, &views[first.grid], &runs, width)?),
        };
        Some(Self { runs, width, sparse })
    }

    /// Some rows of the table.
    pub(crate) fn encode<'b>(
        &self,
        table: &MemoryTable,
        rows: impl ExactSizeIterator<Item = usize>,
        buffers: &'b mut Buffers,
    ) -> Block<'b> {
        let views = table.views();
        let Buffers { offsets, columns, values } = buffers;
        values.clear();
        if let Some(sparse) = &self.sparse {
            offsets.clear();
            offsets.push(0);
            columns.clear();
            for row in rows {
                sparse.add(&views[sparse.grid], row, columns, values);
                for run in self.runs.iter().filter(|run| run.grid != sparse.grid) {
                    let first = values.len();
                    values.resize(first + run.scalings.len(), 0.0);
                    run.encode(&views[run.grid], row, &mut values[first..]);
                    columns.extend((run.first_feature as u32..).take(run.scalings.len()));
                }
                offsets.push(values.len());
            }
            return Block::CsrF32(CsrBlock { offsets, columns, values });
        }
        values.resize(rows.len() * self.width, 0.0);
        for (row, encoded) in rows.zip(values.chunks_exact_mut(self.width)) {
            for run in &self.runs {
                run.encode(&views[run.grid], row, &mut encoded[run.first_feature..][..run.scalings.len()]);
            }
        }
        Block::DenseF32(DenseBlock::new(values, self.width))
    }
}

impl Run {
    fn encode(&self, view: &View<'_>, row: usize, to: &mut [f32]) {
        let View::Dense { numbers, row_stride, column_stride, .. } = *view else { return };
        let first = row * row_stride + self.column * column_stride;
        let range = first..first + self.scalings.len();
        let all = self.scalings.iter().zip(to);
        match numbers {
            // Next to each other, as in an array by rows.
            Numbers::F32(numbers) if column_stride == 1 && range.end <= numbers.len() => {
                all.zip(&numbers[range]).for_each(|((scaling, to), x)| *to = scaling.encode(f64::from(*x)));
            }
            Numbers::F64(numbers) if column_stride == 1 && range.end <= numbers.len() => {
                all.zip(&numbers[range]).for_each(|((scaling, to), x)| *to = scaling.encode(*x));
            }
            _ => all.enumerate().for_each(|(at, (scaling, to))| {
                *to = scaling.encode(numbers.get(first + at * column_stride));
            }),
        }
    }
}

impl Sparse {
    fn new(grid: usize, view: &View<'_>, runs: &[Run], width: usize) -> Option<Self> {
        let View::Sparse { columns, .. } = view else { return None };
        let mut features = vec![None; *columns];
        for run in runs {
            // What comes after must have larger numbers: the label, which is dense.
            let is_label = run.first_feature + run.scalings.len() == width && run.scalings.len() == 1;
            if run.grid != grid {
                if !is_label {
                    return None;
                }
                continue;
            }
            for (at, scaling) in run.scalings.iter().enumerate() {
                if scaling.encode(0.0) != 0.0 {
                    return None;
                }
                let feature = u32::try_from(run.first_feature + at).ok()?;
                let place = features.get_mut(run.column + at)?;
                // One entry cannot become two.
                if place.replace((feature, *scaling)).is_some() {
                    return None;
                }
            }
        }
        Some(Self { grid, features })
    }

    fn add(&self, view: &View<'_>, row: usize, columns: &mut Vec<u32>, values: &mut Vec<f32>) {
        let View::Sparse { numbers, .. } = view else { return };
        let entries = view.entries(row);
        for (entry, place) in entries.clone().zip(view.places(entries)) {
            let feature = usize::try_from(*place).ok().and_then(|place| *self.features.get(place)?);
            if let Some((feature, scaling)) = feature {
                columns.push(feature);
                values.push(scaling.encode(numbers.get(entry)));
            }
        }
    }
}
