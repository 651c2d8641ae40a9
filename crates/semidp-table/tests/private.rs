//! Private files: read whatever is in them, and told about to nobody.

mod support;

use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use semidp_core::{
    Adjacency, BlockSource, ClippedSum, Delta, Gaussian, NoiseMultiplier, Program, Public, Randomness,
    Sampling, Session, Steps,
};
use semidp_table::{Encoding, Error, Feature, LoadOptions, Problem, Schema, open_private, open_public};
use support::{Values, category, declassified, doubles, number, private_rows, rows, write};

fn schema() -> Schema {
    Schema::new(vec![number("n", 0.5, Some((-1.0, 1.0))), number("m", 3.0, None), category("c", &["x", "y"])])
        .unwrap()
}

#[test]
fn loading_is_total() {
    let text = "c,extra,m,n\ny,secret,2,0.25\nz,,inf,inf\nother,,nan,-7\n?,,1e999,abc\n,,1e300,\n";
    let expected = [
        [0.25, 2.0, 0.0, 1.0, 0.0],
        [1.0, 3.0, 0.0, 0.0, 1.0],
        [-1.0, 3.0, 0.0, 0.0, 1.0],
        [0.5, 3.0, 0.0, 0.0, 1.0],
        [0.5, f32::MAX, 0.0, 0.0, 1.0],
    ];
    assert_eq!(private_rows(&write("total.csv", text), &schema()), expected);
}

/// Whoever puts a header line on a C4.5 file may leave the full stops of its rows.
#[test]
fn a_value_may_end_in_a_full_stop() {
    let schema = Schema::new(vec![category("c", &["x", "y", "y.", "U.S."]), number("n", 0.0, None)]).unwrap();
    let text = "n,c\n1,x\n2,x. \n3,y\n4,y.\n5,y..\n6,U.S.\n7,U.S\n8,x..\n9.,.\n";
    let expected = [0, 0, 1, 2, 2, 3, 4, 4, 4];
    let path = write("stops.csv", text);
    for (place, (row, value)) in private_rows(&path, &schema).iter().zip(expected).enumerate() {
        assert_eq!((row[value], row[5]), (1.0, place as f32 + 1.0), "{place}");
    }
    let encoding = Encoding::identity(&schema).unwrap();
    let strict = || LoadOptions::default().strict(true);
    let error = open_private(&path, &schema, &encoding, strict()).unwrap_err();
    assert!(matches!(error, Error::Strict { problem: Problem::Unseen, .. }), "{error}");
    assert!(open_private(write("stop.csv", "n,c\n2,x.\n"), &schema, &encoding, strict()).is_ok());
}

#[test]
fn features_in_any_order() {
    let path = write("order.csv", "n,m,c\n0.5,4,x\n-0.5,6,z\n");
    let indicator = |value| Feature::Indicator { column: 2, value };
    let features = vec![
        indicator(None),
        indicator(Some(0)),
        indicator(Some(0)),
        Feature::Number { column: 1, shift: 4.0, scale: 0.5 },
        indicator(Some(0)),
    ];
    let encoding = Encoding::new(&schema(), features).unwrap();
    let table = open_private(&path, &schema(), &encoding, LoadOptions::default()).unwrap();
    assert_eq!(rows(&declassified(table)), [[0.0, 1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 4.0, 0.0]]);
}

#[test]
fn no_rows_are_rows_too() {
    let encoding = Encoding::identity(&schema()).unwrap();
    let message = "required double n; required double m; required binary c (UTF8);";
    let parquet = |name: &str, groups: &[Vec<Values>]| {
        support::parquet(name, message, groups, WriterProperties::default())
    };
    let nothing = vec![Values::Double(vec![]), Values::Double(vec![]), Values::Text(vec![])];
    for path in [
        write("none.csv", "n,m,c\n"),
        write("none.csv.gz", support::gzip("n,m,c")),
        parquet("none.parquet", &[]),
        parquet("none-at-all.parquet", &[nothing]),
    ] {
        let options = LoadOptions::default;
        let private = open_private(&path, &schema(), &encoding, options().strict(true)).unwrap();
        assert_eq!(rows(&declassified(private)).len(), 0);
        let error = open_public(&path, &schema(), &encoding, options()).unwrap_err();
        assert!(matches!(error, Error::NoRows { .. }), "{error}");
    }
    let numbers = Schema::new(vec![number("x0", 0.0, None)]).unwrap();
    let path = write("none.npy", support::npy(1, "<f8", true, "(0, 1)", &[]));
    assert_eq!(private_rows(&path, &numbers).len(), 0);
}

