//! Asks the accountants every kind of question about every kind of event, over a wider range than
//! they support. An error is a fine answer, unless it says that the accountants disagree; a panic,
//! a hang, a NaN or a certificate that fails its own check is a finding.
//!
//! The `Debug` form of an input is its question in Rust: `cargo +nightly fuzz fmt accounting FILE`.
#![no_main]

use arbitrary::{Arbitrary, Result as Drawn, Unstructured};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use semidp_accounting::{
    Adjacency, Certificate, CountedEvent, Delta, Epsilon, Error, Event, NoiseMultiplier, Result, Rho,
    SampleRate, Steps, Trust, calibrate_noise, calibrate_steps, delta, epsilon,
};
use std::fmt;

const MOST_EVENTS: usize = 4;
/// Calibration does not look below this noise multiplier.
const LEAST_NOISE: f64 = 0.05;
/// No input reads more bytes than this: 7 for the question and 8 an event, at most.
const LONGEST_INPUT: usize = 8 + 8 * MOST_EVENTS;

/// One question an input asks. Each input asks one, so that a hang names its culprit.
#[derive(Clone, Copy)]
enum Question {
    Epsilon(Delta),
    Delta(Epsilon),
    /// Every event with a noise multiplier gets the one that is searched for.
    CalibrateNoise(Epsilon, Delta),
    /// The first event gets the count that is searched for.
    CalibrateSteps(Epsilon, Delta),
    Certify(Delta),
}

struct Input {
    adjacency: Adjacency,
    events: Vec<CountedEvent>,
    question: Question,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Drawn<Self> {
        let adjacency = *bytes.choose(&[Adjacency::AddRemove, Adjacency::ReplaceOne])?;
        let question = draw_question(bytes)?;
        let count = bytes.int_in_range(1..=MOST_EVENTS)?;
        let events = (0..count).map(|_| draw_event(bytes)).collect::<Drawn<_>>()?;
        Ok(Self { adjacency, events, question })
    }
}

fn draw_question(bytes: &mut Unstructured) -> Drawn<Question> {
    Ok(match bytes.int_in_range(0..=4)? {
        0 => Question::Epsilon(draw_delta(bytes)?),
        1 => Question::Delta(draw_epsilon(bytes)?),
        2 => Question::CalibrateNoise(draw_epsilon(bytes)?, draw_delta(bytes)?),
        3 => Question::CalibrateSteps(draw_epsilon(bytes)?, draw_delta(bytes)?),
        _ => Question::Certify(draw_delta(bytes)?),
    })
}

fn draw_event(bytes: &mut Unstructured) -> Drawn<CountedEvent> {
    let kind = bytes.int_in_range(0..=7)?;
    let noise_multiplier = NoiseMultiplier::new(log_uniform(bytes, 1e-3, 1e6)?).unwrap();
    let event = match kind {
        0 => Event::Gaussian { noise_multiplier },
        1 => Event::Laplace { noise_multiplier, dimension: draw_whole(bytes, 1e6)? },
        2 => Event::KNorm { noise_multiplier, dimension: draw_whole(bytes, 1e6)? },
        3 => Event::PoissonGaussian { noise_multiplier, sample_rate: draw_sample_rate(bytes)? },
        4 => Event::FixedSizeGaussian { noise_multiplier, sample_rate: draw_sample_rate(bytes)? },
        5 => Event::OnePassGaussian { noise_multiplier, blocks: draw_whole(bytes, 1e18)? },
        6 => Event::Pure { epsilon: draw_epsilon(bytes)? },
        _ => Event::Zcdp { rho: Rho::new(log_uniform(bytes, 1e-10, 1e4)?).unwrap() },
    };
    let count = Steps::new(draw_whole(bytes, Steps::MAX as f64)?).unwrap();
    Ok(CountedEvent::new(event, count))
}

fn draw_sample_rate(bytes: &mut Unstructured) -> Drawn<SampleRate> {
    Ok(SampleRate::new(log_uniform(bytes, 1e-9, 1.0)?).unwrap())
}

fn draw_epsilon(bytes: &mut Unstructured) -> Drawn<Epsilon> {
    Ok(Epsilon::new(log_uniform(bytes, 1e-5, 500.0)?).unwrap())
}

/// One draw in sixteen is 0, which asks for a pure guarantee.
fn draw_delta(bytes: &mut Unstructured) -> Drawn<Delta> {
    let value = if bytes.ratio(1u8, 16u8)? { 0.0 } else { log_uniform(bytes, 1e-18, 0.5)? };
    Ok(Delta::new(value).unwrap())
}

fn draw_whole(bytes: &mut Unstructured, high: f64) -> Drawn<u64> {
    Ok(log_uniform(bytes, 1.0, high)?.round() as u64)
}

/// 16 bits place the number on a logarithmic scale: enough to be generic, few enough that the
/// fuzzer's mutations reach both ends, which are exact.
fn log_uniform(bytes: &mut Unstructured, low: f64, high: f64) -> Drawn<f64> {
    Ok(match u16::arbitrary(bytes)? {
        0 => low,
        u16::MAX => high,
        place => (low.ln() + f64::from(place) / f64::from(u16::MAX) * (high / low).ln()).exp(),
    })
}

