//! Products of dense public rows with the weights of several outputs.
//!
//! Every number gets the same summands in the same order as in a plain loop over rows, outputs and columns. So neither blocks, nor
//! threads, nor wide registers change a bit.

use super::wide::wide;
use std::array::from_fn;

/// Outputs whose sums are kept in registers together.
const OUTPUTS: usize = 5;
/// Rows that are added to a sum while it is in a register,
const ROWS: usize = 4;
/// and columns of them.
const COLUMNS: usize = 8;
/// Columns whose sums are kept near while so many rows are added.
const TILE: usize = 256;
const MANY_ROWS: usize = 32;
/// Products that are worth a thread.
const ENOUGH: usize = 1 << 21;

/// Rows that lie one after the other, the label last in each.
pub(super) struct DenseRows<'a> {
    pub(super) values: &'a [f32],
    pub(super) features: usize,
}

impl DenseRows<'_> {
    fn width(&self) -> usize {
        self.features + 1
    }

    /// ⟨w, x⟩ for all rows and outputs, row by row. The weights of an output lie `stride` after those before.
    pub(super) fn products(&self, weights: &[f64], stride: usize, outputs: usize) -> Vec<f64> {
        let rows = self.values.len() / self.width();
        let mut products = vec![0.0; rows * outputs];
        let share = rows.div_ceil(threads(rows * outputs * self.features)).max(1);
        let each = products.chunks_mut(share * outputs.max(1)).zip(self.values.chunks(share * self.width()));
        std::thread::scope(|scope| {
            for (products, values) in each {
                let mut work = move || {
                    let pairs = values.chunks(2 * self.width()).zip(products.chunks_mut(2 * outputs));
                    for (rows, products) in pairs {
                        wide::multiply(rows, self.width(), self.features, weights, stride, products);
                    }
                };
                if share < rows { drop(scope.spawn(work)) } else { work() }
            }
        });
        products
    }

    /// Adds to the sums of each output, which lie `stride` after those before, all rows times their factors, `outputs` a row.
    pub(super) fn add_all(&self, factors: &[f64], outputs: usize, stride: usize, sums: &mut [f64]) {
        let share = self.features.div_ceil(threads(factors.len() * self.features));
        let share = share.next_multiple_of(COLUMNS).max(1);
        let mut parts: Vec<Vec<&mut [f64]>> = Vec::new();
        parts.resize_with(self.features.div_ceil(share), Vec::new);
        for sums in sums.chunks_exact_mut(stride.max(1)).take(outputs) {
            let pieces = sums[..self.features].chunks_mut(share);
            parts.iter_mut().zip(pieces).for_each(|(part, piece)| part.push(piece));
        }
        std::thread::scope(|scope| {
            for (place, mut part) in parts.into_iter().enumerate() {
                let mut work =
                    move || wide::add_rows(self.values, self.width(), place * share, factors, &mut part);
                if share < self.features { drop(scope.spawn(work)) } else { work() }
            }
        });
    }
}

/// ⟨w, x⟩ for the features of one row and as many outputs as there are products.
pub(super) fn multiply_row(x: &[f32], weights: &[f64], stride: usize, products: &mut [f64]) {
    wide::multiply(x, x.len(), x.len(), weights, stride, products);
}

/// Adds the features of one row times a factor.
pub(super) fn add_row(x: &[f32], factor: f64, sums: &mut [f64]) {
    wide::add_one(x, factor, sums);
}

fn threads(products: usize) -> usize {
    let wanted = products / ENOUGH;
    if wanted <= 1 {
        // Asking how many there are reads files of the control group, which takes longer than products of a few hundred rows.
        return 1;
    }
    let most = std::thread::available_parallelism().map_or(1, usize::from);
    wanted.min(most)
}

wide! {
    fn multiply(
        rows: &[f32], width: usize, features: usize, weights: &[f64], stride: usize, products: &mut [f64],
    );
    fn add_one(x: &[f32], factor: f64, sums: &mut [f64]);
    fn add_rows(values: &[f32], width: usize, first: usize, factors: &[f64], parts: &mut [&mut [f64]]);
}

