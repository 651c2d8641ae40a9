//! Random settings over the whole supported range: every answer finite, monotone and stable when
//! the grid is halved. `SEMIDP_SWEEP=500 cargo test --release --test sweep` runs the long form.

use semidp_accounting::accountant::{PldAccountant, PldOptions};
use semidp_accounting::*;
use std::time::Instant;

/// SplitMix64: settings must be the same on every machine.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.uniform() * (high / low).ln()).exp()
    }
}

#[derive(Debug, Clone, Copy)]
struct Setting {
    q: f64,
    noise: f64,
    steps: f64,
    adjacency: Adjacency,
    fixed_size: bool,
}

impl Setting {
    fn random(random: &mut Random) -> Self {
        let kind = (random.uniform() * 3.0) as u32;
        Self {
            q: random.log_uniform(1e-6, 1.0),
            noise: random.log_uniform(0.2, 1000.0),
            steps: random.log_uniform(1.0, 1e7).round(),
            adjacency: if kind == 0 { Adjacency::AddRemove } else { Adjacency::ReplaceOne },
            fixed_size: kind == 2,
        }
    }

    fn accountant(self, step_scale: f64) -> PldAccountant {
        let options = PldOptions { step_scale, ..PldOptions::default() };
        let mut accountant = PldAccountant::with_options(self.adjacency, options);
        accountant.compose(&self.event(), Steps::new(self.steps as u64).unwrap()).unwrap();
        accountant
    }

    fn event(self) -> Event {
        let noise_multiplier = NoiseMultiplier::new(self.noise).unwrap();
        let sample_rate = SampleRate::new(self.q.min(1.0)).unwrap();
        if self.fixed_size {
            Event::FixedSizeGaussian { noise_multiplier, sample_rate }
        } else {
            Event::PoissonGaussian { noise_multiplier, sample_rate }
        }
    }

    /// ε at δ; infinite where the accountant refuses because ε leaves the range.
    fn epsilon(self, delta: Delta) -> f64 {
        match self.accountant(1.0).epsilon(delta) {
            Ok(epsilon) => epsilon.get(),
            Err(Error::OutOfRange { .. }) => f64::INFINITY,
            Err(error) => panic!("{self:?}: {error}"),
        }
    }
}

#[test]
fn random_settings() {
    let count: usize = std::env::var("SEMIDP_SWEEP").map_or(30, |n| n.parse().unwrap());
    let mut random = Random(20_240_601);
    let (mut inside, mut worst_move, mut slowest) = (0, 0.0f64, (0.0f64, None));
    while inside < count {
        let setting = Setting::random(&mut random);
        let delta = Delta::new(random.log_uniform(1e-15, 0.1)).unwrap();
        let start = Instant::now();
        let epsilon = setting.epsilon(delta);
        let seconds = start.elapsed().as_secs_f64();
        if seconds > slowest.0 {
            slowest = (seconds, Some((setting, delta)));
        }
        assert!(!epsilon.is_nan());
        if !(1e-3..=200.0).contains(&epsilon) {
            continue;
        }
        inside += 1;

        // ε(δ) and δ(ε), both upper bounds on grids of their own, agree.
        let at = Epsilon::new(epsilon).unwrap();
        let whole = setting.accountant(1.0).delta(at).unwrap().get();
        assert!((whole / delta.get() - 1.0).abs() < 0.01, "{setting:?} {delta}: {whole}");
        // Halving the grid moves δ by less than 1%.
        let halved = setting.accountant(0.5).delta(at).unwrap().get();
        let moved = whole / halved - 1.0;
        worst_move = worst_move.max(moved.abs());
        assert!(moved.abs() < 0.01, "{setting:?} {delta}: halving the grid moves delta by {moved}");
        // Monotone in each parameter.
        for more in [
            Setting { q: setting.q * 1.02, ..setting },
            Setting { noise: setting.noise / 1.02, ..setting },
            Setting { steps: (setting.steps * 1.05).ceil(), ..setting },
        ] {
            assert!(more.epsilon(delta) >= epsilon, "{setting:?} {more:?} {delta}: not monotone");
        }
        // The other accountant is never below.
        let both = semidp_accounting::epsilon(
            &[CountedEvent::new(setting.event(), Steps::new(setting.steps as u64).unwrap())],
            setting.adjacency,
            delta,
        );
        assert!(both.is_ok(), "{setting:?} {delta}: {both:?}");
    }
    println!(
        "{inside} settings: halving the grid moved delta by at most {worst_move:.2e}; slowest {slowest:?}"
    );
}
