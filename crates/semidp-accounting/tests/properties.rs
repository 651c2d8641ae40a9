//! Properties that must hold for every parameter: closed forms in the limits, domination, order,
//! refusal, and values computed elsewhere for settings where accountants have failed.

use proptest::prelude::*;
use semidp_accounting::accountant::*;
use semidp_accounting::convert::*;
use semidp_accounting::*;

fn noise(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn rate(value: f64) -> SampleRate {
    SampleRate::new(value).unwrap()
}

fn poisson(z: f64, q: f64) -> Event {
    Event::PoissonGaussian { noise_multiplier: noise(z), sample_rate: rate(q) }
}

fn fixed_size(z: f64, q: f64) -> Event {
    Event::FixedSizeGaussian { noise_multiplier: noise(z), sample_rate: rate(q) }
}

fn pld(adjacency: Adjacency, events: &[(Event, u64)]) -> PldAccountant {
    let mut accountant = PldAccountant::new(adjacency);
    for (event, count) in events {
        accountant.compose(event, Steps::new(*count).unwrap()).unwrap();
    }
    accountant
}

fn delta_at(accountant: &dyn Accountant, epsilon: f64) -> f64 {
    accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap().get()
}

fn epsilon_at(accountant: &dyn Accountant, delta: f64) -> f64 {
    accountant.epsilon(Delta::new(delta).unwrap()).unwrap().get()
}

#[track_caller]
fn within(got: f64, want: f64, relative: f64) {
    assert!(
        got >= want * (1.0 - 1e-9) && got <= want * (1.0 + relative),
        "got {got}, want {want} from above"
    );
}

/// Unsampled, replace-one needs exactly twice the noise of add/remove.
#[test]
fn replacing_moves_a_sum_twice_as_far() {
    let calibrate = |adjacency| {
        let (epsilon, delta) = (Epsilon::new(1.5).unwrap(), Delta::new(1e-6).unwrap());
        calibrate_noise(epsilon, delta, adjacency, |noise_multiplier| {
            vec![CountedEvent::new(Event::Gaussian { noise_multiplier }, Steps::new(7).unwrap())]
        })
        .unwrap()
        .value
        .get()
    };
    let (replace, add_remove) = (calibrate(Adjacency::ReplaceOne), calibrate(Adjacency::AddRemove));
    // Both are within 2e-5 of the target, from above.
    assert!((replace / add_remove - 2.0).abs() < 1e-4, "{replace} {add_remove}");
    let exact = gaussian_sigma(
        Sensitivity::new(7f64.sqrt()).unwrap(),
        Epsilon::new(1.5).unwrap(),
        Delta::new(1e-6).unwrap(),
    )
    .unwrap();
    within(add_remove, exact, 1e-4);
}

/// Settings on which windows and grids of fixed size fail; values from the specification, which
/// prints two digits.
#[test]
fn known_traps() {
    let trap = delta_at(&pld(Adjacency::AddRemove, &[(poisson(0.4, 0.01), 10)]), 6.0);
    assert!((trap / 7.4e-5 - 1.0).abs() < 0.02, "{trap}");
    let trap = delta_at(&pld(Adjacency::AddRemove, &[(poisson(1.0, 1e-5), 10_000_000)]), 0.2);
    assert!((trap / 7e-9 - 1.0).abs() < 0.1, "{trap}");
}

/// The grid, given a Gaussian that it could have treated in closed form.
#[test]
fn the_grid_reaches_the_gaussian_closed_form() {
    let nothing = Event::Pure { epsilon: Epsilon::new(1e-13).unwrap() };
    for (z, steps) in [(10.0, 100), (3.0, 1), (300.0, 1000)] {
        let gaussian = Event::Gaussian { noise_multiplier: noise(z) };
        let mixed = pld(Adjacency::AddRemove, &[(gaussian, steps), (nothing.clone(), 1)]);
        let mu = (steps as f64).sqrt() / z;
        for scale in [0.5, 2.0, 5.0, 7.5] {
            let epsilon = scale * mu;
            let want = gaussian_delta(Mu::new(mu).unwrap(), Epsilon::new(epsilon).unwrap()).get();
            within(delta_at(&mixed, epsilon), want, 1e-3);
            within(epsilon_at(&mixed, want), epsilon, 1e-3);
        }
    }
}

/// Sampling almost everybody is not sampling.
#[test]
fn sampling_rates_near_one_reach_the_unsampled_limit() {
    for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
        let sampled = pld(adjacency, &[(poisson(20.0, 1.0 - 1e-9), 50)]);
        let mu = adjacency.sensitivity_factor() * 50f64.sqrt() / 20.0;
        for epsilon in [0.5, 2.0] {
            let want = gaussian_delta(Mu::new(mu).unwrap(), Epsilon::new(epsilon).unwrap()).get();
            let got = delta_at(&sampled, epsilon);
            assert!((got / want - 1.0).abs() < 1e-3, "{adjacency} {epsilon}: {got} {want}");
        }
    }
}

