//! Work on independent pieces by a few threads. Every use is such that the result does not depend on
//! how the pieces are shared out.

/// Calls `work` on every piece.
pub(crate) fn for_each<T: Send>(pieces: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let threads = threads.clamp(1, pieces.len().max(1));
    if threads == 1 {
        return pieces.iter_mut().for_each(work);
    }
    let share = pieces.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for part in pieces.chunks_mut(share) {
            let work = &work;
            scope.spawn(move || part.iter_mut().for_each(work));
        }
    });
}

/// As many threads as the machine runs at once.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
