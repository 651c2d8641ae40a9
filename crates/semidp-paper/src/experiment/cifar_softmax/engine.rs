//! Softmax regression for a whole grid of settings at once.
//!
//! All settings of a grid see the same batches and the same noise. So a step is two products of matrices: a batch times
//! the weights of some settings side by side, and the batch transposed times their residuals. The gradient of an image is
//! residual ⊗ (x, 1), whose length is the product of the two lengths, so that clipping costs nothing.
//!
//! Noise is normal in floating point and comes from [`Coins`]: this emulates training on published images, to tune as the
//! paper tunes. It never touches the kernel, and no certificate comes out of it. What is calibrated is the multiplier.

use super::images::{CLASSES, Images};
use crate::Result;
use crate::coins::Coins;
use crate::parallel::in_order;
use crate::product::{Matrix, Real};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Settings in a product: enough for its speed, and always the same, so that threads make no difference.
const SIDE_BY_SIDE: usize = 8;
/// Images that are measured at once.
const MEASURED: usize = 500;

/// One setting of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The length of a step.
    pub rate: f64,
    /// The weight of private gradients; public ones have the rest.
    pub alpha: f64,
    /// Ridge.
    pub l2: f64,
}

/// What all settings have in common.
pub struct Grid<'g> {
    pub images: &'g Images,
    /// Images, of which the first so many are public and the others private. Either may be none if nothing asks for them.
    pub order: &'g [usize],
    pub public: usize,
    /// The chance of a private image to be in a batch; the batch size that its sums are divided by; that of public ones,
    /// which are drawn with replacement.
    pub sample_rate: f64,
    pub batch: f64,
    pub public_batch: usize,
    /// Gradients of images are clipped to this length, if any.
    pub clip_norm: Option<f64>,
    /// The standard deviation of the noise on sums of private gradients.
    pub noise_std: f64,
    pub steps: u64,
    pub seed: u64,
}

/// Where training ended: weights of each output, `width × (settings · classes)` numbers for a group of settings.
pub struct Finished {
    choices: Range<usize>,
    /// The last iterate,
    last: Vec<f32>,
    /// and the mean of those after the first fifth of the steps.
    mean: Vec<f32>,
}

/// The two outputs of a run, by name.
pub const OUTPUTS: [&str; 2] = ["last", "mean"];

/// What a step draws.
struct Drawn {
    /// Images of a batch, private ones first.
    images: Vec<usize>,
    private: usize,
    noise: Vec<f64>,
}

