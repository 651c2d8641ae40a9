//! Feeds arbitrary bytes to the readers of NPY and NPZ files. A file is rows or an error: no panic, and no memory that the
//! file only claims to need.
#![no_main]

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use semidp_core::{Adjacency, BlockSource, Session};
use semidp_fuzz::{folder, write};
use semidp_table::{Encoding, LoadOptions, Schema, open_private};
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let Some((&flags, array)) = bytes.split_first() else { return };
    let folder = folder();
    let path = match flags % 5 {
        0 => write(&folder, "a.npy", array),
        1 => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(array).unwrap();
            write(&folder, "a.npy.gz", &packed.finish().unwrap())
        }
        // The fuzzer's own archive, and its own compression.
        2 => write(&folder, "a.npz", array),
        3 => write(&folder, "b.npy.gz", array),
        _ => {
            // A whole archive of two arrays.
            let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            let (one, two) = array.split_at(array.len() / 2);
            for (name, bytes) in [("a.npy", one), ("b.npy", two)] {
                let method = zip::CompressionMethod::Stored;
                let options = zip::write::SimpleFileOptions::default().compression_method(method);
                archive.start_file(name, options).unwrap();
                archive.write_all(bytes).unwrap();
            }
            write(&folder, "c.npz", &archive.finish().unwrap().into_inner())
        }
    };
    let Ok(inferred) = Schema::infer(&path, None) else { return };
    let mut names = inferred.schema.numbers();
    // Many columns take long, and show nothing new.
    names.truncate(50);
    let schema = inferred.schema.select(&names).unwrap();
    let encoding = Encoding::identity(&schema).unwrap();
    let options = LoadOptions::default().rows_per_block(1 + usize::from(flags / 5));
    let Ok(table) = open_private(&path, &schema, &encoding, options) else { return };
    let Ok(session) = Session::new(table, Adjacency::ReplaceOne) else { return };
    let table = session.into_declassified("a fuzz target");
    for block in 0..table.blocks() {
        let _ = table.visit(block, &mut |_| ());
    }
});
