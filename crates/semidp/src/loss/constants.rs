//! Lipschitz, smoothness and strong convexity constants of a regularised loss, for bounded rows and models.

use super::{Door, Objective};

/// What is known of rows and models beforehand, from public knowledge or because it is enforced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// B: no row's features are longer, with the 1 of an intercept if there is one.
    pub row: f64,
    /// Y: no label is larger in absolute value.
    pub label: f64,
    /// R: no model is longer; infinite without a domain.
    pub model: f64,
}

/// Constants that hold for every row within the bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// L: the longest gradient. Infinite if there is none.
    pub lipschitz: f64,
    /// β: the largest curvature. Infinite if there is a kink.
    pub smoothness: f64,
    /// μ: the least curvature.
    pub strong_convexity: f64,
}

/// The constants of f + (l2/2)‖w‖².
///
/// A gradient of a loss of scores is a residual times the row, and scores are no longer than R·B: so L is B times the
/// longest residual at such scores, which exists for squared loss too. Its Hessian has the rank of the scores, so that
/// strong convexity for every single row comes from the regulariser alone.
pub fn constants(objective: &dyn Objective, bounds: &Bounds, l2: f64) -> Constants {
    let own = match objective.door() {
        Door::Rows(loss) => loss.constants(bounds),
        Door::Scores(loss) => Constants {
            lipschitz: product(
                bounds.row,
                loss.lipschitz_within(product(bounds.row, bounds.model), bounds.label),
            ),
            smoothness: loss.smoothness().map_or(f64::INFINITY, |curvature| curvature * bounds.row.powi(2)),
            strong_convexity: 0.0,
        },
    };
    Constants {
        lipschitz: own.lipschitz + product(l2, bounds.model),
        smoothness: own.smoothness + l2,
        strong_convexity: own.strong_convexity + l2,
    }
}

