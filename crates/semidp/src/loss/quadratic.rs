//! Squared distance: the paper's hardest strongly convex problem.

use super::{Bounds, Constants, Door, Objective, RowLoss};
use crate::{Error, Result};
use semidp_core::RowView;

/// (μ/2)‖w − x‖², where the whole row is x.
///
/// Its minimiser is the mean, and the excess risk of w is exactly (μ/2)‖w − E x‖². The paper takes μ = L/D for rows and
/// models in the ball of radius D; gradients there have length up to 2L, twice what it says.
#[derive(Debug, Clone, Copy)]
pub struct Quadratic {
    curvature: f64,
}

impl Quadratic {
    /// With this μ.
    pub fn new(curvature: f64) -> Result<Self> {
        if !(curvature > 0.0 && curvature.is_finite()) {
            return Err(Error::invalid("strong-convexity", curvature, "a finite number > 0"));
        }
        Ok(Self { curvature })
    }
}

impl Objective for Quadratic {
    fn door(&self) -> Door<'_> {
        Door::Rows(self)
    }
}

impl RowLoss for Quadratic {
    fn name(&self) -> &'static str {
        "quadratic"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn dimension(&self, width: usize) -> usize {
        width
    }

    fn value(&self, weights: &[f64], row: RowView<'_>) -> f64 {
        0.5 * self.curvature * weights.iter().zip(row.values).map(|(w, x)| (w - x).powi(2)).sum::<f64>()
    }

    fn gradient_into(&self, weights: &[f64], row: RowView<'_>, gradient: &mut [f64]) {
        for ((g, w), x) in gradient.iter_mut().zip(weights).zip(row.values) {
            *g = self.curvature * (w - x);
        }
    }

    fn constants(&self, bounds: &Bounds) -> Constants {
        let mu = self.curvature;
        Constants { lipschitz: mu * (bounds.model + bounds.row), smoothness: mu, strong_convexity: mu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_strongly_convex() {
        assert!([0.0, -1.0, f64::NAN, f64::INFINITY].iter().all(|mu| Quadratic::new(*mu).is_err()));
    }
}
