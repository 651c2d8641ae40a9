//! Sums, squares, unreadable cells and clipped rows of a table in one jointly clipped contribution.
//!
//! *Adjacency*: replace-one or add/remove; a unit is a row of d cells. *Contribution* of a row x, with public centre c, radius B and
//! scales τ, ν: with u_j = x_j − c_j for readable (finite) cells and 0 for the others, R = {j: x_j is finite} and n = ‖u‖,
//!
//! ```text
//! v = [ f·u | (τ/B)·(f·u)² | μ·1{j ∉ R} | νB·1{n > B}·u_j²/‖u‖₂² ]        4d coordinates
//! f = 1 if n ≤ B, else B'/n, with B' the length that leaves room for νB in B
//! C = ‖(B, τB)‖,   μ = C/‖(1, …, 1)‖ (d ones)
//! ```
//!
//! in the norm N of the query (ℓ2 or ℓ1), shrunk to norm C if it is longer, truncated towards zero on the grid.
//!
//! *Sensitivity*: ‖contribution‖ ≤ g·⌊C/g⌋ ≤ C, checked in integers for the whole vector of 4d coordinates, whatever the floating-point
//! code above proposes. So one row changes the joint sum by at most C under add/remove and by 2C under replace-one. Rows that are
//! readable and no longer than B are never shrunk: ‖(τ/B)·u²‖ ≤ τ·‖u‖²/B ≤ τ·B in ℓ2 and in ℓ1. The unreadable and clipped parts cost
//! no accuracy elsewhere, because a row that uses them leaves room: only the squares make C larger than B.

use super::sealed::{Question, Work};
use super::{Grid, L1, L2, Norm};
use crate::data::{Block, CsrBlock, DenseBlock, Number, Public, Selection};
use crate::{Error, Result};
use std::marker::PhantomData;
use std::ops::Range;

/// A little less than one: norms and quotients are rounded, and a first attempt should do.
const SHY: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Larger numbers are moved here, so that no sum of squares of quotients overflows.
const LARGEST: f64 = 1e300;

/// Σ over rows of [clipped row − centre | scaled squares | unreadable cells | clipped rows by column], jointly clipped.
///
/// *Definition and sensitivity*: the documentation of this file (`query/clipped_moments.rs`): 4d coordinates, of joint norm at
/// most [`ClippedMoments::clip_norm`]. A cell that is not a finite number is unreadable: it adds 1 to its column's count and nothing else.
///
/// *Utility*: the clip norm is √(1 + τ²) (ℓ2) or 1 + τ (ℓ1) times the radius; that factor is the price of the squares, and the
/// counts are free.
#[derive(Debug, Clone)]
pub struct ClippedMoments<N> {
    centre: Public<Vec<f64>>,
    radius: f64,
    /// Length of a clipped row, B'.
    kept: f64,
    clip_norm: f64,
    /// What u_j² is multiplied by, τ/B.
    square_scale: f64,
    /// What an unreadable cell contributes, μ.
    unreadable_scale: f64,
    /// What a clipped row contributes, νB.
    clipped_scale: f64,
    grid: Grid,
    norm: PhantomData<N>,
}

impl ClippedMoments<L2> {
    /// Clipped in Euclidean norm, for Gaussian or K-norm noise. `squares` is τ and `clipped` is ν, both from 0.001 to 0.9.
    pub fn l2(centre: Public<Vec<f64>>, radius: f64, squares: f64, clipped: f64) -> Result<Self> {
        Self::new(centre, radius, squares, clipped)
    }
}

impl ClippedMoments<L1> {
    /// Clipped in ℓ1 norm, for Laplace noise. `squares` is τ and `clipped` is ν, both from 0.001 to 0.9.
    pub fn l1(centre: Public<Vec<f64>>, radius: f64, squares: f64, clipped: f64) -> Result<Self> {
        Self::new(centre, radius, squares, clipped)
    }
}

impl<N: Norm> ClippedMoments<N> {
    fn new(centre: Public<Vec<f64>>, radius: f64, squares: f64, clipped: f64) -> Result<Self> {
        if centre.iter().any(|c| c.is_nan() || c.abs() > 1e30) {
            return Err(Error::invalid("centre", "another", "numbers of at most 1e30 in absolute value"));
        }
        if centre.is_empty() {
            return Err(Error::invalid("centre", "an empty list", "a number for each column"));
        }
        for (name, share) in [("squares", squares), ("clipped", clipped)] {
            if !(0.001..=0.9).contains(&share) {
                return Err(Error::invalid(name, share, "a number from 0.001 to 0.9"));
            }
        }
        // In units of the radius, so that nothing overflows.
        let clip_norm = radius * N::norm(1.0 + N::term(squares));
        let grid = Grid::new(clip_norm, 4 * centre.len())?;
        Ok(Self {
            radius,
            kept: radius * N::norm(1.0 - N::term(clipped)),
            clip_norm,
            square_scale: squares / radius,
            unreadable_scale: clip_norm / N::norm(centre.len() as f64),
            clipped_scale: clipped * radius,
            grid,
            norm: PhantomData,
            centre,
        })
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.centre.len()
    }