/// k-fold randomised response has an exact δ: a binomial sum (Kairouz, Oh, Viswanath 2015).
#[test]
fn randomised_response_composes_exactly() {
    for (each, count) in [(0.1, 40u64), (1.0, 3), (0.013, 500)] {
        let event = Event::Pure { epsilon: Epsilon::new(each).unwrap() };
        let accountant = pld(Adjacency::ReplaceOne, &[(event, count)]);
        let n = count as f64;
        for epsilon in [0.0, 0.31 * each * n, 0.6 * each * n] {
            let mut log_binomial = 0.0;
            let mut want = 0.0;
            for k in 0..=count {
                let k = k as f64;
                let loss = (n - 2.0 * k) * each;
                let log_p = log_binomial - k * each - n * (-each).exp().ln_1p();
                want += log_p.exp() * (-(epsilon - loss).exp_m1()).max(0.0);
                log_binomial += ((n - k) / (k + 1.0)).ln();
            }
            if want > 1e-15 {
                within(delta_at(&accountant, epsilon), want, 2e-3);
            }
        }
    }
}

/// Two Laplace releases, by direct integration of the product.
#[test]
fn laplace_composes_as_its_convolution() {
    let event = Event::Laplace { noise_multiplier: noise(1.25), dimension: 1 };
    let accountant = pld(Adjacency::AddRemove, &[(event, 2)]);
    let shift = 1.0 / 1.25;
    let loss = |y: f64| (y - shift).abs() - y.abs();
    let mut want = 0.0;
    let (step, epsilon) = (0.005, 0.6);
    for i in -4000..4000 {
        for j in -4000..4000 {
            let (a, b) = ((f64::from(i) + 0.5) * step, (f64::from(j) + 0.5) * step);
            if a.abs() < 9.0 && b.abs() < 9.0 {
                let total = loss(a) + loss(b);
                if total > epsilon {
                    want += 0.25 * (-a.abs() - b.abs()).exp() * -(epsilon - total).exp_m1() * step * step;
                }
            }
        }
    }
    // e^{−9} of the mass lies outside the square, and the rule errs with the square of the step.
    let got = delta_at(&accountant, epsilon);
    assert!((got / want - 1.0).abs() < 2e-3, "{got} {want}");
}

#[test]
fn directions_adjacencies_and_samplings_are_ordered() {
    for (z, q, steps) in [(1.0, 0.01, 1000), (2.744, 0.0185, 5000), (25.0, 0.33, 5000), (0.6, 0.001, 50)] {
        let add_remove = pld(Adjacency::AddRemove, &[(poisson(z, q), steps)]);
        let epsilon = epsilon_at(&add_remove, 1e-6);
        let at = Epsilon::new(epsilon).unwrap();
        let remove = add_remove.directional_delta(at, false).unwrap().get();
        let add = add_remove.directional_delta(at, true).unwrap().get();
        // The guarantee is the larger of the two directions.
        let both = delta_at(&add_remove, epsilon);
        assert!((both - remove.max(add)).abs() <= 1e-12 * both);
        // Replacing is worse than removing; fixed-size sampling's curve is worse than its lower bound.
        assert!(delta_at(&pld(Adjacency::ReplaceOne, &[(poisson(z, q), steps)]), epsilon) > remove);
        let upper = delta_at(&pld(Adjacency::ReplaceOne, &[(fixed_size(2.0 * z, q), steps)]), epsilon);
        assert!(upper >= remove * (1.0 - 1e-3), "{upper} {remove}");
    }
}

