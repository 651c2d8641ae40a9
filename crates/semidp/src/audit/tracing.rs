//! The tracing attack of the paper (`alg: attack`): call a row a member if it correlates with the clamped error of a released mean.
//!
//! Rows are in {±1}^d, coordinate j with mean θ_j, uniform in [−a, a]. The attacker has the released q, knows θ or estimates it from
//! fresh rows, and says IN if
//!
//! $$ \langle y - θ, t\rangle > τ, \qquad t_j = \mathrm{clamp}(q_j - θ_j, \pm η),\; η = 2α/\sqrt d,\; α^2 = \text{mean squared error}. $$
//!
//! The paper's τ = 2η√(d·ln(1/δ)) has a false positive rate of δ² at most, the sharper one ‖t‖√(2·ln(1/δ)) of δ, whatever q is.

use super::coins::Coins;
use super::{Rate, check_confidence};
use crate::mean::{Law, Plan, Problem, plan_named};
use crate::{Error, Result};
use semidp_accounting::{Delta, PrivacyBudget, Rho, gaussian_noise};
use semidp_core::{Adjacency, DenseTable, Private, Public, Randomness, Session};

/// How a mean is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// The mean of all rows, as it is.
    NonPrivate,
    /// Public and private rows at their best weights, semi-DP.
    Weighted,
    /// All rows at the weight 1/n, the noise on the private ones.
    Gaussian,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NonPrivate, Self::Weighted, Self::Gaussian];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonPrivate => "non-private",
            Self::Weighted => "weighted-gaussian",
            Self::Gaussian => "gaussian",
        }
    }
}

/// Above what a row is called a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// 2η√(d·ln(1/δ)).
    Paper,
    /// ‖t‖√(2·ln(1/δ)).
    Sharper,
}

/// What the attacker has of θ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    /// θ itself.
    Known,
    /// So many fresh rows of the same law, at least 2. One half of them finds t and the other half is what rows are compared with, so that
    /// an error of the one does not correlate with an error of the other.
    Estimated(usize),
}

/// An attack, and the world it is tried in.
#[derive(Debug, Clone, PartialEq)]
pub struct Attack {
    /// d.
    pub dimension: usize,
    /// n_priv.
    pub private_rows: usize,
    /// n_pub.
    pub public_rows: usize,
    /// a.
    pub spread: f64,
    /// What private rows are promised, under replace-one.
    pub rho: f64,
    /// δ of the threshold.
    pub delta: f64,
    /// Which one.
    pub threshold: Threshold,
    /// What is known of θ.
    pub knowledge: Knowledge,
    /// Worlds: each with a θ, rows and a release of its own, and as many outsiders as rows.
    pub trials: u64,
    /// Of the intervals.
    pub confidence: f64,
    /// What all of it comes from.
    pub seed: u64,
}

/// How often rows were called members.
#[derive(Debug, Clone, PartialEq)]
pub struct TracingOutcome {
    /// Of private rows: the true positive rate that privacy is to keep down.
    pub private: Rate,
    /// Of public rows, which nothing protects.
    pub public: Rate,
    /// Of rows that had no part in the mean: the false positive rate.
    pub outsiders: Rate,
    /// Mean of ⟨y − θ, t⟩/‖t‖ of private, public and outside rows: how far they stick out.
    pub mean_scores: [f64; 3],
    /// The weight of a private row in the mean.
    pub private_weight: f64,
    /// α².
    pub mean_squared_error: f64,
}

impl Attack {
    /// Tries the attack on one mechanism.
    pub fn run(&self, mechanism: Mechanism) -> Result<TracingOutcome> {
        self.check()?;
        let release = self.release_of(mechanism)?;
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        for trial in 0..self.trials {
            self.try_once(&release, trial, &mut tallies)?;
        }
        Ok(TracingOutcome {
            private: tallies[0].rate(self.confidence),
            public: tallies[1].rate(self.confidence),
            outsiders: tallies[2].rate(self.confidence),
            mean_scores: [0, 1, 2].map(|i: usize| tallies[i].scores / tallies[i].count.max(1) as f64),
            private_weight: release.private_weight,
            mean_squared_error: release.error,
        })
    }

    fn check(&self) -> Result<()> {
        check_confidence(self.confidence)?;
        if !(0.0..1.0).contains(&self.spread) {
            return Err(Error::invalid("spread", self.spread, "at least 0 and below 1"));
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(Error::invalid("delta", self.delta, "above 0 and below 1"));
        }
        if self.private_rows == 0 {
            return Err(Error::invalid("n-private", 0, "at least 1"));
        }
        match self.knowledge {
            Knowledge::Estimated(rows) if rows < 2 => {
                Err(Error::invalid("reference-rows", rows, "at least 2, one for each half"))
            }
            _ if self.trials == 0 => Err(Error::invalid("trials", 0, "at least 1")),
            _ => Ok(()),
        }
    }

    /// V² = d(1 − a²/3).
    fn variance(&self) -> f64 {
        self.dimension as f64 * (1.0 - self.spread * self.spread / 3.0)
    }

