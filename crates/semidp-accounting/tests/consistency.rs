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
        "rounded Gaussian noise",
        "Gaussian noise on the sum of clipped contributions, 60 releases",
    ] {
        let mut forged = trained();
        if words.ends_with("releases") {
            (forged.arithmetic, forged.random_source) = (Arithmetic::Idealised, RandomSource::None);
        }
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
    sampled.mechanism = "custom: unknown".into();
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
    refused(&inexact, "mechanism");
    let noise_multiplier = NoiseMultiplier::new(4.0).unwrap();
    inexact.events = vec![CountedEvent::new(Event::KNorm { noise_multiplier, dimension: 3 }, Steps::ONE)];
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
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Central, delta, "custom: a test").unwrap();
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
        "mean: pooled-gaussian, rounded Gaussian noise",
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

fn laplace_mean() -> Certificate {
    let event = Event::Laplace { noise_multiplier: NoiseMultiplier::new(2.0).unwrap(), dimension: 8 };
    let (events, delta) = (vec![CountedEvent::new(event, Steps::ONE)], Delta::new(0.0).unwrap());
    let words = "mean: shift-robust-laplace, rounded Laplace noise";
    let mut certificate =
        Certificate::issue(events, Adjacency::ReplaceOne, Trust::Central, delta, words).unwrap();
    certificate.arithmetic = Arithmetic::Exact;
    certificate.random_source = RandomSource::OperatingSystem;
    certificate.hyperparameters = vec![
        stated("noise-multiplier", json!(2.0)),
        stated("joint-clip-norm", json!(7.5)),
        stated("budget", json!({ "epsilon": 1.0, "delta": 1e-5 })),
    ];
    certificate
}

/// As `semidp account` issues it.
fn computed() -> Certificate {
    let event = Event::KNorm { noise_multiplier: NoiseMultiplier::new(2.0).unwrap(), dimension: 2 };
    let (events, delta) = (vec![CountedEvent::new(event, Steps::ONE)], Delta::new(0.0).unwrap());
    let words = "K-norm noise on the sum of clipped contributions, 1 release";
    Certificate::issue(events, Adjacency::ReplaceOne, Trust::Central, delta, words).unwrap()
}

#[test]
fn a_mechanism_is_one_that_semidp_writes() {
    for certificate in [laplace_mean(), computed()] {
        let verdict = certificate.verify().unwrap();
        assert!(verdict.valid, "{:?}", verdict.objections);
    }
    for words in [
        " mean: shift-robust-laplace, rounded Laplace noise",
        "mean: shift-robust-laplace, rounded Laplace noise ",
        "Mean: shift-robust-laplace, rounded Laplace noise",
        "mean:shift-robust-laplace, rounded Laplace noise",
        "mean:  shift-robust-laplace, rounded Laplace noise",
        "\u{200b}mean: shift-robust-laplace, rounded Laplace noise",
        "me\u{430}n: shift-robust-laplace, rounded Laplace noise",
        "mean: shift-robust-laplace, rounded Laplace noise\n",
        "mean: x",
        "mean: none-laplace, rounded Laplace noise",
        "mean: shift-robust-laplace",
        "mean: shift-robust-laplace, rounded laplace noise",
        "mean: shift-robust-gaussian, rounded Laplace noise",
        "mean: shift-robust-gaussian, rounded gaussian noise",
        "mean: non-private",
        "mean: throw-away, no private row was read",
        "Laplace noise",
        "noise",
        "",
        "custom:",
        "custom: ",
        "custom: \u{200b}",
        "custom: two  spaces",
        " custom: mine",
    ] {
        let mut forged = laplace_mean();
        forged.mechanism = words.into();
        refused(&forged, "mechanism");
        forged.guarantee.trust = Trust::Local;
        refused(&forged, "mechanism");
        forged.guarantee.trust = Trust::Central;
        forged.random_source = RandomSource::None;
        refused(&forged, "mechanism");
    }
    let mut aside = laplace_mean();
    aside.guarantee.trust = Trust::Local;
    refused(&aside, "trust");
}

