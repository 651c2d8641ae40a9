//! People who are asked one after the other, each once: what a question is may depend on all reports before it.
//!
//! A report of a person's clipped gradient at a model is ε-DP for that person whatever the model and the clip norm are, and the model is made of
//! reports of others and of public rows. Nobody reports twice, so everybody is promised ε for the whole conversation (sequential
//! interaction). A second question to one person is refused: it would cost another ε.

use super::Randomizer;
use crate::data::{Block, BlockSource, CsrBlock, DenseBlock, Private, Selection};
use crate::kept::{self, Facts, Identity, Record};
use crate::ledger::{Charge, Ledger, RunId};
use crate::noise::rng::{Randomness, RunKey};
use crate::query::{L2, Query, sealed::Work};
use crate::{Error, Result, parallel};
use semidp_accounting::Certificate;
use std::sync::Arc;

/// People who could be asked. Their number is public: everybody knows who reports.
pub struct People<S>(S, Option<Arc<dyn Record>>);

impl<S: BlockSource> People<S> {
    /// The units of a source. One that is read block by block shows a whole block for every question: read it into memory first
    /// ([`Private::in_memory`]).
    pub fn new(units: Private<S>) -> Self {
        Self(units.into_inner(), None)
    }

    /// Records the one interview of these people, so that another process can hold the same one again: under the same key the same
    /// questions get the same reports, and the ledger knows its name. The randomness of a report is bound to the contribution that it is
    /// of, so that another question gets a report of its own.
    pub fn recorded(self, record: Option<Arc<dyn Record>>) -> Self {
        Self(self.0, record)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.units()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Columns of their rows.
    pub fn width(&self) -> usize {
        self.0.width()
    }

    /// Begins to ask, after the ledger granted one report of each. The randomiser's radius is of no account: every question has its
    /// own.
    pub fn interview(
        self,
        randomizer: Randomizer,
        randomness: Randomness,
        ledger: &mut dyn Ledger,
    ) -> Result<Interview<S>> {
        let mut certificate = randomizer.certificate(randomness)?;
        let Self(people, record) = self;
        let (key, run, identity) = match &record {
            None => (randomness.key(0)?, RunId::random()?, None),
            Some(record) => {
                let file = record.key_file();
                certificate.random_source = file.source();
                let key = file.take()?.clone();
                let facts = Facts {
                    events: &certificate.events,
                    adjacency: certificate.guarantee.adjacency,
                    delta: certificate.guarantee.delta,
                    random_source: file.source(),
                    steps: 1,
                    dimension: randomizer.cap.dimension,
                    width: people.width(),
                    units: Some(people.units()),
                };
                let rows = kept::fingerprint(&people, &key, parallel::available())?;
                (key, file.run(), Some(Identity::new(file.run(), &facts, rows)))
            }
        };
        if let (Some(record), Some(identity)) = (&record, &identity) {
            match record.kept() {
                Some(kept) => kept.check(identity, &key)?,
                None => record.write(identity, &kept::seal(identity, &key, 0, record.text())?)?,
            }
            record.begun();
        }
        let granted = ledger.debit(&Charge {
            run,
            events: &certificate.events,
            adjacency: certificate.guarantee.adjacency,
            epsilon: certificate.guarantee.epsilon,
            delta: certificate.guarantee.delta,
        });
        if let (Some(record), Err(Error::BudgetRefused { .. })) = (&record, &granted) {
            record.refused();
        }
        granted?;
        let starts = (0..people.blocks()).map(|block| people.units_of(block).start).collect();
        let was_asked = vec![false; people.units()];
        Ok(Interview {
            randomizer,
            people,
            starts,
            was_asked,
            key,
            certificate,
            is_recorded: identity.is_some(),
        })
    }
}

/// A conversation with people, one at a time.
pub struct Interview<S> {
    randomizer: Randomizer,
    people: S,
    /// The first unit of each block.
    starts: Vec<usize>,
    was_asked: Vec<bool>,
    key: RunKey,
    certificate: Certificate,
    /// Whether it may be held again.
    is_recorded: bool,
}

impl<S: BlockSource> Interview<S> {
    /// How many there are to ask.
    pub fn people(&self) -> usize {
        self.was_asked.len()
    }