#[test]
fn columns_must_be_there_and_of_their_kind() {
    let encoding = Encoding::identity(&schema()).unwrap();
    let open = |path: &std::path::Path| {
        open_private(path, &schema(), &encoding, LoadOptions::default()).unwrap_err()
    };
    let error = open(&write("lacking.csv", "secret,m\n1,2\n"));
    assert!(matches!(&error, Error::MissingColumns { columns, .. } if columns == &["n", "c"]), "{error}");
    assert!(!error.to_string().contains("secret"));
    // So it is if the first line is a row.
    let error = open(&write("headless.csv", "secret-1,2,x\n3,4,secret-2\n"));
    assert!(matches!(&error, Error::MissingColumns { columns, .. } if columns.len() == 3), "{error}");
    assert!(error.to_string().contains("its first line") && !format!("{error} {error:?}").contains("secret"));
    let error = open(&write("double.csv", "n,m,c,m\n1,2,x,3\n"));
    assert!(matches!(&error, Error::DuplicateColumn { column, .. } if column == "m"), "{error}");
    // Two columns of one name that nobody needs are nobody's trouble, nor are they named.
    let path = write("spare.csv", "n,secret,m,c,secret\n1,1,2,x,3\n");
    assert_eq!(private_rows(&path, &schema()), [[1.0, 2.0, 1.0, 0.0, 0.0]]);

    let path = support::parquet(
        "kinds.parquet",
        "required binary n (UTF8); required double m; required double c;",
        &[vec![
            Values::Text(vec![Some("secret")]),
            Values::Double(vec![Some(1.0)]),
            Values::Double(vec![Some(1.0)]),
        ]],
        WriterProperties::default(),
    );
    let error = open(&path);
    assert!(
        error.to_string().ends_with("kinds.parquet is a category, but the schema says a number"),
        "{error}"
    );
    let categories = Schema::new(vec![category("x0", &["1"])]).unwrap();
    let path = write("kinds.npy", support::npy(1, "<f8", false, "(2,)", &doubles(&[1.0, 2.0])));
    let encoding = Encoding::identity(&categories).unwrap();
    let error = open_private(&path, &categories, &encoding, LoadOptions::default()).unwrap_err();
    assert!(matches!(error, Error::WrongKind { expected: "category", found: "number", .. }), "{error}");
    assert!(open_private(&path, &schema(), &encoding, LoadOptions::default()).is_err());
}

#[test]
fn strict_loading_names_the_column_alone() {
    let encoding = Encoding::identity(&schema()).unwrap();
    let strict = || LoadOptions::default().strict(true).rows_per_block(2);
    let good = "n,m,c\n0,1,x\n1,2,y\n-1,3,x\n";
    assert!(open_private(write("strict.csv", good), &schema(), &encoding, strict()).is_ok());
    for (row, column, problem) in [
        ("secret,1,x", "n", Problem::Missing),
        (",1,x", "n", Problem::Missing),
        ("1.5,1,x", "n", Problem::OutOfRange),
        ("inf,1,x", "n", Problem::OutOfRange),
        ("0,inf,x", "m", Problem::Missing),
        ("0,1", "c", Problem::Missing),
        ("0,1,secret", "c", Problem::Unseen),
    ] {
        let path = write("strict-bad.csv", format!("{good}{row}\n"));
        let error = open_private(&path, &schema(), &encoding, strict()).unwrap_err();
        assert_eq!(error, Error::Strict { path: path.clone(), column: column.into(), problem });
        assert!(!format!("{error} {error:?}").contains("secret"));
        assert!(open_public(&path, &schema(), &encoding, strict()).is_err());
        assert!(open_private(&path, &schema(), &encoding, LoadOptions::default()).is_ok());
    }
    let other = write("strict-other.csv", format!("{good}0,0,other\n"));
    assert!(open_private(other, &schema(), &encoding, strict()).is_ok());
}

#[test]
fn a_file_that_changes_is_an_error() {
    let encoding = Encoding::identity(&schema()).unwrap();
    let text = "n,m,c\n0,1,x\n1,2,y\n-1,3,x\n";
    for (name, content) in [("changes.csv", text.into()), ("changes.csv.gz", support::gzip(text))] {
        let path = write(name, content);
        let table = declassified(open_private(&path, &schema(), &encoding, LoadOptions::default()).unwrap());
        assert_eq!(rows(&table).len(), 3);
        write(name, "n,m,c\n0,secret");
        let error = table.visit(0, &mut |_| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "block 0 of the data cannot be read: the file changed after it was opened"
        );
        std::fs::remove_file(&path).unwrap();
        assert!(table.visit(0, &mut |_| ()).is_err());
    }
}

#[test]
fn nothing_prints_itself() {
    let encoding = Encoding::identity(&schema()).unwrap();
    let path = write("print.csv", "n,m,c\n0,1,secret\n");
    let table = open_private(path, &schema(), &encoding, LoadOptions::default()).unwrap();
    assert_eq!(format!("{table:?}"), "<private>");
    assert_eq!(format!("{:?}", declassified(table)), "Table { width: 5, .. }");
}

