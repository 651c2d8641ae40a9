//! Streamed rows are the rows of memory: every unit once, whoever asks for what, and never more than a few windows.

use super::*;
use crate::*;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

const ROWS: usize = 700;
const WIDTH: usize = 3;

/// Any source of the test's rows, dense or sparse, in blocks of so many rows.
fn table(is_sparse: bool, rows: Range<usize>, rows_per_block: usize) -> Box<dyn BlockSource> {
    let value = |row: usize, column: usize| ((row * 31 + column * 17) % 101) as f64 / 50.0 - 1.0;
    if !is_sparse {
        let values = rows.flat_map(|row| (0..WIDTH).map(move |column| value(row, column) as f32)).collect();
        return Box::new(DenseTable::with_blocks(values, WIDTH, rows_per_block).unwrap());
    }
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        // Some rows are empty.
        for column in (0..WIDTH).filter(|column| (row + column) % 3 == 0 && row % 7 != 0) {
            columns.push(column as u32);
            values.push(value(row, column));
        }
        offsets.push(values.len());
    }
    Box::new(CsrTable::new(offsets, columns, values, WIDTH).unwrap().with_blocks(rows_per_block).unwrap())
}

fn sources() -> Vec<Arc<dyn BlockSource>> {
    let mut all: Vec<Arc<dyn BlockSource>> = Vec::new();
    for is_sparse in [false, true] {
        for rows_per_block in [1, 33, 10_000] {
            all.push(Arc::new(table(is_sparse, 0..ROWS, rows_per_block)));
        }
    }
    let (dense, sparse) = (table(false, 0..300, 300), table(true, 300..ROWS, 7));
    all.push(Arc::new(Joined::new(dense, sparse).unwrap()));
    all
}

/// The exact sums of a few steps.
fn sums<S: BlockSource>(source: S, sampling: Sampling, threads: usize) -> Vec<Vec<i64>> {
    let session = Session::new(Private::new(source), Adjacency::ReplaceOne).unwrap();
    let session = session.with_randomness(Randomness::Seed(3)).with_threads(threads);
    let noise = Gaussian::new(NoiseMultiplier::new(3.0).unwrap());
    let program = Program::new(noise, sampling, Steps::new(6).unwrap());
    let (run, tickets) = session.authorise(program, Delta::new(1e-5).unwrap()).unwrap();
    let query = ClippedSum::l2(Public(vec![0.1; WIDTH]), 1.0).unwrap();
    tickets.map(|ticket| run.sum(&query, ticket).unwrap().sum().to_vec()).collect()
}

#[test]
fn sums_are_those_of_memory() {
    let rate = SampleRate::new(0.03).unwrap();
    for sampling in [
        Sampling::Everyone,
        Sampling::Poisson { rate },
        Sampling::FixedSize { size: 9 },
        Sampling::OnePass { blocks: 4 },
        Sampling::InOrder { blocks: 4 },
        Sampling::InOrder { blocks: 100 },
    ] {
        for source in sources() {
            let expected = sums(InMemory::read(&source).unwrap(), sampling, 1);
            assert_eq!(sums(source.clone(), sampling, 2), expected, "{sampling:?}");
            for (window_units, threads) in [(1, 2), (7, 1), (64, 7), (64, 2), (699, 2), (5000, 3)] {
                let streamed = Streamed::with_windows(source.clone(), window_units);
                assert_eq!(sums(streamed, sampling, threads), expected, "{sampling:?} {window_units}");
            }
            assert_eq!(sums(Private::new(source).streamed().into_inner(), sampling, 2), expected);
        }
    }
}

/// Rows made on the fly, in pieces; counts the units it showed, and fails where it is told to.
struct Made {
    units: usize,
    block_units: usize,
    shown: Arc<AtomicUsize>,
    trouble: Trouble,
}

#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    /// All in the second block, the first few times.
    Fails(usize),
    Panics,
    ShowsTooFew,
    ShowsAnotherWidth,
    ShowsTooMany,
}

const PIECE: usize = 10;

impl Made {
    fn new(units: usize, block_units: usize) -> Self {
        Self { units, block_units, shown: Arc::default(), trouble: Trouble::None }
    }

    fn with(trouble: Trouble) -> Self {
        Self { trouble, ..Self::new(100, 50) }
    }

    fn streamed(self, window_units: usize) -> Streamed {
        Streamed::with_windows(Arc::new(self), window_units)
    }
}

