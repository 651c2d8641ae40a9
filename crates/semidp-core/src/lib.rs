//! The trusted kernel of semidp: the only crate that opens private data.
//!
//! `data → program → ticket → partial sum → noise → release`. Each arrow consumes what is before it,
//! so that the order cannot be changed, nothing is released twice, and nothing is released without
//! noise. A privacy review of semidp is a review of this crate; `docs/kernel.md` says how.
//!
//! ```
//! use semidp_core::*;
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let rows = Private::new(DenseTable::new(vec![0.2f32, 0.9, 0.4, 0.7, 0.3, 0.8], 2)?);
//! let session = Session::new(rows, Adjacency::ReplaceOne)?;
//! let query = ClippedSum::l2(Public(vec![0.3, 0.8]), 0.5)?;
//! let noise = Gaussian::new(NoiseMultiplier::new(2.0)?);
//! let program = Program::new(noise, Sampling::Everyone, Steps::ONE);
//! let (run, mut tickets) = session.authorise(program, Delta::new(1e-6)?)?;
//! let partial = run.sum(&query, tickets.next().unwrap())?;
//! let mean = run.noise(partial)?.map(|sum| [0.3 + sum[0] / 3.0, 0.8 + sum[1] / 3.0]);
//! let release = run.finish(tickets, mean)?;
//! println!("{:?} is ({}, 1e-6)-DP", release.value, release.certificate.guarantee.epsilon);
//! # Ok(())
//! # }
//! ```
//!
//! # What does not compile
//!
//! Two steps with one ticket:
//! ```compile_fail,E0382
//! # use semidp_core::*;
//! # fn try_it(run: Run<'_, DenseTable<f32>, Gaussian>, mut tickets: Tickets, query: ClippedSum<L2>) -> Result<()> {
//! let ticket = tickets.next().unwrap();
//! let first = run.sum(&query, ticket)?;
//! let second = run.sum(&query, ticket)?;
//! # Ok(())
//! # }
//! ```
//! A ticket of one's own:
//! ```compile_fail,E0451
//! let ticket = semidp_core::Ticket { run: 0, step: 0 };
//! ```
//! One partial sum released twice:
//! ```compile_fail,E0382
//! # use semidp_core::*;
//! # fn try_it(run: Run<'_, DenseTable<f32>, Gaussian>, partial: Partial<L2>) -> Result<()> {
//! let first = run.noise(partial)?;
//! let second = run.noise(partial)?;
//! # Ok(())
//! # }
//! ```
//! Noise for another norm than the sum was clipped in:
//! ```compile_fail,E0308
//! # use semidp_core::*;
//! # fn try_it(run: Run<'_, DenseTable<f32>, Gaussian>, partial: Partial<L1>) -> Result<()> {
//! let noised = run.noise(partial)?;
//! # Ok(())
//! # }
//! ```
//! A noise law of one's own, which might add nothing:
//! ```compile_fail,E0277
//! # use semidp_core::*;
//! #[derive(Clone, Debug)]
//! struct Silence;
//! impl Mechanism for Silence {
//!     type Norm = L2;
//! }
//! ```
//! ```compile_fail,E0277
//! # use semidp_core::*;
//! # struct Silence;
//! # fn try_it(session: Session<DenseTable<f32>>) -> Result<()> {
//! let program = Program::new(Silence, Sampling::Everyone, Steps::ONE);
//! # Ok(())
//! # }
//! ```
//! A result that went around the noise:
//! ```compile_fail,E0308
//! # use semidp_core::*;
//! # fn try_it(run: Run<'_, DenseTable<f32>, Gaussian>, tickets: Tickets) -> Result<()> {
//! let release = run.finish(tickets, vec![1.0])?;
//! # Ok(())
//! # }
//! ```
//! A run that goes on after its certificate:
//! ```compile_fail,E0382
//! # use semidp_core::*;
//! # fn try_it(run: Run<'_, DenseTable<f32>, Gaussian>, tickets: Tickets, a: Noised<f64>, b: Partial<L2>) -> Result<()> {
//! let release = run.finish(tickets, a)?;
//! let more = run.noise(b)?;
//! # Ok(())
//! # }
//! ```

mod data;
mod error;
pub mod files;
mod hex;
mod kept;
mod ledger;
mod local;
mod noise;
mod parallel;
mod query;
mod release;
mod replay;
mod session;

pub use data::{
    Block, BlockSource, CsrBlock, CsrTable, DenseBlock, DenseTable, InMemory, Joined, Number, Private,
    Public, Sampling, Streamed,
};
pub use error::{Error, Result};
pub use kept::{Identity, Kept, KeyFile, Record};
pub use ledger::{Budget, Charge, Ledger, NoLimit, RunId};
pub use local::{Interview, People, Randomizer, RankReport};
pub use noise::rng::{Randomness, forbid_core_dumps};
pub use noise::{Gaussian, KNorm, LARGEST_MULTIPLIER, Laplace, Mechanism};
pub use query::{
    CLIP_NORMS, ClippedGradient, ClippedMoments, ClippedRowGradient, ClippedSum, Grid, L1, L2, Norm, Partial,
    Query, RowGradient, RowView, ScoreLoss,
};
pub use release::{Noised, Release};
pub use replay::{Recorder, ReplayedProgram, ReplayedStep, SumNorm, Transcript};
pub use semidp_accounting::{Adjacency, Certificate, Delta, Epsilon, NoiseMultiplier, SampleRate, Steps};
pub use session::{Prepared, Program, Run, Session, Ticket, Tickets, calibration_delta, smallest_delta};
