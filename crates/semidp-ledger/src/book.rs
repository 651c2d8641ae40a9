//! The entries of a ledger as tables: read whole and verified, written one at a time.

use crate::chain::{self, Digest};
use crate::{Debit, Error, Result, cost};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, PrivacyBudget, Rho, parse_events};
use semidp_core::Charge;
use std::path::Path;

const FORMAT: &str = "semidp-ledger/1";

/// Columns in the order in which they are digested; the digest itself comes last.
struct Table {
    name: &'static str,
    columns: &'static [&'static str],
}

const BUDGETS: Table = Table {
    name: "budgets",
    columns: &["sequence", "dataset", "adjacency", "currency", "epsilon", "delta", "rho", "time"],
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
        "description",
        "time",
    ],
};

const SCHEMA: &str = "
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

/// A budget that was set.
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
    pub charge: &'a Charge<'a>,
}

/// Everything in a ledger, verified.
pub struct Book {
    pub budgets: Vec<Budget>,
    pub debits: Vec<Debit>,
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
}

impl Book {
    /// Makes the tables of an empty ledger.
    pub fn create(database: &Connection) -> rusqlite::Result<Self> {
        database.execute_batch(SCHEMA)?;
        let last = chain::start(FORMAT);
        database.execute(
            "INSERT INTO head (id, format, entries, digest) VALUES (1, ?1, 0, ?2)",
            (FORMAT, chain::head(&last, 0)),
        )?;
        Ok(Self { budgets: Vec::new(), debits: Vec::new(), entries: 0, last })
    }

    /// Reads everything and checks the whole chain. To be called in a transaction.
    pub fn read(database: &Connection, path: &Path) -> Result<Self> {
        let failed = |error| Error::reading(path, error);
        let mut rows = rows_of(database, &BUDGETS).map_err(failed)?;
        rows.extend(rows_of(database, &DEBITS).map_err(failed)?);
        rows.sort_by_key(Row::sequence);
        let mut last = chain::start(FORMAT);
        for (position, row) in rows.iter().enumerate() {
            let expected = position as i64 + 1;
            if row.sequence() != expected {
                return Err(Error::changed(path, format!("entry {expected} is missing or moved")));
            }
            last = chain::entry(&last, row.table.name, &row.values);
            if row.digest != last {
                return Err(Error::changed(path, format!("entry {expected} is not as it was written")));
            }
        }
        let entries = rows.len() as u64;
        let head: (String, i64, Vec<u8>) = database
            .query_row("SELECT format, entries, digest FROM head", (), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .map_err(failed)?;
        if head != (FORMAT.into(), entries as i64, chain::head(&last, entries).into()) {
            return Err(Error::changed(path, "its entries are not those it was closed with"));
        }
        let mut book = Self { budgets: Vec::new(), debits: Vec::new(), entries, last };
        for row in &rows {
            book.understand(row).map_err(|reason| Error::UnknownEntry {
                path: path.into(),
                entry: row.sequence() as u64,
                reason,
            })?;
        }
        Ok(book)
    }

    /// The budget of a data set.
    pub fn budget(&self, dataset: &str, path: &Path) -> Result<&Budget> {
        let unknown = || Error::UnknownDataset { path: path.into(), dataset: dataset.into() };
        self.budgets.iter().find(|budget| budget.dataset == dataset).ok_or_else(unknown)
    }

    /// The events of each run on a data set.
    pub fn runs_of(&self, dataset: &str) -> Vec<&[CountedEvent]> {
        self.debits.iter().filter(|debit| debit.dataset == dataset).map(|debit| &debit.events[..]).collect()
    }

    /// Sets a budget.
    pub fn add_budget(
        self,
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
    pub fn add_debit(self, database: &Connection, path: &Path, debit: &NewDebit<'_>) -> Result<()> {
        let charge = debit.charge;
        let events = serde_json::to_string(charge.events).map_err(|error| Error::unusable(path, error))?;
        let values = vec![
            self.next(),
            text(&charge.run.to_string()),
            text(debit.dataset),
            text(charge.adjacency.name()),
            text(&events),
            real(Some(charge.epsilon.get())),
            real(Some(charge.delta.get())),
            real(cost::rho(charge.events, charge.adjacency).ok()),
            text(debit.description),
            now(database, path)?,
        ];
        self.append(database, path, &DEBITS, values)
    }

    fn next(&self) -> Value {
        Value::Integer(self.entries as i64 + 1)
    }

    /// Adds a row to the chain. The book is of no use afterwards: it is one entry behind.
    fn append(self, database: &Connection, path: &Path, table: &Table, mut values: Vec<Value>) -> Result<()> {
        let failed = |error| Error::unusable(path, error);
        let entries = self.entries + 1;
        let last = chain::entry(&self.last, table.name, &values);
        values.push(Value::Blob(last.into()));
        let places: Vec<String> = (1..=values.len()).map(|place| format!("?{place}")).collect();
        let insert = format!(
            "INSERT INTO {} ({}, digest) VALUES ({})",
            table.name,
            table.columns.join(", "),
            places.join(", ")
        );
        database.execute(&insert, params_from_iter(values)).map_err(failed)?;
        let head = (entries as i64, chain::head(&last, entries));
        database.execute("UPDATE head SET entries = ?1, digest = ?2", head).map_err(failed)?;
        Ok(())
    }

    fn understand(&mut self, row: &Row) -> std::result::Result<(), String> {
        let column = |name: &str| {
            let position = row.table.columns.iter().position(|column| *column == name);
            position.map_or(&Value::Null, |position| &row.values[position])
        };
        let string = |name: &str| match column(name) {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(format!("{name} is no text")),
        };
        let number = |name: &str| match column(name) {
            Value::Real(number) => Ok(*number),
            _ => Err(format!("{name} is no number")),
        };
        let epsilon = || Epsilon::new(number("epsilon")?).map_err(in_words);
        let delta = || Delta::new(number("delta")?).map_err(in_words);
        let rho = || Rho::new(number("rho")?).map_err(in_words);
        let name = string("adjacency")?;
        let adjacency = [Adjacency::ReplaceOne, Adjacency::AddRemove].into_iter();
        let adjacency = adjacency.into_iter().find(|one| one.name() == name);
        let adjacency = adjacency.ok_or_else(|| format!("adjacency `{name}`"))?;
        let (dataset, time) = (string("dataset")?, string("time")?);
        if row.table.name == BUDGETS.name {
            let budget = match &*string("currency")? {
                "approximate" => PrivacyBudget::Approximate { epsilon: epsilon()?, delta: delta()? },
                "pure" => PrivacyBudget::Pure { epsilon: epsilon()? },
                "zcdp" => PrivacyBudget::Zcdp { rho: rho()?, stated_at: delta()? },
                other => return Err(format!("currency `{other}`")),
            };
            self.budgets.push(Budget { dataset, adjacency, budget, time });
        } else {
            self.debits.push(Debit {
                run: string("run")?.parse().map_err(in_words)?,
                sequence: row.sequence() as u64,
                dataset,
                adjacency,
                events: parse_events(&string("events")?).map_err(in_words)?,
                epsilon: epsilon()?,
                delta: delta()?,
                rho: if *column("rho") == Value::Null { None } else { Some(rho()?) },
                description: string("description")?,
                time,
            });
        }
        Ok(())
    }
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
