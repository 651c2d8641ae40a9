//! Compositions far from everyday ones: huge counts, hardly any noise, events of very different
//! size side by side. Each once hung, panicked or was refused; each has an answer to compare with.

use semidp_accounting::accountant::*;
use semidp_accounting::*;

fn noise(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn pure(epsilon: f64) -> Event {
    Event::Pure { epsilon: Epsilon::new(epsilon).unwrap() }
}

fn counted(event: Event, count: u64) -> CountedEvent {
    CountedEvent::new(event, Steps::new(count).unwrap())
}

fn pld_delta(events: &[CountedEvent], adjacency: Adjacency, epsilon: f64) -> f64 {
    let mut accountant = PldAccountant::new(adjacency);
    accountant.compose_all(events).unwrap();
    accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap().get()
}

/// δ(ε) of n randomised responses with ε₀ each: Σ_k P(k)·(1 − e^{ε−(2k−n)ε₀})₊ with k binomial. Its
/// probabilities follow from their ratios, outwards from the mode.
fn randomised_response_delta(e0: f64, n: u64, epsilon: f64) -> f64 {
    let p = 1.0 / (1.0 + (-e0).exp());
    let odds = e0.exp();
    let count = n as f64;
    let mode = (count * p).floor();
    let term = |k: f64| (-(epsilon - (2.0 * k - count) * e0).exp_m1()).max(0.0);
    let (mut total, mut weighted) = (1.0, term(mode));
    for up in [true, false] {
        let (mut k, mut ratio) = (mode, 1.0);
        while ratio > 1e-40 && (if up { k < count } else { k > 0.0 }) {
            ratio *= if up { (count - k) / (k + 1.0) * odds } else { k / (count - k + 1.0) / odds };
            k += if up { 1.0 } else { -1.0 };
            total += ratio;
            weighted += ratio * term(k);
        }
    }
    weighted / total
}

#[test]
fn randomised_response_composes_like_the_binomial_law() {
    for (e0, n, epsilons) in [
        (0.5, 3, [0.2, 0.7, 1.2]),
        (0.1, 1_000, [1.0, 8.0, 20.0]),
        (1e-3, 1_000_000, [0.5, 2.0, 6.0]),
        (1e-4, 100_000_000, [1.0, 3.0, 7.0]),
    ] {
        for epsilon in epsilons {
            let exact = randomised_response_delta(e0, n, epsilon);
            let found = pld_delta(&[counted(pure(e0), n)], Adjacency::AddRemove, epsilon);
            // The allowance for the rounding of the transform grows with n: n·4ε·log₂N·‖p‖₂ (1e-14 n)
            // times the ℓ2 norm of the weights, a few hundred on these grids.
            let slack = 1e-5 + 1e-11 * n as f64;
            assert!(
                found >= exact * (1.0 - 1e-9) && found <= exact * (1.0 + slack) + 1e-20,
                "{e0} {n} {epsilon}: {found:e} for {exact:e}"
            );
        }
    }
}

/// Many tiny pure losses tend to a Gaussian one with μ = ε₀√n, beside anything.
#[test]
fn many_small_pure_events_beside_few_large_ones() {
    let events = [counted(pure(1e-5), 100_000_000), counted(pure(0.5), 2)];
    let limit = [
        counted(Event::Gaussian { noise_multiplier: noise(1.0 / (1e-5f64 * 1e4)) }, 1),
        counted(pure(0.5), 2),
    ];
    for epsilon in [0.8, 1.1, 1.3] {
        let found = pld_delta(&events, Adjacency::AddRemove, epsilon);
        let gaussian = pld_delta(&limit, Adjacency::AddRemove, epsilon);
        assert!((found / gaussian - 1.0).abs() < 2e-2, "{epsilon}: {found:e} {gaussian:e}");
    }
}

/// A Gaussian event that reveals nothing costs nothing beside a pure one, and takes no time.
#[test]
fn an_event_that_hardly_matters_costs_hardly_anything() {
    let events = [counted(Event::Gaussian { noise_multiplier: noise(1e9) }, 6), counted(pure(0.25), 1)];
    let delta = Delta::new(1e-8).unwrap();
    let found = epsilon(&events, Adjacency::AddRemove, delta).unwrap().value.get();
    assert!((found - 0.25).abs() < 1e-6, "{found}");
}

/// Where there is no noise to speak of the answer is a refusal, not a panic.
#[test]
fn hardly_any_noise_beside_other_events_is_refused() {
    let gaussian = |z: f64, count: u64| counted(Event::Gaussian { noise_multiplier: noise(z) }, count);
    let fixed = |z: f64| Event::FixedSizeGaussian {
        noise_multiplier: noise(z),
        sample_rate: SampleRate::new(1e-3).unwrap(),
    };
    let cases = [
        vec![gaussian(0.001, 3), counted(pure(0.193), 44_630)],
        vec![counted(Event::KNorm { noise_multiplier: noise(0.001), dimension: 1 }, 1), gaussian(0.001, 1)],
        vec![counted(fixed(1.01e-7), 1_000_005)],
    ];
    for events in cases {
        let found = epsilon(&events, Adjacency::ReplaceOne, Delta::new(7e-10).unwrap());
        assert!(matches!(found, Err(Error::OutOfRange { .. })), "{events:?}: {found:?}");
    }
}

/// An event that reveals everything, beside millions that reveal nothing.
#[test]
fn nothing_is_left_of_delta_beside_an_event_without_noise() {
    let rate = SampleRate::new(0.92).unwrap();
    let events = [
        counted(Event::PoissonGaussian { noise_multiplier: noise(9.2e5), sample_rate: rate }, 93_030_949),
        counted(Event::Gaussian { noise_multiplier: noise(0.154) }, 88),
    ];
    let found = delta(&events, Adjacency::AddRemove, Epsilon::new(1e-5).unwrap()).unwrap();
    assert!(found.value.get() > 0.999, "{}", found.value);
}

/// Rényi divergences stay numbers where nearly all of the integral sits in one sampled draw.
#[test]
fn renyi_divergences_of_hardly_any_noise_are_numbers() {
    for z in [1e-3, 0.05] {
        for order in [1.5, 2.0, 17.5, 1000.0] {
            let event = Event::PoissonGaussian {
                noise_multiplier: noise(z),
                sample_rate: SampleRate::new(1e-3).unwrap(),
            };
            for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
                let found = renyi_divergence(&event, adjacency, Order::new(order).unwrap()).unwrap();
                assert!(!found.is_nan() && found > 1.0, "{z} {order} {adjacency}: {found}");
            }
            let mut accountant = RdpAccountant::new(Adjacency::AddRemove);
            accountant.compose(&event, Steps::ONE).unwrap();
        }
    }
}

