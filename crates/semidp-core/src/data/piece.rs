//! Rows in memory as their source showed them, dense or sparse.

use super::{Block, CsrBlock, DenseBlock};
use crate::query::RowLengths;
use std::ops::Range;

/// What is wrong with a source that shows rows of another width, or sparse rows with entries nowhere.
pub(crate) const ANOTHER_SHAPE: &str = "it shows rows of another shape than promised";
/// What is wrong with a source that does not show all of a block.
pub(crate) const TOO_FEW: &str = "it holds fewer units than promised";

/// Some rows of one kind.
pub(super) struct Piece {
    rows: Rows,
    pub(super) units: usize,
    lengths: RowLengths,
}

enum Rows {
    DenseF32(Vec<f32>),
    DenseF64(Vec<f64>),
    CsrF32(Sparse<f32>),
    CsrF64(Sparse<f64>),
}

struct Sparse<T> {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

/// Copies some units of a block to the last piece, or to a new one if that is of another kind or has `most` numbers.
pub(super) fn add(pieces: &mut Vec<Piece>, shown: &Block<'_>, units: Range<usize>, most: usize) {
    let room = pieces.last_mut().filter(|piece| piece.rows.len() < most);
    let taken = room.is_some_and(|piece| {
        let alike = piece.rows.append(shown, units.clone());
        piece.units += if alike { units.len() } else { 0 };
        alike
    });
    if !taken {
        let mut piece = Piece::like(shown, 0);
        piece.rows.append(shown, units.clone());
        piece.units = units.len();
        pieces.push(piece);
    }
}

/// Whether a block has whole rows of this width, and a sparse one entries where it says.
pub(crate) fn fits(block: &Block<'_>, width: usize) -> bool {
    fn dense<T>(block: &DenseBlock<'_, T>, width: usize) -> bool {
        block.width == width && block.values.len().is_multiple_of(width.max(1))
    }
    fn sparse<T>(block: &CsrBlock<'_, T>) -> bool {
        let is_in_order = block.offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        let end = block.columns.len().min(block.values.len());
        is_in_order && block.offsets.last().is_some_and(|last| *last <= end)
    }
    match block {
        Block::DenseF32(b) => dense(b, width),
        Block::DenseF64(b) => dense(b, width),
        Block::CsrF32(b) => sparse(b),
        Block::CsrF64(b) => sparse(b),
    }
}

impl Piece {
    /// No rows yet, of the kind of a block; with room for so many if they are dense. Windows of one size are made
    /// and dropped without end, and buffers that grow would leave holes of every size between them.
    pub(super) fn like(block: &Block<'_>, units: usize) -> Self {
        fn sparse<T>(units: usize) -> Sparse<T> {
            let mut offsets = Vec::with_capacity(units + 1);
            offsets.push(0);
            Sparse { offsets, columns: Vec::new(), values: Vec::new() }
        }
        let rows = match block {
            Block::DenseF32(b) => Rows::DenseF32(Vec::with_capacity(units * b.width)),
            Block::DenseF64(b) => Rows::DenseF64(Vec::with_capacity(units * b.width)),
            Block::CsrF32(_) => Rows::CsrF32(sparse(units)),
            Block::CsrF64(_) => Rows::CsrF64(sparse(units)),
        };
        Self { rows, units: 0, lengths: RowLengths::default() }
    }

    /// As its source showed it, with what is remembered of rows that nobody can change.
    pub(super) fn show(&self, width: usize) -> Block<'_> {
        fn sparse<T>(rows: &Sparse<T>) -> CsrBlock<'_, T> {
            CsrBlock { offsets: &rows.offsets, columns: &rows.columns, values: &rows.values }
        }
        let lengths = Some(&self.lengths);
        match &self.rows {
            Rows::DenseF32(values) => Block::DenseF32(DenseBlock { values, width, lengths }),
            Rows::DenseF64(values) => Block::DenseF64(DenseBlock { values, width, lengths }),
            Rows::CsrF32(rows) => Block::CsrF32(sparse(rows)),
            Rows::CsrF64(rows) => Block::CsrF64(sparse(rows)),
        }
    }
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Self::DenseF32(values) => values.len(),
            Self::DenseF64(values) => values.len(),
            Self::CsrF32(rows) => rows.values.len(),
            Self::CsrF64(rows) => rows.values.len(),
        }
    }

    /// Takes units of a block of the same kind; tells whether it is of the same kind.
    fn append(&mut self, block: &Block<'_>, units: Range<usize>) -> bool {
        fn dense<T: Copy>(rows: &mut Vec<T>, block: &DenseBlock<'_, T>, units: Range<usize>) {
            rows.extend_from_slice(&block.values[units.start * block.width..units.end * block.width]);
        }
        match (self, block) {
            (Self::DenseF32(rows), Block::DenseF32(b)) => dense(rows, b, units),
            (Self::DenseF64(rows), Block::DenseF64(b)) => dense(rows, b, units),
            (Self::CsrF32(rows), Block::CsrF32(b)) => rows.append(b, units),
            (Self::CsrF64(rows), Block::CsrF64(b)) => rows.append(b, units),
            _ => return false,
        }
        true
    }
}

impl<T: Copy> Sparse<T> {
    fn append(&mut self, block: &CsrBlock<'_, T>, units: Range<usize>) {
        let (first, last) = (block.offsets[units.start], block.offsets[units.end]);
        let before = self.values.len();
        let ends = &block.offsets[units.start + 1..=units.end];
        self.offsets.extend(ends.iter().map(|offset| before + offset - first));
        self.columns.extend_from_slice(&block.columns[first..last]);
        self.values.extend_from_slice(&block.values[first..last]);
    }
}
