//! What privacy rests on, tested on the exact integers: contributions are bounded whatever a row
//! holds; a unit moves the sum by its own contribution, which nothing else in the table changes; and
//! threads, blocks and shards do not change a bit.

mod gradients;
mod programs;

use super::*;
use crate::data::{Assignment, Draw};
use crate::*;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use semidp_accounting::{Arithmetic, CountedEvent, RandomSource, epsilon};
use std::slice::from_ref;

/// A row with all its values, and the columns that a sparse table stores of it, well-formed or not.
#[derive(Debug, Clone)]
struct Row {
    values: Vec<f64>,
    columns: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Storage {
    DenseF32,
    DenseF64,
    CsrF32,
    CsrF64,
}
use Storage::*;

const STORAGES: [Storage; 4] = [DenseF32, DenseF64, CsrF32, CsrF64];

impl Row {
    fn new(values: Vec<f64>) -> Self {
        Self { columns: (0..values.len() as u32).collect(), values }
    }

    /// The values that a table stores, before it rounds them.
    fn stored(&self, storage: Storage) -> Vec<f64> {
        match storage {
            DenseF32 | DenseF64 => self.values.clone(),
            CsrF32 | CsrF64 => {
                self.columns.iter().map(|&c| self.values[c as usize % self.values.len()]).collect()
            }
        }
    }

