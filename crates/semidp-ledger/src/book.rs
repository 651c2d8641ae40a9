//! The entries of a ledger as tables: read whole and verified, written one at a time.

use crate::chain::{self, Digest};
use crate::cost::{Cost, Rule, State, rho_of};
use crate::{Debit, Error, Plan, Result};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Epsilon, FilterCharge, PrivacyBudget, Rho, parse_events,
};
use semidp_core::{Charge, RunId};
use std::collections::BTreeMap;
use std::path::Path;

/// A form of the tables.
pub struct Format {
    name: &'static str,
    /// The `user_version` of the database.
    pub version: u32,
    tables: &'static [&'static Table],
    /// The statements that make them.
    schema: &'static str,
}

/// Columns in the order in which they are digested; the digest itself comes last.
#[derive(PartialEq)]
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
}

const BUDGETS: Table = Table {
    name: "budgets",
    columns: &["sequence", "dataset", "adjacency", "currency", "epsilon", "delta", "rho", "time"],
};
const PLANS: Table = Table {
    name: "plans",
    columns: &[
        "sequence",
        "dataset",
        "adjacency",
        "runs",
        "rule",
        "cost",
        "variance",
        "slack",
        "description",
        "time",
    ],
};
const DEBITS: Table = Table {
    name: "debits",
    columns: &[
        "sequence",
        "run",
        "dataset",
        "adjacency",
        "events",
        "epsilon",
        "delta",
        "rho",
        "rule",
        "cost",
        "variance",
        "slack",
        "plan",
        "entry",
        "description",
        "path",
        "time",
    ],
};
const DEBITS_1: Table = Table {
    name: "debits",
    columns: &[
        "sequence",
        "run",
        "dataset",
        "adjacency",
        "events",
        "epsilon",
        "delta",
        "rho",
        "description",
        "time",
    ],
};

/// The present form.
pub const FORMAT: Format =
    Format { name: "semidp-ledger/2", version: 2, tables: &[&BUDGETS, &PLANS, &DEBITS], schema: SCHEMA };
/// The first form: no plans, and runs without the rule by which they were charged.
pub const FORMAT_1: Format =
    Format { name: "semidp-ledger/1", version: 1, tables: &[&BUDGETS, &DEBITS_1], schema: SCHEMA_1 };

const SCHEMA: &str = "
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1), format TEXT NOT NULL, entries INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT;
CREATE TABLE budgets (
    dataset TEXT PRIMARY KEY NOT NULL, sequence INTEGER NOT NULL UNIQUE, adjacency TEXT NOT NULL,
    currency TEXT NOT NULL, epsilon REAL, delta REAL, rho REAL, time TEXT NOT NULL, digest BLOB NOT NULL
) STRICT;
CREATE TABLE plans (
    sequence INTEGER PRIMARY KEY NOT NULL, dataset TEXT NOT NULL REFERENCES budgets (dataset),
    adjacency TEXT NOT NULL, runs TEXT NOT NULL, rule TEXT NOT NULL, cost TEXT, variance REAL, slack REAL,
    description TEXT NOT NULL, time TEXT NOT NULL, digest BLOB NOT NULL
) STRICT;
CREATE TABLE debits (
    run TEXT PRIMARY KEY NOT NULL, sequence INTEGER NOT NULL UNIQUE,
    dataset TEXT NOT NULL REFERENCES budgets (dataset), adjacency TEXT NOT NULL, events TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, rho REAL, rule TEXT NOT NULL, cost TEXT, variance REAL, slack REAL,
    plan INTEGER REFERENCES plans (sequence), entry INTEGER, description TEXT NOT NULL, path TEXT, time TEXT NOT NULL,
    digest BLOB NOT NULL
) STRICT;
";

