//! Tables in memory, such as the arrays of another language.
//!
//! A table is attached under a name, and that name is used like a path: whatever reads files reads it, too, and learns and
//! encodes exactly what it would from a file with the same cells. Nothing is copied: numbers are read where they lie.

use super::{FileColumn, FileKind, Outcome, Show, TableFile, even_bounds};
use crate::cell::Cells;
use crate::{Error, Result};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Numbers in rows and columns that somebody keeps in memory.
pub trait Grid: Send + Sync {
    /// Where they are.
    fn view(&self) -> View<'_>;
}

/// Numbers where they lie.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum View<'a> {
    /// All of them.
    Dense {
        /// The numbers, from that of the first row and column on.
        numbers: Numbers<'a>,
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
        /// From one row to the next.
        row_stride: usize,
        /// From one column to the next.
        column_stride: usize,
    },
    /// Those that are not zero, row by row.
    Sparse {
        /// Row i has the entries `offsets[i] .. offsets[i + 1]`.
        offsets: &'a [i64],
        /// The column of each entry.
        places: &'a [i32],
        /// The number of each entry.
        numbers: Numbers<'a>,
        /// Columns.
        columns: usize,
    },
}

/// In either precision.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// Single.
    F32(&'a [f32]),
    /// Double.
    F64(&'a [f64]),
}

impl Numbers<'_> {
    /// The number at a place, NaN beyond the end.
    pub(crate) fn get(&self, at: usize) -> f64 {
        match self {
            Self::F32(numbers) => numbers.get(at).map_or(f64::NAN, |x| f64::from(*x)),
            Self::F64(numbers) => numbers.get(at).copied().unwrap_or(f64::NAN),
        }
    }
}

impl View<'_> {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize) {
        match *self {
            Self::Dense { rows, columns, .. } => (rows, columns),
            Self::Sparse { offsets, columns, .. } => (offsets.len().saturating_sub(1), columns),
        }
    }

    /// The entries of a row of a sparse view; none if its offsets make no sense.
    pub(crate) fn entries(&self, row: usize) -> std::ops::Range<usize> {
        let Self::Sparse { offsets, places, .. } = self else { return 0..0 };
        match (offsets.get(row), offsets.get(row + 1)) {
            (Some(start), Some(end)) if 0 <= *start && start <= end && *end as usize <= places.len() => {
                *start as usize..*end as usize
            }
            _ => 0..0,
        }
    }

    /// The columns of some entries.
    pub(crate) fn places(&self, entries: std::ops::Range<usize>) -> &[i32] {
        match self {
            Self::Sparse { places, .. } => &places[entries],
            Self::Dense { .. } => &[],
        }
    }
}

/// The columns of one row are next to each other, and so are the rows.
type Block = Arc<dyn Grid>;

/// A column, by where its cells are.
enum Place {
    /// A column of a grid.
    Number { grid: usize, column: usize },
    /// Values by number; −1 where there is none.
    Category { codes: Vec<i32>, values: Vec<String> },
}

/// Columns of equal length that lie in memory.
pub struct MemoryTable {
    grids: Vec<Block>,
    columns: Vec<FileColumn>,
    places: Vec<Place>,
    rows: usize,
    pub(crate) may_be_copied: bool,
}

impl MemoryTable {
    /// Without columns, of so many rows.
    pub fn new(rows: usize) -> Self {
        let (grids, columns, places) = (Vec::new(), Vec::new(), Vec::new());
        Self { grids, columns, places, rows, may_be_copied: false }
    }

    /// Lets the kernel keep an encoded copy of its own, however large: more memory for faster steps.
    pub fn copied(self) -> Self {
        Self { may_be_copied: true, ..self }
    }

    /// The number of its rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds columns of numbers, a name each. They must have as many rows as the table.
    pub fn with_numbers(mut self, names: Vec<String>, grid: Block) -> Result<Self> {
        let (rows, columns) = grid.view().shape();
        if columns != names.len() || rows != self.rows {
            return Err(Error::Ragged { rows, columns, expected_rows: self.rows, expected: names.len() });
        }
        for (column, name) in names.into_iter().enumerate() {
            self.columns.push(FileColumn { name, kind: FileKind::Number });
            self.places.push(Place::Number { grid: self.grids.len(), column });
        }
        self.grids.push(grid);
        Ok(self)
    }

    /// Adds a column of text: its values, and which of them each row has. A code that is no value is a missing cell.
    pub fn with_category(mut self, name: String, codes: Vec<i32>, values: Vec<String>) -> Result<Self> {
        if codes.len() != self.rows {
            let (rows, columns, expected) = (codes.len(), 1, 1);
            return Err(Error::Ragged { rows, columns, expected_rows: self.rows, expected });
        }
        self.columns.push(FileColumn { name, kind: FileKind::Category });
        self.places.push(Place::Category { codes, values });
        Ok(self)
    }

