//! Kills and full disks at every call that changes a file: no second debit, no lost answer, no wrong message.
//!
//! Every case runs a command with a fault, and then the same command without. A shim (`faults/shim.c`, by `LD_PRELOAD`) makes the n-th call
//! that creates, writes, syncs, renames, links, truncates or removes a file fail, or kills the process there; other kills come at
//! random moments. A few cases run by default; `cargo xtask faults` runs all of them and prints the table.
#![cfg(target_os = "linux")]

mod common;
mod rows;

use common::{SEMIDP, folder, people, run};
use rows::Numbers;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a command is, and what it leaves.
struct Verb {
    name: &'static str,
    arguments: &'static str,
    /// The file of the answer, and where in it (or in what is printed) the answer stands; the whole file without a pointer.
    out: Option<&'static str>,
    pointer: Option<&'static str>,
    has_ledger: bool,
    /// What a run that was interrupted needs besides.
    resume: Option<&'static str>,
    /// Files that are there at the end.
    leaves: &'static [&'static str],
}

const VERBS: [Verb; 7] = [
    Verb {
        name: "mean --ledger --out",
        arguments: "mean --private private.csv --public public.csv --rho 0.1 --ledger l --dataset d --out a.json \
                    --certificate c.json --json",
        out: Some("a.json"),
        pointer: Some("/mean"),
        has_ledger: true,
        resume: None,
        leaves: &["a.json", "c.json"],
    },
    Verb {
        name: "mean --ledger",
        arguments: "mean --private private.csv --public public.csv --rho 0.1 --ledger l --dataset d --json",
        out: None,
        pointer: Some("/mean"),
        has_ledger: true,
        resume: None,
        leaves: &[],
    },
    Verb {
        name: "mean --out",
        arguments: "mean --private private.csv --public public.csv --rho 0.1 --out a.json --json",
        out: Some("a.json"),
        pointer: Some("/mean"),
        has_ledger: false,
        resume: None,
        leaves: &["a.json"],
    },
    Verb {
        name: "train --ledger",
        arguments: "train --private private.csv --public public.csv --target y --task regression --rho 0.1 --delta 1e-5 --steps 4 \
                    --checkpoint-every 0 --ledger l --dataset d --out m.json --certificate c.json --json",
        out: Some("m.json"),
        pointer: None,
        has_ledger: true,
        resume: Some("m.json.checkpoint"),
        leaves: &["m.json", "c.json"],
    },
    Verb {
        name: "train --trust local",
        arguments: "train --private private.csv --public public.csv --target y --task regression --trust local --epsilon 4 \
                    --algorithm semi-ldp-sgd --out m.json --json",
        out: Some("m.json"),
        pointer: None,
        has_ledger: false,
        resume: None,
        leaves: &["m.json"],
    },
    Verb {
        name: "local randomize",
        arguments: "local randomize --data people.csv --epsilon 1 --radius 1 --mechanism duchi --out r.jsonl --json",
        out: Some("r.jsonl"),
        pointer: None,
        has_ledger: false,
        resume: None,
        leaves: &["people.csv.memory", "people.csv.memory.key", "r.jsonl"],
    },
    Verb {
        name: "ledger init",
        arguments: "ledger init --ledger n --dataset d --rho 1 --delta 1e-6 --json",
        out: None,
        pointer: Some("/dataset"),
        has_ledger: false,
        resume: None,
        leaves: &["n"],
    },
];

/// How a run is disturbed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Call(&'static str, usize),
    Kill(Duration),
}

const CALL_FAULTS: [&str; 3] = ["kill", "enospc", "full"];

#[derive(Default)]
struct Tally {
    runs: usize,
    kills: usize,
    double_debits: Vec<String>,
    lost_answers: Vec<String>,
    wrong_messages: Vec<String>,
}

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The shim, compiled once.
fn shim() -> PathBuf {
    // Tests run side by side and share it.
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let library = folder("faults-shim").join("shim.so");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        assert!(command.status().unwrap().success(), "the shim needs a C compiler, as SQLite does");
        library
    };
    LIBRARY.get_or_init(make).clone()
}

