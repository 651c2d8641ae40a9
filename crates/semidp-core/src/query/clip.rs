//! Contributions: a unit's row, clipped to a ball about a centre, as integers.
//!
//! What privacy rests on is small, and in integers: a row's integers stay in the sum only if their
//! norm, computed exactly, is at most the bound; otherwise they are taken back, and a second attempt
//! with a smaller factor either fits or is taken back too. Whatever the floating-point code before it does (rounding, overflow, NaN) changes which
//! integers are offered, never that they are bounded, and it sees one row alone: so a contribution is
//! a function of the query and the unit, bit for bit, whatever else is in the batch.
//!
//! Sums of floats are in sixteen fixed lanes, so that the compiler can use vector instructions without
//! changing a bit: the code compiled for AVX2 is the same source, called behind a run-time check.

use super::Norm;
use super::grid::Grid;
use crate::data::Number;

/// Lanes of a sum.
const LANES: usize = 16;

/// Columns whose integer terms fit into 64 bits a lane: an integer is at most 2^28 (see
/// [`Grid`]), its square 2^56, and a lane sums 2^6 of them.
const SEGMENT: usize = LANES << 6;

/// A little less than one: norms and quotients are rounded, and a first attempt should do.
const SHY: f64 = 1.0 - 1.0 / (1 << 20) as f64;
const SHIER: f64 = 1.0 - 1.0 / (1 << 16) as f64;

/// trunc((x − c)·factor), at most `most` in absolute value: more would be refused in any case.
#[inline(always)]
fn steps<T: Number>(x: T, c: T, factor: T, most: i32) -> i32 {
    ((x - c) * factor).truncate().clamp(-most, most)
}

