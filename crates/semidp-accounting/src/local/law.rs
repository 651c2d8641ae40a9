//! How far a report points along its vector: the law of T = ⟨U, v⟩ within the cap and beyond it, as quantiles.
//!
//! Quantiles, not rejection: a report then takes the same time on either side of the rim, and says nothing by how long it took.

use super::{Cap, Directions};
use crate::math::quadrature::{gauss_legendre, integral};
use std::f64::consts::{FRAC_PI_2, PI};

/// Panels of each side. Over one of them a density changes by a factor of e³ at most, which the rule below integrates to 1e-13.
const PANELS: usize = 256;
/// Standard deviations from the rim to where a side is cut: the share beyond is below e⁻¹²⁸, less than the finest uniform number. (It was 9, and
/// e⁻⁴⁰ of a report's law was missing, on no certificate.)
const WIDTH: f64 = 16.0;
/// Newton's method doubles its digits, from one of them at least.
const NEWTON: usize = 6;

/// T within a cap, and beyond it.
#[derive(Debug, Clone)]
pub struct CapLaw {
    within: Side,
    beyond: Side,
    directions: Directions,
    /// Standard normal numbers to T.
    unit: f64,
}

impl Cap {
    /// The law of T. On the line there is no T: reports have two values. Nor is there one where candidates are ranked.
    pub fn law(&self) -> Option<CapLaw> {
        let d = self.dimension as f64;
        match self.directions {
            _ if self.ranks.is_some() => None,
            Directions::Sphere if self.dimension == 1 => None,
            Directions::Sphere => {
                let reach = |cosine: f64| cosine.clamp(-1.0, 1.0).acos();
                let (rim, wide) = (self.angle(), WIDTH / d.sqrt());
                let density = Density::Sphere { power: d - 2.0 };
                Some(CapLaw {
                    within: Side::new(density, (reach(self.gamma + wide), rim)),
                    // The mirror image: sides are measured from their far ends, where uniform numbers are finest.
                    beyond: Side::new(density, (reach(wide), PI - rim)),
                    directions: self.directions,
                    unit: 1.0,
                })
            }
            Directions::Normal => {
                let rim = self.gamma * d.sqrt();
                Some(CapLaw {
                    within: Side::new(Density::Normal, (-rim - WIDTH, -rim)),
                    beyond: Side::new(Density::Normal, (-WIDTH, rim)),
                    directions: self.directions,
                    unit: 1.0 / d.sqrt(),
                })
            }
        }
    }
}

impl CapLaw {
    /// (T, √(1 − T²)) on one side of the rim for a uniform number from 0, far from the rim, to 1, at it; for normal coordinates only
    /// T is of use.
    pub fn at(&self, is_within: bool, uniform: f64) -> (f64, f64) {
        let side = if is_within { &self.within } else { &self.beyond };
        let place = side.quantile(uniform);
        match (self.directions, is_within) {
            (Directions::Sphere, true) => (cosine(place), place.sin()),
            (Directions::Sphere, false) => (-cosine(place), place.sin()),
            (Directions::Normal, true) => (-place * self.unit, 1.0),
            (Directions::Normal, false) => (place * self.unit, 1.0),
        }
    }
}

/// Accurate near a right angle, where T of many dimensions is.
fn cosine(angle: f64) -> f64 {
    (FRAC_PI_2 - angle).sin()
}

#[derive(Debug, Clone, Copy)]
enum Density {
    /// sin^power of an angle.
    Sphere { power: f64 },
    /// Standard normal.
    Normal,
}

impl Density {
    fn logarithm(self, x: f64) -> f64 {
        match self {
            // No power of zero: a uniform angle may be zero.
            Self::Sphere { power: 0.0 } => 0.0,
            Self::Sphere { power } if (0.8..PI - 0.8).contains(&x) => {
                0.5 * power * (-cosine(x).powi(2)).ln_1p()
            }
            Self::Sphere { power } => power * x.sin().ln(),
            Self::Normal => -0.5 * x * x,
        }
    }
}

/// One side of the rim.
#[derive(Debug, Clone)]
struct Side {
    density: Density,
    from: f64,
    panel: f64,
    /// Up to the end of each panel; the last is 1.
    cumulative: Vec<f64>,
    /// Taken off every logarithm, so that the whole side has measure one.
    logarithm: f64,
    rule: [(f64, f64); 16],
}

