//! What to fetch from memory while there is other work.

use super::ROWS;

/// The rows that will come next, in shares: each loop fetches one, so that memory is never idle for long, nor asked
/// for more at once than it can deliver.
pub(in crate::query) struct Ahead<'a, T> {
    values: &'a [T],
    width: usize,
    chosen: &'a [usize],
    /// Of one row.
    shares: usize,
    /// Counted through all chosen rows.
    next: usize,
    /// The row being worked on is that many in the chosen ones.
    place: usize,
}

impl<'a, T> Ahead<'a, T> {
    /// The chosen rows of a table, each in some shares.
    pub(super) fn new(values: &'a [T], width: usize, chosen: &'a [usize], shares: usize) -> Self {
        Self { values, width, chosen, shares, next: 0, place: 0 }
    }

    /// No rows.
    pub(in crate::query) fn nothing() -> Self {
        Self::new(&[], 0, &[], 1)
    }

    /// Says which row is being worked on.
    pub(super) fn reach(&mut self, place: usize) {
        self.place = place;
        self.next = self.next.max((place + 1) * self.shares);
    }

    /// The next share, of a row not too far ahead.
    pub(super) fn share(&mut self) -> &'a [T] {
        let (row, share) = (self.next / self.shares, self.next % self.shares);
        match self.chosen.get(row) {
            Some(&unit) if row <= self.place + ROWS => {
                self.next += 1;
                let size = self.width.div_ceil(self.shares);
                let (start, end) = (share * size, ((share + 1) * size).min(self.width));
                &self.values[unit * self.width..][start.min(end)..end]
            }
            _ => &[],
        }
    }
}
