//! `semidp train`: a linear model of the rows of two files, with a certificate.

mod effect;
mod keep;
mod options;
mod result;

pub use options::{HyperOptions, Train};

use crate::delivery::{Delivery, SAVE, UNKNOWN};
use crate::failure::Failure;
use crate::meaning::Meaning;
use crate::memory;
use crate::number::{exact, nearest};
use crate::options::BudgetOptions;
use crate::output::Output;
use crate::progress;
use indicatif::ProgressBar;
use result::Outcome;
use semidp::domain::{Domain, domain_named};
use semidp::files::kind;
use semidp::files::{self, Reserved};
use semidp::loss::Loss;
use semidp::model::{Columns, SavedModel, Task};
use semidp::strength::budget_notes;
use semidp::train::metrics::Metrics;
use semidp::train::{
    Algorithm, Conduct, DOUBTED, Fact, Given, Keeping, PUBLIC_DATA, PrivateUse, Progress, PublicRows,
    PublicUse, Recipe, TrainingData, algorithm_for, algorithm_named,
};
use semidp_accounting::local::LARGEST_LOCAL_EPSILON;
use semidp_accounting::{Adjacency, Certificate, Epsilon, PrivacyBudget, Provenance, Trust};
use semidp_core::{BlockSource, DenseTable, Ledger, Private, Randomness, Sampling};
use semidp_table::{Kind, Schema};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loss is shown about so many times during a run, on at most so many rows.
const LOOKS: u64 = 50;
const WATCHED_ROWS: usize = 2000;
/// What is said of a model whose certificate promises nothing.
pub const NOT_PRIVATE: &str = "this model is NOT private: it was trained on private rows as they are";
/// What trains on public rows alone.
const FREE: &str = "throw-away";
/// After a debit.
const SPENT: &str = "the budget was spent";
/// A weight of private gradients that a user should hear of.
const LITTLE_WEIGHT: f64 = 1e-3;

/// Everything public, before a private row is read.
struct Prepared {
    columns: Columns,
    public: Option<PublicRows>,
    /// Rows to report on, if any are public.
    watched: Option<PublicRows>,
    notes: Vec<String>,
}

/// On whose behalf a model is trained.
enum Host<'h> {
    /// A person at a terminal: the model goes to `--out`, and a signal ends the run where it can go on.
    Terminal,
    /// A program that takes the model itself, is told of every step, and knows what else was done to the private rows.
    Program { on_step: &'h mut dyn FnMut(Progress<'_>), not_covered: &'h [String] },
}

