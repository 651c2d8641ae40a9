//! Randomisers of the local model: a person's vector goes in, a report comes out, and nobody else ever sees the vector.
//!
//! Constants, and why they promise ε, are in `semidp_accounting::local`. Here they meet vectors:
//!
//! * A vector is clipped to the ball; one with an entry that is no finite number counts as zero. It becomes ±v, a unit vector, with
//!   chances whose mean is the vector over the radius. Zero becomes ±the first axis, evenly.
//! * **Halves of the sphere** (Duchi, and every mechanism on the line): U comes from a law of floats for which U and −U are
//!   equally likely; the report is the one of the two on the chosen side of the vector, by the sign of their rounded inner
//!   product, which is opposite for U and −U. Whatever the vector, a report has the chance of {U, −U} times p̂ or 1 − p̂, for
//!   p̂ ≤ p a multiple of 2⁻⁶⁴: ε-DP **for the very floats that are reported**.
//! * **Ranks** (rank PrivUnit): k public candidates come from a public seed that no vector has a part in; one of them is reported by its
//!   place in the order of rounded inner products. Whatever the order, the chances are a permutation of p̂/r and (1−p̂)/(k−r), so the
//!   report (seed and number) is ε-DP **bit for bit**. Only its mean depends on how well the inner products were computed.
//! * **Caps**: T from its quantiles, the rest of the report orthogonal to v. Real arithmetic: "idealised".
//!
//! A report takes the same steps whatever the vector is and on whichever side it falls; how many words the normal numbers take depends on
//! themselves alone, and places within a group are drawn for both groups. What is not promised: that a processor takes the same time for subnormal numbers as for others.

mod interview;
mod normal;
mod rank;
mod slices;

pub use interview::{Interview, People};
pub use rank::RankReport;

use crate::data::{ANOTHER_SHAPE, Block, BlockSource, Private, TOO_FEW, fits};
use crate::noise::rng::{Purpose, Randomness, RunKey, Stream};
use crate::{Error, Result, parallel};
use semidp_accounting::local::{Cap, CapLaw, Directions, LocalMechanism};
use semidp_accounting::{
    Adjacency, Arithmetic, Certificate, CountedEvent, Delta, Epsilon, Event, Steps, Trust,
};

/// Units that are randomised between two visits, for each thread: at most so many, and no more numbers than this unless one has more.
const TOGETHER: usize = 256;
const NUMBERS_TOGETHER: usize = 1 << 20;

/// Takes a report as a vector, and as it is sent if it has another form.
type Visit<'a> = &'a mut dyn FnMut(&[f64], Option<RankReport>);

/// A mechanism with its constants, for vectors in a ball.
#[derive(Debug, Clone)]
pub struct Randomizer {
    cap: Cap,
    law: Option<CapLaw>,
    /// Whether reports are one of U and −U.
    is_halves: bool,
    radius: f64,
    /// p̂·2⁶⁴.
    threshold: u64,
}

impl Randomizer {
    /// For vectors of so many numbers, no longer than `radius`; longer ones are clipped.
    pub fn new(mechanism: &LocalMechanism, dimension: usize, epsilon: Epsilon, radius: f64) -> Result<Self> {
        if !(radius > 0.0 && radius.is_finite()) {
            return Err(Error::InvalidParameter {
                name: "radius",
                value: radius.to_string(),
                requirement: "a finite number > 0",
            });
        }
        let cap = mechanism.at(dimension, epsilon)?;
        let is_halves = cap.ranks.is_none() && cap.directions == Directions::Sphere && cap.gamma == 0.0;
        Ok(Self { cap, law: cap.law(), is_halves, radius, threshold: at_most(&cap) })
    }

    /// The constants.
    pub fn cap(&self) -> &Cap {
        &self.cap
    }

    /// R.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Whether the promise holds for the floats that are reported.
    pub fn arithmetic(&self) -> Arithmetic {
        match self.is_halves || self.cap.ranks.is_some() {
            true => Arithmetic::Exact,
            false => Arithmetic::Idealised,
        }
    }

    /// The length of every report, if they all have one.
    pub fn report_length(&self) -> Option<f64> {
        (self.cap.directions == Directions::Sphere).then_some(self.radius / self.cap.m)
    }

