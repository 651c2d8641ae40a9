//! What a cell amounts to: means over draws, beside the paper's figures, the limit and the luck of draws.

use super::Sizes;
use super::cell::Cell;
use super::limit::{PrivateRun, least_squares, limit, luck_left};
use super::trainer::{Algorithm, Noises, OnDraw};
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
        let rows = sizes.rows - public;
        let worth = |batch: usize, steps: u64, noise: f64| {
            PrivateRun { dimension: sizes.dimension, rows, batch, steps, noise }.worth()
        };
        // In batches as the paper has it, or without: what says more about the model.
        let Noises { private, at_once, .. } = cell.noises;
        let worth = worth(sizes.batch, sizes.steps, private).max(worth(rows, 1, at_once));
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
            limit: limit(sizes.dimension, public, worth),
            expected,
            luck_left: expected.map(|_| luck_left(sizes.dimension, public, worth)),
        }
    }

    /// Over draws.
    pub fn loss(&self, algorithm: Algorithm, output: usize) -> Mean {
        let of = |draw: &OnDraw| draw.losses[algorithm.place()][output];
        mean_and_error(&self.cell.draws.iter().map(of).collect::<Vec<_>>())
    }

    /// The output with the smaller validation loss on the draw that is tuned on: one more hyper-parameter, as the paper's
    /// Algorithm 1 returns "w_T or an average of the iterates". The last iterate if they tie.
    pub fn tuned_output(&self, algorithm: Algorithm) -> usize {
        let [last, averaged] = self.cell.tuned.choices[algorithm.place()].map(|choice| choice.validation);
        usize::from(averaged < last)
    }

    /// On one draw, with the output that was tuned.
    pub fn on_draw(&self, algorithm: Algorithm, draw: &OnDraw) -> f64 {
        draw.losses[algorithm.place()][self.tuned_output(algorithm)]
    }

    /// Our reproduction of the paper's protocol: over draws, with the output that was tuned.
    pub fn protocol(&self, algorithm: Algorithm) -> Mean {
        self.loss(algorithm, self.tuned_output(algorithm))
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

    /// (ours − 1)/(the paper's − 1) for Algorithm 1 by the paper's protocol, its output tuned.
    pub fn excess_ratio(&self) -> Option<f64> {
        self.excess_over_papers(self.protocol(Algorithm::One).0)
    }

    /// The same of a loss.
    pub fn excess_over_papers(&self, loss: f64) -> Option<f64> {
        Some((loss - 1.0) / (self.paper?.algorithm_1 - 1.0))
    }

    /// That of the protocol after luck, where that is known.
    pub fn excess_ratio_after_luck(&self) -> Option<f64> {
        Some((self.after_luck(self.protocol(Algorithm::One).0)? - 1.0) / (self.papers_after_luck()? - 1.0))
    }

    /// The autopilot and the paper's Algorithm 1, after luck where that is known.
    fn autopilot_and_paper(&self) -> Option<(f64, f64)> {
        match (self.after_luck(self.autopilot.0), self.papers_after_luck()) {
            (Some(ours), Some(papers)) => Some((ours, papers)),
            _ => Some((self.autopilot.0, self.paper?.algorithm_1)),
        }
    }

    /// The autopilot minus the paper's Algorithm 1, after luck where that is known.
    pub fn autopilot_minus_paper(&self) -> Option<f64> {
        self.autopilot_and_paper().map(|(ours, papers)| ours - papers)
    }

    /// How far the autopilot is from the limit, over how far the paper's Algorithm 1 is, after luck where that is known;
    /// nothing where luck took the paper's to the limit or below it.
    pub fn distance_ratio(&self) -> Option<f64> {
        let (ours, papers) = self.autopilot_and_paper()?;
        (papers > self.limit).then(|| (ours - self.limit) / (papers - self.limit))
    }

    /// What the autopilot expected over what it reached, both beyond the noise of labels.
    pub fn predicted_over_measured(&self) -> Option<f64> {
        self.predicted.map(|predicted| (predicted - 1.0) / (self.autopilot.0 - 1.0))
    }

    /// The same of losses, noise of labels included.
    pub fn predicted_loss_over_measured(&self) -> Option<f64> {
        self.predicted.map(|predicted| predicted / self.autopilot.0)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::linreg::autopilot::Autopiloted;
    use crate::linreg::cell::Setting;
    use crate::linreg::trainer::{Choice, Noises, Tuned};
    use crate::linreg::{FULL, QUICK};
    use crate::published::{LOSSES, Start, noise};

    /// A cell of two draws around these losses: of Algorithm 1 by output, and of the autopilot, which predicts 1.045. The
    /// validation loss is that of the last iterate, and a tenth less for the mean of late ones if `averages`.
    pub fn by_hand(
        share: f64,
        epsilon: f64,
        throw_away: f64,
        outputs: [f64; 2],
        autopilot: f64,
        averages: bool,
    ) -> Cell {
        let validation = [1.1, if averages { 1.0 } else { 1.2 }];
        let choices = validation.map(|validation| Choice { rate: 0.1, alpha: 1.0, validation });
        let draw = |shift: f64| OnDraw {
            throw_away: throw_away + shift,
            losses: [outputs.map(|loss| loss + shift); 3],
        };
        let run = |shift: f64| Autopiloted {
            loss: autopilot + shift,
            predicted: Some(1.045),
            algorithm: String::new(),
            epsilon,
        };
        Cell {
            setting: Setting { share, epsilon, start: Start::Warm },
            noises: Noises { private: noise(share, epsilon).unwrap(), all: 2.49, at_once: 1e9 },
            tuned: Tuned { choices: [choices; 3] },
            draws: vec![draw(-0.01), draw(0.01)],
            autopilot: vec![run(-0.01), run(0.01)],
        }
    }

    /// A cell whose draws are as lucky as the paper's has nothing to take off the difference.
    #[test]
    fn equal_luck_cancels() {
        let (share, epsilon, paper) = LOSSES[0].rows()[6];
        let cell = by_hand(share, epsilon, paper.throw_away, [1.1, 1.2], 1.09, false);
        let summary = Summary::new(&FULL, &cell, paper);
        assert!((summary.luck().unwrap() - summary.papers_luck().unwrap()).abs() < 1e-12);
        assert!((summary.autopilot_minus_paper().unwrap() - (1.09 - paper.algorithm_1)).abs() < 1e-12);
        assert!((summary.excess_ratio().unwrap() - 0.1 / 0.0946).abs() < 1e-9);
        assert!((summary.predicted_over_measured().unwrap() - 0.5).abs() < 1e-9);
        assert!((summary.predicted_loss_over_measured().unwrap() - 1.045 / 1.09).abs() < 1e-12);
        assert!(summary.luck_left.unwrap() > 0.5 && summary.luck_left.unwrap() < 1.0);
        let off = summary.luck_left.unwrap() * summary.luck().unwrap();
        let by_hand = (1.09 - off - summary.limit) / (paper.algorithm_1 - off - summary.limit);
        assert!((summary.distance_ratio().unwrap() - by_hand).abs() < 1e-9);
        // Figures of another problem are not compared.
        let other = Summary::new(&QUICK, &cell, paper);
        assert_eq!(
            (other.excess_ratio(), other.autopilot_minus_paper(), other.distance_ratio()),
            (None, None, None)
        );
    }

    /// The output is what validation chose on the draw that is tuned on, not what is better on the others.
    #[test]
    fn the_output_is_tuned_on_validation_data() {
        let (share, epsilon, paper) = LOSSES[0].rows()[3];
        for (averages, output, mean) in [(false, 0, 1.3), (true, 1, 1.5)] {
            let cell = by_hand(share, epsilon, paper.throw_away, [1.3, 1.5], 1.2, averages);
            let summary = Summary::new(&FULL, &cell, paper);
            assert_eq!(summary.tuned_output(Algorithm::One), output);
            let (found, error) = summary.protocol(Algorithm::One);
            assert!((found - mean).abs() < 1e-12 && (error - 0.01).abs() < 1e-12, "{found} ± {error}");
            assert!((summary.on_draw(Algorithm::PdaMd, &cell.draws[1]) - mean - 0.01).abs() < 1e-12);
            assert!((summary.excess_ratio().unwrap() - (mean - 1.0) / 0.1648).abs() < 1e-9);
        }
        let mut cell = by_hand(share, epsilon, paper.throw_away, [1.3, 1.5], 1.2, true);
        cell.tuned.choices[0][1].validation = cell.tuned.choices[0][0].validation;
        assert_eq!(Summary::new(&FULL, &cell, paper).tuned_output(Algorithm::One), 0, "the last if they tie");
    }

    /// Nobody's distance is compared with one that is not there.
    #[test]
    fn a_paper_at_the_limit_has_no_distance() {
        let (share, epsilon, paper) = LOSSES[0].rows()[3];
        let cell = by_hand(share, epsilon, paper.throw_away, [1.3; 2], 1.2, false);
        assert!(Summary::new(&FULL, &cell, paper).distance_ratio().is_some());
        let lucky = Losses { algorithm_1: 1.0, ..paper };
        assert_eq!(Summary::new(&FULL, &cell, lucky).distance_ratio(), None);
    }
}
