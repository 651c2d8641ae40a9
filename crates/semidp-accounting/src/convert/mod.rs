//! Conversions between the currencies of privacy: pure ε, zCDP, Rényi, Gaussian DP and (ε, δ),
//! in both directions where both exist.
//!
//! Every conversion is a theorem about real numbers evaluated in `f64`; searches return the end
//! of their last bracket that errs on the side of privacy.

mod gaussian;
mod group;
mod pure;
pub(crate) mod renyi;
mod zcdp;

pub(crate) use gaussian::{
    LARGEST_TARGET, delta as gaussian_delta_value, delta_below as gaussian_delta_below,
    excess as gaussian_excess, mills_drop,
};
pub use gaussian::{gaussian_delta, gaussian_epsilon, gaussian_mu, gaussian_sigma};
pub use group::{
    Approximate, add_remove_to_replace_one, compose_gaussian, group_approximate, group_gaussian, group_pure,
    group_zcdp, parallel_by_index, parallel_by_value,
};
pub use pure::{KNormLaw, pure_to_renyi, pure_to_zcdp, pure_to_zcdp_bun_steinke};
pub use renyi::{renyi_to_delta, renyi_to_epsilon, renyi_to_epsilon_mironov};
pub(crate) use zcdp::gaussian_mu_of;
pub use zcdp::{
    ZcdpConversion, epsilon_to_zcdp, epsilon_to_zcdp_bun_steinke, epsilon_to_zcdp_gaussian, zcdp_to_delta,
    zcdp_to_epsilon, zcdp_to_epsilon_bun_steinke, zcdp_to_epsilon_gaussian,
};
