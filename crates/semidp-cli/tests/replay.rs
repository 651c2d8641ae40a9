//! A replay audit of the command line: one private row of a file is replaced by arbitrary bytes, or removed under add/remove, and
//! nothing that leaves the program may change but released values.
//!
//! What is a released value is measured, not listed: a field, or a word of a text, that changes with the seed. Everything else must
//! be equal in all worlds, byte for byte: standard output, standard error, the exit code, and every file that is written.
//! `SEMIDP_SWEEP=1` tries every row with every command.

mod common;
mod rows;

use common::{SEMIDP, folder, json, number, refused, run};
use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rows::{Target, rows};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PRIVATE_ROWS: usize = 40;
const PUBLIC_ROWS: usize = 30;
/// Fields that functions of released values fill with few distinct values, so that some seeds may agree on them by chance.
const DERIVED: [&str; 3] = ["/public_metrics", "/clipped_share/at_most", "/notes"];

fn is_sweep() -> bool {
    std::env::var("SEMIDP_SWEEP").is_ok()
}

/// A folder that no other test and no other run has.
fn fresh(name: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    folder(&format!("replay-{name}-{}-{number}", std::process::id()))
}

/// Everything that leaves the program, by place.
type Traces = BTreeMap<String, String>;

/// Runs commands one after the other in a folder of their own with these files, and returns all that they leave.
fn traces(test: &str, files: &[(&str, &[u8])], commands: &[String]) -> Traces {
    let folder = fresh(test);
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
    let mut traces = Traces::new();
    for (number, command) in commands.iter().enumerate() {
        let ran = Command::new(SEMIDP)
            .args(command.split_whitespace())
            .current_dir(&folder)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        traces.insert(format!("{number}:exit code"), format!("{:?}", ran.status.code()));
        add(&format!("{number}:stdout"), &ran.stdout, &mut traces);
        add(&format!("{number}:stderr"), &ran.stderr, &mut traces);
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_input = files.iter().any(|(input, _)| *input == name);
        // The memory of local reports stays with the people who own the rows.
        if !is_input && !name.contains(".memory") {
            add(&format!("file {name}"), &std::fs::read(folder.join(&name)).unwrap(), &mut traces);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    traces
}

/// Adds a text: a JSON object field by field, a file of JSON lines line by line, and anything else word by word.
fn add(place: &str, bytes: &[u8], traces: &mut Traces) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        return add_value(place, &value, traces);
    }
    let lines: Vec<&str> = text.lines().collect();
    traces.insert(format!("{place}: lines"), lines.len().to_string());
    for (number, line) in lines.iter().enumerate() {
        let place = format!("{place}: line {number}");
        match serde_json::from_str::<Value>(line) {
            Ok(value @ Value::Object(_)) => add_value(&place, &value, traces),
            _ => {
                let words: Vec<&str> = line.split_whitespace().collect();
                traces.insert(format!("{place}: words"), words.len().to_string());
                for (number, word) in words.iter().enumerate() {
                    // Lines of a table are as long as the released numbers in it.
                    let word =
                        if word.starts_with(['─', '═', '┌', '├', '└']) { "line" } else { word };
                    traces.insert(format!("{place}: word {number}"), word.into());
                }
            }
        }
    }
}

fn add_value(place: &str, value: &Value, traces: &mut Traces) {
    match value {
        // What released gradients decided is released.
        Value::Object(fields) if fields.get("source") == Some(&Value::from("released gradients")) => {}
        Value::Object(fields) => {
            traces.insert(format!("{place}/"), format!("{:?}", fields.keys().collect::<Vec<_>>()));
            fields.iter().for_each(|(name, value)| add_value(&format!("{place}/{name}"), value, traces));
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            traces.insert(format!("{place}/"), format!("{} items", items.len()));
            items.iter().enumerate().for_each(|(at, item)| add_value(&format!("{place}/{at}"), item, traces));
        }
        // An array of numbers is one value: its length counts, and stays the same if the numbers change.
        Value::Array(items) => {
            traces.insert(format!("{place}/"), format!("{} items", items.len()));
            traces.insert(place.into(), value.to_string());
        }
        _ => drop(traces.insert(place.into(), value.to_string())),
    }
}

