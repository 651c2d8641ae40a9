//! Settings as nested lists of names and values.

use super::words::{escape, words};
use serde_json::Value;
use std::fmt::Write;

/// A list of an object; anything else as it stands.
pub fn list(page: &mut String, value: &Value) {
    match value {
        Value::Object(entries) => {
            page.push_str("<dl>");
            for (name, value) in entries {
                let _ = write!(page, "<dt>{}</dt><dd>", escape(&words(name)));
                list(page, value);
                page.push_str("</dd>\n");
            }
            page.push_str("</dl>");
        }
        Value::Array(entries) if entries.iter().any(is_long) => {
            page.push_str("<ol>");
            for entry in entries {
                page.push_str("<li>");
                list(page, entry);
                page.push_str("</li>\n");
            }
            page.push_str("</ol>");
        }
        Value::Array(entries) => {
            let entries: Vec<String> = entries.iter().map(plain).collect();
            page.push_str(&escape(&entries.join(", ")));
        }
        value => page.push_str(&escape(&plain(value))),
    }
}

/// Several of which do not belong on one line.
fn is_long(value: &Value) -> bool {
    match value {
        Value::Object(_) | Value::Array(_) => true,
        Value::String(text) => text.chars().count() > 24,
        _ => false,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.into(),
        Value::Number(number) => match number.as_f64() {
            // A number that somebody chose has few digits; one that was computed is cut.
            Some(value) if number.is_f64() => super::table::short(value),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        // Only within lists, which put them on lines of their own.
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_value_is_readable() {
        let mut page = String::new();
        list(
            &mut page,
            &json!({ "none": null, "is": true, "std": 10902.416212641252, "whole": 2.0, "n": 30000 }),
        );
        for part in ["<dd>none</dd>", "<dd>yes</dd>", "<dd>10902</dd>", "<dd>2</dd>", "<dd>30000</dd>"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        page.clear();
        list(&mut page, &json!([{ "a_b": "x < y" }, ["a sentence that is too long for a list on one line"]]));
        assert!(page.starts_with("<ol><li><dl><dt>a b</dt><dd>x &lt; y</dd>"), "{page}");
    }
}