impl Train {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        self.trained(output, Host::Terminal).map(|_| ())
    }

    /// Answers a program: the model, and what `--json` would print. Nothing is written, and `--out` only names the model.
    /// What the program did to private rows besides goes to the certificate, as covered by no guarantee.
    pub fn for_program(
        self,
        output: &Output,
        not_covered: &[String],
        on_step: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(SavedModel, Value), Failure> {
        self.trained(output, Host::Program { on_step, not_covered })
    }

    fn trained(self, output: &Output, mut host: Host<'_>) -> Result<(SavedModel, Value), Failure> {
        self.check()?;
        let algorithm = self.algorithm()?;
        let budget = self.spendable(algorithm)?;
        let domain = domain_named(&self.hyper.domain)?;
        let checkpoint = self.keep.place(&self.out);
        files::refuse_same_or_beside(
            &[
                ("private", self.private.as_ref()),
                ("public", self.public.as_ref()),
                ("validation", self.validation.as_ref()),
                ("schema", self.schema.as_ref()),
                ("out", Some(&self.out)),
                ("certificate", self.certificate.as_ref()),
                ("checkpoint", checkpoint.as_ref()),
                ("ledger", self.ledger.path()),
                ("sign", self.sign.path()),
            ],
            &[
                ("checkpoint", files::beside(checkpoint.as_ref(), &files::OF_CHECKPOINT)),
                ("ledger", files::beside(self.ledger.path(), &files::OF_LEDGER)),
            ],
        )?;
        if matches!(host, Host::Terminal) {
            kind::refuse_other("out", &self.out, kind::Kind::Model)?;
        }
        if let Some(path) = &self.certificate {
            kind::refuse_other("certificate", path, kind::Kind::Certificate)?;
        }
        let ledger = self.ledger.open_for(self.private.as_ref(), output)?;
        let signing_key = self.sign.open()?;
        if ledger.is_some() && algorithm.private_use() == PrivateUse::Opened {
            return Err(Failure::input(
                format!(
                    "--ledger must be left out with --algorithm {}: no ledger can pay for it",
                    algorithm.name()
                ),
                "it opens the rows and promises nothing, which no budget covers",
            ));
        }
        // What cannot be written should be known before anything is spent.
        let out = match host {
            Host::Terminal => Some(Reserved::new("out", &self.out)?),
            Host::Program { .. } => None,
        };
        let certificate =
            self.certificate.as_ref().map(|path| Reserved::new("certificate", path)).transpose()?;

        let mut prepared = self.prepare()?;
        prepared.notes.extend(self.without_effect(algorithm, prepared.public.is_some()));
        let (loss, loss_name) = prepared.columns.target().loss(self.hyper.loss.as_deref())?;
        let recipe = Recipe {
            loss: &*loss,
            domain: &*domain,
            has_intercept: !self.hyper.no_intercept,
            budget,
            adjacency: self.promise.adjacency(),
            given: Given { allow_weak_noise: self.noise.allow_weak_noise, ..self.hyper.given() },
        };
        if algorithm.private_use() == PrivateUse::Opened {
            output.warn(
                "the result is NOT private: every private row is used as it is, for comparisons only, and nothing is \
                 promised",
            );
        }
        if self.seed.is_some() && algorithm.private_use() == PrivateUse::Budgeted {
            output.warn("--seed makes noise and batches reproducible: the result is NOT private");
        }
        let randomness = self.seed.map_or(Randomness::OperatingSystem, Randomness::Seed);
        let keeping = self.keeping(algorithm, randomness, budget, &prepared.columns, &loss_name)?;
        let not_covered = match &host {
            Host::Program { not_covered, .. } => *not_covered,
            Host::Terminal => &[],
        };
        let delivery =
            self.delivery(algorithm, randomness, budget, &prepared, (&loss_name, not_covered), out.as_ref())?;
        let (private, reading) = self.private_rows(&prepared.columns, algorithm, output)?;
        // Rows that are only being read can be read again: until here a signal ends the process at once.
        let keeping = match (keeping, &host) {
            (Some(keeping), Host::Terminal) => Some(keeping.until(keep::on_signals()?)),
            // Whoever goes on with a run cannot leave out what its beginning had to say.
            (Some(keeping), Host::Program { not_covered, .. }) => {
                Some(keeping.with_fact(Fact::new("not covered", not_covered.join("; "))))
            }
            (None, _) => None,
        };
        let warn = |note: &str| output.warn(note);
        let is_local = algorithm.trust() == Trust::Local && algorithm.private_use() == PrivateUse::Budgeted;
        // Each person has a report of their own, so the number of people does not matter. A budget that no randomiser takes is refused
        // below; a warning before the error would only hide it.
        let is_randomised = is_local
            && matches!(budget, PrivacyBudget::Pure { epsilon } if epsilon.get() <= LARGEST_LOCAL_EPSILON);
        let local_notes = if is_randomised { budget_notes(budget, None) } else { Vec::new() };
        local_notes.iter().for_each(|note| warn(note));
        let conduct = Conduct {
            warn: Some(&warn),
            threads: self.threads.map(|threads| threads as usize),
            memory: Some(self.memory.unwrap_or_else(memory::by_default)),
            keeping: keeping.as_ref(),
            record: delivery.record(),
            ledger: ledger.map(|ledger| -> Box<dyn Ledger> {
                let seeded = if self.seed.is_some() { ", NOT private: seeded" } else { "" };
                Box::new(ledger.describe(&format!("train: {}{seeded}", algorithm.name())))
            }),
            ..Conduct::new(randomness)
        };
        let bar = progress::bar(output, "steps", 0);
        let watch = Watch::new(&prepared, &*loss, &bar);
        let data = TrainingData { private, public: prepared.public.clone() };
        let mut streaming = None;
        let trained = algorithm.train(&recipe, data, conduct, &mut |progress| {
            if progress.step == 0 {
                reading.end();
                streaming = progress.is_streamed.then(|| streaming_note(progress.sampling));
                // Before the first step: it may take long.
                streaming.iter().for_each(|note| output.note(note));
            }
            watch.see(&progress);
            if let Host::Program { on_step, .. } = &mut host {
                on_step(progress);
            }
        });
        reading.end();
        bar.finish_and_clear();
        let mut trained =
            trained.map_err(|error| delivery.failed(self.unfinished(error, keeping.as_ref())))?;
        // A function of released iterates, so that it may be told.
        if trained.model.weights.iter().any(|weight| !weight.is_finite()) {
            // Going on would lead nowhere else.
            keeping.map_or(Ok(()), Keeping::end)?;
            delivery.end(output);
            return Err(self.diverged(&trained.certificate));
        }
        let told = |wanted: &str| {
            let entry = trained.certificate.hyperparameters.iter().find(|entry| entry.name == wanted);
            entry.and_then(|entry| entry.value.as_str()).map(String::from)
        };
        let mut name = told("algorithm").unwrap_or_else(|| algorithm.name().into());
        if trained.certificate.events.is_empty() && algorithm.private_use() == PrivateUse::Budgeted {
            name = FREE.into();
            let reason = told("algorithm-because").unwrap_or_else(|| "there are no private rows".into());
            prepared.notes.push(format!("{reason}: the public rows answer alone, at no cost"));
        } else if algorithm.private_use() == PrivateUse::Budgeted
            && prepared.public.is_some()
            && trained.alpha < LITTLE_WEIGHT
        {
            let note = "the private rows had next to no weight, at the full price: --algorithm throw-away costs nothing, \
                        and --alpha or a larger budget gives them more";
            prepared.notes.push(note.into());
        }
        // A function of released gradients.
        if told(PUBLIC_DATA).is_some_and(|verdict| verdict.starts_with(DOUBTED)) {
            let note = "the released gradients contradict the public rows beyond chance: the errors predicted from public rows \
                        (predicted-excess and the like) do not hold for this model";
            prepared.notes.push(note.into());
        }
        self.describe(&mut trained.certificate.hyperparameters, &prepared.columns, &loss_name, &*domain);
        if self.strict && self.private.is_some() && algorithm.private_use() == PrivateUse::Budgeted {
            let check = "a strict check of the rows came first: that it passed, or which column failed it, is \
                         covered by no guarantee";
            trained.certificate.not_covered.push(check.into());
        }
        if self.private.is_some() && algorithm.private_use() == PrivateUse::Budgeted {
            trained.certificate.assumptions.extend(self.reading.assumption());
        }
        if let Host::Program { not_covered, .. } = host {
            trained.certificate.not_covered.extend_from_slice(not_covered);
        }
        if !trained.certificate.events.is_empty() {
            trained.certificate.notes.extend(local_notes);
        }
        if let Some(key) = signing_key {
            key.sign(&mut trained.certificate)?;
        }
        let told = prepared.notes.len();
        prepared.notes.extend(streaming);
        let metrics = prepared.watched.as_ref().and_then(|rows| Metrics::of(&*loss, &trained.model, rows));
        let saved =
            SavedModel::new(&prepared.columns, &trained.model, &loss_name, &name, trained.certificate);
        let outcome = Outcome {
            saved: &saved,
            budget: Some(budget).filter(|_| algorithm.private_use() != PrivateUse::Opened),
            public_rows: prepared.public.as_ref().map(PublicRows::len),
            metrics,
            validated: self.validation.is_some(),
            path: &self.out,
            notes: &prepared.notes,
        };
        let json = outcome.json()?;
        let (text, is_written) = (saved.to_json()?, out.is_some());
        let written = match certificate {
            Some(place) => place.fill(&pretty(&json["certificate"])?),
            None => Ok(()),
        };
        let written = written.and_then(|()| out.map_or(Ok(()), |out| out.fill(&text)));
        if let Err(failure) = written.map_err(Failure::from) {
            let is_paid = algorithm.private_use() == PrivateUse::Budgeted && is_written;
            return Err(match &keeping {
                Some(keeping) if keeping.is_there() => failure.after(SPENT, again(keeping)),
                None if delivery.is_begun() && delivery.is_there() => delivery.failed(failure),
                // Nothing is left of the run: this is the only copy.
                _ if is_paid => match output.rescue(&text) {
                    true => failure.after(&format!("{SPENT}, and the model is on standard output"), SAVE),
                    false => failure.after(
                        &format!("{SPENT}, and standard output did not take the model either"),
                        "the model is lost, as what was kept of its run is gone too: the same command begins another run",
                    ),
                },
                _ => failure,
            });
        }
        if let Some(Err(error)) = keeping.map(Keeping::end) {
            output.warn(&format!(
                "the model is complete, but what was kept of the run could not be removed: {error}"
            ));
        }
        delivery.hand_over(output);
        output.answer(&json, || outcome.text()).map_err(|failure| match is_written {
            true => failure.after("the model is in the file of --out", "read the file that --out names"),
            false => failure,
        })?;
        prepared.notes[..told].iter().for_each(|note| output.note(note));
        Ok((saved, json))
    }

    /// A model whose weights are not finite: what it cost, and what to change. Nothing is wrong with an option where it was paid for:
    /// options that must fail are refused before.
    fn diverged(&self, certificate: &Certificate) -> Failure {
        let guarantee = &certificate.guarantee;
        let spent = match certificate.events.is_empty() {
            true => "nothing was spent".to_string(),
            false => format!(
                "epsilon {} at delta {} was spent",
                nearest(guarantee.epsilon.get(), 4),
                exact(guarantee.delta.get())
            ),
        };
        let message = format!("training diverged: a weight is not finite; {spent}");
        let (hyper, hint) = (&self.hyper, "--algorithm auto chooses steps that do not diverge");
        let given = [
            (hyper.learning_rate, "take a smaller --learning-rate, or leave it out"),
            (hyper.l2, "take a smaller --l2, or leave it out"),
            (hyper.clip_norm, "take a smaller --clip-norm, or leave it out"),
        ];
        match given.iter().find(|(value, _)| value.is_some()) {
            Some((_, hint)) if certificate.events.is_empty() => Failure::input(message, *hint),
            Some((_, hint)) => Failure::other(message).hinted(*hint),
            None => Failure::other(message).hinted(hint),
        }
    }

    /// A run that failed on its way: what that cost, and how to go on.
    fn unfinished(&self, error: semidp::Error, keeping: Option<&Keeping>) -> Failure {
        let is_stopped = matches!(error, semidp::Error::Interrupted { .. });
        let is_other = matches!(
            error,
            semidp::Error::Kernel(
                semidp_core::Error::BudgetRefused { .. }
                    | semidp_core::Error::AnotherRun { .. }
                    | semidp_core::Error::Tampered
            )
        );
        let is_kept = matches!(error, semidp::Error::Checkpoint { .. });
        let is_unknown = matches!(error, semidp::Error::Kernel(semidp_core::Error::Ledger { .. }));
        let failure = Failure::from(error);
        match keeping {
            Some(keeping) if keeping.is_begun() && !is_stopped && !is_other => {
                failure.after(if is_unknown { UNKNOWN } else { SPENT }, again(keeping))
            }
            // The first checkpoint comes before the debit.
            Some(_) if is_kept => failure
                .hinted("the run did not begin, and costs nothing: --checkpoint FILE names a place on a disk with room"),
            _ => failure,
        }
    }

    fn algorithm(&self) -> Result<&'static dyn Algorithm, Failure> {
        let algorithm = self.chosen()?;
        let helped =
            matches!(algorithm.public_use(), PublicUse::Prior | PublicUse::Mixed | PublicUse::Mirror);
        if self.private.is_none() && helped {
            // Nothing private: nothing to protect, and nothing to pay.
            return Ok(algorithm_named(FREE)?);
        }
        Ok(algorithm)
    }

    /// The algorithm of this name for whom is trusted. One of randomised reports says by itself that nobody is.
    fn chosen(&self) -> Result<&'static dyn Algorithm, Failure> {
        let trust = match self.promise.given_trust() {
            Some(trust) => trust,
            None => match algorithm_named(&self.algorithm)? {
                algorithm if algorithm.private_use() == PrivateUse::Budgeted => algorithm.trust(),
                _ => Trust::Central,
            },
        };
        Ok(algorithm_for(&self.algorithm, trust)?)
    }

    /// The budget; none is needed where nothing is spent, and none can be kept where rows are opened.
    fn spendable(&self, algorithm: &dyn Algorithm) -> Result<PrivacyBudget, Failure> {
        let nothing = PrivacyBudget::Pure { epsilon: Epsilon::new(0.0)? };
        let BudgetOptions { epsilon, delta, rho } = self.budget;
        let given =
            [("--epsilon", epsilon.is_some()), ("--delta", delta.is_some()), ("--rho", rho.is_some())];
        match algorithm.private_use() {
            PrivateUse::Opened => match given.iter().find(|(_, is_given)| *is_given) {
                Some((option, _)) => Err(Failure::input(
                    format!(
                        "{option} must not be given with --algorithm {}, which keeps no budget",
                        algorithm.name()
                    ),
                    "leave the budget out to train a reference that is NOT private, or choose another algorithm",
                )),
                None => Ok(nothing),
            },
            PrivateUse::Nothing if epsilon.is_none() && rho.is_none() => Ok(nothing),
            _ => self.budget.budget(),
        }
    }

    /// Learns everything that public rows teach about columns.
    fn prepare(&self) -> Result<Prepared, Failure> {
        let mut notes = Vec::new();
        let wanted = self.wanted();
        let meaning = Meaning {
            schema: self.schema.as_deref(),
            public: self.public.as_deref(),
            columns: wanted.as_deref(),
            loading: self.reading.loading(),
            without_public: "--clip-norm and --learning-rate must be given too",
        };
        let choose = |schema: Schema, _: &mut Vec<String>| match &wanted {
            Some(wanted) => Ok(schema.select(wanted)?),
            None => Ok(schema),
        };
        let (schema, has_public) = meaning.find(choose, &mut notes)?;
        schema.position(&self.target).map_err(|error| {
            Failure::input(format!("--target: {error}"), "--target is the name of a column of the files")
        })?;
        let task = self.task(&schema, &mut notes)?;
        let public = self.public.as_deref().filter(|_| has_public);
        let classes = self.classes.as_deref().filter(|_| task == Task::Classification);
        let columns =
            Columns::learn_with(schema, &self.target, task, public, classes, self.reading.loading())?;
        if !columns.constant().is_empty() {
            let names = columns.constant().join(", ");
            notes.push(format!("columns that do not vary in the public rows are left out: {names}"));
        }
        let public = public.map(|path| columns.public_rows(path)).transpose()?;
        let public = public.map(|(rows, unknown)| {
            if unknown > 0 {
                notes.push(format!("{unknown} public rows without a known {} are left out", self.target));
            }
            rows
        });
        let watched = match &self.validation {
            Some(path) => Some(columns.public_rows(path)?.0),
            None => public.clone(),
        };
        Ok(Prepared { columns, public, watched, notes })
    }

    /// Keeps the run from now on, or finds the one to go on with. Whoever spends nothing needs nothing of the kind.
    fn keeping(
        &self,
        algorithm: &dyn Algorithm,
        randomness: Randomness,
        budget: PrivacyBudget,
        columns: &Columns,
        loss: &str,
    ) -> Result<Option<Keeping>, Failure> {
        let is_local = algorithm.trust() == Trust::Local;
        if self.private.is_none() || algorithm.private_use() != PrivateUse::Budgeted || is_local {
            let reason = match is_local {
                // Everybody has one report, and it takes no longer to make than to read.
                true => {
                    "a run of randomised reports is not kept step by step: the same command given again finds it"
                }
                false => "this run spends nothing and keeps nothing",
            };
            return match self.keep.resume {
                None => Ok(None),
                Some(_) => Err(Failure::input(
                    format!("--resume must be left out: {reason}"),
                    "give --private and the algorithm that the run began with, or start anew without --resume",
                )),
            };
        }
        self.keep.keeping(&self.out, randomness, self.facts(algorithm, budget, columns, loss))
    }

    /// What the library does not know about a run, and must not change while it is interrupted.
    fn facts(
        &self,
        algorithm: &dyn Algorithm,
        budget: PrivacyBudget,
        columns: &Columns,
        loss: &str,
    ) -> Vec<Fact> {
        let mut facts = vec![
            Fact::new("version", env!("CARGO_PKG_VERSION")),
            Fact::new("algorithm", algorithm.name()),
            Fact::new("adjacency", self.promise.adjacency().to_string()),
            Fact::new("budget", format!("{budget:?}")),
            // A run that was killed before its debit must find the same ledger.
            Fact::new("ledger", self.ledger.place()),
            Fact::new("target", self.target.as_str()),
            Fact::new("loss", loss),
            Fact::new("intercept", !self.hyper.no_intercept),
            // What a strict check let pass is told by the certificate at the end.
            Fact::new("strict", self.strict),
            // Other rules about lines would make other rows of the same file.
            Fact::new("multiline", self.reading.multiline),
        ];
        let schema = columns.schema().columns().iter();
        facts.extend(
            schema.map(|column| Fact::new(&format!("column {}", column.name), format!("{:?}", column.kind))),
        );
        let features = columns.names().iter().zip(columns.features());
        facts.extend(features.map(|(name, feature)| Fact::new(&format!("feature {name}"), json!(feature))));
        facts
    }

    /// Records a run of randomised reports. It has no checkpoints: the same command asks the same people again, and gets the same
    /// reports.
    fn delivery(
        &self,
        algorithm: &dyn Algorithm,
        randomness: Randomness,
        budget: PrivacyBudget,
        prepared: &Prepared,
        (loss, not_covered): (&str, &[String]),
        out: Option<&Reserved>,
    ) -> Result<Delivery, Failure> {
        let is_local = algorithm.trust() == Trust::Local && algorithm.private_use() == PrivateUse::Budgeted;
        let is_recorded = self.private.is_some() && is_local && self.keep.is_kept();
        let mut facts = self.facts(algorithm, budget, &prepared.columns, loss);
        facts.push(Fact::new("seed", json!(self.seed)));
        facts.push(Fact::new("domain", self.hyper.domain.as_str()));
        facts.push(Fact::new("hyper-parameters", format!("{:?}", self.hyper.given())));
        let public = prepared.public.as_ref();
        facts.push(Fact::new("content of the public rows", json!(public.map(PublicRows::digest))));
        facts.push(Fact::new("not covered", not_covered.join("; ")));
        let path = self.keep.place(&self.out).filter(|_| is_recorded);
        Delivery::open(path, randomness, &facts, SPENT.into(), true, out)
    }

    fn task(&self, schema: &Schema, notes: &mut Vec<String>) -> Result<Task, Failure> {
        if let Some(task) = self.task {
            return Ok(task.task());
        }
        let task = match schema.columns()[schema.position(&self.target)?].kind {
            Kind::Category { .. } => Task::Classification,
            Kind::Number { .. } => Task::Regression,
        };
        notes.push(format!("--task was not given: {} is taken as {}", self.target, task.name()));
        Ok(task)
    }

    /// The private rows, closed, and what shows how they are read into memory. None are read by an algorithm that
    /// throws them away.
    fn private_rows(
        &self,
        columns: &Columns,
        algorithm: &dyn Algorithm,
        output: &Output,
    ) -> Result<(Private<Box<dyn BlockSource>>, Reading), Failure> {
        let width = columns.features().len() + 1;
        let is_read = algorithm.private_use() != PrivateUse::Nothing;
        let Some(path) = self.private.as_ref().filter(|_| is_read) else {
            let none = DenseTable::<f32>::new(Vec::new(), width)?;
            return Ok((Private::new(Box::new(none)), Reading::new(ProgressBar::hidden())));
        };
        let mut loading = self.reading.loading().strict(self.strict);
        let bar = match self.promise.adjacency() {
            Adjacency::ReplaceOne => progress::counter(output, "private rows read"),
            // Their number is secret.
            Adjacency::AddRemove => ProgressBar::hidden(),
        };
        let reading = Reading::new(bar);
        let ticking = reading.clone();
        loading = loading.on_rows(move |rows| ticking.count(rows));
        Ok((columns.private_rows(path, loading)?.boxed(), reading))
    }

    /// Adds what the algorithm does not know.
    fn describe(&self, entries: &mut Vec<Provenance>, columns: &Columns, loss: &str, domain: &dyn Domain) {
        let mut entry = |name: &str, value: serde_json::Value, is_given: bool, otherwise: &str| {
            let source = if is_given { "user" } else { otherwise };
            entries.push(Provenance { name: name.into(), value, source: source.into() });
        };
        entry("loss", json!(loss), self.hyper.loss.is_some(), "default");
        entry("domain", json!(domain.name()), domain.name() != "everywhere", "default");
        entry("intercept", json!(!self.hyper.no_intercept), self.hyper.no_intercept, "default");
        let schema = if self.schema.is_some() { "user" } else { "public data" };
        entry("features", json!(columns.features().len()), false, schema);
    }
}

