//! Semi-LDP-SGD (`alg: semi-Ldp-sgd`, `prop: more optimal semi-LDP SCO`) against LDP-SGD and throw-away: excess risk beside its
//! bound, over public shares and ε.
//!
//! In every repetition all algorithms see the same rows. Everything private goes through the kernel: one randomised gradient a
//! person. Nothing is clipped and no start is learned, so that the bounds hold as they stand.

mod outcome;
mod problem;

use super::Experiment;
use crate::coins::Coins;
use crate::parallel::in_order;
use crate::{Outcome, Result, Settings};
use problem::{KINDS, Kind, Problem};
use semidp::train::local::{LocalSgd, Pace, Schedule, Speed};
use semidp::train::{
    Algorithm, Conduct, Given, Model, PublicRows, Recipe, SemiLdpGain, ThrowAway, TrainingData,
};
use semidp_accounting::local::randomizer_named;
use semidp_accounting::{Adjacency, PrivacyBudget};
use semidp_core::{DenseTable, Epsilon, NoLimit, People, Private, Public, Randomizer, Randomness};
use std::sync::atomic::{AtomicU64, Ordering};

const DIMENSION: usize = 5;
const MECHANISM: &str = "privunit";
/// A difference is clear beyond this many standard errors.
const CLEAR: f64 = 2.0;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Steps by what a gradient tells.
    Weighted,
    /// The paper's constant step.
    Constant,
    /// Public people treated as private.
    LdpSgd,
    /// The same steps on public people alone.
    PublicSgd,
    /// The best model for the public rows: what the library's throw-away does, and no bound here speaks of.
    PublicFit,
    /// The library's own, beyond the paper.
    Gain,
}

const METHODS: [Method; 6] =
    [Method::Weighted, Method::Constant, Method::LdpSgd, Method::PublicSgd, Method::PublicFit, Method::Gain];
/// Those of the list that bounds say Semi-LDP-SGD is better than.
const BASELINES: [Method; 3] = [Method::Constant, Method::LdpSgd, Method::PublicSgd];

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Weighted => "semi-ldp-sgd",
            Self::Constant => "semi-ldp-sgd-constant",
            Self::LdpSgd => "ldp-sgd",
            Self::PublicSgd => "throw-away-sgd",
            Self::PublicFit => "throw-away-fit",
            Self::Gain => "semi-ldp-gain",
        }
    }

    fn place(self) -> usize {
        METHODS.iter().position(|method| *method == self).unwrap_or(0)
    }
}

/// One problem, number of people and ε.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Setup {
    kind: Kind,
    people: usize,
    public: usize,
    epsilon: f64,
}

impl Setup {
    fn share(&self) -> f64 {
        self.public as f64 / self.people as f64
    }

    fn name(&self) -> String {
        format!("local-sgd-{}-{}of{}-epsilon{}", self.kind.name(), self.public, self.people, self.epsilon)
    }
}

/// How much is done.
struct Sizes {
    people: usize,
    shares: &'static [f64],
    /// At one ε,
    epsilon: f64,
    /// and over these at one share.
    epsilons: &'static [f64],
    share: f64,
    repetitions: u64,
}

impl Sizes {
    fn of(settings: &Settings) -> Self {
        match settings.quick {
            true => Self {
                people: 4000,
                shares: &[0.01, 0.05, 0.3],
                epsilon: 2.0,
                epsilons: &[1.0, 4.0],
                share: 0.05,
                repetitions: 10,
            },
            false => Self {
                people: 20_000,
                shares: &[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3],
                epsilon: 1.0,
                epsilons: &[0.25, 0.5, 2.0, 4.0, 8.0],
                share: 0.02,
                repetitions: 20,
            },
        }
    }

    fn setups(&self) -> Vec<Setup> {
        let places = self.shares.iter().map(|share| (*share, self.epsilon));
        let places: Vec<(f64, f64)> =
            places.chain(self.epsilons.iter().map(|epsilon| (self.share, *epsilon))).collect();
        let of = |kind| {
            places.iter().map(move |(share, epsilon)| Setup {
                kind,
                people: self.people,
                public: (share * self.people as f64).round() as usize,
                epsilon: *epsilon,
            })
        };
        KINDS.into_iter().flat_map(of).collect()
    }
}

