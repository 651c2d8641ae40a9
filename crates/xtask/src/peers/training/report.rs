//! The tables of the race.

use super::super::{shorten, time};
use super::{OUR_STEPS, Outcome, PEER_STEPS, ROUNDS, Results, Speed, Work};
use crate::table;

/// What a process may hold beside its data.
const SPARE_BYTES: f64 = 200e6;

/// Everything, as text.
pub fn format(results: &Results) -> String {
    let mut text = format!(
        "\ntraining steps: Poisson sample, clipped gradients, noise, update; medians of {ROUNDS} rounds, in turns, of \
         {PEER_STEPS} steps of\nthe peer and {OUR_STEPS} of ours; `sliced` is a batch cut out before, which spares the \
         peer its sampling and gathering, but not us;\n`at best` is each side's best round\n\n"
    );
    if !results.races.is_empty() {
        text += &table::format(&race_rows(results));
    }
    text += "\nhow fast our steps read their rows, and how fast this machine reads memory\n";
    text += &table::format(&speed_rows(&results.speeds));
    text += "\nhow a step's time grows with the batch\n";
    text += &table::format(&growth_rows(&results.by_batch, "batch", |work| work.batch));
    text += "\nhow a step's time grows with the features\n";
    text += &table::format(&growth_rows(&results.by_features, "features", |work| work.features));
    text += &match &results.peak {
        Some((work, peak)) => format!(
            "\nmemory, {}: data {}, peak {}, beyond the data {} (bar: {})\n",
            work.label(),
            megabytes(work.bytes()),
            megabytes(*peak),
            megabytes(peak - work.bytes()),
            megabytes(SPARE_BYTES)
        ),
        None => "\nmemory: this system does not tell\n".into(),
    };
    text
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

fn race_rows(results: &Results) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        "work",
        "peer",
        "batches",
        "peer's step",
        "our step",
        "ratio",
        "at best",
        "at best",
        "ratio",
    ])];
    for race in &results.races {
        let mut cells = row([&race.work.label(), race.way.peer, race.way.source]);
        match &race.outcome {
            Ok(Outcome { theirs, ours }) => {
                for (theirs, ours) in [(theirs.median, ours.median), (theirs.least, ours.least)] {
                    cells.extend([time(theirs), time(ours), format!("{:.1}x", theirs / ours)]);
                }
            }
            Err(error) => cells.push(shorten(&format!("failed: {error}"))),
        }
        rows.push(cells);
    }
    rows
}

fn speed_rows(speeds: &[Speed]) -> Vec<Vec<String>> {
    let mut rows = vec![row(["work", "our step", "rows read", "machine", "share"])];
    for speed in speeds {
        let own = speed.work.bytes_of_step() / speed.seconds;
        rows.push(vec![
            speed.work.label(),
            time(speed.seconds),
            format!("{:.2} GB/s", own / 1e9),
            format!("{:.2} GB/s", speed.reading / 1e9),
            format!("{:.0}%", 100.0 * own / speed.reading),
        ]);
    }
    rows
}

/// Times beside the first, and beside what they would be if they grew in proportion.
fn growth_rows(times: &[(Work, f64)], what: &str, size: impl Fn(&Work) -> usize) -> Vec<Vec<String>> {
    let mut rows = vec![row([what, "our step", "size", "time", "time / size"])];
    let Some((first, base)) = times.first() else { return rows };
    for (work, seconds) in times {
        let (larger, longer) = (size(work) as f64 / size(first) as f64, seconds / base);
        rows.push(vec![
            size(work).to_string(),
            time(*seconds),
            format!("{larger:.1}x"),
            format!("{longer:.1}x"),
            format!("{:.2}", longer / larger),
        ]);
    }
    rows
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0} MB", bytes / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::{GHOST, HOOKS, LINEAR, LOADER, Race, Rounds, SOFTMAX, Way};
    use super::*;

    #[test]
    fn failures_and_missing_figures_have_their_lines() {
        let rounds = |seconds| Rounds { median: seconds, least: 0.5 * seconds };
        let outcome = Outcome { theirs: rounds(0.01), ours: rounds(0.0005) };
        let way = |peer| Way { peer, source: LOADER };
        let results = Results {
            races: vec![
                Race { work: LINEAR, way: way(HOOKS), outcome: Ok(outcome) },
                Race { work: SOFTMAX, way: way(GHOST), outcome: Err("ValueError: no".into()) },
            ],
            speeds: vec![Speed { work: LINEAR, seconds: 4.002e-4, reading: 2e10 }],
            by_batch: vec![(LINEAR, 1e-3), (Work { batch: 1000, ..LINEAR }, 1.5e-3)],
            by_features: Vec::new(),
            peak: None,
        };
        let text = format(&results);
        let line = |start: &str| text.lines().find(|line| line.contains(start)).unwrap();
        assert!(line("opacus hooks").ends_with("20.0x"));
        assert!(line("opacus ghost").ends_with("failed: ValueError: no"));
        assert!(line("GB/s").contains("10.00 GB/s") && line("GB/s").ends_with("50%"));
        assert!(line("1.50 ms").ends_with("0.75"));
        assert!(line("memory:").ends_with("does not tell"));
    }
}
