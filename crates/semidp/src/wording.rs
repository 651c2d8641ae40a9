//! Sentences whose parameters each interface words in its own terms: `--sample-rate` on a command line, `sample_rate` in Python.

use std::fmt;

/// A sentence about parameters. The text is a constant of the library; whatever users or files bring in are values, which are
/// inserted as they are and never searched for parameters.
///
/// In the template `{sample-rate}` is a parameter, `{sampling=poisson}` a parameter with its value, `{!plan mean}` a command, and `{0}` the
/// first value; `{sampling=0}` is a parameter with the first value, and `{@0}` the parameter that the first value names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sentence {
    template: &'static str,
    values: Vec<String>,
}

/// How an interface calls things.
pub trait Terms {
    /// A parameter.
    fn parameter(&self, name: &str) -> String;

    /// A parameter with a value.
    fn setting(&self, name: &str, value: &str) -> String;

    /// A command.
    fn command(&self, name: &str) -> String;
}

/// The terms of the library itself: bare names.
#[derive(Debug, Clone, Copy)]
pub struct Bare;

impl Terms for Bare {
    fn parameter(&self, name: &str) -> String {
        name.into()
    }

    fn setting(&self, name: &str, value: &str) -> String {
        format!("{name} {value}")
    }

    fn command(&self, name: &str) -> String {
        format!("`{name}`")
    }
}

impl Sentence {
    /// A sentence with these values.
    pub fn new<V: ToString>(template: &'static str, values: impl IntoIterator<Item = V>) -> Self {
        Self { template, values: values.into_iter().map(|value| value.to_string()).collect() }
    }

    /// The sentence in the terms of an interface.
    pub fn in_terms(&self, terms: &dyn Terms) -> String {
        let mut text = String::with_capacity(self.template.len());
        let mut rest = self.template;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let Some((slot, after)) = after.split_once('}') else { break };
            text.push_str(&self.slot(slot, terms));
            rest = after;
        }
        text.push_str(rest);
        text
    }

    fn slot(&self, slot: &str, terms: &dyn Terms) -> String {
        if let Some(value) = self.value(slot) {
            return value.into();
        }
        if let Some(command) = slot.strip_prefix('!') {
            return terms.command(command);
        }
        if let Some(name) = slot.strip_prefix('@').and_then(|slot| self.value(slot)) {
            return terms.parameter(name);
        }
        match slot.split_once('=') {
            Some((name, value)) => terms.setting(name, self.value(value).unwrap_or(value)),
            None => terms.parameter(slot),
        }
    }

    /// The value of a slot that is a number.
    fn value(&self, slot: &str) -> Option<&str> {
        self.values.get(slot.parse::<usize>().ok()?).map(String::as_str)
    }
}

impl From<&'static str> for Sentence {
    fn from(template: &'static str) -> Self {
        Self { template, values: Vec::new() }
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_terms(&Bare))
    }
}

/// A template and the values of its slots, as in `sentence!("{sampling=0} needs {sample-rate}", name)`.
#[macro_export]
macro_rules! sentence {
    ($template:literal $(, $value:expr)* $(,)?) => {
        $crate::wording::Sentence::new($template, [$(($value).to_string()),*] as [String; _])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Flags;

    impl Terms for Flags {
        fn parameter(&self, name: &str) -> String {
            format!("--{name}")
        }

        fn setting(&self, name: &str, value: &str) -> String {
            format!("--{name} {value}")
        }

        fn command(&self, name: &str) -> String {
            format!("`tool {name}`")
        }
    }

    #[test]
    fn parameters_are_worded_by_the_interface_and_values_are_left_alone() {
        let sentence = sentence!(
            "{sample-rate} goes with {sampling=poisson}, not {sampling=0}: see {!plan mean}, {1}",
            "x {epsilon}",
            7
        );
        assert_eq!(
            sentence.in_terms(&Flags),
            "--sample-rate goes with --sampling poisson, not --sampling x {epsilon}: see `tool plan mean`, 7"
        );
        assert_eq!(sentence!("no {std}, no {@0}", "out").to_string(), "no std, no out");
    }
}
