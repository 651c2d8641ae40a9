//! What a ledger grants, and what it refuses.

mod common;

use common::*;
use semidp_accounting::{Adjacency, CountedEvent, Delta, Epsilon, PrivacyBudget, gaussian_noise};
use semidp_core::{Ledger, RunId, calibration_delta};
use semidp_ledger::{Error, LedgerFile};

fn amount(budget: PrivacyBudget) -> f64 {
    match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => epsilon.get(),
        PrivacyBudget::Zcdp { rho, .. } => rho.get(),
    }
}

#[test]
fn what_is_spent_is_what_the_accountants_say_of_all_events() {
    let path = place("grants_composition");
    let mut ledger = ledger(&path, approximate(3.0)).describe("some of everything");
    let runs =
        [gaussian(10.0), poisson(2.0, 0.01, 500), gaussian(12.0), laplace(30.0), poisson(3.0, 0.02, 70)];
    for (position, events) in runs.iter().enumerate() {
        debit(&mut ledger, events).unwrap();
        let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
        let all: Vec<CountedEvent> = runs[..=position].concat();
        let expected = semidp_accounting::epsilon(&all, ADJACENCY, calibration_delta(delta())).unwrap().value;
        assert_eq!(amount(account.spent), expected.get());
        assert_eq!(account.debits.len(), position + 1);
        let last = account.debits.last().unwrap();
        // The budget is entry 1.
        assert_eq!((last.sequence, &*last.description), (position as u64 + 2, "some of everything"));
        assert_eq!((&last.events, last.delta, last.adjacency), (events, delta(), ADJACENCY));
        assert_eq!(last.rho.is_some(), !format!("{events:?}").contains("Poisson"));
        assert!(last.time.ends_with('Z') && last.time.len() == 20, "{}", last.time);
    }
    // Of the same rows under another name nothing is known.
    let other = LedgerFile::init(&path, "others", approximate(1.0), Adjacency::AddRemove).unwrap();
    let accounts = other.datasets().unwrap();
    assert_eq!(accounts.len(), 2);
    assert_eq!(amount(accounts[1].spent), 0.0);
    assert_eq!(accounts[1].remaining, approximate(1.0));
}

#[test]
fn runs_that_fit_are_granted_and_the_next_is_not() {
    let path = place("grants_limit");
    let budget = approximate(1.0);
    // Three of these cost what one with noise / sqrt(3) does: exactly the budget, but for rounding.
    let whole =
        PrivacyBudget::Approximate { epsilon: Epsilon::new(1.0).unwrap(), delta: calibration_delta(delta()) };
    let one = gaussian_noise(whole, ADJACENCY).unwrap().get();
    let third = gaussian(one * 3f64.sqrt() * (1.0 + 1e-9));
    let mut ledger = ledger(&path, budget);
    for _ in 0..3 {
        debit(&mut ledger, &third).unwrap();
    }
    let refused = reason(debit(&mut ledger, &third));
    assert!(
        refused.contains("`rows` has a budget of epsilon 1 at delta 0.000001 (replace-one)"),
        "{refused}"
    );
    assert!(refused.contains("this run and the 3 recorded before would cost epsilon 1.1"), "{refused}");
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!(account.debits.len(), 3);
    // Something much smaller may still fit, or not; nothing that is stated as left may be refused.
    assert!(amount(account.spent) <= 1.0 && amount(account.remaining) < 0.01);
}

#[test]
fn all_that_is_left_can_be_spent() {
    for first in [gaussian(20.0), poisson(3.0, 0.01, 300), [laplace(25.0), gaussian(30.0)].concat()] {
        let path = place("grants_left");
        let mut ledger = ledger(&path, approximate(1.0));
        debit(&mut ledger, &first).unwrap();
        let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
        let PrivacyBudget::Approximate { epsilon, delta } = account.remaining else { panic!() };
        assert!(epsilon.get() > 0.3 && epsilon.get() < 1.0, "{epsilon}");
        let aim = |factor: f64| PrivacyBudget::Approximate {
            epsilon: Epsilon::new(epsilon.get() * factor).unwrap(),
            delta: calibration_delta(delta),
        };
        let noise = |factor| gaussian_noise(aim(factor), ADJACENCY).unwrap().get();
        reason(debit(&mut ledger, &gaussian(noise(1.002))));
        debit(&mut ledger, &gaussian(noise(1.0))).unwrap();
    }
}

