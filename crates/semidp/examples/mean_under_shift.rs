//! Misses of the default mean's intervals where private rows lie far from the public ones, or are spread out more.
//!
//! `cargo run --release -p semidp --example mean_under_shift -- 100 gaussian normal` draws rows of a law (normal, uniform, exponential, lognormal
//! or student, with variance one; all of them by default) 100 times a setting, moves private rows by `shift` standard deviations and stretches
//! them by `spread`. A line a setting: columns, public and private rows, epsilon, shift and spread; then misses of 95 % intervals and intervals
//! that are withheld, in percent of all columns; and the width of intervals over that of the noise and sampling error alone.

use semidp::mean::*;
use semidp_accounting::{Delta, Epsilon, PrivacyBudget};
use semidp_core::{Adjacency, DenseTable, Private, Public, Randomness, Session};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LAWS: [&str; 5] = ["normal", "uniform", "exponential", "lognormal", "student"];
const SHIFTS_AND_SPREADS: [(f64, f64); 13] = [
    (0.0, 1.0),
    (0.5, 1.0),
    (1.0, 1.0),
    (2.0, 1.0),
    (3.0, 1.0),
    (4.0, 1.0),
    (0.0, 2.0),
    (1.0, 2.0),
    (0.0, 4.0),
    (2.0, 4.0),
    (0.0, 0.3),
    (1.0, 0.3),
    (3.0, 0.3),
];

/// splitmix64.
struct Coins(u64);

impl Coins {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * self.uniform()).cos()
    }

    /// Of mean 0 and variance 1.
    fn draw(&mut self, law: &str) -> f64 {
        match law {
            "normal" => self.normal(),
            "uniform" => (self.uniform() - 0.5) * 12f64.sqrt(),
            "exponential" => -self.uniform().ln() - 1.0,
            "lognormal" => {
                let square: f64 = 0.25;
                let (mean, variance) = ((square / 2.0).exp(), square.exp_m1() * square.exp());
                ((square.sqrt() * self.normal()).exp() - mean) / variance.sqrt()
            }
            _ => {
                let chi: f64 = (0..4).map(|_| self.normal().powi(2)).sum();
                self.normal() / (chi / 2.0).sqrt()
            }
        }
    }
}

struct Setting<'a> {
    law: &'a str,
    noise: &'a str,
    columns: usize,
    public: usize,
    private: usize,
    epsilon: f64,
    shift: f64,
    spread: f64,
}

#[derive(Default)]
struct Tally {
    missed: f64,
    given: f64,
    withheld: f64,
    width: f64,
    width_of_errors: f64,
}

impl Setting<'_> {
    fn release(&self, run: u64, tally: &mut Tally) -> Outcome<()> {
        let &Self { law, columns, public, private, .. } = self;
        let mut coins = Coins(run * 7919 + (columns * 1000 + public + private) as u64);
        let public: Vec<f64> = (0..public * columns).map(|_| coins.draw(law)).collect();
        let rows = (0..private * columns).map(|_| self.shift + self.spread * coins.draw(law)).collect();
        let evidence = Evidence::of(&Public(DenseTable::new(public, columns)?))?;
        let epsilon = Epsilon::new(self.epsilon)?;
        let budget = match self.noise {
            "gaussian" => PrivacyBudget::Approximate { epsilon, delta: Delta::new(1e-6)? },
            _ => PrivacyBudget::Pure { epsilon },
        };
        let request = Request {
            budget,
            target: Target::Population,
            estimator: Some(format!("shift-robust-{}", self.noise)),
            exact: false,
            radius: None,
            std: None,
            private_weight: None,
            is_centred: true,
        };
        let plan = JointPlan::best(&request, Assumption::Nothing, &evidence, private as u64)?;
        let plan = plan.ok_or("a budget that is too small")?;
        let session = Session::new(Private::new(DenseTable::new(rows, columns)?), Adjacency::ReplaceOne)?;
        let session = session.with_randomness(Randomness::Seed(run)).with_threads(1);
        let centre = Public(evidence.mean().to_vec());
        let found = plan.release(&session, &centre, &centre, 0.95)?.value;
        let noise = plan.noise_multiplier().get() * plan.radius() / private as f64;
        for column in &found.columns {
            let Some([low, high]) = column.interval else {
                tally.withheld += 1.0;
                continue;
            };
            tally.given += 1.0;
            tally.missed += f64::from(u8::from(low > self.shift || high < self.shift));
            tally.width += high - low;
            tally.width_of_errors += 2.0 * 1.96 * noise.hypot(self.spread / (private as f64).sqrt());
        }
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runs: u64 = arguments.first().map_or(Ok(30), |text| text.parse())?;
    let noise = arguments.get(1).map_or("gaussian", String::as_str);
    let laws: Vec<&str> = match arguments.get(2..) {
        Some(names) if !names.is_empty() => names.iter().map(String::as_str).collect(),
        _ => LAWS.to_vec(),
    };
    println!("law columns public private epsilon shift spread: missed % withheld % width");
    for law in laws {
        for columns in [1, 3, 10] {
            for public in [50, 400] {
                for (private, epsilon) in [(200, 0.5), (500, 1.0), (3000, 1.0)] {
                    for (shift, spread) in SHIFTS_AND_SPREADS {
                        let setting =
                            Setting { law, noise, columns, public, private, epsilon, shift, spread };
                        let mut tally = Tally::default();
                        (0..runs).try_for_each(|run| setting.release(run, &mut tally))?;
                        let percent = 100.0 / (tally.given + tally.withheld);
                        println!(
                            "{law} {columns} {public} {private} {epsilon} {shift} {spread}: {:.1} {:.0} {:.2}",
                            percent * tally.missed,
                            percent * tally.withheld,
                            tally.width / tally.width_of_errors.max(f64::MIN_POSITIVE)
                        );
                    }
                }
            }
        }
    }
    Ok(())
}
