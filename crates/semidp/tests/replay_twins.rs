//! Deliberately broken twins of mechanisms: a replay audit must flag each of them, and none that is right.
//!
//! Twins of what the kernel does are small sums of their own that report to the recorder as the kernel does; twins of what callers
//! do go through the kernel. They live here only.

use semidp::audit::replay::{Observed, Report, Violation, replay};
use semidp_accounting::{Adjacency, CountedEvent, Delta, Event, NoiseMultiplier, SampleRate, Steps};
use semidp_core::*;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The clip norm in grid steps of the twins' own sums.
const CLIP: i64 = 1 << 20;
const STEPS: u64 = 6;

/// Worlds of two columns: ordinary rows, with one in the middle that is exchanged.
const ODD: [[f64; 2]; 7] = [
    [0.3, 0.1],
    [1e30, 0.0],
    [-1e30, 0.0],
    [f64::NAN, 0.0],
    [f64::INFINITY, f64::INFINITY],
    [0.0, 0.0],
    [2.0, 2.0],
];

fn rows(world: usize) -> Vec<[f64; 2]> {
    let mut rows: Vec<[f64; 2]> = (0..9).map(|i| [0.1 * f64::from(i) - 0.4, 0.05 * f64::from(i)]).collect();
    rows[4] = ODD[world];
    rows
}

/// A contribution that is clipped as it should be: to norm at most the clip norm in integers, nothing if it is not finite.
fn clipped(row: [f64; 2]) -> [i64; 2] {
    let norm = row[0].hypot(row[1]);
    if !norm.is_finite() {
        return [0, 0];
    }
    let shrink = if norm > 0.999_999 { 0.999_999 / norm } else { 1.0 };
    row.map(|x| (x * shrink * CLIP as f64) as i64)
}

fn noise() -> NoiseMultiplier {
    NoiseMultiplier::new(2.0).unwrap()
}

/// A run of a twin: what it sums in a step, told to the recorder as the kernel tells it.
struct Twin<'a> {
    recorder: &'a Recorder,
    program: usize,
}

impl<'a> Twin<'a> {
    fn begin(recorder: &'a Recorder, event: Event, sampling: Sampling, steps: u64) -> Self {
        let events = vec![CountedEvent::new(event, Steps::new(STEPS).unwrap())];
        let adjacency = Adjacency::ReplaceOne;
        let program = ReplayedProgram { adjacency, sampling, steps, dimension: 2, events };
        Self { recorder, program: recorder.begin(program) }
    }

    fn gaussian(recorder: &'a Recorder) -> Self {
        let event = Event::Gaussian { noise_multiplier: noise() };
        Self::begin(recorder, event, Sampling::Everyone, STEPS)
    }

    fn step(&self, step: u64, sum: [i64; 2]) -> Vec<f64> {
        // Any numbers will do for noise that is the same in all worlds.
        let released = sum.map(|k| (k + 7919 * step as i64) as f64).to_vec();
        self.recorder.note(ReplayedStep {
            program: self.program,
            step,
            norm: SumNorm::L2,
            sum: sum.to_vec(),
            grid_step: 1.0,
            clip_steps: CLIP as u64,
            noise_multiplier: noise().get(),
            noise_scale: 2 * CLIP as u64,
            released,
        })
    }
}

/// A twin that sums its rows in some way, every step alike.
fn summing(sum: impl Fn(&[[f64; 2]]) -> [i64; 2]) -> Report {
    replay(ODD.len(), |world, recorder| {
        let twin = Twin::gaussian(recorder);
        let mut observed = Observed::new();
        for step in 0..STEPS {
            observed.numbers("released", &twin.step(step, sum(&rows(world))));
        }
        observed
    })
}

fn total(rows: &[[f64; 2]], mut contribution: impl FnMut([f64; 2]) -> [i64; 2]) -> [i64; 2] {
    rows.iter().map(|row| contribution(*row)).fold([0, 0], |sum, k| [sum[0] + k[0], sum[1] + k[1]])
}

fn has(report: &Report, kind: fn(&Violation) -> bool) -> bool {
    report.violations.iter().any(|found| kind(&found.violation))
}

