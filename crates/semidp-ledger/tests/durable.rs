//! The file by itself: what was granted is in it, whatever lies beside it, and older files are brought up to date.

mod common;

use common::*;
use rusqlite::Connection;
use semidp_accounting::{Delta, Epsilon, GaussianFilter, PrivacyBudget};
use semidp_core::calibration_delta;
use semidp_ledger::{Cost, LedgerFile, Rule};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(ending);
    name.into()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn debits(path: &Path) -> usize {
    LedgerFile::open(path).unwrap().dataset("rows").unwrap().debits.len()
}

#[test]
fn a_copy_of_the_file_has_every_debit_while_the_ledger_is_open() {
    let path = place("durable_copy");
    let mut ledger = ledger(&path, approximate(1.0));
    for granted in 1..=3 {
        debit(&mut ledger, &gaussian(30.0)).unwrap();
        // As after a kill: nothing is closed, and only the file itself is copied.
        assert_eq!(names(&path)[0], "budget.ledger");
        let copy = place(&format!("durable_copy_{granted}"));
        std::fs::copy(&path, &copy).unwrap();
        assert_eq!(debits(&copy), granted);
    }
    assert_eq!(names(&path), ["budget.ledger"]);
}

/// A log that an older ledger of this name left behind when it was removed, as a copy of the bytes.
fn leave_a_log(path: &Path) {
    let old = place("durable_old_log");
    let mut ledger = ledger(&old, approximate(1.0));
    debit(&mut ledger, &gaussian(30.0)).unwrap();
    let database = Connection::open(&old).unwrap();
    database.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(())).unwrap();
    // Something of the old ledger that must not come back: its budget without the debit.
    database.execute("DELETE FROM debits", ()).unwrap();
    for ending in ["-wal", "-shm"] {
        std::fs::copy(beside(&old, ending), beside(path, ending)).unwrap();
    }
}

#[test]
fn a_log_left_behind_by_a_removed_ledger_neither_spoils_a_new_one_nor_comes_back() {
    let path = place("durable_left_log");
    leave_a_log(&path);
    let mut ledger = ledger(&path, approximate(2.0));
    debit(&mut ledger, &gaussian(40.0)).unwrap();
    assert_eq!(debits(&path), 1);
    // And beside a ledger that is there, put back by its owner.
    leave_a_log(&path);
    assert_eq!(debits(&path), 1);
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!(account.budget, approximate(2.0));
    debit(&mut LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap(), &gaussian(50.0)).unwrap();
    // Nothing was deleted: the old files have other names now.
    let names = names(&path);
    assert_eq!(names.iter().filter(|name| name.ends_with(".old")).count(), 4, "{names:?}");
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn a_journal_left_behind_is_not_played_back_into_a_new_ledger() {
    let path = place("durable_left_journal");
    // A hot journal: SQLite would restore its pages over whatever has the name.
    let old = place("durable_old_journal");
    drop(ledger(&old, approximate(1.0)));
    let database = Connection::open(&old).unwrap();
    database.execute_batch("BEGIN IMMEDIATE; PRAGMA cache_spill = 1; PRAGMA cache_size = 1;").unwrap();
    database.execute_batch("CREATE TABLE x (y BLOB); INSERT INTO x VALUES (zeroblob(2000000));").unwrap();
    std::fs::copy(beside(&old, "-journal"), beside(&path, "-journal")).unwrap();
    assert!(std::fs::metadata(beside(&path, "-journal")).unwrap().len() > 0);
    drop(database);
    let mut ledger = ledger(&path, approximate(2.0));
    debit(&mut ledger, &gaussian(40.0)).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!((account.budget, account.debits.len()), (approximate(2.0), 1));
}

/// `tests/data/first-format.ledger` was written by version 0.1.0 before the filter: data set `rows` (2, 1e-6) with pure runs
/// of 0.2 and 0.1, a Gaussian run of (0.5, 1e-6) and a pure one of 0.1; `pure` with ten runs of 0.1 of 1; `rho` with
/// 0.1 of 0.5; `full` with one Gaussian run that takes (1, 1e-6).
fn first_format(name: &str) -> PathBuf {
    let path = place(name);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/first-format.ledger");
    std::fs::copy(data, &path).unwrap();
    path
}

#[test]
fn a_ledger_of_the_first_format_is_brought_up_to_date_and_charged_by_todays_rules() {
    let path = first_format("durable_first_format");
    let accounts = LedgerFile::open(&path).unwrap().datasets().unwrap();
    let named = |name: &str| accounts.iter().find(|account| account.dataset == name).unwrap();
    assert!(accounts.iter().flat_map(|one| &one.debits).all(|debit| debit.rule == Rule::Migrated));

    let rows = named("rows");
    let state = rows.filter.unwrap();
    assert_eq!((state.pure_epsilon, rows.debits.len()), (0.3, 4));
    let left = GaussianFilter::new(Epsilon::new(1.7).unwrap(), calibration_delta(delta())).unwrap();
    assert_eq!(state.budget, left.budget());
    let costs: Vec<Cost> = rows.debits.iter().map(|debit| debit.cost).collect();
    assert!(matches!(costs[..], [Cost::Sum(_), Cost::Sum(_), Cost::Filter(_), Cost::Filter(_)]), "{costs:?}");
    assert_eq!((named("pure").spent, named("pure").remaining), (pure(1.0), pure(0.0)));
    let PrivacyBudget::Zcdp { rho, .. } = named("rho").spent else { panic!() };
    assert!((rho.get() - 0.1).abs() < 1e-12);
    // More than the filter grants: everything is spent.
    let full = named("full");
    assert!(full.is_closed && full.debits[0].cost == Cost::Whole && full.spent == approximate(1.0));
    let gone = Epsilon::new(0.0).unwrap();
    assert_eq!(
        full.remaining,
        PrivacyBudget::Approximate { epsilon: gone, delta: Delta::new(1e-6).unwrap() }
    );

    // From now on it is a ledger like any other: one file, debited like one.
    let mut ledger = LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap();
    debit(&mut ledger, &gaussian(100.0)).unwrap();
    assert_eq!(names(&path), ["budget.ledger"]);
    assert_eq!(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().debits[4].rule, Rule::Filter);
}

#[test]
fn an_edited_ledger_of_the_first_format_is_refused_and_not_rewritten() {
    let path = first_format("durable_first_format_edited");
    Connection::open(&path)
        .unwrap()
        .execute("UPDATE budgets SET epsilon = 9 WHERE sequence = 1", ())
        .unwrap();
    for _ in 0..2 {
        let error = LedgerFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("was changed by something other than semidp"), "{error}");
    }
    let version: u32 =
        Connection::open(&path).unwrap().query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
}

#[test]
fn processes_that_bring_one_ledger_up_to_date_at_once_agree() {
    let path = first_format("durable_first_format_threads");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(debits(&path), 4));
        }
    });
}
