//! Changes bytes of a ledger with debits, or makes a ledger of arbitrary bytes. It is read, or refused; a damaged one never shows
//! less than was spent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp_accounting::{Adjacency, Delta, Epsilon, PrivacyBudget};
use semidp_fuzz::{folder, patched, words, write};
use semidp_ledger::LedgerFile;
use std::sync::LazyLock;

/// A ledger with two debits.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = folder();
    let path = folder.join("valid.ledger");
    let budget =
        PrivacyBudget::Approximate { epsilon: Epsilon::new(3.0).unwrap(), delta: Delta::new(1e-5).unwrap() };
    LedgerFile::init(&path, "people", budget, Adjacency::ReplaceOne).unwrap();
    let rows: String = (0..40).map(|i| format!("{i}\n")).collect();
    let data = write(&folder, "private.csv", format!("x\n{rows}").as_bytes());
    let public = write(&folder, "public.csv", format!("x\n{rows}7\n").as_bytes());
    for epsilon in [1.0, 0.5] {
        let command = format!(
            "mean --private {} --public {} --epsilon {epsilon} --delta 1e-6 --seed 1 --ledger {} --dataset people",
            data.display(),
            public.display(),
            path.display()
        );
        semidp_cli::ask(&words(&command)).expect("a debit");
    }
    std::fs::read(&path).unwrap()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&flags, rest)) = bytes.split_first() else { return };
    let bytes = if flags % 4 == 0 { rest.to_vec() } else { patched(&VALID, rest) };
    let folder = folder();
    for left in ["-wal", "-shm", "-journal", "-wal2"] {
        let _ = std::fs::remove_file(folder.join(format!("fuzzed.ledger{left}")));
    }
    let path = write(&folder, "fuzzed.ledger", &bytes);
    if let Ok(ledger) = LedgerFile::open(&path) {
        let _ = ledger.datasets();
        let _ = ledger.dataset("people");
    }
});
