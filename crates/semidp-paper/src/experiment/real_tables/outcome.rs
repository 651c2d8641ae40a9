//! Tables, charts and words of the experiment.

use super::setting::{HEADINGS, Setting, Tuned};
use super::*;
use crate::{Cell, Table};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::{Value, json};

pub(super) fn outcome(
    experiment: &RealTables,
    settings: &Settings,
    sizes: &Sizes,
    sources: &[Source],
    trials: &[(DataSet, usize, Trial)],
) -> Outcome {
    let mut found = Vec::new();
    for source in sources {
        for public_rows in PUBLIC_ROWS {
            let own = trials.iter().filter(|(set, rows, _)| *set == source.set && *rows == public_rows);
            let own: Vec<&Trial> = own.map(|(_, _, trial)| trial).collect();
            for (place, epsilon) in sizes.epsilons.iter().enumerate() {
                found.push(Setting::of(source.set, public_rows, place, *epsilon, &own));
            }
        }
    }
    Outcome {
        name: experiment.name(),
        title: experiment.title(),
        setting: setting(settings, sizes, sources, trials),
        findings: findings(sizes, &found, trials),
        tables: vec![table(&found), split_table(sizes, trials)],
        charts: charts(&found),
    }
}

fn setting(
    settings: &Settings,
    sizes: &Sizes,
    sources: &[Source],
    trials: &[(DataSet, usize, Trial)],
) -> Value {
    let sets: Vec<Value> = sources
        .iter()
        .map(|source| {
            json!({
                "name": source.set.name(),
                "what": source.set.about(),
                "metric": source.set.metric(),
                "pool": source.pool.len(),
                "private_and_test": source.private.len(),
            })
        })
        .collect();
    json!({
        "data_sets": sets,
        "public_rows": PUBLIC_ROWS,
        "public_draw": "at random from the pool, in each seed; the rest of the pool is not used",
        "test": "a random fifth of the rows outside the pool, in each seed; the others are private",
        "encoding": "as semidp train: types, categories, imputation and scales from the public rows alone; unseen \
                     categories are `other`, columns of numbers that do not vary in the public rows are left out",
        "loss": "logistic for classes, squared for numbers, with an intercept",
        "epsilon": sizes.epsilons,
        "delta": DELTA,
        "adjacency": "replace-one",
        "certified_epsilon_at_most": certified(trials),
        "throw_away": "public rows alone, ridge by cross-validation",
        "dp_sgd": "all rows private, hyper-parameters as the library learns them from public rows",
        "autopilot": autopilot::NAME,
        "tuned": {
            "leaks": "clip norm, rate and steps of DP-SGD chosen on the test rows: an upper bound, not a private method",
            "clip_norm_times_learned": CLIP_NORMS,
            "rate_times_learned": RATES,
            "steps": STEPS,
            "seeds": sizes.tuned_seeds,
        },
        "seeds": sizes.seeds,
        "seed": settings.seed,
    })
}

/// The largest ε of any certificate.
fn certified(trials: &[(DataSet, usize, Trial)]) -> f64 {
    let runs = trials.iter().flat_map(|(_, _, trial)| &trial.runs);
    runs.map(|run| run.certified).fold(0.0, f64::max)
}

fn table(found: &[Setting]) -> Table {
    Table {
        name: "real-tables".into(),
        title: "Mean metric on test rows, and paired differences".into(),
        headings: HEADINGS.map(String::from).to_vec(),
        rows: found.iter().map(Setting::row).collect(),
    }
}

fn split_table(sizes: &Sizes, trials: &[(DataSet, usize, Trial)]) -> Table {
    let headings = [
        "data_set",
        "public_rows",
        "split",
        "epsilon",
        "throw_away",
        "dp_sgd",
        "autopilot",
        "non_private",
        "certified_epsilon",
    ];
    let mut rows = Vec::new();
    let mut splits = std::collections::BTreeMap::new();
    for (set, public_rows, trial) in trials {
        let split = splits.entry((set.name(), *public_rows)).or_insert(0u64);
        for (epsilon, run) in sizes.epsilons.iter().zip(&trial.runs) {
            let mut cells: Vec<Cell> = vec![set.name().into()];
            let numbers = [
                *public_rows as f64,
                *split as f64,
                *epsilon,
                trial.throw_away,
                run.dp_sgd,
                run.autopilot,
                trial.non_private,
                run.certified,
            ];
            cells.extend(numbers.map(Cell::Number));
            rows.push(cells);
        }
        *split += 1;
    }
    Table {
        name: "real-tables-splits".into(),
        title: "Split by split".into(),
        headings: headings.map(String::from).to_vec(),
        rows,
    }
}

fn charts(found: &[Setting]) -> Vec<(String, Chart)> {
    let same = |a: &Setting, b: &Setting| (a.set, a.public_rows) == (b.set, b.public_rows);
    found.chunk_by(same).map(chart).collect()
}

