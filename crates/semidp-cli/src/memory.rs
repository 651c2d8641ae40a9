//! How much memory there is.

/// Where it cannot be told: 4 GB.
const UNKNOWN: u64 = 4_000_000_000;

/// What rows may take unless the user says otherwise: half of what the machine has. What is free at the moment would
/// decide differently when a run is continued.
pub fn by_default() -> u64 {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text)).map_or(UNKNOWN, |all| all / 2)
}

/// As Linux tells it, in units of 1024 bytes.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_is_read() {
        let text =
            "MemTotal:       24682128 kB\nMemFree:  1 kB\nMemAvailable:   23732000 kB\nBuffers: 2 kB\n";
        assert_eq!(total(text), Some(24_682_128 * 1024));
        assert_eq!(total("MemAvailable: 5 kB\n"), None);
        assert_eq!(total("MemTotal: lots\n"), None);
        assert!(by_default() > 0);
    }
}
