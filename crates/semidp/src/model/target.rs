//! What is predicted.

use crate::loss::{Labels, Loss, loss_named};
use crate::{Error, Result};
use semidp_table::{Feature, Kind, Schema};
use serde::{Deserialize, Serialize};

/// What kind of thing the target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A number.
    Regression,
    /// One of some classes.
    Classification,
}

impl Task {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Classification => "classification",
        }
    }
}

/// The column that is predicted, and how its cells become labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// A number, trained on as (y − shift) / scale.
    Number {
        /// Its column.
        column: String,
        /// Subtracted.
        shift: f64,
        /// Divided by.
        scale: f64,
    },
    /// A class by its place in the schema's list; a private row with a value beside them has no gradient.
    Classes {
        /// Its column.
        column: String,
        /// The classes.
        classes: Vec<String>,
    },
    /// A class that is a number: first, first + step, first + 2·step, ...
    NumberedClasses {
        /// Its column.
        column: String,
        /// The first class.
        first: f64,
        /// From one to the next.
        step: f64,
        /// How many there are.
        count: usize,
    },
}

/// More classes than this are a mistake.
pub(crate) const MOST_CLASSES: usize = 1000;

impl Target {
    /// Classes from the values that occur in public rows; an arithmetic progression, such as 0 and 1, or 1 to 5.
    pub(crate) fn numbered(column: &str, mut values: Vec<f64>) -> Result<Self> {
        values.sort_by(f64::total_cmp);
        values.dedup();
        let fail =
            |requirement: &str| Err(Error::Target { column: column.into(), requirement: requirement.into() });
        if values.len() < 2 {
            return fail("have at least two classes in the public rows");
        }
        let step = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let (first, step) = (tidy(values[0], step), tidy(step, step));
        let places: Vec<f64> = values.iter().map(|value| (value - first) / step).collect();
        let count = places[places.len() - 1].round() + 1.0;
        if count > MOST_CLASSES as f64 || places.iter().any(|place| (place - place.round()).abs() > 1e-4) {
            return fail(
                "have few classes: text, or numbers in even steps such as 0 and 1; or the task is regression",
            );
        }
        Ok(Self::NumberedClasses { column: column.into(), first, step, count: count as usize })
    }

    /// Its column.
    pub fn column(&self) -> &str {
        match self {
            Self::Number { column, .. }
            | Self::Classes { column, .. }
            | Self::NumberedClasses { column, .. } => column,
        }
    }

    /// What it is for.
    pub fn task(&self) -> Task {
        match self {
            Self::Number { .. } => Task::Regression,
            _ => Task::Classification,
        }
    }

    /// The names of the classes; none for a number.
    pub fn classes(&self) -> Vec<String> {
        match self {
            Self::Number { .. } => Vec::new(),
            Self::Classes { classes, .. } => classes.clone(),
            Self::NumberedClasses { first, step, count, .. } => {
                (0..*count).map(|place| tidy(first + step * place as f64, *step).to_string()).collect()
            }
        }
    }

    /// From a label as trained on to the target's own unit.
    pub fn decode(&self, label: f64) -> f64 {
        match self {
            Self::Number { shift, scale, .. } => label * scale + shift,
            Self::NumberedClasses { first, step, .. } => first + step * label,
            Self::Classes { .. } => label,
        }
    }

    /// The size of a unit of the labels in the target's own.
    pub fn unit(&self) -> f64 {
        match self {
            Self::Number { scale, .. } => *scale,
            _ => 1.0,
        }
    }

    /// The feature that holds the label.
    pub(crate) fn feature(&self, schema: &Schema) -> Result<Feature> {
        let column = schema.position(self.column())?;
        Ok(match *self {
            Self::Number { shift, scale, .. } => Feature::Number { column, shift, scale },
            Self::NumberedClasses { first, step, .. } => {
                Feature::Number { column, shift: first, scale: step }
            }
            Self::Classes { .. } => Feature::Code { column },
        })
    }

