//! The server's side: reports come in one by one, from anybody; what is not a report of this round is refused by name.
//!
//! A malicious person can send any report that the law allows, so one report moves the mean of n by at most 2B/n, B the length of a
//! report ([`Header::longest`]); for `privunitg`, and for `rank-privunit` above 32 dimensions, B is a bound that honest reports exceed once in
//! 10¹⁵ times. A liar may choose the seed of a report by rank; what it stands for is decoded here, and held to the same B.

use crate::{Error, Result};
use semidp_accounting::Epsilon;
use semidp_accounting::local::{Cap, Directions, randomizer_named};
use semidp_core::{Randomizer, RankReport};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The version of the form.
pub const REPORT_FORMAT: &str = "semidp-report/1";
/// Rounding of a report's length.
const SLACK: f64 = 1e-9;

/// What all reports of a round have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always [`REPORT_FORMAT`].
    pub format: String,
    /// The name of the round: people report once in each.
    pub round: String,
    /// The randomiser.
    pub mechanism: String,
    /// Numbers of a vector.
    pub dimension: usize,
    /// ε of one report.
    pub epsilon: Epsilon,
    /// R.
    pub radius: f64,
    /// The [fingerprint](super::fingerprint) of what was subtracted from every vector first, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre: Option<String>,
}

impl Header {
    /// The constants that reports of this header were made with.
    pub fn cap(&self) -> Result<Cap> {
        if self.format != REPORT_FORMAT {
            return Err(Error::invalid("format", format!("`{}`", self.format), REPORT_FORMAT));
        }
        super::positive("radius", self.radius)?;
        Ok(randomizer_named(&self.mechanism)?.at(self.dimension, self.epsilon)?)
    }

    /// The first field that is not as in the other, if any: a report of such a header belongs to another round.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let fields = [
            ("format", self.format == other.format),
            ("round", self.round == other.round),
            ("mechanism", self.mechanism == other.mechanism),
            ("dimension", self.dimension == other.dimension),
            ("epsilon", self.epsilon == other.epsilon),
            ("radius", self.radius == other.radius),
            ("centre", self.centre == other.centre),
        ];
        fields.into_iter().find(|(_, is_same)| !is_same).map(|(name, _)| name)
    }

    /// No report is longer; and, but for normal coordinates, none is shorter.
    pub fn longest(&self, cap: &Cap) -> f64 {
        let unit = self.radius / cap.m;
        match cap.directions {
            Directions::Sphere => unit,
            // A candidate is one of k normal vectors: each of them has the bound below but once in k·e^x times.
            Directions::Normal if cap.ranks.is_some() => {
                let d = cap.dimension as f64;
                let x = 35.0 + cap.ranks.map_or(0.0, |ranks| f64::from(ranks.candidates).ln());
                unit * (d + 2.0 * (x * d).sqrt() + 2.0 * x).sqrt()
            }
            // ‖g‖² ≤ d + 2√(dx) + 2x but once in e^x times (Laurent and Massart 2000), x = 35: a million honest reports are
            // all taken but once in 10⁹ times. T adds at most γ + 9/√d.
            Directions::Normal => {
                let d = cap.dimension as f64;
                let across = (d + 2.0 * (35.0 * d).sqrt() + 70.0) / d;
                unit * (across + (cap.gamma + 9.0 / d.sqrt()).powi(2)).sqrt()
            }
        }
    }
}

/// 128 random bits that tell reports apart, and say nothing of who sent them.
pub type ReportId = u128;

/// One report.
#[derive(Debug, Clone, PartialEq)]
pub struct Report<'r> {
    /// What it says of itself.
    pub header: &'r Header,
    /// Its number.
    pub id: ReportId,
    /// What was randomised.
    pub content: Content<'r>,
}

/// What a report holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Content<'r> {
    /// The randomised vector.
    Vector(&'r [f64]),
    /// Of `rank-privunit`: which of the public candidates of the seed. The id of the report is the seed.
    Rank(u16),
}

/// Why a report is not one of this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another form, round, mechanism, dimension, ε, radius or centre.
    Mixture,
    /// A number that was there before.
    Replay,
    /// A vector where its mechanism sends an index, or an index where it sends a vector.
    Form,
    /// An index that no candidate has.
    Index,
    /// Not as many numbers as its header says.
    Width,
    /// A number that is not finite.
    NotFinite,
    /// No report of this mechanism has this length.
    Support,
}

impl Refusal {
    /// As a count of refused reports is labelled.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixture => "other parameters",
            Self::Replay => "known id",
            Self::Form => "wrong form",
            Self::Index => "impossible index",
            Self::Width => "wrong width",
            Self::NotFinite => "not finite",
            Self::Support => "impossible length",
        }
    }

    /// In words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Mixture => "its round, mechanism or parameters are not those of the first report",
            Self::Replay => "its id was there before",
            Self::Form => {
                "it has a vector where its mechanism sends an index, or an index where it sends a vector"
            }
            Self::Index => "its index is not below the number of candidates of its mechanism",
            Self::Width => "it has not as many numbers as its dimension",
            Self::NotFinite => "a number in it is not finite",
            Self::Support => "no report of its mechanism has this length",
        }
    }
}

