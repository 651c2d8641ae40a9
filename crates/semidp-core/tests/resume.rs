//! Runs that are interrupted: the same draws, the same price, and nothing else than the same run.

use semidp_core::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const STEPS: u64 = 6;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("semidp-resume-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn rows(change: f32) -> Private<DenseTable<f32>> {
    let mut values: Vec<f32> = (0..600).map(|x| (x * 37 % 101) as f32 / 101.0).collect();
    values[311] += change;
    Private::new(DenseTable::new(values, 3).unwrap())
}

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

fn program(noise: f64, rate: f64, steps: u64) -> Program<Gaussian> {
    let sampling = Sampling::Poisson { rate: SampleRate::new(rate).unwrap() };
    let noise = Gaussian::new(NoiseMultiplier::new(noise).unwrap());
    Program::new(noise, sampling, Steps::new(steps).unwrap())
}

/// Grants everything, and remembers for which run.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<RunId>>>);

impl Ledger for Notes {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        self.0.lock().unwrap().push(charge.run);
        Ok(())
    }
}

fn session(key: KeyFile, change: f32) -> Session<DenseTable<f32>> {
    Session::new(rows(change), Adjacency::ReplaceOne).unwrap().with_key_file(Arc::new(key))
}

/// The releases of some steps of a run.
fn releases(run: &Run<'_, DenseTable<f32>, Gaussian>, tickets: &mut Tickets, count: usize) -> Vec<Vec<f64>> {
    let query = ClippedSum::l2(Public(vec![0.5; 3]), 1.0).unwrap();
    let step = |ticket| run.noise(run.sum(&query, ticket).unwrap()).unwrap().into_inner();
    tickets.by_ref().take(count).map(step).collect()
}

/// What a caller keeps.
struct Saved {
    identity: Identity,
    done: u64,
    seal: String,
}

impl Saved {
    fn kept(&self) -> Kept<'_> {
        Kept { identity: &self.identity, done: self.done, text: "iterate", seal: &self.seal }
    }
}

fn begun(place: &Place, done: usize) -> (Vec<Vec<f64>>, Saved) {
    let session = session(KeyFile::create(&place.0, Randomness::Seed(9)).unwrap(), 0.0);
    let prepared = session.prepare(program(2.0, 0.3, STEPS), delta()).unwrap();
    let (run, mut tickets) = prepared.begin().unwrap();
    let found = releases(&run, &mut tickets, done);
    let seal = run.seal(done as u64, "iterate").unwrap();
    (found, Saved { identity: run.identity().unwrap().clone(), done: done as u64, seal })
}

/// Wherever a run is interrupted, it goes on with the draws it would have made, under the name it began with.
#[test]
fn a_continued_run_releases_what_it_would_have() {
    let (whole, _) = begun(&Place::new("whole"), STEPS as usize);
    for done in 0..=STEPS as usize {
        let place = Place::new(&format!("whole-{done}"));
        let (mut found, saved) = begun(&place, done);
        let notes = Notes::default();
        let key = KeyFile::open(&place.0).unwrap();
        let name = key.run();
        let session = session(key, 0.0).with_ledger(notes.clone());
        let prepared = session.prepare(program(2.0, 0.3, STEPS), delta()).unwrap();
        let (run, mut tickets, released) = prepared.resume(&saved.kept()).unwrap();
        found.extend(releases(&run, &mut tickets, STEPS as usize));
        assert_eq!(found, whole, "{done}");
        assert_eq!(*notes.0.lock().unwrap(), [name]);
        let release = run.finish(tickets, released.map(|()| 1)).unwrap();
        assert_eq!(release.certificate.events, saved.identity.events);
        assert_eq!(release.certificate.random_source, semidp_accounting::RandomSource::Seeded);
    }
}

/// The noise of a run is never used on something else: each difference is refused by name, before the ledger hears.
#[test]
fn another_run_is_refused() {
    let place = Place::new("another");
    let (_, saved) = begun(&place, 2);
    let refusal = |change: f32, program: Program<Gaussian>, delta: Delta| {
        let session = session(KeyFile::open(&place.0).unwrap(), change)
            .with_ledger(Budget::new(Epsilon::new(0.0).unwrap(), Delta::new(0.0).unwrap()));
        let prepared = session.prepare(program, delta).unwrap();
        match prepared.resume(&saved.kept()) {
            Err(Error::AnotherRun { difference }) => difference,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it went on"),
        }
    };
    let usual = || program(2.0, 0.3, STEPS);
    assert_eq!(refusal(1e-6, usual(), delta()), "the private rows are not those that it began with");
    assert_eq!(refusal(0.0, program(2.0, 0.3, 7), delta()), "steps was 6 and is 7");
    assert!(refusal(0.0, program(1.9, 0.3, STEPS), delta()).starts_with("the privacy event was"));
    assert!(refusal(0.0, program(2.0, 0.31, STEPS), delta()).starts_with("the privacy event was"));
    let other = Delta::new(2e-6).unwrap();
    assert!(refusal(0.0, usual(), other).starts_with("delta was"));
    assert!(refusal(0.0, usual().with_dimension(4), delta()).starts_with("the number of weights was 3"));
}

