//! The replacement pair dominates every replacement in the plane: docs/replace-one.md, checked by
//! quadrature over angles and radii.

use semidp_accounting::accountant::PldAccountant;
use semidp_accounting::*;

/// ∫(P − γQ)₊ in the plane for P = (1−q)N(0)+qN(x), Q = (1−q)N(0)+qN(x'), unit noise, by the
/// midpoint rule; the integrand is Lipschitz, so the error falls with the square of the step.
fn divergence(q: f64, x: (f64, f64), x_prime: (f64, f64), gamma: f64) -> f64 {
    let step = 0.04;
    let half_width = 9.0;
    let count = (2.0 * half_width / step) as i32;
    let normal = |dx: f64, dy: f64| (-0.5 * (dx * dx + dy * dy)).exp() / std::f64::consts::TAU;
    let mut sum = 0.0;
    for i in 0..count {
        for j in 0..count {
            let (a, b) =
                (-half_width + (f64::from(i) + 0.5) * step, -half_width + (f64::from(j) + 0.5) * step);
            let none = (1.0 - q) * normal(a, b);
            let p = none + q * normal(a - x.0, b - x.1);
            let other = none + q * normal(a - x_prime.0, b - x_prime.1);
            sum += (p - gamma * other).max(0.0) * step * step;
        }
    }
    sum
}

#[test]
fn opposite_vectors_of_full_length_are_the_worst_replacement() {
    for (q, mu) in [(0.1, 1.0), (0.5, 1.5)] {
        let event = Event::PoissonGaussian {
            noise_multiplier: NoiseMultiplier::new(1.0 / mu).unwrap(),
            sample_rate: SampleRate::new(q).unwrap(),
        };
        let mut accountant = PldAccountant::new(Adjacency::ReplaceOne);
        accountant.compose(&event, Steps::ONE).unwrap();
        for epsilon in [0.05, 0.4] {
            let claimed = accountant.delta(Epsilon::new(epsilon).unwrap()).unwrap().get();
            let gamma = epsilon.exp();
            let worst = divergence(q, (mu, 0.0), (-mu, 0.0), gamma);
            assert!((worst / claimed - 1.0).abs() < 2e-3, "{q} {mu} {epsilon}: {worst} {claimed}");
            for angle in [0.0f64, 0.7, 1.6, 2.4, 2.9] {
                for (length, length_prime) in [(1.0, 1.0), (1.0, 0.5), (0.5, 1.0), (0.8, 0.0)] {
                    let x = (length * mu, 0.0);
                    let x_prime = (length_prime * mu * angle.cos(), length_prime * mu * angle.sin());
                    let other = divergence(q, x, x_prime, gamma);
                    assert!(
                        other <= claimed * (1.0 + 2e-3),
                        "{q} {mu} {epsilon} {angle} {length} {length_prime}"
                    );
                }
            }
        }
    }
}
