use super::*;

/// Expectations to the mean of the rows at hand are the library's, where it has one, and the reference's in the setting of erratum 16.
#[test]
fn expectations_are_those_of_the_library_and_the_reference() {
    for case in Case::all() {
        for public in PUBLIC {
            let expected = Expected::new(&case, public).unwrap();
            let names: Vec<&str> = expected.combinations.iter().map(|one| one.name).collect();
            assert_eq!(names, ESTIMATORS);
            for goal in [Goal::Rows, Goal::Opposed] {
                for estimator in [EVERYONE, UNIFORM] {
                    let library = expected.combinations[estimator].empirical_mse.unwrap();
                    let found = expected.at(goal, estimator).unwrap();
                    assert!(
                        (found / library - 1.0).abs() < 1e-12,
                        "{} {public}: {found} {library}",
                        case.label()
                    );
                }
            }
        }
    }
    for (mechanism, wanted) in [("duchi", 0.6587986359042055), ("privunit", 0.567413632342308)] {
        let mut cases = Case::all().into_iter();
        let is_it = |case: &Case| case.mechanism.name == mechanism && case.epsilon == 1.0;
        let expected = Expected::new(&cases.find(is_it).unwrap(), 100).unwrap();
        assert!((expected.combinations[UNIFORM].mse / wanted - 1.0).abs() < 1e-9);
        assert!((expected.combinations[THROW_AWAY].mse - 0.01).abs() < 1e-12);
    }
}

fn points(cases: impl Iterator<Item = Case>, repetitions: u64, settings: &Settings) -> Vec<Point> {
    let of_case = |case: Case| {
        let measured = summary::measure(&case, repetitions, settings, &|_| ()).unwrap();
        measured.into_iter().map(move |measured| Point {
            expected: Expected::new(&case, measured.public).unwrap(),
            case,
            measured,
        })
    };
    cases.flat_map(of_case).collect()
}

/// Every error and every paired difference is the expected one. Of 100 repetitions, Student's law exceeds 6.8 less than once in 10⁹ times.
#[test]
fn errors_and_differences_are_the_expected_ones() {
    let settings = Settings::new(true, 11, 2);
    let cases = Case::all().into_iter().filter(|case| [1.0, 8.0].contains(&case.epsilon));
    let points = points(cases, 100, &settings);
    for point in &points {
        for goal in Goal::ALL {
            for (estimator, name) in ESTIMATORS.into_iter().enumerate() {
                let found = point.error(goal, estimator);
                let plain = point.error(Goal::Population, estimator).mean;
                match point.expected.at(goal, estimator) {
                    Some(expected) => assert!(
                        (found.mean - expected).abs() < 6.8 * found.error,
                        "{} {} {name}: {found:?} {expected}",
                        point.case.label(),
                        point.share()
                    ),
                    None => assert!(found.mean <= plain * (1.0 + 1e-12)),
                }
            }
        }
    }
    for (place, pair) in PAIRS.into_iter().enumerate() {
        let check = summary::check(&points, place);
        assert!(check.furthest.is_none_or(|furthest| furthest < 6.8), "{pair:?}: {check:?}");
        assert_eq!(check.below, check.clear);
        assert!(check.clear > 0, "{pair:?}");
    }
}

/// Threads make no difference, and neither does the mechanism to the rows: public rows alone have the same error with any.
#[test]
fn results_do_not_depend_on_threads_nor_rows_on_mechanisms() {
    let run = |threads| {
        let cases = Case::all().into_iter().filter(|case| case.epsilon == 1.0).take(2);
        points(cases, 3, &Settings::new(true, 3, threads))
    };
    let (one, three) = (run(1), run(3));
    for (a, b) in one.iter().zip(&three) {
        assert_eq!(a.measured, b.measured);
    }
    let (duchi, privunit) = one.split_at(PUBLIC.len());
    for (a, b) in duchi.iter().zip(privunit) {
        let error = |point: &Point, estimator| point.error(Goal::Population, estimator);
        assert_eq!(error(a, THROW_AWAY), error(b, THROW_AWAY));
        assert_ne!(error(a, LDP), error(b, LDP));
    }
}
