//! The answer, in the units of the columns.

use super::data::{Data, Decoder};
use crate::command::plan::{budget_json, budget_words};
use crate::failure::Failure;
use crate::number::{count, exact, nearest};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use semidp::mean::{
    Errors, Estimated, Evidence, JointEstimate, JointPlan, Law, NONE_BEYOND_RADIUS, Plan, Problem,
    SAME_POPULATION, Shift, Target, student_quantile,
};
use semidp_accounting::{Arithmetic, Certificate, PrivacyBudget, RandomSource};
use semidp_core::Release;
use serde_json::{Value, json};

/// With fewer public rows more than 5 % of the private rows may lie beyond all of them, at 95 % confidence.
const FEW_PUBLIC_ROWS: u64 = 59;

/// What was released, in the coordinates of the rows.
pub enum Outcome {
    /// By an estimator of the paper, or from public rows alone.
    Named { plan: Plan, errors: Result<Errors, &'static str>, value: Vec<f64> },
    /// Sums, squares and counts together.
    Joint { plan: JointPlan, estimate: JointEstimate },
}

/// A released mean and everything known about it.
pub struct Estimate {
    columns: Vec<String>,
    decoder: Decoder,
    /// Whether clip norm and standard deviation are in public standard deviations.
    is_scaled: bool,
    confidence: f64,
    evidence: Option<Evidence>,
    public_mean: Vec<f64>,
    centre: Vec<f64>,
    outcome: Outcome,
    certificate: Certificate,
    notes: Vec<String>,
}

impl Estimate {
    pub fn new(data: Data, release: Release<Outcome>, confidence: f64) -> Self {
        let mut estimate = Self {
            columns: data.encoding.names().to_vec(),
            decoder: data.decoder,
            is_scaled: data.is_scaled,
            confidence,
            evidence: data.evidence,
            public_mean: data.public_mean,
            centre: data.centre,
            outcome: release.value,
            certificate: release.certificate,
            notes: data.notes,
        };
        let found = estimate.findings();
        estimate.notes.extend(found);
        estimate
    }

    fn problem(&self) -> &Problem {
        match &self.outcome {
            Outcome::Named { plan, .. } => plan.problem(),
            Outcome::Joint { plan, .. } => plan.problem(),
        }
    }

    fn law(&self) -> Option<Law> {
        match &self.outcome {
            Outcome::Named { plan, .. } => plan.law(),
            Outcome::Joint { plan, .. } => Some(plan.law()),
        }
    }

    fn budget(&self) -> PrivacyBudget {
        match &self.outcome {
            Outcome::Named { plan, .. } => plan.budget(),
            Outcome::Joint { plan, .. } => plan.budget(),
        }
    }

    fn name(&self) -> &'static str {
        match &self.outcome {
            Outcome::Named { plan, .. } => plan.name(),
            Outcome::Joint { plan, .. } => plan.name(),
        }
    }

    fn clip_norm(&self) -> Option<f64> {
        match &self.outcome {
            Outcome::Named { plan, .. } => plan.clip_norm(),
            Outcome::Joint { plan, .. } => Some(plan.radius()),
        }
    }

    fn mean(&self) -> Vec<f64> {
        match &self.outcome {
            Outcome::Named { value, .. } => self.decoder.decode(value),
            Outcome::Joint { estimate, .. } => {
                let values: Vec<f64> = estimate.columns.iter().map(|column| column.mean).collect();
                self.decoder.decode(&values)
            }
        }
    }

    fn in_units(&self, values: &[f64]) -> Vec<f64> {
        values.iter().zip(&self.decoder.scale).map(|(x, scale)| x * scale).collect()
    }

    /// An interval a column, where its law is known.
    fn intervals(&self) -> Option<Vec<Option<[f64; 2]>>> {
        let scales = &self.decoder.scale;
        match &self.outcome {
            Outcome::Named { errors, .. } => {
                let errors = errors.as_ref().ok()?;
                let widths =
                    errors.half_widths.iter().zip(scales).map(|(half, scale)| half.map(|half| half * scale));
                Some(
                    self.mean()
                        .iter()
                        .zip(widths)
                        .map(|(x, half)| half.map(|half| [x - half, x + half]))
                        .collect(),
                )
            }
            Outcome::Joint { estimate, .. } => {
                let units = self.decoder.shift.iter().zip(scales);
                let decode = |x: f64, (shift, scale): (&f64, &f64)| x * scale + shift;
                let columns = estimate.columns.iter().zip(units);
                Some(
                    columns
                        .map(|(column, unit)| column.interval.map(|ends| ends.map(|end| decode(end, unit))))
                        .collect(),
                )
            }
        }
    }

