//! The tables of the race.

use super::super::shorten;
use super::{DELTA, EPSILON, OUR_RUNS_PER_ROUND, Opinion, PEER_TOLERANCE, ROUNDS, Race, STEPS, median, time};
use crate::table;

/// Everything, as text.
pub fn format(races: &[Race], opinions: &[Opinion]) -> String {
    let mut text = format!(
        "noise multiplier for epsilon {EPSILON}, delta {DELTA:e}, {STEPS} steps of Poisson-sampled Gaussian \
         noise\nmedians of {ROUNDS} runs of the peer and {} of ours, taken in turns; dp_accounting calibrates \
         with tol={PEER_TOLERANCE:e},\nOpacus with its default tolerance of 0.01 in epsilon, we to 2e-5 \
         relative in epsilon\n\n",
        ROUNDS * OUR_RUNS_PER_ROUND
    );
    text += &table::format(&race_rows(races));
    text += "\npeer time / our time\n";
    text += &table::format(&ratio_rows(races));
    if !opinions.is_empty() {
        text += "\ntightness: epsilon by dp_accounting's PLD at our noise multiplier\n";
        text += &table::format(&opinion_rows(opinions));
    }
    text
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

fn race_rows(races: &[Race]) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        "peer",
        "adjacency",
        "q",
        "peer's answer",
        "peer's time",
        "our answer",
        "our time",
        "ratio",
        "ours vs peer's",
    ])];
    for race in races {
        let mut cells = row([race.peer, race.setting.adjacency.name(), &race.setting.label()]);
        match &race.outcome {
            Ok(outcome) => cells.extend([
                format!("{:.5}", outcome.peer_answer),
                time(outcome.peer_seconds),
                format!("{:.5}", outcome.our_answer),
                time(outcome.our_seconds),
                format!("{:.1}x", outcome.peer_seconds / outcome.our_seconds),
                format!("{:+.3}%", 100.0 * (outcome.our_answer / outcome.peer_answer - 1.0)),
            ]),
            Err(error) => cells.push(shorten(&format!("failed: {error}"))),
        }
        rows.push(cells);
    }
    rows
}

fn ratio_rows(races: &[Race]) -> Vec<Vec<String>> {
    let mut rows = vec![row(["peer", "smallest", "median"])];
    let mut peers: Vec<&str> = races.iter().map(|race| race.peer).collect();
    peers.dedup();
    for peer in peers {
        let outcomes =
            races.iter().filter(|race| race.peer == peer).filter_map(|race| race.outcome.as_ref().ok());
        let mut ratios: Vec<f64> =
            outcomes.map(|outcome| outcome.peer_seconds / outcome.our_seconds).collect();
        if ratios.is_empty() {
            rows.push(row([peer, "failed", "failed"]));
            continue;
        }
        let middle = median(&mut ratios);
        rows.push(vec![peer.to_string(), format!("{:.1}x", ratios[0]), format!("{middle:.1}x")]);
    }
    rows
}

fn opinion_rows(opinions: &[Opinion]) -> Vec<Vec<String>> {
    let mut rows = vec![row(["adjacency", "q", "our noise", "its epsilon", "above target"])];
    for opinion in opinions {
        let mut cells = row([opinion.setting.adjacency.name(), &opinion.setting.label()]);
        cells.push(format!("{:.6}", opinion.noise_multiplier));
        match &opinion.epsilon {
            Ok(epsilon) => cells.extend([format!("{epsilon:.6}"), format!("{:+.1e}", epsilon - EPSILON)]),
            Err(error) => cells.push(shorten(&format!("failed: {error}"))),
        }
        rows.push(cells);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, setting};
    use super::*;
    use semidp_accounting::Adjacency;

    #[test]
    fn a_failed_peer_gets_a_row() {
        let outcome = Outcome { peer_answer: 2.0, peer_seconds: 3.0, our_answer: 2.02, our_seconds: 0.01 };
        let at = setting(1_500.0, Adjacency::AddRemove);
        let races = [
            Race { peer: "works", setting: at, outcome: Ok(outcome) },
            Race { peer: "breaks", setting: at, outcome: Err("ValueError: no".into()) },
        ];
        let text = format(&races, &[]);
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(line("works").contains("300.0x") && line("works").contains("+1.000%"));
        assert!(line("breaks").contains("failed: ValueError: no"));
    }
}
