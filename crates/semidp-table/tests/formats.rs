//! Every format gives the same numbers.

mod support;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use semidp_core::BlockSource;
use semidp_table::{Encoding, Error, LoadOptions, Schema, open_public};
use support::{Values, category, doubles, number, path, private_rows, rows, write};

const TABLE: [[f64; 3]; 5] =
    [[1.0, -2.5, 0.0], [2.0, f64::NAN, 1.0], [3.0, 1e10, 0.0], [-4.0, 0.125, 1.0], [5.0, 7.0, 1.0]];

fn schema(names: [&str; 3]) -> Schema {
    Schema::new(names.map(|name| number(name, 9.0, None)).to_vec()).unwrap()
}

fn expected() -> Vec<Vec<f32>> {
    let imputed = |&number: &f64| if number.is_nan() { 9.0 } else { number as f32 };
    TABLE.iter().map(|row| row.iter().map(imputed).collect()).collect()
}

fn csv(delimiter: &str) -> String {
    let row = |row: &[f64; 3]| row.map(|number| number.to_string()).join(delimiter);
    let rows: Vec<String> = TABLE.iter().map(row).collect();
    format!("{}\n{}\n", ["x0", "x1", "x2"].join(delimiter), rows.join("\n"))
}

fn by_rows() -> Vec<f64> {
    TABLE.concat()
}

fn by_columns() -> Vec<f64> {
    (0..3).flat_map(|column| TABLE.map(|row| row[column])).collect()
}

#[test]
fn formats_agree() {
    let x = schema(["x0", "x1", "x2"]);
    let (plain, flipped) = (doubles(&by_rows()), doubles(&by_columns()));
    let big: Vec<u8> = by_rows().iter().flat_map(|number| number.to_be_bytes()).collect();
    let array = |kind, fortran, body: &[u8]| support::npy(1, kind, fortran, "(5, 3)", body);
    for path in [
        write("agree.csv", csv(",")),
        write("agree.TSV", csv("\t")),
        write("agree.csv.gz", support::gzip(csv(","))),
        write(
            "agree-members.csv.gz",
            [support::gzip("x0,x1,x2\n1,-2.5,0\n2,,1\n"), support::gzip("3,1e10,0\n-4,0.125,1\n5,7,1\n")]
                .concat(),
        ),
        write("agree.npy", array("<f8", false, &plain)),
        write("agree-fortran.npy", array("<f8", true, &flipped)),
        write("agree-big.npy", array(">f8", false, &big)),
        write("agree-2.npy", support::npy(2, "<f8", false, "(5, 3)", &plain)),
        write("agree-3.npy", support::npy(3, "<f8", true, "(5, 3)", &flipped)),
        write("agree.npy.gz", support::gzip(array("<f8", false, &plain))),
        write("agree-fortran.npy.gz", support::gzip(array("<f8", true, &flipped))),
        support::npz("agree.npz", &[("any", array("<f8", false, &plain))]),
        support::npz("agree-fortran.npz", &[("any", array("<f8", true, &flipped))]),
    ] {
        assert_eq!(private_rows(&path, &x), expected(), "{}", path.display());
        for rows_per_block in [1, 2, 5] {
            let options = LoadOptions::default().rows_per_block(rows_per_block);
            let table = open_public(&path, &x, &Encoding::identity(&x).unwrap(), options).unwrap();
            assert_eq!(rows(&*table), expected(), "{}", path.display());
        }
    }
}

#[test]
fn an_archive_is_a_table() {
    let column = |at: usize| doubles(&TABLE.map(|row| row[at]));
    let pair: Vec<f64> = TABLE.iter().flat_map(|row| [row[0], row[2]]).collect();
    let ints: Vec<u8> = (0..5i16).flat_map(i16::to_le_bytes).collect();
    let path = support::npz(
        "side-by-side.npz",
        &[
            ("pair", support::npy(1, "<f8", false, "(5, 2)", &doubles(&pair))),
            ("unused", support::npy(1, "<i2", false, "(5,)", &ints)),
            ("one", support::npy(1, "<f8", false, "(5,)", &column(1))),
        ],
    );
    assert_eq!(private_rows(&path, &schema(["pair_0", "one", "pair_1"])), expected());

    let path = support::npz(
        "lengths.npz",
        &[
            ("long", support::npy(1, "<f8", false, "(5,)", &column(0))),
            ("short", support::npy(1, "<f8", false, "(4,)", &column(0))),
        ],
    );
    let error = Schema::infer(&path, None).unwrap_err();
    assert!(
        matches!(&error, Error::DifferentLengths { arrays, .. } if arrays == &["long", "short"]),
        "{error}"
    );
}