    /// The grid of the contributions.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The bound C on the joint norm of a contribution.
    pub fn clip_norm(&self) -> f64 {
        self.clip_norm
    }

    /// Longer rows are shortened to this length (B').
    pub fn kept_radius(&self) -> f64 {
        self.kept
    }

    /// The factor of a squared deviation, τ/B.
    pub fn square_scale(&self) -> f64 {
        self.square_scale
    }

    /// What an unreadable cell adds to its coordinate, μ.
    pub fn unreadable_scale(&self) -> f64 {
        self.unreadable_scale
    }

    /// What a clipped row adds to the coordinates of the last part together, νB.
    pub fn clipped_scale(&self) -> f64 {
        self.clipped_scale
    }
}

impl<N: Norm> Question for ClippedMoments<N> {
    type Norm = N;
    type Worker<'q>
        = Worker<'q, N>
    where
        Self: 'q;

    fn width(&self) -> usize {
        self.centre.len()
    }

    fn dimension(&self) -> usize {
        4 * self.centre.len()
    }

    fn grid(&self) -> Grid {
        self.grid
    }

    fn worker(&self) -> Worker<'_, N> {
        let width = self.centre.len();
        Worker {
            query: self,
            row: vec![0.0; width],
            proposal: vec![0.0; 4 * width],
            steps: vec![0; 4 * width],
            sums: vec![0; 4 * width],
        }
    }
}

/// Sums the contributions of one thread.
pub struct Worker<'q, N> {
    query: &'q ClippedMoments<N>,
    /// A sparse row, scattered.
    row: Vec<f64>,
    /// The contribution in floating point,
    proposal: Vec<f64>,
    /// in grid steps,
    steps: Vec<i32>,
    /// and summed.
    sums: Vec<i64>,
}

impl<N: Norm> Worker<'_, N> {
    fn add_row(&mut self, row: impl Iterator<Item = f64>) {
        self.propose(row);
        let norm = scaled_norm::<N>(&self.proposal);
        let q = self.query;
        let per_step = 1.0 / q.grid.step();
        let shrink = if norm <= q.clip_norm { 1.0 } else { q.clip_norm / norm * SHY };
        let found = self.quantise(shrink * per_step);
        let limit = N::limit(q.grid.clip_steps());
        if found > limit {
            let again = shrink * (q.grid.clip_steps() as f64 / N::norm(found as f64)) * SHY * SHY;
            if self.quantise(again * per_step) > limit {
                return;
            }
        }
        // What privacy rests on: these integers have been compared with the limit.
        self.sums.iter_mut().zip(&self.steps).for_each(|(sum, k)| *sum = sum.wrapping_add(i64::from(*k)));
    }

    /// The contribution before the joint bound.
    fn propose(&mut self, row: impl Iterator<Item = f64>) {
        let (q, width) = (self.query, self.query.centre.len());
        let (u, rest) = self.proposal.split_at_mut(width);
        let (squares, rest) = rest.split_at_mut(width);
        let (unreadable, clipped) = rest.split_at_mut(width);
        u.fill(0.0);
        unreadable.fill(0.0);
        clipped.fill(0.0);
        for (((u, mark), x), c) in u.iter_mut().zip(unreadable).zip(row).zip(q.centre.iter()) {
            match x.is_finite() {
                true => *u = (x - c).clamp(-LARGEST, LARGEST),
                false => *mark = q.unreadable_scale,
            }
        }
        let norm = scaled_norm::<N>(u);
        if norm > q.radius {
            let largest = u.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            let total: f64 = u.iter().map(|x| (x / largest).powi(2)).sum();
            for (x, part) in u.iter_mut().zip(clipped) {
                *part = q.clipped_scale * (*x / largest).powi(2) / total;
                // The quotient first: the norm may be near the largest number.
                *x = *x / norm * q.kept;
            }
        }
        squares.iter_mut().zip(u).for_each(|(square, x)| *square = q.square_scale * *x * *x);
    }

    /// Truncates the proposal times a factor, and returns the sum of the integers' terms.
    fn quantise(&mut self, factor: f64) -> u64 {
        let most = self.query.grid.clip_steps() as f64 + 1.0;
        let mut terms = 0u64;
        for (k, x) in self.steps.iter_mut().zip(&self.proposal) {
            // Truncates towards zero; NaN becomes 0.
            *k = (x * factor).clamp(-most, most) as i32;
            terms = terms.saturating_add(N::integer_term(*k));
        }
        terms
    }

    fn add_dense<T: Number>(&mut self, block: &DenseBlock<'_, T>, chosen: &[usize]) {
        let width = self.query.centre.len();
        for &unit in chosen {
            let row = &block.values[unit * width..(unit + 1) * width];
            self.add_row(row.iter().map(|x| x.to_f64()));
        }
    }

    /// Entries that are not stored are zero. A row whose columns do not increase below the width contributes nothing.
    fn add_sparse<T: Number>(&mut self, block: &CsrBlock<'_, T>, chosen: &[usize]) {
        for &unit in chosen {
            let entries = block.offsets[unit]..block.offsets[unit + 1];
            let (Some(columns), Some(values)) =
                (block.columns.get(entries.clone()), block.values.get(entries))
            else {
                continue;
            };
            let width = self.query.centre.len();
            let is_row = columns.windows(2).all(|pair| pair[0] < pair[1])
                && columns.last().is_none_or(|&last| (last as usize) < width);
            if !is_row {
                continue;
            }
            let mut row = std::mem::take(&mut self.row);
            row.fill(0.0);
            columns.iter().zip(values).for_each(|(&column, x)| row[column as usize] = x.to_f64());
            self.add_row(row.iter().copied());
            self.row = row;
        }
    }
}

