//! From a file to numbers: features, targets, and labels that are not known.

use semidp::Error;
use semidp::model::{Columns, Target, Task};
use semidp_core::BlockSource;
use semidp_table::{Attached, Column, Feature, Grid, Kind, LoadOptions, MemoryTable, Numbers, Schema, View};
use std::path::PathBuf;
use std::sync::Arc;

/// A file of one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tables_{name}.csv"));
    std::fs::write(&path, text).unwrap();
    path
}

fn learn(name: &str, text: &str, target: &str, task: Task) -> (Result<Columns, Error>, PathBuf) {
    let path = file(name, text);
    let schema = Schema::infer(&path, None).unwrap().schema;
    (Columns::learn(schema, target, task, Some(&path)), path)
}

fn number(name: &str, range: Option<(f64, f64)>) -> Column {
    Column { name: name.into(), kind: Kind::Number { impute: range.map_or(0.0, |(least, _)| least), range } }
}

#[test]
fn numbers_are_standardised_by_public_rows() {
    let text = "x,same,c,y\n1,5,b,10\n3,5,a,30\n,5,,20\n5,5,b,nan\n3,5,b,inf\n";
    let (columns, path) = learn("standard", text, "y", Task::Regression);
    let columns = columns.unwrap();
    assert_eq!(columns.names(), ["x", "c=a", "c=b", "c=other"]);
    assert_eq!(columns.constant(), ["same"]);
    let (rows, unknown) = columns.public_rows(&path).unwrap();
    assert_eq!((rows.len(), unknown), (3, 2));
    // The gap counts as the mean, which is 3.
    let Feature::Number { shift, scale, .. } = columns.features()[0] else { panic!("x is a number") };
    assert!((shift - 3.0).abs() < 1e-6 && scale > 0.0);
    let x = |row| rows.dot(row, &[1.0, 0.0, 0.0, 0.0]);
    assert!(x(0) < 0.0 && x(1) == 0.0 && x(2) == 0.0 && (x(0) + 2.0 / scale).abs() < 1e-6);
    let colour =
        |row| (1..4).position(|j| rows.dot(row, &[0, 1, 2, 3].map(|at| f64::from(u8::from(at == j)))) == 1.0);
    assert_eq!([colour(0), colour(1), colour(2)], [Some(1), Some(0), Some(2)]);
    // Labels are in units of the target's spread about its middle.
    let target = columns.target();
    for (row, y) in [10.0, 30.0, 20.0].into_iter().enumerate() {
        assert!((target.decode(rows.label(row)) - y).abs() < 1e-5 && target.task() == Task::Regression);
    }
}

/// A target that does not vary still has a middle.
#[test]
fn constant_numbers_as_targets() {
    let (columns, path) = learn("constant", "x,y\n1,1000000\n2,1000000\n4,1000000\n", "y", Task::Regression);
    let columns = columns.unwrap();
    assert_eq!(*columns.target(), Target::Number { column: "y".into(), shift: 1e6, scale: 1.0 });
    assert_eq!(columns.public_rows(&path).unwrap().0.label(0), 0.0);
}

#[test]
fn classes_by_name_and_by_number() {
    let (columns, path) = learn("names", "x,y\n1,b\n2,a\n3,\n4,b\n5,other\n", "y", Task::Classification);
    let columns = columns.unwrap();
    assert_eq!(columns.target().classes(), ["a", "b"]);
    let (rows, unknown) = columns.public_rows(&path).unwrap();
    assert_eq!((rows.len(), unknown), (3, 2));
    assert_eq!([rows.label(0), rows.label(1), rows.label(2)], [1.0, 0.0, 1.0]);
    for (text, classes) in [
        ("x,y\n1,1\n2,0\n3,\n", &["0", "1"][..]),
        ("x,y\n1,-1\n2,1\n3,NA\n", &["-1", "1"]),
        ("x,y\n1,2\n2,5\n3,4\n4,inf\n", &["2", "3", "4", "5"]),
        ("x,y\n1,1e9\n2,1000000001\n3,x\n", &["1000000000", "1000000001"]),
        ("x,y\n1,0.1\n2,0.7\n3,0.4\n", &["0.1", "0.4", "0.7"]),
    ] {
        // Text in a column of numbers is a mistake in public rows, but a gap elsewhere.
        let (columns, path) = learn("numbered", &text.replace(",x\n", ",\n"), "y", Task::Classification);
        let columns = columns.unwrap();
        assert_eq!(columns.target().classes(), classes);
        let (rows, _) = columns.public_rows(&path).unwrap();
        for row in 0..rows.len() {
            let label = rows.label(row);
            assert!(
                (label - label.round()).abs() < 1e-3 && label.round() < classes.len() as f64,
                "{text} {label}"
            );
        }
        // Other numbers are unknown, in a file that was not learned from.
        let other = file("numbered_other", "x,y\n1,77\n2,-50\n3,word\n4,0.33\n");
        assert!(matches!(columns.public_rows(&other), Err(Error::NoLabels { .. })), "{text}");
    }
}

