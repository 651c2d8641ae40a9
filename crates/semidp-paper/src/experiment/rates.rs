//! The paper's three tables of minimax rates as curves, and its example in which minimising training
//! loss is harder than minimising test loss.

use super::Experiment;
use crate::{Cell, Outcome, Result, Settings, Table};
use semidp::theory::{Rate, RateSetting, Task, rates};
use semidp_accounting::{Delta, Epsilon, PrivacyBudget};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::json;

/// The experiment.
pub struct Rates;

/// A table of the paper, and where it is drawn.
struct Drawn {
    label: &'static str,
    file: &'static str,
    title: &'static str,
    rows: u64,
    dimension: u64,
    epsilon: f64,
    delta: Option<f64>,
    names: &'static [&'static str],
}

/// Budgets and sizes at which the lower bounds are proved for a good part of the axis.
const TABLES: [Drawn; 3] = [
    Drawn {
        label: "table: summary of minimax rates approx",
        file: "rates-approximate",
        title: "(epsilon, delta) rates",
        rows: 1_000_000,
        dimension: 1000,
        epsilon: 0.04,
        delta: Some(1e-9),
        names: &["pop_mean_approx", "sco_approx_convex", "ldp_mean", "ldp_sco_convex"],
    },
    Drawn {
        label: "table: summary of minimax rates",
        file: "rates-pure-training",
        title: "pure epsilon rates of training loss",
        rows: 1_000_000,
        dimension: 1000,
        epsilon: 0.01,
        delta: None,
        names: &["erm_pure_convex", "erm_pure_sc"],
    },
    Drawn {
        label: "app table: summary of pure rates",
        file: "rates-pure-population",
        title: "pure epsilon rates of means and test loss",
        rows: 1_000_000,
        dimension: 100,
        epsilon: 1.0,
        delta: None,
        names: &["pop_mean_pure", "emp_mean_pure", "sco_pure_convex", "ldp_mean", "ldp_sco_convex"],
    },
];

impl Experiment for Rates {
    fn name(&self) -> &'static str {
        "rates"
    }

    fn title(&self) -> &'static str {
        "The minimax rates, and where minimising training loss is harder than test loss"
    }

    fn run(&self, _: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let (mut tables, mut charts, mut findings) = (Vec::new(), Vec::new(), Vec::new());
        let total = TABLES.len() as u64 + 1;
        for (i, drawn) in TABLES.iter().enumerate() {
            let curve = drawn.curve()?;
            findings.push(drawn.finding(&curve));
            charts.push((drawn.file.to_string(), drawn.chart(&curve)));
            tables.push(drawn.table(&curve));
            progress(i as u64 + 1, total);
        }
        let example = example()?;
        findings.push(example_finding(&example));
        charts.push(("rates-example".into(), example_chart(&example)));
        tables.push(example_table(&example));
        progress(total, total);
        let setting: Vec<_> = TABLES
            .iter()
            .map(|drawn| {
                json!({
                    "paper": drawn.label, "n": drawn.rows, "d": drawn.dimension, "epsilon": drawn.epsilon,
                    "delta": drawn.delta, "L": 1, "D": 1, "mu": 1,
                })
            })
            .collect();
        Ok(Outcome {
            name: self.name(),
            title: self.title(),
            setting: json!({ "tables": setting, "constants": "left out, as in the paper" }),
            findings,
            tables,
            charts,
        })
    }
}

/// All rates of a setting, whatever their task.
fn all_rates(setting: &RateSetting) -> Vec<Rate> {
    let tasks = [Task::Mean, Task::EmpiricalRisk, Task::PopulationRisk];
    tasks.iter().flat_map(|task| rates(setting, *task)).collect()
}

fn setting(public: u64, rows: u64, dimension: u64, epsilon: f64, delta: Option<f64>) -> Result<RateSetting> {
    let epsilon = Epsilon::new(epsilon)?;
    let budget = match delta {
        Some(delta) => PrivacyBudget::Approximate { epsilon, delta: Delta::new(delta)? },
        None => PrivacyBudget::Pure { epsilon },
    };
    Ok(RateSetting::new(rows - public, public, dimension, budget))
}

/// Rates along the axis of public rows.
type Curve = Vec<(u64, Vec<Rate>)>;

