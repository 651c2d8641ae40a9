//! Two worlds, step by step.

use super::{Found, Observed, Report, Violation};
use crate::audit::incomplete_beta;
use semidp_accounting::{Adjacency, Event};
use semidp_core::{ReplayedProgram, ReplayedStep, Sampling, SumNorm, Transcript};
use std::collections::BTreeMap;

/// A unit that takes part so often that a right sampler does it with a smaller probability than this is sampled wrongly.
const SURELY_WRONG: f64 = 1e-12;

/// What a run noised, and what it showed.
pub(super) type World = (Transcript, Observed);

/// Adds what two worlds may not differ in to a report.
pub(super) fn compare(worlds: (usize, usize), first: &World, second: &World, report: &mut Report) {
    let (a, b) = (&first.0, &second.0);
    let mut found = Vec::new();
    if a.programs != b.programs {
        found.push(declaration(format!("the programs: {:?} or {:?}", a.programs, b.programs)));
    }
    if a.steps.len() != b.steps.len() {
        found.push(declaration(format!("the number of steps: {} or {}", a.steps.len(), b.steps.len())));
    }
    let mut moved: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (one, other) in a.steps.iter().zip(&b.steps) {
        if let Some(what) = declared(one, other) {
            found.push(declaration(format!("{what} of step {}", one.step)));
            continue;
        }
        let Some(program) = a.programs.get(one.program) else {
            let what = format!("step {} belongs to no program", one.step);
            found.push(Violation::Accounting { what });
            continue;
        };
        found.extend(accounting(program, one).map(|what| Violation::Accounting { what }));
        let (within, share) = change(program.adjacency, one, other);
        report.comparisons += 1;
        report.largest_share = report.largest_share.max(share);
        if !within {
            found.push(Violation::Sensitivity { step: one.step, share });
        }
        if share > 0.0 {
            moved.entry(one.program).or_default().push(one.step);
        }
    }
    for (number, program) in a.programs.iter().enumerate() {
        found.extend(unaccounted(program).map(|what| Violation::Accounting { what }));
        let steps: Vec<u64> =
            a.steps.iter().filter(|step| step.program == number).map(|step| step.step).collect();
        if let Some(step) = steps.iter().find(|step| **step >= program.steps) {
            let what = format!("step {step} of a program of {} steps", program.steps);
            found.push(Violation::Accounting { what });
        }
        let mut distinct = steps.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < steps.len() {
            found.push(Violation::Accounting { what: "a step is noised twice".into() });
        }
        let moved = moved.get(&number).map_or(&[][..], Vec::as_slice);
        found.extend(participation(program, moved, distinct.len() as u64));
    }
    for (name, first, second) in first.1.differences(&second.1) {
        found.push(Violation::Output { name, first, second });
    }
    report.violations.extend(found.into_iter().map(|violation| Found { worlds, violation }));
}

fn declaration(what: String) -> Violation {
    Violation::Declaration { what }
}

/// What is declared differently of two steps.
fn declared(a: &ReplayedStep, b: &ReplayedStep) -> Option<&'static str> {
    [
        ("the number", (a.program, a.step) == (b.program, b.step)),
        ("the norm", a.norm == b.norm),
        ("the dimension", a.sum.len() == b.sum.len()),
        ("the grid", a.grid_step.to_bits() == b.grid_step.to_bits()),
        ("the clip norm", a.clip_steps == b.clip_steps),
        ("the noise multiplier", a.noise_multiplier.to_bits() == b.noise_multiplier.to_bits()),
        ("the noise scale", a.noise_scale == b.noise_scale),
    ]
    .into_iter()
    .find_map(|(name, is_equal)| (!is_equal).then_some(name))
}

