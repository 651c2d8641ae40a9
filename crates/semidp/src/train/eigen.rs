//! Eigenvalues and eigenvectors of a symmetric matrix: Householder's reduction to three diagonals, then implicit QL.
//!
//! Both are memory-bound as textbooks write them. Here an update of the matrix and the next product with it share one pass,
//! and rotations are gathered and applied to strips of the eigenvectors that stay in a cache, on several threads. Strips do
//! not meet, so the number of threads changes no bit.

use super::wide::wide;

/// A matrix as its eigenvectors (rows of `vectors`) and eigenvalues, smallest first.
pub(super) struct Eigen {
    pub(super) values: Vec<f64>,
    /// As many rows as values, each of unit length.
    pub(super) vectors: Vec<f64>,
}

/// Components in a strip.
const STRIP: usize = 32;
/// Rotations that are gathered before they are applied.
const GATHERED: usize = 1 << 17;
/// QL needs two or three sweeps a value; this many would be a fault.
const MOST_SWEEPS: usize = 200;

/// Of a symmetric matrix in rows, which is used up.
pub(super) fn eigen(mut matrix: Vec<f64>, size: usize) -> Eigen {
    if size == 0 {
        return Eigen { values: Vec::new(), vectors: Vec::new() };
    }
    let mut tridiagonal = reduce(&mut matrix, size);
    let mut strips: Vec<Vec<[f64; STRIP]>> = (0..size.div_ceil(STRIP))
        .map(|strip| {
            let mut rows = vec![[0.0; STRIP]; size];
            (strip * STRIP..size.min((strip + 1) * STRIP)).for_each(|i| rows[i][i % STRIP] = 1.0);
            rows
        })
        .collect();
    tridiagonal.diagonalise(&mut |rotations| rotate(&mut strips, rotations));
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|a, b| tridiagonal.diagonal[*a].total_cmp(&tridiagonal.diagonal[*b]));
    let vectors = reflect_back(&matrix, &tridiagonal.reflectors, &strips, &order, size);
    Eigen { values: order.iter().map(|i| tridiagonal.diagonal[*i]).collect(), vectors }
}

/// Three diagonals, and the reflections that led there.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Entry i couples i and i + 1.
    beside: Vec<f64>,
    /// 2/‖v‖² of each reflection; v lies in the rows of the used matrix.
    reflectors: Vec<f64>,
}

