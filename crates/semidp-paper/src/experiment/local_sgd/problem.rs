//! Two problems whose excess risk can be computed. Rows are points of the unit sphere, uniformly, with a label.

use crate::coins::Coins;
use semidp::domain::Ball;
use semidp::loss::{Logistic, Loss, Squared};

/// Points that the logistic excess risk is averaged over: every one of them contributes an exact, positive number.
const JUDGES: usize = 4000;
const JUDGES_SEED: u64 = 77;

/// What is to be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// y = ⟨w*, x⟩ ± 2, each sign a fair coin; squared loss.
    Linear,
    /// y = 1 with chance 1/(1 + e^{−⟨w*, x⟩}); logistic loss.
    Logistic,
}

/// The noise of a linear label.
const NOISE: f64 = 2.0;

pub const KINDS: [Kind; 2] = [Kind::Linear, Kind::Logistic];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
        }
    }

    fn loss(self) -> Box<dyn Loss> {
        match self {
            Self::Linear => Box::new(Squared),
            Self::Logistic => Box::new(Logistic),
        }
    }

    /// ‖w*‖.
    fn length(self) -> f64 {
        match self {
            Self::Linear => 1.0,
            Self::Logistic => 5.0,
        }
    }

    /// The radius of the ball that models live in.
    fn radius(self) -> f64 {
        1.2 * self.length()
    }

    /// No gradient in that ball is longer, so that nothing is clipped: |⟨w − w*, x⟩| + 2, or 1.
    pub fn lipschitz(self) -> f64 {
        match self {
            Self::Linear => self.radius() + self.length() + NOISE,
            Self::Logistic => 1.0,
        }
    }
}

/// A problem in some dimension.
pub struct Problem {
    pub kind: Kind,
    pub dimension: usize,
    pub domain: Ball,
    loss: Box<dyn Loss>,
    target: Vec<f64>,
    /// Rows to average over where there is no formula.
    judges: Vec<f64>,
}

impl Problem {
    pub fn new(kind: Kind, dimension: usize) -> crate::Result<Self> {
        let mut coins = Coins::new(JUDGES_SEED, dimension as u64);
        let target = on_sphere(&mut coins, dimension).iter().map(|x| kind.length() * x).collect();
        let judges = match kind {
            Kind::Linear => Vec::new(),
            Kind::Logistic => (0..JUDGES).flat_map(|_| on_sphere(&mut coins, dimension)).collect(),
        };
        Ok(Self { kind, dimension, domain: Ball::new(kind.radius())?, loss: kind.loss(), target, judges })
    }

    pub fn loss(&self) -> &dyn Loss {
        &*self.loss
    }

    /// How far the best model can be from zero, where everything starts.
    pub fn reach(&self) -> f64 {
        self.kind.radius()
    }

    /// So many rows, each with its label after it.
    pub fn rows(&self, count: usize, coins: &mut Coins) -> Vec<f64> {
        let mut rows = Vec::with_capacity(count * (self.dimension + 1));
        for _ in 0..count {
            let x = on_sphere(coins, self.dimension);
            let score = dot(&x, &self.target);
            let label = match self.kind {
                Kind::Linear => score + if coins.uniform() < 0.5 { NOISE } else { -NOISE },
                Kind::Logistic => f64::from(u8::from(coins.uniform() < logistic(score))),
            };
            rows.extend(x);
            rows.push(label);
        }
        rows
    }

    /// F(w) − F(w*). Linear: ½E⟨w − w*, x⟩² = ‖w − w*‖²/(2d). Logistic: the mean divergence of the two chances of a label.
    pub fn excess(&self, weights: &[f64]) -> f64 {
        let off: Vec<f64> = weights.iter().zip(&self.target).map(|(w, t)| w - t).collect();
        match self.kind {
            Kind::Linear => dot(&off, &off) / (2.0 * self.dimension as f64),
            Kind::Logistic => {
                let judges = self.judges.chunks_exact(self.dimension);
                let each = judges.map(|x| {
                    let (right, found) = (dot(x, &self.target), dot(x, weights));
                    // log(1 + e^s) is the loss of label 0, and s less that of label 1.
                    softplus(found) - softplus(right) - logistic(right) * (found - right)
                });
                each.sum::<f64>() / JUDGES as f64
            }
        }
    }
}

fn on_sphere(coins: &mut Coins, dimension: usize) -> Vec<f64> {
    let mut x = coins.normals(dimension);
    let length = dot(&x, &x).sqrt();
    x.iter_mut().for_each(|x| *x /= length);
    x
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn logistic(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

fn softplus(score: f64) -> f64 {
    score.max(0.0) + (-score.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp::train::{Model, PublicRows};
    use semidp_core::{DenseTable, Public};

    /// The excess is that of the mean loss over many rows, the target has none, and no gradient is longer than it may be.
    #[test]
    fn excess_is_what_losses_say() {
        for kind in KINDS {
            let problem = Problem::new(kind, 4).unwrap();
            assert!(problem.excess(&problem.target).abs() < 1e-12);
            let count = 200_000;
            let values = problem.rows(count, &mut Coins::new(1, 0));
            let rows = PublicRows::load(&Public(DenseTable::new(values, 5).unwrap())).unwrap();
            let (loss, shape) = (kind.loss(), Model::zero(4, 1, false));
            let weights: Vec<f64> = (0..4).map(|j| 0.4 * f64::from(j) - 0.6).collect();
            let at = |weights: &[f64]| -> Vec<(f64, f64)> {
                let model = shape.with_weights(weights.to_vec());
                let score = |row: usize| {
                    let mut scores = [0.0];
                    model.scores_into(&rows, row, &mut scores);
                    scores[0]
                };
                (0..count).map(|row| (score(row), rows.label(row))).collect()
            };
            let gaps: Vec<f64> = at(&weights)
                .into_iter()
                .zip(at(&problem.target))
                .map(|((score, label), (best, _))| loss.value(&[score], label) - loss.value(&[best], label))
                .collect();
            let (mean, error) = crate::regression::mean_and_error(&gaps);
            // The logistic one is a mean over its own points, too.
            let tolerance = 6.5 * error * (1.0 + (count as f64 / JUDGES as f64).sqrt());
            assert!((mean - problem.excess(&weights)).abs() < tolerance, "{kind:?}: {mean} {tolerance}");
            let mut edge = problem.target.clone();
            edge.iter_mut().for_each(|w| *w *= -1.2);
            let mut residual = [0.0];
            for (score, label) in at(&edge) {
                loss.residuals(&[score], label, &mut residual);
                assert!(residual[0].abs() <= kind.lipschitz());
            }
        }
    }
}