/// Counts the rows that are read into memory. Which rows a step reads is a secret of its sample, so that nothing is
/// counted after the first step begins.
#[derive(Clone)]
struct Reading {
    bar: ProgressBar,
    is_over: Arc<AtomicBool>,
}

impl Reading {
    fn new(bar: ProgressBar) -> Self {
        Self { bar, is_over: Arc::default() }
    }

    fn count(&self, rows: u64) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.bar.inc(rows);
        }
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.bar.finish_and_clear();
    }
}

/// What to know of rows that do not fit into memory.
fn streaming_note(sampling: Sampling) -> String {
    match sampling {
        Sampling::InOrder { .. } => {
            "the private rows do not fit into --memory: they are read once, batch by batch in the order of the file, \
             which must mean nothing (a file sorted by the target trains a bad model); otherwise shuffle it"
        }
        _ => {
            "the private rows do not fit into --memory: every step reads the file; --sampling in-order reads it once"
        }
    }
    .into()
}

/// Shows how a run goes, on public rows and released iterates.
struct Watch<'a> {
    rows: Option<PublicRows>,
    loss: &'a dyn Loss,
    bar: &'a ProgressBar,
    validated: bool,
}

impl<'a> Watch<'a> {
    fn new(prepared: &Prepared, loss: &'a dyn Loss, bar: &'a ProgressBar) -> Self {
        let rows = prepared.watched.as_ref().filter(|_| !bar.is_hidden()).map(|rows| {
            let some: Vec<usize> =
                (0..rows.len()).step_by(rows.len().div_ceil(WATCHED_ROWS).max(1)).collect();
            rows.some(&some)
        });
        let validated = prepared.watched != prepared.public;
        Self { rows, loss, bar, validated }
    }

