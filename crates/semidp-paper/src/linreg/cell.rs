//! One setting: tuned on draw 0, measured on the others. Every piece of it can be kept.

use super::autopilot::{Autopiloted, autopilot};
use super::prepared::Lazy;
use super::trainer::{Noises, OnDraw, Trainer, Tuned};
use super::{DELTA, LAW_NAME, Sizes};
use crate::coins::Coins;
use crate::noise::Run;
use crate::parallel::{in_order, split};
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
    let mut cells: Vec<Vec<Cell>> = Vec::new();
    for share in &shares {
        let draw = Lazy::new(sizes, *share, settings.seed, 0);
        let own = list.iter().filter(|setting| setting.share == *share);
        cells.push(own.map(|setting| tuned(settings, sizes, &draw, *setting, tick)).collect::<Result<_>>()?);
    }
    // Of all shares in one list, so that no core waits at the end of each.
    let draws: Vec<(usize, u64)> =
        (0..shares.len()).flat_map(|place| (1..=sizes.draws).map(move |number| (place, number))).collect();
    let (at_once, threads) = split(settings.threads);
    let measured = in_order(draws.len() as u64, at_once, &|_| (), |which| {
        let (place, number) = draws[which as usize];
        let draw = Lazy::new(sizes, shares[place], settings.seed, number);
        let on_draw = |cell: &Cell| {
            let Cell { setting, noises, tuned, .. } = cell;
            let found = settings.piece(&name(*setting, &format!("draw{number}")), || {
                Trainer::new(settings.seed, threads, sizes, draw.get()?, setting.start, *noises, number)
                    .measure(tuned)
            })?;
            tick();
            let adjacency = Adjacency::AddRemove;
            let left = left_to_itself(settings, threads, sizes, &draw, setting.epsilon, adjacency, number)?;
            tick();
            Ok((found, left))
        };
        cells[place].iter().map(on_draw).collect::<Result<Vec<_>>>()
    })?;
    for ((place, _), found) in draws.iter().zip(measured) {
        for (cell, (found, left)) in cells[*place].iter_mut().zip(found) {
            cell.draws.push(found);
            cell.autopilot.push(left);
        }
    }
    let mut cells: Vec<Cell> = cells.into_iter().flatten().collect();
    // In the order of the list.
    cells.sort_by_key(|cell| list.iter().position(|setting| *setting == cell.setting));
    Ok(cells)
}

/// A setting tuned on a draw, and measured on none yet.
fn tuned(
    settings: &Settings,
    sizes: &Sizes,
    draw: &Lazy<'_>,
    setting: Setting,
    tick: &(dyn Fn() + Sync),
) -> Result<Cell> {
    let noises = noises(settings, sizes, setting.share, setting.epsilon)?;
    let tuned = settings.piece(&name(setting, "tuned"), || {
        Trainer::new(settings.seed, settings.threads, sizes, draw.get()?, setting.start, noises, 0).tune()
    })?;
    tick();
    Ok(Cell { setting, noises, tuned, draws: Vec::new(), autopilot: Vec::new() })
}

/// The autopilot alone, on every draw that is measured.
pub fn on_every_draw(
    settings: &Settings,
    sizes: &Sizes,
    (share, epsilon): (f64, f64),
    adjacency: Adjacency,
    tick: &(dyn Fn() + Sync),
) -> Result<Vec<Autopiloted>> {
    let (at_once, threads) = split(settings.threads);
    in_order(sizes.draws, at_once, &|_| tick(), |place| {
        let number = place + 1;
        let draw = Lazy::new(sizes, share, settings.seed, number);
        left_to_itself(settings, threads, sizes, &draw, epsilon, adjacency, number)
    })
}

fn left_to_itself(
    settings: &Settings,
    threads: usize,
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
        autopilot(&prepared.draw, loss, epsilon, adjacency, sizes.batch, seed, threads)
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
        let trainer = Trainer::new(7, 1, &TINY, &prepared, setting.start, cells[1].noises, 0);
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
