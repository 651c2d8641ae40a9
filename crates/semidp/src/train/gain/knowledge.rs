//! What public rows say before any private row is read: a model, how uncertain it is in every direction, and how long
//! gradients are.

use super::geometry::Geometry;
use crate::loss::Loss;
use crate::train::eigen::dot;
use crate::train::{Model, PublicRows, Recipe};

/// Fewer rows than this many times the columns leave too little to tell noise from signal: some are kept out.
const ENOUGH_ROWS: f64 = 1.2;
/// Of those, at most.
const MOST_HELD: usize = 150;
/// Rows whose gradients are looked at.
const MOST_JUDGED: usize = 1000;
/// The noise in labels where rows cannot tell it, as a share of their square.
const GUESSED_NOISE: f64 = 0.01;
/// And the least share of their square that a model explains.
const LEAST_SIGNAL: f64 = 0.5;
/// The least noise that is reckoned with, as a share of the same: labels may be exact, residuals of a model are not.
const LEAST_NOISE: f64 = 1e-8;
/// Clip norms are not below this share of the mean length of gradients.
const LEAST_LENGTH: f64 = 0.05;

/// How the scale of residuals is followed as the model gets better.
pub(super) enum Scale {
    /// Residuals are bounded, and stay about as they are.
    Fixed,
    /// The noise in labels plus what the model is expected to be off.
    Predicted {
        /// In labels.
        noise: f64,
    },
    /// The residuals of public rows that nothing else is learned from.
    Held(PublicRows),
}

/// The law of the lengths of gradients, in units of the residuals' scale.
pub(super) struct Lengths {
    /// Shortest first.
    rows: Vec<Length>,
    /// Whether residuals may as well be normal, which tells more than a thousand of them.
    is_normal: bool,
}

/// Of one row.
#[derive(Clone, Copy)]
struct Length {
    /// Of its gradient.
    gradient: f64,
    /// Of the row itself.
    row: f64,
    curvature: f64,
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

/// A posterior.
pub(super) struct Knowledge {
    pub(super) geometry: Geometry,
    /// Where it is centred.
    pub(super) model: Model,
    /// Of the mean loss, direction by direction.
    pub(super) curvatures: Vec<f64>,
    /// Of the posterior.
    pub(super) variances: Vec<f64>,
    /// The variance of gradients over the curvature, in units of the squared scale.
    pub(super) dispersion: f64,
    pub(super) scale: Scale,
    /// The scale at the start.
    pub(super) first_scale: f64,
    pub(super) lengths: Lengths,
    pub(super) ridge: f64,
    pub(super) ridge_source: &'static str,
}

impl Knowledge {
    /// Learns it. There must be at least one row.
    pub(super) fn learn(recipe: &Recipe<'_>, rows: &PublicRows) -> Self {
        let width = recipe.zero(rows.features()).stride();
        if recipe.loss.name() != "squared" {
            return Self::of_curved_loss(recipe, rows);
        }
        let held = match (rows.len() as f64) < ENOUGH_ROWS * width as f64 {
            true => MOST_HELD.min(rows.len() / 2),
            false => 0,
        };
        // Spread over the file: neighbours may resemble each other.
        let step = rows.len().checked_div(held).unwrap_or(usize::MAX);
        let is_held = |row: &usize| held > 0 && row.is_multiple_of(step) && row / step < held;
        let (kept_out, fitted): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(is_held);
        Self::of_squared_loss(recipe, &rows.some(&fitted), &rows.some(&kept_out))
    }

