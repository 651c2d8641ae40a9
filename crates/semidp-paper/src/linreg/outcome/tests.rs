use super::*;
use crate::linreg::QUICK;
use crate::published::LOSSES;

struct Nothing;

impl Experiment for Nothing {
    fn name(&self) -> &'static str {
        "linreg-test"
    }

    fn title(&self) -> &'static str {
        "a test"
    }

    fn run(&self, _: &Settings, _: &(dyn Fn(u64, u64) + Sync)) -> Result<Outcome> {
        Err(crate::Error::Data("not run".into()))
    }
}

/// Two tables that share cells, at a size of no interest: all columns are there, and the paper's figures are not.
#[test]
fn outcomes_are_whole_and_do_not_compare_what_differs() {
    let sizes = Sizes {
        dimension: 10,
        rows: 400,
        batch: 30,
        public_batch: 5,
        steps: 20,
        validation: 40,
        rates: &[0.1, 0.9],
        alphas: &[0.5, 1.0],
        ..QUICK
    };
    let settings = Settings::new(true, 3, 2);
    let also = ReplaceOne { epsilon: 2.0, shares: &[0.5] };
    let heard = std::sync::Mutex::new((0, 0));
    let progress = |done: u64, total: u64| {
        let mut heard = heard.lock().unwrap();
        *heard = (heard.0.max(done), total);
    };
    // The first rows of two tables.
    let shares = LossTable { fixed: Fixed::Epsilon(0.5), figures: &LOSSES[0].figures[..4], ..LOSSES[0] };
    let budgets = LossTable { figures: &LOSSES[2].figures[..2], ..LOSSES[2] };
    let outcome =
        reproduce_at(&Nothing, &settings, &sizes, &[shares, budgets], Some(also), &progress).unwrap();
    let (done, total) = heard.into_inner().unwrap();
    // They meet in one cell.
    assert_eq!((done, total), (5 * 5 + 2, 5 * 5 + 2));
    assert_eq!((outcome.tables.len(), outcome.charts.len()), (9, 3));
    let rows: Vec<usize> = outcome.tables.iter().map(|table| table.rows.len()).collect();
    assert_eq!(rows, [4, 4, 4, 24, 2, 2, 2, 12, 1]);
    let names: Vec<&str> = outcome.tables.iter().map(|table| &table.name[..]).collect();
    let ends = ["-comparison", "", "-autopilot", "-chosen"];
    assert_eq!(names[..4], ends.map(|end| format!("linreg-test-at-epsilon-0.5{end}")));
    for table in &outcome.tables {
        for row in &table.rows {
            assert_eq!(row.len(), table.headings.len(), "{}", table.name);
            for (heading, cell) in table.headings.iter().zip(row) {
                assert!(!heading.contains("paper") || *cell == Cell::Empty, "{} {heading}", table.name);
            }
        }
    }
    for (name, chart) in &outcome.charts {
        assert!(chart.svg().unwrap().contains("</svg>"), "{name}");
    }
    assert!(outcome.findings.iter().any(|finding| finding.contains("cannot be compared")));
    assert!(outcome.findings.iter().all(|finding| !finding.contains("NaN")), "{:#?}", outcome.findings);
}
