//! Who earns more than 50,000? Logistic regression on the raw UCI Adult files, government workers public and everybody
//! else private, by the autopilot, by Algorithm 1 and by both naive uses of the rows at several budgets.

use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use flate2::read::GzDecoder;
use semidp::domain::Everywhere;
use semidp::model::{Columns, Task};
use semidp::theory::{TrainingPlan, TrainingProblem, plan_training};
use semidp::train::metrics::{Metrics, Quality};
use semidp::train::{Algorithm, Conduct, Given, PublicRows, Recipe, TrainingData, algorithm_named};
use semidp_accounting::{Adjacency, Certificate, Delta, Epsilon, PrivacyBudget, Steps};
use semidp_core::Randomness;
use semidp_plot::{Axis, Chart, Series, Style};
use semidp_table::{LoadOptions, Schema};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

static ROWS: &[u8] = include_bytes!("../../../../../testdata/adult/adult.data.gz");
static TEST: &[u8] = include_bytes!("../../../../../testdata/adult/adult.test.gz");
static NAMES: &[u8] = include_bytes!("../../../../../testdata/adult/adult.names.gz");

const TARGET: &str = "class";
const EPSILONS: [f64; 3] = [0.1, 0.3, 1.0];
/// The budget that is talked about.
const SHOWN: usize = 1;
const DELTA: f64 = 1e-5;
const AUTOPILOT: &str = "auto";
/// The autopilot, Algorithm 1, and the two naive uses of the same rows.
const ALGORITHMS: [&str; 4] = [AUTOPILOT, "semi-dp-sgd", "dp-sgd", "throw-away"];

/// One model.
struct Trained {
    algorithm: &'static str,
    epsilon: f64,
    accuracy: f64,
    auc: f64,
    certificate: Certificate,
}

/// All of them, and what they were made of.
pub struct Training {
    public_rows: usize,
    private_rows: usize,
    features: usize,
    plans: Vec<TrainingPlan>,
    trained: Vec<Trained>,
}

/// A folder that goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("semidp-demo-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing in it is secret; what cannot be removed is left to the system.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Trains everything.
pub fn train() -> Result<Training, Failure> {
    let cannot = |error: io::Error| Failure::other(format!("the demo cannot write its files: {error}"));
    let folder = Folder::new().map_err(cannot)?;
    let private_rows = unpack(&folder.0).map_err(cannot)?;
    let public_file = folder.0.join("public.data");
    let schema = Schema::infer(&public_file, None)?.schema;
    let columns = Columns::learn(schema, TARGET, Task::Classification, Some(&public_file))?;
    let (public, _) = columns.public_rows(&public_file)?;
    let (test, _) = columns.public_rows(&folder.0.join("adult.test.gz"))?;
    let plans = plan_training(
        &TrainingProblem {
            private_rows: private_rows as u64,
            public_rows: public.len() as u64,
            dimension: columns.features().len() as u64 + 1,
            steps: Steps::new(1000)?,
            batch: private_rows as u64 / 50,
            public_batch: 200,
            clip_norm: 1.0,
            gradient_std: 1.0,
            adjacency: Adjacency::ReplaceOne,
        },
        budget(EPSILONS[SHOWN])?,
    )?;
    let mut trained = Vec::new();
    for epsilon in EPSILONS {
        trained.extend(train_at(epsilon, &columns, &public, &test, &folder.0)?);
    }
    Ok(Training {
        public_rows: public.len(),
        private_rows,
        features: columns.features().len(),
        plans,
        trained,
    })
}

fn budget(epsilon: f64) -> Result<PrivacyBudget, Failure> {
    Ok(PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(DELTA)? })
}

fn shown() -> Result<Vec<&'static dyn Algorithm>, Failure> {
    ALGORITHMS.into_iter().map(|name| Ok(algorithm_named(name)?)).collect()
}

