//! Losses: one file each.
//!
//! A [`Loss`] is a function of the scores ⟨w_c, x⟩ and a label; the kernel turns its residuals into gradients. Values and
//! residuals are safe for any finite score: nothing overflows on the way. Each has a line in [`loss_named`].
//!
//! A [`RowLoss`] is a function of the model and the whole row, for whatever has no linear scores; the kernel clips its
//! gradients row by row. Both are an [`Objective`], with the [`constants()`] that step sizes and bounds are made of.

mod constants;
mod hinge;
mod huber;
mod linear;
mod logistic;
mod quadratic;
mod quantile;
mod row;
mod softmax;
mod squared;

pub use constants::{Bounds, Constants, constants};
pub use hinge::Hinge;
pub use huber::Huber;
pub use linear::Linear;
pub use logistic::Logistic;
pub use quadratic::Quadratic;
pub use quantile::Quantile;
pub use row::{AtModel, Door, Objective, RowLoss};
pub use softmax::Softmax;
pub use squared::Squared;

use crate::{Error, Result};
use semidp_core::ScoreLoss;

/// What labels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Any number.
    Numbers,
    /// Classes 0, 1, ..., as many as there are outputs; two if there is one. A label of -1 is unknown, and its row has
    /// no gradient.
    Classes,
}

/// Whether the label of a class is unknown.
fn is_unknown(label: f64) -> bool {
    label <= -0.5
}

/// A loss of scores with everything that planning needs.
pub trait Loss: ScoreLoss + Objective + Send {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Its name and every parameter, so that a run is not continued with others.
    fn describe(&self) -> String;

    /// What its labels are.
    fn labels(&self) -> Labels;

    /// ℓ(scores, label).
    fn value(&self, scores: &[f64], label: f64) -> f64;

    /// A bound on the length of the residuals at any scores; `None` if there is none. Times the length of a row
    /// it is the Lipschitz constant L.
    fn lipschitz(&self) -> Option<f64>;

    /// The same where the scores of a row have at most length `score` and labels at most size `label`; infinite if
    /// there is no bound.
    fn lipschitz_within(&self, _score: f64, _label: f64) -> f64 {
        self.lipschitz().unwrap_or(f64::INFINITY)
    }

    /// A bound on the curvature in the scores; `None` if the loss has kinks. Times the squared length of a row it
    /// is the smoothness β.
    fn smoothness(&self) -> Option<f64>;
}