#[test]
fn composition_does_not_depend_on_order_or_grouping() {
    let (a, b) = (poisson(1.1, 0.02), Event::Gaussian { noise_multiplier: noise(12.0) });
    let once = epsilon_at(&pld(Adjacency::ReplaceOne, &[(a.clone(), 300), (b.clone(), 6)]), 1e-6);
    let split = pld(Adjacency::ReplaceOne, &[(b.clone(), 1), (a.clone(), 100), (b, 5), (a, 200)]);
    assert!((epsilon_at(&split, 1e-6) / once - 1.0).abs() < 1e-6);
}

/// One pass over disjoint blocks costs one Gaussian release, whatever their number.
#[test]
fn one_pass_costs_one_release() {
    for blocks in [1, 54, 100_000] {
        let event = Event::OnePassGaussian { noise_multiplier: noise(4.0), blocks };
        let got = epsilon_at(&pld(Adjacency::ReplaceOne, &[(event, 1)]), 1e-5);
        let want = gaussian_epsilon(Mu::new(0.5).unwrap(), Delta::new(1e-5).unwrap()).unwrap().get();
        assert_eq!(got, want);
    }
}

#[test]
fn accountants_refuse_what_they_do_not_know() {
    let refuses = |accountant: &mut dyn Accountant, event: Event| {
        matches!(accountant.compose(&event, Steps::ONE), Err(Error::UnknownEvent { .. }))
    };
    let replace = Adjacency::ReplaceOne;
    let zcdp = Event::Zcdp { rho: Rho::new(0.1).unwrap() };
    assert!(refuses(&mut PureAccountant::new(replace), Event::Gaussian { noise_multiplier: noise(1.0) }));
    assert!(refuses(&mut PureAccountant::new(replace), zcdp.clone()));
    assert!(refuses(&mut ZcdpAccountant::new(replace), poisson(1.0, 0.1)));
    assert!(refuses(&mut ZcdpAccountant::new(replace), fixed_size(1.0, 0.1)));
    assert!(refuses(&mut PldAccountant::new(replace), zcdp));
    // Fixed-size sampling has no guarantee where the number of rows is secret.
    let secret: [Box<dyn Accountant>; 3] = [
        Box::new(PldAccountant::new(Adjacency::AddRemove)),
        Box::new(RdpAccountant::new(Adjacency::AddRemove)),
        Box::new(ZcdpAccountant::new(Adjacency::AddRemove)),
    ];
    for mut accountant in secret {
        let answer = accountant.compose(&fixed_size(1.0, 0.1), Steps::ONE);
        assert!(matches!(answer, Err(Error::NoGuarantee { .. })), "{}", accountant.name());
    }
}

/// The exact Gaussian conversion of ρ is used only if every event is Gaussian.
#[test]
fn generic_zcdp_is_not_treated_as_gaussian() {
    let delta = Delta::new(1e-5).unwrap();
    let mut accountant = ZcdpAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::Gaussian { noise_multiplier: noise(1.0) }, Steps::ONE).unwrap();
    assert!((accountant.epsilon(delta).unwrap().get() - 4.3772).abs() < 1e-4);
    let mut accountant = ZcdpAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::Zcdp { rho: Rho::new(0.5).unwrap() }, Steps::ONE).unwrap();
    assert!((accountant.epsilon(delta).unwrap().get() - 4.7284).abs() < 1e-4);
}

/// Every accountant that knows an event bounds the exact answer from above.
#[test]
fn looser_accountants_are_looser() {
    let delta = Delta::new(1e-6).unwrap();
    for event in [
        Event::Gaussian { noise_multiplier: noise(3.0) },
        Event::Laplace { noise_multiplier: noise(9.0), dimension: 1 },
        Event::Laplace { noise_multiplier: noise(9.0), dimension: 5 },
        Event::KNorm { noise_multiplier: noise(9.0), dimension: 5 },
        poisson(1.0, 0.02),
        fixed_size(3.0, 0.02),
    ] {
        for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
            if event.check(adjacency).is_err() {
                continue;
            }
            let tight = epsilon_at(&pld(adjacency, &[(event.clone(), 12)]), delta.get());
            let looser: [Box<dyn Accountant>; 3] = [
                Box::new(RdpAccountant::new(adjacency)),
                Box::new(ZcdpAccountant::new(adjacency)),
                Box::new(PureAccountant::new(adjacency)),
            ];
            for mut accountant in looser {
                if accountant.compose(&event, Steps::new(12).unwrap()).is_ok() {
                    let loose = accountant.epsilon(delta).unwrap().get();
                    assert!(
                        loose >= tight * (1.0 - 1e-3),
                        "{event:?} {adjacency} {}: {loose} {tight}",
                        accountant.name()
                    );
                }
            }
        }
    }
}