#[test]
fn all_number_types_of_arrays() {
    macro_rules! check {
        ($($kind:literal $type:ty),*) => {$(
            let numbers = [<$type>::MIN, 0 as $type, 3 as $type, <$type>::MAX];
            let little: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let big: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
            let expected: Vec<Vec<f32>> = numbers.iter().map(|&number| vec![number as f64 as f32]).collect();
            let schema = Schema::new(vec![number("x0", 0.0, None)]).unwrap();
            for (order, body) in [("<", &little), (">", &big)] {
                let array = support::npy(1, &format!("{order}{}", $kind), false, "(4,)", body);
                let path = write(concat!("kind-", $kind, ".npy"), array);
                assert_eq!(private_rows(&path, &schema), expected, "{order}{}", $kind);
            }
        )*};
    }
    check!("f4" f32, "i1" i8, "i2" i16, "i4" i32, "i8" i64, "u1" u8, "u2" u16, "u4" u32, "u8" u64);
    let path = write("kind-b1.npy", support::npy(1, "|b1", false, "(3,)", &[1, 0, 1]));
    let schema = Schema::new(vec![number("x0", 0.0, None)]).unwrap();
    assert_eq!(private_rows(&path, &schema), [[1.0], [0.0], [1.0]]);
}

#[test]
fn broken_arrays_are_refused() {
    let body = doubles(&by_rows());
    for (name, bytes) in [
        ("half", support::npy(1, "<f2", false, "(5, 3)", &body)),
        ("object", support::npy(1, "|O", false, "(5, 3)", &body)),
        ("text", support::npy(1, "<U3", false, "(5, 3)", &body)),
        ("complex", support::npy(1, "<c16", false, "(5, 3)", &body)),
        ("version", support::npy(4, "<f8", false, "(5, 3)", &body)),
        ("cube", support::npy(1, "<f8", false, "(5, 3, 1)", &body)),
        ("short", support::npy(1, "<f8", false, "(6, 3)", &body)),
        ("huge", support::npy(1, "<f8", false, "(18446744073709551615, 3)", &body)),
        ("empty", Vec::new()),
        ("other", b"no array at all".to_vec()),
    ] {
        let plain = write(&format!("broken-{name}.npy"), &bytes);
        let packed = write(&format!("broken-{name}.npy.gz"), support::gzip(&bytes));
        for path in [plain, packed, support::npz(&format!("broken-{name}.npz"), &[("a", bytes)])] {
            let error = Schema::infer(&path, None).unwrap_err();
            assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        }
    }
}

/// A row may be longer than what is read at a time, and one column of many is wanted.
#[test]
fn wide_arrays_come_in_chunks() {
    let (rows_count, width) = (700, 1000);
    let numbers: Vec<f64> = (0..rows_count * width).map(f64::from).collect();
    let array = support::npy(1, "<f8", false, &format!("({rows_count}, {width})"), &doubles(&numbers));
    let schema = Schema::new(vec![number("x999", 0.0, None)]).unwrap();
    let expected: Vec<Vec<f32>> = (1..=rows_count).map(|row| vec![(row * width - 1) as f32]).collect();
    for path in [
        write("wide.npy", &array),
        write("wide.npy.gz", support::gzip(&array)),
        support::npz("wide.npz", &[("a", array)]),
    ] {
        assert_eq!(private_rows(&path, &schema), expected, "{}", path.display());
    }
}

