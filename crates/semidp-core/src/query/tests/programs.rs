//! What the kernel refuses, and what it certifies.

use super::*;

fn small_table() -> Table {
    table(DenseF64, &[0.3, 0.6, 0.9].map(|x| Row::new(vec![x, 1.0 - x])), 2, 1)
}

fn small_query() -> ClippedSum<L2> {
    ClippedSum::l2(Public(vec![0.5, 0.5]), 1.0).unwrap()
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let (session, query) = (session(small_table(), Adjacency::AddRemove, 3, 1), small_query());
    let program = Program::new(Gaussian::new(noise(1.0)), Sampling::Everyone, Steps::new(2).unwrap());
    let (run, mut tickets) = session.authorise(program.clone(), delta(1e-6)).unwrap();
    let (other, mut others) = session.authorise(program, delta(1e-6)).unwrap();
    let shards = |ticket: Option<Ticket>| run.shards(&query, ticket.unwrap(), 2).unwrap();
    let (mut first, mut second) = (shards(tickets.next()), shards(tickets.next()));
    let mut foreign = other.shards(&query, others.next().unwrap(), 2).unwrap();
    let refused = |answer: Result<Partial<L2>>| matches!(answer, Err(Error::Unmergeable { .. }));
    // Another step; another run.
    assert!(refused(first.pop().unwrap().merge(second.remove(0))));
    assert!(refused(first.pop().unwrap().merge(foreign.pop().unwrap())));
    // The same shard twice, which only the kernel could make; and another query of the same step.
    let make = |query, covered| {
        Partial::<L2>::new(
            vec![1, 2],
            small_query().grid(),
            Lineage { run: 0, step: 0, query, shards: 3, covered },
        )
    };
    assert!(refused(make(0, 0b011).merge(make(0, 0b010))));
    assert!(refused(make(0, 0b001).merge(make(1, 0b010))));
    assert_eq!(make(0, 0b001).merge(make(0, 0b110)).unwrap().sum(), [2, 4]);
    // What is left covers one shard of two.
    let incomplete = run.noise(second.pop().unwrap()).unwrap_err();
    assert_eq!(incomplete, Error::Incomplete { found: 1, expected: 2 });
}

#[test]
fn tickets_and_sums_stay_in_their_run() {
    let (session, query) = (session(small_table(), Adjacency::ReplaceOne, 3, 1), small_query());
    let program = Program::new(Gaussian::new(noise(1.0)), Sampling::Everyone, Steps::new(2).unwrap());
    let (run, mut tickets) = session.authorise(program.clone(), delta(1e-6)).unwrap();
    let (other, mut others) = session.authorise(program, delta(1e-6)).unwrap();
    let foreign = |thing| Error::Foreign { thing };
    assert_eq!(other.sum(&query, tickets.next().unwrap()).unwrap_err(), foreign("ticket"));
    let partial = run.sum(&query, tickets.next().unwrap()).unwrap();
    assert_eq!(other.noise(partial).unwrap_err(), foreign("partial sum"));
    assert!(tickets.next().is_none());
    let value = other.noise(other.sum(&query, others.next().unwrap()).unwrap()).unwrap();
    assert_eq!(run.finish(tickets, value.clone()).unwrap_err(), foreign("value"));
    assert!(other.finish(others, value).is_ok());
}

/// Nobody in the table, and nobody in the sample: the noise is as large as ever.
#[test]
fn nobody_is_noised_like_anybody() {
    const WIDTH: usize = 20_000;
    let row = Row::new(vec![1.0; WIDTH]);
    let crowd = || table(DenseF32, from_ref(&row), WIDTH, 1);
    let query = ClippedSum::l2(Public(vec![0.0; WIDTH]), 3.0).unwrap();
    let rare = poisson(1e-12);
    for (table, sampling) in
        [(empty_table(WIDTH), Sampling::Everyone), (empty_table(WIDTH), rare), (crowd(), rare)]
    {
        let session = session(table, Adjacency::AddRemove, 4, 2);
        let program = Program::new(Gaussian::new(noise(2.0)), sampling, Steps::ONE);
        let (run, mut tickets) = session.authorise(program, delta(1e-6)).unwrap();
        let partial = run.sum(&query, tickets.next().unwrap()).unwrap();
        assert!(partial.sum().iter().all(|&k| k == 0));
        let released = run.noise(partial).unwrap();
        let square = released.iter().map(|x| (x / 6.0).powi(2)).sum::<f64>() / WIDTH as f64;
        // The mean of N squares of normal variables has standard deviation √(2/N).
        assert!((square - 1.0).abs() < 6.5 * (2.0 / WIDTH as f64).sqrt(), "{square}");
    }
}

/// One block of five rows, shown in pieces of these sizes, whatever was promised.
struct InPieces {
    rows: Vec<f64>,
    sizes: Vec<usize>,
}

impl BlockSource for InPieces {
    fn width(&self) -> usize {
        1
    }

