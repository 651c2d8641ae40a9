//! A copy of a source in memory, for programs that read it many times.

use super::{Block, BlockSource, CsrBlock, DenseBlock};
use crate::query::RowLengths;
use crate::{Error, Result, parallel};
use std::ops::Range;

/// Numbers in a block, about: small enough that threads share a file of one block evenly.
const BLOCK_NUMBERS: usize = 1 << 20;

/// Rows as their source showed them, dense or sparse, in blocks.
pub struct InMemory {
    width: usize,
    blocks: Vec<Piece>,
    /// Block i holds the units `bounds[i] .. bounds[i + 1]`.
    bounds: Vec<usize>,
}

/// The rows of a block.
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

struct Piece {
    rows: Rows,
    units: usize,
    lengths: RowLengths,
}

impl InMemory {
    /// Reads everything once, blocks side by side.
    pub(crate) fn read<S: BlockSource>(source: &S) -> Result<Self> {
        let mut blocks: Vec<(usize, Result<Vec<Piece>>)> =
            (0..source.blocks()).map(|block| (block, Ok(Vec::new()))).collect();
        parallel::for_each(&mut blocks, parallel::available(), |(block, pieces)| {
            *pieces = read_block(source, *block);
        });
        let (mut all, mut bounds) = (Vec::new(), vec![0]);
        for (_, pieces) in blocks {
            for piece in pieces? {
                bounds.push(bounds[bounds.len() - 1] + piece.units);
                all.push(piece);
            }
        }
        Ok(Self { width: source.width(), blocks: all, bounds })
    }
}

fn read_block<S: BlockSource>(source: &S, block: usize) -> Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut left = source.units_of(block).len();
    let mut is_well_formed = true;
    source.visit(block, &mut |shown| {
        is_well_formed &= fits(&shown, source.width());
        if !is_well_formed {
            return;
        }
        let units = shown.units().min(left);
        left -= units;
        let room = pieces.last_mut().filter(|piece| piece.rows.len() < BLOCK_NUMBERS);
        let taken = room.is_some_and(|piece| {
            let alike = piece.rows.append(&shown, units);
            piece.units += if alike { units } else { 0 };
            alike
        });
        if !taken {
            let mut rows = Rows::like(&shown);
            rows.append(&shown, units);
            pieces.push(Piece { rows, units, lengths: RowLengths::default() });
        }
    })?;
    if !is_well_formed {
        return Err(Error::Source { block, reason: "it shows rows of another shape than promised" });
    }
    if left > 0 {
        return Err(Error::Source { block, reason: "it holds fewer units than promised" });
    }
    Ok(pieces)
}

