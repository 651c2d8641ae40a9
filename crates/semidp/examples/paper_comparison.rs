//! The paper's comparison in its linear regression: Algorithm 1 against PDA-MD and DP-SGD, each with a step size chosen
//! on one draw and measured on others.
//!
//! `cargo run --release -p semidp --example paper_comparison -- 10` measures ten draws; `-- 10 0.1 cold` one setting
//! alone. ε = 2 and δ = 1e-5 under add-remove, T = 5000 steps, K = 500, K_pub = 200, C = 1. Algorithm 1 takes its weight
//! from the horizon formula for clipped public gradients, or from two values for gradients as they are; PDA-MD regularises
//! its Hessian by 0.01; DP-SGD treats all rows as private. Each has the grid below and the best of four outputs: the mean of
//! all iterates, of all but the first fifth, of the last half, or the last one. Noise comes from seeds, so that anybody finds the same numbers:
//! the rows are synthetic, and nothing here is private.

mod paper_rows;

use paper_rows::{BATCH, Draw, ROWS, summary};
use semidp::domain::Everywhere;
use semidp::loss::Squared;
use semidp::train::{
    Alpha, Average, Conduct, Given, PublicGradient, Recipe, TrainingData, WarmStart, algorithm_named,
};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, Delta, Epsilon, Private, Randomness, SampleRate, Steps};

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

const STEPS: u64 = 5000;
/// What becomes the model: the mean of all iterates, of all but the first fifth, of the last half, or the last one.
const OUTPUTS: [&str; 4] = ["mean", "late", "tail", "last"];

/// Draws are measured from here on. Earlier ones were looked at while the grids were made.
const MEASURED_FROM: u64 = 100;

const CONTENDERS: [&str; 3] = ["semi-dp-sgd", "pda-md", "dp-sgd"];

/// Step sizes that are tried. A cold start has further to go, more public rows leave less of the way, and the steps of
/// PDA-MD are shorter by up to the condition of the public Hessian.
fn rates(name: &str, share: f64, start: &str) -> [f64; 3] {
    match (name, start) {
        ("pda-md", "warm") if share < 0.2 => [0.9, 1.6, 2.8],
        ("pda-md", "warm") => [0.06, 0.12, 0.24],
        ("pda-md", _) => [34.0, 60.0, 110.0],
        ("dp-sgd", "warm") => [0.05, 0.1, 0.2],
        (_, "warm") => [0.15, 0.25, 0.4],
        ("dp-sgd", _) => [0.6, 1.1, 1.9],
        _ => [0.4, 0.6, 1.1],
    }
}

/// Weights of private gradients that are tried, with what is done to public ones: the formula's for clipped ones, and in
/// Algorithm 1 two more, as the paper has a grid of them. Public gradients that are not clipped are about a hundred times
/// as long as private ones, which are all clipped here, so that a weight of 0.99 is no large one; and fewer public rows
/// deserve less.
fn weights(name: &str, share: f64) -> Vec<(Alpha, PublicGradient)> {
    let formula = (Alpha::Horizon, PublicGradient::Clip);
    match name {
        "semi-dp-sgd" => {
            let given = if share < 0.2 { [0.996, 0.997] } else { [0.991, 0.996] };
            let raw = given.map(|alpha| (Alpha::Given(alpha), PublicGradient::Raw));
            [formula].into_iter().chain(raw).collect()
        }
        _ => vec![formula],
    }
}

/// What tuning chooses.
#[derive(Clone, Copy)]
struct Choice {
    rate: f64,
    weight: (Alpha, PublicGradient),
    output: usize,
}

/// The share of public rows, whether training starts at their minimiser, and the paper's three losses.
struct Setting {
    share: f64,
    start: &'static str,
    paper: Option<[f64; 3]>,
}

const SETTINGS: [Setting; 4] = [
    Setting { share: 0.1, start: "warm", paper: Some([1.1648, 1.1880, 1.1695]) },
    Setting { share: 0.25, start: "warm", paper: Some([1.1260, 1.1306, 1.1346]) },
    Setting { share: 0.1, start: "cold", paper: Some([1.6313, 34.4665, 2.7226]) },
    Setting { share: 0.25, start: "cold", paper: None },
];

impl Setting {
    fn public_rows(&self) -> usize {
        (self.share * ROWS as f64).round() as usize
    }

