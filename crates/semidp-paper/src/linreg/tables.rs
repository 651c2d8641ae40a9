//! Tables of one of the paper's tables: the comparison that a reader looks for first, then its protocol, the autopilot beside
//! the limit, and what was chosen, with all columns.

use super::Sizes;
use super::summary::Summary;
use super::trainer::{ALGORITHMS, Algorithm, OUTPUTS};
use crate::published::Fixed;
use crate::{Cell, Table};

/// What is reproduced, in words that fit a file name and a title.
pub struct Topic {
    /// Of files.
    pub name: String,
    /// In titles.
    pub title: String,
    pub fixed: Fixed,
}

impl Topic {
    /// What differs between rows.
    pub fn variable(&self) -> &'static str {
        match self.fixed {
            Fixed::Epsilon(_) => "public_share",
            Fixed::Share(_) => "epsilon",
        }
    }

    /// Its value.
    pub fn value(&self, summary: &Summary<'_>) -> f64 {
        match self.fixed {
            Fixed::Epsilon(_) => summary.cell.setting.share,
            Fixed::Share(_) => summary.cell.setting.epsilon,
        }
    }

    /// One row a cell: the paper's Algorithm 1, ours by its protocol, the autopilot and the limit.
    pub fn comparison(&self, summaries: &[Summary<'_>]) -> Table {
        let headings = [
            self.variable(),
            "algorithm_1_paper",
            "algorithm_1_tuned_on_validation_data_leaks",
            "algorithm_1_standard_error",
            "its_excess_over_papers",
            "autopilot",
            "autopilot_standard_error",
            "autopilot_predicted",
            "predicted_over_measured_loss",
            "limit",
            "autopilot_minus_paper_after_luck",
            "distance_to_limit_over_papers",
        ];
        let row = |summary: &Summary<'_>| {
            let (ours, error) = summary.protocol(Algorithm::One);
            let cells: [Cell; 12] = [
                self.value(summary).into(),
                summary.papers(Algorithm::One).into(),
                ours.into(),
                error.into(),
                summary.excess_ratio().into(),
                summary.autopilot.0.into(),
                summary.autopilot.1.into(),
                summary.predicted.into(),
                summary.predicted_loss_over_measured().into(),
                summary.limit.into(),
                summary.autopilot_minus_paper().into(),
                summary.distance_ratio().into(),
            ];
            cells.to_vec()
        };
        let (as_printed, explained) = if summaries.iter().any(|summary| summary.paper.is_some()) {
            (
                " as the paper printed them, of ours",
                ". Excess is loss beyond 1, the noise of labels; the last column is (autopilot - limit)/(paper - limit), \
                 after luck",
            )
        } else {
            ("", "")
        };
        Table {
            name: format!("{}-comparison", self.name),
            title: format!(
                "{}: test losses of Algorithm 1{as_printed} by the paper's protocol (tuned on validation data, which leaks) and \
                 of the autopilot, which is tuned on nothing{explained}",
                self.title
            ),
            headings: headings.map(String::from).to_vec(),
            rows: summaries.iter().map(row).collect(),
        }
    }

    /// The paper's comparison by its own protocol.
    pub fn protocol(&self, summaries: &[Summary<'_>]) -> Table {
        let mut headings = [self.variable(), "public_rows", "noise_multiplier", "noise_multiplier_dp_sgd"]
            .map(String::from)
            .to_vec();
        for algorithm in ALGORITHMS {
            let name = algorithm.name();
            headings.push(format!("{name}_paper"));
            for output in ["", "_averaged"] {
                headings.push(format!("{name}{output}_tuned_on_validation_data_leaks"));
                headings.push(format!("{name}{output}_standard_error"));
            }
            headings.push(format!("{name}_output_chosen"));
        }
        let last = [
            "throw_away_paper",
            "throw_away",
            "throw_away_standard_error",
            "throw_away_expected",
            "algorithm_1_excess_over_papers",
            "algorithm_1_last_excess_over_papers",
            "algorithm_1_averaged_excess_over_papers",
            "algorithm_1_excess_over_papers_after_luck",
        ];
        headings.extend(last.map(String::from));
        let row = |summary: &Summary<'_>| {
            let noises = summary.cell.noises;
            let mut row: Vec<Cell> = vec![
                self.value(summary).into(),
                (summary.public as f64).into(),
                noises.private.into(),
                noises.all.into(),
            ];
            for algorithm in ALGORITHMS {
                row.push(summary.papers(algorithm).into());
                for output in 0..OUTPUTS.len() {
                    let (mean, error) = summary.loss(algorithm, output);
                    row.extend([Cell::Number(mean), Cell::Number(error)]);
                }
                row.push(OUTPUTS[summary.tuned_output(algorithm)].into());
            }
            row.push(summary.paper.map(|paper| paper.throw_away).into());
            row.extend([Cell::Number(summary.throw_away.0), Cell::Number(summary.throw_away.1)]);
            row.push(summary.expected.into());
            row.push(summary.excess_ratio().into());
            for output in 0..OUTPUTS.len() {
                row.push(summary.excess_over_papers(summary.loss(Algorithm::One, output).0).into());
            }
            row.push(summary.excess_ratio_after_luck().into());
            row
        };
        Table {
            name: self.name.clone(),
            title: format!(
                "{}: test losses of all algorithms by the paper's protocol, tuned on validation data, which leaks",
                self.title
            ),
            headings,
            rows: summaries.iter().map(row).collect(),
        }
    }

    /// The library left to itself, beside the paper's Algorithm 1 and the limit.
    pub fn autopilot(&self, summaries: &[Summary<'_>]) -> Table {
        let headings = [
            self.variable(),
            "algorithm_1_paper",
            "algorithm_1_tuned_on_validation_data_leaks",
            "autopilot",
            "autopilot_standard_error",
            "autopilot_predicted",
            "predicted_excess_over_measured",
            "limit",
            "throw_away_luck",
            "throw_away_luck_paper",
            "luck_left",
            "algorithm_1_after_luck",
            "algorithm_1_paper_after_luck",
            "autopilot_after_luck",
            "autopilot_minus_paper_after_luck",
            "distance_to_limit_over_papers",
            "certified_epsilon",
        ];
        let row = |summary: &Summary<'_>| {
            let ours = summary.protocol(Algorithm::One).0;
            let certified = summary.cell.autopilot.iter().map(|run| run.epsilon).fold(0.0, f64::max);
            let cells: [Cell; 17] = [
                self.value(summary).into(),
                summary.papers(Algorithm::One).into(),
                ours.into(),
                summary.autopilot.0.into(),
                summary.autopilot.1.into(),
                summary.predicted.into(),
                summary.predicted_over_measured().into(),
                summary.limit.into(),
                summary.luck().into(),
                summary.papers_luck().into(),
                summary.luck_left.into(),
                summary.after_luck(ours).into(),
                summary.papers_after_luck().into(),
                summary.after_luck(summary.autopilot.0).into(),
                summary.autopilot_minus_paper().into(),
                summary.distance_ratio().into(),
                certified.into(),
            ];
            cells.to_vec()
        };
        Table {
            name: format!("{}-autopilot", self.name),
            title: format!(
                "{}: the library left to itself, the paper's Algorithm 1 and the limit",
                self.title
            ),
            headings: headings.map(String::from).to_vec(),
            rows: summaries.iter().map(row).collect(),
        }
    }

    /// Hyper-parameters that tuning chose, and whether a larger or smaller one was not to be had.
    pub fn chosen(&self, summaries: &[Summary<'_>], sizes: &Sizes) -> Table {
        let headings = [
            self.variable(),
            "algorithm",
            "output",
            "learning_rate",
            "alpha",
            "validation_loss",
            "output_is_chosen",
            "learning_rate_is_at_the_end_of_the_grid",
        ];
        let mut rows = Vec::new();
        for summary in summaries {
            for algorithm in ALGORITHMS {
                let chosen = OUTPUTS[summary.tuned_output(algorithm)];
                for (choice, output) in summary.cell.tuned.choices[algorithm.place()].iter().zip(OUTPUTS) {
                    let is_at_end =
                        sizes.rates.first() == Some(&choice.rate) || sizes.rates.last() == Some(&choice.rate);
                    let cells: [Cell; 8] = [
                        self.value(summary).into(),
                        algorithm.title().into(),
                        output.into(),
                        choice.rate.into(),
                        if algorithm == Algorithm::One && choice.rate > 0.0 {
                            choice.alpha.into()
                        } else {
                            Cell::Empty
                        },
                        choice.validation.into(),
                        yes_or_no(output == chosen),
                        yes_or_no(is_at_end),
                    ];
                    rows.push(cells.to_vec());
                }
            }
        }
        Table {
            name: format!("{}-chosen", self.name),
            title: format!("{}: hyper-parameters chosen on validation data of draw 0", self.title),
            headings: headings.map(String::from).to_vec(),
            rows,
        }
    }
}

fn yes_or_no(is: bool) -> Cell {
    if is { "yes" } else { "no" }.into()
}
