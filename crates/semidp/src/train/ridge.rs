//! How strongly a model of public rows alone is held back, from the public rows themselves.

use super::minimise::minimise_to;
use super::{Model, PublicRows};
use crate::loss::Loss;

/// Ridges that are tried.
const RIDGES: [f64; 10] = [1.0, 0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5];
/// Models are compared, not kept: their gradients need not be shorter than this share of the first.
const ACCURACY: f64 = 1e-2;
/// So much above the least error, weaker ridges are not tried any more.
const WORSE: f64 = 1.02;
const FOLDS: usize = 5;
/// Numbers in the rows up to which every fold is left out once; beyond, only one.
const FEW_NUMBERS: usize = 1 << 20;

/// The ridge whose model has the least loss on public rows that it was not fitted to. None if there are too few rows.
pub fn best_ridge(loss: &dyn Loss, public: &PublicRows, shape: &Model) -> Option<f64> {
    if public.len() < 2 * FOLDS {
        return None;
    }
    let is_small = public.len().saturating_mul(public.features()) <= FEW_NUMBERS;
    let folds: Vec<(PublicRows, PublicRows)> = (0..if is_small { FOLDS } else { 1 })
        .map(|fold| {
            let (kept, left): (Vec<usize>, Vec<usize>) =
                (0..public.len()).partition(|row| row % FOLDS != fold);
            (public.some(&kept), public.some(&left))
        })
        .collect();
    // From strong to weak, each from the model before: neighbours are close.
    let mut models = vec![shape.clone(); folds.len()];
    let mut best: Option<(f64, f64)> = None;
    for ridge in RIDGES {
        let mut errors = vec![0.0; folds.len()];
        std::thread::scope(|scope| {
            for (((kept, left), model), error) in folds.iter().zip(&mut models).zip(&mut errors) {
                scope.spawn(move || {
                    model.weights = minimise_to(loss, kept, model, ridge, ACCURACY);
                    *error = model.mean_loss(loss, left);
                });
            }
        });
        let error: f64 = errors.iter().sum();
        match best {
            Some((least, _)) if error > WORSE * least => break,
            Some((least, _)) if error >= least => {}
            _ => best = Some((error, ridge)),
        }
    }
    best.map(|(_, ridge)| ridge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Logistic, Squared};
    use semidp_core::{DenseTable, Public};

    /// Labels that are mostly noise ask for a strong ridge, labels without noise for a weak one.
    #[test]
    fn noise_asks_for_a_ridge() {
        let rows = |noise: f64, is_class: bool| {
            let mut state = 11u64;
            let mut number = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            };
            let mut values = Vec::new();
            for _ in 0..60 {
                let x: Vec<f64> = (0..10).map(|_| number()).collect();
                let label = x[0] - x[1] + noise * number();
                values.extend_from_slice(&x);
                values.push(if is_class { f64::from(u8::from(label > 0.0)) } else { label });
            }
            PublicRows::load(&Public(DenseTable::new(values, 11).unwrap())).unwrap()
        };
        let shape = Model::zero(10, 1, true);
        for (loss, is_class) in [(&Squared as &dyn Loss, false), (&Logistic, true)] {
            let clean = best_ridge(loss, &rows(0.01, is_class), &shape).unwrap();
            let noisy = best_ridge(loss, &rows(20.0, is_class), &shape).unwrap();
            assert!(clean < 0.01 && noisy >= 10.0 * clean, "{is_class}: {clean} {noisy}");
        }
        assert_eq!(best_ridge(&Squared, &rows(1.0, false).some(&[0, 1, 2]), &shape), None);
    }
}