    /// Where the numbers of a column are, if it is one of numbers: a grid by its place, and a column of it.
    pub(crate) fn number(&self, column: usize) -> Option<(usize, usize)> {
        match self.places[column] {
            Place::Number { grid, column } => Some((grid, column)),
            Place::Category { .. } => None,
        }
    }

    /// Which value each row has, and the values, if it is a column of text.
    pub(crate) fn category(&self, column: usize) -> Option<(&[i32], &[String])> {
        match &self.places[column] {
            Place::Number { .. } => None,
            Place::Category { codes, values } => Some((codes, values)),
        }
    }

    /// All grids.
    pub(crate) fn views(&self) -> Vec<View<'_>> {
        self.grids.iter().map(|grid| grid.view()).collect()
    }

    /// The cells of some rows.
    pub(crate) fn fill(
        &self,
        rows: impl Iterator<Item = usize> + Clone,
        wanted: &[usize],
        cells: &mut [Cells],
    ) {
        for (column, cells) in wanted.iter().zip(&mut *cells) {
            match &self.places[*column] {
                Place::Number { grid, column } => {
                    let Some(to) = cells.numbers() else { continue };
                    match self.grids[*grid].view() {
                        View::Dense { numbers, row_stride, column_stride, .. } => {
                            let at = |row| row * row_stride + column * column_stride;
                            to.extend(rows.clone().map(|row| numbers.get(at(row))));
                        }
                        // What is there is filled in below, row by row.
                        View::Sparse { .. } => to.extend(rows.clone().map(|_| 0.0)),
                    }
                }
                Place::Category { codes, values } => rows.clone().for_each(|row| {
                    let value = usize::try_from(codes[row]).ok().and_then(|code| values.get(code));
                    cells.push_text(value.map(|value| value.as_bytes()));
                }),
            }
        }
        for (number, grid) in self.grids.iter().enumerate() {
            let view = grid.view();
            let View::Sparse { numbers, columns, .. } = view else { continue };
            // Where the cells of each of its columns are.
            let mut cells_of = vec![None; columns];
            for (place, column) in wanted.iter().enumerate() {
                if let Some((_, column)) = self.number(*column).filter(|(grid, _)| *grid == number) {
                    cells_of[column] = Some(place);
                }
            }
            for (at, row) in rows.clone().enumerate() {
                let entries = view.entries(row);
                for (entry, column) in entries.clone().zip(view.places(entries)) {
                    let place = usize::try_from(*column).ok().and_then(|column| *cells_of.get(column)?);
                    if let Some(to) = place.and_then(|place| cells[place].numbers()?.get_mut(at)) {
                        *to = numbers.get(entry);
                    }
                }
            }
        }
    }

    /// Whether some of its numbers are stored without the zeros.
    fn is_sparse(&self) -> bool {
        self.views().iter().any(|view| matches!(view, View::Sparse { .. }))
    }
}

/// Whether this is the path of an attached table that stores numbers without the zeros: they should stay zeros.
pub fn is_sparse(path: &Path) -> bool {
    attached(path).ok().flatten().is_some_and(|table| table.is_sparse())
}

/// Whether this is the path of an attached table. It lasts for one call, and names no data.
pub fn is_attached(path: &Path) -> bool {
    attached(path).is_ok_and(|table| table.is_some())
}

/// Whether these are the paths of attached tables that have a number in common: by its address, never by its value.
///
/// Two views of one array that have no number in common, such as its first rows and its last or every other row, share nothing.
/// Where strides differ so that it is not known for sure, they count as sharing.
pub fn shares_memory(one: &Path, other: &Path) -> bool {
    let (Ok(Some(one)), Ok(Some(other))) = (attached(one), attached(other)) else { return false };
    let spans = |table: &MemoryTable| table.views().iter().filter_map(Spans::of).collect::<Vec<_>>();
    let other = spans(&other);
    spans(&one).iter().any(|one| other.iter().any(|other| one.meets(other)))
}

/// Where the numbers of a view are: runs at equal distances, of numbers at equal distances. In bytes.
#[derive(Debug, Clone, Copy)]
struct Spans {
    first: usize,
    runs: usize,
    run_stride: usize,
    numbers: usize,
    stride: usize,
    size: usize,
}

