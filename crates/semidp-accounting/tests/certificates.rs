//! Certificates verify, and those edited by hand do not.

use semidp_accounting::*;

fn poisson(noise: f64, q: f64, steps: u64) -> CountedEvent {
    let event = Event::PoissonGaussian {
        noise_multiplier: NoiseMultiplier::new(noise).unwrap(),
        sample_rate: SampleRate::new(q).unwrap(),
    };
    CountedEvent::new(event, Steps::new(steps).unwrap())
}

fn samples() -> Vec<Certificate> {
    let delta = |value| Delta::new(value).unwrap();
    let noise = NoiseMultiplier::new(8.0).unwrap();
    let laplace =
        CountedEvent::new(Event::Laplace { noise_multiplier: noise, dimension: 3 }, Steps::new(2).unwrap());
    let gaussian = CountedEvent::new(Event::Gaussian { noise_multiplier: noise }, Steps::new(4).unwrap());
    let zcdp = CountedEvent::new(Event::Zcdp { rho: Rho::new(0.1).unwrap() }, Steps::ONE);
    let one_pass = Event::OnePassGaussian { noise_multiplier: noise, blocks: 54 };
    let fixed =
        Event::FixedSizeGaussian { noise_multiplier: noise, sample_rate: SampleRate::new(0.02).unwrap() };
    [
        (vec![poisson(2.744, 500.0 / 27000.0, 5000)], Adjacency::AddRemove, delta(1e-5)),
        (vec![poisson(2.744, 500.0 / 27000.0, 5000)], Adjacency::ReplaceOne, delta(1e-5)),
        (vec![gaussian.clone()], Adjacency::ReplaceOne, delta(1e-6)),
        (vec![laplace.clone()], Adjacency::ReplaceOne, delta(0.0)),
        (vec![laplace, gaussian, poisson(1.5, 0.01, 300)], Adjacency::ReplaceOne, delta(1e-7)),
        (vec![zcdp], Adjacency::ReplaceOne, delta(1e-5)),
        (vec![CountedEvent::new(one_pass, Steps::ONE)], Adjacency::ReplaceOne, delta(1e-5)),
        (vec![CountedEvent::new(fixed, Steps::new(500).unwrap())], Adjacency::ReplaceOne, delta(1e-5)),
    ]
    .into_iter()
    .map(|(events, adjacency, delta)| {
        Certificate::issue(events, adjacency, Trust::Central, delta, "custom: a test").unwrap()
    })
    .collect()
}

#[test]
fn what_we_issue_verifies_also_after_a_round_trip_through_text() {
    for certificate in samples() {
        let text = serde_json::to_string(&certificate).unwrap();
        let read = Certificate::from_json(&text).unwrap();
        assert_eq!(read, certificate);
        let verdict = read.verify().unwrap();
        assert!(verdict.valid, "{:?}", verdict.objections);
        assert!(verdict.epsilon.get() >= 0.999 * certificate.guarantee.epsilon.get());
    }
}

/// Each edit makes a false claim: a smaller epsilon, δ or ρ, less noise, more steps, a larger
/// sample, a stronger adjacency, fewer releases, a better accountant.
#[test]
fn edits_by_hand_are_refused() {
    let edit = |certificate: &Certificate, pointer: &str, factor: f64| {
        let mut value = serde_json::to_value(certificate).unwrap();
        let field = value.pointer_mut(pointer)?;
        *field = match field.as_u64() {
            Some(count) => ((count as f64 * factor).ceil() as u64).into(),
            None => (field.as_f64()? * factor).into(),
        };
        Some(Certificate::from_value(value).unwrap())
    };
    for certificate in samples() {
        let mut edited = 0;
        for (pointer, factor) in [
            ("/guarantee/epsilon", 0.999),
            ("/guarantee/epsilon", 0.5),
            ("/guarantee/delta", 0.9),
            ("/guarantee/rho", 0.99),
            ("/events/0/noise_multiplier", 0.99),
            ("/events/0/sample_rate", 1.01),
            ("/events/0/rho", 1.01),
            ("/events/0/count", 1.5),
            ("/releases", 2.0),
            ("/accountants/pld", 0.99),
            ("/accountants/rdp", 0.99),
        ] {
            // Pure guarantees have δ = 0, which no factor lowers.
            if pointer == "/guarantee/delta" && certificate.guarantee.delta.get() == 0.0 {
                continue;
            }
            if let Some(forged) = edit(&certificate, pointer, factor) {
                edited += 1;
                let verdict = forged.verify().unwrap();
                assert!(!verdict.valid, "{pointer} x {factor} was accepted: {forged:?}");
            }
        }
        assert!(edited >= 4);
    }
    let mut weaker = samples()[0].clone();
    weaker.guarantee.adjacency = Adjacency::ReplaceOne;
    assert!(!weaker.verify().unwrap().valid);
}

#[test]
fn malformed_certificates_are_refused() {
    let good = serde_json::to_value(&samples()[0]).unwrap();
    for (pointer, value, word) in [
        ("/format", serde_json::json!("semidp-certificate/9"), "semidp-certificate/9"),
        ("/guarantee/epsilon", serde_json::json!(-1.0), "epsilon"),
        ("/guarantee/protects", serde_json::json!("everybody"), "everybody"),
        ("/events/0/event", serde_json::json!("sorcery"), "sorcery"),
        ("/releases", serde_json::json!("many"), ""),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        let error = Certificate::from_value(bad).unwrap_err().to_string();
        assert!(error.contains(word), "{pointer}: {error}");
    }
    assert!(Certificate::from_json("").is_err());
    assert!(Certificate::from_json("[]").is_err());
    let mut extra = good;
    extra.as_object_mut().unwrap().insert("signed".into(), true.into());
    assert!(Certificate::from_value(extra).is_err());
}

#[test]
fn a_certificate_without_events_can_claim_only_zero() {
    let mut empty = samples()[0].clone();
    empty.events.clear();
    empty.releases = 0;
    let verdict = empty.verify();
    assert!(verdict.is_ok_and(|v| v.epsilon.get() == 0.0));
}

/// Checking copies and quotes what a certificate states, so its size is limited.
#[test]
fn certificates_are_limited_in_size() {
    let mut large = samples()[0].clone();
    let stated = |value| Provenance { name: "schema".into(), value, source: "user".into() };
    let names =
        |count: usize| serde_json::Value::from(vec!["a name of forty letters, or a little more"; count]);
    large.hyperparameters.push(stated(names(100_000)));
    let text = serde_json::to_string(&large).unwrap();
    assert!(Certificate::from_json(&text).unwrap().verify().unwrap().valid);
    for (value, limit) in [
        (vec![0; 500_000].into(), "more than 500000 JSON values and keys"),
        (names(250_000), "more than 8 MiB of text"),
        ("x".repeat(9 << 20).into(), "more than 8 MiB of text"),
    ] {
        large.hyperparameters[0].value = value;
        let text = serde_json::to_string(&large).unwrap();
        let error = Certificate::from_json(&text).unwrap_err().to_string();
        assert!(error.contains(limit), "{error}");
    }
}