/// The sum of reports so far.
pub struct Aggregate {
    header: Header,
    cap: Cap,
    /// Of reports by rank.
    decoder: Option<Randomizer>,
    /// The report that was decoded last.
    decoded: Vec<f64>,
    longest: f64,
    sum: Vec<f64>,
    /// What rounding left out of each sum.
    rest: Vec<f64>,
    seen: HashSet<ReportId>,
}

impl Aggregate {
    /// For reports of this header.
    pub fn new(header: Header) -> Result<Self> {
        let cap = header.cap()?;
        let (longest, zeros) = (header.longest(&cap), vec![0.0; header.dimension]);
        let decoder = match cap.ranks {
            Some(_) => {
                let mechanism = randomizer_named(&header.mechanism)?;
                Some(Randomizer::new(mechanism, header.dimension, header.epsilon, header.radius)?)
            }
            None => None,
        };
        let decoded = if decoder.is_some() { zeros.clone() } else { Vec::new() };
        let (sum, rest) = (zeros.clone(), zeros);
        Ok(Self { header, cap, decoder, decoded, longest, sum, rest, seen: HashSet::new() })
    }

    /// Takes a report, or leaves everything as it was.
    pub fn add(&mut self, report: &Report<'_>) -> std::result::Result<(), Refusal> {
        if *report.header != self.header {
            return Err(Refusal::Mixture);
        }
        let vector = match (report.content, &self.decoder) {
            (Content::Vector(vector), None) => vector,
            (Content::Rank(index), Some(decoder)) => {
                let code = RankReport { seed: report.id, index };
                // The width is right: nothing else can be wrong with it.
                decoder.decode(code, &mut self.decoded).map_err(|_| Refusal::Index)?;
                &self.decoded
            }
            _ => return Err(Refusal::Form),
        };
        if vector.len() != self.header.dimension {
            return Err(Refusal::Width);
        }
        if vector.iter().any(|x| !x.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        let is_too_short = self.cap.directions == Directions::Sphere && length < self.longest * (1.0 - SLACK);
        if is_too_short || length > self.longest * (1.0 + SLACK) {
            return Err(Refusal::Support);
        }
        if !self.seen.insert(report.id) {
            return Err(Refusal::Replay);
        }
        // Kahan's sum: a million reports are a hundred times as long as their mean, or more.
        for ((sum, rest), x) in self.sum.iter_mut().zip(&mut self.rest).zip(vector) {
            let add = x - *rest;
            let total = *sum + add;
            *rest = (total - *sum) - add;
            *sum = total;
        }
        Ok(())
    }

    /// What its reports have in common.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Their constants.
    pub fn cap(&self) -> &Cap {
        &self.cap
    }

    /// Reports so far.
    pub fn len(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// How far one person could have moved the mean of reports.
    pub fn influence(&self) -> f64 {
        2.0 * self.longest / self.seen.len().max(1) as f64
    }

    /// The mean of reports, if there is one.
    pub fn mean(&self) -> Option<Vec<f64>> {
        let count = self.seen.len() as f64;
        (count > 0.0).then(|| self.sum.iter().map(|sum| sum / count).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_core::{DenseTable, Private, Randomizer, Randomness};

    fn header(mechanism: &str, dimension: usize) -> Header {
        Header {
            format: REPORT_FORMAT.into(),
            round: "spring".into(),
            mechanism: mechanism.into(),
            dimension,
            epsilon: Epsilon::new(3.0).unwrap(),
            radius: 2.0,
            centre: None,
        }
    }

    /// Reports of `count` copies of a vector.
    fn reports(header: &Header, vector: &[f64], count: usize) -> Vec<Vec<f64>> {
        let mechanism = randomizer_named(&header.mechanism).unwrap();
        let randomizer = Randomizer::new(mechanism, header.dimension, header.epsilon, header.radius).unwrap();
        let rows = Private::new(DenseTable::new(vector.repeat(count), vector.len()).unwrap());
        let mut all = Vec::new();
        randomizer.reports(rows, Randomness::Seed(2), 2, &mut |report| all.push(report.to_vec())).unwrap();
        all
    }

    /// Every honest report is taken, and their mean is the vector within 6.5 standard errors in every coordinate.
    #[test]
    fn honest_reports_give_the_mean() {
        for mechanism in ["duchi", "privunit", "privunitg"] {
            let (header, x) = (header(mechanism, 4), [1.0, -0.5, 0.25, 0.0]);
            let mut all = Aggregate::new(header.clone()).unwrap();
            for (id, vector) in (0..).zip(reports(&header, &x, 20_000)) {
                all.add(&Report { header: &header, id, content: Content::Vector(&vector) }).unwrap();
            }
            assert_eq!(all.len(), 20_000);
            // No coordinate varies more than a whole report.
            let error = 6.5 * 2.0 * (all.cap().mean_square() / 20_000.0).sqrt();
            for (mean, x) in all.mean().unwrap().iter().zip(&x) {
                assert!((mean - x).abs() < error, "{mechanism}: {mean} {x}");
            }
            assert!((all.influence() - 2.0 * all.longest / 20_000.0).abs() < 1e-15);
        }
    }

    /// Reports by rank are decoded here; an index that no candidate has, a vector and a seed that was there before are refused.
    #[test]
    fn reports_by_rank_give_the_mean() {
        for dimension in [4, 40] {
            let header = header("rank-privunit", dimension);
            let mechanism = randomizer_named("rank-privunit").unwrap();
            let randomizer =
                Randomizer::new(mechanism, header.dimension, header.epsilon, header.radius).unwrap();
            let x: Vec<f64> =
                (0..dimension).map(|i| if i < 4 { 0.5 - 0.25 * i as f64 } else { 0.0 }).collect();
            let rows = Private::new(DenseTable::new(x.repeat(4000), dimension).unwrap());
            let mut all = Aggregate::new(header.clone()).unwrap();
            let mut codes = Vec::new();
            randomizer.rank_reports(rows, Randomness::Seed(2), 2, &mut |code| codes.push(code)).unwrap();
            for code in &codes {
                let content = Content::Rank(code.index);
                all.add(&Report { header: &header, id: code.seed, content }).unwrap();
            }
            assert_eq!(all.len(), 4000);
            let error = 6.5 * 2.0 * (all.cap().mean_square() / 4000.0).sqrt();
            for (mean, x) in all.mean().unwrap().iter().zip(&x) {
                assert!((mean - x).abs() < error, "{dimension}: {mean} {x}");
            }
            let candidates = all.cap().ranks.unwrap().candidates as u16;
            for (id, content, refusal) in [
                (codes[0].seed, Content::Rank(0), Refusal::Replay),
                (1, Content::Rank(candidates), Refusal::Index),
                (1, Content::Rank(u16::MAX), Refusal::Index),
                (1, Content::Vector(&x), Refusal::Form),
            ] {
                assert_eq!(all.add(&Report { header: &header, id, content }).unwrap_err(), refusal);
            }
            assert_eq!(all.len(), 4000);
            // Whatever seed and index a liar takes, the report is no longer than the influence says.
            let mut vector = vec![0.0; dimension];
            for seed in 0..2000u128 {
                let index = (seed % u128::from(candidates)) as u16;
                randomizer.decode(RankReport { seed, index }, &mut vector).unwrap();
                let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
                assert!(length <= all.longest * (1.0 + SLACK));
            }
        }
    }

    #[test]
    fn what_is_no_report_is_refused_and_changes_nothing() {
        let header = header("privunit", 4);
        let all_reports = reports(&header, &[0.1, 0.2, 0.3, 0.4], 2);
        let good = &all_reports[0];
        let mut all = Aggregate::new(header.clone()).unwrap();
        assert!(all.is_empty() && all.mean().is_none());
        all.add(&Report { header: &header, id: 7, content: Content::Vector(good) }).unwrap();
        let before = all.mean();
        let refused = |all: &mut Aggregate, header: &Header, id: u128, vector: &[f64]| {
            all.add(&Report { header, id, content: Content::Vector(vector) }).unwrap_err()
        };
        for other in [
            Header { round: "autumn".into(), ..header.clone() },
            Header { epsilon: Epsilon::new(3.5).unwrap(), ..header.clone() },
            Header { radius: 2.5, ..header.clone() },
            Header { mechanism: "duchi".into(), ..header.clone() },
            Header { centre: Some("0".into()), ..header.clone() },
        ] {
            assert_eq!(refused(&mut all, &other, 8, good), Refusal::Mixture);
            assert!(other.difference(&header).is_some());
        }
        assert_eq!(header.difference(&header), None);
        assert_eq!(Header { radius: 2.5, ..header.clone() }.difference(&header), Some("radius"));
        assert_eq!(refused(&mut all, &header, 7, &all_reports[1]), Refusal::Replay);
        assert_eq!(refused(&mut all, &header, 8, &good[..3]), Refusal::Width);
        let with = |x: f64| [x, good[1], good[2], good[3]];
        assert_eq!(refused(&mut all, &header, 8, &with(f64::NAN)), Refusal::NotFinite);
        assert_eq!(refused(&mut all, &header, 8, &with(good[0] + 0.01)), Refusal::Support);
        let longer: Vec<f64> = good.iter().map(|x| 1e200 * x).collect();
        assert_eq!(refused(&mut all, &header, 8, &longer), Refusal::Support);
        assert_eq!((all.mean(), all.len()), (before, 1));
        // A refused number may come again with a report that is one.
        all.add(&Report { header: &header, id: 8, content: Content::Vector(&all_reports[1]) }).unwrap();
        let index = Report { header: &header, id: 9, content: Content::Rank(1) };
        assert_eq!(all.add(&index).unwrap_err(), Refusal::Form);
        assert!(Aggregate::new(Header { format: "x".into(), ..header.clone() }).is_err());
        assert!(Aggregate::new(Header { dimension: 0, ..header }).is_err());
    }
}
