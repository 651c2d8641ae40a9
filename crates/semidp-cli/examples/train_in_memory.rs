//! Trains on arrays in memory as the Python package does, without Python: what `cargo xtask bench python` measures it against.
//!
//! `train_in_memory PRIVATE.npy PUBLIC.npy [copy] -- OPTIONS OF TRAIN`: matrices of single precision by rows, the label last. Prints
//! the seconds that training took, by how many MiB the process grew, and the first weight.

use semidp_table::{Attached, Grid, MemoryTable, Numbers, View};
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// A matrix without some of its columns.
struct Part {
    numbers: Arc<Vec<f32>>,
    width: usize,
    first: usize,
    columns: usize,
}

impl Grid for Part {
    fn view(&self) -> View<'_> {
        View::Dense {
            numbers: Numbers::F32(&self.numbers[self.first..]),
            rows: self.numbers.len() / self.width,
            columns: self.columns,
            row_stride: self.width,
            column_stride: 1,
        }
    }
}

/// The numbers of a file, and how many a row has.
fn read(path: &str) -> Result<(Vec<f32>, usize), Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let body = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..body])?;
    if !header.contains("<f4") || header.contains("'fortran_order': True") {
        return Err("a matrix of single precision by rows is needed".into());
    }
    let shape = header.split('(').nth(1).and_then(|rest| rest.split(')').next()).ok_or("no shape")?;
    let width = shape.split(',').nth(1).ok_or("no columns")?.trim().parse()?;
    let numbers = bytes[body..].chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
    Ok((numbers.collect(), width))
}

fn attached(path: &str, name: &str, copied: bool) -> Result<Attached, Box<dyn Error>> {
    let (numbers, width) = read(path)?;
    let numbers = Arc::new(numbers);
    let table = MemoryTable::new(numbers.len() / width);
    let part = |first, columns| Arc::new(Part { numbers: numbers.clone(), width, first, columns });
    let names = (0..width - 1).map(|column| format!("x{column}")).collect();
    let table = table.with_numbers(names, part(0, width - 1))?;
    let table = table.with_numbers(vec!["y".into()], part(width - 1, 1))?;
    Ok(Attached::new(name, if copied { table.copied() } else { table }))
}

/// What this process has had in memory at most since the peak was reset, in MiB; 0 where nobody tells.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (files, options) = match arguments.iter().position(|word| word == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (&arguments[..], &[][..]),
    };
    let [private, public, rest @ ..] = files else { return Err("two files are needed".into()) };
    let private = attached(private, "private", rest.iter().any(|word| word == "copy"))?;
    let public = attached(public, "public", false)?;
    let mut words: Vec<String> =
        ["train", "--target", "y", "--out", "model", "--checkpoint", "none"].map(String::from).to_vec();
    for (option, table) in [("--private", &private), ("--public", &public)] {
        words.extend([option.to_string(), table.path().display().to_string()]);
    }
    words.extend_from_slice(options);
    // What reading the files took at most is not of interest. Where it cannot be reset, less growth shows.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    let begun = Instant::now();
    let (saved, _) =
        semidp_cli::train(&words, &[], &mut |_| ()).map_err(|failure| failure.message().to_string())?;
    println!("{} {} {}", begun.elapsed().as_secs_f64(), peak() - before, saved.weights[0]);
    Ok(())
}
