//! Noise calibration against the accountants others use.

mod ours;
mod report;

use super::peer::Peer;
use super::{median, time};
use crate::environment::Environment;
use crate::process::Failure;
use semidp_accounting::Adjacency;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("../../../peers/accounting.py");

/// The privacy question of the whole comparison.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// Rows in a batch on average, of so many private rows.
    batch: f64,
    rows: f64,
    adjacency: Adjacency,
}

impl Setting {
    fn sample_rate(self) -> f64 {
        self.batch / self.rows
    }

    fn label(self) -> String {
        format!("{}/{}", self.batch, self.rows)
    }
}

const EPSILON: f64 = 2.0;
const DELTA: f64 = 1e-5;
const STEPS: u64 = 5_000;
/// The tolerance of dp_accounting's search, in the noise multiplier. Ours stops at 2e-5 relative
/// in ε, and Opacus at its default of 0.01 in ε: the peers are asked for less than we deliver.
const PEER_TOLERANCE: f64 = 1e-3;

/// The peers take seconds, we take milliseconds: each round asks a peer once and us five times.
const ROUNDS: usize = 3;
const OUR_RUNS_PER_ROUND: usize = 5;

const ROWS: [f64; 4] = [29_700.0, 27_000.0, 15_000.0, 1_500.0];
const PLD: &str = "dp_accounting PLD";
const PEERS: [&str; 4] = [PLD, "dp_accounting RDP", "opacus RDP", "opacus PRV"];

fn setting(rows: f64, adjacency: Adjacency) -> Setting {
    Setting { batch: 500.0, rows, adjacency }
}

/// One peer against us on one setting.
#[derive(Debug)]
struct Race {
    peer: &'static str,
    setting: Setting,
    outcome: Result<Outcome, String>,
}

/// Answers, and medians of seconds.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    peer_answer: f64,
    peer_seconds: f64,
    our_answer: f64,
    our_seconds: f64,
}

/// The peer's opinion of our answer: its ε at our noise multiplier.
#[derive(Debug)]
struct Opinion {
    setting: Setting,
    noise_multiplier: f64,
    epsilon: Result<f64, String>,
}

/// The tables.
pub fn run(environment: &Environment, opacus: bool) -> Result<String, Failure> {
    let script = environment.script("accounting", SCRIPT)?;
    let start = |name| Accountant(Peer::start(environment, &script, name));
    let mut races = Vec::new();
    for name in PEERS.into_iter().filter(|peer| opacus || !peer.starts_with("opacus")) {
        let mut peer = start(name);
        for rows in ROWS {
            races.push(race(&mut peer, setting(rows, Adjacency::AddRemove))?);
        }
        if name == PLD {
            races.push(race(&mut peer, setting(27_000.0, Adjacency::ReplaceOne))?);
        }
    }
    let opinions = opinions(&mut start(PLD), &races);
    Ok(report::format(&races, &opinions))
}

/// A peer that is asked for noise multipliers.
struct Accountant(Peer);

impl Accountant {
    /// The noise multiplier it finds and the seconds it takes, or its error.
    fn calibrate(&mut self, setting: Setting) -> Result<(f64, f64), String> {
        self.ask(setting, json!({ "question": "calibrate", "epsilon": EPSILON, "tolerance": PEER_TOLERANCE }))
    }

    /// Its ε at a noise multiplier, or its error.
    fn epsilon(&mut self, setting: Setting, noise_multiplier: f64) -> Result<f64, String> {
        let question = json!({ "question": "epsilon", "noise_multiplier": noise_multiplier });
        self.ask(setting, question).map(|(answer, _)| answer)
    }

    fn ask(&mut self, setting: Setting, mut request: Value) -> Result<(f64, f64), String> {
        request["sample_rate"] = json!(setting.sample_rate());
        request["adjacency"] = json!(setting.adjacency.name());
        request["steps"] = json!(STEPS);
        request["delta"] = json!(DELTA);
        self.0.ask(&request)
    }
}

/// In turns: the peer once, we a few times, and again.
fn race(peer: &mut Accountant, setting: Setting) -> Result<Race, Failure> {
    eprintln!("  {} at q = {}, {}", peer.0.name(), setting.label(), setting.adjacency);
    let (mut peer_runs, mut our_runs) = (Vec::new(), Vec::new());
    let mut trouble = None;
    // A cold first call would count against either side.
    if let Err(error) = peer.calibrate(setting) {
        trouble = Some(error);
    }
    let (mut our_answer, _) = ours::calibrate(setting)?;
    let mut peer_answer = f64::NAN;
    for _ in 0..ROUNDS {
        if trouble.is_none() {
            match peer.calibrate(setting) {
                Ok((answer, seconds)) => {
                    peer_answer = answer;
                    peer_runs.push(seconds);
                }
                Err(error) => trouble = Some(error),
            }
        }
        for _ in 0..OUR_RUNS_PER_ROUND {
            let (answer, seconds) = ours::calibrate(setting)?;
            our_answer = answer;
            our_runs.push(seconds);
        }
    }
    let outcome = match trouble {
        Some(error) => Err(error),
        None => Ok(Outcome {
            peer_answer,
            peer_seconds: median(&mut peer_runs),
            our_answer,
            our_seconds: median(&mut our_runs),
        }),
    };
    Ok(Race { peer: peer.0.name(), setting, outcome })
}

/// Asks the peer for its ε at each noise multiplier that we found.
fn opinions(peer: &mut Accountant, races: &[Race]) -> Vec<Opinion> {
    let against_pld = races.iter().filter(|race| race.peer == PLD);
    let found = against_pld.filter_map(|race| Some((race.setting, race.outcome.as_ref().ok()?.our_answer)));
    found
        .map(|(setting, noise_multiplier)| Opinion {
            setting,
            noise_multiplier,
            epsilon: peer.epsilon(setting, noise_multiplier),
        })
        .collect()
}
