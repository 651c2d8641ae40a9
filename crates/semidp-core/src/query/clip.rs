//! Contributions: a unit's row, clipped to a ball about a centre, as integers.
//!
//! What privacy rests on is small, and in integers: a row's integers stay in the sum only if their
//! norm, computed exactly, is at most the bound; otherwise they are taken back, and a second attempt
//! with a smaller factor either fits or is taken back too. Whatever the floating-point code before it
//! does (rounding, overflow, NaN) changes which integers are offered, never that they are bounded. It
//! sees one row alone: so a contribution is a function of the query and the unit, bit for bit, whatever
//! else is in the batch.
//!
//! Sums of floats are in sixteen fixed lanes, so that vector instructions give the same bits as the
//! plain loops here.

use super::Norm;
#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::grid::Grid;
use crate::data::Number;

/// Lanes of a sum.
pub(super) const LANES: usize = 16;

/// Rows whose norms are computed together.
pub(super) const AT_ONCE: usize = 16;

/// A little less than one: norms and quotients are rounded, and a first attempt should do.
pub(super) const SHY: f64 = 1.0 - 1.0 / (1 << 20) as f64;
pub(super) const SHIER: f64 = 1.0 - 1.0 / (1 << 16) as f64;

/// trunc((x − c)·factor), at most `most` in absolute value: more would be refused in any case. What is
/// not a number becomes −`most`; its row was set aside before, because its norm is no number either.
#[inline(always)]
pub(super) fn steps<T: Number>(x: T, c: T, factor: T, most: T) -> i32 {
    let scaled = (x - c) * factor;
    let least = T::default() - most;
    // Comparisons, because they are one vector instruction each and false for NaN.
    let bounded = if scaled > least { scaled } else { least };
    (if bounded < most { bounded } else { most }).truncate_bounded()
}

/// The last numbers of a row, and zeros.
#[inline(always)]
fn padded<T: Number>(numbers: &[T]) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    out[..numbers.len()].copy_from_slice(numbers);
    out
}

/// The sum of all lanes, halving their number each time.
#[inline(always)]
fn across<T: Copy + std::ops::Add<Output = T>>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = lanes[i] + lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Σ term(x_j − c_j), in lanes. The centre is padded with zeros to whole lanes.
#[inline(always)]
fn sum_of_terms<T: Number, N: Norm>(row: &[T], centre: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let mut add = |x: &[T; LANES], c: &[T; LANES]| {
        for i in 0..LANES {
            sums[i] = sums[i] + N::term(x[i] - c[i]);
        }
    };
    let ((rows, rest), (centres, _)) = (row.as_chunks(), centre.as_chunks());
    rows.iter().zip(centres).for_each(|(x, c)| add(x, c));
    if !rest.is_empty() {
        add(&padded(rest), &centres[rows.len()]);
    }
    across(sums)
}

/// Σ x_j·w_j, in lanes. The weights are padded with zeros to whole lanes.
#[inline(always)]
pub(super) fn dot<T: Number>(row: &[T], weights: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let mut add = |x: &[T; LANES], w: &[T; LANES]| {
        for i in 0..LANES {
            sums[i] = sums[i] + x[i] * w[i];
        }
    };
    let ((rows, rest), (weights, _)) = (row.as_chunks(), weights.as_chunks());
    rows.iter().zip(weights).for_each(|(x, w)| add(x, w));
    if !rest.is_empty() {
        add(&padded(rest), &weights[rows.len()]);
    }
    across(sums)
}

/// Adds the integers of some columns to their sums, and their terms to the lanes'.
#[inline(always)]
fn add_lanes<T: Number, N: Norm>(
    x: &[T; LANES],
    c: &[T; LANES],
    sums: &mut [i32; LANES],
    factor: T,
    most: T,
    terms: &mut [u64; LANES],
) {
    for i in 0..LANES {
        let k = steps(x[i], c[i], factor, most);
        sums[i] = sums[i].wrapping_add(k);
        terms[i] += N::integer_term(k);
    }
}