/// A target above the largest ε that is ever printed is answered at that ε.
#[test]
fn calibration_aims_no_higher_than_the_largest_epsilon() {
    let found = calibrate_noise(
        Epsilon::new(500.0).unwrap(),
        Delta::new(1e-5).unwrap(),
        Adjacency::AddRemove,
        |noise_multiplier| vec![counted(Event::Gaussian { noise_multiplier }, 1)],
    )
    .unwrap();
    let reached = found.epsilon.value.get();
    assert!(reached <= 200.0 && reached > 199.9, "{reached}");
}

/// The Gaussian and the Laplace loss side by side, at a δ where rounding of the atom once made the
/// accountants disagree.
#[test]
fn laplace_beside_gaussian_agrees_with_renyi() {
    for k in 0..9 {
        let z = noise(0.5 + 0.05 * f64::from(k));
        let events = [
            counted(Event::Laplace { noise_multiplier: z, dimension: 1 }, 1),
            counted(Event::Gaussian { noise_multiplier: z }, 1),
        ];
        let found = epsilon(&events, Adjacency::ReplaceOne, Delta::new(1.46e-15).unwrap()).unwrap();
        assert!(found.value <= found.rdp.unwrap());
    }
}

/// Rare large losses beside events that have none: composed apart, and on one grid that is fine
/// enough for both.
#[test]
fn rare_losses_beside_pure_and_gaussian_events_agree_with_one_grid() {
    let rare =
        Event::PoissonGaussian { noise_multiplier: noise(0.25), sample_rate: SampleRate::new(2e-6).unwrap() };
    for other in [pure(2e-3), Event::Gaussian { noise_multiplier: noise(300.0) }] {
        let events = [counted(rare.clone(), 1_000), counted(other, 2_000)];
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            for epsilon in [0.4, 3.0] {
                let found = pld_delta(&events, adjacency, epsilon);
                let options = PldOptions { fixed_step: Some(5e-5), ..PldOptions::default() };
                let mut one_grid = PldAccountant::with_options(adjacency, options);
                one_grid.compose_all(&events).unwrap();
                let plain = one_grid.delta(Epsilon::new(epsilon).unwrap()).unwrap().get();
                assert!(
                    (found / plain - 1.0).abs() < 2e-2,
                    "{events:?} {adjacency} {epsilon}: {found:e} {plain:e}"
                );
            }
        }
    }
}