/// Files for one case, made once a verb and copied.
fn prepare(verb: &Verb, place: &Path) {
    let table = |count: usize, seed: u64| {
        let mut numbers = Numbers(seed);
        let mut text = "x,y\n".to_string();
        for _ in 0..count {
            let x = numbers.draw();
            text += &format!("{x},{}\n", 0.5 * x + 0.1 * numbers.draw());
        }
        text
    };
    let write = |name: &str, text: String| std::fs::write(place.join(name), text).unwrap();
    if verb.name.starts_with("local") {
        write("people.csv", people::people(40));
    } else if !verb.name.starts_with("ledger") {
        write("private.csv", table(120, 1));
        write("public.csv", table(60, 2));
    }
    if verb.has_ledger {
        let set =
            run(&format!("ledger init --ledger {}/l --dataset d --rho 1 --delta 1e-6", place.display()));
        assert_eq!(set.code, 0, "{}", set.stderr);
    }
}

fn spawn(arguments: &str, place: &Path, environment: &[(&str, String)]) -> Child {
    Command::new(SEMIDP)
        .args(arguments.split_whitespace())
        .current_dir(place)
        .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The answers that are delivered in full, in the file or on standard output.
fn delivered(verb: &Verb, place: &Path, ran: &Ended) -> BTreeSet<String> {
    let answer = |text: &str| -> Option<String> {
        match verb.pointer {
            Some(pointer) => Some(serde_json::from_str::<Value>(text).ok()?.pointer(pointer)?.to_string()),
            None => Some(text.to_string()),
        }
    };
    let mut answers = BTreeSet::new();
    if let Some(out) = verb.out {
        answers.extend(std::fs::read_to_string(place.join(out)).ok().and_then(|text| answer(&text)));
    }
    // A model or reports are no part of what is printed.
    if verb.pointer.is_some() {
        answers.extend(answer(&ran.stdout));
    }
    answers
}

fn debits(verb: &Verb, place: &Path) -> usize {
    if !verb.has_ledger {
        return 0;
    }
    let shown = run(&format!("ledger show --ledger {}/l --json", place.display()));
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["datasets"][0]["debits"].as_array().unwrap().len()
}

fn case(verb: &Verb, fault: Fault, shim: &Path, made: &Path, place: &Path, tally: &mut Tally) {
    std::fs::create_dir(place).unwrap();
    for entry in std::fs::read_dir(made).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
    }
    let first = match fault {
        Fault::Call(how, at) => ended(spawn(
            verb.arguments,
            place,
            &[
                ("LD_PRELOAD", shim.display().to_string()),
                ("FAULT_HOW", how.into()),
                ("FAULT_AT", at.to_string()),
            ],
        )),
        Fault::Kill(after) => {
            let mut child = spawn(verb.arguments, place, &[]);
            std::thread::sleep(after);
            let _ = child.kill();
            ended(child)
        }
    };
    let what = |problem: String| format!("{} {fault:?}: {problem}", verb.name);
    tally.runs += 1;
    tally.kills += usize::from(first.code.is_none());
    let paid = debits(verb, place);
    let before = delivered(verb, place, &first);
    let mut wrong = Vec::new();
    let has_error = first.stderr.lines().any(|line| line.starts_with("error: "));
    match first.code {
        None => {}
        Some(0) if before.is_empty() => wrong.push(format!("exit 0 without an answer: {}", first.stderr)),
        Some(0) => {}
        Some(_) => {
            let has_hint = first.stderr.lines().any(|line| line.starts_with("hint: "));
            // A stream that is full takes no message either.
            let is_stream = matches!(fault, Fault::Call("enospc", _)) && first.stderr.is_empty();
            if !(has_error && (has_hint || first.code == Some(1))) && !is_stream {
                wrong.push(format!("no message: {}", first.stderr));
            }
            let says = first.stderr.contains("was spent");
            // A ledger that fails to commit does not know itself what the disk holds.
            let is_unknown = first.stderr.contains("ledger show` tells");
            let is_wrong = if paid == 0 { says } else { !says && before.is_empty() };
            if verb.has_ledger && has_error && !is_unknown && is_wrong {
                wrong.push(format!("{paid} debits, and it says: {}", first.stderr));
            }
        }
    }
    // The same command again, as a user would give it.
    let is_kept = verb.resume.is_some_and(|checkpoint| place.join(checkpoint).exists());
    let is_done = verb.resume.is_some() && !before.is_empty() && !is_kept;
    let arguments = match verb.resume {
        Some(checkpoint) if is_kept => format!("{} --resume {checkpoint}", verb.arguments),
        _ => verb.arguments.into(),
    };
    let mut after = before.clone();
    if !is_done {
        let second = ended(spawn(&arguments, place, &[]));
        // The first answer is there, and the run is known to be over.
        let has_ended = !before.is_empty() && second.code == Some(2) && second.stderr.contains("has ended");
        let is_set =
            verb.name == "ledger init" && second.code == Some(2) && second.stderr.contains("already");
        if second.code != Some(0) && !has_ended && !is_set {
            wrong.push(format!("again: {:?} {}", second.code, second.stderr));
        }
        after.extend(delivered(verb, place, &second));
        if is_set {
            let shown = ended(spawn("ledger show --ledger n --json", place, &[]));
            after.extend(
                serde_json::from_str::<Value>(&shown.stdout).ok().map(|shown| shown["datasets"].to_string()),
            );
        }
    }
    let total = debits(verb, place);
    if total > 1 && before.is_empty() {
        tally.double_debits.push(what(format!("{total} debits")));
    }
    // Without a ledger: the noise is drawn once, unless the first answer was delivered.
    if after.len() > 1 && before.is_empty() || after.len() < total || after.is_empty() {
        tally.lost_answers.push(what(format!("{total} debits, answers {after:?}")));
    }
    let expected: BTreeSet<String> = std::fs::read_dir(made)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .chain(verb.leaves.iter().map(|name| name.to_string()))
        .collect();
    let found: BTreeSet<String> =
        common::entries(&place.to_path_buf()).into_iter().filter(|name| !is_of_sqlite(name)).collect();
    if !is_done && found != expected {
        wrong.push(format!("it leaves {:?}", found.symmetric_difference(&expected).collect::<Vec<_>>()));
    }
    tally.wrong_messages.extend(wrong.into_iter().map(what));
    std::fs::remove_dir_all(place).unwrap();
}

