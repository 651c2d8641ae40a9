//! `semidp audit mean --attack tracing`: the paper's attack on means in high dimension.

use super::mean::AuditMean;
use super::options::AuditOptions;
use super::report::{Report, interval_json, rate_words};
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, table};
use clap::{Args, ValueEnum};
use semidp::audit::tracing::{Attack, Knowledge, Mechanism, Threshold, TracingOutcome};
use semidp::audit::{Audit, LowerBound, Rate};
use semidp::mean::{Problem, plan_named};
use semidp_accounting::convert::{epsilon_to_zcdp_gaussian, zcdp_to_epsilon_gaussian};
use semidp_accounting::{Adjacency, Delta, PrivacyBudget};
use semidp_plot::{Series, Style};
use serde_json::{Map, Value, json};

/// Data sets that rows are traced in, unless it is said.
const TRIALS: u64 = 10;
/// Means of columns are drawn from this far on either side of zero, as in the paper's experiments of thought.
const SPREAD: f64 = 0.5;
/// The attacker's own: outsiders are called members with this chance at most.
const ATTACK_DELTA: f64 = 0.01;
/// Numbers of all rows of a data set.
const MOST_NUMBERS: u64 = 200_000_000;

/// What only the tracing attack has.
#[derive(Args)]
#[command(next_help_heading = "The tracing attack")]
pub struct TracingOptions {
    /// Above what a row is called a member [default: paper]
    #[arg(long, value_enum)]
    pub threshold: Option<ThresholdName>,

    /// The attacker knows so many other rows, instead of the mean of the law that rows are drawn from
    #[arg(long, value_name = "K", value_parser = crate::number::whole("reference-rows", 1), allow_hyphen_values = true)]
    pub reference_rows: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ThresholdName {
    /// As in the paper
    Paper,
    /// A smaller one, which still calls few outsiders members, whatever is released
    Sharper,
}

/// Traces, and answers.
pub fn run(
    command: &AuditMean,
    budget: PrivacyBudget,
    options: &AuditOptions,
    output: &Output,
) -> Result<(), Failure> {
    let mechanism = mechanism(&command.estimator)?;
    if command.radius.is_some() {
        return Err(Failure::input(
            "--radius must be left out with --attack tracing: its rows are of +1 and -1",
            "they lie at the root of --dim from the centre, all of them",
        ));
    }
    let rows = command.n_private.saturating_add(command.n_public);
    let rows = rows.saturating_mul(2).saturating_add(command.tracing.reference_rows.unwrap_or(0));
    if rows.saturating_mul(command.dim) > MOST_NUMBERS {
        return Err(Failure::input(
            "n-private must be smaller for --attack tracing: rows times columns at most 100 million",
            "as in --n-private 40 --n-public 10 --dim 10000; more columns than rows is where it works",
        ));
    }
    // Exchanging a row is one Gaussian release to the attacker, whatever currency its noise was bought in.
    let delta = budget.delta();
    let rho = match budget {
        PrivacyBudget::Zcdp { rho, .. } => rho,
        PrivacyBudget::Approximate { epsilon, delta } => epsilon_to_zcdp_gaussian(epsilon, delta)?,
        PrivacyBudget::Pure { .. } => {
            return Err(Failure::input(
                "delta must be given with --attack tracing, which attacks Gaussian noise, or --rho",
                "a budget is --epsilon with --delta, or --rho, as in --rho 0.5",
            ));
        }
    };
    let claimed = zcdp_to_epsilon_gaussian(rho, delta)?.get();
    let radius = (command.dim as f64).sqrt();
    let problem = Problem::new(command.n_private, command.n_public, command.dim as usize, radius)?;
    let is_released = plan_named(mechanism.name(), &problem, budget).is_ok();
    let common = options.options(command.trials.unwrap_or(TRIALS));
    let attack = Attack {
        dimension: command.dim as usize,
        private_rows: command.n_private as usize,
        public_rows: command.n_public as usize,
        spread: SPREAD,
        rho: rho.get(),
        delta: ATTACK_DELTA,
        threshold: match command.tracing.threshold {
            Some(ThresholdName::Sharper) => Threshold::Sharper,
            _ => Threshold::Paper,
        },
        knowledge: match command.tracing.reference_rows {
            Some(rows) => Knowledge::Estimated(rows as usize),
            None => Knowledge::Known,
        },
        trials: common.trials,
        confidence: common.confidence,
        seed: common.seed,
    };
    let plot = options.plot()?;
    let spinner = progress::spinner(output, "tracing rows");
    let found = attack.run(mechanism).and_then(|found| Ok((found, attack.run(Mechanism::NonPrivate)?)));
    spinner.finish_and_clear();
    let (found, open) = found?;
    let traced = Traced { attack, mechanism, found, open, claimed, delta };
    let mut report = traced.report(command.fields(mechanism.name(), budget));
    if !is_released {
        let control =
            "`semidp mean` refuses so little noise: this is a control of the attack, with emulated noise";
        report.notes.push(control.into());
    }
    report.finish(plot, output)
}

/// Whom the attack knows.
fn mechanism(estimator: &str) -> Result<Mechanism, Failure> {
    match estimator {
        "auto" | "weighted-gaussian" => Ok(Mechanism::Weighted),
        "gaussian" => Ok(Mechanism::Gaussian),
        other => Err(Failure::input(
            format!(
                "estimator must be auto, weighted-gaussian or gaussian with --attack tracing, got `{other}`"
            ),
            "--attack pair audits every estimator",
        )),
    }
}

/// What tracing found, in a private mean and in the mean as it is.
struct Traced {
    attack: Attack,
    mechanism: Mechanism,
    found: TracingOutcome,
    open: TracingOutcome,
    claimed: f64,
    delta: Delta,
}

impl Traced {
    fn report(self, mut fields: Map<String, Value>) -> Report {
        let mut put = |name: &str, value: Value| fields.insert(name.into(), value);
        put("attack", json!("tracing"));
        put("rho", json!(self.attack.rho));
        put("attack_delta", json!(ATTACK_DELTA));
        put("public_true_positive_rate", json!(self.public(&self.found).map(|rate| rate.value)));
        put("public_true_positive_interval", json!(self.public(&self.found).map(interval_json)));
        let means = [(Mechanism::NonPrivate.name(), &self.open), (self.mechanism.name(), &self.found)];
        put("means", means.map(|(name, outcome)| self.outcome_json(name, outcome)).to_vec().into());
        let mut report = Report::new(self.audit(), "data sets", fields);
        report.details = Some(self.table());
        report.drawn = self.points();
        report
            .notes
            .push("the promise covers private rows; that public rows can be traced breaks nothing".into());
        report
    }