    /// Normal labels and a normal prior, both variances by the largest evidence.
    fn of_squared_loss(recipe: &Recipe<'_>, rows: &PublicRows, held: &PublicRows) -> Self {
        let shape = recipe.zero(rows.features());
        let geometry = Geometry::new(recipe.loss, &shape, rows);
        let count = rows.len() as f64;
        let labels: f64 = (0..rows.len()).map(|row| rows.label(row).powi(2)).sum();
        // −∇ at zero is Xᵀy/n.
        let slope: Vec<f64> = shape.mean_gradient(recipe.loss, rows).iter().map(|g| -g).collect();
        let along = geometry.turn(&slope).along;
        let moments = geometry.sampled();
        let evidence = Evidence { along: &along, moments: &moments[..along.len()], labels, count };
        let is_overfitted = count < 1.05 * shape.stride() as f64;
        let guess = if is_overfitted { GUESSED_NOISE } else { LEAST_NOISE };
        let least_noise = (guess * labels / count).max(f64::MIN_POSITIVE);
        // Few rows cannot tell labels that are all noise from labels that they do not explain, and a prior that takes them
        // for noise learns nothing from private rows either.
        let all: f64 = moments.iter().zip(geometry.multiplicities()).map(|(m, count)| m * count).sum();
        let least_signal = if is_overfitted { LEAST_SIGNAL * labels / count / all } else { 0.0 };
        let ridge = evidence.best_ridge(least_noise, least_signal);
        let noise = if is_overfitted { evidence.noise(ridge) } else { evidence.residual_noise(ridge) };
        let noise = noise.max(least_noise);
        let mut centre = geometry.turn(&vec![0.0; shape.weights.len()]);
        centre.along.iter_mut().zip(along.iter().zip(&moments)).for_each(|(w, (b, m))| *w = b / (m + ridge));
        let model = shape.with_weights(geometry.turn_back(&centre));
        let variances = moments.iter().map(|m| noise / (count * (m + ridge))).collect();
        let judged = Judged::new(recipe.loss, &model, rows, &geometry, ridge);
        let (scale, squares) = match held.is_empty() {
            true => (Scale::Predicted { noise }, f64::NAN),
            false => (Scale::Held(held.clone()), mean_square(&model, held).max(least_noise)),
        };
        let mut found = Self {
            curvatures: geometry.curvatures(),
            geometry,
            model,
            variances,
            dispersion: 1.0,
            scale,
            first_scale: squares.sqrt(),
            lengths: Lengths::new(judged.lengths, judged.residual),
            ridge,
            ridge_source: "public data",
        };
        if held.is_empty() {
            found.first_scale = (noise + found.excess(&found.variances)).sqrt();
        }
        found
    }

    /// Other losses: the minimiser with the ridge that cross-validation chooses, and the curvature there.
    fn of_curved_loss(recipe: &Recipe<'_>, rows: &PublicRows) -> Self {
        let fit = recipe.public_fit(rows);
        let geometry = Geometry::new(recipe.loss, &fit.model, rows);
        let judged = Judged::new(recipe.loss, &fit.model, rows, &geometry, fit.ridge);
        let curvature: f64 =
            geometry.sampled().iter().zip(geometry.multiplicities()).map(|(h, m)| h * m).sum();
        let dispersion = (judged.gradient / curvature.max(f64::MIN_POSITIVE)).max(1e-6);
        let ridge = fit.ridge.max(1e-9);
        let variances =
            geometry.sampled().iter().map(|h| dispersion / (rows.len() as f64 * (h + ridge))).collect();
        Self {
            curvatures: geometry.curvatures(),
            geometry,
            model: fit.model,
            variances,
            dispersion,
            scale: Scale::Fixed,
            first_scale: 1.0,
            lengths: Lengths::new(judged.lengths, 1.0),
            ridge: fit.ridge,
            ridge_source: fit.ridge_source,
        }
    }

    /// Σ h·variance: the expected excess, of squared residuals for squared loss and twice that of the loss otherwise.
    pub(super) fn excess(&self, variances: &[f64]) -> f64 {
        let parts = self.curvatures.iter().zip(variances).zip(self.geometry.multiplicities());
        parts.map(|((h, p), m)| if m > 0.0 { h * p * m } else { 0.0 }).sum()
    }
}

fn mean_square(model: &Model, rows: &PublicRows) -> f64 {
    let mut score = [0.0];
    let square = |row: usize| {
        model.scores_into(rows, row, &mut score);
        (score[0] - rows.label(row)).powi(2)
    };
    (0..rows.len()).map(square).sum::<f64>() / rows.len().max(1) as f64
}

impl Scale {
    /// Squared, at a model that is expected to be off by so much.
    pub(super) fn square(&self, model: &Model, excess: f64) -> f64 {
        match self {
            Self::Fixed => 1.0,
            Self::Predicted { noise } => noise + excess,
            Self::Held(rows) => mean_square(model, rows).max(f64::MIN_POSITIVE),
        }
    }
}

/// The law of labels under weights of variance τ² and noise of variance σ²: normal, with σ² + τ²·n·m along the direction
/// of each moment m, and σ² in all others.
struct Evidence<'a> {
    /// Xᵀy/n, direction by direction.
    along: &'a [f64],
    moments: &'a [f64],
    /// Σ y².
    labels: f64,
    count: f64,
}

