//! Draws of the kernel's noise and tests of their law, for this crate and for the comparison with another sampler in `bench/`.

// Each test crate uses its own part of this module.
#![allow(dead_code)]

use semidp_core::*;

/// Noise in grid steps: whole numbers, all coordinates of the first step first, and its scale.
pub struct Draws {
    pub noise: Vec<i64>,
    pub scale: f64,
}

pub fn draws<M: Mechanism>(
    law: M,
    query: impl Fn(Public<Vec<f64>>) -> ClippedSum<M::Norm>,
    (multiplier, delta): (f64, f64),
    (width, steps): (usize, u64),
    seed: u64,
) -> Draws {
    let nobody = Private::new(DenseTable::<f32>::new(Vec::new(), width).unwrap());
    let session = Session::new(nobody, Adjacency::AddRemove).unwrap();
    let session = session.with_randomness(Randomness::Seed(seed));
    let query = query(Public(vec![0.0; width]));
    let program = Program::new(law, Sampling::Everyone, Steps::new(steps).unwrap());
    let (run, tickets) = session.authorise(program, Delta::new(delta).unwrap()).unwrap();
    let release = |ticket| run.noise(run.sum(&query, ticket).unwrap()).unwrap().into_inner();
    let grid = query.grid();
    let whole = |x: f64| {
        // Dividing by a power of two is exact.
        let k = x / grid.step();
        assert_eq!(k, k.trunc(), "released values lie on the grid");
        k as i64
    };
    let noise: Vec<i64> = tickets.flat_map(release).map(whole).collect();
    assert_eq!(noise.len(), width * steps as usize);
    // Rounded up, so that it is never below the multiplier times the bound.
    let scale = (multiplier * grid.clip_steps() as f64).next_up().ceil();
    Draws { noise, scale }
}

pub fn gaussian(multiplier: f64, clip_norm: f64, shape: (usize, u64), seed: u64) -> Draws {
    let law = Gaussian::new(NoiseMultiplier::new(multiplier).unwrap());
    draws(law, |centre| ClippedSum::l2(centre, clip_norm).unwrap(), (multiplier, 1e-6), shape, seed)
}

pub fn laplace(multiplier: f64, clip_norm: f64, shape: (usize, u64), seed: u64) -> Draws {
    let law = Laplace::new(NoiseMultiplier::new(multiplier).unwrap());
    draws(law, |centre| ClippedSum::l1(centre, clip_norm).unwrap(), (multiplier, 0.0), shape, seed)
}

/// Φ.
pub fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / 2f64.sqrt())
}

pub const BINS: usize = 64;
/// Half of 1e-9: with hundreds of draws a bin, the law of the statistic is χ² only nearly.
pub const LEAST_TAIL: f64 = 5e-10;

/// Counts in bins to which the normal law gives equal probability.
pub fn counts(noise: impl Iterator<Item = i64>, scale: f64) -> [f64; BINS] {
    let mut counts = [0.0; BINS];
    for k in noise {
        let place = normal(k as f64 / scale) * BINS as f64;
        counts[(place as usize).min(BINS - 1)] += 1.0;
    }
    counts
}

/// P(χ² ≥ x) for 63 degrees of freedom: for an odd number it is a finite sum (Abramowitz and Stegun
/// 26.4.4), 2Φ(−√x) + 2φ(√x)·Σ x^{r−1/2}/(1·3···(2r−1)) over r from 1 to 31.
pub fn chi_square_tail(x: f64) -> f64 {
    let root = x.sqrt();
    let (mut term, mut sum) = (1.0 / root, 0.0);
    for r in 1..=(BINS as i32 - 2) / 2 {
        term *= x / f64::from(2 * r - 1);
        sum += term;
    }
    let density = (-0.5 * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    2.0 * normal(-root) + 2.0 * density * sum
}
