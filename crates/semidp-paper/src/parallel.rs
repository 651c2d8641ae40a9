//! Trials on several threads.

use crate::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Heavy pieces of work at a time: much of one keeps a single core busy, and each has its own copy of the rows.
const AT_ONCE: usize = 2;

/// How many heavy pieces of work to do at once, and the threads of each.
pub fn split(threads: usize) -> (usize, usize) {
    let at_once = threads.clamp(1, AT_ONCE);
    (at_once, threads.max(1).div_ceil(at_once))
}

/// Does so many pieces of work, numbered from 0, and returns what they gave in the order of their numbers. `done` hears
/// how many are finished.
pub fn in_order<T: Send>(
    count: u64,
    threads: usize,
    done: &(dyn Fn(u64) + Sync),
    work: impl Fn(u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (next, finished) = (AtomicU64::new(0), AtomicU64::new(0));
    let share = || -> Result<Vec<(u64, T)>> {
        let mut results = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(results);
            }
            // After a failure nobody begins another piece: all of them would be lost.
            results.push((number, work(number).inspect_err(|_| next.store(count, Ordering::Relaxed))?));
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let mut results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(share)).collect();
        let mut all = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(results) => all.extend(results?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, crate::Error>(all)
    })?;
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never none, and never fewer threads in all than there are.
    #[test]
    fn threads_are_split() {
        assert_eq!([0, 1, 2, 3, 8].map(split), [(1, 1), (1, 1), (2, 1), (2, 2), (2, 4)]);
    }

    #[test]
    fn results_are_in_order_and_errors_come_through() {
        for threads in [0, 1, 3] {
            let heard = AtomicU64::new(0);
            let done = |finished| {
                heard.fetch_max(finished, Ordering::Relaxed);
            };
            let squares = in_order(20, threads, &done, |i| Ok(i * i)).unwrap();
            assert_eq!(squares, (0..20).map(|i| i * i).collect::<Vec<_>>());
            assert_eq!(heard.into_inner(), 20);
        }
        let failing =
            |i| if i == 5 { Err(semidp_plot::Error::Empty { title: "x".into() }.into()) } else { Ok(i) };
        assert!(in_order(9, 2, &|_| (), failing).is_err());
    }
}
