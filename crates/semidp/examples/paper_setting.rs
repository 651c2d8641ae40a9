//! The paper's linear regression without a grid: step size and weight from public rows and theory.
//!
//! `cargo run --release -p semidp --example paper_setting -- 10` runs ten draws and prints the test loss of throw-away,
//! DP-SGD and Algorithm 1. Noise comes from the operating system.
//!
//! Rows are x ~ N(0, I) in 2000 dimensions and y = ⟨x, w*⟩ + N(0, 1), w* ~ N(0, I); 27,000 rows are private and 3,000
//! public. The test loss E(⟨w, x⟩ − y)² is then exactly 1 + ‖w − w*‖².

use semidp::domain::Everywhere;
use semidp::loss::Squared;
use semidp::train::{
    ALGORITHMS, Alpha, Average, Conduct, Given, PublicRows, Recipe, TrainingData, WarmStart,
};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, Delta, DenseTable, Epsilon, Private, Public, Randomness, SampleRate, Steps};

const FEATURES: usize = 2000;
const ROWS: usize = 30_000;
const PUBLIC_ROWS: usize = 3_000;
const BATCH: f64 = 500.0;

/// Normal numbers for synthetic data, by Box and Muller; never for noise.
struct Normals {
    state: u64,
}

impl Normals {
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pair(&mut self) -> [f64; 2] {
        let (length, angle) = ((1.0 - self.uniform()).ln(), std::f64::consts::TAU * self.uniform());
        let length = (-2.0 * length).sqrt();
        [length * angle.cos(), length * angle.sin()]
    }

    fn fill(&mut self, count: usize) -> Vec<f64> {
        let mut values: Vec<f64> = (0..count.div_ceil(2)).flat_map(|_| self.pair()).collect();
        values.truncate(count);
        values
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let draws: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let mut losses = vec![Vec::new(); ALGORITHMS.len()];
    for draw in 0..draws {
        let mut normals = Normals { state: 1000 * draw };
        let truth = normals.fill(FEATURES);
        let mut rows = |count: usize| {
            let mut values = Vec::with_capacity(count * (FEATURES + 1));
            for _ in 0..count {
                let x = normals.fill(FEATURES);
                let score: f64 = x.iter().zip(&truth).map(|(x, w)| x * w).sum();
                values.extend(x.iter().map(|x| *x as f32));
                values.push((score + normals.pair()[0]) as f32);
            }
            DenseTable::new(values, FEATURES + 1)
        };
        let public = PublicRows::load(&Public(rows(PUBLIC_ROWS)?))?;
        let private = std::sync::Arc::new(rows(ROWS - PUBLIC_ROWS)?);
        for (algorithm, losses) in ALGORITHMS.into_iter().zip(&mut losses) {
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
                private: Private::new(Box::new(private.clone())),
                public: Some(public.clone()),
            };
            let conduct = Conduct { randomness: Randomness::OperatingSystem, threads: None, memory: None };
            let begun = std::time::Instant::now();
            let trained = algorithm.train(&recipe, data, conduct, &mut |_| ())?;
            let gaps = trained.model.weights.iter().zip(&truth).map(|(w, t)| (w - t).powi(2));
            let loss = 1.0 + gaps.sum::<f64>();
            losses.push(loss);
            println!(
                "draw {draw} {:12} test loss {loss:.4} alpha {:.4} epsilon {:.5} in {:.1} s",
                algorithm.name(),
                trained.alpha,
                trained.certificate.guarantee.epsilon.get(),
                begun.elapsed().as_secs_f64()
            );
        }
    }
    for (algorithm, losses) in ALGORITHMS.iter().zip(&losses) {
        let count = losses.len() as f64;
        let mean = losses.iter().sum::<f64>() / count;
        let spread = losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        println!("{:12} mean test loss {mean:.4} ± {:.4}", algorithm.name(), (spread / count).sqrt());
    }
    Ok(())
}
