//! Mirror descent in the geometry of public rows, as in PDA-MD of Amid et al. (2022).
//!
//! The mirror map is ψ = (F + (r/2)‖w‖²)/m: F is the mean public loss, r the regularisation over the dimension, and m
//! the least eigenvalue of the Hessian of F + (r/2)‖w‖² at the start, so that ψ is 1-strongly convex there. A step is
//!
//! $$ w^+ = \arg\min_v \eta\langle g, v\rangle + D_\psi(v, w), \qquad\text{or}\qquad
//!    \nabla\psi(w^+) = \nabla\psi(w) - \eta g. $$
//!
//! For squared loss the Hessian H is the same everywhere and this is w⁺ = w − η(H/m)⁻¹g: the paper's form, with one
//! Cholesky factor for the whole run. For other losses w⁺ is found by L-BFGS in coordinates in which the Hessian at the
//! start is the identity. A domain is projected onto as in every other algorithm, by distance.

use super::cholesky::Cholesky;
use super::hessian::hessian;
use super::{Model, PublicRows, Update, UpdateRule, lbfgs};
use crate::domain::Domain;
use crate::loss::Loss;
use crate::{Error, Result};

/// Weights up to which a Hessian is written out.
const MOST_WEIGHTS: usize = 8192;
/// The gradient of a step's problem ends this much shorter than it began.
const ACCURACY: f64 = 1e-9;

/// ψ.
#[derive(Clone)]
pub struct MirrorMap<'a> {
    loss: &'a dyn Loss,
    rows: &'a PublicRows,
    shape: Model,
    /// r.
    ridge: f64,
    /// Of the Hessian of F + (r/2)‖w‖² at the start.
    factor: Cholesky,
    /// m.
    least: f64,
}

impl<'a> MirrorMap<'a> {
    /// Learns the Hessian of public rows at a model. `regularisation` is r times the number of weights.
    pub fn new(loss: &'a dyn Loss, rows: &'a PublicRows, at: &Model, regularisation: f64) -> Result<Self> {
        if !(regularisation >= 0.0 && regularisation.is_finite()) {
            let requirement = "a finite number >= 0";
            return Err(Error::invalid("hessian-regularisation", regularisation, requirement));
        }
        let size = at.weights.len();
        if size > MOST_WEIGHTS {
            let requirement = "another one for more than 8192 weights, whose Hessian is too large";
            return Err(Error::invalid("algorithm", format!("pda-md with {size} weights"), requirement));
        }
        let ridge = regularisation / size.max(1) as f64;
        let factor = Cholesky::factor(hessian(loss, at, rows, ridge), size).ok_or_else(|| {
            let requirement = "larger: the public Hessian is singular without it";
            Error::invalid("hessian-regularisation", regularisation, requirement)
        })?;
        let least = factor.smallest_eigenvalue();
        Ok(Self { loss, rows, shape: at.clone(), ridge, factor, least })
    }

    /// m.
    pub fn least_eigenvalue(&self) -> f64 {
        self.least
    }

    /// Turns a gradient into (H/m)⁻¹ times it, for the Hessian H at the start.
    pub fn precondition(&self, gradient: &mut [f64]) {
        self.factor.solve(gradient);
        gradient.iter_mut().for_each(|g| *g *= self.least);
    }

    /// Steps of length η.
    pub fn descent(self, size: f64) -> impl UpdateRule + 'a {
        Descending { size, is_flat: self.loss.name() == "squared", map: self }
    }

    /// m·ψ and its gradient.
    fn value_and_gradient(&self, w: &[f64]) -> (f64, Vec<f64>) {
        let square: f64 = w.iter().map(|x| x * x).sum();
        let (value, mut gradient) =
            self.shape.with_weights(w.to_vec()).mean_loss_and_gradient(self.loss, self.rows);
        gradient.iter_mut().zip(w).for_each(|(g, w)| *g += self.ridge * w);
        (value + 0.5 * self.ridge * square, gradient)
    }

    /// The w⁺ with ∇ψ(w⁺) = ∇ψ(w) − η g.
    fn step(&self, w: &[f64], gradient: &[f64], size: f64) -> Vec<f64> {
        let (value, at_w) = self.value_and_gradient(w);
        let goal: Vec<f64> =
            at_w.iter().zip(gradient).map(|(here, g)| here - size * self.least * g).collect();
        // w + L⁻ᵀv, in which the Hessian at the start is the identity.
        let point = |v: &[f64]| {
            let mut moved = v.to_vec();
            self.factor.solve_upper(&mut moved);
            let linear: f64 = moved.iter().zip(&goal).map(|(x, goal)| x * goal).sum();
            moved.iter_mut().zip(w).for_each(|(x, w)| *x += w);
            (moved, linear)
        };
        let found = lbfgs::minimise(vec![0.0; w.len()], ACCURACY, |v| {
            let (moved, linear) = point(v);
            let (there, mut slope) = self.value_and_gradient(&moved);
            slope.iter_mut().zip(&goal).for_each(|(s, goal)| *s -= goal);
            self.factor.solve_lower(&mut slope);
            (there - value - linear, slope)
        });
        point(&found).0
    }
}

/// Mirror descent before it begins.
struct Descending<'a> {
    map: MirrorMap<'a>,
    size: f64,
    /// Whether the Hessian is the same everywhere.
    is_flat: bool,
}

