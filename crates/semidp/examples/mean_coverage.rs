//! Coverage, width and error of the default mean under shifts of the public rows.
//!
//! `cargo run --release -p semidp --example mean_coverage -- 1000 2000 200 gaussian,laplace,k-norm normal exponential one-in-20 student-4
//! lognormal pareto-3 TABLE.csv ...` resamples 2,000 private and 200 public rows 1,000 times from each law and each table of numbers (with a header; rows
//! with a cell that is no number are left out), moves the public rows by 0 to 10 standard errors of their mean, and releases at epsilon 1
//! (delta 1e-6 for Gaussian noise). The whole table is the population, and its mean the truth. A last line a law draws the public rows
//! from the upper half by the first column. Printed: coverage of 95 % intervals over all columns and in the worst one; their width and the
//! root mean squared error over those of the private rows alone; and the error over that of the pooled estimate of the same release. An
//! interval that is withheld counts as not covering; their number ends the line.

use semidp::mean::*;
use semidp_accounting::{Delta, Epsilon, PrivacyBudget};
use semidp_core::{Adjacency, DenseTable, Private, Public, Randomness, Session};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SHIFTS: [f64; 6] = [0.0, 1.0, 2.0, 4.0, 7.0, 10.0];

/// splitmix64.
struct Coins(u64);

impl Coins {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        ((self.word() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }
}

/// A population of rows.
struct Population {
    name: String,
    rows: Vec<Vec<f64>>,
}

impl Population {
    fn read(path: &str) -> Outcome<Self> {
        let text = std::fs::read_to_string(path)?;
        let rows = text.lines().skip(1).filter_map(|line| {
            let row: Result<Vec<f64>, _> = line.split(',').map(str::parse).collect();
            row.ok().filter(|row| row.iter().all(|x| x.is_finite()))
        });
        let name =
            std::path::Path::new(path).file_stem().map_or(path.into(), |stem| stem.to_string_lossy().into());
        Ok(Self { name, rows: rows.collect() })
    }

    /// 40,000 rows of two columns.
    fn drawn(name: &str, mut law: impl FnMut(&mut Coins) -> f64) -> Self {
        let mut coins = Coins(name.len() as u64);
        let rows = (0..40_000).map(|_| vec![law(&mut coins), law(&mut coins)]).collect();
        Self { name: name.into(), rows }
    }

    fn mean(&self) -> Vec<f64> {
        let width = self.rows[0].len();
        (0..width).map(|j| self.rows.iter().map(|row| row[j]).sum::<f64>() / self.rows.len() as f64).collect()
    }