/// ⟨w, x⟩ for one row or two, and as many outputs as there are products of each.
#[inline(always)]
fn multiply(
    rows: &[f32],
    width: usize,
    features: usize,
    weights: &[f64],
    stride: usize,
    products: &mut [f64],
) {
    let of = |output: usize| &weights[output * stride..][..features];
    let x = |row: usize| &rows[row * width..][..features];
    let is_pair = rows.len() > width;
    let outputs = if is_pair { products.len() / 2 } else { products.len() };
    let grouped = outputs / OUTPUTS * OUTPUTS;
    for first in (0..grouped).step_by(OUTPUTS) {
        let weights: [&[f64]; OUTPUTS] = from_fn(|i| of(first + i));
        if is_pair {
            let [one, two] = multiply_some([x(0), x(1)], weights);
            products[first..][..OUTPUTS].copy_from_slice(&one);
            products[outputs + first..][..OUTPUTS].copy_from_slice(&two);
        } else {
            products[first..][..OUTPUTS].copy_from_slice(&multiply_some([x(0)], weights)[0]);
        }
    }
    for output in grouped..outputs {
        if is_pair {
            [[products[output]], [products[outputs + output]]] = multiply_some([x(0), x(1)], [of(output)]);
        } else {
            [[products[output]]] = multiply_some([x(0)], [of(output)]);
        }
    }
}

/// In four sums a row and output, which need not wait for each other.
#[inline(always)]
fn multiply_some<const R: usize, const N: usize>(rows: [&[f32]; R], weights: [&[f64]; N]) -> [[f64; N]; R] {
    let whole = rows[0].len() / 4;
    let xs = rows.map(|x| &x.as_chunks::<4>().0[..whole]);
    let ws = weights.map(|w| &w.as_chunks::<4>().0[..whole]);
    let mut sums = [[[0.0; 4]; N]; R];
    for at in 0..whole {
        let x: [[f64; 4]; R] = from_fn(|r| xs[r][at].map(f64::from));
        for n in 0..N {
            let w = ws[n][at];
            for r in 0..R {
                for i in 0..4 {
                    sums[r][n][i] += x[r][i] * w[i];
                }
            }
        }
    }
    from_fn(|r| {
        from_fn(|n| {
            let rest = rows[r][4 * whole..].iter().zip(&weights[n][4 * whole..]);
            sums[r][n].iter().sum::<f64>() + rest.map(|(x, w)| f64::from(*x) * w).sum::<f64>()
        })
    })
}

#[inline(always)]
fn add_one(x: &[f32], factor: f64, sums: &mut [f64]) {
    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * f64::from(*x));
}

/// Adds rows times factors to some columns, from `first` on, of the sums of each output.
#[inline(always)]
fn add_rows(values: &[f32], width: usize, first: usize, factors: &[f64], parts: &mut [&mut [f64]]) {
    let (outputs, columns) = (parts.len(), parts.first().map_or(0, |part| part.len()));
    // Sums of a few columns, near each other: where they come from they may be a multiple of 4 KiB apart, for which caches
    // have few places.
    let mut near = vec![[0.0; TILE + COLUMNS]; outputs];
    for (values, factors) in values.chunks(MANY_ROWS * width).zip(factors.chunks(MANY_ROWS * outputs.max(1)))
    {
        for start in (0..columns).step_by(TILE) {
            let tile = start..columns.min(start + TILE);
            let size = tile.len();
            for (near, part) in near.iter_mut().zip(&*parts) {
                near[..size].copy_from_slice(&part[tile.clone()]);
            }
            add_tile(values, width, first + start, size, factors, &mut near);
            for (near, part) in near.iter().zip(parts.iter_mut()) {
                part[tile.clone()].copy_from_slice(&near[..size]);
            }
        }
    }
}

/// Adds some columns of some rows.
#[inline(always)]
fn add_tile(
    values: &[f32],
    width: usize,
    first: usize,
    size: usize,
    factors: &[f64],
    near: &mut [[f64; TILE + COLUMNS]],
) {
    let outputs = near.len();
    for (values, factors) in values.chunks(ROWS * width).zip(factors.chunks(ROWS * outputs)) {
        let row = |i: usize| &values[i * width + first..][..size];
        let of = |i: usize| &factors[i * outputs..][..outputs];
        if factors.len() == ROWS * outputs {
            add_block::<ROWS>(from_fn(row), from_fn(of), near);
        } else {
            (0..factors.len() / outputs).for_each(|i| add_block([row(i)], [of(i)], near));
        }
    }
}