/// The norm, by way of the largest coordinate, so that nothing overflows.
fn scaled_norm<N: Norm>(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * N::norm(values.iter().map(|x| N::term(x / largest)).sum())
}

impl<N: Norm> Work for Worker<'_, N> {
    fn add(&mut self, block: Block<'_>, selection: &Selection, units: Range<usize>) {
        let (width, rows) = (self.query.centre.len(), units.len());
        let chosen = selection.within(units);
        match block {
            Block::DenseF32(block) if super::clipped_sum::fits(&block, rows, width) => {
                self.add_dense(&block, &chosen);
            }
            Block::DenseF64(block) if super::clipped_sum::fits(&block, rows, width) => {
                self.add_dense(&block, &chosen);
            }
            Block::CsrF32(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            Block::CsrF64(block) if block.offsets.len() == rows + 1 => self.add_sparse(&block, &chosen),
            _ => {}
        }
    }

    fn into_sums(self) -> Vec<i64> {
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any number, extremes and what is no number among them.
    fn cell() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => -3.0..3.0f64,
            1 => any::<f64>(),
            1 => prop::sample::select(vec![0.0, 1e30, -1e38, 1e-310, f64::MAX, f64::NAN, f64::INFINITY]),
        ]
    }

    fn contribution<N: Norm>(query: &ClippedMoments<N>, row: &[f64]) -> Vec<i64> {
        let mut worker = query.worker();
        worker.add(Block::DenseF64(DenseBlock::new(row, row.len())), &Selection::Everyone, 0..1);
        worker.into_sums()
    }

    /// The joint norm in 128-bit integers.
    fn is_within<N: Norm>(v: &[i64], bound: u64) -> bool {
        let total: u128 = v.iter().map(|&k| u128::from(N::integer_term(k as i32))).sum();
        total <= u128::from(N::limit(bound))
    }

    fn check<N: Norm>(query: &ClippedMoments<N>, row: &[f64]) {
        let whole = contribution(query, row);
        assert!(is_within::<N>(&whole, query.grid().clip_steps()), "{row:?}");
        // Readable rows within the radius are not shrunk: unreadable cells are counted exactly, and alone.
        let width = row.len();
        for (j, x) in row.iter().enumerate() {
            assert_eq!(whole[2 * width + j] > 0, !x.is_finite(), "{row:?}");
            assert!(x.is_finite() || whole[j] == 0 && whole[width + j] == 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        /// Whatever a row holds, its 4d integers have at most the joint norm; so replacing a row changes the sum by at most twice that.
        #[test]
        fn contributions_are_jointly_bounded(
            row in prop::collection::vec(cell(), 1..9),
            radius in prop::sample::select(vec![1e-12, 0.3, 1.0, 7.5, 1e12]),
            squares in 0.001..0.9f64,
            clipped in 0.001..0.9f64,
        ) {
            let centre = Public(vec![0.25; row.len()]);
            check(&ClippedMoments::l2(centre.clone(), radius, squares, clipped).unwrap(), &row);
            check(&ClippedMoments::l1(centre, radius, squares, clipped).unwrap(), &row);
        }

        /// Every storage of a row contributes the same integers, with any other rows around it.
        #[test]
        fn a_contribution_depends_on_its_row_alone(
            rows in prop::collection::vec(prop::collection::vec(cell(), 3), 1..6),
        ) {
            let query = ClippedMoments::l2(Public(vec![0.5, -0.5, 0.0]), 2.0, 0.3, 0.2).unwrap();
            let mut expected = vec![0i64; 12];
            for row in &rows {
                expected.iter_mut().zip(contribution(&query, row)).for_each(|(sum, k)| *sum += k);
            }
            let values: Vec<f64> = rows.concat();
            let mut dense = query.worker();
            dense.add(Block::DenseF64(DenseBlock::new(&values, 3)), &Selection::Everyone, 0..rows.len());
            prop_assert_eq!(dense.into_sums(), expected.clone());
            let offsets: Vec<usize> = (0..=rows.len()).map(|i| 3 * i).collect();
            let columns: Vec<u32> = (0..rows.len()).flat_map(|_| 0..3).collect();
            let block = CsrBlock { offsets: &offsets, columns: &columns, values: &values };
            let mut sparse = query.worker();
            sparse.add(Block::CsrF64(block), &Selection::Everyone, 0..rows.len());
            prop_assert_eq!(sparse.into_sums(), expected);
        }
    }

    /// Rows within the radius arrive whole: deviations, squares and counts come back out of the sums.
    #[test]
    fn sums_decode_to_moments() {
        let rows: [f64; 12] = [1.0, 2.0, f64::NAN, 0.5, -1.0, f64::NAN, 1.5, 1.5, 40.0, -40.0, 0.0, 1.0];
        fn decode<N: Norm>(query: &ClippedMoments<N>, rows: &[f64]) -> Vec<f64> {
            let mut worker = query.worker();
            worker.add(Block::DenseF64(DenseBlock::new(rows, 2)), &Selection::Everyone, 0..rows.len() / 2);
            worker.into_sums().iter().map(|k| *k as f64 * query.grid().step()).collect()
        }
        let centre = Public(vec![0.0, 1.0]);
        let l2 = ClippedMoments::l2(centre.clone(), 3.0, 0.3, 0.2).unwrap();
        let l1 = ClippedMoments::l1(centre, 3.0, 0.3, 0.2).unwrap();
        assert!(
            (l2.clip_norm() - 3.0 * 1.09f64.sqrt()).abs() < 1e-12 && (l1.clip_norm() - 3.9).abs() < 1e-12
        );
        for (sums, clip, kept, [square, unreadable, clipped], length) in [
            (
                decode(&l2, &rows),
                l2.clip_norm(),
                l2.kept_radius(),
                [l2.square_scale(), l2.unreadable_scale(), l2.clipped_scale()],
                40.0f64.hypot(41.0),
            ),
            (
                decode(&l1, &rows),
                l1.clip_norm(),
                l1.kept_radius(),
                [l1.square_scale(), l1.unreadable_scale(), l1.clipped_scale()],
                81.0,
            ),
        ] {
            let far = [40.0 / length * kept, -41.0 / length * kept];
            // The fifth row is clipped; truncation is less than a step for each of six rows.
            let slack = 6.0 * clip * 2f64.powi(-16);
            assert!((sums[0] - (1.0 - 1.0 + 1.5 + far[0])).abs() < slack, "{sums:?}");
            assert!((sums[1] - (1.0 - 0.5 + 0.5 + far[1])).abs() < slack);
            assert!((sums[2] / square - (1.0 + 1.0 + 2.25 + far[0] * far[0])).abs() < slack / square);
            assert!((sums[4] / unreadable - 1.0).abs() < slack / unreadable);
            assert!((sums[5] / unreadable - 1.0).abs() < slack / unreadable);
            let share = 1600.0 / (1600.0 + 1681.0);
            assert!((sums[6] / clipped - share).abs() < slack / clipped);
            assert!(((sums[6] + sums[7]) / clipped - 1.0).abs() < slack / clipped);
        }
    }

    #[test]
    fn bad_scales_are_refused() {
        let centre = || Public(vec![0.0]);
        for (squares, clipped) in [(0.0, 0.1), (0.1, 0.0), (1.0, 0.1), (0.1, f64::NAN), (-0.1, 0.1)] {
            assert!(ClippedMoments::l2(centre(), 1.0, squares, clipped).is_err());
        }
        assert!(ClippedMoments::l2(centre(), f64::NAN, 0.1, 0.1).is_err());
        assert!(ClippedMoments::l1(Public(Vec::new()), 1.0, 0.1, 0.1).is_err());
        assert!(ClippedMoments::l1(Public(vec![f64::NAN]), 1.0, 0.1, 0.1).is_err());
    }
}
