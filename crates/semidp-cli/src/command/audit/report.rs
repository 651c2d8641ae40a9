//! What an audit found, for people, programs and scripts.

use super::options::Plot;
use crate::failure::Failure;
use crate::number::{count, exact, lower_bound, nearest};
use crate::output::Output;
use crate::report::bound;
use crate::table;
use semidp::audit::{Audit, LowerBound, Rate};
use semidp_plot::{Axis, Chart, Series, Style};
use serde_json::{Map, Value, json};

/// Significant digits of printed figures.
const DIGITS: usize = 4;
/// What everybody should know who reads an audit.
const WHAT_IT_MEANS: &str = "An audit can show that a promise is broken; it cannot show that it is kept.";
/// Why nothing is lost.
pub const MADE_UP: &str =
    "every row was made up for the audit: no private row was read, and --seed loses no privacy";

/// An audit with what it was asked.
pub struct Report {
    /// What was found.
    pub audit: Audit,
    /// What a trial is, in a word or two.
    pub trials_are: &'static str,
    /// What was audited and what else was found, as programs read it.
    pub fields: Map<String, Value>,
    /// What else was found, as people read it.
    pub details: Option<String>,
    /// What else is drawn.
    pub drawn: Vec<Series>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl Report {
    /// Of an audit that says everything itself.
    pub fn new(audit: Audit, trials_are: &'static str, fields: Map<String, Value>) -> Self {
        Self { audit, trials_are, fields, details: None, drawn: Vec::new(), notes: Vec::new() }
    }

    /// Answers, and draws if it was asked to. A promise that is broken is a failure, so that no script goes on.
    pub fn finish(self, plot: Option<Plot>, output: &Output) -> Result<(), Failure> {
        let mut json = self.json();
        let mut drawn = None;
        if let Some(Plot { path, place }) = plot {
            place.fill(self.chart().svg()?.trim_end())?;
            json["plot"] = json!(path);
            drawn = Some(format!("wrote {path}"));
        }
        output.answer(&json, || self.text())?;
        self.notes.iter().chain(&drawn).for_each(|note| output.note(note));
        output.note(MADE_UP);
        self.outcome(output)
    }

    /// A failure if the promise is broken, and a word on how sure that is.
    fn outcome(&self, output: &Output) -> Result<(), Failure> {
        if !self.audit.is_violation() {
            return Ok(());
        }
        let chance = nearest(1.0 - self.audit.best().confidence, 2);
        output.warn(&format!(
            "a promise that is kept is called broken with chance {chance} at most: another --seed, more --trials and \
             a higher --confidence make it sure"
        ));
        Err(Failure::other(self.verdict()))
    }

    fn json(&self) -> Value {
        let audit = &self.audit;
        let best = audit.best();
        let mut fields = self.fields.clone();
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("audited", json!(audit.what));
        put("claimed_epsilon", json!(audit.claimed_epsilon));
        put("delta", json!(audit.delta));
        put("adjacency", json!(audit.adjacency.name()));
        put("protects", json!("private rows only"));
        put("audited_epsilon_lower_bound", json!(best.epsilon));
        put("confidence", json!(best.confidence));
        put("method", json!(best.method));
        put("bounds", audit.bounds.iter().map(bound_json).collect());
        put("true_positive_rate", json!(audit.true_positive_rate.value));
        put("true_positive_interval", interval_json(&audit.true_positive_rate));
        put("false_positive_rate", json!(audit.false_positive_rate.value));
        put("false_positive_interval", interval_json(&audit.false_positive_rate));
        put("trials", json!(audit.trials));
        put("seed", json!(audit.seed));
        put("rows", json!("synthetic"));
        put("verdict", json!(if audit.is_violation() { "violated" } else { "consistent" }));
        put("meaning", json!(WHAT_IT_MEANS));
        put("notes", json!(self.notes));
        fields.into()
    }

    fn text(&self) -> String {
        let audit = &self.audit;
        let mut rows = vec![
            ("audited".to_string(), audit.what.clone()),
            (format!("claimed epsilon ({})", audit.adjacency), claim(audit)),
        ];
        let bounds = audit.bounds.iter();
        rows.extend(bounds.map(|bound| ("epsilon is at least".to_string(), bound_words(bound))));
        rows.push(("true positive rate".into(), rate_words(&audit.true_positive_rate)));
        rows.push(("false positive rate".into(), rate_words(&audit.false_positive_rate)));
        let trials = format!("{} {} (seed {})", count(audit.trials), self.trials_are, audit.seed);
        rows.push(("trials".into(), trials));
        let mut parts = vec![table::facts(rows)];
        parts.extend(self.details.clone());
        let verdict = self.verdict();
        parts.push(table::wrap(&format!("In words: {verdict}. {WHAT_IT_MEANS}"), ""));
        parts.join("\n\n")
    }

    /// The outcome in a sentence.
    fn verdict(&self) -> String {
        let audit = &self.audit;
        let best = audit.best();
        let outcome = match audit.is_violation() {
            true => "the promise is BROKEN",
            false => "nothing contradicts the promise",
        };
        format!(
            "epsilon is at least {} (confidence {}) and claimed to be at most {}: {outcome}",
            lower_bound(best.epsilon, DIGITS),
            exact(best.confidence),
            claim(audit)
        )
    }

    /// How well the attack does, what the promise allows at best, and what a coin does.
    fn chart(&self) -> Chart {
        let audit = &self.audit;
        let line = |name: &str, points, style, colour| Series { name: name.into(), points, style, colour };
        let mut series = vec![
            line("the attack", audit.roc.clone(), Style::Line, 0),
            line("the most that the promise allows", audit.trade_off(), Style::Dashes, 1),
            line("a coin", vec![(0.0, 0.0), (1.0, 1.0)], Style::Dashes, 6),
        ];
        series.extend(self.drawn.iter().cloned());
        Chart {
            title: format!("{} (epsilon {})", audit.what, claim(audit)),
            x: Axis::linear("false positive rate"),
            y: Axis::linear("true positive rate"),
            series,
            marks: Vec::new(),
        }
    }
}

fn claim(audit: &Audit) -> String {
    match audit.delta {
        0.0 => format!("{} (pure)", bound(audit.claimed_epsilon)),
        delta => format!("{} at delta {}", bound(audit.claimed_epsilon), exact(delta)),
    }
}

fn bound_words(bound: &LowerBound) -> String {
    let (epsilon, confidence) = (lower_bound(bound.epsilon, DIGITS), exact(bound.confidence));
    let assumes = bound.assumes.map_or_else(String::new, |assumption| format!("; assumes {assumption}"));
    format!("{epsilon} with confidence {confidence} ({}{assumes})", bound.method)
}

fn bound_json(bound: &LowerBound) -> Value {
    json!({
        "method": bound.method,
        "epsilon": bound.epsilon,
        "confidence": bound.confidence,
        "assumes": bound.assumes,
    })
}

/// A share with its interval, in words.
pub fn rate_words(rate: &Rate) -> String {
    let shown = |share: f64| nearest(share, DIGITS);
    format!("{} ({} to {})", shown(rate.value), shown(rate.lower), shown(rate.upper))
}

/// The interval of a share.
pub fn interval_json(rate: &Rate) -> Value {
    json!([rate.lower, rate.upper])
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::Adjacency;

    fn report(claimed_epsilon: f64) -> Report {
        let rate = Rate::of(70, 100, 0.95);
        let bound = |method, epsilon, assumes| LowerBound { method, epsilon, confidence: 0.95, assumes };
        let audit = Audit {
            what: "something".into(),
            claimed_epsilon,
            delta: 1e-5,
            adjacency: Adjacency::ReplaceOne,
            bounds: vec![bound("first", 0.5, None), bound("second", 1.23456, Some("a lot"))],
            true_positive_rate: rate,
            false_positive_rate: rate,
            roc: vec![(0.0, 0.0), (0.3, 0.7), (1.0, 1.0)],
            trials: 100,
            seed: 7,
        };
        Report::new(audit, "runs", Map::new())
    }

    #[test]
    fn a_broken_promise_is_a_failure() {
        let silent = Output::new(true, true);
        for (claimed, verdict) in [(1.2, "violated"), (1.3, "consistent")] {
            let report = report(claimed);
            let json = report.json();
            assert_eq!(json["verdict"], verdict);
            assert_eq!(json["method"], "second");
            assert_eq!(json["audited_epsilon_lower_bound"], 1.23456);
            assert_eq!(json["bounds"][1]["assumes"], "a lot");
            assert_eq!(report.outcome(&silent).is_err(), verdict == "violated");
            assert_eq!(report.text().contains("the promise is BROKEN"), verdict == "violated");
        }
        let failure = report(1.2).outcome(&silent).unwrap_err();
        assert!(failure.message().contains("epsilon is at least 1.234 (confidence 0.95)"), "{failure:?}");
    }

    #[test]
    fn charts_show_the_attack_and_what_is_allowed() {
        let drawn = report(1.0).chart().svg().unwrap();
        for name in ["the attack", "the most that", "a coin", "false positive rate"] {
            assert!(drawn.contains(name), "{name}");
        }
    }
}
