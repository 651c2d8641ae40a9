//! Work on independent pieces by a few threads. Every use is such that the result does not depend on
//! how the pieces are shared out.
//!
//! A training step is shorter than it takes to start a thread (0.1 to 0.2 ms), so helpers are started once and wait for
//! work: awake for a moment, because in training the next step comes soon, then asleep.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long a helper stays awake after its last work.
const AWAKE: Duration = Duration::from_micros(300);

/// Calls `work` on every piece.
pub(crate) fn for_each<T: Send>(pieces: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let threads = threads.clamp(1, pieces.len().max(1));
    if threads == 1 {
        return pieces.iter_mut().for_each(work);
    }
    // Whoever is free takes the next piece.
    let pieces = Mutex::new(pieces.iter_mut());
    let take = || lock(&pieces).next();
    let part = || {
        while let Some(piece) = take() {
            work(piece);
        }
    };
    match Pool::reserve() {
        Some(pool) => pool.run(threads - 1, &part),
        // The helpers are at work for somebody else.
        None => thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(part)));
            part();
        }),
    }
}

/// As many threads as the machine runs at once.
pub(crate) fn available() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A panic elsewhere leaves nothing half-done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Helpers that wait for work.
struct Pool {
    helpers: Vec<Helper>,
    /// Threads do not survive a fork: in a child process there is nobody to help.
    process: u32,
}

struct Helper {
    thread: Thread,
    mailbox: Arc<Mailbox>,
}

#[derive(Default)]
struct Mailbox {
    job: Mutex<Option<Job>>,
    /// Jobs put in, and jobs done.
    posted: AtomicU64,
    done: AtomicU64,
    panicked: AtomicBool,
}

type Job = &'static (dyn Fn() + Sync);

impl Pool {
    /// The helpers, if nobody else has them.
    fn reserve() -> Option<MutexGuard<'static, Self>> {
        static POOL: OnceLock<Mutex<Pool>> = OnceLock::new();
        let pool = POOL.get_or_init(|| Mutex::new(Self::start(available() - 1)));
        let pool = match pool.try_lock() {
            Ok(pool) => pool,
            Err(TryLockError::Poisoned(pool)) => pool.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        (pool.process == std::process::id()).then_some(pool)
    }

    /// As many as can be started.
    fn start(helpers: usize) -> Self {
        let helper = |_| {
            let mailbox = Arc::new(Mailbox::default());
            let own = mailbox.clone();
            let started = thread::Builder::new().name("semidp".into()).spawn(move || own.serve()).ok()?;
            Some(Helper { thread: started.thread().clone(), mailbox })
        };
        Self { helpers: (0..helpers).map_while(helper).collect(), process: std::process::id() }
    }

    /// Runs `part` here and by at most so many helpers, until all of them return.
    fn run(&self, helpers: usize, part: &(dyn Fn() + Sync)) {
        let helpers = &self.helpers[..helpers.min(self.helpers.len())];
        // SAFETY: only the lifetime changes. Helpers use the reference until they count the job as done, and
        // `Waiting` does not let this function end, or unwind, before that.
        #[expect(unsafe_code, reason = "helpers outlive the borrow, their job does not")]
        let job: Job = unsafe { std::mem::transmute::<&(dyn Fn() + Sync), Job>(part) };
        let waiting = Waiting(helpers);
        helpers.iter().for_each(|helper| helper.post(job));
        part();
        drop(waiting);
        if helpers.iter().any(|helper| helper.mailbox.panicked.load(Ordering::Relaxed)) {
            resume_unwind(Box::new("a helping thread panicked"));
        }
    }
}

impl Helper {
    fn post(&self, job: Job) {
        self.mailbox.panicked.store(false, Ordering::Relaxed);
        *lock(&self.mailbox.job) = Some(job);
        self.mailbox.posted.fetch_add(1, Ordering::Release);
        self.thread.unpark();
    }
}

/// Ends when its helpers have done all their jobs.
struct Waiting<'a>(&'a [Helper]);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for Helper { mailbox, .. } in self.0 {
            let posted = mailbox.posted.load(Ordering::Relaxed);
            let mut patience = 10_000u32;
            while mailbox.done.load(Ordering::Acquire) != posted {
                match patience {
                    // The machine is busy: let the helper run.
                    0 => thread::yield_now(),
                    _ => {
                        patience -= 1;
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }
}

impl Mailbox {
    fn serve(&self) {
        let mut done = 0;
        loop {
            self.wait_beyond(done);
            let job = lock(&self.job).take();
            // A job borrows what its caller keeps alive; nothing of it is looked at after a panic.
            if let Some(Err(payload)) = job.map(|job| catch_unwind(AssertUnwindSafe(job))) {
                // It may panic again when it is dropped, and this thread must go on.
                std::mem::forget(payload);
                self.panicked.store(true, Ordering::Relaxed);
            }
            done += 1;
            self.done.store(done, Ordering::Release);
        }
    }

    fn wait_beyond(&self, done: u64) {
        let begun = Instant::now();
        while self.posted.load(Ordering::Acquire) == done {
            if begun.elapsed() < AWAKE {
                (0..64).for_each(|_| std::hint::spin_loop());
            } else {
                // Returns at once if work came in the meantime.
                thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_worked_on_once() {
        for threads in [1, 2, 3, 16] {
            for count in [0, 1, 2, 7, 1000] {
                let mut pieces = vec![0u32; count];
                for_each(&mut pieces, threads, |piece| *piece += 1);
                assert!(pieces.iter().all(|piece| *piece == 1), "{threads} {count}");
            }
        }
    }

    /// Within a piece of work there is more of it, and other threads ask at the same time.
    #[test]
    fn calls_may_nest_and_meet() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut outer = vec![vec![0u32; 5]; 3];
                        for_each(&mut outer, 2, |inner| for_each(inner, 2, |piece| *piece += 1));
                        assert!(outer.iter().flatten().all(|piece| *piece == 1));
                    }
                });
            }
        });
    }

    /// A panic reaches the caller, and the helpers go on.
    #[test]
    fn panics_are_passed_on() {
        for round in 0..20 {
            let mut pieces: Vec<u32> = (0..40).collect();
            let result = catch_unwind(AssertUnwindSafe(|| {
                for_each(&mut pieces, 4, |piece| assert!(*piece != round, "as it should be"));
            }));
            assert!(result.is_err());
        }
        let mut pieces = vec![0u32; 100];
        for_each(&mut pieces, 4, |piece| *piece += 1);
        assert!(pieces.iter().all(|piece| *piece == 1));
    }

    /// Work after a pause finds helpers asleep.
    #[test]
    fn helpers_wake_up() {
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(2));
            let mut pieces = vec![0u32; 64];
            for_each(&mut pieces, 2, |piece| *piece += 1);
            assert!(pieces.iter().all(|piece| *piece == 1));
        }
    }
}
