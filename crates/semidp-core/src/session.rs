//! Sessions: private data, and the only ways to ask it anything.

use crate::data::{Assignment, BlockSource, Draw, Private, Sampling, Selection};
use crate::kept::{self, Facts, Identity, Kept, KeyFile, Record};
use crate::ledger::{Charge, Ledger, NoLimit, RunId};
use crate::noise::rng::{Randomness, RunKey};
use crate::noise::{self, LOG_TOTAL_VARIATION, Mechanism};
use crate::query::sealed::{NormLaw, Work};
use crate::query::{Lineage, Partial, Query};
use crate::release::{Noised, Release};
use crate::replay::{self, Recorder, ReplayedProgram, ReplayedStep};
use crate::{Error, Result, parallel};
use semidp_accounting::{Adjacency, Certificate, CountedEvent, Delta, Epsilon, Steps, Trust};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a run is allowed to do: a noise law, a sampling, a number of steps. Fixed before the run;
/// clip norms and centres may follow earlier releases.
#[derive(Debug, Clone)]
pub struct Program<M> {
    mechanism: M,
    sampling: Sampling,
    steps: Steps,
    dimension: Option<usize>,
}

impl<M: Mechanism> Program<M> {
    /// `steps` releases, each on its own sample.
    pub fn new(mechanism: M, sampling: Sampling, steps: Steps) -> Self {
        Self { mechanism, sampling, steps, dimension: None }
    }

    /// The number of coordinates of each release, where it is not the number of columns.
    pub fn with_dimension(mut self, dimension: usize) -> Self {
        self.dimension = Some(dimension);
        self
    }
}

/// Private data, and what may be done to it.
pub struct Session<S> {
    data: Private<S>,
    adjacency: Adjacency,
    randomness: Randomness,
    key_file: Option<Arc<KeyFile>>,
    record: Option<Arc<dyn Record>>,
    threads: usize,
    ledger: Mutex<Box<dyn Ledger>>,
    runs: AtomicU64,
    declassified: Vec<String>,
    /// Of a replay audit; the session is declassified then.
    recorder: Option<Arc<Recorder>>,
    /// Whether rows are read anew whenever they are needed. It follows their number.
    is_streamed: bool,
}

/// The share of δ set aside for the samplers' distance from their laws.
const DELTA_SET_ASIDE: f64 = 1e-9;

/// The δ at which Gaussian noise must be calibrated, so that a session certifies no more than the target:
/// a billionth is set aside for the sampler's distance from its law.
pub fn calibration_delta(delta: Delta) -> Delta {
    Delta::new(delta.get() * (1.0 - DELTA_SET_ASIDE)).unwrap_or(delta)
}

/// The smallest δ at which so many coordinates of Gaussian noise can be certified at this ε: the sampler's
/// distance from its law must be negligible next to what is set aside for it.
///
/// Outputs P', Q' within t of P, Q: P'(A) ≤ P(A) + t ≤ e^ε Q(A) + δ + t ≤ e^ε Q'(A) + δ + (1 + e^ε)t.
pub fn smallest_delta(epsilon: Epsilon, draws: f64) -> f64 {
    let distance = draws * 2f64.powi(LOG_TOTAL_VARIATION);
    (1.0 + epsilon.get().exp()) * distance / (0.5 * DELTA_SET_ASIDE)
}

/// Rows that lie in memory already are copied up to so many bytes: steps on a copy of the kernel's own are faster.
const LARGEST_COPY: u128 = 64 << 20;

impl<S: BlockSource> Session<S> {
    /// Takes the data over. Adjacency is never implied.
    pub fn new(data: Private<S>, adjacency: Adjacency) -> Result<Self> {
        let source = data.open();
        let mut next = 0;
        for block in 0..source.blocks() {
            let units = source.units_of(block);
            if units.start != next || units.end < units.start {
                return Err(Error::Source {
                    block,
                    reason: "its units do not follow those of the last block",
                });
            }
            next = units.end;
        }
        if next != source.units() {
            let last = source.blocks().saturating_sub(1);
            return Err(Error::Source { block: last, reason: "the blocks do not hold the units promised" });
        }
        Ok(Self {
            data,
            adjacency,
            randomness: Randomness::OperatingSystem,
            key_file: None,
            record: None,
            threads: parallel::available(),
            ledger: Mutex::new(Box::new(NoLimit)),
            runs: AtomicU64::new(0),
            declassified: Vec::new(),
            recorder: None,
            is_streamed: false,
        })
    }

