//! The server's answer.

use super::centre::Centre;
use super::reports::Skipped;
use crate::command::mean::shift_json;
use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use semidp::local::{Aggregate, Combination, Header, PublicRows};
use semidp::mean::{SAME_POPULATION, Shift};
use semidp_accounting::local::randomizer_named;
use semidp_accounting::{Adjacency, Arithmetic, Certificate, Delta, Provenance, RandomSource, Trust};
use semidp_core::{Randomizer, Randomness};
use serde_json::{Value, json};

/// A mean of rows in a ball that is longer than this part of the radius is that of rows most of which lie near its border. Chosen, not measured.
const NEAR_RADIUS: f64 = 0.9;

/// Where the standard deviation of rows came from.
#[derive(Clone, Copy, PartialEq)]
pub enum Known {
    User,
    Public,
    /// The largest that the ball allows.
    Worst,
}

impl Known {
    fn source(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Public => "public data",
            Self::Worst => "theory",
        }
    }
}

/// Reports that were left out, and how far they could have moved the mean.
pub struct SkippedReports {
    all: Skipped,
    /// How far one person could have moved the mean by one line that is a report or none.
    influence: f64,
    /// How far the mean would have moved at most, had all of these been reports.
    all_influence: f64,
}

impl SkippedReports {
    /// Of a mean of m accepted reports no longer than B, the mean M of which has the weight w(m); the mean P of public rows has the rest.
    ///
    /// One line changes m, too: who sends an invalid line is not counted. With f(m) = w(m) M + (1 − w(m)) P, and |r − M| ≤ 2B for every
    /// report r,
    ///
    /// * another report in the place of an accepted one moves f by at most w(m)·2B/m;
    /// * without one of the accepted, |f(m) − f(m−1)| ≤ w(m−1)·2B/m + |w(m) − w(m−1)|·|M − P|;
    /// * with s of the skipped lines as reports, |f(m+s) − f(m)| ≤ w(m+s)·2Bs/(m+s) + |w(m+s) − w(m)|·|M − P|.
    pub fn of(
        skipped: Skipped,
        all: &Aggregate,
        mean: Option<&[f64]>,
        public: Option<&[f64]>,
        weight: &dyn Fn(u64) -> Result<f64, Failure>,
    ) -> Result<Self, Failure> {
        let m = all.len();
        let diameter = all.influence() * m as f64;
        let gap = mean.zip(public).map_or(0.0, |(mean, public)| {
            mean.iter().zip(public).map(|(mean, public)| (mean - public).powi(2)).sum::<f64>().sqrt()
        });
        let here = weight(m)?;
        let replaced = here * diameter / m as f64;
        let fewer = weight(m - 1)?;
        let removed = fewer * diameter / m as f64 + (here - fewer).abs() * gap;
        let added = |s: u64| -> Result<f64, Failure> {
            let more = weight(m + s)?;
            Ok(more * diameter * s as f64 / (m + s) as f64 + (more - here).abs() * gap)
        };
        let influence = replaced.max(removed).max(if skipped.count > 0 { added(1)? } else { 0.0 });
        let all_influence = if skipped.count > 0 { added(skipped.count)? } else { 0.0 };
        Ok(Self { all: skipped, influence, all_influence })
    }
}

/// A mean and everything known about it.
pub struct Estimate {
    columns: Option<Vec<String>>,
    mean: Vec<f64>,
    estimator: &'static str,
    private_weight: f64,
    predicted_mse: Option<f64>,
    offers: Vec<Combination>,
    header: Option<Header>,
    reports: u64,
    public: u64,
    /// Public rows beyond the radius.
    clipped: u64,
    /// How far one person could have moved the mean, by any report at all.
    influence: f64,
    std: Option<(f64, Known)>,
    /// Public minus private mean, a column each.
    shifts: Option<Vec<Shift>>,
    /// The length of the mean of reports over the radius, without what noise adds to it.
    length: f64,
    /// None where an invalid line refuses the whole.
    skipped: Option<SkippedReports>,
    certificate: Certificate,
}

