//! Pure ε-DP: the ε of Laplace, K-norm and generic pure events add.

use super::{Accountant, epsilon_in_range};
use crate::{Adjacency, Delta, Epsilon, Error, Event, Result, Steps};

/// Adds pure ε; refuses everything else.
#[derive(Debug, Clone)]
pub struct PureAccountant {
    adjacency: Adjacency,
    total: f64,
}

impl PureAccountant {
    /// Nothing composed yet.
    pub fn new(adjacency: Adjacency) -> Self {
        Self { adjacency, total: 0.0 }
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
        let epsilon = event.pure_epsilon(self.adjacency).ok_or_else(|| Error::unknown("pure", event))?;
        self.total += epsilon * count.get() as f64;
        Ok(())
    }

    /// The sum, for any δ ≥ 0.
    fn epsilon(&self, _delta: Delta) -> Result<Epsilon> {
        epsilon_in_range(self.total)
    }

    /// Randomised response at the total ε: δ = (e^{ε₀} − e^ε)₊ / (1 + e^{ε₀}).
    fn delta(&self, epsilon: Epsilon) -> Result<Delta> {
        let gap = self.total - epsilon.get();
        Ok(Delta::saturating(if gap <= 0.0 { 0.0 } else { -(-gap).exp_m1() / (1.0 + (-self.total).exp()) }))
    }
}
