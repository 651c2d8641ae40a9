//! What the published noise of the paper's linear regression costs, and how much its own definition
//! of neighbours needs.

use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Epsilon, Error, Event, NoiseMultiplier, SampleRate, Steps,
    calibrate_noise, epsilon,
};
use serde_json::{Value, json};

const ROWS: u64 = 30_000;
const BATCH: u64 = 500;
const STEPS: u64 = 5_000;
const DELTA: f64 = 1e-5;
const EPSILON: f64 = 2.0;
/// Public share in percent, and the noise multiplier that the paper printed for it.
const PAPER: [(u64, f64); 9] = [
    (1, 2.490),
    (3, 2.529),
    (4, 2.568),
    (10, 2.744),
    (25, 3.252),
    (50, 4.805),
    (75, 9.531),
    (90, 23.672),
    (95, 47.344),
];

/// One setting of the paper, answered.
pub struct Row {
    share: f64,
    private_rows: u64,
    sample_rate: f64,
    paper_noise: f64,
    tight_noise: f64,
    cost_add_remove: f64,
    cost_replace_one: f64,
    needed_noise: f64,
}

/// All rows, in as many threads as there are processors.
pub fn answer_all() -> Result<Vec<Row>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(PAPER.len());
    let every = |first: usize| PAPER.iter().enumerate().skip(first).step_by(threads);
    let mut rows = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    every(first)
                        .map(|(index, &paper)| Ok((index, answer(paper)?)))
                        .collect::<Result<Vec<_>, Error>>()
                })
            })
            .collect();
        let mut rows = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(answered) => rows.extend(answered?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(rows)
    })?;
    rows.sort_by_key(|(index, _)| *index);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn answer((percent, paper_noise): (u64, f64)) -> Result<Row, Error> {
    let private_rows = ROWS - ROWS * percent / 100;
    let sample_rate = SampleRate::new(BATCH as f64 / private_rows as f64)?;
    let (target, delta, steps) = (Epsilon::new(EPSILON)?, Delta::new(DELTA)?, Steps::new(STEPS)?);
    let events = |noise_multiplier| {
        vec![CountedEvent::new(Event::PoissonGaussian { noise_multiplier, sample_rate }, steps)]
    };
    let cost = |adjacency| epsilon(&events(NoiseMultiplier::new(paper_noise)?), adjacency, delta);
    let needs = |adjacency| calibrate_noise(target, delta, adjacency, events);
    Ok(Row {
        share: percent as f64 / 100.0,
        private_rows,
        sample_rate: sample_rate.get(),
        paper_noise,
        tight_noise: needs(Adjacency::AddRemove)?.value.get(),
        cost_add_remove: cost(Adjacency::AddRemove)?.value.get(),
        cost_replace_one: cost(Adjacency::ReplaceOne)?.value.get(),
        needed_noise: needs(Adjacency::ReplaceOne)?.value.get(),
    })
}

pub fn as_json(rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "public_share": row.share,
                "private_rows": row.private_rows,
                "sample_rate": row.sample_rate,
                "paper_noise_multiplier": row.paper_noise,
                "paper_epsilon": { "add-remove": row.cost_add_remove, "replace-one": row.cost_replace_one },
                "noise_multiplier": { "add-remove": row.tight_noise, "replace-one": row.needed_noise },
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

pub fn as_text(rows: &[Row]) -> String {
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
                count(row.private_rows),
                nearest(row.sample_rate, 4),
                format!("{:.3}", row.paper_noise),
                bound(row.cost_add_remove),
                bound(row.cost_replace_one),
                bound(row.tight_noise),
                bound(row.needed_noise),
            ]
        })
        .collect();
    format!("{}\n\n{}\n\n{}", table::wrap(&question, ""), table::columns(&headings, cells), reading(rows))
}

/// What the table says, in words; every figure comes from it.
fn reading(rows: &[Row]) -> String {
    let range = |figure: fn(&Row) -> f64| {
        let figures = rows.iter().map(figure);
        let (least, most) = (figures.clone().fold(f64::INFINITY, f64::min), figures.fold(0.0, f64::max));
        (least, most)
    };
    let (add_least, add_most) = range(|row| row.cost_add_remove);
    let (replace_least, replace_most) = range(|row| row.cost_replace_one);
    let (ratio_least, ratio_most) = range(|row| row.needed_noise / row.paper_noise);
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
