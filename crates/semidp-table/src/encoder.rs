//! From the cells of a piece of a table to a block of encoded rows.

use crate::cell::{Cells, Lookup};
use crate::encoding::{Encoding, Feature};
use crate::error::Problem;
use crate::schema::{Kind, Schema};
use semidp_core::{Block, CsrBlock, DenseBlock};
use std::sync::Arc;

/// An encoding, ready for work.
pub(crate) struct Encoder {
    /// The columns of the schema that are needed, in order.
    needed: Vec<usize>,
    /// What each of them must be like.
    rules: Vec<Rule>,
    slots: Vec<Slot>,
    width: usize,
    sparse: bool,
}

/// What the cells of a needed column become before they are encoded.
enum Rule {
    Number { impute: f64, least: f64, greatest: f64 },
    Category(Arc<Lookup>),
}

/// What fills one or several features. A row has at most one entry a slot, and slots are in the order
/// of the features, so that the entries of a row are too.
enum Slot {
    /// One number.
    Number { cells: usize, feature: u32, scaling: Scaling },
    /// The code itself, −1 from `listed` on.
    Code { cells: usize, feature: u32, listed: u32 },
    /// The feature that a code sets, if any.
    Indicators { cells: usize, feature_of: Vec<Option<u32>> },
}

impl Encoder {
    /// The encoding must have been checked against the schema.
    pub(crate) fn new(schema: &Schema, encoding: &Encoding) -> Self {
        let mut needed: Vec<usize> = encoding.features().iter().map(Feature::column).collect();
        needed.sort_unstable();
        needed.dedup();
        let rule = |&column: &usize| match &schema.columns()[column].kind {
            Kind::Number { impute, range } => {
                let (least, greatest) = range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                Rule::Number { impute: *impute, least, greatest }
            }
            Kind::Category { values } => Rule::Category(Arc::new(Lookup::new(values))),
        };
        let rules: Vec<Rule> = needed.iter().map(rule).collect();
        let mut slots: Vec<Slot> = Vec::new();
        for (feature, number) in encoding.features().iter().zip(0u32..) {
            let place = needed.binary_search(&feature.column()).expect("collected above");
            match (*feature, &rules[place]) {
                (Feature::Indicator { value, .. }, Rule::Category(lookup)) => {
                    add_indicator(&mut slots, place, lookup, value, number);
                }
                (Feature::Code { .. }, Rule::Category(lookup)) => {
                    slots.push(Slot::Code { cells: place, feature: number, listed: lookup.listed() });
                }
                (Feature::Number { shift, scale, .. }, &Rule::Number { impute, least, greatest }) => {
                    let factor = (1.0 / scale).min(f64::MAX);
                    let scaling = Scaling { impute, least, greatest, shift, factor };
                    slots.push(Slot::Number { cells: place, feature: number, scaling });
                }
                _ => unreachable!("checked before"),
            }
        }
        Self { needed, rules, slots, width: encoding.width(), sparse: encoding.is_sparse() }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// What a row takes in memory; a sparse one at most.
    pub(crate) fn bytes_per_row(&self) -> u64 {
        match self.sparse {
            // A column number and a value for each entry, and where they start.
            true => (8 * self.slots.len() + 8) as u64,
            false => 4 * self.width as u64,
        }
    }

    /// The columns of the schema that must be read.
    pub(crate) fn needed(&self) -> &[usize] {
        &self.needed
    }

    /// Room for the cells of each.
    pub(crate) fn cells(&self) -> Vec<Cells> {
        let cells = |rule: &Rule| match rule {
            Rule::Number { .. } => Cells::Numbers(Vec::new()),
            Rule::Category(lookup) => Cells::Codes { lookup: lookup.clone(), codes: Vec::new() },
        };
        self.rules.iter().map(cells).collect()
    }

    /// The first needed column with a cell that encoding replaces or moves, and why.
    pub(crate) fn objection(&self, cells: &[Cells]) -> Option<(usize, Problem)> {
        let problem = |(rule, cells): (&Rule, &Cells)| match (rule, cells) {
            (Rule::Number { least, greatest, .. }, Cells::Numbers(numbers)) => {
                numbers.iter().find_map(|number| match number {
                    number if number.is_nan() => Some(Problem::Missing),
                    number if number < least || number > greatest => Some(Problem::OutOfRange),
                    number if number.is_infinite() => Some(Problem::Missing),
                    _ => None,
                })
            }
            (Rule::Category(lookup), Cells::Codes { codes, .. }) => codes.iter().find_map(|&code| {
                let unseen = (code == lookup.unseen()).then_some(Problem::Unseen);
                unseen.or((code == lookup.missing()).then_some(Problem::Missing))
            }),
            _ => None,
        };
        let found = self.rules.iter().zip(cells).map(problem).zip(&self.needed);
        found.into_iter().find_map(|(problem, &column)| Some((column, problem?)))
    }

    /// Encodes unreadable numbers as NaN in place of what is imputed for them.
    pub(crate) fn leave_unreadable(&mut self) {
        for slot in &mut self.slots {
            if let Slot::Number { scaling, .. } = slot {
                scaling.impute = f64::NAN;
            }
        }
    }

    /// How each feature is made of a needed column, by its place, unless some are indicators.
    pub(crate) fn simple(&self) -> Option<Vec<(usize, Simple<'_>)>> {
        let features = self.slots.iter().map(|slot| match slot {
            Slot::Number { cells, scaling, .. } => Some((*cells, Simple::Number(*scaling))),
            Slot::Code { cells, listed, .. } => match &self.rules[*cells] {
                Rule::Category(lookup) => Some((*cells, Simple::Code { lookup, listed: *listed })),
                Rule::Number { .. } => None,
            },
            Slot::Indicators { .. } => None,
        });
        // Features are in order, a slot each.
        features.collect()
    }

    /// The rows of a piece.
    pub(crate) fn encode<'b>(&self, cells: &[Cells], rows: usize, buffers: &'b mut Buffers) -> Block<'b> {
        buffers.values.clear();
        if self.sparse {
            self.encode_sparse(cells, rows, buffers);
            let Buffers { offsets, columns, values } = buffers;
            return Block::CsrF32(CsrBlock { offsets, columns, values });
        }
        buffers.values.resize(rows * self.width, 0.0);
        for slot in &self.slots {
            let rows = buffers.values.chunks_exact_mut(self.width);
            match slot {
                Slot::Number { cells: place, feature, scaling } => {
                    if let Cells::Numbers(numbers) = &cells[*place] {
                        rows.zip(numbers).for_each(|(row, x)| row[*feature as usize] = scaling.encode(*x));
                    }
                }
                Slot::Code { cells: place, feature, listed } => {
                    if let Cells::Codes { codes, .. } = &cells[*place] {
                        rows.zip(codes).for_each(|(row, c)| row[*feature as usize] = place_of(*c, *listed));
                    }
                }
                // Only in sparse encodings.
                Slot::Indicators { .. } => {}
            }
        }
        Block::DenseF32(DenseBlock::new(&buffers.values, self.width))
    }

    fn encode_sparse(&self, cells: &[Cells], rows: usize, buffers: &mut Buffers) {
        let Buffers { offsets, columns, values } = buffers;
        offsets.clear();
        columns.clear();
        offsets.push(0);
        for row in 0..rows {
            for slot in &self.slots {
                let entry = match slot {
                    Slot::Number { cells: place, feature, scaling } => match &cells[*place] {
                        Cells::Numbers(numbers) => Some((*feature, scaling.encode(numbers[row]))),
                        _ => None,
                    },
                    Slot::Code { cells: place, feature, listed } => match &cells[*place] {
                        Cells::Codes { codes, .. } => Some((*feature, place_of(codes[row], *listed))),
                        _ => None,
                    },
                    Slot::Indicators { cells: place, feature_of } => match &cells[*place] {
                        Cells::Codes { codes, .. } => feature_of[codes[row] as usize].map(|f| (f, 1.0)),
                        _ => None,
                    },
                };
                if let Some((feature, value)) = entry {
                    columns.push(feature);
                    values.push(value);
                }
            }
            offsets.push(values.len());
        }
    }
}

