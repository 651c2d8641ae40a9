//! How fast the kernel draws noise and sums rows: `cargo bench --bench kernel` in `bench/`.
//!
//! Sizes are in the ids. Each is beside what it competes with: noise beside an inexact and another
//! exact sampler, sums beside the speed at which memory can be read at all.
// criterion's macros make functions without documentation.
#![allow(missing_docs)]

use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use opendp::traits::samplers::sample_discrete_gaussian;
use rand_distr::{Distribution, StandardNormal};
use semidp_core::*;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of whatever takes milliseconds; criterion's default would take minutes.
const SAMPLES: usize = 20;

fn program() -> Program<Gaussian> {
    Program::new(Gaussian::new(NoiseMultiplier::new(2.0).unwrap()), Sampling::Everyone, Steps::ONE)
}

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

/// One release of nothing but noise; its accounting and its empty sum are not timed.
fn noise(criterion: &mut Criterion) {
    const COLUMNS: usize = 1 << 20;
    let mut group = criterion.benchmark_group("noise/gaussian");
    group.sample_size(SAMPLES);
    group.throughput(Throughput::Elements(COLUMNS as u64));
    let nobody = Private::new(DenseTable::<f32>::new(Vec::new(), COLUMNS).unwrap());
    let session = Session::new(nobody, Adjacency::AddRemove).unwrap().with_threads(1);
    let query = ClippedSum::l2(Public(vec![0.0; COLUMNS]), 1.0).unwrap();
    let scale = 2 * query.grid().clip_steps();
    group.bench_function(format!("semidp, rounded, exact/{COLUMNS} coordinates/1 thread"), |bencher| {
        let sum = || {
            let (run, mut tickets) = session.authorise(program(), delta()).unwrap();
            let sum = run.sum(&query, tickets.next().unwrap()).unwrap();
            (run, sum)
        };
        bencher.iter_batched(sum, |(run, sum)| run.noise(sum).unwrap(), BatchSize::PerIteration)
    });

    // The same work with floating-point noise: drawn, scaled, rounded, added, and put back on the grid.
    let mut generator = ChaCha20Rng::from_seed([7; 32]);
    let mut noised = |sum: Vec<i64>| -> Vec<f64> {
        let mut add = |k: i64| {
            let normal: f64 = StandardNormal.sample(&mut generator);
            (k + (normal * scale as f64).round() as i64) as f64 * query.grid().step()
        };
        sum.into_iter().map(&mut add).collect()
    };
    group
        .bench_function(format!("rand_distr, ChaCha20, inexact/{COLUMNS} coordinates/1 thread"), |bencher| {
            bencher.iter_batched(|| vec![0i64; COLUMNS], &mut noised, BatchSize::PerIteration)
        });

    const DRAWS: usize = 1000;
    group.throughput(Throughput::Elements(DRAWS as u64));
    group.bench_function(format!("opendp, discrete, exact/{DRAWS} coordinates/1 thread"), |bencher| {
        let draw = || i64::try_from(sample_discrete_gaussian(black_box(scale).into()).unwrap()).unwrap();
        bencher.iter(|| (0..DRAWS).map(|_| draw()).fold(0, i64::wrapping_add))
    });
}

const ROWS: usize = 1_000_000;
const WIDTH: usize = 100;
const BYTES: usize = 4 * ROWS * WIDTH;
const THREADS: usize = 2;
const CENTRE: f64 = 0.4;

/// A table that stays readable beside its session, so that both lines read the same memory.
type Shared = Arc<DenseTable<f32>>;

