//! Model files: JSON with a version and a checksum, complete enough to be used alone.

use super::target::{MOST_CLASSES, listed_classes};
use super::{Columns, Target};
use crate::loss::Loss;
use crate::train::Model;
use crate::{Error, Result};
use semidp_accounting::{Certificate, Epsilon, json};
use semidp_table::{Feature, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const FORMAT: &str = "semidp-model/1";
const CHECKSUM: &str = "checksum";

/// A trained model with everything needed to use it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedModel {
    /// Always `semidp-model/1`.
    pub format: String,
    /// The version of semidp that wrote it.
    pub version: String,
    /// How it was trained.
    pub algorithm: String,
    /// What was minimised, as on the command line.
    pub loss: String,
    /// What is predicted.
    pub target: Target,
    /// What the columns of a table mean.
    pub schema: Schema,
    /// How they become features.
    pub features: Vec<Feature>,
    /// The names of the features, for people.
    pub feature_names: Vec<String>,
    /// Whether each output has an intercept.
    pub has_intercept: bool,
    /// Scores of a row.
    pub outputs: usize,
    /// Output by output, the intercept last.
    pub weights: Vec<f64>,
    /// What is promised about the weights.
    pub certificate: Certificate,
}

impl SavedModel {
    /// Puts a model together with its columns.
    pub fn new(
        columns: &Columns,
        model: &Model,
        loss: &str,
        algorithm: &str,
        certificate: Certificate,
    ) -> Self {
        Self {
            format: FORMAT.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            algorithm: algorithm.into(),
            loss: loss.into(),
            target: columns.target().clone(),
            schema: columns.schema().clone(),
            features: columns.features().to_vec(),
            feature_names: columns.names().to_vec(),
            has_intercept: model.has_intercept,
            outputs: model.outputs,
            weights: model.weights.clone(),
            certificate,
        }
    }

    /// The text of the file.
    pub fn to_json(&self) -> Result<String> {
        let malformed = |error: serde_json::Error| Error::MalformedModel { reason: error.to_string() };
        let mut value = serde_json::to_value(self).map_err(malformed)?;
        let sum = checksum(&value);
        value[CHECKSUM] = Value::String(sum);
        serde_json::to_string_pretty(&value).map_err(malformed)
    }

    /// Reads a file and checks everything about it.
    pub fn from_json(text: &str) -> Result<Self> {
        let malformed = |reason: &str| Error::MalformedModel { reason: reason.into() };
        // Not the parser's words, which quote the text: somebody may give the wrong file.
        let mut value = json::parse(text).map_err(|error| {
            let (what, place) = match &error {
                json::Error::NotJson(place) => ("not JSON", place),
                json::Error::RepeatedKey(place) => ("a key occurs twice in one object", place),
                json::Error::TooManyValues { .. } => return malformed(&error.to_string()),
            };
            malformed(&format!("{what}, line {} column {}", place.line(), place.column()))
        })?;
        match value.get("format").and_then(Value::as_str) {
            Some(FORMAT) => {}
            Some(found) if found.starts_with("semidp-model/") => {
                return Err(Error::UnknownModelFormat { found: found.into(), known: FORMAT });
            }
            _ => return Err(malformed("its format is not that of a model")),
        }
        let object = value.as_object_mut().ok_or_else(|| malformed("not an object"))?;
        let Some(Value::String(stated)) = object.shift_remove(CHECKSUM) else {
            return Err(malformed("it has no checksum"));
        };
        if stated != checksum(&value) {
            return Err(malformed("its checksum does not match: it was damaged or edited"));
        }
        let model: Self =
            serde_json::from_value(value).map_err(|_| malformed("not the fields of a model"))?;
        model.check()?;
        Ok(model)
    }

    /// Whether its parts fit together.
    fn check(&self) -> Result<()> {
        let malformed = |reason: &str| Error::MalformedModel { reason: reason.into() };
        let columns = self.columns()?;
        let target = self.schema.position(self.target.column())?;
        if self.features.iter().any(|feature| feature.column() == target) {
            return Err(malformed("its target is among its features"));
        }
        let is_plausible = match &self.target {
            Target::Number { .. } => true,
            Target::Classes { classes, .. } => {
                listed_classes(&self.schema, target).as_ref() == Some(classes) && classes.len() >= 2
            }
            Target::NumberedClasses { count, .. } => (2..=MOST_CLASSES).contains(count),
        };
        if !is_plausible {
            return Err(malformed("its classes are not those of its schema"));
        }
        let (loss, _) = self.target.loss(Some(&self.loss))?;
        if loss.outputs() != self.outputs {
            return Err(malformed("its loss has another number of scores"));
        }
        if self.weights.len() != self.outputs * (self.features.len() + usize::from(self.has_intercept)) {
            return Err(malformed("it has another number of weights than features ask for"));
        }
        if columns.names() != self.feature_names {
            return Err(malformed("the names of its features are not theirs"));
        }
        let nothing_promised = self.certificate.guarantee.epsilon == Epsilon::UNBOUNDED;
        if nothing_promised == self.certificate.declassified.is_empty() {
            return Err(malformed("its certificate has no epsilon and no reason for that, or both"));
        }
        if self.weights.iter().any(|weight| !weight.is_finite()) {
            return Err(malformed("a weight is not finite"));
        }
        Ok(())
    }

    /// The weights at work.
    pub fn model(&self) -> Model {
        let features = self.features.len();
        Model::zero(features, self.outputs, self.has_intercept).with_weights(self.weights.clone())
    }

