//! Replay audits: sums before noise, recorded for an auditor who runs a program on neighbouring rows.
//!
//! A [`Recorder`] that is handed to [`crate::Session::with_recorder`] receives every sum that the session noises, together with
//! the bound that was declared for it. It also returns what the step releases: in the first run the noised sum itself, in a second run
//! on neighbouring rows the release of the first one ([`Recorder::forcing`]). The second run therefore asks each step's query at the
//! same iterate, and the two sums of a step may differ by its sensitivity at most. This is the condition under which the
//! guarantees of adaptively chosen steps compose.
//!
//! *Why this is safe.* A recorder opens private sums, so a session with one is declassified: a warning goes to standard error,
//! and no certificate of the session verifies. A session without one has nothing to record to; no file, environment variable or
//! argument of a program switches it on.

use crate::data::Sampling;
use semidp_accounting::{Adjacency, CountedEvent};
use std::fmt;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The reason on the certificates of a session with a recorder.
pub(crate) const REASON: &str = "a replay audit compared sums before noise";

/// Warns once a process: audits replay thousands of runs.
pub(crate) fn warn() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        eprintln!("warning: private data was declassified and is no longer protected: {REASON}");
    });
}

/// The norm in which a sum's contributions are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumNorm {
    /// Sum of absolute values.
    L1,
    /// Euclidean norm.
    L2,
}

/// A program that was checked, as its certificate accounts it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedProgram {
    /// The neighbouring relation that it was accounted under.
    pub adjacency: Adjacency,
    /// How each step chooses its units.
    pub sampling: Sampling,
    /// Steps authorised.
    pub steps: u64,
    /// Coordinates of each release.
    pub dimension: usize,
    /// What was accounted.
    pub events: Vec<CountedEvent>,
}

/// One noised sum: what it was before noise, and what was declared about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedStep {
    /// The program it belongs to, counted from 0 in the order of their checks.
    pub program: usize,
    /// The step of the program, from 0.
    pub step: u64,
    /// The norm of its contributions.
    pub norm: SumNorm,
    /// The exact sum before noise, in grid steps.
    pub sum: Vec<i64>,
    /// The grid step, a power of two.
    pub grid_step: f64,
    /// The largest norm of a contribution, in grid steps.
    pub clip_steps: u64,
    /// Noise scale over clip norm, as accounted.
    pub noise_multiplier: f64,
    /// The scale of the noise that was drawn, in grid steps.
    pub noise_scale: u64,
    /// What the step released.
    pub released: Vec<f64>,
}

/// Everything that a recorder saw of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// In the order of their checks.
    pub programs: Vec<ReplayedProgram>,
    /// In the order of their noise.
    pub steps: Vec<ReplayedStep>,
}

/// Records the sums of a session before noise. See the module's documentation for what this does to certificates.
#[derive(Default)]
pub struct Recorder {
    forced: Option<Transcript>,
    seen: Mutex<Transcript>,
}

impl Recorder {
    /// Records a run and leaves its releases as they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a run whose steps release what the same steps of an earlier run released. A step that the earlier run did not
    /// take, or took in another number of coordinates, keeps its own release.
    pub fn forcing(earlier: Transcript) -> Self {
        Self { forced: Some(earlier), seen: Mutex::default() }
    }

    /// What was seen so far.
    pub fn transcript(&self) -> Transcript {
        self.seen().clone()
    }

    /// Notes a program, and returns its number.
    pub fn begin(&self, program: ReplayedProgram) -> usize {
        let mut seen = self.seen();
        seen.programs.push(program);
        seen.programs.len() - 1
    }

    /// Notes a step, and returns what it releases. Mechanisms outside the kernel may call this too: an audit treats them alike.
    pub fn note(&self, step: ReplayedStep) -> Vec<f64> {
        let mut seen = self.seen();
        let mut released = step.released.clone();
        if let Some(earlier) = &self.forced {
            let is_same = |other: &&ReplayedStep| (other.program, other.step) == (step.program, step.step);
            // As a rule both runs take their steps in one order.
            let in_order = earlier.steps.get(seen.steps.len()).filter(is_same);
            let same = in_order.or_else(|| earlier.steps.iter().find(is_same));
            if let Some(other) = same.filter(|other| other.released.len() == released.len()) {
                released.copy_from_slice(&other.released);
            }
        }
        seen.steps.push(step);
        released
    }

    fn seen(&self) -> MutexGuard<'_, Transcript> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<recorder of private sums>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;
    use std::sync::Arc;

    fn session(rows: &[f64], recorder: Option<&Arc<Recorder>>) -> Session<DenseTable<f64>> {
        let table = Private::new(DenseTable::new(rows.to_vec(), 2).unwrap());
        let session = Session::new(table, Adjacency::ReplaceOne).unwrap();
        let session = session.with_randomness(Randomness::Seed(5)).with_threads(1);
        match recorder {
            Some(recorder) => session.with_recorder(recorder.clone()),
            None => session,
        }
    }

