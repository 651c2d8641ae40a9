//! Feeds arbitrary text to the reader of schemas. What is read is written as the same schema, and encodes rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp_fuzz::{folder, write};
use semidp_table::{Encoding, LoadOptions, Schema, open_public};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(schema) = Schema::from_json(text) else { return };
    assert_eq!(Schema::from_json(&schema.to_json()).as_ref(), Ok(&schema));
    let Ok(encoding) = Encoding::identity(&schema) else { return };
    assert_eq!(encoding.names().len(), encoding.width());
    let data = write(&folder(), "rows.csv", b"x,c,y\n1,a,2\n?,b,\n1e300,other,3\n");
    let _ = open_public(&data, &schema, &encoding, LoadOptions::default().strict(true));
    let _ = open_public(&data, &schema, &encoding, LoadOptions::default());
});