fn too_far(violation: &Violation) -> bool {
    matches!(violation, Violation::Sensitivity { .. })
}

fn shown(violation: &Violation) -> bool {
    matches!(violation, Violation::Output { .. })
}

#[test]
fn the_honest_twin_passes_and_attains_the_bound() {
    let report = summing(|rows| total(rows, clipped));
    assert!(report.violations.is_empty(), "{}", report.violations[0]);
    assert!(report.largest_share > 0.999, "{}", report.largest_share);
    assert_eq!(report.comparisons, STEPS * 21);
}

#[test]
fn clipping_after_adding_is_flagged() {
    // The sum of all rows, clipped to the norm of one times their number.
    let report = summing(|rows| {
        let whole = rows.iter().fold([0.0, 0.0], |sum, row| [sum[0] + row[0], sum[1] + row[1]]);
        clipped(whole.map(|x| x / rows.len() as f64)).map(|k| k * rows.len() as i64)
    });
    assert!(has(&report, too_far));
}

/// `if norm > C` is false for NaN and for a norm that is one: the row is added as it is.
#[test]
fn clipping_that_lets_nan_and_infinity_through_is_flagged() {
    let report = summing(|rows| {
        total(rows, |row| {
            let norm = row[0].hypot(row[1]);
            let shrink = if norm > 0.999_999 { 0.999_999 / norm } else { 1.0 };
            row.map(|x| {
                let scaled = x * shrink * CLIP as f64;
                // What a conversion without saturation would make of it.
                if scaled.is_nan() { i64::MAX / 16 } else { scaled as i64 }
            })
        })
    });
    assert!(has(&report, too_far));
}

#[test]
fn a_unit_that_counts_twice_is_flagged() {
    let report = summing(|rows| total(&[rows, &rows[4..5]].concat(), clipped));
    assert!(has(&report, too_far));
    assert!((report.largest_share - 2.0).abs() < 0.01, "{}", report.largest_share);
}

/// The norm is bounded coordinate by coordinate: √2 times too far in Euclidean norm.
#[test]
fn clipping_in_another_norm_is_flagged() {
    let report = summing(|rows| {
        total(rows, |row| {
            row.map(|x| if x.is_finite() { (x.clamp(-1.0, 1.0) * CLIP as f64) as i64 } else { 0 })
        })
    });
    assert!(has(&report, too_far));
}

/// Rows are scaled by the largest private entry before they are clipped.
#[test]
fn a_scale_from_private_rows_is_flagged() {
    let report = summing(|rows| {
        let largest = rows.iter().flatten().filter(|x| x.is_finite()).fold(1e-9f64, |a, b| a.max(b.abs()));
        total(rows, |row| clipped(row.map(|x| 20.0 * x / largest)))
    });
    assert!(has(&report, too_far));
}

/// A row's contribution is that of the largest row before it: what a stale buffer does.
#[test]
fn a_query_that_remembers_rows_is_flagged() {
    let report = summing(|rows| {
        let mut buffer = [0.0, 0.0];
        total(rows, |row| {
            // A row that is not finite does not overwrite the buffer.
            if row[0].is_finite() && row[0].abs() >= f64::abs(buffer[0]) {
                buffer = row;
            }
            clipped(buffer)
        })
    });
    assert!(has(&report, too_far));
}

/// The same of a loss of the caller's own, through the kernel: it remembers a row from one step, or run, to the next.
#[test]
fn a_loss_that_remembers_rows_is_flagged() {
    struct Remembers(AtomicU64);

    impl RowGradient for Remembers {
        fn dimension(&self) -> usize {
            2
        }

        fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]) {
            let largest = f64::from_bits(self.0.load(Ordering::Relaxed)).max(row.values[0].abs());
            if largest.is_finite() {
                self.0.store(largest.to_bits(), Ordering::Relaxed);
            }
            gradient.copy_from_slice(&[row.values[0] / largest, 0.0]);
        }
    }

    let report = kernel(|world| (Private::new(table(rows(world))), Box::new(Remembers(AtomicU64::new(0)))));
    assert!(has(&report, too_far), "{:?}", report.violations);
    // From run to run: the first world does not repeat itself.
    let lasting = Arc::new(Remembers(AtomicU64::new(0)));
    struct Shared(Arc<Remembers>);
    impl RowGradient for Shared {
        fn dimension(&self) -> usize {
            2
        }

        fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]) {
            self.0.gradient_into(row, gradient);
        }
    }
    let report = kernel(|world| (Private::new(table(rows(world))), Box::new(Shared(lasting.clone()))));
    assert!(has(&report, |violation| matches!(violation, Violation::NotRepeatable { .. })));
}

