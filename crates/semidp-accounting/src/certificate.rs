//! Certificates: what was promised and everything needed to check it. Never a statistic of the
//! private data.

mod consistency;
mod mechanism;

use crate::accountant::{
    Accountant, PldAccountant, PldOptions, PureAccountant, RdpAccountant, ZcdpAccountant, check_size,
};
use crate::{Adjacency, CountedEvent, Delta, Epsilon, Error, Guarantee, Protects, Result, Rho, Trust, json};
use mechanism::Mechanism;
use serde::{Deserialize, Serialize};

/// Whether the guarantee holds for the numbers a computer produces, or for real numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Integer sums and exact samplers: the guarantee holds for the released bits.
    Exact,
    /// The guarantee holds for real-valued noise; floating-point noise may leak low-order bits.
    Idealised,
}

/// Where the noise came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomSource {
    /// The operating system's cryptographic generator.
    OperatingSystem,
    /// A seed the user chose: reproducible, and NOT private against anyone who knows it.
    Seeded,
    /// Nothing was drawn: the certificate states what a mechanism would guarantee.
    None,
}

/// Where a hyper-parameter came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The hyper-parameter.
    pub name: String,
    /// Its value.
    pub value: serde_json::Value,
    /// `user`, `public data`, `theory`, `calibration` or `default`.
    pub source: String,
}

/// ε by each accountant that knows every event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accountants {
    /// Privacy loss distributions.
    pub pld: Option<Epsilon>,
    /// Rényi differential privacy.
    pub rdp: Option<Epsilon>,
}

/// The signature of the institution that issued a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The signature scheme; `ed25519` is the only one.
    pub algorithm: String,
    /// The public key that verifies it, 64 hexadecimal digits.
    pub public_key: String,
    /// The signature of [`Certificate::signed_bytes`], 128 hexadecimal digits.
    pub value: String,
}

/// Largest number of JSON values and keys in a certificate: five times those of a mean of 100,000 named columns. Signing and comparing make
/// copies of a certificate, each of up to 150 bytes a value.
const MAX_VALUES: usize = 500_000;
/// Largest number of bytes of all texts and keys in a certificate: 80 for each name of 100,000 columns. Messages quote them, escaped.
const MAX_TEXT: usize = 8 << 20;
/// The version of the certificate's form.
const FORMAT: &str = "semidp-certificate/1";

/// A guarantee with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Always `semidp-certificate/1`.
    pub format: String,
    /// The version of semidp that issued it.
    pub version: String,
    /// What is promised.
    pub guarantee: Guarantee,
    /// The mechanism, in words.
    pub mechanism: String,
    /// Every access to the private units, with every parameter that matters for privacy.
    pub events: Vec<CountedEvent>,
    /// How many noisy values were (or would be) released.
    pub releases: u64,
    /// ε by each accountant.
    pub accountants: Accountants,
    /// Exact or idealised.
    pub arithmetic: Arithmetic,
    /// Where the noise came from.
    pub random_source: RandomSource,
    /// Where each hyper-parameter came from.
    pub hyperparameters: Vec<Provenance>,
    /// Why private data was opened without protection, each time it was. Unless this is empty, nothing
    /// is promised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declassified: Vec<String>,
    /// What happened beside the events and is covered by no guarantee, such as a strict check of the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
    /// What the guarantee, or the accuracy of the answer, takes for granted about files and populations, such as
    /// "a quoted field may span lines" or "public and private rows come from the same population".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// What a reader should know about the strength of the guarantee, such as that its delta is large for so few rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The signature of the issuing institution, if it signed. [`Certificate::verify`] does not check it: that needs the
    /// institution's public key from a trusted source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// What checking a certificate found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether everything it claims follows from its events.
    pub valid: bool,
    /// ε recomputed from the events.
    pub epsilon: Epsilon,
    /// By each accountant.
    pub accountants: Accountants,
    /// Each claim that does not follow.
    pub objections: Vec<String>,
}

