//! A ledger that something else has touched, and files that are no ledgers.

mod common;

use common::*;
use rusqlite::Connection;
use semidp_ledger::{Error, LedgerFile};
use std::path::Path;

/// A ledger with two budgets (entries 1 and 2) and three debits (3 to 5).
fn sample(name: &str) -> std::path::PathBuf {
    let path = place(name);
    LedgerFile::init(&path, "others", zcdp(1.0), ADJACENCY).unwrap();
    let mut ledger = ledger(&path, approximate(2.0));
    for multiplier in [15.0, 16.0, 17.0] {
        debit(&mut ledger, &gaussian(multiplier)).unwrap();
    }
    path
}

fn execute(path: &Path, commands: &str) {
    Connection::open(path).unwrap().execute_batch(commands).unwrap();
}

fn refused(path: &Path) -> String {
    match LedgerFile::open(path) {
        Err(error @ Error::Changed { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_edit_is_found() {
    let edits = [
        ("epsilon", "UPDATE debits SET epsilon = epsilon / 2 WHERE sequence = 4"),
        ("delta", "UPDATE debits SET delta = 1e-9 WHERE sequence = 3"),
        ("rho", "UPDATE debits SET rho = NULL WHERE sequence = 3"),
        ("events", "UPDATE debits SET events = replace(events, '15', '95') WHERE sequence = 3"),
        ("description", "UPDATE debits SET description = 'x' WHERE sequence = 5"),
        ("time", "UPDATE debits SET time = '2000-01-01T00:00:00Z' WHERE sequence = 5"),
        ("owner", "UPDATE debits SET dataset = 'others' WHERE sequence = 5"),
        ("adjacency", "UPDATE debits SET adjacency = 'add-remove' WHERE sequence = 5"),
        ("rule", "UPDATE debits SET rule = 'plan' WHERE sequence = 5"),
        ("charge", "UPDATE debits SET variance = variance / 2 WHERE sequence = 5"),
        ("slack", "UPDATE debits SET slack = NULL, variance = NULL WHERE sequence = 5"),
        ("path", "UPDATE debits SET path = '/elsewhere' WHERE sequence = 5"),
        (
            "plan",
            "INSERT INTO plans SELECT 6, 'rows', adjacency, '[]', 'sum', '0', NULL, NULL, '', time, digest
             FROM budgets WHERE sequence = 2; UPDATE head SET entries = 6",
        ),
        ("run", "UPDATE debits SET run = '00000000000000000000000000000000' WHERE sequence = 5"),
        ("digest", "UPDATE debits SET digest = zeroblob(32) WHERE sequence = 4"),
        ("last", "DELETE FROM debits WHERE sequence = 5"),
        ("last_and_count", "DELETE FROM debits WHERE sequence = 5; UPDATE head SET entries = 4"),
        (
            "last_and_head",
            "DELETE FROM debits WHERE sequence = 5;
             UPDATE head SET entries = 4, digest = (SELECT digest FROM debits WHERE sequence = 4)",
        ),
        ("middle", "DELETE FROM debits WHERE sequence = 4"),
        (
            "closed_up",
            "DELETE FROM debits WHERE sequence = 4; UPDATE debits SET sequence = 4 WHERE sequence = 5;
             UPDATE head SET entries = 4",
        ),
        ("all", "DELETE FROM debits"),
        (
            "swapped",
            "UPDATE debits SET sequence = 99 WHERE sequence = 3;
             UPDATE debits SET sequence = 3 WHERE sequence = 4;
             UPDATE debits SET sequence = 4 WHERE sequence = 99",
        ),
        ("budget", "UPDATE budgets SET epsilon = 200 WHERE dataset = 'rows'"),
        ("budget_rho", "UPDATE budgets SET rho = 200 WHERE dataset = 'others'"),
        ("currency", "UPDATE budgets SET currency = 'pure', delta = NULL WHERE dataset = 'rows'"),
        (
            "budget_added",
            "INSERT INTO budgets SELECT 'more', 6, adjacency, currency, epsilon, delta, rho, time, digest FROM budgets WHERE sequence = 2",
        ),
        ("head", "DELETE FROM head"),
        ("format", "UPDATE head SET format = 'semidp-ledger/0'"),
        ("table", "PRAGMA foreign_keys = OFF; DROP TABLE budgets"),
        ("column", "ALTER TABLE debits RENAME COLUMN rho TO sigma"),
    ];
    for (name, edit) in edits {
        let path = sample(&format!("tampering_{name}"));
        // Open before, as a session would be.
        let mut ledger = LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap();
        execute(&path, edit);
        let message = refused(&path);
        assert!(message.contains("was changed by something other than semidp"), "{name}: {message}");
        let error = debit(&mut ledger, &gaussian(1000.0)).unwrap_err();
        assert!(matches!(error, semidp_core::Error::Ledger { .. }), "{name}: {error}");
        assert!(error.to_string().contains("something other than semidp"), "{name}: {error}");
        let error = LedgerFile::init(&path, "new", pure(1.0), ADJACENCY).unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{name}: {error}");
    }
}

/// Objects of SQLite can give other rows at other times, which no digest of rows shows: a ledger has the tables that semidp makes, word for
/// word, and nothing else.
#[test]
fn a_ledger_with_another_object_is_refused() {
    let other_sql = "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql =";
    let edits = [
        (
            "view",
            "ALTER TABLE debits RENAME TO hidden;
             CREATE VIEW debits AS SELECT * FROM hidden WHERE time > strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-3 seconds');
             CREATE TRIGGER insert_debit INSTEAD OF INSERT ON debits BEGIN DELETE FROM hidden; END"
                .to_string(),
        ),
        (
            "trigger",
            "CREATE TRIGGER forget AFTER INSERT ON debits BEGIN DELETE FROM debits WHERE run = NEW.run; END".into(),
        ),
        ("unused_view", "CREATE VIEW totals AS SELECT sum(epsilon) FROM debits".into()),
        ("other_table", "CREATE TABLE notes (text TEXT)".into()),
        ("index", "CREATE INDEX by_time ON debits (time)".into()),
        ("partial_index", "CREATE UNIQUE INDEX one ON debits (dataset) WHERE epsilon > 5".into()),
        ("statistics", "ANALYZE".into()),
        ("column_added", "ALTER TABLE debits ADD COLUMN note TEXT".into()),
        ("generated", "ALTER TABLE debits ADD COLUMN late TEXT AS (time || 'x') VIRTUAL".into()),
        (
            "generated_in_place",
            format!("{other_sql} replace(sql, 'path TEXT', 'path TEXT AS (NULL) VIRTUAL') WHERE name = 'debits'"),
        ),
        (
            "collation",
            format!("{other_sql} replace(sql, 'run TEXT', 'run TEXT COLLATE NOCASE') WHERE name = 'debits'"),
        ),
        ("check", format!("{other_sql} replace(sql, ' CHECK (id = 1)', '') WHERE name = 'head'")),
        ("conflict", format!("{other_sql} replace(sql, 'KEY NOT', 'KEY ON CONFLICT IGNORE NOT') WHERE name = 'debits'")),
        ("spaces", format!("{other_sql} replace(sql, 'rho REAL', 'rho  REAL') WHERE name = 'debits'")),
        (
            "shadowed_schema",
            "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('view', 'sqlite_schema', 'sqlite_schema', 0, \
             'CREATE VIEW sqlite_schema AS SELECT 1 AS type')"
                .into(),
        ),
        (
            "two_heads",
            "PRAGMA ignore_check_constraints = ON; INSERT INTO head SELECT 2, format, entries, digest FROM head".into(),
        ),
    ];
    for (name, edit) in edits {
        let path = sample(&format!("tampering_object_{name}"));
        let mut ledger = LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap();
        execute(&path, &edit);
        let message = refused(&path);
        assert!(message.contains("was changed by something other than semidp"), "{name}: {message}");
        // Also in the transaction of a run whose ledger was open before.
        let error = debit(&mut ledger, &gaussian(1000.0)).unwrap_err();
        assert!(error.to_string().contains("something other than semidp"), "{name}: {error}");
        assert!(
            matches!(LedgerFile::init(&path, "new", pure(1.0), ADJACENCY), Err(Error::Changed { .. })),
            "{name}"
        );
    }
}

#[test]
fn a_ledger_of_the_first_format_with_another_object_is_refused() {
    let path = place("tampering_object_first_format");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/first-format.ledger"), &path).unwrap();
    execute(&path, "CREATE VIEW totals AS SELECT sum(epsilon) FROM debits");
    assert!(refused(&path).contains("view `totals`"));
}

#[test]
fn a_version_that_changes_while_the_ledger_is_open_is_noticed() {
    let path = sample("tampering_version_later");
    let mut ledger = LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap();
    execute(&path, "PRAGMA user_version = 3");
    let error = debit(&mut ledger, &gaussian(1000.0)).unwrap_err();
    assert!(error.to_string().contains("has format 3"), "{error}");
}

#[test]
fn an_untouched_ledger_stays_good() {
    let path = sample("tampering_none");
    execute(&path, "VACUUM");
    assert_eq!(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().debits.len(), 3);
}

#[test]
fn what_is_no_ledger_is_not_touched() {
    let path = place("tampering_strangers");
    let folder = path.parent().unwrap();
    let database = folder.join("database");
    execute(&database, "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
    let waiting = folder.join("waiting");
    execute(&waiting, "PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT)");
    let long = format!("SQLite format 3\0{}", "x".repeat(500));
    for (name, text) in
        [("empty", ""), ("text", "age,hours\n1,2\n"), ("header", "SQLite format 3\0"), ("long", &long)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let before = listing(folder);
    for name in ["database", "waiting", "empty", "text", "header", "long"] {
        let path = folder.join(name);
        let error = LedgerFile::open(&path).unwrap_err();
        assert!(matches!(error, Error::NotALedger { .. }), "{name}: {error}");
        let error = LedgerFile::init(&path, "rows", pure(1.0), ADJACENCY).unwrap_err();
        assert!(matches!(error, Error::NotALedger { .. }), "{name}: {error}");
    }
    assert!(matches!(LedgerFile::open(folder).unwrap_err(), Error::NotALedger { .. }));
    assert!(matches!(LedgerFile::open(folder.join("none")).unwrap_err(), Error::Unusable { .. }));
    assert!(LedgerFile::init(folder.join("no/such/folder"), "rows", pure(1.0), ADJACENCY).is_err());
    assert_eq!(listing(folder), before);
}

#[test]
fn another_version_is_not_touched() {
    let path = sample("tampering_version");
    execute(&path, "PRAGMA user_version = 3");
    let before = listing(path.parent().unwrap());
    let error = LedgerFile::open(&path).unwrap_err();
    assert!(matches!(error, Error::UnknownFormat { found: 3, known: 2, .. }), "{error}");
    assert!(LedgerFile::init(&path, "new", pure(1.0), ADJACENCY).is_err());
    assert_eq!(listing(path.parent().unwrap()), before);
}

#[test]
fn a_ledger_is_for_its_owner_and_stands_alone() {
    let path = sample("tampering_files");
    let names: Vec<String> = listing(path.parent().unwrap()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["budget.ledger"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let settings = Connection::open(&path).unwrap();
    let mode: String = settings.query_row("PRAGMA journal_mode", (), |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
}

fn listing(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}
