//! Metrics for people and programs, in the units of the target.

use crate::number::nearest;
use semidp::model::Target;
use semidp::train::metrics::{Metrics, Quality};
use serde_json::{Value, json};

/// As programs read them.
pub fn json(metrics: &Metrics, target: &Target) -> Value {
    let unit = target.unit();
    match metrics.kind {
        Quality::Classification { accuracy, auc } => json!({
            "rows": metrics.rows, "loss": metrics.loss, "accuracy": accuracy, "auc": auc,
        }),
        Quality::Regression { mean_squared_error, mean_absolute_error, r2 } => json!({
            "rows": metrics.rows,
            "loss": metrics.loss,
            "r2": r2,
            "rmse": mean_squared_error.sqrt() * unit,
            "mae": mean_absolute_error * unit,
        }),
    }
}

/// In a sentence.
pub fn words(metrics: &Metrics, target: &Target) -> String {
    let unit = target.unit();
    let measured = match metrics.kind {
        Quality::Classification { accuracy, auc } => {
            let auc = auc.map_or_else(|| "not known".into(), |auc| nearest(auc, 4));
            format!("accuracy {}, AUC {auc}", nearest(accuracy, 4))
        }
        Quality::Regression { mean_squared_error, mean_absolute_error, r2 } => {
            let r2 = r2.map_or_else(|| "not known".into(), |r2| nearest(r2, 4));
            format!(
                "R2 {r2}, root mean squared error {}, mean absolute error {}",
                nearest(mean_squared_error.sqrt() * unit, 4),
                nearest(mean_absolute_error * unit, 4)
            )
        }
    };
    format!("{measured}, loss {}", nearest(metrics.loss, 4))
}
