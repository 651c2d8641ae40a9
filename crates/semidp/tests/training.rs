//! Algorithm 1 through the kernel: its gradient estimate has the predicted variance, its runs are reproducible, and
//! its certificates say what they must.

use semidp::domain::{Ball, Everywhere};
use semidp::loss::*;
use semidp::train::*;
use semidp_accounting::{CountedEvent, Event, calibrate_noise, gaussian_noise};
use semidp_accounting::{PrivacyBudget, Rho};
use semidp_core::*;

const DIMENSION: usize = 50;

/// A small generator, enough for data.
struct Numbers(u64);

impl Numbers {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A coordinate of a row of length one.
    fn coordinate(&mut self) -> f32 {
        let size = 1.0 / (DIMENSION as f32).sqrt();
        if self.word() >> 63 == 0 { size } else { -size }
    }

    /// Rows of length one with labels of ±1 that have nothing to do with them.
    fn rows(&mut self, count: usize) -> DenseTable<f32> {
        DenseTable::new(self.values(count), DIMENSION + 1).unwrap()
    }

    /// The same, stored as sparse ones are.
    fn sparse_rows(&mut self, count: usize) -> CsrTable<f32> {
        let width = DIMENSION + 1;
        let offsets = (0..=count).map(|row| row * width).collect();
        let columns = (0..count).flat_map(|_| 0..width as u32).collect();
        CsrTable::new(offsets, columns, self.values(count), width).unwrap()
    }

    fn values(&mut self, count: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(count * (DIMENSION + 1));
        for _ in 0..count {
            values.extend((0..DIMENSION).map(|_| self.coordinate()));
            values.push(if self.word() >> 63 == 0 { 1.0 } else { -1.0 });
        }
        values
    }
}

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

fn base<'a>(loss: &'a dyn Loss, noise: f64, batch: usize) -> Sgd<'a> {
    Sgd {
        loss,
        start: Model::zero(DIMENSION, 1, false),
        steps: Steps::ONE,
        sampling: Sampling::OnePass { blocks: 1 },
        batch: batch as f64,
        private_rows: batch as f64,
        clip_norm: 1.0,
        noise_multiplier: NoiseMultiplier::new(noise).unwrap(),
        public_batch: 1,
        public_gradient: PublicGradient::Clip,
        alpha: Alpha::PerStep,
        update: Box::new(StepSize::Constant(1.0)),
        average: Average::Last,
        domain: &Everywhere,
        l2: 0.0,
        public_l2: 0.0,
        public_seed: 1,
    }
}

/// At w = 0 the gradient of squared loss at (x, y) is −y·x: of length one and mean zero. So after one step of length
/// one the model is minus the gradient estimate, and its square has expectation
/// J(α) = α²(1/K + dσ²) + (1 − α)²/K_pub, with J* = 1/(1/v_pub + 1/v_priv) at the best α.
#[test]
fn one_step_has_the_predicted_variance() {
    let (private, public, trials) = (80, 30, 2000u64);
    let rho = 0.5;
    let budget = PrivacyBudget::Zcdp { rho: Rho::new(rho).unwrap(), stated_at: delta() };
    let noise = gaussian_noise(budget, Adjacency::ReplaceOne).unwrap().get();
    let total_noise = |batch: f64| 2.0 * DIMENSION as f64 / (rho * batch * batch);
    let v_priv = 1.0 / private as f64 + total_noise(private as f64);
    let v_pub = 1.0 / public as f64;
    let error = |alpha: f64| alpha * alpha * v_priv + (1.0 - alpha).powi(2) * v_pub;
    let best = 1.0 / (1.0 / v_pub + 1.0 / v_priv);
    let all = (private + public) as f64;
    let dp_sgd = 1.0 / all + total_noise(all);
    assert!(best < v_pub && best < dp_sgd);
    let measured = |alpha: Alpha| {
        let squares = (0..trials).map(|trial| {
            let mut numbers = Numbers(trial * 77 + 5);
            let session = Session::new(Private::new(numbers.rows(private)), Adjacency::ReplaceOne).unwrap();
            let session = session.with_randomness(Randomness::Seed(trial)).with_threads(1);
            let rows = PublicRows::load(&Public(numbers.rows(public))).unwrap();
            let sgd = Sgd { public_batch: public, alpha, ..base(&Squared, noise, private) };
            let trained = sgd.train(&session, Some(&rows), delta(), &mut |_, _| ()).unwrap();
            assert!(trained.certificate.guarantee.rho.unwrap().get() <= rho);
            trained.model.weights.iter().map(|w| w * w).sum::<f64>()
        });
        squares.sum::<f64>() / trials as f64
    };
    // Relative variance of a squared length of d nearly normal coordinates is 2/d.
    let bound = 6.5 * (2.0 / (DIMENSION as f64 * trials as f64)).sqrt();
    let within = |found: f64, expected: f64, slack: f64| {
        assert!((found / expected - 1.0).abs() < bound + slack, "{found} {expected}");
    };
    for alpha in [1.0, 0.5] {
        within(measured(Alpha::Given(alpha)), error(alpha), 0.0);
    }
    // The rule estimates V² = 1 from the batch: ‖ḡ‖² is 1/30 of it and corrected for, up to a few percent of α.
    let found = measured(Alpha::PerStep);
    within(found, best, 1e-3);
    // Below throw-away, measured on the same rows, and below DP-SGD on all rows, whose prediction has a test of its own.
    let throw_away = measured(Alpha::Given(0.0));
    within(throw_away, v_pub, 0.0);
    assert!(found * (1.0 + bound) < throw_away * (1.0 - bound), "{found} {throw_away}");
    assert!(found * (1.0 + bound) < dp_sgd * (1.0 - bound), "{found} {dp_sgd}");
}

