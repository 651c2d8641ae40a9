//! Answers that were paid for, and the files that they and their runs are in.
#![cfg(unix)]

mod common;
mod rows;

use common::*;
use rows::{Files, Target};
use serde_json::Value;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command that must not wait: it is stopped after a minute.
fn soon(command: &str) -> Ran {
    let begun = Instant::now();
    let mut child = Command::new(SEMIDP)
        .args(command.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it hangs: {command}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap().into()
}

fn fifo(path: &Path) {
    let _ = std::fs::remove_file(path);
    assert!(Command::new("mkfifo").arg("-m").arg("600").arg(path).status().unwrap().success());
}

fn mean(files: &Files) -> String {
    format!(
        "mean --private {} --public {} --columns a,b --rho 0.1",
        files.path("private.csv"),
        files.path("public.csv")
    )
}

fn with_ledger(files: &Files, command: &str) -> String {
    let ledger = format!("--ledger {} --dataset d", files.path("l"));
    assert_eq!(run(&format!("ledger init {ledger} --rho 0.35 --delta 1e-6")).code, 0);
    format!("{command} {ledger}")
}

fn debits(files: &Files) -> usize {
    let shown = json(&format!("ledger show --ledger {}", files.path("l")));
    shown["datasets"][0]["debits"].as_array().unwrap().len()
}

/// Standard output that is full: the same command gives the answer that was paid for. A finished run is over: the next one pays.
#[test]
fn an_answer_that_was_not_printed_is_printed_by_the_same_command() {
    let files = Files::new("paid-full", Target::Number);
    let command = with_ledger(&files, &mean(&files));
    let run_to = |to: &str| -> Ran {
        let out = std::fs::OpenOptions::new().write(true).open(to).unwrap();
        let words = command.split_whitespace().chain(["--json"]);
        Command::new(SEMIDP).args(words).stdout(out).output().unwrap().into()
    };
    for _ in 0..2 {
        let full = run_to("/dev/full");
        assert_eq!(full.code, 1, "{}", full.stderr);
        assert!(full.stderr.contains("rho 0.1") && full.stderr.contains("was spent"), "{}", full.stderr);
        assert!(full.stderr.contains("hint: give the same command again"), "{}", full.stderr);
        assert_eq!(debits(&files), 1);
    }
    let answer = json(&command);
    assert_eq!(debits(&files), 1);
    assert!(!entries(&files.folder).iter().any(|name| name.contains(".run")));
    let other = json(&command);
    assert_eq!(debits(&files), 2);
    assert_ne!(answer["mean"], other["mean"]);
    // Another question is another run, whatever waits to be delivered.
    run_to("/dev/full");
    assert_eq!(debits(&files), 3);
    let ran = run(&command.replace("--columns a,b", "--columns a"));
    assert_eq!(ran.code, 3, "{}", ran.stderr);
}

/// The rows of a run that waits for its answer are those that it began with; others would get its answer, or its noise.
#[test]
fn a_recorded_run_goes_on_with_its_own_rows_only() {
    let files = Files::new("paid-rows", Target::Number);
    let command = with_ledger(&files, &mean(&files));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = Command::new(SEMIDP).args(command.split_whitespace()).stdout(full).output().unwrap();
    assert_eq!((ran.status.code(), debits(&files)), (Some(1), 1));
    let private = files.text("private.csv");
    files.write("private.csv", &private.replacen("0.", "0.1", 1));
    check_refusal(&command, &run(&command), &["the private rows are not those that it began with"]);
    files.write("private.csv", &private);
    json(&command);
    assert_eq!(debits(&files), 1);
    assert!(!entries(&files.folder).iter().any(|name| name.contains(".run")));
    // Beside --out a run waits under one name: another one is refused, and which option differs is said.
    let command = format!("{command} --out {}", files.path("a.json"));
    std::fs::create_dir(files.folder.join("c.json")).unwrap();
    refused(&format!("{command} --certificate {}", files.path("c.json")), &["--certificate"]);
    assert_eq!(debits(&files), 1);
}

/// What cannot be read to its end is refused at once, and nothing waits for a writer.
#[test]
fn devices_and_fifos_are_refused() {
    let files = Files::new("paid-fifo", Target::Number);
    let train = files.paid();
    let check = |command: &str, words: &[&str]| check_refusal(command, &soon(command), words);
    check(&format!("{train} --resume /dev/zero"), &["/dev/zero", "not a regular file"]);
    let huge = files.folder.join("huge");
    std::fs::File::create(&huge).unwrap().set_len(3 << 30).unwrap();
    check(&format!("{train} --resume {}", huge.display()), &["is no checkpoint"]);
    let pipe = files.folder.join("pipe");
    fifo(&pipe);
    let pipe = pipe.display();
    check(&format!("{train} --resume {pipe}"), &["not a regular file"]);
    check(&format!("{train} --ledger {pipe} --dataset d"), &["pipe"]);
    check(
        &format!("evaluate --model {pipe} --data {}", files.path("test.csv")),
        &["--model", "not a regular file"],
    );
    fifo(&files.folder.join("model.json.checkpoint.key"));
    check(&train, &["key", "not a regular file"]);
    let _ = std::fs::remove_file(files.folder.join("model.json.checkpoint.key"));
    let local = format!(
        "local randomize --data {} --columns a,b --epsilon 1 --radius 1 --out {}",
        files.path("private.csv"),
        files.path("r")
    );
    check(&format!("{local} --memory {pipe}"), &["--memory", "not a regular file"]);
    fifo(&files.folder.join("private.csv.memory.key"));
    check(&local, &["--memory", "not a regular file"]);
}

/// Results go through a link to its target; temporary files follow no link, and neither do keys and checkpoints.
#[test]
fn links_lead_no_write_astray() {
    let files = Files::new("paid-links", Target::Number);
    let precious = files.write("precious", "precious");
    // Where the names of temporary files once could be guessed.
    symlink(&precious, files.folder.join(".model.json.checkpoint.new")).unwrap();
    assert_eq!(run(&files.paid()).code, 0);
    assert_eq!(files.text("precious"), "precious");
    for name in ["model.json.checkpoint", "model.json.checkpoint.key"] {
        symlink(&precious, files.folder.join(name)).unwrap();
        let ran = run(&files.paid());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        std::fs::remove_file(files.folder.join(name)).unwrap();
        assert_eq!(files.text("precious"), "precious");
    }
    let (target, link) = (files.write("target.json", ""), files.folder.join("link.json"));
    symlink(&target, &link).unwrap();
    let command = format!("{} --out {}", mean(&files), link.display());
    let answer = json(&command);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(files.json("target.json")["mean"], answer["mean"]);
    std::fs::remove_file(&target).unwrap();
    check_refusal(&command, &run(&command), &["--out", "leads to no file"]);
}

/// What a killed run left of a file is removed by the next one, whatever its name; a live run's stays, whatever its process number.
#[test]
fn only_what_was_abandoned_is_removed() {
    let files = Files::new("paid-temporary", Target::Number);
    let name = std::ffi::OsStr::from_bytes(b"m\xff.json");
    let draft = |id: char| {
        let mut draft = std::ffi::OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.tmp", id.to_string().repeat(32)));
        files.folder.join(draft)
    };
    let (dead, live) = (draft('d'), draft('a'));
    std::fs::write(&dead, "half").unwrap();
    let held = std::fs::File::create(&live).unwrap();
    held.lock().unwrap();
    let ran: Ran = Command::new(SEMIDP)
        .args(mean(&files).split_whitespace())
        .arg("--out")
        .arg(files.folder.join(name))
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!dead.exists() && live.exists());
    serde_json::from_slice::<Value>(&std::fs::read(files.folder.join(name)).unwrap()).unwrap();
    let left = std::fs::read_dir(&files.folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().as_bytes().ends_with(b"tmp"));
    assert_eq!(left.count(), 1);
}

