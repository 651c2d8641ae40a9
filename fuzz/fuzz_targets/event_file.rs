//! Feeds arbitrary bytes to the readers of event files and certificates. Neither may panic, and
//! whatever they accept must be answerable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp_accounting::{Adjacency, Certificate, Delta, Error, epsilon, parse_events};

/// Longer lists are valid, but a fuzzer's time is better spent on the next file.
const MOST_EVENTS: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(certificate) = Certificate::from_json(text)
        && certificate.events.len() <= MOST_EVENTS
    {
        let _ = certificate.verify();
    }
    let Ok(events) = parse_events(text) else { return };
    if events.len() > MOST_EVENTS {
        return;
    }
    for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
        match epsilon(&events, adjacency, Delta::new(1e-5).unwrap()) {
            Ok(answer) => {
                let value = answer.value.get();
                assert!(value.is_finite() && value >= 0.0, "{adjacency}: epsilon {value}");
            }
            Err(error @ Error::Disagreement { .. }) => panic!("{adjacency}: {error}"),
            Err(_) => {}
        }
    }
});
