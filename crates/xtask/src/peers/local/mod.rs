//! PrivUnit reports against NumPy, and against the normal numbers that they are made of.

mod ours;
mod report;

use super::median;
use super::peer::Peer;
use crate::environment::Environment;
use crate::process::Failure;
use ours::Reporter;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("../../../peers/local.py");

const DIMENSION: usize = 1000;
const EPSILON: f64 = 2.0;
/// In one round of one side.
const VECTORS: usize = 4000;
const ROUNDS: usize = 9;
const THREADS: [usize; 2] = [1, 2];

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    /// Reports by PrivUnit with the same constants on either side.
    Reports,
    /// As many normal numbers as the vectors have coordinates, and nothing else: no report is faster.
    Normals,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Reports => "reports",
            Self::Normals => "normals",
        }
    }
}

/// Vectors a second.
#[derive(Debug, Clone, Copy)]
struct Speed {
    median: f64,
    /// What the machine can do when nothing else runs on it.
    most: f64,
}

impl Speed {
    fn of(seconds: &[f64]) -> Self {
        let mut speeds: Vec<f64> = seconds.iter().map(|seconds| VECTORS as f64 / seconds).collect();
        let median = median(&mut speeds);
        Self { median, most: speeds.last().copied().unwrap_or(f64::NAN) }
    }
}

/// One work on so many threads, both sides.
#[derive(Debug)]
struct Race {
    what: What,
    threads: usize,
    ours: Speed,
    theirs: Result<Speed, String>,
}

/// All races, and the mean of first coordinates of all reports of either side, which is 1 but for chance.
#[derive(Debug)]
struct Results {
    races: Vec<Race>,
    our_mean: f64,
    their_mean: f64,
}

/// The tables.
pub fn run(environment: &Environment) -> Result<String, Failure> {
    let script = environment.script("local", SCRIPT)?;
    let mut peer = Peer::start(environment, &script, "numpy");
    let mut reporter = Reporter::new()?;
    let (mut races, mut our_means, mut their_means) = (Vec::new(), Vec::new(), Vec::new());
    for what in [What::Reports, What::Normals] {
        for threads in THREADS {
            eprintln!("  {} on {threads} threads", what.name());
            let (race, ours, theirs) = race(&mut peer, &mut reporter, what, threads)?;
            races.push(race);
            if what == What::Reports {
                our_means.extend(ours);
                their_means.extend(theirs);
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let results = Results { races, our_mean: mean(&our_means), their_mean: mean(&their_means) };
    Ok(report::format(&results))
}

/// In turns: the peer once, we once, and again. With the answers of both sides.
fn race(
    peer: &mut Peer,
    reporter: &mut Reporter,
    what: What,
    threads: usize,
) -> Result<(Race, Vec<f64>, Vec<f64>), Failure> {
    let request: Value = json!({
        "what": what.name(),
        "vectors": VECTORS,
        "dimension": DIMENSION,
        "threads": threads,
        "law": reporter.law(),
    });
    // A cold first call would count against either side.
    let mut trouble = peer.ask(&request).err();
    reporter.work(what, threads)?;
    let (mut our_runs, mut their_runs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if trouble.is_none() {
            match peer.ask(&request) {
                Ok(run) => their_runs.push(run),
                Err(error) => trouble = Some(error),
            }
        }
        our_runs.push(reporter.work(what, threads)?);
    }
    let (our_answers, our_seconds): (Vec<f64>, Vec<f64>) = our_runs.into_iter().unzip();
    let (their_answers, their_seconds): (Vec<f64>, Vec<f64>) = their_runs.into_iter().unzip();
    let theirs = trouble.map_or_else(|| Ok(Speed::of(&their_seconds)), Err);
    Ok((Race { what, threads, ours: Speed::of(&our_seconds), theirs }, our_answers, their_answers))
}
