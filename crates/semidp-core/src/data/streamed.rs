//! Rows that stay where they are and pass through memory in windows, for files that do not fit into it.
//!
//! A file is decoded by one thread, which runs ahead a little. A step that goes on where the last one ended finds its
//! windows ready, so that a pass in order decodes the file once, even if all of it is one block. Whoever asks for a
//! window that has passed has the file read again from the block that holds it: right, only slow.

use super::piece::{self, Piece};
use super::{Block, BlockSource};
use crate::{Error, Result, parallel};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes in a window, about: 2^20 numbers of single precision.
const WINDOW_BYTES: u64 = 1 << 22;
/// Windows that the reader may finish before anybody asks for them.
const AHEAD: usize = 2;

const PANICKED: &str = "reading it failed unexpectedly";
const NO_THREAD: &str = "no thread could be started to read it";

/// Rows of a source, shown in windows of as many rows each. It holds a bounded number of windows, however many rows
/// there are.
pub struct Streamed {
    source: Arc<dyn BlockSource>,
    units: usize,
    window_units: usize,
    reader: Mutex<Option<Reader>>,
    /// The windows that were read last, with their numbers: neighbouring steps share a window, and threads ask for
    /// neighbouring windows in any order.
    kept: Mutex<VecDeque<(usize, Arc<Window>)>>,
    most_kept: usize,
    /// Held by every window too, so that it counts them.
    alive: Arc<()>,
}

struct Window {
    pieces: Vec<Piece>,
    _alive: Arc<()>,
}

/// A thread that reads windows in order.
struct Reader {
    /// The window that comes next.
    next: usize,
    windows: Receiver<Result<Window>>,
    is_dismissed: Arc<AtomicBool>,
    /// Threads do not survive a fork: in a child process nobody reads.
    process: u32,
}

impl Streamed {
    pub(crate) fn new(source: Arc<dyn BlockSource>) -> Self {
        let rows = WINDOW_BYTES / source.bytes_per_unit().max(1);
        Self::with_windows(source, rows.clamp(1, 1 << 20) as usize)
    }

    /// The same in windows of a given number of rows. It makes no difference to any result.
    fn with_windows(source: Arc<dyn BlockSource>, window_units: usize) -> Self {
        Self {
            units: source.units(),
            source,
            window_units,
            reader: Mutex::new(None),
            kept: Mutex::new(VecDeque::new()),
            most_kept: parallel::available() + 3,
            alive: Arc::new(()),
        }
    }

    fn kept(&self, number: usize) -> Option<Arc<Window>> {
        lock(&self.kept).iter().find(|(kept, _)| *kept == number).map(|(_, window)| window.clone())
    }

    fn keep(&self, number: usize, window: &Arc<Window>) {
        let mut kept = lock(&self.kept);
        kept.retain(|(other, _)| *other != number);
        kept.push_back((number, window.clone()));
        if kept.len() > self.most_kept {
            kept.pop_front();
        }
    }

    fn window(&self, number: usize) -> Result<Arc<Window>> {
        if let Some(window) = self.kept(number) {
            return Ok(window);
        }
        let mut place = lock(&self.reader);
        // Another thread may have had it read in the meantime.
        if let Some(window) = self.kept(number) {
            return Ok(window);
        }
        let mut reader = match place.take() {
            Some(reader) if self.is_on_the_way(&reader, number) => reader,
            other => {
                other.into_iter().for_each(Reader::dismiss);
                self.start(number)?
            }
        };
        loop {
            // An error ends the reader; whoever asks again starts another.
            let window = match reader.windows.recv() {
                Ok(window) => Arc::new(window?),
                Err(_) => return Err(Error::Source { block: self.block_of(number), reason: PANICKED }),
            };
            self.keep(reader.next, &window);
            reader.next += 1;
            if reader.next > number {
                *place = Some(reader);
                return Ok(window);
            }
        }
    }

    /// Whether the reader comes to a window soon: not if there are whole blocks to skip before it.
    fn is_on_the_way(&self, reader: &Reader, number: usize) -> bool {
        let soon = reader.next + AHEAD + 1;
        reader.process == std::process::id()
            && reader.next <= number
            && (number <= soon || self.block_of(number) <= self.block_of(soon))
    }

