//! How long privacy questions take: `cargo bench --bench accounting` in `bench/`.
//!
//! Sizes are in the ids: q is the sample rate, T the number of steps, z the noise multiplier.
// criterion's macros make functions without documentation.
#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use semidp_accounting::accountant::{Accountant, RdpAccountant};
use semidp_accounting::*;
use std::hint::black_box;

const BOTH: [Adjacency; 2] = [Adjacency::AddRemove, Adjacency::ReplaceOne];
/// The reference training run: batches of 500 of 27,000 rows, 5,000 times, at ε ≈ 2.
const SAMPLE_RATE: f64 = 500.0 / 27_000.0;
const STEPS: u64 = 5_000;
const NOISE: f64 = 2.744;
/// Of whatever takes milliseconds; criterion's default would take minutes.
const SAMPLES: usize = 20;

fn target_delta() -> Delta {
    Delta::new(1e-5).unwrap()
}

fn poisson(noise: f64, rate: f64, steps: u64) -> CountedEvent {
    let noise_multiplier = NoiseMultiplier::new(noise).unwrap();
    let sample_rate = SampleRate::new(rate).unwrap();
    CountedEvent::new(Event::PoissonGaussian { noise_multiplier, sample_rate }, Steps::new(steps).unwrap())
}

fn fixed_size(noise: f64, rate: f64, steps: u64) -> CountedEvent {
    let noise_multiplier = NoiseMultiplier::new(noise).unwrap();
    let sample_rate = SampleRate::new(rate).unwrap();
    CountedEvent::new(Event::FixedSizeGaussian { noise_multiplier, sample_rate }, Steps::new(steps).unwrap())
}

/// The noise that keeps ε about the same as [`STEPS`] steps at [`NOISE`].
fn noise_for(steps: u64) -> f64 {
    NOISE * (steps as f64 / STEPS as f64).sqrt()
}

fn epsilon_of_poisson(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epsilon/poisson");
    group.sample_size(SAMPLES);
    for adjacency in BOTH {
        for steps in [1_000, STEPS, 100_000, 10_000_000] {
            let noise = noise_for(steps);
            let events = [poisson(noise, SAMPLE_RATE, steps)];
            group.bench_function(format!("{adjacency}/q=500of27000/T={steps}/z={noise:.3}"), |bencher| {
                bencher.iter(|| epsilon(black_box(&events), adjacency, target_delta()).unwrap())
            });
        }
    }
}

fn epsilon_of_fixed_size(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epsilon/fixed-size");
    group.sample_size(SAMPLES);
    let events = [fixed_size(NOISE, SAMPLE_RATE, STEPS)];
    group.bench_function(format!("replace-one/q=500of27000/T={STEPS}/z={NOISE}"), |bencher| {
        bencher.iter(|| epsilon(black_box(&events), Adjacency::ReplaceOne, target_delta()).unwrap())
    });
}

/// Three different events: three different transforms, multiplied.
fn epsilon_of_a_mixture(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epsilon/three-events");
    group.sample_size(SAMPLES);
    let once = Event::Gaussian { noise_multiplier: NoiseMultiplier::new(10.0).unwrap() };
    let events = [
        poisson(NOISE, SAMPLE_RATE, STEPS),
        poisson(2.0 * NOISE, 2.0 * SAMPLE_RATE, STEPS / 2),
        CountedEvent::new(once, Steps::new(10).unwrap()),
    ];
    for adjacency in BOTH {
        group.bench_function(format!("{adjacency}/T={}", STEPS + STEPS / 2 + 10), |bencher| {
            bencher.iter(|| epsilon(black_box(&events), adjacency, target_delta()).unwrap())
        });
    }
}

fn calibrate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("calibrate-noise/poisson");
    group.sample_size(SAMPLES);
    let target = Epsilon::new(2.0).unwrap();
    for adjacency in BOTH {
        for rows in [29_700, 27_000, 15_000, 1_500] {
            group.bench_function(format!("{adjacency}/q=500of{rows}/T={STEPS}/epsilon=2"), |bencher| {
                let events =
                    |noise: NoiseMultiplier| vec![poisson(noise.get(), 500.0 / f64::from(rows), STEPS)];
                bencher
                    .iter(|| calibrate_noise(target, target_delta(), adjacency, black_box(events)).unwrap())
            });
        }
    }
}

fn renyi(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rdp-epsilon/poisson");
    let events = [poisson(NOISE, SAMPLE_RATE, STEPS)];
    for adjacency in BOTH {
        group.bench_function(format!("{adjacency}/q=500of27000/T={STEPS}/z={NOISE}"), |bencher| {
            bencher.iter(|| {
                let mut accountant = RdpAccountant::new(adjacency);
                accountant.compose_all(black_box(&events)).unwrap();
                accountant.epsilon(target_delta()).unwrap()
            })
        });
    }
}

fn gaussian(criterion: &mut Criterion) {
    let sensitivity = Sensitivity::new(1.0).unwrap();
    for target in [0.1, 2.0, 50.0] {
        let target_epsilon = Epsilon::new(target).unwrap();
        criterion.bench_function(&format!("gaussian-sigma/epsilon={target}/delta=1e-5"), |bencher| {
            bencher.iter(|| {
                convert::gaussian_sigma(sensitivity, black_box(target_epsilon), target_delta()).unwrap()
            })
        });
    }
}

criterion_group!(
    benches,
    epsilon_of_poisson,
    epsilon_of_fixed_size,
    epsilon_of_a_mixture,
    calibrate,
    renyi,
    gaussian
);
criterion_main!(benches);
