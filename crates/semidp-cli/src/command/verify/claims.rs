//! What stands beside a certificate in the same file, and whether it agrees with it.

use semidp::model::SavedModel;
use semidp_accounting::{Accountants, Certificate, Epsilon, Error, Provenance, RandomSource, json};
use serde_json::{Map, Value, json};

/// Where an answer or a model has its certificate.
const CERTIFICATE: &str = "certificate";
/// Fields that only a certificate has.
const OWN: [&str; 6] = ["guarantee", "events", "releases", "random_source", "declassified", "signature"];
/// Fields of answers that are numbers, lists of numbers or objects of numbers.
const NUMBERS: [&str; 13] = [
    "epsilon",
    "delta",
    "rho",
    "noise_multiplier",
    "sample_rate",
    "steps",
    "accountants",
    "mean",
    "confidence_interval",
    "standard_error",
    "predicted_mse",
    "private_mean",
    "charged_epsilon",
];
/// Fields of answers that are words.
const WORDS: [&str; 5] = ["adjacency", "trust", "protects", "arithmetic", "mechanism"];

/// A file that was read: its certificate, and every other field of it.
pub struct Document {
    pub certificate: Certificate,
    /// None if the file is a certificate alone.
    pub beside: Option<Map<String, Value>>,
}

/// Reads a certificate alone, or an answer or a model with one certificate in it. A model's checksum must fit.
pub fn parse(text: &str) -> Result<Document, crate::failure::Failure> {
    let read = || json::parse(text).map_err(|error| malformed(error.to_string()));
    let mut value = read()?;
    if value.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("semidp-model/")) {
        // A model may be large: its values are in memory once at a time.
        drop(value);
        SavedModel::from_json(text)?;
        value = read()?;
    }
    let Value::Object(mut fields) = value else { return Ok(alone(Certificate::from_value(value)?)) };
    let Some(inner) = fields.shift_remove(CERTIFICATE) else {
        return Ok(alone(Certificate::from_value(Value::Object(fields))?));
    };
    if let Some(own) = own_field(&fields) {
        return Err(malformed(format!(
            "it has certificate fields of its own (`{own}`) beside a nested certificate, so that readers may take either"
        ))
        .into());
    }
    if let Some(place) = fields.iter().find_map(|(name, value)| has_certificate(value).then_some(name)) {
        return Err(malformed(format!("it has more than one certificate, the other in `{place}`")).into());
    }
    let certificate = Certificate::from_value(inner)?;
    check_names(&fields)?;
    check_types(&fields)?;
    Ok(Document { certificate, beside: Some(fields) })
}

fn alone(certificate: Certificate) -> Document {
    Document { certificate, beside: None }
}

fn malformed(reason: String) -> Error {
    Error::MalformedCertificate { reason }
}

/// A field of an object that only a certificate has.
fn own_field(fields: &Map<String, Value>) -> Option<&str> {
    let is_format =
        |value: &Value| value.as_str().is_some_and(|text| text.starts_with("semidp-certificate/"));
    let own = OWN.iter().find(|name| fields.contains_key(**name)).copied();
    own.or_else(|| fields.get("format").is_some_and(is_format).then_some("format"))
}

/// Whether there is a certificate, or a part of one, anywhere in a value.
fn has_certificate(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let is_own = fields.contains_key(CERTIFICATE)
                || fields.contains_key("guarantee")
                || own_field(fields) == Some("format");
            is_own || fields.values().any(has_certificate)
        }
        Value::Array(items) => items.iter().any(has_certificate),
        _ => false,
    }
}

/// Refuses names that a reader may take for those of semidp and a comparison passes over: `Epsilon`, or `epsilon` with a letter of another
/// alphabet.
fn check_names(fields: &Map<String, Value>) -> Result<(), Error> {
    let is_plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    match fields.keys().find(|name| !is_plain(name)) {
        Some(name) => Err(malformed(format!(
            "`{}` is no field of semidp: names have lower-case letters, digits and underscores",
            name.chars().take(QUOTED).collect::<String>()
        ))),
        None => Ok(()),
    }
}

/// Refuses words where numbers belong, and the reverse: a reader may take what a comparison of numbers passes over.
fn check_types(fields: &Map<String, Value>) -> Result<(), Error> {
    let wrong = |name: &str, wanted: &str| malformed(format!("`{name}` must be {wanted}"));
    for name in NUMBERS {
        if fields.get(name).is_some_and(|value| !is_numeric(value)) {
            return Err(wrong(name, "a number, not text"));
        }
    }
    for name in WORDS {
        if fields.get(name).is_some_and(|value| !value.is_string() && !value.is_null()) {
            return Err(wrong(name, "text"));
        }
    }
    Ok(())
}

/// Whether a value consists of numbers.
fn is_numeric(value: &Value) -> bool {
    match value {
        Value::Null | Value::Number(_) => true,
        Value::Array(items) => items.iter().all(is_numeric),
        Value::Object(fields) => fields.values().all(is_numeric),
        Value::Bool(_) | Value::String(_) => false,
    }
}

/// How the fields beside a certificate compare with it.
#[derive(Default)]
pub struct Comparison {
    /// Each field that claims more than the certificate, or something else.
    pub objections: Vec<String>,
    /// Each field that was not compared, because the certificate does not state it.
    pub not_checked: Vec<String>,
}

