//! Features and target of a table, and how they become numbers.

use super::labels::KnownLabels;
use super::target::listed_classes;
use super::{Target, Task};
use crate::mean::Evidence;
use crate::train::PublicRows;
use crate::{Error, Result};
use semidp_core::{Block, BlockSource, Private, Public};
use semidp_table::{Encoding, Feature, Kind, LoadOptions, Schema, Table, open_private, open_public};
use std::path::Path;

/// A schema with its features and target: what training needs to know of a table before it sees a private row.
pub struct Columns {
    schema: Schema,
    target: Target,
    /// Features in order, the label last.
    encoding: Encoding,
    /// Columns that do not vary in the public rows, and so say nothing.
    constant: Vec<String>,
    /// How public files are read.
    loading: LoadOptions,
}

impl Columns {
    /// Every column but the target is a feature. Numbers are centred and scaled by their mean and standard deviation
    /// in the public rows, categories become indicators. Features without a range get that of the public rows: what hardly
    /// varies there would have no bound elsewhere. Without public rows the ranges of the schema give centre and scale.
    ///
    /// Numbers that are stored without their zeros ([`semidp_table::is_sparse`]) are scaled by the root of their mean square and not
    /// centred, so that zeros stay zeros.
    pub fn learn(schema: Schema, target: &str, task: Task, public: Option<&Path>) -> Result<Self> {
        Self::learn_classes(schema, target, task, public, None)
    }

    /// The same with classes that are known beforehand, of which public rows need not have all.
    pub fn learn_classes(
        schema: Schema,
        target: &str,
        task: Task,
        public: Option<&Path>,
        classes: Option<&[String]>,
    ) -> Result<Self> {
        Self::learn_with(schema, target, task, public, classes, LoadOptions::default())
    }

    /// The same from public rows that are read by these options, as [`Columns::public_rows`] will be.
    pub fn learn_with(
        schema: Schema,
        target: &str,
        task: Task,
        public: Option<&Path>,
        classes: Option<&[String]>,
        loading: LoadOptions,
    ) -> Result<Self> {
        let place = schema.position(target)?;
        let schema = match classes.zip(listed_classes(&schema, place)) {
            Some((classes, _)) => with_values(schema, place, classes)?,
            None => schema,
        };
        let (schema, scales) = match public {
            Some(path) => public_scales(schema, path, place, &loading)?,
            None => (schema.clone(), schema_scales(&schema)),
        };
        let target = match (task, listed_classes(&schema, place)) {
            (Task::Classification, Some(classes)) if classes.len() >= 2 => {
                Target::Classes { column: target.into(), classes }
            }
            (Task::Classification, Some(_)) => {
                let requirement = "have at least two classes".into();
                return Err(Error::Target { column: target.into(), requirement });
            }
            (Task::Classification, None) => match classes {
                Some(classes) => given_numbers(target, classes)?,
                None => numbered_classes(&schema, target, public, &loading)?,
            },
            (Task::Regression, None) => {
                // One that does not vary still has a middle, but no scale to learn.
                let middle = match schema.columns()[place].kind {
                    Kind::Number { impute, .. } => impute,
                    Kind::Category { .. } => 0.0,
                };
                let (shift, scale) = scales[place].unwrap_or((middle, 1.0));
                Target::Number { column: target.into(), shift, scale }
            }
            (Task::Regression, Some(_)) => {
                let requirement = "be a number for --task regression; it holds text".into();
                return Err(Error::Target { column: target.into(), requirement });
            }
        };
        let schema = target.bounded(schema)?;
        let mut features = Vec::new();
        let mut constant = Vec::new();
        for (column, described) in schema.columns().iter().enumerate().filter(|(column, _)| *column != place)
        {
            match (&described.kind, scales[column]) {
                (Kind::Number { .. }, Some((shift, scale))) => {
                    features.push(Feature::Number { column, shift, scale });
                }
                (Kind::Number { .. }, None) => constant.push(described.name.clone()),
                (Kind::Category { values }, _) => {
                    let values = (0..values.len()).map(Some).chain([None]);
                    features.extend(values.map(|value| Feature::Indicator { column, value }));
                }
            }
        }
        if features.is_empty() {
            return Err(Error::NoFeatures { column: target.column().into() });
        }
        features.push(target.feature(&schema)?);
        let encoding = Encoding::new(&schema, features)?;
        Ok(Self { schema, target, encoding, constant, loading })
    }

