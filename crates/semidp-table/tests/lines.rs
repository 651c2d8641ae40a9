//! In a private file of text a line is a unit: what one line says changes the cells of one unit, and nothing else.

mod support;

use proptest::prelude::*;
use semidp_core::BlockSource;
use semidp_table::{Encoding, Error, LoadOptions, Schema, open_private, open_public};
use std::path::{Path, PathBuf};
use support::{category, declassified, gzip, number, private_rows, public_rows, rows};

/// A folder for each test: tests run at the same time.
fn write(test: &str, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let folder = support::path(&format!("lines-{test}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), content).unwrap();
    folder.join(name)
}

fn schema(names: [&str; 2]) -> Schema {
    Schema::new(vec![number(names[0], -1.0, None), category(names[1], &["a", "b"])]).unwrap()
}

fn private(path: &Path, schema: &Schema, options: LoadOptions) -> Vec<Vec<f32>> {
    let encoding = Encoding::identity(schema).unwrap();
    rows(&declassified(open_private(path, schema, &encoding, options).unwrap()))
}

/// A number and a value of the category, or neither.
fn unit(number: f32, value: Option<char>) -> Vec<f32> {
    let is = |other| f32::from(u8::from(value == other));
    vec![number, is(Some('a')), is(Some('b')), is(None)]
}

#[test]
fn a_stray_quote_erases_no_other_line() {
    let schema = schema(["n", "c"]);
    let good: Vec<String> = (0..3000).map(|i| format!("{i},{}", ["a", "b"][i % 2])).collect();
    for (stray, expected) in [("\"7,a", -1.0), ("1500,\"a", 1500.0)] {
        let mut lines = good.clone();
        lines[1500] = stray.into();
        let text = format!("n,c\n{}\n", lines.join("\n"));
        for path in [write("stray", "a.csv", &text), write("stray", "a.csv.gz", gzip(&text))] {
            let found = private_rows(&path, &schema);
            assert_eq!(found.len(), 3000, "{stray}");
            for (i, row) in found.iter().enumerate() {
                let value = ['a', 'b'][i % 2];
                let whole = unit(i as f32, Some(value));
                assert_eq!(*row, if i == 1500 { unit(expected, None) } else { whole }, "{stray} {i}");
            }
            // Public rows are as many.
            assert_eq!(public_rows(&path, &schema), found);
            let inferred = Schema::infer(&path, Some(&["c"])).unwrap();
            assert_eq!(inferred.unclosed, 1);
            // Whoever vouches for the quotes gets what they say.
            let multiline = private(&path, &schema, LoadOptions::default().multiline(true));
            assert_eq!(multiline.len(), 1501);
        }
    }
}

#[test]
fn fields_span_lines_only_where_the_caller_says_so() {
    let schema = schema(["n", "c"]);
    let text = "n,c,note\n1,a,\"two\nlines\"\n2,b,\"one\"\n";
    let path = write("multiline", "a.csv", text);
    let one = private(&path, &schema, LoadOptions::default());
    assert_eq!(one, [unit(1.0, Some('a')), unit(-1.0, None), unit(2.0, Some('b'))]);
    let two = private(&path, &schema, LoadOptions::default().multiline(true));
    assert_eq!(two, [unit(1.0, Some('a')), unit(2.0, Some('b'))]);
    let inferred = Schema::infer_with(&path, None, &LoadOptions::default().multiline(true)).unwrap();
    assert_eq!((inferred.unclosed, inferred.schema.columns().len()), (0, 3));
}

#[test]
fn every_line_after_the_header_of_a_private_file_is_a_unit() {
    let two = schema(["n", "c"]);
    let missing = || unit(-1.0, None);
    let first = || unit(1.0, Some('a'));
    for (text, expected) in [
        ("n,c\n", vec![]),
        ("n,c", vec![]),
        ("\n\r\nn,c\n1,a", vec![first()]),
        ("n,c\n1,a\n", vec![first()]),
        ("n,c\n1,a\n\n", vec![first(), missing()]),
        ("n,c\r\n\r\n1,a\r\n", vec![missing(), first()]),
        ("n,c\n\r\n1,a\n\r", vec![missing(), first(), missing()]),
        // A lone `\r` is text.
        ("n,c\n1,a\r2,b\n1,a\n", vec![unit(1.0, None), first()]),
        (
            "n,c\n1\n1,a,b,c\n\0\n\u{feff}1,a\n\"1\"\"\",\"a\"\n",
            vec![unit(1.0, None), first(), missing(), unit(-1.0, Some('a')), unit(-1.0, Some('a'))],
        ),
    ] {
        for path in [write("units", "a.csv", text), write("units", "a.csv.gz", gzip(text))] {
            for rows_per_block in [1, 2, 100] {
                let options = LoadOptions::default().rows_per_block(rows_per_block);
                assert_eq!(private(&path, &two, options), expected, "{text:?}");
            }
        }
    }
    let numbered = schema(["x0", "x1"]);
    for (text, expected) in [
        ("", vec![]),
        ("|1x3 Cross validator\n\n 1, a.\n", vec![missing(), missing(), first()]),
        ("1, a.\r\n\"1, a\n", vec![first(), unit(-1.0, Some('a'))]),
    ] {
        for path in [write("units", "a.data", text), write("units", "b.test.gz", gzip(text))] {
            assert_eq!(private(&path, &numbered, LoadOptions::default()), expected, "{text:?}");
        }
    }
}

/// Where a lone `\r` could end lines, a first line that begins with `\n` would turn it into `\r\n`, and decide how all lines end.
#[test]
fn no_private_line_decides_how_lines_end() {
    let schema = schema(["n", "c"]);
    let encoding = Encoding::identity(&schema).unwrap();
    for options in [LoadOptions::default(), LoadOptions::default().multiline(true)] {
        // With or without rows, and whatever they are.
        for text in ["n,c\r", "n,c\r1,a\r2,b\r", "n,c\r1,a\n2,b\n", "n,c\r\"\n\r2,b\r", "\nn,c\r1,a\n"] {
            for path in [write("return", "a.csv", text), write("return", "a.csv.gz", gzip(text))] {
                let error = open_private(&path, &schema, &encoding, options.clone()).unwrap_err();
                assert!(matches!(error, Error::Unreadable { .. }), "{text:?} {error}");
                assert!(
                    error.to_string().contains("its header line ends with a carriage return alone"),
                    "{error}"
                );
            }
        }
    }
    // Public rows may be looked at.
    assert!(Schema::infer(write("return", "a.csv", "n,c\r1,a\r2,b\r"), Some(&["c"])).is_ok());
    // These bytes are a file whose lines end with a line feed, whatever wrote them.
    let path = write("return", "a.csv", "n,c\r\n,a\r3,b\r4,b\r");
    assert_eq!(private(&path, &schema, LoadOptions::default()), [unit(-1.0, None)]);
}

/// 2^26 bytes are the longest line. The file is made of zeros, which its compression makes small.
#[test]
fn a_line_that_is_too_long_is_a_unit_with_missing_cells() {
    let schema = schema(["n", "c"]);
    let text = [&b"n,c\n1,a\n5,a,"[..], &vec![b'0'; (64 << 20) - 3], b"\n2,b\n"].concat();
    let path = write("long", "a.csv.gz", gzip(&text));
    let expected = [unit(1.0, Some('a')), unit(-1.0, None), unit(2.0, Some('b'))];
    assert_eq!(private(&path, &schema, LoadOptions::default()), expected);
    for options in [LoadOptions::default(), LoadOptions::default().multiline(true)] {
        let error = open_public(&path, &schema, &Encoding::identity(&schema).unwrap(), options).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("starts at byte 8 is longer than 67108864 bytes"), "{message}");
    }
}

#[test]
fn headers_have_a_limit() {
    for (name, header, reason) in [
        ("columns.csv", ",".repeat(1 << 20), "more than 1048576 columns"),
        ("long.csv", "n".repeat((16 << 20) + 1), "longer than 16 MiB"),
        ("columns.data", ",".repeat(1 << 20), "more than 1048576 columns"),
    ] {
        let error = Schema::infer(write("headers", name, header), None).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

/// Any bytes but line breaks.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        6 => proptest::sample::select(b"0123456789.-,,,\t\t\"\"|ab ?".to_vec()),
        1 => proptest::sample::select(b"\xef\xbb\xbf\0\xff".to_vec()),
        1 => any::<u8>(),
    ];
    let byte = byte.prop_map(|byte| if matches!(byte, b'\n' | b'\r') { b'"' } else { byte });
    prop_oneof![
        4 => proptest::collection::vec(byte, 0..24),
        1 => proptest::sample::select(vec![&b"1,a"[..], b"1\ta", b"\"", b"", b"\"1,a"])
            .prop_map(<[u8]>::to_vec),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Replacing one line changes one unit.
    #[test]
    fn replacing_a_line_changes_one_unit(
        mut lines in proptest::collection::vec(line(), 1..12),
        other in line(),
        at in any::<proptest::sample::Index>(),
        line_break in proptest::sample::select(vec!["\n", "\r\n"]),
        mark in any::<bool>(),
        rows_per_block in 1usize..5,
    ) {
        let at = at.index(lines.len());
        let content = |header: Option<&str>, lines: &[Vec<u8>]| {
            let header = header.map(|header| header.as_bytes().to_vec());
            let mut bytes = if mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
            for line in header.iter().chain(lines) {
                bytes.extend_from_slice(line);
                // A file without a header has one kind of break.
                bytes.extend_from_slice(if header.is_some() || line_break == "\r\n" { line_break } else { "\n" }.as_bytes());
            }
            bytes
        };
        let named = schema(["n", "c"]);
        let numbered = schema(["x0", "x1"]);
        let formats = [
            ("a.csv", Some("n,c"), &named),
            ("a.tsv", Some("c\tn"), &named),
            ("a.data", None, &numbered),
        ];
        let read = |lines: &[Vec<u8>]| {
            let mut all = Vec::new();
            for (name, header, schema) in formats {
                let bytes = content(header, lines);
                for path in [write("property", name, &bytes), write("property", &format!("{name}.gz"), gzip(&bytes))] {
                    all.push(private(&path, schema, LoadOptions::default().rows_per_block(rows_per_block)));
                }
            }
            all
        };
        let before = read(&lines);
        lines[at] = other;
        for (before, after) in before.iter().zip(read(&lines)) {
            prop_assert_eq!(before.len(), lines.len());
            prop_assert_eq!(after.len(), lines.len());
            for (row, (before, after)) in before.iter().zip(&after).enumerate().filter(|(row, _)| *row != at) {
                prop_assert_eq!(before, after, "{}", row);
            }
        }
    }
}

/// Sources may not lie about their blocks either.
#[test]
fn blocks_of_one_column_are_blocks() {
    let schema = Schema::new(vec![number("n", -1.0, None)]).unwrap();
    let path = write("one", "a.csv", "n\n1\n\n2\n3\n");
    let encoding = Encoding::identity(&schema).unwrap();
    let options = LoadOptions::default().rows_per_block(2);
    let public = open_public(&path, &schema, &encoding, options.clone()).unwrap();
    assert_eq!((public.blocks(), rows(&*public)), (2, vec![vec![1.0], vec![-1.0], vec![2.0], vec![3.0]]));
    assert_eq!(private(&path, &schema, options), rows(&*public));
}
