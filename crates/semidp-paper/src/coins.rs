//! A small generator for synthetic data and emulations (SplitMix64). Never for noise that is to protect anybody: that is drawn
//! by the kernel.

/// A reproducible stream.
pub struct Coins(u64);

impl Coins {
    /// Streams of different seeds and numbers do not meet in practice.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut start = Self(seed ^ 0x5eed_da7a_1a35_0000);
        let offset = start.word();
        Self(offset.wrapping_add(stream.wrapping_mul(0xd134_2543_de82_ef95)))
    }

    /// 64 fair coins.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// This many standard normal numbers, by Box and Muller.
    pub fn normals(&mut self, count: usize) -> Vec<f64> {
        let mut values = Vec::with_capacity(count + 1);
        while values.len() < count {
            let length = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
            let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
            values.extend([length * cosine, length * sine]);
        }
        values.truncate(count);
        values
    }

    /// The numbers below `count` in a random order.
    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, (self.uniform() * (i + 1) as f64) as usize);
        }
        order
    }

    /// This many numbers, each 0 or 1 with equal chance.
    pub fn toss(&mut self, count: usize) -> Vec<f32> {
        let mut tossed = Vec::with_capacity(count + 63);
        while tossed.len() < count {
            let word = self.word();
            tossed.extend((0..64).map(|bit| (word >> bit & 1) as f32));
        }
        tossed.truncate(count);
        tossed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_fair_and_streams_differ() {
        let tossed = Coins::new(1, 0).toss(1_000_001);
        let heads: f32 = tossed.iter().sum();
        // 6.5 standard deviations of a binomial count.
        assert!((f64::from(heads) - 500_000.0).abs() < 6.5 * 500.0, "{heads}");
        assert_ne!(Coins::new(1, 0).toss(64), Coins::new(1, 1).toss(64));
        assert_ne!(Coins::new(1, 0).toss(64), Coins::new(2, 0).toss(64));
        assert_eq!(Coins::new(3, 4).toss(64), Coins::new(3, 4).toss(64));
    }

    /// Every number once, and the first place each number's with equal chance.
    #[test]
    fn orders_are_random() {
        let mut counts = [0; 5];
        let mut coins = Coins::new(2, 0);
        for _ in 0..50_000 {
            let mut order = coins.shuffled(5);
            counts[order[0]] += 1;
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        // 6.5 standard deviations of a binomial count of 50,000 at 1/5.
        assert!(
            counts.iter().all(|count| (f64::from(*count) - 1e4).abs() < 6.5 * 8000f64.sqrt()),
            "{counts:?}"
        );
    }

    /// Moments one to four, each within 6.5 standard deviations of its mean.
    #[test]
    fn normals_are_normal() {
        let count = 200_001;
        let drawn = Coins::new(9, 0).normals(count);
        assert_eq!(drawn.len(), count);
        // E x^(2k) = 1, 3, 15, 105 give the variance of every power.
        for (power, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0f64)] {
            let mean = drawn.iter().map(|x| x.powi(power)).sum::<f64>() / count as f64;
            assert!((mean - expected).abs() < 6.5 * (variance / count as f64).sqrt(), "{power}: {mean}");
        }
        let products = drawn.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        assert!(products.abs() < 6.5 * (count as f64).sqrt(), "{products}");
    }
}
