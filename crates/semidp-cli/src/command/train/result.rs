//! The answer of `semidp train`.

use crate::command::plan::{budget_json, budget_words};
use crate::failure::Failure;
use crate::metrics;
use crate::number::{count, exact, nearest};
use crate::report::bound;
use crate::table;
use semidp::model::SavedModel;
use semidp::train::metrics::Metrics;
use semidp_accounting::{Adjacency, Arithmetic, PrivacyBudget, Provenance, RandomSource, epsilon};
use serde_json::{Map, Value, json};
use std::path::Path;

/// A trained model and what is known about it.
pub struct Outcome<'a> {
    pub saved: &'a SavedModel,
    /// None where none was kept.
    pub budget: Option<PrivacyBudget>,
    pub public_rows: Option<usize>,
    /// On public rows.
    pub metrics: Option<Metrics>,
    /// Whether those were kept out of training.
    pub validated: bool,
    pub path: &'a Path,
    /// What a reader should know.
    pub notes: &'a [String],
}

impl Outcome<'_> {
    /// The same events under the other adjacency, where that means anything.
    fn other_adjacency(&self) -> Value {
        let certificate = &self.saved.certificate;
        let guarantee = &certificate.guarantee;
        // Nothing is promised, whatever is exchanged, added or removed.
        if !certificate.declassified.is_empty() {
            return Value::Null;
        }
        // Rates, weights and divisors of a replace-one run come from the number of rows, which add-remove hides.
        if guarantee.adjacency == Adjacency::ReplaceOne && !certificate.events.is_empty() {
            return Value::Null;
        }
        let other = guarantee.adjacency.other();
        // No accountant may know; the run is done, and its own guarantee stands.
        let Ok(cost) = epsilon(&certificate.events, other, guarantee.delta) else { return Value::Null };
        json!({ "adjacency": other.name(), "epsilon": cost.value.get(), "delta": guarantee.delta.get() })
    }

    fn measured_on(&self) -> &'static str {
        if self.validated { "validation rows" } else { "public rows, which were trained on" }
    }

    pub fn json(&self) -> Result<Value, Failure> {
        let saved = self.saved;
        let certificate = &saved.certificate;
        let guarantee = &certificate.guarantee;
        let hyperparameters: Map<String, Value> = certificate
            .hyperparameters
            .iter()
            .map(|Provenance { name, value, source }| {
                (name.replace('-', "_"), json!({ "value": value, "source": source }))
            })
            .collect();
        let certificate_json = serde_json::to_value(certificate)
            .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?;
        let is_open = !certificate.declassified.is_empty();
        let public_metrics = self.metrics.as_ref().map(|found| {
            let mut measured = metrics::json(found, &saved.target);
            measured["on"] = json!(self.measured_on());
            measured
        });
        Ok(json!({
            "algorithm": saved.algorithm,
            "task": saved.target.task().name(),
            "target": saved.target.column(),
            "classes": saved.target.classes(),
            "loss": saved.loss,
            "features": saved.features.len(),
            "public_rows": self.public_rows,
            "hyperparameters": hyperparameters,
            "public_metrics": public_metrics,
            "budget": self.budget.map(budget_json),
            "private": certificate.declassified.is_empty(),
            // Infinity is null in JSON.
            "epsilon": guarantee.epsilon.get(),
            "delta": if is_open { Value::Null } else { json!(guarantee.delta.get()) },
            "rho": guarantee.rho.map(|rho| rho.get()),
            "adjacency": guarantee.adjacency.name(),
            "accountants": certificate.accountants,
            "other_adjacency": self.other_adjacency(),
            "protects": if is_open { "nothing: NOT private" } else { "private rows only" },
            "arithmetic": certificate.arithmetic,
            "certificate": certificate_json,
            "notes": self.notes,
            "model": self.path.display().to_string(),
        }))
    }

    pub fn text(&self) -> String {
        let saved = self.saved;
        let certificate = &saved.certificate;
        let guarantee = &certificate.guarantee;
        let rows = certificate.hyperparameters.iter().map(|Provenance { name, value, source }| {
            let value = match value {
                Value::Number(number) => nearest(number.as_f64().unwrap_or(f64::NAN), 5),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            vec![name.clone(), value, source.clone()]
        });
        let mut points = vec![format!(
            "Trained by {} to predict {} from {} features{}.",
            saved.algorithm,
            saved.target.column(),
            count(saved.features.len() as u64),
            self.public_rows.map_or_else(String::new, |rows| format!(", {} public rows", count(rows as u64)))
        )];
        if let Some(found) = &self.metrics {
            points.push(format!("On {}: {}.", self.measured_on(), metrics::words(found, &saved.target)));
        }
        points.push(if !certificate.declassified.is_empty() {
            "Certificate: NOT private. The private rows were used as they are; epsilon is infinite, nothing is promised, \
             and `verify` refuses it."
                .into()
        } else if certificate.events.is_empty() {
            "Certificate: epsilon 0; no private row was used.".into()
        } else {
            let arithmetic = match certificate.arithmetic {
                Arithmetic::Exact => "exact",
                Arithmetic::Idealised => "idealised",
            };
            format!(
                "Certificate: epsilon {} at delta {} (the budget was {}), {} adjacency, {arithmetic} arithmetic.",
                bound(guarantee.epsilon.get()),
                exact(guarantee.delta.get()),
                self.budget.map_or_else(String::new, budget_words),
                guarantee.adjacency
            )
        });
        if certificate.random_source == RandomSource::Seeded {
            points
                .push("NOT private: noise and batches came from --seed, and the certificate says so.".into());
        }
        for outside in &certificate.not_covered {
            points.push(format!("Not covered by the certificate: {outside}."));
        }
        for note in &certificate.notes {
            points.push(format!("Note: {note}."));
        }
        points.push(format!("The model is in {}; it holds the certificate.", self.path.display()));
        let points: Vec<String> =
            points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        let table = table::columns(&["hyper-parameter", "value", "from"], rows.collect());
        format!("{table}\n\n{}", points.join("\n"))
    }
}