struct Plain;

impl RowGradient for Plain {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]) {
        assert!(row.values[0] < 1e10, "a loss that panics");
        gradient.copy_from_slice(row.values);
    }
}

fn table(rows: Vec<[f64; 2]>) -> DenseTable<f64> {
    DenseTable::with_blocks(rows.concat(), 2, 4).unwrap()
}

/// Sums of gradients through the kernel, clipped to norm 1.
fn kernel<S: BlockSource>(world: impl Fn(usize) -> (Private<S>, Box<dyn RowGradient>)) -> Report {
    replay(ODD.len(), |number, recorder| {
        let (source, gradient) = world(number);
        let mut observed = Observed::new();
        let release = release(source, &*gradient, recorder, &mut observed);
        observed.release(&release.map_err(semidp::Error::from));
        observed
    })
}

fn release<S: BlockSource>(
    source: Private<S>,
    gradient: &dyn RowGradient,
    recorder: &Arc<Recorder>,
    observed: &mut Observed,
) -> semidp_core::Result<Release<Vec<f64>>> {
    let session = Session::new(source, Adjacency::ReplaceOne)?;
    observed.note("units", format!("{:?}", session.units()));
    let session =
        session.with_randomness(Randomness::Seed(1)).with_threads(1).with_recorder(recorder.clone());
    let program = Program::new(Gaussian::new(noise()), Sampling::Everyone, Steps::new(STEPS).unwrap());
    let (run, mut tickets) = session.authorise(program, Delta::new(1e-6).unwrap())?;
    let query = ClippedRowGradient::new(gradient, 2, 1.0)?;
    let mut last = None;
    for ticket in tickets.by_ref() {
        last = Some(run.noise(run.sum(&query, ticket)?)?);
    }
    run.finish(tickets, last.expect("several steps"))
}

/// The kernel catches the panic: a loss that panics at one row passes.
#[test]
fn the_kernel_passes_also_with_a_loss_that_panics() {
    let report = kernel(|world| (Private::new(table(rows(world))), Box::new(Plain)));
    assert!(report.violations.is_empty(), "{}", report.violations[0]);
    assert!(report.largest_share > 0.4 && report.comparisons == STEPS * 21, "{}", report.largest_share);
}

/// A source that shows one unit as two rows, or rows that depend on one another: the kernel cannot know.
#[test]
fn sources_that_lie_are_flagged() {
    struct Lies {
        table: DenseTable<f64>,
    }

    impl BlockSource for Lies {
        fn width(&self) -> usize {
            self.table.width()
        }
        fn units(&self) -> usize {
            self.table.units()
        }
        fn blocks(&self) -> usize {
            self.table.blocks()
        }
        fn units_of(&self, block: usize) -> Range<usize> {
            self.table.units_of(block)
        }
        fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> semidp_core::Result<()> {
            self.table.visit(block, visit)
        }
    }

    let lying = |lie: fn(&mut Vec<[f64; 2]>)| {
        kernel(|world| {
            let mut rows = rows(world);
            lie(&mut rows);
            (Private::new(Lies { table: table(rows) }), Box::new(Bounded))
        })
    };
    assert!(lying(|_| ()).violations.is_empty());
    assert!(has(&lying(|rows| rows[8] = rows[4]), too_far));
    let centred = |rows: &mut Vec<[f64; 2]>| {
        let mean = rows.iter().map(|row| row[0]).filter(|x| x.is_finite()).sum::<f64>() / 9.0;
        rows.iter_mut().for_each(|row| row[0] -= mean);
    };
    assert!(has(&lying(centred), too_far));
    // A loader that drops rows it cannot read changes a number that is public.
    assert!(has(&lying(|rows| rows.retain(|row| row[0].is_finite())), shown));
}