/// What would fill the memory is refused by its header, before anything is read.
#[test]
fn arrays_that_would_fill_the_memory_are_refused() {
    let columns = support::npy(1, "<f8", true, "(70000000, 2)", &[]);
    let wide = support::npy(1, "<f8", false, "(0, 2000000)", &[]);
    let half = support::npy(1, "<f8", false, "(0, 600000)", &[]);
    for (path, reason) in [
        (write("limit-columns.npy.gz", support::gzip(&columns)), "larger than 512 MiB"),
        (support::npz("limit-columns.npz", &[("a", columns)]), "larger than 512 MiB"),
        (write("limit-wide.npy", &wide), "2000000 columns"),
        (support::npz("limit-wide.npz", &[("a", half.clone()), ("b", half)]), "more than 1048576 columns"),
    ] {
        let error = Schema::infer(&path, None).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

fn parquet_table(name: &str, properties: WriterProperties) -> std::path::PathBuf {
    let optional = |at: usize| TABLE.map(|row| (!row[at].is_nan()).then_some(row[at]));
    let group = |rows: std::ops::Range<usize>| {
        vec![
            Values::Bool(TABLE[rows.clone()].iter().map(|row| Some(row[2] == 1.0)).collect()),
            Values::Double(optional(1)[rows.clone()].to_vec()),
            Values::Int96(rows.len()),
            Values::Int64(TABLE[rows].iter().map(|row| Some(row[0] as i64)).collect()),
        ]
    };
    let message = "required boolean x2; optional double x1; required int96 when; required int64 x0;";
    support::parquet(name, message, &[group(0..2), group(2..2), group(2..5)], properties)
}

#[test]
fn parquet_agrees_whatever_the_codec() {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ];
    for (place, codec) in codecs.into_iter().enumerate() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties =
                WriterProperties::builder().set_compression(codec).set_writer_version(version).build();
            let path = parquet_table(&format!("codec-{place}.parquet"), properties);
            assert_eq!(private_rows(&path, &schema(["x0", "x1", "x2"])), expected());
        }
    }
}

#[test]
fn parquet_types() {
    let path = support::parquet(
        "types.parquet",
        "required int32 small (INTEGER(8, false)); required int32 u32 (INTEGER(32, false));
         required int64 u64 (INTEGER(64, false)); optional int32 signed; required float single;
         optional binary text (UTF8); required int32 day (DATE); required int64 money (DECIMAL(9, 2));
         required binary bytes; required int64 at (TIMESTAMP(MILLIS, true));",
        &[vec![
            Values::Int32(vec![Some(200), Some(0)]),
            Values::Int32(vec![Some(-1), Some(1)]),
            Values::Int64(vec![Some(-1), Some(1)]),
            Values::Int32(vec![None, Some(-7)]),
            Values::Float(vec![Some(0.5), Some(f32::INFINITY)]),
            Values::Text(vec![Some(" b "), None]),
            Values::Int32(vec![Some(1), Some(2)]),
            Values::Int64(vec![Some(1), Some(2)]),
            Values::Text(vec![Some("x"), Some("y")]),
            Values::Int64(vec![Some(1), Some(2)]),
        ]],
        WriterProperties::default(),
    );
    let inferred = Schema::infer(&path, None).unwrap();
    let skipped: Vec<_> = inferred.skipped.iter().map(|skipped| (&*skipped.name, &*skipped.reason)).collect();
    assert_eq!(
        skipped,
        [
            ("day", "is of type INT32 Date"),
            ("money", "is of type INT64 Decimal"),
            ("bytes", "is of type BYTE_ARRAY"),
            ("at", "is of type INT64 Timestamp"),
        ]
    );
    let expected = Schema::new(vec![
        number("small", 100.0, None),
        number("u32", (u32::MAX as f64 + 1.0) / 2.0, None),
        number("u64", (u64::MAX as f64 + 1.0) / 2.0, None),
        number("signed", -7.0, None),
        number("single", 0.5, None),
        category("text", &["b"]),
    ])
    .unwrap();
    assert_eq!(inferred.schema, expected);
    let u64_max = u64::MAX as f32;
    assert_eq!(
        private_rows(&path, &inferred.schema),
        [[200.0, u32::MAX as f32, u64_max, -7.0, 0.5, 1.0, 0.0], [0.0, 1.0, 1.0, -7.0, 0.5, 0.0, 1.0]]
    );
    let error = Schema::infer(&path, Some(&["small", "day"])).unwrap_err();
    assert!(matches!(&error, Error::UnsupportedType { column, .. } if column == "day"), "{error}");
    let day = Schema::new(vec![number("day", 0.0, None)]).unwrap();
    let encoding = Encoding::identity(&day).unwrap();
    let error = open_public(&path, &day, &encoding, LoadOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::UnsupportedType { column, .. } if column == "day"), "{error}");
}

#[test]
fn nested_columns_are_skipped() {
    let path = support::parquet(
        "nested.parquet",
        "required double a; required group inner { required double b; required double c; } required double d;",
        &[vec![
            Values::Double(vec![Some(1.0)]),
            Values::Double(vec![Some(2.0)]),
            Values::Double(vec![Some(3.0)]),
            Values::Double(vec![Some(4.0)]),
        ]],
        WriterProperties::default(),
    );
    let inferred = Schema::infer(&path, None).unwrap();
    assert_eq!(inferred.skipped.len(), 1);
    assert_eq!(inferred.skipped[0].name, "inner");
    assert_eq!(private_rows(&path, &inferred.schema), [[1.0, 4.0]]);
}