/// Treating all rows as private is the same program on all rows.
#[test]
fn dp_sgd_has_its_predicted_variance() {
    let (private, public, trials) = (80, 30, 2000u64);
    // What ρ = 0.5 needs.
    let noise = 2.0;
    let squares = (0..trials).map(|trial| {
        let mut numbers = Numbers(trial * 91 + 3);
        let rows = Private::new(numbers.rows(private)).joined(numbers.rows(public)).unwrap();
        let session = Session::new(rows, Adjacency::ReplaceOne).unwrap();
        assert_eq!(session.units(), Some(private + public));
        let session = session.with_randomness(Randomness::Seed(trial)).with_threads(1);
        let sgd = base(&Squared, noise, private + public);
        let trained = sgd.train(&session, None, delta(), &mut |_, _| ()).unwrap();
        assert_eq!(trained.alpha, 1.0);
        trained.model.weights.iter().map(|w| w * w).sum::<f64>()
    });
    let found = squares.sum::<f64>() / trials as f64;
    let all = (private + public) as f64;
    let expected = 1.0 / all + DIMENSION as f64 * (noise / all).powi(2);
    let bound = 6.5 * (2.0 / (DIMENSION as f64 * trials as f64)).sqrt();
    assert!((found / expected - 1.0).abs() < bound, "{found} {expected}");
}

/// Squared loss as a loss of rows, the label last.
#[derive(Debug)]
struct SquaredByRow;

impl Objective for SquaredByRow {
    fn door(&self) -> Door<'_> {
        Door::Rows(self)
    }
}

impl RowLoss for SquaredByRow {
    fn name(&self) -> &'static str {
        "squared by row"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn dimension(&self, width: usize) -> usize {
        width - 1
    }

    fn value(&self, weights: &[f64], row: RowView<'_>) -> f64 {
        0.5 * residual(weights, row).powi(2)
    }

    fn gradient_into(&self, weights: &[f64], row: RowView<'_>, gradient: &mut [f64]) {
        let residual = residual(weights, row);
        gradient.iter_mut().zip(row.values).for_each(|(g, x)| *g = residual * x);
    }

    fn constants(&self, bounds: &Bounds) -> Constants {
        constants(&Squared, bounds, 0.0)
    }
}

fn residual(weights: &[f64], row: RowView<'_>) -> f64 {
    weights.iter().zip(row.values).map(|(w, x)| w * x).sum::<f64>() - row.values[weights.len()]
}

/// Either door of the kernel trains the same model, and sparse rows train what dense ones do.
///
/// Contributions of a row to a step from the same model differ by less than 2^-18 of the clip norm: the two doors
/// truncate to a grid of 2^-22 of it in 50 coordinates, aim 2^-20 below it where they clip, and score in different
/// precision. Steps bring models no further apart, because none of these fields has more curvature than 1: so
/// differences add up at most.
#[test]
fn both_doors_train_alike() {
    let (size, steps) = (0.5, 8);
    for (alpha, public_gradient) in [
        (Alpha::PerStep, PublicGradient::Clip),
        (Alpha::Horizon, PublicGradient::Clip),
        (Alpha::Given(0.3), PublicGradient::Rescale),
        (Alpha::Given(0.3), PublicGradient::Raw),
    ] {
        let train = |loss: &dyn Objective, is_sparse: bool| {
            let sgd = Sgd {
                loss,
                steps: Steps::new(steps).unwrap(),
                sampling: Sampling::OnePass { blocks: steps },
                clip_norm: 0.9,
                public_batch: 10,
                public_gradient,
                alpha,
                update: Box::new(StepSize::Constant(size)),
                ..base(&Squared, 1.0, 50)
            };
            let mut numbers = Numbers(6);
            let (private, public) = if is_sparse {
                let private = Private::new(numbers.sparse_rows(400)).boxed();
                (private, PublicRows::load(&Public(numbers.sparse_rows(80))))
            } else {
                (Private::new(numbers.rows(400)).boxed(), PublicRows::load(&Public(numbers.rows(80))))
            };
            let session = Session::new(private, Adjacency::ReplaceOne).unwrap();
            let session = session.with_randomness(Randomness::Seed(2)).with_threads(1);
            sgd.train(&session, Some(&public.unwrap()), delta(), &mut |_, _| ()).unwrap().model.weights
        };
        let (by_scores, by_rows) = (train(&Squared, false), train(&SquaredByRow, false));
        let apart = by_scores.iter().zip(&by_rows).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let moved = by_scores.iter().map(|w| w * w).sum::<f64>().sqrt();
        assert!(apart < steps as f64 * size * 2f64.powi(-18) && moved > 0.1, "{apart} {moved}");
        assert_eq!(train(&SquaredByRow, true), by_rows);
    }
}