    /// As a model file has them.
    pub(crate) fn restore(schema: Schema, target: Target, mut features: Vec<Feature>) -> Result<Self> {
        features.push(target.feature(&schema)?);
        let encoding = Encoding::new(&schema, features)?;
        Ok(Self { schema, target, encoding, constant: Vec::new(), loading: LoadOptions::default() })
    }

    /// Reads public files by these options from now on.
    pub(crate) fn with_loading(self, loading: LoadOptions) -> Self {
        Self { loading, ..self }
    }

    /// What columns mean.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What is predicted.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Features, without the label.
    pub fn features(&self) -> &[Feature] {
        let all = self.encoding.features();
        &all[..all.len() - 1]
    }

    /// Their names.
    pub fn names(&self) -> &[String] {
        &self.encoding.names()[..self.features().len()]
    }

    /// Columns that were left out because they do not vary in the public rows.
    pub fn constant(&self) -> &[String] {
        &self.constant
    }

    /// Public rows whose label is known, and how many have none.
    pub fn public_rows(&self, path: &Path) -> Result<(PublicRows, usize)> {
        let table = open_public(path, &self.schema, &self.encoding, self.loading.clone())?;
        let rows = PublicRows::load(&table)?;
        let all = rows.len();
        let known = KnownLabels::read(path, &self.schema, self.target.column(), &self.loading)?;
        let rows = known.keep(rows, &self.target, path)?;
        let unknown = all - rows.len();
        Ok((rows, unknown))
    }

    /// Private rows, closed.
    pub fn private_rows(&self, path: &Path, options: LoadOptions) -> Result<Private<Table>> {
        Ok(open_private(path, &self.schema, &self.encoding, options)?)
    }
}

/// Shift and scale of each column of numbers; none for those that do not vary.
type Scales = Vec<Option<(f64, f64)>>;

/// Mean and standard deviation of each column of numbers in the public rows, and the schema with their ranges for
/// all columns but the target that have none.
fn public_scales(
    mut schema: Schema,
    path: &Path,
    target: usize,
    loading: &LoadOptions,
) -> Result<(Schema, Scales)> {
    let mut scales = vec![None; schema.columns().len()];
    let numbers: Vec<(usize, f64)> = schema
        .columns()
        .iter()
        .enumerate()
        .filter_map(|(column, described)| match described.kind {
            Kind::Number { impute, .. } => Some((column, impute)),
            Kind::Category { .. } => None,
        })
        .collect();
    if numbers.is_empty() {
        return Ok((schema, scales));
    }
    // About the number to impute, which is their mean if the schema was learned: single precision is enough then.
    let features = numbers.iter().map(|(column, impute)| Feature::Number {
        column: *column,
        shift: *impute,
        scale: 1.0,
    });
    let encoding = Encoding::new(&schema, features.collect())?;
    let table = open_public(path, &schema, &encoding, loading.clone())?;
    let evidence = Evidence::of(&table)?;
    let zeros_stay = semidp_table::is_sparse(path);
    let ranges = ranges(&table, numbers.len())?;
    let moments = evidence.mean().iter().zip(evidence.variance());
    for (((column, impute), (mean, variance)), (least, greatest)) in numbers.iter().zip(moments).zip(ranges) {
        let (centre, std) = (impute + mean, variance.sqrt());
        let is_sparse = zeros_stay && *column != target;
        if std > 0.0 && std.is_finite() {
            scales[*column] =
                Some(if is_sparse { (0.0, (variance + centre * centre).sqrt()) } else { (centre, std) });
        }
        let described = &schema.columns()[*column];
        if matches!(described.kind, Kind::Number { range: None, .. })
            && *column != target
            && least <= greatest
        {
            let name = described.name.clone();
            // Missing cells are where the number to impute is; and single precision rounds.
            let zero = if is_sparse { -impute } else { 0.0 };
            let (least, greatest) = (least.min(0.0).min(zero), greatest.max(0.0).max(zero));
            let rounding = 1e-6 * (greatest - least);
            schema = schema.with_range(&name, impute + least - rounding, impute + greatest + rounding)?;
        }
    }
    Ok((schema, scales))
}