    /// Draws from another source; a seed is for tests, and certificates say so.
    pub fn with_randomness(self, randomness: Randomness) -> Self {
        Self { randomness, ..self }
    }

    /// Draws from the key in this file, so that the one run of this session can be continued by another process.
    pub fn with_key_file(self, key_file: Arc<KeyFile>) -> Self {
        Self { key_file: Some(key_file), ..self }
    }

    /// Records its one run, so that [`Session::authorise`] of another process can go on with it.
    pub fn with_record(self, record: Arc<dyn Record>) -> Self {
        Self { key_file: Some(record.key_file()), record: Some(record), ..self }
    }

    /// Debits this ledger.
    pub fn with_ledger(self, ledger: impl Ledger + 'static) -> Self {
        Self { ledger: Mutex::new(Box::new(ledger)), ..self }
    }

    /// Opens every sum before noise to a replay audit, loudly: as with [`Session::declassify`], a warning goes to standard error
    /// (once a process), and no certificate of this session verifies.
    pub fn with_recorder(mut self, recorder: Arc<Recorder>) -> Self {
        replay::warn();
        self.declassified.push(replay::REASON.to_string());
        Self { recorder: Some(recorder), ..self }
    }

    /// Uses at most this many threads. It makes no difference to any result.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// The number of private units, where it is public.
    pub fn units(&self) -> Option<usize> {
        match self.adjacency {
            Adjacency::ReplaceOne => Some(self.data.open().units()),
            Adjacency::AddRemove => None,
        }
    }

    /// Reads the rows into so many bytes of memory if they fit, and leaves them where they are otherwise
    /// ([`Private::streamed`]). Many rows that lie in memory already ([`BlockSource::is_resident`]) are not copied. It makes no
    /// difference to any result of a program.
    pub fn arranged(self, memory: u64) -> Result<Session<Box<dyn BlockSource>>>
    where
        S: 'static,
    {
        let source = self.data.open();
        let bytes = source.units() as u128 * u128::from(source.bytes_per_unit());
        let stays = source.is_resident() && bytes > LARGEST_COPY;
        let is_streamed = !stays && bytes > u128::from(memory);
        let data = match (stays, is_streamed) {
            (true, _) => self.data.boxed(),
            (_, true) => self.data.streamed().boxed(),
            _ => self.data.in_memory()?.boxed(),
        };
        Ok(Session {
            data,
            adjacency: self.adjacency,
            randomness: self.randomness,
            key_file: self.key_file,
            record: self.record,
            threads: self.threads,
            ledger: self.ledger,
            runs: self.runs,
            declassified: self.declassified,
            recorder: self.recorder,
            is_streamed,
        })
    }

    /// Whether [`Session::arranged`] found too little memory for the rows, where their number is public: it would
    /// tell something of it otherwise.
    pub fn is_streamed(&self) -> Option<bool> {
        self.units().map(|_| self.is_streamed)
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.data.open().width()
    }

    /// Checks a program, computes what it costs, debits the ledger, and hands out its tickets.
    pub fn authorise<M: Mechanism>(
        &self,
        program: Program<M>,
        delta: Delta,
    ) -> Result<(Run<'_, S, M>, Tickets)> {
        let prepared = self.prepare(program, delta)?;
        let Some(record) = &self.record else { return prepared.begin() };
        let begun = match record.kept() {
            Some(kept) => {
                prepared.check(&kept)?;
                record.begun();
                prepared.debited(kept.done)
            }
            None => {
                let identity = prepared.identity().ok_or(Error::Foreign { thing: "record" })?;
                record.write(identity, &prepared.seal(record.text())?)?;
                record.begun();
                prepared.begin()
            }
        };
        if let Err(Error::BudgetRefused { .. }) = begun {
            record.refused();
        }
        begun
    }