impl Certificate {
    /// Computes the guarantee of the events and states it. With δ = 0 the guarantee is pure.
    ///
    /// `mechanism` is a text that semidp itself writes, such as `mean: gaussian, rounded Gaussian noise`, or `custom: ` and a name in
    /// printable ASCII (at most 300 bytes in all) for the mechanism of another program. Of a custom mechanism [`Certificate::verify`] knows the events only: trust and
    /// random source are as its issuer states them, and [`Arithmetic::Exact`] is not accepted. Anything else is refused.
    ///
    /// ```
    /// use semidp_accounting::{Adjacency, Certificate, Delta, Trust, parse_events};
    /// let events = parse_events(r#"[{"event":"laplace","noise_multiplier":2,"dimension":1}]"#)?;
    /// let mechanism = "custom: Laplace noise on a count";
    /// let certificate = Certificate::issue(events, Adjacency::AddRemove, Trust::Central, Delta::new(0.0)?, mechanism)?;
    /// assert!(certificate.verify()?.valid && certificate.is_custom());
    /// # Ok::<(), semidp_accounting::Error>(())
    /// ```
    pub fn issue(
        events: Vec<CountedEvent>,
        adjacency: Adjacency,
        trust: Trust,
        delta: Delta,
        mechanism: impl Into<String>,
    ) -> Result<Self> {
        let mechanism = mechanism.into();
        if Mechanism::parse(&mechanism).is_none() {
            return Err(Error::InvalidParameter {
                name: "mechanism",
                value: format!("{mechanism:?}"),
                requirement: "one that semidp issues, or `custom: ` and a name in printable ASCII",
            });
        }
        let answer = crate::epsilon(&events, adjacency, delta)?;
        Ok(Self {
            format: FORMAT.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            guarantee: Guarantee {
                epsilon: answer.value,
                delta,
                rho: rho(&events, adjacency),
                adjacency,
                trust,
                protects: Protects::PrivateRowsOnly,
            },
            mechanism,
            releases: releases(&events),
            events,
            accountants: Accountants { pld: answer.pld, rdp: answer.rdp },
            arithmetic: Arithmetic::Idealised,
            random_source: RandomSource::None,
            hyperparameters: Vec::new(),
            declassified: Vec::new(),
            not_covered: Vec::new(),
            assumptions: Vec::new(),
            notes: Vec::new(),
            signature: None,
        })
    }

    /// Whether the mechanism has a name of its issuer, so that [`Certificate::verify`] can check the events only.
    pub fn is_custom(&self) -> bool {
        matches!(Mechanism::parse(&self.mechanism), Some(Mechanism::Custom))
    }

    /// Reads a certificate. A key that occurs twice in one object is refused.
    pub fn from_json(text: &str) -> Result<Self> {
        let malformed = |reason: String| Error::MalformedCertificate { reason };
        let value = json::parse(text).map_err(|error| malformed(error.to_string()))?;
        Self::from_value(value)
    }

    /// Reads a certificate that is already parsed.
    pub fn from_value(value: serde_json::Value) -> Result<Self> {
        let malformed = |reason: String| Error::MalformedCertificate { reason };
        match value.get("format").and_then(|f| f.as_str()) {
            Some(FORMAT) => {}
            Some(other) => return Err(malformed(format!("format `{other}`, expected `{FORMAT}`"))),
            None => return Err(malformed("it has no `format` field".into())),
        }
        let size = json::Size::of(&value);
        if size.values > MAX_VALUES {
            return Err(malformed(format!("it has more than {MAX_VALUES} JSON values and keys")));
        }
        if size.text > MAX_TEXT {
            return Err(malformed(format!("it has more than {} MiB of text", MAX_TEXT >> 20)));
        }
        let certificate: Self = serde_json::from_value(value).map_err(|e| malformed(e.to_string()))?;
        if certificate.guarantee.epsilon == Epsilon::UNBOUNDED && certificate.declassified.is_empty() {
            return Err(malformed("its epsilon is null, and nothing was declassified".into()));
        }
        Ok(certificate)
    }

    /// Says that private data was opened, and why: from now on nothing is promised.
    pub fn declassify(&mut self, reason: impl Into<String>) {
        self.declassified.push(reason.into());
        self.guarantee.epsilon = Epsilon::UNBOUNDED;
        self.guarantee.rho = None;
        self.accountants = Accountants { pld: None, rdp: None };
    }

    /// The bytes that a signature covers: every field but the signature itself, as JSON without white space whose keys are
    /// sorted, after a line that names the purpose. Whitespace and order of a certificate's file do not matter to it.
    pub fn signed_bytes(&self) -> Result<Vec<u8>> {
        let unsigned = Self { signature: None, ..self.clone() };
        let value = serde_json::to_value(&unsigned)
            .map_err(|error| Error::MalformedCertificate { reason: error.to_string() })?;
        Ok(format!("{SIGNED}\n{}", sorted(value)).into_bytes())
    }

    /// Recomputes everything from the events with both accountants, and compares the events with what else the certificate
    /// states: mechanism, trust, arithmetic, random source and hyper-parameters. A mechanism that is neither one of semidp nor `custom` is
    /// not valid. A certificate of seeded noise is not valid: the
    /// guarantee does not hold against anyone who knows the seed.
    ///
    /// The check uses the grid that issuing used, and a finer one, and believes the smaller answer: so
    /// a claim stands only if a certified upper bound implies it, without any tolerance.
    pub fn verify(&self) -> Result<Verdict> {
        self.check(true)
    }

    /// As [`Certificate::verify`], but accepts seeded noise: for tests and demonstrations, whose rows need no protection.
    pub fn verify_allowing_seeded(&self) -> Result<Verdict> {
        self.check(false)
    }

