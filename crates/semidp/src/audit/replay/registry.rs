//! Replay audits of the registries' mechanisms on made-up rows.

use super::worlds::ordinary_rows;
use super::{Observed, OddRow, Report, Source, Worlds, odd_rows, replay};
use crate::audit::Shape;
use crate::audit::coins::Coins;
use crate::audit::mean::fewer_rows;
use crate::loss::{Labels, Loss};
use crate::mean::Plan;
use crate::train::{Algorithm, Batches, Conduct, PublicRows, PublicUse, Recipe, TrainingData};
use crate::{Error, Result};
use semidp_core::{Adjacency, Charge, DenseTable, Ledger, Public, Randomness, Session};
use std::sync::{Arc, Mutex};

/// How a replay audit is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What rows and all draws come from.
    pub seed: u64,
    /// How rows reach the kernel.
    pub source: Source,
    /// At most this many odd rows: the most extreme ones, and others that the seed chooses. All of them if it is zero.
    pub max_odd_rows: usize,
    /// Private rows of training that fit into so many bytes are read into memory, others are streamed; without a number they stay as
    /// they are.
    pub memory: Option<u64>,
    /// Threads of each run. They make no difference to the result.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, source: Source::DenseDouble, max_odd_rows: 0, memory: None, threads: 1 }
    }
}

/// Replays a planned mean on made-up rows of its shape, replace-one. Rows lie about the origin, with a radius of the clip norm.
/// Of more than a hundred rows, a hundred stand for all of them, with their weight.
pub fn mean(plan: &Plan, options: &Options) -> Result<Report> {
    let plan = &fewer_rows(plan)?;
    let problem = plan.problem();
    let (dimension, count) = (problem.dimension(), problem.private_rows() as usize);
    let mut coins = Coins::new(options.seed, 0, 0);
    let scale = plan.clip_norm().unwrap_or(problem.l2().radius) / (dimension as f64).sqrt();
    let mut rows = ordinary_rows(count, dimension, None, &mut coins);
    rows.iter_mut().flatten().for_each(|x| *x *= scale);
    let centre = Public((0..dimension).map(|_| 0.1 * scale * coins.normal()).collect::<Vec<f64>>());
    let odd = some_of(odd_rows(dimension, None), options);
    let worlds = Worlds::new(&rows, &odd, dimension, options.source, Adjacency::ReplaceOne);
    if count == 0 {
        return Err(Error::invalid("n-private", 0, "at least 1"));
    }
    let mut refused = None;
    let report = replay(worlds.count(), |world, recorder| {
        let mut observed = Observed::new();
        let release = worlds.table(world).and_then(|table| {
            let session = Session::new(table, Adjacency::ReplaceOne)?
                .with_randomness(Randomness::Seed(options.seed))
                .with_threads(options.threads)
                .with_recorder(recorder.clone());
            plan.release(&session, &centre, &centre)
        });
        observed.release(&release);
        refused = refused.take().or(release.err());
        observed
    });
    unless_refused(report, refused)
}

