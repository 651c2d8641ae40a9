//! `--attack replay`: neighbouring rows with the same random numbers.

use super::options::AuditOptions;
use super::report::MADE_UP;
use crate::failure::Failure;
use crate::number::{count, nearest};
use crate::output::Output;
use crate::table;
use semidp::audit::replay::{Options, Report};
use semidp_accounting::Adjacency;
use serde_json::{Map, Value, json};

/// Violations that are listed.
const SHOWN: usize = 20;
/// What a reader should know.
const WHAT_IT_MEANS: &str = "A replay audit compares sums before noise, and everything else that is shown, on made-up \
                             neighbouring rows. What it finds is a bug; it does not look at the noise.";

/// The library's options. What only other attacks use is refused.
pub fn options(audit: &AuditOptions, trials: Option<u64>) -> Result<Options, Failure> {
    for (option, is_given) in [("--trials", trials.is_some()), ("--plot", audit.has_plot())] {
        if is_given {
            return Err(Failure::input(
                format!("{option} must be left out with --attack replay"),
                "a replay audit needs no trials and has nothing to draw: every comparison is exact",
            ));
        }
    }
    let shared = audit.options(2);
    Ok(Options { seed: shared.seed, threads: shared.threads, ..Options::default() })
}

/// Prints the outcome. A violation is a failure, so that no script goes on.
pub fn finish(
    what: &str,
    adjacency: Adjacency,
    options: &Options,
    report: &Report,
    mut fields: Map<String, Value>,
    output: &Output,
) -> Result<(), Failure> {
    let found: Vec<String> = report.violations.iter().take(SHOWN).map(ToString::to_string).collect();
    let verdict = if found.is_empty() { "consistent" } else { "violated" };
    let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
    put("audited", json!(what));
    put("attack", json!("replay"));
    put("adjacency", json!(adjacency.name()));
    put("protects", json!("private rows only"));
    put("comparisons", json!(report.comparisons));
    put("largest_share_of_sensitivity", json!(report.largest_share));
    put("violations", json!(found));
    put("violation_count", json!(report.violations.len()));
    put("verdict", json!(verdict));
    put("seed", json!(options.seed));
    put("rows", json!("synthetic"));
    put("meaning", json!(WHAT_IT_MEANS));
    output.answer(&fields.into(), || {
        let share = nearest(report.largest_share, 6);
        let mut rows = vec![
            ("audited".to_string(), format!("{what} ({adjacency})")),
            ("sums compared".into(), count(report.comparisons)),
            ("largest change".into(), format!("{share} of the declared sensitivity")),
            ("violations".into(), count(report.violations.len() as u64)),
        ];
        rows.extend(found.iter().map(|text| ("violation".to_string(), text.clone())));
        let words = match verdict {
            "violated" => "the promise is BROKEN",
            _ => "nothing contradicts the promise",
        };
        format!(
            "{}\n\n{}",
            table::facts(rows),
            table::wrap(&format!("In words: {words}. {WHAT_IT_MEANS}"), "")
        )
    })?;
    output.note(MADE_UP);
    match report.violations.first() {
        None => Ok(()),
        Some(first) => Err(Failure::other(format!("the promise is BROKEN: {first}"))),
    }
}