/// Where nothing is multiplied with no bound, the bound is nothing.
fn product(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

#[cfg(test)]
mod tests {
    use super::super::{Labels, Linear, Quadratic, Squared, loss_named};
    use super::*;
    use proptest::prelude::*;
    use semidp_core::RowView;

    const FEATURES: usize = 4;

    fn all() -> Vec<Box<dyn Objective>> {
        let mut all: Vec<Box<dyn Objective>> = vec![Box::new(Linear), Box::new(Quadratic::new(0.7).unwrap())];
        for name in ["squared", "logistic", "softmax", "hinge", "huber", "quantile"] {
            all.push(loss_named(name, 3).unwrap());
        }
        all
    }

    fn length(v: &[f64]) -> f64 {
        v.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    fn of_length(v: &[f64], wanted: f64) -> Vec<f64> {
        let factor = wanted / length(v).max(1e-9);
        v.iter().map(|x| factor * x).collect()
    }

    /// Value and gradient of the regularised loss.
    fn at(objective: &dyn Objective, w: &[f64], row: &[f64], label: f64, l2: f64) -> (f64, Vec<f64>) {
        let mut gradient = vec![0.0; w.len()];
        let value = match objective.door() {
            Door::Rows(loss) => {
                loss.gradient_into(w, RowView { values: row }, &mut gradient);
                loss.value(w, RowView { values: row })
            }
            Door::Scores(loss) => {
                let weights = w.chunks_exact(FEATURES);
                let scores: Vec<f64> = weights.map(|w| w.iter().zip(row).map(|(w, x)| w * x).sum()).collect();
                let mut residuals = vec![0.0; scores.len()];
                loss.residuals(&scores, label, &mut residuals);
                for (part, r) in gradient.chunks_exact_mut(FEATURES).zip(&residuals) {
                    part.iter_mut().zip(row).for_each(|(g, x)| *g = r * x);
                }
                loss.value(&scores, label)
            }
        };
        gradient.iter_mut().zip(w).for_each(|(g, w)| *g += l2 * w);
        (value + 0.5 * l2 * length(w).powi(2), gradient)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Every constant says of any two models and any row what it is defined to say.
        #[test]
        fn constants_hold(
            (v, w) in (prop::collection::vec(-1.0f64..1.0, 3 * FEATURES), prop::collection::vec(-1.0f64..1.0, 3 * FEATURES)),
            row in prop::collection::vec(-1.0f64..1.0, FEATURES),
            shares in prop::collection::vec(prop_oneof![Just(1.0f64), 0.0f64..1.0], 3),
            (y, class) in (prop_oneof![Just(1.0f64), Just(-1.0f64), -1.0f64..1.0], 0u8..3),
            l2 in prop_oneof![Just(0.0f64), 0.01f64..1.0],
        ) {
            let bounds = Bounds { row: 1.7, label: 2.5, model: 2.2 };
            let row = of_length(&row, shares[0] * bounds.row);
            for objective in all() {
                let (outputs, label) = match objective.door() {
                    Door::Rows(_) => (1, 0.0),
                    Door::Scores(loss) => match loss.labels() {
                        Labels::Numbers => (1, bounds.label * y),
                        Labels::Classes => (loss.outputs(), f64::from(class % loss.outputs().max(2) as u8)),
                    },
                };
                let found = constants(&*objective, &bounds, l2);
                let v = of_length(&v[..outputs * FEATURES], shares[1] * bounds.model);
                let w = of_length(&w[..outputs * FEATURES], shares[2] * bounds.model);
                let (at_v, slope_v) = at(&*objective, &v, &row, label, l2);
                let (at_w, slope_w) = at(&*objective, &w, &row, label, l2);
                let apart: Vec<f64> = v.iter().zip(&w).map(|(v, w)| v - w).collect();
                let turned: Vec<f64> = slope_v.iter().zip(&slope_w).map(|(a, b)| a - b).collect();
                let inner: f64 = turned.iter().zip(&apart).map(|(a, b)| a * b).sum();
                // Rounding of numbers below a hundred.
                let slack = 1e-12;
                prop_assert!(length(&slope_v) <= found.lipschitz + slack);
                prop_assert!((at_v - at_w).abs() <= found.lipschitz * length(&apart) + slack);
                prop_assert!(length(&turned) <= found.smoothness * length(&apart) + slack);
                prop_assert!(inner >= found.strong_convexity * length(&apart).powi(2) - slack);
            }
        }
    }

    /// Some of them are attained: at the longest model, along a row of full length.
    #[test]
    fn constants_are_attained() {
        let bounds = Bounds { row: 1.7, label: 2.5, model: 2.2 };
        let along = |wanted: f64| of_length(&[1.0, -2.0, 0.5, 1.0], wanted);
        let (w, x) = (along(bounds.model), along(bounds.row));
        let against = along(-bounds.row);
        let cases: [(&dyn Objective, &[f64], f64); 4] = [
            (&Squared, &x, -bounds.label),
            (&*loss_named("logistic", 2).unwrap(), &x, 0.0),
            (&Quadratic::new(0.7).unwrap(), &against, 0.0),
            (&Linear, &against, 0.0),
        ];
        for (objective, row, label) in cases {
            let found = constants(objective, &bounds, 0.3).lipschitz;
            let (_, gradient) = at(objective, &w, row, label, 0.3);
            assert!((length(&gradient) / found - 1.0).abs() < 1e-12, "{found}");
        }
        let squared = constants(&Squared, &bounds, 0.0);
        assert_eq!(squared.lipschitz, 1.7 * (2.2 * 1.7 + 2.5));
        assert_eq!((squared.smoothness, squared.strong_convexity), (1.7f64.powi(2), 0.0));
    }

    #[test]
    fn without_a_domain() {
        let everywhere = Bounds { row: 2.0, label: 1.0, model: f64::INFINITY };
        let lipschitz =
            |name: &str, l2: f64| constants(&*loss_named(name, 2).unwrap(), &everywhere, l2).lipschitz;
        assert_eq!(lipschitz("squared", 0.0), f64::INFINITY);
        assert_eq!(lipschitz("logistic", 0.0), 2.0);
        assert_eq!(lipschitz("huber", 0.0), 2.0 * 1.345);
        assert_eq!(lipschitz("huber", 0.1), f64::INFINITY);
        let hinge = constants(&*loss_named("hinge", 2).unwrap(), &everywhere, 0.0);
        assert_eq!((hinge.lipschitz, hinge.smoothness), (2.0, f64::INFINITY));
    }
}
