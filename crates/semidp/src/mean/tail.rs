//! Heavy tails: what clipping costs when only a moment of the rows is bounded.
//!
//! If E‖x − c‖^k ≤ M^k for some k > 1, then clipping to radius B moves the mean by at most
//!
//! $$ \mathbb E(\|x-c\|-B)_+ \le \frac{(k-1)^{k-1}}{k^k}\,\frac{M^k}{B^{k-1}}, $$
//!
//! because (t − B)/t^k is largest at t = kB/(k − 1). A larger radius lets more noise in, a smaller one more
//! bias; the radius that balances them has a closed form. This is the setting of the paper's remark on
//! heavy-tailed distributions with a bounded k-th moment.

use super::problem::Problem;
use crate::{Error, Result};

/// A bound M on the k-th root of the k-th moment of the distance from the centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    order: f64,
    bound: f64,
}

impl Moment {
    /// E‖x − c‖^order ≤ bound^order.
    pub fn new(order: f64, bound: f64) -> Result<Self> {
        if !(2.0..=64.0).contains(&order) {
            return Err(Error::invalid("moment", order, "a number from 2 to 64"));
        }
        if !(1e-12..=1e12).contains(&bound) {
            return Err(Error::invalid("moment-bound", bound, "a number from 1e-12 to 1e12"));
        }
        Ok(Self { order, bound })
    }

    /// The most that clipping to this radius moves the mean.
    pub fn clip_bias(&self, radius: f64) -> f64 {
        // M^k/B^{k−1} = M·(M/B)^{k−1}, which does not overflow on the way.
        self.constant() * self.bound * (self.bound / radius).powf(self.order - 1.0)
    }

    fn constant(&self) -> f64 {
        let k = self.order;
        ((k - 1.0) * (k - 1.0).ln() - k * k.ln()).exp()
    }

    /// The radius that minimises noise plus squared bias, where the noise of the mean of the private rows has
    /// variance `noise_per_radius`·B².
    ///
    /// a·B² + (κM^k)²/B^{2k−2} is least at B^{2k} = (k − 1)(κM^k)²/a.
    pub fn best_radius(&self, noise_per_radius: f64) -> f64 {
        let k = self.order;
        let log = ((k - 1.0).ln() + 2.0 * self.constant().ln() - noise_per_radius.ln()) / (2.0 * k);
        self.bound * log.exp()
    }

    /// The problem with the best radius for noise of total variance `unit_noise`·B² on the sum, and with the
    /// bias of clipping to it. The standard deviation is at most M.
    pub fn problem(
        &self,
        (private_rows, public_rows): (u64, u64),
        dimension: usize,
        unit_noise: f64,
    ) -> Result<Problem> {
        let radius = match private_rows {
            0 => self.bound,
            rows => self.best_radius(unit_noise / (rows as f64).powi(2)).clamp(1e-12, 1e12),
        };
        Problem::new(private_rows, public_rows, dimension, radius)?
            .with_clip_bias(self.clip_bias(radius))?
            .with_std(self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attained: all mass of the moment at the distance where excess over moment is largest.
    #[test]
    fn the_bias_bound_is_attained_and_never_exceeded() {
        for k in [2.0, 3.0, 4.0, 10.0] {
            let moment = Moment::new(k, 1.5).unwrap();
            for radius in [0.5f64, 1.0, 3.0, 20.0] {
                let bound = moment.clip_bias(radius);
                // A law with mass m at distance t has m·t^k = M^k.
                let excess = |t: f64| (t - radius).max(0.0) * (1.5 / t).powf(k);
                let worst = radius * k / (k - 1.0);
                assert!((excess(worst) / bound - 1.0).abs() < 1e-12);
                assert!((1..4000).all(|i| excess(radius * f64::from(i) / 1000.0) <= bound * (1.0 + 1e-12)));
            }
        }
    }

    #[test]
    fn the_best_radius_is_best() {
        for k in [2.0, 4.0, 8.0] {
            let moment = Moment::new(k, 2.0).unwrap();
            for a in [1e-8, 1e-3, 10.0] {
                let cost = |radius: f64| a * radius * radius + moment.clip_bias(radius).powi(2);
                let best = moment.best_radius(a);
                assert!((1..200).all(|i| cost(best) <= cost(best * f64::from(i) / 100.0) * (1.0 + 1e-12)));
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Moment::new(1.0, 1.0).is_err() && Moment::new(f64::NAN, 1.0).is_err());
        assert!(Moment::new(2.0, 0.0).is_err() && Moment::new(2.0, f64::INFINITY).is_err());
    }
}