    /// Checks a program and computes what it costs. Nothing is spent and no ticket handed out yet.
    pub fn prepare<M: Mechanism>(&self, program: Program<M>, delta: Delta) -> Result<Prepared<'_, S, M>> {
        let Program { mechanism, sampling, steps, dimension } = program;
        let units = self.data.open().units();
        let dimension = dimension.unwrap_or_else(|| self.width());
        sampling.check(self.adjacency, units as u64)?;
        noise::check(&mechanism)?;
        let event = mechanism.event(&sampling, units as u64, dimension as u64)?;
        let events = vec![CountedEvent::new(event, Steps::new(sampling.events(steps.get()))?)];
        let certificate = self.certify(&mechanism, events, delta, steps.get() as f64 * dimension as f64)?;
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let (key, name, identity) = match &self.key_file {
            None => (self.randomness.key(number)?, RunId::random()?, None),
            Some(file) => {
                let key = file.take()?;
                let facts = Facts {
                    events: &certificate.events,
                    adjacency: self.adjacency,
                    delta,
                    random_source: file.source(),
                    steps: steps.get(),
                    dimension,
                    width: self.width(),
                    units: self.units(),
                };
                let rows = kept::fingerprint(self.data.open(), key, self.threads)?;
                (key.clone(), file.run(), Some(Identity::new(file.run(), &facts, rows)))
            }
        };
        let program = self.recorder.as_ref().map_or(0, |recorder| {
            let events = certificate.events.clone();
            let (adjacency, steps) = (self.adjacency, steps.get());
            recorder.begin(ReplayedProgram { adjacency, sampling, steps, dimension, events })
        });
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = Run {
            session: self,
            program,
            mechanism,
            sampling,
            dimension,
            certificate,
            key,
            id: RUNS.fetch_add(1, Ordering::Relaxed),
            queries: AtomicU64::new(0),
            assignment: Assignment::default(),
            identity,
            process: std::process::id(),
        };
        Ok(Prepared { run, name, steps: steps.get() })
    }

    fn certify(
        &self,
        mechanism: &impl Mechanism,
        events: Vec<CountedEvent>,
        delta: Delta,
        draws: f64,
    ) -> Result<Certificate> {
        let spared = match mechanism.log_total_variation() {
            Some(_) => calibration_delta(delta),
            None => delta,
        };
        let mut certificate =
            Certificate::issue(events, self.adjacency, Trust::Central, spared, mechanism.name())?;
        if mechanism.log_total_variation().is_some()
            && delta.get() < smallest_delta(certificate.guarantee.epsilon, draws)
        {
            return Err(Error::invalid(
                "delta",
                delta,
                "larger: at this epsilon the sampler's error of 2^-188 a draw is not negligible next to it",
            ));
        }
        certificate.guarantee.delta = delta;
        certificate.arithmetic = mechanism.arithmetic();
        certificate.random_source = match &self.key_file {
            Some(file) => file.source(),
            None => self.randomness.source(),
        };
        self.declassified.iter().for_each(|reason| certificate.declassify(reason));
        Ok(certificate)
    }

    /// Opens the private data to the caller, loudly: a warning goes to standard error, and every
    /// certificate of this session from now on says that it promises nothing, and why.
    pub fn declassify(&mut self, reason: &str) -> &S {
        eprintln!("warning: private data was declassified and is no longer protected: {reason}");
        self.declassified.push(reason.to_string());
        self.data.open()
    }

    /// Ends the session and opens the data, as [`Session::declassify`] does.
    pub fn into_declassified(mut self, reason: &str) -> S {
        self.declassify(reason);
        self.data.into_inner()
    }
}

impl<S> fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session {{ data: {:?}, adjacency: {} }}", self.data, self.adjacency)
    }
}

/// A program that was checked, and has not begun.
pub struct Prepared<'s, S, M> {
    run: Run<'s, S, M>,
    name: RunId,
    steps: u64,
}

impl<'s, S: BlockSource, M: Mechanism> Prepared<'s, S, M> {
    /// What may not change if it is interrupted; `None` without a key file.
    pub fn identity(&self) -> Option<&Identity> {
        self.run.identity()
    }

    /// Seals what there is to keep before the first step: see [`Run::seal`]. Write that down first, then begin: who is
    /// interrupted between the two pays nothing, and who is interrupted later pays once.
    pub fn seal(&self, text: &str) -> Result<String> {
        self.run.seal(0, text)
    }

    /// Debits the ledger and hands out the tickets. A key that another run began with is refused.
    pub fn begin(self) -> Result<(Run<'s, S, M>, Tickets)> {
        if self.run.session.key_file.as_ref().is_some_and(|file| !file.is_new()) {
            return Err(Error::Foreign { thing: "key file" });
        }
        self.debited(0)
    }

