//! CIFAR-10 as its authors publish it: records of a label and 3,072 bytes.

use crate::files::Folder;
use crate::{Error, Result};

pub const CLASSES: usize = 10;
const PIXELS: usize = 3072;
const TRAINING: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: &str = "test_batch.bin";
const ORIGIN: &str = "the binary version of CIFAR-10, https://www.cs.toronto.edu/~kriz/cifar.html, unpacked";

/// Images with their classes.
pub struct Images {
    /// Bytes of an image.
    pixels: usize,
    bytes: Vec<u8>,
    labels: Vec<u8>,
}

impl Images {
    /// The images for training, in their published order, and those for tests.
    pub fn load(folder: &Folder) -> Result<(Self, Self)> {
        let read = |name: &str| {
            let places = ["cifar-10-batches-bin/", "", "cifar10/cifar-10-batches-bin/", "cifar10/"];
            let paths = places.map(|place| format!("{place}{name}"));
            folder.read(&paths.each_ref().map(String::as_str), ORIGIN)
        };
        let mut training = Self { pixels: PIXELS, bytes: Vec::new(), labels: Vec::new() };
        for name in TRAINING {
            training.add(name, &read(name)?)?;
        }
        let mut test = Self { pixels: PIXELS, bytes: Vec::new(), labels: Vec::new() };
        test.add(TEST, &read(TEST)?)?;
        Ok((training, test))
    }

    /// Appends the records of a file.
    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let wrong = |what: &str| Err(Error::Data(format!("{name} is no file of CIFAR-10: {what}")));
        let (records, rest) = (bytes.chunks_exact(self.pixels + 1), bytes.len() % (self.pixels + 1));
        if rest != 0 || bytes.is_empty() {
            return wrong("its length is not that of whole records");
        }
        for record in records {
            if usize::from(record[0]) >= CLASSES {
                return wrong("a label is above 9");
            }
            self.labels.push(record[0]);
            self.bytes.extend_from_slice(&record[1..]);
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Numbers of a row: the bytes and a one.
    pub fn width(&self) -> usize {
        self.pixels + 1
    }

    pub fn label(&self, image: usize) -> usize {
        self.labels[image].into()
    }

    /// Bytes over 255, minus one half, and a one at the end for the intercept. One half needs no data: it gives nothing
    /// away.
    pub fn row_into(&self, image: usize, row: &mut [f32]) {
        let bytes = &self.bytes[image * self.pixels..][..self.pixels];
        row.iter_mut().zip(bytes).for_each(|(x, byte)| *x = f32::from(*byte) / 255.0 - 0.5);
        row[self.pixels] = 1.0;
    }

    /// Some rows, one after the other.
    pub fn rows(&self, images: &[usize]) -> Vec<f32> {
        let mut rows = vec![0.0; images.len() * self.width()];
        for (image, row) in images.iter().zip(rows.chunks_exact_mut(self.width())) {
            self.row_into(*image, row);
        }
        rows
    }

    /// Some rows with their class in place of the one, as the library takes them.
    pub fn labelled(&self, images: &[usize]) -> Vec<f32> {
        let mut rows = self.rows(images);
        for (image, row) in images.iter().zip(rows.chunks_exact_mut(self.width())) {
            row[self.pixels] = self.label(*image) as f32;
        }
        rows
    }

    /// Small ones, for tests.
    #[cfg(test)]
    pub fn synthetic(pixels: usize, count: usize, seed: u64) -> Self {
        let mut coins = crate::coins::Coins::new(seed, 0);
        let mut images = Self { pixels, bytes: Vec::new(), labels: Vec::new() };
        for _ in 0..count {
            let label = (coins.word() % CLASSES as u64) as u8;
            images.labels.push(label);
            // A class is brighter at its own place.
            let byte =
                |j: usize, noise: u64| if j % CLASSES == usize::from(label) { 155 + noise } else { noise } as u8;
            images.bytes.extend((0..pixels).map(|j| byte(j, coins.word() % 101)));
        }
        images
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_rows() {
        let mut images = Images { pixels: 2, bytes: Vec::new(), labels: Vec::new() };
        images.add("a", &[3, 0, 255, 9, 51, 102]).unwrap();
        images.add("b", &[0, 1, 2]).unwrap();
        assert_eq!((images.len(), images.width()), (3, 3));
        assert_eq!([0, 1, 2].map(|image| images.label(image)), [3, 9, 0]);
        assert_eq!(images.rows(&[1, 0]), [51.0 / 255.0 - 0.5, 102.0 / 255.0 - 0.5, 1.0, -0.5, 0.5, 1.0]);
        assert_eq!(images.labelled(&[1])[2], 9.0);
        for wrong in [&[1, 2][..], &[], &[10, 0, 0]] {
            assert!(matches!(images.add("c", wrong), Err(Error::Data(message)) if message.contains('c')));
        }
    }
}