/// Nothing that `verify` refuses for its name can be issued.
#[test]
fn certificates_of_unknown_mechanisms_are_not_issued() {
    let issue = |words: &str| {
        let (adjacency, delta) = (Adjacency::ReplaceOne, Delta::new(0.0).unwrap());
        Certificate::issue(laplace_mean().events, adjacency, Trust::Central, delta, words)
    };
    let long = format!("custom: {}", "x".repeat(300));
    for words in ["a test", "mean: x", "custom: \u{200b}", "", "train: semi-dp-sgd", &long] {
        assert!(
            matches!(issue(words), Err(Error::InvalidParameter { name: "mechanism", .. })),
            "{words}: {:?}",
            issue(words)
        );
    }
    let mut own = issue("custom: geometric noise on counts").unwrap();
    assert!(own.is_custom() && !laplace_mean().is_custom());
    assert!(own.verify().unwrap().valid);
    // What semidp does not know is not exact because its certificate says so.
    own.random_source = RandomSource::OperatingSystem;
    assert!(own.verify().unwrap().valid);
    own.arithmetic = Arithmetic::Exact;
    refused(&own, "arithmetic");
}

#[test]
fn mechanisms_of_account_agree_with_their_events() {
    let noise_multiplier = NoiseMultiplier::new(4.0).unwrap();
    let event = Event::PoissonGaussian { noise_multiplier, sample_rate: SampleRate::new(0.01).unwrap() };
    let words =
        "Gaussian noise on the sum of clipped contributions, 1,200 releases, Poisson sampling at rate 0.01";
    let issue = |words: &str, trust| {
        let events = vec![CountedEvent::new(event.clone(), Steps::new(1200).unwrap())];
        Certificate::issue(events, Adjacency::ReplaceOne, trust, Delta::new(1e-6).unwrap(), words).unwrap()
    };
    let honest = issue(words, Trust::Central);
    assert!(honest.verify().unwrap().valid, "{:?}", honest.verify().unwrap().objections);
    for (from, to, word) in [
        ("1,200", "12", "mechanism"),
        (", Poisson sampling at rate 0.01", "", "mechanism"),
        ("0.01", "0.001", "mechanism"),
        ("Poisson sampling", "samples of fixed size", "mechanism"),
        ("Gaussian", "Laplace", "mechanism"),
        ("the sum of clipped contributions", "each person's own clipped contribution", "trust"),
    ] {
        let mut forged = honest.clone();
        forged.mechanism = words.replace(from, to);
        refused(&forged, word);
    }
    let listed = issue("1,200 releases by 1 kinds of event, as given by the user", Trust::Central);
    assert!(listed.verify().unwrap().valid, "{:?}", listed.verify().unwrap().objections);
    for words in [
        "12 releases by 1 kinds of event, as given by the user",
        "1,200 releases by 2 kinds of event, as given by the user",
    ] {
        let mut forged = listed.clone();
        forged.mechanism = words.into();
        refused(&forged, "mechanism");
    }
    for computed in [honest, listed] {
        let mut drawn = computed;
        drawn.random_source = RandomSource::OperatingSystem;
        refused(&drawn, "random_source");
    }
}

/// Exact are the kernel's Gaussian and Laplace noise, and randomisers whose reports are.
#[test]
fn exact_arithmetic_is_that_of_events_and_randomisers() {
    for words in ["mean: weighted-k-norm, K-norm noise", "K-norm noise", "custom: anything"] {
        let mut forged = computed();
        forged.mechanism = words.into();
        forged.random_source = RandomSource::OperatingSystem;
        assert!(forged.verify().unwrap().valid, "{words}: {:?}", forged.verify().unwrap().objections);
        forged.arithmetic = Arithmetic::Exact;
        refused(&forged, "arithmetic");
    }
    let mut nothing_drawn = computed();
    nothing_drawn.arithmetic = Arithmetic::Exact;
    refused(&nothing_drawn, "arithmetic");
    let wrap: [fn(&str) -> String; 4] = [
        |report| report.into(),
        |report| format!("{report}, drawn by each person's own device"),
        |report| format!("train: auto, semi-ldp-gain, {report}"),
        |report| format!("train: ldp-sgd, {report}"),
    ];
    for (randomiser, dimension, is_exact) in [
        ("duchi", 3, true),
        ("rank-privunit", 3, true),
        ("privunit", 1, true),
        ("privunit", 3, false),
        ("privunitg", 1, false),
        ("privunitg", 3, false),
    ] {
        for wrap in wrap {
            let mut certificate = reported();
            certificate.mechanism = wrap(&format!("local: {randomiser} of a vector of {dimension} numbers"));
            if certificate.mechanism.ends_with("device") {
                certificate.random_source = RandomSource::None;
            }
            certificate.arithmetic = Arithmetic::Idealised;
            let verdict = certificate.verify().unwrap();
            assert!(verdict.valid, "{}: {:?}", certificate.mechanism, verdict.objections);
            certificate.arithmetic = Arithmetic::Exact;
            if is_exact {
                assert!(certificate.verify().unwrap().valid);
            } else {
                refused(&certificate, "arithmetic");
            }
            certificate.random_source = match certificate.random_source {
                RandomSource::None => RandomSource::OperatingSystem,
                _ => RandomSource::None,
            };
            refused(&certificate, "random_source");
        }
    }
    let mut twice = reported();
    twice.mechanism = "local: duchi of a vector of 3 numbers, the last of 2 reports of each person".into();
    refused(&twice, "mechanism");
    twice.events[0].count = Steps::new(2).unwrap();
    twice.releases = 2;
    twice.guarantee = Guarantee { epsilon: Epsilon::new(2.0).unwrap(), rho: None, ..twice.guarantee };
    assert!(twice.verify().unwrap().valid, "{:?}", twice.verify().unwrap().objections);
}

