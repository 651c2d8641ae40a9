//! A certificate whose parts contradict each other is not valid, although its events give the epsilon it claims.

use semidp_accounting::*;
use serde_json::json;

fn stated(name: &str, value: serde_json::Value) -> Provenance {
    Provenance { name: name.into(), value, source: "user".into() }
}

/// As `semidp train` issues it.
fn trained() -> Certificate {
    let event = Event::PoissonGaussian {
        noise_multiplier: NoiseMultiplier::new(4.0).unwrap(),
        sample_rate: SampleRate::new(0.01).unwrap(),
    };
    let events = vec![CountedEvent::new(event, Steps::new(60).unwrap())];
    let delta = Delta::new(1e-6).unwrap();
    let words = "train: semi-dp-sgd, rounded Gaussian noise";
    let mut certificate =
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Central, delta, words).unwrap();
    certificate.arithmetic = Arithmetic::Exact;
    certificate.random_source = RandomSource::OperatingSystem;
    certificate.hyperparameters = vec![
        stated("clip-norm", json!(1.5)),
        stated("sampling", json!("poisson")),
        stated("expected-batch", json!(30.0)),
        stated("steps", json!(60)),
        stated("noise-multiplier", json!(4.0)),
        stated("sample-rate", json!(0.01)),
    ];
    certificate
}

/// As `semidp train` issues it for public rows alone.
fn free() -> Certificate {
    let (events, delta) = (Vec::new(), Delta::new(0.0).unwrap());
    let words = "train: throw-away, no private row was used";
    let mut certificate =
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Central, delta, words).unwrap();
    certificate.arithmetic = Arithmetic::Exact;
    certificate.hyperparameters = vec![stated("ridge", json!(0.1))];
    certificate
}

fn reported() -> Certificate {
    let events = vec![CountedEvent::new(Event::Pure { epsilon: Epsilon::new(1.0).unwrap() }, Steps::ONE)];
    let words = "local: duchi of a vector of 3 numbers";
    let delta = Delta::new(0.0).unwrap();
    let mut certificate =
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Local, delta, words).unwrap();
    certificate.random_source = RandomSource::OperatingSystem;
    certificate
}

#[track_caller]
fn refused(certificate: &Certificate, word: &str) {
    let verdict = certificate.verify().unwrap();
    assert!(!verdict.valid, "{word}: {certificate:?}");
    assert!(verdict.objections.iter().any(|line| line.starts_with(word)), "{word}: {:?}", verdict.objections);
}

#[test]
fn consistent_certificates_are_valid() {
    for certificate in [trained(), free(), reported()] {
        let verdict = certificate.verify().unwrap();
        assert!(verdict.valid, "{:?}", verdict.objections);
    }
}

#[test]
fn a_central_certificate_cannot_claim_local_trust() {
    for words in [
        "train: semi-dp-sgd, rounded Gaussian noise",
        "mean: gaussian, rounded Gaussian noise",
        "Gaussian noise on the sum of clipped contributions, 60 releases",
    ] {
        let mut forged = trained();
        let event = Event::Gaussian { noise_multiplier: NoiseMultiplier::new(40.0).unwrap() };
        forged.events = vec![CountedEvent::new(event, Steps::new(60).unwrap())];
        forged.hyperparameters.clear();
        forged.mechanism = words.into();
        forged.guarantee.epsilon = Epsilon::new(40.0).unwrap();
        forged.guarantee.rho = None;
        forged.accountants = serde_json::from_value(json!({ "pld": null, "rdp": null })).unwrap();
        assert!(forged.verify().unwrap().valid);
        forged.guarantee.trust = Trust::Local;
        refused(&forged, "trust");
    }
    let mut sampled = trained();
    sampled.mechanism = "unknown".into();
    sampled.guarantee.trust = Trust::Local;
    refused(&sampled, "trust");
    let mut central = reported();
    central.guarantee.trust = Trust::Central;
    refused(&central, "trust");
}

#[test]
fn seeded_noise_is_not_valid_unless_allowed() {
    let mut seeded = trained();
    seeded.random_source = RandomSource::Seeded;
    refused(&seeded, "random_source: the noise was drawn from a seed: NOT private");
    assert!(seeded.verify_allowing_seeded().unwrap().valid);
    let mut nothing = trained();
    nothing.random_source = RandomSource::None;
    refused(&nothing, "random_source");
}

/// The certificate of a run, without its events: epsilon 0, noise multiplier 184 and 609 steps.
#[test]
fn noise_without_an_event_is_refused() {
    for entry in [
        ("noise-multiplier", json!(184.0)),
        ("noise_multiplier", json!(184.0)),
        ("steps", json!(609)),
        ("sample-rate", json!(0.01)),
        ("expected-batch", json!(30.0)),
        ("blocks", json!(7)),
    ] {
        let mut forged = free();
        forged.hyperparameters.push(stated(entry.0, entry.1));
        refused(&forged, entry.0);
    }
    let mut emptied = trained();
    emptied.events.clear();
    emptied.releases = 0;
    emptied.guarantee.epsilon = Epsilon::new(0.0).unwrap();
    refused(&emptied, "noise-multiplier");
    emptied.hyperparameters.clear();
    refused(&emptied, "mechanism");
    refused(&emptied, "random_source");
    let mut released = free();
    released.releases = 609;
    refused(&released, "releases");
    let mut read = trained();
    read.mechanism = "train: throw-away, no private row was used".into();
    refused(&read, "mechanism");
}

