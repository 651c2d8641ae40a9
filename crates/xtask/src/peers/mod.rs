//! `cargo xtask bench peers`: noise calibration against the accountants others use.
//!
//! Both sides are measured in one run, in turns, so that whatever else the machine does hits
//! both; only the ratios mean anything.

mod environment;
mod ours;
mod peer;
mod report;

use crate::process::{self, Failure};
use environment::Environment;
use peer::Peer;
use semidp_accounting::Adjacency;

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

/// Runs the command.
pub fn run(options: &[&str]) -> Result<(), Failure> {
    let (mut opacus, mut in_release) = (true, false);
    for &option in options {
        match option {
            "--no-opacus" => opacus = false,
            "--in-release" => in_release = true,
            _ => return Err(Failure::usage(format!("`bench peers` does not understand `{option}`"))),
        }
    }
    if !in_release {
        // `cargo xtask` is a dev build, and a race must be run by an optimised one.
        let again =
            ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "peers", "--in-release"];
        return process::run(process::cargo(again).args(options));
    }
    let environment = Environment::prepare(opacus)?;
    let peers = PEERS.into_iter().filter(|peer| opacus || !peer.starts_with("opacus"));

    let mut races = Vec::new();
    for name in peers {
        let mut peer = Peer::start(&environment, name);
        for rows in ROWS {
            races.push(race(&mut peer, setting(rows, Adjacency::AddRemove))?);
        }
        if name == PLD {
            races.push(race(&mut peer, setting(27_000.0, Adjacency::ReplaceOne))?);
        }
    }
    let opinions = opinions(&mut Peer::start(&environment, PLD), &races);
    print!("{}", report::format(&races, &opinions));
    Ok(())
}

/// In turns: the peer once, we a few times, and again.
fn race(peer: &mut Peer, setting: Setting) -> Result<Race, Failure> {
    eprintln!("  {} at q = {}, {}", peer.name(), setting.label(), setting.adjacency);
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
    Ok(Race { peer: peer.name(), setting, outcome })
}

/// Asks the peer for its ε at each noise multiplier that we found.
fn opinions(peer: &mut Peer, races: &[Race]) -> Vec<Opinion> {
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

/// The middle of the sorted numbers; of an even count, the mean of the two in the middle.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().saturating_sub(1) / 2, numbers.len() / 2);
    if numbers.is_empty() { f64::NAN } else { 0.5 * (numbers[low] + numbers[high]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn unknown_options_are_refused() {
        assert_eq!(run(&["--fast"]).unwrap_err().code, 2);
    }
}
