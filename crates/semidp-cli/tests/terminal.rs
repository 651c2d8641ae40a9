//! No name reaches the terminal as a command to it: control characters, marks that reverse text and marks that nobody sees are
//! escaped in tables, notes, warnings, errors and JSON.

mod common;

use common::{Ran, SEMIDP, folder, json};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

fn ran(arguments: &[&str]) -> Ran {
    Command::new(SEMIDP).args(arguments).stdin(Stdio::null()).output().unwrap().into()
}

/// Every control character but NUL and line breaks, which no argument or cell can hold, and marks beyond ASCII.
fn canary() -> String {
    let controls = (1..=0x1f).chain(0x7f..=0x9f).filter(|code| ![0x0a, 0x0d].contains(code));
    let marks = [0xad, 0x61c, 0x200b, 0x200c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202d, 0x202e];
    let more = [0x2060, 0x2066, 0x2067, 0x2068, 0x2069, 0xfeff, 0xe0041];
    let letters = controls.chain(marks).chain(more).filter_map(char::from_u32);
    format!("x{}[31mz", letters.collect::<String>())
}

/// Asserts that nothing hidden was printed; returns whether the canary was, in escapes.
#[track_caller]
fn clean(what: &str, ran: &Ran) -> bool {
    for text in [&ran.stdout, &ran.stderr] {
        let hidden =
            text.chars().find(|letter| *letter != '\n' && (letter.is_control() || canary_has(*letter)));
        assert_eq!(hidden, None, "{what}: {}", text.escape_debug());
    }
    // A table may break a long name anywhere.
    let printed = ran.stdout.chars().chain(ran.stderr.chars());
    let unbroken: String = printed.filter(|letter| letter.is_ascii_graphic()).collect();
    unbroken.contains("\\u{1b}") || unbroken.contains("\\u001b")
}

fn canary_has(letter: char) -> bool {
    !letter.is_ascii_graphic() && canary().contains(letter)
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    std::fs::write(folder.join(name), text).unwrap();
    folder.join(name).to_str().unwrap().into()
}

fn table(column: &str, count: usize) -> String {
    let line = |i: usize| format!("{},{},{}\n", (i * 37) % 101, (i * 53) % 97, 3 * ((i * 37) % 101) + i % 5);
    format!("{column},b,y{column}\n{}", (0..count).map(line).collect::<String>())
}

#[test]
fn names_of_columns_and_files_are_escaped() {
    let folder = folder("terminal-names");
    let canary = canary();
    let public = write(&folder, &format!("public{canary}.csv"), &table(&canary, 60));
    let private = write(&folder, &format!("private{canary}.csv"), &table(&canary, 900));
    let out = folder.join(format!("out{canary}"));
    let (out, target) = (out.to_str().unwrap(), format!("y{canary}"));
    let model = folder.join(format!("model{canary}.json"));
    let model = model.to_str().unwrap();
    let budget = ["--epsilon", "1", "--delta", "1e-5"];
    let both = ["--private", private.as_str(), "--public", public.as_str()];
    let ledger = folder.join("budget.ledger");
    let ledger = ledger.to_str().unwrap();
    let commands: Vec<(&str, Vec<&str>)> = vec![
        ("mean", [&["mean"], &both[..], &budget].concat()),
        ("mean of one", [&["mean", "--columns", &canary], &both[..], &budget].concat()),
        ("unknown column", [&["mean", "--columns", &target, "--columns", "b"], &both[..], &budget].concat()),
        ("missing column", [&["mean", "--columns", "q\u{1b}"], &both[..], &budget].concat()),
        ("estimator", [&["mean", "--estimator", &canary], &both[..], &budget].concat()),
        (
            "train",
            [&["train", "--target", &target, "--out", model, "--checkpoint", "none"], &both[..], &budget]
                .concat(),
        ),
        ("target", [&["train", "--target", "q\u{1b}", "--out", model], &both[..], &budget].concat()),
        (
            "algorithm",
            [&["train", "--target", &target, "--out", model, "--algorithm", &canary], &both[..], &budget]
                .concat(),
        ),
        ("evaluate", vec!["evaluate", "--model", model, "--data", &public]),
        ("predict", vec!["predict", "--model", model, "--data", &public, "--out", out]),
        ("schema", vec!["schema", "--public", &public]),
        (
            "randomize",
            vec!["local", "randomize", "--data", &private, "--epsilon", "1", "--radius", "200", "--out", out],
        ),
        ("aggregate", vec!["local", "aggregate", "--reports", out, "--public", &public]),
        ("no model", vec!["evaluate", "--model", &public, "--data", &public]),
        ("no file", vec!["mean", "--private", out, "--public", "/no\u{1b}\u{202e}", "--epsilon", "1"]),
        (
            "ledger",
            vec![
                "ledger",
                "init",
                "--ledger",
                ledger,
                "--dataset",
                &canary,
                "--epsilon",
                "1",
                "--delta",
                "1e-5",
            ],
        ),
        ("no ledger", vec!["ledger", "show", "--ledger", &public]),
        ("no certificate", vec!["verify", &public]),
        ("no events", vec!["account", "--delta", "1e-5", "--events", &public]),
        ("option", vec!["account", "--\u{1b}[2Jx"]),
        ("value", vec!["account", "--delta", &canary]),
        ("command", vec![&canary]),
        ("experiment", vec!["reproduce", &canary]),
        ("key", vec!["keygen", "--out", model]),
    ];
    let mut shown = Vec::new();
    for (what, arguments) in &commands {
        for more in [&[][..], &["--json"]] {
            if clean(what, &ran(&[&arguments[..], more].concat())) && !shown.contains(what) {
                shown.push(what);
            }
        }
    }
    // Some print no name; the others must have shown the canary, or nothing was tested.
    assert!(shown.len() >= 15, "only {shown:?} show a name");
}

#[test]
fn texts_of_certificates_and_events_are_escaped() {
    let folder = folder("terminal-certificates");
    let canary = format!("{}\u{0}\r\n", canary());
    let answer = json("account --noise-multiplier 4 --steps 3 --delta 1e-5");
    let certificate = &answer["certificate"];
    let changed = |pointer: &str, value: Value| {
        let mut changed = certificate.clone();
        match changed.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => changed[pointer.trim_start_matches('/')] = value,
        }
        changed.to_string()
    };
    let list = json!([canary]);
    for (place, text) in [
        changed("/mechanism", json!(canary)),
        changed("/not_covered", list.clone()),
        changed("/assumptions", list.clone()),
        changed("/notes", list.clone()),
        changed("/declassified", list),
        changed("/format", json!(canary)),
        changed("/hyperparameters/0/value", json!(canary)),
        changed("/events/0/event", json!(canary)),
        changed(&format!("/{canary}"), json!(1)),
        changed("/signature", json!({ "algorithm": canary, "public_key": canary, "value": canary })),
    ]
    .iter()
    .enumerate()
    {
        let file = write(&folder, &format!("certificate-{place}.json"), text);
        for more in [&[][..], &["--json"]] {
            let what = format!("certificate {place}");
            assert!(
                clean(&what, &ran(&[&["verify", file.as_str()][..], more].concat())),
                "{what}: no canary"
            );
        }
    }
    let events = write(&folder, "events.json", &json!([{ "event": canary }]).to_string());
    assert!(clean("events", &ran(&["account", "--delta", "1e-5", "--events", &events])));
}
