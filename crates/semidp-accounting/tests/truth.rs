//! δ(ε) against exact values of mpmath (testdata/accounting-truth.json, by accounting_truth.py beside it), for settings
//! far outside everyday ones: sampling rates down to 1e-15, noise from 0.05 to 1e6, losses that end just above ε.

use semidp_accounting::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Entry {
    events: serde_json::Value,
    adjacency: Adjacency,
    epsilon: f64,
    delta: String,
}

/// The decimal truth as the nearest number: off by half a unit in the last place.
const READING: f64 = 1.0 - 2.0 * f64::EPSILON;

fn entries() -> Vec<(Vec<CountedEvent>, Entry, f64)> {
    let all: Vec<Entry> =
        serde_json::from_str(include_str!("../../../testdata/accounting-truth.json")).unwrap();
    assert!(all.len() >= 200);
    all.into_iter()
        .map(|one| (parse_events(&one.events.to_string()).unwrap(), one.delta.parse().unwrap(), one))
        .map(|(events, truth, one)| (events, one, truth))
        .collect()
}

fn is_single(events: &[CountedEvent]) -> bool {
    matches!(events, [one] if one.count.get() == 1)
}

#[test]
fn a_single_step_is_never_below_the_truth_and_tight() {
    for (events, one, truth) in entries().into_iter().filter(|(events, ..)| is_single(events)) {
        let found = delta(&events, one.adjacency, Epsilon::new(one.epsilon).unwrap()).unwrap().value.get();
        assert!(found >= truth * READING, "{} at {}: {found:e} below {truth:e}", one.events, one.epsilon);
        // Smaller sampling rates are accounted as 1e-12.
        if one.events[0]["sample_rate"].as_f64().is_some_and(|rate| rate < 1e-12) {
            continue;
        }
        // The largest errors are those of e^{−t²/2} around t = 30, and of the largest loss of a pure mechanism.
        let above = truth * (1.0 + 1e-9) + f64::EPSILON * one.epsilon;
        assert!(found <= above, "{} at {}: {found:e} for {truth:e}", one.events, one.epsilon);
    }
}

#[test]
fn compositions_are_never_below_the_truth_and_tight() {
    for (events, one, truth) in entries().into_iter().filter(|(events, ..)| !is_single(events)) {
        let found = delta(&events, one.adjacency, Epsilon::new(one.epsilon).unwrap()).unwrap().value.get();
        // The inversion integral of the truth is good to 1e-11.
        assert!(
            found >= truth * (1.0 - 1e-10),
            "{} at {}: {found:e} below {truth:e}",
            one.events,
            one.epsilon
        );
        assert!(found <= truth * 1.02, "{} at {}: {found:e} for {truth:e}", one.events, one.epsilon);
    }
}