#[test]
fn long_columns_come_in_pieces() {
    let count = 30_000;
    let cells: Vec<Option<f64>> = (0..count).map(|i| (i % 7 != 3).then_some(i as f64)).collect();
    let dense: Vec<Option<f64>> = (0..count).map(|i| Some(-(i as f64))).collect();
    let texts: Vec<Option<&str>> = (0..count).map(|i| [Some("a"), Some("b"), None][i % 3]).collect();
    let properties = WriterProperties::builder().set_data_page_row_count_limit(1000).build();
    let groups = [vec![Values::Double(cells), Values::Double(dense), Values::Text(texts)]];
    let message = "optional double n; optional double m; optional binary t (UTF8);";
    let path = support::parquet("long.parquet", message, &groups, properties);
    let schema =
        Schema::new(vec![number("n", -1.0, None), number("m", 0.0, None), category("t", &["a", "b"])])
            .unwrap();
    let (encoding, seen) =
        (Encoding::identity(&schema).unwrap(), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
    let log = seen.clone();
    let options = LoadOptions::default().on_rows(move |rows| log.lock().unwrap().push(rows));
    let table = open_public(&path, &schema, &encoding, options).unwrap();
    let rows = rows(&*table);
    for (i, row) in rows.iter().enumerate() {
        let n = if i % 7 == 3 { -1.0 } else { i as f32 };
        let mut expected = vec![n, -(i as f32), 0.0, 0.0, 0.0];
        expected[2 + i % 3] = 1.0;
        assert_eq!(row, &expected);
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().sum::<u64>(), count as u64);
    assert!(seen.len() > 5 && seen.iter().all(|&rows| rows <= 4096));
    assert_eq!(table.blocks(), 1);
}

#[test]
fn csv_with_quotes_and_ragged_rows() {
    let text = "\u{feff}name, n ,m\r\n\"a\nb\",1,2\r\n\r\nc\n\"d \"\"q\"\"\",3,4,5,6\r\u{feff}e,,7";
    let schema = Schema::new(vec![
        number("m", -1.0, None),
        category("name", &["a\nb", "c", "d \"q\"", "\u{feff}e"]),
        number("n", -2.0, None),
    ])
    .unwrap();
    let expected = [
        [2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0, -2.0],
        [4.0, 0.0, 0.0, 1.0, 0.0, 0.0, 3.0],
        [7.0, 0.0, 0.0, 0.0, 1.0, 0.0, -2.0],
    ];
    let encoding = Encoding::identity(&schema).unwrap();
    for path in [write("ragged.csv", text), write("ragged.csv.gz", support::gzip(text))] {
        for rows_per_block in 1..6 {
            let options = LoadOptions::default().rows_per_block(rows_per_block).multiline(true);
            let table = open_public(&path, &schema, &encoding, options).unwrap();
            assert_eq!(rows(&*table), expected, "{rows_per_block}");
        }
    }
}

#[test]
fn names_and_files_that_are_not_there() {
    for name in ["table.xlsx", "table", "table.parquet.gz", "table.npz.gz", "table.gz", ".."] {
        let error = Schema::infer(path(name), None).unwrap_err();
        assert!(matches!(error, Error::UnknownFormat { .. }), "{error}");
        assert!(error.to_string().contains(".parquet"));
    }
    let error = Schema::infer(path("nowhere.csv"), None).unwrap_err();
    assert!(error.to_string().contains("nowhere.csv cannot be read: No such file"), "{error}");
    for name in ["garbage.parquet", "garbage.npz", "garbage.npy", "garbage.csv.gz", "garbage.npy.gz"] {
        let error = Schema::infer(write(name, "garbage ".repeat(40)), None).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        assert!(!error.to_string().contains("garbage g"));
    }
    let whole = support::gzip(csv(","));
    let error = Schema::infer(write("cut.csv.gz", &whole[..whole.len() - 9]), None).unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    std::fs::create_dir_all(path("folder.csv")).unwrap();
    let error = Schema::infer(path("folder.csv"), None).unwrap_err();
    assert!(error.to_string().ends_with("it is a directory"), "{error}");
    let error = Schema::infer(write("nothing.csv", ""), None).unwrap_err();
    assert!(error.to_string().contains("has no header"), "{error}");
}