/// A feature that every row has a number for.
pub(crate) enum Simple<'e> {
    Number(Scaling),
    Code { lookup: &'e Lookup, listed: u32 },
}

impl Simple<'_> {
    /// What a text becomes, or none.
    pub(crate) fn code(&self, text: Option<&str>) -> f32 {
        match self {
            Self::Number(_) => 0.0,
            Self::Code { lookup, listed } => place_of(lookup.code(text.map(str::as_bytes)), *listed),
        }
    }
}

/// A listed value by its place, any other as −1.
fn place_of(code: u32, listed: u32) -> f32 {
    if code < listed { code as f32 } else { -1.0 }
}

/// Puts an indicator into the last slot if that is of the same column and has no feature for the value.
fn add_indicator(slots: &mut Vec<Slot>, place: usize, lookup: &Lookup, value: Option<usize>, feature: u32) {
    let listed = lookup.codes() - 3;
    let codes = match value {
        Some(value) => value..value + 1,
        None => listed..lookup.codes(),
    };
    if let Some(Slot::Indicators { cells, feature_of }) = slots.last_mut()
        && *cells == place
        && feature_of[codes.start].is_none()
    {
        feature_of[codes].fill(Some(feature));
        return;
    }
    let mut feature_of = vec![None; lookup.codes()];
    feature_of[codes].fill(Some(feature));
    slots.push(Slot::Indicators { cells: place, feature_of });
}

/// How a column of numbers is encoded: in double precision whatever the type of the column, because one private cell can decide that type.
#[derive(Clone, Copy)]
pub(crate) struct Scaling {
    impute: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
    pub(crate) shift: f64,
    /// One over the scale.
    pub(crate) factor: f64,
}

/// (x − shift)·factor for a finite x moved into its range, rounded to single precision. Comparisons are written as vector instructions
/// have them.
#[inline(always)]
pub(crate) fn encode_finite(x: f64, least: f64, greatest: f64, shift: f64, factor: f64) -> f32 {
    const LARGEST: f64 = f32::MAX as f64;
    let within = |x: f64, least: f64, greatest: f64| {
        let x = if x > least { x } else { least };
        if x < greatest { x } else { greatest }
    };
    within((within(x, least, greatest) - shift) * factor, -LARGEST, LARGEST) as f32
}

impl Scaling {
    /// A finite number, if the number to impute is one.
    #[inline(always)]
    pub(crate) fn encode(&self, number: f64) -> f32 {
        // A NaN stays one; infinities become the ends of the range if there is one.
        let number = number.clamp(self.least, self.greatest);
        let number = if number.is_finite() { number } else { self.impute };
        if number.is_nan() {
            return f32::NAN;
        }
        // A number to impute may lie outside the range.
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        encode_finite(number, all.0, all.1, self.shift, self.factor)
    }
}

/// Memory for one block at a time.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) offsets: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
}
