//! What leaves the library in one run, by name.

use crate::Result;
use crate::train::Trained;
use semidp_core::{Certificate, Release};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};

/// Everything that leaves the library in one run. Numbers are kept by their bits, so that −0 and NaN count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    entries: BTreeMap<String, String>,
}

/// Longer texts are cut in reports.
const SHOWN: usize = 160;

impl Observed {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text under a name; a second one under the same name follows the first.
    pub fn note(&mut self, name: &str, text: impl AsRef<str>) {
        let entry = self.entries.entry(name.into()).or_default();
        entry.push_str(text.as_ref());
        entry.push('\n');
    }

    /// Adds numbers by their bits.
    pub fn numbers(&mut self, name: &str, numbers: &[f64]) {
        let mut text = String::new();
        for number in numbers {
            let _ = write!(text, "{number}/{:x} ", number.to_bits());
        }
        self.note(name, text);
    }

    /// Adds every field of a certificate.
    pub fn certificate(&mut self, certificate: &Certificate) {
        match serde_json::to_value(certificate) {
            Ok(serde_json::Value::Object(fields)) => {
                fields.iter().for_each(|(name, value)| {
                    self.note(&format!("certificate.{name}"), value.to_string());
                });
            }
            other => self.note("certificate", format!("{other:?}")),
        }
    }

    /// Adds an error with all its fields, and its message.
    pub fn error(&mut self, error: &crate::Error) {
        self.note("error", format!("{error:?}: {error}"));
    }

    /// Adds a trained model, or why there is none.
    pub fn trained(&mut self, trained: &Result<Trained>) {
        match trained {
            Err(error) => self.error(error),
            Ok(trained) => {
                let model = &trained.model;
                self.numbers("model.weights", &model.weights);
                let shape = (model.features, model.outputs, model.has_intercept);
                self.note("model.shape", format!("{shape:?}"));
                self.numbers("alpha", &[trained.alpha]);
                self.certificate(&trained.certificate);
            }
        }
    }

    /// Adds a release, or why there is none.
    pub fn release<T: Debug>(&mut self, release: &Result<Release<T>>) {
        match release {
            Err(error) => self.error(error),
            Ok(release) => {
                // Rust prints floats so that they read back as they were.
                self.note("value", format!("{:?}", release.value));
                self.certificate(&release.certificate);
            }
        }
    }

    /// A run that panicked, with its message.
    pub(super) fn of_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let mut observed = Self::new();
        observed.note("panic", text);
        observed
    }

    /// Names whose values differ, with both values, cut to where they begin to differ.
    pub(super) fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let names =
            self.entries.keys().chain(other.entries.keys().filter(|&k| !self.entries.contains_key(k)));
        let mut found = Vec::new();
        for name in names {
            let (a, b) = (self.entries.get(name), other.entries.get(name));
            if a != b {
                let (a, b) = (a.map_or("nothing", |x| x), b.map_or("nothing", |x| x));
                let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
                found.push((name.clone(), excerpt(a, same), excerpt(b, same)));
            }
        }
        found
    }
}

/// The text from a little before a character on.
fn excerpt(text: &str, place: usize) -> String {
    let from = place.saturating_sub(SHOWN / 4);
    text.chars().skip(from).take(SHOWN).collect::<String>().trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_missing_names_count() {
        let of = |x: f64| {
            let mut observed = Observed::new();
            observed.numbers("x", &[1.0, x]);
            observed
        };
        assert!(of(f64::NAN).differences(&of(f64::NAN)).is_empty());
        assert_eq!(of(0.0).differences(&of(-0.0)).len(), 1);
        assert_eq!(of(1.0).differences(&of(1.0f64.next_up())).len(), 1);
        let mut more = of(0.0);
        more.note("y", "é".repeat(300));
        let found = of(0.0).differences(&more);
        assert_eq!((found[0].0.as_str(), found[0].1.as_str()), ("y", "nothing"));
        assert!(found[0].2.chars().count() <= SHOWN);
        assert_eq!(more.differences(&of(0.0)).len(), 1);
    }
}