    /// The block of the source that holds the first unit of a window.
    fn block_of(&self, number: usize) -> usize {
        let unit = number * self.window_units;
        let (mut low, mut high) = (0, self.source.blocks());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.source.units_of(middle).end <= unit {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Starts a thread that reads from this window on.
    fn start(&self, number: usize) -> Result<Reader> {
        let block = self.block_of(number);
        let (send, windows) = sync_channel(AHEAD);
        let is_dismissed = Arc::new(AtomicBool::new(false));
        let reading = Reading {
            source: self.source.clone(),
            first: number * self.window_units,
            units: self.units,
            window_units: self.window_units,
            block: Cell::new(block),
            is_dismissed: is_dismissed.clone(),
            alive: self.alive.clone(),
            send,
        };
        thread::Builder::new()
            .name("semidp-reader".into())
            .spawn(move || reading.run())
            .map_err(|_| Error::Source { block, reason: NO_THREAD })?;
        Ok(Reader { next: number, windows, is_dismissed, process: std::process::id() })
    }
}

impl Reader {
    /// Sends the thread away and waits until it is gone: two of them would hold more memory than one.
    fn dismiss(self) {
        if self.process != std::process::id() {
            // It stayed in another process, perhaps in the middle of something.
            return std::mem::forget(self);
        }
        self.is_dismissed.store(true, Ordering::Relaxed);
        while self.windows.recv().is_ok() {}
    }
}

/// The thread ends by itself, after the piece that it is at.
impl Drop for Reader {
    fn drop(&mut self) {
        self.is_dismissed.store(true, Ordering::Relaxed);
    }
}

/// What the thread has to do.
struct Reading {
    source: Arc<dyn BlockSource>,
    /// The first unit that is wanted.
    first: usize,
    units: usize,
    window_units: usize,
    /// The block that it is at.
    block: Cell<usize>,
    is_dismissed: Arc<AtomicBool>,
    alive: Arc<()>,
    send: SyncSender<Result<Window>>,
}

impl Reading {
    fn run(self) {
        // Nothing of a source that panicked is looked at but its next answer.
        let read = catch_unwind(AssertUnwindSafe(|| self.read())).unwrap_or_else(|payload| {
            // It may panic again when it is dropped.
            std::mem::forget(payload);
            Err(Error::Source { block: self.block.get(), reason: PANICKED })
        });
        if let Err(error) = read {
            // If nobody waits any more, nobody needs to know.
            let _ = self.send.send(Err(error));
        }
    }

    fn read(&self) -> Result<()> {
        let width = self.source.width();
        let mut filling = Filling { window: self.empty(), start: self.first, held: 0 };
        for block in self.block.get()..self.source.blocks() {
            self.block.set(block);
            let mut left = self.source.units_of(block);
            let (mut is_well_formed, mut is_wanted) = (true, true);
            self.source.visit_while(block, &mut |shown| {
                is_well_formed &= piece::fits(&shown, width);
                is_wanted &= is_well_formed && !self.is_dismissed.load(Ordering::Relaxed);
                if is_wanted {
                    let units = shown.units().min(left.len());
                    // Units before the first wanted one are only passed by.
                    let before = self.first.saturating_sub(left.start).min(units);
                    left.start += units;
                    is_wanted = self.add(&mut filling, &shown, before..units);
                }
                is_wanted
            })?;
            if !is_well_formed {
                return Err(Error::Source { block, reason: piece::ANOTHER_SHAPE });
            }
            if !is_wanted {
                return Ok(());
            }
            if !left.is_empty() {
                return Err(Error::Source { block, reason: piece::TOO_FEW });
            }
        }
        Ok(())
    }

    /// Fills windows with units, and hands over those that are full; tells whether somebody still takes them.
    fn add(&self, filling: &mut Filling, shown: &Block<'_>, mut units: Range<usize>) -> bool {
        while !units.is_empty() {
            let size = self.window_units.min(self.units.saturating_sub(filling.start));
            let taken = units.len().min(size.saturating_sub(filling.held));
            if taken == 0 {
                // Beyond the last unit that was promised.
                return true;
            }
            let part = units.start..units.start + taken;
            if filling.held == 0 {
                filling.window.pieces.push(Piece::like(shown, size));
            }
            piece::add(&mut filling.window.pieces, shown, part, usize::MAX);
            units.start += taken;
            filling.held += taken;
            if filling.held == size {
                let next = Filling { window: self.empty(), start: filling.start + size, held: 0 };
                let full = std::mem::replace(filling, next);
                if self.send.send(Ok(full.window)).is_err() {
                    return false;
                }
            }
        }
        true
    }

    fn empty(&self) -> Window {
        Window { pieces: Vec::new(), _alive: self.alive.clone() }
    }
}

/// The window that the thread is at, and the number of its first unit and of units in it.
struct Filling {
    window: Window,
    start: usize,
    held: usize,
}

impl BlockSource for Streamed {
    fn width(&self) -> usize {
        self.source.width()
    }

    fn units(&self) -> usize {
        self.units
    }

    fn blocks(&self) -> usize {
        self.units.div_ceil(self.window_units)
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        let start = block * self.window_units;
        start..(start + self.window_units).min(self.units)
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        let window = self.window(block)?;
        window.pieces.iter().for_each(|piece| visit(piece.show(self.source.width())));
        Ok(())
    }

    fn bytes_per_unit(&self) -> u64 {
        self.source.bytes_per_unit()
    }
}

/// A panic elsewhere leaves nothing half-done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
