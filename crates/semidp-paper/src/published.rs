//! What the paper printed about its linear regression (`sec: tables`): six tables of test losses and two of noise.

/// Public shares of the tables over shares.
pub const SHARES: [f64; 9] = [0.01, 0.03, 0.04, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95];
/// Budgets of the tables over ε.
pub const EPSILONS: [f64; 6] = [0.1, 0.5, 1.0, 2.0, 4.0, 8.0];

/// n, public and private together.
pub const ROWS: usize = 30_000;
/// K: private rows in a batch.
pub const BATCH: usize = 500;
/// T.
pub const STEPS: u64 = 5_000;
/// δ.
pub const DELTA: f64 = 1e-5;

/// Noise multipliers, as printed.
pub struct NoiseTable {
    /// Their budget.
    pub epsilon: f64,
    /// One for every share of [`SHARES`].
    pub noise: [f64; 9],
}

/// `table: std_dev_eps_2` and `table: std_dev_eps_4`.
pub const NOISE: [NoiseTable; 2] = [
    NoiseTable { epsilon: 2.0, noise: [2.490, 2.529, 2.568, 2.744, 3.252, 4.805, 9.531, 23.672, 47.344] },
    NoiseTable { epsilon: 4.0, noise: [1.470, 1.489, 1.509, 1.597, 1.860, 2.671, 5.176, 12.812, 25.586] },
];

/// Where the paper's training starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// At the minimiser of the public loss.
    Warm,
    /// At zero.
    Cold,
}

/// Test losses of one setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Losses {
    pub algorithm_1: f64,
    pub pda_md: f64,
    pub dp_sgd: f64,
    pub throw_away: f64,
}

/// A table of test losses, whose settings differ in one number.
pub struct LossTable {
    /// Its label in the paper's source.
    pub label: &'static str,
    /// Where training starts.
    pub start: Start,
    /// What is the same in all rows: ε or the public share.
    pub fixed: Fixed,
    /// Algorithm 1, PDA-MD, DP-SGD, throw-away; a row for every entry of [`SHARES`] or [`EPSILONS`].
    pub figures: &'static [[f64; 4]],
}

/// What does not change in a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fixed {
    /// ε; rows differ in the public share.
    Epsilon(f64),
    /// The public share; rows differ in ε.
    Share(f64),
}

impl LossTable {
    /// Share, ε and losses, a row an entry.
    pub fn rows(&self) -> Vec<(f64, f64, Losses)> {
        let settings: Vec<(f64, f64)> = match self.fixed {
            Fixed::Epsilon(epsilon) => SHARES.iter().map(|share| (*share, epsilon)).collect(),
            Fixed::Share(share) => EPSILONS.iter().map(|epsilon| (share, *epsilon)).collect(),
        };
        let losses = self.figures.iter().map(|[algorithm_1, pda_md, dp_sgd, throw_away]| Losses {
            algorithm_1: *algorithm_1,
            pda_md: *pda_md,
            dp_sgd: *dp_sgd,
            throw_away: *throw_away,
        });
        settings.into_iter().zip(losses).map(|((share, epsilon), losses)| (share, epsilon, losses)).collect()
    }
}