fn with_noise(events: &[CountedEvent], noise: NoiseMultiplier) -> Vec<CountedEvent> {
    let mut events = events.to_vec();
    for one in &mut events {
        match &mut one.event {
            Event::Gaussian { noise_multiplier }
            | Event::Laplace { noise_multiplier, .. }
            | Event::KNorm { noise_multiplier, .. }
            | Event::PoissonGaussian { noise_multiplier, .. }
            | Event::FixedSizeGaussian { noise_multiplier, .. }
            | Event::OnePassGaussian { noise_multiplier, .. } => *noise_multiplier = noise,
            _ => {}
        }
    }
    events
}

fn with_steps(events: &[CountedEvent], steps: Steps) -> Vec<CountedEvent> {
    let mut events = events.to_vec();
    events[0].count = steps;
    events
}

/// The answer, or `None` if it was refused; a contradiction between accountants is a finding.
fn answered<T>(result: Result<T>) -> Option<T> {
    match result {
        Err(error @ Error::Disagreement { .. }) => panic!("{error}"),
        other => other.ok(),
    }
}

fn check_epsilon(value: Epsilon) {
    assert!(value.get().is_finite() && value.get() >= 0.0, "epsilon {value}");
}

impl Input {
    fn ask(&self) {
        let Self { adjacency, ref events, question } = *self;
        match question {
            Question::Epsilon(at) => {
                if let Some(answer) = answered(epsilon(events, adjacency, at)) {
                    check_epsilon(answer.value);
                }
            }
            Question::Delta(at) => {
                if let Some(answer) = answered(delta(events, adjacency, at)) {
                    let value = answer.value.get();
                    assert!((0.0..1.0).contains(&value), "delta {value}");
                }
            }
            Question::CalibrateNoise(target, at) => {
                let found = calibrate_noise(target, at, adjacency, |noise| with_noise(events, noise));
                if let Some(found) = answered(found) {
                    check_epsilon(found.epsilon.value);
                    assert!(found.value.get().is_finite() && found.value.get() > 0.0);
                    assert!(found.epsilon.value <= target, "epsilon {} above target", found.epsilon.value);
                    let less = NoiseMultiplier::new(0.8 * found.value.get()).unwrap();
                    if less.get() >= LEAST_NOISE {
                        self.check_exceeds(target, at, with_noise(events, less), found.value);
                    }
                }
            }
            Question::CalibrateSteps(target, at) => {
                let found = calibrate_steps(target, at, adjacency, |steps| with_steps(events, steps));
                if let Some(found) = answered(found) {
                    check_epsilon(found.epsilon.value);
                    assert!(found.epsilon.value <= target, "epsilon {} above target", found.epsilon.value);
                    let more = found.value.get() + found.value.get() / 4 + 1;
                    if let Ok(more) = Steps::new(more) {
                        self.check_exceeds(target, at, with_steps(events, more), found.value);
                    }
                }
            }
            Question::Certify(at) => {
                let issued =
                    Certificate::issue(events.clone(), adjacency, Trust::Central, at, "custom: fuzz");
                if let Some(certificate) = answered(issued) {
                    check_epsilon(certificate.guarantee.epsilon);
                    let verdict = certificate.verify().expect("an issued certificate can be checked");
                    assert!(verdict.valid, "own certificate refused: {:?}", verdict.objections);
                }
            }
        }
    }
}

impl Input {
    /// A calibrated parameter is the extreme one: well beyond it, the target must be exceeded.
    fn check_exceeds(&self, target: Epsilon, at: Delta, beyond: Vec<CountedEvent>, found: impl fmt::Display) {
        if let Some(answer) = answered(epsilon(&beyond, self.adjacency, at)) {
            assert!(answer.value > target, "{found} is not extreme: beyond it epsilon is {}", answer.value);
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = serde_json::to_string(&self.events).unwrap();
        writeln!(f, "let events = parse_events(r#\"{events}\"#)?;")?;
        let adjacency = self.adjacency;
        match self.question {
            Question::Epsilon(at) => {
                write!(f, "epsilon(&events, Adjacency::{adjacency:?}, Delta::new({:e})?)", at.get())
            }
            Question::Delta(at) => {
                write!(f, "delta(&events, Adjacency::{adjacency:?}, Epsilon::new({:e})?)", at.get())
            }
            Question::CalibrateNoise(target, at) => write!(
                f,
                "calibrate_noise(Epsilon::new({:e})?, Delta::new({:e})?, Adjacency::{adjacency:?}, \
                 |noise| /* `events`, each with this noise multiplier */)",
                target.get(),
                at.get()
            ),
            Question::CalibrateSteps(target, at) => write!(
                f,
                "calibrate_steps(Epsilon::new({:e})?, Delta::new({:e})?, Adjacency::{adjacency:?}, \
                 |steps| {{ let mut events = events.clone(); events[0].count = steps; events }})",
                target.get(),
                at.get()
            ),
            Question::Certify(at) => write!(
                f,
                "Certificate::issue(events, Adjacency::{adjacency:?}, Trust::Central, \
                 Delta::new({:e})?, \"custom: fuzz\")?.verify()",
                at.get()
            ),
        }
    }
}

fuzz_target!(|input: Input| input.ask());

// Bytes that are never read are not worth a mutation.
fuzz_mutator!(|bytes: &mut [u8], size: usize, max_size: usize, _seed: u32| {
    fuzzer_mutate(bytes, size.min(LONGEST_INPUT), max_size.min(LONGEST_INPUT))
});
