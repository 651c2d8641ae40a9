//! Randomness with an address.
//!
//! A run has one key. Every draw comes from the ChaCha20 stream of that key at the address (step,
//! purpose, block), so it depends on nothing else: not on threads, not on the order of work, not on
//! what was drawn before. Replaying a step replays its draws, and different addresses never share a
//! stream: the address *is* ChaCha's 64-bit stream number, and its 64-bit block counter cannot
//! run out.

use crate::{Error, Result};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use semidp_accounting::RandomSource;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// What a stream is for. The number is part of the address: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// Which units take part in a step.
    Sampling = 1,
    /// The noise of a release.
    Noise = 2,
    /// The key of the seals of checkpoints.
    Seal = 3,
    /// The key of the fingerprint of the rows.
    Fingerprint = 4,
    /// The key of the keys of noise that belongs to a sum.
    Bound = 5,
    /// The report of one person.
    Report = 6,
    /// The public seed of the candidates of one person's report.
    ReportSeed = 16,
    /// Candidates, from a public seed.
    Candidates = 17,
}

/// Where the key of a run comes from.
///
/// The operating system's generator is the only private choice. A seed makes a run reproducible
/// for tests; whoever knows it can remove the noise, and the certificate says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Randomness {
    /// A fresh key from the operating system for every run.
    OperatingSystem,
    /// NOT private: keys derived from this number.
    Seed(u64),
}

impl Randomness {
    /// What a certificate says about it.
    pub(crate) fn source(self) -> RandomSource {
        match self {
            Self::OperatingSystem => RandomSource::OperatingSystem,
            Self::Seed(_) => RandomSource::Seeded,
        }
    }

    /// The key of the run with this number.
    pub(crate) fn key(self, run: u64) -> Result<RunKey> {
        RunKey::made(|key| match self {
            Self::OperatingSystem => getrandom::fill(key).map_err(|_| Error::NoRandomness),
            Self::Seed(seed) => {
                key[..8].copy_from_slice(&seed.to_le_bytes());
                key[8..16].copy_from_slice(&run.to_le_bytes());
                key[16..].copy_from_slice(b"semidp test seed");
                Ok(())
            }
        })
    }
}

/// The secret of one run, at one place on the heap from its first byte on: what moves is a pointer. It is overwritten when it is
/// dropped, and while there is one the process leaves no core dump.
#[derive(Clone)]
pub(crate) struct RunKey(Box<Zeroizing<[u8; 32]>>, WithoutDumps);

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<run key>")
    }
}

impl RunKey {
    /// For the file that a run is continued from, and nothing else.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key that `fill` writes in its place.
    pub(crate) fn made(fill: impl FnOnce(&mut [u8; 32]) -> Result<()>) -> Result<Self> {
        let mut key = Self(Box::new(Zeroizing::new([0; 32])), WithoutDumps::new());
        fill(&mut key.0)?;
        Ok(key)
    }

    /// A key for another purpose, which tells nothing about this one.
    pub(crate) fn derived(&self, purpose: Purpose) -> Box<Zeroizing<[u8; 32]>> {
        let mut stream = self.stream(purpose, 0, 0);
        let mut key = Box::new(Zeroizing::new([0; 32]));
        key.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&stream.word().to_le_bytes()));
        key
    }

    /// The stream at an address: 8 bits of purpose, 32 of step, 24 of block.
    pub(crate) fn stream(&self, purpose: Purpose, step: u64, block: u64) -> Stream {
        assert!(step < 1 << 32 && block < 1 << 24, "an address out of range would repeat a stream");
        let generator = boxed_generator(&self.0, (purpose as u64) << 56 | step << 24 | block);
        wipe_stack();
        Stream::new(generator, true)
    }
}

/// As long as one lives, the process is not dumpable: no core dump, and no other process of the user may read its memory. Linux only.
struct WithoutDumps;

struct Dumps {
    /// How many keys live.
    keys: usize,
    /// Whether the process was dumpable before the first.
    was_dumpable: bool,
    /// Whether it stays as it is after the last.
    is_forbidden: bool,
}

static DUMPS: Mutex<Dumps> = Mutex::new(Dumps { keys: 0, was_dumpable: false, is_forbidden: false });

