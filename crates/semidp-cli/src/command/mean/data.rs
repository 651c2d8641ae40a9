//! From files to what the estimators need: public evidence, and private rows behind the wall.

use super::method::Method;
use super::{Centre, Mean, Radius, Scale};
use crate::failure::Failure;
use crate::meaning::Meaning;
use crate::output::Output;
use crate::progress;
use indicatif::ProgressBar;
use semidp::mean::Evidence;
use semidp_accounting::Provenance;
use semidp_core::{BlockSource, DenseTable, Private};
use semidp_table::{Encoding, Feature, Kind, Schema, open_private, open_public};
use serde_json::json;

/// Back to the units of the columns: value · scale + shift.
pub struct Decoder {
    pub shift: Vec<f64>,
    pub scale: Vec<f64>,
}

/// The private rows, still closed.
pub type PrivateRows = Private<Box<dyn BlockSource>>;

/// Everything public, in encoded coordinates.
pub struct Data {
    pub encoding: Encoding,
    pub decoder: Decoder,
    /// `None` without public rows.
    pub evidence: Option<Evidence>,
    /// The mean of the public rows; zeros without them.
    pub public_mean: Vec<f64>,
    /// What rows are clipped about.
    pub centre: Vec<f64>,
    /// Whether that is the public mean.
    pub is_centred: bool,
    /// Whether columns are in units of their public standard deviation.
    pub is_scaled: bool,
    /// Whether unreadable private cells arrive as NaN, for a release that counts them.
    pub is_joint: bool,
    /// Moves as private rows are read.
    pub bar: ProgressBar,
    /// What the user should know, once there is an answer.
    pub notes: Vec<String>,
}

impl Data {
    /// Learns from the public rows, and opens the private ones without reading them.
    pub fn open(options: &Mean, output: &Output) -> Result<(Self, PrivateRows), Failure> {
        let mut notes = Vec::new();
        let (schema, has_public) = schema(options, &mut notes)?;
        let loading = options.reading.loading().strict(options.strict);
        // Numbers about their public mean, so that single precision is enough for what is left.
        let shifts = |column: usize| match schema.columns()[column].kind {
            Kind::Number { impute, .. } => impute,
            Kind::Category { .. } => 0.0,
        };
        let mut encoding = Encoding::with_shift_and_scale(&schema, |column| (shifts(column), 1.0))?;
        let learn = |encoding: &Encoding| -> Result<Evidence, Failure> {
            let path = options.public.as_ref().ok_or_else(|| Failure::other("no public file"))?;
            Ok(Evidence::of(&open_public(path, &schema, encoding, loading.clone())?)?)
        };
        let mut evidence = if has_public { Some(learn(&encoding)?) } else { None };
        if let (Some(found), true) = (&evidence, scales_by_public(options)) {
            if found.rows() < 2 {
                let (quantity, rows, needed) = ("a radius or a scale", found.rows(), Evidence::LEAST_ROWS);
                return Err(semidp::Error::TooFewPublicRows { quantity, rows, needed }.into());
            }
            let scales = column_scales(&encoding, found)?;
            encoding = Encoding::with_shift_and_scale(&schema, |column| (shifts(column), scales[column]))?;
            evidence = Some(learn(&encoding)?);
        }
        let is_scaled = has_public && scales_by_public(options);
        if options.scale == Some(Scale::Public) && !has_public {
            return Err(Failure::input(
                "--scale must be none without public rows, got public",
                "the scale public is the standard deviation of each column in the public rows",
            ));
        }
        let decoder = Decoder::of(&encoding);
        let public_mean =
            evidence.as_ref().map_or_else(|| vec![0.0; encoding.width()], |e| e.mean().to_vec());
        let is_centred = has_public && options.centre != Some(Centre::Origin);
        let centre = if is_centred { public_mean.clone() } else { decoder.origin() };
        if options.centre == Some(Centre::Public) && !has_public {
            return Err(Failure::input(
                "--centre must be origin without public rows, got public",
                "the centre public is the mean of the public rows",
            ));
        }
        let is_joint = Method::is_joint(options, has_public);
        let bar = progress::bar(output, "private rows", 0);
        let private: PrivateRows = match &options.private {
            Some(path) => {
                let ticking = bar.clone();
                let loading = loading.unreadable_as_nan(is_joint).on_rows(move |rows| ticking.inc(rows));
                open_private(path, &schema, &encoding, loading)?.boxed()
            }
            None => Private::new(Box::new(DenseTable::<f32>::new(Vec::new(), encoding.width())?)),
        };
        Ok((
            Self {
                encoding,
                decoder,
                evidence,
                public_mean,
                centre,
                is_centred,
                is_scaled,
                is_joint,
                bar,
                notes,
            },
            private,
        ))
    }

