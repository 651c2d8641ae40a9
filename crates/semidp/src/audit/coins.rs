//! Random numbers for rows, coins and seeds of an audit. No release rests on them.

/// A small generator (splitmix64).
pub(super) struct Coins(u64);

impl Coins {
    /// One of many streams of a seed.
    pub(super) fn new(seed: u64, purpose: u64, index: u64) -> Self {
        let mut coins = Self(seed);
        for part in [purpose, index] {
            coins.0 = coins.word() ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        coins
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub(super) fn is_head(&mut self) -> bool {
        self.word() >> 63 == 1
    }
}