impl Estimate {
    /// From reports, and public rows if there are some.
    pub fn of_reports(
        mean: Vec<f64>,
        chosen: Combination,
        offers: Vec<Combination>,
        all: &Aggregate,
        public: u64,
        std: (f64, Known),
        skipped: Option<SkippedReports>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            columns: None,
            mean,
            estimator: chosen.name,
            private_weight: chosen.private_weight,
            predicted_mse: Some(chosen.mse),
            offers,
            header: Some(all.header().clone()),
            reports: all.len(),
            public,
            clipped: 0,
            influence: match &skipped {
                Some(skipped) => skipped.influence,
                None => chosen.private_weight * all.influence(),
            },
            std: Some(std),
            shifts: None,
            length: 0.0,
            skipped,
            certificate: {
                let mut certificate = certificate(all, std)?;
                if public > 0 && chosen.private_weight < 1.0 {
                    certificate.assumptions.push(SAME_POPULATION.into());
                }
                certificate
            },
        })
    }

    /// From public rows alone.
    pub fn of_public(public: &PublicRows, std: Option<f64>) -> Result<Self, Failure> {
        let known = std.map(|std| (std, Known::User));
        let std = known.or_else(|| public.std().map(|std| (std, Known::Public)));
        let mechanism = "none: nobody reported, and the public rows answer alone";
        Ok(Self {
            columns: None,
            mean: public.mean().to_vec(),
            estimator: "throw-away",
            private_weight: 0.0,
            predicted_mse: std.map(|(std, _)| std * std / public.count() as f64),
            offers: Vec::new(),
            header: None,
            reports: 0,
            public: public.count(),
            clipped: 0,
            influence: 0.0,
            std,
            shifts: None,
            length: 0.0,
            skipped: None,
            certificate: Certificate::issue(
                Vec::new(),
                Adjacency::ReplaceOne,
                Trust::Local,
                Delta::new(0.0)?,
                mechanism,
            )?,
        })
    }

    /// Back to where rows were before the centre was subtracted.
    pub fn about(mut self, centre: Option<&Centre>) -> Self {
        if let Some(centre) = centre {
            self.mean.iter_mut().zip(&centre.numbers).for_each(|(mean, centre)| *mean += centre);
        }
        self
    }

    /// Of public rows alone, although there were lines that should have been reports.
    pub fn skipping(self, skipped: Option<Skipped>) -> Self {
        let skipped = skipped.map(|all| SkippedReports { all, influence: 0.0, all_influence: f64::NAN });
        Self { skipped, ..self }
    }

    /// With so many public rows beyond the radius.
    pub fn with_clipped(self, clipped: u64) -> Self {
        Self { clipped, ..self }
    }

    /// With what reports show of a shift, and of how near the radius their mean is.
    pub fn with_findings(self, shifts: Option<Vec<Shift>>, length: f64) -> Self {
        Self { shifts, length, ..self }
    }

    /// Whether public rows stand for private ones.
    fn is_pooled(&self) -> bool {
        self.certificate.assumptions.iter().any(|one| one == SAME_POPULATION)
    }

    /// The mean of what.
    fn estimand(&self) -> &'static str {
        match (self.reports > 0, self.is_pooled()) {
            (false, _) => "the mean of the population of the public rows",
            (true, false) => "the mean of the population of the private rows, of rows clipped to the radius",
            (true, true) => {
                "the mean of the population of the private rows, assumed to be that of the public rows, of rows clipped to the radius"
            }
        }
    }

    /// What the predicted error takes for granted.
    fn predicted_mse_assumes(&self) -> &'static str {
        match self.std {
            _ if self.is_pooled() => SAME_POPULATION,
            Some((_, Known::Public)) if self.reports > 0 => SAME_POPULATION,
            Some((_, Known::Worst)) => "nothing: it is that of the worst rows within the radius",
            _ => "rows are drawn independently, with the standard deviation given",
        }
    }

    /// Warnings, from reports and public rows alone.
    fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        let shifts = self.shifts.iter().flatten().enumerate();
        let shifted: Vec<String> = shifts
            .filter(|(_, shift)| shift.is_significant)
            .map(|(j, _)| self.columns.as_ref().map_or_else(|| format!("x{j}"), |names| names[j].clone()))
            .collect();
        if !shifted.is_empty() {
            let verdict = match self.is_pooled() {
                true => {
                    "this answer assumes that they do not, so its mean and predicted error are wrong there: give --estimator ldp, or \
                     leave out --public"
                }
                false => "this mean rests on the reports alone, but its predicted error uses public rows",
            };
            found.push(format!(
                "public and private rows differ by more than chance in {}: {verdict}",
                shifted.join(", ")
            ));
        }
        if self.length > NEAR_RADIUS {
            found.push(format!(
                "the mean of the reports lies at {}% of the radius: many rows may lie beyond it and were clipped, and the mean is that of \
                 clipped rows; ask for reports with a larger --radius, or a --centre near the rows",
                nearest((100.0 * self.length).min(100.0).round(), 3)
            ));
        }
        if 2 * self.clipped > self.public {
            found.push(format!(
                "{} of {} public rows are beyond the radius of the reports and were clipped: the mean is that of clipped rows, \
                 and predicted_mse is about that mean; ask for reports with a larger --radius, or a --centre near the rows",
                count(self.clipped),
                count(self.public)
            ));
        }
        found
    }

    /// With names for its numbers.
    pub fn named(self, columns: Option<Vec<String>>) -> Self {
        Self { columns, ..self }
    }

    pub fn json(&self) -> Result<Value, Failure> {
        let guarantee = &self.certificate.guarantee;
        let header = self.header.as_ref();
        let offers = self.offers.iter().map(|offer| {
            json!({ "name": offer.name, "mse": offer.mse, "private_weight": offer.private_weight,
                    "empirical_mse": offer.empirical_mse })
        });
        Ok(json!({
            "columns": self.columns,
            "mean": self.mean,
            "estimand": self.estimand(),
            "assumptions": self.certificate.assumptions,
            "predicted_mse": self.predicted_mse,
            "predicted_mse_assumes": self.predicted_mse_assumes(),
            "shift": self.shifts.as_ref().map(|shifts| shifts.iter().copied().map(shift_json).collect::<Vec<_>>()),
            "notes": self.warnings(),
            "estimator": self.estimator,
            "estimators": offers.collect::<Vec<Value>>(),
            "reports": self.reports,
            "n_private": self.reports,
            "n_public": self.public,
            "n_public_clipped": self.clipped,
            "private_weight": self.private_weight,
            "influence": self.influence,
            "skipped_reports": self.skipped.as_ref().map_or(0, |skipped| skipped.all.count),
            "skipped_reasons": self.skipped.as_ref().map(|skipped| &skipped.all.reasons),
            "skipped_influence": self.skipped.as_ref().map(|skipped| skipped.all_influence),
            "std": self.std.map(|(std, known)| json!({ "value": std, "source": known.source() })),
            "round": header.map(|header| &header.round),
            "mechanism": header.map(|header| &header.mechanism),
            "dimension": self.mean.len(),
            "radius": header.map(|header| header.radius),
            "centre": header.and_then(|header| header.centre.as_ref()),
            "epsilon": guarantee.epsilon.get(),
            "delta": guarantee.delta.get(),
            "trust": guarantee.trust,
            "adjacency": guarantee.adjacency.name(),
            "protects": "private rows only",
            "arithmetic": self.certificate.arithmetic,
            "certificate": serde_json::to_value(&self.certificate)
                .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?,
        }))
    }

    pub fn text(&self) -> String {
        let rows = self.mean.iter().enumerate().map(|(j, mean)| {
            let name = self.columns.as_ref().map_or_else(|| format!("x{j}"), |names| names[j].clone());
            vec![name, nearest(*mean, 6)]
        });
        let mse = self.predicted_mse.map_or_else(|| "not known".into(), |mse| nearest(mse, 4));
        let assumes = self.predicted_mse_assumes();
        let mut points = vec![
            format!("Estimated: {}.", self.estimand()),
            format!(
                "By {} from {} reports and {} public rows; predicted mean squared error {mse}, which assumes {}{assumes}.",
                self.estimator,
                count(self.reports),
                count(self.public),
                if assumes.starts_with("nothing") { "" } else { "that " }
            ),
        ];
        for assumption in &self.certificate.assumptions {
            points.push(format!("Assumed, and not checked: {assumption}."));
        }
        match &self.header {
            Some(header) => {
                let arithmetic = match self.certificate.arithmetic {
                    Arithmetic::Exact => "exact",
                    Arithmetic::Idealised => "idealised",
                };
                points.push(format!(
                    "Certificate: pure epsilon {} for everybody who reported once by {} (radius {}), {arithmetic} arithmetic; the \
                     reports were randomised before they came here.",
                    bound(self.certificate.guarantee.epsilon.get()),
                    header.mechanism,
                    exact(header.radius)
                ));
                points.push(format!(
                    "One person who lies moves this mean by at most {}.",
                    bound(self.influence)
                ));
            }
            None => points.push("Certificate: epsilon 0; nobody reported.".into()),
        }
        if let Some(skipped) = self.skipped.as_ref().filter(|skipped| skipped.all.count > 0) {
            let reasons =
                skipped.all.reasons.iter().map(|(reason, times)| format!("{reason}: {}", count(*times)));
            let moved = match skipped.all_influence.is_finite() {
                true => format!(
                    "; as reports they could move this mean by at most {}",
                    bound(skipped.all_influence)
                ),
                false => String::new(),
            };
            points.push(format!(
                "{} invalid lines were left out ({}){moved}.",
                count(skipped.all.count),
                reasons.collect::<Vec<_>>().join(", ")
            ));
        }
        let points: Vec<String> =
            points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        format!("{}\n\n{}", table::columns(&["column", "mean"], rows.collect()), points.join("\n"))
    }

    /// What a reader of the table should know.
    pub fn notes(&self, output: &Output) {
        if self.header.is_none() {
            output.note("there are no reports: the public rows answer alone, and nothing was clipped");
        }
        self.warnings().iter().for_each(|warning| output.warn(warning));
        if self.reports > 0 && self.std.is_some_and(|(_, known)| known == Known::Worst) {
            output.note(
                "the predicted error is that of the worst rows: two public rows that differ, or --std, say more",
            );
        }
    }
}

/// What everybody who reported once was promised, by the device that randomised.
fn certificate(all: &Aggregate, (std, known): (f64, Known)) -> Result<Certificate, Failure> {
    let header = all.header();
    let mechanism = randomizer_named(&header.mechanism)?;
    let randomizer = Randomizer::new(mechanism, header.dimension, header.epsilon, header.radius)?;
    let mut certificate = randomizer.certificate(Randomness::OperatingSystem)?;
    certificate.mechanism = format!("{}, drawn by each person's own device", certificate.mechanism);
    // Nothing was drawn here.
    certificate.random_source = RandomSource::None;
    let stated = |name: &str, value: Value, source: &str| Provenance {
        name: name.into(),
        value,
        source: source.into(),
    };
    certificate.hyperparameters = vec![
        stated("round", json!(header.round), "user"),
        stated("mechanism", json!(header.mechanism), "user"),
        stated("radius", json!(header.radius), "user"),
        stated("std", json!(std), known.source()),
    ];
    certificate.not_covered.push(
        "the reports were randomised by the devices that sent them: that they did it as the reports say, and once, is theirs to \
         promise"
            .into(),
    );
    Ok(certificate)
}