/// Whether a block has whole rows of this width, and a sparse one entries where it says.
fn fits(block: &Block<'_>, width: usize) -> bool {
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

impl Rows {
    fn like(block: &Block<'_>) -> Self {
        fn empty<T>() -> Sparse<T> {
            Sparse { offsets: vec![0], columns: Vec::new(), values: Vec::new() }
        }
        match block {
            Block::DenseF32(_) => Self::DenseF32(Vec::new()),
            Block::DenseF64(_) => Self::DenseF64(Vec::new()),
            Block::CsrF32(_) => Self::CsrF32(empty()),
            Block::CsrF64(_) => Self::CsrF64(empty()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::DenseF32(values) => values.len(),
            Self::DenseF64(values) => values.len(),
            Self::CsrF32(rows) => rows.values.len(),
            Self::CsrF64(rows) => rows.values.len(),
        }
    }

    /// Takes the first units of a block of the same kind; tells whether it is of the same kind.
    fn append(&mut self, block: &Block<'_>, units: usize) -> bool {
        match (self, block) {
            (Self::DenseF32(values), Block::DenseF32(b)) => {
                values.extend_from_slice(&b.values[..units * b.width]);
            }
            (Self::DenseF64(values), Block::DenseF64(b)) => {
                values.extend_from_slice(&b.values[..units * b.width]);
            }
            (Self::CsrF32(rows), Block::CsrF32(b)) => rows.append(b, units),
            (Self::CsrF64(rows), Block::CsrF64(b)) => rows.append(b, units),
            _ => return false,
        }
        true
    }
}

impl<T: Copy> Sparse<T> {
    fn append(&mut self, block: &CsrBlock<'_, T>, units: usize) {
        let (first, last) = (block.offsets[0], block.offsets[units]);
        let before = self.values.len();
        self.offsets.extend(block.offsets[1..=units].iter().map(|offset| before + offset - first));
        self.columns.extend_from_slice(&block.columns[first..last]);
        self.values.extend_from_slice(&block.values[first..last]);
    }
}

impl BlockSource for InMemory {
    fn width(&self) -> usize {
        self.width
    }

    fn units(&self) -> usize {
        self.bounds[self.bounds.len() - 1]
    }

    fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        self.bounds[block]..self.bounds[block + 1]
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        fn sparse<T>(rows: &Sparse<T>) -> CsrBlock<'_, T> {
            CsrBlock { offsets: &rows.offsets, columns: &rows.columns, values: &rows.values }
        }
        let (width, piece) = (self.width, &self.blocks[block]);
        let lengths = Some(&piece.lengths);
        visit(match &piece.rows {
            Rows::DenseF32(values) => Block::DenseF32(DenseBlock { values, width, lengths }),
            Rows::DenseF64(values) => Block::DenseF64(DenseBlock { values, width, lengths }),
            Rows::CsrF32(rows) => Block::CsrF32(sparse(rows)),
            Rows::CsrF64(rows) => Block::CsrF64(sparse(rows)),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrTable, DenseTable};

    /// Every row, in order, as pairs of column and value.
    fn rows(source: &dyn BlockSource) -> Vec<Vec<(u32, f64)>> {
        let mut rows = Vec::new();
        for block in 0..source.blocks() {
            let before = rows.len();
            source
                .visit(block, &mut |block| match block {
                    Block::DenseF32(b) => rows.extend(b.values.chunks_exact(b.width).map(|row| {
                        row.iter().enumerate().map(|(j, x)| (j as u32, f64::from(*x))).collect::<Vec<_>>()
                    })),
                    Block::CsrF64(b) => rows.extend(b.offsets.windows(2).map(|pair| {
                        (pair[0]..pair[1]).map(|at| (b.columns[at], b.values[at])).collect::<Vec<_>>()
                    })),
                    _ => panic!("of another kind"),
                })
                .unwrap();
            assert_eq!(source.units_of(block), before..rows.len());
        }
        rows
    }

    #[test]
    fn a_copy_holds_the_same_rows() {
        let values: Vec<f32> = (0..3 * 700).map(|x| x as f32).collect();
        let dense = DenseTable::with_blocks(values, 3, 64).unwrap();
        assert_eq!(rows(&InMemory::read(&dense).unwrap()), rows(&dense));
        let offsets: Vec<usize> = (0..=500).map(|row| 2 * row).collect();
        let columns: Vec<u32> = (0..1000).map(|at| (at % 2) * 4 + at / 2 % 3).collect();
        let values: Vec<f64> = (0..1000).map(|x| x as f64 / 3.0).collect();
        let sparse = CsrTable::new(offsets, columns, values, 7).unwrap().with_blocks(33).unwrap();
        assert_eq!(rows(&InMemory::read(&sparse).unwrap()), rows(&sparse));
        let empty = DenseTable::<f32>::new(Vec::new(), 2).unwrap();
        assert_eq!(
            (InMemory::read(&empty).unwrap().units(), InMemory::read(&empty).unwrap().blocks()),
            (0, 0)
        );
    }

    /// Shows a large block in many pieces, and too few units if asked to.
    struct Pieces {
        pieces: usize,
        promised: usize,
        width: usize,
    }

    impl BlockSource for Pieces {
        fn width(&self) -> usize {
            1 << 14
        }
        fn units(&self) -> usize {
            self.promised
        }
        fn blocks(&self) -> usize {
            1
        }
        fn units_of(&self, _: usize) -> Range<usize> {
            0..self.promised
        }
        fn visit(&self, _: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
            for piece in 0..self.pieces {
                let values = vec![piece as f32; 10 << 14];
                visit(Block::DenseF32(DenseBlock::new(&values, self.width)));
            }
            Ok(())
        }
    }

    #[test]
    fn large_blocks_are_split_and_surplus_units_left_out() {
        let copy = InMemory::read(&Pieces { pieces: 20, promised: 195, width: 1 << 14 }).unwrap();
        assert!(copy.blocks() > 1);
        let found = rows(&copy);
        assert_eq!(found.len(), 195);
        assert!(found.iter().enumerate().all(|(row, cells)| cells[0].1 == (row / 10) as f64));
        assert!(InMemory::read(&Pieces { pieces: 2, promised: 21, width: 1 << 14 }).is_err());
        // Rows of another width would be cut anew.
        assert!(InMemory::read(&Pieces { pieces: 2, promised: 20, width: 1 << 13 }).is_err());
    }
}