    fn see(&self, progress: &Progress<'_>) {
        self.bar.set_length(progress.steps);
        self.bar.set_position(progress.step);
        let often = progress.steps.div_ceil(LOOKS).max(1);
        if progress.step.is_multiple_of(often)
            && let Some(rows) = &self.rows
        {
            let what = if self.validated { "validation loss" } else { "public loss" };
            let value = progress.model.mean_loss(self.loss, rows);
            self.bar.set_message(format!("steps, {what} {value:.4}"));
        }
    }
}

/// How to get a model that was paid for.
fn again(keeping: &Keeping) -> String {
    let path = keeping.path().display();
    format!("the same command with --resume {path} goes on, and spends nothing more")
}

fn pretty(json: &serde_json::Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(json)
        .map_err(|error| Failure::other(format!("cannot write the answer as JSON: {error}")))
}

/// Where a model is read from.
pub fn read_model(path: &Path) -> Result<SavedModel, Failure> {
    SavedModel::from_json(&files::read("model", path)?)
        .map_err(|error| Failure::from(error).about(&format!("--model {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use semidp_accounting::{CountedEvent, Delta, Event, NoiseMultiplier, Steps};

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        train: Train,
    }

    /// What was paid for is no bad input: the code is 1, and the message says what it cost.
    #[test]
    fn diverged_training_says_what_was_spent() {
        let certificate = |events: Vec<CountedEvent>, delta: f64| {
            let (adjacency, delta) = (Adjacency::ReplaceOne, Delta::new(delta).unwrap());
            Certificate::issue(events, adjacency, Trust::Central, delta, "custom: a test").unwrap()
        };
        let event = Event::Gaussian { noise_multiplier: NoiseMultiplier::new(8.0).unwrap() };
        let paid = certificate(vec![CountedEvent::new(event, Steps::ONE)], 1e-6);
        let free = certificate(Vec::new(), 0.0);
        let diverged = |options: &str, certificate: &Certificate| {
            let words = format!("train --target y --out model.json {options}");
            let failure =
                Words::try_parse_from(words.split_whitespace()).unwrap().train.diverged(certificate);
            (failure.code(), failure.message().to_string(), failure.hint().unwrap().to_string())
        };
        let (code, message, hint) = diverged("--learning-rate 3", &paid);
        assert!(
            code == 1 && message.contains("training diverged") && message.contains("at delta 1e-6 was spent")
        );
        assert!(hint.contains("--learning-rate"), "{hint}");
        assert!(diverged("--l2 3", &paid).2.contains("--l2"));
        let (code, _, hint) = diverged("", &paid);
        assert!(code == 1 && hint.contains("--algorithm auto"), "{hint}");
        // Nothing was paid: an option that was given is bad input, and nothing else is.
        let (code, message, _) = diverged("--learning-rate 3", &free);
        assert!(code == 2 && message.contains("nothing was spent"), "{message}");
        assert_eq!(diverged("", &free).0, 1);
    }
}
