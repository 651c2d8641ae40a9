//! The mean of three columns of the Adult data set: most rows treated as private, some as public.
//!
//! Everything that is chosen comes from the public rows: centre, scales, clip norm, weights. Three estimators
//! then spend the same budget, and because this data set is public in truth, their errors can be shown.

use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use semidp::mean::{Evidence, Plan, Request, Target};
use semidp_accounting::{Adjacency, Delta, Epsilon, PrivacyBudget};
use semidp_core::{Certificate, DenseTable, Private, Public, Session};
use serde_json::{Value, json};

const NAMES: [&str; 3] = ["age", "years of education", "hours a week"];
const WIDTH: usize = NAMES.len();
static NUMBERS: &[u8] = include_bytes!("../../../../../testdata/adult/age_education_hours.u8");

/// Every 16th row is public.
const EVERY: usize = 16;
const EPSILON: f64 = 0.05;
const DELTA: f64 = 1e-6;
const ESTIMATORS: [&str; 3] = ["throw-away", "gaussian", "weighted-gaussian"];

type Row = [f64; WIDTH];

/// One estimator's plan and result.
struct Released {
    plan: Plan,
    mean: Row,
    certificate: Certificate,
}

/// The releases, and what to compare them with.
pub struct Means {
    public_rows: usize,
    private_rows: usize,
    /// The standard deviation of each column in the public rows: the units of errors.
    spread: Row,
    released: Vec<Released>,
    /// Of all rows; known because this data is public in truth.
    exact: Row,
}

/// Runs the releases.
pub fn release() -> Result<Means, Failure> {
    let rows: Vec<Row> =
        NUMBERS.chunks_exact(WIDTH).map(|bytes| std::array::from_fn(|j| f64::from(bytes[j]))).collect();
    let chosen = |public: bool| {
        let rows = rows.iter().enumerate().filter(move |(i, _)| i.is_multiple_of(EVERY) == public);
        rows.map(|(_, row)| *row).collect::<Vec<Row>>()
    };
    let (public, private) = (chosen(true), chosen(false));

    // What the public rows teach: the unit of each column, then mean and distances in these units.
    let raw = Evidence::of(&Public(DenseTable::new(public.concat(), WIDTH)?))?;
    let spread: Row = std::array::from_fn(|j| raw.variance()[j].sqrt());
    let scaled = |rows: &[Row]| -> Vec<f64> {
        rows.iter().flat_map(|row| (0..WIDTH).map(|j| row[j] / spread[j]).collect::<Vec<_>>()).collect()
    };
    let evidence = Evidence::of(&Public(DenseTable::new(scaled(&public), WIDTH)?))?;
    let centre = Public(evidence.mean().to_vec());

    // The private rows, behind the wall.
    let private_rows = private.len();
    let rows_behind = Private::new(DenseTable::new(scaled(&private), WIDTH)?);
    drop(private);
    let session = Session::new(rows_behind, Adjacency::ReplaceOne)?;
    let budget = PrivacyBudget::Approximate { epsilon: Epsilon::new(EPSILON)?, delta: Delta::new(DELTA)? };
    let mut released = Vec::new();
    for name in ESTIMATORS {
        let request = Request {
            budget,
            target: Target::Population,
            estimator: Some(name.into()),
            exact: true,
            radius: None,
            std: None,
            private_weight: None,
            is_centred: true,
        };
        let plan = request.plan(Some(&evidence), WIDTH, private_rows as u64)?;
        let release = plan.release(&session, &centre, &centre)?;
        let mean = std::array::from_fn(|j| release.value[j] * spread[j]);
        released.push(Released { plan, mean, certificate: release.certificate });
    }
    let exact = std::array::from_fn(|j| rows.iter().map(|row| row[j]).sum::<f64>() / rows.len() as f64);
    Ok(Means { public_rows: public.len(), private_rows, spread, released, exact })
}

impl Means {
    pub fn as_json(&self) -> Value {
        let estimators: Vec<Value> = self
            .released
            .iter()
            .map(|released| {
                json!({
                    "name": released.plan.name(),
                    "mean": released.mean,
                    "predicted_mse": released.plan.predicted_mse(),
                    "squared_error": self.squared_error(&released.mean),
                    "clip_norm": released.plan.clip_norm(),
                    "private_weight": released.plan.private_weight(),
                    "certificate": released.certificate,
                })
            })
            .collect();
        json!({
            "data": "UCI Adult",
            "columns": NAMES,
            "public_rows": self.public_rows,
            "private_rows": self.private_rows,
            "budget": { "epsilon": EPSILON, "delta": DELTA },
            "unit_of_errors": self.spread,
            "estimators": estimators,
            "exact_mean_for_comparison": self.exact,
        })
    }

    /// In standard deviations of each column.
    fn squared_error(&self, mean: &Row) -> f64 {
        (0..WIDTH).map(|j| ((mean[j] - self.exact[j]) / self.spread[j]).powi(2)).sum()
    }

    pub fn as_text(&self) -> String {
        let question = format!(
            "UCI Adult, {} rows. Say {} of them are public and {} private. What is the mean, with epsilon {EPSILON} \
             at delta {} for each private row?",
            count((self.public_rows + self.private_rows) as u64),
            count(self.public_rows as u64),
            count(self.private_rows as u64),
            exact(DELTA),
        );
        let mut headings = vec!["", "predicted\nerror"];
        headings.extend(NAMES);
        let mut cells: Vec<Vec<String>> = self
            .released
            .iter()
            .map(|released| {
                let mut row =
                    vec![released.plan.name().to_string(), nearest(released.plan.predicted_mse(), 3)];
                row.extend(released.mean.map(|x| format!("{x:.3}")));
                row
            })
            .collect();
        let mut truth = vec!["exact, for comparison".to_string(), String::new()];
        truth.extend(self.exact.map(|x| format!("{x:.3}")));
        cells.push(truth);
        let best = &self.released[self.released.len() - 1];
        let times = |other: &Released| nearest(other.plan.predicted_mse() / best.plan.predicted_mse(), 3);
        let guarantee = &best.certificate.guarantee;
        let points = [
            format!(
                "Throwing the private rows away has {} times the error of weighting both by what they tell; treating \
                 all rows as private {} times. Errors are squared, in standard deviations of each column, and known \
                 before any private row is read.",
                times(&self.released[0]),
                times(&self.released[1])
            ),
            format!(
                "The public rows gave centre, scales, weights and the clip norm, {}: nothing was tuned on private rows.",
                nearest(best.plan.clip_norm().unwrap_or(f64::NAN), 3)
            ),
            format!(
                "Certificate: epsilon {} at delta {}, {} adjacency, exact arithmetic, noise from the operating \
                 system: run it again and the numbers differ a little.",
                bound(guarantee.epsilon.get()),
                exact(guarantee.delta.get()),
                guarantee.adjacency,
            ),
            "The exact row is shown because this data set is public in truth; with real private data nobody sees it. \
             Two releases spend two budgets: the second is here for comparison only."
                .to_string(),
        ];
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