/// The six tables.
pub const LOSSES: [LossTable; 6] = [
    LossTable {
        label: "tab:acc_vs_ratio_eps_2_detailed",
        start: Start::Warm,
        fixed: Fixed::Epsilon(2.0),
        figures: &[
            [2.3526, 1689.5905, 2.7935, 1689.5905],
            [1.9719, 1084.2257, 2.1457, 1084.2256],
            [1.7626, 776.1302, 2.1417, 776.1301],
            [1.1648, 1.1880, 1.1695, 3.1133],
            [1.1260, 1.1306, 1.1346, 1.3691],
            [1.1043, 1.1394, 1.1065, 1.1539],
            [1.0946, 1.1013, 1.0937, 1.1013],
            [1.0787, 1.0787, 1.0787, 1.0788],
            [1.0725, 1.0725, 1.0725, 1.0725],
        ],
    },
    LossTable {
        label: "tab:acc_vs_ratio_eps_4_detailed",
        start: Start::Warm,
        fixed: Fixed::Epsilon(4.0),
        figures: &[
            [1.5020, 1689.5905, 1.5206, 1689.5905],
            [1.3363, 1084.2257, 1.3769, 1084.2256],
            [1.3196, 776.1302, 1.3776, 776.1302],
            [1.1201, 1.1376, 1.1221, 3.1133],
            [1.1030, 1.1090, 1.1103, 1.3691],
            [1.0911, 1.1019, 1.0999, 1.1539],
            [1.0863, 1.1013, 1.0877, 1.1013],
            [1.0787, 1.0787, 1.0787, 1.0788],
            [1.0725, 1.0725, 1.0725, 1.0725],
        ],
    },
    LossTable {
        label: "tab:acc_vs_eps_ratio_0_1_detailed",
        start: Start::Warm,
        fixed: Fixed::Share(0.1),
        figures: &[
            [2.9509, 3.1133, 3.1133, 3.1133],
            [1.6841, 1.9602, 1.8588, 3.1133],
            [1.3125, 1.3201, 1.3158, 3.1133],
            [1.1648, 1.1880, 1.1695, 3.1133],
            [1.1201, 1.1376, 1.1221, 3.1133],
            [1.1088, 1.1120, 1.1104, 3.1133],
        ],
    },
    LossTable {
        label: "tab:acc_vs_eps_ratio_0_25_detailed",
        start: Start::Warm,
        fixed: Fixed::Share(0.25),
        figures: &[
            [1.3691, 1.3691, 1.3691, 1.3691],
            [1.2647, 1.3691, 1.2679, 1.3691],
            [1.1764, 1.2099, 1.1880, 1.3691],
            [1.1260, 1.1306, 1.1346, 1.3691],
            [1.1030, 1.1090, 1.1103, 1.3691],
            [1.0976, 1.1023, 1.1041, 1.3691],
        ],
    },
    LossTable {
        label: "tab:acc_vs_ratio_eps_4_non_warm_detailed",
        start: Start::Cold,
        fixed: Fixed::Epsilon(4.0),
        figures: &[
            [1.5175, 2010.2422, 1.5411, 1689.5905],
            [1.4225, 2010.2422, 1.5411, 1084.2256],
            [1.3989, 2010.2422, 1.5413, 776.1302],
            [1.3371, 5.3822, 1.5413, 3.1133],
            [1.2574, 2.6205, 1.5411, 1.3691],
            [1.1539, 5.9698, 1.5411, 1.1539],
            [1.1013, 78.9970, 1.5411, 1.1013],
            [1.0787, 1053.6185, 1.5411, 1.0788],
            [1.0725, 1662.3572, 1.5413, 1.0725],
        ],
    },
    LossTable {
        label: "tab:acc_vs_eps_ratio_0_1_non_warm",
        start: Start::Cold,
        fixed: Fixed::Share(0.1),
        figures: &[
            [3.1133, 1956.6069, 1830.1820, 3.1133],
            [3.1133, 1092.1338, 213.6728, 3.1133],
            [2.1843, 306.5518, 15.8089, 3.1133],
            [1.6313, 34.4665, 2.7226, 3.1133],
            [1.3359, 5.3648, 1.4746, 3.1133],
            [1.1986, 2.4319, 1.2472, 3.1133],
        ],
    },
];

/// The printed noise of a setting, if there is one.
pub fn noise(share: f64, epsilon: f64) -> Option<f64> {
    let place = SHARES.iter().position(|known| *known == share)?;
    NOISE.iter().find(|table| table.epsilon == epsilon).map(|table| table.noise[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables that meet in a setting agree there, but for the last digit and for the two cold tables, which were run apart.
    #[test]
    fn tables_are_whole_and_agree_where_they_meet() {
        for table in &LOSSES {
            let settings = if matches!(table.fixed, Fixed::Epsilon(_)) { 9 } else { 6 };
            assert_eq!((table.figures.len(), table.rows().len()), (settings, settings), "{}", table.label);
        }
        let find = |table: &LossTable, share: f64, epsilon: f64| {
            let rows = table.rows();
            rows.iter().find(|row| row.0 == share && row.1 == epsilon).map(|row| row.2).unwrap()
        };
        let [two, four, tenth, quarter, ..] = &LOSSES;
        for (over_shares, epsilon) in [(two, 2.0), (four, 4.0)] {
            for (over_epsilons, share) in [(tenth, 0.1), (quarter, 0.25)] {
                assert_eq!(find(over_shares, share, epsilon), find(over_epsilons, share, epsilon));
            }
        }
        assert_eq!(noise(0.1, 2.0), Some(2.744));
        assert_eq!(noise(0.95, 4.0), Some(25.586));
        assert_eq!((noise(0.1, 1.0), noise(0.2, 2.0)), (None, None));
    }
}
