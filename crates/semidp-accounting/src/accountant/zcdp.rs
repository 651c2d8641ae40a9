//! zCDP: ρ adds. Exact for unsampled Gaussian noise, valid for pure events.

use super::{Accountant, epsilon_in_range};
use crate::{Adjacency, Decimal, Delta, Epsilon, Error, Event, Result, Rho, Steps, convert};

/// Adds ρ; refuses sampled events, for which zCDP has no useful amplification.
#[derive(Debug, Clone)]
pub struct ZcdpAccountant {
    adjacency: Adjacency,
    total: Decimal,
    only_gaussian: bool,
}

impl ZcdpAccountant {
    /// Nothing composed yet.
    pub fn new(adjacency: Adjacency) -> Self {
        Self { adjacency, total: Decimal::ZERO, only_gaussian: true }
    }

    /// The ρ composed so far.
    pub fn rho(&self) -> Result<Rho> {
        Rho::new(self.total.round_up())
    }

    /// The sum as it is kept: exact, but for quotients of thirty places.
    pub fn total(&self) -> Decimal {
        self.total
    }
}

impl Accountant for ZcdpAccountant {
    fn name(&self) -> &'static str {
        "zcdp"
    }

    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    fn compose(&mut self, event: &Event, count: Steps) -> Result<()> {
        event.check(self.adjacency)?;
        let (rho, gaussian) = if let Some(rho) = event.gaussian_rho(self.adjacency) {
            (rho, true)
        } else if let Some(epsilon) = event.pure_epsilon(self.adjacency) {
            (Decimal::above(convert::pure_to_zcdp(Epsilon::new(epsilon)?)?.get()), false)
        } else if let Event::Zcdp { rho } = event {
            (Decimal::of(rho.get()), false)
        } else {
            return Err(Error::unknown("zcdp", event));
        };
        self.total = self.total.plus(rho.times(count.get()));
        self.only_gaussian &= gaussian;
        Ok(())
    }

    /// Exact if every event was Gaussian, otherwise the best generic conversion.
    fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        let rho = self.rho()?;
        let epsilon = if self.only_gaussian {
            convert::zcdp_to_epsilon_gaussian(rho, delta)?
        } else {
            convert::zcdp_to_epsilon(rho, delta)?
        };
        epsilon_in_range(epsilon.get())
    }

    fn delta(&self, epsilon: Epsilon) -> Result<Delta> {
        let rho = self.rho()?;
        if rho.get() == 0.0 {
            return Delta::new(0.0);
        }
        let delta = if self.only_gaussian {
            convert::gaussian_delta(convert::gaussian_mu_of(rho)?, epsilon)
        } else {
            convert::zcdp_to_delta(rho, epsilon)
        };
        Ok(Delta::not_pure(delta.get()))
    }
}
