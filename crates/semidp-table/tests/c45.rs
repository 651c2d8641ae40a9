//! The files of the UCI archive, read as they are: the real ones of Adult, and small ones.

mod support;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use semidp_core::BlockSource;
use semidp_table::{
    Encoding, Error, Feature, Inferred, Kind, LoadOptions, Problem, Schema, open_private, open_public,
};
use std::io::Read;
use std::path::{Path, PathBuf};
use support::{category, declassified, number, private_rows, public_rows, rows};

fn adult(ending: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/adult").join(format!("adult.{ending}"))
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A file in a folder of its own: a names file is looked for in the same one.
fn write(folder: &str, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let folder = support::path(&format!("c45-{folder}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), content).unwrap();
    folder.join(name)
}

fn learned(path: &Path) -> Schema {
    let Inferred { schema, skipped, .. } = Schema::infer(path, None).unwrap();
    assert!(skipped.is_empty());
    schema
}

fn names(schema: &Schema) -> Vec<&str> {
    schema.columns().iter().map(|column| column.name.as_str()).collect()
}

const COLUMNS: [&str; 15] = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "class",
];

#[test]
fn adult_has_its_schema() {
    let schema = learned(&adult("data.gz"));
    assert_eq!(names(&schema), COLUMNS);
    let numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"];
    assert_eq!(schema.numbers(), numbers);
    // `?` is in three of the columns, and among the values of none.
    let counts = schema.columns().iter().filter_map(|column| match &column.kind {
        Kind::Category { values } => Some(values.len()),
        Kind::Number { .. } => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [8, 16, 7, 14, 6, 5, 2, 41, 2]);
    let mean = 1_256_257.0 / 32_561.0;
    assert!(
        matches!(schema.columns()[0].kind, Kind::Number { impute, range: None } if (impute - mean).abs() < 1e-9)
    );
    let class = category("class", &["<=50K", ">50K"]);
    assert_eq!(schema.columns()[14], class);
    assert_eq!(learned(&adult("test.gz")).columns()[14], class);
}

/// Rows of the two files by what the first means.
#[test]
fn adult_has_its_rows() {
    let schema = learned(&adult("data.gz"));
    let encoding = Encoding::identity(&schema).unwrap();
    let place = |name: &str| encoding.names().iter().position(|found| found == name).unwrap();
    let (rich, poor, neither) = (place("class=>50K"), place("class=<=50K"), place("class=other"));
    let missing = ["workclass=other", "occupation=other", "native-country=other"].map(place);
    // No value of the second file is new, so that `other` is a missing cell in both.
    for (ending, count, positive, incomplete) in
        [("data.gz", 32_561, 7841, 2399), ("test.gz", 16_281, 3846, 1221)]
    {
        let rows = public_rows(&adult(ending), &schema);
        let having = |places: &[usize]| {
            rows.iter().filter(|row| places.iter().any(|&place| row[place] == 1.0)).count()
        };
        assert_eq!(rows.len(), count, "{ending}");
        assert_eq!([having(&[rich]), having(&[poor]), having(&[neither])], [positive, count - positive, 0]);
        assert_eq!(having(&missing), incomplete);
    }
    let bytes = std::fs::read(adult("data.gz").with_file_name("age_education_hours.u8")).unwrap();
    let three = schema.select(&["age", "education-num", "hours-per-week"]).unwrap();
    let rows = public_rows(&adult("data.gz"), &three);
    assert!(rows.iter().flatten().copied().eq(bytes.into_iter().map(f32::from)));
}

#[test]
fn adult_is_the_same_unpacked_in_blocks_and_without_names() {
    let (data, test) = (unpacked(&adult("data.gz")), unpacked(&adult("test.gz")));
    let names_file = unpacked(&adult("names.gz"));
    let schema = learned(&adult("data.gz"));
    let encoding = Encoding::identity(&schema).unwrap();
    let expected = public_rows(&adult("test.gz"), &schema);

    write("plain", "adult.names", &names_file);
    assert_eq!(learned(&write("plain", "adult.data", &data)), schema);
    let plain = write("plain", "adult.test", &test);
    for rows_per_block in [1000, 8192, 100_000] {
        let options = LoadOptions::default().rows_per_block(rows_per_block);
        let table = open_public(&plain, &schema, &encoding, options).unwrap();
        assert_eq!(table.blocks(), 16_281usize.div_ceil(rows_per_block));
        assert!(rows(&*table) == expected, "{rows_per_block}");
    }

    let numbered = learned(&write("nameless", "adult.data", &data));
    let kinds =
        |schema: &Schema| schema.columns().iter().map(|column| column.kind.clone()).collect::<Vec<_>>();
    assert_eq!(names(&numbered), (0..15).map(|cell| format!("x{cell}")).collect::<Vec<_>>());
    assert_eq!(kinds(&numbered), kinds(&schema));
    for path in [write("nameless", "adult.test", &test), write("nameless", "b.TEST.gz", support::gzip(&test))]
    {
        assert!(public_rows(&path, &numbered) == expected);
        let error = open_private(&path, &schema, &encoding, LoadOptions::default()).unwrap_err();
        assert!(matches!(&error, Error::MissingColumns { columns, .. } if *columns == COLUMNS), "{error}");
        assert!(error.to_string().ends_with("without a .names file beside it its columns are x0, x1, ..."));
    }
}

/// The usual preparation: a header line, and the labels left as they were.
#[test]
fn adult_with_a_header_line_is_the_same() {
    let schema = learned(&adult("data.gz"));
    let text = String::from_utf8(unpacked(&adult("test.gz"))).unwrap();
    let (_comment, rows) = text.split_once('\n').unwrap();
    // A private line is a unit, blank ones too: the file ends in one.
    let path = write("header", "adult.csv", format!("{}\n{}\n", COLUMNS.join(","), rows.trim_end()));
    assert!(private_rows(&path, &schema) == public_rows(&adult("test.gz"), &schema));
}

#[test]
fn adult_strictly() {
    let schema = learned(&adult("data.gz"));
    let strict = || LoadOptions::default().strict(true);
    let open = |names: &[&str]| {
        let schema = schema.select(names).unwrap();
        let encoding = Encoding::identity(&schema).unwrap();
        // Its comment is a unit of a private file, with missing cells.
        open_public(adult("test.gz"), &schema, &encoding, strict()).map(|_| ())
    };
    assert_eq!(open(&["age", "education", "class"]), Ok(()));
    let path = adult("test.gz");
    let problem = Problem::Missing;
    assert_eq!(
        open(&["age", "workclass", "class"]),
        Err(Error::Strict { path, column: "workclass".into(), problem })
    );
}

const NAMES: &str =
    "| Two kinds.\nyes,\n  no.   | and no other\n\nn: continuous.\ncolour of it: red, green,\r\n  blue.\n";

fn small() -> Schema {
    let colours = category("colour of it", &["blue", "green", "red"]);
    Schema::new(vec![number("n", 9.0, None), colours, category("class", &["no", "yes"])]).unwrap()
}

#[test]
fn comments_blank_lines_and_full_stops() {
    let text = "|1x3 Cross validator\n\n1.5, red, yes.\n | 7, red, no.\n2., green., no\r\n\r\n   \r\
                |8, red, no\r3, blue\n4, \"red, no. \n?, ?, ?.\n|\n5, red, no, yes.\n, ,\n6\n\n";
    let expected = [
        [1.5, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        // A full stop within the row is dropped for the value's sake.
        [2.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        // Quotes are text.
        [4.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0],
        [9.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        [5.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0],
        [9.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
        [6.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
    ];
    write("small", "a.names", NAMES);
    write("small-packed", "a.names.gz", support::gzip(NAMES));
    let schema = small();
    let encoding = Encoding::identity(&schema).unwrap();
    for folder in ["small", "small-packed"] {
        for text in [text.to_string(), format!("\u{feff}{text}")] {
            for path in [write(folder, "a.data", &text), write(folder, "a.data.gz", support::gzip(&text))] {
                for rows_per_block in 1..10 {
                    let options = LoadOptions::default().rows_per_block(rows_per_block);
                    let table = open_public(&path, &schema, &encoding, options).unwrap();
                    assert_eq!(rows(&*table), expected, "{} {rows_per_block}", path.display());
                }
            }
        }
    }
    // What is learned has no full stops either.
    let path = write("small", "a.test", "2, green, no.\n3, red, yes.\n4, ?, ?.\n");
    let expected = vec![
        number("n", 3.0, None),
        category("colour of it", &["green", "red"]),
        small().columns()[2].clone(),
    ];
    assert_eq!(learned(&path), Schema::new(expected).unwrap());
    // A number may end in one, and a file may have one column.
    let path = write("ends", "b.data", "1.\n2.5.\n\n3\n");
    assert_eq!(learned(&path), Schema::new(vec![number("x0", 6.5 / 3.0, None)]).unwrap());
}

#[test]
fn no_rows_are_rows_too() {
    write("none", "a.names", NAMES);
    for text in ["", "\n", "| nothing", "|\r\n\r\n"] {
        let path = write("none", "a.data", text);
        assert_eq!(private_rows(&path, &small()).len(), text.split_terminator('\n').count());
        let encoding = Encoding::identity(&small()).unwrap();
        let error = open_public(&path, &small(), &encoding, LoadOptions::default()).unwrap_err();
        assert!(matches!(error, Error::NoRows { .. }), "{error}");
        let error = Schema::infer(&path, None).unwrap_err();
        assert!(matches!(error, Error::NoRows { .. }), "{error}");
    }
}

/// Whether a private file can be opened must not depend on how long its rows are.
#[test]
fn rows_do_not_say_how_many_columns_there_are() {
    let far = usize::MAX.to_string();
    let schema = Schema::new(vec![number("x2", -1.0, None), number(&format!("x{far}"), -2.0, None)]).unwrap();
    for (text, expected) in [("1\n", -1.0), ("1,2,3.\n", 3.0), ("1,2,3,4,5\n", 3.0)] {
        assert_eq!(private_rows(&write("far", "a.data", text), &schema), [[expected, -2.0]]);
    }
    let path = write("far", "b.data", "secret, 5\n");
    for name in ["x07", "x", "x-1", "x+1", "y0", "X0", "x18446744073709551616"] {
        let schema = Schema::new(vec![number(name, 0.0, None)]).unwrap();
        let encoding =
            Encoding::new(&schema, vec![Feature::Number { column: 0, shift: 0.0, scale: 1.0 }]).unwrap();
        let error = open_private(&path, &schema, &encoding, LoadOptions::default()).unwrap_err();
        assert!(matches!(&error, Error::MissingColumns { columns, .. } if columns == &[name]), "{error}");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
    // Public rows do.
    assert_eq!(
        Schema::infer(&path, Some(&["x1"])).unwrap().schema,
        Schema::new(vec![number("x1", 5.0, None)]).unwrap()
    );
    assert!(matches!(Schema::infer(&path, Some(&["x2"])), Err(Error::MissingColumns { .. })));
    // With names too, where the rows are private.
    write("far-names", "a.names", NAMES);
    let path = write("far-names", "a.data", "1\n2, red, yes, secret, secret\n");
    assert_eq!(private_rows(&path, &small()).len(), 2);
    let error = Schema::infer(&path, None).unwrap_err();
    assert!(error.to_string().contains("it lists 3 columns, but the first row has 1 cells"), "{error}");
}

#[test]
fn names_files_that_are_none() {
    let path = write("malformed", "a.data", "1, 2\n");
    let schema = Schema::new(vec![number("x0", 0.0, None)]).unwrap();
    let encoding = Encoding::identity(&schema).unwrap();
    let open = || open_private(&path, &schema, &encoding, LoadOptions::default()).map(|_| ());
    assert_eq!(open(), Ok(()));
    for (text, reason) in [
        ("", "it is empty"),
        ("| secret\n\n", "it is empty"),
        ("secret, no.\n", "it lists no columns"),
        ("\n1. Title: secret\n", "line 2 must list the classes, as in `yes, no.`"),
        ("yes, no.\nn: continuous.\n\nsecret\n", "line 4 must describe a column, as in `age: continuous.`"),
        ("yes, no.\n: continuous secret.\n", "line 2 must describe a column, as in `age: continuous.`"),
        ("yes, no.\nsecret:\n", "line 2 must describe a column, as in `age: continuous.`"),
    ] {
        let names = write("malformed", "a.names", text);
        assert_eq!(open(), Err(Error::MalformedNames { path: names, reason: reason.into() }));
        let message = open().unwrap_err().to_string();
        assert!(
            message.contains("a.names does not list columns") && !message.contains("secret"),
            "{message}"
        );
        assert!(Schema::infer(&path, None).is_err());
    }
    // One that says something else than the other: the plain one counts.
    write("malformed", "a.names.gz", support::gzip("yes, no.\nm: continuous.\n"));
    write("malformed", "a.names", "yes, no.\nn: continuous.\n");
    assert_eq!(names(&learned(&path)), ["n", "class"]);
    std::fs::remove_file(path.with_extension("names")).unwrap();
    assert_eq!(names(&learned(&path)), ["m", "class"]);
    write("malformed", "a.names.gz", "secret ".repeat(9));
    assert!(matches!(open(), Err(Error::Unreadable { path, .. }) if path.ends_with("a.names.gz")));
    std::fs::remove_file(path.with_extension("names.gz")).unwrap();
    std::fs::create_dir_all(path.with_extension("names")).unwrap();
    assert!(open().unwrap_err().to_string().ends_with("a.names cannot be read: it is a directory"));
    std::fs::remove_dir(path.with_extension("names")).unwrap();
    assert_eq!(open(), Ok(()));
    // Two columns of one name.
    write("malformed", "b.names", "yes, no.\nclass: continuous.\n");
    let error = Schema::infer(write("malformed", "b.data", "1, 2\n"), None).unwrap_err();
    assert!(matches!(&error, Error::DuplicateColumn { column, .. } if column == "class"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Any bytes are rows, in any blocks the same.
    #[test]
    fn any_bytes_are_rows(
        body in proptest::collection::vec(
            prop_oneof![
                5 => proptest::sample::select(b",,\n\n\r|\"0123456789.-einfxyNA? ".to_vec()),
                1 => proptest::sample::select(b"\xef\xbb\xbf".to_vec()),
                1 => any::<u8>(),
            ],
            0..400,
        ),
        mark in any::<bool>(),
        rows_per_block in 1usize..8,
    ) {
        let schema = Schema::new(vec![number("x1", 0.5, None), category("x0", &["x", "y"])]).unwrap();
        let encoding = Encoding::identity(&schema).unwrap();
        let content = if mark { [b"\xef\xbb\xbf", &body[..]].concat() } else { body };
        let plain = write("any", "any.data", &content);
        let packed = write("any", "any.test.gz", support::gzip(&content));
        let options = LoadOptions::default().rows_per_block(rows_per_block);
        let first = rows(&declassified(open_private(&plain, &schema, &encoding, options).unwrap()));
        prop_assert_eq!(&first, &private_rows(&packed, &schema));
        let mark: &[u8] = b"\xef\xbb\xbf";
        let lines = content.strip_prefix(mark).unwrap_or(&content);
        // A break at the end ends the last line.
        let count = lines.iter().filter(|&&byte| byte == b'\n').count();
        let count = count + usize::from(lines.last().is_some_and(|&byte| byte != b'\n'));
        prop_assert_eq!(first.len(), count);
    }
}
