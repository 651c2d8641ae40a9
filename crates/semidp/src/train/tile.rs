//! The one dense product that factoring and Hessians are made of: C ← C ± P·Pᵀ.
//!
//! Four rows of P at a time meet four others, so that a number is used four times each time it is loaded, and the rows
//! on one side are packed into a block that stays in the nearest cache.

use super::wide::wide;

/// Rows of one side that are kept at hand: with 64 columns of P they fill half of a small cache.
const BLOCK: usize = 64;

/// Rows below which one thread is enough.
const FEW_ROWS: usize = 256;

/// The lower triangle of the rows and columns `from ..` of a square matrix of `size` rows, plus `factor` times P·Pᵀ.
/// P has `size − from` rows of `depth` numbers. What lies above the diagonal is not meant to be read. Threads have rows of their
/// own, so their number changes no bit.
pub(super) fn add_square(
    matrix: &mut [f64],
    size: usize,
    from: usize,
    panel: &[f64],
    depth: usize,
    factor: f64,
) {
    let rows = size - from;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if rows < FEW_ROWS || threads == 1 {
        return wide::square_rows(&mut matrix[from * size..], 0..rows, from, panel, depth, factor);
    }
    // A triangle's rows up to i hold i² of its numbers: shares of even work end at square roots.
    let end = |share: usize| {
        let part = (share as f64 / threads as f64).sqrt() * rows as f64;
        (part as usize).next_multiple_of(4).min(rows)
    };
    std::thread::scope(|scope| {
        let mut left = &mut matrix[from * size..];
        for share in 0..threads {
            let own = end(share)..if share + 1 == threads { rows } else { end(share + 1) };
            let (mine, others) = left.split_at_mut(own.len() * size);
            left = others;
            scope.spawn(move || wide::square_rows(mine, own, from, panel, depth, factor));
        }
    });
}

/// Some rows of the same, which begin with a multiple of four and are all that `matrix` holds.
#[inline(always)]
fn square_rows(
    matrix: &mut [f64],
    own: std::ops::Range<usize>,
    from: usize,
    panel: &[f64],
    depth: usize,
    factor: f64,
) {
    if own.is_empty() {
        return;
    }
    let size = matrix.len() / own.len();
    let rows = size - from;
    let zeros = vec![0.0; depth];
    let row = |i: usize| if i < rows { &panel[i * depth..][..depth] } else { &zeros[..] };
    let mut packed = vec![0.0; BLOCK * depth];
    for block in (0..own.end).step_by(BLOCK) {
        let end = (block + BLOCK).min(rows);
        // Column k of four rows lies together.
        for (group, four) in (block..end).step_by(4).zip(packed.chunks_exact_mut(4 * depth)) {
            for lane in 0..4 {
                let source = row(group + lane);
                four.iter_mut().skip(lane).step_by(4).zip(source).for_each(|(to, from)| *to = *from);
            }
        }
        for i in (block.max(own.start)..own.end).step_by(4) {
            let left = [row(i), row(i + 1), row(i + 2), row(i + 3)];
            for (j, right) in (block..end.min(i + 4)).step_by(4).zip(packed.chunks_exact(4 * depth)) {
                let sums = products(left, right);
                for (line, sums) in (i..own.end.min(i + 4)).zip(sums) {
                    let place = (line - own.start) * size + from + j;
                    let width = 4.min(rows - j);
                    let target = &mut matrix[place..place + width];
                    target.iter_mut().zip(sums).for_each(|(c, sum)| *c += factor * sum);
                }
            }
        }
    }
}

/// The sixteen inner products of four rows and four packed ones.
#[inline(always)]
fn products(left: [&[f64]; 4], right: &[f64]) -> [[f64; 4]; 4] {
    let mut sums = [[0.0; 4]; 4];
    let [a, b, c, d] = left;
    let (fours, _) = right.as_chunks::<4>();
    for ((((a, b), c), d), four) in a.iter().zip(b).zip(c).zip(d).zip(fours) {
        for j in 0..4 {
            sums[0][j] += a * four[j];
            sums[1][j] += b * four[j];
            sums[2][j] += c * four[j];
            sums[3][j] += d * four[j];
        }
    }
    sums
}

wide! {
    fn square_rows(
        matrix: &mut [f64], own: std::ops::Range<usize>, from: usize, panel: &[f64], depth: usize, factor: f64
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes around those of tiles and blocks, from the first row or from a later one.
    #[test]
    fn squares_are_those_of_a_naive_loop() {
        // The last two are shared by threads.
        let sizes = [
            (1, 0, 1),
            (5, 2, 3),
            (64, 0, 7),
            (67, 1, 64),
            (130, 3, 20),
            (8, 8, 2),
            (300, 2, 9),
            (515, 0, 64),
        ];
        for (size, from, depth) in sizes {
            let rows = size - from;
            let panel: Vec<f64> = (0..rows * depth).map(|i| ((i * 37 + 11) % 23) as f64 - 11.0).collect();
            let mut matrix = vec![1.0; size * size];
            add_square(&mut matrix, size, from, &panel, depth, -2.0);
            for i in 0..size {
                for j in 0..=i {
                    let product = if i < from || j < from {
                        0.0
                    } else {
                        let row = |i: usize| &panel[(i - from) * depth..][..depth];
                        row(i).iter().zip(row(j)).map(|(x, y)| x * y).sum::<f64>()
                    };
                    // Small whole numbers: exact.
                    assert_eq!(matrix[i * size + j], 1.0 - 2.0 * product, "{size} {from} {depth}: {i} {j}");
                }
            }
        }
    }
}
