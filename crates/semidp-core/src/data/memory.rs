//! A copy of a source in memory, for programs that read it many times.

use super::piece::{self, Piece};
use super::{Block, BlockSource};
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
        is_well_formed &= piece::fits(&shown, source.width());
        if is_well_formed {
            let units = shown.units().min(left);
            left -= units;
            piece::add(&mut pieces, &shown, 0..units, BLOCK_NUMBERS);
        }
    })?;
    if !is_well_formed {
        return Err(Error::Source { block, reason: piece::ANOTHER_SHAPE });
    }
    if left > 0 {
        return Err(Error::Source { block, reason: piece::TOO_FEW });
    }
    Ok(pieces)
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
        visit(self.blocks[block].show(self.width));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrTable, DenseBlock, DenseTable, Private, Public, Sampling};
    use crate::noise::Gaussian;
    use crate::noise::rng::Randomness;
    use crate::query::ClippedSum;
    use crate::session::{Program, Session};
    use semidp_accounting::{Adjacency, Delta, NoiseMultiplier, SampleRate, Steps};

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

    /// Rows that lie in memory already; shows everything twice if it is greedy, whoever was chosen.
    struct Resident {
        rows: DenseTable<f32>,
        is_greedy: bool,
    }

    impl BlockSource for Resident {
        fn width(&self) -> usize {
            self.rows.width()
        }
        fn units(&self) -> usize {
            self.rows.units()
        }
        fn blocks(&self) -> usize {
            self.rows.blocks()
        }
        fn units_of(&self, block: usize) -> Range<usize> {
            self.rows.units_of(block)
        }
        fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
            self.rows.visit(block, visit)
        }
        fn is_resident(&self) -> bool {
            true
        }
        fn visit_some(&self, block: usize, chosen: &[usize], visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
            if self.is_greedy {
                self.rows.visit(block, visit)?;
                return self.rows.visit(block, visit);
            }
            self.rows.visit_some(block, chosen, visit)
        }
    }

    /// The noiseless sums of two steps, which only a test of the kernel can see.
    fn sums<S: BlockSource>(source: S, sampling: Sampling) -> Vec<f64> {
        let session = Session::new(Private::new(source), Adjacency::ReplaceOne).unwrap();
        let session = session.with_randomness(Randomness::Seed(9));
        let noise = Gaussian::new(NoiseMultiplier::new(1.0).unwrap());
        let program = Program::new(noise, sampling, Steps::new(2).unwrap());
        let (run, tickets) = session.authorise(program, Delta::new(1e-5).unwrap()).unwrap();
        let query = ClippedSum::l2(Public(vec![0.0; 3]), 10.0).unwrap();
        let partials = tickets.map(|ticket| run.sum(&query, ticket).unwrap());
        partials
            .flat_map(|partial| {
                let (sum, grid, _) = partial.into_parts().unwrap();
                sum.into_iter().map(move |k| k as f64 * grid.step()).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn rows_that_stay_where_they_are_have_the_same_sums() {
        let values: Vec<f32> = (0..3 * 900).map(|x| (x % 7) as f32 - 2.5).collect();
        let table = || DenseTable::with_blocks(values.clone(), 3, 100).unwrap();
        let poisson = Sampling::Poisson { rate: SampleRate::new(0.2).unwrap() };
        for sampling in [poisson, Sampling::Everyone, Sampling::FixedSize { size: 70 }] {
            let resident = Resident { rows: table(), is_greedy: false };
            assert_eq!(sums(resident, sampling), sums(table(), sampling));
        }
    }

    /// A source that shows more than it was asked for adds no more units than were chosen.
    #[test]
    fn no_more_units_are_added_than_were_chosen() {
        let ones = || DenseTable::with_blocks(vec![1.0f32; 3 * 900], 3, 100).unwrap();
        let greedy = || Resident { rows: ones(), is_greedy: true };
        assert_eq!(sums(greedy(), Sampling::Everyone), sums(ones(), Sampling::Everyone));
        let poisson = Sampling::Poisson { rate: SampleRate::new(0.2).unwrap() };
        assert!(sums(greedy(), poisson).iter().all(|sum| *sum == 0.0));
    }
}
