//! Work on independent pieces by a few threads. Every use is such that the result does not depend on
//! how the pieces are shared out.

/// Calls `work` on every piece.
pub(crate) fn for_each<T: Send>(pieces: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let threads = threads.clamp(1, pieces.len().max(1));
    if threads == 1 {
        return pieces.iter_mut().for_each(work);
    }
    let share = pieces.len().div_ceil(threads);
    // The calling thread takes the first part: to start another for it would only cost time.
    let (own, others) = pieces.split_at_mut(share);
    std::thread::scope(|scope| {
        for part in others.chunks_mut(share) {
            let work = &work;
            scope.spawn(move || part.iter_mut().for_each(work));
        }
        own.iter_mut().for_each(&work);
    });
}

/// As many threads as the machine runs at once.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
