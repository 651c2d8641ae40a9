//! The paper's two tables of noise (`table: std_dev_eps_2` and `table: std_dev_eps_4`): how they were computed, what the
//! printed noise costs, and what the paper's own definition of neighbours would need.

use super::Experiment;
use crate::noise::{NoiseCost, Run, noise_cost, published_settings};
use crate::parallel::in_order;
use crate::published::{BATCH, DELTA, NOISE, ROWS, STEPS};
use crate::{Outcome, Result, Settings, Table};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::json;

/// Half of the last printed digit, and what a decimal number is off in binary.
const PRINTED: f64 = 5e-4 + 1e-9;

/// The experiment.
pub struct NoiseTables;

/// One printed multiplier, answered.
struct Row {
    cost: NoiseCost,
    /// What the paper's tools give.
    emulated: f64,
}

impl Row {
    fn is_matched(&self) -> bool {
        (self.emulated - self.cost.printed).abs() <= PRINTED
    }
}

impl Experiment for NoiseTables {
    fn name(&self) -> &'static str {
        "noise-tables"
    }

    fn title(&self) -> &'static str {
        "The paper's noise for linear regression: reproduced, and what it costs"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let all: Vec<(f64, f64, f64)> = NOISE
            .iter()
            .flat_map(|table| {
                let epsilon = table.epsilon;
                published_settings(epsilon).into_iter().map(move |(share, printed)| (share, epsilon, printed))
            })
            .collect();
        let total = all.len() as u64;
        let done = |finished: u64| progress(finished, total);
        let rows = in_order(total, settings.threads, &done, |number| {
            let (share, epsilon, printed) = all[number as usize];
            let emulated = Run::of_paper(share).as_opacus(epsilon, DELTA)?;
            Ok(Row { cost: noise_cost(share, epsilon, printed)?, emulated })
        })?;
        Ok(Outcome {
            name: self.name(),
            title: self.title(),
            setting: json!({
                "paper": ["table: std_dev_eps_2", "table: std_dev_eps_4"],
                "n": ROWS,
                "expected_batch": BATCH,
                "steps": STEPS,
                "delta": DELTA,
                "sampling": "poisson; the emulation has the rate of the loader, 1/ceil(n_private/K), all else K/n_private",
                "emulation": "Opacus, default (PRV) accountant: epsilon(0.999 delta) + 0.01 for the removal of a row; \
                              get_noise_multiplier halves (0, 20) until that is within 0.01 of the budget",
                "arithmetic": "idealised",
            }),
            findings: findings(&rows),
            tables: vec![table(&rows)],
            charts: vec![("noise-tables".into(), chart(&rows))],
        })
    }
}

fn table(rows: &[Row]) -> Table {
    let headings = [
        "epsilon",
        "public_share",
        "private_rows",
        "sample_rate",
        "printed",
        "emulated",
        "is_matched",
        "needed_add_remove",
        "epsilon_add_remove",
        "epsilon_replace_one",
        "needed_replace_one",
        "needed_replace_one_over_printed",
    ];
    let row = |row: &Row| {
        let cost = &row.cost;
        vec![
            cost.epsilon.into(),
            cost.share.into(),
            (cost.private_rows as f64).into(),
            cost.sample_rate.into(),
            cost.printed.into(),
            row.emulated.into(),
            if row.is_matched() { "yes" } else { "no" }.into(),
            cost.needed_add_remove.into(),
            cost.cost_add_remove.into(),
            cost.cost_replace_one.into(),
            cost.needed_replace_one.into(),
            (cost.needed_replace_one / cost.printed).into(),
        ]
    };
    Table {
        name: "noise-tables".into(),
        title: "Noise multipliers: printed, emulated, and needed; and the epsilon of the printed ones".into(),
        headings: headings.map(String::from).to_vec(),
        rows: rows.iter().map(row).collect(),
    }
}