/// Numbers in [0, 1), and the norm that half of the rows exceed.
fn table() -> (Shared, f64) {
    let mut state = 1u64;
    let mut number = || {
        // Steele, Lea and Flood (2014): one multiplication less than their mixer is random enough.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as f32 / (1 << 24) as f32
    };
    let values: Vec<f32> = (0..ROWS * WIDTH).map(|_| number()).collect();
    let norm = |row: &[f32]| row.iter().map(|&x| (f64::from(x) - CENTRE).powi(2)).sum::<f64>().sqrt();
    let mut norms: Vec<f64> = values.chunks_exact(WIDTH).take(10_000).map(norm).collect();
    norms.sort_by(f64::total_cmp);
    (Arc::new(DenseTable::new(values, WIDTH).unwrap()), norms[norms.len() / 2])
}

/// Sums the table as 64-bit words, which is as little as one can do with all of it.
fn read(table: &Shared) -> u64 {
    let sum_of_blocks = |blocks: Range<usize>| {
        let mut total = 0u64;
        for block in blocks {
            let mut add = |rows: Block<'_>| {
                let Block::DenseF32(rows) = rows else { return };
                for pair in rows.values().as_chunks::<2>().0 {
                    let [low, high] = pair.map(|x| u64::from(x.to_bits()));
                    total = total.wrapping_add(low | high << 32);
                }
            };
            table.visit(block, &mut add).unwrap();
        }
        total
    };
    let half = table.blocks() / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| sum_of_blocks(half..table.blocks()));
        sum_of_blocks(0..half).wrapping_add(other.join().unwrap())
    })
}

fn clipped_sum(criterion: &mut Criterion) {
    let (table, clip_norm) = table();
    let query = ClippedSum::l2(Public(vec![CENTRE; WIDTH]), clip_norm).unwrap();
    let data = Private::new(table.clone());
    let session = Session::new(data, Adjacency::AddRemove).unwrap().with_threads(THREADS);
    let authorise = || session.authorise(program(), delta()).unwrap();

    let mut group = criterion.benchmark_group("clipped-sum/f32");
    group.sample_size(SAMPLES);
    group.throughput(Throughput::Bytes(BYTES as u64));
    let size = format!("{ROWS}x{WIDTH}/{THREADS} threads");
    group.bench_function(format!("half of the rows clipped about a centre/{size}"), |bencher| {
        bencher.iter_batched(
            authorise,
            |(run, mut tickets)| run.sum(&query, tickets.next().unwrap()).unwrap(),
            BatchSize::PerIteration,
        )
    });
    group.bench_function(format!("reading only/{size}"), |bencher| bencher.iter(|| read(black_box(&table))));
    group.finish();

    // In turns, because the machine may be busier at one time than at another.
    let (mut summing, mut reading) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let (run, mut tickets) = authorise();
        let start = Instant::now();
        black_box(run.sum(&query, tickets.next().unwrap()).unwrap());
        summing.push(start.elapsed());
        let start = Instant::now();
        black_box(read(black_box(&table)));
        reading.push(start.elapsed());
    }
    let speed = |times: &mut Vec<Duration>| {
        times.sort();
        BYTES as f64 / 1e9 / times[times.len() / 2].as_secs_f64()
    };
    let (summing, reading) = (speed(&mut summing), speed(&mut reading));
    println!(
        "{ROWS} x {WIDTH} f32, {THREADS} threads: clipped sum {summing:.2} GB/s, reading {reading:.2} GB/s; \
         clipped sum reaches {:.0}% of the read bandwidth",
        100.0 * summing / reading
    );
}

/// The residual of squared loss, and one like it for several scores: what a loss costs is not the question here.
struct Residuals(usize);

impl ScoreLoss for Residuals {
    fn outputs(&self) -> usize {
        self.0
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        residuals.iter_mut().zip(scores).for_each(|(r, s)| *r = s - label);
    }
}