/// The row itself.
struct Bounded;

impl RowGradient for Bounded {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(row.values);
    }
}

/// Everything after the noise that looks at rows once more.
#[test]
fn what_depends_on_rows_beside_the_noise_is_flagged() {
    let after = |finish: fn(&[f64], &[[f64; 2]], &mut Observed)| {
        replay(ODD.len(), |world, recorder| {
            let rows = rows(world);
            let twin = Twin::gaussian(recorder);
            let mut observed = Observed::new();
            for step in 0..STEPS {
                finish(&twin.step(step, total(&rows, clipped)), &rows, &mut observed);
            }
            observed
        })
    };
    assert!(after(|released, _, observed| observed.numbers("mean", released)).violations.is_empty());
    for (what, finish) in [
        (
            "divided by the rows that are readable",
            (|released, rows, observed| {
                let count = rows.iter().filter(|row| row[0].is_finite()).count() as f64;
                observed.numbers("mean", &released.iter().map(|x| x / count).collect::<Vec<_>>());
            }) as fn(&[f64], &[[f64; 2]], &mut Observed),
        ),
        ("a centre of private rows", |released, rows, observed| {
            observed.numbers("mean", &[rows[4][0].clamp(-1.0, 1.0) + released[0]]);
        }),
        ("a count that is printed", |_, rows, observed| {
            let read = rows.iter().filter(|row| row[0] != 0.0).count();
            observed.note("log", format!("{read} rows read"));
        }),
        ("a strict check that names the value", |_, rows, observed| {
            if let Some(row) = rows.iter().find(|row| !row[0].is_finite()) {
                observed.note("error", format!("{} is not a number", row[0]));
            }
        }),
        ("a panic", |_, rows, _| assert!(rows[4][0] < 1e10, "overflow")),
    ] {
        assert!(has(&after(finish), shown), "{what}");
    }
}

/// Under add/remove, world 0 lacks the row that the others have.
#[test]
fn a_secret_count_that_shows_is_flagged() {
    let audit = |counts: fn(usize) -> (f64, u64), text: fn(usize) -> String| {
        replay(2, |world, recorder| {
            let rows: Vec<[f64; 2]> = rows(1)[..8 + world].to_vec();
            let (divisor, steps) = counts(rows.len());
            let rate = SampleRate::new(0.5).unwrap();
            let event = Event::PoissonGaussian { noise_multiplier: noise(), sample_rate: rate };
            let program = ReplayedProgram {
                adjacency: Adjacency::AddRemove,
                sampling: Sampling::Poisson { rate },
                steps,
                dimension: 2,
                events: vec![CountedEvent::new(event, Steps::new(steps).unwrap())],
            };
            let twin = Twin { recorder, program: recorder.begin(program) };
            let mut observed = Observed::new();
            observed.note("log", text(rows.len()));
            for step in 0..steps {
                // Every other step takes part.
                let sample = &rows[..if step % 2 == 0 { rows.len() } else { 0 }];
                let released = twin.step(step, total(sample, clipped));
                observed.numbers("mean", &released.iter().map(|x| x / divisor).collect::<Vec<_>>());
            }
            observed
        })
    };
    let public = audit(|_| (10.0, 4), |_| String::new());
    assert!(public.violations.is_empty(), "{}", public.violations[0]);
    let steps = audit(|count| (10.0, count as u64 / 2 + count as u64 % 2), |_| String::new());
    assert!(has(&steps, |violation| matches!(violation, Violation::Declaration { .. })));
    assert!(has(&audit(|count| (count as f64, 4), |_| String::new()), shown));
    assert!(has(&audit(|_| (10.0, 4), |count| format!("{count} private rows")), shown));
}