#[test]
fn what_the_run_did_not_seal_is_refused() {
    let place = Place::new("seal");
    let (_, saved) = begun(&place, 2);
    let other_place = Place::new("other-key");
    let (_, other) = begun(&other_place, 2);
    let resume = |key: &Place, kept: Kept<'_>| {
        let session = session(KeyFile::open(&key.0).unwrap(), 0.0);
        let prepared = session.prepare(program(2.0, 0.3, STEPS), delta()).unwrap();
        prepared.resume(&kept).map(|_| ())
    };
    assert_eq!(resume(&place, saved.kept()), Ok(()));
    let sealed = saved.kept();
    assert_eq!(resume(&place, Kept { text: "Iterate", ..sealed }), Err(Error::Tampered));
    assert_eq!(resume(&place, Kept { done: 1, ..sealed }), Err(Error::Tampered));
    assert_eq!(resume(&place, Kept { done: STEPS + 1, ..sealed }), Err(Error::Tampered));
    assert_eq!(resume(&place, Kept { seal: &other.seal, ..sealed }), Err(Error::Tampered));
    assert_eq!(resume(&place, Kept { seal: "", ..sealed }), Err(Error::Tampered));
    // The key of one run and the checkpoint of another.
    assert!(matches!(resume(&other_place, sealed), Err(Error::AnotherRun { .. })));
    let mut renamed = saved.identity.clone();
    renamed.run = other.identity.run.clone();
    assert!(resume(&other_place, Kept { identity: &renamed, ..sealed }).is_err());
}

/// A caller that goes on with another question gets other noise: the difference of both answers has noise in it.
#[test]
fn another_question_gets_other_noise() {
    let place = Place::new("question");
    let program = || {
        let noise = Gaussian::new(NoiseMultiplier::new(2.0).unwrap());
        Program::new(noise, Sampling::Everyone, Steps::new(STEPS).unwrap())
    };
    let answer = |run: &Run<'_, DenseTable<f32>, Gaussian>, mut tickets: Tickets, centre: f64| {
        let query = ClippedSum::l2(Public(vec![centre; 3]), 4.0).unwrap();
        run.noise(run.sum(&query, tickets.next().unwrap()).unwrap()).unwrap().into_inner()
    };
    let first = session(KeyFile::create(&place.0, Randomness::Seed(9)).unwrap(), 0.0);
    let prepared = first.prepare(program(), delta()).unwrap();
    let seal = prepared.seal("iterate").unwrap();
    let saved = Saved { identity: prepared.identity().unwrap().clone(), done: 0, seal };
    let (run, tickets) = prepared.begin().unwrap();
    let original = answer(&run, tickets, 0.5);
    drop(run);
    drop(first);
    // 200 rows, none of them clipped: the sums differ by 50 in each coordinate, up to truncation.
    for (centre, gap) in [(0.5, 0.0), (0.25, 50.0)] {
        let again = session(KeyFile::open(&place.0).unwrap(), 0.0);
        let prepared = again.prepare(program(), delta()).unwrap();
        let (run, tickets, _) = prepared.resume(&saved.kept()).unwrap();
        let found = answer(&run, tickets, centre);
        let off = found.iter().zip(&original).map(|(b, a)| (b - a - gap).abs()).fold(0.0, f64::max);
        assert!(if gap == 0.0 { off == 0.0 } else { off > 1.0 }, "{centre}: {found:?} {original:?}");
    }
}

/// A key draws one run: neither a second one in its session, nor a new one with an old key.
#[test]
fn a_key_is_for_one_run() {
    let place = Place::new("one");
    let key = KeyFile::create(&place.0, Randomness::OperatingSystem).unwrap();
    let first = session(key, 0.0);
    assert!(first.authorise(program(2.0, 0.3, STEPS), delta()).is_ok());
    let again = first.authorise(program(2.0, 0.3, STEPS), delta()).map(|_| ());
    assert_eq!(again, Err(Error::Foreign { thing: "key file" }));
    drop(first);
    // Nor one in each of two sessions, on other rows.
    let shared_place = Place::new("shared");
    let shared = Arc::new(KeyFile::create(&shared_place.0, Randomness::OperatingSystem).unwrap());
    let sessions = [0.0, 1.0].map(|change| {
        Session::new(rows(change), Adjacency::ReplaceOne).unwrap().with_key_file(shared.clone())
    });
    assert!(sessions[0].authorise(program(2.0, 0.3, STEPS), delta()).is_ok());
    let other = sessions[1].authorise(program(2.0, 0.3, STEPS), delta()).map(|_| ());
    assert_eq!(other, Err(Error::Foreign { thing: "key file" }));
    let second = session(KeyFile::open(&place.0).unwrap(), 0.0);
    let begun = second.authorise(program(2.0, 0.3, STEPS), delta()).map(|_| ());
    assert_eq!(begun, Err(Error::Foreign { thing: "key file" }));
    // Without a key file nothing can be kept.
    let plain = Session::new(rows(0.0), Adjacency::ReplaceOne).unwrap();
    let (run, _) = plain.authorise(program(2.0, 0.3, STEPS), delta()).unwrap();
    assert!(run.identity().is_none() && run.seal(0, "").is_err());
}

/// Under add/remove an identity does not tell how many rows there are.
#[test]
fn a_secret_count_stays_secret() {
    let place = Place::new("count");
    let key = Arc::new(KeyFile::create(&place.0, Randomness::OperatingSystem).unwrap());
    let session = Session::new(rows(0.0), Adjacency::AddRemove).unwrap().with_key_file(key);
    let prepared = session.prepare(program(2.0, 0.3, STEPS), delta()).unwrap();
    let mut identity = prepared.identity().unwrap().clone();
    // Random digits, in which any number may turn up.
    identity.rows.clear();
    identity.run.clear();
    let text = serde_json::to_string(&identity).unwrap();
    assert!(text.contains("\"units\":null") && !text.contains("200"), "{text}");
}
