//! `semidp verify`: whether what a certificate claims follows from its events.

mod claims;

use crate::failure::Failure;
use crate::number;
use crate::output::Output;
use crate::report::bound;
use crate::signing::{self, PublicKey};
use crate::table;
use claims::{Comparison, Document};
use clap::Args;
use semidp::files;
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

    /// The institution's public key, which must have signed the certificate; values beside the certificate are not signed
    #[arg(long, value_name = "PUBLIC_KEY")]
    signer: Option<PathBuf>,

    /// Accept noise that was drawn from a seed, for tests and demonstrations: NOT private
    #[arg(long)]
    allow_seeded: bool,
}

impl Verify {
    /// Prints what was checked and found; a certificate that does not hold is a failure.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let text = files::read("CERTIFICATE", &self.certificate)?;
        let document = claims::parse(&text).map_err(|error| error.about("CERTIFICATE"))?;
        let certificate = &document.certificate;
        let signer = self.signer.as_deref().map(PublicKey::open).transpose()?;
        let finding = Finding::of(&document, signer.as_ref(), self.allow_seeded)?;
        output.answer(&finding.json(certificate), || finding.table(certificate))?;
        if self.allow_seeded && certificate.random_source == RandomSource::Seeded {
            output.warn("the noise came from a seed: not private against anyone who knows it");
        }
        if finding.objections.is_empty() {
            return Ok(());
        }
        Err(Failure::other(format!("the certificate does not hold: {}", finding.objections.join("; "))))
    }
}

/// What checking found.
struct Finding {
    /// None if the events give no guarantee at all.
    verdict: Option<Verdict>,
    objections: Vec<String>,
    /// Whether the signature was checked against a key that the caller trusts.
    has_signer: bool,
    /// Fields beside the certificate that it says nothing of, such as the values of a mean; None if there is nothing beside it.
    not_checked: Option<Vec<String>>,
}

impl Finding {
    fn of(document: &Document, signer: Option<&PublicKey>, allow_seeded: bool) -> Result<Self, Failure> {
        let certificate = &document.certificate;
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
        let comparison = document.beside.as_ref().map(|beside| claims::compare(certificate, beside));
        let (more, not_checked) = match comparison {
            Some(Comparison { objections, not_checked }) => (objections, Some(not_checked)),
            None => (Vec::new(), None),
        };
        objections.extend(more);
        objections.extend(signing::objection(certificate, signer)?);
        Ok(Self { verdict, objections, has_signer: signer.is_some(), not_checked })
    }

    /// What a signature says something about.
    fn covered_by_signature(&self) -> &'static str {
        match self.not_checked {
            Some(_) => "the certificate, not the values beside it",
            None => "every field of the certificate",
        }
    }

    fn json(&self, certificate: &Certificate) -> Value {
        let guarantee = &certificate.guarantee;
        let verdict = self.verdict.as_ref();
        let claims_something = guarantee.epsilon != Epsilon::UNBOUNDED;
        let figure = |epsilon: Option<Epsilon>| json!(epsilon.map(Epsilon::get));
        let mut answer = json!({
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
        });
        if certificate.signature.is_some() {
            answer["signature_covers"] = json!(self.covered_by_signature());
        }
        if certificate.is_custom() {
            answer["custom_mechanism"] = json!(true);
        }
        if let Some(names) = &self.not_checked {
            answer["not_checked"] = json!(names);
        }
        answer
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
        if certificate.is_custom() {
            let only = "the mechanism: its issuer named it, and trust and random source are as the issuer states them";
            row("not checked".into(), only.into());
        }
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
        if certificate.signature.is_some() {
            row("the signature covers".into(), self.covered_by_signature().into());
        }
        if let Some(names) = self.not_checked.as_ref().filter(|names| !names.is_empty()) {
            row("not checked".into(), format!("the values beside the certificate: {}", names.join(", ")));
        }
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