    /// How the mean is made. Rows of {±1}^d lie on a sphere about zero.
    fn release_of(&self, mechanism: Mechanism) -> Result<Release> {
        let name = match mechanism {
            Mechanism::NonPrivate => {
                let private_weight = 1.0 / (self.private_rows + self.public_rows) as f64;
                let error = self.variance() * private_weight;
                return Ok(Release { private_weight, error, noise: Noise::Floats(0.0) });
            }
            Mechanism::Weighted | Mechanism::Gaussian => mechanism.name(),
        };
        let radius = (self.dimension as f64).sqrt();
        let problem =
            Problem::new(self.private_rows as u64, self.public_rows as u64, self.dimension, radius)?
                .with_std(self.variance().sqrt())?;
        let budget = PrivacyBudget::Zcdp { rho: Rho::new(self.rho)?, stated_at: Delta::new(1e-6)? };
        if let Ok(plan) = plan_named(name, &problem, budget) {
            let (private_weight, error) = (plan.private_weight(), plan.predicted_mse());
            return Ok(Release { private_weight, error, noise: Noise::Kernel(Box::new(plan)) });
        }
        // A budget that the kernel does not certify, because there is next to no noise: a control of the attack.
        let multiplier = gaussian_noise(budget, Adjacency::ReplaceOne)?;
        let variance = Law::Gaussian.variance(multiplier, problem.l2(), self.dimension);
        let private_weight = match mechanism {
            Mechanism::Weighted => problem.best_weight(variance, problem.l2()),
            _ => problem.uniform_weight(),
        };
        let error = problem.error(private_weight, variance, problem.l2());
        Ok(Release { private_weight, error, noise: Noise::Floats(multiplier.get() * radius) })
    }

    /// One world: θ, rows, a release, and the attack on every row and as many outsiders.
    fn try_once(&self, release: &Release, trial: u64, tallies: &mut [Tally; 3]) -> Result<()> {
        let mut coins = Coins::new(self.seed, 4, trial);
        let theta: Vec<f64> =
            (0..self.dimension).map(|_| self.spread * (2.0 * coins.uniform() - 1.0)).collect();
        let mut draw = |count: usize| -> Vec<f32> {
            let rows = (0..count).flat_map(|_| theta.iter());
            rows.map(|mean| if coins.uniform() < 0.5 * (1.0 + mean) { 1.0 } else { -1.0 }).collect()
        };
        let (private, public) = (draw(self.private_rows), draw(self.public_rows));
        let outsiders = draw(self.private_rows + self.public_rows);
        let (found, compared) = match self.knowledge {
            Knowledge::Known => (theta.clone(), theta.clone()),
            Knowledge::Estimated(rows) => {
                let reference = draw(rows);
                let (first, second) = reference.split_at(rows / 2 * self.dimension);
                (self.mean_of(first), self.mean_of(second))
            }
        };
        let released = self.released(release, &private, &public, trial)?;
        let clamp = 2.0 * (release.error / self.dimension as f64).sqrt();
        let t: Vec<f64> = released.iter().zip(&found).map(|(q, m)| (q - m).clamp(-clamp, clamp)).collect();
        let length = t.iter().map(|t| t * t).sum::<f64>().sqrt();
        let log = (1.0 / self.delta).ln();
        let threshold = match self.threshold {
            Threshold::Paper => 2.0 * clamp * (self.dimension as f64 * log).sqrt(),
            Threshold::Sharper => length * (2.0 * log).sqrt(),
        };
        for (kind, rows) in [&private, &public, &outsiders].into_iter().enumerate() {
            for row in rows.chunks_exact(self.dimension) {
                let score: f64 =
                    row.iter().zip(&compared).zip(&t).map(|((y, m), t)| (f64::from(*y) - m) * t).sum();
                tallies[kind].add(score > threshold, score / length.max(f64::MIN_POSITIVE));
            }
        }
        Ok(())
    }

    /// q.
    fn released(&self, release: &Release, private: &[f32], public: &[f32], trial: u64) -> Result<Vec<f64>> {
        let public_mean = self.mean_of(public);
        let mut coins = Coins::new(self.seed, 5, trial);
        match &release.noise {
            Noise::Kernel(plan) => {
                let rows = Private::new(DenseTable::new(private.to_vec(), self.dimension)?);
                let session = Session::new(rows, Adjacency::ReplaceOne)?
                    .with_randomness(Randomness::Seed(coins.word()))
                    .with_threads(1);
                Ok(plan.release(&session, &Public(public_mean), &Public(vec![0.0; self.dimension]))?.value)
            }
            Noise::Floats(std) => {
                let share = release.private_weight * self.private_rows as f64;
                let parts = self.mean_of(private).into_iter().zip(public_mean);
                let noised = |(private, public): (f64, f64)| {
                    share * private + (1.0 - share) * public + release.private_weight * std * coins.normal()
                };
                Ok(parts.map(noised).collect())
            }
        }
    }

    /// The mean of rows; zero if there are none.
    fn mean_of(&self, rows: &[f32]) -> Vec<f64> {
        let count = (rows.len() / self.dimension).max(1) as f64;
        let mut mean = vec![0.0; self.dimension];
        for row in rows.chunks_exact(self.dimension) {
            mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += f64::from(*x) / count);
        }
        mean
    }
}

/// A mean before it is released.
struct Release {
    private_weight: f64,
    error: f64,
    noise: Noise,
}

/// Where its noise comes from.
enum Noise {
    Kernel(Box<Plan>),
    /// Of this standard deviation on the sum, for what promises nothing. Rows are made up, and nobody needs protection.
    Floats(f64),
}

#[derive(Default)]
struct Tally {
    count: u64,
    members: u64,
    scores: f64,
}

impl Tally {
    fn add(&mut self, is_member: bool, score: f64) {
        self.count += 1;
        self.members += u64::from(is_member);
        self.scores += score;
    }

    fn rate(&self, confidence: f64) -> Rate {
        Rate::of(self.members, self.count, confidence)
    }
}
