//! The answer, in the units of the columns.

use super::data::Decoder;
use crate::command::plan::{budget_json, budget_words};
use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use semidp::mean::{Errors, Evidence, Law, Plan};
use semidp_accounting::{Arithmetic, RandomSource};
use semidp_core::Release;
use serde_json::{Value, json};

/// A released mean and everything known about it.
pub struct Estimate {
    pub columns: Vec<String>,
    pub decoder: Decoder,
    /// Whether clip norm and standard deviation are in public standard deviations.
    pub is_scaled: bool,
    pub plan: Plan,
    pub errors: Result<Errors, &'static str>,
    pub confidence: f64,
    pub evidence: Option<Evidence>,
    pub release: Release<Vec<f64>>,
}

impl Estimate {
    fn mean(&self) -> Vec<f64> {
        self.decoder.decode(&self.release.value)
    }

    fn in_units(&self, values: &[f64]) -> Vec<f64> {
        values.iter().zip(&self.decoder.scale).map(|(x, scale)| x * scale).collect()
    }

    /// An interval a column, where its law is known.
    fn intervals(&self) -> Option<Vec<Option<[f64; 2]>>> {
        let errors = self.errors.as_ref().ok()?;
        let units = errors.half_widths.iter().zip(&self.decoder.scale);
        let widths = units.map(|(half, scale)| half.map(|half| half * scale));
        Some(self.mean().iter().zip(widths).map(|(x, half)| half.map(|half| [x - half, x + half])).collect())
    }

