//! How long gradients of public rows are, and what clipping does to them.

use super::geometry::Geometry;
use crate::loss::Loss;
use crate::train::eigen::dot;
use crate::train::{Model, PublicRows};
use std::collections::BTreeMap;

/// Rows whose gradients are looked at.
const MOST_JUDGED: usize = 1000;
/// Clip norms are not below this share of the mean length of gradients.
const LEAST_LENGTH: f64 = 0.05;
/// And leave at least such a share of rows as they are: only a symmetric law is known to keep its centre when much is clipped.
const LEAST_KEPT: f64 = 0.9;
/// From one clip norm to the next, where it is to be told how they move the mean gradient.
const NEXT_LENGTH: f64 = 1.3;

/// The law of the lengths of gradients, in units of the residuals' scale.
pub(super) struct Lengths {
    /// Shortest first.
    rows: Vec<Length>,
    /// Whether residuals may as well be normal, which tells more than a thousand of them.
    is_normal: bool,
    /// Clip norms that are dear but move the mean gradient less.
    kinder: Vec<Kinder>,
}

/// A clip norm, and what it takes from the mean gradient: squares, direction by direction.
struct Kinder {
    length: f64,
    bias: Vec<f64>,
}

/// Of one row.
#[derive(Clone, Copy)]
struct Length {
    /// Of its gradient.
    gradient: f64,
    /// Of the row itself.
    row: f64,
    curvature: f64,
    label: f64,
}

/// What clipping does to gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Clip {
    /// C in units of the residuals' scale.
    pub(super) length: f64,
    /// The curvature that is left, as a share.
    pub(super) slope: f64,
    /// The variance that is left, over the square of that share.
    pub(super) inflation: f64,
}

/// Gradients as they would be if their own row had been left out.
pub(super) struct Judged<'a> {
    model: &'a Model,
    public: &'a PublicRows,
    geometry: &'a Geometry,
    lengths: Vec<Length>,
    /// Which row each is of, and its residuals.
    rows: Vec<(usize, Vec<f64>)>,
    /// The mean squared length.
    pub(super) gradient: f64,
    /// The root of the mean squared residual.
    pub(super) residual: f64,
}

impl<'a> Judged<'a> {
    pub(super) fn new(
        loss: &dyn Loss,
        model: &'a Model,
        rows: &'a PublicRows,
        geometry: &'a Geometry,
        ridge: f64,
    ) -> Self {
        let inverse: Vec<f64> =
            geometry.sampled().iter().map(|h| 1.0 / (rows.len() as f64 * (h + ridge))).collect();
        let own = f64::from(u8::from(model.has_intercept));
        let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
        let (mut lengths, mut judged, mut gradient, mut residual) = (Vec::new(), Vec::new(), 0.0, 0.0);
        let step = rows.len().div_ceil(MOST_JUDGED).max(1);
        for row in (0..rows.len()).step_by(step) {
            model.scores_into(rows, row, &mut scores);
            loss.residuals(&scores, rows.label(row), &mut residuals);
            let size = dot(&residuals, &residuals).sqrt();
            let factor = crate::train::hessian::curvature_factor(loss, &scores, rows.label(row));
            let curvature = dot(&factor, &factor);
            let squared_length = rows.squared_norm(row) + own;
            // One Newton step without the row moves its own score by leverage/(1 − leverage) of its residual.
            if size > 0.0 {
                let mut pull = vec![0.0; model.weights.len()];
                let unit: Vec<f64> = residuals.iter().map(|r| r / size).collect();
                model.add_gradient(rows, row, &unit, 1.0, &mut pull);
                let reach = geometry.weighted_square(&geometry.turn(&pull), &inverse);
                let leverage = (reach * curvature / model.outputs as f64).min(0.999);
                for (score, unit) in scores.iter_mut().zip(&unit) {
                    *score += unit * size * reach / (1.0 - leverage);
                }
                loss.residuals(&scores, rows.label(row), &mut residuals);
            }
            let square = dot(&residuals, &residuals);
            lengths.push(Length {
                gradient: (square * squared_length).sqrt(),
                row: squared_length.sqrt(),
                curvature: curvature * squared_length,
                label: rows.label(row),
            });
            judged.push((row, residuals.clone()));
            gradient += square * squared_length;
            residual += square;
        }
        let count = lengths.len().max(1) as f64;
        let (gradient, residual) = (gradient / count, (residual / count).sqrt());
        Self { model, public: rows, geometry, lengths, rows: judged, gradient, residual }
    }

