//! Small files that would take much memory, many open files or much time.

mod support;

use parquet::file::properties::WriterProperties;
use semidp_core::BlockSource;
use semidp_table::{Encoding, Error, LoadOptions, MAX_CELL_BYTES, Schema, open_public};
use support::{Values, category, doubles, number, private_rows, rows, write};

fn archive(name: &str, arrays: usize) -> std::path::PathBuf {
    let body = doubles(&[1.0, 2.0, 3.0]);
    let names: Vec<String> = (0..arrays).map(|place| format!("x{place}")).collect();
    let arrays: Vec<_> =
        names.iter().map(|name| (name.as_str(), support::npy(1, "<f8", false, "(3,)", &body))).collect();
    support::npz(name, &arrays)
}

/// Most memory that this process has had, in MB.
#[cfg(target_os = "linux")]
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

/// Each array once had a list of all arrays and an open file of its own: 3,000 took 1.6 GB, and more files than a process may open.
#[test]
fn an_archive_of_many_arrays_is_read_through_one_list_and_one_file() {
    let path = archive("many.npz", 3000);
    let schema = Schema::infer(&path, None).unwrap().schema;
    assert_eq!(schema.columns().len(), 3000);
    let table =
        open_public(&path, &schema, &Encoding::identity(&schema).unwrap(), LoadOptions::default()).unwrap();
    #[cfg(target_os = "linux")]
    table
        .visit(0, &mut |_| {
            let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
            assert!(open < 64, "{open} open files");
        })
        .unwrap();
    let found = rows(&*table);
    assert_eq!(found, [vec![1.0; 3000], vec![2.0; 3000], vec![3.0; 3000]]);
    #[cfg(target_os = "linux")]
    assert!(most_memory() < 600, "{} MB", most_memory());
}

#[test]
fn an_archive_of_too_many_arrays_is_refused() {
    let error = Schema::infer(archive("too-many.npz", 8193), None).unwrap_err().to_string();
    assert!(error.contains("more than 8192 arrays"), "{error}");
}

/// Two arrays by columns are in memory side by side, so they count together.
#[test]
fn arrays_by_columns_count_together() {
    let half = || support::npy(1, "<f8", true, "(20000000, 2)", &[]);
    let error = Schema::infer(support::npz("by-columns.npz", &[("a", half()), ("b", half())]), None);
    let error = error.unwrap_err().to_string();
    // They are shorter than they say, which is found first; a header alone must not make room for anything.
    assert!(error.contains("shorter") || error.contains("512 MiB"), "{error}");
}

/// A long cell is missing in a private file, and names its column in a public one; the longest that is not is a value.
#[test]
fn long_cells_are_missing_or_refused() {
    let longest: &'static str = Box::leak("v".repeat(MAX_CELL_BYTES).into_boxed_str());
    let longer: &'static str = Box::leak("v".repeat(MAX_CELL_BYTES + 1).into_boxed_str());
    let zeros = "0".repeat(MAX_CELL_BYTES);
    let file = |name: &str, cell: &'static str| {
        let columns =
            vec![Values::Text(vec![Some("x"), Some(cell)]), Values::Double(vec![Some(1.0), Some(2.0)])];
        let properties = WriterProperties::default();
        support::parquet(name, "optional binary c (UTF8); optional double n;", &[columns], properties)
    };
    let csv = |name: &str, cell: &str| write(name, format!("c,n\nx,1\n{cell},2\n"));
    for path in [file("long.parquet", longer), csv("long.csv", longer)] {
        let error = Schema::infer(&path, None).unwrap_err();
        assert!(matches!(&error, Error::ValueTooLong { column, .. } if column == "c"), "{error}");
        let schema = Schema::new(vec![category("c", &["x", longest]), number("n", 0.0, None)]).unwrap();
        assert_eq!(private_rows(&path, &schema), [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 2.0]]);
    }
    for path in [file("longest.parquet", longest), csv("longest.csv", longest)] {
        let schema = Schema::infer(&path, None).unwrap().schema;
        assert_eq!(
            schema,
            Schema::new(vec![category("c", &[longest, "x"]), number("n", 1.5, None)]).unwrap()
        );
        assert_eq!(private_rows(&path, &schema), [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 2.0]]);
    }
    // A number of so many digits is missing, too.
    let schema = Schema::new(vec![number("n", 7.0, None)]).unwrap();
    let path = write("digits.csv", format!("n\n{}1\n{zeros}1\n", &zeros[1..]));
    assert_eq!(private_rows(&path, &schema), [[1.0], [7.0]]);
    let error = Schema::new(vec![category("c", &[longer])]).unwrap_err().to_string();
    assert!(error.contains("at most 2048 bytes"), "{error}");
}
