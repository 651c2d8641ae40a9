//! Tables in memory: the same rows as from a file, read where they lie.

mod support;

use semidp_core::{
    Adjacency, Block, BlockSource, ClippedSum, Delta, Gaussian, NoiseMultiplier, Private, Program, Public,
    Randomness, SampleRate, Sampling, Session, Steps,
};
use semidp_table::{
    Attached, Encoding, Error, Feature, Grid, LoadOptions, MemoryTable, Numbers, Schema, View, is_sparse,
    open_private, open_public,
};
use std::path::Path;
use std::sync::Arc;
use support::{category, number, private_rows, rows, write};

/// Numbers of 3 columns, in every way that they can lie.
enum Layout {
    Rows(Vec<f64>),
    Single(Vec<f32>),
    Columns(Vec<f64>),
    Sparse { offsets: Vec<i64>, places: Vec<i32>, numbers: Vec<f64> },
}

const COLUMNS: usize = 3;

impl Grid for Layout {
    fn view(&self) -> View<'_> {
        let dense = |numbers, count: usize, row_stride, column_stride| View::Dense {
            numbers,
            rows: count / COLUMNS,
            columns: COLUMNS,
            row_stride,
            column_stride,
        };
        match self {
            Self::Rows(all) => dense(Numbers::F64(all), all.len(), COLUMNS, 1),
            Self::Single(all) => dense(Numbers::F32(all), all.len(), COLUMNS, 1),
            Self::Columns(all) => dense(Numbers::F64(all), all.len(), 1, all.len() / COLUMNS),
            Self::Sparse { offsets, places, numbers } => {
                View::Sparse { offsets, places, numbers: Numbers::F64(numbers), columns: COLUMNS }
            }
        }
    }
}

fn layouts(cells: &[f64]) -> Vec<Layout> {
    let count = cells.len() / COLUMNS;
    let by_columns = (0..cells.len()).map(|at| cells[at % count * COLUMNS + at / count]).collect();
    let (mut offsets, mut places, mut numbers) = (vec![0], Vec::new(), Vec::new());
    for row in cells.chunks(COLUMNS) {
        for (place, cell) in row.iter().enumerate().filter(|(_, cell)| **cell != 0.0) {
            places.push(place as i32);
            numbers.push(*cell);
        }
        offsets.push(numbers.len() as i64);
    }
    vec![
        Layout::Rows(cells.to_vec()),
        Layout::Single(cells.iter().map(|cell| *cell as f32).collect()),
        Layout::Columns(by_columns),
        Layout::Sparse { offsets, places, numbers },
    ]
}

/// Exact in either precision; some are missing, infinite, zero or out of range.
fn cells(count: usize) -> Vec<f64> {
    let cell = |at: usize| match at * at % 11 {
        3 => f64::NAN,
        5 => f64::INFINITY,
        7 | 8 => 0.0,
        other => (at % 17) as f64 * 0.25 - other as f64,
    };
    (0..count * COLUMNS).map(cell).collect()
}

fn schema() -> Schema {
    let columns = [
        number("x0", 0.5, Some((-3.0, 3.0))),
        number("x1", -1.0, None),
        number("x2", 0.0, Some((-1.0, 9.0))),
    ];
    Schema::new(columns.to_vec()).unwrap()
}