impl Grid<'_> {
    /// Streams of private batches, of public ones and of noise: grids of one seed have the same noise, and all but the same
    /// batches, however many of their images are public.
    fn streams(&self) -> [Coins; 3] {
        [0, 1, 2].map(|stream| Coins::new(self.seed, stream))
    }

    fn draw(&self, [batches, public_batches, noise]: &mut [Coins; 3]) -> Drawn {
        let mut images = Vec::new();
        // A public image has a coin, too, so that the coins of the others are where they would be without it.
        for (place, image) in self.order.iter().enumerate() {
            if batches.uniform() < self.sample_rate && place >= self.public {
                images.push(*image);
            }
        }
        let private = images.len();
        let public = &self.order[..self.public];
        if !public.is_empty() {
            let one = |coins: &mut Coins| public[(coins.uniform() * public.len() as f64) as usize];
            images.extend((0..self.public_batch).map(|_| one(public_batches)));
        }
        let noise = match self.noise_std > 0.0 {
            true => noise.normals(self.images.width() * CLASSES),
            false => Vec::new(),
        };
        Drawn { images, private, noise }
    }

    /// Trains all settings from zero.
    pub fn train(&self, choices: &[Choice], threads: usize) -> Result<Vec<Finished>> {
        let groups = choices.len().div_ceil(SIDE_BY_SIDE);
        in_order(groups as u64, threads, &|_| (), |group| {
            let first = group as usize * SIDE_BY_SIDE;
            let group = first..choices.len().min(first + SIDE_BY_SIDE);
            Ok(self.train_group(&choices[group.clone()], group))
        })
    }

    fn train_group(&self, choices: &[Choice], places: Range<usize>) -> Finished {
        let (width, across) = (self.images.width(), choices.len() * CLASSES);
        let mut streams = self.streams();
        let mut weights = vec![0.0f32; width * across];
        let (mut gradient, mut mean) = (weights.clone(), weights.clone());
        let skipped = self.steps / 5;
        for step in 0..self.steps {
            let drawn = self.draw(&mut streams);
            let rows = self.images.rows(&drawn.images);
            let mut scores = vec![0.0; drawn.images.len() * across];
            multiply(&rows, (width, 1), &weights, &mut scores, (drawn.images.len(), width, across));
            let each = rows.chunks_exact(width).zip(scores.chunks_exact_mut(across));
            for (place, (row, scores)) in each.enumerate() {
                let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
                let label = self.images.label(drawn.images[place]);
                for (scores, choice) in scores.chunks_exact_mut(CLASSES).zip(choices) {
                    let weight = match place < drawn.private {
                        true => choice.alpha / self.batch,
                        false => (1.0 - choice.alpha) / self.public_batch as f64,
                    };
                    to_residual(scores, label);
                    let residual = scores.iter().map(|r| r * r).sum::<f32>().sqrt();
                    let norm = f64::from(residual * length);
                    let clip = self.clip_norm.map_or(1.0, |most| (most / norm).min(1.0));
                    scores.iter_mut().for_each(|r| *r *= (weight * clip) as f32);
                }
            }
            multiply(&rows, (1, width), &scores, &mut gradient, (width, drawn.images.len(), across));
            let factor = self.noise_std / self.batch;
            for (j, (weights, gradient)) in
                weights.chunks_exact_mut(across).zip(gradient.chunks_exact(across)).enumerate()
            {
                let noise: [f32; CLASSES] = std::array::from_fn(|k| {
                    drawn.noise.get(j * CLASSES + k).map_or(0.0, |z| (z * factor) as f32)
                });
                let each = weights.chunks_exact_mut(CLASSES).zip(gradient.chunks_exact(CLASSES));
                for ((weights, gradient), choice) in each.zip(choices) {
                    let [rate, alpha, l2] =
                        [choice.rate, choice.alpha, choice.l2].map(|number| number as f32);
                    for ((w, g), noise) in weights.iter_mut().zip(gradient).zip(&noise) {
                        *w -= rate * (g + alpha * noise + l2 * *w);
                    }
                }
            }
            if step >= skipped {
                let share = 1.0 / (self.steps - skipped) as f32;
                mean.iter_mut().zip(&weights).for_each(|(mean, w)| *mean += share * w);
            }
        }
        Finished { choices: places, last: weights, mean }
    }
}

/// From scores to softmax minus indicator, in place.
fn to_residual(scores: &mut [f32], label: usize) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
    scores[label] -= 1.0;
}

/// Whether each setting and output gets an image right: image by image, one list for each.
pub fn right(
    images: &Images,
    measured: &[usize],
    all: &[Finished],
    threads: usize,
) -> Result<Vec<[Vec<bool>; 2]>> {
    let groups = in_order(all.len() as u64, threads, &|_| (), |group| {
        let group = &all[group as usize];
        Ok([&group.last, &group.mean]
            .map(|weights| group_right(images, measured, weights, group.choices.len())))
    })?;
    let each = groups.into_iter().flat_map(|[last, mean]| last.into_iter().zip(mean));
    Ok(each.map(|(last, mean)| [last, mean]).collect())
}

fn group_right(images: &Images, measured: &[usize], weights: &[f32], count: usize) -> Vec<Vec<bool>> {
    let (width, across) = (images.width(), count * CLASSES);
    let mut found = vec![Vec::with_capacity(measured.len()); count];
    for some in measured.chunks(MEASURED) {
        let rows = images.rows(some);
        let mut scores = vec![0.0; some.len() * across];
        multiply(&rows, (width, 1), weights, &mut scores, (some.len(), width, across));
        for (image, scores) in some.iter().zip(scores.chunks_exact(across)) {
            for (found, scores) in found.iter_mut().zip(scores.chunks_exact(CLASSES)) {
                let better = |best: usize, next: usize| if scores[next] > scores[best] { next } else { best };
                // Weights that are no numbers get nothing right.
                let is_right = scores.iter().all(|score| score.is_finite())
                    && (0..CLASSES).fold(0, better) == images.label(*image);
                found.push(is_right);
            }
        }
    }
    found
}