/// Adds a few rows.
#[inline(always)]
fn add_block<const N: usize>(rows: [&[f32]; N], factors: [&[f64]; N], near: &mut [[f64; TILE + COLUMNS]]) {
    let whole = rows[0].len() / COLUMNS;
    for at in 0..whole {
        let x = rows.map(|row| row.as_chunks::<COLUMNS>().0[at].map(f64::from));
        for (output, near) in near.iter_mut().enumerate() {
            let to = &mut near.as_chunks_mut::<COLUMNS>().0[at];
            let mut sums = *to;
            for n in 0..N {
                let factor = factors[n][output];
                for i in 0..COLUMNS {
                    sums[i] += factor * x[n][i];
                }
            }
            *to = sums;
        }
    }
    let done = whole * COLUMNS;
    for (output, near) in near.iter_mut().enumerate() {
        for (x, factors) in rows.iter().zip(factors) {
            add_one(&x[done..], factors[output], &mut near[done..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::testing::numbers;

    /// Some of them zero, of either sign.
    fn with_zeros(count: usize, seed: u64) -> Vec<f64> {
        let mut numbers = numbers(count, seed);
        numbers.iter_mut().skip(1).step_by(3).for_each(|x| *x = 0.0f64.copysign(*x));
        numbers
    }

    fn bits(numbers: &[f64]) -> Vec<u64> {
        numbers.iter().map(|x| x.to_bits()).collect()
    }

    /// The bits of a plain loop, with rows, outputs and columns around the sizes of blocks, enough of them for threads, and with
    /// an intercept between the weights of outputs or none.
    #[test]
    fn bits_are_those_of_a_plain_loop() {
        let shapes = [
            (0, 3, 2),
            (1, 1, 1),
            (5, 0, 2),
            (3, 7, 1),
            (4, 8, 5),
            (9, 21, 11),
            (5, 4, 6),
            (66, 523, 2),
            (701, 1203, 5),
        ];
        for ((count, features, outputs), own) in shapes.into_iter().flat_map(|shape| [(shape, 0), (shape, 1)])
        {
            let what = format!("{count} {features} {outputs} {own}");
            let values: Vec<f32> =
                with_zeros(count * (features + 1), 1).into_iter().map(|x| x as f32).collect();
            let stride = features + own;
            let (weights, factors) = (with_zeros(outputs * stride, 2), with_zeros(count * outputs, 3));
            let rows = DenseRows { values: &values, features };
            let start = with_zeros(outputs * stride, 4);
            let (mut products, mut sums) = (Vec::new(), start.clone());
            for (row, factors) in values.chunks_exact(features + 1).zip(factors.chunks_exact(outputs)) {
                for output in 0..outputs {
                    let w = &weights[output * stride..][..features];
                    let mut lanes = [0.0; 4];
                    let whole = features / 4 * 4;
                    (0..whole).for_each(|j| lanes[j % 4] += f64::from(row[j]) * w[j]);
                    let rest = (whole..features).map(|j| f64::from(row[j]) * w[j]).sum::<f64>();
                    products.push(lanes.iter().sum::<f64>() + rest);
                    for j in 0..features {
                        sums[output * stride + j] += factors[output] * f64::from(row[j]);
                    }
                }
            }
            assert_eq!(bits(&rows.products(&weights, stride, outputs)), bits(&products), "{what}");
            let mut found = start.clone();
            rows.add_all(&factors, outputs, stride, &mut found);
            assert_eq!(bits(&found), bits(&sums), "{what}");
            // The same row by row.
            let (mut single, mut found) = (vec![0.0; products.len()], start);
            for (i, row) in values.chunks_exact(features + 1).enumerate() {
                let x = &row[..features];
                multiply_row(x, &weights, stride, &mut single[i * outputs..][..outputs]);
                for output in 0..outputs {
                    add_row(x, factors[i * outputs + output], &mut found[output * stride..][..features]);
                }
            }
            assert_eq!((bits(&single), bits(&found)), (bits(&products), bits(&sums)), "{what}");
        }
    }
}