    /// A report of every unit, in order, a vector each. This certifies one report each, so it takes the rows with it: a second
    /// question to the same people would cost them another ε.
    /// ```compile_fail,E0382
    /// # use semidp_core::*;
    /// # fn try_it(randomizer: Randomizer, rows: Private<DenseTable<f32>>) -> Result<()> {
    /// randomizer.reports(rows, Randomness::OperatingSystem, 1, &mut |_| ())?;
    /// randomizer.reports(rows, Randomness::OperatingSystem, 1, &mut |_| ())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reports<S: BlockSource>(
        &self,
        units: Private<S>,
        randomness: Randomness,
        threads: usize,
        visit: &mut dyn FnMut(&[f64]),
    ) -> Result<Certificate> {
        self.each(units, randomness, threads, true, &mut |vector, _| visit(vector))
    }

    /// A report of every unit, in order, as `rank-privunit` sends it: [`RankReport`]. Like [`Self::reports`] otherwise.
    pub fn rank_reports<S: BlockSource>(
        &self,
        units: Private<S>,
        randomness: Randomness,
        threads: usize,
        visit: &mut dyn FnMut(RankReport),
    ) -> Result<Certificate> {
        if self.cap.ranks.is_none() {
            return Err(not_ranked(&self.cap));
        }
        self.each(units, randomness, threads, false, &mut |_, report| {
            report.into_iter().for_each(&mut *visit)
        })
    }

    /// The vector that a report of `rank-privunit` stands for: the same bits on every machine but for the radius over m.
    pub fn decode(&self, report: RankReport, vector: &mut [f64]) -> Result<()> {
        let Some(ranks) = self.cap.ranks else { return Err(not_ranked(&self.cap)) };
        if vector.len() != self.cap.dimension {
            let (found, expected) = (vector.len(), self.cap.dimension);
            return Err(Error::Shape { what: "the vector", of: "coordinates", found, expected });
        }
        if u32::from(report.index) >= ranks.candidates {
            return Err(Error::InvalidParameter {
                name: "index",
                value: report.index.to_string(),
                requirement: "below the number of candidates",
            });
        }
        rank::decode(&self.cap, report, self.radius / self.cap.m, vector);
        Ok(())
    }

    fn each<S: BlockSource>(
        &self,
        units: Private<S>,
        randomness: Randomness,
        threads: usize,
        is_decoded: bool,
        visit: Visit<'_>,
    ) -> Result<Certificate> {
        let (source, d) = (units.into_inner(), self.cap.dimension);
        if source.width() != d {
            return Err(Error::Shape {
                what: "the private table",
                of: "columns",
                found: source.width(),
                expected: d,
            });
        }
        let certificate = self.certificate(randomness)?;
        let key = randomness.key(0)?;
        let mut waiting: Vec<f64> = Vec::new();
        let mut next = 0u64;
        for block in 0..source.blocks() {
            let mut left = source.units_of(block).len();
            let mut is_well_formed = true;
            source.visit(block, &mut |piece| {
                is_well_formed &= fits(&piece, d);
                let shown = if is_well_formed { piece.units().min(left) } else { 0 };
                left -= shown;
                for unit in 0..shown {
                    add_row(&piece, unit, d, &mut waiting);
                    if waiting.len() == self.together() * threads.max(1) * d {
                        next = self.answer(&key, next, (threads, is_decoded), &mut waiting, visit);
                    }
                }
            })?;
            if !is_well_formed {
                return Err(Error::Source { block, reason: ANOTHER_SHAPE });
            }
            if left > 0 {
                return Err(Error::Source { block, reason: TOO_FEW });
            }
        }
        self.answer(&key, next, (threads, is_decoded), &mut waiting, visit);
        Ok(certificate)
    }

    /// What is promised to everyone who reports once.
    pub fn certificate(&self, randomness: Randomness) -> Result<Certificate> {
        let event = Event::Pure { epsilon: self.cap.epsilon };
        let mechanism =
            format!("local: {} of a vector of {} numbers", self.cap.mechanism, self.cap.dimension);
        let mut certificate = Certificate::issue(
            vec![CountedEvent::new(event, Steps::ONE)],
            Adjacency::ReplaceOne,
            Trust::Local,
            Delta::new(0.0)?,
            mechanism,
        )?;
        certificate.arithmetic = self.arithmetic();
        certificate.random_source = randomness.source();
        Ok(certificate)
    }

    fn together(&self) -> usize {
        (NUMBERS_TOGETHER / self.cap.dimension).clamp(1, TOGETHER)
    }

    /// Turns vectors into reports, shows them and forgets the vectors; returns the number of the next unit.
    fn answer(
        &self,
        key: &RunKey,
        first: u64,
        (threads, is_decoded): (usize, bool),
        waiting: &mut Vec<f64>,
        visit: Visit<'_>,
    ) -> u64 {
        let d = self.cap.dimension;
        let together = self.together();
        let mut codes = vec![None; waiting.len() / d];
        let mut chunks: Vec<_> = waiting
            .chunks_mut(together * d)
            .zip(codes.chunks_mut(together))
            .enumerate()
            .map(|(i, (chunk, codes))| (first + (i * together) as u64, chunk, codes))
            .collect();
        parallel::for_each(&mut chunks, threads, |(first, chunk, codes)| {
            let mut scratch = vec![0.0; d];
            for ((unit, vector), code) in (*first..).zip(chunk.chunks_exact_mut(d)).zip(codes.iter_mut()) {
                *code = self.report((key, unit), is_decoded, vector, &mut scratch);
            }
        });
        let count = codes.len();
        waiting.chunks_exact(d).zip(codes).for_each(|(vector, code)| visit(vector, code));
        waiting.clear();
        first + count as u64
    }

    /// Replaces a vector by a report of it. A report by rank is returned; it is decoded into the vector if that is wanted, and
    /// leaves zeros there otherwise. Every unit has its own streams, whatever the threads.
    fn report(
        &self,
        (key, unit): (&RunKey, u64),
        is_decoded: bool,
        vector: &mut [f64],
        scratch: &mut [f64],
    ) -> Option<RankReport> {
        let mut coins = key.stream(Purpose::Report, unit >> 24, unit & 0xff_ffff);
        let Some(ranks) = self.cap.ranks else {
            self.randomize(vector, scratch, &mut coins);
            return None;
        };
        // The seed is public. It comes from another stream than the coins, so that it says nothing about them.
        let mut seeds = key.stream(Purpose::ReportSeed, unit >> 24, unit & 0xff_ffff);
        let seed = u128::from(seeds.word()) << 64 | u128::from(seeds.word());
        let is_within = self.side(vector, &mut coins).0;
        let places =
            [coins.below(u64::from(ranks.candidates - ranks.top)), coins.below(u64::from(ranks.top))];
        let choice = rank::Choice { is_top: is_within, place: places[usize::from(is_within)] };
        let report = rank::encode(&self.cap, ranks, vector, seed, &choice);
        vector.fill(0.0);
        if is_decoded {
            rank::decode(&self.cap, report, self.radius / self.cap.m, vector);
        }
        Some(report)
    }

    /// Makes ± a unit vector of it. Returns whether the report is one of the side that the vector points to, and a random word.
    fn side(&self, vector: &mut [f64], stream: &mut Stream) -> (bool, u64) {
        let length = self.prepare(vector);
        let [sign, side, place] = [(); 3].map(|()| stream.word());
        let is_turned = sign >= chance(0.5 + 0.5 * (length / self.radius).min(1.0));
        let factor = if is_turned { -1.0 } else { 1.0 };
        vector.iter_mut().for_each(|x| *x *= factor);
        (side < self.threshold, place)
    }

    /// Replaces a vector by a report that is a vector.
    fn randomize(&self, vector: &mut [f64], scratch: &mut [f64], stream: &mut Stream) {
        let (is_within, place) = self.side(vector, stream);
        normal::fill(stream, scratch);
        match &self.law {
            Some(law) if !self.is_halves => {
                // 128 bits: the far ends of T's law are reached with the chance that they have.
                let fine = (stream.word() as f64 + 0.5) / 2f64.powi(64);
                let uniform = ((place as f64 + fine) / 2f64.powi(64)).min(1.0);
                self.cap_report(law.at(is_within, uniform), vector, scratch);
            }
            _ => self.half_report(is_within, place, vector, scratch),
        }
    }

    /// Makes a unit vector of it, and returns the length that it had after clipping.
    fn prepare(&self, vector: &mut [f64]) -> f64 {
        // No short cut: every vector is looked at to its end. Eight numbers at a time do not wait for each other.
        let mut most = [0.0f64; 8];
        for part in vector.chunks(8) {
            most.iter_mut().zip(part).for_each(|(most, x)| *most = most.max(x.abs()));
        }
        let largest = most.iter().fold(0.0f64, |largest, x| largest.max(*x));
        let is_usable = vector.iter().fold(largest > 0.0, |is_usable, x| is_usable & x.is_finite());
        let scale = if is_usable { largest } else { 1.0 };
        vector.iter_mut().for_each(|x| *x /= scale);
        let length = dot(vector, vector).sqrt();
        for (i, x) in vector.iter_mut().enumerate() {
            let axis = if i == 0 { 1.0 } else { 0.0 };
            let unit = *x / length;
            *x = if is_usable { unit } else { axis };
        }
        if is_usable { (length * scale).min(self.radius) } else { 0.0 }
    }

    /// U or −U, of the length that all reports have.
    fn half_report(&self, is_within: bool, tie: u64, vector: &mut [f64], u: &[f64]) {
        let (along, length) = (dot(vector, u), dot(u, u).sqrt());
        // A tie is for neither side: a fair coin.
        let is_towards = if along == 0.0 { tie & 1 == 0 } else { along > 0.0 };
        let size = self.radius / self.cap.m;
        let factor = if is_towards == is_within { size } else { -size };
        vector.iter_mut().zip(u).for_each(|(x, u)| *x = u / length * factor);
        if length == 0.0 {
            // No direction, which happens to nobody: the first axis, whatever the vector was.
            vector.fill(0.0);
            vector[0] = factor;
        }
    }

    /// (T·v + the rest)/m.
    fn cap_report(&self, (t, across): (f64, f64), vector: &mut [f64], g: &mut [f64]) {
        // Twice: what rounding left of v the first time is gone after the second.
        for _ in 0..2 {
            let along = dot(vector, g);
            g.iter_mut().zip(&*vector).for_each(|(g, v)| *g -= along * v);
        }
        let unit = match self.cap.directions {
            Directions::Sphere => across / dot(g, g).sqrt().max(f64::MIN_POSITIVE),
            Directions::Normal => 1.0 / (self.cap.dimension as f64).sqrt(),
        };
        let size = self.radius / self.cap.m;
        vector.iter_mut().zip(g).for_each(|(x, g)| *x = size * (t * *x + unit * *g));
    }
}

