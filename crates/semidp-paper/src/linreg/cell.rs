//! One setting: tuned on draw 0, measured on the others. Every piece of it can be kept.

use super::autopilot::{Autopiloted, autopilot};
use super::prepared::Lazy;
use super::trainer::{Noises, OnDraw, Trainer, Tuned};
use super::{DELTA, LAW_NAME, Sizes};
use crate::coins::Coins;
use crate::noise::Run;
use crate::published::{self, Start};
use crate::{Result, Settings};
use semidp_core::Adjacency;

/// A cell of the paper's tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// The part of all rows that is public.
    pub share: f64,
    pub epsilon: f64,
    pub start: Start,
}

/// Everything about one setting.
pub struct Cell {
    pub setting: Setting,
    pub noises: Noises,
    pub tuned: Tuned,
    pub draws: Vec<OnDraw>,
    /// On the same draws.
    pub autopilot: Vec<Autopiloted>,
}

/// The noise of a setting: what the paper printed where it did, what its tools would have given elsewhere.
pub fn noises(settings: &Settings, sizes: &Sizes, share: f64, epsilon: f64) -> Result<Noises> {
    let emulated = |rows: usize| {
        let name = format!("linreg-noise-rows{rows}-epsilon{epsilon}");
        let run = Run { rows, batch: sizes.batch, steps: sizes.steps };
        settings.piece(&name, || run.as_opacus(epsilon, DELTA))
    };
    let printed = published::noise(share, epsilon).filter(|_| sizes.is_of_paper);
    let private = match printed {
        Some(printed) => printed,
        None => emulated(sizes.rows - sizes.public(share))?,
    };
    let rows = sizes.rows - sizes.public(share);
    let at_once = Run { rows, batch: rows, steps: 1 }.needed(epsilon, DELTA, Adjacency::AddRemove)?;
    Ok(Noises { private, all: emulated(sizes.rows)?, at_once })
}

/// How often [`measure`] ticks in a setting: once it is tuned, and twice a draw.
pub fn pieces(sizes: &Sizes) -> u64 {
    1 + 2 * sizes.draws
}