/// Places whose content changes with the seed.
fn released(by_seed: &[Traces]) -> BTreeSet<String> {
    let places: BTreeSet<&String> = by_seed.iter().flat_map(Traces::keys).collect();
    let changes = |place: &&String| by_seed.iter().any(|traces| traces.get(*place) != by_seed[0].get(*place));
    places.into_iter().filter(changes).cloned().collect()
}

/// Places that two worlds differ in though they are not released.
fn differences(a: &Traces, b: &Traces, released: &BTreeSet<String>) -> Vec<String> {
    let places: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differs = |place: &&String| {
        a.get(*place) != b.get(*place)
            && !released.contains(*place)
            && !DERIVED.iter().any(|derived| place.contains(derived))
    };
    let shown = |place: &String| {
        let text =
            |traces: &Traces| traces.get(place).map_or("nothing".into(), |text| format!("{text:.200}"));
        format!("{place}: {} or {}", text(a), text(b))
    };
    places.into_iter().filter(differs).map(shown).collect()
}

/// A private file, and how many bytes of what kind stand in for one row.
struct Worlds {
    /// What is odd about each, and the private file.
    files: Vec<(String, Vec<u8>)>,
    private: &'static str,
    public: &'static str,
    public_file: Vec<u8>,
}

/// Seeds that tell which places are released.
const SEEDS: u64 = 5;

/// Asserts that commands leave the same in all worlds. They name the seed as SEED.
fn assert_alike(test: &str, worlds: &Worlds, commands: &[&str]) {
    let go = |world: usize, seed: u64| {
        let commands: Vec<String> =
            commands.iter().map(|command| command.replace("SEED", &seed.to_string())).collect();
        let files = [(worlds.private, &*worlds.files[world].1), (worlds.public, &*worlds.public_file)];
        traces(test, &files, &commands)
    };
    let by_seed: Vec<Traces> = (1..=SEEDS).map(|seed| go(0, seed)).collect();
    // A file that is never read proves nothing.
    assert_eq!(by_seed[0]["0:exit code"], "Some(0)", "{commands:?}: {:?}", by_seed[0]);
    let released = released(&by_seed);
    let base = &by_seed[0];
    assert!(!released.is_empty() && released.len() < base.len(), "{commands:?}: {} places", base.len());
    for world in 1..worlds.files.len() {
        let found = differences(base, &go(world, 1), &released);
        assert!(
            found.is_empty(),
            "{commands:?}: a private row with {} shows in {} places, such as\n{}",
            worlds.files[world].0,
            found.len(),
            found.iter().take(8).cloned().collect::<Vec<_>>().join("\n")
        );
    }
}

