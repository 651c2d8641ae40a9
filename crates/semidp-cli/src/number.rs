//! Numbers in and out: parsers that say what a parameter must be, and formats that never make a
//! privacy figure look better than it is.

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

/// A number as it was given: nothing is rounded.
pub fn exact(value: f64) -> String {
    let size = value.abs();
    if value != 0.0 && !(1e-4..1e7).contains(&size) { format!("{value:e}") } else { format!("{value}") }
}

/// A number to `digits` significant digits, to the nearest: for figures that promise nothing.
pub fn nearest(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value < 0.0 {
        return format!("-{}", nearest(-value, digits));
    }
    let (mantissa, exponent) = decimal(value, digits);
    let (rounded, whole) = (render(mantissa, exponent, digits), exact(value));
    if whole.len() <= rounded.len() { whole } else { rounded }
}

/// A bound to `digits` significant digits, never below `value` (which is >= 0): printed epsilons,
/// deltas and noise multipliers stay on the private side.
pub fn upper_bound(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let (mut mantissa, mut exponent) = decimal(value, digits);
    let reaches = |mantissa, exponent| {
        render(mantissa, exponent, digits).parse::<f64>().is_ok_and(|printed| printed >= value)
    };
    if !reaches(mantissa, exponent) {
        mantissa += 1;
        if mantissa == 10u64.pow(digits as u32) {
            mantissa /= 10;
            exponent += 1;
        }
    }
    render(mantissa, exponent, digits)
}

/// The decimal nearest to a positive value: `mantissa` has `digits` digits, the first of which
/// counts 10^`exponent`.
fn decimal(value: f64, digits: usize) -> (u64, i32) {
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.replace('.', "");
    (mantissa.parse().unwrap_or_default(), exponent.parse().unwrap_or_default())
}

fn render(mantissa: u64, exponent: i32, digits: usize) -> String {
    let text = format!("{mantissa:0digits$}");
    let whole = exponent + 1;
    if whole >= 1 && whole <= digits as i32 {
        let (before, after) = text.split_at(whole as usize);
        if after.is_empty() { before.into() } else { format!("{before}.{after}") }
    } else if (-4..=0).contains(&whole) {
        format!("0.{}{text}", "0".repeat((-whole) as usize))
    } else {
        let (first, rest) = text.split_at(1);
        if rest.is_empty() { format!("{first}e{exponent}") } else { format!("{first}.{rest}e{exponent}") }
    }
}

/// A count with thousands set apart: 30,000.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_are_never_below() {
        let mut value = 1.234_567_891e-12;
        while value < 1e15 {
            for digits in 1..=12 {
                let printed: f64 = upper_bound(value, digits).parse().unwrap();
                assert!(printed >= value, "{value} printed as {printed}");
                assert!(printed <= value * (1.0 + 10.1 / 10f64.powi(digits as i32)), "{value}: {printed}");
            }
            value *= 1.37;
        }
    }

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

    #[test]
    fn upper_bounds_look_plain() {
        assert_eq!(upper_bound(2.725_310_1, 5), "2.7254");
        assert_eq!(upper_bound(2.0, 5), "2.0000");
        assert_eq!(upper_bound(9.999_999, 4), "10.00");
        assert_eq!(upper_bound(0.000_999_99, 3), "0.00100");
        assert_eq!(upper_bound(123.45, 3), "124");
        assert_eq!(upper_bound(1_234_567.0, 3), "1.24e6");
        assert_eq!(upper_bound(1.01e-9, 2), "1.1e-9");
        assert_eq!(upper_bound(0.0, 5), "0");
        assert_eq!(nearest(0.018_518_518_5, 5), "0.018519");
        assert_eq!(nearest(0.0185, 6), "0.0185");
        assert_eq!(nearest(-2.866_812, 4), "-2.867");
        assert_eq!(nearest(-1e-9, 4), "-1e-9");
        assert_eq!(exact(1e-5), "1e-5");
        assert_eq!(exact(0.01), "0.01");
        assert_eq!(count(30_000), "30,000");
        assert_eq!(count(999), "999");
    }
}