fn csv(name: &str, cells: &[f64]) -> std::path::PathBuf {
    let mut text = "x0,x1,x2\n".to_string();
    for row in cells.chunks(COLUMNS) {
        text += &row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    write(name, text)
}

fn attach(layout: Layout, count: usize) -> Attached {
    let names = ["x0", "x1", "x2"].map(String::from).to_vec();
    Attached::new("rows", MemoryTable::new(count).with_numbers(names, Arc::new(layout)).unwrap())
}

#[test]
fn rows_are_those_of_a_file() {
    let cells = cells(200);
    let expected = private_rows(&csv("memory-rows.csv", &cells), &schema());
    for layout in layouts(&cells) {
        let attached = attach(layout, 200);
        assert_eq!(private_rows(attached.path(), &schema()), expected);
    }
}

/// What is learned from public rows, too.
#[test]
fn a_schema_is_that_of_a_file() {
    let cells = cells(50);
    let expected = Schema::infer(csv("memory-schema.csv", &cells), None).unwrap().schema;
    for (at, layout) in layouts(&cells).into_iter().enumerate() {
        let attached = attach(layout, 50);
        assert_eq!(Schema::infer(attached.path(), None).unwrap().schema, expected);
        assert_eq!(is_sparse(attached.path()), at == 3);
    }
    assert!(!is_sparse(Path::new("memory-schema.csv")));
}

/// Those rows that are asked for, and no others; with zeros left out where they were left out and stay zeros.
#[test]
fn some_rows_are_the_same_rows() {
    let cells = cells(100);
    // The second order needs the long way for sparse rows, whose entries must rise; the third has no zeros.
    for (order, shift, stays_sparse) in
        [([0, 1, 2], 0.0, true), ([0, 2, 1], 0.0, false), ([0, 1, 2], 1.0, false)]
    {
        let feature = |column| Feature::Number { column, shift, scale: 2.0 };
        let encoding = Encoding::new(&schema(), order.map(feature).to_vec()).unwrap();
        for (at, layout) in layouts(&cells).into_iter().enumerate() {
            some_rows_of(attach(layout, 100), &encoding, stays_sparse && at == 3);
        }
    }
}

fn some_rows_of(attached: Attached, encoding: &Encoding, is_sparse: bool) {
    let options = LoadOptions::default().rows_per_block(64);
    let table = open_public(attached.path(), &schema(), encoding, options).unwrap();
    assert!(table.is_resident());
    let all = rows(&*table);
    let chosen = [0, 3, 4, 17, 35];
    let mut found = Vec::new();
    let mut was_sparse = false;
    table
        .visit_some(1, &chosen, &mut |piece| match piece {
            Block::DenseF32(block) => {
                found.extend(block.values().chunks(3).map(<[f32]>::to_vec));
            }
            Block::CsrF32(block) => {
                was_sparse = true;
                for pair in block.offsets.windows(2) {
                    let mut row = vec![0.0; 3];
                    for entry in pair[0]..pair[1] {
                        row[block.columns[entry] as usize] = block.values[entry];
                    }
                    found.push(row);
                }
            }
            _ => panic!("of another kind"),
        })
        .unwrap();
    let expected: Vec<Vec<f32>> = chosen.iter().map(|place| all[64 + place].to_vec()).collect();
    assert_eq!(found, expected);
    assert_eq!(was_sparse, is_sparse);
}

/// The kernel's sums over samples are the same numbers, wherever the rows are.
#[test]
fn sums_are_those_of_a_file() {
    let cells = cells(3000);
    let encoding = Encoding::with_shift_and_scale(&schema(), |column| (0.25 * column as f64, 3.0)).unwrap();
    let released = |path: &Path| -> Vec<f64> {
        let table = open_private(path, &schema(), &encoding, LoadOptions::default()).unwrap();
        let rows: Private<_> = table;
        let session = Session::new(rows, Adjacency::ReplaceOne).unwrap().with_randomness(Randomness::Seed(5));
        let sampling = Sampling::Poisson { rate: SampleRate::new(0.3).unwrap() };
        let noise = Gaussian::new(NoiseMultiplier::new(0.5).unwrap());
        let program = Program::new(noise, sampling, Steps::new(3).unwrap());
        let (run, tickets) = session.authorise(program, Delta::new(1e-5).unwrap()).unwrap();
        let query = ClippedSum::l2(Public(vec![0.0; 3]), 2.0).unwrap();
        let sums = tickets.map(|ticket| run.noise(run.sum(&query, ticket).unwrap()).unwrap());
        sums.flat_map(|sum| sum.to_vec()).collect()
    };
    let expected = released(&csv("memory-sums.csv", &cells));
    // One private cell can decide whether a column is of single or double precision, so that this must not change the others.
    let singles: Vec<u8> = cells.iter().flat_map(|cell| (*cell as f32).to_le_bytes()).collect();
    let file = write("memory-sums.npy", support::npy(1, "<f4", false, "(3000, 3)", &singles));
    assert_eq!(released(&file), expected);
    for layout in layouts(&cells) {
        let attached = attach(layout, 3000);
        assert_eq!(released(attached.path()), expected);
    }
}

#[test]
fn categories_lie_beside_numbers() {
    let numbers = Layout::Rows(vec![1.0, 2.0, 3.0, 31.0, 5.0, 6.0]);
    let names = ["x0", "x1", "x2"].map(String::from).to_vec();
    let table = MemoryTable::new(2).with_numbers(names, Arc::new(numbers)).unwrap();
    let table = table.with_category("sex".into(), vec![1, -1], vec!["f".into(), "m".into()]).unwrap();
    assert!(!format!("{table:?}").contains("31"), "cells are not told");
    let attached = Attached::new("rows", table);
    let schema = Schema::new(vec![number("x1", 0.0, None), category("sex", &["f", "m"])]).unwrap();
    assert_eq!(private_rows(attached.path(), &schema), [[2.0, 0.0, 1.0, 0.0], [5.0, 0.0, 0.0, 1.0]]);
    let learned = Schema::infer(attached.path(), None).unwrap().schema;
    assert_eq!(learned.columns()[3], category("sex", &["m"]), "values that occur");
}

#[test]
fn tables_are_attached_for_a_while() {
    let attached = attach(Layout::Rows(vec![1.0, 2.0, 3.0]), 1);
    let path = attached.path().to_path_buf();
    assert!(path.ends_with("rows"));
    let encoding = Encoding::identity(&schema()).unwrap();
    let open = || open_public(&path, &schema(), &encoding, LoadOptions::default());
    let opened = open().unwrap();
    drop(attached);
    assert!(matches!(open(), Err(Error::Unreadable { .. })));
    assert_eq!(rows(&*opened).len(), 1, "what was opened stays good");
}

#[test]
fn shapes_must_fit() {
    let grid = || Arc::new(Layout::Rows(vec![1.0; 6]));
    let names = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
    assert!(MemoryTable::new(2).with_numbers(names(3), grid()).is_ok());
    assert!(matches!(MemoryTable::new(3).with_numbers(names(3), grid()), Err(Error::Ragged { .. })));
    assert!(matches!(MemoryTable::new(2).with_numbers(names(2), grid()), Err(Error::Ragged { .. })));
    assert!(MemoryTable::new(2).with_category("c".into(), vec![0], vec!["x".into()]).is_err());
    // A sparse grid whose offsets make no sense has empty rows; nobody reads beyond its end.
    let torn = Layout::Sparse { offsets: vec![0, 9, 1], places: vec![0], numbers: vec![5.0] };
    let attached = attach(torn, 2);
    assert_eq!(private_rows(attached.path(), &schema())[0], [0.0, 0.0, 0.0]);
}
