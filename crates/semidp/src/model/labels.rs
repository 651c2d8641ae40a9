//! Which rows of a file that may be looked at have a label.

use super::Target;
use crate::train::PublicRows;
use crate::{Error, Result};
use semidp_core::{Block, BlockSource};
use semidp_table::{Column, Encoding, Feature, Kind, LoadOptions, Schema, open_public};
use std::path::Path;

/// Stands in for a number that is missing; no label is as small.
const MISSING: f64 = -3.0e38;

/// The labels of a public file.
pub struct KnownLabels {
    /// In the target's own unit, or its place among the classes; none where it is missing or no class.
    pub labels: Vec<Option<f64>>,
}

impl KnownLabels {
    /// Reads the column of the target alone.
    pub fn read(path: &Path, schema: &Schema, column: &str, loading: &LoadOptions) -> Result<Self> {
        let place = schema.position(column)?;
        // Missing numbers must not look like the mean. About a whole number in their midst, single precision is enough
        // for whole numbers far from nought.
        let (kind, feature, shift) = match &schema.columns()[place].kind {
            Kind::Number { impute, .. } => {
                let shift = impute.round();
                let kind = Kind::Number { impute: MISSING, range: None };
                (kind, Feature::Number { column: 0, shift, scale: 1.0 }, shift)
            }
            listed => (listed.clone(), Feature::Code { column: 0 }, 0.0),
        };
        let schema = Schema::new(vec![Column { name: column.into(), kind }])?;
        let encoding = Encoding::new(&schema, vec![feature])?;
        let table = open_public(path, &schema, &encoding, loading.clone())?;
        let is_code = matches!(feature, Feature::Code { .. });
        let mut labels = Vec::with_capacity(table.units());
        for block in 0..table.blocks() {
            let read = table.visit(block, &mut |piece| {
                if let Block::DenseF32(rows) = piece {
                    labels.extend(rows.values().iter().map(|&label| {
                        let label = f64::from(label);
                        let is_known = if is_code { label >= 0.0 } else { label > 0.5 * MISSING };
                        is_known.then_some(label + shift)
                    }));
                }
            });
            read.map_err(Error::from)?;
        }
        Ok(Self { labels })
    }

    /// Those rows whose label is one of the target's.
    pub fn keep(&self, rows: PublicRows, target: &Target, path: &Path) -> Result<PublicRows> {
        let fits = |label: &Option<f64>| match (label, target) {
            (None, _) => false,
            (Some(label), Target::NumberedClasses { first, step, count, .. }) => {
                let place = (label - first) / step;
                (place - place.round()).abs() < 1e-3 && (-0.5..*count as f64 - 0.5).contains(&place)
            }
            (Some(_), _) => true,
        };
        let kept: Vec<usize> =
            (0..rows.len()).filter(|row| self.labels.get(*row).is_some_and(fits)).collect();
        if kept.is_empty() {
            let column = target.column().to_string();
            return Err(Error::NoLabels { path: path.to_path_buf(), column });
        }
        Ok(if kept.len() == rows.len() { rows } else { rows.some(&kept) })
    }
}