/// Σ term(x_j − c_j), in lanes.
#[inline(always)]
fn sum_of_terms<T: Number, N: Norm>(row: &[T], centre: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let (mut rows, mut centres) = (row.chunks_exact(LANES), centre.chunks_exact(LANES));
    for (x, c) in (&mut rows).zip(&mut centres) {
        for i in 0..LANES {
            sums[i] = sums[i] + N::term(x[i] - c[i]);
        }
    }
    for (sum, (&x, &c)) in sums.iter_mut().zip(rows.remainder().iter().zip(centres.remainder())) {
        *sum = *sum + N::term(x - c);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] = sums[i] + sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

/// Sums of integer contributions: 32 bits while that is enough, 64 bits beyond.
pub(crate) struct Accumulator {
    narrow: Vec<i32>,
    wide: Vec<i64>,
    /// Rows that `narrow` can take before it could overflow.
    room: u32,
    rows_per_flush: u32,
    /// No coordinate of a contribution is larger; one more than the bound on its norm.
    most: i32,
    limit: u64,
}

/// A query's numbers in the precision of a table.
pub(crate) struct Ball<T> {
    centre: Vec<T>,
    /// Whether the centre is the origin.
    pub(crate) at_origin: bool,
    clip_norm: f64,
    clip_steps: f64,
    /// 1/g.
    per_step: f64,
}

impl<T: Number> Ball<T> {
    pub(crate) fn width(&self) -> usize {
        self.centre.len()
    }

    pub(crate) fn new(centre: &[f64], clip_norm: f64, grid: Grid) -> Self {
        Self {
            centre: centre.iter().map(|&c| T::of(c)).collect(),
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
        Self {
            narrow: vec![0; width],
            wide: vec![0; width],
            room: rows_per_flush,
            rows_per_flush,
            most: grid.clip_steps() as i32 + 1,
            limit: N::limit(grid.clip_steps()),
        }
    }

    /// Adds the contribution of a dense row.
    #[inline(always)]
    pub(crate) fn add_dense<T: Number, N: Norm>(&mut self, row: &[T], ball: &Ball<T>) {
        self.make_room();
        let centre = &ball.centre[..row.len()];
        let norm = N::norm(sum_of_terms::<T, N>(row, centre).to_f64());
        if !norm.is_finite() {
            return self.add_unusual::<T, N>(row, ball);
        }
        let factor = ball.factor(norm);
        let found = self.add_scaled::<T, N>(row, centre, T::of(factor));
        if found > self.limit {
            // Integers can be taken back exactly.
            self.retract(row, centre, T::of(factor));
            let second = T::of(ball.second_factor::<N>(factor, found));
            if self.add_scaled::<T, N>(row, centre, second) > self.limit {
                self.retract(row, centre, second);
            }
        }
    }

    /// Adds the integers of a row and returns the sum of their terms.
    #[inline(always)]
    fn add_scaled<T: Number, N: Norm>(&mut self, row: &[T], centre: &[T], factor: T) -> u64 {
        let mut total = 0u64;
        let most = self.most;
        for (part, x) in row.chunks(SEGMENT).enumerate() {
            let columns = part * SEGMENT..part * SEGMENT + x.len();
            let (c, s) = (&centre[columns.clone()], &mut self.narrow[columns]);
            let mut terms = [0u64; LANES];
            let mut rows = x.chunks_exact(LANES);
            let mut centres = c.chunks_exact(LANES);
            let mut sums = s.chunks_exact_mut(LANES);
            for ((x, c), s) in (&mut rows).zip(&mut centres).zip(&mut sums) {
                for i in 0..LANES {
                    let k = steps(x[i], c[i], factor, most);
                    s[i] = s[i].wrapping_add(k);
                    terms[i] += N::integer_term(k);
                }
            }
            let rest = rows.remainder().iter().zip(centres.remainder()).zip(sums.into_remainder());
            for (term, ((&x, &c), s)) in terms.iter_mut().zip(rest) {
                let k = steps(x, c, factor, most);
                *s = s.wrapping_add(k);
                *term += N::integer_term(k);
            }
            total = terms.iter().fold(total, |total, &term| total.saturating_add(term));
        }
        total
    }

    /// Takes back what [`Self::add_scaled`] added.
    #[cold]
    fn retract<T: Number>(&mut self, row: &[T], centre: &[T], factor: T) {
        for ((&x, &c), s) in row.iter().zip(centre).zip(&mut self.narrow) {
            *s = s.wrapping_sub(steps(x, c, factor, self.most));
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
        let origin = vec![0.0; row.len()];
        let norm = N::norm(sum_of_terms::<f64, N>(&scaled, &origin));
        if !norm.is_finite() {
            return;
        }
        let factor = ball.per_step * (ball.clip_norm / norm * SHIER);
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
        self.make_room();
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
            self.add_dense::<T, N>(&dense, ball);
        }
    }

    /// Whether the columns increase strictly below the width: twice the same column would count its
    /// square wrongly.
    fn is_row<T>(&self, columns: &[u32], row: &[T]) -> bool {
        columns.len() == row.len()
            && columns.windows(2).all(|pair| pair[0] < pair[1])
            && columns.last().is_none_or(|&last| (last as usize) < self.wide.len())
    }

    fn scattered<T: Number>(&self, columns: &[u32], row: &[T]) -> Vec<T> {
        let mut dense = vec![T::default(); self.wide.len()];
        columns.iter().zip(row).for_each(|(&column, &x)| dense[column as usize] = x);
        dense
    }

    fn add_scaled_sparse<T: Number, N: Norm>(&mut self, columns: &[u32], row: &[T], factor: f64) -> u64 {
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
    fn retract_sparse<T: Number>(&mut self, columns: &[u32], row: &[T], factor: f64) {
        for (&column, &x) in columns.iter().zip(row) {
            let sum = &mut self.narrow[column as usize];
            *sum = sum.wrapping_sub(steps(x.to_f64(), 0.0, factor, self.most));
        }
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.room == 0 {
            self.flush();
        }
        self.room -= 1;
    }

    fn flush(&mut self) {
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
