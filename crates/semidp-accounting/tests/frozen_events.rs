//! The serialised form of events is part of every certificate and never changes.

use semidp_accounting::*;

const GOLDEN: &str = r#"[
  {"event":"gaussian","noise_multiplier":2.5,"count":1},
  {"event":"laplace","noise_multiplier":3.0,"dimension":7,"count":2},
  {"event":"k-norm","noise_multiplier":4.0,"dimension":10,"count":3},
  {"event":"poisson-gaussian","noise_multiplier":1.0,"sample_rate":0.01,"count":100},
  {"event":"fixed-size-gaussian","noise_multiplier":2.0,"sample_rate":0.02,"count":5},
  {"event":"one-pass-gaussian","noise_multiplier":2.0,"blocks":50,"count":1},
  {"event":"pure","epsilon":0.5,"count":1},
  {"event":"zcdp","rho":0.125,"count":4}
]"#;

fn events() -> Vec<CountedEvent> {
    let noise = |value: f64| NoiseMultiplier::new(value).unwrap();
    let rate = |value: f64| SampleRate::new(value).unwrap();
    [
        (Event::Gaussian { noise_multiplier: noise(2.5) }, 1),
        (Event::Laplace { noise_multiplier: noise(3.0), dimension: 7 }, 2),
        (Event::KNorm { noise_multiplier: noise(4.0), dimension: 10 }, 3),
        (Event::PoissonGaussian { noise_multiplier: noise(1.0), sample_rate: rate(0.01) }, 100),
        (Event::FixedSizeGaussian { noise_multiplier: noise(2.0), sample_rate: rate(0.02) }, 5),
        (Event::OnePassGaussian { noise_multiplier: noise(2.0), blocks: 50 }, 1),
        (Event::Pure { epsilon: Epsilon::new(0.5).unwrap() }, 1),
        (Event::Zcdp { rho: Rho::new(0.125).unwrap() }, 4),
    ]
    .into_iter()
    .map(|(event, count)| CountedEvent::new(event, Steps::new(count).unwrap()))
    .collect()
}

#[test]
fn golden_text_reads_and_writes() {
    let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(serde_json::to_value(events()).unwrap(), golden);
    assert_eq!(parse_events(GOLDEN).unwrap(), events());
}

#[test]
fn counts_and_the_dimension_of_laplace_default_to_one() {
    let parsed = parse_events(r#"[{"event":"laplace","noise_multiplier":2}]"#).unwrap();
    assert_eq!(parsed[0].count, Steps::ONE);
    assert!(matches!(parsed[0].event, Event::Laplace { dimension: 1, .. }));
}

#[test]
fn what_is_not_understood_is_refused_with_its_place() {
    for (text, place, word) in [
        (
            r#"[{"event":"gaussian","noise_multiplier":1},{"event":"gaussian","noise_multiplyer":1}]"#,
            1,
            "noise_multiplyer",
        ),
        (r#"[{"event":"gaussian","noise_multiplier":-1}]"#, 0, "noise-multiplier"),
        (r#"[{"event":"poisson-gaussian","noise_multiplier":1,"sample_rate":1.5}]"#, 0, "sample-rate"),
        (r#"[{"event":"gaussian","noise_multiplier":1,"count":0}]"#, 0, "steps"),
        (r#"[{"event":"gaussian","noise_multiplier":1,"count":1.5}]"#, 0, ""),
        (r#"[{"event":"sorcery"}]"#, 0, "sorcery"),
        (r#"[]"#, 0, "empty"),
        (r#"{"event":"gaussian"}"#, 0, "list"),
        (r#"[{"event":"gaussian""#, 0, "JSON"),
    ] {
        match parse_events(text) {
            Err(Error::MalformedEvent { index, reason }) => {
                assert_eq!(index, place, "{text}");
                assert!(reason.contains(word), "{text}: {reason}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}