/// The least and the greatest number of each column.
fn ranges(table: &Public<Table>, columns: usize) -> Result<Vec<(f64, f64)>> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); columns];
    let mut see = |row: &mut dyn Iterator<Item = f64>| {
        for (value, (least, greatest)) in row.zip(&mut ranges).filter(|(value, _)| value.is_finite()) {
            (*least, *greatest) = (least.min(value), greatest.max(value));
        }
    };
    for block in 0..table.blocks() {
        let seen = table.visit(block, &mut |piece| match piece {
            Block::DenseF32(rows) => {
                let rows = rows.values().chunks_exact(columns);
                rows.for_each(|row| see(&mut row.iter().map(|value| f64::from(*value))));
            }
            Block::DenseF64(rows) => {
                let rows = rows.values().chunks_exact(columns);
                rows.for_each(|row| see(&mut row.iter().copied()));
            }
            // Numbers alone are never stored sparsely.
            Block::CsrF32(_) | Block::CsrF64(_) => {}
        });
        seen.map_err(Error::from)?;
    }
    Ok(ranges)
}

/// The middle and half the width of each range; the number to impute and 1 where there is no range.
fn schema_scales(schema: &Schema) -> Vec<Option<(f64, f64)>> {
    let scale = |kind: &Kind| match *kind {
        Kind::Number { range: Some((least, greatest)), .. } if greatest > least => {
            Some((0.5 * least + 0.5 * greatest, 0.5 * greatest - 0.5 * least))
        }
        Kind::Number { range: Some(_), .. } => None,
        Kind::Number { impute, range: None } => Some((impute, 1.0)),
        Kind::Category { .. } => None,
    };
    schema.columns().iter().map(|column| scale(&column.kind)).collect()
}

/// The schema with these values of a category.
fn with_values(schema: Schema, place: usize, values: &[String]) -> Result<Schema> {
    let mut columns = schema.columns().to_vec();
    columns[place].kind = Kind::Category { values: values.to_vec() };
    Ok(Schema::new(columns)?)
}

/// Classes that are numbers, as they were given.
fn given_numbers(column: &str, classes: &[String]) -> Result<Target> {
    let numbers: Option<Vec<f64>> = classes
        .iter()
        .map(|class| class.trim().parse().ok().filter(|number: &f64| number.is_finite()))
        .collect();
    let numbers = numbers.ok_or_else(|| Error::Target {
        column: column.into(),
        requirement: "hold text for classes that are not numbers".into(),
    })?;
    Target::numbered(column, numbers)
}

/// Classes that are numbers: those that occur in the public rows, or all whole numbers of the schema's range.
fn numbered_classes(
    schema: &Schema,
    column: &str,
    public: Option<&Path>,
    loading: &LoadOptions,
) -> Result<Target> {
    if let Some(path) = public {
        let known = KnownLabels::read(path, schema, column, loading)?;
        return Target::numbered(column, known.labels.into_iter().flatten().collect());
    }
    match schema.columns()[schema.position(column)?].kind {
        Kind::Number { range: Some((least, greatest)), .. } if greatest - least <= 1000.0 => {
            let count = (greatest - least).floor() as usize;
            Target::numbered(column, (0..=count).map(|place| least + place as f64).collect())
        }
        _ => Err(Error::Target {
            column: column.into(),
            requirement:
                "have a range of whole numbers in the schema: without public rows its classes are not known"
                    .into(),
        }),
    }
}
