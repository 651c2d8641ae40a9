//! What this machine can do, and what this process takes of it.

use std::hint::black_box;
use std::time::Instant;

/// Far more than any cache holds.
const BYTES: usize = 256 << 20;

/// A piece of memory to read.
pub struct Memory {
    words: Vec<u64>,
}

impl Memory {
    /// Filled, so that it is there.
    pub fn new() -> Self {
        Self { words: (0..BYTES as u64 / 8).collect() }
    }

    /// Bytes a second when every processor reads its share and adds it up.
    pub fn read(&self) -> f64 {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for share in self.words.chunks(self.words.len().div_ceil(threads)) {
                scope.spawn(move || black_box(share.iter().fold(0u64, |sum, &word| sum.wrapping_add(word))));
            }
        });
        BYTES as f64 / start.elapsed().as_secs_f64()
    }
}

/// Has the system forget the peak of this process, and returns the bytes held now, if the system can do that.
pub fn forget_peak() -> Option<f64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// The most bytes held at once since then.
pub fn peak() -> Option<f64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    parse(&text, field)
}

/// A field in kB.
fn parse(text: &str, field: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(1024.0 * line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status() {
        let text = "Name:\txtask\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse(text, "VmHWM:"), Some(2.0 * 1024.0 * 1024.0));
        assert_eq!(parse(text, "VmNone:"), None);
    }
}
