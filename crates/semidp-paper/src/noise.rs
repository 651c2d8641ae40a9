//! Noise multipliers of the paper's linear regression: how they were computed, and what they cost.

use crate::Result;
use crate::published::{BATCH, DELTA, NOISE, ROWS, SHARES, STEPS};
use semidp_accounting::accountant::PldAccountant;
use semidp_accounting::{
    Accountant, Adjacency, CountedEvent, Delta, Epsilon, Event, NoiseMultiplier, SampleRate, Steps,
    calibrate_noise, epsilon,
};

/// A run of DP-SGD as far as its cost goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Rows that are sampled from.
    pub rows: usize,
    /// K: rows in a batch on average.
    pub batch: usize,
    /// T.
    pub steps: u64,
}

/// What Opacus adds to the ε of its accountant, for the errors of its grid.
const ALLOWANCE: f64 = 0.01;
/// The part of δ that it keeps for other errors.
const KEPT: f64 = 1e-3;
/// Its search ends this close below the budget.
const TOLERANCE: f64 = 0.01;

impl Run {
    /// The run of the paper with so large a share of public rows.
    pub fn of_paper(share: f64) -> Self {
        let public = (share * ROWS as f64).round() as usize;
        Self { rows: ROWS - public, batch: BATCH, steps: STEPS }
    }

    /// K over the number of rows.
    pub fn rate(&self) -> Result<SampleRate> {
        Ok(SampleRate::new((self.batch as f64 / self.rows as f64).min(1.0))?)
    }

    /// One over a whole number of batches: what the data loader of Opacus makes of a batch size.
    pub fn loader_rate(&self) -> Result<SampleRate> {
        Ok(SampleRate::new(1.0 / self.rows.div_ceil(self.batch.max(1)).max(1) as f64)?)
    }

    fn events(
        &self,
        noise_multiplier: NoiseMultiplier,
        sample_rate: SampleRate,
    ) -> Result<Vec<CountedEvent>> {
        let event = Event::PoissonGaussian { noise_multiplier, sample_rate };
        Ok(vec![CountedEvent::new(event, Steps::new(self.steps)?)])
    }

    /// The least noise multiplier for a budget.
    pub fn needed(&self, target: f64, delta: f64, adjacency: Adjacency) -> Result<f64> {
        let (rate, steps) = (self.rate()?, Steps::new(self.steps)?);
        let events = |noise_multiplier| {
            vec![CountedEvent::new(Event::PoissonGaussian { noise_multiplier, sample_rate: rate }, steps)]
        };
        Ok(calibrate_noise(Epsilon::new(target)?, Delta::new(delta)?, adjacency, events)?.value.get())
    }

    /// What a noise multiplier costs.
    pub fn cost(&self, noise: f64, delta: f64, adjacency: Adjacency) -> Result<f64> {
        let events = self.events(NoiseMultiplier::new(noise)?, self.rate()?)?;
        Ok(epsilon(&events, adjacency, Delta::new(delta)?)?.value.get())
    }

    /// What `get_noise_multiplier` of Opacus gives for a budget, with its default accountant and data loader.
    ///
    /// That accountant answers ε(0.999·δ) + 0.01 for the removal of a row. The search halves an interval that begins at
    /// 0 and 20 until the answer is at most 0.01 below the budget. Whether ε(δ) lies below a number is asked of δ(ε).
    pub fn as_opacus(&self, target: f64, delta: f64) -> Result<f64> {
        let rate = self.loader_rate()?;
        let is_below = |noise: f64, epsilon: f64| -> Result<bool> {
            let mut accountant = PldAccountant::new(Adjacency::AddRemove);
            for event in self.events(NoiseMultiplier::new(noise)?, rate)? {
                accountant.compose(&event.event, event.count)?;
            }
            let found = accountant.directional_delta(Epsilon::new((epsilon - ALLOWANCE).max(0.0))?, false)?;
            Ok(found.get() < delta * (1.0 - KEPT))
        };
        let (mut low, mut high) = (0.0, 20.0);
        while !is_below(high, target)? {
            high *= 2.0;
        }
        while is_below(high, target - TOLERANCE)? {
            let middle = f64::midpoint(low, high);
            if is_below(middle, target)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }
}

/// A printed noise multiplier, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseCost {
    /// The public share.
    pub share: f64,
    /// Rows that the noise protects.
    pub private_rows: usize,
    /// The part of them in a batch.
    pub sample_rate: f64,
    /// ε that the paper says.
    pub epsilon: f64,
    /// The printed multiplier.
    pub printed: f64,
    /// What it costs if neighbours differ by a row more or less.
    pub cost_add_remove: f64,
    /// What it costs under the paper's own definition, by which a row is replaced.
    pub cost_replace_one: f64,
    /// The least multiplier for add/remove.
    pub needed_add_remove: f64,
    /// The least multiplier for replace-one.
    pub needed_replace_one: f64,
}

/// Every setting that the paper printed noise for at this ε, in the order of shares.
pub fn published_settings(epsilon: f64) -> Vec<(f64, f64)> {
    let tables = NOISE.iter().filter(|table| table.epsilon == epsilon);
    tables.flat_map(|table| SHARES.into_iter().zip(table.noise)).collect()
}

/// Answers for one of them.
pub fn noise_cost(share: f64, epsilon: f64, printed: f64) -> Result<NoiseCost> {
    let run = Run::of_paper(share);
    Ok(NoiseCost {
        share,
        private_rows: run.rows,
        sample_rate: run.rate()?.get(),
        epsilon,
        printed,
        cost_add_remove: run.cost(printed, DELTA, Adjacency::AddRemove)?,
        cost_replace_one: run.cost(printed, DELTA, Adjacency::ReplaceOne)?,
        needed_add_remove: run.needed(epsilon, DELTA, Adjacency::AddRemove)?,
        needed_replace_one: run.needed(epsilon, DELTA, Adjacency::ReplaceOne)?,
    })
}

/// Answers for all of them at this ε, on several threads.
pub fn noise_costs(epsilon: f64, threads: usize) -> Result<Vec<NoiseCost>> {
    let settings = published_settings(epsilon);
    crate::parallel::in_order(settings.len() as u64, threads, &|_| (), |number| {
        let (share, printed) = settings[number as usize];
        noise_cost(share, epsilon, printed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 18 printed multipliers, to the printed digits.
    #[test]
    fn the_printed_noise_is_that_of_opacus() {
        let settings: Vec<(f64, f64, f64)> = [2.0, 4.0]
            .into_iter()
            .flat_map(|epsilon| published_settings(epsilon).into_iter().map(move |(s, z)| (s, epsilon, z)))
            .collect();
        assert_eq!(settings.len(), 18);
        let found = crate::parallel::in_order(18, 2, &|_| (), |number| {
            let (share, epsilon, _) = settings[number as usize];
            Run::of_paper(share).as_opacus(epsilon, DELTA)
        });
        for ((share, epsilon, printed), found) in settings.iter().zip(found.unwrap()) {
            assert!((found - printed).abs() <= 5.0001e-4, "{share} {epsilon}: {found}, not {printed}");
        }
    }

    #[test]
    fn loaders_round_the_rate_down() {
        let run = Run::of_paper(0.01);
        assert_eq!(run.rows, 29_700);
        assert_eq!(run.loader_rate().unwrap().get(), 1.0 / 60.0);
        assert_eq!(run.rate().unwrap().get(), 500.0 / 29_700.0);
    }
}