const SCHEMA_1: &str = "
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1), format TEXT NOT NULL, entries INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT;
CREATE TABLE budgets (
    dataset TEXT PRIMARY KEY NOT NULL, sequence INTEGER NOT NULL UNIQUE, adjacency TEXT NOT NULL,
    currency TEXT NOT NULL, epsilon REAL, delta REAL, rho REAL, time TEXT NOT NULL, digest BLOB NOT NULL
) STRICT;
CREATE TABLE debits (
    run TEXT PRIMARY KEY NOT NULL, sequence INTEGER NOT NULL UNIQUE,
    dataset TEXT NOT NULL REFERENCES budgets (dataset), adjacency TEXT NOT NULL, events TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, rho REAL, description TEXT NOT NULL, time TEXT NOT NULL,
    digest BLOB NOT NULL
) STRICT;
";

/// What the schema table of a database says of an object: type, name, table and statement. Indexes of constraints have no statement.
type Object = (String, String, String, Option<String>);

/// A budget that was set.
#[derive(Clone)]
pub struct Budget {
    pub dataset: String,
    pub adjacency: Adjacency,
    pub budget: PrivacyBudget,
    pub time: String,
}

/// A debit before it is recorded.
pub struct NewDebit<'a> {
    pub dataset: &'a str,
    pub description: &'a str,
    pub path: Option<&'a str>,
    pub charge: &'a Charge<'a>,
    pub rule: Rule,
    pub cost: Cost,
    /// The plan that pays, and the position of the run in it.
    pub planned: Option<(u64, usize)>,
}

/// A plan before it is recorded.
pub struct NewPlan<'a> {
    pub dataset: &'a str,
    pub adjacency: Adjacency,
    pub description: &'a str,
    pub runs: &'a [Vec<CountedEvent>],
    pub rule: Rule,
    pub cost: Cost,
}

/// A recorded debit whose events are still text.
pub struct Recorded {
    pub run: RunId,
    pub sequence: u64,
    pub dataset: String,
    pub adjacency: Adjacency,
    pub events: String,
    pub path: Option<String>,
    pub planned: Option<(u64, usize)>,
    rule: Rule,
    cost: Cost,
    epsilon: Epsilon,
    delta: Delta,
    rho: Option<Rho>,
    description: String,
    time: String,
}

impl Recorded {
    /// Its events.
    pub fn events(&self, path: &Path) -> Result<Vec<CountedEvent>> {
        parse_events(&self.events).map_err(|error| Error::UnknownEntry {
            path: path.into(),
            entry: self.sequence,
            reason: error.to_string(),
        })
    }

    /// Everything about it.
    pub fn debit(&self, path: &Path) -> Result<Debit> {
        Ok(Debit {
            run: self.run,
            sequence: self.sequence,
            dataset: self.dataset.clone(),
            adjacency: self.adjacency,
            events: self.events(path)?,
            epsilon: self.epsilon,
            delta: self.delta,
            rho: self.rho,
            rule: self.rule,
            cost: self.cost,
            plan: self.planned.map(|(plan, _)| plan),
            path: self.path.clone(),
            description: self.description.clone(),
            time: self.time.clone(),
        })
    }
}

/// Everything in a ledger, verified.
pub struct Book {
    pub budgets: Vec<Budget>,
    pub plans: Vec<Plan>,
    pub debits: Vec<Recorded>,
    states: BTreeMap<String, State>,
    entries: u64,
    last: Digest,
}

/// A row as it lies in a table.
struct Row {
    table: &'static Table,
    values: Vec<Value>,
    digest: Vec<u8>,
}

impl Row {
    fn sequence(&self) -> i64 {
        match self.values[0] {
            Value::Integer(number) => number,
            _ => 0,
        }
    }

    fn column(&self, name: &str) -> &Value {
        let position = self.table.columns.iter().position(|column| *column == name);
        position.map_or(&Value::Null, |position| &self.values[position])
    }

    fn string(&self, name: &str) -> std::result::Result<String, String> {
        match self.column(name) {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(format!("{name} is no text")),
        }
    }

    fn number(&self, name: &str) -> std::result::Result<f64, String> {
        match self.column(name) {
            Value::Real(number) => Ok(*number),
            _ => Err(format!("{name} is no number")),
        }
    }

    fn integer(&self, name: &str) -> std::result::Result<u64, String> {
        match self.column(name) {
            Value::Integer(number) if *number >= 0 => Ok(*number as u64),
            _ => Err(format!("{name} is no whole number")),
        }
    }

