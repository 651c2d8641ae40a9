//! Losses of a whole row, for whatever is no function of linear scores; and the one name for both kinds.

use super::{Bounds, Constants, Loss};
use semidp_core::{RowGradient, RowView};

/// Anything that can be trained: either kind of loss.
///
/// Every [`Loss`] is one. A [`RowLoss`] says so in three lines, because no rule can cover both.
pub trait Objective: Sync {
    /// The way its gradients take through the kernel.
    fn door(&self) -> Door<'_>;
}

/// The kernel's two doors for gradients.
#[derive(Clone, Copy)]
pub enum Door<'a> {
    /// Residuals times the row: no gradient of a row is ever stored.
    Scores(&'a dyn Loss),
    /// One gradient after the other.
    Rows(&'a dyn RowLoss),
}

impl<L: Loss> Objective for L {
    fn door(&self) -> Door<'_> {
        Door::Scores(self)
    }
}

/// A loss of a model and a row.
pub trait RowLoss: Objective + Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Its name and every parameter, so that a run is not continued with others.
    fn describe(&self) -> String;

    /// Weights of a model, for rows of so many columns.
    fn dimension(&self, width: usize) -> usize;

    /// f(w, x).
    fn value(&self, weights: &[f64], row: RowView<'_>) -> f64;

    /// Writes ∇_w f(w, x); `gradient` holds zeros.
    fn gradient_into(&self, weights: &[f64], row: RowView<'_>, gradient: &mut [f64]);

    /// Its constants for bounded rows and models.
    fn constants(&self, bounds: &Bounds) -> Constants;
}

/// A row loss at a model, which is public or released: what the kernel asks for gradients.
#[derive(Clone, Copy)]
pub struct AtModel<'a> {
    /// The loss.
    pub loss: &'a dyn RowLoss,
    /// The model.
    pub weights: &'a [f64],
}

impl RowGradient for AtModel<'_> {
    fn dimension(&self) -> usize {
        self.weights.len()
    }

    fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]) {
        self.loss.gradient_into(self.weights, row, gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Linear, Quadratic};
    use super::*;
    use proptest::prelude::*;
    use semidp_core::*;

    const WIDTH: usize = 7;

    fn all() -> Vec<Box<dyn RowLoss>> {
        vec![Box::new(Linear), Box::new(Quadratic::new(1.0).unwrap()), Box::new(Quadratic::new(0.3).unwrap())]
    }

    fn gradient(loss: &dyn RowLoss, weights: &[f64], row: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; weights.len()];
        loss.gradient_into(weights, RowView { values: row }, &mut gradient);
        gradient
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Both losses are polynomials of degree two at most, for which central differences have no error but
        /// rounding: numbers below 2^9 are off by at most 2^-44 after a few operations, and are divided by h.
        #[test]
        fn gradients_are_derivatives(
            weights in prop::collection::vec(-3.0f64..3.0, WIDTH),
            row in prop::collection::vec(-3.0f64..3.0, WIDTH),
        ) {
            let h = 0.25;
            for loss in all() {
                prop_assert_eq!(loss.dimension(WIDTH), WIDTH);
                let found = gradient(&*loss, &weights, &row);
                for j in 0..WIDTH {
                    let at = |shift: f64| {
                        let mut moved = weights.clone();
                        moved[j] += shift;
                        loss.value(&moved, RowView { values: &row })
                    };
                    let difference = (at(h) - at(-h)) / (2.0 * h);
                    prop_assert!((found[j] - difference).abs() < 2f64.powi(-42), "{}", loss.name());
                }
            }
        }
    }

    /// Contributes nothing, so that a release with it is the noise alone.
    struct Silence;

    impl RowGradient for Silence {
        fn dimension(&self) -> usize {
            WIDTH
        }

        fn gradient_into(&self, _: RowView<'_>, _: &mut [f64]) {}
    }

    /// The kernel's sum of clipped gradients. Its noise is a function of seed and step alone: the same again without
    /// contributions, and subtracted, leaves the integers of the sum.
    fn kernel_sum<S: BlockSource>(
        source: impl Fn() -> S,
        gradient: &dyn RowGradient,
        clip_norm: f64,
    ) -> Vec<f64> {
        let release = |gradient: &dyn RowGradient| {
            let session = Session::new(Private::new(source()), Adjacency::ReplaceOne).unwrap();
            let session = session.with_randomness(Randomness::Seed(3)).with_threads(2);
            let noise = Gaussian::new(NoiseMultiplier::new(1.0).unwrap());
            let program = Program::new(noise, Sampling::Everyone, Steps::ONE).with_dimension(WIDTH);
            let (run, mut tickets) = session.authorise(program, Delta::new(1e-6).unwrap()).unwrap();
            let query = ClippedRowGradient::new(gradient, WIDTH, clip_norm).unwrap();
            run.noise(run.sum(&query, tickets.next().unwrap()).unwrap()).unwrap().into_inner()
        };
        let (all, noise) = (release(gradient), release(&Silence));
        all.iter().zip(&noise).map(|(sum, noise)| sum - noise).collect()
    }

    /// Dense and sparse rows give the same integers, and those are the naive sum: a coordinate of a contribution is
    /// truncated by less than a grid step, and a clipped one is a factor of at most 2^-19 too short (the kernel aims
    /// 2^-20 below the clip norm, and rounds).
    #[test]
    fn the_kernel_sums_what_a_naive_loop_sums() {
        let mut state = 9u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let count = 500;
        let (mut dense, mut offsets, mut columns, mut values) = (Vec::new(), vec![0], Vec::new(), Vec::new());
        for _ in 0..count {
            for j in 0..WIDTH {
                let x = if number() > 0.1 { 0.0 } else { 3.0 * number() };
                dense.push(x);
                if x != 0.0 {
                    columns.push(j as u32);
                    values.push(x);
                }
            }
            offsets.push(values.len());
        }
        let weights: Vec<f64> = (0..WIDTH).map(|_| number()).collect();
        let (mut clipped, mut kept) = (0, 0);
        for loss in all() {
            for clip_norm in [0.7, 1.3] {
                let mut naive = [0.0; WIDTH];
                for row in dense.chunks_exact(WIDTH) {
                    let gradient = gradient(&*loss, &weights, row);
                    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
                    let factor = if norm > clip_norm { clip_norm / norm } else { 1.0 };
                    if norm > clip_norm {
                        clipped += 1
                    } else {
                        kept += 1
                    }
                    naive.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += factor * g);
                }
                let at = AtModel { loss: &*loss, weights: &weights };
                let table = || DenseTable::with_blocks(dense.clone(), WIDTH, 64).unwrap();
                let sparse = || {
                    let (offsets, columns, values) = (offsets.clone(), columns.clone(), values.clone());
                    CsrTable::new(offsets, columns, values, WIDTH).unwrap()
                };
                let found = kernel_sum(table, &at, clip_norm);
                assert_eq!(kernel_sum(sparse, &at, clip_norm), found);
                let step = Grid::new(clip_norm, WIDTH).unwrap().step();
                let bound = f64::from(count) * (step + clip_norm * 2f64.powi(-19));
                for (found, naive) in found.iter().zip(naive) {
                    assert!((found - naive).abs() <= bound, "{}: {found} {naive}", loss.name());
                }
            }
        }
        assert!(clipped > 100 && kept > 100);
    }
}