/// A loss by name; `classes` is asked for by those that have one score a class. Huber and quantile loss take a
/// parameter, as in `huber:1.345` or `quantile:0.9`.
pub fn loss_named(name: &str, classes: usize) -> Result<Box<dyn Loss>> {
    let (kind, parameter) = match name.split_once(':') {
        Some((kind, text)) => (kind, Some(text)),
        None => (name, None),
    };
    let unknown = || {
        let known = "squared, logistic, softmax, hinge, huber, huber:DELTA, quantile or quantile:LEVEL";
        Error::invalid("loss", format!("`{name}`"), known)
    };
    let number = |default: f64| match parameter {
        Some(text) => text.trim().parse::<f64>().map_err(|_| unknown()),
        None => Ok(default),
    };
    Ok(match (kind, parameter) {
        ("squared", None) => Box::new(Squared),
        ("logistic", None) => Box::new(Logistic),
        ("softmax", None) => Box::new(Softmax::new(classes)?),
        ("hinge", None) => Box::new(Hinge),
        ("huber", _) => Box::new(Huber::new(number(1.345)?)?),
        ("quantile", _) => Box::new(Quantile::new(number(0.5)?)?),
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Box<dyn Loss>> {
        let mut losses: Vec<Box<dyn Loss>> = ["squared", "logistic", "softmax", "hinge", "huber", "quantile"]
            .iter()
            .map(|name| loss_named(name, 4).unwrap())
            .collect();
        losses.push(Box::new(Quantile::new(0.9).unwrap()));
        losses.push(Box::new(Huber::new(0.2).unwrap()));
        losses
    }

    fn residuals(loss: &dyn Loss, scores: &[f64], label: f64) -> Vec<f64> {
        let mut residuals = vec![f64::NAN; loss.outputs()];
        loss.residuals(scores, label, &mut residuals);
        residuals
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Residuals are the derivatives of the value, by central differences; within the Lipschitz bound; and
        /// the loss is convex and no more curved than it says.
        #[test]
        fn residuals_are_derivatives(scores in prop::collection::vec(-8.0f64..8.0, 4), label in 0usize..4, y in -3.0f64..3.0) {
            for loss in all() {
                let scores = &scores[..loss.outputs()];
                let label = match loss.labels() {
                    Labels::Classes if loss.outputs() == 1 => (label % 2) as f64,
                    Labels::Classes => label as f64,
                    Labels::Numbers => y,
                };
                let found = residuals(&*loss, scores, label);
                for c in 0..scores.len() {
                    let h = 1e-5;
                    let at = |shift: f64| {
                        let mut moved = scores.to_vec();
                        moved[c] += shift;
                        (loss.value(&moved, label), residuals(&*loss, &moved, label)[c])
                    };
                    let ((above, slope_above), (below, slope_below)) = (at(h), at(-h));
                    // Central differences are off by h² times a third derivative, and a kink nearby moves them
                    // between the slopes on either side.
                    let difference = (above - below) / (2.0 * h);
                    prop_assert!(difference >= slope_below - 1e-8 && difference <= slope_above + 1e-8, "{}", loss.name());
                    prop_assert!(found[c] >= slope_below - 1e-9 && found[c] <= slope_above + 1e-9, "{}", loss.name());
                    if let Some(smoothness) = loss.smoothness() {
                        prop_assert!((slope_above - slope_below) / (2.0 * h) <= smoothness + 1e-6, "{}", loss.name());
                        prop_assert!((found[c] - difference).abs() < 1e-8, "{}", loss.name());
                    }
                }
                if let Some(lipschitz) = loss.lipschitz() {
                    let length = found.iter().map(|r| r * r).sum::<f64>().sqrt();
                    prop_assert!(length <= lipschitz * (1.0 + 1e-12), "{}", loss.name());
                }
                prop_assert!(loss.value(scores, label) >= 0.0);
            }
        }
    }

    #[test]
    fn huge_scores_do_not_overflow() {
        for loss in all() {
            for score in [1e3, -1e3, 1e150, -1e150] {
                let mut scores = vec![0.0; loss.outputs()];
                scores[0] = score;
                for label in [0.0, 1.0] {
                    let value = loss.value(&scores, label);
                    assert!(!value.is_nan() && value >= 0.0, "{} {score}: {value}", loss.name());
                    assert!(
                        residuals(&*loss, &scores, label).iter().all(|r| r.is_finite()),
                        "{}",
                        loss.name()
                    );
                }
            }
        }
    }

    /// A row of unknown class pulls nowhere; a number near a class is that class.
    #[test]
    fn unknown_classes_have_no_gradient() {
        for loss in all().iter().filter(|loss| loss.labels() == Labels::Classes) {
            let scores = vec![0.3; loss.outputs()];
            assert!(residuals(&**loss, &scores, -1.0).iter().all(|r| *r == 0.0), "{}", loss.name());
            assert!(residuals(&**loss, &scores, 0.0).iter().any(|r| *r != 0.0), "{}", loss.name());
        }
        let softmax = Softmax::new(3).unwrap();
        assert_eq!(residuals(&softmax, &[0.0; 3], 1.999_999), residuals(&softmax, &[0.0; 3], 2.0));
    }

    #[test]
    fn known_values() {
        assert_eq!(Squared.value(&[3.0], 1.0), 2.0);
        assert!((Logistic.value(&[0.0], 1.0) - 2f64.ln()).abs() < 1e-15);
        assert!((Softmax::new(4).unwrap().value(&[0.0; 4], 2.0) - 4f64.ln()).abs() < 1e-15);
        assert_eq!(Hinge.value(&[0.25], 0.0), 1.25);
        assert_eq!(Quantile::new(0.9).unwrap().value(&[1.0], 3.0), 1.8);
        assert_eq!(loss_named("quantile:0.9", 2).unwrap().value(&[1.0], 3.0), 1.8);
        assert!(loss_named("logistic:2", 2).is_err() && loss_named("huber:x", 2).is_err());
        assert!(loss_named("cubic", 2).is_err() && Softmax::new(1).is_err());
        assert!(Huber::new(0.0).is_err() && Quantile::new(1.0).is_err());
    }
}
