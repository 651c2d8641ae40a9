//! The tables of the race.

use super::super::shorten;
use super::{DIMENSION, EPSILON, ROUNDS, Race, Results, VECTORS, What};
use crate::table;

/// What we ask of ourselves on two cores, in vectors a second.
const BAR: f64 = 60_000.0;
const GOAL: f64 = 150_000.0;

/// Everything, as text.
pub fn format(results: &Results) -> String {
    let mut text = format!(
        "\nPrivUnit reports, d = {DIMENSION}, epsilon {EPSILON}, in vectors a second; {ROUNDS} rounds of {VECTORS} vectors, in turns; \
         `at best` is each side's best round.\nNormal numbers alone are the limit: rand_distr and ChaCha20 on our side, NumPy's own \
         on its. NumPy has the same p, gamma and m; its\ngenerator is not meant for secrets, it is told that vectors have length 1, \
         and it takes out the direction once where we do it twice\n\n"
    );
    let mut rows = vec![row(["work", "threads", "NumPy", "ours", "ratio", "at best", "at best", "ratio"])];
    rows.extend(results.races.iter().map(race_row));
    text += &table::format(&rows);
    text += "\nour reports beside normal numbers alone\n";
    let mut rows = vec![row(["threads", "share of the limit", "at best"])];
    let of = |what: What| results.races.iter().filter(move |race| race.what == what);
    for (reports, normals) in of(What::Reports).zip(of(What::Normals)) {
        let share = |ours: f64, limit: f64| format!("{:.0}%", 100.0 * ours / limit);
        rows.push(vec![
            reports.threads.to_string(),
            share(reports.ours.median, normals.ours.median),
            share(reports.ours.most, normals.ours.most),
        ]);
    }
    text += &table::format(&rows);
    if let Some(race) = of(What::Reports).next_back() {
        text += &format!(
            "\non {} threads: {} vectors a second (bar: {}, goal: {})\n",
            race.threads,
            thousands(race.ours.median),
            thousands(BAR),
            thousands(GOAL)
        );
    }
    text + &format!(
        "mean of reports along their vector, 1 but for chance: ours {:.3}, NumPy {:.3}\n",
        results.our_mean, results.their_mean
    )
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

fn race_row(race: &Race) -> Vec<String> {
    let name = match race.what {
        What::Reports => "reports",
        What::Normals => "normal numbers alone",
    };
    let mut cells = row([name, &race.threads.to_string()]);
    match &race.theirs {
        Ok(theirs) => {
            for (theirs, ours) in [(theirs.median, race.ours.median), (theirs.most, race.ours.most)] {
                cells.extend([thousands(theirs), thousands(ours), format!("{:.1}x", ours / theirs)]);
            }
        }
        Err(error) => {
            cells.extend([shorten(&format!("failed: {error}")), thousands(race.ours.median)]);
        }
    }
    cells
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Speed;
    use super::*;

    #[test]
    fn speeds_ratios_and_failures_have_their_lines() {
        let speed = |median| Speed { median, most: 2.0 * median };
        let race = |what, ours, theirs| Race { what, threads: 2, ours: speed(ours), theirs };
        let results = Results {
            races: vec![
                race(What::Reports, 120_000.0, Ok(speed(40_000.0))),
                race(What::Normals, 240_000.0, Err("ImportError: no".into())),
            ],
            our_mean: 1.001,
            their_mean: f64::NAN,
        };
        let text = format(&results);
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(line("reports ").contains("120,000") && line("reports ").ends_with("3.0x"));
        assert!(line("normal numbers").contains("failed: ImportError: no"));
        assert!(text.contains("50%") && line("on 2 threads").contains("(bar: 60,000, goal: 150,000)"));
        assert_eq!(thousands(999.0) + &thousands(1_234_567.0), "9991,234,567");
    }
}