    fn units(&self) -> usize {
        5
    }

    fn blocks(&self) -> usize {
        1
    }

    fn units_of(&self, _: usize) -> std::ops::Range<usize> {
        0..5
    }

    fn visit(&self, _: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        let mut shown = 0;
        for &size in &self.sizes {
            let values: Vec<f64> = (shown..shown + size).map(|i| self.rows[i % 5]).collect();
            visit(Block::DenseF64(DenseBlock::new(&values, 1)));
            shown += size;
        }
        Ok(())
    }
}

/// A source that shows a block in pieces is summed like one that shows it whole; a source that shows
/// rows again or too many adds none of them twice.
#[test]
fn pieces_of_a_block_count_once() {
    let rows = vec![0.5, 0.25, 1.0, -0.5, 0.125];
    let sum_of = |sizes: &[usize]| {
        let source = InPieces { rows: rows.clone(), sizes: sizes.to_vec() };
        let session = Session::new(Private::new(source), Adjacency::ReplaceOne).unwrap();
        let program = Program::new(Gaussian::new(noise(1.0)), Sampling::Everyone, Steps::ONE);
        let (run, mut tickets) = session.authorise(program, delta(1e-6)).unwrap();
        let query = ClippedSum::l2(Public(vec![0.0]), 2.0).unwrap();
        let partial = run.sum(&query, tickets.next().unwrap()).unwrap();
        partial.sum()[0] as f64 * query.grid().step()
    };
    let prefix = |k: usize| rows[..k].iter().sum::<f64>();
    for sizes in [&[5][..], &[1, 4], &[2, 0, 3], &[1, 1, 1, 1, 1], &[5, 5], &[2, 3, 1], &[3, 2, 5]] {
        assert_eq!(sum_of(sizes), prefix(5), "{sizes:?}");
    }
    // A piece that runs over the end is not looked at, nor is anything after it.
    for (sizes, counted) in [(&[6][..], 0), (&[3, 3], 3), (&[4, 2, 1], 4), (&[2], 2), (&[], 0)] {
        assert_eq!(sum_of(sizes), prefix(counted), "{sizes:?}");
    }
}

#[test]
fn what_has_no_guarantee_is_not_authorised() {
    let session = session(small_table(), Adjacency::AddRemove, 5, 1);
    let sampled = Program::new(Laplace::new(noise(1.0)), poisson(0.5), Steps::ONE);
    let refused = session.authorise(sampled, delta(0.0)).err().unwrap();
    assert!(matches!(refused, Error::NoEvent { sampling: "poisson", .. }), "{refused}");
    let fixed = Program::new(Gaussian::new(noise(1.0)), Sampling::FixedSize { size: 2 }, Steps::ONE);
    let refused = session.authorise(fixed, delta(1e-6)).err().unwrap();
    assert!(matches!(refused, Error::SecretCount { adjacency: Adjacency::AddRemove, .. }), "{refused}");
    assert_eq!(session.units(), None);
}

