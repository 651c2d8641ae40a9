//! The record of a run of `mean`, by which the same command given again goes on with it.

use super::Mean;
use super::data::Data;
use super::method::Method;
use crate::command::plan::budget_words;
use crate::delivery::{Delivery, record_path};
use crate::failure::Failure;
use semidp::files::{self, Reserved};
use semidp::record::name_of;
use semidp::train::Fact;
use semidp_core::Randomness;
use serde_json::json;

impl Mean {
    /// Records the run if a ledger pays for it, or if its answer goes to a file. A seed draws the same noise anyway.
    pub(super) fn delivery(
        &self,
        data: &Data,
        method: &Method,
        randomness: Randomness,
        place: Option<&Reserved>,
    ) -> Result<Delivery, Failure> {
        let facts = self.facts(data, method);
        let (out, ledger) = (self.out.as_deref(), self.ledger.path());
        let is_recorded = method.spends() && (ledger.is_some() || self.seed.is_none());
        let path =
            record_path("mean", out, ledger.map(|path| path.as_path()), &facts).filter(|_| is_recorded);
        // Without --out the name of the record is known only now.
        let mut kept = files::beside(path.as_ref(), &files::OF_CHECKPOINT);
        kept.extend(path.clone());
        files::refuse_same_or_beside(&[("certificate", self.certificate.as_ref())], &[("ledger", kept)])?;
        let spent = match ledger {
            Some(_) => format!("{} was spent", budget_words(method.budget())),
            None => "the noise was drawn".into(),
        };
        Delivery::open(path, randomness, &facts, spent, out.is_some(), place)
    }

    /// Whatever the answer depends on, but for the private rows, which the kernel knows again by a keyed fingerprint. All of it is
    /// public: options, counts, and functions of the public rows.
    fn facts(&self, data: &Data, method: &Method) -> Vec<Fact> {
        let digest = |text: String| name_of(&[Fact::new("text", text)]);
        let bits = |values: &[f64]| {
            digest(values.iter().map(|x| format!("{:016x}", x.to_bits())).collect::<String>())
        };
        vec![
            Fact::new("version", env!("CARGO_PKG_VERSION")),
            Fact::new("budget", format!("{:?}", method.budget())),
            Fact::new("ledger", self.ledger.place()),
            Fact::new("private rows", method.problem().private_rows()),
            Fact::new("public rows", method.problem().public_rows()),
            Fact::new("columns", json!(data.encoding.names())),
            Fact::new("estimator", method.name()),
            Fact::new("clip norm", json!(method.clip_norm())),
            Fact::new("confidence", self.confidence),
            Fact::new("strict", self.strict),
            Fact::new("reading", format!("{:?}", self.reading)),
            Fact::new("signed by", format!("{:?}", self.sign.path())),
            Fact::new("seed", json!(self.seed)),
            Fact::new("plan", digest(format!("{method:?}"))),
            Fact::new("encoding", digest(format!("{:?}", data.encoding))),
            Fact::new("scale", bits(&data.decoder.scale)),
            Fact::new("shift", bits(&data.decoder.shift)),
            Fact::new("mean of the public rows", bits(&data.public_mean)),
            Fact::new("centre", bits(&data.centre)),
        ]
    }
}