    /// Goes on where a run of the same key, rows and program was interrupted, after the steps that were done. The
    /// ledger knows the run already, or is debited now. What was released so far comes back as a value of this run.
    pub fn resume(self, kept: &Kept<'_>) -> Result<(Run<'s, S, M>, Tickets, Noised<()>)> {
        self.check(kept)?;
        let released = Noised::new((), self.run.id);
        let (run, tickets) = self.debited(kept.done)?;
        Ok((run, tickets, released))
    }

    fn check(&self, kept: &Kept<'_>) -> Result<()> {
        let Some(now) = &self.run.identity else { return Err(Error::Foreign { thing: "checkpoint" }) };
        kept.check(now, &self.run.key)
    }

    fn debited(self, done: u64) -> Result<(Run<'s, S, M>, Tickets)> {
        let Self { run, name, steps } = self;
        run.check_process()?;
        let charge = Charge {
            run: name,
            events: &run.certificate.events,
            adjacency: run.session.adjacency,
            epsilon: run.certificate.guarantee.epsilon,
            delta: run.certificate.guarantee.delta,
        };
        run.session.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).debit(&charge)?;
        let tickets = Tickets { run: run.id, next: done, end: steps };
        Ok((run, tickets))
    }
}

/// Permission for one step. Asking consumes it, and there are as many as were authorised: a step too
/// many does not compile.
#[derive(Debug)]
pub struct Ticket {
    run: u64,
    step: u64,
}

impl Ticket {
    /// Which step of the program this is, from 0.
    pub fn step(&self) -> u64 {
        self.step
    }
}

/// The tickets of a program, in order.
#[derive(Debug)]
pub struct Tickets {
    run: u64,
    next: u64,
    end: u64,
}

impl Iterator for Tickets {
    type Item = Ticket;