/// The inner product, in eight sums that need not wait for each other.
#[inline(always)]
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let ((xs, x_rest), (ys, y_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (x, y) in xs.iter().zip(ys) {
        (0..8).for_each(|i| sums[i] += x[i] * y[i]);
    }
    sums.iter().sum::<f64>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f64>()
}

/// Reflects column after column. Row k keeps, right of its diagonal, the vector of reflection k.
fn reduce(matrix: &mut [f64], size: usize) -> Tridiagonal {
    let (mut diagonal, mut beside) = (vec![0.0; size], vec![0.0; size.saturating_sub(1)]);
    let mut reflectors = vec![0.0; size];
    // The update of the last reflection, A ← A − v·wᵀ − w·vᵀ, waits for the pass of the next one.
    let (mut v, mut w) = (vec![0.0; size], vec![0.0; size]);
    for k in 0..size {
        let row = &mut matrix[k * size..][..size];
        for j in k..size {
            row[j] -= v[k] * w[j] + w[k] * v[j];
        }
        diagonal[k] = row[k];
        if k + 1 == size {
            break;
        }
        let length = dot(&row[k + 1..], &row[k + 1..]).sqrt();
        let mut next = vec![0.0; size];
        let mut factor = 0.0;
        if length > 0.0 {
            let first = row[k + 1];
            let sign = if first >= 0.0 { 1.0 } else { -1.0 };
            next[k + 1..].copy_from_slice(&row[k + 1..]);
            next[k + 1] += sign * length;
            factor = 1.0 / (length * (length + first.abs()));
            beside[k] = -sign * length;
        }
        row[k + 1..].copy_from_slice(&next[k + 1..]);
        reflectors[k] = factor;
        // One pass: the waiting update, and the product with the new vector.
        let mut product = vec![0.0; size];
        let below = k + 1..size;
        wide::pass(
            &mut matrix[below.start * size..],
            &mut product[below.clone()],
            &v[below.clone()],
            &w[below.clone()],
            &next[below],
        );
        product.iter_mut().for_each(|x| *x *= factor);
        let half = 0.5 * factor * dot(&product[k + 1..], &next[k + 1..]);
        product.iter_mut().zip(&next).for_each(|(p, v)| *p -= half * v);
        (v, w) = (next, product);
    }
    Tridiagonal { diagonal, beside, reflectors }
}

/// A ← A − v·wᵀ − w·vᵀ and A·next of the new one, for the last rows and columns of a matrix.
#[inline(always)]
fn pass(rows: &mut [f64], product: &mut [f64], v: &[f64], w: &[f64], next: &[f64]) {
    let size = rows.len() / v.len();
    for (((line, product), left), right) in rows.chunks_exact_mut(size).zip(product).zip(v).zip(w) {
        let line = &mut line[size - v.len()..];
        if *left != 0.0 || *right != 0.0 {
            for ((x, v), w) in line.iter_mut().zip(v).zip(w) {
                *x -= left * w + right * v;
            }
        }
        *product = dot(line, next);
    }
}

/// Turns components `at` and `at + 1`.
#[derive(Clone, Copy)]
struct Rotation {
    at: usize,
    cosine: f64,
    sine: f64,
}

impl Tridiagonal {
    /// Implicit QL with Wilkinson's shift; `apply` hears of the rotations in order.
    fn diagonalise(&mut self, apply: &mut dyn FnMut(&[Rotation])) {
        let size = self.diagonal.len();
        let (d, mut e) = (&mut self.diagonal, self.beside.clone());
        e.push(0.0);
        let mut gathered = Vec::with_capacity(GATHERED + size);
        for low in 0..size {
            for _ in 0..MOST_SWEEPS {
                let is_small = |m: usize| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs());
                let end = (low..size - 1).find(|m| is_small(*m)).unwrap_or(size - 1);
                if end == low {
                    break;
                }
                let lead = (d[low + 1] - d[low]) / (2.0 * e[low]);
                let root = lead.hypot(1.0);
                let mut g = d[end] - d[low] + e[low] / (lead + if lead >= 0.0 { root } else { -root });
                let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
                let mut is_broken = false;
                for i in (low..end).rev() {
                    let (f, b) = (sine * e[i], cosine * e[i]);
                    let radius = f.hypot(g);
                    e[i + 1] = radius;
                    if radius == 0.0 {
                        d[i + 1] -= shift;
                        e[end] = 0.0;
                        is_broken = true;
                        break;
                    }
                    (sine, cosine) = (f / radius, g / radius);
                    g = d[i + 1] - shift;
                    let turned = (d[i] - g) * sine + 2.0 * cosine * b;
                    shift = sine * turned;
                    d[i + 1] = g + shift;
                    g = cosine * turned - b;
                    gathered.push(Rotation { at: i, cosine, sine });
                }
                if !is_broken {
                    d[low] -= shift;
                    e[low] = g;
                    e[end] = 0.0;
                }
                if gathered.len() >= GATHERED {
                    apply(&gathered);
                    gathered.clear();
                }
            }
        }
        apply(&gathered);
    }
}

/// Rotates all eigenvectors, strip by strip.
fn rotate(strips: &mut [Vec<[f64; STRIP]>], rotations: &[Rotation]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = strips.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for some in strips.chunks_mut(share) {
            scope.spawn(move || {
                some.iter_mut().for_each(|strip| wide::rotate_strip(strip, rotations));
            });
        }
    });
}

