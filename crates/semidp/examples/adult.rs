//! Algorithm 1 against both naive uses of the data: logistic regression on the raw UCI Adult files with a random 2 % of
//! the training rows public.
//!
//! `cargo run --release -p semidp --example adult -- 10` takes ten splits, trains by each at ε = 0.1
//! and 1 (replace-one, δ = 1e-5) and prints AUC on `adult.test` with paired differences. Splits and noise are seeded,
//! so that it prints the same every time; such runs are not private.

use semidp::domain::Everywhere;
use semidp::model::{Columns, Task};
use semidp::train::metrics::{Metrics, Quality};
use semidp::train::{Conduct, Given, Recipe, TrainingData, algorithm_named};
use semidp_accounting::PrivacyBudget;
use semidp_core::{Adjacency, Delta, Epsilon, Randomness};
use semidp_table::{LoadOptions, Schema};
use std::io::Read;
use std::path::Path;

/// One public row in so many.
const PUBLIC_SHARE: usize = 50;
const NAMES: [&str; 4] = ["auto", "semi-dp-sgd", "dp-sgd", "throw-away"];

/// Mean and standard error.
fn summary(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, (variance / count).sqrt())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let splits: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/adult");
    let folder = std::env::temp_dir().join(format!("semidp-adult-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(data.join("adult.data.gz"))?)
        .read_to_string(&mut text)?;
    let rows: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    for name in ["public", "private"] {
        std::fs::copy(data.join("adult.names.gz"), folder.join(format!("{name}.names.gz")))?;
    }
    for epsilon in [0.1, 1.0] {
        let mut areas = vec![Vec::new(); NAMES.len()];
        for split in 0..splits {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            let mut state = split;
            for i in (1..order.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                order.swap(i, (state >> 33) as usize % (i + 1));
            }
            let (public, private) = order.split_at(rows.len() / PUBLIC_SHARE);
            let (public_file, private_file) = (folder.join("public.data"), folder.join("private.data"));
            for (file, chosen) in [(&public_file, public), (&private_file, private)] {
                let lines: Vec<&str> = chosen.iter().map(|row| rows[*row]).collect();
                std::fs::write(file, lines.join("\n"))?;
            }
            let schema = Schema::infer(&public_file, None)?.schema;
            let columns = Columns::learn(schema, "class", Task::Classification, Some(&public_file))?;
            let (public, _) = columns.public_rows(&public_file)?;
            let (test, _) = columns.public_rows(&data.join("adult.test.gz"))?;
            let (loss, _) = columns.target().loss(None)?;
            let recipe = Recipe {
                loss: &*loss,
                domain: &Everywhere,
                has_intercept: true,
                budget: PrivacyBudget::Approximate {
                    epsilon: Epsilon::new(epsilon)?,
                    delta: Delta::new(1e-5)?,
                },
                adjacency: Adjacency::ReplaceOne,
                given: Given::default(),
            };
            for (name, areas) in NAMES.into_iter().zip(&mut areas) {
                let private =
                    columns.private_rows(&private_file, LoadOptions::default())?.in_memory()?.boxed();
                let data = TrainingData { private, public: Some(public.clone()) };
                let conduct = Conduct::new(Randomness::Seed(split));
                let trained = algorithm_named(name)?.train(&recipe, data, conduct, &mut |_| ())?;
                if let Some(Metrics { kind: Quality::Classification { auc: Some(auc), .. }, .. }) =
                    Metrics::of(&*loss, &trained.model, &test)
                {
                    areas.push(auc);
                }
            }
        }
        for (name, own) in NAMES.iter().zip(&areas) {
            let gaps: Vec<f64> = areas[0].iter().zip(own).map(|(semi, own)| semi - own).collect();
            let (gap, error) = summary(&gaps);
            println!(
                "epsilon {epsilon:4} {name:12} AUC {:.4}; {} minus it: {gap:+.5} ± {error:.5}",
                summary(own).0,
                NAMES[0]
            );
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
