//! Gradients behind both doors: bounded whatever row and loss, close to the naive computation otherwise, and
//! the same bits whatever the threads, blocks and instructions.

use super::*;
use std::ops::Range;

/// A smooth loss of several scores whose residuals depend on all of them.
struct Curved(usize);

impl ScoreLoss for Curved {
    fn outputs(&self) -> usize {
        self.0
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        for (c, (residual, score)) in residuals.iter_mut().zip(scores).enumerate() {
            *residual = (score - label).tanh() + 0.1 * (c as f64 - scores[0]).sin();
        }
    }
}

/// A loss that answers nonsense.
struct Wild(f64);

impl ScoreLoss for Wild {
    fn outputs(&self) -> usize {
        2
    }

    fn residuals(&self, _: &[f64], label: f64, residuals: &mut [f64]) {
        assert!(label < 5.0, "a loss that panics");
        residuals.copy_from_slice(&[self.0, -self.0]);
    }
}

/// The same gradient row by row, through the other door.
struct RowByRow<'a> {
    loss: &'a dyn ScoreLoss,
    weights: &'a [f64],
    has_intercept: bool,
}

impl RowByRow<'_> {
    fn gradient(&self, row: &[f64]) -> Vec<f64> {
        let (label, x) = row.split_last().unwrap();
        let x: Vec<f64> = x.iter().copied().chain(self.has_intercept.then_some(1.0)).collect();
        let outputs = self.loss.outputs();
        let score = |w: &[f64]| w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
        let scores: Vec<f64> = self.weights.chunks_exact(x.len()).map(score).collect();
        let mut residuals = vec![0.0; outputs];
        self.loss.residuals(&scores, *label, &mut residuals);
        residuals.iter().flat_map(|r| x.iter().map(move |x| r * x)).collect()
    }
}

impl RowGradient for RowByRow<'_> {
    fn dimension(&self) -> usize {
        self.weights.len()
    }

    fn gradient_into(&self, row: RowView<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(&self.gradient(row.values));
    }
}

fn integers<Q: Query>(query: &Q, table: Table, threads: usize) -> Vec<i64> {
    let session = session(table, Adjacency::ReplaceOne, 1, threads);
    let program = Program::new(Gaussian::new(noise(1.0)), Sampling::Everyone, Steps::ONE);
    let (run, mut tickets) = session.authorise(program, delta(1e-6)).unwrap();
    run.sum(query, tickets.next().unwrap()).unwrap().sum().to_vec()
}

fn weights(count: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 37 + 11) % 19) as f64 / 19.0 - 0.5).collect()
}

fn rows(count: usize, width: usize) -> Vec<Row> {
    (0..count)
        .map(|i| Row::new((0..width).map(|j| ((i * 31 + j * 17) % 23) as f64 / 8.0 - 1.3).collect()))
        .collect()
}

#[test]
fn both_doors_give_the_naive_sum() {
    for (features, outputs, has_intercept) in
        [(1, 1, false), (3, 1, true), (16, 1, true), (40, 3, true), (33, 4, false), (100, 10, true)]
    {
        let loss = Curved(outputs);
        let weights = weights(outputs * (features + usize::from(has_intercept)));
        let rows = rows(37, features + 1);
        let naive = RowByRow { loss: &loss, weights: &weights, has_intercept };
        for clip_norm in [0.5, 3.0, 1e4] {
            let public = Public(weights.clone());
            let query = ClippedGradient::new(&loss, public, features, has_intercept, clip_norm).unwrap();
            let by_row = ClippedRowGradient::new(&naive, features + 1, clip_norm).unwrap();
            let mut expected = vec![0.0; weights.len()];
            for row in &rows {
                let gradient = naive.gradient(&row.values);
                let norm = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
                let factor = (clip_norm / norm).min(1.0);
                expected.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += factor * x);
            }
            for storage in STORAGES {
                let single = matches!(storage, DenseF32 | CsrF32);
                // Truncation loses less than a grid step a row. Single precision moves scores by about
                // (d + 2)·2^-24 of the sum of products, and clipping shies away by 2^-20.
                let size = clip_norm.min(40.0 * features as f64);
                let rounding = if single { features as f64 * 4.0 * 2f64.powi(-24) * 10.0 } else { 0.0 };
                let a_row = query.grid().step() + size * (2f64.powi(-20) + rounding);
                for layout in [(1, 1000), (2, 5), (3, 1)] {
                    let table = || table(storage, &rows, features + 1, layout.1);
                    for found in [integers(&query, table(), layout.0), integers(&by_row, table(), layout.0)] {
                        for (k, x) in found.iter().zip(&expected) {
                            let gap = (*k as f64 * query.grid().step() - x).abs();
                            assert!(
                                gap <= rows.len() as f64 * a_row,
                                "{features} {outputs} {storage:?}: {gap}"
                            );
                        }
                    }
                    let alone = integers(&query, table(), 1);
                    assert_eq!(alone, integers(&query, table(), layout.0));
                }
            }
        }
    }
}