    fn is_null(&self, name: &str) -> bool {
        *self.column(name) == Value::Null
    }

    fn adjacency(&self) -> std::result::Result<Adjacency, String> {
        let name = self.string("adjacency")?;
        let known = [Adjacency::ReplaceOne, Adjacency::AddRemove].into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| format!("adjacency `{name}`"))
    }

    fn rule(&self) -> std::result::Result<Rule, String> {
        let name = self.string("rule")?;
        Rule::ALL.into_iter().find(|rule| rule.name() == name).ok_or_else(|| format!("rule `{name}`"))
    }

    /// What the entry takes: by what is recorded, not by the name of the rule.
    fn cost(&self) -> std::result::Result<Cost, String> {
        match (self.is_null("cost"), self.is_null("variance"), self.is_null("slack")) {
            (false, true, true) => Ok(Cost::Sum(self.string("cost")?.parse().map_err(in_words)?)),
            (true, false, false) => {
                let (variance, slack) = (self.number("variance")?, self.number("slack")?);
                if !(variance >= 0.0 && slack >= 0.0) {
                    return Err("a charge below zero".into());
                }
                Ok(Cost::Filter(FilterCharge { variance, slack }))
            }
            (true, true, true) if !self.is_null("plan") => Ok(Cost::Nothing),
            (true, true, true) => Ok(Cost::Whole),
            _ => Err("a charge in two currencies".into()),
        }
    }
}

impl Book {
    fn empty(format: &Format) -> Self {
        Self {
            budgets: Vec::new(),
            plans: Vec::new(),
            debits: Vec::new(),
            states: BTreeMap::new(),
            entries: 0,
            last: chain::start(format.name),
        }
    }

    /// Makes the tables of an empty ledger.
    pub fn create(database: &Connection) -> rusqlite::Result<Self> {
        database.execute_batch(SCHEMA)?;
        let book = Self::empty(&FORMAT);
        database.execute(
            "INSERT INTO head (id, format, entries, digest) VALUES (1, ?1, 0, ?2)",
            (FORMAT.name, chain::head(&book.last, 0)),
        )?;
        Ok(book)
    }

    /// Reads everything and checks the whole chain. To be called in a transaction.
    pub fn read(database: &Connection, path: &Path) -> Result<Self> {
        let mut book = Self::empty(&FORMAT);
        let rows = book.verify(database, path, &FORMAT)?;
        for row in &rows {
            book.understand(row).map_err(|reason| Error::UnknownEntry {
                path: path.into(),
                entry: row.sequence() as u64,
                reason,
            })?;
        }
        Ok(book)
    }

    /// The rows of all tables in order, once their chain is verified.
    fn verify(&mut self, database: &Connection, path: &Path, format: &Format) -> Result<Vec<Row>> {
        let failed = |error| Error::reading(path, error);
        check_schema(database, path, format)?;
        let mut rows = Vec::new();
        for table in format.tables {
            rows.extend(rows_of(database, table).map_err(failed)?);
        }
        rows.sort_by_key(Row::sequence);
        for (position, row) in rows.iter().enumerate() {
            let expected = position as i64 + 1;
            if row.sequence() != expected {
                return Err(Error::changed(path, format!("entry {expected} is missing or moved")));
            }
            self.last = chain::entry(&self.last, row.table.name, &row.values);
            if row.digest != self.last {
                return Err(Error::changed(path, format!("entry {expected} is not as it was written")));
            }
        }
        self.entries = rows.len() as u64;
        let mut heads = database.prepare("SELECT id, format, entries, digest FROM head").map_err(failed)?;
        let heads: Vec<(i64, String, i64, Vec<u8>)> = heads
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .and_then(Iterator::collect)
            .map_err(failed)?;
        let digest = chain::head(&self.last, self.entries).to_vec();
        if heads != [(1, format.name.to_string(), self.entries as i64, digest)] {
            return Err(Error::changed(path, "its entries are not those it was closed with"));
        }
        Ok(rows)
    }