impl Evidence<'_> {
    /// n²·b²/(n·m): the square of the labels along a direction.
    fn squares(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let largest = self.moments.iter().copied().fold(0.0, f64::max);
        let pairs = self.along.iter().zip(self.moments).filter(move |(_, m)| **m > 1e-12 * largest);
        pairs.map(|(b, m)| (self.count * b * b / m, *m))
    }

    /// σ² by its own evidence, for a ridge σ²/(τ²·n).
    fn noise(&self, ridge: f64) -> f64 {
        let (mut explained, mut weighted) = (0.0, 0.0);
        for (square, moment) in self.squares() {
            explained += square;
            weighted += square * ridge / (moment + ridge);
        }
        ((self.labels - explained).max(0.0) + weighted) / self.count
    }

    /// σ² from what the model of a ridge leaves unexplained, over the degrees of freedom it leaves. It hardly depends on the
    /// ridge, but needs more rows than columns.
    fn residual_noise(&self, ridge: f64) -> f64 {
        let (mut explained, mut left, mut freedom) = (0.0, 0.0, self.count);
        for (square, moment) in self.squares() {
            explained += square;
            left += square * (ridge / (moment + ridge)).powi(2);
            freedom -= moment / (moment + ridge);
        }
        ((self.labels - explained).max(0.0) + left) / freedom.max(1.0)
    }

    /// The ridge of the largest evidence whose noise, and variance of weights, are not below what is known.
    fn best_ridge(&self, least_noise: f64, least_signal: f64) -> f64 {
        let mean = self.moments.iter().sum::<f64>() / self.moments.len().max(1) as f64;
        let ridges = (0..=120).map(|i| mean * 10f64.powf(-8.0 + 0.1 * f64::from(i)));
        let log_evidence = |ridge: f64| {
            let noise = self.noise(ridge).max(least_noise).max(f64::MIN_POSITIVE);
            let logs: f64 = self.squares().map(|(_, moment)| (1.0 + moment / ridge).ln()).sum();
            -0.5 * (self.count * noise.ln() + self.count * self.noise(ridge) / noise + logs)
        };
        let is_signal =
            |ridge: &f64| self.noise(*ridge).max(least_noise) >= least_signal * self.count * ridge;
        let best = ridges.filter(is_signal).max_by(|a, b| log_evidence(*a).total_cmp(&log_evidence(*b)));
        best.unwrap_or(mean).max(f64::MIN_POSITIVE)
    }
}

/// Gradients as they would be if their own row had been left out.
struct Judged {
    lengths: Vec<Length>,
    /// The mean squared length.
    gradient: f64,
    /// The root of the mean squared residual.
    residual: f64,
}

impl Judged {
    fn new(loss: &dyn Loss, model: &Model, rows: &PublicRows, geometry: &Geometry, ridge: f64) -> Self {
        let inverse: Vec<f64> =
            geometry.sampled().iter().map(|h| 1.0 / (rows.len() as f64 * (h + ridge))).collect();
        let own = f64::from(u8::from(model.has_intercept));
        let (mut scores, mut residuals) = (vec![0.0; model.outputs], vec![0.0; model.outputs]);
        let (mut lengths, mut gradient, mut residual) = (Vec::new(), 0.0, 0.0);
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
            });
            gradient += square * squared_length;
            residual += square;
        }
        let count = lengths.len().max(1) as f64;
        Self { lengths, gradient: gradient / count, residual: (residual / count).sqrt() }
    }
}

