//! What a cell amounts to: means over draws, beside the paper's figures, the limit and the luck of draws.

use super::Sizes;
use super::cell::Cell;
use super::limit::{PrivateRun, least_squares, limit, luck_left};
use super::trainer::{Algorithm, OnDraw};
use crate::published::Losses;
use crate::regression::mean_and_error;

/// A mean with its standard error.
pub type Mean = (f64, f64);

/// One setting, summed up.
pub struct Summary<'a> {
    pub cell: &'a Cell,
    /// Public rows.
    pub public: usize,
    /// The paper's figures, if they are of the same problem.
    pub paper: Option<Losses>,
    pub throw_away: Mean,
    pub autopilot: Mean,
    /// What the autopilot expected itself, on average.
    pub predicted: Option<f64>,
    /// Nobody gets below it on average.
    pub limit: f64,
    /// The expected loss of throw-away, with more public rows than columns.
    pub expected: Option<f64>,
    /// How much of the luck of throw-away is left where public rows are weighted against private ones.
    pub luck_left: Option<f64>,
}

impl<'a> Summary<'a> {
    pub fn new(sizes: &Sizes, cell: &'a Cell, paper: Losses) -> Self {
        let public = sizes.public(cell.setting.share);
        let run = PrivateRun {
            dimension: sizes.dimension,
            rows: sizes.rows - public,
            batch: sizes.batch,
            steps: sizes.steps,
            noise: cell.noises.private,
        };
        let expected = least_squares(sizes.dimension, public);
        let predictions: Vec<f64> = cell.autopilot.iter().filter_map(|run| run.predicted).collect();
        Self {
            cell,
            public,
            paper: sizes.is_of_paper.then_some(paper),
            throw_away: mean_and_error(&cell.draws.iter().map(|draw| draw.throw_away).collect::<Vec<_>>()),
            autopilot: mean_and_error(&cell.autopilot.iter().map(|run| run.loss).collect::<Vec<_>>()),
            predicted: (!predictions.is_empty())
                .then(|| predictions.iter().sum::<f64>() / predictions.len() as f64),
            limit: limit(sizes.dimension, public, run.worth()),
            expected,
            luck_left: expected.map(|_| luck_left(sizes.dimension, public, run.worth())),
        }
    }

    /// Over draws.
    pub fn loss(&self, algorithm: Algorithm, output: usize) -> Mean {
        let of = |draw: &OnDraw| draw.losses[algorithm.place()][output];
        mean_and_error(&self.cell.draws.iter().map(of).collect::<Vec<_>>())
    }

    /// The paper's for an algorithm.
    pub fn papers(&self, algorithm: Algorithm) -> Option<f64> {
        self.paper.map(|paper| match algorithm {
            Algorithm::One => paper.algorithm_1,
            Algorithm::PdaMd => paper.pda_md,
            Algorithm::DpSgd => paper.dp_sgd,
        })
    }

    /// Of our draws: throw-away minus its expectation.
    pub fn luck(&self) -> Option<f64> {
        self.expected.map(|expected| self.throw_away.0 - expected)
    }

    /// Of the paper's one draw.
    pub fn papers_luck(&self) -> Option<f64> {
        Some(self.paper?.throw_away - self.expected?)
    }

    /// A loss of ours, without what luck did to it.
    pub fn after_luck(&self, loss: f64) -> Option<f64> {
        Some(loss - self.luck_left? * self.luck()?)
    }

    /// The paper's Algorithm 1 likewise.
    pub fn papers_after_luck(&self) -> Option<f64> {
        Some(self.paper?.algorithm_1 - self.luck_left? * self.papers_luck()?)
    }

    /// (ours − 1)/(the paper's − 1) for Algorithm 1: by the paper's protocol with the last iterate, or with the mean of
    /// late ones.
    pub fn excess_ratio(&self, output: usize) -> Option<f64> {
        Some((self.loss(Algorithm::One, output).0 - 1.0) / (self.paper?.algorithm_1 - 1.0))
    }

    /// The same of last iterates after luck, where that is known.
    pub fn excess_ratio_after_luck(&self) -> Option<f64> {
        Some((self.after_luck(self.loss(Algorithm::One, 0).0)? - 1.0) / (self.papers_after_luck()? - 1.0))
    }

    /// The autopilot minus the paper's Algorithm 1, after luck where that is known.
    pub fn autopilot_minus_paper(&self) -> Option<f64> {
        match (self.after_luck(self.autopilot.0), self.papers_after_luck()) {
            (Some(ours), Some(papers)) => Some(ours - papers),
            _ => Some(self.autopilot.0 - self.paper?.algorithm_1),
        }
    }

    /// How far the autopilot is from the limit, over how far the paper's Algorithm 1 is, after luck where that is known.
    pub fn distance_ratio(&self) -> Option<f64> {
        let (ours, papers) = match (self.after_luck(self.autopilot.0), self.papers_after_luck()) {
            (Some(ours), Some(papers)) => (ours, papers),
            _ => (self.autopilot.0, self.paper?.algorithm_1),
        };
        Some((ours - self.limit) / (papers - self.limit))
    }

    /// What the autopilot expected over what it reached, both beyond the noise of labels.
    pub fn predicted_over_measured(&self) -> Option<f64> {
        self.predicted.map(|predicted| (predicted - 1.0) / (self.autopilot.0 - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linreg::cell::Setting;
    use crate::linreg::trainer::{Choice, Noises, Tuned};
    use crate::linreg::{FULL, QUICK};
    use crate::published::{LOSSES, Start};

    /// A cell whose draws are as lucky as the paper's has nothing to take off the difference.
    #[test]
    fn equal_luck_cancels() {
        let (share, epsilon, paper) = LOSSES[0].rows()[6];
        let choice = Choice { rate: 0.1, alpha: 1.0, validation: 1.1 };
        let draw =
            |shift: f64| OnDraw { throw_away: paper.throw_away + shift, losses: [[1.1 + shift; 2]; 3] };
        let run = |shift: f64| super::super::autopilot::Autopiloted {
            loss: 1.09 + shift,
            predicted: Some(1.045),
            algorithm: String::new(),
            epsilon,
        };
        let cell = Cell {
            setting: Setting { share, epsilon, start: Start::Warm },
            noises: Noises { private: 9.531, all: 2.49 },
            tuned: Tuned { choices: [[choice; 2]; 3] },
            draws: vec![draw(-0.01), draw(0.01)],
            autopilot: vec![run(-0.01), run(0.01)],
        };
        let summary = Summary::new(&FULL, &cell, paper);
        assert!((summary.luck().unwrap() - summary.papers_luck().unwrap()).abs() < 1e-12);
        assert!((summary.autopilot_minus_paper().unwrap() - (1.09 - paper.algorithm_1)).abs() < 1e-12);
        assert!((summary.excess_ratio(0).unwrap() - 0.1 / 0.0946).abs() < 1e-9);
        assert!((summary.predicted_over_measured().unwrap() - 0.5).abs() < 1e-9);
        assert!(summary.luck_left.unwrap() > 0.5 && summary.luck_left.unwrap() < 1.0);
        // Figures of another problem are not compared.
        let other = Summary::new(&QUICK, &cell, paper);
        assert_eq!(
            (other.excess_ratio(0), other.autopilot_minus_paper(), other.distance_ratio()),
            (None, None, None)
        );
    }
}