    /// Brings the tables of the first format up to date. Every old run is charged by today's rules, in its order.
    pub fn migrate(database: &Connection, path: &Path) -> Result<()> {
        let failed = |error| Error::unusable(path, error);
        let rows = Self::empty(&FORMAT_1).verify(database, path, &FORMAT_1)?;
        database.execute_batch("DROP TABLE debits; DROP TABLE budgets; DROP TABLE head;").map_err(failed)?;
        let mut book = Self::create(database).map_err(failed)?;
        database.pragma_update(None, "user_version", FORMAT.version).map_err(failed)?;
        for row in rows {
            let sequence = row.sequence() as u64;
            let unknown = |reason| Error::UnknownEntry { path: path.into(), entry: sequence, reason };
            if row.table == &BUDGETS {
                book.understand(&row).map_err(unknown)?;
                book.append(database, path, &BUDGETS, row.values)?;
                continue;
            }
            let dataset = row.string("dataset").map_err(unknown)?;
            let events = row.string("events").map_err(unknown)?;
            let events = parse_events(&events).map_err(|error| unknown(error.to_string()))?;
            let state =
                book.states.get(&dataset).ok_or_else(|| unknown("its data set has no budget".into()))?;
            let cost = state.price_granted(&events);
            let values = DEBITS.columns.iter().map(|column| match *column {
                "rule" => text(Rule::Migrated.name()),
                "cost" => cost_text(cost),
                "variance" => cost_numbers(cost).0,
                "slack" => cost_numbers(cost).1,
                other => row.column(other).clone(),
            });
            let new = Row { table: &DEBITS, values: values.collect(), digest: Vec::new() };
            book.understand(&new).map_err(unknown)?;
            book.append(database, path, &DEBITS, new.values)?;
        }
        Self::read(database, path).map(|_| ())
    }

    /// The budget of a data set.
    pub fn budget(&self, dataset: &str, path: &Path) -> Result<&Budget> {
        let unknown = || Error::UnknownDataset { path: path.into(), dataset: dataset.into() };
        self.budgets.iter().find(|budget| budget.dataset == dataset).ok_or_else(unknown)
    }

    /// What was spent of the budget of a data set.
    pub fn state(&self, dataset: &str, path: &Path) -> Result<State> {
        let unknown = || Error::UnknownDataset { path: path.into(), dataset: dataset.into() };
        self.states.get(dataset).copied().ok_or_else(unknown)
    }

    /// Sets a budget.
    pub fn add_budget(
        mut self,
        database: &Connection,
        path: &Path,
        (dataset, budget, adjacency): (&str, PrivacyBudget, Adjacency),
    ) -> Result<()> {
        let (currency, epsilon, delta, rho) = match budget {
            PrivacyBudget::Approximate { epsilon, delta } => {
                ("approximate", Some(epsilon.get()), Some(delta.get()), None)
            }
            PrivacyBudget::Pure { epsilon } => ("pure", Some(epsilon.get()), None, None),
            PrivacyBudget::Zcdp { rho, stated_at } => ("zcdp", None, Some(stated_at.get()), Some(rho.get())),
        };
        let values = vec![
            self.next(),
            text(dataset),
            text(adjacency.name()),
            text(currency),
            real(epsilon),
            real(delta),
            real(rho),
            now(database, path)?,
        ];
        self.append(database, path, &BUDGETS, values)
    }

    /// Records a debit.
    pub fn add_debit(mut self, database: &Connection, path: &Path, debit: &NewDebit<'_>) -> Result<()> {
        let charge = debit.charge;
        let events = serde_json::to_string(charge.events).map_err(|error| Error::unusable(path, error))?;
        let (variance, slack) = cost_numbers(debit.cost);
        let integer =
            |number: Option<u64>| number.map_or(Value::Null, |number| Value::Integer(number as i64));
        let values = vec![
            self.next(),
            text(&charge.run.to_string()),
            text(debit.dataset),
            text(charge.adjacency.name()),
            text(&events),
            real(Some(charge.epsilon.get())),
            real(Some(charge.delta.get())),
            real(rho_of(charge.events, charge.adjacency)),
            text(debit.rule.name()),
            cost_text(debit.cost),
            variance,
            slack,
            integer(debit.planned.map(|(plan, _)| plan)),
            integer(debit.planned.map(|(_, entry)| entry as u64)),
            text(debit.description),
            debit.path.map_or(Value::Null, text),
            now(database, path)?,
        ];
        self.append(database, path, &DEBITS, values)
    }

