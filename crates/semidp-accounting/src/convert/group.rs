//! Groups, parallel composition and the passage between adjacencies.

use crate::{Delta, Epsilon, Mu, Result, Rho};

/// An (ε, δ) pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Approximate {
    /// ε.
    pub epsilon: Epsilon,
    /// δ.
    pub delta: Delta,
}

/// A group of `k` units under ε-DP: kε.
pub fn group_pure(epsilon: Epsilon, k: u32) -> Result<Epsilon> {
    Epsilon::new(f64::from(k) * epsilon.get())
}

/// A group of `k` units under ρ-zCDP: k²ρ.
pub fn group_zcdp(rho: Rho, k: u32) -> Result<Rho> {
    Rho::new(f64::from(k).powi(2) * rho.get())
}

/// A group of `k` units under μ-GDP: kμ.
pub fn group_gaussian(mu: Mu, k: u32) -> Result<Mu> {
    Mu::new(f64::from(k) * mu.get())
}

/// A group of `k` units under (ε, δ)-DP: (kε, δ(e^{kε}−1)/(e^ε−1)).
pub fn group_approximate(one: Approximate, k: u32) -> Result<Approximate> {
    let (epsilon, k) = (one.epsilon.get(), f64::from(k));
    let factor = if epsilon == 0.0 { k } else { (k * epsilon).exp_m1() / epsilon.exp_m1() };
    Ok(Approximate {
        epsilon: Epsilon::new(k * epsilon)?,
        delta: Delta::saturating(one.delta.get() * factor),
    })
}

/// (ε, δ) under add/remove implies (2ε, (1+e^ε)δ) under replace-one: a replacement is a removal
/// and an addition.
pub fn add_remove_to_replace_one(one: Approximate) -> Result<Approximate> {
    group_approximate(one, 2)
}

/// Composition in Gaussian DP: √Σμ².
pub fn compose_gaussian(mus: impl IntoIterator<Item = Mu>) -> Result<Mu> {
    Mu::new(mus.into_iter().fold(0.0f64, |norm, mu| norm.hypot(mu.get())))
}

/// Parallel composition under replace-one over blocks fixed by index: each unit lies in one
/// block, so the largest block guarantee is the guarantee of all.
pub fn parallel_by_index(blocks: impl IntoIterator<Item = Epsilon>) -> Epsilon {
    blocks
        .into_iter()
        .max_by(|a, b| a.get().total_cmp(&b.get()))
        .unwrap_or_else(|| Epsilon::new(0.0).expect("zero is valid"))
}

/// Parallel composition under replace-one over blocks chosen by VALUE: a replacement can remove
/// a unit from one block and add one to another, so each block mechanism must be add/remove-DP
/// (`add_remove`), and the cost is the larger of one block's replace-one cost (`replace_one`, at
/// most twice its add/remove cost) and the two largest add/remove costs together.
pub fn parallel_by_value(add_remove: &[Epsilon], replace_one: &[Epsilon]) -> Result<Epsilon> {
    let mut sorted: Vec<f64> = add_remove.iter().map(|e| e.get()).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let pair: f64 = sorted.iter().take(2).sum();
    Epsilon::new(pair.max(parallel_by_index(replace_one.iter().copied()).get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).unwrap()
    }

    #[test]
    fn groups_and_blocks() {
        let one = Approximate { epsilon: epsilon(1.0), delta: Delta::new(1e-6).unwrap() };
        let two = add_remove_to_replace_one(one).unwrap();
        assert_eq!(two.epsilon.get(), 2.0);
        assert!((two.delta.get() - (1.0 + 1f64.exp()) * 1e-6).abs() < 1e-20);
        assert_eq!(group_zcdp(Rho::new(0.5).unwrap(), 3).unwrap().get(), 4.5);
        assert_eq!(group_gaussian(Mu::new(0.5).unwrap(), 3).unwrap().get(), 1.5);
        assert_eq!(group_pure(epsilon(0.5), 3).unwrap().get(), 1.5);
        let mu = compose_gaussian([3.0, 4.0].map(|m| Mu::new(m).unwrap())).unwrap();
        assert_eq!(mu.get(), 5.0);
        let blocks = [0.5, 2.0, 1.5].map(epsilon);
        assert_eq!(parallel_by_index(blocks).get(), 2.0);
        let replace = [1.0, 4.0, 3.0].map(epsilon);
        assert_eq!(parallel_by_value(&blocks, &replace).unwrap().get(), 4.0);
        let tight = [0.6, 2.1, 1.6].map(epsilon);
        assert_eq!(parallel_by_value(&blocks, &tight).unwrap().get(), 3.5);
    }
}