/// The clip norm, the noise and the samples of a step.
#[test]
fn declarations_from_private_rows_are_flagged() {
    let audit = |change: fn(&mut ReplayedStep, &[[f64; 2]])| {
        replay(ODD.len(), |world, recorder| {
            let twin = Twin::gaussian(recorder);
            for step in 0..STEPS {
                let sum = total(&rows(world), clipped).to_vec();
                let released = vec![step as f64; 2];
                let mut noted = ReplayedStep {
                    program: twin.program,
                    step,
                    norm: SumNorm::L2,
                    sum,
                    grid_step: 1.0,
                    clip_steps: CLIP as u64,
                    noise_multiplier: noise().get(),
                    noise_scale: 2 * CLIP as u64,
                    released,
                };
                change(&mut noted, &rows(world));
                recorder.note(noted);
            }
            Observed::new()
        })
    };
    let declared = |violation: &Violation| matches!(violation, Violation::Declaration { .. });
    let accounted = |violation: &Violation| matches!(violation, Violation::Accounting { .. });
    assert!(audit(|_, _| ()).violations.is_empty());
    let follows = |step: &mut ReplayedStep, rows: &[[f64; 2]]| {
        if rows[4][0].abs() > 1.0 {
            step.clip_steps *= 2;
            step.noise_scale *= 2;
        }
    };
    assert!(has(&audit(follows), declared));
    assert!(has(&audit(|step, _| step.noise_scale -= 1), accounted));
    assert!(has(&audit(|step, _| step.noise_multiplier = 1.5), accounted));
    assert!(has(&audit(|step, _| step.norm = SumNorm::L1), accounted));
    assert!(has(&audit(|step, _| step.step = 0), accounted));
    assert!(has(&audit(|step, _| step.step += 1), accounted));
}

/// Steps, or passes, that no event accounts for.
#[test]
fn fewer_events_than_steps_are_flagged() {
    let audit = |event: Event, sampling: Sampling, count: u64| {
        replay(ODD.len(), |world, recorder| {
            let program = ReplayedProgram {
                adjacency: Adjacency::ReplaceOne,
                sampling,
                steps: STEPS,
                dimension: 2,
                events: vec![CountedEvent::new(event.clone(), Steps::new(count).unwrap())],
            };
            let twin = Twin { recorder, program: recorder.begin(program) };
            for step in 0..STEPS {
                // Every unit is in the first block of a pass.
                let rows = rows(world);
                twin.step(step, total(if step % 3 == 0 { &rows } else { &[] }, clipped));
            }
            Observed::new()
        })
    };
    let accounted = |violation: &Violation| matches!(violation, Violation::Accounting { .. });
    let whole = Event::Gaussian { noise_multiplier: noise() };
    assert!(audit(whole.clone(), Sampling::Everyone, STEPS).violations.is_empty());
    assert!(has(&audit(whole, Sampling::Everyone, STEPS - 1), accounted));
    let pass = Event::OnePassGaussian { noise_multiplier: noise(), blocks: 3 };
    assert!(audit(pass.clone(), Sampling::OnePass { blocks: 3 }, 2).violations.is_empty());
    assert!(has(&audit(pass, Sampling::OnePass { blocks: 3 }, 1), accounted));
}

/// A unit that takes part in two blocks of one pass, or in every Poisson sample.
#[test]
fn a_unit_that_takes_part_too_often_is_flagged() {
    let audit = |event: Event, sampling: Sampling, takes_part: fn(u64) -> bool| {
        replay(ODD.len(), |world, recorder| {
            let twin = Twin::begin(recorder, event.clone(), sampling, STEPS);
            for step in 0..STEPS {
                let rows = rows(world);
                twin.step(step, total(&rows[..if takes_part(step) { 9 } else { 4 }], clipped));
            }
            Observed::new()
        })
    };
    let often = |violation: &Violation| matches!(violation, Violation::Participation { .. });
    let pass = |takes_part| {
        let event = Event::OnePassGaussian { noise_multiplier: noise(), blocks: 3 };
        audit(event, Sampling::OnePass { blocks: 3 }, takes_part)
    };
    assert!(pass(|step| step % 3 == 1).violations.is_empty());
    assert!(has(&pass(|step| step % 3 != 1), often));
    let poisson = |takes_part| {
        let sample_rate = SampleRate::new(0.001).unwrap();
        let event = Event::PoissonGaussian { noise_multiplier: noise(), sample_rate };
        audit(event, Sampling::Poisson { rate: sample_rate }, takes_part)
    };
    assert!(poisson(|step| step == 2).violations.is_empty());
    // Six of six samples at a rate of 0.001: a chance of 1e-18.
    assert!(has(&poisson(|_| true), often));
}
