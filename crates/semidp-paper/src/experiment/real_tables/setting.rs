//! One setting of the experiment: a data set, a number of public rows and ε, over all seeds.

use super::data::DataSet;
use super::{Run, Trial, grid};
use crate::Cell;
use crate::regression::mean_and_error;

/// A mean and its standard error.
pub type Measured = (f64, f64);

/// All trials of one data set, number of public rows and ε.
pub struct Setting {
    pub set: DataSet,
    pub public_rows: usize,
    pub epsilon: f64,
    pub private_rows: usize,
    pub features: usize,
    pub throw_away: Measured,
    pub dp_sgd: Measured,
    pub autopilot: Measured,
    pub non_private: Measured,
    /// Of the autopilot to throw-away, to DP-SGD, and to the one of them with the better mean.
    pub to_throw_away: Measured,
    pub to_dp_sgd: Measured,
    pub to_better: Measured,
    pub better: &'static str,
    pub tuned: Option<Tuned>,
}

/// DP-SGD with the best setting of the grid for the test rows, on fewer seeds.
pub struct Tuned {
    pub seeds: usize,
    pub mean: f64,
    /// Of the autopilot, on the same seeds.
    pub to_autopilot: Measured,
    pub chosen: (f64, f64, u64),
}

impl Setting {
    /// Of at least two trials.
    pub fn of(set: DataSet, public_rows: usize, place: usize, epsilon: f64, trials: &[&Trial]) -> Self {
        let over = |of: &dyn Fn(&Trial) -> f64| {
            mean_and_error(&trials.iter().map(|trial| of(trial)).collect::<Vec<_>>())
        };
        let throw_away = over(&|trial| trial.throw_away);
        let dp_sgd = over(&|trial| trial.runs[place].dp_sgd);
        let to_throw_away = over(&|trial| trial.runs[place].autopilot - trial.throw_away);
        let to_dp_sgd = over(&|trial| trial.runs[place].autopilot - trial.runs[place].dp_sgd);
        let (better, to_better) = match throw_away.0 >= dp_sgd.0 {
            true => ("throw-away", to_throw_away),
            false => ("dp-sgd", to_dp_sgd),
        };
        let tuned: Vec<&Run> = trials.iter().map(|trial| &trial.runs[place]).collect();
        Self {
            set,
            public_rows,
            epsilon,
            private_rows: trials[0].private_rows,
            features: trials.iter().map(|trial| trial.features).max().unwrap_or(0),
            throw_away,
            dp_sgd,
            autopilot: over(&|trial| trial.runs[place].autopilot),
            non_private: over(&|trial| trial.non_private),
            to_throw_away,
            to_dp_sgd,
            to_better,
            better,
            tuned: Tuned::of(&tuned),
        }
    }

    /// At most one standard error of the paired difference below the better of both.
    pub fn keeps_up(&self) -> bool {
        self.to_better.0 >= -self.to_better.1
    }

    /// More than two above it.
    pub fn is_ahead(&self) -> bool {
        self.to_better.0 > 2.0 * self.to_better.1
    }

    /// More than two below it.
    pub fn is_behind(&self) -> bool {
        self.to_better.0 < -2.0 * self.to_better.1
    }

    /// Its cells in the table.
    pub fn row(&self) -> Vec<Cell> {
        let number = |value: f64| Cell::Number(value);
        let pair = |measured: Measured| [number(measured.0), number(measured.1)];
        let mut cells: Vec<Cell> = vec![
            self.set.name().into(),
            self.set.metric().into(),
            number(self.public_rows as f64),
            number(self.private_rows as f64),
            number(self.features as f64),
            number(self.epsilon),
        ];
        cells.extend(pair(self.throw_away));
        cells.extend(pair(self.dp_sgd));
        cells.extend(pair(self.autopilot));
        cells.push(number(self.non_private.0));
        cells.extend(pair(self.to_throw_away));
        cells.extend(pair(self.to_dp_sgd));
        cells.push(self.better.into());
        cells.extend(pair(self.to_better));
        let tuned = self.tuned.as_ref();
        cells.push(tuned.map(|tuned| tuned.mean).into());
        cells.push(tuned.map(|tuned| tuned.seeds as f64).into());
        cells.push(tuned.map(|tuned| tuned.to_autopilot.0).into());
        cells.push(tuned.map(|tuned| tuned.to_autopilot.1).into());
        let chosen = tuned.map(|tuned| {
            let (clip_norm, rate, steps) = tuned.chosen;
            format!("{clip_norm} x clip norm, {rate} x rate, {steps} steps")
        });
        cells.push(chosen.map_or(Cell::Empty, Cell::Text));
        cells
    }
}

/// Those of [`Setting::row`].
pub const HEADINGS: [&str; 25] = [
    "data_set",
    "metric",
    "public_rows",
    "private_rows",
    "features",
    "epsilon",
    "throw_away",
    "throw_away_standard_error",
    "dp_sgd",
    "dp_sgd_standard_error",
    "autopilot",
    "autopilot_standard_error",
    "non_private",
    "autopilot_minus_throw_away",
    "paired_standard_error",
    "autopilot_minus_dp_sgd",
    "paired_standard_error_dp_sgd",
    "better_of_both",
    "autopilot_minus_better",
    "paired_standard_error_better",
    "dp_sgd_tuned_on_test_rows_leaking",
    "tuned_seeds",
    "autopilot_minus_tuned",
    "paired_standard_error_tuned",
    "tuned_setting",
];

impl Tuned {
    /// The setting with the best mean over those runs that have a grid; at least two must.
    fn of(runs: &[&Run]) -> Option<Self> {
        let runs: Vec<&Run> = runs.iter().copied().filter(|run| !run.grid.is_empty()).collect();
        if runs.len() < 2 {
            return None;
        }
        let mean = |place: usize| runs.iter().map(|run| run.grid[place]).sum::<f64>() / runs.len() as f64;
        let best = (0..runs[0].grid.len()).max_by(|a, b| mean(*a).total_cmp(&mean(*b)))?;
        let gaps: Vec<f64> = runs.iter().map(|run| run.autopilot - run.grid[best]).collect();
        Some(Self {
            seeds: runs.len(),
            mean: mean(best),
            to_autopilot: mean_and_error(&gaps),
            chosen: *grid().get(best)?,
        })
    }
}