/// Nobody else may write results, whatever the umask; a file that was closed to others stays closed.
#[test]
fn results_are_not_for_everybody_to_write() {
    let files = Files::new("paid-modes", Target::Number);
    let closed = files.write("closed.json", "");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o600)).unwrap();
    let commands = [
        format!("{} --certificate {}", files.paid(), files.path("certificate.json")),
        format!("{} --out {closed}", mean(&files)),
    ];
    for command in commands {
        let ran =
            Command::new("sh").arg("-c").arg(format!("umask 000; exec {SEMIDP} {command}")).output().unwrap();
        assert_eq!(ran.status.code(), Some(0));
    }
    for (name, mode) in [("model.json", 0o644), ("certificate.json", 0o644), ("closed.json", 0o600)] {
        let found = std::fs::metadata(files.folder.join(name)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
    }
}

/// Killed while it tidied up: the run is over, and nothing is called damaged.
#[test]
fn a_run_that_was_killed_at_its_very_end_has_ended() {
    let files = Files::new("paid-ended", Target::Number);
    let train = files.paid();
    assert_eq!(run(&train).code, 0);
    let (checkpoint, key) = (files.path("model.json.checkpoint"), files.path("model.json.checkpoint.key"));
    let ended = || {
        std::fs::write(&checkpoint, "{\"format\":\"semidp-checkpoint/1\"}").unwrap();
        std::fs::write(&key, "semidp-run-key/1\n00000000000000000000000000000000\nended\n\n\n").unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    ended();
    let ran = run(&format!("{train} --resume {checkpoint}"));
    check_refusal(&train, &ran, &["has ended", "was written before"]);
    assert!(!Path::new(&checkpoint).exists() && !Path::new(&key).exists());
    ended();
    assert_eq!(run(&train).code, 0);
    assert!(!Path::new(&checkpoint).exists() && !Path::new(&key).exists());
}

fn shell(script: &str) -> Ran {
    Command::new("sh").arg("-c").arg(script).stdin(Stdio::null()).output().unwrap().into()
}

/// Standard output that leads nowhere, and no `--out`: nothing is spent.
#[test]
fn a_closed_standard_output_costs_nothing() {
    let files = Files::new("paid-closed", Target::Number);
    let command = with_ledger(&files, &mean(&files));
    for to in [">&-", "1</dev/null", "1<>/dev/null"] {
        for form in ["", "--json", "--quiet"] {
            let ran = shell(&format!("exec {SEMIDP} {command} {form} {to}"));
            check_refusal(to, &ran, &["standard output"]);
            assert!(ran.stderr.contains("--out"), "{}", ran.stderr);
            assert_eq!(debits(&files), 0, "{to} {form}");
        }
    }
    // Thrown away on purpose, or with the answer in a file.
    assert_eq!(shell(&format!("exec {SEMIDP} {command} >/dev/null")).code, 0);
    assert_eq!(debits(&files), 1);
    let command = format!("{command} --out {}", files.path("a.json"));
    assert_eq!(shell(&format!("exec {SEMIDP} {command} >&-")).code, 0);
    assert_eq!(debits(&files), 2);
    assert!(files.json("a.json")["mean"].is_object() || files.json("a.json")["mean"].is_array());
    assert_eq!(shell(&format!("exec {SEMIDP} ledger show --ledger {} 1</dev/null", files.path("l"))).code, 1);
}

/// A reader that went away, in every form of output: exit code 1, and the same command gives the answer.
#[test]
fn a_reader_that_went_away_is_an_error_where_it_was_paid_for() {
    let files = Files::new("paid-pipe", Target::Number);
    let command = with_ledger(&files, &mean(&files));
    for (number, form) in ["", "--json", "--quiet"].into_iter().enumerate() {
        let mut child = Command::new(SEMIDP)
            .args(format!("{command} {form}").split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran: Ran = child.wait_with_output().unwrap().into();
        assert_eq!(ran.code, 1, "{form}: {}", ran.stderr);
        assert!(ran.stderr.contains("was spent"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: give the same command again"), "{}", ran.stderr);
        json(&command);
        assert_eq!(debits(&files), number + 1);
    }
}

/// An answer that is handed out although the rows cannot be compared with those that it is of says so, in every form.
#[test]
fn a_repeated_answer_says_so() {
    let files = Files::new("paid-repeated", Target::Number);
    let command = with_ledger(&files, &mean(&files));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    Command::new(SEMIDP).args(command.split_whitespace()).stdout(full).output().unwrap();
    assert_eq!(debits(&files), 1);
    // Killed after the key was removed.
    let key = entries(&files.folder).into_iter().find(|name| name.ends_with(".run.key")).unwrap();
    std::fs::remove_file(files.folder.join(key)).unwrap();
    files.write("private.csv", &files.text("private.csv").replacen("0.", "0.1", 1));
    let ran = run(&format!("{command} --json"));
    assert_eq!((ran.code, debits(&files)), (0, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains("not read again"), "{}", ran.stderr);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["repeated"], true);
    assert_eq!(json(&command).get("repeated"), None);
    assert_eq!(debits(&files), 2);
}

/// Results never go where semidp or SQLite keep files of the same run.
#[test]
fn side_files_are_no_places_for_results() {
    let files = Files::new("paid-sides", Target::Number);
    let mean = with_ledger(&files, &mean(&files));
    let without_ledger = mean.split(" --ledger").next().unwrap();
    let train = files.paid();
    let at = files.folder.display();
    let local = format!("local randomize --data {at}/private.csv --columns a,b --epsilon 1 --radius 1");
    let mut cases = Vec::new();
    for side in ["checkpoint", "checkpoint.key"] {
        cases.push((format!("{mean} --out {at}/a.json --certificate {at}/a.json.{side}"), "--certificate"));
        cases.push((
            format!("{without_ledger} --out {at}/a.json --certificate {at}/./a.json.{side}"),
            "--certificate",
        ));
        cases.push((format!("{train} --certificate {at}/model.json.{side}"), "--certificate"));
    }
    cases.push((format!("{train} --checkpoint {at}/c --certificate {at}/c.key"), "--certificate"));
    cases.push((format!("{train} --checkpoint none --ledger {at}/l --dataset d --out {at}/l-wal"), "--out"));
    for side in ["journal", "wal", "shm"] {
        cases.push((format!("{mean} --out {at}/l-{side}"), "--out"));
        cases.push((format!("{mean} --certificate {at}/l-{side}"), "--certificate"));
        cases.push((
            format!("{train} --ledger {at}/l --dataset d --certificate {at}/l-{side}"),
            "--certificate",
        ));
        cases.push((
            format!("{train} --ledger {at}/l --dataset d --checkpoint {at}/l-{side}"),
            "--checkpoint",
        ));
    }
    cases.push((format!("{local} --out {at}/private.csv.memory.key"), "--out"));
    symlink(files.folder.join("l"), files.folder.join("link")).unwrap();
    let linked = mean.replace(&format!("--ledger {at}/l"), &format!("--ledger {at}/link"));
    cases.push((format!("{linked} --out {at}/l-journal"), "--out"));
    for (command, option) in cases {
        // The last of two equal options is not allowed: the model's place is the second.
        let command = match command.matches("--out").count() {
            2 => command.replacen(&format!("--out {at}/model.json "), "", 1),
            _ => command,
        };
        refused(&command, &[option, "must be different files"]);
    }
    assert_eq!(debits(&files), 0);
}

/// One command with `--out`, given several times at once: whoever waited for another process pays for no run of its own.
#[test]
fn copies_of_one_command_at_once_pay_for_what_they_deliver() {
    let files = Files::new("paid-copies", Target::Number);
    let ledger = format!("--ledger {} --dataset d", files.path("l"));
    assert_eq!(run(&format!("ledger init {ledger} --rho 2 --delta 1e-6")).code, 0);
    let command = format!("{} {ledger} --out {} --json", mean(&files), files.path("a.json"));
    let start = |_| {
        Command::new(SEMIDP)
            .args(command.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..6).map(start).collect();
    let ran: Vec<Ran> = children.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let done = ran.iter().filter(|ran| ran.code == 0).count();
    assert_eq!(debits(&files), done);
    // Six if each waits for the one before, and then pays.
    assert!((1..6).contains(&done), "{done}");
    for ran in ran.iter().filter(|ran| ran.code != 0) {
        check_refusal(&command, ran, &["another process"]);
    }
}
