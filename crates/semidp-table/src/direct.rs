//! From numbers in memory to encoded rows, without cells between them: what training on an array does in every step.
//!
//! The rows are those that the encoder makes of cells, bit for bit.

use crate::encoder::{Buffers, Encoder, Scaling, Simple, encode_finite};
use crate::file::memory::{MemoryTable, Numbers, View};
use semidp_core::{Block, CsrBlock, DenseBlock};

/// An encoding without indicators, over a table in memory.
pub(crate) struct Direct {
    /// Features next to each other whose columns are, too.
    runs: Vec<Run>,
    /// Features that are places of values, such as labels.
    codes: Vec<Codes>,
    width: usize,
    sparse: Option<Sparse>,
}

struct Run {
    grid: usize,
    column: usize,
    first_feature: usize,
    scalings: Vec<Scaling>,
    columns: ByColumn,
}

struct Codes {
    column: usize,
    feature: usize,
    /// What each value becomes, and last a missing one.
    places: Vec<f32>,
}

/// Scalings with each number beside the same one of the next feature, for vector instructions.
#[derive(Default)]
struct ByColumn {
    least: Vec<f64>,
    greatest: Vec<f64>,
    shift: Vec<f64>,
    factor: Vec<f64>,
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
        let mut codes = Vec::new();
        for (feature, (place, simple)) in encoder.simple()?.into_iter().enumerate() {
            let Simple::Number(scaling) = simple else {
                let (_, values) = table.category(wanted[place])?;
                let values = values.iter().map(|value| Some(value.as_str())).chain([None]);
                let places = values.map(|value| simple.code(value)).collect();
                codes.push(Codes { column: wanted[place], feature, places });
                continue;
            };
            let (grid, column) = table.number(wanted[place])?;
            match runs.last_mut() {
                Some(run) if run.grid == grid && run.column + run.scalings.len() == column => {
                    run.scalings.push(scaling);
                }
                _ => runs.push(Run {
                    grid,
                    column,
                    first_feature: feature,
                    scalings: vec![scaling],
                    columns: ByColumn::default(),
                }),
            }
        }
        runs.iter_mut().for_each(|run| run.columns = ByColumn::of(&run.scalings));
        let views = table.views();
        let is_sparse = |run: &Run| matches!(views[run.grid], View::Sparse { .. });
        let sparse = match runs.iter().find(|run| is_sparse(run)) {
            None => None,
            Some(first) => {
                // A label may come after the entries; anything else would not rise.
                if codes.iter().any(|codes| codes.feature + 1 != width) {
                    return None;
                }
                Some(Sparse::new(first.grid, &views[first.grid], &runs, width)?)
            }
        };
        Some(Self { runs, codes, width, sparse })
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
                for codes in &self.codes {
                    columns.push(codes.feature as u32);
                    values.push(codes.place_in(table, row));
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
            for codes in &self.codes {
                encoded[codes.feature] = codes.place_in(table, row);
            }
        }
        Block::DenseF32(DenseBlock::new(values, self.width))
    }
}

impl Codes {
    fn place_in(&self, table: &MemoryTable, row: usize) -> f32 {
        let missing = self.places[self.places.len() - 1];
        let Some((codes, values)) = table.category(self.column) else { return missing };
        let code = codes.get(row).and_then(|code| usize::try_from(*code).ok());
        code.filter(|code| *code < values.len()).map_or(missing, |code| self.places[code])
    }
}

impl Run {
    fn encode(&self, view: &View<'_>, row: usize, to: &mut [f32]) {
        let View::Dense { numbers, row_stride, column_stride, .. } = *view else { return };
        let first = row * row_stride + self.column * column_stride;
        let range = first..first + self.scalings.len();
        // Next to each other, as in an array by rows.
        let is_done = match numbers {
            Numbers::F64(numbers) if column_stride == 1 => {
                numbers.get(range).is_some_and(|numbers| self.columns.encode(numbers, to))
            }
            Numbers::F32(numbers) if column_stride == 1 => {
                numbers.get(range).is_some_and(|numbers| self.columns.encode(numbers, to))
            }
            _ => false,
        };
        if !is_done {
            self.scalings.iter().zip(to).enumerate().for_each(|(at, (scaling, to))| {
                *to = scaling.encode(numbers.get(first + at * column_stride));
            });
        }
    }
}

impl ByColumn {
    fn of(scalings: &[Scaling]) -> Self {
        let all = |value: fn(&Scaling) -> f64| scalings.iter().map(value).collect();
        Self {
            least: all(|scaling| scaling.least),
            greatest: all(|scaling| scaling.greatest),
            shift: all(|scaling| scaling.shift),
            factor: all(|scaling| scaling.factor),
        }
    }

    /// Encodes a row, and says whether all its numbers were finite.
    fn encode<T: Copy + Into<f64>>(&self, numbers: &[T], to: &mut [f32]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these instructions.
            #[expect(unsafe_code, reason = "the same code, compiled for a better processor")]
            return unsafe { self.encode_wide(numbers, to) };
        }
        self.encode_plain(numbers, to)
    }

    /// The same bits: no product is fused with a sum.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn encode_wide<T: Copy + Into<f64>>(&self, numbers: &[T], to: &mut [f32]) -> bool {
        self.encode_plain(numbers, to)
    }

    /// In a form that a compiler turns into vectors.
    #[inline(always)]
    fn encode_plain<T: Copy + Into<f64>>(&self, numbers: &[T], to: &mut [f32]) -> bool {
        let count = numbers.len();
        let (least, greatest) = (&self.least[..count], &self.greatest[..count]);
        let (shift, factor, to) = (&self.shift[..count], &self.factor[..count], &mut to[..count]);
        let mut strange = 0u64;
        for at in 0..count {
            let x: f64 = numbers[at].into();
            strange |= u64::from(x.to_bits() & EXPONENT == EXPONENT);
            to[at] = encode_finite(x, least[at], greatest[at], shift[at], factor[at]);
        }
        strange == 0
    }
}

/// All bits of it are set in infinities and what is no number, and in nothing else.
const EXPONENT: u64 = 0x7ff0_0000_0000_0000;

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
        // Entries of a row must rise.
        let numbers: Vec<u32> = features.iter().flatten().map(|(feature, _)| *feature).collect();
        numbers.is_sorted().then_some(Self { grid, features })
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