    /// A randomised report of one person's contribution to a question, such as a clipped gradient.
    pub fn ask<Q: Query<Norm = L2>>(&mut self, person: usize, question: &Q) -> Result<Vec<f64>> {
        for (of, found, expected) in [
            ("columns", self.people.width(), question.width()),
            ("coordinates", question.dimension(), self.randomizer.cap.dimension),
        ] {
            if found != expected {
                return Err(Error::Shape { what: "the question", of, found, expected });
            }
        }
        let was_asked = self.was_asked.get_mut(person).ok_or(Error::InvalidParameter {
            name: "person",
            value: person.to_string(),
            requirement: "below the number of people",
        })?;
        if std::mem::replace(was_asked, true) {
            return Err(Error::BudgetRefused {
                reason: format!("person {person} has reported: a second report would cost another epsilon"),
            });
        }
        let radius = question.grid().step() * question.grid().clip_steps() as f64;
        let randomizer = Randomizer { radius, ..self.randomizer.clone() };
        let mut vector = self.contribution(person, question)?;
        let mut scratch = vec![0.0; vector.len()];
        let number = person as u64;
        let bound = self.is_recorded.then(|| {
            let bits: Vec<i64> = vector.iter().map(|x| x.to_bits() as i64).collect();
            kept::noise_key(&self.key, number, radius, &bits)
        });
        let key = bound.as_ref().unwrap_or(&self.key);
        randomizer.report((key, number), true, &mut vector, &mut scratch);
        Ok(vector)
    }

    /// What is promised to everyone, whether asked or not.
    pub fn finish(self) -> Certificate {
        self.certificate
    }

