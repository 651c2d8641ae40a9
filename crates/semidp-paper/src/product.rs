//! Products of matrices that lie in memory row by row, in single or double precision.

use std::ops::Range;

/// A matrix by its numbers and the distances from one row, and one column, to the next.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    numbers: &'a [T],
    rows: usize,
    columns: usize,
    down: usize,
    along: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows of so many numbers, one after the other.
    pub fn new(numbers: &'a [T], columns: usize) -> Self {
        Self { numbers, rows: numbers.len() / columns.max(1), columns, down: columns, along: 1 }
    }

    /// Its columns for rows.
    pub fn transposed(self) -> Self {
        let Self { numbers, rows, columns, down, along } = self;
        Self { numbers, rows: columns, columns: rows, down: along, along: down }
    }

    /// Some of its rows.
    pub fn some(self, rows: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        let first = (rows.start * self.down).min(self.numbers.len());
        Self { numbers: &self.numbers[first..], rows: rows.len(), ..self }
    }

    /// How far its last number lies from its first, and one more.
    fn reach(self) -> usize {
        if self.rows * self.columns == 0 {
            return 0;
        }
        (self.rows - 1) * self.down + (self.columns - 1) * self.along + 1
    }
}

/// Numbers that there are products for.
pub trait Real: Copy + Send + Sync {
    /// C ← C + factor·A·B.
    fn add_product(factor: Self, a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: &mut [Self]);
}

macro_rules! real {
    ($number:ty, $product:path) => {
        impl Real for $number {
            #[expect(unsafe_code, reason = "the product takes pointers")]
            fn add_product(factor: Self, a: Matrix<'_, Self>, b: Matrix<'_, Self>, c: &mut [Self]) {
                assert_eq!(a.columns, b.rows, "the matrices do not fit together");
                assert_eq!(c.len(), a.rows * b.columns, "the product has another shape");
                assert!(
                    a.numbers.len() >= a.reach() && b.numbers.len() >= b.reach(),
                    "a matrix is too short"
                );
                // SAFETY: the product reads and writes within the three shapes, whose reach was just checked; `c` is borrowed
                // mutably, so that it overlaps neither of the others.
                unsafe {
                    $product(
                        a.rows,
                        a.columns,
                        b.columns,
                        factor,
                        a.numbers.as_ptr(),
                        a.down as isize,
                        a.along as isize,
                        b.numbers.as_ptr(),
                        b.down as isize,
                        b.along as isize,
                        1.0,
                        c.as_mut_ptr(),
                        b.columns as isize,
                        1,
                    );
                }
            }
        }
    };
}

real!(f32, matrixmultiply::sgemm);
real!(f64, matrixmultiply::dgemm);

/// The same with the rows of C shared out among threads. It makes no difference to any number.
pub fn add_product_with<T: Real>(threads: usize, factor: T, a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T]) {
    let share = a.rows.div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for (part, c) in c.chunks_mut(share * b.columns.max(1)).enumerate() {
            let rows = part * share..((part + 1) * share).min(a.rows);
            scope.spawn(move || T::add_product(factor, a.some(rows), b, c));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_a_naive_loop() {
        for (rows, inner, columns) in [(1, 1, 1), (3, 5, 2), (17, 9, 33), (40, 70, 11), (4, 0, 3)] {
            let number = |i: usize| ((i * 37 + 11) % 23) as f64 - 11.0;
            let a: Vec<f64> = (0..rows * inner).map(number).collect();
            let turned: Vec<f64> = (0..rows * inner).map(|i| a[(i % rows) * inner + i / rows]).collect();
            let b: Vec<f64> = (0..inner * columns).map(|i| number(i + 5)).collect();
            let expected: Vec<f64> = (0..rows * columns)
                .map(|at| {
                    let (i, j) = (at / columns, at % columns);
                    1.0 - 2.0 * (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum::<f64>()
                })
                .collect();
            let right = Matrix { numbers: &b, rows: inner, columns, down: columns, along: 1 };
            for threads in [1, 2, 3] {
                let lefts = [
                    Matrix { numbers: &a, rows, columns: inner, down: inner, along: 1 },
                    Matrix { numbers: &turned, rows: inner, columns: rows, down: rows, along: 1 }
                        .transposed(),
                ];
                for left in lefts {
                    let mut c = vec![1.0; rows * columns];
                    add_product_with(threads, -2.0, left, right, &mut c);
                    // Small whole numbers: exact, in single precision as well.
                    assert_eq!(c, expected);
                }
            }
            let (a, b): (Vec<f32>, Vec<f32>) =
                (a.iter().map(|x| *x as f32).collect(), b.iter().map(|x| *x as f32).collect());
            let mut c = vec![1.0f32; rows * columns];
            let left = Matrix { numbers: &a, rows, columns: inner, down: inner, along: 1 };
            f32::add_product(
                -2.0,
                left,
                Matrix { numbers: &b, rows: inner, columns, down: columns, along: 1 },
                &mut c,
            );
            assert!(c.iter().zip(&expected).all(|(c, expected)| f64::from(*c) == *expected));
        }
    }
}