/// Compares every field that a certificate states too.
pub fn compare(certificate: &Certificate, beside: &Map<String, Value>) -> Comparison {
    let mut comparison = Comparison::default();
    for (name, stated) in beside.iter().filter(|(_, stated)| !stated.is_null()) {
        match check(certificate, name, stated) {
            Checked::Agrees => {}
            Checked::Differs(certified) => {
                let stated = words(stated);
                let differs = format!("{name}: the answer states {stated}, its certificate {certified}");
                comparison.objections.push(differs);
            }
            Checked::Unknown => comparison.not_checked.push(name.clone()),
        }
    }
    comparison
}

/// What was found about one field.
enum Checked {
    Agrees,
    /// With what the certificate states.
    Differs(String),
    /// The certificate does not state it.
    Unknown,
}

impl Checked {
    fn unless(differs: bool, certified: impl ToString) -> Self {
        if differs { Self::Differs(certified.to_string()) } else { Self::Agrees }
    }
}

fn check(certificate: &Certificate, name: &str, stated: &Value) -> Checked {
    let guarantee = &certificate.guarantee;
    // A smaller figure is a stronger claim.
    let bounded = |certified: Option<f64>| match (stated.as_f64(), certified) {
        (Some(stated), Some(certified)) => Checked::unless(stated < certified, certified),
        (Some(_), None) => Checked::Differs("none".into()),
        (None, _) => Checked::Differs("a number".into()),
    };
    let same = |certified: Value| Checked::unless(*stated != certified, words(&certified));
    match name {
        "epsilon" => bounded(Some(guarantee.epsilon.get())),
        "delta" => bounded(Some(guarantee.delta.get())),
        "rho" => bounded(guarantee.rho.map(|rho| rho.get())),
        "adjacency" => same(json!(guarantee.adjacency.name())),
        "trust" => same(json!(guarantee.trust)),
        "arithmetic" => same(json!(certificate.arithmetic)),
        // Some answers of nothing say so in more words.
        "protects" if guarantee.epsilon != Epsilon::UNBOUNDED => same(json!(guarantee.protects)),
        // `account` answers with figures on other grids, and of delta where epsilon is given. It draws no noise.
        "accountants" if certificate.random_source != RandomSource::None => {
            let agrees = accountants(certificate.accountants, guarantee.epsilon, stated);
            Checked::unless(!agrees, json!(certificate.accountants))
        }
        "assumptions" => same(json!(certificate.assumptions)),
        "not_covered" => same(json!(certificate.not_covered)),
        "version" => same(json!(certificate.version)),
        // `account` names the law of the noise alone, or `events`, and `local randomize` the randomiser.
        "mechanism" => {
            let is_part = |name: &str| {
                let parameter =
                    certificate.hyperparameters.iter().find(|parameter| parameter.name == "mechanism");
                laws(certificate).contains(&name)
                    || parameter.is_some_and(|parameter| parameter.value == name)
                    || name == "events"
                        && certificate.hyperparameters.iter().any(|parameter| parameter.name == "events")
            };
            let agrees = *stated == certificate.mechanism || stated.as_str().is_some_and(is_part);
            Checked::unless(!agrees, &certificate.mechanism)
        }
        "hyperparameters" => {
            let certified = hyperparameters(&certificate.hyperparameters);
            Checked::unless(*stated != certified, "others")
        }
        _ => match parameters(certificate).into_iter().find(|(known, _)| *known == name) {
            Some((_, certified)) => Checked::unless(stated.as_f64() != Some(certified), certified),
            None => Checked::Unknown,
        },
    }
}

/// The laws of the noise of a certificate's events: a Poisson sampled Gaussian event has Gaussian noise.
fn laws(certificate: &Certificate) -> Vec<&'static str> {
    let names = certificate.events.iter().filter_map(|event| {
        let event = serde_json::to_value(&event.event).ok()?;
        let name = event.get("event")?.as_str()?.to_string();
        ["gaussian", "laplace", "k-norm"].into_iter().find(|law| name.ends_with(law))
    });
    names.collect()
}

/// Whether no figure is below the certificate's, which has no field for a pure one: that is its epsilon.
fn accountants(certified: Accountants, pure: Epsilon, stated: &Value) -> bool {
    let Value::Object(figures) = stated else { return false };
    figures.iter().all(|(name, stated)| {
        let certified = match name.as_str() {
            "pld" => certified.pld,
            "rdp" => certified.rdp,
            "pure" => Some(pure),
            _ => None,
        };
        match (stated.as_f64(), certified) {
            (Some(stated), Some(certified)) => stated >= certified.get(),
            _ => stated.is_null(),
        }
    })
}

/// As `semidp train` answers them.
fn hyperparameters(entries: &[Provenance]) -> Value {
    let entries = entries.iter().map(|Provenance { name, value, source }| {
        (name.replace('-', "_"), json!({ "value": value, "source": source }))
    });
    Value::Object(entries.collect())
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
        // Every private row takes part in an event without a rate.
        if event.get("sample_rate").is_none() {
            parameters.push(("sample_rate", 1.0));
        }
    }
    parameters
}

/// Letters of a text that a message quotes.
const QUOTED: usize = 300;

/// A value in a message: text without its quotes, and its beginning only if it is long.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().take(QUOTED).collect(),
        Value::Object(_) | Value::Array(_) => "others".into(),
        other => other.to_string(),
    }
}
