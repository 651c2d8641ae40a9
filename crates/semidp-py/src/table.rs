//! Arrays of NumPy as tables in memory. Numbers are read where they lie.

use crate::error::raise_from;
use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use semidp_table::{Attached, Grid, MemoryTable, Numbers, View};
use std::sync::Arc;

/// Columns of one length. It is filled, handed to one call, and empty afterwards.
#[pyclass(module = "semidp._native")]
pub struct Table {
    table: Option<MemoryTable>,
}

#[pymethods]
impl Table {
    /// Without columns.
    #[new]
    #[pyo3(signature = (rows, may_be_copied = false))]
    fn new(rows: usize, may_be_copied: bool) -> Self {
        let table = MemoryTable::new(rows);
        Self { table: Some(if may_be_copied { table.copied() } else { table }) }
    }

    /// Adds a matrix of numbers, a name for each column.
    fn add_numbers(&mut self, names: Vec<String>, array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        let grid = Dense::new(array)?;
        self.change(array.py(), |table| table.with_numbers(names, Arc::new(grid)))
    }

    /// Adds a matrix compressed by rows: offsets (int64), columns (int32) and numbers.
    fn add_sparse(
        &mut self,
        names: Vec<String>,
        offsets: &Bound<'_, PyUntypedArray>,
        places: &Bound<'_, PyUntypedArray>,
        numbers: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        let grid = Sparse {
            offsets: Held::of(offsets)?,
            places: Held::of(places)?,
            numbers: HeldNumbers::of(numbers)?,
            columns: names.len(),
        };
        self.change(offsets.py(), |table| table.with_numbers(names, Arc::new(grid)))
    }

    /// Adds a column of text: its values, and which of them each row has, −1 for none.
    fn add_category(
        &mut self,
        py: Python<'_>,
        name: String,
        codes: Vec<i32>,
        values: Vec<String>,
    ) -> PyResult<()> {
        self.change(py, |table| table.with_category(name, codes, values))
    }
}

impl Table {
    fn change(
        &mut self,
        py: Python<'_>,
        change: impl FnOnce(MemoryTable) -> semidp_table::Result<MemoryTable>,
    ) -> PyResult<()> {
        let table = self.taken()?;
        self.table = Some(change(table).map_err(|error| raise_from(py, error))?);
        Ok(())
    }

    fn taken(&mut self) -> PyResult<MemoryTable> {
        self.table.take().ok_or_else(|| PyTypeError::new_err("this table was handed over already"))
    }

    /// Hands the table over under a name.
    pub fn attach(&mut self, name: &str) -> PyResult<Attached> {
        Ok(Attached::new(name, self.taken()?))
    }
}

/// Elements of an array that nobody copies, and the array that keeps them.
struct Held<T> {
    first: *const T,
    count: usize,
    /// Never looked at: while it is kept, the memory of the elements is.
    _array: Py<PyAny>,
}

// SAFETY: the elements are plain numbers, of which threads only ever read; the array is touched by nobody, and its reference
// count is given back by PyO3 under the interpreter's lock. That Python code does not write to the array while it is being
// read is asked of callers, as everywhere in NumPy. Whatever it writes, contributions stay bounded: a table encodes rows into buffers
// of its own before the kernel sees them, so that no row changes between being measured and being added.
#[expect(unsafe_code, reason = "an array of Python outlives the borrow of its reference")]
unsafe impl<T: Sync> Send for Held<T> {}
#[expect(unsafe_code, reason = "an array of Python outlives the borrow of its reference")]
unsafe impl<T: Sync> Sync for Held<T> {}

impl<T: Element> Held<T> {
    /// All elements of a one-dimensional array without gaps.
    fn of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        if !array.is_contiguous() || array.ndim() != 1 {
            return Err(PyTypeError::new_err("an array without gaps was expected"));
        }
        Self::span(array, array.len())
    }

    /// So many elements from the first one on. The caller has made sure that the array reaches so far.
    fn span(array: &Bound<'_, PyUntypedArray>, count: usize) -> PyResult<Self> {
        let typed = array.cast::<PyArrayDyn<T>>()?;
        Ok(Self { first: typed.data(), count, _array: array.clone().into_any().unbind() })
    }
}

impl<T> Held<T> {
    fn get(&self) -> &[T] {
        if self.count == 0 {
            return &[];
        }
        // SAFETY: the array holds so many elements of this type from `first` on, aligned as NumPy told, and is kept.
        #[expect(unsafe_code, reason = "an array of Python outlives the borrow of its reference")]
        unsafe {
            std::slice::from_raw_parts(self.first, self.count)
        }
    }
}

enum HeldNumbers {
    F32(Held<f32>),
    F64(Held<f64>),
}

impl HeldNumbers {
    fn of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        match Held::of(array) {
            Ok(single) => Ok(Self::F32(single)),
            Err(_) => Held::of(array).map(Self::F64),
        }
    }

    fn span(array: &Bound<'_, PyUntypedArray>, count: usize) -> PyResult<Self> {
        match Held::span(array, count) {
            Ok(single) => Ok(Self::F32(single)),
            Err(_) => Held::span(array, count).map(Self::F64),
        }
    }

    fn get(&self) -> Numbers<'_> {
        match self {
            Self::F32(numbers) => Numbers::F32(numbers.get()),
            Self::F64(numbers) => Numbers::F64(numbers.get()),
        }
    }
}

/// A matrix by rows, by columns, or with gaps between either.
struct Dense {
    numbers: HeldNumbers,
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl Dense {
    fn new(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let wrong = || PyTypeError::new_err("a matrix of aligned float32 or float64 was expected");
        let (&[rows, columns], &[by_row, by_column]) = (array.shape(), array.strides()) else {
            return Err(wrong());
        };
        let size = array.dtype().itemsize();
        let aligned: bool = array.getattr("flags")?.getattr("aligned")?.extract()?;
        let stride = |bytes: isize, count: usize| match usize::try_from(bytes) {
            _ if count <= 1 => Some(0),
            Ok(bytes) if size > 0 && bytes % size == 0 => Some(bytes / size),
            _ => None,
        };
        let (Some(row_stride), Some(column_stride), true) =
            (stride(by_row, rows), stride(by_column, columns), aligned)
        else {
            return Err(wrong());
        };
        let count = match rows * columns {
            0 => 0,
            _ => (rows - 1) * row_stride + (columns - 1) * column_stride + 1,
        };
        // One column has no next one; rows that follow each other are the fast way all the same.
        let column_stride = if columns == 1 { 1 } else { column_stride };
        let numbers = HeldNumbers::span(array, count).map_err(|_| wrong())?;
        Ok(Self { numbers, rows, columns, row_stride, column_stride })
    }
}

impl Grid for Dense {
    fn view(&self) -> View<'_> {
        View::Dense {
            numbers: self.numbers.get(),
            rows: self.rows,
            columns: self.columns,
            row_stride: self.row_stride,
            column_stride: self.column_stride,
        }
    }
}

struct Sparse {
    offsets: Held<i64>,
    places: Held<i32>,
    numbers: HeldNumbers,
    columns: usize,
}

impl Grid for Sparse {
    fn view(&self) -> View<'_> {
        View::Sparse {
            offsets: self.offsets.get(),
            places: self.places.get(),
            numbers: self.numbers.get(),
            columns: self.columns,
        }
    }
}
