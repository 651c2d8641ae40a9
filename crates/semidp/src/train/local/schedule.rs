//! Step sizes of Semi-LDP-SGD, which takes one step a person.
//!
//! Let G_t² bound the mean squared length of the gradient that step t goes along: a public person's is as long as the clip norm, a
//! private person's report much longer. For a convex loss with minimiser w*, and d_t = E‖w_t − w*‖²,
//!
//! $$ E[F(w_t)] - F(w^*) \le \frac{(1 - \mu\eta_t)d_t - d_{t+1}}{2\eta_t} + \frac{\eta_t G_t^2}{2}. $$
//!
//! Weighted sums of these lines give, with D ≥ ‖w_0 − w*‖ and S = Σ 1/G_t²:
//!
//! | schedule | step η_t | weight of w_t | bound |
//! |---|---|---|---|
//! | constant (the paper's) | D/√(ΣG²) | 1 | D√(ΣG²)/n |
//! | weighted | (D/√S)/G_t² | η_t | D/√S |
//! | strongly convex | a_t/(μA_t) | a_t = S_t/G_t² | 2/(μS) |
//!
//! where S_t and A_t are the sums of 1/G² and of a up to t. S adds up, so that the last two bounds are below those of either kind of
//! person alone, and D/√S ≤ D√(ΣG²)/n by Cauchy and Schwarz. The last one is the usual 2/(μ(t + 1)) with weights t for people
//! who are all alike; there μA_t = a_t/η_t makes the sum telescope, A_t ≥ S_t²/2, and each a_t²G_t²/(2μA_t) ≤ 1/(μG_t²). The
//! iterate before a step is averaged, not the one after it.

use crate::{Error, Result};

/// How long steps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// All the same, as in the paper.
    Constant,
    /// By how much a person's gradient tells.
    Weighted,
    /// Shorter and shorter, for a loss that a ridge makes strongly convex.
    StronglyConvex,
}

/// All of them, by name.
pub const SCHEDULES: [Schedule; 3] = [Schedule::Constant, Schedule::Weighted, Schedule::StronglyConvex];

impl Schedule {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Weighted => "weighted",
            Self::StronglyConvex => "strongly-convex",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Result<Self> {
        SCHEDULES.into_iter().find(|schedule| schedule.name() == name).ok_or_else(|| {
            Error::invalid("schedule", format!("`{name}`"), "constant, weighted or strongly-convex")
        })
    }
}

/// Who takes part, and what their gradients are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowd {
    /// Private people,
    pub private: u64,
    /// and the mean squared length of their gradients, at most;
    pub private_square: f64,
    /// public people,
    pub public: u64,
    /// and the same of theirs.
    pub public_square: f64,
}

impl Crowd {
    /// ΣG².
    fn squares(&self) -> f64 {
        self.private as f64 * self.private_square + self.public as f64 * self.public_square
    }

    /// S: what all gradients tell.
    pub fn information(&self) -> f64 {
        self.private as f64 / self.private_square + self.public as f64 / self.public_square
    }

    /// The share of private people in it.
    pub fn private_share(&self) -> f64 {
        self.private as f64 / self.private_square / self.information()
    }

    fn len(&self) -> f64 {
        (self.private + self.public) as f64
    }
}

/// A schedule with all its constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    schedule: Schedule,
    crowd: Crowd,
    /// D; for a constant step that was given, none.
    reach: Option<f64>,
    /// μ.
    convexity: f64,
    /// η, λ or nothing.
    unit: f64,
}

impl Pace {
    /// For iterates that start at most `reach` from the best model, and a loss of strong convexity `convexity`, perhaps none.
    pub fn new(schedule: Schedule, crowd: Crowd, reach: f64, convexity: f64) -> Result<Self> {
        if schedule == Schedule::StronglyConvex && convexity <= 0.0 {
            let requirement = "constant or weighted, unless --l2 makes the loss strongly convex";
            return Err(Error::invalid("schedule", schedule.name(), requirement));
        }
        let unit = match schedule {
            Schedule::Constant => reach / crowd.squares().sqrt(),
            Schedule::Weighted => reach / crowd.information().sqrt(),
            Schedule::StronglyConvex => 1.0,
        };
        Ok(Self { schedule, crowd, reach: Some(reach), convexity, unit })
    }

    /// Steps of this length, for which there is no bound.
    pub fn given(crowd: Crowd, step: f64) -> Self {
        Self { schedule: Schedule::Constant, crowd, reach: None, convexity: 0.0, unit: step }
    }

    /// How steps go.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// Who takes them.
    pub fn crowd(&self) -> &Crowd {
        &self.crowd
    }

    /// The step of a public person, where it is always the same.
    pub fn public_step(&self) -> Option<f64> {
        match self.schedule {
            Schedule::Constant => Some(self.unit),
            Schedule::Weighted => Some(self.unit / self.crowd.public_square),
            Schedule::StronglyConvex => None,
        }
    }

