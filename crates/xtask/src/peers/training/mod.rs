//! Private training steps against Opacus, and against PyTorch without privacy.

mod machine;
mod ours;
mod report;

use super::median;
use super::peer::Peer;
use crate::environment::Environment;
use crate::process::Failure;
use ours::Trainer;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const SCRIPT: &str = include_str!("../../../peers/training.py");

/// A model of linear scores, and the rows it is trained on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Work {
    name: &'static str,
    rows: usize,
    features: usize,
    /// Scores of a row; with more than one there is an intercept, too.
    outputs: usize,
    /// Rows in a step, on average.
    batch: usize,
}

impl Work {
    /// Bytes of the rows that a step reads, on average.
    fn bytes_of_step(&self) -> f64 {
        4.0 * (self.batch * (self.features + 1)) as f64
    }

    /// Bytes of the whole table.
    fn bytes(&self) -> f64 {
        4.0 * (self.rows * (self.features + 1)) as f64
    }

    fn label(&self) -> String {
        format!("{} {}x{}, {} of {}", self.name, self.features, self.outputs, self.batch, self.rows)
    }
}

/// The size of the paper's linear regression.
const LINEAR: Work = Work { name: "linear", rows: 27_000, features: 2000, outputs: 1, batch: 500 };
/// Softmax regression on CIFAR-10.
const SOFTMAX: Work = Work { name: "softmax", rows: 40_000, features: 3072, outputs: 10, batch: 256 };

/// Over these the time of a step should grow no faster than they do.
const BATCHES: [usize; 4] = [50, 100, 200, 500];
const FEATURES: [usize; 4] = [400, 1000, 2000, 4000];

/// A peer and where its batches come from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    peer: &'static str,
    source: &'static str,
}

const HOOKS: &str = "opacus hooks";
const GHOST: &str = "opacus ghost";
const PLAIN: &str = "torch plain";
const LOADER: &str = "loader";
const SLICED: &str = "sliced";

/// Each round, the peer takes some steps and then we do.
const ROUNDS: usize = 5;
const PEER_STEPS: usize = 40;
const OUR_STEPS: usize = 500;
/// Threads that wait for more work stay awake for a while, and would slow the other side down.
const PAUSE: Duration = Duration::from_millis(400);
/// Our steps after a pause that do not count; the peer takes about as long over its own. A machine that was idle needs
/// some tenths of a second to wake up.
const COLD_STEPS: usize = 200;

/// One peer against us on one work.
#[derive(Debug)]
struct Race {
    work: Work,
    way: Way,
    outcome: Result<Outcome, String>,
}

/// Seconds a step.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    theirs: Rounds,
    ours: Rounds,
}

/// Over all rounds. The least is what the machine can do when nothing else runs on it.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    median: f64,
    least: f64,
}

impl Rounds {
    fn of(mut seconds: Vec<f64>) -> Self {
        Self { median: median(&mut seconds), least: seconds.iter().copied().fold(f64::INFINITY, f64::min) }
    }
}

/// How fast we read rows, and how fast this machine can read at all, in bytes a second.
#[derive(Debug)]
struct Speed {
    work: Work,
    seconds: f64,
    reading: f64,
}

/// Everything that was measured.
#[derive(Debug)]
struct Results {
    races: Vec<Race>,
    speeds: Vec<Speed>,
    /// Seconds a step, by batch size and by number of features.
    by_batch: Vec<(Work, f64)>,
    by_features: Vec<(Work, f64)>,
    /// Of the larger work, the peak of this process beyond what it held before, if the system tells.
    peak: Option<(Work, f64)>,
}