#[inline(always)]
fn rotate_strip(strip: &mut [[f64; STRIP]], rotations: &[Rotation]) {
    for Rotation { at, cosine, sine } in rotations {
        let [a, b] = &mut strip[*at..at + 2] else { continue };
        for (x, y) in a.iter_mut().zip(b) {
            (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
        }
    }
}

/// x ← x − factor·v·(vᵀx) for the last components of some vectors, one component of all of them a line.
#[inline(always)]
fn reflect(lines: &mut [[f64; STRIP]], v: &[f64], factor: f64) {
    let mut along = [0.0; STRIP];
    for (v, line) in v.iter().zip(&*lines) {
        along.iter_mut().zip(line).for_each(|(sum, x)| *sum += v * x);
    }
    along.iter_mut().for_each(|sum| *sum *= factor);
    for (v, line) in v.iter().zip(lines) {
        line.iter_mut().zip(&along).for_each(|(x, sum)| *x -= v * sum);
    }
}

wide! {
    fn pass(rows: &mut [f64], product: &mut [f64], v: &[f64], w: &[f64], next: &[f64]);
    fn rotate_strip(strip: &mut [[f64; super::STRIP]], rotations: &[super::Rotation]);
    fn reflect(lines: &mut [[f64; super::STRIP]], v: &[f64], factor: f64);
}

/// Undoes the reflections on eigenvectors, a few at a time, and puts them in order.
fn reflect_back(
    matrix: &[f64],
    reflectors: &[f64],
    strips: &[Vec<[f64; STRIP]>],
    order: &[usize],
    size: usize,
) -> Vec<f64> {
    let mut vectors = vec![0.0; size * size];
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = size.div_ceil(STRIP).div_ceil(threads).max(1) * STRIP;
    std::thread::scope(|scope| {
        for (rows, chosen) in vectors.chunks_mut(share * size).zip(order.chunks(share)) {
            scope.spawn(move || {
                for (rows, chosen) in rows.chunks_mut(STRIP * size).zip(chosen.chunks(STRIP)) {
                    // Component by component, one column an eigenvector.
                    let mut panel = vec![[0.0; STRIP]; size];
                    for (i, line) in panel.iter_mut().enumerate() {
                        let strip = &strips[i / STRIP];
                        line.iter_mut().zip(chosen).for_each(|(x, which)| *x = strip[*which][i % STRIP]);
                    }
                    for k in (0..size.saturating_sub(1)).rev() {
                        let v = &matrix[k * size..][k + 1..size];
                        wide::reflect(&mut panel[k + 1..], v, reflectors[k]);
                    }
                    for (column, row) in rows.chunks_exact_mut(size).enumerate() {
                        row.iter_mut().zip(&panel).for_each(|(x, line)| *x = line[column]);
                    }
                }
            });
        }
    });
    vectors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symmetric(size: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut matrix = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let x = (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
                (matrix[i * size + j], matrix[j * size + i]) = (x, x);
            }
        }
        matrix
    }

    fn check(matrix: &[f64], size: usize, what: &str) {
        let found = eigen(matrix.to_vec(), size);
        let scale = matrix.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
        assert!(found.values.is_sorted(), "{what}");
        for i in 0..size {
            let vector = &found.vectors[i * size..][..size];
            for (row, x) in matrix.chunks_exact(size).zip(vector) {
                assert!((dot(row, vector) - found.values[i] * x).abs() < 1e-12 * scale, "{what} {size} {i}");
            }
            for j in 0..=i {
                let product = dot(vector, &found.vectors[j * size..][..size]);
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((product - expected).abs() < 1e-12, "{what} {size} {i} {j}: {product}");
            }
        }
    }

    /// A·v = λ·v and orthonormal vectors, for sizes around those of strips, and matrices that divide by zero easily.
    #[test]
    fn vectors_are_eigenvectors() {
        for size in [1, 2, 3, 31, 32, 33, 70, 130] {
            check(&symmetric(size, size as u64), size, "random");
            check(&vec![0.0; size * size], size, "zero");
            check(&vec![1.0; size * size], size, "of rank one");
            let mut diagonal = vec![0.0; size * size];
            (0..size).for_each(|i| diagonal[i * size + i] = if i % 2 == 0 { 3.0 } else { 1e-9 * i as f64 });
            check(&diagonal, size, "diagonal");
        }
        assert!(eigen(Vec::new(), 0).values.is_empty());
    }
}
