//! The Cholesky factor of a positive definite matrix, block by block, and what it solves.

use super::tile::add_square;

/// Columns that are factored together.
const BLOCK: usize = 64;
/// Steps of the inverse iteration.
const MOST_STEPS: usize = 200;
/// It ends when an eigenvalue changes by less than this share of itself.
const ACCURACY: f64 = 1e-6;

/// L with L·Lᵀ = the matrix, row by row; what lies above the diagonal is not read.
#[derive(Clone)]
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors a symmetric matrix, of which only the lower triangle is read. None if it is not positive definite.
    pub(super) fn factor(mut matrix: Vec<f64>, size: usize) -> Option<Self> {
        for start in (0..size).step_by(BLOCK) {
            let end = (start + BLOCK).min(size);
            let depth = end - start;
            // The rows of the block itself first, which the rows below are then divided by.
            let mut top = vec![0.0; depth * depth];
            let mut panel = vec![0.0; (size - end) * depth];
            for i in start..size {
                let row = &mut matrix[i * size + start..][..depth];
                for j in 0..depth.min(i - start + 1) {
                    let (before, rest) = row.split_at_mut(j);
                    if i == start + j {
                        let pivot = rest[0] - dot(before, before);
                        if !(pivot > 0.0 && pivot.is_finite()) {
                            return None;
                        }
                        rest[0] = pivot.sqrt();
                    } else {
                        rest[0] = (rest[0] - dot(before, &top[j * depth..][..j])) / top[j * depth + j];
                    }
                }
                if i < end {
                    top[(i - start) * depth..][..depth].copy_from_slice(row);
                } else {
                    panel[(i - end) * depth..][..depth].copy_from_slice(row);
                }
            }
            add_square(&mut matrix, size, end, &panel, depth, -1.0);
        }
        Some(Self { size, lower: matrix })
    }

    fn row(&self, i: usize) -> (&[f64], f64) {
        let row = &self.lower[i * self.size..][..=i];
        (&row[..i], row[i])
    }

    /// b ← L⁻¹b.
    pub(super) fn solve_lower(&self, b: &mut [f64]) {
        for i in 0..self.size {
            let (row, pivot) = self.row(i);
            b[i] = (b[i] - dot(row, &b[..i])) / pivot;
        }
    }

    /// b ← L⁻ᵀb.
    pub(super) fn solve_upper(&self, b: &mut [f64]) {
        for i in (0..self.size).rev() {
            let (row, pivot) = self.row(i);
            b[i] /= pivot;
            let x = b[i];
            b[..i].iter_mut().zip(row).for_each(|(b, l)| *b -= x * l);
        }
    }

    /// b ← the matrix's inverse times b.
    pub(super) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        self.solve_upper(b);
    }

    /// The smallest eigenvalue of the matrix, from above, by inverse iteration from a fixed start.
    pub(super) fn smallest_eigenvalue(&self) -> f64 {
        let mut state = 1u64;
        let mut vector: Vec<f64> = (0..self.size)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            })
            .collect();
        let mut found = f64::INFINITY;
        for _ in 0..MOST_STEPS {
            let length = dot(&vector, &vector).sqrt();
            vector.iter_mut().for_each(|x| *x /= length);
            let before = vector.clone();
            self.solve(&mut vector);
            let next = 1.0 / dot(&before, &vector);
            let is_done = (found - next).abs() <= ACCURACY * next;
            found = next;
            if is_done {
                break;
            }
        }
        found
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums, so that additions need not wait for each other.
    let ((fours, rest), (others, tail)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for (x, y) in fours.iter().zip(others) {
        (0..4).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + rest.iter().zip(tail).map(|(x, y)| x * y).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix with a factor of whole numbers comes apart exactly.
    #[test]
    fn small_cases_are_exact() {
        let matrix = vec![4.0, f64::NAN, f64::NAN, 12.0, 37.0, f64::NAN, -16.0, -43.0, 98.0];
        let factor = Cholesky::factor(matrix, 3).unwrap();
        for (i, expected) in [&[2.0][..], &[6.0, 1.0], &[-8.0, 5.0, 3.0]].into_iter().enumerate() {
            assert_eq!(factor.lower[i * 3..][..=i], *expected);
        }
        // 4x + 12y − 16z and so on at (1, 2, 3).
        let mut b = vec![4.0 + 24.0 - 48.0, 12.0 + 74.0 - 129.0, -16.0 - 86.0 + 294.0];
        factor.solve(&mut b);
        assert_eq!(b, [1.0, 2.0, 3.0]);
        assert!(Cholesky::factor(vec![1.0, 0.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::factor(vec![0.0], 1).is_none() && Cholesky::factor(vec![f64::NAN], 1).is_none());
    }

    /// Sizes around those of blocks: solutions leave no residual, and the smallest eigenvalue is the one put in.
    #[test]
    fn residuals_vanish() {
        for size in [1, 2, 63, 64, 65, 130, 200] {
            let mut state = size as u64;
            let mut number = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            };
            // Of full rank but for one direction u: a hundredth of the identity is all there is along it.
            let u: Vec<f64> = (0..size).map(|_| number()).collect();
            let square = dot(&u, &u);
            let mut matrix = vec![0.0; size * size];
            for _ in 0..2 * size {
                let mut x: Vec<f64> = (0..size).map(|_| number()).collect();
                let along = dot(&x, &u) / square;
                x.iter_mut().zip(&u).for_each(|(x, u)| *x -= along * u);
                for i in 0..size {
                    for j in 0..size {
                        matrix[i * size + j] += x[i] * x[j];
                    }
                }
            }
            (0..size).for_each(|i| matrix[i * size + i] += 0.01);
            let factor = Cholesky::factor(matrix.clone(), size).unwrap();
            let b: Vec<f64> = (0..size).map(|_| number()).collect();
            let mut x = b.clone();
            factor.solve(&mut x);
            for (row, b) in matrix.chunks_exact(size).zip(&b) {
                assert!((dot(row, &x) - b).abs() < 1e-10, "{size}");
            }
            assert!((factor.smallest_eigenvalue() / 0.01 - 1.0).abs() < 1e-5, "{size}");
        }
    }
}