    /// The test losses of each output, all of one run.
    fn train(&self, name: &str, choice: Choice, draw: &Draw, seed: u64) -> Answer<[f64; 4]> {
        let rows = if name == "dp-sgd" { ROWS } else { ROWS - self.public_rows() };
        let recipe = Recipe {
            loss: &Squared,
            domain: &Everywhere,
            has_intercept: false,
            budget: PrivacyBudget::Approximate { epsilon: Epsilon::new(2.0)?, delta: Delta::new(1e-5)? },
            adjacency: Adjacency::AddRemove,
            given: Given {
                clip_norm: Some(1.0),
                steps: Some(Steps::new(STEPS)?),
                sample_rate: Some(SampleRate::new(BATCH / rows as f64)?),
                expected_batch: Some(BATCH),
                public_batch: Some(200),
                learning_rate: Some(choice.rate),
                alpha: Some(choice.weight.0),
                public_gradient: Some(choice.weight.1),
                average: Some(Average::Mean),
                warm_start: Some(if self.start == "warm" { WarmStart::Minimum } else { WarmStart::Cold }),
                hessian_regularisation: Some(0.01),
                ..Given::default()
            },
        };
        let data = TrainingData {
            private: Private::new(Box::new(draw.private.clone())),
            public: Some(draw.public.clone()),
        };
        let conduct = Conduct::new(Randomness::Seed(seed));
        let (mut late, mut tail, mut last) = (Vec::new(), Vec::new(), f64::NAN);
        let trained = algorithm_named(name)?.train(&recipe, data, conduct, &mut |progress| {
            let weights = &progress.model.weights;
            // The iterates that steps start at, as the library averages them.
            for (sum, first) in [(&mut late, STEPS / 5), (&mut tail, STEPS / 2)] {
                sum.resize(weights.len(), 0.0);
                if (first..STEPS).contains(&progress.step) {
                    sum.iter_mut().zip(weights).for_each(|(sum, w)| *sum += w / (STEPS - first) as f64);
                }
            }
            if progress.step == STEPS {
                last = draw.test_loss(progress.model);
            }
        })?;
        let [late, tail] = [late, tail].map(|mean| draw.test_loss(&trained.model.with_weights(mean)));
        Ok([draw.test_loss(&trained.model), late, tail, last])
    }

    /// What has the least test loss on a draw that is not used again.
    fn tune(&self, name: &str) -> Answer<Choice> {
        let draw = Draw::new(0, self.public_rows())?;
        let mut best =
            (f64::INFINITY, Choice { rate: f64::NAN, weight: weights(name, self.share)[0], output: 0 });
        for rate in rates(name, self.share, self.start) {
            for weight in weights(name, self.share) {
                let losses = self.train(name, Choice { rate, weight, output: 0 }, &draw, 0)?;
                let [mean, late, tail, last] = losses;
                let shown = if name == "semi-dp-sgd" { format!("{weight:?}") } else { String::new() };
                println!(
                    "  tuning {name:12} rate {rate:5} {shown:19}: mean {mean:.4}, late {late:.4}, tail {tail:.4}, last {last:.4}"
                );
                for (output, loss) in losses.into_iter().enumerate() {
                    if loss < best.0 {
                        best = (loss, Choice { rate, weight, output });
                    }
                }
            }
        }
        Ok(best.1)
    }

    fn compare(&self, draws: u64) -> Answer<()> {
        println!("public share {}, {} start:", self.share, self.start);
        let chosen: Vec<Choice> = CONTENDERS.iter().map(|name| self.tune(name)).collect::<Answer<_>>()?;
        let mut losses = vec![Vec::new(); CONTENDERS.len()];
        for number in (1..=draws).map(|number| MEASURED_FROM + number) {
            let draw = Draw::new(number, self.public_rows())?;
            for ((losses, name), choice) in losses.iter_mut().zip(CONTENDERS).zip(&chosen) {
                losses.push(self.train(name, *choice, &draw, number)?[choice.output]);
            }
            let row: Vec<String> = losses.iter().map(|own| format!("{:.4}", own[own.len() - 1])).collect();
            println!("  draw {number}: {}", row.join("  "));
        }
        println!("  algorithm, rate, output, test loss, Algorithm 1 minus it, the paper's");
        for (place, (name, choice)) in CONTENDERS.iter().zip(&chosen).enumerate() {
            let Choice { rate, output, .. } = choice;
            let (mean, error) = summary(&losses[place]);
            let gaps: Vec<f64> = losses[0].iter().zip(&losses[place]).map(|(a, b)| a - b).collect();
            let (gap, gap_error) = summary(&gaps);
            let paper = self.paper.map_or("-".into(), |paper| format!("{:.4}", paper[place]));
            println!(
                "  {name:12} {rate:5} {}  {mean:9.4} ± {error:.4}  {gap:+9.4} ± {gap_error:.4}  {paper:>9}",
                OUTPUTS[*output]
            );
        }
        Ok(())
    }
}

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let draws: u64 = arguments.first().map_or(Ok(10), |text| text.parse())?;
    let share: Option<f64> = arguments.get(1).map(|text| text.parse()).transpose()?;
    for setting in &SETTINGS {
        let is_wanted = share.is_none_or(|share| share == setting.share)
            && arguments.get(2).is_none_or(|start| start == setting.start);
        if is_wanted {
            setting.compare(draws)?;
        }
    }
    Ok(())
}
