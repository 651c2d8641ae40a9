//! Charts in the paper's form: test loss against the public share or against ε.

use super::summary::{Mean, Summary};
use super::tables::Topic;
use super::trainer::ALGORITHMS;
use crate::published::Fixed;
use semidp_plot::{Axis, Chart, Series, Style};

/// Below this share some cells have fewer public rows than columns, and losses in the hundreds.
const CLOSE_UP_FROM: f64 = 0.1;

impl Topic {
    /// All rows with a logarithmic axis, and where rows differ in the share a close-up of those with enough public rows.
    pub fn charts(&self, summaries: &[Summary<'_>]) -> Vec<(String, Chart)> {
        let all: Vec<&Summary<'_>> = summaries.iter().collect();
        let mut charts = vec![(self.name.clone(), self.chart(&all, Axis::logarithmic("test loss"), 0.0))];
        if matches!(self.fixed, Fixed::Epsilon(_)) {
            let close: Vec<&Summary<'_>> =
                summaries.iter().filter(|summary| summary.cell.setting.share >= CLOSE_UP_FROM).collect();
            let axis = Axis::logarithmic("test loss beyond 1, the noise of labels");
            charts.push((format!("{}-close", self.name), self.chart(&close, axis, 1.0)));
        }
        charts
    }

    /// Of losses minus `floor`: a line an algorithm with standard errors over draws, and diamonds for what the paper printed.
    fn chart(&self, summaries: &[&Summary<'_>], y: Axis, floor: f64) -> Chart {
        let points = |of: &dyn Fn(&Summary<'_>) -> Option<f64>| -> Vec<(f64, f64)> {
            summaries.iter().filter_map(|summary| Some((self.value(summary), of(summary)? - floor))).collect()
        };
        let series = |name: &str, points, style, colour| Series { name: name.into(), points, style, colour };
        let mut all = Vec::new();
        let mut measured = |name: &str, of: &dyn Fn(&Summary<'_>) -> Mean, colour| {
            all.push(series(name, points(&|s| Some(of(s).0)), Style::Line, colour));
            let ends = |summary: &&Summary<'_>| {
                let ((mean, error), x) = (of(summary), self.value(summary));
                [(x, mean - error - floor), (x, mean + error - floor)]
            };
            all.push(series("", summaries.iter().flat_map(ends).collect(), Style::Bars, colour));
        };
        for (colour, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let name = format!("{}, tuned on validation data (leaks)", algorithm.title());
            measured(&name, &|s| s.protocol(algorithm), colour);
        }
        measured("throw-away", &|s| s.throw_away, 3);
        measured("autopilot, nothing tuned", &|s| s.autopilot, 4);
        all.push(series("limit", points(&|s| Some(s.limit)), Style::Dashes, 6));
        for (colour, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let papers = points(&|s| s.papers(algorithm));
            if !papers.is_empty() {
                // One entry in the legend stands for all of them.
                let name = if colour == 0 {
                    "diamonds: as the paper printed, in the colour of the line"
                } else {
                    ""
                };
                all.push(series(name, papers, Style::Diamonds, colour));
            }
        }
        let x = match self.fixed {
            Fixed::Epsilon(_) => Axis::linear("public share of all rows"),
            Fixed::Share(_) => Axis::logarithmic("epsilon"),
        };
        let what = if floor > 0.0 { "close-up of test loss" } else { "test loss" };
        Chart { title: format!("{what}, {}", self.title), x, y, series: all, marks: Vec::new() }
    }
}
