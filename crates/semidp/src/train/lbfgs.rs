//! Limited-memory BFGS with a backtracking line search, for smooth convex functions of public data.

/// Pairs of steps and gradient changes that are remembered.
const MEMORY: usize = 10;
const MOST_STEPS: usize = 500;

/// Minimises a function given with its gradient. Ends when the gradient is `accuracy` times its first length, or when
/// no step makes progress any more.
pub fn minimise(start: Vec<f64>, accuracy: f64, function: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut point = start;
    let (mut value, mut gradient) = function(&point);
    let goal = accuracy * dot(&gradient, &gradient).sqrt();
    let mut memory: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    for _ in 0..MOST_STEPS {
        let length = dot(&gradient, &gradient).sqrt();
        if length <= goal || length == 0.0 || !length.is_finite() {
            break;
        }
        let direction = direction(&gradient, &memory, dot);
        let slope = dot(&direction, &gradient);
        // Before curvature is known, no longer than one.
        let mut step = if memory.is_empty() { (1.0 / length).min(1.0) } else { 1.0 };
        let moved = loop {
            let next: Vec<f64> = point.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            let (next_value, next_gradient) = function(&next);
            // Close to the minimum values differ by rounding alone; the gradient still tells.
            let is_within_rounding = -slope <= 1e-10 * value.abs();
            let is_shorter = || dot(&next_gradient, &next_gradient) < length * length;
            if next_value <= value + 1e-4 * step * slope || (is_within_rounding && is_shorter()) {
                break Some((next, next_value, next_gradient));
            }
            step *= 0.5;
            if step < 1e-12 {
                break None;
            }
        };
        let Some((next, next_value, next_gradient)) = moved else { break };
        let s: Vec<f64> = next.iter().zip(&point).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&s, &y);
        if curvature > 1e-12 * dot(&s, &s) {
            if memory.len() == MEMORY {
                memory.remove(0);
            }
            memory.push((s, y, curvature));
        }
        (point, value, gradient) = (next, next_value, next_gradient);
    }
    point
}

/// −H·gradient by the two loops of Nocedal (1980).
fn direction(
    gradient: &[f64],
    memory: &[(Vec<f64>, Vec<f64>, f64)],
    dot: impl Fn(&[f64], &[f64]) -> f64,
) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut weights = vec![0.0; memory.len()];
    for (weight, (s, y, curvature)) in weights.iter_mut().zip(memory).rev() {
        *weight = dot(s, &q) / curvature;
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= *weight * y);
    }
    if let Some((_, y, curvature)) = memory.last() {
        let scale = curvature / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for (weight, (s, y, curvature)) in weights.iter().zip(memory) {
        let correction = weight - dot(y, &q) / curvature;
        q.iter_mut().zip(s).for_each(|(q, s)| *q += correction * s);
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ill-conditioned quadratic with a known minimiser.
    #[test]
    fn finds_the_minimum() {
        let minimiser = [1.0, -2.0, 0.5, 3.0];
        let function = |w: &[f64]| {
            let gaps = w.iter().zip(minimiser).enumerate().map(|(i, (w, m))| (10f64.powi(i as i32), w - m));
            let value = gaps.clone().map(|(scale, gap)| 0.5 * scale * gap * gap + 0.01 * gap.powi(4)).sum();
            (value, gaps.map(|(scale, gap)| scale * gap + 0.04 * gap.powi(3)).collect())
        };
        let found = minimise(vec![0.0; 4], 1e-10, function);
        assert!(found.iter().zip(minimiser).all(|(a, b)| (a - b).abs() < 1e-7), "{found:?}");
    }
}
