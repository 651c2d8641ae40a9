//! PrivUnitG (Asi, Feldman and Talwar 2022): PrivUnit with normal coordinates in place of the sphere. Almost as good for many
//! dimensions, and its reports have independent coordinates but one.

use super::{Cap, Directions, LocalMechanism};
use crate::Epsilon;
use crate::math::normal::{density, sf};
use crate::math::search::bisect;

/// Halfspaces under the normal law.
pub(super) static PRIVUNIT_G: LocalMechanism = LocalMechanism {
    name: "privunitg",
    about: "privunit with normal coordinates in place of the sphere",
    is_exact: false,
    best,
};

fn best(dimension: usize, epsilon: Epsilon) -> Cap {
    let d = dimension as f64;
    let growth = epsilon.get().exp_m1();
    let m_of = |x: f64| density(x) * growth / (1.0 + growth * sf(x)) / d.sqrt();
    // At γ = x/√d the error (1+γm)/m² − 1 is least where (m−γ)(2+γm) = m/d.
    let (x, _) = bisect(0.0, 40.0, |x| {
        let (m, gamma) = (m_of(x), x / d.sqrt());
        (m - gamma) * (2.0 + gamma * m) < m / d
    });
    let (m, gamma, cap_probability) = (m_of(x), x / d.sqrt(), sf(x));
    let (p, beyond) = Cap::spending(epsilon, cap_probability);
    Cap {
        mechanism: PRIVUNIT_G.name,
        directions: Directions::Normal,
        dimension,
        epsilon,
        gamma,
        p,
        beyond,
        cap_probability,
        m,
        mse: (1.0 + gamma * m) / (m * m) - 1.0,
        ranks: None,
    }
}
