//! A draw with everything that its runs share.

use super::grid::Rows;
use super::preconditioner::Preconditioner;
use super::{LAW_NAME, Sizes};
use crate::coins::Coins;
use crate::regression::{Draw, Law};
use crate::{Error, Result};
use semidp_core::{Block, BlockSource, DenseTable};
use std::sync::OnceLock;

/// The paper's, as in its original authors' code.
pub const HESSIAN_REGULARISATION: f64 = 0.01;
/// Keeps streams of validation rows apart from those of training rows.
const VALIDATION: u64 = 0x7661_6c69_6461_7465;

/// Rows of one w*, the public ones first.
pub struct Prepared {
    pub law: Law,
    pub draw: Draw,
    pub rows: Rows,
    /// How many of them are public.
    pub public: usize,
    /// The minimiser of the public loss; the one of least norm if there are several.
    pub minimiser: Vec<f64>,
    /// Rows to tune on.
    pub validation: Rows,
    mirror: OnceLock<Result<Mirror>>,
}

/// What PDA-MD needs.
pub struct Mirror {
    pub preconditioner: Preconditioner,
    /// Private rows, multiplied by it.
    pub rows: Vec<f32>,
}

impl Prepared {
    /// Draw number `number`. Its rows are the same for every share; only the place where private ones begin differs.
    pub fn new(sizes: &Sizes, share: f64, seed: u64, number: u64) -> Result<Self> {
        let law = sizes.law();
        let public = sizes.public(share);
        let seed = seed ^ LAW_NAME;
        let draw = law.draw(public, sizes.rows - public, &mut Coins::new(seed, number))?;
        let rows = rows_of(&draw)?;
        let minimiser = draw.public_minimiser().weights;
        // Draw 0 is tuned on, and needs rows to tune with.
        let validation = if number == 0 { sizes.validation } else { 0 };
        let mut coins = Coins::new(seed ^ VALIDATION, number);
        let labelled = (0..validation).flat_map(|_| {
            let mut row = coins.normals(law.dimension);
            let score: f64 = row.iter().zip(&draw.truth).map(|(x, w)| x * w).sum();
            row.push(score + law.label_std * coins.normals(1)[0]);
            row.into_iter().map(|x| x as f32)
        });
        let validation = Rows::new(law.dimension, labelled);
        Ok(Self { law, draw, rows, public, minimiser, validation, mirror: OnceLock::new() })
    }

    /// E(⟨w, x⟩ − y)² over a fresh row. A run that left the numbers has lost, by the largest number there is: kept pieces
    /// have none for infinity.
    pub fn test_loss(&self, w: &[f64]) -> f64 {
        let loss = self.law.test_loss(&self.draw.truth, w);
        if loss.is_finite() { loss } else { f64::MAX }
    }

    /// Computed when it is asked for first.
    pub fn mirror(&self, threads: usize) -> Result<&Mirror> {
        let make = || {
            let preconditioner =
                Preconditioner::new(&self.rows, 0..self.public, HESSIAN_REGULARISATION, threads)?;
            let private = &self.rows.features[self.public * self.rows.dimension..];
            let rows = preconditioner.rows(private, threads);
            Ok(Mirror { preconditioner, rows })
        };
        self.mirror.get_or_init(make).as_ref().map_err(Error::clone)
    }
}

/// All rows of a draw, public ones first.
pub fn rows_of(draw: &Draw) -> Result<Rows> {
    let dimension = draw.truth.len();
    let mut labelled = Vec::with_capacity((draw.public.len() + draw.private.units()) * (dimension + 1));
    let mut row = vec![0.0; dimension];
    for number in 0..draw.public.len() {
        row.fill(0.0);
        draw.public.add_scaled(number, 1.0, &mut row);
        labelled.extend(row.iter().map(|x| *x as f32));
        labelled.push(draw.public.label(number) as f32);
    }
    let table: &DenseTable<f32> = &draw.private;
    for block in 0..table.blocks() {
        table.visit(block, &mut |piece| {
            if let Block::DenseF32(rows) = piece {
                labelled.extend_from_slice(rows.values());
            }
        })?;
    }
    Ok(Rows::new(dimension, labelled.into_iter()))
}

/// A draw that is made when it is asked for first, so that finished pieces need none.
pub struct Lazy<'a> {
    sizes: &'a Sizes,
    share: f64,
    seed: u64,
    number: u64,
    made: OnceLock<Result<Prepared>>,
}

impl<'a> Lazy<'a> {
    pub fn new(sizes: &'a Sizes, share: f64, seed: u64, number: u64) -> Self {
        Self { sizes, share, seed, number, made: OnceLock::new() }
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    pub fn get(&self) -> Result<&Prepared> {
        let make = || Prepared::new(self.sizes, self.share, self.seed, self.number);
        self.made.get_or_init(make).as_ref().map_err(Error::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linreg::QUICK;

    /// Rows are those of the draw, the same for every share, and the minimiser has a public gradient of nothing.
    #[test]
    fn rows_do_not_depend_on_the_share() {
        let sizes = Sizes { dimension: 20, rows: 200, validation: 50, ..QUICK };
        let [few, many] = [0.2, 0.5].map(|share| Prepared::new(&sizes, share, 3, 0).unwrap());
        assert_eq!(few.rows.features, many.rows.features);
        assert_eq!(few.rows.labels, many.rows.labels);
        assert_eq!((few.public, many.public, few.rows.len(), few.validation.len()), (40, 100, 200, 50));
        assert_eq!(f64::from(few.rows.labels[3]), few.draw.public.label(3));
        let residuals = many.rows.residuals(&many.minimiser);
        let mut gradient = vec![0.0f64; 20];
        for (row, residual) in residuals.iter().enumerate().take(many.public) {
            let x = many.rows.row(row);
            gradient.iter_mut().zip(x).for_each(|(g, x)| *g += f64::from(*residual) * f64::from(*x));
        }
        assert!(gradient.iter().all(|g| g.abs() < 1e-3), "{gradient:?}");
        // Validation rows have the same w*: its residuals there are the labels' noise.
        let squares: Vec<f64> =
            many.validation.residuals(&many.draw.truth).iter().map(|r| f64::from(*r).powi(2)).collect();
        // A mean of 50 squares of normal numbers, within the bound of Laurent and Massart at 1e-9.
        let x = 2e9f64.ln() / 50.0;
        let mean = squares.iter().sum::<f64>() / 50.0;
        assert!((mean - 1.0).abs() < 2.0 * x.sqrt() + 2.0 * x, "{mean}");
        assert_eq!(Prepared::new(&sizes, 0.5, 3, 1).unwrap().validation.len(), 0);
    }
}
