//! Changes bytes of a client's memory, or makes one of arbitrary bytes, and asks again. Whatever it is, nothing panics, and an answer
//! is that of the reports that were remembered, or of new ones where nothing is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp_fuzz::{folder, patched, words, write};
use std::path::Path;
use std::sync::LazyLock;

/// Files beside a memory, such as its key.
fn beside(folder: &Path, name: &str) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|found| found.starts_with(&format!("{name}.")) || found.starts_with(&format!(".{name}.")))
        .collect()
}

fn command(folder: &Path, memory: &str) -> String {
    format!(
        "local randomize --data {0}/people.csv --columns x,y --epsilon 1 --radius 1 --mechanism duchi --seed 1 --threads 1 \
         --out {0}/reports.jsonl --memory {0}/{memory}",
        folder.display()
    )
}

/// A memory of one round, and what lies beside it.
static VALID: LazyLock<(Vec<u8>, Vec<(String, Vec<u8>)>)> = LazyLock::new(|| {
    let folder = folder();
    write(&folder, "people.csv", b"x,y\n0.1,0.2\n0.3,?\n-1,2\n");
    semidp_cli::ask(&words(&command(&folder, "valid"))).expect("reports");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let others = beside(&folder, "valid").into_iter().map(|name| {
        let bytes = read(&name);
        (name.replacen("valid", "fuzzed", 1), bytes)
    });
    (read("valid"), others.collect())
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&flags, rest)) = bytes.split_first() else { return };
    let (valid, others) = &*VALID;
    let folder = folder();
    for name in beside(&folder, "fuzzed") {
        let _ = std::fs::remove_file(folder.join(name));
    }
    for (name, bytes) in others {
        // Sometimes it is what lies beside the memory that is damaged.
        let bytes = if flags % 8 == 1 { patched(bytes, rest) } else { bytes.clone() };
        write(&folder, name, &bytes);
    }
    let memory = match flags % 8 {
        0 => rest.to_vec(),
        1 => valid.clone(),
        _ => patched(valid, rest),
    };
    write(&folder, "fuzzed", &memory);
    let _ = semidp_cli::ask(&words(&command(&folder, "fuzzed")));
});