    /// The schema with labels beyond the classes moved to the nearest.
    pub(crate) fn bounded(&self, schema: Schema) -> Result<Schema> {
        match self {
            Self::NumberedClasses { column, first, step, count } => {
                Ok(schema.with_range(column, *first, first + step * (*count as f64 - 1.0))?)
            }
            _ => Ok(schema),
        }
    }

    /// The loss of this name, or the usual one, checked against the target.
    pub fn loss(&self, name: Option<&str>) -> Result<(Box<dyn Loss>, String)> {
        let classes = self.classes().len();
        let usual = match (self.task(), classes) {
            (Task::Regression, _) => "squared",
            (Task::Classification, 2) => "logistic",
            _ => "softmax",
        };
        let name = name.unwrap_or(usual);
        let loss = loss_named(name, classes.max(2))?;
        let fits = match self.task() {
            Task::Regression => loss.labels() == Labels::Numbers,
            Task::Classification => {
                loss.labels() == Labels::Classes && (loss.outputs() == classes || classes == 2)
            }
        };
        if !fits {
            let requirement = match (loss.labels(), self.task()) {
                (Labels::Classes, Task::Regression) => "have classes for this loss: --task classification",
                (Labels::Numbers, Task::Classification) => "be a number for this loss: --task regression",
                _ => "have two classes for this loss: --loss softmax takes more",
            };
            return Err(Error::Target { column: self.column().into(), requirement: requirement.into() });
        }
        Ok((loss, name.to_string()))
    }
}

/// The number without the digits that single precision and sums made up, for classes so far apart.
fn tidy(number: f64, step: f64) -> f64 {
    let digits = 5.0 - step.log10().floor();
    let scale = 10f64.powf(digits.clamp(0.0, 300.0));
    let tidied = (number * scale).round() / scale;
    if tidied.is_finite() { tidied } else { number }
}

/// The classes of a column of text.
pub(crate) fn listed_classes(schema: &Schema, column: usize) -> Option<Vec<String>> {
    match &schema.columns()[column].kind {
        Kind::Category { values } => Some(values.clone()),
        Kind::Number { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_are_numbers() {
        let classes = |values: &[f64]| Target::numbered("y", values.to_vec()).map(|target| target.classes());
        assert_eq!(classes(&[1.0, 0.0, 1.0]).unwrap(), ["0", "1"]);
        assert_eq!(classes(&[-1.0, 1.0]).unwrap(), ["-1", "1"]);
        assert_eq!(classes(&[1.0, 4.0, 2.0]).unwrap(), ["1", "2", "3", "4"]);
        assert_eq!(
            classes(&[f64::from(0.1f32), f64::from(0.2f32), 0.4]).unwrap(),
            ["0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(classes(&[20_240_101.0, 20_240_102.0]).unwrap(), ["20240101", "20240102"]);
        assert!(classes(&[3.0]).is_err() && classes(&[0.0, 1.0, 2.5]).is_err());
        assert!(classes(&[0.0, 0.001, 5000.0]).is_err());
    }

    #[test]
    fn losses_must_fit() {
        let two = Target::Classes { column: "y".into(), classes: vec!["a".into(), "b".into()] };
        let number = Target::Number { column: "y".into(), shift: 1.0, scale: 2.0 };
        let three = Target::NumberedClasses { column: "y".into(), first: 0.0, step: 1.0, count: 3 };
        assert_eq!(two.loss(None).unwrap().1, "logistic");
        assert_eq!(two.loss(Some("softmax")).unwrap().0.outputs(), 2);
        assert_eq!(three.loss(None).unwrap().0.outputs(), 3);
        assert_eq!(number.loss(None).unwrap().1, "squared");
        assert!(number.loss(Some("logistic")).is_err() && two.loss(Some("huber")).is_err());
        assert!(three.loss(Some("hinge")).is_err() && three.loss(Some("cubic")).is_err());
        assert_eq!((number.decode(3.0), three.decode(2.0)), (7.0, 2.0));
    }
}
