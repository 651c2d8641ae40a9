//! `semidp reproduce`: the experiments of the paper, with ours beside the paper's.

use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, table};
use clap::Args;
use semidp::files;
use semidp_paper::{EXPERIMENTS, Experiment, Outcome, Pieces, Settings, report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const EXAMPLE: &str = "\
EXAMPLE
  semidp reproduce mean-estimation --quick --out reproduced";

/// Run experiments of the paper; write tables, charts and one page.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Reproduce {
    /// The experiment, or `all`; --list names them
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Name the experiments and stop
    #[arg(long)]
    list: bool,

    /// Fewer trials
    #[arg(long)]
    quick: bool,

    /// The folder for JSON, CSV, SVG and report.html
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    out: PathBuf,

    /// The seed of data and noise: experiments run on synthetic or published data, which has no privacy to lose
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// The folder of data files, for experiments that need some [default: data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Start anew: forget the pieces that an earlier run into this folder finished
    #[arg(long)]
    fresh: bool,
}

impl Reproduce {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        if self.list || self.name.is_none() {
            return list(output);
        }
        let chosen = self.chosen()?;
        files::make_folder("out", &self.out)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pieces = PieceFile::open(self.out.join("pieces.jsonl"), self.fresh)?;
        let settings = Settings {
            quick: self.quick,
            seed: self.seed,
            threads,
            data: self.data.clone(),
            pieces: Box::new(pieces),
        };
        let (mut outcomes, mut answers, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        for experiment in &chosen {
            let (bar, began) = (progress::bar(output, experiment.name(), 1), Instant::now());
            let outcome = experiment.run(&settings, &|done, total| {
                bar.set_length(total);
                bar.set_position(done);
            });
            bar.finish_and_clear();
            let Some(outcome) = unless_skipped(*experiment, outcome, self.is_all(), &mut skipped)? else {
                continue;
            };
            let files = self.write(&outcome)?;
            let mut answer = outcome.json();
            answer["files"] = json!(files);
            // Of this run alone, and in no file, so that files of two runs can be compared.
            answer["seconds"] = json!(began.elapsed().as_secs_f64());
            answers.push(answer);
            outcomes.push((outcome, began.elapsed()));
        }
        let page = self.out.join("report.html");
        let (outcomes, times): (Vec<Outcome>, Vec<Duration>) = outcomes.into_iter().unzip();
        files::write("out", &page, &report(&outcomes, env!("CARGO_PKG_VERSION"))?)?;
        let report = page.to_string_lossy();
        let told: Vec<Value> =
            skipped.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect();
        let answer = json!({ "experiments": answers, "skipped": told, "report": report });
        output.answer(&answer, || text(&outcomes, &times, &skipped, &page))
    }

    fn is_all(&self) -> bool {
        self.name.as_deref() == Some("all")
    }

    fn chosen(&self) -> Result<Vec<&'static dyn Experiment>, Failure> {
        let name = self.name.as_deref().unwrap_or("all");
        if self.is_all() {
            return Ok(EXPERIMENTS.to_vec());
        }
        let found = EXPERIMENTS.iter().copied().find(|experiment| experiment.name() == name);
        found.map(|experiment| vec![experiment]).ok_or_else(|| {
            let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name()).collect();
            Failure::input(
                format!("the experiment must be one of {} or all, got `{name}`", names.join(", ")),
                "`semidp reproduce --list` says what each shows",
            )
        })
    }

    fn write(&self, outcome: &Outcome) -> Result<Vec<String>, Failure> {
        let pretty = serde_json::to_string_pretty(&outcome.json())
            .map_err(|error| Failure::other(format!("cannot write the result as JSON: {error}")))?;
        let mut files = vec![(self.out.join(format!("{}.json", outcome.name)), pretty)];
        for table in &outcome.tables {
            files.push((self.out.join(format!("{}.csv", table.name)), table.csv()));
        }
        for (name, chart) in &outcome.charts {
            files.push((self.out.join(format!("{name}.svg")), chart.svg()?.trim_end().into()));
        }
        for (path, text) in &files {
            files::write("out", path, text)?;
        }
        Ok(files.into_iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect())
    }
}