    /// Records a plan.
    pub fn add_plan(mut self, database: &Connection, path: &Path, plan: &NewPlan<'_>) -> Result<()> {
        let runs = serde_json::to_string(plan.runs).map_err(|error| Error::unusable(path, error))?;
        let (variance, slack) = cost_numbers(plan.cost);
        let values = vec![
            self.next(),
            text(plan.dataset),
            text(plan.adjacency.name()),
            text(&runs),
            text(plan.rule.name()),
            cost_text(plan.cost),
            variance,
            slack,
            text(plan.description),
            now(database, path)?,
        ];
        self.append(database, path, &PLANS, values)
    }

    fn next(&self) -> Value {
        Value::Integer(self.entries as i64 + 1)
    }

    /// Adds a row to the chain. What the row means is not taken into account.
    fn append(
        &mut self,
        database: &Connection,
        path: &Path,
        table: &Table,
        mut values: Vec<Value>,
    ) -> Result<()> {
        let failed = |error| Error::unusable(path, error);
        self.entries += 1;
        self.last = chain::entry(&self.last, table.name, &values);
        values.push(Value::Blob(self.last.into()));
        let places: Vec<String> = (1..=values.len()).map(|place| format!("?{place}")).collect();
        let insert = format!(
            "INSERT INTO {} ({}, digest) VALUES ({})",
            table.name,
            table.columns.join(", "),
            places.join(", ")
        );
        let mut insert = database.prepare(&insert).map_err(failed)?;
        insert.execute(params_from_iter(values)).map_err(failed)?;
        let head = (self.entries as i64, chain::head(&self.last, self.entries));
        let mut update = database.prepare("UPDATE head SET entries = ?1, digest = ?2").map_err(failed)?;
        update.execute(head).map_err(failed)?;
        Ok(())
    }

    fn understand(&mut self, row: &Row) -> std::result::Result<(), String> {
        let epsilon = || Epsilon::new(row.number("epsilon")?).map_err(in_words);
        let delta = || Delta::new(row.number("delta")?).map_err(in_words);
        let rho = || Rho::new(row.number("rho")?).map_err(in_words);
        let (adjacency, dataset, time) = (row.adjacency()?, row.string("dataset")?, row.string("time")?);
        let sequence = row.sequence() as u64;
        if row.table == &BUDGETS {
            let budget = match &*row.string("currency")? {
                "approximate" => PrivacyBudget::Approximate { epsilon: epsilon()?, delta: delta()? },
                "pure" => PrivacyBudget::Pure { epsilon: epsilon()? },
                "zcdp" => PrivacyBudget::Zcdp { rho: rho()?, stated_at: delta()? },
                other => return Err(format!("currency `{other}`")),
            };
            self.states.insert(dataset.clone(), State::new(budget, adjacency));
            self.budgets.push(Budget { dataset, adjacency, budget, time });
            return Ok(());
        }
        let (rule, cost) = (row.rule()?, row.cost()?);
        self.states.get_mut(&dataset).ok_or("its data set has no budget")?.take(cost);
        if row.table == &PLANS {
            let runs: Vec<Vec<CountedEvent>> =
                serde_json::from_str(&row.string("runs")?).map_err(in_words)?;
            let drawn = vec![None; runs.len()];
            let description = row.string("description")?;
            self.plans.push(Plan {
                sequence,
                dataset,
                adjacency,
                runs,
                drawn,
                rule,
                cost,
                description,
                time,
            });
            return Ok(());
        }
        let run = row.string("run")?.parse().map_err(in_words)?;
        let planned = match row.is_null("plan") {
            true => None,
            false => Some((row.integer("plan")?, row.integer("entry")? as usize)),
        };
        if let Some((plan, entry)) = planned {
            let plan = self.plans.iter_mut().find(|known| known.sequence == plan && known.dataset == dataset);
            let place = plan.and_then(|plan| plan.drawn.get_mut(entry)).ok_or("no such plan")?;
            if place.replace(run).is_some() {
                return Err("another run drew on the same entry of its plan".into());
            }
        }
        self.debits.push(Recorded {
            run,
            sequence,
            dataset,
            adjacency,
            events: row.string("events")?,
            epsilon: epsilon()?,
            delta: delta()?,
            rho: if row.is_null("rho") { None } else { Some(rho()?) },
            rule,
            cost,
            planned,
            path: if row.is_null("path") { None } else { Some(row.string("path")?) },
            description: row.string("description")?,
            time,
        });
        Ok(())
    }
}

