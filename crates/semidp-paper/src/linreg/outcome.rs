//! From the paper's tables to an outcome.

use super::cell::{Setting, measure, on_every_draw, pieces};
use super::grid::CLIP_NORM;
use super::prepared::HESSIAN_REGULARISATION;
use super::summary::Summary;
use super::tables::Topic;
use super::{DELTA, Sizes, findings, overall};
use crate::autopilot::NAME;
use crate::experiment::Experiment;
use crate::noise::Run;
use crate::published::{Fixed, LossTable, Start};
use crate::regression::mean_and_error;
use crate::{Cell, Outcome, Result, Settings, Table};
use semidp_core::Adjacency;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings in which the autopilot runs under replace-one as well.
pub struct ReplaceOne {
    pub epsilon: f64,
    pub shares: &'static [f64],
}

/// Measures every cell of some of the paper's tables.
pub fn reproduce(
    experiment: &dyn Experiment,
    settings: &Settings,
    papers: &[LossTable],
    also: Option<ReplaceOne>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Outcome> {
    reproduce_at(experiment, settings, Sizes::of(settings), papers, also, progress)
}

fn reproduce_at(
    experiment: &dyn Experiment,
    settings: &Settings,
    sizes: &Sizes,
    papers: &[LossTable],
    also: Option<ReplaceOne>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Outcome> {
    let mut list: Vec<Setting> = Vec::new();
    for paper in papers {
        for (share, epsilon, _) in paper.rows() {
            let setting = Setting { share, epsilon, start: paper.start };
            if !list.contains(&setting) {
                list.push(setting);
            }
        }
    }
    let further = also.as_ref().map_or(0, |also| also.shares.len() as u64 * sizes.draws);
    let total = list.len() as u64 * pieces(sizes) + further;
    let finished = AtomicU64::new(0);
    let tick = || progress(finished.fetch_add(1, Ordering::Relaxed) + 1, total);
    let cells = measure(settings, sizes, &list, &tick)?;
    let (mut tables, mut charts, mut found, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for paper in papers {
        let topic = topic(experiment.name(), paper);
        let rows = paper.rows();
        let summaries: Vec<Summary<'_>> = rows
            .iter()
            .filter_map(|(share, epsilon, losses)| {
                let setting = Setting { share: *share, epsilon: *epsilon, start: paper.start };
                let cell = cells.iter().find(|cell| cell.setting == setting)?;
                Some(Summary::new(sizes, cell, *losses))
            })
            .collect();
        tables.extend([
            topic.comparison(&summaries),
            topic.protocol(&summaries),
            topic.autopilot(&summaries),
            topic.chosen(&summaries, sizes),
        ]);
        charts.extend(topic.charts(&summaries));
        found.extend(topic.findings(&summaries, sizes));
        all.push((topic, summaries));
    }
    // What holds for all cells comes first.
    let first: Vec<String> = overall::overall(&all).into_iter().chain(findings::general(sizes)).collect();
    found.splice(0..0, first);
    if let Some(also) = &also {
        let (table, finding) = replacing(experiment.name(), settings, sizes, also, &tick)?;
        tables.push(table);
        found.push(finding);
    }
    Ok(Outcome {
        name: experiment.name(),
        title: experiment.title(),
        setting: setting(settings, sizes, papers),
        findings: found,
        tables,
        charts,
    })
}

fn topic(experiment: &str, paper: &LossTable) -> Topic {
    let start = match paper.start {
        Start::Warm => "",
        Start::Cold => ", cold start",
    };
    let (name, title) = match paper.fixed {
        Fixed::Epsilon(epsilon) => {
            (format!("{experiment}-at-epsilon-{epsilon}"), format!("epsilon = {epsilon}{start}"))
        }
        Fixed::Share(share) => {
            (format!("{experiment}-at-share-{share}"), format!("public share {share}{start}"))
        }
    };
    Topic { name, title, fixed: paper.fixed }
}

/// What the paper's own definition of neighbours costs the autopilot.
fn replacing(
    experiment: &str,
    settings: &Settings,
    sizes: &Sizes,
    also: &ReplaceOne,
    tick: &(dyn Fn() + Sync),
) -> Result<(Table, String)> {
    let ReplaceOne { epsilon, shares } = *also;
    let (mut rows, mut words) = (Vec::new(), Vec::new());
    let both = [Adjacency::AddRemove, Adjacency::ReplaceOne];
    for share in shares {
        let run = Run { rows: sizes.rows - sizes.public(*share), batch: sizes.batch, steps: sizes.steps };
        let mut row: Vec<Cell> = vec![(*share).into(), epsilon.into()];
        let mut losses = Vec::new();
        for adjacency in both {
            let silent = || ();
            let tick = if adjacency == Adjacency::ReplaceOne { tick } else { &silent };
            let runs = on_every_draw(settings, sizes, (*share, epsilon), adjacency, tick)?;
            let (mean, error) = mean_and_error(&runs.iter().map(|run| run.loss).collect::<Vec<_>>());
            losses.push((mean, error));
            row.extend([Cell::Number(mean), Cell::Number(error)]);
        }
        for adjacency in both {
            row.push(run.needed(epsilon, DELTA, adjacency)?.into());
        }
        words.push(format!(
            "{:.4} ± {:.4} at share {share} (add/remove {:.4})",
            losses[1].0, losses[1].1, losses[0].0
        ));
        rows.push(row);
    }
    let headings = [
        "public_share",
        "epsilon",
        "autopilot_add_remove",
        "autopilot_add_remove_standard_error",
        "autopilot_replace_one",
        "autopilot_replace_one_standard_error",
        "noise_multiplier_needed_add_remove",
        "noise_multiplier_needed_replace_one",
    ];
    let table = Table {
        name: format!("{experiment}-replace-one"),
        title: "The autopilot under replace-one, the paper's own definition of neighbours, at the same epsilon; the noise \
                is what K and T of the other tables need"
            .into(),
        headings: headings.map(String::from).to_vec(),
        rows,
    };
    let finding = format!(
        "All tables above are add/remove, like the paper's noise. Under replace-one, which the paper defines, epsilon = \
         {epsilon} gives the autopilot {}.",
        words.join(", ")
    );
    Ok((table, finding))
}

fn setting(settings: &Settings, sizes: &Sizes, papers: &[LossTable]) -> Value {
    json!({
        "paper": papers.iter().map(|paper| paper.label).collect::<Vec<_>>(),
        "data": "x ~ N(0, I), y = <x, w*> + N(0, 1), w* ~ N(0, I); the test loss is exactly 1 + |w - w*|^2",
        "d": sizes.dimension,
        "n": sizes.rows,
        "expected_batch": sizes.batch,
        "public_batch": sizes.public_batch,
        "steps": sizes.steps,
        "clip_norm": CLIP_NORM,
        "delta": DELTA,
        "adjacency": "add-remove",
        "sampling": "poisson with rate K/n_private; sums are divided by K",
        "noise": "the paper's multipliers where it printed any, those of Opacus as emulated in the experiment \
                  noise-tables elsewhere; DP-SGD has those of all n rows",
        "start": papers.iter().map(|paper| match paper.start {
            Start::Warm => "least squares on public rows, of least norm if there are fewer rows than columns (the paper \
                            ran SGD there)",
            Start::Cold => "zero",
        }).collect::<Vec<_>>(),
        "algorithm_1": "w <- w - rate*(alpha*private + (1 - alpha)*public); public gradients of K_pub rows drawn with \
                        replacement, each rescaled to the clip norm, as in the paper",
        "pda_md": "private gradients times (H/least eigenvalue of H)^-1, H = X'X/n_public + (reg/d) I",
        "hessian_regularisation": HESSIAN_REGULARISATION,
        "dp_sgd": "all n rows are private",
        "outputs": ["last iterate", "mean of late iterates: from a warm start of all but the first fifth, from a cold one of the \
                                     last fifth, because most are still on their way there"],
        "output_of_the_protocol": "for each algorithm and cell the output with the smaller validation loss on draw 0: one more \
                                   hyper-parameter that is tuned on validation data. The paper's Algorithm 1 returns \"w_T or an \
                                   average of the iterates\" and its tables do not say which; the DP-SGD that it builds on, of \
                                   De et al. (2022), averages parameters",
        "learning_rates": std::iter::once(0.0).chain(sizes.rates.iter().copied()).collect::<Vec<_>>(),
        "alphas": sizes.alphas,
        "learning_rate_0": "stays at the start; for Algorithm 1 it is throw-away, whose figures the paper prints for it from a \
                            cold start where nothing was better",
        "tuned_on": format!("{} validation rows of draw 0, which leaks; measured on draws 1 to {}", sizes.validation, sizes.draws),
        "engine": "an emulation in single precision with floating noise from a seed, on synthetic rows: nothing that it \
                   computes is private or certified; the autopilot goes through the kernel",
        "autopilot": {
            "algorithm": NAME,
            "given": "epsilon, delta, adjacency; under add/remove, where the number of private rows is secret, also \
                      sample-rate K/n_private and expected-batch K. Nothing else.",
            "draws": sizes.draws,
        },
        "limit": "1 + sum 1/(lambda_j + n_eff + 1) over the expected spectrum of public rows, 1/n_eff = min over k of \
                  S(k)/n_private + (z k/(K P(k)))^2 d/T, with the paper's K and T or with all private rows in one step of the \
                  same budget, whichever says more",
        "luck": "throw-away minus its expectation 1 + d/(n_public - d - 1); luck_left of it, sum lambda/(lambda + n_eff)^2 \
                 over sum 1/lambda, is taken off losses that weigh public rows against private ones",
        "seed": settings.seed,
    })
}

#[cfg(test)]
mod tests;