    /// Where radius, standard deviation, centre and scale came from.
    pub fn provenance(&self, options: &Mean, clip_norm: Option<f64>, std: f64) -> Vec<Provenance> {
        let entry = |name: &str, value: serde_json::Value, source: &str| Provenance {
            name: name.into(),
            value,
            source: source.into(),
        };
        let mut entries = Vec::new();
        if let Some(clip_norm) = clip_norm {
            let source = match options.radius {
                Radius::Auto => "public data",
                // The smallest l1 ball that holds the l2 ball of the user.
                Radius::Given(radius) if radius != clip_norm => "theory",
                Radius::Given(_) => "user",
            };
            entries.push(entry("clip-norm", json!(clip_norm), source));
        }
        if let Radius::Given(radius) = options.radius {
            entries.push(entry("radius", json!(radius), "user"));
        }
        let source = match (options.std, self.evidence.as_ref().and_then(Evidence::std)) {
            (Some(_), _) => "user",
            (None, Some(_)) => "public data",
            (None, None) => "theory",
        };
        entries.push(entry("std", json!(std), source));
        let centre = match (self.is_centred, options.centre) {
            (true, _) => ("public mean", "public data"),
            (false, Some(_)) => ("origin", "user"),
            (false, None) => ("origin", "default"),
        };
        entries.push(entry("centre", json!(centre.0), centre.1));
        let scale = match (self.is_scaled, options.scale) {
            (true, _) => ("public std", "public data"),
            (false, Some(_)) => ("none", "user"),
            (false, None) => ("none", "default"),
        };
        entries.push(entry("scale", json!(scale.0), scale.1));
        let source = if options.schema.is_some() { "user" } else { "public data" };
        entries.push(entry("schema", json!(self.encoding.names()), source));
        entries
    }
}

/// The schema and whether there are public rows. It is the user's or learned from the public file.
fn schema(options: &Mean, notes: &mut Vec<String>) -> Result<(Schema, bool), Failure> {
    let columns = options.columns();
    let meaning = Meaning {
        schema: options.schema.as_deref(),
        public: options.public.as_deref(),
        columns: columns.as_deref(),
        loading: options.reading.loading(),
        without_public: "--radius must be given too",
    };
    meaning.find(|schema, notes| chosen(schema, options, notes), notes)
}

/// The columns that were asked for, or all that hold numbers.
fn chosen(schema: Schema, options: &Mean, notes: &mut Vec<String>) -> Result<Schema, Failure> {
    if let Some(columns) = options.columns() {
        return Ok(schema.select(&columns)?);
    }
    let numbers = schema.numbers();
    if numbers.is_empty() {
        return Err(Failure::input(
            "--columns must be given: no column holds numbers",
            "a column of text that is named in --columns becomes the share of each of its values",
        ));
    }
    let texts = schema.columns().iter().filter(|column| matches!(column.kind, Kind::Category { .. }));
    let texts: Vec<&str> = texts.map(|column| column.name.as_str()).collect();
    if !texts.is_empty() {
        notes.push(format!("columns of text are left out: {}; name them in --columns", texts.join(", ")));
    }
    Ok(schema.select(&numbers)?)
}

/// Learned radii need columns of comparable size; a given one is in the user's units unless they say so.
fn scales_by_public(options: &Mean) -> bool {
    match options.scale {
        Some(scale) => scale == Scale::Public,
        None => matches!(options.radius, Radius::Auto) && options.centre != Some(Centre::Origin),
    }
}

/// The standard deviation of each column of the schema.
fn column_scales(encoding: &Encoding, evidence: &Evidence) -> Result<Vec<f64>, Failure> {
    let columns = encoding.features().iter().map(|feature| feature.column() + 1).max().unwrap_or(0);
    let mut scales = vec![1.0; columns];
    let features = encoding.features().iter().zip(encoding.names());
    for ((feature, name), variance) in features.zip(evidence.variance()) {
        if let Feature::Number { column, .. } = feature {
            if *variance <= 0.0 {
                return Err(Failure::input(
                    format!(
                        "column {name} must vary in the public rows for a radius to be learned from them"
                    ),
                    "give --radius in the units of the columns, or leave the column out with --columns",
                ));
            }
            scales[*column] = variance.sqrt();
        }
    }
    Ok(scales)
}

impl Decoder {
    fn of(encoding: &Encoding) -> Self {
        let pairs = encoding.features().iter().map(|feature| match *feature {
            Feature::Number { shift, scale, .. } => (shift, scale),
            Feature::Indicator { .. } | Feature::Code { .. } => (0.0, 1.0),
        });
        let (shift, scale) = pairs.unzip();
        Self { shift, scale }
    }

    /// Zero, in encoded coordinates.
    fn origin(&self) -> Vec<f64> {
        self.shift.iter().zip(&self.scale).map(|(shift, scale)| -shift / scale).collect()
    }

    /// In the units of the columns.
    pub fn decode(&self, values: &[f64]) -> Vec<f64> {
        let units = self.shift.iter().zip(&self.scale);
        values.iter().zip(units).map(|(x, (shift, scale))| x * scale + shift).collect()
    }
}