/// Sums of integer contributions: 32 bits while that is enough, 64 bits beyond.
pub(crate) struct Accumulator {
    pub(super) narrow: Vec<i32>,
    wide: Vec<i64>,
    /// Rows that `narrow` can take before it could overflow; at least seven after a flush.
    room: u32,
    rows_per_flush: u32,
    /// No coordinate of a contribution is larger than this, about one more than the bound on its norm.
    pub(super) most: f64,
    /// Groups of lanes, one less than those whose integer terms sum to less than 2^63.
    pub(super) segment: usize,
    pub(super) limit: u64,
}

/// A query's numbers in the precision of a table.
pub(crate) struct Ball<T> {
    /// Padded with zeros to whole lanes.
    centre: Vec<T>,
    width: usize,
    /// Whether the centre is the origin.
    pub(crate) at_origin: bool,
    clip_norm: f64,
    clip_steps: f64,
    /// 1/g.
    per_step: f64,
}

impl<T: Number> Ball<T> {
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn new(centre: &[f64], clip_norm: f64, grid: Grid) -> Self {
        let padding = centre.len().next_multiple_of(LANES) - centre.len();
        let centre_and_padding = centre.iter().copied().chain(std::iter::repeat_n(0.0, padding));
        Self {
            centre: centre_and_padding.map(T::of).collect(),
            width: centre.len(),
            at_origin: centre.iter().all(|&c| c == 0.0),
            clip_norm,
            clip_steps: grid.clip_steps() as f64,
            per_step: 1.0 / grid.step(),
        }
    }

    /// What to multiply a row by, given its norm: grid steps a unit, shrunk if the row is too long.
    fn factor(&self, norm: f64) -> f64 {
        if norm <= self.clip_norm { self.per_step } else { self.per_step * (self.clip_norm / norm * SHY) }
    }

    /// The factor for a second attempt, after integers whose terms sum to `terms` were too long.
    fn second_factor<N: Norm>(&self, factor: f64, terms: u64) -> f64 {
        factor * (self.clip_steps / N::norm(terms as f64) * SHIER)
    }
}

impl Accumulator {
    pub(crate) fn new<N: Norm>(width: usize, grid: Grid) -> Self {
        let rows_per_flush = (i32::MAX as u64 / grid.clip_steps()) as u32;
        // A coordinate is at most 2^28 < 2^bits, so that 2^(63 − 2·bits) squares fit: two groups at least.
        let bits = (grid.clip_steps() + 1).ilog2() + 1;
        Self {
            narrow: vec![0; width.next_multiple_of(LANES)],
            segment: (1 << (63 - 2 * bits)) / LANES - 1,
            wide: vec![0; width],
            room: rows_per_flush,
            rows_per_flush,
            most: grid.clip_steps() as f64 + 1.0,
            limit: N::limit(grid.clip_steps()),
        }
    }