#[test]
fn runs_are_reproducible_whatever_the_threads() {
    let train = |threads: usize, seed: u64, average: Average| {
        let mut numbers = Numbers(4);
        let (private, public) = (numbers.rows(3000), numbers.rows(100));
        let session = Session::new(Private::new(private), Adjacency::AddRemove).unwrap();
        let session = session.with_randomness(Randomness::Seed(seed)).with_threads(threads);
        let rows = PublicRows::load(&Public(public)).unwrap();
        let ball = Ball::new(2.0).unwrap();
        let sgd = Sgd {
            steps: Steps::new(20).unwrap(),
            sampling: Sampling::Poisson { rate: SampleRate::new(0.05).unwrap() },
            batch: 150.0,
            private_rows: 3000.0,
            public_batch: 20,
            alpha: Alpha::Horizon,
            average,
            domain: &ball,
            l2: 0.01,
            public_l2: 0.0,
            ..base(&Logistic, 2.0, 150)
        };
        let mut seen = 0;
        let trained = sgd.train(&session, Some(&rows), delta(), &mut |_, _| seen += 1).unwrap();
        assert_eq!(seen, 20);
        assert!(trained.alpha > 0.0 && trained.alpha < 1.0);
        (trained.model, trained.certificate)
    };
    for average in [Average::Last, Average::Mean, Average::Tail(0.5), Average::Weighted] {
        let (model, certificate) = train(1, 3, average);
        assert_eq!(train(3, 3, average).0, model);
        assert_ne!(train(1, 4, average).0, model);
        // Poisson batches under add/remove, both accountants, verified from the events.
        let event = Event::PoissonGaussian {
            noise_multiplier: NoiseMultiplier::new(2.0).unwrap(),
            sample_rate: SampleRate::new(0.05).unwrap(),
        };
        assert_eq!(certificate.events, [CountedEvent::new(event, Steps::new(20).unwrap())]);
        assert!(certificate.accountants.pld.is_some() && certificate.accountants.rdp.is_some());
        assert!(certificate.verify_allowing_seeded().unwrap().valid);
    }
}

/// A budget of (ε, δ) is met by calibrated noise, whatever the number of steps.
#[test]
fn calibrated_runs_stay_within_the_budget() {
    let (steps, sample_rate) = (Steps::new(50).unwrap(), SampleRate::new(0.1).unwrap());
    let target = Epsilon::new(1.0).unwrap();
    let noise =
        calibrate_noise(target, calibration_delta(delta()), Adjacency::ReplaceOne, |noise_multiplier| {
            vec![CountedEvent::new(Event::PoissonGaussian { noise_multiplier, sample_rate }, steps)]
        });
    let session = Session::new(Private::new(Numbers(8).rows(500)), Adjacency::ReplaceOne).unwrap();
    let sgd = Sgd {
        steps,
        sampling: Sampling::Poisson { rate: sample_rate },
        ..base(&Logistic, noise.unwrap().value.get(), 50)
    };
    let certificate = sgd.train(&session, None, delta(), &mut |_, _| ()).unwrap().certificate;
    assert!(certificate.guarantee.epsilon <= target && certificate.guarantee.epsilon.get() > 0.99);
}

#[test]
fn nonsense_is_refused_before_anything_is_spent() {
    let session = Session::new(Private::new(Numbers(1).rows(10)), Adjacency::ReplaceOne).unwrap();
    let budget = Budget::new(Epsilon::new(0.0).unwrap(), delta());
    let session = session.with_ledger(budget);
    let refused = |sgd: Sgd<'_>| {
        let error = sgd.train(&session, None, delta(), &mut |_, _| ()).unwrap_err();
        error.to_string()
    };
    assert!(refused(Sgd { batch: 0.0, ..base(&Squared, 1.0, 10) }).contains("expected-batch"));
    assert!(refused(Sgd { l2: -1.0, ..base(&Squared, 1.0, 10) }).contains("l2"));
    assert!(
        refused(Sgd { update: Box::new(StepSize::Constant(f64::NAN)), ..base(&Squared, 1.0, 10) })
            .contains("learning-rate")
    );
    assert!(refused(Sgd { average: Average::Tail(0.0), ..base(&Squared, 1.0, 10) }).contains("average"));
    // Models of other rows.
    assert!(
        refused(Sgd { start: Model::zero(DIMENSION + 1, 1, false), ..base(&Squared, 1.0, 10) })
            .contains("start")
    );
    assert!(refused(Sgd { loss: &Linear, ..base(&Squared, 1.0, 10) }).contains("start"));
    // What is left is a refusal of the ledger, which has nothing to give.
    assert!(refused(base(&Squared, 1.0, 10)).contains("budget"));
}