    fn std(&self) -> Vec<f64> {
        let mean = self.mean();
        let square = |j: usize| self.rows.iter().map(|row| (row[j] - mean[j]).powi(2)).sum::<f64>();
        (0..mean.len()).map(|j| (square(j) / self.rows.len() as f64).sqrt()).collect()
    }
}

#[derive(Default, Clone)]
struct Tally {
    runs: f64,
    covered: Vec<f64>,
    width: f64,
    private_width: f64,
    error: f64,
    private_error: f64,
    pooled_error: f64,
    unknown: f64,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (runs, private, public) = (number(0, 1000)?, number(1, 2000)?, number(2, 200)?);
    let laws = arguments.get(3).map_or("gaussian,laplace,k-norm", String::as_str);
    let mut names: Vec<&str> = arguments.iter().skip(4).map(String::as_str).collect();
    if names.is_empty() {
        names = vec!["normal", "exponential", "one-in-20", "student-4"];
    }
    let populations = names.into_iter().map(|name| match name {
        "normal" => Ok(Population::drawn(name, Coins::normal)),
        "exponential" => Ok(Population::drawn(name, |coins| -coins.uniform().ln())),
        "one-in-20" => Ok(Population::drawn(name, |coins| f64::from(u8::from(coins.uniform() < 0.05)))),
        "student-4" => Ok(Population::drawn(name, |coins| {
            let chi: f64 = (0..4).map(|_| coins.normal().powi(2)).sum();
            coins.normal() / (chi / 4.0).sqrt()
        })),
        "lognormal" => Ok(Population::drawn(name, |coins| coins.normal().exp())),
        "pareto-3" => Ok(Population::drawn(name, |coins| coins.uniform().powf(-1.0 / 3.0) - 1.0)),
        path => Population::read(path),
    });
    let populations = populations.collect::<Outcome<Vec<Population>>>()?;
    let epsilon = Epsilon::new(1.0)?;
    let approximate = PrivacyBudget::Approximate { epsilon, delta: Delta::new(1e-6)? };
    let pure = PrivacyBudget::Pure { epsilon };
    println!(
        "table, law, shift: coverage (worst column); width and error over private alone; error over pooled"
    );
    for population in &populations {
        for law in laws.split(',') {
            let budget = if law == "gaussian" { approximate } else { pure };
            for shift in SHIFTS.into_iter().map(Some).chain([None]) {
                let tally = setting(population, law, budget, shift, (runs, private, public))?;
                let share = |count: f64| count / tally.runs;
                let all = tally.covered.iter().sum::<f64>() / tally.covered.len() as f64;
                let worst = tally.covered.iter().copied().fold(f64::INFINITY, f64::min);
                println!(
                    "{:<14} {:<9} {:>6}: {:.3} ({:.3}); {:.3} {:.3}; {:.3}{}",
                    population.name,
                    law,
                    shift.map_or("upper".into(), |shift| shift.to_string()),
                    share(all),
                    share(worst),
                    tally.width / tally.private_width,
                    (tally.error / tally.private_error).sqrt(),
                    (tally.error / tally.pooled_error).sqrt(),
                    if tally.unknown > 0.0 {
                        format!("; {} intervals unknown", tally.unknown)
                    } else {
                        String::new()
                    }
                );
            }
        }
    }
    Ok(())
}

fn setting(
    population: &Population,
    law: &str,
    budget: PrivacyBudget,
    shift: Option<f64>,
    (runs, private, public): (usize, usize, usize),
) -> Outcome<Tally> {
    let (truth, std) = (population.mean(), population.std());
    let width = truth.len();
    let mut order: Vec<usize> = (0..population.rows.len()).collect();
    order.sort_by(|a, b| population.rows[*a][0].total_cmp(&population.rows[*b][0]));
    let upper = &order[order.len() / 2..];
    let request = Request {
        budget,
        target: Target::Population,
        estimator: Some(format!("shift-robust-{law}")),
        exact: false,
        radius: None,
        std: None,
        private_weight: None,
        is_centred: true,
    };
    let normal = normal_quantile(0.975);
    let mut tally = Tally { covered: vec![0.0; width], ..Tally::default() };
    for run in 0..runs {
        let mut coins = Coins(1 + run as u64 * 0x51_7cc1);
        // In units of the population's standard deviation, as the command scales by that of the public rows.
        let mut draw = |count: usize, from: &[usize], moved: f64| -> Vec<f64> {
            (0..count)
                .flat_map(|_| {
                    let row = &population.rows[from[(coins.word() % from.len() as u64) as usize]];
                    (0..width).map(|j| (row[j] - truth[j]) / std[j] + moved).collect::<Vec<f64>>()
                })
                .collect()
        };
        let open = match shift {
            Some(shift) => draw(public, &order, shift / (public as f64).sqrt()),
            None => draw(public, upper, 0.0),
        };
        let closed = draw(private, &order, 0.0);
        let evidence = Evidence::of(&Public(DenseTable::new(open, width)?))?;
        if evidence.variance().contains(&0.0) {
            continue;
        }
        let session = Session::new(Private::new(DenseTable::new(closed, width)?), Adjacency::ReplaceOne)?;
        let session = session.with_randomness(Randomness::Seed(run as u64)).with_threads(1);
        let centre = Public(evidence.mean().to_vec());
        let plan =
            JointPlan::best(&request, Assumption::Nothing, &evidence, private as u64)?.ok_or("no plan")?;
        let found = plan.release(&session, &centre, &centre, 0.95)?.value;
        tally.runs += 1.0;
        for (j, column) in found.columns.iter().enumerate() {
            let (Some([low, high]), Some(alone), Some(error)) =
                (column.interval, column.private_mean, column.standard_error)
            else {
                tally.unknown += 1.0;
                continue;
            };
            tally.covered[j] += f64::from(u8::from(low <= 0.0 && 0.0 <= high));
            tally.width += high - low;
            tally.private_width += 2.0 * normal * error;
            tally.error += column.mean.powi(2);
            tally.private_error += alone.powi(2);
            let public_variance = evidence.variance()[j] / public as f64;
            let weight = error * error / (error * error + public_variance);
            tally.pooled_error += (alone + weight * (centre[j] - alone)).powi(2);
        }
    }
    Ok(tally)
}