fn is_of_sqlite(name: &str) -> bool {
    // What lies beside a ledger, not beside a draft of one.
    !name.starts_with('.') && ["-wal", "-shm", "-journal"].iter().any(|ending| name.ends_with(ending))
}

/// All calls, or some; and so many random kills.
fn try_all(name: &str, calls: Option<usize>, kills: usize) {
    let shim = shim();
    let root = folder(name);
    let mut table = format!(
        "{:<20} {:>6} {:>6} {:>6} {:>14} {:>13} {:>15}\n",
        "verb", "calls", "runs", "kills", "double debits", "lost answers", "wrong messages"
    );
    let mut problems = Vec::new();
    for (number, verb) in VERBS.iter().enumerate() {
        let made = root.join(format!("made-{number}"));
        std::fs::create_dir(&made).unwrap();
        prepare(verb, &made);
        // How many calls there are, and how long it takes.
        let trial = root.join(format!("trial-{number}"));
        std::fs::create_dir(&trial).unwrap();
        for entry in std::fs::read_dir(&made).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), trial.join(entry.file_name())).unwrap();
        }
        let count = root.join(format!("count-{number}"));
        let begun = Instant::now();
        let whole = ended(spawn(
            verb.arguments,
            &trial,
            &[
                ("LD_PRELOAD", shim.display().to_string()),
                ("FAULT_HOW", "count".into()),
                ("FAULT_COUNT", count.display().to_string()),
            ],
        ));
        let length = begun.elapsed();
        assert_eq!(whole.code, Some(0), "{}: {}", verb.name, whole.stderr);
        let total: usize = std::fs::read_to_string(&count).unwrap().trim().parse().unwrap();
        assert!(total > 5, "{}: the shim saw {total} calls", verb.name);
        let mut moments = Numbers(7 + number as u64);
        let mut faults = Vec::new();
        for how in CALL_FAULTS {
            let some = calls.unwrap_or(total).min(total);
            faults.extend((0..some).map(|i| {
                let at = match calls {
                    None => i + 1,
                    // Spread over the run, at other places for each kind of fault.
                    Some(_) => {
                        let share = (i as f64 + 0.5 * (moments.draw() + 1.0)) / some as f64;
                        (1 + (share * total as f64) as usize).min(total)
                    }
                };
                Fault::Call(how, at)
            }));
        }
        faults.extend((0..kills).map(|_| Fault::Kill(length.mul_f64(0.6 * (moments.draw() + 1.0)))));
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        let tallies: Vec<Tally> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut tally = Tally::default();
                        loop {
                            let at = next.fetch_add(1, Ordering::Relaxed);
                            let Some(fault) = faults.get(at) else { return tally };
                            let place = root.join(format!("case-{number}-{at}"));
                            case(verb, *fault, &shim, &made, &place, &mut tally);
                        }
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
        table += &format!(
            "{:<20} {:>6} {:>6} {:>6} {:>14} {:>13} {:>15}\n",
            verb.name,
            total,
            sum(|tally| tally.runs),
            sum(|tally| tally.kills),
            sum(|tally| tally.double_debits.len()),
            sum(|tally| tally.lost_answers.len()),
            sum(|tally| tally.wrong_messages.len())
        );
        for tally in tallies {
            problems.extend(tally.double_debits.into_iter().map(|text| format!("double debit: {text}")));
            problems.extend(tally.lost_answers.into_iter().map(|text| format!("lost answer: {text}")));
            problems.extend(tally.wrong_messages.into_iter().map(|text| format!("wrong message: {text}")));
        }
    }
    println!("{table}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn faults_cost_no_second_debit_and_lose_no_answer() {
    try_all("faults-some", Some(4), 2);
}