fn chart(rows: &[Row]) -> Chart {
    let mut series = Vec::new();
    for (colour, table) in NOISE.iter().enumerate() {
        let own = || rows.iter().filter(|row| row.cost.epsilon == table.epsilon);
        let line = |of: &dyn Fn(&NoiseCost) -> f64| -> Vec<(f64, f64)> {
            own().map(|row| (row.cost.share, of(&row.cost))).collect()
        };
        let mut add = |name: String, points, style| series.push(Series { name, points, style, colour });
        let epsilon = table.epsilon;
        add(format!("printed for epsilon {epsilon}"), line(&|cost| cost.printed), Style::Points);
        add(
            format!("needed under add/remove, epsilon {epsilon}"),
            line(&|cost| cost.needed_add_remove),
            Style::Line,
        );
        add(
            format!("needed under replace-one, epsilon {epsilon}"),
            line(&|cost| cost.needed_replace_one),
            Style::Dashes,
        );
    }
    Chart {
        title: "noise multipliers of the paper's linear regression".into(),
        x: Axis::linear("public share of all rows"),
        y: Axis::logarithmic("noise multiplier"),
        series,
        marks: Vec::new(),
    }
}

fn findings(rows: &[Row]) -> Vec<String> {
    let matched = rows.iter().filter(|row| row.is_matched()).count();
    let mut found = vec![format!(
        "{matched} of {} printed multipliers are what Opacus gives, to the printed digits, with its default accountant and the \
         sample rate of its data loader. The paper says that it used the moments accountant, which gives larger noise.",
        rows.len()
    )];
    for table in &NOISE {
        let own: Vec<&NoiseCost> =
            rows.iter().map(|row| &row.cost).filter(|cost| cost.epsilon == table.epsilon).collect();
        let range = |of: &dyn Fn(&NoiseCost) -> f64| {
            let figures = own.iter().map(|cost| of(cost));
            (figures.clone().fold(f64::INFINITY, f64::min), figures.fold(0.0, f64::max))
        };
        let (least, most) = range(&|cost| cost.cost_add_remove);
        let (replace_least, replace_most) = range(&|cost| cost.cost_replace_one);
        let (ratio_least, ratio_most) = range(&|cost| cost.needed_replace_one / cost.printed);
        let above: Vec<String> = own
            .iter()
            .filter(|cost| cost.cost_add_remove > cost.epsilon)
            .map(|cost| cost.share.to_string())
            .collect();
        let above = if above.is_empty() {
            String::new()
        } else {
            format!(
                " It is above the budget at public share {}, if batches have {BATCH} rows on average: the loader draws fewer \
                 there.",
                above.join(" and ")
            )
        };
        found.push(format!(
            "The noise for epsilon = {} costs {least:.3} to {most:.3} under add/remove.{above} Under replace-one, the \
             paper's own definition, it costs {replace_least:.3} to {replace_most:.3}, and the budget needs {ratio_least:.3} \
             to {ratio_most:.3} times the noise.",
            table.epsilon
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row, with the figures of the specification.
    #[test]
    fn a_row_is_that_of_the_specification() {
        let emulated = Run::of_paper(0.1).as_opacus(2.0, DELTA).unwrap();
        assert_eq!(emulated, 2.744140625);
        let row = Row { cost: noise_cost(0.1, 2.0, 2.744).unwrap(), emulated };
        assert!(row.is_matched());
        assert!((row.cost.needed_add_remove / 2.72531 - 1.0).abs() < 1e-4, "{:?}", row.cost);
        assert!((row.cost.needed_replace_one / 5.22050 - 1.0).abs() < 1e-4, "{:?}", row.cost);
        assert!(row.cost.cost_add_remove < 2.0 && row.cost.cost_replace_one > 3.5, "{:?}", row.cost);
        let rows = [row];
        let table = table(&rows);
        assert_eq!(table.rows[0].len(), table.headings.len());
        assert!(chart(&rows).svg().unwrap().contains("</svg>"));
        assert!(findings(&rows)[0].starts_with("1 of 1"));
    }
}