fn chart(found: &[Setting]) -> (String, Chart) {
    let (set, public_rows) = (found[0].set, found[0].public_rows);
    let line = |of: &dyn Fn(&Setting) -> Option<f64>| -> Vec<(f64, f64)> {
        found.iter().filter_map(|setting| Some((setting.epsilon, of(setting)?))).collect()
    };
    let series = |name: &str, points, style, colour| Series { name: name.into(), points, style, colour };
    let ours = line(&|setting| Some(setting.autopilot.0));
    let theirs = line(&|setting| Some(setting.dp_sgd.0));
    let tuned = line(&|setting| setting.tuned.as_ref().map(|tuned| tuned.mean));
    let mut all = vec![
        series("autopilot", ours.clone(), Style::Line, 0),
        series("", ours, Style::Points, 0),
        series("DP-SGD, untuned", theirs.clone(), Style::Line, 1),
        series("", theirs, Style::Points, 1),
        series("throw-away", line(&|setting| Some(setting.throw_away.0)), Style::Line, 2),
        series("not private", line(&|setting| Some(setting.non_private.0)), Style::Dashes, 6),
    ];
    if !tuned.is_empty() {
        all.push(series("DP-SGD tuned on test rows (leaks)", tuned, Style::Dashes, 1));
    }
    let chart = Chart {
        title: format!("{}: {public_rows} public rows", set.name()),
        x: Axis::logarithmic("epsilon"),
        y: Axis::linear(format!("mean {} on test rows", set.metric())),
        series: all,
        marks: Vec::new(),
    };
    (format!("real-tables-{}-{public_rows}", set.name()), chart)
}

fn findings(sizes: &Sizes, found: &[Setting], trials: &[(DataSet, usize, Trial)]) -> Vec<String> {
    let count = |of: fn(&Setting) -> bool| found.iter().filter(|setting| of(setting)).count();
    let all = found.len();
    let named = |setting: &Setting| {
        format!(
            "{} with {} public rows at epsilon = {}",
            setting.set.name(),
            setting.public_rows,
            setting.epsilon
        )
    };
    let by_errors = |a: &&Setting, b: &&Setting| {
        let errors = |setting: &Setting| setting.to_better.0 / setting.to_better.1.max(f64::MIN_POSITIVE);
        errors(a).total_cmp(&errors(b))
    };
    let told = |setting: &Setting| {
        format!(
            "{:+.4} ± {:.4} {} against {}",
            setting.to_better.0,
            setting.to_better.1,
            setting.set.metric(),
            setting.better
        )
    };
    let mut findings = vec![format!(
        "The autopilot ({}) is at most one paired standard error worse than the better of throw-away and untuned DP-SGD in {} \
         of {all} settings, more than two better in {}, and more than two worse in {}; {} seeds.",
        autopilot::NAME,
        count(Setting::keeps_up),
        count(Setting::is_ahead),
        count(Setting::is_behind),
        sizes.seeds,
    )];
    let (worst, best) = (found.iter().min_by(by_errors), found.iter().max_by(by_errors));
    if let (Some(worst), Some(best)) = (worst, best) {
        findings.push(format!(
            "Its clearest gain: {}, {}. Its clearest loss, or least gain: {}, {}.",
            named(best),
            told(best),
            named(worst),
            told(worst),
        ));
    }
    for set in DATA_SETS {
        let own: Vec<&Setting> = found.iter().filter(|setting| setting.set == set).collect();
        let ends: Vec<String> = own
            .iter()
            .map(|setting| {
                format!(
                    "{} rows, epsilon {}: {:.4} / {:.4} / {:.4}",
                    setting.public_rows,
                    setting.epsilon,
                    setting.throw_away.0,
                    setting.dp_sgd.0,
                    setting.autopilot.0
                )
            })
            .collect();
        let lengths = |place: usize| {
            let own = trials.iter().filter(|(known, _, _)| *known == set);
            let lengths: Vec<f64> = own.map(|(_, _, trial)| trial.lengths[place]).collect();
            lengths.iter().sum::<f64>() / lengths.len() as f64
        };
        if let Some(last) = own.last() {
            findings.push(format!(
                "{}, {} of throw-away / DP-SGD / autopilot ({:.4} without privacy): {}. Encoded by public rows, \
                 those have a median length of {:.1}, private rows one of {:.1}.",
                set.name(),
                set.metric(),
                last.non_private.0,
                ends.join("; "),
                lengths(0),
                lengths(1),
            ));
        }
    }
    let tuned: Vec<&Tuned> = found.iter().filter_map(|setting| setting.tuned.as_ref()).collect();
    findings.push(match tuned.first() {
        Some(first) => format!(
            "DP-SGD with the best of {} settings chosen on the test rows leaks and is no private method; on {} seeds the \
             untuned autopilot is above it by more than two paired standard errors in {} of {} settings, below it by as much \
             in {}.",
            grid().len(),
            first.seeds,
            tuned.iter().filter(|tuned| tuned.to_autopilot.0 > 2.0 * tuned.to_autopilot.1).count(),
            tuned.len(),
            tuned.iter().filter(|tuned| tuned.to_autopilot.0 < -2.0 * tuned.to_autopilot.1).count(),
        ),
        None => "DP-SGD was not tuned on test rows in this run.".into(),
    });
    let excess = trials.iter().flat_map(|(_, _, trial)| sizes.epsilons.iter().zip(&trial.runs));
    let excess = excess.map(|(epsilon, run)| run.certified / epsilon).fold(0.0, f64::max);
    findings.push(format!(
        "The largest epsilon of a certificate is {excess:.6} of that of its budget, delta = {DELTA}, replace-one. The paper has \
         no such experiment; splits and settings are ours."
    ));
    findings
}
