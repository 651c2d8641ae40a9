//! The kernel's Gaussian noise against an exact sampler by others.

#[path = "../../crates/semidp-core/tests/noise_law/draws.rs"]
mod draws;

use draws::*;

/// Two samples, two samplers that share nothing: ours, and the exact discrete Gaussian of OpenDP. At
/// this scale the discrete law and the rounded one are the same to 1e-12.
#[test]
fn agrees_with_an_independent_exact_sampler() {
    const OTHERS: usize = 20_000;
    let ours = gaussian(2.0, 1.5, (1000, 220), 8);
    let other = || {
        let k = opendp::traits::samplers::sample_discrete_gaussian((ours.scale as u64).into()).unwrap();
        i64::try_from(k).unwrap()
    };
    let theirs = counts((0..OTHERS).map(|_| other()), ours.scale);
    let a = counts(ours.noise.iter().copied(), ours.scale);
    let ratio = (ours.noise.len() as f64 / OTHERS as f64).sqrt();
    let terms = a.iter().zip(&theirs).map(|(a, b)| (a / ratio - b * ratio).powi(2) / (a + b));
    let statistic: f64 = terms.sum();
    assert!(chi_square_tail(statistic) >= LEAST_TAIL, "{statistic}");
}