impl Side {
    fn new(density: Density, (from, to): (f64, f64)) -> Self {
        let panel = (to - from) / PANELS as f64;
        let rule = gauss_legendre::<16>();
        // What is largest at an end, or in the middle of angles.
        let top = [from, to, FRAC_PI_2.clamp(from, to), 0f64.clamp(from, to)];
        let largest = top.map(|x| density.logarithm(x)).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (0..PANELS)
            .map(|i| {
                let start = from + panel * i as f64;
                sum += integral(&rule, (start, start + panel), 1, |x| (density.logarithm(x) - largest).exp());
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|part| *part /= sum);
        Self { density, from, panel, cumulative, logarithm: largest + sum.ln(), rule }
    }

    fn at(&self, x: f64) -> f64 {
        (self.density.logarithm(x) - self.logarithm).exp()
    }

    /// The place below which this share of the side lies.
    fn quantile(&self, uniform: f64) -> f64 {
        let number = self.cumulative.partition_point(|part| *part < uniform).min(PANELS - 1);
        let before = if number == 0 { 0.0 } else { self.cumulative[number - 1] };
        let (start, share) = (self.from + self.panel * number as f64, self.cumulative[number] - before);
        let wanted = uniform - before;
        let end = start + self.panel;
        let mut x = start + self.panel * (wanted / share.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        for _ in 0..NEWTON {
            let found = integral(&self.rule, (start, x), 1, |x| self.at(x));
            let step = (found - wanted) / self.at(x).max(f64::MIN_POSITIVE);
            x = (x - step).clamp(start, end);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Epsilon;
    use crate::local::{RANDOMIZERS, cap_probability};
    use crate::math::normal::sf;

    /// P(T ≥ t | within) = P(T ≥ t)/Q at every quantile, and the same beyond, by the functions that constants are made of.
    #[test]
    fn quantiles_invert_the_law() {
        for mechanism in RANDOMIZERS.into_iter().filter(|mechanism| mechanism.name != "rank-privunit") {
            for dimension in [2, 3, 10, 1000, 1_000_000] {
                for epsilon in [0.01, 1.0, 8.0, 50.0] {
                    let cap = mechanism.at(dimension, Epsilon::new(epsilon).unwrap()).unwrap();
                    let law = cap.law().unwrap();
                    let tail = |t: f64| match cap.directions {
                        Directions::Sphere => cap_probability(dimension, t),
                        Directions::Normal => sf(t * (dimension as f64).sqrt()),
                    };
                    let what = (mechanism.name, dimension, epsilon);
                    for uniform in [1e-9, 0.01, 0.3, 0.5, 0.77, 0.999] {
                        let (t, across) = law.at(true, uniform);
                        assert!(t >= cap.gamma * (1.0 - 1e-12), "{what:?}: {t} {}", cap.gamma);
                        if cap.directions == Directions::Sphere {
                            assert!((t * t + across * across - 1.0).abs() < 1e-14);
                        }
                        let share = tail(t) / cap.cap_probability;
                        // T itself is rounded: near 1, and in tails, its last bit is worth that much.
                        let slack = 1e-9 + 4e-15 / (1.0 - t).max(1e-300) * dimension as f64;
                        if slack < 1e-3 {
                            assert!((share - uniform).abs() < slack, "{what:?} {uniform}: {share}");
                        }
                        let (t, _) = law.at(false, uniform);
                        assert!(t <= cap.gamma + 1e-12, "{what:?}: {t} {}", cap.gamma);
                        let share = (1.0 - tail(t)) / (1.0 - cap.cap_probability);
                        let slack = 1e-9 + 4e-15 / (1.0 + t).max(1e-300) * dimension as f64;
                        if slack < 1e-3 {
                            assert!((share - uniform).abs() < slack, "{what:?} beyond {uniform}: {share}");
                        }
                    }
                }
            }
        }
    }

    /// Nothing is cut off that a uniform number can reach: far quantiles of both sides are those of the normal tail.
    #[test]
    fn far_quantiles_are_drawn() {
        let cap = RANDOMIZERS[3].at(1000, Epsilon::new(1.0).unwrap()).unwrap();
        assert_eq!(cap.mechanism, "privunitg");
        let law = cap.law().unwrap();
        for uniform in [1e-12, 1e-18, 1e-30, 1e-38] {
            let (within, beyond) = (law.at(true, uniform).0, law.at(false, uniform).0);
            let root = 1000f64.sqrt();
            let shares =
                [sf(within * root) / cap.cap_probability, sf(-beyond * root) / (1.0 - cap.cap_probability)];
            for share in shares {
                assert!((share / uniform - 1.0).abs() < 1e-9, "{uniform}: {share}");
            }
        }
    }

    #[test]
    fn a_line_has_no_law() {
        let cap = RANDOMIZERS[0].at(1, Epsilon::new(1.0).unwrap()).unwrap();
        assert!(cap.law().is_none());
    }
}
