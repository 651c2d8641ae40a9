//! Where units come from: blocks of rows, dense or sparse, in memory or elsewhere.
//!
//! A *unit* is what one person contributes, and what adjacency, sampling and clipping act on. Here it
//! is one row; a source that groups rows by person would yield one clipped row a unit.

use super::piece;
use crate::query::RowLengths;
use crate::{Error, Result};
use std::ops::{Deref, Range};

/// A number as a source stores it.
pub trait Number: sealed::Float {}

impl Number for f32 {}
impl Number for f64 {}

pub(crate) mod sealed {
    use super::{Block, CsrBlock, DenseBlock};
    use std::ops::{Add, Div, Mul, Sub};

    /// What the clipping code needs of `f32` and `f64`.
    pub trait Float:
        Copy
        + Send
        + Sync
        + PartialOrd
        + Default
        + Add<Output = Self>
        + Sub<Output = Self>
        + Mul<Output = Self>
        + Div<Output = Self>
        + 'static
    {
        fn of(value: f64) -> Self;
        fn to_f64(self) -> f64;
        /// Truncates towards zero a number that is known to be at most 2^30 in absolute value.
        fn truncate_bounded(self) -> i32;
        fn absolute(self) -> Self;
        /// A block of such numbers.
        fn dense(block: DenseBlock<'_, Self>) -> Block<'_>;
        /// A sparse one.
        fn sparse(block: CsrBlock<'_, Self>) -> Block<'_>;
    }

    const LARGEST_F32: f32 = (1 << 30) as f32;
    const LARGEST_F64: f64 = (1 << 30) as f64;

    impl Float for f32 {
        #[inline(always)]
        fn of(value: f64) -> Self {
            value as f32
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            f64::from(self)
        }
        #[inline(always)]
        fn truncate_bounded(self) -> i32 {
            debug_assert!(self.abs() <= LARGEST_F32);
            // SAFETY: the callers compare the number with ±LARGEST_F32 before, so that it is finite and fits.
            #[expect(unsafe_code, reason = "the checked conversion is not a vector instruction")]
            unsafe {
                self.to_int_unchecked()
            }
        }
        #[inline(always)]
        fn absolute(self) -> Self {
            self.abs()
        }
        fn dense(block: DenseBlock<'_, Self>) -> Block<'_> {
            Block::DenseF32(block)
        }
        fn sparse(block: CsrBlock<'_, Self>) -> Block<'_> {
            Block::CsrF32(block)
        }
    }

    impl Float for f64 {
        #[inline(always)]
        fn of(value: f64) -> Self {
            value
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            self
        }
        #[inline(always)]
        fn truncate_bounded(self) -> i32 {
            debug_assert!(self.abs() <= LARGEST_F64);
            // SAFETY: the callers compare the number with ±LARGEST_F64 before, so that it is finite and fits.
            #[expect(unsafe_code, reason = "the checked conversion is not a vector instruction")]
            unsafe {
                self.to_int_unchecked()
            }
        }
        #[inline(always)]
        fn absolute(self) -> Self {
            self.abs()
        }
        fn dense(block: DenseBlock<'_, Self>) -> Block<'_> {
            Block::DenseF64(block)
        }
        fn sparse(block: CsrBlock<'_, Self>) -> Block<'_> {
            Block::CsrF64(block)
        }
    }
}

/// Rows one after the other.
///
/// A source that changes the rows of another makes a block of its own of them:
/// ```compile_fail,E0616
/// # use semidp_core::DenseBlock;
/// let mut block = DenseBlock::new(&[1.0f32, 2.0], 2);
/// block.values = &[1e9, 1e9];
/// ```
#[derive(Clone, Copy)]
pub struct DenseBlock<'a, T> {
    /// `width` numbers a row.
    pub(crate) values: &'a [T],
    /// Columns.
    pub(crate) width: usize,
    /// What is remembered of rows that nobody can change: only tables of the kernel's own have it. No field can be
    /// exchanged outside the kernel, or other rows might go by these lengths.
    pub(crate) lengths: Option<&'a RowLengths>,
}

impl<'a, T> DenseBlock<'a, T> {
    /// Rows of `width` numbers.
    pub fn new(values: &'a [T], width: usize) -> Self {
        Self { values, width, lengths: None }
    }

    /// All numbers, row by row.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }
}

/// Rows of which only some columns are stored.
#[derive(Clone, Copy)]
pub struct CsrBlock<'a, T> {
    /// Row i has the entries `offsets[i] .. offsets[i + 1]`.
    pub offsets: &'a [usize],
    /// The column of each entry; strictly increasing within a row. A row for which that does not hold
    /// contributes nothing.
    pub columns: &'a [u32],
    /// The value of each entry.
    pub values: &'a [T],
}

/// A block of units.
#[derive(Clone, Copy)]
pub enum Block<'a> {
    /// Dense single precision.
    DenseF32(DenseBlock<'a, f32>),
    /// Dense double precision.
    DenseF64(DenseBlock<'a, f64>),
    /// Sparse single precision.
    CsrF32(CsrBlock<'a, f32>),
    /// Sparse double precision.
    CsrF64(CsrBlock<'a, f64>),
}

impl Block<'_> {
    /// The number of units it shows.
    pub fn units(&self) -> usize {
        fn dense<T>(block: &DenseBlock<'_, T>) -> usize {
            block.values.len() / block.width.max(1)
        }
        fn sparse<T>(block: &CsrBlock<'_, T>) -> usize {
            block.offsets.len().saturating_sub(1)
        }
        match self {
            Self::DenseF32(block) => dense(block),
            Self::DenseF64(block) => dense(block),
            Self::CsrF32(block) => sparse(block),
            Self::CsrF64(block) => sparse(block),
        }
    }
}

/// Units in blocks.
///
/// Memory, files and other languages' arrays are equals here. The implementor answers for three things:
/// each unit is in exactly one block, at the place that [`BlockSource::units_of`] says, every time it is
/// asked; a unit's row depends on that unit alone; and what is shown does not change while it is shown, so that memory that others may
/// write to is copied first.
pub trait BlockSource: Send + Sync {
    /// Columns.
    fn width(&self) -> usize;

    /// Units in all blocks.
    fn units(&self) -> usize;

    /// Blocks.
    fn blocks(&self) -> usize;

    /// The units of a block, counted through all blocks.
    fn units_of(&self, block: usize) -> Range<usize>;

    /// Shows a block, whole or in pieces: each piece holds the units that follow those of the last. Units
    /// beyond the promised ones are not looked at. An error must not depend on a value.
    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()>;

    /// The same, until `visit` answers false. A source that can stop in the middle of a block should: otherwise
    /// the rest of it is read for nobody.
    fn visit_while(&self, block: usize, visit: &mut dyn FnMut(Block<'_>) -> bool) -> Result<()> {
        let mut is_wanted = true;
        self.visit(block, &mut |piece| is_wanted = is_wanted && visit(piece))
    }

    /// Whether the units lie in memory already, in a form that is not the kernel's, such as an array of another language. They are
    /// then left there if they are many, and asked for by [`BlockSource::visit_some`].
    fn is_resident(&self) -> bool {
        false
    }

    /// Shows the units of a block at these places, counted from its first unit and rising, and no others. A source that is
    /// resident should not look at the rest.
    fn visit_some(&self, block: usize, chosen: &[usize], visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        let (mut before, mut next) = (0, 0);
        let mut is_well_formed = true;
        self.visit(block, &mut |shown| {
            is_well_formed &= piece::fits(&shown, self.width());
            if !is_well_formed {
                return;
            }
            let end = before + shown.units();
            let mut pieces = Vec::new();
            while let Some(place) = chosen.get(next).filter(|place| **place < end) {
                let unit = place - before;
                piece::add(&mut pieces, &shown, unit..unit + 1, usize::MAX);
                next += 1;
            }
            before = end;
            pieces.iter().for_each(|piece| visit(piece.show(self.width())));
        })?;
        match is_well_formed {
            true => Ok(()),
            false => Err(Error::Source { block, reason: piece::ANOTHER_SHAPE }),
        }
    }

    /// What a unit takes in memory, at most or on average; it decides whether units are kept there. Unless a source
    /// knows better: a sparse row with an entry in every column, in double precision.
    fn bytes_per_unit(&self) -> u64 {
        12 * self.width() as u64 + 8
    }
}

/// A shared or boxed source is one too.
impl<P: Deref<Target: BlockSource> + Send + Sync> BlockSource for P {
    fn width(&self) -> usize {
        (**self).width()
    }

    fn units(&self) -> usize {
        (**self).units()
    }

    fn blocks(&self) -> usize {
        (**self).blocks()
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        (**self).units_of(block)
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        (**self).visit(block, visit)
    }

    fn visit_while(&self, block: usize, visit: &mut dyn FnMut(Block<'_>) -> bool) -> Result<()> {
        (**self).visit_while(block, visit)
    }

    fn is_resident(&self) -> bool {
        (**self).is_resident()
    }

    fn visit_some(&self, block: usize, chosen: &[usize], visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        (**self).visit_some(block, chosen, visit)
    }

    fn bytes_per_unit(&self) -> u64 {
        (**self).bytes_per_unit()
    }
}

/// The units of two sources, one after the other.
pub struct Joined<S, P> {
    first: S,
    second: P,
}

impl<S: BlockSource, P: BlockSource> Joined<S, P> {
    /// Both must have the same columns.
    pub(crate) fn new(first: S, second: P) -> Result<Self> {
        let (found, expected) = (second.width(), first.width());
        if found != expected {
            return Err(Error::Shape { what: "the second table", of: "columns", found, expected });
        }
        Ok(Self { first, second })
    }
}

impl<S: BlockSource, P: BlockSource> BlockSource for Joined<S, P> {
    fn width(&self) -> usize {
        self.first.width()
    }

    fn units(&self) -> usize {
        self.first.units() + self.second.units()
    }

    fn blocks(&self) -> usize {
        self.first.blocks() + self.second.blocks()
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        match block.checked_sub(self.first.blocks()) {
            None => self.first.units_of(block),
            Some(block) => {
                let (units, before) = (self.second.units_of(block), self.first.units());
                before + units.start..before + units.end
            }
        }
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        match block.checked_sub(self.first.blocks()) {
            None => self.first.visit(block, visit),
            Some(block) => self.second.visit(block, visit),
        }
    }

    fn visit_while(&self, block: usize, visit: &mut dyn FnMut(Block<'_>) -> bool) -> Result<()> {
        match block.checked_sub(self.first.blocks()) {
            None => self.first.visit_while(block, visit),
            Some(block) => self.second.visit_while(block, visit),
        }
    }

    /// The second may be small, and is shown whole if it has no better way.
    fn is_resident(&self) -> bool {
        self.first.is_resident()
    }

    fn visit_some(&self, block: usize, chosen: &[usize], visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        match block.checked_sub(self.first.blocks()) {
            None => self.first.visit_some(block, chosen, visit),
            Some(block) => self.second.visit_some(block, chosen, visit),
        }
    }

    fn bytes_per_unit(&self) -> u64 {
        self.first.bytes_per_unit().max(self.second.bytes_per_unit())
    }
}

/// Numbers in a block, about: enough that a sparse sample still has some rows of each block, few enough that
/// threads share the work evenly.
const BLOCK_NUMBERS: usize = 1 << 22;

/// A dense table in memory.
pub struct DenseTable<T> {
    values: Vec<T>,
    width: usize,
    rows_per_block: usize,
    /// One for each block.
    lengths: Vec<RowLengths>,
}

impl<T: Number> DenseTable<T> {
    /// Rows of `width` numbers, one after the other.
    pub fn new(values: Vec<T>, width: usize) -> Result<Self> {
        let rows_per_block = (BLOCK_NUMBERS / width.max(1)).max(1);
        Self::with_blocks(values, width, rows_per_block)
    }

    /// The same in blocks of a given number of rows. It makes no difference to any result.
    pub fn with_blocks(values: Vec<T>, width: usize, rows_per_block: usize) -> Result<Self> {
        if width == 0 {
            return Err(Error::invalid("width", width, "a whole number >= 1"));
        }
        if rows_per_block == 0 {
            return Err(Error::invalid("rows-per-block", rows_per_block, "a whole number >= 1"));
        }
        if !values.len().is_multiple_of(width) {
            let expected = values.len().next_multiple_of(width);
            return Err(Error::Shape { what: "the table", of: "values", found: values.len(), expected });
        }
        let blocks = (values.len() / width).div_ceil(rows_per_block);
        let lengths = (0..blocks).map(|_| RowLengths::default()).collect();
        Ok(Self { values, width, rows_per_block, lengths })
    }

    fn rows(&self) -> usize {
        self.values.len() / self.width
    }
}

impl<T: Number> BlockSource for DenseTable<T> {
    fn width(&self) -> usize {
        self.width
    }

    fn units(&self) -> usize {
        self.rows()
    }

    fn blocks(&self) -> usize {
        self.rows().div_ceil(self.rows_per_block)
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        let start = block * self.rows_per_block;
        start..(start + self.rows_per_block).min(self.rows())
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        let units = self.units_of(block);
        let values = &self.values[units.start * self.width..units.end * self.width];
        let lengths = Some(&self.lengths[block]);
        visit(T::dense(DenseBlock { values, width: self.width, lengths }));
        Ok(())
    }

    fn bytes_per_unit(&self) -> u64 {
        (size_of::<T>() * self.width) as u64
    }
}

/// A sparse table in memory, compressed by rows.
pub struct CsrTable<T> {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
    width: usize,
    rows_per_block: usize,
}

impl<T: Number> CsrTable<T> {
    /// Row i has the entries `offsets[i] .. offsets[i + 1]` of `columns` and `values`.
    ///
    /// The shape is checked; the columns themselves are not, because an error would depend on private
    /// values: a row whose columns do not increase strictly below `width` contributes nothing.
    pub fn new(offsets: Vec<usize>, columns: Vec<u32>, values: Vec<T>, width: usize) -> Result<Self> {
        if width == 0 || u32::try_from(width).is_err() {
            return Err(Error::invalid("width", width, "a whole number from 1 to 2^32 - 1"));
        }
        if columns.len() != values.len() {
            let (found, expected) = (columns.len(), values.len());
            return Err(Error::Shape { what: "the sparse table", of: "column numbers", found, expected });
        }
        let ends_well = offsets.first() == Some(&0) && offsets.last() == Some(&values.len());
        if !ends_well || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Error::invalid(
                "offsets",
                "another list",
                "a list that starts at 0, never falls, and ends at the number of values",
            ));
        }
        Ok(Self { offsets, columns, values, width, rows_per_block: 1024 })
    }

    /// The same in blocks of a given number of rows. It makes no difference to any result.
    pub fn with_blocks(self, rows_per_block: usize) -> Result<Self> {
        if rows_per_block == 0 {
            return Err(Error::invalid("rows-per-block", rows_per_block, "a whole number >= 1"));
        }
        Ok(Self { rows_per_block, ..self })
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl<T: Number> BlockSource for CsrTable<T> {
    fn width(&self) -> usize {
        self.width
    }

    fn units(&self) -> usize {
        self.rows()
    }

    fn blocks(&self) -> usize {
        self.rows().div_ceil(self.rows_per_block)
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        let start = block * self.rows_per_block;
        start..(start + self.rows_per_block).min(self.rows())
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        let units = self.units_of(block);
        let offsets = &self.offsets[units.start..=units.end];
        visit(T::sparse(CsrBlock { offsets, columns: &self.columns, values: &self.values }));
        Ok(())
    }
}
