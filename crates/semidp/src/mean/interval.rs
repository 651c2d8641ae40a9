//! Confidence intervals: normal sampling error plus noise of a known law.
//!
//! One coordinate of Gaussian noise is normal; of Laplace and K-norm noise of scale s it is normal with a
//! random variance W ~ Gamma(a, 2s²), a = 1 for Laplace and (d + 1)/2 for K-norm noise in d coordinates
//! (mixing N(0, wI) over that law gives exactly the density ∝ exp(−‖z‖₂/s)). So for all three
//!
//! $$ P(|e| > x) = \mathbb E_W\,2\Phi\big(-x/\sqrt{v + W}\big), $$
//!
//! one integral, with v the variance of everything that is normal anyway.

use super::Law;

/// Half the width of the interval that holds a coordinate with this confidence: sampling error of variance
/// `sampling`, plus noise of this law and scale in `dimension` coordinates. An interval for Laplace or K-norm
/// noise is exact up to its numerical integral, about 1e-6.
pub fn half_width(confidence: f64, sampling: f64, noise: Option<(Law, f64, usize)>) -> f64 {
    let miss = 1.0 - confidence;
    let normal = normal_quantile(1.0 - miss / 2.0);
    let (shape, scale) = match noise {
        None => return normal * sampling.sqrt(),
        Some((Law::Gaussian, std, _)) => return normal * (sampling + std * std).sqrt(),
        Some((Law::Laplace, scale, _)) => (1.0, scale),
        Some((Law::KNorm, scale, dimension)) => ((dimension as f64 + 1.0) / 2.0, scale),
    };
    let variances = gamma_nodes(shape, 2.0 * scale * scale);
    let tail = |x: f64| -> f64 {
        let terms = variances.iter().map(|(weight, w)| weight * 2.0 * normal_tail(x / (sampling + w).sqrt()));
        terms.sum()
    };
    let mean = sampling + shape * 2.0 * scale * scale;
    if mean == 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, mean.sqrt());
    while tail(high) > miss {
        high *= 2.0;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if tail(middle) > miss {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Points and weights for an expectation over Gamma(shape, scale): the trapezoidal rule for the logarithm,
/// whose density is smooth and falls off at both ends.
fn gamma_nodes(shape: f64, scale: f64) -> Vec<(f64, f64)> {
    let (centre, spread) = (shape.ln(), 1.0 / shape.sqrt());
    // The left tail of the logarithm falls like e^{shape·u}, the right one faster.
    let (left, right) = (12.0 * spread + 36.0 / shape, 12.0 * spread.min(2.0));
    let points = 400;
    let step = (left + right) / f64::from(points);
    // The density of the logarithm: exp(shape·(u − ln shape) − e^u + shape), up to a constant.
    let nodes: Vec<(f64, f64)> = (0..=points)
        .map(|i| {
            let u = centre - left + f64::from(i) * step;
            ((shape * (u - centre) - u.exp() + shape).exp(), scale * u.exp())
        })
        .collect();
    let total: f64 = nodes.iter().map(|(density, _)| density).sum();
    nodes.into_iter().map(|(density, w)| (density / total, w)).collect()
}

/// 1 − Φ(x).
fn normal_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x / std::f64::consts::SQRT_2)
}

/// Φ^{-1}(p) for p from ½ up to 1 − 1e-16.
pub fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if normal_tail(middle) > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The quantile of Student's law, for a variance that was estimated with this many degrees of freedom.
///
/// With t = √ν·tan θ, the density of θ is ∝ cos^{ν−1} θ.
pub fn student_quantile(p: f64, freedom: u64) -> f64 {
    if freedom > 500 {
        // The next term of the expansion in 1/ν is about 1e-8 there.
        let (z, nu) = (normal_quantile(p), freedom as f64);
        let second = 5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z;
        return z + (z.powi(3) + z) / (4.0 * nu) + second / (96.0 * nu * nu);
    }
    let power = freedom as f64 - 1.0;
    let points = 20_000;
    let step = std::f64::consts::FRAC_PI_2 / f64::from(points);
    let density = |i: i32| ((i as f64 + 0.5) * step).cos().powf(power);
    let total: f64 = (0..points).map(density).sum();
    // P(0 < T < t) = p − ½.
    let wanted = (p - 0.5) * 2.0 * total;
    let (mut sum, mut i) = (0.0, 0);
    while i < points && sum + density(i) < wanted {
        sum += density(i);
        i += 1;
    }
    let within = if i < points { (wanted - sum) / density(i) } else { 0.0 };
    (freedom as f64).sqrt() * ((f64::from(i) + within) * step).tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_tabled_ones() {
        assert!((normal_quantile(0.975) - 1.959_963_985).abs() < 1e-8);
        for (freedom, expected) in
            [(1, 12.706_204_7), (2, 4.302_652_7), (5, 2.570_581_8), (30, 2.042_272_5), (1000, 1.962_339_1)]
        {
            let found = student_quantile(0.975, freedom);
            assert!((found / expected - 1.0).abs() < 1e-5, "{freedom}: {found}");
        }
        // The two formulas meet; a degree of freedom more makes a difference of 1e-5 there.
        let (below, above) = (student_quantile(0.975, 500), student_quantile(0.975, 501));
        assert!(below > above && below - above < 2e-5);
    }

    /// Laplace noise alone: P(|Z| > x) = e^{−x/s}. K-norm noise in one coordinate is Laplace noise.
    #[test]
    fn noise_alone_has_its_own_quantile() {
        let expected = 0.3 * 20f64.ln();
        for law in [(Law::Laplace, 0.3, 7), (Law::KNorm, 0.3, 1)] {
            let found = half_width(0.95, 0.0, Some(law));
            assert!((found / expected - 1.0).abs() < 1e-5, "{law:?} {found} {expected}");
        }
        assert_eq!(half_width(0.95, 0.0, None), 0.0);
    }

    /// In three coordinates a coordinate of K-norm noise has the density (|z| + s)e^{−|z|/s}/(4s²)
    /// (integrate over the other two): P(|Z| > x) = e^{−x/s}(1 + x/(2s)).
    #[test]
    fn k_norm_noise_in_three_coordinates() {
        let x = half_width(0.95, 0.0, Some((Law::KNorm, 2.0, 3)));
        let tail = (-x / 2.0).exp() * (1.0 + x / 4.0);
        assert!((tail / 0.05 - 1.0).abs() < 1e-5, "{tail}");
    }

    /// In many coordinates K-norm noise is nearly normal with variance (d + 1)s² a coordinate.
    #[test]
    fn k_norm_noise_in_many_coordinates_is_nearly_normal() {
        let normal = normal_quantile(0.975) * (0.5f64 + 10_001.0 * 0.01f64.powi(2)).sqrt();
        let found = half_width(0.95, 0.5, Some((Law::KNorm, 0.01, 10_000)));
        assert!((found / normal - 1.0).abs() < 1e-3, "{found} {normal}");
    }

    #[test]
    fn noise_that_is_small_beside_the_sampling_error_hardly_shows() {
        let without = half_width(0.95, 4.0, None);
        let with = half_width(0.95, 4.0, Some((Law::Laplace, 1e-3, 5)));
        assert!(with > without && with / without < 1.0 + 1e-6);
    }
}