#[test]
fn names_of_hyperparameters_are_plain_and_unique() {
    for name in [
        "Noise-Multiplier",
        "noise multiplier",
        "noise-multiplier ",
        "n\u{43e}ise-multiplier",
        "noise-multiplier\u{200b}",
        "NOISE_MULTIPLIER",
        "-noise",
        "",
        "noise--multiplier",
        "noisemultiplier",
        // The same as one that is there.
        "clip_norm",
        "clip-norm",
    ] {
        let mut forged = trained();
        forged.hyperparameters.push(stated(name, json!(1000.0)));
        refused(&forged, "hyperparameters");
    }
}

#[test]
fn hyperparameters_that_repeat_the_guarantee_agree_with_it() {
    for (name, false_value, true_value) in [
        ("epsilon", json!(0.001), json!(1.0)),
        ("epsilon", json!("1"), json!(2.5)),
        ("delta", json!(-1e-9), json!(0.0)),
        ("delta", json!(null), json!(1e-5)),
        ("rho", json!(1e-9), json!(0.5)),
        ("adjacency", json!("add-remove"), json!("replace-one")),
        ("trust", json!("local"), json!("central")),
        ("arithmetic", json!("idealised"), json!("exact")),
        ("random-source", json!("seeded"), json!("operating-system")),
        ("random_source", json!("none"), json!("operating-system")),
        ("protects", json!("all rows"), json!("private rows only")),
        ("algorithm", json!("none"), json!("shift-robust-laplace")),
        ("events", json!(2), json!(1)),
        ("dimension", json!(1), json!(8)),
    ] {
        let mut certificate = laplace_mean();
        certificate.hyperparameters.push(stated(name, true_value));
        let verdict = certificate.verify().unwrap();
        assert!(verdict.valid, "{name}: {:?}", verdict.objections);
        certificate.hyperparameters.last_mut().unwrap().value = false_value;
        refused(&certificate, name);
    }
    for (name, value) in [("seed", json!(1)), ("randomizer", json!("duchi")), ("mechanism", json!("duchi"))] {
        let mut certificate = laplace_mean();
        certificate.hyperparameters.push(stated(name, value));
        refused(&certificate, name);
    }
    let mut seeded = laplace_mean();
    seeded.random_source = RandomSource::Seeded;
    seeded.hyperparameters.push(stated("seed", json!(1)));
    assert!(seeded.verify_allowing_seeded().unwrap().valid);
    for budget in [
        json!({ "epsilon": 0.01, "delta": 0 }),
        json!({ "epsilon": 0.999 }),
        json!({ "rho": 1e-3 }),
        json!({ "epsilon": 1, "eps": 2 }),
        json!({ "delta": 1e-5 }),
        json!({}),
        json!({ "epsilon": "1" }),
        json!("none"),
        json!(1.0),
    ] {
        let mut certificate = laplace_mean();
        certificate.hyperparameters[2].value = budget;
        refused(&certificate, "budget");
    }
    for budget in [json!({ "epsilon": 1 }), json!({ "epsilon": 2, "delta": 0.1 }), json!({ "rho": 0.5 })] {
        let mut certificate = laplace_mean();
        certificate.hyperparameters[2].value = budget;
        assert!(certificate.verify().unwrap().valid);
    }
    let mut above = trained();
    let epsilon = above.guarantee.epsilon.get();
    above.hyperparameters.push(stated("budget", json!({ "epsilon": epsilon, "delta": 1e-7 })));
    refused(&above, "budget");
    above.hyperparameters.last_mut().unwrap().value = json!({ "epsilon": epsilon, "delta": 1e-6 });
    assert!(above.verify().unwrap().valid);
    // This release has no zCDP guarantee.
    above.hyperparameters.last_mut().unwrap().value = json!({ "rho": 1e3 });
    refused(&above, "budget");
}

