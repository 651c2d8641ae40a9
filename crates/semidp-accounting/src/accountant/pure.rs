//! Pure ε-DP: the ε of Laplace, K-norm and generic pure events add.

use super::{Accountant, epsilon_in_range};
use crate::{Adjacency, Decimal, Delta, Epsilon, Error, Event, Result, Steps};

/// Adds pure ε; refuses everything else.
#[derive(Debug, Clone)]
pub struct PureAccountant {
    adjacency: Adjacency,
    total: Decimal,
}

impl PureAccountant {
    /// The sum as it is kept: exact, but for quotients of thirty places.
    pub fn total(&self) -> Decimal {
        self.total
    }

    /// Nothing composed yet.
    pub fn new(adjacency: Adjacency) -> Self {
        Self { adjacency, total: Decimal::ZERO }
    }
}

impl Accountant for PureAccountant {
    fn name(&self) -> &'static str {
        "pure"
    }

    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    fn compose(&mut self, event: &Event, count: Steps) -> Result<()> {
        event.check(self.adjacency)?;
        let cost = event.pure_cost(self.adjacency, count).ok_or_else(|| Error::unknown("pure", event))?;
        self.total = self.total.plus(cost);
        Ok(())
    }

    /// The sum, for any δ ≥ 0.
    fn epsilon(&self, _delta: Delta) -> Result<Epsilon> {
        epsilon_in_range(self.total.round_up())
    }

    /// Randomised response at the total ε: δ = (e^{ε₀} − e^ε)₊ / (1 + e^{ε₀}).
    fn delta(&self, epsilon: Epsilon) -> Result<Delta> {
        if self.total <= Decimal::limit(epsilon.get()) {
            return Ok(Delta::saturating(0.0));
        }
        let total = self.total.round_up();
        let delta = -(epsilon.get() - total).next_down().exp_m1() / (1.0 + (-total).exp());
        Ok(Delta::saturating(delta * (1.0 + 4.0 * f64::EPSILON)))
    }
}
