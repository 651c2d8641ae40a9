//! Changes bytes of a run's checkpoint or of its key, or makes either of arbitrary bytes, and goes on with the run. It is refused unless
//! nothing was changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp_fuzz::{folder, patched, words, write};
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

struct Valid {
    checkpoint: Vec<u8>,
    key: Vec<u8>,
}

fn command(folder: &Path) -> String {
    format!(
        "train --private {0}/p.csv --public {0}/q.csv --target y --task regression --algorithm semi-dp-sgd --epsilon 1 \
         --delta 1e-6 --steps 4 --seed 1 --threads 1 --out {0}/model.json --checkpoint-every 0",
        folder.display()
    )
}

/// What a run had kept after its second step.
static VALID: LazyLock<Valid> = LazyLock::new(|| {
    let folder = folder();
    for (name, count) in [("p.csv", 60), ("q.csv", 20)] {
        let rows = (0..count).fold("x,y\n".to_string(), |mut text, i| {
            let _ = writeln!(text, "{},{}", i % 7, i % 5);
            text
        });
        write(&folder, name, rows.as_bytes());
    }
    let path = folder.join("valid.checkpoint");
    let mut kept = None;
    let all = format!("{} --checkpoint {}", command(&folder), path.display());
    semidp_cli::train(&words(&all), &[], &mut |progress| {
        if progress.step == 3 {
            let key = std::fs::read(folder.join("valid.checkpoint.key")).unwrap();
            kept = Some(Valid { checkpoint: std::fs::read(&path).unwrap(), key });
        }
    })
    .expect("a run");
    kept.expect("a checkpoint")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&flags, rest)) = bytes.split_first() else { return };
    let (mut checkpoint, mut key) = (VALID.checkpoint.clone(), VALID.key.clone());
    match flags % 4 {
        0 => checkpoint = rest.to_vec(),
        1 => key = rest.to_vec(),
        2 => key = patched(&key, rest),
        _ => checkpoint = patched(&checkpoint, rest),
    }
    let folder = folder();
    let is_same = checkpoint == VALID.checkpoint && key == VALID.key;
    let path = write(&folder, "fuzzed.checkpoint", &checkpoint);
    write(&folder, "fuzzed.checkpoint.key", &key);
    let all = format!("{} --resume {}", command(&folder), path.display());
    let resumed = semidp_cli::train(&words(&all), &[], &mut |_| ());
    assert!(is_same || resumed.is_err(), "a changed checkpoint was accepted");
});