    fn check(&self, refuse_seeded: bool) -> Result<Verdict> {
        let Guarantee { epsilon: claimed, delta, adjacency, rho: claimed_rho, .. } = self.guarantee;
        let reasons = self.declassified.iter();
        let mut objections: Vec<String> =
            reasons.map(|reason| format!("private data was declassified: {reason}")).collect();
        if claimed == Epsilon::UNBOUNDED {
            // Nothing is claimed, and nothing can be recomputed.
            let nothing = "nothing is promised: epsilon is unbounded".to_string();
            objections.push(nothing);
            return Ok(self.verdict(claimed, Accountants { pld: None, rdp: None }, objections));
        }
        objections.extend(consistency::objections(self));
        if refuse_seeded && self.random_source == RandomSource::Seeded {
            objections.push("random_source: the noise was drawn from a seed: NOT private".into());
        }
        if delta.get() == 0.0 {
            let stated =
                [("accountants.pld", self.accountants.pld), ("accountants.rdp", self.accountants.rdp)];
            for (name, _) in stated.iter().filter(|(_, epsilon)| epsilon.is_some()) {
                objections.push(format!("{name}: states an epsilon, but the guarantee is pure (delta 0)"));
            }
        }
        if self.events.is_empty() && claimed.get() == 0.0 {
            // Nothing private was touched: ε = 0 needs no evidence.
            return Ok(self.verdict(claimed, Accountants { pld: None, rdp: None }, objections));
        }
        let pure = ask(PureAccountant::new(adjacency), &self.events, delta);
        if delta.get() > 0.0 {
            check_size(&self.events, adjacency)?;
        }
        let accountants = if delta.get() == 0.0 {
            Accountants { pld: None, rdp: None }
        } else {
            let fine = PldOptions { tolerance: 5e-5, step_scale: 0.5, ..PldOptions::default() };
            let pld =
                |options| known(ask(PldAccountant::with_options(adjacency, options), &self.events, delta));
            Accountants {
                // Both are upper bounds: the smaller one is as good as either.
                pld: match (pld(fine)?, pld(PldOptions::default())?) {
                    (Some(a), Some(b)) => Some(if a < b { a } else { b }),
                    (one, other) => one.or(other),
                },
                rdp: known(ask(RdpAccountant::new(adjacency), &self.events, delta))?,
            }
        };
        // Both accountants' answers are upper bounds: the smaller one is what the events give.
        let smaller = match (accountants.pld, accountants.rdp) {
            (Some(pld), Some(rdp)) => Some(if rdp < pld { rdp } else { pld }),
            (one, other) => one.or(other),
        };
        let epsilon = match (delta.get() == 0.0, smaller) {
            (false, Some(epsilon)) => epsilon,
            _ => pure?,
        };
        let below = |objections: &mut Vec<String>, what: &str, claimed: f64, found: f64| {
            if claimed < found {
                objections.push(format!("{what}: claims {claimed}, the events give {found}"));
            }
        };
        below(&mut objections, "epsilon", claimed.get(), epsilon.get());
        for (name, claimed, found, tolerance) in [
            ("accountants.pld", self.accountants.pld, accountants.pld, 0.0),
            // The same arithmetic on another processor may differ in its last digits.
            ("accountants.rdp", self.accountants.rdp, accountants.rdp, 1e-9),
        ] {
            match (claimed, found) {
                (Some(claimed), Some(found)) => {
                    below(&mut objections, name, claimed.get() * (1.0 + tolerance), found.get());
                }
                // A pure guarantee was objected to above.
                (Some(_), None) if delta.get() > 0.0 => {
                    objections.push(format!("{name}: states an epsilon, but this accountant has none"));
                }
                _ => {}
            }
        }
        if let Some(claimed) = claimed_rho {
            match rho(&self.events, adjacency) {
                Some(found) => below(&mut objections, "rho", claimed.get() * (1.0 + 1e-12), found.get()),
                None => objections.push("rho: claimed, but the events have no zCDP guarantee".into()),
            }
        }
        Ok(self.verdict(epsilon, accountants, objections))
    }

    fn verdict(&self, epsilon: Epsilon, accountants: Accountants, objections: Vec<String>) -> Verdict {
        Verdict { valid: objections.is_empty(), epsilon, accountants, objections }
    }
}

/// The first line of what is signed, so that a signature cannot be taken for one of something else.
const SIGNED: &str = "semidp-certificate-signature/1";

/// The same JSON with the keys of every object in order.
fn sorted(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            serde_json::Value::Object(fields.into_iter().collect())
        }
        serde_json::Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn ask(mut accountant: impl Accountant, events: &[CountedEvent], delta: Delta) -> Result<Epsilon> {
    accountant.compose_all(events)?;
    accountant.epsilon(delta)
}

/// An accountant that does not know an event, or whose bound is useless, has no say.
fn known(answer: Result<Epsilon>) -> Result<Option<Epsilon>> {
    match answer {
        Ok(epsilon) => Ok(Some(epsilon)),
        Err(Error::UnknownEvent { .. } | Error::OutOfRange { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn rho(events: &[CountedEvent], adjacency: Adjacency) -> Option<Rho> {
    let mut accountant = ZcdpAccountant::new(adjacency);
    accountant.compose_all(events).ok()?;
    accountant.rho().ok()
}

fn releases(events: &[CountedEvent]) -> u64 {
    events
        .iter()
        .map(|one| match one.event {
            crate::Event::OnePassGaussian { blocks, .. } => blocks.saturating_mul(one.count.get()),
            _ => one.count.get(),
        })
        .fold(0, u64::saturating_add)
}