    /// What clipping at a length takes from the mean gradient: squares, direction by direction. Chance has its part in them: few
    /// rows cannot rule out that much is lost.
    fn bias(&self, length: f64) -> Vec<f64> {
        let mut lost = vec![0.0; self.model.weights.len()];
        for (of, (row, residuals)) in self.lengths.iter().zip(&self.rows) {
            if of.gradient > length {
                let share = (1.0 - length / of.gradient) / self.rows.len() as f64;
                self.model.add_gradient(self.public, *row, residuals, share, &mut lost);
            }
        }
        self.geometry.turn(&lost).squares(self.geometry)
    }
}

impl Lengths {
    /// Of numbers, in units of their residuals.
    pub(super) fn of_numbers(judged: &Judged<'_>) -> Self {
        let scale = judged.residual.max(f64::MIN_POSITIVE);
        Self::new(judged.lengths.clone(), judged.residual).with_biases(f64::INFINITY, |length| {
            judged.bias(length * scale).into_iter().map(|square| square / (scale * scale)).collect()
        })
    }

    /// Of classes. Where one is rare its rows are most of the longest, and what is lost with them is the class. What a longer norm
    /// than half of them have adds is a better loss, but on some tables a worse order of rows.
    pub(super) fn of_classes(judged: &Judged<'_>) -> Self {
        let lengths = Self::new(judged.lengths.clone(), 1.0);
        let most = lengths.median_of_rarest();
        lengths.with_biases(most, |length| judged.bias(length))
    }

    fn new(mut rows: Vec<Length>, scale: f64) -> Self {
        rows.iter_mut().for_each(|row| row.gradient /= scale.max(f64::MIN_POSITIVE));
        rows.sort_by(|a, b| a.gradient.total_cmp(&b.gradient));
        let residual = |row: &Length| if row.row > 0.0 { row.gradient / row.row } else { 0.0 };
        let moment =
            |power: i32| rows.iter().map(|row| residual(row).powi(power)).sum::<f64>() / rows.len() as f64;
        // The fourth moment of normal numbers is 3, give or take √(24/n) in so many of them.
        let tails = moment(4) / moment(2).powi(2) - 3.0;
        let is_normal = scale != 1.0 && tails.abs() < 3.0 * (24.0 / rows.len() as f64).sqrt();
        Self { rows, is_normal, kinder: Vec::new() }
    }

    /// With clip norms up to the longest, or to this one, and what they take from the mean gradient. A symmetric law keeps
    /// its centre however much of it is clipped.
    fn with_biases(mut self, most: f64, bias: impl Fn(f64) -> Vec<f64>) -> Self {
        let (first, last) = (self.at(LEAST_KEPT), self.at(1.0).min(most));
        if self.is_normal || first <= 0.0 || last <= first {
            return self;
        }
        let steps = ((last / first).ln() / NEXT_LENGTH.ln()).ceil();
        let lengths = (0..=steps as u32).map(|i| first * (last / first).powf(f64::from(i) / steps));
        self.kinder = lengths.map(|length| Kinder { length, bias: bias(length) }).collect();
        self
    }

    /// Such a share of gradients is no longer.
    fn at(&self, share: f64) -> f64 {
        self.rows[((self.rows.len() - 1) as f64 * share) as usize].gradient
    }

    /// The median in the class that has the fewest rows. Of a rare one, with less than half of an even share and rows that may all be
    /// clipped, only those count that are: a column that gives half of them away says nothing of the others.
    fn median_of_rarest(&self) -> f64 {
        let mut classes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        self.rows.iter().for_each(|row| classes.entry(row.label.to_bits()).or_default().push(row.gradient));
        let even = 1.0 / classes.len() as f64;
        let Some(class) = classes.into_values().min_by_key(Vec::len) else { return 0.0 };
        let is_rare = (class.len() as f64) < (1.0 - LEAST_KEPT).min(even / 2.0) * self.rows.len() as f64;
        let short = class.partition_point(|length| is_rare && *length <= self.at(LEAST_KEPT));
        let counted = if short < class.len() { &class[short..] } else { &class };
        counted[counted.len() / 2]
    }

    /// Clipping at this length, in units of the scale.
    pub(super) fn clip(&self, length: f64) -> Clip {
        let sum = |of: &dyn Fn(&Length) -> f64| self.rows.iter().map(of).sum::<f64>();
        let (inside, square) = if self.is_normal {
            // Of a standard normal residual clipped at k: what lies within, and E min(|r|, k)².
            let within = |k: f64| 1.0 - libm::erfc(k / std::f64::consts::SQRT_2);
            let density = |k: f64| (-0.5 * k * k).exp() / std::f64::consts::TAU.sqrt();
            let square = |k: f64| within(k) - 2.0 * k * density(k) + k * k * (1.0 - within(k));
            let at = |row: &Length| length / row.row.max(f64::MIN_POSITIVE);
            let whole = sum(&|row| row.row * row.row);
            (
                sum(&|row| row.curvature * within(at(row))),
                sum(&|row| row.row * row.row * square(at(row))) / whole,
            )
        } else {
            let whole = sum(&|row| row.gradient.powi(2));
            let kept = sum(&|row| row.gradient.min(length).powi(2));
            (
                sum(&|row| if row.gradient <= length { row.curvature } else { 0.0 }),
                if whole > 0.0 { kept / whole } else { 1.0 },
            )
        };
        let all = sum(&|row| row.curvature).max(f64::MIN_POSITIVE);
        // Too little curvature to be reckoned with is not told from none.
        let slope = (inside / all).clamp(0.02, 1.0);
        Clip { length, slope, inflation: square / (slope * slope) }
    }