fn train_at(
    epsilon: f64,
    columns: &Columns,
    public: &PublicRows,
    test: &PublicRows,
    folder: &Path,
) -> Result<Vec<Trained>, Failure> {
    let (loss, _) = columns.target().loss(None)?;
    let recipe = Recipe {
        loss: &*loss,
        domain: &Everywhere,
        has_intercept: true,
        budget: budget(epsilon)?,
        adjacency: Adjacency::ReplaceOne,
        given: Given::default(),
    };
    let mut all = Vec::new();
    for algorithm in shown()? {
        let private = columns.private_rows(&folder.join("private.data"), LoadOptions::default())?;
        let data = TrainingData { private: private.in_memory()?.boxed(), public: Some(public.clone()) };
        let conduct = Conduct::new(Randomness::OperatingSystem);
        let done = algorithm.train(&recipe, data, conduct, &mut |_| ())?;
        let measured = Metrics::of(&*loss, &done.model, test).map(|metrics| metrics.kind);
        let Some(Quality::Classification { accuracy, auc: Some(auc) }) = measured else {
            return Err(Failure::other("the demo's test rows have no classes"));
        };
        let (algorithm, certificate) = (algorithm.name(), done.certificate);
        all.push(Trained { algorithm, epsilon, accuracy, auc, certificate });
    }
    Ok(all)
}

/// Writes the files as a user would have them; the number of private rows.
fn unpack(folder: &Path) -> io::Result<usize> {
    let (mut rows, mut names) = (String::new(), String::new());
    GzDecoder::new(ROWS).read_to_string(&mut rows)?;
    GzDecoder::new(NAMES).read_to_string(&mut names)?;
    // The second column of a row is the work class.
    let serves = |row: &&str| row.split(", ").nth(1).is_some_and(|class| class.ends_with("-gov"));
    let (public, private): (Vec<&str>, Vec<&str>) =
        rows.lines().filter(|row| !row.trim().is_empty()).partition(serves);
    for (name, rows) in [("public", &public), ("private", &private)] {
        fs::write(folder.join(format!("{name}.data")), rows.join("\n"))?;
        fs::write(folder.join(format!("{name}.names")), &names)?;
    }
    fs::write(folder.join("adult.test.gz"), TEST)?;
    fs::write(folder.join("adult.names"), &names)?;
    Ok(private.len())
}

impl Training {
    fn at(&self, algorithm: &str, epsilon: f64) -> Option<&Trained> {
        self.trained.iter().find(|trained| trained.algorithm == algorithm && trained.epsilon == epsilon)
    }

    /// Whether the autopilot came to doubt the public rows.
    fn is_doubting(&self, epsilon: f64) -> bool {
        let chosen = self.at(AUTOPILOT, epsilon).map(|trained| &trained.certificate.hyperparameters);
        let verdict = chosen.and_then(|chosen| chosen.iter().find(|entry| entry.name == "public-data"));
        verdict.and_then(|entry| entry.value.as_str()).is_some_and(|said| said.starts_with("doubted"))
    }

    pub fn as_json(&self) -> Value {
        let models: Vec<Value> = self
            .trained
            .iter()
            .map(|trained| {
                json!({
                    "algorithm": trained.algorithm,
                    "budget": { "epsilon": trained.epsilon, "delta": DELTA },
                    "accuracy": trained.accuracy,
                    "auc": trained.auc,
                    "certificate": trained.certificate,
                })
            })
            .collect();
        json!({
            "data": "UCI Adult: government workers public, everybody else private",
            "public_rows": self.public_rows,
            "private_rows": self.private_rows,
            "features": self.features,
            "measured_on": "the 16,281 rows of adult.test",
            "models": models,
        })
    }

