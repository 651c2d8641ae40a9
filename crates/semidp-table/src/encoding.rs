//! What numbers a row becomes.

use crate::schema::{Kind, OTHER, Schema};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// One number of an encoded row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Feature {
    /// (x − shift)·(1 / scale), in double precision and then rounded to single.
    Number {
        /// A column of numbers of the schema.
        column: usize,
        /// Subtracted.
        shift: f64,
        /// Divided by; more than 0.
        scale: f64,
    },
    /// 1 where the column has this value, 0 elsewhere.
    Indicator {
        /// A column of categories of the schema.
        column: usize,
        /// A value by its place in the schema, or none for [`OTHER`].
        value: Option<usize>,
    },
    /// The place of the value among those of the column, from 0; −1 for [`OTHER`]. What a label becomes.
    Code {
        /// A column of categories of the schema.
        column: usize,
    },
}

impl Feature {
    /// The column of the schema that it is made of.
    pub fn column(&self) -> usize {
        match *self {
            Self::Number { column, .. } | Self::Indicator { column, .. } | Self::Code { column } => column,
        }
    }
}

/// The features of a row, in order. Public, as the schema is: both are fixed before a private row is
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    features: Vec<Feature>,
    names: Vec<String>,
}

impl Encoding {
    /// Any features, checked against the schema.
    pub fn new(schema: &Schema, features: Vec<Feature>) -> Result<Self> {
        let names = names(schema, &features)?;
        Ok(Self { features, names })
    }

    /// Numbers as they are, and an indicator for each value of each category and for [`OTHER`].
    pub fn identity(schema: &Schema) -> Result<Self> {
        Self::with_shift_and_scale(schema, |_| (0.0, 1.0))
    }

    /// The same with a shift and a scale for each column of numbers.
    pub fn with_shift_and_scale(
        schema: &Schema,
        mut shift_and_scale: impl FnMut(usize) -> (f64, f64),
    ) -> Result<Self> {
        let mut features = Vec::new();
        for (column, kind) in schema.columns().iter().map(|column| &column.kind).enumerate() {
            match kind {
                Kind::Number { .. } => {
                    let (shift, scale) = shift_and_scale(column);
                    features.push(Feature::Number { column, shift, scale });
                }
                Kind::Category { values } => {
                    let values = (0..values.len()).map(Some).chain([None]);
                    features.extend(values.map(|value| Feature::Indicator { column, value }));
                }
            }
        }
        Self::new(schema, features)
    }

    /// The features in order.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// Their names: `age`, `sex=Female`, `sex=other`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many there are.
    pub fn width(&self) -> usize {
        self.features.len()
    }

    /// Whether rows are mostly zeros, and stored without them.
    pub fn is_sparse(&self) -> bool {
        self.features.iter().any(|feature| matches!(feature, Feature::Indicator { .. }))
    }

    /// Whether it belongs to this schema.
    pub(crate) fn check(&self, schema: &Schema) -> Result<()> {
        names(schema, &self.features).map(|_| ())
    }
}

fn names(schema: &Schema, features: &[Feature]) -> Result<Vec<String>> {
    if features.is_empty() {
        return Err(Error::InvalidFeature { feature: 0, requirement: "there: an encoding has at least one" });
    }
    if u32::try_from(features.len()).is_err() {
        let feature = features.len() - 1;
        return Err(Error::InvalidFeature { feature, requirement: "one of fewer than 2^32" });
    }
    let named = features.iter().enumerate().map(|(place, feature)| {
        name(schema, feature).map_err(|requirement| Error::InvalidFeature { feature: place, requirement })
    });
    named.collect()
}

/// The name of a feature, or what it should have been.
fn name(schema: &Schema, feature: &Feature) -> std::result::Result<String, &'static str> {
    let column = schema.columns().get(feature.column()).ok_or("of a column of the schema")?;
    match (*feature, &column.kind) {
        (Feature::Number { shift, scale, .. }, Kind::Number { .. }) => {
            if shift.is_finite() && scale.is_finite() && scale > 0.0 {
                return Ok(column.name.clone());
            }
            Err("shifted by a finite number and scaled by one above 0")
        }
        (Feature::Indicator { value, .. }, Kind::Category { values }) => {
            let value = match value {
                Some(value) => values.get(value).ok_or("of a value of its column")?,
                None => OTHER,
            };
            Ok(format!("{}={value}", column.name))
        }
        (Feature::Code { .. }, Kind::Category { .. }) => Ok(column.name.clone()),
        (Feature::Number { .. }, Kind::Category { .. }) => {
            Err("an indicator, because its column is a category")
        }
        (Feature::Indicator { .. } | Feature::Code { .. }, Kind::Number { .. }) => {
            Err("a number, because its column is one")
        }
    }
}