impl Drawn {
    fn curve(&self) -> Result<Curve> {
        // From one public row to all but one, evenly in logarithm, and then evenly at the upper end.
        let exponents = (0..=60).map(|i| (self.rows as f64).powf(f64::from(i) / 61.0));
        let upper = (1..=9).map(|i| self.rows as f64 * (0.9 + f64::from(i) / 100.0));
        let mut counts: Vec<u64> = exponents.chain(upper).map(|x| x.round() as u64).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
            .into_iter()
            .map(|public| {
                let setting = setting(public, self.rows, self.dimension, self.epsilon, self.delta)?;
                let mut kept = all_rates(&setting);
                kept.retain(|rate| self.names.contains(&rate.name));
                Ok((public, kept))
            })
            .collect()
    }

    fn values(curve: &Curve, name: &str, of: impl Fn(&Rate) -> Option<f64>) -> Vec<(f64, f64)> {
        let at = |(public, rates): &(u64, Vec<Rate>)| {
            let rate = rates.iter().find(|rate| rate.name == name)?;
            Some((*public as f64, of(rate)?))
        };
        curve.iter().filter_map(at).collect()
    }

    fn chart(&self, curve: &Curve) -> Chart {
        let mut series = Vec::new();
        for (colour, name) in self.names.iter().enumerate() {
            let title = curve[0].1.iter().find(|rate| rate.name == *name).map_or(*name, |rate| rate.title);
            let upper = Self::values(curve, name, |rate| rate.upper);
            series.push(Series { name: title.into(), points: upper, style: Style::Line, colour });
            let lower = Self::values(curve, name, |rate| rate.lower);
            series.push(Series { name: String::new(), points: lower, style: Style::Points, colour });
        }
        Chart {
            title: format!(
                "{}: n = {}, d = {}, epsilon = {} (dots: lower bound proved)",
                self.title, self.rows, self.dimension, self.epsilon
            ),
            x: Axis::logarithmic("public rows"),
            y: Axis::logarithmic("rate, constants left out"),
            series,
            marks: Vec::new(),
        }
    }

    fn table(&self, curve: &Curve) -> Table {
        let mut headings = vec!["n_public".to_string()];
        for name in self.names {
            headings.extend([format!("{name}_upper"), format!("{name}_lower")]);
        }
        let rows = curve.iter().map(|(public, rates)| {
            let mut row: Vec<Cell> = vec![(*public as f64).into()];
            for name in self.names {
                let rate = rates.iter().find(|rate| rate.name == *name);
                row.extend([
                    rate.and_then(|rate| rate.upper).into(),
                    rate.and_then(|rate| rate.lower).into(),
                ]);
            }
            row
        });
        Table { name: self.file.into(), title: self.title.into(), headings, rows: rows.collect() }
    }

    /// From how many public rows on each rate falls below what no public rows would give.
    fn finding(&self, curve: &Curve) -> String {
        let turning = self.names.iter().filter_map(|name| {
            let upper = Self::values(curve, name, |rate| rate.upper);
            let (_, start) = *upper.first()?;
            let (public, _) = *upper.iter().find(|(_, value)| *value < 0.9 * start)?;
            let title = curve[0].1.iter().find(|rate| rate.name == *name).map_or(*name, |rate| rate.title);
            Some(format!("{title} from {public} public rows on"))
        });
        let turning: Vec<String> = turning.collect();
        let words = match turning.len() {
            0 => "no rate falls before almost all rows are public".into(),
            _ => format!("public rows improve the rate: {}", turning.join("; ")),
        };
        format!("{} ({}): {words}.", self.title, self.label)
    }
}

/// ERM and SCO rates in one dimension along n, in the two regimes of the paper's example.
struct Example {
    rows: u64,
    /// ε = 1, n_priv = n^(2/3).
    ordinary: (f64, f64),
    /// ε = 1/n, n_priv = n^(2/3).
    reversed: (f64, f64),
}