/// How a step disagrees with the events of its program. Norms: ℓ1 for Laplace noise, ℓ2 for the others.
fn accounting(program: &ReplayedProgram, step: &ReplayedStep) -> Option<String> {
    if step.sum.len() != program.dimension {
        return Some(format!("a sum of {} coordinates, not {}", step.sum.len(), program.dimension));
    }
    if (step.noise_scale as f64) < step.noise_multiplier * step.clip_steps as f64 {
        return Some(format!("noise of scale {} grid steps is too small", step.noise_scale));
    }
    for counted in &program.events {
        let (norm, multiplier) = match counted.event {
            Event::Gaussian { noise_multiplier }
            | Event::PoissonGaussian { noise_multiplier, .. }
            | Event::FixedSizeGaussian { noise_multiplier, .. }
            | Event::OnePassGaussian { noise_multiplier, .. }
            | Event::KNorm { noise_multiplier, .. } => (SumNorm::L2, noise_multiplier),
            Event::Laplace { noise_multiplier, .. } => (SumNorm::L1, noise_multiplier),
            _ => continue,
        };
        if norm != step.norm {
            return Some(format!("{} noise on a sum bounded in {:?}", counted.event.name(), step.norm));
        }
        if step.noise_multiplier < multiplier.get() {
            return Some(format!("noise multiplier {}, not {multiplier}", step.noise_multiplier));
        }
    }
    let rate = |event: &Event| match (event, program.sampling) {
        (Event::PoissonGaussian { sample_rate, .. }, Sampling::Poisson { rate }) => sample_rate >= &rate,
        (Event::FixedSizeGaussian { .. }, Sampling::FixedSize { .. }) => true,
        (
            Event::OnePassGaussian { blocks, .. },
            Sampling::OnePass { blocks: n } | Sampling::InOrder { blocks: n },
        ) => *blocks == n,
        (
            Event::PoissonGaussian { .. } | Event::FixedSizeGaussian { .. } | Event::OnePassGaussian { .. },
            _,
        ) => false,
        // What costs as much as everybody every time covers every sampling.
        _ => true,
    };
    let other = program.events.iter().find(|counted| !rate(&counted.event))?;
    Some(format!("a {} event for {:?}", other.event.name(), program.sampling))
}

/// Fewer events than the program has steps, or passes begun.
fn unaccounted(program: &ReplayedProgram) -> Option<String> {
    let needed = match program.sampling {
        Sampling::OnePass { blocks } | Sampling::InOrder { blocks } => program.steps.div_ceil(blocks.max(1)),
        _ => program.steps,
    };
    let counted = program.events.iter().fold(0u64, |sum, event| sum.saturating_add(event.count.get()));
    (counted < needed).then(|| format!("{counted} events for a program of {} steps", program.steps))
}

/// Whether two sums are within the sensitivity, in integers; and their distance over it.
fn change(adjacency: Adjacency, a: &ReplayedStep, b: &ReplayedStep) -> (bool, f64) {
    let factor = match adjacency {
        Adjacency::ReplaceOne => 2,
        Adjacency::AddRemove => 1,
    };
    let bound = factor * u128::from(a.clip_steps);
    let gaps = a.sum.iter().zip(&b.sum).map(|(a, b)| (i128::from(*a) - i128::from(*b)).unsigned_abs());
    match a.norm {
        SumNorm::L1 => {
            let total = gaps.fold(0u128, u128::saturating_add);
            (total <= bound, total as f64 / bound as f64)
        }
        SumNorm::L2 => {
            let square = gaps.fold(0u128, |sum, gap| sum.saturating_add(gap.saturating_mul(gap)));
            (square <= bound * bound, (square as f64).sqrt() / bound as f64)
        }
    }
}