/// The whole way: the released mean is that of the file.
#[test]
fn through_the_kernel() {
    let row = |i: usize| ((i % 101) as f64 / 50.0 - 1.0, (i % 7) as f64, ["x", "y", "z"][i % 3]);
    let count = 20_000;
    let mut text = String::from("n,m,c\n");
    let (mut n, mut m) = (0.0, 0.0);
    for i in 0..count {
        let (first, second, value) = row(i);
        text += &format!("{first},{second},{value}\n");
        (n, m) = (n + first / count as f64, m + second / count as f64);
    }
    let schema = schema();
    let encoding = Encoding::identity(&schema).unwrap();
    for path in [write("kernel.csv", &text), write("kernel.csv.gz", support::gzip(&text))] {
        let rows =
            open_private(path, &schema, &encoding, LoadOptions::default().rows_per_block(333)).unwrap();
        let session = Session::new(rows, Adjacency::ReplaceOne)
            .unwrap()
            .with_randomness(Randomness::Seed(1))
            .with_threads(2);
        assert_eq!(session.units(), Some(count));
        let query = ClippedSum::l2(Public(vec![0.0; 5]), 8.0).unwrap();
        let noise = Gaussian::new(NoiseMultiplier::new(1.0).unwrap());
        let program = Program::new(noise, Sampling::Everyone, Steps::ONE);
        let (run, mut tickets) = session.authorise(program, Delta::new(1e-6).unwrap()).unwrap();
        let partial = run.sum(&query, tickets.next().unwrap()).unwrap();
        let mean = run.noise(partial).unwrap().map(|sum| sum.iter().map(|s| s / count as f64).collect());
        let release: Vec<f64> = run.finish(tickets, mean).unwrap().value;
        // Noise of standard deviation 8 on a sum over 20 000 rows.
        for (released, exact) in release.iter().zip([n, m, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
            assert!((released - exact).abs() < 0.005, "{released} {exact}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any bytes are rows.
    #[test]
    fn any_bytes_are_rows(
        body in proptest::collection::vec(
            prop_oneof![
                5 => proptest::sample::select(b",,\n\n\r\"0123456789.-einfxyNA? ".to_vec()),
                1 => proptest::sample::select(b"\xef\xbb\xbf".to_vec()),
                1 => any::<u8>(),
            ],
            0..400,
        ),
        rows_per_block in 1usize..8,
    ) {
        let encoding = Encoding::identity(&schema()).unwrap();
        let numbers = schema().select(&["n", "m"]).unwrap();
        let dense = Encoding::identity(&numbers).unwrap();
        let content = [b"n,c,m\n", &body[..]].concat();
        let options = || LoadOptions::default().rows_per_block(rows_per_block);
        let plain = write("any.csv", &content);
        let packed = write("any.csv.gz", support::gzip(&content));
        let first = rows(&declassified(open_private(&plain, &schema(), &encoding, options()).unwrap()));
        let second = rows(&declassified(open_private(&packed, &schema(), &encoding, options()).unwrap()));
        prop_assert_eq!(&first, &second);
        let third = rows(&declassified(open_private(&plain, &numbers, &dense, options()).unwrap()));
        for (sparse, dense) in first.iter().zip(&third) {
            prop_assert_eq!(&sparse[..2], &dense[..]);
            prop_assert_eq!(sparse[2..].iter().sum::<f32>(), 1.0);
        }
    }

    /// Any bytes after a good header are an error or rows, of the other formats too.
    #[test]
    fn any_bytes_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let numbers = Schema::new(vec![number("x0", 0.0, None)]).unwrap();
        let encoding = Encoding::identity(&numbers).unwrap();
        let array = support::npy(1, "<f4", false, "(9, 2)", &bytes);
        let whole = support::npz("any-whole.npz", &[("a", array.clone())]);
        let mut broken = std::fs::read(whole).unwrap();
        broken.truncate(broken.len().saturating_sub(bytes.len() / 50));
        for path in [write("any.npy", &array), write("any.npz", &broken), write("any.parquet", &bytes)] {
            let Ok(table) = open_private(&path, &numbers, &encoding, LoadOptions::default()) else { continue };
            let table = declassified(table);
            for block in 0..table.blocks() {
                let _ = table.visit(block, &mut |_| ());
            }
        }
    }

    /// A Parquet file with a few bytes changed is an error or rows.
    #[test]
    fn changed_bytes_are_no_panic(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..4)) {
        let columns = vec![
            Values::Double((0..100).map(|i| (i % 3 != 0).then_some(f64::from(i))).collect()),
            Values::Double((0..100).map(|i| Some(f64::from(i))).collect()),
            Values::Text((0..100).map(|i| [Some("x"), Some("secret"), None][i % 3]).collect()),
        ];
        let properties = WriterProperties::builder().set_data_page_row_count_limit(40).build();
        let message = "optional double n; required double m; optional binary c (UTF8);";
        let path = support::parquet("changed.parquet", message, &[columns.clone(), columns], properties);
        let mut bytes = std::fs::read(&path).unwrap();
        for (place, byte) in changes {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let path = write("changed.parquet", &bytes);
        let encoding = Encoding::identity(&schema()).unwrap();
        if let Ok(table) = open_private(&path, &schema(), &encoding, LoadOptions::default()) {
            // The blocks may no longer follow one another, which is the kernel's to refuse.
            if let Ok(session) = Session::new(table, Adjacency::ReplaceOne) {
                let table = session.into_declassified("a test");
                for block in 0..table.blocks() {
                    let _ = table.visit(block, &mut |_| ());
                }
            }
        }
    }
}
