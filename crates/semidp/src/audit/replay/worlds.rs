//! Neighbouring tables of made-up rows: ordinary ones, and one unit that is as odd as a unit can be.

use crate::Result;
use crate::audit::coins::Coins;
use semidp_core::{Adjacency, BlockSource, CsrTable, DenseTable, Number, Private};

/// A unit that tries to break a mechanism.
#[derive(Debug, Clone, PartialEq)]
pub struct OddRow {
    /// What is odd about it.
    pub name: String,
    /// Its entries by column; columns that are not named are zero. Dense tables take the last entry of a column.
    pub entries: Vec<(u32, f64)>,
    /// Whether it exists in sparse tables alone, because it is malformed.
    pub is_malformed: bool,
}

impl OddRow {
    /// Whether it is one of two opposite rows that are clipped at most clip norms.
    pub(super) fn is_extreme(&self) -> bool {
        let names = ["huge in one column", "minus huge in one column", "label 1e30", "label -1e30"];
        names.contains(&self.name.as_str()) || self.name.starts_with("long in one column")
    }
}

/// What a row of this many columns can hold that a mechanism may not expect. With `label`, the last column is a label:
/// a number, or one of `classes` classes.
pub fn odd_rows(width: usize, label: Option<usize>) -> Vec<OddRow> {
    let features = width - usize::from(label.is_some());
    let last = width as u32 - 1;
    let full = |x: f64| -> Vec<(u32, f64)> { (0..width as u32).map(|j| (j, x)).collect() };
    let with_label = |mut entries: Vec<(u32, f64)>, y: f64| {
        if label.is_some() {
            entries.retain(|(j, _)| *j != last);
            entries.push((last, y));
        }
        entries
    };
    let signs =
        |size: f64| (0..features as u32).map(|j| (j, if j % 2 == 0 { size } else { -size })).collect();
    let mut rows: Vec<(String, Vec<(u32, f64)>)> = vec![
        ("zero".into(), Vec::new()),
        ("constant".into(), full(1.0)),
        ("one".into(), with_label(vec![(0, 1.0)], 1.0)),
    ];
    if label.is_some() {
        // Opposite gradients of a loss that is sure of no class yet: of huge rows it is sure.
        for y in [0.0, 1.0] {
            rows.push((format!("long in one column, label {y}"), with_label(vec![(0, 8.0)], y)));
        }
    }
    // Opposite rows follow each other, so that large audits compare them.
    for (name, x) in [("huge", 1e30), ("minus huge", -1e30)] {
        rows.push((format!("{name} in one column"), with_label(vec![(0, x)], 1.0)));
    }
    for (name, x) in [("huge", 1e30), ("minus huge", -1e30)] {
        rows.push((format!("{name} in every feature"), with_label(full(x), 0.0)));
    }
    for (name, x) in [
        ("1e300", 1e300),
        ("-1e300", -1e300),
        ("denormal", 5e-324),
        ("tiny", 1e-40),
        ("NaN", f64::NAN),
        ("infinite", f64::INFINITY),
        ("minus infinite", f64::NEG_INFINITY),
        ("minus zero", -0.0),
    ] {
        rows.push((format!("{name} in one column"), with_label(vec![(0, x)], 1.0)));
        rows.push((format!("{name} in every feature"), with_label(full(x), 0.0)));
    }
    rows.push(("alternating huge".into(), with_label(signs(1e20), 1.0)));
    rows.push(("alternating, all but overflowing".into(), with_label(signs(1e154), 1.0)));
    rows.push(("NaN everywhere".into(), full(f64::NAN)));
    if let Some(classes) = label {
        let classes = classes as f64;
        for y in
            [-1.0, 0.5, classes, 1e6, -7.0, 1e30, -1e30, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
        {
            rows.push((format!("label {y:?}"), with_label(vec![(0, 0.5), (1.min(last), -0.5)], y)));
        }
    }
    let rows = rows.into_iter().map(|(name, entries)| OddRow { name, entries, is_malformed: false });
    let malformed = [
        ("columns that fall", vec![(last, 1.0), (0, 2.0)]),
        ("a column twice", vec![(0, 1.0), (0, 1.0), (last, 1.0)]),
        ("a column beyond the last", vec![(0, 3.0), (last + 1, 4.0)]),
        ("a column far beyond the last", vec![(u32::MAX, 4.0)]),
        ("too many entries", (0..3 * width as u32).map(|j| (j / 3, 9.0)).collect()),
    ];
    let malformed = malformed.into_iter().map(|(name, entries)| OddRow {
        name: name.into(),
        entries,
        is_malformed: true,
    });
    rows.chain(malformed).collect()
}

/// How a table reaches the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Rows of single precision in memory.
    DenseSingle,
    /// Rows of double precision in memory.
    DenseDouble,
    /// Sparse rows of single precision in memory.
    SparseSingle,
    /// Sparse rows of double precision in memory.
    SparseDouble,
    /// Dense rows of double precision that are streamed.
    StreamedDense,
    /// Sparse rows of single precision that are streamed.
    StreamedSparse,
    /// Dense rows that the kernel copied.
    Copied,
}

impl Source {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::DenseSingle,
        Self::DenseDouble,
        Self::SparseSingle,
        Self::SparseDouble,
        Self::StreamedDense,
        Self::StreamedSparse,
        Self::Copied,
    ];

    pub(super) fn is_sparse(self) -> bool {
        matches!(self, Self::SparseSingle | Self::SparseDouble | Self::StreamedSparse)
    }
}

