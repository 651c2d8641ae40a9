//! Public rows beside reports: clipped to the ball as the vectors of private people are.

use super::Setting;
use crate::mean::{Shift, for_each_row, student_quantile};
use crate::{Error, Result};
use semidp_accounting::local::Cap;
use semidp_core::{BlockSource, Public};

/// How much below the radius the length of a mean is taken to be at most.
const BELOW: f64 = 1.0 - 1e-9;

/// What public rows say about the mean and the spread of everybody.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicRows {
    count: u64,
    mean: Vec<f64>,
    /// The sum of squared distances from the mean, of each column.
    squares: Vec<f64>,
    clipped: u64,
    largest_norm: f64,
}

impl PublicRows {
    /// Reads the rows once; those beyond the radius are clipped to it. Without a radius nothing is clipped.
    pub fn of<S: BlockSource>(rows: &Public<S>, radius: Option<f64>) -> Result<Self> {
        let mean = vec![0.0; rows.width()];
        let squares = mean.clone();
        let mut all = Self { count: 0, mean, squares, clipped: 0, largest_norm: 0.0 };
        for_each_row(rows, |row| {
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            let factor = radius.filter(|radius| length > *radius).map_or(1.0, |radius| radius / length);
            all.count += 1;
            all.clipped += u64::from(radius.is_some_and(|radius| length > radius));
            all.largest_norm = all.largest_norm.max(length);
            let share = 1.0 / all.count as f64;
            // Welford's: no sum of squares that a large mean would drown.
            for ((mean, squares), x) in all.mean.iter_mut().zip(&mut all.squares).zip(row) {
                let (x, before) = (factor * x, *mean);
                *mean += (x - before) * share;
                *squares += (x - before) * (x - *mean);
            }
        })?;
        Ok(all)
    }

    /// n_pub.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of rows that were longer than the radius.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// The norm of the longest row, before clipping.
    pub fn largest_norm(&self) -> f64 {
        self.largest_norm
    }

    /// Their mean.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The unbiased variance of each column; zeros if there is one row.
    fn variances(&self) -> impl Iterator<Item = f64> {
        let freedom = self.count.saturating_sub(1).max(1) as f64;
        self.squares.iter().map(move |squares| squares / freedom)
    }

    /// Their mean minus that of this many reports, a column each; nothing from fewer than two rows.
    ///
    /// A coordinate of a report of a vector x in the ball has at most about the second moment R²/(m²d) + Var(x): the noise of every
    /// randomiser here is spread over the coordinates.
    pub fn shifts(&self, of_reports: &[f64], reports: u64, radius: f64, cap: &Cap) -> Option<Vec<Shift>> {
        if self.count < 2 || reports == 0 {
            return None;
        }
        let columns = self.mean.len().max(1) as f64;
        let noise = radius * radius * cap.mean_square() / columns;
        let significant = student_quantile(1.0 - 0.025 / columns, self.count - 1);
        let columns = self.mean.iter().zip(of_reports).zip(self.variances());
        let shift = |((public, private), variance): ((&f64, &f64), f64)| {
            let standard_error = ((noise + variance) / reports as f64 + variance / self.count as f64).sqrt();
            let estimate = public - private;
            Shift { estimate, standard_error, is_significant: estimate.abs() > significant * standard_error }
        };
        Some(columns.map(shift).collect())
    }

    /// The root of the total variance, if it can be told: from two rows that are not the same.
    pub fn std(&self) -> Option<f64> {
        let std = self.variances().sum::<f64>().sqrt();
        (self.count >= 2 && std > 0.0).then_some(std)
    }

    /// The setting with so many reports, with what these rows say of the moments. A standard deviation that is given goes first;
    /// what nobody knows is the worst that the ball allows.
    pub fn setting(&self, reports: u64, radius: f64, std: Option<f64>) -> Result<Setting> {
        let setting = Setting::new(reports, self.count, radius)?;
        if let Some(std) = std.filter(|std| *std > radius) {
            return Err(Error::invalid(
                "std",
                std,
                "at most the radius: vectors of the ball do not vary more",
            ));
        }
        let known = std.or(self.std());
        // The square of the mean's length is too long by the variance of the mean, on average.
        let square: f64 = self.mean.iter().map(|x| x * x).sum();
        let length = known.map_or(0.0, |std| (square - std * std / self.count.max(1) as f64).max(0.0).sqrt());
        let most = |length: f64| (radius * radius - length * length).max(0.0).sqrt();
        // Whoever gives a standard deviation means it: the length has to leave room for it.
        let length = length.min(std.map_or(radius, most)).min(radius * BELOW);
        setting.with_moments(length, known.map_or(most(length), |std| std.min(most(length))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_core::DenseTable;

    fn rows(values: &[f64], width: usize, radius: Option<f64>) -> PublicRows {
        PublicRows::of(&Public(DenseTable::new(values.to_vec(), width).unwrap()), radius).unwrap()
    }

    #[test]
    fn rows_are_clipped_and_their_moments_are_theirs() {
        let found = rows(&[3.0, 4.0, 0.5, 0.0, 0.0, -0.5], 2, Some(1.0));
        let clipped = [[0.6, 0.8], [0.5, 0.0], [0.0, -0.5]];
        let mean: [f64; 2] = [1.1 / 3.0, 0.1];
        let squares: f64 =
            clipped.iter().map(|row| (row[0] - mean[0]).powi(2) + (row[1] - mean[1]).powi(2)).sum();
        assert!(found.mean().iter().zip(mean).all(|(a, b)| (a - b).abs() < 1e-15));
        assert!((found.std().unwrap() - (squares / 2.0).sqrt()).abs() < 1e-15);
        assert_eq!((found.count(), found.clipped(), found.largest_norm()), (3, 1, 5.0));
        assert_eq!(rows(&[3.0, 4.0], 2, None).mean(), [3.0, 4.0]);
    }

    #[test]
    fn moments_are_those_of_the_rows_or_given_or_the_worst() {
        let apart = rows(&[0.5, 0.1, 0.5, -0.1], 2, Some(1.0));
        let found = apart.setting(7, 1.0, None).unwrap();
        assert!((found.length - 0.24f64.sqrt()).abs() < 1e-15 && (found.std - 0.02f64.sqrt()).abs() < 1e-15);
        let setting = |length: f64, std| Setting::new(7, 2, 1.0).unwrap().with_moments(length, std).unwrap();
        assert_eq!(apart.setting(7, 1.0, Some(1.0)).unwrap(), setting(0.0, 1.0));
        assert!(apart.setting(7, 1.0, Some(1.1)).is_err());
        // One row, or the same row again, says nothing about the spread.
        assert_eq!(rows(&[0.5, 0.5, 0.5, 0.5], 2, None).setting(7, 1.0, None).unwrap(), setting(0.0, 1.0));
        assert_eq!(rows(&[0.5], 1, None).std(), None);
        // Rows on the rim leave no room for both a long mean and a spread; there is an answer all the same.
        assert!(rows(&[1.0, 0.0, 1.0, 1e-9], 2, Some(1.0)).setting(7, 1.0, None).is_ok());
    }
}