/// How many calls the shim counts in a run that must succeed.
fn count_calls(arguments: &str, place: &Path, shim: &Path) -> usize {
    let count = place.join("count");
    let whole = ended(spawn(
        arguments,
        place,
        &[
            ("LD_PRELOAD", shim.display().to_string()),
            ("FAULT_HOW", "count".into()),
            ("FAULT_COUNT", count.display().to_string()),
        ],
    ));
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    std::fs::read_to_string(&count).unwrap().trim().parse().unwrap()
}

/// Runs a command in a fresh copy of a folder, with a fault at one call.
fn faulted(arguments: &str, made: &Path, place: &Path, shim: &Path, how: &str, at: usize) -> Ended {
    let _ = std::fs::remove_dir_all(place);
    copy_folder(made, place);
    let environment =
        [("LD_PRELOAD", shim.display().to_string()), ("FAULT_HOW", how.into()), ("FAULT_AT", at.to_string())];
    ended(spawn(arguments, place, &environment))
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Reports of `--again` that were drawn and not delivered are delivered by the same command, at no cost; only then are people asked once
/// more. Each message is right: it says that the people have reported exactly if the next command spends nothing.
#[test]
fn again_delivers_what_was_drawn_before_it_asks_once_more() {
    let (shim, root) = (shim(), folder("faults-again"));
    let (made, place) = (root.join("made"), root.join("case"));
    std::fs::create_dir(&made).unwrap();
    std::fs::write(made.join("people.csv"), people::people(5)).unwrap();
    let first =
        "local randomize --data people.csv --epsilon 1 --radius 1 --mechanism duchi --out r.jsonl --json";
    assert_eq!(ended(spawn(first, &made, &[])).code, Some(0));
    std::fs::remove_file(made.join("r.jsonl")).unwrap();
    let again = format!("{first} --again");
    copy_folder(&made, &place);
    let calls = count_calls(&again, &place, &shim);
    assert!(calls > 10);
    let mut waited = 0;
    for how in CALL_FAULTS {
        for at in 1..=calls {
            let what = format!("{how} at call {at} of {calls}");
            let ran = faulted(&again, &made, &place, &shim, how, at);
            let delivered = std::fs::read(place.join("r.jsonl")).ok();
            if delivered.is_none() {
                // What waits is delivered as it was asked, and as nothing else.
                let other = again.replace("--epsilon 1", "--epsilon 2").replace("r.jsonl", "other.jsonl");
                let copy = root.join("other");
                let _ = std::fs::remove_dir_all(&copy);
                copy_folder(&place, &copy);
                let other = ended(spawn(&other, &copy, &[]));
                let next = ended(spawn(&again, &place, &[]));
                assert_eq!(next.code, Some(0), "{what}: {}", next.stderr);
                let answer: Value = serde_json::from_str(&next.stdout).unwrap();
                // Two reports of each person, whatever happened: nobody has seen a third.
                assert_eq!(answer["memory"]["asked"], 2, "{what}: {} {}", ran.stderr, next.stdout);
                let is_waiting = answer["remembered"] == true;
                waited += usize::from(is_waiting);
                assert_eq!(other.code, Some(if is_waiting { 3 } else { 0 }), "{what}: {}", other.stderr);
                if ran.code.is_some() && !ran.stderr.is_empty() {
                    assert_eq!(is_waiting, ran.stderr.contains("have reported"), "{what}: {}", ran.stderr);
                    assert_eq!(
                        is_waiting,
                        ran.stderr.contains("spends nothing more"),
                        "{what}: {}",
                        ran.stderr
                    );
                }
            }
            // What was delivered is over: the next consent asks once more.
            let next = ended(spawn(&again, &place, &[]));
            assert_eq!(next.code, Some(0), "{what}: {}", next.stderr);
            let asked = serde_json::from_str::<Value>(&next.stdout).unwrap()["memory"]["asked"].clone();
            // Whether it was delivered may itself have been impossible to note: then it is delivered twice.
            let is_noted = delivered.is_none() || (ran.code == Some(0) && !ran.stderr.contains("warning: "));
            assert!(asked == 3 || !is_noted && asked == 2, "{what}: {asked} {}", ran.stderr);
        }
    }
    assert!(waited > 5, "{waited}");
}

/// A signal before the debit: nothing is spent, and nothing is left.
#[test]
fn a_signal_before_the_debit_prevents_it() {
    let (shim, root) = (shim(), folder("faults-signal"));
    let (made, place) = (root.join("made"), root.join("case"));
    std::fs::create_dir(&made).unwrap();
    let verb = VERBS.iter().find(|verb| verb.name == "train --ledger").unwrap();
    prepare(verb, &made);
    let before: BTreeSet<String> = common::entries(&made).into_iter().collect();
    // The debit begins with the journal of the ledger.
    let is_before = |at: usize| {
        faulted(verb.arguments, &made, &place, &shim, "kill", at);
        !place.join("l-journal").exists() && debits(verb, &place) == 0
    };
    let first = (1..).find(|at| !is_before(*at)).unwrap();
    let mut stopped = 0;
    // The call that makes the journal comes after the last look at the signal.
    for at in 1..first - 1 {
        let ran = faulted(verb.arguments, &made, &place, &shim, "term", at);
        assert_eq!(debits(verb, &place), 0, "call {at} of {first}: {}", ran.stderr);
        if ran.code.is_some() {
            assert!(ran.code == Some(1) && ran.stderr.contains("nothing was spent"), "{at}: {}", ran.stderr);
            let left: BTreeSet<String> =
                common::entries(&place).into_iter().filter(|name| !is_of_sqlite(name)).collect();
            assert_eq!(left, before, "{at}");
            stopped += 1;
        }
    }
    assert!(stopped > 2, "{stopped} of {first}");
}

/// `cargo xtask faults` runs it; SEMIDP_KILLS random kills, shared out among the verbs.
#[test]
#[ignore = "takes many minutes; cargo xtask faults runs it"]
fn every_fault() {
    let kills: usize = std::env::var("SEMIDP_KILLS").map_or(300, |count| count.parse().unwrap());
    try_all("faults-all", None, kills.div_ceil(VERBS.len()));
}

/// Every read of a ledger fails once: the disk is blamed, and nobody else.
#[test]
fn a_disk_that_fails_is_not_called_a_change() {
    let (shim, place) = (shim(), folder("faults-eio"));
    let init = format!("ledger init --ledger {}/l --dataset d --rho 1 --delta 1e-6", place.display());
    assert_eq!(run(&init).code, 0);
    for how in ["eio", "dead"] {
        let mut failures = 0;
        for at in 1..40 {
            let environment = [
                ("LD_PRELOAD", shim.display().to_string()),
                ("FAULT_HOW", how.into()),
                ("FAULT_AT", at.to_string()),
                ("FAULT_FILE", place.join("l").display().to_string()),
            ];
            let ran = ended(spawn("ledger show --ledger l --json", &place, &environment));
            assert!(!ran.stderr.contains("changed by something other"), "{how} {at}: {}", ran.stderr);
            assert!(ran.code == Some(0) || ran.stderr.contains("hint: "), "{how} {at}: {}", ran.stderr);
            failures += usize::from(ran.code != Some(0));
        }
        assert!(failures > 0, "{how}: no read of the ledger failed");
    }
}

/// On a file system without locks a run is refused, and leaves no empty key behind that would stand in the way of later ones.
#[test]
fn a_file_system_without_locks_is_left_as_it_was() {
    let (shim, place) = (shim(), folder("faults-nolock"));
    let verb = VERBS.iter().find(|verb| verb.name == "mean --out").unwrap();
    prepare(verb, &place);
    let environment = [("LD_PRELOAD", shim.display().to_string()), ("FAULT_HOW", "nolock".into())];
    let before = common::entries(&place);
    for attempt in 0..2 {
        let ran = ended(spawn(verb.arguments, &place, &environment));
        assert!(ran.code != Some(0) && ran.stderr.contains("cannot be locked"), "{}", ran.stderr);
        assert_eq!(common::entries(&place), before, "{attempt}");
    }
    // What an older version left there is removed.
    std::fs::write(place.join("a.json.checkpoint.key"), "").unwrap();
    let ran = ended(spawn(verb.arguments, &place, &environment));
    assert!(ran.stderr.contains("cannot be locked"), "{}", ran.stderr);
    assert_eq!(common::entries(&place), before);
    assert_eq!(ended(spawn(verb.arguments, &place, &[])).code, Some(0));
}

/// `ulimit -f`: the write fails, with a message; the signal does not end the run without a word.
#[test]
fn a_limit_on_the_size_of_files_is_reported() {
    let place = folder("faults-fsize");
    let verb = VERBS.iter().find(|verb| verb.name == "mean --ledger --out").unwrap();
    prepare(verb, &place);
    let limited = |blocks: usize| {
        let words = format!("ulimit -f {blocks}; exec {SEMIDP} {}", verb.arguments);
        ended(
            Command::new("sh")
                .args(["-c", &words])
                .current_dir(&place)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    };
    for blocks in [0, 1, 2, 4] {
        let ran = limited(blocks);
        assert!(ran.code.is_some_and(|code| code <= 3), "{blocks}: {:?} {}", ran.code, ran.stderr);
        let has_error = ran.stderr.lines().any(|line| line.starts_with("error: "));
        assert!(ran.code == Some(0) || has_error, "{blocks}: {}", ran.stderr);
    }
    assert_eq!(ended(spawn(verb.arguments, &place, &[])).code, Some(0));
    assert_eq!(debits(verb, &place), 1);
}

/// The process is not dumpable from its first instruction to its last, also after its runs have ended.
#[test]
fn the_command_line_leaves_no_core_dump() {
    use std::os::unix::process::ExitStatusExt;
    let place = folder("faults-core");
    let verb = VERBS.iter().find(|verb| verb.name == "train --trust local").unwrap();
    prepare(verb, &place);
    // The answer is more than the pipe takes at once only if nobody reads it; so the process is caught with a FIFO as its output.
    let words = format!("ulimit -c unlimited; exec {SEMIDP} {} >answer", verb.arguments);
    assert!(Command::new("mkfifo").arg(place.join("answer")).status().unwrap().success());
    let fill = std::fs::OpenOptions::new().read(true).write(true).open(place.join("answer")).unwrap();
    let full = fill_up(&fill);
    let mut child = Command::new("sh")
        .args(["-c", &words])
        .current_dir(&place)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !place.join("m.json").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(full && child.try_wait().unwrap().is_none(), "it waits for its output");
    let abort = Command::new("kill").args(["-ABRT", &child.id().to_string()]).status().unwrap();
    assert!(abort.success());
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(6) && !status.core_dumped(), "{status:?}");
}

/// Fills a pipe, so that the next write to it waits.
fn fill_up(pipe: &std::fs::File) -> bool {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(pipe));
    // O_NONBLOCK, which is 0o4000 on Linux.
    let Ok(mut writer) = std::fs::OpenOptions::new().write(true).custom_flags(0o4000).open(path) else {
        return false;
    };
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    true
}
