//! Costs that add: decimal numbers with thirty places, whose sums are exact.

use std::fmt;
use std::str::FromStr;

/// One, in units of the last place.
const ONE: u128 = 1_000_000_000_000_000_000_000_000_000_000;
/// Places after the point.
const PLACES: usize = 30;

/// A cost ε or ρ that adds exactly. It is at least 0 and has thirty decimal places; whatever does not fit is rounded up, and
/// [`Decimal::MAX`] stands for everything too large.
///
/// A number that somebody gave, such as a budget or the ε of a pure event, is the decimal number that it is written as
/// (the shortest that reads back as the same `f64`), so ten times 0.1 is 1, neither more nor less.
///
/// ```
/// use semidp_accounting::Decimal;
/// let tenth = Decimal::of(0.1);
/// let sum = (0..10).fold(Decimal::ZERO, |sum, _| sum.plus(tenth));
/// assert_eq!(sum, Decimal::of(1.0));
/// assert_eq!(sum.round_up(), 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Decimal(u128);

impl Decimal {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// More than any budget.
    pub const MAX: Self = Self(u128::MAX);

    /// The number as it is written. Anything that is no finite number ≥ 0 is [`Decimal::MAX`].
    pub fn of(value: f64) -> Self {
        if (0.0..1e8).contains(&value) { value.to_string().parse().unwrap_or(Self::MAX) } else { Self::MAX }
    }

    /// A limit as it is written; one that does not fit is the largest number that does, so that [`Decimal::MAX`] is above it.
    ///
    /// ```
    /// use semidp_accounting::Decimal;
    /// assert!(Decimal::limit(1e9) < Decimal::of(1e9));
    /// ```
    pub fn limit(value: f64) -> Self {
        Self::of(value).min(Self(u128::MAX - 1))
    }

    /// At least the number itself, for one that was computed and rounded up.
    pub(crate) fn above(value: f64) -> Self {
        // The decimal of the next number is above the middle between the two.
        if value == 0.0 { Self::ZERO } else { Self::of(value.next_up()) }
    }

    /// `numerator`/`noise`, `count` times: exact for noise between 2^-9 and 2^50, but for one unit of the last place.
    pub(crate) fn quotient(numerator: u64, noise: f64, count: u64) -> Self {
        let (mantissa, exponent) = parts(noise);
        if !(-61..=0).contains(&exponent) {
            return Self::above((numerator as f64 / noise).next_up()).times(count);
        }
        divide((u128::from(numerator) * u128::from(count)) << -exponent, u128::from(mantissa))
    }

    /// `numerator`/`noise`², in the same way.
    pub(crate) fn quotient_by_square(numerator: u64, noise: f64) -> Self {
        let (mantissa, exponent) = parts(noise);
        if !(-61..=0).contains(&exponent) {
            return Self::above((numerator as f64 / (noise * noise).next_down()).next_up());
        }
        divide(u128::from(numerator) << (-2 * exponent), u128::from(mantissa) * u128::from(mantissa))
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or zero.
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// So many times.
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(u128::from(count)))
    }

    /// The smallest `f64` that is written as at least this, or a neighbour of it; infinite for [`Decimal::MAX`].
    pub fn round_up(self) -> f64 {
        if self == Self::MAX {
            return f64::INFINITY;
        }
        // The quotient is off by two units in the last place at most.
        let mut value = self.0 as f64 / ONE as f64;
        for _ in 0..4 {
            if value > 0.0 && Self::of(value.next_down()) >= self {
                value = value.next_down();
            }
        }
        while Self::of(value) < self {
            value = value.next_up();
        }
        value
    }

    /// The largest `f64` that is written as at most this, or a neighbour of it.
    pub fn round_down(self) -> f64 {
        let mut value = self.0 as f64 / ONE as f64;
        for _ in 0..4 {
            if Self::of(value.next_up()) <= self {
                value = value.next_up();
            }
        }
        while value > 0.0 && Self::of(value) > self {
            value = value.next_down();
        }
        value
    }
}