    /// The mean excess risk is below this, if no gradient is clipped and people come from one population.
    pub fn bound(&self) -> Option<f64> {
        let (crowd, reach) = (&self.crowd, self.reach?);
        Some(match self.schedule {
            Schedule::Constant => reach * crowd.squares().sqrt() / crowd.len(),
            Schedule::Weighted => reach / crowd.information().sqrt(),
            Schedule::StronglyConvex => 2.0 / (self.convexity * crowd.information()),
        })
    }

    /// Before the first step.
    pub fn begin(&self) -> Walk {
        Walk { pace: *self, information: 0.0, weights: 0.0 }
    }
}

/// On the way.
pub struct Walk {
    pace: Pace,
    /// S_t.
    information: f64,
    /// A_t.
    weights: f64,
}

/// A step: how long, and what the iterate before it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// η_t.
    pub size: f64,
    /// In the mean that becomes the model.
    pub weight: f64,
}

impl Walk {
    /// The step along a private or a public person's gradient.
    pub fn next(&mut self, is_private: bool) -> Step {
        let Pace { schedule, crowd, unit, convexity, .. } = self.pace;
        let square = if is_private { crowd.private_square } else { crowd.public_square };
        match schedule {
            Schedule::Constant => Step { size: unit, weight: 1.0 },
            Schedule::Weighted => Step { size: unit / square, weight: unit / square },
            Schedule::StronglyConvex => {
                self.information += 1.0 / square;
                let weight = self.information / square;
                self.weights += weight;
                Step { size: weight / (convexity * self.weights), weight }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: Crowd = Crowd { private: 900, private_square: 625.0, public: 100, public_square: 1.0 };

    /// The regret of a schedule by the line above, summed up: the bound is at least that, for every order of people.
    #[test]
    fn bounds_are_what_the_lines_sum_up_to() {
        for schedule in SCHEDULES {
            let pace = Pace::new(schedule, CROWD, 2.0, 0.5).unwrap();
            for order in 0..3 {
                let mut walk = pace.begin();
                let (mut squares, mut weights, mut first) = (0.0, 0.0, None);
                for i in 0..1000 {
                    let is_private = match order {
                        0 => i >= 100,
                        1 => i < 900,
                        _ => i % 10 != 3,
                    };
                    let Step { size, weight } = walk.next(is_private);
                    squares += 0.5 * weight * size * if is_private { 625.0 } else { 1.0 };
                    weights += weight;
                    first.get_or_insert((size, weight));
                }
                let (size, weight) = first.unwrap();
                // The distance from the start counts for nothing where the first step is 1/μ.
                let start = match schedule {
                    Schedule::StronglyConvex => {
                        assert!((size * 0.5 - 1.0).abs() < 1e-12, "{size}");
                        0.0
                    }
                    _ => 0.5 * 4.0 * weight / size,
                };
                let (found, bound) = ((start + squares) / weights, pace.bound().unwrap());
                assert!(found <= bound * (1.0 + 1e-12), "{schedule:?} {order}: {found} {bound}");
                assert!(found > 0.45 * bound, "{schedule:?} {order}: {found} {bound}");
            }
        }
    }

    /// The toy run of the specification: D = 1, reports 25 times as long.
    #[test]
    fn weighted_steps_are_never_worse() {
        let bound = |schedule, crowd| Pace::new(schedule, crowd, 1.0, 0.0).unwrap().bound().unwrap();
        for private in [0, 1, 100, 900, 100_000] {
            for square in [1.0, 2.0, 625.0, 1e6] {
                let crowd = Crowd { private, private_square: square, ..CROWD };
                let found = bound(Schedule::Weighted, crowd);
                assert!(found <= bound(Schedule::Constant, crowd) * (1.0 + 1e-12));
                for alone in [Crowd { private: 0, ..crowd }, Crowd { public: 0, ..crowd }] {
                    if alone.len() > 0.0 {
                        assert!(found <= bound(Schedule::Constant, alone) * (1.0 + 1e-12));
                    }
                }
            }
        }
        assert!(bound(Schedule::Constant, CROWD) > 7.0 * bound(Schedule::Weighted, CROWD));
        assert!((CROWD.private_share() - 1.44 / 101.44).abs() < 1e-12);
    }

    /// With people who are all alike it is the textbook's.
    #[test]
    fn strongly_convex_steps_are_the_usual_ones() {
        let crowd = Crowd { private: 0, private_square: 1.0, public: 50, public_square: 9.0 };
        let mut walk = Pace::new(Schedule::StronglyConvex, crowd, 1.0, 0.25).unwrap().begin();
        for t in 1..=50u32 {
            let step = walk.next(false);
            assert!((step.size - 2.0 / (0.25 * f64::from(t + 1))).abs() < 1e-12);
            assert!((step.weight * 81.0 - f64::from(t)).abs() < 1e-9);
        }
        assert!(Pace::new(Schedule::StronglyConvex, crowd, 1.0, 0.0).is_err());
        assert!(SCHEDULES.iter().all(|schedule| Schedule::named(schedule.name()).unwrap() == *schedule));
        assert!(Schedule::named("fast").is_err());
    }
}
