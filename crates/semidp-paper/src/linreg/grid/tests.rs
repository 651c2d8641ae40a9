use super::*;

const DIMENSION: usize = 12;
const PUBLIC: usize = 30;
const PRIVATE: usize = 90;

fn rows() -> Rows {
    let mut coins = Coins::new(11, 0);
    let truth = coins.normals(DIMENSION);
    let labelled = (0..PUBLIC + PRIVATE).flat_map(|_| {
        let mut row = coins.normals(DIMENSION);
        let label = row.iter().zip(&truth).map(|(x, w)| x * w).sum::<f64>() + 0.3 * coins.normals(1)[0];
        row.push(label);
        row
    });
    Rows::new(DIMENSION, labelled.map(|x| x as f32).collect::<Vec<_>>().into_iter())
}

/// A symmetric matrix with positive eigenvalues.
fn preconditioner() -> Vec<f64> {
    let entry =
        |i: usize, j: usize| if i == j { 0.5 + 0.03 * i as f64 } else { 0.02 / (1.0 + (i + j) as f64) };
    (0..DIMENSION * DIMENSION).map(|at| entry(at / DIMENSION, at % DIMENSION)).collect()
}

/// The same run in double precision, as the paper writes it: one gradient at a time, w itself, P times the gradient.
fn plainly(shared: &Shared<'_>, start: &[f64], p: Option<&[f64]>, run: Configuration) -> [Vec<f64>; 2] {
    let (mut w, mut sum) = (start.to_vec(), vec![0.0; DIMENSION]);
    let (mut coins, mut batch) = (Coins::new(shared.seed, 0), Batch::default());
    for step in 1..=shared.steps {
        shared.draw(&mut coins, &mut batch);
        let gradient = |row: usize| -> Vec<f64> {
            let x: Vec<f64> = shared.rows.row(row).iter().map(|x| f64::from(*x)).collect();
            let score: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
            x.iter().map(|x| 2.0 * (score - f64::from(shared.rows.labels[row])) * x).collect()
        };
        let norm = |g: &[f64]| g.iter().map(|g| g * g).sum::<f64>().sqrt();
        let clip = f64::from(CLIP_NORM);
        let mut private: Vec<f64> = batch.noise.iter().map(|x| shared.noise * clip * f64::from(*x)).collect();
        for row in &batch.private {
            let g = gradient(*row);
            let factor = (clip / norm(&g)).min(1.0);
            private.iter_mut().zip(&g).for_each(|(sum, g)| *sum += factor * g);
        }
        let mut public = [0.0; DIMENSION];
        for row in &batch.public {
            let g = gradient(*row);
            let factor = clip / norm(&g);
            public.iter_mut().zip(&g).for_each(|(sum, g)| *sum += factor * g);
        }
        let mixed: Vec<f64> = (0..DIMENSION)
            .map(|j| {
                let public =
                    if batch.public.is_empty() { 0.0 } else { public[j] / shared.public_batch as f64 };
                run.alpha * private[j] / shared.batch as f64 + (1.0 - run.alpha) * public
            })
            .collect();
        let moved: Vec<f64> = match p {
            None => mixed,
            Some(p) => {
                p.chunks(DIMENSION).map(|line| line.iter().zip(&mixed).map(|(p, g)| p * g).sum()).collect()
            }
        };
        w.iter_mut().zip(&moved).for_each(|(w, g)| *w -= run.rate * g);
        if step > shared.averaged_after {
            sum.iter_mut().zip(&w).for_each(|(sum, w)| *sum += w);
        }
    }
    let count = (shared.steps - shared.averaged_after) as f64;
    [w, sum.iter().map(|sum| sum / count).collect()]
}