/// A positive number as mantissa·2^exponent.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    if exponent == 0 { (fraction.max(1), -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// The quotient to thirty places, rounded up. `denominator` is below 2^120.
fn divide(numerator: u128, denominator: u128) -> Decimal {
    let (whole, mut rest) = (numerator / denominator, numerator % denominator);
    let mut places = 0u128;
    for _ in 0..PLACES {
        rest *= 10;
        places = 10 * places + rest / denominator;
        rest %= denominator;
    }
    let value = whole.checked_mul(ONE).and_then(|whole| whole.checked_add(places + u128::from(rest > 0)));
    value.map_or(Decimal::MAX, Decimal)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = format!("{:030}", self.0 % ONE);
        match (self.0 / ONE, places.trim_end_matches('0')) {
            (whole, "") => write!(f, "{whole}"),
            (whole, places) => write!(f, "{whole}.{places}"),
        }
    }
}

/// The text is no decimal number ≥ 0 in range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number")]
pub struct NotADecimal;

impl FromStr for Decimal {
    type Err = NotADecimal;

    fn from_str(text: &str) -> Result<Self, NotADecimal> {
        let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        if !digits(whole) || !digits(places) {
            return Err(NotADecimal);
        }
        let (kept, dropped) = places.split_at(places.len().min(PLACES));
        let fraction: u128 = format!("{kept:0<30}").parse().map_err(|_| NotADecimal)?;
        let up = u128::from(dropped.bytes().any(|digit| digit != b'0'));
        let whole: u128 = whole.parse().map_err(|_| NotADecimal)?;
        whole.checked_mul(ONE).and_then(|whole| whole.checked_add(fraction + up)).map(Self).ok_or(NotADecimal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_what_is_written() {
        for (value, text) in [
            (0.1, "0.1"),
            (0.0, "0"),
            (3.0, "3"),
            (1e-30, "0.000000000000000000000000000001"),
            (12.5, "12.5"),
        ] {
            assert_eq!(Decimal::of(value).to_string(), text);
            assert_eq!(text.parse(), Ok(Decimal::of(value)));
            assert!((Decimal::of(value).round_up() / value - 1.0).abs() < 1e-15 || value == 0.0);
        }
        assert_eq!(Decimal::of(1e-40).to_string(), "0.000000000000000000000000000001");
        assert_eq!(Decimal::of(-1.0), Decimal::MAX);
        assert_eq!(Decimal::of(f64::NAN), Decimal::MAX);
        for text in ["", ".", "1.", ".1", "-1", "1e3", "0x1", " 1"] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_is_above_every_limit() {
        for limit in [1e8, 2.5e8, 1e9, 1e300] {
            let sum = Decimal::of(9e7).times(10);
            assert!(sum > Decimal::limit(limit) && Decimal::of(limit) > Decimal::limit(limit));
        }
        assert_eq!(Decimal::limit(0.3), Decimal::of(0.3));
    }

    #[test]
    fn quotients_are_never_below_and_exact_where_they_end() {
        assert_eq!(Decimal::quotient(2, 20.0, 10), Decimal::of(1.0));
        assert_eq!(Decimal::quotient(2, 6.0, 3), Decimal::of(1.0));
        assert_eq!(Decimal::quotient(1, 3.0, 1).to_string(), "0.333333333333333333333333333334");
        assert_eq!(Decimal::quotient_by_square(2, 2.0), Decimal::of(0.5));
        // Outside the exact range: above the truth by a few units of f64.
        for noise in [1e-6, 1e-3, 1e17, 1e20] {
            let cost = Decimal::quotient(2, noise, 1);
            let double = cost.round_up() * noise / 2.0;
            assert!((1.0..1.0 + 1e-9).contains(&double), "{noise}: {double}");
        }
    }

    #[test]
    fn rounding_brackets_the_sum() {
        let mut sum = Decimal::ZERO;
        for k in 1..200 {
            sum = sum.plus(Decimal::quotient(2, 3.0 + f64::from(k) / 7.0, 1));
            let (low, high) = (sum.round_down(), sum.round_up());
            assert!(Decimal::of(low) <= sum && sum <= Decimal::of(high) && high <= low.next_up());
        }
    }
}