#[test]
fn a_run_calibrated_to_the_whole_budget_fits() {
    for epsilon in [0.1, 1.0, 5.0] {
        let path = place("grants_whole");
        let mut ledger = ledger(&path, approximate(epsilon));
        let whole = PrivacyBudget::Approximate {
            epsilon: Epsilon::new(epsilon).unwrap(),
            delta: calibration_delta(delta()),
        };
        debit(&mut ledger, &gaussian(gaussian_noise(whole, ADJACENCY).unwrap().get())).unwrap();
        let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
        assert!(amount(account.spent) <= epsilon);
        // Pure noise at the same epsilon fits too, in a ledger of its own.
        let path = place("grants_whole_pure");
        let mut ledger = common::ledger(&path, approximate(epsilon));
        debit(&mut ledger, &laplace(2.0 / epsilon)).unwrap();
        // And in ten pieces, though a tenth is no binary number.
        let path = place("grants_whole_tenths");
        let mut ledger = common::ledger(&path, approximate(epsilon));
        for _ in 0..10 {
            debit(&mut ledger, &laplace(20.0 / epsilon)).unwrap();
        }
        assert!(amount(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().spent) > 0.9 * epsilon);
    }
}

#[test]
fn rho_adds_and_sampled_events_have_none() {
    let path = place("grants_rho");
    let mut ledger = ledger(&path, zcdp(0.3));
    let refused = reason(debit(&mut ledger, &poisson(3.0, 0.01, 10)));
    assert!(refused.contains("a budget of rho 0.3") && refused.contains("poisson-gaussian"), "{refused}");
    let tenth = gaussian_noise(zcdp(0.1), ADJACENCY).unwrap().get();
    for spent in [0.1, 0.2, 0.3] {
        debit(&mut ledger, &gaussian(tenth)).unwrap();
        let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
        assert!((amount(account.spent) - spent).abs() < 1e-12);
        assert!((amount(account.remaining) - (0.3 - spent)).abs() < 1e-12);
    }
    reason(debit(&mut ledger, &gaussian(1e4)));
}

#[test]
fn pure_epsilon_adds_and_gaussian_noise_has_none() {
    let path = place("grants_pure");
    let mut ledger = ledger(&path, pure(0.3));
    assert!(reason(debit(&mut ledger, &gaussian(100.0))).contains("gaussian"));
    for _ in 0..3 {
        debit(&mut ledger, &laplace(20.0)).unwrap();
    }
    reason(debit(&mut ledger, &laplace(1e5)));
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert!((amount(account.spent) - 0.3).abs() < 1e-12);
}

#[test]
fn a_run_that_goes_on_costs_nothing_more_and_cannot_change() {
    let path = place("grants_same_run");
    LedgerFile::init(&path, "others", approximate(1.0), ADJACENCY).unwrap();
    let mut ledger = ledger(&path, approximate(1.0));
    let run = RunId::random().unwrap();
    let events = gaussian(12.0);
    for _ in 0..3 {
        debit_as(&mut ledger, run, &events, ADJACENCY).unwrap();
        // Another process, after a restart.
        ledger = LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap();
    }
    assert_eq!(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().debits.len(), 1);
    let mut others = LedgerFile::open(&path).unwrap().for_dataset("others").unwrap();
    for refused in [
        debit_as(&mut ledger, run, &gaussian(12.5), ADJACENCY),
        debit_as(&mut ledger, run, &events, Adjacency::AddRemove),
        debit_as(&mut others, run, &events, ADJACENCY),
    ] {
        assert!(reason(refused).contains("is recorded with another program"));
    }
    let accounts = LedgerFile::open(&path).unwrap().datasets().unwrap();
    assert_eq!((accounts[0].debits.len(), accounts[1].debits.len()), (0, 1));
}