/// A refused program leaves the budget as it was: a smaller one still fits.
#[test]
fn a_budget_refuses_what_would_go_over() {
    let (large, small) = (Gaussian::new(noise(4.0)), Gaussian::new(noise(40.0)));
    let cost = |programs: &[(Gaussian, u64)]| {
        let event = |law: &Gaussian| noise::sealed::Law::event(law, &Sampling::Everyone, 3, 2).unwrap();
        let events = programs.iter().map(|(law, n)| CountedEvent::new(event(law), Steps::new(*n).unwrap()));
        epsilon(&events.collect::<Vec<_>>(), Adjacency::AddRemove, delta(1e-6)).unwrap().value.get()
    };
    // A filter for programs that may depend on earlier results keeps 1 % of the budget back.
    let limit = 1.007 * cost(&[(large, 1), (small, 1)]);
    assert!(limit < cost(&[(large, 2)]) && limit < cost(&[(large, 1), (small, 3)]));
    let budget = Budget::new(Epsilon::new(limit).unwrap(), delta(1e-6));
    let session = session(small_table(), Adjacency::AddRemove, 6, 1).with_ledger(budget);
    let granted = |law: Gaussian| {
        let program = Program::new(law, Sampling::Everyone, Steps::ONE);
        match session.authorise(program, delta(1e-6)) {
            Ok(_) => true,
            Err(Error::BudgetRefused { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!([large, large, small, small, small].map(granted), [true, false, true, false, false]);
}

/// A whole program: what it releases, and the certificate.
fn released<M: Mechanism>(
    session: &Session<Table>,
    query: &ClippedSum<M::Norm>,
    program: Program<M>,
    delta: Delta,
) -> Release<Vec<u64>> {
    let (run, mut tickets) = session.authorise(program, delta).unwrap();
    let mut all: Option<Noised<Vec<u64>>> = None;
    for ticket in tickets.by_ref() {
        let step = run.noise(run.sum(query, ticket).unwrap()).unwrap();
        let step = step.map(|step| step.into_iter().map(f64::to_bits).collect());
        all = Some(match all {
            Some(all) => all.zip(step).map(|(all, step)| [all, step].concat()),
            None => step,
        });
    }
    run.finish(tickets, all.unwrap()).unwrap()
}

#[test]
fn certificates_say_what_happened() {
    let mut session = session(small_table(), Adjacency::ReplaceOne, 7, 1);
    let (query, l1) = (small_query(), ClippedSum::l1(Public(vec![0.5, 0.5]), 1.0).unwrap());
    let three = Steps::new(3).unwrap();
    let gaussian = |sampling| Program::new(Gaussian::new(noise(3.0)), sampling, three);
    let certificates = |session: &Session<Table>| {
        let laplace = Program::new(Laplace::new(noise(3.0)), Sampling::Everyone, three);
        let k_norm = Program::new(KNorm::new(noise(3.0)), Sampling::Everyone, three);
        [
            (released(session, &query, gaussian(Sampling::Everyone), delta(1e-6)), Arithmetic::Exact),
            (released(session, &query, gaussian(poisson(0.3)), delta(1e-6)), Arithmetic::Exact),
            (
                released(session, &query, gaussian(Sampling::FixedSize { size: 2 }), delta(1e-6)),
                Arithmetic::Exact,
            ),
            (
                released(session, &query, gaussian(Sampling::OnePass { blocks: 3 }), delta(1e-6)),
                Arithmetic::Exact,
            ),
            (released(session, &l1, laplace, delta(0.0)), Arithmetic::Exact),
            (released(session, &query, k_norm, delta(0.0)), Arithmetic::Idealised),
        ]
        .map(|(release, arithmetic)| (release.certificate, arithmetic))
    };
    for (certificate, arithmetic) in certificates(&session) {
        assert_eq!(certificate.arithmetic, arithmetic, "{}", certificate.mechanism);
        assert_eq!(certificate.random_source, RandomSource::Seeded);
        assert_eq!((certificate.releases, certificate.guarantee.adjacency), (3, Adjacency::ReplaceOne));
        let verdict = certificate.verify_allowing_seeded().unwrap();
        assert!(verdict.valid, "{}: {:?}", certificate.mechanism, verdict.objections);
    }
    session.declassify("a test");
    for (certificate, _) in certificates(&session) {
        assert_eq!(certificate.declassified, ["a test"]);
        assert!(!certificate.verify_allowing_seeded().unwrap().valid, "{}", certificate.mechanism);
    }
}

/// Several blocks of coordinates and of units, so that threads have something to share.
#[test]
fn seeded_runs_repeat_bit_for_bit() {
    const WIDTH: usize = 20_000;
    let row = |i: u32| Row::new((0..WIDTH as u32).map(|j| f64::from((i + 3 * j) % 7) - 3.0).collect());
    let rows: Vec<Row> = (0..20).map(row).collect();
    let (l1, l2) = (
        ClippedSum::l1(Public(vec![0.1; WIDTH]), 9.0).unwrap(),
        ClippedSum::l2(Public(vec![0.1; WIDTH]), 9.0).unwrap(),
    );
    let release = |randomness, threads| {
        let table = table(DenseF32, &rows, WIDTH, 2);
        let session = session(table, Adjacency::ReplaceOne, 0, threads).with_randomness(randomness);
        let two = Steps::new(2).unwrap();
        let gaussian = Program::new(Gaussian::new(noise(2.0)), poisson(0.5), two);
        let one_pass = Program::new(Gaussian::new(noise(2.0)), Sampling::OnePass { blocks: 2 }, two);
        let laplace = Program::new(Laplace::new(noise(2.0)), Sampling::Everyone, two);
        let k_norm = Program::new(KNorm::new(noise(2.0)), Sampling::Everyone, two);
        [
            released(&session, &l2, gaussian, delta(1e-6)),
            released(&session, &l2, one_pass, delta(1e-6)),
            released(&session, &l1, laplace, delta(0.0)),
            released(&session, &l2, k_norm, delta(0.0)),
        ]
    };
    let once = release(Randomness::Seed(8), 1);
    for threads in [1, 2, 7] {
        assert!(release(Randomness::Seed(8), threads) == once, "{threads} threads");
    }
    let (seeded, fresh) = (release(Randomness::Seed(9), 1), release(Randomness::OperatingSystem, 1));
    for (((once, seeded), fresh), law) in once.iter().zip(&seeded).zip(&fresh).zip(0..) {
        assert!(once.value != seeded.value && once.value != fresh.value, "{law}");
        assert_eq!(fresh.certificate.random_source, RandomSource::OperatingSystem);
        // Two steps of one run, and two runs, have noise of their own.
        let (first, second) = once.value.split_at(WIDTH);
        assert!(first != second, "{law}");
    }
}
