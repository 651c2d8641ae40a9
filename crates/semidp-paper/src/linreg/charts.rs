//! Charts in the paper's form: test loss against the public share or against ε.

use super::summary::Summary;
use super::tables::Topic;
use super::trainer::{ALGORITHMS, Algorithm};
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

    /// Of losses minus `floor`.
    fn chart(&self, summaries: &[&Summary<'_>], y: Axis, floor: f64) -> Chart {
        let line = |of: &dyn Fn(&Summary<'_>) -> Option<f64>| -> Vec<(f64, f64)> {
            summaries.iter().filter_map(|summary| Some((self.value(summary), of(summary)? - floor))).collect()
        };
        let series = |name: String, points, style, colour| Series { name, points, style, colour };
        let mut all = Vec::new();
        for (colour, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let name = format!("{}, tuned (leaks)", algorithm.title());
            all.push(series(name, line(&|s| Some(s.loss(algorithm, 0).0)), Style::Line, colour));
            let papers = line(&|s| s.papers(algorithm));
            if !papers.is_empty() {
                // One entry in the legend stands for all points.
                let name =
                    if algorithm == Algorithm::One { "points: the paper's".into() } else { String::new() };
                all.push(series(name, papers, Style::Points, colour));
            }
        }
        all.push(series("throw-away".into(), line(&|s| Some(s.throw_away.0)), Style::Line, 3));
        all.push(series("autopilot, nothing tuned".into(), line(&|s| Some(s.autopilot.0)), Style::Line, 4));
        all.push(series("limit".into(), line(&|s| Some(s.limit)), Style::Dashes, 6));
        let x = match self.fixed {
            Fixed::Epsilon(_) => Axis::linear("public share of all rows"),
            Fixed::Share(_) => Axis::logarithmic("epsilon"),
        };
        Chart { title: self.title.clone(), x, y, series: all, marks: Vec::new() }
    }
}