impl UpdateRule for Descending<'_> {
    fn check(&self) -> Result<()> {
        if self.size > 0.0 && self.size.is_finite() {
            return Ok(());
        }
        Err(Error::invalid("learning-rate", self.size, "a finite number > 0"))
    }

    /// Loss, public rows and start are facts of every run.
    fn describe(&self) -> String {
        let MirrorMap { ridge, least, .. } = &self.map;
        format!("Mirror {{ size: {:?}, ridge: {ridge:?}, least: {least:?} }}", self.size)
    }

    fn rehearsed_steps(&self, steps: u64, grows: bool) -> u64 {
        // A step of another loss minimises over all public rows.
        if grows && self.is_flat { steps } else { steps.min(1) }
    }

    fn begin(&self, start: &[f64]) -> Box<dyn Update + '_> {
        Box::new(Mirrored { rule: self, w: start.to_vec() })
    }
}

/// An iterate of mirror descent.
struct Mirrored<'r, 'a> {
    rule: &'r Descending<'a>,
    w: Vec<f64>,
}

impl Update for Mirrored<'_, '_> {
    fn query_into(&self, _: u64, point: &mut [f64]) {
        point.copy_from_slice(&self.w);
    }

    fn advance(&mut self, _: u64, gradient: &[f64], domain: &dyn Domain) {
        let Descending { map, size, is_flat } = self.rule;
        if *is_flat {
            let mut along = gradient.to_vec();
            map.precondition(&mut along);
            self.w.iter_mut().zip(&along).for_each(|(w, g)| *w -= size * g);
        } else {
            self.w = map.step(&self.w, gradient, *size);
        }
        domain.project(&mut self.w);
    }

    fn iterate(&self) -> &[f64] {
        &self.w
    }

    fn state(&self) -> Vec<&[f64]> {
        vec![&self.w]
    }

    fn restore(&mut self, state: &[Vec<f64>]) {
        self.w.copy_from_slice(&state[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Everywhere;
    use crate::loss::loss_named;
    use crate::train::testing::{classes, numbers};

    /// The general form, solved, is the closed form for squared loss; which is w − η(H/λ_min)⁻¹g, written out.
    #[test]
    fn both_forms_agree_for_squared_loss() {
        let loss = loss_named("squared", 2).unwrap();
        for (count, features) in [(50, 6), (4, 6)] {
            let rows = classes(count, features, 2);
            let shape = Model::zero(features, 1, true);
            let map = MirrorMap::new(&*loss, &rows, &shape, 0.07).unwrap();
            let (w, g) = (numbers(features + 1, 2), numbers(features + 1, 5));
            let (general, least) = (map.step(&w, &g, 0.8), map.least_eigenvalue());
            let rule = map.descent(0.8);
            let mut update = rule.begin(&w);
            update.advance(1, &g, &Everywhere);
            let moved: Vec<f64> = update.iterate().iter().zip(&w).map(|(a, b)| a - b).collect();
            for (a, b) in update.iterate().iter().zip(&general) {
                assert!((a - b).abs() < 1e-6, "{a} {b}");
            }
            // H(w⁺ − w) = −ηλ_min·g, with H from its definition.
            for (i, g) in g.iter().enumerate() {
                let with_one = |row: usize, j: usize| {
                    let mut unit = vec![0.0; features + 1];
                    unit[j] = 1.0;
                    if j == features { 1.0 } else { rows.dot(row, &unit) }
                };
                let image: f64 = (0..features + 1)
                    .map(|j| {
                        let entry = (0..count).map(|row| with_one(row, i) * with_one(row, j)).sum::<f64>()
                            / count as f64;
                        (entry + if i == j { 0.07 / (features + 1) as f64 } else { 0.0 }) * moved[j]
                    })
                    .sum();
                assert!((image + 0.8 * least * g).abs() < 1e-9, "{count} {i}");
            }
        }
    }

    /// Every step solves its problem: gradients of the mirror map differ by what they must.
    #[test]
    fn steps_solve_their_problem() {
        for name in ["logistic", "softmax", "huber"] {
            let loss = loss_named(name, 3).unwrap();
            let rows = classes(60, 5, 2);
            let shape = Model::zero(5, loss.outputs(), true);
            let w = numbers(shape.weights.len(), 4);
            let map = MirrorMap::new(&*loss, &rows, &shape.with_weights(w.clone()), 0.5).unwrap();
            let g = numbers(w.len(), 6);
            let size = 0.3 / map.least_eigenvalue();
            let next = map.step(&w, &g, size);
            let (before, after) = (map.value_and_gradient(&w).1, map.value_and_gradient(&next).1);
            for ((a, b), g) in after.iter().zip(&before).zip(&g) {
                assert!((a - b + 0.3 * g).abs() < 1e-6, "{name}: {a} {b} {g}");
            }
        }
    }

    #[test]
    fn what_cannot_be_inverted_is_refused() {
        let loss = loss_named("squared", 2).unwrap();
        let (rows, shape) = (classes(3, 6, 2), Model::zero(6, 1, false));
        let refused = |regularisation: f64| match MirrorMap::new(&*loss, &rows, &shape, regularisation) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(refused(0.0).starts_with("hessian-regularisation must be larger"));
        assert!(refused(-1.0).starts_with("hessian-regularisation must be a finite number >= 0"));
        assert_eq!(refused(0.01), "");
        let wide = Model::zero(9000, 1, false);
        let Err(error) = MirrorMap::new(&*loss, &rows, &wide, 0.01) else { panic!("it was taken") };
        assert!(error.to_string().starts_with("algorithm must be another one"));
    }
}
