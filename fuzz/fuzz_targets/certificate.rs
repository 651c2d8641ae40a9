//! Feeds arbitrary text to the reader of certificates. What is read is written as the same certificate, and can be checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp_accounting::Certificate;

/// More events are valid, but slow to check.
const MAX_EVENTS: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(certificate) = Certificate::from_json(text) else { return };
    let again = serde_json::to_string(&certificate).unwrap();
    let again = Certificate::from_json(&again).expect("a certificate reads back");
    assert_eq!(serde_json::to_value(&again).unwrap(), serde_json::to_value(&certificate).unwrap());
    if certificate.events.len() <= MAX_EVENTS {
        let _ = certificate.verify();
    }
});