/// The tables.
pub fn run(environment: &Environment, opacus: bool) -> Result<String, Failure> {
    let peak = peak()?;
    let script = environment.script("training", SCRIPT)?;
    let (mut races, mut speeds) = (Vec::new(), Vec::new());
    for work in [LINEAR, SOFTMAX] {
        let session = ours::session(work)?;
        let mut trainer = Trainer::new(&session, work)?;
        if opacus {
            race_all(environment, &script, &mut trainer, &mut races)?;
        }
        speeds.push(speed(&mut trainer)?);
    }
    let by_batch = growth(&BATCHES.map(|batch| Work { batch, ..LINEAR }))?;
    let by_features = growth(&FEATURES.map(|features| Work { features, ..LINEAR }))?;
    Ok(report::format(&Results { races, speeds, by_batch, by_features, peak }))
}

/// Trains on the larger table while nothing else is in memory.
fn peak() -> Result<Option<(Work, f64)>, Failure> {
    eprintln!("  our memory");
    let before = machine::forget_peak();
    let session = ours::session(SOFTMAX)?;
    let mut trainer = Trainer::new(&session, SOFTMAX)?;
    trainer.steps(OUR_STEPS)?;
    Ok(before.and_then(|before| Some((SOFTMAX, machine::peak()? - before))))
}

/// Every peer that does this work, one process at a time.
fn race_all(
    environment: &Environment,
    script: &Path,
    trainer: &mut Trainer<'_>,
    races: &mut Vec<Race>,
) -> Result<(), Failure> {
    let ways = [(HOOKS, &[LOADER, SLICED][..]), (GHOST, &[LOADER, SLICED]), (PLAIN, &[SLICED])];
    for (name, sources) in ways {
        let mut peer = Peer::start(environment, script, name);
        for source in sources {
            let way = Way { peer: name, source };
            races.push(race(&mut peer, way, trainer)?);
        }
    }
    Ok(())
}

/// In turns: the peer some steps, we some, and again.
fn race(peer: &mut Peer, way: Way, trainer: &mut Trainer<'_>) -> Result<Race, Failure> {
    let work = trainer.work();
    eprintln!("  {}, {}: {}", way.peer, way.source, work.label());
    let request = json!({
        "work": {
            "rows": work.rows, "features": work.features, "outputs": work.outputs, "batch": work.batch,
        },
        "source": way.source,
        "steps": PEER_STEPS,
    });
    // A cold first call would count against either side.
    let mut trouble = peer.ask(&request).err();
    trainer.steps(OUR_STEPS)?;
    let (mut theirs, mut our_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if trouble.is_none() {
            std::thread::sleep(PAUSE);
            match peer.ask(&request) {
                Ok((_, seconds)) => theirs.push(seconds),
                Err(error) => trouble = Some(error),
            }
        }
        std::thread::sleep(PAUSE);
        trainer.steps(COLD_STEPS)?;
        our_times.push(trainer.steps(OUR_STEPS)?);
    }
    let outcome = match trouble {
        Some(error) => Err(error),
        None => Ok(Outcome { theirs: Rounds::of(theirs), ours: Rounds::of(our_times) }),
    };
    Ok(Race { work, way, outcome })
}

/// Steps and plain reading, in turns.
fn speed(trainer: &mut Trainer<'_>) -> Result<Speed, Failure> {
    eprintln!("  how fast rows are read: {}", trainer.work().label());
    let memory = machine::Memory::new();
    let (mut seconds, mut reading) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        seconds.push(trainer.steps(OUR_STEPS)?);
        reading.push(memory.read());
    }
    Ok(Speed { work: trainer.work(), seconds: median(&mut seconds), reading: median(&mut reading) })
}

/// The time of a step for each work.
fn growth(works: &[Work]) -> Result<Vec<(Work, f64)>, Failure> {
    let mut times = Vec::new();
    for &work in works {
        eprintln!("  how time grows: {}", work.label());
        let session = ours::session(work)?;
        let mut trainer = Trainer::new(&session, work)?;
        trainer.steps(OUR_STEPS)?;
        let rounds: Result<Vec<f64>, Failure> = (0..ROUNDS).map(|_| trainer.steps(OUR_STEPS)).collect();
        times.push((work, median(&mut rounds?)));
    }
    Ok(times)
}
