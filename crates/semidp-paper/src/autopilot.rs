//! Runs of registered algorithms on published rows, as anybody else would run them.

use crate::Result;
use semidp::train::{Conduct, PublicRows, Recipe, Trained, TrainingData, algorithm_named};
use semidp_core::{BlockSource, Private, Randomness};

/// The algorithm that the library would choose.
pub const NAME: &str = "auto";

/// Trains with the algorithm of this name. Noise comes from a seed, so that anybody finds the same numbers; the rows are
/// published, and have no privacy to lose.
pub fn trained(
    name: &str,
    recipe: &Recipe<'_>,
    private: Box<dyn BlockSource>,
    public: Option<PublicRows>,
    seed: u64,
    threads: usize,
) -> Result<Trained> {
    let data = TrainingData { private: Private::new(private), public };
    let conduct = Conduct { threads: Some(threads.max(1)), ..Conduct::new(Randomness::Seed(seed)) };
    Ok(algorithm_named(name)?.train(recipe, data, conduct, &mut |_| ())?)
}
