//! What the published noise of the paper's linear regression costs, and how much its own definition
//! of neighbours needs.

use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use semidp_paper::{NoiseCost, noise_costs};
use serde_json::{Value, json};

const ROWS: u64 = 30_000;
const BATCH: u64 = 500;
const STEPS: u64 = 5_000;
const DELTA: f64 = 1e-5;
const EPSILON: f64 = 2.0;

/// All settings, in as many threads as there are processors.
pub fn answer_all() -> Result<Vec<NoiseCost>, semidp_paper::Error> {
    noise_costs(EPSILON, std::thread::available_parallelism().map_or(1, usize::from))
}

pub fn as_json(rows: &[NoiseCost]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "public_share": row.share,
                "private_rows": row.private_rows,
                "sample_rate": row.sample_rate,
                "paper_noise_multiplier": row.printed,
                "paper_epsilon": { "add-remove": row.cost_add_remove, "replace-one": row.cost_replace_one },
                "noise_multiplier": { "add-remove": row.needed_add_remove, "replace-one": row.needed_replace_one },
            })
        })
        .collect();
    json!({
        "question": "what does the paper's noise for linear regression cost, and what would its own \
                     definition of neighbours need?",
        "rows_in_total": ROWS,
        "batch": BATCH,
        "steps": STEPS,
        "sampling": "poisson",
        "epsilon": EPSILON,
        "delta": DELTA,
        "protects": "private rows only",
        "arithmetic": "idealised",
        "rows": rows,
    })
}

pub fn as_text(rows: &[NoiseCost]) -> String {
    let question = format!(
        "A published study trains linear regression on {} rows, some of them public, with {} noisy steps \
         on batches of about {BATCH} private rows. It adds noise for epsilon {EPSILON} at delta {}. What \
         does that noise really cost the people in the private rows?",
        count(ROWS),
        count(STEPS),
        exact(DELTA)
    );
    let headings = [
        "public\nshare",
        "private\nrows",
        "sample\nrate",
        "paper's\nnoise",
        "its epsilon\n(add-remove)",
        "its epsilon\n(replace-one)",
        "noise needed\n(add-remove)",
        "noise needed\n(replace-one)",
    ];
    let cells = rows
        .iter()
        .map(|row| {
            vec![
                format!("{:.2}", row.share),
                count(row.private_rows as u64),
                nearest(row.sample_rate, 4),
                format!("{:.3}", row.printed),
                bound(row.cost_add_remove),
                bound(row.cost_replace_one),
                bound(row.needed_add_remove),
                bound(row.needed_replace_one),
            ]
        })
        .collect();
    format!("{}\n\n{}\n\n{}", table::wrap(&question, ""), table::columns(&headings, cells), reading(rows))
}

/// What the table says, in words; every figure comes from it.
fn reading(rows: &[NoiseCost]) -> String {
    let range = |figure: fn(&NoiseCost) -> f64| {
        let figures = rows.iter().map(figure);
        let (least, most) = (figures.clone().fold(f64::INFINITY, f64::min), figures.fold(0.0, f64::max));
        (least, most)
    };
    let (add_least, add_most) = range(|row| row.cost_add_remove);
    let (replace_least, replace_most) = range(|row| row.cost_replace_one);
    let (ratio_least, ratio_most) = range(|row| row.needed_replace_one / row.printed);
    let above: Vec<String> = rows
        .iter()
        .filter(|row| row.cost_add_remove > EPSILON)
        .map(|row| format!("{:.2}", row.share))
        .collect();
    let mut points = vec![
        format!(
            "If neighbours differ by one row added or removed (add-remove), the paper's noise costs \
             epsilon {} to {}: about what it says.",
            bound(add_least),
            bound(add_most)
        ),
        format!(
            "But the paper defines neighbours by one row replaced (replace-one). Then the same noise costs \
             epsilon {} to {}, and epsilon {EPSILON} needs {} to {} times the noise.",
            bound(replace_least),
            bound(replace_most),
            nearest(ratio_least, 3),
            nearest(ratio_most, 3)
        ),
    ];
    if !above.is_empty() {
        points.push(format!(
            "At public share {} even add-remove is slightly above {EPSILON}: the paper's loader rounds the \
             sample rate down there, to one over a whole number of batches.",
            above.join(" and ")
        ));
    }
    points.push(
        "An epsilon means nothing without its adjacency: semidp prints both, and replace-one is the default."
            .into(),
    );
    points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect::<Vec<_>>().join("\n")
}
