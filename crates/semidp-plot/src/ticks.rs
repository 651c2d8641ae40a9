//! Where an axis begins and ends, and its round numbers.

use crate::Scale;

/// Below this ratio of its ends a logarithmic axis has even round numbers.
const NARROW: f64 = 2.2;

/// A part of the number line, and how it is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub low: f64,
    pub high: f64,
    pub scale: Scale,
}

impl Range {
    /// A range that holds all values with a little room, if there is one.
    pub fn around(values: impl Iterator<Item = f64>, scale: Scale) -> Option<Self> {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        if low > high {
            return None;
        }
        let (low, high) = match scale {
            Scale::Logarithmic => (low / 1.15, high * 1.15),
            Scale::Linear if high > low => (low - 0.03 * (high - low), high + 0.03 * (high - low)),
            Scale::Linear => (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0)),
        };
        Some(Self { low, high, scale })
    }

    /// From 0 at the low end to 1 at the high end.
    pub fn share(&self, value: f64) -> f64 {
        let along = |x: f64| match self.scale {
            Scale::Linear => x,
            Scale::Logarithmic => x.ln(),
        };
        (along(value) - along(self.low)) / (along(self.high) - along(self.low))
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round numbers within the range.
    pub fn ticks(&self) -> Vec<f64> {
        let ticks = match self.scale {
            Scale::Linear => self.even_ticks(),
            // Hardly a power of ten has a round multiple in so narrow a range.
            Scale::Logarithmic if self.high < NARROW * self.low => self.even_ticks(),
            Scale::Logarithmic => self.decades(),
        };
        ticks.into_iter().filter(|tick| self.contains(*tick)).collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten, about eight of them.
    fn even_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 8.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|i| i as f64 * step).collect()
    }

    /// Powers of ten, and round multiples of them if there are few.
    fn decades(&self) -> Vec<f64> {
        let (low, high) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let factors: &[f64] = match (self.high / self.low).log10() {
            narrow if narrow < 1.2 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            medium if medium < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = ((high - low) / 8).max(1) as usize;
        let powers = (low..=high).step_by(every);
        powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power))).collect()
    }
}

/// A round number as text.
pub fn label(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    // What the arithmetic of ticks adds in the last place is cut off.
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let labels = |low, high, scale| {
            let range = Range { low, high, scale };
            range.ticks().into_iter().map(label).collect::<Vec<_>>()
        };
        assert_eq!(labels(0.0, 1.0, Scale::Linear), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(-3.0, 4.0, Scale::Linear), ["-3", "-2", "-1", "0", "1", "2", "3", "4"]);
        assert_eq!(labels(0.9, 60.0, Scale::Logarithmic), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(0.95, 1.55, Scale::Logarithmic), ["1", "1.1", "1.2", "1.3", "1.4", "1.5"]);
        assert_eq!(labels(1e-7, 1e-1, Scale::Logarithmic)[0], "1e-7");
        assert!(labels(1e-300, 1e300, Scale::Logarithmic).len() < 20);
    }

    #[test]
    fn one_value_still_has_a_range() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let range = Range::around([3.0].into_iter(), scale).unwrap();
            assert!(range.low < 3.0 && range.high > 3.0 && (range.share(3.0) - 0.5).abs() < 0.01);
        }
        assert!(Range::around(std::iter::empty(), Scale::Linear).is_none());
    }
}