/// The inner product, in eight sums that need not wait for each other: the same but for the sign for −b.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((xs, x_rest), (ys, y_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (x, y) in xs.iter().zip(ys) {
        (0..8).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f64>()
}

/// p̂·2⁶⁴ for a p̂ that is not above p, and not 1. From 1 − p, of which p has lost the last digits where it is near 1, and a little
/// more than that, for the rounding in it.
fn at_most(cap: &Cap) -> u64 {
    let beyond = (cap.beyond * (1.0 + 1e-14) * 2f64.powi(64)).ceil().max(1.0);
    // At tiny ε the margin would make the side that x points to the less likely one.
    let even = chance(cap.cap_probability);
    (((1u128 << 64) - beyond as u128) as u64).max(even)
}

fn not_ranked(cap: &Cap) -> Error {
    Error::InvalidParameter {
        name: "mechanism",
        value: format!("{} in {} dimensions", cap.mechanism, cap.dimension),
        requirement: "rank-privunit in at least 2 dimensions for reports by rank",
    }
}

/// ⌊p·2⁶⁴⌋, or the largest there is.
fn chance(p: f64) -> u64 {
    (p * 2f64.powi(64)) as u64
}

/// Adds one row of a piece as doubles. Columns that a sparse row does not have, or has in disorder, are zero.
fn add_row(piece: &Block<'_>, unit: usize, d: usize, rows: &mut Vec<f64>) {
    let start = rows.len();
    rows.resize(start + d, 0.0);
    let row = &mut rows[start..];
    let mut put = |column: usize, value: f64| {
        if let Some(to) = row.get_mut(column) {
            *to = value;
        }
    };
    match piece {
        Block::DenseF32(b) => {
            (0..b.width()).for_each(|j| put(j, f64::from(b.values()[unit * b.width() + j])));
        }
        Block::DenseF64(b) => (0..b.width()).for_each(|j| put(j, b.values()[unit * b.width() + j])),
        Block::CsrF32(b) => (b.offsets[unit]..b.offsets[unit + 1])
            .for_each(|at| put(b.columns[at] as usize, f64::from(b.values[at]))),
        Block::CsrF64(b) => {
            (b.offsets[unit]..b.offsets[unit + 1]).for_each(|at| put(b.columns[at] as usize, b.values[at]));
        }
    }
}

#[cfg(test)]
mod tests;
