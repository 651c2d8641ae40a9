//! Feeds arbitrary JSON to the reader of models, with a checksum that is right, and has what it accepts predict.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp::model::{Predictor, SavedModel};
use semidp_fuzz::{folder, write};
use serde_json::Value;

/// As the writer computes it: FNV-1a of the compact text. It guards against accidents, so that a fuzzer may know it.
fn checksum(value: &Value) -> String {
    let hash = value.to_string().bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = SavedModel::from_json(text);
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return };
    let Some(object) = value.as_object_mut() else { return };
    object.shift_remove("checksum");
    let sum = checksum(&value);
    value["checksum"] = Value::String(sum);
    let Ok(saved) = SavedModel::from_json(&value.to_string()) else { return };
    let again = SavedModel::from_json(&saved.to_json().unwrap()).expect("a model reads back");
    assert_eq!(again.to_json().unwrap(), saved.to_json().unwrap());
    let data = write(&folder(), "rows.csv", b"x,c,y\n1,a,2\n?,b,\n1e300,other,3\n");
    if let Ok(predictor) = Predictor::new(saved) {
        let headings = predictor.headings().len();
        let _ = predictor.predict(&data, &mut |cells| assert_eq!(cells.len(), headings));
        let _ = predictor.scores(&data);
        let _ = predictor.evaluate(&data);
    }
});
