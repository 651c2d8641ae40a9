//! `semidp verify`: whether what a certificate claims follows from its events.

use crate::failure::Failure;
use crate::number;
use crate::output::Output;
use crate::report::bound;
use crate::signing::{self, PublicKey};
use crate::{file, table};
use clap::Args;
use semidp_accounting::{Arithmetic, Certificate, Epsilon, Error, RandomSource, Verdict};
use serde_json::{Value, json};
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp calibrate --epsilon 2 --delta 1e-5 --steps 10 --json | semidp verify -";

/// Recompute a certificate's guarantee from its events with both accountants.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Verify {
    /// The certificate, or any JSON answer that holds one; - for stdin
    #[arg(value_name = "CERTIFICATE")]
    certificate: PathBuf,

    /// The institution's public key: what it did not sign, or was altered since, is not valid
    #[arg(long, value_name = "PUBLIC_KEY")]
    signer: Option<PathBuf>,

    /// Accept noise that was drawn from a seed, for tests and demonstrations: NOT private
    #[arg(long)]
    allow_seeded: bool,
}

impl Verify {
    /// Answers; a certificate that does not hold is a failure.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let text = file::read("CERTIFICATE", &self.certificate)?;
        let (certificate, claims) =
            parse(&text).map_err(|error| Failure::from(error).about("CERTIFICATE"))?;
        let signer = self.signer.as_deref().map(PublicKey::open).transpose()?;
        let finding = Finding::of(&certificate, &claims, signer.as_ref(), self.allow_seeded)?;
        output.answer(&finding.json(&certificate), || finding.table(&certificate))?;
        if self.allow_seeded && certificate.random_source == RandomSource::Seeded {
            output.warn("the noise came from a seed: not private against anyone who knows it");
        }
        if finding.objections.is_empty() {
            return Ok(());
        }
        Err(Failure::other(format!("the certificate does not hold: {}", finding.objections.join("; "))))
    }
}

/// A certificate alone, or an answer with a certificate in it. The answer is returned too, as it
/// makes claims of its own.
fn parse(text: &str) -> Result<(Certificate, Value), Error> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::MalformedCertificate { reason: format!("not JSON: {error}") })?;
    match value.get("certificate") {
        Some(inner) => Ok((Certificate::from_value(inner.clone())?, value)),
        None => Ok((Certificate::from_value(value)?, Value::Null)),
    }
}

/// What checking found.
struct Finding {
    /// None if the events give no guarantee at all.
    verdict: Option<Verdict>,
    objections: Vec<String>,
    /// Whether the signature was checked against a key that the caller trusts.
    has_signer: bool,
}

impl Finding {
    fn of(
        certificate: &Certificate,
        claims: &Value,
        signer: Option<&PublicKey>,
        allow_seeded: bool,
    ) -> Result<Self, Failure> {
        let verdict = if allow_seeded { certificate.verify_allowing_seeded() } else { certificate.verify() };
        let (verdict, mut objections) = match verdict {
            Ok(verdict) => {
                let objections = verdict.objections.clone();
                (Some(verdict), objections)
            }
            // The accountants contradict each other, or have too much to do: says nothing about the certificate.
            Err(error @ (Error::Disagreement { .. } | Error::TooManyEvents { .. })) => {
                return Err(error.into());
            }
            Err(error) => (None, vec![format!("the events do not support the claim: {error}")]),
        };
        objections.extend(overstatements(certificate, claims));
        objections.extend(signing::objection(certificate, signer)?);
        Ok(Self { verdict, objections, has_signer: signer.is_some() })
    }

    fn json(&self, certificate: &Certificate) -> Value {
        let guarantee = &certificate.guarantee;
        let verdict = self.verdict.as_ref();
        let claims_something = guarantee.epsilon != Epsilon::UNBOUNDED;
        let figure = |epsilon: Option<Epsilon>| json!(epsilon.map(Epsilon::get));
        json!({
            "valid": self.objections.is_empty(),
            "epsilon": figure(verdict.map(|verdict| verdict.epsilon)),
            "claimed_epsilon": guarantee.epsilon.get(),
            "delta": claims_something.then(|| guarantee.delta.get()),
            "claimed_rho": guarantee.rho,
            "adjacency": guarantee.adjacency.name(),
            "trust": guarantee.trust,
            "protects": if claims_something { "private rows only" } else { "nothing" },
            "mechanism": certificate.mechanism,
            "accountants": {
                "pld": figure(verdict.and_then(|verdict| verdict.accountants.pld)),
                "rdp": figure(verdict.and_then(|verdict| verdict.accountants.rdp)),
            },
            "arithmetic": certificate.arithmetic,
            "random_source": certificate.random_source,
            "not_covered": certificate.not_covered,
            "assumptions": certificate.assumptions,
            "notes": certificate.notes,
            "signed_by": certificate.signature.as_ref().map(|signature| &signature.public_key),
            "signer_checked": self.has_signer,
            "objections": self.objections,
        })
    }