fn dumps() -> MutexGuard<'static, Dumps> {
    DUMPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on and until it ends, this process leaves no core dump, and no other process of the user may read its memory (Linux
/// only). Without this call the same holds while there is a key of a run, and no longer: what rows and keys leave in memory may
/// then be dumped. For programs that do nothing but one run; in a library it would be in the way of debuggers.
pub fn forbid_core_dumps() {
    let mut dumps = dumps();
    dumps.is_forbidden = true;
    process::forbid_dumps();
}

impl WithoutDumps {
    fn new() -> Self {
        let mut dumps = dumps();
        if dumps.keys == 0 {
            dumps.was_dumpable = process::forbid_dumps();
        }
        dumps.keys += 1;
        Self
    }
}

impl Clone for WithoutDumps {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for WithoutDumps {
    fn drop(&mut self) {
        // What calls with the key left below this frame.
        wipe_stack();
        let mut dumps = dumps();
        dumps.keys -= 1;
        if dumps.keys == 0 && dumps.was_dumpable && !dumps.is_forbidden {
            process::allow_dumps();
        }
    }
}

#[cfg(target_os = "linux")]
mod process {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    /// Whether they were allowed.
    pub(super) fn forbid_dumps() -> bool {
        let was = dumpable_behavior().is_ok_and(|found| found == DumpableBehavior::Dumpable);
        was && set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok()
    }

    pub(super) fn allow_dumps() {
        // The key is gone; a process that stays closed is no worse.
        let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    }
}

#[cfg(not(target_os = "linux"))]
mod process {
    pub(super) fn forbid_dumps() -> bool {
        false
    }

    pub(super) fn allow_dumps() {}
}

/// Overwrites what calls that have returned left on the stack: copies of a key in arguments, return values and spilled registers.
/// Only frames below the caller's are reached, so whoever works with a key does it in a function that is not inlined.
pub(crate) fn wipe_stack() {
    // More than a stream, its refill and a MAC use together.
    wipe_stack_by::<1024>();
}

#[inline(never)]
fn wipe_stack_by<const WORDS: usize>() {
    let mut below = [0u64; WORDS];
    // The optimiser has to believe that somebody reads it.
    std::hint::black_box(&mut below);
}

/// On the heap, where it is dropped and overwritten without having moved. What this leaves on the stack is below its caller's frame.
#[inline(never)]
fn boxed_generator(key: &[u8; 32], address: u64) -> Box<ChaCha20Rng> {
    let mut generator = Box::new(ChaCha20Rng::from_seed(*key));
    generator.set_stream(address);
    generator
}

const BUFFERED: usize = 256;
/// Words of the first filling: many streams are for a few words only.
const FIRST: usize = 32;

/// A buffered stream of uniform words. Public in name only: nobody outside can make one.
pub struct Stream {
    generator: Box<ChaCha20Rng>,
    buffer: [u64; BUFFERED],
    next: usize,
    /// Where the next filling starts.
    start: usize,
    /// Whether its key is to be kept.
    is_secret: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.buffer.zeroize();
        if self.is_secret {
            // What refills left there.
            wipe_stack();
        }
    }
}

impl Stream {
    fn new(generator: Box<ChaCha20Rng>, is_secret: bool) -> Self {
        Self { generator, buffer: [0; BUFFERED], next: BUFFERED, start: BUFFERED - FIRST, is_secret }
    }

    /// The first stream of a key that everybody knows.
    pub(crate) fn public(key: &[u8; 32], purpose: Purpose) -> Self {
        Self::new(boxed_generator(key, (purpose as u64) << 56), false)
    }

    /// 64 uniform bits.
    #[inline(always)]
    pub(crate) fn word(&mut self) -> u64 {
        if self.next == BUFFERED {
            self.refill();
        }
        let word = self.buffer[self.next];
        self.next += 1;
        word
    }

    #[inline(never)]
    fn refill(&mut self) {
        let open = &mut self.buffer[self.start..];
        let mut bytes = [0u8; 8 * BUFFERED];
        let bytes = &mut bytes[..8 * open.len()];
        self.generator.fill_bytes(bytes);
        for (word, chunk) in open.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        }
        // The words are the noise, and the generator may have spilled the key.
        bytes.fill(0);
        std::hint::black_box(bytes);
        wipe_stack_by::<256>();
        self.next = std::mem::take(&mut self.start);
    }

    /// A uniform whole number below `bound` ≥ 1, exactly: words beyond the last whole multiple of
    /// the bound are thrown away.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let surplus = (u64::MAX % bound + 1) % bound;
        loop {
            let word = self.word();
            if word <= u64::MAX - surplus {
                return word % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_streams() {
        let key = Randomness::Seed(7).key(0).unwrap();
        let draw = |purpose, step, block| key.stream(purpose, step, block).word();
        assert_eq!(draw(Purpose::Noise, 3, 5), draw(Purpose::Noise, 3, 5));
        let all = [
            draw(Purpose::Noise, 3, 5),
            draw(Purpose::Sampling, 3, 5),
            draw(Purpose::Noise, 4, 5),
            draw(Purpose::Noise, 3, 6),
            Randomness::Seed(7).key(1).unwrap().stream(Purpose::Noise, 3, 5).word(),
            Randomness::Seed(8).key(0).unwrap().stream(Purpose::Noise, 3, 5).word(),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
        let fresh = |_| Randomness::OperatingSystem.key(0).unwrap().stream(Purpose::Noise, 0, 0).word();
        assert_ne!(fresh(()), fresh(()));
    }

    /// RFC 7539 has a 32-bit counter; ours is Bernstein's original with 64 bits, whose first block for
    /// the zero key and stream is the well-known test vector TC1.
    #[test]
    fn the_generator_is_chacha20() {
        let mut stream = RunKey::made(|_| Ok(())).unwrap().stream(Purpose::Noise, 0, 0);
        stream.generator.set_stream(0);
        let first = stream.word().to_le_bytes();
        assert_eq!(first, [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
    }

    #[test]
    fn below_covers_the_range_evenly() {
        let mut stream = Randomness::Seed(1).key(0).unwrap().stream(Purpose::Noise, 0, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        // 6.5 standard deviations of a binomial count.
        let bound = 6.5 * (60_000.0f64 * (1.0 / 6.0) * (5.0 / 6.0)).sqrt();
        assert!(counts.iter().all(|&c| (f64::from(c) - 10_000.0).abs() < bound), "{counts:?}");
        assert_eq!(stream.below(1), 0);
    }

    /// Other tests of this process hold keys at the same time, so nothing is asserted of the time after the last.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_with_a_key_is_not_dumpable() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        let key = Randomness::OperatingSystem.key(0).unwrap();
        let copy = key.clone();
        drop(key);
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        drop(copy);
    }

    #[test]
    fn the_key_does_not_print() {
        assert_eq!(format!("{:?}", Randomness::Seed(1).key(0).unwrap()), "<run key>");
    }
}