#[test]
fn targets_that_cannot_be() {
    let refused = |text: &str, target: &str, task: Task| match learn("refused", text, target, task).0 {
        Err(error) => error.to_string(),
        Ok(columns) => panic!("{:?}", columns.target()),
    };
    let two = "x,y,c\n1,1.5,a\n2,2.7,b\n3,9.83,a\n";
    assert!(refused(two, "z", Task::Regression).contains("no column z"));
    assert!(refused(two, "c", Task::Regression).contains("number"));
    assert!(refused(two, "y", Task::Classification).contains("classes"));
    assert!(refused("x,c\n1,a\n2,a\n", "c", Task::Classification).contains("two classes"));
    assert!(refused("x,y\n1,3\n2,3\n", "y", Task::Classification).contains("two classes"));
    assert!(refused("x,y\n7,1\n7,2\n", "y", Task::Regression).contains("feature"));
    assert!(refused("y\n1\n2\n", "y", Task::Regression).contains("feature"));
}

/// Without public rows the ranges of the schema give scales and classes.
#[test]
fn a_schema_alone() {
    let schema =
        |y: Option<(f64, f64)>| Schema::new(vec![number("x", Some((10.0, 30.0))), number("y", y)]).unwrap();
    let columns = Columns::learn(schema(Some((0.0, 8.0))), "y", Task::Regression, None).unwrap();
    assert_eq!(columns.features(), [Feature::Number { column: 0, shift: 20.0, scale: 10.0 }]);
    assert_eq!(*columns.target(), Target::Number { column: "y".into(), shift: 4.0, scale: 4.0 });
    let columns = Columns::learn(schema(Some((1.0, 3.0))), "y", Task::Classification, None).unwrap();
    assert_eq!(columns.target().classes(), ["1", "2", "3"]);
    for range in [None, Some((0.0, 1e6)), Some((2.0, 2.5))] {
        assert!(matches!(
            Columns::learn(schema(range), "y", Task::Classification, None),
            Err(Error::Target { .. })
        ));
    }
}

/// Private rows open whatever is in them, with as many columns as features and a label.
#[test]
fn private_rows_are_never_refused() {
    let (columns, _) = learn("private", "x,c,y\n1,a,no\n2,b,yes\n3,a,yes\n", "y", Task::Classification);
    let columns = columns.unwrap();
    let odd = file("odd", "y,extra,c,x\nSECRET,1,SECRET,SECRET\n,,,\nyes,1,b,1e999\n\"SECRET\n");
    let rows = columns.private_rows(&odd, LoadOptions::default()).unwrap();
    assert!(!format!("{rows:?}").contains("SECRET"));
    let strict = columns.private_rows(&odd, LoadOptions::default().strict(true)).unwrap_err().to_string();
    assert!(strict.contains("column") && !strict.contains("SECRET"), "{strict}");
    let public = semidp_table::open_public(
        &odd,
        columns.schema(),
        &semidp_table::Encoding::identity(columns.schema()).unwrap(),
        LoadOptions::default(),
    );
    assert_eq!(public.unwrap().units(), 4);
}

/// Three columns of numbers and a label, without the zeros.
struct Sparse;

const OFFSETS: [i64; 5] = [0, 1, 3, 4, 5];
const PLACES: [i32; 5] = [0, 0, 1, 1, 0];
const NUMBERS: [f64; 5] = [2.0, -4.0, 5.0, 1.0, 6.0];

impl Grid for Sparse {
    fn view(&self) -> View<'_> {
        View::Sparse { offsets: &OFFSETS, places: &PLACES, numbers: Numbers::F64(&NUMBERS), columns: 2 }
    }
}

struct Labels;

impl Grid for Labels {
    fn view(&self) -> View<'_> {
        let numbers = Numbers::F64(&[1.0, 2.0, 3.0, 6.0]);
        View::Dense { numbers, rows: 4, columns: 1, row_stride: 1, column_stride: 1 }
    }
}

/// Numbers without their zeros are scaled and not shifted, so that zeros stay zeros; the label is centred as ever.
#[test]
fn sparse_numbers_stay_sparse() {
    let table = MemoryTable::new(4).with_numbers(vec!["a".into(), "b".into()], Arc::new(Sparse)).unwrap();
    let table = table.with_numbers(vec!["y".into()], Arc::new(Labels)).unwrap();
    let attached = Attached::new("public", table);
    let schema = Schema::infer(attached.path(), None).unwrap().schema;
    let columns = Columns::learn(schema, "y", Task::Regression, Some(attached.path())).unwrap();
    let scales: Vec<(f64, f64)> = columns
        .features()
        .iter()
        .map(|feature| match *feature {
            Feature::Number { shift, scale, .. } => (shift, scale),
            _ => panic!("not a number"),
        })
        .collect();
    // The mean square with the variance over n − 1: 1 + (1 + 25 + 1 + 25)/3, and (9/4 + 49/4 + 1/4 + 9/4)/3 + 9/4.
    assert!((scales[0].0, scales[1].0) == (0.0, 0.0));
    assert!((scales[0].1 - (1.0f64 + 52.0 / 3.0).sqrt()).abs() < 1e-6, "{scales:?}");
    assert!((scales[1].1 - (17.0f64 / 3.0 + 2.25).sqrt()).abs() < 1e-6, "{scales:?}");
    let Target::Number { shift, .. } = *columns.target() else { panic!("not a number") };
    assert!((shift - 3.0).abs() < 1e-6);
    let rows = columns.private_rows(attached.path(), LoadOptions::default()).unwrap();
    assert!(format!("{rows:?}").contains("private"));
    let (rows, _) = columns.public_rows(attached.path()).unwrap();
    let a = |row| rows.dot(row, &[1.0, 0.0]) * scales[0].1;
    for (row, expected) in [2.0, -4.0, 0.0, 6.0].into_iter().enumerate() {
        assert!((a(row) - expected).abs() < 1e-5, "{row}");
    }
}
