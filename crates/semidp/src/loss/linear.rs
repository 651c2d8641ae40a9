//! Linear loss: the paper's hardest convex problem.

use super::{Bounds, Constants, Door, Objective, RowLoss};
use semidp_core::RowView;

/// −⟨w, x⟩, where the whole row is x.
///
/// Its minimiser on the ball of radius D is D·E x/‖E x‖: to find it is to find the direction of a mean. For other L and
/// D the paper scales rows and models, not the loss.
#[derive(Debug, Clone, Copy)]
pub struct Linear;

impl Objective for Linear {
    fn door(&self) -> Door<'_> {
        Door::Rows(self)
    }
}

impl RowLoss for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn dimension(&self, width: usize) -> usize {
        width
    }

    fn value(&self, weights: &[f64], row: RowView<'_>) -> f64 {
        -weights.iter().zip(row.values).map(|(w, x)| w * x).sum::<f64>()
    }

    fn gradient_into(&self, _: &[f64], row: RowView<'_>, gradient: &mut [f64]) {
        gradient.iter_mut().zip(row.values).for_each(|(g, x)| *g = -x);
    }

    fn constants(&self, bounds: &Bounds) -> Constants {
        Constants { lipschitz: bounds.row, smoothness: 0.0, strong_convexity: 0.0 }
    }
}
