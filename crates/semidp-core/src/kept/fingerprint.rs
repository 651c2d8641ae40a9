//! Whether rows are the same, without a word about what they are.
//!
//! The fingerprint is HMAC(key, Σ_i SHA-256(key' ‖ i ‖ row i)), the sum taken in four lanes of 64 bits. It does not
//! depend on blocks, threads or the order of work; to whoever does not know the key it is a random number; two tables
//! that differ have the same one with negligible chance, unless somebody who knows the key looks for such a pair.

use crate::data::{Block, BlockSource, CsrBlock, DenseBlock};
use crate::noise::rng::{Purpose, RunKey, wipe_stack};
use crate::{Result, hex, parallel};
use hmac::Mac;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicUsize, Ordering};
use zeroize::Zeroizing;

/// Reads all rows once.
pub(crate) fn fingerprint(source: &dyn BlockSource, key: &RunKey, threads: usize) -> Result<String> {
    let secret = key.derived(Purpose::Fingerprint);
    let threads = threads.clamp(1, source.blocks().max(1));
    let next = AtomicUsize::new(0);
    let mut parts: Vec<Result<Sum>> = (0..threads).map(|_| Ok(Sum::default())).collect();
    parallel::for_each(&mut parts, threads, |part| {
        let mut rows = Rows { secret: &secret, sum: Sum::default(), bytes: Zeroizing::new(Vec::new()) };
        let mut visit_all = || -> Result<()> {
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= source.blocks() {
                    return Ok(());
                }
                let mut unit = source.units_of(block).start;
                source.visit(block, &mut |piece| {
                    rows.add(&piece, unit);
                    unit += piece.units();
                })?;
            }
        };
        *part = visit_all().map(|()| rows.sum);
        wipe_stack();
    });
    let mut total = Sum::default();
    for part in parts {
        total.add(part?.0);
    }
    let mut mac = super::keyed(&secret);
    mac.update(&(source.units() as u64).to_le_bytes());
    mac.update(&(source.width() as u64).to_le_bytes());
    total.0.iter().for_each(|lane| mac.update(&lane.to_le_bytes()));
    Ok(hex::encode(&mac.finalize().into_bytes()))
}

#[derive(Default)]
struct Sum([u64; 4]);

impl Sum {
    fn add(&mut self, lanes: [u64; 4]) {
        self.0.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum = sum.wrapping_add(lane));
    }
}

struct Rows<'a> {
    secret: &'a [u8; 32],
    sum: Sum,
    bytes: Zeroizing<Vec<u8>>,
}

impl Rows<'_> {
    fn add(&mut self, block: &Block<'_>, first: usize) {
        match block {
            Block::DenseF32(b) => self.dense(b, first, |x, bytes| bytes.extend(x.to_le_bytes())),
            Block::DenseF64(b) => self.dense(b, first, |x, bytes| bytes.extend(x.to_le_bytes())),
            Block::CsrF32(b) => self.sparse(b, first, |x, bytes| bytes.extend(x.to_le_bytes())),
            Block::CsrF64(b) => self.sparse(b, first, |x, bytes| bytes.extend(x.to_le_bytes())),
        }
    }

    fn dense<T>(&mut self, block: &DenseBlock<'_, T>, first: usize, write: impl Fn(&T, &mut Vec<u8>)) {
        for (unit, row) in block.values().chunks(block.width().max(1)).enumerate() {
            self.row(first + unit, |bytes| row.iter().for_each(|x| write(x, bytes)));
        }
    }

    fn sparse<T>(&mut self, block: &CsrBlock<'_, T>, first: usize, write: impl Fn(&T, &mut Vec<u8>)) {
        for (unit, pair) in block.offsets.windows(2).enumerate() {
            // A source may say anything; what is not there does not contribute to a sum either.
            let entries = block.columns.get(pair[0]..pair[1]).zip(block.values.get(pair[0]..pair[1]));
            let (columns, values) = entries.unwrap_or_default();
            self.row(first + unit, |bytes| {
                for (column, value) in columns.iter().zip(values) {
                    bytes.extend(column.to_le_bytes());
                    write(value, bytes);
                }
            });
        }
    }

    fn row(&mut self, unit: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.clear();
        self.bytes.extend_from_slice(self.secret);
        self.bytes.extend((unit as u64).to_le_bytes());
        write(&mut self.bytes);
        let digest = Sha256::digest(&self.bytes);
        let mut lanes = [0; 4];
        for (lane, part) in lanes.iter_mut().zip(digest.chunks_exact(8)) {
            *lane = u64::from_le_bytes(part.try_into().expect("eight bytes"));
        }
        self.sum.add(lanes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrTable, DenseTable};
    use crate::noise::rng::Randomness;

    fn key(seed: u64) -> RunKey {
        Randomness::Seed(seed).key(0).unwrap()
    }

    fn of(values: &[f32], width: usize, rows_per_block: usize, threads: usize, seed: u64) -> String {
        let table = DenseTable::with_blocks(values.to_vec(), width, rows_per_block).unwrap();
        fingerprint(&table, &key(seed), threads).unwrap()
    }

    /// Blocks and threads do not matter; every value, every place and the key do.
    #[test]
    fn it_is_of_the_rows_and_the_key_alone() {
        let values: Vec<f32> = (0..300).map(|x| x as f32 / 7.0).collect();
        let first = of(&values, 3, 1000, 1, 1);
        for (rows_per_block, threads) in [(1, 1), (7, 3), (100, 2)] {
            assert_eq!(of(&values, 3, rows_per_block, threads, 1), first);
        }
        assert_ne!(of(&values, 3, 1000, 1, 2), first);
        assert_ne!(of(&values, 6, 1000, 1, 1), first);
        assert_ne!(of(&values[..297], 3, 1000, 1, 1), first);
        for change in 0..300 {
            let mut other = values.clone();
            other[change] = f32::from_bits(other[change].to_bits() ^ 1);
            assert_ne!(of(&other, 3, 1000, 1, 1), first, "{change}");
        }
        let mut swapped = values.clone();
        (0..3).for_each(|j| swapped.swap(j, 297 + j));
        assert_ne!(of(&swapped, 3, 1000, 1, 1), first);
    }

    #[test]
    fn sparse_rows_have_one_too() {
        let table = |columns: Vec<u32>, blocks: usize| {
            CsrTable::new(vec![0, 1, 1, 3], columns, vec![1.0f64, 2.0, 3.0], 9)
                .unwrap()
                .with_blocks(blocks)
                .unwrap()
        };
        let of = |columns: Vec<u32>, blocks| fingerprint(&table(columns, blocks), &key(3), 2).unwrap();
        assert_eq!(of(vec![4, 2, 8], 1), of(vec![4, 2, 8], 2));
        assert_ne!(of(vec![4, 2, 8], 1), of(vec![4, 3, 8], 1));
    }
}