    /// The best of the lengths that rows have by what noise and sampling cost, or a longer one if that is best when the bias of
    /// clipping is taken into account.
    pub(super) fn best(&self, cheap: impl Fn(Clip) -> f64, kind: impl Fn(Clip, &[f64]) -> f64) -> Clip {
        let least_costly =
            |all: Vec<(f64, Clip)>| all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, clip)| clip);
        // Rows that a model fits all but exactly say nothing of those that it does not.
        let least =
            LEAST_LENGTH * self.rows.iter().map(|row| row.gradient).sum::<f64>() / self.rows.len() as f64;
        let from = if self.is_normal { 4 } else { (20.0 * LEAST_KEPT) as u32 };
        let lengths = (from..=20).map(|i| self.at(0.05 * f64::from(i))).filter(|length| *length > least);
        let clips = lengths.map(|length| self.clip(length));
        let Some(clip) = least_costly(clips.map(|clip| (cheap(clip), clip)).collect()) else {
            return self.clip(1.0);
        };
        let kinder = self.kinder.iter().map(|Kinder { length, bias }| {
            let clip = self.clip(*length);
            (kind(clip, bias), clip)
        });
        least_costly(kinder.collect()).filter(|kinder| kinder.length > clip.length).unwrap_or(clip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::testing::normals;

    /// Lengths of a class are those of its rows that clipping at the least norm touches, if it is rare, and of all otherwise.
    #[test]
    fn rows_that_are_given_away_do_not_hide_the_others() {
        let median = |rare: &[f64], others: usize, classes: usize| {
            let row = |gradient: f64, label: f64| Length { gradient, row: 1.0, curvature: 1.0, label };
            let many =
                (0..others).map(|i| row(0.2 + 1e-3 * i as f64 / others as f64, 1.0 + (i % classes) as f64));
            let rows = rare.iter().map(|length| row(*length, 0.0)).chain(many).collect();
            Lengths::new(rows, 1.0).median_of_rarest()
        };
        let rare = [0.1, 0.1, 0.1, 2.0, 3.0, 4.0, 0.1];
        assert_eq!(median(&rare, 93, 1), 3.0);
        assert_eq!(median(&[0.1; 7], 93, 1), 0.1);
        // A third of the rows cannot all be clipped, and the least of many classes need not be rare.
        assert_eq!(median(&rare, 14, 1), 0.1);
        assert_eq!(median(&rare, 93, 9), 0.1);
    }

    /// For normal residuals and rows of one length: P = erf(k/√2) and S as in the theory of Huber's estimator, and a clip
    /// norm that nothing reaches changes nothing.
    #[test]
    fn clipping_costs_what_theory_says() {
        let rows: Vec<Length> = normals(2000, 9)
            .iter()
            .map(|r| Length { gradient: 2.0 * r.abs(), row: 2.0, curvature: 4.0, label: 0.0 })
            .collect();
        for is_normal in [true, false] {
            let lengths = Lengths { is_normal, ..Lengths::new(rows.clone(), 1.0) };
            let clip = lengths.clip(2.0);
            // k = 1: P = 0.682689, E min(r², 1) = 0.516058; by counting, within 6.5 standard errors of 2000 draws.
            let bound = if is_normal { 1e-6 } else { 6.5 * (0.25f64 / 2000.0).sqrt() };
            assert!((clip.slope - 0.682_689).abs() < bound, "{clip:?}");
            let square = clip.inflation * clip.slope.powi(2);
            // The empirical one is a share of the empirical whole, another 6.5 errors of √(2/2000).
            let bound = if is_normal { 1e-6 } else { bound + 6.5 * (2.0f64 / 2000.0).sqrt() };
            assert!((square - 0.516_058).abs() < bound, "{clip:?}");
            let free = lengths.clip(1e9);
            assert!((free.slope - 1.0).abs() < 1e-12 && (free.inflation - 1.0).abs() < 1e-9, "{free:?}");
        }
    }
}