    /// AUC against ε.
    pub fn chart(&self) -> Chart {
        let series = ALGORITHMS.iter().enumerate().map(|(colour, algorithm)| {
            let own = self.trained.iter().filter(|trained| trained.algorithm == *algorithm);
            Series {
                name: (*algorithm).into(),
                points: own.map(|trained| (trained.epsilon, trained.auc)).collect(),
                style: Style::Line,
                colour,
            }
        });
        Chart {
            title: "UCI Adult, government workers public: one run each".into(),
            x: Axis::logarithmic(format!("epsilon (replace-one, delta {})", exact(DELTA))),
            y: Axis::linear("AUC on adult.test"),
            series: series.collect(),
            marks: Vec::new(),
        }
    }

    pub fn as_text(&self) -> String {
        let question = format!(
            "UCI Adult again: who earns more than 50,000? {} government workers are public, the other {} people \
             private; {} features after one-hot encoding. Raw files in, no setting given.",
            count(self.public_rows as u64),
            count(self.private_rows as u64),
            self.features
        );
        let mut headings = vec!["algorithm".to_string(), format!("noise left\n(plan, {})", EPSILONS[SHOWN])];
        headings.extend(EPSILONS.map(|epsilon| format!("AUC at\nepsilon {epsilon}")));
        headings.push(format!("accuracy at\nepsilon {}", EPSILONS[SHOWN]));
        headings.push(String::new());
        let auc = |algorithm: &str, epsilon| self.at(algorithm, epsilon).map_or(f64::NAN, |t| t.auc);
        let cells = ALGORITHMS.map(|name| {
            let plan = self.plans.iter().find(|plan| plan.name == name);
            let mut row =
                vec![name.to_string(), plan.map_or_else(|| "-".into(), |p| nearest(p.averaged_noise, 2))];
            row.extend(EPSILONS.map(|epsilon| format!("{:.4}", auc(name, epsilon))));
            row.push(
                self.at(name, EPSILONS[SHOWN]).map_or_else(String::new, |t| format!("{:.4}", t.accuracy)),
            );
            row.push(bar(auc(name, EPSILONS[SHOWN])));
            row
        });
        let cells = cells.to_vec();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut points = vec![
            "The autopilot (auto, the default of train) takes public rows as a prior and private gradients as measurements; \
             Algorithm 1 (semi-dp-sgd) weighs public and private gradients direction by direction, by what each \
             tells; throw-away never looks at the private rows, dp-sgd treats all rows as private."
                .to_string(),
            "Clip norm, step size, ridge, start and weights came from the public rows, batch and steps from counts: \
             nothing was tuned on private rows."
                .to_string(),
        ];
        if let Some(shown) = self.at(AUTOPILOT, EPSILONS[SHOWN]) {
            let guarantee = &shown.certificate.guarantee;
            points.push(format!(
                "Certificate of the autopilot's model at epsilon {}: epsilon {} at delta {}, {} adjacency, {} noisy steps, exact \
                 arithmetic. Each model alone keeps its budget; together they would cost more.",
                EPSILONS[SHOWN],
                bound(guarantee.epsilon.get()),
                exact(guarantee.delta.get()),
                guarantee.adjacency,
                count(shown.certificate.releases),
            ));
        }
        let doubting = EPSILONS.into_iter().filter(|epsilon| self.is_doubting(*epsilon));
        let doubting: Vec<String> = doubting.map(|epsilon| epsilon.to_string()).collect();
        points.push(format!(
            "Government workers are not like the rest: with a larger budget the private rows know better. The autopilot \
             tests that with what it releases, and came to doubt the public rows at {}; weighting by variance alone does not.",
            if doubting.is_empty() { "no budget here".into() } else { format!("epsilon {}", doubting.join(", ")) }
        ));
        let points: Vec<String> =
            points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        format!(
            "{}\n\n{}\n\n{}",
            table::wrap(&question, ""),
            table::columns(&headings, cells),
            points.join("\n")
        )
    }
}

/// From 0.85 to 0.91, the range that matters here.
fn bar(auc: f64) -> String {
    let length = ((auc - 0.85) / 0.06 * 20.0).round().clamp(0.0, 20.0) as usize;
    "█".repeat(length) + &"·".repeat(20 - length)
}