    /// Adds the contributions of the chosen rows of a table, with plain loops or others that give the
    /// same bits. The norms of a few rows come first, so that nothing is waited for row by row, and rows
    /// are added in pairs, which loads and stores the sums half as often.
    #[inline(always)]
    pub(crate) fn add_dense<T: Number, N: Norm>(
        &mut self,
        values: &[T],
        chosen: &[usize],
        ball: &Ball<T>,
        sum_of_terms: impl Fn(&[T], &[T]) -> T,
        add_pair: impl Fn(&mut Self, [&[T]; 2], &[T], [T; 2]) -> [u64; 2],
    ) {
        let row = |unit: usize| &values[unit * ball.width..(unit + 1) * ball.width];
        let centre = ball.centre.as_slice();
        let mut terms = [0.0; AT_ONCE];
        for batch in chosen.chunks(AT_ONCE) {
            for (term, &unit) in terms.iter_mut().zip(batch) {
                *term = sum_of_terms(row(unit), centre).to_f64();
            }
            // All square roots and quotients together.
            let factors = terms.map(|term| ball.factor(N::norm(term)));
            let pairs = terms.chunks_exact(2).zip(factors.chunks_exact(2));
            for (units, (terms, factors)) in batch.chunks(2).zip(pairs) {
                if let &[first, second] = units
                    && (terms[0] + terms[1]).is_finite()
                {
                    self.make_room(2);
                    let rows = [row(first), row(second)];
                    let found = add_pair(self, rows, centre, [T::of(factors[0]), T::of(factors[1])]);
                    for i in 0..2 {
                        if found[i] > self.limit {
                            self.add_again::<T, N>(rows[i], factors[i], found[i], ball);
                        }
                    }
                } else {
                    for (i, &unit) in units.iter().enumerate() {
                        self.add_single::<T, N>(row(unit), terms[i], factors[i], ball);
                    }
                }
            }
        }
    }

    /// Adds one row whose terms were summed.
    fn add_single<T: Number, N: Norm>(&mut self, row: &[T], terms: f64, factor: f64, ball: &Ball<T>) {
        self.make_room(1);
        if !terms.is_finite() {
            return self.add_unusual::<T, N>(row, ball);
        }
        let found = self.add_scaled::<T, N>(row, &ball.centre, T::of(factor));
        if found > self.limit {
            self.add_again::<T, N>(row, factor, found, ball);
        }
    }

    /// Takes back a row's integers that were too long, which is exact, and tries once more.
    #[cold]
    #[inline(never)]
    fn add_again<T: Number, N: Norm>(&mut self, row: &[T], factor: f64, found: u64, ball: &Ball<T>) {
        self.retract(row, &ball.centre, T::of(factor));
        let second = T::of(ball.second_factor::<N>(factor, found));
        if self.add_scaled::<T, N>(row, &ball.centre, second) > self.limit {
            self.retract(row, &ball.centre, second);
        }
    }

    /// [`Self::add_dense`] with the loops below.
    #[inline(always)]
    pub(crate) fn add_dense_plainly<T: Number, N: Norm>(
        &mut self,
        values: &[T],
        chosen: &[usize],
        ball: &Ball<T>,
    ) {
        self.add_dense::<T, N>(values, chosen, ball, sum_of_terms::<T, N>, |sums, rows, centre, factors| {
            [0, 1].map(|i| sums.add_scaled::<T, N>(rows[i], centre, factors[i]))
        });
    }

