//! `semidp reproduce`: lists, files, and the page.
#![cfg(feature = "experiments")]

mod common;

use common::{SEMIDP, entries, folder, json, refused, run};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn experiments_are_listed() {
    let names: Vec<String> = json("reproduce --list")["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(
        names,
        [
            "rates",
            "mean-estimation",
            "local-mean",
            "local-sgd",
            "divergence",
            "hessian-regularisation",
            "noise-tables",
            "linreg-share",
            "linreg-epsilon",
            "linreg-cold",
            "real-tables",
            "cifar-softmax"
        ]
    );
    assert!(run("reproduce").stdout.contains("mean-estimation"));
    refused("reproduce means", &["means", "mean-estimation"]);
}

#[test]
fn rates_are_written_down() {
    let out = folder("reproduce_rates");
    let answer = json(&format!("reproduce rates --out {}", out.display()));
    let names = entries(&out);
    for name in
        ["rates.json", "rates-approximate.csv", "rates-approximate.svg", "rates-example.svg", "report.html"]
    {
        assert!(names.contains(&name.to_string()), "{name} in {names:?}");
    }
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(page.contains("harder than test loss"));
    let csv = std::fs::read_to_string(out.join("rates-example.csv")).unwrap();
    assert!(csv.starts_with("n,training_epsilon_1,test_epsilon_1"));
    assert_eq!(answer["experiments"][0]["name"], "rates");
    refused("reproduce rates --out /dev/null/x", &["--out"]);
}

/// Named experiments fail with the name of the file that they miss.
#[test]
fn missing_data_is_told() {
    let out = folder("reproduce_missing");
    let with = |name: &str| format!("reproduce {name} --quick --data /nowhere --out {}", out.display());
    refused(&with("real-tables"), &["/nowhere/adult/adult.data.gz", "archive.ics.uci.edu"]);
    refused(&with("cifar-softmax"), &["/nowhere/cifar-10-batches-bin/data_batch_1.bin", "cs.toronto.edu"]);
}

/// A run that was killed in the middle goes on from its pieces to the very files of one that nobody killed.
#[test]
fn killed_runs_end_in_the_same_files() {
    let (whole, killed) = (folder("reproduce_whole"), folder("reproduce_killed"));
    let command = |out: &PathBuf| format!("reproduce linreg-epsilon --quick --out {}", out.display());
    json(&command(&whole));
    // What an earlier run finished; a good part of the work is left, but not all of it, for the sake of time.
    let lines = |out: &PathBuf| -> Vec<String> {
        let text = std::fs::read_to_string(out.join("pieces.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines: Vec<String> = text[..whole].lines().map(String::from).collect();
        lines.sort();
        lines
    };
    let all = lines(&whole);
    let is_left = |line: &&String| line.contains("share0.25") && line.contains("draw");
    let left = all.iter().filter(is_left).count();
    let earlier: String = all.iter().filter(|line| !is_left(line)).map(|line| format!("{line}\n")).collect();
    // The last line was cut off by a kill.
    std::fs::write(killed.join("pieces.jsonl"), format!("{earlier}{{\"name\":\"linreg")).unwrap();
    assert!(left > 20, "{all:?}");
    let mut child = Command::new(SEMIDP)
        .args(command(&killed).split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let finished = || lines(&killed).iter().filter(is_left).count();
    let deadline = Instant::now() + Duration::from_secs(120);
    while finished() < 4 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    // SIGKILL: nothing can be tidied up.
    child.kill().unwrap();
    child.wait().unwrap();
    let before = finished();
    assert!(before >= 4 && before < left, "{before} of {left} pieces: not killed in the middle");
    assert!(!killed.join("linreg-epsilon.json").exists() && !killed.join("report.html").exists());
    json(&command(&killed));
    assert_eq!(lines(&killed), all);
    for name in entries(&whole).iter().filter(|name| *name != "pieces.jsonl") {
        let [one, other] = [&whole, &killed].map(|out| std::fs::read(out.join(name)).unwrap());
        assert!(one == other, "{name} differs");
    }
}