/// Values from mpmath at 40 digits: the closed form is never below the truth, and hardly above it. To the nearest it was up to
/// 2e-14 below.
#[test]
fn the_gaussian_closed_form_is_rounded_up() {
    for (mu, epsilon, exact) in [
        (0.1, 0.1, 0.008751768145809594),
        (0.2367, 1.0, 9.996190577823362e-7),
        (1.0, 1.0, 0.12693673750664395),
        (3.0, 5.0, 0.3193918799058881),
        (0.005, 0.02, 3.6085244752439406e-8),
        (5.0, 2.0, 0.9683489802905148),
        (0.05, 0.3, 9.08033996640092e-12),
        (2.0, 30.0, 9.66210668297518e-46),
        (0.5, 4.0, 2.706033802956907e-16),
        (0.009, 0.05, 2.168968869360539e-11),
        (8.0, 3.0, 0.999733567447864),
        (0.3, 1.9, 1.388749764408204e-11),
        (0.001, 0.004, 7.159562434938247e-9),
        (0.0101, 0.06, 2.3633189686504118e-12),
    ] {
        let (mu, at) = (Mu::new(mu).unwrap(), Epsilon::new(epsilon).unwrap());
        let found: f64 = convert::gaussian_delta(mu, at).get();
        assert!(found >= exact && found <= exact * (1.0 + 2e-11), "{mu} {epsilon}: {found} {exact}");
        // The inversions use it, so what they find is on the safe side too.
        let delta = Delta::new(exact).unwrap();
        assert!(convert::gaussian_epsilon(mu, delta).unwrap() >= at, "{mu} {epsilon}");
        assert!(convert::gaussian_mu(at, delta).unwrap() <= mu, "{mu} {epsilon}");
    }
}