/// out = A·B, where A is m × k with the given steps from row to row and from column to column, B is k × n and out m × n,
/// both row by row.
fn multiply(a: &[f32], steps: (usize, usize), b: &[f32], out: &mut [f32], (m, k, n): (usize, usize, usize)) {
    assert!(a.len() == m * k && b.len() == k * n && out.len() == m * n);
    assert!(steps == (k, 1) || steps == (1, m), "A is stored row by row or column by column");
    let a = if steps == (k, 1) { Matrix::new(a, k) } else { Matrix::new(a, m).transposed() };
    out.fill(0.0);
    f32::add_product(1.0, a, Matrix::new(b, n), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: [Choice; 10] = {
        let mut choices = [Choice { rate: 0.3, alpha: 0.5, l2: 0.0 }; 10];
        choices[1] = Choice { rate: 0.1, alpha: 1.0, l2: 0.0 };
        choices[2] = Choice { rate: 0.1, alpha: 0.0, l2: 0.1 };
        // In the second group.
        choices[9] = Choice { rate: 0.7, alpha: 0.2, l2: 0.01 };
        choices
    };

    /// The same by the book, in double precision: (last, mean) for one choice.
    fn plain(grid: &Grid<'_>, choice: Choice) -> [Vec<f64>; 2] {
        let width = grid.images.width();
        let Choice { rate, alpha, l2 } = choice;
        let mut streams = grid.streams();
        let mut w = vec![0.0f64; width * CLASSES];
        let mut kept = Vec::new();
        for _ in 0..grid.steps {
            let drawn = grid.draw(&mut streams);
            let (mut private, mut public) = (vec![0.0; w.len()], vec![0.0; w.len()]);
            for (place, image) in drawn.images.iter().enumerate() {
                let x: Vec<f64> = grid.images.rows(&[*image]).into_iter().map(f64::from).collect();
                let score = |k: usize| (0..width).map(|j| x[j] * w[j * CLASSES + k]).sum::<f64>();
                let powers: Vec<f64> = (0..CLASSES).map(|k| score(k).exp()).collect();
                let sum: f64 = powers.iter().sum();
                let target = |k: usize| if k == grid.images.label(*image) { 1.0 } else { 0.0 };
                let own: Vec<f64> = (0..w.len())
                    .map(|at| (powers[at % CLASSES] / sum - target(at % CLASSES)) * x[at / CLASSES])
                    .collect();
                let length = own.iter().map(|g| g * g).sum::<f64>().sqrt();
                let clip = grid.clip_norm.map_or(1.0, |most| (most / length).min(1.0));
                let total = if place < drawn.private { &mut private } else { &mut public };
                total.iter_mut().zip(&own).for_each(|(total, g)| *total += clip * g);
            }
            for at in 0..w.len() {
                let noise = drawn.noise.get(at).map_or(0.0, |z| z * grid.noise_std);
                let mixed = alpha * (private[at] + noise) / grid.batch
                    + (1.0 - alpha) * public[at] / grid.public_batch as f64;
                w[at] -= rate * (mixed + l2 * w[at]);
            }
            kept.push(w.clone());
        }
        let late = &kept[(grid.steps / 5) as usize..];
        let mean =
            (0..w.len()).map(|at| late.iter().map(|w| w[at]).sum::<f64>() / late.len() as f64).collect();
        [w, mean]
    }

    #[test]
    fn the_grid_is_what_a_plain_loop_finds() {
        let images = Images::synthetic(21, 60, 7);
        let order: Vec<usize> = (0..60).rev().collect();
        for clip_norm in [Some(0.4), None] {
            let grid = Grid {
                images: &images,
                order: &order,
                public: 20,
                sample_rate: 0.3,
                batch: 12.0,
                public_batch: 5,
                clip_norm,
                noise_std: 0.5,
                steps: 11,
                seed: 3,
            };
            let finished = grid.train(&CHOICES, 2).unwrap();
            assert_eq!(finished.iter().map(|group| group.choices.len()).collect::<Vec<_>>(), [8, 2]);
            for (place, choice) in CHOICES.iter().enumerate() {
                let group = &finished[place / SIDE_BY_SIDE];
                let across = group.choices.len() * CLASSES;
                let first = (place % SIDE_BY_SIDE) * CLASSES;
                for (found, expected) in [&group.last, &group.mean].into_iter().zip(plain(&grid, *choice)) {
                    for (at, expected) in expected.iter().enumerate() {
                        let found = f64::from(found[at / CLASSES * across + first + at % CLASSES]);
                        assert!((found - expected).abs() < 2e-5, "{choice:?} {at}: {found} {expected}");
                    }
                }
            }
            // Threads make no difference.
            let alone = grid.train(&CHOICES, 1).unwrap();
            assert!(alone.iter().zip(&finished).all(|(a, b)| a.last == b.last && a.mean == b.mean));
        }
    }

    /// Where fewer images are private the others have the same coins: batches differ by what is public, and by a little more
    /// chance for the rest to keep their size.
    #[test]
    fn batches_are_shared_however_many_images_are_public() {
        let (images, order) = (Images::synthetic(21, 500, 7), (0..500).rev().collect::<Vec<_>>());
        let grid = |public: usize| Grid {
            images: &images,
            order: &order,
            public,
            sample_rate: 50.0 / (500 - public) as f64,
            batch: 50.0,
            public_batch: 5,
            clip_norm: Some(1.0),
            noise_std: 1.0,
            steps: 20,
            seed: 3,
        };
        let (all_private, some_public) = (grid(0), grid(100));
        let (mut streams, mut others) = (all_private.streams(), some_public.streams());
        let mut in_both = 0;
        for _ in 0..20 {
            let (all, some) = (all_private.draw(&mut streams), some_public.draw(&mut others));
            assert_eq!(all.noise, some.noise);
            let private = &some.images[..some.private];
            assert!(private.iter().all(|image| !order[..100].contains(image)));
            assert!(some.images[some.private..].iter().all(|image| order[..100].contains(image)));
            let shared: Vec<_> = all.images.iter().filter(|image| !order[..100].contains(image)).collect();
            assert!(shared.iter().all(|image| private.contains(image)));
            in_both += shared.len();
        }
        // 800 on average, give or take 28.
        assert!(in_both > 600, "{in_both}");
    }

    #[test]
    fn what_is_learned_is_right_on_other_images() {
        let (images, all) = (Images::synthetic(40, 300, 1), (0..200).collect::<Vec<_>>());
        let grid = Grid {
            images: &images,
            order: &all,
            public: all.len(),
            sample_rate: 0.0,
            batch: 1.0,
            public_batch: 50,
            clip_norm: None,
            noise_std: 0.0,
            steps: 200,
            seed: 1,
        };
        let good = Choice { rate: 0.5, alpha: 0.0, l2: 0.0 };
        let none = Choice { rate: 0.0, ..good };
        let lost = Choice { rate: f64::NAN, ..good };
        let finished = grid.train(&[good, none, lost], 1).unwrap();
        let others: Vec<usize> = (200..300).collect();
        let found = right(&images, &others, &finished, 2).unwrap();
        let share =
            |choice: usize, output: usize| found[choice][output].iter().filter(|is_right| **is_right).count();
        assert!(share(0, 0) > 95 && share(0, 1) > 95, "{} {}", share(0, 0), share(0, 1));
        // Weights of nought say the first class.
        let first = others.iter().filter(|image| images.label(**image) == 0).count();
        assert_eq!((share(1, 0), share(2, 0), share(2, 1)), (first, 0, 0));
    }
}
