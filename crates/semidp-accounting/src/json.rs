//! JSON that every parser reads alike: an object must not have a key twice, as some parsers take the first value and some the last. The
//! number of values is limited, because a value takes up to fifty times the memory of its text (`[],` or `{"":0}`).

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Largest number of values and keys in one text. Measured: 3,000,000 of the largest kind (`{"":0},`) take 0.5 GB. A model of 2,600,000
/// weights, which fills a file of 64 MiB, has fewer.
pub const MAX_VALUES: usize = 3_000_000;

/// Why a text was refused.
#[derive(Debug)]
pub enum Error {
    /// It is not JSON, or a number of it is not finite.
    NotJson(serde_json::Error),
    /// A key occurs twice in one object.
    RepeatedKey(serde_json::Error),
    /// It has more values and keys than are read.
    TooManyValues {
        /// How many there may be.
        most: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "not JSON: {error}"),
            Self::RepeatedKey(error) => error.fmt(f),
            Self::TooManyValues { most } => write!(f, "it has more than {most} JSON values and keys"),
        }
    }
}

impl std::error::Error for Error {}

/// Reads a JSON text of at most [`MAX_VALUES`] values and keys, and refuses a key that occurs twice in one object.
pub fn parse(text: &str) -> Result<Value, Error> {
    let budget = Budget::new(MAX_VALUES);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Unambiguous(&budget).deserialize(&mut deserializer);
    read.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| budget.explain(error))
}

/// Refuses a text of more than [`MAX_VALUES`] values and keys, and builds none of them: for readers that do not use [`parse`]. What is no
/// JSON after fewer values passes, as its reader refuses it.
pub fn check_size(text: &str) -> Result<(), Error> {
    let budget = Budget::new(MAX_VALUES);
    let read = Counted(&budget).deserialize(&mut serde_json::Deserializer::from_str(text));
    match read.map_err(|error| budget.explain(error)) {
        Err(error @ Error::TooManyValues { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// How large a value is that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// The number of values and keys.
    pub(crate) values: usize,
    /// Bytes of texts and keys.
    pub(crate) text: usize,
}

impl Size {
    pub(crate) fn of(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value);
        size
    }

    // Values are nested at most 128 deep.
    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::String(text) => self.text += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => {
                self.values += fields.len();
                for (key, field) in fields {
                    self.text += key.len();
                    self.add(field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// How many more values and keys may be read, and why reading ended.
struct Budget {
    most: usize,
    left: Cell<usize>,
    is_exceeded: Cell<bool>,
    has_repeated_key: Cell<bool>,
}

impl Budget {
    fn new(most: usize) -> Self {
        Self {
            most,
            left: Cell::new(most),
            is_exceeded: Cell::new(false),
            has_repeated_key: Cell::new(false),
        }
    }

    /// Takes one value or key.
    fn take<E: serde::de::Error>(&self) -> Result<(), E> {
        match self.left.get().checked_sub(1) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.is_exceeded.set(true);
                Err(E::custom("too many values"))
            }
        }
    }

    fn explain(&self, error: serde_json::Error) -> Error {
        if self.is_exceeded.get() {
            Error::TooManyValues { most: self.most }
        } else if self.has_repeated_key.get() {
            Error::RepeatedKey(error)
        } else {
            Error::NotJson(error)
        }
    }
}

/// Reads a value whose objects have each key once.
#[derive(Clone, Copy)]
struct Unambiguous<'a>(&'a Budget);

impl<'de> DeserializeSeed<'de> for Unambiguous<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        // Room for four values is made at once.
        list.shrink_to_fit();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.take()?;
            if object.contains_key(&key) {
                self.0.has_repeated_key.set(true);
                return Err(A::Error::custom(format!("the key `{key}` occurs twice in one object")));
            }
            let value = entries.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Counts values and keys without keeping them.
#[derive(Clone, Copy)]
struct Counted<'a>(&'a Budget);

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.take()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        // A key is counted as any value.
        while entries.next_key_seed(self)?.is_some() {
            entries.next_value_seed(self)?;
        }
        Ok(())
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
            assert!(matches!(error, Error::RepeatedKey(_)), "{error:?}");
            assert!(error.to_string().contains("`a` occurs twice"), "{error}");
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
            assert_eq!(matches!(found, Err(Error::NotJson(_))), usual.is_err(), "{text}");
            assert!(check_size(text).is_ok());
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(parse(&deep).is_err());
        assert!(check_size(&deep).is_ok());
    }

    /// Every value and every key counts, and a text of more of them is refused whether it ends well or not.
    #[test]
    fn values_and_keys_are_limited() {
        // The text of one repeated part, and what it counts.
        for (part, each) in [("0", 1), ("[]", 1), ("[0]", 2), ("{}", 1), (r#"{"":0}"#, 3), (r#""a""#, 1)] {
            // The list around them counts too.
            let fits = (MAX_VALUES - 1) / each;
            for (times, is_refused) in [(fits, false), (fits + 1, true)] {
                let list = vec![part; times].join(",");
                for (end, is_whole) in [("]", true), ("", false), ("] 1", false)] {
                    let text = format!("[{list}{end}");
                    for found in [parse(&text).map(drop), check_size(&text)] {
                        let is_over = matches!(found, Err(Error::TooManyValues { most: MAX_VALUES }));
                        assert_eq!(is_over, is_refused, "{part} {times}");
                    }
                    if !is_refused {
                        assert_eq!(parse(&text).is_ok(), is_whole);
                        assert!(check_size(&text).is_ok());
                    }
                }
            }
        }
        let error = parse(&format!("[{}0]", "0,".repeat(MAX_VALUES))).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 3000000 JSON values and keys");
    }

    #[test]
    fn values_that_were_read_are_counted_alike() {
        let value = parse(r#"{"z": 1, "a": [1, 2.5, {"b": "c"}], "": false}"#).unwrap();
        // The object, its three keys and values, three items in the list, and a key and a value in the last.
        assert_eq!(Size::of(&value), Size { values: 12, text: 4 });
    }
}