    /// What was minimised.
    pub fn loss(&self) -> Result<Box<dyn Loss>> {
        Ok(self.target.loss(Some(&self.loss))?.0)
    }

    /// How tables are read for it.
    pub fn columns(&self) -> Result<Columns> {
        Columns::restore(self.schema.clone(), self.target.clone(), self.features.clone())
    }
}

/// FNV-1a of the compact text: against accidents, not against forgers. Numbers read back to themselves, and fields
/// keep their order, so that the text is the same.
fn checksum(value: &Value) -> String {
    let bytes = value.to_string().into_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::{Adjacency, Delta, Trust};
    use semidp_table::{Column, Kind};

    fn saved() -> SavedModel {
        let number =
            |name: &str| Column { name: name.into(), kind: Kind::Number { impute: 0.1, range: None } };
        let sex =
            Column { name: "sex".into(), kind: Kind::Category { values: vec!["a".into(), "b".into()] } };
        let schema = Schema::new(vec![number("age"), sex, number("y")]).unwrap();
        let columns = Columns::learn(schema, "y", super::super::Task::Regression, None).unwrap();
        let model = Model::zero(4, 1, true).with_weights(vec![0.1, -1.0 / 3.0, 1e-300, 2.0, f64::MAX]);
        let delta = Delta::new(0.0).unwrap();
        let certificate =
            Certificate::issue(Vec::new(), Adjacency::ReplaceOne, Trust::Central, delta, "custom: none")
                .unwrap();
        SavedModel::new(&columns, &model, "squared", "throw-away", certificate)
    }

    #[test]
    fn files_read_back() {
        let saved = saved();
        let text = saved.to_json().unwrap();
        assert_eq!(SavedModel::from_json(&text).unwrap(), saved);
        assert_eq!(saved.model().weights, saved.weights);
        assert_eq!(saved.columns().unwrap().names(), ["age", "sex=a", "sex=b", "sex=other"]);
    }

    /// Any change of a digit, a letter or the length is noticed, and never panics.
    #[test]
    fn damaged_files_are_refused() {
        let text = saved().to_json().unwrap();
        let mut refused = 0;
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = match bytes[at] {
                b'0'..=b'8' | b'a'..=b'y' => bytes[at] + 1,
                b'9' => b'8',
                _ => continue,
            };
            let damaged = String::from_utf8(bytes).unwrap();
            // "1e-300" and the like may read the same after a change.
            if serde_json::from_str::<Value>(&damaged).ok() == serde_json::from_str::<Value>(&text).ok() {
                continue;
            }
            assert!(SavedModel::from_json(&damaged).is_err(), "byte {at}");
            refused += 1;
        }
        assert!(refused > 500);
        for end in [0, 1, text.len() / 2, text.len() - 1] {
            assert!(SavedModel::from_json(&text[..end]).is_err());
        }
    }

    /// Some parsers would take the first weights, this one the last.
    #[test]
    fn a_key_that_occurs_twice_is_refused() {
        let text = saved().to_json().unwrap();
        let twice = text.replacen('{', "{\"weights\": [1, 2, 3, 4, 5],", 1);
        let refused = SavedModel::from_json(&twice).unwrap_err().to_string();
        assert!(refused.contains("a key occurs twice in one object, line"), "{refused}");
    }

    #[test]
    fn newer_files_and_others_are_told_apart() {
        let newer = saved().to_json().unwrap().replace("semidp-model/1", "semidp-model/2");
        assert!(matches!(SavedModel::from_json(&newer), Err(Error::UnknownModelFormat { .. })));
        let other = SavedModel::from_json("{\"format\": \"semidp-schema/1\", \"secret\": 1}").unwrap_err();
        assert!(!other.to_string().contains("secret"), "{other}");
        assert!(SavedModel::from_json("[1, 2").unwrap_err().to_string().contains("not JSON, line 1"));
    }

    /// A file whose checksum was made to fit its nonsense is refused too.
    #[test]
    fn parts_must_fit_together() {
        let wrong = |change: fn(&mut SavedModel)| {
            let mut model = saved();
            change(&mut model);
            SavedModel::from_json(&model.to_json().unwrap()).unwrap_err().to_string()
        };
        assert!(wrong(|model| model.weights.truncate(2)).contains("number of weights"));
        assert!(wrong(|model| model.loss = "logistic".into()).contains("classes for this loss"));
        assert!(wrong(|model| model.loss = "magic".into()).contains("loss must be"));
        assert!(wrong(|model| model.outputs = 2).contains("scores"));
        assert!(wrong(|model| model.feature_names[0] = "weight".into()).contains("names"));
        assert!(wrong(|model| model.features[0] = Feature::Code { column: 0 }).contains("feature"));
        let target = Feature::Number { column: 2, shift: 0.0, scale: 1.0 };
        let mut model = saved();
        (model.features[0], model.feature_names[0]) = (target, "y".into());
        let refused = SavedModel::from_json(&model.to_json().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("target is among"));
        let column = || "y".to_string();
        for target in [
            Target::NumberedClasses { column: column(), first: 0.0, step: 1.0, count: usize::MAX },
            Target::NumberedClasses { column: column(), first: 0.0, step: 0.0, count: 2 },
            Target::NumberedClasses { column: column(), first: 0.0, step: 1.0, count: 0 },
            Target::Classes { column: column(), classes: vec!["a".into(), "b".into()] },
        ] {
            let model = SavedModel { target, loss: "logistic".into(), ..saved() };
            assert!(SavedModel::from_json(&model.to_json().unwrap()).is_err());
        }
    }
}