#[test]
fn steps_are_calibrated_to_the_last_one() {
    for (z, q, epsilon) in [(1.0, 0.01, 2.0), (2.0, 0.001, 0.5), (5.0, 1.0, 3.0), (1.2, 0.5, 9.0)] {
        let (epsilon, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(1e-5).unwrap());
        let events = |steps| vec![CountedEvent::new(poisson(z, q), steps)];
        let found = calibrate_steps(epsilon, delta, Adjacency::AddRemove, events).unwrap();
        assert!(found.epsilon.value.get() <= epsilon.get());
        let next = Steps::new(found.value.get() + 1).unwrap();
        let beyond = semidp_accounting::epsilon(&events(next), Adjacency::AddRemove, delta).unwrap();
        assert!(beyond.value.get() > epsilon.get(), "{z} {q}: {} steps fit as well", next.get());
    }
    let none = calibrate_steps(
        Epsilon::new(0.1).unwrap(),
        Delta::new(1e-5).unwrap(),
        Adjacency::AddRemove,
        |steps| vec![CountedEvent::new(poisson(0.5, 0.5), steps)],
    );
    assert!(matches!(none, Err(Error::Unreachable { quantity: "number of steps", .. })), "{none:?}");
}

/// Pure and Gaussian events together: the pure loss may fall on a grid point or beside it.
#[test]
fn pure_events_compose_with_gaussian_ones() {
    for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        for i in 0..40 {
            let z = 4.0 + 0.173 * f64::from(i);
            let pure = Event::Pure { epsilon: Epsilon::new(0.1 + 0.003 * f64::from(i)).unwrap() };
            let laplace = Event::Laplace { noise_multiplier: noise(z), dimension: 1 };
            let gaussian = Event::Gaussian { noise_multiplier: noise(z) };
            for events in [[(gaussian.clone(), 2), (pure, 1)], [(laplace, 1), (gaussian, 1)]] {
                let counted: Vec<CountedEvent> = events
                    .iter()
                    .map(|(event, count)| CountedEvent::new(event.clone(), Steps::new(*count).unwrap()))
                    .collect();
                let both =
                    semidp_accounting::epsilon(&counted, adjacency, Delta::new(1e-6).unwrap()).unwrap();
                // The Gaussian alone costs less, and with the whole pure ε on top it costs more.
                let mu = (events.iter().filter(|(e, _)| matches!(e, Event::Gaussian { .. })))
                    .map(|(_, count)| (*count as f64).sqrt() * adjacency.sensitivity_factor() / z)
                    .sum::<f64>();
                let alone = gaussian_epsilon(Mu::new(mu).unwrap(), Delta::new(1e-6).unwrap()).unwrap().get();
                let mut rest = PureAccountant::new(adjacency);
                let total: f64 = counted
                    .iter()
                    .filter_map(|one| {
                        rest.compose(&one.event, one.count).ok()?;
                        Some(())
                    })
                    .count() as f64;
                assert!(total == 1.0);
                let most = alone + rest.epsilon(Delta::new(0.0).unwrap()).unwrap().get();
                let got = both.value.get();
                assert!(got >= alone && got <= most * (1.0 + 1e-4), "{adjacency} {z}: {alone} {got} {most}");
            }
        }
    }
}

/// Without noise to speak of, no ε that is answered has a small δ.
#[test]
fn hardly_any_noise_never_looks_private() {
    for z in [1e-9, 1e-4, 1e-3] {
        let accountant = pld(Adjacency::AddRemove, &[(Event::Gaussian { noise_multiplier: noise(z) }, 1)]);
        for epsilon in [1.0, 1e3, 1e6, 1e12] {
            match accountant.delta(Epsilon::new(epsilon).unwrap()) {
                Ok(delta) => assert!(delta.get() > 0.99, "{z} {epsilon}: {delta}"),
                Err(error) => assert!(matches!(error, Error::OutOfRange { .. })),
            }
        }
    }
}