    /// Two steps; the second is clipped about what the first one released.
    fn release(session: &Session<DenseTable<f64>>) -> Release<Vec<f64>> {
        let law = Gaussian::new(NoiseMultiplier::new(2.0).unwrap());
        let program = Program::new(law, Sampling::Everyone, Steps::new(2).unwrap());
        let (run, mut tickets) = session.authorise(program, Delta::new(1e-6).unwrap()).unwrap();
        let mut centre = vec![0.0, 0.0];
        let mut last = None;
        for ticket in tickets.by_ref() {
            let query = ClippedSum::l2(Public(centre.clone()), 1.0).unwrap();
            let noised = run.noise(run.sum(&query, ticket).unwrap()).unwrap();
            centre = noised.to_vec();
            last = Some(noised);
        }
        run.finish(tickets, last.unwrap()).unwrap()
    }

    const ROWS: [f64; 6] = [0.5, 0.25, -0.5, 0.0, 1.0, 2.0];
    const NEIGHBOURS: [f64; 6] = [-0.5, -0.25, -0.5, 0.0, 1.0, 2.0];

    #[test]
    fn recording_changes_no_release_and_voids_every_certificate() {
        let recorder = Arc::new(Recorder::new());
        let (plain, recorded) = (release(&session(&ROWS, None)), release(&session(&ROWS, Some(&recorder))));
        assert_eq!(plain.value, recorded.value);
        assert!(plain.certificate.verify_allowing_seeded().unwrap().valid);
        let verdict = recorded.certificate.verify().unwrap();
        assert!(!verdict.valid && verdict.objections[0].contains(REASON), "{:?}", verdict.objections);
        assert_eq!(recorded.certificate.declassified, [REASON]);
        let read = Certificate::from_value(serde_json::to_value(&recorded.certificate).unwrap()).unwrap();
        assert!(!read.verify().unwrap().valid);
        // The mark stays when the rows are arranged.
        let arranged = session(&ROWS, Some(&recorder)).arranged(1 << 20).unwrap();
        let law = Gaussian::new(NoiseMultiplier::new(2.0).unwrap());
        let program = Program::new(law, Sampling::Everyone, Steps::ONE);
        let (run, mut tickets) = arranged.authorise(program, Delta::new(1e-6).unwrap()).unwrap();
        let query = ClippedSum::l2(Public(vec![0.0; 2]), 1.0).unwrap();
        let noised = run.noise(run.sum(&query, tickets.next().unwrap()).unwrap()).unwrap();
        assert_eq!(run.finish(tickets, noised).unwrap().certificate.declassified, [REASON]);
        assert_eq!(recorder.transcript().steps.len(), 3);
        assert_eq!(format!("{recorder:?}"), "<recorder of private sums>");
    }

    #[test]
    fn a_forced_run_asks_at_the_iterates_of_the_first() {
        let first = Arc::new(Recorder::new());
        let released = release(&session(&ROWS, Some(&first)));
        let transcript = first.transcript();
        assert_eq!((transcript.programs.len(), transcript.steps.len()), (1, 2));
        let second = Arc::new(Recorder::forcing(transcript.clone()));
        assert_eq!(release(&session(&NEIGHBOURS, Some(&second))).value, released.value);
        let other = second.transcript();
        assert_eq!(other.programs, transcript.programs);
        for (a, b) in transcript.steps.iter().zip(&other.steps) {
            assert_ne!(a.sum, b.sum);
            let square: i64 = a.sum.iter().zip(&b.sum).map(|(a, b)| (a - b).pow(2)).sum();
            assert!(square as u64 <= 4 * a.clip_steps * a.clip_steps);
            assert!(a.noise_scale as f64 >= a.noise_multiplier * a.clip_steps as f64);
            // What it would have released of its own is kept.
            assert_ne!(a.released, b.released);
        }
        // The same rows again give the same sums.
        let again = Arc::new(Recorder::forcing(transcript.clone()));
        release(&session(&ROWS, Some(&again)));
        assert_eq!(again.transcript(), transcript);
    }

    #[test]
    fn steps_of_another_shape_keep_their_release() {
        let step = |program, step, released: &[f64]| ReplayedStep {
            program,
            step,
            norm: SumNorm::L2,
            sum: vec![1],
            grid_step: 1.0,
            clip_steps: 1,
            noise_multiplier: 1.0,
            noise_scale: 1,
            released: released.to_vec(),
        };
        let first = Recorder::new();
        assert_eq!(first.note(step(0, 1, &[3.0])), [3.0]);
        let second = Recorder::forcing(first.transcript());
        assert_eq!(second.note(step(0, 1, &[4.0])), [3.0]);
        assert_eq!(second.note(step(0, 1, &[4.0, 5.0])), [4.0, 5.0]);
        assert_eq!(second.note(step(0, 2, &[6.0])), [6.0]);
        assert_eq!(second.note(step(1, 1, &[7.0])), [7.0]);
    }
}