/// The name of an experiment, and why it was not run.
type Skipped = (&'static str, String);

/// What an experiment found. One of all may be left out for want of its data; one that was asked for may not.
fn unless_skipped(
    experiment: &dyn Experiment,
    outcome: semidp_paper::Result<Outcome>,
    is_all: bool,
    skipped: &mut Vec<Skipped>,
) -> Result<Option<Outcome>, Failure> {
    match outcome {
        Err(semidp_paper::Error::Data(reason)) if is_all => {
            skipped.push((experiment.name(), reason));
            Ok(None)
        }
        outcome => Ok(Some(outcome?)),
    }
}

/// One file with a line of JSON for each finished piece, appended as soon as it is finished.
struct PieceFile {
    path: PathBuf,
    finished: Mutex<BTreeMap<String, Value>>,
}

impl PieceFile {
    fn open(path: PathBuf, fresh: bool) -> Result<Self, Failure> {
        let failed = |error: &dyn Display| {
            Failure::other(format!("{} cannot be read, --fresh starts anew: {error}", path.display()))
        };
        if fresh && path.exists() {
            std::fs::remove_file(&path).map_err(|error| failed(&error))?;
        }
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(|error| failed(&error))?;
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        // A killed run may have left the beginning of a line.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(|error| failed(&error))?;
        }
        let mut finished = BTreeMap::new();
        for line in text[..whole].lines() {
            let mut line: Value = serde_json::from_str(line).map_err(|error| failed(&error))?;
            let name = line["name"].as_str().ok_or_else(|| failed(&"a line has no name"))?.to_string();
            finished.insert(name, line["piece"].take());
        }
        Ok(Self { path, finished: Mutex::new(finished) })
    }

    fn finished(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pieces for PieceFile {
    fn find(&self, name: &str) -> semidp_paper::Result<Option<Value>> {
        Ok(self.finished().get(name).cloned())
    }

    fn keep(&self, name: &str, piece: &Value) -> semidp_paper::Result<()> {
        let mut finished = self.finished();
        let line = json!({ "name": name, "piece": piece });
        let append = || -> std::io::Result<()> {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        };
        append().map_err(|error| {
            semidp_paper::Error::Piece(format!("cannot write {}: {error}", self.path.display()))
        })?;
        finished.insert(name.into(), piece.clone());
        Ok(())
    }
}

fn list(output: &Output) -> Result<(), Failure> {
    let entries: Vec<Value> = EXPERIMENTS
        .iter()
        .map(|experiment| json!({ "name": experiment.name(), "title": experiment.title() }))
        .collect();
    output.answer(&json!({ "experiments": entries }), || {
        let rows = EXPERIMENTS.iter().map(|experiment| (experiment.name().into(), experiment.title().into()));
        table::facts(rows.collect())
    })
}

fn text(outcomes: &[Outcome], times: &[Duration], skipped: &[Skipped], page: &Path) -> String {
    let mut parts = Vec::new();
    for (outcome, time) in outcomes.iter().zip(times) {
        let findings = outcome.findings.iter().map(|finding| table::wrap(&format!("- {finding}"), "  "));
        let (title, time) = (outcome.title, in_words(*time));
        parts.push(format!("{title} ({time})\n{}", findings.collect::<Vec<_>>().join("\n")));
    }
    let lines = skipped.iter().map(|(name, reason)| {
        table::wrap(&format!("{name} was skipped: {reason}; --data DIR names the folder of its files"), "  ")
    });
    parts.extend(lines);
    parts.push(format!("Tables, charts and everything else: {}", page.display()));
    parts.join("\n\n")
}

/// Whole minutes once there are some.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_without_data_are_skipped_unless_asked_for() {
        let missing = || Err(semidp_paper::Error::Data("a.csv is missing".into()));
        let mut skipped = Vec::new();
        let experiment = EXPERIMENTS[0];
        assert!(unless_skipped(experiment, missing(), true, &mut skipped).unwrap().is_none());
        assert_eq!(skipped, [(experiment.name(), "a.csv is missing".to_string())]);
        let told = text(&[], &[], &skipped, Path::new("report.html"));
        assert!(told.contains("was skipped: a.csv is missing"), "{told}");
        let refused = unless_skipped(experiment, missing(), false, &mut skipped).unwrap_err();
        assert!(refused.message().contains("a.csv"));
        let times = [0, 119, 120, 7199, 9000].map(|seconds| in_words(Duration::from_secs(seconds)));
        assert_eq!(times, ["0 s", "119 s", "2 min", "119 min", "2 h 30 min"]);
        // Anything else ends all of them.
        let broken = || Err(semidp_paper::Error::Piece("broken".into()));
        assert!(unless_skipped(experiment, broken(), true, &mut skipped).is_err());
    }
}
