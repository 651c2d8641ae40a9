//! Our side of the race.

use super::{DIMENSION, EPSILON, VECTORS, What};
use crate::process::Failure;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use semidp_accounting::Epsilon;
use semidp_accounting::local::randomizer_named;
use semidp_core::{DenseTable, Private, Randomizer, Randomness};
use serde_json::{Value, json};
use std::time::Instant;

/// PrivUnit through the kernel, and normal numbers as others draw them.
pub struct Reporter {
    randomizer: Randomizer,
    /// How often normal numbers were drawn: each time others.
    drawn: u64,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("our own reports failed: {error}"))
}

impl Reporter {
    pub fn new() -> Result<Self, Failure> {
        let mechanism = randomizer_named("privunit").map_err(failed)?;
        let epsilon = Epsilon::new(EPSILON).map_err(failed)?;
        let randomizer = Randomizer::new(mechanism, DIMENSION, epsilon, 1.0).map_err(failed)?;
        Ok(Self { randomizer, drawn: 0 })
    }

    /// The constants, for the peer.
    pub fn law(&self) -> Value {
        let cap = self.randomizer.cap();
        json!({ "p": cap.p, "cap_probability": cap.cap_probability, "m": cap.m })
    }

    /// The mean of first coordinates, and the seconds it takes.
    pub fn work(&mut self, what: What, threads: usize) -> Result<(f64, f64), Failure> {
        match what {
            What::Reports => self.reports(threads),
            What::Normals => Ok(self.normals(threads)),
        }
    }

    fn reports(&self, threads: usize) -> Result<(f64, f64), Failure> {
        let mut vectors = vec![0.0f64; VECTORS * DIMENSION];
        vectors.iter_mut().step_by(DIMENSION).for_each(|x| *x = 1.0);
        let people = Private::new(DenseTable::new(vectors, DIMENSION).map_err(failed)?);
        let mut sum = 0.0;
        let start = Instant::now();
        self.randomizer
            .reports(people, Randomness::OperatingSystem, threads, &mut |report| sum += report[0])
            .map_err(failed)?;
        Ok((sum / VECTORS as f64, start.elapsed().as_secs_f64()))
    }

    fn normals(&mut self, threads: usize) -> (f64, f64) {
        let share = VECTORS.div_ceil(threads);
        let start = Instant::now();
        let mut sum = 0.0;
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let number = self.drawn + thread as u64;
                    scope.spawn(move || first_coordinates(share, number))
                })
                .collect();
            sum = workers.into_iter().filter_map(|worker| worker.join().ok()).sum();
        });
        self.drawn += threads as u64;
        (sum / VECTORS as f64, start.elapsed().as_secs_f64())
    }
}

/// Draws so many vectors and adds up the first coordinates.
fn first_coordinates(vectors: usize, seed: u64) -> f64 {
    let mut generator = ChaCha20Rng::seed_from_u64(seed);
    let mut vector = vec![0.0f64; DIMENSION];
    let draw = |_| {
        vector.iter_mut().for_each(|x| *x = StandardNormal.sample(&mut generator));
        std::hint::black_box(&vector)[0]
    };
    (0..vectors).map(draw).sum()
}
