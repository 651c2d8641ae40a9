//! The paper's linear regression without a grid: step size and weight from public rows and theory.
//!
//! `cargo run --release -p semidp --example paper_setting -- 10` runs ten draws and prints the test loss of Algorithm 1,
//! DP-SGD and throw-away, all but the last from the public minimiser. Noise comes from the operating system. 27,000 rows
//! are private and 3,000 public.

mod paper_rows;

use paper_rows::{BATCH, Draw, ROWS, summary};
use semidp::domain::Everywhere;
use semidp::loss::Squared;
use semidp::train::{Alpha, Average, Conduct, Given, Recipe, TrainingData, WarmStart, algorithm_named};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, Delta, Epsilon, Private, Randomness, SampleRate, Steps};

const PUBLIC_ROWS: usize = 3_000;
const NAMES: [&str; 3] = ["semi-dp-sgd", "dp-sgd", "throw-away"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let draws: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let mut losses = vec![Vec::new(); NAMES.len()];
    for number in 0..draws {
        let draw = Draw::new(number, PUBLIC_ROWS)?;
        for (name, losses) in NAMES.into_iter().zip(&mut losses) {
            let recipe = Recipe {
                loss: &Squared,
                domain: &Everywhere,
                has_intercept: false,
                budget: PrivacyBudget::Approximate { epsilon: Epsilon::new(2.0)?, delta: Delta::new(1e-5)? },
                adjacency: Adjacency::AddRemove,
                given: Given {
                    clip_norm: Some(1.0),
                    steps: Some(Steps::new(5000)?),
                    sample_rate: Some(SampleRate::new(BATCH / (ROWS - PUBLIC_ROWS) as f64)?),
                    expected_batch: Some(BATCH),
                    public_batch: Some(200),
                    warm_start: Some(WarmStart::Minimum),
                    alpha: Some(Alpha::Horizon),
                    average: Some(Average::Tail(0.5)),
                    ..Given::default()
                },
            };
            let data = TrainingData {
                private: Private::new(Box::new(draw.private.clone())),
                public: Some(draw.public.clone()),
            };
            let conduct = Conduct::new(Randomness::OperatingSystem);
            let begun = std::time::Instant::now();
            let trained = algorithm_named(name)?.train(&recipe, data, conduct, &mut |_| ())?;
            let loss = draw.test_loss(&trained.model);
            losses.push(loss);
            println!(
                "draw {number} {name:12} test loss {loss:.4} alpha {:.4} epsilon {:.5} in {:.1} s",
                trained.alpha,
                trained.certificate.guarantee.epsilon.get(),
                begun.elapsed().as_secs_f64()
            );
        }
    }
    for (name, losses) in NAMES.iter().zip(&losses) {
        let (mean, error) = summary(losses);
        println!("{name:12} mean test loss {mean:.4} ± {error:.4}");
    }
    Ok(())
}