    /// Clipped, and on the question's grid. A person whose row is not to be had says zero.
    fn contribution<Q: Query<Norm = L2>>(&self, person: usize, question: &Q) -> Result<Vec<f64>> {
        let block = self.starts.partition_point(|start| *start <= person) - 1;
        let mut place = person - self.starts[block];
        let (mut worker, width) = (question.worker(), self.people.width());
        let mut is_found = false;
        self.people.visit_while(block, &mut |piece| {
            if place >= piece.units() {
                place -= piece.units();
                return true;
            }
            if let Some(row) = row_of(&piece, place, width).filter(|_| !is_found) {
                worker.add(row, &Selection::Everyone, 0..1);
            }
            is_found = true;
            false
        })?;
        let step = question.grid().step();
        Ok(worker.into_sums().into_iter().map(|k| k as f64 * step).collect())
    }
}

/// One row of a block, if it is of this width.
fn row_of<'b>(block: &Block<'b>, unit: usize, width: usize) -> Option<Block<'b>> {
    fn dense<'b, T>(block: &DenseBlock<'b, T>, unit: usize, width: usize) -> Option<DenseBlock<'b, T>> {
        let row = block.values.get(unit * width..(unit + 1) * width).filter(|_| block.width == width)?;
        Some(DenseBlock::new(row, width))
    }
    fn sparse<'b, T>(block: &CsrBlock<'b, T>, unit: usize) -> Option<CsrBlock<'b, T>> {
        // Offsets count from the beginning of the block, so that its entries stay whole.
        let offsets = block.offsets.get(unit..unit + 2)?;
        Some(CsrBlock { offsets, columns: block.columns, values: block.values })
    }
    Some(match block {
        Block::DenseF32(block) => Block::DenseF32(dense(block, unit, width)?),
        Block::DenseF64(block) => Block::DenseF64(dense(block, unit, width)?),
        Block::CsrF32(block) => Block::CsrF32(sparse(block, unit)?),
        Block::CsrF64(block) => Block::CsrF64(sparse(block, unit)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsrTable, DenseTable, Public};
    use crate::ledger::NoLimit;
    use crate::query::{ClippedGradient, ClippedSum, ScoreLoss};
    use semidp_accounting::local::randomizer_named;
    use semidp_accounting::{Epsilon, Trust};

    fn randomizer(dimension: usize) -> Randomizer {
        let mechanism = randomizer_named("privunit").unwrap();
        Randomizer::new(mechanism, dimension, Epsilon::new(2.0).unwrap(), 1.0).unwrap()
    }

    fn begin<S: BlockSource>(randomizer: Randomizer, people: S, seed: u64) -> Interview<S> {
        let people = People::new(Private::new(people));
        people.interview(randomizer, Randomness::Seed(seed), &mut NoLimit).unwrap()
    }

    fn sum(width: usize, clip_norm: f64) -> ClippedSum<L2> {
        ClippedSum::l2(Public(vec![0.0; width]), clip_norm).unwrap()
    }

    /// The contribution is that of the person who is asked, in whichever block and kind of table, clipped.
    #[test]
    fn everybody_answers_for_themselves() {
        let values: Vec<f64> = (0..7 * 3).map(|x| 0.1 * x as f64).collect();
        let dense = begin(randomizer(3), DenseTable::with_blocks(values.clone(), 3, 2).unwrap(), 1);
        let offsets: Vec<usize> = (0..=7).map(|row| 3 * row).collect();
        let columns: Vec<u32> = (0..21).map(|at| at % 3).collect();
        let table = CsrTable::new(offsets, columns, values.clone(), 3).unwrap().with_blocks(4).unwrap();
        let sparse = begin(randomizer(3), table, 1);
        assert_eq!((dense.people(), sparse.people()), (7, 7));
        for person in 0..7 {
            let row = &values[3 * person..3 * person + 3];
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            let shrink = if length > 1.0 { 1.0 / length } else { 1.0 };
            let question = sum(3, 1.0);
            for found in [dense.contribution(person, &question), sparse.contribution(person, &question)] {
                for (found, x) in found.unwrap().iter().zip(row) {
                    assert!((found - shrink * x).abs() < 1e-6, "{person}: {found} {x}");
                }
            }
        }
    }

    #[test]
    fn nobody_is_asked_twice() {
        let mut interview = begin(randomizer(2), DenseTable::new(vec![0.3f32; 6], 2).unwrap(), 1);
        let question = sum(2, 1.0);
        interview.ask(1, &question).unwrap();
        assert!(matches!(interview.ask(1, &question), Err(Error::BudgetRefused { .. })));
        assert!(matches!(interview.ask(3, &question), Err(Error::InvalidParameter { name: "person", .. })));
        // A question of another shape is no question, and costs nobody a report.
        assert!(matches!(interview.ask(2, &sum(3, 1.0)), Err(Error::Shape { .. })));
        interview.ask(2, &question).unwrap();
        let certificate = interview.finish();
        assert_eq!((certificate.guarantee.trust, certificate.guarantee.epsilon.get()), (Trust::Local, 2.0));
        assert_eq!(certificate.guarantee.delta.get(), 0.0);
    }

    /// Refuses, and so must the interview.
    struct Broke;

    impl Ledger for Broke {
        fn debit(&mut self, charge: &Charge<'_>) -> Result<()> {
            assert_eq!(charge.epsilon.get(), 2.0);
            Err(Error::BudgetRefused { reason: "nothing is left".into() })
        }
    }

    #[test]
    fn what_a_ledger_refuses_does_not_begin() {
        let people = People::new(Private::new(DenseTable::new(vec![0.3f32; 6], 2).unwrap()));
        assert_eq!((people.len(), people.is_empty(), people.width()), (3, false, 2));
        let refused = people.interview(randomizer(2), Randomness::Seed(1), &mut Broke);
        assert!(matches!(refused, Err(Error::BudgetRefused { .. })));
    }

    /// Σ of the score: its gradient is the row.
    struct Plain;

    impl ScoreLoss for Plain {
        fn outputs(&self) -> usize {
            1
        }
        fn residuals(&self, _: &[f64], _: f64, residuals: &mut [f64]) {
            residuals[0] = 1.0;
        }
    }

    /// Reports of gradients have the gradient as their mean, within 6.5 standard errors; and people do not share their coins.
    #[test]
    fn reports_of_a_gradient_are_unbiased() {
        let count = 40_000;
        let people = DenseTable::new([0.3f32, -0.4, 1.0].repeat(count), 3).unwrap();
        let mut interview = begin(randomizer(2), people, 3);
        let question = ClippedGradient::new(&Plain, Public(vec![0.0; 2]), 2, false, 2.0).unwrap();
        let square = 4.0 * interview.randomizer.cap().mean_square();
        let mut mean = [0.0; 2];
        let mut last = Vec::new();
        for person in 0..count {
            let report = interview.ask(person, &question).unwrap();
            assert_ne!(report, last);
            mean.iter_mut().zip(&report).for_each(|(mean, x)| *mean += x / count as f64);
            last = report;
        }
        for (mean, x) in mean.iter().zip([0.3, -0.4]) {
            assert!((mean - x).abs() < 6.5 * (square / count as f64).sqrt(), "{mean} {x}");
        }
    }
}