    fn standard_errors(&self) -> Option<Vec<Option<f64>>> {
        match &self.outcome {
            Outcome::Named { errors, .. } => {
                let errors = errors.as_ref().ok()?;
                Some(self.in_units(&errors.standard_errors).into_iter().map(Some).collect())
            }
            Outcome::Joint { estimate, .. } => {
                let columns = estimate.columns.iter().zip(&self.decoder.scale);
                Some(
                    columns.map(|(column, scale)| column.standard_error.map(|error| error * scale)).collect(),
                )
            }
        }
    }

    /// In words: the unit of lengths, and the norm they are measured in.
    fn unit(&self) -> &'static str {
        match (self.is_scaled, self.law()) {
            (true, Some(Law::Laplace)) => "public standard deviations (l1 norm)",
            (true, _) => "public standard deviations",
            (false, Some(Law::Laplace)) => "units of the columns (l1 norm)",
            (false, _) => "units of the columns",
        }
    }

    /// The predicted squared error in the units of the columns. Where they were scaled, the bias of clipping
    /// counts at the largest scale.
    fn predicted_mse(&self) -> f64 {
        let (mut least, mut largest) = (f64::INFINITY, 0.0f64);
        self.decoder.scale.iter().for_each(|s| (least, largest) = (least.min(*s), largest.max(*s)));
        match &self.outcome {
            Outcome::Joint { plan, .. } => {
                let errors = plan.predicted_errors();
                let scaled =
                    errors.iter().zip(&self.decoder.scale).map(|(error, scale)| error * scale * scale);
                scaled.sum::<f64>()
                    + (plan.predicted_mse() - errors.iter().sum::<f64>()).max(0.0) * largest * largest
            }
            Outcome::Named { plan, errors, .. } => {
                let scaled = plan.predicted_mse();
                if least == 1.0 && largest == 1.0 {
                    return scaled;
                }
                match errors {
                    Ok(errors) => {
                        let without_bias: f64 =
                            self.in_units(&errors.standard_errors).iter().map(|error| error * error).sum();
                        let plain: f64 = errors.standard_errors.iter().map(|error| error * error).sum();
                        without_bias + (scaled - plain).max(0.0) * largest * largest
                    }
                    Err(_) => scaled * largest * largest,
                }
            }
        }
    }

    /// What the predicted error takes for granted.
    fn predicted_mse_assumes(&self) -> &'static str {
        let problem = self.problem();
        match problem.target() {
            Target::Empirical => "nothing: it is that of the worst rows within the radius",
            Target::Population if problem.public_rows() == 0 || problem.private_rows() == 0 => {
                "rows are drawn independently, with the standard deviation given"
            }
            Target::Population => SAME_POPULATION,
        }
    }

    /// The mean of what.
    fn estimand(&self) -> &'static str {
        match &self.outcome {
            Outcome::Joint { plan, .. } => plan.estimand(),
            Outcome::Named { plan, .. } => {
                let problem = plan.problem();
                match problem.target() {
                    Target::Empirical => "the mean of the given rows, public and private together",
                    Target::Population if problem.private_rows() == 0 => {
                        "the mean of the population of the public rows"
                    }
                    Target::Population if problem.public_rows() == 0 => {
                        "the mean of the population of the private rows"
                    }
                    Target::Population => {
                        "the mean of the population of the private rows, assumed to be that of the public rows"
                    }
                }
            }
        }
    }

    /// The public mean minus the private one, a column each, in the units of the columns.
    fn shifts(&self) -> Option<Vec<Option<Shift>>> {
        let scale = |(shift, scale): (Option<Shift>, &f64)| {
            shift.map(|shift| Shift {
                estimate: shift.estimate * scale,
                standard_error: shift.standard_error * scale,
                ..shift
            })
        };
        let shifts: Vec<Option<Shift>> = match &self.outcome {
            Outcome::Joint { estimate, .. } => estimate.columns.iter().map(|column| column.shift).collect(),
            Outcome::Named { plan, value, .. } => self.shifts_of(plan, value)?,
        };
        Some(shifts.into_iter().zip(&self.decoder.scale).map(scale).collect())
    }

    /// The same by an estimator of the paper: its release is the public part plus the weighted noised sum.
    fn shifts_of(&self, plan: &Plan, value: &[f64]) -> Option<Vec<Option<Shift>>> {
        let evidence = self.evidence.as_ref().filter(|evidence| evidence.rows() > 1)?;
        let (rows, share) = (plan.problem().private_rows() as f64, plan.public_share());
        let weight = plan.private_weight() * rows;
        if weight <= 0.0 || plan.law().is_none() {
            return None;
        }
        let significant = student_quantile(1.0 - 0.025 / value.len() as f64, evidence.rows() - 1);
        let columns = value.iter().zip(&self.public_mean).zip(&self.centre).zip(evidence.variance());
        let shift = |(((value, public), centre), variance): (((&f64, &f64), &f64), &f64)| {
            let private = centre + (value - share * public - (1.0 - share) * centre) / weight;
            let noise = plan.noise_std() / weight;
            let error = (variance / rows + variance / evidence.rows() as f64 + noise * noise).sqrt();
            let estimate = public - private;
            let is_significant = estimate.abs() > significant * error;
            (*variance > 0.0).then_some(Shift { estimate, standard_error: error, is_significant })
        };
        Some(columns.map(shift).collect())
    }

    fn clipped(&self) -> Option<(f64, f64)> {
        let radius = self.clip_norm()?;
        let law = self.law()?;
        self.evidence.as_ref().map(|evidence| evidence.clipped_share(law, radius))
    }

    /// What intervals take for granted beyond the laws of noise and sampling.
    fn allowance(&self) -> String {
        let (Some(law), Some(clip_norm)) = (self.law(), self.clip_norm()) else {
            return "intervals take for granted that the public rows show the tail of their population: rare values further out than any \
                    of them are in no interval"
                .into();
        };
        if law.clip(self.problem()).bias <= 0.0 {
            return format!("intervals take for granted that {NONE_BEYOND_RADIUS}");
        }
        let most = self.evidence.as_ref().map_or(1.0, |evidence| evidence.clipped_share(law, clip_norm).1);
        format!(
            "intervals allow for clipping as far as the tail of the public rows shows it: where private rows have a heavier one, they hold \
             the mean less often than stated; {} public rows cannot exclude that up to {}% of the private rows lie beyond the radius, at \
             any distance",
            count(self.problem().public_rows()),
            nearest(100.0 * most, 2)
        )
    }

    /// A warning where public rows are so few that the radius they teach may miss many rows.
    fn few_public_rows(&self) -> Option<String> {
        let law = self.law().filter(|law| law.clip(self.problem()).bias > 0.0)?;
        let rows = self.problem().public_rows();
        let is_given = self.intervals().is_some_and(|all| all.iter().any(Option::is_some));
        let (_, most) = self.evidence.as_ref()?.clipped_share(law, self.clip_norm()?);
        (rows < FEW_PUBLIC_ROWS && is_given).then(|| {
            format!(
                "the radius was learned from {rows} public rows: up to {}% of the private rows may lie beyond it, at any distance, and the \
                 intervals hold the mean only if they lie no further out than the tail of the public rows lets expect; rare large values \
                 such as the code 99 need more public rows or --radius",
                nearest(100.0 * most, 2)
            )
        })
    }

    /// What everyone should know of this answer. All of it is computed from released values.
    fn findings(&self) -> Vec<String> {
        let mut found: Vec<String> = self.few_public_rows().into_iter().collect();
        let is_clipped = match &self.outcome {
            Outcome::Joint { estimate, .. } => {
                estimate.is_clipped || estimate.columns.iter().any(|column| column.status.is_some())
            }
            Outcome::Named { .. } => false,
        };
        let names = |wanted: &dyn Fn(usize) -> bool| -> Vec<&str> {
            self.columns
                .iter()
                .enumerate()
                .filter(|(j, _)| wanted(*j))
                .map(|(_, name)| name.as_str())
                .collect()
        };
        if let Some(shifts) = self.shifts() {
            let shifted = names(&|j| shifts[j].is_some_and(|shift| shift.is_significant));
            if !shifted.is_empty() {
                let pooled = self.certificate.assumptions.iter().any(|one| one == SAME_POPULATION);
                let verdict = match pooled {
                    true => {
                        "this answer assumes that they do not, so its means and intervals are wrong there: leave out --assume and \
                         --estimator"
                    }
                    false if is_clipped => {
                        "the estimates rest on the private rows there, of which many are clipped"
                    }
                    false => {
                        "the intervals rest on the private rows there, as far as these lie within the radius"
                    }
                };
                found.push(format!(
                    "public and private rows differ by more than chance in {}: {verdict}",
                    shifted.join(", ")
                ));
            }
        }
        let Outcome::Joint { plan, estimate } = &self.outcome else { return found };
        let unreadable = names(&|j| estimate.columns[j].unreadable.is_significant(self.columns.len()));
        for name in &unreadable {
            if let Some(column) = self.columns.iter().position(|one| one == name) {
                let cells = estimate.columns[column].unreadable;
                found.push(format!(
                    "about {} (standard error {}) of the {} private cells of column {name} are missing or no numbers; the mean is \
                     that of the others",
                    nearest(cells.estimate.max(0.0).round(), 6),
                    nearest(cells.standard_error, 2),
                    count(plan.problem().private_rows())
                ));
            }
        }
        for (name, column) in self.columns.iter().zip(&estimate.columns) {
            if let Some(status) = column.status {
                found.push(format!("column {name}: no interval; {status}"));
            }
        }
        if estimate.is_clipped {
            let (rows, clipped) = (plan.problem().private_rows(), estimate.clipped_rows);
            found.push(format!(
                "about {} (standard error {}) of the {} private rows lie further from the centre than the radius, more than {}; how far is not \
                 known, so no column has an interval: give a larger --radius",
                nearest(clipped.estimate.round().clamp(0.0, rows as f64), 6),
                nearest(clipped.standard_error, 2),
                count(rows),
                match plan.law().clip(plan.problem()).bias > 0.0 {
                    true => "the public rows explain",
                    false => "none, as the radius has it",
                }
            ));
        }
        found
    }

    pub fn json(&self) -> Result<Value, Failure> {
        let problem = self.problem();
        let guarantee = &self.certificate.guarantee;
        let certificate = serde_json::to_value(&self.certificate)
            .map_err(|error| Failure::other(format!("cannot write the certificate as JSON: {error}")))?;
        let (weights, note) = match &self.outcome {
            Outcome::Named { plan, errors, .. } => {
                let note = errors.as_ref().err().map_or_else(|| self.allowance(), |reason| (*reason).into());
                (Some((plan.private_weight(), plan.public_share())), note)
            }
            Outcome::Joint { .. } => (None, self.allowance()),
        };
        let clip_bias = match &self.outcome {
            Outcome::Named { .. } => self.law().map(|law| law.clip(problem).bias),
            Outcome::Joint { estimate, .. } => Some(estimate.clip_bias),
        };
        let mut answer = json!({
            "columns": self.columns,
            "mean": self.mean(),
            "confidence_interval": self.intervals(),
            "confidence": self.confidence,
            "confidence_interval_note": note,
            "standard_error": self.standard_errors(),
            "estimand": self.estimand(),
            "assumptions": self.certificate.assumptions,
            "predicted_mse": self.predicted_mse(),
            "predicted_mse_assumes": self.predicted_mse_assumes(),
            "estimator": self.name(),
            "target": problem.target().name(),
            "n_private": problem.private_rows(),
            "n_public": problem.public_rows(),
            "private_weight": weights.map(|(private, _)| private),
            "public_share": weights.map(|(_, public)| public),
            "shift": self.shifts().map(|shifts| shifts.iter().map(|shift| shift.map(shift_json)).collect::<Vec<_>>()),
            "clip_norm": self.clip_norm(),
            "clip_norm_unit": self.unit(),
            "clip_bias": clip_bias,
            "clipped_share": self.clipped().map(|(share, most)| json!({ "public_rows": share, "at_most": most })),
            "scale": self.decoder.scale,
            "std": problem.std(),
            "budget": budget_json(self.budget()),
            "epsilon": guarantee.epsilon.get(),
            "delta": guarantee.delta.get(),
            "rho": guarantee.rho.map(|rho| rho.get()),
            "adjacency": guarantee.adjacency.name(),
            "protects": "private rows only",
            "arithmetic": self.certificate.arithmetic,
            "notes": self.notes,
        });
        if let Outcome::Joint { plan, estimate } = &self.outcome {
            let columns = self.columns.len();
            let cells = |cells: &Estimated| counted(*cells, columns);
            let private: Vec<Option<f64>> =
                estimate.columns.iter().map(|column| column.private_mean).collect();
            let units = self.decoder.shift.iter().zip(&self.decoder.scale);
            let private = private.iter().zip(units).map(|(x, (shift, scale))| x.map(|x| x * scale + shift));
            answer["private_mean"] = json!(private.collect::<Vec<_>>());
            answer["status"] = json!(estimate.columns.iter().map(|column| column.status).collect::<Vec<_>>());
            answer["combination"] = json!(estimate.rule);
            answer["noise_price"] = json!(plan.noise_price());
            answer["accuracy_price"] = json!(plan.accuracy_price());
            answer["unreadable_cells"] =
                estimate.columns.iter().map(|column| cells(&column.unreadable)).collect::<Vec<_>>().into();
            // One test for the note, the intervals and this; a column has its share of rows only if there are any to divide.
            let judged = |count: &Estimated, is_significant| json!({ "estimate": count.estimate, "standard_error": count.standard_error, "significant": is_significant });
            let of_column = |count: &Estimated| {
                judged(count, estimate.is_clipped && (columns == 1 || count.is_significant(columns)))
            };
            let mut clipped = judged(&estimate.clipped_rows, estimate.is_clipped);
            clipped["columns"] = estimate.clipped_columns.iter().map(of_column).collect::<Vec<_>>().into();
            answer["clipped_rows"] = clipped;
        }
        answer["certificate"] = certificate;
        Ok(answer)
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
        let problem = self.problem();
        let guarantee = &self.certificate.guarantee;
        let mut points = vec![format!("Estimated: {}.", self.estimand())];
        points.push(format!(
            "By {} from {} private and {} public rows; predicted mean squared error {}, which assumes {}{}.",
            self.name(),
            count(problem.private_rows()),
            count(problem.public_rows()),
            nearest(self.predicted_mse(), 4),
            if self.predicted_mse_assumes().starts_with("nothing") { "" } else { "that " },
            self.predicted_mse_assumes()
        ));
        if let Some(shifts) = self.shifts() {
            let shown = self.columns.iter().zip(&shifts).filter_map(|(name, shift)| {
                let shift = (*shift)?;
                Some(format!("{name} {} ± {}", nearest(shift.estimate, 3), nearest(shift.standard_error, 2)))
            });
            let shown: Vec<String> = shown.take(8).collect();
            if !shown.is_empty() {
                let more = if shifts.len() > shown.len() { ", ..." } else { "" };
                points.push(format!(
                    "Public minus private mean (± standard error): {}{more}.",
                    shown.join(", ")
                ));
            }
        }
        points.push(if self.law().is_none() {
            "Certificate: epsilon 0; no private row was read.".into()
        } else {
            let arithmetic = match self.certificate.arithmetic {
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
                budget_words(self.budget()),
                guarantee.adjacency
            )
        });
        for assumption in &self.certificate.assumptions {
            points.push(format!("Assumed, and not checked: {assumption}."));
        }
        if self.certificate.random_source == RandomSource::Seeded {
            points.push("NOT private: the noise came from --seed, and the certificate says so.".into());
        }
        for outside in &self.certificate.not_covered {
            points.push(format!("Not covered by the certificate: {outside}."));
        }
        if let (Some(radius), Some((_, most))) = (self.clip_norm(), self.clipped()) {
            points.push(format!(
                "Rows were clipped to {} {} about the centre; judging by the public rows at most {}% of rows are longer.",
                nearest(radius, 4),
                self.unit(),
                (100.0 * most).ceil()
            ));
        }
        if self.intervals().is_some_and(|all| all.iter().any(Option::is_some)) {
            points.push(format!("The {}.", self.allowance()));
        }
        let points: Vec<String> =
            points.iter().map(|point| table::wrap(&format!("- {point}"), "  ")).collect();
        format!("{}\n\n{}", table::columns(&headings, rows.collect()), points.join("\n"))
    }

    /// What is printed with the answer each time it is delivered.
    pub fn warnings(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// What a reader of the table should know.
    pub fn notes(&self, output: &Output) {
        let is_named = matches!(self.outcome, Outcome::Named { .. });
        if is_named && self.intervals().is_some_and(|intervals| intervals.contains(&None)) {
            output.note("no interval is known for a column that does not vary in the public rows");
        }
        if self.law().is_some_and(|law| law.clip(self.problem()).bias > 0.0) {
            output.note(
                "the radius was learned from the tail of the public rows; give --radius if private rows may reach further",
            );
        }
        if let Outcome::Named { errors: Err(reason), .. } = &self.outcome {
            output.note(&format!("no confidence intervals: {reason}"));
        }
        if self.certificate.arithmetic == Arithmetic::Idealised {
            output.note(
                "idealised arithmetic: the guarantee holds for real-valued noise; `--estimator auto` without \
                 --idealised keeps to estimators whose guarantee holds for the released bits",
            );
        }
    }
}

/// A shift, as answers have it.
pub fn shift_json(shift: Shift) -> Value {
    json!({
        "estimate": shift.estimate,
        "standard_error": shift.standard_error,
        "significant": shift.is_significant,
    })
}

/// A noised count, in one of so many columns.
fn counted(count: Estimated, columns: usize) -> Value {
    json!({
        "estimate": count.estimate,
        "standard_error": count.standard_error,
        "significant": count.is_significant(columns),
    })
}
