//! Misses of the default mean's intervals where private rows lie far from the public ones, or are spread out more.
//!
//! `cargo run --release -p semidp --example mean_under_shift -- 100 gaussian normal` draws rows of a law (normal, uniform, exponential, lognormal
//! or student, with variance one; all of them by default) 100 times a setting, moves private rows by `shift` standard deviations and stretches
//! them by `spread`. A line a setting: columns, public and private rows, epsilon, shift and spread; then misses of 95 % intervals and intervals
//! that are withheld, in percent of all columns; and the width of intervals over that of the noise and sampling error alone. `-- 100 gaussian
//! pairs` draws public and private rows of different laws, and of laws whose rare values few public rows show (`PAIRS`).

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

/// Public and private rows of different laws, and rows of one law that few public rows show badly.
const PAIRS: [&str; 9] = [
    "top-coded",
    "volunteers",
    "lognormal-0.7-1",
    "poisson-mixture",
    "uniform-lognormal",
    "ages",
    "income",
    "codes",
    "sentinel",
];

impl Coins {
    fn poisson(&mut self, mean: f64) -> f64 {
        let (mut count, mut product) = (0.0, self.uniform());
        while product > (-mean).exp() {
            product *= self.uniform();
            count += 1.0;
        }
        count
    }

    /// A public or a private row of a pair.
    fn of_pair(&mut self, pair: &str, is_public: bool) -> f64 {
        let lognormal = |coins: &mut Self, mean: f64, std: f64| (mean + std * coins.normal()).exp();
        match (pair, is_public) {
            ("top-coded", true) => lognormal(self, 10.5, 0.9).min(80_000.0),
            ("volunteers", true) => lognormal(self, 10.2, 0.6),
            ("top-coded" | "volunteers" | "income", _) => lognormal(self, 10.5, 0.9),
            ("lognormal-0.7-1", true) => lognormal(self, 0.0, 0.7),
            ("lognormal-0.7-1", false) => lognormal(self, 0.0, 1.0),
            ("poisson-mixture", false) if self.uniform() < 0.1 => self.poisson(30.0),
            ("poisson-mixture", _) => self.poisson(3.0),
            ("uniform-lognormal", true) => 3.0 * self.uniform(),
            ("uniform-lognormal", false) => lognormal(self, 0.0, 1.2),
            ("ages", true) => 18.0 + 12.0 * self.uniform(),
            ("ages", false) => 18.0 + 72.0 * self.uniform(),
            ("sentinel", false) if self.uniform() < 0.01 => 50.0,
            ("sentinel", _) => self.normal(),
            _ => {
                let uniform = self.uniform();
                let codes = [(0.4, 1.0), (0.7, 2.0), (0.85, 3.0), (0.95, 4.0), (0.99, 9.0)];
                codes.into_iter().find(|(up_to, _)| uniform < *up_to).map_or(99.0, |(_, code)| code)
            }
        }
    }
}

/// The mean of the private rows of a pair.
fn mean_of_pair(pair: &str) -> f64 {
    match pair {
        "top-coded" | "volunteers" | "income" => 10.905f64.exp(),
        "lognormal-0.7-1" => 0.5f64.exp(),
        "poisson-mixture" => 5.7,
        "uniform-lognormal" => 0.72f64.exp(),
        "ages" => 54.0,
        "sentinel" => 0.5,
        _ => 3.2,
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
        let is_pair = PAIRS.contains(&law);
        let truth = if is_pair { mean_of_pair(law) } else { self.shift };
        let public: Vec<f64> = match is_pair {
            true => (0..public).map(|_| coins.of_pair(law, true)).collect(),
            false => (0..public * columns).map(|_| coins.draw(law)).collect(),
        };
        let rows = match is_pair {
            true => (0..private).map(|_| coins.of_pair(law, false)).collect(),
            false => (0..private * columns).map(|_| self.shift + self.spread * coins.draw(law)).collect(),
        };
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
            tally.missed += f64::from(u8::from(low > truth || high < truth));
            tally.width += high - low;
            tally.width_of_errors += 2.0 * 1.96 * noise.hypot(self.spread / (private as f64).sqrt());
        }
        Ok(())
    }
}

/// One column, epsilon 1.
fn pairs(runs: u64, noise: &str) -> Outcome<()> {
    println!("pair public private: missed % withheld % width over the mean");
    for law in PAIRS {
        let counts: &[(usize, usize)] = match law {
            "uniform-lognormal" => &[(100, 5000)],
            "income" | "codes" => &[(10, 2000), (20, 2000), (50, 2000), (200, 2000)],
            _ => &[(50, 3000), (200, 3000), (1000, 3000)],
        };
        for &(public, private) in counts {
            let setting =
                Setting { law, noise, columns: 1, public, private, epsilon: 1.0, shift: 0.0, spread: 1.0 };
            let mut tally = Tally::default();
            (0..runs).try_for_each(|run| setting.release(run, &mut tally))?;
            let percent = 100.0 / (tally.given + tally.withheld);
            println!(
                "{law} {public} {private}: {:.0} {:.0} {:.3}",
                percent * tally.missed,
                percent * tally.withheld,
                tally.width / tally.given.max(1.0) / mean_of_pair(law)
            );
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runs: u64 = arguments.first().map_or(Ok(30), |text| text.parse())?;
    let noise = arguments.get(1).map_or("gaussian", String::as_str);
    let laws: Vec<&str> = match arguments.get(2..) {
        Some(names) if !names.is_empty() => names.iter().map(String::as_str).collect(),
        _ => LAWS.to_vec(),
    };
    if laws == ["pairs"] {
        return pairs(runs, noise);
    }
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