/// Tunes and measures settings; those of one share use the same draws.
pub fn measure(
    settings: &Settings,
    sizes: &Sizes,
    list: &[Setting],
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<Cell>> {
    let mut shares: Vec<f64> = list.iter().map(|setting| setting.share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut cells = Vec::new();
    for share in shares {
        let mut own = Vec::new();
        let draw = Lazy::new(sizes, share, settings.seed, 0);
        for setting in list.iter().filter(|setting| setting.share == share) {
            let noises = noises(settings, sizes, share, setting.epsilon)?;
            let tuned = settings.piece(&name(*setting, "tuned"), || {
                Trainer::new(settings, sizes, draw.get()?, setting.start, noises, 0).tune()
            })?;
            tick();
            own.push(Cell { setting: *setting, noises, tuned, draws: Vec::new(), autopilot: Vec::new() });
        }
        drop(draw);
        for number in 1..=sizes.draws {
            let draw = Lazy::new(sizes, share, settings.seed, number);
            for cell in &mut own {
                let (setting, noises) = (cell.setting, cell.noises);
                cell.draws.push(settings.piece(&name(setting, &format!("draw{number}")), || {
                    Trainer::new(settings, sizes, draw.get()?, setting.start, noises, number)
                        .measure(&cell.tuned)
                })?);
                tick();
                let adjacency = Adjacency::AddRemove;
                cell.autopilot.push(left_to_itself(
                    settings,
                    sizes,
                    &draw,
                    setting.epsilon,
                    adjacency,
                    number,
                )?);
                tick();
            }
        }
        cells.extend(own);
    }
    // In the order of the list.
    cells.sort_by_key(|cell| list.iter().position(|setting| *setting == cell.setting));
    Ok(cells)
}

/// The autopilot alone, on every draw that is measured.
pub fn on_every_draw(
    settings: &Settings,
    sizes: &Sizes,
    (share, epsilon): (f64, f64),
    adjacency: Adjacency,
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<Autopiloted>> {
    let one = |number: u64| {
        let draw = Lazy::new(sizes, share, settings.seed, number);
        left_to_itself(settings, sizes, &draw, epsilon, adjacency, number).inspect(|_| tick())
    };
    (1..=sizes.draws).map(one).collect()
}

fn left_to_itself(
    settings: &Settings,
    sizes: &Sizes,
    draw: &Lazy<'_>,
    epsilon: f64,
    adjacency: Adjacency,
    number: u64,
) -> Result<Autopiloted> {
    let (algorithm, share) = (crate::autopilot::NAME, draw.share());
    let name = format!("linreg-{algorithm}-{}-share{share}-epsilon{epsilon}-draw{number}", adjacency.name());
    settings.piece(&name, || {
        let prepared = draw.get()?;
        let loss = |w: &[f64]| prepared.test_loss(w);
        let seed = Coins::new(settings.seed ^ LAW_NAME, number).word();
        autopilot(&prepared.draw, loss, epsilon, adjacency, sizes.batch, seed, settings.threads)
    })
}

/// The name of a piece.
fn name(setting: Setting, piece: &str) -> String {
    let start = match setting.start {
        Start::Warm => "warm",
        Start::Cold => "cold",
    };
    format!("linreg-{start}-share{}-epsilon{}-{piece}", setting.share, setting.epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linreg::QUICK;
    use crate::linreg::prepared::Prepared;
    use crate::linreg::trainer::{ALGORITHMS, Algorithm};
    use std::sync::atomic::{AtomicU64, Ordering};

    const TINY: Sizes = Sizes {
        dimension: 20,
        rows: 300,
        batch: 30,
        public_batch: 8,
        steps: 60,
        validation: 80,
        draws: 2,
        rates: &[0.1, 0.5],
        alphas: &[0.0, 0.5, 1.0],
        ..QUICK
    };

    /// Every algorithm gets the least validation loss of its grid, which is never above that of staying.
    #[test]
    fn choices_are_the_best_of_the_grid_and_threads_make_no_difference() {
        let setting = Setting { share: 0.2, epsilon: 4.0, start: Start::Warm };
        let cold = Setting { start: Start::Cold, ..setting };
        let measured = |threads| {
            let settings = Settings::new(true, 7, threads);
            let ticks = AtomicU64::new(0);
            let tick = || {
                ticks.fetch_add(1, Ordering::Relaxed);
            };
            let cells = measure(&settings, &TINY, &[cold, setting], &tick).unwrap();
            assert_eq!(ticks.into_inner(), 2 * pieces(&TINY));
            cells
        };
        let cells = measured(1);
        assert_eq!((cells[0].setting, cells[1].setting), (cold, setting));
        for (cell, again) in cells.iter().zip(measured(3)) {
            assert_eq!((&cell.tuned, &cell.draws), (&again.tuned, &again.draws));
            assert_eq!(cell.autopilot, again.autopilot);
            assert_eq!((cell.draws.len(), cell.autopilot.len()), (2, 2));
        }
        // Draws are the same for both starts.
        assert_eq!(cells[0].draws[0].throw_away, cells[1].draws[0].throw_away);
        let prepared = Prepared::new(&TINY, 0.2, 7, 0).unwrap();
        let settings = Settings::new(true, 7, 1);
        let trainer = Trainer::new(&settings, &TINY, &prepared, setting.start, cells[1].noises, 0);
        for (place, algorithm) in ALGORITHMS.into_iter().enumerate() {
            let grid = algorithm.grid(&TINY);
            assert_eq!(grid.len(), if algorithm == Algorithm::One { 6 } else { 2 });
            for (output, choice) in cells[1].tuned.choices[place].iter().enumerate() {
                let stay = trainer.validate(&[&[0.0; 20]])[0];
                let mut least = stay;
                for run in &grid {
                    let pair = &trainer.train(algorithm, std::slice::from_ref(run)).unwrap()[0];
                    least = least.min(trainer.validate(&[&pair[output]])[0]);
                }
                // One by one and together differ by rounding.
                assert!((choice.validation / least - 1.0).abs() < 1e-3, "{algorithm:?} {choice:?} {least}");
            }
        }
    }

    /// Who cannot move stays at zero from a cold start; Algorithm 1 has throw-away.
    #[test]
    fn without_learning_rates_algorithm_1_is_throw_away() {
        let sizes = Sizes { rates: &[], ..TINY };
        let setting = Setting { share: 0.5, epsilon: 1.0, start: Start::Cold };
        let cells = measure(&Settings::new(true, 2, 1), &sizes, &[setting], &|| ()).unwrap();
        for (place, draw) in cells[0].draws.iter().enumerate() {
            let prepared = Prepared::new(&sizes, 0.5, 2, place as u64 + 1).unwrap();
            let zero = prepared.test_loss(&[0.0; 20]);
            assert_eq!(draw.losses, [[draw.throw_away; 2], [zero; 2], [zero; 2]]);
            assert!(draw.throw_away < zero);
        }
    }
}
