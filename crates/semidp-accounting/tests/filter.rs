//! The privacy filter: its figures, that its charges dominate, and that no strategy found overspends, while the rule
//! that it replaced is caught.

use semidp_accounting::accountant::{Accountant, PldAccountant};
use semidp_accounting::convert::gaussian_mu;
use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Epsilon, Event, FilterCharge, GaussianFilter, NoiseMultiplier, Rho,
    SampleRate, Steps, calibrate_noise, epsilon,
};

const ADJACENCY: Adjacency = Adjacency::AddRemove;

fn noise(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn at(epsilon: f64) -> Epsilon {
    Epsilon::new(epsilon).unwrap()
}

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

fn gaussian(multiplier: f64) -> Event {
    Event::Gaussian { noise_multiplier: noise(multiplier) }
}

fn poisson(multiplier: f64, rate: f64) -> Event {
    Event::PoissonGaussian {
        noise_multiplier: noise(multiplier),
        sample_rate: SampleRate::new(rate).unwrap(),
    }
}

fn times(event: Event, count: u64) -> Vec<CountedEvent> {
    vec![CountedEvent::new(event, Steps::new(count).unwrap())]
}

#[test]
fn figures_of_the_budget_of_one() {
    let whole = gaussian_mu(at(1.0), delta()).unwrap().get().powi(2);
    assert!((whole - 0.05603).abs() < 5e-6, "{whole}");
    let filter = GaussianFilter::new(at(1.0), delta()).unwrap();
    let FilterCharge { variance, slack } = filter.budget();
    assert!((variance / whole - 0.9899).abs() < 5e-5 && (slack / 1e-7 - 1.0).abs() < 1e-12);
    let spent = filter.budget().epsilon(delta()).unwrap().get();
    assert!((spent - 1.0).abs() < 1e-12, "{spent}");
    // Gaussian events cost their own curve and nothing else; they add.
    let charge = filter.charge(&times(gaussian(20.0), 3), ADJACENCY).unwrap().unwrap();
    assert!(
        (charge.variance / 0.0075 - 1.0).abs() < 1e-14 && charge.variance >= 0.0075 && charge.slack == 0.0
    );
    assert_eq!(FilterCharge::ZERO.epsilon(delta()).unwrap().get(), 0.0);
}

#[test]
fn training_costs_hardly_more_than_by_tight_composition() {
    let events = times(poisson(2.725, 0.0185), 5000);
    let tight = epsilon(&events, ADJACENCY, delta()).unwrap().value.get();
    assert!((tight - 2.2632).abs() < 1e-3, "{tight}");
    let filter = GaussianFilter::new(at(2.272), delta()).unwrap();
    let charge = filter.charge(&events, ADJACENCY).unwrap().expect("it fits");
    assert!(filter.covers(charge) && charge.variance > 0.97 * filter.budget().variance);
    assert!(GaussianFilter::new(at(tight), delta()).unwrap().charge(&events, ADJACENCY).unwrap().is_none());
}

/// Ten million steps that cost next to nothing are charged next to nothing.
#[test]
fn a_run_of_a_tiny_share_has_a_charge() {
    let events = times(poisson(5.0, 1e-6), 10_000_000);
    let filter = GaussianFilter::new(at(1.0), delta()).unwrap();
    let charge = filter.charge(&events, Adjacency::ReplaceOne).unwrap().expect("it fits");
    // The variance of the total loss is 1.60e-6; so many steps leave the curve coarse below 1e-4 of the budget.
    assert!(charge.variance > 1.6e-6 && charge.variance < 1e-4 * 0.0556, "{charge:?}");
}

#[test]
fn a_rare_large_loss_needs_a_large_curve() {
    // With probability 9e-7 > D this step reveals everything up to about 15 standard deviations.
    let step = times(poisson(0.05, 9e-7), 1);
    for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
        for budget in [1.0, 10.0, 100.0, 160.0] {
            let filter = GaussianFilter::new(at(budget), delta()).unwrap();
            assert_eq!(filter.charge(&step, adjacency).unwrap(), None, "{adjacency} {budget}");
        }
    }
    let filter = GaussianFilter::new(at(240.0), delta()).unwrap();
    let charge = filter.charge(&step, Adjacency::AddRemove).unwrap().unwrap();
    assert!(charge.variance.sqrt() > 15.0 && charge.variance.sqrt() < 20.0, "{charge:?}");
    // Rarer than D, nothing but D need pay for it.
    let filter = GaussianFilter::new(at(1.0), delta()).unwrap();
    assert!(filter.charge(&times(poisson(0.05, 2e-8), 1), ADJACENCY).unwrap().is_some());
}

