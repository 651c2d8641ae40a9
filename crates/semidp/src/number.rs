//! Numbers as text that never makes a privacy figure look better than it is.

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

/// The same from below, for what may still be spent.
pub fn lower_bound(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let (mantissa, exponent) = decimal(value, digits);
    let printed = render(mantissa, exponent, digits);
    if printed.parse::<f64>().is_ok_and(|printed| printed <= value) {
        return printed;
    }
    render(mantissa - 1, exponent, digits)
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
    fn lower_bounds_are_never_above() {
        let mut value = 1.234_567_891e-12;
        while value < 1e15 {
            for digits in 1..=12 {
                let printed: f64 = lower_bound(value, digits).parse().unwrap();
                assert!(printed <= value, "{value} printed as {printed}");
                assert!(printed >= value * (1.0 - 10.1 / 10f64.powi(digits as i32)), "{value}: {printed}");
            }
            value *= 1.37;
        }
        assert_eq!(lower_bound(0.999_999, 3), "0.99");
        assert_eq!(lower_bound(0.0, 3), "0");
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