impl Spans {
    /// None of a view without numbers.
    fn of(view: &View<'_>) -> Option<Self> {
        let start = |numbers: Numbers<'_>| match numbers {
            Numbers::F32(numbers) => (numbers.as_ptr().addr(), size_of::<f32>(), numbers.len()),
            Numbers::F64(numbers) => (numbers.as_ptr().addr(), size_of::<f64>(), numbers.len()),
        };
        let (first, size, runs, numbers) = match *view {
            View::Sparse { numbers, .. } => {
                let (first, size, count) = start(numbers);
                (first, size, (1, 0), (count, size))
            }
            View::Dense { numbers, rows, columns, row_stride, column_stride } => {
                let (first, size, _) = start(numbers);
                let (by_row, by_column) = ((rows, row_stride * size), (columns, column_stride * size));
                // Runs are rows, or columns of an array by columns.
                if by_row.1 >= by_column.1 {
                    (first, size, by_row, by_column)
                } else {
                    (first, size, by_column, by_row)
                }
            }
        };
        let is_empty = runs.0 == 0 || numbers.0 == 0;
        (!is_empty).then_some(Self {
            first,
            runs: runs.0,
            run_stride: runs.1,
            numbers: numbers.0,
            stride: numbers.1,
            size,
        })
    }

    /// The bytes from the first to the last of a run.
    fn run_bytes(&self) -> usize {
        (self.numbers - 1) * self.stride + self.size
    }

    /// Whether runs follow each other without overlapping.
    fn is_apart(&self) -> bool {
        self.runs == 1 || self.run_stride >= self.run_bytes()
    }

    fn meets(&self, other: &Self) -> bool {
        let end = |all: &Self| all.first + (all.runs - 1) * all.run_stride + all.run_bytes();
        if self.first >= end(other) || other.first >= end(self) {
            return false;
        }
        if !self.is_apart() || !other.is_apart() {
            return true;
        }
        let (mut i, mut j) = (0, 0);
        while i < self.runs && j < other.runs {
            let (one, two) = (self.first + i * self.run_stride, other.first + j * other.run_stride);
            let (one_end, two_end) = (one + self.run_bytes(), two + other.run_bytes());
            if one < two_end && two < one_end && self.runs_meet(other, one.abs_diff(two), one <= two) {
                return true;
            }
            if one_end <= two_end { i += 1 } else { j += 1 }
        }
        false
    }

    /// Whether two runs that overlap, the second so many bytes after the first or before it, have a number in common.
    fn runs_meet(&self, other: &Self, distance: usize, is_after: bool) -> bool {
        if self.numbers == 1 || other.numbers == 1 || self.stride != other.stride || self.stride == 0 {
            return true;
        }
        let (before, after) = if is_after { (self, other) } else { (other, self) };
        let rest = distance % self.stride;
        rest < before.size || rest + after.size > self.stride
    }
}

/// Neither cells nor their number.
impl fmt::Debug for MemoryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTable").field("columns", &self.columns.len()).finish_non_exhaustive()
    }
}

/// An attached table as a file.
pub(super) struct MemoryFile {
    table: Arc<MemoryTable>,
    bounds: Vec<usize>,
}

impl MemoryFile {
    pub(super) fn new(table: Arc<MemoryTable>, rows_per_block: usize) -> Self {
        let bounds = even_bounds(table.rows, rows_per_block);
        Self { table, bounds }
    }
}

impl TableFile for MemoryFile {
    fn columns(&self) -> &[FileColumn] {
        &self.table.columns
    }

    fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        let (mut next, end) = (self.bounds[block], self.bounds[block + 1]);
        show.all(end - next, cells, |cells, rows| {
            self.table.fill(next..next + rows, wanted, cells);
            next += rows;
            Ok(())
        })
    }

    fn in_memory(&self) -> Option<&MemoryTable> {
        Some(&self.table)
    }
}

/// Before the name of an attached table.
const PREFIX: &str = "memory:";

static TABLES: LazyLock<Mutex<HashMap<PathBuf, Arc<MemoryTable>>>> = LazyLock::new(Mutex::default);

/// A table under a name, for as long as this is kept. Sources that were opened meanwhile stay good.
#[derive(Debug)]
pub struct Attached {
    path: PathBuf,
}

impl Attached {
    /// Attaches a table under a path of its own, which ends in this name.
    pub fn new(name: &str, table: MemoryTable) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("{PREFIX}{number}/{name}"));
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.insert(path.clone(), Arc::new(table));
        Self { path }
    }

    /// What to open it by.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        TABLES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