/// Each of these searches took for ever: δ is not a number there, and so never above its target.
#[test]
fn an_epsilon_beyond_all_reason_is_refused_at_once() {
    let begun = std::time::Instant::now();
    for epsilon in [10_001.0, 1e9, 1e100, 1e300, 1e308, f64::MAX] {
        for delta in [1e-300, 1e-5, 0.5] {
            let (at, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
            assert!(matches!(convert::gaussian_mu(at, delta), Err(Error::OutOfRange { .. })), "{epsilon}");
            let budget = PrivacyBudget::Approximate { epsilon: at, delta };
            let plain = |noise_multiplier| vec![counted(Event::Gaussian { noise_multiplier }, 10)];
            let found = closed_form_noise(budget, Adjacency::ReplaceOne, Steps::new(10).unwrap(), plain);
            assert!(matches!(found, Err(Error::OutOfRange { .. })), "{epsilon}");
        }
    }
    for epsilon in [1e-300, 1e-9, 1.0, 9_999.0, 10_000.0] {
        for delta in [1e-300, 1e-5, 0.999] {
            let (at, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
            let mu = convert::gaussian_mu(at, delta).unwrap();
            assert!(convert::gaussian_delta(mu, at) <= delta, "{epsilon} {delta}");
        }
    }
    assert!(begun.elapsed().as_secs() < 10);
}

/// ε = 0.0035285976 by an independent contour integral (mpmath, 30 digits) of ten million replace-one Poisson steps.
#[test]
fn many_small_replacements_are_tight() {
    let event =
        Event::PoissonGaussian { noise_multiplier: noise(5.0), sample_rate: SampleRate::new(1e-6).unwrap() };
    let events = [counted(event, 10_000_000)];
    let found = epsilon(&events, Adjacency::ReplaceOne, Delta::new(1e-6).unwrap()).unwrap().value.get();
    let exact = 0.003528597641;
    assert!(found >= exact && found <= exact * (1.0 + 1e-3), "{found}");
}

/// Pure and zCDP sums are exact for decimal numbers and never below the truth for others.
#[test]
fn sums_are_rounded_up() {
    let zero = Delta::new(0.0).unwrap();
    for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        let mut tenths = PureAccountant::new(adjacency);
        (0..10).for_each(|_| tenths.compose(&pure(0.1), Steps::ONE).unwrap());
        assert_eq!(tenths.epsilon(zero).unwrap().get(), 1.0);
        // 1/3 three times is 1; a seventh, seven times, is 1, and no less in between.
        let (mut thirds, mut sevenths) = (PureAccountant::new(adjacency), PureAccountant::new(adjacency));
        let factor = adjacency.sensitivity_factor();
        let laplace = |scale: f64| Event::Laplace { noise_multiplier: noise(factor * scale), dimension: 1 };
        thirds.compose(&laplace(3.0), Steps::new(3).unwrap()).unwrap();
        assert_eq!(thirds.epsilon(zero).unwrap().get(), 1.0);
        (0..7).for_each(|_| sevenths.compose(&laplace(7.0), Steps::ONE).unwrap());
        let sum = sevenths.epsilon(zero).unwrap().get();
        assert!(sum > 1.0 && sum <= 1.0f64.next_up(), "{sum}");
        let mut rho = ZcdpAccountant::new(adjacency);
        for _ in 0..1000 {
            rho.compose(&Event::Zcdp { rho: Rho::new(0.001).unwrap() }, Steps::ONE).unwrap();
        }
        assert_eq!(rho.rho().unwrap().get(), 1.0);
        let gaussian = Event::Gaussian { noise_multiplier: noise(factor * 5.0) };
        rho.compose(&gaussian, Steps::new(50).unwrap()).unwrap();
        assert_eq!(rho.rho().unwrap().get(), 2.0);
    }
}

#[test]
fn too_many_different_events_are_refused_before_any_work() {
    let event = |k: usize| Event::PoissonGaussian {
        noise_multiplier: noise(2.0 + 1e-4 * k as f64),
        sample_rate: SampleRate::new(0.01).unwrap(),
    };
    let many: Vec<CountedEvent> = (0..20_000).map(|k| counted(event(k), 1)).collect();
    let delta = Delta::new(1e-6).unwrap();
    let too_many =
        |error: Error| matches!(error, Error::TooManyEvents { count: 20_000, most: MOST_DISTINCT_EVENTS });
    let adjacency = Adjacency::AddRemove;
    assert!(too_many(epsilon(&many, adjacency, delta).unwrap_err()));
    assert!(too_many(semidp_accounting::delta(&many, adjacency, Epsilon::new(1.0).unwrap()).unwrap_err()));
    let filter = GaussianFilter::new(Epsilon::new(1.0).unwrap(), delta).unwrap();
    assert!(too_many(filter.charge(&many, adjacency).unwrap_err()));
    // Equal events count once, and unsampled Gaussian ones not at all.
    let equal: Vec<CountedEvent> = (0..20_000).map(|k| counted(event(k % 2), 1)).collect();
    assert!(epsilon(&equal, adjacency, delta).is_ok());
    let gaussian = |k: usize| Event::Gaussian { noise_multiplier: noise(1000.0 + k as f64) };
    let gaussians: Vec<CountedEvent> = (0..20_000).map(|k| counted(gaussian(k), 1)).collect();
    let sum: f64 = (0..20_000).map(|k| (1000.0 + f64::from(k)).powi(-2)).sum();
    let found = epsilon(&gaussians, adjacency, delta).unwrap().value;
    let exact = convert::gaussian_epsilon(Mu::new(sum.sqrt()).unwrap(), delta).unwrap();
    assert!((found.get() / exact.get() - 1.0).abs() < 1e-9, "{found} {exact}");
}