#[test]
fn losses_and_rows_may_be_as_wild_as_they_like() {
    let wild = [0.0, 1.0, 1e-300, 1e30, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for (features, has_intercept) in [(1, true), (7, true), (16, false), (20, true)] {
        let weights = weights(2 * (features + usize::from(has_intercept)));
        for residual in wild {
            let loss = Wild(residual);
            let naive = RowByRow { loss: &loss, weights: &weights, has_intercept };
            for entry in wild {
                for label in [0.0, 9.0] {
                    let mut values = vec![0.7; features];
                    values[features / 2] = entry;
                    values.push(label);
                    let mut rows = vec![Row::new(values)];
                    for clip_norm in [1e-3, 1.0] {
                        let public = Public(weights.clone());
                        let query =
                            ClippedGradient::new(&loss, public, features, has_intercept, clip_norm).unwrap();
                        let by_row = ClippedRowGradient::new(&naive, features + 1, clip_norm).unwrap();
                        for storage in STORAGES {
                            let bound = query.grid().clip_steps();
                            // Alone, so that it is the odd last row, and beside a harmless one.
                            let one = integers(&query, table(storage, &rows, features + 1, 9), 1);
                            assert!(L2::is_within(&one, bound), "{residual} {entry} {storage:?}");
                            let other = integers(&by_row, table(storage, &rows, features + 1, 9), 1);
                            assert!(L2::is_within(&other, bound), "{residual} {entry} {storage:?}");
                            if label == 9.0 || !residual.is_finite() || !entry.is_finite() && features > 1 {
                                assert!(one.iter().all(|&k| k == 0), "{residual} {entry} {storage:?}");
                            }
                            let harmless = Row::new([vec![0.1; features], vec![0.0]].concat());
                            let calm =
                                integers(&query, table(storage, from_ref(&harmless), features + 1, 9), 1);
                            rows.push(harmless);
                            let both = integers(&query, table(storage, &rows, features + 1, 9), 1);
                            rows.pop();
                            assert_eq!(minus(&both, &calm), one, "{residual} {entry} {storage:?}");
                        }
                    }
                }
            }
        }
    }
}

/// A row contributes the same integers alone as among any others, in any order; and nothing if it must not.
#[test]
fn gradients_do_not_depend_on_their_neighbours() {
    for (features, outputs, has_intercept) in
        [(5, 1, false), (40, 3, true), (1100, 2, true), (2100, 1, false)]
    {
        let loss = Curved(outputs);
        let weights = weights(outputs * (features + usize::from(has_intercept)));
        let query = ClippedGradient::new(&loss, Public(weights), features, has_intercept, 0.7).unwrap();
        let mut rows = rows(23, features + 1);
        rows[3].values[1] = f64::NAN;
        rows[8].values[0] = 1e30;
        rows[9].values.fill(0.0);
        for storage in STORAGES {
            let table = |rows: &[Row], block| table(storage, rows, features + 1, block);
            let alone: Vec<Vec<i64>> =
                rows.iter().map(|row| integers(&query, table(from_ref(row), 9), 1)).collect();
            assert!(alone[3].iter().all(|&k| k == 0));
            assert!(alone[4].iter().any(|&k| k != 0));
            assert!(alone.iter().all(|one| L2::is_within(one, query.grid().clip_steps())));
            let mut order: Vec<usize> = (0..rows.len()).collect();
            for block in [1, 3, 100] {
                order.rotate_left(5);
                order.swap(0, block % 7);
                let count = rows.len() - block % 4;
                let some: Vec<Row> = order[..count].iter().map(|&i| rows[i].clone()).collect();
                let mut expected = vec![0; alone[0].len()];
                for &i in &order[..count] {
                    expected.iter_mut().zip(&alone[i]).for_each(|(sum, k)| *sum += k);
                }
                assert_eq!(
                    integers(&query, table(&some, block), 2),
                    expected,
                    "{storage:?} {features} {block}"
                );
            }
        }
    }
}

/// A loss that has nothing to say about some rows, and says nothing.
struct Silent;

impl ScoreLoss for Silent {
    fn outputs(&self) -> usize {
        2
    }

    fn residuals(&self, scores: &[f64], label: f64, residuals: &mut [f64]) {
        residuals[0] = scores[0] - label;
        if label > 0.0 {
            residuals[1] = 1.0;
        }
    }
}

/// What a loss does not write is not what it wrote for the row before.
#[test]
fn residuals_are_not_handed_from_row_to_row() {
    let features = 6;
    let rows = rows(12, features + 1);
    let query = ClippedGradient::new(&Silent, Public(weights(12)), features, false, 1.0).unwrap();
    for storage in STORAGES {
        let sum = |rows: &[Row]| integers(&query, table(storage, rows, features + 1, 5), 1);
        let (spoken, silent): (Vec<Row>, Vec<Row>) =
            rows.iter().cloned().partition(|row| row.values[features] > 0.0);
        assert!(!spoken.is_empty() && !silent.is_empty());
        assert!(sum(&silent).iter().all(|k| *k == 0));
        assert_eq!(sum(&rows), sum(&spoken), "{storage:?}");
    }
}

/// Shows the blocks of another source as if nothing were known of their rows.
struct Forgetful(Table);

impl BlockSource for Forgetful {
    fn width(&self) -> usize {
        self.0.width()
    }
    fn units(&self) -> usize {
        self.0.units()
    }
    fn blocks(&self) -> usize {
        self.0.blocks()
    }
    fn units_of(&self, block: usize) -> Range<usize> {
        self.0.units_of(block)
    }
    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> Result<()> {
        self.0.visit(block, &mut |piece| {
            visit(match piece {
                Block::DenseF32(b) => Block::DenseF32(DenseBlock::new(b.values, b.width)),
                Block::DenseF64(b) => Block::DenseF64(DenseBlock::new(b.values, b.width)),
                other => other,
            });
        })
    }
}

/// Lengths that were remembered, by questions with an intercept and without, give the integers of lengths found afresh.
#[test]
fn remembered_lengths_make_no_difference() {
    let features = 50;
    let mut rows = rows(40, features + 1);
    rows[3].values[1] = f64::NAN;
    rows[8].values[0] = 1e30;
    rows[9].values[..features].fill(1e-9);
    for storage in STORAGES {
        let shared = std::sync::Arc::new(table(storage, &rows, features + 1, 7));
        let remembering = || -> Table { Box::new(shared.clone()) };
        let copied = || -> Table {
            Box::new(Private::new(table(storage, &rows, features + 1, 9)).in_memory().unwrap().into_inner())
        };
        for round in 0..4usize {
            let has_intercept = round % 2 == 1;
            let scale = 10f64.powi(round as i32 - 2);
            let weights: Vec<f64> =
                weights(2 * (features + usize::from(has_intercept))).iter().map(|w| w * scale).collect();
            let query =
                ClippedGradient::new(&Curved(2), Public(weights), features, has_intercept, 0.7).unwrap();
            let afresh = integers(&query, Box::new(Forgetful(table(storage, &rows, features + 1, 7))), 1);
            assert!(afresh.iter().any(|k| *k != 0));
            assert_eq!(integers(&query, remembering(), 2), afresh, "{storage:?} {round}");
            assert_eq!(integers(&query, copied(), 2), afresh, "{storage:?} {round}");
        }
    }
}

/// Clipping shortens a gradient to the clip norm, not to much less.
#[test]
fn clipped_gradients_are_as_long_as_allowed() {
    for (features, outputs) in [(3, 1), (100, 10), (3000, 2)] {
        let loss = Curved(outputs);
        let weights = Public(weights(outputs * features));
        let query = ClippedGradient::new(&loss, weights, features, false, 1e-3).unwrap();
        for storage in STORAGES {
            let one = integers(&query, table(storage, &rows(1, features + 1), features + 1, 9), 1);
            let norm = one.iter().map(|&k| (k as f64).powi(2)).sum::<f64>().sqrt();
            // 2^-16 by truncation, and far less by rounding to the safe side.
            let share = norm / query.grid().clip_steps() as f64;
            assert!(share <= 1.0 && share > 1.0 - 2f64.powi(-15), "{features} {storage:?}: {share}");
        }
    }
}

#[test]
fn gradients_need_the_right_shapes() {
    let loss = Curved(2);
    let make = |weights: usize| ClippedGradient::new(&loss, Public(vec![0.0; weights]), 3, true, 1.0);
    assert!(make(8).is_ok());
    assert!(matches!(make(7), Err(Error::Shape { what: "the model", .. })));
    assert!(ClippedGradient::new(&loss, Public(vec![0.0; 8]), 3, true, 0.0).is_err());
    let (query, session) = (make(8).unwrap(), session(small(), Adjacency::ReplaceOne, 1, 1));
    let program = Program::new(Gaussian::new(noise(1.0)), Sampling::Everyone, Steps::ONE);
    let (run, mut tickets) = session.authorise(program, delta(1e-6)).unwrap();
    let refused = run.sum(&query, tickets.next().unwrap());
    assert!(matches!(refused, Err(Error::Shape { what: "the query", .. })));
}

fn small() -> Table {
    table(DenseF64, &[Row::new(vec![1.0, 2.0])], 2, 1)
}

/// The code compiled for vector instructions and the plain code give the same bits.
#[test]
#[cfg(target_arch = "x86_64")]
fn gradients_have_a_scalar_twin() {
    use super::super::clipped_gradient::tests_only;
    if std::arch::is_x86_feature_detected!("avx2") {
        for (features, outputs) in [(1, 1), (5, 2), (16, 1), (33, 3), (2000, 1), (1030, 4), (3072, 10)] {
            let loss = Curved(outputs);
            let query =
                ClippedGradient::new(&loss, Public(weights(outputs * (features + 1))), features, true, 1.0);
            let values: Vec<f32> = rows(51, features + 1)
                .iter()
                .flat_map(|row| row.stored(DenseF32))
                .map(|x| x as f32)
                .collect();
            let (vector, plain) = tests_only::both_ways(&query.unwrap(), &values, 51);
            assert_eq!(vector, plain, "{features} {outputs}");
        }
    }
}