/// Whether one unit took part too often, seen by the steps whose sums it moved.
fn participation(program: &ReplayedProgram, moved: &[u64], of: u64) -> Option<Violation> {
    let too_often = |steps: u64| Violation::Participation { steps, of, sampling: program.sampling.name() };
    let count = moved.len() as u64;
    match program.sampling {
        Sampling::OnePass { blocks } | Sampling::InOrder { blocks } => {
            let mut passes: Vec<u64> = moved.iter().map(|step| step / blocks).collect();
            passes.dedup();
            (passes.len() < moved.len()).then(|| too_often(count))
        }
        Sampling::Poisson { .. } | Sampling::FixedSize { .. } => {
            let rates = program.events.iter().filter_map(|counted| match counted.event {
                Event::PoissonGaussian { sample_rate, .. } | Event::FixedSizeGaussian { sample_rate, .. } => {
                    Some(sample_rate.get())
                }
                _ => None,
            });
            let rate = rates.fold(0.0, f64::max);
            // P(Binomial(of, rate) ≥ count) = I_rate(count, of − count + 1).
            let chance = |count: u64| incomplete_beta(count as f64, (of - count) as f64 + 1.0, rate);
            (rate > 0.0 && count > 0 && chance(count.min(of)) < SURELY_WRONG).then(|| too_often(count))
        }
        Sampling::Everyone => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semidp_accounting::{CountedEvent, NoiseMultiplier, SampleRate, Steps};

    fn step(norm: SumNorm, sum: Vec<i64>, clip_steps: u64) -> ReplayedStep {
        let (noise_multiplier, released) = (1.0, vec![0.0; sum.len()]);
        ReplayedStep {
            program: 0,
            step: 0,
            norm,
            sum,
            grid_step: 1.0,
            clip_steps,
            noise_multiplier,
            noise_scale: clip_steps,
            released,
        }
    }

    /// One grid step more than the bound is too much, also where squares leave 64 bits.
    #[test]
    fn the_bound_is_sharp() {
        for clip in [5u64, 1 << 27] {
            let c = clip as i64;
            let zero = |norm| step(norm, vec![0, 0], clip);
            for (norm, at, beyond) in
                [(SumNorm::L1, vec![c - 1, -1], vec![c - 1, -2]), (SumNorm::L2, vec![0, -c], vec![1, -c])]
            {
                let within = |adjacency, sum: &[i64]| {
                    change(adjacency, &zero(norm), &step(norm, sum.to_vec(), clip)).0
                };
                assert!(within(Adjacency::AddRemove, &at) && !within(Adjacency::AddRemove, &beyond));
                let double = |sum: &[i64]| sum.iter().map(|k| 2 * k).collect::<Vec<_>>();
                assert!(
                    within(Adjacency::ReplaceOne, &double(&at)) && within(Adjacency::ReplaceOne, &beyond)
                );
                assert!(!within(Adjacency::ReplaceOne, &double(&beyond)));
            }
        }
        let far = |k| step(SumNorm::L2, vec![k, k], 3);
        assert!(!change(Adjacency::ReplaceOne, &far(i64::MAX), &far(i64::MIN)).0);
    }

    #[test]
    fn noise_below_its_event_is_found() {
        let z = |z: f64| NoiseMultiplier::new(z).unwrap();
        let program = |event: Event, sampling: Sampling| ReplayedProgram {
            adjacency: Adjacency::ReplaceOne,
            sampling,
            steps: 3,
            dimension: 1,
            events: vec![CountedEvent::new(event, Steps::new(3).unwrap())],
        };
        let gaussian = program(Event::Gaussian { noise_multiplier: z(1.0) }, Sampling::Everyone);
        let right = step(SumNorm::L2, vec![4], 7);
        assert_eq!(accounting(&gaussian, &right), None);
        for wrong in [
            ReplayedStep { noise_scale: 6, ..right.clone() },
            ReplayedStep { noise_multiplier: 0.99, ..right.clone() },
            step(SumNorm::L1, vec![4], 7),
            step(SumNorm::L2, vec![4, 4], 7),
        ] {
            assert!(accounting(&gaussian, &wrong).is_some(), "{wrong:?}");
        }
        let rate = |q| SampleRate::new(q).unwrap();
        let event = Event::PoissonGaussian { noise_multiplier: z(1.0), sample_rate: rate(0.1) };
        assert_eq!(accounting(&program(event.clone(), Sampling::Poisson { rate: rate(0.1) }), &right), None);
        for sampling in [Sampling::Poisson { rate: rate(0.2) }, Sampling::Everyone] {
            assert!(accounting(&program(event.clone(), sampling), &right).is_some());
        }
        // One unit in one step of three at a rate of 1e-13, and twice in a pass.
        let rare = Event::PoissonGaussian { noise_multiplier: z(1.0), sample_rate: rate(1e-13) };
        let rare = program(rare, Sampling::Poisson { rate: rate(1e-13) });
        assert!(participation(&rare, &[1], 3).is_some() && participation(&rare, &[], 3).is_none());
        let pass = Event::OnePassGaussian { noise_multiplier: z(1.0), blocks: 2 };
        let pass = program(pass, Sampling::OnePass { blocks: 2 });
        assert!(participation(&pass, &[0, 1], 3).is_some() && participation(&pass, &[1, 2], 3).is_none());
    }
}