/// With δ above the chance of being sampled at all, hardly any noise is needed.
#[test]
fn calibration_returns_little_noise_where_little_is_needed() {
    let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(0.01).unwrap());
    let found = calibrate_noise(epsilon, delta, Adjacency::AddRemove, |noise_multiplier| {
        let event = Event::PoissonGaussian { noise_multiplier, sample_rate: rate(1e-3) };
        vec![CountedEvent::new(event, Steps::ONE)]
    })
    .unwrap();
    assert!(found.value.get() < 0.06, "{}", found.value);
}

#[test]
fn calibration_says_at_once_that_another_event_costs_too_much() {
    let (epsilon, delta) = (Epsilon::new(0.01).unwrap(), Delta::new(1e-8).unwrap());
    let pure = Event::Pure { epsilon: Epsilon::new(0.25).unwrap() };
    let found = calibrate_noise(epsilon, delta, Adjacency::ReplaceOne, |noise_multiplier| {
        [Event::Gaussian { noise_multiplier }, pure.clone()]
            .map(|e| CountedEvent::new(e, Steps::ONE))
            .to_vec()
    });
    assert!(matches!(found, Err(Error::Unreachable { .. })), "{found:?}");
}

#[test]
fn pure_noise_is_calibrated_in_closed_form() {
    for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        let found = calibrate_noise(
            Epsilon::new(0.7).unwrap(),
            Delta::new(0.0).unwrap(),
            adjacency,
            |noise_multiplier| {
                vec![CountedEvent::new(
                    Event::KNorm { noise_multiplier, dimension: 9 },
                    Steps::new(3).unwrap(),
                )]
            },
        )
        .unwrap();
        within(found.value.get(), adjacency.sensitivity_factor() * 3.0 / 0.7, 1e-4);
        assert!(found.epsilon.value.get() <= 0.7);
    }
}

proptest! {
    #[test]
    fn gaussian_conversions_are_inverse(log_mu in -6.0f64..3.0, log_delta in -34.0f64..-2.4) {
        let (mu, delta) = (Mu::new(log_mu.exp()).unwrap(), Delta::new(log_delta.exp()).unwrap());
        let epsilon = gaussian_epsilon(mu, delta).unwrap();
        // From above: δ(ε) at most δ.
        prop_assert!(gaussian_delta(mu, epsilon) <= delta);
        if epsilon.get() > 0.0 {
            prop_assert!(gaussian_delta(mu, epsilon).get() >= delta.get() * (1.0 - 1e-9));
            // μ is recovered, never exceeded by more than the rounding of δ.
            let back = gaussian_mu(epsilon, delta).unwrap().get();
            prop_assert!((back / mu.get() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn zcdp_conversions_are_ordered(log_rho in -12.0f64..4.0, log_delta in -34.0f64..-2.4) {
        let (rho, delta) = (Rho::new(log_rho.exp()).unwrap(), Delta::new(log_delta.exp()).unwrap());
        let exact = ZcdpConversion::Gaussian.epsilon(rho, delta).unwrap().get();
        let best = ZcdpConversion::Optimal.epsilon(rho, delta).unwrap();
        let simple = ZcdpConversion::BunSteinke.epsilon(rho, delta).unwrap().get();
        prop_assert!(exact <= best.get() * (1.0 + 1e-12) && best.get() <= simple * (1.0 + 1e-12));
        if best.get() > 0.0 {
            let back = zcdp_to_delta(rho, best).get();
            prop_assert!((back / delta.get() - 1.0).abs() < 1e-6, "{} {}", back, delta);
        }
    }

    #[test]
    fn reading_events_never_panics(text in "\\PC{0,80}") {
        let _ = parse_events(&text);
        let _ = Certificate::from_json(&text);
    }

    #[test]
    fn renyi_divergences_grow_with_the_order(q in 1e-5f64..1.0, z in 0.3f64..30.0, order in 1.05f64..60.0) {
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let at = |order: f64| renyi_divergence(&poisson(z, q), adjacency, Order::new(order).unwrap()).unwrap();
            let (low, high) = (at(order), at(order * 1.1));
            prop_assert!(low > 0.0 && low <= high * (1.0 + 1e-12), "{low} {high}");
            // Never above the unsampled mechanism.
            let whole = 0.5 * order * (adjacency.sensitivity_factor() / z).powi(2);
            prop_assert!(low <= whole * (1.0 + 1e-9), "{low} {whole}");
        }
    }
}