/// Lines that stand in for one private row of `a,b,colour,y`.
fn odd_lines() -> Vec<(&'static str, Vec<u8>)> {
    let long = [b"0.1,50,".to_vec(), vec![b'x'; 100_000], b",yes".to_vec()].concat();
    let wide = [b"0.1,50,red,yes".to_vec(), vec![b','; 5_000]].concat();
    let mut lines: Vec<(&'static str, Vec<u8>)> = vec![
        ("other numbers", b"0.9,59,blue,no".to_vec()),
        ("huge numbers", b"1e300,-1e300,red,yes".to_vec()),
        ("numbers that overflow", b"1e999,-1e999,red,yes".to_vec()),
        ("denormal numbers", b"5e-324,-1e-320,red,yes".to_vec()),
        ("zeros", b"0,-0,red,no".to_vec()),
        ("no numbers", b"nan,NaN,red,yes".to_vec()),
        ("infinite numbers", b"inf,-Infinity,red,yes".to_vec()),
        ("text for numbers", b"SECRET,39 years,red,yes".to_vec()),
        ("missing cells", b",,,".to_vec()),
        ("a missing label", b"0.1,50,red,".to_vec()),
        ("an unknown label", b"0.1,50,red,SECRET".to_vec()),
        ("an unknown category", b"0.1,50,SECRET,yes".to_vec()),
        ("marks of missing cells", b"?,NA,null,N/A".to_vec()),
        ("too few cells", b"0.1".to_vec()),
        ("too many cells", b"0.1,50,red,yes,SECRET,1,2,3".to_vec()),
        ("very many cells", wide),
        ("a very long cell", long),
        ("spaces", b"   ".to_vec()),
        ("a comment", b"# 0.1,50,red,yes".to_vec()),
        ("other separators", b"0.1;50;red;yes".to_vec()),
        ("tabs", b"0.1\t50\tred\tyes".to_vec()),
        ("quoted cells", b"\"0.1\",\"50\",\"red\",\"yes\"".to_vec()),
        ("quoted commas", b"\"0,1\",\"5,0\",\"r,ed\",\"y,es\"".to_vec()),
        ("doubled quotes", b"0.1,50,\"r\"\"ed\",yes".to_vec()),
        ("no text", vec![0xff, 0xfe, b',', 0xc3, b',', 0x80, b',', 0xf5]),
        ("zero bytes", b"\0,\0\0,red\0,yes\0".to_vec()),
        ("control characters", b"\x1b[31m0.1,\x07,\x08red,\x7fyes".to_vec()),
        ("a byte order mark", b"\xef\xbb\xbf0.1,50,red,yes".to_vec()),
        ("Windows line break", b"0.1,50,red,yes\r".to_vec()),
        ("hexadecimal and signs", b"0x1p3,+5e1,red,yes".to_vec()),
        ("thousands", b"1_000,1'000,red,yes".to_vec()),
        ("the header", b"a,b,colour,y".to_vec()),
        ("format strings", b"%s%n,{},{0},${jndi}".to_vec()),
        ("JSON", b"{\"a\":1},[2],red,yes".to_vec()),
    ];
    lines.push(("a stray quote", b"\"0.1,50,red,yes".to_vec()));
    lines.push(("a quote that opens late", b"0.1,50,red,\"yes".to_vec()));
    lines.push(("text after a quote", b"0.1,50,\"re\"d,yes".to_vec()));
    lines.push(("a quote within a cell", b"0.1,50,re\"d,yes".to_vec()));
    lines.push(("nothing", Vec::new()));
    lines.push(("a bar", b"| 0.1,50,red,yes".to_vec()));
    lines.push(("a carriage return", b"\r".to_vec()));
    lines
}

/// Which of the odd rows a command meets, unless all of them.
fn some_of<T>(all: Vec<T>, every: usize, first: usize) -> Vec<T> {
    let every = if is_sweep() { 1 } else { every };
    let first = first % every;
    all.into_iter().enumerate().filter(|(at, _)| at % every == first).map(|(_, one)| one).collect()
}

/// A CSV file in which one line is replaced.
fn csv(target: Target, every: usize, first: usize) -> Worlds {
    let private = rows(PRIVATE_ROWS, target, 2);
    let lines: Vec<&[u8]> = private.lines().map(str::as_bytes).collect();
    let with = |place: usize, line: &[u8]| {
        let mut lines = lines.clone();
        lines[place] = line;
        [lines.join(&b'\n'), b"\n".to_vec()].concat()
    };
    let mut files = vec![("ordinary cells".to_string(), private.clone().into_bytes())];
    for (name, line) in some_of(odd_lines(), every, first) {
        // The first row, one in the middle, the last one.
        for place in some_of(vec![1, PRIVATE_ROWS / 2, PRIVATE_ROWS], 3, first + files.len()) {
            files.push((format!("{name} in line {place}"), with(place, &line)));
        }
    }
    let public_file = rows(PUBLIC_ROWS, target, 1).into_bytes();
    Worlds { files, private: "private.csv", public: "public.csv", public_file }
}

