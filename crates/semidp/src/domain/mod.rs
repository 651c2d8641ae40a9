//! Sets of models, with exact projections: one file each.

mod ball;
mod boxed;
mod simplex;

pub use ball::Ball;
pub use boxed::Box;
pub use simplex::Simplex;

use crate::{Error, Result};

/// A closed convex set.
pub trait Domain: Sync + Send {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Its name and every parameter, so that a run is not continued with others.
    fn describe(&self) -> String;

    /// Moves a point to the nearest point of the set.
    fn project(&self, point: &mut [f64]);

    /// Its diameter in so many coordinates; infinite for the whole space.
    fn diameter(&self, dimension: usize) -> f64;

    /// No point of the set is farther from this one, which is in it.
    fn reach(&self, from: &[f64]) -> f64 {
        self.diameter(from.len())
    }
}

/// A borrowed set is one too.
impl<D: Domain + ?Sized> Domain for &D {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn describe(&self) -> String {
        (**self).describe()
    }

    fn project(&self, point: &mut [f64]) {
        (**self).project(point);
    }

    fn diameter(&self, dimension: usize) -> f64 {
        (**self).diameter(dimension)
    }

    fn reach(&self, from: &[f64]) -> f64 {
        (**self).reach(from)
    }
}

/// All of space.
#[derive(Debug, Clone, Copy)]
pub struct Everywhere;

impl Domain for Everywhere {
    fn name(&self) -> &'static str {
        "everywhere"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn project(&self, _: &mut [f64]) {}

    fn diameter(&self, _: usize) -> f64 {
        f64::INFINITY
    }
}

/// A domain as it is written on the command line: `everywhere`, `ball:RADIUS`, `box:LOW:HIGH` or `simplex:SUM`.
pub fn domain_named(text: &str) -> Result<std::boxed::Box<dyn Domain>> {
    let unknown = || {
        let known = "everywhere, ball:RADIUS, box:LOW:HIGH or simplex:SUM";
        Error::invalid("domain", format!("`{text}`"), known)
    };
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default().trim();
    let numbers: Vec<f64> =
        parts.map(|part| part.trim().parse().map_err(|_| unknown())).collect::<Result<_>>()?;
    Ok(match (kind, numbers.as_slice()) {
        ("everywhere", []) => std::boxed::Box::new(Everywhere),
        ("ball", [radius]) => std::boxed::Box::new(Ball::new(*radius)?),
        ("box", [low, high]) => std::boxed::Box::new(Box::new(*low, *high)?),
        ("simplex", [sum]) => std::boxed::Box::new(Simplex::new(*sum)?),
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(dimension: usize) -> Vec<std::boxed::Box<dyn Domain>> {
        let centre: Vec<f64> = (0..dimension).map(|j| 0.3 * j as f64).collect();
        vec![
            std::boxed::Box::new(Everywhere),
            std::boxed::Box::new(Ball::new(1.5).unwrap()),
            std::boxed::Box::new(Ball::about(centre, 0.7).unwrap()),
            std::boxed::Box::new(Box::new(-0.5, 2.0).unwrap()),
            std::boxed::Box::new(Simplex::new(1.0).unwrap()),
            std::boxed::Box::new(Simplex::new(3.0).unwrap()),
        ]
    }

    fn projected(domain: &dyn Domain, point: &[f64]) -> Vec<f64> {
        let mut point = point.to_vec();
        domain.project(&mut point);
        point
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Twice is once; distances do not grow; and a projection is nearest: the angle at it to any other point
        /// of the set is obtuse.
        #[test]
        fn projections_are_projections(
            a in prop::collection::vec(-4.0f64..4.0, 6),
            b in prop::collection::vec(-4.0f64..4.0, 6),
            dimension in 1usize..6,
        ) {
            let (a, b) = (&a[..dimension], &b[..dimension]);
            for domain in all(dimension) {
                let (p, q) = (projected(&*domain, a), projected(&*domain, b));
                prop_assert!(distance(&projected(&*domain, &p), &p) < 1e-12, "{}", domain.name());
                prop_assert!(distance(&p, &q) <= distance(a, b) + 1e-12, "{}", domain.name());
                let inner: f64 = a.iter().zip(&p).zip(&q).map(|((a, p), q)| (a - p) * (q - p)).sum();
                prop_assert!(inner <= 1e-10, "{}: {inner}", domain.name());
                prop_assert!(distance(&p, &q) <= domain.reach(&p) + 1e-12);
                prop_assert!(domain.reach(&p) <= domain.diameter(dimension) + 1e-12);
            }
        }
    }

    #[test]
    fn domains_by_name() {
        assert_eq!(projected(&*domain_named("ball:1").unwrap(), &[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(projected(&*domain_named("box:-1:1").unwrap(), &[-3.0, 0.25]), [-1.0, 0.25]);
        assert_eq!(domain_named("simplex:2").unwrap().name(), "simplex");
        assert_eq!(projected(&*domain_named("everywhere").unwrap(), &[9.0]), [9.0]);
        for wrong in ["", "ball", "ball:x", "ball:-1", "box:1", "sphere:1", "everywhere:1"] {
            assert!(domain_named(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn known_projections() {
        assert_eq!(projected(&Ball::new(1.0).unwrap(), &[3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(projected(&Ball::about(vec![1.0, 1.0], 1.0).unwrap(), &[4.0, 5.0]), [1.6, 1.8]);
        assert_eq!(projected(&Box::new(-1.0, 1.0).unwrap(), &[-3.0, 0.25]), [-1.0, 0.25]);
        assert_eq!(projected(&Simplex::new(1.0).unwrap(), &[2.0, 0.0, -1.0]), [1.0, 0.0, 0.0]);
        assert_eq!(projected(&Simplex::new(1.0).unwrap(), &[0.25, 0.25]), [0.5, 0.5]);
        assert!(Ball::new(0.0).is_err() && Box::new(1.0, 0.0).is_err() && Simplex::new(-1.0).is_err());
    }
}