    /// [`Self::add_dense`] with the loops of [`super::avx2`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    pub(crate) fn add_dense_avx2(&mut self, values: &[f32], chosen: &[usize], ball: &Ball<f32>) {
        self.add_dense::<f32, super::L2>(
            values,
            chosen,
            ball,
            |row, centre| avx2::sum_of_squares(row, centre),
            |sums, rows, centre, factors| {
                let (most, segment) = (sums.most as f32, sums.segment);
                avx2::add_pair(rows, centre, &mut sums.narrow, factors, most, segment)
            },
        );
    }

    /// Adds the integers of a row and returns the sum of their terms. The centre is padded with zeros to
    /// whole lanes, and so are the sums.
    #[inline(always)]
    pub(super) fn add_scaled<T: Number, N: Norm>(&mut self, row: &[T], centre: &[T], factor: T) -> u64 {
        let most = T::of(self.most);
        let ((rows, rest), (centres, _)) = (row.as_chunks(), centre.as_chunks());
        let (sums, _) = self.narrow.as_chunks_mut();
        let mut total = 0u64;
        let parts = rows.chunks(self.segment).zip(centres.chunks(self.segment));
        for ((rows, centres), sums) in parts.zip(sums.chunks_mut(self.segment)) {
            let mut terms = [0u64; LANES];
            for ((x, c), s) in rows.iter().zip(centres).zip(sums) {
                add_lanes::<T, N>(x, c, s, factor, most, &mut terms);
            }
            total = total.saturating_add(across(terms));
        }
        if !rest.is_empty() {
            let mut terms = [0u64; LANES];
            let (x, at) = (padded(rest), rows.len());
            add_lanes::<T, N>(&x, &centres[at], &mut sums[at], factor, most, &mut terms);
            total = total.saturating_add(across(terms));
        }
        total
    }

    /// Takes back what [`Self::add_scaled`] added.
    #[cold]
    pub(super) fn retract<T: Number>(&mut self, row: &[T], centre: &[T], factor: T) {
        let most = T::of(self.most);
        for ((&x, &c), s) in row.iter().zip(centre).zip(&mut self.narrow) {
            *s = s.wrapping_sub(steps(x, c, factor, most));
        }
    }

    /// A row whose norm overflowed: its direction in double precision, scaled by its largest entry.
    /// Rows with an entry that is not a finite number contribute nothing.
    #[cold]
    #[inline(never)]
    fn add_unusual<T: Number, N: Norm>(&mut self, row: &[T], ball: &Ball<T>) {
        let halves: Vec<f64> =
            row.iter().zip(&ball.centre).map(|(x, c)| 0.5 * x.to_f64() - 0.5 * c.to_f64()).collect();
        let largest = halves.iter().fold(0.0f64, |most, x| most.max(x.abs()));
        let scaled: Vec<f64> = halves.iter().map(|x| x / largest).collect();
        let origin = vec![0.0; ball.centre.len()];
        let norm = N::norm(sum_of_terms::<f64, N>(&scaled, &origin));
        if !norm.is_finite() {
            return;
        }
        // The row itself is 2·largest times the scaled one: squares overflow before clipping is due
        // where the clip norm is huge.
        let factor = ball.per_step * (ball.clip_norm / norm * SHIER).min(2.0 * largest);
        if self.add_scaled::<f64, N>(&scaled, &origin, factor) > self.limit {
            self.retract(&scaled, &origin, factor);
        }
    }

    /// Adds the contribution of a sparse row about the origin: `columns` must increase strictly below
    /// the width, or the row contributes nothing.
    #[inline(always)]
    pub(crate) fn add_sparse<T: Number, N: Norm>(&mut self, columns: &[u32], row: &[T], ball: &Ball<T>) {
        if !self.is_row(columns, row) {
            return;
        }
        self.make_room(1);
        let terms = row.iter().fold(0.0, |sum, &x| sum + N::term(x.to_f64()));
        let norm = N::norm(terms);
        if !norm.is_finite() {
            let dense = self.scattered(columns, row);
            return self.add_unusual::<T, N>(&dense, ball);
        }
        let factor = ball.factor(norm);
        let found = self.add_scaled_sparse::<T, N>(columns, row, factor);
        if found > self.limit {
            self.retract_sparse(columns, row, factor);
            let second = ball.second_factor::<N>(factor, found);
            if self.add_scaled_sparse::<T, N>(columns, row, second) > self.limit {
                self.retract_sparse(columns, row, second);
            }
        }
    }

    /// Adds the contribution of a sparse row about a centre: as the dense row that it stands for.
    pub(crate) fn add_sparse_about_centre<T: Number, N: Norm>(
        &mut self,
        columns: &[u32],
        row: &[T],
        ball: &Ball<T>,
    ) {
        if self.is_row(columns, row) {
            let dense = self.scattered(columns, row);
            self.add_dense_plainly::<T, N>(&dense, &[0], ball);
        }
    }

    /// Whether the columns increase strictly below the width: twice the same column would count its
    /// square wrongly.
    pub(super) fn is_row<T>(&self, columns: &[u32], row: &[T]) -> bool {
        columns.len() == row.len()
            && columns.windows(2).all(|pair| pair[0] < pair[1])
            && columns.last().is_none_or(|&last| (last as usize) < self.wide.len())
    }

    fn scattered<T: Number>(&self, columns: &[u32], row: &[T]) -> Vec<T> {
        let mut dense = vec![T::default(); self.wide.len()];
        columns.iter().zip(row).for_each(|(&column, &x)| dense[column as usize] = x);
        dense
    }

    pub(super) fn add_scaled_sparse<T: Number, N: Norm>(
        &mut self,
        columns: &[u32],
        row: &[T],
        factor: f64,
    ) -> u64 {
        let mut total = 0u64;
        for (&column, &x) in columns.iter().zip(row) {
            let k = steps(x.to_f64(), 0.0, factor, self.most);
            let sum = &mut self.narrow[column as usize];
            *sum = sum.wrapping_add(k);
            total = total.saturating_add(N::integer_term(k));
        }
        total
    }

    #[cold]
    pub(super) fn retract_sparse<T: Number>(&mut self, columns: &[u32], row: &[T], factor: f64) {
        for (&column, &x) in columns.iter().zip(row) {
            let sum = &mut self.narrow[column as usize];
            *sum = sum.wrapping_sub(steps(x.to_f64(), 0.0, factor, self.most));
        }
    }

    /// Adds trunc(factor) to one column, at most `most` in absolute value.
    pub(super) fn add_constant(&mut self, column: usize, factor: f64) {
        let k = steps(1.0, 0.0, factor, self.most);
        self.narrow[column] = self.narrow[column].wrapping_add(k);
    }

    /// Sees to it that so many more rows cannot overflow the narrow sums.
    #[inline(always)]
    pub(super) fn make_room(&mut self, rows: u32) {
        if self.room < rows {
            self.flush();
        }
        self.room -= rows;
    }

    fn flush(&mut self) {
        // The padding of `narrow` has no partner, and is zero.
        for (wide, narrow) in self.wide.iter_mut().zip(&mut self.narrow) {
            *wide = wide.wrapping_add(i64::from(std::mem::take(narrow)));
        }
        self.room = self.rows_per_flush;
    }

    /// The exact sums.
    pub(crate) fn into_sums(mut self) -> Vec<i64> {
        self.flush();
        self.wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::L2;

    /// Whatever factor floating-point code comes up with: integers that are all too large, in so many
    /// columns that the sum of their squares is a multiple of 2^64, are still too long, and leave no
    /// trace when they are taken back.
    #[test]
    fn lanes_and_totals_do_not_overflow() {
        for width in [1 << 20, (1 << 20) + 3, 5000, 3] {
            // The clip norm has 2^28 − 1 steps in the widest table, and integers are at most 2^28.
            let grid = Grid::new(2f64.next_down(), width).unwrap();
            let row = vec![-1.0f32; width];
            let centre = vec![0.0f32; width.next_multiple_of(LANES)];
            for factor in [1e30, f32::INFINITY, f32::NAN] {
                let mut sums = Accumulator::new::<L2>(width, grid);
                let found = sums.add_scaled::<f32, L2>(&row, &centre, factor);
                assert!(found > sums.limit, "{width} {factor}: {found}");
                sums.retract(&row, &centre, factor);
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    let (most, segment) = (sums.most as f32, sums.segment);
                    // SAFETY: the processor has what the function needs.
                    #[expect(unsafe_code, reason = "calling code compiled for a processor feature")]
                    let both = unsafe {
                        avx2::add_pair([&row; 2], &centre, &mut sums.narrow, [factor; 2], most, segment)
                    };
                    // The padding, of which there is less, counts too if the factor is no number.
                    assert!(both.iter().all(|&one| one > sums.limit), "{width} {factor}");
                    assert!(!factor.is_finite() || both == [found; 2], "{width} {factor}");
                    sums.retract(&row, &centre, factor);
                    sums.retract(&row, &centre, factor);
                }
                assert!(sums.into_sums().iter().all(|&sum| sum == 0));
            }
        }
    }
}