/// Epsilon 0 stands without evidence only where the mechanism reads no private row and nothing of a release is stated.
#[test]
fn a_release_without_events_is_refused() {
    let mut emptied = laplace_mean();
    emptied.events.clear();
    emptied.releases = 0;
    emptied.random_source = RandomSource::None;
    emptied.guarantee = Guarantee { epsilon: Epsilon::new(0.0).unwrap(), rho: None, ..emptied.guarantee };
    emptied.hyperparameters.clear();
    for words in [
        "mean: shift-robust-laplace",
        "mean: shift-robust-laplace, rounded Laplace noise",
        "train: semi-dp-sgd, rounded Gaussian noise",
        "rounded Gaussian noise",
        "Gaussian noise on the sum of clipped contributions, 0 releases",
        "local: duchi of a vector of 3 numbers",
        "train: non-private, the rows were used as they are and nothing is promised",
    ] {
        emptied.mechanism = words.into();
        refused(&emptied, "mechanism");
    }
    for words in ["mean: throw-away, no private row was read", "custom: public rows alone"] {
        emptied.mechanism = words.into();
        assert!(emptied.verify().unwrap().valid);
        for name in [
            "joint-clip-norm",
            "square_scale",
            "unreadable-scale",
            "clipped-scale",
            "noise-price",
            "accuracy-price",
            "groups",
            "sampling",
        ] {
            let mut forged = emptied.clone();
            forged.hyperparameters = vec![stated(name, json!(1.0))];
            refused(&forged, name);
        }
    }
}

#[test]
fn algorithms_have_their_events_and_trust() {
    for words in [
        "train: throw-away",
        "train: throw-away, no private row was used",
        "train: auto, throw-away, no private row was used",
        "train: throw-away, rounded Gaussian noise",
        "train: non-private",
        "train: non-private, the rows were used as they are and nothing is promised",
        "train: semi-ldp-gain",
        "train: semi-ldp-gain, rounded Gaussian noise",
        "train: auto, semi-ldp-sgd, rounded Gaussian noise",
        "train: dp-sgd, rounded Laplace noise",
        "train: dp-sgd, local: duchi of a vector of 3 numbers",
        "train: auto, rounded Gaussian noise",
        "train: auto, auto, rounded Gaussian noise",
        "train: sgd, rounded Gaussian noise",
        "none: nobody reported, and the public rows answer alone",
    ] {
        let mut forged = trained();
        forged.mechanism = words.into();
        refused(&forged, "mechanism");
    }
    let mut open = free();
    open.mechanism = "train: non-private, the rows were used as they are and nothing is promised".into();
    refused(&open, "mechanism");
    let mut local = reported();
    local.mechanism = "train: semi-ldp-gain, local: duchi of a vector of 3 numbers".into();
    assert!(local.verify().unwrap().valid, "{:?}", local.verify().unwrap().objections);
    local.guarantee.trust = Trust::Central;
    refused(&local, "trust");
    let mut other = trained();
    other.hyperparameters.push(stated("algorithm", json!("dp-sgd")));
    refused(&other, "algorithm");
    other.hyperparameters.last_mut().unwrap().value = json!("semi-dp-sgd");
    assert!(other.verify().unwrap().valid);
    let mut named = reported();
    named.hyperparameters = vec![stated("randomizer", json!("privunit"))];
    refused(&named, "randomizer");
    named.hyperparameters = vec![stated("mechanism", json!("rank-privunit"))];
    refused(&named, "mechanism");
    named.hyperparameters = vec![stated("mechanism", json!("duchi")), stated("dimension", json!(4))];
    refused(&named, "dimension");
    named.hyperparameters[1].value = json!(3);
    assert!(named.verify().unwrap().valid, "{:?}", named.verify().unwrap().objections);
}

#[test]
fn a_version_is_plain_text() {
    let mut certificate = trained();
    certificate.version = "\u{1b}[2J99".into();
    refused(&certificate, "version");
}
