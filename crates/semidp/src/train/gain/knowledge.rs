//! What public rows say before any private row is read: a model, and how uncertain it is in every direction.

use super::geometry::Geometry;
use super::lengths::{Judged, Lengths};
use crate::train::{Model, PublicRows, Recipe};

/// Fewer rows than this many times the columns leave too little to tell noise from signal: some are kept out.
const ENOUGH_ROWS: f64 = 1.2;
/// Of those, at most.
const MOST_HELD: usize = 150;
/// The noise in labels where rows cannot tell it, as a share of their square.
const GUESSED_NOISE: f64 = 0.01;
/// And the least share of their square that a model explains.
const LEAST_SIGNAL: f64 = 0.5;
/// The least noise that is reckoned with, as a share of the same: labels may be exact, residuals of a model are not.
const LEAST_NOISE: f64 = 1e-8;

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
        let lengths = Lengths::of_numbers(&judged);
        let mut found = Self {
            curvatures: geometry.curvatures(),
            geometry,
            model,
            variances,
            dispersion: 1.0,
            scale,
            first_scale: squares.sqrt(),
            lengths,
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
        let lengths = Lengths::of_classes(&judged);
        Self {
            curvatures: geometry.curvatures(),
            geometry,
            model: fit.model,
            variances,
            dispersion,
            scale: Scale::Fixed,
            first_scale: 1.0,
            lengths,
            ridge: fit.ridge,
            ridge_source: fit.ridge_source,
        }
    }

    /// The variance of weights of which nothing is known but how much they explain.
    pub(super) fn size(&self) -> f64 {
        let told = self.geometry.turn(&self.model.weights);
        let explained = self.geometry.weighted_square(&told, &self.curvatures);
        let curvature = self.excess(&vec![1.0; self.curvatures.len()]).max(f64::MIN_POSITIVE);
        (explained + self.excess(&self.variances)) / curvature
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
}
