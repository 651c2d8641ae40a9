//! What a ledger grants, and what it refuses.

mod common;

use common::*;
use semidp_accounting::{
    Adjacency, CountedEvent, Delta, Epsilon, Event, FilterCharge, GaussianFilter, PrivacyBudget, Steps,
    gaussian_noise,
};
use semidp_core::{Ledger, RunId, calibration_delta};
use semidp_ledger::{Cost, Error, LedgerFile, Rule};

fn amount(budget: PrivacyBudget) -> f64 {
    match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => epsilon.get(),
        PrivacyBudget::Zcdp { rho, .. } => rho.get(),
    }
}

#[test]
fn what_is_spent_is_what_the_filter_charged() {
    let path = place("grants_composition");
    let mut ledger = ledger(&path, approximate(3.0)).describe("some of everything");
    let filter = GaussianFilter::new(Epsilon::new(3.0).unwrap(), calibration_delta(delta())).unwrap();
    let runs =
        [gaussian(10.0), poisson(2.0, 0.01, 500), gaussian(12.0), laplace(30.0), poisson(3.0, 0.02, 70)];
    let mut total = FilterCharge::ZERO;
    for (position, events) in runs.iter().enumerate() {
        debit(&mut ledger, events).unwrap();
        let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
        let charge = filter.charge(events, ADJACENCY).unwrap().unwrap();
        total = total.plus(charge);
        assert_eq!(amount(account.spent), total.epsilon(calibration_delta(delta())).unwrap().get());
        let state = account.filter.unwrap();
        assert_eq!((state.pure_epsilon, state.budget, state.spent), (0.0, filter.budget(), total));
        assert_eq!(account.debits.len(), position + 1);
        let last = account.debits.last().unwrap();
        // The budget is entry 1.
        assert_eq!((last.sequence, &*last.description), (position as u64 + 2, "some of everything"));
        assert_eq!((&last.events, last.delta, last.adjacency), (events, delta(), ADJACENCY));
        assert_eq!((last.rule, last.cost), (Rule::Filter, Cost::Filter(charge)));
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
fn a_run_chosen_by_an_earlier_outcome_cannot_overspend() {
    // The attack: a Gaussian with noise 14, then, by its outcome, a Gaussian with all that is left or this Poisson step,
    // whose tight composition with the first stays within (1, 1e-6). Granting both is 1.78e-6 in truth.
    for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        let path = place(&format!("grants_adaptive_{adjacency}"));
        let file = LedgerFile::init(&path, "rows", approximate(1.0), adjacency).unwrap();
        let mut ledger = file.for_dataset("rows").unwrap();
        debit_as(&mut ledger, RunId::random().unwrap(), &gaussian(14.0), adjacency).unwrap();
        let step = poisson(0.05, 9e-7, 1);
        let together = [gaussian(14.0), step.clone()].concat();
        let tight = semidp_accounting::epsilon(&together, adjacency, calibration_delta(delta())).unwrap();
        if adjacency == Adjacency::AddRemove {
            assert!(tight.value.get() <= 1.0, "the example must fit by tight composition");
        }
        let refused = reason(debit_as(&mut ledger, RunId::random().unwrap(), &step, adjacency));
        assert!(refused.contains("left for one more release is epsilon 0."), "{refused}");
        let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
        assert_eq!(account.debits.len(), 1);
        assert!(amount(account.remaining) > 0.5);
    }
}

#[test]
fn the_first_run_may_take_the_whole_budget_and_then_nothing_is_left() {
    let path = place("grants_first_whole");
    let mut ledger = ledger(&path, approximate(1.0));
    // One step that no Gaussian curve within the budget dominates.
    debit(&mut ledger, &poisson(0.05, 9e-7, 1)).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!((account.debits[0].rule, account.is_closed), (Rule::Whole, true));
    assert_eq!((amount(account.spent), amount(account.remaining)), (1.0, 0.0));
    let refused = reason(debit(&mut ledger, &gaussian(1e6)));
    assert!(
        refused.contains("the one recorded before took all of it") && refused.ends_with("nothing is left")
    );
}

#[test]
fn pure_runs_add_until_another_kind_of_run_comes() {
    let path = place("grants_pure_then_gaussian");
    let mut ledger = ledger(&path, approximate(1.0));
    debit(&mut ledger, &laplace(8.0)).unwrap();
    debit(&mut ledger, &laplace(8.0)).unwrap();
    let filter = GaussianFilter::new(Epsilon::new(0.5).unwrap(), calibration_delta(delta())).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!((amount(account.spent), account.debits[1].rule), (0.5, Rule::Sum));
    let state = account.filter.unwrap();
    assert_eq!((state.pure_epsilon, state.budget), (0.5, filter.budget()));
    assert!((amount(account.remaining) - 0.4974).abs() < 1e-3, "{:?}", account.remaining);
    debit(&mut ledger, &gaussian(30.0)).unwrap();
    // From now on a pure run is charged by the filter: at this size it costs more than there is.
    reason(debit(&mut ledger, &laplace(8.0)));
    debit(&mut ledger, &laplace(80.0)).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!(
        account.debits.iter().map(|one| one.rule).collect::<Vec<_>>(),
        [Rule::Sum, Rule::Sum, Rule::Filter, Rule::Filter]
    );
    assert!(amount(account.spent) > 0.5 && amount(account.spent) < 1.0);
}

#[test]
fn ten_tenths_are_one_and_not_more() {
    // 0.1 ten times, as an event and as noise: 20 is the noise of 0.1 under replace-one.
    let pure_event = vec![CountedEvent::new(Event::Pure { epsilon: Epsilon::new(0.1).unwrap() }, Steps::ONE)];
    for (name, budget) in [("pure", pure(1.0)), ("both", approximate(1.0))] {
        for (kind, events) in [("event", &pure_event), ("noise", &laplace(20.0))] {
            let path = place(&format!("grants_tenths_{name}_{kind}"));
            let mut ledger = ledger(&path, budget);
            for _ in 0..10 {
                debit(&mut ledger, events).unwrap();
            }
            let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
            assert_eq!((amount(account.spent), amount(account.remaining)), (1.0, 0.0), "{name} {kind}");
            reason(debit(
                &mut ledger,
                &[CountedEvent::new(Event::Pure { epsilon: Epsilon::new(1e-25).unwrap() }, Steps::ONE)],
            ));
        }
    }
}

#[test]
fn a_plan_pays_for_the_runs_that_it_declares() {
    let path = place("grants_plan");
    let mut ledger = ledger(&path, approximate(1.0)).describe("three looks and a training");
    let declared =
        [gaussian(20.0), gaussian(20.0), poisson(3.0, 0.01, 300), [laplace(100.0), gaussian(50.0)].concat()];
    ledger.plan(&declared).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!((account.plans.len(), account.debits.len()), (1, 0));
    let plan = &account.plans[0];
    assert_eq!(
        (plan.rule, &plan.runs[..], &*plan.description),
        (Rule::Filter, &declared[..], "three looks and a training")
    );
    let spent = amount(account.spent);
    let tight =
        semidp_accounting::epsilon(&declared.concat(), ADJACENCY, calibration_delta(delta())).unwrap();
    assert!(spent > tight.value.get() && spent < 1.01 * tight.value.get(), "{spent} {tight:?}");
    // Drawn on in any order, with more noise and fewer steps than declared; each entry once.
    for events in [&poisson(3.5, 0.009, 200), &declared[3], &declared[0], &declared[1]] {
        debit(&mut ledger, events).unwrap();
    }
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!(amount(account.spent), spent);
    assert!(account.debits.iter().all(|one| (one.rule, one.cost) == (Rule::Plan, Cost::Nothing)));
    assert!(account.plans[0].drawn.iter().all(Option::is_some));
    // What is not declared any more is charged like any other run.
    debit(&mut ledger, &gaussian(20.0)).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert!(amount(account.spent) > spent && account.debits[4].rule == Rule::Filter);
}

#[test]
fn less_noise_more_steps_or_another_kind_is_not_what_was_declared() {
    let path = place("grants_plan_other");
    let mut ledger = ledger(&path, approximate(2.0));
    ledger.plan(&[poisson(3.0, 0.01, 300)]).unwrap();
    let before = amount(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().spent);
    let others =
        [poisson(2.99, 0.01, 300), poisson(3.0, 0.011, 300), poisson(3.0, 0.01, 301), gaussian(1000.0)];
    for events in others {
        debit(&mut ledger, &events).unwrap();
    }
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert!(account.debits.iter().all(|one| one.rule == Rule::Filter) && amount(account.spent) > before);
    assert_eq!(account.plans[0].drawn, [None]);
    assert!(ledger.plan(&[]).unwrap_err().to_string().starts_with("events must be"));
    // A plan that does not fit is refused whole.
    let refused = ledger.plan(&[gaussian(2.0), gaussian(2.0)]).unwrap_err().to_string();
    assert!(refused.contains("this plan and the 5 recorded before"), "{refused}");
    assert_eq!(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().plans.len(), 1);
}

#[test]
fn a_plan_of_everything_composes_tightly() {
    // What the filter refuses as a plan, because it fills the budget by tight composition, may be declared first.
    let path = place("grants_plan_whole");
    let mut ledger = ledger(&path, approximate(1.0));
    ledger.plan(&[gaussian(14.0), poisson(0.05, 5e-7, 1)]).unwrap();
    debit(&mut ledger, &poisson(0.05, 5e-7, 1)).unwrap();
    debit(&mut ledger, &gaussian(14.0)).unwrap();
    reason(debit(&mut ledger, &gaussian(1e6)));
    assert!(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().is_closed);
}

#[test]
fn one_file_under_two_names_and_two_files_under_one_name_are_warned_of() {
    let path = place("grants_paths");
    LedgerFile::init(&path, "others", approximate(1.0), ADJACENCY).unwrap();
    let folder = path.parent().unwrap();
    let (a, b) = (folder.join("a.csv"), folder.join("b.csv"));
    for file in [&a, &b] {
        std::fs::write(file, "x\n1\n").unwrap();
    }
    let open = |dataset: &str, file: &std::path::Path| {
        let ledger = LedgerFile::open(&path).unwrap().for_dataset(dataset).unwrap().reads(file);
        let warnings = ledger.warnings().unwrap();
        (ledger, warnings)
    };
    LedgerFile::init(&path, "rows", approximate(1.0), ADJACENCY).unwrap();
    for _ in 0..2 {
        let (mut ledger, warnings) = open("rows", &a);
        assert_eq!(warnings, [""; 0]);
        debit(&mut ledger, &gaussian(100.0)).unwrap();
    }
    // The same file by another path is the same file.
    assert_eq!(open("rows", &folder.join("../grants_paths/a.csv")).1, [""; 0]);
    let (_, warnings) = open("rows", &b);
    assert!(warnings.len() == 1 && warnings[0].contains("a.csv, this one reads"), "{warnings:?}");
    let (mut ledger, warnings) = open("others", &a);
    assert!(warnings.len() == 1 && warnings[0].contains("also read as data set `rows`"), "{warnings:?}");
    debit(&mut ledger, &gaussian(100.0)).unwrap();
    let account = LedgerFile::open(&path).unwrap().dataset("others").unwrap();
    assert!(account.debits[0].path.as_ref().unwrap().ends_with("a.csv"));
}

/// Rows in memory have a name that is used like a path (`memory:0/private`), another in each process.
#[test]
fn rows_in_memory_have_no_path() {
    let path = place("grants_memory");
    for dataset in ["rows", "others"] {
        LedgerFile::init(&path, dataset, approximate(1.0), ADJACENCY).unwrap();
    }
    for (dataset, name) in
        [("rows", "memory:0/private"), ("rows", "memory:1/private"), ("others", "memory:0/private")]
    {
        let ledger = LedgerFile::open(&path).unwrap().for_dataset(dataset).unwrap();
        let mut ledger = ledger.reads(std::path::Path::new(name));
        assert_eq!(ledger.warnings().unwrap(), [""; 0], "{dataset} {name}");
        debit(&mut ledger, &gaussian(100.0)).unwrap();
        let account = LedgerFile::open(&path).unwrap().dataset(dataset).unwrap();
        assert!(account.debits.iter().all(|debit| debit.path.is_none()), "{:?}", account.debits);
    }
    // A file after that is the first of which anything is known.
    let file = path.parent().unwrap().join("a.csv");
    std::fs::write(&file, "x\n1\n").unwrap();
    let ledger = LedgerFile::open(&path).unwrap().for_dataset("rows").unwrap().reads(&file);
    assert_eq!(ledger.warnings().unwrap(), [""; 0]);
}

#[test]
fn a_ledger_of_many_distinct_events_stays_usable() {
    let path = place("grants_many");
    let mut ledger = ledger(&path, approximate(1.0));
    for k in 0..300 {
        debit(&mut ledger, &gaussian(1000.0 + f64::from(k))).unwrap();
    }
    let account = LedgerFile::open(&path).unwrap().dataset("rows").unwrap();
    assert_eq!(account.debits.len(), 300);
    let exact: f64 = (0..300).map(|k| (2.0 / (1000.0 + f64::from(k))).powi(2)).sum();
    let spent = account.filter.unwrap().spent.variance;
    assert!(spent >= exact * (1.0 - 1e-15) && spent <= exact * (1.0 + 1e-12), "{spent} {exact}");
    let many = vec![gaussian(1e6)[0].clone(); semidp_ledger::MOST_EVENTS + 1];
    assert!(reason(debit(&mut ledger, &many)).contains("at most 10000 are composed"));
}

#[test]
fn runs_that_fit_are_granted_and_the_next_is_not() {
    let path = place("grants_limit");
    let budget = approximate(1.0);
    // Three of these fill the filter, but for rounding.
    let filter = GaussianFilter::new(Epsilon::new(1.0).unwrap(), calibration_delta(delta())).unwrap();
    let third = gaussian(2.0 / (filter.budget().variance / 3.0).sqrt() * (1.0 + 1e-9));
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
    for first in [gaussian(20.0), poisson(3.0, 0.01, 300), [laplace(80.0), gaussian(30.0)].concat()] {
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
        assert_eq!(amount(LedgerFile::open(&path).unwrap().dataset("rows").unwrap().spent), epsilon);
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
