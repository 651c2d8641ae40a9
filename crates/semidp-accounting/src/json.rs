//! JSON that every parser reads alike: an object must not have a key twice, as some parsers take the first value and some the last.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads a JSON text, and refuses a key that occurs twice in one object.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<Unambiguous>(text).map(|Unambiguous(value)| value)
}

/// A value whose objects have each key once.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Once).map(Self)
    }
}

struct Once;

impl<'de> Visitor<'de> for Once {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` occurs twice in one object")));
            }
            let Unambiguous(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_occurs_once_in_each_object() {
        for text in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"a": 1, "b": 2, "\u0061": 3}"#,
            r#"[{"b": {"c": [{"a": null, "a": null}]}}]"#,
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.is_data() && error.to_string().contains("`a` occurs twice"), "{error}");
        }
        assert!(parse(r#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]}"#).is_ok());
    }

    #[test]
    fn every_other_text_reads_as_usual() {
        for text in [
            "null",
            "true",
            "-3",
            "18446744073709551615",
            "0.1",
            "1e-300",
            "-0.0",
            "\"a\\nb\"",
            r#"{"z": 1, "a": [1, 2.5, {"b": "c"}], "": false}"#,
            "",
            "{",
            "[1,]",
            "1e999",
            "1 2",
        ] {
            let usual: serde_json::Result<Value> = serde_json::from_str(text);
            let found = parse(text);
            assert_eq!(found.as_ref().ok().map(Value::to_string), usual.as_ref().ok().map(Value::to_string));
            assert_eq!(found.is_err_and(|error| error.is_data()), usual.is_err_and(|error| error.is_data()));
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse(&deep).is_err());
    }
}