fn example() -> Result<Vec<Example>> {
    (4..=24)
        .map(|i| {
            let rows = 10f64.powf(f64::from(i) / 4.0).round() as u64;
            let private = ((rows as f64).powf(2.0 / 3.0).round() as u64).min(rows - 1);
            // (ε, δ) only matters for SCO, whose pure rate in one dimension is the same.
            let pair = |epsilon: f64| -> Result<(f64, f64)> {
                let all = all_rates(&setting(rows - private, rows, 1, epsilon, None)?);
                let upper = |name: &str| {
                    all.iter().find(|rate| rate.name == name).and_then(|rate| rate.upper).unwrap_or(f64::NAN)
                };
                Ok((upper("erm_pure_convex"), upper("sco_pure_convex")))
            };
            Ok(Example { rows, ordinary: pair(1.0)?, reversed: pair(1.0 / rows as f64)? })
        })
        .collect()
}

fn example_chart(example: &[Example]) -> Chart {
    let line = |of: fn(&Example) -> f64| example.iter().map(|at| (at.rows as f64, of(at))).collect();
    let series = |name: &str, points, style, colour| Series { name: name.into(), points, style, colour };
    Chart {
        title: "training loss against test loss, d = L = D = 1, n^(2/3) private rows".into(),
        x: Axis::logarithmic("rows"),
        y: Axis::logarithmic("minimax excess loss, constants left out"),
        series: vec![
            series("training loss, epsilon = 1/n", line(|at| at.reversed.0), Style::Line, 0),
            series("test loss, epsilon = 1/n", line(|at| at.reversed.1), Style::Line, 1),
            series("training loss, epsilon = 1", line(|at| at.ordinary.0), Style::Dashes, 0),
            series("test loss, epsilon = 1", line(|at| at.ordinary.1), Style::Dashes, 1),
        ],
        marks: Vec::new(),
    }
}

fn example_table(example: &[Example]) -> Table {
    let headings =
        ["n", "training_epsilon_1", "test_epsilon_1", "training_epsilon_1_over_n", "test_epsilon_1_over_n"];
    let rows = example.iter().map(|at| {
        let numbers = [at.rows as f64, at.ordinary.0, at.ordinary.1, at.reversed.0, at.reversed.1];
        numbers.map(Cell::Number).to_vec()
    });
    Table {
        name: "rates-example".into(),
        title: "Where minimising training loss is harder than test loss".into(),
        headings: headings.map(String::from).to_vec(),
        rows: rows.collect(),
    }
}

fn example_finding(example: &[Example]) -> String {
    let last = &example[example.len() - 1];
    format!(
        "Training loss can be harder than test loss: at n = {}, epsilon = 1/n and n^(2/3) private rows the rate of \
         training loss is {:.2e}, that of test loss {:.2e} (n^(-1/3) against n^(-1/2)), because test loss can lean on \
         public rows and training loss cannot. At epsilon = 1 it is the other way round: {:.2e} and {:.2e}.",
        last.rows, last.reversed.0, last.reversed.1, last.ordinary.0, last.ordinary.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_loss_is_harder_only_at_small_budgets() {
        for at in example().unwrap().iter().filter(|at| at.rows >= 1000) {
            assert!(at.reversed.0 > at.reversed.1, "{}", at.rows);
            assert!(at.ordinary.0 < at.ordinary.1, "{}", at.rows);
            // n_priv/n = n^(-1/3), and 1/√n_pub is about n^(-1/2).
            let n = at.rows as f64;
            assert!((at.reversed.0 * n.powf(1.0 / 3.0) - 1.0).abs() < 0.01);
            assert!((at.reversed.1 * n.sqrt() - 1.0).abs() < 0.1);
        }
    }

    /// Every table has every rate it names, some lower bounds, and none above its upper bound.
    #[test]
    fn the_tables_are_complete() {
        let settings = Settings::new(true, 0, 1);
        let outcome = Rates.run(&settings, &|_, _| ()).unwrap();
        assert_eq!((outcome.tables.len(), outcome.charts.len()), (4, 4));
        for drawn in &TABLES {
            let curve = drawn.curve().unwrap();
            for name in drawn.names {
                assert_eq!(Drawn::values(&curve, name, |rate| rate.upper).len(), curve.len(), "{name}");
                assert!(!Drawn::values(&curve, name, |rate| rate.lower).is_empty(), "{name}");
            }
            for (_, rates) in &curve {
                for rate in rates {
                    assert!(rate.lower.is_none_or(|lower| lower <= rate.upper.unwrap() * (1.0 + 1e-12)));
                }
            }
        }
        for (name, chart) in outcome.charts {
            assert!(chart.svg().unwrap().contains("</svg>"), "{name}");
        }
    }
}