/// The experiment.
pub struct LocalSgdExperiment;

impl Experiment for LocalSgdExperiment {
    fn name(&self) -> &'static str {
        "local-sgd"
    }

    fn title(&self) -> &'static str {
        "Semi-LDP-SGD, LDP-SGD and throw-away: excess risk beside its bound"
    }

    fn run(&self, settings: &Settings, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        let sizes = Sizes::of(settings);
        let setups = sizes.setups();
        let (finished, total) = (AtomicU64::new(0), setups.len() as u64 * sizes.repetitions);
        let mut cells = Vec::new();
        for setup in setups {
            let tick = |_: u64| progress(finished.fetch_add(1, Ordering::Relaxed) + 1, total);
            let excesses =
                settings.piece(&setup.name(), || measure(&setup, sizes.repetitions, settings, &tick))?;
            finished.store((cells.len() as u64 + 1) * sizes.repetitions, Ordering::Relaxed);
            cells.push(Measured { setup, bounds: bounds(&setup)?, excesses });
        }
        progress(total, total);
        Ok(outcome::outcome(self, settings, &sizes, &cells))
    }
}

/// What was measured at one setup.
struct Measured {
    setup: Setup,
    /// Of each method that has one.
    bounds: Vec<Option<f64>>,
    /// A repetition a list, a method an entry.
    excesses: Vec<Vec<f64>>,
}

impl Measured {
    fn of(&self, method: Method) -> Vec<f64> {
        self.excesses.iter().map(|excesses| excesses[method.place()]).collect()
    }

    fn bound(&self, method: Method) -> Option<f64> {
        self.bounds[method.place()]
    }

    /// Semi-LDP-SGD minus another, repetition by repetition.
    fn gaps(&self, other: Method) -> Vec<f64> {
        self.of(Method::Weighted).iter().zip(self.of(other)).map(|(ours, other)| ours - other).collect()
    }
}

/// The excess risks of all methods in each repetition.
fn measure(
    setup: &Setup,
    repetitions: u64,
    settings: &Settings,
    tick: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Vec<f64>>> {
    let problem = Problem::new(setup.kind, DIMENSION)?;
    in_order(repetitions, settings.threads, tick, |repetition| {
        let stream = (setup.people as u64) << 20 | repetition;
        let mut coins = Coins::new(settings.seed, stream);
        let rows = problem.rows(setup.people, &mut coins);
        let seed = Coins::new(settings.seed ^ 1, stream).word();
        METHODS.iter().map(|method| run(*method, setup, &problem, &rows, seed)).collect()
    })
}

/// A run of a method on rows of which the first are public.
fn run(method: Method, setup: &Setup, problem: &Problem, rows: &[f64], seed: u64) -> Result<f64> {
    let width = problem.dimension + 1;
    let table = |rows: &[f64]| DenseTable::new(rows.to_vec(), width);
    let (public, private) = rows.split_at(setup.public * width);
    let known = || -> Result<PublicRows> { Ok(PublicRows::load(&Public(table(public)?))?) };
    let weights = match method {
        Method::Weighted | Method::Constant | Method::LdpSgd | Method::PublicSgd => {
            let (private, known) = match method {
                Method::LdpSgd => (rows, None),
                Method::PublicSgd => (&[][..], Some(known()?)),
                _ => (private, Some(known()?)),
            };
            let people = People::new(Private::new(table(private)?).in_memory()?);
            let sgd = sgd(method, setup, problem)?;
            let randomness = Randomness::Seed(seed);
            sgd.train(people, known.as_ref(), randomness, &mut NoLimit, &mut |_, _| ())?.model.weights
        }
        Method::PublicFit | Method::Gain => {
            let recipe = Recipe {
                loss: problem.loss(),
                domain: &problem.domain,
                has_intercept: false,
                budget: PrivacyBudget::Pure { epsilon: Epsilon::new(setup.epsilon)? },
                adjacency: Adjacency::ReplaceOne,
                given: Given::default(),
            };
            let data =
                TrainingData { private: Private::new(Box::new(table(private)?)), public: Some(known()?) };
            let algorithm: &dyn Algorithm = match method {
                Method::Gain => &SemiLdpGain,
                _ => &ThrowAway,
            };
            algorithm.train(&recipe, data, Conduct::new(Randomness::Seed(seed)), &mut |_| ())?.model.weights
        }
    };
    Ok(problem.excess(&weights))
}

fn sgd<'p>(method: Method, setup: &Setup, problem: &'p Problem) -> Result<LocalSgd<'p>> {
    let start = Model::zero(problem.dimension, 1, false);
    let schedule = if method == Method::Weighted { Schedule::Weighted } else { Schedule::Constant };
    Ok(LocalSgd {
        loss: problem.loss(),
        randomizer: Randomizer::new(
            randomizer_named(MECHANISM)?,
            problem.dimension,
            Epsilon::new(setup.epsilon)?,
            1.0,
        )?,
        clip_norm: setup.kind.lipschitz(),
        speed: Speed::Reach(problem.reach(), schedule),
        domain: Box::new(&problem.domain),
        l2: 0.0,
        start,
        order_seed: 1,
    })
}