/// Replays a training algorithm with a recipe of the user's on made-up rows of this shape. Algorithms that open the rows
/// ([`crate::train::PrivateUse::Opened`]) promise nothing and fail; reports of the local model are no sums, and have audits of their own.
///
/// Public rows that an algorithm treats like private ones come after them: under add/remove one more private row would move
/// their samples, and is refused unless everyone takes part in every step.
pub fn training(
    algorithm: &dyn Algorithm,
    recipe: &Recipe<'_>,
    shape: Shape,
    options: &Options,
) -> Result<Report> {
    let Shape { private_rows, public_rows, features } = shape;
    if features == 0 {
        return Err(Error::invalid("dim", 0, "at least 1"));
    }
    let joins = algorithm.public_use() == PublicUse::Joined && public_rows > 0;
    if joins && recipe.adjacency == Adjacency::AddRemove && recipe.given.batches != Some(Batches::Everyone) {
        let requirement = "0 under add/remove for an algorithm that treats public rows like private ones, unless sampling is none: \
                           one more private row would move the samples of public ones";
        return Err(Error::invalid("n-public", public_rows, requirement));
    }
    let (width, label) = (features + 1, classes(recipe.loss));
    let mut coins = Coins::new(options.seed, 1, 0);
    let rows = ordinary_rows(private_rows, width, Some(label), &mut coins);
    let public = ordinary_rows(public_rows, width, Some(label), &mut coins);
    let mut odd = odd_rows(width, Some(label));
    if let Some(row) = public.first() {
        // A private row that is a public one, too.
        let mut known = odd[0].clone();
        known.name = "a public row".into();
        known.entries = (0..).zip(row.iter().copied()).collect();
        odd.push(known);
    }
    let public = match public.is_empty() {
        true => None,
        false => Some(PublicRows::load(&Public(DenseTable::new(public.concat(), width)?))?),
    };
    let odd = some_of(odd, options);
    let worlds = Worlds::new(&rows, &odd, width, options.source, recipe.adjacency);
    // A table that cannot be made is no finding.
    (0..worlds.count()).try_for_each(|world| worlds.table(world).map(drop))?;
    let mut refused = None;
    let report = replay(worlds.count(), |world, recorder| {
        let mut observed = Observed::new();
        let private = match worlds.table(world) {
            Ok(table) => table,
            Err(error) => {
                observed.error(&error);
                return observed;
            }
        };
        let charges = Charges::default();
        let conduct = Conduct {
            threads: Some(options.threads),
            memory: options.memory,
            ledger: Some(Box::new(charges.clone())),
            recorder: Some(recorder.clone()),
            ..Conduct::new(Randomness::Seed(options.seed))
        };
        let data = TrainingData { private, public: public.clone() };
        let mut progress = Observed::new();
        let trained = algorithm.train(recipe, data, conduct, &mut |shown| {
            let state = (shown.step, shown.steps, shown.sampling, shown.is_streamed);
            progress.note("progress", format!("{state:?}"));
            progress.numbers("iterates", &shown.model.weights);
        });
        observed.clone_from(&progress);
        observed.trained(&trained);
        observed.note("charges", charges.text());
        refused = refused.take().or(trained.err());
        observed
    });
    unless_refused(report, refused)
}

/// The report, unless all worlds were refused alike: then nothing was audited.
fn unless_refused(report: Report, refused: Option<Error>) -> Result<Report> {
    match refused {
        Some(error) if report.violations.is_empty() => Err(error),
        _ => Ok(report),
    }
}

/// Opposite rows far beyond any clip norm, and some others.
fn some_of(odd: Vec<OddRow>, options: &Options) -> Vec<OddRow> {
    let odd: Vec<OddRow> =
        odd.into_iter().filter(|row| options.source.is_sparse() || !row.is_malformed).collect();
    if options.max_odd_rows == 0 || odd.len() <= options.max_odd_rows {
        return odd;
    }
    let (mut chosen, mut others): (Vec<_>, Vec<_>) = odd.into_iter().partition(OddRow::is_extreme);
    let left = options.max_odd_rows.saturating_sub(chosen.len());
    let mut coins = Coins::new(options.seed, 2, 0);
    for _ in 0..left.min(others.len()) {
        let place = (coins.word() % others.len() as u64) as usize;
        chosen.push(others.swap_remove(place));
    }
    chosen
}

/// The classes of a loss's labels; 0 where labels are numbers.
fn classes(loss: &dyn Loss) -> usize {
    match loss.labels() {
        Labels::Classes => loss.outputs().max(2),
        Labels::Numbers => 0,
    }
}

/// What a ledger is asked for.
#[derive(Debug, Clone, Default)]
struct Charges(Arc<Mutex<String>>);

impl Charges {
    fn text(&self) -> String {
        self.0.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |text| text.clone())
    }
}

impl Ledger for Charges {
    fn debit(&mut self, charge: &Charge<'_>) -> semidp_core::Result<()> {
        // The run's name is random.
        let asked = format!("{:?} {} {}\n", charge.events, charge.adjacency, charge.delta);
        self.0
            .lock()
            .map_or_else(|poisoned| poisoned.into_inner().push_str(&asked), |mut all| all.push_str(&asked));
        Ok(())
    }
}