    /// Rates as bounds: P(IN) of a member is at most e^ε·P(IN) of an outsider + δ.
    fn audit(&self) -> Audit {
        let (member, outsider) = (self.found.private, self.found.outsiders);
        let epsilon = ((member.lower - self.delta.get()) / outsider.upper).ln().max(0.0);
        let bound = LowerBound {
            method: "tracing",
            epsilon,
            confidence: self.attack.confidence,
            assumes: Some("rows of one data set that are called members independently of each other"),
        };
        Audit {
            what: format!("mean: {}, traced", self.mechanism.name()),
            claimed_epsilon: self.claimed,
            delta: self.delta.get(),
            adjacency: Adjacency::ReplaceOne,
            bounds: vec![bound],
            true_positive_rate: member,
            false_positive_rate: outsider,
            roc: vec![(0.0, 0.0), (outsider.value, member.value), (1.0, 1.0)],
            trials: self.attack.trials,
            seed: self.attack.seed,
        }
    }

    /// Of public rows, if there are any.
    fn public<'a>(&self, outcome: &'a TracingOutcome) -> Option<&'a Rate> {
        (self.attack.public_rows > 0).then_some(&outcome.public)
    }

    fn outcome_json(&self, name: &str, outcome: &TracingOutcome) -> Value {
        let share = |rate: &Rate| json!({ "rate": rate.value, "interval": interval_json(rate) });
        let [private, public, outsiders] = outcome.mean_scores;
        json!({
            "name": name,
            "private": share(&outcome.private),
            "public": self.public(outcome).map(share),
            "outsiders": share(&outcome.outsiders),
            "mean_scores": {
                "private": private,
                "public": self.public(outcome).map(|_| public),
                "outsiders": outsiders,
            },
            "private_weight": outcome.private_weight,
            "mean_squared_error": outcome.mean_squared_error,
        })
    }

    fn table(&self) -> String {
        let row = |name: &str, outcome: &TracingOutcome| {
            vec![
                name.to_string(),
                rate_words(&outcome.private),
                self.public(outcome).map_or("-".into(), rate_words),
                rate_words(&outcome.outsiders),
            ]
        };
        let headings = [
            "released mean",
            "private rows\ncalled members",
            "public rows\n(not protected)",
            "outsiders\n(false positives)",
        ];
        let open = row("as it is (NOT private)", &self.open);
        table::columns(&headings, vec![open, row(self.mechanism.name(), &self.found)])
    }

    /// Where rows that the promise does not cover lie.
    fn points(&self) -> Vec<Series> {
        let point = |name: &str, member: &Rate, outcome: &TracingOutcome, colour| Series {
            name: name.into(),
            points: vec![(outcome.outsiders.value, member.value)],
            style: Style::Points,
            colour,
        };
        let mut points = vec![point("private rows", &self.found.private, &self.found, 0)];
        points.extend(
            self.public(&self.found).map(|rate| point("public rows, not protected", rate, &self.found, 3)),
        );
        points.push(point("a mean without noise", &self.open.private, &self.open, 4));
        points
    }
}
