//! Which public rows take part in which step.

use super::PublicRows;

/// Public rows in random order, epoch by epoch.
pub(super) struct PublicBatches<'a> {
    pub(super) rows: &'a PublicRows,
    order: Vec<usize>,
    next: usize,
    size: usize,
    state: u64,
}

impl<'a> PublicBatches<'a> {
    pub(super) fn new(rows: &'a PublicRows, size: usize, seed: u64) -> Self {
        let size = size.min(rows.len());
        Self { rows, order: (0..rows.len()).collect(), next: rows.len(), size, state: seed }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The batch that comes next, without taking it.
    pub(super) fn upcoming(&mut self) -> &[usize] {
        if self.next + self.size > self.order.len() {
            shuffle(&mut self.order, &mut self.state);
            self.next = 0;
        }
        &self.order[self.next..self.next + self.size]
    }

    pub(super) fn next_batch(&mut self) -> Vec<usize> {
        let batch = self.upcoming().to_vec();
        self.next += self.size;
        batch
    }
}

/// Fisher and Yates, by a small generator: which row comes when is no secret.
pub(super) fn shuffle(order: &mut [usize], state: &mut u64) {
    for i in (1..order.len()).rev() {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, ((*state >> 33) as usize) % (i + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_core::{DenseTable, Public};

    /// Every row once an epoch; looking ahead takes nothing.
    #[test]
    fn an_epoch_is_one_pass() {
        let table = DenseTable::new(vec![1.0f32; 24], 2).unwrap();
        let rows = PublicRows::load(&Public(table)).unwrap();
        let mut batches = PublicBatches::new(&rows, 4, 7);
        let mut orders = Vec::new();
        for _ in 0..2 {
            let mut seen = Vec::new();
            for _ in 0..3 {
                let ahead = batches.upcoming().to_vec();
                let batch = batches.next_batch();
                assert_eq!(ahead, batch);
                seen.extend(batch);
            }
            orders.push(seen.clone());
            seen.sort_unstable();
            assert_eq!(seen, (0..12).collect::<Vec<_>>());
        }
        assert_ne!(orders[0], orders[1]);
    }
}
