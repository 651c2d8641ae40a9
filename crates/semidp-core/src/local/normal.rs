//! Standard normal numbers in double precision, fast: Marsaglia and Tsang's ziggurat (2000) of 256 layers.
//!
//! For directions of reports, whose promise is one of real arithmetic or, where it is exact, needs only that ±x have the same
//! chance: sign, layer and place come from different bits of a word. Never for noise on sums: that is `noise/gaussian.rs`.

use crate::noise::rng::Stream;
use std::sync::LazyLock;

const LAYERS: usize = 256;
/// Where the tail begins, for layers of equal area (Marsaglia and Tsang).
const TAIL: f64 = 3.654_152_885_361_009;
/// The area of a layer: that of the base, which is a rectangle and the tail.
const AREA: f64 = 0.004_928_673_233_974_658;

struct Ziggurat {
    /// Right ends of layers, the base first; one more than layers.
    ends: [f64; LAYERS + 1],
    /// exp(−x²/2) there.
    heights: [f64; LAYERS + 1],
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let height = |x: f64| (-0.5 * x * x).exp();
    let mut ends = [0.0; LAYERS + 1];
    (ends[0], ends[1]) = (AREA / height(TAIL), TAIL);
    for i in 1..LAYERS - 1 {
        ends[i + 1] = (-2.0 * (AREA / ends[i] + height(ends[i])).ln()).sqrt();
    }
    Ziggurat { ends, heights: ends.map(height) }
});

/// From 0 to 1, without 0.
fn uniform(word: u64) -> f64 {
    ((word >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Fills a vector.
pub(super) fn fill(stream: &mut Stream, vector: &mut [f64]) {
    let ziggurat = &*ZIGGURAT;
    for x in vector {
        let word = stream.word();
        let layer = (word & 0xff) as usize;
        let place = (word >> 11) as f64 / (1u64 << 53) as f64 * ziggurat.ends[layer];
        let size = if place < ziggurat.ends[layer + 1] { place } else { ziggurat.rim(layer, place, stream) };
        *x = if word & 0x100 == 0 { size } else { -size };
    }
}

impl Ziggurat {
    /// One number in a hundred: beyond what a layer holds for certain.
    #[cold]
    fn rim(&self, mut layer: usize, mut place: f64, stream: &mut Stream) -> f64 {
        loop {
            if place < self.ends[layer + 1] {
                return place;
            }
            if layer == 0 {
                return tail(stream);
            }
            let (low, high) = (self.heights[layer], self.heights[layer + 1]);
            if low + (high - low) * uniform(stream.word()) < (-0.5 * place * place).exp() {
                return place;
            }
            let word = stream.word();
            layer = (word & 0xff) as usize;
            place = (word >> 11) as f64 / (1u64 << 53) as f64 * self.ends[layer];
        }
    }
}

/// Beyond the last layer (Marsaglia 1964).
fn tail(stream: &mut Stream) -> f64 {
    loop {
        let x = -uniform(stream.word()).ln() / TAIL;
        if -2.0 * uniform(stream.word()).ln() > x * x {
            return TAIL + x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Randomness;
    use crate::noise::rng::Purpose;

    /// Equal areas close at the top: the last layer ends where the density is 1.
    #[test]
    fn layers_have_one_area() {
        let Ziggurat { ends, heights } = &*ZIGGURAT;
        assert!(ends.is_sorted_by(|a, b| a > b));
        for i in 1..LAYERS {
            let found = ends[i] * (heights[i + 1] - heights[i]);
            // The last layer takes up what rounding left in all others.
            assert!((found / AREA - 1.0).abs() < 1e-8, "{i}: {found}");
        }
        let tail = 0.5 * libm::erfc(TAIL / 2f64.sqrt()) * std::f64::consts::TAU.sqrt();
        assert!(((TAIL * heights[1] + tail) / AREA - 1.0).abs() < 1e-13);
    }

    /// Dvoretzky, Kiefer, Wolfowitz and Massart: no further from the normal law than chance allows once in 10⁹ times.
    #[test]
    fn numbers_are_normal() {
        let mut stream = Randomness::Seed(3).key(0).unwrap().stream(Purpose::Report, 0, 0);
        let mut numbers = vec![0.0; 1_000_000];
        fill(&mut stream, &mut numbers);
        numbers.sort_by(f64::total_cmp);
        let count = numbers.len() as f64;
        let bound = ((2e9f64).ln() / (2.0 * count)).sqrt();
        for (i, x) in numbers.iter().enumerate() {
            let law = 0.5 * libm::erfc(-x / 2f64.sqrt());
            assert!((law - (i as f64 + 0.5) / count).abs() < bound + 0.5 / count, "{x}");
        }
        // Beyond 3.654 lie 2.6e-4 of them, give or take 6.5 standard deviations.
        let far = numbers.iter().filter(|x| x.abs() > TAIL).count() as f64;
        let expected = count * libm::erfc(TAIL / 2f64.sqrt());
        assert!((far - expected).abs() < 6.5 * expected.sqrt(), "{far} {expected}");
    }
}
