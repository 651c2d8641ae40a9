//! The paper's linear regression (`app: linreg setup`): normal features, d = 2000, n = 30,000, δ = 1e-5; Algorithm 1,
//! PDA-MD and DP-SGD tuned on validation rows as the paper does, and beside them the library left to itself and the limit
//! of what anybody could do.
//!
//! * `grid`, `product`, `preconditioner`: an engine that emulates the paper's grid search, for figures alone.
//! * `prepared`: a draw with what its runs share; `trainer`: the three
//!   algorithms on it; `cell`: what is tuned and measured in one setting, piece by piece.
//! * `autopilot`: the library left to itself. `limit`: what cannot be beaten, and how much luck a draw has.
//! * `summary`, `tables`, `findings`, `overall`, `charts`, `outcome`: what is said of it.

mod autopilot;
mod cell;
mod charts;
mod findings;
mod grid;
mod limit;
mod outcome;
mod overall;
mod preconditioner;
mod prepared;
mod summary;
mod tables;
mod trainer;

pub use crate::published::DELTA;
use crate::regression::{Features, Law};
pub use outcome::{ReplaceOne, reproduce};

/// Keeps streams of this experiment apart from those of others.
const LAW_NAME: u64 = 0x006c_696e_7265_6720;

/// How large the problem is, and what is tried on it.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// d.
    pub dimension: usize,
    /// n, public and private together.
    pub rows: usize,
    /// K.
    pub batch: usize,
    /// K_pub.
    pub public_batch: usize,
    /// T.
    pub steps: u64,
    /// Rows that are tuned on.
    pub validation: usize,
    /// Draws that are measured on, beside the one that is tuned on.
    pub draws: u64,
    /// Learning rates besides 0, which is the start itself and need not be run.
    pub rates: &'static [f64],
    /// Weights of private gradients in Algorithm 1.
    pub alphas: &'static [f64],
    /// Whether these are the paper's sizes, so that its figures may stand beside ours.
    pub is_of_paper: bool,
}

/// The paper's.
pub const FULL: Sizes = Sizes {
    dimension: 2000,
    rows: crate::published::ROWS,
    batch: crate::published::BATCH,
    public_batch: 200,
    steps: crate::published::STEPS,
    validation: 7500,
    draws: 5,
    rates: &[0.01, 0.03, 0.05, 0.07, 0.09, 0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9],
    alphas: &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
    is_of_paper: true,
};

/// A tenth of everything, for a minute.
pub const QUICK: Sizes = Sizes {
    dimension: 200,
    rows: 3000,
    batch: 50,
    public_batch: 20,
    steps: 500,
    validation: 750,
    draws: 2,
    rates: &[0.03, 0.1, 0.3, 0.9, 1.9],
    alphas: &[0.0, 0.3, 0.6, 0.9, 1.0],
    is_of_paper: false,
};

impl Sizes {
    /// Of a run as it was asked for.
    pub fn of(settings: &crate::Settings) -> &'static Self {
        if settings.quick { &QUICK } else { &FULL }
    }

    fn law(&self) -> Law {
        Law { features: Features::Normal, dimension: self.dimension, label_std: 1.0 }
    }

    /// Public rows at a share.
    pub fn public(&self, share: f64) -> usize {
        (share * self.rows as f64).round() as usize
    }
}
