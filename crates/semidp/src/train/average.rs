//! Which iterates become the model.

/// What becomes the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Average {
    /// The last iterate.
    Last,
    /// The mean of all iterates that a gradient was taken at.
    Mean,
    /// The mean of the last part of the iterates, such as a half.
    Tail(f64),
    /// Iterate t with weight t: the one for [`super::StepSize::StronglyConvex`].
    Weighted,
}

impl Average {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Mean => "mean",
            Self::Tail(_) => "tail",
            Self::Weighted => "weighted",
        }
    }

    /// Steps whose gradient noise averages out in the result, of so many; at least one.
    pub(super) fn averaged_steps(self, steps: f64) -> f64 {
        let averaged = match self {
            Self::Mean => steps,
            Self::Tail(share) => share * steps,
            Self::Weighted => 0.75 * steps,
            // An iterate forgets in a fraction of the run, or it would not have converged.
            Self::Last => 0.1 * steps,
        };
        averaged.max(1.0)
    }
}

/// Iterates as they are averaged.
pub(super) struct Averaged {
    rule: Average,
    steps: u64,
    sum: Vec<f64>,
    weight: f64,
}

impl Averaged {
    pub(super) fn new(rule: Average, steps: u64, dimension: usize) -> Self {
        Self { rule, steps, sum: vec![0.0; dimension], weight: 0.0 }
    }

    /// Takes the iterate that step `step` (from 1) starts at.
    pub(super) fn add(&mut self, step: u64, w: &[f64]) {
        let weight = match self.rule {
            Average::Last => return,
            Average::Mean => 1.0,
            Average::Weighted => step as f64,
            Average::Tail(share) if step as f64 > (1.0 - share) * self.steps as f64 => 1.0,
            Average::Tail(_) => return,
        };
        self.weight += weight;
        self.sum.iter_mut().zip(w).for_each(|(sum, w)| *sum += weight * w);
    }

    /// All it remembers, to go on from later.
    pub(super) fn state(&self) -> Vec<Vec<f64>> {
        vec![self.sum.clone(), vec![self.weight]]
    }

    /// Goes on from what [`Averaged::state`] told.
    pub(super) fn restore(&mut self, state: &[Vec<f64>]) {
        self.sum.copy_from_slice(&state[0]);
        self.weight = state[1][0];
    }

    /// The average, or the last iterate.
    pub(super) fn weights(self, last: Vec<f64>) -> Vec<f64> {
        if self.weight == 0.0 { last } else { self.sum.into_iter().map(|sum| sum / self.weight).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No run is so short that less than one step counts.
    #[test]
    fn at_least_one_step_is_averaged() {
        for rule in [Average::Last, Average::Mean, Average::Tail(0.5), Average::Weighted] {
            assert_eq!(rule.averaged_steps(1.0), 1.0);
            assert!(rule.averaged_steps(100.0) >= 10.0);
        }
    }
}