#[test]
fn another_adjacency_is_refused() {
    let path = place("grants_adjacency");
    let mut ledger = ledger(&path, approximate(1.0));
    let refused =
        reason(debit_as(&mut ledger, RunId::random().unwrap(), &gaussian(100.0), Adjacency::AddRemove));
    assert!(refused.contains("is for replace-one adjacency, this run is for add-remove"), "{refused}");
}

#[test]
fn nothing_spent_is_not_recorded() {
    let path = place("grants_nothing");
    let mut ledger = ledger(&path, pure(1.0));
    let charge = semidp_core::Charge {
        run: RunId::random().unwrap(),
        events: &[],
        adjacency: ADJACENCY,
        epsilon: Epsilon::new(0.0).unwrap(),
        delta: Delta::new(0.0).unwrap(),
    };
    ledger.debit(&charge).unwrap();
    assert!(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().debits.is_empty());
}

#[test]
fn budgets_that_mean_nothing_are_refused_and_make_no_file() {
    let path = place("grants_budgets");
    let try_it = |dataset: &str, budget| LedgerFile::init(&path, dataset, budget, ADJACENCY).unwrap_err();
    let long = "x".repeat(201);
    for name in ["", " ", "two\nlines", long.as_str()] {
        assert!(matches!(try_it(name, pure(1.0)), Error::InvalidParameter { name: "dataset", .. }), "{name}");
    }
    assert!(try_it("rows", pure(0.0)).to_string().starts_with("epsilon must be"));
    assert!(try_it("rows", zcdp(0.0)).to_string().starts_with("rho must be"));
    // Samplers are exact to 2^-188, which e^100 makes visible.
    assert!(try_it("rows", approximate(100.0)).to_string().starts_with("delta must be larger"));
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn a_budget_is_set_once() {
    let path = place("grants_once");
    LedgerFile::init(&path, "rows", approximate(1.0), ADJACENCY).unwrap();
    let again = LedgerFile::init(&path, "rows", approximate(9.0), ADJACENCY).unwrap_err();
    assert!(matches!(again, Error::AlreadySet { .. }), "{again}");
    assert_eq!(LedgerFile::open(&path).unwrap().datasets().unwrap()[0].budget, approximate(1.0));
    let unknown = LedgerFile::open(&path).unwrap().for_dataset("row").unwrap_err();
    assert!(matches!(unknown, Error::UnknownDataset { .. }), "{unknown}");
}

#[test]
fn many_threads_make_one_ledger_and_never_overspend() {
    let path = place("grants_threads");
    let granted: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|worker| {
                let path = &path;
                scope.spawn(move || {
                    // All make the ledger at once: each its own data set, and one that they share.
                    let own = format!("rows {worker}");
                    LedgerFile::init(path, &own, approximate(1.0), ADJACENCY).unwrap();
                    match LedgerFile::init(path, "shared", zcdp(0.5), ADJACENCY) {
                        Ok(_) | Err(Error::AlreadySet { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    let mut ledger = LedgerFile::open(path).unwrap().for_dataset("shared").unwrap();
                    // rho 0.1 each: five fit.
                    let events = gaussian(gaussian_noise(zcdp(0.1), ADJACENCY).unwrap().get());
                    (0..3).filter(|_| debit(&mut ledger, &events).is_ok()).count()
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(granted, 5);
    let accounts = LedgerFile::open(&path).unwrap().datasets().unwrap();
    assert_eq!(accounts.len(), 7);
    assert_eq!(accounts.iter().map(|account| account.debits.len()).sum::<usize>(), 5);
}