impl BlockSource for Made {
    fn width(&self) -> usize {
        1
    }

    fn units(&self) -> usize {
        self.units
    }

    fn blocks(&self) -> usize {
        self.units.div_ceil(self.block_units)
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        block * self.block_units..((block + 1) * self.block_units).min(self.units)
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        self.visit_while(block, &mut |piece| {
            visit(piece);
            true
        })
    }

    fn visit_while(&self, block: usize, visit: &mut dyn FnMut(Block<'_>) -> bool) -> Result<()> {
        let units = self.units_of(block);
        let (mut end, mut width) = (units.end, 1);
        if block == 1 {
            match self.trouble {
                Trouble::None => {}
                Trouble::Fails(times) => {
                    if self.shown.fetch_add(1, Ordering::Relaxed) < times {
                        return Err(Error::Source { block, reason: "of the weather" });
                    }
                }
                Trouble::Panics => panic!("as it should"),
                Trouble::ShowsTooFew => end -= 1,
                Trouble::ShowsAnotherWidth => width = 2,
                Trouble::ShowsTooMany => end += 15,
            }
        }
        for start in (units.start..end).step_by(PIECE) {
            let values: Vec<f64> = (start..(start + PIECE).min(end)).map(|unit| unit as f64).collect();
            if self.trouble == Trouble::None {
                self.shown.fetch_add(values.len(), Ordering::Relaxed);
            }
            if !visit(Block::DenseF64(DenseBlock::new(&values, width))) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The units that a window shows.
fn units_in(streamed: &Streamed, window: usize) -> Result<Vec<usize>> {
    let mut units = Vec::new();
    streamed.visit(window, &mut |block| match block {
        Block::DenseF64(block) => units.extend(block.values.iter().map(|x| *x as usize)),
        _ => panic!("of another kind"),
    })?;
    Ok(units)
}

/// A pass in order, window after window and some of them twice, decodes every unit once.
#[test]
fn a_pass_decodes_the_source_once() {
    for block_units in [100_000, 1000, 64, 3] {
        let source = Made::new(10_007, block_units);
        let shown = source.shown.clone();
        let streamed = source.streamed(64);
        for window in 0..streamed.blocks() {
            for again in [window, window.saturating_sub(1), window] {
                let expected: Vec<usize> = streamed.units_of(again).collect();
                assert_eq!(units_in(&streamed, again).unwrap(), expected);
            }
        }
        assert_eq!(shown.load(Ordering::Relaxed), 10_007, "{block_units}");
    }
}

#[test]
fn steps_in_order_decode_the_source_once() {
    for threads in [1, 2] {
        let source = Made::new(10_007, 4000);
        let shown = source.shown.clone();
        let session = Session::new(Private::new(source.streamed(64)), Adjacency::ReplaceOne).unwrap();
        let session = session.with_threads(threads);
        let noise = Gaussian::new(NoiseMultiplier::new(3.0).unwrap());
        let program = Program::new(noise, Sampling::InOrder { blocks: 500 }, Steps::new(500).unwrap());
        let (run, tickets) = session.authorise(program, Delta::new(1e-5).unwrap()).unwrap();
        let query = ClippedSum::l2(Public(vec![0.0]), 1e5).unwrap();
        tickets.for_each(|ticket| drop(run.sum(&query, ticket).unwrap()));
        assert_eq!(shown.load(Ordering::Relaxed), 10_007);
    }
}

/// Backwards, far ahead and in any order: always the right units.
#[test]
fn windows_may_be_asked_for_in_any_order() {
    for block_units in [100_000, 1000, 7] {
        let streamed = Made::new(5003, block_units).streamed(40);
        let windows = streamed.blocks();
        let jumps = (0..300).map(|i| (i * i * 37 + i) % windows);
        for window in (0..windows).rev().chain(jumps) {
            let expected: Vec<usize> = streamed.units_of(window).collect();
            assert_eq!(units_in(&streamed, window).unwrap(), expected);
        }
    }
    // Whole blocks are skipped, not read.
    let source = Made::new(100_000, 1000);
    let shown = source.shown.clone();
    let streamed = source.streamed(100);
    for window in [3, 500, 990] {
        assert!(units_in(&streamed, window).is_ok());
    }
    assert!(shown.load(Ordering::Relaxed) < 10_000);
}

#[test]
fn troubles_of_the_source_come_out_of_a_visit() {
    let reason = |streamed: &Streamed| {
        // The first block is fine, whatever becomes of the second.
        assert_eq!(units_in(streamed, 0).unwrap(), (0..20).collect::<Vec<_>>());
        match (1..5).find_map(|window| units_in(streamed, window).err()) {
            Some(Error::Source { block: 1, reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(&Made::with(Trouble::Panics).streamed(20)), PANICKED);
    assert_eq!(reason(&Made::with(Trouble::ShowsTooFew).streamed(20)), piece::TOO_FEW);
    assert_eq!(reason(&Made::with(Trouble::ShowsAnotherWidth).streamed(20)), piece::ANOTHER_SHAPE);
    // A failure is not for ever.
    let once = Made::with(Trouble::Fails(1)).streamed(20);
    assert_eq!(reason(&once), "of the weather");
    for window in 0..5 {
        assert_eq!(units_in(&once, window).unwrap(), once.units_of(window).collect::<Vec<_>>());
    }
    // Units beyond the promised ones are not looked at.
    let more = Made::with(Trouble::ShowsTooMany).streamed(20);
    let all: Vec<usize> = (0..5).flat_map(|window| units_in(&more, window).unwrap()).collect();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
}

/// However many rows, and however slowly they are asked for by however many threads.
#[test]
fn few_windows_are_held() {
    const THREADS: usize = 4;
    for block_units in [usize::MAX >> 1, 5000] {
        let streamed = Made::new(1_000_000, block_units.min(1_000_000)).streamed(500);
        // Those kept, those ahead, the one that is filled, one just received, and one for every visitor.
        let bound = streamed.most_kept + AHEAD + 2 + THREADS;
        let (next, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    loop {
                        let window = next.fetch_add(1, Ordering::Relaxed);
                        if window >= streamed.blocks() {
                            return;
                        }
                        streamed
                            .visit(window, &mut |_| {
                                if window % 512 == 0 {
                                    thread::sleep(Duration::from_millis(2));
                                }
                                // One is of the table itself, one of its reader.
                                let windows = Arc::strong_count(&streamed.alive) - 1;
                                most.fetch_max(windows, Ordering::Relaxed);
                            })
                            .unwrap();
                    }
                });
            }
        });
        let most = most.load(Ordering::Relaxed);
        assert!(most > 1 && most <= bound + 1, "{most} of {bound}");
    }
}

/// Its thread is gone soon after it is, wherever it was.
#[test]
fn a_dropped_stream_lets_its_source_go() {
    let source = Arc::new(Made::new(usize::MAX >> 8, usize::MAX >> 8));
    let streamed = Streamed::with_windows(source.clone(), 64);
    assert!(units_in(&streamed, 5).is_ok());
    assert!(Arc::strong_count(&source) > 1);
    drop(streamed);
    let begun = Instant::now();
    while Arc::strong_count(&source) > 1 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether rows fit is told where their number is, and makes no other difference.
#[test]
fn sessions_arrange_their_rows() {
    let released = |adjacency, memory: u64| {
        let session = Session::new(Private::new(table(false, 0..ROWS, 64)), adjacency).unwrap();
        let session = session.with_randomness(Randomness::Seed(4)).arranged(memory).unwrap();
        let sampling = Sampling::Poisson { rate: SampleRate::new(0.1).unwrap() };
        let noise = Gaussian::new(NoiseMultiplier::new(3.0).unwrap());
        let program = Program::new(noise, sampling, Steps::new(2).unwrap());
        let (run, tickets) = session.authorise(program, Delta::new(1e-5).unwrap()).unwrap();
        let query = ClippedSum::l2(Public(vec![0.1; WIDTH]), 1.0).unwrap();
        let values: Vec<Vec<f64>> =
            tickets.map(|ticket| run.noise(run.sum(&query, ticket).unwrap()).unwrap().to_vec()).collect();
        (session.is_streamed(), values)
    };
    let bytes = (ROWS * WIDTH * 4) as u64;
    for adjacency in [Adjacency::ReplaceOne, Adjacency::AddRemove] {
        let told = |streams| (adjacency == Adjacency::ReplaceOne).then_some(streams);
        let (streams, expected) = released(adjacency, u64::MAX);
        assert_eq!(streams, told(false));
        assert_eq!(released(adjacency, bytes), (told(false), expected.clone()));
        assert_eq!(released(adjacency, bytes - 1), (told(true), expected.clone()));
        assert_eq!(released(adjacency, 0), (told(true), expected));
    }
}