    fn next(&mut self) -> Option<Ticket> {
        let step = self.next;
        (step < self.end).then(|| {
            self.next += 1;
            Ticket { run: self.run, step }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Tickets {}

/// An authorised program at work.
pub struct Run<'s, S, M> {
    session: &'s Session<S>,
    /// The number that a recorder knows it by.
    program: usize,
    mechanism: M,
    sampling: Sampling,
    dimension: usize,
    certificate: Certificate,
    key: RunKey,
    id: u64,
    queries: AtomicU64,
    assignment: Assignment,
    /// Of a run that can be continued.
    identity: Option<Identity>,
    /// Whose it is: after a fork there are two with the same key.
    process: u32,
}

impl<S: BlockSource, M: Mechanism> Run<'_, S, M> {
    /// What may not change while it is interrupted; `None` without a key file.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The seal on what is kept after so many steps, to be handed to [`Prepared::resume`] with it. The text must be made
    /// of released values and public data.
    pub fn seal(&self, done: u64, text: &str) -> Result<String> {
        let Some(identity) = &self.identity else { return Err(Error::Foreign { thing: "checkpoint" }) };
        kept::seal(identity, &self.key, done, text)
    }

    /// The sum of clipped contributions of the units that this step's sample holds.
    pub fn sum<Q: Query>(&self, query: &Q, ticket: Ticket) -> Result<Partial<Q::Norm>> {
        let mut shards = self.shards(query, ticket, 1)?;
        Ok(shards.pop().expect("one shard"))
    }

    /// The same in up to 64 shards, to be merged before noise is added.
    pub fn shards<Q: Query>(&self, query: &Q, ticket: Ticket, shards: u32) -> Result<Vec<Partial<Q::Norm>>> {
        self.check_process()?;
        let source = self.session.data.open();
        if ticket.run != self.id {
            return Err(Error::Foreign { thing: "ticket" });
        }
        if !(1..=64).contains(&shards) {
            return Err(Error::invalid("shards", shards, "a whole number from 1 to 64"));
        }
        if query.width() != source.width() {
            let (found, expected) = (query.width(), source.width());
            return Err(Error::Shape { what: "the query", of: "columns", found, expected });
        }
        let selection = Draw {
            sampling: self.sampling,
            adjacency: self.session.adjacency,
            units: source.units(),
            key: &self.key,
            assignment: &self.assignment,
        }
        .select(ticket.step);
        let number = self.queries.fetch_add(1, Ordering::Relaxed);
        let mut partials = Vec::new();
        for shard in 0..shards {
            let at = |shard: u32| source.blocks() * shard as usize / shards as usize;
            let blocks = at(shard)..at(shard + 1);
            let threads = self.session.threads.min(blocks.len().max(1));
            // Whoever is free takes the next block: sums are exact, so it makes no difference who.
            let next = AtomicUsize::new(blocks.start);
            let mut parts: Vec<Result<Vec<i64>>> = (0..threads).map(|_| Ok(Vec::new())).collect();
            parallel::for_each(&mut parts, threads, |sums| {
                let mut worker = query.worker();
                let mut visit_all = || -> Result<()> {
                    loop {
                        let block = next.fetch_add(1, Ordering::Relaxed);
                        if block >= blocks.end {
                            return Ok(());
                        }
                        let mut left = source.units_of(block);
                        // What nobody is chosen of need not be read.
                        if !selection.has_any(&left) {
                            continue;
                        }
                        if source.is_resident() {
                            let chosen = selection.within(left);
                            let mut left = chosen.len();
                            source.visit_some(block, &chosen, &mut |piece| {
                                // Whatever the source shows, no more units are added than were chosen.
                                let units = piece.units();
                                if units <= left {
                                    worker.add(piece, &Selection::Everyone, 0..units);
                                }
                                left = left.saturating_sub(units);
                            })?;
                            continue;
                        }
                        source.visit(block, &mut |piece| {
                            // Whatever the source shows, no unit is added twice.
                            let units = left.start..left.start.saturating_add(piece.units());
                            left.start = units.end.min(left.end);
                            if units.end <= left.end {
                                worker.add(piece, &selection, units);
                            }
                        })?;
                    }
                };
                *sums = visit_all().map(|()| worker.into_sums());
            });
            let mut parts = parts.into_iter();
            let mut total = parts.next().expect("at least one thread")?;
            for sums in parts {
                for (sum, part) in total.iter_mut().zip(sums?) {
                    *sum = sum.wrapping_add(part);
                }
            }
            let lineage =
                Lineage { run: self.id, step: ticket.step, query: number, shards, covered: 1 << shard };
            partials.push(Partial::new(total, query.grid(), lineage));
        }
        Ok(partials)
    }

    /// Adds noise to a complete sum and releases it. An empty sample is noised like any other.
    pub fn noise(&self, partial: Partial<M::Norm>) -> Result<Noised<Vec<f64>>> {
        self.check_process()?;
        let (mut sum, grid, lineage) = partial.into_parts()?;
        if lineage.run != self.id {
            return Err(Error::Foreign { thing: "partial sum" });
        }
        if sum.len() != self.dimension {
            let (found, expected) = (sum.len(), self.dimension);
            return Err(Error::Shape { what: "the sum", of: "coordinates", found, expected });
        }
        let key = match &self.identity {
            Some(_) => kept::noise_key(&self.key, lineage.step, grid.step(), &sum),
            None => self.key.clone(),
        };
        let address = (&key, lineage.step);
        let before = self.session.recorder.as_ref().map(|recorder| (recorder, sum.clone()));
        noise::add_noise(&self.mechanism, &mut sum, grid.clip_steps(), address, self.session.threads);
        // A power of two times an integer: exact up to 2^53, a function of the integer beyond.
        let mut released: Vec<f64> = sum.into_iter().map(|k| k as f64 * grid.step()).collect();
        if let Some((recorder, sum)) = before {
            released = recorder.note(ReplayedStep {
                program: self.program,
                step: lineage.step,
                norm: <M::Norm as NormLaw>::NORM,
                sum,
                grid_step: grid.step(),
                clip_steps: grid.clip_steps(),
                noise_multiplier: self.mechanism.noise_multiplier().get(),
                noise_scale: noise::scale_in_steps(self.mechanism.noise_multiplier(), grid.clip_steps()),
                released,
            });
        }
        Ok(Noised::new(released, self.id))
    }

    /// A run that was forked would draw the same noise twice, once in each process.
    fn check_process(&self) -> Result<()> {
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(Error::Forked),
        }
    }

    /// Ends the run with its result and the certificate of all its steps, taken or not: stopping
    /// early refunds nothing. A value of another run, or of several, has another certificate.
    pub fn finish<T>(self, tickets: Tickets, value: Noised<T>) -> Result<Release<T>> {
        if tickets.run != self.id {
            return Err(Error::Foreign { thing: "ticket" });
        }
        if value.run() != Some(self.id) {
            return Err(Error::Foreign { thing: "value" });
        }
        Ok(Release { value: value.into_inner(), certificate: self.certificate })
    }
}
