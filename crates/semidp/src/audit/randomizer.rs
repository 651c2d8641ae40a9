//! An audit of a randomiser of the local model: reports of two opposite vectors of full length.

use super::coins::Coins;
use super::scores::{Claim, from_scores};
use super::{Audit, Options};
use crate::Result;
use semidp_core::{DenseTable, Private, Randomizer, Randomness};

/// Numbers of a table of people.
const TOGETHER: usize = 1 << 18;

/// Audits a randomiser through the kernel.
///
/// The score is the inner product of report and vector. A report of the cap about one vector has its density raised by p/Q for that vector
/// and lowered by (1−p)/(1−Q) for its opposite, so the rim of the cap is the threshold at which ε shows.
pub fn randomizer(randomizer: &Randomizer, options: &Options) -> Result<Audit> {
    options.check(20)?;
    let cap = randomizer.cap();
    let dimension = cap.dimension;
    let chunk = (TOGETHER / dimension).clamp(1, options.trials as usize);
    // A direction that no coordinate is special in.
    let side = randomizer.radius() / (dimension as f64).sqrt();
    let mut worlds = [Vec::new(), Vec::new()];
    for (world, sign) in [1.0, -1.0].into_iter().enumerate() {
        let scores: &mut Vec<f64> = &mut worlds[world];
        let mut index = 0;
        while (scores.len() as u64) < options.trials {
            let people = chunk.min(options.trials as usize - scores.len());
            let rows = DenseTable::new(vec![sign * side; people * dimension], dimension)?;
            let noise = Randomness::Seed(Coins::new(options.seed, world as u64, index).word());
            randomizer.reports(Private::new(rows), noise, options.threads, &mut |report| {
                scores.push(report.iter().sum());
            })?;
            index += 1;
        }
    }
    let guarantee = randomizer.certificate(Randomness::Seed(options.seed))?.guarantee;
    let claim = Claim {
        what: format!("randomizer: {}", cap.mechanism),
        epsilon: guarantee.epsilon.get(),
        delta: guarantee.delta.get(),
        adjacency: guarantee.adjacency,
        is_gaussian: false,
    };
    from_scores(claim, &worlds[0], &worlds[1], options.confidence, options.seed)
}