fn bounds(setup: &Setup) -> Result<Vec<Option<f64>>> {
    let problem = Problem::new(setup.kind, DIMENSION)?;
    let (all, public) = (setup.people as u64, setup.public as u64);
    let bound = |method: &Method| -> Result<Option<f64>> {
        let (private, public) = match method {
            Method::PublicFit | Method::Gain => return Ok(None),
            Method::LdpSgd => (all, 0),
            Method::PublicSgd => (0, public),
            _ => (all - public, public),
        };
        let pace: Pace = sgd(*method, setup, &problem)?.pace(private, public)?;
        Ok(pace.bound())
    };
    METHODS.iter().map(bound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regression::mean_and_error;

    /// In the regime where bounds are well apart, 60 paired repetitions of either problem put Semi-LDP-SGD below LDP-SGD and
    /// below throw-away, by two standard errors and more, and every single one below its bound.
    #[test]
    fn semi_ldp_sgd_is_better_where_theory_says_so() {
        let settings = Settings::new(true, 5, 2);
        for kind in KINDS {
            let setup = Setup { kind, people: 8000, public: 450, epsilon: 1.5 };
            let found = Measured {
                setup,
                bounds: bounds(&setup).unwrap(),
                excesses: measure(&setup, 60, &settings, &|_| ()).unwrap(),
            };
            let bound = found.bound(Method::Weighted).unwrap();
            for other in BASELINES {
                assert!(bound < 0.95 * found.bound(other).unwrap(), "{kind:?} {other:?}");
                let (gap, error) = mean_and_error(&found.gaps(other));
                assert!(gap < -CLEAR * error, "{kind:?} {other:?}: {gap} {error}");
            }
            let worst = found.of(Method::Weighted).into_iter().fold(0.0, f64::max);
            assert!(worst < bound, "{kind:?}: {worst} {bound}");
        }
    }

    #[test]
    fn a_quick_run_hangs_together() {
        let settings = Settings::new(true, 1, 2);
        let sizes = Sizes { people: 400, repetitions: 2, ..Sizes::of(&settings) };
        let cells: Vec<Measured> = sizes
            .setups()
            .into_iter()
            .map(|setup| Measured {
                setup,
                bounds: bounds(&setup).unwrap(),
                excesses: measure(&setup, 2, &settings, &|_| ()).unwrap(),
            })
            .collect();
        let outcome = outcome::outcome(&LocalSgdExperiment, &settings, &sizes, &cells);
        for table in &outcome.tables {
            assert_eq!(table.rows.len(), cells.len());
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.name);
        }
        assert_eq!(outcome.charts.len(), 4);
        for (name, chart) in &outcome.charts {
            assert!(chart.svg().unwrap().contains("</svg>"), "{name}");
        }
    }
}