/// The table that a path stands for, if it is of this kind.
pub(super) fn attached(path: &Path) -> Result<Option<Arc<MemoryTable>>> {
    if !path.to_str().is_some_and(|path| path.starts_with(PREFIX)) {
        return Ok(None);
    }
    let tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    match tables.get(path) {
        Some(table) => Ok(Some(table.clone())),
        None => Err(Error::unreadable(path, "no table is attached under this name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// A view of one array that others see too.
    struct Part {
        array: Arc<Vec<f64>>,
        first: usize,
        shape: (usize, usize),
        strides: (usize, usize),
    }

    impl Grid for Part {
        fn view(&self) -> View<'_> {
            View::Dense {
                numbers: Numbers::F64(&self.array[self.first..]),
                rows: self.shape.0,
                columns: self.shape.1,
                row_stride: self.strides.0,
                column_stride: self.strides.1,
            }
        }
    }

    impl Part {
        fn new(array: &Arc<Vec<f64>>, first: usize, shape: (usize, usize), strides: (usize, usize)) -> Self {
            Self { array: array.clone(), first, shape, strides }
        }

        fn places(&self) -> HashSet<usize> {
            let row =
                |row| (0..self.shape.1).map(move |column| row * self.strides.0 + column * self.strides.1);
            (0..self.shape.0).flat_map(row).map(|place| self.first + place).collect()
        }

        fn meets(&self, other: &Self) -> bool {
            match (Spans::of(&self.view()), Spans::of(&other.view())) {
                (Some(one), Some(other)) => one.meets(&other),
                _ => false,
            }
        }
    }

    #[test]
    fn parts_of_an_array_share_what_they_have_in_common() {
        let array = Arc::new(vec![0.0; 60]);
        let part = |first, shape, strides| Part::new(&array, first, shape, strides);
        let whole = part(0, (20, 3), (3, 1));
        let by_columns = part(0, (20, 3), (1, 20));
        for (one, other, shared) in [
            (&whole, &whole, true),
            (&whole, &by_columns, true),
            (&part(0, (10, 3), (3, 1)), &part(30, (10, 3), (3, 1)), false),
            (&part(0, (11, 3), (3, 1)), &part(30, (10, 3), (3, 1)), true),
            // Every other row, and the others.
            (&part(0, (10, 3), (6, 1)), &part(3, (10, 3), (6, 1)), false),
            (&part(0, (10, 3), (1, 20)), &part(10, (10, 3), (1, 20)), false),
            (&part(0, (10, 3), (2, 20)), &part(1, (10, 3), (2, 20)), false),
            (&part(0, (11, 3), (1, 20)), &part(10, (10, 3), (1, 20)), true),
            // Some columns, and others.
            (&part(0, (20, 2), (3, 1)), &part(2, (20, 1), (3, 1)), false),
            (&part(0, (0, 3), (3, 1)), &whole, false),
        ] {
            assert_eq!((one.meets(other), other.meets(one)), (shared, shared));
        }
        let copy = Arc::new(vec![0.0; 60]);
        assert!(!whole.meets(&Part::new(&copy, 0, (20, 3), (3, 1))));
    }

    proptest! {
        /// What has a number in common is found, however it lies.
        #[test]
        fn no_common_number_is_missed(
            parts in proptest::collection::vec((0usize..20, (0usize..5, 0usize..5), (0usize..7, 0usize..7)), 2),
        ) {
            let array = Arc::new(vec![0.0; 100]);
            let [one, other] = [&parts[0], &parts[1]].map(|&(first, shape, strides)| Part::new(&array, first, shape, strides));
            if !one.places().is_disjoint(&other.places()) {
                prop_assert!(one.meets(&other) && other.meets(&one));
            }
        }
    }

    #[test]
    fn tables_share_memory_by_their_paths() {
        let array = Arc::new(vec![0.0; 60]);
        let attach = |parts: Vec<Part>| {
            let names = |part: usize| (0..3).map(|column| format!("{part}-{column}")).collect();
            let parts = parts.into_iter().enumerate();
            let table = parts.fold(MemoryTable::new(10), |table, (number, part)| {
                table.with_numbers(names(number), Arc::new(part)).unwrap()
            });
            Attached::new("rows", table)
        };
        let other = Arc::new(vec![0.0; 60]);
        let first =
            attach(vec![Part::new(&other, 0, (10, 3), (3, 1)), Part::new(&array, 0, (10, 3), (3, 1))]);
        let last = attach(vec![Part::new(&array, 30, (10, 3), (3, 1))]);
        let middle = attach(vec![Part::new(&array, 15, (10, 3), (3, 1))]);
        assert!(!shares_memory(first.path(), last.path()));
        assert!(shares_memory(first.path(), middle.path()) && shares_memory(middle.path(), last.path()));
        assert!(shares_memory(last.path(), last.path()));
        assert!(!shares_memory(last.path(), Path::new("last.csv")));
    }
}