/// Every kind of run has a charge or none, and the charge is an upper curve of one step's exact curve.
#[test]
fn charges_dominate_the_exact_curves_of_single_steps() {
    let pure = Event::Pure { epsilon: at(0.07) };
    let laplace = Event::Laplace { noise_multiplier: noise(15.0), dimension: 1 };
    for event in [poisson(1.0, 1e-3), poisson(4.0, 0.2), poisson(0.3, 1e-8), pure, laplace] {
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            for budget in [0.5, 1.0, 4.0] {
                let filter = GaussianFilter::new(at(budget), delta()).unwrap();
                let events = times(event.clone(), 1);
                let Some(charge) = filter.charge(&events, adjacency).unwrap() else { continue };
                assert!(filter.covers(charge));
                let mut exact = PldAccountant::new(adjacency);
                exact.compose_all(&events).unwrap();
                for k in 0..400 {
                    let t = 1e-4 * 1.03f64.powi(k);
                    let run = exact.delta(at(t)).unwrap().get();
                    let mu = semidp_accounting::Mu::new(charge.variance.sqrt()).unwrap();
                    let curve = semidp_accounting::convert::gaussian_delta(mu, at(t)).get();
                    let bound = charge.slack + (1.0 - charge.slack) * curve;
                    // Single steps have closed forms, which are exact to 1e-9.
                    assert!(run <= bound * (1.0 + 2e-9), "{event:?} {adjacency} {budget} {t}: {run} {bound}");
                }
            }
        }
    }
    let zcdp = times(Event::Zcdp { rho: Rho::new(0.004).unwrap() }, 1);
    let filter = GaussianFilter::new(at(1.0), delta()).unwrap();
    let charge = filter.charge(&zcdp, ADJACENCY).unwrap().unwrap();
    // At least the Gaussian mechanism of that rho.
    assert!(charge.variance > 0.008 && charge.variance < 0.03, "{charge:?}");
}

// Strategies. A step has an outcome y with a loss; its curve is defined for every real t.

