//! `semidp local randomize`: what a client remembers, and what it never tells.

mod common;

use common::people::{aggregate as people_aggregate, people, read, verified, with_people, write};
use common::{check_refusal, entries, json, number, refused, run};
use serde_json::{Value, json};

#[test]
fn a_round_is_remembered_and_a_second_question_is_never_silent() {
    let (folder, base) = with_people("local_rounds", 20);
    let first = json(&format!("{base} --radius 1 --epsilon 1 --round spring"));
    let reports = read(&folder, "reports.jsonl");
    let there = ["people.csv", "people.csv.memory", "people.csv.memory.key", "reports.jsonl"];
    assert_eq!(entries(&folder), there);
    // The same question: the same reports, bit for bit, at no cost, even if the file they went to is gone.
    std::fs::remove_file(folder.join("reports.jsonl")).unwrap();
    let again = json(&format!("{base} --radius 1 --epsilon 1 --round spring"));
    assert_eq!(read(&folder, "reports.jsonl"), reports);
    assert_eq!((&again["remembered"], &again["charged_epsilon"]), (&json!(true), &json!(0.0)));
    assert_eq!(again["certificate"], first["certificate"]);
    // Another question in the same round.
    let memory = read(&folder, "people.csv.memory");
    for (other, word) in [
        ("--radius 1 --epsilon 2", "epsilon"),
        ("--epsilon 1 --radius 2", "radius"),
        ("--radius 1 --epsilon 1 --mechanism duchi", "mechanism"),
        ("--radius 1 --epsilon 1 --columns x,y", "dimension"),
    ] {
        let ran = run(&format!("{base} --round spring {other}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("with another {word}")) && ran.stderr.contains("hint: "));
    }
    let turned = run(&format!("{base} --radius 1 --round spring --epsilon 1 --columns z,y,x"));
    assert!(turned.code == 3 && turned.stderr.contains("with other columns"), "{}", turned.stderr);
    let more = people(21);
    write(&folder, "people.csv", more);
    let ran = run(&format!("{base} --radius 1 --round spring --epsilon 1"));
    assert!(ran.code == 3 && ran.stderr.contains("another number of rows"), "{}", ran.stderr);
    write(&folder, "people.csv", people(20));
    assert_eq!(
        (read(&folder, "reports.jsonl"), read(&folder, "people.csv.memory")),
        (reports.clone(), memory)
    );
    // Asked for, it is charged: in the round, and over all rounds.
    let twice = json(&format!(
        "{base} --radius 1 --round spring --epsilon 2 --again --mechanism privunit --idealised"
    ));
    assert_eq!((number(&twice, "/total_epsilon"), number(&twice, "/charged_epsilon")), (3.0, 2.0));
    assert_ne!(read(&folder, "reports.jsonl"), reports);
    let autumn = json(&format!("{base} --radius 1 --round autumn --epsilon 0.5 --mechanism duchi"));
    assert_eq!(number(&autumn, "/total_epsilon"), 3.5);
    assert_eq!(number(&autumn, "/certificate/guarantee/epsilon"), 3.5);
    // Exact only if everything was.
    assert_eq!(autumn["certificate"]["arithmetic"], "idealised");
    assert_eq!(autumn["memory"]["rounds"][1], json!({ "round": "spring", "asked": 2, "epsilon": 3.0 }));
    verified(&folder, &autumn);
    // What was asked last in a round is what the round remembers.
    let last =
        json(&format!("{base} --radius 1 --round spring --epsilon 2 --mechanism privunit --idealised"));
    assert_eq!((&last["remembered"], number(&last, "/total_epsilon")), (&json!(true), 3.5));
}

/// A link to the data is the same people under another name, and they are remembered under both.
#[test]
#[cfg(unix)]
fn a_link_to_the_data_has_its_memory() {
    let (folder, base) = with_people("local_link", 5);
    json(&format!("{base} --radius 1 --epsilon 1"));
    let reports = read(&folder, "reports.jsonl");
    let link = folder.join("link.csv");
    std::os::unix::fs::symlink(folder.join("people.csv"), &link).unwrap();
    let (data, linked) = (folder.join("people.csv").display().to_string(), link.display().to_string());
    let again = json(&format!("{} --radius 1 --epsilon 1", base.replace(&data, &linked)));
    assert_eq!((&again["remembered"], read(&folder, "reports.jsonl")), (&json!(true), reports));
    assert!(!folder.join("link.csv.memory").exists());
}

/// Another name of one file has no memory beside it, and the one of the first name is not found from there.
#[test]
#[cfg(unix)]
fn a_hard_link_to_the_data_needs_its_memory_named() {
    let (folder, base) = with_people("local_hard_link", 5);
    json(&format!("{base} --radius 1 --epsilon 1"));
    let reports = read(&folder, "reports.jsonl");
    let (data, link) = (folder.join("people.csv"), folder.join("link.csv"));
    std::fs::hard_link(&data, &link).unwrap();
    let (data, linked) = (data.display().to_string(), link.display().to_string());
    let other = format!("{} --radius 1 --epsilon 1", base.replace(&data, &linked));
    refused(&other, &["--data", "2 hard links"]);
    assert!(!folder.join("link.csv.memory").exists());
    // Through a symbolic link, too.
    let symbolic = folder.join("symbolic.csv");
    std::os::unix::fs::symlink(&link, &symbolic).unwrap();
    refused(&other.replace(&linked, &symbolic.display().to_string()), &["--data", "2 hard links"]);
    // The first name has its memory, and the other one is told of it.
    for again in [format!("{base} --radius 1 --epsilon 1"), format!("{other} --memory {data}.memory")] {
        let again = json(&again);
        assert_eq!((&again["remembered"], &read(&folder, "reports.jsonl")), (&json!(true), &reports));
    }
}

#[test]
fn a_second_memory_beside_the_one_of_the_data_is_refused() {
    let (folder, base) = with_people("local_two_memories", 5);
    let base = format!("{base} --radius 1 --epsilon 1");
    json(&base);
    let at = folder.display();
    let (reports, before) = (read(&folder, "reports.jsonl"), entries(&folder));
    // Also where only one of the two files is left.
    for left in [
        &["people.csv.memory", "people.csv.memory.key"][..],
        &["people.csv.memory.key"],
        &["people.csv.memory"],
    ] {
        let kept: Vec<_> =
            before.iter().map(|name| (name, std::fs::read(folder.join(name)).unwrap())).collect();
        for name in ["people.csv.memory", "people.csv.memory.key"].iter().filter(|name| !left.contains(name))
        {
            std::fs::remove_file(folder.join(name)).unwrap();
        }
        for more in ["", " --again", " --round 2"] {
            refused(&format!("{base} --memory {at}/other.memory{more}"), &["--memory", "people.csv.memory"]);
        }
        kept.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
    }
    assert_eq!((read(&folder, "reports.jsonl"), entries(&folder)), (reports.clone(), before));
    // Under another spelling it is the same.
    let again = json(&format!("{base} --memory {at}/./people.csv.memory"));
    assert_eq!((&again["remembered"], &read(&folder, "reports.jsonl")), (&json!(true), &reports));
    // It can be moved.
    for ending in ["", ".key"] {
        std::fs::rename(
            folder.join(format!("people.csv.memory{ending}")),
            folder.join(format!("other.memory{ending}")),
        )
        .unwrap();
    }
    assert_eq!(json(&format!("{base} --memory {at}/other.memory"))["remembered"], json!(true));
}

/// A link with a memory of its own, made by an older version, beside data with another one.
#[test]
#[cfg(unix)]
fn two_memories_of_a_link_and_its_file_are_refused() {
    let (folder, base) = with_people("local_link_memories", 5);
    let base = format!("{base} --radius 1 --epsilon 1");
    json(&base);
    let link = folder.join("link.csv");
    std::os::unix::fs::symlink(folder.join("people.csv"), &link).unwrap();
    for ending in ["memory", "memory.key"] {
        let memory = folder.join(format!("people.csv.{ending}"));
        std::fs::copy(memory, folder.join(format!("link.csv.{ending}"))).unwrap();
    }
    let linked = base.replace(&folder.join("people.csv").display().to_string(), &link.display().to_string());
    refused(&linked, &["--memory", "people.csv.memory", "link.csv.memory"]);
}

#[test]
fn runs_at_the_same_time_report_once() {
    let (folder, _) = with_people("local_together", 300);
    let run_one = |name: usize| {
        std::process::Command::new(common::SEMIDP)
            .args(["local", "randomize", "--radius", "1", "--epsilon", "2", "--data"])
            .arg(folder.join("people.csv"))
            .arg("--out")
            .arg(folder.join(format!("{name}.jsonl")))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let running: Vec<_> = (0..4).map(run_one).collect();
    running.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let first = read(&folder, "0.jsonl");
    (1..4).for_each(|name| assert_eq!(read(&folder, &format!("{name}.jsonl")), first));
}

#[test]
fn what_a_crash_left_in_the_memory_was_never_released() {
    let (folder, base) = with_people("local_crash", 5);
    json(&format!("{base} --radius 1 --epsilon 1 --round a"));
    let whole = read(&folder, "people.csv.memory");
    let entry = whole.lines().nth(1).unwrap().replace("\"round\":\"a\"", "\"round\":\"b\"");
    let report = whole.lines().nth(2).unwrap();
    let begun = [format!("{whole}{entry}\n{report}\n{}", &report[..30]), format!("{whole}{}", &entry[..9])];
    let key = read(&folder, "people.csv.memory.key");
    for cut in &begun {
        write(&folder, "people.csv.memory", cut);
        write(&folder, "people.csv.memory.key", &key);
        let ran = run(&format!("{base} --radius 1 --epsilon 1 --round a"));
        assert!(ran.code == 0 && ran.stderr.contains("ended before it released"), "{}", ran.stderr);
        let next = json(&format!("{base} --radius 1 --epsilon 2 --round b"));
        assert_eq!((&next["remembered"], number(&next, "/total_epsilon")), (&json!(false), 3.0));
        assert!(read(&folder, "people.csv.memory").starts_with(&whole));
    }
    write(&folder, "people.csv.memory.key", &key);
    // Files that are no memory, or damaged, are left alone, and nothing is reported.
    std::fs::remove_file(folder.join("reports.jsonl")).unwrap();
    for bad in [
        "something else\n".to_string(),
        whole.replace("\"reports\":5", "\"reports\":4"),
        whole.replace("entry", "entri"),
    ] {
        write(&folder, "people.csv.memory", &bad);
        refused(&format!("{base} --radius 1 --epsilon 1 --round a"), &["--memory", "people.csv.memory"]);
        assert_eq!(read(&folder, "people.csv.memory"), bad);
    }
    assert!(!folder.join("reports.jsonl").exists());
}

/// A memory that was edited, shortened or exchanged gives the same reports, or none. Without its seals 161 of 220 such memories gave
/// other reports, and a shorter one always did.
#[test]
fn a_changed_memory_draws_no_other_reports() {
    let (folder, base) = with_people("local_mutated", 4);
    let base = format!("{base} --radius 1 --mechanism duchi");
    json(&format!("{base} --epsilon 2 --round a"));
    let older = (read(&folder, "people.csv.memory"), read(&folder, "people.csv.memory.key"));
    json(&format!("{base} --epsilon 2 --round b"));
    let (memory, key) = (read(&folder, "people.csv.memory"), read(&folder, "people.csv.memory.key"));
    let reports = read(&folder, "reports.jsonl");
    let mut changed: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let (m, k) = (memory.as_bytes(), key.as_bytes());
    let of_memory = |changed: &mut Vec<_>, bytes: Vec<u8>| changed.push((bytes, k.to_vec()));
    // One byte less, a line less, and every thirtieth length; bits of bytes all over.
    of_memory(&mut changed, m[..m.len() - 1].to_vec());
    m.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .for_each(|(at, _)| of_memory(&mut changed, m[..=at].to_vec()));
    (0..m.len()).step_by(m.len() / 60).for_each(|length| of_memory(&mut changed, m[..length].to_vec()));
    (0..m.len()).step_by(m.len() / 90).for_each(|at| {
        let mut bytes = m.to_vec();
        bytes[at] ^= 1 << (at % 7);
        of_memory(&mut changed, bytes);
    });
    for (from, to) in [
        ("\"epsilon\":2.0", "\"epsilon\":0.5"),
        ("\"round\":\"b\"", "\"round\":\"c\""),
        ("\"reports\":4", "\"reports\":3"),
        ("memory/2", "memory/1"),
        ("\n", "\n\n"),
        ("duchi", "privunit"),
    ] {
        assert!(memory.contains(from), "{from}");
        of_memory(&mut changed, memory.replace(from, to).into_bytes());
        let at = memory.rfind(from).unwrap();
        of_memory(&mut changed, [&memory[..at], to, &memory[at + from.len()..]].concat().into_bytes());
    }
    of_memory(&mut changed, older.0.clone().into_bytes());
    of_memory(&mut changed, [memory.as_str(), "{\"entry\":"].concat().into_bytes());
    of_memory(&mut changed, [memory.as_str(), &older.0].concat().into_bytes());
    (0..k.len()).step_by(k.len() / 45).for_each(|at| {
        let mut bytes = k.to_vec();
        bytes[at] ^= 1 << (at % 7);
        changed.push((m.to_vec(), bytes));
        changed.push((m.to_vec(), k[..at].to_vec()));
    });
    changed.push((m.to_vec(), older.1.into_bytes()));
    let number = changed.len();
    assert!(number >= 220, "{number}");
    let (mut refusals, mut same) = (0, 0);
    for (memory, key) in changed {
        write(&folder, "people.csv.memory", &memory);
        write(&folder, "people.csv.memory.key", &key);
        let _ = std::fs::remove_file(folder.join("reports.jsonl"));
        let ran = run(&format!("{base} --epsilon 2 --round b"));
        match ran.code {
            0 => assert_eq!(read(&folder, "reports.jsonl"), reports, "{}", String::from_utf8_lossy(&memory)),
            code => {
                assert_eq!(code, 2, "{}", ran.stderr);
                assert!(
                    ran.stderr.contains("--memory") && !folder.join("reports.jsonl").exists(),
                    "{}",
                    ran.stderr
                );
            }
        }
        if ran.code == 0 { same += 1 } else { refusals += 1 }
    }
    println!("{number} changed memories: {refusals} refused, {same} gave the same reports");
    assert!(refusals >= 200);
}

/// The smallest and largest parameters that are accepted give reports that the aggregate accepts.
#[test]
fn reports_at_the_ends_of_the_ranges_are_added_up() {
    for (name, more) in [
        ("large", "--radius 1e12 --epsilon 1e-6"),
        ("small", "--radius 1e-12 --epsilon 50"),
        ("unlikely", "--radius 1e-12 --epsilon 1e-6"),
    ] {
        for mechanism in ["duchi", "rank-privunit"] {
            let (folder, base) = with_people(&format!("local_ends_{name}_{mechanism}"), 4);
            json(&format!("{base} {more} --mechanism {mechanism}"));
            let answer = json(&people_aggregate(&folder));
            assert_eq!(answer["reports"], 4);
        }
    }
}

#[test]
fn a_memory_and_its_key_belong_together() {
    let (folder, base) = with_people("local_pair", 4);
    let command = format!("{base} --epsilon 2 --radius 1 --mechanism duchi --round a");
    json(&command);
    let (memory, key) = (folder.join("people.csv.memory"), folder.join("people.csv.memory.key"));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let (kept_memory, kept_key) = (std::fs::read(&memory).unwrap(), std::fs::read(&key).unwrap());
    std::fs::remove_file(&key).unwrap();
    refused(&command, &["people.csv.memory", "people.csv.memory.key", "is missing"]);
    std::fs::write(&key, &kept_key).unwrap();
    std::fs::remove_file(&memory).unwrap();
    refused(&command, &["people.csv.memory", "people.csv.memory.key", "is missing"]);
    assert!(!memory.exists());
    std::fs::write(&memory, "").unwrap();
    refused(&command, &["people.csv.memory", "people.csv.memory.key", "is empty"]);
    // Of an older version: sealed only on the word of the user, and only if it is whole.
    let reports = read(&folder, "reports.jsonl");
    let text = String::from_utf8(kept_memory).unwrap().replace("memory/2", "memory/1");
    let unsealed: String = text
        .lines()
        .map(|line| match line.split_once(",\"seal\"") {
            Some((before, _)) => format!("{before}}}}}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    std::fs::remove_file(&key).unwrap();
    std::fs::write(&memory, &unsealed[..unsealed.len() - 1]).unwrap();
    refused(&format!("{command} --adopt-memory"), &["not whole"]);
    std::fs::write(&memory, &unsealed).unwrap();
    let ran = run(&command);
    check_refusal(&command, &ran, &["older version", "without seals"]);
    assert!(ran.stderr.contains("--adopt-memory"));
    std::fs::remove_file(folder.join("reports.jsonl")).unwrap();
    for command in [format!("{command} --adopt-memory"), command] {
        assert_eq!(json(&command)["remembered"], true);
        assert_eq!(read(&folder, "reports.jsonl"), reports);
    }
}

#[test]
fn a_seed_is_for_tests_and_says_so() {
    let (folder, base) = with_people("local_seed", 600);
    let at = folder.display();
    let seeded = |more: &str| {
        let ran = run(&format!("{base} --radius 1 --epsilon 2 --seed 7 --json {more}"));
        assert!(ran.code == 0 && ran.stderr.contains("NOT private"), "{}", ran.stderr);
        (serde_json::from_str::<Value>(&ran.stdout).unwrap(), read(&folder, "reports.jsonl"))
    };
    let (answer, one) = seeded(&format!("--threads 1 --memory {at}/other.memory"));
    assert_eq!(answer["certificate"]["random_source"], "seeded");
    assert_eq!(seeded("--threads 3").1, one);
    // What was not private stays so, and whoever gets it again is told.
    let ran = run(&format!("{base} --radius 1 --epsilon 2"));
    assert!(ran.code == 0 && ran.stderr.contains("warning: the remembered reports"), "{}", ran.stderr);
    let ids: std::collections::HashSet<&str> =
        one.lines().map(|line| &line[line.find("\"id\"").unwrap()..][..40]).collect();
    assert_eq!(ids.len(), 600);
}

#[test]
fn bad_input_names_its_option_and_never_a_private_value() {
    let (folder, base) = with_people("local_bad", 3);
    let at = folder.display();
    for (more, word) in [
        ("", "--epsilon"),
        ("--epsilon 1", "--radius"),
        ("--radius 1 --epsilon 0", "epsilon"),
        ("--radius 1 --epsilon 51", "epsilon"),
        ("--radius 1 --epsilon x", "epsilon"),
        ("--epsilon 1 --radius 0", "radius"),
        // What the aggregate could not add up is refused before anything is drawn.
        ("--epsilon 1 --radius 1e308", "radius"),
        ("--epsilon 1 --radius 1e154", "radius"),
        ("--epsilon 1 --radius 1.1e12", "radius"),
        ("--epsilon 1 --radius 1e-13", "radius"),
        ("--epsilon 1 --radius 1e-160", "radius"),
        ("--radius 1 --epsilon 1e-300 --mechanism duchi", "epsilon"),
        ("--radius 1 --epsilon 1e-7", "epsilon"),
        ("--radius 1 --epsilon 1 --mechanism laplace", "--mechanism"),
        ("--radius 1 --epsilon 1 --columns x,nothing", "nothing"),
        ("--radius 1 --epsilon 1 --threads 0", "threads"),
    ] {
        refused(&format!("{base} {more}"), &[word]);
    }
    refused(
        &format!("local randomize --data {at}/people.csv --radius 1 --epsilon 1 --out {at}/people.csv"),
        &["--out", "--data"],
    );
    refused(&format!("{base} --radius 1 --epsilon 1 --memory {at}/people.csv"), &["--memory", "--data"]);
    refused(
        &format!("local randomize --data {at}/people.csv --radius 1 --epsilon 1 --out {at}/no/reports"),
        &["--out"],
    );
    let many = format!(
        "local randomize --data {at}/people.csv --radius 1 --epsilon 1 --out {at}/o --round {}",
        "r".repeat(201)
    );
    refused(&many, &["round"]);
    for (name, text) in [("far.json", r#"{"mean":[0,0,0],"radius":1e200}"#), ("far.csv", "x,y,z\n1e20,0,0\n")]
    {
        let option = if name.ends_with("json") { "--centre" } else { "--public" };
        refused(&format!("{base} --epsilon 1 {option} {}", write(&folder, name, text)), &["radius"]);
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    // Nothing was remembered of all this, as nothing was asked.
    assert_eq!(entries(&folder), ["people.csv"]);
    // A header that was forgotten is somebody's row.
    for text in ["0.123,0.456\n0.7,0.8\n", "secret,secret\n1,2\n"] {
        let file = write(&folder, "bare.csv", text);
        let ran = run(&format!("local randomize --data {file} --radius 1 --epsilon 1 --out {at}/o"));
        check_refusal("bare", &ran, &["bare.csv"]);
        assert!(!ran.stderr.contains("0.123") && !ran.stderr.contains("secret"), "{}", ran.stderr);
    }
    let empty = write(&folder, "empty.csv", "x,y\n");
    refused(
        &format!("local randomize --data {empty} --radius 1 --epsilon 1 --out {at}/o"),
        &["--data", "at least one row"],
    );
    // Cells that are no numbers fail nothing.
    let odd = write(&folder, "odd.csv", "x,y\nzwölf,\ninf,nan\n1e999,-3\n");
    assert_eq!(
        json(&format!("local randomize --data {odd} --radius 1 --epsilon 1 --out {at}/odd.jsonl"))["reports"],
        3
    );
    assert_eq!(json(&format!("local aggregate --reports {at}/odd.jsonl"))["reports"], 3);
    for command in ["local", "local randomize", "local aggregate"] {
        assert!(run(&format!("{command} --help")).stdout.contains("EXAMPLE\n  semidp local "));
    }
}