/// Neighbouring tables. World 0 holds ordinary rows; in world i the i-th odd row replaces one of them, or comes last
/// (under add/remove, so that the samples of all others stay the same).
#[derive(Debug, Clone)]
pub struct Worlds {
    rows: Vec<Vec<(u32, f64)>>,
    odd: Vec<OddRow>,
    width: usize,
    source: Source,
    adjacency: Adjacency,
}

impl Worlds {
    /// Ordinary rows, each as dense values of `width` columns, and the odd ones of this kind of source.
    pub fn new(
        rows: &[Vec<f64>],
        odd: &[OddRow],
        width: usize,
        source: Source,
        adjacency: Adjacency,
    ) -> Self {
        let entries = |row: &Vec<f64>| (0..).zip(row.iter().copied()).filter(|(_, x)| *x != 0.0).collect();
        let odd = odd.iter().filter(|row| source.is_sparse() || !row.is_malformed).cloned().collect();
        Self { rows: rows.iter().map(entries).collect(), odd, width, source, adjacency }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + self.odd.len()
    }

    /// What is odd in a world.
    pub fn name(&self, world: usize) -> &str {
        world.checked_sub(1).and_then(|odd| self.odd.get(odd)).map_or("ordinary", |odd| &odd.name)
    }

    /// The table of a world.
    pub fn table(&self, world: usize) -> Result<Private<Box<dyn BlockSource>>> {
        let mut rows = self.rows.clone();
        if let Some(odd) = world.checked_sub(1).and_then(|odd| self.odd.get(odd)) {
            let place = rows.len() / 2;
            match (self.adjacency, rows.get_mut(place)) {
                (Adjacency::ReplaceOne, Some(row)) => row.clone_from(&odd.entries),
                _ => rows.push(odd.entries.clone()),
            }
        }
        Ok(match self.source {
            Source::DenseSingle => self.dense::<f32>(&rows)?.boxed(),
            Source::DenseDouble => self.dense::<f64>(&rows)?.boxed(),
            Source::SparseSingle => self.sparse::<f32>(&rows)?.boxed(),
            Source::SparseDouble => self.sparse::<f64>(&rows)?.boxed(),
            Source::StreamedDense => self.dense::<f64>(&rows)?.streamed().boxed(),
            Source::StreamedSparse => self.sparse::<f32>(&rows)?.streamed().boxed(),
            Source::Copied => self.dense::<f32>(&rows)?.in_memory()?.boxed(),
        })
    }

    /// Blocks of a few rows, so that there are several.
    fn rows_per_block(&self) -> usize {
        (self.rows.len() / 3).max(1)
    }

    fn dense<T: Number>(&self, rows: &[Vec<(u32, f64)>]) -> Result<Private<DenseTable<T>>> {
        let mut values = vec![T::of(0.0); rows.len() * self.width];
        for (row, entries) in values.chunks_exact_mut(self.width).zip(rows) {
            for (column, x) in entries {
                if let Some(value) = row.get_mut(*column as usize) {
                    *value = T::of(*x);
                }
            }
        }
        Ok(Private::new(DenseTable::with_blocks(values, self.width, self.rows_per_block())?))
    }

    fn sparse<T: Number>(&self, rows: &[Vec<(u32, f64)>]) -> Result<Private<CsrTable<T>>> {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for entries in rows {
            columns.extend(entries.iter().map(|(column, _)| *column));
            values.extend(entries.iter().map(|(_, x)| T::of(*x)));
            offsets.push(values.len());
        }
        let table = CsrTable::new(offsets, columns, values, self.width)?;
        Ok(Private::new(table.with_blocks(self.rows_per_block())?))
    }
}

/// Ordinary rows: numbers near [−1, 1] and, with a label, a score of them or the class that it falls into.
pub(super) fn ordinary_rows(
    count: usize,
    width: usize,
    label: Option<usize>,
    coins: &mut Coins,
) -> Vec<Vec<f64>> {
    let features = width - usize::from(label.is_some());
    let row = |coins: &mut Coins| {
        let mut row: Vec<f64> = (0..features).map(|_| 2.0 * coins.uniform() - 1.0).collect();
        let score = row.iter().zip([1.0, -2.0, 0.5].iter().cycle()).map(|(x, w)| x * w).sum::<f64>();
        let score = score + 0.3 * coins.normal();
        match label {
            None => {}
            Some(0) => row.push(score),
            Some(classes) => {
                row.push((score + 0.5 * classes as f64).floor().clamp(0.0, classes as f64 - 1.0))
            }
        }
        row
    };
    (0..count).map(|_| row(coins)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_rows_have_names_of_their_own_and_fit_their_table() {
        for (width, label) in [(3, None), (4, Some(2)), (2, Some(0)), (1, None)] {
            let rows = odd_rows(width, label);
            let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), rows.len());
            let base = ordinary_rows(10, width, label, &mut Coins::new(1, 0, 0));
            assert!(base.iter().all(|row| row.len() == width));
            for source in Source::ALL {
                for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
                    let worlds = Worlds::new(&base, &rows, width, source, adjacency);
                    let malformed = rows.iter().filter(|row| row.is_malformed).count();
                    let expected = rows.len() + 1 - if source.is_sparse() { 0 } else { malformed };
                    assert_eq!((worlds.count(), worlds.name(0)), (expected, "ordinary"));
                    assert!((0..worlds.count()).all(|world| worlds.table(world).is_ok()));
                }
            }
        }
    }
}