    /// Whether the row must contribute nothing: its columns are malformed or an entry is not finite.
    fn is_void(&self, storage: Storage) -> bool {
        let malformed = self.columns.windows(2).any(|pair| pair[0] >= pair[1])
            || self.columns.iter().any(|&c| c as usize >= self.values.len());
        let finite = |x: &f64| match storage {
            DenseF32 | CsrF32 => (*x as f32).is_finite(),
            DenseF64 | CsrF64 => x.is_finite(),
        };
        matches!(storage, CsrF32 | CsrF64) && malformed || !self.stored(storage).iter().all(finite)
    }
}

/// Any of the four kinds of table.
type Table = Box<dyn BlockSource>;

fn table(storage: Storage, rows: &[Row], width: usize, rows_per_block: usize) -> Table {
    let values: Vec<f64> = rows.iter().flat_map(|row| row.stored(storage)).collect();
    let single = values.iter().map(|&x| x as f32).collect();
    let columns: Vec<u32> = rows.iter().flat_map(|row| row.columns.clone()).collect();
    let ends = rows.iter().scan(0, |end, row| {
        *end += row.columns.len();
        Some(*end)
    });
    let offsets: Vec<usize> = std::iter::once(0).chain(ends).collect();
    match storage {
        DenseF32 => Box::new(DenseTable::with_blocks(single, width, rows_per_block).unwrap()),
        DenseF64 => Box::new(DenseTable::with_blocks(values, width, rows_per_block).unwrap()),
        CsrF32 => {
            let table = CsrTable::new(offsets, columns, single, width).unwrap();
            Box::new(table.with_blocks(rows_per_block).unwrap())
        }
        CsrF64 => {
            let table = CsrTable::new(offsets, columns, values, width).unwrap();
            Box::new(table.with_blocks(rows_per_block).unwrap())
        }
    }
}

fn empty_table(width: usize) -> Table {
    table(DenseF32, &[], width, 1)
}

/// The bound on a norm, checked in integers that cannot overflow here.
trait Exact: Norm {
    fn is_within(vector: &[i64], bound: u64) -> bool;
}

impl Exact for L1 {
    fn is_within(vector: &[i64], bound: u64) -> bool {
        vector.iter().map(|&k| i128::from(k).abs()).sum::<i128>() <= i128::from(bound)
    }
}

impl Exact for L2 {
    fn is_within(vector: &[i64], bound: u64) -> bool {
        vector.iter().map(|&k| i128::from(k).pow(2)).sum::<i128>() <= i128::from(bound).pow(2)
    }
}

/// Threads, and rows in a block: neither may matter.
type Layout = (usize, usize);
const PLAIN: Layout = (1, 1000);
const LAYOUTS: [Layout; 9] =
    [(1, 1), (1, 3), (1, 1000), (2, 1), (2, 3), (2, 1000), (7, 1), (7, 3), (7, 1000)];

fn noise(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

fn poisson(rate: f64) -> Sampling {
    Sampling::Poisson { rate: SampleRate::new(rate).unwrap() }
}

fn session(table: Table, adjacency: Adjacency, seed: u64, threads: usize) -> Session<Table> {
    let session = Session::new(Private::new(table), adjacency).unwrap();
    session.with_randomness(Randomness::Seed(seed)).with_threads(threads)
}

/// Everyone's sum. Pure noise is the quickest to account for, and a sum does not know its noise.
fn sum<N: Norm>(query: &ClippedSum<N>, storage: Storage, rows: &[Row], layout: Layout) -> Vec<i64> {
    let table = table(storage, rows, query.width(), layout.1);
    let session = session(table, Adjacency::AddRemove, 1, layout.0);
    let program = Program::new(Laplace::new(noise(1.0)), Sampling::Everyone, Steps::ONE);
    let (run, mut tickets) = session.authorise(program, delta(0.0)).unwrap();
    run.sum(query, tickets.next().unwrap()).unwrap().sum().to_vec()
}

/// The sum of a Poisson sample.
fn sampled(query: &ClippedSum<L2>, rows: &[Row], (rate, seed): (f64, u64), layout: Layout) -> Vec<i64> {
    let table = table(DenseF64, rows, query.width(), layout.1);
    let session = session(table, Adjacency::AddRemove, seed, layout.0);
    let program = Program::new(Gaussian::new(noise(1.0)), poisson(rate), Steps::ONE);
    let (run, mut tickets) = session.authorise(program, delta(1e-5)).unwrap();
    run.sum(query, tickets.next().unwrap()).unwrap().sum().to_vec()
}

/// The units of that sample.
fn chosen(units: usize, (rate, seed): (f64, u64)) -> Vec<usize> {
    let (key, assignment) = (Randomness::Seed(seed).key(0).unwrap(), Assignment::default());
    let (sampling, adjacency) = (poisson(rate), Adjacency::AddRemove);
    let draw = Draw { sampling, adjacency, units, key: &key, assignment: &assignment };
    draw.select(0).within(0..units)
}

fn plus(a: Vec<i64>, b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn minus(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Numbers at which floating-point code goes wrong, in one precision or the other.
#[rustfmt::skip]
const STRANGE: [f64; 17] = [
    f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1e308, 1e155, 3.4e38, -1e38, 1e20,
    1e-23, -1e-40, 1e-45, 1e-162, 1e-310, -5e-324, 0.0, -0.0,
];

#[derive(Debug, Clone)]
struct Case {
    centre: Vec<f64>,
    clip_norm: f64,
    rows: Vec<Row>,
    /// Not in the table, to be exchanged for a row that is.
    stranger: Row,
}

impl Case {
    fn l1(&self) -> ClippedSum<L1> {
        ClippedSum::l1(Public(self.centre.clone()), self.clip_norm).unwrap()
    }

    fn l2(&self) -> ClippedSum<L2> {
        ClippedSum::l2(Public(self.centre.clone()), self.clip_norm).unwrap()
    }
}

fn values(centre: Vec<f64>, clip_norm: f64) -> impl Strategy<Value = Vec<f64>> + Clone {
    let width = centre.len();
    let root = (width as f64).sqrt();
    let about = move |row: Vec<f64>| row.iter().zip(&centre).map(|(x, c)| x + c).collect::<Vec<f64>>();
    // Longer than C or shorter, about equally often.
    let ordinary = prop::collection::vec((-1.7..1.7f64).prop_map(move |x| x * clip_norm / root), width);
    let mixed = prop::collection::vec(prop_oneof![3 => -2.0..2.0f64, 1 => select(&STRANGE[..])], width);
    // Norm C exactly: a 3-4-5 triangle in ℓ2, quarters in ℓ1, a single entry in both. And between the
    // bound and C, if C is nearly a step above the bound: too long only when counted in steps.
    let grid = Grid::new(clip_norm, width).unwrap();
    let short = (0.6 * clip_norm / grid.step()).trunc();
    let long = ((clip_norm / grid.step()).powi(2) - short * short).sqrt().trunc();
    let between = (short * grid.step() / clip_norm, long * grid.step() / clip_norm);
    let pairs = select(vec![(0.6, 0.8), (-0.8, 0.6), (0.25, -0.75), (1.0, 0.0), between]);
    let tie = (any::<Index>(), any::<Index>(), pairs).prop_map(move |(i, j, (a, b))| {
        let mut row = vec![0.0; width];
        row[j.index(width)] = b * clip_norm;
        row[i.index(width)] = if i.index(width) == j.index(width) { clip_norm } else { a * clip_norm };
        row
    });
    let level = select(vec![clip_norm / root, clip_norm / width as f64, 1e-12]);
    let equal = prop_oneof![select(&STRANGE[..]), level].prop_map(move |x| vec![x; width]);
    prop_oneof![
        4 => ordinary.prop_map(about.clone()),
        3 => mixed,
        2 => tie.prop_map(about.clone()),
        2 => equal.clone(),
        1 => equal.prop_map(about),
    ]
}

fn columns(width: usize) -> impl Strategy<Value = Vec<u32>> + Clone {
    let all: Vec<u32> = (0..width as u32).collect();
    prop_oneof![
        3 => Just(all.clone()),
        3 => prop::sample::subsequence(all.clone(), 0..=width),
        // Twice the same, out of order, out of range, or anything.
        1 => any::<Index>().prop_map(move |i| vec![i.index(width) as u32; 2]),
        1 => Just(all.into_iter().rev().collect()),
        1 => Just((1..=width as u32).collect()),
        1 => prop::collection::vec(0..2 * width as u32, 0..10),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let clip_norms = prop_oneof![
        3 => select(vec![5.0, 0.625, 1.0, 0.1, 1.999_999]),
        1 => select(vec![3e7, 1e-15, 1e-10, 1e10, 1e15]),
    ];
    let centred = (1usize..=70, clip_norms).prop_flat_map(|(width, clip_norm)| {
        // Eighths: what is added to them stays exact.
        let near = prop::collection::vec((-16i8..16).prop_map(|c| f64::from(c) / 8.0), width);
        let far = select(vec![-0.0, 1e-40, 1e30, -1e30]).prop_map(move |c| vec![c; width]);
        (prop_oneof![3 => Just(vec![0.0; width]), 3 => near, 1 => far], Just(clip_norm))
    });
    centred.prop_flat_map(|(centre, clip_norm)| {
        let row = (values(centre.clone(), clip_norm), columns(centre.len()))
            .prop_map(|(values, columns)| Row { values, columns });
        (prop::collection::vec(row.clone(), 1..=40), row).prop_map(move |(rows, stranger)| Case {
            centre: centre.clone(),
            clip_norm,
            rows,
            stranger,
        })
    })
}

type Checked = std::result::Result<(), TestCaseError>;

/// Every unit's contribution, in a table of its own.
fn contributions<N: Norm>(query: &ClippedSum<N>, storage: Storage, rows: &[Row]) -> Vec<Vec<i64>> {
    rows.iter().map(|row| sum(query, storage, from_ref(row), PLAIN)).collect()
}

fn check_bound<N: Exact>(query: &ClippedSum<N>, storage: Storage, rows: &[Row]) -> Checked {
    for (row, contribution) in rows.iter().zip(contributions(query, storage, rows)) {
        let bounded = N::is_within(&contribution, query.grid().clip_steps());
        prop_assert!(bounded, "{:?} {:?}: {:?}", storage, row, contribution);
        let nothing = contribution.iter().all(|&k| k == 0);
        prop_assert!(nothing || !row.is_void(storage), "{:?} {:?}: {:?}", storage, row, contribution);
    }
    Ok(())
}

/// Removes and exchanges `unit`, in the whole table and beside other companions.
fn check_changes<N: Exact>(query: &ClippedSum<N>, storage: Storage, case: &Case, unit: usize) -> Checked {
    let clip_steps = query.grid().clip_steps();
    let each = contributions(query, storage, &case.rows);
    let stranger = sum(query, storage, from_ref(&case.stranger), PLAIN);
    let total = each.iter().fold(vec![0; query.width()], |total, one| plus(total, one));
    for layout in LAYOUTS {
        prop_assert_eq!(&sum(query, storage, &case.rows, layout), &total, "{:?}", layout);
    }
    let (mut without, mut exchanged) = (case.rows.clone(), case.rows.clone());
    let row = without.remove(unit);
    exchanged[unit] = case.stranger.clone();
    for threads in [1, 2, 7] {
        let change = minus(&total, &sum(query, storage, &without, (threads, 3)));
        prop_assert_eq!(&change, &each[unit]);
        prop_assert!(N::is_within(&change, clip_steps));
        let change = minus(&sum(query, storage, &exchanged, (threads, 3)), &total);
        prop_assert_eq!(&change, &minus(&stranger, &each[unit]));
        prop_assert!(N::is_within(&change, 2 * clip_steps));
    }
    let (front, back) = without.split_at(without.len() / 2);
    let twice: Vec<Row> = without.iter().rev().chain(&without).cloned().collect();
    for companions in [front, back, &twice, from_ref(&case.stranger)] {
        let mut together = companions.to_vec();
        together.insert(companions.len() / 3, row.clone());
        let with = sum(query, storage, &together, (2, 3));
        let without = sum(query, storage, companions, PLAIN);
        prop_assert_eq!(&minus(&with, &without), &each[unit]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_contribution_is_longer_than_the_bound(case in cases()) {
        for storage in STORAGES {
            check_bound(&case.l1(), storage, &case.rows)?;
            check_bound(&case.l2(), storage, &case.rows)?;
        }
    }

    #[test]
    fn a_unit_changes_the_sum_by_its_contribution(
        case in cases(),
        unit in any::<Index>(),
        storage in select(&STORAGES[..]),
    ) {
        let unit = unit.index(case.rows.len());
        check_changes(&case.l1(), storage, &case, unit)?;
        check_changes(&case.l2(), storage, &case, unit)?;
    }

    /// In two heaps, in any order.
    #[test]
    fn shards_merge_in_any_order(
        case in cases(),
        order in select(vec![1, 2, 5, 64]).prop_flat_map(|n| Just((0..n).collect::<Vec<usize>>()).prop_shuffle()),
        heap in any::<Index>(),
        layout in select(&LAYOUTS[..]),
    ) {
        let query = case.l2();
        let table = table(DenseF32, &case.rows, query.width(), layout.1);
        let session = session(table, Adjacency::AddRemove, 1, layout.0);
        let program = Program::new(KNorm::new(noise(1.0)), Sampling::Everyone, Steps::ONE);
        let (run, mut tickets) = session.authorise(program, delta(0.0)).unwrap();
        let shards = run.shards(&query, tickets.next().unwrap(), order.len() as u32).unwrap();
        let mut shards: Vec<_> = shards.into_iter().map(Some).collect();
        let mut heaps = order.split_at(heap.index(order.len()) + 1);
        let mut merged = |heap: &mut &[usize]| {
            let parts = heap.iter().map(|&shard| shards[shard].take().unwrap());
            parts.reduce(|sum, part| sum.merge(part).unwrap())
        };
        let first = merged(&mut heaps.0).unwrap();
        let all = match merged(&mut heaps.1) {
            Some(second) => second.merge(first).unwrap(),
            None => first,
        };
        prop_assert_eq!(all.sum(), &sum(&query, DenseF32, &case.rows, PLAIN)[..]);
        prop_assert!(run.noise(all).is_ok());
    }
}

proptest! {
    // Accounting for a sampled step takes longer than the step.
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_sampled_unit_changes_the_sum_by_its_contribution(
        case in cases(),
        unit in any::<Index>(),
        draw in (select(vec![0.1, 0.5, 0.9]), any::<u64>()),
    ) {
        let (query, rows) = (case.l2(), &case.rows);
        let each = contributions(&query, DenseF64, rows);
        let chosen = chosen(rows.len(), draw);
        let if_chosen =
            |unit, change: Vec<i64>| if chosen.contains(&unit) { change } else { vec![0; query.width()] };
        let total = chosen.iter().fold(vec![0; query.width()], |total, &unit| plus(total, &each[unit]));
        for layout in [(1, 1000), (2, 1), (7, 3)] {
            prop_assert_eq!(&sampled(&query, rows, draw, layout), &total);
        }
        let unit = unit.index(rows.len());
        let mut exchanged = rows.clone();
        exchanged[unit] = case.stranger.clone();
        let change = minus(&sampled(&query, &exchanged, draw, (2, 3)), &total);
        let stranger = sum(&query, DenseF64, from_ref(&case.stranger), PLAIN);
        prop_assert_eq!(&change, &if_chosen(unit, minus(&stranger, &each[unit])));
        prop_assert!(L2::is_within(&change, 2 * query.grid().clip_steps()));
        // The last unit can be removed without moving others to places with other draws.
        let last = rows.len() - 1;
        let change = minus(&total, &sampled(&query, &rows[..last], draw, (2, 3)));
        prop_assert_eq!(&change, &if_chosen(last, each[last].clone()));
        prop_assert!(L2::is_within(&change, query.grid().clip_steps()));
    }

    /// Bounds alone would let a kernel pass that drops every row.
    #[test]
    fn ordinary_rows_are_clipped_as_defined(
        rows in (1usize..=70).prop_flat_map(|width| {
            prop::collection::vec(prop::collection::vec(-1.0..1.0f64, width), 1..9)
        }),
        // The squares of the second overflow in single precision, those of the third in double.
        (magnitude, storages) in select(vec![(1.0, &STORAGES[..]), (1e25, &STORAGES), (1e170, &[DenseF64, CsrF64])]),
        clip_norm in 0.5..20.0f64,
        centre in prop_oneof![Just(0.0), -1.0..1.0f64],
    ) {
        let query = ClippedSum::l2(Public(vec![centre; rows[0].len()]), clip_norm).unwrap();
        for row in rows {
            let offsets: Vec<f64> = row.iter().map(|x| x - centre / magnitude).collect();
            let norm = offsets.iter().map(|x| x * x).sum::<f64>().sqrt();
            let shrink = (clip_norm / norm).min(magnitude);
            for &storage in storages {
                let row = Row::new(row.iter().map(|x| x * magnitude).collect());
                let found = sum(&query, storage, &[row], PLAIN);
                let steps = found.iter().map(|&k| k as f64 * query.grid().step());
                let square: f64 = offsets.iter().zip(steps).map(|(x, y)| (x * shrink - y).powi(2)).sum();
                // Truncation and a second attempt move by less than 2^-16 of C each, single precision by
                // far less.
                prop_assert!(square.sqrt() < clip_norm * 2f64.powi(-15), "{:?} {}", storage, magnitude);
            }
        }
    }
}

/// More rows than the 32-bit sums hold, all at the bound, in runs of any length: beside them rows that
/// are dropped, or taken back when the sums are nearly full.
#[test]
fn sums_beyond_32_bits_are_exact() {
    // Numbers of either precision. The number of rows that 32 bits hold is odd for some, even for others.
    for clip_norm in [1.0, 1.25, 1.5, f64::from(2f32.next_down())] {
        let query = ClippedSum::l2(Public(vec![0.0; 3]), clip_norm).unwrap();
        let (most, full) = (query.grid().clip_steps() as i64, i64::from(i32::MAX));
        let kinds = [[clip_norm, 0.0, 0.0], [1e38, 0.0, 0.0], [9.0, 0.0, f64::NAN], [1.5, -1.2, 1.1]];
        let kinds = kinds.map(|values| Row::new(values.to_vec()));
        for storage in STORAGES {
            let each = contributions(&query, storage, &kinds);
            assert_eq!(each[0], [most, 0, 0], "{storage:?} {clip_norm}");
            // Every n-th row is of another kind; 0 for none.
            for (every, other) in [(0, 0), (2, 1), (3, 2), (1025, 2), (1500, 2), (7, 3)] {
                let kind = |i: usize| if every > 0 && i % every == every - 1 { other } else { 0 };
                let rows: Vec<Row> = (0..9000).map(|i| kinds[kind(i)].clone()).collect();
                let expected = (0..9000).fold(vec![0; 3], |total, i| plus(total, &each[kind(i)]));
                assert!(expected[0] > 2 * full);
                for layout in [(1, 9000), (2, 4095), (7, 64)] {
                    let found = sum(&query, storage, &rows, layout);
                    assert_eq!(found, expected, "{storage:?} {clip_norm} {every} {other} {layout:?}");
                }
            }
        }
    }
}

/// A row no longer than C, whose integers are longer than C rounded down, is shrunk and not dropped.
#[test]
fn a_row_between_the_bound_and_the_clip_norm_counts() {
    let clip_norm = 2.0f64.next_down();
    let query = ClippedSum::l2(Public(vec![0.0; 20]), clip_norm).unwrap();
    let most = query.grid().clip_steps() as i64;
    let short = most * 3 / 5;
    // The square root of (most + 1)² − 1 − short², rounded down.
    let long = (most * (most + 2) - short * short).isqrt();
    assert!(short * short + long * long > most * most);
    let mut values = vec![0.0; 20];
    (values[3], values[17]) = (short as f64 * query.grid().step(), long as f64 * query.grid().step());
    for storage in STORAGES {
        let found = sum(&query, storage, &[Row::new(values.clone())], PLAIN);
        assert!(L2::is_within(&found, most as u64), "{storage:?}");
        // Shrunk by 2^-16 and a little, and truncated.
        assert!(short - found[3] < short >> 15 && long - found[17] < long >> 15, "{storage:?} {found:?}");
    }
}