    /// In words: the unit of lengths, and the norm they are measured in.
    fn unit(&self) -> &'static str {
        match (self.is_scaled, self.plan.law()) {
            (true, Some(Law::Laplace)) => "public standard deviations (l1 norm)",
            (true, _) => "public standard deviations",
            (false, Some(Law::Laplace)) => "units of the columns (l1 norm)",
            (false, _) => "units of the columns",
        }
    }

    /// The predicted squared error in the units of the columns. Where they were scaled, the bias of clipping
    /// counts at the largest scale.
    fn predicted_mse(&self) -> f64 {
        let scaled = self.plan.predicted_mse();
        let (mut least, mut largest) = (f64::INFINITY, 0.0f64);
        self.decoder.scale.iter().for_each(|s| (least, largest) = (least.min(*s), largest.max(*s)));
        if least == 1.0 && largest == 1.0 {
            return scaled;
        }
        match &self.errors {
            Ok(errors) => {
                let without_bias: f64 =
                    self.in_units(&errors.standard_errors).iter().map(|error| error * error).sum();
                let plain: f64 = errors.standard_errors.iter().map(|error| error * error).sum();
                without_bias + (scaled - plain).max(0.0) * largest * largest
            }
            Err(_) => scaled * largest * largest,
        }
    }

    fn clipped(&self) -> Option<(f64, f64)> {
        let radius = self.plan.clip_norm()?;
        let law = self.plan.law()?;
        self.evidence.as_ref().map(|evidence| evidence.clipped_share(law, radius))
    }

    pub fn json(&self) -> Result<Value, Failure> {
        let problem = self.plan.problem();
        let guarantee = &self.release.certificate.guarantee;
        let certificate = serde_json::to_value(&self.release.certificate)
            .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?;
        let standard_errors = self.errors.as_ref().ok().map(|errors| self.in_units(&errors.standard_errors));
        Ok(json!({
            "columns": self.columns,
            "mean": self.mean(),
            "confidence_interval": self.intervals(),
            "confidence": self.confidence,
            "confidence_interval_note": self.errors.as_ref().err(),
            "standard_error": standard_errors,
            "predicted_mse": self.predicted_mse(),
            "estimator": self.plan.name(),
            "target": problem.target().name(),
            "n_private": problem.private_rows(),
            "n_public": problem.public_rows(),
            "private_weight": self.plan.private_weight(),
            "public_share": self.plan.public_share(),
            "clip_norm": self.plan.clip_norm(),
            "clip_norm_unit": self.unit(),
            "clip_bias": self.plan.law().map(|law| law.clip(problem).bias),
            "clipped_share": self.clipped().map(|(share, most)| json!({ "public_rows": share, "at_most": most })),
            "scale": self.decoder.scale,
            "std": problem.std(),
            "budget": budget_json(self.plan.budget()),
            "epsilon": guarantee.epsilon.get(),
            "delta": guarantee.delta.get(),
            "rho": guarantee.rho.map(|rho| rho.get()),
            "adjacency": guarantee.adjacency.name(),
            "protects": "private rows only",
            "arithmetic": self.release.certificate.arithmetic,
            "certificate": certificate,
        }))
    }

    pub fn text(&self) -> String {
        let mean = self.mean();
        let intervals = self.intervals();
        let percent = nearest(100.0 * self.confidence, 4);
        let heading = format!("{percent}% interval");
        let headings: Vec<&str> = match intervals {
            Some(_) => vec!["column", "mean", &heading],
            None => vec!["column", "mean"],
        };
        let rows = self.columns.iter().zip(&mean).enumerate().map(|(j, (name, x))| {
            let mut row = vec![name.clone(), nearest(*x, 6)];
            if let Some(intervals) = &intervals {
                row.push(match intervals[j] {
                    Some([low, high]) => format!("{} to {}", nearest(low, 5), nearest(high, 5)),
                    None => "not known".into(),
                });
            }
            row
        });
        let problem = self.plan.problem();
        let guarantee = &self.release.certificate.guarantee;
        let mut points = vec![format!(
            "Estimated by {} from {} private and {} public rows; predicted mean squared error {}.",
            self.plan.name(),
            count(problem.private_rows()),
            count(problem.public_rows()),
            nearest(self.predicted_mse(), 4)
        )];
        points.push(if self.plan.law().is_none() {
            "Certificate: epsilon 0; no private row was read.".into()
        } else {
            let arithmetic = match self.release.certificate.arithmetic {
                Arithmetic::Exact => "exact",
                Arithmetic::Idealised => "idealised",
            };
            let delta = match guarantee.delta.get() {
                0.0 => ", pure".to_string(),
                delta => format!(" at delta {}", exact(delta)),
            };
            format!(
                "Certificate: epsilon {}{delta} ({}; the budget was {}), {} adjacency, {arithmetic} arithmetic.",
                bound(guarantee.epsilon.get()),
                guarantee.rho.map_or_else(|| "no rho".into(), |rho| format!("rho {}", bound(rho.get()))),
                budget_words(self.plan.budget()),
                guarantee.adjacency
            )
        });
        if self.release.certificate.random_source == RandomSource::Seeded {
            points.push("NOT private: the noise came from --seed, and the certificate says so.".into());
        }
        for outside in &self.release.certificate.not_covered {
            points.push(format!("Not covered by the certificate: {outside}."));
        }
        if let (Some(radius), Some((_, most))) = (self.plan.clip_norm(), self.clipped()) {
            points.push(format!(
                "Rows were clipped to {} {} about the centre; judging by the public rows at most {}% of rows are longer.",
                nearest(radius, 4),
                self.unit(),
                (100.0 * most).ceil()
            ));
        }
        let points: Vec<String> =
            points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        format!("{}\n\n{}", table::columns(&headings, rows.collect()), points.join("\n"))
    }

    /// What a reader of the table should know.
    pub fn notes(&self, output: &Output) {
        if self.intervals().is_some_and(|intervals| intervals.contains(&None)) {
            output.note("no interval is known for a column that does not vary in the public rows");
        }
        if self.plan.law().is_some_and(|law| law.clip(self.plan.problem()).bias > 0.0) {
            output.note(
                "the radius was learned from the public rows, for tails no heavier than exponential; give --radius \
                 if rows may reach further",
            );
        }
        if let Err(reason) = &self.errors {
            output.note(&format!("no confidence intervals: {reason}"));
        }
        if self.release.certificate.arithmetic == Arithmetic::Idealised {
            output.note(
                "idealised arithmetic: the guarantee holds for real-valued noise; `--estimator auto` without \
                 --idealised keeps to estimators whose guarantee holds for the released bits",
            );
        }
    }
}
