//! Parsers of numbers that say what a parameter must be.

pub use semidp::number::{count, exact, lower_bound, nearest, upper_bound};
use semidp_accounting::{Error, Steps};

/// Parses a validated parameter, such as an epsilon.
pub fn parse<T: TryFrom<f64, Error = Error>>(text: &str) -> Result<T, Error> {
    match text.trim().parse::<f64>() {
        Ok(value) => T::try_from(value),
        // No parameter admits NaN, so this yields the requirement to state.
        Err(_) => T::try_from(f64::NAN).map_err(|error| quoting(error, text)),
    }
}

/// Parses a number of steps.
pub fn parse_steps(text: &str) -> Result<Steps, Error> {
    match text.trim().parse::<u64>() {
        Ok(value) => Steps::new(value),
        Err(_) => Steps::new(0).map_err(|error| quoting(error, text)),
    }
}

/// Parses a number of coordinates.
pub fn parse_dimension(text: &str) -> Result<u64, Error> {
    match text.trim().parse::<u64>() {
        Ok(value) if value >= 1 => Ok(value),
        _ => Err(Error::InvalidParameter {
            name: "dimension",
            value: text.into(),
            requirement: "a whole number >= 1",
        }),
    }
}

/// A parser of whole numbers from `least` to 2^53, for the parameter of this name.
pub fn whole(name: &'static str, least: u64) -> impl Fn(&str) -> Result<u64, Error> + Clone {
    let requirement =
        if least == 0 { "a whole number from 0 to 2^53" } else { "a whole number from 1 to 2^53" };
    move |text| match text.trim().parse::<u64>() {
        Ok(value) if (least..=1 << 53).contains(&value) => Ok(value),
        _ => Err(Error::InvalidParameter { name, value: format!("`{text}`"), requirement }),
    }
}

/// A parser of positive numbers, for the parameter of this name.
pub fn positive(name: &'static str) -> impl Fn(&str) -> Result<f64, Error> + Clone {
    move |text| match text.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err(Error::InvalidParameter {
            name,
            value: format!("`{text}`"),
            requirement: "a finite number > 0",
        }),
    }
}

/// Parses the weight of a row.
pub fn parse_weight(text: &str) -> Result<f64, Error> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err(Error::InvalidParameter {
            name: "private-weight",
            value: format!("`{text}`"),
            requirement: "a number from 0 to 1",
        }),
    }
}

/// Parses the confidence of an interval.
pub fn parse_confidence(text: &str) -> Result<f64, Error> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.5..=0.999_999).contains(&value) => Ok(value),
        _ => Err(Error::InvalidParameter {
            name: "confidence",
            value: format!("`{text}`"),
            requirement: "a number from 0.5 to 0.999999",
        }),
    }
}

/// Parses the factor of a grid step. The range keeps time and memory within reason.
pub fn parse_grid_scale(text: &str) -> Result<f64, Error> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.1..=10.0).contains(&value) => Ok(value),
        _ => Err(Error::InvalidParameter {
            name: "grid-scale",
            value: text.into(),
            requirement: "a number from 0.1 to 10",
        }),
    }
}

/// Parses a size of memory: bytes, or a number with a unit.
pub fn parse_memory(text: &str) -> Result<u64, Error> {
    const UNITS: [(&str, f64); 9] = [
        ("kib", 1024.0),
        ("mib", 1_048_576.0),
        ("gib", 1_073_741_824.0),
        ("tib", 1_099_511_627_776.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("tb", 1e12),
        ("b", 1.0),
    ];
    let typed = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((typed.strip_suffix(unit)?, *bytes)));
    let (number, bytes) = unit.unwrap_or((&typed, 1.0));
    match number.trim_end().parse::<f64>() {
        Ok(number) if number >= 0.0 && number * bytes <= 2f64.powi(53) => Ok((number * bytes) as u64),
        _ => Err(Error::InvalidParameter {
            name: "memory",
            value: format!("`{text}`"),
            requirement: "a number of bytes, or as in 500MB or 4GB",
        }),
    }
}

/// The same refusal, quoting what was typed.
fn quoting(error: Error, text: &str) -> Error {
    match error {
        Error::InvalidParameter { name, requirement, .. } => {
            Error::InvalidParameter { name, value: format!("`{text}`"), requirement }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_memory_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4GB", 4_000_000_000),
            ("1.5 MiB", 1_572_864),
            ("500mb", 500_000_000),
            ("7 B", 7),
            ("2e9", 2_000_000_000),
        ] {
            assert_eq!(parse_memory(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "GB", "-1", "4 apples", "nan", "inf", "1e99", "4GBs"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
    }
}