/// Refuses a database that has anything but the tables of its format, word for word: views, triggers and generated columns can show
/// other rows at other times, which the digests of rows cannot find.
fn check_schema(database: &Connection, path: &Path, format: &Format) -> Result<()> {
    let version: u32 = database
        .query_row("PRAGMA user_version", (), |row| row.get(0))
        .map_err(|error| Error::reading(path, error))?;
    if version != format.version {
        return Err(Error::UnknownFormat { path: path.into(), found: version, known: FORMAT.version });
    }
    let found = objects_of(database).map_err(|error| Error::reading(path, error))?;
    let expected = Connection::open_in_memory()
        .and_then(|made| made.execute_batch(format.schema).and_then(|()| objects_of(&made)))
        .map_err(|error| Error::unusable(path, error))?;
    if found == expected {
        return Ok(());
    }
    let differs = |(kind, name, ..): &Object, how: &str| {
        Error::changed(path, format!("its {} `{}` {how}", one_line(kind), one_line(name)))
    };
    let odd = found.iter().find(|object| !expected.contains(object));
    let missing = expected.iter().find(|object| !found.contains(object));
    Err(match (odd, missing) {
        (Some(object), _) => differs(object, "is not one that semidp made"),
        (None, Some(object)) => differs(object, "is missing"),
        (None, None) => Error::changed(path, "it has a table twice"),
    })
}

/// Everything in a database, sorted. By the name `sqlite_master`: SQLite reserves it, whereas an edited file can give the name
/// `sqlite_schema` to a view.
fn objects_of(database: &Connection) -> rusqlite::Result<Vec<Object>> {
    let mut select = database.prepare("SELECT type, name, tbl_name, sql FROM main.sqlite_master")?;
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let mut objects = rows.collect::<rusqlite::Result<Vec<Object>>>()?;
    objects.sort();
    Ok(objects)
}

fn rows_of(database: &Connection, table: &'static Table) -> rusqlite::Result<Vec<Row>> {
    let select = format!("SELECT {}, digest FROM {}", table.columns.join(", "), table.name);
    let mut statement = database.prepare(&select)?;
    let rows = statement.query_map((), |row| {
        let values =
            (0..table.columns.len()).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
        Ok(Row { table, values, digest: row.get(table.columns.len())? })
    })?;
    rows.collect()
}

fn cost_text(cost: Cost) -> Value {
    match cost {
        Cost::Sum(cost) => text(&cost.to_string()),
        _ => Value::Null,
    }
}

fn cost_numbers(cost: Cost) -> (Value, Value) {
    match cost {
        Cost::Filter(charge) => (real(Some(charge.variance)), real(Some(charge.slack))),
        _ => (Value::Null, Value::Null),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// Zero has one sign only once it is stored, so it is given that one before.
fn real(number: Option<f64>) -> Value {
    number.map_or(Value::Null, |number| Value::Real(number + 0.0))
}

fn now(database: &Connection, path: &Path) -> Result<Value> {
    let time = database.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', 'now')", (), |row| row.get(0));
    time.map(Value::Text).map_err(|error| Error::unusable(path, error))
}

fn in_words(error: impl ToString) -> String {
    error.to_string()
}

/// Text that cannot break a table: one line, and not too long.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}