fn sf(x: f64) -> f64 {
    0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

/// A mechanism of one step under add/remove, read in the direction of a removal or of an addition.
#[derive(Debug, Clone, Copy)]
enum Step {
    Gaussian { mu: f64 },
    Removal { q: f64, mu: f64 },
    Addition { q: f64, mu: f64 },
    Response { epsilon: f64 },
}

impl Step {
    fn event(self) -> Event {
        match self {
            Self::Gaussian { mu } => gaussian(1.0 / mu),
            Self::Removal { q, mu } | Self::Addition { q, mu } => poisson(1.0 / mu, q),
            Self::Response { epsilon } => Event::Pure { epsilon: at(epsilon) },
        }
    }

    /// sup over events of P − e^t Q, for every real t.
    fn curve(self, t: f64) -> f64 {
        match self {
            Self::Gaussian { mu } => sf(t / mu - 0.5 * mu) - t.exp() * sf(t / mu + 0.5 * mu),
            Self::Removal { q, mu } => {
                let ratio = (t.exp_m1() + q) / q;
                if ratio <= 0.0 {
                    return -t.exp_m1();
                }
                let y = 0.5 * mu + ratio.ln() / mu;
                (1.0 - q) * sf(y) + q * sf(y - mu) - t.exp() * sf(y)
            }
            // 1 − e^t + e^t·δ_removal(−t).
            Self::Addition { q, mu } => -t.exp_m1() + t.exp() * Self::Removal { q, mu }.curve(-t),
            Self::Response { epsilon } => {
                let p = 1.0 / (1.0 + (-epsilon).exp());
                (p - t.exp() * (1.0 - p)).max(0.0) + (1.0 - p - t.exp() * p).max(0.0)
            }
        }
    }

    /// (probability under P, loss) of outcomes, on a fine grid.
    fn outcomes(self) -> Vec<(f64, f64)> {
        let h = 0.02;
        let range = |mu: f64| (0..).map(|k| -9.0 + h * f64::from(k)).take_while(move |y| *y < 9.0 + mu);
        let loss = |q: f64, mu: f64, y: f64| (q * (mu * (y - 0.5 * mu)).exp_m1()).ln_1p();
        match self {
            Self::Gaussian { mu } => range(mu).map(|y| (h * density(y - mu), mu * (y - 0.5 * mu))).collect(),
            Self::Removal { q, mu } => range(mu)
                .map(|y| (h * ((1.0 - q) * density(y) + q * density(y - mu)), loss(q, mu, y)))
                .collect(),
            Self::Addition { q, mu } => range(mu).map(|y| (h * density(y), -loss(q, mu, y))).collect(),
            Self::Response { epsilon } => {
                let p = 1.0 / (1.0 + (-epsilon).exp());
                vec![(p, epsilon), (1.0 - p, -epsilon)]
            }
        }
    }
}

/// What a strategy may take, besides Gaussian noise that uses up what is left.
fn menu() -> Vec<Step> {
    let shares = [0.02, 0.1, 0.3, 0.6, 0.9];
    let v = GaussianFilter::new(at(1.0), delta()).unwrap().budget().variance;
    let mut menu: Vec<Step> = shares.iter().map(|share| Step::Gaussian { mu: (share * v).sqrt() }).collect();
    for (q, mu) in [
        (9e-7, 20.0),
        (9.9e-8, 20.0),
        (4e-8, 8.0),
        (1e-5, 3.0),
        (1e-3, 1.0),
        (0.01, 0.7),
        (0.1, 0.3),
        (0.5, 0.3),
    ] {
        menu.extend([Step::Removal { q, mu }, Step::Addition { q, mu }]);
    }
    menu.extend([0.01, 0.05, 0.1, 0.15].map(|epsilon| Step::Response { epsilon }));
    menu
}

/// The steps with their charges.
fn priced(filter: &GaussianFilter) -> Vec<(Step, FilterCharge)> {
    let price = |step: Step| Some((step, filter.charge(&times(step.event(), 1), ADJACENCY).unwrap()?));
    menu().into_iter().filter_map(price).collect()
}

/// The largest δ(1) that any choice of the last step reaches, given what is left and the loss so far.
fn last_step(
    filter: &GaussianFilter,
    priced: &[(Step, FilterCharge)],
    spent: FilterCharge,
    loss: f64,
) -> f64 {
    let t = 1.0 - loss;
    let left = (filter.budget().variance - spent.variance).max(0.0);
    let rest = Step::Gaussian { mu: left.sqrt().max(1e-9) }.curve(t);
    let allowed = priced.iter().filter(|(_, charge)| filter.covers(spent.plus(*charge)));
    allowed.map(|(step, _)| step.curve(t)).fold(rest.max(-t.exp_m1()).max(0.0), f64::max)
}

#[test]
fn no_strategy_of_two_or_three_steps_overspends() {
    let filter = GaussianFilter::new(at(1.0), delta()).unwrap();
    let priced = priced(&filter);
    assert!(priced.len() >= 15, "{}", priced.len());
    let mut worst = 0.0f64;
    for (first, charge) in &priced {
        // Every outcome chooses the best of all last steps that are still granted.
        let two: f64 =
            first.outcomes().iter().map(|(p, loss)| p * last_step(&filter, &priced, *charge, *loss)).sum();
        assert!(two <= 1e-6, "{first:?}: {two}");
        worst = worst.max(two);
    }
    // Three steps: the last two chosen by outcomes; coarser in the first.
    for (first, charge) in priced.iter().filter(|(step, _)| !matches!(step, Step::Addition { .. })) {
        let outcomes = first.outcomes();
        let width = outcomes.len().div_ceil(24);
        let mut three = 0.0;
        for group in outcomes.chunks(width) {
            // All outcomes of a group make the same choice, the best one for the group.
            let total = |second: &Step, spent: FilterCharge| -> f64 {
                let second = second.outcomes();
                let step = second.len().div_ceil(120);
                let value = |loss: f64| -> f64 {
                    second
                        .chunks(step)
                        .map(|chunk| {
                            let p: f64 = chunk.iter().map(|(p, _)| p).sum();
                            let mean = chunk.iter().map(|(p, loss)| p * loss).sum::<f64>() / p.max(1e-300);
                            p * last_step(&filter, &priced, spent, loss + mean)
                        })
                        .sum()
                };
                let p: f64 = group.iter().map(|(p, _)| p).sum();
                let mean = group.iter().map(|(p, loss)| p * loss).sum::<f64>() / p.max(1e-300);
                p * value(mean)
            };
            let choices = priced.iter().filter(|(_, second)| filter.covers(charge.plus(*second)));
            three += choices.map(|(second, more)| total(second, charge.plus(*more))).fold(0.0, f64::max);
        }
        assert!(three <= 1e-6, "{first:?}: {three}");
        worst = worst.max(three);
    }
    // The search does reach what Gaussian noise alone spends.
    assert!(worst > 8.9e-7, "{worst}");
}

/// The same search over two steps finds that the rule of old, tight composition of what was run so far, overspends.
#[test]
fn the_search_catches_tight_composition_as_a_filter() {
    // Noise 14 under replace-one.
    let first = Step::Gaussian { mu: 2.0 / 14.0 };
    let left = calibrate_noise(at(1.0), delta(), ADJACENCY, |noise_multiplier| {
        let rest = CountedEvent::new(Event::Gaussian { noise_multiplier }, Steps::ONE);
        [times(first.event(), 1), vec![rest]].concat()
    });
    let rest = Step::Gaussian { mu: 1.0 / left.unwrap().value.get() };
    let rare = Step::Removal { q: 9e-7, mu: 20.0 };
    for second in [rest, rare] {
        let both = [times(first.event(), 1), times(second.event(), 1)].concat();
        assert!(epsilon(&both, ADJACENCY, delta()).unwrap().value.get() <= 1.0, "{second:?}");
    }
    let spent: f64 =
        first.outcomes().iter().map(|(p, loss)| p * rest.curve(1.0 - loss).max(rare.curve(1.0 - loss))).sum();
    assert!((spent / 1.78e-6 - 1.0).abs() < 0.02, "{spent}");
    // Each choice alone is within the budget.
    for second in [rest, rare] {
        let alone: f64 = first.outcomes().iter().map(|(p, loss)| p * second.curve(1.0 - loss)).sum();
        assert!(alone <= 1.0001e-6, "{second:?}: {alone}");
    }
    // The filter grants the first and refuses the rare step.
    let filter = GaussianFilter::new(at(1.0), delta()).unwrap();
    assert!(filter.charge(&times(first.event(), 1), ADJACENCY).unwrap().is_some());
    assert_eq!(filter.charge(&times(rare.event(), 1), ADJACENCY).unwrap(), None);
}

/// With little noise a sampled unit shows, however large ε is: δ(t) is at least P(x > ½) − e^t·Q(x > ½) of one step, where Q(x > ½) is at
/// most that of N(0, z²). Curves that reach from 0 to losses of many hundreds must not lose this.
#[test]
fn weak_noise_is_never_cheap() {
    let beyond = |z: f64| 0.5 * libm::erfc(0.5 / z / std::f64::consts::SQRT_2);
    let rate = 0.02;
    for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        for (z, count) in [(0.0351, 5), (0.05, 5), (0.05, 20)] {
            let events = times(poisson(z, rate), count);
            let least = |t: f64| rate * (1.0 - beyond(z)) - t.exp() * beyond(z);
            let mut pld = PldAccountant::new(adjacency);
            pld.compose_all(&events).unwrap();
            let found = pld.delta(at(1.0)).unwrap().get();
            assert!(found >= least(1.0), "{adjacency} {z} {count}: {found} {}", least(1.0));
            for budget in [1.0, 1.89] {
                let filter = GaussianFilter::new(at(budget), delta()).unwrap();
                let charge = filter.charge(&events, adjacency).unwrap();
                assert!(charge.is_none(), "{adjacency} {z} {count} {budget}: {charge:?}");
            }
        }
    }
}