/// Whole private steps: Poisson sample, clipped gradients, exact noise. The first is the size of the paper's linear
/// regression, the second of softmax regression on CIFAR-10.
fn gradient(criterion: &mut Criterion) {
    for (rows, features, outputs, batch) in [(27_000, 2000, 1, 500.0), (50_000, 3072, 10, 256.0)] {
        let mut state = 3u64;
        let mut number = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        let values: Vec<f32> = (0..rows * (features + 1)).map(|_| number()).collect();
        let table = Private::new(DenseTable::new(values, features + 1).unwrap());
        let session = Session::new(table, Adjacency::AddRemove).unwrap().with_threads(THREADS);
        let rate = SampleRate::new(batch / rows as f64).unwrap();
        // So much noise that a million steps still have a certificate.
        let noise = Gaussian::new(NoiseMultiplier::new(100.0).unwrap());
        let program = Program::new(noise, Sampling::Poisson { rate }, Steps::new(1_000_000).unwrap());
        let program = program.with_dimension(outputs * features);
        let (run, mut tickets) = session.authorise(program, delta()).unwrap();
        let loss = Residuals(outputs);
        let weights: Vec<f64> = (0..outputs * features).map(|i| (i % 7) as f64 / 70.0).collect();
        let mut step = || {
            let query = ClippedGradient::new(&loss, Public(weights.clone()), features, false, 1.0).unwrap();
            run.noise(run.sum(&query, tickets.next().unwrap()).unwrap()).unwrap()
        };
        let mut group = criterion.benchmark_group("gradient/f32");
        group.sample_size(20);
        group.throughput(Throughput::Bytes((4.0 * batch * features as f64) as u64));
        let size = format!("{rows}x{features}/{outputs} outputs/batch {batch}/{THREADS} threads");
        group.bench_function(format!("a whole private step/{size}"), |bencher| bencher.iter(&mut step));
        group.finish();
    }
}

/// Reports of the local model, beside the normal numbers that each of them takes.
fn report(criterion: &mut Criterion) {
    const PEOPLE: usize = 2000;
    const COLUMNS: usize = 1000;
    let mut group = criterion.benchmark_group("report");
    group.sample_size(SAMPLES);
    group.throughput(Throughput::Elements(PEOPLE as u64));
    for mechanism in semidp_accounting::local::RANDOMIZERS {
        let randomizer = Randomizer::new(mechanism, COLUMNS, Epsilon::new(2.0).unwrap(), 1.0).unwrap();
        let rows = || Private::new(DenseTable::new(vec![0.03f32; PEOPLE * COLUMNS], COLUMNS).unwrap());
        let size = format!("{}/{PEOPLE} vectors of {COLUMNS}/{THREADS} threads", mechanism.name);
        group.bench_function(size, |bencher| {
            let ask = |rows| {
                let mut sum = 0.0;
                randomizer
                    .reports(rows, Randomness::OperatingSystem, THREADS, &mut |report| sum += report[0])
                    .unwrap();
                sum
            };
            bencher.iter_batched(rows, ask, BatchSize::LargeInput);
        });
        if randomizer.cap().ranks.is_none() {
            continue;
        }
        // What a device does; above, reports are decoded, too.
        let size =
            format!("{} as it is sent/{PEOPLE} vectors of {COLUMNS}/{THREADS} threads", mechanism.name);
        group.bench_function(size, |bencher| {
            let ask = |rows| {
                let mut sum = 0u64;
                let randomness = Randomness::OperatingSystem;
                randomizer
                    .rank_reports(rows, randomness, THREADS, &mut |report| sum += u64::from(report.index))
                    .unwrap();
                sum
            };
            bencher.iter_batched(rows, ask, BatchSize::LargeInput);
        });
    }
    let mut generator = ChaCha20Rng::from_seed([1; 32]);
    group.bench_function(
        format!("normal numbers alone, rand_distr/{PEOPLE} x {COLUMNS}/1 thread"),
        |bencher| {
            bencher.iter(|| {
                (0..PEOPLE * COLUMNS).map(|_| -> f64 { StandardNormal.sample(&mut generator) }).sum::<f64>()
            });
        },
    );
    group.finish();
}

criterion_group!(benches, noise, clipped_sum, gradient, report);
criterion_main!(benches);