#[test]
fn hyperparameters_and_law_must_be_those_of_the_events() {
    for (place, value) in [
        (1, json!("fixed-size")),
        (1, json!("none")),
        (1, json!(3)),
        (2, json!(0.001)),
        (2, json!(-1.0)),
        (2, json!("many")),
        (3, json!(61)),
        (3, json!(59)),
        (3, json!("60")),
        (4, json!(184.0)),
        (4, json!(null)),
        (5, json!(0.001)),
    ] {
        let mut forged = trained();
        forged.hyperparameters[place].value = value;
        let name = forged.hyperparameters[place].name.clone();
        refused(&forged, &name);
    }
    let mut other_law = trained();
    other_law.mechanism = "train: semi-dp-sgd, rounded Laplace noise".into();
    refused(&other_law, "mechanism");
    let mut inexact = trained();
    inexact.mechanism = "mean: k-norm, K-norm noise".into();
    refused(&inexact, "arithmetic");
    let mut local = reported();
    let noise_multiplier = NoiseMultiplier::new(8.0).unwrap();
    local.events = vec![CountedEvent::new(Event::Laplace { noise_multiplier, dimension: 3 }, Steps::ONE)];
    refused(&local, "mechanism");
}

/// A pass over disjoint blocks may end early; more steps than there are blocks are another matter.
#[test]
fn steps_of_one_pass_fit_its_blocks() {
    let noise_multiplier = NoiseMultiplier::new(4.0).unwrap();
    let event = Event::OnePassGaussian { noise_multiplier, blocks: 50 };
    let events = vec![CountedEvent::new(event, Steps::new(2).unwrap())];
    let delta = Delta::new(1e-6).unwrap();
    let mut certificate =
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Central, delta, "a test").unwrap();
    for (steps, valid) in [(100, true), (60, true), (51, true), (50, false), (101, false)] {
        certificate.hyperparameters =
            vec![stated("steps", json!(steps)), stated("sampling", json!("in-order"))];
        assert_eq!(certificate.verify().unwrap().valid, valid, "{steps}");
    }
}

/// What is signed depends on every field but the signature, and not on the order of keys.
#[test]
fn signed_bytes_cover_every_field_and_no_layout() {
    let certificate = trained();
    let bytes = certificate.signed_bytes().unwrap();
    let mut signed = certificate.clone();
    let (public_key, value) = ("00".repeat(32), "00".repeat(64));
    signed.signature = Some(Signature { algorithm: "ed25519".into(), public_key, value });
    assert_eq!(signed.signed_bytes().unwrap(), bytes);
    let text = serde_json::to_string(&signed).unwrap();
    assert_eq!(Certificate::from_json(&text).unwrap(), signed);
    // Keys in reverse.
    let value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let reversed: serde_json::Map<String, serde_json::Value> = value.into_iter().rev().collect();
    let read = Certificate::from_value(reversed.into()).unwrap();
    assert_eq!(read.signed_bytes().unwrap(), bytes);
    let fields = serde_json::to_value(&certificate).unwrap();
    for (pointer, other) in [
        ("/guarantee/epsilon", json!(9.0)),
        ("/guarantee/trust", json!("local")),
        ("/version", json!("0.0.0")),
        ("/mechanism", json!("other")),
        ("/events/0/count", json!(61)),
        ("/releases", json!(61)),
        ("/accountants/pld", json!(9.0)),
        ("/arithmetic", json!("idealised")),
        ("/random_source", json!("seeded")),
        ("/hyperparameters/0/value", json!(2.0)),
    ] {
        let mut altered = fields.clone();
        *altered.pointer_mut(pointer).unwrap() = other;
        assert_ne!(Certificate::from_value(altered).unwrap().signed_bytes().unwrap(), bytes, "{pointer}");
    }
    for list in ["declassified", "not_covered", "assumptions", "notes"] {
        let mut altered = fields.clone();
        altered[list] = json!(["more"]);
        assert_ne!(Certificate::from_value(altered).unwrap().signed_bytes().unwrap(), bytes, "{list}");
    }
}

/// An accountant that has no figure for these events and this delta cannot be quoted, neither for pure releases nor for none.
#[test]
fn figures_of_accountants_that_do_not_apply_are_refused() {
    for name in ["pld", "rdp"] {
        for certificate in [reported(), free()] {
            let mut forged = serde_json::to_value(certificate).unwrap();
            forged["accountants"][name] = json!(0.1);
            refused(&Certificate::from_value(forged).unwrap(), &format!("accountants.{name}"));
        }
        let mut low = serde_json::to_value(trained()).unwrap();
        low["accountants"][name] = json!(0.01);
        refused(&Certificate::from_value(low).unwrap(), &format!("accountants.{name}: claims 0.01"));
    }
}

/// Means use the number of private rows, and so do samples of fixed size and passes in order.
#[test]
fn mechanisms_that_need_the_number_of_rows_are_refused_under_add_remove() {
    for words in [
        "mean: weighted-gaussian, rounded Gaussian noise",
        "mean: shift-robust-gaussian, rounded Gaussian noise",
        "mean:gaussian, rounded Gaussian noise",
    ] {
        let mut forged = trained();
        let event = Event::Gaussian { noise_multiplier: NoiseMultiplier::new(40.0).unwrap() };
        let events = vec![CountedEvent::new(event, Steps::ONE)];
        let delta = Delta::new(1e-6).unwrap();
        let source = forged.random_source;
        forged = Certificate::issue(events, Adjacency::AddRemove, Trust::Central, delta, words).unwrap();
        forged.random_source = source;
        refused(&forged, "adjacency: claims add-remove, but a mean");
        forged.mechanism = "train: dp-sgd, rounded Gaussian noise".into();
        assert!(forged.verify().unwrap().valid);
        for sampling in ["in-order", "fixed-size"] {
            let mut forged = forged.clone();
            forged.hyperparameters = vec![stated("sampling", json!(sampling))];
            refused(&forged, "adjacency: claims add-remove, but sampling");
        }
    }
}
