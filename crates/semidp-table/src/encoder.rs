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
                    let scaling = Scaling { impute, least, greatest, shift, scale, single: None };
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

    /// Says which of the needed columns hold numbers in single precision: they are encoded in it, which is faster and loses
    /// nothing that they had.
    pub(crate) fn in_single_precision(&mut self, is_single: impl Fn(usize) -> bool) {
        for slot in &mut self.slots {
            if let Slot::Number { cells, scaling, .. } = slot
                && is_single(*cells)
            {
                scaling.single = Single::of(scaling);
            }
        }
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

/// How a column of numbers is encoded.
#[derive(Clone, Copy)]
pub(crate) struct Scaling {
    impute: f64,
    least: f64,
    greatest: f64,
    shift: f64,
    scale: f64,
    /// Where the numbers are in single precision, and it is enough.
    pub(crate) single: Option<Single>,
}

/// The same in single precision.
#[derive(Clone, Copy)]
pub(crate) struct Single {
    pub(crate) least: f32,
    pub(crate) greatest: f32,
    pub(crate) shift: f32,
    /// One over the scale.
    pub(crate) factor: f32,
}

impl Single {
    /// How far from nought numbers may lie, in units of their scale, before single precision would tell on them.
    const FAR: f64 = 4096.0;

    fn of(scaling: &Scaling) -> Option<Self> {
        let bound = |end: f64| end.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
        let single = Self {
            least: bound(scaling.least),
            greatest: bound(scaling.greatest),
            shift: scaling.shift as f32,
            factor: (1.0 / scaling.scale) as f32,
        };
        let ends = [single.encode(single.least), single.encode(single.greatest)];
        let is_fit = ends.iter().all(|end| end.is_finite())
            && single.factor.is_normal()
            && scaling.shift.abs() <= Self::FAR * scaling.scale;
        is_fit.then_some(single)
    }

    /// For a finite number; between the ends of the range, so that the result is finite, too.
    #[inline(always)]
    pub(crate) fn encode(&self, number: f32) -> f32 {
        encode_single(number, self.least, self.greatest, self.shift, self.factor)
    }
}

/// (x − shift)·factor for x moved into its range. Comparisons are written as vector instructions have them.
#[inline(always)]
pub(crate) fn encode_single(x: f32, least: f32, greatest: f32, shift: f32, factor: f32) -> f32 {
    let x = if x > least { x } else { least };
    let x = if x < greatest { x } else { greatest };
    (x - shift) * factor
}

impl Scaling {
    /// A finite number, if the number to impute is one.
    #[inline(always)]
    pub(crate) fn encode(&self, number: f64) -> f32 {
        const LARGEST: f64 = f32::MAX as f64;
        if let Some(single) = self.single.filter(|_| number.is_finite()) {
            return single.encode(number as f32);
        }
        // A NaN stays one; infinities become the ends of the range if there is one.
        let number = number.clamp(self.least, self.greatest);
        let number = if number.is_finite() { number } else { self.impute };
        ((number - self.shift) / self.scale).clamp(-LARGEST, LARGEST) as f32
    }
}

/// Memory for one block at a time.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) offsets: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
}