/// Numbers that stand in for one row of three.
fn odd_numbers() -> Vec<(&'static str, [f64; 3])> {
    vec![
        ("other numbers", [0.9, -0.9, 1.0]),
        ("huge numbers", [1e300, -1e300, 1e300]),
        ("huge opposite numbers", [-1e30, 1e30, -1e30]),
        ("denormal numbers", [5e-324, -5e-324, 1e-310]),
        ("zeros", [0.0, -0.0, 0.0]),
        ("no numbers", [f64::NAN; 3]),
        ("another NaN", [f64::from_bits(0x7ff0_0000_dead_beef), 1.0, f64::from_bits(0xfff8_0000_0000_0001)]),
        ("infinite numbers", [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]),
        ("a huge label", [0.1, 0.2, 1e300]),
        ("no label", [0.1, 0.2, f64::NAN]),
    ]
}

/// Rows of columns a, b and y.
type Numbers = Vec<[f64; 3]>;

/// Such rows with the middle one replaced, in every world; and public ones.
fn tables(first: usize, every: usize) -> (Vec<(String, Numbers)>, Numbers) {
    let draw = |count: usize, seed: u64| -> Vec<[f64; 3]> {
        let mut numbers = rows::Numbers(seed);
        let row = |_| {
            let (a, b) = (numbers.draw(), numbers.draw());
            [a, b, a - 2.0 * b + 0.3 * numbers.draw()]
        };
        (0..count).map(row).collect()
    };
    let private = draw(PRIVATE_ROWS, 2);
    let mut all = vec![("ordinary cells".to_string(), private.clone())];
    for (name, row) in some_of(odd_numbers(), every, first) {
        let mut rows = private.clone();
        rows[PRIVATE_ROWS / 2] = row;
        all.push((name.into(), rows));
    }
    (all, draw(PUBLIC_ROWS, 1))
}

fn npy(rows: &[[f64; 3]]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, 3), }}\n", rows.len());
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(rows.iter().flatten().flat_map(|x| x.to_le_bytes()));
    bytes
}

