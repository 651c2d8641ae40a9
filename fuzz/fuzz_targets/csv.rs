//! Feeds arbitrary bytes to the readers of text: CSV, TSV and the files of C4.5, plain and compressed. A private file of them
//! is never refused once its header is right, has a unit a line, and is the same whatever its blocks and its compression. A public
//! one may be refused, and nothing panics.
#![no_main]

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use semidp_core::{Adjacency, Block, BlockSource, Session};
use semidp_fuzz::{folder, write};
use semidp_table::{Column, Encoding, Kind, LoadOptions, Schema, open_private, open_public};
use std::io::Write;
use std::path::Path;

fn schema(names: [&str; 2]) -> Schema {
    let number = Column { name: names[0].into(), kind: Kind::Number { impute: -1.0, range: None } };
    let values = vec!["a".into(), "b".into()];
    Schema::new(vec![number, Column { name: names[1].into(), kind: Kind::Category { values } }]).unwrap()
}

fn rows(source: &impl BlockSource) -> Vec<Vec<(u32, u32)>> {
    let mut rows = Vec::new();
    for block in 0..source.blocks() {
        let read = source.visit(block, &mut |piece| {
            let Block::CsrF32(piece) = piece else { panic!("an encoding with indicators is sparse") };
            for ends in piece.offsets.windows(2) {
                let entries = ends[0]..ends[1];
                let values = piece.values[entries.clone()].iter().map(|value| value.to_bits());
                rows.push(piece.columns[entries].iter().copied().zip(values).collect());
            }
        });
        read.expect("a file that was opened can be read");
    }
    assert_eq!(rows.len(), source.units());
    rows
}

fn private(path: &Path, schema: &Schema, options: LoadOptions) -> Vec<Vec<(u32, u32)>> {
    let encoding = Encoding::identity(schema).unwrap();
    let table = open_private(path, schema, &encoding, options).expect("private files are never refused");
    rows(&Session::new(table, Adjacency::ReplaceOne).unwrap().into_declassified("a fuzz target"))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&flags, text)) = bytes.split_first() else { return };
    let (ending, header, named) = match flags % 4 {
        0 => ("csv", &b"n,c\n"[..], true),
        1 => ("tsv", &b"c\tn\r\n"[..], true),
        2 => ("data", &b""[..], false),
        // A header of the fuzzer's own.
        _ => ("csv", &b""[..], true),
    };
    let multiline = flags & 4 != 0;
    let rows_per_block = 1 + usize::from(flags >> 4);
    let text = [header, text].concat();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&text).unwrap();
    let folder = folder();
    let plain = write(&folder, &format!("plain.{ending}"), &text);
    let packed = write(&folder, &format!("packed.{ending}.gz"), &packed.finish().unwrap());
    let options = || LoadOptions::default().multiline(multiline).rows_per_block(rows_per_block);
    let schema = if named { schema(["n", "c"]) } else { schema(["x0", "x1"]) };
    if flags % 4 != 3 {
        let found = private(&plain, &schema, options());
        assert_eq!(found, private(&packed, &schema, options()));
        assert_eq!(found, private(&plain, &schema, options().rows_per_block(8192)));
        if !multiline || !named {
            let body = &text[header.len()..];
            let body = if named { body } else { body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body) };
            let breaks = body.iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(found.len(), breaks + usize::from(body.last().is_some_and(|&byte| byte != b'\n')));
        }
    }
    let encoding = Encoding::identity(&schema).unwrap();
    for path in [plain, packed] {
        let _ = Schema::infer_with(&path, None, &options());
        let _ = Schema::of_numbers_with(&path, None, &options());
        if let Ok(table) = open_public(&path, &schema, &encoding, options()) {
            rows(&*table);
        }
        if let Ok(table) = open_private(&path, &schema, &encoding, options().strict(true)) {
            rows(&Session::new(table, Adjacency::ReplaceOne).unwrap().into_declassified("a fuzz target"));
        }
    }
});
