//! Independent pieces of an audit by a few threads; the result does not depend on how many.

use crate::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` with every number below `count`, and returns the answers in order.
pub(super) fn in_parallel<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let part = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return found;
            }
            found.push((index, work(index)));
        }
    };
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.clamp(1, count.max(1))).map(|_| scope.spawn(part)).collect();
        let mut all = part();
        for other in others {
            match other.join() {
                Ok(found) => all.extend(found),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, answer)| answer).collect()
}
