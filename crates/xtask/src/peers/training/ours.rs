//! Our side of the race: private steps through the kernel.

use super::Work;
use crate::process::Failure;
use semidp::loss::{Loss, loss_named};
use semidp_accounting::{Adjacency, Delta, NoiseMultiplier, SampleRate, Steps};
use semidp_core::{
    ClippedGradient, DenseTable, Gaussian, Private, Program, Public, Run, Sampling, Session, Tickets,
};
use std::time::Instant;

/// So many steps are authorised, and so much noise is added that they have a certificate. How much noise it is makes no
/// difference to the time.
const STEPS: u64 = 1_000_000;
const NOISE_MULTIPLIER: f64 = 100.0;
const DELTA: f64 = 1e-6;
const CLIP_NORM: f64 = 1.0;
const LEARNING_RATE: f64 = 0.1;

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("our own training failed: {error}"))
}

/// A table of synthetic rows, each with its label.
pub fn session(work: Work) -> Result<Session<DenseTable<f32>>, Failure> {
    let mut state = 3u64;
    let mut number = || {
        // Steele, Lea and Flood (2014): one multiplication less than their mixer is random enough.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as f32 / (1 << 24) as f32
    };
    let width = work.features + 1;
    let mut values = Vec::with_capacity(work.rows * width);
    for _ in 0..work.rows {
        values.extend((0..work.features).map(|_| 3.4 * (number() - 0.5)));
        values.push(if work.outputs == 1 { number() } else { (number() * work.outputs as f32).floor() });
    }
    let table = Private::new(DenseTable::new(values, width).map_err(failed)?);
    Session::new(table, Adjacency::AddRemove).map_err(failed)
}

/// Stochastic gradient descent with a Poisson sample, clipped gradients and exact noise in every step.
pub struct Trainer<'s> {
    run: Run<'s, DenseTable<f32>, Gaussian>,
    tickets: Tickets,
    loss: Box<dyn Loss>,
    weights: Vec<f64>,
    work: Work,
}

impl<'s> Trainer<'s> {
    /// At the weights zero.
    pub fn new(session: &'s Session<DenseTable<f32>>, work: Work) -> Result<Self, Failure> {
        let dimension = work.outputs * (work.features + usize::from(work.outputs > 1));
        let rate = SampleRate::new(work.batch as f64 / work.rows as f64).map_err(failed)?;
        let noise = Gaussian::new(NoiseMultiplier::new(NOISE_MULTIPLIER).map_err(failed)?);
        let steps = Steps::new(STEPS).map_err(failed)?;
        let program = Program::new(noise, Sampling::Poisson { rate }, steps).with_dimension(dimension);
        let (run, tickets) =
            session.authorise(program, Delta::new(DELTA).map_err(failed)?).map_err(failed)?;
        let name = if work.outputs == 1 { "squared" } else { "softmax" };
        let loss = loss_named(name, work.outputs).map_err(failed)?;
        Ok(Self { run, tickets, loss, weights: vec![0.0; dimension], work })
    }

    /// What it trains.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Takes some steps and returns the mean of their seconds.
    pub fn steps(&mut self, count: usize) -> Result<f64, Failure> {
        let start = Instant::now();
        (0..count).try_for_each(|_| self.step())?;
        Ok(start.elapsed().as_secs_f64() / count as f64)
    }

    fn step(&mut self) -> Result<(), Failure> {
        let ticket = self.tickets.next().ok_or_else(|| failed("no steps left"))?;
        let weights = Public(self.weights.clone());
        let has_intercept = self.work.outputs > 1;
        let query = ClippedGradient::new(&*self.loss, weights, self.work.features, has_intercept, CLIP_NORM)
            .map_err(failed)?;
        let sum = self.run.sum(&query, ticket).map_err(failed)?;
        let noised = self.run.noise(sum).map_err(failed)?;
        let size = LEARNING_RATE / self.work.batch as f64;
        self.weights.iter_mut().zip(noised.iter()).for_each(|(w, g)| *w -= size * g);
        Ok(())
    }
}
