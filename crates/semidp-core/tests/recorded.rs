//! Runs that record themselves: held again they release the same, under the same name, and nothing else goes on with them.

use semidp_core::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A record in memory, with its key in a file.
struct Notes {
    key: Arc<KeyFile>,
    kept: Option<(Identity, String)>,
    written: Mutex<Option<(Identity, String)>>,
    is_refused: AtomicBool,
}

impl Record for Notes {
    fn key_file(&self) -> Arc<KeyFile> {
        self.key.clone()
    }

    fn text(&self) -> &str {
        "facts"
    }

    fn kept(&self) -> Option<Kept<'_>> {
        let (identity, seal) = self.kept.as_ref()?;
        Some(Kept { identity, done: 0, text: "facts", seal })
    }

    fn write(&self, identity: &Identity, seal: &str) -> Result<()> {
        *self.written.lock().unwrap() = Some((identity.clone(), seal.into()));
        Ok(())
    }

    fn begun(&self) {}

    fn refused(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("semidp-recorded-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn begin(&self) -> Arc<Notes> {
        self.notes(KeyFile::create(&self.0, Randomness::OperatingSystem).unwrap(), None)
    }

    fn again(&self, kept: (Identity, String)) -> Arc<Notes> {
        self.notes(KeyFile::open(&self.0).unwrap(), Some(kept))
    }

    fn notes(&self, key: KeyFile, kept: Option<(Identity, String)>) -> Arc<Notes> {
        let (written, is_refused) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Notes { key: Arc::new(key), kept, written, is_refused })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<RunId>>>);

impl Ledger for Runs {
    fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
        self.0.lock().unwrap().push(charge.run);
        Ok(())
    }
}

fn rows(change: f32) -> Private<DenseTable<f32>> {
    let mut values: Vec<f32> = (0..60).map(|x| (x * 37 % 101) as f32 / 101.0).collect();
    values[31] += change;
    Private::new(DenseTable::new(values, 3).unwrap())
}

fn release(notes: Arc<Notes>, change: f32, ledger: impl Ledger + 'static) -> Result<Vec<f64>> {
    let session = Session::new(rows(change), Adjacency::ReplaceOne)?.with_record(notes).with_ledger(ledger);
    let noise = Gaussian::new(NoiseMultiplier::new(2.0).unwrap());
    let program = Program::new(noise, Sampling::Everyone, Steps::ONE);
    let (run, mut tickets) = session.authorise(program, Delta::new(1e-6).unwrap())?;
    let query = ClippedSum::l2(Public(vec![0.5; 3]), 1.0)?;
    Ok(run.noise(run.sum(&query, tickets.next().unwrap())?)?.into_inner())
}

#[test]
fn a_release_that_is_made_again_is_the_same_one() {
    let (place, runs) = (Place::new("release"), Runs::default());
    let notes = place.begin();
    let first = release(notes.clone(), 0.0, runs.clone()).unwrap();
    let written = notes.written.lock().unwrap().take().unwrap();
    drop(notes);
    assert_eq!(release(place.again(written.clone()), 0.0, runs.clone()).unwrap(), first);
    let seen = runs.0.lock().unwrap().clone();
    assert!(seen.len() == 2 && seen[0] == seen[1]);
    // Other rows, or what the run did not seal.
    let other = release(place.again(written.clone()), 1e-6, runs.clone());
    assert!(matches!(other, Err(Error::AnotherRun { .. })));
    let forged = (written.0.clone(), "0".repeat(64));
    assert_eq!(release(place.again(forged), 0.0, runs.clone()), Err(Error::Tampered));
    assert_eq!(runs.0.lock().unwrap().len(), 2);
    // A ledger that refuses is told of.
    let none = Budget::new(Epsilon::new(0.0).unwrap(), Delta::new(0.0).unwrap());
    let notes = place.again(written);
    assert!(matches!(release(notes.clone(), 0.0, none), Err(Error::BudgetRefused { .. })));
    assert!(notes.is_refused.load(Ordering::Relaxed));
}

fn reports(notes: Arc<Notes>, change: f32, centre: f64, ledger: &mut dyn Ledger) -> Result<Vec<Vec<f64>>> {
    let mechanism = semidp_accounting::local::randomizer_named("duchi").unwrap();
    let randomizer = Randomizer::new(mechanism, 3, Epsilon::new(2.0).unwrap(), 1.0)?;
    let people = People::new(rows(change)).recorded(Some(notes));
    let mut interview = people.interview(randomizer, Randomness::Seed(1), ledger)?;
    let question = ClippedSum::l2(Public(vec![centre; 3]), 1.0)?;
    let found = (0..20).map(|person| interview.ask(person, &question)).collect::<Result<_>>()?;
    let certificate = interview.finish();
    assert_eq!(certificate.random_source, semidp_accounting::RandomSource::OperatingSystem);
    Ok(found)
}

#[test]
fn an_interview_that_is_held_again_gets_the_same_reports() {
    let (place, mut runs) = (Place::new("interview"), Runs::default());
    let notes = place.begin();
    let first = reports(notes.clone(), 0.0, 0.5, &mut runs).unwrap();
    let written = notes.written.lock().unwrap().take().unwrap();
    drop(notes);
    assert_eq!(reports(place.again(written.clone()), 0.0, 0.5, &mut runs).unwrap(), first);
    let seen = runs.0.lock().unwrap().clone();
    assert!(seen.len() == 2 && seen[0] == seen[1]);
    let other = reports(place.again(written.clone()), 1e-6, 0.5, &mut runs);
    assert!(matches!(other, Err(Error::AnotherRun { .. })));
    // Another question gets reports of its own. Two independent reports of one person agree with probability 0.2 (half of the 8 sign
    // vectors have 0.88 together), 18 of 20 with less than 1e-10; with the old randomness and a question so near, all would.
    let moved = reports(place.again(written), 0.0, 0.51, &mut runs).unwrap();
    let same = first.iter().zip(&moved).filter(|(a, b)| a == b).count();
    assert!(same < 18, "{same} of 20 reports are the old ones");
}