/// Both engines against the plain loop, for all three algorithms and starts near and far.
#[test]
fn runs_are_those_of_a_plain_loop() {
    let rows = rows();
    let p = preconditioner();
    let mirrored: Vec<f32> = (PUBLIC..PUBLIC + PRIVATE)
        .flat_map(|row| {
            let x: Vec<f64> = rows.row(row).iter().map(|x| f64::from(*x)).collect();
            p.chunks(DIMENSION)
                .map(move |line| line.iter().zip(&x).map(|(p, x)| p * x).sum::<f64>() as f32)
                .collect::<Vec<_>>()
        })
        .collect();
    let all = [(0.05, 0.0), (0.2, 0.3), (0.6, 0.7), (1.5, 1.0), (0.1, 1.0)];
    let all = all.map(|(rate, alpha)| Configuration { rate, alpha });
    for start in [vec![0.0; DIMENSION], Coins::new(12, 0).normals(DIMENSION)] {
        let residuals = rows.residuals(&start);
        let algorithm_1 = Shared {
            rows: &rows,
            residuals: &residuals,
            private: PUBLIC..PUBLIC + PRIVATE,
            public: 0..PUBLIC,
            mirrored: None,
            batch: 20,
            public_batch: 7,
            steps: 40,
            averaged_after: 8,
            noise: 0.8,
            seed: 5,
        };
        let alone = Shared { public: 0..0, ..algorithm_1.clone() };
        let dp_sgd = Shared { private: 0..PUBLIC + PRIVATE, ..alone.clone() };
        let pda_md = Shared { mirrored: Some(&mirrored), ..alone };
        for (shared, p) in [(&dp_sgd, None), (&pda_md, Some(&p[..]))] {
            agree(shared, &start, p, &all.map(|run| Configuration { alpha: 1.0, ..run }));
        }
        agree(&algorithm_1, &start, None, &all);
    }
}

fn agree(shared: &Shared<'_>, start: &[f64], p: Option<&[f64]>, runs: &[Configuration]) {
    let together = shared.run(runs);
    assert!(runs.len() > FEW);
    for (number, run) in runs.iter().enumerate() {
        let alone = shared.run(std::slice::from_ref(run));
        let expected = plainly(shared, start, p, *run);
        let found =
            [[&together.last[number], &together.averaged[number]], [&alone.last[0], &alone.averaged[0]]];
        for found in found {
            for (found, expected) in found.into_iter().zip(&expected) {
                let v: Vec<f64> = found.iter().map(|x| f64::from(*x)).collect();
                let moved = match p {
                    None => v,
                    Some(p) => p
                        .chunks(DIMENSION)
                        .map(|line| line.iter().zip(&v).map(|(p, v)| p * v).sum())
                        .collect(),
                };
                for ((moved, start), expected) in moved.iter().zip(start).zip(expected) {
                    assert!((start + moved - expected).abs() < 1e-4, "{run:?}: {} {expected}", start + moved);
                }
            }
        }
    }
}

/// A public gradient of nothing stays nothing, and a gradient within the clip norm is not changed.
#[test]
fn short_gradients_are_clipped_like_long_ones_only_if_public() {
    let rows = Rows::new(2, [0.6f32, 0.8, 1.0, 3.0, 4.0, 0.0].into_iter());
    assert_eq!((rows.len(), &rows.lengths[..]), (2, &[1.0, 5.0][..]));
    let residuals = rows.residuals(&[0.0, 0.0]);
    assert_eq!(residuals, [-1.0, 0.0]);
    let shared = Shared {
        rows: &rows,
        residuals: &residuals,
        private: 0..1,
        public: 1..2,
        mirrored: None,
        batch: 1,
        public_batch: 1,
        steps: 1,
        averaged_after: 0,
        noise: 0.0,
        seed: 1,
    };
    assert_eq!((shared.clipped(0, 0.3), shared.clipped(0, -7.0), shared.clipped(1, 0.4)), (0.6, -1.0, 0.2));
    assert_eq!(
        (shared.rescaled(1, 1e-9), shared.rescaled(1, -3.0), shared.rescaled(1, 0.0)),
        (0.2, -0.2, 0.0)
    );
    assert!(shared.clipped(0, f32::NAN).is_nan());
}
