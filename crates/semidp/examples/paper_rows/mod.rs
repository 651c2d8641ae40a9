//! The paper's linear regression: x ~ N(0, I) in 2000 dimensions and y = ⟨x, w*⟩ + N(0, 1), w* ~ N(0, I), 30,000 rows.
//! The test loss E(⟨w, x⟩ − y)² is then exactly 1 + ‖w − w*‖².

use semidp::train::{Model, PublicRows};
use semidp_core::{DenseTable, Public};
use std::sync::Arc;

/// d.
pub const FEATURES: usize = 2000;
/// n.
pub const ROWS: usize = 30_000;
/// K.
pub const BATCH: f64 = 500.0;

/// Normal numbers for synthetic data, by Box and Muller; never for noise.
struct Normals {
    state: u64,
}

impl Normals {
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pair(&mut self) -> [f64; 2] {
        let (length, angle) = ((1.0 - self.uniform()).ln(), std::f64::consts::TAU * self.uniform());
        let length = (-2.0 * length).sqrt();
        [length * angle.cos(), length * angle.sin()]
    }

    fn fill(&mut self, count: usize) -> Vec<f64> {
        let mut values: Vec<f64> = (0..count.div_ceil(2)).flat_map(|_| self.pair()).collect();
        values.truncate(count);
        values
    }
}

/// One draw of everything.
pub struct Draw {
    truth: Vec<f64>,
    /// The first rows.
    pub public: PublicRows,
    /// The others.
    pub private: Arc<DenseTable<f32>>,
}

impl Draw {
    /// The draw with this number, so many of its rows public.
    pub fn new(number: u64, public_rows: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let mut normals = Normals { state: 1000 * number };
        let truth = normals.fill(FEATURES);
        let mut rows = |count: usize| {
            let mut values = Vec::with_capacity(count * (FEATURES + 1));
            for _ in 0..count {
                let x = normals.fill(FEATURES);
                let score: f64 = x.iter().zip(&truth).map(|(x, w)| x * w).sum();
                values.extend(x.iter().map(|x| *x as f32));
                values.push((score + normals.pair()[0]) as f32);
            }
            DenseTable::new(values, FEATURES + 1)
        };
        let public = PublicRows::load(&Public(rows(public_rows)?))?;
        let private = Arc::new(rows(ROWS - public_rows)?);
        Ok(Self { truth, public, private })
    }

    /// The test loss of a model, exactly.
    pub fn test_loss(&self, model: &Model) -> f64 {
        1.0 + model.weights.iter().zip(&self.truth).map(|(w, t)| (w - t).powi(2)).sum::<f64>()
    }
}

/// The mean, and its standard error.
pub fn summary(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, (spread / count).sqrt())
}