    fn table(&self, certificate: &Certificate) -> String {
        let guarantee = &certificate.guarantee;
        let adjacency = guarantee.adjacency;
        let valid = if self.objections.is_empty() { "yes" } else { "NO" };
        let mut rows = vec![("valid".to_string(), valid.to_string())];
        let mut row = |name: String, value: String| rows.push((name, value));
        let claims_something = guarantee.epsilon != Epsilon::UNBOUNDED;
        row(
            format!("claimed epsilon ({adjacency})"),
            if claims_something {
                format!(
                    "{} at delta {}",
                    bound(guarantee.epsilon.get()),
                    number::exact(guarantee.delta.get())
                )
            } else {
                "none: nothing is promised".into()
            },
        );
        if let Some(verdict) = self.verdict.as_ref().filter(|_| claims_something) {
            row(format!("recomputed epsilon ({adjacency})"), bound(verdict.epsilon.get()));
            let both = [("PLD", verdict.accountants.pld), ("RDP", verdict.accountants.rdp)];
            let both: Vec<String> = both
                .iter()
                .filter_map(|(name, epsilon)| epsilon.map(|e| format!("{name} {}", bound(e.get()))))
                .collect();
            if !both.is_empty() {
                row(format!("epsilon ({adjacency}) by accountant"), both.join(", "));
            }
        }
        let protected = "the private rows only, whatever the public rows are";
        row("protects".into(), if claims_something { protected } else { "nothing" }.into());
        row("mechanism".into(), certificate.mechanism.clone());
        let arithmetic = match certificate.arithmetic {
            Arithmetic::Exact => "exact: the guarantee holds for the released bits",
            Arithmetic::Idealised => "idealised: the guarantee holds for real-valued noise",
        };
        row("arithmetic".into(), arithmetic.into());
        let source = match certificate.random_source {
            RandomSource::OperatingSystem => "the operating system",
            RandomSource::Seeded => "a seed: NOT private against anyone who knows it",
            RandomSource::None => "none: nothing was drawn here",
        };
        row("random source".into(), source.into());
        let signature = match (&certificate.signature, self.has_signer) {
            (None, _) => "none".into(),
            (Some(signature), true) => format!("{}, checked against --signer", signature.public_key),
            (Some(signature), false) => {
                format!(
                    "{}, whoever that is: --signer checks it against a key you trust",
                    signature.public_key
                )
            }
        };
        row("signed by".into(), signature);
        for outside in &certificate.not_covered {
            row("not covered".into(), outside.clone());
        }
        for assumption in &certificate.assumptions {
            row("assumes".into(), assumption.clone());
        }
        for note in &certificate.notes {
            row("note".into(), note.clone());
        }
        for objection in &self.objections {
            row("objection".into(), objection.clone());
        }
        table::facts(rows)
    }
}

/// Claims of the surrounding answer that go beyond its certificate.
fn overstatements(certificate: &Certificate, claims: &Value) -> Vec<String> {
    let guarantee = &certificate.guarantee;
    let mut objections = Vec::new();
    let rho = guarantee.rho.map(|rho| rho.get());
    for (name, certified) in
        [("epsilon", Some(guarantee.epsilon.get())), ("delta", Some(guarantee.delta.get())), ("rho", rho)]
    {
        if let (Some(stated), Some(certified)) = (claims.get(name).and_then(Value::as_f64), certified)
            && stated < certified
        {
            objections.push(format!("{name}: the answer states {stated}, its certificate {certified}"));
        }
    }
    if let Some(stated) = claims.get("adjacency").and_then(Value::as_str)
        && stated != guarantee.adjacency.name()
    {
        let certified = guarantee.adjacency;
        objections.push(format!("adjacency: the answer states {stated}, its certificate {certified}"));
    }
    for (name, certified) in parameters(certificate) {
        if let Some(stated) = claims.get(name).and_then(Value::as_f64)
            && stated != certified
        {
            objections.push(format!("{name}: the answer states {stated}, its certificate {certified}"));
        }
    }
    objections
}

/// What the certificate says of the parameters that an answer repeats, because whoever reads the
/// answer will run with them.
fn parameters(certificate: &Certificate) -> Vec<(&'static str, f64)> {
    let mut parameters = vec![("steps", certificate.releases as f64)];
    if let [only] = &certificate.events[..]
        && let Ok(event) = serde_json::to_value(&only.event)
    {
        let named = |name| Some((name, event.get(name)?.as_f64()?));
        parameters.extend(["noise_multiplier", "sample_rate"].into_iter().filter_map(named));
    }
    parameters
}