impl Lengths {
    fn new(mut rows: Vec<Length>, scale: f64) -> Self {
        rows.iter_mut().for_each(|row| row.gradient /= scale.max(f64::MIN_POSITIVE));
        rows.sort_by(|a, b| a.gradient.total_cmp(&b.gradient));
        let residual = |row: &Length| if row.row > 0.0 { row.gradient / row.row } else { 0.0 };
        let moment =
            |power: i32| rows.iter().map(|row| residual(row).powi(power)).sum::<f64>() / rows.len() as f64;
        // The fourth moment of normal numbers is 3, give or take √(24/n) in so many of them.
        let tails = moment(4) / moment(2).powi(2) - 3.0;
        let is_normal = scale != 1.0 && tails.abs() < 3.0 * (24.0 / rows.len() as f64).sqrt();
        Self { rows, is_normal }
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

    /// The best of the lengths that rows have, by a figure that is to be small.
    pub(super) fn best(&self, cost: impl Fn(Clip) -> f64) -> Clip {
        let at = |share: f64| self.rows[((self.rows.len() - 1) as f64 * share) as usize].gradient;
        // Rows that a model fits all but exactly say nothing of those that it does not.
        let least =
            LEAST_LENGTH * self.rows.iter().map(|row| row.gradient).sum::<f64>() / self.rows.len() as f64;
        // Only a symmetric law is known to keep its centre when much of it is clipped.
        let from = if self.is_normal { 4 } else { 18 };
        let candidates = (from..=20).map(|i| at(0.05 * f64::from(i))).filter(|length| *length > least);
        let best = candidates.map(|length| self.clip(length)).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        best.unwrap_or_else(|| self.clip(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Everywhere;
    use crate::loss::Squared;
    use crate::train::Given;
    use crate::train::testing::{normals, public_rows};
    use semidp_accounting::PrivacyBudget;
    use semidp_core::{Adjacency, Epsilon};

    /// y = ⟨x, w⟩ + noise with w of ones.
    fn rows(count: usize, features: usize, noise: f64) -> PublicRows {
        let mut values = normals(count * (features + 1), 3);
        for row in values.chunks_exact_mut(features + 1) {
            row[features] = row[..features].iter().sum::<f64>() + noise * row[features];
        }
        public_rows(values, features)
    }

    fn learn(rows: &PublicRows) -> Knowledge {
        let recipe = Recipe {
            loss: &Squared,
            domain: &Everywhere,
            has_intercept: false,
            budget: PrivacyBudget::Pure { epsilon: Epsilon::new(1.0).unwrap() },
            adjacency: Adjacency::ReplaceOne,
            given: Given::default(),
        };
        Knowledge::learn(&recipe, rows)
    }

    /// The noise in labels is found within 6.5 standard errors, √(2/(n − d)) of it, and the posterior expects the excess
    /// of least squares, d/(n − d − 1) times the noise.
    #[test]
    fn noise_and_uncertainty_are_found() {
        let (count, features, noise) = (1200, 40, 0.5f64);
        let found = learn(&rows(count, features, noise));
        let Scale::Predicted { noise: variance } = found.scale else { panic!("rows suffice") };
        let freedom = (count - features) as f64;
        assert!((variance / (noise * noise) - 1.0).abs() < 6.5 * (2.0 / freedom).sqrt(), "{variance}");
        let expected = features as f64 / (freedom - 1.0) * noise * noise;
        let excess = found.excess(&found.variances);
        // The noise is off by as much as above; d/n in place of d/(n − d − 1), and shrinkage, change a share of about d/n each.
        let bound = 6.5 * (2.0 / freedom).sqrt() + 2.0 * features as f64 / count as f64;
        assert!((excess / expected - 1.0).abs() < bound, "{excess} {expected}");
        assert!((found.first_scale.powi(2) - variance - excess).abs() < 1e-12);
    }

    /// With fewer rows than columns some are kept out, and tell the scale of residuals.
    #[test]
    fn few_rows_are_not_believed() {
        let found = learn(&rows(30, 60, 0.1));
        let Scale::Held(held) = &found.scale else { panic!("rows do not suffice") };
        assert_eq!(held.len(), 15);
        // Half of the variance of labels, 60, is out of reach.
        assert!(found.first_scale > 3.0, "{}", found.first_scale);
    }

    /// For normal residuals and rows of one length: P = erf(k/√2) and S as in the theory of Huber's estimator, and a clip
    /// norm that nothing reaches changes nothing.
    #[test]
    fn clipping_costs_what_theory_says() {
        let rows: Vec<Length> = normals(2000, 9)
            .iter()
            .map(|r| Length { gradient: 2.0 * r.abs(), row: 2.0, curvature: 4.0 })
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