fn parquet(rows: &[[f64; 3]]) -> Vec<u8> {
    let message = "message rows { required double a; required double b; required double y; }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    for rows in rows.chunks(16) {
        let mut group = writer.next_row_group().unwrap();
        for column in 0..3 {
            let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
            let mut writer = group.next_column().unwrap().unwrap();
            writer.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
            writer.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

/// The same rows in other formats.
fn binary(
    names: (&'static str, &'static str),
    write: fn(&[[f64; 3]]) -> Vec<u8>,
    first: usize,
    every: usize,
) -> Worlds {
    let (worlds, public) = tables(first, every);
    let files = worlds.into_iter().map(|(name, rows)| (name, write(&rows))).collect();
    Worlds { files, private: names.0, public: names.1, public_file: write(&public) }
}

const MEAN: &str = "mean --private private.csv --public public.csv --seed SEED";
const TRAIN: &str =
    "train --private private.csv --public public.csv --target y --steps 6 --out model.json --seed SEED";

/// Means of a CSV file, as JSON and as text, with everything that can be written.
#[test]
fn mean_shows_no_private_line() {
    let worlds = csv(Target::TwoWords, 1, 0);
    assert_alike(
        "mean",
        &worlds,
        &[&format!("{MEAN} --epsilon 1 --delta 1e-6 --json --out a.json --certificate c.json")],
    );
    let some = |first| csv(Target::TwoWords, 4, first);
    for (number, options) in [
        "--epsilon 1 --delta 1e-6",
        "--epsilon 1 --json",
        "--rho 0.1 --columns colour,a --json",
        "--epsilon 2 --delta 1e-6 --radius 3 --std 2 --centre origin --json",
        "--rho 1 --scale none --radius 20 --target empirical --json",
    ]
    .into_iter()
    .enumerate()
    {
        assert_alike("mean-options", &some(number), &[&format!("{MEAN} {options}")]);
    }
    for (number, estimator) in semidp::mean::ESTIMATORS.iter().enumerate() {
        let budget = match estimator.law() {
            Some(semidp::mean::Law::Gaussian) => "--epsilon 1 --delta 1e-6",
            Some(_) => "--epsilon 1",
            // It reads no private row: nothing changes with the seed.
            None => continue,
        };
        let command = format!("{MEAN} {budget} --estimator {} --json", estimator.name());
        assert_alike("mean-estimator", &some(number), &[&command]);
    }
}

/// Central and local training with every algorithm, and what becomes of its model.
#[test]
fn train_shows_no_private_line() {
    use semidp::train::{ALGORITHMS, PrivateUse};
    use semidp_accounting::Trust;
    let full =
        [&*format!("{TRAIN} --epsilon 4 --delta 1e-5 --json --certificate c.json"), "verify model.json"];
    assert_alike("train", &csv(Target::TwoWords, 1, 0), &full);
    let spending = ALGORITHMS.into_iter().filter(|algorithm| algorithm.private_use() == PrivateUse::Budgeted);
    for (number, algorithm) in spending.enumerate() {
        let (budget, steps) = match algorithm.trust() {
            Trust::Central => ("--epsilon 4 --delta 1e-5", TRAIN),
            Trust::Local => ("--epsilon 4 --trust local", &*TRAIN.replace("--steps 6 ", "")),
        };
        let command = format!("{steps} {budget} --algorithm {} --json", algorithm.name());
        assert_alike("train-algorithm", &csv(Target::TwoWords, 4, number), &[&command]);
    }
    for (number, options) in [
        "--algorithm semi-dp-sgd --sampling fixed-size --json",
        "--algorithm semi-dp-sgd --sampling one-pass --json",
        "--algorithm semi-dp-sgd --sampling in-order --memory 0 --json",
        "--algorithm pda-first-order --sampling none",
        "--loss hinge --algorithm semi-dp-sgd --sampling poisson",
    ]
    .into_iter()
    .enumerate()
    {
        let command = format!("{TRAIN} --epsilon 4 --delta 1e-5 {options}");
        assert_alike("train-options", &csv(Target::TwoWords, 4, number), &[&command]);
    }
    for (number, target) in
        [Target::Number, Target::Bit, Target::ThreeWords, Target::OneToThree].into_iter().enumerate()
    {
        let command = format!("{TRAIN} --rho 0.5 --json");
        assert_alike("train-target", &csv(target, 4, number), &[&command]);
    }
}

/// Files of other formats.
#[test]
fn other_formats_show_no_private_row() {
    let budget = "--epsilon 4 --delta 1e-5 --seed SEED --json";
    for (number, (names, write)) in [
        (("private.npy", "public.npy"), npy as fn(&[[f64; 3]]) -> Vec<u8>),
        (("private.parquet", "public.parquet"), parquet),
    ]
    .into_iter()
    .enumerate()
    {
        let files = format!("--private {} --public {}", names.0, names.1);
        let worlds = || binary(names, write, number, 1);
        assert_alike("formats-mean", &worlds(), &[&format!("mean {files} {budget}")]);
        if names.0.ends_with("parquet") {
            for memory in ["", "--memory 0"] {
                let command =
                    format!("train {files} {budget} --target y --steps 6 --out model.json {memory}");
                assert_alike("formats-train", &worlds(), &[&command]);
            }
        }
    }
}

/// Reports of the local model: all but their vectors, and what the client says.
#[test]
fn reports_show_nothing_but_vectors() {
    for (number, options) in
        ["--mechanism duchi", "--mechanism auto", "--mechanism privunitg --idealised --public public.csv"]
            .into_iter()
            .enumerate()
    {
        let command = format!(
            "local randomize --data private.csv --columns a,b --epsilon 2 --radius 30 --out reports.jsonl --seed SEED {options} --json"
        );
        let plain = command.replace(" --json", "");
        assert_alike("reports", &csv(Target::TwoWords, 3, number), &[&command]);
        assert_alike("reports-text", &csv(Target::TwoWords, 6, number), &[&plain]);
    }
}

/// Under add/remove the last row, or the last ten, may be missing.
#[test]
fn add_remove_shows_no_count() {
    let private = rows(PRIVATE_ROWS, Target::TwoWords, 2);
    let first = |count: usize| {
        let lines: Vec<&str> = private.lines().take(1 + count).collect();
        format!("{}\n", lines.join("\n")).into_bytes()
    };
    let counts = [PRIVATE_ROWS, PRIVATE_ROWS - 1, PRIVATE_ROWS - 10, 1, 0];
    let mut files: Vec<(String, Vec<u8>)> =
        counts.into_iter().map(|count| (format!("{count} rows in all"), first(count))).collect();
    for (name, line) in some_of(odd_lines(), 4, 0) {
        files.push((format!("{name} in a row more"), [first(PRIVATE_ROWS), line, b"\n".to_vec()].concat()));
    }
    let public_file = rows(PUBLIC_ROWS, Target::TwoWords, 1).into_bytes();
    let worlds = Worlds { files, private: "private.csv", public: "public.csv", public_file };
    let secret = "--epsilon 4 --delta 1e-5 --adjacency add-remove --expected-batch 8";
    for options in [
        "--sample-rate 0.2 --json",
        "--sample-rate 0.2",
        "--algorithm semi-dp-sgd --sample-rate 0.1667 --sampling one-pass --json",
        "--algorithm semi-dp-sgd --sampling none --json",
        "--sample-rate 0.2 --algorithm dp-sgd --memory 1kB --json",
    ] {
        let options = options.replace("--sampling none", "--sampling none --sample-rate 1");
        assert_alike("add-remove", &worlds, &[&format!("{TRAIN} {secret} {options}")]);
    }
}

/// A strict check may say that a cell is odd, but not which value, how odd, or in which row.
#[test]
fn a_strict_refusal_names_the_column_alone() {
    // Rows that have nothing odd of their own: those of the public file.
    let private = rows(PRIVATE_ROWS, Target::TwoWords, 1);
    let public = private.clone();
    for command in [
        format!("{MEAN} --epsilon 1 --delta 1e-6 --strict"),
        format!("{TRAIN} --epsilon 4 --delta 1e-5 --strict"),
    ] {
        for (column, cells) in [(1, ["SECRET", "nine", "12 years"]), (2, ["SECRET", "mauve", "39"])] {
            let mut seen: Option<Traces> = None;
            for (cell, place) in cells.into_iter().zip([1, PRIVATE_ROWS / 2, PRIVATE_ROWS]) {
                let mut lines: Vec<String> = private.lines().map(String::from).collect();
                let mut row: Vec<&str> = lines[place].split(',').collect();
                row[column] = cell;
                lines[place] = row.join(",");
                let text = format!("{}\n", lines.join("\n")).into_bytes();
                let files = [("private.csv", &*text), ("public.csv", public.as_bytes())];
                let command =
                    if column == 2 { format!("{command} --columns colour,a") } else { command.clone() };
                let found = traces("strict", &files, &[command.replace("SEED", "1")]);
                assert_eq!(found["0:exit code"], "Some(2)", "{command}: {found:?}");
                let first = seen.get_or_insert_with(|| found.clone());
                assert_eq!(*first, found, "{command}: {cell} in row {place}");
            }
        }
    }
}

/// Twins of the program: what it might say if it looked at rows.
#[test]
fn what_shows_a_row_is_flagged() {
    let of = |text: &str| {
        let mut traces = Traces::new();
        add("0:stdout", text.as_bytes(), &mut traces);
        traces
    };
    let answer = |mean: f64, rows: u64, note: &str| {
        format!(
            "{{\"mean\":[{mean},1],\"n\":{rows},\"note\":\"{note}\",\"certificate\":{{\"steps\":[{{\"n\":{rows}}}]}}}}"
        )
    };
    let released = released(&[of(&answer(0.5, 3, "")), of(&answer(0.7, 3, ""))]);
    assert_eq!(released.into_iter().collect::<Vec<_>>(), ["0:stdout/mean"]);
    let mask: BTreeSet<String> = ["0:stdout/mean".to_string()].into();
    let base = of(&answer(0.5, 3, ""));
    assert!(differences(&base, &of(&answer(0.9, 3, "")), &mask).is_empty());
    // A count; a note; a field that comes or goes; an array of another length.
    assert_eq!(differences(&base, &of(&answer(0.5, 4, "")), &mask).len(), 2);
    assert_eq!(differences(&base, &of(&answer(0.5, 3, "2 cells were unreadable")), &mask).len(), 1);
    assert!(!differences(&base, &of(&answer(0.5, 3, "").replace("\"n\":3,", "")), &mask).is_empty());
    assert!(!differences(&base, &of(&answer(0.5, 3, "").replace("[0.5,1]", "[0.5]")), &mask).is_empty());
    // Lines and words of a text, and lines of reports.
    assert!(differences(&of("read 3 rows"), &of("read 4 rows"), &mask)[0].contains("3 or 4"));
    assert!(!differences(&of("a\nb"), &of("a\nb\nwarning: c"), &mask).is_empty());
    assert!(
        !differences(
            &of("{\"id\":1}\n{\"id\":2}"),
            &of("{\"id\":1}\n{\"id\":2,\"was_clipped\":true}"),
            &mask
        )
        .is_empty()
    );
    assert!(fresh("twins") != fresh("twins"));
}

/// `--attack replay` of the audits, on made-up rows.
#[test]
fn replay_is_an_attack_of_the_audits() {
    let mean = "audit mean --n-private 300 --n-public 10 --dim 4 --epsilon 1 --delta 1e-5 --attack replay";
    let train = "audit train --n-private 60 --n-public 20 --dim 4 --epsilon 4 --delta 1e-5 --steps 8 --loss squared --attack replay";
    for (command, worlds) in
        [(mean.to_string(), 20.0), (format!("{train} --algorithm semi-dp-sgd"), 8.0 * 17.0)]
    {
        let answer = json(&command);
        assert_eq!(
            (&answer["verdict"], &answer["violations"]),
            (&"consistent".into(), &serde_json::json!([]))
        );
        assert_eq!((&answer["attack"], &answer["rows"]), (&"replay".into(), &"synthetic".into()));
        assert!(number(&answer, "/largest_share_of_sensitivity") > 0.999, "{answer}");
        assert!(number(&answer, "/comparisons") >= worlds, "{answer}");
        let text = run(&command);
        assert_eq!(text.code, 0, "{}", text.stderr);
        assert!(text.stdout.contains("nothing contradicts the promise"), "{}", text.stdout);
        // The kernel cannot know that rows are made up.
        assert!(text.stderr.contains("private data was declassified"), "{}", text.stderr);
        refused(&format!("{command} --trials 100"), &["--trials", "--attack replay"]);
        refused(&format!("{command} --plot plot.svg"), &["--plot", "--attack replay"]);
    }
    // Add/remove: the rows of every step are those of the secret number.
    let secret = "--adjacency add-remove --sample-rate 0.3 --expected-batch 18 --algorithm semi-dp-sgd";
    assert_eq!(json(&format!("{train} {secret}"))["adjacency"], "add-remove");
    let with_loss = |loss: &str| train.replace("squared", loss);
    refused(&format!("{} --algorithm semi-dp-sgd", with_loss("cubic")), &["loss"]);
    refused(&format!("{} --algorithm optimal-gain", with_loss("hinge")), &["algorithm"]);
    let local = train.replace(" --delta 1e-5", "").replace(" --steps 8", "");
    refused(&format!("{local} --algorithm ldp-sgd"), &["trust", "--attack replay"]);
}
